/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's integer names, over the user-space ones that the uapi headers use. */
#ifndef FAKE_LINUX_TYPES_H
#define FAKE_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <asm/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#endif
