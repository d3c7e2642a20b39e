# SPDX-License-Identifier: GPL-2.0
"""A guest with elastic vnodes, seen from the operator's side: what is typed in dom0, and what comes back.

It needs two functions that run a shell command in dom0 and in the guest: a guest of a rack (lab/guest.py) brings its own, and
a unit test plays them. No state is kept here: each question is asked anew, so what is answered is what is so.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from lab import guestview
from lab.command import Done, Run, checked
from lab.errors import Malformed

# Where guests have what `make build` made for them: the elastic libgomp, and programs of benchmarks and tests.
LIBGOMP = "/opt/xenuma/lib"
PROGRAMS = "/opt/xenuma/bin"

_KEY = re.compile(r"/local/domain/\d+/vnuma/(\S+) = \"(.*?)\"(?:\s+\(.*\))?")


def parse_keys(text: str) -> dict[str, str]:
    """The keys below `vnuma/`, from `xenstore-ls -f`."""
    keys = {}
    for line in text.splitlines():
        match = _KEY.match(line)
        if match:
            keys[match[1]] = match[2]
    return keys


_PHASE = re.compile(r"([a-z][a-z0-9_-]{0,31})=(\d{1,12})")


def parse_phases(text: str) -> dict[str, float]:
    """Seconds of each phase, in order, from xenstore's `name=microseconds,...`. Raises Malformed."""
    phases: dict[str, float] = {}
    for item in text.strip().split(",") if text.strip() else ():
        match = _PHASE.fullmatch(item)
        if not match or match[1] in phases:
            raise Malformed(f"phase {item[:60]!r} in {text[:200]!r}")
        phases[match[1]] = int(match[2]) / 1e6
    return phases


@dataclasses.dataclass(frozen=True)
class VnodeKeys:
    """What xenstore holds of one elastic vnode: the toolstack's keys, and the guest's word."""

    number: int
    keys: Mapping[str, str]

    def _number(self, key: str) -> int:
        text = self.keys.get(key, "0")
        if not re.fullmatch(r"\d{1,19}", text):
            raise Malformed(f"{key} = {text[:60]!r}")
        return int(text)

    @property
    def state(self) -> str:
        """The state that the guest reports; `offline` as long as it says nothing."""
        return self.keys.get(f"guest/node/{self.number}/state", "offline")

    @property
    def target_kib(self) -> int:
        """What the node should have."""
        return self._number(f"node/{self.number}/target-kb")

    @property
    def current_kib(self) -> int:
        """What the guest says is populated."""
        return self._number(f"guest/node/{self.number}/current-kb")

    @property
    def residual_kib(self) -> int:
        """What should have left and could not."""
        return self._number(f"guest/node/{self.number}/residual-kb")

    @property
    def reason(self) -> str:
        """Why there is a residual."""
        return self.keys.get(f"guest/node/{self.number}/reason", "")

    @property
    def error(self) -> str:
        """Why the last operation failed."""
        return self.keys.get(f"guest/node/{self.number}/error", "")

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of each phase of the last operation."""
        return parse_phases(self.keys.get(f"guest/node/{self.number}/phases", ""))


def parse_vnode_list(text: str) -> dict[int, dict[str, Any]]:
    """The vnodes of one domain, by number, from the JSON of `xl vnode-list`. Raises Malformed."""
    try:
        (domain,) = json.loads(text)
        return {int(vnode["vnode"]): dict(vnode) for vnode in domain["vnodes"]}
    except (ValueError, TypeError, KeyError) as error:
        raise Malformed(f"xl vnode-list: {text[:300]!r}") from error


class ElasticGuest:
    """A running guest: `dom0` and `guest` run commands, `name` is its name for xl."""

    def __init__(self, name: str, dom0: Run, guest: Run) -> None:
        self.name, self.dom0, self.guest = name, dom0, guest

    # What the operator types. The exit status is the caller's business.

    def attach(self, vnode: int, *options: str, timeout: float = 120.0) -> Done:
        """`xl vnode-attach`."""
        return self.dom0(self.command("vnode-attach", str(vnode), *options), timeout)

    def detach(self, vnode: int, *options: str, timeout: float = 120.0) -> Done:
        """`xl vnode-detach`."""
        return self.dom0(self.command("vnode-detach", str(vnode), *options), timeout)

    def resize(self, vnode: int, size: str, *options: str, timeout: float = 120.0) -> Done:
        """`xl vnode-set`; `size` as the operator writes it, `256M`."""
        return self.dom0(self.command("vnode-set", str(vnode), size, *options), timeout)

    def command(self, operation: str, *words: str) -> str:
        """The text of `xl OPERATION NAME WORDS...`."""
        return shlex.join(["xl", operation, self.name, *words])

    # What can be asked.

    def domid(self) -> int:
        """The guest's domain number. Raises CommandFailedError if it does not run."""
        return int(checked(self.dom0, f"xl domid {shlex.quote(self.name)}"))

    def vnode(self, number: int) -> VnodeKeys:
        """What xenstore holds of a vnode now."""
        listing = checked(
            self.dom0, f"domid=$(xl domid {shlex.quote(self.name)}) && xenstore-ls -f /local/domain/$domid/vnuma"
        )
        return VnodeKeys(number, parse_keys(listing))

    def listed(self) -> dict[int, dict[str, Any]]:
        """What `xl vnode-list --json` says of each vnode, by number. Raises CommandFailedError, Malformed."""
        return parse_vnode_list(checked(self.dom0, f"xl vnode-list --json {shlex.quote(self.name)}"))

    def nodes(self) -> dict[int, guestview.GuestNode]:
        """What `numactl -H` lists in the guest."""
        return guestview.parse_numactl(checked(self.guest, "numactl -H"))

    def online_cpus(self) -> tuple[int, ...]:
        """The CPUs online in the guest."""
        return guestview.parse_list(checked(self.guest, "cat /sys/devices/system/cpu/online"))

    def resident(self, pid: int) -> dict[int, int]:
        """KiB of a process in the guest on each node."""
        return guestview.parse_numa_maps(checked(self.guest, f"cat /proc/{pid}/numa_maps"))

    def vcpu_affinity(self) -> str:
        """`xl vcpu-list`, as it is."""
        return checked(self.dom0, f"xl vcpu-list {shlex.quote(self.name)}")
