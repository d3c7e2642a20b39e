# SPDX-License-Identifier: GPL-2.0
"""A host with one elastic guest that is played: it understands what the soak types, and answers in the words of the real ones.

`faults` has what it does wrong, by name; each does its harm where it says so here:

    stall       an attach has the guest's kernel tell of a stall, and of more after it
    slow        a page of what a detach gives back comes late: at the third question
    lingers     the same of the end of a domain
    page        a detach keeps a page of the host
    life        the end of a domain keeps a page of the host
    twice       the end of a domain gives back a page of pnode 1 that was free
    grants      a domain's back ends run on a vCPU of dom0 that has mapped no grant before
    grants1     the same, with memory of pnode 1
    home        a detach takes a page of the home from pnode 1 for one of the node's
    balloon     the end of a domain has dom0 give back pages, and take others of pnode 1
    stale       the end of a domain leaves its directory below /libxl
    mute        a guest's console says nothing of a life that begins
    xen         the end of a domain has the hypervisor complain
    other       a detach that leaves a residual has the driver say that another vnode failed
    line        an attach logs a line that nobody expects
    log         an attach has the xl that attends the guest write one into its log
    notice      an attach has the guest's kernel tell of a failure where no console shows it
    dom0        an attach has dom0's kernel do so
    tears       the end of a domain has it do so
    dump        the end of a domain leaves a file below /var/log
    lost        an attach has the guest's kernel say more than its ring holds
    complaint   a detach logs a warning of the kernel
    silence     an attach that is refused ends with 0
    words       an attach that is refused does not say why
    changes     an attach that is refused changes the limit
    half        a killed detach leaves the node where it was, and takes its CPUs
    bytes       a program finds a wrong word
    idle        a program has compared nothing until it ends
    last        a program finds a wrong word as it ends, and does not count it
    counts      a program counts a wrong word as it ends, and does not say which
    ends        a program ends by itself while a node leaves
    anew        the guest starts anew by itself while a node comes
    bound       a detach leaves the node's vCPUs bound to the CPUs of its physical node
    table       an attach leaves Xen's table as it was
    drift       an attach raises the home's limit, in Xen and in xenstore
    kept        what there is of a vnode when a guest reboots is the next life's, and so is its limit
    stray       an attach of a vnode that does not exist leaves a key
    killed      an xl that is killed ends with 3
    nowait      an xl that does not wait ends with 6
    reboot      xl reboot fails, and the guest lives on
    deaf        the guest runs no command but what the books ask
    garbled     the books have not their form
    hangs       an operation whose xl was killed never ends
    between     one that was killed half-way keeps 512 pages of the host, until the next command on the node
    idles       an xl that does not wait has told the guest nothing
    mutters     an xl that has done what it was to do complains of something
    hums        an xl that does not wait complains of something
    grumbles    the xl that destroys a guest complains of something
    mumbles     the one that creates it does
    elsewhere   what a program was to have on a node is elsewhere
    libraries   what a program has on a node is less than it has asked for
    claims      an xl that is killed before it has told the guest ends with 0
    goes on     an xl that is told to give up says so, and the guest goes on
    dies        the signal ends it half-way, and the guest goes on
    curt        it ends with 6, and does not say that it has told the guest
    deafens     it takes no signal
    repairs     mem-set leaves Xen's limit without the vnodes', which vnode-list puts in order
    warns       vnode-list complains of something
    reboots     the xl that reboots a guest does
    grants now  a vCPU of dom0 maps the first grant of its life while a node comes
    torn        dom0's balloon takes pages back between two lines of a report of a guest, in two reports
    fails       the same, and the guest says why it did
    sticks      one that says that it had not begun has attached the node
    sinks       one that a signal ends before it has told the guest has attached the node
    keeps       the end of a domain leaves pages of dom0 with its balloon, which are free
    sobs        a program that ends has the guest's kernel tell of it
    moves       dom0's balloon gives back a page each time that the host is asked, four times
    overwrites  the guest's ring is overwritten while it is read, once
    overruns    the same, again and again
    unlocked    lockdep has turned itself off in the guest
    unwatched   its kernel has no KASAN
    unsaid      nobody can tell what its kernel checks
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.soak import books
from benchmarks.soak.books import Books
from benchmarks.soak.inside import Inside
from benchmarks.soak.model import PINNED_PAGES, Shape
from lab.command import Done
from lab.elastic_guest import ElasticGuest

HOST_PAGES = {0: 259688, 1: 513996}
HOME_LOST = 50  # pages of a home that the domain builder leaves out
HOME_MIB_LESS = 60  # of a home, what its kernel has
XL_LOG = "/var/log/xen/xl-guest2.log"
STRAY = 8  # of them, pages of a home that are on pnode 1
RESIDUAL_KIB = 4096
CALLS = {"ioctl": 40, "write": 120, "sendmsg": 0}
SECONDS = 0.4  # that a command takes
CANCELLED = "cancelled: the guest has been told to undo it; xl vnode-list shows when it has\n"
AT_ONCE, OVER = 0.3, 0.8  # how far an xl has come that has told the guest, and one that is done


def books_of(guest: ElasticGuest) -> Books:
    """Its books, whatever is in its logs."""
    return books.read(guest, Inside("dom0"), Inside("guest"))


class PlayedHome:
    """See above; benchmarks.soak.play.Home."""

    def __init__(self, shape: Shape, log: Path, faults: set[str] | None = None) -> None:
        self.shape, self.log, self.faults = shape, log, faults or set()
        self.domid = 0
        self.lives = 0
        self.lost = dict.fromkeys(HOST_PAGES, 0)  # pages that are nobody's
        self.maptrack = {0: 1, 1: 0}  # pages in which Xen keeps dom0's mapped grants, by physical node
        self.slow = self.between = 0
        self.moves = 4  # that dom0's balloon still makes
        self.torn = [2, 1]  # pages that it takes back within the next reports, the last one first
        self.dom0_pages = {0: 261630, 1: 0}
        self.stale: list[str] = []
        self.unanswered: set[str] = set()  # questions of the books to which dom0 says nothing
        # What is new in files and in the rings of kernels, which have no file.
        self.inside: dict[str, list[tuple[str, str]]] = {"dom0": [(XL_LOG, "libxl: error: of an hour ago")], "guest": []}
        self.records, self.lost_records = 0, 0
        self.told: list[str] = []  # what xl has complained of that created or destroyed the guest
        self.typed: list[str] = []
        self.asked: list[str] = []  # of the guest
        self.log.write_text("", encoding="utf-8")

    # --- lives ---------------------------------------------------------------------------------------------------------

    def create(self) -> ElasticGuest:
        assert self.domid == 0, "there is a guest"
        self._born()
        self.told += ["xl create: libxl: warning: a back end is slow"] * ("mumbles" in self.faults)
        self.home_cpus = self.shape.home_cpus
        return ElasticGuest(self.shape.name, self.dom0, self.guest)

    def _born(self) -> None:
        self.lives += 1
        self.domid = self.lives
        self.boot = f"boot-{self.lives}"
        self.home_mib = self.shape.home_mib
        self.vnodes: dict[int, dict[str, Any]] = {
            vnode.number: {"state": "offline", "kib": 0, "target": 0, "residual": 0, "pnode": None, "cpus": False}
            for vnode in self.shape.vnodes
        }
        self.errors: dict[int, str] = {}
        self.generation = 0
        self.flight: tuple[int, dict[str, Any]] | None = None
        self.limit_off = self.moved = self.drift = self.kept = 0
        self.stray = False
        self.bound: dict[int, int] = {}  # physical node of the vnodes' vCPUs
        self.programs: dict[int, dict[str, Any]] = {}
        if "mute" not in self.faults:
            self.say("xenuma: guest ready")
        self.inside["dom0"] += [(XL_LOG, f"Waiting for domain {self.shape.name} (domid {self.domid}) to die [pid 9]")]
        self.inside["dom0"] += [("", f"xenbr0: port 1(vif{self.domid}.0) entered blocking state")]
        self.inside["guest"] = [("", "tsc: Fast TSC calibration failed")]

    def _dies(self, *last_words: str) -> None:
        self.slow = 3 * ("lingers" in self.faults)
        self.inside["dom0"] += [(XL_LOG, line) for line in last_words or (f"Domain {self.domid} has been destroyed.",)]
        if "tears" in self.faults:
            self.inside["dom0"].append(("", "vif vif-1-0: failed to unmap"))
        if "dump" in self.faults:
            self.inside["dom0"].append(("/var/log/xen/dump", "of xl"))
        if "xen" in self.faults:
            self.say("(XEN) Failed to tear it down")
        if "life" in self.faults:
            self.lost[0] += 1
        self.lost[1] -= "twice" in self.faults
        self.maptrack[0] += "grants" in self.faults
        self.maptrack[1] += "grants1" in self.faults
        if "balloon" in self.faults:
            self.dom0_pages = {0: self.dom0_pages[0] - 256, 1: self.dom0_pages[1] + 107}
        if "keeps" in self.faults:
            self.dom0_pages = {0: self.dom0_pages[0] - 1025, 1: 0}
        if "stale" in self.faults:
            self.stale.append(str(self.domid))
        self.domid = 0

    def next_life(self, guest: ElasticGuest, domid: int) -> None:
        assert self.domid != domid

    def destroy(self, guest: ElasticGuest) -> None:
        self._dies()
        self.told += ["xl destroy: libxl: error: a back end has not gone"] * ("grumbles" in self.faults)

    def complaints(self) -> list[str]:
        told, self.told = self.told, []
        return told

    def say(self, line: str) -> None:
        """A line on the guest's console."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    # --- what there is -------------------------------------------------------------------------------------------------

    def pages(self, pnode: int) -> int:
        """Of the guest, from a physical node."""
        if not self.domid:
            return 0
        home = self.home_mib * 256 - HOME_LOST - STRAY - self.moved + self.kept if pnode == 0 else STRAY + self.moved
        return home + sum(int(node["kib"]) // 4 for node in self.vnodes.values() if node["pnode"] == pnode)

    def free(self, pnode: int) -> int:
        """Of the host."""
        dom0 = self.dom0_pages[pnode] - (261630 if pnode == 0 else 0)
        return HOST_PAGES[pnode] - self.pages(pnode) - self.lost[pnode] - self.maptrack[pnode] - dom0

    def cpus(self) -> list[int]:
        """Online in the guest."""
        found = list(range(self.home_cpus))
        for vnode in self.shape.vnodes:
            found += vnode.cpus if self.vnodes[vnode.number]["cpus"] else ()
        return found

    # --- dom0 ----------------------------------------------------------------------------------------------------------

    def dom0(self, command: str, timeout: float = 60.0) -> Done:  # noqa: PLR0911
        self.typed.append(command)
        if command.startswith("\nname="):
            return Done(0, self._books(command))
        if command.startswith('\necho "== logs"'):
            return Done(0, self._logs("dom0", command))
        if command.startswith("echo lockdep"):
            return Done(0, "lockdep 0\nkasan 0\n")
        if command.startswith('\necho "== libxl"'):
            return Done(0, "\n".join([*self._lists(), ""]))
        if command.startswith("/usr/lib/xen/bin/free-pages"):
            return Done(0, "".join(f"node {node}: {self.free(node)} pages free\n" for node in HOST_PAGES))
        if command == books.ASK_HEAP and "moves" in self.faults and self.moves:
            self.moves -= 1  # between two lines of the report
            self.dom0_pages[0] -= 1
            return Done(0, "\n".join([*self._heap(0), ""]).replace(f"Node 0: {self.dom0_pages[0]}", "Node 0: 1"))
        if command == books.ASK_HEAP:
            self.slow = max(self.slow - 1, 0)
            return Done(0, "\n".join([*self._heap(self.slow), ""]))
        if command == "xl dmesg -c >/dev/null && xl debug-keys g && xl dmesg":
            frames = sum(self.maptrack.values())
            return Done(
                0,
                f"(XEN) grant-table for remote d0 (v1)\n(XEN)   1 frames (64 max), {frames} maptrack frames (1024 max)\n",
            )
        if command.startswith("grep -oE"):
            threads = [(7, call, count) for call, count in CALLS.items() if count]
            threads += [(8, call, count // 2) for call, count in CALLS.items() if count]
            return Done(0, "".join(f"{count:7d} {thread}     {call}(\n" for thread, call, count in threads))
        if timed := re.fullmatch(r"began=\$\(date \+%s%N\); (.*) && echo && echo \$\(\(.*\)\)", command):
            return Done(0, f"{self.dom0(timed[1]).out}\n{int(SECONDS * 1e9)}\n")
        words, far, status = self._cut_short(shlex.split(command))
        assert words[0] == "xl", command
        if words[1] in ("vnode-attach", "vnode-detach", "vnode-set"):
            return self._operation(words[1].removeprefix("vnode-"), words[3:], far, status)
        return self._other(words)

    def _cut_short(self, words: list[str]) -> tuple[list[str], float, int]:
        """The command itself, how far it comes (1: to its end), and what it ends with then."""
        begin, options = words.index("xl"), words[: words.index("xl")]
        if options[:1] == ["strace"]:
            inject = re.search(r"inject=(\w+):signal=KILL:when=(\d+)", " ".join(options))
            status = 3 if "killed" in self.faults else 137
            return words[begin:], int(inject[2]) / CALLS[inject[1]] if inject else 1, status
        if options[:1] == ["timeout"]:
            far = 1 if "deafens" in self.faults and options[3] != "KILL" else float(options[4]) / SECONDS
            early = {"INT": 130, "TERM": 143}.get(options[3], 137)
            return words[begin:], far, early if far < AT_ONCE or early == 137 or "dies" in self.faults else 6
        return words[begin:], 1, 0

    def _operation(self, name: str, words: list[str], far: float, status: int) -> Done:
        options = dict(word.split("=") for word in words if "=" in word)
        number = int(words[0])
        if refused := self._refused(name, number, words, options):
            return refused
        node, declared = self.vnodes[number], self.shape.vnode(number)
        self._settle()
        self.lost[1] -= self.between
        self.between = 0
        if far < AT_ONCE:
            sticks = "sticks" in self.faults
            node |= self._wanted(name, number, words, options) if sticks or "sinks" in self.faults else {}
            status = 3 if sticks else 0 if "claims" in self.faults else status
            return Done(status, "", "libxl: cancelled before it began" if sticks else "")
        if "idles" in self.faults and "--no-wait" in words:
            return Done(0, "", "")
        self.generation += 1
        then = self._wanted(name, number, words, options)
        if name == "detach" and self._pinned(number):
            self.say(
                f"xen-elastic-numa: vnode {number}: -16 {RESIDUAL_KIB} KiB cannot leave: pinned: 24 pages, pid 9 (pinner)"
            )
            if "other" in self.faults:
                self.say("xen-elastic-numa: vnode 2: -12 no memory")
            node |= {"state": "residual", "kib": RESIDUAL_KIB, "residual": RESIDUAL_KIB, "target": 0, "cpus": False}
            return Done(5, "", f"libxl: vnode {number}: {RESIDUAL_KIB} KiB could not leave: pinned: 24 pages")
        if far < OVER or "--no-wait" in words:
            goes_on = self.faults.intersection(("goes on", "fails"))
            self.flight = (number, dict(node) if status == 6 and not goes_on else then)
            self.errors |= {number: "-16 no way back"} if "fails" in self.faults else {}
            self.between = 512 * ("between" in self.faults)
            self.lost[1] += self.between
            said = "libxl: warning: this may take long\n" if "hums" in self.faults and "--no-wait" in words else ""
            said += CANCELLED if status == 6 and "curt" not in self.faults else ""
            return Done(6 if "nowait" in self.faults and "--no-wait" in words else status, "", said)
        self._harm(name, node)
        node |= then
        self.errors.pop(number, None)
        said = "libxl: error: the back end has not answered\n" if "mutters" in self.faults else ""
        return Done(0, f"vnode {number}: {node['state']}, {declared.max_mib} MiB\n", said)

    def _wanted(self, name: str, number: int, words: list[str], options: dict[str, str]) -> dict[str, Any]:
        node, declared = self.vnodes[number], self.shape.vnode(number)
        if name == "detach":
            return {"state": "offline", "kib": 0, "target": 0, "residual": 0, "pnode": None, "cpus": False}
        size = words[1] if name == "set" else options.get("size", f"{declared.max_mib}M")
        kib = int(size.removesuffix("M")) * 1024
        pnode = node["pnode"] if node["pnode"] is not None else int(options.get("pnode", declared.pnode or 0))
        return {"state": "online", "kib": kib, "target": kib, "residual": 0, "pnode": pnode, "cpus": True}

    def _harm(self, name: str, node: dict[str, Any]) -> None:
        if name == "attach":
            if "line" in self.faults:
                self.say("elastic: this should not be")
            if "log" in self.faults:
                self.inside["dom0"].append((XL_LOG, "Domain 1 has been destroyed."))
            if "notice" in self.faults:
                self.inside["guest"].append(("", "memcheck[9]: segfault at 0 ip 0 sp 0 error 4"))
            if "dom0" in self.faults:
                self.inside["dom0"].append(("", "vif vif-1-0: failed to map"))
            self.lost_records += 7 * ("lost" in self.faults)
            if "stall" in self.faults:
                self.say("rcu: INFO: rcu_sched self-detected stall on CPU\nCall Trace:")
            self.maptrack[1] += "grants now" in self.faults
            if "anew" in self.faults:
                self.boot = "another"
            self.drift += "drift" in self.faults
        if name == "detach":
            self.lost[node["pnode"]] += "page" in self.faults
            self.slow = 3 * ("slow" in self.faults)
            self.moved += "home" in self.faults
            if "complaint" in self.faults:
                self.say("[ 12.3] WARNING: CPU: 0 PID: 1 at mm/page_alloc.c:1 f+0x1/0x2")
            if "ends" in self.faults:
                for program in self.programs.values():
                    program["runs"] = False

    def _pinned(self, number: int) -> bool:
        return any(program["words"][:2] == ["pinner", str(number)] for program in self.programs.values())

    def _refused(self, name: str, number: int, words: list[str], options: dict[str, str]) -> Done | None:  # noqa: PLR0911
        def no(status: int, why: str) -> Done:
            self.limit_off += "changes" in self.faults and name == "attach"
            return Done(
                0 if "silence" in self.faults else status, "", "" if "words" in self.faults else f"libxl: {why}\n"
            )

        size = words[1] if name == "set" else options.get("size", "64M")
        if number == 0:
            return no(3, "vnode 0 is a home node: it is always there")
        if number not in self.vnodes:
            self.stray = "stray" in self.faults
            return no(3, f"vnode {number} does not exist: the domain has vnodes 0-1")
        if size == "lots":
            return no(2, "not a size: lots")
        if size == "0":
            return no(2, "a size of 0 is vnode-detach")
        self._settle()
        node, mib = self.vnodes[number], int(size.removesuffix("M"))
        if mib % 2 or mib > self.shape.vnode(number).max_mib:
            return no(2, f"vnode {number} cannot have it: it must be a multiple of 2048 KiB and at most 524288 KiB")
        if name == "attach" and node["state"] == "online":
            return no(3, f"vnode {number} is attached already, with {node['kib']} KiB")
        if name != "attach" and node["state"] == "offline":
            return no(
                3, f"vnode {number} is absent" + (" already" if name == "detach" else ": attach it, with the size")
            )
        if options.get("pnode") == "63":
            return no(3, f"vnode {number}: pnode 63 does not exist, the host has pnodes 0-1")
        if name == "detach" and mib_of(node) > self._free_mib():
            self.errors[number] = "-12 need 286064 KiB, free elsewhere 23724 KiB"
            self.say(f"xen-elastic-numa: vnode {number}: {self.errors[number]}")
            return no(3, f"vnode {number}: the guest could not detach it: {self.errors[number]}")
        return None

    def _settle(self) -> None:
        """What is under way ends."""
        if self.flight is not None and "hangs" not in self.faults:
            number, then = self.flight
            if "half" in self.faults and then["state"] == "offline":
                self.vnodes[number]["cpus"] = False
            else:
                self.vnodes[number] |= then
            self.flight = None

    def _other(self, words: list[str]) -> Done:
        if words[1] == "domid":
            return Done(0, f"{self.domid}\n")
        if words[1] == "vnode-list":
            self._settle()
            return Done(0, self._listed())
        if words[1] == "reboot" and "reboot" in self.faults:
            return Done(1, "", "libxl: no")
        if words[1] == "reboot":
            kept = 512 if "kept" in self.faults and self.flight else 0
            self._dies(
                f"Domain {self.domid} has shut down, reason code 1 0x1",
                "Action for shutdown reason code 1 is restart",
                f"Domain {self.domid} needs to be cleaned up: destroying the domain",
                "Done. Rebooting now",
            )
            self._born()
            self.kept = self.drift = kept
            said = f"Rebooting domain {self.domid - 1}\n"
            return Done(0, "", said + "libxl: warning: it takes long\n" * ("reboots" in self.faults))
        if words[1] == "mem-set":
            self.limit_off = -sum(node["kib"] // 4 for node in self.vnodes.values()) * ("repairs" in self.faults)
            self.home_mib = int(words[3].removesuffix("m"))
            return Done(0, "")
        assert words[1] == "vcpu-set", words
        wanted = int(words[3])
        differ = any(
            (cpu < wanted) != self.vnodes[vnode.number]["cpus"] for vnode in self.shape.vnodes for cpu in vnode.cpus
        )
        self.home_cpus = min(wanted, self.shape.home_cpus)
        return Done(0, "", "libxl: vCPUs 2-3 stay as they are: they belong to elastic vnodes\n" if differ else "")

    def _listed(self) -> str:
        vnodes: list[dict[str, Any]] = [{"vnode": 0, "state": "home", "operation": None}]
        for number, node in self.vnodes.items():
            under_way = {"kind": "attach"} if self.flight and self.flight[0] == number else None
            vnodes.append(
                {"vnode": number, "state": node["state"], "driver": True, "pnode": node["pnode"], "target_kib": node["target"],
                 "actual_kib": node["kib"], "residual_kib": node["residual"], "fault": None, "operation": under_way}
            )  # fmt: skip
        return json.dumps([{"domid": self.domid, "name": self.shape.name, "vnodes": vnodes}])

    def _books(self, command: str) -> str:
        if "garbled" in self.faults:
            return "== domid\nnone\n"
        self.slow = max(self.slow - 1, 0)
        self.say("(XEN) 'u' pressed -> dumping numa info")
        domid, lines = self.domid, ["== domid", str(self.domid), "== keys"]
        path, private = f"/local/domain/{domid}/vnuma", f"/libxl/{domid}/vnuma"
        keys: dict[str, object] = {"nodes": len(self.vnodes) + 1, "node/0/elastic": 0, "node/0/cpus": "0-1"}
        keys |= {"node/0/max-kb": self.shape.home_mib * 1024, "node/0/target-kb": self.shape.home_mib * 1024}
        for at, vnode in enumerate(self.shape.vnodes):
            keys |= {f"node/{vnode.number}/elastic": 1, f"node/{vnode.number}/start": hex((at + 4) << 30)}
            keys |= {f"node/{vnode.number}/max-kb": vnode.max_mib * 1024, f"node/{vnode.number}/cpus": listed(vnode.cpus)}
        if self.generation:
            keys |= {name: self.generation for name in ("generation", "guest/ack-generation", "guest/done-generation")}
        hidden: dict[str, object] = {"home-limit-kb": self.home_mib * 1024 + 1024 + 4 * self.drift, "node/0/pnode": 0}
        for number, node in self.vnodes.items():
            keys |= {f"node/{number}/target-kb": node["target"], f"guest/node/{number}/state": node["state"]}
            keys |= {
                f"guest/node/{number}/current-kb": node["kib"],
                f"guest/node/{number}/residual-kb": node["residual"],
            }
            hidden |= {f"node/{number}/allowed-kb": node["kib"]}
            hidden |= {"node/63/allowed-kb": 0} if self.stray else {}
            hidden |= {} if node["pnode"] is None else {f"node/{number}/pnode": node["pnode"]}
            keys |= {f"guest/node/{number}/error": self.errors[number]} if number in self.errors else {}
        lines += [f'{path}/{key} = "{value}"   (n0,r{domid})' for key, value in keys.items()]
        lines += ["== books", *(f'{private}/{key} = "{value}"' for key, value in hidden.items()), "== cpus"]
        online = set(self.cpus())
        for cpus in (range(self.shape.home_cpus), *(vnode.cpus for vnode in self.shape.vnodes)):
            for cpu in cpus:
                state = "online" if cpu in online else "offline"
                lines.append(f'/local/domain/{domid}/cpu/{cpu}/availability = "{state}"')
        lines += ["== memory", f'/local/domain/{domid}/memory/target = "{self.home_mib * 1024}"   (n0,r{domid})']
        lines += ["== vm", f"/vm/{uuid(domid)}", *self._lists()]
        if command.index("vnode-list") < command.index("debug-keys q"):
            self.limit_off = 0
        warning = ["libxl: warning: vnode 1: the host's side is not in order yet"] * ("warns" in self.faults)
        lines += ["== listed", self._listed(), "== said", *warning]
        lines += self._logs("dom0", command).splitlines()
        self.bound = {
            number: self.bound.get(number, 0) if node["pnode"] is None else node["pnode"]
            for number, node in self.vnodes.items()
            if node["pnode"] is not None or "bound" in self.faults
        }
        lines += ["== xen", *self._heap(self.slow), f"(XEN) d{domid} (total: {sum(map(self.pages, HOST_PAGES))}):"]
        lines += [
            *(f"(XEN)     Node {node}: {self.pages(node)}" for node in HOST_PAGES),
            "(XEN)      2 vnodes, 4 vcpus, guest physical layout:",
            "(XEN)          0: pnode   0, vcpus 0-1 ",
            "(XEN)            0000000000000000 - 0000000020000000",
        ]
        for vnode in self.shape.vnodes:
            pnode = 0 if "table" in self.faults else self.vnodes[vnode.number]["pnode"] or 0
            # Xen puts a space behind a range that is not the last of the domain's vCPUs.
            behind = " " * (vnode != self.shape.vnodes[-1])
            lines.append(f"(XEN)          {vnode.number}: pnode {pnode:3}, vcpus {listed(vnode.cpus)}{behind}")
        limit = self.home_mib * 256 + 256 + sum(node["kib"] // 4 for node in self.vnodes.values()) + self.limit_off
        limit += self.drift
        lines += ["(XEN) General information for domain 0:", "(XEN)     nr_pages=261630 max_pages=4294967295"]
        lines += [f"(XEN) General information for domain {domid}:", f"(XEN)     nr_pages=1 max_pages={limit}"]
        lines += [f"(XEN)   UNIT{cpu} affinities: hard={{0-3}} soft={{0-1}}" for cpu in range(self.shape.home_cpus)]
        for declared in self.shape.vnodes:
            bound = {None: "0-3", 0: "0-1", 1: "2-3"}[self.bound.get(declared.number)]
            lines += [f"(XEN)   UNIT{cpu} affinities: hard={{{bound}}} soft={{{bound}}}" for cpu in declared.cpus]
        return "\n".join([*lines, ""])

    def _heap(self, slow: int) -> list[str]:
        """What debug key `u` says of the host and of dom0."""
        free = {node: self.free(node) - (node == 1 and slow > 0) for node in HOST_PAGES}
        lines = [f"(XEN) NODE{node} start->0 size->524288 free->{free[node]}" for node in HOST_PAGES]
        if "torn" in self.faults and self.domid and self.torn:
            self.dom0_pages[0] += self.torn.pop()
        lines += ["(XEN) CPU0...1 -> NODE0", "(XEN) CPU2...3 -> NODE1", "(XEN) Memory location of each domain:"]
        lines += [f"(XEN) d0 (total: {sum(self.dom0_pages.values())}):"]
        return lines + [f"(XEN)     Node {node}: {pages}" for node, pages in self.dom0_pages.items()]

    def _lists(self) -> list[str]:
        """Where something of a domain may be left. The last back end of a domain takes its directory along."""
        living = [str(self.domid)] if self.domid else []
        said = {
            "libxl": [*self.stale, *living],
            "vms": [uuid(int(domid)) for domid in living],
            "backends": [f'/local/domain/0/backend/{kind}/{domid}/0 = ""' for domid in living for kind in ("console", "vif")],
            "domains": ["0", *living],
            "files": [f"userdata-d.{domid}.{uuid(int(domid))}.libxl-json" for domid in ("0", *living)] + ["xenstored"],
        }
        return [line for name, rest in said.items() for line in (f"== {name}", *(() if name in self.unanswered else rest))]

    def _logs(self, where: str, command: str) -> str:
        """What is new in the logs of dom0 or of the guest, which is then no longer; and the record that the question leaves."""
        asked = re.search(r"xenuma: soak asks, [^\"]+", command)
        if where == "guest" and self.faults.intersection(("overwrites", "overruns")):
            self.faults.discard("overwrites")
            asked = None
        said, self.inside[where] = [*self.inside[where], ("", asked[0] if asked else "")], []
        lines = ["== logs", *((f"log 7,1,1 1-1 0 {XL_LOG}", "") if where == "dom0" else ())]
        lines += [line for file, text in said if file for line in (f"log 7,1,1 1-1 0 {file}", f" {text}", "")]
        lines += ["== ring", *(f"6,{self.records + at},1,-;{text}" for at, (file, text) in enumerate(said) if not file)]
        self.records += len(said)
        lost, self.lost_records = (self.lost_records, 0) if where == "guest" else (0, self.lost_records)
        return "\n".join([*lines, f"ring boot {self.records} {self.records + lost} {self.records + lost}", ""])

    def _free_mib(self) -> int:
        """In the guest."""
        has = self.home_mib - HOME_MIB_LESS + sum(mib_of(node) for node in self.vnodes.values() if node["state"] == "online")
        return int(has) - sum(int(program["mib"]) for program in self.programs.values())

    # --- the guest -----------------------------------------------------------------------------------------------------

    def guest(self, command: str, timeout: float = 60.0) -> Done:  # noqa: PLR0911
        self.asked.append(command)
        if command.startswith('\necho "== boot"'):
            return Done(0, self._told(command))
        if command.startswith('\necho "== logs"'):
            return Done(0, self._logs("guest", command))
        if command.startswith("echo lockdep"):
            lockdep, kasan = int("unlocked" not in self.faults), 700 * ("unwatched" not in self.faults)
            return Done(0, "" if "unsaid" in self.faults else f"lockdep {lockdep}\nkasan {kasan}\n")
        if "deaf" in self.faults:
            return Done(255, "", "connection lost")
        if asked := re.match(r"pages=\$\(cat /proc/(\d+)/numa_maps\) .*\^N(\d+)=", command):
            return Done(0, f"{self._pages_on(int(asked[1]), int(asked[2]))}\n")
        if started := re.match(r": >(\S+); setsid (.*) >\1 ", command):
            words = re.sub(r"\$\(sed .*/has_memory\)", "1", started[2])
            left = re.compile(r"\$\(\(\$\(awk .* /proc/meminfo\) - (\d+)\)\)")
            return self._start(started[1], shlex.split(left.sub(lambda match: str(self._free_mib() - int(match[1])), words)))
        if killed := re.match(r"kill -TERM (\d+)", command):
            self.programs[int(killed[1])]["runs"] = False
            if "sobs" in self.faults:
                self.inside["guest"].append(("", "memcheck[9]: failed to go quietly"))
            return Done(0, "")
        if alive := re.fullmatch(r"\[ -e /proc/(\d+) \]", command):
            return Done(0 if self.programs[int(alive[1])]["runs"] else 1, "")
        if shown := re.match(r"cat (/tmp/soak\S+?)(;|$)", command):
            return self._output(shown[1])
        if "grep -m1 expected" in command:
            return self._looked(command)
        return Done(0, "")

    def _start(self, output: str, words: list[str]) -> Done:
        pid = 1000 + len(self.typed)
        node = words[1].partition("=")[2] if words[0] == "numactl" else ""
        words = words[2:] if words[0] == "numactl" else words
        words[0] = words[0].rpartition("/")[2]
        mib = "0" if words[0] == "pinner" else words[-1] if words[0] == "mapped" else words[1]
        self.programs[pid] = {"output": output, "words": words, "runs": True, "mib": mib, "node": node}
        return Done(0, f"{pid}\n")

    def _pages_on(self, pid: int, node: int) -> int:
        """Of a program, on a node of the guest."""
        program = self.programs[pid]
        gone = "elsewhere" in self.faults or program["node"] != str(node) or not self.vnodes[node]["kib"]
        return 0 if gone else 250 if "libraries" in self.faults else 256 * int(program["mib"])

    def _output(self, output: str) -> Done:
        (program,) = (each for each in self.programs.values() if each["output"] == output)
        said = f"pinned {PINNED_PAGES} pages\n" if program["words"][0] == "pinner" else "ready\n"
        if not program["runs"]:
            times, wrong = 9 * ("idle" not in self.faults), 1 * ("counts" in self.faults)
            said += "memcheck: 1, expected 2\n" if "last" in self.faults else ""
            counts = {
                "pinner": f"released, {wrong} wrong\n",
                "memcheck": f'{{"checks":{times},"bad_pages":{wrong}}}\n',
            }
            said += counts.get(program["words"][0], f'{{"rounds":{times},"wrong":{wrong}}}\n')
            self.programs = {pid: each for pid, each in self.programs.items() if each is not program}
        return Done(0, said)

    def _looked(self, command: str) -> Done:
        said = ""
        for pid, number in re.findall(r'/proc/(\d+) \] \|\| echo "(\d+) has ended"', command):
            if int(pid) not in self.programs or not self.programs[int(pid)]["runs"]:
                said += f"{number} has ended\n"
            if "bytes" in self.faults:
                said += f"{number} says mapped: page 3 word 4: 0000000000000001, expected 0000000000000002\n"
        return Done(0, said)

    def _told(self, command: str) -> str:
        nodes = [0, *(number for number, node in self.vnodes.items() if node["kib"])]
        lines = [
            "== boot",
            self.boot,
            "== nodes",
            ",".join(map(str, nodes)),
            "== cpus",
            ",".join(map(str, self.cpus())),
        ]
        lines += ["== numactl", "available: nodes", f"node 0 cpus: {' '.join(map(str, range(self.home_cpus)))}"]
        lines.append(f"node 0 size: {self.home_mib - HOME_MIB_LESS} MB")
        for number in nodes[1:]:
            mib, cpus = mib_of(self.vnodes[number]), self.shape.vnode(number).cpus if self.vnodes[number]["cpus"] else ()
            lines += [f"node {number} cpus: {' '.join(map(str, cpus))}", f"node {number} size: {mib - 2 * -(-mib // 128)} MB"]
        lines += self._logs("guest", command).splitlines()
        lines.append("== driver")
        for number, node in self.vnodes.items():
            size, cpus = f"{node['kib']} of 524288 KiB, target {node['target']} KiB", self.shape.vnode(number).cpus
            lines.append(f"vnode {number}: node {number}, {node['state']}, {size}, cpus {listed(cpus)}")
            plugged = listed(range(-(-mib_of(node) // 128)))
            lines.append(f"  range 0x100000000, 4 blocks of 64 extents, 1 of them memmap, plugged {plugged}")
        return "\n".join([*lines, ""])


def mib_of(node: dict[str, Any]) -> int:
    """Memory of a vnode."""
    return int(node["kib"]) // 1024


def listed(numbers: Sequence[int]) -> str:
    """Neighbours, as a kernel or libxl lists them."""
    return "" if not numbers else f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def uuid(domid: int) -> str:
    """Of a domain; dom0's is nil."""
    return f"00000000-0000-0000-0000-{domid:012d}"
