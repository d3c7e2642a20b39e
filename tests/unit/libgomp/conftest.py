# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""What all these tests need: our libgomp, and two CPUs."""

from __future__ import annotations

import pytest

from tests.unit.libgomp import gomp_player


@pytest.fixture(autouse=True)
def _needs() -> None:
    if gomp_player.ELASTIC is None:
        pytest.fail("no libgomp.so.1: build it (make build STEPS=libgomp), or name its folder in XENUMA_LIBGOMP")
    if len(gomp_player.CPUS) < 2:
        pytest.skip("one CPU only: a team cannot grow")
