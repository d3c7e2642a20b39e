# SPDX-License-Identifier: GPL-2.0
"""A guest leaves its kernel by kexec, which is a soft reset, while another host has its CPU and memory.

As test_elastic_kexec.py for a guest of one host, and a case of test_dsm_faults.py for one with memory of another host only:
under xl it is a PVH domain's end (decision 0036). If Xen refused it Linux would stop in a BUG(), and the guest would end all
the same, with a worse reason. So it ends on both hosts, nothing of it remains on either, and the next one gets the same node.

It takes some seven minutes on two quiet processors: two for the hosts, and two and a half for each of two guests.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.far_guest import LOG, far_guest, left_nothing, said
from lab.patience import wait_for
from lab.span_guest import BOOT, PATIENCE, SlowSite, keep_work_at_home, measured
from tests.e2e.dsm_hosts import free_pages
from tests.e2e.far_guest import XL_LOG, leave_by_kexec
from tests.e2e.span_guest import attach, slow_site
from tests.e2e.test_elastic_kexec import SOFT_RESET

pytestmark = pytest.mark.fresh

HOME_CPU, FAR_CPU = 0, 1
TOLD = "the guest has shut down, with code 5"
LATER_S = 2.0  # of the guest's clock, which is slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("dsm")) as made:
        yield made


@pytest.fixture(scope="module")
def baseline() -> dict[str, list[int]]:
    """Free frames of each host after the first guest: what Xen allocates once does not count."""
    return {}


@pytest.mark.parametrize("cpu", [HOME_CPU, FAR_CPU], ids=["from home", "from the other host"])
def test_kexec_ends_the_guest_on_both_hosts(site: SlowSite, baseline: dict[str, list[int]], cpu: int) -> None:
    """The other host hears why, xl destroys the domain, and neither host has anything of it."""
    shape = measured(site)
    home, other = map(run_in, site.both)
    with far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        inside = run_in(guest)
        keep_work_at_home(guest)
        attach(site, guest, shape)
        domid = guest.domid()
        written = [int(checked(run, f"touch {log}; wc -c <{log}")) for run, log in ((home, XL_LOG), (other, LOG))]
        # Both CPUs have to be stopped, and not only woken.
        for busy in (HOME_CPU, FAR_CPU):
            checked(inside, f"setsid taskset -c {busy} sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &", PATIENCE)
        leave_by_kexec(guest, cpu, LATER_S)
        try:
            took = wait_for("the domain is gone", PATIENCE, lambda: home("xl domid far").status != 0, interval=2)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{said(site.both)}\n{guest.console_tail()}") from None
        print(f"{took:.0f} s")
    left_nothing(site.both)
    log, told = (
        checked(run, f"tail -c +{begin + 1} {file}")
        for run, begin, file in zip((home, other), written, (XL_LOG, LOG), strict=True)
    )
    print(log, told)
    assert SOFT_RESET in log, log
    assert TOLD in told, told
    assert home(f"xenstore-exists /libxl/{domid}/vnuma").status != 0
    free = free_pages(site.both)
    print("free:", free, baseline)
    assert free == baseline.setdefault("free", free), (free, baseline)
