/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A single store that the compiler cannot split.  The test looks on after
 * each of them, as another CPU might.
 */
#ifndef FAKE_LINUX_COMPILER_H
#define FAKE_LINUX_COMPILER_H

void after_store(void);

#define WRITE_ONCE(object, value) do {					\
	__atomic_store_n(&(object), (value), __ATOMIC_RELAXED);		\
	after_store();							\
} while (0)

#endif
