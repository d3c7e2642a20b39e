# SPDX-License-Identifier: GPL-2.0
"""A node comes and goes again and again under load: no word of memory changes, and no page of the host is lost."""

from __future__ import annotations

import json
from collections.abc import Callable

from benchmarks.program_output import parse_stream
from benchmarks.results import Metric, from_runs, write
from lab.command import Run, checked
from lab.elastic_guest import LIBGOMP, PROGRAMS, ElasticGuest
from lab.hypervisor import pages_off, settled_free_pages
from lab.patience import wait_for
from tests.e2e.conftest import rounds

ROUNDS = rounds(3, soak=100)
MEMCHECK_MIB, STREAM_MIB = 48, 64


def test_again_and_again_under_load(pair: ElasticGuest, dom0: Run, background: Callable[[str, str], int]) -> None:
    """memcheck compares each page that it touches, stream_check each word at its end."""
    before = settled_free_pages(dom0)
    memcheck = background(f"{PROGRAMS}/memcheck {MEMCHECK_MIB} 2", "/tmp/memcheck.out")
    stream = background(
        f"env OMP_WAIT_POLICY=passive LD_LIBRARY_PATH={LIBGOMP} {PROGRAMS}/stream_check --mib={STREAM_MIB} --iterations=0",
        "/tmp/stream.jsonl",
    )
    wait_for("the load runs", 90, lambda: "ready" in pair.guest("cat /tmp/memcheck.out").out)

    attach, detach = [], []
    for round_ in range(ROUNDS):
        done = pair.attach(1)
        assert done.status == 0, f"round {round_}: {done.text}"
        attach.append(done.seconds)
        done = pair.detach(1)
        assert done.status == 0, f"round {round_}: {done.text}"
        detach.append(done.seconds)
        assert pages_off(dom0, before) == {}, f"round {round_}: pages of the host are missing"

    checked(pair.guest, f"kill -TERM {memcheck} {stream}")
    wait_for("memcheck ends", 90, lambda: "bad_pages" in pair.guest("cat /tmp/memcheck.out").out)
    wait_for("stream_check ends", 90, lambda: '"result"' in pair.guest("cat /tmp/stream.jsonl").out)
    counted = json.loads(checked(pair.guest, "cat /tmp/memcheck.out").splitlines()[-1])
    run = parse_stream(checked(pair.guest, "cat /tmp/stream.jsonl"))
    assert counted["bad_pages"] == 0 and counted["checks"] > MEMCHECK_MIB * 256
    assert run.wrong_words == 0
    assert {i.threads for i in run.iterations} >= {2, 4}, "the team never grew, or never shrank"
    assert sorted(pair.nodes()) == [0]
    write(
        "under_load",
        [
            from_runs("under_load.attach.seconds", attach, "s", "lower", f"{ROUNDS} rounds with two programs running"),
            from_runs("under_load.detach.seconds", detach, "s", "lower"),
            Metric("under_load.pages_checked", counted["checks"], "1"),
            Metric("under_load.bad_pages", counted["bad_pages"], "1", "lower"),
        ],
    )
