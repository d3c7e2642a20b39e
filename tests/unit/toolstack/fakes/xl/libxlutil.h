/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: lists and strings of a configuration. */
#ifndef LIBXLUTIL_H
#define LIBXLUTIL_H

typedef struct XLU_Config XLU_Config;
typedef struct XLU_ConfigList XLU_ConfigList;
typedef struct XLU_ConfigValue XLU_ConfigValue;

int xlu_cfg_get_list(const XLU_Config *config, const char *name,
                     XLU_ConfigList **list, int *entries, int dont_warn);
XLU_ConfigValue *xlu_cfg_get_listitem2(const XLU_ConfigList *list, int entry);
int xlu_cfg_value_get_list(const XLU_Config *config, XLU_ConfigValue *value,
                           XLU_ConfigList **list, int dont_warn);
int xlu_cfg_value_get_string(const XLU_Config *config, XLU_ConfigValue *value,
                             char **string, int dont_warn);

#endif /* LIBXLUTIL_H */
