# SPDX-License-Identifier: GPL-2.0
"""The balloon's figures from made-up steps, and its shell script against made-up commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.balloon import GIVE, TAKE, Step, metrics, parse_stock, stock_script
from benchmarks.results import Result, encode, host_info, now, problems

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
