# SPDX-License-Identifier: GPL-2.0
"""What a command line may say: the types, and the measurements that use them. Nothing is booted for what is refused."""

from __future__ import annotations

import argparse

import pytest

from benchmarks import __main__ as bench
from benchmarks import dsm, span, vsmp
from benchmarks.arguments import LARGEST, one_of, seed_of, whole


@pytest.mark.parametrize(
    ("least", "most", "text", "said"),
    [
        (1, LARGEST, "0", "want at least 1, not '0'"),
        (1, LARGEST, "x", "want at least 1, not 'x'"),
        (1, LARGEST, "-1", "want at least 1, not '-1'"),
        (1, LARGEST, "٣", "want at least 1, not '٣'"),
        (1, LARGEST, "9999999999", "want 1 to 999999999, not '9999999999'"),
        (2, 9, "10", "want 2 to 9, not '10'"),
        (2, 9, "1", "want 2 to 9, not '1'"),
        (2, 9, "", "want 2 to 9, not ''"),
    ],
)
def test_a_number_that_is_none(least: int, most: int, text: str, said: str) -> None:
    """The bound that it is beyond is named."""
    with pytest.raises(argparse.ArgumentTypeError) as error:
        whole(least, most)(text)
    assert str(error.value) == said


def test_numbers() -> None:
    assert [whole(1)(text) for text in ("1", "007", str(LARGEST))] == [1, 7, LARGEST]
    assert [whole(2, 9)(text) for text in ("2", "9")] == [2, 9] and [seed_of(text) for text in ("7", "0x1F")] == [7, 31]


def test_a_name_that_there_is_not() -> None:
    assert one_of(("a", "b"))("b") == "b"
    with pytest.raises(argparse.ArgumentTypeError, match=r"^'c': there are a, b$"):
        one_of(("a", "b"))("c")


@pytest.mark.parametrize(
    ("main", "words", "said"),
    [
        (dsm.main, "rtt nix", "argument PART: 'nix': there are rtt, swap, node, switches, detach, rdma\n"),
        (span.main, "nix", "argument PART: 'nix': there are kernels, kv, ownership, calls\n"),
        (bench.main, "nix", "argument NAME: 'nix': there are parallel_region, balloon, "),
        (vsmp.main, "--rounds=0", "argument --rounds: want 1 to 99, not '0'\n"),
        (vsmp.main, "--rounds=100", "argument --rounds: want 1 to 99, not '100'\n"),
    ],
    ids=["dsm", "span", "bench", "vsmp", "vsmp-many"],
)  # fmt: skip
def test_what_a_measurement_refuses(main: object, words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(main)
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    err = capsys.readouterr().err
    assert ended.value.code == 2 and said in err and "[]" not in err
