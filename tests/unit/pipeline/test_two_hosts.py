# SPDX-License-Identifier: GPL-2.0
"""docs/two-hosts.md: what is typed there is known, its guests are such as xl takes, and links to its parts lead there."""

from __future__ import annotations

import ast
import re

from lab.guestview import parse_list
from lab.pipeline.paths import REPO


def text_of(name: str) -> str:
    return (REPO / name).read_text(encoding="utf-8")


PAGE = text_of("docs/two-hosts.md")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.S | re.M)


def value(block: str, key: str) -> object:
    """That of a line of xl.cfg, which may go on in the next ones."""
    found = re.search(rf"^{key} = (\[(?:.*\n)+?.*\]$|.*$)", block, re.M)
    return ast.literal_eval(found[1]) if found else None


def nodes_of(block: str) -> list[dict[str, str]]:
    rows = value(block, "vnuma")
    assert isinstance(rows, list)
    return [dict(item.split("=", 1) for item in row) for row in rows]


def test_its_guests() -> None:
    """Keys that xl knows; each vCPU in one node; those of other hosts are the isolated ones."""
    known = set(re.findall(r'^    \{ "(\w+)", offsetof', text_of("toolstack/overlay/tools/xl/xl_vnuma_spec.c"), re.M))
    guests = [block for block in BLOCKS if "vnuma = " in block]
    assert len(guests) == 2 and len(known) == 7
    for block in guests:
        nodes = nodes_of(block)
        assert all(set(node) <= known for node in nodes)
        assert all("pnode" in node or (node["host"] == "beta" and node["elastic"] == "1") for node in nodes)
        cpus = [cpu for node in nodes for cpu in parse_list(node.get("vcpus", "")) or ()]
        assert cpus == list(range(len(cpus)))
        assert value(block, "memory") in (None, int(nodes[0]["size"]))
        assert value(block, "maxvcpus") in (None, len(cpus))
        far = [node["vcpus"] for node in nodes if node.get("remote_vcpus") == "1"]
        assert re.findall(r"isolcpus=domain,managed_irq,(\S+)", str(value(block, "extra"))) == far
    third = re.findall(r"`\[ (.*?) \]`, `maxvcpus = (\d+)` and `isolcpus=domain,managed_irq,([\d-]+)`", PAGE)
    assert [(re.findall(r"vcpus=([\d-]+)", node)[0], count, far) for node, count, far in third] == [("4-5", "6", "2-5")]


def test_what_is_typed() -> None:
    """Commands of dsmctl and xl, and options of ours."""
    ctl = text_of("dsm/daemon/dsmctl.c")
    commands = set(re.findall(r'^\t\{ "([a-z]+)", do_', ctl, re.M))
    options = set(re.findall(r'^\t\t\{ "([a-z]+)", (?:no|required)_argument', ctl, re.M))
    typed = re.findall(r"dsmctl ((?:--\S+ )*[a-z]+)(.*)", "\n".join([*BLOCKS, *re.findall(r"`(dsmctl [^`\n]+)`", PAGE)]))
    assert len(typed) >= 8
    for word, rest in typed:
        assert word in commands, word
        assert set(re.findall(r" --(\w+)", rest.partition("#")[0])) <= options, rest
    vnode = set(re.findall(r'^\+    \{ "(vnode-\w+)",', text_of("toolstack/hooks/0009-xl-vnode-commands.patch"), re.M))
    assert set(re.findall(r"xl (vnode-\w+)", PAGE)) <= vnode


def test_links_to_its_parts() -> None:
    """GitHub's names of sections: in small letters, without what is neither letter, digit nor hyphen."""
    titles = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", PAGE, re.M)]
    links = re.findall(r"two-hosts\.md#([\w-]+)", text_of("README.md"))
    assert links and set(links) <= set(titles), (links, titles)
    for part in re.findall(r"(?:[Ss]ection|[Ss]tep) (\d+)", PAGE):
        assert re.search(rf"^## {part}\. ", PAGE, re.M), part


def test_its_words() -> None:
    """What dsmd-host and libxl refuse with, and what else stands in that table, is what they say."""
    errors = text_of("docs/dsm-control.md").partition("## Error words")[2].partition("Found by libxl itself")[0]
    known = set(re.findall(r"^\| `([a-z-]+)` \|", errors, re.M))
    table = PAGE.partition("| word | what to do |\n|---|---|\n")[2].partition("\n\n")[0]
    words = [word for row in table.splitlines() for word in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    said = {word for word in words if re.fullmatch(r"[a-z-]+", word)}
    assert len(known) > 20 and len(said) > 12 and said <= known, said - known
    sources = re.sub(r'"\n\s*"', "", text_of("toolstack/overlay/tools/libs/light/libxl_dsm.c"))
    for word in set(words) - said:
        assert all(part in sources for part in re.split(r" ?\(?\.\.\.\)? ?", word)), word
