# SPDX-License-Identifier: GPL-2.0
"""Cases that `make test` leaves to `make soak`: what they show, another case shows there, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_in_soak(cases: Iterable[str], *shown: str) -> list[Any]:
    """The cases of a parametrised test, of which `make test` runs those that are `shown`. The Makefile looks for its import."""
    cases = list(cases)
    assert set(shown) < set(cases), (shown, cases)
    return [case if case in shown else pytest.param(case, marks=pytest.mark.soak) for case in cases]
