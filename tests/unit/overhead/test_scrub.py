# SPDX-License-Identifier: GPL-2.0
"""What scrubbing costs: figures from made-up takes, the script against a made-up xenperf, and the order of all of it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import scrub
from benchmarks.balloon import Node
from benchmarks.results import Metric, Result, encode, host_info, now, problems
from benchmarks.scrub import ALL, DIRTY, OFF, ONE, SIZES, Scrub, clean_script, measure, metrics
from lab.command import Done
from lab.elastic_guest import ElasticGuest
from lab.errors import CommandFailedError
from lab.pipeline.paths import REPO


def line(way: str, take: float, clean: float, run: int = 0, helped: float = 0.0) -> list[Scrub]:
    """Takes of three sizes on a line, which begins at a second and at a tenth of one."""
    return [Scrub(way, run, mib, 1 + take * mib / 1024, 0.1 + clean * mib / 1024, helped) for mib in SIZES]


SCRUBS = [
    *line(OFF, 2.0, 0.0),
    *line(ONE, 2.5, 8.0),
    *line(ALL, 3.0, 4.0, helped=40.0),
    *line(ONE, 2.5, 9.0, run=1),
    *line(ALL, 3.0, 3.0, run=1, helped=60.0),
]


def figures(scrubs: list[Scrub]) -> dict[str, Metric]:
    return {metric.metric: metric for metric in metrics(scrubs)}


def test_slopes_and_their_ratio() -> None:
    found = figures(SCRUBS)
    assert found["scrub.take.off.seconds_per_gib"].value == pytest.approx(2.0)
    assert found["scrub.take.all.seconds_per_gib"].baseline == {"fixed_s": 1.0}
    assert list(found["scrub.clean.one.seconds_per_gib"].runs) == pytest.approx([8.0, 9.0])
    assert list(found["scrub.clean.ratio"].runs) == pytest.approx([2.0, 3.0])
    assert found["scrub.helped_pct"].value == pytest.approx(50.0)
    assert "scrub.clean.off.seconds_per_gib" not in found


def test_what_was_not_measured_has_no_value() -> None:
    for some in ([], line(ONE, 1.0, 1.0), line(ALL, 1.0, 0.0), SCRUBS[:-1]):
        assert problems(encode(Result("scrub", now(), host_info(), metrics(some)))) == []
    assert figures(line(ONE, 1.0, 1.0))["scrub.clean.ratio"].value is None
    assert figures([*line(ONE, 1.0, 1.0), *line(ALL, 1.0, -1.0)])["scrub.clean.ratio"].value is None
    clean_at_once = figures([*line(ONE, 1.0, -0.1), *line(ALL, 1.0, 0.5)])["scrub.clean.ratio"]
    assert clean_at_once.value is None and "clean before anybody looks" in clean_at_once.note
    assert list(figures(SCRUBS[:-1])["scrub.clean.ratio"].runs) == pytest.approx([2.0])


def test_a_ratio_takes_three_runs() -> None:
    """And one in which a slope is none is left out, and told."""
    two = figures(SCRUBS)["scrub.clean.ratio"]
    assert two.value is None and two.note == "not measured: only 2 rounds, it takes 3"
    third = [*line(ONE, 2.5, 10.0, run=2), *line(ALL, 3.0, 4.0, run=2)]
    assert figures([*SCRUBS, *third])["scrub.clean.ratio"].value == pytest.approx(2.5)
    some = figures([*SCRUBS, *third, *line(ONE, 2.5, 10.0, run=3), *line(ALL, 3.0, -1.0, run=3)])["scrub.clean.ratio"]
    assert some.value == pytest.approx(2.5) and some.note.endswith("in the same run; 1 left out: no slope")


def test_the_hypervisor_has_what_is_set_and_counted() -> None:
    """By the names that the sources have."""
    sources = REPO / "xen" / "overlay" / "xen"
    counters = (sources / "include/xen/perfc_mem_range.h").read_text(encoding="utf-8")
    for name in (scrub.DIRTIED, scrub.SCRUBBED, scrub.UNSCRUBBED, scrub.HELPED):
        assert f'"{name}"' in counters, name
    assert 'integer_runtime_param("scrub-cpus"' in (sources / "common/scrub.c").read_text(encoding="utf-8")
    hooks = "".join(path.read_text(encoding="utf-8") for path in (REPO / "xen" / "hooks").glob("*.patch"))
    assert '+boolean_runtime_param("scrub-domheap"' in hooks


def xenperf(tmp_path: Path, dirtied: int, unscrubbed: int, *scrubbed: int) -> dict[str, str]:
    """A fake one that says the next count of scrubbed frames each time, and the last for ever."""
    (tmp_path / "counts").write_text("".join(f"{count}\n" for count in scrubbed), encoding="utf-8")
    program = tmp_path / "xenperf"
    program.write_text(
        f"""#!/bin/sh
count=$(head -n 1 {tmp_path}/counts)
[ "$(wc -l <{tmp_path}/counts)" -gt 1 ] && sed -i 1d {tmp_path}/counts
echo "exceptions                              T=       12"
echo "{scrub.DIRTIED}       T=   {dirtied}"
echo "{scrub.SCRUBBED}                   T=   $count"
echo "{scrub.HELPED}    T=   77"
echo "{scrub.UNSCRUBBED}       T=   {unscrubbed}"
""",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def shell(script: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60)


def test_the_script_waits_until_all_is_clean(tmp_path: Path) -> None:
    """Frames that Xen got as they were need no scrubbing; those that were dirty before are not waited for."""
    env = xenperf(tmp_path, 1000, 30, 500, 700, 959, 960)
    assert shell(f"{DIRTY}\ndirty", xenperf(tmp_path, 1000, 30, 500)).stdout == "470\n"
    env = xenperf(tmp_path, 1000, 30, 500, 700, 959, 960)
    asked = float(Path("/proc/uptime").read_text(encoding="utf-8").split()[0])
    done = shell(clean_script(10, 30), env)
    began, ended = map(float, done.stdout.split())
    assert done.returncode == 0 and ended - began > 0.28
    # The time begins with the script: what is cleaned before that would be cleaned in no time.
    assert began - asked < 2
    assert (tmp_path / "counts").read_text(encoding="utf-8") == "960\n"


def test_counters_wrap(tmp_path: Path) -> None:
    """Each has 32 bits."""
    assert shell(clean_script(0, 1), xenperf(tmp_path, 5, 0, 2**32 - 5)).returncode == 1
    assert shell(clean_script(0, 1), xenperf(tmp_path, 5, 0, 7)).returncode == 0


def test_what_stays_dirty_is_an_error(tmp_path: Path) -> None:
    done = shell(clean_script(0, 1), xenperf(tmp_path, 1000, 0, 990))
    assert done.returncode == 1 and done.stderr == "10 frames are still dirty\n" and not done.stdout


class PlayedDom0:
    """A hypervisor whose parameters can be set; of what is scrubbed others do half, if they may."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.set: dict[str, str] = {}
        self.mib, self.dirtied, self.helped = 4096, 0, 0
        self.log: list[str] = []
        self.cleaned: list[str] = []

    def __call__(self, command: str, timeout: float = 60.0) -> Done:
        if self.fails and self.fails in command:
            return Done(3, "", "refused")
        if match := re.fullmatch(r"xl set-parameters (\S+)=(\S+)", command):
            self.set[match[1]] = match[2]
        elif command == "xenperf":
            names = {scrub.DIRTIED: self.dirtied, scrub.SCRUBBED: self.dirtied, scrub.HELPED: self.helped}
            names |= dict.fromkeys(("p2m: entries written", "p2m: TLB flushes", "domheap: calls to free"), 1)
            return Done(0, "".join(f"{name:<40} T= {count}\n" for name, count in names.items()))
        elif match := re.search(r"xl vnode-set g 1 (\d+)M", command):
            before, self.mib = self.mib, int(match[1])
            if self.mib < before and self.set["scrub-domheap"] == "yes":
                self.dirtied += (before - self.mib) * 256
                self.helped += (before - self.mib) * 128 * (self.set["scrub-cpus"] == "0")
            self.log.append(f"{self.set['scrub-domheap']} {self.set['scrub-cpus']} {self.mib}")
            return Done(0, f"20.0 20.5 {before} {self.mib} 19.0 21.0\n")
        elif "began=" in command:
            self.cleaned.append(command)
            return Done(0, "30.0 31.5\n")
        elif command.endswith("\ndirty"):
            return Done(0, "12\n")
        return Done(0, "")


def test_the_ways_alternate_and_are_set() -> None:
    dom0, scrubs = PlayedDom0(), list[Scrub]()
    measure(Node(ElasticGuest("g", dom0, dom0), 1, 4096), scrubs, runs=2, sizes=(512, 1024))
    assert [(each.way, each.run, each.mib) for each in scrubs] == [
        (way, run, mib) for run in range(2) for mib in (512, 1024) for way in (OFF, ONE, ALL)
    ]
    assert [each.helped for each in scrubs] == [0.0, 0.0, 50.0] * 4
    assert {(each.take, each.clean) for each in scrubs} == {(0.5, 1.5)}
    # No more than was dirty before is left when all is clean: 12 frames, as dom0 says.
    assert set(dom0.cleaned) == {clean_script(12, scrub.CLEAN_TIMEOUT)} and "$(dirty) - 12)" in dom0.cleaned[0]
    assert dom0.log[:6] == ["no 1 3584", "no 1 4096", "yes 1 3584", "yes 1 4096", "yes 0 3584", "yes 0 4096"]
    assert dom0.set == {"scrub-domheap": "yes", "scrub-cpus": "1"}


@pytest.mark.parametrize("fails", ["began=$(now)\ntries", "vnode-set", "scrub-cpus=0"])
def test_what_goes_wrong_leaves_the_hypervisor_as_it_was(fails: str) -> None:
    dom0, scrubs = PlayedDom0(fails), list[Scrub]()
    with pytest.raises((CommandFailedError, RuntimeError), match="refused"):
        measure(Node(ElasticGuest("g", dom0, dom0), 1, 4096), scrubs, runs=1, sizes=(512,))
    assert dom0.set == {"scrub-domheap": "yes", "scrub-cpus": "1"}
