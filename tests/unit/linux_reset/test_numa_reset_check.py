# SPDX-License-Identifier: GPL-2.0
"""Arguments and windows of numa_reset(2): mm/numa_reset_check.h, compiled in user space.

Each case of numa_reset_check_test.c is a test here. The mutants show that the cases notice when a rule is wrong. The runner
of the guest's self tests is tested with made-up consoles, so that it cannot take a broken run for a good one.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.guest import run_numa_reset as guest

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "linux-guest" / "overlay"
HEADER = OVERLAY / "mm" / "numa_reset_check.h"

_scratch = tempfile.TemporaryDirectory(prefix="numa_reset_check.")


def build(header: str, name: str, *options: str) -> Path:
    """Compile the cases with this text of the header."""
    folder = Path(_scratch.name) / name
    folder.mkdir()
    (folder / "numa_reset_check.h").write_text(header)
    program = folder / "numa_reset_check_test"
    subprocess.run(
        [
            "gcc",
            "-std=gnu11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-missing-field-initializers",
            *options,
            "-I",
            folder,
            "-idirafter",
            OVERLAY / "include" / "uapi",
            "-o",
            program,
            HERE / "numa_reset_check_test.c",
        ],
        check=True,
    )
    return program


@cache
def original() -> Path:
    return build(HEADER.read_text(), "original", "-fsanitize=undefined", "-fno-sanitize-recover=all")


def run(program: Path, case: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, case], capture_output=True, text=True, timeout=60, check=False)


def cases() -> list[str]:
    """The names; when they do not compile, one that fails with the reason, not the whole collection."""
    try:
        return run(original(), "--list").stdout.split()
    except subprocess.CalledProcessError:
        return ["compiles"]


@pytest.mark.parametrize("case", cases())
def test_case(case: str) -> None:
    result = run(original(), case)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("any-flag", "if (flags & ~NRST_FLAGS)", "if (0)"),
        ("cancel-with-others", "return flags == NRST_CANCEL ? 0 : -EINVAL;", "return 0;"),
        (
            "follow-alone",
            "flags & (NRST_TOUCH | NRST_POLICY) ? 0",
            "flags & (NRST_TOUCH | NRST_POLICY | NRST_FOLLOW) ? 0",
        ),
        ("unaligned-length", "(start | len) & in_page", "start & in_page"),
        ("wrapping-range", "start >= task_size || len > task_size - start", "start + len > task_size"),
        ("start-without-length", "return start ? -EINVAL : 0;", "return 0;"),
        ("granule-too-small", "shift < NRST_GRANULE_MIN ||", "0 ||"),
        ("granule-too-large", "shift > NRST_GRANULE_MAX", "shift > NRST_GRANULE_MAX + 1"),
        ("bits-without-set", "return maxnode ? -EINVAL : 0;", "return 0;"),
        ("endless-set", "!maxnode || maxnode > NRST_MAXNODE", "!maxnode"),
        ("useless-set", "return flags & (NRST_TOUCH | NRST_FOLLOW) ? 0 : -EINVAL;", "return 0;"),
        ("window-before-mapping", "if (window.start < vm_start)", "if (0)"),
        ("window-behind-mapping", "vm_end - window.start > size ? window.start + size : vm_end", "window.start + size"),
        ("window-not-aligned", "addr & ~(size - 1)", "addr"),
    ],
)
def test_mutant_is_noticed(name: str, old: str, new: str) -> None:
    text = HEADER.read_text()
    assert text.count(old) == 1, f"the header has changed: {old!r}"
    program = build(text.replace(old, new), name, "-Wno-unused-parameter")
    assert any(run(program, case).returncode for case in cases())


GOOD = """booting
@begin one
ok 1 - a (seen 3)
# remark
ok 2 - b
1..2
@end one 0
@done
""".splitlines()


def test_console_of_a_good_run() -> None:
    said = guest.parse(GOOD)
    assert said.done
    assert not said.complaints
    assert said.programs["one"].results == [("a (seen 3)", True), ("b", True)]
    assert said.programs["one"].problem() == ""


@pytest.mark.parametrize(
    ("why", "old", "new"),
    [
        ("a result is missing", "ok 2 - b", "oops"),
        ("no plan", "1..2", "1.."),
        ("killed", "@end one 0", "@end one 139"),
        ("hangs", "@end one 0", ""),
        ("failure with status 0", "ok 2 - b", "not ok 2 - b"),
        ("status 1 without a failure", "@end one 0", "@end one 1"),
    ],
)
def test_console_of_a_bad_run(why: str, old: str, new: str) -> None:
    said = guest.parse([new if line == old else line for line in GOOD])
    assert said.programs["one"].problem(), why


def test_complaints_of_the_kernel_are_noticed() -> None:
    """Which there are: tests/unit/lab/test_complaints.py."""
    lines = ["BUG: Bad rss-counter state", "[    1.0] WARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2"]
    assert guest.parse([lines[0], *GOOD, lines[1]]).complaints == lines


def test_initramfs_is_an_archive_that_cpio_reads(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in ["init", *(f"tests/{name}" for name in guest.program_names())]:
        (tmp_path / name).write_bytes(name.encode() * 3)
    guest.initramfs(tmp_path, tmp_path / "initramfs")
    listing = subprocess.run(
        f"gzip -dc {tmp_path / 'initramfs'} | cpio -tv", shell=True, capture_output=True, text=True, check=True
    ).stdout
    assert "tests/granule" in listing
    assert any(line.startswith("crw") and line.endswith("dev/console") for line in listing.splitlines())
