// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms, and what the two texts say.
 */
#include <json-c/json.h>

#include "case.h"
#include "dice.h"
#include "stats.h"

static void buckets(const void *argument)
{
	static const struct {
		uint64_t ns;
		unsigned int bucket;
	} known[] = {
		{ 0, 0 }, { 255, 0 }, { 256, 1 }, { 319, 1 }, { 320, 2 },
		{ 383, 2 }, { 384, 3 }, { 448, 4 }, { 511, 4 }, { 512, 5 },
		{ (1ull << 35) - 1, 108 }, { 1ull << 35, 109 }, { ~0ull, 109 },
	};
	unsigned int i;
	uint64_t end;

	(void)argument;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CHECK(dsm_histogram_bucket(known[i].ns) == known[i].bucket, "%llu: %u",
		      (unsigned long long)known[i].ns,
		      dsm_histogram_bucket(known[i].ns));
	for (i = 0; i + 1 < DSM_HISTOGRAM_BUCKETS; i++) {
		end = dsm_histogram_end(i);
		CHECK(dsm_histogram_bucket(end - 1) == i &&
		      dsm_histogram_bucket(end) == i + 1, "the end of %u", i);
	}
	CHECK(dsm_histogram_end(i) == UINT64_MAX, "the last one");
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Against the sorted values: never below, and within a quarter. */
static void quantiles(const void *argument)
{
	static const unsigned int asked[] = { 1, 500, 900, 990, 999, 1000 };
	static uint64_t values[5000];
	static struct dsm_histogram h;
	unsigned int round, i, k, nr;
	uint64_t right, said, sum;

	(void)argument;
	dice_begin();
	CHECK(!dsm_histogram_quantile(&h, 500), "of nothing");
	for (round = 0; round < 200; round++) {
		memset(&h, 0, sizeof(h));
		nr = 1 + dice_below(round < 50 ? 5 : 5000);
		sum = 0;
		for (i = 0; i < nr; i++) {
			values[i] = dice() >> (34 + dice_below(20));
			dsm_histogram_add(&h, values[i]);
			sum += values[i];
		}
		qsort(values, nr, sizeof(values[0]), by_size);
		CHECK(h.count == nr && h.sum == sum && h.most == values[nr - 1], "sums");
		for (k = 0; k < sizeof(asked) / sizeof(asked[0]); k++) {
			right = values[(nr * asked[k] + 999) / 1000 - 1];
			said = dsm_histogram_quantile(&h, asked[k]);
			CHECK(said >= right && (said <= 256 || said <= right + right / 4 + 1),
			      "%u of %u: %llu, not %llu", asked[k], nr,
			      (unsigned long long)said, (unsigned long long)right);
		}
		CHECK(dsm_histogram_quantile(&h, 1000) == h.most, "the longest");
	}
	memset(&h, 0, sizeof(h));
	dsm_histogram_add(&h, ~0ull);
	dsm_histogram_add(&h, 5);
	CHECK(h.sum == ~0ull, "a sum that does not wrap");
}

static void fill(struct dsm_stats *stats)
{
	static const struct dsm_xen_waits waits = {
		.waits = 21, .wait_ns = 22000, .traps = 19, .trap_ns = 3000000001, .wakes = 20, .wake_ns = 24,
	};
	static struct dsm_engine_counts engine;
	static struct dsm_stats empty;

	*stats = empty;
	stats->host = "alpha";
	memcpy(stats->vm, "0123456789abcdef", 16);
	stats->read_faults = 12;
	stats->xen = &waits;
	stats->strangers[DSM_END_ISSUER] = 3;
	stats->certificate_expires = 2000000000;
	stats->ca_expires = 2000000001;
	stats->peer[1].used = stats->peer[1].up = true;
	stats->peer[1].name = "be\"ta\\";
	stats->peer[1].transport.sent = 1ull << 53 | 1;
	stats->peer[1].transport.received_bytes = 77;
	stats->peer[1].transport.waiting = 4;
	stats->peer[1].transport.certificate_expires = 2000000002;
	stats->peer[3].used = true;
	stats->peer[3].name = "gamma";
	stats->peer[1].transport.ends[DSM_END_SILENT] = 2;
	memset(&engine, 0, sizeof(engine));
	engine.leases_over = 5;
	dsm_histogram_add(&engine.queue, 1000);
	dsm_histogram_add(&engine.wire, 2000);
	dsm_histogram_add(&engine.install, 4000);
	dsm_histogram_add(&engine.serve, 8000);
	dsm_histogram_add(&engine.access, 16000);
	dsm_histogram_add(&engine.ipi_out, 32000);
	dsm_histogram_add(&engine.ipi_in, 64000);
	stats->engine = &engine;
	dsm_histogram_add(&stats->read_fault, 1000);
	dsm_histogram_add(&stats->read_fault, 2000000);
	dsm_histogram_add(&stats->peer[1].round_trip, 300);
	dsm_histogram_add(&stats->peer[1].round_trip, 1ull << 40);
}

static struct json_object *at(struct json_object *object, const char *key)
{
	struct json_object *found = NULL;

	CHECK(json_object_object_get_ex(object, key, &found), "no %s", key);
	return found;
}

static uint64_t number(struct json_object *object, const char *key)
{
	return json_object_get_uint64(at(object, key));
}

static void json(const void *argument)
{
	struct json_object *all, *peer, *trip, *pair, *xen;
	static struct dsm_stats stats;
	char *text;

	(void)argument;
	fill(&stats);
	text = dsm_stats_json(&stats);
	CHECK(text && text[strlen(text) - 1] == '\n', "a text");
	all = json_tokener_parse(text);
	CHECK(all, "%s", text);
	CHECK(!strcmp(json_object_get_string(at(all, "host")), "alpha"), "host");
	CHECK(!strcmp(json_object_get_string(at(all, "vm")),
		      "30313233-3435-3637-3839-616263646566"), "vm");
	CHECK(number(all, "read_faults") == 12 && !number(all, "write_faults"),
	      "faults");
	CHECK(number(at(all, "strangers"), "issuer") == 3, "strangers");
	CHECK(number(all, "certificate_expires") == 2000000000 && number(all, "ca_expires") == 2000000001,
	      "when ours expire");
	CHECK(number(at(all, "read_fault"), "count") == 2 &&
	      number(at(all, "read_fault"), "max_ns") == 2000000 &&
	      number(at(all, "read_fault"), "median_ns") == 1024 &&
	      number(at(all, "read_fault"), "p99_ns") == 2000000, "%s", text);
	CHECK(number(at(at(all, "phases"), "queue"), "max_ns") == 1000 &&
	      number(at(at(all, "phases"), "wire"), "max_ns") == 2000 &&
	      number(at(at(all, "phases"), "install"), "max_ns") == 4000 &&
	      number(at(at(all, "phases"), "serve"), "max_ns") == 8000 &&
	      number(at(at(all, "phases"), "access"), "max_ns") == 16000 &&
	      number(at(at(all, "phases"), "ipi_out"), "max_ns") == 32000 &&
	      number(at(at(all, "phases"), "ipi_in"), "max_ns") == 64000, "%s", text);
	CHECK(number(at(all, "engine"), "leases_over") == 5, "the engine");
	xen = at(all, "xen");
	CHECK(number(xen, "waits") == 21 && number(xen, "wait_ns") == 22000 && number(xen, "traps") == 19 &&
	      number(xen, "trap_ns") == 3000000001 && number(xen, "wakes") == 20 && number(xen, "wake_ns") == 24,
	      "%s", text);
	peer = at(at(all, "peers"), "be\"ta\\");
	CHECK(json_object_get_boolean(at(peer, "up")), "up");
	CHECK(number(peer, "sent") == (1ull << 53 | 1) &&
	      number(peer, "received_bytes") == 77 && number(peer, "waiting") == 4,
	      "numbers are exact");
	CHECK(number(at(peer, "ends"), "silent") == 2, "ends");
	CHECK(number(peer, "certificate_expires") == 2000000002 &&
	      !json_object_object_get_ex(at(at(all, "peers"), "gamma"), "certificate_expires", NULL),
	      "when it expires, if it is known");
	trip = at(at(peer, "round_trip"), "buckets");
	CHECK(json_object_array_length(trip) == 2, "only those with something");
	pair = json_object_array_get_idx(trip, 0);
	CHECK(json_object_get_uint64(json_object_array_get_idx(pair, 0)) == 320 &&
	      json_object_get_uint64(json_object_array_get_idx(pair, 1)) == 1,
	      "a bucket");
	pair = json_object_array_get_idx(trip, 1);
	CHECK(!json_object_array_get_idx(pair, 0), "the last has no end");
	json_object_put(all);
	free(text);
	stats.xen = NULL;
	text = dsm_stats_json(&stats);
	CHECK(text && !strstr(text, "\"xen\""), "what Xen does not say: %s", text);
	free(text);
}

static void profile(const void *argument)
{
	struct dsm_profile *counted = dsm_profile_create(3);
	static struct dsm_stats stats;
	struct json_object *all, *page;
	unsigned int i;
	char *text;

	(void)argument;
	fill(&stats);
	dsm_profile_add(counted, 1ull << 40, DSM_PROFILE_READ, 0);
	for (i = 0; i < 3; i++)
		dsm_profile_add(counted, 7, DSM_PROFILE_TAKEN, i);
	dsm_profile_add(counted, 7, DSM_PROFILE_WRITE, 0);
	dsm_profile_add(counted, 7, DSM_PROFILE_ACCESS, 1);
	text = dsm_stats_profile_json(&stats, counted, 12345);
	CHECK(text && text[strlen(text) - 1] == '\n', "a text");
	all = json_tokener_parse(text);
	CHECK(all && !strcmp(json_object_get_string(at(all, "host")), "alpha") && number(all, "ns") == 12345 &&
	      number(all, "events") == 6 && number(all, "places") == DSM_PROFILE_PLACES && !number(all, "least"),
	      "%s", text);
	CHECK(json_object_array_length(at(all, "pages")) == 2, "%s", text);
	page = json_object_array_get_idx(at(all, "pages"), 0);
	CHECK(number(page, "gfn") == 7 && number(page, "count") == 5 && !number(page, "error") &&
	      !number(page, "reads") && number(page, "writes") == 1 && number(page, "taken") == 3 &&
	      number(page, "accesses") == 1, "%s", text);
	/* Those that have a name. */
	CHECK(json_object_array_length(at(page, "hosts")) == 1 &&
	      !strcmp(json_object_get_string(json_object_array_get_idx(at(page, "hosts"), 0)), "be\"ta\\"), "%s", text);
	page = json_object_array_get_idx(at(all, "pages"), 1);
	CHECK(number(page, "gfn") == 1ull << 40 && number(page, "reads") == 1 &&
	      !json_object_array_length(at(page, "hosts")), "%s", text);
	json_object_put(all);
	free(text);
	dsm_profile_destroy(counted);
}

#define VM "{vm=\"30313233-3435-3637-3839-616263646566\""
#define PEER VM ",peer=\"be\\\"ta\\\\\""

/* Offset and bound are told only if they are known. */
static void clocks(const void *argument)
{
	static const struct {
		unsigned int state;
		const char *word;
		bool known;
	} cases[] = {
		{ DSM_CLOCK_NONE, "none", false }, { DSM_CLOCK_MEASURING, "measuring", false },
		{ DSM_CLOCK_ALIGNED, "aligned", true }, { DSM_CLOCK_WIDE, "wide", true },
		{ DSM_CLOCK_FREQUENCY, "frequency", false },
	};
	static const char *const lines[] = {
		"dsmd_clock_error_seconds" PEER "} 0.000004567\n",
		"dsmd_clock_drift_ppb" PEER ",bound=\"least\"} -1500\n",
		"dsmd_clock_drift_ppb" PEER ",bound=\"most\"} 2500\n",
	};
	struct json_object *all, *clock;
	static struct dsm_stats stats;
	char *text, line[256];
	unsigned int i, n;

	(void)argument;
	fill(&stats);
	stats.tsc_khz = 2400000;
	stats.peer[1].clock = (struct dsm_stats_clock){
		.offset = UINT64_MAX - 4, .error_ns = 4567, .khz = 2400001,
		.drift = { .least_ppb = -1500, .most_ppb = 2500 }, .drift_ms = 64000,
		.samples = 11, .impossible = 2, .jumps = 3,
	};
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		stats.peer[1].clock.state = cases[i].state;
		stats.peer[1].clock.two_times = i & 1;
		text = dsm_stats_json(&stats);
		all = json_tokener_parse(text);
		CHECK(all && number(all, "tsc_khz") == 2400000, "%s", text);
		clock = at(at(at(all, "peers"), "be\"ta\\"), "clock");
		CHECK(!strcmp(json_object_get_string(at(clock, "state")), cases[i].word) &&
		      number(clock, "khz") == 2400001 && number(clock, "samples") == 11 &&
		      number(clock, "impossible") == 2 && number(clock, "jumps") == 3 &&
		      !json_object_get_boolean(at(clock, "two_times")) == !(i & 1), "%s", text);
		CHECK(json_object_object_get_ex(clock, "offset_ticks", NULL) == cases[i].known &&
		      json_object_object_get_ex(clock, "error_ns", NULL) == cases[i].known, "%s", text);
		if (cases[i].known)
			CHECK(number(clock, "offset_ticks") == UINT64_MAX - 4 &&
			      number(clock, "error_ns") == 4567 &&
			      json_object_get_int64(at(clock, "drift_least_ppb")) == -1500 &&
			      json_object_get_int64(at(clock, "drift_most_ppb")) == 2500 &&
			      number(clock, "drift_ms") == 64000, "%s", text);
		json_object_put(all);
		free(text);
		text = dsm_stats_node_exporter(&stats);
		for (n = 0; n < sizeof(lines) / sizeof(lines[0]); n++)
			CHECK(!!strstr(text, lines[n]) == cases[i].known, "%s: %s", cases[i].word,
			      lines[n]);
		snprintf(line, sizeof(line), "dsmd_clock_aligned" PEER "} %d\n",
			 cases[i].state == DSM_CLOCK_ALIGNED);
		CHECK(strstr(text, line) && strstr(text, "dsmd_clock_jumps_total" PEER "} 3\n"),
		      "%s in\n%s", line, text);
		free(text);
	}
}

static void node_exporter(const void *argument)
{
	static const char *const lines[] = {
		"# TYPE dsmd_read_faults_total counter\n",
		"dsmd_read_faults_total" VM "} 12\n",
		"dsmd_stranger_ends_total" VM ",reason=\"issuer\"} 3\n",
		"dsmd_peer_up" PEER "} 1\n",
		"dsmd_peer_sent_total" PEER "} 9007199254740993\n",
		"dsmd_peer_ends_total" PEER ",reason=\"silent\"} 2\n",
		"dsmd_peer_waiting" PEER "} 4\n",
		"dsmd_round_trip_seconds_bucket" PEER ",le=\"0.000000256\"} 0\n",
		"dsmd_round_trip_seconds_bucket" PEER ",le=\"0.000000512\"} 1\n",
		"dsmd_round_trip_seconds_bucket" PEER ",le=\"34.359738368\"} 1\n",
		"dsmd_round_trip_seconds_bucket" PEER ",le=\"+Inf\"} 2\n",
		"dsmd_round_trip_seconds_sum" PEER "} 1099.511628076\n",
		"dsmd_round_trip_seconds_count" PEER "} 2\n",
		"dsmd_read_fault_seconds_bucket" VM ",le=\"0.000001024\"} 1\n",
		"dsmd_phase_queue_seconds_sum" VM "} 0.000001000\n",
		"dsmd_phase_wire_seconds_sum" VM "} 0.000002000\n",
		"dsmd_phase_install_seconds_sum" VM "} 0.000004000\n",
		"dsmd_phase_serve_seconds_sum" VM "} 0.000008000\n",
		"dsmd_phase_access_seconds_sum" VM "} 0.000016000\n",
		"dsmd_phase_ipi_out_seconds_sum" VM "} 0.000032000\n",
		"dsmd_phase_ipi_in_seconds_sum" VM "} 0.000064000\n",
		"# TYPE dsmd_xen_waits_total counter\n",
		"dsmd_xen_waits_total" VM "} 21\n",
		"dsmd_xen_wait_seconds_total" VM "} 0.000022000\n",
		"dsmd_xen_traps_total" VM "} 19\n",
		"dsmd_xen_trap_seconds_total" VM "} 3.000000001\n",
		"dsmd_xen_wakes_total" VM "} 20\n",
		"dsmd_xen_wake_seconds_total" VM "} 0.000000024\n",
		"# TYPE dsmd_certificate_expires_seconds gauge\n",
		"dsmd_certificate_expires_seconds" VM ",of=\"host\"} 2000000000\n",
		"dsmd_certificate_expires_seconds" VM ",of=\"ca\"} 2000000001\n",
		"dsmd_certificate_expires_seconds" PEER "} 2000000002\n",
	};
	static struct dsm_stats stats;
	char *text, *line, *end;
	unsigned int i;

	(void)argument;
	fill(&stats);
	text = dsm_stats_node_exporter(&stats);
	CHECK(text, "a text");
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CHECK(strstr(text, lines[i]), "no line %s in\n%s", lines[i], text);
	CHECK(!strstr(text, "dsmd_certificate_expires_seconds" VM ",peer=\"gamma\""), "one that is not known");
	/* Each line is a comment, or a name, labels and a number. */
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		CHECK(end, "the last line does not end");
		CHECK(!strncmp(line, "# HELP dsmd_", 12) ||
		      !strncmp(line, "# TYPE dsmd_", 12) ||
		      (!strncmp(line, "dsmd_", 5) &&
		       strspn(strrchr(line, ' ') ? line : "", "abcdefghijklmnopqrstuvwxyz_") > 5),
		      "%.*s", (int)(end - line), line);
		if (line[0] == '#')
			continue;
		for (i = 1; end[-(int)i] != ' '; i++)
			CHECK(strchr("0123456789.", end[-(int)i]), "%.*s",
			      (int)(end - line), line);
	}
	free(text);
	stats.xen = NULL;
	text = dsm_stats_node_exporter(&stats);
	CHECK(text && !strstr(text, "dsmd_xen_"), "what Xen does not say: %s", text);
	free(text);
}

/* What could be another one's: each has a number of its own, in both texts. */
static void each_its_own(const void *argument)
{
	static const char *const lines[] = {
		"dsmd_read_faults_total" VM "} 12\n", "dsmd_write_faults_total" VM "} 13\n",
		"# TYPE dsmd_write_fault_seconds histogram\n",
		"dsmd_read_fault_seconds_sum" VM "} 0.002001000\n", "dsmd_read_fault_seconds_count" VM "} 2\n",
		"dsmd_write_fault_seconds_sum" VM "} 0.003000000\n", "dsmd_write_fault_seconds_count" VM "} 1\n",
		"dsmd_poll_looks_total" VM "} 31\n", "dsmd_poll_found_total" VM "} 32\n",
		"dsmd_poll_sleeps_total" VM "} 33\n",
		"dsmd_time_jumps_total" VM "} 34\n", "dsmd_time_jumped_seconds_total" VM "} 0.000035000\n",
		"# TYPE dsmd_leases_over_total counter\n", "dsmd_leases_over_total" VM "} 5\n",
		"# TYPE dsmd_frames gauge\n", "dsmd_frames" VM "} 41\n", "dsmd_frames_used" VM "} 42\n",
		"dsmd_requests" VM "} 43\n", "dsmd_waiting" VM "} 44\n",
		"dsmd_peer_up" VM ",peer=\"gamma\"} 0\n", "dsmd_peer_received_bytes_total" PEER "} 77\n",
		"dsmd_peer_received_bytes_total" VM ",peer=\"gamma\"} 0\n",
		"dsmd_round_trip_seconds_count" VM ",peer=\"gamma\"} 0\n",
	};
	struct json_object *all, *engine, *poll, *peer;
	struct dsm_engine_counts counts;
	static struct dsm_stats stats;
	unsigned int i;
	char *text;

	(void)argument;
	fill(&stats);
	stats.write_faults = 13;
	dsm_histogram_add(&stats.write_fault, 3000000);
	stats.time_jumps = 34;
	stats.time_jumped_ns = 35000;
	stats.poll = (struct dsm_poll_counts){ .looks = 31, .found = 32, .sleeps = 33 };
	stats.peer[1].transport.credits = 9;
	counts = *stats.engine;
	counts.frames = 41;
	counts.frames_used = 42;
	counts.requests = 43;
	counts.waiting = 44;
	stats.engine = &counts;
	text = dsm_stats_json(&stats);
	all = json_tokener_parse(text);
	CHECK(number(all, "read_faults") == 12 && number(all, "write_faults") == 13 &&
	      number(at(all, "read_fault"), "max_ns") == 2000000 && number(at(all, "read_fault"), "count") == 2 &&
	      number(at(all, "write_fault"), "max_ns") == 3000000 && number(at(all, "write_fault"), "count") == 1,
	      "faults: %s", text);
	CHECK(number(all, "time_jumps") == 34 && number(all, "time_jumped_ns") == 35000, "%s", text);
	poll = at(all, "poll");
	CHECK(number(poll, "looks") == 31 && number(poll, "found") == 32 && number(poll, "sleeps") == 33, "%s", text);
	engine = at(all, "engine");
	CHECK(number(engine, "frames") == 41 && number(engine, "frames_used") == 42 &&
	      number(engine, "requests") == 43 && number(engine, "waiting") == 44, "%s", text);
	peer = at(at(all, "peers"), "be\"ta\\");
	CHECK(number(peer, "waiting") == 4 && number(peer, "credits") == 9, "%s", text);
	CHECK(!json_object_get_boolean(at(at(at(all, "peers"), "gamma"), "up")), "%s", text);
	CHECK(!json_object_object_get_ex(at(all, "peers"), "", NULL) &&
	      json_object_object_length(at(all, "peers")) == 2, "%s", text);
	json_object_put(all);
	free(text);
	text = dsm_stats_node_exporter(&stats);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CHECK(strstr(text, lines[i]), "no line %s in\n%s", lines[i], text);
	free(text);
}

static const struct test_case cases[] = {
	{ "stats: clocks", clocks, NULL },
	{ "stats: buckets", buckets, NULL },
	{ "stats: quantiles", quantiles, NULL },
	{ "stats: JSON", json, NULL },
	{ "stats: each its own", each_its_own, NULL },
	{ "stats: what is counted by page", profile, NULL },
	{ "stats: node_exporter", node_exporter, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
