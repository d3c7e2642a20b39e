# SPDX-License-Identifier: GPL-2.0
"""dsmd(8) and dsmctl(8) name what the programs know."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DAEMON = ROOT / "dsm" / "daemon"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def options(source: str) -> set[str]:
    return set(re.findall(r'^\t\t\{ "([a-z]+)", (?:no|required)_argument', source, re.M))


def manual_options(manual: str) -> set[str]:
    return set(re.findall(r"\\-\\-([a-z]+)", manual.partition(".SH OPTIONS")[2].partition("\n.SH ")[0]))


def test_every_option_is_described() -> None:
    for program, source in (("dsmd", "daemon/main.c"), ("dsmctl", "daemon/dsmctl.c"), ("dsmd-host", "host/main.c")):
        known = options(read(DAEMON.parent / source))
        assert len(known) >= 5
        assert manual_options(read(ROOT / f"docs/man/{program}.8")) == known
        assert set(re.findall(r"^\t +\"  -\w, --([a-z]+)", read(DAEMON.parent / source), re.M)) == known


def test_every_key_of_a_description_is_described() -> None:
    keys = set(re.findall(r'^\t\{ "([a-z_]+)", read_', read(DAEMON / "description.c"), re.M))
    assert {"name", "ranges", "lease_us", "first"} < keys
    manual = read(ROOT / "docs/man/dsmd.8")
    for key in keys:
        assert re.search(rf"^\.BR? {key}\b", manual, re.M), f"no {key} in dsmd(8)"


def constant(text: str) -> int:
    """Of description.c, by its name, number or quotient."""
    headers = "".join(read(path) for path in sorted(DAEMON.parent.rglob("*.h")))
    units = dict(re.findall(r"^#define (US|MS)\s+(\d+)ull", read(DAEMON / "description.c"), re.M))
    defined = {**dict(re.findall(r"^#define (DSM_\w+)\s+\(?(\d+)u?(?:ll)?\b", headers, re.M)), **units}
    found = re.sub(r"\b[A-Z]\w+", lambda name: defined[name[0]], text)
    assert re.fullmatch(r"[0-9a-fx]+u?(?: *(?:/|-|<<) *\d+)?", found), text
    return int(eval(found.replace("u", "").replace("/", "//")))  # noqa: S307: a quotient of numbers


def test_limits_and_defaults_of_a_description() -> None:
    """Each number of dsmd(8) that may be left out has its range and its default; the others have theirs in words."""
    source, manual = read(DAEMON / "description.c"), read(ROOT / "docs/man/dsmd.8")
    table = source.partition("static const struct key keys[] = {")[2].partition("\n};")[0]
    rows = re.findall(r'\{ "(\w+)", read_number, IN\(\w+, (\w+)\), ([^,]+), ([^,]+), ([^,]+), (true|false) \}', table)
    defaults = dict(re.findall(r"\.(\w+) = (\d+)(?: \* [UM]S)?[,\n]", source.partition("struct dsm_description read = {")[2]))
    seen = set()
    for key, field, least, most, _, may_miss in rows:
        if may_miss == "false" or key in ("domid", "answer_ms"):
            continue
        seen.add(key)
        words = f"{constant(least)} to {constant(most)}, default {defaults.get(field, '0')}"
        assert re.search(rf"^\.B {key}\n(?:\.B .*\n)?\({words}\b", manual, re.M), f"{key}: {words} is not in dsmd(8)"
    assert seen == {"slow", "lease_us", "token_ms", "pin_ms", "keepalive_ms", "prefetch", "busy_wait_us", "poll_us"}
    for what, words in {
        "DSM_VM_NUMBERS - 1": "1 to {}, the same on all hosts",
        "DSM_ENGINE_VCPUS": "Of the machine, 1 to {}.",
        "DSM_DESCRIPTION_RANGES": "1 to {} objects with",
        "DSM_VNODES - 1": "(0 to {}; the number of the host",
        "DSM_PLACES": "A list of up to {} objects",
        "DSM_DESCRIPTION_NAME - 1": "1 to {} letters",
    }.items():
        assert words.format(constant(what)) in manual, words


def test_every_command_of_dsmctl_is_described() -> None:
    commands = set(re.findall(r'^\t\{ "([a-z]+)", do_', read(DAEMON / "dsmctl.c"), re.M))
    assert len(commands) == 18
    manual = read(ROOT / "docs/man/dsmctl.8").partition(".SH COMMANDS")[2].partition("\n.SH ")[0]
    assert {
        found or other for found, other in re.findall(r"^(?:\\fB([a-z]+)\\fR|\.B ([a-z]+)$)", manual, re.M)
    } >= commands
    completion = read(DAEMON / "dsmctl.bash")
    assert set(re.findall(r'commands="([a-z ]+)"', completion)[0].split()) == commands


def test_every_phase_is_described() -> None:
    phases = re.findall(r"^\tPHASE\((\w+), ", read(DAEMON / "stats.c"), re.M)
    assert {"queue", "serve", "ipi_out"} < set(phases)
    manual = read(ROOT / "docs/man/dsmctl.8").partition("\\fBstatus\\fR")[2].partition("\n.TP\n")[0]
    for phase in phases:
        assert re.search(rf"^\.BR? {phase}\b", manual, re.M), f"no {phase} in dsmctl(8)"


def test_completion_and_help_have_the_same_words() -> None:
    completion = read(DAEMON / "dsmctl.bash")
    source = read(DAEMON / "dsmctl.c")
    states = re.findall(r'^\t\[DSM_WORKER_\w+\] = "([a-z]+)"', read(DAEMON / "worker_state.c"), re.M)
    keys = re.findall(r"(\w+)=(?:N|0 or 1)", re.findall(r'strdup\("(want prefetch.*)"\)', read(DAEMON / "tune.c"))[0])
    assert len(states) == 6 and len(keys) == 6
    assert set(re.findall(r'-W "([a-z ]*running[a-z ]*)"', completion)[0].split()) == set(states)
    assert re.findall(r"(\w+)=", re.findall(r'-W "(prefetch=.*?)"', completion)[0]) == keys
    assert set(re.findall(r'"(\w+)"', re.findall(r"states\[\] = \{(.*?)\}", source, re.S)[0])) == set(states)
    # What --json is for: who says so in the program, in its help and in its page.
    functions = re.findall(r"^static enum status (do_\w+)\(.*?^}", source, re.M | re.S)
    bodies = dict(re.findall(r"^static enum status do_(\w+)\(char \*\*\w+\)\n\{(.*?)^}", source, re.M | re.S))
    assert len(bodies) == len(functions) >= 18
    json = {name for name, body in bodies.items() if "as_json" in body}
    helped = re.findall(r"--json +what (.*?) say", source)[0]
    assert set(re.findall(r"\w+", helped)) - {"and"} == json
    manual = read(ROOT / "docs/man/dsmctl.8").partition('", " \\-\\-json\n')[2].partition(".TP")[0]
    assert set(re.findall(r"^\.BR? (\w+)", manual, re.M)) == json


def test_completion_offers_what_the_command_has() -> None:
    source = read(DAEMON / "dsmctl.c")
    letters = {letter: name for name, letter in re.findall(r'^\t\t\{ "([a-z]+)", \w+, NULL, \'(\w)\' \}', source, re.M)}
    commands = re.findall(r'^\t\{ "([a-z]+)", do_\w+, "(\w+)"', source, re.M)
    assert len(letters) == 10 and len(commands) == 18
    wanted = {name: {f"--{letters[letter]}" for letter in given + "Vh"} for name, given in commands}
    asked = '. "$1"; shift; COMP_WORDS=(dsmctl "$@"); COMP_CWORD=$#; _dsmctl; echo "${COMPREPLY[@]}"'
    for words, options in [
        *(([name, "web"], options) for name, options in wanted.items()),
        (["--json", "top"], wanted["top"]),
        (["--folder", "/tmp"], {f"--{name}" for name in letters.values()}),
        ([], {f"--{name}" for name in letters.values()}),
    ]:
        said = subprocess.run(
            ["bash", "-c", asked, "bash", DAEMON / "dsmctl.bash", *words, "--"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert set(said.split()) == options, words


def test_every_state_is_described() -> None:
    states = re.findall(r'^\t\[DSM_WORKER_\w+\] = "([a-z]+)"', read(DAEMON / "worker_state.c"), re.M)
    assert len(states) == 6
    manual = read(ROOT / "docs/man/dsmd.8").partition(".SH STATES")[2]
    for state in states:
        assert re.search(rf"^\.BR? {state}\b", manual, re.M), state
