# SPDX-License-Identifier: GPL-2.0
"""Result files, contract 6: `build/results/<name>.json`.

A file is written whole or not at all (temporary name, then rename), so a reader never sees half of one. Concurrent
writers of the same name are not expected; the last one wins.

The form is fixed in `docs/formats/results.schema.json`.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from lab.artifacts import built
from lab.pipeline.paths import BUILD, REPO

# Where files go; XENUMA_RESULTS: elsewhere, so that what a test measures does not pass for a measurement (Makefile).
RESULTS = Path(os.environ.get("XENUMA_RESULTS") or BUILD / "results")

SCHEMA = REPO / "docs" / "formats" / "results.schema.json"


@dataclasses.dataclass(frozen=True)
class Metric:
    """One figure.

    `value` is None when it could not be measured; then `note` says why. `baseline` holds what was measured in the
    same run for comparison, `runs` the single measurements behind `value`.
    """

    metric: str
    value: float | None
    unit: str
    better: str = "none"
    baseline: Mapping[str, float | str] = dataclasses.field(default_factory=dict)
    runs: Sequence[float] = ()
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Result:
    """One file: a name, when and where it was measured, and its figures."""

    name: str
    when: str
    host: Mapping[str, Any]
    metrics: Sequence[Metric]

    def find(self, metric: str) -> Metric | None:
        """The figure of that name, or None."""
        return next((m for m in self.metrics if m.metric == metric), None)


class InvalidResult(ValueError):
    """A result file that does not follow contract 6; the text lists each problem."""


def from_runs(metric: str, runs: Iterable[float], unit: str, better: str, note: str = "") -> Metric:
    """A figure whose value is the median of `runs`; without runs it is 'not measured'."""
    values = [float(run) for run in runs]
    if not values:
        return Metric(metric, None, unit, better, note=note or "no run gave a value")
    return Metric(metric, statistics.median(values), unit, better, runs=values, note=note)


def now() -> str:
    """The time of day, UTC, as the files write it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _commit() -> str:
    command = ["git", "-C", str(REPO), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"


def host_info(emulated: bool = True) -> dict[str, Any]:
    """The machine, as `host` of a result: `emulated` says whether the measured system ran under TCG."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": memory // 2**20,
        "cpu_model": _cpu_model(),
        "kernel": platform.release(),
        "commit": _commit(),
        "emulated": emulated,
    }


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def problems(data: object) -> list[str]:
    """What is wrong with a decoded result file, one line each; empty if nothing.

    What follows the schema is looked at for two things more: JSON, unlike Python, has only finite numbers, and no figure may
    be there twice.
    """
    errors = sorted(_validator().iter_errors(data), key=lambda error: error.json_path)
    if errors or not isinstance(data, dict):
        return [f"{error.json_path.removeprefix('$').lstrip('.') or 'file'}: {error.message:.300}" for error in errors]
    try:
        json.dumps(data, allow_nan=False)
    except ValueError as error:
        return [f"not finite: {error}"]
    counted = collections.Counter(metric["metric"] for metric in data["metrics"])
    return [f"metrics: {name} is there {count} times" for name, count in counted.items() if count > 1]


def encode(result: Result) -> dict[str, Any]:
    """The result as plain JSON data; an empty note is left out."""
    metrics = []
    for metric in result.metrics:
        item = dataclasses.asdict(metric)
        item["baseline"], item["runs"] = dict(metric.baseline), list(metric.runs)
        if not metric.note:
            del item["note"]
        metrics.append(item)
    return {"name": result.name, "when": result.when, "host": dict(result.host), "metrics": metrics}


def decode(data: object, source: str) -> Result:
    """The opposite of `encode()`. Raises InvalidResult, with `source` and every problem in its text."""
    found = problems(data)
    if found or not isinstance(data, dict):
        raise InvalidResult(f"{source}: " + "; ".join(found))
    metrics = [Metric(**item) for item in data["metrics"]]
    return Result(data["name"], data["when"], data["host"], metrics)


def write(
    name: str,
    metrics: Sequence[Metric],
    directory: Path = RESULTS,
    emulated: bool = True,
    host: Mapping[str, Any] | None = None,
) -> Path:
    """Write `<directory>/<name>.json` and return its path.

    `host` defaults to this machine; keys given there are added. Raises InvalidResult rather than writing a file
    that no reader accepts, and OSError when the directory cannot be written.
    """
    result = Result(name, now(), {**host_info(emulated), **(host or {})}, metrics)
    data = encode(result)
    found = problems(data)
    if found:
        raise InvalidResult(f"{name}: " + "; ".join(found))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    temporary = path.with_suffix(f".json.{os.getpid()}")
    temporary.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def set_aside(path: Path) -> Path | None:
    """Move a result file to the folder "earlier" beside it, named by when it was measured. Nothing there: None.

    A file that is no valid result is kept, too, by when it was written. Raises OSError.
    """
    if not path.exists():
        return None
    try:
        when = read(path).when
    except InvalidResult:
        written = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
        when = written.strftime("%Y-%m-%dT%H:%M:%SZ")
    folder = path.parent / "earlier"
    folder.mkdir(exist_ok=True)
    stem = f"{path.stem}-{when.replace(':', '')}"
    names = (folder / f"{stem}{f'-{number}' if number else ''}.json" for number in itertools.count())
    to = next(name for name in names if not name.exists())
    path.rename(to)
    return to


def kept(
    name: str,
    metrics: Sequence[Metric],
    directory: Path = RESULTS,
    emulated: bool = True,
    host: Mapping[str, Any] | None = None,
) -> Path:
    """As write(), and what an earlier run or another case has left is set aside: a test says it of what it is about to judge.

    Raises InvalidResult, OSError.
    """
    set_aside(directory / f"{name}.json")
    return write(name, metrics, directory, emulated, host)


def failures(name: str, words: Sequence[str]) -> Metric:
    """`NAME.failures`: how often it went wrong, and how. Of a file in which figures are missing it says why they are."""
    note = "; ".join(words)[:2000] or "what ended it, or a part of it"
    return Metric(f"{name}.failures", len(words), "1", "lower", note=note)


def ended(name: str, metrics: Sequence[Metric], wrong: Sequence[str], begun: bool) -> int:
    """The end of a measurement in the lab: write and print what there is, and tell what went wrong. Exit status.

    What an earlier run has left is set aside, and stays as it is if nothing was `begun`. Raises InvalidResult, OSError.
    """
    if begun:
        found = [*metrics, failures(name, wrong)]
        path = kept(name, found, host={"built": built()})
        for metric in found:
            value = "not measured" if metric.value is None else f"{metric.value:.4g} {metric.unit}"
            print(f"{metric.metric:<42} {value:>14}  {dict(metric.baseline) or metric.note}")
        print(f"{name}: {path}")
    for words in wrong if begun else [*wrong, "nothing was measured, and nothing is written"]:
        print(f"{name}: {words}", file=sys.stderr)
    return 1 if wrong or not begun else 0


class Growing:
    """A result that is written anew with each figure. What an earlier run has left is set aside with the first one."""

    def __init__(self, name: str, directory: Path = RESULTS, host: Mapping[str, Any] | None = None) -> None:
        self.name, self.directory, self.host = name, directory, dict(host or {})
        self.metrics: list[Metric] = []

    def add(self, metric: Metric) -> tuple[Metric, ...]:
        """One more; returns all. Raises InvalidResult for one that can't be in the file, which stays as it was; OSError."""
        whole = [*self.metrics, metric]
        found = problems(encode(Result(self.name, now(), {**host_info(), **self.host}, whole)))
        if found:
            raise InvalidResult(f"{metric.metric}: " + "; ".join(found))
        if not self.metrics:
            set_aside(self.directory / f"{self.name}.json")
        self.metrics = whole
        write(self.name, whole, self.directory, host=self.host)
        return tuple(whole)


def read(path: Path) -> Result:
    """One result file. Raises InvalidResult for bad JSON or a bad form, OSError if it cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidResult(f"{path}: not JSON: {error}") from error
    result = decode(data, str(path))
    if result.name != path.stem:
        raise InvalidResult(f"{path}: name is {result.name!r}, not the file's")
    return result


def read_all(directory: Path = RESULTS) -> tuple[list[Result], list[str]]:
    """All results of a directory by name, and one line for each file that is not a valid one."""
    good: list[Result] = []
    bad: list[str] = []
    for path in sorted(directory.glob("*.json")):
        try:
            good.append(read(path))
        except (InvalidResult, OSError) as error:
            bad.append(str(error))
    return good, bad
