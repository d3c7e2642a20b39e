# SPDX-License-Identifier: GPL-2.0
"""XENUMA_BOUNCE: a folder that is tested in the place of lab/bounce, for mutants (lab/pipeline/mutants.py)."""

from __future__ import annotations

import importlib.util
import os
import sys

import lab

if folder := os.environ.get("XENUMA_BOUNCE"):
    spec = importlib.util.spec_from_file_location("lab.bounce", f"{folder}/__init__.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["lab.bounce"] = module
    spec.loader.exec_module(module)
    lab.bounce = module
