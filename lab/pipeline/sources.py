# SPDX-License-Identifier: GPL-2.0
"""Upstream source archives, by Debian source package, through the archive's signed index.

The sandbox's apt knows the index (verified by the archive's keys). A pinned file is looked up there, fetched with apt's own
downloader and checked against the pin. A mirror keeps a file for a while after the index has gone on to a newer one, and may
list one that it does not have yet: so a pinned file is asked for where such files are, listed or not. Each candidate is tried
in turn, and an error names all that were.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .paths import CACHE
from .progress import Progress, StepFailed

PINS = Path(__file__).with_name("pins.toml")
SOURCES = CACHE / "sources"


@dataclass(frozen=True)
class Candidate:
    """One file of the archive: its name, its SHA-256 (pinned or from the index), the folders of the pool where it may be."""

    file: str
    sha256: str
    folders: tuple[str, ...]
    pinned: bool


@dataclass(frozen=True)
class IndexEntry:
    version: str
    folder: str
    files: dict[str, str]  # name -> SHA-256


def parse_showsrc(text: str) -> Iterator[IndexEntry]:
    """The stanzas of ``apt-cache showsrc``."""
    for stanza in re.split(r"\n\s*\n", text):
        version = re.search(r"^Version: (\S+)", stanza, re.M)
        folder = re.search(r"^Directory: (\S+)", stanza, re.M)
        files = {name: digest for digest, name in re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+)", stanza, re.M)}
        if version and folder and files:
            yield IndexEntry(version[1], folder[1], files)


def version_order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def usual_folders(package: str) -> tuple[str, ...]:
    """Where Debian's archives have the files of a source package: the main one, and the one of security updates."""
    start = package[:4] if package.startswith("lib") else package[:1]
    return f"pool/main/{start}/{package}", f"pool/updates/main/{start}/{package}"


def candidates(name: str, index: list[IndexEntry]) -> list[Candidate]:
    """What may serve as the source ``name``: the pinned files first, then the newest of the series that the index has."""
    pin = tomllib.loads(PINS.read_text(encoding="utf-8"))[name]
    found = []
    for wanted in pin["candidates"]:
        listed = [e.folder for e in index if e.files.get(wanted["file"]) == wanted["sha256"]]
        folders = tuple(dict.fromkeys((*listed, *usual_folders(pin["package"]))))
        found.append(Candidate(wanted["file"], wanted["sha256"], folders, True))
    series = [e for e in index if e.version.startswith(pin["series"])]
    for entry in sorted(series, key=lambda e: version_order(e.version), reverse=True):
        for file, digest in entry.files.items():
            if ".orig.tar." in file and not file.endswith(".asc") and all(file != c.file for c in found):
                found.append(Candidate(file, digest, (entry.folder,), False))
    return found


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def local(name: str) -> Path | None:
    """The newest acceptable archive of ``name`` that the cache holds, if any: pinned files only need no index."""
    pin = tomllib.loads(PINS.read_text(encoding="utf-8"))[name]
    for wanted in pin["candidates"]:
        path: Path = SOURCES / str(wanted["file"])
        if path.is_file():
            return path
    chosen = SOURCES / f"{name}.chosen"
    if chosen.is_file():
        path = SOURCES / chosen.read_text(encoding="utf-8").strip()
        if path.is_file():
            return path
    return None


def mirrors() -> list[str]:
    """Base addresses of the sandbox's own apt configuration, in order."""
    found: list[str] = []
    for file in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.list"))):
        if file.is_file():
            for line in file.read_text(encoding="utf-8").splitlines():
                words = [w for w in line.split() if not w.startswith("[")]
                if len(words) > 2 and words[0] == "deb-src" and words[1].rstrip("/") not in found:
                    found.append(words[1].rstrip("/"))
    return found


def fetch(name: str, progress: Progress) -> Path:
    """Put the source archive ``name`` into the cache. Runs as root in the sandbox (apt's lists and downloader)."""
    present = local(name)
    if present:
        return present
    package = tomllib.loads(PINS.read_text(encoding="utf-8"))[name]["package"]
    shown = subprocess.run(["apt-cache", "showsrc", package], capture_output=True, text=True, check=False)
    index = list(parse_showsrc(shown.stdout))
    tried: list[str] = []
    for candidate in candidates(name, index):
        for mirror, folder in itertools.product(mirrors(), candidate.folders):
            path = SOURCES / (candidate.file + ".part")
            url = f"{mirror}/{folder}/{candidate.file}"
            got = subprocess.run(
                [
                    "/usr/lib/apt/apt-helper",
                    "-o",
                    "Acquire::Retries=2",
                    "download-file",
                    url,
                    str(path),
                    f"SHA256:{candidate.sha256}",
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            if got.returncode == 0 and sha256(path) == candidate.sha256:
                final = SOURCES / candidate.file
                path.rename(final)
                if not candidate.pinned:
                    progress.say(f"{name}: no pinned version is left; {candidate.file} stands in")
                    (SOURCES / f"{name}.chosen").write_text(candidate.file + "\n", encoding="utf-8")
                give_to_owner(final)
                return final
            path.unlink(missing_ok=True)
            reason = next((line for line in got.stderr.splitlines() if line.startswith("E:")), "checksum differs")
            tried.append(f"{url}: {reason[:150]}")
    raise StepFailed(
        f"no source archive for {name}; tried:\n  "
        + "\n  ".join(tried or ["nothing: the index lists none"])
        + "\nIs there a network? XENUMA_MIRROR names another Debian mirror."
    )


def give_to_owner(path: Path) -> None:
    """The cache belongs to the user who runs the pipeline, also what root fetched."""
    owner = CACHE.stat()
    for each in (path, SOURCES, *SOURCES.glob("*.chosen")):
        os.chown(each, owner.st_uid, owner.st_gid)


def main(arguments: Sequence[str] = ()) -> int:
    about = "Fetch the upstream sources that the cache lacks, as root in the sandbox."
    parser = argparse.ArgumentParser(prog="python3 -m lab.pipeline.sources", description=about)
    parser.parse_args(arguments)
    SOURCES.mkdir(parents=True, exist_ok=True)
    names = list(tomllib.loads(PINS.read_text(encoding="utf-8")))
    missing = [name for name in names if local(name) is None]
    if not missing:
        return 0
    progress = Progress(len(missing))
    if not list(Path("/var/lib/apt/lists").glob("*_Sources*")):
        subprocess.run(["apt-get", "-qq", "update"], check=False)
    for name in missing:
        progress.begin(name, "fetching the upstream source")
        try:
            path = fetch(name, progress)
        except StepFailed as error:
            progress.say(str(error))
            return 1
        progress.say(f"{name}: {path.name}, {path.stat().st_size >> 20} MiB, verified")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
