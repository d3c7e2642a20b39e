# SPDX-License-Identifier: GPL-2.0
"""lab/bootstrap says what is wrong with a host before hours are lost. Commands on PATH play the hosts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.pipeline.paths import REPO

UNREACHABLE = """echo "E: Failed to fetch http://mirror.test/debian/dists/trixie/InRelease  \\
Temporary failure resolving 'mirror.test'" >&2; exit 100"""
FULL = 'echo "tar: ./usr/lib/x: Cannot write: No space left on device" >&2; exit 2'
BROKEN = 'echo "E: Sub-process /usr/bin/dpkg returned an error code (1)" >&2; exit 100'
PLENTY = {
    "stat": 'case "$*" in *-f*) echo "100000 * 1048576 / 1048576" ;; *) exec /usr/bin/stat "$@" ;; esac',
    "awk": 'case "$*" in *MemAvailable*) echo 100000 ;; *) exec /usr/bin/awk "$@" ;; esac',
    "sudo": '[ "$1" = -v ] && exit 0; [ "$1" = -- ] && shift; exec "$@"',
    "dpkg-query": 'echo "install ok installed"',
    "apt-get": "exit 0",
    "mmdebstrap": "exit 0",
}


def bootstrap(
    tmp_path: Path, stand_ins: dict[str, str], *arguments: str, pass_fds: tuple[int, ...] = (), mirror: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run it with these commands before all others, these descriptors open, an empty cache, and a mirror or none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in {**PLENTY, **stand_ins}.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XENUMA_CACHE": str(tmp_path / "cache"),
        **({"XENUMA_MIRROR": "http://mirror.test/debian"} if mirror else {}),
    }
    return subprocess.run(
        [REPO / "lab" / "bootstrap", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
        pass_fds=pass_fds,
    )


MISSING = {"dpkg-query": "exit 1"}
OS_RELEASE = 'case "$*" in /etc/os-release)'
THE_REST = '*) exec /bin/cat "$@" ;; esac'
HOSTS = {
    "a good host": ({}, ("--check",), 0, ""),
    "little disk": (
        {"stat": 'echo "500 * 1048576 / 1048576"'},
        ("--check",),
        1,
        "xenuma: 500 MiB free below {cache}, 16000 MiB needed; free some, or set XENUMA_CACHE to another disk",
    ),
    "little memory to boot": (
        {"awk": "echo 1953"},
        ("--boots", "--check"),
        1,
        "xenuma: 1953 MiB of memory available, 7000 MiB needed\n",
    ),
    "little memory": (
        {"awk": "echo 1953"},
        ("--check",),
        0,
        "xenuma: 1953 MiB of memory available; what boots machines needs 7000 MiB\n",
    ),
    "enough memory": ({"awk": "echo 7000"}, ("--boots", "--check"), 0, ""),
    "another machine": ({"uname": "echo aarch64"}, ("--check",), 1, "this machine is aarch64; the lab needs an x86-64"),
    "no network, mmdebstrap missing": (
        {**MISSING, "apt-get": UNREACHABLE},
        (),
        1,
        "apt-get install mmdebstrap debian-archive-keyring mount failed: no network",
    ),
    "no network, mmdebstrap there": ({"mmdebstrap": UNREACHABLE}, (), 1, "making the sandbox failed: no network"),
    "disk full half-way": ({"mmdebstrap": FULL}, (), 1, "making the sandbox failed: no space left below {cache}"),
    "another failure": ({"mmdebstrap": BROKEN}, (), 1, "dpkg returned an error code (1)"),
    "a word it does not know": ({}, ("--chek",), 2, "lab/bootstrap --check"),
    "a word more": ({}, ("--check", "--nonsense"), 2, "xenuma: lab/bootstrap: no such argument: --nonsense\n"),
    "two things at once": ({}, ("--check", "--purge"), 2, "xenuma: lab/bootstrap: --check or --purge, not both\n"),
    "an older Debian": (
        {"cat": f'{OS_RELEASE} echo "ID=debian"; echo "VERSION_ID=\\"11\\"" ;; {THE_REST}'},
        ("--check",),
        0,
        "xenuma: this host is debian 11; only Debian 12 (bookworm) and 13 (trixie) are known to work\n",
    ),
    "what is made of Debian": (
        {"cat": f'{OS_RELEASE} echo "ID=ubuntu"; echo "VERSION_ID=\\"24.04\\"" ;; {THE_REST}'},
        ("--check",),
        0,
        "xenuma: this host is ubuntu 24.04; only Debian 12 (bookworm) and 13 (trixie) are known to work\n",
    ),
    "Debian 12": ({"cat": f'{OS_RELEASE} echo "ID=debian"; echo "VERSION_ID=12" ;; {THE_REST}'}, ("--check",), 0, ""),
}


@pytest.mark.parametrize(("stand_ins", "arguments", "status", "said"), HOSTS.values(), ids=HOSTS)
def test_what_it_says(
    tmp_path: Path, stand_ins: dict[str, str], arguments: tuple[str, ...], status: int, said: str
) -> None:
    """Exit status and message."""
    done = bootstrap(tmp_path, stand_ins, *arguments)
    assert done.returncode == status, done.stderr
    assert said.format(cache=tmp_path / "cache") in done.stderr
    assert said or not done.stderr


def made(cache: Path, *names: str) -> None:
    """Files (and folders, with a slash behind them, and links, with what they point to) in a cache."""
    cache.mkdir()
    for name in names:
        path, _, target = name.partition(" -> ")
        (cache / path).parent.mkdir(parents=True, exist_ok=True)
        if target:
            (cache / path).symlink_to(target)
        elif name.endswith("/"):
            (cache / name).mkdir()
        else:
            (cache / name).touch()


LINKS = ("sandbox -> sandbox-0123456789ab", "target.tar -> target-0123456789ab.tar")
WITHOUT_MARKER = (*LINKS, "sandbox-0123456789ab/bin/sh", "target-0123456789ab.tar", "sources/a.tar", ".warm", "home/.cache/x")
PURGES: dict[str, tuple[tuple[str, ...], set[str] | None, int, str, str]] = {
    "nothing": ((), None, 0, "xenuma: no cache at {cache}: nothing to remove\n", ""),
    "one that has begun": ((".xenuma-cache", "bootstrap.lock", "sandbox-0123456789ab.part/bin/sh"), None, 0, "", ""),
    "one from before the marker": (WITHOUT_MARKER, None, 0, "", ""),
    "all that it may have": (
        (".xenuma-cache", "target-00.tar.part", "times.json.new", "ccache/", "log/", "out/", "run/", "trees/", "objects/"),
        None,
        0,
        "xenuma: removing from {cache}, the cache of all clones: ",
        "",
    ),
    "somebody else's folder": (
        ("sources/a", "letters/a"),
        {"sources", "letters"},
        1,
        "",
        "xenuma: {cache} is no cache of this project: it has neither .xenuma-cache nor the links sandbox and target.tar; "
        "nothing is removed\n",
    ),
    "somebody else's sandbox": (
        ("sandbox/a", "target.tar", "trees/"),
        {"sandbox", "target.tar", "trees"},
        1,
        "",
        "is no cache",
    ),
    "one in somebody else's folder": (
        (*WITHOUT_MARKER, "letters/a", "a b", "sandbox-castle/a", "target-practice.tar.gz"),
        {"letters", "a b", "sandbox-castle", "target-practice.tar.gz"},
        0,
        "xenuma: the folder stays, with what is not ours: a b letters sandbox-castle target-practice.tar.gz\n",
        "",
    ),
}


@pytest.mark.parametrize("case", PURGES)
def test_what_a_purge_removes(tmp_path: Path, case: str) -> None:
    """Of a cache alone, and of that what has a name of ours."""
    before, after, status, said, complained = PURGES[case]
    cache = tmp_path / "cache"
    if before:
        made(cache, *before)
    done = bootstrap(tmp_path, {}, "--purge")
    left = {path.name for path in cache.iterdir()} if cache.exists() else None
    assert (done.returncode, left) == (status, after), done.stderr
    assert said.format(cache=cache) in done.stdout and complained.format(cache=cache) in done.stderr
    assert complained or not done.stderr


def test_a_purge_that_is_asked_how_it_works_removes_nothing(tmp_path: Path) -> None:
    made(tmp_path / "cache", ".xenuma-cache", "sources/a")
    done = bootstrap(tmp_path, {}, "--purge", "--help")
    assert (done.returncode, done.stderr) == (0, "") and "remove the cache, which all clones share" in done.stdout
    assert (tmp_path / "cache" / "sources" / "a").exists()


def test_a_look_at_the_host_makes_nothing(tmp_path: Path) -> None:
    assert bootstrap(tmp_path, {}, "--check").returncode == 0
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("before", "refused"),
    [
        (("letters/a",), True),
        (("sources/a",), True),
        ((), False),
        (("lost+found/",), False),  # a disk of its own
        (("bootstrap.lock", "log/"), False),
        (WITHOUT_MARKER, False),
    ],
)
def test_no_cache_is_begun_among_somebody_elses_files(tmp_path: Path, before: tuple[str, ...], refused: bool) -> None:
    """Which could have names that a purge removes. One of ours has the marker before it has anything else to remove."""
    cache = tmp_path / "cache"
    made(cache, *before)
    done = bootstrap(tmp_path, {"mmdebstrap": BROKEN})
    words = f"xenuma: {cache} has files, and is no cache of this project; set XENUMA_CACHE to a new folder or an empty one\n"
    assert (done.stderr == words) == refused and (cache / ".xenuma-cache").exists() != refused, done.stderr


ONE_LINE = "deb http://one.test/debian/ trixie main\ndeb http://one.test/debian-security trixie-security main"
CLOUD = """Types: deb deb-src
URIs: mirror+file:///etc/apt/mirrors/debian.list
Suites: trixie trixie-updates

Types: deb
URIs: mirror+file:///etc/apt/mirrors/debian-security.list
Suites: trixie-security"""
APT = {
    "one line each": (ONE_LINE, "http://one.test/debian", "http://one.test/debian-security"),
    "paragraphs": (f"Types: deb\nURIs: https://two.test/debian\n# {CLOUD.splitlines()[1]}", "https://two.test/debian", ""),
    "of a cloud": (CLOUD, "https://cloud.test/debian", "https://cloud.test/debian-security"),
    "somebody else's alone": ("deb [arch=amd64] https://docker.test/linux trixie stable", "", ""),
    "nothing": ("", "", ""),
}


@pytest.mark.parametrize(("apt", "main", "security"), APT.values(), ids=APT)
def test_the_mirrors_are_this_hosts(tmp_path: Path, apt: str, main: str, security: str) -> None:
    """As its apt has them; where there is none, it is said how to name one."""
    cat = f"""case "$*" in
/etc/apt/sources.list*) echo '{apt}' ;;
/etc/apt/mirrors/debian.list*)
  echo https://cloud.test/debian
  case "$*" in *security*) echo https://cloud.test/debian-security ;; esac ;;
/etc/apt/mirrors/*) exit 1 ;;
*) exec /bin/cat "$@" ;;
esac"""
    done = bootstrap(tmp_path, {"cat": cat, "mmdebstrap": "exit 1"}, mirror=False)
    written = tmp_path / "cache" / "sandbox.list"
    lines = written.read_text(encoding="utf-8").splitlines() if written.exists() else []
    assert done.returncode == 1
    if not main:
        assert "no Debian mirror in this host's apt configuration; set XENUMA_MIRROR=http://host/debian" in done.stderr
    else:
        assert f"deb {main} trixie main" in lines
    assert [line for line in lines if "security" in line] == (
        [f"{kind} {security} trixie-security main" for kind in ("deb", "deb-src")] if security else []
    )


def test_an_unreachable_server_is_named(tmp_path: Path) -> None:
    """Who has a proxy or a mirror to mend wants its name; and no half-made sandbox stands for a whole one."""
    done = bootstrap(tmp_path, {"mmdebstrap": UNREACHABLE})
    assert "mirror.test" in done.stderr
    assert not (tmp_path / "cache" / "sandbox").exists()


def test_descriptors_of_the_caller_are_not_passed_on(tmp_path: Path) -> None:
    """Mmdebstrap's hooks write to a descriptor by number, and dash knows numbers of one digit only."""
    told = tmp_path / "told"
    ends = [end for _ in range(6) for end in os.pipe()]
    lists = f'for fd in /proc/$$/fd/*; do echo "$(readlink "$fd")"; done >>{told}; exit 1'
    try:
        bootstrap(tmp_path, {"mmdebstrap": lists}, pass_fds=tuple(ends))
        inodes = {os.fstat(end).st_ino for end in ends}
    finally:
        for end in ends:
            os.close(end)
    text = told.read_text(encoding="utf-8")
    assert "bootstrap.lock" in text
    assert not [inode for inode in inodes if f"pipe:[{inode}]" in text], text
