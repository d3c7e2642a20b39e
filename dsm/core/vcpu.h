/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What hosts say to each other about vCPUs that run on several of them: no
 * business of pages, and so not of the rest of dsm/core.  What each thing means
 * is in xen/include/public/dsm.h; decision 0111 says who may say it.
 *
 * After the 32 bytes of a message (wire.h), in which flags, reason, transaction
 * and gfn are 0, come 64 more, all numbers little-endian:
 *
 *	 0	4	vcpu
 *	 4	1	flags
 *	 5	1	sipi
 *	 6	2	0
 *	 8	8	number
 *	16	4	op
 *	20	4	cmd
 *	24	4	about
 *	28	4	rc
 *	32	32	word[0] .. word[3]
 *
 * Which type has which of them; all others are 0:
 *
 *		  EVENT    PORTS  CALL         REPLY      SHUTDOWN TIME      IDLE
 *	vcpu	  to whom	  who waits    the same
 *	flags	  DSM_EVENT_*			   reason   slow
 *	sipi	  vector					    shift
 *	number		   first  cookie       the same		    TSC's offset
 *									  report
 *	op, cmd			  the call
 *	about			  its vCPU
 *	rc				       result
 *	word	  vectors  ports  arg,	       arg		    tsc, ns, mul
 *				  shared_info			   host, sent, got
 *
 *		  READY	     STOP    FENCE, GO	QUIET		PLACE	     PLACED
 *	vcpu					one that waits	which	     the same
 *	flags	  DSM_NOT_*			DSM_QUIET_*		     DSM_PLACED_*
 *	number		     round   round	round		round	     round
 *	word		     hosts		hosts		host, info,  info
 *								shared_info
 *
 *		  ACCESS	 ACCESSED	   PAUSE, PAUSED	TSC
 *	vcpu	  who waits	 the same
 *	flags	  DSM_ACCESS_*	 DSM_ACCESS_AGAIN  DSM_PAUSE_ON
 *	number	  cookie	 the same				TSC's offset
 *	word	  address,	 old
 *		  old, value
 *
 * ACCESS: READ, WRITE or CMPXCHG, and the width in its place; the address is that of the
 * guest's memory, and the bytes are within 8 that are aligned.  value is what is written, old
 * what has to be there (CMPXCHG); in the answer what was there (READ, CMPXCHG).  AGAIN: it was
 * not done, since the page may leave its home.
 *
 * STOP: the hosts that send each other FENCE, bit n host n.  QUIET: those of them to which
 * there is no connection.  info: the address of a page of a vcpu_info in the guest, which is
 * to be registered, or is registered nowhere now; or 0.
 *
 * POLICY and TABLE have a page instead.  Of POLICY its number is in gfn.  TABLE: byte n is the
 * host of vCPU n, and 0 behind the last one.
 */
#ifndef DSM_VCPU_H
#define DSM_VCPU_H

#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_VCPU_WORDS	4

/* Of an EVENT, in the order in which they are done; then vectors. */
#define DSM_EVENT_INIT	0x01	/* makes void what was sent before */
#define DSM_EVENT_SIPI	0x02
#define DSM_EVENT_NMI	0x04

#define DSM_PORTS	4096u	/* event channels of all slices */
#define DSM_PORTS_AT_ONCE 256u	/* in one PORTS, of one slice */
#define DSM_SHUTDOWNS	6u	/* reasons: Xen's SHUTDOWN_* */
#define DSM_SHUTDOWN_POWEROFF 0u
#define DSM_MOST_SLOW	100u	/* times that a guest's clock is slower */
#define DSM_POLICY_PARTS 4u	/* pages of a CPU policy, at most */

/* READY: what is in the way of vCPUs at that host; 0: nothing. */
enum dsm_not_ready {
	DSM_NOT_TSC = 1,	/* its TSC and the home's can't be one guest's */
	DSM_NOT_POLICY,		/* nor can the CPU policy */
	DSM_NOT_TIME,		/* Xen does not take its time */
	DSM_NOT_TABLE,		/* nor where vCPUs run */
	DSM_NOT_VERSION,	/* not on the wire: it speaks another version */
	DSM_NOTS
};

#define DSM_QUIET_CALLING 0x01	/* but for the hypercall, or the access, of a vCPU */

/* ACCESS: what, and log2 of how many bytes. */
#define DSM_ACCESS_READ		1u
#define DSM_ACCESS_WRITE	2u
#define DSM_ACCESS_CMPXCHG	3u
#define DSM_ACCESS_WHAT		0x0fu
#define DSM_ACCESS_WIDTH(flags)	(1u << ((flags) >> 4 & 3))
#define DSM_ACCESS_AGAIN	0x01	/* ACCESSED */

#define DSM_PAUSE_ON	0x01	/* PAUSE: it is to stand still, else to go on; PAUSED: it does */

enum dsm_placed {
	DSM_PLACED_DONE,
	DSM_PLACED_UP,		/* no: it runs there, and is up */
	DSM_PLACED_BUSY,	/* no: something is on its way still, or the guest runs */
	DSM_PLACED_SHARED,	/* no: its vcpu_info is not alone in its page */
	DSM_PLACED_FAILED,	/* no: its Xen's log, and its own, say why */
	DSM_PLACEDS
};

struct dsm_vcpu_msg {
	uint8_t type;		/* enum dsm_vcpu_type */
	uint8_t host;		/* not on the wire: whom it is for */
	uint8_t flags, sipi;
	uint32_t vcpu;
	uint64_t number;
	uint32_t op, cmd, about;
	int32_t rc;
	uint64_t word[DSM_VCPU_WORDS];
};

/** Write the DSM_VCPU_BYTES of @msg.  Any value can be written. */
void dsm_vcpu_put(const struct dsm_vcpu_msg *msg, uint8_t bytes[DSM_VCPU_BYTES]);

/**
 * Read what follows the head of a message.
 * @type: of the head: enum dsm_vcpu_type, and none that has a page.
 * @msg: unchanged after an error; host is 0.
 * Return: 0; -DSM_E_RESERVED for something that the type does not have; -DSM_E_FLAGS;
 * -DSM_E_VECTOR for one below 16; -DSM_E_PORT; -DSM_E_RESULT; -DSM_E_REASON; -DSM_E_TIME.
 * What it means here and now is the caller's question.
 */
int dsm_vcpu_get(const uint8_t bytes[DSM_VCPU_BYTES], unsigned int type,
		 struct dsm_vcpu_msg *msg);

/** An EVENT is owed to a vCPU, and here is the next one for it. */
void dsm_vcpu_merge(struct dsm_vcpu_msg *owed, const struct dsm_vcpu_msg *next);

enum dsm_call_concern {
	DSM_CALL_NOT_DONE,	/* for another host */
	DSM_CALL_OF_VCPU,	/* about the vCPU `about` */
	DSM_CALL_OF_PORT,
};

/**
 * What is a CALL about?
 * @port: set for DSM_CALL_OF_PORT; any number.
 */
enum dsm_call_concern dsm_call_concern(const struct dsm_vcpu_msg *call, uint32_t *port);

/** The slice of a host, and the host of a slice.  @home: the host that is slice 0. */
static inline unsigned int dsm_slice_number(unsigned int home, unsigned int host)
{
	return host == home ? 0 : host ? host : home;
}

/** Return: how many ports each of @nr_slices, 1 .. DSM_PORTS, has: a power of two. */
unsigned int dsm_ports(unsigned int nr_slices);

/** Return: the slice whose a port is; @nr_slices: none's. */
unsigned int dsm_port_slice(uint32_t port, unsigned int nr_slices);

#ifdef __cplusplus
}
#endif

#endif
