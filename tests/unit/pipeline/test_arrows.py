# SPDX-License-Identifier: GPL-2.0
"""``make check``: arrows between files are seen, and circles of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from lab.pipeline import arrows
from lab.pipeline.paths import REPO, tracked

# What a.c says, and whether that is an arrow to b.c, which defines `given` (and `kept`, static).
B = """
#include "b.h"
static int kept;
int given = 3;
struct thing *other(int (*with)(void), int n)
{
	return with() ? 0 : kept;
}
DEFINE_STATIC_KEY_FALSE(key);
"""
NAMED = {
    "int f(void) { return given; }": True,
    "int f(void) { return other(g, 1)->given; }": True,
    "int f(void) { return static_branch_unlikely(&key); }": True,
    "static struct ops ops = { .run = other };": True,
    "int (*f)(int) = other;": True,
    "#define TWICE (2 * given)\nint f(void) { return TWICE; }": True,
    "int f(void) { return IN_HEADER(1); }": True,
    "int f(void) { return inlined(); }": True,
    "static int f(void) { return given; }": True,
    'extern "C" {\nint f(void) { return given; }\n}': True,
    "extern int given;\nint f(void) { return given; }": True,
    "int f(void) { return x->given + y.given; }": False,
    "int f(void) { return sizeof(struct given); }": False,
    "/* given */ // other\nchar *f(void) { return \"given\"; }": False,
    "int f(void) { return kept; }": False,
    "static int given(void) { return 1; }\nint f(void) { return given(); }": False,
    "static int given;\nint f(void) { return given; }": False,
    "extern int given;\nint other(int (*with)(void), int n);": False,
    "int f(void) { return declared_only(); }": False,
}
HEADER = """
extern int given;
int declared_only(void);
#define IN_HEADER(x) \\
	((x) + given)
static inline int inlined(void) { return IN_HEADER(2); }
"""


@pytest.mark.parametrize("text", NAMED)
def test_a_name_of_another_file_is_an_arrow(text: str) -> None:
    found = arrows.c_arrows({Path("x/a.c"): text, Path("x/b.c"): B, Path("x/b.h"): HEADER})
    assert ("x/b.c" in found["x/a.c"]) is NAMED[text]
    assert found["x/b.h"] == {}, "a declaration needs nothing"


PART = """
static int own;
static int f(void) { return kept + own + low; }
"""


def test_a_part_of_a_file_needs_what_is_static_there() -> None:
    """And that is a circle, since the file includes it. What the part and what it includes have is not the file's."""
    whole = {Path("a.c"): '#include "low.h"\n#include "part.h"\nstatic int kept, own, low;', Path("low.h"): "static int low;"}
    part = {Path("part.h"): '#include "low.h"' + PART}
    found = arrows.c_arrows({**whole, **part})
    assert found["part.h"] == {"low.h": {""}, "a.c": {"kept"}}
    assert arrows.circles(found) == [["a.c", "part.h"]]
    two = arrows.c_arrows({**whole, **part, Path("b.c"): '#include "part.h"'})
    assert "a.c" not in two["part.h"], "a header of two files is no part of one"
    by_way = {Path("a.c"): '#include "top.h"\nstatic int kept;', Path("top.h"): '#include "part.h"', Path("part.h"): PART}
    assert arrows.c_arrows(by_way)["part.h"] == {"a.c": {"kept"}}


def test_a_name_of_two_files_is_no_arrow() -> None:
    """Which of them is meant only the linker knows."""
    user = {Path("a.c"): "int f(void) { return g(); }"}
    assert arrows.c_arrows({**user, Path("b.c"): "int g(void) { return 1; }"})["a.c"] == {"b.c": {"g"}}
    two = {Path("b.c"): "int g(void) { return 1; }", Path("c.c"): "int g(void) { return 2; }"}
    assert arrows.c_arrows({**user, **two})["a.c"] == {}


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ('#include "b.h"', "x/b.h"),
        ('  #  include "b.h"', "x/b.h"),
        ('#include "y/b.h"', "y/b.h"),
        ("#include <y/b.h>", "y/b.h"),
        ("#include <b.h>", None),
        ('/*\n#include "none.h"\n*/', None),
    ],
)
def test_an_include_is_an_arrow(line: str, target: str | None) -> None:
    found = arrows.c_arrows({Path("x/a.cc"): line, Path("x/b.h"): "", Path("y/b.h"): "", Path("z/y/b.h"): ""}, calls=False)
    assert list(found["x/a.cc"]) == ([target] if target else [])


def test_the_header_beside_a_file_is_its_own() -> None:
    found = arrows.c_arrows({Path("z/y/a.c"): '#include "b.h"', Path("y/b.h"): "", Path("z/y/b.h"): ""})
    assert list(found["z/y/a.c"]) == ["z/y/b.h"]


def test_an_import_is_an_arrow() -> None:
    found = arrows.python_arrows(
        {
            Path("lab/a.py"): "from lab import b\nfrom lab.c import name\nimport os",
            Path("lab/b.py"): "def f():\n    from .c import other",
            Path("lab/c.py"): "if TYPE_CHECKING:\n    import lab.d.e",
            Path("lab/__init__.py"): "",
            Path("lab/d/e.py"): "from .. import a",
        }
    )
    assert {file: sorted(targets) for file, targets in found.items()} == {
        "lab/a.py": ["lab/b.py", "lab/c.py"],
        "lab/b.py": ["lab/c.py"],
        "lab/c.py": ["lab/d/e.py"],
        "lab/__init__.py": [],
        "lab/d/e.py": ["lab/a.py"],
    }


def house(*ways: str) -> dict[str, arrows.Arrows]:
    """A house of arrows like "ab": a -> b."""
    found: arrows.Arrows = {name: {} for way in ways for name in way}
    for way in ways:
        found[way[0]][way[1]] = {"name"}
    return {"house": found}


def test_what_has_floors_has_no_circle() -> None:
    assert arrows.complaints(house("ab", "bc", "ac", "dc")) == []


@pytest.mark.parametrize("ways", [("ab", "ba"), ("ab", "bc", "ca"), ("xa", "ab", "bx", "xy")])
def test_a_circle_is_named_with_its_way(ways: tuple[str, ...]) -> None:
    (line,) = arrows.complaints(house(*ways))
    for way in ways:
        assert (f"{way[0]} -> {way[1]} (name)" in line) is (way != "xy")


def test_of_a_large_circle_a_shortest_way_is_shown() -> None:
    (line,) = arrows.complaints(house("ab", "bc", "cd", "da", "cb"))
    assert line == "a circle in house: b -> c (name); c -> b (name); and 2 more files have such a way"


def test_each_circle_is_found() -> None:
    assert len(arrows.complaints(house("ab", "ba", "cd", "dc"))) == 2


def test_every_source_file_is_in_a_house() -> None:
    """A new folder of C must not be overlooked."""
    found = {file for each in arrows.houses().values() for file in each}
    missing = [
        str(name)
        for path in tracked()
        if (name := path.relative_to(REPO)).suffix in {".c", ".cc", ".py"} and str(name) not in found
    ]
    assert missing == []


def test_the_engine_of_dsmd_is_as_its_header_has_it() -> None:
    """Each of its files is in the list, and needs only those below its line."""
    folder = "dsm/daemon"
    header = (REPO / folder / "engine_internal.h").read_text(encoding="utf-8")
    order = re.findall(r"^ \*\t(engine\w*\.c)\t", header, re.M)
    assert sorted(order) == sorted(path.name for path in (REPO / folder).glob("engine*.c"))
    floor = {f"{folder}/{name}": -n for n, name in enumerate(order)}
    found = arrows.houses()["dsm"]
    up = [(file, target) for file in floor for target in found[file] if floor.get(target, -len(floor)) >= floor[file]]
    assert up == []


# What is replaced in arrows.py, by what, and a text of NAMED, or else a test, that has to fail then.
MUTANTS: dict[str, tuple[str, str, str | Callable[[], None]]] = {
    "its own names": (
        "name not in found and name not in source.own",
        "name not in found",
        "static int given;\nint f(void) { return given; }",
    ),
    "macros are not looked into": (
        "left |= short_for.get(name, set())",
        "pass",
        "int f(void) { return IN_HEADER(1); }",
    ),
    "members": ('last not in {".", "->", "struct"', 'last not in {"struct"', "int f(void) { return x->given + y.given; }"),
    "tags": ('"struct", "union", "enum", "goto"}', '"goto"}', "int f(void) { return sizeof(struct given); }"),
    "static ones are given": (
        'mine = source.own if "static" in statement else source.defines',
        "mine = source.defines",
        "int f(void) { return kept; }",
    ),
    "declarations define": (
        'if {"extern", "typedef"} & set(statement) or len(statement) < 2:',
        "if len(statement) < 2:",
        "extern int given;\nint f(void) { return given; }",
    ),
    'extern "C" hides': (
        'if token == "{" and not depth and last == "extern":',
        "if False:",
        'extern "C" {\nint f(void) { return given; }\n}',
    ),
    "tables of calls": (
        '        elif "=" in statement:\n            source.names |= named(body)',
        '        elif "=" in statement:\n            pass',
        "static struct ops ops = { .run = other };",
    ),
    "macros that define": ("mine.add(words[2])", "pass", "int f(void) { return static_branch_unlikely(&key); }"),
    "one of several": (
        "len(owners.get(name, ())) == 1 and",
        "len(owners.get(name, ())) >= 1 and",
        test_a_name_of_two_files_is_no_arrow,
    ),
    "parts of a file": (
        'if path.suffix == ".h" and len(users) == 1:',
        "if False:",
        test_a_part_of_a_file_needs_what_is_static_there,
    ),
    "a part of two": (
        'if path.suffix == ".h" and len(users) == 1:',
        'if path.suffix == ".h" and users:',
        test_a_part_of_a_file_needs_what_is_static_there,
    ),
    "what a part has itself": (
        "(source.names & sources[users[0]].own) - near:",
        "source.names & sources[users[0]].own:",
        test_a_part_of_a_file_needs_what_is_static_there,
    ),
    "what a part includes": (
        "near = source.own.union(*(sources[other].own for other in included[path]))",
        "near = source.own",
        test_a_part_of_a_file_needs_what_is_static_there,
    ),
    "includes of includes": (
        "        left += new\n    return found",
        "    return found",
        test_a_part_of_a_file_needs_what_is_static_there,
    ),
    "the shortest path": (
        "if kind == '\"' and beside in found:",
        "if False:",
        test_the_header_beside_a_file_is_its_own,
    ),
    "relative imports": (
        "above = package[: len(package) - node.level + 1] if node.level else ()",
        "above = ()",
        test_an_import_is_an_arrow,
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, case = MUTANTS[mutant]
    text = Path(arrows.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"arrows.py has changed: {old!r}"
    mistaken = ModuleType(arrows.__name__)
    mistaken.__package__ = arrows.__package__
    exec(compile(text.replace(old, new), mutant, "exec"), mistaken.__dict__)
    monkeypatch.setitem(globals(), "arrows", mistaken)
    with pytest.raises(AssertionError):
        test_a_name_of_another_file_is_an_arrow(case) if isinstance(case, str) else case()
