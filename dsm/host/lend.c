// SPDX-License-Identifier: GPL-2.0
/*
 * How much of this host's memory the VMs of other homes have: limits.lend_percent
 * of dsm.toml(5).  And how many VMs of one home: each has a dsmd in dom0, whose
 * memory is locked and which is not killed when memory is short (limits.lend_guests).
 * A home can have it know each page that is lent, so that is counted, too, as if all
 * of them were in use (limits.lend_dom0_percent).
 *
 * It is written in the record before anybody takes it, so that two at a time do
 * not take the same.  What a request that was cut leaves written is too much, until
 * the next one of that VM.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lend.h"
#include "overhead.h"

void lend_set(struct record *record, const struct record_range *range, uint64_t kib)
{
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		if (!range || range == &record->range[i])
			record->range[i].lent_kib = kib;
}

static uint64_t lent_kib(const struct host *host, const struct record *record)
{
	uint64_t kib = record->begun ? record_overhead_kib(record, host->config.self) : 0;
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		kib += record->range[i].lent_kib;
	return kib;
}

/* What dom0 may need for it. */
static uint64_t books_kib(const struct record *record)
{
	uint64_t kib = 0;
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		kib += record->range[i].lent_kib;
	return kib / 4 * DSM_PAGE_BOOKS / 1024;
}

struct lent {
	const struct record *but;
	uint64_t kib, books_kib;
	unsigned int guests;	/* of the same home */
};

static void add_lent(struct host *host, const struct record *record, void *context)
{
	struct lent *lent = context;

	if (record_is_home(host, record) || !strcmp(record->uuid_text, lent->but->uuid_text))
		return;
	lent->kib += lent_kib(host, record);
	lent->books_kib += books_kib(record);
	lent->guests += record->begun && record->home == lent->but->home;
}

static int check_dom0(const struct host *host, const struct host_facts *facts, uint64_t lent,
		      uint64_t needs, struct answer *answer)
{
	uint64_t most = facts->dom0_kib / 100 * host->config.lend_dom0_percent;

	if (!facts->dom0_kib || lent + needs <= most)
		return 0;
	return answer_error(answer, "memory-there", "dom0 of host %s has %llu KiB to know of memory that is lent (limits.lend_dom0_percent of its dsm.toml), may need %llu KiB for others, %llu KiB are needed",
			    host_name(host, host->config.self), (unsigned long long)most,
			    (unsigned long long)lent, (unsigned long long)needs);
}

/* With the lock of the numbers. */
static int check_lent(struct host *host, const struct record *record, struct answer *answer)
{
	struct lent lent = { .but = record };
	struct host_facts facts = { 0 };
	char text[HOST_TEXT + 1];
	uint64_t most, needs = lent_kib(host, record), books = books_kib(record);
	int rc = host->xen->facts(&facts);

	if (rc) {
		host_why_not_xen(host, rc, text);
		return answer_error(answer, "internal", "%s", text);
	}
	most = facts.total_kib / 100 * host->config.lend_percent;
	record_each(host, add_lent, &lent);
	if (lent.guests >= host->config.lend_guests)
		return answer_error(answer, "memory-there", "host %s has memory for %u guests of host %s, no more (limits.lend_guests of its dsm.toml)",
				    host_name(host, host->config.self), lent.guests,
				    host_name(host, record->home));
	if (lent.kib + needs <= most)
		return check_dom0(host, &facts, lent.books_kib, books, answer);
	return answer_error(answer, "memory-there", "host %s lends %llu KiB (limits.lend_percent of its dsm.toml), has lent %llu KiB to others, %llu KiB are needed",
			    host_name(host, host->config.self), (unsigned long long)most,
			    (unsigned long long)lent.kib, (unsigned long long)needs);
}

int lend_write(struct host *host, const struct record *record, bool more,
	       struct answer *answer)
{
	int lock = record_lock_numbers(host), rc;

	if (lock < 0)
		return answer_error(answer, "internal", "the lock of the numbers: %s", strerror(-lock));
	rc = more ? check_lent(host, record, answer) : 0;
	if (!rc && record_write(host, record))
		rc = answer_error(answer, "internal", "host %s: record of %s can't be written",
				  host_name(host, host->config.self), record->guest);
	close(lock);
	return rc;
}
