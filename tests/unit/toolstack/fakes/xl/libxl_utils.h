/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: libxl.h has all that is needed. */
#ifndef LIBXL_UTILS_H
#define LIBXL_UTILS_H
#endif /* LIBXL_UTILS_H */
