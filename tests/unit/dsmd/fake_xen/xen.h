/* SPDX-License-Identifier: GPL-2.0 */
/* As much of Xen's public headers as public/dsm.h uses. */
#ifndef FAKE_XEN_H
#define FAKE_XEN_H

#include <stdint.h>

typedef uint16_t domid_t;
typedef uint64_t uint64_aligned_t __attribute__((aligned(8)));
typedef uint8_t uint8;

#define DEFINE_XEN_GUEST_HANDLE(type)	\
	typedef struct { type *p; } __guest_handle_##type
DEFINE_XEN_GUEST_HANDLE(uint8);
#define XEN_GUEST_HANDLE_64(type)	__guest_handle_##type

#endif
