/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a dsmd is told of its VM: a JSON object (dsmd(8)), by the toolstack or an
 * operator.  It is checked like anything else that comes from outside: a key
 * that nobody knows, a value out of its range and a contradiction are mistakes.
 */
#ifndef DSM_DESCRIPTION_H
#define DSM_DESCRIPTION_H

#include "config.h"
#include "engine.h"
#include "polling.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_DESCRIPTION_BYTES	65536	/* of a file, at most */
#define DSM_DESCRIPTION_RANGES	16	/* XEN_DSM_MAX_RANGES */
#define DSM_DESCRIPTION_NAME	64	/* bytes of a VM's name, with its 0 */
#define DSM_DESCRIPTION_TEXT	512
#define DSM_VNODES		64	/* a vnode's number is 0 .. this - 1 */
#define DSM_RANGE_FRAMES	512u	/* 2 MiB: where a detached range begins and ends */
#define DSM_VM_NUMBERS		1024	/* a VM's number is 1 .. this - 1 */

#define DSM_PLACES		64	/* most of them */

/* vCPUs of another host than the home. */
struct dsm_place {
	unsigned int first, nr, host;
	bool attached;		/* from the start on; else they are at home first */
};

struct dsm_description {
	char name[DSM_DESCRIPTION_NAME];	/* letters, digits, "-", "_", "." */
	uint8_t uuid[16];
	unsigned int number;	/* its port is that of the host in dsm.toml, and so many more */
	bool build;		/* make the slice; else domid is there and has not run */
	uint32_t domid;		/* not if build */
	unsigned int nr_vcpus;
	unsigned int frames;	/* of the pool for pages of others */
	unsigned int token_home;	/* the host that hands out the token */
	unsigned int nr_ranges;
	struct dsm_range range[DSM_DESCRIPTION_RANGES];
	unsigned int vnode[DSM_DESCRIPTION_RANGES];	/* of each range; rings: DSM_VNODES */
	bool rings[DSM_DESCRIPTION_RANGES];	/* what is in use in it is so for ever */
	bool detached[DSM_DESCRIPTION_RANGES];	/* no memory in it before somebody says "node" */
	bool elastic;		/* there is such a range: nobody is waited for */
	unsigned int nr_places;	/* 0: all vCPUs are at home, for good */
	struct dsm_place place[DSM_PLACES];
	uint8_t where[DSM_ENGINE_VCPUS];	/* the host of each vCPU at first, with places */
	uint8_t places[DSM_ENGINE_VCPUS];	/* and where it may be, but at home */
	uint16_t lenders;	/* set of hosts where no vCPU is, nor will be, as far as that is known */
	unsigned int slow;	/* the guest's clock, times; with places */
	/* may be left out */
	uint64_t lease_ns, token_ns, retry_ns, pin_ns;
	uint64_t answer_ns;	/* UINT64_MAX: what the others allow */
	uint32_t keepalive_ms;
	unsigned int prefetch;			/* pages; 0: off */
	bool clear_hint, class_u;
	uint64_t busy_wait_ns, poll_ns;		/* 0: off */
};

/**
 * Read a file.
 * @config: for the names of the hosts.
 * @description: written only if all is right.
 * @text: what is wrong: "FILE: KEY: what is allowed".
 * Return: 0; -EINVAL for a mistake; -E2BIG; -ENOMEM; what open() and read() say.
 */
int dsm_description_read(const char *file, const struct dsm_config *config,
			 struct dsm_description *description,
			 char text[DSM_DESCRIPTION_TEXT]);

/** The same, of @size bytes that are said to come from @file. */
int dsm_description_parse(const char *bytes, size_t size, const char *file,
			  const struct dsm_config *config,
			  struct dsm_description *description,
			  char text[DSM_DESCRIPTION_TEXT]);

/** The engine's parameters; xen, calls, context and seed stay. */
void dsm_description_engine(const struct dsm_description *description,
			    const struct dsm_config *config,
			    struct dsm_engine_params *params);

/**
 * How many frames the slice of a host may have as long as what is detached is so: its
 * part of the guest's memory, its pool, and what Xen itself makes of it.
 */
uint64_t dsm_description_limit(const struct dsm_description *description, unsigned int host);

/**
 * The number of the slice of a host, and the host of a slice.  They are the same
 * without places; with them the home is slice 0.
 */
uint8_t dsm_description_slice(const struct dsm_description *description, unsigned int host);
uint8_t dsm_description_host(const struct dsm_description *description, unsigned int slice);

/** The transport's: our UUID, and the ports of this VM.  After dsm_config_transport(). */
void dsm_description_transport(const struct dsm_description *description,
			       struct dsm_transport_params *params);

/** "01234567-89ab-cdef-0123-456789abcdef", and back.  Return: was it one? */
void dsm_uuid_text(const uint8_t uuid[16], char text[37]);
bool dsm_uuid_read(const char *text, uint8_t uuid[16]);

#ifdef __cplusplus
}
#endif

#endif
