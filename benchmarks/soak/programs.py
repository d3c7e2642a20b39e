# SPDX-License-Identifier: GPL-2.0
"""Programs that run in the guest while it is soaked: how each is started, and what it has to have said when it ends.

All print a line when their memory is there, a line with "expected" when they find something wrong, and count at the end.
"""

from __future__ import annotations

import dataclasses
import re

from benchmarks.soak import model
from benchmarks.soak.model import Program
from lab.command import Run, checked
from lab.elastic_guest import PROGRAMS
from lab.errors import Malformed
from lab.patience import wait_for

PAGES_OF_MIB = 256
READY_S = 120.0
END_S = 120.0


@dataclasses.dataclass(frozen=True)
class Kind:
    """A program: its words after its path, what it says when it is ready, and what when it found nothing wrong.

    `policy`: an option of numactl, for its memory; of one of model.MOVABLE as long as it has a node.
    """

    words: str
    ready: str
    fine: str
    policy: str = ""


# MiB that are free in the guest, less so many. And the nodes that have memory, but for the home: these are filled first, so
# that what is left is the home's, without which the guest's kernel has nothing.
ALL_BUT = "$(($(awk '/^MemFree:/ {{ print int($2 / 1024) }}' /proc/meminfo) - {mib}))"
ELASTIC = r"$(sed 's/^0-1\b/1/; s/^0-/1-/; s/^0,//' /sys/devices/system/node/has_memory)"

_ON_NODE = "preferred={node}"
_MAPPED_FINE = r'"rounds":[1-9]\d*,"wrong":0\}'
_MEMCHECK = Kind("memcheck {mib} 2", "ready", r'"checks":[1-9]\d*,"bad_pages":0\}')
KINDS = {
    "check": _MEMCHECK,
    "near": dataclasses.replace(_MEMCHECK, policy=_ON_NODE),
    "crowd": dataclasses.replace(_MEMCHECK, words=f"memcheck {ALL_BUT} 2", policy=f"preferred-many={ELASTIC}"),
    "pin": Kind("pinner {node} {pages}", "pinned", r"released, 0 wrong"),
    **{kind: Kind(f"mapped {kind} {{mib}}", "ready", _MAPPED_FINE, _ON_NODE) for kind in ("fork", "lock", "share")},
    "register": Kind("mapped register {mib}", "ready", _MAPPED_FINE),
}


class WrongProgram(Exception):
    """A program has ended by itself, or has found wrong bytes."""


def output(program: Program) -> str:
    """The file that has what it prints."""
    return f"/tmp/soak-{program.number}.out"


def command(program: Program) -> str:
    """Its command line."""
    kind = KINDS[program.kind]
    words = kind.words.format(mib=program.mib, node=program.node, pages=model.PINNED_PAGES)
    away = program.kind in model.MOVABLE and program.node is None
    policy = f"numactl --{kind.policy.format(node=program.node)} " if kind.policy and not away else ""
    return f"{policy}{PROGRAMS}/{words}"


def start(guest: Run, program: Program) -> int:
    """Start it and wait until it has its memory; its pid. Raises WrongProgram when it ends before."""
    out, ready = output(program), KINDS[program.kind].ready
    pid = int(checked(guest, f": >{out}; setsid {command(program)} >{out} 2>&1 </dev/null & echo $!", 30.0))

    def is_ready() -> bool:
        said = guest(f"cat {out}; [ -e /proc/{pid} ] || echo == ended", 30.0).out
        if ready in said:
            return True
        if "== ended" in said:
            raise WrongProgram(f"program {program.number} ({program.kind}) has not begun: {said.strip()}")
        return False

    wait_for(f"program {program.number} ({program.kind}) has its memory", READY_S, is_ready)
    if program.kind in model.MOVABLE and program.node is not None:
        there, whole = pages_on(guest, pid, program.node), program.mib * PAGES_OF_MIB
        if there < enough(program):
            raise WrongProgram(f"program {program.number} ({program.kind}): {there} of {whole} pages on node {program.node}")
    return pid


def enough(program: Program) -> int:
    """So many pages are of what it has asked for, not of its libraries alone."""
    return program.mib * PAGES_OF_MIB // 2


# Of a memfd that is mapped more than once the largest of its lines.
_COUNT_PAGES = """awk '{ n = 0; for (i = 3; i <= NF; i++) if (sub(/^N{node}=/, "", $i)) n = $i
key = $3 ~ /^file=.memfd:/ ? $3 : NR; if (n > most[key] + 0) most[key] = n }
END { for (key in most) sum += most[key]; print sum + 0 }'"""


def pages_on(guest: Run, pid: int, node: int) -> int:
    """How many pages of a node a program has mapped; what it has mapped twice, once. Raises CommandFailedError, Malformed."""
    count = _COUNT_PAGES.replace("{node}", str(node))
    said = checked(guest, f"pages=$(cat /proc/{pid}/numa_maps) && echo \"$pages\" | {count}", 30.0).strip()
    if not said.isdecimal():
        raise Malformed(f"numa_maps of {pid}: {said[:100]!r}")
    return int(said)


def look(guest: Run, running: dict[int, tuple[Program, int]]) -> list[str]:
    """What is wrong with those that should be running; one line each."""
    if not running:
        return []
    script = "".join(
        f'[ -e /proc/{pid} ] || echo "{number} has ended"; '
        f'grep -m1 expected {output(program)} | sed "s/^/{number} says /"; '
        for number, (program, pid) in sorted(running.items())
    )
    said = guest(f"{script} true", 30.0)
    if said.status != 0:
        return [f"the programs cannot be asked: {said.text.strip()}"]
    found = []
    for line in said.out.splitlines():
        number, _, what = line.partition(" ")
        kind = running[int(number)][0].kind if number.isdigit() and int(number) in running else "?"
        found.append(f"program {number} ({kind}) {what}")
    return found


def stop(guest: Run, program: Program, pid: int) -> str:
    """End it; what it counted. Raises WrongProgram if it found something wrong, or has not ended as it should."""
    out = output(program)
    checked(guest, f"kill -TERM {pid}", 30.0)
    wait_for(f"program {program.number} ends", END_S, lambda: guest(f"[ -e /proc/{pid} ]", 30.0).status != 0)
    said = checked(guest, f"cat {out}", 30.0)
    if "expected" in said or not re.search(KINDS[program.kind].fine, said):
        raise WrongProgram(f"program {program.number} ({program.kind}): {said.strip()[-500:]}")
    return said.splitlines()[-1]
