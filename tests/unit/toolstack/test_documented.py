# SPDX-License-Identifier: GPL-2.0
"""Exit codes, errors and options: what the manual page, the help texts and libxl's header say is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOOLSTACK = Path(__file__).resolve().parents[3] / "toolstack"
TOOLS = TOOLSTACK / "overlay" / "tools"
MANUAL = (TOOLSTACK / "overlay/docs/man/xl-vnode.1.pod").read_text(encoding="utf-8")
XL = (TOOLS / "xl/xl_vnode.c").read_text(encoding="utf-8")
COMMANDS = (TOOLSTACK / "hooks/0009-xl-vnode-commands.patch").read_text(encoding="utf-8")
IDL = (TOOLSTACK / "hooks/0003-libxl-vnode-api.patch").read_text(encoding="utf-8")
HEADER = (TOOLS / "include/libxl_vnode.h").read_text(encoding="utf-8")


def section(title: str) -> str:
    """One section of the manual page."""
    found = re.search(rf"^=head1 {title}\n(.*?)^=head1 ", MANUAL, re.M | re.S)
    assert found, title
    return found[1]


def options(table: str) -> set[str]:
    """The long options that the code takes, from one of its tables."""
    found = re.search(rf"struct option {table}\[\] = \{{(.*?)\n\}};", XL, re.S)
    assert found, table
    return set(re.findall(r'\{ "([a-z-]+)",', found[1]))


def test_each_exit_code_is_in_the_manual() -> None:
    header = (TOOLS / "xl/xl_vnode.h").read_text(encoding="utf-8")
    codes = re.findall(r"^    (VNODE_EXIT_\w+),", header, re.M)
    assert re.findall(r"^=item B<(\d+)>", section("EXIT STATUS"), re.M) == [str(n) for n in range(len(codes))]


def test_the_help_text_has_the_exit_codes() -> None:
    """And the unit of a size."""
    header = (TOOLS / "xl/xl_vnode.h").read_text(encoding="utf-8")
    (text,) = re.findall(r"#define VNODE_HELP_EXITS[ \\\n]+(.*?)\n\n", header, re.S)
    assert re.findall(r"\b(\d) [a-z]", text) == re.findall(r"^=item B<(\d+)>", section("EXIT STATUS"), re.M)
    assert COMMANDS.count("+      VNODE_HELP_EXITS,\n") == 3
    assert len(re.findall(r'^\+ +"(?:size=SIZE|size    ) +With k, m or g; MiB without\\n"$', COMMANDS, re.M)) == 2


def test_each_error_has_a_code_and_is_documented() -> None:
    errors = set(re.findall(r'^\+ +\(-\d+, "(VNODE_\w+)"\)', IDL, re.M))
    assert len(errors) >= 4
    assert set(re.findall(r"case ERROR_(VNODE_\w+):", XL)) == errors
    assert set(re.findall(r"ERROR_(VNODE_\w+)", HEADER)) == errors


@pytest.mark.parametrize(
    ("command", "table"),
    [("vnode-attach", "attach_options"), ("vnode-detach", "detach_options"), ("vnode-set", "detach_options")],
)
def test_the_help_text_names_each_option(command: str, table: str) -> None:
    found = re.search(rf'^\+    \{{ "{command}",\n(.*?)^\+    \}},', COMMANDS, re.M | re.S)
    assert found
    assert set(re.findall(r'"--([a-z-]+)', found[1])) == options(table)


def test_the_manual_names_each_option() -> None:
    named = set(re.findall(r"^=item B<--([a-z-]+)=?>", section("OPTIONS"), re.M))
    assert named == options("attach_options") | options("detach_options")


def test_the_manual_names_each_command() -> None:
    commands = set(re.findall(r'^\+    \{ "(vnode-\w+)",', COMMANDS, re.M))
    assert set(re.findall(r"^=item B<(vnode-\w+)>", section("COMMANDS"), re.M)) == commands
    assert set(re.findall(r"^B<xl (vnode-\w+)>", section("SYNOPSIS"), re.M)) == commands


def test_abilities_are_those_of_the_kernel() -> None:
    """The bits that libxl knows, and those that Linux' image says of itself."""
    header = (TOOLS / "libs/light/libxl_vnode_kernel.h").read_text(encoding="utf-8")
    bits = {"VCPU_INFO_PAGES": "1", "GRANTS_IN_MEMORY": "2", "STAYS_IN_HYPERCALLS": "4"}
    assert dict(re.findall(r"#define VNODE_KERNEL_(\w+) (\d)u", header)) == bits
    hook = (TOOLSTACK.parent / "linux-guest/hooks/0301-x86-xen-a-page-for-each-vcpu_info.patch").read_text(encoding="utf-8")
    without = r" \+\n\+\t\t{} \* \(1 - IS_ENABLED\(CONFIG_{}\)\)"
    lines = without.format(2, "XEN_UNPOPULATED_ALLOC") + without.format(4, "PREEMPTION")
    assert re.search(rf"^\+\tELFNOTE\(Xenuma, 1, \.long 1{lines}\)$", hook, re.M)
    asked = (TOOLS / "libs/light/libxl_vnode_hosts.c").read_text(encoding="utf-8")
    assert all(f"VNODE_KERNEL_{bit}" in asked for bit in bits)
    # And a kernel that does not say so is not loaded.
    check = (TOOLSTACK / "hooks/0016-libxl-remote-vcpus.patch").read_text(encoding="utf-8")
    assert re.search(r"^\+    ret = libxl__vnode_check_kernel\([^;]*;\n\+    if \(ret\)\n\+        goto out;$", check, re.M)


def test_the_default_of_the_time_limit_is_the_same_everywhere() -> None:
    (ms,) = re.findall(r"#define LIBXL_VNODE_TIMEOUT_MS (\d+)", HEADER)
    assert re.findall(r"#define LIBXL_VNODE_TIMEOUT_MS_PER_GIB (\d+)", HEADER) == ["1000"]
    assert f"The default is {int(ms) // 1000}, and one more for each GiB" in section("OPTIONS")
    asked = re.findall(r"after S seconds \(0: never\); by.*\n\+ +\" +default (\d+), and 1 for each GiB", COMMANDS)
    assert asked == [str(int(ms) // 1000)] * 3
    (ms,) = re.findall(r"#define UNDO_TIMEOUT_MS (\d+)", (TOOLS / "libs/light/libxl_vnode_op.c").read_text(encoding="utf-8"))
    assert f"it has {int(ms) // 1000} seconds, and one more for each GiB" in section("OPTIONS")


def test_what_a_node_on_another_host_does_not_go_with() -> None:
    """Each feature that libxl refuses, and how many hosts and how much memory there can be; and what CPUs there want."""
    code = (TOOLS / "libs/light/libxl_vnode_hosts.c").read_text(encoding="utf-8")
    span = (TOOLS / "libs/light/libxl_vnode_span.h").read_text(encoding="utf-8")
    nodes, cpus = (section(title) for title in ("NODES ON ANOTHER HOST", "CPUS ON ANOTHER HOST"))
    table = re.findall(r"check_features\(.*?\} t\[\] = \{(.*?)\n    \};", code, re.S)
    whats = re.findall(r'^          "([a-z0-9= ]+)",$|, "([a-z0-9= ]+)",$', table[0], re.M)
    assert len(whats) == 4
    words = {"passthrough of devices": "passthrough", "nested virtualisation": "B<nestedhvm=1>", "hap=0": "B<hap=0>"}
    for what in (one or other for one, other in whats):
        assert words.get(what, f"B<{what}") in nodes, what
    (hosts,) = re.findall(r"#define VNODE_HOSTS_MAX (\d+)", span)
    (shift,) = re.findall(r"#define VNODE_DSM_KB_MAX \(1ULL << (\d+)\)", span)
    assert f"at most {hosts} hosts" in nodes and f"{1 << int(shift) - 30} TiB" in nodes
    (ports,) = re.findall(r"#define TWO_LEVEL_PORTS (\d+)", code)
    assert f"B<max_event_channels=> above {ports}" in cpus


def test_the_phases_are_in_the_manual() -> None:
    code = (TOOLS / "libs/light/libxl_vnode_op.c").read_text(encoding="utf-8")
    names = {name for call in re.findall(r"phase_ends\(([^;]*)\);", code) for name in re.findall(r'"(\w+)"', call)}
    assert (
        set(re.findall(r"^=item B<(\w+)>", section("PHASES"), re.M)) == names == {"prepare", "guest", "undo", "settle"}
    )
