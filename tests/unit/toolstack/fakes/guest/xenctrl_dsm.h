/* SPDX-License-Identifier: GPL-2.0 */
/* Of tools/include/xenctrl_dsm.h what xg_core_dsm.c calls; the public header is the real one. */
#ifndef FAKE_XENCTRL_DSM_H
#define FAKE_XENCTRL_DSM_H

#define __XEN_TOOLS__
#include "../../../../../xen/overlay/xen/include/public/dsm.h"

#include "xg_core.h"

int xc_dsm_page(xc_interface *xch, uint32_t domid, xen_dsm_page_op_t *ops,
                unsigned int nr);

#endif
