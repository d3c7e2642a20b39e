# SPDX-License-Identifier: GPL-2.0
"""The toolstack's pure files, compiled in user space with sanitizers; one pytest case for each TAP line.

The cases are written down in cases.txt, so that nothing is compiled before a test is about to run.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
LIST = HERE / "cases.txt"
# Another place, and only these programs, neither with the slow sanitizers nor strictly: for make mutants.
TOOLS = Path(os.environ.get("XENUMA_TOOLSTACK", HERE.parents[2] / "toolstack" / "overlay" / "tools"))
ONLY = os.environ.get("XENUMA_TOOLSTACK_PROGRAMS", "").split()

LIGHT = TOOLS / "libs/light"
FAKES = HERE / "fakes"
OF_VNODES = "affinity batch books host keys layout op order paths pause phases placement pnode settle span tell"

LIBXL = [
    *[FAKES / f"fake_{part}.c" for part in ("libxl", "json", "dsmd")],
    *[LIGHT / f"libxl_dsm{part}.c" for part in ("", "_json")],
    *[LIGHT / f"libxl_vnode{part}.c" for part in ("", *(f"_{name}" for name in OF_VNODES.split()))],
]

# The files that each program tests; the last ones need a libxl or an xl, which fakes/ pretends to be.
PROGRAMS = {
    "test_batch.c": [],  # includes xs_batch.h
    "test_keys.c": [LIGHT / "libxl_vnode_keys.c"],
    "test_kernel.c": [LIGHT / "libxl_vnode_kernel.c"],
    "test_layout.c": [LIGHT / "libxl_vnode_layout.c"],
    "test_phases.c": [LIGHT / "libxl_vnode_phases.c"],
    "test_placement.c": [LIGHT / "libxl_vnode_placement.c"],
    "test_settle.c": [LIGHT / "libxl_vnode_settle.c", LIGHT / "libxl_vnode_keys.c"],
    "test_core_dsm.c": [TOOLS / "libs/guest/xg_core_dsm.c"],
    "test_topology.c": [TOOLS / "libs/guest/xg_vnuma_topology.c"],
    "test_vnuma_spec.c": [TOOLS / "xl/xl_vnuma_spec.c"],
    "test_commands.c": [TOOLS / "xl/xl_vnode_common.c"],  # includes xl_vnode.c
    "test_list.c": [TOOLS / "xl/xl_vnode_common.c"],  # includes xl_vnode_list.c
    "test_vnuma.c": [TOOLS / "xl/xl_vnuma.c", TOOLS / "xl/xl_vnuma_spec.c"],
    "test_build.c": [
        *LIBXL,
        *[LIGHT / f"libxl_vnode_{part}.c" for part in ("build", "hosts", "kernel", "packets", "x86")],
    ],
    "test_operations.c": LIBXL,
    "test_span.c": [
        *LIBXL,
        *[LIGHT / f"libxl_vnode_{part}.c" for part in ("ask", "enable", "hosts", "kernel", "rings")],
    ],
    "test_dsm.c": LIBXL,
    "test_dsm_socket.c": [LIGHT / "libxl_dsm_socket.c"],
}

if ONLY:
    PROGRAMS = {name: sources for name, sources in PROGRAMS.items() if name in ONLY}

CFLAGS = [
    *["-std=gnu99", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Wno-missing-field-initializers"],
    *([] if ONLY else ["-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]),
]
LIBRARIES = {
    "test_dsm_socket.c": ["-Wl,--wrap=getsockopt"],
    **{f"test_{name}.c": ["-lyajl"] for name in ("list", "operations", "dsm")},
    "test_build.c": ["-lyajl", "-Wl,--wrap=access"],
    "test_span.c": ["-lyajl", "-Wl,--wrap=recv", "-Wl,--wrap=send"],
}
# libxl and xl compile without these two.
FAKES_CFLAGS = [f"-I{FAKES}", f"-I{TOOLS / 'include'}", "-Wno-sign-compare", "-Wno-unused-parameter"]
XL_CFLAGS = [f"-I{FAKES / 'xl'}", f"-I{TOOLS / 'xl'}", f"-I{LIGHT}", *FAKES_CFLAGS]
MORE_CFLAGS = {
    "test_batch.c": [f"-I{TOOLS / 'libs/store'}", *FAKES_CFLAGS],
    "test_core_dsm.c": [f"-I{FAKES / 'guest'}"],
    "test_build.c": FAKES_CFLAGS,
    "test_operations.c": FAKES_CFLAGS,
    "test_span.c": FAKES_CFLAGS,
    "test_dsm.c": FAKES_CFLAGS,
    "test_dsm_socket.c": FAKES_CFLAGS,
    "test_commands.c": XL_CFLAGS,
    "test_list.c": XL_CFLAGS,
    "test_vnuma.c": XL_CFLAGS,
}


_scratch = tempfile.TemporaryDirectory(prefix="toolstack.")


@functools.cache
def compiled(source: Path, flags: tuple[str, ...]) -> Path:
    """The object of a file; programs with the same flags share it."""
    target = Path(tempfile.mkdtemp(dir=_scratch.name)) / f"{source.stem}.o"
    subprocess.run(["gcc", *flags, "-c", "-o", target, source], check=True, timeout=300)
    return target


@functools.cache
def run(program: str) -> tuple[int, dict[str, bool], str]:
    """Compile and run a test program: exit code, result of each named case, output."""
    sources = PROGRAMS[program]
    folders = [f"-I{folder}" for folder in sorted({source.parent for source in sources})]
    flags = (*CFLAGS, *folders, f"-I{HERE}", *MORE_CFLAGS.get(program, []))
    objects = [compiled(source, flags) for source in (HERE / program, *sources)]
    binary = Path(_scratch.name) / Path(program).stem
    subprocess.run(["gcc", *flags, *objects, "-o", binary, *LIBRARIES.get(program, [])], check=True, timeout=300)
    done = subprocess.run([binary], capture_output=True, text=True, errors="replace", timeout=300, check=False)
    output = done.stdout + done.stderr
    cases = {name: not bad for bad, name in re.findall(r"^(not )?ok \d+ - (.*)$", done.stdout, re.M)}
    return done.returncode, cases, output


def listed() -> list[tuple[str, str]]:
    """The cases of cases.txt: program, name."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    cases = [(program, case) for program, _, case in (line.partition("::") for line in lines if line[:1] != "#")]
    return [(program, case) for program, case in cases if program in PROGRAMS]


@pytest.mark.parametrize(("program", "case"), listed())
def test_case(program: str, case: str) -> None:
    """One line of TAP."""
    _, cases, output = run(program)
    assert cases[case], output


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_case_is_missing(program: str) -> None:
    """cases.txt is what the programs announce; ``python3 -m tests.unit.toolstack.test_toolstack`` writes it anew."""
    assert [case for name, case in listed() if name == program] == list(run(program)[1])


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_ends_well(program: str) -> None:
    """All announced cases were run, no sanitizer complained, and the exit code agrees."""
    code, cases, output = run(program)
    plan = re.search(r"^1\.\.(\d+)$", output, re.M)
    assert plan, output
    assert int(plan[1]) == len(re.findall(r"^(?:not )?ok ", output, re.M)) > 5
    assert (code == 0) == all(cases.values()), output
    assert "Sanitizer" not in output
    assert "runtime error" not in output


if __name__ == "__main__":
    HEAD = "# SPDX-License-Identifier: GPL-2.0\n# The cases of these programs: python3 -m tests.unit.toolstack.test_toolstack\n"
    LIST.write_text(HEAD + "".join(f"{name}::{case}\n" for name in PROGRAMS for case in run(name)[1]), encoding="utf-8")
