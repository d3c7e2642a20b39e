/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: what libxl's header of the same name has of use. */
#ifndef LIBXL_ARCH_H
#define LIBXL_ARCH_H

int libxl__arch_extra_memory(libxl__gc *gc, const libxl_domain_build_info *info,
                             uint64_t *out_kb);

#endif /* LIBXL_ARCH_H */
