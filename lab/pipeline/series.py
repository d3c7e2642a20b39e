# SPDX-License-Identifier: GPL-2.0
"""``make series``: overlay and hooks as ``git format-patch`` series, as they would be sent upstream: build/series/<tree>/.

Each hook becomes one patch, in the order of ``hooks/series``, with its header as the message. Overlay files go into the patch
of the hook whose header names them (lines ``Overlay: PATTERN``, relative to the upstream tree); those that no hook names come
first, as one patch for each part. The Linux series is run through the tree's checkpatch.pl; what it says and EXPLAINED has not
is printed, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from . import sources, trees
from .build import archive
from .cache import files_below
from .paths import BUILD
from .progress import Progress, StepFailed

AUTHOR = ("-c", "user.name=Xenuma", "-c", "user.email=xenuma@invalid", "-c", "core.autocrlf=false")
# EMBEDDED_FILENAME: mm/Kconfig has to name mm/Kconfig.numa_reset. MACRO_ARG_REUSE: as in check.py.
IGNORED = "FILE_PATH_CHANGES,MISSING_SIGN_OFF,COMMIT_LOG_LONG_LINE,NO_AUTHOR_SIGN_OFF,EMBEDDED_FILENAME,MACRO_ARG_REUSE"
EXPLAINED = {
    ("tcp-count-orphans-when-somebody-asks", "MEMORY_BARRIER"): "the comment is at the release that it pairs with",
    ("ntp-what-each-second-writes-is-on-the-page-of-ticks", "POINTER_LOCATION"): "an attribute, which it takes for a type",
}
"""What checkpatch.pl says of a patch and is so on purpose, or not so at all: the patch, the type of the complaint, why."""
UPSTREAM = {"xen": "xen", "linux": "linux", "libgomp": "gcc", "qemu": "qemu"}


def git(folder: Path, *words: str | Path, text: str | None = None) -> str:
    done = subprocess.run(
        ["git", *AUTHOR, *map(str, words)], cwd=folder, input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise StepFailed(f"git {' '.join(map(str, words))[:100]}: {done.stderr.strip()}")
    return done.stdout


def header(patch: Path) -> tuple[str, list[str]]:
    """A hook's message, for a commit, and the overlay patterns that it names."""
    text = re.split(r"^(?:--- |diff |Index: )", patch.read_text(encoding="utf-8"), maxsplit=1, flags=re.M)[0]
    patterns = re.findall(r"^Overlay: (\S+)", text, re.M)
    subject = re.search(r"^Subject: (?:\[[^]]*\] )?(.+)$", text, re.M)
    if not subject:
        raise StepFailed(f"{patch}: no Subject line")
    body = [
        line
        for line in text.splitlines()
        if not re.match(r"(Subject|From|Overlay|Long-hook|SPDX-License-Identifier|Date): |#|---$", line)
    ]
    return f"{subject[1]}\n\n" + "\n".join(body).strip() + "\n", patterns


def commit(repo: Path, message: str) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-F", "-", text=message)


def place(repo: Path, part: trees.Part, names: Sequence[str]) -> None:
    for name in names:
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(part.overlay / name, repo / name)


def make_part(repo: Path, part: trees.Part) -> None:
    overlay = [str(f.relative_to(part.overlay)) for f in files_below([part.overlay])]
    messages = {hook: header(hook) for hook in part.hooks}
    owner = {
        name: next((hook for hook, (_, patterns) in messages.items() if any(fnmatch(name, p) for p in patterns)), None)
        for name in overlay
    }
    first = [name for name in overlay if owner[name] is None]
    if first:
        place(repo, part, first)
        commit(repo, f"{part.folder.name}: add new files\n\nThe patches that follow use them.\n")
    for hook, (message, _) in messages.items():
        place(repo, part, [name for name in overlay if owner[name] == hook])
        trees.apply_hooks([hook], repo)
        commit(repo, message)


def make_series(name: str, out: Path) -> int:
    """Write the series of one tree below ``out``; the number of patches."""
    parts = trees.PARTS[name]
    with trees.prepared(name, archive(UPSTREAM[name]), Progress(0)) as tree, tempfile.TemporaryDirectory() as folder:
        repo = Path(folder)
        git(repo, "init", "-q")
        for path in sorted({path for part in parts for hook in part.hooks for path in trees.touched(hook)}):
            original = tree / ".xenuma" / "orig" / path
            if original.is_file():
                (repo / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(original, repo / path)
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "--allow-empty", "-m", f"upstream {sources.local(UPSTREAM[name])}")
        for part in parts:
            make_part(repo, part)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        upstream = git(repo, "rev-list", "--max-parents=0", "HEAD").strip()
        return len(git(repo, "format-patch", "-o", out, "--no-signature", upstream).splitlines())


def checkpatch(out: Path) -> list[str]:
    with trees.prepared("linux", archive("linux"), Progress(0)) as tree:
        done = subprocess.run(
            [
                "perl",
                str(tree / "scripts/checkpatch.pl"),
                "--no-tree",
                "--terse",
                "--show-types",
                "--no-summary",
                "--quiet",
                "--ignore",
                IGNORED,
                *map(str, sorted(out.glob("*.patch"))),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout.splitlines()


def unexplained(said: Sequence[str], explained: Mapping[tuple[str, str], str]) -> list[str]:
    """Of checkpatch's lines those that no row explains, and of the rows those that explain none."""
    lines, used = [], set()
    for line in said:
        found = re.match(r"(?:\S*/)?\d+-(\S+)\.patch:\d+: [A-Z]+:(\w+): ", line)
        if found and found.groups() in explained:
            used.add(found.groups())
        else:
            lines.append(line)
    return lines + [
        f"{patch}: {kind}: explained ({why}), and checkpatch.pl does not say it; take the row out"
        for (patch, kind), why in explained.items()
        if (patch, kind) not in used
    ]


def main(arguments: Sequence[str] = ()) -> int:
    about = "Overlay and hooks as patches: build/series."
    parser = argparse.ArgumentParser(prog="python3 -m lab.pipeline.series", description=about)
    parser.parse_args(arguments)
    try:
        for name in trees.PARTS:
            out = BUILD / "series" / name
            count = make_series(name, out)
            print(f"{name}: {count} patches in {out}", flush=True)
        complaints = unexplained(checkpatch(BUILD / "series" / "linux"), EXPLAINED)
    except StepFailed as error:
        print(f"xenuma: {error}", file=sys.stderr)
        return 1
    for line in complaints:
        print(line)
    plural = "s" * (len(complaints) != 1)
    print(f"checkpatch: {len(complaints) or 'no'} complaint{plural}; {len(EXPLAINED)} explained in series.py")
    return 1 if complaints else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
