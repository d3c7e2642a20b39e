# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Programs that run with raised privileges do not listen to GOMP_TOPO*: whoever starts them does not decide."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.unit.libgomp.gomp_player import ELASTIC, SCRATCH, Player, build

NOBODY = 65534
NONSENSE = {
    "GOMP_TOPO": "maybe",
    "GOMP_TOPO_RESET": "all",
    "GOMP_TOPO_PROCS": "8",
    "GOMP_TOPO_GRANULE": "1",
    "GOMP_TOPO_DEV": "/nonexistent/page",
    "PLAYER_NO_PAGE": "1",
}
COMPLAINTS = (
    "GOMP_TOPO: maybe",
    "GOMP_TOPO_RESET: all",
    "GOMP_TOPO_PROCS: 8",
    "GOMP_TOPO_GRANULE: 1",
    "/nonexistent/page",
)


def program() -> Path:
    """The player, with a library that it finds by itself and anybody can read."""
    assert ELASTIC
    SCRATCH.chmod(0o755)
    shutil.copy(ELASTIC / "libgomp.so.1", SCRATCH)
    return build("player.c", "-fopenmp", "-Wno-unknown-pragmas", f"-Wl,-rpath,{SCRATCH}", name="secure")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a program of another user")
def test_variables_are_ignored_with_raised_privileges() -> None:
    path = program()
    for mode, secure in ((0o755, 0), (0o4755, 1)):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(mode)
        with Player(None, lib=None, env=NONSENSE, program=path) as p:
            assert p.do("secure") == {"secure": secure}
            p.run()
            heard = p.end()
        assert [text in heard for text in COMPLAINTS] == [not secure] * len(COMPLAINTS), heard
