# SPDX-License-Identifier: GPL-2.0
"""What each tick writes is on one page of the guest's kernel, and nothing else is (include/linux/tick_page.h).

Hooks 0308 and 0313. What ticks only read is not beside what programs that start and end write (hook 0312).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.pipeline.paths import ARTIFACTS

PAGE = 4096

# jiffies is another name of jiffies_64.
ON_IT = {
    "jiffies",
    "jiffies_64",
    "jiffies_lock",
    "jiffies_seq",
    "last_jiffies_update",
    "ntp_next_leap_sec",
    "shadow_timekeeper",
    "tick_length",
    "tick_length_base",
    "tick_next_period",
    "time_adjust",
    "time_maxerror",
    "time_offset",
    "time_state",
    "time_status",
    "timekeeper_lock",
    "tk_core",
    "tk_fast_mono",
    "tk_fast_raw",
}


def beside(system_map: str, name: str) -> set[str]:
    """The variables that begin on the page of `name`, by System.map: lines of address, type, name."""
    symbols = [(int(address, 16), symbol) for address, _, symbol in map(str.split, system_map.splitlines())]
    page = next(address for address, symbol in symbols if symbol == name) // PAGE
    return {symbol for address, symbol in symbols if address // PAGE == page}


# Beside the usual one, which make build makes: X86_VSMP aligns other things to pages.
OTHERS = ("linux-vsmp", "linux-nohz", "linux-lockdep", "linux-torture", "linux-watched")


EACH = pytest.mark.parametrize("kernel", ["linux", *(pytest.param(other, marks=pytest.mark.soak) for other in OTHERS)])


def symbols_of(kernel: str) -> str:
    """Its System.map."""
    system_map: Path = ARTIFACTS / kernel / "System.map"
    build = f"make build STEPS={kernel}"
    if not system_map.is_file() and kernel in OTHERS:
        pytest.skip(f"not built: {build}")
    if not system_map.is_file():
        pytest.fail(f"no {system_map}: {build}")
    return system_map.read_text(encoding="ascii")


@EACH
def test_what_ticks_write_is_on_one_page(kernel: str) -> None:
    text = symbols_of(kernel)
    assert beside(text, "jiffies_64") == ON_IT, f"if it was built before its sources changed: make build STEPS={kernel}"
    first = next(line for line in text.splitlines() if line.endswith(" jiffies_64"))
    assert int(first.split()[0], 16) % PAGE == 0


# Each fork and exit writes these: counts of references, locks.
FORKS = {"init_groups", "init_nsproxy", "init_ucounts", "pidmap_lock", "tasklist_lock"}


@EACH
@pytest.mark.parametrize("name", ["softirq_vec", "sysctl_sched_base_slice"])
def test_what_ticks_read_is_not_beside_what_forks_write(kernel: str, name: str) -> None:
    text = symbols_of(kernel)
    names = {line.split()[2] for line in text.splitlines()}
    assert not FORKS - names
    assert not beside(text, name) & FORKS, f"if it was built before its sources changed: make build STEPS={kernel}"
