# SPDX-License-Identifier: GPL-2.0
"""Upstream bugs that the project met; each test fails without the hook that mends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.command import Run, checked, write_file
from lab.elastic_guest import PROGRAMS, ElasticGuest
from lab.guestview import parse_list
from lab.host import Host
from lab.hypervisor import settled_free_pages
from tests.e2e.conftest import CONFIGS, Stable

DISTANCES = ((10, 21, 31, 41), (21, 10, 21, 31), (31, 21, 10, 21), (41, 31, 21, 10))
NODE_MIB = 96

# Domains that die, and their vCPUs: Xen kept 136 bytes of each for every second vCPU, strewn over some 50 pages.
DEAD_DOMAINS, DEAD_VCPUS = 8, 64
MAY_DIFFER = 2  # by which the pool that small structures come from may differ, as the gaps between them do

HAMMERED_S = 10
VIF = "['mac=00:16:3e:4d:00:{:02x},bridge=xenbr0']"


def config() -> str:
    """A guest of four ordinary vnodes, populated at boot."""
    vnodes = ",\n  ".join(
        f'["pnode={node % 2}", "size={NODE_MIB}", "vcpus={node}", "vdistances={",".join(map(str, row))}"]'
        for node, row in enumerate(DISTANCES)
    )
    return f"""name = "static4"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {4 * NODE_MIB}
vcpus = 4
tsc_mode = "native"
vif = ['mac=00:16:3e:4d:00:63,bridge=xenbr0']
vnuma = [
  {vnodes}
]
"""


@pytest.fixture(scope="module")
def static4(stable: Stable, host: Host) -> Iterator[ElasticGuest]:
    """The guest of four ordinary vnodes."""
    stable.leave("guest4.cfg")
    stable.leave("guest2.cfg")
    guest = host.start_guest(config())
    yield guest
    guest.destroy()


def test_vnuma_on_pvh_reaches_the_guest(static4: ElasticGuest) -> None:
    """init_acpi_config() took ENOBUFS of the first xc_domain_getvnuma() for a failure: no PVH guest with vNUMA started."""
    nodes = static4.nodes()
    assert sorted(nodes) == [0, 1, 2, 3]
    assert [nodes[n].cpus for n in range(4)] == [(0,), (1,), (2,), (3,)]
    assert all(NODE_MIB * 0.5 < nodes[n].size_mib <= NODE_MIB for n in (1, 2, 3))


def test_xl_does_not_write_past_its_buffers(static4: ElasticGuest, dom0: Run) -> None:
    """vdistance was allocated with 4 entries where 16 are written. glibc's checking malloc ends xl when that happens."""
    name = "overflow4"
    write_file(dom0, f"/tmp/{name}.cfg", config().replace("static4", name))
    checking = "LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3"
    assert "cannot be preloaded" not in dom0(f"{checking} true").text, "dom0 has no checking malloc"
    done = dom0(f"{checking} xl create -p /tmp/{name}.cfg")
    dom0(f"xl destroy {name}")
    assert done.status == 0, done.text


def test_all_distances_reach_the_guest(static4: ElasticGuest) -> None:
    """What overflowed was the matrix of distances: each must be what the configuration says."""
    for node, row in enumerate(DISTANCES):
        text = checked(static4.guest, f"cat /sys/devices/system/node/node{node}/distance")
        assert tuple(map(int, text.split())) == row


def test_cpuid_topology_follows_vnuma(static4: ElasticGuest) -> None:
    """Linux said "llc-sibling ... is not on the same node": each vnode has a last-level cache and a package of its own."""
    log = checked(static4.guest, "dmesg")
    assert "llc-sibling" not in log
    for cpu in range(4):
        caches = checked(
            static4.guest,
            f"for i in /sys/devices/system/cpu/cpu{cpu}/cache/index*; do cat $i/shared_cpu_list 2>/dev/null; done",
        )
        assert all(parse_list(line) == (cpu,) for line in caches.split()), f"CPU {cpu} shares a cache: {caches}"
    packages = {
        checked(static4.guest, f"cat /sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id").strip()
        for cpu in range(4)
    }
    assert len(packages) == 4


def test_a_dead_domain_leaves_nothing_in_the_hypervisor(stable: Stable, dom0: Run) -> None:
    """Every second scheduling unit of a domain stayed allocated after its end: some 50 pages in this test."""
    stable.leave_all()
    name = "short-lived"
    text = f'''name = "{name}"\ntype = "pvh"\nkernel = "/boot/vmlinuz"\nmemory = 32\nvcpus = {DEAD_VCPUS}\n'''
    write_file(dom0, f"/tmp/{name}.cfg", text)

    def live_and_die(domains: int) -> int:
        """Pages free after the end of so many domains, which never ran."""
        for _ in range(domains):
            checked(dom0, f"xl create -q -p /tmp/{name}.cfg && xl destroy {name}")
        return sum(settled_free_pages(dom0).values())

    before = live_and_die(2)
    lost = before - live_and_die(DEAD_DOMAINS)
    assert lost <= MAY_DIFFER, f"{lost} pages"


def test_the_emulator_keeps_guests_of_its_first_cpu(stable: Stable, host: Host) -> None:
    """QEMU: an FXRSTOR on any CPU could undo the first CPU's switch into a guest, or out of it (decision 0005)."""
    stable.leave_all()
    small = CONFIGS / "stock1.cfg"
    others = {"name": '"others"', "memory": "256", "cpus": '["2", "3"]', "vif": VIF.format(0x61)}
    first = {"name": '"first"', "memory": "256", "vcpus": "1", "cpus": '["0"]', "vif": VIF.format(0x62)}
    guests = [host.start_guest(small, settings, wait=False) for settings in (others, first)]
    try:
        for guest in guests:
            guest.wait_ready()
        hammers = [guests[0].start([f"{PROGRAMS}/fxrstor", str(HAMMERED_S)]) for _ in range(2)]
        # Each turn is a new process: page faults, timers and event channels take it to Xen and back.
        work = f"end=$(($(date +%s) + {HAMMERED_S})); while [ $(date +%s) -lt $end ]; do :; done; cat /proc/uptime"
        uptime = float(guests[1].run(work, timeout=HAMMERED_S + 60, check=True).out.split()[0])
        assert uptime > HAMMERED_S, "it has started anew"
        assert [hammer.wait(60).status for hammer in hammers] == [0, 0]
    finally:
        for guest in guests:
            guest.destroy()
