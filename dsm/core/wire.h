/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages as bytes (contract 5 of architecture.md).
 *
 * Every message starts with 32 bytes, all numbers little-endian; then come as
 * many as its type has (dsm_type_bytes()), a page or what vcpu.h says:
 *
 *	 0	1	version of a message's form, DSM_WIRE_VERSION
 *	 1	1	type, enum dsm_type
 *	 2	1	flags, DSM_F_*
 *	 3	1	reason, enum dsm_reason
 *	 4	4	epoch of the connection
 *	 8	4	transaction
 *	12	4	bytes after these 32: 0, 64 or 4096
 *	16	8	gfn
 *	24	8	0
 *
 * Of a message about vCPUs flags, reason, transaction and gfn are 0; of POLICY
 * the gfn is the number of a part, 0 .. 3.
 *
 * The first on a connection, in both ways, is HELLO, of the same length:
 *
 *	 0	1	0: no version has this number
 *	 1	1	0
 *	 2	1	lowest version of a connection that the sender speaks
 *	 3	1	highest
 *	 4	4	"XDSM"
 *	 8	1	the sender's number
 *	 9	1	number of hosts
 *	10	2	0
 *	12	4	epoch that the sender wants: the higher of both counts
 *	16	16	UUID of the VM
 *
 * A connection has the highest version that both ends speak.  Version 2 differs
 * from 1 in what an answer of the connection itself has (link.h); messages have the
 * form that they had, and its number.  Version 4 has messages about vCPUs, and GETM
 * ahead of time (DSM_F_PREFETCH).  Version 3 had the former as long as vCPUs stayed where
 * they are: nobody speaks it any more, and who says so is spoken to as by version 2.
 * Version 5 has ACCESS and ACCESSED, version 6 PAUSE and PAUSED, version 7 TSC.
 *
 * A byte that has to be 0 and is not, a version or a type that we do not know
 * and a wrong length are errors, never skipped.
 */
#ifndef DSM_WIRE_H
#define DSM_WIRE_H

#include <stddef.h>

#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_WIRE_VERSION	1	/* of a message */
#define DSM_WIRE_LOWEST		1	/* of a connection */
#define DSM_WIRE_CLOCK		2	/* with clocks in answers */
#define DSM_WIRE_VCPUS		4	/* with messages about vCPUs */
#define DSM_WIRE_AHEAD		4	/* with GETM that nobody waits for */
#define DSM_WIRE_ACCESS		5	/* with accesses to pages that can't leave their home */
#define DSM_WIRE_PAUSE		6	/* with a pause of the whole guest */
#define DSM_WIRE_TSC		7	/* with what a slice's TSC is ahead of its host's */
#define DSM_WIRE_HIGHEST	7
#define DSM_WIRE_BYTES		32
#define DSM_WIRE_MAGIC		0x4d534458	/* "XDSM" */

struct dsm_hello {
	uint8_t lowest, highest;	/* versions */
	uint8_t host, nr_hosts;
	uint32_t epoch;			/* not 0 */
	uint8_t vm[16];
};

/** Write the 32 bytes of @msg.  Any value can be written. */
void dsm_wire_put(const struct dsm_msg *msg, uint8_t bytes[DSM_WIRE_BYTES]);

/**
 * Read the first 32 bytes of a message.
 * @msg: unchanged after an error.
 * Return: how many bytes follow, dsm_type_bytes();
 * -DSM_E_VERSION, -DSM_E_TYPE, -DSM_E_REASON, -DSM_E_LENGTH, -DSM_E_RESERVED.
 * What the fields mean here and now is dsm_check()'s question.
 */
int dsm_wire_get(const uint8_t bytes[DSM_WIRE_BYTES], struct dsm_msg *msg);

/** Return: the lowest version of a connection that has messages of this type. */
unsigned int dsm_wire_version(unsigned int type);

void dsm_wire_put_hello(const struct dsm_hello *hello,
			uint8_t bytes[DSM_WIRE_BYTES]);

/**
 * Read a HELLO.
 * @hello: unchanged after an error.
 * Return: the version to speak: the highest that both know;
 * -DSM_E_TYPE if it is none; -DSM_E_VERSION if there is no common version, or the
 * lowest is above the highest;
 * -DSM_E_PEER for impossible numbers of hosts; -DSM_E_EPOCH for epoch 0;
 * -DSM_E_RESERVED.
 */
int dsm_wire_get_hello(const uint8_t bytes[DSM_WIRE_BYTES],
		       struct dsm_hello *hello);

#ifdef __cplusplus
}
#endif

#endif
