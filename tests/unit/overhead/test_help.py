# SPDX-License-Identifier: GPL-2.0
"""Measurements of hours: who asks one how it is used, or has mistyped a word, gets an answer and no rack. No result is lost."""

from __future__ import annotations

import importlib
import subprocess
from functools import partial
from pathlib import Path

import pytest

from benchmarks import parallel_region, results, stock_host
from benchmarks.results import Metric
from lab.errors import LabError
from lab.rack import Rack

MODULES = ("balloon", "detach", "extent_profile", "overhead", "scrub")


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(("word", "status"), [("--help", 0), ("--rnus=1", 2)])
def test_nothing_is_booted(name: str, word: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def boot(*_: object, **__: object) -> None:
        pytest.fail("it boots a rack")

    monkeypatch.setattr(Rack, "boot", boot)
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main([word])
    assert ended.value.code == status


@pytest.mark.parametrize("name", [name for name in MODULES if name != "overhead"])
def test_without_a_rack_an_earlier_result_stays(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing was measured, nothing is written, and who looks for figures finds those that there are."""

    def boot(*_: object, **__: object) -> None:
        raise LabError("not there: xen.elf")

    monkeypatch.setattr(Rack, "boot", boot)
    monkeypatch.setattr(stock_host, "boot", boot)
    monkeypatch.setattr(results, "kept", partial(results.kept, directory=tmp_path))
    file = {"extent_profile": "extent"}.get(name, name)
    before = results.write(file, [Metric("a.b", 1.0, "s")], tmp_path).read_bytes()
    assert importlib.import_module(f"benchmarks.{name}").main([]) == 1
    said = capsys.readouterr().err
    assert f"{file}: not there: xen.elf\n" in said and said.endswith(f"{file}: nothing was measured, and nothing is written\n")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_what_was_measured_in_part_is_written_with_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file itself says that it is a part, and what was built; an earlier result is set aside."""
    monkeypatch.setattr(results, "kept", partial(results.kept, directory=tmp_path))
    monkeypatch.setattr(results, "built", lambda: "xen=xen-0123")
    for wrong in ([], ["upstream's host is gone", "so is ours"]):
        assert results.ended("one", [Metric("one.x", 1.0, "s")], wrong, begun=True) == bool(wrong)
    found = results.read(tmp_path / "one.json")
    failures = found.find("one.failures")
    assert failures and (failures.value, failures.note) == (2, "upstream's host is gone; so is ours")
    assert found.host["built"] == "xen=xen-0123" and found.find("one.x")
    (aside,) = (tmp_path / "earlier").iterdir()
    assert '"one.failures",\n   "value": 0,' in aside.read_text(encoding="utf-8")
    assert "one: so is ours\n" in capsys.readouterr().err


def test_what_the_parallel_region_had_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_region, "library", lambda *_: tmp_path)
    monkeypatch.setattr(parallel_region, "measure", lambda *_: [Metric("parallel_region.x", 1.0, "%")])
    monkeypatch.setattr(results, "_commit", lambda: "0123")
    monkeypatch.setattr(results, "kept", partial(results.kept, directory=tmp_path))
    with monkeypatch.context() as compiled:
        compiled.setattr(subprocess, "run", lambda *_, **__: None)
        assert [parallel_region.main([]), parallel_region.main([])] == [0, 0]
    assert len(list((tmp_path / "earlier").iterdir())) == 1
    assert not results.read(tmp_path / "parallel_region.json").host["emulated"]
