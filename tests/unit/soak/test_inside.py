# SPDX-License-Identifier: GPL-2.0
"""Logs inside a machine, read by the shell that is asked for them: each whole line once, wherever its file goes."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.soak.inside import Inside, RingLostError, Said, sections
from lab.command import Done
from lab.errors import Malformed


class Machine:
    """A folder with the files of one, and the ring of its kernel.

    /dev/kmsg gives one record for each read, as a pipe does whose writer has asked for that (pipe(2), O_DIRECT), and what is
    written to it is a record, too.
    """

    def __init__(self, folder: Path) -> None:
        self.logs, self.boot, self.written = folder / "log", folder / "boot_id", folder / "written"
        (self.logs / "xen").mkdir(parents=True)
        self.boot.write_text("a-boot\n", encoding="utf-8")
        self.xl = self.logs / "xen/xl-guest2.log"
        self.ring: list[str] = []  # heads and texts
        self.first = 0  # number of its first record
        self.records("6 Linux begins")

    def run(self, command: str, timeout: float = 60.0) -> Done:
        (said,) = re.findall(r'^echo "<6>(.*)" >/dev/kmsg$', command, re.MULTILINE)
        self.records(f"14 {said}")
        places = {"/var/log": self.logs, ">/dev/kmsg": f">{self.written}", "/proc/sys/kernel/random/boot_id": self.boot}
        for place, here in places.items():
            command = command.replace(place, str(here))
        reads, writes = os.pipe2(os.O_DIRECT)
        try:
            fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 1 << 20)
            for at, (level, text) in enumerate(record.split(" ", 1) for record in self.ring):
                os.write(writes, f"{level},{self.first + at},9,-;{text}\n".encode())
            command = command.replace("/dev/kmsg", f"/dev/fd/{reads}")
            done = subprocess.run(
                ["sh", "-c", command], capture_output=True, text=True, timeout=timeout, check=False, pass_fds=[reads]
            )
        finally:
            os.close(reads)
            os.close(writes)
        assert done.stderr == "" and self.written.read_text(encoding="utf-8") == f"<6>{said}\n"
        return Done(done.returncode, done.stdout)

    def write(self, *texts: str) -> None:
        """More of xl's log."""
        with self.xl.open("a", encoding="utf-8") as log:
            log.write("".join(texts))

    def records(self, *records: str) -> None:
        """More in the ring: levels and texts."""
        self.ring += records

    def forget(self, records: int) -> None:
        """So many of the ring's first records are overwritten."""
        self.first += records
        del self.ring[:records]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def lines_of(machine: Machine, inside: Inside, final: bool = False) -> list[str]:
    """What is new in files, and of the kernel."""
    inside.read(machine.run, final)
    said, lost = inside.new()
    assert not lost
    return [line for _, line in said]


@pytest.fixture
def begun(machine: Machine) -> Inside:
    """One that has read what there was."""
    inside = Inside("dom0")
    machine.write("of an hour ago\n")
    assert lines_of(machine, inside) == ["of an hour ago", "Linux begins"]
    return inside


def test_each_whole_line_is_had_once(machine: Machine, begun: Inside) -> None:
    assert lines_of(machine, begun) == []
    machine.write("one\n== xen\nlog 1,2,3 4-5 0 x\n\n two\ntw")
    assert lines_of(machine, begun) == ["one", "== xen", "log 1,2,3 4-5 0 x", "", " two"]
    assert lines_of(machine, begun) == []
    machine.write("o\n")
    assert lines_of(machine, begun) == ["two"]
    machine.write("\n")
    assert lines_of(machine, begun) == [""]
    machine.write("the last words")
    assert lines_of(machine, begun) == []
    assert lines_of(machine, begun, final=True) == ["the last words"]


def test_a_file_that_has_grown_is_opened_and_no_other(machine: Machine, begun: Inside) -> None:
    """Some thirty logs of lives that have ended are there in a long run, and each takes four programs to read."""
    (machine.logs / "xen-hotplug.log").write_text("", encoding="utf-8")
    assert lines_of(machine, begun) == []
    begins = ["== l", "same", "same", "== r", "14,3", "ring"]
    assert [line[:4] for line in machine.run(begun.ask()).out.splitlines()] == begins
    machine.write("one\n")
    assert [line[:4] for line in machine.run(begun.ask()).out.splitlines()].count("log ") == 1


def test_a_file_that_is_renamed_is_the_same(machine: Machine, begun: Inside) -> None:
    """As xl does when a guest begins another life; what it has written before that counts."""
    machine.write("the last of this life\n")
    machine.xl.rename(f"{machine.xl}.1")
    machine.write("of an hour ago\n", "of the next one\n")
    assert sorted(lines_of(machine, begun)) == ["of an hour ago", "of the next one", "the last of this life"]
    Path(f"{machine.xl}.1").rename(f"{machine.xl}.2")
    assert lines_of(machine, begun) == []


def test_a_file_that_has_the_place_of_one_that_has_gone_is_another(machine: Machine, begun: Inside) -> None:
    """Its inode is the same, and it may be longer."""
    for text in ("another life\nand its end\n", "third\n", "another life\nand its end\n"):
        machine.xl.write_text(text, encoding="utf-8")
        assert lines_of(machine, begun) == text.splitlines()


def test_a_file_that_is_begun_anew_is_read_anew(machine: Machine, begun: Inside) -> None:
    machine.write("one\n", "two\n")
    assert lines_of(machine, begun) == ["one", "two"]
    machine.xl.write_text("of an hour ago\n", encoding="utf-8")
    os.utime(machine.xl, (1, 1))
    assert lines_of(machine, begun) == ["of an hour ago"]


def test_which_files(machine: Machine, begun: Inside) -> None:
    """All but the guest's console, which is read elsewhere, and what is no text."""
    names = ("a log", "xen/new.log", "xen/guest-guest2.log", "wtmp", "btmp", "lastlog", "dsmd-host.log")
    for name in names:
        (machine.logs / name).write_text(f"{name}\n", encoding="utf-8")
    begun.read(machine.run)
    said, _ = begun.new()
    assert sorted(said) == sorted(Said(str(machine.logs / name), name) for name in ("a log", "xen/new.log", "dsmd-host.log"))


def test_records_below_what_a_console_shows(machine: Machine, begun: Inside) -> None:
    """The level is the rest of a division by 8: what a program writes there has its own facility."""
    machine.records("6 news", "4 a warning", "5 a notice", "7 a detail", "12 of a program", "14 its news")
    assert lines_of(machine, begun) == ["news", "a notice", "a detail", "its news"]
    assert lines_of(machine, begun) == []
    machine.records("6 a; b, c", "6 and\n SUBSYSTEM=x")
    assert lines_of(machine, begun) == ["a; b, c", "and"]


def test_records_of_another_boot(machine: Machine, begun: Inside) -> None:
    machine.boot.write_text("another\n", encoding="utf-8")
    machine.ring = ["6 Linux begins anew", "6 news"]
    assert lines_of(machine, begun) == ["Linux begins anew", "news"]


def test_records_that_nobody_has_read_are_counted(machine: Machine, begun: Inside) -> None:
    """Two were read, and three more have come and gone."""
    machine.records("6 of the first", "6 of the second", "6 of the third", "6 news")
    machine.forget(5)
    begun.read(machine.run)
    assert begun.new() == ([Said("", "news")], 3)
    assert begun.new() == ([], 0)
    machine.records("6 more")
    assert lines_of(machine, begun) == ["more"]


def test_each_question_reads_the_ring_to_its_end(machine: Machine, begun: Inside) -> None:
    """It finds what it has written there itself. Else a reader that gives up early would read a ring without a line."""

    def short(command: str, timeout: float = 60.0) -> Done:
        return machine.run(command.replace("bs=8192 ", "bs=8192 count=3 "), timeout)

    machine.records("6 news")
    with pytest.raises(RingLostError, match=r"dom0: the ring could not be read to its end"):
        begun.read(short)
    assert lines_of(machine, begun) == ["news"]


def test_a_ring_that_is_overwritten_is_asked_once_more(machine: Machine, begun: Inside) -> None:
    """dd(1) ends where the kernel says EPIPE, and the next one begins with the oldest that there is."""
    asked = []

    def short(command: str, timeout: float = 60.0) -> Done:
        asked.append(command)
        return machine.run(command.replace("bs=8192 ", "bs=8192 count=3 ") if len(asked) == 1 else command, timeout)

    machine.records("6 news")
    begun.read(short)
    assert len(asked) == 2 and [line for _, line in begun.new()[0]] == ["news"]


def test_a_record_of_another_question_is_none_of_this_one(machine: Machine) -> None:
    """Of the one before, or of another reader's first, as of an earlier run on the same host."""
    inside = Inside("dom0")
    of_another = machine.run(Inside("dom0").ask()).out
    inside.ask()
    with pytest.raises(Malformed, match="could not be read to its end"):
        inside.take(sections(of_another))
    before = machine.run(inside.ask()).out
    inside.ask()
    with pytest.raises(Malformed, match="could not be read to its end"):
        inside.take(sections(before))
    assert [line.partition(",")[0] for line in lines_of(machine, inside)] == ["Linux begins", "xenuma: soak asks"]


def test_a_file_has_to_be_there_once_it_has_been(machine: Machine) -> None:
    """As of the xl that attends a guest: a search that finds none is none. Before the first guest there may be none."""
    inside, guest = Inside("dom0", files=True), Inside("guest")
    for each in (inside, guest):
        assert lines_of(machine, each)[:1] == ["Linux begins"]
    with pytest.raises(Malformed, match="no file at all"):
        inside.read(machine.run)
    guest.read(machine.run)
    machine.write("")
    inside.read(machine.run)
    inside.read(machine.run)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "== logs\n",
        "== logs\nlog x\n== ring\nring b 0 0 0\n",
        "== logs\nsame 7\n== ring\nring b 0 0 0\n",
        "== logs\n== ring\nring b 0  \n",
        "== logs\n== ring\n",
    ],
)
def test_an_answer_without_its_form_is_refused(said: str) -> None:
    """A ring that cannot be read is not one without a line."""
    with pytest.raises(Malformed, match="the logs in guest: "):
        Inside("guest").read(lambda command, timeout=60.0: Done(0, said))
