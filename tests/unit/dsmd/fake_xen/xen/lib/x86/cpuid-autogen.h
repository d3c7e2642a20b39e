/* SPDX-License-Identifier: GPL-2.0 */
/* Some of what Xen's build makes of cpufeatureset.h, by the same numbers. */
#ifndef FAKE_CPUID_AUTOGEN_H
#define FAKE_CPUID_AUTOGEN_H

#define INIT_FEATURE_NAME_TO_VAL {	\
	{ "bmi1", 163U },		\
	{ "bmi2", 168U },		\
	{ "cmp-legacy", 97U },		\
	{ "invpcid", 170U },		\
}

#endif
