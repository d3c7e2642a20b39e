# SPDX-License-Identifier: GPL-2.0
"""Results named by content: what changes a key, and that a result appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.pipeline import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")


def test_key_follows_content_names_modes_and_words(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a"
    file.parent.mkdir()
    keys = set()
    for content, name, mode, word in (
        ("1", "a", 0o644, ""),
        ("2", "a", 0o644, ""),
        ("1", "b", 0o644, ""),
        ("1", "a", 0o755, ""),
        ("1", "a", 0o644, "gcc-14"),
    ):
        for old in file.parent.iterdir():
            old.unlink()
        path = file.with_name(name)
        path.write_text(content)
        path.chmod(mode)
        keys.add(cache.content_key([file.parent], word, base=tmp_path))
    assert len(keys) == 5


def test_words_are_told_apart_from_one_another(tmp_path: Path) -> None:
    """What one word says cannot be said by two, or the other way round."""
    split = [("a", "b"), ("a\nword b",), ("a\nword 1 b",), ("ab",), ("ab", ""), ("b", "a")]
    assert len({cache.content_key([], *words, base=tmp_path) for words in split}) == len(split)


def test_key_does_not_depend_on_where_the_tree_is(tmp_path: Path) -> None:
    keys = set()
    for clone in ("one", "two"):
        (tmp_path / clone).mkdir()
        (tmp_path / clone / "f").write_text("same")
        keys.add(cache.content_key([tmp_path / clone], base=tmp_path / clone))
    assert len(keys) == 1


def test_failed_step_leaves_no_result() -> None:
    result = cache.StepResult("step", "0" * 16)
    with pytest.raises(ValueError, match="broken"), result.writing() as part:
        (part / "half").write_text("half")
        raise ValueError("broken")
    assert not result.complete
    with result.writing() as part:
        assert not list(part.iterdir())
        (part / "whole").write_text("whole")
    assert result.complete and (result.path / "whole").read_text() == "whole"


@pytest.mark.parametrize(("word", "most"), [(None, 2), ("3", 3), ("1", 1), ("0", 2), ("many", 2), ("", 2)])
def test_newest_results_are_kept(monkeypatch: pytest.MonkeyPatch, word: str | None, most: int) -> None:
    if word is None:
        monkeypatch.delenv("XENUMA_KEPT_RESULTS", raising=False)
    else:
        monkeypatch.setenv("XENUMA_KEPT_RESULTS", word)
    for number in range(5):
        with cache.StepResult("step", f"{number:016}").writing():
            pass
    kept = sorted(p.name for p in cache.StepResult("step", "").path.parent.iterdir())
    assert [name[-1] for name in kept] == [str(number) for number in range(5 - most, 5)]
