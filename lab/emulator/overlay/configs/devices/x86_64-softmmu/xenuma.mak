# SPDX-License-Identifier: GPL-2.0-or-later
# What the lab's machines have, and no more (--without-default-devices).

CONFIG_Q35=y
CONFIG_PCI_DEVICES=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_NET=y
CONFIG_HPET=y
