/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: what libxl's header of the same name has of use. */
#ifndef LIBXL_JSON_H
#define LIBXL_JSON_H

#include <yajl/yajl_gen.h>

typedef size_t libxl_yajl_length;

#define libxl_yajl_gen_alloc(funcs) yajl_gen_alloc(funcs)

#endif /* LIBXL_JSON_H */
