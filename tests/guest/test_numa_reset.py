# SPDX-License-Identifier: GPL-2.0
"""numa_reset(2) in a booted kernel: each TAP line of each program is a named result.

The kernel is the pipeline's, or the one that XENUMA_KERNEL names.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.pipeline import paths
from tests.guest import run_numa_reset as guest

BUILT = paths.ARTIFACTS / "linux" / "vmlinuz"
LOGS = paths.BUILD / "logs"


def _kernel() -> Path:
    named = os.environ.get("XENUMA_KERNEL")
    if not named and not BUILT.exists():
        pytest.skip(f"no kernel: {BUILT} is not there; run 'make build', or set XENUMA_KERNEL")
    kernel = Path(named) if named else BUILT
    assert kernel.is_file(), f"XENUMA_KERNEL: {kernel} is not there"
    return kernel


@pytest.fixture(scope="module")
def initrd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The initramfs with all programs."""
    folder = tmp_path_factory.mktemp("numa_reset")
    guest.build_programs(folder)
    guest.initramfs(folder, folder / "initramfs")
    return folder / "initramfs"


@pytest.fixture(scope="module", params=guest.MACHINES, ids=lambda machine: machine.name)
def run(request: pytest.FixtureRequest, initrd: Path) -> guest.Run:
    """One boot of one machine, with all programs."""
    machine: guest.Machine = request.param
    result = guest.boot(machine, _kernel(), initrd)
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / f"numa_reset-{machine.name}.log").write_text("\n".join(result.log) + "\n")
    return result


def _report(request: pytest.FixtureRequest, name: str, good: bool) -> None:
    """Hand one TAP line to pytest as a result of its own."""
    report = pytest.TestReport(
        nodeid=f"{request.node.nodeid}::{name}",
        location=request.node.location,
        keywords={},
        when="call",
        outcome="passed" if good else "failed",
        longrepr=None if good else f"not ok: {name}",
    )
    request.session.testscollected += 1  # for the percentage
    request.config.hook.pytest_runtest_logreport(report=report)


@pytest.mark.parametrize("program", guest.program_names())
def test_program(request: pytest.FixtureRequest, run: guest.Run, program: str) -> None:
    """The program runs to its end, and each of its lines is good."""
    assert program in run.programs, "never started:\n" + "\n".join(run.log[-30:])
    said = run.programs[program]
    for name, good in said.results:
        _report(request, name, good)
    assert not said.problem(), f"{said.problem()}:\n" + "\n".join(run.log[-30:])
    assert all(good for _, good in said.results), [name for name, good in said.results if not good]


def test_kernel_is_content(run: guest.Run) -> None:
    """All programs were run, and the kernel had nothing to complain about."""
    assert run.done, "the machine did not come to its end:\n" + "\n".join(run.log[-30:])
    assert not run.complaints
