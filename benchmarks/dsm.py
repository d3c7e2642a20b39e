# SPDX-License-Identifier: GPL-2.0
"""Memory from another machine: what it costs, against the raw network and against what a user would do without it.

Two hosts of the lab. Parts, each of which can fail without the others, and is left out of the result then:
    rtt     round trips of dsmd's transport, without anything else: TCP with TLS and Soft-RoCE, polling and sleeping
    swap    a guest that swaps on a disk in the other host's memory, by nbd over TCP

Result: build/results/dsm.json; what could not be measured is not in it. Times are an emulator's, of machines that share two
real processors and whose network is a process beside them: only ratios of one run are figures.

Usage: python3 -m benchmarks.dsm [--use=RACK] [PART...]
Exit status: 0; 1 if a part could not be measured; 2 usage.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import host_programs, membench, remote_swap, round_trips
from benchmarks.results import Metric, from_runs, write
from lab.command import checked
from lab.description import RackDescription
from lab.errors import LabError, Malformed
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled
from lab.rack import Rack

HOME_MIB = 512
# Memory at hand for pages that live elsewhere: DSM's pool, or the control group of what swaps.
LOCAL_PAGES = 1024
SIZES, FLUSH, ROUNDS = (64, 128, 256), 1280, 3
SWAP_MIB = 64
MEMBENCH_S = 900.0
WORDS = f"touch --cpu=0 --sizes={','.join(map(str, SIZES))} --flush={FLUSH} --rounds={ROUNDS}"
FAILURES = (LabError, Malformed, TimeoutError, OSError, ValueError)

SWAP_GUEST = f"""
name = "swapper"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {HOME_MIB}
vcpus = 2
vif = [ "mac=00:16:3e:4d:00:41,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


def touched(output: membench.Output, prefix: str, **baseline: float) -> list[Metric]:
    """PREFIX.WHAT_ORDER_us: time of a page that is not at hand, of each round; and pages a second."""
    found = []
    for what in membench.WHATS:
        for order in membench.ORDERS:
            cold = membench.chosen(output.passes, what=what, order=order, state="cold")
            runs = [ns / 1000 for ns in membench.ns_per_page(cold)]
            missing = statistics.median(membench.cost_of_missing(output, what, order)) / 1000
            first = statistics.median(each.first_ns["p50"] for each in cold) / 1000
            beside = {
                "less_when_at_hand_us": missing,
                "first_word_p50_us": first,
                "first_word_p99_us": statistics.median(each.first_ns["p99"] for each in cold) / 1000,
                "major_faults_per_page": sum(each.major for each in cold) / sum(each.pages for each in cold),
                **baseline,
            }
            metric = from_runs(f"{prefix}.{what}_{order}_us", runs, "us", "lower", f"slope over {SIZES} pages")
            found.append(Metric(**{**vars(metric), "baseline": beside}))
            if what == "read":
                rates = [1e6 / us for us in runs if us > 0]
                found.append(from_runs(f"{prefix}.pages_per_second.{order}", rates, "1/s", "higher", "reads"))
    return found


def run_membench(guest: Guest, words: str) -> membench.Output:
    """Run it in the guest. Raises CommandFailedError, also for a wrong byte; Malformed."""
    return membench.parse(checked(guest.guest, words, MEMBENCH_S))


# --- parts ----------------------------------------------------------------------------------------------------------------


def rtt(rack: Rack) -> Iterator[Metric]:
    """Round trips of each transport and each way to wait."""
    round_trips.with_rdma(rack)
    for transport in round_trips.TRANSPORTS:
        for waiting in round_trips.WAITING:
            yield from round_trips.metrics([round_trips.measure(rack, transport, waiting)])


@contextlib.contextmanager
def guest_of(host: Host, config: str) -> Iterator[Guest]:
    """A guest that is gone afterwards."""
    guest = host.start_guest(config, timeout=scaled(240))
    try:
        yield guest
    finally:
        guest.destroy()


def swap(rack: Rack) -> Iterator[Metric]:
    """dsm.swap.clusterN: what a page costs that is swapped out to the other host."""
    with (
        remote_swap.remote_disk(rack, SWAP_MIB),
        guest_of(rack.hosts[0], SWAP_GUEST) as guest,
        remote_swap.swapping(guest),
    ):
        for cluster in remote_swap.PAGE_CLUSTERS:
            before = remote_swap.swapped_in(guest)
            output = run_membench(guest, remote_swap.limited(f"{WORDS} --pageout=1", LOCAL_PAGES, cluster))
            read = remote_swap.swapped_in(guest) - before
            yield from touched(output, f"dsm.swap.cluster{cluster}", swapped_in_pages=read)


Part = Callable[[Rack], Iterator[Metric]]
PARTS: dict[str, Part] = {"rtt": rtt, "swap": swap}


def measure(rack: Rack, names: Sequence[str], found: list[Metric]) -> list[str]:
    """Run parts, one after the other; adds to `found` as it goes. Returns what failed, a line each."""
    failed = []
    with tempfile.TemporaryDirectory(prefix="xenuma-bench.") as scratch:
        folder = Path(scratch)
        host_programs.build(folder)
        round_trips.prepare(folder)
        host_programs.install(rack.hosts[:2], folder)
    for name in names:
        print(f"dsm: {name}", flush=True)
        try:
            for metric in PARTS[name](rack):
                found.append(metric)
                print(f"  {metric.metric} {metric.value} {metric.unit}", flush=True)
        except FAILURES as error:
            failed.append(f"{name}: {error}")
            print(f"dsm: {failed[-1]}", file=sys.stderr, flush=True)
    return failed


def main(arguments: Sequence[str] = ()) -> int:
    """Boot, or use a rack that runs; measure, write build/results/dsm.json."""
    parser = argparse.ArgumentParser(prog="dsm", description="Memory from another machine, measured.")
    parser.add_argument("--use", metavar="RACK", help="a rack that runs already, with two hosts")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all, if none is named")
    options = parser.parse_args(arguments)
    found: list[Metric] = []
    failed: list[str] = []
    try:
        booted = Rack.attach(options.use) if options.use else Rack.boot(RackDescription.load("two-hosts"), meter=False)
        with booted as rack:
            failed = measure(rack, options.parts or list(PARTS), found)
    except FAILURES as error:
        failed.append(str(error))
        print(f"dsm: {error}", file=sys.stderr)
    if found:
        print(write("dsm", found))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
