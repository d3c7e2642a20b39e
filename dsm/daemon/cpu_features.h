/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Features of CPUs, for people.  The numbers and names are of Xen's cpufeatureset.h.
 */
#ifndef DSM_DAEMON_CPU_FEATURES_H
#define DSM_DAEMON_CPU_FEATURES_H

#include <stddef.h>
#include <stdint.h>

/** A word of CPUID that has features: eax to edx, 'a' to 'd', of a leaf. */
struct dsm_feature_word {
	uint32_t leaf, subleaf;		/* XEN_CPUID_NO_SUBLEAF: it has none */
	char reg;
	unsigned int number;		/* FEATURESET_* of xen/lib/x86/cpu-policy.h */
};

#define DSM_FEATURE_WORDS	17u

extern const struct dsm_feature_word dsm_feature_word[DSM_FEATURE_WORDS];

/**
 * Bits of a word, "0x7.0.ebx=0x408 (bmi1 invpcid)", by the names that xl.cfg's cpuid=
 * has.  A bit without a name is in the number only.
 * Return: the length that it would have, as snprintf().
 */
size_t dsm_features_say(uint32_t leaf, uint32_t subleaf, char reg, uint32_t bits, char *text,
			size_t size);

#endif
