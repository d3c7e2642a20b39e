// SPDX-License-Identifier: GPL-2.0
/*
 * Who is let in: the handshake with every kind of certificate at either end,
 * strangers without one, HELLO, and our own papers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>

#include "rig.h"
#include "tls.h"

static void put_hello(uint8_t *bytes, unsigned int host, uint32_t epoch)
{
	struct dsm_hello hello = {
		.lowest = 1, .highest = 1, .host = (uint8_t)host,
		.nr_hosts = HOSTS, .epoch = epoch, .vm = "fifteen letters",
	};

	dsm_wire_put_hello(&hello, bytes);
}

enum signer { SITE, OTHER_CA, ITSELF, NOBODY };

/* Host 1 is what the stranger says that it is. */
static const struct paper_case {
	const char *name;
	struct wanted wanted;
	enum signer by;
	int tls_version;
	enum dsm_end reason;	/* what we say; 0: it is let in */
	enum dsm_end as_server;	/* if it is not the same */
} paper_cases[] = {
	{ "right", { "DNS:beta.b.example", BOTH_ROLES, "x", -1, 10, false }, SITE, 0, 0, 0 },
	{ "right, with another name", { "DNS:other,DNS:beta.b.example", BOTH_ROLES, "x", -1, 10, false },
	  SITE, 0, 0, 0 },
	{ "right, in other letters", { "DNS:Beta.B.Example", BOTH_ROLES, "x", -1, 10, false },
	  SITE, 0, 0, 0 },
	/* One of the names that the file has is enough: the others may be of the certificate before it, or after. */
	{ "right, its second name", { "DNS:second.b.example", BOTH_ROLES, "x", -1, 10, false },
	  SITE, 0, 0, 0 },
	{ "right, the last of its eight names", { "DNS:eighth.b.example", BOTH_ROLES, "x", -1, 10, false },
	  SITE, 0, 0, 0 },
	{ "right, two of its eight names and another", { "DNS:other,DNS:eighth.b.example,DNS:second.b.example",
	  BOTH_ROLES, "x", -1, 10, false }, SITE, 0, 0, 0 },
	{ "one of its eight names and another host's", { "DNS:eighth.b.example,DNS:gamma.c.example",
	  BOTH_ROLES, "x", -1, 10, false }, SITE, 0, DSM_END_NAME, 0 },
	{ "by another CA of the same name", { "DNS:beta.b.example", BOTH_ROLES, "x", -1, 10, false },
	  OTHER_CA, 0, DSM_END_ISSUER, 0 },
	{ "by itself", { "DNS:beta.b.example", BOTH_ROLES, "x", -1, 10, false },
	  ITSELF, 0, DSM_END_ISSUER, 0 },
	{ "expired", { "DNS:beta.b.example", BOTH_ROLES, "x", -10, -1, false }, SITE, 0,
	  DSM_END_EXPIRED, 0 },
	{ "not yet valid", { "DNS:beta.b.example", BOTH_ROLES, "x", 1, 10, false }, SITE, 0,
	  DSM_END_NOT_YET, 0 },
	{ "of no host", { "DNS:delta.example", BOTH_ROLES, "x", -1, 10, false }, SITE, 0,
	  DSM_END_NAME, 0 },
	{ "our own name", { "DNS:alpha.a.example", BOTH_ROLES, "x", -1, 10, false }, SITE, 0,
	  DSM_END_NAME, 0 },
	{ "a wildcard", { "DNS:*.b.example", BOTH_ROLES, "x", -1, 10, false }, SITE, 0,
	  DSM_END_NAME, 0 },
	{ "two hosts in one", { "DNS:beta.b.example,DNS:gamma.c.example", BOTH_ROLES, "x", -1, 10, false },
	  SITE, 0, DSM_END_NAME, 0 },
	{ "a host's name and alpha's", { "DNS:beta.b.example,DNS:alpha.a.example", BOTH_ROLES, "x", -1, 10, false },
	  SITE, 0, DSM_END_NAME, 0 },
	{ "odd bytes in a name", { "DNS:\x1b[31mdelta\x07", BOTH_ROLES, "x", -1, 10, false },
	  SITE, 0, DSM_END_NAME, 0 },
	{ "the name in the subject only", { NULL, BOTH_ROLES, "beta.b.example", -1, 10, false },
	  SITE, 0, DSM_END_NAME, 0 },
	{ "an address for a name", { "IP:127.0.0.1", BOTH_ROLES, "x", -1, 10, false }, SITE, 0,
	  DSM_END_NAME, 0 },
	{ "without roles", { "DNS:beta.b.example", NULL, "x", -1, 10, false }, SITE, 0,
	  DSM_END_ROLE, 0 },
	{ "for servers only", { "DNS:beta.b.example", "serverAuth", "x", -1, 10, false }, SITE, 0,
	  DSM_END_ROLE, 0 },
	{ "for clients only", { "DNS:beta.b.example", "clientAuth", "x", -1, 10, false }, SITE, 0,
	  DSM_END_ROLE, 0 },
	{ "for mail", { "DNS:beta.b.example", "emailProtection", "x", -1, 10, false }, SITE, 0,
	  DSM_END_ROLE, 0 },
	{ "TLS 1.2", { "DNS:beta.b.example", BOTH_ROLES, "x", -1, 10, false }, SITE,
	  TLS1_2_VERSION, DSM_END_TLS_VERSION, 0 },
	/* OpenSSL's server without a certificate does not know TLS 1.3. */
	{ "none", { 0 }, NOBODY, 0, DSM_END_NO_CERTIFICATE, DSM_END_TLS_VERSION },
};

static struct papers papers_for(const struct paper_case *c)
{
	if (c->by == NOBODY)
		return (struct papers){ 0 };
	return papers_make(&c->wanted, c->by == SITE ? &ca :
			   c->by == OTHER_CA ? &other_ca : NULL);
}

/* What is said of a stranger goes to a log. */
static void check_text(const char *text)
{
	for (; *text; text++)
		CHECK(*text >= ' ' && *text < 0x7f, "byte %#x", (unsigned char)*text);
}

/* Host 1 has as many names as a host can have. */
static void have_all_names(struct host *host)
{
	static const char *const more[DSM_TRANSPORT_NAMES - 1] = {
		"second.b.example", "third.b.example", "fourth.b.example", "fifth.b.example",
		"sixth.b.example", "seventh.b.example", "eighth.b.example",
	};

	memcpy(&host->params.peer[1].names[1], more, sizeof(more));
}

/* Our HELLO is the first that it may read. */
static void greet(struct stranger *s)
{
	uint8_t hello[DSM_WIRE_BYTES];

	if (s->proved && stranger_read(s, hello, sizeof(hello))) {
		put_hello(hello, 1, 1);
		stranger_write(s, hello, sizeof(hello));
		stranger_read(s, hello, sizeof(hello));	/* a question */
	}
}

static void as_client(const void *argument)
{
	const struct paper_case *c = argument;
	struct stranger s = { .script = greet, .tls_version = c->tls_version };
	struct host host;

	rig_begin();
	s.papers = papers_for(c);
	host_prepare(&host, 0);
	have_all_names(&host);
	stranger_meets(&s, &host, 1);
	stranger_join(&s);
	UNTIL(host.nr_ends);
	if (!c->reason) {
		CHECK(host.ups == 1 && host.from == 1 && s.got == 2 * DSM_WIRE_BYTES,
		      "not let in: %s %s", dsm_end_name(host.end[0].reason),
		      host.end[0].text);
	} else {
		CHECK(host.end[0].host == DSM_NOBODY, "host %u", host.end[0].host);
		CHECK(host.end[0].reason == c->reason, "'%s', %s",
		      dsm_end_name(host.end[0].reason), host.end[0].text);
		CHECK(!host.ups && !s.got, "%u bytes for a stranger", s.got);
		/* TLS has refused it, before anybody had to look who it is. */
		CHECK(!strstr(host.end[0].text, "nobody is proved"), "%s", host.end[0].text);
		check_text(host.end[0].text);
	}
	host_stop(&host);
	papers_free(&s.papers);
	rig_end();
}

static void as_server(const void *argument)
{
	const struct paper_case *c = argument;
	enum dsm_end reason = c->as_server ? c->as_server : c->reason;
	struct stranger s = { .tls_version = c->tls_version };
	struct host host;

	rig_begin();
	s.papers = papers_for(c);
	host_prepare(&host, 2);
	have_all_names(&host);
	point_to(&host, 1, listen_at_any(&s.listen_fd));
	host_start(&host);
	stranger_start(&s);
	CHECK(!dsm_transport_open(host.transport, 1, 1), "open");
	if (!reason) {
		/* It is let in, and that is all: it never says HELLO. */
		UNTIL(s.proved);
		clock_ns += OPENING;
		dsm_transport_tick(host.transport);
		reason = DSM_END_SLOW;
	}
	UNTIL(host.nr_ends);
	stranger_join(&s);
	CHECK(host.end[0].host == 1, "host %u", host.end[0].host);
	CHECK(host.end[0].reason == reason, "'%s', %s",
	      dsm_end_name(host.end[0].reason), host.end[0].text);
	CHECK(!host.ups && !s.got, "%u bytes for a stranger", s.got);
	check_text(host.end[0].text);
	host_stop(&host);
	papers_free(&s.papers);
	close(s.listen_fd);
	rig_end();
}

/* The right certificate, of another host than the one we open to. */
static void another_peer(const void *argument)
{
	struct stranger s = { 0 };
	struct host host;

	(void)argument;
	rig_begin();
	s.papers = host_papers(0);
	host_prepare(&host, 2);
	point_to(&host, 1, listen_at_any(&s.listen_fd));
	host_start(&host);
	stranger_start(&s);
	CHECK(!dsm_transport_open(host.transport, 1, 1), "open");
	UNTIL(host.nr_ends);
	stranger_join(&s);
	CHECK(host.end[0].reason == DSM_END_NAME, "'%s'",
	      dsm_end_name(host.end[0].reason));
	CHECK(strstr(host.end[0].text, host_names[0]), "%s", host.end[0].text);
	host_stop(&host);
	papers_free(&s.papers);
	close(s.listen_fd);
	rig_end();
}

/* What may be said first on a TCP connection, without TLS. */
static const struct plain_case {
	const char *name, *says;
	size_t size;
} plain_cases[] = {
	{ "an HTTP request", "GET / HTTP/1.1\r\nHost: alpha\r\n\r\n", 32 },
	{ "HELLO in the clear",
	  "\0\0\1\1XDSM\1\3\0\0\1\0\0\0fifteen letters", 32 },
	{ "a message in the clear",
	  "\1\1\0\0\1\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32 },
	{ "a TLS record of 16 MiB", "\x16\x03\x01\xff\xff\x01\xff\xff\xff\x03\x03", 11 },
	{ "a handshake of 16 MiB", "\x16\x03\x01\x40\x00\x01\xff\xff\xff\x03\x03", 11 },
	{ "an alert", "\x15\x03\x03\x00\x02\x02\x28", 7 },
};

static void say_plain(struct stranger *s)
{
	const struct plain_case *c = s->argument;

	stranger_write(s, c->says, c->size);
	shutdown(s->fd, SHUT_WR);
	stranger_read_to_end(s);
}

static void plain(const void *argument)
{
	struct stranger s = {
		.script = say_plain, .argument = argument, .tls_version = -1,
	};
	struct host host;

	rig_begin();
	host_prepare(&host, 0);
	stranger_meets(&s, &host, 1);
	stranger_join(&s);
	UNTIL(host.nr_ends);
	CHECK(!host.ups && !host.messages, "a stranger is in");
	CHECK(host.end[0].host == DSM_NOBODY &&
	      (host.end[0].reason == DSM_END_NOT_TLS ||
	       host.end[0].reason == DSM_END_CUT ||
	       host.end[0].reason == DSM_END_REFUSED), "'%s'",
	      dsm_end_name(host.end[0].reason));
	CHECK(s.got <= 7, "it could read %u bytes, an alert has 7", s.got);
	host_stop(&host);
	rig_end();
}

/* HELLO of the right host, with something wrong. */
static const struct hello_case {
	const char *name;
	unsigned int at;
	uint8_t value;
	enum dsm_end reason;
} hello_cases[] = {
	{ "right", 0, 0, 0 },
	{ "not HELLO", 0, 1, DSM_END_HELLO },
	{ "another magic", 4, 'Y', DSM_END_HELLO },
	{ "a version that is too new", 2, 2, DSM_END_VERSION },
	{ "a version that is too old", 3, 0, DSM_END_VERSION },
	{ "another host", 8, 2, DSM_END_HOST },
	{ "our own number", 8, 0, DSM_END_HOST },
	{ "no such host", 8, 3, DSM_END_HELLO },
	{ "another number of hosts", 9, 4, DSM_END_NR_HOSTS },
	{ "features that nobody knows", 10, 1, DSM_END_HELLO },
	{ "epoch 0", 12, 0, DSM_END_EPOCH },
	{ "another VM", 31, 'x', DSM_END_VM },
	{ "an epoch far ahead", 15, 0xff, DSM_END_EPOCH },
};

static void say_hello(struct stranger *s)
{
	const struct hello_case *c = s->argument;
	uint8_t hello[DSM_WIRE_BYTES];

	CHECK(s->proved && stranger_read(s, hello, sizeof(hello)), "its HELLO");
	put_hello(hello, 1, 1);
	hello[c->at] = c->value;
	CHECK(stranger_write(s, hello, sizeof(hello)), "our HELLO");
	stranger_read(s, hello, sizeof(hello));
}

static void hello(const void *argument)
{
	const struct hello_case *c = argument;
	struct stranger s = { .script = say_hello, .argument = argument };
	struct host host;

	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&host, 0);
	stranger_meets(&s, &host, 1);
	stranger_join(&s);
	UNTIL(host.nr_ends);
	CHECK(host.ups == !c->reason, "up %u times", host.ups);
	CHECK(host.end[0].host == 1, "host %u", host.end[0].host);
	CHECK(host.end[0].reason == (c->reason ? c->reason : DSM_END_CUT),
	      "'%s', %s", dsm_end_name(host.end[0].reason), host.end[0].text);
	host_stop(&host);
	papers_free(&s.papers);
	rig_end();
}

/* Both find the mistake, whoever opens. */
static void hello_both(const void *argument)
{
	struct host a, b;

	(void)argument;
	rig_begin();
	host_prepare(&a, 1);
	host_prepare(&b, 0);
	a.params.vm[3] = 'x';
	host_start(&b);
	point_to(&a, 0, dsm_transport_port(b.transport));
	host_start(&a);
	CHECK(!dsm_transport_expect(b.transport, 1, 1) &&
	      !dsm_transport_open(a.transport, 0, 1), "open");
	UNTIL(a.nr_ends && b.nr_ends);
	CHECK(a.end[0].reason == DSM_END_VM && b.end[0].reason == DSM_END_VM,
	      "'%s' and '%s'", dsm_end_name(a.end[0].reason),
	      dsm_end_name(b.end[0].reason));
	CHECK(!a.ups && !b.ups, "up");
	host_stop(&a);
	host_stop(&b);
	rig_end();
}

/* The same host's dsmd of another VM comes first: the right one still may. */
static void wrong_one_first(const void *argument)
{
	static const struct hello_case other = { "", 31, 'x', DSM_END_VM };
	struct stranger s = { .script = say_hello, .argument = &other };
	struct host a, b;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&a, 1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	stranger_join(&s);
	UNTIL(b.nr_ends == 1);
	CHECK(b.end[0].reason == DSM_END_VM && b.end[0].host == 1, "%s",
	      dsm_end_name(b.end[0].reason));
	point_to(&a, 0, s.port);
	host_start(&a);
	CHECK(!dsm_transport_open(a.transport, 0, 1), "open");
	UNTIL((a.ups && b.ups) || a.nr_ends);
	CHECK(b.ups == 1 && b.nr_ends == 1, "%s", dsm_end_name(a.end[0].reason));
	host_stop(&a);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

static void say_nothing(struct stranger *s)
{
	uint8_t hello[DSM_WIRE_BYTES];

	CHECK(s->proved && stranger_read(s, hello, sizeof(hello)), "its HELLO");
	CHECK(!stranger_read(s, hello, 1), "more than that");
}

/*
 * An attempt of the same host that was left behind, by a network that lost its end,
 * say: when it goes nothing is said of the host, which is connected by then.
 */
static void one_left_behind(const void *argument)
{
	struct stranger s = { .script = say_nothing };
	struct dsm_msg msg;
	struct host a, b;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&a, 1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	UNTIL(s.got == DSM_WIRE_BYTES);
	point_to(&a, 0, s.port);
	host_start(&a);
	CHECK(!dsm_transport_open(a.transport, 0, 1), "open");
	UNTIL(a.ups && b.ups);
	stranger_join(&s);
	UNTIL(b.nr_ends == 1);
	CHECK(b.end[0].reason == DSM_END_UNEXPECTED && b.end[0].host == DSM_NOBODY &&
	      strstr(b.end[0].text, "another one is connected"), "host %u: %s, %s", b.end[0].host,
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	msg = message(1, DSM_GETS, 1);
	UNTIL(dsm_transport_room(a.transport, 0));
	CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	UNTIL(b.messages == 1);
	CHECK(b.ups == 1 && b.nr_ends == 1, "it goes on");
	host_stop(&a);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* One address fills all places; who comes from another one has his all the same. */
static void one_in_a_crowd(const void *argument)
{
	struct stranger s[4], other = { .script = greet, .address = "127.0.0.2" };
	struct host b;
	unsigned int i;

	(void)argument;
	rig_begin();
	host_prepare(&b, 0);
	((struct sockaddr_in *)&b.params.peer[1].address)->sin_addr.s_addr =
		htonl(INADDR_LOOPBACK + 1);
	host_start(&b);
	CHECK(!dsm_transport_expect(b.transport, 1, 1), "expect");
	memset(s, 0, sizeof(s));
	for (i = 0; i < 4; i++) {
		s[i].tls_version = -1;
		s[i].port = dsm_transport_port(b.transport);
		stranger_start(&s[i]);
	}
	/* The fifth is one too many: so four are in. */
	struct stranger fifth = { .tls_version = -1, .port = s[0].port };
	stranger_start(&fifth);
	UNTIL(b.nr_ends == 1);
	CHECK(b.end[0].reason == DSM_END_CROWD, "%s", dsm_end_name(b.end[0].reason));
	other.papers = host_papers(1);
	other.port = s[0].port;
	stranger_start(&other);
	stranger_join(&other);
	UNTIL(b.ups || b.nr_ends > 2);
	CHECK(b.ups == 1 && b.end[1].reason == DSM_END_CROWD, "%u ups, %s", b.ups,
	      dsm_end_name(b.end[1].reason));
	clock_ns += OPENING;
	dsm_transport_tick(b.transport);
	for (i = 0; i < 4; i++)
		stranger_join(&s[i]);
	stranger_join(&fifth);
	host_stop(&b);
	papers_free(&other.papers);
	rig_end();
}

static void unexpected(const void *argument)
{
	struct stranger s = { .script = greet };
	struct host a, b;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&a, 1);
	host_prepare(&b, 0);
	host_start(&b);
	s.port = dsm_transport_port(b.transport);
	stranger_start(&s);
	stranger_join(&s);
	UNTIL(b.nr_ends == 1);
	CHECK(b.end[0].reason == DSM_END_UNEXPECTED && b.end[0].host == DSM_NOBODY &&
	      strstr(b.end[0].text, "not expected"), "%s", b.end[0].text);
	CHECK(!s.got, "it could read %u bytes", s.got);

	/* A second one of the same host changes nothing for the first. */
	b.nr_ends = 0;
	host_start(&a);
	point_to(&a, 0, s.port);
	connect_hosts(&a, &b);
	s.done = false;
	s.got = 0;
	stranger_start(&s);
	stranger_join(&s);
	UNTIL(b.nr_ends == 1);
	CHECK(b.end[0].reason == DSM_END_UNEXPECTED && b.end[0].host == DSM_NOBODY &&
	      strstr(b.end[0].text, "is connected"), "%s", b.end[0].text);
	CHECK(!s.got && b.ups == 1, "a second connection");
	struct dsm_msg msg = message(7, DSM_GETS, 1);
	UNTIL(dsm_transport_room(a.transport, 0));
	CHECK(!dsm_transport_send(a.transport, 0, &msg, NULL), "send");
	UNTIL(b.messages == 1);
	host_stop(&a);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

static void addresses(const void *argument)
{
	struct stranger s = { .address = "127.0.0.2" };
	struct host host;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&host, 0);
	stranger_meets(&s, &host, 1);
	stranger_join(&s);
	UNTIL(host.nr_ends);
	CHECK(host.end[0].reason == DSM_END_STRANGER && host.end[0].host == DSM_NOBODY,
	      "'%s'", dsm_end_name(host.end[0].reason));
	CHECK(strstr(host.end[0].text, "127.0.0.2"), "%s", host.end[0].text);
	CHECK(!s.proved, "a handshake with a stranger");
	host_stop(&host);
	papers_free(&s.papers);
	rig_end();
}

/* Who says nothing has a place for a while, but not all places for ever. */
static void crowd(const void *argument)
{
	struct stranger s[7];
	struct dsm_transport_counters counters;
	struct host a, b;
	unsigned int i, crowds = 0;

	(void)argument;
	rig_begin();
	host_prepare(&b, 0);
	host_start(&b);
	memset(s, 0, sizeof(s));
	for (i = 0; i < 7; i++) {
		s[i].tls_version = -1;
		s[i].port = dsm_transport_port(b.transport);
		stranger_start(&s[i]);
	}
	UNTIL(b.nr_ends == 3);	/* four may wait */
	for (i = 0; i < 3; i++)
		crowds += b.end[i].reason == DSM_END_CROWD;
	CHECK(crowds == 3, "%u, '%s'", crowds, dsm_end_name(b.end[0].reason));
	clock_ns += OPENING - 1;
	dsm_transport_tick(b.transport);
	CHECK(b.nr_ends == 3, "before the time");
	clock_ns++;
	dsm_transport_tick(b.transport);
	CHECK(b.nr_ends == 7 && b.end[6].reason == DSM_END_SLOW, "%u ends",
	      b.nr_ends);
	for (i = 0; i < 7; i++)
		stranger_join(&s[i]);
	CHECK(!dsm_transport_counts(b.transport, DSM_NOBODY, &counters) &&
	      counters.ends[DSM_END_CROWD] == 3 &&
	      counters.ends[DSM_END_SLOW] == 4, "counters");
	b.nr_ends = 0;
	host_prepare(&a, 1);
	point_to(&a, 0, dsm_transport_port(b.transport));
	host_start(&a);
	connect_hosts(&a, &b);
	host_stop(&a);
	host_stop(&b);
	rig_end();
}

/* CAs between the site's and a certificate, the lowest first. */
#define MOST_BETWEEN	4

static struct papers chain_make(struct papers *between, unsigned int nr)
{
	char subject[32];
	struct wanted wanted = {
		.subject = subject, .from = -1, .to = 10, .ca = true,
	}, leaf = {
		.names = "DNS:beta.b.example", .usage = BOTH_ROLES,
		.subject = "x", .from = -1, .to = 10,
	};
	unsigned int i;

	for (i = nr; i--;) {
		snprintf(subject, sizeof(subject), "CA %u", i);
		between[i] = papers_make(&wanted, i + 1 < nr ? &between[i + 1] : &ca);
	}
	return papers_make(&leaf, nr ? &between[0] : &ca);
}

static void chains(const void *argument)
{
	struct papers between[MOST_BETWEEN + 1];
	struct stranger s = { .script = greet, .between = between };
	struct host host, own;
	unsigned int nr, i;
	int rc;

	(void)argument;
	for (nr = MOST_BETWEEN; nr <= MOST_BETWEEN + 1; nr++) {
		rig_begin();
		s.papers = chain_make(between, nr);
		s.nr_between = nr;
		s.done = false;
		host_prepare(&host, 0);
		stranger_meets(&s, &host, 1);
		stranger_join(&s);
		UNTIL(host.nr_ends);
		CHECK(host.ups == (nr == MOST_BETWEEN), "%u above: %s", nr,
		      host.end[0].text);
		host_stop(&host);

		/* We say the same of our own. */
		host_prepare(&own, 1);
		papers_write(&s.papers, own.params.certificate_file,
			     own.params.key_file, 0600);
		for (i = 0; i < nr; i++)
			papers_append(&between[i], own.params.certificate_file);
		rc = dsm_transport_create(&own.params, &own.transport, own.text);
		CHECK(rc == (nr == MOST_BETWEEN ? 0 : -EINVAL), "%u above ours: %d %s",
		      nr, rc, own.text);
		if (!rc)
			host_stop(&own);
		else
			CHECK(strstr(own.text, own.params.certificate_file), "%s",
			      own.text);
		for (i = 0; i < nr; i++)
			papers_free(&between[i]);
		papers_free(&s.papers);
		rig_end();
	}
}

/* A certificate of 16 KiB and more. */
static void long_certificate(const void *argument)
{
	static char names[32768];
	struct wanted wanted = {
		.names = names, .usage = BOTH_ROLES, .subject = "x", .from = -1,
		.to = 10,
	};
	struct stranger s = { .script = greet };
	struct host host, own;
	unsigned int i;
	size_t length;
	int rc;

	(void)argument;
	rig_begin();
	length = (size_t)snprintf(names, sizeof(names), "DNS:beta.b.example");
	for (i = 0; i < 280; i++)
		length += (size_t)snprintf(names + length, sizeof(names) - length,
			",DNS:%03u.a-name-that-says-nothing-but-that-is-long.to.be.long.example",
			i);
	s.papers = papers_make(&wanted, &ca);
	host_prepare(&host, 0);
	stranger_meets(&s, &host, 1);
	stranger_join(&s);
	UNTIL(host.nr_ends);
	CHECK(!host.ups && strstr(host.end[0].text, "excessive"), "%u ups, %s",
	      host.ups, host.end[0].text);
	host_stop(&host);

	host_prepare(&own, 1);
	papers_write(&s.papers, own.params.certificate_file, own.params.key_file,
		     0600);
	rc = dsm_transport_create(&own.params, &own.transport, own.text);
	CHECK(rc == -EINVAL && strstr(own.text, "excessive"), "%d: %s", rc, own.text);
	papers_free(&s.papers);
	rig_end();
}

/* What is wrong with our own papers is said at once. */
static const struct own_case {
	const char *name;
	struct wanted wanted;
	enum signer by;
	const char *key_usage;
	const char *says;
} own_cases[] = {
	{ "expired", { "DNS:alpha.a.example", BOTH_ROLES, "x", -10, -1, false }, SITE, NULL,
	  "expired" },
	{ "another CA's", { "DNS:alpha.a.example", BOTH_ROLES, "x", -1, 9, false }, OTHER_CA, NULL,
	  "signature failure, 0 above the peer's: no CA of ours (ca of dsm.toml) has signed it" },
	{ "another name", { "DNS:beta.b.example", BOTH_ROLES, "x", -1, 9, false }, SITE, NULL,
	  "subjectAltName: beta.b.example; certificate_names: alpha.a.example" },
	{ "a peer's name, too", { "DNS:alpha.a.example,DNS:beta.b.example", BOTH_ROLES, "x", -1, 9, false },
	  SITE, NULL, "subjectAltName" },
	{ "for servers only", { "DNS:alpha.a.example", "serverAuth", "x", -1, 9, false }, SITE, NULL,
	  "extendedKeyUsage" },
	{ "for clients only", { "DNS:alpha.a.example", "clientAuth", "x", -1, 9, false }, SITE, NULL,
	  "purpose" },
	{ "without roles", { "DNS:alpha.a.example", NULL, "x", -1, 9, false }, SITE, NULL,
	  "extendedKeyUsage" },
	{ "for lists of what is revoked", { "DNS:alpha.a.example", BOTH_ROLES, "x", -1, 9, false }, SITE,
	  "critical,cRLSign", "purpose" },
};

static void own(const void *argument)
{
	const struct own_case *c = argument;
	struct papers papers;
	struct host host;
	int rc;

	rig_begin();
	host_prepare(&host, 0);
	papers = papers_make(&c->wanted, c->by == SITE ? &ca : &other_ca);
	if (c->key_usage)
		papers_add(&papers, &ca, NID_key_usage, c->key_usage);
	papers_write(&papers, host.params.certificate_file, host.params.key_file,
		     0600);
	rc = dsm_transport_create(&host.params, &host.transport, host.text);
	CHECK(rc == -EINVAL && strstr(host.text, c->says) &&
	      strstr(host.text, host.params.certificate_file), "%d: %s", rc,
	      host.text);
	papers_free(&papers);
	rig_end();
}

/* Whose is the key, and can it be read without a question? */
static void own_key(const void *argument)
{
	struct papers papers;
	struct host host;
	int rc;

	(void)argument;
	rig_begin();
	host_prepare(&host, 0);
	/* Only root can give a file away. */
	if (!geteuid()) {
		CHECK(!chown(host.params.key_file, 1000, 1000), "chown");
		rc = dsm_transport_create(&host.params, &host.transport, host.text);
		CHECK(rc == -EINVAL && strstr(host.text, "another user's") &&
		      strstr(host.text, host.params.key_file), "%d: %s", rc, host.text);
	}

	papers = host_papers(0);
	papers_write(&papers, host.params.certificate_file, NULL, 0);
	CHECK(!unlink(host.params.key_file), "unlink");
	papers_encrypt_key(&papers, host.params.key_file);
	rc = dsm_transport_create(&host.params, &host.transport, host.text);
	CHECK(rc == -EINVAL && strstr(host.text, "encrypted") &&
	      strstr(host.text, host.params.key_file), "%d: %s", rc, host.text);

	host.params.key_file = "/dev/null";
	rc = dsm_transport_create(&host.params, &host.transport, host.text);
	CHECK(rc == -EINVAL && strstr(host.text, "/dev/null: not a file"), "%d: %s",
	      rc, host.text);
	papers_free(&papers);
	rig_end();
}

/* Who can write the CA's certificate says who is a peer. */
static void whose_ca(const void *argument)
{
	static const struct {
		bool given_away;	/* only root can */
		mode_t mode;
		const char *says;	/* NULL: it is good */
	} cases[] = {
		{ false, 0644, NULL },
		{ false, 0400, NULL },
		{ false, 0664, "others can write it" },
		{ false, 0646, "others can write it" },
		{ true, 0644, "another user's" },
	};
	struct host host;
	unsigned int i;
	int rc;

	(void)argument;
	rig_begin();
	host_prepare(&host, 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].given_away && geteuid())
			continue;
		CHECK((!cases[i].given_away || !chown(host.params.ca_file, 1000, 1000)) &&
		      !chmod(host.params.ca_file, cases[i].mode), "%u", i);
		rc = dsm_transport_create(&host.params, &host.transport, host.text);
		if (!cases[i].says) {
			CHECK(!rc, "%u: %d, %s", i, rc, host.text);
			dsm_transport_destroy(host.transport);
			continue;
		}
		CHECK(rc == -EINVAL && strstr(host.text, cases[i].says) &&
		      strstr(host.text, host.params.ca_file), "%u: %d, %s", i, rc,
		      host.text);
	}
	CHECK(!chown(host.params.ca_file, geteuid(), getegid()) &&
	      !chmod(host.params.ca_file, 0644), "as it was");
	rig_end();
}

static void own_files(const void *argument)
{
	struct papers papers;
	struct host host;
	const char *right;
	int rc;

	(void)argument;
	rig_begin();
	host_prepare(&host, 0);
	CHECK(!chmod(host.params.key_file, 0640), "chmod");
	rc = dsm_transport_create(&host.params, &host.transport, host.text);
	CHECK(rc == -EINVAL && strstr(host.text, "others can read"), "%d: %s", rc,
	      host.text);

	papers = host_papers(0);
	papers_write(&papers, NULL, host.params.key_file, 0600);
	rc = dsm_transport_create(&host.params, &host.transport, host.text);
	CHECK(rc == -EINVAL && strstr(host.text, host.params.key_file), "%d: %s",
	      rc, host.text);
	papers_free(&papers);

	right = host.params.ca_file;
	host.params.ca_file = "/nonexistent/ca.pem";
	host_prepare(&host, 0);
	host.params.ca_file = "/nonexistent/ca.pem";
	rc = dsm_transport_create(&host.params, &host.transport, host.text);
	CHECK(rc == -EINVAL && strstr(host.text, "/nonexistent/ca.pem"), "%d: %s",
	      rc, host.text);
	host.params.ca_file = right;
	rig_end();
}

static unsigned int strangers_of(const struct host *h, enum dsm_end reason)
{
	struct dsm_transport_counters counters;

	CHECK(!dsm_transport_counts(h->transport, DSM_NOBODY, &counters), "counters");
	return (unsigned int)counters.ends[reason];
}

/* Somebody at a peer's address who is no peer. */
static void no_peer(struct stranger *s)
{
	s->done = false;
	s->got = 0;
	stranger_start(s);
	stranger_join(s);
}

/*
 * Handshakes that fail: so many at once from an address, and one more each 100 ms.
 * Of those who are turned away eight at once are told of, and one more a second.
 */
static void often(const void *argument)
{
	struct stranger s = {
		.script = say_plain, .argument = &plain_cases[0], .tls_version = -1,
	}, other = { .script = greet, .address = "127.0.0.2" };
	unsigned int i, tried;
	struct host b;

	(void)argument;
	rig_begin();
	host_prepare(&b, 0);
	((struct sockaddr_in *)&b.params.peer[1].address)->sin_addr.s_addr =
		htonl(INADDR_LOOPBACK + 1);
	host_start(&b);
	CHECK(!dsm_transport_expect(b.transport, 1, 1), "expect");
	s.port = dsm_transport_port(b.transport);
	for (i = 0; i < 20; i++) {
		no_peer(&s);
		tried = i + 1 - strangers_of(&b, DSM_END_OFTEN);
		CHECK(tried == (i < 16 ? i + 1 : 16), "%u of %u", tried, i + 1);
	}
	CHECK(b.nr_ends == 8 && b.end[7].host == DSM_NOBODY &&
	      b.end[7].reason != DSM_END_OFTEN, "%u are told of", b.nr_ends);

	clock_ns += NS / 10;
	no_peer(&s);
	no_peer(&s);
	CHECK(strangers_of(&b, DSM_END_OFTEN) == 5 && b.nr_ends == 8, "%u, %u",
	      strangers_of(&b, DSM_END_OFTEN), b.nr_ends);
	clock_ns += NS * 9 / 10;
	no_peer(&s);
	CHECK(b.nr_ends == 9 && strstr(b.end[8].text, "; and 14 more before"), "%s",
	      b.end[8].text);
	check_text(b.end[8].text);
	no_peer(&s);
	CHECK(b.nr_ends == 9, "one a second");

	/* Another address has its own. */
	other.papers = host_papers(1);
	other.port = s.port;
	stranger_start(&other);
	stranger_join(&other);
	UNTIL(b.ups);
	host_stop(&b);
	papers_free(&other.papers);
	rig_end();
}

/* Who proves to be a peer has all his attempts again. */
static void often_and_good(const void *argument)
{
	struct stranger s = { .script = greet };
	struct host b;
	unsigned int i;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	host_start(&b);
	s.port = dsm_transport_port(b.transport);
	for (i = 0; i < 20; i++) {
		b.nr_ends = 0;
		CHECK(!dsm_transport_expect(b.transport, 1, i + 1), "expect");
		no_peer(&s);
		UNTIL(b.nr_ends);
		CHECK(b.ups == i + 1, "%u: %s", i, dsm_end_name(b.end[0].reason));
	}
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* Its HELLO is here in time, and it is we who look too late. */

static atomic_int late_step;

static void greet_late(struct stranger *s)
{
	uint8_t hello[DSM_WIRE_BYTES];

	CHECK(s->proved && stranger_read(s, hello, sizeof(hello)), "its HELLO");
	while (late_step != 1)
		poll(NULL, 0, 1);
	put_hello(hello, 1, 1);
	CHECK(stranger_write(s, hello, sizeof(hello)), "our HELLO");
	late_step = 2;
	stranger_read(s, hello, sizeof(hello));
}

static void late_hello(const void *argument)
{
	struct stranger s = { .script = greet_late };
	struct host b;
	unsigned int i;

	(void)argument;
	rig_begin();
	late_step = 0;
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	UNTIL(s.got == DSM_WIRE_BYTES);
	late_step = 1;
	/* Over loopback, what is written is in the other end's socket. */
	for (i = 0; i < 1000 * PATIENCE && late_step != 2; i++)
		poll(NULL, 0, 1);
	CHECK(late_step == 2, "it has not written");
	clock_ns += OPENING;
	dsm_transport_tick(b.transport);
	CHECK(b.ups == 1 && !b.nr_ends, "%s", dsm_end_name(b.end[0].reason));
	stranger_join(&s);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* The epoch of a connection is later than that of the one before. */
static void epochs(const void *argument)
{
	struct host a, b;

	(void)argument;
	rig_begin();
	host_prepare(&a, 1);
	host_prepare(&b, 0);
	host_start(&b);
	point_to(&a, 0, dsm_transport_port(b.transport));
	host_start(&a);
	connect_hosts(&a, &b);
	CHECK(a.epoch == 7 && b.epoch == 7, "%u", b.epoch);
	CHECK(!dsm_transport_close(a.transport, 0), "close");
	UNTIL(a.nr_ends && b.nr_ends);
	CHECK(dsm_transport_expect(b.transport, 1, 7) == -EINVAL &&
	      dsm_transport_expect(b.transport, 1, 1) == -EINVAL &&
	      dsm_transport_open(a.transport, 0, 7) == -EINVAL &&
	      dsm_transport_open(a.transport, 0, 0x80000007) == -EINVAL,
	      "an epoch again");
	/* An attempt that comes to nothing uses none up. */
	CHECK(!dsm_transport_expect(b.transport, 1, 9) &&
	      !dsm_transport_close(b.transport, 1) &&
	      !dsm_transport_expect(b.transport, 1, 8) &&
	      !dsm_transport_open(a.transport, 0, 8), "the next");
	UNTIL(a.ups == 2 && b.ups == 2);
	CHECK(a.epoch == 8 && b.epoch == 8, "%u", b.epoch);
	host_stop(&a);
	host_stop(&b);
	rig_end();
}

/* Nothing is kept of a session that would let a peer in without a proof. */
static atomic_int resumable;

static void look_at_session(struct stranger *s)
{
	greet(s);
	resumable = SSL_SESSION_is_resumable(SSL_get0_session(s->ssl)) ? 2 : 1;
}

static void no_resumption(const void *argument)
{
	struct stranger s = { .script = look_at_session };
	struct host b;

	(void)argument;
	rig_begin();
	resumable = 0;
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	stranger_join(&s);
	UNTIL(b.nr_ends);
	CHECK(b.ups == 1 && resumable == 1, "a ticket");
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

/* A peer that says goodbye first. */
static void say_goodbye(struct stranger *s)
{
	uint8_t hello[DSM_WIRE_BYTES];

	CHECK(s->proved && stranger_read(s, hello, sizeof(hello)), "its HELLO");
	SSL_shutdown(s->ssl);
	stranger_read_to_end(s);
}

static void goodbye_first(const void *argument)
{
	struct stranger s = { .script = say_goodbye };
	struct host b;

	(void)argument;
	rig_begin();
	s.papers = host_papers(1);
	host_prepare(&b, 0);
	stranger_meets(&s, &b, 1);
	stranger_join(&s);
	UNTIL(b.nr_ends);
	CHECK(b.end[0].host == 1 && b.end[0].reason == DSM_END_REFUSED &&
	      strstr(b.end[0].text, "before HELLO"), "%s %s",
	      dsm_end_name(b.end[0].reason), b.end[0].text);
	host_stop(&b);
	papers_free(&s.papers);
	rig_end();
}

static void set_address6(struct sockaddr_storage *address, uint8_t last,
			 unsigned int port)
{
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port),
		.sin6_addr.s6_addr[15] = last,
	};

	memset(address, 0, sizeof(*address));
	memcpy(address, &six, sizeof(six));
}

/* The last byte of an address decides. */
static void addresses6(const void *argument)
{
	struct host a, b;
	unsigned int last;

	(void)argument;
	for (last = 1; last <= 2; last++) {
		rig_begin();
		host_prepare(&a, 1);
		host_prepare(&b, 0);
		set_address6(&b.params.address, 1, 0);
		set_address6(&b.params.peer[1].address, (uint8_t)last, 1);
		set_address6(&b.params.peer[2].address, 3, 1);
		host_start(&b);
		set_address6(&a.params.address, 1, 0);
		set_address6(&a.params.peer[0].address, 1,
			     dsm_transport_port(b.transport));
		host_start(&a);
		CHECK(!dsm_transport_expect(b.transport, 1, 1) &&
		      !dsm_transport_open(a.transport, 0, 1), "open");
		UNTIL((a.ups && b.ups) || (a.nr_ends && b.nr_ends));
		CHECK(b.ups == (last == 1), "::%u: %s", last,
		      dsm_end_name(b.end[0].reason));
		CHECK(last == 1 || (b.end[0].reason == DSM_END_STRANGER &&
		      strstr(b.end[0].text, "from ::1")), "%s", b.end[0].text);
		host_stop(&a);
		host_stop(&b);
		rig_end();
	}
}

/* We connect from the address that the peer knows. */
static atomic_uint came_from;

static void look_whence(struct stranger *s)
{
	struct sockaddr_in from = { 0 };
	socklen_t size = sizeof(from);

	CHECK(!getpeername(s->fd, (struct sockaddr *)&from, &size), "getpeername");
	came_from = ntohl(from.sin_addr.s_addr);
}

static void own_address_first(const void *argument)
{
	struct stranger s = { .script = look_whence, .tls_version = -1 };
	struct host host;

	(void)argument;
	rig_begin();
	came_from = 0;
	host_prepare(&host, 2);
	((struct sockaddr_in *)&host.params.address)->sin_addr.s_addr =
		htonl(INADDR_LOOPBACK + 2);
	point_to(&host, 1, listen_at_any(&s.listen_fd));
	host_start(&host);
	stranger_start(&s);
	CHECK(!dsm_transport_open(host.transport, 1, 1), "open");
	stranger_join(&s);
	CHECK(came_from == INADDR_LOOPBACK + 2, "from %#x", came_from);
	host_stop(&host);
	close(s.listen_fd);
	rig_end();
}

/* No descriptor is left: who comes waits until the next tick, and we sleep. */
static atomic_bool is_connected;

static void come_and_wait(struct stranger *s)
{
	is_connected = true;
	stranger_read_to_end(s);
}

static void no_descriptor(const void *argument)
{
	struct stranger s = {
		.script = come_and_wait, .tls_version = -1, .address = "127.0.0.2",
	};
	struct rlimit limit, low;
	struct host b;
	unsigned int i;
	int fd;

	(void)argument;
	rig_begin();
	is_connected = false;
	host_prepare(&b, 0);
	host_start(&b);
	s.port = dsm_transport_port(b.transport);
	stranger_start(&s);
	for (i = 0; i < 1000 * PATIENCE && !is_connected; i++)
		poll(NULL, 0, 1);
	fd = dup(0);
	close(fd);
	CHECK(is_connected && fd > 0 && !getrlimit(RLIMIT_NOFILE, &limit), "limits");
	low = limit;
	low.rlim_cur = (rlim_t)fd;
	CHECK(!setrlimit(RLIMIT_NOFILE, &low), "setrlimit");
	run_pending();
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	run_pending();
	CHECK(!b.nr_ends, "it looks again and again");
	dsm_transport_tick(b.transport);
	UNTIL(b.nr_ends);
	CHECK(b.end[0].reason == DSM_END_STRANGER, "%s",
	      dsm_end_name(b.end[0].reason));
	stranger_join(&s);
	host_stop(&b);
	rig_end();
}

/* An end has words for people, and a network that broke is no attack on TLS. */
static void openssl_errors(const void *argument)
{
	static const struct {
		int library, reason;
		enum dsm_end end;
		const char *text;
	} table[] = {
		{ ERR_LIB_SYS, ECONNRESET, DSM_END_CUT, "Connection reset by peer" },
		{ ERR_LIB_SYS, EPIPE, DSM_END_CUT, "Broken pipe" },
		{ ERR_LIB_SSL, SSL_R_UNEXPECTED_EOF_WHILE_READING, DSM_END_CUT, "unexpected eof while reading" },
		{ ERR_LIB_SSL, 799, DSM_END_NOT_TLS, "OpenSSL's error 0A00031F" },
	};
	struct dsm_tls_who who = { .params = NULL };
	SSL_CTX *context = SSL_CTX_new(TLS_method());
	SSL *ssl = context ? dsm_tls_session(context, -1, true, &who) : NULL;
	char text[DSM_TRANSPORT_TEXT];
	unsigned int i;
	int end;

	(void)argument;
	CHECK(ssl, "no session");
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ERR_clear_error();
		/* The first says that it is TLS's, the last what it was. */
		ERR_raise(ERR_LIB_SSL, ERR_R_INTERNAL_ERROR);
		ERR_raise(table[i].library, table[i].reason);
		end = dsm_tls_end(ssl, -1, text);
		CHECK(end == (int)table[i].end && !strcmp(text, table[i].text), "%u: %s, %s", i,
		      dsm_end_name((unsigned int)end), text);
	}
	ERR_clear_error();
	SSL_free(ssl);
	SSL_CTX_free(context);
}

#define NR(table)	(sizeof(table) / sizeof(table[0]))

int main(int argc, char **argv)
{
	static struct test_case cases[2 * NR(paper_cases) + NR(plain_cases) +
				      NR(hello_cases) + NR(own_cases) + 32];
	static char names[NR(cases)][96];
	size_t i, n = 0;

#define ADD(kind, table, function) do {					\
	for (i = 0; i < NR(table); i++, n++) {				\
		snprintf(names[n], sizeof(names[n]), "%s: %s", kind,	\
			 table[i].name);				\
		cases[n] = (struct test_case){ names[n], function, &table[i] }; \
	}								\
} while (0)
	ADD("a client's certificate", paper_cases, as_client);
	ADD("a server's certificate", paper_cases, as_server);
	ADD("without TLS", plain_cases, plain);
	ADD("HELLO", hello_cases, hello);
	ADD("our certificate", own_cases, own);
#undef ADD
	cases[n++] = (struct test_case){ "a server's certificate: another peer's",
					 another_peer, NULL };
	cases[n++] = (struct test_case){ "HELLO: both find it", hello_both, NULL };
	cases[n++] = (struct test_case){ "nobody waits for it", unexpected, NULL };
	cases[n++] = (struct test_case){ "another address", addresses, NULL };
	cases[n++] = (struct test_case){ "a crowd", crowd, NULL };
	cases[n++] = (struct test_case){ "our files", own_files, NULL };
	cases[n++] = (struct test_case){ "our key", own_key, NULL };
	cases[n++] = (struct test_case){ "the CA's certificate", whose_ca, NULL };
	cases[n++] = (struct test_case){ "HELLO: the wrong one first", wrong_one_first, NULL };
	cases[n++] = (struct test_case){ "HELLO: one that was left behind", one_left_behind, NULL };
	cases[n++] = (struct test_case){ "a crowd from one address", one_in_a_crowd, NULL };
	cases[n++] = (struct test_case){ "certificates in between", chains, NULL };
	cases[n++] = (struct test_case){ "a long certificate", long_certificate, NULL };
	cases[n++] = (struct test_case){ "attempts without end", often, NULL };
	cases[n++] = (struct test_case){ "attempts that are good", often_and_good, NULL };
	cases[n++] = (struct test_case){ "HELLO: we see it too late", late_hello, NULL };
	cases[n++] = (struct test_case){ "epochs", epochs, NULL };
	cases[n++] = (struct test_case){ "nothing to resume", no_resumption, NULL };
	cases[n++] = (struct test_case){ "goodbye before HELLO", goodbye_first, NULL };
	cases[n++] = (struct test_case){ "another IPv6 address", addresses6, NULL };
	cases[n++] = (struct test_case){ "from our own address", own_address_first, NULL };
	cases[n++] = (struct test_case){ "no descriptor", no_descriptor, NULL };
	cases[n++] = (struct test_case){ "OpenSSL's errors", openssl_errors, NULL };
	return run_cases(argc, argv, cases, n);
}
