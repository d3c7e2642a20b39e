# SPDX-License-Identifier: GPL-2.0
"""benchmarks/bounce.py: its command line, what the guest says, figures. The machine is in tests/guest/test_bounce.py."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks import bounce as benchmark
from benchmarks.bounce import Seen, Settings
from benchmarks.results import read, write
from lab import bounce
from lab.bounce import Symbols
from lab.errors import CommandFailedError, Malformed
from tests.unit.bounce.test_counts import MAP, with_

SAID = """\
[    0.500000] Run /init as init process
@tick 10000000
@seconds 10.010
@begin
           CPU0       CPU1
LOC:        100        200   Local timer interrupts
@end
           CPU0       CPU1
LOC:        139       1142   Local timer interrupts
@done
reboot: Power down
"""
SEEN = Seen(0.01, 10.01, [39, 942])


def test_what_the_guest_says() -> None:
    assert benchmark.parse_console(SAID) == SEEN
    assert SEEN.periods == pytest.approx(1001)


BEGUN, _, ENDED = SAID.partition("@end")
REFUSED: dict[str, tuple[str, type[Exception], str]] = {
    "nothing": ("", CommandFailedError, "ended too early"),
    "an end before its time": (SAID.replace("@done\n", ""), CommandFailedError, "too early: .*Power down"),
    "it says what is wrong": ("@failed fork: no memory\n" + SAID, CommandFailedError, "fork: no memory"),
    "the kernel complains": (SAID.replace("@tick", "WARNING: CPU: 1 PID: 0\n@tick"), CommandFailedError, "WARNING"),
    "no seconds": (SAID.replace("@seconds", "@second"), Malformed, "no sense"),
    "a tick of nothing": (SAID.replace("10000000", "0"), Malformed, "no sense"),
    "a CPU has gone": (
        f"{BEGUN}@end{ENDED.replace('       CPU1', '').replace('       1142', '')}", Malformed, "2 CPUs began, and 1 ended"
    ),
    "a column has gone": (SAID.replace("        139  ", "  "), Malformed, "1 columns of 2 CPUs"),
}  # fmt: skip


@pytest.mark.parametrize("text, error, why", REFUSED.values(), ids=REFUSED)
def test_what_the_guest_does_not_say(text: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        benchmark.parse_console(text)


def test_figures(tmp_path: Path) -> None:
    counts = bounce.parse_counts(with_())
    pages = bounce.pages_of(counts, Symbols(MAP, counts.percpu))
    found = {metric.metric: metric for metric in benchmark.metrics(SEEN, counts, pages)}
    home, other = found["bounce.faults_per_tick.home"], found["bounce.faults_per_tick.host1"]
    assert home.value == pytest.approx(5 / 1001) and other.value == pytest.approx(11 / 1001)
    assert (home.baseline["ticks_taken"], other.baseline["ticks_taken"]) == (39, 942)
    assert (other.baseline["reads"], other.baseline["writes"], other.baseline["upgrades"]) == (9, 0, 2)
    assert found["bounce.pages"].value == 2 and found["bounce.pages"].baseline == {"lost": 2, "beyond": 3}
    page = found["bounce.page.1a06"]
    assert page.value == pytest.approx(11 / 1001) and page.baseline["symbols"] == "jiffies 9, jiffies_lock 2"
    assert page.baseline["home upgrades"] == 4 and page.baseline["host1 reads"] == 5
    assert str(page.baseline["who"]).startswith("host1 read jiffies in tick_periodic 5, home upgrade")
    assert len(read(write("bounce", list(found.values()), tmp_path)).metrics) == 5


def test_too_few_ticks_say_nothing() -> None:
    counts = bounce.parse_counts(with_())
    with pytest.raises(Malformed, match="too few"):
        benchmark.metrics(Seen(0.01, 0.5, [1, 50]), counts, [])


def test_table() -> None:
    counts = bounce.parse_counts(with_())
    text = benchmark.table(SEEN, counts, bounce.pages_of(counts, Symbols(MAP, counts.percpu)))
    home, other = (line.split() for line in text.splitlines()[1:3])
    assert home == ["home", "0", "39", "1", "0", "4", "0.00"] and other == ["host1", "1", "942", "9", "0", "2", "0.01"]
    assert "1001 ticks of 10 ms; 2 pages bounce" in text and "2 faults are in no page" in text and "3 accesses" in text
    assert "gfn 0x1a06: 0.01 per tick: jiffies, jiffies_lock\n" in text


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "System.map").write_text(MAP)
    (tmp_path / "vmlinuz").write_bytes(b"")
    return tmp_path / "vmlinuz"


def test_settings(kernel: Path) -> None:
    usual = benchmark.settings_of([f"--kernel={kernel}"])
    assert usual == Settings(kernel, kernel.with_name("System.map"))
    words = ["--arguments", "nohz_full=1 rcu_nocbs=1", "--hosts=0011", "--loops=2", "--seconds=4", "--settle=1", "--memory=256"]
    asked = benchmark.settings_of([f"--kernel={kernel}", *words])
    assert (usual.delay_us, usual.lease_us, usual.forks) == (0, 0, 0)
    assert asked.elsewhere == [2, 3] and (asked.loops, asked.seconds, asked.settle, asked.memory_mib) == (2, 4, 1, 256)
    slow = benchmark.settings_of([f"--kernel={kernel}", "--delay=800", "--lease=400", "--forks=10"])
    assert (slow.delay_us, slow.lease_us, slow.forks) == (800, 400, 10)


WRONG = {
    "--hosts=": "a digit 0 to 3 for each vCPU",
    "--hosts=0": "a digit 0 to 3",
    "--hosts=00": "a digit 0 to 3",
    "--hosts=10": "a digit 0 to 3",
    "--hosts=04": "a digit 0 to 3",
    "--hosts=02": "none left out",
    "--hosts=0" + 64 * "1": "a digit 0 to 3",
    "--loops=-1": "want 0 to 100",
    "--loops=101": "want 0 to 100",
    "--seconds=0": "want 1 to 3600",
    "--settle=0": "want 1 to 600",
    "--delay=100001": "want 0 to 100000",
    "--lease=-1": "want 0 to 100000",
    "--forks=101": "want 0 to 100",
    "--memory=64": "want 128 to 16384",
    "--memory=16385": "want 128 to 16384",
    "--seconds=1.5": "want 1 to 3600",
    "--kernel=/nowhere/vmlinuz": "/nowhere/vmlinuz is not there",
    "--system-map=/nowhere/System.map": "/nowhere/System.map is not there",
    "--what": "unrecognized",
    "more": "unrecognized",
}


@pytest.mark.parametrize("word", WRONG)
def test_arguments_that_make_no_sense(kernel: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.main([f"--kernel={kernel}", word])
    assert ended.value.code == 2 and WRONG[word] in capsys.readouterr().err


def test_help_says_what_it_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.settings_of(["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0 and "There is no Xen" in said and "--hosts" in said and "Usage: " not in said


def test_what_qemu_is_told(kernel: Path) -> None:
    settings = Settings(kernel, kernel, arguments="nohz_full=1", hosts="0012", loops=2, memory_mib=256)
    settings = dataclasses.replace(settings, delay_us=800, lease_us=400)
    words = benchmark.command_line(settings, Path("b.so"), Path("initrd"), Path("out"), 0xFFFFFFFF81AAA000)
    assert words[-1] == "b.so,out=out,hosts=0012,pages=65536,percpu=ffffffff81aaa000,delay=800,lease=400"
    assert words[words.index("-smp") + 1] == "4" and words[words.index("-m") + 1] == "256M"
    said = words[words.index("-append") + 1].split()
    assert {"nohz_full=1", "bounce_cpus=2,3", "bounce_loops=2", "bounce_settle=3", "bounce_seconds=10", "nokaslr"} <= set(said)
    assert "percpu" not in benchmark.command_line(settings, Path("b"), Path("i"), Path("o"), None)[-1]
    assert not any(word.startswith("bounce_forks") for word in said)
    forks = benchmark.command_line(dataclasses.replace(settings, forks=10), Path("b"), Path("i"), Path("o"), None)
    assert "bounce_forks=10" in forks[words.index("-append") + 1].split()


def test_what_can_not_be_measured_is_said(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Settings) -> None:
        raise CommandFailedError("no machine")

    monkeypatch.setattr(benchmark, "run", refuse)
    monkeypatch.setattr(benchmark, "kept", lambda *_, **__: pytest.fail("a result of nothing"))
    assert benchmark.main([f"--kernel={kernel}"]) == 1 and capsys.readouterr().err == "bounce: no machine\n"


def test_a_machine_that_does_not_start_is_said(kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU's own words are in the log, and the last of them in the text."""
    qemu = tmp_path / "qemu"
    qemu.write_text("#!/bin/sh\necho 'bounce: want out=FILE' >&2\nexit 1\n")
    qemu.chmod(0o755)
    monkeypatch.setenv("XENUMA_QEMU", str(qemu))
    monkeypatch.setattr(benchmark, "LOG", tmp_path / "log")
    monkeypatch.setattr(bounce, "build", lambda folder: (folder / "b.so", kernel))
    with pytest.raises(CommandFailedError, match="too early: bounce: want out=FILE"):
        benchmark.run(Settings(kernel, kernel.with_name("System.map")))
