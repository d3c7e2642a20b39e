# SPDX-License-Identifier: GPL-2.0
"""dsm.toml(5) names every key that config.cc knows, with the range and the default that it has there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = (ROOT / "dsm/daemon/config.cc").read_text(encoding="utf-8")
HEADER = (ROOT / "dsm/transport/transport.h").read_text(encoding="utf-8")
MANUAL = (ROOT / "docs/man/dsm.toml.5").read_text(encoding="utf-8")

DEFINED = {name: int(value) for name, value in re.findall(r"#define (DSM_\w+)\s+(\d+)\b", HEADER)}


def number(text: str) -> int:
    """A constant of the source."""
    left, shift, right = text.partition("<<")
    if shift:
        return int(left) << int(right)
    return DEFINED[text] if text in DEFINED else int(text)


def known() -> dict[str, list[str]]:
    """The keys of each table, "" for those before the first."""
    found = re.findall(r'Table \w+\([^;{]*?"(\w*)",\s*\{([^}]*)\}\s*\)', SOURCE)
    return {name: re.findall(r'"(\w+)"', keys) for name, keys in found}


def test_every_key_is_described() -> None:
    tables = known()
    assert set(tables) == {"", "tls", "limits", "host"}
    for name, keys in tables.items():
        for key in keys:
            if key in tables:
                assert f"[{key}]" in MANUAL
            else:
                assert re.search(rf"^(?:\.B {key}|{key}\t.*)$", MANUAL, re.M), f"{name}: no {key} in dsm.toml(5)"


def test_limits_are_those_of_the_source() -> None:
    calls = re.findall(r'number_or\("(\w+)", ([^,]+),\s*([^,]+),\s*([^)]+)\)', SOURCE)
    assert {key for key, *_ in calls} == set(known()["limits"])
    for key, default, least, most in calls:
        row = f"{key}\t{number(least)} to {number(most)}\t{number(default)}\t"
        assert row in MANUAL, f"no row '{row}' in dsm.toml(5)"


def test_the_example_is_toml_with_all_keys_that_are_required() -> None:
    text = MANUAL.split(".SH EXAMPLE\n.nf\n")[1].split("\n.fi")[0]
    text = text.replace(r"\(dq", '"')
    parsed = tomllib.loads(text)
    tables = known()
    assert set(parsed) <= set(tables[""])
    assert set(parsed["tls"]) == set(tables["tls"])
    for host in parsed["host"]:
        assert set(host) == set(tables["host"])
    assert parsed["self"] in {host["name"] for host in parsed["host"]}
