# SPDX-License-Identifier: GPL-2.0
"""tests/guest/mapped.c: nothing is wrong where nothing is, and a word that is changed behind its back is noticed each time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.soak import programs
from benchmarks.soak.model import MOVABLE, Program
from lab.command import Done
from lab.errors import CommandFailedError
from lab.patience import wait_for
from lab.pipeline.paths import REPO

WAYS = ("fork", "lock", "share", "register")
SECONDS = 60
NOT_HERE = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is built."""
    built = tmp_path_factory.mktemp("mapped")
    subprocess.run(
        ["make", "-C", REPO / "tests/guest", f"O={built}", built / "mapped"], check=True, capture_output=True
    )
    return built


@pytest.fixture
def running(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """The program in one of its ways, when its memory is there."""
    with subprocess.Popen([folder / "mapped", request.param, "1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        if process.stdout.readline() != "ready\n":
            assert process.wait(SECONDS) == NOT_HERE and request.param == "register"
            pytest.skip("this kernel lets nobody use io_uring")
        yield process
        process.kill()


def has_worked(process: subprocess.Popen[str]) -> bool:
    """For a tenth of a second of its own: by then it has been round its memory."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) >= os.sysconf("SC_CLK_TCK") // 10


@pytest.mark.parametrize("running", WAYS, indirect=True)
def test_nothing_is_wrong(running: subprocess.Popen[str]) -> None:
    wait_for("it has worked", SECONDS, lambda: has_worked(running), 0.01)
    running.send_signal(signal.SIGTERM)
    said, _ = running.communicate(timeout=SECONDS)
    counted = json.loads(said)
    assert running.returncode == 0 and counted["wrong"] == 0
    (kind,) = {each.fine for name, each in programs.KINDS.items() if name in WAYS}
    assert re.search(kind, said)


@pytest.mark.parametrize("running", WAYS, indirect=True)
def test_a_changed_word_is_noticed(running: subprocess.Popen[str]) -> None:
    running.send_signal(signal.SIGUSR1)
    assert running.stdout and re.fullmatch(
        r"mapped: page \d+ word 7: [0-9a-f]{16}, expected [0-9a-f]{16}\n", running.stdout.readline()
    )
    running.send_signal(signal.SIGTERM)
    said, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 1 and json.loads(said.splitlines()[-1])["wrong"] >= 1


@pytest.mark.parametrize(
    "words", [[], ["fork"], ["fork", "0"], ["fork", "1x"], ["fork", "4097"], ["knife", "1"], ["fork", "1", "1"]]
)
def test_usage(folder: Path, words: list[str]) -> None:
    done = subprocess.run([folder / "mapped", *words], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 2 and done.stderr.startswith("Usage: mapped")


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (Program(1, "share", 16), "/opt/xenuma/bin/mapped share 16"),
        (Program(1, "check", 16), "/opt/xenuma/bin/memcheck 16 2"),
        (Program(1, "near", 16, 3), "numactl --preferred=3 /opt/xenuma/bin/memcheck 16 2"),
        (Program(1, "near", 16), "/opt/xenuma/bin/memcheck 16 2"),
        (Program(1, "share", 16, 2), "numactl --preferred=2 /opt/xenuma/bin/mapped share 16"),
        (Program(1, "lock", 16), "/opt/xenuma/bin/mapped lock 16"),
        (Program(1, "pin", 0, 3), "/opt/xenuma/bin/pinner 3 24"),
    ],
)
def test_what_runs_in_the_guest(program: Program, line: str) -> None:
    assert programs.command(program) == line


def in_a_shell(command: str, timeout: float = 60.0) -> Done:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=timeout)
    return Done(done.returncode, done.stdout, done.stderr)


def test_what_programs_say_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a real shell: one that has found something, one that has ended, and one that does well."""
    monkeypatch.setattr(programs, "output", lambda program: f"{tmp_path}/{program.number}")
    found = "mapped: page 3: 1, expected 2\nmapped: page 4: 1, expected 2\n"
    for number, said in ((1, "ready\n"), (2, f"ready\n{found}"), (3, "ready\n")):
        (tmp_path / str(number)).write_text(said, encoding="utf-8")
    running = {number: (Program(number, kind, 8), os.getpid()) for number, kind in ((1, "fork"), (2, "lock"), (3, "share"))}
    assert programs.look(in_a_shell, running) == ["program 2 (lock) says mapped: page 3: 1, expected 2"]
    running[3] = (running[3][0], 2**22 + 1)
    assert programs.look(in_a_shell, running)[1:] == ["program 3 (share) has ended"]


def test_pages_on_a_node_are_counted(tmp_path: Path) -> None:
    """By a real shell, of the words of a real kernel (mm/mempolicy of proc(5))."""
    (tmp_path / "numa_maps").write_text(
        "7f00 prefer:1 anon=2050 dirty=2050 N0=2 N1=2048 kernelpagesize_kB=4\n7f90 default file=/usr/lib/N1=7 mapped=3 N1=3\n"
        "7fa0 default N10=9\n"
        "7fb0 default file=/memfd:a\\040(deleted) mapped=500 active=0 N0=40 N3=500 kernelpagesize_kB=4\n"
        "7fc0 default file=/memfd:a\\040(deleted) mapped=512 active=0 N3=512 kernelpagesize_kB=4\n"
        "7fd0 default file=/memfd:b\\040(deleted) mapped=8 N3=8 kernelpagesize_kB=4\n"
        "7fe0 default file=/usr/lib/a mapped=8 N3=3\n7ff0 default file=/usr/lib/a mapped=8 N3=4\n", encoding="utf-8",
    )  # fmt: skip

    def shell(command: str, timeout: float = 60.0) -> Done:
        return in_a_shell(command.replace("/proc/12", str(tmp_path)), timeout)

    assert [programs.pages_on(shell, 12, node) for node in (0, 1, 2, 10)] == [42, 2051, 0, 9]
    assert programs.pages_on(shell, 12, 3) == 512 + 8 + 7, "a memfd that is mapped twice has its pages once"
    with pytest.raises(CommandFailedError):
        programs.pages_on(shell, 13, 1)


@pytest.mark.parametrize(("there", "fine"), [(2048, True), (1024, True), (1023, False), (0, False)])
def test_what_has_to_be_on_a_node_is(monkeypatch: pytest.MonkeyPatch, there: int, fine: bool) -> None:
    """A program whose memory is elsewhere would show nothing of a node that leaves. One without a node is anywhere."""
    monkeypatch.setattr(programs, "pages_on", lambda *_: there)

    def guest(command: str, timeout: float = 60.0) -> Done:
        return Done(0, "12\n" if "setsid" in command else "ready\n")

    for kind in MOVABLE:
        assert programs.start(guest, Program(1, kind, 8)) == 12
        refused = pytest.raises(programs.WrongProgram, match=f"{there} of 2048 pages on node 2")
        with contextlib.nullcontext() if fine else refused:
            programs.start(guest, Program(1, kind, 8, 2))


def test_a_crowd_takes_all_but_what_it_leaves() -> None:
    """By the words of the shell that starts it; another one, beside this, may have taken or freed some meanwhile."""

    def free_mib() -> int:
        match = re.search(r"^MemFree: +(\d+) kB$", Path("/proc/meminfo").read_text(encoding="utf-8"), re.MULTILINE)
        assert match
        return int(match[1]) // 1024

    line = programs.command(Program(1, "crowd", 5)).replace("/sys/devices/system/node/has_memory", "/dev/null")
    before = free_mib()
    done = subprocess.run(["sh", "-c", f"echo {line}"], capture_output=True, text=True, check=True, timeout=SECONDS)
    *policy, program, mib, threads = done.stdout.split()
    assert (policy, program, threads) == (["numactl", "--preferred-many="], "/opt/xenuma/bin/memcheck", "2")
    assert abs(int(mib) + 5 - (before + free_mib()) // 2) < 512


@pytest.mark.parametrize(
    ("nodes", "elastic"),
    [("0-1", "1"), ("0-3", "1-3"), ("0,2", "2"), ("0,2-3", "2-3"), ("0-1,3", "1,3"), ("0-12", "1-12")],
)
def test_a_crowd_fills_the_home_last(tmp_path: Path, nodes: str, elastic: str) -> None:
    """What is left of it is what the guest's kernel has."""
    (tmp_path / "has_memory").write_text(f"{nodes}\n", encoding="utf-8")
    line = programs.ELASTIC.replace("/sys/devices/system/node", str(tmp_path))
    done = subprocess.run(["sh", "-c", f"echo {line}"], capture_output=True, text=True, check=True, timeout=SECONDS)
    assert done.stdout == f"{elastic}\n" and programs.ELASTIC in programs.command(Program(1, "crowd", 5))
