# SPDX-License-Identifier: GPL-2.0
"""Class U (decision 0126): a CPU of another host reads and writes a PV disk of its guest's home.

A request that a program waits for is put into the disk's ring by the CPU that it runs on, also by an isolated one: the ring and
the table of grants stay at home, and are used there, one access after the other. Without persistent grants: with them the
frontend copies all data to pages that its backend has mapped for ever, eight bytes a trip.

The disk is memory of the home's control domain, by nbd, as dom0 of the lab has no loop devices.

It takes some six minutes on two quiet processors: three for the hosts, the guest and the attach, and one to two for half a
MiB in each direction, since a request of four pages is some forty trips.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from benchmarks import host_programs
from benchmarks.remote_swap import DEVICE, IN_GUEST, PORT
from lab.command import Run, checked, run_in
from lab.complaints import complaints
from lab.far_guest import far_guest, left_nothing, said
from lab.guest import Guest
from lab.host import Host
from lab.patience import wait_for
from lab.span_guest import BOOT, PATIENCE, SlowSite, SpanShape, keep_work_at_home, measured
from tests.e2e.span_guest import attach, detach, slow_site
from tests.e2e.test_dsm_span_uncached import counted

pytestmark = pytest.mark.fresh

HOME_CPU, FAR_CPU = 0, 1
MIB = 4
BLOCK_KIB, BLOCKS = 16, 16  # a request has room for 44 KiB; of each of the two parts that are written
ARGUMENTS = "xen_blkfront.feature_persistent=0"
WITHOUT = "persistent grants: disabled"
DISK = f"/dev/{IN_GUEST}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("dsm"), class_u=True) as made:
        folder = tmp_path_factory.mktemp("programs")
        host_programs.build(folder)
        host_programs.install([made.home], folder)
        yield made


@contextlib.contextmanager
def disk(host: Host) -> Iterator[None]:
    """DEVICE, in the memory of this control domain."""
    with host_programs.running(host, f"nbd_ram serve 127.0.0.1 {PORT} {MIB}") as server:
        server.await_word("listening")
        with host_programs.running(host, f"nbd_ram attach 127.0.0.1 {PORT} {MIB} {DEVICE}") as client:
            client.await_word("attached")
            yield


@contextlib.contextmanager
def its_disk(guest: Guest) -> Iterator[None]:
    """The guest has it."""
    checked(guest.dom0, f"xl block-attach {guest.name} phy:{DEVICE} {IN_GUEST} w", 120)
    wait_for(DISK, 120, lambda: guest.guest(f"test -b {DISK}").status == 0)
    log = checked(guest.guest, "dmesg", 300)
    assert WITHOUT in log, log[-3000:]
    yield
    checked(guest.dom0, f"xl block-detach {guest.name} {IN_GUEST}", 300)


def wrote(inside: Run, cpu: int, part: int, file: str) -> None:
    """A CPU puts a file into a part of the disk, past all caches."""
    words = f"of={DISK} bs={BLOCK_KIB}k count={BLOCKS} seek={part * BLOCKS} oflag=direct conv=notrunc"
    print(checked(inside, f"taskset -c {cpu} dd if={file} {words} 2>&1", PATIENCE))


def read(inside: Run, cpu: int, part: int, parts: int = 1, flags: str = "iflag=direct") -> str:
    """The checksum of what a CPU reads of some parts."""
    words = f"if={DISK} bs={BLOCK_KIB}k count={BLOCKS * parts} skip={part * BLOCKS} {flags}"
    return checked(inside, f"taskset -c {cpu} dd {words} 2>/tmp/dd.err | taskset -c {HOME_CPU} sha256sum", PATIENCE)


def test_a_disk_from_another_host(site: SlowSite) -> None:
    """What its CPU writes is what home reads, and what home writes is what it reads, with and without the page cache."""
    shape = measured(site, SpanShape(arguments=ARGUMENTS))
    size = BLOCK_KIB * BLOCKS * 1024
    with disk(site.home), far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        inside = run_in(guest)
        keep_work_at_home(guest)
        with its_disk(guest):
            checked(inside, f"head -c {size} /usr/bin/bash >/tmp/part0; tail -c {size} /usr/bin/bash >/tmp/part1", 300)
            sums = [checked(inside, f"cat {files} | sha256sum", 300) for files in ("/tmp/part0", "/tmp/part1", "/tmp/part[01]")]
            assert len(set(sums)) == 3, sums
            attach(site, guest, shape)
            before = [counted(host) for host in site.both]
            try:
                wrote(inside, FAR_CPU, 0, "/tmp/part0")
                assert read(inside, HOME_CPU, 0) == sums[0]
                wrote(inside, HOME_CPU, 1, "/tmp/part1")
                assert read(inside, FAR_CPU, 1) == sums[1]
                checked(inside, "echo 3 >/proc/sys/vm/drop_caches", PATIENCE)
                assert read(inside, FAR_CPU, 0, parts=2, flags="") == sums[2]
            finally:
                after = [counted(host) for host in site.both]
                print(before, after, said(site.both), *(run_in(host)("xl dmesg | tail -20").text for host in site.both))
            # Else home has made the requests, and nothing was shown.
            assert after[1]["accesses"] > before[1]["accesses"] and after[0]["accesses_done"] > before[0]["accesses_done"]
            detach(site, guest, shape)
            assert read(inside, HOME_CPU, 0, parts=2) == sums[2]
            assert complaints(checked(inside, "dmesg", 300)) == []
    left_nothing(site.both)
