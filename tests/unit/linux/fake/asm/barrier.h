/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAKE_ASM_BARRIER_H
#define FAKE_ASM_BARRIER_H

#include <linux/compiler.h>

#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)

#define smp_store_release(object, value) do {				\
	__atomic_store_n((object), (value), __ATOMIC_RELEASE);		\
	after_store();							\
} while (0)

#endif
