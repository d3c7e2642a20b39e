# SPDX-License-Identifier: GPL-2.0
"""The programs in dom0 that DSM is compared with, here: round trips over loopback, and a disk in memory that trusts nobody.

Then what becomes of their words: figures with the names that the result has, and what is malformed is refused.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import dsm, host_programs, membench, remote_swap, round_trips
from benchmarks.results import Metric, Result, encode, problems
from lab.errors import Malformed

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
        words = [
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
    assert names == [f"dsm.rtt.tcp.{waiting}.{kind}_us" for kind in ("fault", "page")]


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


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "each once"),
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
    return membench.Output(tuple(passes), (), 1)


US = {("read", "sequential"): 10.0, ("read", "random"): 40.0, ("write", "sequential"): 20.0, ("write", "random"): 50.0}


def test_figures_of_pages_that_are_not_at_hand() -> None:
    found = {metric.metric: metric for metric in dsm.touched(output(US), "dsm.swap.cluster0", swapped_in_pages=7)}
    for (what, order), us in US.items():
        metric = found[f"dsm.swap.cluster0.{what}_{order}_us"]
        assert metric.value == pytest.approx(us) and len(metric.runs) == 3
        assert metric.baseline["less_when_at_hand_us"] == pytest.approx(us - 2)
        assert metric.baseline["major_faults_per_page"] == 0.5
        assert metric.baseline["swapped_in_pages"] == 7
    assert found["dsm.swap.cluster0.pages_per_second.random"].value == pytest.approx(25000)
    assert problems(encode(Result("dsm", "2026-01-31T12:00:00Z", HOST, list(found.values())))) == []


HOST = {"cpus": 2, "memory_mib": 1, "cpu_model": "x", "kernel": "6", "emulated": True}


def test_a_limited_command_has_its_numbers() -> None:
    words = remote_swap.limited("touch --sizes=1,2", 1024, 3)
    assert re.search(r"echo 4194304 >\S+/memory.max", words) and "echo 3 >/proc/sys/vm/page-cluster" in words


def test_a_part_that_fails_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its figures until then stay; what was not measured is not there."""

    def good(_: object) -> Iterator[Metric]:
        yield Metric("dsm.a", 1, "us")

    def bad(_: object) -> Iterator[Metric]:
        yield Metric("dsm.b", 2, "us")
        raise Malformed("half of it")

    monkeypatch.setattr(dsm, "PARTS", {"bad": bad, "good": good})
    monkeypatch.setattr(host_programs, "build", lambda _: None)
    monkeypatch.setattr(host_programs, "install", lambda *_: None)
    monkeypatch.setattr(round_trips, "prepare", lambda _: None)

    class NoRack:
        hosts: tuple[object, ...] = ()

    found: list[Metric] = []
    failed = dsm.measure(NoRack(), ["bad", "good"], found)  # type: ignore[arg-type]
    assert failed == ["bad: half of it"]
    assert [metric.metric for metric in found] == ["dsm.b", "dsm.a"]
    assert "half of it" in capsys.readouterr().err
