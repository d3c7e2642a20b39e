# SPDX-License-Identifier: GPL-2.0
"""``make check``: style, types and static analysis, each with the tool its language or its tree uses.

Every check runs, also after one has failed; the last line counts them. ``python3 -m lab.pipeline.check NAME...`` runs some.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import arrows, bindings, sources, trees
from .build import JOBS, OBJECTS, UAPI
from .paths import REPO, tracked
from .progress import Progress

HOOK_LINES = 15  # CONTRIBUTING.md: a longer hook is a sign that logic leaked out of the overlay
PYTHON = ("lab", "benchmarks", "tests", "toolstack")
# BIT_MACRO: uapi headers have no BIT(). CAMELCASE: names that upstream gave. MACRO_ARG_REUSE: every iterator does.
CHECKPATCH_IGNORED = "FILE_PATH_CHANGES,SPDX_LICENSE_TAG,BIT_MACRO,CAMELCASE,MACRO_ARG_REUSE"
NO_COMMENTS = {"series", "passwd", "group", "shadow"}  # formats in which a licence line would be an entry
C_LINE = 80  # Xen's CODING_STYLE and the GNU coding standards

GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
# Which licence a file has to say, by the longest of these folders that it is in. A file that goes into an upstream tree has
# the licence of its neighbours there. A hook has that of the files that it changes.
LICENCES = {
    "": ("GPL-2.0", "GPL-2.0-only"),
    "lab/emulator": ("GPL-2.0-or-later",),
    "libgomp-patch": (GCC,),
    "linux-guest/overlay/include/uapi": ("GPL-2.0 WITH Linux-syscall-note",),
    "tests/unit/libgomp": (GCC,),
    "toolstack/overlay": ("GPL-2.0-only",),
    "toolstack/overlay/tools": ("LGPL-2.1-only",),
    "toolstack/overlay/tools/tests": ("GPL-2.0-only",),
    "xen/overlay": ("GPL-2.0-only",),
    "xen/overlay/tools": ("LGPL-2.1-only",),
    "xen/overlay/tools/tests": ("GPL-2.0-only",),
    "xen/overlay/xen/include/public": ("MIT",),
}


def command(words: Sequence[str | Path]) -> list[str]:
    """Run; the lines of what it found, or nothing if it was satisfied."""
    done = subprocess.run([str(w) for w in words], cwd=REPO, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines() or [f"exit code {done.returncode}"] if done.returncode else []


def check_ruff() -> list[str]:
    return command(["ruff", "check", "--quiet", *existing(PYTHON)])


def check_mypy() -> list[str]:
    return command(["mypy", "--strict", "--no-error-summary", *existing(PYTHON)])


def existing(names: Sequence[str]) -> list[str]:
    return [name for name in names if any(tracked(f"{name}/*.py", f"{name}/**/*.py"))]


def check_shellcheck() -> list[str]:
    scripts = [p for p in tracked() if is_shell(p) and "overlay" not in p.parts]
    return command(["shellcheck", "-x", *scripts])


def is_shell(path: Path) -> bool:
    if path.suffix == ".sh":
        return True
    with open(path, "rb") as file:
        return bool(re.match(rb"#! ?/(usr/)?bin/(env )?(ba|da)?sh\b", file.readline(80)))


def check_spdx() -> list[str]:
    """Each file says the licence of its folder in its first lines (Markdown, data, empty files are documents, not code).

    But for the licences' own texts.
    """
    wrong = []
    for path in tracked():
        if path.suffix in {".md", ".json", ".png", ".svg"} or path.name in NO_COMMENTS or not path.stat().st_size:
            continue
        if path.parent == REPO / "LICENSES":
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if path.suffix != ".patch":
            text = "\n".join(text.splitlines()[:4])
        wrong += wrong_licence(path.relative_to(REPO), text)
    return wrong


def wrong_licence(name: Path, head: str) -> list[str]:
    """What is wrong with the licence that file ``name`` says in ``head`` (of a hook: in its whole text)."""
    found = re.search(r"SPDX-License-Identifier: *(.*?) *(?:\*/|-->|$)", head, re.M)
    if not found:
        return [f"{name}: no SPDX line"]
    places = [name]
    if name.suffix == ".patch" and name.parent.name == "hooks":
        places = [name.parents[1] / "overlay" / changed for changed in trees.changed_files(head)]
    for place in places:
        allowed = folder_licences(place)
        if found[1] not in allowed:
            return [f"{name}: the licence is {found[1]}, and in {place.parent} it is {' or '.join(allowed)}"]
    return []


def folder_licences(name: Path) -> tuple[str, ...]:
    return LICENCES[next(str(f) for f in (*name.parents[:-1], "") if str(f) in LICENCES)]


def check_hooks() -> list[str]:
    """Each hook is listed, says its subject and its licence, and is small."""
    wrong = []
    for folder in {p.parent for p in tracked("*/hooks/*.patch")}:
        listed = {hook.name for hook in trees.Part(folder.parent).hooks}
        for patch in sorted(folder.glob("*.patch")):
            text, name = patch.read_text(encoding="utf-8"), patch.relative_to(REPO)
            added = len(re.findall(r"^\+(?!\+\+ )", text, re.M))
            if patch.name not in listed:
                wrong.append(f"{name}: not in hooks/series")
            if not re.search(r"^Subject: .+: .+", text, re.M):
                wrong.append(f"{name}: no 'Subject: area: what' line")
            if "SPDX-License-Identifier:" not in text:
                wrong.append(f"{name}: no SPDX line")
            if added > HOOK_LINES and "Long-hook:" not in text:
                wrong.append(
                    f"{name}: adds {added} lines, {HOOK_LINES} at most (a header line 'Long-hook: why' allows more)"
                )
    return wrong


def check_golang() -> list[str]:
    """libxl's golang bindings are what its IDL generates."""
    archive = sources.local("xen")
    if archive is None:
        return ["the source of Xen is not in the cache; run 'make setup'"]
    with trees.prepared("xen", archive, Progress(0)) as tree:
        return [
            f"{name} is not what libxl_types.idl generates; 'python3 -m lab.pipeline.bindings' renews the hook"
            for name in bindings.stale(tree)
        ]


def linux_files() -> list[Path]:
    return [p for p in tracked("linux-guest/overlay/*") if p.suffix in {".c", ".h"}]


def check_checkpatch() -> list[str]:
    """Linux's own style checker over the files of the overlay."""
    archive = sources.local("linux")
    if archive is None:
        return ["the source of Linux is not in the cache; run 'make setup'"]
    with trees.prepared("linux", archive, Progress(0)) as tree:
        return command(
            [
                "perl",
                tree / "scripts/checkpatch.pl",
                "--no-tree",
                "--strict",
                "--terse",
                "--no-summary",
                "--quiet",
                "--ignore",
                CHECKPATCH_IGNORED,
                "-f",
                *linux_files(),
            ]
        )


def check_sparse() -> list[str]:
    """sparse over the C files of the Linux overlay, with the flags of the kernel build."""
    archive = sources.local("linux")
    objects = OBJECTS / "linux"
    if archive is None or not (objects / ".config").is_file():
        return ["Linux has not been built; run 'make build STEPS=linux'"]
    overlay = REPO / "linux-guest/overlay"
    targets = [str(p.relative_to(overlay).with_suffix(".o")) for p in linux_files() if p.suffix == ".c"]
    with trees.prepared("linux", archive, Progress(0)) as tree:
        for target in targets:
            (objects / target).unlink(missing_ok=True)
        done = subprocess.run(
            [
                "make",
                "-C",
                str(tree),
                f"O={objects}",
                f"-j{JOBS}",
                "C=1",
                "CF=-Wsparse-error",
                "CC=ccache gcc",
                "HOSTCC=ccache gcc",
                "KBUILD_BUILD_USER=xenuma",
                "KBUILD_BUILD_HOST=lab",
                *targets,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    names = tuple(t[:-2] for t in targets)
    found = [
        line
        for line in done.stderr.splitlines()
        if re.search(r": (warning|error):", line) and any(n in line for n in names)
    ]
    return found or (done.stderr.splitlines()[-10:] if done.returncode else [])


def check_c_style() -> list[str]:
    """What Xen's CODING_STYLE and the GNU coding standards ask for and no upstream tool of theirs checks here."""
    wrong = []
    for path in tracked("xen/overlay/*", "toolstack/overlay/*", "libgomp-patch/overlay/*"):
        if path.suffix not in {".c", ".h"}:
            continue
        gnu = "libgomp-patch" in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{path.relative_to(REPO)}:{number}"
            if line.rstrip() != line:
                wrong.append(f"{where}: white space at the end of the line")
            if "\t" in line and not gnu:
                wrong.append(f"{where}: a tab; Xen indents with spaces")
            if len(line.expandtabs(8)) > C_LINE:
                wrong.append(f"{where}: {len(line.expandtabs(8))} columns, {C_LINE} at most")
    return wrong


def check_headers() -> list[str]:
    """The public headers compile alone, in C and in C++."""
    found = []
    for header in sorted(UAPI.rglob("*.h")):
        for compiler, language in (("gcc", "c"), ("g++", "c++")):
            found += command(
                [compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{UAPI}", "-x", language, header]
            )
    return found


def check_arrows() -> list[str]:
    """No file needs itself by way of others."""
    return arrows.complaints(arrows.houses())


def check_collection() -> list[str]:
    """Every test can be collected, all folders in one run, as ``make test`` does it."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider"],
        cwd=REPO,
        env={**os.environ, "XENUMA_SOAK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.returncode:
        return []
    _, mark, errors = done.stdout.partition(" ERRORS ")
    return (errors if mark else done.stdout + done.stderr).splitlines()[-40:]


CHECKS: dict[str, Callable[[], list[str]]] = {
    "ruff": check_ruff,
    "mypy": check_mypy,
    "shellcheck": check_shellcheck,
    "spdx": check_spdx,
    "arrows": check_arrows,
    "hooks": check_hooks,
    "c-style": check_c_style,
    "headers": check_headers,
    "golang": check_golang,
    "checkpatch": check_checkpatch,
    "sparse": check_sparse,
    "collection": check_collection,
}


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(f"usage: python3 -m lab.pipeline.check [CHECK...]\nchecks: {', '.join(CHECKS)}; all if none is named")
        return 0
    names = sys.argv[1:] or list(CHECKS)
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        print(f"unknown check {', '.join(unknown)}; checks: {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names:
        found = CHECKS[name]()
        failed += bool(found)
        print(f"{name}: " + (f"{len(found)} lines" if found else "clean"), flush=True)
        for line in found[:60]:
            print(f"    {line}")
        if len(found) > 60:
            print(f"    ... {len(found) - 60} more")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
