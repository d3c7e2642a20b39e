# SPDX-License-Identifier: GPL-2.0
"""Lines that are new in the logs of a rack, its consoles and those inside dom0 and the guest, and those that nothing explains.

The guest's and dom0's kernels show warnings there (loglevel=5), so that any line of theirs needs an explanation: a kind that is
listed here, or on the guest's own console a life that ends or begins: of its boot those lines count that complain, have a word
of trouble, or are of Xen's drivers or ours, unless a boot is known to say them. Dom0 boots no more by then, and so whatever it
says counts. The hypervisor is asked for its books by debug keys, whose reports are there as well; of its lines those count that
complain, have a word of trouble in them, or are of what a vCPU of dom0 does, or of a guest's that is in the middle of its life.

What a console does not show is read inside (inside.py). Below /var/log there is little, mostly of the xl that attends the
guest: each line that is not of a life's end or beginning counts. A kernel's ring has notices and news of all that comes and
goes: of these count those that complain, or have a word of trouble; of a guest's boot those that complain.

What comes when nobody is asked any more, as the host shuts down, is searched for complaints.

A console that says nothing is not read, or is another's: of a life that has begun one has to tell, and the hypervisor's, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.soak.inside import ASKED, Inside, Said
from lab.command import Run
from lab.complaints import KNOWN, KNOWN_HEAD, Growing, complaints, consoles

# What the terminal of a console's shell puts before a line.
_PROMPT = re.compile(r"^((?:\x1b?\[\?2004[hl])*(?:\S+:~# )?)")
# Xen and dom0 write to one serial line: a letter can be there twice, or one of them lost.
_HEAD = r"\(+(?:X+E+N*|X+N+|E+N+)\)+"
XEN = re.compile(_HEAD + r"\s")
_XEN_HEAD = re.compile(_PROMPT.pattern + _HEAD + r"(?=\s)", re.MULTILINE)
# What Xen says within another line of its own, once, whose rest follows without a head.
_WITHIN = re.compile(_HEAD + r" uart interrupt taking more than \d+ms, switched to polling\r?\n")
_TIME = re.compile(r"^\[\s*\d+\.\d+\]\s*")

# A letter twice. (No lost one was among the 15,000 lines of one kind that were looked at.)
_TWICE = re.compile(r"(.)\1")
HOST = "-console.log"  # what Xen and dom0 share (lab/qemu.py); the other consoles are guests'

READY = "xenuma: guest ready"  # the guest's init, in each life

EXPLAINED = re.compile(
    r"cpu \d+ spinlock event irq \d+"  # each CPU that comes up
    r"|" + READY + r"|Grant table initialized"
    r"|={20,}"  # before lockdep's report, whose next line is what counts
    r"|hrtimer: interrupt took \d+ ns|clocksource: .*|workqueue: .* hogged CPU.*"  # the emulator's time
)

# A page that cannot move just now: Linux shows it (mm/memory_hotplug.c, do_migrate_range()) and tries again.
UNMOVED = re.compile(
    r"migrating pfn [0-9a-f]+ failed ret:\d+|page dumped because: migration failure|page: refcount:.*|head: .*"
    r"|(?:anon|ksm|file)? ?flags: 0x[0-9a-f]+\(.*|memcg:[0-9a-f]+|raw: [0-9a-f ]+|aops:.*|page_type: .*"
    r"|do_migrate_range: \d+ callbacks suppressed"
)

# Lines of a boot that seem to be trouble, or of Xen's drivers, and are not: of each boot, by all kernels that guests have here.
BOOT = re.compile(
    r"Warning: Processor Platform Limit event detected, but not handled\."  # ACPI's: there is no CPUfreq in a guest
    r"|PCI: Fatal: No config space access function found"  # nor PCI
    r"|xen:xen_privcmd: No target domain found, blocking all hypercalls"  # nor a domain that it may rule
    r"|xenbus_probe_frontend: Waiting for devices to initialise: [\ds.]*"  # a back end is slow; one that never comes is missed
    r"|calibrate_delay_direct\(\) failed to get a good estimate for loops_per_jiffy\."  # the emulator's time, rarely
)

# Of a back end that comes and goes with a life. Linux says it below a warning; but after lockdep's report, which is known, dom0
# with that kernel shows all. A letter that was there twice is there once.
BACK_END = re.compile(
    r"xenbr0: port \d+\(vif\d+\.\d+\) entered (?:blocking|disabled|forwarding) state"
    r"|vif vif-\d+-\d+ vif\d+\.\d+: (?:entered (?:al+multicast|promiscuous) mode|Guest Rx ready)"
    r"|vif vif-\d+-\d+ vif\d+\.\d+ \(unregistering\): left (?:al+multicast|promiscuous) mode"
)
_ASKED = re.compile(re.escape(ASKED) + r"\S+")  # shown there, too

# Xen's drivers and ours, front ends and back ends: a boot or a stall explains nothing that they say.
DRIVER = re.compile(
    r"\bxen[-_:/]\w[-\w]*: |\bxenbus\w*: |\bv(?:if|bd) v(?:if|bd)-\d+|\bnet eth\d+: |\bvif\d+\.\d+\b|\bCopy fail: "
)

# What the driver says of an operation that failed, was called off or left a residual, and of which vnode.
FAILED = re.compile(r"xen[-_]elastic[-_]numa: vnode (\d+): -\d+ .*")

# A stall says that the emulator had no time; what it prints goes on for many lines, as lockdep's report does that is known.
STALL = re.compile(r"rcu: INFO: .*(?:stall|self-detected)|watchdog: BUG: soft lockup")

TROUBLE = re.compile(
    r"\berror|\bfail|\bunexpected|\binvalid"
    r"|\bcannot\b|\bcan't\b|could not|\bunable\b"
    r"|\bleak|over-?allocation|\bout of memory"
    r"|\bdenied|\brefuse"
    r"|messages dropped"  # by printk, which had no time to show them
    r"|\bcrash|\bwarn"
    r"|\bassert"
    r"|\bstuck\b"
    r"|timed out"
    r"|\boverflow"
    r"|\bunderflow"
    r"|\bcorrupt"
    r"|\bbad\b"
    r"|mismatch"
    r"|\blost\b"
    r"|n't match|inconsistent|\bincorrect"  # of grants, extended state, the p2m
    r"|\bfatal\b|\bpanic|\babort"
    r"|\bwrong\b|\billegal\b|\bbogus\b|\bweird\b|\bodd\b"  # as in "Odd p2m page"
    r"|unhandled|violation|not permitted|not allowed|disallow|\breject"
    r"|\bexceed|\bout of (?:range|bounds)\b|\btoo (?:many|large|big|small)\b"
    r"|\bstill in ",  # use, flight, progress
    re.I,
)
# Of what a vCPU of a guest does: a hypervisor with checks says it of each that begins.
OF_VCPU = re.compile(r"\(XEN\) .*\bd[1-9]\d*v\d+ ")
# Dom0's have all begun.
OF_DOM0 = re.compile(r"\(XEN\) .*\bd0v\d+\b")
# And of each that an operation brings up: Linux asks for a register that there is none of.
COMES_UP = re.compile(r"\(XEN\) .*\bd[1-9]\d*v\d+ RDMSR 0x[0-9a-f]+ unimplemented")

# What the xl that attends a guest writes when a life begins, and when one ends by a reboot or by `xl destroy`.
LIFE = re.compile(
    r"Waiting for domain \S+ \(domid \d+\) to die \[pid \d+\]|Domain \d+ has been destroyed\."
    r"|Domain \d+ has shut down, reason code 1 0x1|Action for shutdown reason code 1 is restart"
    r"|Domain \d+ needs to be cleaned up: destroying the domain|Done\. Rebooting now"
    r"|libxl: info: \S+:libxl__domain_build_info_setdefault: qemu-xen is unavailable, using qemu-xen-traditional instead: .*"
)


def _plain(text: str) -> str:
    """Of a console, with Xen's lines whole and their heads as Xen writes them."""
    return _XEN_HEAD.sub(r"\1(XEN)", _WITHIN.sub("", text))


def tells_of_a_stall(text: str) -> bool:
    """Whether a report begins in it that goes on for many lines."""
    return bool(STALL.search(text) or KNOWN_HEAD.search(text))


def unexplained(
    text: str, failing: int | None, booting: bool, host: bool = False, *, stalled: bool = False
) -> list[str]:
    """The lines of a piece of a console that nothing explains.

    `failing`: the vnode of which an operation was to fail, or to be called off; `booting`: a life has ended or begun meanwhile;
    `host`: this is the console of Xen and dom0, which go on; `stalled`: the piece before this told of a stall, whose report may
    go on here.
    """
    text = _plain(text)
    found = [*complaints(text)]
    for raw in text.splitlines():
        line = _TIME.sub("", _PROMPT.sub("", raw.replace("\r", ""))).strip()
        stalled = stalled or tells_of_a_stall(line)
        if not line or raw.strip() in found or KNOWN.search(line):
            continue
        if XEN.match(line):
            of_vcpu = OF_VCPU.search(line) and not booting and not COMES_UP.fullmatch(line)
            if TROUBLE.search(line) or OF_DOM0.search(line) or of_vcpu:
                found.append(line)
        elif not (
            EXPLAINED.fullmatch(line)
            or UNMOVED.fullmatch(line)
            or ((failed := FAILED.fullmatch(line)) and int(failed[1]) == failing)
            or _ASKED.fullmatch(_TWICE.sub(r"\1", line))
            or _explained_by_time(line, booting, stalled, host)
        ):
            found.append(line)
    return found


def _explained_by_time(line: str, booting: bool, stalled: bool, host: bool) -> bool:
    """Whether a line that would count at any other time belongs to a life's end or beginning, or to a stall before it."""
    known = BACK_END.fullmatch(_TWICE.sub(r"\1", line)) if host else BOOT.fullmatch(line)
    if booting and known:
        return True
    if DRIVER.search(line):
        return False
    return stalled or (booting and not host and not TROUBLE.search(line))


def unexplained_inside(said: Sequence[Said], booting: bool, boots: bool) -> list[str]:
    """The lines of a machine's own logs that nothing explains. `boots`: its kernel has begun anew meanwhile."""
    found = []
    for file, line in said:
        if file:
            if not (booting and Path(file).name.startswith("xl-") and LIFE.fullmatch(line)):
                found.append(f"{file}: {line}")
        elif complaints(line) or (TROUBLE.search(line) and not boots and not EXPLAINED.fullmatch(line)):
            found.append(f"kernel: {line}")
    return found


class Logs:
    """The consoles of a directory, and what is read in dom0 and the guest; each whole line is looked at once."""

    def __init__(self, directory: Path, list_consoles: Callable[[Path], list[Path]] = consoles) -> None:
        # Once dom0 has had a guest, it has the log of the xl that attends it.
        self.dom0, self.guest = Inside("dom0", files=True), Inside("guest")
        self._directory = directory
        self._consoles = list_consoles
        self._growing = Growing()
        self._stalled: set[str] = set()  # logs whose last piece told of a stall
        self.stalls = 0  # reports of a stall so far, which explain what follows them

    def skip(self, dom0: Run) -> None:
        """Forget what is there already: a rack that has run before this."""
        self.dom0.read(dom0)
        self.new(None, booting=True)

    def last(self, dom0: Run) -> list[str]:
        """What has come since, of a guest's end too, and is not explained."""
        self.dom0.read(dom0, final=True)
        return self.new(None, booting=True, final=True)

    def of_guest(self, guest: Run) -> list[str]:
        """What the guest's own logs have, before a life of it ends that goes on until then."""
        self.guest.read(guest)
        return self._inside(self.guest, booting=False)

    def ended(self) -> list[str]:
        """What the consoles complain of that has come since, when there is no dom0 any more to be asked."""
        added = {log.name: self._growing.added(log, final=True) for log in self._consoles(self._directory)}
        return [f"{name}: {line}" for name, text in added.items() for line in complaints(_plain(text))]

    def new(self, failing: int | None, booting: bool, final: bool = False) -> list[str]:
        """What has come since in whole lines and is not explained, each line with its log's name.

        A report that may be a known one is left for the next time, as by lab.complaints.Consoles, but not the `final` time.
        """
        added = {log.name: self._growing.added(log, final) for log in self._consoles(self._directory)}
        self.stalls += sum(len(STALL.findall(text)) for text in added.values())
        found = []
        for name, text in added.items():
            lines = unexplained(text, failing, booting, host=name.endswith(HOST), stalled=name in self._stalled)
            found += [f"{name}: {line}" for line in lines]
            if text:  # where nothing was said, the rest is still to come
                self._stalled.discard(name)
            if tells_of_a_stall(text):
                self._stalled.add(name)
        for inside in (self.dom0, self.guest):
            found += self._inside(inside, booting)
        if booting and not final:
            for told, who in ((READY, "the guest"), ("(XEN) ", "the hypervisor")):
                if not any(told in _plain(text) for text in added.values()):
                    found.append(f"no console has a word of {who} since the life before this")
        return found

    def _inside(self, inside: Inside, booting: bool) -> list[str]:
        said, lost = inside.new()
        lines = unexplained_inside(said, booting, boots=booting and inside is self.guest)
        found = [f"{inside.name}: {line}" for line in lines]
        if lost:
            found.append(f"{inside.name}: {lost} records of the kernel's ring were overwritten before they were read")
        return found
