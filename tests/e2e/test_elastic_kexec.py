# SPDX-License-Identifier: GPL-2.0
"""A guest leaves its kernel by kexec: under xl that is a PVH domain's end (docs/decisions/0036), and nothing may remain."""

from __future__ import annotations

import re

import pytest

from lab.command import Run, checked
from lab.elastic_guest import PROGRAMS
from lab.hypervisor import pages_off, settled_free_pages
from lab.patience import wait_for
from tests.e2e.conftest import Stable
from tests.e2e.test_elastic_faults import when_written

pytestmark = pytest.mark.fresh

CONFIG = "guest2.cfg"
XL_LOG = "/var/log/xen/xl-guest2.log"  # of the xl that waits for the domain's end
SOFT_RESET = "shutdown reason code 5 is soft-reset"


@pytest.mark.parametrize("attached", [False, True], ids=["without a node", "with a node"])
def test_kexec_ends_the_domain(stable: Stable, dom0: Run, attached: bool) -> None:
    """libxl has no soft reset for PVH, so xl destroys the domain: all its memory comes back, the node's too."""
    stable.leave("guest4.cfg")
    stable.get(CONFIG)  # the first guest of a host costs Xen a page for good
    stable.leave(CONFIG)
    before = settled_free_pages(dom0)
    guest = stable.get(CONFIG)
    domid = guest.domid()
    if attached:
        assert guest.attach(1).status == 0
    written = int(checked(dom0, f"wc -c <{XL_LOG}"))
    go = f"/local/domain/{domid}/data/kexec"  # written by dom0: nobody waits for an answer of the guest then
    when_written(guest.guest, go, f"{PROGRAMS}/kexec_away >/dev/hvc0 2>&1")
    checked(dom0, f"xenstore-write {go} 1")
    wait_for("the domain is gone", 90, lambda: dom0(f"xl domid {guest.name}").status != 0)
    stable.leave(CONFIG, ask=False)
    log = checked(dom0, f"tail -c +{written + 1} {XL_LOG}")
    assert re.search(SOFT_RESET, log), log
    assert pages_off(dom0, before) == {}
    assert dom0(f"xenstore-exists /libxl/{domid}/vnuma").status != 0
    assert dom0(f"ls /var/lib/xen/*.{domid}.*").out == ""

    again = stable.get(CONFIG)
    for operation in (again.attach, again.detach):
        done = operation(1)
        assert done.status == 0, done.text
    assert again.listed()[1]["state"] == "offline"
