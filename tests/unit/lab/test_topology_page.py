# SPDX-License-Identifier: GPL-2.0
"""The topology page in Python is that of the header: a C program reads one, and says what it finds where."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lab.pipeline.paths import REPO
from lab.topology_page import MAX_CPUS, MAX_NODES, OFFSET, PAGE_SIZE, topology_page

UAPI = REPO / "linux-guest" / "overlay" / "include" / "uapi"
FIELDS = re.findall(r"^XTOPO_OFFSET\((\w+), \d+\);", (UAPI / "xen/topology.h").read_text(), re.MULTILINE)

# CPUs 0 and 1 on node 0, CPU 2 on node 2; CPUs 0, 2 and 4095 are usable.
USABLE, NODES = 1 | 1 << 2 | 1 << 4095, (0, 0, 2)

PROGRAM = """#include <stddef.h>
#include <stdio.h>
#include <xen/topology.h>

int main(void)
{
    static union { struct xtopo_page page; char room[XTOPO_PAGE_SIZE]; } u;
    const struct xtopo_page *p = &u.page;

    if ( fread(&u, 1, sizeof(u), stdin) != sizeof(u) )
        return 1;
    OFFSETS
    printf("%d %d %d %d\\n", p->magic == XTOPO_MAGIC, p->abi == XTOPO_ABI, (int)p->version, (int)p->seq);
    printf("%d %d %d %d\\n", p->phase == XTOPO_STABLE, p->nr_cpus_possible, p->nr_nodes_possible, p->reset_nr);
    printf("%llx %llx\\n", p->nodes_online[0] + 0ULL, p->nodes_online[1] + p->nodes_draining[0] + 0ULL);
    printf("%llx %llx\\n", p->cpus_usable[0] + 0ULL, p->cpus_usable[63] + 0ULL);
    printf("%d %d %d %d\\n", p->cpu_node[1], p->cpu_node[2], p->cpu_node[3], p->cpu_node[2047] == XTOPO_NO_NODE);
    return 0;
}
"""


def test_the_header_finds_everything_where_python_has_put_it(tmp_path: Path) -> None:
    offsets = "".join(f'printf("%zu ", offsetof(struct xtopo_page, {field})); ' for field in FIELDS)
    (tmp_path / "read.c").write_text(PROGRAM.replace("OFFSETS", offsets + 'puts("");'))
    program = tmp_path / "read"
    subprocess.run(["gcc", "-Wall", "-Werror", f"-I{UAPI}", "-o", program, tmp_path / "read.c"], check=True)
    page = bytes(topology_page(USABLE, NODES, reset_nr=600))
    said = subprocess.run([program], input=page, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert [line.split() for line in said.splitlines()] == [
        [str(OFFSET[field]) for field in FIELDS],
        ["1", "1", "1", "0"],
        ["1", "3", "3", "600"],
        ["7", "0"],
        ["5", "8000000000000000"],
        ["0", "2", "255", "1"],
    ]
    assert list(OFFSET) == FIELDS and len(page) == PAGE_SIZE


def test_cpus_beyond_the_list_of_nodes_are_possible() -> None:
    page = topology_page(0, [1] * MAX_CPUS)
    assert page[OFFSET["cpu_node"] : OFFSET["cpu_node"] + 2048] == b"\x01" * 2048
    assert not any(page[OFFSET["cpu_node"] + 2048 :])


@pytest.mark.parametrize(
    ("usable", "nodes"), [(1 << MAX_CPUS, [0]), (1, [0] * (MAX_CPUS + 1)), (1, [MAX_NODES])], ids=["mask", "CPUs", "nodes"]
)
def test_what_does_not_fit_is_refused(usable: int, nodes: list[int]) -> None:
    with pytest.raises(ValueError, match="a page has 4096 CPUs, 64 nodes"):
        topology_page(usable, nodes)
