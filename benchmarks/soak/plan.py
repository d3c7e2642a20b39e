# SPDX-License-Identifier: GPL-2.0
"""What is done to the guest: a pure function of seed, number of operations and shape.

Each operation is drawn from what is possible in the state that those before it lead to, by a generator of its own that is made
of the seed and the operation's number. So the first operations of a long plan are those of a short one, and a plan can be
replayed from any operation to any other: model.prologue() brings a fresh guest to where it begins. Only random.random() is
used, which Python promises to be the same in each of its versions.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from benchmarks.soak import model
from benchmarks.soak.model import REFUSALS, Expected, How, Operation, Program, Shape, State, Then, There, Vnode

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
CROWD_MORE_MIB = 8  # a crowd is the home's size and this: more than the home can hold, with or without anything else

HOME_LESS_MIB = (0, 16, 32)  # of the home, by mem-set: stock's balloon takes it page by page

HOST_CPUS = 4  # xl vcpu-set refuses more than the host has

PIN_MIB = 160  # a vnode of that size has room for pages that have to be on it, besides what programs have there

HOWS: tuple[tuple[int, How], ...] = ((6, "call"), (3, "time"), (2, "INT"), (1, "TERM"), (2, "no-wait"))
LATEST = 1200  # for a kill or a signal, in thousandths of the time that such a command takes: a few come when it has ended


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
    for number in range(1, count + 1):
        operation = draw(Dice(seed, number), shape, state)
        after = model.after(shape, state, operation)
        steps.append(Step(number, operation, state, after, model.expected(shape, state, operation)))
        state = after
    return steps


def draw(dice: Dice, shape: Shape, state: State) -> Operation:
    """One of the operations that are possible in a state."""
    kinds = [(WEIGHTS[name], name) for name in WEIGHTS if _possible(name, shape, state)]
    return _DRAWS[dice.weighted(kinds)](dice, shape, state)


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
    """Only where all of the home and all that is declared are there, and nothing else runs.

    What there is beyond the home has to be as large as the home, since that is not all free.
    """
    whole = _free(state)
    full = len(whole) == len(shape.vnodes) and all(there.mib == shape.vnode(there.number).max_mib for there in whole)
    enough = sum(there.mib for there in whole) >= shape.home_mib
    return full and enough and not state.programs and state.home_mib == shape.home_mib


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
    inner = _inner(dice, shape, state)
    how = dice.weighted(HOWS)
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


def _start(dice: Dice, shape: Shape, state: State) -> Operation:
    number = next(number for number in range(1, PROGRAMS + 1) if state.program(number) is None)
    sizes, nodes = _room(state), _pinnable(state)
    if nodes and (not sizes or dice.chance(25)):
        return model.start(Program(number, "pin", 0, dice.one(nodes).number))
    kind = dice.one([kind for kind in model.FOOTPRINT if kind not in ("pin", "crowd")])
    return model.start(Program(number, kind, dice.one(sizes)))


def _stop(dice: Dice, shape: Shape, state: State) -> Operation:
    return model.stop(dice.one(state.programs))


def _crowd(dice: Dice, shape: Shape, state: State) -> Operation:
    return model.start(Program(1, "crowd", shape.home_mib + CROWD_MORE_MIB))


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
