# SPDX-License-Identifier: GPL-2.0
"""The programs in dom0 that DSM is compared with, here: round trips over loopback, and a disk in memory that trusts nobody.

Then what becomes of their words: figures with the names that the result has, and what is malformed is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import dsm, dsm_faults, host_programs, membench, remote_swap, results, round_trips
from benchmarks.report import FAULT_PHASES, report_page
from benchmarks.results import Metric, Result, encode, problems
from lab import spanning
from lab.command import Done
from lab.elastic_guest import PROGRAMS
from lab.errors import CommandFailedError, Malformed
from lab.pipeline.paths import REPO
from lab.rack import Rack

MIB = 2**20
PATIENCE_S = 60


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of them, with certificates, as they are put on hosts."""
    folder = tmp_path_factory.mktemp("hosts")
    host_programs.build(folder)
    round_trips.prepare(folder)
    return folder


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


# --- round trips ----------------------------------------------------------------------------------------------------------


def ends(
    programs: Path, waiting: str, names: str = ",".join(round_trips.NAMES)
) -> list[subprocess.CompletedProcess[str]]:
    """Both ends, each at an address of its own."""
    port = str(free_port("127.0.0.2"))
    addresses = ["127.0.0.2", "127.0.0.3"]
    running = []
    for number in (0, 1):
        words: list[str | Path] = [
            programs / "dsm_rtt",
            programs,
            "tcp",
            str(number),
            names,
            *addresses[:: 1 - 2 * number],
            port,
            waiting,
            "20",
        ]
        running.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        if number == 0:
            assert running[0].stdout and "listening" in running[0].stdout.readline()
    asked, answered = running[1], running[0]
    try:
        said = [each.communicate(timeout=PATIENCE_S) for each in (asked, answered)]
    finally:
        for each in running:
            each.kill()
    return [
        subprocess.CompletedProcess(each.args, each.returncode, *words)
        for each, words in zip((asked, answered), said, strict=True)
    ]


@pytest.mark.fresh
@pytest.mark.parametrize("waiting", round_trips.WAITING)
def test_round_trips_over_loopback(programs: Path, waiting: str) -> None:
    asked, answered = ends(programs, waiting)
    assert (asked.returncode, answered.returncode) == (0, 0), asked.stderr + answered.stderr
    found = round_trips.parse(asked.stdout, "tcp", waiting)
    assert found.rounds == 20 and all(each["p50"] > 0 for each in found.ns.values())
    names = [metric.metric for metric in round_trips.metrics([found])]
    assert names == [f"dsm.rtt.tcp.{waiting}.{kind}" for kind in ("fault_us", "page_us", "stream_pages_per_second")]
    assert found.pages_per_second > 0


@pytest.mark.parametrize(
    "words",
    [
        "",
        "P tcp 2 a,b 127.0.0.1 127.0.0.1 1 poll 1",
        "P udp 0 a,b 127.0.0.1 127.0.0.1 1 poll 1",
        "P tcp 0 a 127.0.0.1 127.0.0.1 1 poll 1",
        "P tcp 0 a,b 127.0.0.1 127.0.0.1 0 poll 1",
        "P tcp 0 a,b 127.0.0.x 127.0.0.1 1 poll 1",
        "P tcp 0 a,b 127.0.0.1 127.0.0.1 1 dream 1",
        "P tcp 0 a,b 127.0.0.1 127.0.0.1 1 poll 0",
        "P tcp 0 a,b 127.0.0.1 127.0.0.1 1 poll 1000001",
    ],
)
def test_bad_words_for_round_trips(programs: Path, words: str) -> None:
    arguments = [str(programs) if word == "P" else word for word in words.split()]
    done = subprocess.run([programs / "dsm_rtt", *arguments], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 2 and ("usage" in done.stderr or "no address" in done.stderr), done.stderr


QUANTILES = {"p10": 1000, "p50": 2000, "p90": 3000, "p99": 4000, "max": 5000}


def trips(what: str, **changed: Any) -> str:
    return json.dumps({"event": "round_trips", "what": what, "rounds": 5, "ns": QUANTILES, **changed}) + "\n"


STREAM = json.dumps({"event": "stream", "pages": 50, "ns": 100_000_000}) + "\n"


def test_pages_that_are_streamed() -> None:
    found = round_trips.parse(trips("fault") + trips("page") + STREAM, "tcp", "poll")
    assert found.pages_per_second == pytest.approx(500)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "each once"),
        (trips("fault") + trips("page"), "each once"),
        (trips("fault") + trips("page") + STREAM + STREAM, "each once"),
        (trips("fault") + trips("page") + STREAM.replace("50", '"50"'), "pages"),
        (trips("fault"), "each once"),
        (trips("fault") + trips("other"), "each once"),
        (trips("fault") + trips("page", rounds=6), "each once"),
        (trips("fault") + trips("page", rounds="5"), "rounds"),
        (trips("fault") + trips("page", ns={}), "p10"),
        (trips("fault") + trips("page")[:40], "not JSON"),
    ],
)
def test_malformed_round_trips(text: str, part: str) -> None:
    with pytest.raises(Malformed, match=part):
        round_trips.parse(text, "tcp", "poll")


def test_figures_of_round_trips() -> None:
    ns = {"fault": QUANTILES, "page": {key: 10 * number for key, number in QUANTILES.items()}}
    found = round_trips.metrics([round_trips.RoundTrips("rdma", "sleep", 7, ns, 123.0)])
    assert [(each.metric, each.value) for each in found] == [
        ("dsm.rtt.rdma.sleep.fault_us", 2.0),
        ("dsm.rtt.rdma.sleep.page_us", 20.0),
        ("dsm.rtt.rdma.sleep.stream_pages_per_second", 123.0),
    ]
    assert found[0].baseline == {"p10_us": 1.0, "p90_us": 3.0, "p99_us": 4.0, "max_us": 5.0}
    assert found[0].note.startswith("median of 7: ")


@dataclasses.dataclass
class Wired:
    """A host of a rack of two, its description, and the end of its cable."""

    name: str
    at: str

    @property
    def description(self) -> Wired:
        return self

    def address(self) -> str:
        return self.at


class WiredRack:
    """Two hosts with a cable between them."""

    def __init__(self) -> None:
        self.hosts = (Wired("alpha", "10.78.0.1"), Wired("beta", "10.78.0.2"))
        self.description = self

    def wire(self, name: str) -> Wired:
        return next(host for host in self.hosts if host.name == name)


@pytest.mark.parametrize("waiting", round_trips.WAITING)
def test_both_ends_are_told_the_same(monkeypatch: pytest.MonkeyPatch, waiting: str) -> None:
    """Host 0 answers and host 1 asks; both wait in the same way, as often; and what is read is what host 1 says."""
    said: list[tuple[str, str]] = []

    class End:
        def __init__(self, host: Wired, words: str) -> None:
            self.host = host
            said.append((host.name, words))

        def await_word(self, word: str) -> None:
            assert self.host.name == "alpha" and word == "listening" and len(said) == 1

        def finish(self, _: float) -> str:
            return trips("fault") + trips("page") + STREAM if self.host.name == "beta" else "listening\n"

    monkeypatch.setattr(round_trips, "running", lambda host, words: contextlib.nullcontext(End(host, words)))
    found = round_trips.measure(WiredRack(), "tcp", waiting, 5)  # type: ignore[arg-type]
    assert (found.transport, found.waiting, found.rounds) == ("tcp", waiting, 5)
    names, port = ",".join(round_trips.NAMES), round_trips.PORT
    start = f"dsm_rtt {host_programs.FOLDER} tcp"
    assert said == [
        ("alpha", f"{start} 0 {names} 10.78.0.1 10.78.0.2 {port} {waiting} 5"),
        ("beta", f"{start} 1 {names} 10.78.0.2 10.78.0.1 {port} {waiting} 5"),
    ]


def test_a_kernel_is_asked_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the host that asks in the other measurement, too: as many bytes as a message with a page; the median."""
    times = (9, 1, 2, 30, 4)
    lines = "".join(f"4136 bytes from 10.78.0.1: icmp_seq={n} ttl=64 time={ms} ms\n" for n, ms in enumerate(times))
    said: list[tuple[str, str]] = []

    def checked(host: Wired, words: str, _: float) -> str:
        said.append((host.name, words))
        return lines

    monkeypatch.setattr(round_trips, "run_in", lambda host: host)
    monkeypatch.setattr(round_trips, "checked", checked)
    found = round_trips.kernel_echo(WiredRack(), 5)  # type: ignore[arg-type]
    ((asks, words),) = said
    assert asks == "beta" and words.endswith(" -s 4128 10.78.0.1") and " -c 5 " in words
    assert (found.metric, found.value, found.baseline["max_us"]) == ("dsm.rtt.kernel.page_us", 4000, 30000)


# --- a disk in memory ------------------------------------------------------------------------------------------------------

READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698


def request(
    kind: int, offset: int = 0, length: int = 0, magic: int = REQUEST_MAGIC, handle: bytes = b"01234567"
) -> bytes:
    """NBD's protocol, doc/proto.md: a request of the transmission phase."""
    return struct.pack(">II8sQI", magic, kind, handle, offset, length)


class Disk:
    """The server, and a client that is not Linux."""

    def __init__(self, programs: Path) -> None:
        port = free_port("127.0.0.2")
        self.server = subprocess.Popen(
            [programs / "nbd_ram", "serve", "127.0.0.2", str(port), "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.server.stdout and self.server.stdout.readline() == "listening\n"
        self.client = socket.create_connection(("127.0.0.2", port), PATIENCE_S)

    def ask(self, data: bytes, more: bytes = b"", wanted: int = 0) -> bytes:
        self.client.sendall(data + more)
        reply = self.take(16 + wanted)
        assert reply[:16] == struct.pack(">II8s", REPLY_MAGIC, 0, data[8:16])
        return reply[16:]

    def take(self, length: int) -> bytes:
        got = b""
        while len(got) < length:
            piece = self.client.recv(length - len(got))
            assert piece, f"{len(got)} of {length} bytes"
            got += piece
        return got

    def end(self) -> tuple[int, str, str]:
        out, err = self.server.communicate(timeout=PATIENCE_S)
        return self.server.returncode, out, err


@pytest.fixture
def disk(programs: Path) -> Iterator[Disk]:
    made = Disk(programs)
    yield made
    made.client.close()
    made.server.kill()
    made.server.wait()


def test_what_was_written_is_read(disk: Disk) -> None:
    page, other = bytes(range(256)) * 16, b"x" * 4096
    assert disk.ask(request(READ, 0, MIB), wanted=MIB) == bytes(MIB)
    disk.ask(request(WRITE, 4096, 4096), page)
    disk.ask(request(WRITE, MIB - 4096, 4096, handle=b"end-end-"), other)
    disk.ask(request(FLUSH))
    assert disk.ask(request(READ, 0, 12288), wanted=12288) == bytes(4096) + page + bytes(4096)
    assert disk.ask(request(READ, MIB - 4096, 4096), wanted=4096) == other
    disk.client.sendall(request(DISCONNECT))
    status, out, _ = disk.end()
    assert status == 0
    assert json.loads(out) == {"reads": 3, "writes": 2, "read_bytes": MIB + 16384, "written_bytes": 8192}


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (request(READ, 0, 4096, magic=1), "magic 00000001"),
        (request(READ, MIB, 1), "1 bytes from 1048576"),
        (request(READ, 2**64 - 4096, 8192), "8192 bytes from"),
        (request(WRITE, 0, MIB + 1), "1048577 bytes from 0"),
        (request(7), "type 7"),
        (request(WRITE, 0, 4096) + b"short", "went within 4096"),
        (request(READ)[:20], "went within 28"),
    ],
)
def test_a_client_that_breaks_the_protocol_ends_the_disk(disk: Disk, data: bytes, part: str) -> None:
    disk.client.sendall(data)
    disk.client.shutdown(socket.SHUT_WR)
    status, _, err = disk.end()
    assert status == 1 and part in err, err


def test_a_client_that_just_goes_is_no_error(disk: Disk) -> None:
    disk.client.close()
    assert disk.end()[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        "",
        "serve 127.0.0.2 0 1",
        "serve nowhere 1 1",
        "serve 127.0.0.2 1 0",
        "serve 127.0.0.2 1 1x",
        "attach 127.0.0.2 1 1",
    ],
)
def test_bad_words_for_a_disk(programs: Path, words: str) -> None:
    done = subprocess.run(
        [programs / "nbd_ram", *words.split()], capture_output=True, text=True, timeout=10, check=False
    )
    assert done.returncode == 2 and done.stderr.startswith("nbd_ram: "), done.stderr


def test_a_disk_that_is_not_there(programs: Path) -> None:
    port = str(free_port("127.0.0.2"))
    done = subprocess.run(
        [programs / "nbd_ram", "attach", "127.0.0.2", port, "1", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "refused" in done.stderr, done.stderr


def test_an_idle_server_can_be_ended(programs: Path) -> None:
    disk = Disk(programs)
    disk.server.send_signal(signal.SIGTERM)
    assert disk.end()[0] == -signal.SIGTERM


# --- figures ----------------------------------------------------------------------------------------------------------------


def output(per_page_us: dict[tuple[str, str], float]) -> membench.Output:
    """What the program would print of a guest with these times; pages that are at hand take 2 us."""
    passes = [
        membench.Pass(
            number, what, order, state, pages, int(5000 + 1000 * pages * (us if state == "cold" else 2)),
            pages // 2 if state == "cold" else 0, {"p10": 1, "p50": 1000, "p90": 2000, "p99": 3000, "max": 9999}, ((8, pages),),
        )
        for number in range(3)
        for pages in (8, 16)
        for (what, order), us in per_page_us.items()
        for state in ("cold", "warm")
    ]  # fmt: skip
    return membench.Output(tuple(passes), (), 1, 10, 20_000)


US = {("read", "sequential"): 10.0, ("read", "random"): 40.0, ("write", "sequential"): 20.0, ("write", "random"): 50.0}


def test_figures_of_pages_that_are_not_at_hand() -> None:
    found = {metric.metric: metric for metric in dsm.touched(output(US), "dsm.swap.cluster0", swapped_in_pages=7)}
    for (what, order), us in US.items():
        metric = found[f"dsm.swap.cluster0.page.{what}_{order}_us"]
        assert metric.value == pytest.approx(us) and len(metric.runs) == 3
        assert metric.baseline["less_when_at_hand_us"] == pytest.approx(us - 2)
        assert metric.baseline["major_faults_per_page"] == 0.5
        assert metric.baseline["swapped_in_pages"] == 7
        assert (metric.baseline["first_word_p50_us"], metric.baseline["first_word_p99_us"]) == (1, 3)
    assert found["dsm.swap.cluster0.pages_per_second.random"].value == pytest.approx(25000)
    assert problems(encode(Result("dsm", "2026-01-31T12:00:00Z", HOST, list(found.values())))) == []


HOST = {"cpus": 2, "memory_mib": 1, "cpu_model": "x", "kernel": "6", "emulated": True}


def test_a_limited_command_has_its_numbers() -> None:
    words = remote_swap.limited("touch --sizes=1,2", 1024, 3)
    assert re.search(r"echo 4718592 >\S+/memory.max", words) and "echo 3 >/proc/sys/vm/page-cluster" in words


def test_who_is_limited_is_the_program(tmp_path: Path) -> None:
    """Not the shell that begins it: its process number is what $$ is in a subshell, too."""
    program = tmp_path / "dsm_membench"
    program.write_text('#!/bin/sh\necho "$$ $*"\n')
    program.chmod(0o755)
    words = remote_swap.limited("touch --sizes=1", 64, 0)
    for folder in ("/sys/fs/cgroup", "/proc/sys/vm", PROGRAMS):
        words = words.replace(folder, str(tmp_path))
    done = subprocess.run(["sh", "-c", f"{words}\ntrue"], capture_output=True, text=True, check=True)
    pid, _, rest = done.stdout.strip().partition(" ")
    assert rest == "touch --sizes=1"
    # 0: who writes it.
    assert (tmp_path / "membench" / "cgroup.procs").read_text().strip() in ("0", pid)


def test_a_part_that_fails_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its figures until then stay; what was not measured is not there."""

    def good(*_: object) -> Iterator[Metric]:
        yield Metric("dsm.a", 1, "us")

    def bad(*_: object) -> Iterator[Metric]:
        yield Metric("dsm.b", 2, "us")
        raise Malformed("half of it")

    monkeypatch.setattr(dsm, "PARTS", {"bad": bad, "good": good})
    monkeypatch.setattr(host_programs, "build", lambda _: None)
    monkeypatch.setattr(host_programs, "install", lambda *_: None)
    monkeypatch.setattr(round_trips, "prepare", lambda _: None)

    class NoRack:
        hosts: tuple[object, ...] = ()

    found: list[Metric] = []

    def add(metric: Metric) -> list[Metric]:
        found.append(metric)
        return found

    failed = dsm.measure(NoRack(), ["bad", "good"], dsm.Amount(), add)  # type: ignore[arg-type]
    assert failed == ["bad: half of it"]
    assert [(metric.metric, metric.value) for metric in found] == [("dsm.b", 2), ("dsm.a", 1), ("dsm.part.bad", None)]
    dsm.show(found[-1])
    assert "dsm.part.bad not measured" in capsys.readouterr().out


def test_a_round_that_took_less_than_nothing_does_not_flatter() -> None:
    """Of rounds of -10, 20 and 40 us for a page the rate is that of the median."""
    slow = output(US)
    us = {0: -10.0, 1: 20.0, 2: 40.0}
    passes = tuple(
        membench.Pass(**{**vars(each), "ns": int(50000 + 1000 * each.pages * us[each.round])})
        if (each.what, each.order, each.state) == ("read", "random", "cold")
        else each
        for each in slow.passes
    )
    found = {metric.metric: metric for metric in dsm.touched(membench.Output(passes, (), 1), "dsm")}
    assert found["dsm.pages_per_second.random"].value == pytest.approx(50000)
    assert sorted(found["dsm.pages_per_second.random"].runs) == pytest.approx([25000, 50000])


def missed(cold: tuple[tuple[int, int], ...]) -> membench.Output:
    """Pages that are at hand take 1 us."""
    first = {"p50": 1000}
    return membench.Output(
        (
            membench.Pass(0, "write", "random", "cold", 20, 9, 0, {}, cold),
            membench.Pass(0, "read", "random", "warm", 20, 9, 0, first, ((1280, 20),)),
        ),
        (),
        1,
    )


@pytest.mark.parametrize(
    ("cold", "here"),
    [
        (((40960, 20),), 0),
        (((1280, 2), (40960, 18)), 2),
        (((1280, 1), (32000, 2), (40960, 17)), 3),
        (((1280, 20),), 20),
    ],
)
def test_what_is_cold_was_not_at_hand(cold: tuple[tuple[int, int], ...], here: int) -> None:
    if here <= 2:
        membench.check_missed(missed(cold))
        return
    with pytest.raises(Malformed, match=f"{here} of 20 pages were at hand in a cold pass, writes in random order"):
        membench.check_missed(missed(cold))


def test_what_is_at_hand_may_take_no_time() -> None:
    """By a clock that stands still at times: what is at hand in a cold pass is noticed all the same."""
    found = missed(((640, 3), (40960, 17)))
    cold, warm = found.passes
    found = dataclasses.replace(found, passes=(cold, dataclasses.replace(warm, first_ns={"p50": 0})))
    with pytest.raises(Malformed, match="3 of 20 pages were at hand"):
        membench.check_missed(found)


def test_without_a_pass_at_hand_nothing_is_known() -> None:
    with pytest.raises(Malformed, match="at hand"):
        membench.check_missed(membench.Output((), (), 1))


# --- what a guest does, played ---------------------------------------------------------------------------------------------


def snapshot(**more: Any) -> dsm_faults.Snapshot:
    return dataclasses.replace(dsm_faults.Snapshot.of(XEN, STATUS, OTHER), **more)


class Played:
    """Instead of a guest that spans hosts: what it is told, and counters that go up as it would have them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, works: bool = True) -> None:
        self.said: list[str] = []
        self.hosts = (self, self)
        self.guest = self
        self.works = works
        self.prefetches = self.cleared = 0
        self.switches = dict(dsm.SWITCHES["off"])
        self.trips: list[str] = []
        self.trip_us = iter(range(1, 100))
        self.looks = self.sleeps = 0
        self.polls = True
        # Of detaches: 2 MiB take 25.6 s, streamed 12.8 s, and 51.2 ms a page more, streamed 12.8 ms.
        self.seconds: dict[tuple[bool, int], list[float]] = {
            (False, 2): [25.6, 25.6], (True, 2): [12.8, 16.0], (False, 6): [78.0], (True, 6): [27.5],
            (False, 8): [100.0],
        }  # fmt: skip
        self.fails = False  # round trips
        self.reads = self.writes = self.messages = 0
        self.evacuating = False
        self.more_kib = 0  # on the node than it has to be
        self.streams = False
        self.first_ns = 1 << 20  # of a page that is called cold; 1000: at hand
        monkeypatch.setattr(dsm, "run_in", lambda host: host)
        monkeypatch.setattr(dsm, "checked", self.run)
        monkeypatch.setattr(dsm, "wait_for", self.wait_for)
        monkeypatch.setattr(dsm, "detach", self.detach)
        monkeypatch.setattr(dsm, "run_membench", self.membench)
        monkeypatch.setattr(dsm, "attached", lambda *_: contextlib.nullcontext((self, 1.0)))
        monkeypatch.setattr(round_trips, "measure", self.trip)
        monkeypatch.setattr(dsm_faults.Snapshot, "take", staticmethod(lambda _: self.take()))

    def run(self, _: object, words: str) -> str:
        self.said.append(words)
        self.evacuating |= words == f"dsmctl evacuate {spanning.NAME}"
        # As in dsmd what was said holds for the detaches after it, too.
        self.streams = {LEAVING: True, STAYING: False}.get(words, self.streams)
        return ""

    def status(self) -> dict[str, Any]:
        return {"engine": {"evacuating": self.evacuating}}

    def wait_for(self, what: str, seconds: float, until: Callable[[], bool]) -> None:
        assert not until()
        self.evacuating = False
        assert until()

    def trip(self, rack: object, transport: str, waiting: str, rounds: int) -> round_trips.RoundTrips:
        if self.fails:
            raise Malformed("no answer")
        assert rounds == dsm.TRIPS
        self.trips.append(f"{transport} {waiting}")
        self.said.append(f"trip with {'none' if not any(self.switches.values()) else self.switches}")
        us = {"p50": 1000 * next(self.trip_us)}
        return round_trips.RoundTrips(transport, waiting, rounds, {"fault": us, "page": {"p50": 9}}, 1.0)

    def attach(self, *words: object, timeout: float) -> Done:
        self.said.append("attach")
        return Done(0, "", "")

    def detach(
        self, there: Played, begin: Callable[[], None] | None = None, mib: int = dsm.USED_MIB
    ) -> tuple[float, int]:
        assert there is self and mib in ((dsm.FEW_MIB, dsm.MANY_MIB) if begin else (dsm.USED_MIB,))
        if begin:
            begin()
        assert not self.evacuating
        self.prefetches += 40 * (self.streams and self.works)
        seconds = self.seconds[self.streams, mib].pop(0)
        self.said.append(f"detach {mib}")
        return seconds, mib * 1024 + self.more_kib

    def switch(self, switches: Mapping[str, int]) -> None:
        self.switches = dict(switches)

    def membench(self, _: object, words: str) -> membench.Output:
        self.said.append(words)
        if self.switches["prefetch"]:
            self.prefetches += self.works
        self.sleeps += 3
        self.looks += bool(self.switches["poll_us"]) and self.polls
        if self.switches["clear_hint"]:
            self.cleared += " copy " in words and self.works
        copied = (membench.Copy(0, 2, 1, 256_000, 0, 0),)
        passes = tuple(dataclasses.replace(each, buckets=((self.first_ns, each.pages),)) for each in output(US).passes)
        # Copies are of 512 pages; a read takes 40 messages, a write 3.
        copying = " copy " in words
        reads, writes = (28, 300) if copying else (5, 0)
        self.reads, self.writes = self.reads + reads, self.writes + writes
        self.messages += 40 * reads + 3 * writes
        return membench.Output(passes, copied if copying else (), 1, 5, 20_000)

    def take(self) -> dsm_faults.Snapshot:
        """Counters, now."""
        times = self.reads
        phases = {phase: times for phase in ("queue", "wire", "install", "serve")}
        return snapshot(
            prefetches=self.prefetches, cleared=self.cleared, looks=self.looks, sleeps=self.sleeps, sent=self.messages,
            read_faults=times, write_faults=self.writes, waits=times, wait_ns=times,
            traps=times, trap_ns=times, wakes=times, wake_ns=times,
            wait_buckets={8.0: times}, fault_buckets={8.0: times}, phase_counts=phases, phase_ns=phases,
        )  # fmt: skip


LEAVING = f"dsmctl leaving {spanning.NAME} 1 0"
STAYING = f"dsmctl leaving {spanning.NAME} 1 131072"


def detaches(found: list[Metric] | None = None) -> dict[str, Metric]:
    return {metric.metric: metric for metric in dsm._detach(None, found or [], dsm.Amount())}  # type: ignore[arg-type]


def test_a_detach_with_streams_is_compared_with_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    found = detaches()
    assert found["dsm.detach.speedup"].value == pytest.approx((1 / 12.8 + 1 / 16) / 2 * 25.6)
    plain, streamed = found["dsm.detach.plain.2_mib.seconds"], found["dsm.detach.streamed.2_mib.seconds"]
    assert plain.value == pytest.approx(25.6) and streamed.value == pytest.approx(14.4)
    # Each twice, and neither always first: what gets slower by and by is no difference.
    assert list(streamed.runs) == pytest.approx([12.8, 16]) and len(plain.runs) == 2
    assert [said for said in played.said if "evacuate" not in said] == [
        STAYING, "detach 2", "attach", LEAVING, "detach 2", "attach", STAYING, "detach 6", "attach", LEAVING, "detach 6",
        "attach", LEAVING, "detach 2", "attach", STAYING, "detach 2",
    ]  # fmt: skip
    spread = found["dsm.detach.speedup"].baseline
    assert spread["least"] == pytest.approx(25.6 / 16) and spread["most"] == pytest.approx(2)
    assert plain.baseline["prefetches_per_page"] == 0 and streamed.baseline["prefetches_per_page"] == 40 / 512
    assert sum("evacuate" in said for said in played.said) == 6


def test_what_a_gib_costs_is_a_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each detach takes besides is no part of it: 1024 pages more take 52.4 s more, and 13.1 s with streams."""
    Played(monkeypatch)
    found = detaches()
    plain, streamed = (found[f"dsm.detach.{name}.seconds_per_gib"] for name in ("plain", "streamed"))
    assert plain.value == pytest.approx(52.4 / 1024 * 262144) and list(plain.runs) == pytest.approx([plain.value] * 2)
    assert plain.baseline["fixed_seconds"] == pytest.approx(25.6 - 26.2)
    assert (plain.baseline["pages_few"], plain.baseline["pages_many"]) == (512, 1536)
    assert streamed.value == pytest.approx((27.5 - 14.4) / 1024 * 262144)
    assert list(streamed.runs) == pytest.approx([14.7 * 256, 11.5 * 256])
    assert found["dsm.detach.page.speedup"].value == pytest.approx(52.4 / 13.1)
    assert found["dsm.detach.plain.6_mib.seconds"].value == 78


def test_more_in_use_that_takes_no_longer_is_no_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other kind has its figures, and there is nothing to compare."""
    Played(monkeypatch).seconds[False, 6] = [20.0]
    found = []
    with pytest.raises(Malformed, match=r"dsm\.detach\.plain: seconds for a page, a slope: no time: -"):
        for metric in dsm._detach(None, [], dsm.Amount()):  # type: ignore[arg-type]
            found.append(metric.metric)
    assert found == [
        "dsm.detach.plain.2_mib.seconds", "dsm.detach.plain.6_mib.seconds", "dsm.detach.streamed.2_mib.seconds",
        "dsm.detach.streamed.6_mib.seconds", "dsm.detach.streamed.seconds_per_gib",
    ]  # fmt: skip


def test_pages_of_a_detach_are_not_rounded_to_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    Played(monkeypatch).more_kib = 1020
    found = detaches()
    plain, streamed = (found[f"dsm.detach.{name}.2_mib.seconds"].baseline for name in ("plain", "streamed"))
    assert plain["mib_in_use"] == pytest.approx(2 + 1020 / 1024)
    assert plain["pages_per_second"] == pytest.approx((512 + 255) / 25.6)
    assert streamed["prefetches_per_page"] == pytest.approx(40 / (512 + 255))


class Leaving:
    """Instead of a guest whose node is detached: what memcheck has said, and where its memory is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.guest = self
        self.said: list[str] = []
        self.where = {0: 5000, 1: 8100}
        self.bad = self.status = 0
        self.clock = 50.0
        monkeypatch.setattr(time, "monotonic", lambda: self.clock)
        monkeypatch.setattr(dsm, "wait_for", lambda _, __, until: until() or pytest.fail("it never is"))

    def __call__(self, words: str, timeout: float = 0) -> Done:
        self.said.append(words)
        self.clock += 100
        ended = f'ready\n{{"checks":3,"bad_pages":{self.bad}}}\n'
        return Done(*((0, "77\n", "") if "echo $!" in words else (0, ended, "") if "cat" in words else (1, "", "")))

    # In ElasticGuest the guest's shell is an attribute of the same name.
    def resident(self, pid: int) -> dict[int, int]:
        assert pid == 77
        return self.where

    def detach(self, *words: object, timeout: float) -> Done:
        self.said.append("detach")
        self.clock += 7
        return Done(self.status, "", "it stays")


def leaving(monkeypatch: pytest.MonkeyPatch) -> Leaving:
    there = Leaving(monkeypatch)

    def checked(run: Callable[[str], Done], words: str, timeout: float = 0) -> str:
        return run(words).out

    monkeypatch.setattr(dsm, "checked", checked)
    return there


def test_a_detach_says_what_was_on_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of node 1, in KiB; stopped while it goes only if something is to be done before."""
    there = leaving(monkeypatch)
    seconds, kib = dsm.detach(there)  # type: ignore[arg-type]
    assert kib == 8100 and seconds == 7 and "kill -STOP 77" not in there.said
    there = leaving(monkeypatch)
    # What is done before and after it is no part of its time.
    assert dsm.detach(there, lambda: there("begin") and None)[0] == 7  # type: ignore[arg-type]
    at = [there.said.index(word) for word in ("kill -STOP 77", "begin", "detach", "kill -CONT 77", "kill 77")]
    assert at == sorted(at)


def test_what_xl_could_not_do_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    there = leaving(monkeypatch)
    there.status = 1
    with pytest.raises(CommandFailedError, match="vnode-detach: exit status 1: it stays"):
        dsm.detach(Detachable(there))  # type: ignore[arg-type]


@dataclasses.dataclass
class Detachable:
    """A guest with its two dsmd."""

    guest: Any

    def said(self) -> str:
        return "what dsmd says"


@pytest.mark.parametrize("status", [0, 1])
def test_an_attach_is_timed_from_its_beginning(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    clock = [10.0]

    class Guest:
        def attach(self, *words: object, timeout: float) -> Done:
            clock[0] += 17
            return Done(status, "", "no memory")

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    there = Detachable(Guest())
    monkeypatch.setattr(spanning, "spanning", lambda *_: contextlib.nullcontext(there))
    if status:
        with (
            pytest.raises(CommandFailedError, match=r"vnode-attach: exit status 1: no memory\nwhat dsmd"),
            dsm.attached(None, dsm.Amount(), "tcp"),  # type: ignore[arg-type]
        ):
            pass
        return
    with dsm.attached(None, dsm.Amount(), "tcp") as (_, seconds):  # type: ignore[arg-type]
        clock[0] += 5
    assert seconds == 17


def test_round_trips_are_measured_with_each_way_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred for each round, by each host's dsmd's transport, and by the kernels."""
    said: list[object] = []

    def measure(rack: object, *words: object) -> round_trips.RoundTrips:
        said.append(words)
        return round_trips.RoundTrips(str(words[0]), str(words[1]), 7, {"fault": QUANTILES, "page": QUANTILES}, 1.0)

    def echo(rack: object, rounds: int) -> Metric:
        said.append(rounds)
        return metric_of("dsm.rtt.kernel.page_us", 3)

    monkeypatch.setattr(round_trips, "measure", measure)
    monkeypatch.setattr(round_trips, "kernel_echo", echo)
    names = [metric.metric for metric in dsm.rtt(None, [], dsm.Amount(rounds=4))]  # type: ignore[arg-type]
    assert said == [("tcp", "poll", 400), ("tcp", "sleep", 400), 400]
    assert {"dsm.rtt.tcp.poll.fault_us", "dsm.rtt.tcp.sleep.fault_us", "dsm.rtt.kernel.page_us"} < set(names)


class Swapper:
    """A guest, and what it and its dom0 are told."""

    name = "swapper"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dom0, self.guest = self.run, self.run
        self.said: list[str] = []
        monkeypatch.setattr(remote_swap, "checked", lambda run, words, *_: run(words).out)

    def run(self, words: str) -> Done:
        self.said.append(words)
        return Done(0, "pgpgin 1\npswpin 21\npswpout 90\n", "")


def test_a_guest_swaps_on_the_other_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it swapped on before is off; what is counted are pages that were read."""
    guest = Swapper(monkeypatch)
    with remote_swap.swapping(guest):  # type: ignore[arg-type]
        assert remote_swap.swapped_in(guest) == 21  # type: ignore[arg-type]
    attach, _, on, _, off, detach = guest.said
    assert attach == "xl block-attach swapper phy:/dev/nbd0 xvdb w" and detach == "xl block-detach swapper xvdb"
    assert on == "swapoff -a; mkswap /dev/xvdb && swapon /dev/xvdb" and off == "swapoff /dev/xvdb"


def test_a_wrong_byte_after_a_detach_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    there = leaving(monkeypatch)
    there.bad = 1
    with pytest.raises(Malformed, match='"bad_pages":1}'):
        dsm.detach(there)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kib", "good"), [(7373, True), (7372, False), (0, False)])
def test_a_detach_of_a_node_that_the_program_is_not_on_is_none(
    monkeypatch: pytest.MonkeyPatch, kib: int, good: bool
) -> None:
    there = leaving(monkeypatch)
    there.where = {0: 8192, 1: kib} if kib else {0: 8192}
    if good:
        assert dsm.detach(there)[1] == kib  # type: ignore[arg-type]
        return
    with pytest.raises(Malformed, match=f"8 MiB has {kib} KiB"):
        dsm.detach(there)  # type: ignore[arg-type]
    assert "detach" not in there.said


def test_streams_that_are_none_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    Played(monkeypatch, works=False)
    found = []
    with pytest.raises(Malformed, match="a detach that is streamed: 0 pages were asked for ahead"):
        for metric in dsm._detach(None, [], dsm.Amount()):  # type: ignore[arg-type]
            found.append(metric.metric)
    assert found == ["dsm.detach.plain.2_mib.seconds"]


def in_turn() -> dsm.Trips:
    """As the part `switches` has."""
    return dsm.Trips(None, "tcp", "poll", "dsm.polling.fault.round_trip_us")  # type: ignore[arg-type]


def test_switches_that_do_something_have_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    rtt = metric_of("dsm.rtt.tcp.poll.fault_us", 1)
    found = {metric.metric for metric in dsm.optimised(played, [rtt], dsm.Amount(), "dsm", in_turn())}  # type: ignore[arg-type]
    assert {f"dsm.switch.{name}.membench.speedup" for name in dsm.SWITCHES if name != "off"} < found
    assert {"dsm.membench.speedup", "dsm.polling.fault.us", "dsm.polling.fault.ratio_to_rtt"} < found
    assert played.switches == dsm.SWITCHES["off"]


def test_what_the_guest_is_told_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies' source and target are both on the node of the other host; reads only, once all is written.

    Each setting has two turns, of half the rounds; what is read says nothing of a hint for who writes.
    """
    played = Played(monkeypatch)
    list(dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn()))  # type: ignore[arg-type]
    said = [words for words in played.said if "dsm_membench" in words]
    reads, copied = ([words for words in said if f" {kind} " in words] for kind in ("touch", "copy"))
    assert len(copied) == len(dsm.TURNS) == 10 and len(reads) == 8
    assert all(words.endswith("copy --cpus=0,1 --mib=1 --rounds=2 --node=1 --source-node=1") for words in copied)
    assert all({"--writes=0", "--node=1", "--rounds=2", "--together=1"} <= set(words.split()) for words in reads)


def test_round_trips_are_in_turn_with_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, between and after the rounds; of those that poll while nothing else does."""
    played = Played(monkeypatch)
    found = {one.metric: one for one in dsm.node(None, TRIPS, dsm.Amount())}  # type: ignore[arg-type]
    kinds = ["trip" if words.startswith("trip") else words.partition(" ")[0] for words in played.said]
    program = f"{PROGRAMS}/dsm_membench"
    assert kinds == ["trip", program, "trip", program, "trip", program, "trip", "detach"]
    assert played.trips == ["tcp sleep"] * 4
    assert [words.split()[-1] for words in played.said if program in words] == ["--seed=1", "--seed=2", "--seed=3"]
    assert found["dsm.fault.round_trip_us"].value == 2.5 and list(found["dsm.fault.round_trip_us"].runs) == [1, 2, 3, 4]
    beside = found["dsm.fault.ratio_to_rtt"].baseline
    assert (beside["round_trip_us"], beside["round_trip_least_us"], beside["round_trip_most_us"]) == (2.5, 1, 4)
    played = Played(monkeypatch)
    list(dsm.switches(None, TRIPS, dsm.Amount()))  # type: ignore[arg-type]
    assert played.trips == ["tcp poll"] * 4
    assert [words for words in played.said if "trip" in words] == ["trip with none"] * 4
    at = [n for n, words in enumerate(played.said) if "trip" in words]
    assert (at[1] - at[0], at[3] - at[2]) == (2, 2)  # a run of reads between


def test_round_trips_that_fail_take_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared with those of before then; who reads it is told."""
    for part, name, of in (
        (dsm.node, "dsm", "dsm.rtt.tcp.sleep.fault_us"), (dsm.switches, "dsm.polling", "dsm.rtt.tcp.poll.fault_us")
    ):  # fmt: skip
        played = Played(monkeypatch)
        played.fails = True
        found = {}
        with pytest.raises(Malformed, match="round trips in turn with faults: no answer"):
            for metric in part(None, TRIPS, dsm.Amount()):  # type: ignore[arg-type]
                found[metric.metric] = metric
        assert found[f"{name}.fault.ratio_to_rtt"].baseline["with"] == of
        assert f"{name}.fault.round_trip_us" not in found and played.trips == []
        assert part is dsm.switches or "dsm.detach.seconds" in found


TRIPS = [
    Metric("dsm.rtt.tcp.sleep.fault_us", 8.0, "us"),
    Metric("dsm.rtt.tcp.poll.fault_us", 4.0, "us"),
    Metric("dsm.rtt.rdma.sleep.fault_us", 16.0, "us"),
    Metric("dsm.rtt.rdma.poll.fault_us", 2.0, "us"),
]


def test_each_fault_is_compared_with_what_waits_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """`node` sleeps, and polling polls; over Soft-RoCE it is that of Soft-RoCE."""
    played = Played(monkeypatch)
    monkeypatch.setattr(spanning, "with_rdma", lambda _: None)
    monkeypatch.setattr(dsm, "round_trips_of", lambda *_: iter(TRIPS[2:]))
    found = {metric.metric: metric for metric in dsm.node(None, TRIPS, dsm.Amount())}  # type: ignore[arg-type]
    beside = found["dsm.fault.ratio_to_rtt"].baseline
    assert (beside["with"], beside["round_trip_us"]) == ("dsm.fault.round_trip_us", 2.5)
    assert set(played.trips) == {"tcp sleep"}
    played = Played(monkeypatch)
    found = {metric.metric: metric for metric in dsm.switches(None, TRIPS, dsm.Amount())}  # type: ignore[arg-type]
    beside = found["dsm.polling.fault.ratio_to_rtt"].baseline
    assert (beside["with"], beside["round_trip_us"]) == ("dsm.polling.fault.round_trip_us", 2.5)
    assert set(played.trips) == {"tcp poll"}
    played = Played(monkeypatch)
    found = {metric.metric: metric for metric in dsm.rdma(None, TRIPS[:2], dsm.Amount())}  # type: ignore[arg-type]
    beside = found["dsm.rdma.fault.ratio_to_rtt"].baseline
    assert (beside["with"], beside["round_trip_us"]) == ("dsm.rdma.fault.round_trip_us", 2.5)
    assert set(played.trips) == {"rdma sleep"}
    # If it has none of its own, the figure of the same part.
    played = Played(monkeypatch)
    played.fails = True
    found = {}
    with contextlib.suppress(Malformed):
        for metric in dsm.rdma(None, TRIPS[:2], dsm.Amount()):  # type: ignore[arg-type]
            found[metric.metric] = metric
    assert found["dsm.rdma.fault.ratio_to_rtt"].baseline["with"] == "dsm.rtt.rdma.sleep.fault_us"


def test_faults_of_polling_are_those_of_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each turn of reads a fault takes a us more: polling has the third and the sixth."""
    played = Played(monkeypatch)
    each, turns = played.membench, iter(range(1, 9))

    def slower(there: object, words: str) -> membench.Output:
        done = each(there, words)
        if " copy " in words:
            return done
        us = next(turns)
        passes = (dataclasses.replace(one, first_ns={**one.first_ns, "p50": 1000 * us}) for one in done.passes)
        return dataclasses.replace(done, passes=tuple(passes))

    monkeypatch.setattr(dsm, "run_membench", slower)
    found = {one.metric: one for one in dsm.optimised(played, TRIPS, dsm.Amount(), "dsm", in_turn())}  # type: ignore[arg-type]
    assert set(found["dsm.polling.fault.us"].runs) == {3, 6}
    assert found["dsm.polling.fault.us"].value == pytest.approx(4.5)
    assert found["dsm.polling.fault.ratio_to_rtt"].value == pytest.approx(4.5 / 2.5)


def test_what_a_machine_does_meanwhile_is_no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is measured there and back; a figure that is no more than two runs of one setting differ says so."""
    played = Played(monkeypatch)
    took = iter((1.0, 1.2, 1.2, 0.5, 0.5, 1.2, 1.0, 1.5))  # off, each switch, on; on, each switch, off
    each = played.membench

    def slower(there: object, words: str) -> membench.Output:
        done = each(there, words)
        times = next(took) if " copy " not in words else 1.0
        return dataclasses.replace(
            done, passes=tuple(dataclasses.replace(one, ns=int(one.ns * times)) for one in done.passes)
        )

    monkeypatch.setattr(dsm, "run_membench", slower)
    found = {one.metric: one for one in dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn())}  # type: ignore[arg-type]
    weak, strong = (found[f"dsm.switch.{name}.read_random.speedup"] for name in ("prefetch", "on"))
    assert weak.value == pytest.approx(1.25 / 1.1) and strong.value == pytest.approx(2.5)
    assert [weak.baseline[key] for key in ("least", "most")] == pytest.approx([1 / 1.2, 1.5])
    assert [strong.baseline[key] for key in ("least", "most")] == pytest.approx([2, 3])
    assert list(strong.runs) == pytest.approx([2, 2, 3, 3])
    assert "not known to be more" in weak.note and "not known" not in strong.note
    # Polling's faults are those of both runs.
    assert found["dsm.polling.fault.us"].baseline["faults"] == 2 * 5


def test_switches_that_do_nothing_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, works=False)
    found = []
    with pytest.raises(
        Malformed,
        match=r"'prefetch, reads': prefetch=16, done 0 times; switches 'prefetch, copies': prefetch=16, done 0.*"
        r"'clear_hint, copies': clear_hint=1, done 0",
    ):
        for metric in dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn()):  # type: ignore[arg-type]
            found.append(metric.metric)
    speedups = [name for name in found if "speedup" in name]
    assert speedups and all(name.startswith("dsm.switch.polling.") for name in speedups)


def test_polling_that_does_nothing_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    played.polls = False
    found = []
    with pytest.raises(
        Malformed,
        match=r"'polling, reads': poll_us=20000, done 0 times; switches 'polling, copies': poll_us=20000, done 0.*on, copies",
    ):
        for metric in dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn()):  # type: ignore[arg-type]
            found.append(metric.metric)
    useless = (
        "dsm.switch.polling.",
        "dsm.switch.on.",
        "dsm.polling.fault.us",
        "dsm.polling.fault.ratio",
        "dsm.membench.speedup",
    )
    assert found and not any(name.startswith(useless) for name in found)


@pytest.mark.parametrize(("sleeps", "said"), [(3, False), (30, True)])
def test_polling_that_sleeps_all_the_same_says_so(monkeypatch: pytest.MonkeyPatch, sleeps: int, said: bool) -> None:
    """A run of five faults and 200 messages."""
    played = Played(monkeypatch)
    each = played.membench

    def sleepy(there: object, words: str) -> membench.Output:
        played.sleeps += sleeps - 3
        return each(there, words)

    monkeypatch.setattr(dsm, "run_membench", sleepy)
    found = {one.metric: one for one in dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn())}  # type: ignore[arg-type]
    fault = found["dsm.polling.fault.us"]
    assert (
        ("slept 0.15 times" in fault.note) == said == ("slept" in found["dsm.switch.polling.read_random.speedup"].note)
    )
    assert fault.baseline["sleeps"] == 2 * sleeps and fault.baseline["looks"] == 2
    assert "slept" not in found["dsm.switch.prefetch.read_random.speedup"].note


def test_a_baseline_that_polls_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    monkeypatch.setattr(played, "switch", lambda _: played.switches.update(poll_us=1))
    with pytest.raises(Malformed, match="switched off: poll_us=0, done 1 times"):
        list(dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn()))  # type: ignore[arg-type]


@pytest.mark.parametrize("majors", [1, 0])
def test_swap_has_as_much_memory_at_hand(monkeypatch: pytest.MonkeyPatch, majors: int) -> None:
    """As DSM has frames, and what the program itself needs besides; what pushes its pages out is as much more."""
    words: list[str] = []

    def run(_: object, said: str) -> membench.Output:
        words.append(said)
        passes = (
            dataclasses.replace(each, major=majors * each.pages if each.state == "cold" else 0)
            for each in output(US).passes
        )
        return membench.Output(tuple(passes), (), 1)

    class TwoHosts:
        hosts = (None, None)

    monkeypatch.setattr(remote_swap, "remote_disk", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(remote_swap, "swapping", lambda _: contextlib.nullcontext())
    counted = iter((3, 10, 10, 31))
    monkeypatch.setattr(remote_swap, "swapped_in", lambda _: next(counted))
    monkeypatch.setattr(dsm, "guest_of", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(dsm, "run_membench", run)
    amount = dsm.Amount(512, 3)
    if not majors:
        with pytest.raises(Malformed, match="0 of 8 pages were read from the disk in a cold pass"):
            list(dsm.swap(TwoHosts(), [], amount))  # type: ignore[arg-type]
        return
    found = {metric.metric: metric for metric in dsm.swap(TwoHosts(), [], amount)}  # type: ignore[arg-type]
    pages = [found[f"dsm.swap.cluster{cluster}.page.read_random_us"].baseline["swapped_in_pages"] for cluster in (0, 3)]
    assert pages == [7, 21]
    at_hand = amount.shape.frames + remote_swap.OWN_PAGES
    assert len(words) == 2
    for said, cluster in zip(words, (0, 3), strict=True):
        assert f"echo {at_hand * 4096} >" in said and f"echo {cluster} >/proc/sys/vm/page-cluster" in said
        assert (
            f"touch --cpu=0 --sizes=64,192 --flush={at_hand * 5 // 4} --rounds=3 --pageout={remote_swap.RECLAIM})"
            in said
        )


def test_a_node_has_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    rtt = metric_of("dsm.rtt.tcp.sleep.fault_us", 1)
    found = {metric.metric: metric for metric in dsm.node(None, [rtt], dsm.Amount())}  # type: ignore[arg-type]
    assert {"dsm.attach.seconds", "dsm.fault.us", "dsm.messages_per_read_fault", "dsm.page.read_random_us"} < set(found)
    assert found["dsm.detach.seconds"].value == pytest.approx(100)
    assert found["dsm.detach.seconds"].baseline == {"mib": 128, "mib_in_use": dsm.USED_MIB}
    said = [words for words in played.said if "dsm_membench" in words]
    assert (
        all("--together=1 --sizes=64,128,192 --flush=640 --node=1 --rounds=1" in words for words in said)
        and len(said) == 3
    )
    # Of the runs themselves: five faults each.
    assert found["dsm.fault.us"].baseline["first_words"] == 15
    assert found["dsm.fault.us"].baseline["outside_us"] == pytest.approx((60_000 - 3 * 15) / 15 / 1000)
    assert found["dsm.fault.us"].baseline["faults"] == 15 and found["dsm.messages_per_read_fault"].value == 40


def test_a_node_whose_pages_were_at_hand_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    Played(monkeypatch).first_ns = 1000
    found = []
    with pytest.raises(Malformed, match="8 of 8 pages were at hand"):
        for metric in dsm.node(None, [], dsm.Amount()):  # type: ignore[arg-type]
            found.append(metric.metric)
    assert found == ["dsm.attach.seconds"]


def test_a_baseline_that_was_at_hand_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    played.first_ns = 1000
    with pytest.raises(Malformed, match="8 of 8 pages were at hand"):
        list(dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn()))  # type: ignore[arg-type]


def test_a_baseline_that_does_something_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    monkeypatch.setattr(played, "switch", lambda _: setattr(played, "switches", dsm.SWITCHES["on"]))
    with pytest.raises(Malformed, match="switched off: prefetch=0, done "):
        list(dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn()))  # type: ignore[arg-type]


def test_a_page_that_takes_no_time_is_no_figure() -> None:
    found = []
    with pytest.raises(Malformed, match="reads in random order"):
        for metric in dsm.touched(output({**US, ("read", "random"): -1.0}), "dsm"):
            found.append(metric.metric)
    # What comes after it is there.
    assert found == [
        "dsm.page.read_sequential_us", "dsm.pages_per_second.sequential",
        "dsm.page.write_sequential_us", "dsm.page.write_random_us",
    ]  # fmt: skip


def stalled(us: float, pages: int, ms: float, rounds: tuple[int, ...] = (0, 1, 2)) -> membench.Output:
    """Reads by chance of so many us a page; something else takes so many ms of the cold passes of so many pages."""
    done = output({("read", "random"): us, ("read", "sequential"): us})
    passes = (
        dataclasses.replace(each, ns=each.ns + int(ms * 1e6))
        if (each.state, each.order, each.pages) == ("cold", "random", pages) and each.round in rounds
        else each
        for each in done.passes
    )
    return membench.Output(tuple(passes), (), 1)


@pytest.mark.parametrize(
    ("off", "on", "part"),
    [
        # In the small pass of "on": a slope below 0, and one that is nearly none, which would be 128 times as quick.
        ([output(US)] * 2, [stalled(10_000, 8, 300)] * 2, "'on': no time: -27500, -27500, -27500"),
        ([output(US)] * 2, [stalled(10_000, 8, 79)] * 2, "'on': the passes are on no line, which begins at 0.9"),
        ([output(US), stalled(10_000, 8, 79)], [output(US)] * 2, "'off': the passes are on no line"),
        # In the large one: twice the time.
        (
            [stalled(10_000, 16, 160), output(US)],
            [output(US)] * 2,
            "'off': the passes are on no line, which begins at 1.0",
        ),
    ],
)
def test_a_stall_is_no_speedup(off: list[membench.Output], on: list[membench.Output], part: str) -> None:
    copied = {name: [[membench.Copy(0, 2, 1, 0, 256_000, 0)]] * 2 for name in ("off", "on")}
    found = []
    with pytest.raises(Malformed, match=part):
        for metric in dsm_faults.speedups({"off": off, "on": on}, copied, "dsm"):
            found.append(metric.metric)
    assert "dsm.switch.on.read_sequential.speedup" in found and "dsm.membench.speedup" in found
    assert not any("read_random" in name for name in found)


def test_a_stall_in_one_round_of_three_is_none() -> None:
    """The median is of the others; without its sign, a line that begins below 0 is none either."""
    copied = {name: [[membench.Copy(0, 2, 1, 0, 256_000, 0)]] for name in ("off", "on")}
    reads = {"off": [stalled(10, 8, 0)], "on": [stalled(5, 8, 79, (1,))]}
    found = {metric.metric: metric for metric in dsm_faults.speedups(reads, copied, "dsm")}
    assert found["dsm.switch.on.read_random.speedup"].value == pytest.approx(2)


@pytest.mark.parametrize(("ms", "said"), [(0, False), (79, True)])
def test_a_page_whose_passes_are_on_no_line_is_in_doubt(ms: float, said: bool) -> None:
    """And so is what it is compared with."""
    done = stalled(10_000, 8, ms)
    writes = tuple(dataclasses.replace(each, what="write") for each in done.passes)
    found = {metric.metric: metric for metric in dsm.touched(membench.Output(done.passes + writes, (), 1), "dsm")}
    for name in ("dsm.page.read_random_us", "dsm.pages_per_second.random"):
        assert ("in doubt" in found[name].note) == said
    assert "in doubt" not in found["dsm.page.read_sequential_us"].note
    ratio = next(iter(dsm.compared([*SWAP, found["dsm.page.read_random_us"]])))
    assert ("in doubt" in ratio.note) == said
    # Of swap's passes, too.
    theirs = dataclasses.replace(found["dsm.page.read_random_us"], metric="dsm.swap.cluster3.page.read_random_us")
    others = [each for each in SWAP if each.metric != theirs.metric]
    ratio = next(iter(dsm.compared([*others, theirs, metric_of("dsm.page.read_random_us", 20)])))
    assert ("in doubt" in ratio.note) == said


def test_what_takes_no_time_is_not_compared() -> None:
    found = []
    with pytest.raises(Malformed, match=r"page\.read_sequential_us: no time: -3"):
        for metric in dsm.compared(
            [*SWAP, metric_of("dsm.page.read_sequential_us", -3), metric_of("dsm.page.read_random_us", 20)]
        ):
            found.append(metric.metric)
    assert found == ["dsm.vs_swap.read_random.ratio", "dsm.vs_swap.ratio"]


@pytest.mark.parametrize("runs", [[], [0.0], [-1.0, -2.0, 3.0], [float("nan")]])
def test_a_median_of_no_time(runs: list[float]) -> None:
    with pytest.raises(Malformed, match="it: no time"):
        membench.positive_median("it", runs)


@pytest.mark.parametrize(
    ("cluster", "majors", "good"), [(0, 58, True), (0, 57, False), (3, 4, True), (3, 3, False), (3, 0, False)]
)
def test_what_is_cold_was_swapped_out(cluster: int, majors: int, good: bool) -> None:
    cold = membench.Pass(0, "read", "random", "cold", 64, 9, majors, {}, ())
    warm = membench.Pass(0, "read", "random", "warm", 64, 9, 0, {}, ())
    found = membench.Output((cold, warm), (), 1)
    if good:
        remote_swap.check_cold(found, cluster)
        return
    with pytest.raises(Malformed, match=f"page cluster {cluster}: {majors} of 64"):
        remote_swap.check_cold(found, cluster)


def test_who_ends_it_early_keeps_what_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> Iterator[Metric]:
        yield from (metric_of("dsm.page.read_random_us", 3), metric_of("dsm.swap.cluster0.page.read_random_us", 6))
        raise KeyboardInterrupt

    monkeypatch.setattr(dsm, "PARTS", {"ended": ended})
    monkeypatch.setattr(host_programs, "build", lambda _: None)
    monkeypatch.setattr(host_programs, "install", lambda *_: None)
    monkeypatch.setattr(round_trips, "prepare", lambda _: None)

    class NoRack:
        hosts: tuple[object, ...] = ()

    found: list[Metric] = []

    def add(metric: Metric) -> list[Metric]:
        found.append(metric)
        return list(found)

    with pytest.raises(KeyboardInterrupt):
        dsm.measure(NoRack(), ["ended"], dsm.Amount(), add)  # type: ignore[arg-type]
    assert [metric.metric for metric in found[2:]] == ["dsm.vs_swap.read_random.ratio", "dsm.vs_swap.ratio"]
    assert found[-1].value == pytest.approx(2)


def metric_of(name: str, us: float) -> Metric:
    return Metric(name, us, "us")


SWAP = [
    metric_of(f"dsm.swap.cluster{cluster}.page.{what}_{order}_us", us * (1 + cluster))
    for cluster in (0, 3)
    for (what, order), us in US.items()
]


def test_swap_is_compared_with_its_better_half() -> None:
    ours = [metric_of(f"dsm.page.{what}_{order}_us", us / 2) for (what, order), us in US.items()]
    found = {metric.metric: metric for metric in dsm.compared([*SWAP, *ours])}
    assert set(found) == {"dsm.vs_swap.ratio", *(f"dsm.vs_swap.{what}_{order}.ratio" for what, order in US)}
    assert all(metric.value == pytest.approx(2) for metric in found.values())
    assert found["dsm.vs_swap.ratio"].baseline == {"dsm_us": 20.0, "swap_cluster0_us": 40.0, "swap_cluster3_us": 160.0}


def test_swap_is_compared_with_all_switches_on_too() -> None:
    found = list(dsm.compared([*SWAP, metric_of("dsm.switch.on.read_random.us", 10)]))
    assert [metric.metric for metric in found] == ["dsm.vs_swap.on.read_random.ratio"]
    assert found[0].value == pytest.approx(4)


@pytest.mark.parametrize("found", [[], SWAP, [metric_of("dsm.page.read_random_us", 3)]])
def test_nothing_is_compared_with_what_was_not_measured(found: list[Metric]) -> None:
    assert list(dsm.compared(found)) == []


XEN = {
    "waits": 10, "wait_ns": 5000, "wait_hist": [0, 0, 3, 7], "traps": 8, "trap_ns": 2000, "wakes": 9, "wake_ns": 3000,
}  # fmt: skip
STATUS: dict[str, Any] = {
    "read_faults": 6, "write_faults": 4, "read_fault": {"buckets": [[1000, 6]], "sum_ns": 5000},
    "write_fault": {"buckets": [[1000, 1], [2000, 2], [None, 1]], "sum_ns": 1000},
    "peers": {"beta": {"sent": 30, "received": 20}},
    "engine": {"evicted_shared": 4, "evicted_modified": 1, "prefetches": 2, "cleared": 0},
    "poll": {"looks": 3, "found": 2, "sleeps": 1},
    "phases": {
        "queue": {"count": 10, "sum_ns": 1000}, "wire": {"count": 10, "sum_ns": 4000},
        "install": {"count": 5, "sum_ns": 500}, "serve": {"count": 0, "sum_ns": 0},
    },
}  # fmt: skip
OTHER: dict[str, Any] = {
    "phases": {"serve": {"count": 20, "sum_ns": 2000}}, "poll": {"looks": 10, "found": 20, "sleeps": 30},
}  # fmt: skip


def test_snapshots() -> None:
    now = dsm_faults.Snapshot.of(XEN, STATUS, OTHER)
    assert now.fault_buckets == {1000: 7, 2000: 2, float("inf"): 1}
    assert now.wait_buckets == {1.25: 0, 1.5: 0, 1.75: 3, 2.0: 7}
    # Both hosts poll.
    assert (now.looks, now.found, now.sleeps) == (13, 22, 31)
    nothing = now.since(now)
    assert nothing.faults == 0 and not any(nothing.wait_buckets.values())
    later = dsm_faults.Snapshot.of({**XEN, "waits": 12, "wait_hist": [0, 1, 3, 8]}, STATUS, OTHER)
    assert later.since(now).waits == 2 and later.since(now).wait_buckets[1.5] == 1
    with pytest.raises(Malformed, match="waits went from 12 to 10"):
        now.since(later)
    for key in ("traps", "trap_ns", "wakes", "wake_ns"):
        assert getattr(now, key) == XEN[key]
        with pytest.raises(Malformed, match=f"^{key} went from {XEN[key]} to 1$"):  # Xen's are never less
            dsm_faults.Snapshot.of({**XEN, key: 1}, STATUS, OTHER).since(now)
        with pytest.raises(Malformed, match=key):  # a dsm-stats that does not know it
            dsm_faults.Snapshot.of({name: value for name, value in XEN.items() if name != key}, STATUS, OTHER)


@pytest.mark.parametrize(
    "change",
    [
        {"peers": {}},
        {"peers": {"b": {"sent": 1}}},
        {"engine": {}},
        {"poll": {"looks": 1}},
        {"read_fault": {"buckets": 3}},
        {"read_faults": "x"},
        {"phases": {"queue": {}}},
        {"phases": {phase: {"count": 1} for phase in ("queue", "wire", "install")}},
    ],
)
def test_malformed_statistics(change: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match="statistics"):
        dsm_faults.Snapshot.of(XEN, {**STATUS, **change}, OTHER)


def test_messages_of_evictions_are_left_out() -> None:
    metric = dsm_faults.messages(dsm_faults.Snapshot.of(XEN, STATUS, OTHER), "dsm.tcp")
    assert metric.value == pytest.approx((50 - 4 - 2 - 8) / 6)
    assert metric.baseline["messages_per_fault_with_evictions"] == pytest.approx(5)
    with pytest.raises(Malformed, match="no fault"):
        now = dsm_faults.Snapshot.of(XEN, STATUS, OTHER)
        dsm_faults.messages(now.since(now), "dsm.tcp")


@pytest.mark.parametrize(("share", "wanted"), [(0.1, 10), (0.3, 10), (0.31, 20), (1.0, 40)])
def test_quantiles_of_buckets(share: float, wanted: float) -> None:
    assert dsm_faults.quantile_ns({10: 3, 20: 4, 30: 0, 40: 3}, share) == wanted


def test_phases_add_up_to_the_fault() -> None:
    counted = dsm_faults.Snapshot.of({**XEN, "wait_ns": 9000, "wait_hist": [0] * 32 + [9]}, STATUS, OTHER)
    found = dsm_faults.faults(counted, output(US), [metric_of("rtt.us", 0.1)], "dsm", "rtt.us")
    fault, ratio, overhead = found
    assert [metric.metric for metric in found] == [f"dsm.fault.{key}" for key in ("us", "ratio_to_rtt", "overhead_us")]
    phases = {key: float(fault.baseline[f"{key}_us"]) for key in FAULT_PHASES}
    # dsmd: 0.1 in queues, 0.4 until the answer, 0.1 of that on the other host, 0.1 to install it; 0.6 in all. Xen: 0.9.
    # Before and behind it 0.2 and 0.3 of each wait, those that have none, too.
    wanted = {"trap": 0.2, "ring": 0.3, "queue": 0.1, "wire": 0.3, "serve": 0.1, "install": 0.1, "wake": 0.3}
    assert (fault.baseline["traps"], fault.baseline["wakes"]) == (8, 9)
    assert {key: phases[key] for key in wanted} == pytest.approx(wanted)
    # Of the ten first words, and of nothing that takes longer: 20 us in all.
    assert sum(phases.values()) == pytest.approx(2)
    assert fault.value == pytest.approx(1.0)
    assert ratio.value == pytest.approx(10) and overhead.value == pytest.approx(0.9)
    # Without a round trip in this run there is nothing to compare with.
    assert [metric.metric for metric in dsm_faults.faults(counted, output(US), [], "dsm", "rtt.us")] == ["dsm.fault.us"]


def test_a_fault_is_a_read_by_chance_that_missed() -> None:
    """The median of its passes: first words take 7, 9 and 30 us there, and others elsewhere."""
    us = {("read", "random", "cold"): (7, 9, 30), ("write", "random", "cold"): (50, 50, 50)}
    passes = tuple(
        dataclasses.replace(
            each,
            first_ns={
                **each.first_ns,
                "p50": 1000 * us.get((each.what, each.order, each.state), (2, 2, 2))[each.round],
            },
        )
        for each in output(US).passes
    )
    counted = dsm_faults.Snapshot.of({**XEN, "wait_hist": [0] * 32 + [9]}, STATUS, OTHER)
    done = membench.Output(passes, (), 1, 10, 20_000)
    fault, ratio, over = dsm_faults.faults(counted, done, [metric_of("rtt.us", 6)], "dsm", "rtt.us")
    assert fault.value == pytest.approx(9) and sorted(set(fault.runs)) == [7, 9, 30]
    assert ratio.value == pytest.approx(1.5) and over.value == pytest.approx(3)
    assert ratio.baseline == {"round_trip_us": 6, "fault_us": 9, "with": "rtt.us"}


@pytest.mark.parametrize(("accesses", "said"), [(10, False), (9, True), (14, False), (15, True), (0, None)])
def test_what_is_outside_is_of_the_same_faults(accesses: int, said: bool | None) -> None:
    """Xen has seen ten waits: if the program's first words are others, the difference of their times says nothing."""
    counted = dsm_faults.Snapshot.of({**XEN, "wait_hist": [0] * 32 + [9]}, STATUS, OTHER)
    done = dataclasses.replace(output(US), accesses=accesses)
    if said is None:
        with pytest.raises(Malformed, match="0 first words of a program, 10 waits"):
            dsm_faults.faults(counted, done, [], "dsm", "rtt.us")
        return
    (fault,) = dsm_faults.faults(counted, done, [], "dsm", "rtt.us")
    assert fault.baseline["outside_us"] == pytest.approx((20_000 - 5000 - 2000 - 3000) / 10 / 1000)
    assert (fault.baseline["waits"], fault.baseline["first_words"]) == (10, accesses)
    assert ("in doubt: outside_us" in fault.note) == said


def test_quantiles_beside_a_fault() -> None:
    """Of Xen's waits and of dsmd's faults, each its own."""
    xen = {**XEN, "wait_hist": [0] * 40 + [0, 6, 0, 3, 1]}
    counted = dsm_faults.Snapshot.of(xen, STATUS, OTHER)
    beside = dsm_faults.faults(counted, output(US), [], "dsm", "rtt.us")[0].baseline
    ends = [dsm_faults.xen_bucket_end_ns(bucket) / 1000 for bucket in (41, 44)]
    assert [beside["xen_p50_below_us"], beside["xen_p99_below_us"]] == ends and beside["dsmd_p50_below_us"] == 1


def test_messages_of_reads_and_of_writes_are_told_from_two_runs() -> None:
    """Nothing is taken for known of either: reads of 2, writes of 3, and what made room, which is left out."""
    one = snapshot(
        read_faults=100, write_faults=10, sent=115, received=115 + 7 + 6, evicted_shared=7, evicted_modified=3
    )
    two = snapshot(read_faults=20, write_faults=50, sent=90, received=100, evicted_shared=0, evicted_modified=0)
    found = dsm_faults.messages_of_both(one, two, "dsm.switch.off")
    assert [each.metric for each in found] == [
        f"dsm.switch.off.messages_per_{kind}_fault" for kind in ("read", "write")
    ]
    assert [each.value for each in found] == pytest.approx([2, 3])
    assert found[0].baseline == {"read_faults": 120, "write_faults": 60, "messages": 433}
    for alike in (snapshot(read_faults=100, write_faults=11), snapshot(read_faults=0, write_faults=0)):
        with pytest.raises(Malformed, match="too much alike"):
            dsm_faults.messages_of_both(one, alike, "dsm")


def test_copies_say_what_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all off, and beside what each switch brings; and what their messages are."""
    played = Played(monkeypatch)
    found = {one.metric: one for one in dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn())}  # type: ignore[arg-type]
    assert found["dsm.membench.total_us_per_page"].baseline == {
        "misses_per_page": pytest.approx(328 / 512), "read_faults": 56, "write_faults": 600
    }  # fmt: skip
    beside = found["dsm.switch.prefetch.membench.speedup"].baseline
    assert beside["off_misses_per_page"] == beside["prefetch_misses_per_page"] == pytest.approx(328 / 512)
    assert found["dsm.switch.off.messages_per_read_fault"].value == pytest.approx(40)
    assert found["dsm.switch.off.messages_per_write_fault"].value == pytest.approx(3)
    with pytest.raises(Malformed, match=r"0\.40 misses for a page that is copied"):
        list(dsm_faults.speedups({"off": [], "on": []}, {"off": [], "on": []}, "dsm", {"off": 0.4, "on": 0.1}))
    with pytest.raises(Malformed, match="all switches off"):
        list(dsm_faults.speedups({"on": []}, {"on": []}, "dsm"))


def test_prefetch_counts_where_it_did_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of reads and of copies, each by itself."""
    played = Played(monkeypatch)
    each = played.membench

    def copies_only(there: object, words: str) -> membench.Output:
        before = played.prefetches
        done = each(there, words)
        if " touch " in words:
            played.prefetches = before
        return done

    monkeypatch.setattr(dsm, "run_membench", copies_only)
    found = set()
    with pytest.raises(Malformed, match="'prefetch, reads': prefetch=16, done 0 times") as error:
        for metric in dsm.optimised(played, [], dsm.Amount(), "dsm", in_turn()):  # type: ignore[arg-type]
            found.add(metric.metric)
    assert "prefetch, copies" not in str(error.value)
    assert "dsm.switch.prefetch.membench.speedup" in found and "dsm.membench.speedup" in found
    assert not any("prefetch.read" in name or "pages_per_second" in name for name in found if "polling" not in name)


@pytest.mark.parametrize(("middle", "said"), [(0, False), (70, False), (100, True), (-100, True)])
def test_a_pass_between_the_ends_is_on_their_line(middle: int, said: bool) -> None:
    """Three sizes: the one between takes so many us more than the line through the ends says, in two rounds of three."""
    passes = tuple(
        dataclasses.replace(
            each, pages=pages, ns=1000 * (10 * pages + (middle if pages == 24 and each.round else 0))
        )
        for each in output(US).passes
        if (each.what, each.order, each.state, each.pages) == ("read", "random", "cold", 8)
        for pages in (16, 24, 32)
    )  # fmt: skip
    assert membench.bend(passes) == pytest.approx(abs(middle) / (240 + middle))
    wrong = membench.off_line(membench.fixed_share(passes), membench.bend(passes))
    assert ("between the ends" in wrong) == said
    assert ("between the ends" in dsm.in_doubt({"fixed_share": 0.0, "bend": membench.bend(passes)})) == said
    # Of a speed-up, too; it is there.
    orders = (*passes, *(dataclasses.replace(each, order="sequential") for each in passes))
    runs = {"off": [output(US)], "on": [membench.Output(orders, (), 1)]}
    found = {metric.metric: metric for metric in dsm_faults.speedups(runs, {"off": []}, "dsm")}
    assert ("in doubt: dsm.switch.on.read_random, 'on'" in found["dsm.switch.on.read_random.speedup"].note) == said
    assert ("in doubt" in found["dsm.switch.on.read_random.us"].note) == said


def test_both_guests_are_alike_in_what_is_not_compared() -> None:
    """A guest whose time stamp counter Xen emulates would pay for each page's time."""

    def settings(text: str) -> dict[str, str]:
        return {key: value for key, _, value in (line.partition(" = ") for line in text.splitlines()) if value}

    theirs, ours = settings(dsm.SWAP_GUEST), settings(dsm.Amount().shape.xl_cfg())
    differ = {key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)}
    assert differ == {"name", "vcpus", "vif", "maxvcpus", "vnuma"}
    # As many CPUs at home; DSM's third is the node's own, which runs nothing.
    assert theirs["vcpus"] == "2" and "vcpus=0-1" in dsm.Amount().shape.xl_cfg()


def test_what_a_transport_below_user_space_would_bring() -> None:
    """A kernel answers within 60 us of a program's 100; of a fault of 150 the 20 outside of dsmd's way stay, when it is 200."""
    now = metric_of("dsm.fault.round_trip_us", 200.0)
    fault = Metric("dsm.fault.us", 150.0, "us", "lower", {"outside_us": 7.0, "trap_us": 2.0, "wake_us": 11.0})
    sleeping, kernel = metric_of("dsm.rtt.tcp.sleep.fault_us", 100.0), metric_of("dsm.rtt.kernel.page_us", 60.0)
    (found,) = dsm_faults.below_user_space(fault, [sleeping, kernel, now], "tcp", "dsm", now.metric)
    assert found.metric == "dsm.below_user_space.ratio_to_rtt"
    assert found.value == pytest.approx(0.6 + 0.1)
    for some in ([sleeping, kernel], [sleeping, now], [kernel, now]):
        assert dsm_faults.below_user_space(fault, some, "tcp", "dsm", now.metric) == []
    less = dataclasses.replace(fault, baseline={"outside_us": -20.0, "trap_us": 2.0, "wake_us": 11.0})
    assert dsm_faults.below_user_space(less, [sleeping, kernel, now], "tcp", "dsm", now.metric)[0].value == 0.6


PING = """PING 10.77.0.1 (10.77.0.1) 4128(4156) bytes of data.
4136 bytes from 10.77.0.1: icmp_seq=1 ttl=64 time=3.25 ms
4136 bytes from 10.77.0.1: icmp_seq=2 ttl=64 time=12 ms

--- 10.77.0.1 ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 1001ms
rtt min/avg/max/mdev = 3.250/7.625/12.000/4.375 ms
"""


def test_echoes_of_a_kernel() -> None:
    assert round_trips.parse_echoes(PING, 2) == [3250, 12000]
    with pytest.raises(Malformed, match="2 answers to 3 questions"):
        round_trips.parse_echoes(PING, 3)
    with pytest.raises(Malformed, match="1 answers to 2"):
        round_trips.parse_echoes(PING.replace("time=12 ms", "time=12 ms (DUP!)"), 2)


def test_phases_of_nothing() -> None:
    counted = dsm_faults.Snapshot.of({**XEN, "wait_hist": [0] * 32 + [9]}, STATUS, STATUS)
    with pytest.raises(Malformed, match="'serve'"):
        dsm_faults.faults(counted, output(US), [], "dsm", "rtt.us")


def test_copies_are_per_page() -> None:
    rounds = tuple(membench.Copy(number, 2, 1, 256_000, 512_000, 256_000 * number) for number in (1, 2, 3))
    counted = snapshot(read_faults=500, write_faults=1036)
    done = membench.Output((), rounds, 1)
    figures = dsm_faults.copies(counted, done, "dsm.tcp.membench")
    assert all(each.baseline == {"misses_per_page": 1, "read_faults": 500, "write_faults": 1036} for each in figures)
    with pytest.raises(Malformed, match=r"0\.49 misses for a page that is copied"):
        dsm_faults.copies(snapshot(read_faults=0, write_faults=760), done, "dsm")
    with pytest.raises(Malformed, match="no copy"):
        dsm_faults.copies(counted, membench.Output((), (), 1), "dsm")
    found = {metric.metric: metric.value for metric in figures}
    assert found == {
        "dsm.tcp.membench.map_us_per_page": 1, "dsm.tcp.membench.populate_us_per_page": 2,
        "dsm.tcp.membench.memcpy_us_per_page": 2, "dsm.tcp.membench.total_us_per_page": 5,
    }  # fmt: skip


def test_what_dsmd_is_told() -> None:
    """Of both hosts. Whether dsmd takes it is seen in the lab."""
    shape = spanning.Shape()
    hosts = ("alpha", "beta")
    uuid = "01234567-89ab-cdef-0123-456789abcdef"
    for domid in (7, None):
        told = shape.description(uuid, 1 << 20, hosts, domid)
        assert ("domid" in told) != ("build" in told)
        assert told["frames"] >= 32 * told["vcpus"]
        assert [(each["host"], each["vnode"]) for each in told["ranges"]] == [("alpha", 0), ("beta", 1)]
    for own in (0, 1):
        told = tomllib.loads(spanning.dsm_toml(own, hosts, ("10.78.0.1", "10.78.0.2"), "tcp"))
        assert told["self"] == hosts[own] and [each["number"] for each in told["host"]] == [0, 1]
        assert told["tls"]["key"].endswith(f"{own}.key")


def test_the_report_shows_phases_and_swap() -> None:
    """With all of them; and neither plot of a result that has not got the figures."""
    phases = {f"{phase}_us": 10.0 for phase in FAULT_PHASES}
    fault = Metric("dsm.fault.us", 40, "us", "lower", phases)
    against = dsm.compared([*SWAP, metric_of("dsm.page.read_random_us", 20)])
    whole = Result("dsm", "2026-01-31T12:00:00Z", HOST, [fault, *against])
    page = report_page([whole], [], "now", False)
    assert 'id="dsm-fault-' in page and 'id="dsm-swap-' in page and "read, random" in page
    partial = Metric("dsm.fault.us", 40, "us", "lower", {**phases, "ring_us": -1.0})
    bare = report_page([Result("dsm", "2026-01-31T12:00:00Z", HOST, [partial, *SWAP])], [], "now", False)
    assert 'id="dsm-fault-' not in bare and 'id="dsm-swap-' not in bare


def test_switches_are_compared_with_none_of_them() -> None:
    half = {key: us / 2 for key, us in US.items()}
    reads = {
        "off": [output(US), output(US)],
        "prefetch": [output({**US, ("read", "sequential"): 5.0})] * 2,
        "on": [output(half)] * 2,
    }
    copied = {
        name: [[membench.Copy(0, 2, 1, 0, 256_000 * us, 0)]] * 2
        for name, us in (("off", 8), ("prefetch", 8), ("on", 2))
    }
    metrics = list(dsm_faults.speedups(reads, copied, "dsm"))
    assert all(len(metric.runs) == 4 for metric in metrics if metric.unit == "x")
    found = {metric.metric: metric.value for metric in metrics}
    assert found == {
        "dsm.switch.prefetch.pages_per_second.sequential": pytest.approx(200_000),
        "dsm.switch.prefetch.pages_per_second.random": pytest.approx(25_000),
        "dsm.switch.on.pages_per_second.sequential": pytest.approx(200_000),
        "dsm.switch.on.pages_per_second.random": pytest.approx(50_000),
        "dsm.switch.prefetch.read_sequential.us": pytest.approx(5),
        "dsm.switch.prefetch.read_sequential.speedup": pytest.approx(2),
        "dsm.switch.prefetch.read_random.us": pytest.approx(40),
        "dsm.switch.prefetch.read_random.speedup": pytest.approx(1),
        "dsm.switch.prefetch.membench.speedup": pytest.approx(1),
        "dsm.switch.on.read_sequential.us": pytest.approx(5),
        "dsm.switch.on.read_sequential.speedup": pytest.approx(2),
        "dsm.switch.on.read_random.us": pytest.approx(20),
        "dsm.switch.on.read_random.speedup": pytest.approx(2),
        "dsm.switch.on.membench.speedup": pytest.approx(4),
        "dsm.membench.speedup": pytest.approx(4),
    }


def test_each_set_of_switches_is_of_keys_that_dsmctl_knows() -> None:
    manual = (REPO / "docs" / "man" / "dsmctl.8").read_text(encoding="utf-8")
    alone = ("prefetch", "clear_hint", "polling")
    assert dsm.SWITCHES["on"] == {key: number for name in alone for key, number in dsm.SWITCHES[name].items()}
    assert all(all(dsm.SWITCHES[name].values()) for name in alone)
    assert [set(dsm.SWITCHES[name]) for name in alone] == [{"prefetch"}, {"clear_hint"}, {"busy_wait_us", "poll_us"}]
    assert set(dsm.SWITCHES["off"]) == {key for switches in dsm.SWITCHES.values() for key in switches}
    assert all(key in manual for key in dsm.SWITCHES["off"])


def test_what_is_measured_fits_and_what_pushes_it_out_does_not() -> None:
    amount = dsm.Amount(512, 3)
    assert (
        amount.passes.endswith("--together=1 --sizes=64,128,192 --flush=640 --node=1") and amount.pages > 64 + 128 + 192
    )
    assert amount.shape.frames == 512
    assert dsm.Amount(96).shape.frames >= 32 * dsm.Amount(96).shape.vcpus


def test_of_three_rounds_the_median_counts() -> None:
    """Of a switch, too: rounds of 2, 5 and 20 us, against 10; and of its copies."""
    done = output(US)
    us = {0: 2, 1: 5, 2: 20}
    passes = tuple(dataclasses.replace(each, ns=5000 + 1000 * each.pages * us[each.round]) for each in done.passes)
    reads = {"off": [output(dict.fromkeys(US, 10.0))], "on": [membench.Output(passes, (), 1)]}
    copied = {
        name: [[membench.Copy(number, 2, 1, 0, 256_000 * each, 0) for number, each in enumerate(times)]]
        for name, times in (("off", (6, 8, 40)), ("on", (1, 4, 5)))
    }
    found = {metric.metric: metric for metric in dsm_faults.speedups(reads, copied, "dsm")}
    assert found["dsm.switch.on.read_random.us"].value == pytest.approx(5)
    assert found["dsm.switch.on.read_random.speedup"].value == pytest.approx(2)
    assert found["dsm.membench.speedup"].value == pytest.approx(2)
    assert "not known" not in found["dsm.membench.speedup"].note


def test_a_switch_that_slows_down_is_not_called_noise() -> None:
    reads = {"off": [output(US)] * 2, "on": [output({key: 2 * us for key, us in US.items()})] * 2}
    copied = {name: [[membench.Copy(0, 2, 1, 0, 256_000, 0)]] for name in ("off", "on")}
    found = {metric.metric: metric for metric in dsm_faults.speedups(reads, copied, "dsm")}
    slow = found["dsm.switch.on.read_random.speedup"]
    assert slow.value == pytest.approx(0.5) and "not known" not in slow.note


def played_hosts(monkeypatch: pytest.MonkeyPatch, parts: Mapping[str, Any]) -> None:
    """Nothing is built or booted; parts are these."""
    monkeypatch.setattr(dsm, "PARTS", parts)
    monkeypatch.setattr(host_programs, "build", lambda _: None)
    monkeypatch.setattr(host_programs, "install", lambda *_: None)
    monkeypatch.setattr(round_trips, "prepare", lambda _: None)

    class NoRack:
        hosts: tuple[object, ...] = ()

    monkeypatch.setattr(Rack, "attach", lambda _: contextlib.nullcontext(NoRack()))


def test_a_figure_that_is_none_takes_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither those after it, nor those of the run before, nor the parts that come later."""
    old = Result("dsm", "2026-01-31T12:00:00Z", HOST, [Metric("dsm.old", 1, "us")])
    (tmp_path / "dsm.json").write_text(json.dumps(encode(old)), encoding="utf-8")
    monkeypatch.setattr(dsm, "Growing", lambda name, **more: results.Growing(name, tmp_path, **more))

    def part(*_: object) -> Iterator[Metric]:
        yield Metric("dsm.a", 1, "us")
        yield Metric("dsm.bad", float("inf"), "us")
        yield Metric("dsm.a", 2, "us")
        yield Metric("dsm.b", 3, "us")
        raise ZeroDivisionError("by nothing")

    def later(*_: object) -> Iterator[Metric]:
        yield Metric("dsm.c", 4, "us")

    played_hosts(monkeypatch, {"part": part, "later": later})
    assert dsm.main(["--use=x", "part", "later"]) == 1
    said = capsys.readouterr().err
    assert "part: dsm.bad: " in said and "part: dsm.a: metrics: dsm.a is there 2 times" in said and "by nothing" in said
    now = results.read(tmp_path / "dsm.json")
    assert [(each.metric, each.value) for each in now.metrics] == [
        ("dsm.a", 1), ("dsm.b", 3), ("dsm.c", 4), ("dsm.part.part", None)
    ]  # fmt: skip
    # Who reads the file alone sees what is not there, and what else the machine did.
    assert "by nothing" in now.metrics[-1].note and isinstance(now.host["load_before"], float)
    (kept,) = (tmp_path / "earlier").iterdir()
    assert kept.name == "dsm-2026-01-31T120000Z.json"
    assert results.decode(json.loads(kept.read_text(encoding="utf-8")), "kept").find("dsm.old")
    assert results.read_all(tmp_path)[1] == []


def test_a_run_without_a_figure_leaves_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dsm.json").write_text("what was there", encoding="utf-8")
    monkeypatch.setattr(dsm, "Growing", lambda name, **more: results.Growing(name, tmp_path, **more))

    def part(*_: object) -> Iterator[Metric]:
        yield Metric("dsm.bad", float("nan"), "us")

    played_hosts(monkeypatch, {"part": part})
    assert dsm.main(["--use=x", "part"]) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["dsm.json"]
    assert (tmp_path / "dsm.json").read_text(encoding="utf-8") == "what was there"


@pytest.mark.parametrize("text", ["not JSON", "{}"])
def test_what_is_set_aside_need_not_be_valid(tmp_path: Path, text: str) -> None:
    """And two of one second are two."""
    path = tmp_path / "dsm.json"
    assert results.set_aside(path) is None
    kept = []
    for _ in range(2):
        path.write_text(text, encoding="utf-8")
        os.utime(path, (86400, 86400))
        kept.append(results.set_aside(path))
    assert [each and each.name for each in kept] == ["dsm-1970-01-02T000000Z.json", "dsm-1970-01-02T000000Z-1.json"]
    assert not path.exists()


@pytest.mark.parametrize("words", ["rtt rtt", "--use=x node rtt node"])
def test_a_part_is_named_once(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        dsm.main(words.split())
    assert "each part once" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--pages=95", "--pages=4097", "--rounds=0", "--pages=x", "disk"])
def test_bad_words_for_the_benchmark(words: str) -> None:
    with pytest.raises(SystemExit):
        dsm.main([words])
