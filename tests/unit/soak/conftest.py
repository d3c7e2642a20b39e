# SPDX-License-Identifier: GPL-2.0
"""XENUMA_SOAK_SOURCES: a folder that is tested in the place of benchmarks/soak, for mutants (lab/pipeline/mutants.py)."""

from __future__ import annotations

import os

import benchmarks.soak

if folder := os.environ.get("XENUMA_SOAK_SOURCES"):
    benchmarks.soak.__path__ = [folder]
