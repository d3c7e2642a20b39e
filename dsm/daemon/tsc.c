// SPDX-License-Identifier: GPL-2.0
/*
 * CPUID and RDTSC.
 *
 * A PV dom0's CPUID is the hardware's, unless Xen makes it fault; with Xen's
 * prefix it is Xen's.  Of others the plain instruction is Xen's, and the prefix is
 * an undefined instruction; so the plain one comes first.
 */
#include <errno.h>
#include <string.h>

#include "link.h"
#include "tsc.h"

#define SIGNATURE	0x40000000u
#define LEAF_TIME	3
#define LEAF_HVM	4
#define TIME_EMULATED	1u	/* XEN_CPUID leaf 3, EAX: RDTSC is emulated */
#define TIME_RELIABLE	2u	/* and: the host's TSCs are in step */

struct registers {
	uint32_t a, b, c, d;
};

static struct registers plain(uint32_t leaf, uint32_t subleaf)
{
	struct registers r;

	__asm__ volatile("cpuid" : "=a" (r.a), "=b" (r.b), "=c" (r.c), "=d" (r.d) :
			 "0" (leaf), "2" (subleaf));
	return r;
}

static struct registers prefixed(uint32_t leaf, uint32_t subleaf)
{
	struct registers r;

	/* XEN_CPUID of arch-x86/xen.h: ud2, "xen", cpuid */
	__asm__ volatile(".byte 0x0f, 0x0b, 0x78, 0x65, 0x6e\n\tcpuid" :
			 "=a" (r.a), "=b" (r.b), "=c" (r.c), "=d" (r.d) :
			 "0" (leaf), "2" (subleaf));
	return r;
}

static bool is_xen(struct registers r)
{
	return !memcmp(&r.b, "XenV", 4) && !memcmp(&r.c, "MMXe", 4) &&
	       !memcmp(&r.d, "nVMM", 4) && r.a >= SIGNATURE;
}

void dsm_tsc_ask_xen(struct dsm_tsc_leaves *leaves)
{
	struct registers (*cpuid)(uint32_t leaf, uint32_t subleaf) = plain;
	struct registers first = cpuid(SIGNATURE, 0);

	memset(leaves, 0, sizeof(*leaves));
	if (!is_xen(first)) {
		cpuid = prefixed;
		first = cpuid(SIGNATURE, 0);
		if (!is_xen(first))
			return;
	}
	leaves->last = first.a - SIGNATURE;
	if (leaves->last < LEAF_HVM)
		return;
	leaves->time = cpuid(SIGNATURE + LEAF_TIME, 0).a;
	leaves->khz = cpuid(SIGNATURE + LEAF_TIME, 2).a;
	leaves->hvm = cpuid(SIGNATURE + LEAF_HVM, 0).a;
}

int dsm_tsc_judge(const struct dsm_tsc_leaves *leaves, const char **text)
{
	*text = "";
	if (leaves->last < LEAF_HVM)
		*text = "Xen's CPUID does not tell of it";
	else if (leaves->hvm)
		*text = "dom0 is PVH or HVM: its TSC has an offset that Xen does not tell";
	else if (leaves->time & TIME_EMULATED)
		*text = "RDTSC is emulated in dom0";
	else if (leaves->khz < DSM_CLOCK_KHZ_LEAST || leaves->khz > DSM_CLOCK_KHZ_MOST)
		*text = "its frequency is not from 100 MHz to 20 GHz";
	if (**text)
		return -EOPNOTSUPP;
	if (!(leaves->time & TIME_RELIABLE))
		*text = "Xen does not call it reliable: the TSCs of this host's CPUs need not be in step";
	return (int)leaves->khz;
}

uint64_t dsm_tsc_read(void)
{
	uint32_t low, high;

	__asm__ volatile("mfence; lfence; rdtsc; lfence" : "=a" (low), "=d" (high) :: "memory");
	return (uint64_t)high << 32 | low;
}
