# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Who has made the promise to acknowledge, with which open file, and when it ends."""

from __future__ import annotations

from tests.unit.libgomp import program

FLAGS = ("-rdynamic",)  # the library is loaded while the program runs


def test_a_child_makes_its_own_promise_and_drops_that_of_its_parent() -> None:
    """As long as the child had the open file, the parent's end would not end the parent's promise."""
    reply = program.run("descriptors.c", "fork", flags=FLAGS)
    assert reply == {"parent": 1, "inherited": 0, "own": 1, "registered": 1, "foreign": 0, "kept": 1}


def test_a_descriptor_that_is_another_file_now_is_left_alone() -> None:
    """Nothing is asked of that file, and neither a child nor the end of the library closes it."""
    reply = program.run("descriptors.c", "stolen", flags=FLAGS)
    assert reply == {"registered": 1, "foreign": 0, "own": 1, "kept": True, "child": True, "end": True}


def test_a_file_that_has_taken_the_place_of_the_page_is_not_opened() -> None:
    reply = program.run("descriptors.c", "replaced", flags=FLAGS)
    assert reply == {"registered": 0, "foreign": 0, "own": 0}


def test_a_process_that_has_promised_already_acknowledges() -> None:
    """Some other library may have; the kernel then says EBUSY."""
    assert program.run("descriptors.c", "busy", flags=FLAGS) == {"registered": 1, "acked": 3, "open": 1}


def test_a_page_without_a_device_is_asked_once() -> None:
    """For each of the two ways to promise."""
    assert program.run("descriptors.c", "plain", flags=FLAGS) == {"registered": 2, "acked": 0, "open": 0}


def test_a_promise_that_the_kernel_has_forgotten_is_made_again() -> None:
    """Two versions cannot be acknowledged, though each is tried twice, with a new promise; the third can."""
    assert program.run("descriptors.c", "forgotten", flags=FLAGS) == {"registered": 3, "acked": 1, "open": 1}


def test_unloading_the_library_ends_the_promise() -> None:
    """The library can be unloaded, the program can fork then, and can load the library again."""
    reply = program.run("descriptors.c", "dlclose", flags=FLAGS)
    assert reply == {"before": 1, "after": 0, "loaded": False, "fork": 0, "again": 1, "open": 1}
