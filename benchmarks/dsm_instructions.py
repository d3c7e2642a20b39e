# SPDX-License-Identifier: GPL-2.0
"""``make count-dsm``: what CONFIG_DSM costs domains that do not use it, in instructions.

Three hypervisors are built that differ in nothing else: without, with MEM_PAGING only, which CONFIG_DSM needs, and with
CONFIG_DSM. In each the shortest ways are counted (`machine_code`) on which a nested page fault and a hypercall of an ordinary
domain go; a way makes no call of DSM's. That of each function counts as often as the function runs. Functions that are the
same in all three are listed, too, so that the sums say something; those they call in turn, and what a hypercall does itself,
are left out.

Result: build/results/dsm-instructions.json. A way that one of the hypervisors has not is a failure: then Xen has changed, and
the way has to be written anew.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine_code import INDIRECT, Count, Function, NoWay, disassembled, shortest
from benchmarks.results import Metric, kept
from lab.pipeline import build
from lab.pipeline.paths import BUILD, REPO
from lab.pipeline.progress import Progress, StepFailed

WITHOUT, PAGING, DSM = "without", "mem_paging", "dsm"
# What is asked for after the lab's own configuration. UNSUPPORTED has Kconfig offer what CONFIG_DSM selects, and TBOOT.
VARIANTS = {
    WITHOUT: "# CONFIG_DSM is not set\n# CONFIG_MEM_PAGING is not set\n",
    PAGING: "# CONFIG_DSM is not set\nCONFIG_UNSUPPORTED=y\n# CONFIG_TBOOT is not set\nCONFIG_MEM_PAGING=y\n",
}


@dataclass(frozen=True)
class Way:
    """Through `function`, by these calls; `times` on a path."""

    function: str
    calls: tuple[str, ...] = ()
    times: int = 1


MAPPED = ("map_domain_page", "unmap_domain_page")
PUT = ("unmap_domain_page", "put_page")
ENTRY = Way("p2m_pt_get_entry", MAPPED * 4)  # of 4 KiB, which is the longest
LOOK_UP = Way("p2m_get_gfn_type_access", (INDIRECT,))
LOCKED_LOOK_UP = Way("p2m_get_gfn_type_access", ("_check_lock_level", "_percpu_write_lock", INDIRECT))
FAULT = (
    Way(
        "svm_vmexit_handler",
        ("hvm_maybe_deassert_evtchn_irq", "p2m_pt_handle_deferred_changes", "hvm_hap_nested_page_fault"),
    ),
    Way("p2m_pt_handle_deferred_changes", ("do_recalc", "p2m_unlock_and_tlb_flush")),
    LOCKED_LOOK_UP,
    ENTRY,
    Way("p2m_put_gfn", ("p2m_unlock_and_tlb_flush",)),
)
IN_FAULT = ("nestedhvm_vcpu_in_guestmode", "p2m_get_gfn_type_access")


def times(way: Way, number: int) -> Way:
    return Way(way.function, way.calls, number)


PATHS: Mapping[str, tuple[str, Sequence[Way]]] = {
    "fault_device": (
        "a nested page fault that is an access to an emulated device",
        (*FAULT, Way("hvm_hap_nested_page_fault", (*IN_FAULT, "handle_mmio_with_translation", "p2m_put_gfn"))),
    ),
    "fault_memory": (
        "a nested page fault by the first write to a page whose writes are logged",
        (
            *FAULT,
            Way(
                "hvm_hap_nested_page_fault",
                (*IN_FAULT, "paging_mark_pfn_dirty", "p2m_change_type_one", "p2m_put_gfn"),
            ),
        ),
    ),
    "hypercall": (
        "a hypercall in 64 bits, without what it does and copies",
        (
            Way("svm_vmexit_handler", ("hvm_maybe_deassert_evtchn_irq", "svm_get_insn_len", "hvm_hypercall")),
            Way(
                "hvm_hypercall",
                (INDIRECT, INDIRECT, "hvmemul_cache_disable", "do_event_channel_op", "hvmemul_cache_restore"),
            ),
        ),
    ),
    "copy": (
        "each page that a hypercall's argument is in: the walk of the guest's tables, and the copy",
        (
            Way("__hvm_copy", ("hvm_translate_get_page", *MAPPED, "put_page")),
            Way("hvm_translate_get_page", ("paging_gva_to_gfn", "p2m_get_page_from_gfn")),
            Way("paging_gva_to_gfn", (INDIRECT,)),
            Way(
                "hap_p2m_ga_to_gfn_4_levels",
                (
                    "p2m_get_page_from_gfn",
                    "map_domain_page",
                    "guest_walk_tables_4_levels",
                    *PUT,
                    "p2m_get_page_from_gfn",
                    "put_page",
                ),
            ),
            # Accessed and dirty bits are set already.
            Way(
                "guest_walk_tables_4_levels",
                (*("hvmemul_read_cache", "map_domain_gfn") * 3, "hvmemul_read_cache", *PUT * 3),
            ),
            Way("map_domain_gfn", ("p2m_get_page_from_gfn", "map_domain_page"), times=3),
            # The root, three tables, and the page twice.
            Way("p2m_get_page_from_gfn", (LOOK_UP.function, "get_page_from_mfn_and_type"), times=6),
            times(LOOK_UP, 6),
            times(ENTRY, 6),
        ),
    ),
    "interrupt": (
        "a vector that reaches a local APIC",
        (Way("vlapic_accept_irq", ("vlapic_set_irq",)),),
    ),
}

Functions = Mapping[str, Function]


def total(functions: Functions, ways: Sequence[Way]) -> Count:
    """Of a path. Raises NoWay."""
    return sum((shortest(functions, way.function, way.calls) * way.times for way in ways), start=Count())


def differences(hypervisors: Mapping[str, Functions], ways: Sequence[Way]) -> str:
    """Which ways of a path are not equally long, and how long they are with and without, each once."""
    found = []
    for way in ways:
        each = [shortest(hypervisors[v], way.function, way.calls).instructions for v in (WITHOUT, PAGING, DSM)]
        if len(set(each)) > 1:
            found.append(
                f"{way.function} {' to '.join(map(str, each))}" + (f", {way.times} times" if way.times > 1 else "")
            )
    return "; ".join(found)


def figures(hypervisors: Mapping[str, Functions]) -> list[Metric]:
    """For each path: instructions and conditional jumps. Raises NoWay."""
    metrics = []
    for name, (title, ways) in PATHS.items():
        counts = {variant: total(functions, ways) for variant, functions in hypervisors.items()}
        note = f"{title}. Without, with MEM_PAGING, with DSM: {differences(hypervisors, ways) or 'no difference'}"
        for what in ("instructions", "branches"):
            value, *others = (getattr(counts[variant], what) for variant in (DSM, WITHOUT, PAGING))
            baseline = dict(zip((WITHOUT, PAGING), others, strict=True))
            metrics.append(Metric(f"dsm.{what}.{name}", value, "1", "lower", baseline=baseline, note=note))
    changed = sorted(
        name
        for name, function in hypervisors[PAGING].items()
        if name in hypervisors[DSM] and hypervisors[DSM][name].size != function.size
    )
    metrics.append(
        Metric(
            "dsm.functions_of_another_length",
            len(changed),
            "1",
            "lower",
            note=f"of {len(hypervisors[PAGING])}, compared with MEM_PAGING only: {', '.join(changed)}",
        )
    )
    return metrics


def options(config: Path) -> set[str]:
    """What a hypervisor was built with, but for the options that are meant to differ."""
    lines = config.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if re.match(r"CONFIG_(?!(DSM|MEM_PAGING|UNSUPPORTED)=)", line)}


def built() -> dict[str, Functions]:
    """The three hypervisors, taken apart. Raises StepFailed."""
    build.build(["xen"])
    lab = build.result_path("xen")
    hypervisors: dict[str, Functions] = {DSM: disassembled(lab / "xen-syms")}
    progress = Progress(len(VARIANTS))
    for variant, asked in VARIANTS.items():
        out = BUILD / "dsm-instructions" / variant
        out.mkdir(parents=True, exist_ok=True)
        fragment = out / f"{variant}.config"
        fragment.write_text(asked, encoding="utf-8")
        progress.begin(variant, f"the hypervisor: {', '.join(asked.strip().splitlines())}")
        build.build_xen(out, progress, variant, [REPO / "xen/config/xenuma.config", fragment], variant=f"-{variant}")
        if others := options(out / "config") ^ options(lab / "config"):
            raise StepFailed(f"{variant}: other options differ, too: {', '.join(sorted(others))}")
        hypervisors[variant] = disassembled(out / "xen-syms")
    return hypervisors


def show(metrics: Sequence[Metric]) -> None:
    for metric in metrics:
        was = "".join(f", {variant} {value}" for variant, value in metric.baseline.items())
        print(f"{metric.metric}: {metric.value}{was}")
        if metric.metric.startswith("dsm.instructions."):
            print(f"    {metric.note}")


def main(arguments: Sequence[str] = ()) -> int:
    """Build, count, write build/results/dsm-instructions.json."""
    argparse.ArgumentParser(
        prog="python3 -m benchmarks.dsm_instructions", description=(__doc__ or "").partition("\n")[0]
    ).parse_args(arguments)
    try:
        metrics = figures(built())
    except (StepFailed, NoWay) as error:
        print(f"\nxenuma: {error}", file=sys.stderr)
        return 1
    show(metrics)
    print(f"written to {kept('dsm-instructions', metrics, emulated=False)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
