# SPDX-License-Identifier: GPL-2.0
"""A guest whose nodes come and go at random for hours, and what must hold after each step: `make soak SEED=...`.

model.py says what a guest is and what each operation makes of it; plan.py draws operations from a seed; books.py asks host and
guest what they think is so, and inside.py for their logs; invariants.py compares; logs.py judges new lines, also of consoles;
play.py does it; __main__.py is the command.
"""
