# SPDX-License-Identifier: GPL-2.0
"""lab/rack cable, put and get: the command, the supervisor that has the network, and what either says to nonsense."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from lab import state as state_module
from lab.cli import app
from lab.description import RackDescription
from lab.errors import LabError
from lab.network import Cable, Switch
from lab.rack import Rack
from lab.state import RackState, StateDirectory
from lab.supervisor import answer, changed


def say(*words: str) -> tuple[int, str]:
    """Exit code and all that the command says, an error of the lab too."""
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200", "TERM": "dumb"})
    return done.exit_code, done.output + ("" if isinstance(done.exception, SystemExit) else str(done.exception or ""))


class Supervised:
    """The rack two-hosts, with its network and its control socket; no machine is there."""

    def __init__(self, folder: Path) -> None:
        self.description = RackDescription.load("two-hosts")
        self.directory = StateDirectory("two-hosts")
        self.directory.acquire()
        self.directory.write(RackState(self.description, folder / "key", folder, "now"))
        self.network = Switch(self.directory.sockets, [host.name for host in self.description.hosts])
        self.rack = cast(Rack, SimpleNamespace(network=self.network, hosts=[]))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.directory.control))
        self.listener.listen()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            client, _ = self.listener.accept()
            with client:
                peeked = client.recv(1000, socket.MSG_PEEK)
                if not peeked:
                    return
                answer(self.rack, client)

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(str(self.directory.control))
        self.thread.join()
        self.listener.close()
        self.network.close()
        self.directory.release()


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervised]:
    with tempfile.TemporaryDirectory() as short:  # the names of sockets must be
        monkeypatch.setattr(state_module, "state_directory", lambda: tmp_path)
        monkeypatch.setattr(state_module, "socket_directory", lambda name: Path(short) / name)
        made = Supervised(tmp_path)
        yield made
        made.close()


def test_a_cable_is_cut_and_repaired(supervised: Supervised) -> None:
    code, said = say("cable", "beta", "--cut")
    assert code == 0 and "cut" in said and "alpha" not in said, said
    assert not supervised.network.cable("beta").up and supervised.network.cable("alpha").up
    code, said = say("cable", "beta", "--repair")
    assert code == 0 and "good" in said, said
    assert supervised.network.cable("beta") == Cable()


@pytest.mark.parametrize(
    ("words", "cable", "said"),
    [
        (("--delay", "50"), Cable(delay_s=0.05), "50 ms"),
        (("--loss", "2.5"), Cable(lost=0.025), "2.5 % lost"),
        (("--damage", "1"), Cable(damaged=0.01), "1 % damaged"),
        (("--double", "100"), Cable(doubled=1.0), "100 % doubled"),
        (("--reorder", "3"), Cable(reordered=0.03), "3 % reordered"),
        (("--loss", "1", "--delay", "7"), Cable(lost=0.01, delay_s=0.007), "7 ms, 1 % lost"),
        (("--repair", "--loss", "1"), Cable(lost=0.01), "1 % lost"),
        ((), Cable(), "good"),
    ],
)
def test_what_a_cable_does(supervised: Supervised, words: tuple[str, ...], cable: Cable, said: str) -> None:
    code, answered = say("cable", "alpha", *words)
    assert code == 0 and said in answered, answered
    assert supervised.network.cable("alpha") == cable
    assert supervised.network.cable("beta") == Cable()


def test_what_is_not_named_stays(supervised: Supervised) -> None:
    for words in (("--loss", "1"), ("--delay", "20"), ("--cut",)):
        assert say("cable", "alpha", *words)[0] == 0
    assert supervised.network.cable("alpha") == Cable(up=False, lost=0.01, delay_s=0.02)
    code, said = say("cable")
    assert code == 0 and "cut" in said and "good" in said and "none" in said, said
    assert say("cable", "alpha", "--repair")[0] == 0
    assert supervised.network.cable("alpha") == Cable()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gamma", "--cut"), "gamma"),
        (("--cut",), "say whose cable"),
        (("alpha", "--cut", "--repair"), "not both"),
        (("alpha", "--delay", "90000"), "want 0 to 60"),
        (("alpha", "--cut", "--rack", "one-host"), "rack 'one-host' does not run"),
    ],
)
def test_nonsense_changes_nothing(supervised: Supervised, words: tuple[str, ...], said: str) -> None:
    code, answered = say("cable", *words)
    assert code == 1 and said in answered, answered
    assert all(supervised.network.cable(name) == Cable() for name in ("alpha", "beta"))


def test_a_share_above_all(supervised: Supervised) -> None:
    assert say("cable", "alpha", "--loss", "101")[0] == 2


def test_no_rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "state_directory", lambda: tmp_path)
    assert say("cable") == (1, "no rack runs; 'lab/rack boot' starts one")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"up": 1}', '{"lost": "all"}', '{"length": 3}', '{"lost": 2.0}', "null"])
def test_the_supervisor_takes_only_what_a_cable_has(text: str) -> None:
    with pytest.raises(LabError):
        changed(Cable(lost=0.5), text)


def test_a_rack_without_a_network() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"cable alpha {}\n")
        assert answer(cast(Rack, SimpleNamespace(network=None, hosts=[])), theirs) == ""
        assert ours.recv(100) == b"error there is no network between its hosts\n"


class Machine:
    """A host or a guest that writes down what is copied."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def put(self, source: Path, destination: str) -> None:
        self.done.append((source.name, destination))

    def get(self, source: str, destination: Path) -> None:
        if source == "/nonesuch":
            destination.write_bytes(b"half")
            raise LabError("alpha:/nonesuch: No such file")
        destination.write_bytes(f"of {source}".encode())


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, Machine]:
    host, guest = Machine(), Machine()
    monkeypatch.setattr("lab.cli.find", lambda where, rack: (None, host, guest if ":" in where else None))
    return host, guest


def test_put(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    host, guest = machines
    (tmp_path / "file").touch()
    assert say("put", "alpha", str(tmp_path / "file"), "/root/other name")[0] == 0
    assert say("put", "alpha:guest2", str(tmp_path / "file"), "/tmp/file")[0] == 0
    assert host.done == [("file", "/root/other name")] and guest.done == [("file", "/tmp/file")]
    for destination in ("root/x", "/root/"):
        code, said = say("put", "alpha", str(tmp_path / "file"), destination)
        assert code == 1 and "absolute path" in said, said
    assert say("put", "alpha", str(tmp_path / "nonesuch"), "/root/x")[0] == 2
    assert len(host.done) == 1


def test_get(machines: tuple[Machine, Machine], tmp_path: Path) -> None:
    assert say("get", "alpha", "/var/log/a", str(tmp_path))[0] == 0
    assert (tmp_path / "a").read_text(encoding="utf-8") == "of /var/log/a"
    assert say("get", "alpha:guest2", "/b", str(tmp_path / "a"))[0] == 0
    assert (tmp_path / "a").read_text(encoding="utf-8") == "of /b"
    code, said = say("get", "alpha", "/nonesuch", str(tmp_path / "a"))
    assert code == 1 and "No such file" in said, said
    assert (tmp_path / "a").read_text(encoding="utf-8") == "of /b", "half a file in place of a whole one"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
