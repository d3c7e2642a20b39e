# SPDX-License-Identifier: GPL-2.0
"""Each thing that can be off by one is found, alone, and by its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.soak import invariants, model
from benchmarks.soak.books import Books, Driver
from benchmarks.soak.invariants import Base
from benchmarks.soak.model import SHAPES, Operation, Shape, State, There
from benchmarks.soak.plan import Step
from tests.unit.soak.played import PlayedHome, books_of, uuid

SHAPE = SHAPES["guest2"]
ABSENT, THERE, RESIDUAL = State(512, 2), State(512, 2, (There(1, 256, 1),)), State(512, 2, (There(1, 256, 1, True),))


def step_to(state: State, name: str = "attach") -> Step:
    return Step(1, Operation(name, 1), ABSENT, state, model.Expected())


@pytest.fixture
def home(tmp_path: Path) -> PlayedHome:
    return PlayedHome(SHAPE, tmp_path / "log")


def read_in(home: PlayedHome, state: State) -> tuple[Base, Books]:
    """The base of a guest, and its books when it is in that state."""
    guest = home.create()
    base = Base.of(books_of(guest))
    if state.vnodes:
        home.dom0("xl vnode-attach guest2 1 size=256M")
    if state == RESIDUAL:
        home.programs[1] = {"words": ["pinner", "1"], "runs": True, "mib": "0", "output": ""}
        home.dom0("xl vnode-detach guest2 1")
    return base, books_of(guest)


def replaced(seen: Books, field: str, value: Any) -> Books:
    """Books with another value."""
    return dataclasses.replace(seen, **{field: value})


def changed(seen: Books, field: str, **values: object) -> Books:
    """Books with other values in one of its tables, or another value."""
    old = getattr(seen, field)
    if isinstance(old, Mapping):
        more = {int(key[1:]) if key[1:].isdigit() else key: value for key, value in values.items()}
        return replaced(seen, field, {**old, **more})
    return replaced(seen, field, values["value"])


def keyed(seen: Books, field: str, key: str, value: str | None) -> Books:
    """Books with another key; None: without it."""
    keys = {name: text for name, text in getattr(seen, field).items() if name != key}
    return replaced(seen, field, keys if value is None else {**keys, key: value})


def listed(seen: Books, **values: Any) -> Books:
    return dataclasses.replace(seen, listed={**seen.listed, 1: {**seen.listed[1], **values}})


def driver(seen: Books, vnode: int = 1, **values: Any) -> Books:
    """Books with other values of the driver."""
    return replaced(seen, "driver", {**seen.driver, vnode: dataclasses.replace(seen.driver[vnode], **values)})


@pytest.mark.parametrize("state", [ABSENT, THERE, RESIDUAL], ids=["absent", "there", "residual"])
def test_all_is_well(home: PlayedHome, state: State) -> None:
    base, seen = read_in(home, state)
    assert invariants.violations(SHAPE, base, step_to(state), seen) == []


# Of a guest with the vnode there: what is changed, and the only words about it, and whether it may be late.
PLANTED: dict[str, tuple[Callable[[Books], Books], str, bool]] = {
    "a page of the host is lost": (lambda b: changed(b, "free", _1=b.free[1] - 1), "pnode 1: ", True),
    "a page of the host too many": (lambda b: changed(b, "free", _0=b.free[0] + 1), "pnode 0: ", True),
    "the limit is a page too high": (lambda b: changed(b, "limit_kib", value=b.limit_kib + 4), "Xen's limit", False),
    "Xen's table": (lambda b: changed(b, "layout", _1="0"), "vnode 1: Xen's table has it on pnode 0", False),
    "Xen's table of the home": (lambda b: changed(b, "layout", _0="1"), "vnode 0: Xen's table", False),
    "a vnode that Xen's table has not": (lambda b: replaced(b, "layout", {0: "0"}), "vnode 1: Xen's table", False),
    "where a vCPU may run": (lambda b: changed(b, "affinity", _3=((0, 1, 2, 3), (2, 3))), "vCPU 3: its affinity", False),
    "where a vCPU should run": (lambda b: changed(b, "affinity", _2=((2, 3), (0, 1, 2, 3))), "vCPU 2: its affinity", False),
    "where the home runs": (lambda b: changed(b, "affinity", _1=((0, 1), (0, 1))), "vCPU 1: its affinity", False),
    "the home's limit": (lambda b: keyed(b, "private", "home-limit-kb", "525316"), "home-limit-kb is 525316: +4", False),
    "a key of no vnode": (lambda b: keyed(b, "private", "node/2/pnode", "1"), "node/2/pnode = '1': no such key", False),
    "a key of no vnode for the guest": (lambda b: keyed(b, "keys", "node/12/target-kb", "0"), "node/12/target-kb", False),
    "a state of no vnode": (lambda b: keyed(b, "keys", "guest/node/3/state", "offline"), "guest/node/3/state", False),
    "the target": (lambda b: keyed(b, "keys", "node/1/target-kb", "262146"), "xenstore: target-kb", False),
    "the guest's state": (lambda b: keyed(b, "keys", "guest/node/1/state", "growing"), "xenstore: state", False),
    "the guest's memory": (lambda b: keyed(b, "keys", "guest/node/1/current-kb", "262140"), "xenstore: current-kb", False),
    "a residual of none": (lambda b: listed(keyed(b, "keys", "guest/node/1/residual-kb", "4"), residual_kib=4),
                           "residual-kb is 4", False),
    "what is allowed": (lambda b: keyed(b, "private", "node/1/allowed-kb", "0"), "xenstore: allowed-kb", False),
    "the physical node": (lambda b: keyed(b, "private", "node/1/pnode", "0"), "xenstore: pnode", False),
    "no physical node": (lambda b: keyed(b, "private", "node/1/pnode", None), "xenstore: pnode", False),
    "a record is left": (lambda b: keyed(b, "private", "op", "3 attach 1 0 1 7 0 0"), "an operation is on record", False),
    "not acknowledged": (lambda b: keyed(b, "keys", "guest/ack-generation", "0"), "guest/ack-generation is 0", False),
    "not done": (lambda b: keyed(b, "keys", "guest/done-generation", None), "guest/done-generation is None", False),
    "an error is left": (lambda b: keyed(b, "keys", "guest/node/1/error", "-12 no"), "an error is left", False),
    "an unknown key of a vnode": (lambda b: keyed(b, "keys", "guest/node/1/flood", "1"), "no such key is known", False),
    "an unknown key": (lambda b: keyed(b, "keys", "guest/flood", "1"), "no such key is known", False),
    "an unknown private key": (lambda b: keyed(b, "private", "node/1/tmp", "1"), "no such key is known", False),
    "a domain that is gone": (lambda b: dataclasses.replace(b, domains=b.domains | {"99"}), "/local/domain/99", False),
    "its books": (lambda b: dataclasses.replace(b, libxl=b.libxl | {"99"}), "/libxl/99", False),
    "its files": (lambda b: dataclasses.replace(b, files=b.files | {"userdata-l.99.x.y"}), "/var/lib/xen/userdata", False),
    "a back end of its": (lambda b: replaced(b, "backends", b.backends | {"vif/99"}), "/local/domain/0/backend/vif/99", False),
    "its configuration": (lambda b: replaced(b, "vms", b.vms | {"ab-99"}), "/vm/ab-99", False),
    "no domains": (lambda b: replaced(b, "domains", frozenset("0")), "/local/domain has not what lives", False),
    "not dom0": (lambda b: replaced(b, "domains", frozenset("1")), "/local/domain has not what lives", False),
    "no domain of libxl": (lambda b: replaced(b, "libxl", frozenset()), "/libxl has not what lives", False),
    "no files": (lambda b: replaced(b, "files", frozenset()), "/var/lib/xen has not what lives", False),
    "dom0's files alone": (lambda b: replaced(b, "files", frozenset({"userdata-d.0.x.libxl-json"})),
                           "/var/lib/xen has not", False),
    "no back ends": (lambda b: replaced(b, "backends", frozenset()), "/local/domain/0/backend has not what lives", False),
    "dom0's books alone": (lambda b: replaced(b, "libxl", frozenset("0")), "/libxl has not what lives", False),
    "dom0's back ends alone": (lambda b: replaced(b, "backends", frozenset({"vif/0"})),
                               "/local/domain/0/backend has not what lives", False),
    "dom0's configuration alone": (lambda b: replaced(b, "vms", frozenset({uuid(0)})), "/vm has not what lives", False),
    "none of them": (lambda b: replaced(b, "vms", frozenset()), "/vm has not what lives", False),
    "a vnode's vCPUs in Xen's table": (lambda b: changed(b, "vcpus", _1=(2,)),
                                       "vnode 1: Xen's table has it with vCPUs (2,)", False),
    "the home's vCPUs in Xen's table": (lambda b: changed(b, "vcpus", _0=(0,)),
                                        "vnode 0: Xen's table has it with vCPUs", False),
    "a vnode's CPUs in the guest": (lambda b: changed(b, "node_cpus", _1=(2,)), "numactl -H: node 1 has CPUs (2,)", False),
    "the home's CPUs in the guest": (lambda b: changed(b, "node_cpus", _0=(0, 1, 2)), "numactl -H: node 0 has CPUs", False),
    "a node that there is not": (lambda b: changed(b, "node_cpus", _2=()), "numactl -H: node 2 has CPUs (), not None", False),
    "elastic": (lambda b: keyed(b, "keys", "node/1/elastic", "0"), "xenstore: node/1/elastic is 0, not 1", False),
    "where it starts": (lambda b: keyed(b, "keys", "node/1/start", "0x0"), "xenstore: node/1/start is 0x0", False),
    "a start of the home": (lambda b: keyed(b, "keys", "node/0/start", "0x0"),
                            "xenstore: node/0/start is 0x0, not None", False),
    "how large it can be": (lambda b: keyed(b, "keys", "node/1/max-kb", "4"), "xenstore: node/1/max-kb is 4", False),
    "the list of its vCPUs": (lambda b: keyed(b, "keys", "node/1/cpus", None), "xenstore: node/1/cpus is None", False),
    "how many vnodes": (lambda b: keyed(b, "keys", "nodes", "3"), "xenstore: nodes is 3, not 2", False),
    "the home's target": (lambda b: keyed(b, "keys", "node/0/target-kb", "4"), "xenstore: node/0/target-kb is 4", False),
    "the home's physical node": (lambda b: keyed(b, "private", "node/0/pnode", "1"), "xenstore: node/0/pnode is 1", False),
    "what the balloon is told": (lambda b: replaced(b, "memory_target_kib", 786432), "memory/target is 786432", False),
    "a vCPU not available": (lambda b: changed(b, "availability", _3="offline"), "vCPU 3: availability", False),
    "a vCPU of the home": (lambda b: changed(b, "availability", _1="offline"), "vCPU 1: availability", False),
    "the list's state": (lambda b: listed(b, state="growing"), "vnode-list: state", False),
    "the list's memory": (lambda b: listed(b, actual_kib=1), "vnode-list: actual", False),
    "the list's target": (lambda b: listed(b, target_kib=1), "vnode-list: target", False),
    "the list's pnode": (lambda b: listed(b, pnode=0), "vnode-list: pnode", False),
    "the list's residual": (lambda b: listed(b, residual_kib=4), "vnode-list: residual", False),
    "a fault": (lambda b: listed(b, fault="x"), "vnode-list: fault", False),
    "no driver": (lambda b: listed(b, driver=False), "vnode-list: driver", False),
    "an operation under way": (lambda b: listed(b, operation={"kind": "set"}), "an operation is under way", False),
    "the driver's state": (lambda b: driver(b, state="draining"), "driver: state", False),
    "the driver has none": (lambda b: driver(b, state="offline"), "driver: state is offline, not online", False),
    "the driver has more": (lambda b: driver(b, populated_kib=524288), "driver: KiB is 524288, not 262144", False),
    "the driver's memory": (lambda b: driver(b, populated_kib=262140), "driver: KiB", False),
    "the driver's target": (lambda b: driver(b, target_kib=0), "driver: target", False),
    "a node too few": (lambda b: changed(b, "nodes", value=(0,)), "the guest has nodes", False),
    "a CPU too few": (lambda b: changed(b, "cpus", value=(0, 1, 2)), "the guest has CPUs", False),
    "a node too large": (lambda b: changed(b, "sizes_mib", _1=253), "numactl -H: node 1", False),
    "a node too small by an extent": (lambda b: changed(b, "sizes_mib", _1=250),
                                      "numactl -H: node 1 has 250 MiB, not 252", False),
    "a node too large by memmap": (lambda b: changed(b, "sizes_mib", _1=254), "numactl -H: node 1 has 254 MiB, not 252", False),
    "a home too small": (lambda b: changed(b, "sizes_mib", _0=b.sizes_mib[0] - 2), "numactl -H: node 0", True),
    "another life": (lambda b: changed(b, "boot", value="x"), "started anew", False),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_off_is_found_and_nothing_else(home: PlayedHome, planted: str) -> None:
    change, said, late = PLANTED[planted]
    base, seen = read_in(home, THERE)
    found = invariants.violations(SHAPE, base, step_to(THERE), change(seen))
    assert len(found) == 1 and said in found[0].what and found[0].late == late, found


@pytest.mark.parametrize("name", ["vcpu-set", "mem-set", "reboot", "recreate"])
def test_a_cpu_may_be_late_where_no_xl_has_waited_for_it(home: PlayedHome, name: str) -> None:
    base, seen = read_in(home, THERE)
    (found,) = invariants.violations(SHAPE, base, step_to(THERE, name), changed(seen, "cpus", value=(0, 1, 2)))
    assert found.late and "CPUs" in found.what


def test_a_limit_that_drifts_with_what_the_toolstack_says_of_it(home: PlayedHome) -> None:
    base, seen = read_in(home, THERE)
    seen = keyed(changed(seen, "limit_kib", value=seen.limit_kib + 2048), "private", "home-limit-kb", "527360")
    found = [each.what for each in invariants.violations(SHAPE, base, step_to(THERE), seen)]
    assert len(found) == 2 and all(line.endswith(": +2048") for line in found)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("home_pages", 131000, "131000 pages: -22"),
        ("limit_kib", 525316, "525316 KiB: +4"),
        ("home_mib", 450, "450 MiB"),
        ("home", {0: 126918, 1: 4104}, "its home elsewhere"),
        ("layout", {0: "1", 1: "0"}, "Xen's table has vnode 0: 1, the first with 0"),
        ("layout", {0: "0"}, "Xen's table has vnode 1: None, the first with 0"),
        ("affinity", {0: ((0, 1, 2, 3), (0, 1)), 1: ((1,), (1,)), 2: ((0, 1, 2, 3),) * 2, 3: ((0, 1, 2, 3),) * 2},
         "the affinity of vCPU 1: ((1,), (1,))"),
    ],
)  # fmt: skip
def test_a_life_begins_as_the_first_one(home: PlayedHome, field: str, value: object, said: str) -> None:
    base, _ = read_in(home, ABSENT)
    assert invariants.begun(base, base) == []
    assert invariants.begun(base, dataclasses.replace(base, home_mib=base.home_mib + 1, boot="x", whole={})) == []
    (found,) = invariants.begun(base, dataclasses.replace(base, **{field: value}))  # type: ignore[arg-type]
    assert said in found


@pytest.mark.parametrize("static", [{"node/1/start": "0x0"}, {"node/1/start": None}, {"node/2/start": "0x0"}])
def test_a_life_begins_with_the_keys_of_the_first_one(home: PlayedHome, static: dict[str, str]) -> None:
    base, _ = read_in(home, ABSENT)
    keys = {key: text for key, text in {**base.static, **static}.items() if text}
    (found,) = invariants.begun(base, dataclasses.replace(base, static=keys))
    assert next(iter(static)) in found


@pytest.mark.parametrize(
    ("key", "text", "wanted"),
    [("nodes", "3", "2"), ("node/1/elastic", "0", "1"), ("node/1/max-kb", "262144", "524288")],
)
def test_what_the_configuration_wants_is_not_what_a_life_began_with(
    home: PlayedHome, key: str, text: str, wanted: str
) -> None:
    """A toolstack that writes it wrong does so in each life."""
    _, seen = read_in(home, ABSENT)
    seen = keyed(seen, "keys", key, text)
    (found,) = invariants.violations(SHAPE, Base.of(seen), step_to(ABSENT), seen)
    assert found.what == f"xenstore: {key} is {text}, not {wanted}"


def test_an_affinity_that_a_life_did_not_begin_with(home: PlayedHome) -> None:
    """None in Xen's word and none in the base are not the same as one that is right."""
    base, seen = read_in(home, THERE)
    base = dataclasses.replace(base, affinity={cpu: bound for cpu, bound in base.affinity.items() if cpu != 1})
    for each in (seen, replaced(seen, "affinity", {cpu: bound for cpu, bound in seen.affinity.items() if cpu != 1})):
        (found,) = invariants.violations(SHAPE, base, step_to(THERE), each)
        assert found.what.startswith("vCPU 1: its affinity")


@pytest.mark.parametrize(("blocks", "fine"), [(2, True), (3, False), (1, False)])
def test_a_size_is_less_by_what_its_blocks_need(home: PlayedHome, blocks: int, fine: bool) -> None:
    """One of 256 MiB has two blocks as it comes, and more after a resize."""
    base, seen = read_in(home, THERE)
    seen = driver(seen, memmap_mib=2 * blocks)
    assert (invariants.violations(SHAPE, base, step_to(THERE), seen) == []) == fine
    seen = changed(seen, "sizes_mib", _1=256 - 2 * blocks)
    assert invariants.violations(SHAPE, base, step_to(THERE), seen) == []


def test_cpus_of_the_home_that_vcpu_set_has_taken(home: PlayedHome) -> None:
    base, _ = read_in(home, ABSENT)
    home.dom0("xl vcpu-set guest2 1")
    seen, fewer = books_of(read_again(home)), State(512, 1)
    assert invariants.violations(SHAPE, base, step_to(fewer), seen) == []
    for field, value in (("availability", {**seen.availability, 1: "online"}), ("cpus", (0, 1)), ("node_cpus", {0: (0, 1)})):
        (found,) = invariants.violations(SHAPE, base, step_to(fewer), replaced(seen, field, value))
        assert "CPU" in found.what


def test_a_cpu_of_an_absent_vnode_that_is_available(home: PlayedHome) -> None:
    base, seen = read_in(home, ABSENT)
    (found,) = invariants.violations(SHAPE, base, step_to(ABSENT), changed(seen, "availability", _3="online"))
    assert found.what == "vCPU 3: availability is online, not offline"


@pytest.mark.parametrize("name", ["attach", "detach", "set"])
def test_an_error_of_what_went_well(home: PlayedHome, name: str) -> None:
    state = ABSENT if name == "detach" else THERE
    base, seen = read_in(home, state)
    (found,) = invariants.violations(
        SHAPE, base, step_to(state, name), keyed(seen, "keys", "guest/node/1/error", "-12 no")
    )
    assert found.what == "vnode 1: an error is left: -12 no"


# Of the third of guest4's vnodes: tests of one with a single vnode say nothing of who looks at the first of them only.
OF_THE_LAST: dict[str, Callable[[Books], Books]] = {
    "vnode 3: an operation is under way": lambda b: replaced(b, "listed", {**b.listed, 3: {**b.listed[3], "operation": {}}}),
    "vnode 3: driver: state": lambda b: driver(b, 3, state="draining"),
    "vnode 3: Xen's table has it with vCPUs": lambda b: changed(b, "vcpus", _3=(3, 4)),
    "xenstore: node/3/start": lambda b: keyed(b, "keys", "node/3/start", "0x0"),
    "numactl -H: node 3": lambda b: changed(b, "sizes_mib", _3=64),
    "vCPU 4: availability": lambda b: changed(b, "availability", _4="offline"),
}


@pytest.mark.parametrize("said", OF_THE_LAST)
def test_each_vnode_is_looked_at(tmp_path: Path, said: str) -> None:
    shape = SHAPES["guest4"]
    home = PlayedHome(shape, tmp_path / "log")
    guest = home.create()
    base, state = Base.of(books_of(guest)), State(512, 2, tuple(There(vnode, 128, 1) for vnode in (1, 2, 3)))
    for vnode in (1, 2, 3):
        home.dom0(f"xl vnode-attach guest4 {vnode} size=128M pnode=1")
    seen = books_of(guest)
    assert invariants.violations(shape, base, step_to(state), seen) == []
    (found,) = invariants.violations(shape, base, step_to(state), OF_THE_LAST[said](seen))
    assert said in found.what


def test_a_page_of_the_guest_too_many(home: PlayedHome) -> None:
    """It is seen in the sum, on its node, and by the host's side."""
    base, seen = read_in(home, THERE)
    more = dataclasses.replace(changed(seen, "pages", _1=seen.pages[1] + 1), total=seen.total + 1)
    found = [each.what for each in invariants.violations(SHAPE, base, step_to(THERE), more)]
    assert [line[-2:] for line in found] == ["+1"] * 3 and all(line.find("page") > 0 for line in found)


def test_a_page_of_the_home_that_changes_places(home: PlayedHome) -> None:
    """No count of the host or of the guest is off, and yet it is not where it was; mem-set may do that."""
    base, seen = read_in(home, THERE)
    moved = changed(seen, "pages", _0=seen.pages[0] - 1, _1=seen.pages[1] + 1)
    moved = changed(moved, "free", _0=seen.free[0] + 1, _1=seen.free[1] - 1)
    found = [each.what for each in invariants.violations(SHAPE, base, step_to(THERE), moved)]
    assert len(found) == 2 and "-1" in found[0] and "+1" in found[1]
    step = step_to(THERE, "mem-set")
    assert invariants.violations(SHAPE, base, step, moved) == []
    assert invariants.violations(SHAPE, base.moved(THERE, moved), step_to(THERE), moved) == []
    assert invariants.violations(SHAPE, base.moved(THERE, moved), step_to(THERE), seen) != []


def test_mem_set_takes_exactly_what_it_says(home: PlayedHome) -> None:
    base, _ = read_in(home, ABSENT)
    home.dom0("xl mem-set guest2 480m")
    less = State(480, 2)
    guest = books_of(read_again(home))
    assert invariants.violations(SHAPE, base, step_to(less, "mem-set"), guest) == []
    (told,) = invariants.violations(SHAPE, base, step_to(less, "mem-set"), replaced(guest, "memory_target_kib", 524288))
    assert told.what == "xenstore: memory/target is 524288, not 491520" and not told.late
    off = dataclasses.replace(guest, total=guest.total + 1)
    assert len(invariants.violations(SHAPE, base, step_to(less, "mem-set"), off)) == 1
    assert invariants.violations(SHAPE, base, step_to(ABSENT, "mem-set"), guest) != []


@pytest.mark.parametrize(("mib", "fine"), [(-3, False), (-2, True), (2, True), (3, False)])
def test_a_home_after_mem_set(home: PlayedHome, mib: int, fine: bool) -> None:
    """It is rounded as it was, and a MiB more: what is taken need not end where a MiB does."""
    base, _ = read_in(home, ABSENT)
    home.dom0("xl mem-set guest2 480m")
    seen = books_of(read_again(home))
    size = base.home_mib - 32 + mib
    found = invariants.violations(SHAPE, base, step_to(State(480, 2), "mem-set"), changed(seen, "sizes_mib", _0=size))
    said = f"numactl -H: node 0 has {size} MiB, not {base.home_mib - 32}"
    assert [(each.what, each.late) for each in found] == ([] if fine else [(said, True)])


def read_again(home: PlayedHome) -> Any:
    from lab.elastic_guest import ElasticGuest

    return ElasticGuest("guest2", home.dom0, home.guest)


def left(seen: Books, kib: int, residual: int) -> Books:
    """Books of a residual that has so much."""
    for field, key, value in (
        ("keys", "guest/node/1/current-kb", kib),
        ("private", "node/1/allowed-kb", kib),
        ("keys", "guest/node/1/residual-kb", residual),
    ):
        seen = keyed(seen, field, key, str(value))
    seen = listed(seen, actual_kib=kib, residual_kib=residual)
    return changed(seen, "driver", _1=Driver("residual", kib, 0))


@pytest.mark.parametrize(
    ("kib", "residual", "fine"),
    [(4096, 4096, True), (0, 0, False), (4096, 0, False), (4096, 8192, False), (1 << 19, 4096, False),
     (53248, 53248, True), (55296, 53248, False), (262144, 262144, False)],
)
def test_a_residual_is_some_of_what_there_was(home: PlayedHome, kib: int, residual: int, fine: bool) -> None:
    base, seen = read_in(home, RESIDUAL)
    found = [each.what for each in invariants.violations(SHAPE, base, step_to(RESIDUAL), left(seen, kib, residual))]
    assert any("a residual of" in line for line in found) == (not fine), found


@pytest.mark.parametrize(("mib", "fine"), [(0, True), (4, True), (5, False)])
def test_a_node_of_a_residual_has_no_more_than_it(home: PlayedHome, mib: int, fine: bool) -> None:
    """How much of it is online nobody knows beforehand."""
    base, seen = read_in(home, RESIDUAL)
    found = invariants.violations(SHAPE, base, step_to(RESIDUAL), changed(seen, "sizes_mib", _1=mib))
    assert [each.what for each in found] == ([] if fine else ["numactl -H: node 1 has 5 MiB, not 2"])


def test_an_error_of_what_was_to_fail_may_stay(home: PlayedHome) -> None:
    base, seen = read_in(home, THERE)
    failed = Step(1, model.wrong("crowded", 1), THERE, THERE, model.Expected((3,)))
    assert invariants.violations(SHAPE, base, failed, keyed(seen, "keys", "guest/node/1/error", "-12 need")) == []


# --- after an xl that was killed -------------------------------------------------------------------------------------------

ATTACH, DETACH, RESIZE = model.attach(1, 256, 1), model.detach(1), model.resize(1, 128)


def at_rest(base: Base, before: State, seen: Books, inner: Operation, shape: Shape = SHAPE) -> list[invariants.Violation]:
    return invariants.at_rest(shape, base, before, seen, inner)


@pytest.mark.parametrize(
    ("before", "inner", "now"),
    [(ABSENT, ATTACH, ABSENT), (ABSENT, ATTACH, THERE), (THERE, DETACH, THERE), (THERE, DETACH, ABSENT),
     (THERE, RESIZE, THERE)],
)
def test_a_vnode_at_rest_is_as_it_was_or_as_it_was_to_be(
    home: PlayedHome, before: State, inner: Operation, now: State
) -> None:
    base, seen = read_in(home, now)
    assert at_rest(base, before, seen, inner) == []


# What the vnode of a resize from 256 to 128 MiB, or of an attach of 256, has not, and the words about it.
@pytest.mark.parametrize(
    ("before", "inner", "now", "said"),
    [
        (THERE, RESIZE, ABSENT, "it has 0 KiB, not 128 to 256 MiB"),
        (State(512, 2, (There(1, 128, 1),)), model.resize(1, 64), THERE, "it has 262144 KiB, not 64 to 128 MiB"),
        (ABSENT, model.attach(1, 512, 1), THERE, "the guest does not say why"),
    ],
)
def test_a_vnode_at_rest_that_is_neither(home: PlayedHome, before: State, inner: Operation, now: State, said: str) -> None:
    base, seen = read_in(home, now)
    assert any(said in each.what for each in at_rest(base, before, seen, inner))


def test_a_vnode_at_rest_that_is_there_has_memory(home: PlayedHome) -> None:
    """None is what it had: then it is absent, or it is neither."""
    base, seen = read_in(home, THERE)
    seen = driver(listed(keyed(seen, "keys", "guest/node/1/current-kb", "0"), actual_kib=0), populated_kib=0)
    assert "vnode 1: it has 0 KiB, not 0 to 256 MiB" in [each.what for each in at_rest(base, ABSENT, seen, ATTACH)]


def half(seen: Books, target: int, error: str | None = "-12 no; -12 no") -> Books:
    """Books of a vnode that stays with 256 MiB as an undo to its target has failed."""
    seen = keyed(keyed(seen, "keys", "guest/node/1/error", error), "keys", "node/1/target-kb", str(target))
    seen = driver(listed(seen, target_kib=target), target_kib=target)
    allowed = max(target, 262144)
    seen = keyed(seen, "private", "node/1/allowed-kb", str(allowed))
    return replaced(seen, "limit_kib", seen.limit_kib + allowed - 262144)


FULL = State(512, 2, (There(1, 512, 1),))


@pytest.mark.parametrize(
    ("before", "inner", "target"),
    [
        (FULL, DETACH, 524288),
        (ABSENT, model.attach(1, 512, 1), 0),
        (State(512, 2, (There(1, 128, 1),)), model.resize(1, 512), 131072),
    ],
)
def test_a_vnode_in_between_where_the_undo_has_failed(home: PlayedHome, before: State, inner: Operation, target: int) -> None:
    base, seen = read_in(home, THERE)
    assert at_rest(base, before, half(seen, target), inner) == []
    other = half(seen, 524288 - target)  # what it was to be: that is to be undone, and not at rest
    assert at_rest(base, before, other, inner) != []
    assert at_rest(base, before, half(seen, target, None), inner) != []


def test_a_residual_at_rest(home: PlayedHome) -> None:
    """There is one where pages are pinned: else they could leave."""
    base, seen = read_in(home, RESIDUAL)
    (found,) = at_rest(base, THERE, seen, DETACH)
    assert found.what == "vnode 1: it is residual, and no program holds its pages"
    assert at_rest(base, holding(THERE), seen, DETACH) == []
    for program in (model.Program(1, "check", 8), model.Program(1, "pin", 0, 2)):
        others = dataclasses.replace(THERE, programs=(program,))
        assert [each.what for each in at_rest(base, others, seen, DETACH)] == [found.what]


def holding(state: State) -> State:
    """The same with a program that holds pages of the vnode."""
    return dataclasses.replace(state, programs=(model.Program(1, "pin", 0, 1),))


@pytest.mark.parametrize(
    ("before", "inner"),
    [
        (THERE, DETACH),
        (THERE, RESIZE),
        (State(512, 2, (There(1, 64, 1),)), model.resize(1, 256)),
        (RESIDUAL, DETACH),
        (RESIDUAL, model.attach(1, 64, 1)),
    ],
)
def test_what_a_residual_at_rest_may_have(home: PlayedHome, before: State, inner: Operation) -> None:
    """As of the larger one of what it was and what it was to be: 24 pages that are pinned, and two blocks."""
    base, seen = read_in(home, RESIDUAL)
    for kib, said in ((53248, []), (55296, ["vnode 1: a residual of 53248 KiB, and 55296 KiB there"])):
        found = [each.what for each in at_rest(base, holding(before), left(seen, kib, 53248), inner)]
        assert [line for line in found if "a residual of" in line] == said


@pytest.mark.parametrize("now", [ABSENT, THERE, RESIDUAL], ids=["absent", "there", "residual"])
def test_an_attach_of_a_residual_at_rest(home: PlayedHome, now: State) -> None:
    """It stays one, or is there; or it leaves, where nothing holds it any more."""
    base, seen = read_in(home, now)
    before = holding(RESIDUAL) if now == RESIDUAL else RESIDUAL
    assert at_rest(base, before, seen, ATTACH) == []


@pytest.mark.parametrize("planted", [name for name in PLANTED if name != "an error is left"])
@pytest.mark.parametrize(("before", "inner"), [(THERE, DETACH), (ABSENT, ATTACH)], ids=["detach", "attach"])
def test_what_is_off_at_rest_is_found_alone(home: PlayedHome, planted: str, before: State, inner: Operation) -> None:
    change, said, late = PLANTED[planted]
    base, seen = read_in(home, THERE)
    found = at_rest(base, before, change(seen), inner)
    assert len(found) == 1 and said in found[0].what and found[0].late == late, found


def test_at_rest_an_error_may_be_left(home: PlayedHome) -> None:
    base, seen = read_in(home, THERE)
    assert at_rest(base, THERE, keyed(seen, "keys", "guest/node/1/error", "-12 no"), DETACH) == []


@pytest.mark.parametrize("field", ["pages", "total"])
def test_a_page_at_rest_is_late(home: PlayedHome, field: str) -> None:
    base, seen = read_in(home, THERE)
    off = changed(seen, "pages", _1=seen.pages[1] + 1) if field == "pages" else replaced(seen, "total", seen.total + 1)
    found = at_rest(base, THERE, off, DETACH)
    assert found and all(each.late for each in found)


def test_at_rest_the_home_is_as_mem_set_has_left_it(home: PlayedHome) -> None:
    base, _ = read_in(home, ABSENT)
    home.dom0("xl mem-set guest2 480m")
    seen = books_of(read_again(home))
    less = State(480, 2)
    base = base.moved(less, seen)
    assert at_rest(base, less, seen, ATTACH) == []
    assert len(at_rest(base, less, replaced(seen, "total", seen.total + 8), ATTACH)) == 1
    assert at_rest(base, ABSENT, seen, ATTACH) != []


OTHERS: dict[str, Callable[[Books], Books]] = {
    "vnode 3: xenstore: target-kb": lambda b: keyed(b, "keys", "node/3/target-kb", "0"),
    "vnode 3: driver: KiB": lambda b: driver(b, 3, populated_kib=4),
    "vnode 2: Xen's table": lambda b: changed(b, "layout", _2="0"),
    "vCPU 4: its affinity": lambda b: changed(b, "affinity", _4=((0, 1), (0, 1))),
    "vCPU 3: availability": lambda b: changed(b, "availability", _3="offline"),
    "vCPU 2: availability": lambda b: changed(b, "availability", _2="online"),
    "the guest has CPUs": lambda b: replaced(b, "cpus", (0, 1, 3)),
}


@pytest.mark.parametrize("said", OTHERS)
def test_at_rest_all_others_are_as_they_were(tmp_path: Path, said: str) -> None:
    """Of three vnodes the first was detached by an xl that was killed."""
    shape = SHAPES["guest4"]
    home = PlayedHome(shape, tmp_path / "log")
    guest = home.create()
    base, before = Base.of(books_of(guest)), State(512, 2, tuple(There(vnode, 128, 1) for vnode in (1, 2, 3)))
    for vnode in (1, 2, 3):
        home.dom0(f"xl vnode-attach guest4 {vnode} size=128M pnode=1")
    assert at_rest(base, before, books_of(guest), DETACH, shape) == []
    home.dom0("xl vnode-detach guest4 1")
    seen = books_of(guest)
    assert at_rest(base, before, seen, DETACH, shape) == []
    (found,) = at_rest(base, before, OTHERS[said](seen), DETACH, shape)
    assert said in found.what
    assert at_rest(base, before, seen, model.detach(2), shape) != []
