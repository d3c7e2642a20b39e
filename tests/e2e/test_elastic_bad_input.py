# SPDX-License-Identifier: GPL-2.0
"""Requests that make no sense or cannot be met: a clear error, a non-zero exit status, and nothing is changed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from lab.command import Run, asked_in_a_row, checked
from lab.elastic_guest import PROGRAMS, ElasticGuest
from lab.hypervisor import pages_off, parse_xl_info, settled_free_pages
from lab.patience import wait_for

# Exit codes of xl vnode-*, as in xl-vnode(1).
FAILED, USAGE, REFUSED_NOW = 1, 2, 3

# What is asked of a guest whose node 1 is absent, what the answer must mention, and xl's exit code.
REFUSED = (
    ("attach, no such vnode", "vnode-attach {guest} 7", r"vnode 7 does not exist.*0-1", REFUSED_NOW),
    ("detach, no such vnode", "vnode-detach {guest} 7", r"vnode 7 does not exist.*0-1", REFUSED_NOW),
    ("set, no such vnode", "vnode-set {guest} 7 128M", r"vnode 7 does not exist.*0-1", REFUSED_NOW),
    ("attach of node 0", "vnode-attach {guest} 0", r"vnode 0 is a home node", REFUSED_NOW),
    ("detach of node 0", "vnode-detach {guest} 0", r"vnode 0 is a home node", REFUSED_NOW),
    ("detach of an absent node", "vnode-detach {guest} 1", r"vnode 1 is absent already", REFUSED_NOW),
    ("set of an absent node", "vnode-set {guest} 1 128M", r"vnode 1 is absent", REFUSED_NOW),
    ("detach without a number, none attached", "vnode-detach {guest}", r"no elastic vnode is attached", REFUSED_NOW),
    ("attach, larger than declared", "vnode-attach {guest} 1 size=64G", r"at most \d+ KiB", USAGE),
    ("attach, not whole extents", "vnode-attach {guest} 1 size=129M", r"multiple of 2048 KiB", USAGE),
    ("attach, no such pnode", "vnode-attach {guest} 1 pnode=9", r"pnode 9 does not exist", REFUSED_NOW),
    ("attach, vnode is no number", "vnode-attach {guest} one", r"one", USAGE),
    ("attach, size is no number", "vnode-attach {guest} 1 size=much", r"much", USAGE),
    ("attach, unknown option", "vnode-attach {guest} 1 colour=red", r"colour", USAGE),
    ("attach, a mistyped option", "vnode-attach {guest} 1 --timout=5", r"--timout=5", USAGE),
    ("attach, an option of detach", "vnode-attach {guest} 1 --grace=5", r"--grace=5", USAGE),
    ("attach, timeout is no number", "vnode-attach {guest} 1 --timeout=soon", r"soon", USAGE),
    ("set without a size", "vnode-set {guest} 1", r".", USAGE),
    ("no such domain", "vnode-attach nobody 1", r"nobody", FAILED),
)


def test_refused_with_a_reason(pair: ElasticGuest, baseline: dict[int, int], dom0: Run) -> None:
    """The operator is told why, and the guest and the host are as before: each key, and each page."""
    domid = pair.domid()
    keys = f"xenstore-ls -f /local/domain/{domid}/vnuma; xenstore-ls -f /libxl/{domid}/vnuma"
    commands = ["true", *(f"xl {command.format(guest=pair.name)}" for _, command, _, _ in REFUSED)]
    first, *answers = asked_in_a_row(dom0, commands, f"{{ {keys}; }} 2>&1")
    assert re.search(r"/vnuma/node/1/max-kb", first.state), first.state
    wrong = [
        f"{name}: {answer}"
        for (name, _, words, code), answer in zip(REFUSED, answers, strict=True)
        if answer.status != code or not re.search(words, answer.text, re.DOTALL) or answer.state != first.state
    ]
    assert wrong == []
    assert sorted(pair.nodes()) == [0]
    assert pages_off(dom0, baseline) == {}


def test_attach_twice(pair: ElasticGuest, dom0: Run) -> None:
    """The second attach is refused and harms nothing."""
    assert pair.attach(1).status == 0
    before = settled_free_pages(dom0)
    done = pair.attach(1)
    assert done.status == REFUSED_NOW
    assert re.search(r"vnode 1 is attached already, with \d+ KiB", done.text), done.text
    assert pages_off(dom0, before) == {}
    assert sorted(pair.nodes()) == [0, 1]


def test_set_to_nothing_is_a_detach_and_is_refused(pair: ElasticGuest) -> None:
    """`vnode-set 0` does not take the node away by accident."""
    assert pair.attach(1).status == 0
    done = pair.resize(1, "0")
    assert done.status == USAGE and "detach" in done.text
    assert sorted(pair.nodes()) == [0, 1]


def test_pnode_without_enough_free_memory(pair: ElasticGuest, dom0: Run) -> None:
    """Refused with the numbers: free, needed, short by. Pnode 0, which dom0 and the guests fill, is made too small."""
    free = parse_xl_info(checked(dom0, "xl info -n"))[0].free_mib
    need = pair.vnode(1)._number("node/1/max-kb") // 1024
    assert free < need, "this host is too large for the test"
    before = settled_free_pages(dom0)
    done = pair.attach(1, "pnode=0")
    assert done.status == REFUSED_NOW
    match = re.search(r"pnode 0 has (\d+) KiB free, (\d+) KiB are needed, (\d+) KiB short", done.text)
    assert match, done.text
    assert int(match[1]) + int(match[3]) == int(match[2])
    assert pages_off(dom0, before) == {}
    assert sorted(pair.nodes()) == [0]


def test_detach_when_the_rest_cannot_hold_the_memory(pair: ElasticGuest, background: Callable[[str, str], int]) -> None:
    """Refused up front by the guest, with the numbers; the program that fills the node does not notice."""
    assert pair.attach(1).status == 0
    nodes = pair.nodes()
    mib = nodes[0].free_mib + nodes[1].free_mib // 2
    pid = background(f"{PROGRAMS}/memcheck {mib} 2", "/tmp/memcheck.out")
    wait_for("memcheck fills the node", 120, lambda: "ready" in pair.guest("cat /tmp/memcheck.out").out)
    done = pair.detach(1)
    assert done.status == REFUSED_NOW
    match = re.search(r"need (\d+) KiB, free elsewhere (\d+) KiB", done.text)
    assert match, done.text
    assert int(match[1]) > int(match[2])
    vnode = pair.vnode(1)
    assert vnode.state == "online" and vnode.target_kib == vnode.current_kib
    assert pair.nodes()[1].cpus == nodes[1].cpus
    checked(pair.guest, f"kill -TERM {pid}")
    wait_for("memcheck ends", 90, lambda: "bad_pages" in pair.guest("cat /tmp/memcheck.out").out)
    assert '"bad_pages":0' in pair.guest("cat /tmp/memcheck.out").out
    assert pair.detach(1).status == 0


# vnuma= that cannot be, and what the message must name. {0} is a good home node, {1} a good elastic one.
HOME = '["pnode=0","size=256","vcpus=0-1","vdistances=10,21"]'
ELASTIC = '["pnode=1","size=256","vcpus=2-3","vdistances=21,10","elastic=1"]'
MALFORMED = (
    ("elastic is no boolean", HOME, ELASTIC.replace("elastic=1", "elastic=maybe"), r"elastic"),
    ("unknown key", HOME, ELASTIC.replace("elastic=1", "plastic=1"), r"plastic"),
    ("size is no number", HOME, ELASTIC.replace("size=256", "size=big"), r"size|big"),
    ("elastic size not whole blocks", HOME, ELASTIC.replace("size=256", "size=250"), r"multiple of 128 MiB"),
    ("node 0 elastic", HOME.replace("]", ',"elastic=1"]'), ELASTIC, r"vnode 0: elastic=1: .*cannot be elastic"),
    ("no such pnode", HOME, ELASTIC.replace("pnode=1", "pnode=9"), r"pnode=9: the host has 2 nodes"),
    ("vcpus overlap", HOME, ELASTIC.replace("vcpus=2-3", "vcpus=1-3"), r"vcpu|vCPU"),
    ("vcpus of an elastic node come first", HOME.replace("0-1", "2-3"), ELASTIC.replace("2-3", "0-1"), r"vCPU"),
    ("vcpus missing", HOME, ELASTIC.replace('"vcpus=2-3",', ""), r"vcpu|vCPU"),
    ("vdistances too short", HOME, ELASTIC.replace("21,10", "21"), r"distance"),
)
CONFIG = """name = "malformed"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
memory = 256
vcpus = 4
tsc_mode = "native"
vnuma = [ {home}, {elastic} ]
"""


@pytest.mark.usefixtures("pair")
def test_malformed_vnuma_is_refused(baseline: dict[int, int], dom0: Run) -> None:
    """`xl create` names the key and the reason, and leaves no domain and no memory behind."""
    texts = [CONFIG.format(home=home, elastic=elastic) for _, home, elastic, _ in MALFORMED]
    commands = [f"printf %s {shlex.quote(text)} >/tmp/malformed.cfg; xl create /tmp/malformed.cfg" for text in texts]
    left = "if xl domid malformed >/dev/null 2>&1; then xl destroy malformed; echo a domain is left; fi"
    wrong = [
        f"{name}: {answer}"
        for (name, _, _, words), answer in zip(MALFORMED, asked_in_a_row(dom0, commands, left), strict=True)
        if answer.status == 0 or not re.search(words, answer.text, re.DOTALL) or answer.state != ""
    ]
    assert wrong == []
    assert pages_off(dom0, baseline) == {}
