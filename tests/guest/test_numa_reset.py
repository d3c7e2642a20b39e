# SPDX-License-Identifier: GPL-2.0
"""numa_reset(2) in a booted kernel: a test for each program and machine, which has to be content with each line of TAP.

The kernel is the pipeline's, or the one that XENUMA_KERNEL names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.artifacts import path_of
from lab.pipeline.paths import BUILD
from tests.guest import run_numa_reset as guest

LOGS = BUILD / "logs"


def _kernel() -> Path:
    kernel = path_of("kernel")
    assert kernel.is_file(), f"no kernel: {kernel} is not there; run 'make build', or set XENUMA_KERNEL"
    return kernel


@pytest.fixture(scope="module")
def initrd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The initramfs with all programs."""
    folder = tmp_path_factory.mktemp("numa_reset")
    guest.build_programs(folder)
    guest.initramfs(folder, folder / "initramfs")
    return folder / "initramfs"


@pytest.fixture(scope="module", params=guest.MACHINES, ids=lambda machine: machine.name)
def run(request: pytest.FixtureRequest, initrd: Path) -> guest.Boot:
    """One boot of one machine, with all programs."""
    machine: guest.MachineDescription = request.param
    result = guest.boot(machine, _kernel(), initrd)
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / f"numa_reset-{machine.name}.log").write_text("\n".join(result.log) + "\n")
    return result


@pytest.mark.parametrize("program", guest.program_names())
def test_program(run: guest.Boot, program: str, record_property: Callable[[str, object], None]) -> None:
    """The program runs to its end, and each of its lines is good."""
    assert program in run.programs, "never started:\n" + "\n".join(run.log[-30:])
    said = run.programs[program]
    record_property("checks", len(said.results))
    assert not said.problem(), f"{said.problem()}:\n" + "\n".join(run.log[-30:])
    assert all(good for _, good in said.results), [name for name, good in said.results if not good]


def test_kernel_is_content(run: guest.Boot) -> None:
    """All programs were run, and the kernel had nothing to complain about."""
    assert run.done, "the machine did not come to its end:\n" + "\n".join(run.log[-30:])
    assert not run.complaints
