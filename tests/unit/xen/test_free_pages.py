# SPDX-License-Identifier: GPL-2.0-only
"""What Xen's tools/tests/mem-range/free-pages says, and for how long it waits, on a fake host."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2] / "xen/overlay/tools/tests/mem-range/free-pages.c"
NODE0 = f"node 0: {2**32} pages free"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("free-pages") / "free-pages"
    flags = ["-std=gnu99", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror", "-fsanitize=address,undefined"]
    fake = HERE / "fake_heap"
    words: list[str | Path] = [f"-I{fake}", f'-DBALLOON="{binary.parent}"', SOURCE, fake / "host.c"]
    subprocess.run(["gcc", *flags, *words, "-o", binary], check=True)
    return binary


def run(
    program: Path, looks: str, *words: str, nodes: int = 1, moves: bool = False
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "FAKE_LOOKS": looks, "FAKE_NODES": str(nodes), **({"FAKE_MOVES": "1"} if moves else {})},
    )


@pytest.mark.parametrize(
    ("looks", "words", "lines", "status"),
    [
        pytest.param("17 18", (), ["node 2: 17 pages free"], 0, id="at once"),
        pytest.param("17/5", (), ["node 2: 17 pages free", "dying: 5"], 0, id="somebody is dying"),
        pytest.param("1 2 3 17", ("200", "60000"), ["node 2: 17 pages free"], 0, id="until the numbers rest"),
        pytest.param("17/5 17/5 17", ("200", "60000"), ["node 2: 17 pages free"], 0, id="until nobody is dying"),
        pytest.param("17/5", ("100", "300"), ["node 2: 17 pages free", "dying: 5"], 3, id="never at rest"),
        pytest.param("17", ("300", "100"), ["node 2: 17 pages free"], 3, id="too short a time"),
    ],
)
def test_what_is_free(program: Path, looks: str, words: tuple[str, ...], lines: list[str], status: int) -> None:
    begun = time.monotonic()
    done = run(program, looks, *words)
    assert (done.stdout.splitlines(), done.stderr) == ([NODE0, *lines], "")
    assert done.returncode == status
    if words:
        assert time.monotonic() - begun >= min(int(words[0]), int(words[1])) / 1000


@pytest.mark.parametrize(
    ("nodes", "kb", "lines"),
    [
        pytest.param(1, (8, 0), ["balloon: 2 pages of node 0"], id="two pages"),
        pytest.param(4, (4, 1024), ["balloon: 257 pages of node 2"], id="another node"),
        pytest.param(1, (0, 0), [], id="none"),
        pytest.param(5, (8, 0), [], id="of which node?"),
        pytest.param(0, (8, 0), [], id="of none"),
    ],
)
def test_the_balloon_of_dom0(program: Path, nodes: int, kb: tuple[int, int], lines: list[str]) -> None:
    for name, each in zip(("low_kb", "high_kb"), kb, strict=True):
        (program.parent / name).write_text(f"{each}\n", encoding="utf-8")
    try:
        done = run(program, "17/5", nodes=nodes)
        (program.parent / "low_kb").write_text("\n", encoding="utf-8")
        broken = run(program, "17", nodes=nodes)
    finally:
        for name in ("low_kb", "high_kb"):
            (program.parent / name).unlink()
    assert (done.returncode, done.stdout.splitlines()) == (0, [NODE0, "node 2: 17 pages free", *lines, "dying: 5"])
    assert broken.returncode == 1 and "low_kb: no number" in broken.stderr


def test_a_balloon_that_moves_is_no_rest(program: Path) -> None:
    low = program.parent / "low_kb"
    try:
        assert run(program, "17", "100", "400", moves=True).returncode == 3
    finally:
        low.unlink()


def test_a_hypercall_that_fails(program: Path) -> None:
    done = run(program, "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert "list of domains: Operation not permitted" in done.stderr


@pytest.mark.parametrize("words", [("1",), ("1", "2", "3"), ("-1", "2"), ("1", "soon"), ("", "1"), ("1", "3600001")])
def test_wrong_usage(program: Path, words: tuple[str, ...]) -> None:
    done = run(program, "17", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: free-pages")
