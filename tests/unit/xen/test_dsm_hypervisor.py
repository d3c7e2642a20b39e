# SPDX-License-Identifier: GPL-2.0-only
"""DSM of the hypervisor, compiled in user space against a small fake of what it calls.

Each case of the files *_test.c beside it is a test here. The mutants show that the cases notice when the code is wrong.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

from tests.unit.xen.case_programs import assert_holds, mistaken, names, run

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "xen" / "overlay" / "xen"
SOURCE = OVERLAY / "arch" / "x86" / "mm" / "dsm.c"
RINGS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_ring.c"
VCPUS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_vcpu.c"
INFOS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_vcpu_info.c"
HYPERCALLS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_hypercall.c"
CALLS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_call.c"
ROUTES = OVERLAY / "arch" / "x86" / "hvm" / "dsm_route.c"
PORTS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_port.c"
TIMES = OVERLAY / "arch" / "x86" / "hvm" / "dsm_time.c"
BITS = OVERLAY / "arch" / "x86" / "include" / "asm" / "dsm_bits.h"
ACTIVITIES = OVERLAY / "arch" / "x86" / "hvm" / "dsm_activity.c"
CLEARS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_clear.c"
ACCESSES = OVERLAY / "arch" / "x86" / "hvm" / "dsm_access.c"
UNCACHED = OVERLAY / "arch" / "x86" / "hvm" / "dsm_uncached.c"
HOLES = OVERLAY / "arch" / "x86" / "hvm" / "dsm_hole.c"
FOREIGN = OVERLAY / "arch" / "x86" / "hvm" / "dsm_foreign.c"
FAKE = HERE / "fake_dsm"

_scratch = tempfile.TemporaryDirectory(prefix="dsm_test.")


def gcc(*arguments: str | Path, checked: bool = True) -> None:
    """Compile or link, with the fake's headers before the hypervisor's own; `checked`: with the sanitizers."""
    include: list[str | Path] = ["-I", FAKE, "-I", OVERLAY / "arch/x86/include", "-I", OVERLAY / "include"]
    flags = ["-Wall", "-Werror", "-Wno-unused-function", "-DCONFIG_DSM"]
    if checked:
        flags += ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
    subprocess.run(["gcc", "-std=gnu99", *flags, *include, *arguments], check=True)


@cache
def compiled(source: Path, checked: bool) -> Path:
    """The object of a file that is not mistaken, compiled once."""
    built = Path(_scratch.name) / f"{source.stem}{'' if checked else '.quick'}.o"
    gcc("-c", "-o", built, source, checked=checked)
    return built


COMMANDS = (SOURCE, RINGS, VCPUS, INFOS, CALLS, ROUTES, PORTS, TIMES, ACTIVITIES, ACCESSES, HOLES, FOREIGN)


def build(
    program: Path, source: Path | None = None, checked: bool = True, of: Path = SOURCE, cases: str = "dsm_test.c"
) -> Path:
    """What is behind the commands, with its cases and the fake; `source` in the place of the file `of`."""
    return link(program, source, checked, of, cases=cases)


def link(
    program: Path, source: Path | None, checked: bool, of: Path, *, cases: str, files: tuple[Path, ...] = COMMANDS
) -> Path:
    """These files, with cases and the fake."""
    parts = [source if source and file == of else compiled(file, checked) for file in files]
    surroundings = [compiled(file, checked) for file in (FAKE / "fake_dsm.c", HERE / cases)]
    gcc("-o", program, *parts, *surroundings, checked=checked)
    return program


@cache
def program() -> Path:
    return build(Path(_scratch.name) / "dsm_test")


def assert_noticed(original: Path, mutant: tuple[str, str, str], build: Callable[[Path, Path, bool], Path]) -> None:
    """The case of a mutant fails: of a program that is quick to build, or, if that passes, of one with the sanitizers.

    `build` makes a program out of a version of the source; its last argument is gcc()'s `checked`.
    """
    old, new, case = mutant
    with tempfile.TemporaryDirectory(prefix="dsm_mutant.") as scratch:
        source = mistaken(original, old, new, Path(scratch))
        for checked in (False, True):
            if run(build(Path(scratch) / "mutant", source, checked), case).returncode != 0:
                return
    pytest.fail(f"{case} passed")


@pytest.mark.parametrize("name", names(program))
def test_case(name: str) -> None:
    assert_holds(program(), name)


def build_bits(built: Path, header: Path, checked: bool = True) -> Path:
    """mm/dsm.c with one version of dsm_bits.h, whose guard has the other one skipped."""
    parts = [compiled(file, checked) for file in (*COMMANDS[1:], FAKE / "fake_dsm.c")]
    gcc("-o", built, "-include", header, SOURCE, *parts, compiled(HERE / "dsm_test.c", checked), checked=checked)
    return built


# As MUTANTS, of dsm_bits.h.
BITS_MUTANTS = {
    "a part is a range": (
        "        from = base + nr;",
        "        from = to;",
        "bits as they are used",
    ),
    "the first part only": (
        "ACCESS_ONCE(bits->parts[nr / DSM_BITS_PART])",
        "ACCESS_ONCE(bits->parts[0])",
        "bits as they are used",
    ),
    "parts that are forgotten": (
        "    if ( *part )\n        return 0;\n",
        "",
        "bits as they are used",
    ),
}


@pytest.mark.parametrize("mutant", BITS_MUTANTS)
def test_bits_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(BITS, BITS_MUTANTS[mutant], build_bits)


@cache
def hypercall_program() -> Path:
    """dsm_hypercall.c with its cases, which bring their own fake."""
    return build_hypercalls(Path(_scratch.name) / "dsm_hypercall_test", HYPERCALLS)


def build_hypercalls(built: Path, source: Path, checked: bool = True) -> Path:
    """One version of dsm_hypercall.c."""
    parts = [compiled(ROUTES, checked), compiled(HERE / "dsm_hypercall_test.c", checked)]
    gcc("-o", built, source, *parts, checked=checked)
    return built


@pytest.mark.parametrize("name", names(hypercall_program))
def test_hypercall_case(name: str) -> None:
    assert_holds(hypercall_program(), name)


# As MUTANTS, of dsm_hypercall.c.
HYPERCALL_MUTANTS = {
    "nobody hears what is refused to a vCPU elsewhere": (
        "    if ( rc == -ENOSYS )\n        say_refused(curr, regs);\n\n",
        "",
        "vCPUs of another slice",
    ),
    "what is refused at home is said": (
        "    if ( v->domain->arch.dsm->slice )\n        gprintk(",
        "    if ( 1 )\n        gprintk(",
        "pages that each call needs",
    ),
    "nobody hears what code of 32 bits is refused": (
        "        say_refused(curr, regs);\n        regs->rax = -ENOSYS;\n        return",
        "        regs->rax = -ENOSYS;\n        return",
        "a guest of 32 bits",
    ),
    "waits for a page that stays": (
        "    if ( dsm_is_uncached(v->domain, _gfn(gfn)) )",
        "    if ( 0 )",
        "a page that stays elsewhere",
    ),
    "refuses what is here": (
        "    if ( !p2m_is_paging(t) )\n        return page",
        "    if ( !p2m_is_paging(t) && !dsm_is_uncached(v->domain, _gfn(gfn)) )\n        return page",
        "a page that stays elsewhere",
    ),
    "what is behind no memory is asked for": (
        "        if ( rc == NOWHERE )\n            return 0;\n        if ( rc )\n",
        "        if ( rc && rc != NOWHERE )\n",
        "arguments without memory",
    ),
    "no memory is an answer": (
        "        if ( rc == NOWHERE )\n            return 0;\n",
        "",
        "arguments without memory",
    ),
    "a number without memory is an answer": (
        "    return rc == NOWHERE ? 0 : rc;",
        "    return rc;",
        "arguments without memory",
    ),
    "it is written to where there is none": (
        "        return page ? 0 : NOWHERE;",
        "        return page || !write ? 0 : NOWHERE;",
        "arguments without memory",
    ),
    "read-only arguments": (
        "        if ( !rc && write )\n            rc = resident_page(v, addr, true);\n",
        "",
        "pages that each call needs",
    ),
    "the first page only": (
        "        if ( addr == (last & PAGE_MASK) )",
        "        if ( 1 )",
        "pages that each call needs",
    ),
    "no continuations": ("extent_start.p + start)", "extent_start.p)", "pages that each call needs"),
    "as long as one likes": (
        "    if ( bytes > MAX_BYTES )\n        return -E2BIG;\n",
        "",
        "pages that each call needs",
    ),
    "a page that moves may be away": (
        "        if ( !rc && a.space == XENMAPSPACE_gmfn )\n            rc = resident_gfn(v, a.idx, true);\n",
        "",
        "pages that each call needs",
    ),
    "numbers of other spaces are pages": (
        "        if ( !rc && a.space == XENMAPSPACE_gmfn )\n            rc =",
        "        if ( !rc )\n            rc =",
        "pages that each call needs",
    ),
    "what is replaced may be away": (
        "        return rc ?: resident_gfn(v, a.gpfn, true);",
        "        return rc;",
        "pages that each call needs",
    ),
    "what is removed may be away": (
        "        return rc ?: resident_gfn(v, r.gpfn, true);",
        "        return rc;",
        "pages that each call needs",
    ),
    "shared_info moves": (
        "at != INVALID_M2P_ENTRY && (at == gfn) != to;",
        "at != INVALID_M2P_ENTRY && !to && at == gfn;",
        "where shared_info is",
    ),
    "shared_info has to be where it was not": (
        "at != INVALID_M2P_ENTRY && (at == gfn) != to;",
        "(at == gfn) != to;",
        "where shared_info is",
    ),
    "shared_info stays before there are several": (
        "    if ( !d->arch.dsm->spread )\n        return false;\n    at",
        "    at",
        "where shared_info is",
    ),
    "shared_info is removed": (
        "        if ( !rc && would_move_shared_info(v, r.gpfn, false) )\n            return -EBUSY;\n",
        "",
        "where shared_info is",
    ),
    "a guest is suspended in several slices": (
        "             any_elsewhere(v->domain) )\n            return -ENOSYS;",
        "             any_elsewhere(v->domain) )\n            return 0;",
        "vCPUs of another slice",
    ),
    "a guest can't be suspended once vCPUs were elsewhere": (
        "             any_elsewhere(v->domain) )\n            return -ENOSYS;",
        "             v->domain->arch.dsm->spread )\n            return -ENOSYS;",
        "a guest that is suspended",
    ),
    "a guest in several slices can't end": (
        "shutdown.reason == SHUTDOWN_suspend &&",
        "shutdown.reason &&",
        "vCPUs of another slice",
    ),
    "asks for nothing": ("    dsm_populate(v->domain, _gfn(gfn));\n", "", "one of them is missing"),
    "does not wait": (
        "    dsm_populate(v->domain, _gfn(gfn));\n\n    return WAITING;",
        "    dsm_populate(v->domain, _gfn(gfn));\n\n    return 0;",
        "one of them is missing",
    ),
    "a table is no page": ("return pfec & PFEC_page_paged ? WAITING : 0;", "return 0;", "a page table is missing"),
    "waits in the gate": ("    dsm_gate_leave(curr);\n\n    if", "    if", "one of them is missing"),
    "runs through a closed gate": (
        "    if ( !dsm_gate_enter(curr) )\n        return DSM_HCALL_RETRY;",
        "    dsm_gate_enter(curr);",
        "the gate is closed",
    ),
    "FIFO event channels": (
        "    case EVTCHNOP_reset_cont:\n",
        "    case EVTCHNOP_reset_cont:\n    case EVTCHNOP_init_control:\n",
        "pages that each call needs",
    ),
    "continuations of a reset": ("    case EVTCHNOP_reset_cont:\n", "", "pages that each call needs"),
    "events that nobody has looked at": (
        "        return resident(v, arg, 24, true);\n\n    default:\n        return -ENOSYS;",
        "    default:\n        return resident(v, arg, 24, true);",
        "pages that each call needs",
    ),
    "versions that nobody has looked at": (
        "        return resident(v, arg, 1024, true);\n\n    default:\n        return -ENOSYS;",
        "    default:\n        return resident(v, arg, 1024, true);",
        "pages that each call needs",
    ),
    "scheduling that nobody has looked at": (
        "        return resident(v, arg, 16, false);\n\n    default:\n        return -ENOSYS;",
        "    default:\n        return resident(v, arg, 16, false);",
        "pages that each call needs",
    ),
    "vCPUs that nobody has looked at": (
        "    case VCPUOP_get_physid:\n        return resident(v, arg, 64, true);\n\n    default:\n        return -ENOSYS;",
        "    case VCPUOP_get_physid:\n    default:\n        return resident(v, arg, 64, true);",
        "pages that each call needs",
    ),
    "interrupts that nobody has looked at": (
        "    case PHYSDEVOP_get_free_pirq:\n        return resident(v, arg, 64, true);\n\n"
        "    default:\n        return -ENOSYS;",
        "    case PHYSDEVOP_get_free_pirq:\n    default:\n        return resident(v, arg, 64, true);",
        "pages that each call needs",
    ),
    "runstate areas": (
        "        /* The answer is 0, but the call does not run. */\n        return 1;",
        "        return 0;",
        "pages that each call needs",
    ),
    "whatever is called runs": (
        "    default:\n        return -ENOSYS;\n    }\n}\n\n/*\n * A vCPU of another host",
        "    default:\n        return 0;\n    }\n}\n\n/*\n * A vCPU of another host",
        "pages that each call needs",
    ),
    "32-bit guests": ("    if ( mode != X86_MODE_64BIT )", "    if ( 0 )", "a guest of 32 bits"),
    "calls about ghosts": (
        "    rc = route(v, rule, vcpu, NULL, 0);\n    if ( rc )\n        return rc;\n",
        "",
        "vCPUs of another slice",
    ),
    "events of ghosts": ("    return rc ?: route(v, rule, 0, &u, arg);", "    return rc;", "vCPUs of another slice"),
    "upcalls of ghosts": (
        "return rc ?: route(v, rule, 0, &upcall, arg);",
        "return rc;",
        "vCPUs of another slice",
    ),
    "vcpu_info of ghosts": (
        "        rc = rc ?: route(v, rule, vcpu, &info, arg);\n",
        "",
        "vCPUs of another slice",
    ),
    "ports of this slice only": (
        "    there = dsm_port_slice(subject, dsm->nr_slices);",
        "    there = dsm->slice;",
        "vCPUs of another slice",
    ),
    "ports of nobody": (
        "    return there < dsm->nr_slices ? there : dsm->slice;",
        "    return there;",
        "vCPUs of another slice",
    ),
    "ports before there are any": (
        "    if ( !dsm->spread )\n        return dsm->slice;\n",
        "",
        "ports while all are at home",
    ),
    "events are lost": ("        dsm_forward_port(v->domain, subject);\n", "", "vCPUs of another slice"),
    "events are sent twice": (
        "        dsm_forward_port(v->domain, subject);\n        return 1;",
        "        dsm_forward_port(v->domain, subject);\n        return 0;",
        "vCPUs of another slice",
    ),
    "domains elsewhere": (
        "        if ( !rc && u.status.dom != DOMID_SELF )\n            return 0;\n",
        "",
        "vCPUs of another slice",
    ),
    "results are lost": ("        if ( rc == 1 && rule->back &&", "        if ( 0 &&", "results of another slice"),
    "results of what failed": (
        "        if ( rc == 1 && rule->back &&",
        "        if ( rule->back &&",
        "results of another slice",
    ),
    "results of nothing": (
        "        if ( rc == 1 && rule->back &&",
        "        if ( rc == 1 &&",
        "results of another slice",
    ),
    "results that nobody can read": ("            rc = -EFAULT;\n", "            ;\n", "results of another slice"),
    "calls in any slice": ("dsm->spread) == DSM_REFUSE )", "dsm->spread) == 99 )", "vCPUs of another slice"),
    "vCPUs that there are not": (
        "               : dsm->slice;\n",
        "               : ~0U;\n",
        "vCPUs of another slice",
    ),
    "sends what it has not read": (
        "        if ( rc == UNREADABLE )\n            return -EFAULT;\n",
        "",
        "answers of another slice",
    ),
    "with others in its page": (
        "        if ( !rc && v->domain->arch.dsm->slice && info.offset )\n            return -EINVAL;\n",
        "",
        "vCPUs of another slice",
    ),
    "alone in its page at home": (
        "!rc && v->domain->arch.dsm->slice && info",
        "!rc && info",
        "pages that each call needs",
    ),
    "alone in its page in any slice": (
        "if ( !rc && v->domain->arch.dsm->slice",
        "if ( rc && v->domain->arch.dsm->slice",
        "vCPUs of another slice",
    ),
    "64 bits of a sub-operation": (
        "dsm_rule(regs->rax, (unsigned int)a1)",
        "dsm_rule(regs->rax, a1)",
        "vCPUs of another slice",
    ),
    "sends before it has read": (
        "        rc = rc ?: route(v, rule, vcpu, &info, arg);\n",
        "        rc = route(v, rule, vcpu, &info, arg);\n",
        "answers of another slice",
    ),
    "what cannot be read": (" || rc == UNREADABLE )", " )", "pointers that lead nowhere"),
    "another slice says that it cannot be read": (
        "#define UNREADABLE (-DSM_MAX_ERRNO - 1)",
        "#define UNREADABLE (-ENODATA)",
        "answers of another slice",
    ),
    "a number that overflows": (
        "    if ( nr > UINT32_MAX )\n        return -E2BIG;\n",
        "",
        "pages that each call needs",
    ),
    "64 bits of a count": ("    count = (unsigned int)count;\n", "", "pages that each call needs"),
    "walks that only read": (
        "PFEC_page_present | (write ? PFEC_write_access : 0)",
        "PFEC_page_present",
        "pages that each call needs",
    ),
    "no cache for the emulator any more": (
        "    hvmemul_cache_restore(curr, token);\n",
        "    (void)token;\n",
        "pages that each call needs",
    ),
    "shared_info moves by a list": (
        "        if ( !rc && b.space == XENMAPSPACE_shared_info &&",
        "        if ( 0 &&",
        "where shared_info is",
    ),
    "no list but that": (
        "        if ( !rc && b.space == XENMAPSPACE_shared_info &&",
        "        if ( !rc &&",
        "where shared_info is",
    ),
    "vCPU 0 is never elsewhere": (
        "    for ( i = 0; i < d->max_vcpus; i++ )\n        if ( dsm_elsewhere",
        "    for ( i = 1; i < d->max_vcpus; i++ )\n        if ( dsm_elsewhere",
        "a guest that is suspended",
    ),
    "one vCPU too many": (
        "return subject < v->domain->max_vcpus\n",
        "return subject <= v->domain->max_vcpus\n",
        "no such vCPU",
    ),
    "a page too many": ("#define MAX_BYTES (16UL", "#define MAX_BYTES (17UL", "pages that each call needs"),
    "as many ranges as one likes": (
        "min(map.nr_entries, 256U)",
        "map.nr_entries",
        "pages that each call needs",
    ),
    "as much of a version as one likes": ("min(buf.len, 65000U)", "buf.len", "pages that each call needs"),
    "64 bits of a length": (
        "resident(v, a3, (unsigned int)a2, true)",
        "resident(v, a3, a2, true)",
        "pages that each call needs",
    ),
    "polls any number": ("min(poll.nr_ports, 128U)", "poll.nr_ports", "pages that each call needs"),
}


@pytest.mark.parametrize("mutant", HYPERCALL_MUTANTS)
def test_hypercall_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(HYPERCALLS, HYPERCALL_MUTANTS[mutant], build_hypercalls)


@cache
def route_program() -> Path:
    """dsm_route.c, which needs nothing else, with its cases."""
    return build_routes(Path(_scratch.name) / "dsm_route_test", ROUTES)


def build_routes(built: Path, source: Path, checked: bool = True) -> Path:
    """One version of dsm_route.c."""
    gcc("-o", built, source, compiled(HERE / "dsm_route_test.c", checked), checked=checked)
    return built


@pytest.mark.parametrize("name", names(route_program))
def test_route_case(name: str) -> None:
    assert_holds(route_program(), name)


# As MUTANTS, of dsm_route.c.
ROUTE_MUTANTS = {
    "slice 0's in any slice": ("    if ( here && rule->home_only )", "    if ( 0 )", "vCPUs in several slices"),
    "slice 0's nowhere": ("    if ( here && rule->home_only )", "    if ( rule->home_only )", "vCPUs in one slice"),
    "all is forwarded": ("rule->bytes ? DSM_FORWARD : DSM_REFUSE", "DSM_FORWARD", "vCPUs in several slices"),
    "nothing is forwarded": ("rule->bytes ? DSM_FORWARD : DSM_REFUSE", "DSM_REFUSE", "vCPUs in several slices"),
    "its own, too": ("        if ( here == there )\n            return DSM_RUN;\n", "", "vCPUs in one slice"),
    "half of the TLBs": ("return spread ? DSM_REFUSE : DSM_RUN;", "return DSM_RUN;", "vCPUs in several slices"),
    "no TLBs": ("return spread ? DSM_REFUSE : DSM_RUN;", "return DSM_REFUSE;", "vCPUs in one slice"),
    "any sub-operation": (
        "(rules[i].cmd == DSM_ANY_CMD || rules[i].cmd == cmd)",
        "(1)",
        "vCPUs in several slices",
    ),
    "what nobody knows, anywhere": (
        "other = { 0, DSM_ANY_CMD, HOME,",
        "other = { 0, DSM_ANY_CMD, ANYWHERE,",
        "vCPUs in several slices",
    ),
    "the wrong word": ("arg + rule->at,", "arg,", "whom a call concerns"),
    "the wrong register": ("        return reg;", "        return reg >> 32;", "whom a call concerns"),
    "half of an argument": ("FORWARD(REG, 16, 0)", "FORWARD(REG, 8, 0)", "what goes with a call"),
    "no port comes back": ("FORWARD(0, 4, 8)", "FORWARD(0, 4, 0)", "what goes with a call"),
    "half of a status": ("PORT(4, 8, 24)", "PORT(4, 8, 16)", "what goes with a call"),
    "the vCPU of a VIRQ": ("FORWARD(4, 8, 12)", "FORWARD(0, 8, 12)", "whom a call concerns"),
    "the port of a status": ("PORT(4, 8, 24)", "PORT(0, 8, 24)", "whom a call concerns"),
    "who sends waits": ("here == there ? DSM_RUN : DSM_SEND", "DSM_RUN", "vCPUs in several slices"),
    "all is sent": ("here == there ? DSM_RUN : DSM_SEND", "DSM_SEND", "vCPUs in one slice"),
    "events are moved": (
        "EVTCHNOP_bind_vcpu, HOME, VCPU(4) }",
        "EVTCHNOP_bind_vcpu, HOME, NOBODY }",
        "vCPUs in several slices",
    ),
    "more ports than there are": (
        "    while ( ports * nr_slices > XEN_DSM_PORTS )",
        "    while ( ports * nr_slices > 2 * XEN_DSM_PORTS )",
        "ports of slices",
    ),
    "fewer ports than there are": (
        "    while ( ports * nr_slices > XEN_DSM_PORTS )",
        "    while ( ports * nr_slices >= XEN_DSM_PORTS )",
        "ports of slices",
    ),
    "parts of any size": (
        "        ports /= 2;",
        "        ports--;",
        "ports of slices",
    ),
    "ports of no slice": (
        "    return min(port / dsm_ports(nr_slices), nr_slices);",
        "    return port / dsm_ports(nr_slices);",
        "ports of slices",
    ),
    "16 bits of a port": (
        "    return min(port / dsm_ports(nr_slices), nr_slices);",
        "    return min((port & 0xffff) / dsm_ports(nr_slices), nr_slices);",
        "ports of slices",
    ),
    "any port": (
        "    return dsm_port_slice(port, nr_slices) == slice;",
        "    return true;",
        "what a slice may say",
    ),
    "one of two slices": (
        "    return dsm_port_slice(port, nr_slices) == slice;",
        "    return port / 2048 == slice;",
        "what a slice may say",
    ),
    "the port of an IPI": ("arg + rule->bytes, sizeof(port)", "arg + 4, sizeof(port)", "what a slice may say"),
    "answers without a port": (" || !rule->back )", " )", "what a slice may say"),
    "what is no port": (
        "rule->concerns != DSM_CONCERNS_VCPU || ",
        "",
        "what a slice may say",
    ),
    "spinlocks of slice 0 only": (
        "    { __HYPERVISOR_sched_op, SCHEDOP_poll, ANYWHERE, NOBODY },\n",
        "",
        "vCPUs in several slices",
    ),
    "timers anywhere": (
        "    { __HYPERVISOR_vcpu_op, DSM_ANY_CMD, HOME, VCPU(REG) },",
        "    { __HYPERVISOR_vcpu_op, DSM_ANY_CMD, ANYWHERE, VCPU(REG) },",
        "vCPUs in several slices",
    ),
    "EVTCHNOP_reset closes the ports of one slice": (
        "    { __HYPERVISOR_event_channel_op, EVTCHNOP_reset, HOME, ALL },\n",
        "",
        "vCPUs in several slices",
    ),
    "VCPUOP_down looks at one slice": (
        "    { __HYPERVISOR_vcpu_op, VCPUOP_down, HOME, ALL },\n",
        "",
        "vCPUs in several slices",
    ),
}


@pytest.mark.parametrize("mutant", ROUTE_MUTANTS)
def test_route_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(ROUTES, ROUTE_MUTANTS[mutant], build_routes)


def build_calls(built: Path, source: Path | None = None, checked: bool = True) -> Path:
    """One version of dsm_call.c, with the rest of it."""
    return build(built, source, checked, CALLS, "dsm_call_test.c")


@cache
def call_program() -> Path:
    return build_calls(Path(_scratch.name) / "dsm_call_test")


@pytest.mark.parametrize("name", names(call_program))
def test_call_case(name: str) -> None:
    assert_holds(call_program(), name)


# As MUTANTS, of dsm_call.c.
CALL_MUTANTS = {
    "does not stop": ("    vcpu_pause_nosync(v);\n    put_call", "    put_call", "a call and its result"),
    "never goes on": ("        vcpu_unpause(v);\n", "", "a call and its result"),
    "tells nobody": ("    dsm_notify(d);\n\n    return rc;", "    return rc;", "a call and its result"),
    "0 is no answer": ("rc = c->what.rc ?: 1;", "rc = c->what.rc;", "a call and its result"),
    "a result for ever": (
        "        c->state = DSM_CALL_FREE;\n        rc =",
        "        rc =",
        "a call and its result",
    ),
    "somewhere": ("        .want = c->slice,\n", "", "a call and its result"),
    "a port is a vCPU": (
        "    if ( rule->concerns == DSM_CONCERNS_VCPU )\n        call.what.vcpu = subject;",
        "    call.what.vcpu = subject;",
        "calls about ports",
    ),
    "of no vCPU": (
        "    if ( rule->concerns == DSM_CONCERNS_VCPU )\n        call.what.vcpu = subject;",
        "    ;",
        "a call and its result",
    ),
    "the answer belongs to the question": (
        "    c = find_result(v, &call, rule->bytes);",
        "    c = find_result(v, &call, sizeof(call.what.arg));",
        "results with bytes",
    ),
    "answers are lost": ("        if ( rc == 1 && rule->back )\n", "        if ( 0 )\n", "results with bytes"),
    "answers of what failed": (
        "        if ( rc == 1 && rule->back )\n",
        "        if ( rule->back )\n",
        "results with bytes",
    ),
    "writes what was asked": (
        "            memcpy((uint8_t *)c->what.arg + rule->bytes,\n"
        "                   (const uint8_t *)reply->arg + rule->bytes,\n"
        "                   rule->back - rule->bytes);",
        "            memcpy(c->what.arg, reply->arg, rule->back);",
        "results with bytes",
    ),
    "any port": (
        "        if ( !reply->rc && !dsm_may_say(rule, reply->arg, c->slice,\n"
        "                                        dsm->nr_slices) )\n            break;\n",
        "",
        "ports of somebody else",
    ),
    "errors have ports": (
        "        if ( !reply->rc && !dsm_may_say",
        "        if ( !dsm_may_say",
        "ports of somebody else",
    ),
    "no argument": ("    memcpy(call.what.arg, arg, rule->bytes);\n", "", "a call and its result"),
    "another instruction's": ("c->rip == b->rip && ", "", "whose result"),
    "only where it waited": (
        "    for ( n = 0; n < d->max_vcpus; n++ )",
        "    for ( n = 0; n < 1; n++ )",
        "who called has moved",
    ),
    "another's first": ("(v->vcpu_id + n) % d->max_vcpus;", "n;", "who called has moved"),
    "results leave with their CPU": (
        "            if ( c->state == DSM_CALL_DONE && same_call",
        "            if ( !d->arch.dsm->vcpu[vcpu].ghost && c->state == DSM_CALL_DONE && same_call",
        "the CPU that called has left",
    ),
    "two slices have all ports": (
        "dsm_port_slice(subject, dsm->nr_slices) != dsm->slice",
        "subject / 2048 != dsm->slice",
        "events of several slices",
    ),
    "what has no result yet": (
        "            if ( c->state == DSM_CALL_DONE && same_call",
        "            if ( c->state != DSM_CALL_FREE && same_call",
        "who called has moved",
    ),
    "another stack's": ("c->rsp == b->rsp &&\n", "\n", "whose result"),
    "another operation's": ("c->what.op == b->what.op && c->what.cmd == b->what.cmd &&", "", "whose result"),
    "another argument's": (
        "           !memcmp(c->what.arg, b->what.arg, bytes);",
        "           true;",
        "whose result",
    ),
    "one result": ("            (!found || c->cookie < found->cookie)", "            0", "interrupts in between"),
    "the newest goes": ("c->cookie < found->cookie", "c->cookie > found->cookie", "interrupts in between"),
    "who waits loses its place": (
        "        if ( c->state == DSM_CALL_FREE )",
        "        if ( c->state != DSM_CALL_DONE )",
        "a call that is under way",
    ),
    "results outlive an INIT": (
        "        if ( c->state == DSM_CALL_DONE )\n            c->state = DSM_CALL_FREE;\n",
        "",
        "calls before an INIT",
    ),
    "calls outlive an INIT": ("        c->forgotten = true;\n", "", "calls before an INIT"),
    "forgets who waits": ("        if ( c->state == DSM_CALL_DONE )\n", "", "calls before an INIT"),
    "one vCPU's calls": (
        "    for ( i = 0; i < d->max_vcpus; i++ )\n        for ( j",
        "    for ( i = 0; i < 1; i++ )\n        for ( j",
        "calls and a full ring",
    ),
    "the first call of each": ("j < DSM_CALLS; j++ )", "j < 1; j++ )", "calls and a full ring"),
    "the last cookie": ("        .gfn = c->cookie,\n", "        .gfn = dsm->cookie,\n", "calls and a full ring"),
    "calls under way in the first place": (
        "    for ( i = 0; i < DSM_CALLS; i++ )\n        if ( dsm->vcpu[vcpu].calls[i].state",
        "    for ( i = 0; i < 1; i++ )\n        if ( dsm->vcpu[vcpu].calls[i].state",
        "calls and places",
    ),
    "any sub-operation's": (
        "c->what.op == b->what.op && c->what.cmd == b->what.cmd &&",
        "c->what.op == b->what.op &&",
        "whose result",
    ),
    "any operation's": ("c->what.op == b->what.op && c->what.cmd", "c->what.cmd", "whose result"),
    "about any vCPU": ("           c->what.vcpu == b->what.vcpu &&\n", "", "whose result"),
    "half of the argument": (
        "!memcmp(c->what.arg, b->what.arg, bytes)",
        "!memcmp(c->what.arg, b->what.arg, 8)",
        "whose result",
    ),
    "always slice 1": ("        .slice = slice,\n", "        .slice = 1,\n", "calls about ports"),
    "what is pending waits": ("    hvm_assert_evtchn_irq(v);\n", "", "an upcall vector"),
    "a lock that is not free": (" || call->rc == -ERESTART )", " )", "a vcpu_info"),
    "any cookie": (" || c->cookie != reply->cookie )", " )", "replies that are none"),
    "a reply twice": (
        "c->state != DSM_CALL_ASKED || c->cookie != reply",
        "c->cookie != reply",
        "replies that are none",
    ),
    "a result above 0": ("reply->rc > 0 || ", "", "replies that are none"),
    "no error": ("reply->rc < -DSM_MAX_ERRNO ||", "0 ||", "replies that are none"),
    "again and again": ("         reply->rc == -ERESTART )", "         0 )", "replies that are none"),
    "lost in a full ring": (
        "    c->unsent = !dsm_ring_put(dsm, &entry);",
        "    c->unsent = dsm_ring_put(dsm, &entry), c->unsent = false;",
        "calls and a full ring",
    ),
    "flush repeats itself": ("!(all || c->unsent) )", "0 )", "calls and a full ring"),
    "what was read is lost": ("!(all || c->unsent) )", "!c->unsent )", "calls and a full ring"),
    "what was answered": ("c->state != DSM_CALL_ASKED || !(all", "!(all", "calls and a full ring"),
    "calls of the dead": ("    if ( !c || dsm->dead )", "    if ( !c )", "calls at the end"),
    "placed under a call": (
        "        if ( dsm->vcpu[vcpu].calls[i].state == DSM_CALL_ASKED )",
        "        if ( 0 )",
        "calls and places",
    ),
    "does any call": ("    if ( !rule->bytes )", "    if ( 0 )", "calls that are refused"),
    "about another": (
        "call->vcpu != (rule->concerns == DSM_CONCERNS_VCPU ? subject : 0) ||",
        "",
        "calls that are refused",
    ),
    "a result comes with it": ("         call->rc )", "         0 )", "calls that are refused"),
    "ports of others": (
        ": dsm_port_slice(subject, dsm->nr_slices) != dsm->slice )",
        ": 0 )",
        "calls that are refused",
    ),
    "closed and open": (
        "        set_bit(u->close.port, d->shared_info->native.evtchn_mask);\n",
        "",
        "events here",
    ),
    "domains of others": (
        "        if ( u->status.dom != DOMID_SELF )\n            return -EINVAL;\n",
        "",
        "calls that are refused",
    ),
    "the caller's own status": ("        u->status.dom = d->domain_id;\n", "", "events here"),
    "says which domain it is": ("        u->status.dom = DOMID_SELF;\n", "", "events here"),
    "more than its argument": ("        if ( arg[i] )", "        if ( 0 )", "calls that are refused"),
    "ghosts": ("    if ( v ? dsm_elsewhere(dsm, v->vcpu_id)", "    if ( v ? 0", "calls that are refused"),
    "vectors that are exceptions": ("upcall->vector < 16", "upcall->vector < 15", "an upcall vector"),
    "no vector": ("    v->arch.hvm.evtchn_upcall_vector = upcall->vector;\n", "", "an upcall vector"),
    "a vcpu_info of who has gone": (
        "(d->is_dying || dsm_elsewhere(dsm, v->vcpu_id)) )\n    {\n        dsm_give",
        "d->is_dying )\n    {\n        dsm_give",
        "a vcpu_info too late",
    ),
    "a vcpu_info of the dead": (
        "(d->is_dying || dsm_elsewhere(dsm, v->vcpu_id)) )\n    {\n        dsm_give",
        "dsm_elsewhere(dsm, v->vcpu_id) )\n    {\n        dsm_give",
        "a vcpu_info too late",
    ),
    "who has gone keeps it": ("        dsm_give_back(v);\n", "", "a vcpu_info too late"),
    "pages with neighbours": ("    if ( info->offset )", "    if ( 0 )", "a vcpu_info at a bad place"),
    "an address that wraps": (
        "    if ( gfn_x(gaddr_to_gfn(addr)) != info->mfn )",
        "    if ( 0 )",
        "a vcpu_info at a bad place",
    ),
    "no second look": ("    if ( call->rc == -EAGAIN ||", "    if (", "a vcpu_info"),
    "short answers are lost": (
        "        if ( rule->back )\n            memcpy((uint8_t *)c->what.arg",
        "        if ( rule->back > 8 )\n            memcpy((uint8_t *)c->what.arg",
        "results with bytes",
    ),
    "more than its answer": (
        "                   rule->back - rule->bytes);\n        spin_unlock",
        "                   sizeof(c->what.arg) - rule->bytes);\n        spin_unlock",
        "results with bytes",
    ),
    "slice 1 answers all": ("reply->arg, c->slice,", "reply->arg, 1,", "ports of somebody else"),
    "an error says which domain it is": (
        "        u->status.dom = DOMID_SELF;\n\n        return rc;",
        "        if ( !rc )\n            u->status.dom = DOMID_SELF;\n\n        return rc;",
        "events here",
    ),
}


@pytest.mark.parametrize("mutant", CALL_MUTANTS)
def test_call_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(CALLS, CALL_MUTANTS[mutant], build_calls)


def build_ports(built: Path, source: Path | None = None, checked: bool = True) -> Path:
    """One version of dsm_port.c, with the rest of it."""
    return build(built, source, checked, PORTS, "dsm_port_test.c")


@cache
def port_program() -> Path:
    return build_ports(Path(_scratch.name) / "dsm_port_test")


@pytest.mark.parametrize("name", names(port_program))
def test_port_case(name: str) -> None:
    assert_holds(port_program(), name)


# As MUTANTS, of dsm_port.c.
PORT_MUTANTS = {
    "slice 0's ports": ("first = dsm->slice * nr;", "first = 0;", "ports that a slice allocates"),
    "ports of the next slice": ("min(*last, first + nr - 1)", "*last", "ports that a slice allocates"),
    "more than it may have": ("min(*last, first + nr - 1)", "first + nr - 1", "ports that a slice allocates"),
    "of slice 0": (
        "        .want = dsm_port_slice(group * DSM_PORTS_AT_ONCE, dsm->nr_slices),\n",
        "",
        "events that leave",
    ),
    "from port 0 on": ("        .gfn = group * DSM_PORTS_AT_ONCE,\n", "", "events that leave"),
    "64 ports": ("ports[n / 64] |= 1UL", "ports[0] |= 1UL", "events that leave"),
    "tells nobody": ("    if ( put )\n        dsm_notify(d);", "    ;", "events that leave"),
    "sends them for ever": ("        memset(owed->ports, 0, sizeof(owed->ports));", "        ;", "events that leave"),
    "forgets what the ring has no room for": (
        "    if ( owed->owing )\n        dsm->stats",
        "    if ( owed->owing && (owed->owing = false, 1) )\n        dsm->stats",
        "events and a full ring",
    ),
    "keeps the last one": ("ports[n / 64] |= 1UL", "ports[n / 64] = 1UL", "events and a full ring"),
    "flush repeats itself": ("        if ( dsm->owed_ports[i].owing )", "        if ( 1 )", "events and a full ring"),
    "events of the dead": ("    put = !dsm->dead;", "    put = true;", "events at the end"),
    "not the first ports": (
        "    for ( i = 0; i < ARRAY_SIZE(dsm->owed",
        "    for ( i = 1; i < ARRAY_SIZE(dsm->owed",
        "events and a full ring",
    ),
    "not the last ports": (
        "i < ARRAY_SIZE(dsm->owed_ports); i++ )",
        "i < ARRAY_SIZE(dsm->owed_ports) - 1; i++ )",
        "events and a full ring",
    ),
    "two slices have all ports": (
        "dsm_port_slice(ports->first, dsm->nr_slices) != dsm->slice",
        "ports->first / 2048 != dsm->slice",
        "events that come",
    ),
    "to one of two slices": (
        "dsm_port_slice(group * DSM_PORTS_AT_ONCE, dsm->nr_slices)",
        "group * DSM_PORTS_AT_ONCE / 2048",
        "events that leave",
    ),
    "any group": ("ports->first % DSM_PORTS_AT_ONCE || ", "", "events that come"),
    "any 64 ports": ("ports->first % DSM_PORTS_AT_ONCE", "ports->first % 64", "events that come"),
    "reserved words": (" || ports->pad )", " )", "events that come"),
    "ports of others": ("!= dsm->slice )\n        return -EXDEV;", "!= dsm->slice )\n        ;", "events that come"),
    "one too few": ("n < DSM_PORTS_AT_ONCE; n++", "n < DSM_PORTS_AT_ONCE - 1; n++", "events that come"),
    "ends at the first that is not bound": (
        "            evtchn_send(d, ports->first + n);",
        "            if ( evtchn_send(d, ports->first + n) )\n                break;",
        "events that come",
    ),
    "all of them": (
        "        if ( ports->ports[n / 64] & (1UL << (n % 64)) )",
        "        if ( ports->ports[n / 64] )",
        "events that come",
    ),
}


@pytest.mark.parametrize("mutant", PORT_MUTANTS)
def test_port_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(PORTS, PORT_MUTANTS[mutant], build_ports)


# As MUTANTS, noticed by cases of dsm_port_test.c.
SHARED_INFO_MUTANTS = {
    "in slice 0": (
        "    if ( !dsm->slice )\n        return -EINVAL;\n\n    spin_lock",
        "    spin_lock",
        "shared_info of a slice",
    ),
    "where it is homed": (
        "    else if ( !is_elsewhere(dsm, gfn) )\n        rc = -EINVAL;\n    else if ( get_gpfn",
        "    else if ( get_gpfn",
        "shared_info of a slice",
    ),
    "twice": (
        "    else if ( get_gpfn_from_mfn(mfn_x(mfn)) != INVALID_M2P_ENTRY )\n        rc = -EEXIST;\n",
        "",
        "shared_info of a slice",
    ),
    "over a page": (
        "    else if ( state == XEN_DSM_STATE_I || state == XEN_DSM_STATE_U ||\n",
        "    else if ( state != 99 || state == XEN_DSM_STATE_U ||\n",
        "shared_info of a slice",
    ),
    "never in a hole": (
        "state == XEN_DSM_STATE_U ||\n              state == XEN_DSM_STATE_HOLE )\n    {\n        /* As a",
        "state == XEN_DSM_STATE_U )\n    {\n        /* As a",
        "shared_info of a slice",
    ),
    "half of the ports": (
        "               sizeof(d->shared_info->native.evtchn_mask));",
        "               sizeof(d->shared_info->native.evtchn_mask) / 2);",
        "shared_info of a slice",
    ),
    "by no number": (
        "            set_gpfn_from_mfn(mfn_x(mfn), gfn);\n            set_away",
        "            set_away",
        "shared_info of a slice",
    ),
    "wakes nobody": (
        "            set_away(dsm, gfn, false);\n            spin_lock(&dsm->lock);\n            wake(d, dsm, gfn);",
        "            set_away(dsm, gfn, false);\n            spin_lock(&dsm->lock);",
        "shared_info of a slice",
    ),
    "after the end": (
        "    if ( dsm->dead )\n        rc = -ESRCH;\n    else if ( !is_elsewhere",
        "    if ( 0 )\n        rc = -ESRCH;\n    else if ( !is_elsewhere",
        "shared_info of a slice",
    ),
    "it stays": (
        "    else if ( is_elsewhere(dsm, gfn) &&\n              mfn_eq",
        "    else if ( 0 &&\n              mfn_eq",
        "shared_info of a slice",
    ),
    "slice 0's own": (
        "    else if ( is_elsewhere(dsm, gfn) &&\n              mfn_eq",
        "    else if ( mfn_eq",
        "shared_info of a slice",
    ),
    "away and here": (
        "            set_gpfn_from_mfn(mfn_x(mfn), gfn);\n            set_away(dsm, gfn, false);\n",
        "            set_gpfn_from_mfn(mfn_x(mfn), gfn);\n",
        "shared_info of a slice",
    ),
    "flushed unheard": ("    put |= dsm_flush_ports(dsm);", "    dsm_flush_ports(dsm);", "events and a full ring"),
    "its number stays": (
        "            set_gpfn_from_mfn(mfn_x(mfn), INVALID_M2P_ENTRY);\n    }\n    else if ( state != XEN_DSM_STATE_HOLE )",
        "            ;\n    }\n    else if ( state != XEN_DSM_STATE_HOLE )",
        "shared_info of a slice",
    ),
}


@pytest.mark.parametrize("mutant", SHARED_INFO_MUTANTS)
def test_shared_info_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(SOURCE, SHARED_INFO_MUTANTS[mutant], partial(build, cases="dsm_port_test.c"))


def build_times(built: Path, source: Path | None = None, checked: bool = True) -> Path:
    """One version of dsm_time.c, with the rest of it."""
    return build(built, source, checked, TIMES, "dsm_time_test.c")


@cache
def time_program() -> Path:
    return build_times(Path(_scratch.name) / "dsm_time_test")


@pytest.mark.parametrize("name", names(time_program))
def test_time_case(name: str) -> None:
    assert_holds(time_program(), name)


# As MUTANTS, of dsm_time.c.
TIME_MUTANTS = {
    "time that is emulated": ("    return !d->arch.vtsc &&\n", "    return\n", "times that are refused"),
    "time that is scaled": (
        "            d->arch.hvm.tsc_scaling_ratio == hvm_default_tsc_scaling_ratio);",
        "            true);",
        "times that are refused",
    ),
    "always its own": (
        "    if ( !line->mul )\n        return false;\n",
        "",
        "what a guest is told",
    ),
    "a time that is not stable": (
        "        .flags = XEN_PVCLOCK_TSC_STABLE_BIT,\n",
        "",
        "what a guest is told",
    ),
    "no shift": ("        .tsc_shift = line->shift,\n", "", "what a guest is told"),
    "of now": ("        .ns = now.system_time,\n", "", "what a guest is told"),
    "timers by the host": (
        "    if ( !line->mul )\n        return guest;",
        "    if ( 1 )\n        return guest;",
        "timers",
    ),
    "timers before there is a line": ("    if ( !line->mul )\n        return guest;\n", "", "timers"),
    "timers by the host's TSC": (" + d->vcpu[0]->arch.hvm.cache_tsc_offset;", ";", "timers"),
    "what is left, from zero on": ("    return NOW() + left", "    return left", "timers"),
    "timers of a quick clock": ("left * line->slow", "left", "a slow clock"),
    "for ever and ever": ("    left = max(min(left, LEFT_MAX), -LEFT_MAX);\n", "", "a slow clock"),
    "infinitely slow": ("time->slow > XEN_DSM_MAX_SLOW || ", "", "times that are refused"),
    "as slow as may be": ("time->slow > XEN_DSM_MAX_SLOW", "time->slow >= XEN_DSM_MAX_SLOW", "times that are refused"),
    "a slow line is said to be quick": ("d->arch.dsm->time.slow ?: 1", "1", "what a guest is told"),
    "timers without a shift": (".shift = line->shift, .mul_frac", ".shift = 0, .mul_frac", "timers"),
    "infinitely quick": ("!time->slow || ", "", "times that are refused"),
    "a line from zero on": ("(line->ns +", "(0 +", "timers"),
    "emulated": (
        "int dsm_set_time(struct domain *d, const struct xen_dsm_time *time)\n{\n    if ( !dsm_plain_tsc(d) )",
        "int dsm_set_time(struct domain *d, const struct xen_dsm_time *time)\n{\n    if ( 0 )",
        "times that are refused",
    ),
    "says what is emulated": (
        "    struct vcpu_time_info now;\n\n    if ( !dsm_plain_tsc(d) )",
        "    struct vcpu_time_info now;\n\n    if ( 0 )",
        "times that are refused",
    ),
    "stands still": ("!time->mul || ", "", "times that are refused"),
    "far to the right": ("time->shift < -31 || ", "", "times that are refused"),
    "far to the left": ("time->shift > 31 ||", "0 ||", "times that are refused"),
    "reserved bytes": (" time->pad[0] ||\n", "\n", "times that are refused"),
    "changes while it runs": (
        "    if ( d->creation_finished )\n        return -EBUSY;\n",
        "",
        "times that are refused",
    ),
    "a jump of what is emulated": (
        "    s_time_t by;\n\n    if ( !dsm_plain_tsc(d) )",
        "    s_time_t by;\n\n    if ( 0 )",
        "jumps that are refused",
    ),
    "a jump of the host's time": ("if ( !line->mul || !jump->ticks", "if ( !jump->ticks", "jumps that are refused"),
    "a jump to nowhere": ("!jump->ticks || ", "", "jumps that are refused"),
    "a jump of any length": (" || jump->ticks > cpu_khz )", " )", "jumps that are refused"),
    "a jump by its low half": ("jump->ticks > cpu_khz", "(uint32_t)jump->ticks > cpu_khz", "jumps that are refused"),
    "a jump of all but the first, while it runs": (
        "    domain_lock(d);\n    for_each_vcpu ( d, v )\n",
        "    domain_lock(d);\n    for_each_vcpu ( d, v ) if ( v->vcpu_id || !d->creation_finished )\n",
        "jumps that are refused",
    ),
    "a jump of less than may be": ("jump->ticks > cpu_khz", "jump->ticks >= cpu_khz", "a jump"),
    "a jump while they run": ("    domain_pause(d);\n", "", "a jump"),
    "a jump while one is started": ("    domain_lock(d);\n", "", "a jump"),
    "the lock while they are waited for": (
        "    domain_pause(d);\n    domain_lock(d);\n",
        "    domain_lock(d);\n    domain_pause(d);\n",
        "a jump",
    ),
    "a jump, and no more": ("    domain_unlock(d);\n    domain_unpause(d);\n", "    domain_unlock(d);\n", "a jump"),
    "locked for ever": ("    domain_unlock(d);\n    domain_unpause(d);\n", "    domain_unpause(d);\n", "a jump"),
    "a jump of all to the same": (
        "        v->arch.hvm.cache_tsc_offset += jump->ticks;",
        "        v->arch.hvm.cache_tsc_offset =\n            d->vcpu[0]->arch.hvm.cache_tsc_offset + jump->ticks;",
        "a jump",
    ),
    "a jump that no CPU knows of": (
        "        hvm_set_tsc_offset(v, v->arch.hvm.cache_tsc_offset, 0);\n",
        "",
        "a jump",
    ),
    "a timer by the old time": ("        bring_forward(&v->singleshot_timer, by);\n", "", "timers after a jump"),
    "a poll by the old time": ("        bring_forward(&v->poll_timer, by);\n", "", "timers after a jump"),
    "a deadline by the old time": (
        "        if ( deadline )\n",
        "        if ( !deadline )\n",
        "timers after a jump",
    ),
    "a deadline of nobody": ("        if ( deadline )\n", "", "timers after a jump"),
    "a deadline before the jump": (
        "        v->arch.hvm.cache_tsc_offset += jump->ticks;",
        "        if ( deadline )\n            vlapic_tdt_msr_set(vcpu_vlapic(v), deadline);\n        deadline = 0;\n"
        "        v->arch.hvm.cache_tsc_offset += jump->ticks;",
        "timers after a jump",
    ),
    "timers of nobody": ("    if ( timer_is_active(timer) )\n", "", "timers after a jump"),
    "timers later": ("timer->expires - by", "timer->expires + by", "timers after a jump"),
    "a jump of ghosts only": (
        "        uint64_t deadline = vlapic_tdt_msr_get(vcpu_vlapic(v));\n",
        "        uint64_t deadline = vlapic_tdt_msr_get(vcpu_vlapic(v));\n\n"
        "        if ( !d->arch.dsm->vcpu[v->vcpu_id].ghost )\n            continue;\n",
        "a jump",
    ),
    "a jump of those who run here": (
        "        uint64_t deadline = vlapic_tdt_msr_get(vcpu_vlapic(v));\n",
        "        uint64_t deadline = vlapic_tdt_msr_get(vcpu_vlapic(v));\n\n"
        "        if ( d->arch.dsm->vcpu[v->vcpu_id].ghost )\n            continue;\n",
        "a jump",
    ),
    "a jump of what is scaled": (
        "    s_time_t by;\n\n    if ( !dsm_plain_tsc(d) )",
        "    s_time_t by;\n\n    if ( d->arch.vtsc )",
        "jumps that are refused",
    ),
    "who is refused pauses it": (
        "    s_time_t by;\n\n    if ( !dsm_plain_tsc(d) )",
        "    s_time_t by;\n\n    domain_pause(d);\n    if ( !dsm_plain_tsc(d) )",
        "jumps that are refused",
    ),
    "a jump of few ns": ("    s_time_t by;\n\n", "    int16_t by;\n\n", "timers after a jump"),
    "a jump of a quick clock": ("jump->ticks) * line->slow", "jump->ticks)", "timers after a jump"),
}


@pytest.mark.parametrize("mutant", TIME_MUTANTS)
def test_time_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(TIMES, TIME_MUTANTS[mutant], build_times)


def build_clear(built: Path, source: Path, checked: bool = True) -> Path:
    """One version of dsm_clear.c."""
    gcc("-o", built, source, compiled(HERE / "dsm_clear_test.c", checked), checked=checked)
    return built


@cache
def clear_program() -> Path:
    return build_clear(Path(_scratch.name) / "dsm_clear_test", CLEARS)


@pytest.mark.parametrize("name", names(clear_program))
def test_clear_case(name: str) -> None:
    assert_holds(clear_program(), name)


# As MUTANTS, of dsm_clear.c.
CLEAR_MUTANTS = {
    "any prefix": ("    if ( insn[0] != 0xf3 )\n        return 0;\n", "", "another prefix"),
    "stores bytes": ("        return 4;", "        return 1;", "double words"),
    "quads are double": ("0xab ? 8 : 0", "0xab ? 4 : 0", "quad words"),
    "any REX": ("insn[1] == 0x48 && ", "", "another REX"),
    "any instruction with REX.W": (" && insn[2] == 0xab", "", "another one with REX.W"),
    "a read": ("!npfec.write_access || ", "", "a read"),
    "a fetch": ("npfec.insn_fetch ||\n", "0 ||\n", "a fetch"),
    "tables of the guest": ("npfec.kind != npfec_kind_with_gla || ", "", "a table of the guest"),
    "any offset of the frame": (
        "((gpa | regs->rdi) & ~PAGE_MASK)",
        "(regs->rdi & ~PAGE_MASK)",
        "another place of the frame",
    ),
    "any address": ("((gpa | regs->rdi) & ~PAGE_MASK)", "(gpa & ~PAGE_MASK)", "from another place"),
    "any value": ("regs->rax || ", "", "not zeros"),
    "32 bits of it": ("regs->rax || ", "(uint32_t)regs->rax || ", "not zeros, above"),
    "any direction": ("(regs->rflags & X86_EFLAGS_DF) || ", "", "downwards"),
    "programs": ("hvm_get_cpl(curr) ||", "0 ||", "a program"),
    "any mode": ("hvm_guest_x86_mode(curr) != X86_MODE_64BIT", "0", "32 bits"),
    "an interrupt's frame": (" ||\n         hvm_event_pending(curr) )", " )", "the stack of an interrupt"),
    "whatever the code is": ("!= HVMTRANS_okay", "== HVMTRANS_bad_linear_to_gfn", "code that is away"),
    "one too few": ("PAGE_SIZE / width;", "PAGE_SIZE / width - 1;", "a byte too few"),
    "one too many": ("regs->rcx >= ", "regs->rcx > ", "bytes"),
    "any number": ("width && regs->rcx >= PAGE_SIZE / width;", "width;", "none"),
}


@pytest.mark.parametrize("mutant", CLEAR_MUTANTS)
def test_clear_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(CLEARS, CLEAR_MUTANTS[mutant], build_clear)


# What is replaced, by what, and a case that has to fail then.
MUTANTS = {
    "a hint for any page": (
        "hint->gfn == gfn_x(gfn) && hint->want == XEN_DSM_WANT_M",
        "hint->want == XEN_DSM_WANT_M",
        "a page that is overwritten",
    ),
    "reads overwrite": (
        "hint->gfn == gfn_x(gfn) && hint->want == XEN_DSM_WANT_M",
        "hint->gfn == gfn_x(gfn)",
        "a page that is overwritten",
    ),
    "waits elsewhere": (
        "dsm->vcpu[i].waiting && dsm->vcpu[i].gfn == gfn",
        "dsm->vcpu[i].waiting",
        "a page that is overwritten",
    ),
    "has waited": (
        "dsm->vcpu[i].waiting && dsm->vcpu[i].gfn == gfn",
        "dsm->vcpu[i].gfn == gfn",
        "a page that is overwritten",
    ),
    "the last who waits": (
        "want = max(want, dsm->vcpu[i].want + 0U);",
        "want = dsm->vcpu[i].want;",
        "a page that is overwritten",
    ),
    "reserved words": (
        "    if ( op->flags || (op->wanted && op->op != XEN_DSM_HOLE) )",
        "    if ( op->flags )",
        "a page that is overwritten",
    ),
    "S is writable": ("        if ( q & P2M_UNSHARE )\n            break;\n", "", "what a look-up reports"),
    "I is a hole": (
        "        if ( !is_away(dsm, gfn) )\n            return XEN_DSM_STATE_HOLE;",
        "        if ( 1 )\n            return XEN_DSM_STATE_HOLE;",
        "what a look-up reports",
    ),
    "a paged superpage": ("        *page_order = PAGE_ORDER_4K;\n", "        ;\n", "what a look-up reports"),
    "no fixing of order": (
        "    if ( page_order )\n        *page_order",
        "    if ( 0 )\n        *page_order",
        "what a look-up reports",
    ),
    "references not looked at": ("(PGC_allocated | 1)\n#define", "(pg->count_info)\n#define", "a page in use"),
    "type not looked at": ("!(pg->u.inuse.type_info & TYPE_BUSY)", "true", "a page in use"),
    "special frames taken": ("    if ( is_special_page(pg) || ", "    if ( ", "a page in use"),
    "no flush before the copy": (
        "    p2m_tlb_flush_sync(p2m);\n\n    return rc;",
        "    return rc;",
        "bytes and frames",
    ),
    "reference kept": (
        "    put_page(mfn_to_page(mfn));\n    if ( inval )\n    {\n        pool_push",
        "    if ( inval )\n    {\n        pool_push",
        "bytes and frames",
    ),
    "M2P not set": (
        "    set_gpfn_from_mfn(mfn_x(mfn), op->gfn);\n    rc = change_entry",
        "    rc = change_entry",
        "bytes and frames",
    ),
    "frame lost when a copy in fails": (" fail:\n    pool_push(dsm, pg);\n", " fail:\n", "faults and no memory"),
    "page lost when a copy out fails": (
        "        restore_entry(d, p2m, op->gfn, mfn, was);\n        gfn_unlock",
        "        gfn_unlock",
        "faults and no memory",
    ),
    "M2P lost when a copy out fails": (
        "        if ( inval )\n            set_gpfn_from_mfn(mfn_x(mfn), op->gfn);\n",
        "",
        "faults and no memory",
    ),
    "INSTALL wakes nobody": (
        "        wake(d, dsm, op->gfn);\n        spin_unlock(&dsm->lock);\n    }\n    else\n        set_gpfn",
        "        spin_unlock(&dsm->lock);\n    }\n    else\n        set_gpfn",
        "a miss, and who is woken",
    ),
    "wakes the first only": (
        "        wake_vcpu(d, dsm, i);\n",
        "        wake_vcpu(d, dsm, i);\n        break;\n",
        "a miss, and who is woken",
    ),
    "a wait that is no wake-up": (
        "    dsm_wake(d, vcpu);\n",
        "    dsm_end_wait(d, vcpu);\n",
        "the times before and behind a wait",
    ),
    "faults that are not counted": ("        dsm->stats.traps++;\n", "", "the times before and behind a wait"),
    "what a fault took": (
        "        dsm->stats.trap_ns += max_t(s_time_t, w->since - fault, 0);\n",
        "",
        "the times before and behind a wait",
    ),
    "a fault of what can't be done elsewhere": (
        "    miss(current->domain, gfn_x(gfn), want, false, true, 0);",
        "    miss(current->domain, gfn_x(gfn), want, false, true, hint->when);",
        "the time before another wait",
    ),
    "a fault of what is freed": (
        "miss(d, i, XEN_DSM_WANT_M_NODATA, true, false, 0)",
        "miss(d, i, XEN_DSM_WANT_M_NODATA, true, false, 1)",
        "the time before another wait",
    ),
    "a fault of an earlier one": (
        "    this_cpu(dsm_want) = (struct dsm_want){ gfn, XEN_DSM_WANT_M };",
        "    this_cpu(dsm_want).gfn = gfn; this_cpu(dsm_want).want = XEN_DSM_WANT_M;",
        "the time before another wait",
    ),
    "the last fault": (
        "        dsm->stats.trap_ns += max_t(",
        "        dsm->stats.trap_ns = max_t(",
        "the times before and behind a wait",
    ),
    "faults of whoever misses a page": (
        "want && hint->fault ? hint->when : 0;",
        "want ? hint->when : 0;",
        "the times before and behind a wait",
    ),
    "a fault of any page": (
        "    if ( hint->gfn == gfn_x(gfn) )\n    {\n        hint->uncached",
        "    if ( 1 )\n    {\n        hint->uncached",
        "the time before another wait",
    ),
    "a fault that is over": (
        "want && hint->fault ? hint->when : 0;",
        "hint->fault ? hint->when : 0;",
        "the time before another wait",
    ),
    "a fault that ends before it begins": (
        "max_t(s_time_t, w->since - fault, 0)",
        "(w->since - fault)",
        "clocks that differ",
    ),
    "wakes who waits for another": ("!w->waiting || w->gfn != gfn", "!w->waiting", "a second miss of one vCPU"),
    "state not looked at again": (
        "    missing = state == XEN_DSM_STATE_I ||",
        "    missing = true || state == XEN_DSM_STATE_I ||",
        "the page came meanwhile",
    ),
    "S is enough for a writer": (
        "(state == XEN_DSM_STATE_S && want != XEN_DSM_WANT_S)",
        "false",
        "the page came meanwhile",
    ),
    "waits twice": ("    if ( w->waiting )\n        return;\n", "", "a second miss of one vCPU"),
    "misses lost in a full ring": (
        "dsm->vcpu[i].waiting && (all || dsm->vcpu[i].unsent)",
        "0",
        "a full ring, and one that lies",
    ),
    "flush repeats itself": (
        ".waiting && (all || dsm->vcpu[i].unsent)",
        ".waiting",
        "a full ring, and one that lies",
    ),
    "what was read is lost": ("(all || dsm->vcpu[i].unsent)", "(dsm->vcpu[i].unsent)", "another daemon"),
    "tells who does not wait": ("dsm->vcpu[i].waiting && (all ||", "(all ||", "another daemon"),
    "flags that nobody knows": ("(flush->flags & ~XEN_DSM_FLUSH_ALL) ||", "", "another daemon"),
    "foreign misses that were read": (
        "    if ( all )\n        dsm_foreign_again(dsm);\n",
        "    if ( 0 )\n        dsm_foreign_again(dsm);\n",
        "another daemon",
    ),
    "a port that nobody knows": ("        enable->port = d->arch.dsm->port;\n", "", "another daemon"),
    "commands for a device model": (
        "    rc = xsm_dsm_op(XSM_PRIV, d);\n    if ( rc )\n        goto out;",
        "    rc = xsm_dsm_op(XSM_DM_PRIV, d);\n    if ( rc )\n        goto out;",
        "a device model",
    ),
    "a ring for a device model": (
        "    rc = xsm_dsm_op(XSM_PRIV, d);\n    if ( rc )\n        return rc;",
        "    rc = xsm_dsm_op(XSM_DM_PRIV, d);\n    if ( rc )\n        return rc;",
        "a device model",
    ),
    "one page more than the ring has": (
        "frame + nr_frames <= dsm->ring_frames )",
        "frame + nr_frames <= dsm->ring_frames + 1 )",
        "the ring's pages",
    ),
    "a monitor": ("vm_event_check_ring(d->vm_event_monitor) ||", "", "refusals"),
    "restricted by default": (
        " ||\n         p2m_get_hostp2m(d)->default_access != p2m_access_rwx )",
        " )",
        "refusals",
    ),
    "firmware": ("d->arch.emulation_flags & ~X86_EMU_LAPIC", "0", "refusals"),
    "the control domain's pause": (
        "        domain_pause_nosync(d);\n",
        "        domain_pause_by_systemcontroller_nosync(d);\n",
        "keepalive",
    ),
    "unpaused though it runs": (
        "    if ( unpause )\n        domain_unpause(d);",
        "    if ( unpause || 1 )\n        domain_unpause(d);",
        "keepalive",
    ),
    "never unpaused": ("    unpause = dsm->paused;\n", "    unpause = false;\n", "keepalive"),
    "no gate for INVAL": (
        "    if ( !gate_close(dsm) )\n        return -EBUSY;\n    gfn_lock",
        "    gfn_lock",
        "the gate",
    ),
    "a gate that stays closed": (
        "    gate_open(dsm);\n\n    return false;",
        "    return false;",
        "a hypercall that takes long",
    ),
    "enabled when dying": ("    if ( d->is_dying )\n", "    if ( 0 )\n", "killed during ENABLE"),
    "frames not cleared": (
        "    clear_domain_page(page_to_mfn(pg));\n    put_page_alloc",
        "    put_page_alloc",
        "the host gets cleared frames",
    ),
    "away after the entry": (
        "    if ( inval )\n        set_away(dsm, op->gfn, true);\n"
        "    rc = change_entry(p2m, op->gfn, inval ? INVALID_MFN : mfn,\n"
        "                      inval ? p2m_invalid : p2m_dsm_shared);\n",
        "    rc = change_entry(p2m, op->gfn, inval ? INVALID_MFN : mfn,\n"
        "                      inval ? p2m_invalid : p2m_dsm_shared);\n"
        "    if ( inval )\n        set_away(dsm, op->gfn, true);\n",
        "a frame known by its number",
    ),
    "ranges that overlap": ("range.first < end ||", "range.first + range.nr < end ||", "ranges that overlap"),
    "not counted after the flush": (
        "    if ( mfn_to_page(mfn)->count_info != COUNT_TAKEN )",
        "    if ( 0 )",
        "a frame known by its number",
    ),
    "gate never closed": ("if ( likely(!ACCESS_ONCE(dsm->closed)) )", "if ( 1 )", "the gate"),
    "left twice": ("    if ( !dsm->vcpu[v->vcpu_id].in_hcall )\n        return;\n", "", "the gate"),
    "uncovered hypercalls wait": (
        "        spin_unlock(&dsm->lock);\n        return;\n    }\n\n    /* Not asked",
        "        spin_unlock(&dsm->lock);\n    }\n\n    /* Not asked",
        "a hypercall that is not covered",
    ),
    "a guest's program stops its guest": (
        "        dsm->stats.uncovered++;\n        spin_unlock(&dsm->lock);\n",
        "        dsm->stats.uncovered++;\n        spin_unlock(&dsm->lock);\n        domain_crash(d);\n",
        "a hypercall that is not covered",
    ),
    "hypercalls that may wait fail": (
        "dsm->vcpu[curr->vcpu_id].in_hcall &&\n         !dsm->vcpu[curr->vcpu_id].hcall_retries )",
        "dsm->vcpu[curr->vcpu_id].in_hcall )",
        "a hypercall that is not covered",
    ),
    "a hint that is old": ("    hint->want = 0;\n\n", "", "a hypercall that is not covered"),
    "S can be freed": (
        " && state != XEN_DSM_STATE_S )\n            continue;",
        " )\n            continue;",
        "a guest that frees",
    ),
    "mapped over I": (
        "        case XEN_DSM_STATE_I:\n        case XEN_DSM_STATE_U:\n",
        "        case XEN_DSM_STATE_U:\n",
        "what may be mapped and removed",
    ),
    "bits set in S": (
        "    if ( t != p2m_dsm_shared || d->arch.dsm->dead )\n        return true;\n",
        "    return true;\n",
        "bits of guest tables",
    ),
    "a grant writes to S": ("    if ( write && !may_write(d, mfn) )", "    if ( 0 )", "a grant that is mapped twice"),
    "who reads by a grant waits": (
        "    if ( write && !may_write(d, mfn) )",
        "    if ( !may_write(d, mfn) )",
        "a grant that is mapped twice",
    ),
    "a reference for nobody": (
        "        put_page(pg);\n        return -EAGAIN;",
        "        return -EAGAIN;",
        "a grant that is mapped twice",
    ),
    "asks for what is dead": (" || d->arch.dsm->dead )\n", " )\n", "a grant that is mapped twice"),
    "counts who waits at the gate": (
        "        if ( unlikely(ACCESS_ONCE(dsm->closed)) )",
        "        if ( 0 )",
        "the gate",
    ),
    "hypercalls are the guest's own misses": (
        "curr->domain == d && dsm->vcpu[curr->vcpu_id].in_hcall, uncached,\n",
        "false, uncached,\n",
        "a hypercall that is not covered",
    ),
    "says nothing of hypercalls": (
        "(w->by_xen ? XEN_DSM_MISS_BY_XEN : 0)",
        "0",
        "a hypercall that is not covered",
    ),
    "may miss for ever": (
        "    dsm->vcpu[v->vcpu_id].hcall_retries = false;\n    smp_mb",
        "    smp_mb",
        "a hypercall that is not covered",
    ),
    "waits for what came": (
        "        if ( !miss(d, i, XEN_DSM_WANT_M_NODATA, true, false, 0) )\n            continue;",
        "        miss(d, i, XEN_DSM_WANT_M_NODATA, true, false, 0);",
        "a guest that frees",
    ),
    "notifies for nothing": (
        "    if ( missing && is_news )\n        dsm_notify(d);\n\n    return missing;",
        "    if ( is_news )\n        dsm_notify(d);\n\n    return missing;",
        "the page came meanwhile",
    ),
    "notifies though it is no news": (
        "    if ( missing && is_news )\n",
        "    if ( missing && (is_news || true) )\n",
        "foreign misses that are not read",
    ),
    "S comes back as M": (
        "    was = state == XEN_DSM_STATE_S ? p2m_dsm_shared : p2m_ram_rw;",
        "    was = p2m_ram_rw;",
        "what gave up is as it was",
    ),
    "what gave up is away": (
        "        return;\n    }\n    set_away(dsm, gfn, false);\n",
        "        return;\n    }\n",
        "what gave up is as it was",
    ),
    "what could not leave is away": (
        "        if ( inval )\n            set_away(dsm, op->gfn, false);\n        put_page",
        "        put_page",
        "what gave up is as it was",
    ),
    "what has come is away": (
        "    if ( !rc )\n    {\n        set_away(dsm, op->gfn, false);\n        spin_lock",
        "    if ( !rc )\n    {\n        spin_lock",
        "what gave up is as it was",
    ),
    "nobody hears that it gave up": (
        "    /* Somebody may have missed it meanwhile. */\n    spin_lock(&dsm->lock);\n    wake(d, dsm, gfn);\n",
        "    spin_lock(&dsm->lock);\n",
        "what gave up is as it was",
    ),
    "M2P of what has left": (
        "    if ( inval )\n        set_gpfn_from_mfn(mfn_x(mfn), INVALID_M2P_ENTRY);\n\n unlock",
        "\n unlock",
        "what gave up is as it was",
    ),
    "M2P of what did not come": (
        "    else\n        set_gpfn_from_mfn(mfn_x(mfn), INVALID_M2P_ENTRY);\n    gfn_unlock",
        "    gfn_unlock",
        "what gave up is as it was",
    ),
    "a guest without its page goes on": ("        domain_crash(d);\n", "", "an entry that cannot be put back"),
    "frames that are none": (
        "    if ( !mfn_valid(mfn) )\n        return -EPERM;\n",
        "",
        "each operation from each state",
    ),
    "what is not freed comes": (
        "    if ( homes_of(dsm, gfn_x(gfn), end) == HOMES_MIXED )\n        return -EBUSY;\n",
        "",
        "a guest's memory on another slice",
    ),
    "ranges of nothing": ("        if ( !range.nr || ", "        if ( ", "ranges that make no sense"),
    "one frame more": (
        "gfn - dsm->ranges[i].first < dsm->ranges[i].nr )",
        "gfn - dsm->ranges[i].first <= dsm->ranges[i].nr )",
        "each operation from each state",
    ),
    "reads what is written": (
        "    if ( state != XEN_DSM_STATE_S )\n        return state",
        "    if ( state == XEN_DSM_STATE_I )\n        return state",
        "each operation from each state",
    ),
    "upgrades what is not here": (
        "    default:\n        rc = -EINVAL;\n        break;\n    }\n    if ( !rc )",
        "    default:\n        rc = 0;\n        break;\n    }\n    if ( !rc )",
        "each operation from each state",
    ),
    "installs without bytes": (
        "    if ( op->op != XEN_DSM_ZERO_M && guest_handle_is_null(op->buf) )\n        return -EINVAL;\n",
        "",
        "each operation from each state",
    ),
    "pages leave without room to note it": (
        "    if ( inval && may_leave(dsm, op->gfn) )\n        return -ENOMEM;\n",
        "",
        "bits as they are used",
    ),
    "pages are away without room to note it": (
        "    if ( may_leave(dsm, gfn) || may_be_elsewhere(dsm, gfn) )\n        return -ENOMEM;\n",
        "    may_leave(dsm, gfn);\n    may_be_elsewhere(dsm, gfn);\n",
        "bits as they are used",
    ),
    "holes before what is away": (
        "        from = max(gfn, r->first) - r->first;",
        "        from = 0;",
        "what may be mapped and removed",
    ),
    "homes before what is homed elsewhere": (
        "                                  max(gfn, r->first) - r->first);",
        "                                  0);",
        "frames become homed elsewhere",
    ),
    "the homes of S": (
        "    else if ( state != XEN_DSM_STATE_HOLE )\n        rc = -EBUSY;",
        "    else if ( state == XEN_DSM_STATE_M )\n        rc = -EBUSY;",
        "frames for pages of other slices",
    ),
    "more buckets than there are": (
        "    return min(4 * power + quarter, XEN_DSM_STATS_BUCKETS - 1U);",
        "    return 4 * power + quarter;",
        "how long it took",
    ),
    "ranges without end": (
        "range.nr > XEN_DSM_MAX_FRAMES - total ||",
        "0 ||",
        "ranges that make no sense",
    ),
    "each range the largest": ("        total += range.nr;\n", "", "ranges that make no sense"),
    "ranges beyond the guest": (
        "             !gfn_valid(d, _gfn(range.first + range.nr - 1)) )",
        "             0 )",
        "ranges that make no sense",
    ),
    "17 ranges": (" || enable->nr_ranges > XEN_DSM_MAX_RANGES )", " )", "ranges that make no sense"),
    "a ring with somebody's bytes": (
        "        clear_domain_page(page_to_mfn(pg + i));\n        if ( !get_page_and",
        "        if ( !get_page_and",
        "the ring's pages",
    ),
    "a ring that is too small": (
        "2 * (d->max_vcpus + DSM_FOREIGN)",
        "(d->max_vcpus + DSM_FOREIGN) / 2",
        "the ring's pages",
    ),
    "a timer of the dead": ("    kill_timer(&dsm->timer);\n    free_ring(dsm);", "    free_ring(dsm);", "the end"),
    "pauses the dead": ("if ( !dsm->dead && !dsm->paused &&", "if ( !dsm->paused &&", "the end"),
    "the dead keep their pages": (
        "    if ( !p2m_is_hostp2m(p2m) || dsm->dead )\n        return 0;\n\n    ASSERT",
        "    if ( !p2m_is_hostp2m(p2m) )\n        return 0;\n\n    ASSERT",
        "the end",
    ),
    "operations of the dead": ("        if ( dsm->dead )\n        {", "        if ( 0 )\n        {", "the end"),
    "paused twice": ("if ( !dsm->dead && !dsm->paused &&", "if ( !dsm->dead &&", "keepalive"),
    "pauses who lives": (" &&\n         NOW() >= dsm->deadline )", " )", "keepalive"),
    "pauses what nobody watches": ("!dsm->paused && dsm->timeout_ms &&", "!dsm->paused &&", "keepalive"),
    "a home's frame for others": (
        "pg = here || dsm->pooled > dsm->reserved ? pool_pop(dsm) : NULL;",
        "pg = pool_pop(dsm);",
        "frames for pages of other slices",
    ),
    "nothing is reserved": (
        "        dsm->reserved += !is_elsewhere(dsm, op->gfn);\n",
        "",
        "frames for pages of other slices",
    ),
    "DROP takes a frame of others": (
        "    if ( !is_elsewhere(dsm, gfn) )\n    {\n        dsm->reserved--;",
        "    if ( 1 )\n    {\n        dsm->reserved--;",
        "frames for pages of other slices",
    ),
    "POOL_DEL takes what is reserved": (
        "    if ( dsm->pooled > dsm->reserved )\n        pg",
        "    if ( 1 )\n        pg",
        "frames for pages of other slices",
    ),
    "populates before AWAY": (
        "== XEN_DSM_STATE_HOLE )\n                rc = -EBUSY;",
        "== XEN_DSM_STATE_HOLE )\n                rc = 1;",
        "a guest's memory on another slice",
    ),
    "maps where another slice is home": (
        "!= HOMES_HERE )\n        return -EBUSY;",
        "!= HOMES_HERE )\n        return 0;",
        "a guest's memory on another slice",
    ),
    "half of it is all of it": ("elsewhere == end - gfn ?", "1 ?", "a guest's memory on another slice"),
    "every domain may free it": (
        "return d == current->domain && !dsm->dead &&",
        "return !dsm->dead &&",
        "a guest's memory on another slice",
    ),
    "AWAY of memory": (
        "== XEN_DSM_STATE_HOLE )\n    {\n        set_elsewhere",
        "!= XEN_DSM_STATE_I )\n    {\n        set_elsewhere",
        "frames become homed elsewhere",
    ),
    "homes are kept": (
        "    if ( !rc )\n        set_elsewhere(dsm, gfn, false);\n",
        "",
        "a guest's memory on another slice",
    ),
    "never lets others run": (
        "        if ( *done < nr && hypercall_preempt_check() )\n            return 1;\n",
        "",
        "commands on many frames",
    ),
    "begins anywhere": ("    if ( *done > nr )\n        return -EINVAL;\n", "", "commands on many frames"),
    "done not checked": (" || page->done > page->nr", "", "continuations and bad commands"),
    "merges what is homed elsewhere": (
        "    if ( homes_of(d->arch.dsm, first, first + MERGE_FRAMES) != HOMES_HERE )\n        return -EXDEV;\n",
        "",
        "no superpage",
    ),
    "merges what is not all here": (
        "        default:\n            return -ENODATA;\n        }\n        if ( order )",
        "        default:\n            break;\n        }\n        if ( order )",
        "no superpage",
    ),
    "merges a superpage": (
        "        if ( order )\n            return -EEXIST;\n",
        "",
        "a superpage",
    ),
    "merges what is in use": (
        "        if ( rc )\n        {\n            put_parts(parts, i);\n            return rc;\n        }\n",
        "",
        "no superpage",
    ),
    "keeps references to the parts": (
        "            put_parts(parts, i);\n",
        "",
        "no superpage",
    ),
    "does not look at references again": (
        "        if ( mfn_to_page(parts[i])->count_info != COUNT_TAKEN )\n        {\n            restore_parts",
        "        if ( 0 )\n        {\n            restore_parts",
        "no superpage",
    ),
    "the parts are not put back": (
        "            restore_parts(d, p2m, first, parts);\n            rc = -EBUSY;",
        "            rc = -EBUSY;",
        "no superpage",
    ),
    "a dying domain keeps the page": (
        "        /* It is dying, with all its memory. */\n        restore_parts(d, p2m, first, parts);\n",
        "",
        "no superpage",
    ),
    "the page counts twice": (
        "    if ( assign_pages(pg, MERGE_FRAMES, d, MEMF_no_refcount) )",
        "    if ( assign_pages(pg, MERGE_FRAMES, d, 0) )",
        "a superpage",
    ),
    "merges without bytes": (
        "        copy_domain_page(mfn_add(whole, i), parts[i]);\n",
        "",
        "a superpage",
    ),
    "merges without M2P": (
        "        set_gpfn_from_mfn(mfn_x(whole) + i, first + i);\n",
        "",
        "a superpage",
    ),
    "the parts keep their M2P": (
        "        set_gpfn_from_mfn(mfn_x(parts[i]), INVALID_M2P_ENTRY);\n",
        "",
        "a superpage",
    ),
    "merges before the flush": (
        "                       p2m->default_access);\n    p2m_tlb_flush_sync(p2m);\n    if ( rc )\n        goto fail;",
        "                       p2m->default_access);\n    if ( rc )\n        goto fail;",
        "a superpage",
    ),
    "a failure of the p2m is none": (
        "    p2m_tlb_flush_sync(p2m);\n    if ( rc )\n        goto fail;\n",
        "    p2m_tlb_flush_sync(p2m);\n    rc = 0;\n",
        "no superpage",
    ),
    "the domain has fewer pages": (
        "        if ( domain_adjust_tot_pages(d, 1) == 1 )\n            ASSERT_UNREACHABLE();\n",
        "",
        "a superpage",
    ),
    "the domain has 2 MiB more for a while": (
        "        if ( domain_adjust_tot_pages(d, 1) == 1 )",
        "        if ( domain_adjust_tot_pages(d, i ? 0 : MERGE_FRAMES) == 1 )",
        "a superpage",
    ),
    "a domain that dies is an argument that makes no sense": (
        "        rc = -ESRCH;\n        goto fail;",
        "        rc = -EINVAL;\n        goto fail;",
        "no superpage",
    ),
    "merges what has changed since it was looked at": (
        "    rc = look_at_parts(d, first, parts);\n    if ( rc )\n        return rc;\n",
        "    rc = 0;\n",
        "no superpage",
    ),
    "merges what has died since it was looked at": (
        "    domain_pause(d);\n    spin_lock(&dsm->ops_lock);\n    if ( !dsm->dead )",
        "    domain_pause(d);\n    spin_lock(&dsm->ops_lock);\n    if ( 1 )",
        "no superpage",
    ),
    "merges where the first is homed here": (
        "    if ( homes_of(d->arch.dsm, first, first + MERGE_FRAMES) != HOMES_HERE )",
        "    if ( homes_of(d->arch.dsm, first, first + 1) != HOMES_HERE )",
        "no superpage",
    ),
    "merges what is homed on two slices": (
        "    if ( homes_of(d->arch.dsm, first, first + MERGE_FRAMES) != HOMES_HERE )",
        "    if ( homes_of(d->arch.dsm, first, first + MERGE_FRAMES) == HOMES_ELSEWHERE )",
        "no superpage",
    ),
    "does not look at the last one's references again": (
        "    for ( i = 0; i < MERGE_FRAMES; i++ )\n        if ( mfn_to_page(parts[i])->count_info",
        "    for ( i = 0; i < MERGE_FRAMES - 1; i++ )\n        if ( mfn_to_page(parts[i])->count_info",
        "no superpage",
    ),
    "the first frame has the node": (
        "        if ( ++nr[node] > nr[most] )\n            most = node;\n",
        "        nr[node]++;\n",
        "a superpage of a node",
    ),
    "the parts are lost": (
        "        put_page(mfn_to_page(parts[i]));\n        pool_free(d, mfn_to_page(parts[i]));\n",
        "        put_page(mfn_to_page(parts[i]));\n",
        "a superpage",
    ),
    "merges while it runs": (
        "    domain_pause(d);\n    spin_lock(&dsm->ops_lock);",
        "    spin_lock(&dsm->ops_lock);",
        "a superpage",
    ),
    "stays paused": (
        "    domain_unpause(d);\n\n    if ( !rc )",
        "    if ( !rc )",
        "a superpage",
    ),
    "merges in a hypercall": (
        "        if ( gate_close(dsm) )\n        {\n            gfn_lock(p2m, _gfn(first), PAGE_ORDER_2M);",
        "        if ( (gate_close(dsm), 1) )\n        {\n            gfn_lock(p2m, _gfn(first), PAGE_ORDER_2M);",
        "a superpage and hypercalls",
    ),
    "the gate stays closed": (
        "            gate_open(dsm);\n        }\n    }\n    domain_unpause(d);",
        "        }\n    }\n    domain_unpause(d);",
        "a superpage",
    ),
    "merges anything": (
        "    if ( f->nr != MERGE_FRAMES || f->first % MERGE_FRAMES || f->done )",
        "    if ( f->first % MERGE_FRAMES || f->done )",
        "no superpage",
    ),
    "merges from anywhere": (
        "    if ( f->nr != MERGE_FRAMES || f->first % MERGE_FRAMES || f->done )",
        "    if ( f->nr != MERGE_FRAMES || f->done )",
        "no superpage",
    ),
    "merges without 2 MiB pages": (
        "    if ( !hap_has_2mb )\n        return -EOPNOTSUPP;\n",
        "",
        "no superpage",
    ),
    "merges beyond a range": (
        "    if ( !r || f->nr > r->first + r->nr - f->first )\n        return -ERANGE;\n    if ( !hap_has_2mb )",
        "    if ( r && !hap_has_2mb )",
        "no superpage",
    ),
    "what was allocated is lost": (
        "    if ( rc && pg )\n        free_domheap_pages(pg, PAGE_ORDER_2M);\n",
        "",
        "no superpage",
    ),
    "merges are not counted": (
        "        dsm->stats.merges++;\n",
        "",
        "a superpage",
    ),
    "a merge that is busy is not counted": (
        "    else if ( rc == -EBUSY )\n        dsm->stats.busy++;\n    spin_unlock(&dsm->ops_lock);",
        "    spin_unlock(&dsm->ops_lock);",
        "a superpage and hypercalls",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(SOURCE, MUTANTS[mutant], build)


# As MUTANTS, of dsm_vcpu.c.
VCPU_MUTANTS = {
    "nobody is elsewhere": (
        "    if ( !dsm_elsewhere(dsm, v->vcpu_id) )\n        return is_not",
        "    if ( 1 )\n        return is_not",
        "where a vCPU runs",
    ),
    "placed while it runs": ("!d->controller_pause_count || ", "", "where a vCPU runs"),
    "placed while it is up": (
        "!(test_bit(_VPF_down, &v->pause_flags) || d->is_shut_down)",
        "0",
        "where a vCPU runs",
    ),
    "placed while it is started": (
        "             ACCESS_ONCE(vcpu_vlapic(v)->init_sipi.icr) )",
        "             0 )",
        "where a vCPU runs",
    ),
    "placed while it is owed something": (
        "dsm->vcpu[v->vcpu_id].owing ||",
        "!dsm ||",
        "more than the ring has room for",
    ),
    "vCPU 0 moves": ("!place->vcpu || place->pad ||", "place->pad ||", "where a vCPU runs"),
    "forgets what the ring has no room for": (
        "    if ( w->owing )\n        dsm->stats",
        "    w->owing = false;\n    if ( w->owing )\n        dsm->stats",
        "more than the ring has room for",
    ),
    "owes it for ever": ("        memset(&w->owed, 0, sizeof(w->owed));", "        ;", "what is sent to a ghost"),
    "an INIT keeps what was before": (
        "*owed = (struct xen_dsm_vcpu_event){ .flags = XEN_DSM_EVENT_INIT };",
        "owed->flags |= XEN_DSM_EVENT_INIT;",
        "more than the ring has room for",
    ),
    "a de-assert is an INIT": (
        "        if ( !is_init(icr) )\n            return false;\n",
        "",
        "what is sent to a ghost",
    ),
    "vectors that are none": (
        "        if ( (icr & APIC_VECTOR_MASK) < 16 )\n            return false;\n",
        "",
        "what is sent to a ghost",
    ),
    "an NMI takes the INIT": (
        "owed->flags |= XEN_DSM_EVENT_NMI;",
        "owed->flags = XEN_DSM_EVENT_NMI;",
        "more than the ring has room for",
    ),
    "interrupts of the dead": ("    put = !dsm->dead && owe", "    put = owe", "all slices shut down"),
    "shutdowns of the dead": (
        "    put = !dsm->dead;\n    if ( put )\n        put_shutdown",
        "    put = true;\n    if ( put )\n        put_shutdown",
        "all slices shut down",
    ),
    "a full ring is not counted": (
        "    if ( w->owing )\n        dsm->stats.ring_full++;\n    else",
        "    if ( !w->owing )",
        "more than the ring has room for",
    ),
    "the last SIPI": (
        "        if ( owed->flags & XEN_DSM_EVENT_SIPI )\n            return false;\n",
        "",
        "more than the ring has room for",
    ),
    "64 vectors": ("(icr & APIC_VECTOR_MASK) / 64]", "0]", "what is sent to a ghost"),
    "tells nobody": (
        "    if ( put )\n        dsm_notify(d);\n\n    return true;",
        "    return true;",
        "what is sent to a ghost",
    ),
    "ghosts are sent to": (
        "    if ( dsm_elsewhere(d->arch.dsm, v->vcpu_id) )\n        return -EXDEV;\n",
        "",
        "what another slice has sent",
    ),
    "vectors that are exceptions": ("(event->vectors[0] & 0xffff) || ", "", "what another slice has sent"),
    "interrupts before the INIT": (
        "vlapic_init_sipi_one(v, APIC_DM_INIT | APIC_INT_ASSERT);",
        ";",
        "what another slice has sent",
    ),
    "time that changes": (
        "        if ( v->is_initialised )\n            return -EBUSY;",
        "        if ( v->is_initialised )\n            continue;",
        "time stamps",
    ),
    "lives here again": (
        "        dsm->spread = true;",
        "        dsm->spread = place->slice != dsm->slice;",
        "all slices shut down",
    ),
    "says that it ends, of one slice": ("    if ( !dsm->spread )\n        return;", "    ;", "all slices shut down"),
    "ends for one daemon only": ("dsm->shut || (all && dsm->ended)", "dsm->shut", "all slices shut down"),
    "ends before the end": ("(all && dsm->ended)", "all", "all slices shut down"),
    "all but the last vCPU are flushed": (
        "    for ( i = 0; i < d->max_vcpus; i++ )\n        if ( dsm->vcpu[i].owing )",
        "    for ( i = 0; i < d->max_vcpus - 1; i++ )\n        if ( dsm->vcpu[i].owing )",
        "more than the ring has room for",
    ),
    "flushed unheard": (
        "            put_owed(dsm, i);\n            put = true;",
        "            put_owed(dsm, i);",
        "more than the ring has room for",
    ),
    "a shutdown that is flushed unheard": (
        "        put_shutdown(d);\n        put = true;",
        "        put_shutdown(d);",
        "all slices shut down",
    ),
    "a shutdown unheard": (
        "        put_shutdown(d);\n    spin_unlock(&dsm->lock);\n\n    if ( put )\n        dsm_notify(d);",
        "        put_shutdown(d);\n    spin_unlock(&dsm->lock);",
        "all slices shut down",
    ),
    "in several slices though it was refused": (
        "    spin_lock(&dsm->lock);\n    if ( !d->controller",
        "    spin_lock(&dsm->lock);\n    dsm->spread = true;\n    if ( !d->controller",
        "where a vCPU runs",
    ),
    "ends unheard": (
        "    dsm->shut = !dsm_ring_put(dsm, &entry);",
        "    dsm_ring_put(dsm, &entry);",
        "all slices shut down",
    ),
}


@pytest.mark.parametrize("mutant", VCPU_MUTANTS)
def test_vcpu_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(VCPUS, VCPU_MUTANTS[mutant], partial(build, of=VCPUS))


# As VCPU_MUTANTS, noticed by cases of dsm_call_test.c.
PLACE_MUTANTS = {
    "keeps the page of a vcpu_info": (
        "        place->info = dsm_give_back(v);",
        "        ;",
        "a vcpu_info",
    ),
    "gives it back at once": (
        "    if ( !rc && place->slice != dsm->slice )\n        place",
        "    if ( !rc )\n        place",
        "a vcpu_info",
    ),
    "gives back what stays": (
        "    if ( !rc && place->slice != dsm->slice )\n        place",
        "    if ( place->slice != dsm->slice )\n        place",
        "a vcpu_info and who sends",
    ),
    "somebody unpauses it": (
        "    domain_pause(d);\n\n    spin_lock",
        "    ++d->pauses;\n    domain_unpause(d);\n    spin_lock",
        "a vcpu_info and who sends",
    ),
    "ghosts may run": ("        vcpu_pause_nosync(v);\n", "        ;\n", "ghosts"),
    "never runs again": ("    else\n        vcpu_unpause(v);\n", "", "ghosts"),
    "paused each time": ("    if ( ghost == w->ghost )\n        return;\n", "", "ghosts"),
    "others may run": ("        pause_ghost(dsm, v);\n        /* A page", "        /* A page", "ghosts"),
    "waits for ever": ("            dsm_end_wait(d, v->vcpu_id);", "            ;", "a page that a ghost waited for"),
    "told of a hole for ever": (
        "            dsm_end_hole(dsm, v->vcpu_id);\n",
        "",
        "a page that a ghost waited for",
    ),
    "waits no more at home": (
        "        if ( place->slice != dsm->slice )\n        {\n            dsm_end_wait",
        "        if ( 1 )\n        {\n            dsm_end_wait",
        "a page that a ghost waited for",
    ),
    "placed with what is beside its vcpu_info": (
        "shares_info(v) &&\n              !d->is_shut_down",
        "0",
        "where a vcpu_info was",
    ),
    "any vcpu_info stays": (
        " &&\n           ((unsigned long)v->vcpu_info_area.map & ~PAGE_MASK)",
        "",
        "a vcpu_info",
    ),
    "it stays after the end": (" &&\n              !d->is_shut_down )", " )", "where a vcpu_info was"),
    "it stays where it comes to": (
        "place->slice != dsm->slice && shares_info(v)",
        "shares_info(v)",
        "where a vcpu_info was",
    ),
    "placed under a call": ("             dsm_is_calling(dsm, v->vcpu_id) ||\n", "", "calls and places"),
    "the living and the dead": (" || d->is_shut_down) )", ") )", "calls and places"),
    "reserved words of PLACE": (" || place->info )", " )", "calls and places"),
}

# Of a wake-up: the file, what is replaced, by what, the case that fails then, and where it is.
WAKE_MUTANTS = {
    "an INIT keeps a wake-up": (
        CALLS,
        "    dsm->vcpu[vcpu].waking = false;\n",
        "",
        "what keeps a vCPU",
        "dsm_test.c",
    ),
    "an INIT of any vCPU": (
        CALLS,
        "    dsm->vcpu[vcpu].waking = false;\n",
        "    dsm->vcpu[0].waking = false;\n",
        "what keeps a vCPU",
        "dsm_test.c",
    ),
    "nobody sees that it runs": (
        UNCACHED,
        "        dsm_woken(v);\n",
        "        ;\n",
        "a page has come",
        "dsm_uncached_test.c",
    ),
}


# Of mm/dsm.c, noticed by cases of dsm_call_test.c.
GHOST_MUTANTS = {
    "calls flushed unheard": (
        "    put |= dsm_flush_calls(d, all);",
        "    dsm_flush_calls(d, all);",
        "calls and a full ring",
    ),
    "ghosts of the first moment": ("    dsm_pause_ghosts(d);\n", "", "ghosts"),
}


# Of dsm_access.c, noticed by a case of dsm_call_test.c.
INIT_MUTANTS = {
    "an INIT keeps results": ("    if ( !v->is_initialised )\n        dsm_forget", "    if ( 0 )\n        dsm_forget"),
    "anything forgets results": ("    if ( !v->is_initialised )\n        dsm_forget", "    if ( 1 )\n        dsm_forget"),
}


@pytest.mark.parametrize("mutant", INIT_MUTANTS)
def test_init_mutant_is_noticed(mutant: str) -> None:
    old, new = INIT_MUTANTS[mutant]
    mutant_of_calls = (old, new, "calls before an INIT")
    assert_noticed(ACCESSES, mutant_of_calls, partial(build, of=ACCESSES, cases="dsm_call_test.c"))


@pytest.mark.parametrize("mutant", GHOST_MUTANTS)
def test_ghost_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(SOURCE, GHOST_MUTANTS[mutant], partial(build, cases="dsm_call_test.c"))


# Of dsm_vcpu_info.c, noticed by cases of dsm_call_test.c.
INFO_MUTANTS = {
    "forgets where it was": (
        "pfn_to_paddr(gfn) + ((unsigned long)map & ~PAGE_MASK);",
        "1;",
        "a vcpu_info",
    ),
    "forgets where in the page": (" + ((unsigned long)map & ~PAGE_MASK);", ";", "where a vcpu_info was"),
    "a frame that was freed": (
        "    return gfn == INVALID_M2P_ENTRY\n           ? 0 :",
        "    return 0\n           ? 0 :",
        "where a vcpu_info was",
    ),
    "waits for nobody": ("    wait_for_senders(v);\n", "", "a vcpu_info and who sends"),
    "waits before others are kept away": (
        "        vcpu_info_reset(v);\n        area->pg = NULL;\n",
        "        area->pg = NULL;\n",
        "a vcpu_info and who sends",
    ),
    "a page of the hypervisor's for ever": ("    put_page_and_type(pg);\n", "", "a vcpu_info"),
    "timers of others are lost": (
        "             (chn->state == ECS_VIRQ && chn->notify_vcpu_id != v->vcpu_id) )",
        "             0 )",
        "a vcpu_info and who sends",
    ),
    "what the daemon is told is lost": (
        "        if ( chn->xen_consumer ||",
        "        if (",
        "a vcpu_info and who sends",
    ),
    "its timers": ("        if ( chn->state == ECS_VIRQ || chn", "        if ( chn", "a vcpu_info and who sends"),
    "its IPIs": ("chn->state == ECS_IPI ||\n", "0 ||\n", "a vcpu_info and who sends"),
    "its backends' masks": (
        "             chn->state == ECS_INTERDOMAIN )",
        "             0 )",
        "a vcpu_info and who sends",
    ),
    "its backends": (
        "        if ( chn->state == ECS_INTERDOMAIN )",
        "        if ( 0 )",
        "a vcpu_info and who sends",
    ),
    "mapped for ever": (
        "    unmap_domain_page_global((void *)((unsigned long)map & PAGE_MASK));\n",
        "",
        "a vcpu_info",
    ),
    "locked for ever": ("    write_unlock(&chn->lock);\n", "", "a vcpu_info and who sends"),
}


@pytest.mark.parametrize("mutant", INFO_MUTANTS)
def test_vcpu_info_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(INFOS, INFO_MUTANTS[mutant], partial(build, of=INFOS, cases="dsm_call_test.c"))


@pytest.mark.parametrize("mutant", WAKE_MUTANTS)
def test_wake_mutant_is_noticed(mutant: str) -> None:
    of, old, new, case, cases = WAKE_MUTANTS[mutant]
    files = (*COMMANDS, UNCACHED) if of == UNCACHED else COMMANDS

    def build_it(program: Path, source: Path, checked: bool) -> Path:
        return link(program, source, checked, of, cases=cases, files=files)

    assert_noticed(of, (old, new, case), build_it)


# Of dsm_ring.c: what is replaced, by what, the case that fails then, and where it is.
RING_MUTANTS = {
    "overwrites a full ring": (
        ">= dsm->ring_nr )",
        "> 2 * dsm->ring_nr )",
        "a full ring, and one that lies",
        "dsm_test.c",
    ),
    "does not say that it is full": (
        "        write_atomic(&ring->full, 1);\n",
        "",
        "a full ring, and one that lies",
        "dsm_test.c",
    ),
    "tells nobody": (
        "    notify_via_xen_event_channel(d, d->arch.dsm->port);",
        "    ;",
        "a call and its result",
        "dsm_call_test.c",
    ),
    "unpaused though it does not wait": (
        "    if ( !dsm->vcpu[vcpu].waiting )\n        return;\n",
        "",
        "ghosts",
        "dsm_call_test.c",
    ),
    "waits and does not": (
        "    dsm->vcpu[vcpu].waiting = false;\n",
        "",
        "a page that a ghost waited for",
        "dsm_call_test.c",
    ),
    "somebody waits": ("    dsm->nr_waiting--;\n", "", "a page that a ghost waited for", "dsm_call_test.c"),
    "no page has come": (
        "    w->waking = true;\n",
        "",
        "the times before and behind a wait",
        "dsm_test.c",
    ),
    "wakes twice": (
        "    {\n        w->waking = false;\n",
        "    {\n",
        "the times before and behind a wait",
        "dsm_test.c",
    ),
    "wakes who has not waited": (
        "    if ( w->waking )\n",
        "    if ( 1 )\n",
        "the times before and behind a wait",
        "dsm_test.c",
    ),
    "wakes are not counted": (
        "        dsm->stats.wakes++;\n",
        "",
        "the times before and behind a wait",
        "dsm_test.c",
    ),
    "the last wake": (
        "dsm->stats.wake_ns += max_t(",
        "dsm->stats.wake_ns = max_t(",
        "the times before and behind a wait",
        "dsm_test.c",
    ),
    "since ever": (
        "        ns -= w->could_run_ns;\n",
        "",
        "the times before and behind a wait",
        "dsm_test.c",
    ),
    "runs before it is woken": (
        "max_t(int64_t, ns, 0)",
        "ns",
        "clocks that differ",
        "dsm_test.c",
    ),
    "whatever keeps it": (
        "    if ( !vcpu_runnable(v) )\n        w->waking = false;\n",
        "",
        "what keeps a vCPU",
        "dsm_test.c",
    ),
    "a pause is a wake": (
        "state.time[RUNSTATE_running] + state.time[RUNSTATE_runnable]",
        "state.time[RUNSTATE_running] + state.time[RUNSTATE_runnable] + state.time[RUNSTATE_offline]",
        "what keeps a vCPU",
        "dsm_test.c",
    ),
    "a CPU that is taken": (
        "state.time[RUNSTATE_running] + state.time[RUNSTATE_runnable]",
        "state.time[RUNSTATE_running]",
        "what keeps a vCPU",
        "dsm_test.c",
    ),
}


@pytest.mark.parametrize("mutant", RING_MUTANTS)
def test_ring_mutant_is_noticed(mutant: str) -> None:
    old, new, case, cases = RING_MUTANTS[mutant]
    assert_noticed(RINGS, (old, new, case), partial(build, of=RINGS, cases=cases))


@pytest.mark.parametrize("mutant", PLACE_MUTANTS)
def test_place_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(VCPUS, PLACE_MUTANTS[mutant], partial(build, of=VCPUS, cases="dsm_call_test.c"))


ONE, TWO, END, OTHERS = (
    "a hole for one access",
    "a hole for two",
    "the end of a hole",
    "a hole for other domains",
)
REFUSED, IN_U = "a hole that is refused", "a hole in state U"
SEVERAL, LATE, TWICE = "several holes", "a hole too late", "a hole that is told twice"
MANY, CROWD = "holes for other domains", "more foreign misses than there is room for"
ASKED = "foreign misses"
UNREAD, POLLED = "foreign misses that are not read", "foreign misses that are looked at all the time"
AGES, STALLED = "foreign misses of long ago", "foreign misses, and a daemon that stands still"
LIED = "foreign misses, and a daemon that lies"
PLACE, FULL = "foreign misses in another one's place", "foreign misses, and a full ring"
WRITER = "foreign misses of a writer"

# As MUTANTS, of dsm_hole.c.
HOLE_MUTANTS = {
    "any RIP": ("hole->rip == regs->rip && hole->rsp", "hole->rsp", ONE),
    "where the daemon is": ("    hole->rip = w->rip;", "    hole->rip = guest_cpu_user_regs()->rip;", ONE),
    "the daemon's stack": ("    hole->rsp = w->rsp;", "    hole->rsp = guest_cpu_user_regs()->rsp;", ONE),
    "any stack": (" && hole->rsp == regs->rsp;", ";", ONE),
    "who waits for another": ("    if ( !w->waiting || w->gfn != gfn || ", "    if ( !w->waiting || ", TWO),
    "who has waited": ("    if ( !w->waiting || w->gfn != gfn || ", "    if ( w->gfn != gfn || ", TWO),
    "any frame": ("    found = find(hole, gfn) < hole->nr;", "    found = true;", ONE),
    "it lasts": ("        forget_all(dsm, hole);\n        found", "        found", ONE),
    "it lasts until it is looked for": ("    if ( !at )\n        forget_all(dsm, hole);\n", "", ONE),
    "interrupts come first": ("    return at;", "    return at && false;", ONE),
    "it lasts when the page comes": ("        forget(dsm, hole, at);\n", "", END),
    "the end of any page ends it": (
        "        unsigned int at = find(hole, gfn);\n",
        "        unsigned int at = 0;\n",
        END,
    ),
    "interrupts wait": ("            vcpu_kick(d->vcpu[i]);\n", "            ;\n", END),
    "it leaves the guest for each": ("        if ( !hole->nr )\n            vcpu_kick", "        vcpu_kick", SEVERAL),
    "vCPU 0 keeps it": ("    for ( i = 0; dsm->nr_holes", "    for ( i = 1; dsm->nr_holes", SEVERAL),
    "other registers end nothing": ("    forget_all(dsm, &dsm->vcpu[vcpu].hole);", "    ;", END),
    "the last one only": (
        "    if ( hole->rip != w->rip || hole->rsp != w->rsp )\n        forget_all",
        "    forget_all",
        SEVERAL,
    ),
    "those of another RIP": ("    if ( hole->rip != w->rip || hole->rsp", "    if ( hole->rsp", SEVERAL),
    "those of another stack": (
        "    if ( hole->rip != w->rip || hole->rsp != w->rsp )",
        "    if ( hole->rip != w->rip )",
        SEVERAL,
    ),
    "one too many": ("    if ( hole->nr == DSM_HOLES )", "    if ( hole->nr > DSM_HOLES )", SEVERAL),
    "the latest goes": ("        forget(dsm, hole, 0);", "        forget(dsm, hole, DSM_HOLES - 1);", SEVERAL),
    "what is behind it stays there": (
        "    memmove(&hole->gfn[i], &hole->gfn[i + 1],\n            (hole->nr - i) * sizeof(hole->gfn[0]));\n",
        "",
        SEVERAL,
    ),
    "the next one goes, too": (" (hole->nr - i) * sizeof", " (hole->nr - i - (i < hole->nr)) * sizeof", SEVERAL),
    "a vCPU that has none is counted": ("    dsm->nr_holes -= !hole->nr;\n", "", SEVERAL),
    "and one that went on": ("    dsm->nr_holes -= !!hole->nr;\n", "", ONE),
    "each frame is counted": ("    dsm->nr_holes += !hole->nr;", "    dsm->nr_holes++;", SEVERAL),
    "a miss that was not read": (" || !was_read(dsm, w) )", " )", LATE),
    "a miss that is not in the ring": ("    return !w->unsent && ", "    return ", LATE),
    "twice in one note": ("    if ( find(hole, gfn) < hole->nr )\n        return true;\n", "", TWICE),
    "what it has is no answer": ("hole->nr )\n        return true;", "hole->nr )\n        return false;", TWICE),
    "the last vCPU keeps it": ("nr_holes && i < d->max_vcpus", "nr_holes && i + 1 < d->max_vcpus", TWO),
    "the end of one vCPU's": (
        "            vcpu_kick(d->vcpu[i]);\n",
        "            vcpu_kick(d->vcpu[i]);\n        break;\n",
        TWO,
    ),
    "others find what a vCPU does": (
        "    if ( current->domain != d )\n        return dsm_others_find_hole(dsm, gfn);\n",
        "",
        OTHERS,
    ),
}

# The same, of other files.
HOLES_ELSEWHERE = {
    "no hole": (SOURCE, "        hole = dsm_finds_hole(p2m->domain, gfn_x(gfn));", "        ;", ONE),
    "no hole in U": (SOURCE, " ||\n               dsm_finds_hole(p2m->domain, gfn_x(gfn));", ";", IN_U),
    "done where there is none": (SOURCE, " &&\n           !dsm_finds_hole(d, gfn_x(gfn))", "", IN_U),
    "any entry": (SOURCE, "    w->entry = dsm->prod;\n", "", LATE),
    "its first entry": (SOURCE, "    w->entry = dsm->prod;\n", "    w->entry = w->entry ?: dsm->prod;\n", LATE),
    "what is put once more was read": (
        SOURCE,
        "            put_wait(dsm, i);\n",
        "            put_wait(dsm, i);\n            dsm->vcpu[i].entry--;\n",
        LATE,
    ),
    "no stack": (SOURCE, "    w->rsp = guest_cpu_user_regs()->rsp;\n", "", ONE),
    "what was told stays": (SOURCE, "    dsm_end_holes(d, gfn);\n", "", END),
    "of what is homed here": (
        SOURCE,
        "state != XEN_DSM_STATE_U) ||\n              !is_elsewhere(dsm, op->gfn) )",
        "state != XEN_DSM_STATE_U) )",
        REFUSED,
    ),
    "of what is here": (
        SOURCE,
        "(state != XEN_DSM_STATE_I && state != XEN_DSM_STATE_U) ||\n",
        "",
        REFUSED,
    ),
    "not in U": (
        SOURCE,
        "(state != XEN_DSM_STATE_I && state != XEN_DSM_STATE_U) ||\n",
        "state != XEN_DSM_STATE_I ||\n",
        IN_U,
    ),
    "others not in U": (
        SOURCE,
        "(state != XEN_DSM_STATE_I && state != XEN_DSM_STATE_U) ||\n",
        "(state != XEN_DSM_STATE_I && (foreign || state != XEN_DSM_STATE_U)) ||\n",
        IN_U,
    ),
    "a hole is none": (
        SOURCE,
        "    if ( state == XEN_DSM_STATE_HOLE )\n        rc = -ENOENT;\n    else if ( (state",
        "    if ( (state",
        REFUSED,
    ),
    "one vCPU too many": (SOURCE, "op->wanted >= d->max_vcpus", "op->wanted > d->max_vcpus", REFUSED),
    "others are told of none": (
        SOURCE,
        "            dsm_show_hole_to_others(dsm, op->gfn);\n",
        "            ;\n",
        OTHERS,
    ),
    "what others were told stays": (SOURCE, "    dsm_foreign_answered(dsm, gfn);\n", "", OTHERS),
    "others at each look": (
        SOURCE,
        "    if ( all )\n        dsm_foreign_again(dsm);\n",
        "    dsm_foreign_again(dsm);\n",
        MANY,
    ),
    "numbers that do not wrap": (
        RINGS,
        "dsm->prod - entry > dsm->prod - ACCESS_ONCE(dsm->ring->cons)",
        "dsm->ring->cons > entry",
        LATE,
    ),
    "the next one is read": (RINGS, "prod - entry > dsm->prod", "prod - entry >= dsm->prod", LATE),
    "any other one is read": (
        RINGS,
        "dsm->prod - entry > dsm->prod - ACCESS_ONCE(dsm->ring->cons)",
        "ACCESS_ONCE(dsm->ring->cons) != entry",
        LATE,
    ),
    "numbers of 16 bits": (RINGS, "dsm->prod - entry >", "(uint16_t)(dsm->prod - entry) >", AGES),
    "an entry of long ago was not read": (
        RINGS,
        "dsm->prod - entry > dsm->prod - ACCESS_ONCE(dsm->ring->cons)",
        "(int32_t)(ACCESS_ONCE(dsm->ring->cons) - entry) > 0",
        AGES,
    ),
    "what a full ring has was read": (
        RINGS,
        "dsm->prod - ACCESS_ONCE(dsm->ring->cons)",
        "min(dsm->prod - ACCESS_ONCE(dsm->ring->cons), dsm->ring_nr - 1)",
        AGES,
    ),
    "an entry of no ring": (
        RINGS,
        "return dsm->ring &&\n           dsm->prod - entry > dsm->prod -",
        "return !dsm->ring ||\n           dsm->prod - entry > dsm->prod -",
        LIED,
    ),
    "what the daemon says there is": (
        RINGS,
        "return dsm->ring &&\n           dsm->prod - entry > dsm->prod -",
        "return dsm->ring &&\n           dsm->prod - entry > dsm->ring->prod -",
        LIED,
    ),
    "what is not there yet was read": (
        RINGS,
        "dsm->prod - entry > dsm->prod - ACCESS_ONCE(dsm->ring->cons);",
        "(dsm->prod - entry > dsm->prod - dsm->ring->cons || dsm->prod - dsm->ring->cons > dsm->ring_nr);",
        LIED,
    ),
    "nobody goes on": (SOURCE, "            wake_vcpu(d, dsm, op->wanted);", "            ;", ONE),
    "an instruction as any": (ACCESSES, " || dsm_is_at_hole(v);", ";", ONE),
    "what is pending when it stops": (ACCESSES, " || ACCESS_ONCE(w->waiting)", "", ONE),
    "registers change": (ACCESSES, "    dsm_end_hole(dsm, v->vcpu_id);\n", "", END),
}


# As MUTANTS, of dsm_foreign.c.
FOREIGN_MUTANTS = {
    "for ever": ("    if ( now >= f->hole_until )\n        end_note(dsm, f);", "    ;", OTHERS),
    "a nanosecond too long": ("    if ( now >= f->hole_until )", "    if ( now > f->hole_until )", OTHERS),
    "for 50 ms more": ("        f->hole_until = min(f->hole_until, now + FOREIGN_FOUND);\n", "", OTHERS),
    "from each look on": ("min(f->hole_until, now + FOREIGN_FOUND);", "now + FOREIGN_FOUND;", OTHERS),
    "once": ("now + FOREIGN_FOUND);", "now);", OTHERS),
    "who is quick": ("#define FOREIGN_HOLE MILLISECS(50)", "#define FOREIGN_HOLE MILLISECS(1)", OTHERS),
    "who looks at another one": ("        if ( !f->hole_until || f->gfn != gfn )\n", "        if ( !f->hole_until )\n", MANY),
    "no note": ("        if ( !f->hole_until || f->gfn != gfn )\n", "        if ( f->gfn != gfn )\n", OTHERS),
    "no note is looked at": ("!ACCESS_ONCE(dsm->nr_foreign_holes)", "true", OTHERS),
    "each look ends the search": ("        found = true;\n", "        return true;\n", OTHERS),
    "who looks finds none": ("        found = true;\n", "", OTHERS),
    "notes are not counted": ("        dsm->nr_foreign_holes++;\n", "", OTHERS),
    "nor their end": ("    dsm->nr_foreign_holes -= !!f->hole_until;\n", "", MANY),
    "an end is one in any case": ("-= !!f->hole_until;", "-= 1;", MANY),
    "the end is none": ("    f->hole_until = 0;\n", "", OTHERS),
    "WAKE leaves the note": ("            end_note(dsm, &dsm->foreign[i]);\n", "", OTHERS),
    "WAKE leaves the question": (
        "            dsm->foreign[i].want = 0;\n            end_note",
        "            end_note",
        CROWD,
    ),
    "WAKE ends all": (
        "        if ( dsm->foreign[i].gfn == gfn )\n        {",
        "        {",
        OTHERS,
    ),
    "HOLE for who asks for another one": ("!f->want || f->gfn != gfn || !dsm_ring", "!f->want || !dsm_ring", MANY),
    "HOLE for nobody": ("        if ( !f->want || f->gfn", "        if ( f->gfn", MANY),
    "HOLE of an older miss": (" || !dsm_ring_was_read(dsm, f->first) )", " )", MANY),
    "HOLE of the last miss alone": ("!dsm_ring_was_read(dsm, f->first) )", "!dsm_ring_was_read(dsm, f->last) )", MANY),
    "HOLE of what less was wanted": ("    if ( !is_known || slot->want < want )\n", "    if ( !is_known )\n", MANY),
    "unread and told again": (
        " ||\n                                      !dsm_ring_was_read(dsm, f->last))) )",
        ")) )",
        UNREAD,
    ),
    "told once, read or not": (
        "                                      !dsm_ring_was_read(dsm, f->last))) )",
        "                                      true)) )",
        ASKED,
    ),
    "a reader has a writer's place": ("        entry.want = max(slot->want, want);\n", "        entry.want = want;\n", ASKED),
    "who looks is forgotten": ("            f->asked = now;\n", "", POLLED),
    "all is news": (
        "                return false;\n            slot = f;",
        "                return true;\n            slot = f;",
        UNREAD,
    ),
    "lost is news": (
        "        dsm->stats.foreign_lost++;\n        return false;",
        "        dsm->stats.foreign_lost++;\n        return true;",
        UNREAD,
    ),
    "nothing is news": (
        "\n    return true;\n}\n\nvoid dsm_foreign_answered",
        "\n    return false;\n}\n\nvoid dsm_foreign_answered",
        UNREAD,
    ),
    "a full ring has told it": ("!slot || !dsm_ring_put(dsm, &entry)", "!slot || (!dsm_ring_put(dsm, &entry) && 0)", UNREAD),
    "HOLE is no answer": ("        f->want = 0;\n        f->hole_until = NOW()", "        f->hole_until = NOW()", MANY),
    "the entry of the first one": ("        slot->first = nr;\n", "        slot->first = slot->first ?: nr;\n", MANY),
    "the entry behind it": ("        slot->first = nr;\n", "        slot->first = nr + 1;\n", MANY),
    "the entry before it": ("        slot->first = nr;\n", "        slot->first = nr - 1;\n", MANY),
    "asks all the same": ("            if ( f->hole_until ||\n                 (f->want", "            if ( (f->want", MANY),
    "a note is a place": ("is_free = !f->want && !f->hole_until;", "is_free = !f->want;", CROWD),
    "a note that is over is none": ("        end_old_note(dsm, f, now);\n        is_free", "        is_free", MANY),
    "a note for a place": ("!slot && f->want && now", "!slot && now", CROWD),
    "another place for the same frame": (
        "            slot = f;\n            is_known = true;\n",
        "            is_known = !!slot;\n",
        MANY,
    ),
    "asks each time": (
        "(now - f->since < FOREIGN_AGAIN ||",
        "(false ||",
        CROWD,
    ),
    "asks once": (
        "(now - f->since < FOREIGN_AGAIN ||",
        "(true ||",
        "foreign misses",
    ),
    "wants less": ("(f->want >= want && (now", "((now", "foreign misses"),
    "since ever": ("    slot->since = slot->asked = now;\n", "    slot->asked = now;\n", MANY),
    "no time makes room": (" ||\n             (!slot && f->want && now - f->asked >= FOREIGN_GONE) )", " )", CROWD),
    "who takes no place": ("        dsm->stats.foreign_lost++;\n        return false;", "        return false;", CROWD),
    "the flag": (".flags = XEN_DSM_MISS_FOREIGN", ".flags = 0", OTHERS),
    "a home is quick": ("#define FOREIGN_GONE SECONDS(1)", "#define FOREIGN_GONE MILLISECS(50)", CROWD),
    "room a moment later": (">= FOREIGN_GONE", "> FOREIGN_GONE", CROWD),
    "room though there is a place": ("(!slot && f->want && now", "(f->want && now", CROWD),
    "reported too soon": ("#define FOREIGN_AGAIN MILLISECS(50)", "#define FOREIGN_AGAIN MILLISECS(49)", ASKED),
    "a later place": (
        "            is_known = true;\n            break;\n",
        "            is_known = true;\n            continue;\n",
        MANY,
    ),
    "WAKE of the first place": (
        "            end_note(dsm, &dsm->foreign[i]);\n",
        "            end_note(dsm, &dsm->foreign[i]);\n            return;\n",
        MANY,
    ),
    "wants the same": ("f->want >= want", "f->want == want", ASKED),
    "wanted to read": ("    slot->want = entry.want;\n", "    slot->want = XEN_DSM_WANT_S;\n", ASKED),
    "always to write": ("        .want = want,\n", "        .want = XEN_DSM_WANT_M,\n", ASKED),
    "at no time": ("        .when_ns = now,\n", "", ASKED),
    "HOLE for who reads": ("        if ( !f->want || f->gfn", "        if ( f->want != XEN_DSM_WANT_S || f->gfn", MANY),
    "who asks has it longer": (
        "            if ( f->hole_until ||\n",
        "            if ( (f->hole_until && (f->hole_until = now + FOREIGN_HOLE)) ||\n",
        MANY,
    ),
    "the first place is not looked at": ("    now = NOW();\n    for ( i = 0;", "    now = NOW();\n    for ( i = 1;", CROWD),
    "nor told to another daemon": (
        "dsm_foreign_again(struct dsm_domain *dsm)\n{\n    unsigned int i;\n\n    for ( i = 0;",
        "dsm_foreign_again(struct dsm_domain *dsm)\n{\n    unsigned int i;\n\n    for ( i = 1;",
        CROWD,
    ),
    "another daemon": ("        dsm->foreign[i].want = 0;\n}", "        ;\n}", MANY),
    "the first one was read": ("!dsm_ring_was_read(dsm, f->last))) )", "!dsm_ring_was_read(dsm, f->first))) )", STALLED),
    "the last entry is the first": ("    slot->last = nr;\n", "    slot->last = slot->first;\n", STALLED),
    "the last entry of the first one": ("    slot->last = nr;\n", "    slot->last = slot->last ?: nr;\n", STALLED),
    "the first entry of who had the place": (
        "    if ( !is_known || slot->want < want )\n",
        "    if ( slot->want < want )\n",
        PLACE,
    ),
    "as much as who had the place": ("    if ( is_known )\n        entry.want", "    if ( slot )\n        entry.want", PLACE),
    "what is kept of who had the place": ("    slot->want = entry.want;", "    slot->want = max(slot->want, want);", PLACE),
    "a reader makes less of it": ("    slot->want = entry.want;", "    slot->want = want;", WRITER),
    "a writer is answered on and on": (
        "        f->want = 0;\n        f->hole_until = NOW()",
        "        if ( f->want == XEN_DSM_WANT_S )\n            f->want = 0;\n        f->hole_until = NOW()",
        WRITER,
    ),
    "a full ring ends the question": (
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n",
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n        if ( is_known )\n            slot->want = 0;\n",
        FULL,
    ),
    "a full ring has said what more is wanted": (
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n",
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n        if ( slot )\n            slot->want = entry.want;\n",
        FULL,
    ),
    "a full ring has the first entry": (
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n",
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n        if ( slot )\n            slot->first = nr;\n",
        FULL,
    ),
    "a full ring was told just now": (
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n",
        "    if ( !slot || !dsm_ring_put(dsm, &entry) )\n    {\n        if ( slot )\n            slot->since = now;\n",
        FULL,
    ),
}


@pytest.mark.parametrize("mutant", FOREIGN_MUTANTS)
def test_foreign_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(FOREIGN, FOREIGN_MUTANTS[mutant], partial(build, of=FOREIGN))


@pytest.mark.parametrize("mutant", HOLE_MUTANTS)
def test_hole_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(HOLES, HOLE_MUTANTS[mutant], partial(build, of=HOLES))


@pytest.mark.parametrize("mutant", HOLES_ELSEWHERE)
def test_hole_elsewhere_mutant_is_noticed(mutant: str) -> None:
    of, *row = HOLES_ELSEWHERE[mutant]
    assert_noticed(of, (row[0], row[1], row[2]), partial(build, of=of))


def build_uncached(of: Path, built: Path, source: Path | None = None, checked: bool = True) -> Path:
    """Instructions that use a page which stays elsewhere, with the rest of it."""
    return link(built, source, checked, of, cases="dsm_uncached_test.c", files=(*COMMANDS, UNCACHED))


@cache
def uncached_program() -> Path:
    return build_uncached(UNCACHED, Path(_scratch.name) / "dsm_uncached_test")


@pytest.mark.parametrize("name", names(uncached_program))
def test_uncached_case(name: str) -> None:
    assert_holds(uncached_program(), name)


# As MUTANTS, of dsm_access.c.
ACCESS_MUTANTS = {
    "tells nobody": ("    if ( rc == -ERESTART )\n        dsm_notify(d);\n", "", "loads"),
    "does not wait": ("        vcpu_pause_nosync(v);\n", "", "loads"),
    "another offset": (".flags = what->offset | (", ".flags = (", "loads"),
    "another width": ("(flsl(what->width) - 1) << PAGE_SHIFT", "flsl(what->width) << PAGE_SHIFT", "loads"),
    "no value": ("{ a->cookie, what->old, what->value }", "{ a->cookie, what->old }", "stores"),
    "no old value": ("{ a->cookie, what->old, what->value }", "{ a->cookie, 0, what->value }", "exchanges"),
    "no RIP": ("        .rip = a->rip,\n", "", "loads"),
    "no matter by which call": (
        "a->done[i].call == call && a->done[i].linear",
        "a->done[i].linear",
        "exchanges",
    ),
    "no matter where": (
        "a->done[i].call == call && a->done[i].linear == linear",
        "a->done[i].call == call",
        "parts",
    ),
    "asks each time": (
        "            return &a->done[i];",
        "            return NULL;",
        "loads",
    ),
    "another operation": (
        "(made->what.op == op && made->linear",
        "(made->linear",
        "changed tables",
    ),
    "before it": (
        "made->linear >= linear &&\n              ",
        "",
        "changed tables",
    ),
    "behind it": (
        " &&\n              made->linear + made->what.width <= linear + bytes) )",
        ") )",
        "changed tables",
    ),
    "goes on though it has changed": (
        "        dsm_end_accesses(v);\n        return false;",
        "        return false;",
        "changed tables",
    ),
    "one cookie": ("a->cookie = ++dsm->cookie;", "a->cookie = dsm->cookie;", "answers"),
    "any cookie": ("a->asked && a->cookie == done->cookie", "a->asked", "answers"),
    "answers without end": ("            a->asked = false;\n", "", "loads"),
    "any flags": ("    if ( done->flags & ~XEN_DSM_ACCESS_AGAIN )\n        return -EINVAL;\n", "", "answers"),
    "bits beyond": ("    return !(done->old & beyond(what->width));", "    return true;", "answers"),
    "no bits at all": ("width < 8 ? ~0UL << (8 * width) : 0", "~0UL << (8 * (width & 7))", "answers"),
    "a WRITE that sees": ("||\n         what->op == XEN_DSM_ACCESS_WRITE )", ")", "answers"),
    "a value of none": ("    if ( done->flags & XEN_DSM_ACCESS_AGAIN ||", "    if (", "answers"),
    "again is done": ("                a->nr--;\n", "                ;\n", "again"),
    "an INIT is forgotten": (
        "    if ( a->asked )\n        a->forgotten = true;",
        "    if ( a->asked )\n        ;",
        "an INIT",
    ),
    "an INIT ends nothing": ("    else\n        dsm_end_accesses(v);\n    dsm_end_hole", "    dsm_end_hole", "an INIT"),
    "all INITs": ("        a->forgotten = false;\n", "", "an INIT"),
    "forgets what the ring has no room for": (
        "    a->unsent = !dsm_ring_put(dsm, &entry);",
        "    dsm_ring_put(dsm, &entry);",
        "a full ring",
    ),
    "a full ring is not counted": ("        dsm->stats.ring_full++;\n", "        ;\n", "a full ring"),
    "flush repeats itself": ("!(all || a->unsent)", "0", "a full ring"),
    "flush with ALL tells nothing": ("!(all || a->unsent)", "!a->unsent", "a full ring"),
    "tells what is over": ("        if ( !a->asked || !(", "        if ( !(", "a full ring"),
    "nobody waits": ("    return dsm->vcpu[vcpu].accesses.asked;", "    return false;", "PLACE"),
    "without end": ("    if ( a->nr == DSM_ACCESSES )", "    if ( a->nr == DSM_ACCESSES + 1 )", "too many"),
    "the dead ask": ("    if ( dsm->dead )\n        rc = -EIO;\n    else\n", "", "too many"),
    "writes change nothing": ("made->what.op == XEN_DSM_ACCESS_WRITE ||\n             (made", "(made", "tries again"),
    "the first access changes or none": (
        "            return true;\n    }\n\n    return false;",
        "            return true;\n        break;\n    }\n\n    return false;",
        "tries again",
    ),
    "exchanges change nothing": ("              made->seen == made->what.old) )", "              0) )", "tries again"),
    "exchanges always change": ("              made->seen == made->what.old) )", "              1) )", "exchanges"),
    "is not counted": ("        dsm->stats.accesses++;\n", "", "loads"),
    "the instruction is over": (
        "    return w->accesses.nr || ",
        "    return ",
        "loads",
    ),
    "any op": ("    if ( !writes && access->op != XEN_DSM_ACCESS_READ )\n        return -EINVAL;\n", "", "not made"),
    "any width": (
        "    if ( access->width != 1 && access->width != 2 && access->width != 4 &&\n         access->width != 8 )",
        "    if ( !access->width )",
        "not made",
    ),
    "beyond the page": ("access->offset >= PAGE_SIZE ||\n         access", "access", "not made"),
    "in two parts of 8 bytes": (
        "\n         access->offset % 8 + access->width > 8 || access->in_use",
        "\n         access->in_use",
        "not made",
    ),
    "aligned only": (
        "access->offset % 8 + access->width > 8",
        "access->offset % access->width",
        "made",
    ),
    "in_use is not looked at": (
        " > 8 || access->in_use )",
        " > 8 )",
        "not made",
    ),
    "old is not looked at": (
        "    if ( (access->old & (compares ? beyond(access->width) : ~0UL)) ||\n         ",
        "    if ( ",
        "not made",
    ),
    "value is not looked at": (
        " ||\n         (access->value & (writes ? beyond(access->width) : ~0UL)) )",
        " )",
        "not made",
    ),
    "reads 4 for 2": ("read_atomic((const uint16_t *)p)", "read_atomic((const uint32_t *)p)", "made"),
    "reads 2 for 1": ("read_atomic((const uint8_t *)p)", "read_atomic((const uint16_t *)p)", "made"),
    "written here and forgotten": (
        "        a->done[a->nr++] = (struct dsm_access){",
        "        a->done[a->nr] = (struct dsm_access){",
        "a fault is over",
    ),
    "writes 8 for 4": ("write_atomic((uint32_t *)p, (uint32_t)value);", "write_atomic((uint64_t *)p, value);", "made"),
    "writes 2 for 1": (
        "write_atomic((uint8_t *)p, (uint8_t)value);",
        "write_atomic((uint16_t *)p, (uint16_t)value);",
        "made",
    ),
    "at the beginning": ("page + access->offset;", "page;", "made"),
    "an exchange sees nothing": ("        access->old = __cmpxchg(", "        __cmpxchg(", "made"),
    "an INIT before an answer that is none": (
        "            if ( a->forgotten )\n                dsm_end",
        "            if ( a->forgotten && !(done->flags & XEN_DSM_ACCESS_AGAIN) )\n                dsm_end",
        "an INIT",
    ),
    "a list without end": (
        "    if ( a->nr < DSM_ACCESSES )\n        a->done",
        "    a->done",
        "a full list",
    ),
    "flush forgets the last vCPU": (
        "    for ( i = 0; i < d->max_vcpus; i++ )",
        "    for ( i = 0; i < d->max_vcpus - 1; i++ )",
        "a full ring",
    ),
    "flush tells nobody": (
        "        put_access(dsm, i);\n        put = true;\n",
        "        put_access(dsm, i);\n",
        "a full ring",
    ),
}


@pytest.mark.parametrize("mutant", ACCESS_MUTANTS)
def test_access_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(ACCESSES, ACCESS_MUTANTS[mutant], partial(build_uncached, ACCESSES))


# As MUTANTS, of dsm_uncached.c.
UNCACHED_MUTANTS = {
    "the rest is forgotten": (
        "            rc = here_first(use, &part[i]);\n            if ( rc != X86EMUL_OKAY )\n                return rc;",
        "            rc = here_first(use, &part[i]);",
        "two pages, and one has to wait",
    ),
    "the rest counts as written": (
        "    if ( rc == X86EMUL_OKAY && use->write )\n",
        "    if ( use->write )\n",
        "two pages, and one has to wait",
    ),
    "what was read counts as written": (
        "    if ( rc == X86EMUL_OKAY && use->write )\n",
        "    if ( rc == X86EMUL_OKAY )\n",
        "two pages, and one has to wait",
    ),
    "a page ends in its segment": (
        "    in_page = PAGE_SIZE - (use.linear & ~PAGE_MASK);",
        "    in_page = PAGE_SIZE - (offset & ~PAGE_MASK);",
        "two pages, and one has to wait",
    ),
    "exchanges with the next page": (
        "walk(&use, use.linear + bytes - 1, &last",
        "walk(&use, use.linear + bytes, &last",
        "two pages, and one has to wait",
    ),
    "stores of ENTER": (
        "    if ( is_unfit(use->ctxt) )\n",
        "    if ( is_unfit(use->ctxt) && !use->write )\n",
        "unfit",
    ),
    "uses rmw": (
        "    ops.rmw = NULL;\n",
        "",
        "exchanges",
    ),
    "REP MOVS at once": (
        "    ops.rep_movs = NULL;\n",
        "",
        "exchanges",
    ),
    "REP STOS at once": (
        "    ops.rep_stos = NULL;\n",
        "",
        "exchanges",
    ),
    "REP INS at once": (
        "    ops.rep_ins = NULL;\n",
        "",
        "exchanges",
    ),
    "REP OUTS at once": (
        "    ops.rep_outs = NULL;\n",
        "",
        "exchanges",
    ),
    "does not begin anew": (
        "    a->calls = 0;\n",
        "",
        "exchanges",
    ),
    "any instruction": (
        "&ctxt, x86_insn_is_mem_access,",
        "&ctxt, NULL,",
        "loads",
    ),
    "other bytes": (
        "    hvio->mmio_insn_bytes = a->nr ? a->insn_bytes : 0;",
        "    hvio->mmio_insn_bytes = 0;",
        "exchanges",
    ),
    "bytes of another one": (
        "a->nr ? a->insn_bytes : 0;",
        "a->insn_bytes;",
        "leaves U",
    ),
    "bytes are not kept": (
        "        memcpy(a->insn, ctxt.insn_buf, a->insn_bytes);\n",
        "",
        "exchanges",
    ),
    "gives up while it waits": (
        "        waits = a->asked || ACCESS_ONCE(w->waiting);",
        "        waits = a->asked;",
        "a page is missing",
    ),
    "gives up what it has changed": (
        "        if ( !waits && !dsm_has_changed(curr) )",
        "        if ( !waits )",
        "tries again",
    ),
    "enters the guest": (
        "            raise_softirq(SCHEDULE_SOFTIRQ);\n        return;",
        "            ;\n        return;",
        "tries again",
    ),
    "hurries": (
        "        if ( !waits )\n            raise",
        "        raise",
        "exchanges",
    ),
    "no fault": (
        "        hvm_inject_event(&ctxt.ctxt.event);\n",
        "",
        "a fault",
    ),
    "no segments": (
        "    hvm_emulate_writeback(&ctxt);\n",
        "",
        "loads",
    ),
    "an instruction without end": (
        "    dsm_end_accesses(curr);\n    hvm",
        "    hvm",
        "loads",
    ),
    "what is unknown is kept": (
        "        dsm_end_accesses(curr);\n        dsm_populate",
        "        dsm_populate",
        "refused",
    ),
    "what is unknown is not needed": (
        "        dsm_populate_uncached(_gfn(a->gfn));\n",
        "",
        "refused",
    ),
    "another page is needed": (
        "accesses.gfn = gfn_x(gfn);",
        "accesses.gfn = 0;",
        "refused",
    ),
    "what is refused is not needed": (
        "        dsm_populate_uncached(gfn);\n",
        "",
        "refused",
    ),
    "what it needs in another way": (
        "            dsm_populate_uncached(_gfn(a->needed));\n",
        "",
        "needed",
    ),
    "what another one has needed": (
        "    a->needed = gfn_x(INVALID_GFN);\n    a->trying",
        "    a->trying",
        "needed",
    ),
    "asks at once": (
        "    a->trying = true;\n",
        "",
        "needed",
    ),
    "asks never again": (
        "    a->trying = false;\n",
        "",
        "becomes U",
    ),
    "what was read ahead": (
        "    a->needed = gfn_x(INVALID_GFN);\n\n    if ( !bytes",
        "    if ( !bytes",
        "needed",
    ),
    "what was read ahead of an exchange": (
        "    a->needed = gfn_x(INVALID_GFN);\n\n    if ( !find",
        "    if ( !find",
        "needed",
    ),
    "became U meanwhile": (
        "    my_accesses()->needed = gfn_x(INVALID_GFN);\n\n    return rc;\n}\n\n/* The same",
        "    return rc;\n}\n\n/* The same",
        "becomes U late",
    ),
    "became U before an exchange": (
        "    my_accesses()->needed = gfn_x(INVALID_GFN);\n\n    return rc;\n}\n\nstatic int cf_check",
        "    return rc;\n}\n\nstatic int cf_check",
        "becomes U late",
    ),
    "a guest's table": (
        "    if ( npfec.kind != npfec_kind_with_gla )",
        "    if ( 0 )",
        "refused",
    ),
    "code": (
        "    else if ( npfec.insn_fetch )",
        "    else if ( 0 )",
        "refused",
    ),
    "the frame of an interrupt": (
        "    else if ( hvm_event_pending(curr) )",
        "    else if ( 0 )",
        "refused",
    ),
    "32 bits": (
        "    else if ( hvm_guest_x86_mode(curr) != X86_MODE_64BIT )",
        "    else if ( 0 )",
        "refused",
    ),
    "all pages": (
        "    if ( !dsm_is_uncached(curr->domain, gfn) )\n    {",
        "    if ( 0 )\n    {",
        "two places",
    ),
    "what the fault saw": (
        "        dsm_want_cached(gfn);\n",
        "",
        "becomes U",
    ),
    "says that it is over": (
        "    return !a->nr;",
        "    return true;",
        "exchanges",
    ),
    "wide ones at once": (
        "    while ( width > bytes || offset % 8 + width > 8 )",
        "    while ( width > bytes )",
        "parts",
    ),
    "more than there is": (
        "    while ( width > bytes || offset % 8",
        "    while ( offset % 8",
        "parts",
    ),
    "aligned parts": (
        "offset % 8 + width > 8 )\n        width",
        "offset % width )\n        width",
        "parts",
    ),
    "at one place": (
        "        .offset = linear & ~PAGE_MASK,",
        "        .offset = use->linear & ~PAGE_MASK,",
        "parts",
    ),
    "the first part's bytes": (
        "memcpy(&access.value, use->data + part->from,",
        "memcpy(&access.value, use->data,",
        "parts",
    ),
    "writes nothing": (
        "    if ( use->write )\n        memcpy(&access.value",
        "    if ( 0 )\n        memcpy(&access.value",
        "stores",
    ),
    "reads nothing": (
        "        if ( !use->write )\n            memcpy",
        "        if ( 0 )\n            memcpy",
        "loads",
    ),
    "reads to one place": (
        "memcpy(use->data + part->from, &made->seen",
        "memcpy(use->data, &made->seen",
        "parts",
    ),
    "ENTER": (
        "    case X86EMUL_OPC(0, 0xc8): ",
        "    case X86EMUL_OPC(0, 0xff): ",
        "unfit",
    ),
    "gathers": (
        "X86EMUL_OPC(0x0f38, 0x93):",
        "X86EMUL_OPC(0x0f38, 0x92):",
        "unfit",
    ),
    "scatters": (
        "X86EMUL_OPC(0x0f38, 0xa0) ...",
        "X86EMUL_OPC(0x0f38, 0xa1) ...",
        "unfit",
    ),
    "another table of opcodes": (
        "ctxt->opcode & (X86EMUL_OPC_EXT_MASK | 0xff)",
        "ctxt->opcode & 0xff",
        "unfit",
    ),
    "prefixes are opcodes": (
        "ctxt->opcode & (X86EMUL_OPC_EXT_MASK | 0xff)",
        "ctxt->opcode",
        "unfit",
    ),
    "the second page is usual": (
        "bytes > in_page ? 2 : 1",
        "1",
        "two pages",
    ),
    "the other page first": (
        "        if ( part[i].uncached )\n            return there",
        "        if ( i && part[i].uncached && !part[0].uncached && here_first(use, part) == X86EMUL_OKAY "
        ")\n            return there(use, &part[i]);\n        else if ( part[i].uncached )\n            "
        "return there",
        "two pages",
    ),
    "writes before a fault": (
        "             part[i].gfn == gfn_x(INVALID_GFN) )",
        "             0 )",
        "two pages",
    ),
    "a fault that is over is all": (
        "            return rc == X86EMUL_OKAY ? X86EMUL_RETRY : rc;",
        "            return rc;",
        "a fault is over",
    ),
    "written twice after a fault": (
        "    if ( rc == X86EMUL_OKAY && use->write )\n        dsm_access_here",
        "    if ( 0 )\n        dsm_access_here",
        "a fault is over",
    ),
    "asks the page and not the list": (
        "        part[i].from = part[i].begin;\n        take(use, &part[i]);\n",
        "        part[i].from = part[i].begin;\n        if ( walk(use, use->linear + part[i].begin, "
        "&part[i].gfn, &part[i].uncached) == X86EMUL_OKAY && part[i].uncached )\n            take(use, "
        "&part[i]);\n",
        "leaves U when stored",
    ),
    "all of it again": (
        "part[i].uncached || part[i].from > part[i].begin )",
        "part[i].uncached )",
        "leaves U between parts",
    ),
    "a table is missing, and it goes on": (
        "        return pfec & PFEC_page_paged ? X86EMUL_RETRY : X86EMUL_OKAY;",
        "        return X86EMUL_OKAY;",
        "needed",
    ),
    "exchanges in two parts": (
        "    if ( use.linear % 8 + bytes > 8 )",
        "    if ( bytes > 8 )",
        "refused",
    ),
    "exchanges of 16 bytes": (
        "    if ( use.linear % 8 + bytes > 8 )",
        "    if ( use.linear % 8 + bytes > 16 )",
        "refused",
    ),
    "exchanges on the first page": (
        "    if ( !uncached && !last_uncached )",
        "    if ( !uncached )",
        "refused",
    ),
    "exchanges are walked as reads": (
        "        .offset = offset,\n        .write = true,\n",
        "        .offset = offset,\n",
        "walks",
    ),
    "an exchange's segment is read": (
        "    if ( !find_linear(seg, offset, bytes, true,",
        "    if ( !find_linear(seg, offset, bytes, false,",
        "walks",
    ),
    "a segment is read": (
        "    if ( !bytes || !find_linear(seg, offset, bytes, write,",
        "    if ( !bytes || !find_linear(seg, offset, bytes, false,",
        "walks",
    ),
    "any address of an exchange": (
        "    if ( !find_linear(seg, offset, bytes, true, ctxt, &use.linear) )\n",
        "    find_linear(seg, offset, bytes, true, ctxt, &use.linear);\n    if ( 0 )\n",
        "a fault",
    ),
    "an exchange asks the page and not the list": (
        "    made = dsm_find_access(current, use.call, use.linear);\n",
        "    made = walk(&use, use.linear, &gfn, &uncached) == X86EMUL_OKAY && uncached ? "
        "dsm_find_access(current, use.call, use.linear) : NULL;\n",
        "leaves U when exchanged, and comes",
    ),
    "all exchanges succeed": (
        "        if ( made->seen == made->what.old )",
        "        if ( 1 )",
        "exchanges",
    ),
    "an exchange sees nothing": (
        "        memcpy(p_old, &made->seen, made->what.width);\n",
        "",
        "exchanges",
    ),
    "exchanges the other way round": (
        "    memcpy(&access.value, p_new, bytes);",
        "    memcpy(&access.value, p_old, bytes);",
        "exchanges",
    ),
    "a program is the kernel": (
        "        pfec |= PFEC_user_mode;",
        "        ;",
        "walks",
    ),
    "the processor is a program": (
        "        pfec |= PFEC_implicit;",
        "        ;",
        "walks",
    ),
    "a write is a read": (
        "        pfec |= PFEC_write_access;",
        "        ;",
        "walks",
    ),
    "no base": (
        "    reg = hvmemul_get_seg_reg(seg, hvm_ctxt(ctxt));",
        "    reg = hvmemul_get_seg_reg(x86_seg_ds, hvm_ctxt(ctxt));",
        "walks",
    ),
    "a segment where none is": (
        "    if ( seg == x86_seg_none || seg == x86_seg_sys )",
        "    if ( 0 )",
        "walks",
    ),
    "any address": (
        "    if ( !bytes || !find_linear(",
        "    if ( !bytes && !find_linear(",
        "a fault",
    ),
    "what was read ahead of the end": (
        "    case X86EMUL_OKAY:\n        break;\n",
        "    case X86EMUL_OKAY:\n        dsm_populate_uncached(_gfn(a->needed));\n        break;\n",
        "needed",
    ),
    "needs nothing any more": (
        "        if ( a->needed != gfn_x(INVALID_GFN) )\n",
        "        if ( a->needed != gfn_x(INVALID_GFN) && !a->nr )\n",
        "needed",
    ),
    "the first page only": (
        "        return here(use, 0, part[nr - 1].to);",
        "        return here(use, 0, part[0].to);",
        "two pages",
    ),
    "exchanges on the last page": (
        "    if ( !uncached && !last_uncached )",
        "    if ( !last_uncached )",
        "refused",
    ),
    "all of a register is expected": (
        "    memcpy(&access.old, p_old, bytes);",
        "    memcpy(&access.old, p_old, 8);",
        "exchanges",
    ),
    "all of a register comes": (
        "    memcpy(&access.value, p_new, bytes);",
        "    memcpy(&access.value, p_new, 8);",
        "exchanges",
    ),
    "all of a register is seen": (
        "        memcpy(p_old, &made->seen, made->what.width);\n",
        "        memcpy(p_old, &made->seen, 8);\n",
        "exchanges",
    ),
    "as many bytes as the first one": (
        "        a->insn_bytes = ctxt.insn_buf_bytes;\n",
        "        if ( !a->insn_bytes )\n            a->insn_bytes = ctxt.insn_buf_bytes;\n",
        "loads",
    ),
    "no segments of what is given up": (
        "        if ( !waits && !dsm_has_changed(curr) )\n            break;",
        "        if ( !waits && !dsm_has_changed(curr) )\n        {\n            dsm_end_accesses(curr);\n"
        "            return;\n        }",
        "tries again",
    ),
    "an exchange is always the same": (
        "    if ( !dsm_access_fits(current, use.call, access.op, use.linear, bytes) )\n        return X86EMUL_RETRY;\n",
        "",
        "changed tables",
    ),
}


@pytest.mark.parametrize("mutant", UNCACHED_MUTANTS)
def test_uncached_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(UNCACHED, UNCACHED_MUTANTS[mutant], partial(build_uncached, UNCACHED))


# As MUTANTS, of what dsm.c and dsm_vcpu.c have for it.
STATE_U_MUTANTS = {
    "no room for a bit": (
        "    if ( uncached && may_be_uncached(dsm, op->gfn) )\n        return -ENOMEM;\n",
        "",
        "states",
    ),
    "U is I": (
        "        return is_uncached(dsm, gfn) ? XEN_DSM_STATE_U : XEN_DSM_STATE_I;",
        "        return XEN_DSM_STATE_I;",
        "refused",
    ),
    "others wait for it": (
        "        hole = current->domain != p2m->domain ||\n",
        "        hole =\n",
        "states",
    ),
    "others find it": (
        "        hole = current->domain != p2m->domain ||\n",
        "        hole = true ||\n",
        "states",
    ),
    "nobody says that it was U": (
        "                 (w->of_u ? XEN_DSM_MISS_OF_U : 0),",
        "                 0,",
        "refused",
    ),
    "it was always U": (
        "                     state == XEN_DSM_STATE_U, fault);",
        "                     true, fault);",
        "a page is missing",
    ),
    "is not missed": (
        "              (state == XEN_DSM_STATE_U && uncached) ||\n",
        "",
        "refused",
    ),
    "nobody has seen that it is U": (
        "(state == XEN_DSM_STATE_U && uncached)",
        "state == XEN_DSM_STATE_U",
        "becomes U",
    ),
    "no look-up sees it": (
        "            .uncached = uncached,",
        "            .uncached = uncached && 0,",
        "becomes U",
    ),
    "all look-ups see it": (
        "    bool uncached = false, hole",
        "    bool uncached = true, hole",
        "becomes U",
    ),
    "without a hint it is not U": (
        "want ? hint->uncached : dsm_is_uncached(d, gfn)",
        "want ? hint->uncached : false",
        "becomes U",
    ),
    "is asked for while it is tried": (
        "        dsm->vcpu[curr->vcpu_id].accesses.needed = gfn_x(gfn);\n        return;\n",
        "        dsm->vcpu[curr->vcpu_id].accesses.needed = gfn_x(gfn);\n",
        "needed",
    ),
    "an ordinary page needs room": (
        "    if ( uncached && may_be_uncached(",
        "    if ( may_be_uncached(",
        "states",
    ),
    "is not installed": (
        "    case XEN_DSM_STATE_I:\n    case XEN_DSM_STATE_U:\n        return 0;",
        "    case XEN_DSM_STATE_I:\n        return 0;",
        "states",
    ),
    "is taken away": (
        "    case XEN_DSM_STATE_I:\n    case XEN_DSM_STATE_U:\n        rc = inval",
        "    case XEN_DSM_STATE_I:\n        rc = inval",
        "states",
    ),
    "is not dropped": (
        "    case XEN_DSM_STATE_I:\n    case XEN_DSM_STATE_U:\n        make_hole",
        "    case XEN_DSM_STATE_I:\n        make_hole",
        "states",
    ),
    "is not dropped with others": (
        "    if ( state == XEN_DSM_STATE_I || state == XEN_DSM_STATE_U )\n        make_hole",
        "    if ( state == XEN_DSM_STATE_I )\n        make_hole",
        "states",
    ),
    "no shared_info over it": (
        "    else if ( state == XEN_DSM_STATE_I || state == XEN_DSM_STATE_U ||\n",
        "    else if ( state == XEN_DSM_STATE_I ||\n",
        "shared_info",
    ),
    "U for ever": ("        set_uncached(dsm, gfn, false);\n    }\n}", "    }\n}", "states"),
    "of what is homed here": (
        " : XEN_DSM_STATE_U) ||\n              !is_elsewhere(dsm, op->gfn) )\n        rc = -EINVAL;",
        " : XEN_DSM_STATE_U) )\n        rc = -EINVAL;",
        "states",
    ),
    "nobody is woken": (
        "        set_uncached(dsm, op->gfn, uncached);\n        spin_lock(&dsm->lock);\n        wake(d, dsm, op->gfn);",
        "        set_uncached(dsm, op->gfn, uncached);\n        spin_lock(&dsm->lock);",
        "states",
    ),
    "the dead are U": ("    return !d->arch.dsm->dead && is_uncached", "    return is_uncached", "too many"),
    "any frame": (
        "    if ( !find_range(dsm, gfn) )\n        return -ERANGE;\n    if ( is_elsewhere",
        "    if ( is_elsewhere",
        "not made",
    ),
    "of other homes": ("    if ( is_elsewhere(dsm, gfn) )\n        return -EXDEV;\n", "", "not made"),
    "in any state": (
        "    if ( state != XEN_DSM_STATE_M )\n        rc = state == XEN_DSM_STATE_HOLE",
        "    if ( state == XEN_DSM_STATE_HOLE || state == XEN_DSM_STATE_I )\n        rc = state == XEN_DSM_STATE_HOLE",
        "not made",
    ),
    "shared_info": (
        "              mfn_eq(mfn, _mfn(virt_to_mfn(d->shared_info))) ||\n              page_get_owner",
        "              page_get_owner",
        "not made",
    ),
    "of other domains": (
        " ||\n              page_get_owner(mfn_to_page(mfn)) != d )\n        rc = -EPERM;",
        " )\n        rc = -EPERM;",
        "not made",
    ),
    "no memory": ("    else if ( !mfn_valid(mfn) ||\n              mfn_eq", "    else if ( mfn_eq", "not made"),
    "a page that goes": (
        "        rc = get_page(pg, d) ? 0 : -EBUSY;",
        "        rc = get_page(pg, d) ? 0 : 0;",
        "not made",
    ),
    "grant tables are free": ("*in_use = is_special_page(pg) || ", "*in_use = ", "in use"),
    "references are none": (
        "is_special_page(pg) || pg->count_info != COUNT_OWNED ||",
        "is_special_page(pg) ||",
        "in use",
    ),
    "types are none": (" ||\n                  (pg->u.inuse.type_info & TYPE_BUSY);", ";", "in use"),
    "keeps the page": ("        put_page(page);\n        access->in_use", "        access->in_use", "made"),
    "nothing is looked at": ("    int rc = dsm_check_access(access);\n", "    int rc = 0;\n", "not made"),
    "for the dead": ("rc = dsm->dead ? -ESRCH : get_own", "rc = get_own", "not made"),
    "the state may change": (
        "    /* It stays in state M. */\n    spin_lock(&dsm->ops_lock);",
        "    /* It stays in state M. */",
        "made",
    ),
    "accesses are not counted": ("        dsm->stats.accesses_done++;\n", "", "made"),
    "not told again": ("    put |= dsm_flush_accesses(d, all);\n", "", "a full ring"),
    "told again, and nobody looks": ("    put |= dsm_flush_accesses(", "    dsm_flush_accesses(", "a full ring"),
    "what the look-up saw is what it is": (
        "                     state == XEN_DSM_STATE_U, fault);",
        "                     uncached, fault);",
        "becomes U",
    ),
    "who writes reads": (
        "    miss(current->domain, gfn_x(gfn), want, false, true, 0);",
        "    miss(current->domain, gfn_x(gfn), want & 0, false, true, 0);",
        "refused",
    ),
}


@pytest.mark.parametrize("mutant", STATE_U_MUTANTS)
def test_state_u_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(SOURCE, STATE_U_MUTANTS[mutant], partial(build_uncached, SOURCE))


def test_a_vcpu_that_waits_for_an_access_is_under_way() -> None:
    mutant = ("             dsm_is_accessing(dsm, v->vcpu_id) ||\n", "", "PLACE")
    assert_noticed(VCPUS, mutant, partial(build_uncached, VCPUS))


# Of dsm_vcpu.c: what a vCPU that runs does not hear ends no instruction of it.
NOT_HEARD_MUTANTS = {
    "a second SIPI": ("        return v->is_initialised;\n", "        return false;\n"),
    "no SIPI is heard": ("        return v->is_initialised;\n", "        return true;\n"),
    "a de-assert": ("        return !is_init(icr);\n", "        return false;\n"),
    "no INIT is heard": ("        return !is_init(icr);\n", "        return true;\n"),
}


@pytest.mark.parametrize("mutant", NOT_HEARD_MUTANTS)
def test_what_is_not_heard(mutant: str) -> None:
    old, new = NOT_HEARD_MUTANTS[mutant]
    assert_noticed(VCPUS, (old, new, "a SIPI to who runs"), partial(build_uncached, VCPUS))


def test_a_vcpu_that_is_placed_elsewhere_is_in_no_instruction() -> None:
    mutant = ("            dsm_end_accesses(v);\n", "", "PLACE")
    assert_noticed(VCPUS, mutant, partial(build_uncached, VCPUS))
