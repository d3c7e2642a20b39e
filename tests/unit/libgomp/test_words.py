# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Machines whose words have 32 bits: there is no page, and nothing that would need another library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.libgomp.gomp_player import REPO

OURS = REPO / "libgomp-patch" / "overlay" / "libgomp" / "config" / "linux"
PROGRAM = """\
#include "topo.h"
const unsigned long long *gomp_topo_version;
int changed (struct gomp_topo_thread *topo) { return gomp_topo_changed (topo); }
"""


@pytest.mark.parametrize(("flags", "reads"), [(("-m32", "-march=i386"), False), (("-m64",), True)])
def test_a_region_calls_no_function_to_read_the_version(flags: tuple[str, ...], reads: bool, tmp_path: Path) -> None:
    (tmp_path / "pthread.h").write_text("typedef int pthread_attr_t;\n")
    (tmp_path / "x.c").write_text(PROGRAM)
    command = ["gcc", *flags, "-O2", "-ffreestanding", f"-I{tmp_path}", f"-I{OURS}", "-S", "-o", "-", str(tmp_path / "x.c")]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    body = code[code.index("changed:") : code.index(".size\tchanged")]
    assert "call" not in body
    assert ("gomp_topo_version" in body) == reads
