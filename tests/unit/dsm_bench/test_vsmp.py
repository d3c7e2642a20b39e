# SPDX-License-Identifier: GPL-2.0
"""What X86_VSMP brings and costs: figures of runs that are played, and sizes by System.map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import bounce, vsmp
from benchmarks.results import write
from lab.bounce import Counts, Symbols
from lab.errors import CommandFailedError, Malformed

MAP = """0000000000000000 D __per_cpu_start
{percpu:016x} D __per_cpu_end
ffffffff81000000 T _text
ffffffff81000400 T _etext
ffffffff81002000 D _sdata
ffffffff81002800 D _edata
ffffffff81003000 B __bss_start
ffffffff81004000 B __bss_stop
ffffffff81005000 B _end
"""


def test_sizes() -> None:
    assert vsmp.sizes(MAP.format(percpu=0x3000)) == {
        "text": 0x400, "data": 0x800, "bss": 0x1000, "image": 0x5000, "per_cpu": 0x3000,
    }  # fmt: skip
    with pytest.raises(Malformed, match="has no __bss_stop, _edata"):
        vsmp.sizes(MAP.format(percpu=1).replace("__bss_stop", "x").replace("_edata", "y"))


class Played:
    """`make bounce`'s machine: so many faults of both hosts in 1000 ticks, by kernel; each run has one more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, fails: str = "") -> None:
        self.order: list[str] = []
        self.fails = fails
        for kernel, percpu in (("usual", 0x2000), ("linux-vsmp", 0x6000)):
            (folder / kernel).mkdir()
            (folder / kernel / "vmlinuz").write_bytes(b"")
            (folder / kernel / "System.map").write_text(MAP.format(percpu=percpu))
        monkeypatch.setattr(vsmp, "ARTIFACTS", folder)
        monkeypatch.setattr(vsmp, "path_of", lambda name: folder / "usual" / "vmlinuz")
        monkeypatch.setattr(bounce, "run", self.run)
        self.written: list[Any] = []
        monkeypatch.setattr(vsmp, "kept", lambda name, figures, host: self.written.append((name, figures, host)))

    def run(self, settings: bounce.Settings) -> tuple[bounce.Seen, Counts, Symbols]:
        assert settings.system_map == settings.kernel.parent / "System.map" and settings.system_map.is_file()
        kernel = settings.kernel.parent.name
        if kernel == self.fails:
            raise CommandFailedError("the guest ended too early")
        faults = (9000 if kernel == "usual" else 4000) + 1000 * self.order.count(kernel)
        self.order.append(kernel)
        counts = Counts((0, 1), ((faults, 0, 0), (0, 1000, 0)), (), (), 0, 0)
        return bounce.Seen(0.01, 10.0, [500, 1000]), counts, Symbols(settings.system_map.read_text())


def test_both_kernels_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = Played(monkeypatch, tmp_path)
    assert vsmp.main(["--rounds=3"]) == 0
    assert there.order == ["usual", "linux-vsmp", "linux-vsmp", "usual", "usual", "linux-vsmp"]
    ((name, figures, host),) = there.written
    assert name == "vsmp" and host == {"vsmp_rounds": 3}
    write(name, figures, tmp_path, host=host)
    found = {each.metric: each for each in figures}
    home = found["vsmp.faults_per_tick.home"]
    assert (home.value, list(home.runs)) == (5.0, [4.0, 5.0, 6.0])
    assert home.baseline == {"usual": 10.0, "usual_least": 9.0, "usual_most": 11.0}
    assert found["vsmp.faults_per_tick.host1"].value == 1.0 and found["vsmp.pages"].value == 0
    per_cpu = found["vsmp.memory.per_cpu"]
    assert (per_cpu.value, per_cpu.unit, per_cpu.baseline) == (24.0, "KiB", {"usual": 8.0})
    assert found["vsmp.memory.image"].value == 20.0
    said = capsys.readouterr().out
    assert "vsmp.faults_per_tick.home         10.00       5.00" in said and "vsmp.memory.per_cpu" in said


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = Played(monkeypatch, tmp_path, fails="linux-vsmp")
    assert vsmp.main([]) == 1 and not there.written
    assert "the guest ended too early" in capsys.readouterr().err
    (tmp_path / "linux-vsmp" / "vmlinuz").unlink()
    assert vsmp.main([]) == 1
    assert "lab.pipeline.build linux linux-vsmp" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        vsmp.main(["--rounds=0"])
    assert end.value.code == 2
