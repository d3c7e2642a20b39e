# SPDX-License-Identifier: GPL-2.0
"""Commands over ssh, with a real dropbear on this machine: what a command tells, and all that can go wrong with it."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import ssh as module
from lab.command import Done
from lab.errors import CommandFailedError, CommandTimeoutError, LabError, MachineLostError
from lab.images.build import make_keys
from lab.process import start_tied, stop
from lab.ssh import Ssh

MIB = 1 << 20
USER = pwd.getpwuid(os.getuid()).pw_name

# Well above what each of these takes, below what it takes if it has to be given up.
SOON_S = 20.0


class Server:
    """A dropbear at a port of this machine that lets us in."""

    def __init__(self, directory: Path) -> None:
        self.key = make_keys(directory)
        self.key.with_name("authorized_keys").write_bytes(self.key.with_suffix(".pub").read_bytes())
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address: tuple[str, int] = free.getsockname()
        self.log = directory / "dropbear.log"
        self.start()

    def start(self) -> None:
        """Return when it listens."""
        host, port = self.address
        command = ["dropbear", "-F", "-E", "-s", "-p", f"{host}:{port}", "-r", "host_key", "-D", ".", "-P", "pid"]
        with self.log.open("ab") as log:
            self.process = start_tied(["env", f"--chdir={self.key.parent}", *command], stdout=log, stderr=log)
        until(self.listens)

    def listens(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with socket.socket() as stream:
            return stream.connect_ex(self.address) == 0

    def sessions(self) -> list[int]:
        """The processes that serve one connection each."""
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], check=False, capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all of them."""
        for session in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(session, number)

    def stop(self) -> None:
        """The end of the machine: of the server and all connections, at once."""
        if self.process.poll() is None:
            self.send(signal.SIGKILL)
        stop(self.process)


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + SOON_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sleeping(seconds: int) -> list[int]:
    """The processes `sleep SECONDS` on this machine, which is the one that the commands are sent to."""
    found = subprocess.run(["pgrep", "-fx", f"sleep {seconds}"], check=False, capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def wake(seconds: int) -> None:
    """End what a lost connection has left behind."""
    for pid in sleeping(seconds):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "machine")
    yield server
    server.stop()


@pytest.fixture
def ssh(server: Server) -> Iterator[Ssh]:
    """Not yet connected."""
    connection = Ssh("here", server.key, server.address, user=USER)
    yield connection
    connection.disconnect()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slack for the way, and a second between TERM and KILL."""
    monkeypatch.setattr(module, "TRANSPORT_SLACK", 0)
    monkeypatch.setattr(module, "KILL_AFTER", 1)


# --- what a command tells ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("true", 0, "", ""),
        ("echo out; echo error >&2; exit 7", 7, "out\n", "error\n"),
        (["sh", "-c", "exit 255"], 255, "", ""),
        ("kill -SEGV $$", 139, "", ""),
        ("nonesuch", 127, "", "sh: 1: nonesuch: not found\n"),
        ("printf '\\377'", 0, "\ufffd", ""),
        (["printf", "%s\\n", "a b", "$HOME", "'", "", "*"], 0, "a b\n$HOME\n'\n\n*\n", ""),
        ("cat", 0, "", ""),
    ],
    ids=["nothing", "all", "255", "signal", "not found", "no UTF-8", "words", "no input"],
)
def test_exit_code_and_output(ssh: Ssh, command: str | list[str], code: int, out: str, err: str) -> None:
    result = ssh.run(command)
    assert (result.status, result.out, result.err) == (code, out, err)


def test_a_command_that_must_succeed(ssh: Ssh) -> None:
    assert ssh.run("true", check=True).status == 0
    with pytest.raises(CommandFailedError, match=r"(?s)here: .*ended with 3:.*out.*why"):
        ssh.run("echo out; echo why >&2; exit 3", check=True)


def test_input(ssh: Ssh) -> None:
    assert ssh.run("wc -c", stdin=b"").out == "0\n"
    result = ssh.run("tee /dev/stderr | wc -c", stdin=b"y" * 4 * MIB)
    assert (result.out, len(result.err)) == (f"{4 * MIB}\n", 4 * MIB)
    assert ssh.run("exit 3", stdin=b"y" * 4 * MIB).status == 3


# --- lines ------------------------------------------------------------------------------------------------------------


def test_lines(ssh: Ssh) -> None:
    lines: list[str] = []
    result = ssh.run("echo first; echo; printf '\\377\\nlast'", on_line=lines.append)
    assert lines == ["first", "", "\ufffd", "last"]
    assert result.out == "first\n\n\ufffd\nlast"


def test_a_flood_of_messages_before_a_line(ssh: Ssh) -> None:
    lines: list[str] = []
    flood = "head -c 5242880 /dev/zero | tr '\\0' x"
    result = ssh.run(f"{flood} >&2; {flood}; echo; echo line", on_line=lines.append)
    assert [len(line) for line in lines] == [5 * MIB, 4]
    assert (result.status, len(result.out), len(result.err)) == (0, 5 * MIB + 6, 5 * MIB)


def test_lines_come_while_the_command_runs(ssh: Ssh, tmp_path: Path) -> None:
    seen: list[str] = []

    def take(line: str) -> None:
        seen.append(line)
        (tmp_path / "seen").touch()

    wait = f"until [ -e {tmp_path / 'seen'} ]; do sleep 0.05; done"
    result = ssh.run(f"echo first; {wait}; echo second; exit 4", timeout=20, on_line=take)
    assert (seen, result.status) == (["first", "second"], 4)


def test_who_takes_the_lines_may_use_the_connection(ssh: Ssh) -> None:
    answers: list[str] = []

    def take(line: str) -> None:
        assert threading.current_thread() is threading.main_thread()
        answers.append(ssh.run(["echo", "again", line]).out)

    ssh.run("seq 3", on_line=take)
    assert answers == ["again 1\n", "again 2\n", "again 3\n"]


def test_input_and_lines(ssh: Ssh) -> None:
    lines: list[str] = []
    result = ssh.run("tee /dev/stderr | wc -c", timeout=20, stdin=b"y" * MIB, on_line=lines.append)
    assert lines == [str(MIB)] and len(result.err) == MIB
    assert ssh.run("exit 3", stdin=b"y" * MIB, on_line=lines.append).status == 3


@pytest.mark.parametrize("error", [ZeroDivisionError, TimeoutError, KeyboardInterrupt])
def test_an_error_of_who_takes_the_lines(ssh: Ssh, error: type[BaseException]) -> None:
    def take(line: str) -> None:
        until(lambda: bool(sleeping(7301)))
        raise error(line)

    with pytest.raises(error, match="1"):
        ssh.run("sleep 7301 & echo 1; wait", on_line=take)
    until(lambda: not sleeping(7301))


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_line", [None, print])
def test_a_command_over_its_time_is_killed_in_the_machine(ssh: Ssh, on_line: Callable[[str], None] | None) -> None:
    with pytest.raises(CommandTimeoutError, match=r"(?s)killed after 2 s.*so far"):
        ssh.run("echo so far; sleep 7302", timeout=2, on_line=on_line)
    until(lambda: not sleeping(7302))


def test_so_is_one_that_does_not_mind(ssh: Ssh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KILL_AFTER", 1)
    with pytest.raises(CommandTimeoutError, match="killed after 1 s"):
        ssh.run("trap '' TERM; sleep 7303", timeout=1)
    until(lambda: not sleeping(7303))


@pytest.mark.parametrize(("code", "seconds", "late"), [(124, 58.0, True), (137, 58.0, True), (124, 50.0, False)])
def test_so_is_one_in_a_machine_whose_clock_is_fast(
    ssh: Ssh, monkeypatch: pytest.MonkeyPatch, code: int, seconds: float, late: bool
) -> None:
    """It is over its time by the machine's clock, a little before it is by ours."""
    result = Done(code, "so far", "", seconds)
    monkeypatch.setattr(ssh, "_to_the_end", lambda *_: result)
    if late:
        with pytest.raises(CommandTimeoutError, match="killed after 60 s"):
            ssh.run("true", timeout=60)
    else:
        assert ssh.run("true", timeout=60) is result


@pytest.mark.parametrize("on_line", [None, print])
@pytest.mark.usefixtures("impatient")
def test_an_answer_that_does_not_come(ssh: Ssh, server: Server, on_line: Callable[[str], None] | None) -> None:
    """A machine that stalls: the time counts here, too; when it goes on, the connection is still good."""
    ssh.connect(10)
    server.send(signal.SIGSTOP)
    with pytest.raises(CommandTimeoutError, match="no answer to 'sh -c true'"):
        ssh.run("true", timeout=0.5, on_line=on_line)
    with pytest.raises(CommandTimeoutError, match="no answer"):
        ssh.run("cat", timeout=0.5, stdin=b"x" * 4 * MIB)
    known = server.sessions()
    server.send(signal.SIGCONT)
    assert ssh.run("echo again").out == "again\n"
    assert server.sessions() == known


@pytest.mark.usefixtures("impatient")
def test_a_command_that_does_not_begin(ssh: Ssh, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_S", 1)
    ssh.connect(10)
    server.send(signal.SIGSTOP)
    with pytest.raises(CommandTimeoutError, match="did not begin within 1 s"):
        ssh.start("true")


# --- connections ------------------------------------------------------------------------------------------------------


def test_a_command_opens_the_connection_that_others_use(ssh: Ssh, server: Server) -> None:
    with ThreadPoolExecutor(40) as threads:
        outputs = list(threads.map(lambda number: ssh.run(f"sleep 1; echo {number}").out, range(40)))
    assert outputs == [f"{number}\n" for number in range(40)]
    assert len(server.sessions()) == 1


def test_a_server_that_comes_late(server: Server, ssh: Ssh) -> None:
    server.stop()
    with ThreadPoolExecutor(1) as thread:
        connecting = thread.submit(ssh.connect, SOON_S)
        time.sleep(1.5)
        assert connecting.running()
        server.start()
        connecting.result()
    assert ssh.run("echo here").out == "here\n"


def test_no_server(server: Server, ssh: Ssh) -> None:
    server.stop()
    with pytest.raises(LabError, match=r"here: no ssh connection within 1 s: .*Connect call failed"):
        ssh.connect(1)
    with pytest.raises(MachineLostError, match=r"here: connection lost: .*Connect call failed"):
        ssh.run("true")
    with pytest.raises(MachineLostError):
        ssh.start("true")


def test_a_server_that_says_nothing(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        ssh = Ssh("here", server.key, mute.getsockname(), user=USER)
        with pytest.raises(LabError, match="no ssh connection within 1 s: no answer"):
            ssh.connect(1)


def test_what_no_second_try_mends(server: Server, tmp_path: Path) -> None:
    other = make_keys(tmp_path / "other")
    begun = time.monotonic()
    with pytest.raises(LabError, match="not trusted"):
        Ssh("here", other, server.address, user=USER).connect(60)
    (tmp_path / "other/known_hosts").write_bytes(server.key.with_name("known_hosts").read_bytes())
    with pytest.raises(LabError, match="Permission denied"):
        Ssh("here", other, server.address, user=USER).connect(60)
    with pytest.raises(LabError, match="No such file"):
        Ssh("here", tmp_path / "nonesuch", server.address, user=USER).connect(60)
    assert time.monotonic() - begun < SOON_S


def test_nothing_of_the_user_is_read(ssh: Ssh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Host *\n  Port 1\n  User nobody\n  ProxyCommand false\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", "agent")
    monkeypatch.chdir(tmp_path)  # for a short name
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind("agent")
        agent.listen()
        agent.settimeout(0)
        assert ssh.run("echo in").out == "in\n"
        with pytest.raises(BlockingIOError):
            agent.accept()


def test_a_connection_lost_in_the_middle(ssh: Ssh, server: Server) -> None:
    for on_line in (None, lambda line: server.send(signal.SIGKILL)):
        late = threading.Timer(1, server.send, [signal.SIGKILL])
        if on_line is None:
            late.start()
        with pytest.raises(MachineLostError, match="here: connection lost: "):
            ssh.run("echo on; exec sleep 7304", on_line=on_line)
        assert ssh.run("echo back").out == "back\n"
    wake(7304)


def test_disconnect_ends_what_is_under_way(ssh: Ssh) -> None:
    background = ssh.start("sleep 7305")
    ssh.disconnect()
    with pytest.raises(MachineLostError, match="it was closed"):
        background.wait()
    wake(7305)
    ssh.disconnect()
    assert ssh.run("echo back").out == "back\n"


def test_silence(ssh: Ssh, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may stall for a while, but not for ever."""
    monkeypatch.setattr(module, "ALIVE_S", 0.2)
    monkeypatch.setattr(module, "ALIVE_COUNT", 20)
    sleeper = ssh.start("exec sleep 7306")
    server.send(signal.SIGSTOP)
    with pytest.raises(CommandTimeoutError, match="still runs after 2 s"):
        sleeper.wait(2)
    server.send(signal.SIGCONT)
    with pytest.raises(CommandTimeoutError, match="still runs after 4 s"):
        sleeper.wait(4)
    server.send(signal.SIGSTOP)
    with pytest.raises(MachineLostError, match="not responding to keepalive"):
        sleeper.wait(SOON_S)
    server.send(signal.SIGKILL)
    wake(7306)


# --- in the background ------------------------------------------------------------------------------------------------


def test_a_background_command(ssh: Ssh) -> None:
    sleeper = ssh.start(["sleep", "7307"])
    until(lambda: sleeping(7307) == [sleeper.pid])
    assert sleeper.running()
    with pytest.raises(CommandTimeoutError, match=r"'sleep 7307' still runs after 0.1 s"):
        sleeper.wait(0.1)
    assert sleeper.stop().status == 143
    until(lambda: not sleeping(7307))
    assert not sleeper.running()
    assert sleeper.stop().status == 143


def test_how_a_background_command_ended(ssh: Ssh) -> None:
    result = ssh.start("read word; echo out; echo error >&2; exit 4").wait()
    assert (result.status, result.out, result.err) == (4, "out\n", "error\n")
    assert ssh.start("nonesuch").wait().status == 127


def test_a_background_command_that_does_not_mind(ssh: Ssh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KILL_AFTER", 0.5)
    stubborn = ssh.start("trap '' TERM; echo set; while :; do sleep 0.1; done", tmp_path / "sink")
    until(lambda: (tmp_path / "sink").read_text() == "set\n")
    assert stubborn.stop().status == 137


def test_signals_for_a_background_command(ssh: Ssh, tmp_path: Path) -> None:
    sink = tmp_path / "sink"
    command = ssh.start("trap 'echo got it; exit 5' USR1; echo set; while :; do sleep 0.05; done", sink)
    until(lambda: sink.read_text() == "set\n")
    command.signal("USR1")
    assert command.wait().status == command.wait().status == 5
    assert sink.read_text() == "set\ngot it\n"


def test_a_sink_has_what_was_printed_so_far(ssh: Ssh, tmp_path: Path) -> None:
    sink = tmp_path / "sink"
    sink.write_text("before\n")
    command = ssh.start(f"echo 1; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo error >&2; echo 2", sink)
    until(lambda: sink.read_text() == "before\n1\n")
    (tmp_path / "go").touch()
    result = command.wait()
    assert (result.status, result.out, result.err) == (0, "", "error\n")
    assert sink.read_text() == "before\n1\n2\n"


def test_a_sink_that_is_full_does_not_harm_the_connection(ssh: Ssh, server: Server) -> None:
    other = ssh.start("sleep 2; echo well")
    with pytest.raises(OSError, match="No space left"):
        ssh.start("yes", Path("/dev/full")).wait()
    assert other.wait().out == "well\n"


def test_a_background_command_whose_machine_is_lost(ssh: Ssh, server: Server, tmp_path: Path) -> None:
    command = ssh.start("echo 1; exec sleep 7308", tmp_path / "sink")
    until(lambda: (tmp_path / "sink").read_text() == "1\n")
    server.stop()
    with pytest.raises(MachineLostError, match="here: connection lost"):
        command.wait()
    assert not command.running()
    wake(7308)


# --- files ------------------------------------------------------------------------------------------------------------


def test_files_both_ways(ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "folder/empty").mkdir(parents=True)
    (tmp_path / "folder/program").write_text("#!/bin/sh\necho it runs\n")
    (tmp_path / "folder/link").symlink_to("program")
    modes = {"program": 0o751, "empty": 0o711}
    for name, mode in modes.items():
        (tmp_path / "folder" / name).chmod(mode)
    there = tmp_path / "put here/renamed"
    ssh.put(tmp_path / "folder", str(there))
    assert ssh.run([f"{there}/program"]).out == "it runs\n"
    assert {name: (there / name).stat().st_mode & 0o7777 for name in modes} == modes
    assert os.readlink(there / "link") == "program"
    ssh.get(f"{there}/program", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "folder/program").read_bytes()


def test_a_large_file_both_ways(ssh: Ssh, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(8 * MIB))
    ssh.put(tmp_path / "large", f"{tmp_path}/there")
    ssh.get(f"{tmp_path}/there", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "large").read_bytes()


def test_files_that_cannot_be_copied(ssh: Ssh, server: Server, tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match=r"here:/nonesuch: .*No such file"):
        ssh.get("/nonesuch", tmp_path / "x")
    with pytest.raises(CommandFailedError):
        ssh.put(server.key, "/proc/nonesuch/key")
    server.stop()
    with pytest.raises(MachineLostError):
        ssh.get("/etc/passwd", tmp_path / "x")


# --- through a jump host ----------------------------------------------------------------------------------------------


@pytest.fixture
def inner(server: Server, tmp_path: Path, ssh: Ssh) -> Iterator[tuple[Server, Ssh]]:
    """A machine that is reached through the other."""
    machine = Server(tmp_path / "inner")
    connection = Ssh("inner", machine.key, machine.address, through=ssh, user=USER)
    yield machine, connection
    connection.disconnect()
    machine.stop()


def test_through_a_jump_host(inner: tuple[Server, Ssh], server: Server, ssh: Ssh, tmp_path: Path) -> None:
    machine, behind = inner
    behind.connect(20)
    assert len(server.sessions()) == len(machine.sessions()) == 1
    assert (behind.run("echo guest").out, ssh.run("echo host").out) == ("guest\n", "host\n")
    (tmp_path / "file").write_bytes(os.urandom(MIB))
    behind.put(tmp_path / "file", f"{tmp_path}/there")
    behind.get(f"{tmp_path}/there", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()
    waiting = behind.start("sleep 1")
    server.send(signal.SIGSTOP)
    with pytest.raises(CommandTimeoutError):
        waiting.wait(3)
    server.send(signal.SIGCONT)
    assert waiting.wait().status == 0


def test_a_jump_host_that_is_lost(inner: tuple[Server, Ssh], server: Server) -> None:
    _, behind = inner
    sleeper = behind.start("exec sleep 7309")
    server.send(signal.SIGKILL)
    with pytest.raises(MachineLostError, match="inner: connection lost"):
        sleeper.wait()
    assert behind.run("echo back").out == "back\n"
    server.stop()
    with pytest.raises(MachineLostError):
        behind.run("true")
    with pytest.raises(LabError, match="inner: no ssh connection"):
        behind.connect(1)


def test_nobody_behind_a_jump_host(inner: tuple[Server, Ssh], ssh: Ssh) -> None:
    machine, behind = inner
    machine.stop()
    with pytest.raises(LabError, match=r"inner: no ssh connection within 5 s: .*refused"):
        behind.connect(5)
    with pytest.raises(MachineLostError, match=r"inner: connection lost: .*refused"):
        behind.run("true")
    assert ssh.run("echo host").out == "host\n"


def test_the_client_for_people(inner: tuple[Server, Ssh], ssh: Ssh) -> None:
    for each in (ssh, inner[1]):
        done = subprocess.run([*each.client("-T"), "exit 6"], check=False, capture_output=True, timeout=SOON_S)
        assert (done.returncode, done.stderr) == (6, b"")


# --- processes --------------------------------------------------------------------------------------------------------

PROGRAM = """
import os, sys
from pathlib import Path
from lab.ssh import Ssh
ssh = Ssh("here", Path(sys.argv[1]), ("127.0.0.1", int(sys.argv[2])), user=sys.argv[3])
"""
ENDINGS = {
    "with a command under way": "ssh.start('sleep 7310'); print('done')",
    "with an error": "ssh.start('sleep 7310'); print('done'); sys.exit(3)",
    "disconnected": "ssh.connect(20); ssh.disconnect(); print('done')",
    "after a fork": """
ssh.connect(20)
sys.stdout.flush()
if os.fork() == 0:
    assert ssh.run("echo child").out == "child\\n"
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
assert ssh.run("echo parent").out == "parent\\n"
print("done")
""",
    "in a thread of a fork": """
import threading
ssh.connect(20)
if os.fork() == 0:
    thread = threading.Thread(target=ssh.run, args=["sleep 1"])
    thread.start()
    os._exit(ssh.run("exit 8").status)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 8
print("done")
""",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_how_a_process_ends(server: Server, ending: str) -> None:
    """Without a word, and without waiting for anything; a child that it forks has a connection of its own."""
    words = [str(server.key), str(server.address[1]), USER]
    # Python warns of any fork of a process that has threads.
    strict = ["-W", "ignore::DeprecationWarning"] if "fork" in ending else ["-W", "default"]
    done = subprocess.run(
        [sys.executable, *strict, "-c", PROGRAM + ending, *words],
        check=False, capture_output=True, text=True, timeout=3 * SOON_S,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("done\n", "")
    assert done.returncode == (3 if "exit(3)" in ending else 0)
    until(lambda: not server.sessions())
    wake(7310)
