/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What dsmd-host asks of Xen.  A table of functions, so that unit tests play it.
 *
 * Context: any process of dsmd-host; each opens what it needs and closes it.
 * Nothing blocks for longer than hypercalls and xenstore take.
 */
#ifndef HOST_XEN_H
#define HOST_XEN_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_XEN_FEATURES	32	/* words of features, at most */
#define HOST_XEN_VERSION	64

/* Of a host. */
struct host_facts {
	char version[HOST_XEN_VERSION];	/* "4.20.3-rc" */
	uint32_t abi;			/* XEN_DSM_INTERFACE_VERSION */
	bool hap;			/* hardware assisted paging */
	uint64_t free_kib, total_kib;
	uint64_t dom0_kib;		/* of the control domain; 0: not known */
	unsigned int cpus;		/* physical ones that are online */
	uint32_t tsc_khz;		/* 0: it can't be a guest's on several hosts */
	unsigned int nr_features;
	uint32_t feature[HOST_XEN_FEATURES];	/* that guests could be shown */
};

struct host_xen {
	/** Return: 0; -ENOSYS: Xen has no DSM; -EACCES: it has another version of an interface; -errno. */
	int (*facts)(struct host_facts *facts);
	/** The features that a guest is shown.  Return: 0 or -errno. */
	int (*features)(uint32_t domid, unsigned int *nr, uint32_t feature[HOST_XEN_FEATURES]);
	/** Return: 0; -ESRCH: no such domain, or it is being destroyed; -errno. */
	int (*uuid)(uint32_t domid, uint8_t uuid[16]);
	/** Return: 0; -ESRCH: no domain has this UUID, but such as are being destroyed; -errno. */
	int (*find_uuid)(const uint8_t uuid[16], uint32_t *domid);
	/**
	 * A domain of this UUID that no toolstack has made: a slice.  One that is being
	 * destroyed, too: who did that may have been killed.
	 * Return: 0; -ESRCH: there is none; -errno.
	 */
	int (*find_slice)(const uint8_t uuid[16], uint32_t *domid);
	/** Return: 0; -ESRCH: no domain has this name; -errno. */
	int (*find_name)(const char *name, uint32_t *domid);
	/** Return: 0 or -errno. */
	int (*destroy)(uint32_t domid);
	/**
	 * The VM can't go on: crash its domain, and say in xenstore why, unless its
	 * dsmd has said why already.
	 * @domid: 0: there is no domain that runs.
	 * Return: 0 or -errno.
	 */
	int (*fail)(uint32_t domid, const uint8_t uuid[16], const char *why);
	/** Nothing of the VM is in xenstore any more.  Return: 0 or -errno. */
	int (*forget)(const uint8_t uuid[16]);
	/**
	 * A descriptor that is readable after a domain has ended; -1: there is none.
	 * For the parent only.  It may be tried again.
	 */
	int (*watch)(void);
	/** The file that is made anew when xenstore begins, and watch() may work from then on. */
	const char *(*xenstore)(void);
	/** Read what is there. */
	void (*watched)(void);
	/** Bits of a word of features, for people.  Return: the length, as snprintf(). */
	size_t (*say_features)(unsigned int word, uint32_t bits, char *text, size_t size);
};

/** Return: the real one, or a played one. */
const struct host_xen *host_xen_get(void);

#endif
