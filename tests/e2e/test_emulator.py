# SPDX-License-Identifier: GPL-2.0
"""QEMU's CPU keeps the promises of the architecture that its own emulation breaks; without lab/emulator/hooks each test fails.

A program without a system (emulator/bare.c) asks for them. The first hook's race has a test with guests in
test_elastic_upstream_bugs.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import artifacts
from lab.qemu import CPU, FIRMWARE

SOURCES = Path(__file__).parent / "emulator"
SECONDS = 60  # it takes one
FLAGS = (
    "-m32", "-march=i686", "-O1", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-pic", "-fno-stack-protector",
    "-mgeneral-regs-only", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none,-z,noexecstack,--no-warn-rwx-segments",
)  # fmt: skip


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program printed, to its end."""
    program = tmp_path_factory.mktemp("emulator") / "bare.elf"
    subprocess.run(["gcc", *FLAGS, "-T", SOURCES / "bare.lds", "-o", program, SOURCES / "bare.c"], check=True)
    done = subprocess.run(
        [
            artifacts.load().qemu, *FIRMWARE, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", CPU, "-m", "64M",
            "-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-serial", "stdio", "-kernel", program,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )  # fmt: skip
    found = done.stdout.splitlines()
    assert found and found[-1] == f"1..{len(found) - 1}", done.stdout + done.stderr
    return found


@pytest.mark.parametrize(
    ("about", "number"),
    [
        pytest.param(r"with CR0\.TS raises #NM", 5, id="XSAVE and XRSTOR respect CR0.TS"),
        pytest.param(r"read", 10, id="reads of control registers are told apart"),
        pytest.param(r"inject|timer", 3, id="an injected interrupt is delivered once"),
    ],
)
def test_the_cpu(lines: list[str], about: str, number: int, record_property: Callable[[str, object], None]) -> None:
    """Each line of the program is ok."""
    asked = [line for line in lines if re.search(about, line)]
    record_property("checks", len(asked))
    assert len(asked) == number, lines
    assert [line for line in asked if not line.startswith("ok ")] == []
