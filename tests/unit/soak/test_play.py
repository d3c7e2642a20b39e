# SPDX-License-Identifier: GPL-2.0
"""Whole runs on a played host: one that does nothing wrong is found right, and each thing that it does wrong is found."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.soak import model
from benchmarks.soak.checks import WANTED
from benchmarks.soak.logs import Logs
from benchmarks.soak.model import SHAPES, Operation, Program, Shape, State
from benchmarks.soak.plan import Step, plan
from benchmarks.soak.play import (
    COUNT_CALLS,
    GONE_S,
    LATE_S,
    MEM_SET_S,
    SETTLED_S,
    TIMED,
    LabHome,
    Outcome,
    Soak,
    cleaned_up,
    complains,
    configuration,
    ended_as_it_may,
    failing,
    parse_calls,
    patience,
    play,
)
from lab.command import Done
from lab.errors import LabError, Malformed
from lab.guest import Guest
from lab.hypervisor import FREE_PAGES, REST_MS
from lab.pipeline.paths import REPO
from tests.unit.soak.played import PlayedHome

SHAPE = SHAPES["guest2"]


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., tuple[PlayedHome, Soak]]:
    """A played host with faults, and a soak of it that does not wait."""

    def make(*faults: str, shape: Shape = SHAPE) -> tuple[PlayedHome, Soak]:
        home = PlayedHome(shape, tmp_path / "alpha-guest2.log", set(faults))
        return home, Soak(home, shape, Logs(tmp_path), late_s=0.0, look_s=0.0)

    return make


def steps_of(*operations: Operation, shape: Shape = SHAPE) -> list[Step]:
    """Steps that do these, on a fresh guest."""
    state, steps = model.fresh(shape), []
    for number, operation in enumerate(operations, 1):
        after = model.after(shape, state, operation)
        steps.append(Step(number, operation, state, after, model.expected(shape, state, operation)))
        state = after
    return steps


def heard(soak: Soak, steps: list[Step]) -> list[Outcome]:
    """The outcomes of a run from its beginning."""
    assert soak.begin(steps[0].before) == []
    outcomes: list[Outcome] = []
    assert play(soak, steps, outcomes.append) == outcomes
    return outcomes


@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("seed", range(4))
def test_nothing_wrong_is_found_where_nothing_is(
    made: Callable[..., tuple[PlayedHome, Soak]], name: str, seed: int
) -> None:
    """With all that a plan has: refusals, residuals, killed commands and new lives."""
    _, soak = made(shape=SHAPES[name])
    outcomes = heard(soak, plan(seed, 120, SHAPES[name]))
    assert [(str(outcome.step.operation), outcome.wrong) for outcome in outcomes if outcome.wrong] == []
    assert len(outcomes) == 120


PROGRAM = Program(1, "fork", 8)
ON = model.attach(1)
OFF = model.detach(1)
PINS = Program(1, "pin", 0, 1)
SENT_ON = Operation("cut", inner=ON, how="no-wait", then="finish")
SENT_OFF = Operation("cut", inner=OFF, how="no-wait", then="undo")
KILLED_OFF = Operation("cut", inner=OFF, how="call", call="ioctl", at=600, then="undo", patient=True)


def early(inner: Operation) -> Operation:
    """It is killed before it has told the guest."""
    return Operation("cut", inner=inner, how="call", call="ioctl", at=100, then="finish", patient=True)


def gives_up(inner: Operation) -> Operation:
    """It is told to, half-way."""
    return Operation("cut", inner=inner, how="TERM", at=500, then="undo", patient=True)


def too_soon(inner: Operation) -> Operation:
    """It is told to, before it has begun."""
    return Operation("cut", inner=inner, how="INT", at=100, then="undo", patient=True)


# What goes wrong, the operations of which the last has to be found wrong, and what is said of it.
PLANTED = (
    ("page", (ON, OFF), r"pnode 1: \d+ pages free or dom0's and \d+ the guest's: -1"),
    ("life", (Operation("recreate"),), r"without the guest, pnode 0 has -1 pages free"),
    ("life", (ON,), r"without the guest, pnode 0 has -1 pages free"),
    ("home", (ON, OFF), r"pnode 1: the guest has \d+ pages of it: \+1"),
    ("stale", (Operation("recreate"),), r"/libxl/\d+ is of no domain that lives"),
    ("stale", (ON,), r"/libxl/\d+ is of no domain that lives"),
    ("line", (ON,), r"alpha-guest2.log: elastic: this should not be"),
    ("complaint", (ON, OFF), r"alpha-guest2.log: .*WARNING: CPU: 0"),
    ("log", (ON,), r"dom0: /var/log/xen/xl-guest2.log: Domain 1 has been destroyed."),
    ("notice", (ON,), r"guest: kernel: memcheck\[9\]: segfault at 0"),
    ("dom0", (ON,), r"dom0: kernel: vif vif-1-0: failed to map"),
    ("tears", (Operation("reboot"),), r"dom0: kernel: vif vif-1-0: failed to unmap"),
    ("dump", (Operation("recreate"),), r"dom0: /var/log/xen/dump: of xl"),
    ("dump", (Operation("reboot"),), r"dom0: /var/log/xen/dump: of xl"),
    ("dump", (ON,), r"dom0: /var/log/xen/dump: of xl"),
    ("lost", (ON,), r"guest: 7 records of the kernel's ring were overwritten before they were read"),
    ("silence", (ON, model.wrong("attach-twice", 1)), r"exit status 0, not 3"),
    ("words", (ON, model.wrong("attach-twice", 1)), r"it does not say 'vnode"),
    ("changes", (ON, model.wrong("attach-twice", 1)), r"Xen's limit is \d+ KiB: \+4"),
    ("half", (ON, KILLED_OFF), r"the guest has CPUs|xenstore: state"),
    ("bytes", (model.start(PROGRAM),), r"program 1 \(fork\) says mapped: page 3"),
    ("ends", (model.start(PROGRAM), ON, OFF), r"program 1 \(fork\) has ended"),
    ("anew", (ON,), r"the guest has started anew"),
    ("mute", (Operation("reboot"),), r"no console has a word of the guest"),
    ("mute", (Operation("recreate"),), r"no console has a word of the guest"),
    ("xen", (Operation("reboot"),), r"alpha-guest2.log: \(XEN\) Failed to tear it down"),
    ("other", (ON, model.start(Program(1, "pin", 0, 1)), OFF), r"vnode 2: -12 no memory"),
    ("killed", (ON, KILLED_OFF), r"exit status 3: "),
    ("nowait", (Operation("reboot", inner=ON),), r"--no-wait: exit status 6"),
    ("nowait", (Operation("cut", inner=ON, how="no-wait", then="finish"),), r"exit status 6: "),
    ("reboot", (Operation("reboot"),), r"LabError: xl reboot guest2: exit status 1: libxl: no"),
    ("garbled", (ON,), r"Malformed: the books: "),
    ("bound", (ON, OFF), r"vCPU 2: its affinity is \(\(2, 3\), \(2, 3\)\), not \(\(0, 1, 2, 3\), "),
    ("table", (ON,), r"vnode 1: Xen's table has it on pnode 0, not 1"),
    ("drift", (ON,), r"home-limit-kb is \d+: \+4"),
    ("kept", (Operation("reboot", inner=ON),), r"a life begins with \d+ pages: \+512"),
    ("stray", (model.wrong("no-vnode", 1),), r"/libxl vnuma/node/63/allowed-kb = '0': no such key"),
    ("between", (ON, KILLED_OFF), r"before the clean-up: pnode 1: \d+ pages free or dom0's and \d+ the guest's: -512"),
    ("idles", (ON, SENT_OFF), r"before the clean-up: vnode 1: xenstore: state is online, not offline"),
    ("idles", (SENT_ON,), r"before the clean-up: vnode 1: xenstore: state is offline, not online"),
    ("mutters", (ON,), r"it ends with 0, and says: libxl: error: the back end has not answered"),
    ("mutters", (Operation("cut", inner=ON, how="no-wait", then="undo"),), r"it ends with 0, and says: libxl: error"),
    ("mutters", (Operation("cut", inner=ON, how="call", call="ioctl", at=600, then="undo"),), r"it ends with 0, and says: "),
    # The clean-up has nothing to do: what is said then is said of the first.
    ("mutters", (Operation("cut", inner=ON, how="call", call="ioctl", at=950, then="finish"),), r"it ends with 0, and says: "),
    ("claims", (early(ON),), r"before the clean-up: vnode 1: xenstore: state is offline, not online"),
    ("claims", (ON, early(OFF)), r"before the clean-up: vnode 1: xenstore: state is online, not offl"),
    ("goes on", (gives_up(ON),), r"before the clean-up: vnode 1: xenstore: state is online, not offline"),
    ("goes on", (ON, gives_up(OFF)), r"before the clean-up: vnode 1: xenstore: state is offline, not online"),
    ("goes on", (ON, gives_up(model.resize(1, 64))), r"the clean-up: vnode 1: xenstore: current-kb is 65536, not 524288"),
    ("fails", (ON, gives_up(OFF)), r"before the clean-up: vnode 1: xenstore: state is offline, not online"),
    ("dies", (ON, gives_up(OFF)), r"before the clean-up: vnode 1: an operation is under way: "),
    ("dies", (gives_up(ON),), r"before the clean-up: vnode 1: an operation is under way: "),
    ("curt", (ON, gives_up(OFF)), r"exit status 6: "),
    ("repairs", (ON, model.mem_set(496)), r"Xen's limit is \d+ KiB: -524288"),
    ("warns", (ON,), r"xl vnode-list says: libxl: warning: vnode 1: the host's side is not in order yet"),
    ("reboots", (Operation("reboot"),), r"it ends with 0, and says: libxl: warning: it takes long"),
    ("sinks", (too_soon(ON),), r"before the clean-up: vnode 1: xenstore: state is online, not offline"),
    ("sticks", (too_soon(ON),), r"before the clean-up: vnode 1: xenstore: state is online, not offl"),
    ("elsewhere", (ON, model.start(Program(1, "lock", 8, 1))), r"program 1 \(lock\): 0 of 2048 pages on node 1"),
    ("libraries", (ON, model.start(Program(1, "lock", 8, 1))), r"program 1 \(lock\): 250 of 2048 pages on node 1"),
    ("keeps", (Operation("recreate"),), r"dom0 has -1025 pages, more or fewer than back ends can have of it"),
    ("keeps", (ON,), r"dom0 has -1025 pages, more or fewer than back ends can have of it"),
    ("sobs", (model.start(PROGRAM), model.stop(PROGRAM)), r"guest: kernel: memcheck\[9\]: failed to go quietly"),
    ("sobs", (model.start(PROGRAM), Operation("reboot")), r"guest: kernel: memcheck\[9\]: failed to go quietly"),
    ("sobs", (model.start(PROGRAM),), r"guest: kernel: memcheck\[9\]: failed to go quietly"),
    ("overruns", (ON,), r"RingLostError: guest: the ring could not be read to its end"),
    ("counts", (ON, model.start(PINS), Operation("recreate")), r"(?s)program 1 \(pin\): .*1 wrong"),
    ("idle", (model.start(PROGRAM), Operation("reboot")), r"program 1 \(fork\): "),
    ("counts", (ON, model.start(PINS)), r"(?s)program 1 \(pin\): .*1 wrong"),
    ("hums", (Operation("reboot", inner=ON),), r"it ends with 0, and says: libxl: warning: this may take long"),
    ("hums", (Operation("recreate", inner=ON),), r"it ends with 0, and says: libxl: warning: this may take long"),
    ("grumbles", (Operation("recreate"),), r"xl destroy: libxl: error: a back end has not gone"),
    ("grumbles", (ON,), r"xl destroy: libxl: error: a back end has not gone"),
    ("unsaid", (Operation("reboot"),), r"Malformed: what guest checks: ''"),
)


@pytest.mark.parametrize(("fault", "operations", "said"), PLANTED, ids=[fault for fault, _, _ in PLANTED])
def test_what_is_planted_is_found(
    made: Callable[..., tuple[PlayedHome, Soak]], fault: str, operations: tuple[Operation, ...], said: str
) -> None:
    """By the operation that it happens in, and by nothing before; without the fault the same goes well."""
    home, soak = made()
    steps = steps_of(*operations)
    assert all(not outcome.wrong for outcome in heard(soak, steps))
    home, soak = made()
    assert soak.begin(steps[0].before) == []
    home.faults.add(fault)
    outcomes = play(soak, steps, lambda outcome: None)
    assert [bool(outcome.wrong) for outcome in outcomes] == [False] * (len(operations) - 1) + [True]
    assert any(re.search(said, line) for line in outcomes[-1].wrong), outcomes[-1].wrong


# What a host does with the end of each guest, and what has to be said of it.
KEEPS = "Xen keeps track of dom0's grants in +1 pages more, which the free ones do not show"
KEPT: tuple[tuple[str, list[str]], ...] = (
    ("grants", []),
    ("grants1", []),
    ("grants grants1", []),
    ("life", ["pnode 0 has -1"]),
    ("grants life", ["pnode 0 has -2", KEEPS]),
    ("grants1 life", ["pnode 0 has -1", "pnode 1 has -1", KEEPS]),
    ("grants life twice", ["pnode 0 has -2", "pnode 1 has +1", KEEPS]),
    # No page is off: one is kept, and one given back twice. The next page that is lost would pass for the first.
    ("grants1 twice", [KEEPS]),
)


@pytest.mark.parametrize(("faults", "said"), KEPT, ids=[faults for faults, _ in KEPT])
def test_pages_that_keep_track_of_dom0s_grants(
    made: Callable[..., tuple[PlayedHome, Soak]], faults: str, said: list[str]
) -> None:
    """They stay, in whichever life a vCPU needs its first; what goes beside them is missed, then and later."""
    fresh = model.fresh(SHAPE)
    home, soak = made()
    assert soak.begin(fresh) == []
    assert soak.anew(fresh) == []
    home.faults |= set(faults.split())
    assert soak.end() == [each if each == KEEPS else f"without the guest, {each} pages free" for each in said]
    if said:
        return
    home.faults.clear()
    assert soak.anew(fresh) == soak.anew(fresh) == []
    home.faults.add("life")
    assert soak.end() == ["without the guest, pnode 0 has -1 pages free"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("stale", r"/libxl/\d+ is of no domain that lives"),
        ("keeps", r"dom0 has -1025 pages, more or fewer than back ends can have of it"),
    ],
)
def test_what_is_left_beside_pages_that_keep_track_of_grants(
    made: Callable[..., tuple[PlayedHome, Soak]], fault: str, said: str
) -> None:
    """The life that a vCPU needs its first page in is looked at as any other."""
    home, soak = made()
    assert soak.begin(model.fresh(SHAPE)) == []
    home.faults |= {"grants", fault}
    (found,) = soak.end()
    assert re.fullmatch(said, found)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        *itertools.product(("idle", "last", "counts"), ("check", "fork", "lock", "share", "register")),
        ("counts", "pin"),
    ],
)
def test_a_program_has_to_have_looked_and_found_nothing(
    made: Callable[..., tuple[PlayedHome, Soak]], fault: str, kind: str
) -> None:
    """One that has not compared a word has found nothing wrong, either."""
    home, soak = made()
    program = Program(1, kind, 8) if kind != "pin" else Program(1, "pin", 0, 1)
    steps = steps_of(ON, model.start(program), model.stop(program))
    assert soak.begin(steps[0].before) == []
    home.faults.add(fault)
    outcomes = play(soak, steps, lambda outcome: None)
    assert [bool(outcome.wrong) for outcome in outcomes] == [False, False, True]
    assert f"program 1 ({kind}): " in outcomes[-1].wrong[0]


@pytest.mark.parametrize("kind", model.MOVABLE)
def test_what_is_to_move_is_there_before_it_does(made: Callable[..., tuple[PlayedHome, Soak]], kind: str) -> None:
    """And is counted: a detach that finds nothing on its node shows nothing of memory that moves."""
    steps = steps_of(ON, model.start(Program(1, kind, 8, 1)), OFF)
    _, soak = made()
    outcomes = heard(soak, steps)
    assert [outcome.moved for outcome in outcomes] == [{}, {}, {kind: 2048}] and outcomes[2].data()["moved"] == {kind: 2048}
    home, soak = made()
    assert soak.begin(steps[0].before) == [] and not any(soak.play(step).wrong for step in steps[:2])
    home.faults.add("elsewhere")
    outcome = soak.play(steps[2])
    assert outcome.wrong == [f"program 1 ({kind}) has 0 pages on node 1 to move"] and outcome.moved == {kind: 0}
    home, soak = made()
    assert soak.begin(steps[0].before) == [] and not any(soak.play(step).wrong for step in steps[:2])
    home.faults.add("libraries")
    assert soak.play(steps[2]).wrong == [f"program 1 ({kind}) has 250 pages on node 1 to move"]


def test_programs_of_a_kind_that_move_are_counted_together(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    programs = [Program(1, "lock", 8, 1), Program(2, "lock", 16, 1), Program(3, "share", 8, 1)]
    _, soak = made()
    outcomes = heard(soak, steps_of(ON, *map(model.start, programs), OFF))
    assert not any(outcome.wrong for outcome in outcomes) and outcomes[-1].moved == {"lock": 2048 + 4096, "share": 2048}


def test_programs_that_a_life_takes_with_it_are_counted(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """Only where an operation is under way: else each is asked what it has found, before."""
    programs = [model.start(Program(number, "check", 8)) for number in (1, 2)]
    home, soak = made()
    outcomes = heard(soak, steps_of(*programs, Operation("reboot"), *programs, Operation("recreate", inner=ON), programs[0]))
    assert [outcome.unasked for outcome in outcomes] == [0, 0, 0, 0, 0, 2, 0] and outcomes[5].data()["unasked"] == 2
    assert len([line for line in home.asked if line.startswith("kill -TERM")]) == 3, "the last one at the end"


def test_a_guest_that_something_is_wrong_with_is_not_asked(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    steps = steps_of(model.start(PROGRAM), ON)
    assert soak.begin(steps[0].before) == []
    home.faults.add("line")
    play(soak, steps, lambda outcome: None)
    assert not any(line.startswith("kill -TERM") for line in home.asked) and home.domid == 0


def test_a_guest_that_another_takes_the_place_of_is_not_asked(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """Its programs may be what is wrong; those of the other one are asked at the end."""
    home, soak = made()
    steps = steps_of(model.start(PROGRAM), model.wrong("detach-absent", 1), ON)
    assert soak.begin(steps[0].before) == []
    home.faults.add("words")
    outcomes = play(soak, steps, lambda outcome: None, keep_going=True)
    assert [bool(outcome.wrong) for outcome in outcomes] == [False, True, False] and home.lives == 3
    assert len([line for line in home.asked if line.startswith("kill -TERM")]) == 1


@pytest.mark.parametrize("at", ["begin", "life", "end"])
@pytest.mark.parametrize(("fault", "name"), [("unlocked", "guest_lockdep"), ("unwatched", "guest_kasan")])
def test_checks_that_are_wanted_have_to_be_on(
    made: Callable[..., tuple[PlayedHome, Soak]], at: str, fault: str, name: str
) -> None:
    """In each life and at the end: what lockdep would have said is missing without a word."""
    home, _ = made(*([fault] if at == "begin" else []))
    soak = Soak(home, SHAPE, Logs(home.log.parent), late_s=0.0, look_s=0.0, wanted=WANTED)
    said = f"{name} is off: this run checks less than it says"
    begun = soak.begin(model.fresh(SHAPE))
    assert begun == ([f"before the first operation: {said}"] if at == "begin" else [])
    if at == "begin":
        return
    assert soak.checks == {"dom0_lockdep": False, "dom0_kasan": False, "guest_lockdep": True, "guest_kasan": True}
    home.faults.add(fault)
    step = steps_of(Operation("reboot") if at == "life" else ON)
    (outcome,) = play(soak, step, lambda outcome: None)
    assert outcome.wrong == [said] and soak.checks[name] is False
    home, soak = made(fault)
    assert not any(outcome.wrong for outcome in heard(soak, step)), "nobody has asked for them"


def test_a_check_that_nobody_knows_is_off(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, _ = made()
    soak = Soak(home, SHAPE, Logs(home.log.parent), late_s=0.0, look_s=0.0, wanted=("guest_lockdeb",))
    said = "guest_lockdeb is off: this run checks less than it says"
    assert soak.begin(model.fresh(SHAPE)) == [f"before the first operation: {said}"]


def test_programs_that_cannot_be_asked(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    steps = steps_of(model.start(PROGRAM), ON)
    assert soak.begin(steps[0].before) == [] and not soak.play(steps[0]).wrong
    home.faults.add("deaf")
    assert soak.play(steps[1]).wrong == ["the programs cannot be asked: connection lost"]


def test_what_the_consoles_say_at_the_end(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """Of the guest's end too, and of a line that has no end; not what was there before."""
    home, soak = made()
    home.say("BUG: of an hour ago")
    assert soak.begin(model.fresh(SHAPE)) == []
    with home.log.open("a", encoding="utf-8") as log:
        log.write("BUG: the last words")
    assert soak.end() == ["alpha-guest2.log: BUG: the last words"]
    assert soak.end() == [], "there is no guest any more"


def test_a_cpu_that_vcpu_set_gives_back_is_brought_up(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """Each that there was not before, and no other."""
    home, soak = made()
    steps = steps_of(model.vcpu_set(1), model.vcpu_set(4))
    assert soak.begin(steps[0].before) == []
    asked = len(home.asked)
    assert all(not soak.play(step).wrong for step in steps)
    cpus = "/sys/devices/system/cpu"
    assert [line for line in home.asked[asked:] if cpus in line and "echo 1" in line] == [f"echo 1 >{cpus}/cpu1/online"]


@pytest.mark.parametrize("patient", [True, False])
def test_an_operator_waits_for_what_is_under_way_or_does_not(
    made: Callable[..., tuple[PlayedHome, Soak]], patient: bool
) -> None:
    home, soak = made()
    steps = steps_of(ON, Operation("cut", inner=OFF, how="call", call="ioctl", at=500, then="undo", patient=patient))
    assert soak.begin(steps[0].before) == [] and not soak.play(steps[0]).wrong
    typed = len(home.typed)
    assert not soak.play(steps[1]).wrong
    killed, next_ = home.typed[typed : typed + 2]
    assert killed.startswith("strace ") and next_.startswith("xl vnode-list" if patient else "xl vnode-attach")


@pytest.mark.parametrize("operation", [Operation("reboot"), Operation("recreate"), ON], ids=str)
def test_what_dom0s_balloon_does_is_nobodys_leak(made: Callable[..., tuple[PlayedHome, Soak]], operation: Operation) -> None:
    """It has fewer pages when a guest ends, or some of another node: together with what is free they are as they were."""
    home, soak = made()
    steps = steps_of(operation, Operation("recreate"), Operation("reboot"))
    assert soak.begin(steps[0].before) == []
    home.faults.add("balloon")
    assert [outcome.wrong for outcome in play(soak, steps, lambda outcome: None)] == [[], [], []]
    assert home.dom0_pages != {0: 261630, 1: 0}, "nothing has moved"


def test_pages_of_dom0_are_counted_from_the_first(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """A back end that keeps a few each time has kept many in the end."""
    home, soak = made()
    steps = steps_of(*[Operation("recreate")] * 8)
    assert soak.begin(steps[0].before) == []
    home.faults.add("balloon")
    outcomes = play(soak, steps, lambda outcome: None)
    assert [bool(outcome.wrong) for outcome in outcomes] == [False] * 6 + [True], "149 each time"
    assert outcomes[6].wrong[0] == "dom0 has -1043 pages, more or fewer than back ends can have of it"


TAKEN = "dom0 has +1025 pages, more or fewer than back ends can have of it"


@pytest.mark.parametrize(("more", "said"), [(1024, []), (1025, [TAKEN])])
def test_pages_that_dom0_takes_are_counted(made: Callable[..., tuple[PlayedHome, Soak]], more: int, said: list[str]) -> None:
    """As those that it gives: the free ones and its own together do not show it."""
    home, soak = made()
    assert soak.begin(model.fresh(SHAPE)) == []
    home.dom0_pages[0] += more
    assert soak.end() == said


@pytest.mark.parametrize("fault", ["moves", ""])
def test_the_host_is_measured_by_two_counts_that_agree(made: Callable[..., tuple[PlayedHome, Soak]], fault: str) -> None:
    """Dom0's balloon can move between two lines of a report, which is then of no moment."""
    home, soak = made(*filter(None, [fault]))
    assert soak.begin(model.fresh(SHAPE)) == []
    assert home.moves == (0 if fault else 4)
    assert [outcome.wrong for outcome in play(soak, steps_of(ON, OFF), lambda outcome: None)] == [[], []]


def test_a_host_that_is_never_at_rest_is_told(
    made: Callable[..., tuple[PlayedHome, Soak]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.soak.play.AGREE_S", 0.0)
    home, soak = made("moves")
    home.moves = 1 << 30
    with pytest.raises(TimeoutError, match="two counts of the host's pages agree"):
        soak.begin(model.fresh(SHAPE))


def test_a_ring_that_is_overwritten_while_it_is_read_is_read_again(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    steps = steps_of(ON, OFF)
    assert soak.begin(steps[0].before) == []
    home.faults.add("overwrites")
    assert [outcome.wrong for outcome in play(soak, steps, lambda outcome: None)] == [[], []]
    assert not home.faults, "nobody has asked the guest"


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("fault", ["claims", "dies"])
def test_one_that_has_ended_by_itself_needs_no_wait(
    made: Callable[..., tuple[PlayedHome, Soak]], fault: str, at_once: bool
) -> None:
    """Nothing is under way then: it is looked at before the clean-up in any case, and before vnode-list puts it in order."""
    inner = early(ON) if fault == "claims" else gives_up(ON)
    steps = steps_of(dataclasses.replace(inner, patient=not at_once))
    home, soak = made()
    assert soak.begin(steps[0].before) == []
    home.faults.add(fault)
    typed = len(home.typed)
    outcome = soak.play(steps[0])
    assert outcome.wrong and all(line.startswith("before the clean-up: ") for line in outcome.wrong)
    assert home.typed[typed + 1].startswith("\nname=")


def test_what_programs_have_found_is_told_though_the_ring_cannot_be_read(
    made: Callable[..., tuple[PlayedHome, Soak]],
) -> None:
    home, soak = made()
    steps = steps_of(ON, model.start(PINS), Operation("reboot"))
    assert soak.begin(steps[0].before) == [] and not any(soak.play(step).wrong for step in steps[:2])
    home.faults |= {"counts", "overruns"}
    wrong = soak.play(steps[2]).wrong
    assert "1 wrong" in wrong[0] and wrong[1].startswith("RingLostError: guest: ")


def test_a_grant_of_dom0s_within_a_life(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """A page that stays, and is Xen's: no more than one, and none that is lost beside it, then and at the end."""
    steps = steps_of(ON, OFF, ON, OFF)
    home, soak = made()
    assert soak.begin(steps[0].before) == []
    home.faults.add("grants now")
    assert not soak.play(steps[0]).wrong
    home.faults.clear()
    assert not any(soak.play(step).wrong for step in steps[1:]) and soak.end() == []
    home, soak = made("grants now")
    assert soak.begin(steps[0].before) == [] and not soak.play(steps[0]).wrong
    home.faults.clear()
    home.lost[1] += 1
    assert re.search(r"pnode 1: \d+ pages free or dom0's .*: -1", soak.play(steps[1]).wrong[0]), "it was allowed for once"
    home, soak = made()
    assert soak.begin(steps[0].before) == [] and not any(soak.play(step).wrong for step in steps[:2])
    home.faults |= {"grants now"}
    home.lost[1] += 1
    assert [line for line in soak.play(steps[2]).wrong if re.search(r"pnode 1: \d+ pages free or dom0's .*: -2", line)]


def test_a_life_is_judged_by_two_counts_that_agree(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """Dom0's balloon can move between two lines of the first, as it can without a guest."""
    home, soak = made()
    steps = steps_of(Operation("recreate"), ON)
    assert soak.begin(steps[0].before) == []
    home.faults.add("torn")
    assert [outcome.wrong for outcome in play(soak, steps, lambda outcome: None)] == [[], []]
    assert not home.torn, "nobody has asked"


def test_a_life_is_measured_when_the_host_is_at_rest(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    assert soak.begin(model.fresh(SHAPE)) == []
    typed = len(home.typed)
    assert not soak.play(steps_of(Operation("reboot"))[0]).wrong
    asked = [line for line in home.typed[typed:] if line.startswith(("\nname=", f"{FREE_PAGES} {REST_MS} "))]
    assert asked[0].startswith(FREE_PAGES) and asked[1].startswith("\nname=")


def test_an_end_that_fails_is_told(
    made: Callable[..., tuple[PlayedHome, Soak]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def destroy(self: PlayedHome, guest: object) -> None:
        raise LabError("it does not end")

    _, soak = made()
    steps = steps_of(ON)
    assert soak.begin(steps[0].before) == []
    monkeypatch.setattr(PlayedHome, "destroy", destroy)
    (outcome,) = play(soak, steps, lambda outcome: None)
    assert outcome.wrong == ["the end of the guest: LabError: it does not end"]


def test_a_run_ends_at_the_first_thing_that_is_wrong(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    steps = steps_of(ON, OFF, ON, OFF)
    assert soak.begin(steps[0].before) == []
    home.faults.add("page")
    assert [outcome.step.number for outcome in play(soak, steps, lambda outcome: None)] == [1, 2]
    assert home.domid == 0, "the guest still runs"


def test_it_goes_on_with_a_new_guest_if_that_is_asked_for(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """In the state that the wrong operation should have led to; each violation is told where it was."""
    home, soak = made()
    steps = steps_of(ON, model.wrong("attach-twice", 1), model.resize(1, 64), model.wrong("attach-twice", 1), OFF)
    assert soak.begin(steps[0].before) == []
    home.faults.add("words")
    outcomes = play(soak, steps, lambda outcome: None, keep_going=True)
    assert [bool(outcome.wrong) for outcome in outcomes] == [False, True, False, True, False]
    assert home.lives == 4 and home.domid == 0


def test_it_does_not_go_on_where_a_new_guest_is_wrong_too(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    steps = steps_of(ON, OFF, ON, OFF)
    assert soak.begin(steps[0].before) == []
    home.faults.add("page")
    outcomes = play(soak, steps, lambda outcome: None, keep_going=True)
    assert len(outcomes) == 2 and any("without the guest" in line for line in outcomes[-1].wrong)


def test_an_operation_that_never_ends_is_told(
    made: Callable[..., tuple[PlayedHome, Soak]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.soak.play.SETTLED_S", 0.0)
    _, soak = made("hangs")
    outcomes = heard(soak, steps_of(ON, KILLED_OFF))
    assert any("nothing is under way any more: not so" in line for line in outcomes[-1].wrong)


def operators(typed: list[str]) -> list[str]:
    """What an operator types, without the questions."""
    return [line for line in typed if "xl " in line and "xl dmesg" not in line]


@pytest.mark.parametrize("number", [30, 60, 90])
def test_a_part_of_a_plan_begins_where_it_is(made: Callable[..., tuple[PlayedHome, Soak]], number: int) -> None:
    """What is typed for the operation itself is the same as in the whole run."""
    steps = plan(2, 120, SHAPE)
    home, soak = made()
    assert soak.begin(steps[number - 1].before) == []
    begun = len(home.typed)
    assert not play(soak, steps[number - 1 : number], lambda outcome: None)[0].wrong
    part = operators(home.typed[begun:])
    home, soak = made()
    assert soak.begin(steps[0].before) == []
    for step in steps[: number - 1]:
        assert not soak.play(step).wrong
    begun = len(home.typed)
    assert not soak.play(steps[number - 1]).wrong
    assert operators(home.typed[begun:]) == part


def test_what_was_wrong_with_the_beginning_is_said(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    _, soak = made("line")
    found = soak.begin(State(512, 2, (model.There(1, 512, 1),)))
    assert len(found) == 1 and "this should not be" in found[0]
    assert found and all(line.startswith("before the first operation: ") for line in found)


def test_what_is_typed(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    steps = steps_of(
        model.attach(1, 64, 0),
        model.resize(1, 96),
        model.mem_set(480),
        model.vcpu_set(1),
        model.wrong("too-large", 1),
        Operation("cut", inner=OFF, how="call", call="sendmsg", at=500, then="undo"),
        Operation("cut", inner=OFF, how="time", at=1500, then="finish", patient=False),
        Operation("cut", inner=ON, how="TERM", at=70, then="finish", patient=False),
        Operation("cut", inner=OFF, how="INT", at=1, then="undo", patient=False),
        Operation("cut", inner=OFF, how="no-wait", then="finish", patient=False),
        Operation("cut", inner=ON, how="call", call="write", at=250, then="finish", patient=False),
    )
    assert all(not outcome.wrong for outcome in heard(soak, steps))
    typed = [
        line for line in home.typed if "guest2" in line and not line.startswith("\nname=") and "vnode-list" not in line
    ]
    assert typed == [
        "strace -f -qq -o /tmp/calls -e trace=ioctl,write,sendmsg xl vnode-attach guest2 1",
        "strace -f -qq -o /tmp/calls -e trace=ioctl,write,sendmsg xl vnode-set guest2 1 256M",
        "strace -f -qq -o /tmp/calls -e trace=ioctl,write,sendmsg xl vnode-detach guest2 1",
        "began=$(date +%s%N); xl vnode-attach guest2 1 && echo && echo $(($(date +%s%N) - began))",
        "xl vnode-attach guest2 1",
        "began=$(date +%s%N); xl vnode-set guest2 1 256M && echo && echo $(($(date +%s%N) - began))",
        "xl vnode-set guest2 1 256M",
        "began=$(date +%s%N); xl vnode-detach guest2 1 && echo && echo $(($(date +%s%N) - began))",
        "xl vnode-detach guest2 1",
        "xl vnode-attach guest2 1 size=64M pnode=0",
        "xl vnode-set guest2 1 96M",
        "xl mem-set guest2 480m",
        "xl vcpu-set guest2 1",
        "xl vnode-set guest2 1 514M",
        # It makes no such call: the first that it makes.
        "strace -f -qq -o /dev/null -e trace=ioctl -e inject=ioctl:signal=KILL:when=21 xl vnode-detach guest2 1",
        "xl vnode-attach guest2 1 size=96M pnode=0",
        "timeout --preserve-status -s KILL 0.600 xl vnode-detach guest2 1",
        "xl vnode-detach guest2 1",
        "timeout --preserve-status -s TERM 0.028 xl vnode-attach guest2 1",
        "xl vnode-attach guest2 1",
        # 0.000 would be never.
        "timeout --preserve-status -s INT 0.001 xl vnode-detach guest2 1",
        "xl vnode-attach guest2 1",
        "xl vnode-detach guest2 1 --no-wait",
        "xl vnode-detach guest2 1",
        "strace -f -qq -o /dev/null -e trace=write -e inject=write:signal=KILL:when=31 xl vnode-attach guest2 1",
        "xl vnode-attach guest2 1",
    ]


def test_a_command_is_timed() -> None:
    """The last word is nanoseconds; one that fails is no measurement."""
    done = subprocess.run(["sh", "-c", TIMED.format(command="printf 'no end'")], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout.split()[-1]) < 60e9
    assert subprocess.run(["sh", "-c", TIMED.format(command="false")], capture_output=True, check=False).returncode == 1


def test_calls_are_counted_by_the_thread(tmp_path: Path) -> None:
    """As strace counts them that it kills at; the sum of two threads is more than any of them comes to."""
    trace = "12    write(3) = 1\n12    ioctl(4) = 0\n13    write(5) = 1\n12    <... write resumed>) = 1\n12    write(3) = 1\n"
    (tmp_path / "calls").write_text(f"{trace}12    +++ exited with 0 +++\n", encoding="utf-8")
    counted = subprocess.run(
        ["sh", "-c", COUNT_CALLS.replace("/tmp/calls", str(tmp_path / "calls"))], capture_output=True, text=True, check=True
    )
    assert parse_calls(counted.stdout) == {"ioctl": 1, "write": 2, "sendmsg": 0}
    with pytest.raises(Malformed, match="no calls in"):
        parse_calls("")


@pytest.mark.parametrize(
    ("how", "status", "said", "may"),
    [
        ("TERM", 6, "", False),
        ("INT", 6, "vnode 1: not in order yet", False),
        ("call", 137, "", True),
        ("call", 0, "", True),
        ("call", 6, "", False),
        ("time", 3, "", False),
        ("INT", 6, "cancelled: the guest has been told to undo it; xl vnode-list shows when it has", True),
        ("TERM", 6, "libxl: x\ncancelled: the guest has been told to undo it", True),
        ("INT", 130, "", True),
        ("INT", 143, "", False),
        ("TERM", 143, "", True),
        ("TERM", 3, "libxl: cancelled before it began", True),
        ("INT", 3, "libxl: cancelled before it began", True),
        ("call", 3, "libxl: cancelled before it began", False),
        ("TERM", 1, "libxl: cancelled before it began", False),
        ("TERM", 3, "libxl: vnode 1 is attached already", False),
        ("TERM", 1, "libxl: no such domain", False),
        ("no-wait", 0, "", True),
        ("no-wait", 6, "", False),
    ],
)
def test_how_a_command_that_is_cut_short_may_end(how: model.How, status: int, said: str, may: bool) -> None:
    assert ended_as_it_may(Operation("cut", inner=OFF, how=how, then="undo"), Done(status, "", said)) == may


@pytest.mark.parametrize(
    ("how", "at", "cut"),
    [
        ("call", 500, True),
        ("time", 500, True),
        ("time", 5000, False),
        ("INT", 500, True),
        ("TERM", 5000, False),
        ("no-wait", 0, True),
    ],
)
def test_whether_an_xl_was_cut_short(
    made: Callable[..., tuple[PlayedHome, Soak]], how: model.How, at: int, cut: bool
) -> None:
    _, soak = made()
    one, two = heard(soak, steps_of(ON, Operation("cut", inner=OFF, how=how, call="ioctl", at=at, then="finish")))
    assert (one.cut, two.cut) == (None, cut) and "cut" not in one.data() and two.data()["cut"] == cut


@pytest.mark.parametrize(
    ("operations", "vnode"),
    [
        ((ON,), None),
        ((ON, OFF), None),
        ((model.wrong("no-size", 1),), None),
        ((ON, model.wrong("crowded", 1)), 1),
        ((ON, model.start(Program(1, "pin", 0, 1)), OFF), 1),
        ((ON, KILLED_OFF), 1),
        ((model.vcpu_set(3),), None),
    ],
)
def test_of_which_vnode_the_guest_may_say_that_it_failed(operations: tuple[Operation, ...], vnode: int | None) -> None:
    assert failing(steps_of(*operations)[-1]) == vnode


@pytest.mark.parametrize(
    ("status", "said", "fine"),
    [
        (0, "", True),
        (3, "libxl: vnode 1 is absent already", True),
        (3, "libxl: vnode 1 is attached already", True),
        (3, "libxl: vnode 1 is there", False),
        (1, "libxl: vnode 1 is absent already", False),
        (5, "libxl: vnode 1 is absent already", False),
    ],
)
def test_how_a_clean_up_may_end(status: int, said: str, fine: bool) -> None:
    assert cleaned_up(Done(status, "", said)) == fine


def test_how_long_is_waited(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """Decision 0125 has these, and what they are for: longer ones would hide that something gets slower."""
    assert (LATE_S, GONE_S, SETTLED_S, MEM_SET_S) == (15.0, 30.0, 90.0, 120.0)
    assert [patience(name, LATE_S) for name in ("attach", "detach", "cut", "mem-set", "vcpu-set")] == [15, 15, 15, 120, 15]
    assert patience("mem-set", 0.0) == 0, "nothing is late on a played host"


@pytest.mark.parametrize(("late_s", "seconds"), [(LATE_S, GONE_S), (0.0, 0.0)])
def test_how_long_is_waited_for_what_a_guest_had(
    made: Callable[..., tuple[PlayedHome, Soak]], monkeypatch: pytest.MonkeyPatch, late_s: float, seconds: float
) -> None:
    """Longer than for what an operation leaves on its way."""
    waits: list[float] = []

    def pages_off(dom0: object, wanted: object, seconds: float, ask: object) -> dict[int, int]:
        waits.append(seconds)
        return {}

    home, _ = made()
    soak = Soak(home, SHAPE, Logs(home.log.parent), late_s=late_s, look_s=0.0)
    assert soak.begin(model.fresh(SHAPE)) == []
    monkeypatch.setattr("benchmarks.soak.play.pages_off", pages_off)
    assert soak.end() == [] and waits == [seconds]


def test_what_a_guest_had_may_come_late(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    """Its back ends end after it. Who does not wait has one page less."""
    for late_s, said in ((0.0, ["without the guest, pnode 1 has -1 pages free"]), (5.0, [])):
        home, _ = made()
        soak = Soak(home, SHAPE, Logs(home.log.parent), late_s=late_s, look_s=0.0)
        assert soak.begin(model.fresh(SHAPE)) == []
        home.faults.add("lingers")
        assert soak.end() == said


@pytest.mark.parametrize(
    ("status", "err", "expected", "found"),
    [
        (0, "one\ntwo\n", "", ["one", "two"]),
        (0, "one\ntwo\nthree\n", "two", ["one", "three"]),
        (0, "libxl: vCPUs 2-3 stay as they are: x\n", model.STAY, []),
        (0, "\n  \n", "", []),
        (3, "one\n", "", []),
    ],
)
def test_each_line_that_is_not_expected_is_a_complaint(status: int, err: str, expected: str, found: list[str]) -> None:
    """One that is expected excuses itself alone; what an xl says that fails is its reason."""
    done = Done(status, "vnode 1: online\n", err)
    assert complains(done, expected) == [f"it ends with 0, and says: {line}" for line in found]


class FakeHost:
    """What LabHome asks of a host of the lab; `ids`: the domain's number, each time it is asked for."""

    description = SimpleNamespace(name="alpha")

    def __init__(self, **said: Done) -> None:
        self.said = said
        self.ids: Iterator[str] = itertools.repeat("7\n")
        self.started: list[tuple[str, object]] = []
        self.ran: list[str] = []

    def run(self, command: object, timeout: float = 60, **_: object) -> Done:
        text = command if isinstance(command, str) else shlex.join(command)  # type: ignore[arg-type]
        self.ran.append(text)
        if "xl domid" in text:
            now = next(self.ids, None)
            return Done(1, "", "no such domain") if now is None else Done(0, now)
        return self.said.get(text.split()[1] if text.startswith("xl ") else "", Done(0, ""))

    def put(self, source: Path, destination: str) -> None:
        self.ran.append(f"put {destination}")

    def forget(self, guest: object) -> None:
        self.ran.append("forget")

    def start_guest(self, config: str, overrides: object) -> Guest:
        self.started.append((config, overrides))
        guest = Guest(self, SHAPE.name)  # type: ignore[arg-type]
        guest.created_said = self.said.get("create", Done(0, "")).err
        return guest


def test_a_guest_has_the_kernel_that_it_is_to_have(tmp_path: Path) -> None:
    host = FakeHost()
    LabHome(host, SHAPE).create()  # type: ignore[arg-type]
    LabHome(host, SHAPE, tmp_path / "vmlinuz").create()  # type: ignore[arg-type]
    assert [overrides for _, overrides in host.started] == [{}, {"kernel": f'"{LabHome.KERNEL}"'}]
    assert f"put {LabHome.KERNEL}" in host.ran and all(config == configuration(SHAPE) for config, _ in host.started)


def test_a_next_life_is_another_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it is the old one that is there, it has not begun."""
    host, ready = FakeHost(), []
    host.ids = itertools.chain(["7\n", "7\n"], itertools.repeat("8\n"))
    monkeypatch.setattr(Guest, "wait_ready", lambda guest, timeout: ready.append(len(host.ran)))
    home = LabHome(host, SHAPE)  # type: ignore[arg-type]
    home.next_life(Guest(host, SHAPE.name), 7)  # type: ignore[arg-type]
    assert ready == [3], "it was asked three times for its number before"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, []),
        ({"create": Done(0, "", "Parsing\nlibxl: info: x\nlibxl: warning: y: z\n")}, ["xl create: libxl: warning: y: z"]),
        ({"create": Done(0, "", "xc: error: no\nxc: info: y\n")}, ["xl create: xc: error: no"]),
        ({"destroy": Done(0, "", "xenforeignmemory: critical: no\n")}, ["xl destroy: xenforeignmemory: critical: no"]),
        ({"destroy": Done(0, "", "libxl: error: gone\n")}, ["xl destroy: libxl: error: gone"]),
        ({"destroy": Done(1, "", "no")}, ["xl destroy: exit status 1: no"]),
    ],
)
def test_what_xl_complains_of_as_a_life_begins_and_ends(said: dict[str, Done], found: list[str]) -> None:
    """Though the guest is there, or has gone."""
    host = FakeHost(**said)
    home = LabHome(host, SHAPE)  # type: ignore[arg-type]
    guest = home.create()
    host.ids = iter([])  # it has gone, whatever xl says
    home.destroy(guest)
    assert sum("destroy" in line for line in host.ran) == 1 and host.ran[-1] == "forget"
    assert home.complaints() == found and home.complaints() == []


def test_what_xl_create_complains_of_is_told_with_the_life_that_begins(
    made: Callable[..., tuple[PlayedHome, Soak]],
) -> None:
    """Not with its end, some operations later: by then nobody would look for it there."""
    said = "xl create: libxl: warning: a back end is slow"
    home, soak = made()
    steps = steps_of(Operation("recreate"), ON)
    assert soak.begin(steps[0].before) == []
    home.faults.add("mumbles")
    assert [outcome.wrong for outcome in play(soak, steps, lambda outcome: None)] == [[said]]
    _, soak = made("mumbles")
    assert soak.begin(steps[0].before) == [f"before the first operation: {said}"] * 2, "of the life that warms up, too"


def test_what_comes_late_is_written_down(tmp_path: Path) -> None:
    """It is no violation, but a wait that nobody sees could hide that it gets longer."""
    home = PlayedHome(SHAPE, tmp_path / "alpha-guest2.log")
    soak = Soak(home, SHAPE, Logs(tmp_path), late_s=5.0, look_s=0.0)
    steps = steps_of(ON, OFF, ON)
    assert soak.begin(steps[0].before) == []
    home.faults.add("slow")
    outcomes = play(soak, steps, lambda outcome: None)
    assert [outcome.wrong for outcome in outcomes] == [[], [], []]
    assert [bool(outcome.late) for outcome in outcomes] == [False, True, False]
    assert re.search(r"pnode 1: .*: -1", outcomes[1].late[0]) and outcomes[1].data()["late"] == outcomes[1].late
    assert "late" not in outcomes[2].data()


def test_what_is_not_late_is_not_waited_for(tmp_path: Path) -> None:
    """Beside something that may be, too."""
    home = PlayedHome(SHAPE, tmp_path / "alpha-guest2.log")
    soak = Soak(home, SHAPE, Logs(tmp_path), late_s=5.0, look_s=0.0)
    steps = steps_of(ON, OFF)
    assert soak.begin(steps[0].before) == [] and not soak.play(steps[0]).wrong
    home.faults.add("slow")
    home.drift = 1
    outcome = soak.play(steps[1])
    assert len(outcome.wrong) == 3 and outcome.late == []


def test_a_stall_is_no_violation_and_is_counted(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    home, soak = made()
    steps = steps_of(ON, OFF)
    assert soak.begin(steps[0].before) == []
    home.faults.add("stall")
    one, two = play(soak, steps, lambda outcome: None)
    assert (one.wrong, one.stalls, two.stalls) == ([], 1, 0)
    assert one.data()["stalls"] == 1 and "stalls" not in two.data()


def test_a_step_is_written_down(made: Callable[..., tuple[PlayedHome, Soak]]) -> None:
    _, soak = made("line")
    soak.begin(State(512, 2))
    data = json.loads(json.dumps(soak.play(steps_of(ON)[0]).data()))
    assert (data["step"], data["operation"], data["status"]) == (1, "attach vnode 1", 0) and len(data["wrong"]) == 1


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_home_of_another_size(name: str) -> None:
    """As the configuration has it, and with the memory that a kernel with checks needs."""
    shape = SHAPES[name]
    assert configuration(shape) == (REPO / "configs" / shape.config).read_text(encoding="utf-8")
    text = configuration(dataclasses.replace(shape, home_mib=768))
    assert (
        "memory = 768" in text
        and '"pnode=0", "size=768", "vcpus=0-1"' in text
        and "512" not in text.split("elastic")[0].split("vnuma")[0]
    )
