# SPDX-License-Identifier: GPL-2.0
"""Where things are: the repository, the cache, the build folder."""

from __future__ import annotations

import os
from pathlib import Path

REPO = Path(os.environ.get("XENUMA_REPO", Path(__file__).resolve().parents[2]))
CACHE = Path(os.environ.get("XENUMA_CACHE", Path.home() / ".cache" / "xenuma"))
BUILD = REPO / "build"
ARTIFACTS = BUILD / "artifacts"
LOGS = BUILD / "logs" / "pipeline"
