# SPDX-License-Identifier: GPL-2.0
"""`make bench`: all measurements but the demo's, one after the other, and the report.

Each is a module with a main() that writes build/results/NAME.json and returns an exit status. One that fails does not
keep the others from running.

Usage: python3 -m benchmarks [NAME...]
Exit status: 0 if all that were named could be measured, of all if none was, 1 if not, 2 usage.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence

from benchmarks.arguments import one_of

MEASUREMENTS = ("parallel_region", "balloon", "extent_profile", "detach", "scrub", "overhead")


def main(arguments: Sequence[str] = ()) -> int:
    """Run them; see the module's text."""
    about = "Measurements, all of them an hour and a quarter, and the report."
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks", description=about)
    names_help = f"{', '.join(MEASUREMENTS)}; all, if none is named"
    parser.add_argument("names", nargs="*", type=one_of(MEASUREMENTS), metavar="NAME", help=names_help)
    names = parser.parse_args(arguments).names or MEASUREMENTS
    failed = []
    for name in dict.fromkeys(names):
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
    sys.exit(main(sys.argv[1:]))
