# SPDX-License-Identifier: GPL-2.0
"""What dsmd-host refuses before a guest is made: hosts that differ, that are not there, certificates that are not right.

In `make test`: these are promises, and nothing in them rests on who is quick.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.dsmd import test_dsmd as parts
from tests.unit.dsmd.played_hosts import (
    ADDRESS,
    OTHER,
    PATIENCE,
    XEN,
    Site,
    enable,
    host_program,
    ranges,
    running,
    until,
)
from tests.unit.dsmd.test_dsmd_process import programs


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    yield from running(tmp_path, 2)


def test_enable_says_what_it_finds(site: Site) -> None:
    alpha, beta = site.hosts.values()
    plain = dict(XEN)
    beta.domains[9] = f"{OTHER} mail 0"
    for xen, more, error, text in (
        ({"version": "4.21.0"}, {}, "xen-version", "host beta has Xen 4.21.0 (DSM 2), this host 4.20.3-pre (DSM 2)"),
        ({"abi": "3"}, {}, "xen-version", "(DSM 3)"),
        ({"features": "5 7"}, {}, "cpu", "CPUID word 0=0x2: mask them in the guest's cpuid"),
        (
            {"features": "4 0"},
            {},
            "cpu",
            "host beta: its CPUs lack features that the guest is shown, CPUID word 0=0x3, word 1=0x1: ",
        ),
        ({"hap": "0"}, {}, "page-size", "host beta has no hardware assisted paging"),
        ({"free": "65536"}, {}, "memory-there", "host beta: 65536 KiB are free, "),
        ({}, {"name": "mail"}, "name-taken", "host beta: domain 9 is called mail, too"),
        ({"fails": "find_name"}, {}, "internal", "host beta: which names there are: Input/output error"),
        ({"fails": "uuid"}, {"name": "mail"}, "internal", "host beta: which names there are: Input/output error"),
        ({}, {"ranges": ranges("gamma")}, "unknown-host", "gamma: no host of "),
        ({}, {"ranges": ranges("alpha")}, "own-host", "alpha is this host"),
        ({}, {"ranges": [*ranges("beta"), ranges("beta")[1]]}, "sizes", "overlap"),
        ({}, {"ranges": ranges("beta")[:1]}, "internal", "no range has a host"),
        ({}, {"domid": 6}, "unknown-vm", "domain 6 is not"),
        ({}, {"vcpus": 0}, "internal", "vcpus: want a number, 1 to 512"),
        ({}, {"name": "a\nb"}, "internal", "name: want"),
    ):
        beta.facts.pop("fails", None)
        beta.write_xen(**(plain | xen))
        reply = enable(alpha, **more)
        assert (reply.get("error"), text in reply.get("text", "")) == (error, True), (xen, more, reply)
        assert not alpha.has() and not beta.has() and not alpha.pid()
    del beta.domains[9]
    beta.write_xen(**plain)
    assert enable(alpha)["ok"]
    assert enable(alpha)["ok"], "again"
    assert enable(alpha, ranges=[ranges("beta")[0] | {"size_kib": 32768}, ranges("beta")[1]])["error"] == "sizes"


def test_files_that_differ(tmp_path: Path) -> None:
    """Each is right by itself, and gives hosts other numbers: the guest is not made."""
    site = Site(tmp_path, 3)
    alpha, beta, gamma = site.hosts.values()
    config = gamma.config.read_text()
    for old, new in (("number = 0", "number = x"), ("number = 1", "number = 0"), ("number = x", "number = 1")):
        config = config.replace(old, new)
    gamma.config.write_text(config)
    head, *tables = beta.config.read_text().split("[[host]]")
    beta.config.write_text("[[host]]".join([head, *tables[:2]]))
    for host in (alpha, beta, gamma):
        host.start()
    for there, why in (
        ("gamma", "host gamma: in its dsm.toml number 0 is beta, in the one here alpha"),
        ("beta", "host beta: its dsm.toml has 2 hosts, the one here 3"),
    ):
        reply = enable(alpha, there)
        assert (reply["error"], reply["text"]) == ("internal", why)
        assert not any(host.has() for host in (alpha, beta, gamma))
    site.end()


def test_a_host_that_is_not_there(site: Site) -> None:
    alpha, beta = site.hosts.values()
    beta.kill()
    reply = enable(alpha)
    assert reply["error"] == "no-dsmd-there" and f"127.0.0.2, port {site.ports['beta']}" in reply["text"]
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        silent.bind((ADDRESS["beta"], site.ports["beta"]))
        silent.listen()
        begin = time.monotonic()
        reply = enable(alpha)
        assert reply["error"] == "unreachable" and "within 2000 ms" in reply["text"]
        assert time.monotonic() - begin < 10
    assert not alpha.has() and not alpha.pid()


@pytest.mark.parametrize(
    ("name", "made", "text", "status"),
    [
        (
            "alpha",
            "alpha:expired",
            "alpha.pem: certificate has expired, 0 above the peer's; the clock here says {now}",
            2,
        ),
        (
            "alpha",
            "alpha:later",
            "alpha.pem: certificate is not yet valid, 0 above the peer's; the clock here says {now}",
            3,
        ),
        ("alpha", "beta", "beta", 2),
        ("nobody", "alpha", "nobody", 2),
    ],
    ids=["expired", "not valid yet", "of another host", "of a host that the file does not have"],
)
def test_papers_that_the_others_would_refuse(tmp_path: Path, name: str, made: str, text: str, status: int) -> None:
    """dsmd-host does not start with them, and says what is wrong. A clock that is set later makes a certificate valid:
    with 3 systemd tries again, with 2 it does not."""
    unit = (parts.DSM / "host" / "dsmd-host.service").read_text(encoding="utf-8")
    assert {"Restart=always", "RestartPreventExitStatus=2"} < set(unit.splitlines())
    site = Site(tmp_path, 2)
    folder = tmp_path / "papers"
    folder.mkdir()
    subprocess.run([programs()[2], folder, made], check=True)
    host = site.alpha
    config = host.config.read_text().replace(f"{tmp_path}/ca.pem", f"{folder}/ca.pem")
    for ending in ("pem", "key"):
        config = config.replace(f"{tmp_path}/alpha.{ending}", f"{folder}/{made.partition(':')[0]}.{ending}")
    host.config.write_text(config.replace('self = "alpha"', f'self = "{name}"'))
    for words in ((), ("--check",)):
        done = subprocess.run(
            [host_program(), *words, "-c", host.config, "-f", host.run, "-l", host.socket],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        now = time.strftime("%Y-%m-%d", time.gmtime())
        assert (done.returncode, text.replace("{now}", now) in done.stderr) == (status, True), done


@pytest.mark.parametrize(
    ("file", "becomes", "text"),
    [
        ("certificate", "nowhere.pem", "{0}/nowhere.pem: No such file or directory"),
        ("certificate", "empty", "{0}/empty: no certificate of PEM is in it"),
        ("certificate", "alpha.key", "{0}/alpha.key: no certificate of PEM is in it"),
        ("certificate", ".", "{0}/.: no certificate of PEM is in it"),
        ("ca", "empty", "{0}/empty: no certificate of PEM is in it"),
        ("ca", "nowhere.pem", "{0}/nowhere.pem: No such file or directory"),
        ("key", "nowhere.key", "{0}/nowhere.key: No such file or directory"),
        ("key", "empty", "{0}/empty: no private key of PEM is in it"),
        ("key", "beta.key", "{0}/beta.key: it is not the key of {0}/alpha.pem"),
    ],
    ids=lambda value: value if "{" not in value else "",
)
def test_papers_that_are_none(tmp_path: Path, file: str, becomes: str, text: str) -> None:
    """Words for who has typed a wrong name, not those of a library."""
    host = Site(tmp_path, 2).alpha
    (tmp_path / "empty").touch(0o600)
    config = re.sub(rf'^{file} = ".*"$', f'{file} = "{tmp_path}/{becomes}"', host.config.read_text(), flags=re.M)
    host.config.write_text(config)
    done = subprocess.run([host_program(), "-k", "-c", host.config], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith(f"dsmd-host: {text.format(tmp_path)}"), done


def test_papers_of_another_host_there(site: Site) -> None:
    """Each end has a file that is right by itself, and they differ in who beta is: no guest is made, and it is said why."""
    alpha, beta = site.hosts.values()
    beta.kill()
    config = beta.config.read_text().replace(f"{site.folder}/beta.", f"{site.folder}/stranger.")
    beta.config.write_text(config.replace('certificate_names = ["beta"]', 'certificate_names = ["stranger"]'))
    beta.start()
    reply = enable(alpha)
    assert reply["error"] == "unreachable", reply
    assert "not the names of that host alone in subjectAltName: stranger; certificate_names: beta" in reply["text"], reply
    assert not alpha.has() and not beta.has() and not alpha.pid()
    # Of names that are long those are said that there is room for.
    names = ", ".join(f'"{letter * 63}.example"' for letter in "abcdefg")
    alpha.kill()
    alpha.config.write_text(alpha.config.read_text().replace('["beta"]', f'["beta", {names}]'))
    alpha.start()
    text = enable(alpha)["text"]
    assert re.search(r"certificate_names: beta a{30,63}\b", text) and "b" * 9 not in text, text


def test_papers_of_another_ca(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each end says who the other is, and that it is the CA: it was no time limit."""
    alpha, beta = site.hosts.values()
    beta.kill()
    folder = tmp_path_factory.mktemp("papers")
    subprocess.run([programs()[2], folder, "alpha", "beta"], check=True)
    config = beta.config.read_text()
    for name in ("ca.pem", "beta.pem", "beta.key"):
        config = config.replace(f"{site.folder}/{name}", f"{folder}/{name}")
    beta.config.write_text(config)
    beta.start()
    words = "a stranger at the address of host {} was turned away: it does not accept us: "
    for here, there in ((alpha, beta), (beta, alpha)):
        (row,) = (row for row in here.ask("hosts")["hosts"] if row["host"] == there.name)
        assert row["state"] == "unreachable" and "): no connection: certificate" in row["text"], row
        assert "no CA of ours (ca of dsm.toml) has signed it" in row["text"], row
    until(lambda: words.format("alpha") in beta.said() and words.format("beta") in alpha.said(), "nobody was turned away")


def test_papers_with_fewer_names(tmp_path: Path) -> None:
    """A file may have names that the certificate does not have yet, or any more: one of them is enough, here and there."""
    site = Site(tmp_path, 2)
    alpha, beta = site.hosts.values()
    for host in (alpha, beta):
        config = host.config.read_text()
        for name in site.hosts:
            config = config.replace(f'["{name}"]', f'["old.{name}", "{name}", "new.{name}"]')
        host.config.write_text(config)
        done = subprocess.run([host_program(), "-k", "-c", host.config], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done
        host.start()
    assert enable(alpha)["ok"]
    assert beta.has()
    site.end()


@pytest.mark.parametrize(
    ("hosts", "status", "text"),
    [
        (1, 2, "host: there are 2 to 16 tables, [[host]], and here 1\n"),
        (16, 0, ""),
        (17, 2, "host: there are 2 to 16 tables, [[host]], and here 17\n"),
    ],
)
def test_how_many_hosts(tmp_path: Path, hosts: int, status: int, text: str) -> None:
    host = Site(tmp_path, 1).alpha
    more = "".join(
        f'[[host]]\nname = "h{number}"\nnumber = {number}\naddress = "127.0.1.{number}"\nport = 7100\n'
        f'certificate_names = ["h{number}.example"]\n'
        for number in range(1, hosts)
    )
    host.config.write_text(host.config.read_text() + more)
    done = subprocess.run([host_program(), "-k", "-c", host.config], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.endswith(text)) == (status, True), done
    assert bool(done.stderr) == bool(text), done
