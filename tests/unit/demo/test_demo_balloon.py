# SPDX-License-Identifier: GPL-2.0
"""The balloon's figures from made-up steps, and its shell script against made-up commands."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from benchmarks import balloon, results, stock_host
from benchmarks.balloon import (
    COUNTERS,
    DIRTIED,
    ELASTIC,
    GIVE,
    NODE_MIB,
    SIZES,
    TAKE,
    UPSTREAM,
    Change,
    Node,
    Sizes,
    Step,
    lines,
    measure,
    metrics,
    parse_change,
    stock_script,
    stock_step,
    told_script,
    vnode_script,
)
from benchmarks.results import Metric, Result, encode, host_info, now, problems
from lab.command import Done
from lab.description import RackDescription
from lab.elastic_guest import ElasticGuest
from lab.errors import CommandFailedError, LabError
from lab.pipeline.paths import REPO
from lab.rack import Rack


def line(way: str, operation: str, s_per_gib: float, fixed: float, run: int = 0) -> list[Step]:
    """Steps of three sizes on a line, with the counts of their way: 512 for each 2 MiB of stock, 1 of ours."""
    sizes = getattr(SIZES, way)
    each = 1 if "ours" in way else 512
    return [
        Step(
            way,
            operation,
            mib,
            fixed + s_per_gib * mib / 1024,
            dict.fromkeys(("p2m_writes", "frees"), mib // 2 * each)
            | {"flushes": mib // 2 * each * (operation == TAKE), "dirtied": 0},
            run,
        )
        for mib in sizes
    ]


STEPS = [
    *line("stock_4k", TAKE, 80.0, 2.0),
    *line("ours", TAKE, 2.0, 0.9),
    *line("stock_4k", TAKE, 60.0, 2.2, run=1),
    *line("ours", TAKE, 1.0, 1.1, run=1),
    *line("stock_4k", TAKE, 75.0, 2.1, run=2),
    *line("ours", TAKE, 1.5, 1.0, run=2),
    *(step for run in range(3) for step in (*line("stock_4k", GIVE, 16.0, 1.0, run), *line("ours", GIVE, 0.5, 0.8, run))),
    *line("order9", TAKE, 30.0, 0.9),
]


def figures(steps: list[Step]) -> dict[str, Metric]:
    return {metric.metric: metric for metric in metrics(steps)}


def test_the_ratio_is_of_slopes_run_by_run() -> None:
    """What a command takes in any case is not in it, though it is most of the time of ours."""
    found = figures(STEPS)
    take = found["balloon.take.ratio"]
    assert list(take.runs) == pytest.approx([40.0, 60.0, 50.0]) and take.value == pytest.approx(50.0)
    assert take.note == "slope over sizes, stock's way on our host against ours, in the same run"
    assert take.baseline["stock_4k_s_per_gib"] == pytest.approx(75.0) and take.baseline["ours_s_per_gib"] == pytest.approx(1.5)
    assert found["balloon.give.ratio"].value == pytest.approx(32.0)


def test_upstreams_host_is_what_ours_is_compared_with() -> None:
    """As soon as it was measured; stock's way on our host is beside it, and still has the counts."""
    upstream = [step for run, s in enumerate((100.0, 90.0, 90.0)) for step in line("stock", TAKE, s, 1.0, run)]
    found = figures([*STEPS, *[dataclasses.replace(step, counts={}) for step in upstream]])
    take = found["balloon.take.ratio"]
    assert list(take.runs) == pytest.approx([50.0, 90.0, 60.0]) and take.value == pytest.approx(60.0)
    assert take.note == "slope over sizes, upstream's Xen and Linux against ours, in the same run"
    assert take.baseline["stock_s_per_gib"] == pytest.approx(90.0)
    assert take.baseline["stock_4k_s_per_gib"] == pytest.approx(75.0)
    assert found["balloon.take.fixed_seconds"].baseline == {"stock": 1.0, "stock_4k": 2.1}
    assert found["balloon.take.p2m_writes_per_2mib"].baseline == {"stock_4k": 512.0, "order9": 512.0}
    assert found["balloon.give.ratio"].value == pytest.approx(32.0)


def test_without_scrubbing_is_compared_with_the_same() -> None:
    """Upstream's host alone: stock's way on ours has our hypervisor's scrubbing."""
    ways = (("stock_unscrubbed", 70.0), ("ours_unscrubbed", 0.5))
    more = [step for run in range(3) for way, s in ways for step in line(way, TAKE, s, 1.0, run)]
    found = figures([*STEPS, *more])
    ratio = found["balloon.take.unscrubbed.ratio"]
    assert ratio.value == pytest.approx(140.0)
    assert ratio.note == "slope over sizes, upstream's Xen and Linux against ours, in the same run"
    assert found["balloon.take.ratio"].value == pytest.approx(50.0)
    assert found["balloon.take.ours_unscrubbed.fixed_seconds"].value == pytest.approx(1.0)
    assert found["balloon.give.unscrubbed.ratio"].value is None
    for way in ("stock_unscrubbed", "ours_unscrubbed"):
        some = figures([*STEPS, *line("stock", TAKE, 70.0, 1.0), *(step for step in more if step.way != way)])
        assert some["balloon.take.unscrubbed.ratio"].value is None


def test_of_three_runs_the_one_in_the_middle_counts() -> None:
    three = [*line("stock", TAKE, 70.0, 1.0, 0), *line("stock", TAKE, 80.0, 1.0, 1), *line("stock", TAKE, 400.0, 1.0, 2)]
    ratio = figures([*three, *(step for run in range(3) for step in line("ours", TAKE, 1.0, 1.0, run))])["balloon.take.ratio"]
    assert ratio.value == pytest.approx(80.0) and ratio.better == "higher"


def test_a_slope_is_of_all_sizes() -> None:
    """Not of the least and the largest: who is off the line in the middle counts, too."""
    off = [dataclasses.replace(step, seconds=step.seconds + 1.0 * (step.mib == 2048)) for step in line("ours", TAKE, 1.0, 1.0)]
    (found,) = lines(off, "ours", TAKE)
    # Least squares by hand: 1, 2 and 4 GiB; 2, 4 and 5 s.
    assert found.seconds_per_gib == pytest.approx(13 / 14) and found.fixed_seconds == pytest.approx(1.5)


def test_what_a_command_takes_is_beside_it() -> None:
    found = figures(STEPS)
    assert found["balloon.take.fixed_seconds"].value == pytest.approx(1.0)
    assert found["balloon.take.fixed_seconds"].baseline == {"stock_4k": 2.1}
    assert found["balloon.take.ours.seconds_per_gib"].baseline == {"least": 1.0, "most": 2.0}
    assert found["balloon.take.stock_4k.seconds_per_gib"].note == "slope over 48, 96, 192 MiB"
    assert found["balloon.take.order9.seconds_per_gib"].value == pytest.approx(30.0)
    assert found["balloon.give.order9.fixed_seconds"].value is None


def test_a_slope_takes_three_sizes() -> None:
    """A run with one size or two has none, since two are on a line whatever they are; nor has a time that does not grow."""
    for sizes in ((48, 4096), (48, 96, 1024, 4096)):
        some = [step for step in STEPS if step.run == 0 or step.mib in sizes]
        assert [each.run for each in lines(some, "ours", TAKE)] == [0]
        ratio = figures(some)["balloon.take.ratio"]
        assert list(ratio.runs) == pytest.approx([40.0]) and ratio.value is None
        assert ratio.note == "not measured: only 1 rounds, it takes 3"
    two = [step for step in STEPS if step.mib in (48, 96, 1024, 4096)]
    for metric in (found := figures(two)).values():
        assert "2mib" in metric.metric or "_mib_seconds" in metric.metric or metric.value is None, metric
    assert found["balloon.take.ratio"].note == "no run has both ways, each with 3 sizes"
    assert found["balloon.take.ours.seconds_per_gib"].note == "not measured: it takes 3 sizes"
    flat = [*line("stock_4k", TAKE, 80.0, 2.0), *line("ours", TAKE, 0.0, 1.0)]
    assert figures(flat)["balloon.take.ratio"].value is None
    assert figures(flat)["balloon.take.ratio"].note == "not measured: only 0 rounds, it takes 3; 1 left out: no slope"
    for stock, ours in ((80.0, -1.0), (-1.0, 1.0), (0.0, 1.0)):
        found = figures([*STEPS, *line("stock_4k", TAKE, stock, 2.0, run=3), *line("ours", TAKE, ours, 5.0, run=3)])
        assert list(found["balloon.take.ratio"].runs) == pytest.approx([40.0, 60.0, 50.0])
        assert found["balloon.take.ratio"].note.endswith("; 1 left out: no slope")


def test_of_a_gib_and_of_four_all_of_the_time_is_compared() -> None:
    """Ours as it was, stock by its line: with the fixed part of both, which a ratio of slopes leaves out."""
    found = figures(STEPS)
    for gib in (1, 4):
        ratio = found[f"balloon.take.ratio_{gib}gib"]
        wanted = [(2.0 + 80 * gib) / (0.9 + 2 * gib), (2.2 + 60 * gib) / (1.1 + gib), (2.1 + 75 * gib) / (1 + 1.5 * gib)]
        assert list(ratio.runs) == pytest.approx(wanted) and ratio.value == pytest.approx(sorted(wanted)[1])
        assert ratio.baseline == {"stock_4k_s": round(2.1 + 75 * gib, 3), "ours_s": round(1 + 1.5 * gib, 3)}
        assert f"{1024 * gib} MiB" in ratio.note and "stock's way on our host, by its line" in ratio.note
    assert found["balloon.give.ratio_4gib"].value == pytest.approx(65.0 / 2.8)
    odd = [dataclasses.replace(step, seconds=9.9) if (step.way, step.mib) == ("ours", 4096) else step for step in STEPS]
    assert figures(odd)["balloon.take.ratio_4gib"].baseline["ours_s"] == 9.9, "what it took, and not its line"
    few = figures([step for step in STEPS if step.run < 2])["balloon.take.ratio_1gib"]
    assert few.value is None and few.note == "not measured: only 2 rounds, it takes 3"


def test_each_command_is_in_the_file() -> None:
    """By way and amount, so that who doubts a slope can look at what it is made of."""
    of_4_gib = figures(STEPS)["balloon.take.ours.of_4096_mib_seconds"]
    assert list(of_4_gib.runs) == pytest.approx([8.9, 5.1, 7.0]) and of_4_gib.value == pytest.approx(7.0)
    named = {name for name in figures(STEPS) if name.startswith("balloon.give") and name.endswith("_mib_seconds")}
    assert named == {
        *(f"balloon.give.stock_4k.of_{mib}_mib_seconds" for mib in (48, 96, 192)),
        *(f"balloon.give.ours.of_{mib}_mib_seconds" for mib in (1024, 2048, 4096)),
    }


def test_counts_are_for_each_2_mib() -> None:
    found = figures(STEPS)
    for count in ("p2m_writes", "flushes", "frees"):
        assert found[f"balloon.take.{count}_per_2mib"].value == 1.0
    assert found["balloon.take.p2m_writes_per_2mib"].baseline == {"stock_4k": 512.0, "order9": 512.0}
    assert found["balloon.give.flushes_per_2mib"].value == 0.0
    assert found["balloon.give.flushes_per_2mib"].baseline["stock_4k"] == 0.0, "of the same operation"


@pytest.mark.parametrize("way", ["ours", "stock_4k"])
def test_what_was_not_measured_is_in_the_file_without_a_value(way: str) -> None:
    found = metrics([step for step in STEPS if step.way != way])
    assert {m.metric: m.value for m in found}["balloon.take.ratio"] is None
    for measured in (found, metrics(STEPS), metrics([])):
        assert problems(encode(Result("balloon", now(), host_info(), measured))) == []


def test_the_hypervisor_has_what_is_counted_and_set() -> None:
    """By the names that the sources have."""
    sources = REPO / "xen" / "overlay" / "xen"
    there = (sources / "include/xen/perfc_mem_range.h").read_text(encoding="utf-8")
    for name in (*COUNTERS.values(), *DIRTIED.values(), balloon.SUPERPAGES, balloon.REMOVED):
        assert f'"{name}")' in there, name


def test_the_memory_in_question_is_on_the_large_node_of_both_hosts() -> None:
    """Stock's follows its vCPUs, which are on that node's CPUs; of ours the elastic node says it."""
    (host,) = RackDescription.load(balloon.RACK).hosts
    large = max(range(len(host.nodes)), key=lambda number: host.nodes[number].memory_mib)
    first = sum(node.cpus for node in host.nodes[:large])
    assert balloon.STOCK["cpus"] == f'"{first}-{first + host.nodes[large].cpus - 1}"'
    vnodes = re.findall(r"\[[^\[\]]+\]", ELASTIC["vnuma"])
    assert [f'"pnode={large}"' in vnode for vnode in vnodes] == ['"elastic=1"' in vnode for vnode in vnodes] == [False, True]


def test_when_a_command_was_by_the_clock_of_who_asked() -> None:
    """The way to the script is as long as the way back: 0.75 s each of 5, of which the script was there for 3.5."""
    assert Change(10, 12, 0, 0, 9.5, 13).placed(100, 105) == (101.25, 103.25)


def test_the_largest_of_ours_is_in_the_node_and_4_gib() -> None:
    assert max(SIZES.ours) >= 4096 and max(SIZES.ours) < NODE_MIB and str(NODE_MIB) in ELASTIC["vnuma"]
    assert all(len(sizes) >= 3 for sizes in (SIZES.stock_4k, SIZES.order9, SIZES.ours))


SLOW = 0.3  # seconds that a command takes


def _commands(tmp_path: Path, after: int) -> dict[str, str]:
    """A fake `xl` whose guest has 512 MiB until the second `list` after mem-set, and `after` from then on.

    Its target is 1 MiB more, as that of a real guest is.
    """
    (tmp_path / "xl").write_text(
        f"""#!/bin/sh
case $1 in
domid) echo 7;;
mem-set) sleep {SLOW}; echo "$3" > {tmp_path}/target;;
list) n=512
  if [ -e {tmp_path}/target ]; then [ -e {tmp_path}/seen ] && n={after}; : > {tmp_path}/seen; fi
  printf 'Name ID Mem VCPUs\\n%s 1 %s 2 r 1.0\\n' "$2" "$n";;
esac
""",
        encoding="utf-8",
    )
    (tmp_path / "xl").chmod(0o755)
    (tmp_path / "xenstore-read").write_text(
        '#!/bin/sh\n[ "$1" = /local/domain/7/memory/target ] && echo $((513 * 1024))\n', encoding="utf-8"
    )
    (tmp_path / "xenstore-read").chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.parametrize(("direction", "after", "target"), [(-1, 448, "449m"), (1, 576, "577m")])
def test_the_script_waits_for_the_hypervisors_count(tmp_path: Path, direction: int, after: int, target: str) -> None:
    done = subprocess.run(
        ["sh", "-c", stock_script("guest", 64, direction, 10)],
        env=_commands(tmp_path, after),
        capture_output=True,
        text=True,
        check=True,
    )
    change = parse_change(done.stdout)
    assert change.mib == direction * 64 and SLOW <= change.seconds < 10
    assert change.start < change.began < change.ended < change.last
    assert (tmp_path / "target").read_text(encoding="utf-8").strip() == target


def test_the_script_gives_up_on_a_guest_that_does_not_follow(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", stock_script("guest", 64, -1, 1)],
        env=_commands(tmp_path, 500),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""


def _rests(tmp_path: Path, times: int, then: str, after: int = 448) -> dict[str, str]:
    """Those commands, with a fake `xenstore-watch` that tells `times` times, and `then`; what is done is written down.

    The guest has 512 MiB until the third rest, and `after` from then on. A rest comes when the one before was asked about.
    """
    env = _commands(tmp_path, 0)
    rests = tmp_path / "rests"
    rests.mkdir()
    (tmp_path / "xl").write_text(
        f"""#!/bin/sh
case $1 in
domid) echo 7;;
mem-set) sleep {SLOW}; echo "$3" >{tmp_path}/target; echo set >{tmp_path}/go;;
list) echo list >>{tmp_path}/log
  n=512; [ -e {rests}/3 ] && n={after}
  printf 'Name ID Mem VCPUs\\n%s 1 %s 2 r 1.0\\n' "$2" "$n";;
esac
""",
        encoding="utf-8",
    )
    os.mkfifo(tmp_path / "go")
    watch = tmp_path / "xenstore-watch"
    watch.write_text(
        f"""#!/bin/sh
echo "$1" >>{tmp_path}/log
sleep {SLOW}
echo first
cat {tmp_path}/go >/dev/null
i=0
while [ $((i += 1)) -le {times} ]; do
  until [ "$(grep -c list {tmp_path}/log)" -gt "$i" ]; do sleep 0.01; done
  : >{rests}/$i; echo rests >>{tmp_path}/log; echo "$1"
done
{then}
""",
        encoding="utf-8",
    )
    watch.chmod(0o755)
    return env


@pytest.mark.parametrize(("direction", "after", "target"), [(-1, 448, "449m"), (1, 576, "577m")])
def test_where_the_balloon_tells_nothing_is_asked_in_between(tmp_path: Path, direction: int, after: int, target: str) -> None:
    """Each rest is one question, and who told is stopped, else this would wait for it. xenstore's first event always comes."""
    done = subprocess.run(
        ["sh", "-c", told_script("guest", 64, direction, 20)],
        env=_rests(tmp_path, 3, "exec sleep 60", after),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    change = parse_change(done.stdout)
    assert change.mib == direction * 64 and SLOW <= change.seconds < 20
    # The watch has to be there before the command, and is not in its time.
    assert change.began - change.start >= SLOW
    assert (tmp_path / "target").read_text(encoding="utf-8").strip() == target
    log = (tmp_path / "log").read_text(encoding="utf-8").split()
    assert log == ["list", "/local/domain/7/data/balloon-rests", "list", *["rests", "list"] * 3]


@pytest.mark.parametrize(("times", "then"), [(2, "exec sleep 60"), (2, "exit 1")], ids=["silent", "gone"])
def test_a_balloon_that_never_gets_there_is_given_up(tmp_path: Path, times: int, then: str) -> None:
    done = subprocess.run(
        ["sh", "-c", told_script("guest", 64, -1, 1)],
        env=_rests(tmp_path, times, then),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1 and done.stdout == ""


@pytest.mark.parametrize(("says", "status"), [("exit 0", 0), ("exit 3", 3)])
def test_the_script_of_vnode_set(tmp_path: Path, says: str, status: int) -> None:
    """It asks the hypervisor before and after, outside of the time; the command's words and status are passed on."""
    env = _commands(tmp_path, 448)
    xl = tmp_path / "xl"
    xl.write_text(xl.read_text(encoding="utf-8").replace("list) ", f"list) sleep {SLOW};"), encoding="utf-8")
    command = f"sh -c 'sleep {SLOW}; echo words; : >{tmp_path}/target; : >{tmp_path}/seen; {says}'"
    done = subprocess.run(["sh", "-c", vnode_script("g", command)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status and done.stderr == "words\n"
    if status == 0:
        change = parse_change(done.stdout)
        assert change.mib == -64 and SLOW <= change.seconds < 10
        assert change.began - change.start >= SLOW and change.last - change.ended >= SLOW
    else:
        assert done.stdout == ""


SYSFS = "/sys/devices/system/xen_memory/xen_memory0/scrub_pages"  # as Linux documents it


class PlayedDom0:
    """A hypervisor whose superpage path can be switched, and that counts one entry of the p2m for each extent or page."""

    def __init__(self, fails: str = "", off_mib: int = 0, scrubs_then: bool = True, deaf: bool = False) -> None:
        """What fails, and whether memory is cleared when it does; deaf: who clears it cannot be set."""
        self.scrubs, self.deaf = True, deaf
        self.superpages = False  # an earlier measurement has left it so
        self.scrubbed: list[bool] = []  # of each change of memory, whether somebody clears it
        self.written = self.dirtied = 0
        self.node_mib = 512
        self.off_mib = off_mib
        self.fails, self.scrubs_then = fails, scrubs_then
        self.typed: list[str] = []

    def __call__(self, command: str, timeout: float = 60.0) -> Done:
        self.typed.append(command)
        if self.fails and self.fails in command and self.scrubs == self.scrubs_then:
            return Done(3, "", "refused")
        if match := re.fullmatch(r"xl set-parameters guest-remove-range=(yes|no)", command):
            self.superpages = match[1] == "yes"
        elif match := re.fullmatch(r"xl set-parameters scrub-domheap=(yes|no)", command):
            self.scrubs = match[1] == "yes" or self.deaf
        elif match := re.fullmatch(rf"echo ([01]) >{SYSFS} && cat {SYSFS}", command):
            self.scrubs = match[1] == "1" or self.deaf
            return Done(0, f"{int(self.scrubs)}\n")
        elif command == "xenperf":
            counts = dict.fromkeys(COUNTERS.values(), self.written) | dict.fromkeys(DIRTIED.values(), self.dirtied)
            return Done(0, "".join(f"{name:<35}  T= {count}\n" for name, count in counts.items()))
        elif match := re.search(r"want=\$\(\(before \+ (-?\d+)\)\)", command):
            self.written += abs(int(match[1])) * 256
            self.scrubbed.append(self.scrubs)
            return Done(0, f"10.0 16.0 1000 {1000 + int(match[1]) + self.off_mib} 9.0 17.5\n")
        elif match := re.search(r"xl vnode-set g 1 (\d+)M", command):
            before, self.node_mib = self.node_mib, int(match[1])
            changed = abs(self.node_mib - before)
            self.scrubbed.append(self.scrubs)
            self.written += changed // 2 * (1 if self.superpages else 512)
            self.dirtied += 256 * max(0, before - self.node_mib) * self.scrubs
            return Done(0, f"20.0 20.5 {before} {self.node_mib + self.off_mib} 19.0 21.5\n")
        return Done(0, "")


SMALL = Sizes((16, 32), (64, 128), (128, 256))


def guests(dom0: PlayedDom0) -> tuple[ElasticGuest, Node]:
    return ElasticGuest("s", dom0, dom0), Node(ElasticGuest("g", dom0, dom0), 1, 512)


def compared(dom0: PlayedDom0, steps: list[Step], runs: int = 2, upstream: ElasticGuest | None = None) -> list[str]:
    """What went wrong and did not end it."""
    wrong = list[str]()
    measure(*guests(dom0), steps, runs, SMALL, wrong=wrong, upstream=upstream)
    return wrong


def test_the_whole_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    """Stock and ours alternate, each size of each, the second time in the opposite order; then order9 without the superpage
    path, which is on again at the end. Before all of it the largest of each is taken and given once, and nothing said of it."""
    dom0, steps = PlayedDom0(), list[Step]()
    compared(dom0, steps, runs=3)
    assert [(step.way, step.mib, step.run, step.counts["p2m_writes"]) for step in steps if step.operation == TAKE] == [
        *[
            found
            for little, much in ((16, 128), (32, 256))
            for found in (("stock_4k", little, 0, little * 256), ("ours", much, 0, much // 2))
        ],
        *[
            found
            for little, much in ((32, 256), (16, 128))
            for found in (("ours", much, 1, much // 2), ("stock_4k", little, 1, little * 256))
        ],
        *[
            found
            for little, much in ((16, 128), (32, 256))
            for found in (("stock_4k", little, 2, little * 256), ("ours", much, 2, much // 2))
        ],
        *[("order9", mib, 0, mib * 256) for mib in (64, 128)],
    ]
    assert {step.seconds for step in steps if step.way == "stock_4k"} == {6.0}, "of the command, not of the script"
    assert [step.operation for step in steps] == [TAKE, GIVE] * (len(steps) // 2)
    assert dom0.superpages and dom0.node_mib == 512
    typed = [match[1] for command in dom0.typed if (match := re.search(r"xl vnode-set g 1 (\d+)M", command))]
    assert typed[:4] == ["256", "512", "384", "512"] and len(typed) == 2 + sum("stock" not in step.way for step in steps)
    pages = [match[1] for command in dom0.typed if (match := re.search(r"want=\$\(\(before \+ (-?\d+)\)\)", command))]
    assert pages[:4] == ["-32", "32", "-16", "16"] and len(pages) == 2 + sum("stock" in step.way for step in steps)
    assert [command for command in dom0.typed if "tach" in command] == ["xl vnode-attach g 1", "xl vnode-detach g 1"]
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(steps) and said[2] == "run 0: ours take 128 MiB: 0.50 s"


def test_upstreams_host_has_its_turn_first() -> None:
    """In each size of each run, and with no question to a hypervisor that has no counters. Then both without scrubbing."""
    dom0, upstream, steps = PlayedDom0(), PlayedDom0(), list[Step]()
    assert compared(dom0, steps, upstream=ElasticGuest("u", upstream, upstream)) == []
    ways = ("stock", "stock_4k", "ours", "stock_unscrubbed", "ours_unscrubbed")
    assert [(step.way, step.operation) for step in steps if step.way != "order9"] == [
        (way, operation)
        for order in (ways, ways, ways[::-1], ways[::-1])
        for way in order
        for operation in (TAKE, GIVE)
    ]
    for way in ("stock", "stock_unscrubbed", "ours_unscrubbed"):
        sizes = (128, 128, 256, 256) if "ours" in way else (16, 16, 32, 32)
        assert [(step.mib, step.run) for step in steps if step.way == way] == [
            *[(mib, 0) for mib in sizes],
            *[(mib, 1) for mib in sizes[::-1]],
        ]
    assert all(not step.counts for step in steps if step.way in ("stock", "stock_unscrubbed"))
    changes = [command for command in upstream.typed if "scrub_pages" not in command]
    assert len(changes) == 18 and all("xenstore-watch" in command for command in changes)
    assert upstream.scrubbed == [True, True, *[True, True, False, False] * 2, *[False, False, True, True] * 2]
    cleared = [*[True, True, True, True, False, False] * 2, *[False, False, True, True, True, True] * 2]
    assert dom0.scrubbed == [*[True] * 4, *cleared, *[True] * 4] and dom0.scrubs
    dirtied = next(metric for metric in metrics(steps) if metric.metric == "balloon.take.dirtied_per_2mib")
    assert dirtied.value == 512.0 and dirtied.baseline["ours_unscrubbed"] == 0.0


def test_without_upstreams_host_the_rest_goes_on() -> None:
    """From its first failure, which is told in the end; also before anything counts."""
    dom0, upstream, steps = PlayedDom0(), PlayedDom0(off_mib=1), list[Step]()
    wrong = compared(dom0, steps, upstream=ElasticGuest("u", upstream, upstream))
    assert wrong == ["upstream's host, before all runs: xl mem-set on upstream's host: Xen counts -31 MiB, not -32"]
    assert len(upstream.scrubbed) == 1 and {step.way for step in steps} == {"stock_4k", "ours", "order9"}
    assert compared(dom0, [], runs=1) == []
    upstream = PlayedDom0("mem-set u", scrubs_then=False)
    (lost,) = compared(dom0, [], upstream=ElasticGuest("u", upstream, upstream))
    assert lost.startswith("upstream's host, run 0, 16 MiB") and "refused" in lost and len(upstream.scrubbed) == 4


@pytest.mark.parametrize(
    ("upstream", "words"),
    [
        (PlayedDom0("scrub_pages"), "exit status 3\nrefused"),
        (PlayedDom0(deaf=True), f"{SYSFS} is '1', not 0: who clears pages is not known"),
    ],
    ids=["refused", "not so"],
)
def test_who_clears_pages_is_known(upstream: PlayedDom0, words: str) -> None:
    """Of a kernel that does not do what it is told, nothing is compared that would say that it does."""
    dom0, steps = PlayedDom0(), list[Step]()
    (lost,) = compared(dom0, steps, upstream=ElasticGuest("u", upstream, upstream))
    assert words in lost and not any(upstream.scrubs != (step.way == "stock") for step in steps if step.way in UPSTREAM)
    assert "stock_unscrubbed" not in {step.way for step in steps} and "ours" in {step.way for step in steps}
    assert ("stock" in {step.way for step in steps}) == upstream.deaf


def test_what_is_compared_without_clearing_is_cleared_by_nobody() -> None:
    dom0 = PlayedDom0(deaf=True)
    upstream = PlayedDom0()
    with pytest.raises(RuntimeError, match=r"take 128 MiB with scrub-domheap=no: 32768 frames are to be cleared, not 0"):
        compared(dom0, [], upstream=ElasticGuest("u", upstream, upstream))


class PlayedRack:
    """A rack whose host starts guests that are played."""

    def __init__(self, dom0: PlayedDom0) -> None:
        self.dom0 = dom0

    def __enter__(self) -> PlayedRack:
        return self

    def __exit__(self, *_: object) -> None:
        self.dom0.typed.append("power off")

    def host(self) -> PlayedRack:
        return self

    def start_guest(self, config: Path, overrides: dict[str, str]) -> ElasticGuest:
        guest = ElasticGuest("s" if "stock" in config.name else "g", self.dom0, self.dom0)
        guest.listed = lambda: {1: {"max_kib": NODE_MIB << 10}}  # type: ignore[method-assign]
        return guest


@pytest.mark.parametrize("boots", [True, False])
def test_the_command_measures_what_it_can(
    boots: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both racks run at once and are powered off; one that does not boot is an error in the end, and the rest was measured."""
    dom0, upstream = PlayedDom0(), PlayedDom0()
    dom0.node_mib = NODE_MIB
    racks: list[str] = []

    def boot_stock(name: str) -> PlayedRack:
        racks.append(name)
        if not boots:
            raise LabError("Xen does not boot")
        return PlayedRack(upstream)

    def boot(description: RackDescription, meter: bool) -> PlayedRack:
        racks.append(f"{description.name} {description.hosts[0].xen_arguments}")
        return PlayedRack(dom0)

    monkeypatch.setattr(stock_host, "boot", boot_stock)
    monkeypatch.setattr(stock_host, "start_guest", lambda host, *words: host.start_guest(*words))
    monkeypatch.setattr(Rack, "boot", boot)
    monkeypatch.setattr(results, "kept", partial(results.kept, directory=tmp_path))
    assert balloon.main(["--runs=2"]) == (0 if boots else 1)
    assert racks == ["large-node@stock", "large-node bootscrub=on"]
    found = {metric.metric: metric for metric in results.read(tmp_path / "balloon.json").metrics}
    fixed = found["balloon.take.stock_4k.fixed_seconds"]
    assert fixed.value is not None and len(fixed.runs) == 2
    assert ("stock_s_per_gib" in found["balloon.take.ratio"].baseline) == boots
    failures = found["balloon.failures"]
    assert failures.value == (0 if boots else 1) and ("upstream's host: Xen does not boot" in failures.note) != boots
    assert dom0.typed[-1] == "power off" and (not boots or upstream.typed[-1] == "power off")
    assert ("balloon: upstream's host: Xen does not boot" in capsys.readouterr().err) != boots


@pytest.mark.parametrize(
    ("dom0", "message"),
    [
        (PlayedDom0("vnode-set g 1 256M"), "exit status 3: refused"),
        (PlayedDom0("range=no"), "exit status 3\nrefused"),
        (PlayedDom0("mem-set s"), "exit status 3\nrefused"),
        (PlayedDom0(off_mib=2), "Xen counts -254 MiB, not -256"),
        (PlayedDom0(off_mib=1), "Xen counts -255 MiB, not -256"),
        (PlayedDom0("domheap=no"), "exit status 3\nrefused"),
        (PlayedDom0("vnode-set g 1 384M", scrubs_then=False), "exit status 3: refused"),
    ],
    ids=["vnode-set", "parameter", "mem-set", "count", "count of one less", "scrubbing", "vnode-set, unscrubbed"],
)
def test_what_goes_wrong_leaves_the_hypervisor_as_it_was(dom0: PlayedDom0, message: str) -> None:
    steps = list[Step]()
    upstream = PlayedDom0()
    with pytest.raises((RuntimeError, CommandFailedError), match=message):
        compared(dom0, steps, runs=1, upstream=ElasticGuest("u", upstream, upstream))
    assert dom0.superpages and dom0.scrubs and dom0.typed[-1] == "xl vnode-detach g 1"


def test_stocks_amount_is_what_the_hypervisor_counted() -> None:
    """Whatever was asked for, up or down."""
    dom0 = PlayedDom0(off_mib=-2)
    stock, _ = guests(dom0)
    assert [stock_step(stock, operation, 16).mib for operation in (TAKE, GIVE)] == [18, 14]


def test_a_node_that_does_not_come_is_not_measured() -> None:
    dom0 = PlayedDom0("vnode-attach")
    with pytest.raises(RuntimeError, match="xl vnode-attach: exit status 3: refused"):
        compared(dom0, [], runs=1)
    assert not [command for command in dom0.typed if "-set" in command]
