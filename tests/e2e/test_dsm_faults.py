# SPDX-License-Identifier: GPL-2.0
"""All faults between two hosts that far_faults.py has, and all that `xl create` refuses of a guest with `host=`.

Some of them are in test_dsm_host_vnode.py, too, for `make test`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Iterator

import pytest

from lab.command import checked, run_in, write_file
from lab.far_guest import DsmSite, far_guest, left_nothing, said, status
from lab.guest import Guest
from lab.patience import scaled, wait_for
from tests.e2e.dsm_hosts import Memcheck, free_pages
from tests.e2e.far_faults import (
    CHECKED_MIB,
    CUT,
    DEADLY,
    LIMITS,
    PLAIN,
    SHAPE,
    SURVIVED,
    Deadly,
    Survived,
    attached_guest,
    cables,
    is_clean,
    is_ended,
    is_well,
    plain_guest,
    survives,
    without_dsmd_host,
)
from tests.e2e.far_guest import ASKED_MOST, XL_LOG, dsm_site, leave_by_kexec
from tests.e2e.test_elastic_kexec import SOFT_RESET

pytestmark = pytest.mark.fresh

# The pool is a sixteenth of the node, 8 MiB, and 2 MiB of it are for the node's own page structures: it is always full.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    with dsm_site(tmp_path_factory.mktemp("faults"), LIMITS) as made:
        yield made


@pytest.fixture(scope="module")
def plain(site: DsmSite) -> Iterator[Guest]:
    with plain_guest(site) as guest:
        yield guest


# ---- What is refused ----


@contextlib.contextmanager
def namesake(site: DsmSite) -> Iterator[None]:
    """Another guest, called the same, on the other host."""
    dom0 = run_in(site.other)
    write_file(dom0, "/tmp/far.cfg", PLAIN.replace('"plain"', '"far"'))
    checked(dom0, "xl create -p /tmp/far.cfg", scaled(240))
    try:
        yield
    finally:
        checked(dom0, "xl destroy far")


@dataclasses.dataclass(frozen=True)
class Refused:
    """What `xl create` refuses: the configuration, or what the hosts are, and what it says."""

    name: str
    says: tuple[str, ...]
    config: Callable[[str], str] = lambda text: text
    during: Callable[[DsmSite], contextlib.AbstractContextManager[object]] = lambda _: contextlib.nullcontext()

    def __str__(self) -> str:
        return self.name


def more(line: str) -> Callable[[str], str]:
    """The configuration with a line more."""
    return lambda text: text + line + "\n"


def other(old: str, new: str) -> Callable[[str], str]:
    """The configuration with something else in place of something that is in it."""

    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


REFUSED = [
    Refused("a host that nobody knows", ("nowhere", "alpha, beta"), other("host=beta", "host=nowhere")),
    Refused("this host", ("alpha is this host",), other("host=beta", "host=alpha")),
    Refused("not elastic", ("elastic=1 is missing",), other(', "elastic=1"', "")),
    Refused(
        "on a node of this host, too",
        ("pnode=0 would be a node of this host",),
        other('"host=beta"', '"host=beta", "pnode=0"'),
    ),
    Refused("populate on demand", ("maxmem= is 768 MiB",), more("maxmem = 768")),
    Refused("nested virtualisation", ("nested virtualisation",), more("nestedhvm = 1")),
    Refused("altp2m", ("altp2m",), more('altp2m = "external"')),
    Refused("more memory than there is", ("host beta: ", "KiB are free", "short by"), other("size=128", "size=1792")),
    Refused("the same name there", ("host beta: domain", "is called far, too"), during=namesake),
    Refused("no dsmd-host here", ("does not run here",), during=lambda site: without_dsmd_host(site.home)),
    Refused("no dsmd-host there", ("nobody listens",), during=lambda site: without_dsmd_host(site.other)),
    Refused(
        "a host that can't be reached", ("host beta (", "no connection within"), during=lambda site: cables(site, CUT)
    ),
]


@pytest.mark.parametrize("bad", REFUSED, ids=str)
def test_a_guest_is_not_made(site: DsmSite, bad: Refused) -> None:
    """With a reason, and nothing of it is left."""
    dom0 = run_in(site.home)
    write_file(dom0, "/tmp/far.cfg", bad.config(SHAPE.xl_cfg("beta")))
    with bad.during(site):
        done = dom0("xl create /tmp/far.cfg", scaled(240))
        print(done.text)
        assert done.status != 0
        assert [word for word in bad.says if word not in done.text] == [], done.text
        assert "Destruction of domain failed" not in done.text, done.text
        assert dom0("xl domid far").status != 0
    for host in site.both:
        wait_for(f"nothing is left at {host.description.name}", 60, functools.partial(is_clean, host))


# ---- What a guest survives ----


@pytest.fixture(scope="class")
def survivor(site: DsmSite, plain: Guest) -> Iterator[Guest]:
    """A guest whose node is attached and full of pages that are checked all the time."""
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        attached = guest.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        memory = Memcheck(guest, 1, CHECKED_MIB)
        yield guest
        print("memcheck:", memory.end())
        engine = status(site.home)["engine"]
        print("in the end:", json.dumps(engine))
        # The pool was full: pages had to go, and those who needed a frame had to wait.
        assert engine["evicted_modified"] > 0, engine
        detached = guest.detach(1, timeout=ASKED_MOST)
        assert detached.status == 0, detached.text + said(site.both)
    left_nothing(site.both)
    is_well(plain)


class TestAGuestThatGoesOn:
    """One guest for all of them, which ends before the next one of that name is made."""

    @pytest.mark.parametrize("fault", SURVIVED, ids=str)
    def test_a_guest_survives(self, site: DsmSite, survivor: Guest, fault: Survived) -> None:
        survives(site, survivor, fault)

    @pytest.mark.parametrize(
        "command",
        ["xl save far /tmp/refused.save", "xl migrate -s '' far 'xl migrate-receive'"],
        ids=["save", "migrate"],
    )
    def test_a_guest_stays_here(self, site: DsmSite, survivor: Guest, command: str) -> None:
        dom0 = run_in(site.home)
        done = dom0(command, 120)
        assert done.status != 0 and "Cannot save a guest with vNUMA configured" in done.text, done.text
        wait_for("the receiver has gone", 60, lambda: "--incoming" not in checked(dom0, "xl list"))
        assert survivor.listed()[1]["host"]["link"] == "up"


# ---- What ends a guest ----


@pytest.fixture(scope="module")
def baseline() -> dict[str, int]:
    """Free frames of each host after the first guest: what Xen allocates once does not count."""
    return {}


def test_a_guest_that_leaves_its_kernel(site: DsmSite, plain: Guest, baseline: dict[str, int]) -> None:
    """By kexec, which under xl is a PVH domain's end (decision 0036): xl destroys it, and neither host has anything of it."""
    dom0 = run_in(site.home)
    with attached_guest(site) as guest:
        written = int(checked(dom0, f"wc -c <{XL_LOG}"))
        leave_by_kexec(guest, 0, 3.0)
        wait_for("the domain is gone", 120, lambda: dom0("xl domid far").status != 0)
    left_nothing(site.both)
    log = checked(dom0, f"tail -c +{written + 1} {XL_LOG}")
    assert SOFT_RESET in log, log
    is_well(plain)
    free = dict(zip(("alpha", "beta"), free_pages(site.both), strict=True))
    print("free:", free, baseline)
    assert not baseline or free == baseline, (free, baseline)
    baseline.update(free)


@pytest.mark.parametrize("fault", DEADLY, ids=str)
def test_a_guest_is_ended(site: DsmSite, plain: Guest, baseline: dict[str, int], fault: Deadly) -> None:
    is_ended(site, plain, fault)
    hosts = [host for host in site.both if not host.ended()]
    if len(hosts) == 2:
        free = dict(zip(("alpha", "beta"), free_pages(site.both), strict=True))
        print("free:", free, baseline)
        assert not baseline or free == baseline, (free, baseline)
        baseline.update(free)
