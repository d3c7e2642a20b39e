# SPDX-License-Identifier: GPL-2.0
"""python3 -m lab: what the command lab/rack runs in the sandbox."""

import sys

from lab.cli import main

sys.exit(main())
