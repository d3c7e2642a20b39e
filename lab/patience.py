# SPDX-License-Identifier: GPL-2.0
"""How long the lab waits before it gives up, on a machine that has more to do than one rack.

Limits in the lab are for one rack on an otherwise idle host. XENUMA_TIME_SCALE, a number of at least 1, multiplies them: who
runs racks side by side sets it to their number (lab/pipeline/lanes.py). It changes when a wait is called a failure, never how
long something is measured, and not what is asked of the product itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

VARIABLE = "XENUMA_TIME_SCALE"


def scaled(seconds: float) -> float:
    """A limit, in seconds, for this host as it is loaded. Raises ValueError when the variable is no number of at least 1."""
    text = os.environ.get(VARIABLE) or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1 <= factor < float("inf"):
        raise ValueError(f"{VARIABLE}={text}: want a number of at least 1")
    return seconds * factor


def wait_for(what: str, seconds: float, probe: Callable[[], bool], interval: float = 0.25) -> float:
    """Ask `probe` until it says yes; returns how long that took. Raises TimeoutError, with `what`, after `seconds`."""
    seconds = scaled(seconds)
    began = time.monotonic()
    while not probe():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"{what}: not so after {seconds:.0f} s")
        time.sleep(interval)
    return time.monotonic() - began
