# SPDX-License-Identifier: GPL-2.0
"""Forward progress with CPUs on two hosts, section 4 of issue 8: all CPUs take each other's pages away, and nobody starves.

Each CPU of each host writes one page in a loop, and each has its share of it. Then the first CPU of a host makes an instruction
that needs four or six pages at once, which all others write meanwhile, and last those of both hosts do so at the same time.

It takes some six minutes on two quiet processors: three for the hosts, the guest and the attach, and two to three for ten
phases of ten seconds, with what is between them. `make soak` has two cases more: pages of the other host's memory, three
minutes, and two CPUs of each host, another guest and some six minutes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import starve
from benchmarks.results import kept
from lab.elastic_guest import PROGRAMS
from lab.far_guest import status
from lab.host import Host
from tests.e2e.conftest import soak
from tests.e2e.span_guest import Lives, lives_on, ran

pytestmark = pytest.mark.fresh

PHASE_MS = 10000  # of the hosts' clock: some hundred faults, one after the other
WAITED_US = 1000  # what takes so long there has waited for a page
# An instruction of six pages that others write takes some twenty faults at most, by lease and token: ten of them in a phase
# would be half of that. A thread that writes writes thousands of words while it has a page.
INSTRUCTIONS, WORDS, WAITS = 5, 100, 5


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with lives_on(tmp_path_factory.mktemp("dsm")) as made:
        yield made


def tokens(host: Host) -> int:
    """How often the token has come there."""
    return int(status(host)["engine"]["tokens"])


@pytest.mark.parametrize(("cpus", "node"), [(1, 0), soak(1, 1), soak(2, 0)])
def test_nobody_starves(lives: Lives, tmp_path: Path, cpus: int, node: int) -> None:
    """Words and instructions of each CPU, a quarter of its host's fair share at least, and no word is lost."""
    site, shape = lives.site, dataclasses.replace(lives.shape, cpus=cpus)
    ms = PHASE_MS / site.slow
    threads = [(cpu, host) for host in (0, 1) for cpu in shape.cpus_of(host)]
    words = (
        f"--cpus={','.join(str(cpu) for cpu, _ in threads)} --hosts={','.join(str(host) for _, host in threads)} "
        f"--node={node} --ms={ms:.0f} --slow-us={WAITED_US // site.slow}"
    )
    with lives.borrowed(attached=True, shape=shape) as guest:
        before = [tokens(host) for host in site.both]
        done = ran(site, guest, f"{PROGRAMS}/dsm_starve {words}", tmp_path / "starve")
        phases, wrong = starve.parse(done.out)
        for phase in phases:
            print(phase, *phase.threads, phase.shares(False), phase.shares(True), sep="\n    ")
        print("tokens:", [tokens(host) - had for host, had in zip(site.both, before, strict=True)])
        kept(f"dsm-starve-{cpus}-{node}", starve.metrics(phases, wrong, ms, site.slow))
        assert done.status == 0 and wrong == 0, done
        assert {phase.what for phase in phases} == set(starve.WHATS)
        assert starve.untouched(phases, WAITS) == []
        assert starve.starved(phases, INSTRUCTIONS, WORDS) == []
