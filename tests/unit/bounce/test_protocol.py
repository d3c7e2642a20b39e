# SPDX-License-Identifier: GPL-2.0
"""The toy of the page protocol, without QEMU: protocol_test.c, with the sanitizers; and that all of lab/bounce compiles."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from lab import bounce

HERE = Path(__file__).resolve().parent


def test_protocol(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    program = tmp_path / "protocol_test"
    checking = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command: list[str | Path] = ["gcc", "-O1", "-g", *checking, f"-I{bounce.SOURCES}", HERE / "protocol_test.c", "-o", program]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    results = re.findall(r"^(not ok|ok) \d+ - (.*)$", done.stdout, re.M)
    record_property("checks", len(results))
    assert [what for good, what in results if good != "ok"] == [] and done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"1..{len(results)}\n")


def test_the_limits_are_those_of_the_header() -> None:
    text = (bounce.SOURCES / "protocol.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"^\t(BOUNCE_MAX_\w+) = ([^,]+),", text, re.M))
    assert found["BOUNCE_MAX_HOSTS"] == str(bounce.MAX_HOSTS) and found["BOUNCE_MAX_CPUS"] == str(bounce.MAX_CPUS)
    assert found["BOUNCE_MAX_PAGES"] == "1 << 22" and bounce.MAX_PAGES == 1 << 22


def test_the_plugin_and_the_guests_program_compile(tmp_path: Path) -> None:
    plugin, init = bounce.build(tmp_path)
    symbols = subprocess.run(["nm", "-D", "--defined-only", plugin], capture_output=True, text=True, check=True).stdout
    assert {line.split()[2] for line in symbols.splitlines()} >= {"qemu_plugin_install", "qemu_plugin_version"}
    # It says each word once; the plugin knows them by these bytes (magic.h).
    said = re.findall(rb"\x0f\x1f\x84\x00([\x01-\x03])\x42\x53\x0d", init.read_bytes())
    assert sorted(said) == [b"\1", b"\2", b"\3"]
