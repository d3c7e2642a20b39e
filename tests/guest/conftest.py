# SPDX-License-Identifier: GPL-2.0
"""Tests marked `fresh` are left to `make soak` here, too."""

from tests.e2e.conftest import pytest_collection_modifyitems

__all__ = ["pytest_collection_modifyitems"]
