/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a host knows of a VM, in files below FOLDER/vm (FOLDER: /run/xenuma/dsmd):
 *
 *	UUID.lock		who changes something for the VM has it (flock)
 *	UUID/record.json	struct record, replaced as a whole
 *	UUID/vm.json		the description for its dsmd (dsmd(8))
 *	UUID/alive		its dsmd has this open and locked: so it lives
 *	UUID/pid		of that dsmd
 *
 * The same JSON goes to the other hosts of the VM when it is reserved there.
 * The folder is root's; what is in it is checked when it is read, all the same.
 */
#ifndef HOST_RECORD_H
#define HOST_RECORD_H

#include <sys/types.h>

#include "host.h"

struct record_range {
	unsigned int vnode, host;	/* DSM_VNODES: no vnode's, but the rings of its devices */
	uint64_t first, frames;		/* gfn */
	bool spans;			/* its memory comes with "node" */
	uint64_t pool_kib;		/* that its pool is to have; 0 if it does not span */
	uint64_t lent_kib;		/* elsewhere than at home: it has this, or less */
};

/* vCPUs that run at another host while it is attached; docs/dsm-control.md. */
struct record_place {
	unsigned int first, nr, host;
};

struct record {
	uint8_t uuid[16];
	char uuid_text[37];
	char name[DSM_DESCRIPTION_NAME];
	char guest[256];		/* its name for people, which has other letters */
	unsigned int number, home, nr_vcpus;
	uint32_t domid;			/* at home; 0 elsewhere */
	bool begun;			/* a dsmd was started here, and made its slice */
	unsigned int nr_ranges;
	struct record_range range[DSM_DESCRIPTION_RANGES];
	unsigned int nr_places;		/* sorted, apart */
	struct record_place place[DSM_PLACES];
};

/** Are the frames those that backends have for ever (docs/dsm-control.md)? */
bool record_is_rings(const struct record_range *range);
/** Is it the home, here? */
bool record_is_home(const struct host *host, const struct record *record);
/** Return: the range of a vnode that spans; NULL. */
const struct record_range *record_vnode(const struct record *record, unsigned int vnode);
/** Does a vnode have its memory at a host? */
bool record_has_host(const struct record *record, unsigned int host);
/** Return: how many frames its vnodes that span have at a host, at most. */
uint64_t record_frames_of(const struct record *record, unsigned int host);
/** Do they describe the same VM? */
bool record_is_same(const struct record *a, const struct record *b);
/** Do the same vCPUs of both have their places at the same hosts? */
bool record_has_same_places(const struct record *a, const struct record *b);

/** Return: how many vCPUs have their place at a host. */
unsigned int record_vcpus_of(const struct record *record, unsigned int host);
/** Has a vCPU its place there? */
bool record_has_vcpu(const struct record *record, unsigned int vcpu, unsigned int host);

/**
 * Frames for pages of others in the slice of a host that is not the home.  vCPUs that
 * run there use the guest's memory elsewhere: the same fraction of it as the home has
 * of a vnode's.
 */
uint64_t record_pool_frames(const struct record *record, unsigned int host);
/** KiB of such a slice besides its memory: page tables, and that pool. */
uint64_t record_overhead_kib(const struct record *record, unsigned int host);

struct json_object *record_to_json(const struct host *host, const struct record *record);
/** Return: 0; -1, and *answer says what is wrong. */
int record_from_json(struct host *host, struct json_object *json, struct record *record,
		     struct answer *answer);

/** The key "vnode" of a range; DSM_VNODES if it is missing.  Return: 0; -1. */
int record_read_vnode(struct json_object *from, unsigned int *vnode, struct answer *answer);
/** The key "places", which may be missing.  The ranges are there.  Return: 0; -1. */
int record_read_places(struct host *host, struct json_object *from, struct record *record,
		       struct answer *answer);

/** Make the folders.  Return: 0; -errno. */
int record_prepare(const struct host *host);

/**
 * Be the only one that changes something for a VM.
 * Return: a descriptor, to be closed; -EBUSY after @seconds; -errno.
 */
int record_lock(const struct host *host, const char *uuid, double seconds);
/** The lock's file goes, too, if there is no record. */
void record_unlock(const struct host *host, const char *uuid, int lock);
/** Be the only one that makes records.  Return: a descriptor; -errno. */
int record_lock_numbers(const struct host *host);

/** Return: 0; -ENOENT: none; -EINVAL: it is none; -errno: it is not known. */
int record_read(struct host *host, const char *uuid, struct record *record);
/**
 * The same for who answers.  What can't be read is not "none": guests may run by it.
 * Return: 1; 0: none; -1: it can't be read, and *answer says so.
 */
int record_find(struct host *host, const char *uuid, struct record *record,
		struct answer *answer);
/**
 * At home: is the domain there, and not being destroyed?
 * Return: 1; 0; -errno: Xen can't be asked.
 */
int record_has_domain(const struct host *host, const struct record *record);
/** With the description.  Return: 0; -errno. */
int record_write(const struct host *host, const struct record *record);
/** Return: 0; -errno. */
int record_remove(const struct host *host, const char *uuid);

/**
 * Remove those of the same name as @record, of another VM whose domain has ended: the
 * next sweep() would do it.  The caller has the lock of @record; a lock of another VM
 * is waited for for a moment only.
 */
void sweep_name(struct host *host, const struct record *record);

/**
 * Call @each with all that can be read.  It may remove its own.
 * Return: the UUID of one that can't be read, until the next call; NULL.
 */
const char *record_each(struct host *host, void (*each)(struct host *host,
		 const struct record *record, void *context), void *context);

/* ---- The dsmd of a VM ---- */

/** Does it live, or may it: what can't be looked at may. */
bool dsmd_lives(const struct host *host, const char *uuid);
/** Return: its pid; 0: there is none, or it can't be read of one that lives. */
pid_t dsmd_pid(const struct host *host, const char *uuid);

/** Return: has there been one since the record was made? */
bool dsmd_was_started(const struct host *host, const char *uuid);
/** Return: has there been one, and is it known that there is none any more? */
bool dsmd_has_ended(const struct host *host, const char *uuid);

/**
 * Start it, and wait until it runs.
 * Return: 0, also if it runs already; -1, and then there is none.
 */
int dsmd_start(struct host *host, const struct record *record, struct answer *answer);

/**
 * It has ended and was not told to: the VM has failed.  Until dsmd_start() or
 * dsmd_end() dsmctl finds the reason in a file beside its socket.
 */
void dsmd_died(struct host *host, const struct record *record);

/**
 * End it, and wait for that; elsewhere than at home destroy the slice, too.  Nothing of
 * it is left then.
 * Return: 0; -1: it does not end, or the slice is still there.
 */
int dsmd_end(struct host *host, const struct record *record, struct answer *answer);

#endif
