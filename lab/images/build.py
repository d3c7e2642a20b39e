# SPDX-License-Identifier: GPL-2.0
"""Builds the images of the lab: dom0's disk and the guests' initramfs, from one Debian root, Xen's tools and our overlays.

Runs in the sandbox as any user. Programs used: mke2fs (with libarchive, for tar input), ssh-keygen, dropbearkey.

The lab's ssh keys are made once per output directory and baked in: they protect nothing but a virtual machine that only this
machine's loopback interface reaches.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.images.tree import IMAGE_TIME, Tree

OVERLAYS = Path(__file__).parent

# dom0's disk, MiB: its content (about 120 MiB) and room for logs. Raw and sparse: unused blocks take no space.
DOM0_DISK_MIB = 512

# A file system of the lab is never mounted beside another: constant identifiers make the image reproducible.
DISK_UUID = "6d3f1a52-3b3c-4e55-9a3e-2f1d8c6e0a11"

# What no image needs: documentation, translations, package administration, files for compiling.
NOWHERE = (
    "/usr/share/doc", "/usr/share/man", "/usr/share/info", "/usr/share/locale", "/usr/share/bash-completion",
    "/usr/share/zsh", "/usr/share/lintian", "/usr/share/bug", "/usr/share/doc-base", "/usr/share/menu", "/usr/share/perl5",
    "/usr/share/common-licenses", "/usr/share/debconf", "/usr/share/gdb", "/usr/share/gcc", "/usr/share/polkit-1",
    "/usr/share/initramfs-tools", "/usr/include", "/usr/lib/pkgconfig", "/usr/share/pkgconfig", "/usr/lib/systemd",
    "/usr/lib/debug", "/usr/lib/x86_64-linux-gnu/gconv", "/usr/lib/x86_64-linux-gnu/ossl-modules",
    "/usr/lib/x86_64-linux-gnu/engines-3", "/usr/lib/python3", "/usr/lib/locale/C.utf8/LC_COLLATE", "/etc/init.d",
    "/etc/systemd", "/etc/bash_completion.d", "/var/cache/apt", "/var/lib/apt", "/var/lib/dpkg", "/usr/share/gcc",
    "/usr/lib/x86_64-linux-gnu/rsocket",
    # Users are not administrated: what libibverbs's own package wants for that.
    *(f"/usr/sbin/{verb}{noun}" for verb in ("add", "del") for noun in ("user", "group")),
    *(f"/usr/sbin/{noun}{verb}" for noun in ("user", "group") for verb in ("add", "del", "mod")),
    *(f"/usr/sbin/{name}" for name in ("newusers", "chpasswd", "chgpasswd", "vipw", "vigr", "pwck", "grpck", "pwconv",
                                       "pwunconv", "grpconv", "grpunconv")),
    *(f"/usr/bin/{name}" for name in ("passwd", "chage", "gpasswd", "chfn", "chsh", "expiry")),
    *(f"/usr/lib/x86_64-linux-gnu/lib{name}" for name in ("semanage.so.2", "sepol.so.2")),
)  # fmt: skip

# What only dom0 needs of the Debian root.
DOM0_ONLY = (
    "/usr/sbin/tc", "/usr/bin/less", "/usr/lib/tc", "/usr/bin/dbclient", "/usr/sbin/bridge", "/usr/bin/perl",
    "/usr/bin/debconf", "/usr/lib/udev", "/usr/share/terminfo", "/etc/pam.d", "/etc/security",
    "/usr/bin/ping", "/usr/bin/ping4", "/usr/bin/ping6", "/usr/bin/rdma", "/etc/libibverbs.d",
    "/usr/lib/x86_64-linux-gnu/libibverbs",
)  # fmt: skip

# And its libraries, of any version: dsmd's, and what they and ping want.
DOM0_LIBRARIES = tuple(
    f"/usr/lib/x86_64-linux-gnu/lib{name}.so"
    for name in ("ibverbs", "rdmacm", "mlx4", "mlx5", "mana", "efa", "hns", "ev", "json-c", "tomlplusplus", "stdc++",
                 "unistring", "idn2", "bsd", "md")
)  # fmt: skip

# What a guest has of Xen's tools: the clients of xenstore and their two libraries.
GUEST_TOOLS = (
    "/usr/bin/xenstore-", "/usr/bin/xenstore", "/usr/lib/libxenstore.so.", "/usr/lib/libxentoolcore.so.",
)  # fmt: skip

# Empty directories that both inits mount on or write to.
MOUNT_POINTS = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/log", "/var/lib", "/root")


@dataclass(frozen=True)
class Images:
    """Where the images are."""

    dom0: Path
    guest_initrd: Path
    ssh_key: Path


def build_images(
    *,
    target: Path,
    tools: Path,
    kernel: Path,
    out: Path,
    dom0_extra: Sequence[tuple[Path, str]] = (),
    guest_extra: Sequence[tuple[Path, str]] = (),
) -> Images:
    """Make all images.

    `target` is the tar of the Debian root, `tools` the DESTDIR of Xen's tools, `kernel` a bzImage, `out` the directory for
    dom0.img, guest.cpio.gz and ssh/. The extras are (file or directory of this machine, absolute path in the image).
    Raises FileNotFoundError for a missing input and CalledProcessError when a program fails (it has said why on stderr).
    """
    for path in (target, tools, kernel):
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or directory; build it first (make help)")
    out.mkdir(parents=True, exist_ok=True)
    key = make_keys(out / "ssh")
    base = Tree()
    base.add_tar(target)
    base.remove(*NOWHERE)
    for directory in MOUNT_POINTS:
        base.add_directory(directory)
    base.add_directory("/root", 0o700)
    base.add_directory("/tmp", 0o1777)
    base.add_link("/var/run", "/run")
    base.add_link("/usr/bin/awk", "mawk")
    base.add_path(OVERLAYS / "common", "/")
    base.add_bytes("/etc/dropbear/host_key", (out / "ssh/host_key").read_bytes(), 0o600)
    base.add_directory("/root/.ssh", 0o700)
    base.add_bytes("/root/.ssh/authorized_keys", key.with_suffix(".pub").read_bytes(), 0o600)

    images = Images(dom0=out / "dom0.img", guest_initrd=out / "guest.cpio.gz", ssh_key=key)
    guest = guest_tree(base, tools, guest_extra)
    guest.write_cpio(images.guest_initrd)
    dom0 = dom0_tree(base, tools, dom0_extra)
    dom0.add_path(kernel, "/boot/vmlinuz")
    dom0.add_path(images.guest_initrd, "/boot/guest.cpio.gz")
    write_disk(dom0, images.dom0)
    packed = images.guest_initrd.stat().st_size >> 20
    print(f"dom0 {dom0.size() >> 20} MiB, guest {guest.size() >> 20} MiB in {packed} MiB")
    return images


def dom0_tree(base: Tree, tools: Path, extra: Sequence[tuple[Path, str]]) -> Tree:
    """dom0's root: the base, all of Xen's tools, dom0's overlay, the extras."""
    tree = base.copy()
    tree.add_path(tools, "/")
    tree.remove(*NOWHERE)
    tree.remove_if(lambda path: path.startswith("/usr/lib/lib") and path.endswith(".a"))
    for path in ("/var/lib/xen", "/var/lib/xenstored", "/var/log/xen", "/boot"):
        tree.add_directory(path)
    tree.add_path(OVERLAYS / "dom0", "/")
    for source, destination in extra:
        tree.add_path(source, destination)
    return tree


def guest_tree(base: Tree, tools: Path, extra: Sequence[tuple[Path, str]]) -> Tree:
    """A guest's root: the base less what only dom0 needs, xenstore's clients, the guest's overlay, the extras."""
    tree = base.copy()
    tree.remove(*DOM0_ONLY)
    tree.remove_if(lambda path: path.startswith(DOM0_LIBRARIES))
    clients = Tree()
    clients.add_path(tools, "/")
    for path, entry in clients:
        if path.startswith(GUEST_TOOLS):
            tree.add(path, entry)
    tree.add_path(OVERLAYS / "guest", "/")
    tree.add_link("/init", "usr/sbin/init")
    tree.add_device("/dev/console", 5, 1)
    for source, destination in extra:
        tree.add_path(source, destination)
    return tree


def write_disk(tree: Tree, image: Path) -> None:
    """Write `tree` as an ext2 file system, replacing `image` only when it is complete."""
    with tempfile.TemporaryDirectory(dir=image.parent) as scratch:
        tar, disk = Path(scratch) / "root.tar", Path(scratch) / "disk"
        tree.write_tar(tar)
        subprocess.run(
            ["mke2fs", "-q", "-F", "-t", "ext2", "-m", "0", "-L", "dom0", "-U", DISK_UUID,
             "-E", f"hash_seed={DISK_UUID},root_owner=0:0", "-d", str(tar), str(disk), f"{DOM0_DISK_MIB}M"],
            check=True,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(IMAGE_TIME), "E2FSPROGS_FAKE_TIME": str(IMAGE_TIME)},
        )  # fmt: skip
        disk.replace(image)


def make_keys(directory: Path) -> Path:
    """Make the lab's ssh keys unless they are there: id_ed25519 for people and tests, host_key for every machine."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    user, host, known = directory / "id_ed25519", directory / "host_key", directory / "known_hosts"
    if not user.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "xenuma-lab", "-f", str(user)], check=True)
    if not host.exists():
        subprocess.run(["dropbearkey", "-t", "ed25519", "-f", str(host)], check=True, stdout=subprocess.DEVNULL)
    public = subprocess.run(
        ["dropbearkey", "-y", "-f", str(host)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    line = next(line for line in public.splitlines() if line.startswith("ssh-ed25519 "))
    known.write_text("* " + " ".join(line.split()[:2]) + "\n")
    return user


def _pair(text: str) -> tuple[Path, str]:
    source, separator, destination = text.rpartition(":")
    if not separator or not destination.startswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r}: want SOURCE:/PATH/IN/IMAGE")
    return Path(source), destination


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: see --help."""
    parser = argparse.ArgumentParser(
        prog="python3 -m lab.images.build", description="Build dom0's disk and the guests' initramfs."
    )
    parser.add_argument("--target", type=Path, required=True, metavar="TAR", help="Debian root, as a tar archive")
    parser.add_argument(
        "--tools", type=Path, required=True, metavar="DIR", help="Xen's tools, installed with DESTDIR=DIR"
    )
    parser.add_argument("--kernel", type=Path, required=True, metavar="FILE", help="bzImage of dom0 and guests")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="where dom0.img, guest.cpio.gz and ssh/ go"
    )
    for name in ("dom0", "guest"):
        parser.add_argument(
            f"--{name}",
            type=_pair,
            action="append",
            default=[],
            metavar="SRC:/DST",
            help=f"also put SRC into {name}'s image",
        )
    options = parser.parse_args(arguments)
    try:
        build_images(
            target=options.target,
            tools=options.tools,
            kernel=options.kernel,
            out=options.out,
            dom0_extra=options.dom0,
            guest_extra=options.guest,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
