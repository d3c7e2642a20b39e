# SPDX-License-Identifier: GPL-2.0
"""The operator's side of an elastic guest, with commands that are played."""

from __future__ import annotations

import pytest

from lab.command import Done, Run
from lab.elastic_guest import ElasticGuest, VnodeKeys, parse_keys, parse_phases, parse_vnode_list
from lab.errors import CommandFailedError, Malformed

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


def test_phases_in_order_and_in_seconds() -> None:
    phases = parse_phases("populate=412000,add=900,online=1\n")
    assert list(phases.items()) == [("populate", 0.412), ("add", 0.0009), ("online", 1e-06)]
    assert parse_phases("") == {}


@pytest.mark.parametrize(
    "text", ["populate", "populate=", "populate=-1", "a=1,a=2", "a=1,,b=2", "A=1", "a=1;rm", "a=" + "9" * 13]
)
def test_malformed_phases_are_refused(text: str) -> None:
    with pytest.raises(Malformed, match="phase"):
        parse_phases(text)
