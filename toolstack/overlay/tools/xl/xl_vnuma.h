/* SPDX-License-Identifier: LGPL-2.1-only */
/* xl: the vnuma= option of a domain's configuration. */
#ifndef XL_VNUMA_H
#define XL_VNUMA_H

#include <libxl.h>
#include <libxlutil.h>

/*
 * Take vnuma=, if there is one, into @b_info, after vcpus=, maxvcpus=, memory=
 * and maxmem=, which it is checked against.  Exits on an error, as the rest of
 * the configuration's parser does.
 */
void parse_vnuma_option(const XLU_Config *config,
                        libxl_domain_build_info *b_info);

#endif /* XL_VNUMA_H */
