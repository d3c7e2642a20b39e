# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tests of its locks and of RCU, with a CPU on each of two hosts and threads of each kind on both.

As test_kernel of test_dsm_torture.py, which has both CPUs on one host. Its kernel is not of every build:
`python3 -m lab.pipeline.build linux-torture` in the sandbox makes it, in some ten minutes.

It takes some twelve minutes then on two quiet processors: two for the hosts and the guest, one for the attach, and one and a
half for each of the five tests; ten minutes more for each of the longer cases, which `make soak` runs, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab import kernel_torture as torture
from lab.command import checked, run_in
from lab.elastic_guest import PROGRAMS
from lab.far_guest import state
from lab.guest import Guest
from lab.kernel_torture import TORTURES, Torture
from lab.pipeline.paths import ARTIFACTS
from lab.span_guest import PATIENCE, SpanShape
from tests.e2e.conftest import soak
from tests.e2e.span_guest import Lives, lives_on, with_kernel

pytestmark = pytest.mark.fresh

CPUS = (0, 1)  # at home, elsewhere
STEP = "linux-torture"
SECONDS, LONGER = 60, 600  # of the hosts' clock


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with lives_on(tmp_path_factory.mktemp("dsm")) as made:
        yield made


@pytest.fixture(scope="module")
def shape(lives: Lives) -> SpanShape:
    """Of a guest with the kernel that has these modules."""
    return with_kernel(lives.site, lives.shape, STEP)


def load(guest: Guest, each: Torture) -> None:
    """It runs. What it stands on is loaded, too."""
    inside = run_in(guest)
    for name in ("torture", each.module):
        file = f"/tmp/{name}.ko"
        if inside(f"test -e {file}").status:
            guest.put(ARTIFACTS / STEP / f"{name}.ko", file)
        words = each.parameters if name == each.module else ""
        checked(inside, f"grep -q '^{name} ' /proc/modules || {PROGRAMS}/load_module {file} {words}", PATIENCE)


@pytest.mark.parametrize("seconds", [SECONDS, soak(LONGER)])
@pytest.mark.parametrize("each", TORTURES, ids=lambda each: each.kind)
def test_the_kernels_own_tests(lives: Lives, shape: SpanShape, each: Torture, seconds: int) -> None:
    """Locks exclude each other and RCU's readers see nothing that has gone, with threads of each kind on both hosts."""
    with lives.borrowed(attached=True, shape=shape) as guest:
        inside = run_in(guest)
        mark = f"{each.kind} begins"
        checked(inside, f"echo '<5>{mark}' >/dev/kmsg", PATIENCE)
        load(guest, each)
        began = torture.threads_of(checked(inside, torture.THREADS, PATIENCE))
        places = torture.shared_out(began, CPUS)
        print(began, places)
        assert set(places.values()) == set(CPUS), began
        checked(inside, torture.binding(places), PATIENCE)
        began = torture.threads_of(checked(inside, torture.THREADS, PATIENCE))
        # By a clock that is slower.
        checked(inside, f"sleep {seconds / lives.site.slow:.1f}", seconds + PATIENCE)
        now = torture.threads_of(checked(inside, torture.THREADS, PATIENCE))
        print(now)
        assert torture.idle(places, began, now) == [], state(lives.site.home)
        checked(inside, f"{PROGRAMS}/load_module -r {each.module}", PATIENCE)
        log = torture.since(checked(inside, "dmesg", PATIENCE), mark)
        assert torture.ends(log) == [torture.End(each.kind, "SUCCESS")], log
        done = torture.least(log, each)
        print(f"{each.kind}: at least {done}\n{log}")
        assert done > 0, log
