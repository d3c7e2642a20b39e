// SPDX-License-Identifier: GPL-2.0
/*
 * A hypervisor for the process: dsmd with this file in place of xen_libxc.c is a
 * real dsmd but for its guest.  The guest's vCPUs run in dsmd's own loop, 20
 * instructions each time a descriptor is readable, which it always is while
 * there is something to do.
 *
 * DSMD_PLAYED is a file that all hosts' processes share: what was written last
 * to each word.  Who can write to a page is alone with it, so the file and the
 * page agree whenever a vCPU may look; when they do not, the process says so and
 * aborts.  DSMD_INSTRUCTIONS is how many instructions this host's vCPUs run once
 * the VM is told to begin, by a byte in the file's last word.
 *
 * DSMD_WITNESS, if it is there: this host's vCPUs only touch pages, they neither
 * write nor look.  For a host that lies, whose own words say nothing.
 *
 * Of a VM whose vCPUs run on several hosts each runs where it is, and not while the
 * guest stands still.  DSMD_STAYS, two gfns of different hosts, "3,35", then names pages
 * that can't leave their home: these are no plain memory, and the next ones are in use.  Whoever
 * is elsewhere makes accesses to them; nobody looks at their words, which each of the hosts may write.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "case.h"
#include "dice.h"
#include "hypervisor.h"
#include "played_xen.h"

#define PAGES	64		/* that vCPUs use */
#define ALL	2048		/* with those of vnodes that come and go */
#define VCPUS	2

struct shared {
	_Atomic uint64_t word[PAGES][PLAYED_WORDS];
	_Atomic uint64_t written;
	_Atomic uint32_t done;		/* hosts whose vCPUs have run everything */
	_Atomic uint32_t begin;
};

static struct {
	struct played_xen played;
	const struct dsm_xen_calls *calls;	/* the played ones */
	struct shared *shared;
	int timer;
	unsigned int left;
	bool said, witness;
	unsigned int stays[2];		/* 0: none */
	uint64_t checked;
	struct {
		uint64_t gfn, rip;
		unsigned int word, want;
		bool set;
	} run[VCPUS];
} guest;

static bool stays(uint64_t gfn)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		if (guest.stays[i] && gfn - guest.stays[i] < 2)
			return true;
	return false;
}

static void run_vcpu(unsigned int vcpu)
{
	uint64_t *at, serial;
	unsigned int what;

	if (guest.played.vcpu[vcpu].waits || guest.played.accesses[vcpu].type || guest.played.pauses ||
	    guest.played.elsewhere[vcpu])
		return;
	if (!guest.run[vcpu].set) {
		if (!guest.left)
			return;
		guest.left--;
		guest.run[vcpu].gfn = dice_below(PAGES);
		if (guest.stays[0] && !dice_below(4))
			guest.run[vcpu].gfn = guest.stays[dice_below(2)] + dice_below(2);
		guest.run[vcpu].word = dice_below(PLAYED_WORDS);
		guest.run[vcpu].want = dice_below(2) ? DSM_XEN_WANT_S : DSM_XEN_WANT_M;
		guest.run[vcpu].rip = dice();
		guest.run[vcpu].set = true;
	}
	switch (played_use(&guest.played, vcpu, guest.run[vcpu].gfn,
			   guest.run[vcpu].want, guest.run[vcpu].rip)) {
	case PLAYED_DONE:
		break;
	case PLAYED_ACCESS:
		what = DSM_ACCESS_READ + dice_below(3);
		played_access(&guest.played, vcpu, what,
			      guest.run[vcpu].gfn * DSM_PAGE_BYTES + 8 * guest.run[vcpu].word,
			      what == DSM_ACCESS_CMPXCHG ? dice_below(2) : 0,
			      what == DSM_ACCESS_READ ? 0 : dice_below(2));
		guest.run[vcpu].set = false;
		return;
	default:
		return;
	}
	if (guest.witness || stays(guest.run[vcpu].gfn)) {
		guest.run[vcpu].set = false;
		return;
	}
	at = &guest.played.page[guest.run[vcpu].gfn].word[guest.run[vcpu].word];
	if (*at != guest.shared->word[guest.run[vcpu].gfn][guest.run[vcpu].word]) {
		fprintf(stderr, "played: an OLD WORD at gfn %" PRIu64 "\n", guest.run[vcpu].gfn);
		abort();
	}
	guest.checked++;
	if (guest.run[vcpu].want == DSM_XEN_WANT_M) {
		serial = atomic_fetch_add(&guest.shared->written, 1) + 1;
		*at = serial;
		guest.shared->word[guest.run[vcpu].gfn][guest.run[vcpu].word] = serial;
	}
	guest.run[vcpu].set = false;
}

static bool is_done(void)
{
	unsigned int i;

	for (i = 0; i < VCPUS; i++)
		if (guest.run[i].set || guest.played.accesses[i].type ||
		    (guest.left && !guest.played.elsewhere[i]))
			return false;
	return true;
}

static int misses(struct dsm_xen *xen, struct dsm_xen_entry *into, unsigned int most)
{
	uint64_t ticks;
	unsigned int i;

	if (read(guest.timer, &ticks, sizeof(ticks)) != sizeof(ticks))
		return guest.calls->misses(xen, into, most);
	for (i = 0; i < 20 && guest.shared->begin; i++) {
		run_vcpu(0);
		run_vcpu(1);
	}
	if (is_done() && !guest.said) {
		guest.said = true;
		fprintf(stderr, "played: %" PRIu64 " words checked\n", guest.checked);
		guest.shared->done++;
	}
	return guest.calls->misses(xen, into, most);
}

static int descriptor(struct dsm_xen *xen)
{
	(void)xen;
	return guest.timer;
}

static void close_guest(struct dsm_xen *xen)
{
	(void)xen;
	close(guest.timer);
	munmap(guest.shared, sizeof(*guest.shared));
}

struct dsm_xen *dsm_hypervisor_open(const struct dsm_description *d,
				    const struct dsm_config *config,
				    char text[DSM_ENGINE_TEXT])
{
	static struct dsm_xen_calls calls;
	struct itimerspec often = {
		.it_value.tv_nsec = 200000, .it_interval.tv_nsec = 200000,
	};
	const char *file = getenv("DSMD_PLAYED"), *left = getenv("DSMD_INSTRUCTIONS");
	const char *of_stays = getenv("DSMD_STAYS");
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
	unsigned int i;
	uint64_t gfn;

	if (fd < 0) {
		snprintf(text, DSM_ENGINE_TEXT, "DSMD_PLAYED: %s", strerror(errno));
		return NULL;
	}
	guest.shared = mmap(NULL, sizeof(*guest.shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	guest.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	CHECK(!ftruncate(fd, sizeof(*guest.shared)) && guest.shared != MAP_FAILED &&
	      guest.timer >= 0 && !timerfd_settime(guest.timer, 0, &often, NULL),
	      "%s", strerror(errno));
	close(fd);
	dice_state = 1000 + config->self;
	guest.witness = getenv("DSMD_WITNESS");
	guest.left = left ? (unsigned int)atoi(left) : 0;
	/* More vCPUs than those that run can be placed. */
	played_init(&guest.played, ALL, d->nr_vcpus > VCPUS ? d->nr_vcpus : VCPUS, 8, d->frames);
	for (i = 0; i < d->nr_ranges; i++)
		for (gfn = d->range[i].start; gfn < d->range[i].end && gfn < ALL && !d->detached[i]; gfn++)
			guest.played.page[gfn].state = d->range[i].home == config->self ?
				DSM_XEN_STATE_M : DSM_XEN_STATE_I;
	guest.played.self = config->self;
	for (i = 0; i < d->nr_vcpus && d->nr_places; i++)
		guest.played.elsewhere[i] = d->where[i] != config->self;
	if (of_stays && sscanf(of_stays, "%u,%u", &guest.stays[0], &guest.stays[1]) == 2)
		for (i = 0; i < 2; i++)
			if (guest.played.page[guest.stays[i]].state == DSM_XEN_STATE_M) {
				guest.played.page[guest.stays[i]].special = true;
				guest.played.page[guest.stays[i] + 1].pinned = true;
			}
	guest.played.told = (struct dsm_xen_waits){
		.waits = 4, .wait_ns = 6000, .traps = 3, .trap_ns = 1500,
	};
	guest.played.slice = dsm_description_slice(d, config->self);
	guest.played.nr_slices = config->nr_hosts;
	guest.played.time = (struct dsm_vcpu_msg){ .number = 5, .sipi = 3, .word = { 1, 2, 3 } };
	guest.calls = guest.played.xen.calls;
	calls = *guest.calls;
	calls.misses = misses;
	calls.descriptor = descriptor;
	calls.close = close_guest;
	guest.played.xen.calls = &calls;
	return &guest.played.xen;
}

void dsm_hypervisor_publish(const struct dsm_description *d, const char *state)
{
	fprintf(stderr, "published: %s %s\n", d->name, state);
}
