# SPDX-License-Identifier: GPL-2.0
"""What our programs print: JSON objects, one a line, with counts in them. What is wrong is said with the program's name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lab.errors import Malformed


def objects(program: str, text: str) -> Iterator[dict[str, Any]]:
    """The objects of what a program has printed, one a line and nothing else. Raises Malformed."""
    for line in text.splitlines():
        try:
            data = json.loads(line)
        except ValueError as error:
            raise Malformed(f"{program}: not JSON: {line[:200]!r}") from error
        if not isinstance(data, dict):
            raise Malformed(f"{program}: unexpected line {line[:200]!r}")
        yield data


def count(program: str, data: Mapping[str, Any], key: str, least: int = 0) -> int:
    """A number of an object that C has in 64 bits. Raises Malformed, also for less than `least`."""
    value = data.get(key)
    if type(value) is not int or not least <= value < 2**64:
        raise Malformed(f"{program}: {key} {value!r} is no number of at least {least}")
    return value
