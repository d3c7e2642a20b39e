# SPDX-License-Identifier: GPL-2.0
"""Upstream's host: nothing of this project is built into it, it is proved before it is measured, and its balloon tells."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import balloon, stock_host
from lab.command import Done, checked
from lab.elastic_guest import ElasticGuest
from lab.errors import CommandFailedError, LabError
from lab.pipeline import build, trees
from lab.pipeline.paths import REPO

OURS = [REPO / part for part in ("xen", "toolstack", "linux-guest", "libgomp-patch", "dsm")]


@pytest.mark.parametrize("name", stock_host.STEPS)
def test_nothing_of_ours_goes_in_but_options(name: str) -> None:
    """So a change of ours does not make it anew, either."""
    step = build.STEPS[name]
    assert name in build.OPTIONAL and not step.needs and step.own_tree
    assert step.inputs and all(path.suffix == ".config" and path.is_file() for path in step.inputs)


@pytest.mark.parametrize("name", stock_host.STEPS)
def test_its_tree_has_no_overlay_and_no_hook(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class ReachedError(Exception):
        """The tree was asked for."""

    asked: list[dict[str, Any]] = []

    def prepared(source: str, archive: Path, progress: object, **words: Any) -> object:
        asked.append(words)
        raise ReachedError

    monkeypatch.setattr(trees, "prepared", prepared)
    monkeypatch.setattr(build, "archive", lambda name: tmp_path / "archive")
    monkeypatch.setattr(build, "OBJECTS", tmp_path)
    step = build.STEPS[name]
    with pytest.raises(ReachedError):
        step.make(step, tmp_path, None)  # type: ignore[arg-type]
    assert asked == [{"parts": [], "variant": "-stock"}]


def options_of_ours(part: str) -> set[str]:
    """The names of the options that a part's overlay and hooks bring."""
    found: set[str] = set()
    for file in (REPO / part / "overlay").rglob("Kconfig*"):
        found |= set(re.findall(r"^config (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    for hook in (REPO / part / "hooks").glob("*.patch"):
        found |= set(re.findall(r"^\+config (\w+)", hook.read_text(encoding="utf-8"), re.MULTILINE))
    return found


@pytest.mark.parametrize("part", ["xen", "linux-guest"])
def test_no_option_of_ours_is_asked_for(part: str) -> None:
    """Kconfig would drop it silently, and the build ends with that as an error."""
    folder = REPO / part / "config"
    asked = (folder / "xenuma.config").read_text(encoding="utf-8").splitlines()
    stock = (folder / "stock.config").read_text(encoding="utf-8").splitlines()
    ours = {name for name in options_of_ours(part) if f"CONFIG_{name}=y" in asked}
    assert ours
    for name in ours:
        assert f"# CONFIG_{name} is not set" in stock, name


class PlayedHost:
    """A host whose guest and dom0 have a kernel of some name, and whose hypervisor may know our parameter."""

    def __init__(self, guest: str = "6.12.107-stock", dom0: str = "6.12.107-stock", knows: bool = False) -> None:
        self.releases = {"guest": guest, "dom0": dom0}
        self.knows = knows
        self.log: list[str] = []

    def run(self, where: str, command: str) -> Done:
        self.log.append(f"{where}: {command}")
        if command == "uname -r":
            return Done(0, self.releases[where] + "\n")
        if command.startswith("xl set-parameters"):
            return Done(0 if self.knows else 1, "", "" if self.knows else "failed to set parameters")
        return Done(0, "")

    def put(self, source: Path, destination: str) -> None:
        self.log.append(f"put {source.name} {destination}")

    def start_guest(self, config: Path, overrides: dict[str, str]) -> ElasticGuest:
        self.log.append(f"start {config.name} {overrides}")
        return ElasticGuest("stock1", lambda c, t=60.0: self.run("dom0", c), lambda c, t=60.0: self.run("guest", c))


def test_a_guest_of_it_has_its_kernel_and_tells() -> None:
    host = PlayedHost()
    config = REPO / "configs" / "stock1.cfg"
    stock_host.start_guest(host, config, balloon.STOCK)  # type: ignore[arg-type]
    assert host.log[:2] == [
        "put vmlinuz /boot/vmlinuz-stock",
        """start stock1.cfg {'cpus': '"2-3"', 'kernel': '"/boot/vmlinuz-stock"'}""",
    ]
    assert host.log[-1] == f"guest: {stock_host.TELLER}"


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (PlayedHost(guest="6.12.107-xenuma"), "the guest runs 6.12.107-xenuma, which is not upstream's"),
        (PlayedHost(dom0="6.12.107-xenuma"), "dom0 runs 6.12.107-xenuma, which is not upstream's"),
        (PlayedHost(knows=True), "the hypervisor knows guest-remove-range"),
    ],
    ids=["guest", "dom0", "hypervisor"],
)
def test_what_is_not_upstreams_is_not_measured(host: PlayedHost, message: str) -> None:
    with pytest.raises(LabError, match=message):
        stock_host.start_guest(host, REPO / "configs" / "stock1.cfg", {})  # type: ignore[arg-type]
    assert not any("balloon" in line for line in host.log)


def test_the_parameter_is_one_of_ours() -> None:
    """Else a hypervisor of ours would pass for upstream's."""
    assert stock_host.PARAMETER == balloon.PARAMETER
    assert f'"{stock_host.PARAMETER}"' in (REPO / "xen/overlay/xen/common/mem_range.c").read_text(encoding="utf-8")


def test_without_it_the_builds_command_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stock_host, "XEN", tmp_path / "xen.elf")
    with pytest.raises(LabError, match=r"xen\.elf.*run make build STEPS='xen-stock linux-stock'"):
        stock_host.stock_artifacts()


def played_tracing(tmp_path: Path, mounted: bool) -> tuple[str, dict[str, str]]:
    """The teller's script with a folder for the tracing of a kernel, and commands that write down what they are told."""
    events = tmp_path / "tracing" / "events" / "sched" / "sched_switch"
    events.mkdir(parents=True)
    os.mkfifo(tmp_path / "tracing" / "trace_pipe")
    for name, does in (("mountpoint", f"exit {0 if mounted else 1}"), ("mount", ""), ("xenstore-write", "")):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/log\n{does}\n', encoding="utf-8")
        program.chmod(0o755)
    script = stock_host.TELLER.replace("/sys/kernel/tracing", str(tmp_path / "tracing"))
    return script, {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.parametrize("mounted", [False, True])
def test_each_rest_of_the_balloon_is_told(tmp_path: Path, mounted: bool) -> None:
    """By a reader that outlives the shell that started it, and that ends with the events."""
    script, env = played_tracing(tmp_path, mounted)
    subprocess.run(["sh", "-c", script], env=env, check=True, timeout=30)
    events = tmp_path / "tracing" / "events" / "sched" / "sched_switch"
    assert (events / "filter").read_text(encoding="utf-8") == 'prev_comm == "xen-balloon" && prev_state == 1\n'
    assert (events / "enable").read_text(encoding="utf-8") == "1\n"
    os.mkfifo(tmp_path / "end")
    program = tmp_path / "xenstore-write"
    program.write_text(
        f'#!/bin/sh\necho "xenstore-write $*" >>{tmp_path}/log\n[ "$2" = 3 ] && echo end >{tmp_path}/end\n:\n', encoding="utf-8"
    )
    with (tmp_path / "tracing" / "trace_pipe").open("w", encoding="utf-8") as pipe:
        for _ in range(3):
            pipe.write("     xen-balloon-42  [001] d..2.   12.345678: sched_switch: prev_comm=xen-balloon ...\n")
    assert (tmp_path / "end").read_text(encoding="utf-8") == "end\n"
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    told = [line for line in log if line.startswith("xenstore-write")]
    assert told == [f"xenstore-write data/balloon-rests {n}" for n in range(4)]
    assert any(line.startswith("mount -t tracefs") for line in log) != mounted


def test_a_kernel_that_cannot_trace_is_an_error(tmp_path: Path) -> None:
    """And no reader is left."""
    script, env = played_tracing(tmp_path, True)
    (tmp_path / "tracing" / "events" / "sched" / "sched_switch").rmdir()
    guest = ElasticGuest("g", lambda c, t=60.0: Done(0, ""), lambda c, t=60.0: ran(c, env))
    with pytest.raises(CommandFailedError):
        checked(guest.guest, script)
    assert "xenstore-write" not in (tmp_path / "log").read_text(encoding="utf-8")


def ran(command: str, env: dict[str, str]) -> Done:
    """A command in a shell of this host."""
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False, timeout=30)
    return Done(done.returncode, done.stdout, done.stderr)
