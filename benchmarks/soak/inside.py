# SPDX-License-Identifier: GPL-2.0
"""Logs inside dom0 and the guest that no console shows: files below /var/log, and what a kernel keeps to itself.

A question has two sections for them (`Inside.ask()`), so that they are read with the books, by the command that asks for these.
Only what is new is sent. Of a file whole lines are counted, by inode and first line: xl renames its logs when a guest begins
another life (libxl_create_logfile()), and a file system gives a new file the inode of one that has gone. Records of a kernel's
ring have numbers; those that a console shows, warnings and what is worse, are not read again.

A question that reads nothing looks like a machine that says nothing. So each leaves a record of its own in the ring first, and
that has to be among those that were read; and a machine that is known to have files has to show one.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Mapping
from typing import NamedTuple

from lab.command import Run, checked
from lab.errors import Malformed

ASKED = "xenuma: soak asks, "  # and which question of which reader. No letter twice in a row: see logs.py

# Each question prints sections: a line "== NAME", then what a command says.
_SECTION = re.compile(r"^== ([a-z]+)\n", re.MULTILINE)

# A file is as it was, or its head and its new lines follow, each behind a space, and an empty line if the last one is whole.
# The guest's console is copied to the rack's logs, and read there.
_FILES = r"""
echo "== logs"; known="{known} "
find /var/log -type f ! -name 'guest-*.log' ! -name '[bw]tmp' ! -name lastlog -printf '%i %s %T@ %p\n' |
while read -r inode size time file; do
  first= at=0 time=${time%.*}
  case $known in
  *" $inode,$size,$time,"*) echo "same $inode"; continue ;;
  *" $inode,"*) first=${known##*" $inode,"}; first=${first%% *}; at=${first##*,}; first=${first%,*}; first=${first##*,} ;;
  esac
  set -- $(head -n 1 "$file" | cksum)
  [ "$1-$2" = "$first" ] && [ "$(wc -l <"$file")" -ge "$at" ] || at=0
  echo "log $inode,$size,$time $1-$2 $at $file"; sed -n "$((at + 1)),\$s/^/ /p" "$file"; echo
done
"""

# It is news (6): no console shows that, but one that shows all.
# Records that are new and below what a console shows (loglevel=5), then the numbers of the first and the last one of all.
_RING = r"""
echo "<6>{asked}" >/dev/kmsg
echo "== ring"; boot=$(cat /proc/sys/kernel/random/boot_id); at=0; [ "$boot" = "{boot}" ] && at={at}
dd if=/dev/kmsg iflag=nonblock bs=8192 status=none 2>/dev/null | awk -F '[,;]' -v at="$at" -v boot="$boot" '
  /^[0-9]/ { if (!n++) first = $2; last = $2; if ($2 >= at && $1 % 8 >= 5) print }
  END { print "ring " boot " " at " " first " " last }'
"""

_PART = re.compile(r"^(?=log |same )", re.MULTILINE)
_SAME = re.compile(r"same (\d+)")
_HEAD = re.compile(r"log (\d+),(\d+,\d+) (\d+-\d+) (\d+) (.+)")
_RECORD = re.compile(r"\d+,\d+,[^;]*;(.*)")
_END = re.compile(r"ring (\S+) (\d+) (\d+) (\d+)")


def sections(text: str) -> dict[str, str]:
    """What a question has printed, by section."""
    parts = _SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@dataclasses.dataclass(frozen=True)
class _Read:
    """How far a file was read. `stamp`: its size and time, if that was all of it."""

    stamp: str
    first: str  # checksum of its first line
    lines: int


class RingLostError(Malformed):
    """The record of this question is not among those that were read: the ring was overwritten meanwhile, or cannot be read."""


class Said(NamedTuple):
    """A line, and the file that has it; none: the kernel's ring."""

    file: str
    line: str


class Inside:
    """The logs of one machine; each line is had once.

    `files`: there is a file, when it has been read for the first time, before a guest.
    """

    def __init__(self, name: str, files: bool = False) -> None:
        self.name = name
        self._has_files = files
        self._mine, self._asked = f"{ASKED}{secrets.token_hex(4)}-", 0  # what its questions leave, and how many have
        self._files: dict[str, _Read] = {}  # by inode
        self._boot, self._next = "", 0  # of the kernel, and the number of its next record
        self._said: list[Said] = []
        self._lost = 0

    def ask(self) -> str:
        """The commands that print what is new, in two sections."""
        self._asked += 1
        known = "".join(f" {inode},{read.stamp},{read.first},{read.lines}" for inode, read in self._files.items())
        ring = _RING.replace("{boot}", self._boot).replace("{at}", str(self._next)).replace("{asked}", self._own)
        return _FILES.replace("{known}", known) + ring

    @property
    def _own(self) -> str:
        """The record that the newest question leaves."""
        return f"{self._mine}{self._asked}"

    def take(self, said: Mapping[str, str], final: bool = False) -> None:
        """Note what the sections say; the `final` time also a line that has no end. Raises Malformed."""
        try:
            self._take_files(said["logs"], final)
            self._take_ring(said["ring"])
        except RingLostError:
            raise
        except (KeyError, ValueError) as error:
            raise Malformed(f"the logs in {self.name}: {error!r}: {sorted(said)}") from error

    def read(self, run: Run, final: bool = False) -> None:
        """Ask for them alone; once more if the ring was overwritten meanwhile. Raises CommandFailedError, Malformed."""
        for once_more in (True, False):
            try:
                return self.take(sections(checked(run, self.ask(), 60.0)), final)
            except RingLostError:
                if not once_more:
                    raise

    def new(self) -> tuple[list[Said], int]:
        """What was taken since this was last asked, and how many of the kernel's records nobody has read."""
        said, lost = self._said, self._lost
        self._said, self._lost = [], 0
        return said, lost

    def _take_files(self, text: str, final: bool) -> None:
        begun = bool(self._boot)
        files: dict[str, _Read] = {}
        for part in _PART.split(text)[1:]:
            head, *body = part.split("\n")
            if same := _SAME.fullmatch(head):
                files[same[1]] = self._files[same[1]]
                continue
            match = _HEAD.fullmatch(head)
            if not match:
                raise ValueError(head)
            inode, stamp, first, at, file = match.groups()
            lines = [line[1:] for line in body if line.startswith(" ")]
            whole = not lines or part.endswith("\n\n")
            # Of a line without an end more will come, at the same time perhaps; if not, it is for the final time.
            files[inode] = _Read(stamp if whole else "-", first, int(at) + len(lines) - (not whole))
            self._said += [Said(file, line) for line in (lines if whole or final else lines[:-1])]
        if self._has_files and begun and not files:
            raise ValueError("no file at all")
        self._files = files

    def _take_ring(self, text: str) -> None:
        *records, end = text.splitlines() or [""]
        match = _END.fullmatch(end)
        if not match:
            raise ValueError(end)
        texts = [record[1] for record in map(_RECORD.fullmatch, records) if record]
        if self._own not in texts:
            raise RingLostError(f"{self.name}: the ring could not be read to its end: it has not the record of this question")
        self._boot, at, first, last = match[1], int(match[2]), int(match[3]), int(match[4])
        self._next = last + 1
        self._lost += max(first - at, 0)
        self._said += [Said("", text) for text in texts if not text.startswith(self._mine)]
