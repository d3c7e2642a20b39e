# SPDX-License-Identifier: GPL-2.0
"""Carry out a plan on a guest of the lab, and look after each operation whether all is as it has to be.

The first life of a guest after the host's boot warms the host up: dom0's tables grow with the first guest and stay. It also
counts the calls that each command makes, and the time it takes, so that a plan can say "at 37 % of them". Then the host
without a guest is measured to the page, and has to be the same each time that it has none: what a life leaves behind is seen
when it ends. Pages that are dom0's count as free ones: its balloon gives some, and takes others (books.free_or_dom0s()). How
many it has in all may differ by what back ends can have of it, and by no more.

But for one thing: a vCPU of dom0 that maps the first grant of its life is given a page to keep track of them, which it keeps,
and that may be in any life. The hypervisor counts those pages, so that the host may have as many less, and no others.

`Home` is what this needs of a host; the lab has one (`LabHome`), and unit tests play one.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmarks.soak import books, checks, invariants, model, programs
from benchmarks.soak.books import Books
from benchmarks.soak.inside import RingLostError
from benchmarks.soak.invariants import Base, Violation
from benchmarks.soak.logs import Logs
from benchmarks.soak.model import CALLS, DONE, KILLED, REFUSED, RESIDUAL, UNSETTLED, Operation, Program, Shape, State
from benchmarks.soak.plan import Step, moves
from lab.command import Done, Run, checked, run_in
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError, Malformed
from lab.guest import Guest
from lab.host import Host
from lab.hypervisor import dom0_maptrack, pages_off, settled_free_pages
from lab.patience import scaled, wait_for
from lab.pipeline.paths import REPO

COMMAND_S = 240.0  # for one command of xl, which gives up after some 120 s by itself
SETTLED_S = 90.0  # until an operation that was left half-way has ended
GONE_S = 30.0  # until all that a guest had is back
LATE_S = 15.0  # until what an operation leaves on its way has arrived
MEM_SET_S = 120.0  # stock's balloon goes page by page
NEXT_LIFE_S = 180.0
LOOK_S = 0.5
SOONEST_S = 0.001  # timeout(1) takes 0 for never
AGREE_S = 15.0  # until two counts of pages agree

# By how many pages dom0 may have more or fewer than at first when no guest lives: a back end has 256 of it for each of its
# queues, and dom0's Linux may take them back later (docs/plan/9.md), for a guest that has gone and for the one before it.
DOM0_PAGES = 4 * 256

# Of a guest that begins or ends xl has news, too.
COMPLAINT = re.compile(r"^\w+: (?:critical|error|warning): .*$", re.MULTILINE)  # libxl's, xc's, xenforeignmemory's

# What says that a clean-up came when there was nothing left to do.
DONE_ALREADY = re.compile(r"vnode \d+ is (?:attached|absent) already")
# What an xl says that was told to give up, and has told the guest.
CANCELLED = re.compile(r"^cancelled: the guest has been told to undo it", re.MULTILINE)
# What one says that is told before it has begun: refused, as libxl's tests have it (test_operations.c).
BEFORE_BEGIN = re.compile(r"cancelled before it began")
REBOOTING = r"^Rebooting domain \d+$"  # xl reboot, each time (xl_vmcontrol.c)


# Which thread has made how many calls: strace, which kills at the Nth, counts each thread's by themselves.
COUNT_CALLS = "grep -oE '^[0-9]+ +[a-z]+\\(' /tmp/calls | sort | uniq -c"
_COUNTED = re.compile(r"^ *(\d+) (\d+) +([a-z]+)\($", re.MULTILINE)


# A command, and the nanoseconds that it took as the last word.
TIMED = "began=$(date +%s%N); {command} && echo && echo $(($(date +%s%N) - began))"


def parse_calls(text: str) -> dict[str, int]:
    """How many calls of each kind that thread has made which has made most of them. Raises Malformed."""
    found = [(int(count), call) for count, _, call in _COUNTED.findall(text) if call in CALLS]
    if not found:
        raise Malformed(f"no calls in {text[:300]!r}")
    return {call: max((count for count, name in found if name == call), default=0) for call in CALLS}


class Home(Protocol):
    """A host on which one guest lives again and again."""

    @property
    def dom0(self) -> Run:
        """Commands in its dom0."""

    def create(self) -> ElasticGuest:
        """Create the guest, and return when it and its driver are there."""

    def next_life(self, guest: ElasticGuest, domid: int) -> None:
        """Wait until the guest is there as another domain than `domid`, and its driver too."""

    def destroy(self, guest: ElasticGuest) -> None:
        """Destroy it."""

    def complaints(self) -> list[str]:
        """What xl has complained of that created or destroyed it, though it did; since this was last asked."""


def configuration(shape: Shape, folder: Path = REPO / "configs") -> str:
    """The text of its xl.cfg, with a home of the shape's size."""
    text = (folder / shape.config).read_text(encoding="utf-8")
    text, homes = re.subn(r'(\[ *"pnode=0", *"size=)\d+(", *"vcpus=0-)', rf"\g<1>{shape.home_mib}\g<2>", text, count=1)
    text, memories = re.subn(r"^memory *=.*$", f"memory = {shape.home_mib}", text, count=1, flags=re.MULTILINE)
    if homes != 1 or memories != 1:
        raise ValueError(f"{shape.config}: no home of its own size")
    return text


class LabHome:
    """A host of the lab."""

    KERNEL = "/boot/vmlinuz.soak"  # of dom0's, where a kernel for the guest alone goes

    def __init__(self, host: Host, shape: Shape, kernel: Path | None = None) -> None:
        self.host, self.shape = host, shape
        self.dom0: Run = run_in(host)
        self._complaints: list[str] = []
        self._overrides: Mapping[str, str] = {}
        if kernel:
            host.put(kernel.resolve(), self.KERNEL)
            self._overrides = {"kernel": f'"{self.KERNEL}"'}

    def create(self) -> Guest:
        guest = self.host.start_guest(configuration(self.shape), self._overrides)
        self._complaints += [f"xl create: {line}" for line in COMPLAINT.findall(guest.created_said)]
        self._await_driver(guest)
        return guest

    def next_life(self, guest: ElasticGuest, domid: int) -> None:
        assert isinstance(guest, Guest)
        guest.disconnect()

        def another() -> bool:
            done = self.dom0(f"xl domid {guest.name}")
            return done.status == 0 and int(done.out) != domid

        wait_for("the guest's next life begins", NEXT_LIFE_S, another)
        guest.wait_ready(NEXT_LIFE_S)
        self._await_driver(guest)

    def destroy(self, guest: ElasticGuest) -> None:
        assert isinstance(guest, Guest)
        done = guest.destroy()
        self._complaints += [f"xl destroy: {line}" for line in COMPLAINT.findall(done.err)]
        if done.status:
            self._complaints.append(f"xl destroy: exit status {done.status}: {done.text.strip()}")

    def complaints(self) -> list[str]:
        found, self._complaints = self._complaints, []
        return found

    def _await_driver(self, guest: Guest) -> None:
        path = f"/local/domain/{guest.domid()}/vnuma/guest/version"
        wait_for("the driver is there", 60, lambda: self.dom0(f"xenstore-read {path}").status == 0)


@dataclasses.dataclass
class Outcome:
    """What came of a step: what xl ended with, what does not hold, and the time it took, all checks included."""

    step: Step
    status: int | None = None
    said: str = ""
    wrong: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    late: list[str] = dataclasses.field(default_factory=list)  # what did not hold at first, and did in time
    stalls: int = 0  # reports of a stall on the consoles
    cut: bool | None = None  # whether an xl that was to be cut short was, and had not ended before
    cut_status: int | None = None  # what that one ended with
    moved: dict[str, int] = dataclasses.field(default_factory=dict)  # pages that programs had on a vnode that had to leave
    unasked: int = 0  # programs that a life took with it, which nobody asked what they had found

    def data(self) -> dict[str, Any]:
        """As a line of the journal."""
        return {
            "step": self.step.number,
            "operation": str(self.step.operation),
            "status": self.status,
            **({} if self.cut is None else {"cut": self.cut, "cut_status": self.cut_status}),
            "seconds": round(self.seconds, 2),
            "said": self.said.strip()[-400:],
            **({"late": self.late} if self.late else {}),
            **({"stalls": self.stalls} if self.stalls else {}),
            **({"moved": self.moved} if self.moved else {}),
            **({"unasked": self.unasked} if self.unasked else {}),
            "wrong": self.wrong,
        }


class Soak:
    """One run: `begin()`, `play()` for each step, `end()`."""

    def __init__(
        self,
        home: Home,
        shape: Shape,
        logs: Logs,
        late_s: float = LATE_S,
        look_s: float = LOOK_S,
        *,
        wanted: Collection[str] = (),
    ) -> None:
        """`wanted`: what has to be checked in each life, of checks.WANTED."""
        self.home, self.shape, self.logs = home, shape, logs
        self.checks: dict[str, bool] = {}  # which checks were on when this was last asked
        self._wanted = wanted
        self.calls: dict[str, dict[str, int]] = {}
        self.seconds: dict[str, float] = {}  # that such a command takes, of an idle guest
        self.bare: dict[int, int] = {}  # pages of each physical node that are free or dom0's, without a guest
        self._dom0s = 0  # of them, dom0's
        self._maptrack = 0  # dom0's pages to keep track of grants, when that was measured
        self._life_maptrack = 0  # the same when this life began
        self.unfinished: Outcome | None = None  # of a step that is being done
        self._late_s, self._look_s = late_s, look_s
        self._guest: ElasticGuest | None = None
        self._base: Base | None = None
        self._first: Base | None = None  # of the first life that was measured
        self._running: dict[int, tuple[Program, int]] = {}
        self._late: list[str] = []  # what did not hold when it was first looked at

    @property
    def guest(self) -> ElasticGuest:
        """The guest as it lives now."""
        assert self._guest is not None, "begin() first"
        return self._guest

    # --- lives ---------------------------------------------------------------------------------------------------------

    def begin(self, state: State) -> list[str]:
        """Warm up, measure the host, create the guest and bring it into a state. What was wrong there, one line each."""
        self.logs.skip(self.home.dom0)
        self._guest = self.home.create()
        self._measure_commands()
        self._leave()
        settled_free_pages(self.home.dom0)
        self.bare, self._dom0s = self._at_rest(lambda: books.of_host(self.home.dom0), lambda seen: seen, "the host's")
        self._maptrack = dom0_maptrack(self.home.dom0)
        return self._begin_in(state)

    def _at_rest[Seen](self, read: Callable[[], Seen], pages: Callable[[Seen], object], whose: str) -> Seen:
        """What is read when two counts of pages agree: a report is no moment, dom0's balloon can move one between two lines."""
        seen = [read()]

        def agree() -> bool:
            seen.append(read())
            return pages(seen[-1]) == pages(seen[-2])

        wait_for(f"two counts of {whose} pages agree", AGREE_S, agree, self._look_s)
        return seen[-1]

    def anew(self, state: State) -> list[str]:
        """Go on with a new guest in this state, whatever has become of the old one. What was wrong, one line each."""
        return self.end(asks=False) or self._begin_in(state)

    def _begin_in(self, state: State) -> list[str]:
        found = self._new_life()
        now = model.fresh(self.shape)
        found += self._judge(Step(0, Operation("recreate"), now, now, model.Expected()))
        for operation in model.prologue(self.shape, state):
            if found:
                break
            step = _step(self.shape, now, operation)
            found = self.play(step).wrong
            now = step.after
        return [f"before the first operation: {line}" for line in found]

    def end(self, asks: bool = True) -> list[str]:
        """Destroy the guest; what is missing of the host then. `asks`: end its programs before, and hear what they found."""
        if self._guest is None:
            return []
        found = [*self._end_programs(), *self._ask_checks()] if asks else []
        self._leave()
        return found + self.home.complaints() + self._missing() + self.logs.last(self.home.dom0)

    def _end_programs(self) -> list[str]:
        """End all that run; what they, some at their end only, and the guest's kernel have found wrong."""
        found = []
        for number in sorted(self._running):
            program, pid = self._running.pop(number)
            try:
                programs.stop(self.guest.guest, program, pid)
            except (LabError, Malformed, TimeoutError, programs.WrongProgram) as error:
                found.append(f"{type(error).__name__}: {error}")
        try:
            return found + self.logs.of_guest(self.guest.guest)
        except (LabError, Malformed, TimeoutError) as error:  # what they have found is told all the same
            return [*found, f"{type(error).__name__}: {error}"]

    def _leave(self) -> None:
        guest, self._guest = self.guest, None
        self._running.clear()
        self.home.destroy(guest)

    def _missing(self) -> list[str]:
        late_s = GONE_S if self._late_s >= 1 else self._late_s
        off = pages_off(self.home.dom0, self.bare, late_s, books.without_guest)
        more = books.of_host(self.home.dom0)[1] - self._dom0s
        dom0s = [f"dom0 has {more:+d} pages, more or fewer than back ends can have of it"] if abs(more) > DOM0_PAGES else []
        grown = dom0_maptrack(self.home.dom0) - self._maptrack
        if kept_for_grants(off, grown):
            self.bare = {node: pages + off.get(node, 0) for node, pages in self.bare.items()}
            self._maptrack += grown
            return dom0s + books.leftovers_without_guest(self.home.dom0)
        found = dom0s + [f"without the guest, pnode {node} has {pages:+d} pages free" for node, pages in sorted(off.items())]
        if grown:
            found.append(f"Xen keeps track of dom0's grants in {grown:+d} pages more, which the free ones do not show")
        return found + books.leftovers_without_guest(self.home.dom0)

    def _new_life(self) -> list[str]:
        self._guest = self.home.create()
        return self.home.complaints() + self._measure()

    def _measure(self) -> list[str]:
        """What this life begins with, by which it is judged from then on. What is other than in the first one."""
        settled_free_pages(self.home.dom0)
        seen = self._at_rest(self._read, lambda seen: (seen.free, seen.pages, seen.total), "the guest's")
        self._life_maptrack = dom0_maptrack(self.home.dom0)
        self._base = Base.of(seen)
        self._first = self._first or self._base
        return invariants.begun(self._first, self._base) + self._ask_checks()

    def _ask_checks(self) -> list[str]:
        """Which checks are on now. Those that should be, and are not."""
        self.checks = checks.of_kernel(self.home.dom0, "dom0") | checks.of_kernel(self.guest.guest, "guest")
        off = [name for name in self._wanted if name != checks.XEN and not self.checks.get(name)]
        return [f"{name} is off: this run checks less than it says" for name in off]

    def _measure_commands(self) -> None:
        """How many calls of each kind a command makes, and how long it takes, by commands that are let run to their end."""
        vnode = self.shape.vnodes[0]
        pnode = None if vnode.pnode is not None else max(self.shape.spare_mib)
        commands = (model.attach(vnode.number, None, pnode), model.resize(vnode.number, vnode.max_mib // 2))
        round_ = (*commands, model.detach(vnode.number))
        for operation in round_:
            trace = f"strace -f -qq -o /tmp/calls -e trace={','.join(CALLS)} {self._command(operation)}"
            checked(self.home.dom0, trace, COMMAND_S)
            self.calls[operation.name] = parse_calls(checked(self.home.dom0, COUNT_CALLS))
        for operation in round_:
            told = checked(self.home.dom0, TIMED.format(command=self._command(operation)), COMMAND_S)
            self.seconds[operation.name] = int(told.split()[-1]) / 1e9

    # --- steps ---------------------------------------------------------------------------------------------------------

    def play(self, step: Step) -> Outcome:
        """Do it, and look at everything. Never raises for what the guest or the host does wrong.

        `unfinished` is what has come of it until then, for who interrupts it.
        """
        outcome, began, stalls = Outcome(step), time.monotonic(), self.logs.stalls
        self._late = []
        self.unfinished = outcome
        try:
            self._perform(step, outcome)
            outcome.wrong += self._judge(step)
            outcome.late = [] if outcome.wrong else self._late
        except (LabError, Malformed, TimeoutError, programs.WrongProgram, ValueError) as error:
            outcome.wrong.append(f"{type(error).__name__}: {error}")
        outcome.stalls = self.logs.stalls - stalls
        outcome.seconds = time.monotonic() - began
        self.unfinished = None
        return outcome

    def _perform(self, step: Step, outcome: Outcome) -> None:
        operation, name = step.operation, step.operation.name
        outcome.wrong += self._count_moving(step, outcome)
        if name == "cut":
            self._cut(step, outcome)
        elif name in ("start", "stop"):
            assert operation.program is not None
            self._program(name, operation.program, outcome)
        elif name in ("reboot", "recreate"):
            self._begin_life(operation, outcome)
        else:
            done = self.home.dom0(self._command(operation), COMMAND_S)
            self._note(outcome, done)
            if done.status not in step.expected.statuses:
                wanted = " or ".join(map(str, step.expected.statuses))
                outcome.wrong.append(f"exit status {done.status}, not {wanted}: {done.text.strip()}")
            elif not re.search(step.expected.reason, done.text):
                outcome.wrong.append(f"it does not say {step.expected.reason!r}: {done.text.strip()}")
            outcome.wrong += complains(done, step.expected.reason or step.expected.may)
            if name == "vcpu-set":
                self._bring_up(step)

    def _command(self, operation: Operation) -> str:
        """What an operator types."""
        name, vnode, guest = operation.name, operation.vnode, self.guest
        if name in ("attach", "detach", "set"):
            words = [str(vnode)]
            if name == "set":
                words.append(f"{operation.mib}M")
            elif operation.mib is not None:
                words.append(f"size={operation.mib}M")
            words += [f"pnode={operation.pnode}"] if operation.pnode is not None else []
            return guest.command(f"vnode-{name}", *words)
        if name == "wrong":
            assert vnode is not None
            over = self.shape.vnode(vnode).max_mib + model.EXTENT_MIB
            return f"xl {model.REFUSALS[operation.case].words.format(guest=guest.name, v=vnode, over=over)}"
        assert name in ("mem-set", "vcpu-set"), name
        return guest.command(name, f"{operation.mib}m" if name == "mem-set" else str(operation.cpus))

    @staticmethod
    def _note(outcome: Outcome, done: Done) -> None:
        outcome.status = done.status
        outcome.said += done.text

    def _bring_up(self, step: Step) -> None:
        """Linux only makes a CPU present that vcpu-set gives back: to bring it up is for udev, which this guest has not."""
        for cpu in range(step.before.home_cpus, step.after.home_cpus):
            path = f"/sys/devices/system/cpu/cpu{cpu}/online"
            wait_for(f"CPU {cpu} is there", 60, functools.partial(self._has_file, path))
            checked(self.guest.guest, f"echo 1 >{path}")

    def _has_file(self, path: str) -> bool:
        return self.guest.guest(f"test -e {path}").status == 0

    def _program(self, name: str, program: Program, outcome: Outcome) -> None:
        if name == "start":
            self._running[program.number] = (program, programs.start(self.guest.guest, program))
        else:
            _, pid = self._running.pop(program.number)
            outcome.said = programs.stop(self.guest.guest, program, pid)

    def _count_moving(self, step: Step, outcome: Outcome) -> list[str]:
        """What programs have on a vnode before a detach that has to move it. One that has nothing there shows nothing."""
        found = []
        for program in moves(step.before, step.operation):
            _, pid = self._running[program.number]
            assert program.node is not None
            pages = programs.pages_on(self.guest.guest, pid, program.node)
            outcome.moved[program.kind] = outcome.moved.get(program.kind, 0) + pages
            if pages < programs.enough(program):
                found.append(f"program {program.number} ({program.kind}) has {pages} pages on node {program.node} to move")
        return found

    def _begin_life(self, operation: Operation, outcome: Outcome) -> None:
        if operation.inner:
            done = self.home.dom0(f"{self._command(operation.inner)} --no-wait", COMMAND_S)
            self._note(outcome, done)
            outcome.unasked = len(self._running)  # they run as it ends: what they say until then is read, no more
            if done.status != DONE:
                outcome.wrong.append(f"--no-wait: exit status {done.status}: {done.text.strip()}")
            outcome.wrong += complains(done)
        else:
            outcome.wrong += self._end_programs()
        if operation.name == "reboot":
            domid = self.guest.domid()
            self._running.clear()
            command = self.guest.command("reboot")
            done = self.home.dom0(command)
            self._note(outcome, done)
            outcome.wrong += [f"{command}: {line}" for line in complains(done, REBOOTING)]
            if done.status != DONE:
                raise LabError(f"{command}: exit status {done.status}: {done.text.strip()}")
            self.home.next_life(self.guest, domid)
            outcome.wrong += self._measure()
            return
        self._leave()
        outcome.wrong += self._missing()
        outcome.wrong += self._new_life()

    def _cut(self, step: Step, outcome: Outcome) -> None:
        operation, inner = step.operation, step.operation.inner
        assert inner is not None
        done = self.home.dom0(self._cut_command(operation, inner), COMMAND_S)
        self._note(outcome, done)
        if not ended_as_it_may(operation, done):
            outcome.wrong.append(f"exit status {done.status}: {done.text.strip()}")
        outcome.wrong += [f"{inner}: {line}" for line in complains(done)]
        outcome.cut, outcome.cut_status = operation.how == "no-wait" or done.status != DONE, done.status
        # Then nothing is under way, and vnode-list, which would put in order what is not, need not be asked first.
        ended = operation.how != "no-wait" and done.status in (DONE, by_signal(operation))
        if operation.patient and not ended:
            self._await_no_operation()
        if operation.patient or ended:
            self._judge_half(step, outcome, done.status)
        after = inner if operation.then == "finish" else model.opposite(self.shape, step.before, inner)
        done = self.home.dom0(self._command(after), COMMAND_S)
        self._note(outcome, done)
        if not cleaned_up(done):
            outcome.wrong.append(f"clean-up, {after}: exit status {done.status}: {done.text.strip()}")
        outcome.wrong += complains(done)

    def _judge_half(self, step: Step, outcome: Outcome, status: int) -> None:
        """Before the clean-up, which would mend what an xl that was cut short has left: all that holds whatever it came to.

        One that did not wait has only left early: what it began has come to its end. So has what one was to do that ended with
        0 before it was cut short. One that a signal ended has done nothing, since it takes them itself from before it begins;
        nor has one that says it was told before; what one told the guest to undo is undone.
        """
        operation, inner = step.operation, step.operation.inner
        assert self._base is not None and inner is not None
        base = self._base
        nothing = Step(0, operation, step.before, step.before, model.Expected())
        steps = dict.fromkeys((REFUSED, UNSETTLED, by_signal(operation)), nothing)
        known = {**steps, DONE: _step(self.shape, step.before, inner)}.get(status)

        def check(seen: Books) -> list[Violation]:
            if known:
                return invariants.violations(self.shape, base, known, seen)
            return invariants.at_rest(self.shape, base, step.before, seen, inner)

        found, _ = self._look(check, self._late_s)
        outcome.wrong += [f"before the clean-up: {each}" for each in found]

    def _cut_command(self, operation: Operation, inner: Operation) -> str:
        command = self._command(inner)
        if operation.how == "call":
            counts = self.calls[inner.name]
            call = next(call for call in (operation.call, *CALLS) if counts[call])
            number = 1 + operation.at * counts[call] // model.WHOLE
            trace = f"strace -f -qq -o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={number}"
            return f"{trace} {command}"
        if operation.how == "no-wait":
            return f"{command} --no-wait"
        signal = "KILL" if operation.how == "time" else operation.how
        after = max(operation.at * self.seconds[inner.name] / model.WHOLE, SOONEST_S)
        return f"timeout --preserve-status -s {signal} {after:.3f} {command}"

    def _await_no_operation(self) -> None:
        """As an operator does: vnode-list, until it shows none."""

        def none() -> bool:
            return all(vnode.get("operation") is None for vnode in self.guest.listed().values())

        wait_for("nothing is under way any more", SETTLED_S, none, self._look_s)

    # --- checks --------------------------------------------------------------------------------------------------------

    def _look(self, check: Callable[[Books], list[Violation]], late_s: float) -> tuple[list[Violation], Books]:
        """What a check finds in the books, read again as long as all that it finds may be late; and the books."""
        began, first = time.monotonic(), True
        while True:
            seen = self._read()
            found = check(seen)
            self._late += [str(each) for each in found] if first else []
            first = False
            late = all(each.late for each in found)
            if not found or not late or time.monotonic() - began > scaled(late_s):
                return found, seen
            time.sleep(self._look_s)

    def _read(self) -> Books:
        """The books. A kernel that says much overwrites its ring while that is read: then once more."""
        try:
            return books.read(self.guest, self.logs.dom0, self.logs.guest)
        except RingLostError:
            return books.read(self.guest, self.logs.dom0, self.logs.guest)

    def _judge(self, step: Step) -> list[str]:
        assert self._base is not None
        base = self._base
        late_s = patience(step.operation.name, self._late_s)
        found, seen = self._look(lambda seen: invariants.violations(self.shape, base, step, seen), late_s)
        if found and self._allow_for_maptrack(base, seen):
            base = self._base
            found, seen = self._look(lambda seen: invariants.violations(self.shape, base, step, seen), late_s)
        if step.operation.name == "mem-set" and not found:
            self._base = self._base.moved(step.after, seen)
        wrong = [str(each) for each in found]
        wrong += programs.look(self.guest.guest, self._running)
        booting = step.operation.name in ("reboot", "recreate")
        return wrong + self.logs.new(failing(step), booting)

    def _allow_for_maptrack(self, base: Base, seen: Books) -> bool:
        """Take off the pages that a vCPU of dom0 was given for the first grant of its life, if it was within this one."""
        off = {node: seen.free.get(node, 0) + seen.pages.get(node, 0) - pages for node, pages in base.whole.items()}
        grown = dom0_maptrack(self.home.dom0) - self._life_maptrack
        if not kept_for_grants(off, grown):
            return False
        self._base = dataclasses.replace(base, whole={node: pages + off[node] for node, pages in base.whole.items()})
        self._life_maptrack += grown
        return True


def _step(shape: Shape, state: State, operation: Operation) -> Step:
    return Step(0, operation, state, model.after(shape, state, operation), model.expected(shape, state, operation))


def failing(step: Step) -> int | None:
    """The vnode of which the guest's driver may say that an operation has failed, or was called off."""
    operation = step.operation
    if operation.inner:
        return operation.inner.vnode
    in_guest = operation.case == "crowded" or RESIDUAL in step.expected.statuses
    return operation.vnode if in_guest else None


def kept_for_grants(off: Mapping[int, int], grown: int) -> bool:
    """Whether the pages that physical nodes lack are those that Xen has taken to keep track of dom0's grants, and no others."""
    return grown > 0 and sum(off.values()) == -grown and max(off.values()) <= 0


def cleaned_up(done: Done) -> bool:
    """Whether a clean-up has ended as it can: it may have had nothing to do."""
    return done.status == DONE or (done.status == REFUSED and bool(DONE_ALREADY.search(done.text)))


def patience(name: str, late_s: float) -> float:
    """How long what an operation leaves on its way may take, in seconds; mem-set's pages come one by one."""
    return MEM_SET_S if name == "mem-set" and late_s >= 1 else late_s


def complains(done: Done, expected: str = "") -> list[str]:
    """What an xl says on standard error that ends with 0, and is not expected (a regular expression)."""
    said = filter(str.strip, done.err.splitlines() if done.status == DONE else [])
    return [f"it ends with 0, and says: {line}" for line in said if not (expected and re.search(expected, line))]


def ended_as_it_may(operation: Operation, done: Done) -> bool:
    """Whether an xl that is cut short has ended as one of that kind can; it may have been quicker than that."""
    if operation.how in ("call", "time"):
        return done.status in (KILLED, DONE)
    if operation.how == "no-wait":
        return done.status == DONE
    begun_too_late = done.status == REFUSED and bool(BEFORE_BEGIN.search(done.text))
    cancelled = done.status == UNSETTLED and bool(CANCELLED.search(done.text))
    return done.status in (DONE, by_signal(operation)) or cancelled or begun_too_late


def by_signal(operation: Operation) -> int | None:
    """What an xl ends with that SIGINT or SIGTERM ends: before it begins it blocks both, to read them (open_signals())."""
    return {"INT": 128 + 2, "TERM": 128 + 15}.get(operation.how or "")


Told = Callable[[Outcome], None]


def _after(soak: Soak, step: Step, outcome: Outcome, goes_on: bool) -> bool:
    """The guest's end after a step, and another one in its place if it goes on. Whether it can."""
    try:
        # A guest that something is wrong with is not asked: it may not answer, and what is wrong is known.
        more = soak.anew(step.after) if goes_on else soak.end(asks=not outcome.wrong)
    except (LabError, Malformed, TimeoutError) as error:
        more = [f"the end of the guest: {type(error).__name__}: {error}"]
    outcome.wrong += more
    return goes_on and not more


def play(soak: Soak, steps: Sequence[Step], told: Told, keep_going: bool = False) -> list[Outcome]:
    """Steps one after the other, until one is wrong; `told` hears of each. Then the host is looked at without the guest.

    `keep_going`: after one that is wrong, with a new guest in the state that it should have led to, if that can be had.
    """
    outcomes: list[Outcome] = []
    for step in steps:
        try:
            outcomes.append(soak.play(step))
        except KeyboardInterrupt:
            if soak.unfinished and soak.unfinished.wrong:
                told(soak.unfinished)
            raise
        goes_on = step is not steps[-1] and (keep_going or not outcomes[-1].wrong)
        try:
            if not goes_on or outcomes[-1].wrong:
                goes_on = _after(soak, step, outcomes[-1], goes_on)
        finally:  # also of Ctrl-C: what was wrong is told
            told(outcomes[-1])
        if not goes_on:
            break
    return outcomes


__all__ = ["Home", "LabHome", "Outcome", "Soak", "configuration", "ended_as_it_may", "play"]
