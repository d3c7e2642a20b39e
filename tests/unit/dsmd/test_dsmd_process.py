# SPDX-License-Identifier: GPL-2.0
"""dsmd and dsmctl as processes: real but for the hypervisor, which is played (played_hypervisor.c)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dsmd import test_dsmd as parts

pytestmark = pytest.mark.fresh

HOSTS = ("alpha", "beta", "gamma")
UUID = "01234567-89ab-cdef-0123-456789abcdef"
PATIENCE = 20.0


@cache
def programs() -> tuple[Path, Path, Path]:
    """dsmd with a played hypervisor, dsmctl, and what makes certificates."""
    daemon = parts.DSM / "daemon"
    process = [daemon / "main.c", daemon / "log.c", parts.HERE / "played_hypervisor.c", parts.HERE / "played_xen.c"]
    return (
        parts.linked("dsmd", [*parts.WORKER, *process]),
        parts.linked("dsmctl", [daemon / f"{noun}.c" for noun in ("dsmctl", "control", "symbols", "top")]),
        parts.linked("papers", [parts.HERE / "papers_main.c", parts.HERE / "papers.c"]),
    )


def free_port() -> int:
    """A port that is free, and the next one, too."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            with contextlib.suppress(OSError, OverflowError):
                two.bind(("127.0.0.1", port + 1))
                return port


class Daemon:
    """One host's dsmd."""

    def __init__(
        self,
        site: Site,
        name: str,
        *,
        instructions: int = 2000,
        program: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.site = site
        self.name = name
        self.folder = site.folder / name
        self.folder.mkdir(exist_ok=True)
        (self.folder / "dsm.toml").write_text(site.config(name), encoding="utf-8")
        (self.folder / "vm.json").write_text(json.dumps(site.described(name)), encoding="utf-8")
        self.said = ""
        words = ["-u", "-c", "dsm.toml", "-f", str(self.folder / "run"), "vm.json"]
        self.process = subprocess.Popen(
            [program or programs()[0], *words],
            cwd=self.folder,
            stderr=subprocess.PIPE,
            env={"DSMD_PLAYED": str(site.shared), "DSMD_INSTRUCTIONS": str(instructions), **(variables or {})},
        )

    def until(self, pattern: str) -> re.Match[str]:
        """Read what it says until there is this, and the line has an end."""
        end = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.said[: self.said.rfind("\n") + 1])):
            assert self.read(end), f"{self.name}: no {pattern!r}:\n{self.said}"
        return found

    def read(self, end: float) -> bool:
        """Take what it says next, before this time. Returns whether there was something."""
        assert self.process.stderr is not None
        ready, _, _ = select.select([self.process.stderr], [], [], max(0.0, end - time.monotonic()))
        text = os.read(self.process.stderr.fileno(), 65536).decode() if ready else ""
        self.said += text
        return bool(text)

    def ctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [programs()[1], "-f", str(self.folder / "run"), *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def end(self) -> int:
        """Wait for it. Returns its status."""
        end = time.monotonic() + PATIENCE
        while self.read(end):
            pass
        return self.process.wait(timeout=max(1.0, end - time.monotonic()))


class Site:
    """Hosts on loopback, and one VM over them: the last host is home of nothing."""

    def __init__(self, folder: Path, hosts: int) -> None:
        self.folder = folder
        self.names = HOSTS[:hosts]
        self.ports = {name: free_port() for name in self.names}
        self.shared = folder / "shared"
        self.shared.touch()
        self.daemons: list[Daemon] = []
        subprocess.run([programs()[2], folder, *self.names], check=True)
        self.limits = {"deadline_ms": 60000}
        self.description: dict[str, Any] = {
            "name": "web",
            "uuid": UUID,
            "number": 1,
            "domid": 5,
            "vcpus": 2,
            "frames": 64,
            "token": "alpha",
            "ranges": [
                {"first": 0, "frames": 32, "host": "alpha"},
                {"first": 32, "frames": 32, "host": "beta"},
            ],
        }

    def described(self, name: str) -> dict[str, Any]:
        """The VM, for the dsmd of a host."""
        assert name in self.names
        return self.description

    def config(self, name: str) -> str:
        tables = "".join(
            f'[[host]]\nname = "{host}"\nnumber = {number}\naddress = "127.0.0.1"\nport = {port}\n'
            f'certificate_names = ["{host}"]\n'
            for number, (host, port) in enumerate(self.ports.items())
        )
        limits = "".join(f"{key} = {value}\n" for key, value in self.limits.items())
        return (
            f'self = "{name}"\ntransport = "tcp"\n[tls]\nca = "{self.folder}/ca.pem"\n'
            f'certificate = "{self.folder}/{name}.pem"\nkey = "{self.folder}/{name}.key"\n'
            f"[limits]\n{limits}{tables}"
        )

    def start(self, instructions: int = 2000) -> list[Daemon]:
        self.daemons += [Daemon(self, name, instructions=instructions) for name in self.names]
        for daemon in self.daemons:
            daemon.until("state: running")
        return self.daemons

    def begin(self) -> None:
        """Let the vCPUs run."""
        with self.shared.open("r+b") as file:
            file.seek(-4, 2)
            file.write(b"\1")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, 2)
    yield made
    for daemon in made.daemons:
        daemon.process.kill()
        daemon.process.wait()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, 3)
    yield made
    for daemon in made.daemons:
        daemon.process.kill()
        daemon.process.wait()


def test_a_vm_on_two_hosts(site: Site) -> None:
    """What is read is what was written last, across processes; dsmctl says how it went."""
    daemons = site.start()
    site.begin()
    for daemon in daemons:
        words = daemon.until(r"played: (\d+) words checked")
        assert int(words[1]) == 2000
    alpha = daemons[0]
    listed = alpha.ctl("list")
    assert listed.stdout.split() == ["web", "running"], listed.stderr
    (status,) = json.loads(alpha.ctl("--json", "status").stdout)
    assert status["state"] == "running" and status["vm"] == UUID and status["failure"] is None
    assert status["read_faults"] > 100 and status["engine"]["frames"] == 64
    assert status["peers"]["beta"]["up"] and status["peers"]["beta"]["sent"] > 100
    assert "class_u" not in status and "leaves" not in status["peers"]["beta"]
    assert status["xen"]["waits"] == 4 and status["xen"]["trap_ns"] == 1500 and status["xen"]["wakes"] == 0
    text = alpha.ctl("status", "web").stdout
    assert "web (01234567-" in text
    # The means of Xen's counters, and of none.
    for line in (
        "stopped by Xen: 4, mean 1.5 us",
        "from the fault on: 3, mean 0.5 us",
        "the vCPU runs: 0, mean 0.0 us",
    ):
        assert f"{line}\n" in text, text
    assert "connected" in alpha.ctl("peers", "web").stdout
    assert f'dsmd_peer_up{{vm="{UUID}",peer="beta"}} 1\n' in alpha.ctl("metrics").stdout
    assert alpha.ctl("wait", "web").returncode == 0
    assert alpha.ctl("-t", "0", "wait", "web", "ended").returncode == 4
    assert "published: web running" in alpha.said


def asked_of_played(
    folder: Path, command: str, status: Mapping[str, object], *options: str, asks: str = "status"
) -> str:
    """What dsmctl prints for a command, of a dsmd that answers with this status, or what else dsmctl `asks` of it."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "web.sock"))
        server.listen()
        server.settimeout(PATIENCE)
        words: list[str | Path] = [programs()[1], "-f", str(folder), *options, command, "web"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as asking:
            client, _ = server.accept()
            with client:
                assert client.makefile().readline() == f"{asks}\n"
                client.sendall(f"ok\n{json.dumps(status)}\n".encode())
            said, _ = asking.communicate(timeout=PATIENCE)
    (folder / "web.sock").unlink()
    assert asking.returncode == 0, said
    return said


RUNNING = {"name": "web", "state": "running", "engine": {}}


def test_what_status_says_of_time(tmp_path: Path) -> None:
    """How often the machine's time has jumped, and by how much; of one that has not, nothing."""
    assert "time:" not in asked_of_played(tmp_path, "status", {**RUNNING, "time_jumps": 0, "time_jumped_ns": 0})
    said = asked_of_played(tmp_path, "status", {**RUNNING, "time_jumps": 3, "time_jumped_ns": 4500})
    assert "  time: it has jumped ahead here 3 times, by 4.5 us together, to keep up with other hosts\n" in said


def test_what_status_says_of_interrupts(tmp_path: Path) -> None:
    """Between vCPUs of several hosts, how long they take, each way; nothing of a way that none has gone."""

    def said(**counts: int) -> list[str]:
        phases = {
            name: {"count": count, "median_ns": 1000 * count, "p99_ns": 2000 * count, "max_ns": 4000 * count}
            for name, count in counts.items()
        }
        text = asked_of_played(tmp_path, "status", {**RUNNING, "phases": phases})
        return [line for line in text.splitlines() if "interrupts" in line]

    assert said() == said(ipi_out=0, ipi_in=0) == []
    out = "  interrupts and events, until they are sent: 3, median 3.0 us, 99% 6.0 us, longest 12.0 us"
    assert said(ipi_out=3, ipi_in=0) == [out]
    came = "  other hosts' interrupts and events, until Xen has them: 5, median 5.0 us, 99% 10.0 us, longest 20.0 us"
    assert said(ipi_out=0, ipi_in=5) == [came]
    assert said(ipi_out=3, ipi_in=5) == [out, came]


def test_what_status_says_of_class_u(tmp_path: Path) -> None:
    """Of a machine with processors at several hosts, whether it survives that one elsewhere uses a device."""
    assert "class_u" not in asked_of_played(tmp_path, "status", RUNNING)
    assert "  class_u: on\n" in asked_of_played(tmp_path, "status", {**RUNNING, "class_u": True})
    said = asked_of_played(tmp_path, "status", {**RUNNING, "class_u": False})
    assert "  class_u: off: a vCPU elsewhere that uses a device ends it\n" in said


VNODE = {"vnode": 1, "link": "up", "size_kib": 4096, "pages_modified": 3, "pages_shared": 2, "pages_home": 1019}
STATE = {
    "vnodes": [VNODE],
    "vcpus": [{"vcpu": 2, "host": "beta"}, {"vcpu": 3, "host": "gamma"}],
    "paused": ["beta", "gamma"],
}


def test_what_vnodes_says_of_processors(tmp_path: Path) -> None:
    """Which are not at home, and where the machine stands still; of one that has them all at home nothing."""
    said = asked_of_played(tmp_path, "vnodes", STATE, asks="state").splitlines()
    assert said[1].split()[:4] == ["1", "up", "4096", "3"]
    assert said[2:] == [
        "vCPU 2 runs at host beta", "vCPU 3 runs at host gamma", "paused at host beta", "paused at host gamma",
    ]  # fmt: skip
    assert json.loads(asked_of_played(tmp_path, "vnodes", STATE, "-j", asks="state")) == STATE
    assert len(asked_of_played(tmp_path, "vnodes", {"vnodes": [VNODE]}, asks="state").splitlines()) == 2
    assert json.loads(asked_of_played(tmp_path, "vnodes", {"vnodes": []}, "-j", asks="state")) == {"vnodes": []}


def test_what_status_says_of_a_leave(tmp_path: Path) -> None:
    """Of a host that is leaving, how much there is still."""
    peers = {"beta": {"up": True, "leaves": 12}, "gamma": {"up": True}, "delta": {"up": False}}
    said = asked_of_played(tmp_path, "status", {**RUNNING, "peers": peers})
    assert said.endswith(
        "  peer beta: connected, leaving: 12 pages are shared with it or asked for still\n"
        "  peer gamma: connected\n"
        "  peer delta: not connected\n"
    ), said


def test_what_peers_says_of_time(tmp_path: Path) -> None:
    """Of a host where the machine has another time, or may have."""
    for clock, words in (
        ({"state": "aligned", "error_ns": 4500, "two_times": False}, "aligned, +-4.5 us\n"),
        ({"state": "aligned", "error_ns": 4500, "two_times": True}, "aligned, +-4.5 us, TWO TIMES\n"),
        ({"state": "measuring", "two_times": True}, "measuring, TWO TIMES\n"),
        ({"state": "measuring"}, "measuring\n"),
    ):
        said = asked_of_played(tmp_path, "peers", {**RUNNING, "peers": {"beta": {"up": True, "clock": clock}}})
        assert said.endswith(words), said


def test_all_pages_come_home(site: Site) -> None:
    """What makes it quick is set while the VM runs; in the end every page of the first host is there."""
    daemons = site.start()
    alpha = daemons[0]
    for daemon in daemons:
        for word in ("prefetch=16", "clear_hint=1", "busy_wait_us=50", "poll_us=20"):
            done = daemon.ctl("set", "web", word)
            assert done.returncode == 0, done.stderr
    site.begin()
    for daemon in daemons:
        daemon.until(r"played: 2000 words checked")
    done = alpha.ctl("evacuate", "web")
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 60
    while True:
        (status,) = json.loads(alpha.ctl("--json", "status").stdout)
        if not status["engine"]["evacuating"]:
            break
        assert time.monotonic() < deadline, status["engine"]
    assert status["engine"]["elsewhere"] == 0 and status["engine"]["frames_used"] == 0
    assert status["engine"]["evacuated"] > 0 and status["poll"]["looks"] > 0


def test_pages_that_bounce(site: Site) -> None:
    """Both count; the answer has names of the kernel, and of the host that takes."""
    daemons = site.start()
    alpha = daemons[0]
    (alpha.folder / "System.map").write_text(
        "ffffffff80000010 T _text\nffffffff80001010 D jiffies\nffffffffbfff0000 B _end\n", encoding="utf-8"
    )
    for daemon in daemons:
        assert daemon.ctl("set", "web", "profile=1").returncode == 0
    site.begin()
    for daemon in daemons:
        daemon.until(r"played: 2000 words checked")
    for words in ([], ["-i", "1"]):
        done = alpha.ctl("-j", "-n", "3", "-s", str(alpha.folder / "System.map"), *words, "top", "web")
        assert done.returncode == 0, done.stderr
        top = json.loads(done.stdout)
        pages = top["pages"]
        if words:
            # All is over: nothing has happened in this second, unless a late lease ended in it.
            assert len(pages) <= 3 and 1.0 <= top["seconds"] < PATIENCE, top
            continue
        assert len(pages) == 3 and top["events"] >= sum(p["reads"] + p["writes"] + p["taken"] for p in pages) > 100, top
        assert {host for page in pages for host in page["hosts"]} <= set(site.names) - {"alpha"}, top
        assert all("jiffies" in page["symbol"] or page["gfn"] == 0 for page in pages), top
    done = alpha.ctl("top", "web")
    assert done.returncode == 0 and "a page that is not counted has had 0 at most" in done.stdout, done
    assert alpha.ctl("set", "web", "profile=0").returncode == 0 and alpha.ctl("top", "web").returncode == 1


def test_a_node_that_was_there_from_the_start_leaves(site: Site) -> None:
    """As lab.spanning describes it: no "vnode", no "attached". At the other host it is home."""
    site.description["ranges"].append({"first": 1024, "frames": 32, "host": "alpha", "vnode": 7})
    site.description["ranges"] += [{"first": first, "frames": 32, "host": "beta", "vnode": 8} for first in (2048, 4096)]
    alpha, beta = site.start(instructions=0)

    def leaving() -> int:
        (status,) = json.loads(alpha.ctl("--json", "status").stdout)
        return int(status["engine"]["leaving"])

    done = alpha.ctl("leaving", "web", "1", "64")
    assert done.returncode == 0, done.stderr
    alpha.until("node: of vnode 1 64 KiB are about to leave")
    assert leaving() == 1
    assert alpha.ctl("leaving", "web", "1", "128").returncode == 0 and leaving() == 0
    for daemon, vnode, size in (
        (alpha, "0", "0"),
        (alpha, "1", "132"),
        (alpha, "7", "0"),
        (alpha, "8", "0"),
        (beta, "1", "0"),
    ):
        done = daemon.ctl("leaving", "web", vnode, size)
        assert done.returncode == 1 and "no vnode of another host in one range, or it has less" in done.stderr, done


def test_what_dsmctl_refuses(site: Site) -> None:
    daemons = site.start(instructions=0)
    alpha = daemons[0]
    for words, status, text in (
        (["status", "mail"], 3, "there is no dsmd of such a VM; dsmctl list says which there are"),
        (["status", "../web"], 2, "no name of a VM"),
        (["leave", "web"], 1, "this host is the home of pages"),
        (["place", "web", "beta", "1"], 1, "places this machine has none"),
        (["place", "web", "mail", "1"], 1, "unknown-host no host"),
        (["home", "web", "1"], 1, "places this machine has none"),
        (["place", "web", "beta"], 2, "dsmctl: place takes 3 words (VM HOST VCPUS), not 2\n"),
        (["fail", "web", "out", "of", "order"], 2, "fail takes 2 words (VM REASON, which is one word or in quotes), not 4\n"),
        (["forget", "web"], 1, "the VM has not ended"),
        (["set", "web"], 2, "dsmctl: set takes 2 words (VM KEY=NUMBER), not 1\n"),
        (["top", "web"], 1, "pages are not counted: dsmctl set VM profile=1"),
        (["top"], 2, "dsmctl: top takes 1 word (VM), not 0\n"),
        (["-n", "0", "top", "web"], 2, "--number 0: want 1 to 1024"),
        (["-i", "1x", "top", "web"], 2, "--interval 1x: want 0 to 86400"),
        (["-s", str(alpha.folder / "vm.json"), "top", "web"], 2, "neither a System.map nor a vmlinux"),
        (["-s", "none", "top", "web"], 2, "none: No such file"),
        (["set", "web", "prefetch=65"], 1, "prefetch: a number, 0 to 64"),
        (["set", "web", "speed=1"], 1, "want prefetch=N, clear_hint=0 or 1, class_u=0 or 1, busy_wait_us=N"),
        (["set", "web", "x" * 2000], 2, "set: more than"),
        (["wait", "web", "runing"], 2, "runing: no state; there are connecting, running, leaving, ended, failed, over"),
        (["wait", "mail", "runing"], 2, "runing: no state"),
        (["evacuate", "web", "0"], 2, "dsmctl: evacuate takes 1 word (VM), not 2\n"),
        (["fail", "web"], 2, "dsmctl: fail takes 2 words (VM REASON, "),
        (["status", "web", "mail"], 2, "dsmctl: status takes at most 1 word (VM), not 2\n"),
        (["list", "extra"], 2, "dsmctl: list takes no word, not 1 (extra)\n"),
        (["wait", "web", "running", "x"], 2, "dsmctl: wait takes 1 to 2 words (VM [STATE]), not 3\n"),
        (["list", "--timeout", "5"], 2, "dsmctl: list has no option --timeout; dsmctl --help says whose it is\n"),
        (["metrics", "-j"], 2, "dsmctl: metrics has no option --json; "),
        (["metrics", *["-j"] * 1000], 2, "dsmctl: metrics has no option --json; "),
        (["status", "web", "--force"], 2, "dsmctl: status has no option --force; "),
        (["hosts"], 2, "dsmctl: hosts has no option --folder; "),
        (["status", "-l", "x", "-l", "y", "web"], 2, "dsmctl: status has no option --listen; "),
        (["-i", "1", "-n", "1", "wait", "web"], 2, "dsmctl: wait has no option --number; "),
        (["web", "status"], 2, "dsmctl: web is no command; dsmctl --help has them\n"),
        ([], 2, "usage"),
        (["-t", "x", "wait", "web"], 2, "--timeout"),
        (["fail", "web", "x" * 2000], 2, "fail: more than"),
        (["fail", "web", "a\nb"], 2, ""),
    ):
        done = alpha.ctl(*words)
        assert (done.returncode, text in done.stderr) == (status, True), (words, done)


def test_no_machine(tmp_path: Path) -> None:
    """Nobody is said to be there only if that is known."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for folder, status, text in (
        ("empty", 0, "no VM has a dsmd here: {} is empty"),
        ("nowhere", 0, "no VM has a dsmd here: {}: No such file or directory"),
        ("file", 3, "{}: Not a directory"),
    ):
        for command in ("list", "status", "metrics"):
            words = [str(programs()[1]), "--folder", str(tmp_path / folder), command]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert (done.returncode, text.format(tmp_path / folder) in done.stderr) == (status, True), done


def test_a_dsmd_that_died(site: Site) -> None:
    """dsmd-host has written down why; the socket is there or not."""
    alpha = site.start(instructions=0)[0]
    alpha.process.kill()
    alpha.process.wait()
    run = alpha.folder / "run"
    assert (run / "web.sock").exists() and alpha.ctl("list").stdout.split() == ["web", "?"]
    (run / "web.failed").write_text("host alpha: its dsmd has ended\n", encoding="utf-8")
    for socket_is_there in (True, False):
        if not socket_is_there:
            (run / "web.sock").unlink()
        assert alpha.ctl("list").stdout.split() == ["web", "failed"]
        status = alpha.ctl("status", "web")
        assert status.returncode == 1 and status.stdout == "web: failed\n  why: host alpha: its dsmd has ended\n"
        assert json.loads(alpha.ctl("-j", "status", "web").stdout) == [
            {"name": "web", "state": "failed", "failure": "host alpha: its dsmd has ended"}
        ]
        assert alpha.ctl("wait", "web").returncode == 1
        for words in (("leave", "web"), ("peers", "web"), ("vnodes", "web"), ("-j", "peers", "web")):
            done = alpha.ctl(*words)
            assert (done.returncode, done.stdout) == (3, ""), done
            assert done.stderr == "dsmctl: web: its dsmd has ended; dsmctl status says why\n"


def test_certificates_that_expire(site: Site) -> None:
    """Ours at the start, the peer's when it has connected; dsmctl and node_exporter have the time."""
    subprocess.run([programs()[2], site.folder, "ca:60", "alpha:12", "beta:40"], check=True)
    alpha, beta = site.start(instructions=0)
    assert f"this host's certificate ({site.folder}/alpha.pem) expires on " in alpha.said
    assert re.search(", in 1[12] days", alpha.said)
    assert "this guest goes on with the one that it began with" in alpha.said and alpha.said.count("expires on") == 1
    beta.until(r"level=warning vm=web msg=\"host alpha: its certificate expires on .*, in 1[12] days: ")
    assert beta.said.count("expires on") == 1
    (status,) = json.loads(beta.ctl("-j", "status").stdout)
    metrics = beta.ctl("metrics").stdout
    for found, days, labels in (
        (status["certificate_expires"], 40, ',of="host"'),
        (status["ca_expires"], 60, ',of="ca"'),
        (status["peers"]["alpha"]["certificate_expires"], 12, ',peer="alpha"'),
    ):
        assert 0 <= time.time() + days * 86400 - found < 600
        assert f'dsmd_certificate_expires_seconds{{vm="{UUID}"{labels}}} {found}\n' in metrics


def test_a_failure_is_said_until_it_is_forgotten(site: Site) -> None:
    alpha, beta = site.start(instructions=0)
    assert alpha.ctl("fail", "web", 'an "operator" wants it').returncode == 0
    beta.until("state: failed")
    status = alpha.ctl("status", "web")
    assert status.returncode == 1 and 'why: an "operator" wants it' in status.stdout
    assert alpha.ctl("wait", "web").returncode == 1
    assert alpha.ctl("fail", "web", "again").returncode == 1
    for daemon in (alpha, beta):
        assert daemon.ctl("forget", "web").returncode == 0
        assert daemon.end() == 1
    assert 'msg="state: failed: an \\"operator\\" wants it"' in alpha.said
    left = alpha.ctl("list")
    assert left.stdout == "" and "no VM has a dsmd here" in left.stderr


def test_a_host_is_killed(site: Site) -> None:
    """The others say who is lost, and how much."""
    alpha, beta = site.start()
    site.begin()
    alpha.until("played:")
    beta.process.kill()
    alpha.until(r"state: failed: host beta is lost \(.*\): \d+ pages of alpha were modified there; of its own 32 pages")
    assert alpha.ctl("forget", "web").returncode == 0
    assert alpha.end() == 1


def test_a_host_leaves(three: Site) -> None:
    """SIGTERM at a host that is home of nothing: it gives everything back; the VM goes on."""
    alpha, beta, gamma = three.start()
    three.begin()
    for daemon in (alpha, beta, gamma):
        daemon.until("played:")
    gamma.process.send_signal(signal.SIGTERM)
    assert gamma.end() == 0
    assert "state: ended" in gamma.said
    alpha.until("host gamma: closed by both ends")
    for daemon in (alpha, beta):
        assert daemon.ctl("wait", "web").returncode == 0


def test_a_host_is_told_to_end_while_it_leaves(three: Site) -> None:
    """Twice: it does not wait for who does not answer, and says so, since pages of others may be there."""
    alpha, beta, gamma = three.start()
    three.begin()
    for daemon in (alpha, beta, gamma):
        daemon.until("played:")
    alpha.process.send_signal(signal.SIGSTOP)
    gamma.process.send_signal(signal.SIGTERM)
    gamma.until("state: leaving")
    gamma.process.send_signal(signal.SIGTERM)
    assert gamma.end() == 1
    assert "ends with a VM that runs" in gamma.said
    alpha.process.send_signal(signal.SIGCONT)


def test_a_home_that_is_told_to_end(site: Site) -> None:
    """Its process ends at once, with a status that says so, and the other fails."""
    alpha, beta = site.start(instructions=0)
    alpha.process.send_signal(signal.SIGTERM)
    assert alpha.end() == 1
    beta.until("state: failed: host alpha is lost")


def test_files_are_checked(site: Site) -> None:
    daemon = Daemon(site, "alpha", instructions=0)
    site.daemons.append(daemon)
    daemon.until("state: connecting")
    words = [str(programs()[0]), "--check", "-c", "dsm.toml", "vm.json"]
    assert subprocess.run(words, cwd=daemon.folder, check=False).returncode == 0
    (daemon.folder / "vm.json").write_text("{}", encoding="utf-8")
    done = subprocess.run(words, cwd=daemon.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "dsmd: vm.json: name: missing in the description\n")
    # A second dsmd of the same VM does not take the first one's place.
    (daemon.folder / "vm.json").write_text(json.dumps(site.description), encoding="utf-8")
    second = Daemon(site, "alpha", instructions=0)
    site.daemons.append(second)
    assert second.end() == 3
    assert "in use" in second.said
