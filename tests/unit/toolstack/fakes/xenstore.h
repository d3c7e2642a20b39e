/* SPDX-License-Identifier: GPL-2.0 */
/* As much of libxenstore as xenstore_batch.h needs; see libxl_internal.h. */
#ifndef XENSTORE_H
#define XENSTORE_H

#include <stdbool.h>
#include <stdint.h>

#define XBT_NULL 0

struct xs_handle;
typedef uint32_t xs_transaction_t;

#endif /* XENSTORE_H */
