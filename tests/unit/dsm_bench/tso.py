# SPDX-License-Identifier: GPL-2.0
"""x86-TSO, worked out from its definition: what a few threads of a few instructions can see, all of it.

The machine is that of Sewell et al., "x86-TSO", CACM 2010: one memory, a FIFO of stores for each thread, which reads its own
newest one, and drains at any time; MFENCE and LOCKed instructions wait until theirs is empty. What is not temporal is as weak
as SDM 3A, 8.2.2 and 11.3.1, and Raad et al., "Extending Intel-x86 Consistency and Persistency", POPL 2022, have it: such a
store overtakes, and is overtaken by, whatever is of another address and has no SFENCE between; SFENCE lets loads pass.

Nothing here knows of dsm_litmus: instructions are words, "store x 1", "load y", "exchange x 1", "add y", "nt x 1", "mfence",
"sfence". "add" is LOCK XADD of 0, which is a load.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

SFENCE = ("", 0, False)


@dataclasses.dataclass(frozen=True)
class _Thread:
    """`left`: its instructions; `stores`: (address, value, is it not temporal?), the oldest first; `loaded`: in order."""

    left: tuple[str, ...]
    stores: tuple[tuple[str, int, bool], ...] = ()
    loaded: tuple[int, ...] = ()

    def drains(self) -> Iterator[int]:
        """Stores that may come to memory next, by their numbers."""
        for number, (address, _, loose) in enumerate(self.stores):
            before = self.stores[:number]
            if (address, _, loose) == SFENCE:
                if not before:
                    yield number
            elif SFENCE in before or any(other == address for other, _, _ in before):
                continue
            elif loose or not any(not loose_too for _, _, loose_too in before):
                yield number

    def steps(self, memory: dict[str, int]) -> Iterator[tuple[_Thread, dict[str, int]]]:
        """What it and memory can be after one step."""
        for number in self.drains():
            address, value, _ = self.stores[number]
            rest = (*self.stores[:number], *self.stores[number + 1 :])
            yield dataclasses.replace(self, stores=rest), {**memory, **({address: value} if address else {})}
        if not self.left:
            return
        name, *words = self.left[0].split()
        then = dataclasses.replace(self, left=self.left[1:])
        if name in ("store", "nt"):
            yield dataclasses.replace(then, stores=(*self.stores, (words[0], int(words[1]), name == "nt"))), memory
        elif name == "sfence":
            yield dataclasses.replace(then, stores=(*self.stores, SFENCE)), memory
        elif name == "load":
            own = [value for address, value, _ in self.stores if address == words[0]]
            yield dataclasses.replace(then, loaded=(*self.loaded, own[-1] if own else memory[words[0]])), memory
        elif self.stores:
            return
        elif name == "mfence":
            yield then, memory
        elif name == "add":
            yield dataclasses.replace(then, loaded=(*self.loaded, memory[words[0]])), memory
        elif name == "exchange":
            yield then, {**memory, words[0]: int(words[1])}
        else:
            raise ValueError(f"no such instruction: {self.left[0]}")


def outcomes(threads: Sequence[Sequence[str]]) -> set[tuple[int, ...]]:
    """All that can be: what each has loaded, thread by thread, and then x and y in the end."""
    todo = [(tuple(_Thread(tuple(each)) for each in threads), (0, 0))]
    seen = set(todo)
    found = set()
    while todo:
        state, (x, y) = todo.pop()
        if not any(each.left or each.stores for each in state):
            found.add((*(value for each in state for value in each.loaded), x, y))
        for number, each in enumerate(state):
            for thread, memory in each.steps({"x": x, "y": y}):
                now = (*state[:number], thread, *state[number + 1 :]), (memory["x"], memory["y"])
                if now not in seen:
                    seen.add(now)
                    todo.append(now)
    return found
