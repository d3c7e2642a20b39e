# SPDX-License-Identifier: GPL-2.0
"""A member that lies (liar.c) against a dsmd as a process; Xen is played, and no word that it reads may be an old one.

Over TCP, and over RDMA with an adapter that is played (played_fabric.c); over Soft-RoCE: tests/e2e/test_dsm_hostile.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dsmd import test_dsmd as parts
from tests.unit.dsmd.test_dsmd_process import PATIENCE, Daemon, Site, programs

pytestmark = pytest.mark.fresh

LIAR = [parts.HERE / "liar.c", parts.HERE / "liar_rdma.c"]
TRANSPORTS = ("tcp", "rdma")
SEEDS = int(os.environ.get("XENUMA_SEEDS", "3"))
MEMORY_KIB = 16384  # that a dsmd may have more than before, whatever its peer does: the sanitizer's books, too


def dsmd(name: str, sources: Sequence[Path] = ()) -> Path:
    """A dsmd whose adapter is played."""
    daemon = parts.DSM / "daemon"
    process = [daemon / "main.c", daemon / "log.c", parts.HERE / "played_hypervisor.c", parts.HERE / "played_xen.c"]
    return parts.linked(name, [*parts.WORKER, *process, *sources], [parts.fabric()])


@cache
def honest_over_rdma() -> Path:
    return dsmd("dsmd-rdma")


@cache
def liar() -> Path:
    """A dsmd with liar.c between it and OpenSSL, and its adapter."""
    return dsmd("dsmd-liar", LIAR)


class HostileSite(Site):
    """Two hosts, of which beta lies. Limits are short: nothing here is slow."""

    instructions = 4000

    def __init__(self, folder: Path, transport: str) -> None:
        super().__init__(folder, 2)
        self.transport = transport
        self.limits = {"opening_ms": 2000, "question_ms": 100, "deadline_ms": 1000}
        self.description |= {"pin_ms": 20, "answer_ms": 2500, "keepalive_ms": 500}
        self.order = folder / "lie"
        self.variables: dict[str, str] = {}  # of both

    def config(self, name: str) -> str:
        tcp = super().config(name)
        return tcp if self.transport == "tcp" else tcp.replace('"tcp"', '"rdma"\ntrusted_fabric = true', 1)

    def lie(self, kind: str, seed: int, after: int) -> None:
        """From now on."""
        new = self.folder / "lie.new"
        new.write_text(f"{kind} {seed} {after}\n", encoding="utf-8")
        new.rename(self.order)

    def start_both(self, instructions: int) -> tuple[Daemon, Daemon]:
        """Start them, not waiting for anything."""
        # What the sanitizer keeps of memory that was given back is not the daemon's.
        variables = self.variables | {"ASAN_OPTIONS": "quarantine_size_mb=1"}
        program = programs()[0] if self.transport == "tcp" else honest_over_rdma()
        honest = Daemon(self, "alpha", instructions=instructions, program=program, variables=variables)
        self.daemons.append(honest)
        variables = self.variables | {"LIAR_FILE": str(self.order), "DSMD_WITNESS": "1"}
        member = Daemon(self, "beta", instructions=instructions, program=liar(), variables=variables)
        self.daemons.append(member)
        return honest, member


@pytest.fixture(params=TRANSPORTS)
def hostile(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HostileSite]:
    made = HostileSite(tmp_path, request.param)
    yield made
    for daemon in made.daemons:
        daemon.process.kill()
        daemon.process.wait()


def memory_kib(daemon: Daemon) -> int:
    """What the process has."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)
    assert found, status
    return int(found[1])


LOST = r"state: failed: host beta is lost \({}\): \d+ pages of alpha were modified there; of its own 32 pages \d+ are here"
ENDS = LOST.format(".*")
GOES_ON = r"played: \d+ words checked"
EITHER = f"{ENDS}|{GOES_ON}"


def ends(why: str) -> str:
    """It is ended, and that is said."""
    return LOST.format(why)


def breach(why: str) -> str:
    return LOST.format("it breaks the protocol: .*: " + why)


@dataclasses.dataclass(frozen=True)
class Lie:
    """Of liar.c. `outcome`: what the other host's dsmd says then; `rdma`: where that is another one over RDMA."""

    kind: str
    outcome: str
    after: int = 40
    rdma: str = ""

    def outcome_over(self, transport: str) -> str:
        return (transport == "rdma" and self.rdma) or self.outcome

    def __str__(self) -> str:
        return self.kind


NO_MESSAGE = "bytes that are no message: "
TURN = "a question, an answer or a credit out of turn"
LIES = [
    Lie("garbage", ends("bytes that are no message.*")),
    Lie("version", ends(NO_MESSAGE + "a version that we do not speak")),
    Lie("type", ends(NO_MESSAGE + "no such message")),
    Lie("reason", ends(NO_MESSAGE + "a reason that makes no sense here")),
    Lie("length", ends(NO_MESSAGE + "a length that the type does not have")),
    Lie("reserved", ends(NO_MESSAGE + "a reserved byte is not 0")),
    Lie("epoch-old", ends("an epoch that can't be: .*")),
    Lie("epoch-ahead", ends("an epoch that can't be: .*")),
    Lie("flags", breach("flags that the type does not have")),
    Lie("gfn", breach("no such page")),
    # Of another page than was meant: what was meant is never done, at the latest that ends it.
    Lie("page-number", ENDS),
    # Of a home's answer: its own numbers, of which it may have any.
    Lie("transaction", EITHER),
    Lie("bit", EITHER),
    Lie("twice", ENDS),
    Lie("answer-twice", ENDS),
    # One that another page had no part in is as good as any.
    Lie("late", EITHER),
    Lie("replay", EITHER),
    Lie("mirror", ENDS),
    Lie("made-up", ENDS),
    Lie("put-not-shared", EITHER),
    Lie("unasked-ack", ENDS),
    Lie("unasked-grant", ENDS),
    Lie("recall-of-nothing", EITHER),
    Lie("token", breach("the page's home is another host")),
    Lie("link-kind", ends("bytes that are no message")),
    Lie("link-epoch", ends("an epoch that can't be")),
    Lie("answer-number", ends(TURN), 1),
    Lie("answers-twice", ends(TURN), 1),
    Lie("clock", ends("bytes that are no message"), 1),
    Lie("grant-back", ends(TURN), 1),
    Lie("grant-far", ends(TURN), 1),
    Lie("no-replies", ENDS),
    Lie("no-gifts", ENDS),
    Lie("no-answers", ends("a question was not answered in time"), 1),
    Lie("no-questions", ENDS, 1),  # it has none of ours, says so, and is believed
    Lie("no-credit", ENDS, 1),
    Lie("nothing", ENDS),
    # It hears no answer either, and may be the first to say so.
    Lie("deaf", ends("(a question was not answered in time|cut off: .*)")),
    # A SEND is whole, or it is not there.
    Lie("half", ends("cut off: closed within a message"), rdma=ends("bytes that are no message: too short")),
    Lie("flood", ENDS),
    Lie("questions", ends(TURN), 1),
    Lie("keys", EITHER),
    Lie("crowd", GOES_ON),
]


def assert_lied(member: Daemon, kind: str) -> None:
    member.until(f"liar: {kind}: a frame")


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
@pytest.mark.parametrize("lie", LIES, ids=str)
def test_a_member_lies(hostile: HostileSite, lie: Lie, seed: int) -> None:
    """The VM goes on, or ends with who and what was lost; no word is wrong, no memory is taken, neither process breaks."""
    honest, member = hostile.start_both(hostile.instructions)
    for daemon in (honest, member):
        daemon.until("state: running")
    hostile.lie(lie.kind, seed, lie.after * seed)
    before = memory_kib(honest)
    hostile.begin()
    outcome = lie.outcome_over(hostile.transport)
    honest.until(f"{outcome}|state: failed|OLD WORD|ERROR: ")
    assert re.search(outcome, honest.said), honest.said
    assert honest.process.poll() is None, honest.said
    assert memory_kib(honest) - before < MEMORY_KIB
    assert_lied(member, lie.kind)
    (status,) = json.loads(honest.ctl("--json", "status").stdout)
    if GOES_ON in outcome and re.search(GOES_ON, honest.said):
        assert status["state"] in {"running", "failed"}
        return
    # dsmctl says the same.
    assert status["state"] == "failed"
    assert re.search(outcome, "state: failed: " + status["failure"]), status["failure"]
    # The liar's own host is told, or sees the end; it has a name for it, and nothing breaks.
    member.until("state: failed: host alpha ")
    for daemon in (honest, member):
        assert daemon.ctl("forget", "web").returncode == 0
        assert daemon.end() == 1, daemon.said


# ---- vCPUs on both hosts ----


class HostileSpan(HostileSite):
    """vCPU 1 runs at beta, and each host has a page that is no plain memory, and one in use for ever: class U."""

    instructions = 400  # many of them wait for an access, or until a page is found in use

    def __init__(self, folder: Path, transport: str) -> None:
        super().__init__(folder, transport)
        self.description |= {"places": [{"first": 1, "vcpus": 1, "host": "beta"}], "class_u": True}
        self.variables["DSMD_STAYS"] = "3,35"

    def described(self, name: str) -> dict[str, Any]:
        of_beta = {key: value for key, value in self.description.items() if key != "domid"} | {"build": True}
        return of_beta if name == "beta" else self.description


@pytest.fixture(params=TRANSPORTS)
def span(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[HostileSpan]:
    made = HostileSpan(tmp_path, request.param)
    yield made
    for daemon in made.daemons:
        daemon.process.kill()
        daemon.process.wait()


SPAN_LOST = (
    r"state: failed: host beta is lost \({}\): vCPUs 1 ran there, \d+ pages of alpha were modified there;"
    r" of its own 32 pages \d+ are here"
)
SPAN_ENDS = SPAN_LOST.format(".*")
SPAN_EITHER = f"{SPAN_ENDS}|{GOES_ON}"
SPAN_LIES = [
    # Where an access goes, and what it writes: its own business, as long as it is one.
    Lie("access-bit", SPAN_EITHER, 10),
    Lie("access-twice", SPAN_EITHER, 10),
    Lie("no-access", SPAN_EITHER, 10),
    Lie("accessed-bit", SPAN_EITHER, 10),
    Lie("accessed-twice", SPAN_LOST.format("it breaks the protocol: ACCESSED .*: an answer that nobody waits for"), 10),
    Lie("no-accessed", SPAN_LOST.format("it does not answer ACCESS of vCPU 0 to gfn 0x2[34] for .*"), 10),
    # One that could be is made, and its answer is the first that the liar's own dsmd does not know.
    Lie("made-up-access", SPAN_ENDS, 10),
    Lie("made-up-accessed", SPAN_LOST.format("it breaks the protocol: ACCESSED .*"), 10),
    Lie("made-up-pause", SPAN_LOST.format("it breaks the protocol: PAUSE .*"), 10),
    Lie("made-up-paused", SPAN_LOST.format("it breaks the protocol: PAUSED .*"), 10),
    Lie("made-up-tsc", "state: failed: host beta: it breaks the protocol: TSC: its time goes back", 10),
    # Whose page it is may say so; then it makes the accesses, or says AGAIN.
    Lie("stays", SPAN_EITHER, 10),
    Lie("stays-always", SPAN_EITHER, 10),
    Lie("refused-stays", SPAN_EITHER, 0),
]


def test_honest_with_vcpus_on_both(span: HostileSpan) -> None:
    """What the lies below are told of: accesses each way."""
    honest, member = span.start_both(span.instructions)
    for daemon in (honest, member):
        daemon.until("state: running")
    span.begin()
    for daemon in (member, honest):
        daemon.until(f"{GOES_ON}|state: failed")
        assert re.search(GOES_ON, daemon.said), daemon.said
        (status,) = json.loads(daemon.ctl("--json", "status").stdout)
        assert status["engine"]["accesses"] > 10 and status["engine"]["accesses_done"] > 10, status["engine"]


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
@pytest.mark.parametrize("lie", SPAN_LIES, ids=str)
def test_a_member_with_vcpus_lies(span: HostileSpan, lie: Lie, seed: int) -> None:
    """As test_a_member_lies: of all pages but those that stay no word is another than the honest vCPU wrote."""
    test_a_member_lies(span, lie, seed)


def test_bytes_that_nobody_can_check(hostile: HostileSite) -> None:
    """Who has a page alone says what is in it: dsmd(8) promises nothing there. And the played guest notices a wrong word."""
    honest, member = hostile.start_both(20000)
    for daemon in (honest, member):
        daemon.until("state: running")
    hostile.lie("wrong-bytes", 1, 20)
    hostile.begin()
    assert_lied(member, "wrong-bytes")
    honest.until("OLD WORD")
    assert "state: failed" not in honest.said


def test_a_clock_that_jumps_for_ever(hostile: HostileSite) -> None:
    """Nobody rests on it: the VM goes on. It is said, and does not fill the log."""
    hostile.limits["question_ms"] = 10
    honest, member = hostile.start_both(100)
    for daemon in (honest, member):
        daemon.until("state: running")
    hostile.lie("clocks", 1, 0)
    assert_lied(member, "clocks")
    end = time.monotonic() + PATIENCE
    jumps = 0
    while jumps < 20 and time.monotonic() < end:
        honest.read(time.monotonic() + 0.2)
        (status,) = json.loads(honest.ctl("--json", "status").stdout)
        jumps = status["peers"]["beta"]["clock"]["jumps"]
    assert jumps >= 20, status
    assert status["state"] == "running"
    # Eight at once, one each 10 s.
    assert 1 <= honest.said.count("the clocks have moved") <= 8 + PATIENCE / 10


HELLOS = {
    "hello-none": "no HELLO: no such message",
    "hello-lowest": "no common version of the protocol",
    "hello-versions": "no common version of the protocol",
    "hello-host": "HELLO of another host than the certificate's: host 0 of 2",
    "hello-hosts": "HELLO with another number of hosts: host 1 of 16",
    "hello-reserved": "no HELLO: a reserved byte is not 0",
    "hello-vm": "HELLO of another VM",
    "hello-epoch-none": "an epoch that can't be",
    "hello-epoch-far": "an epoch that can't be",
}


@pytest.mark.parametrize("kind", HELLOS)
def test_a_hello_that_lies(hostile: HostileSite, kind: str) -> None:
    """There is no connection, with a reason, and an honest one is still taken."""
    hostile.lie(kind, 1, 0)
    honest, member = hostile.start_both(100)
    honest.until(f"host beta: no connection: {HELLOS[kind]}")
    if hostile.transport == "rdma":
        # It was not up yet: it tries again, and lies once only.
        member.until("host alpha: no connection: ")
    else:
        member.until("state: failed: host alpha ")
        assert honest.process.poll() is None and "state: failed" not in honest.said
        member.process.kill()
        member.process.wait()
        hostile.order.unlink()
        member = Daemon(hostile, "beta", instructions=100, program=liar(), variables={"DSMD_WITNESS": "1"})
        hostile.daemons.append(member)
    for daemon in (honest, member):
        daemon.until("state: running")
    assert "state: failed" not in honest.said
