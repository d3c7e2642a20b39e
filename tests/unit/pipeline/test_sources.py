# SPDX-License-Identifier: GPL-2.0
"""Choosing an upstream archive from pins and index."""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from pathlib import Path

import pytest

from lab.pipeline import sources
from lab.pipeline.progress import Progress, StepFailed

DIGEST = "a" * 64


def entry(version: str, file: str, digest: str = DIGEST) -> str:
    return (
        f"Package: xen\nVersion: {version}\nDirectory: pool/main/x/xen\nChecksums-Sha256:\n"
        f" {digest} 4096 {file}\n {'b' * 64} 10 {file}.asc\n {'c' * 64} 20 xen_{version}.dsc\n"
    )


def index_of(*stanzas: str) -> list[sources.IndexEntry]:
    return list(sources.parse_showsrc("\n\n".join(stanzas)))


def test_every_pin_is_complete() -> None:
    pins = tomllib.loads(sources.PINS.read_text(encoding="utf-8"))
    assert set(pins) == {"xen", "linux", "gcc", "qemu"}
    for pin in pins.values():
        assert pin["package"] and pin["series"] and pin["candidates"]
        assert all(len(c["sha256"]) == 64 and ".orig.tar." in c["file"] for c in pin["candidates"])


def test_index_is_parsed() -> None:
    (found,) = index_of(entry("4.20.3-1", "xen_4.20.3.orig.tar.xz"))
    assert (found.version, found.folder) == ("4.20.3-1", "pool/main/x/xen")
    assert found.files["xen_4.20.3.orig.tar.xz"] == DIGEST


def test_pinned_file_needs_the_pinned_checksum() -> None:
    pin = tomllib.loads(sources.PINS.read_text(encoding="utf-8"))["xen"]["candidates"][0]
    listed = entry("4.20.3+127-1", pin["file"], pin["sha256"]).replace("pool/main", "pool/elsewhere")
    right = sources.candidates("xen", index_of(listed))
    assert right[0].folders[0] == "pool/elsewhere/x/xen"
    wrong = sources.candidates("xen", index_of(listed.replace(pin["sha256"], DIGEST)))
    assert "pool/elsewhere/x/xen" not in wrong[0].folders
    assert wrong[0].sha256 == pin["sha256"]


def test_newest_of_the_series_stands_in_and_other_series_do_not() -> None:
    found = sources.candidates(
        "xen",
        index_of(
            entry("4.20.9-1", "xen_4.20.9.orig.tar.xz"),
            entry("4.20.10-1", "xen_4.20.10.orig.tar.xz"),
            entry("4.21.0-1", "xen_4.21.0.orig.tar.xz"),
        ),
    )
    assert [c.file for c in found if not c.pinned] == ["xen_4.20.10.orig.tar.xz", "xen_4.20.9.orig.tar.xz"]


def test_pinned_files_are_asked_for_though_the_index_has_gone_on() -> None:
    """The archive keeps a file for a while, and lists newer ones that a mirror does not have yet."""
    found = sources.candidates("xen", index_of(entry("4.20.99-1", "xen_4.20.99.orig.tar.xz")))
    assert [c.pinned for c in found] == [True] * (len(found) - 1) + [False]
    assert found[0].folders == ("pool/main/x/xen", "pool/updates/main/x/xen")
    assert found[-1].folders == ("pool/main/x/xen",)
    for other in ("gcc", "linux", "qemu"):
        assert all(c.pinned and c.folders for c in sources.candidates(other, []))


@pytest.mark.parametrize(("package", "start"), [("xen", "x"), ("libev", "libe"), ("gcc-14", "g")])
def test_folders_of_the_pool(package: str, start: str) -> None:
    assert sources.usual_folders(package)[0] == f"pool/main/{start}/{package}"


@pytest.mark.parametrize(("content", "good"), [(b"the archive", True), (b"something else", False), (b"", False)])
def test_what_was_fetched_is_checked_against_the_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, good: bool
) -> None:
    """Even if the downloader is content: each mirror and folder is tried, and nothing wrong is left in the cache."""
    pin = tmp_path / "pins.toml"
    digest = hashlib.sha256(b"the archive").hexdigest()
    pin.write_text(f'[xen]\npackage="xen"\nseries="4"\ncandidates=[{{file="x.orig.tar.xz",sha256="{digest}"}}]\n')
    tried: list[str] = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if words[0] == "apt-cache":
            return subprocess.CompletedProcess(words, 0, entry("4.1-1", "x.orig.tar.xz", digest), "")
        assert words[-1] == f"SHA256:{digest}"
        tried.append(words[-3])
        Path(words[-2]).write_bytes(content)
        return subprocess.CompletedProcess(words, 0, "", "")

    (tmp_path / "sources").mkdir()
    monkeypatch.setattr(sources, "PINS", pin)
    monkeypatch.setattr(sources, "SOURCES", tmp_path / "sources")
    monkeypatch.setattr(sources, "CACHE", tmp_path)
    monkeypatch.setattr(sources, "mirrors", lambda: ["http://a", "http://b"])
    monkeypatch.setattr(subprocess, "run", run)
    if good:
        assert sources.fetch("xen", Progress(1)).read_bytes() == content
        assert tried == ["http://a/pool/main/x/xen/x.orig.tar.xz"]
    else:
        with pytest.raises(StepFailed, match=r"http://b/pool/main/x/xen/x\.orig\.tar\.xz: checksum differs"):
            sources.fetch("xen", Progress(1))
        assert len(tried) == 4 and not list((tmp_path / "sources").iterdir())
