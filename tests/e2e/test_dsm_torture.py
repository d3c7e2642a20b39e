# SPDX-License-Identifier: GPL-2.0
"""Linux with its second CPU in another slice of the same host is tortured: its pages by dsm_torture, its locks and RCU by the
kernel's own tests of them. And what its ticks cost, with hot data packed and in pages of its own (section 4 of issue 8).

Two of the kernels are not of every build: `python3 -m lab.pipeline.build linux-torture linux-vsmp` in the sandbox makes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import torture
from benchmarks.results import write
from benchmarks.ticks import Moment, faults_of, per_tick
from lab.command import Run, checked
from lab.complaints import complaints
from lab.host import Host
from lab.images.tree import Tree
from lab.kernel_torture import End, ends
from lab.patience import wait_for
from lab.pipeline.paths import ARTIFACTS
from lab.span_guest import HZ
from lab.spanning import STATS
from tests.e2e import test_dsm_linux_vcpu as linux
from tests.e2e.conftest import Stable
from tests.e2e.dsm_program import DsmProgram
from tests.e2e.test_dsm_linux_vcpu import console

__all__ = ["console"]

pytestmark = pytest.mark.fresh

SLOW = linux.WAYS["events"].slow
END = linux.WAYS["apic"].end  # it halts its CPUs by itself

# A millisecond of the host's is 0.1 of the guest's. Xen's console takes 80 characters a line: numbers only.
TORTURE = f"--cpus=0,1 --operations=5120 --seconds=60 --pages=8 --slow-us={1000 // SLOW} --stuck-s=60 --pressure=256"
PAGES_INIT = """echo 1 >{online}
say online $(cat /sys/devices/system/cpu/online)
/opt/xenuma/bin/dsm_torture {words} >/torture.out 2>/torture.err
say torture $?
sed 's/"[a-z_]*"://g; s/[{{}}"]//g' /torture.out | while read -r line; do say $line; done
head -n 3 /torture.err | while read -r line; do say error $line; done
exec {end}
"""

# What is tortured, and with what; seconds of the guest. Each says "End of test: SUCCESS" or something else as it is taken away.
# Xen keeps 16 KiB of a console: no figures meanwhile. Their stalls and boosts are for clocks that are not ten times slower.
MODULES = (
    ("locktorture", "torture_type=spin_lock nwriters_stress=4 stat_interval=0 verbose=0", 10),
    ("locktorture", "torture_type=mutex_lock nwriters_stress=4 stat_interval=0 verbose=0", 10),
    ("locktorture", "torture_type=rwsem_lock nwriters_stress=2 nreaders_stress=2 stat_interval=0 verbose=0", 10),
    ("rcutorture", "torture_type=rcu nreaders=3 nfakewriters=2 fwd_progress=0 test_boost=0 stat_interval=0 verbose=0", 20),
    ("rcutorture", "torture_type=srcu nreaders=3 nfakewriters=2 fwd_progress=0 test_boost=0 stat_interval=0 verbose=0", 20),
)
KERNEL_INIT = """echo 1 >{online}
say online $(cat /sys/devices/system/cpu/online)
/opt/xenuma/bin/load_module /torture.ko || say error torture
{modules}
say last $(cat /sys/devices/system/cpu/online)
exec {end}
"""
MODULE_INIT = """/opt/xenuma/bin/load_module /{name}.ko {words} 2>&1 | while read -r line; do say error $line; done
sleep {seconds}
/opt/xenuma/bin/load_module -r {name} 2>&1 | while read -r line; do say error $line; done
"""

# CPU 1 has ticks as long as it is busy; this touches nothing of others.
TICKS = "$(awk '/timer0$/ {a = $2} /timer1$/ {b = $3} END {print a, b}' /proc/interrupts)"
BUSY_S = 6  # of the guest: 600 ticks
TICKS_INIT = f"""echo 1 >{linux.ONLINE}
say online $(cat /sys/devices/system/cpu/online)
taskset -c 1 sh -c 'while :; do :; done' &
sleep 2
say begun {TICKS}
sleep {BUSY_S}
say ended {TICKS}
sleep 2
exec {END}
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """What the guest runs. `step`: of the pipeline, whose kernel it has; "": the usual one. `modules`: of that kernel."""

    init: str
    step: str = ""
    modules: Sequence[str] = ()


CASES = {
    "pages": Case(PAGES_INIT.format(online=linux.ONLINE, words=TORTURE, end=END)),
    "kernel": Case(
        KERNEL_INIT.format(
            online=linux.ONLINE,
            end=END,
            modules="".join(MODULE_INIT.format(name=name, words=words, seconds=s) for name, words, s in MODULES),
        ),
        "linux-torture",
        ("torture", "locktorture", "rcutorture"),
    ),
    "plain": Case(TICKS_INIT),
    "vsmp": Case(TICKS_INIT, "linux-vsmp"),
}


def put(host: Host, dom0: Run, folder: Path, case: Case) -> str:
    """Kernel and initramfs of the guest come to dom0. Returns its configuration."""
    tree = Tree()
    tree.add_bytes("/vcpu-init", (linux.BEGIN.format() + case.init).encode(), 0o755)
    text = linux.config(dom0, linux.WAYS["events"])
    if case.step:
        built = ARTIFACTS / case.step
        assert built.is_dir(), f"no {built}: python3 -m lab.pipeline.build {case.step}"
        for name in case.modules:
            tree.add_bytes(f"/{name}.ko", (built / f"{name}.ko").read_bytes(), 0o644)
        host.put(built / "vmlinuz", "/tmp/vmlinuz")
        text = text.replace('"/boot/vmlinuz"', '"/tmp/vmlinuz"')
    tree.write_cpio(folder / "init.cpio")
    host.put(folder / "init.cpio", "/tmp/init.cpio")
    checked(dom0, "cat /boot/guest.cpio.gz /tmp/init.cpio >/tmp/vcpu.cpio")
    return text


@contextlib.contextmanager
def guest_of(stable: Stable, host: Host, dom0: Run, folder: Path, case: Case) -> Iterator[DsmProgram]:
    """It runs."""
    stable.leave_all()
    text = put(host, dom0, folder, case)
    try:
        with linux.two_slices(dom0, text, SLOW) as daemon:
            checked(dom0, "xl unpause dsm")
            yield daemon
    finally:
        dom0("rm -f /tmp/vmlinuz /tmp/init.cpio /tmp/vcpu.cpio")


def has_ended(dom0: Run, seconds: float) -> str:
    """Xen's log after both slices have shut down."""
    wait_for("both slices have shut down", seconds, lambda: linux.have_ended(dom0), interval=3)
    log = checked(dom0, "xl dmesg")
    states = linux.states(dom0)
    assert len(states) == 2 and all("s" in state and "c" not in state for state in states), states
    assert complaints(log) == []
    return log


@pytest.mark.usefixtures("console")
def test_pages(stable: Stable, host: Host, dom0: Run, tmp_path: Path) -> None:
    """Nothing is lost, torn or old, and every operation had to wait for pages."""
    with guest_of(stable, host, dom0, tmp_path, CASES["pages"]) as daemon:
        log = has_ended(dom0, 1500)
        said = linux.said_of(log)
        print({key: value for key, value in said.items() if not key.startswith("wrong")})
        assert "error" not in said and said["online"] == "0-1" and said["torture"] == "0", said
        operations = [
            torture.Operation(name, int(count), int(slow), int(wrong))
            for name, count, slow, wrong in re.findall(r"VCPU operation,([a-z]+),(\d+),(\d+),(\d+)", log)
        ]
        turns = re.search(r"VCPU result,(\d+),(\d+),(\d+)", log)
        assert turns and int(turns[1]) > 0
        run = torture.Run(int(turns[1]), operations, [], 0)
        assert [each.operation for each in operations] == list(torture.OPERATIONS[:-1])
        assert run.wrong == 0 and sum(each.count for each in operations) == int(turns[2])
        # Its own memory waits for no page of others.
        assert all(each.slow > 0 for each in operations if each.operation != "pressure"), operations
        write("dsm-torture", torture.metrics(run))
        found = daemon.end()
        assert found["pinned"] == 0, found


@pytest.mark.usefixtures("console")
def test_kernel(stable: Stable, host: Host, dom0: Run, tmp_path: Path) -> None:
    """Locks exclude each other, and RCU's readers see nothing that has gone."""
    with guest_of(stable, host, dom0, tmp_path, CASES["kernel"]) as daemon:
        log = has_ended(dom0, 2400)
        said = linux.said_of(log)
        assert "error" not in said and said["online"] == said["last"] == "0-1", said
        ended = ends(log)
        assert ended == [
            End(re.sub(r".*torture_type=(\w+).*", r"\1", words), "SUCCESS") for _, words, _ in MODULES
        ], (ended, log[-4000:])
        assert daemon.end()["pinned"] == 0


@pytest.mark.usefixtures("console")
@pytest.mark.parametrize("case", ["plain", "vsmp"])
def test_faults_per_tick(stable: Stable, host: Host, dom0: Run, tmp_path: Path, case: str) -> None:
    """How many, at home and away, while CPU 1 has nothing to do with others but its ticks."""

    def moment(word: str) -> Moment:
        wait_for(f"the guest says {word}", 600, lambda: word in linux.said_of(checked(dom0, "xl dmesg")), interval=1)
        # dsm-slices has made its slice after the guest.
        domids = sorted(int(line.split()[1]) for line in checked(dom0, "xl list").splitlines()[2:])
        faults = [faults_of(checked(dom0, f"{STATS} {domid}")) for domid in domids]
        ticks = [int(number) for number in linux.said_of(checked(dom0, "xl dmesg"))[word].split()]
        assert len(faults) == len(ticks) == 2, (domids, ticks)
        return Moment(ticks, faults)

    with guest_of(stable, host, dom0, tmp_path, CASES[case]) as daemon:
        begun = moment("begun")
        figures = per_tick(f"dsm.tick.{case}", ("home", "away"), ((0,), (1,)), begun, moment("ended"))
        print(figures)
        has_ended(dom0, 600)
        # Of the guest's clock.
        assert figures[1].value is not None and float(figures[1].baseline["ticks"]) >= BUSY_S * HZ / 2, figures
        write(f"dsm-tick-{case}", figures)
        assert daemon.end()["pinned"] == 0
