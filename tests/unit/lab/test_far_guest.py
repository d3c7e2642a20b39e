# SPDX-License-Identifier: GPL-2.0
"""What tests see of a guest that has lost a host, and what they keep of it when they fail; the hosts are played."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab import far_guest
from lab.command import Done
from lab.errors import CommandTimeoutError, LabError

HEAD = "Name                                        ID   Mem VCPUs\tState\tTime(s)\n"


@pytest.mark.parametrize(
    ("flags", "crashed"),
    [
        ("---sc-", True),
        # Idle when it was ended: Xen has its vCPUs as blocked until a timer of one of them is up.
        ("-b-sc-", True),
        ("--psc-", True),
        ("-bpsc-", True),
        ("-b----", False),
        ("r-----", False),
        ("r--sc-", False),
        ("---s--", False),
        ("-b-s--", False),
        ("--psd-", False),
        ("---scd", False),
    ],
)
def test_has_crashed(flags: str, crashed: bool) -> None:
    row = f"{HEAD}far                                          7   384     2     {flags}       4.2\n"
    assert far_guest.has_crashed(row) == crashed


def host(answer: Callable[[str], str], name: str = "alpha", ended: bool = False) -> Any:
    def run(command: str, timeout: float = 60) -> Done:
        return Done(0, answer(command))

    return SimpleNamespace(run=run, ended=lambda: ended, description=SimpleNamespace(name=name))


class Late:
    """dsmctl says at once that beta is lost; xenstore does when it has been asked `times` times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, command: str) -> str:
        if command.startswith("dsmctl"):
            return '[{"state": "failed", "failure": "host beta is lost"}]'
        self.left -= 1
        return '/tool/dsm/1/state = "' + ("running" if self.left > 0 else "failed: host beta is lost") + '"'


@pytest.mark.parametrize("times", [1, 2, 4])
def test_xenstore_is_later(times: int) -> None:
    asked = Late(times)
    text = far_guest.told(host(asked), r"host \w+ is lost")
    assert text.count("host beta is lost") == 2 and asked.left == 0


def test_xenstore_is_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XENUMA_TIME_SCALE", "1")
    with pytest.raises(LabError, match=r"of alpha do not both say 'host beta.*\n.*failed: host beta is lost\n.*running"):
        far_guest.told(host(Late(1000)), "host beta is lost", 0.3)


def test_what_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of each host that is there, before anything is cleaned up; what does not answer is said, and no other error."""

    def hangs(command: str) -> str:
        if command.startswith("xl vnode-list"):
            raise CommandTimeoutError("20 s")
        if command.startswith("dmesg"):
            raise LabError("the connection has ended")
        return f"<{command}>"

    alpha, beta, gamma = host(hangs), host(str.upper, "beta"), host(str, "gamma", ended=True)
    site = SimpleNamespace(hosts=(alpha, beta, gamma), rack=SimpleNamespace(logs=tmp_path))
    with pytest.raises(AssertionError, match="it was so"), far_guest.kept_if_it_fails(site, "A cable, too late"):  # type: ignore[arg-type]
        raise AssertionError("it was so")
    (file,) = tmp_path.iterdir()
    text = file.read_text()
    assert file.name.startswith("a-cable-too-late-")
    assert text.startswith("A cable, too late: AssertionError: it was so\n==== alpha\n")
    for words in ("dsmctl -j status far", "xl list", "tail -n 500 /var/log/dsmd-host.log", "xl dmesg | tail -n 100"):
        assert f"<{words}>" in text and words.upper() in text, words
    assert "---- xl vnode-list far (-1, " in text and "XL VNODE-LIST FAR\n" in text
    assert "dmesg | tail -n 50: the connection has ended" in text
    assert text.endswith("==== gamma has ended\n")
    assert text in capsys.readouterr().out


def test_nothing_is_kept_of_what_holds(tmp_path: Path) -> None:
    site = SimpleNamespace(hosts=(), rack=SimpleNamespace(logs=tmp_path))
    with far_guest.kept_if_it_fails(site, "all"):  # type: ignore[arg-type]
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error stays what it was, and the text is printed."""
    site = SimpleNamespace(hosts=(), rack=SimpleNamespace(logs=tmp_path / "none"))
    with pytest.raises(KeyError), far_guest.kept_if_it_fails(site, "all"):  # type: ignore[arg-type]
        raise KeyError
    assert "all: KeyError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shape", "lines"),
    [
        (
            far_guest.Shape(node_mib=128, also=("gamma",)),
            (
                '[ "pnode=0", "size=512", "vcpus=0-1", "vdistances=10,21,21" ],',
                '[ "host=beta", "size=128", "vcpus=2", "vdistances=21,10,21", "elastic=1" ],',
                '[ "host=gamma", "size=128", "vcpus=3", "vdistances=21,21,10", "elastic=1" ],',
                "maxvcpus = 4",
            ),
        ),
        (
            far_guest.Shape(far_cpus=False, distance=31),
            (
                '[ "pnode=0", "size=512", "vcpus=0-1", "vdistances=10,31" ],',
                '[ "host=beta", "size=256", "vdistances=31,10", "elastic=1" ],',
                "maxvcpus = 2",
            ),
        ),
    ],
    ids=["three hosts", "no CPUs"],
)
def test_the_configuration(shape: far_guest.Shape, lines: tuple[str, ...]) -> None:
    text = [line.strip() for line in shape.xl_cfg("beta").splitlines()]
    assert [line for line in lines if line not in text] == [], text
