# SPDX-License-Identifier: GPL-2.0
"""One Linux on two hosts by xl alone: `vnode-attach` brings memory and a CPU of the other host, `vnode-detach` sends both home.

Step 10 of docs/plan/8.md.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator

import pytest

from benchmarks.far_guest import far_guest, left_nothing
from benchmarks.span_guest import BOOT, PATIENCE, SlowSite, SpanShape, keep_work_at_home, measured
from lab.command import checked, run_in, write_file
from lab.complaints import complaints
from lab.guest import Guest
from lab.patience import scaled
from tests.e2e.span_guest import attach, detach, slow_site

pytestmark = pytest.mark.fresh

FAR_CPU = 1
SUM = "md5sum </usr/bin/bash"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("dsm")) as made:
        yield made


def ticks(guest: Guest) -> int:
    """Of the far CPU's timer."""
    line = checked(run_in(guest), "grep timer1 /proc/interrupts", 300)
    return int(line.split()[1 + FAR_CPU])


def test_memory_and_cpu_of_another_host(site: SlowSite) -> None:
    """Twice: attached, a program's checksum there is the one of home, `numactl -H` shows the node with its CPU, detached."""
    shape = measured(site)
    with far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        inside = run_in(guest)
        keep_work_at_home(guest)
        at_home = checked(inside, f"taskset -c 0 sh -c {shlex.quote(SUM)}", 300)
        assert re.match(r"[0-9a-f]{32} ", at_home)
        assert guest.online_cpus() == (0,)
        for turn in range(2):
            attach(site, guest, shape)
            assert guest.online_cpus() == (0, FAR_CPU)
            node = guest.nodes()[1]
            print(turn, node)
            assert node.cpus == (FAR_CPU,) and node.size_mib > SpanShape.node_mib // 2, node
            before = ticks(guest)
            assert checked(inside, f"taskset -c {FAR_CPU} sh -c {shlex.quote(SUM)}", PATIENCE) == at_home
            # And with the memory that came. numactl(8) itself binds to no CPU that is isolated.
            bound = f"taskset -c {FAR_CPU} numactl --membind=1 sh -c {shlex.quote(SUM)}"
            assert checked(inside, bound, PATIENCE) == at_home
            assert ticks(guest) > before
            refused = run_in(site.home)("xl pause far")
            assert refused.status != 0 and "run on host" in refused.text, refused.text
            detach(site, guest, shape)
            assert guest.online_cpus() == (0,)
        checked(run_in(site.home), "xl pause far && xl unpause far")
        attach(site, guest, shape)
        assert complaints(checked(inside, "dmesg", 300)) == []
    # Destroyed, with its CPU there.
    left_nothing(site.both)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('tsc_mode = "always_emulate"', "tsc_mode=always_emulate"),
        ("max_event_channels = 8192", "8192 event channels"),
        ("nestedhvm = 1", "nested"),
    ],
)
def test_what_is_refused_at_create(site: SlowSite, more: str, why: str) -> None:
    """With a reason, and nothing of the guest is left."""
    dom0 = run_in(site.home)
    shape = dataclasses.replace(measured(site), more=more)
    write_file(dom0, "/tmp/far.cfg", shape.xl_cfg(site.other.description.name))
    done = dom0("xl create /tmp/far.cfg", scaled(240))
    assert done.status != 0 and why in done.text, done.text
    assert dom0("xl domid far").status != 0
    left_nothing(site.both)
