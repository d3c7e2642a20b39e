# SPDX-License-Identifier: GPL-2.0
"""Intervals, against values from tables."""

from __future__ import annotations

import pytest

from benchmarks.intervals import NORMAL, STUDENT, mean_interval, share_interval, standard_error


def test_of_a_mean() -> None:
    """Five values with a standard deviation of 1.5811: t is 2.776 for 4 degrees of freedom."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert standard_error(values) == pytest.approx(0.7071, abs=1e-4)
    assert mean_interval(values) == pytest.approx((3 - 2.776 * 0.70711, 3 + 2.776 * 0.70711), abs=1e-4)
    assert mean_interval([1.0, 3.0]) == pytest.approx((2 - 12.706, 2 + 12.706))
    assert mean_interval([7.0] * 40) == (7.0, 7.0)
    for count, t in ((31, 2.042), (32, NORMAL)):
        values = [float(number) for number in range(count)]
        assert mean_interval(values)[1] == pytest.approx((count - 1) / 2 + t * standard_error(values))
    assert list(STUDENT) == sorted(STUDENT, reverse=True) and len(STUDENT) == 30


@pytest.mark.parametrize(
    ("share", "count", "interval"),
    [(0.1, 100, (0.0552, 0.1744)), (0.0, 10, (0.0, 0.2775)), (1.0, 1, (0.2065, 1.0)), (0.9, 1000, (0.8799, 0.9171))],
)
def test_of_a_share(share: float, count: int, interval: tuple[float, float]) -> None:
    """Wilson's, as they are in tables: one case of one says that it is one in five, or more."""
    assert share_interval(share, count) == pytest.approx(interval, abs=1e-4)
