/* SPDX-License-Identifier: GPL-2.0 */
/* Of Xen's public headers what dsm.h needs. */
#ifndef FAKE_XEN_H
#define FAKE_XEN_H

#include <stdint.h>

typedef uint64_t uint64_aligned_t __attribute__((aligned(8)));
typedef int64_t int64_aligned_t __attribute__((aligned(8)));
typedef uint16_t domid_t;
typedef uint32_t evtchn_port_t;

#define XEN_GUEST_HANDLE_64(name) union { void *p; uint64_aligned_t q; }
#define XEN_GUEST_HANDLE(name) XEN_GUEST_HANDLE_64(name)
#define DEFINE_XEN_GUEST_HANDLE(name) extern int fake_no_handle

#endif
