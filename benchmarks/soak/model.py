# SPDX-License-Identifier: GPL-2.0
"""What a guest is while it is soaked, and what an operation makes of it: plain values and functions, no machine.

`after(state, operation)` is the state that the operation has to lead to, and `expected(state, operation)` what xl has to say of
it. An operation whose own end is open, as that of an xl that is killed half-way, carries its clean-up with it: what it was to
lead to, or what was before. So each state is known before anything runs.

Amounts are those of one guest: MiB of memory, numbers of vnodes, pnodes and vCPUs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Literal

# Exit statuses of xl vnode-*, as in xl-vnode(1).
DONE, USAGE, REFUSED, RESIDUAL, UNSETTLED = 0, 2, 3, 5, 6
KILLED = 128 + 9

EXTENT_MIB = 2


@dataclasses.dataclass(frozen=True)
class Vnode:
    """An elastic vnode as the guest's configuration declares it; `pnode` None: it names none."""

    number: int
    max_mib: int
    pnode: int | None
    cpus: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Shape:
    """A guest's configuration. `spare_mib`: what of a physical node is free for elastic vnodes in any case."""

    config: str
    home_mib: int
    home_cpus: int
    vnodes: tuple[Vnode, ...]
    spare_mib: Mapping[int, int]

    @property
    def name(self) -> str:
        """The guest's name for xl."""
        return self.config.removesuffix(".cfg")

    def vnode(self, number: int) -> Vnode:
        """One of them. Raises StopIteration if there is none of that number."""
        return next(vnode for vnode in self.vnodes if vnode.number == number)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("guest2.cfg", 512, 2, (Vnode(1, 512, 1, (2, 3)),), {0: 128, 1: 1024}),
        Shape(
            "guest4.cfg",
            512,
            2,
            (Vnode(1, 256, 1, (2,)), Vnode(2, 256, None, (3,)), Vnode(3, 128, None, (4,))),
            {0: 128, 1: 1024},
        ),
    )
}


@dataclasses.dataclass(frozen=True)
class There:
    """An elastic vnode that has memory: how much, from which pnode. Of a residual nobody knows beforehand how much is left."""

    number: int
    mib: int
    pnode: int
    residual: bool = False


# Programs in the guest: MiB of memory that each takes for a MiB of its size. `pin` holds pages of a vnode where they are;
# `near` has its memory on one, from where it moves, and `fork`, `lock` and `share` may have; `crowd` takes all that is free but
# for its size, whatever the kernel needs.
FOOTPRINT = {"check": 1, "fork": 2, "lock": 1, "share": 1, "register": 2, "near": 1, "pin": 0, "crowd": 1}
PINNED_PAGES = 24
MOVABLE = ("fork", "lock", "near", "share")  # whose memory can be on a vnode, and leave it

# A crowd leaves so small a part of a vnode free, and gives back and takes again a sixteenth of what it has: what is free then
# is less than the vnode is, so that the others cannot hold what it has.
CROWD_PART = 3


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that runs in the guest. `node`: where `pin` has its pages, and one of MOVABLE as long as nothing moves them."""

    number: int
    kind: str
    mib: int
    node: int | None = None


@dataclasses.dataclass(frozen=True)
class State:
    """What a guest is between two operations."""

    home_mib: int
    home_cpus: int
    vnodes: tuple[There, ...] = ()  # by number
    programs: tuple[Program, ...] = ()  # by number

    def vnode(self, number: int) -> There | None:
        """What there is of an elastic vnode."""
        return next((there for there in self.vnodes if there.number == number), None)

    def program(self, number: int) -> Program | None:
        """A program that runs."""
        return next((program for program in self.programs if program.number == number), None)

    def taken_mib(self) -> int:
        """Memory of programs."""
        return sum(program.mib * FOOTPRINT[program.kind] for program in self.programs)

    def crowd(self) -> Program | None:
        """The program that has more memory than the home nodes can hold."""
        return next((program for program in self.programs if program.kind == "crowd"), None)

    def crowded(self) -> bool:
        """Whether there is one."""
        return self.crowd() is not None

    def needed(self, number: int) -> bool:
        """Whether a crowd needs this vnode: the others cannot hold what it has."""
        crowd, there = self.crowd(), self.vnode(number)
        return bool(crowd and there and not there.residual and there.mib >= CROWD_PART * crowd.mib)

    def pinned(self, number: int) -> bool:
        """Whether a program holds pages of this vnode."""
        return any(program.kind == "pin" and program.node == number for program in self.programs)

    def movable(self, number: int) -> list[Program]:
        """Programs that have their memory on this vnode, and can do without it."""
        return [program for program in self.programs if program.kind in MOVABLE and program.node == number]

    def moved(self, number: int) -> State:
        """The same where memory of programs may have left this vnode."""
        programs = tuple(
            dataclasses.replace(each, node=None) if each.kind in MOVABLE and each.node == number else each
            for each in self.programs
        )
        return dataclasses.replace(self, programs=programs)

    def with_vnode(self, there: There) -> State:
        """The same with this vnode as it is here."""
        others = [other for other in self.vnodes if other.number != there.number]
        return dataclasses.replace(self, vnodes=tuple(sorted([*others, there], key=lambda each: each.number)))

    def without_vnode(self, number: int) -> State:
        """The same with this vnode absent."""
        return dataclasses.replace(self, vnodes=tuple(each for each in self.vnodes if each.number != number))


def fresh(shape: Shape) -> State:
    """A guest that has just been created."""
    return State(shape.home_mib, shape.home_cpus)


How = Literal["call", "time", "INT", "TERM", "no-wait"]
Then = Literal["finish", "undo"]

# What an xl calls that is killed at a call: hypercalls, and messages to xenstored.
CALLS = ("ioctl", "write", "sendmsg")
WHOLE = 1000  # `at` is in thousandths: of the calls that such a command makes, or of the time that it takes


@dataclasses.dataclass(frozen=True)
class Operation:
    """One thing that is done. Which fields count depends on `name`:

    attach vnode [mib] [pnode], detach vnode, set vnode mib: xl vnode-*, to its end
    wrong vnode case: one of REFUSALS, which has to be refused and to change nothing
    mem-set mib, vcpu-set cpus: of the home
    start program, stop program
    reboot, recreate: by xl reboot, and by xl destroy and xl create; with `inner`, while that is under way
    cut inner how at then: xl is killed or told to give up half-way, or sent off with --no-wait; then the same again, or the
        opposite. `how`: at a call (`call`, at `at` thousandths of them), at a time, by a signal (at `at` thousandths of it).
        `patient`: vnode-list is asked until nothing is under way before the clean-up; else that follows at once.
    """

    name: str
    vnode: int | None = None
    mib: int | None = None
    pnode: int | None = None
    cpus: int | None = None
    case: str = ""
    program: Program | None = None
    inner: Operation | None = None
    how: How | None = None
    call: str = ""
    at: int = 0
    then: Then | None = None
    patient: bool = True

    def __str__(self) -> str:
        """In words, for people; one line."""
        if self.program:
            where = "" if self.program.node is None else f" on vnode {self.program.node}"
            size = f" {self.program.mib} MiB" if self.program.mib else ""
            size = f", all but{size}" if self.program.kind == "crowd" else size
            return f"{self.name} program {self.program.number}: {self.program.kind}{size}{where}"
        said = [self.name, *([self.case] if self.case else [])]
        said += [f"vnode {self.vnode}"] if self.vnode is not None else []
        said += [f"to {self.mib} MiB"] if self.mib is not None else []
        said += [f"on pnode {self.pnode}"] if self.pnode is not None else []
        said += [f"{self.cpus} vCPUs"] if self.cpus is not None else []
        if self.inner:
            said.append(f"({self.inner})")
        if self.how == "call":
            said.append(f"KILL at {self.at / WHOLE:.1%} of its calls of {self.call}")
        elif self.how == "no-wait":
            said.append("--no-wait")
        elif self.how:
            said.append(f"{'KILL' if self.how == 'time' else self.how} after {self.at / WHOLE:.1%} of its time")
        if self.then:
            said.append(f"then {self.then}{'' if self.patient else ' at once'}")
        return " ".join(said)

    def data(self) -> dict[str, Any]:
        """As plain JSON data, what is not set left out."""
        return {
            key: item
            for key, item in dataclasses.asdict(self).items()
            if item not in (None, "", 0) or (key == "pnode" and item == 0)
        }


def attach(vnode: int, mib: int | None = None, pnode: int | None = None) -> Operation:
    return Operation("attach", vnode, mib, pnode)


def detach(vnode: int) -> Operation:
    return Operation("detach", vnode)


def resize(vnode: int, mib: int) -> Operation:
    return Operation("set", vnode, mib)


def start(program: Program) -> Operation:
    return Operation("start", program=program)


def stop(program: Program) -> Operation:
    return Operation("stop", program=program)


def mem_set(mib: int) -> Operation:
    return Operation("mem-set", mib=mib)


def vcpu_set(cpus: int) -> Operation:
    return Operation("vcpu-set", cpus=cpus)


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A command that has to be refused, with its status and its reason (a regular expression).

    {guest}: the guest's name, {v}: the vnode's number, {over}: MiB, more than it can have. `when`: what the vnode has to be:
    `absent`, `whole` (there, and no residual), `crowd` (that, and a crowd needs it) or `any`.
    """

    words: str
    when: str
    status: int
    reason: str

    def fits(self, state: State, number: int) -> bool:
        """Whether the guest is such that it must be refused."""
        there = state.vnode(number)
        whole = there is not None and not there.residual
        return {
            "any": True,
            "absent": there is None,
            "whole": whole,
            "crowd": state.needed(number),
        }[self.when]


REFUSALS = {
    "detach-absent": Refusal("vnode-detach {guest} {v}", "absent", REFUSED, r"vnode \d+ is absent already"),
    "set-absent": Refusal("vnode-set {guest} {v} 64M", "absent", REFUSED, r"vnode \d+ is absent: attach it"),
    "attach-twice": Refusal("vnode-attach {guest} {v}", "whole", REFUSED, r"vnode \d+ is attached already"),
    "odd-size": Refusal("vnode-attach {guest} {v} size=63M", "absent", USAGE, r"must be a multiple of 2048 KiB"),
    "too-large": Refusal("vnode-set {guest} {v} {over}M", "whole", USAGE, r"must be a multiple of 2048 KiB"),
    "nothing": Refusal("vnode-set {guest} {v} 0", "any", USAGE, r"vnode-detach"),
    "no-pnode": Refusal("vnode-attach {guest} {v} pnode=63", "absent", REFUSED, r"pnode 63 does not exist"),
    "home": Refusal("vnode-detach {guest} 0", "any", REFUSED, r"vnode 0 is a home node"),
    "no-vnode": Refusal("vnode-attach {guest} 63", "any", REFUSED, r"vnode 63 does not exist"),
    "no-size": Refusal("vnode-attach {guest} {v} size=lots", "any", USAGE, r"not a size"),
    "crowded": Refusal("vnode-detach {guest} {v}", "crowd", REFUSED, r"need \d+ KiB, free elsewhere \d+ KiB"),
}


def wrong(case: str, vnode: int) -> Operation:
    """The operation that types it."""
    return Operation("wrong", vnode, case=case)


STAY = "stay as they are"  # of vCPUs of elastic vnodes, for vcpu-set


@dataclasses.dataclass(frozen=True)
class Expected:
    """What xl may end with, and what it has to say (a regular expression, or nothing).

    `may`: what it may say, too, when it ends with 0 (another one); any other word on standard error is a complaint then.
    """

    statuses: tuple[int, ...] = (DONE,)
    reason: str = ""
    may: str = ""


def expected(shape: Shape, state: State, operation: Operation) -> Expected:
    """What the command of an operation must end with; of a `cut` one that is open."""
    if operation.name == "wrong":
        case = REFUSALS[operation.case]
        return Expected((case.status,), case.reason)
    if operation.name == "detach" and operation.vnode is not None and state.pinned(operation.vnode):
        return Expected((RESIDUAL,), r"\d+ KiB could not leave: ")
    if operation.name == "vcpu-set" and operation.cpus is not None:  # of a residual nobody knows whether it asks for that
        asks = _asks_elastic(shape, state, operation.cpus)
        return Expected((DONE,), STAY if asks else "", STAY if any(there.residual for there in state.vnodes) else "")
    return Expected()


def _asks_elastic(shape: Shape, state: State, cpus: int) -> bool:
    """Whether vcpu-set asks a vCPU of an elastic vnode to be other than it is. Of a residual nobody knows how they are."""
    for vnode in shape.vnodes:
        there = state.vnode(vnode.number)
        if (there is None or not there.residual) and any((cpu < cpus) != (there is not None) for cpu in vnode.cpus):
            return True
    return False


def after(shape: Shape, state: State, operation: Operation) -> State:
    """The state that an operation has to lead to."""
    name = operation.name
    if name == "cut":
        assert operation.inner is not None
        assert operation.inner.vnode is not None
        undone = state.moved(operation.inner.vnode) if operation.inner.name != "attach" else state
        return after(shape, state, operation.inner) if operation.then == "finish" else undone
    if name in ("attach", "detach", "set"):
        assert operation.vnode is not None
        return _after_vnode(shape, state, operation, operation.vnode)
    return _after_other(shape, state, operation)


def _after_other(shape: Shape, state: State, operation: Operation) -> State:
    new = state
    if operation.name == "mem-set":
        assert operation.mib is not None
        new = dataclasses.replace(state, home_mib=operation.mib)
    elif operation.name == "vcpu-set":
        assert operation.cpus is not None
        new = dataclasses.replace(state, home_cpus=min(operation.cpus, shape.home_cpus))
    elif operation.name in ("start", "stop"):
        assert operation.program is not None
        others = [each for each in state.programs if each.number != operation.program.number]
        programs = [*others, operation.program] if operation.name == "start" else others
        new = dataclasses.replace(state, programs=tuple(sorted(programs, key=lambda each: each.number)))
    elif operation.name == "recreate":
        new = fresh(shape)
    elif operation.name == "reboot":  # which keeps what vcpu-set has set; elastic vnodes are absent in each new life
        new = dataclasses.replace(fresh(shape), home_cpus=state.home_cpus)
    else:
        assert operation.name == "wrong", operation.name
    return new


def _after_vnode(shape: Shape, state: State, operation: Operation, number: int) -> State:
    there = state.vnode(number)
    if operation.name == "detach":
        if state.pinned(number):
            assert there is not None
            return state.moved(number).with_vnode(dataclasses.replace(there, residual=True))
        return state.moved(number).without_vnode(number)
    declared = shape.vnode(number)
    if operation.name == "set":
        assert there is not None and operation.mib is not None
        return state.moved(number).with_vnode(dataclasses.replace(there, mib=operation.mib))
    pnode = there.pnode if there else declared.pnode if operation.pnode is None else operation.pnode
    assert pnode is not None, "the plan names a pnode where the configuration does not"
    return state.with_vnode(There(number, operation.mib or declared.max_mib, pnode))


def opposite(shape: Shape, state: State, operation: Operation) -> Operation:
    """What an operator types to undo an operation on a vnode that was begun in this state and has stopped half-way.

    An attach that undoes a detach gives back what that took; one that comes when the detach has ended has to say what that
    was, unless it is what the configuration declares.
    """
    assert operation.vnode is not None
    there = state.vnode(operation.vnode)
    if operation.name == "attach":
        return detach(operation.vnode)
    assert there is not None
    if operation.name == "set":
        return resize(operation.vnode, there.mib)
    declared = shape.vnode(operation.vnode)
    return attach(
        operation.vnode,
        None if there.mib == declared.max_mib else there.mib,
        None if there.pnode == declared.pnode else there.pnode,
    )


def prologue(shape: Shape, state: State) -> list[Operation]:
    """Operations that bring a fresh guest into a state, for who replays from the middle of a plan.

    A residual is made by a program that pins pages: it is the last of the numbers, and ended if the state has none.
    """
    found: list[Operation] = []
    for there in state.vnodes:
        found.append(attach(there.number, there.mib, there.pnode))
    pins = {program.node: program for program in state.programs if program.kind == "pin"}
    helpers: list[Program] = []
    for there in state.vnodes:
        if there.residual and there.number not in pins:
            helpers.append(Program(PROLOGUE_PROGRAM + there.number, "pin", 0, there.number))
    found += [start(program) for program in (*state.programs, *helpers)]
    found += [detach(there.number) for there in state.vnodes if there.residual]
    found += [stop(program) for program in helpers]
    if state.home_cpus != shape.home_cpus:
        found.append(vcpu_set(state.home_cpus))
    if state.home_mib != shape.home_mib:
        found.append(mem_set(state.home_mib))
    return found


PROLOGUE_PROGRAM = 90


def led_to(shape: Shape, state: State, operations: Iterable[Operation]) -> State:
    """The state after some operations."""
    for operation in operations:
        state = after(shape, state, operation)
    return state
