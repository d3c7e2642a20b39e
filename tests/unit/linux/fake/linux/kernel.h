/* SPDX-License-Identifier: GPL-2.0 */
/* What the pure files take from it. */
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
