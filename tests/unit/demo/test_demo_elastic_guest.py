# SPDX-License-Identifier: GPL-2.0
"""The operator's side of an elastic guest, with commands that are played."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks import elastic_guest, in_lab
from benchmarks.elastic_guest import (
    HEAP,
    ElasticGuest,
    VnodeKeys,
    host_free_pages,
    pages_off,
    parse_keys,
    parse_vnode_list,
    settled_free_pages,
)
from benchmarks.guestview import Malformed
from lab.command import Done, Run
from lab.errors import CommandFailedError

LISTING = """/local/domain/3/vnuma = ""   (n0,r3)
/local/domain/3/vnuma/nodes = "2"   (n0,r3)
/local/domain/3/vnuma/node/1/target-kb = "524288"   (n0,r3)
/local/domain/3/vnuma/guest/node/1/state = "online"   (n3)
/local/domain/3/vnuma/guest/node/1/current-kb = "524288"   (n3)
/local/domain/3/vnuma/guest/node/1/phases = "populate=1000000,add=500000"
/local/domain/3/memory/target = "1"
"""


def play(answers: dict[str, Done], typed: list[str] | None = None) -> Run:
    """A Run that knows some answers and notes what was typed."""

    def run(command: str, timeout: float = 60.0) -> Done:
        if typed is not None:
            typed.append(command)
        return answers.get(command, Done(127, "", f"{command}: not found\n"))

    return run


def test_what_the_operator_types() -> None:
    typed: list[str] = []
    guest = ElasticGuest("my guest", play({}, typed), play({}))
    guest.attach(1, "pnode=1", "size=256M")
    guest.detach(1, "--no-wait")
    guest.resize(1, "128M")
    assert typed == [
        "xl vnode-attach 'my guest' 1 pnode=1 size=256M",
        "xl vnode-detach 'my guest' 1 --no-wait",
        "xl vnode-set 'my guest' 1 128M",
    ]


def test_the_keys_of_a_vnode() -> None:
    dom0 = play({"domid=$(xl domid g) && xenstore-ls -f /local/domain/$domid/vnuma": Done(0, LISTING)})
    vnode = ElasticGuest("g", dom0, play({})).vnode(1)
    assert (vnode.state, vnode.target_kib, vnode.current_kib, vnode.residual_kib) == ("online", 524288, 524288, 0)
    assert vnode.phases == {"populate": 1.0, "add": 0.5}
    assert "memory/target" not in parse_keys(LISTING)


def test_the_json_of_vnode_list() -> None:
    text = '[{"domid": 3, "name": "g", "vnodes": [{"vnode": 0, "state": "online"}, {"vnode": 1, "state": "offline"}]}]'
    listed = ElasticGuest("g", play({"xl vnode-list --json g": Done(0, text)}), play({})).listed()
    assert {number: vnode["state"] for number, vnode in listed.items()} == {0: "online", 1: "offline"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"name": "g"}]', '[{"vnodes": [{"state": "online"}]}]'])
def test_json_that_is_no_list_of_vnodes_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="xl vnode-list"):
        parse_vnode_list(text)


def test_a_vnode_that_the_guest_never_mentioned_is_offline() -> None:
    assert VnodeKeys(1, {}).state == "offline"
    assert VnodeKeys(1, {}).phases == {}


@pytest.mark.parametrize("value", ["-1", "many", "1e9", "", "9" * 20])
def test_a_number_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(Malformed):
        VnodeKeys(1, {"guest/node/1/current-kb": value}).current_kib  # noqa: B018


def test_a_guest_that_does_not_run() -> None:
    with pytest.raises(CommandFailedError, match="exit status 1\ng is an invalid domain"):
        ElasticGuest("g", play({"xl domid g": Done(1, "", "g is an invalid domain\n")}), play({})).domid()


def test_free_pages_of_the_host() -> None:
    log = "(XEN) NODE0 start->0 size->524288 free->17\n"
    dom0 = play({"xl dmesg -c >/dev/null && xl debug-keys u && xl dmesg": Done(0, log)})
    assert host_free_pages(dom0) == {0: 17}


LIST = "Name          ID   Mem VCPUs\tState\tTime(s)\nDomain-0       0  1024     2     r-----      12.3\n"
DYING = LIST + "(null)         7     0     4     --ps-d       1.5\n"


def test_a_host_at_rest_has_no_dying_domain_and_answers_thrice_the_same() -> None:
    lists = iter([DYING, DYING, LIST, LIST, LIST, LIST])
    heaps = iter([1, 1, 2, 17, 17, 17])

    def dom0(command: str, timeout: float = 60.0) -> Done:
        assert command == f"xl list && echo --- && {HEAP}"
        return Done(0, f"{next(lists)}---\n(XEN) NODE0 start->0 size->524288 free->{next(heaps)}\n")

    assert settled_free_pages(dom0) == {0: 17}
    with pytest.raises(StopIteration):
        next(heaps)


def test_a_host_that_never_rests_is_told_with_numbers() -> None:
    def dom0(command: str, timeout: float = 60.0) -> Done:
        return Done(0, f"{DYING}---\n(XEN) NODE0 start->0 size->524288 free->17\n")

    with pytest.raises(TimeoutError, match=r"\{0: 17\} pages free, dying domains: \[7\]"):
        settled_free_pages(dom0, 0.01)


@pytest.mark.parametrize(
    ("heaps", "off"),
    [
        ([17], {}),
        ([9, 12, 17], {}),  # back a little later
        ([16] * 50, {0: -1}),  # a leak
        ([18] * 50, {0: 1}),  # given back twice
    ],
)
def test_pages_are_waited_for_to_the_last(
    monkeypatch: pytest.MonkeyPatch, heaps: list[int], off: dict[int, int]
) -> None:
    monkeypatch.setattr(elastic_guest, "REST", 0.001)
    answers = iter(heaps)

    def dom0(command: str, timeout: float = 60.0) -> Done:
        assert command == HEAP
        return Done(0, f"(XEN) NODE0 start->0 size->524288 free->{next(answers)}\n")

    assert pages_off(dom0, {0: 17}, 0.02 if off else 60) == off


def test_the_quickest_answer_sets_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest's time is that of the middle of the question; half of how long it took may be wrong."""
    ours = iter([100.0, 104.0, 200.0, 202.0, 300.0, 308.0, 400.0])
    theirs = iter(["153.5", "251.25", "351.0"])
    monkeypatch.setattr(in_lab, "time", SimpleNamespace(time=lambda: next(ours)))
    clock = in_lab.Clock.compare(lambda command, timeout=60.0: Done(0, next(theirs) + "\n"))
    assert clock == in_lab.Clock(50.25, 1.0)
    assert clock.now() == 450.25
