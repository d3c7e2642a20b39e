# SPDX-License-Identifier: GPL-2.0
"""Where things are: the repository and its files, the cache, the build folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

REPO = Path(os.environ.get("XENUMA_REPO", Path(__file__).resolve().parents[2]))
CACHE = Path(os.environ.get("XENUMA_CACHE", Path.home() / ".cache" / "xenuma"))
BUILD = REPO / "build"
ARTIFACTS = BUILD / "artifacts"
LOGS = BUILD / "logs" / "pipeline"


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository: what git knows, and what it does not ignore."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={REPO}", "ls-files", "-co", "--exclude-standard", "-z", *patterns],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    return [REPO / name for name in listed.stdout.split("\0") if name and (REPO / name).is_file()]
