// SPDX-License-Identifier: GPL-2.0
/*
 * When certificates expire, and who says so when.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "expiry.h"
#include "papers.h"

#define DAY	86400

static char folder[64];
static char path[2][64];

static void begin(void)
{
	strcpy(folder, "/tmp/expiry_test.XXXXXX");
	CHECK(mkdtemp(folder), "a folder");
	snprintf(path[0], sizeof(path[0]), "%.40s/host.pem", folder);
	snprintf(path[1], sizeof(path[1]), "%.40s/ca.pem", folder);
}

static void end(void)
{
	unlink(path[0]);
	unlink(path[1]);
	rmdir(folder);
}

/* Good for so many days. */
static void write_papers(const char *file, int days, bool more)
{
	struct wanted wanted = { .subject = "x", .from = -50, .to = days };
	struct papers papers = papers_make(&wanted, NULL);

	if (more)
		papers_append(&papers, file);
	else
		papers_write(&papers, file, NULL, 0);
	papers_free(&papers);
}

static void of_files(const void *argument)
{
	int64_t expires;
	FILE *file;

	(void)argument;
	begin();
	CHECK(!dsm_expiry_of_file(path[0]), "none");
	file = fopen(path[0], "w");
	CHECK(file && fputs("no PEM\n", file) >= 0 && !fclose(file) && !dsm_expiry_of_file(path[0]), "no PEM");
	write_papers(path[0], 40, false);
	expires = dsm_expiry_of_file(path[0]) - time(NULL);
	CHECK(expires > 40 * DAY - 60 && expires <= 40 * DAY, "%lld", (long long)expires);
	/* The first of a chain ends all of it. */
	write_papers(path[0], 20, true);
	write_papers(path[0], 60, true);
	expires = dsm_expiry_of_file(path[0]) - time(NULL);
	CHECK(expires > 20 * DAY - 60 && expires <= 20 * DAY, "%lld", (long long)expires);
	CHECK(!dsm_expiry_of(NULL), "no certificate");
	end();
}

/* A certificate writes years from 2050 on in another way; 32 bits end in 2038. */
static void far(const void *argument)
{
	static const int days[] = { 5000, 8000, 9000, 30000, 2900000 };
	int64_t expires;
	unsigned int i;

	(void)argument;
	begin();
	for (i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
		write_papers(path[0], days[i], false);
		expires = dsm_expiry_of_file(path[0]) - time(NULL);
		CHECK(expires > (int64_t)days[i] * DAY - 60 && expires <= (int64_t)days[i] * DAY, "%d: %lld", days[i],
		      (long long)expires);
	}
	end();
}

static void soon(const void *argument)
{
	static const struct {
		int64_t left;
		const char *words;	/* NULL: not yet */
	} cases[] = {
		{ 30 * DAY + 1, NULL }, { 30 * DAY, "x expires on 2033-05-18 03:33 UTC, in 30 days: no connection can be made with it after that" },
		{ 2 * DAY, ", in 2 days: " }, { 2 * DAY - 1, ", in 1 day: " }, { DAY, ", in 1 day: " },
		{ DAY - 1, ", in less than a day: " }, { 1, ", in less than a day: " },
		{ 0, "x has expired, on 2033-05-18 03:33 UTC: no connection can be made with it; make" },
		{ -100 * DAY, "x has expired, on " },
	};
	char text[DSM_EXPIRY_TEXT], long_name[1000];
	const int64_t expires = 2000000000;
	unsigned int i;

	(void)argument;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is = dsm_expiry_is_soon(expires, expires - cases[i].left, "x", text);

		CHECK(is == !!cases[i].words, "%u", i);
		CHECK(!is || strstr(text, cases[i].words), "%u: %s", i, text);
		CHECK(!is || strstr(text, "CERTIFICATES THAT EXPIRE)"), "%s", text);
	}
	CHECK(!dsm_expiry_is_soon(0, 1000, "x", text), "one that is not known");
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	CHECK(dsm_expiry_is_soon(expires, expires - 1, long_name, text) &&
	      strstr(text, "CERTIFICATES THAT EXPIRE)"), "%s", text);
}

static unsigned int own, cas, most;
static struct ev_loop *loop;

static void on_warning(void *context, const char *text)
{
	CHECK(context == &own, "the context");
	own += strstr(text, path[0]) && !strncmp(text, "this host's certificate (", 25);
	cas += strstr(text, path[1]) && !strncmp(text, "the CA's certificate (", 22);
	if (own + cas >= most)
		ev_break(loop, EVBREAK_ALL);
}

static void on_patience(struct ev_loop *l, ev_timer *timer, int events)
{
	(void)timer;
	(void)events;
	ev_break(l, EVBREAK_ALL);
}

/* At once, and each period; who is far from his end says nothing. */
static void daily(const void *argument)
{
	static const struct {
		int own, ca;
		bool warns, ca_warns;
	} cases[] = {
		{ 40, 50, false, false }, { 20, 50, true, false }, { 40, 10, false, true },
		{ 20, -10, true, true },
	};
	struct dsm_transport_params params = { .certificate_file = path[0], .ca_file = path[1] };
	struct dsm_expiry expiry;
	unsigned int i, each;
	ev_timer patience;

	(void)argument;
	begin();
	loop = ev_loop_new(EVFLAG_AUTO);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_papers(path[0], cases[i].own, false);
		write_papers(path[1], cases[i].ca, false);
		own = cas = 0;
		each = (unsigned int)cases[i].warns + cases[i].ca_warns;
		most = UINT32_MAX;
		dsm_expiry_begin(&expiry, &params, loop, 0.05, on_warning, &own);
		CHECK(own == cases[i].warns && cas == cases[i].ca_warns, "%u: %u and %u at once", i, own, cas);
		CHECK(expiry.certificate && expiry.ca, "when");
		most = 3 * each;
		ev_timer_init(&patience, on_patience, 20., 0.);
		ev_timer_start(loop, &patience);
		if (each)
			ev_run(loop, 0);
		ev_timer_stop(loop, &patience);
		CHECK(own == 3 * cases[i].warns && cas == 3 * cases[i].ca_warns, "%u: %u and %u", i, own, cas);
		dsm_expiry_end(&expiry, loop);
		CHECK(!ev_run(loop, EVRUN_NOWAIT), "a timer is left");
	}
	ev_loop_destroy(loop);
	end();
}

static const struct test_case cases[] = {
	{ "expiry: of files", of_files, NULL },
	{ "expiry: far", far, NULL },
	{ "expiry: soon", soon, NULL },
	{ "expiry: at once and once a day", daily, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
