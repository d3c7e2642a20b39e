# SPDX-License-Identifier: GPL-2.0
"""The plugin's file, names of addresses, and pages with those who touch them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab import bounce
from lab.bounce import Row, Symbols, Touch
from lab.errors import Malformed

PERCPU = (0xFFFF88801F400000, 0xFFFF88801F500000)
JIFFIES, LOCK, TIMEKEEPER, TICK = 0xFFFFFFFF81A06980, 0xFFFFFFFF81A06A00, 0xFFFFFFFF81C3CA00, 0xFFFFFFFF81100040

FILE: dict[str, Any] = {
    "hosts": [0, 1],
    "lost": 2,
    "beyond": 3,
    "percpu": list(PERCPU),
    "faults": [[1, 0, 4], [9, 0, 2], [0, 0, 0], [0, 0, 0]],
    "rows": [
        [0, "upgrade", 0x1A06, TICK, JIFFIES, 4],
        [1, "read", 0x1A06, TICK, JIFFIES, 5],
        [1, "upgrade", 0x1A06, TICK + 8, LOCK + 2, 2],
        [1, "read", 0x1C3C, 0x401000, TIMEKEEPER, 3],
    ],
}

MAP = f"""\
0000000000000000 D __per_cpu_start
0000000000000000 D fixed_percpu_data
0000000000021a00 D runqueues
000000000002c000 D __per_cpu_end
ffffffff81000000 T _text
{TICK - 0x40:016x} t tick_periodic
{JIFFIES:016x} D jiffies_64
{JIFFIES:016x} D jiffies
{LOCK:016x} D jiffies_lock
{TIMEKEEPER:016x} b tk_core
ffffffff81e00000 B _end
"""


def with_(**changes: object) -> str:
    return json.dumps({**FILE, **changes})


def test_a_file() -> None:
    counts = bounce.parse_counts(with_())
    assert counts.hosts == (0, 1) and counts.faults == ((1, 0, 4), (9, 0, 2))
    assert (counts.lost, counts.beyond, counts.percpu) == (2, 3, PERCPU)
    assert counts.rows[1] == Row(1, "read", 0x1A06, TICK, JIFFIES, 5) and len(counts.rows) == 4


FOREIGN = {
    "empty": "",
    "half": with_()[:-5],
    "a list": "[]",
    "no rows": json.dumps({key: FILE[key] for key in FILE if key != "rows"}),
    "no vCPU": with_(hosts=[]),
    "five hosts": with_(hosts=[0, 4]),
    "65 vCPUs": with_(hosts=[0, 1] + [0] * 63, percpu=[]),
    "areas of another number": with_(percpu=[1]),
    "of three kinds are two": with_(faults=[[1, 4], [9, 0, 2], [0, 0, 0], [0, 0, 0]]),
    "rows that are too few": with_(rows=FILE["rows"][:-1]),
    "a row of no host": with_(rows=[[2, *FILE["rows"][0][1:]], *FILE["rows"][1:]]),
    "a row of a host before the first": with_(rows=[[-1, *FILE["rows"][0][1:]], *FILE["rows"][1:]]),
    "a row of no kind": with_(rows=[[0, "look", *FILE["rows"][0][2:]], *FILE["rows"][1:]]),
    "a row of nothing": with_(rows=[*FILE["rows"], [0, "read", 1, 1, 1, 0]]),
    "a short row": with_(rows=[FILE["rows"][0][:5]]),
    "a negative address": with_(rows=[[0, "upgrade", 0x1A06, -1, JIFFIES, 4], *FILE["rows"][1:]]),
    "65 bits": with_(rows=[[0, "upgrade", 0x1A06, 1 << 64, JIFFIES, 4], *FILE["rows"][1:]]),
    "true for one": with_(lost=True),
    "a text": with_(beyond="3"),
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_file_of_the_plugin(text: str) -> None:
    with pytest.raises(Malformed, match="bounce"):
        bounce.parse_counts(text)


NAMES = {
    TICK: "tick_periodic",
    TICK - 0x40: "tick_periodic",
    TICK - 0x41: "_text",
    JIFFIES: "jiffies",
    JIFFIES + 0x7F: "jiffies",
    LOCK: "jiffies_lock",
    TIMEKEEPER + 0x100: "tk_core",
    0xFFFFFFFF81DFFFFF: "tk_core",
    0xFFFFFFFF81E00000: "0xffffffff81e00000",
    0xFFFFFFFF80FFFFFF: "0xffffffff80ffffff",
    PERCPU[0]: "fixed_percpu_data of CPU 0",
    PERCPU[0] + 0x21A08: "runqueues of CPU 0",
    PERCPU[1] + 0x2BFFF: "runqueues of CPU 1",
    PERCPU[1] + 0x2C000: "direct map",
    PERCPU[0] - 1: "direct map",
    0x401000: "user",
    (1 << 47) - 1: "user",
    1 << 47: "0x800000000000",
    0xFFFFC90000000000: "vmalloc, stacks",
    0xFFFFEA0000000000: "struct page",
    0xFFFFFE0000000000: "CPU entry area",
}


@pytest.mark.parametrize("address", NAMES, ids=hex)
def test_name(address: int) -> None:
    assert Symbols(MAP, PERCPU).name(address) == NAMES[address]


def test_per_cpu_areas_that_are_not_known_are_the_direct_map() -> None:
    assert Symbols(MAP).name(PERCPU[0] + 0x21A08) == "direct map"


def test_per_cpu_symbols_of_an_image_that_has_them_at_its_end() -> None:
    """Offsets are added to a symbol's own address, wherever the linker has put it."""
    high = 0xFFFFFFFF82000000
    text = MAP.replace("0000000000000000 D", f"{high:016x} D")
    text = text.replace("0000000000021a00", f"{high + 0x21A00:016x}").replace("000000000002c000", f"{high + 0x2C000:016x}")
    offset = (PERCPU[1] - high) % 2**64
    assert Symbols(text, [0, offset]).name(PERCPU[1] + 0x21A08) == "runqueues of CPU 1"


@pytest.mark.parametrize("text", ["", "nothing here", MAP.replace("_text", "text"), MAP.replace("B _end", "B end")])
def test_what_is_no_kernel(text: str) -> None:
    with pytest.raises(Malformed, match="no kernel"):
        Symbols(text)


def test_pages() -> None:
    counts = bounce.parse_counts(with_())
    first, second = bounce.pages_of(counts, Symbols(MAP, counts.percpu))
    assert (first.gfn, first.faults, second.gfn, second.faults) == (0x1A06, 11, 0x1C3C, 3)
    assert first.of_host(1) == {"read": 5, "write": 0, "upgrade": 2} and first.of_host(0)["upgrade"] == 4
    assert list(first.by_symbol().items()) == [("jiffies", 9), ("jiffies_lock", 2)]
    assert [count for _, count in first.by_touch()] == [5, 4, 2]
    assert first.by_touch()[0][0] == Touch(1, "read", "tick_periodic", "jiffies")
    assert second.touches == {Touch(1, "read", "user", "tk_core"): 3}


def test_the_pages_that_bounce_most_come_first() -> None:
    rows = [[1, "read", gfn, TICK, LOCK, count] for gfn, count in ((7, 1), (9, 3), (5, 1))]
    counts = bounce.parse_counts(with_(rows=rows, faults=[[0, 0, 0], [5, 0, 0]], lost=0))
    assert [page.gfn for page in bounce.pages_of(counts, Symbols(MAP))] == [9, 5, 7]


def test_rows_of_one_symbol_are_one() -> None:
    """Different instructions of a function, and different fields."""
    rows = [[1, "read", 7, TICK + 8 * i, LOCK + 4 * i, 2] for i in range(3)]
    counts = bounce.parse_counts(with_(rows=rows, faults=[[0, 0, 0], [6, 0, 0]], lost=0))
    (page,) = bounce.pages_of(counts, Symbols(MAP))
    assert page.touches == {Touch(1, "read", "tick_periodic", "jiffies_lock"): 6}
