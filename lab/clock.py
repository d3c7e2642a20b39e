# SPDX-License-Identifier: GPL-2.0
"""One clock for this machine and a guest, so that what happens on either side can be put in order."""

from __future__ import annotations

import dataclasses
import time

from lab.command import Run, checked


@dataclasses.dataclass(frozen=True)
class Clock:
    """This machine's clock against a guest's: `offset` seconds are added to time.time() to get the guest's time.

    `error` is how wrong that can be: half of the time that the question took.
    """

    offset: float
    error: float

    @staticmethod
    def compare(guest: Run, tries: int = 3) -> Clock:
        """Ask the guest for its time; of some tries the quickest answer counts."""
        best: Clock | None = None
        for _ in range(tries):
            asked = time.time()
            theirs = float(checked(guest, "date +%s.%N"))
            answered = time.time()
            clock = Clock(theirs - (asked + answered) / 2, (answered - asked) / 2)
            if best is None or clock.error < best.error:
                best = clock
        assert best is not None
        return best

    def now(self) -> float:
        """The guest's time now."""
        return time.time() + self.offset
