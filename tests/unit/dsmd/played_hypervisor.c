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
	uint64_t checked;
	struct {
		uint64_t gfn, rip;
		unsigned int word, want;
		bool set;
	} run[VCPUS];
} guest;

static void run_vcpu(unsigned int vcpu)
{
	uint64_t *at, serial;

	if (guest.played.vcpu[vcpu].waits)
		return;
	if (!guest.run[vcpu].set) {
		if (!guest.left)
			return;
		guest.left--;
		guest.run[vcpu].gfn = dice_below(PAGES);
		guest.run[vcpu].word = dice_below(PLAYED_WORDS);
		guest.run[vcpu].want = dice_below(2) ? DSM_XEN_WANT_S : DSM_XEN_WANT_M;
		guest.run[vcpu].rip = dice();
		guest.run[vcpu].set = true;
	}
	if (played_use(&guest.played, vcpu, guest.run[vcpu].gfn,
		       guest.run[vcpu].want, guest.run[vcpu].rip) != PLAYED_DONE)
		return;
	if (guest.witness) {
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
	return !guest.left && !guest.run[0].set && !guest.run[1].set;
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
