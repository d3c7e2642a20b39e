# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The page is read whole: at whatever instruction of the reader the writer comes."""

from __future__ import annotations

from tests.unit.libgomp import program

NOW = {"LD_BIND_NOW": "1"}  # the dynamic linker's instructions are none of the reader's


def test_a_new_version_after_any_instruction_of_the_reader() -> None:
    """An eighth of the page's words, and what is around the copy."""
    assert program.run("torn.c", "whole", env=NOW)["in_time"] > 40


def test_a_writer_that_needs_long_is_waited_for() -> None:
    reply = program.run("torn.c", "half", env=NOW)
    assert reply["waits"] == reply["in_time"] > 40
