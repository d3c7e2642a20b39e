# SPDX-License-Identifier: GPL-2.0
"""Something goes wrong half-way: nothing hangs, nothing is lost, and `xl vnode-list` tells the truth afterwards."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from lab.command import Done, Run, asked_in_a_row, checked
from lab.elastic_guest import PROGRAMS, ElasticGuest, parse_vnode_list
from lab.host import Host
from lab.hypervisor import pages_off, settled_free_pages
from lab.patience import scaled, wait_for
from tests.e2e.conftest import CONFIGS, Stable, soak

# The driver's initcalls: a kernel that skips them is a kernel without the driver.
NO_DRIVER = "initcall_blacklist=elastic_init"

# Exit codes of xl vnode-*, as in xl-vnode(1).
FAILED, UNDONE, RESIDUAL, UNSETTLED, NOT_UNDONE = 1, 4, 5, 6, 7
KILLED = 128 + 9  # what a shell says of it


def start_operation(guest: ElasticGuest, operation: str) -> int:
    """Begin an operation in the background of dom0; returns xl's pid there. `ended()` has its exit status."""
    command = guest.command(operation, "1")
    script = f"rm -f /tmp/xl.status; {command} >/tmp/xl.out 2>&1 </dev/null & echo $! >/tmp/xl.pid; wait $!; "
    checked(
        guest.dom0, f"rm -f /tmp/xl.pid; setsid sh -c '{script} echo $? >/tmp/xl.status' >/dev/null 2>&1 </dev/null &"
    )
    wait_for("xl runs", 30, lambda: guest.dom0("cat /tmp/xl.pid").out.strip() != "", 0.05)
    return int(guest.dom0("cat /tmp/xl.pid").out)


def ended(dom0: Run) -> int:
    """Wait until the operation in the background has ended; its exit status."""
    wait_for("xl ends", 90, lambda: dom0("cat /tmp/xl.status").out.strip() != "")
    return int(dom0("cat /tmp/xl.status").out)


def await_announced(guest: ElasticGuest, domid: int, old: str) -> None:
    """Wait until the toolstack has told the guest: from then on the operation is half-way."""
    wait_for("the operation is announced", 30, lambda: generation(guest, domid) not in ("", old), 0.05)


def generation(guest: ElasticGuest, domid: int) -> str:
    """The toolstack's count of operations; "" before the first."""
    done = guest.dom0(f"xenstore-read /local/domain/{domid}/vnuma/generation")
    return done.out if done.status == 0 else ""


# Stands in for a driver that lets the first operation time out and cannot undo it all.
BAD_DRIVER = """
cd /; xenstore-write vnuma/guest/version 1
until [ "$(xenstore-read vnuma/generation)" = {last} ]; do sleep 0.1; done
xenstore-write vnuma/guest/node/1/state residual vnuma/guest/node/1/current-kb 2048 \\
    vnuma/guest/node/1/residual-kb 2048 vnuma/guest/done-generation {last}
"""


def test_guest_without_the_driver(stable: Stable, host: Host, dom0: Run) -> None:
    """The attach times out and is taken back; nothing of it remains. With a driver that cannot undo it, xl says so."""
    stable.leave("guest4.cfg")
    stable.leave("guest2.cfg")
    text = (CONFIGS / "guest2.cfg").read_text(encoding="utf-8")
    extra = re.findall(r'^extra\s*=\s*"([^"]*)"', text, re.MULTILINE)
    found = host.start_guest(
        CONFIGS / "guest2.cfg", {"extra": f'"{" ".join([*extra[-1:], NO_DRIVER])}"', "name": '"driverless"'}
    )
    try:
        before = settled_free_pages(dom0)
        done = found.attach(1, "--timeout=5")
        assert done.status == UNDONE, done.text
        assert re.search(r"no driver in the guest answered", done.text), done.text
        assert done.seconds < scaled(30)
        assert found.vnode(1).target_kib == 0
        assert pages_off(dom0, before) == {}
        assert sorted(found.nodes()) == [0]
        assert found.listed()[1]["fault"] is None
        assert found.listed()[1]["operation"] is None

        last = int(generation(found, found.domid())) + 2
        checked(found.guest, f"(setsid sh -c '{BAD_DRIVER.format(last=last)}' >/dev/null 2>&1 </dev/null &)")
        wait_for("the driver is there", 30, lambda: found.guest("xenstore-read vnuma/guest/version").status == 0)
        done = found.attach(1, "--timeout=5")
        assert done.status == NOT_UNDONE, done.text
        assert re.search(r"it was offline with 0 KiB and is residual with 2048 KiB", done.text), done.text
        assert found.listed()[1]["state"] == "residual"
    finally:
        found.destroy()


def driver_of_another(dom0: Run, name: str, domid: int) -> bool:
    """Whether a domain of that name runs that is not `domid`, and its driver is there."""
    done = dom0(f"xl domid {name}")
    if done.status != 0 or int(done.out) == domid:
        return False
    return dom0(f"xenstore-read /local/domain/{int(done.out)}/vnuma/guest/version").status == 0


def when_announced(run: Run, domid: int, action: str) -> None:
    """Have `action` done by that machine as soon as the toolstack announces the next operation."""
    when_written(run, f"/local/domain/{domid}/vnuma/generation", action)


WRITTEN_S = 60.0


def when_written(run: Run, path: str, action: str) -> None:
    """Have `action` done by that machine as soon as somebody writes that key.

    It waits for that itself: a command that is sent once it was written can come when all is over. It does not wait for
    ever, or what a failed test has left would act in the middle of a later one.
    """
    watch = f"timeout {scaled(WRITTEN_S):g} xenstore-watch -n 2 {path}"  # the first event is the watch's own
    checked(run, "rm -f /tmp/watch.out")
    checked(run, f"setsid sh -c '{watch} >/tmp/watch.out && {action}' >/dev/null 2>&1 </dev/null &")
    wait_for("the watch is set", 30, lambda: run("test -s /tmp/watch.out").status == 0, 0.05)


ATTACH, DETACH = "vnode-attach", "vnode-detach"
# How the lives of one guest end, one after the other, and what is under way then. Each life that begins anew takes its time:
# each end, each operation, and not each pair of them.
ENDS = (
    (("crash", DETACH),),
    (("reboot", ATTACH), ("destroy", DETACH)),
    soak((("crash", ATTACH),)),
    soak((("reboot", DETACH), ("destroy", ATTACH))),
)


def named(ends: Sequence[tuple[str, str]]) -> str:
    """A case of ENDS in words."""
    return ", ".join(f"{end} in {operation}" for end, operation in ends)


@pytest.mark.parametrize("ends", ENDS, ids=named)
def test_guest_ends_half_way(
    stable: Stable, dom0: Run, expects: Callable[[str], None], ends: Sequence[tuple[str, str]]
) -> None:
    """It crashes, reboots or is destroyed while an operation runs: xl ends with an error, all memory comes back.

    A detach that `xl destroy` is to interrupt is held up by pages that cannot leave: else it can be over before that begins.
    """
    stable.leave("guest2.cfg")
    before = settled_free_pages(dom0)
    guest = stable.get("guest2.cfg")
    for end, operation in ends:
        if end == "crash":
            expects(r"Kernel panic - not syncing: sysrq triggered crash")
        if operation == DETACH:
            assert guest.attach(1).status == 0
        if (end, operation) == ("destroy", DETACH):
            checked(guest.guest, f"setsid {PROGRAMS}/pinner 1 24 >/tmp/pinner.out 2>&1 </dev/null &")
            wait_for("the pages are pinned", 30, lambda: "pinned" in guest.guest("cat /tmp/pinner.out").out)
        domid = guest.domid()
        if end != "destroy":
            checked(guest.guest, "echo 1 >/proc/sys/kernel/sysrq")
        actions: dict[str, tuple[Run, str]] = {
            "crash": (guest.guest, "echo c >/proc/sysrq-trigger"),
            "reboot": (guest.guest, "echo b >/proc/sysrq-trigger"),
            "destroy": (dom0, f"xl destroy {guest.name}"),
        }
        run, action = actions[end]
        when_announced(run, domid, action)
        start_operation(guest, operation)
        assert ended(dom0) == FAILED
        dom0(f"xl vnode-list {guest.name}")
        guest.disconnect()
        if end == "reboot":
            # Its next life, with the elastic node absent: what was under way does not outlive the domain.
            wait_for("the guest is back with its driver", 180, partial(driver_of_another, dom0, guest.name, domid), 1.0)
            assert [vnode["state"] for _, vnode in sorted(guest.listed().items())] == ["home", "offline"]
            assert dom0(f"xenstore-ls /libxl/{domid}").status != 0, "keys of the dead domain remain"
    stable.leave("guest2.cfg", ask=False)
    assert dom0(f"xenstore-ls /libxl/{domid}").status != 0, "keys of the dead domain remain"
    assert pages_off(dom0, before, 30.0) == {}


def finish(guest: ElasticGuest) -> Done:
    """The same operation once more."""
    return guest.attach(1)


def undo(guest: ElasticGuest) -> Done:
    """The opposite."""
    return guest.detach(1)


@pytest.mark.parametrize(("then", "nodes"), [(finish, [0, 1]), (undo, [0])], ids=["finished", "undone"])
def test_xl_killed_half_way(
    pair: ElasticGuest, dom0: Run, then: Callable[[ElasticGuest], Done], nodes: list[int]
) -> None:
    """The next `xl vnode-list` tells what is; the operation can be finished, or undone."""
    before = settled_free_pages(dom0)
    # Not by a command from here: it can come when the attach is over.
    when_announced(dom0, pair.domid(), "kill -KILL $(cat /tmp/xl.pid)")
    start_operation(pair, "vnode-attach")
    assert ended(dom0) == KILLED
    listed = pair.listed()[1]
    assert listed["state"] in ("growing", "online", "attaching"), listed
    assert listed["target_kib"] > 0
    wait_for("the guest has done its part", 60, lambda: pair.vnode(1).state == "online")
    done = then(pair)
    assert done.status == 0 or "attached already" in done.text, done.text
    assert sorted(pair.nodes()) == nodes
    if 1 in nodes:
        assert pair.listed()[1]["state"] == "online"
        assert pair.detach(1).status == 0
    assert pages_off(dom0, before) == {}


@pytest.mark.fresh
def test_xl_interrupted(pair: ElasticGuest, dom0: Run) -> None:
    """Ctrl-C: the guest is told to undo it and is not waited for, xl says so, and a later `vnode-list` settles it."""
    before = settled_free_pages(dom0)
    when_announced(dom0, pair.domid(), "kill -INT $(cat /tmp/xl.pid)")
    start_operation(pair, "vnode-attach")
    assert ended(dom0) == UNSETTLED
    assert "cancelled: the guest has been told to undo it" in dom0("cat /tmp/xl.out").out
    wait_for("the guest has undone it", 60, lambda: pair.listed()[1]["operation"] is None)
    assert pair.listed()[1]["state"] == "offline"
    assert sorted(pair.nodes()) == [0]
    assert pages_off(dom0, before) == {}


def limit_kib(dom0: Run, domid: int) -> int:
    """Xen's limit of a domain's memory, by its debug key."""
    checked(dom0, "xl dmesg -c >/dev/null; xl debug-keys q")
    text = checked(dom0, "xl dmesg")
    match = re.search(rf"General information for domain {domid}:.*?max_pages=(\d+)", text, re.DOTALL)
    assert match, text
    return 4 * int(match[1])


def key_kib(dom0: Run, path: str) -> int:
    """A number in xenstore; 0 if the key is absent."""
    done = dom0(f"xenstore-read {path}")
    return int(done.out) if done.status == 0 else 0


def assert_in_order(guest: ElasticGuest, dom0: Run) -> None:
    """Keys, Xen's limit and the availability of CPUs agree with whether vnode 1 is there."""
    domid = guest.domid()
    vnode = guest.listed()[1]
    allowed = key_kib(dom0, f"/libxl/{domid}/vnuma/node/1/allowed-kb")
    assert vnode["operation"] is None
    assert vnode["state"] == ("online" if vnode["target_kib"] else "offline")
    assert allowed == vnode["target_kib"] == vnode["actual_kib"]
    assert limit_kib(dom0, domid) == key_kib(dom0, f"/libxl/{domid}/vnuma/home-limit-kb") + allowed
    assert (vnode["pnode"] is not None) == bool(allowed)
    for cpu in vnode["cpus"]:
        wanted = "online" if allowed else "offline"
        assert dom0(f"xenstore-read /local/domain/{domid}/cpu/{cpu}/availability").out.strip() == wanted


POINTS = 8  # the unit tests kill before each effect; here it is every so manyth call of a real xl
CALLS = ("ioctl", "write", "sendmsg")  # hypercalls, and messages to xenstored
NODE_MIB, HALF_MIB = 512, 256


def kill_points(dom0: Run) -> list[tuple[str, int]]:
    """Some calls among those that the last traced command made: which, and the how manyth of its kind."""
    counts = [int(dom0(f"grep -c ' {call}(' /tmp/calls").out) for call in CALLS]
    points = [(call, 1 + number) for call, count in zip(CALLS, counts, strict=True) for number in range(count)]
    assert len(points) > POINTS
    return [points[number * len(points) // POINTS] for number in range(POINTS)]


@pytest.mark.fresh
@pytest.mark.parametrize(
    ("operation", "words", "before_mib"),
    [("vnode-attach", (), 0), ("vnode-detach", (), NODE_MIB), ("vnode-set", (f"{HALF_MIB}M",), NODE_MIB)],
    ids=["attach", "detach", "set"],
)
def test_xl_killed_at_any_call(
    pair: ElasticGuest, dom0: Run, operation: str, words: tuple[str, ...], before_mib: int
) -> None:
    """Whatever it had done, `vnode-list` puts it in order: all or nothing of the operation."""

    def begin() -> None:
        now = pair.vnode(1).current_kib // 1024
        if now and now != before_mib:
            assert pair.detach(1).status == 0
        if before_mib and now != before_mib:
            assert pair.attach(1).status == 0

    command = pair.command(operation, "1", *words)
    begin()
    checked(dom0, f"strace -f -qq -o /tmp/calls -e trace={','.join(CALLS)} {command}", 120.0)
    for call, number in kill_points(dom0):
        begin()
        before = settled_free_pages(dom0)
        trace = f"strace -f -qq -o /tmp/calls -e trace={call} -e inject={call}:signal=KILL:when={number}"
        done = dom0(f"{trace} {command}", 120.0)
        assert done.status == 137, f"not killed at {call} {number}: {done}"
        wait_for("the operation is over", 60, lambda: pair.listed()[1]["operation"] is None)
        assert_in_order(pair, dom0)
        if pair.vnode(1).current_kib // 1024 == before_mib:
            assert pages_off(dom0, before) == {}, f"killed at {call} {number}"


@pytest.mark.fresh
def test_memory_limit_of_the_operator(pair: ElasticGuest, dom0: Run) -> None:
    """What `xl mem-max` has set survives an attach and a detach."""
    domid = pair.domid()
    old = limit_kib(dom0, domid)
    more = key_kib(dom0, f"/local/domain/{domid}/memory/static-max") + (64 << 10)
    try:
        checked(dom0, f"xl mem-max {pair.name} {more}k")
        limit = limit_kib(dom0, domid)
        assert limit > old
        assert pair.attach(1).status == 0
        assert limit_kib(dom0, domid) == limit + pair.vnode(1).target_kib
        assert pair.detach(1).status == 0
        assert limit_kib(dom0, domid) == limit
    finally:
        checked(dom0, f"xl mem-max {pair.name} {more - (64 << 10)}k")


@pytest.mark.fresh
def test_vcpu_set_and_elastic_nodes(stable: Stable, pair: ElasticGuest, dom0: Run) -> None:
    """`vcpu-set` neither brings up CPUs of an absent node nor takes those of a present one; attach leaves the others."""
    home, all_cpus = pair.online_cpus(), 4
    assert len(home) == 2
    cpu1 = "/sys/devices/system/cpu/cpu1"
    done = dom0(f"xl vcpu-set {pair.name} {all_cpus}")
    assert done.status == 0
    assert "vCPUs 2-3 stay as they are" in done.text, done.text
    assert_in_order(pair, dom0)
    try:
        checked(dom0, f"xl vcpu-set {pair.name} 1")
        wait_for("CPU 1 is off", 30, lambda: pair.online_cpus() == (0,))
        assert pair.attach(1).status == 0
        wait_for("the node's CPUs are on", 30, lambda: pair.online_cpus() == (0, 2, 3))
        done = dom0(f"xl vcpu-set {pair.name} 1")
        assert done.status == 0 and "vCPUs 2-3 stay as they are" in done.text, done.text
        assert pair.online_cpus() == (0, 2, 3)
        assert pair.detach(1).status == 0
        assert pair.online_cpus() == (0,)
        checked(dom0, f"xl vcpu-set {pair.name} 2")
        # Linux only makes it present; to bring it up is for udev, which this guest has not.
        wait_for("CPU 1 is there", 30, lambda: pair.guest(f"test -e {cpu1}/online").status == 0)
        checked(pair.guest, f"echo 1 >{cpu1}/online")
        assert pair.online_cpus() == (0, 1)
        assert_in_order(pair, dom0)
    finally:
        stable.leave("guest2.cfg")  # the next test gets one with all its CPUs


# Texts for people that are not as the protocol has them: key, value, what is shown of it.
TEXTS = (
    ("a reason without end", "node/1/reason", "x" * 1500, "reason", "x" * 200),
    ("a reason in Latin-1", "node/1/reason", "(\\xe9t\\xe9)", "reason", "(?t?)"),
    ("a reason with an escape", "node/1/reason", "\\x1b[2J", "reason", "?[2J"),
    ("an error with an escape", "node/1/error", "-5 \\x1b[2J", "error", "-5 ?[2J"),
    ("phases that are none", "node/1/phases", "a=b,,=1", "phases", None),
)

# What a guest may write under vnuma/guest/, against the protocol: key, value.
GARBAGE = (
    ("a state that is none", "node/1/state", "purple"),
    ("memory that is no number", "node/1/current-kb", "many"),
    ("memory below zero", "node/1/current-kb", "-4"),
    ("more memory than Xen counts", "node/1/current-kb", "524288"),
    ("a number beyond 64 bits", "node/1/residual-kb", "9" * 30),
    ("an error without a number", "node/1/error", "\\x1b[2J"),
    ("a generation from the future", "ack-generation", "4294967296"),
    ("a version that is none", "version", "two"),
)


@contextlib.contextmanager
def garbage(guest: ElasticGuest, key: str, value: str) -> Iterator[None]:
    """The guest's report has that value, until it is sane again."""
    old = guest.guest(f"xenstore-read vnuma/guest/{key}")
    checked(guest.guest, f"xenstore-write -- vnuma/guest/{key} '{value}'")
    try:
        yield
    finally:
        if old.status == 0:
            checked(guest.guest, f"xenstore-write -- vnuma/guest/{key} '{old.out.rstrip()}'")
        else:
            checked(guest.guest, f"xenstore-rm vnuma/guest/{key}")


@pytest.mark.fresh
@pytest.mark.parametrize("text", [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_texts_from_the_guest_decide_nothing(
    pair: ElasticGuest, dom0: Run, text: tuple[str, str, str, str | None]
) -> None:
    """Names of programs are in them: they are shown as printable ASCII, and the vnode's report counts all the same."""
    key, value, field, shown = text
    with garbage(pair, key, value):
        vnode = pair.listed()[1]
        assert (vnode["state"], vnode["fault"]) == ("offline", None)
        if shown is not None:
            assert vnode[field] == shown
        assert "\x1b" not in checked(dom0, f"xl vnode-list {pair.name}")


def test_garbage_from_the_guest_is_shown_and_not_believed(
    pair: ElasticGuest, baseline: dict[int, int], dom0: Run
) -> None:
    """The toolstack survives, and says `faulty` where a vnode's report cannot be, as long as it cannot.

    What it has once seen stands in the way of nothing later.
    """
    place = f"/local/domain/{pair.domid()}/vnuma/guest"
    commands = []
    for _, key, value in GARBAGE:
        path = f"{place}/{key}"
        commands += [
            f"xenstore-read {path} >/tmp/old || rm -f /tmp/old; xenstore-write -- {path} '{value}'",
            f'if [ -e /tmp/old ]; then xenstore-write -- {path} "$(cat /tmp/old)"; else xenstore-rm {path}; fi',
        ]
    seen = f"xl vnode-list {pair.name} 2>&1; echo == $?; xl vnode-list --json {pair.name}"
    answers = asked_in_a_row(dom0, commands, seen)
    for (name, key, _), garbled, sane in zip(GARBAGE, answers[::2], answers[1::2], strict=True):
        assert (garbled.status, sane.status) == (0, 0), f"{name}: {garbled} {sane}"
        table, status, listing = re.split(r"^== (\d+)$", garbled.state, flags=re.MULTILINE)
        assert int(status) in range(126), f"{name}: xl died: {garbled}"
        assert "\x1b" not in garbled.state, name
        if key.startswith("node/"):
            listed = parse_vnode_list(listing)[1]
            assert listed["state"] == "faulty" and listed["fault"], name
            assert "faulty" in table, name
        assert parse_vnode_list(sane.state.rpartition("==")[2].partition("\n")[2])[1]["fault"] is None, name
    assert pages_off(dom0, baseline) == {}
    for operation in (pair.attach, pair.detach):
        done = operation(1)
        assert done.status == 0, done.text
    assert pages_off(dom0, baseline) == {}


def test_a_guest_that_writes_without_end(pair: ElasticGuest, background: Callable[[str, str], int]) -> None:
    """Each write wakes the toolstack, which waits below that key; operations end as usual all the same."""
    flood = "sh -c 'while :; do xenstore-write vnuma/guest/flood $((n = n + 1)) || exit; done'"
    pid = background(flood, "/tmp/flood.out")
    for operation in (pair.attach, pair.detach):
        done = operation(1)
        assert done.status == 0, done.text
    assert pair.guest(f"kill -TERM {pid}").status == 0, pair.guest("cat /tmp/flood.out").text
    assert int(checked(pair.guest, "xenstore-read vnuma/guest/flood")) > 10
    checked(pair.guest, "xenstore-rm vnuma/guest/flood")
    assert pair.listed()[1]["state"] == "offline"


def test_a_program_that_pins_memory(pair: ElasticGuest, dom0: Run, background: Callable[[str, str], int]) -> None:
    """Reported as residual with its reason, without a hang; when the program ends, a second detach takes the rest."""
    before = settled_free_pages(dom0)
    assert pair.attach(1).status == 0
    pid = background(f"{PROGRAMS}/pinner 1 24", "/tmp/pinner.out")
    wait_for("the pages are pinned", 30, lambda: "pinned" in pair.guest("cat /tmp/pinner.out").out)
    done = pair.detach(1, timeout=180.0)
    assert done.status == RESIDUAL and done.seconds < scaled(120)
    assert re.search(r"\d+ KiB could not leave: .*pinned", done.text), done.text
    vnode = pair.vnode(1)
    assert vnode.state == "residual"
    assert 0 < vnode.residual_kib <= 256 * 1024
    assert "pinner" in vnode.reason or str(pid) in vnode.reason, vnode.reason
    assert pair.listed()[1]["state"] == "residual"
    checked(pair.guest, f"kill -TERM {pid}")
    wait_for("pinner ends", 30, lambda: "released, 0 wrong" in pair.guest("cat /tmp/pinner.out").out)
    done = pair.detach(1)
    assert done.status == 0, done.text
    assert sorted(pair.nodes()) == [0]
    assert pages_off(dom0, before) == {}
