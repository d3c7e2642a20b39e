# SPDX-License-Identifier: GPL-2.0
"""Hosts of the tests of dsmd-host: processes on loopback, real but for Xen (played_host_xen.c) and dsmds (played_dsmd.py)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.dsmd import test_dsmd as parts
from tests.unit.dsmd.test_dsmd_process import HOSTS, free_port, programs

UUID = "01234567-89ab-cdef-0123-456789abcdef"
OTHER = "11111111-89ab-cdef-0123-456789abcdef"
PATIENCE = 20.0
# Of its own each: a host knows another one by it. A stranger has beta's.
ADDRESS = {"alpha": "127.0.0.1", "beta": "127.0.0.2", "gamma": "127.0.0.3", "stranger": "127.0.0.2"}
MIB = 1 << 20
Reply = dict[str, Any]

# What the Xen of a host says, played_host_xen.c, and what its dsmd-host says of itself to another one.
XEN = {
    "version": "4.20.3-pre",
    "abi": "2",
    "hap": "1",
    "free": str(8 << 20),
    "total": str(16 << 20),
    "cpus": "4",
    "tsc": "2000000",
    "features": "7 7",
}
GOOD = {
    "xen": XEN["version"],
    "abi": 2,
    "hap": True,
    "free_kib": 8 << 20,
    "features": [7, 7],
    "numbers": [],
    "hosts": ["alpha", "beta"],
}


# What talks to Xen; played_host_xen.c is in its place.
OF_XEN = {"host/xen_libxc.c", "daemon/cpu_features.c", "daemon/tsc.c"}


def made_of() -> list[str]:
    """The sources that dsm/Makefile makes dsmd-host of: with one that is missing there, it would not link here either."""
    words = ["make", "-s", "--no-print-directory", "-f", str(parts.DSM / "Makefile"), "XEN=none", "O=build"]
    asked = [*words, "--eval=sources: ; @echo $(HOST)", "sources"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(asked, check=True, capture_output=True, text=True, env=environment)
    # build/CHECKSUM/host/main.c.o
    return [word.split("/", 2)[2].removesuffix(".o") for word in done.stdout.split()]


@cache
def host_program() -> Path:
    sources = [parts.DSM / name for name in made_of() if name not in OF_XEN]
    own = [source for source in sources if source.parent.name == "host"]
    shared = [source for source in sources if source not in own]
    return parts.linked_apart("dsmd-host", [*own, parts.HERE / "played_host_xen.c"], shared)


@cache
def libxl_client() -> Path:
    """libxl's own words (libxl_client.c)."""
    toolstack = parts.ROOT / "tests" / "unit" / "toolstack"
    light = parts.ROOT / "toolstack" / "overlay" / "tools" / "libs" / "light"
    included = [toolstack / "fakes", light, light.parents[1] / "include"]
    sources = [
        parts.HERE / "libxl_client.c",
        toolstack / "fakes" / "fake_json.c",
        light / "libxl_dsm_json.c",
        light / "libxl_dsm_socket.c",
    ]
    target = host_program().with_name("libxl_client")
    words = ["gcc", "-std=gnu99", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", *(f"-I{folder}" for folder in included)]
    subprocess.run([*words, *sources, "-o", target, "-lyajl"], check=True)
    return target


def until(what: Callable[[], bool], why: str) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, why
        time.sleep(0.02)


class Host:
    """One dsmd-host, and what its Xen is."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.folder = site.folder / name
        self.folder.mkdir()
        self.run = self.folder / "made" / "run"
        self.config = self.folder / "dsm.toml"
        self.config.write_text(site.config(name), encoding="utf-8")
        self.socket = self.folder / "dsmd.sock"
        self.events = self.folder / "events"
        os.mkfifo(self.events)
        self.log = self.folder / "log"
        self.facts = dict(XEN)
        self.domains: dict[int, str] = {}
        self.write_xen()
        self.process: subprocess.Popen[bytes] | None = None

    def write_xen(self, **facts: str) -> None:
        self.facts |= facts
        lines = [f"{key} {value}" for key, value in self.facts.items()]
        lines += [f"domain {domid} {text}" for domid, text in self.domains.items()]
        beside = self.folder / "xen.new"
        beside.write_text("\n".join([*lines, ""]), encoding="utf-8")
        beside.rename(self.folder / "xen")

    def start(self) -> Host:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [host_program(), "-u", "-c", self.config, "-f", self.run, "-l", self.socket, "-d", self.site.dsmd],
                stderr=log,
                env={
                    **os.environ,
                    "HOST_XEN": str(self.folder / "xen"),
                    "HOST_XEN_EVENTS": str(self.events),
                    "DSMD_PLAYED": str(self.site.shared),
                },
            )
        until(lambda: f"host {self.name} is ready" in self.said(), "it does not start")
        return self

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.log.write_text("", encoding="utf-8")

    def connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(2 * PATIENCE)
        made.connect(str(self.socket))
        return made

    def ask_bytes(self, line: bytes) -> bytes:
        with self.connect() as made:
            made.sendall(line)
            got = b""
            while more := made.recv(65536):
                got += more
        return got

    def ask(self, op: str, **more: object) -> Reply:
        line = json.dumps({"version": 1, "op": op, "uuid": UUID, "domid": 5} | more)
        reply: Reply = json.loads(self.ask_bytes(line.encode() + b"\n"))
        assert reply["version"] == 1
        return reply

    def answers(self, *lines: str) -> None:
        """What the dsmds of VMs of this host say instead."""
        (self.run / "answers").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def status(self, name: str = "web") -> dict[str, str]:
        """What a real dsmd says of itself."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(PATIENCE)
            wire.connect(str(self.run / f"{name}.sock"))
            wire.sendall(b"status\n")
            ok, _, text = wire.makefile().read().partition("\n")
        assert ok == "ok", text
        status: dict[str, str] = json.loads(text)
        return status

    def done(self) -> str:
        """What was done to domains and xenstore (played_host_xen.c)."""
        log = self.folder / "xen.log"
        return log.read_text(encoding="utf-8") if log.exists() else ""

    def asked(self, what: str = "asked") -> list[str]:
        file = self.run / what
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def vm(self, uuid: str = UUID) -> Path:
        return self.run / "vm" / uuid

    def has(self, uuid: str = UUID) -> bool:
        return (self.vm(uuid) / "record.json").exists()

    def pid(self, uuid: str = UUID) -> int:
        """Of the dsmd that lives; 0: none."""
        with contextlib.suppress(OSError):
            pid = int((self.vm(uuid) / "pid").read_text())
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            return 0 if state == "Z" else pid
        return 0

    def look(self) -> None:
        """A domain has ended, Xen says: it is looked what nobody needs any more."""
        with self.events.open("wb", buffering=0) as events:
            events.write(b"x")

    def end_domain(self, domid: int) -> None:
        del self.domains[domid]
        self.write_xen()
        self.look()

    def destroyed(self) -> str:
        return "".join(line for line in self.done().splitlines(keepends=True) if line.startswith("destroyed"))


class Site:
    def __init__(
        self, folder: Path, hosts: int, dsmd: Path = parts.HERE / "played_dsmd.py", papers: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.dsmd = dsmd
        self.shared = folder / "shared"
        self.shared.touch()
        self.ports = {name: free_port() for name in HOSTS[:hosts]}
        subprocess.run([programs()[2], folder, *(papers or (*self.ports, "stranger"))], check=True)
        self.hosts = {name: Host(self, name) for name in self.ports}
        self.alpha = self.hosts["alpha"]
        self.alpha.domains[5] = f"{UUID} web 3 1"
        self.alpha.write_xen()

    def config(self, name: str) -> str:
        tables = "".join(
            f'[[host]]\nname = "{host}"\nnumber = {number}\naddress = "{ADDRESS[host]}"\nport = {port}\n'
            f'certificate_names = ["{host}"]\n'
            for number, (host, port) in enumerate(self.ports.items())
        )
        return (
            f'self = "{name}"\ntransport = "tcp"\n[tls]\nca = "{self.folder}/ca.pem"\n'
            f'certificate = "{self.folder}/{name}.pem"\nkey = "{self.folder}/{name}.key"\n'
            f"[limits]\nopening_ms = 2000\n{tables}"
        )

    def end(self) -> None:
        for host in self.hosts.values():
            print(f"---- {host.name}\n{host.said()}", host.asked())  # pytest shows it if the test has failed
            host.kill()
            for uuid in (UUID, OTHER):
                if pid := host.pid(uuid):
                    os.kill(pid, signal.SIGKILL)


def running(folder: Path, hosts: int, dsmd: Path = parts.HERE / "played_dsmd.py") -> Iterator[Site]:
    """So many hosts, started; for a fixture, after which they end."""
    made = Site(folder, hosts, dsmd)
    for host in made.hosts.values():
        host.start()
    yield made
    made.end()


def ranges(*hosts: str) -> list[dict[str, object]]:
    """64 MiB at home, and 64 MiB at each of these."""
    spans = [
        {"vnode": i, "start": i * 64 * MIB, "size_kib": 65536, "host": host, "pool_kib": 4096}
        for i, host in enumerate(hosts, 1)
    ]
    return [{"vnode": 0, "start": 0, "size_kib": 65536}, *spans]


def small() -> list[dict[str, object]]:
    """2 MiB at home and 2 MiB at beta."""
    return [
        {"vnode": 0, "start": 0, "size_kib": 2048},
        {"vnode": 1, "start": 2 * MIB, "size_kib": 2048, "host": "beta", "pool_kib": 256},
    ]


def enable(host: Host, *hosts: str, **more: object) -> Reply:
    return host.ask("enable", **({"name": "web", "vcpus": 2, "ranges": ranges(*(hosts or ("beta",)))} | more))


def node(host: Host, size: int, vnode: int = 1, there: str = "beta", **more: object) -> Reply:
    words = {"vnode": vnode, "host": there, "size_kib": size, "pool_kib": 4096 if size else 0}
    return host.ask("node", **(words | more))


def sizes(host: Host) -> dict[int, int]:
    return {row["vnode"]: row["size_kib"] for row in host.ask("state")["vnodes"]}


def plain_connect(site: Site, me: str, to: str) -> socket.socket:
    return socket.create_connection((ADDRESS[to], site.ports[to]), timeout=PATIENCE, source_address=(ADDRESS[me], 0))


def peer_connect(site: Site, me: str, to: str) -> ssl.SSLSocket:
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(site.folder / "ca.pem"))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # these certificates have no key identifiers
    context.load_cert_chain(site.folder / f"{me}.pem", site.folder / f"{me}.key")
    plain = plain_connect(site, me, to)
    return context.wrap_socket(plain, server_hostname=to)


def peer_ask(site: Site, me: str, to: str, **words: object) -> Reply:
    with peer_connect(site, me, to) as wire:
        wire.sendall(json.dumps({"version": 1} | words).encode() + b"\n")
        got = b""
        with contextlib.suppress(ssl.SSLEOFError):
            while more := wire.recv(65536):
                got += more
    reply: Reply = json.loads(got)
    return reply


class Liar:
    """Beta, with its own certificate, that answers each request with the same bytes."""

    def __init__(self, site: Site, reply: bytes) -> None:
        self.reply = reply
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(site.folder / "ca.pem"))
        self.context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_cert_chain(site.folder / "beta.pem", site.folder / "beta.key")
        self.server = self.listening(site)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    @staticmethod
    def listening(site: Site) -> socket.socket:
        """A process of the dsmd-host that was killed may have its socket still, until it runs for the first time."""
        made: list[socket.socket] = []

        def listens() -> bool:
            with contextlib.suppress(OSError):
                made.append(socket.create_server((ADDRESS["beta"], site.ports["beta"])))
            return bool(made)

        until(listens, "beta's port is in use")
        return made[0]

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self.server.accept()
                with contextlib.suppress(OSError), self.context.wrap_socket(plain, server_side=True) as wire:
                    wire.recv(65536)
                    wire.sendall(self.reply)
                    wire.unwrap()

    def end(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join()


def kill_jobs(host: Host, by: signal.Signals = signal.SIGKILL) -> None:
    assert host.process
    children = Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children").read_text().split()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), by)
