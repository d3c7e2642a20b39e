# SPDX-License-Identifier: GPL-2.0
"""The balloon's figures from made-up steps, and its shell script against made-up commands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.balloon import COUNTERS, GIVE, STOCK_MIB, TAKE, Step, measure, metrics, parse_stock, stock_script
from benchmarks.results import Result, encode, host_info, now, problems
from lab.command import Done
from lab.elastic_guest import ElasticGuest
from lab.errors import CommandFailedError

STEPS = [
    Step("stock_4k", TAKE, 64, 4.0, {"p2m_writes": 16416, "flushes": 16384, "frees": 16384}),
    Step("stock_4k", GIVE, 64, 2.0, {"p2m_writes": 16384, "flushes": 0, "frees": 0}),
    Step("order9", TAKE, 256, 2.0, {"p2m_writes": 65664, "flushes": 65536, "frees": 65536}),
    Step("ours", TAKE, 256, 0.16, {"p2m_writes": 128, "flushes": 128, "frees": 128}),
    Step("ours", TAKE, 256, 0.08, {"p2m_writes": 128, "flushes": 128, "frees": 128}),
    Step("ours", GIVE, 256, 0.5, {"p2m_writes": 128, "flushes": 0, "frees": 0}),
]


def test_ratio_is_time_for_the_same_amount() -> None:
    found = {m.metric: m for m in metrics(STEPS)}
    take = found["balloon.take.ratio"]
    assert take.runs == pytest.approx([100.0, 200.0])
    assert take.value == pytest.approx(150.0)
    assert take.baseline["stock_4k_s_per_gib"] == pytest.approx(64.0)
    assert found["balloon.give.ratio"].value == pytest.approx(16.0)


def test_counts_are_for_each_2_mib() -> None:
    found = {m.metric: m for m in metrics(STEPS)}
    for count in ("p2m_writes", "flushes", "frees"):
        assert found[f"balloon.take.{count}_per_2mib"].value == 1.0
    assert found["balloon.take.p2m_writes_per_2mib"].baseline == {"stock_4k": 513.0, "order9": 513.0}
    assert found["balloon.give.flushes_per_2mib"].value == 0.0


def test_what_was_not_measured_is_in_the_file_without_a_value() -> None:
    found = metrics([step for step in STEPS if step.way != "ours"])
    assert {m.metric: m.value for m in found}["balloon.take.ratio"] is None
    assert problems(encode(Result("balloon", now(), host_info(), found))) == []


def _commands(tmp_path: Path, after: int) -> dict[str, str]:
    """A fake `xl` whose guest has 512 MiB until the second `list` after mem-set, and `after` from then on.

    Its target is 1 MiB more, as that of a real guest is.
    """
    (tmp_path / "xl").write_text(
        f"""#!/bin/sh
case $1 in
domid) echo 7;;
mem-set) echo "$3" > {tmp_path}/target;;
list) n=512
  if [ -e {tmp_path}/target ]; then [ -e {tmp_path}/seen ] && n={after}; : > {tmp_path}/seen; fi
  printf 'Name ID Mem VCPUs\\n%s 1 %s 2 r 1.0\\n' "$2" "$n";;
esac
""",
        encoding="utf-8",
    )
    (tmp_path / "xl").chmod(0o755)
    (tmp_path / "xenstore-read").write_text(
        '#!/bin/sh\n[ "$1" = /local/domain/7/memory/target ] && echo $((513 * 1024))\n', encoding="utf-8"
    )
    (tmp_path / "xenstore-read").chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.parametrize(("direction", "after", "target"), [(-1, 448, "449m"), (1, 576, "577m")])
def test_the_script_waits_for_the_hypervisors_count(tmp_path: Path, direction: int, after: int, target: str) -> None:
    done = subprocess.run(
        ["sh", "-c", stock_script("guest", 64, direction, 10)],
        env=_commands(tmp_path, after),
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, changed = parse_stock(done.stdout)
    assert changed == 64 and 0 <= seconds < 10
    assert (tmp_path / "target").read_text(encoding="utf-8").strip() == target


def test_the_script_gives_up_on_a_guest_that_does_not_follow(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", stock_script("guest", 64, -1, 1)],
        env=_commands(tmp_path, 500),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""


class PlayedDom0:
    """A hypervisor whose superpage path can be switched, and that counts one entry of the p2m for each extent or page."""

    def __init__(self, fails: str = "") -> None:
        self.superpages = True
        self.written = 0
        self.fails = fails
        self.typed: list[str] = []

    def __call__(self, command: str, timeout: float = 60.0) -> Done:
        self.typed.append(command)
        if self.fails and self.fails in command:
            return Done(3, "", "refused")
        if match := re.fullmatch(r"xl set-parameters guest-remove-range=(yes|no)", command):
            self.superpages = match[1] == "yes"
        elif command == "xenperf":
            return Done(0, "".join(f"{name:<35}  T= {self.written}\n" for name in COUNTERS.values()))
        elif "mem-set" in command:
            self.written += STOCK_MIB * 256
            return Done(0, f"10.0 16.0 1000 {1000 - STOCK_MIB}\n")
        elif "vnode-set" in command:
            self.written += 128 if self.superpages else 128 * 512
            return Done(0, "20.0 20.5\n")
        return Done(0, "")


def test_the_whole_comparison() -> None:
    """Ours with the superpage path, order9 without it; then it is on again, and the node is gone as it was."""
    dom0, steps = PlayedDom0(), list[Step]()
    measure(ElasticGuest("g", dom0, dom0), 1, 512, steps, runs=2)
    assert [(step.way, step.operation, step.mib, step.counts["p2m_writes"]) for step in steps] == [
        *[("stock_4k", TAKE, 48, 48 * 256), ("stock_4k", GIVE, 48, 48 * 256)] * 2,
        *[("ours", TAKE, 256, 128), ("ours", GIVE, 256, 128)] * 2,
        *[("order9", TAKE, 256, 128 * 512), ("order9", GIVE, 256, 128 * 512)],
    ]
    assert dom0.superpages
    assert [command for command in dom0.typed if "tach" in command] == ["xl vnode-attach g 1", "xl vnode-detach g 1"]


@pytest.mark.parametrize(
    ("fails", "message"), [("vnode-set g 1 256M", "exit status 3: refused"), ("range=no", "exit status 3\nrefused")]
)
def test_what_goes_wrong_leaves_the_hypervisor_as_it_was(fails: str, message: str) -> None:
    dom0, steps = PlayedDom0(fails), list[Step]()
    with pytest.raises((RuntimeError, CommandFailedError), match=message):
        measure(ElasticGuest("g", dom0, dom0), 1, 512, steps, runs=1)
    assert dom0.superpages and dom0.typed[-1] == "xl vnode-detach g 1"
    assert [step.way for step in steps][:2] == ["stock_4k"] * 2


def test_a_node_that_does_not_come_is_not_measured() -> None:
    with pytest.raises(RuntimeError, match="xl vnode-attach: exit status 3: refused"):
        measure(ElasticGuest("g", (dom0 := PlayedDom0("vnode-attach")), dom0), 1, 512, [], runs=1)
