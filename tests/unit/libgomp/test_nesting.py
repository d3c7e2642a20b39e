# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Teams inside of teams, teams that are cancelled, and changes while a team is at work: it keeps its threads and places."""

from __future__ import annotations

import pytest

from tests.unit.libgomp import program
from tests.unit.libgomp.gomp_player import CPUS, STOCK
from tests.unit.libgomp.machine import (
    EVERY,
    FIRST_SOCKET,
    FIRST_THREADS,
    NO_CONTAINER,
    SECOND_SOCKET,
    MachinePlayer,
    cpus,
)

BINDINGS = {"unbound": {}, "bound": {"OMP_PLACES": f"{{{CPUS[0]}}},{{{CPUS[-1]}}}"}}
SUM = 999 * 1000 // 2


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> dict[str, str]:
    return BINDINGS[request.param]


@pytest.mark.parametrize(
    ("what", "result"),
    [
        (("levels", "1"), 2),
        (("levels", "2"), 4),
        (("levels", "4"), 16),
        (("serial",), 2),
        (("loop",), SUM),
        (("tasks",), SUM),
        (("cancel", "parallel"), 0),
        (("cancel", "for"), 0),
        (("cancel", "taskgroup"), 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_change_while_a_team_is_at_work(what: tuple[str, ...], result: int, binding: dict[str, str]) -> None:
    """It is followed by the next region of the outermost level: by nobody before that, and with the same threads."""
    reply = program.run("nest.c", *what, env=binding | {"OMP_CANCELLATION": "true"})
    assert reply["inside"] == 0, "a team at work must not be followed for"
    assert reply["followed"]
    assert (reply["first"], reply["after"], reply["again"]) == (2, 1, 2)
    assert reply["kept"] == 2
    assert reply["result"] == result


# Places, kinds of binding, and numbers of threads, of the outer and the inner teams.
NESTED = {
    "cores spread close": {"OMP_PLACES": "cores", "OMP_PROC_BIND": "spread,close", "OMP_NUM_THREADS": "4,2"},
    "threads spread spread": {"OMP_PLACES": "threads", "OMP_PROC_BIND": "spread,spread", "OMP_NUM_THREADS": "2,2"},
    "sockets close primary": {"OMP_PLACES": "sockets", "OMP_PROC_BIND": "close,primary", "OMP_NUM_THREADS": "2,3"},
    "list": {"OMP_PLACES": "{0:2}:8:2", "OMP_PROC_BIND": "spread,close", "OMP_NUM_THREADS": "3,2"},
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_places_are_those_of_stock_under_taskset(name: str) -> None:
    sets = (EVERY, FIRST_SOCKET, FIRST_THREADS, SECOND_SOCKET, EVERY & ~cpus(3, 11), EVERY)
    of_stock = {}
    for usable in sets:
        with MachinePlayer(None, lib=STOCK, env=NESTED[name], taskset=usable) as p:
            of_stock[usable] = p.do("nested")
    with MachinePlayer(cpus(0), env=NESTED[name] | {"OMP_DYNAMIC": "true"}) as p:
        p.run()
        for usable in sets:
            p.set(usable)
            assert p.do("nested") == of_stock[usable], f"usable {usable:x}"


@pytest.mark.parametrize("places", ["threads", "sockets"])
def test_places_whose_cpus_have_gone_are_no_reason_to_end(places: str) -> None:
    """The node goes while the outer team is at work, after the grace; inner teams still have its places."""
    with MachinePlayer(EVERY, env={"OMP_PLACES": places, "OMP_PROC_BIND": "spread,close"}) as p:
        p.do("nested_wait")
        p.write_state(FIRST_SOCKET, NO_CONTAINER)
        assert p.do("go on") == {"inner": 4}
        assert p.do("tasks")["cpus"]
        p.set(FIRST_SOCKET)
        assert p.team() == 8
        assert all(mask & SECOND_SOCKET == 0 for mask in p.masks())
