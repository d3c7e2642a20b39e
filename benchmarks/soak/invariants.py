# SPDX-License-Identifier: GPL-2.0
"""What must hold between two operations: host, books, hypervisor and guest agree with the model, to the page.

`violations()` compares, and says each difference in a line. Two things are not known beforehand, and no more:

- of which physical nodes the guest's home is. Xen's count when this life began says so, and from then on each page has to stay.
  Only mem-set moves them: Xen takes new pages from any physical node that the guest has CPUs on. After it the sum has to be
  right, and how it is divided is noted anew.
- what a residual still has is the guest's word; xenstore, Xen's count and the driver have to agree on it.

A difference that can be the tail of what has just ended (`late`: a page that a back end still holds) is looked at again. The
guest's nodes and CPUs are none of these after an xl vnode-*, which has waited for them.

What a life begins with (`Base`) has to be what the first one began with (`begun()`): else what a reboot left of a vnode would
be taken for home.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from benchmarks.soak import model
from benchmarks.soak.books import Books, Cpus, number, of_dead
from benchmarks.soak.model import DONE, Shape, State, There
from benchmarks.soak.plan import Step

MIB_PAGES = 256
MIB_KIB = 1024

# numactl -H counts no memmap (2 of 128 MiB that are there whole, or in part) and rounds to MiB.
MEMMAP_MIB = 2
BLOCK_MIB = 128
ROUNDED_MIB = 1

# Keys that there may be, docs/xenstore-paths.md. What is in no contract was left over, or has come from elsewhere.
KEYS = re.compile(
    r"nodes|generation|node/\d+(/(elastic|start|max-kb|target-kb|cpus|grace-ms))?|node|guest|guest/node(/\d+)?"
    r"|guest/(version|ack-generation|done-generation)"
    r"|guest/node/\d+/(state|current-kb|residual-kb|reason|error|progress-kb|phases)"
)
PRIVATE_KEYS = re.compile(r"node|node/\d+(/(pnode|allowed-kb|phases))?|home-limit-kb|phases")


@dataclasses.dataclass(frozen=True)
class Violation:
    """What does not hold. `late`: it may be so for a moment after an operation."""

    what: str
    late: bool = False

    def __str__(self) -> str:
        return self.what


@dataclasses.dataclass(frozen=True)
class Base:
    """What was so when this life of the guest began, or home memory was last moved: pages by physical node."""

    whole: dict[int, int]  # free, and the guest's
    home: dict[int, int]  # the guest's without elastic vnodes
    home_pages: int  # of a home of full size
    home_mib: int  # by numactl -H, of a home of full size
    limit_kib: int  # of a home of full size
    layout: dict[int, str]
    affinity: dict[int, tuple[Cpus, Cpus]]
    boot: str

    @staticmethod
    def of(books: Books) -> Base:
        """From the books of a guest without elastic vnodes, whose home has its full size."""
        whole = {node: books.free[node] + books.pages.get(node, 0) for node in books.free}
        return Base(
            whole,
            dict(books.pages),
            books.total,
            books.sizes_mib.get(0, 0),
            books.limit_kib,
            dict(books.layout),
            dict(books.affinity),
            books.boot,
        )

    def moved(self, state: State, books: Books) -> Base:
        """The same after mem-set: how the home's pages are divided."""
        home = {node: pages - elastic_pages(state, books, node) for node, pages in books.pages.items()}
        return dataclasses.replace(self, home=home)


def begun(first: Base, base: Base) -> list[str]:
    """What is other at the beginning of a life than at that of the first one, one line each."""
    found = []
    if base.home_pages != first.home_pages:
        found.append(f"a life begins with {base.home_pages} pages: {base.home_pages - first.home_pages:+d}")
    if base.limit_kib != first.limit_kib:
        found.append(f"a life begins with a limit of {base.limit_kib} KiB: {base.limit_kib - first.limit_kib:+d}")
    if abs(base.home_mib - first.home_mib) > ROUNDED_MIB:
        found.append(f"numactl -H: a life begins with {base.home_mib} MiB, the first with {first.home_mib}")
    return found


def kib_of(there: There | None, books: Books) -> int:
    """What a vnode has to have; of a residual what the guest says."""
    if there is None:
        return 0
    return number(books.keys, f"guest/node/{there.number}/current-kb") if there.residual else there.mib * MIB_KIB


def elastic_pages(state: State, books: Books, pnode: int | None = None) -> int:
    """Pages that elastic vnodes have to have, on one physical node or on all."""
    return sum(kib_of(there, books) // 4 for there in state.vnodes if pnode is None or there.pnode == pnode)


def violations(shape: Shape, base: Base, step: Step, books: Books) -> list[Violation]:
    """All that does not hold after a step."""
    state = step.after
    found: list[Violation] = []
    found += _pages(shape, base, step, books)
    found += _limit(shape, base, state, books)
    for vnode in shape.vnodes:
        found += _vnode(state, vnode.number, books)
    found += _placement(shape, base, state, books)
    found += _operations(step, books)
    found += _leftovers(shape, books)
    found += _availability(shape, state, books)
    found += _guest(shape, base, step, books)
    return found


def _pages(shape: Shape, base: Base, step: Step, books: Books) -> Iterator[Violation]:
    state = step.after
    less = (shape.home_mib - state.home_mib) * MIB_PAGES
    wanted = base.home_pages - less + elastic_pages(state, books)
    if books.total != wanted:
        yield Violation(f"Xen counts {books.total} pages of the guest, {books.total - wanted:+d}", late=True)
    for node, whole in base.whole.items():
        free, pages = books.free.get(node, 0), books.pages.get(node, 0)
        if free + pages != whole:
            yield Violation(
                f"pnode {node}: {free} pages free and {pages} the guest's: {free + pages - whole:+d}", late=True
            )
        home = base.home.get(node, 0)
        elastic = elastic_pages(state, books, node)
        if step.operation.name != "mem-set" and pages != home + elastic:
            yield Violation(f"pnode {node}: the guest has {pages} pages of it: {pages - home - elastic:+d}", late=True)


def _limit(shape: Shape, base: Base, state: State, books: Books) -> Iterator[Violation]:
    """By what the life began with: the toolstack's own key could be off by as much as Xen's limit."""
    allowed = sum(kib_of(there, books) for there in state.vnodes)
    home = base.limit_kib - (shape.home_mib - state.home_mib) * MIB_KIB
    said = number(books.private, "home-limit-kb")
    if said != home:
        yield Violation(f"xenstore: home-limit-kb is {said}: {said - home:+d}")
    if books.limit_kib != home + allowed:
        yield Violation(f"Xen's limit is {books.limit_kib} KiB: {books.limit_kib - home - allowed:+d}")


def _vnode(state: State, vnode: int, books: Books) -> Iterator[Violation]:
    there = state.vnode(vnode)
    name = "offline" if there is None else "residual" if there.residual else "online"
    kib = kib_of(there, books)
    target = 0 if there is None or there.residual else kib
    pnode = there.pnode if there else None
    guest, driver, listed = f"guest/node/{vnode}", books.driver.get(vnode), books.listed.get(vnode, {})
    residual = number(books.keys, f"{guest}/residual-kb")
    said = {
        "xenstore: state": (books.keys.get(f"{guest}/state", "offline"), name),
        "xenstore: target-kb": (number(books.keys, f"node/{vnode}/target-kb"), target),
        "xenstore: current-kb": (number(books.keys, f"{guest}/current-kb"), kib),
        "xenstore: allowed-kb": (number(books.private, f"node/{vnode}/allowed-kb"), kib),
        "xenstore: pnode": (books.private.get(f"node/{vnode}/pnode", ""), "" if pnode is None else str(pnode)),
        "driver: state": (driver.state if driver else "none", name),
        "driver: KiB": (driver.populated_kib if driver else -1, kib),
        "driver: target": (driver.target_kib if driver else -1, target),
        "vnode-list: state": (listed.get("state"), name),
        "vnode-list: actual": (listed.get("actual_kib"), kib),
        "vnode-list: target": (listed.get("target_kib"), target),
        "vnode-list: pnode": (listed.get("pnode"), pnode),
        "vnode-list: residual": (listed.get("residual_kib"), residual),
        "vnode-list: fault": (listed.get("fault"), None),
        "vnode-list: driver": (listed.get("driver"), True),
    }
    for what, (found, wanted) in said.items():
        if found != wanted:
            yield Violation(f"vnode {vnode}: {what} is {found}, not {wanted}")
    if there and there.residual:
        most = min(there.mib, model.EXTENT_MIB * (model.PINNED_PAGES - -there.mib // BLOCK_MIB)) * MIB_KIB
        if not 0 < residual <= kib <= most:
            yield Violation(f"vnode {vnode}: a residual of {residual} KiB, and {kib} KiB there")
    elif residual:
        yield Violation(f"vnode {vnode}: residual-kb is {residual}, and it is {name}")


def _placement(shape: Shape, base: Base, state: State, books: Books) -> Iterator[Violation]:
    """In Xen a vnode and its vCPUs are where its memory is; of an absent one, and of the home, all is as the life began."""
    for vnode in (0, *(each.number for each in shape.vnodes)):
        there = state.vnode(vnode)
        wanted = str(there.pnode) if there else base.layout.get(vnode)
        if wanted is None or books.layout.get(vnode) != wanted:
            yield Violation(f"vnode {vnode}: Xen's table has it on pnode {books.layout.get(vnode)}, not {wanted}")
        for cpu in shape.vnode(vnode).cpus if vnode else range(shape.home_cpus):
            cpus = books.host_cpus.get(there.pnode, ()) if there else ()
            bound = (cpus, cpus) if there else base.affinity.get(cpu)
            if bound is None or books.affinity.get(cpu) != bound:
                yield Violation(f"vCPU {cpu}: its affinity is {books.affinity.get(cpu)}, not {bound}")


def _operations(step: Step, books: Books) -> Iterator[Violation]:
    """Nothing is under way, and what has ended well has left no error."""
    if "op" in books.private:
        yield Violation(f"an operation is on record: {books.private['op']}")
    for vnode, listed in books.listed.items():
        if listed.get("operation") is not None:
            yield Violation(f"vnode {vnode}: an operation is under way: {listed['operation']}")
    newest = books.keys.get("generation")
    if newest is not None:
        for key in ("guest/ack-generation", "guest/done-generation"):
            if books.keys.get(key) != newest:
                yield Violation(f"{key} is {books.keys.get(key)}, generation {newest}")
    operation = step.operation
    if operation.name in ("attach", "detach", "set") and step.expected.statuses == (DONE,):
        error = books.keys.get(f"guest/node/{operation.vnode}/error")
        if error:
            yield Violation(f"vnode {operation.vnode}: an error is left: {error}")


def _known(key: str, known: re.Pattern[str], shape: Shape) -> bool:
    """Whether there may be such a key, of a vnode that there is."""
    node = re.search(r"\bnode/(\d+)", key)
    numbers = {0, *(vnode.number for vnode in shape.vnodes)}
    return bool(known.fullmatch(key)) and (node is None or int(node[1]) in numbers)


def _leftovers(shape: Shape, books: Books) -> Iterator[Violation]:
    for names, where in ((books.domains, "/local/domain"), (books.libxl, "/libxl"), (books.files, "/var/lib/xen")):
        for name in of_dead(names, books.domid):
            yield Violation(f"{where}/{name} is of no domain that lives")
    for keys, known, where in ((books.keys, KEYS, "vnuma"), (books.private, PRIVATE_KEYS, "/libxl vnuma")):
        for key in sorted(keys):
            if not _known(key, known, shape) and key != "op":
                yield Violation(f"{where}/{key} = {keys[key]!r}: no such key is known")


def _availability(shape: Shape, state: State, books: Books) -> Iterator[Violation]:
    wanted = {cpu: cpu < state.home_cpus for cpu in range(shape.home_cpus)}
    for vnode in shape.vnodes:
        there = state.vnode(vnode.number)
        if there is None or not there.residual:
            wanted |= dict.fromkeys(vnode.cpus, there is not None)
    for cpu, online in wanted.items():
        name = "online" if online else "offline"
        if books.availability.get(cpu) != name:
            yield Violation(f"vCPU {cpu}: availability is {books.availability.get(cpu)}, not {name}")


def _guest(shape: Shape, base: Base, step: Step, books: Books) -> Iterator[Violation]:
    state = step.after
    late = step.operation.name not in ("attach", "detach", "set", "cut", "wrong")
    if books.boot != base.boot:
        yield Violation("the guest has started anew")
    nodes = (0, *(there.number for there in state.vnodes))
    if books.nodes != nodes:
        yield Violation(f"the guest has nodes {books.nodes}, not {nodes}", late)
    cpus = set(range(state.home_cpus))
    for there in state.vnodes:
        cpus |= set() if there.residual else set(shape.vnode(there.number).cpus)
    if set(books.cpus) != cpus:
        yield Violation(f"the guest has CPUs {books.cpus}, not {tuple(sorted(cpus))}", late)
    for there in state.vnodes:
        kib, mib = kib_of(there, books), books.sizes_mib.get(there.number, 0)
        most = kib // MIB_KIB
        least = 0 if there.residual else most - MEMMAP_MIB * -(-most // BLOCK_MIB) - MEMMAP_MIB - ROUNDED_MIB
        if not least <= mib <= most:
            yield Violation(f"numactl -H: node {there.number} has {mib} MiB, not {least} to {most}", late)
    home, less = books.sizes_mib.get(0, 0), shape.home_mib - state.home_mib
    if not abs(home - base.home_mib + less) <= ROUNDED_MIB + (less > 0):
        yield Violation(f"numactl -H: node 0 has {home} MiB, not {base.home_mib - less}", late=True)
