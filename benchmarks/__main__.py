# SPDX-License-Identifier: GPL-2.0
"""`make bench`: all measurements but the demo's, one after the other, and the report.

Each is a module with a main() that writes build/results/NAME.json and returns an exit status. One that fails does not
keep the others from running. Exit status: 0 if all could be measured.
"""

from __future__ import annotations

import importlib
import sys
import time

MEASUREMENTS = ("parallel_region", "balloon", "extent_profile", "detach", "scrub", "overhead")


def main() -> int:
    """Run them all; see the module's text."""
    failed = []
    for name in MEASUREMENTS:
        began = time.monotonic()
        print(f"--- {name}", flush=True)
        status = importlib.import_module(f"benchmarks.{name}").main()
        print(f"--- {name}: exit status {status}, {time.monotonic() - began:.0f} s", flush=True)
        if status:
            failed.append(name)
    importlib.import_module("benchmarks.report").main([])
    if failed:
        print(f"bench: could not measure {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
