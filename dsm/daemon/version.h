/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What --version of the three programs says (decision 0140).
 *
 * The version of the project is for people.  Whether two hosts understand each other is
 * decided by those of what they say: of connections between dsmds (wire.h), of what the
 * toolstack, dsmctl and other hosts ask dsmd-host (docs/dsm-control.md).
 */
#ifndef DSM_VERSION_H
#define DSM_VERSION_H

#include <stdio.h>

#include "wire.h"

#define XENUMA_VERSION		"0.1"
#define DSM_HOST_VERSION	1	/* of docs/dsm-control.md, and between dsmd-hosts */

static inline void dsm_version_say(FILE *to, const char *program)
{
	fprintf(to, "%s (Xenuma) %s\n"
		"connections between dsmds: versions %d to %d\n"
		"requests to dsmd-host: version %d\n",
		program, XENUMA_VERSION, DSM_WIRE_LOWEST, DSM_WIRE_HIGHEST, DSM_HOST_VERSION);
}

#endif
