/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: libxl.h has all that is needed. */
#ifndef LIBXLUTIL_H
#define LIBXLUTIL_H
#endif /* LIBXLUTIL_H */
