# SPDX-License-Identifier: GPL-2.0
"""Result files, contract 6: `build/results/<name>.json`.

A file is written whole or not at all (temporary name, then rename), so a reader never sees half of one. Concurrent
writers of the same name are not expected; the last one wins.

The form is fixed in `docs/formats/results.schema.json`; `problems()` checks it here without that schema, so that a
benchmark needs nothing but Python, and a unit test proves that both agree.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Where files go; XENUMA_RESULTS: elsewhere, so that what a test measures does not pass for a measurement (Makefile).
RESULTS = Path(os.environ.get("XENUMA_RESULTS") or ROOT / "build" / "results")

BETTER = ("higher", "lower", "none")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_METRIC = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


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
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
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


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _metric_problems(item: object, where: str) -> list[str]:
    if not isinstance(item, dict):
        return [f"{where}: not an object"]
    found = []
    required = {"metric", "value", "unit", "better", "baseline", "runs"}
    found += [f"{where}: no {key}" for key in sorted(required - item.keys())]
    found += [f"{where}: unknown key {key}" for key in sorted(item.keys() - required - {"note"})]
    if found:
        return found
    if not isinstance(item["metric"], str) or not _METRIC.fullmatch(item["metric"]):
        found.append(f"{where}: metric {item['metric']!r} is not a dotted lower-case name")
    if item["value"] is not None and not _is_number(item["value"]):
        found.append(f"{where}: value {item['value']!r} is neither a finite number nor null")
    if not isinstance(item["unit"], str) or not item["unit"]:
        found.append(f"{where}: unit {item['unit']!r} is empty")
    if item["better"] not in BETTER:
        found.append(f"{where}: better {item['better']!r} is none of {', '.join(BETTER)}")
    baseline = item["baseline"]
    if not isinstance(baseline, dict) or not all(isinstance(v, str) or _is_number(v) for v in baseline.values()):
        found.append(f"{where}: baseline is not an object of numbers and texts")
    if not isinstance(item["runs"], list) or not all(_is_number(run) for run in item["runs"]):
        found.append(f"{where}: runs is not a list of finite numbers")
    if not isinstance(item.get("note", ""), str):
        found.append(f"{where}: note is not text")
    return found


def _host_problems(host: object) -> list[str]:
    if not isinstance(host, dict):
        return ["host: not an object"]
    found = []
    for key in ("cpus", "memory_mib"):
        value = host.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            found.append(f"host: {key} {value!r} is not a whole number from 1")
    for key, kind in (("cpu_model", str), ("kernel", str), ("emulated", bool)):
        if not isinstance(host.get(key), kind):
            found.append(f"host: {key} {host.get(key)!r} is not {kind.__name__}")
    found += [
        f"host: {key} is neither text, number nor boolean"
        for key, value in host.items()
        if not isinstance(value, (str, bool)) and not _is_number(value)
    ]
    return found


def problems(data: object) -> list[str]:
    """What is wrong with a decoded result file, one line each; empty if nothing."""
    if not isinstance(data, dict):
        return ["not an object"]
    required = {"name", "when", "host", "metrics"}
    found = [f"no {key}" for key in sorted(required - data.keys())]
    found += [f"unknown key {key}" for key in sorted(data.keys() - required)]
    if found:
        return found
    if not isinstance(data["name"], str) or not _NAME.fullmatch(data["name"]):
        found.append(f"name {data['name']!r} cannot be a file name")
    if not isinstance(data["when"], str) or not _WHEN.fullmatch(data["when"]):
        found.append(f"when {data['when']!r} is not like 2026-01-31T12:00:00Z")
    found += _host_problems(data["host"])
    if not isinstance(data["metrics"], list):
        return [*found, "metrics: not a list"]
    seen: set[str] = set()
    for index, item in enumerate(data["metrics"]):
        found += _metric_problems(item, f"metrics[{index}]")
        name = item.get("metric") if isinstance(item, dict) else None
        if isinstance(name, str):
            if name in seen:
                found.append(f"metrics[{index}]: {name} is there twice")
            seen.add(name)
    return found


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
