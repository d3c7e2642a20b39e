# SPDX-License-Identifier: GPL-2.0
"""What tests of guests with CPUs on other hosts share (lab/span_guest.py has the rest): their nodes' way in and out."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.ticks import Moment, faults_of, ticks_of, uptime_of
from lab.command import Done, checked, run_in
from lab.complaints import complaints
from lab.description import RackDescription
from lab.far_guest import DsmSite, far_guest, left_nothing, said, slices, state
from lab.guest import Guest
from lab.hypervisor import RefusedCall, refused_calls
from lab.patience import wait_for
from lab.pipeline.paths import ARTIFACTS
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from lab.span_guest import BOOT, PATIENCE, WAIT, SlowSite, SpanShape, keep_work_at_home, measured, numbers, slow_hosts
from tests.e2e.far_guest import show_logs

ASK_S = 3.0  # seconds between two questions to the guest: each costs it pages


@contextlib.contextmanager
def slow_site(
    scratch: Path, rack: str | RackDescription = "two-hosts", class_u: bool = False, slow: int = 0
) -> Iterator[SlowSite]:
    """Hosts, of a rack of that name or of this description, whose dsmds give guests a slower clock, with class U or without.

    `slow`: so many times slower; 0: as slow as it has to be.
    """
    description = RackDescription.load(rack) if isinstance(rack, str) else rack
    with Rack.boot(description, meter=False) as booted:
        made = slow_hosts(show_consoles_of(booted), scratch, class_u, slow)
        yield made
        show_logs(made)
    assert not booted.wrong_ends


def done_well(site: DsmSite, done: Done, words: str) -> None:
    """A command of xl that said these words, and is shown."""
    assert done.status == 0 and words in done.text, done.text + said(site.hosts)
    print(f"{done.seconds:.0f} s: {done.text.strip()}")


def of_node(guest: Guest, node: int) -> dict[str, Any]:
    """What `xl vnode-list` says of the host of a node."""
    found: dict[str, Any] = guest.listed()[node]["host"]
    return found


def attach(site: DsmSite, guest: Guest, shape: SpanShape, node: int = 1) -> None:
    """It brings memory and, unless the host only lends it, CPUs."""
    host, cpus = site.hosts[node], shape.cpus_of(node)
    name, listed = host.description.name, numbers(cpus[0], len(cpus))
    done_well(site, guest.attach(node, WAIT, timeout=PATIENCE), f" MiB on host {name}, CPUs {listed}")
    assert set(cpus) <= set(guest.online_cpus())
    assert len(slices(host)) == 1
    found = of_node(guest, node)
    print(found)
    remote = () if node in shape.lenders else cpus
    assert found["link"] == "up" and tuple(found.get("cpus") or ()) == remote, found
    if remote:
        assert found["remote_vcpus"], found
        table = checked(run_in(site.home), "xl vnode-list far")
        assert f"vnode {node}: on host {name}, link up, CPUs {listed} run there" in table, table


def detach(site: DsmSite, guest: Guest, shape: SpanShape, node: int = 1) -> None:
    """It sends both home."""
    done_well(site, guest.detach(node, WAIT, timeout=PATIENCE), "offline")
    assert not set(shape.cpus_of(node)) & set(guest.online_cpus())
    assert guest.vnode(node).state == "offline", guest.vnode(node).keys
    assert slices(site.hosts[node]) == []
    found = of_node(guest, node)
    assert found["link"] == "down" and found["cpus"] == [], found


# ---- One guest for all tests of a file ----


@dataclasses.dataclass
class Lives:
    """A guest for one test after the other: the next one gets another only if something was wrong with this."""

    site: SlowSite
    shape: SpanShape
    guest: Guest | None = None
    its: SpanShape | None = None
    stack: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def leave(self) -> None:
        """Destroy it, if there is one. Nothing of it is left."""
        if self.guest is not None:
            self.guest = None
            self.stack.close()
            left_nothing(self.site.hosts)

    @contextlib.contextmanager
    def borrowed(self, attached: bool, shape: SpanShape | None = None) -> Iterator[Guest]:
        """A guest whose node 1 is there, or is not."""
        wanted = shape or self.shape
        if self.its != wanted:
            self.leave()
        if self.guest is None:
            other = self.site.other.description.name
            self.guest = self.stack.enter_context(far_guest(self.site.both, other, wanted, BOOT))
            self.its = wanted
            keep_work_at_home(self.guest)
        guest = self.guest
        try:
            if (wanted.cpus_of(1)[0] in guest.online_cpus()) != attached:
                (attach if attached else detach)(self.site, guest, wanted)
            yield guest
            assert complaints(checked(run_in(guest), "dmesg", 300)) == []
        except BaseException:
            print(said(self.site.both))
            print(guest.console_tail())
            with contextlib.suppress(Exception):
                self.leave()
            raise


@contextlib.contextmanager
def lives_on(scratch: Path, rack: str | RackDescription = "two-hosts", slow: int = 0) -> Iterator[Lives]:
    """Two hosts, and a guest there for one test after the other; the arguments are those of slow_site()."""
    with slow_site(scratch, rack, slow=slow) as site:
        made = Lives(site, measured(site))
        try:
            yield made
        finally:
            made.leave()


def with_kernel(site: DsmSite, shape: SpanShape, step: str) -> SpanShape:
    """The shape, with the kernel of a step of the pipeline, which comes to dom0."""
    built = ARTIFACTS / step
    assert built.is_dir(), f"no {built}: python3 -m lab.pipeline.build {step}"
    kernel = f"/root/vmlinuz-{step}"
    site.home.put(built / "vmlinuz", kernel)
    return dataclasses.replace(shape, kernel=kernel)


def moment(site: DsmSite, guest: Guest) -> Moment:
    """What the guest and the dsmds of both hosts have counted."""
    text = checked(run_in(guest), "cat /proc/uptime /proc/interrupts", 300)
    faults = [faults_of(checked(run_in(host), "dsmctl -j status far")) for host in site.both]
    return Moment(ticks_of(text), faults, uptime_of(text))


# Counts by itself, while nobody asks the guest for anything and no program begins: that costs pages, and is no tick. What is
# said of a moment comes after both. Nothing ever comes from descriptor 3. {before}, {during} and {after} are s of the guest.
COUNTER = """never=$(mktemp -u)
mkfifo "$never" && exec 3<>"$never" && rm "$never" || exit 1
look() {{ mapfile -t lines </proc/interrupts; read -r up </proc/uptime; seen+=("$up" "${{lines[@]}}" {BETWEEN}); }}
read -rt {before} -u 3
look
echo began
read -rt {during} -u 3
look
echo ended
read -rt {after} -u 3
printf '%s\\n' "${{seen[@]}}"
"""
BETWEEN = "and-then"
SETTLED_S = 0.5  # of the guest


def quietly(site: SlowSite, guest: Guest, seconds: float, output: Path) -> tuple[Moment, Moment]:
    """Begin and end of so many seconds of the guest in which nobody asks it for anything, and `output`: what it said."""
    script = COUNTER.format(before=SETTLED_S, during=seconds, after=SETTLED_S, BETWEEN=BETWEEN)
    limit = (seconds + 2 * SETTLED_S) * site.slow + 300
    program = guest.start(f"bash -c {shlex.quote(script)}", output)

    def counted(word: str) -> list[int]:
        wait_for(word, limit, lambda: not program.running() or word in output.read_text().split("\n"))
        assert word in output.read_text().split("\n"), program.wait()
        return [faults_of(checked(run_in(host), "dsmctl -j status far")) for host in site.both]

    faults = [counted("began"), counted("ended")]
    done, words = program.wait(limit), output.read_text()
    assert done.status == 0, (words, done.err)
    begun, ended, rest = words.partition("ended\n")[2].split(f"{BETWEEN}\n")
    assert not rest, words
    first, last = (Moment(ticks_of(at), of, uptime_of(at)) for at, of in zip((begun, ended), faults, strict=True))
    return first, last


# Linux may want a device's interrupt on a CPU elsewhere, by event_channel_op bind_vcpu, and takes no for an answer.
MAY_BE_REFUSED = {(32, 8)}


def refused_elsewhere(site: DsmSite) -> list[RefusedCall]:
    """Hypercalls that CPUs of guests have made on another host than their home since the hosts began, and nobody does there."""
    logs = [host.paths.console_log.read_text(encoding="utf-8", errors="replace") for host in site.hosts]
    found = [each for log in logs for each in refused_calls(log)]
    print(f"refused: {found}")
    return [each for each in found if (each.hypercall, each.operation) not in MAY_BE_REFUSED]


def ran(site: DsmSite, guest: Guest, command: str, output: Path, seconds: float = PATIENCE) -> Done:
    """A program in the guest has ended, and the guest has not; `output` is what it had printed until then."""
    program = guest.start(command, output)
    try:
        took = wait_for(
            command, seconds, lambda: not program.running() or "failed: " in state(site.home), interval=ASK_S
        )
    except TimeoutError as error:
        raise TimeoutError(f"{error}; until then:\n{output.read_text()}") from None
    assert not program.running(), state(site.home)
    done = dataclasses.replace(program.wait(), out=output.read_text())
    print(f"{took:.0f} s: {command}: {done.status} {done.err}")
    return done
