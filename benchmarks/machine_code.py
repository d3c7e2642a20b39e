# SPDX-License-Identifier: GPL-2.0
"""Instructions on a way through a function of a program, counted in its machine code.

A way is said by the calls that it makes, in order, and it makes no other. Of all ways through the function that make these
calls the shortest counts. So two builds of a function can be compared though the compiler gave registers, order and
alignment of blocks anew: each count is of one way that does the same.

What a count is not: no time, and nothing was executed. Conditions are not looked at: a way that no data can take counts, too,
if it makes the same calls and is shorter, in both builds alike. Instructions that do nothing (alignment, room for what is
patched at boot) do not count, and what is patched in at boot does not, either.
"""

from __future__ import annotations

import collections
import heapq
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

INDIRECT = "*"  # the name of each function that is called by a pointer
RETURN = "__x86_return_thunk"
THUNK = "__x86_indirect_thunk_"
NOT_FOLLOWED = ("ud", "hlt", "(bad)", "iret", "sysret")  # a mistake is reported there, or it is no function of C

_HEAD = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_LINE = re.compile(r"^ *([0-9a-f]+):\t(\S.*)$")
_TARGET = re.compile(r"^([0-9a-f]+) <([^>+]+)(\+0x[0-9a-f]+)?>")
_NOTHING = re.compile(r"^((data16|cs|ds|es) )*(nop[wl]?\b|xchg +%ax,%ax$)|^(data16|cs|ds|es)( (data16|cs|ds|es))*$")
_PREFIX = re.compile(r"^(?:(?:bnd|notrack|lock|rep|repz|repnz|data16|cs|ds|es) +)*")


class NoWay(ValueError):
    """There is no such function, or no way through it that makes these calls and no other."""


@dataclass(frozen=True)
class Instruction:
    """One instruction, and where it can go on: 0 or more addresses of this function."""

    address: int
    follows: tuple[int, ...] = ()
    call: str = ""  # the function that it calls or jumps to
    counts: bool = True
    conditional: bool = False
    ends: bool = False  # after it the function has returned


@dataclass
class Function:
    name: str
    instructions: dict[int, Instruction] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Its instructions, but those that do nothing."""
        return sum(i.counts for i in self.instructions.values())

    @property
    def calls(self) -> set[str]:
        return {i.call for i in self.instructions.values() if i.call}


@dataclass(frozen=True, order=True)
class Count:
    """Of the instructions on a way, the conditional jumps are `branches`."""

    instructions: int = 0
    branches: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.instructions + other.instructions, self.branches + other.branches)

    def __mul__(self, times: int) -> Count:
        return Count(self.instructions * times, self.branches * times)


def parse(lines: Iterable[str]) -> dict[str, Function]:
    """The functions in what ``objdump -d --no-show-raw-insn`` has printed. A second one of a name is ``NAME#2``."""
    functions: dict[str, Function] = {}
    name, listed = "", list[tuple[int, str]]()

    seen: collections.Counter[str] = collections.Counter()

    def end() -> None:
        if not (name and listed):
            return
        seen[name] += 1
        key = name if seen[name] == 1 else f"{name}#{seen[name]}"
        functions[key] = _function(key, listed)

    for line in lines:
        if head := _HEAD.match(line):
            end()
            name, listed = head[2], []
        elif found := _LINE.match(line.rstrip("\n")):
            listed.append((int(found[1], 16), found[2]))
    end()
    return functions


def disassembled(program: Path) -> dict[str, Function]:
    """The functions of an executable file that has its symbols."""
    with subprocess.Popen(
        ["objdump", "-d", "--no-show-raw-insn", program], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as objdump:
        assert objdump.stdout is not None
        functions = parse(objdump.stdout)
    if objdump.returncode:
        raise subprocess.CalledProcessError(objdump.returncode, objdump.args)
    return functions


def _function(name: str, listed: Sequence[tuple[int, str]]) -> Function:
    function = Function(name)
    inside = {address for address, _ in listed}
    for (address, text), after in zip(listed, [*(a for a, _ in listed[1:]), -1], strict=True):
        function.instructions[address] = _instruction(address, text, after, inside)
    return function


def _instruction(address: int, text: str, after: int, inside: set[int]) -> Instruction:
    """`after` is the address of the next one in the function, or -1; `inside` has all of them."""
    text = text.partition("#")[0].strip()
    next_one = (after,) if after >= 0 else ()
    if _NOTHING.match(text):
        return Instruction(address, next_one, counts=False)
    mnemonic, _, operand = _PREFIX.sub("", text).partition(" ")
    target = _TARGET.match(operand.strip())
    if mnemonic.startswith("j"):
        return _jump(address, mnemonic != "jmp", target, next_one, inside)
    if mnemonic.startswith("call"):
        return Instruction(address, next_one, call=_callee(target))
    if mnemonic.startswith("ret"):
        return Instruction(address, ends=True)
    return Instruction(address, () if mnemonic.startswith(NOT_FOLLOWED) else next_one)


def _callee(target: re.Match[str] | None) -> str:
    return INDIRECT if not target or target[2].startswith(THUNK) else target[2]


def _jump(
    address: int, conditional: bool, target: re.Match[str] | None, next_one: tuple[int, ...], inside: set[int]
) -> Instruction:
    where = int(target[1], 16) if target else -1
    if not conditional:
        if where in inside:
            return Instruction(address, (where,))
        callee = _callee(target)
        return Instruction(address, call="" if callee == RETURN else callee, ends=True)
    # One out of the function is for what is rare: not followed.
    return Instruction(address, (*next_one, where) if where in inside else next_one, conditional=True)


def shortest(functions: Mapping[str, Function], name: str, calls: Sequence[str]) -> Count:
    """The shortest way from the beginning of function `name` to its return that makes `calls`, in order, and no other."""
    function = functions.get(name)
    if function is None:
        raise NoWay(f"{name}: there is no such function")
    start = (min(function.instructions), 0)
    best = {start: Count()}
    queue = [(Count(), start)]
    while queue:
        count, (address, made) = heapq.heappop(queue)
        if count > best[address, made]:
            continue
        here = function.instructions[address]
        if here.call:
            if made == len(calls) or calls[made] != here.call:
                continue
            made += 1
        count += Count(int(here.counts), int(here.conditional))
        if here.ends and made == len(calls):
            return count
        for follower in here.follows:
            step = (follower, made)
            if step not in best or count < best[step]:
                best[step] = count
                heapq.heappush(queue, (count, step))
    raise NoWay(f"{name}: no way through it calls {', '.join(calls) or 'nothing'} and nothing else")
