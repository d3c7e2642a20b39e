# SPDX-License-Identifier: GPL-2.0
"""Ways through machine code: a program is assembled whose ways have been counted by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import dsm_instructions as paths
from benchmarks.machine_code import Count, Function, NoWay, disassembled, parse, shortest

# An instruction that does nothing is not counted; each label is a function.
PROGRAM = """
        .globl _start
        .type  _start, @function
_start: push  %rbx
        test  %edi, %edi
        jne   1f                # two ways to the first call: 6 instructions, or 5
        inc   %eax
        inc   %eax
1:      call  first
        nopl  0x0(%rax,%rax,1)
        .byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0  # data16 cs nopw
        xchg  %ax, %ax
        cmpq  $0, 0x760(%rbx)   # "not taken" goes on, "taken" calls what a way does not call
        jne   3f
2:      call  *8(%rax)
        cmp   $5, %eax
        je    4f
        pop   %rbx
        jmp   __x86_return_thunk
3:      call  dsm_hook
        jmp   2b
4:      pop   %rbx
        jmp   second
        .size _start, .-_start

        .type  turns, @function
turns:  mov   $4, %ecx
1:      call  __x86_indirect_thunk_rax
        dec   %ecx
        jne   1b
        ret
        .size turns, .-turns

        .type  stops, @function
stops:  test  %eax, %eax
        je    first             # out of the function: for what is rare
        ud2
        .size stops, .-stops

        .type  first, @function
first:  lock incl (%rax)
        ret
        .type  second, @function
second: repz ret
        .type  dsm_hook, @function
dsm_hook: ret
        .type  __x86_indirect_thunk_rax, @function
__x86_indirect_thunk_rax: jmp *%rax
        .type  __x86_return_thunk, @function
__x86_return_thunk: ret
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Function]:
    folder = tmp_path_factory.mktemp("machine_code")
    source, program = folder / "ways.s", folder / "ways"
    source.write_text(PROGRAM, encoding="ascii")
    subprocess.run(["gcc", "-nostdlib", "-static", "-o", program, source], check=True)
    return disassembled(program)


@pytest.mark.parametrize(
    ("function", "calls", "count"),
    [
        # push test jne, call, cmpq jne, call, cmp je, pop jmp
        ("_start", ["first", "*"], Count(11, 3)),
        ("_start", ["first", "dsm_hook", "*"], Count(13, 3)),
        ("_start", ["first", "*", "second"], Count(11, 3)),
        ("turns", ["*"], Count(5, 1)),
        ("turns", ["*"] * 4, Count(14, 4)),
        ("first", [], Count(2, 0)),
        ("second", [], Count(1, 0)),
    ],
)
def test_the_shortest_way_that_makes_these_calls(
    functions: dict[str, Function], function: str, calls: list[str], count: Count
) -> None:
    assert shortest(functions, function, calls) == count


@pytest.mark.parametrize(
    ("function", "calls", "says"),
    [
        ("nothing", [], "nothing: there is no such function"),
        ("_start", [], "_start: no way through it calls nothing and nothing else"),
        ("_start", ["first"], "_start: no way through it calls first and nothing else"),
        ("_start", ["*", "first"], "no way"),
        ("_start", ["first", "*", "second", "second"], "no way"),
        ("turns", [], "no way"),
        ("stops", [], "no way"),
        ("stops", ["first"], "no way"),
    ],
)
def test_a_way_that_is_none(functions: dict[str, Function], function: str, calls: list[str], says: str) -> None:
    with pytest.raises(NoWay, match=says):
        shortest(functions, function, calls)


def test_a_function_has_a_length_and_calls(functions: dict[str, Function]) -> None:
    assert functions["_start"].size == 17
    assert functions["_start"].calls == {"first", "*", "dsm_hook", "second"}
    assert functions["turns"].calls == {"*"}


def test_two_functions_of_one_name_are_two() -> None:
    lines = ["0000 <f>:", "   0:\tret", "", "0001 <f>:", "   1:\tpush   %rax", "   2:\tret"]
    assert {name: function.size for name, function in parse(lines).items()} == {"f": 1, "f#2": 2}


def straight(name: str, calls: tuple[str, ...], more: int) -> Function:
    """A function that makes these calls and returns, `more` instructions longer than it has to be."""
    texts = ["push   %rbx"] * more + [f"call   ffff <{c}>" if c != "*" else "call   *%rax" for c in calls] + ["ret"]
    lines = [f"0000 <{name}>:", *(f"{number:4x}:\t{text}" for number, text in enumerate(texts))]
    return parse(lines)[name]


def hypervisor(more: int, longer: str = "") -> dict[str, Function]:
    """Of each function there is one way."""
    functions: dict[str, Function] = {}
    for _, ways in paths.PATHS.values():
        for way in ways:
            functions.setdefault(way.function, straight(way.function, way.calls, more if way.function == longer else 0))
    return functions


@pytest.fixture
def _no_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths on which no function has two ways."""
    monkeypatch.setattr(paths, "PATHS", {name: paths.PATHS[name] for name in ("hypercall", "copy", "interrupt")})


@pytest.mark.usefixtures("_no_faults")
def test_the_figures_say_what_became_longer() -> None:
    found = {
        metric.metric: metric
        for metric in paths.figures(
            {
                paths.WITHOUT: hypervisor(0),
                paths.PAGING: hypervisor(2, "map_domain_gfn"),
                paths.DSM: hypervisor(5, "map_domain_gfn"),
            }
        )
    }
    copy = found["dsm.instructions.copy"]
    assert copy.value is not None
    assert {name: copy.value - was for name, was in copy.baseline.items() if not isinstance(was, str)} == {
        "without": 5 * 3,
        "mem_paging": 3 * 3,
    }
    assert "map_domain_gfn 3 to 5 to 8, 3 times" in copy.note and "hvm_translate" not in copy.note
    hypercall = found["dsm.instructions.hypercall"]
    assert set(hypercall.baseline.values()) == {hypercall.value} and "no difference" in hypercall.note
    other = found["dsm.functions_of_another_length"]
    assert other.value == 1 and "map_domain_gfn" in other.note


@pytest.mark.usefixtures("_no_faults")
def test_a_way_that_is_not_there_any_more_is_a_failure() -> None:
    changed = hypervisor(0)
    del changed["hvm_hypercall"]
    with pytest.raises(NoWay, match="hvm_hypercall"):
        paths.figures({variant: changed for variant in (paths.WITHOUT, paths.PAGING, paths.DSM)})


@pytest.mark.parametrize(
    ("line", "differs"),
    [
        ("CONFIG_DSM=y", False),
        ("CONFIG_MEM_PAGING=y", False),
        ("CONFIG_UNSUPPORTED=y", False),
        ("# CONFIG_TBOOT is not set", False),
        ("CONFIG_TBOOT=y", True),
        ("CONFIG_DSM_TOO=y", True),
        ("CONFIG_NR_CPUS=32", True),
    ],
)
def test_options_that_must_be_equal(tmp_path: Path, line: str, differs: bool) -> None:
    (tmp_path / "one").write_text("#\nCONFIG_X86=y\nCONFIG_NR_CPUS=64\n", encoding="ascii")
    (tmp_path / "other").write_text(f"CONFIG_X86=y\n{line}\nCONFIG_NR_CPUS=64\n", encoding="ascii")
    assert (paths.options(tmp_path / "one") != paths.options(tmp_path / "other")) == differs
