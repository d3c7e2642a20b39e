# SPDX-License-Identifier: GPL-2.0
"""The slopes of a detach from made-up ones, and how it is measured, with a played guest."""

from __future__ import annotations

import re

import pytest

from benchmarks import detach
from benchmarks.detach import FREE, HOME_MIB, NODE_MIB, SIZES, USED, Detach, measure, metrics
from benchmarks.results import Metric, Result, encode, host_info, now, problems
from lab.command import Done
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError


def line(series: str, s_per_gib: float, run: int = 0, offline: float = 0.25) -> list[Detach]:
    """Detaches on a line that begins at 2 s; a part of the slope is one phase's, and another phase is always the same."""
    return [
        Detach(
            series,
            run,
            mib,
            2 + s_per_gib * mib / 1024,
            {"evacuate": 1.5, "offline": offline * s_per_gib * mib / 1024},
            0.5 + s_per_gib / 2 * mib / 1024,
        )
        for mib in SIZES[series]
    ]


def figures(detaches: list[Detach]) -> dict[str, Metric]:
    return {metric.metric: metric for metric in metrics(detaches)}


def test_slopes_and_those_of_the_phases() -> None:
    found = figures([*line(FREE, 0.8), *line(USED, 16.0), *line(FREE, 1.2, run=1), *line(USED, 20.0, run=1)])
    assert {metric.better for metric in found.values()} == {"lower"} and len(found["detach.slope.fixed_seconds"].runs) == 2
    assert found["detach.slope.free"].value == pytest.approx(1.0)
    assert list(found["detach.slope.used"].runs) == pytest.approx([16.0, 20.0])
    assert found["detach.slope.fixed_seconds"].value == pytest.approx(2.0)
    assert found["detach.slope.used"].baseline == {"evacuate_s_per_gib": 0.0, "offline_s_per_gib": 4.5}
    assert found["detach.slope.free"].note == "slope over 1024, 2560, 5120 MiB of the node, idle"
    assert list(found["attach.slope"].runs) == pytest.approx([0.4, 0.6])
    assert found["attach.fixed_seconds"].value == pytest.approx(0.5)
    of_5_gib = found["detach.free.of_5120_mib_seconds"]
    assert list(of_5_gib.runs) == pytest.approx([6.0, 8.0])


def test_without_three_sizes_there_is_none() -> None:
    for sizes in (1, 2):
        found = figures([*line(FREE, 0.8), *line(USED, 16.0)[:sizes]])
        assert found["detach.slope.used"].value is None and found["detach.slope.free"].value is not None
        assert found["detach.slope.used"].note == "not measured: it takes 3 sizes" and not found["detach.slope.used"].baseline
    for name in ("detach.slope.fixed_seconds", "attach.slope", "attach.fixed_seconds"):
        found = figures([*line(FREE, 0.8)[:2], *line(USED, 16.0)])
        assert found[name].value is None and found[name].note == "not measured"
    for some in ([], line(USED, 1.0), line(FREE, 1.0)):
        assert problems(encode(Result("detach", now(), host_info(), metrics(some)))) == []


def test_the_home_has_room_for_what_is_in_use() -> None:
    assert max(SIZES[USED]) * 1.5 < HOME_MIB and max(SIZES[FREE]) == NODE_MIB
    assert all(len(sizes) >= 3 for sizes in SIZES.values())


class Played:
    """A guest whose detach takes a second for a GiB of the node and ten for a GiB in use; its tmpfs is where it should be."""

    def __init__(self, fails: str = "", elsewhere: bool = False) -> None:
        self.fails, self.elsewhere = fails, elsewhere
        self.size = self.used = 0
        self.log: list[str] = []

    def dom0(self, command: str, timeout: float = 60.0) -> Done:
        if command.startswith("domid="):
            return Done(0, '/local/domain/1/vnuma/guest/node/1/phases = "evacuate=5,offline=7"   (n1)\n')
        self.log.append(command)
        if self.fails and self.fails in command:
            return Done(3, "", "refused")
        if match := re.fullmatch(r"xl vnode-attach g 1(?: size=(\d+)M)?", command):
            assert not self.size
            self.size = int(match[1] or NODE_MIB)
            return Done(0, "", "", 1 + self.size / 2048)
        assert command == "xl vnode-detach g 1"
        seconds, self.size = (self.size + 10 * self.used) / 1024, 0
        return Done(0, "", "", seconds)

    def guest(self, command: str, timeout: float = 60.0) -> Done:
        if match := re.search(r"numactl --preferred=1 dd .* count=(\d+)", command):
            assert self.size and not self.used
            self.used = int(match[1])
        elif "meminfo" in command:
            return Done(0, f"Node 1 MemFree: 5 kB\nNode 1 Shmem:   {0 if self.elsewhere else self.used * 1024} kB\n")
        else:
            assert command == f"umount {detach.FOLDER}" and not self.size
            self.used = 0
        return Done(0, "")


def test_both_series_alternate() -> None:
    played, found = Played(), list[Detach]()
    measure(ElasticGuest("g", played.dom0, played.guest), found, runs=3)
    assert [(each.run, each.series, each.mib) for each in found] == [
        (run, series, SIZES[series][index])
        for run, order in enumerate(((0, 1, 2), (2, 1, 0), (0, 1, 2)))
        for index in order
        for series in (FREE, USED)
    ]
    # And one before, of which nothing is told.
    first = [f"xl vnode-{what}" for what in ("attach g 1 size=1024M", "detach g 1")]
    assert played.log[:4] == first * 2 and len(played.log) == 38
    assert figures(found)["detach.slope.free"].value == pytest.approx(1.0)
    assert figures(found)["detach.slope.used"].value == pytest.approx(10.0)
    assert figures(found)["attach.slope"].value == pytest.approx(0.5)
    assert figures(found)["attach.fixed_seconds"].value == pytest.approx(1.0)
    assert found[0].phases == {"evacuate": 5e-6, "offline": 7e-6}
    assert played.used == 0 and played.size == 0


@pytest.mark.parametrize(
    ("played", "words", "whole"),
    [
        (Played(fails="attach"), "vnode-attach: exit status 3: refused", 0),
        (Played(fails="detach"), "vnode-detach: exit status 3: refused", 0),
        (Played(elsewhere=True), "only 0 MiB of 128 are on node 1", 1),
    ],
    ids=["attach", "detach", "elsewhere"],
)
def test_what_goes_wrong_ends_it(played: Played, words: str, whole: int) -> None:
    found = list[Detach]()
    with pytest.raises(LabError, match=words):
        measure(ElasticGuest("g", played.dom0, played.guest), found, runs=1)
    assert len(found) == whole
