# SPDX-License-Identifier: GPL-2.0
"""What a command line may say, looked at before anything is booted: types for argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path

LARGEST = 10**9 - 1


def whole(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """A whole number, least to most."""
    def number(text: str) -> int:
        digits = text.isascii() and text.isdecimal()
        if not digits or not least <= int(text) <= most:
            wanted = f"at least {least}" if most == LARGEST and not (digits and int(text) > most) else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"want {wanted}, not {text!r}")
        return int(text)

    return number


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """One of these: for arguments of which there may be none, where argparse's own `choices` want a default among them."""

    def name(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r}: there are {', '.join(names)}")
        return text

    return name


def seed_of(text: str) -> int:
    """Of chance: decimal, or hexadecimal with 0x."""
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"want a number, decimal or with 0x, of at least 0, not {text!r}")
    return number


def existing(text: str) -> Path:
    """A file that is there."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text}: no such file")
    return path
