# SPDX-License-Identifier: GPL-2.0
"""The lab itself: commands, files, guests, the NUMA meter, the command lab/rack; nothing is left behind when it is killed."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # Debian has no stubs of it
import pytest

from lab.errors import CommandFailedError, CommandTimeoutError, LabError
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled
from lab.pipeline.paths import REPO
from lab.rack import Rack
from lab.state import StateDirectory
from tests.e2e.conftest import Stable

# Two plain vnodes, one on each physical node.
GUEST = """
name = "lab-guest"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = 512
vcpus = 2
tsc_mode = "native"
vnuma = [ ["pnode=0", "size=256", "vcpus=0", "vdistances=10,21"], ["pnode=1", "size=256", "vcpus=1", "vdistances=21,10"] ]
vif = ["mac=00:16:3e:4d:00:63,bridge=xenbr0"]
on_crash = "destroy"
on_reboot = "destroy"
"""

# The smallest machine that starts; the tests that use it kill it before it is up.
SMALL = """
name = "lab-small"
[[host]]
name = "solo"
dom0 = { memory_mib = 512, vcpus = 1 }
[[host.node]]
cpus = 1
memory_mib = 1024
"""

# Fills and walks a table of some MiB in user space.
WALK = "mawk 'BEGIN { for (j = 0; j < 3; j++) for (i = 0; i < 60000; i++) a[i] += i }'"


@pytest.fixture(scope="module", autouse=True)
def room(host: Host, stable: Stable) -> None:
    """The guests of other modules are not needed any more, but their memory is."""
    stable.leave_all()
    for line in host.run(["xl", "list"], check=True).out.splitlines()[2:]:
        host.run(["xl", "destroy", line.split()[0]], check=True)


@pytest.fixture(scope="module")
def guest(host: Host) -> Iterator[Guest]:
    guest = host.start_guest(GUEST)
    yield guest
    guest.destroy()


# --- commands and files -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["dom0", "guest"])
def machine(request: pytest.FixtureRequest, host: Host) -> Host | Guest:
    if request.param == "dom0":
        return host
    guest = request.getfixturevalue("guest")
    assert isinstance(guest, Guest)
    return guest


def test_command_tells_exit_code_output_and_errors(machine: Host | Guest) -> None:
    result = machine.run("echo out; echo error >&2; exit 7")
    assert (result.status, result.out, result.err) == (7, "out\n", "error\n")


def test_arguments_arrive_as_they_are(machine: Host | Guest) -> None:
    words = ["a b", "$HOME", "'", "", "*"]
    assert machine.run(["printf", "%s\\n", *words]).out.splitlines() == words


def test_input_and_lines_as_they_come(machine: Host | Guest) -> None:
    assert machine.run("wc -c", stdin=b"x" * 100_000).out.strip() == "100000"
    lines: list[str] = []
    machine.run("echo a; echo b", on_line=lines.append)
    assert lines == ["a", "b"]


def test_command_that_must_succeed(machine: Host | Guest) -> None:
    with pytest.raises(CommandFailedError, match=r"(?s)ended with 3:.*why"):
        machine.run("echo why; exit 3", check=True)


def test_command_over_its_time_is_killed_in_the_machine(machine: Host | Guest) -> None:
    with pytest.raises(CommandTimeoutError, match=f"killed after {scaled(1):g} s"):
        machine.run(["sleep", "7321"], timeout=1)
    assert machine.run(["pgrep", "-f", "^sleep 7321"]).status == 1


def test_background_command(machine: Host | Guest) -> None:
    sleeper = machine.start(["sleep", "7322"])
    assert sleeper.running()
    assert machine.run(["cat", f"/proc/{sleeper.pid}/cmdline"]).out == "sleep\x007322\x00"
    sleeper.stop()
    assert not sleeper.running()
    assert machine.run(["test", "-e", f"/proc/{sleeper.pid}"]).status == 1
    assert machine.start("echo done; exit 4").wait(60).status == 4


def test_files_both_ways(machine: Host | Guest, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    program = tmp_path / "folder/program"
    program.write_text("#!/bin/sh\necho it runs\n")
    program.chmod(0o755)
    machine.put(tmp_path / "folder", "/tmp/put here/renamed")
    assert machine.run(["/tmp/put here/renamed/program"]).out == "it runs\n"
    machine.get("/tmp/put here/renamed/program", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == program.read_bytes()
    with pytest.raises(CommandFailedError, match="No such file"):
        machine.get("/nonesuch", tmp_path / "x")


# --- guests -----------------------------------------------------------------------------------------------------------


def test_host_has_the_nodes_of_its_description(host: Host) -> None:
    shown = host.run(["xl", "info", "-n"], check=True).out.partition("numa_info")[2]
    rows = re.findall(r"^ +(\d+): +(\d+) +\d+ +([\d,]+)$", shown, re.MULTILINE)
    assert [(int(size), distances) for _, size, distances in rows] == [
        (node.memory_mib, ",".join(map(str, row)))
        for node, row in zip(host.description.nodes, host.description.distances, strict=True)
    ]


@pytest.mark.fresh
def test_hypervisor_uses_what_the_cpu_has(host: Host) -> None:
    log = host.run(["xl", "dmesg"], check=True).out
    found = log.partition("SVM: Supported advanced features:")[2]
    for feature in ("Nested Page Tables (NPT)", "Next-RIP Saved on #VMEXIT", "NPT Read-Only Guest Page Tables"):
        assert re.search(rf"^\(XEN\)(?: \[.*\])?  - {re.escape(feature)}$", found, re.MULTILINE), feature


@pytest.mark.fresh
def test_guest_whose_time_stamp_counter_is_emulated(host: Host) -> None:
    """Linux reads it with RDTSCP, too, which has an intercept of its own; the hypervisor needs its length."""
    guest = host.start_guest(
        GUEST.replace("lab-guest", "lab-tsc").replace('"native"', '"always_emulate"').replace(":63", ":65")
    )
    try:
        assert " rdtscp " in guest.run(["cat", "/proc/cpuinfo"], check=True).out
    finally:
        guest.destroy()


def test_guest_console_is_logged_here_and_there(guest: Guest, host: Host) -> None:
    assert "xenuma: guest ready" in guest.console_tail()
    guest.run("echo said-by-the-test >/dev/console", check=True)
    log = host.paths.logs / f"{host.description.name}-{guest.name}.log"
    deadline = time.monotonic() + 30
    while "said-by-the-test" not in log.read_text(errors="replace"):
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.1)


def test_guest_that_cannot_be_created_says_why(host: Host) -> None:
    with pytest.raises(LabError, match=r"(?s)xl create lab-bad ended with \d+: .*nonesuch"):
        host.start_guest('name="lab-bad"\ntype="pvh"\nkernel="/nonesuch"\nmemory=64\n')


def test_guest_that_dies_before_it_is_ready_is_noticed_at_once(host: Host, expects: Callable[[str], None]) -> None:
    expects(r"Kernel panic - not syncing: .*(?:/nonesuch|Unable to mount root fs)")
    config = (
        GUEST.replace("lab-guest", "lab-dying").replace("loglevel=5", "rdinit=/nonesuch panic=1").replace(":63", ":64")
    )
    with pytest.raises(LabError, match=r"(?s)ended before it was ready.*Kernel panic"):
        host.start_guest(config, timeout=240)
    host.guest("lab-dying").destroy()
    assert host.run(["xl", "domid", "lab-dying"]).status != 0


def test_guest_that_is_shut_down_is_gone(host: Host) -> None:
    """Not only says that it goes."""
    guest = host.start_guest(GUEST.replace("lab-guest", "lab-down").replace(":63", ":66"))
    guest.shutdown()
    assert host.run(["xl", "domid", guest.name]).status != 0


# --- the NUMA meter ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pinned(host: Host, guest: Guest) -> Guest:
    """vCPU n on the first CPU of physical node n."""
    for vcpu in (0, 1):
        cpu = host.description.cpus_of(vcpu).start
        host.run(["xl", "vcpu-pin", guest.name, str(vcpu), str(cpu)], check=True)
    return guest


@pytest.mark.parametrize("memory", [0, 1])
@pytest.mark.parametrize("cpu", [0, 1])
def test_meter_tells_local_from_remote(host: Host, pinned: Guest, cpu: int, memory: int) -> None:
    command = f"numactl --physcpubind={cpu} --membind={memory} {WALK}"
    with host.meter.running(every=16):
        counts = host.meter.during(lambda: pinned.run(command, timeout=300, check=True))
    worker = [host.description.cpus_of(cpu).start]
    share = counts.remote_pct(worker)
    assert counts.total(worker) > 100_000, counts.matrix()
    assert share is not None
    # The program's own pages lie where they were first read in: a part of the accesses goes there.
    assert share > 75 if cpu != memory else share < 25, counts.matrix()


def test_meter_that_is_off_counts_nothing(host: Host, pinned: Guest) -> None:
    meter = host.meter
    assert not meter.is_on()
    counts = meter.during(lambda: pinned.run(WALK, timeout=300, check=True))
    assert counts.total() == 0


def test_meter_samples_as_often_as_it_is_told(host: Host, pinned: Guest) -> None:
    meter = host.meter
    totals = []
    for every in (8, 64):
        with meter.running(every=every):
            totals.append(meter.during(lambda: pinned.run(WALK, timeout=300, check=True)).total())
    assert 6 < totals[0] / totals[1] < 10.5, totals


@pytest.mark.parametrize("every", [0, -1, (1 << 20) + 1])
def test_meter_refuses_a_bad_interval(host: Host, every: int) -> None:
    with pytest.raises(LabError, match="EVERY: want 1 to 1048576"):
        host.meter.on(every=every)
    assert not host.meter.is_on()


# --- the command, and what is left behind ---------------------------------------------------------------------------------


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [REPO / "lab/rack", *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_command_runs_in_dom0_and_in_the_guest(rack: Rack, guest: Guest) -> None:
    name, host = rack.description.name, guest.host.description.name
    done = command("run", "--rack", name, host, "sh", "-c", "echo here; echo there >&2; exit 5")
    assert (done.returncode, done.stdout, done.stderr) == (5, "here\n", "there\n")
    assert command("run", "--rack", name, str(guest), "uname -n").stdout == f"{guest.name}\n"
    assert guest.name in command("status", "--rack", name).stdout


def test_command_says_what_is_wrong(rack: Rack) -> None:
    name = rack.description.name
    for words, message in (
        (("boot", "nonesuch"), "no such rack; lab/racks has: "),
        (("boot", os.environ.get("XENUMA_RACK", name)), "runs already"),
        (("run", "--rack", "nonesuch", "alpha", "true"), "rack 'nonesuch' does not run"),
        (("run", "--rack", name, "nonesuch", "true"), "has no host 'nonesuch'"),
        (("run", "--rack", name, "alpha:nonesuch", "true"), "no such domain"),
        (("poweroff", name), "belongs to a test"),
    ):
        done = command(*words)
        assert done.returncode == 1
        assert message in done.stdout + done.stderr, (words, done)


@pytest.mark.parametrize("where", ["dom0", "guest"])
def test_shell_for_a_person(rack: Rack, guest: Guest, where: str) -> None:
    target = guest.host.description.name if where == "dom0" else str(guest)
    words = ["shell", "--rack", rack.description.name, target]
    shell = pexpect.spawn(str(REPO / "lab/rack"), words, timeout=120, encoding="utf-8")
    shell.expect("# ")
    shell.sendline("tty; echo $((6 * 7)); exit 3")
    shell.expect(r"/dev/pts/\d+\s+42\s")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 3


def test_console_for_a_person(rack: Rack, host: Host) -> None:
    words = ["console", "--rack", rack.description.name, host.description.name]
    console = pexpect.spawn(str(REPO / "lab/rack"), words, timeout=120, encoding="utf-8")
    console.expect("leaves")
    console.sendline("tty; echo $((6 * 7))")
    console.expect(r"/dev/hvc0\s+42\s")
    console.send("\x1d")
    console.expect(pexpect.EOF)
    console.close()
    assert console.exitstatus == 0


def machines_of(directory: Path) -> list[int]:
    """Process numbers of QEMUs whose command line names a directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"/qemu-system" in words.split(b"\0")[0] and str(directory).encode() in words:
            found.append(int(entry.name))
    return found


def await_machine(directory: Path, starter: subprocess.Popen[str]) -> int:
    """The process number of the QEMU that `starter` starts."""
    deadline = time.monotonic() + 120
    while not (found := machines_of(directory)):
        assert starter.poll() is None, starter.communicate()
        assert time.monotonic() < deadline, "no QEMU was started"
        time.sleep(0.05)
    return found[0]


@pytest.mark.parametrize("death", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("way", ["command", "python"])
def test_nothing_outlives_a_killed_boot(tmp_path: Path, way: str, death: signal.Signals) -> None:
    description = tmp_path / "small.toml"
    description.write_text(SMALL)
    program = f"from lab.rack import *\nRack.boot(RackDescription.load({str(description)!r}))"
    words = (
        [str(REPO / "lab/rack"), "boot", str(description)]
        if way == "command"
        else [sys.executable, "-c", program]
    )
    directory = StateDirectory("lab-small")
    starter = subprocess.Popen(
        ["env", "--default-signal=INT", *words],  # a shell's background job, as we may be one, ignores Ctrl-C
        cwd=REPO,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    qemu = os.pidfd_open(await_machine(directory.sockets, starter))
    # Ctrl-C reaches the whole foreground group of a terminal, a KILL one process.
    os.killpg(starter.pid, death) if death == signal.SIGINT else starter.send_signal(death)
    assert select.select([qemu], [], [], 60)[0], "QEMU still runs"
    os.close(qemu)
    starter.communicate(timeout=60)
    directory.wait_released()
    assert machines_of(directory.sockets) == []
