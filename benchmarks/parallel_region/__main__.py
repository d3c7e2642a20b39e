# SPDX-License-Identifier: GPL-2.0
"""`python3 -m benchmarks.parallel_region`."""

import sys

from benchmarks.parallel_region import main

sys.exit(main(sys.argv[1:]))
