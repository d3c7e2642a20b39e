# SPDX-License-Identifier: GPL-2.0
"""The build: each step makes one result from named inputs, or finds it in the cache.

``python3 -m lab.pipeline.build [STEP...]`` in the sandbox builds everything, or some steps and what they need.
A result is keyed by the content of its inputs; build trees and object folders stay in the cache, so that a changed input is
an incremental build. ``build/artifacts/<step>`` links to the result in use.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tarfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from . import sources, trees
from .cache import StepResult, content_key, files_below, locked
from .paths import ARTIFACTS, CACHE, REPO
from .progress import Progress, StepFailed

JOBS = str(max(2, os.cpu_count() or 2))
# Steps at a time. Each has stretches that use one CPU (configure, link, an image): the other step fills the rest then.
SIDE_BY_SIDE = min(2, os.cpu_count() or 1)
OBJECTS = CACHE / "objects"
UAPI = REPO / "linux-guest" / "overlay" / "include" / "uapi"
# What a step's key also covers: the compiler and libraries (the sandbox), and this file's recipes.
RECIPES = Path(__file__)
QEMU = "qemu-system-x86_64"


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    inputs: Sequence[Path]  # files and folders of this repository
    make: Callable[[Step, Path, Progress], None]  # fills the result folder
    needs: Sequence[str] = ()  # steps whose results go in
    source: str = ""  # upstream source, by its name in pins.toml
    own_tree: bool = False  # it works in no tree of that source, or in one of its own

    @property
    def tree(self) -> str:
        """The source whose unpacked tree it works in, one step at a time; empty if nobody else does."""
        return "" if self.own_tree else self.source

    def key(self) -> str:
        words = [os.readlink(CACHE / "sandbox")]
        if self.source:
            words.append(archive(self.source).name)
        words += [result(name).path.name for name in self.needs]
        return content_key([*self.inputs, RECIPES], self.name, *words, base=REPO)


def archive(name: str) -> Path:
    found = sources.local(name)
    if found is None:
        raise StepFailed(f"the source of {name} is not in the cache; run 'make setup'")
    return found


def result(name: str) -> StepResult:
    return StepResult(name, STEPS[name].key())


def result_path(name: str) -> Path:
    return result(name).path


# --- recipes ------------------------------------------------------------------


def make_xen(step: Step, out: Path, progress: Progress) -> None:
    """The hypervisor: defconfig plus xenuma.config; a multiboot ELF32 image and its symbols."""
    build_xen(out, progress, "xen", [REPO / "xen" / "config" / "xenuma.config"])


def make_xen_debug(step: Step, out: Path, progress: Progress) -> None:
    """The same hypervisor with its assertions and its own checks of lock order."""
    folder = REPO / "xen" / "config"
    build_xen(out, progress, "xen-debug", [folder / "xenuma.config", folder / "debug.config"], variant="-debug")


def make_xen_stock(step: Step, out: Path, progress: Progress) -> None:
    """Upstream's hypervisor as it is, with the same options: what benchmarks compare with."""
    folder = REPO / "xen" / "config"
    build_xen(out, progress, "xen-stock", [folder / "xenuma.config", folder / "stock.config"], variant="-stock", parts=[])


def build_xen(
    out: Path,
    progress: Progress,
    name: str,
    fragments: Sequence[Path],
    *,
    variant: str = "",
    parts: Sequence[trees.Part] | None = None,
) -> None:
    with trees.prepared("xen", archive("xen"), progress, parts=parts, variant=variant) as tree:
        make = [
            "make",
            "-C",
            str(tree / "xen"),
            f"-j{JOBS}",
            "XEN_TARGET_ARCH=x86_64",
            "CC=ccache gcc",
            "HOSTCC=ccache gcc",
        ]
        config = tree / "xen" / ".config"
        asked = "".join(f.read_text(encoding="utf-8") for f in fragments)
        stamp = tree / ".xenuma" / "asked.config"
        if not config.is_file() or not stamp.is_file() or stamp.read_text(encoding="utf-8") != asked:
            progress.run(name, [*make, "defconfig"])
            config.write_text(config.read_text(encoding="utf-8") + asked, encoding="utf-8")
            stamp.write_text(asked, encoding="utf-8")
        # Leaves the file alone when nothing changes: a new one would rebuild everything.
        progress.run(name, [*make, "olddefconfig"])
        check_config(config, fragments)
        progress.run(name, make)
        (out / "xen.elf").write_bytes(gzip.decompress((tree / "xen" / "xen.gz").read_bytes()))
        shutil.copy2(tree / "xen" / "xen-syms", out)
        shutil.copy2(config, out / "config")


def check_config(config: Path, fragments: Sequence[Path]) -> None:
    """Every line of the fragments must have survived Kconfig: a lost one is a mistake that shows up late otherwise.

    A later fragment may say otherwise than an earlier one: its line counts.
    """
    have = set(config.read_text(encoding="utf-8").splitlines())
    asked: dict[str, tuple[str, str]] = {}
    for fragment in fragments:
        for line in fragment.read_text(encoding="utf-8").splitlines():
            if line.startswith("CONFIG_"):
                asked[line.split("=")[0]] = (fragment.name, line)
            elif line.startswith("# CONFIG_") and line.endswith(" is not set"):
                asked[line.split()[1]] = (fragment.name, line)
    lost = []
    for option, (name, line) in asked.items():
        unset = line.startswith("#")
        if (not unset and line not in have) or (unset and any(other.startswith(option + "=") for other in have)):
            lost.append(f"{name}: {line}")
    if lost:
        raise StepFailed(
            f"Kconfig dropped {len(lost)} options, their dependencies are not met:\n  " + "\n  ".join(lost)
        )


TOOLS_CONFIGURE = (
    "--prefix=/usr",
    "--libdir=/usr/lib",
    "--sysconfdir=/etc",
    "--localstatedir=/var",
    "--disable-docs",
    "--disable-stubdom",
    "--disable-qemu-traditional",
    "--disable-rombios",
    "--disable-seabios",
    "--disable-ovmf",
    "--disable-ipxe",
    f"--with-system-qemu=/usr/bin/{QEMU}",
    "--disable-pygrub",
    "--disable-golang",
    "--disable-ocamltools",
    "--disable-xsmpolicy",
    "--disable-pvshim",
    "--disable-systemd",
    "--with-xenstored=xenstored",
    "--with-sysconfig-leaf-dir=default",
)
TOOLS_FOLDERS = (
    "libs",
    "xs-clients",
    "xenstored",
    "misc",
    "hotplug",
    "console",
    "xl",
    "helpers",
    "tests/dsm",
    "tests/mem-range",
)
# Only the shared libraries: the static ones would compile each file a second time, and nothing here links with them.
TOOLS_LIBRARIES = ("TARGETS=lib$(LIB_FILE_NAME).so $(PKG_CONFIG_FILE)",)


def make_tools(step: Step, out: Path, progress: Progress) -> None:
    """Xen's tools, as far as dom0 needs them, installed below ``out``."""
    make = ["make", f"-j{JOBS}", "CC=ccache gcc", "HOSTCC=ccache gcc"]
    with trees.prepared("xen", archive("xen"), progress) as tree:
        env = {"PKG_CONFIG_DIR": str(tree / "tools" / "pkg-config")}
        if not (tree / "config" / "Tools.mk").is_file():
            progress.run("tools", ["./configure", *TOOLS_CONFIGURE], cwd=tree, env=env)
        for goal in (["all"], ["install", f"DESTDIR={out}"]):
            for folder in ("include", *TOOLS_FOLDERS):
                chosen = TOOLS_LIBRARIES if folder == "libs" else ()
                progress.run("tools", [*make, "-C", tree / "tools" / folder, *goal, *chosen], env=env)
            for library in (tree / "tools" / "libs").glob("*/lib*.so"):
                library.with_suffix(".a").touch()  # installed too, and pruned below
        words = [f"XEN={tree}", f"O={OBJECTS / 'dsmd'}", f"DESTDIR={out}"]
        progress.run("tools", ["make", f"-j{JOBS}", "-C", REPO / "dsm", "install", *words], env=env)
    prune_tools(out)


def prune_tools(out: Path) -> None:
    """Leave what runs: no static libraries, headers, documentation."""
    for folder in ("usr/include", "usr/share/doc", "usr/share/man", "usr/lib/pkgconfig"):
        shutil.rmtree(out / folder, ignore_errors=True)
    for library in out.rglob("*.a"):
        library.unlink()


def make_linux(step: Step, out: Path, progress: Progress) -> None:
    """One kernel for dom0 and guests: allnoconfig plus linux-guest/config/xenuma.config."""
    build_linux(out, progress, "linux", [REPO / "linux-guest" / "config" / "xenuma.config"])


def make_linux_lockdep(step: Step, out: Path, progress: Progress) -> None:
    """The same kernel with lockdep and the debugging of locks and memory."""
    folder = REPO / "linux-guest" / "config"
    build_linux(out, progress, "linux-lockdep", [folder / "xenuma.config", folder / "lockdep.config"])


def make_linux_kasan(step: Step, out: Path, progress: Progress) -> None:
    """That one with the address sanitizer and full preemption on top, for the guest tests without Xen."""
    folder = REPO / "linux-guest" / "config"
    fragments = [folder / "xenuma.config", folder / "lockdep.config", folder / "kasan.config"]
    build_linux(out, progress, "linux-kasan", fragments)


def make_linux_vsmp(step: Step, out: Path, progress: Progress) -> None:
    """The same kernel, with what CPUs of different hosts write in pages of its own."""
    folder = REPO / "linux-guest" / "config"
    build_linux(out, progress, "linux-vsmp", [folder / "xenuma.config", folder / "vsmp.config"])


def make_linux_nohz(step: Step, out: Path, progress: Progress) -> None:
    """The same kernel, whose CPUs can do without ticks."""
    folder = REPO / "linux-guest" / "config"
    build_linux(out, progress, "linux-nohz", [folder / "xenuma.config", folder / "nohz.config"])


def make_linux_torture(step: Step, out: Path, progress: Progress) -> None:
    """The same kernel, with modules that torture its locks and RCU."""
    folder = REPO / "linux-guest" / "config"
    build_linux(out, progress, "linux-torture", [folder / "xenuma.config", folder / "torture.config"])


def make_linux_watched(step: Step, out: Path, progress: Progress) -> None:
    """The same kernel, which watches itself for lockups and stalls."""
    folder = REPO / "linux-guest" / "config"
    build_linux(out, progress, "linux-watched", [folder / "xenuma.config", folder / "watched.config"])


def make_linux_stock(step: Step, out: Path, progress: Progress) -> None:
    """Upstream's kernel as it is, with the same options and events of the scheduler: what benchmarks compare with."""
    folder = REPO / "linux-guest" / "config"
    build_linux(out, progress, "linux-stock", [folder / "xenuma.config", folder / "stock.config"], variant="-stock", parts=[])


def build_linux(
    out: Path,
    progress: Progress,
    name: str,
    fragments: Sequence[Path],
    *,
    variant: str = "",
    parts: Sequence[trees.Part] | None = None,
) -> None:
    objects = OBJECTS / name
    objects.mkdir(parents=True, exist_ok=True)
    with trees.prepared("linux", archive("linux"), progress, parts=parts, variant=variant) as tree:
        make = [
            "make",
            "-C",
            str(tree),
            f"O={objects}",
            f"-j{JOBS}",
            "CC=ccache gcc",
            "HOSTCC=ccache gcc",
            "KBUILD_BUILD_USER=xenuma",
            "KBUILD_BUILD_HOST=lab",
        ]
        wanted = objects / "wanted.config"
        wanted.write_text("".join(f.read_text(encoding="utf-8") for f in fragments), encoding="utf-8")
        progress.run(name, [*make, "allnoconfig", f"KCONFIG_ALLCONFIG={wanted}"])
        check_config(objects / ".config", fragments)
        modules = "CONFIG_MODULES=y" in (objects / ".config").read_text(encoding="utf-8").splitlines()
        progress.run(name, [*make, "bzImage", *(["modules"] if modules else [])])
        shutil.copy2(objects / "arch" / "x86" / "boot" / "bzImage", out / "vmlinuz")
        shutil.copy2(objects / "System.map", out)
        for module in sorted(objects.rglob("*.ko")) if modules else ():
            shutil.copy2(module, out)
        shutil.copy2(objects / ".config", out / "config")


def make_libgomp(step: Step, out: Path, progress: Progress) -> None:
    headers = OBJECTS / "uapi"  # a place that is the same for each clone: configure's arguments decide whether it runs
    for file in files_below([UAPI]):
        trees.put(headers / file.relative_to(UAPI), file)
    build_libgomp(out, progress, "libgomp", trees.PARTS["libgomp"], [f"CPPFLAGS=-I{headers}"])


def make_libgomp_stock(step: Step, out: Path, progress: Progress) -> None:
    """libgomp as upstream has it, built the same way: what benchmarks compare with."""
    build_libgomp(out, progress, "libgomp-stock", [], [])


def build_libgomp(out: Path, progress: Progress, name: str, parts: Sequence[trees.Part], flags: Sequence[str]) -> None:
    objects = OBJECTS / name
    objects.mkdir(parents=True, exist_ok=True)
    triple = "x86_64-linux-gnu"
    variant = "" if parts else "-stock"
    with trees.prepared("libgomp", archive("gcc"), progress, parts=parts, variant=variant) as tree:
        stamp = objects / "configured-with"
        command = [
            str(tree / "libgomp" / "configure"),
            f"--build={triple}",
            f"--host={triple}",
            f"--target={triple}",
            "--disable-multilib",
            "--disable-werror",
            "--enable-shared",
            "--disable-static",
            "--prefix=/opt/xenuma",
            "CC=ccache gcc",
            "CXX=ccache g++",
            "GFORTRAN=/usr/bin/gfortran-14",
            "CFLAGS=-O2 -g",
            *flags,
        ]
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != " ".join(command):
            shutil.rmtree(objects)
            objects.mkdir()
            progress.run(name, command, cwd=objects)
            stamp.write_text(" ".join(command), encoding="utf-8")
        progress.run(name, ["make", f"-j{JOBS}"], cwd=objects)
        (out / "lib").mkdir()
        progress.run(
            name,
            ["strip", "--strip-debug", "-o", out / "lib" / "libgomp.so.1.0.0", objects / ".libs" / "libgomp.so.1.0.0"],
        )
    for link in ("libgomp.so.1", "libgomp.so"):
        (out / "lib" / link).symlink_to("libgomp.so.1.0.0")


QEMU_CONFIGURE = (
    "--target-list=x86_64-softmmu",
    "--prefix=/usr",
    "--without-default-features",
    "--without-default-devices",
    "--with-devices-x86_64=xenuma",
    "--enable-tcg",
    "--enable-plugins",
    "--enable-slirp",
    "--disable-install-blobs",
    "--disable-debug-info",
    "--disable-werror",
    "--disable-download",
    "--enable-trace-backends=nop",
    # Hardening of an emulator that runs only our own code; it costs time in the compiler and in the emulator.
    "--extra-cflags=-ftrivial-auto-var-init=uninitialized -fzero-call-used-regs=skip",
    "--cc=ccache gcc",
)


def make_qemu(step: Step, out: Path, progress: Progress) -> None:
    """The emulator, with its emulation of SVM mended (docs/decisions/0005) and the devices that the lab uses."""
    objects = OBJECTS / "qemu"
    objects.mkdir(parents=True, exist_ok=True)
    with trees.prepared("qemu", archive("qemu"), progress) as tree:
        command = [str(tree / "configure"), *QEMU_CONFIGURE]
        devices = (tree / "configs/devices/x86_64-softmmu/xenuma.mak").read_text(encoding="utf-8")
        asked = " ".join(command) + "\n" + devices
        stamp = objects / "configured-with"
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != asked:
            shutil.rmtree(objects)
            objects.mkdir()
            progress.run("qemu", command, cwd=objects)
            stamp.write_text(asked, encoding="utf-8")
        progress.run("qemu", ["ninja", "-j", JOBS, QEMU], cwd=objects)
        progress.run("qemu", ["strip", "--strip-debug", "-o", out / QEMU, objects / QEMU])


def make_meter(step: Step, out: Path, progress: Progress) -> None:
    """The NUMA meter. Of QEMU's source only the plugin header is needed."""
    include = OBJECTS / "meter"
    include.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive("qemu")) as tar:
        for member in tar:
            if member.name.endswith("/qemu-plugin.h"):
                stream = tar.extractfile(member)
                assert stream is not None
                (include / "qemu-plugin.h").write_bytes(stream.read())
                break
        else:
            raise StepFailed(f"{archive('qemu').name} has no qemu-plugin.h")
    progress.run(
        "meter",
        [
            "sh",
            "-ec",
            'exec gcc -O2 -g -fPIC -shared -Wall -Wextra -pthread -I"$1" $(pkg-config --cflags glib-2.0) '
            '"$2" -o "$3" $(pkg-config --libs glib-2.0)',
            "meter",
            include,
            REPO / "lab/meter/meter.c",
            out / "meter.so",
        ],
    )


def make_programs(step: Step, out: Path, progress: Progress) -> None:
    """Programs of benchmarks and tests that run in a guest, installed below ``out``."""
    for folder in PROGRAM_FOLDERS:
        objects = OBJECTS / "programs" / folder
        shutil.rmtree(objects, ignore_errors=True)
        shutil.copytree(REPO / folder, objects)
        progress.run(
            "programs",
            ["make", "-C", objects, f"-j{JOBS}", "install", f"DESTDIR={out}", f"UAPI={UAPI}", f"REPO={REPO}"],
        )


def make_images(step: Step, out: Path, progress: Progress) -> None:
    """dom0's disk and the guests' initramfs."""
    build_images(out, progress, "linux")


def make_images_lockdep(step: Step, out: Path, progress: Progress) -> None:
    """The same for guests that run the kernel with lockdep."""
    build_images(out, progress, "linux-lockdep")


def build_images(out: Path, progress: Progress, kernel: str) -> None:
    progress.run(
        "images",
        [
            sys.executable,
            "-m",
            "lab.images.build",
            "--target",
            CACHE / "target.tar",
            "--tools",
            result_path("tools"),
            "--kernel",
            result_path(kernel) / "vmlinuz",
            "--out",
            out,
            "--dom0",
            f"{REPO / 'configs'}:/etc/xen/configs",
            "--guest",
            f"{result_path('programs')}:/",
            "--guest",
            f"{result_path('libgomp') / 'lib'}:/opt/xenuma/lib",
        ],
        cwd=REPO,
    )


PROGRAM_FOLDERS = tuple(name for name in ("benchmarks", "tests/guest") if (REPO / name / "Makefile").is_file())
XEN = [REPO / "xen" / name for name in ("overlay", "hooks")]
DSM = [REPO / "dsm" / name for name in ("Makefile", "core", "transport", "daemon", "host")]
LINUX = [REPO / "linux-guest" / name for name in ("overlay", "hooks")]
IMAGES = [REPO / "lab/images", REPO / "configs", REPO / "lab/target.packages"]
INSTALLED = ("tools", "programs", "libgomp")

# In the order in which they begin: first what others need, and last what keeps all CPUs busy to its end.
STEPS = {
    step.name: step
    for step in (
        Step(
            "linux",
            "one kernel for dom0 and guests",
            [*LINUX, REPO / "linux-guest/config/xenuma.config"],
            make_linux,
            source="linux",
        ),
        Step(
            "libgomp-stock",
            "libgomp 14.2 as upstream has it",
            [],
            make_libgomp_stock,
            source="gcc",
            own_tree=True,
        ),
        Step(
            "libgomp",
            "libgomp 14.2, elastic",
            [REPO / "libgomp-patch", UAPI],
            make_libgomp,
            source="gcc",
        ),
        Step(
            "programs",
            "programs that run in a guest",
            [UAPI, *(p for name in PROGRAM_FOLDERS for p in files_below([REPO / name]) if p.suffix != ".py")],
            make_programs,
        ),
        Step("tools", "Xen's tools, dsmd", [*XEN, REPO / "toolstack", *DSM], make_tools, source="xen"),
        Step("images", "dom0's disk and the guests' initramfs", IMAGES, make_images, needs=(*INSTALLED, "linux")),
        Step(
            "xen",
            "the hypervisor",
            [*XEN, REPO / "xen/config/xenuma.config"],
            make_xen,
            source="xen",
        ),
        Step("meter", "the NUMA meter, a QEMU plugin", [REPO / "lab/meter"], make_meter, source="qemu", own_tree=True),
        Step("qemu", "the emulator", [REPO / "lab/emulator"], make_qemu, source="qemu"),
        Step(
            "linux-lockdep",
            "the kernel with lockdep",
            [*LINUX, *(REPO / "linux-guest/config" / f"{part}.config" for part in ("xenuma", "lockdep"))],
            make_linux_lockdep,
            source="linux",
        ),
        Step(
            "linux-kasan",
            "the kernel with lockdep and the address sanitizer",
            [*LINUX, REPO / "linux-guest/config"],
            make_linux_kasan,
            source="linux",
        ),
        Step(
            "linux-vsmp",
            "the kernel with hot data in pages of its own",
            [*LINUX, *(REPO / "linux-guest/config" / f"{part}.config" for part in ("xenuma", "vsmp"))],
            make_linux_vsmp,
            source="linux",
        ),
        Step(
            "linux-nohz",
            "the kernel whose CPUs can do without ticks",
            [*LINUX, *(REPO / "linux-guest/config" / f"{part}.config" for part in ("xenuma", "nohz"))],
            make_linux_nohz,
            source="linux",
        ),
        Step(
            "linux-torture",
            "the kernel with torture tests of locks and RCU",
            [*LINUX, *(REPO / "linux-guest/config" / f"{part}.config" for part in ("xenuma", "torture"))],
            make_linux_torture,
            source="linux",
        ),
        Step(
            "linux-watched",
            "the kernel that watches itself for lockups and stalls",
            [*LINUX, *(REPO / "linux-guest/config" / f"{part}.config" for part in ("xenuma", "watched"))],
            make_linux_watched,
            source="linux",
        ),
        Step(
            "images-lockdep",
            "disk and initramfs with that kernel",
            IMAGES,
            make_images_lockdep,
            needs=(*INSTALLED, "linux-lockdep"),
        ),
        Step(
            "xen-debug",
            "the hypervisor with assertions",
            [*XEN, REPO / "xen/config"],
            make_xen_debug,
            source="xen",
            own_tree=True,
        ),
        Step(
            "xen-stock",
            "the hypervisor as upstream has it",
            [REPO / "xen/config" / f"{part}.config" for part in ("xenuma", "stock")],
            make_xen_stock,
            source="xen",
            own_tree=True,
        ),
        Step(
            "linux-stock",
            "the kernel as upstream has it",
            [REPO / "linux-guest/config" / f"{part}.config" for part in ("xenuma", "stock")],
            make_linux_stock,
            source="linux",
            own_tree=True,
        ),
    )
}
OPTIONAL = (
    "xen-debug",
    "linux-lockdep",
    "linux-kasan",
    "linux-vsmp",
    "linux-nohz",
    "linux-torture",
    "linux-watched",
    "images-lockdep",
    "xen-stock",
    "linux-stock",
)


def wanted(names: Sequence[str]) -> list[str]:
    """The steps asked for and those they need, in order."""
    chosen = set(names or [name for name in STEPS if name not in OPTIONAL])
    for name in reversed(STEPS):
        if name in chosen:
            chosen.update(STEPS[name].needs)
    return [name for name in STEPS if name in chosen]


def startable(waiting: Sequence[str], running: Collection[str]) -> str | None:
    """The first of the waiting steps that may start now: what it needs is done, and nobody works in its tree."""
    unfinished = {*waiting, *running}
    trees_in_use = {STEPS[name].tree for name in running} - {""}
    for name in waiting:
        step = STEPS[name]
        if unfinished.isdisjoint(step.needs) and step.tree not in trees_in_use:
            return name
    return None


def build_step(name: str, progress: Progress) -> None:
    """Find the result of one step, or make it; ``build/artifacts`` then has it."""
    step = STEPS[name]
    with locked(f"step-{name}"):
        target = result(name)
        if target.complete:
            progress.cached(name)
            os.utime(target.path)
        else:
            begun = time.monotonic()
            progress.begin(name, step.title)
            with target.writing() as part:
                step.make(step, part, progress)
            progress.done(name, time.monotonic() - begun)
    point(ARTIFACTS / name, target.path)


def build(names: Sequence[str]) -> None:
    """Build the steps ``names`` (all but the optional ones if empty), SIDE_BY_SIDE at a time.

    When one fails, the others are stopped; the first failure is raised as StepFailed.
    """
    waiting = wanted(names)
    progress = Progress(len(waiting))
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        try:
            while waiting or running:
                while len(running) < SIDE_BY_SIDE and (name := startable(waiting, running.values())):
                    waiting.remove(name)
                    running[pool.submit(build_step, name, progress)] = name
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[ended]
                    ended.result()
        except BaseException:
            progress.stop()
            raise
    (CACHE / ".warm").touch()


def point(link: Path, target: Path) -> None:
    """Make ``link`` a symbolic link to ``target``, at once."""
    fresh = link.with_name(link.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print("usage: python3 -m lab.pipeline.build [STEP...]")
        print(f"steps: {', '.join(STEPS)}; all but the optional ones if none is named")
        return 0
    unknown = [name for name in sys.argv[1:] if name not in STEPS]
    if unknown:
        print(f"unknown step {', '.join(unknown)}; steps: {', '.join(STEPS)}", file=sys.stderr)
        return 2
    try:
        build(sys.argv[1:])
    except StepFailed as error:
        print(f"\nxenuma: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nxenuma: stopped; what is complete is kept, the next run goes on from there", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
