# SPDX-License-Identifier: GPL-2.0
"""Swap by nbd on memory elsewhere, what DSM is compared with, in a booted kernel without Xen: no byte is lost on the way.

The kernel is the pipeline's, or the one that XENUMA_KERNEL names.
"""

from __future__ import annotations

import re

import pytest

from benchmarks import membench
from lab.artifacts import path_of
from tests.guest import run_swap as guest
from tests.guest.run_numa_reset import Boot

pytestmark = pytest.mark.fresh


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Boot:
    kernel = path_of("kernel")
    assert kernel.is_file(), f"no kernel: {kernel} is not there; run 'make build', or set XENUMA_KERNEL"
    return guest.run(kernel, tmp_path_factory.mktemp("swap"))


def test_all_of_it_works(run: Boot) -> None:
    said = run.programs["swap"]
    assert not said.problem(), "\n".join(run.log[-40:])
    assert [case for case, good in said.results if not good] == [], "\n".join(run.log[-40:])
    assert len(said.results) == 8
    assert run.done and not run.complaints, run.complaints


@pytest.mark.parametrize("cluster", [0, 3])
def test_cold_pages_are_read_and_warm_ones_are_not(run: Boot, cluster: int) -> None:
    """Of the figures: what is called cold has a major fault for its page, or for the read that brought it in with others."""
    prefix = f"# cluster {cluster}: "
    printed = "\n".join(line.partition(prefix)[2] for line in run.log if prefix in line)
    output = membench.parse("\n".join(re.findall(r"^\{.*\}$", printed, re.M)))
    for each in membench.chosen(output.passes, state="cold", order="random"):
        assert each.major >= each.pages * (0.9 if cluster == 0 else 1 / 16), each
    for each in membench.chosen(output.passes, state="warm"):
        assert each.major <= each.pages // 8, each
