# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Several threads of a process follow a change one after the other, and a process that forks meanwhile is not stuck."""

from __future__ import annotations

import pytest

from tests.unit.libgomp import program
from tests.unit.libgomp.gomp_player import CPUS

BINDINGS = {"unbound": {}, "bound": {"OMP_PLACES": f"{{{CPUS[0]}}},{{{CPUS[-1]}}}"}}


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_root_waits_while_another_one_follows(binding: str) -> None:
    reply = program.run("roots.c", "lock", env=BINDINGS[binding])
    assert reply == {"waited": True, "overlap": False, "teams": [2, 2]}


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_child_of_a_process_in_which_another_thread_follows(binding: str) -> None:
    reply = program.run("roots.c", "fork", env=BINDINGS[binding])
    assert reply == {"child": 2, "teams": [2, 2]}


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_root_that_begins_after_the_memory_has_followed_does_not_reset_it_again(binding: str) -> None:
    reply = program.run("roots.c", "late", env=BINDINGS[binding])
    assert reply == {"resets": [1, 0], "teams": [2, 2]}
