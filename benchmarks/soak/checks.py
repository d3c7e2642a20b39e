# SPDX-License-Identifier: GPL-2.0
"""Whether hypervisor and kernels check what they do: a soak with checks (`make soak-debug`) has to be one.

Linux turns lockdep off with its first report of any kind (debug_locks_off()), and what it would have said from then on is
missing without a word. So it is asked of each life, and at the end. dom0's is off after a report of upstream's gntdev that
comes with the first guest (lab.complaints.KNOWN): that is written down, and no violation.
"""

from __future__ import annotations

import re
from pathlib import Path

from lab.command import Run, checked
from lab.complaints import consoles
from lab.errors import Malformed

XEN, KASAN, LOCKDEP = "xen_assertions", "kasan", "lockdep"
# What make soak-debug says that it has.
WANTED = (XEN, f"guest_{KASAN}", f"guest_{LOCKDEP}")

_ASK = (
    f"""echo {LOCKDEP} $(awk '$1 == "debug_locks:" {{ print $2 }}' /proc/lockdep_stats 2>/dev/null); """
    f"echo {KASAN} $(grep -c ' kasan_report$' /proc/kallsyms)"
)
_SAID = re.compile(rf"{LOCKDEP} ?([01]?)\n{KASAN} (\d+)\n")
_BANNER = re.compile(r"Xen version .* debug=([yn]) ")


def of_kernel(run: Run, whose: str) -> dict[str, bool]:
    """Which a kernel has that are on now. Raises CommandFailedError, Malformed."""
    said = checked(run, _ASK, 30.0)
    match = _SAID.fullmatch(said)
    if not match:
        raise Malformed(f"what {whose} checks: {said[:200]!r}")
    return {f"{whose}_{LOCKDEP}": match[1] == "1", f"{whose}_{KASAN}": match[2] != "0"}


def of_xen(directory: Path) -> bool:
    """Whether the hypervisor was built with assertions, by its first line on a console below this directory."""
    texts = (log.read_text(encoding="utf-8", errors="replace") for log in consoles(directory))
    found = [match[1] for text in texts if (match := _BANNER.search(text))]
    return bool(found) and set(found) == {"y"}
