# SPDX-License-Identifier: GPL-2.0
"""What the netback of a control domain has counted: batches of packets that waited for a page (decision 0130)."""

from __future__ import annotations

import re

from lab.command import checked, run_in
from lab.host import Host

RINGS = "/sys/kernel/debug/xen-netback"


def page_waits(host: Host, domid: int, card: int = 0) -> tuple[int, int]:
    """Of all queues of a card of a guest: how many batches have waited, and how many in vain."""
    text = checked(run_in(host), f"cat {RINGS}/vif{domid}.{card}/io_ring_q*")
    found = re.findall(r"^page waits (\d+) in vain (\d+) ", text, re.M)
    assert found, text
    return sum(int(waits) for waits, _ in found), sum(int(in_vain) for _, in_vain in found)
