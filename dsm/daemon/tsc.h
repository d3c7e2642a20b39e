/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This host's TSC, as dom0 reads it.
 *
 * Another slice of a VM gets a TSC that is the host's plus an offset, so it is the
 * host's own that two daemons compare.  A PV dom0 reads it if Xen does not emulate
 * RDTSC for it; of a PVH or HVM dom0 the hardware adds an offset that Xen does not
 * tell.  CPUID of Xen says which it is: arch-x86/cpuid.h, leaves 3 and 4 behind the
 * signature's.
 */
#ifndef DSM_TSC_H
#define DSM_TSC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What Xen's CPUID says in dom0. */
struct dsm_tsc_leaves {
	uint32_t last;		/* leaves behind the signature's */
	uint32_t time;		/* leaf 3, subleaf 0, EAX */
	uint32_t khz;		/* leaf 3, subleaf 2, EAX: of the host */
	uint32_t hvm;		/* leaf 4, subleaf 0, EAX; 0 for PV */
};

/**
 * Can the host's TSC be read here?
 * @text: why not; or a warning, if the result is not negative; or "".
 * Return: its frequency, kHz; -EOPNOTSUPP.
 */
int dsm_tsc_judge(const struct dsm_tsc_leaves *leaves, const char **text);

/** Ask Xen.  Only where Xen is, and where it was reached: elsewhere it is SIGILL. */
void dsm_tsc_ask_xen(struct dsm_tsc_leaves *leaves);

/**
 * Return: the TSC, not before all that was read has come, nor after anything that
 * follows.
 */
uint64_t dsm_tsc_read(void);

#ifdef __cplusplus
}
#endif

#endif
