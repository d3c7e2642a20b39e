# SPDX-License-Identifier: GPL-2.0
"""The other host lies: a member with good papers, whose dsmd is real but for what tests/unit/dsmd/liar.c makes of its words.

Each lie has the outcome that dsmd(8) promises (FAULTS): the guest goes on with the bytes that it wrote, or it is ended with a
reason that names the host and the pages that were there. Another guest does not notice, nor does Xen, and dom0 gives no memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.command import checked, run_in, write_file
from lab.elastic_guest import PROGRAMS
from lab.far_guest import DsmSite, far_guest, has_crashed, left_nothing, said, state, status, told
from lab.guest import Guest
from lab.host import Host
from lab.patience import wait_for
from lab.pipeline.paths import REPO
from lab.spanning import SOCKETS
from tests.e2e.dsm_hosts import free_pages
from tests.e2e.far_faults import CHECKED_MIB, DEADLINE, LIMITS, SHAPE, faults, is_clean, is_well, plain_guest
from tests.e2e.far_guest import ASKED_MOST, dsm_site

pytestmark = pytest.mark.fresh

AT = "/root/liar"
LIAR = REPO / "tests" / "unit" / "dsmd"
# dsmd-host starts this in place of dsmd.
WRAPPER = f"""#!/bin/sh
LIAR_FILE={AT}/lie LD_PRELOAD={AT}/liar.so exec {AT}/dsmd "$@"
"""
MEMORY_KIB = 4096  # that home's dsmd may take more than before: buffers, and statistics
LOG = "/var/log/dsmd-host.log"
GOES_ON = 8.0  # s, that a lie which ends nothing is told for


def built(folder: Path) -> Path:
    """liar.c and liar_rdma.c as a library, for dom0."""
    dsm = REPO / "dsm"
    flags = ["-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-fPIC", "-shared", f"-I{dsm / 'core'}", f"-I{dsm / 'transport'}"]
    core = [dsm / "core" / f"{noun}.c" for noun in ("protocol", "vcpu", "wire")]
    sources = [LIAR / "liar.c", LIAR / "liar_rdma.c", *core]
    libraries = ["-Wl,-z,defs", "-lssl", "-lcrypto", "-lrdmacm", "-libverbs"]
    subprocess.run(["gcc", *flags, *map(str, sources), "-o", str(folder / "liar.so"), *libraries], check=True)
    return folder


@pytest.fixture(scope="module", params=["tcp", "rdma"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def site(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    folder = tmp_path_factory.mktemp("liar")
    with dsm_site(tmp_path_factory.mktemp("hostile"), LIMITS, transport) as made:
        made.other.put(built(folder), AT)
        dom0 = run_in(made.other)
        checked(dom0, f"mv /usr/sbin/dsmd {AT}/dsmd")
        write_file(dom0, "/usr/sbin/dsmd", WRAPPER)
        checked(dom0, "chmod 755 /usr/sbin/dsmd")
        yield made


@pytest.fixture(scope="module")
def plain(site: DsmSite) -> Iterator[Guest]:
    with plain_guest(site) as guest:
        yield guest


@pytest.fixture(scope="module")
def baseline(site: DsmSite) -> dict[str, int]:
    """Free frames of each host after the first guest: what Xen allocates once does not count."""
    assert site.both
    return {}


def lie(site: DsmSite, kind: str, seed: int = 1, after: int = 0) -> None:
    """From the next frame on that it is about."""
    write_file(run_in(site.other), f"{AT}/lie.new", f"{kind} {seed} {after}\n")
    checked(run_in(site.other), f"mv {AT}/lie.new {AT}/lie")


@contextlib.contextmanager
def lies(site: DsmSite, kind: str, seed: int = 1, after: int = 0) -> Iterator[None]:
    """It is honest afterwards."""
    lie(site, kind, seed, after)
    try:
        yield
    finally:
        checked(run_in(site.other), f"rm -f {AT}/lie")


def was_told(site: DsmSite, kind: str) -> bool:
    """Was there a frame to lie with?"""
    return run_in(site.other)(f"grep -q 'liar: {kind}: a frame' {LOG}").status == 0


def memory_kib(host: Host) -> int:
    """What the guest's dsmd has of dom0."""
    answer = checked(run_in(host), f"grep VmRSS: /proc/$(cat {SOCKETS}/vm/*/pid)/status")
    return int(answer.split()[1])


class Watched:
    """memcheck on the node's memory. Each wrong page is a line on the guest's console, which is left when the guest is not."""

    def __init__(self, guest: Guest, host: Host) -> None:
        self._dom0 = run_in(host)
        self._log = f"/var/log/xen/guest-{guest.name}.log"
        self._from = int(checked(self._dom0, f"stat -c %s {self._log}"))
        self._inside = run_in(guest)
        checked(
            self._inside,
            f"( (numactl --membind=1 {PROGRAMS}/memcheck {CHECKED_MIB} 3 & echo $! >/tmp/memcheck.pid; wait) 2>&1"
            " | tee /tmp/memcheck.out >/dev/hvc0 ) >/dev/null 2>&1 </dev/null &",
        )
        wait_for("memcheck has written all pages", 240, lambda: "ready" in self._inside("cat /tmp/memcheck.out").out)

    def text(self) -> str:
        """What the console has had since."""
        return checked(self._dom0, f"tail -c +{self._from + 1} {self._log}")

    def assert_right(self) -> None:
        """No word was wrong."""
        text = self.text()
        assert "ready" in text, text  # it reaches the console
        wrong = [line for line in text.splitlines() if "memcheck:" in line]
        assert wrong == [], wrong

    def end(self) -> None:
        """All pages are looked at a last time."""
        checked(self._inside, "kill $(cat /tmp/memcheck.pid)")
        wait_for("memcheck's verdict", 240, lambda: "bad_pages" in self._inside("cat /tmp/memcheck.out").out)
        assert '"bad_pages":0' in checked(self._inside, "cat /tmp/memcheck.out")


# ---- What a guest survives ----


@pytest.fixture(scope="class")
def survivor(site: DsmSite, plain: Guest) -> Iterator[Guest]:
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        yield guest
    left_nothing(site.both)
    is_well(plain)


HELLOS = {
    "hello-none": "no HELLO: no such message",
    "hello-versions": "no common version of the protocol",
    "hello-vm": "HELLO of another VM",
    "hello-epoch-far": "an epoch that can't be",
}


class TestAGuestThatGoesOn:
    """One guest for all of them: at first its node is absent."""

    @pytest.mark.parametrize("kind", HELLOS)
    def test_no_connection(self, site: DsmSite, survivor: Guest, transport: str, kind: str) -> None:
        """The node can't be attached, for a reason that is said; the guest goes on, and it can be tried again.

        Over RDMA who lies is not up yet: it tries again by itself, and lies once only.
        """
        again = transport == "rdma"
        with lies(site, kind):
            attached = survivor.attach(1, *([] if again else ["--timeout=60"]), timeout=ASKED_MOST)
            print(kind, attached.status, attached.text)
            assert was_told(site, kind)
            print(said(site.both))
            log = checked(run_in(site.home), f"tail -n 100 {LOG}")
        assert f"host beta: no connection: {HELLOS[kind]}" in log, log
        if again:
            assert attached.status == 0, attached.text
            detached = survivor.detach(1, timeout=ASKED_MOST)
            assert detached.status == 0, detached.text + said(site.both)
        else:
            assert attached.status != 0 and "beta" in attached.text, attached.text
        assert run_in(survivor)("true").status == 0

    def test_a_crowd(self, site: DsmSite, survivor: Guest) -> None:
        """Connections without end from its address, beside the one that there is."""
        kind = "crowd"
        attached = survivor.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        watched = Watched(survivor, site.home)
        memory = memory_kib(site.home)
        with lies(site, kind):
            before = faults(site.home)
            began = time.monotonic()
            wait_for("it lasts", GOES_ON + 60, lambda: time.monotonic() - began >= GOES_ON, interval=0.5)
            assert was_told(site, kind)
            wait_for("pages come", 60, lambda: faults(site.home) > before + 20)
        assert memory_kib(site.home) - memory < MEMORY_KIB
        assert [status(host).get("state") for host in site.both] == ["running", "running"], said(site.both)
        watched.end()
        watched.assert_right()


# ---- What ends a guest ----

LOST = r"host beta is lost \({}\): \d+ pages of alpha were modified there; of its own 32768 pages \d+ are here"
BREACH = "it breaks the protocol: .*"


@dataclasses.dataclass(frozen=True)
class Deadly:
    """A lie that ends the guest, and why, as home says it."""

    kind: str
    why: str
    seed: int = 1
    after: int = 50

    def __str__(self) -> str:
        return self.kind


DEADLY = [
    Deadly("garbage", "bytes that are no message.*"),
    Deadly("epoch-old", "an epoch that can't be.*"),
    Deadly("answer-twice", BREACH),
    Deadly("made-up", ".*"),
    Deadly("flood", ".*"),
    Deadly("questions", "a question, an answer or a credit out of turn"),
    Deadly("no-answers", "a question was not answered in time.*"),
    # Its pages are asked for, and none of the home's: it has no vCPU.
    Deadly("no-gifts", ".*"),
]


@pytest.mark.parametrize("bad", DEADLY, ids=str)
def test_a_guest_is_ended(site: DsmSite, plain: Guest, baseline: dict[str, int], bad: Deadly) -> None:
    with far_guest(site.both, site.other.description.name, SHAPE) as guest, contextlib.ExitStack() as stack:
        attached = guest.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        watched = Watched(guest, site.home)
        memory = memory_kib(site.home)
        stack.enter_context(lies(site, bad.kind, bad.seed, bad.after))
        wait_for("home knows", DEADLINE + 120, lambda: status(site.home).get("state") == "failed")
        assert was_told(site, bad.kind)
        print(told(site.home, LOST.format(bad.why)))
        grown = memory_kib(site.home) - memory
        print("memory of home's dsmd has grown by", grown, "KiB")
        assert grown < MEMORY_KIB
        # Xen's "crashed", which on_crash=preserve keeps.
        wait_for("the guest has ended", 30, lambda: has_crashed(run_in(site.home)("xl list far").out))
        watched.assert_right()
        listed = guest.listed()[1]["host"]
        assert listed["link"] == "lost", listed
        refused = guest.detach(1, "--timeout=20", timeout=ASKED_MOST)
        assert refused.status != 0, refused.text
        wait_for("the other host knows", DEADLINE + 60, lambda: status(site.other).get("state") == "failed")
        elsewhere = state(site.other)
        print(elsewhere)
        assert len(re.findall(r"host alpha ", elsewhere)) >= 2, elsewhere
    # The one command was `xl destroy`.
    for host in site.both:
        wait_for(f"nothing is left at {host.description.name}", 120, functools.partial(is_clean, host))
    is_well(plain)
    free = dict(zip(("alpha", "beta"), free_pages(site.both), strict=True))
    print("free:", free, baseline)
    assert not baseline or free == baseline, (free, baseline)
    baseline.update(free)
