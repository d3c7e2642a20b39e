// SPDX-License-Identifier: GPL-2.0
/*
 * Features of CPUs, for people.
 */
#include <stdio.h>

#include <xenctrl.h>
#include <xenguest.h>
#include <xen/arch-x86/cpuid.h>
#include <xen/lib/x86/cpuid-autogen.h>

#include "cpu_features.h"

const struct dsm_feature_word dsm_feature_word[DSM_FEATURE_WORDS] = {
	{ 0x1, XEN_CPUID_NO_SUBLEAF, 'c', 1 }, { 0x1, XEN_CPUID_NO_SUBLEAF, 'd', 0 },
	{ 0x7, 0, 'b', 5 }, { 0x7, 0, 'c', 6 }, { 0x7, 0, 'd', 9 },
	{ 0x7, 1, 'a', 10 }, { 0x7, 1, 'b', 12 }, { 0x7, 1, 'c', 14 }, { 0x7, 1, 'd', 15 },
	{ 0x7, 2, 'd', 13 },
	{ 0xd, 1, 'a', 4 },
	{ 0x80000001, XEN_CPUID_NO_SUBLEAF, 'c', 3 }, { 0x80000001, XEN_CPUID_NO_SUBLEAF, 'd', 2 },
	{ 0x80000007, XEN_CPUID_NO_SUBLEAF, 'd', 7 }, { 0x80000008, XEN_CPUID_NO_SUBLEAF, 'b', 8 },
	{ 0x80000021, XEN_CPUID_NO_SUBLEAF, 'a', 11 }, { 0x80000021, XEN_CPUID_NO_SUBLEAF, 'c', 18 },
};

static const struct {
	const char *name;
	unsigned int bit;	/* of all words, 32 each */
} features[] = INIT_FEATURE_NAME_TO_VAL;

/* Where the next one goes; none fits behind the end. */
static char *behind(char *text, size_t size, size_t at)
{
	return at < size ? text + at : NULL;
}

static size_t left(size_t size, size_t at)
{
	return at < size ? size - at : 0;
}

static size_t say_names(unsigned int number, uint32_t bits, char *text, size_t size, size_t at)
{
	const size_t begin = at;
	size_t i;

	for (i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (features[i].bit / 32 == number && bits >> features[i].bit % 32 & 1)
			at += (size_t)snprintf(behind(text, size, at), left(size, at), "%s%s",
					       at == begin ? " (" : " ", features[i].name);
	if (at != begin)
		at += (size_t)snprintf(behind(text, size, at), left(size, at), ")");
	return at;
}

size_t dsm_features_say(uint32_t leaf, uint32_t subleaf, char reg, uint32_t bits, char *text,
			size_t size)
{
	size_t at = (size_t)snprintf(text, size, "0x%x.%u.e%cx=0x%x", leaf,
				     subleaf == XEN_CPUID_NO_SUBLEAF ? 0 : subleaf, reg, bits);
	size_t i;

	for (i = 0; i < DSM_FEATURE_WORDS; i++)
		if (dsm_feature_word[i].leaf == leaf && dsm_feature_word[i].subleaf == subleaf &&
		    dsm_feature_word[i].reg == reg)
			return say_names(dsm_feature_word[i].number, bits, text, size, at);
	return at;
}
