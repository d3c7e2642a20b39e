# SPDX-License-Identifier: GPL-2.0
"""Guests with CPUs on other hosts: how slow their clock has to be, their configuration, and their hosts, which are played."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.command import Done
from lab.errors import LabError, Malformed
from lab.far_guest import Shape, with_limits
from lab.span_guest import (
    LEASE_US,
    LIMITS,
    SCRIPT,
    SlowSite,
    SpanShape,
    cpus_of_threads,
    measured,
    slow_for,
    slow_hosts,
    stream_command,
)
from lab.spanning import CONFIGURATION
from tests.e2e.far_faults import PLAIN

PING = """20 packets transmitted, 20 received, 0% packet loss, time 4414ms
rtt min/avg/max/mdev = 0.376/{}/118.787/26.053 ms
"""


@pytest.mark.parametrize(
    ("ms", "slow"), [("0.500", 10), ("3.000", 11), ("14.392", 52), ("27.113", 98), ("500.000", 100)]
)
def test_slow(ms: str, slow: int) -> None:
    """Of a quiet machine as before; never more than Xen allows."""
    assert slow_for(PING.format(ms)) == slow


def test_no_answer() -> None:
    with pytest.raises(Malformed, match="100% packet loss"):
        slow_for("20 packets transmitted, 0 received, 100% packet loss, time 4414ms\n")


def test_guests_that_run_beside_each_other_have_addresses_of_their_own() -> None:
    """A guest's IPv4 address follows from that of its network card, and two with one would be asked in turn."""
    texts = (PLAIN, Shape().xl_cfg("beta"), SpanShape().xl_cfg("beta"))
    cards = [re.findall(r'"mac=([0-9a-f:]{17}),', text) for text in texts]
    assert all(len(each) == 1 for each in cards) and len({each[0] for each in cards}) == len(texts), cards


def test_configuration() -> None:
    """CPUs by node; those of a host that lends memory are at home, and not isolated."""
    two = SpanShape(lpj=7).xl_cfg("beta")
    assert '"host=beta", "size=128", "vcpus=1", "vdistances=21,10", "elastic=1", "remote_vcpus=1" ]' in two
    assert "isolcpus=domain,managed_irq,1 " in two and "maxvcpus = 2\n" in two and "lpj=7 " in two
    three = SpanShape(also=("gamma",), lenders=(2,)).xl_cfg("beta")
    assert '"host=gamma", "size=128", "vcpus=2", "vdistances=21,21,10", "elastic=1" ]' in three
    assert "isolcpus=domain,managed_irq,1 " in three and "maxvcpus = 3\n" in three
    four = SpanShape(cpus=2, kernel="/root/k", arguments="nohz_full=2-3").xl_cfg("beta")
    assert '"vcpus=0-1"' in four and '"vcpus=2-3"' in four and "isolcpus=domain,managed_irq,2-3 " in four
    assert 'kernel = "/root/k"' in four and 'nohz_full=2-3"' in four
    free = SpanShape(isolated=False).xl_cfg("beta")
    assert "isolcpus" not in free and "power_efficient" not in free
    assert " nowatchdog rcupdate.rcu_cpu_stall_timeout=300 " in free and "loglevel=1" in free
    # One that watches itself has Linux's own limits. The last loglevel counts.
    watched = SpanShape(watched=True).xl_cfg("beta")
    assert "watchdog" not in watched and "stall" not in watched and "isolcpus=domain,managed_irq,1 " in watched
    assert watched.rindex("loglevel=0 ") > watched.index("loglevel=1 ")


class PlayedHost:
    """A dom0 with files, in which a dsmd-host can be started."""

    def __init__(self, name: str) -> None:
        self.description = SimpleNamespace(name=name)
        self.files: dict[str, str] = {}
        self.programs: list[str] = []

    def put(self, source: Path, destination: str) -> None:
        """Certificates."""
        assert list(source.iterdir()) and destination

    def run(self, command: str, timeout: float = 60) -> Done:
        """A shell, as far as it is asked for."""
        if found := re.fullmatch(r"printf %s (.*?) ?(>>?)([^ >]+)", command, re.S):
            (text,) = shlex.split(found[1])
            self.files[found[3]] = (self.files.get(found[3], "") if found[2] == ">>" else "") + text
        elif command.startswith("cat "):
            return Done(0, self.files[command.split()[1]])
        elif command.startswith("ping "):
            return Done(0, PING.format("14.392"))
        elif found := re.fullmatch(r"\(setsid (.*) >>/var/log/dsmd-host.log 2>&1 </dev/null &\)", command):
            self.programs.append(found[1])
        elif command.startswith("test -S "):
            return Done(0 if self.programs else 1, "")
        return Done(0, "")


def test_hosts_with_a_slower_clock(tmp_path: Path) -> None:
    """By what ping says; each dsmd is told by the script, and dsm.toml has the limits of such guests."""
    hosts = [PlayedHost("alpha"), PlayedHost("beta")]
    wire = SimpleNamespace(address=lambda: "192.0.2.1")
    rack: Any = SimpleNamespace(hosts=hosts, description=SimpleNamespace(wire=lambda name: wire))
    site: Any = slow_hosts(rack, tmp_path)
    assert site.slow == 52 and [site.home, site.other] == hosts and site.third is None
    for number, host in enumerate(hosts):
        assert host.programs == ["dsmd-host -d /root/slow-dsmd"]
        assert '"slow": 52, "lease_us": 4000, ' in host.files["/root/slow-dsmd"]
        found = tomllib.loads(host.files[CONFIGURATION])
        assert found["limits"] == {**LIMITS, "clock_error_us": 100000}
        assert found["self"] == host.description.name and len(found["host"]) == 2, number
        assert found["class_u"] is False
    (tmp_path / "again").mkdir()
    slow_hosts(rack, tmp_path / "again", class_u=True)
    assert all(tomllib.loads(host.files[CONFIGURATION])["class_u"] is True for host in hosts)


def test_what_a_dsmd_is_told(tmp_path: Path) -> None:
    """By the script: the guest's description with some keys more, and all other words as they were."""
    given = {"name": "far", "vcpus": 2}
    description, dsmd = tmp_path / "vm.json", tmp_path / "dsmd"
    for text in (json.dumps(given), json.dumps(given).replace("{", "{ ", 1)):
        description.write_text(text, encoding="utf-8")
        dsmd.write_text('#!/bin/sh\necho "$#" "$1" "$2"\nfor last; do :; done\ncat "$last"; rm "$last"\n', encoding="utf-8")
        dsmd.chmod(0o755)
        script = SCRIPT.replace("SLOW", "13")
        words = ["sh", "-c", script, "slow-dsmd", "-f", "/run/dsmd", str(description)]
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "PATH": path})
        first, _, rest = done.stdout.partition("\n")
        assert first == "3 -f /run/dsmd"
        assert json.loads(rest) == {"slow": 13, "lease_us": LEASE_US, "keepalive_ms": 60000, **given}
        assert description.read_text(encoding="utf-8") == text


def test_a_limit_that_is_not_there() -> None:
    with pytest.raises(LabError, match="has question_ms 0 times"):
        with_limits("[limits]\ndeadline_ms = 7\n", {"deadline_ms": 8, "question_ms": 1})


def test_where_threads_have_run() -> None:
    line = "{} (a) b c) S " + "0 " * 35 + "{} 0 0\n"
    threads = line.format(7, 1) + line.format(8, 0)
    assert cpus_of_threads("0-1\n" + threads) == [1, 0]
    assert cpus_of_threads("0\n" + threads) == [0]  # CPU 1 is offline: who slept there is nowhere
    assert cpus_of_threads("0-1\n") == []
    for text in ("0\n7 (x) S 0 0\n", "0\n" + line.format(7, "x"), threads, ""):
        with pytest.raises(Malformed):
            cpus_of_threads(text)


def test_the_program_is_bound_to_all_cpus() -> None:
    words = stream_command((0, 1, 2, 3), 2)
    assert words.startswith("taskset -c 0,1,2,3 env OMP_PLACES=threads ") and words.endswith("--mib=2 --iterations=0")


def test_a_guest_is_told_how_quick_a_cpu_is() -> None:
    """By its own clock, which is slower: 2000.123 MHz of the hosts', 13 times slower."""
    home: Any = SimpleNamespace(run=lambda command, timeout=60.0: Done(0, "cpu_mhz                : 2000.123\n"))
    found = measured(SlowSite(home, home, home, None, 13), SpanShape(cpus=2))
    assert found.lpj == 2000123 * 13 * 1000 // 100 and found.cpus == 2 and f" lpj={found.lpj} " in found.xl_cfg("beta")
