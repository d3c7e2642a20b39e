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

Nobody knows what an xl that is killed leads to, but what holds then is known (`at_rest()`): once vnode-list shows nothing under
way, host and guest agree on what has become of the vnode, and all else is as it was.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.soak import model
from benchmarks.soak.books import Books, Cpus, Lists, number
from benchmarks.soak.model import DONE, EXTENT_MIB, Operation, Shape, State, There
from benchmarks.soak.plan import Step

MIB_PAGES = 256
MIB_KIB = 1024

# A home's end lies where its kernel put it, and numactl -H rounds to MiB; a vnode's memory comes by extents.
BLOCK_MIB = 128
ROUNDED_MIB = 1

# Keys that there may be, docs/xenstore-paths.md. What is in no contract was left over, or has come from elsewhere.
KEYS = re.compile(
    r"nodes|generation|node/\d+(/(elastic|start|max-kb|target-kb|cpus|grace-ms))?|node|guest|guest/node(/\d+)?"
    r"|guest/(version|ack-generation|done-generation)"
    r"|guest/node/\d+/(state|current-kb|residual-kb|reason|error|progress-kb|phases)"
)
PRIVATE_KEYS = re.compile(r"node|node/\d+(/(pnode|allowed-kb|phases))?|home-limit-kb|phases")

# Those that are written when the domain is created, and by nobody after that.
STATIC = re.compile(r"nodes|node/\d+/(elastic|start|max-kb|cpus)|node/0/(target-kb|pnode)")


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

    whole: dict[int, int]  # free, dom0's, and the guest's
    home: dict[int, int]  # the guest's without elastic vnodes
    home_pages: int  # of a home of full size
    home_mib: int  # by numactl -H, of a home of full size
    limit_kib: int  # of a home of full size
    layout: dict[int, str]
    affinity: dict[int, tuple[Cpus, Cpus]]
    boot: str
    static: dict[str, str]  # keys that never change

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
            static_keys(books),
        )

    def moved(self, state: State, books: Books) -> Base:
        """The same after mem-set: how the home's pages are divided."""
        home = {node: pages - elastic_pages(state, books, node) for node, pages in books.pages.items()}
        return dataclasses.replace(self, home=home)


def static_keys(books: Books) -> dict[str, str]:
    """Keys that are as they are for as long as the domain lives."""
    return {key: text for key, text in {**books.private, **books.keys}.items() if STATIC.fullmatch(key)}


def begun(first: Base, base: Base) -> list[str]:
    """What is other at the beginning of a life than at that of the first one, one line each.

    Xen gives each life of a guest the same pages of each physical node: so it was in all 71 lives of six runs.
    """
    found = []
    if base.home_pages != first.home_pages:
        found.append(f"a life begins with {base.home_pages} pages: {base.home_pages - first.home_pages:+d}")
    if base.limit_kib != first.limit_kib:
        found.append(f"a life begins with a limit of {base.limit_kib} KiB: {base.limit_kib - first.limit_kib:+d}")
    if abs(base.home_mib - first.home_mib) > ROUNDED_MIB:
        found.append(f"numactl -H: a life begins with {base.home_mib} MiB, the first with {first.home_mib}")
    if base.home != first.home:
        found.append(f"a life begins with its home elsewhere, by physical node: {base.home}, the first with {first.home}")
    found += _others("Xen's table has vnode", base.layout, first.layout)
    found += _others("the affinity of vCPU", base.affinity, first.affinity)
    found += _others("xenstore:", base.static, first.static)
    return found


def _others(what: str, now: Mapping[Any, object], first: Mapping[Any, object]) -> Iterator[str]:
    for key in sorted({*now, *first}):
        if now.get(key) != first.get(key):
            yield f"a life begins with another value: {what} {key}: {now.get(key)}, the first with {first.get(key)}"


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
    found += _rest(shape, base, step, books)
    return found


def at_rest(shape: Shape, base: Base, before: State, books: Books, inner: Operation) -> list[Violation]:
    """All that does not hold when an xl has left operation `inner` half-way and vnode-list shows nothing under way.

    vnode-list settles before it lists (xl_vnode_list.c): a record that says of nothing under way is struck out, and one whose
    guest has failed is announced as its own undoing, which is under way then. So there is no record at rest. The vnode is as it
    was, or as it was to be. It may be in between only where an undo has failed, too, and the guest says why (`error`): then its
    target is what it had, and it is allowed the larger of target and memory (vnode_settled_allowance()). All others, and the
    home, are as they were.
    """
    assert inner.vnode is not None
    vnode, was, to_be = inner.vnode, before.vnode(inner.vnode), model.after(shape, before, inner).vnode(inner.vnode)
    there = was or to_be
    assert there is not None
    sizes = [0 if each is None or each.residual else each.mib for each in (was, to_be)]
    name, kib = _mostly(vnode, books)
    now, found, target = before.without_vnode(vnode), list[Violation](), None
    if name == "residual":
        now = before.with_vnode(There(vnode, max(there.mib, *sizes), there.pnode, True))
        if not before.pinned(vnode):
            found.append(Violation(f"vnode {vnode}: it is residual, and no program holds its pages"))
    elif name != "offline" or min(sizes) > 0:
        now = before.with_vnode(There(vnode, kib // MIB_KIB, there.pnode))
        target = sizes[0] * MIB_KIB
        if number(books.keys, f"node/{vnode}/target-kb") != target or not books.keys.get(f"guest/node/{vnode}/error"):
            target = None
        if not max(min(sizes), EXTENT_MIB) * MIB_KIB <= kib <= max(sizes) * MIB_KIB:
            found.append(Violation(f"vnode {vnode}: it has {kib} KiB, not {min(sizes)} to {max(sizes)} MiB"))
        elif target is None and kib not in [MIB_KIB * mib for mib in sizes]:
            found.append(Violation(f"vnode {vnode}: it has {kib} KiB, of {sizes} MiB, and the guest does not say why"))
    step = Step(0, Operation("cut", inner=inner), before, now, model.Expected())
    found += _pages(shape, base, step, books)
    found += _limit(shape, base, now, books, max((target or 0) - kib_of(now.vnode(vnode), books), 0))
    for each in shape.vnodes:
        found += _vnode(now, each.number, books, target if each.number == vnode else None)
    return found + list(_rest(shape, base, step, books))


def _mostly(vnode: int, books: Books) -> tuple[str, int]:
    """What most of xenstore, the driver and the list say of a vnode: its state, and the KiB that it has."""
    driver, listed, guest = books.driver.get(vnode), books.listed.get(vnode, {}), f"guest/node/{vnode}"
    states = (books.keys.get(f"{guest}/state", "offline"), driver.state if driver else "", str(listed.get("state")))
    sizes = (number(books.keys, f"{guest}/current-kb"), driver.populated_kib if driver else 0, listed.get("actual_kib") or 0)
    return statistics.mode(states), statistics.mode(sizes)


def _rest(shape: Shape, base: Base, step: Step, books: Books) -> Iterator[Violation]:
    """All but memory."""
    for line in books.said:
        yield Violation(f"xl vnode-list says: {line}")
    yield from _static(shape, base, books)
    yield from _placement(shape, base, step.after, books)
    yield from _operations(step, books)
    yield from _leftovers(shape, books)
    yield from _availability(shape, step.after, books)
    yield from _guest(shape, base, step, books)


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
                f"pnode {node}: {free} pages free or dom0's and {pages} the guest's: {free + pages - whole:+d}", late=True
            )
        home = base.home.get(node, 0)
        elastic = elastic_pages(state, books, node)
        if step.operation.name != "mem-set" and pages != home + elastic:
            yield Violation(f"pnode {node}: the guest has {pages} pages of it: {pages - home - elastic:+d}", late=True)


def _limit(shape: Shape, base: Base, state: State, books: Books, more_kib: int = 0) -> Iterator[Violation]:
    """By what the life began with: the toolstack's own key could be off by as much as Xen's limit.

    `more_kib`: what a vnode may have and has not. Stock's balloon gets the home's size from libxl, by mem-set only.
    """
    allowed = sum(kib_of(there, books) for there in state.vnodes) + more_kib
    home = base.limit_kib - (shape.home_mib - state.home_mib) * MIB_KIB
    said = number(books.private, "home-limit-kb")
    if said != home:
        yield Violation(f"xenstore: home-limit-kb is {said}: {said - home:+d}")
    if books.limit_kib != home + allowed:
        yield Violation(f"Xen's limit is {books.limit_kib} KiB: {books.limit_kib - home - allowed:+d}")
    if books.memory_target_kib != state.home_mib * MIB_KIB:
        yield Violation(f"xenstore: memory/target is {books.memory_target_kib}, not {state.home_mib * MIB_KIB}")


def _vnode(state: State, vnode: int, books: Books, target: int | None = None) -> Iterator[Violation]:
    """`target`: what it is to have, in KiB, if that is not what it has."""
    there = state.vnode(vnode)
    name = "offline" if there is None else "residual" if there.residual else "online"
    kib = kib_of(there, books)
    if target is None:
        target = 0 if there is None or there.residual else kib
    pnode = there.pnode if there else None
    guest, driver, listed = f"guest/node/{vnode}", books.driver.get(vnode), books.listed.get(vnode, {})
    residual = number(books.keys, f"{guest}/residual-kb")
    said = {
        "xenstore: state": (books.keys.get(f"{guest}/state", "offline"), name),
        "xenstore: target-kb": (number(books.keys, f"node/{vnode}/target-kb"), target),
        "xenstore: current-kb": (number(books.keys, f"{guest}/current-kb"), kib),
        "xenstore: allowed-kb": (number(books.private, f"node/{vnode}/allowed-kb"), max(kib, target)),
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


def _static(shape: Shape, base: Base, books: Books) -> Iterator[Violation]:
    """Keys that are written once: as the configuration has it, and as this life began."""
    wanted = {**base.static, "nodes": str(1 + len(shape.vnodes))}
    for vnode in shape.vnodes:
        wanted |= {f"node/{vnode.number}/elastic": "1", f"node/{vnode.number}/max-kb": str(vnode.max_mib * MIB_KIB)}
    found = static_keys(books)
    for key in sorted({*wanted, *found}):
        if found.get(key) != wanted.get(key):
            yield Violation(f"xenstore: {key} is {found.get(key)}, not {wanted.get(key)}")


def _placement(shape: Shape, base: Base, state: State, books: Books) -> Iterator[Violation]:
    """In Xen a vnode and its vCPUs are where its memory is; of an absent one, and of the home, all is as the life began."""
    for vnode in (0, *(each.number for each in shape.vnodes)):
        there = state.vnode(vnode)
        wanted = str(there.pnode) if there else base.layout.get(vnode)
        if wanted is None or books.layout.get(vnode) != wanted:
            yield Violation(f"vnode {vnode}: Xen's table has it on pnode {books.layout.get(vnode)}, not {wanted}")
        own = shape.vnode(vnode).cpus if vnode else tuple(range(shape.home_cpus))
        if books.vcpus.get(vnode) != own:
            yield Violation(f"vnode {vnode}: Xen's table has it with vCPUs {books.vcpus.get(vnode)}, not {own}")
        for cpu in own:
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
    lists = Lists.of(books)
    for line in (*lists.silent(), *lists.left()):
        yield Violation(line)
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
    of_node: dict[int, Cpus] = {0: tuple(range(state.home_cpus))}
    for there in state.vnodes:
        of_node[there.number] = () if there.residual else shape.vnode(there.number).cpus
    cpus = {cpu for own in of_node.values() for cpu in own}
    if set(books.cpus) != cpus:
        yield Violation(f"the guest has CPUs {books.cpus}, not {tuple(sorted(cpus))}", late)
    for node in sorted({*of_node, *books.node_cpus}):
        if books.node_cpus.get(node) != of_node.get(node):
            yield Violation(f"numactl -H: node {node} has CPUs {books.node_cpus.get(node)}, not {of_node.get(node)}", late)
    yield from _sizes(shape, base, state, books, late)


def _sizes(shape: Shape, base: Base, state: State, books: Books, late: bool) -> Iterator[Violation]:
    """By numactl -H. A vnode has its memory without the struct pages of its blocks, to the extent.

    How many blocks there are depends on how it came to its size: a resize takes extents as they lie, so that one of 320 MiB may
    have as many blocks as one of 512. The driver says how many.
    """
    for there in state.vnodes:
        mib, driver = books.sizes_mib.get(there.number, 0), books.driver.get(there.number)
        most = kib_of(there, books) // MIB_KIB
        wanted = most - (driver.memmap_mib if driver else 0)
        if not 0 <= mib <= most if there.residual else mib != wanted:
            yield Violation(f"numactl -H: node {there.number} has {mib} MiB, not {wanted}", late)
    home, less = books.sizes_mib.get(0, 0), shape.home_mib - state.home_mib
    if not abs(home - base.home_mib + less) <= ROUNDED_MIB + (less > 0):
        yield Violation(f"numactl -H: node 0 has {home} MiB, not {base.home_mib - less}", late=True)
