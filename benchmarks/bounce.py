# SPDX-License-Identifier: GPL-2.0
"""Which pages of a kernel bounce between hosts, in half a minute and without Xen: faults per tick, pages, who touches them.

One plain machine in QEMU, each of whose vCPUs is given to a host; a plugin (lab/bounce) plays the page protocol between them:
one writer, or many readers. A loop that touches no memory keeps the CPUs elsewhere busy, so what bounces is the kernel's:
ticks, timekeeping, RCU, the scheduler. CPUs at home are idle, or start a program so many times a second (--forks).

What it is not. There is no Xen: no hypercalls, event channels or pvclock; timers are the local APIC's. There is no token and no
prefetch. A page takes no time, and can be taken at once: what bounces twice in a tick then may stay where it is if it takes a
millisecond; --delay and --lease play that, by the guest's clock. The CPU's own accesses (page tables, frames of interrupts),
code that is fetched and devices are not seen. So figures of one kernel against another say something; those of the lab's two
hosts (`benchmarks/ticks.py`) are others.

A tick is 1/HZ s of the guest's clock here, whether a CPU takes it or not: one that is idle, or does without (nohz_full), has
fewer, which stand beside it.

Usage: python3 -m benchmarks.bounce [--kernel=VMLINUZ] [--arguments="nohz_full=1 ..."] [--hosts=01] [--loops=N] ...
Exit status: 0; 1 if it could not be measured; 2 for arguments that make no sense.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import whole
from benchmarks.results import Metric, kept
from benchmarks.ticks import GOAL, LEAST_TICKS, ticks_of
from lab import bounce
from lab.artifacts import path_of
from lab.bounce import KINDS, Counts, Page, Symbols
from lab.complaints import complaints
from lab.errors import CommandFailedError, LabError, Malformed
from lab.images.tree import Tree
from lab.pipeline.paths import BUILD
from lab.process import start_tied, stop
from lab.qemu import FIRMWARE

LOG = BUILD / "logs" / "bounce.log"
PAGES, TOUCHES, NAMES = 12, 4, 6  # that are shown: pages; of each who touches it, and what is in it
PAGES_KEPT = 40  # in the file
BOOT_S = 180.0  # some 8 s on an idle machine
# Names are those of System.map without a random base, and can be read in a program's page tables without isolation of them.
# The rest keeps the kernel's own watching of a slow machine from being what bounces.
ARGUMENTS = (
    "console=ttyS0 loglevel=5 panic=-1 nokaslr nopti tsc=reliable nopvspin nowatchdog random.trust_cpu=on "
    "rcupdate.rcu_cpu_stall_suppress=1"
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is run."""

    kernel: Path
    system_map: Path
    arguments: str = ""
    hosts: str = "01"
    loops: int = 1
    settle: int = 3
    seconds: int = 10
    memory_mib: int = 512
    delay_us: int = 0
    lease_us: int = 0
    forks: int = 0

    @property
    def elsewhere(self) -> list[int]:
        """vCPUs that are not at home, host 0."""
        return [cpu for cpu, host in enumerate(self.hosts) if host != "0"]


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the guest says."""

    tick_s: float
    seconds: float
    ticks: Sequence[int]  # taken, by CPU

    @property
    def periods(self) -> float:
        """Ticks that a CPU would have had if it had taken each."""
        return self.seconds / self.tick_s


# --- one run ---------------------------------------------------------------------------------------------------------


def initramfs(init: Path, path: Path) -> None:
    """Pack init and the places it needs."""
    tree = Tree()
    for directory in ("/dev", "/proc"):
        tree.add_directory(directory)
    tree.add_device("/dev/console", 5, 1)
    tree.add_bytes("/init", init.read_bytes(), 0o755)
    tree.write_cpio(path, level=1)


def command_line(settings: Settings, plugin: Path, initrd: Path, out: Path, percpu: int | None) -> list[str]:
    """QEMU's. The CPU has no five levels of page tables: lab.bounce.REGIONS are those of four."""
    pages = settings.memory_mib * 256
    words = f"{plugin},out={out},hosts={settings.hosts},pages={pages}" + (f",percpu={percpu:x}" if percpu else "")
    words += f",delay={settings.delay_us},lease={settings.lease_us}"
    cpus = ",".join(map(str, settings.elsewhere))
    ours = f"bounce_cpus={cpus} bounce_loops={settings.loops} bounce_settle={settings.settle} bounce_seconds={settings.seconds}"
    ours += f" bounce_forks={settings.forks}" if settings.forks else ""
    return [
        str(path_of("qemu")), *FIRMWARE, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off",
        "-smp", str(len(settings.hosts)), "-m", f"{settings.memory_mib}M", "-nodefaults", "-display", "none", "-no-reboot",
        "-serial", "stdio", "-kernel", str(settings.kernel), "-initrd", str(initrd),
        "-append", " ".join(f"{ARGUMENTS} {settings.arguments} {ours}".split()), "-plugin", words,
    ]  # fmt: skip


def run(settings: Settings) -> tuple[Seen, Counts, Symbols]:
    """Boot, count, power off. Raises LabError, CommandFailedError, Malformed, OSError."""
    system_map = settings.system_map.read_text(encoding="utf-8")
    percpu = Symbols(system_map).at.get("__per_cpu_offset")
    with tempfile.TemporaryDirectory(prefix="xenuma-bounce.") as name:
        folder = Path(name)
        plugin, init = bounce.build(folder)
        initramfs(init, folder / "initrd")
        command = command_line(settings, plugin, folder / "initrd", folder / "out", percpu)
        LOG.parent.mkdir(parents=True, exist_ok=True)
        with LOG.open("wb") as log:
            process = start_tied(command, stdout=log, stderr=log)
            try:
                process.wait(BOOT_S + 10 * (settings.settle + settings.seconds))
            except subprocess.TimeoutExpired as error:
                raise CommandFailedError(f"the guest has not ended after {error.timeout:.0f} s; {LOG}") from error
            finally:
                stop(process)
        said = LOG.read_text(encoding="utf-8", errors="replace").replace("\r", "")
        seen = parse_console(said)
        counts = bounce.parse_counts((folder / "out").read_text(encoding="utf-8"))
    return seen, counts, Symbols(system_map, counts.percpu)


def parse_console(text: str) -> Seen:
    """What init says. Raises CommandFailedError if it did not come to its end, or the kernel complains; Malformed."""
    wrong = complaints(text)
    failed = re.search(r"^@failed (.*)$", text, re.M)
    if failed or wrong or not re.search(r"^@done$", text, re.M):
        last = text.strip().splitlines()[-3:]
        why = failed[1] if failed else "; ".join(wrong) or f"the guest ended too early: {' / '.join(last)}"
        raise CommandFailedError(f"{why}; {LOG}")
    found = re.search(r"^@tick (\d{1,9})\n@seconds (\d{1,6}\.\d{3})\n@begin\n(.*)^@end\n(.*)^@done$", text, re.M | re.S)
    if not found or not int(found[1]) or not float(found[2]):
        raise Malformed(f"the guest's words make no sense; {LOG}")
    begun, ended = ticks_of(found[3]), ticks_of(found[4])
    if len(begun) != len(ended):
        raise Malformed(f"{len(begun)} CPUs began, and {len(ended)} ended")
    return Seen(int(found[1]) / 1e9, float(found[2]), [late - early for early, late in zip(begun, ended, strict=True)])


# --- figures ---------------------------------------------------------------------------------------------------------


def host_name(host: int) -> str:
    return f"host{host}" if host else "home"


def ticks_at(seen: Seen, counts: Counts, host: int) -> int:
    """Ticks that the CPUs of a host have taken."""
    return sum(ticks for ticks, there in zip(seen.ticks, counts.hosts, strict=True) if there == host)


def host_metric(seen: Seen, counts: Counts, host: int) -> Metric:
    """Faults of a host for each tick. Raises Malformed if there were next to none."""
    if seen.periods < LEAST_TICKS:
        raise Malformed(f"{seen.seconds} s are {seen.periods:.0f} ticks: too few")
    faults = counts.faults[host]
    taken = ticks_at(seen, counts, host)
    beside: dict[str, float | str] = {
        **dict(zip((f"{kind}s" for kind in KINDS), map(float, faults), strict=True)),
        "ticks": seen.periods,
        "ticks_taken": float(taken),
    }
    return Metric(
        f"bounce.faults_per_tick.{host_name(host)}",
        sum(faults) / seen.periods,
        "1",
        "lower",
        beside,
        note=f"played in one machine: no Xen, pages that take no time; goal with Xen: {GOAL:g}",
    )


def page_metric(seen: Seen, counts: Counts, page: Page) -> Metric:
    """Faults in a page for each tick, with the symbols that were touched, and by whom."""
    beside: dict[str, float | str] = {}
    for host in range(len(counts.faults)):
        beside |= {f"{host_name(host)} {kind}s": float(n) for kind, n in page.of_host(host).items()}
    beside["symbols"] = ", ".join(f"{name} {n}" for name, n in page.by_symbol().items())
    beside["who"] = ", ".join(
        f"{host_name(touch.host)} {touch.kind} {touch.symbol} in {touch.function} {n}" for touch, n in page.by_touch()
    )
    return Metric(f"bounce.page.{page.gfn:x}", page.faults / seen.periods, "1", "lower", beside)


def metrics(seen: Seen, counts: Counts, pages: Sequence[Page]) -> list[Metric]:
    """All figures: hosts, how many pages bounce, and those that do most."""
    return [
        *(host_metric(seen, counts, host) for host in range(len(counts.faults))),
        Metric("bounce.pages", len(pages), "1", "lower", {"lost": counts.lost, "beyond": counts.beyond}),
        *(page_metric(seen, counts, page) for page in pages[:PAGES_KEPT]),
    ]


def table(seen: Seen, counts: Counts, pages: Sequence[Page]) -> str:
    """What is shown on the terminal."""
    lines = [f"{'':6} {'CPUs':>8} {'ticks taken':>11} " + " ".join(f"{kind + 's':>9}" for kind in KINDS) + "  faults per tick"]
    for host, faults in enumerate(counts.faults):
        there = ",".join(str(cpu) for cpu, each in enumerate(counts.hosts) if each == host)
        lines.append(
            f"{host_name(host):6} {there:>8} {ticks_at(seen, counts, host):>11} "
            + " ".join(f"{n:>9}" for n in faults)
            + f"  {sum(faults) / seen.periods:>15.2f}"
        )
    lines.append(f"{seen.seconds:.1f} s, {seen.periods:.0f} ticks of {1000 * seen.tick_s:g} ms; {len(pages)} pages bounce")
    for page in pages[:PAGES]:
        names = list(page.by_symbol())
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        lines.append(f"gfn {page.gfn:#x}: {page.faults / seen.periods:.2f} per tick: {', '.join(names[:NAMES])}{more}")
        for touch, count in page.by_touch()[:TOUCHES]:
            lines.append(f"    {host_name(touch.host):5} {touch.kind:7} {count:>7}  {touch.symbol}  in {touch.function}")
    if counts.lost:
        lines.append(f"{counts.lost} faults are in no page above: there was no room for them")
    if counts.beyond:
        lines.append(f"{counts.beyond} accesses were to memory above, of which nothing is known")
    return "\n".join(lines)


# --- the command -----------------------------------------------------------------------------------------------------


def hosts_of(text: str) -> str:
    """A type for argparse: a digit for each vCPU. The first is at home, somebody is not, and no host is left out."""
    numbers = {int(digit) for digit in text if digit in "0123"}
    if not re.fullmatch(rf"0[0-{bounce.MAX_HOSTS - 1}]{{1,{bounce.MAX_CPUS - 1}}}", text) or len(numbers) < 2:
        raise argparse.ArgumentTypeError(f"want a digit 0 to 3 for each vCPU, the first 0 and another one, not {text!r}")
    if numbers != set(range(len(numbers))):
        raise argparse.ArgumentTypeError(f"hosts are 0, 1 and so on, none left out, not {text!r}")
    return text


def settings_of(words: Sequence[str]) -> Settings:
    """The command line's. Exits with 2 and a text if it makes no sense."""
    about, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.bounce",
        description=about,
        epilog=rest.partition("\n\nUsage:")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kernel", type=Path, default=path_of("kernel"), help="bzImage; by default the pipeline's")
    parser.add_argument("--system-map", type=Path, help="its symbols; by default System.map beside it")
    parser.add_argument("--arguments", default="", help="more of the kernel's command line, in one word")
    parser.add_argument("--hosts", type=hosts_of, default="01", help="the host of each vCPU, 0 is home; by default 01")
    parser.add_argument("--loops", type=whole(0, 100), default=1, help="on each CPU elsewhere; by default 1")
    parser.add_argument("--settle", type=whole(1, 600), default=3, help="seconds that do not count; by default 3")
    parser.add_argument("--seconds", type=whole(1, 3600), default=10, help="that count; by default 10")
    most = bounce.MAX_PAGES // 256
    parser.add_argument("--memory", type=whole(128, most), default=512, help="MiB of the guest; by default 512")
    parser.add_argument("--delay", type=whole(0, 100000), default=0, help="us that a page takes; by default none")
    parser.add_argument("--lease", type=whole(0, 100000), default=0, help="us that it stays; by default none")
    parser.add_argument("--forks", type=whole(0, 100), default=0, help="a second, of a program at home; by default none")
    asked = parser.parse_args(words)
    system_map = asked.system_map or asked.kernel.resolve().parent / "System.map"
    for path in (asked.kernel, system_map):
        if not path.is_file():
            parser.error(f"{path} is not there; 'make build STEPS=linux' makes this project's")
    return Settings(
        asked.kernel, system_map, asked.arguments, asked.hosts, asked.loops, asked.settle, asked.seconds, asked.memory,
        asked.delay, asked.lease, asked.forks,
    )


def main(words: Sequence[str] = ()) -> int:
    """Run, show, write build/results/bounce.json."""
    settings = settings_of(words)
    began = time.monotonic()
    try:
        seen, counts, names = run(settings)
        pages = bounce.pages_of(counts, names)
        figures = metrics(seen, counts, pages)
    except (LabError, Malformed, CommandFailedError, OSError) as error:
        print(f"bounce: {error}", file=sys.stderr)
        return 1
    print(table(seen, counts, pages))
    asked = {"bounce_hosts": settings.hosts, "bounce_loops": settings.loops, "bounce_arguments": settings.arguments}
    asked |= {"bounce_delay_us": settings.delay_us, "bounce_lease_us": settings.lease_us, "bounce_forks": settings.forks}
    path = kept("bounce", figures, host={**asked, "bounce_kernel": str(settings.kernel)})
    print(f"bounce: {path}, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
