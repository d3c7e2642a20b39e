# SPDX-License-Identifier: GPL-2.0-only
"""DSM of the hypervisor, compiled in user space against a small fake of what it calls.

Each case of dsm_test.c, dsm_call_test.c, dsm_route_test.c, dsm_hypercall_test.c and dsm_clear_test.c is a test here. The
mutants show that the cases notice when the code is wrong.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "xen" / "overlay" / "xen"
SOURCE = OVERLAY / "arch" / "x86" / "mm" / "dsm.c"
VCPUS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_vcpu.c"
HYPERCALLS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_hypercall.c"
CALLS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_call.c"
ROUTES = OVERLAY / "arch" / "x86" / "hvm" / "dsm_route.c"
CLEARS = OVERLAY / "arch" / "x86" / "hvm" / "dsm_clear.c"
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


def build(
    program: Path, source: Path | None = None, checked: bool = True, of: Path = SOURCE, cases: str = "dsm_test.c"
) -> Path:
    """What is behind the commands, with its cases and the fake; `source` in the place of the file `of`."""
    parts = [
        source if source and file == of else compiled(file, checked) for file in (SOURCE, VCPUS, CALLS, ROUTES)
    ]
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
    text = original.read_text()
    assert text.count(old) == 1, f"{original.name} has changed: adapt the mutant"
    with tempfile.TemporaryDirectory(prefix="dsm_mutant.") as scratch:
        source = Path(scratch) / "mutant.c"
        source.write_text(text.replace(old, new))
        for checked in (False, True):
            if run(build(Path(scratch) / "mutant", source, checked), case).returncode != 0:
                return
    pytest.fail(f"{case} passed")


def run(test: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [test, name], capture_output=True, text=True, timeout=60, check=False, env={"ASAN_OPTIONS": "detect_leaks=0"}
    )


def names() -> list[str]:
    """The cases; if they do not compile, one that says so instead of ending the whole test run."""
    try:
        return run(program(), "--list").stdout.splitlines()
    except subprocess.CalledProcessError:
        return ["compiles"]


@pytest.mark.parametrize("name", names())
def test_case(name: str) -> None:
    done = run(program(), name)
    assert done.returncode == 0, done.stdout + done.stderr


@cache
def hypercall_program() -> Path:
    """dsm_hypercall.c with its cases, which bring their own fake."""
    return build_hypercalls(Path(_scratch.name) / "dsm_hypercall_test", HYPERCALLS)


def build_hypercalls(built: Path, source: Path, checked: bool = True) -> Path:
    """One version of dsm_hypercall.c."""
    parts = [compiled(ROUTES, checked), compiled(HERE / "dsm_hypercall_test.c", checked)]
    gcc("-o", built, source, *parts, checked=checked)
    return built


def hypercall_names() -> list[str]:
    """As names()."""
    try:
        return run(hypercall_program(), "--list").stdout.splitlines()
    except subprocess.CalledProcessError:
        return ["compiles"]


@pytest.mark.parametrize("name", hypercall_names())
def test_hypercall_case(name: str) -> None:
    done = run(hypercall_program(), name)
    assert done.returncode == 0, done.stdout + done.stderr


# As MUTANTS, of dsm_hypercall.c.
HYPERCALL_MUTANTS = {
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
        "    default:\n        return -ENOSYS;\n    }\n}\n\nenum dsm_hcall",
        "    default:\n        return 0;\n    }\n}\n\nenum dsm_hcall",
        "pages that each call needs",
    ),
    "32-bit guests": ("    if ( mode != X86_MODE_64BIT )", "    if ( 0 )", "a guest of 32 bits"),
    "calls about ghosts": (
        "    if ( way == DSM_REFUSE )\n        return -ENOSYS;\n",
        "",
        "vCPUs of another slice",
    ),
    "IPIs of ghosts": ("return rc ?: route(v, rule, &ipi);", "return rc;", "vCPUs of another slice"),
    "interrupts of ghosts": ("return rc ?: route(v, rule, &virq);", "return rc;", "vCPUs of another slice"),
    "events moved to ghosts": ("return rc ?: route(v, rule, &to);", "return rc;", "vCPUs of another slice"),
    "upcalls of ghosts": ("return rc ?: route(v, rule, &upcall);", "return rc;", "vCPUs of another slice"),
    "vcpu_info of ghosts": ("        if ( way == DSM_FORWARD )", "        if ( 0 )", "vCPUs of another slice"),
    "calls in any slice": ("dsm->spread) == DSM_REFUSE )", "dsm->spread) == 99 )", "vCPUs of another slice"),
    "vCPUs that there are not": (
        "    unsigned int there = dsm->slice;",
        "    unsigned int there = ~0U;",
        "vCPUs of another slice",
    ),
    "sends what it has not read": ("rc == -ENODATA ? -EFAULT", "0 ? -EFAULT", "answers of another slice"),
    "sends before it has read": (": rc ?: dsm_call_away", ": dsm_call_away", "answers of another slice"),
    "what cannot be read": (" || rc == -ENODATA )", " )", "pointers that lead nowhere"),
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


def route_names() -> list[str]:
    """As names()."""
    try:
        return run(route_program(), "--list").stdout.splitlines()
    except subprocess.CalledProcessError:
        return ["compiles"]


@pytest.mark.parametrize("name", route_names())
def test_route_case(name: str) -> None:
    done = run(route_program(), name)
    assert done.returncode == 0, done.stdout + done.stderr


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
    "half of an argument": ("FORWARD(REG, 16)", "FORWARD(REG, 8)", "what goes with a call"),
    "timers anywhere": (
        "    { __HYPERVISOR_vcpu_op, DSM_ANY_CMD, HOME, VCPU(REG) },",
        "    { __HYPERVISOR_vcpu_op, DSM_ANY_CMD, ANYWHERE, VCPU(REG) },",
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


def call_names() -> list[str]:
    """As names()."""
    try:
        return run(call_program(), "--list").stdout.splitlines()
    except subprocess.CalledProcessError:
        return ["compiles"]


@pytest.mark.parametrize("name", call_names())
def test_call_case(name: str) -> None:
    done = run(call_program(), name)
    assert done.returncode == 0, done.stdout + done.stderr


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
    "no argument": ("    memcpy(call.what.arg, arg, rule->bytes);\n", "", "a call and its result"),
    "another instruction's": ("a->rip == b->rip && ", "", "whose result"),
    "another stack's": ("a->rsp == b->rsp &&\n", "\n", "whose result"),
    "another operation's": ("a->what.op == b->what.op && a->what.cmd == b->what.cmd &&", "", "whose result"),
    "another argument's": (
        "           !memcmp(a->what.arg, b->what.arg, sizeof(a->what.arg));",
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
    "any cookie": (" || c->cookie != reply->cookie )", " )", "replies that are none"),
    "a reply twice": ("c->state != DSM_CALL_ASKED || c->cookie != reply", "c->cookie != reply", "replies that are none"),
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
    "about another": ("dsm_rule_vcpu(rule, call->vcpu, arg) != call->vcpu || ", "", "calls that are refused"),
    "a result comes with it": (" || call->rc )", " )", "calls that are refused"),
    "more than its argument": ("        if ( arg[i] )", "        if ( 0 )", "calls that are refused"),
    "ghosts": ("    if ( dsm_elsewhere(d->arch.dsm, call->vcpu) )", "    if ( 0 )", "calls that are refused"),
    "vectors that are exceptions": ("upcall->vector < 16", "upcall->vector < 15", "an upcall vector"),
    "no vector": ("    v->arch.hvm.evtchn_upcall_vector = upcall->vector;\n", "", "an upcall vector"),
    "pages with neighbours": ("    if ( info->offset )", "    if ( 0 )", "a vcpu_info at a bad place"),
    "an address that wraps": (
        "    if ( gfn_x(gaddr_to_gfn(addr)) != info->mfn )",
        "    if ( 0 )",
        "a vcpu_info at a bad place",
    ),
    "no second look": ("    if ( call->rc == -EAGAIN ||", "    if (", "a vcpu_info"),
}


@pytest.mark.parametrize("mutant", CALL_MUTANTS)
def test_call_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(CALLS, CALL_MUTANTS[mutant], build_calls)


def build_clear(built: Path, source: Path, checked: bool = True) -> Path:
    """One version of dsm_clear.c."""
    gcc("-o", built, source, compiled(HERE / "dsm_clear_test.c", checked), checked=checked)
    return built


@cache
def clear_program() -> Path:
    return build_clear(Path(_scratch.name) / "dsm_clear_test", CLEARS)


def clear_names() -> list[str]:
    """As names()."""
    try:
        return run(clear_program(), "--list").stdout.splitlines()
    except subprocess.CalledProcessError:
        return ["compiles"]


@pytest.mark.parametrize("name", clear_names())
def test_clear_case(name: str) -> None:
    done = run(clear_program(), name)
    assert done.returncode == 0, done.stdout + done.stderr


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
    "reserved words": ("    if ( op->flags || op->wanted )", "    if ( op->flags )", "a page that is overwritten"),
    "S is writable": ("        if ( q & P2M_UNSHARE )\n            break;\n", "", "what a look-up reports"),
    "I is a hole": (
        "return is_away(dsm, gfn) ? XEN_DSM_STATE_I",
        "return 0 ? XEN_DSM_STATE_I",
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
    "special frames taken": ("is_special_page(pg) || ", "", "a page in use"),
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
        "        vcpu_unpause(d->vcpu[i]);\n",
        "        vcpu_unpause(d->vcpu[i]);\n        break;\n",
        "a miss, and who is woken",
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
    "overwrites a full ring": (">= dsm->ring_nr )", "> 2 * dsm->ring_nr )", "a full ring, and one that lies"),
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
        "    for ( i = 0; all && i < ARRAY_SIZE(dsm->foreign); i++ )",
        "    for ( i = 0; 0 && i < ARRAY_SIZE(dsm->foreign); i++ )",
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
    "foreign misses not merged": (
        "                return;\n            slot = f;",
        "                ;\n            slot = f;",
        "foreign misses",
    ),
    "foreign misses merged for ever": (" && NOW() - f->since < FOREIGN_AGAIN )", " )", "foreign misses"),
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
        "        spin_unlock(&dsm->lock);\n        return;\n    }\n\n    miss",
        "        spin_unlock(&dsm->lock);\n    }\n\n    miss",
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
        "        case XEN_DSM_STATE_I:\n        case XEN_DSM_STATE_S:\n            return -EBUSY;",
        "        case XEN_DSM_STATE_S:\n            return -EBUSY;",
        "what may be mapped and removed",
    ),
    "bits set in S": (
        "    if ( t != p2m_dsm_shared )\n        return true;\n",
        "    return true;\n",
        "bits of guest tables",
    ),
    "operations of the dead": ("        if ( dsm->dead )\n        {", "        if ( 0 )\n        {", "the end"),
    "paused twice": ("if ( !dsm->dead && !dsm->paused )", "if ( !dsm->dead )", "keepalive"),
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
        "    rc = assign_pages(pg, MERGE_FRAMES, d, MEMF_no_refcount);",
        "    rc = assign_pages(pg, MERGE_FRAMES, d, 0);",
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
        "    if ( domain_adjust_tot_pages(d, MERGE_FRAMES) == MERGE_FRAMES )\n        ASSERT_UNREACHABLE();\n",
        "",
        "a superpage",
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
        "    if ( !dsm_elsewhere(dsm, v->vcpu_id) )\n        return false;",
        "    if ( 1 )\n        return false;",
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
        "             APIC_INT_LEVELTRIG )\n            return false;",
        "             APIC_INT_LEVELTRIG )\n            ;",
        "what is sent to a ghost",
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
    "time that is emulated": ("    return !d->arch.vtsc &&\n", "    return\n", "time stamps"),
    "time that changes": (
        "        if ( v->is_initialised )\n            return -EBUSY;",
        "        if ( v->is_initialised )\n            continue;",
        "time stamps",
    ),
    "says that it ends, of one slice": ("    if ( !dsm->spread )\n        return;", "    ;", "all slices shut down"),
    "ends for one daemon only": ("dsm->shut || (all && dsm->ended)", "dsm->shut", "all slices shut down"),
    "ends before the end": ("(all && dsm->ended)", "all", "all slices shut down"),
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
        "        unmap_guest_area(v, &v->vcpu_info_area);",
        "        ;",
        "a vcpu_info",
    ),
    "gives it back at once": (
        "    if ( rc || place->slice == dsm->slice )\n        return rc;",
        "    if ( rc )\n        return rc;",
        "a vcpu_info",
    ),
    "forgets where it was": ("    place->info = info_address(v);", "    place->info = !!info_address(v);", "a vcpu_info"),
    "placed under a call": ("             dsm_is_calling(dsm, v->vcpu_id) ||\n", "", "calls and places"),
    "the living and the dead": (" || d->is_shut_down) )", ") )", "calls and places"),
    "reserved words of PLACE": (" || place->info )", " )", "calls and places"),
}


@pytest.mark.parametrize("mutant", PLACE_MUTANTS)
def test_place_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(VCPUS, PLACE_MUTANTS[mutant], partial(build, of=VCPUS, cases="dsm_call_test.c"))
