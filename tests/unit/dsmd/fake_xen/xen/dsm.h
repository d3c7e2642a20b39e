/* SPDX-License-Identifier: GPL-2.0 */
/* The real one. */
#include "../../../../../xen/overlay/xen/include/public/dsm.h"
