# SPDX-License-Identifier: GPL-2.0
"""What a guest prints becomes values; what is malformed is refused, with the line named."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import guestview as gv

STREAM = """{"event":"start","pid":7,"mib":64,"words":4194304}
{"event":"iteration","n":1,"t":100.5,"ms":14.2,"threads":2,"sum":"8e666055bd2512f1"}
{"event":"iteration","n":2,"t":100.9,"ms":15.8,"threads":4,"sum":"1cccb8ab7a6a25e2"}
"""
RESULT = '{"event":"result","iterations":2,"checksum":"d9a8a93bde23a18b","wrong_words":0}\n'


def test_a_run_that_has_ended_has_a_checksum() -> None:
    run = gv.parse_stream(STREAM + RESULT)
    assert (run.pid, run.mib, run.checksum, run.wrong_words) == (7, 64, "d9a8a93bde23a18b", 0)
    assert [(i.n, i.threads) for i in run.iterations] == [(1, 2), (2, 4)]


def test_a_run_under_way_has_none_and_its_last_half_line_is_left_out() -> None:
    run = gv.parse_stream(STREAM + '{"event":"iteration","n":3,"t":1')
    assert run.checksum is None and run.wrong_words is None
    assert len(run.iterations) == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "no start line"),
        ("hello\n", "not JSON"),
        ("[1]\n", "not an object"),
        ('{"event":"reboot"}\n', "unknown event"),
        (STREAM + '{"event":"iteration","n":3,"t":1,"ms":-1,"threads":2,"sum":"0"}\n', "ms -1"),
        (STREAM + '{"event":"iteration","n":3,"t":1,"ms":1,"threads":99999,"sum":"0"}\n', "threads 99999"),
        (STREAM + '{"event":"iteration","n":3,"t":1,"ms":1,"threads":true,"sum":"0"}\n', "threads True"),
        (STREAM + '{"event":"iteration","n":3,"t":NaN,"ms":1,"threads":2,"sum":"0"}\n', "t nan"),
        (STREAM + '{"event":"result","iterations":2,"checksum":7,"wrong_words":0}\n', "checksum 7"),
    ],
)
def test_malformed_stream_output_is_refused(text: str, part: str) -> None:
    with pytest.raises(gv.Malformed, match=part):
        gv.parse_stream(text)


def test_samples() -> None:
    text = '{"t":5.250,"nodes":[0,1],"cpus":[2,2],"kib":[4096,2048],"threads":[2,2],"running":[1,2]}\n'
    (sample,) = gv.parse_samples(text)
    assert sample.nodes == (0, 1)
    assert [sample.on("kib", node) for node in (0, 1, 7)] == [4096, 2048, 0]


@pytest.mark.parametrize("bad", ['"kib":[-1]', '"kib":["x"]', '"kib":4', f'"kib":{[0] * 65}'])
def test_a_malformed_sample_is_refused(bad: str) -> None:
    with pytest.raises(gv.Malformed, match="kib"):
        gv.parse_samples('{"t":1,"nodes":[0],"cpus":[1],' + bad + ',"threads":[1],"running":[1]}\n')


NUMA_MAPS = """00400000 default file=/opt/xenuma/bin/stream_check mapped=2 N0=2 kernelpagesize_kB=4
7f0000000000 default anon=24576 dirty=24576 active=0 N0=12288 N1=12288 kernelpagesize_kB=4
7f1000000000 default anon=3 dirty=3 huge N1=3 kernelpagesize_kB=2048
7ffc00000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
"""


def test_numa_maps_counts_each_page_size() -> None:
    assert gv.parse_numa_maps(NUMA_MAPS) == {0: 4 * (2 + 12288 + 3), 1: 4 * 12288 + 3 * 2048}


def test_numa_maps_of_a_process_without_memory() -> None:
    assert gv.parse_numa_maps("") == {}


def test_numa_maps_with_an_impossible_node() -> None:
    with pytest.raises(gv.Malformed, match="node 64"):
        gv.parse_numa_maps("1000 default N64=3 kernelpagesize_kB=4\n")


NUMACTL = """available: 2 nodes (0-1)
node 0 cpus: 0 1
node 0 size: 433 MB
node 0 free: 310 MB
node 1 cpus: 2 3
node 1 size: 504 MB
node 1 free: 500 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""


def test_numactl_lists_nodes_with_cpus_and_sizes() -> None:
    nodes = gv.parse_numactl(NUMACTL)
    assert sorted(nodes) == [0, 1]
    assert nodes[1] == gv.Node(1, (2, 3), 504, 500)


def test_numactl_with_a_hole_and_a_node_without_cpus() -> None:
    nodes = gv.parse_numactl("node 0 cpus: 0\nnode 0 size: 10 MB\nnode 0 free: 1 MB\nnode 2 cpus:\nnode 2 size: 9 MB\n")
    assert sorted(nodes) == [0, 2]
    assert nodes[2].cpus == () and nodes[2].free_mib == 0


@pytest.mark.parametrize("text", ["", "No NUMA available on this system\n", "node 0 cpus: zero\n"])
def test_numactl_malformed(text: str) -> None:
    with pytest.raises(gv.Malformed):
        gv.parse_numactl(text)


def test_phases_in_order_and_in_seconds() -> None:
    phases = gv.parse_phases("populate=412000,add=900,online=1\n")
    assert list(phases.items()) == [("populate", 0.412), ("add", 0.0009), ("online", 1e-06)]
    assert gv.parse_phases("") == {}


@pytest.mark.parametrize(
    "text", ["populate", "populate=", "populate=-1", "a=1,a=2", "a=1,,b=2", "A=1", "a=1;rm", "a=" + "9" * 13]
)
def test_malformed_phases_are_refused(text: str) -> None:
    with pytest.raises(gv.Malformed, match="phase"):
        gv.parse_phases(text)


@pytest.mark.parametrize(("text", "want"), [("", ()), ("0\n", (0,)), ("0-3,6", (0, 1, 2, 3, 6)), ("5-5", (5,))])
def test_lists(text: str, want: tuple[int, ...]) -> None:
    assert gv.parse_list(text) == want


@pytest.mark.parametrize("text", ["x", "3-1", "0-4096", "1,,2", "-1", "0-99999999999"])
def test_malformed_lists_are_refused(text: str) -> None:
    with pytest.raises(gv.Malformed):
        gv.parse_list(text)


def test_numa_watch_and_the_parser_agree_on_this_machine(tmp_path: Path) -> None:
    """The program itself, run here on this process: its output parses, and its memory is about what numa_maps says."""
    import os
    import shutil
    import subprocess

    if not shutil.which("gcc") or not Path("/proc/self/numa_maps").exists():
        pytest.skip("needs gcc and a kernel with numa_maps")
    source = Path(__file__).resolve().parents[3] / "benchmarks" / "programs" / "numa_watch.c"
    program = tmp_path / "numa_watch"
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-o", str(program), str(source)], check=True)
    done = subprocess.run([str(program), str(os.getpid()), "10", "2"], capture_output=True, text=True, check=True)
    samples = gv.parse_samples(done.stdout)
    assert len(samples) == 2
    want = sum(gv.parse_numa_maps(Path("/proc/self/numa_maps").read_text(encoding="utf-8")).values())
    assert sum(samples[-1].kib) == pytest.approx(want, rel=0.1)
