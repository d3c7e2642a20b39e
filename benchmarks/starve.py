# SPDX-License-Identifier: GPL-2.0
"""What dsm_starve prints in a guest, who starves by it, and the figures of it.

A host's fair share of what is done in a phase by threads of one kind is that of its CPUs of this kind: a half, with one CPU on
each of two hosts. While a page goes to and fro each host has it for a lease, or for longer where the way is; so what a host
does is not exactly its share. Who has less than a quarter of it starves, and who makes fewer instructions than are asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.json_lines import count, objects
from benchmarks.results import Metric
from lab.errors import Malformed

_count = functools.partial(count, "dsm_starve")

WHATS = ("word", "movs", "xadd", "rep")
PAGES = {"movs": 6, "xadd": 4, "rep": 6}  # that one instruction needs
LEAST_SHARE = 0.25  # of what is fair


@dataclasses.dataclass(frozen=True)
class Thread:
    """What one has done in a phase. `wide`: it makes the instruction, and others take its pages away."""

    cpu: int
    host: int
    wide: bool
    count: int
    waits: int
    longest_us: int


@dataclasses.dataclass(frozen=True)
class Phase:
    """What all have done at the same time."""

    what: str
    threads: Sequence[Thread]

    def __str__(self) -> str:
        hosts = sorted({each.host for each in self.threads if each.wide})
        return self.what + (f" by host {', '.join(map(str, hosts))}" if hosts else "")

    def shares(self, wide: bool) -> dict[int, float]:
        """By host that has threads of this kind: what they have done, of what would be fair, 1."""
        kind = [each for each in self.threads if each.wide == wide]
        whole = sum(each.count for each in kind)
        found = {}
        for host in sorted({each.host for each in kind}):
            own = [each for each in kind if each.host == host]
            found[host] = sum(each.count for each in own) / whole / (len(own) / len(kind)) if whole else 0.0
        return found


def _thread(data: Mapping[str, Any]) -> Thread:
    wide = data.get("wide")
    if data.get("what") not in WHATS or not isinstance(wide, bool) or (wide and data["what"] == "word"):
        raise Malformed(f"dsm_starve: unexpected thread {json.dumps(data)[:200]}")
    cpu, host, done, waits, longest = (_count(data, key) for key in ("cpu", "host", "count", "waits", "longest_us"))
    found = Thread(cpu, host, wide, done, waits, longest)
    if found.waits > found.count:
        raise Malformed(f"dsm_starve: more than all: {found}")
    return found


def parse(text: str) -> tuple[list[Phase], int]:
    """The output of a run that has ended: its phases, and how many words were wrong. Raises Malformed."""
    found: list[tuple[str, list[Thread]]] = []
    wrong = None
    for data in objects("dsm_starve", text):
        line = json.dumps(data)[:200]
        if wrong is not None or data.get("event") not in ("thread", "result"):
            raise Malformed(f"dsm_starve: unexpected line {line!r}")
        if data["event"] == "result":
            wrong = _count(data, "wrong")
            if _count(data, "phases") != len(found):
                raise Malformed(f"dsm_starve: {len(found)} phases, and it says {line}")
            continue
        thread, number = _thread(data), _count(data, "phase")
        if number == len(found):
            found.append((data["what"], []))
        if number != len(found) - 1 or found[-1][0] != data["what"]:
            raise Malformed(f"dsm_starve: a thread of another phase: {line!r}")
        found[-1][1].append(thread)
    if wrong is None:
        raise Malformed("dsm_starve: it has not ended: no result")
    if len({tuple((each.cpu, each.host) for each in threads) for _, threads in found}) > 1:
        raise Malformed(f"dsm_starve: other threads in other phases: {found}")
    return [Phase(what, threads) for what, threads in found], wrong


def starved(phases: Sequence[Phase], instructions: int, words: int) -> list[str]:
    """Who has not got on, and where: a wide thread with fewer `instructions`, another with fewer `words`; a host's share."""
    found = []
    for phase in phases:
        for each in phase.threads:
            least = instructions if each.wide else words
            if each.count < least:
                found.append(f"{phase}: CPU {each.cpu} of host {each.host} has made {each.count}, not {least}")
        for wide in (False, True):
            found += [
                f"{phase}: host {host} has {share:.2f} of its fair share of {'instructions' if wide else 'words'}"
                for host, share in phase.shares(wide).items()
                if share < LEAST_SHARE
            ]
    return found


def untouched(phases: Sequence[Phase], waits: int) -> list[str]:
    """Where pages did not go to and fro: a host none of whose threads has waited for one, `waits` times in a phase."""
    return [
        f"{phase}: host {host} has waited {sum(each.waits for each in phase.threads if each.host == host)} times"
        for phase in phases
        for host in sorted({each.host for each in phase.threads})
        if sum(each.waits for each in phase.threads if each.host == host) < waits
    ]


def metrics(phases: Sequence[Phase], wrong: int, ms: float, slow: int) -> list[Metric]:
    """starve.wrong: words that were not what was written; starve.WHAT: the least share in its phases, of `ms` of the guest's
    clock; the longest wait, in ms of the hosts'."""
    found = [Metric("starve.wrong", float(wrong), "1", "lower", {"phases": float(len(phases))})]
    for what in WHATS:
        these = [phase for phase in phases if phase.what == what]
        if not these:
            continue
        beside: dict[str, float | str] = {"phase_ms": ms * slow, "slow": float(slow)}
        for phase in these:
            for each in phase.threads:
                beside[f"{phase}, CPU {each.cpu}{', instructions' if each.wide else ''}"] = float(each.count)
        wide = what != "word"
        least = min(share for phase in these for share in phase.shares(wide).values())
        longest = max(each.longest_us for phase in these for each in phase.threads if each.wide == wide) / 1000 * slow
        note = f"instructions that need {PAGES[what]} pages at once" if wide else "words of one page"
        found.append(Metric(f"starve.{what}.least_share", least, "1", "higher", beside, note=note))
        found.append(Metric(f"starve.{what}.longest", longest, "ms", "lower", {"slow": float(slow)}))
    return found
