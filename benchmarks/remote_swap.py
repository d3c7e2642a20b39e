# SPDX-License-Identifier: GPL-2.0
"""What a user without DSM does: swap on a disk in the other host's memory, by nbd over TCP.

The guest's dom0 has the disk (Linux's nbd driver) and gives it to the guest, whose kernel swaps on it. The program that is
measured may have as much memory at hand as DSM's pool of frames has: a control group's limit.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator

from benchmarks import membench
from benchmarks.host_programs import Program, running
from lab.command import checked
from lab.elastic_guest import PROGRAMS
from lab.errors import LabError, Malformed
from lab.guest import Guest
from lab.patience import wait_for
from lab.rack import Rack

PORT = 4796
DEVICE, IN_GUEST = "/dev/nbd0", "xvdb"
GROUP = "/sys/fs/cgroup/membench"
RECLAIM = f"{GROUP}/memory.reclaim"  # who writes a number of bytes there has so much of the group swapped out
PAGE_CLUSTERS = (0, 3)  # one page at a time; Linux's default, 8 pages
BYTES_A_PAGE = 4096
# Major faults for a page that was swapped out, at the least, by page cluster: a read brings up to 2^cluster pages.
MAJORS = {0: 0.9, 3: 1 / 16}
# Of the program itself, which is not measured: its data, stack and page tables. With DSM they are on node 0.
OWN_PAGES = 128


@contextlib.contextmanager
def remote_disk(rack: Rack, mib: int) -> Iterator[Program]:
    """A disk of the first host in the memory of the second: DEVICE; yields the server. Raises LabError, TimeoutError."""
    home, other = rack.hosts[:2]
    wire = rack.description.wire(other.description.name)
    if wire is None:
        raise LabError("the rack has no network between its hosts")
    with running(other, f"nbd_ram serve {wire.address()} {PORT} {mib}") as server:
        server.await_word("listening")
        with running(home, f"nbd_ram attach {wire.address()} {PORT} {mib} {DEVICE}") as client:
            client.await_word("attached")
            yield server


@contextlib.contextmanager
def swapping(guest: Guest) -> Iterator[None]:
    """The guest swaps on DEVICE, and on nothing else, while the body runs. Raises LabError, TimeoutError."""
    checked(guest.dom0, f"xl block-attach {shlex.quote(guest.name)} phy:{DEVICE} {IN_GUEST} w", 120.0)
    try:
        wait_for(f"/dev/{IN_GUEST}", 60, lambda: guest.guest(f"test -b /dev/{IN_GUEST}").status == 0)
        checked(guest.guest, f"swapoff -a; mkswap /dev/{IN_GUEST} && swapon /dev/{IN_GUEST}", 120.0)
        try:
            yield
        finally:
            checked(guest.guest, f"swapoff /dev/{IN_GUEST}", 300.0)
    finally:
        checked(guest.dom0, f"xl block-detach {shlex.quote(guest.name)} {IN_GUEST}", 120.0)


def limited(words: str, pages: int, page_cluster: int) -> str:
    """A shell command for the guest: dsm_membench with these words, with so many pages of memory at hand besides its own."""
    return (
        f"echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p {GROUP} &&"
        f" echo {(pages + OWN_PAGES) * BYTES_A_PAGE} >{GROUP}/memory.max && echo {page_cluster} >/proc/sys/vm/page-cluster &&"
        f" (echo 0 >{GROUP}/cgroup.procs && exec {PROGRAMS}/dsm_membench {words})"
    )


def check_cold(output: membench.Output, page_cluster: int) -> None:
    """What is called cold was on the disk. Raises Malformed: pages whose way out had only begun are still in memory."""
    for each in membench.chosen(output.passes, state="cold"):
        if each.major < each.pages * MAJORS[page_cluster]:
            raise Malformed(
                f"page cluster {page_cluster}: {each.major} of {each.pages} pages were read from the disk in a cold pass, "
                f"{each.what}s in {each.order} order"
            )


def swapped_in(guest: Guest) -> int:
    """Pages that the guest's kernel has read from its swap since it started."""
    for line in checked(guest.guest, "cat /proc/vmstat").splitlines():
        if line.startswith("pswpin "):
            return int(line.split()[1])
    raise LabError("the guest's /proc/vmstat has no pswpin")
