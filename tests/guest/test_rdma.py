# SPDX-License-Identifier: GPL-2.0
"""The RDMA transport over Soft-RoCE, in a booted kernel without Xen: each case is a line of TAP, which has to be good.

The kernel is the pipeline's, or the one that XENUMA_KERNEL names.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.artifacts import path_of
from lab.pipeline.paths import BUILD
from tests.guest import run_rdma as guest
from tests.guest.run_numa_reset import Boot

pytestmark = pytest.mark.fresh
NAMES = [name.removesuffix(".c") for name in guest.PROGRAMS]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Boot:
    """One boot, with all programs."""
    kernel = path_of("kernel")
    assert kernel.is_file(), f"no kernel: {kernel} is not there; run 'make build', or set XENUMA_KERNEL"
    result = guest.run(kernel, tmp_path_factory.mktemp("rdma"))
    (BUILD / "logs").mkdir(parents=True, exist_ok=True)
    (BUILD / "logs" / "rdma.log").write_text("\n".join(result.log) + "\n", encoding="utf-8")
    return result


@pytest.mark.parametrize("name", NAMES)
def test_program(run: Boot, name: str, record_property: Callable[[str, object], None]) -> None:
    """The program's cases all hold."""
    assert name in run.programs, "never started:\n" + "\n".join(run.log[-30:])
    said = run.programs[name]
    record_property("checks", len(said.results))
    failed = [case for case, good in said.results if not good]
    why = [line for line in run.log if any(line.startswith(f"# {case}: ") for case in failed)]
    assert not failed, "\n".join(failed + why)
    assert not said.problem(), f"{said.problem()}:\n" + "\n".join(run.log[-30:])


def test_round_trips_are_measured(run: Boot, record_property: Callable[[str, object], None]) -> None:
    """Plain SENDs, and messages of the transport, in the same boot: the figures that others are compared with."""
    measured = [line for line in run.log if "round trip, 4 KiB both ways" in line]
    assert len(measured) == 2, measured
    for line in measured:
        record_property("round_trip", line)


def test_kernel_is_content(run: Boot) -> None:
    """All programs were run, and the kernel had nothing to complain about."""
    assert run.done, "the machine did not come to its end:\n" + "\n".join(run.log[-30:])
    assert not run.complaints
