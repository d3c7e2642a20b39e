/* SPDX-License-Identifier: GPL-2.0 */
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
