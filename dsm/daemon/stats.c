// SPDX-License-Identifier: GPL-2.0
/*
 * The two texts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "stats.h"

#define LAST_BUCKET	(DSM_HISTOGRAM_BUCKETS - 1)

/*
 * JSON.  json-c returns NULL without memory, and takes NULL for null: failed
 * says whether that has happened.
 */
struct json {
	struct json_object *object;
	bool *failed;
};

static bool add_object(struct json to, const char *key,
		       struct json_object *value)
{
	if (!to.object || !value ||
	    json_object_object_add(to.object, key, value)) {
		*to.failed = true;
		json_object_put(value);
		return false;
	}
	return true;
}

static void add_number(struct json to, const char *key, uint64_t value)
{
	add_object(to, key, json_object_new_uint64(value));
}

static struct json add_table(struct json to, const char *key)
{
	struct json table = { json_object_new_object(), to.failed };

	if (!add_object(to, key, table.object))
		table.object = NULL;
	return table;
}

/* [its end in ns, or null for the last; number] */
static bool add_bucket(struct json_object *buckets, unsigned int bucket,
		       uint64_t count)
{
	struct json_object *pair = json_object_new_array();
	struct json_object *end = NULL, *number = json_object_new_uint64(count);

	if (bucket < LAST_BUCKET)
		end = json_object_new_uint64(dsm_histogram_end(bucket));
	if (!pair || !number || (bucket < LAST_BUCKET && !end))
		goto failed;
	if (json_object_array_add(pair, end))
		goto failed;
	end = NULL;	/* the pair's */
	if (json_object_array_add(pair, number))
		goto failed;
	number = NULL;
	if (json_object_array_add(buckets, pair))
		goto failed;
	return true;
failed:
	json_object_put(end);
	json_object_put(number);
	json_object_put(pair);
	return false;
}

static void add_histogram(struct json to, const char *key,
			  const struct dsm_histogram *histogram)
{
	struct json table = add_table(to, key);
	struct json_object *buckets = json_object_new_array();
	unsigned int i;

	add_number(table, "count", histogram->count);
	add_number(table, "sum_ns", histogram->sum);
	add_number(table, "median_ns", dsm_histogram_quantile(histogram, 500));
	add_number(table, "p99_ns", dsm_histogram_quantile(histogram, 990));
	add_number(table, "max_ns", histogram->most);
	if (!add_object(table, "buckets", buckets))
		return;
	for (i = 0; i < DSM_HISTOGRAM_BUCKETS; i++)
		if (histogram->bucket[i] &&
		    !add_bucket(buckets, i, histogram->bucket[i]))
			*to.failed = true;
}

static void add_ends(struct json to, const char *key,
		     const uint64_t ends[DSM_NR_ENDS])
{
	struct json table = add_table(to, key);
	unsigned int i;

	for (i = 1; i < DSM_NR_ENDS; i++)
		if (ends[i])
			add_number(table, dsm_end_word(i), ends[i]);
}

/* The counters of a peer, in both texts: their names and places. */
static const struct counter {
	const char *name, *about;
	size_t offset;
} counters[] = {
#define COUNTER(member, about) \
	{ #member, about, offsetof(struct dsm_transport_counters, member) }
	COUNTER(sent, "Messages sent."),
	COUNTER(received, "Messages received."),
	COUNTER(sent_pages, "Pages sent."),
	COUNTER(received_pages, "Pages received."),
	COUNTER(sent_bytes, "Bytes sent, before encryption."),
	COUNTER(received_bytes, "Bytes received, after decryption."),
	COUNTER(questions, "Questions asked for keepalive and credits."),
	COUNTER(stalls, "Messages that had to wait for a credit."),
	COUNTER(rekeys, "Keys changed."),
	COUNTER(connections, "Connections that came up."),
#undef COUNTER
};

#define NR_COUNTERS	(sizeof(counters) / sizeof(counters[0]))

static uint64_t value_of(const struct counter *counter,
			 const struct dsm_transport_counters *from)
{
	uint64_t value;

	memcpy(&value, (const char *)from + counter->offset, sizeof(value));
	return value;
}

/* The engine's numbers: counters, and those of now. */
static const struct engine_number {
	struct counter counter;
	size_t size;
	bool now;
} engine_numbers[] = {
#define NUMBER(field, now, about)					\
	{ { #field, about, offsetof(struct dsm_engine_counts, field) },	\
	  sizeof(((struct dsm_engine_counts *)0)->field), now }
	NUMBER(foreign_faults, false, "Misses of other domains."),
	NUMBER(waited_frames, false, "Misses that waited for a frame."),
	NUMBER(waited_others, false, "Misses that waited for a credit, a connection or the token."),
	NUMBER(evicted_shared, false, "Read-only copies given up for their frame."),
	NUMBER(evicted_modified, false, "Pages sent home for their frame."),
	NUMBER(retries, false, "Pages in use, tried again."),
	NUMBER(pins, false, "Pages in use for too long, and private ones, each time that somebody asks."),
	NUMBER(leases_over, false, "Leases that ended by time."),
	NUMBER(prefetches, false, "Pages asked for before they were missed."),
	NUMBER(prefetch_hits, false, "Of these, used, or passed by who reads in order."),
	NUMBER(prefetch_wasted, false, "Of these, gone before they were used."),
	NUMBER(prefetch_refused, false, "Of these, refused by their home."),
	NUMBER(cleared, false, "Pages asked for without their bytes, to be overwritten."),
	NUMBER(clears_late, false, "Pages asked for with them: nobody waited any more, or others were ahead."),
	NUMBER(evacuated, false, "Pages that came home with a range."),
	NUMBER(merged, false, "Pages of 2 MiB made again of those that had come home."),
	NUMBER(merges_refused, false, "Of 2 MiB at home that Xen did not make one page."),
	NUMBER(evacuating, true, "Is a range coming home?"),
	NUMBER(leaving, true, "Does the guest empty a range?"),
	NUMBER(vcpu_events, false, "Interrupts for vCPUs that run on other hosts."),
	NUMBER(vcpu_ports, false, "Times that events were sent to ports of other hosts."),
	NUMBER(vcpu_merged, false, "Of both, put together with what was not sent yet."),
	NUMBER(vcpu_calls, false, "Hypercalls that are about other hosts."),
	NUMBER(vcpu_calls_done, false, "Hypercalls of other hosts done here."),
	NUMBER(vcpu_calls_again, false, "Tries of these that had to wait for a page."),
	NUMBER(accesses, false, "Accesses to pages that stay at their home, which is another host."),
	NUMBER(accesses_again, false, "Of these, not done there: the page may leave."),
	NUMBER(accesses_done, false, "Accesses of other hosts done here."),
	NUMBER(uncached, false, "Times that a page began to be used at its home."),
	NUMBER(holes, false, "Accesses to memory that its home does not have."),
	NUMBER(tokens, false, "Times that the progress token came."),
	NUMBER(operations, false, "Page operations of Xen."),
	NUMBER(batches, false, "Calls of Xen for them."),
	NUMBER(frames, true, "Frames in the pool for pages of other hosts."),
	NUMBER(frames_used, true, "Of these, in use."),
	NUMBER(requests, true, "Requests that are open."),
	NUMBER(waiting, true, "Misses that can't be requests yet."),
	NUMBER(pages, true, "Pages that are not in their first state."),
	NUMBER(elsewhere, true, "Pages of this host that are elsewhere."),
#undef NUMBER
};

#define NR_ENGINE_NUMBERS	(sizeof(engine_numbers) / sizeof(engine_numbers[0]))

static uint64_t engine_value(const struct engine_number *number,
			     const struct dsm_engine_counts *from)
{
	const char *at = (const char *)from + number->counter.offset;
	uint64_t value = 0;
	uint32_t half;

	if (number->size == sizeof(value)) {
		memcpy(&value, at, sizeof(value));
		return value;
	}
	memcpy(&half, at, sizeof(half));
	return half;
}

static void add_engine(struct json to, const struct dsm_engine_counts *counts)
{
	struct json table = add_table(to, "engine");
	const struct engine_number *n;

	for (n = engine_numbers; n < engine_numbers + NR_ENGINE_NUMBERS; n++)
		add_number(table, n->counter.name, engine_value(n, counts));
}

/* Where the time of a fault goes, and that of an interrupt. */
static const struct {
	const char *name, *about;
	size_t offset;
} phases[] = {
#define PHASE(field, about) \
	{ #field, about, offsetof(struct dsm_engine_counts, field) }
	PHASE(queue, "From the ring until the request is with the transport."),
	PHASE(wire, "From there until its answer is read."),
	PHASE(install, "From there until who waits is woken."),
	PHASE(serve, "From another host's request until its answer is with the transport."),
	PHASE(access, "Of an access to a page that stays at its home, from the ring to its answer."),
	PHASE(ipi_out, "Of an interrupt, or events, for another host, from the ring until with the transport."),
	PHASE(ipi_in, "Of an interrupt, or events, from another host, from when read until Xen has it."),
#undef PHASE
};

#define NR_PHASES	(sizeof(phases) / sizeof(phases[0]))

static const struct dsm_histogram *phase_of(unsigned int n,
					    const struct dsm_engine_counts *from)
{
	return (const struct dsm_histogram *)((const char *)from + phases[n].offset);
}

static void add_phases(struct json to, const struct dsm_engine_counts *counts)
{
	struct json table = add_table(to, "phases");
	unsigned int n;

	for (n = 0; n < NR_PHASES; n++)
		add_histogram(table, phases[n].name, phase_of(n, counts));
}

/* The loop that looks or sleeps. */
static const struct {
	const char *name, *about;
	size_t offset;
} poll_numbers[] = {
#define NUMBER(field, about) \
	{ #field, about, offsetof(struct dsm_poll_counts, field) }
	NUMBER(looks, "Times that the loop looked again instead of sleeping."),
	NUMBER(found, "Times that something came while it looked."),
	NUMBER(sleeps, "Times that it slept."),
#undef NUMBER
};

#define NR_POLL_NUMBERS	(sizeof(poll_numbers) / sizeof(poll_numbers[0]))

static uint64_t poll_value(unsigned int n, const struct dsm_poll_counts *from)
{
	uint64_t value;

	memcpy(&value, (const char *)from + poll_numbers[n].offset, sizeof(value));
	return value;
}

static void add_poll(struct json to, const struct dsm_poll_counts *counts)
{
	struct json table = add_table(to, "poll");
	unsigned int n;

	for (n = 0; n < NR_POLL_NUMBERS; n++)
		add_number(table, poll_numbers[n].name, poll_value(n, counts));
}

/* Waits for pages as Xen sees them: numbers, and times. */
static const struct {
	const char *name, *seconds, *about;	/* name: of the number; of the time, NULL: it is none */
	size_t offset;
} xen_numbers[] = {
#define NUMBER(field, about) \
	{ #field, NULL, about, offsetof(struct dsm_xen_waits, field) }
#define TIME(field, name, about) \
	{ #field, name, about, offsetof(struct dsm_xen_waits, field) }
	NUMBER(waits, "Waits of vCPUs here for a page, by Xen."),
	TIME(wait_ns, "wait_seconds", "Of these, from when the vCPU stops until it is woken."),
	NUMBER(traps, "Waits that began with a nested page fault."),
	TIME(trap_ns, "trap_seconds", "Of these, from the fault's look-up until the vCPU stops."),
	NUMBER(wakes, "Waits after which the vCPU has run, and nothing else had kept it."),
	TIME(wake_ns, "wake_seconds", "Of these, from when it is woken until it enters the guest, without pauses."),
#undef NUMBER
#undef TIME
};

#define NR_XEN_NUMBERS	(sizeof(xen_numbers) / sizeof(xen_numbers[0]))

static uint64_t xen_value(unsigned int n, const struct dsm_xen_waits *from)
{
	uint64_t value;

	memcpy(&value, (const char *)from + xen_numbers[n].offset, sizeof(value));
	return value;
}

static void add_xen(struct json to, const struct dsm_xen_waits *waits)
{
	struct json table = add_table(to, "xen");
	unsigned int n;

	for (n = 0; n < NR_XEN_NUMBERS; n++)
		add_number(table, xen_numbers[n].name, xen_value(n, waits));
}

/* Of a clock: counters. */
static const struct {
	const char *name, *about;
	size_t offset;
} clock_numbers[] = {
#define NUMBER(field, about) \
	{ #field, about, offsetof(struct dsm_stats_clock, field) }
	NUMBER(samples, "Answers with the peer's TSC."),
	NUMBER(impossible, "Of these, with times that can't be."),
	NUMBER(jumps, "Of these, that contradict those before: a TSC that was set, or drifts more than allowed."),
#undef NUMBER
};

#define NR_CLOCK_NUMBERS	(sizeof(clock_numbers) / sizeof(clock_numbers[0]))

static uint64_t clock_value(unsigned int n, const struct dsm_stats_clock *from)
{
	uint64_t value;

	memcpy(&value, (const char *)from + clock_numbers[n].offset, sizeof(value));
	return value;
}

static bool has_offset(const struct dsm_stats_clock *clock)
{
	return clock->state == DSM_CLOCK_ALIGNED || clock->state == DSM_CLOCK_WIDE;
}

static void add_signed(struct json to, const char *key, int64_t value)
{
	add_object(to, key, json_object_new_int64(value));
}

static void add_clock(struct json to, const struct dsm_stats_clock *clock)
{
	struct json table = add_table(to, "clock");
	unsigned int n;

	add_object(table, "state",
		   json_object_new_string(dsm_clock_state_name(clock->state)));
	add_number(table, "khz", clock->khz);
	if (has_offset(clock)) {
		add_number(table, "offset_ticks", clock->offset);
		add_number(table, "error_ns", clock->error_ns);
		add_signed(table, "drift_least_ppb", clock->drift.least_ppb);
		add_signed(table, "drift_most_ppb", clock->drift.most_ppb);
		add_number(table, "drift_ms", clock->drift_ms);
	}
	for (n = 0; n < NR_CLOCK_NUMBERS; n++)
		add_number(table, clock_numbers[n].name, clock_value(n, clock));
	add_object(table, "two_times", json_object_new_boolean(clock->two_times));
}

/* Seconds since 1970.  What is not known is not there. */
static void add_expiry(struct json to, const char *key, int64_t expires)
{
	if (expires)
		add_signed(to, key, expires);
}

static void add_peer(struct json to, const struct dsm_stats_peer *peer)
{
	struct json table = add_table(to, peer->name);
	unsigned int i;

	add_object(table, "up", json_object_new_boolean(peer->up));
	for (i = 0; i < NR_COUNTERS; i++)
		add_number(table, counters[i].name,
			   value_of(&counters[i], &peer->transport));
	add_expiry(table, "certificate_expires", peer->transport.certificate_expires);
	add_number(table, "waiting", peer->transport.waiting);
	add_number(table, "credits", peer->transport.credits);
	add_ends(table, "ends", peer->transport.ends);
	add_histogram(table, "round_trip", &peer->round_trip);
	add_clock(table, &peer->clock);
}

static void put_uuid(const uint8_t vm[16], char text[37])
{
	unsigned int i, at = 0;

	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		snprintf(text + at, 3, "%02x", vm[i]);
		at += 2;
	}
}

char *dsm_stats_json(const struct dsm_stats *stats)
{
	bool failed = false;
	struct json all = { json_object_new_object(), &failed }, peers;
	char uuid[37], *text = NULL;
	unsigned int i;

	if (!all.object)
		return NULL;
	put_uuid(stats->vm, uuid);
	add_object(all, "host", json_object_new_string(stats->host));
	add_object(all, "vm", json_object_new_string(uuid));
	add_number(all, "tsc_khz", stats->tsc_khz);
	add_number(all, "time_jumps", stats->time_jumps);
	add_number(all, "time_jumped_ns", stats->time_jumped_ns);
	add_expiry(all, "certificate_expires", stats->certificate_expires);
	add_expiry(all, "ca_expires", stats->ca_expires);
	add_number(all, "read_faults", stats->read_faults);
	add_number(all, "write_faults", stats->write_faults);
	add_histogram(all, "read_fault", &stats->read_fault);
	add_histogram(all, "write_fault", &stats->write_fault);
	if (stats->engine)
		add_phases(all, stats->engine);
	if (stats->xen)
		add_xen(all, stats->xen);
	add_poll(all, &stats->poll);
	add_ends(all, "strangers", stats->strangers);
	if (stats->engine)
		add_engine(all, stats->engine);
	peers = add_table(all, "peers");
	for (i = 0; i < DSM_MAX_HOSTS; i++)
		if (stats->peer[i].used)
			add_peer(peers, &stats->peer[i]);
	if (!failed && asprintf(&text, "%s\n",
				json_object_to_json_string_ext(all.object,
					JSON_C_TO_STRING_PRETTY)) < 0)
		text = NULL;
	json_object_put(all.object);
	return text;
}

static bool add_page(struct json_object *pages, const struct dsm_profile_page *page,
		     const struct dsm_stats *stats)
{
	bool failed = false;
	struct json row = { json_object_new_object(), &failed };
	struct json_object *hosts = json_object_new_array(), *name;
	unsigned int i;

	add_number(row, "gfn", page->gfn);
	add_number(row, "count", page->count);
	add_number(row, "error", page->error);
	add_number(row, "reads", page->events[DSM_PROFILE_READ]);
	add_number(row, "writes", page->events[DSM_PROFILE_WRITE]);
	add_number(row, "taken", page->events[DSM_PROFILE_TAKEN]);
	add_number(row, "accesses", page->events[DSM_PROFILE_ACCESS]);
	if (add_object(row, "hosts", hosts))
		for (i = 0; i < DSM_MAX_HOSTS; i++) {
			if (!(page->hosts >> i & 1) || !stats->peer[i].name)
				continue;
			name = json_object_new_string(stats->peer[i].name);
			if (!name || json_object_array_add(hosts, name))
				failed = true;
		}
	if (!failed && !json_object_array_add(pages, row.object))
		return true;
	json_object_put(row.object);
	return false;
}

char *dsm_stats_profile_json(const struct dsm_stats *stats,
			     const struct dsm_profile *profile, uint64_t ns)
{
	static struct dsm_profile_page page[DSM_PROFILE_PLACES];
	unsigned int nr = dsm_profile_top(profile, page, DSM_PROFILE_PLACES), i;
	bool failed = false;
	struct json all = { json_object_new_object(), &failed };
	struct json_object *pages = json_object_new_array();
	char *text = NULL;

	add_object(all, "host", json_object_new_string(stats->host));
	add_number(all, "ns", ns);
	add_number(all, "events", dsm_profile_total(profile));
	add_number(all, "places", DSM_PROFILE_PLACES);
	add_number(all, "least", dsm_profile_least(profile));
	if (add_object(all, "pages", pages))
		for (i = 0; i < nr; i++)
			if (!add_page(pages, &page[i], stats))
				failed = true;
	if (!failed && asprintf(&text, "%s\n",
				json_object_to_json_string_ext(all.object, JSON_C_TO_STRING_PLAIN)) < 0)
		text = NULL;
	json_object_put(all.object);
	return text;
}

/* node_exporter */

static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void put_head(FILE *out, const char *name, const char *suffix,
		     const char *type, const char *about)
{
	fprintf(out, "# HELP dsmd_%s%s %s\n# TYPE dsmd_%s%s %s\n", name, suffix,
		about, name, suffix, type);
}

static void put_labels(FILE *out, const char *vm, const char *peer)
{
	fprintf(out, "{vm=\"%s\"", vm);
	if (peer) {
		fputs(",peer=", out);
		put_quoted(out, peer);
	}
}

static void put_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
		ns % 1000000000);
}

/* One bucket to a power of two: four are too many lines for each scrape. */
static void put_histogram(FILE *out, const char *name, const char *vm,
			  const char *peer, const struct dsm_histogram *h)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < LAST_BUCKET; i++) {
		sum += h->bucket[i];
		if (i % DSM_HISTOGRAM_STEPS)
			continue;
		fprintf(out, "dsmd_%s_bucket", name);
		put_labels(out, vm, peer);
		fputs(",le=\"", out);
		put_seconds(out, dsm_histogram_end(i));
		fprintf(out, "\"} %" PRIu64 "\n", sum);
	}
	fprintf(out, "dsmd_%s_bucket", name);
	put_labels(out, vm, peer);
	fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\ndsmd_%s_sum", h->count, name);
	put_labels(out, vm, peer);
	fputs("} ", out);
	put_seconds(out, h->sum);
	fprintf(out, "\ndsmd_%s_count", name);
	put_labels(out, vm, peer);
	fprintf(out, "} %" PRIu64 "\n", h->count);
}

static void put_value(FILE *out, const char *name, const char *vm,
		      const char *peer, uint64_t value)
{
	fprintf(out, "dsmd_%s", name);
	put_labels(out, vm, peer);
	fprintf(out, "} %" PRIu64 "\n", value);
}

static void put_ends(FILE *out, const char *name, const char *vm,
		     const char *peer, const uint64_t ends[DSM_NR_ENDS])
{
	unsigned int i;

	for (i = 1; i < DSM_NR_ENDS; i++) {
		if (!ends[i])
			continue;
		fprintf(out, "dsmd_%s", name);
		put_labels(out, vm, peer);
		fprintf(out, ",reason=\"%s\"} %" PRIu64 "\n", dsm_end_word(i),
			ends[i]);
	}
}

static void put_engine(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	const struct engine_number *n;
	char name[64];

	for (n = engine_numbers; n < engine_numbers + NR_ENGINE_NUMBERS; n++) {
		snprintf(name, sizeof(name), "%s%s", n->counter.name,
			 n->now ? "" : "_total");
		put_head(out, name, "", n->now ? "gauge" : "counter",
			 n->counter.about);
		put_value(out, name, vm, NULL, engine_value(n, stats->engine));
	}
}

static void put_poll(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	char name[64];
	unsigned int n;

	for (n = 0; n < NR_POLL_NUMBERS; n++) {
		snprintf(name, sizeof(name), "poll_%s_total", poll_numbers[n].name);
		put_head(out, name, "", "counter", poll_numbers[n].about);
		put_value(out, name, vm, NULL, poll_value(n, &stats->poll));
	}
}

static void put_faults(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	put_head(out, "read_faults_total", "", "counter", "Read misses of vCPUs.");
	put_value(out, "read_faults_total", vm, NULL, stats->read_faults);
	put_head(out, "write_faults_total", "", "counter", "Write misses of vCPUs.");
	put_value(out, "write_faults_total", vm, NULL, stats->write_faults);
	put_head(out, "read_fault_seconds", "", "histogram",
		 "From a read miss to the wake-up.");
	put_histogram(out, "read_fault_seconds", vm, NULL, &stats->read_fault);
	put_head(out, "write_fault_seconds", "", "histogram",
		 "From a write miss to the wake-up.");
	put_histogram(out, "write_fault_seconds", vm, NULL, &stats->write_fault);
	put_head(out, "stranger_ends_total", "", "counter",
		 "Connections of who did not prove to be a peer, by reason.");
	put_ends(out, "stranger_ends_total", vm, NULL, stats->strangers);
}

static void put_phases(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	char name[64];
	unsigned int n;

	for (n = 0; n < NR_PHASES; n++) {
		snprintf(name, sizeof(name), "phase_%s_seconds", phases[n].name);
		put_head(out, name, "", "histogram", phases[n].about);
		put_histogram(out, name, vm, NULL, phase_of(n, stats->engine));
	}
}

static void put_xen(FILE *out, const struct dsm_xen_waits *waits, const char *vm)
{
	char name[64];
	unsigned int n;

	for (n = 0; n < NR_XEN_NUMBERS; n++) {
		const char *seconds = xen_numbers[n].seconds;

		snprintf(name, sizeof(name), "xen_%s_total", seconds ? seconds : xen_numbers[n].name);
		put_head(out, name, "", "counter", xen_numbers[n].about);
		if (!seconds) {
			put_value(out, name, vm, NULL, xen_value(n, waits));
			continue;
		}
		fprintf(out, "dsmd_%s", name);
		put_labels(out, vm, NULL);
		fputs("} ", out);
		put_seconds(out, xen_value(n, waits));
		fputc('\n', out);
	}
}

/* Of peers whose offset is known: the numbers of now. */
static void put_offsets(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	const struct dsm_stats_peer *peer, *end = stats->peer + DSM_MAX_HOSTS;

	put_head(out, "clock_error_seconds", "", "gauge",
		 "The offset of the peer's TSC is known to be no farther away.");
	for (peer = stats->peer; peer < end; peer++) {
		if (!peer->used || !has_offset(&peer->clock))
			continue;
		fputs("dsmd_clock_error_seconds", out);
		put_labels(out, vm, peer->name);
		fputs("} ", out);
		put_seconds(out, peer->clock.error_ns);
		fputc('\n', out);
	}
	put_head(out, "clock_drift_ppb", "", "gauge",
		 "Bounds of the mean drift of the peer's TSC over the last minutes.");
	for (peer = stats->peer; peer < end; peer++) {
		if (!peer->used || !has_offset(&peer->clock))
			continue;
		fputs("dsmd_clock_drift_ppb", out);
		put_labels(out, vm, peer->name);
		fprintf(out, ",bound=\"least\"} %" PRId64 "\n", peer->clock.drift.least_ppb);
		fputs("dsmd_clock_drift_ppb", out);
		put_labels(out, vm, peer->name);
		fprintf(out, ",bound=\"most\"} %" PRId64 "\n", peer->clock.drift.most_ppb);
	}
}

static void put_expiry(FILE *out, const char *vm, const char *peer, const char *of,
		       int64_t expires)
{
	if (!expires)
		return;
	fputs("dsmd_certificate_expires_seconds", out);
	put_labels(out, vm, peer);
	if (of)
		fprintf(out, ",of=\"%s\"", of);
	fprintf(out, "} %" PRId64 "\n", expires);
}

static void put_expiries(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	const struct dsm_stats_peer *peer, *end = stats->peer + DSM_MAX_HOSTS;

	put_head(out, "certificate_expires_seconds", "", "gauge",
		 "When the certificate expires, in seconds since 1970: this host's, the CA's, those of peers.");
	put_expiry(out, vm, NULL, "host", stats->certificate_expires);
	put_expiry(out, vm, NULL, "ca", stats->ca_expires);
	for (peer = stats->peer; peer < end; peer++)
		if (peer->used)
			put_expiry(out, vm, peer->name, NULL, peer->transport.certificate_expires);
}

/* Of the guest's time. */
static void put_jumps(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	put_head(out, "time_jumps_total", "", "counter",
		 "The guest's time here jumped ahead, since that of another host was.");
	put_value(out, "time_jumps_total", vm, NULL, stats->time_jumps);
	put_head(out, "time_jumped_seconds_total", "", "counter", "By so much, together.");
	fputs("dsmd_time_jumped_seconds_total", out);
	put_labels(out, vm, NULL);
	fputs("} ", out);
	put_seconds(out, stats->time_jumped_ns);
	fputc('\n', out);
}

static void put_clocks(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	const struct dsm_stats_peer *peer, *end = stats->peer + DSM_MAX_HOSTS;
	char name[64];
	unsigned int n;

	put_head(out, "clock_aligned", "", "gauge",
		 "Is the offset of the peer's TSC known as well as wanted?");
	for (peer = stats->peer; peer < end; peer++)
		if (peer->used)
			put_value(out, "clock_aligned", vm, peer->name,
				  peer->clock.state == DSM_CLOCK_ALIGNED);
	put_offsets(out, stats, vm);
	for (n = 0; n < NR_CLOCK_NUMBERS; n++) {
		snprintf(name, sizeof(name), "clock_%s_total", clock_numbers[n].name);
		put_head(out, name, "", "counter", clock_numbers[n].about);
		for (peer = stats->peer; peer < end; peer++)
			if (peer->used)
				put_value(out, name, vm, peer->name,
					  clock_value(n, &peer->clock));
	}
}

static void put_peers(FILE *out, const struct dsm_stats *stats, const char *vm)
{
	const struct dsm_stats_peer *peer, *end = stats->peer + DSM_MAX_HOSTS;
	char name[64];
	unsigned int i;

	put_head(out, "peer_up", "", "gauge", "Is there a connection?");
	for (peer = stats->peer; peer < end; peer++)
		if (peer->used)
			put_value(out, "peer_up", vm, peer->name, peer->up);
	for (i = 0; i < NR_COUNTERS; i++) {
		snprintf(name, sizeof(name), "peer_%s", counters[i].name);
		put_head(out, name, "_total", "counter", counters[i].about);
		snprintf(name, sizeof(name), "peer_%s_total", counters[i].name);
		for (peer = stats->peer; peer < end; peer++)
			if (peer->used)
				put_value(out, name, vm, peer->name,
					  value_of(&counters[i],
						   &peer->transport));
	}
	put_head(out, "peer_waiting", "", "gauge", "Messages that wait to be sent.");
	for (peer = stats->peer; peer < end; peer++)
		if (peer->used)
			put_value(out, "peer_waiting", vm, peer->name,
				  peer->transport.waiting);
	put_head(out, "peer_ends_total", "", "counter",
		 "Connections that ended, by reason.");
	for (peer = stats->peer; peer < end; peer++)
		if (peer->used)
			put_ends(out, "peer_ends_total", vm, peer->name,
				 peer->transport.ends);
	put_head(out, "round_trip_seconds", "", "histogram",
		 "From a question to its answer.");
	for (peer = stats->peer; peer < end; peer++)
		if (peer->used)
			put_histogram(out, "round_trip_seconds", vm, peer->name,
				      &peer->round_trip);
}

char *dsm_stats_node_exporter(const struct dsm_stats *stats)
{
	char uuid[37], *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out)
		return NULL;
	put_uuid(stats->vm, uuid);
	put_faults(out, stats, uuid);
	put_poll(out, stats, uuid);
	if (stats->xen)
		put_xen(out, stats->xen, uuid);
	if (stats->engine) {
		put_engine(out, stats, uuid);
		put_phases(out, stats, uuid);
	}
	put_peers(out, stats, uuid);
	put_clocks(out, stats, uuid);
	put_jumps(out, stats, uuid);
	put_expiries(out, stats, uuid);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
