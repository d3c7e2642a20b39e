# SPDX-License-Identifier: GPL-2.0
"""`make demo`, as it is, but on the rack of the tests: it passes, and says so."""

from __future__ import annotations

import json

import pytest

from benchmarks import demo
from benchmarks.results import RESULTS
from lab.rack import Rack
from tests.e2e.conftest import Stable


@pytest.mark.fresh
@pytest.mark.alone
def test_demo(stable: Stable, rack: Rack, capsys: pytest.CaptureFixture[str]) -> None:
    """Its whole story, its verdict and its results."""
    stable.leave_all()
    for name in ("demo.json", "demo.html"):
        (RESULTS / name).unlink(missing_ok=True)
    status = demo.main([f"--use={rack.description.name}"])
    said = capsys.readouterr().out
    assert status == 0, said
    assert "DEMO PASS" in said and "DEMO FAIL" not in said, said
    assert "DEMO PASS" in (RESULTS / "demo.html").read_text(encoding="utf-8")
    figures = {
        metric["metric"]: metric["value"] for metric in json.loads((RESULTS / "demo.json").read_text())["metrics"]
    }
    assert [figures[f"demo.threads.{window}"] for window in ("before", "attached", "detached")] == [2, 4, 2]
