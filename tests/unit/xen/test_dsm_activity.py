# SPDX-License-Identifier: GPL-2.0-only
"""What a slice says of whether a vCPU is up in it, as test_dsm_hypervisor.py: cases of dsm_activity_test.c, and mutants.

And guests of two slices at random, with a daemon that ends them: dsm_activity_guest.c.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache, partial
from pathlib import Path

import pytest

from tests.unit.left_to_soak import rest_in_soak
from tests.unit.xen.case_programs import assert_holds, names
from tests.unit.xen.test_dsm_hypervisor import (
    ACTIVITIES,
    COMMANDS,
    FAKE,
    HERE,
    SOURCE,
    VCPUS,
    assert_noticed,
    build,
    gcc,
)

CASES = "dsm_activity_test.c"
_scratch = tempfile.TemporaryDirectory(prefix="dsm_activity.")


@cache
def program() -> Path:
    return build(Path(_scratch.name) / "dsm_activity_test", cases=CASES)


@pytest.mark.parametrize("name", names(program))
def test_case(name: str) -> None:
    assert_holds(program(), name)


# Of the file: what is replaced, by what, and the case that fails then.
MUTANTS = {
    "one slice lives on": (
        ACTIVITIES,
        "    if ( !dsm->spread )\n        return false;\n",
        "",
        "the last vCPU of slice 0",
    ),
    "Xen ends it": (
        ACTIVITIES,
        "    return true;\n}\n\nvoid dsm_sent",
        "    return !put;\n}\n\nvoid dsm_sent",
        "the last vCPU of slice 0",
    ),
    "the first one that goes down": (
        ACTIVITIES,
        "dsm->active && !any_up(d);",
        "dsm->active;",
        "the last vCPU of slice 0",
    ),
    "tells it each time": (ACTIVITIES, "dsm->active && !any_up(d);", "!any_up(d);", "the last vCPU of slice 0"),
    "without the domain's lock": (
        ACTIVITIES,
        "    domain_lock(d);\n    spin_lock(&dsm->lock);\n    put =",
        "    spin_lock(&dsm->lock);\n    domain_lock(d);\n    put =",
        "the last vCPU of slice 0",
    ),
    "tells nobody": (
        ACTIVITIES,
        "    if ( put )\n        dsm_notify(d);\n\n    return true;",
        "    return true;",
        "the last vCPU of slice 0",
    ),
    "tells nobody of a start": (
        ACTIVITIES,
        "    if ( put )\n        dsm_notify(d);\n}",
        "}",
        "a vCPU starts and ends",
    ),
    "a SIPI that waits": (
        ACTIVITIES,
        "              ACCESS_ONCE(vcpu_vlapic(v)->init_sipi.icr)) )",
        "              false) )",
        "a SIPI on its way",
    ),
    "ghosts that are up": (
        ACTIVITIES,
        "if ( !dsm_elsewhere(d->arch.dsm, v->vcpu_id) &&",
        "if (",
        "ghosts are down",
    ),
    "before what was sent": (ACTIVITIES, "owes(d) || ", "", "activity and a full ring"),
    "forgets what the ring has no room for": (
        ACTIVITIES,
        "    if ( dsm->active_unsent )\n        dsm->stats",
        "    dsm->active_unsent = false;\n    if ( 0 )\n        dsm->stats",
        "activity and a full ring",
    ),
    "flushed first": (
        SOURCE,
        "    put |= dsm_flush_events(d, all);\n    put |= dsm_flush_activity(d, all);\n",
        "    put |= dsm_flush_activity(d, all);\n    put |= dsm_flush_events(d, all);\n",
        "activity and a full ring",
    ),
    "flushed by nobody": (SOURCE, "    put |= dsm_flush_activity(d, all);\n", "", "activity and a full ring"),
    "flushed again": (
        ACTIVITIES,
        "!dsm->active_unsent && !(all && dsm->spread)",
        "!dsm->spread",
        "activity and a full ring",
    ),
    "for one daemon only": (ACTIVITIES, "(all && dsm->spread)", "false", "activity for another daemon"),
    "of one slice": (ACTIVITIES, "(all && dsm->spread)", "all", "the last vCPU of slice 0"),
    "slice 0 has not begun": (SOURCE, "    dsm->active = !enable->slice;\n", "", "activity for another daemon"),
    "all slices have begun": (
        SOURCE,
        "dsm->active = !enable->slice;",
        "dsm->active = true;",
        "activity for another daemon",
    ),
    "another number": (ACTIVITIES, "    dsm->sends++;\n", "", "a vCPU starts and ends"),
    "numbers of starts": (
        ACTIVITIES,
        "        put = !was || !dsm->active;",
        "        put = was != dsm->active;",
        "a vCPU starts and ends",
    ),
    "never starts": (
        ACTIVITIES,
        "        dsm->active = any_up(d);",
        "        dsm->active = was;",
        "a vCPU starts and ends",
    ),
    "counted before it is done": (
        VCPUS,
        "    if ( event->flags & XEN_DSM_EVENT_INIT )\n        vlapic_init_sipi_one(v, APIC_DM_INIT | APIC_INT_ASSERT);",
        "    dsm_sent(d);\n    if ( event->flags & XEN_DSM_EVENT_INIT )\n"
        "        vlapic_init_sipi_one(v, APIC_DM_INIT | APIC_INT_ASSERT);",
        "a vCPU starts and ends",
    ),
    "not counted": (VCPUS, "    dsm_sent(d);\n", "", "a vCPU starts and ends"),
    "told before PLACE": (
        ACTIVITIES,
        "    if ( dsm->spread && !dsm->dead )",
        "    if ( !dsm->dead )",
        "activity before PLACE",
    ),
    "told by the dead": (
        ACTIVITIES,
        "    if ( dsm->spread && !dsm->dead )",
        "    if ( dsm->spread )",
        "activity at the end",
    ),
    "the dead go down": (ACTIVITIES, "    put = !dsm->dead && ", "    put = ", "activity at the end"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str) -> None:
    of, *change = MUTANTS[mutant]
    old, new, case = change
    assert_noticed(of, (old, new, case), partial(build, of=of, cases=CASES))


GUEST = HERE / "dsm_activity_guest.c"
SEEDS = range(1, 9)
STEPS = 200_000


def build_guest(folder: Path, of: Path | None = None, source: Path | None = None) -> list[Path]:
    """The program and its two libraries, with `source` in the place of the file `of`."""
    files = [source if source and file == of else file for file in COMMANDS]
    built = [folder / name for name in ("guest", "slice0.so", "slice1.so")]
    # The same file loaded twice would be one slice.
    gcc("-shared", "-fPIC", "-o", built[1], *files, FAKE / "fake_dsm.c", HERE / "dsm_activity_slice.c", checked=False)
    built[2].write_bytes(built[1].read_bytes())
    gcc("-I", HERE, "-o", built[0], source if source and of == GUEST else GUEST, checked=False)
    return built


@cache
def guest() -> list[Path]:
    return build_guest(Path(_scratch.name))


def run_guest(built: list[Path], seed: int) -> subprocess.CompletedProcess[str]:
    """Exit status 0: the daemon ended what was to be ended, and nothing else."""
    words = [*map(str, built), str(seed), str(STEPS)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_guests_end_when_all_vcpus_are_down(seed: int) -> None:
    done = run_guest(guest(), seed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > STEPS / 1000, "hardly a guest has ended"


# Those of MUTANTS that guests notice; and a daemon that does not compare numbers.
GUEST_MUTANTS = {
    name: MUTANTS[name][:3]
    for name in (
        "the first one that goes down",
        "a SIPI that waits",
        "before what was sent",
        "forgets what the ring has no room for",
        "flushed by nobody",
        "for one daemon only",
        "numbers of starts",
        "not counted",
    )
} | {"what was true once": (GUEST, " || knows[k].heard_sends != knows[k].sends", "")}


# All but the last one are noticed by cases, too.
SHOWN = ("the first one that goes down", "flushed by nobody", "what was true once")


@pytest.mark.parametrize("mutant", rest_in_soak(GUEST_MUTANTS, *SHOWN))
def test_guests_notice_mutant(mutant: str, tmp_path: Path) -> None:
    of, old, new = GUEST_MUTANTS[mutant]
    text = of.read_text()
    assert text.count(old) == 1, f"{of.name} has changed: adapt the mutant"
    source = tmp_path / "mutant.c"
    source.write_text(text.replace(old, new))
    built = build_guest(tmp_path, of, source)
    assert any(run_guest(built, seed).returncode for seed in SEEDS), "all guests ended as they should"
