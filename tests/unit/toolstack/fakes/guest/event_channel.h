/* SPDX-License-Identifier: GPL-2.0 */
/* Nothing: what dsm.h needs of it is in xen.h here. */
