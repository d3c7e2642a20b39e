# SPDX-License-Identifier: GPL-2.0
"""Choosing an upstream archive from pins and index."""

from __future__ import annotations

import tomllib

from lab.pipeline import sources

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
    right = sources.candidates("xen", index_of(entry("4.20.3+127-1", pin["file"], pin["sha256"])))
    assert right[0].folder == "pool/main/x/xen"
    wrong = sources.candidates("xen", index_of(entry("4.20.3+127-1", pin["file"], DIGEST)))
    assert wrong[0].folder is None


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


def test_empty_index_leaves_the_pins_as_not_available() -> None:
    assert all(c.folder is None and c.pinned for c in sources.candidates("linux", []))
