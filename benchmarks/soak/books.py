# SPDX-License-Identifier: GPL-2.0
"""What the host's books, the hypervisor and the guest each say of a guest, by two questions: one to dom0, one to the guest.

The logs of both are asked for with them (inside.py).

`Books` is what was read, as it was said; what it should be is for invariants.py. All text of the guest is untrusted: what has
not the expected form raises Malformed.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.soak.inside import Inside, sections
from benchmarks.soak.model import EXTENT_MIB
from lab import guestview
from lab.command import Run, checked
from lab.elastic_guest import ElasticGuest, parse_vnode_list
from lab.errors import Malformed
from lab.hypervisor import parse_heap

# What may be left of a domain that is gone. Without a guest there may be no backend, and no /libxl: ls has the last word.
_LISTS = """
echo "== libxl"; xenstore-list /libxl
echo "== vms"; xenstore-list /vm
echo "== backends"; xenstore-ls -f /local/domain/0/backend
echo "== domains"; xenstore-list /local/domain
echo "== files"; ls /var/lib/xen
"""

# Keys, files and what Xen says are read before vnode-list is asked, which would put them in order: limit and affinities, too.
ASK_DOM0 = """
name={name}; domid=$(xl domid $name) || exit 1
echo "== domid"; echo $domid
echo "== keys"; xenstore-ls -f /local/domain/$domid/vnuma
echo "== books"; xenstore-ls -f /libxl/$domid/vnuma
echo "== cpus"; xenstore-ls -f /local/domain/$domid/cpu
echo "== memory"; xenstore-ls -f /local/domain/$domid/memory
echo "== vm"; xenstore-read /local/domain/$domid/vm
{lists}
echo "== xen"; xl dmesg -c >/dev/null && xl debug-keys u && xl debug-keys q && xl dmesg || exit 1
echo "== listed"; xl vnode-list --json $name 2>/tmp/soak-said || exit 1
echo "== said"; cat /tmp/soak-said
{logs}
"""

ASK_HEAP = "xl dmesg -c >/dev/null && xl debug-keys u && xl dmesg"

ASK_GUEST = """
echo "== boot"; cat /proc/sys/kernel/random/boot_id
echo "== nodes"; cat /sys/devices/system/node/online
echo "== cpus"; cat /sys/devices/system/cpu/online
echo "== numactl"; numactl -H
{logs}
echo "== driver"; cat /sys/kernel/debug/elastic-numa/nodes
"""

_KEY = re.compile(r"(/\S+) = \"(.*?)\"(?:\s+\(.*\))?")
_DOMAIN = re.compile(r"\bd(\d+) \(total: (\d+)\):((?:\s*(?:\(XEN\))?(?: \[[^\]\n]*\])?\s+Node \d+: \d+)+)")
_NODE = re.compile(r"Node (\d+): (\d+)")
_LIMIT = re.compile(r"General information for domain (\d+):.*?max_pages=(\d+)", re.DOTALL)
_LAYOUT = re.compile(r"^(?:\(XEN\))?(?: \[[^\]\n]*\])?\s+(\d+): pnode +(\S+), vcpus ([-\d ]*)$", re.MULTILINE)
_AFFINITY = re.compile(r"UNIT(\d+) affinities: hard=\{([^}\n]*)\} soft=\{([^}\n]*)\}")
_NODE_CPUS = re.compile(r"CPU(\d+)(?:\.\.\.(\d+))? -> NODE(\d+)")
_DRIVER = re.compile(
    r"^vnode (\d+): node -?\d+, ([a-z]+), (\d+) of \d+ KiB, target (\d+) KiB, cpus (\S*)$"
    r"(?:\n  range \S+ \d+ blocks of \d+ extents, (\d+) of them memmap, plugged (\S*)$)?",
    re.MULTILINE,
)
_BACKEND = re.compile(r"([^/]+/\d+)(?:/.*)?")
_DOM0_VM = "00000000-0000-0000-0000-000000000000"

Cpus = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Driver:
    """What the guest's driver says of a vnode."""

    state: str
    populated_kib: int
    target_kib: int
    memmap_mib: int = 0  # of the memory that it has, what holds struct pages of blocks: no node counts that


@dataclasses.dataclass(frozen=True)
class Books:
    """What was read. Pages are of 4 KiB and by physical node; keys are without the path of their domain."""

    domid: int
    keys: Mapping[str, str]  # vnuma/..., which the guest may read
    private: Mapping[str, str]  # vnuma/... below /libxl
    availability: Mapping[int, str]  # of vCPUs
    domains: frozenset[str]  # that xenstore has a directory of
    libxl: frozenset[str]  # the same below /libxl
    files: frozenset[str]  # of /var/lib/xen
    vm: str  # of the guest, below /vm
    vms: frozenset[str]  # that there are
    backends: frozenset[str]  # of dom0: kind/domid
    memory_target_kib: int  # of the guest's home, for stock's balloon
    listed: Mapping[int, Mapping[str, Any]]  # xl vnode-list --json
    said: tuple[str, ...]  # what it has said on standard error
    free: Mapping[int, int]  # pages of a physical node that are free, or dom0's
    pages: Mapping[int, int]  # of the guest
    total: int  # of the guest
    limit_kib: int
    layout: Mapping[int, str]  # the physical node of each vnode, in Xen's table
    vcpus: Mapping[int, Cpus]  # of each vnode, in the same table
    affinity: Mapping[int, tuple[Cpus, Cpus]]  # of each vCPU: where it may run, and where it should
    host_cpus: Mapping[int, Cpus]  # of each physical node
    boot: str
    nodes: tuple[int, ...]
    cpus: tuple[int, ...]
    sizes_mib: Mapping[int, int]  # of nodes, by numactl -H
    node_cpus: Mapping[int, Cpus]  # of nodes, by numactl -H, which lists those that are online
    driver: Mapping[int, Driver]


def keys_below(text: str, path: str) -> dict[str, str]:
    """Keys below a path, from `xenstore-ls -f`, by the rest of their path."""
    found = {}
    for line in text.splitlines():
        match = _KEY.match(line)
        if match and match[1].startswith(f"{path}/"):
            found[match[1][len(path) + 1 :]] = match[2]
    return found


def parse_pages(text: str, domid: int) -> tuple[int, dict[int, int]]:
    """Pages of a domain, all and by physical node, from the last report of debug key `u`. Raises Malformed."""
    found = [match for match in _DOMAIN.finditer(text) if int(match[1]) == domid]
    if not found:
        raise Malformed(f"no memory of domain {domid} in {text[-600:]!r}")
    return int(found[-1][2]), {int(node): int(pages) for node, pages in _NODE.findall(found[-1][3])}


def free_or_dom0s(text: str) -> dict[int, int]:
    """Pages of each physical node that are free, or dom0's, from the last report of debug key `u`. Raises Malformed.

    Back ends of a guest have pages of dom0, which go to the balloon of its Linux when they end, and come back some time: as
    other frames. These may be of another node: alloc_domheap_pages() would rather take them there than below its DMA limit. So
    dom0 has fewer pages at times, or some of another node, and only both together are as they were.
    """
    free, (_, dom0) = parse_heap(text), parse_pages(text, 0)
    return {node: pages + dom0.get(node, 0) for node, pages in free.items()}


def of_host(dom0: Run) -> tuple[dict[int, int], int]:
    """Pages of each physical node that are free or dom0's, and how many are dom0's. Raises CommandFailedError, Malformed."""
    said = checked(dom0, ASK_HEAP, 60.0)
    return free_or_dom0s(said), parse_pages(said, 0)[0]


def without_guest(dom0: Run) -> dict[int, int]:
    """Pages of each physical node that are free or dom0's. Raises CommandFailedError, Malformed."""
    return of_host(dom0)[0]


def parse_limit(text: str, domid: int) -> int:
    """Xen's limit of a domain's memory in KiB, from the report of debug key `q`. Raises Malformed."""
    for match in _LIMIT.finditer(text):
        if int(match[1]) == domid:
            return 4 * int(match[2])
    raise Malformed(f"no limit of domain {domid} in {text[-600:]!r}")


def _table(text: str, domid: int) -> list[tuple[str, str, str]]:
    """Xen's table of a domain's vnodes, from the last report of debug key `u`: vnode, physical node, vCPUs."""
    found = [part for part in re.split(r"(?=\bd\d+ \(total: )|' pressed", text) if part.startswith(f"d{domid} (")]
    return _LAYOUT.findall(found[-1]) if found else []


def parse_layout(text: str, domid: int) -> dict[int, str]:
    """The physical node of each vnode of a domain in Xen's table, from the last report of debug key `u`."""
    return {int(vnode): pnode for vnode, pnode, _ in _table(text, domid)}


def parse_vcpus(text: str, domid: int) -> dict[int, Cpus]:
    """The vCPUs of each vnode of a domain in the same table, which has a space behind each range. Raises Malformed."""
    return {int(vnode): guestview.parse_list(",".join(vcpus.split())) for vnode, _, vcpus in _table(text, domid)}


def parse_affinity(text: str, domid: int) -> dict[int, tuple[Cpus, Cpus]]:
    """Hard and soft affinity of each vCPU of a domain, from the report of debug key `q`. Raises Malformed."""
    found = [part for part in text.split("General information for domain ") if part.startswith(f"{domid}:")]
    return {
        int(vcpu): (guestview.parse_list(hard), guestview.parse_list(soft))
        for vcpu, hard, soft in (_AFFINITY.findall(found[-1]) if found else ())
    }


def parse_host_cpus(text: str) -> dict[int, Cpus]:
    """The CPUs of each physical node, from the report of debug key `u`."""
    found: dict[int, set[int]] = {}
    for first, last, node in _NODE_CPUS.findall(text):
        found.setdefault(int(node), set()).update(range(int(first), int(last or first) + 1))
    return {node: tuple(sorted(cpus)) for node, cpus in found.items()}


def parse_driver(text: str) -> dict[int, Driver]:
    """What /sys/kernel/debug/elastic-numa/nodes says of each vnode. Raises Malformed."""
    return {
        int(number): Driver(
            state,
            int(populated),
            int(target),
            EXTENT_MIB * int(memmap or 0) * len(guestview.parse_list(plugged)),
        )
        for number, state, populated, target, _, memmap, plugged in _DRIVER.findall(text)
    }


def parse_backends(text: str) -> frozenset[str]:
    """Whose devices dom0 serves, as kind/domid, from `xenstore-ls -f` of its directory of back ends."""
    found = map(_BACKEND.fullmatch, keys_below(text, "/local/domain/0/backend"))
    return frozenset(match[1] for match in found if match)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def read(guest: ElasticGuest, in_dom0: Inside, in_guest: Inside) -> Books:
    """Ask both, and note what is new in their logs. Raises CommandFailedError, LabError, Malformed."""
    ask = ASK_DOM0.format(name=shlex.quote(guest.name), lists=_LISTS, logs=in_dom0.ask())
    said = sections(checked(guest.dom0, ask, 60.0))
    told = sections(checked(guest.guest, ASK_GUEST.format(logs=in_guest.ask()), 30.0))
    try:
        domid = int(said["domid"])
        nodes = guestview.parse_numactl(told["numactl"])
        total, pages = parse_pages(said["xen"], domid)
        cpus = keys_below(said["cpus"], f"/local/domain/{domid}/cpu")
        seen = Books(
            domid=domid,
            keys=keys_below(said["keys"], f"/local/domain/{domid}/vnuma"),
            private=keys_below(said["books"], f"/libxl/{domid}/vnuma"),
            availability={
                int(key.split("/")[0]): value for key, value in cpus.items() if key.endswith("/availability")
            },
            domains=_words(said["domains"]),
            libxl=_words(said["libxl"]),
            files=_words(said["files"]),
            vm=said["vm"].strip().removeprefix("/vm/"),
            vms=_words(said["vms"]),
            backends=parse_backends(said["backends"]),
            memory_target_kib=number(keys_below(said["memory"], f"/local/domain/{domid}/memory"), "target"),
            listed=parse_vnode_list(said["listed"]),
            said=tuple(filter(str.strip, said["said"].splitlines())),
            free=free_or_dom0s(said["xen"]),
            pages=pages,
            total=total,
            limit_kib=parse_limit(said["xen"], domid),
            layout=parse_layout(said["xen"], domid),
            vcpus=parse_vcpus(said["xen"], domid),
            affinity=parse_affinity(said["xen"], domid),
            host_cpus=parse_host_cpus(said["xen"]),
            boot=told["boot"].strip(),
            nodes=guestview.parse_list(told["nodes"]),
            cpus=guestview.parse_list(told["cpus"]),
            sizes_mib={vnode: node.size_mib for vnode, node in nodes.items()},
            node_cpus={vnode: node.cpus for vnode, node in nodes.items()},
            driver=parse_driver(told["driver"]),
        )
    except (KeyError, ValueError) as error:
        raise Malformed(f"the books: {error!r}: {sorted(said)}, {sorted(told)}") from error
    in_dom0.take(said)
    in_guest.take(told)
    return seen


def number(keys: Mapping[str, str], key: str) -> int:
    """The value of a key as a number; 0 if it is absent. Raises Malformed."""
    text = keys.get(key, "0")
    if not re.fullmatch(r"\d{1,19}", text):
        raise Malformed(f"{key} = {text[:60]!r}")
    return int(text)


def of_dead(names: Iterable[str], domid: int) -> list[str]:
    """Which directories or files are of domains other than dom0 and this one."""
    found = []
    for name in sorted(names):
        match = re.fullmatch(r"(?:userdata-\w\.|[^/]+/)?(\d+)(?:\..*)?", name)
        if match and int(match[1]) not in (0, domid):
            found.append(name)
    return found


@dataclasses.dataclass(frozen=True)
class Lists:
    """Where something of a domain that is gone may be left. `domid`, `vm`: of the guest that lives; 0, "": none does."""

    domid: int
    vm: str
    domains: frozenset[str]
    libxl: frozenset[str]
    files: frozenset[str]
    vms: frozenset[str]
    backends: frozenset[str]

    @staticmethod
    def of(seen: Books) -> Lists:
        """Those that were read with the books."""
        return Lists(seen.domid, seen.vm, seen.domains, seen.libxl, seen.files, seen.vms, seen.backends)

    def left(self) -> list[str]:
        """What is of no domain that lives. mem-set of dom0 makes it a directory below /vm."""
        places = {
            "/local/domain": of_dead(self.domains, self.domid),
            "/libxl": of_dead(self.libxl, self.domid),
            "/var/lib/xen": of_dead(self.files, self.domid),
            "/local/domain/0/backend": of_dead(self.backends, self.domid),
            "/vm": sorted(self.vms - {self.vm, _DOM0_VM}),
        }
        return [f"{where}/{name} is of no domain that lives" for where, names in places.items() for name in names]

    def silent(self) -> list[str]:
        """Which of them lacks what has to be there: a question that was not answered shows nothing that is left."""
        of_guest = {
            "/libxl": str(self.domid) in self.libxl,
            "/vm": self.vm in self.vms,
            "/local/domain/0/backend": any(name.endswith(f"/{self.domid}") for name in self.backends),
        }
        there = {
            "/local/domain": {"0", str(self.domid)} <= self.domains,
            "/var/lib/xen": any(name.startswith(f"userdata-d.{self.domid}.") for name in self.files),
            **(of_guest if self.domid else {}),
        }
        return [f"{where} has not what lives: the list cannot be trusted" for where, has in there.items() if not has]


def leftovers_without_guest(dom0: Run) -> list[str]:
    """What is left of domains when no guest lives, one line each. Raises CommandFailedError, Malformed.

    libxl removes it all with the domain: devices_destroy_cb() in libxl_domain.c, libxl__device_destroy().
    """
    said = sections(checked(dom0, _LISTS, 30.0))
    try:
        lists = Lists(
            0,
            "",
            _words(said["domains"]),
            _words(said["libxl"]),
            _words(said["files"]),
            _words(said["vms"]),
            parse_backends(said["backends"]),
        )
    except KeyError as error:
        raise Malformed(f"the lists: {error!r}: {sorted(said)}") from error
    return lists.silent() + lists.left()
