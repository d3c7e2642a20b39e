# SPDX-License-Identifier: GPL-2.0
"""The other host's CPUs lack what the guest is shown: it is refused, with their names; without them its CPU goes there.

What that host's CPUs lack is taken away by its Xen's own `cpuid=`, so what differs is the policy that its guests can have.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import pytest

from lab.command import checked, run_in, write_file
from lab.description import RackDescription
from lab.far_guest import far_guest, left_nothing
from lab.patience import scaled
from lab.span_guest import BOOT, PATIENCE, SlowSite, keep_work_at_home, measured
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
    """A guest that is shown them is refused when it is created, with their names, and nothing of it is left."""
    dom0 = run_in(site.home)
    write_file(dom0, "/tmp/far.cfg", measured(site).xl_cfg(site.other.description.name))
    done = dom0("xl create /tmp/far.cfg", scaled(240))
    print(done.text)
    assert done.status != 0 and "its CPUs lack features that the guest is shown" in done.text, done.text
    assert all(re.search(rf"\b{feature}\b", done.text) for feature in LACKING), done.text
    assert dom0("xl domid far").status != 0
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
