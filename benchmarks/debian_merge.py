# SPDX-License-Identifier: GPL-2.0
"""A second OpenMP program of Debian: msgmerge, from the package gettext, which looks for similar messages with all threads.

Guests do not have it: it is the sandbox's own (lab/sandbox.packages), put into a guest with what it needs beside the C
library. Sandbox and guests are of one Debian. The catalogues are made here, the same on any machine, and so is its answer,
with any number of threads.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.debian_program import DISPLAY
from lab.elastic_guest import LIBGOMP
from lab.errors import CommandFailedError
from lab.guest import Guest
from lab.span_guest import around

PROGRAM = Path("/usr/bin/msgmerge")
FOLDER = "/tmp/msgmerge"  # in the guest
OLD, NEW = "old.po", "new.pot"
# What each Debian has, and the runtime that is to be seen.
OF_THE_GUEST = ("libc.so.", "libm.so.", "libgomp.so.", "ld-linux", "linux-vdso")
WORDS = ("node", "page", "host", "guest", "thread", "fault", "memory", "tick", "clock", "share", "lend", "move")
MESSAGES, LENGTH, SEED = 24, 10, 1
LONG = {"messages": 600, "domains": 30}  # a long run: each domain has a parallel region of its own
HEAD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ASCII\\n"\n\n'


def files(program: Path = PROGRAM) -> list[Path]:
    """The program and the libraries that a guest may lack. Raises CommandFailedError if it is not there, or lacks one."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if done.returncode or "not found" in done.stdout:
        raise CommandFailedError(f"ldd {program}: {done.stdout}{done.stderr}".strip())
    found = [Path(path) for path in re.findall(r"=> (/\S+)", done.stdout)]
    return [program, *(path for path in found if not path.name.startswith(OF_THE_GUEST))]


def _messages(source: random.Random, messages: int) -> tuple[str, str]:
    old = list(dict.fromkeys(" ".join(source.choices(WORDS, k=LENGTH)) for _ in range(messages)))
    new = [" ".join(word if source.random() < 0.85 else "more" for word in text.split()) for text in old]
    return (
        HEAD + "".join(f'msgid "{text}"\nmsgstr "{n}: {text.upper()}"\n\n' for n, text in enumerate(old)),
        HEAD + "".join(f'msgid "{text}"\nmsgstr ""\n\n' for text in dict.fromkeys(new)),
    )


def catalogues(messages: int = MESSAGES, seed: int = SEED, domains: int = 1) -> tuple[str, str]:
    """(a catalogue with translations, one of similar messages that wants some); the same text for the same numbers.

    `domains`: as gettext has them, each with so many messages of its own. msgmerge takes one after the other.
    """
    source = random.Random(seed)
    olds, news = zip(*(_messages(source, messages) for _ in range(domains)), strict=True)
    return _domains(olds), _domains(news)


def _domains(texts: Sequence[str]) -> str:
    """One catalogue of them; the first one is of the domain that has no name."""
    return texts[0] + "".join(f'domain "d{number}"\n\n{text}' for number, text in enumerate(texts[1:], 1))


def install(guest: Guest, scratch: Path, messages: int = MESSAGES, domains: int = 1) -> None:
    """Put all of it into the guest, with such catalogues; `scratch` is a folder of this machine that is not there yet."""
    scratch.mkdir()
    for file in files():
        shutil.copy(file, scratch / file.name)
    for name, text in zip((OLD, NEW), catalogues(messages, domains=domains), strict=True):
        (scratch / name).write_text(text, encoding="ascii")
    guest.put(scratch, FOLDER)


def command(cpus: Sequence[int] = (), folder: str = FOLDER, libgomp: str = LIBGOMP) -> str:
    """It prints the merged catalogue; its teams on its error output. Without `cpus`: on one, with Debian's own runtime."""
    words = f"{folder}/{PROGRAM.name} --quiet --no-wrap --output-file=- {folder}/{OLD} {folder}/{NEW}"
    if not cpus:
        return f"env OMP_NUM_THREADS=1 LD_LIBRARY_PATH={folder} {words}"
    return f"{around(cpus)} {DISPLAY} LD_LIBRARY_PATH={libgomp}:{folder} {words}"
