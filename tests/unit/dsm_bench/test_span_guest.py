# SPDX-License-Identifier: GPL-2.0
"""Guests with CPUs on other hosts: how slow their clock has to be, and the configuration that tests give them."""

from __future__ import annotations

import pytest

from benchmarks.span_guest import SpanShape, slow_for
from lab.errors import Malformed

PING = """20 packets transmitted, 20 received, 0% packet loss, time 4414ms
rtt min/avg/max/mdev = 0.376/{}/118.787/26.053 ms
"""


@pytest.mark.parametrize(
    ("ms", "slow"), [("0.500", 10), ("3.000", 11), ("14.392", 52), ("27.113", 98), ("500.000", 100)]
)
def test_slow(ms: str, slow: int) -> None:
    """Of a quiet machine as before; never more than Xen allows."""
    assert slow_for(PING.format(ms)) == slow


def test_no_answer() -> None:
    with pytest.raises(Malformed, match="100% packet loss"):
        slow_for("20 packets transmitted, 0 received, 100% packet loss, time 4414ms\n")


def test_configuration() -> None:
    """CPUs by node; those of a host that lends memory are at home, and not isolated."""
    two = SpanShape(lpj=7).xl_cfg("beta")
    assert '"host=beta", "size=128", "vcpus=1", "vdistances=21,10", "elastic=1", "remote_vcpus=1" ]' in two
    assert "isolcpus=domain,managed_irq,1 " in two and "maxvcpus = 2\n" in two and "lpj=7 " in two
    three = SpanShape(also=("gamma",), lenders=(2,)).xl_cfg("beta")
    assert '"host=gamma", "size=128", "vcpus=2", "vdistances=21,21,10", "elastic=1" ]' in three
    assert "isolcpus=domain,managed_irq,1 " in three and "maxvcpus = 3\n" in three
    four = SpanShape(cpus=2, kernel="/root/k", arguments="nohz_full=2-3").xl_cfg("beta")
    assert '"vcpus=0-1"' in four and '"vcpus=2-3"' in four and "isolcpus=domain,managed_irq,2-3 " in four
    assert 'kernel = "/root/k"' in four and 'nohz_full=2-3"' in four
