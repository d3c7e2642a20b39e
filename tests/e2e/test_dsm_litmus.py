# SPDX-License-Identifier: GPL-2.0
"""Litmus tests of one Linux on two hosts: only what x86-TSO allows, in rounds in which two hosts really race.

Four CPUs on each, so four teams of two threads, or two of four, wait for one page at a time (benchmarks/programs/dsm_litmus.c).
The guest's clock is as slow as it can be: a tick is a race for pages, too, and takes those that rounds wait for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import litmus
from benchmarks.results import kept
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.span_guest import MOST_SLOW
from tests.e2e.conftest import soak
from tests.e2e.span_guest import Lives, lives_on, ran

CPUS = 4  # of each host, all of them the guest's
WAITED_US = 3000  # an access that takes so long has waited for a page: one takes 5 ms and more
BEGIN_S, RACED_S = 300.0, 0.2  # s, until all threads have begun, and for a round that has raced, at most
MOST_BY_CHANCE = 0.05  # of rounds, without any page on its way: another one had the CPU


def wide() -> RackDescription:
    """Two hosts with so many CPUs each: a guest has no more on a host than that has itself."""
    rack = RackDescription.load("two-hosts")
    hosts = [
        dataclasses.replace(host, nodes=tuple(dataclasses.replace(node, cpus=CPUS) for node in host.nodes))
        for host in rack.hosts
    ]
    return dataclasses.replace(rack, hosts=tuple(hosts))


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with lives_on(tmp_path_factory.mktemp("dsm"), wide(), slow=MOST_SLOW) as made:
        made.shape = dataclasses.replace(made.shape, cpus=CPUS)
        yield made


def race(lives: Lives, shapes: Sequence[str], raced: int, scratch: Path, name: str) -> None:
    """All variants of these shapes, until in so many rounds of each a page was on its way: nothing is seen that TSO forbids.

    Its figures are kept by that name.
    """
    home, far = lives.shape.cpus_of(0), lives.shape.cpus_of(1)
    cpus = ",".join(f"{here},{there}" for here, there in zip(home, far, strict=True))
    hosts = ",".join(["0,1"] * CPUS)
    words = f"--shape={','.join(shapes)} --cpus={cpus} --hosts={hosts} --nodes=0,1 --rounds=100000000 --raced={raced}"
    words += f" --slow-us={WAITED_US // lives.site.slow}"
    pairs = [(shape, variant) for shape in shapes for variant in litmus.VARIANTS]
    with lives.borrowed(attached=True) as guest:
        limit = BEGIN_S + raced * RACED_S * len(pairs)
        done = ran(lives.site, guest, f"{PROGRAMS}/dsm_litmus {words}", scratch / "litmus", limit)
    found = litmus.parse(done.out)
    for each in found:
        print(each)
    kept(name, litmus.metrics(found))
    assert done.status == 0 and all(each.forbidden == 0 for each in found), found
    assert [(each.shape, each.variant) for each in found] == pairs
    assert all(each.raced >= raced for each in found), found


def test_rounds_of_one_host_do_not_race(lives: Lives, tmp_path: Path) -> None:
    """The same with CPUs of the home alone, as if they were of two hosts: no page is on its way, so (nearly) none counts.

    But for locked accesses of two cache lines, of which nothing is asked: they stop all CPUs of an emulated machine, for as
    long as it takes until each has been given a processor. Beside load 41 of 257 rounds waited as if for a page, once;
    another time 7 overlapped and none waited (28 November).
    """
    variants = ["plain", "lock", "split", "nt"]
    words = f"--shape=mp --variant={','.join(variants)} --hosts=0,1,0,1 --nodes=0,0 --rounds=256"
    words += f" --cpus={','.join(map(str, lives.shape.cpus_of(0)))} --slow-us={WAITED_US // lives.site.slow}"
    with lives.borrowed(attached=True) as guest:
        done = ran(lives.site, guest, f"{PROGRAMS}/dsm_litmus {words}", tmp_path / "litmus", BEGIN_S)
    found = litmus.parse(done.out)
    print(found)
    assert done.status == 0 and [each.variant for each in found] == variants, done
    assert all(each.rounds >= 256 for each in found), found
    for each in found:
        assert each.variant == "split" or each.raced <= each.rounds * MOST_BY_CHANCE, each


def test_litmus(lives: Lives, tmp_path: Path) -> None:
    """A thousand rounds of each shape, a fifth of them of each variant."""
    race(lives, litmus.SHAPES, 200, tmp_path, "litmus")


@pytest.mark.parametrize("shape", [soak(shape, name=shape) for shape in litmus.SHAPES])
def test_litmus_for_long(lives: Lives, tmp_path: Path, shape: str) -> None:
    """A hundred thousand rounds of a shape; each takes between a quarter of an hour and more than one."""
    race(lives, [shape], 20000, tmp_path, f"litmus-{shape}")
