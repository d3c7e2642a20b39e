/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: xl.h has all that is needed. */
#ifndef XL_PARSE_H
#define XL_PARSE_H
#endif /* XL_PARSE_H */
