# SPDX-License-Identifier: GPL-2.0
"""A host with upstream's hypervisor and upstream's kernel, in dom0 and in its guest: what the balloon is compared with.

Sources and options are ours without our patches (the steps xen-stock and linux-stock). The tools in dom0 are this project's:
what they do of a guest without vNUMA is upstream's, by system calls and hypercalls that upstream has.

When stock's balloon has taken or given all, nobody is told. But its thread goes to sleep then, and the kernel can trace that:
in the guest a reader of such events, which waits for them and does not poll, writes each into xenstore, where dom0 can watch.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lab import artifacts
from lab.artifacts import Artifacts
from lab.command import checked
from lab.description import RackDescription
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError
from lab.host import Host
from lab.pipeline.paths import ARTIFACTS
from lab.rack import Rack

STEPS = ("xen-stock", "linux-stock")  # of the build, which makes them when they are asked for
XEN = ARTIFACTS / "xen-stock" / "xen.elf"
KERNEL = ARTIFACTS / "linux-stock" / "vmlinuz"
KERNEL_IN_DOM0 = "/boot/vmlinuz-stock"
RELEASE = "-stock"  # linux-guest/config/stock.config
PARAMETER = "guest-remove-range"  # of Xen's, which upstream has not

RESTS = "data/balloon-rests"  # in the guest's part of xenstore: how often the balloon's thread went to sleep

# Of the scheduler's events those that are wanted: 1 is TASK_INTERRUPTIBLE, as what waits for a new target sleeps; who is
# preempted, or waits for memory, has another state. In the guest's own shell, since the one that ssh started ends.
TELLER = f"""
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing || exit
cd /sys/kernel/tracing || exit
echo 'prev_comm == "xen-balloon" && prev_state == 1' >events/sched/sched_switch/filter || exit
echo 1 >events/sched/sched_switch/enable || exit
xenstore-write {RESTS} 0 || exit
setsid sh -c 'n=0; cat trace_pipe | while read -r _; do n=$((n + 1)); xenstore-write {RESTS} "$n"; done' \\
  </dev/null >/dev/null 2>&1 &
"""


def stock_artifacts() -> Artifacts:
    """What such a host boots. Raises LabError that says how to build what is not there."""
    missing = [str(path) for path in (XEN, KERNEL) if not path.is_file()]
    if missing:
        raise LabError(f"not there: {', '.join(missing)}; run make build STEPS='{' '.join(STEPS)}'")
    return dataclasses.replace(artifacts.load(), xen=XEN.resolve(), kernel=KERNEL.resolve())


def boot(rack: str) -> Rack:
    """A rack of one host; `rack` as RackDescription.load() has it. Raises LabError."""
    return Rack.boot(RackDescription.load(rack), stock_artifacts(), meter=False)


def start_guest(host: Host, config: Path, overrides: dict[str, str]) -> ElasticGuest:
    """A guest with upstream's kernel, whose balloon tells when it rests. Raises LabError."""
    host.put(KERNEL.resolve(), KERNEL_IN_DOM0)
    guest = host.start_guest(config, {**overrides, "kernel": f'"{KERNEL_IN_DOM0}"'})
    prove(guest)
    checked(guest.guest, TELLER)
    return guest


def prove(guest: ElasticGuest) -> None:
    """Raises LabError unless the guest's kernel, dom0's and the hypervisor are upstream's."""
    for where, run in (("the guest", guest.guest), ("dom0", guest.dom0)):
        release = checked(run, "uname -r").strip()
        if not release.endswith(RELEASE):
            raise LabError(f"{where} runs {release}, which is not upstream's kernel")
    if guest.dom0(f"xl set-parameters {PARAMETER}=yes").status == 0:
        raise LabError(f"the hypervisor knows {PARAMETER}: it is not upstream's")
