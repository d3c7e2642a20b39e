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

from lab.command import checked, run_in, write_file
from lab.complaints import complaints
from lab.far_guest import far_guest, left_nothing
from lab.guest import Guest
from lab.patience import scaled, wait_for
from lab.span_guest import BOOT, PATIENCE, SlowSite, SpanShape, keep_work_at_home, measured
from tests.e2e.span_guest import attach, slow_site
from tests.e2e.span_openmp import openmp_there_and_back

FAR_CPU = 1
SUM = "md5sum </usr/bin/bash"

# What is packed in the guest's kernel, which begins where its header says (Linux' Documentation/arch/x86/boot.rst:
# setup_sects, payload_offset and payload_length), with another note than its own. %s: for sed;
# %d: how many lines have its name then.
OTHER_NOTE = r"""
at() { od -An -t "u$2" -j "$1" -N "$2" /boot/vmlinuz | tr -d ' '; }
from=$((($(at 497 1) + 1) * 512 + $(at 584 4)))
tail -c "+$((from + 1))" /boot/vmlinuz | head -c "$(at 588 4)" | gunzip | LC_ALL=C sed '%s' >/tmp/kernel
head -c 4 /tmp/kernel | grep -q ELF && test "$(grep -c -a -F Xenuma /tmp/kernel)" = %d
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("dsm")) as made:
        yield made


def ticks(guest: Guest) -> int:
    """Of the far CPU's timer."""
    line = checked(run_in(guest), "grep timer1 /proc/interrupts", 300)
    return int(line.split()[1 + FAR_CPU])


def used(site: SlowSite) -> list[tuple[str, float]]:
    """By Xen of both hosts: the state of the domain and of the slice, and the time that their CPUs have used."""
    found = []
    for host, name in ((site.home, "far"), (site.other, f"far-slice-{site.home.description.name}")):
        words = checked(run_in(host), f"xl list {name}").splitlines()[-1].split()
        found.append((words[-2], float(words[-1])))
    return found


def both_run(site: SlowSite) -> None:
    """Both use time from now on, and neither is paused."""
    before = used(site)
    wait_for(
        "both CPUs run",
        scaled(120),
        lambda: all("p" not in now[0] and now[1] > was[1] for now, was in zip(used(site), before, strict=True)),
    )


def both_stand_still(site: SlowSite) -> None:
    """Both are paused, and use no time."""
    before = used(site)
    checked(run_in(site.home), "sleep 5")
    after = used(site)
    assert all("p" in state for state, _ in before + after), (before, after)
    # Whether a CPU is blocked may change: an event comes to it all the same.
    assert [time for _, time in before] == [time for _, time in after], (before, after)


def pause_and_unpause(site: SlowSite) -> None:
    """`xl pause` while a program runs on each CPU: neither does until `xl unpause`, and then both go on."""
    dom0 = run_in(site.home)
    both_run(site)
    checked(dom0, "xl pause far", PATIENCE)
    both_stand_still(site)
    assert "paused there" in checked(dom0, "xl vnode-list far", PATIENCE)
    refused = dom0("xl vnode-detach far 1", PATIENCE)
    assert refused.status != 0 and "is paused" in refused.text, refused.text
    # Twice, and once back: Xen counts.
    checked(dom0, "xl pause far && xl unpause far", PATIENCE)
    both_stand_still(site)
    checked(dom0, "xl unpause far", PATIENCE)
    both_run(site)
    assert "paused there" not in checked(dom0, "xl vnode-list far", PATIENCE)


def refused_while_it_is_there(site: SlowSite, guest: Guest) -> None:
    """What is for a guest that runs at home only, with a reason; it runs on."""
    for command in ("mem-set far 64m", "suspend far"):
        done = run_in(site.home)(f"xl {command}", PATIENCE)
        assert done.status != 0 and "vCPUs of this domain run on another host" in done.text, (command, done.text)
    both_run_on = f"taskset -c {FAR_CPU} true && taskset -c 0 true"
    checked(run_in(guest), both_run_on, PATIENCE)


def test_memory_and_cpu_of_another_host(site: SlowSite) -> None:
    """Attached, paused, unpaused and detached under an OpenMP program. Attached again, a program's checksum there is the one
    of home, and `numactl -H` shows the node with its CPU; destroyed while it is there."""
    shape = measured(site)
    with far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        inside = run_in(guest)
        keep_work_at_home(guest)
        at_home = checked(inside, f"taskset -c 0 sh -c {shlex.quote(SUM)}", 300)
        assert re.match(r"[0-9a-f]{32} ", at_home)
        assert guest.online_cpus() == (0,)
        openmp_there_and_back(site, guest, shape, lambda: pause_and_unpause(site))
        assert guest.online_cpus() == (0,)
        checked(run_in(site.home), "xl pause far && xl unpause far")
        attach(site, guest, shape)
        assert guest.online_cpus() == (0, FAR_CPU)
        node = guest.nodes()[1]
        print(node)
        assert node.cpus == (FAR_CPU,) and node.size_mib > SpanShape.node_mib // 2, node
        before = ticks(guest)
        assert checked(inside, f"taskset -c {FAR_CPU} sh -c {shlex.quote(SUM)}", PATIENCE) == at_home
        # And with the memory that came. numactl(8) itself binds to no CPU that is isolated.
        bound = f"taskset -c {FAR_CPU} numactl --membind=1 sh -c {shlex.quote(SUM)}"
        assert checked(inside, bound, PATIENCE) == at_home
        assert ticks(guest) > before
        refused_while_it_is_there(site, guest)
        assert complaints(checked(inside, "dmesg", 300)) == []
        checked(run_in(site.home), "xl pause far", PATIENCE)
        both_stand_still(site)
    # Destroyed, with its CPU there, while it is paused.
    left_nothing(site.both)


def refused_at_create(site: SlowSite, shape: SpanShape, why: str) -> None:
    """With a reason, and nothing of the guest is left."""
    dom0 = run_in(site.home)
    write_file(dom0, "/tmp/far.cfg", shape.xl_cfg(site.other.description.name))
    done = dom0("xl create /tmp/far.cfg", scaled(240))
    assert done.status != 0 and why in done.text, done.text
    assert dom0("xl domid far").status != 0
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
    """What can not be with vCPUs of two hosts."""
    refused_at_create(site, dataclasses.replace(measured(site), more=more), why)


@pytest.mark.parametrize(
    ("note", "named", "why"),
    [
        (r"s/Xenuma/Anuxem/", 0, "no ELF note Xenuma"),
        (r"s/Xenuma\x00\x00\x07/Xenuma\x00\x00\x05/", 1, "bit 1 of its ELF note Xenuma"),
        (r"s/Xenuma\x00\x00\x07/Xenuma\x00\x00\x03/", 1, "bit 2 of its ELF note Xenuma"),
    ],
)
def test_a_kernel_that_can_not(site: SlowSite, note: str, named: int, why: str) -> None:
    """One that does not say that it has a page for each vcpu_info, that its tables of grants are in memory, that it stays."""
    dom0 = run_in(site.home)
    try:
        checked(dom0, OTHER_NOTE % (note, named))
        refused_at_create(site, dataclasses.replace(measured(site), kernel="/tmp/kernel"), why)
    finally:
        dom0("rm -f /tmp/kernel")
