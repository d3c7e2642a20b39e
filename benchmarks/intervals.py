# SPDX-License-Identifier: GPL-2.0
"""How far a figure may be off by chance: 95 % intervals of a mean of few values, and of a share of many."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

NORMAL = statistics.NormalDist().inv_cdf(0.975)
# Student's t, 97.5 %, by degrees of freedom from 1 on; NORMAL is within 4 % of what comes after.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def standard_error(values: Sequence[float]) -> float:
    """Of the mean of at least two."""
    return statistics.stdev(values) / math.sqrt(len(values))


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Of the mean of at least two, as if they were of a normal distribution (Student)."""
    t = STUDENT[len(values) - 2] if len(values) - 2 < len(STUDENT) else NORMAL
    mean, off = statistics.fmean(values), t * standard_error(values)
    return mean - off, mean + off


def share_interval(share: float, count: int) -> tuple[float, float]:
    """Of a share, 0 to 1, of `count` cases of which one says nothing of the next (Wilson)."""
    z2 = NORMAL**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    off = NORMAL / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return middle - off, middle + off
