# SPDX-License-Identifier: GPL-2.0
"""What is done to the guest: a pure function of seed, number of operations and shape.

Each operation is drawn from what is possible in the state that those before it lead to, by a generator of its own that is made
of the seed and the operation's number. So the first operations of a long plan are those of a short one, and a plan can be
replayed from any operation to any other: model.prologue() brings a fresh guest to where it begins. Only random.random() is
used, which Python promises to be the same in each of its versions.

What has not been drawn for long comes next (DUE), or what leads there: some kinds are possible in few states, and a run of some
hundred operations would often have none of them.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from benchmarks.soak import model
from benchmarks.soak.model import (
    CROWD_PART,
    FOOTPRINT,
    REFUSALS,
    RESIDUAL,
    Expected,
    How,
    Operation,
    Program,
    Shape,
    State,
    Then,
    There,
    Vnode,
)

# How often each kind of operation is drawn, where it is possible.
WEIGHTS = {
    "attach": 12,
    "detach": 10,
    "set": 8,
    "cut": 12,
    "wrong": 4,
    "start": 9,
    "stop": 6,
    "crowd": 2,
    "mem-set": 3,
    "vcpu-set": 4,
    "reboot": 2,
    "recreate": 1,
}

# Sizes are drawn in steps of this, which is no multiple of a memory block: blocks are left whole and in pieces.
STEP_MIB = 32

# Programs that the home nodes can hold besides what the guest itself needs, and how many at most.
ROOM_MIB = 96
PROGRAMS = 4
SIZES_MIB = (8, 16, 32)
CROWD_MIB = 256  # a vnode of that size has room for a crowd's part that the others cannot hold

HOME_LESS_MIB = (0, 16, 32)  # of the home, by mem-set: stock's balloon takes it page by page

HOST_CPUS = 4  # xl vcpu-set refuses more than the host has

PIN_MIB = 160  # a vnode of that size has room for pages that have to be on it, besides what programs have there

HOWS: tuple[tuple[int, How], ...] = ((6, "call"), (3, "time"), (2, "INT"), (1, "TERM"), (2, "no-wait"))
LATEST = 1200  # for a kill or a signal, in thousandths of the time that such a command takes: a few come when it has ended

# What a run should have: each operation, each way to cut an xl short, each program, a detach that is refused because the rest
# cannot hold what programs have, and one that moves what a program of each kind has that can be moved.
MOVES = tuple(f"moves {kind}" for kind in model.MOVABLE)
KINDS = (*WEIGHTS, *(how for _, how in HOWS), *(kind for kind in FOOTPRINT if kind not in WEIGHTS), "refused", *MOVES)
DUE = 80  # operations without one of a kind, before it comes next


class Dice:
    """Draws of one operation."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}/{number}")

    def below(self, count: int) -> int:
        """A number from 0 to count - 1."""
        return int(self._random.random() * count)

    def one[T](self, items: Sequence[T]) -> T:
        """One of them."""
        return items[self.below(len(items))]

    def weighted[T](self, items: Sequence[tuple[int, T]]) -> T:
        """One of them, by their weights."""
        point = self.below(sum(weight for weight, _ in items))
        for weight, item in items:
            point -= weight
            if point < 0:
                return item
        raise AssertionError("weights")

    def chance(self, percent: int) -> bool:
        """Yes, so often."""
        return self.below(100) < percent


@dataclasses.dataclass(frozen=True)
class Step:
    """An operation of the plan, from 1, with the states before and after it."""

    number: int
    operation: Operation
    before: State
    after: State
    expected: Expected


def plan(seed: int, count: int, shape: Shape) -> list[Step]:
    """The first `count` operations of a seed."""
    state = model.fresh(shape)
    steps = []
    waited = dict.fromkeys(KINDS, 0)
    for number in range(1, count + 1):
        operation = draw(Dice(seed, number), shape, state, waited)
        after = model.after(shape, state, operation)
        steps.append(Step(number, operation, state, after, model.expected(shape, state, operation)))
        drawn = kinds(state, operation)
        waited = {kind: 0 if kind in drawn else since + 1 for kind, since in waited.items()}
        state = after
    return steps


def draw(dice: Dice, shape: Shape, state: State, waited: Mapping[str, int]) -> Operation:
    """One of the operations that are possible in a state; `waited`: for how many there was none of a kind."""
    for kind in sorted(KINDS, key=lambda kind: -waited[kind]):
        if waited[kind] >= DUE and (operation := _due(kind, dice, shape, state)):
            return operation
    possible = [(WEIGHTS[name], name) for name in WEIGHTS if _possible(name, shape, state)]
    return _DRAWS[dice.weighted(possible)](dice, shape, state)


def kinds(state: State, operation: Operation) -> set[str]:
    """Of which KINDS an operation is in a state."""
    found = {operation.name, operation.how or operation.name}
    found |= {operation.program.kind} if operation.program and operation.name == "start" else set()
    found |= {"refused"} if operation.case == "crowded" else set()
    return found | {f"moves {program.kind}" for program in moves(state, operation)}


def moves(state: State, operation: Operation) -> list[Program]:
    """The programs whose memory an operation has to move: of a detach, where no pages are pinned."""
    number = operation.vnode
    return [] if operation.name != "detach" or number is None or state.pinned(number) else state.movable(number)


def said(step: Step) -> str:
    """What a count of operations calls it: each is counted once."""
    operation, drawn = step.operation, kinds(step.before, step.operation)
    if operation.name == "start" and operation.program:
        return f"start {operation.program.kind}"
    if "refused" in drawn:
        return f"{operation.name} crowded"
    if drawn.intersection(MOVES):
        return f"{operation.name} moved"
    if operation.name == "vcpu-set" and step.after == step.before:
        return "vcpu-set as it is"
    return f"{operation.name} residual" if RESIDUAL in step.expected.statuses else operation.name


# --- what is possible --------------------------------------------------------------------------------------------------


def _absent(shape: Shape, state: State) -> list[Vnode]:
    return [vnode for vnode in shape.vnodes if state.vnode(vnode.number) is None]


def _whole(state: State) -> list[There]:
    """Vnodes that are there, and no residual."""
    return [there for there in state.vnodes if not there.residual]


def _free(state: State) -> list[There]:
    """Those of them that hold nothing that cannot leave."""
    return [there for there in _whole(state) if not state.pinned(there.number)]


def _pinnable(state: State) -> list[There]:
    """Those on which a program can pin pages."""
    return [there for there in _whole(state) if there.mib >= PIN_MIB]


def _hosts(kind: str, state: State) -> list[There]:
    """Those on which a program of this kind can have its memory; one that has to move is not put where pages are pinned."""
    return [there for there in _pinnable(state) if kind == "pin" or not state.pinned(there.number)]


def _leavable(state: State) -> list[There]:
    """Vnodes that can be detached, or are left as a residual. What a crowd needs cannot."""
    return [] if state.crowded() else list(state.vnodes)


def _resizable(shape: Shape, state: State) -> list[There]:
    """A crowd fits only into all that there is."""
    return [] if state.crowded() else [there for there in _free(state) if shape.vnode(there.number).max_mib > STEP_MIB]


def _attachable(shape: Shape, state: State) -> list[Vnode]:
    residual = [
        vnode
        for there in state.vnodes
        if there.residual
        and there.mib + _spare(shape, state, there.pnode) >= (vnode := shape.vnode(there.number)).max_mib
    ]
    return [vnode for vnode in _absent(shape, state) if _pnodes(shape, state, vnode, STEP_MIB)] + residual


def _spare(shape: Shape, state: State, pnode: int) -> int:
    return shape.spare_mib[pnode] - sum(there.mib for there in state.vnodes if there.pnode == pnode)


def _pnodes(shape: Shape, state: State, vnode: Vnode, mib: int) -> list[int]:
    """Physical nodes with room for so much of a vnode, the declared one first."""
    fitting = [pnode for pnode in sorted(shape.spare_mib) if _spare(shape, state, pnode) >= mib]
    return sorted(fitting, key=lambda pnode: pnode != vnode.pnode)


def _room(state: State) -> list[int]:
    """Sizes of programs for which there is room."""
    return [mib for mib in SIZES_MIB if state.taken_mib() + mib * max(model.FOOTPRINT.values()) <= ROOM_MIB]


def _can_crowd(shape: Shape, state: State) -> bool:
    """Only where a vnode is large enough, all of the home is there and of no vnode a residual, and nothing else runs."""
    if state.programs or state.home_mib != shape.home_mib or any(there.residual for there in state.vnodes):
        return False
    return any(there.mib >= CROWD_MIB for there in state.vnodes)


def _possible(name: str, shape: Shape, state: State) -> bool:
    calm = not state.crowded()
    can = {
        "attach": calm and bool(_attachable(shape, state)),
        "detach": bool(_leavable(state)),
        "set": bool(_resizable(shape, state)),
        "cut": calm and bool(_cuttable(shape, state)),
        "wrong": True,
        "start": calm and len(state.programs) < PROGRAMS and bool(_room(state) or _pinnable(state)),
        "stop": bool(state.programs),
        "crowd": _can_crowd(shape, state),
        "mem-set": calm,
        "vcpu-set": True,
        # With memory= below maxmem= libxl would want populate-on-demand, and refuses it with vnuma=.
        "reboot": state.home_mib == shape.home_mib,
        "recreate": True,
    }
    return can[name]


# --- draws -------------------------------------------------------------------------------------------------------------


def _attach_of(dice: Dice, shape: Shape, state: State, vnode: Vnode) -> Operation:
    if state.vnode(vnode.number):  # a residual is attached with all that it can have, on the pnode where it is
        return model.attach(vnode.number)
    room = max(_spare(shape, state, pnode) for pnode in shape.spare_mib)
    sizes = [mib for mib in range(STEP_MIB, vnode.max_mib, STEP_MIB) if mib <= room]
    whole = vnode.max_mib <= room
    mib = vnode.max_mib if whole and (not sizes or dice.chance(60)) else dice.one(sizes)
    pnodes = _pnodes(shape, state, vnode, mib)
    pnode = pnodes[0] if dice.chance(70) else dice.one(pnodes)
    named = None if pnode == vnode.pnode and dice.chance(50) else pnode
    return model.attach(vnode.number, None if mib == vnode.max_mib else mib, named)


def _set_of(dice: Dice, shape: Shape, state: State, there: There) -> Operation:
    room = there.mib + _spare(shape, state, there.pnode)
    sizes = [mib for mib in range(STEP_MIB, shape.vnode(there.number).max_mib + 1, STEP_MIB) if mib <= room]
    return model.resize(there.number, dice.one([mib for mib in sizes if mib != there.mib] or [there.mib]))


def _attach(dice: Dice, shape: Shape, state: State) -> Operation:
    return _attach_of(dice, shape, state, dice.one(_attachable(shape, state)))


def _detach(dice: Dice, shape: Shape, state: State) -> Operation:
    return model.detach(dice.one(_leavable(state)).number)


def _set(dice: Dice, shape: Shape, state: State) -> Operation:
    return _set_of(dice, shape, state, dice.one(_resizable(shape, state)))


def _cuttable(shape: Shape, state: State) -> list[Vnode]:
    """Vnodes on which an operation can stop half-way: no residual, which may be less afterwards than it was before."""
    held = {there.number for there in state.vnodes if there not in _free(state)}
    room = {vnode.number for vnode in _attachable(shape, state)} | {there.number for there in state.vnodes}
    return [vnode for vnode in shape.vnodes if vnode.number in room - held]


def _inner(dice: Dice, shape: Shape, state: State) -> Operation:
    """An operation on one of these."""
    vnode = dice.one(_cuttable(shape, state))
    there = state.vnode(vnode.number)
    if there is None:
        return _attach_of(dice, shape, state, vnode)
    if there in _resizable(shape, state) and dice.chance(40):
        return _set_of(dice, shape, state, there)
    return model.detach(vnode.number)


def _cut(dice: Dice, shape: Shape, state: State) -> Operation:
    return _cut_by(dice, shape, state, dice.weighted(HOWS))


def _cut_by(dice: Dice, shape: Shape, state: State, how: How) -> Operation:
    inner = _inner(dice, shape, state)
    call = dice.one(model.CALLS) if how == "call" else ""
    at = 0 if how == "no-wait" else dice.below(model.WHOLE) if how == "call" else 1 + dice.below(LATEST)
    thens: tuple[Then, ...] = ("finish", "undo")
    return Operation("cut", inner=inner, how=how, call=call, at=at, then=dice.one(thens), patient=dice.chance(60))


def _wrong(dice: Dice, shape: Shape, state: State) -> Operation:
    vnode = dice.one(shape.vnodes)
    fitting = [case for case in REFUSALS if REFUSALS[case].fits(state, vnode.number)]
    if "crowded" in fitting and dice.chance(50):
        return model.wrong("crowded", vnode.number)
    return model.wrong(dice.one([case for case in fitting if case != "crowded"]), vnode.number)


def _can_start(kind: str, state: State) -> bool:
    """Whether there is room for one of these, and a vnode that it can be on."""
    if state.crowded() or len(state.programs) == PROGRAMS or not (kind == "pin" or _room(state)):
        return False
    return kind not in ("pin", "near") or bool(_hosts(kind, state))


def _start(dice: Dice, shape: Shape, state: State) -> Operation:
    sizes, nodes = _room(state), _pinnable(state)
    if nodes and (not sizes or dice.chance(25)):
        return _start_of(dice, state, "pin")
    kinds_ = [kind for kind in FOOTPRINT if kind not in ("pin", "crowd") and _can_start(kind, state)]
    return _start_of(dice, state, dice.one(kinds_))


def _start_of(dice: Dice, state: State, kind: str, on_vnode: bool = False) -> Operation:
    number = next(number for number in range(1, PROGRAMS + 1) if state.program(number) is None)
    hosts = _hosts(kind, state) if kind == "pin" or kind in model.MOVABLE else []
    needs = on_vnode or kind in ("pin", "near")
    node = dice.one(hosts).number if needs or (hosts and dice.chance(75)) else None
    return model.start(Program(number, kind, 0 if kind == "pin" else dice.one(_room(state)), node))


def _stop(dice: Dice, shape: Shape, state: State) -> Operation:
    return model.stop(dice.one(state.programs))


def _crowd(dice: Dice, shape: Shape, state: State) -> Operation:
    return model.start(Program(1, "crowd", max(there.mib for there in state.vnodes) // CROWD_PART))


def _mem_set(dice: Dice, shape: Shape, state: State) -> Operation:
    sizes = [shape.home_mib - less for less in HOME_LESS_MIB]
    return model.mem_set(dice.one([mib for mib in sizes if mib != state.home_mib]))


def _vcpu_set(dice: Dice, shape: Shape, state: State) -> Operation:
    most = min(HOST_CPUS, 1 + max(cpu for vnode in shape.vnodes for cpu in vnode.cpus))
    return model.vcpu_set(dice.one([cpus for cpus in range(1, most + 1) if cpus != state.home_cpus]))


def _reboot(dice: Dice, shape: Shape, state: State) -> Operation:
    return _new_life("reboot", dice, shape, state)


def _recreate(dice: Dice, shape: Shape, state: State) -> Operation:
    return _new_life("recreate", dice, shape, state)


def _new_life(name: str, dice: Dice, shape: Shape, state: State) -> Operation:
    """Half of them while an operation is under way."""
    under_way = not state.crowded() and _cuttable(shape, state) and dice.chance(50)
    return Operation(name, inner=_inner(dice, shape, state) if under_way else None)


_DRAWS = {
    "attach": _attach,
    "detach": _detach,
    "set": _set,
    "cut": _cut,
    "wrong": _wrong,
    "start": _start,
    "stop": _stop,
    "crowd": _crowd,
    "mem-set": _mem_set,
    "vcpu-set": _vcpu_set,
    "reboot": _reboot,
    "recreate": _recreate,
}


# --- what has not been drawn for long ----------------------------------------------------------------------------------


def _due(kind: str, dice: Dice, shape: Shape, state: State) -> Operation | None:
    """An operation of this kind, or one that brings it nearer; None where those do that are drawn."""
    if kind in WEIGHTS:
        if _possible(kind, shape, state):
            return _DRAWS[kind](dice, shape, state)
    elif kind in FOOTPRINT:
        if _can_start(kind, state):
            return _start_of(dice, state, kind)
    elif kind == "refused":
        if needed := [there for there in state.vnodes if state.needed(there.number)]:
            return model.wrong("crowded", dice.one(needed).number)
    elif kind in MOVES:
        detaches = [model.detach(there.number) for there in _leavable(state)]
        if moving := [each for each in detaches if kind in kinds(state, each)]:
            return dice.one(moving)
    elif _possible("cut", shape, state):
        return _cut_by(dice, shape, state, next(how for _, how in HOWS if how == kind))
    return _toward(kind, dice, shape, state)


def _toward(kind: str, dice: Dice, shape: Shape, state: State) -> Operation | None:
    """What brings a kind nearer that is not possible yet."""
    if state.crowded():
        return model.stop(state.programs[0])
    if kind == "reboot":
        return model.mem_set(shape.home_mib)
    if kind in ("crowd", "refused"):
        return _toward_crowd(dice, shape, state)
    return _toward_program(kind, dice, shape, state) if kind in FOOTPRINT or kind in MOVES else None


def _toward_crowd(dice: Dice, shape: Shape, state: State) -> Operation:
    if state.programs:
        return model.stop(state.programs[0])
    if state.home_mib != shape.home_mib:
        return model.mem_set(shape.home_mib)
    return _crowd(dice, shape, state) if _can_crowd(shape, state) else _grow(shape, state, CROWD_MIB)


def _toward_program(kind: str, dice: Dice, shape: Shape, state: State) -> Operation:
    moved = kind.removeprefix("moves ")
    if kind in MOVES and _can_start(moved, state) and _hosts(moved, state):
        return _start_of(dice, state, moved, on_vnode=True)
    if len(state.programs) == PROGRAMS or (kind != "pin" and not _room(state)):
        return model.stop(state.programs[0])
    return _grow(shape, state, PIN_MIB)


def _grow(shape: Shape, state: State, mib: int) -> Operation:
    """On the way to a vnode that is there and has so much: what is in its way ends or leaves first."""
    for there in state.vnodes:
        for program in state.programs:
            if program.kind == "pin" and program.node == there.number:
                return model.stop(program)
    for there in state.vnodes:
        if there.residual:
            return model.detach(there.number)
    for vnode in _absent(shape, state):
        if vnode.max_mib >= mib and (pnodes := _pnodes(shape, state, vnode, vnode.max_mib)):
            return model.attach(vnode.number, None, None if pnodes[0] == vnode.pnode else pnodes[0])
    return model.detach(state.vnodes[0].number)
