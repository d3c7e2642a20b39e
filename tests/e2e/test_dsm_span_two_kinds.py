# SPDX-License-Identifier: GPL-2.0
"""The other host's CPUs lack what the guest's have: its CPUs don't go there, with a reason; without those features they do.

What that host's CPUs lack is taken away by its Xen's own `cpuid=`, so what differs is the policy that its guests can have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.description import RackDescription
from lab.far_guest import LOG, far_guest, left_nothing, said, slices
from lab.span_guest import BOOT, PATIENCE, WAIT, SlowSite, keep_work_at_home, measured
from tests.e2e.span_guest import attach, detach, slow_site

pytestmark = pytest.mark.fresh

LACKING = ("bmi1", "adx")  # by the names that xl.cfg(5) and Xen's `cpuid=` have for them


def two_kinds() -> RackDescription:
    """The first host as it is; the second one's CPUs lack these."""
    rack = RackDescription.load("two-hosts")
    home, other = rack.hosts
    without = "cpuid=" + ",".join(f"no-{feature}" for feature in LACKING)
    return dataclasses.replace(rack, hosts=(home, dataclasses.replace(other, xen_arguments=without)))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("dsm"), two_kinds()) as made:
        yield made


def test_cpus_that_lack_features(site: SlowSite) -> None:
    """The attach fails and says why, that host's log names what is missing, and the guest runs on at home."""
    with far_guest(site.both, site.other.description.name, measured(site), BOOT) as guest:
        keep_work_at_home(guest)
        flags = checked(run_in(guest), "grep -m 1 ^flags /proc/cpuinfo").split()
        assert set(LACKING) <= set(flags), flags
        done = guest.attach(1, WAIT, timeout=PATIENCE)
        print(done.text)
        why = "the guest's CPU policy can't be that of that host"
        assert done.status != 0 and why in done.text, done.text + said(site.both)
        log = checked(run_in(site.other), f"cat {LOG}")
        line = next(line for line in log.splitlines() if "no guest here can have these CPU features" in line)
        print(line)
        assert all(feature in line for feature in LACKING), line
        assert guest.online_cpus() == (0,)
        assert guest.vnode(1).state == "offline", guest.vnode(1).keys
        assert slices(site.other) == []
        checked(run_in(guest), "true", PATIENCE)
    left_nothing(site.both)


def test_a_guest_without_them(site: SlowSite) -> None:
    """Its operator takes them away at home, too: then its CPU goes there and comes back."""
    words = ",".join(f"{feature}=0" for feature in LACKING)
    shape = dataclasses.replace(measured(site), more=f'cpuid = "host,{words}"')
    with far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        keep_work_at_home(guest)
        attach(site, guest, shape)
        flags = checked(run_in(guest), "taskset -c 1 grep ^flags /proc/cpuinfo", PATIENCE).splitlines()
        assert len(flags) == 2 and not any(set(LACKING) & set(each.split()) for each in flags), flags
        detach(site, guest, shape)
    left_nothing(site.both)
