/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libxl's JSON objects, on yajl's trees.  As libxl's: numbers with a point or
 * an exponent are no integers, and neither are those beyond 64 bits.
 */
#include <yajl/yajl_tree.h>

#include "fake_libxl.h"

static yajl_val val(const libxl__json_object *o)
{
    return (yajl_val)o;
}

static libxl__json_node_type type_of(yajl_val v)
{
    return YAJL_IS_STRING(v) ? JSON_STRING : YAJL_IS_OBJECT(v) ? JSON_MAP
           : YAJL_IS_ARRAY(v) ? JSON_ARRAY : YAJL_IS_INTEGER(v) ? JSON_INTEGER
           : YAJL_IS_NUMBER(v) ? JSON_NUMBER
           : YAJL_IS_TRUE(v) || YAJL_IS_FALSE(v) ? JSON_BOOL : JSON_NULL;
}

/* One tree at a time: a reply is done with before the next one comes. */
libxl__json_object *libxl__json_parse(libxl__gc *gc, const char *s)
{
    static yajl_val tree;
    char why[200];

    (void)gc;
    yajl_tree_free(tree);
    tree = s ? yajl_tree_parse(s, why, sizeof(why)) : NULL;
    if (s && !tree)
        fake_log("yajl error: %s", why);

    return (libxl__json_object *)tree;
}

bool libxl__json_object_is_map(const libxl__json_object *o)
{
    return o && type_of(val(o)) == JSON_MAP;
}

bool libxl__json_object_get_bool(const libxl__json_object *o)
{
    return o && YAJL_IS_TRUE(val(o));
}

const char *libxl__json_object_get_string(const libxl__json_object *o)
{
    return o ? YAJL_GET_STRING(val(o)) : NULL;
}

long long libxl__json_object_get_integer(const libxl__json_object *o)
{
    return o && YAJL_IS_INTEGER(val(o)) ? YAJL_GET_INTEGER(val(o)) : -1;
}

libxl__json_object *libxl__json_array_get(const libxl__json_object *o, int i)
{
    if (!o || !YAJL_IS_ARRAY(val(o)) ||
        (size_t)i >= YAJL_GET_ARRAY(val(o))->len)
        return NULL;

    return (libxl__json_object *)YAJL_GET_ARRAY(val(o))->values[i];
}

const libxl__json_object *libxl__json_map_get(const char *key,
                                              const libxl__json_object *o,
                                              libxl__json_node_type type)
{
    const char *path[] = { key, NULL };
    yajl_val v;

    if (!libxl__json_object_is_map(o))
        return NULL;
    v = yajl_tree_get(val(o), path, yajl_t_any);

    return v && type_of(v) & type ? (libxl__json_object *)v : NULL;
}
