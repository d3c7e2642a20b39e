# SPDX-License-Identifier: GPL-2.0
"""From nothing to bootable artifacts: sources, trees, builds, images."""
