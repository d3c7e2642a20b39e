# SPDX-License-Identifier: GPL-2.0
"""What is tested without machines does not depend on which lane of `make test` it is tested in (lab/pipeline/lanes.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.patience import VARIABLE


@pytest.fixture(scope="module", autouse=True)
def in_no_lane() -> Iterator[None]:
    """Limits are as they are written, and the rack is the usual one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (VARIABLE, "XENUMA_RACK"):
            patch.delenv(name, raising=False)
        yield
