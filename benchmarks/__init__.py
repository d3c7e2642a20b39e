# SPDX-License-Identifier: GPL-2.0
"""Benchmarks, the demo and the report: what is measured, and how it is shown."""
