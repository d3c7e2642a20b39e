# SPDX-License-Identifier: GPL-2.0
"""QEMU's CPU keeps the promises of the architecture that its own emulation breaks; without lab/emulator/hooks each test fails.

Programs without a system (emulator/*.c) ask for them. The first hook's race has a test with guests in
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
SECONDS = 60  # it takes one, tlb some more, as it waits
FLAGS = (
    "-O1", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-pic", "-fno-stack-protector", "-mgeneral-regs-only",
    "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none,-z,noexecstack,--no-warn-rwx-segments", "-T", SOURCES / "bare.lds",
)  # fmt: skip
PROGRAMS_32 = ("bare", "map")
FLAGS_32 = ("-m32", "-march=i686")
FLAGS_64 = ("-m64", "-mno-red-zone")


def build(name: str, folder: Path) -> Path:
    """A program that a multiboot loader takes: 32-bit, or 64-bit behind start64.S in a file that says it is not."""
    program = folder / f"{name}.elf"
    source = SOURCES / f"{name}.c"
    if name in PROGRAMS_32:
        subprocess.run(["gcc", *FLAGS_32, *FLAGS, "-o", program, source], check=True)
    else:
        whole = folder / f"{name}.elf64"
        subprocess.run(["gcc", *FLAGS_64, *FLAGS, "-o", whole, SOURCES / "start64.S", source], check=True)
        subprocess.run(["objcopy", "-O", "elf32-i386", whole, program], check=True)
    return program


def run(program: Path, cpu: str, cpus: int = 1) -> list[str]:
    """What the program printed, to its end."""
    done = subprocess.run(
        [
            artifacts.load().qemu, *FIRMWARE, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", cpu, "-m", "64M",
            "-smp", str(cpus), "-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-serial", "stdio",
            "-kernel", program,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )  # fmt: skip
    found = done.stdout.splitlines()
    checks = [line for line in found if not line.startswith("#")]
    assert checks and checks[-1] == f"1..{len(checks) - 1}", done.stdout + done.stderr
    return found


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Of the program for what concerns no feature."""
    return run(build("bare", tmp_path_factory.mktemp("bare")), CPU)


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


@pytest.mark.parametrize(
    ("program", "cpu", "number"),
    [
        pytest.param("rogpt", CPU, 371, id="walks only read read-only guest page tables"),
        pytest.param("rogpt", f"{CPU},-rogpt", 371, id="walks write without that feature"),
        pytest.param("nrips", CPU, 112, id="the next RIP is saved"),
        pytest.param("nrips", f"{CPU},-nrip-save", 112, id="no next RIP without that feature"),
    ],
)
def test_a_feature(
    tmp_path: Path, program: str, cpu: str, number: int, record_property: Callable[[str, object], None]
) -> None:
    """The program finds the feature that it is named after, or finds it missing, and each of its lines is ok."""
    found = run(build(program, tmp_path), cpu)
    assert found[0] == (f"# {program}" if cpu == CPU else f"# no {program}")
    checks = found[1:-1]
    record_property("checks", len(checks))
    assert [line for line in checks if not line.startswith("ok ")] == []
    assert len(checks) == number


def test_a_changed_map(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """While one CPU changes the memory map, another one's accesses reach its APIC: a race, provoked some thousand times."""
    found = run(build("map", tmp_path), CPU, cpus=16)
    changes = [line for line in found if line.startswith("# changes")]
    record_property("changes", changes)
    checks = [line for line in found[:-1] if not line.startswith("#")]
    assert [line for line in checks if not line.startswith("ok ")] == [], changes
    assert len(checks) == 5


def test_translations(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Those of a guest and of its host live as long as they may, and no longer: a CPU that tags them with the ASID."""
    checks = [line for line in run(build("tlb", tmp_path), CPU) if not line.startswith("#")][:-1]
    record_property("checks", len(checks))
    assert [line for line in checks if not line.startswith("ok ")] == []
    assert len(checks) == 210
