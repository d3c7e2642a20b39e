# SPDX-License-Identifier: GPL-2.0
"""Which file needs which, and the circles among them. ``python3 -m lab.pipeline.arrows [PATH]`` lists the arrows below a path.

There is an arrow from file A to file B when

- A imports B, also within a function, or for types alone (Python);
- A includes B (C, C++);
- A names a function or variable that B, and no other file of the house, defines at file scope and not static, unless A has
  one of its own of that name (C alone, and not in tests, whose files are many programs). A macro or an inline function of a
  header stands for what it names: who uses it needs that, and the header itself does not;
- A is a header that B alone includes, so a part of B, and names what is static in B (C).

Not seen: calls through pointers (they are how a lower file calls a higher one, and no arrow), names that a macro pastes
together, and modules that are loaded by name.
A house is what is compiled or imported as one; names mean nothing beyond it.

``make check`` fails when arrows run in a circle, so that the files of a house can be put on floors on which each needs only
those below it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

from .paths import REPO, tracked

Arrows = dict[str, dict[str, set[str]]]
"""From a file, to a file: the names that the first takes from the second; "" is an import or include."""

C_HOUSES = (
    "benchmarks/hosts",
    "benchmarks/parallel_region",
    "benchmarks/programs",
    "dsm",
    "lab/bounce",
    "lab/emulator/overlay",
    "lab/meter",
    "libgomp-patch/overlay",
    "linux-guest/overlay",
    "toolstack/overlay",
    "xen/overlay/tools",
    "xen/overlay/xen",
)
PYTHON_HOUSE = ("lab", "benchmarks", "tests", "toolstack")

C_FILES = {".c", ".h", ".cc"}
ATTRIBUTES = {"__attribute__", "__aligned", "__section", "__printf"}


# --- C -------------------------------------------------------------------------------------------------------------------

_NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
_TOKEN = re.compile(r"[A-Za-z_]\w*|->|[{}()\[\];=,.#]|\d[\w.]*")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.M)


@dataclass
class Source:
    """What one C file or header includes, defines for others and names."""

    includes: list[str] = field(default_factory=list)
    defines: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)  # the same, static
    names: set[str] = field(default_factory=set)
    short_for: dict[str, set[str]] = field(default_factory=dict)  # macros and inline functions: what they name


def read_c(text: str) -> Source:
    source = Source(re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"\n]+)[>"]', text, re.M))
    text = _NOISE.sub(lambda found: " " if found[0].startswith("/") else '""', text)
    for kind, rest in _DIRECTIVE.findall(text):
        if kind == "define" and (macro := re.match(r"\s+(\w+)", rest)):
            source.short_for.setdefault(macro[1], set()).update(named(_TOKEN.findall(rest[macro.end() :])))
    statement: list[str] = []
    for token, body in pieces(_TOKEN.findall(_DIRECTIVE.sub("", text))):
        if token == "{":
            declare(source, statement, body)
            # Behind a body a new statement begins; behind an initialiser or a struct the old one goes on.
            statement = [] if is_function(statement) else [*statement, "{}"]
        elif token == ";":
            declare(source, statement, None)
            statement = []
        else:
            statement.append(token)
    return source


def pieces(tokens: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
    """Tokens at file scope; a pair of braces is one, with all that is in it. What extern "C" has in braces is at file scope."""
    depth, body, last = 0, list[str](), ""
    for token in tokens:
        if token == "{" and not depth and last == "extern":
            yield ";", []
        elif token == "{":
            depth += 1
            body = [*body, token] if depth > 1 else []
        elif token == "}" and depth:
            depth -= 1
            body.append(token)
            if not depth:
                yield "{", body
        elif depth:
            body.append(token)
        elif token != "}":
            yield token, []
        last = token


def outside_parentheses(statement: list[str]) -> list[tuple[str, str]]:
    """Each token that is in no parentheses, and the one after it."""
    found, depth = [], 0
    for token, after in zip(statement, [*statement[1:], ""], strict=True):
        depth -= token == ")"
        if not depth and token != ")":
            found.append((token, after))
        depth += token == "("
    return found


def is_function(statement: list[str]) -> bool:
    """Whether what stands before a brace is the head of a function: it has parameters, and nothing is assigned."""
    outer = outside_parentheses(statement)
    return any(after == "(" for _, after in outer) and ("=", "") not in outer and all(t != "=" for t, _ in outer)


def named(tokens: list[str]) -> set[str]:
    """The identifiers that are neither members nor tags."""
    return {
        token
        for token, last in zip(tokens, ["", *tokens], strict=False)
        if (token[0].isalpha() or token[0] == "_")
        and last not in {".", "->", "struct", "union", "enum", "goto"}
    }


def declare(source: Source, statement: list[str], body: list[str] | None) -> None:
    """A statement at file scope, and what is in braces behind it."""
    if body is not None:
        if is_function(statement):
            heads = [t for t, after in outside_parentheses(statement) if after == "(" and t not in ATTRIBUTES]
            if heads and ({"static", "inline", "__always_inline"} & set(statement)):
                source.own.add(heads[-1])
                source.short_for.setdefault(heads[-1], set()).update(named(body))
            elif heads:
                source.defines.add(heads[-1])
            source.names |= named(body)
        elif "=" in statement:
            source.names |= named(body)
        return
    if "=" in statement:
        source.names |= named(statement[statement.index("=") :])
    if {"extern", "typedef"} & set(statement) or len(statement) < 2:
        return
    mine = source.own if "static" in statement else source.defines
    words = [token for token in statement if token != "static"]
    if re.fullmatch(r"(DEFINE|DECLARE)_(?!SHOW_ATTRIBUTE)\w+", words[0]) and words[1:2] == ["("]:
        mine.add(words[2])
        source.names |= named(words[3:])
    elif not any(after == "(" for _, after in outside_parentheses(statement)):
        outer = outside_parentheses(statement)
        mine.update(t for t, after in outer if after in {"=", "[", ",", ""} and t.isidentifier() and t not in ATTRIBUTES)


def header(included: str, user: Path, headers: Mapping[str, list[Path]]) -> Path | None:
    """The file that ``<NAME`` or ``"NAME`` means: one beside the user, else that with the shortest path that ends so.

    In angle brackets, a name without a folder is the system's.
    """
    kind, name = included[0], included[1:]
    found = headers.get(Path(name).name, [])
    beside = Path(user.parent, name)
    ends = [path for path in found if f"/{path}".endswith(f"/{name}")] if kind == '"' or "/" in name else []
    if kind == '"' and beside in found:
        return beside
    return min(ends, key=lambda path: len(str(path))) if ends else None


def c_arrows(files: Mapping[Path, str], calls: bool = True) -> Arrows:
    """The arrows of one house, from its files' texts: includes and, with ``calls``, what C files name."""
    sources = {path: read_c(text) for path, text in files.items()}
    headers: dict[str, list[Path]] = defaultdict(list)
    owners: dict[str, set[str]] = defaultdict(set)
    short_for: dict[str, set[str]] = defaultdict(set)
    for path, source in sources.items():
        headers[path.name].append(path)
        if path.suffix == ".h":
            for name, names in source.short_for.items():
                short_for[name] |= names
        for name in source.defines if path.suffix == ".c" else ():
            owners[name].add(str(path))
    arrows: Arrows = {str(path): {} for path in files}
    for path, source in sources.items():
        for name in source.includes:
            if (target := header(name, path, headers)) not in {None, path}:
                arrows[str(path)].setdefault(str(target), set()).add("")
    included = {path: {Path(name) for name in below(str(path), arrows)} for path in files}
    for path, source in sources.items() if calls else ():
        mine = arrows[str(path)]
        for name in meant(source, short_for) if path.suffix == ".c" else ():
            if len(owners.get(name, ())) == 1 and (owner := next(iter(owners[name]))) != str(path):
                mine.setdefault(owner, set()).add(name)
        users = [user for user in files if user.suffix != ".h" and path in included[user]]
        if path.suffix == ".h" and len(users) == 1:
            near = source.own.union(*(sources[other].own for other in included[path]))
            if taken := (source.names & sources[users[0]].own) - near:
                mine.setdefault(str(users[0]), set()).update(taken)
    return arrows


def below(file: str, arrows: Arrows) -> set[str]:
    """All that a file needs, straight or by way of others."""
    found, left = set[str](), [file]
    while left:
        new = arrows[left.pop()].keys() - found
        found |= new
        left += new
    return found


def meant(source: Source, short_for: Mapping[str, set[str]]) -> set[str]:
    """The names of a file that are not its own, and what the macros and inline functions among them name."""
    found: set[str] = set()
    left = source.names.union(*source.short_for.values())
    while left:
        name = left.pop()
        if name not in found and name not in source.own:
            found.add(name)
            left |= short_for.get(name, set())
    return found


# --- Python --------------------------------------------------------------------------------------------------------------


def imported(text: str, package: tuple[str, ...]) -> set[str]:
    """All that a file of this package imports by name, also within its functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            found.update(".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names)
    return found


def python_arrows(files: Mapping[Path, str]) -> Arrows:
    modules = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): str(path) for path in files}
    arrows: Arrows = {str(path): {} for path in files}
    for path, text in files.items():
        for name in imported(text, path.parent.parts):
            words = name.split(".")
            ends = (".".join(words[:count]) for count in range(len(words), 0, -1))
            target = next((modules[end] for end in ends if end in modules), None)
            if target and target != str(path):
                arrows[str(path)].setdefault(target, set()).add("")
    return arrows


# --- Circles -------------------------------------------------------------------------------------------------------------


def circles(arrows: Arrows) -> list[list[str]]:
    """The files of each circle, sorted: all that need each other, straight or by way of others. Empty if there is none."""
    group = {file: file for file in arrows}
    while True:
        merged: dict[str, set[str]] = defaultdict(set)
        for file, targets in arrows.items():
            merged[group[file]] |= {group[target] for target in targets} - {group[file]}
        try:
            TopologicalSorter(merged).prepare()
        except CycleError as error:
            round_trip = error.args[1]
            group = {file: round_trip[0] if name in round_trip else name for file, name in group.items()}
        else:
            found: dict[str, list[str]] = defaultdict(list)
            for file, name in sorted(group.items()):
                found[name].append(file)
            return [files for files in found.values() if len(files) > 1]


def way_round(circle: list[str], arrows: Arrows) -> list[str]:
    """A shortest way from a file of a circle to itself: whoever drew the last arrow is most likely on it."""
    ways = deque([file] for file in circle)
    while ways:
        way = ways.popleft()
        for target in sorted(arrows[way[-1]]):
            if target == way[0]:
                return [*way, target]
            if target in circle and target not in way:
                ways.append([*way, target])
    return circle


def described(circle: list[str], arrows: Arrows) -> str:
    ways = [
        f"{file} -> {target} ({', '.join(sorted(filter(None, arrows[file][target]))[:3]) or 'includes or imports it'})"
        for file, target in pairwise(way_round(circle, arrows))
    ]
    others = len(circle) - len(ways)
    return "; ".join(ways) + (f"; and {others} more files have such a way" if others else "")


def houses() -> dict[str, Arrows]:
    """All houses of the repository."""
    listed = sorted(path.relative_to(REPO) for path in tracked())
    found = {}
    tests = {str(path.parent) for path in listed if path.parts[0] == "tests" and path.suffix in C_FILES}
    for house in (*C_HOUSES, *sorted(tests)):
        mine = [path for path in listed if path.suffix in C_FILES and path.is_relative_to(house)]
        texts = {path: (REPO / path).read_text(encoding="utf-8") for path in mine}
        found[house] = c_arrows(texts, calls=house not in tests)
    python = [path for path in listed if path.suffix == ".py" and path.parts[0] in PYTHON_HOUSE]
    found["Python"] = python_arrows({path: (REPO / path).read_text(encoding="utf-8") for path in python})
    return found


def complaints(found: Mapping[str, Arrows]) -> list[str]:
    """What ``make check`` prints: each circle."""
    return [
        f"a circle in {house}: {described(circle, arrows)}"
        for house, arrows in found.items()
        for circle in circles(arrows)
    ]


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m lab.pipeline.arrows", description="Which file needs which, and what it takes from there; and circles."
    )
    parser.add_argument("path", nargs="?", default="", help="only of files whose paths begin so, from the top folder on")
    place = parser.parse_args(arguments).path.removeprefix("./")
    found = houses()
    if not any(file.startswith(place) for arrows in found.values() for file in arrows):
        print(f"{place}: no file that is in git and is C or Python begins so", file=sys.stderr)
        return 2
    for house, arrows in found.items():
        for file, targets in sorted(arrows.items()):
            for target, names in sorted(targets.items()) if file.startswith(place) else ():
                print(f"{file} -> {target}  {' '.join(sorted(filter(None, names)))}".rstrip())
        for circle in circles(arrows):
            if circle[0].startswith(place):
                print(f"a circle in {house}: {described(circle, arrows)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
