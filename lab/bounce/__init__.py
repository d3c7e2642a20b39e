# SPDX-License-Identifier: GPL-2.0
"""Which pages bounce: what the plugin (bounce.c) has counted, read and named.

    counts = parse_counts(file.read_text())
    names = Symbols(system_map.read_text(), counts.percpu)
    for page in pages_of(counts, names):
        print(page.gfn, page.faults, page.by_symbol())

`build()` makes the plugin and the guest's program, in a second, by the sandbox's gcc; no step of the pipeline does.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import json
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.errors import CommandFailedError, LabError, Malformed
from lab.pipeline.build import OBJECTS, archive
from lab.pipeline.progress import StepFailed

SOURCES = Path(__file__).resolve().parent
MAX_HOSTS, MAX_CPUS, MAX_PAGES = 4, 64, 1 << 22
"""Those of protocol.h."""
KINDS = ("read", "write", "upgrade")
"""A copy is asked for; the page is; it is, by who has a copy."""


# --- what is built ---------------------------------------------------------------------------------------------------


def plugin_header() -> Path:
    """The folder with QEMU's qemu-plugin.h, of the pinned source. Raises LabError."""
    try:
        source = archive("qemu")
    except StepFailed as error:
        raise LabError(str(error)) from error
    folder = OBJECTS / "bounce" / source.name
    header = folder / "qemu-plugin.h"
    if not header.is_file():
        with tarfile.open(source) as tar:
            stream = next((tar.extractfile(member) for member in tar if member.name.endswith("/qemu-plugin.h")), None)
            if stream is None:
                raise LabError(f"{source.name} has no qemu-plugin.h")
            folder.mkdir(parents=True, exist_ok=True)
            whole = folder / "whole"
            with whole.open("wb") as file:
                shutil.copyfileobj(stream, file)
            whole.replace(header)
    return folder


def _gcc(*words: str | Path) -> None:
    command = ["gcc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailedError(f"lab/bounce does not compile:\n{done.stderr.strip()}")


def build(folder: Path) -> tuple[Path, Path]:
    """Make the plugin and init in `folder`; their paths. Raises LabError, CommandFailedError."""
    plugin, init = folder / "bounce.so", folder / "init"
    asked = ["pkg-config", "--cflags", "--libs", "glib-2.0"]
    glib = subprocess.run(asked, capture_output=True, text=True, check=False)
    if glib.returncode:
        raise CommandFailedError(f"pkg-config: {glib.stderr.strip()}")
    # -isystem: QEMU's header has warnings of its own.
    header: list[str | Path] = ["-isystem", plugin_header()]
    _gcc("-fPIC", "-shared", "-pthread", *header, SOURCES / "bounce.c", "-o", plugin, *glib.stdout.split())
    _gcc("-static", SOURCES / "init.c", "-o", init)
    return plugin, init


# --- what it has counted ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """How often vCPUs of a host waited for a page, by the instruction at `pc`, for what is at `va`."""

    host: int
    kind: str
    gfn: int
    pc: int
    va: int
    count: int


@dataclasses.dataclass(frozen=True)
class Counts:
    """The plugin's file."""

    hosts: tuple[int, ...]  # of each vCPU
    faults: tuple[tuple[int, int, int], ...]  # of each host, by KINDS
    rows: tuple[Row, ...]
    percpu: tuple[int, ...]  # what is added to a per-CPU symbol for each CPU; empty if unknown
    lost: int  # faults that are in `faults`, and in no row
    beyond: int  # accesses to memory of which no state is kept


def _natural(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise Malformed(f"bounce: {value!r:.40} is no number of 64 bits")
    return value


def _row(words: list[Any], hosts: int) -> Row:
    host, kind, *numbers = words
    gfn, pc, va, count = map(_natural, numbers)
    if type(host) is not int or not 0 <= host < hosts or kind not in KINDS or count == 0:
        raise Malformed(f"bounce: a row of nobody, or of nothing: {words!r:.100}")
    return Row(host, kind, gfn, pc, va, count)


def parse_counts(text: str) -> Counts:
    """What the plugin has written. Raises Malformed."""
    try:
        data = json.loads(text)
        of_cpu = tuple(map(_natural, data["hosts"]))
        hosts = 1 + max(of_cpu)
        if hosts > MAX_HOSTS or len(of_cpu) > MAX_CPUS:
            raise Malformed(f"bounce: {len(of_cpu)} vCPUs of {hosts} hosts")
        percpu = tuple(map(_natural, data["percpu"]))
        if len(percpu) not in (0, len(of_cpu)):
            raise Malformed(f"bounce: {len(percpu)} per-CPU areas of {len(of_cpu)} vCPUs")
        faults = [tuple(map(_natural, of_host)) for of_host in data["faults"]]
        rows = tuple(_row(words, hosts) for words in data["rows"])
        lost, beyond = _natural(data["lost"]), _natural(data["beyond"])
    except Malformed:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise Malformed(f"bounce: not the plugin's file: {error!r}: {text[:100]!r}") from error
    three = [(of_host[0], of_host[1], of_host[2]) for of_host in faults[:hosts] if len(of_host) == len(KINDS)]
    if len(three) != hosts or sum(map(sum, three)) != sum(row.count for row in rows) + lost:
        raise Malformed(f"bounce: {faults} and {len(rows)} rows do not fit each other")
    return Counts(of_cpu, tuple(three), rows, percpu, lost, beyond)


# --- names -----------------------------------------------------------------------------------------------------------

# Of x86-64 with four levels of page tables and no random base (Documentation/arch/x86/x86_64/mm.rst).
REGIONS = (
    (range(0, 1 << 47), "user"),
    (range(0xFFFF888000000000, 0xFFFFC88000000000), "direct map"),
    (range(0xFFFFC90000000000, 0xFFFFE90000000000), "vmalloc, stacks"),
    (range(0xFFFFEA0000000000, 0xFFFFEB0000000000), "struct page"),
    (range(0xFFFFFE0000000000, 0xFFFFFE8000000000), "CPU entry area"),
)


class Symbols:
    """The names of a kernel's addresses: of code and data of its image, of per-CPU areas, and else of the region."""

    def __init__(self, system_map: str, percpu: Sequence[int] = ()) -> None:
        """`system_map`: lines of System.map or `nm`; `percpu`: Counts.percpu. Raises Malformed without a kernel in it."""
        found: dict[int, str] = {}
        at: dict[str, int] = {}
        for line in system_map.splitlines():
            words = line.split()
            try:
                address, name = int(words[0], 16), words[2]
            except (IndexError, ValueError):
                continue
            at[name] = address
            # Of several names the shortest is what people know (jiffies, not jiffies_64); the linker's have an underscore.
            found[address] = min(found.get(address, name), name, key=lambda each: (each[0] == "_", len(each), each))
        if not {"_text", "_end"} <= at.keys():
            raise Malformed(f"no kernel's symbols: {system_map[:100]!r}")
        self.at = at
        self._addresses = sorted(found)
        self._names = [found[address] for address in self._addresses]
        self._image = range(at["_text"], at["_end"])
        start = at.get("__per_cpu_start", 0)
        self._percpu_from = start
        length = at.get("__per_cpu_end", start) - start
        self._percpu = [range((offset + start) % 2**64, (offset + start) % 2**64 + length) for offset in percpu]

    def _below(self, address: int) -> str:
        return self._names[bisect.bisect_right(self._addresses, address) - 1]

    def name(self, address: int) -> str:
        """The symbol at or below it, without an offset; `NAME of CPU n` of a per-CPU area; or the region."""
        if address in self._image:
            return self._below(address)
        for cpu, area in enumerate(self._percpu):
            if address in area:
                return f"{self._below(address - area.start + self._percpu_from)} of CPU {cpu}"
        return next((name for region, name in REGIONS if address in region), f"{address:#x}")


# --- pages -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Touch:
    """Who waits for what of a page: vCPUs of a host, in a function, for a symbol."""

    host: int
    kind: str
    function: str
    symbol: str


@dataclasses.dataclass(frozen=True)
class Page:
    """One page, and what was waited for in it."""

    gfn: int
    touches: dict[Touch, int]

    @property
    def faults(self) -> int:
        return sum(self.touches.values())

    def of_host(self, host: int) -> dict[str, int]:
        """Faults of a host, by KINDS."""
        return {
            kind: sum(n for touch, n in self.touches.items() if (touch.host, touch.kind) == (host, kind)) for kind in KINDS
        }

    def by_symbol(self) -> dict[str, int]:
        """Faults by what was touched, most first."""
        found: collections.Counter[str] = collections.Counter()
        for touch, count in self.touches.items():
            found[touch.symbol] += count
        return dict(found.most_common())

    def by_touch(self) -> list[tuple[Touch, int]]:
        """Who touches it, most first."""
        return sorted(self.touches.items(), key=lambda item: (-item[1], dataclasses.astuple(item[0])))


def pages_of(counts: Counts, names: Symbols) -> list[Page]:
    """All pages that were waited for, most first."""
    pages: dict[int, collections.Counter[Touch]] = collections.defaultdict(collections.Counter)
    for row in counts.rows:
        pages[row.gfn][Touch(row.host, row.kind, names.name(row.pc), names.name(row.va))] += row.count
    found = [Page(gfn, dict(touches)) for gfn, touches in pages.items()]
    return sorted(found, key=lambda page: (-page.faults, page.gfn))
