# SPDX-License-Identifier: GPL-2.0
"""After everything else: the search for complaints has looked where there could have been some.

Complaints themselves fail the test during which they are logged (lab/pytest_plugin.py); with `make e2e-debug` a lock taken in
the wrong order is one. What a kernel keeps for itself and does not show on its console would be missed there.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.command import Run, checked
from lab.complaints import complaints, consoles
from lab.rack import Rack
from tests.e2e.conftest import Stable

# Of the lanes that run tests side by side, each has a rack to look at.
pytestmark = pytest.mark.each_rack


def unseen(rack: Rack, said: list[str]) -> list[str]:
    """Which of these lines of kernel logs are on no console."""
    shown = "".join(path.read_text("utf-8", "replace") for path in consoles(rack.logs))
    return [line for line in said if line not in shown]


def test_guests(stable: Stable, rack: Rack) -> None:
    """The kernel logs of all guests, when they were left, had no complaint that is on no console."""
    if not stable.asked:  # this test is run by itself
        stable.get("guest2.cfg")
    stable.leave_all()
    assert stable.asked, "no guest was ever asked"
    assert unseen(rack, stable.complaints) == []


def test_dom0(dom0: Run, rack: Rack) -> None:
    """Nor has dom0's."""
    assert unseen(rack, complaints(checked(dom0, "dmesg"))) == []


def test_consoles(rack: Rack, stable: Stable) -> None:
    """The hypervisor's log is searched, and so are those of guests; warnings get there."""
    guest = stable.get("guest2.cfg")
    logs = consoles(rack.logs)
    assert any("Xen version" in path.read_text("utf-8", "replace") for path in logs)
    assert rack.host().guest_log(guest.name) in logs


def test_a_warning_of_a_guest_is_seen(stable: Stable, expects: Callable[[str], None]) -> None:
    """The whole way of a warning, from a guest's kernel to this test."""
    guest = stable.get("guest2.cfg")
    expects("WARNING: said by the test")
    guest.run("echo '<4>WARNING: said by the test' >/dev/kmsg", check=True)


def test_a_warning_of_dom0_is_seen(dom0: Run, expects: Callable[[str], None]) -> None:
    """And from dom0's."""
    expects("WARNING: said by the test")
    checked(dom0, "echo '<4>WARNING: said by the test' >/dev/kmsg")
