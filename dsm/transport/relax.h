/* SPDX-License-Identifier: GPL-2.0 */
/* For who looks again and again for what another CPU, or a device, is about to do. */
#ifndef DSM_RELAX_H
#define DSM_RELAX_H

/**
 * This CPU waits: another thread of its core may have what they share, and a
 * hypervisor or an emulator that counts PAUSE (AMD64 Architecture Programmer's
 * Manual, volume 2, 15.14.4; Intel SDM, volume 3, 25.1.3) may run somebody else.
 */
static inline void dsm_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" : : : "memory");
#else
	__asm__ volatile("" : : : "memory");
#endif
}

#endif
