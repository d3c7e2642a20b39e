/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: xl.h has all that is needed. */
#ifndef XL_UTILS_H
#define XL_UTILS_H
#endif /* XL_UTILS_H */
