# SPDX-License-Identifier: GPL-2.0
"""lab/rack for people: boot, create, show, shell, run, put, get, console, logs, status, meter, cable, poweroff."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import socket
import subprocess
import sys
import termios
import time
import tty
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console as Terminal
from rich.table import Table

from lab.complaints import consoles
from lab.description import RackDescription, known_racks
from lab.errors import LabError
from lab.guest import Guest
from lab.host import Host
from lab.network import Cable
from lab.rack import Rack
from lab.state import StateDirectory, newest_logs, running_racks

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)
terminal = Terminal()

Where = Annotated[str, typer.Argument(metavar="HOST[:GUEST]", help="a host (its dom0), or a guest on it")]
RackOption = Annotated[str, typer.Option("--rack", "-r", help="name of the rack; needed only when several run")]

# Ctrl-], as in telnet and xl console.
ESCAPE = b"\x1d"


def chosen(rack: str) -> str:
    """The rack of that name, or the only one that runs; "" if none does. Raises LabError when several do."""
    running = running_racks()
    if not rack and len(running) > 1:
        raise LabError(f"several racks run ({', '.join(running)}): say which with --rack")
    return rack or "".join(running)


def find(where: str, rack: str = "") -> tuple[Rack, Host, Guest | None]:
    """The host and guest that HOST[:GUEST] names, in the rack that runs. Raises LabError."""
    name = chosen(rack)
    if not name:
        raise LabError("no rack runs; 'lab/rack boot' starts one")
    attached = Rack.attach(name)
    host_name, _, guest = where.partition(":")
    host = attached.host(host_name or None)
    return attached, host, host.guest(guest) if guest else None


@app.command()
def boot(
    rack: Annotated[str, typer.Argument(help="a name from lab/racks, or a TOML file")] = "one-host",
) -> None:
    """Boot a rack in the background and return when it is up."""
    # lab/rack itself does this, outside of the sandbox; here only when somebody runs the module by hand.
    raise LabError(f"use the command lab/rack: 'lab/rack boot {rack}'")


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    where: Where,
    command: Annotated[list[str], typer.Argument(help="the command and its arguments; one word is a line for sh")],
    rack: RackOption = "",
    timeout: Annotated[float, typer.Option(help="seconds until the command is killed")] = 600,
) -> None:
    """Run a command in dom0 or in a guest; its output and exit code become ours."""
    _, host, guest = find(where, rack)
    machine = guest or host
    result = machine.run(
        command[0] if len(command) == 1 else command, timeout, on_line=lambda line: print(line, flush=True)
    )
    sys.stderr.write(result.err)
    raise typer.Exit(result.status)


@app.command()
def create(
    host: Annotated[str, typer.Argument(help="the host")],
    config: Annotated[Path, typer.Argument(help="an xl.cfg here", exists=True, dir_okay=False)],
    rack: RackOption = "",
    timeout: Annotated[float, typer.Option(help="seconds until it must be up")] = 180,
) -> None:
    """Start a guest from a configuration of this machine and wait until it is up."""
    _, machine, _ = find(host, rack)
    guest = machine.start_guest(config, timeout=timeout)
    created, ready = guest.timings["create_s"], guest.timings["ready_s"]
    print(f"{guest}: created in {created:.1f} s, up after {ready:.1f} s, address {guest.address()}")


@app.command()
def put(
    where: Where,
    source: Annotated[Path, typer.Argument(help="a file or a directory of this machine", exists=True)],
    destination: Annotated[str, typer.Argument(help="absolute path there")],
    rack: RackOption = "",
) -> None:
    """Copy a file or a directory to a host's dom0 or to a guest; its mode is kept."""
    if not destination.startswith("/") or destination.endswith("/"):
        raise LabError(f"{destination!r}: want the absolute path that {source.name} shall have there")
    _, host, guest = find(where, rack)
    (guest or host).put(source, destination)


@app.command()
def get(
    where: Where,
    source: Annotated[str, typer.Argument(help="path of a file there")],
    destination: Annotated[Path, typer.Argument(help="a file or a directory of this machine")] = Path(),
    rack: RackOption = "",
) -> None:
    """Copy a file from a host's dom0 or from a guest to here."""
    _, host, guest = find(where, rack)
    target = destination / Path(source).name if destination.is_dir() else destination
    fresh = target.with_name(f".{target.name}.part")  # what is there stays unless all of the new one has come
    try:
        (guest or host).get(source, fresh)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


@app.command()
def shell(where: Where, rack: RackOption = "") -> None:
    """Open a shell in dom0 or in a guest."""
    _, host, guest = find(where, rack)
    client = guest.ssh().client("-tt") if guest else host.client("-tt")
    raise typer.Exit(subprocess.run([*client, "exec bash -l"], check=False).returncode)


@app.command()
def console(where: Where, rack: RackOption = "") -> None:
    """Connect to a console: Xen and dom0's, or a guest's. Ctrl-] leaves."""
    _, host, guest = find(where, rack)
    if guest:
        client = host.client("-tt")
        raise typer.Exit(
            subprocess.run([*client, f"exec xl console {shlex.quote(guest.name)}"], check=False).returncode
        )
    print("Console of Xen and dom0; Ctrl-] leaves.", file=sys.stderr)
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(host.paths.socket("console")))
        _relay(stream)


def _relay(stream: socket.socket) -> None:
    """Copy between the terminal and a console until Ctrl-], or the end of either."""
    keyboard = sys.stdin.fileno()
    saved = termios.tcgetattr(keyboard) if os.isatty(keyboard) else None
    if saved:
        tty.setraw(keyboard)
    try:
        while True:
            ready, _, _ = select.select([keyboard, stream], [], [])
            if stream in ready:
                data = stream.recv(65536)
                if not data:
                    return
                os.write(sys.stdout.fileno(), data)
            if keyboard in ready:
                typed = os.read(keyboard, 1024)
                if not typed or ESCAPE in typed:
                    return
                stream.sendall(typed)
    finally:
        if saved:
            termios.tcsetattr(keyboard, termios.TCSADRAIN, saved)


@app.command()
def logs(
    where: Annotated[str, typer.Argument(metavar="[HOST[:GUEST]]", help="whose console; none: list the files")] = "",
    rack: RackOption = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="how many of the last lines")] = 40,
) -> None:
    """Show the last lines of a console, or where all logs are; also of a rack that boots, or does not run any more."""
    host, _, guest = where.partition(":")
    if guest:
        with contextlib.suppress(LabError):
            machine = find(where, rack)[2]
            assert machine is not None
            if tail := machine.console_tail(lines):
                print(tail, end="")
                return
    folder = newest_logs(chosen(rack))
    if not where:
        for path in sorted(folder.iterdir()):
            print(f"{path.stat().st_size:>10}  {path}")
        return
    log = folder / f"{host}-{guest or 'console'}.log"
    if not log.is_file():
        raise LabError(f"no console of {where} in {folder}: it has {', '.join(path.name for path in consoles(folder))}")
    print("\n".join(log.read_text(errors="replace").splitlines()[-lines:]))


@app.command()
def status(rack: RackOption = "") -> None:
    """Show the racks that run, their hosts and guests; and which racks can be booted."""
    running = [rack] if rack else running_racks()
    for name in running:
        try:
            _print_status(Rack.attach(name))
        except LabError as error:
            if rack:
                raise
            print(f"rack {name}: {error}")
    print(f"{'no rack runs; ' if not running else ''}racks to boot: {', '.join(known_racks())}")


def _print_status(rack: Rack) -> None:
    state = StateDirectory(rack.description.name).read()
    table = Table(
        title=f"rack {rack.description.name}, since {state.started}, logs in {_relative(rack.logs)}",
        title_justify="left",
    )
    for column in ("host", "nodes (CPUs, MiB)", "dom0 up after", "domains"):
        table.add_column(column)
    for host in rack.hosts:
        nodes = " ".join(
            f"{index}:({node.cpus}, {node.memory_mib})" for index, node in enumerate(host.description.nodes)
        )
        try:
            domains = host.run("xl list | tail -n +2", timeout=20).out.strip()
        except LabError as error:
            domains = f"does not answer: {error}"
        table.add_row(host.description.name, nodes, f"{host.timings.get('dom0_ready_s', 0):.1f} s", domains)
    terminal.print(table)


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@app.command()
def meter(
    host: Annotated[str, typer.Argument(help="the host")] = "",
    seconds: Annotated[float, typer.Option(min=0.1, help="how long to count")] = 5,
    every: Annotated[int, typer.Option(min=1, max=1 << 20, help="count every N-th access")] = 16,
    all_code: Annotated[bool, typer.Option("--all", help="kernels and Xen too, not only user programs")] = False,
    rack: RackOption = "",
) -> None:
    """Count for a while which CPU touches which node's memory."""
    _, machine, _ = find(host, rack)
    with machine.meter.running(every, user_only=not all_code):
        counts = machine.meter.during(lambda: time.sleep(seconds))
    nodes = len(machine.description.nodes)
    table = Table(title=f"sampled accesses, 1 of {every}, {seconds:g} s", title_justify="left")
    for column in ("CPU", "its node", *(f"to node {node}" for node in range(nodes)), "remote"):
        table.add_column(column, justify="right")
    for cpu, row in enumerate(counts.matrix()):
        share = counts.remote_pct([cpu])
        table.add_row(str(cpu), str(counts.cpu_node[cpu]), *map(str, row), "-" if share is None else f"{share:.1f} %")
    terminal.print(table)
    share = counts.remote_pct()
    print("no access was sampled" if share is None else f"remote: {share:.1f} %")


def _share(what: str) -> Any:
    """An option: how many of the frames, in percent."""
    return typer.Option(min=0, max=100, metavar="PERCENT", help=f"of the frames {what}")


@app.command()
def cable(
    host: Annotated[str, typer.Argument(metavar="[HOST]", help="whose cable; none: show all")] = "",
    *,
    cut: Annotated[bool, typer.Option("--cut", help="pull it out: nothing passes")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="put a good one in its place")] = False,
    delay: Annotated[float | None, typer.Option(min=0, metavar="MS", help="later by so much, each way")] = None,
    loss: Annotated[float | None, _share("do not arrive")] = None,
    damage: Annotated[float | None, _share("arrive with a wrong bit")] = None,
    double: Annotated[float | None, _share("arrive twice")] = None,
    reorder: Annotated[float | None, _share("are overtaken by the next one")] = None,
    rack: RackOption = "",
) -> None:
    """Show or change what a host's cable to the network between hosts does to frames, in both directions.

    What is not named stays as it is; --repair begins with a good cable. Only for racks that 'lab/rack boot' started.
    """
    if cut and repair:
        raise LabError("cut or repair, not both")
    changes: dict[str, object] = dict(asdict(Cable())) if repair else {}
    if cut:
        changes["up"] = False
    if delay is not None:
        changes["delay_s"] = delay / 1000
    for name, share in (("lost", loss), ("damaged", damage), ("doubled", double), ("reordered", reorder)):
        if share is not None:
            changes[name] = share / 100
    name = chosen(rack)
    if not name:
        raise LabError("no rack runs; 'lab/rack boot' starts one")
    if changes and not host:
        raise LabError("say whose cable")
    directory = StateDirectory(name)
    description = directory.read().description
    hosts = [description.host(host).name] if host else [each.name for each in description.hosts]
    table = Table(title=f"cables of rack {name}", title_justify="left")
    for column in ("host", "its cable", "frames"):
        table.add_column(column)
    for each in hosts:
        said = json.loads(_ask(directory, f"cable {each} {json.dumps(changes)}"))
        frames = ", ".join(f"{count} {what}" for what, count in said["counts"].items() if count)
        table.add_row(each, _describe(Cable(**said["cable"])), frames or "none")
    terminal.print(table)


def _describe(cable: Cable) -> str:
    """A cable in words."""
    if not cable.up:
        return "cut"
    words = [f"{cable.delay_s * 1000:g} ms"] if cable.delay_s else []
    words += [
        f"{share * 100:g} % {name}" for name in ("lost", "damaged", "doubled", "reordered") if (share := getattr(cable, name))
    ]
    return ", ".join(words) or "good"


def _ask(directory: StateDirectory, command: str) -> str:
    """A command for the rack's supervisor; what it answers behind "ok". Raises LabError for anything else."""
    with socket.socket(socket.AF_UNIX) as stream:
        try:
            stream.connect(str(directory.control))
        except OSError as error:
            raise LabError(
                f"rack {directory.name!r} takes no commands ({error}): it boots, ends, or belongs to a test"
            ) from error
        stream.sendall(f"{command}\n".encode())
        answer = stream.recv(4000).decode().strip()
    word, _, rest = answer.partition(" ")
    if word != "ok":
        raise LabError(f"rack {directory.name!r}: {rest if word == 'error' else answer or 'its supervisor has ended'}")
    return rest


@app.command()
def poweroff(
    rack: Annotated[str, typer.Argument(help="the rack; needed only when several run")] = "",
    kill: Annotated[bool, typer.Option("--kill", help="pull the plug instead of shutting down")] = False,
) -> None:
    """Power a rack off; returns when nothing of it is left."""
    running = running_racks()
    names = [rack] if rack else running
    if not names:
        print("no rack runs")
        return
    if len(names) > 1:
        raise LabError(f"several racks run ({', '.join(running)}): say which")
    directory = StateDirectory(names[0])
    if not directory.alive():
        raise LabError(f"rack {names[0]!r} does not run")
    _ask(directory, "kill" if kill else "poweroff")
    directory.wait_released()
    print(f"rack {names[0]} is off")


@app.command()
def show(rack: Annotated[str, typer.Argument(help="a name from lab/racks, or a TOML file")]) -> None:
    """Check a rack's description and show it."""
    description = RackDescription.load(rack)
    for host in description.hosts:
        print(
            f"{host.name}: {host.cpus} CPUs, {host.memory_mib} MiB, dom0 {host.dom0.memory_mib} MiB on node {host.dom0.node}"
        )
        for index, node in enumerate(host.nodes):
            cpus, distances = list(host.cpus_of(index)), list(host.distances[index])
            print(f"  node {index}: CPUs {cpus}, {node.memory_mib} MiB, distances {distances}")
        if wire := description.wire(host.name):
            print(f"  network: {wire.address()}, {wire.mac}, MTU {wire.mtu}")


def main() -> int:
    """Entry point; errors of the lab become one line and exit code 1."""
    try:
        app(prog_name="lab/rack")
    except LabError as error:
        print(f"rack: {error}", file=sys.stderr)
        return 1
    return 0
