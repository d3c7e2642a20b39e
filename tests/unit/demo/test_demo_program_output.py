# SPDX-License-Identifier: GPL-2.0
"""What our programs print becomes values; what is malformed is refused, with the line named."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import program_output
from lab.errors import Malformed
from lab.guestview import parse_numa_maps

STREAM = """{"event":"start","pid":7,"mib":64,"words":4194304}
{"event":"iteration","n":1,"t":100.5,"ms":14.2,"threads":2,"sum":"8e666055bd2512f1"}
{"event":"iteration","n":2,"t":100.9,"ms":15.8,"threads":4,"sum":"1cccb8ab7a6a25e2"}
"""
RESULT = '{"event":"result","iterations":2,"checksum":"d9a8a93bde23a18b","wrong_words":0}\n'


def test_a_run_that_has_ended_has_a_checksum() -> None:
    run = program_output.parse_stream(STREAM + RESULT)
    assert (run.pid, run.mib, run.checksum, run.wrong_words) == (7, 64, "d9a8a93bde23a18b", 0)
    assert [(i.n, i.threads) for i in run.iterations] == [(1, 2), (2, 4)]


def test_a_run_under_way_has_none_and_its_last_half_line_is_left_out() -> None:
    run = program_output.parse_stream(STREAM + '{"event":"iteration","n":3,"t":1')
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
    with pytest.raises(Malformed, match=part):
        program_output.parse_stream(text)


def test_samples() -> None:
    text = '{"t":5.250,"nodes":[0,1],"cpus":[2,2],"kib":[4096,2048],"threads":[2,2],"running":[1,2]}\n'
    (sample,) = program_output.parse_samples(text)
    assert sample.nodes == (0, 1)
    assert [sample.on("kib", node) for node in (0, 1, 7)] == [4096, 2048, 0]


@pytest.mark.parametrize("bad", ['"kib":[-1]', '"kib":["x"]', '"kib":4', f'"kib":{[0] * 65}'])
def test_a_malformed_sample_is_refused(bad: str) -> None:
    with pytest.raises(Malformed, match="kib"):
        program_output.parse_samples('{"t":1,"nodes":[0],"cpus":[1],' + bad + ',"threads":[1],"running":[1]}\n')


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
    samples = program_output.parse_samples(done.stdout)
    assert len(samples) == 2
    want = sum(parse_numa_maps(Path("/proc/self/numa_maps").read_text(encoding="utf-8")).values())
    assert sum(samples[-1].kib) == pytest.approx(want, rel=0.1)
