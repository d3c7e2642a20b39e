# SPDX-License-Identifier: GPL-2.0
"""What a newcomer reads names what there is: paths, functions, targets of make, build steps, commands of the rack.

Paths and functions are those of this repository, or of what an overlay adds; a name of upstream's stands without brackets.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lab.cli import app
from lab.pipeline import arrows, decisions
from lab.pipeline.build import STEPS
from lab.pipeline.check import CHECKS, LICENCES
from lab.pipeline.paths import REPO, tracked

PAGES = ("docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md")
# What is made, and what is another's: the cache, an image's paths, a guest's.
MADE = r"build/.*|~/.*|trees/|/.*|vnuma/.*|a/.*|b/.*|overlay/|hooks/(series)?|I/O"
SOURCES = {".c", ".h", ".cc", ".py"}


def text_of(page: str) -> str:
    return (REPO / page).read_text(encoding="utf-8")


@cache
def files() -> list[str]:
    return [str(path.relative_to(REPO)) for path in tracked()]


@cache
def words_of_sources() -> set[str]:
    """Every word before a bracket in a source file."""
    found: set[str] = set()
    for name in files():
        if Path(name).suffix in SOURCES and not name.startswith("tests/"):
            found.update(re.findall(r"\b(\w+) ?\(", text_of(name)))
    return found


def spans(page: str) -> Iterator[str]:
    """What stands between backquotes, and each word of a drawing."""
    text = text_of(page)
    for block in re.findall(r"^```text\n(.*?)^```", text, re.S | re.M):
        for line in block.splitlines():
            yield from re.findall(r"[\w./-]+\.[ch]\b|\w+\(\)|/?[\w-]+(?:/[\w-]+)+/?|[\w-]+/(?=\s|$)", line)
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M))


def commands(page: str) -> list[list[str]]:
    """The lines of the blocks that are typed, and spans that begin as one does."""
    lines = [line for block in re.findall(r"^ *```\n(.*?)^ *```", text_of(page), re.S | re.M) for line in block.splitlines()]
    found = [shlex.split(line, comments=True) for line in [*lines, *spans(page)] if re.match(r" *(make|lab/\w+) ", line)]
    return [words for words in found if words]


def is_there(name: str) -> bool:
    """Whether a file or folder has this path, or its path ends so."""
    ends = f"/{name.rstrip('/')}"
    if name.endswith("/"):
        return any(f"/{path}".startswith(f"/{name}") or f"{ends}/" in f"/{path}" for path in files())
    return any(f"/{path}".endswith(ends) or f"{ends}/" in f"/{path}" for path in files())


@pytest.mark.parametrize("page", PAGES)
def test_paths_are_there(page: str) -> None:
    names = {span for span in spans(page) if re.fullmatch(r"[\w.~/-]*(/|\.(c|h|cc|py|md|toml|cfg|txt|json))[\w.~/-]*", span)}
    missing = [name for name in sorted(names) if not re.fullmatch(MADE, name) and not is_there(name)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text_of(page))
    assert [link for link in links if not ((REPO / page).parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_functions_are_there(page: str) -> None:
    names = {name for span in spans(page) for name in re.findall(r"\b(\w+)\(\)", span)}
    assert sorted(names - words_of_sources()) == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_there(page: str) -> None:
    """Their first words, and what they name."""
    targets = set(re.findall(r"^([\w-]+):.*## ", text_of("Makefile"), re.M))
    rack = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    wrong = []
    for words in commands(page):
        rest = words[1:]
        if words[0] == "make":
            wrong += [words for word in rest if "=" not in word and word not in targets]
            wrong += [words for word in rest if word.startswith("STEPS=") and not set(word[6:].split()) <= set(STEPS)]
        elif words[0] == "lab/rack":
            wrong += [words] * (rest[0] not in rack)
        elif words[0] == "lab/enter":
            module = rest[2].replace(".", "/") + ".py"
            wrong += [words] * (rest[:2] != ["python3", "-m"] or module not in files())
            known = {"lab/pipeline/build.py": set(STEPS), "lab/pipeline/check.py": set(CHECKS)}.get(module, set(rest[3:]))
            wrong += [words] * (not set(rest[3:]) <= known)
        wrong += [
            words
            for word in rest
            if re.match(r"(?:\w+=)?(tests|configs|linux-guest)/", word) and not is_there(word.rpartition("=")[2])
        ]
    assert wrong == []


def test_the_list_of_decisions_is_what_they_are() -> None:
    """``lab/enter python3 -m lab.pipeline.decisions`` writes it anew."""
    assert text_of("docs/decisions/README.md") == decisions.index(decisions.FOLDER)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("0001-a.md", "0002-b.md"), None),
        (("0001-a.md", "0001-b.md"), "0001-b.md: want a file of its own number"),
        (("0001-a.md", "0003-b.md:0002"), "0003-b.md: want a file of its own number, whose first line is '# 0003: WHAT'"),
        (("a.md",), "a.md: want"),
    ],
)
def test_a_decision_begins_with_its_number(tmp_path: Path, names: tuple[str, ...], said: str | None) -> None:
    for name in names:
        file, _, number = name.partition(":")
        (tmp_path / file).write_text(f"# {number or file[:4]}: a | b\n\nText.\n", encoding="utf-8")
    if said:
        with pytest.raises(ValueError, match=re.escape(said)):
            decisions.index(tmp_path)
    else:
        assert decisions.index(tmp_path).endswith("| [0001](0001-a.md) | a \\| b |\n| [0002](0002-b.md) | a \\| b |\n")
        assert "one: 0003;" in decisions.index(tmp_path)


def test_each_licence_has_its_folders_and_its_text() -> None:
    """COPYING.md has what `make check` compares files with, and each text is there."""
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", text_of("COPYING.md"), re.M)[1:]
    named = {name.rstrip("/"): licence for folders, licence, _ in rows for name in re.findall(r"`([^`]+)`", folders) or [""]}
    assert named.keys() == LICENCES.keys()
    assert [folder for folder, licence in named.items() if licence not in LICENCES[folder]] == []
    for _, licence, texts in rows:
        wanted = [re.sub("-(only|or-later)$", "", word) for word in licence.split(" WITH ")]
        assert re.findall(r"\(LICENSES/(.+?)\.txt\)", texts) == wanted
        assert all((REPO / "LICENSES" / f"{name}.txt").stat().st_size > 500 for name in wanted)


def test_the_pages_have_something_to_check() -> None:
    """Or the tests above would be content with anything."""
    assert len(commands("CONTRIBUTING.md")) > 30
    assert len(list(spans("docs/architecture.md"))) > 100
    assert {"engine.c", "libxl_vnode_attach()", "xen/", "dsm/core"} <= set(spans("docs/architecture.md"))
    assert "test_commands.c" in {Path(span).name for span in spans("CONTRIBUTING.md")}
    assert not is_there("lab/nothing.py") and not is_there("core.h") and not is_there("nothing/")
    assert is_there("op.c") and is_there("lab/pipeline") and is_there("linux-guest/")


def test_the_driver_is_drawn_as_its_makefile_has_it() -> None:
    """The floors of the page, of the header and of the Makefile are the same."""
    folder = "linux-guest/overlay/drivers/xen/elastic-numa"
    page = re.search(r"^ engine\.c.*?(?=^```)", text_of("docs/architecture.md"), re.S | re.M)
    header = re.search(r"floors below its own:(.*?)\n \* Locking", text_of(f"{folder}/elastic.h"), re.S)
    assert page and header
    built = set(re.findall(r"(\w+)\.o\b", text_of(f"{folder}/Makefile"))) - {"elastic-numa", "numa"}
    for text in (page[0], header[1]):
        rows = [set(re.findall(r"(\w+)\.c\b", line)) for line in text.splitlines()]
        assert set().union(*rows) == built


def test_no_arrow_of_a_drawing_points_up() -> None:
    """A file stands above all that it needs, and each file of the hypervisor's DSM stands somewhere."""
    floors = re.search(r"^## Floors$(.*?)^## ", text_of("docs/architecture.md"), re.S | re.M)
    assert floors
    drawings = [
        {name: -n for n, line in enumerate(block.splitlines()) for name in re.findall(r"\b[\w-]+\.c\b", line)}
        for block in re.findall(r"^```text\n(.*?)^```", floors[1], re.S | re.M)
    ]
    driver, dsm = drawings
    found = {
        (Path(file).name, Path(target).name)
        for house, needs in arrows.houses().items()
        if house in {"linux-guest/overlay", "xen/overlay/xen"}
        for file, targets in needs.items()
        for target in targets
    }
    assert ("engine.c", "node.c") in found and ("dsm_hole.c", "dsm_foreign.c") in found
    for floor in (driver, dsm):
        assert [arrow for arrow in found if floor.get(arrow[0], 1) <= floor.get(arrow[1], -99)] == []
    assert set(dsm) == {Path(name).name for name in files() if re.match(r"xen/overlay/xen/arch/x86/(hvm|mm)/dsm\w*\.c$", name)}


def test_a_decision_has_a_number_of_its_own() -> None:
    """And its heading has that number; nobody refers to one that is not there."""
    names = sorted(path.name for path in (REPO / "docs/decisions").glob("[0-9]*.md"))
    numbers = [name[:4] for name in names]
    assert [number for number in set(numbers) if numbers.count(number) > 1] == []
    for name in names:
        assert text_of(f"docs/decisions/{name}").startswith(f"# {name[:4]}: "), name
    for path in tracked("*.md", "*.py", "*.c", "*.h"):
        said = re.findall(r"\bdecisions? (0[01]\d\d)\b", path.read_text(encoding="utf-8", errors="replace"))
        assert set(said) <= set(numbers), path


def test_keys_of_the_list_of_vnodes() -> None:
    """xl-vnode(1) names each key that `xl vnode-list -j` prints, and no other limit of time than there is."""
    source = text_of("toolstack/overlay/tools/xl/xl_vnode_list.c")
    keys = set(re.findall(r'gen_(?:string|text|number|flag|cpus|phases)\(hand, "(\w+)"', source))
    keys |= set(re.findall(r'^        \{ "(\w+)", v->', source, re.M))
    assert {"vnode", "target_kib", "operation", "host", "pages_home", "paused", "toolstack_us"} < keys
    manual = text_of("toolstack/overlay/docs/man/xl-vnode.1.pod")
    assert [key for key in sorted(keys) if f"B<{key}>" not in manual] == []
    header = text_of("toolstack/overlay/tools/libs/light/libxl_dsm.h")
    limits = dict(re.findall(r"#define LIBXL__DSM_(NODE|PLACE|HOME)_MS (\d+)000\b", header))
    leaves = re.search(r"#define LEAVE_S\s+(\d+)\.\s", text_of("dsm/daemon/peers.c"))
    said = manual.partition("=head2 How long the host may take")[2].partition("Each can come")[0]
    assert leaves
    assert re.findall(r"\b(\d+)\b(?!\))", said) == [limits["NODE"], leaves[1], limits["PLACE"], limits["HOME"]]
