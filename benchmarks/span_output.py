# SPDX-License-Identifier: GPL-2.0
"""What span_kv and span_latency print in a guest: parsers. All text comes from a guest and is not trusted.

What does not have the expected form raises `Malformed`, which names it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.json_lines import count, objects
from lab.errors import Malformed

LAYOUTS = ("packed", "paged")
STEPS = ("load", "mix")
CALLS = ("membarrier", "wake", "nothing", "version", "status")
WRONG = ("torn", "old", "missing", "lost")


@dataclasses.dataclass(frozen=True)
class KvThread:
    """One thread's mix: its operations, and how long one took."""

    cpu: int
    gets: int
    puts: int
    p50_ns: int
    p99_ns: int


@dataclasses.dataclass(frozen=True)
class Kv:
    """A run of span_kv whose values were all right. `ops` and `ns` are those of each step, of all threads."""

    layout: str
    keys: int
    bytes: int
    ops: Mapping[str, int]
    ns: Mapping[str, int]
    threads: Sequence[KvThread]

    def per_second(self, step: str, slow: int) -> float:
        """Operations a second of the hosts' clock, of which the guest's is `slow` times slower."""
        return self.ops[step] / (self.ns[step] / 1e9 * slow)


@dataclasses.dataclass(frozen=True)
class Calls:
    """What span_latency did between CPUs: ns of each call, and of the ways back; `slept`: of both threads' waits.

    `met_ns`: how long both took to meet before each, of "membarrier".
    """

    what: str
    cpus: tuple[int, ...]
    ns: tuple[int, ...]
    back_ns: tuple[int, ...] = ()
    slept: int = 0
    met_ns: tuple[int, ...] = ()


def _thread(data: Mapping[str, Any]) -> KvThread:
    return KvThread(*(count("span_kv", data, field.name) for field in dataclasses.fields(KvThread)))


def parse_kv(text: str) -> Kv:
    """A run that has ended. Raises Malformed, also for one that has found something wrong."""
    start: dict[str, Any] = {}
    result: dict[str, Any] = {}
    steps: dict[str, dict[str, Any]] = {}
    threads: list[KvThread] = []
    for data in objects("span_kv", text):
        event = data.get("event")
        if result or (not start) != (event == "start"):
            raise Malformed(f"span_kv: unexpected event {event!r}")
        if event == "start":
            start = data
        elif event == "step" and data.get("what") in STEPS and data["what"] not in steps:
            steps[data["what"]] = data
        elif event == "thread":
            threads.append(_thread(data))
        elif event == "result":
            result = data
        else:
            raise Malformed(f"span_kv: unexpected line {str(data)[:200]}")
    if not result or tuple(steps) != STEPS or start.get("layout") not in LAYOUTS:
        raise Malformed(f"span_kv: it has not ended: {text[-200:]!r}")
    if wrong := {key: result.get(key) for key in WRONG if result.get(key) != 0}:
        raise Malformed(f"span_kv: wrong values: {wrong}")
    found = Kv(
        start["layout"],
        count("span_kv", start, "keys", 1),
        count("span_kv", start, "bytes", 1),
        {what: count("span_kv", step, "ops", 1) for what, step in steps.items()},
        {what: count("span_kv", step, "ns", 1) for what, step in steps.items()},
        threads,
    )
    said = count("span_kv", start, "threads", 1)
    done = sum(each.gets + each.puts for each in threads)
    told = count("span_kv", result, "gets") + count("span_kv", result, "puts")
    if len(threads) != said or not done == told == found.ops["mix"] or found.ops["load"] != found.keys:
        raise Malformed(
            f"span_kv: {said} threads, of which {len(threads)} say {done} of {told}, {found.ops} operations"
        )
    return found


def _times(data: Mapping[str, Any], key: str) -> tuple[int, ...]:
    values = data.get(key, [])
    if not isinstance(values, list) or not all(type(each) is int and 0 <= each < 2**63 for each in values):
        raise Malformed(f"span_latency: {key} {str(values)[:200]} are no times")
    return tuple(values)


def parse_calls(text: str, what: str) -> Calls:
    """A run of span_latency --what=`what` that has ended. Raises Malformed.

    A way between two CPUs may be shorter than nothing by the error of their clock; the program prints that as a number that
    no time can be.
    """
    found = list(objects("span_latency", text))
    if len(found) != 1 or found[0].get("event") != "calls" or found[0].get("what") != what:
        raise Malformed(f"span_latency: no line of {what}: {text[:200]!r}")
    (data,) = found
    times = {key: _times(data, key) for key in ("cpus", "ns", "back_ns", "met_ns")}
    calls = Calls(what, slept=data.get("slept", 0), **times)
    ways, meets = what == "wake", what == "membarrier"
    if not calls.ns or len(calls.back_ns) != ways * len(calls.ns) or len(calls.met_ns) != meets * len(calls.ns):
        raise Malformed(
            f"span_latency: {what}: {len(calls.ns)} calls, {len(calls.back_ns)} ways back, {len(calls.met_ns)} met before"
        )
    if ways and not 0 <= count("span_latency", data, "slept") <= 2 * len(calls.ns):
        raise Malformed(f"span_latency: {calls.slept} of {len(calls.ns)} waits there and back slept")
    return calls
