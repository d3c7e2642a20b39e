// SPDX-License-Identifier: GPL-2.0
/*
 * A VM whose memory at other hosts comes and goes while it runs: workers in one
 * process, each with a played hypervisor and a control socket, joined by TCP with
 * TLS over loopback.  alpha is the VM's home; beta and gamma have memory for a
 * vnode each.  vCPUs at home read and write all the time: what is read is what
 * was written last.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

#include "played_xen.h"
#include "rig.h"
/* link.h has a struct of this name, worker_internal.h an enum. */
#define dsm_link dsm_peer_link
#include "worker_internal.h"
#undef dsm_link

#define OWN	64u		/* pages at home that are used */
#define UNIT	512u		/* pages: 2 MiB */
#define PAGES	2048u
#define VCPUS	2u
#define POOL	256u		/* frames, least for two vCPUs is 64 */
#define NR(a)	(sizeof(a) / sizeof((a)[0]))

static const struct dsm_range range[3] = {
	{ 0, UNIT, 0 }, { UNIT, 3 * UNIT, 1 }, { 3 * UNIT, PAGES, 2 },
};

static const char *const names[HOSTS] = { "alpha", "beta", "gamma" };

struct node {
	struct played_xen xen;
	struct dsm_config config;
	struct dsm_description description;
	struct dsm_worker *worker;
	enum dsm_worker_state state;
	char why[DSM_ENGINE_TEXT], socket[128], last_log[DSM_ENGINE_TEXT];
	unsigned int number, port, nr_logged;
};

static struct node node[HOSTS];
static uint64_t last_written[PAGES][PLAYED_WORDS], written, checked, holes;

/* What the guest thinks it has of the others' memory. */
static uint64_t has[HOSTS];

static struct {
	uint64_t gfn, rip;
	unsigned int word, want;
	bool set;
} run[HOSTS];
static unsigned int runs_at[HOSTS];	/* the host of each vCPU */
static ev_idle vcpus;
static bool stopping;

static void on_log(void *context, int level, const char *text)
{
	struct node *n = context;

	CHECK(level >= 3 && level <= 6 && text[0], "level %d", level);
	/* Of time, and of pages that are in use: it comes when it comes, between any two others. */
	if (!strstr(text, "the guest's time") && !strstr(text, "the guest has two times") &&
	    !strstr(text, "the guest has one time") && !strstr(text, "is in use for too long"))
		snprintf(n->last_log, sizeof(n->last_log), "%s", text);
	n->nr_logged++;
	if (getenv("RESIZE_LOG"))
		fprintf(stderr, "%s: %s\n", names[n->number], text);
}

static void on_state(void *context, enum dsm_worker_state state, const char *text)
{
	struct node *n = context;

	n->state = state;
	if (state == DSM_WORKER_FAILED || state == DSM_WORKER_OVER)
		snprintf(n->why, sizeof(n->why), "%s", text);
}

static void on_forgotten(void *context)
{
	(void)context;
}

static const struct dsm_worker_calls worker_calls = {
	.log = on_log, .state = on_state, .forgotten = on_forgotten,
};

/* Ports are those that are free; who has a lower number was there before. */
static void adjust(void *context, struct dsm_transport_params *p)
{
	struct node *n = context;
	unsigned int i;

	((struct sockaddr_in *)&p->address)->sin_port = 0;
	for (i = 0; i < HOSTS; i++)
		if (p->peer[i].used)
			((struct sockaddr_in *)&p->peer[i].address)->sin_port =
				htons((uint16_t)(i < n->number && node[i].port ? node[i].port : 1));
}

static bool all_ask;			/* beta and gamma, too: for their tools */
static uint32_t error_us = 1000, question_ms = 1000;

static void prepare(unsigned int number)
{
	struct node *n = &node[number];
	struct papers papers = host_papers(number);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(20000),
	};
	unsigned int i;
	uint64_t gfn;

	memset(n, 0, sizeof(*n));
	n->number = number;
	n->config = (struct dsm_config){
		.self = (uint8_t)number, .nr_hosts = HOSTS,
		.transport = DSM_TRANSPORT_TCP, .credits = 32, .queue = 1024,
		.strangers = 4, .opening_ms = 10000, .question_ms = question_ms,
		.deadline_ms = 60000, .rekey_records = 1 << 20,
		.clock_drift_ppm = 200, .clock_error_us = error_us,
	};
	snprintf(n->config.ca, DSM_CONFIG_PATH, "%s", rig_file("ca.pem"));
	snprintf(n->config.certificate, DSM_CONFIG_PATH, "%s%u.pem", rig_file(""), number);
	snprintf(n->config.key, DSM_CONFIG_PATH, "%s%u.key", rig_file(""), number);
	snprintf(n->socket, sizeof(n->socket), "%s%u.sock", rig_file(""), number);
	papers_write(&papers, n->config.certificate, n->config.key, 0600);
	papers_free(&papers);
	for (i = 0; i < HOSTS; i++) {
		struct dsm_config_host *host = &n->config.host[i];

		host->used = true;
		snprintf(host->name, sizeof(host->name), "%s", names[i]);
		snprintf(host->certificate_names[0], DSM_CONFIG_NAME, "%s", host_names[i]);
		host->nr_names = 1;
		memcpy(&host->address, &address, sizeof(address));
	}
	n->description = (struct dsm_description){
		.name = "vm", .uuid = "fifteen letters", .number = 1, .build = number,
		.domid = number ? 0 : 1, .nr_vcpus = VCPUS, .frames = number ? 64 : 0,
		.nr_ranges = 3, .range = { range[0], range[1], range[2] },
		.vnode = { 0, 1, 2 }, .detached = { false, true, true }, .elastic = true,
		.lenders = all_ask ? 0 : 1 << 1 | 1 << 2, .lease_ns = 200000, .token_ns = 5000000, .retry_ns = 50000,
		.pin_ns = 20000000, .keepalive_ms = 10000,
	};
	played_init(&n->xen, PAGES, VCPUS, 4, n->description.frames);
	n->xen.host_frames = 4000;
	n->xen.limit = number ? dsm_description_limit(&n->description, number) : 0;
	for (gfn = 0; gfn < UNIT; gfn++) {
		n->xen.page[gfn].state = number ? DSM_XEN_STATE_I : DSM_XEN_STATE_M;
		n->xen.page[gfn].elsewhere = number;
	}
}

static double patience;			/* s for "node"; 0: as ever */
static unsigned int step;		/* frames; 0: 8 MiB are less than one */

/* vCPU 1 has its place at beta, and is at home. */
static void give_place(struct node *n)
{
	n->config.question_ms = 20;
	n->description.nr_places = 1;
	n->description.place[0] = (struct dsm_place){ 1, 1, 1, false };
	n->description.places[1] = 1;
	n->description.slow = 1;
	n->xen.self = n->number;
	n->xen.slice = n->number;
	n->xen.nr_slices = HOSTS;
	n->xen.elsewhere[0] = n->xen.elsewhere[1] = n->number;
	if (n->number)
		return;
	n->xen.started = true;
	n->xen.time = (struct dsm_vcpu_msg){ .number = 5, .sipi = 3, .word = { 1, 2, 3 } };
	memset(n->xen.policy, 0xc0, sizeof(n->xen.policy));
}

static void start(unsigned int number)
{
	struct node *n = &node[number];
	struct dsm_worker_params p = {
		.loop = loop, .config = &n->config, .description = &n->description,
		.xen = &n->xen.xen, .calls = &worker_calls, .context = n,
		.socket = n->socket, .seed = dice(), .adjust = adjust, .patience = patience,
		.step = step,
	};
	char text[DSM_ENGINE_TEXT];
	int rc = dsm_worker_create(&p, &n->worker, text);

	CHECK(!rc, "%d %s", rc, text);
	CHECK(n->state == DSM_WORKER_RUNNING, "nobody is waited for");
	n->port = dsm_transport_port(dsm_worker_transport(n->worker));
}

static void stop(unsigned int number)
{
	dsm_worker_destroy(node[number].worker);
	node[number].worker = NULL;
}

/* ---- The guest ---- */

/* A page that the guest may use: of its own, or of a vnode that it was given. */
static uint64_t some_page(void)
{
	unsigned int host = dice_below(HOSTS);

	if (!host || !has[host])
		return dice_below(OWN);
	/* A few that are used again and again, and all others. */
	return range[host].start + (dice_below(2) ? dice_below(8) :
				    dice_below((uint32_t)has[host]));
}

static void try_instruction(unsigned int vcpu)
{
	struct node *n = &node[runs_at[vcpu]];
	uint64_t *at, gfn;

	if (n->xen.vcpu[vcpu].waits || n->xen.pauses)
		return;
	if (!run[vcpu].set) {
		if (stopping)
			return;
		run[vcpu].set = true;
		run[vcpu].gfn = some_page();
		run[vcpu].word = dice_below(8);
		run[vcpu].want = dice_below(2) ? DSM_XEN_WANT_S : DSM_XEN_WANT_M;
		run[vcpu].rip = dice();
	}
	gfn = run[vcpu].gfn;
	switch (played_use(&n->xen, vcpu, gfn, run[vcpu].want, run[vcpu].rip)) {
	case PLAYED_MISS:
		return;
	case PLAYED_HOLE:
		/* It was given back meanwhile. */
		CHECK(gfn >= UNIT, "a hole at home");
		holes++;
		break;
	case PLAYED_ACCESS:
		CHECK(false, "no page stays at its home here");
		break;
	case PLAYED_DONE:
		at = &n->xen.page[gfn].word[run[vcpu].word];
		CHECK(*at == last_written[gfn][run[vcpu].word], "an old word of gfn %" PRIu64
		      ": %" PRIu64 " and not %" PRIu64, gfn, *at, last_written[gfn][run[vcpu].word]);
		checked++;
		if (run[vcpu].want == DSM_XEN_WANT_M)
			*at = last_written[gfn][run[vcpu].word] = ++written;
	}
	run[vcpu].set = false;
}

static void on_vcpus(struct ev_loop *l, ev_idle *idle, int events)
{
	(void)l;
	(void)idle;
	(void)events;
	if (node[0].xen.crashes)
		return;
	for (unsigned int i = 0; i < VCPUS; i++)
		try_instruction(i);
	if (node[0].xen.in_ring)
		dsm_worker_kick(node[0].worker);
}

static void play(uint64_t instructions)
{
	uint64_t end = checked + instructions;

	UNTIL(checked >= end || node[0].xen.crashes);
}

/* No vCPU is in the middle of anything. */
static void rest(void)
{
	stopping = true;
	UNTIL(!played_waits(&node[0].xen) && !run[0].set && !run[1].set);
}

/* ---- Commands ---- */

static int ask(unsigned int number, const char *line)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, node[number].socket);
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)), "%s", strerror(errno));
	CHECK(write(fd, line, strlen(line)) == (ssize_t)strlen(line) && write(fd, "\n", 1) == 1, "write");
	return fd;
}

static char *answer(int fd)
{
	static char text[8192];
	size_t have = 0;
	ssize_t n = -1;

	UNTIL((n = read(fd, text + have, sizeof(text) - 1 - have)) >= 0 || errno != EAGAIN);
	for (;;) {
		CHECK(n >= 0, "%s", strerror(errno));
		have += (size_t)n;
		if (!n)
			break;
		UNTIL((n = read(fd, text + have, sizeof(text) - 1 - have)) >= 0 || errno != EAGAIN);
	}
	text[have] = 0;
	close(fd);
	return text;
}

static void told(unsigned int number, const char *line)
{
	char *text = answer(ask(number, line));

	CHECK(!strcmp(text, "ok\n"), "%s: %s: %s", names[number], line, text);
}

static const char *refusal;		/* the last */

static void refused(unsigned int number, const char *line, const char *words)
{
	char *text = answer(ask(number, line)), want[256];

	snprintf(want, sizeof(want), "error: %s", words);
	CHECK(!strncmp(text, want, strlen(want)), "%s: %s: %s, want %s", names[number], line, text, want);
	refusal = text;
}

static void node_is(unsigned int number, unsigned int vnode, uint64_t units, bool pool)
{
	char line[128];

	snprintf(line, sizeof(line), "node %u %" PRIu64 " %u", vnode, units * 2048,
		 pool && units ? POOL * 4 : 0);
	told(number, line);
}

/* Both ends of a connection at once. */
static void joined(unsigned int a, unsigned int b)
{
	char line[64], *text;
	int fd;

	snprintf(line, sizeof(line), "connect %s", names[b]);
	fd = ask(a, line);
	snprintf(line, sizeof(line), "connect %s", names[a]);
	told(b, line);
	text = answer(fd);
	CHECK(!strcmp(text, "ok\n"), "connect: %s", text);
}

static void forget_words(unsigned int host, uint64_t from)
{
	uint64_t gfn;

	for (gfn = range[host].start + from; gfn < range[host].end; gfn++)
		memset(last_written[gfn], 0, sizeof(last_written[gfn]));
}

/* As libxl does: memory there, then here, then the guest. */
static void attach(unsigned int host, uint64_t units)
{
	node_is(host, host, units, false);
	node_is(0, host, units, true);
	has[host] = units * UNIT;
}

/* A range of the home's is being emptied, says its dsmd. */
static bool leaving(void)
{
	struct dsm_engine_counts counts;

	dsm_engine_get_counts(dsm_worker_engine(node[0].worker), &counts);
	return counts.leaving;
}

static void detach(unsigned int host, uint64_t units)
{
	char line[64];

	/* Who does not say it loses nothing but time. */
	if (dice_below(2)) {
		snprintf(line, sizeof(line), "leaving %u %" PRIu64, host, units * 2048);
		told(0, line);
	}
	has[host] = units * UNIT;
	node_is(0, host, units, true);
	node_is(host, host, units, false);
	forget_words(host, units * UNIT);
}

static void left(unsigned int host)
{
	char line[64];

	snprintf(line, sizeof(line), "leave %s", names[host]);
	told(0, line);
	told(host, "leave alpha");
}

static struct json_object *vnode_of(unsigned int number, unsigned int vnode)
{
	char *text = answer(ask(number, "state"));
	struct json_object *all, *list, *one;
	size_t i;

	CHECK(!strncmp(text, "ok\n", 3), "%s", text);
	all = json_tokener_parse(text + 3);
	CHECK(all && json_object_object_get_ex(all, "vnodes", &list), "%s", text);
	for (i = 0; i < json_object_array_length(list); i++) {
		one = json_object_array_get_idx(list, i);
		if (json_object_get_int(json_object_object_get(one, "vnode")) == (int)vnode) {
			json_object_get(one);
			json_object_put(all);
			return one;
		}
	}
	CHECK(false, "no vnode %u in %s", vnode, text);
	return NULL;
}

static uint64_t number_of(unsigned int number, unsigned int vnode, const char *key)
{
	struct json_object *one = vnode_of(number, vnode), *value;
	uint64_t n;

	CHECK(json_object_object_get_ex(one, key, &value), "%s", key);
	n = json_object_get_uint64(value);
	json_object_put(one);
	return n;
}

static void link_is(unsigned int number, unsigned int vnode, const char *link)
{
	struct json_object *one = vnode_of(number, vnode);
	const char *said = json_object_get_string(json_object_object_get(one, "link"));

	CHECK(!strcmp(said, link), "vnode %u: %s, want %s", vnode, said, link);
	json_object_put(one);
}

static void begin(void)
{
	rig_begin();
	memset(last_written, 0, sizeof(last_written));
	memset(has, 0, sizeof(has));
	memset(run, 0, sizeof(run));
	memset(runs_at, 0, sizeof(runs_at));
	written = checked = holes = 0;
	stopping = false;
	for (unsigned int i = 0; i < HOSTS; i++)
		prepare(i);
	for (unsigned int i = 0; i < HOSTS; i++)
		start(i);
	ev_idle_init(&vcpus, on_vcpus);
	ev_idle_start(loop, &vcpus);
}

static void end(void)
{
	ev_idle_stop(loop, &vcpus);
	for (unsigned int i = 0; i < HOSTS; i++)
		if (node[i].worker)
			stop(i);
	rig_end();
}

/* Everything is as it was at the start, but for what the guest wrote at home. */
static void check_all_back(unsigned int host)
{
	uint64_t gfn;

	for (gfn = range[host].start; gfn < range[host].end; gfn++)
		CHECK(node[0].xen.page[gfn].state == DSM_XEN_STATE_HOLE &&
		      !node[0].xen.page[gfn].elsewhere &&
		      (!node[host].worker || node[host].xen.page[gfn].state == DSM_XEN_STATE_HOLE),
		      "gfn %" PRIu64 ": state %u", gfn, node[0].xen.page[gfn].state);
}

/* ---- The cases ---- */

static void one_vnode(const void *argument)
{
	(void)argument;
	/* Steps of which there are several, the last a smaller one. */
	step = 100;
	begin();
	node[0].xen.part = 100;
	node[1].xen.part = 100;
	play(1000);
	link_is(0, 1, "down");
	joined(0, 1);
	link_is(0, 1, "down");
	attach(1, 1);
	link_is(0, 1, "up");
	CHECK(node[0].xen.pool == POOL && node[1].xen.host_frames == 4000 - UNIT, "%u in the pool",
	      node[0].xen.pool);
	play(5000);
	CHECK(dsm_worker_stats(node[0].worker)->peer[1].transport.sent_pages > 10, "pages went there");
	CHECK(number_of(0, 1, "size_kib") == 2048, "size");
	CHECK(number_of(0, 1, "pages_modified") > 0 && number_of(0, 1, "median_ns") > 0 &&
	      number_of(0, 1, "p99_ns") >= number_of(0, 1, "median_ns"), "state");
	CHECK(number_of(0, 1, "pages_modified") + number_of(0, 1, "pages_shared") +
	      number_of(0, 1, "pages_home") == UNIT, "all pages");
	UNTIL(number_of(0, 1, "faults_per_second"));
	attach(1, 2);
	play(5000);
	told(0, "leaving 1 2048");
	CHECK(leaving(), "it says so");
	detach(1, 1);
	CHECK(!leaving(), "what is behind has gone");
	/* One that is called off: by its size, or with the next that is asked. */
	told(0, "leaving 1 0");
	CHECK(leaving(), "it says so");
	told(0, "leaving 1 2048");
	CHECK(!leaving(), "nothing leaves");
	told(0, "leaving 1 0");
	node_is(0, 1, 1, true);
	CHECK(!leaving(), "it stays");
	play(3000);
	detach(1, 0);
	check_all_back(1);
	link_is(0, 1, "down");
	CHECK(!node[0].xen.pool && node[0].xen.host_frames == 4000 &&
	      node[1].xen.host_frames == 4000, "%u frames of the pool, %u and %u free", node[0].xen.pool,
	      node[0].xen.host_frames, node[1].xen.host_frames);
	CHECK(!number_of(0, 1, "pages_modified") && !number_of(0, 1, "pages_shared"), "none here");
	left(1);
	play(1000);
	rest();
	CHECK(node[0].state == DSM_WORKER_RUNNING && node[1].state == DSM_WORKER_RUNNING, "both run");
	end();
	step = 0;
}

/* What is refused at once, and changes nothing. */
static const struct refusal {
	unsigned int number;
	const char *line, *words;
} refusals[] = {
	{ 0, "node", "no such command" },
	{ 0, "node 1", "internal want: node VNODE SIZE_KIB POOL_KIB" },
	{ 0, "node 1 2048", "internal want: " },
	{ 0, "node 1 2048 1024 7", "internal want: " },
	{ 0, "node 1 2048 1024 ", "internal want: " },
	{ 0, "node 1 2048  1024", "internal want: " },
	{ 0, "node 1 -2048 1024", "internal want: " },
	{ 0, "node 1 +2048 1024", "internal want: " },
	{ 0, "node 1 2048.0 1024", "internal want: " },
	{ 0, "node 1 0x800 1024", "internal want: " },
	{ 0, "node 1 2048 99999999999999999999", "internal want: " },
	{ 0, "node 0 2048 1024", "sizes vnode 0 has no memory that is attached" },
	{ 0, "node 3 2048 1024", "sizes vnode 3 has no memory that is attached" },
	{ 0, "node 1 1024 1024", "sizes vnode 1: 1024 KiB: it has 0 to 4096 KiB, a multiple of 2048" },
	{ 0, "node 1 6144 1024", "sizes vnode 1: 6144 KiB: it has 0 to 4096 KiB" },
	{ 0, "node 1 2048 0", "sizes vnode 1: 2048 KiB with a pool of 0 KiB" },
	{ 0, "node 1 0 1024", "sizes vnode 1: 0 KiB with a pool of 1024 KiB" },
	{ 0, "node 1 2048 252", "sizes vnode 1: a pool of 252 KiB: want 256 KiB or more, 32 pages for each of 2 vCPUs" },
	{ 0, "node 1 2048 1025", "sizes vnode 1: a pool of 1025 KiB" },
	{ 0, "node 1 2048 99999999999999", "sizes vnode 1: a pool of 99999999999999 KiB" },
	{ 0, "node 1 2048 1024", "unreachable vnode 1: host beta is not connected" },
	{ 0, "node 1 2048 16384", "memory-here vnode 1: host alpha has 16000 KiB of free memory, 16384 KiB are needed, short by 384 KiB" },
	{ 2, "node 2 2048 0", "memory-there vnode 2: host gamma has 2044 KiB of free memory, 2048 KiB are needed, short by 4 KiB" },
	{ 0, "leaving 1", "internal want: leaving VNODE SIZE_KIB" },
	{ 0, "leaving 1 0 0", "internal want: leaving VNODE SIZE_KIB" },
	{ 0, "leaving 3 0", "sizes vnode 3: 0 KiB: no vnode of another host in one range" },
	{ 0, "leaving 0 0", "sizes vnode 0: 0 KiB: no vnode of another host" },
	{ 1, "leaving 1 0", "sizes vnode 1: 0 KiB: no vnode of another host" },
	{ 0, "leaving 1 6144", "sizes vnode 1: 6144 KiB: " },
	{ 0, "connect", "no such command" },
	{ 0, "connect delta", "unknown-host no host \"delta\" in dsm.toml; others than this one are: beta, gamma" },
	{ 1, "connect beta", "own-host beta is this host" },
	{ 0, "leave delta", "unknown-host " },
	{ 0, "state now", "no such command" },
};

static void refusing(const void *argument)
{
	const struct refusal *r;
	unsigned int i;

	(void)argument;
	begin();
	node[2].xen.host_frames = 511;
	for (r = refusals; r < refusals + NR(refusals); r++)
		refused(r->number, r->line, r->words);
	node[0].xen.limit_kib = 1000 + 1023;
	refused(0, "node 1 2048 1024", "memory-here vnode 1: the limit of the domain on alpha leaves 1023 KiB (it has 1000 of 2023 KiB), 1024 KiB are needed, short by 1 KiB");
	node[0].xen.limit_kib = 0;
	for (i = 1; i < HOSTS; i++)
		check_all_back(i);
	CHECK(!node[0].xen.pool, "the pool");
	/* What there is to do is nothing. */
	told(0, "node 1 0 0");
	told(1, "node 1 0 0");
	told(0, "leave beta");
	/* What is attached stays so: other sizes of the pool, and an end. */
	joined(0, 1);
	told(0, "connect beta");
	attach(1, 1);
	told(0, "node 1 2048 1024");
	refused(0, "node 1 2048 2048", "sizes vnode 1: a pool of 2048 KiB, and it is attached with 1024 KiB");
	refused(0, "leave beta", "in-use host beta: 2048 KiB are attached");
	refused(1, "leave alpha", "in-use host alpha: 2048 KiB are attached");
	refused(1, "leave", "this host is the home of pages");
	play(1000);
	rest();
	end();
}

/* So many of a vnode's pages are here, in this state, by Xen's word. */
static uint64_t nr_here(unsigned int vnode, unsigned int state)
{
	uint64_t gfn, nr = 0;

	for (gfn = range[vnode].start; gfn < range[vnode].start + has[vnode]; gfn++)
		nr += node[0].xen.page[gfn].state == state;
	return nr;
}

/* What `xl vnode-list` shows: each number is the one that it is called. */
static void what_a_vnode_says(const void *argument)
{
	const struct dsm_histogram *fault;
	uint64_t faults;

	(void)argument;
	begin();
	joined(0, 1);
	attach(1, 1);
	play(5000);
	UNTIL(number_of(0, 1, "faults_per_second"));
	rest();
	faults = dsm_engine_range(dsm_worker_engine(node[0].worker), 1)->faults;
	CHECK(faults > 10, "%" PRIu64 " faults", faults);
	UNTIL(!number_of(0, 1, "faults_per_second"));
	/* No page is on its way any more. */
	UNTIL(number_of(0, 1, "pages_home") ==
	      UNIT - nr_here(1, DSM_XEN_STATE_M) - nr_here(1, DSM_XEN_STATE_S));
	CHECK(number_of(0, 1, "pages_modified") == nr_here(1, DSM_XEN_STATE_M) &&
	      number_of(0, 1, "pages_shared") == nr_here(1, DSM_XEN_STATE_S), "%" PRIu64 " and %" PRIu64 " are here",
	      nr_here(1, DSM_XEN_STATE_M), nr_here(1, DSM_XEN_STATE_S));
	CHECK(nr_here(1, DSM_XEN_STATE_S) && nr_here(1, DSM_XEN_STATE_M) != nr_here(1, DSM_XEN_STATE_S),
	      "they differ");
	fault = &dsm_engine_range(dsm_worker_engine(node[0].worker), 1)->fault;
	CHECK(fault->count == faults, "%" PRIu64 " of %" PRIu64 " faults have a time", fault->count, faults);
	CHECK(dsm_histogram_quantile(fault, 500) < dsm_histogram_quantile(fault, 990), "they differ");
	CHECK(number_of(0, 1, "median_ns") == dsm_histogram_quantile(fault, 500), "median");
	CHECK(number_of(0, 1, "p99_ns") == dsm_histogram_quantile(fault, 990), "99th percentile");
	detach(1, 0);
	left(1);
	end();
}

/* A host without anything is lost, and comes back as another process, and as itself. */
static void lost_without_harm(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin();
	joined(0, 1);
	for (i = 0; i < 3; i++) {
		stop(1);
		UNTIL(!dsm_worker_stats(node[0].worker)->peer[1].up);
		link_is(0, 1, "lost");
		CHECK(node[0].state == DSM_WORKER_RUNNING, "%s", node[0].why);
		play(200);
		prepare(1);
		start(1);
		joined(0, 1);
		attach(1, 1);
		play(1000);
		detach(1, 0);
		check_all_back(1);
	}
	/* The same two ends, later epochs. */
	for (i = 0; i < 3; i++) {
		left(1);
		joined(0, 1);
		attach(1, 2);
		play(1000);
		detach(1, 0);
	}
	/* Cut, and neither has anything: both go on. */
	dsm_transport_fail(dsm_worker_transport(node[0].worker), 1, DSM_R_NONE);
	UNTIL(!dsm_worker_stats(node[1].worker)->peer[0].up);
	CHECK(node[1].state == DSM_WORKER_RUNNING, "%s", node[1].why);
	rest();
	end();
}

/*
 * The guest is destroyed with its memory attached: Xen refuses whatever the home's
 * dsmd does next, or dsmd-host tells it to forget the VM.  Nobody calls that a failure.
 */
static void destroyed(const void *argument)
{
	bool forgotten;

	(void)argument;
	for (forgotten = false;; forgotten = true) {
		begin();
		joined(0, 1);
		attach(1, 1);
		play(500);
		node[0].xen.ended = true;
		if (forgotten) {
			told(0, "forget force");
			CHECK(node[0].state == DSM_WORKER_OVER, "at once");
		}
		UNTIL(node[0].state == DSM_WORKER_OVER && node[1].state == DSM_WORKER_OVER);
		CHECK(!strcmp(node[0].why, "its domain has ended"), "%s", node[0].why);
		CHECK(!strcmp(node[1].why, "host alpha says so"), "%s", node[1].why);
		CHECK(!node[0].xen.crashes && !node[1].xen.crashes, "nothing crashes");
		CHECK(node[2].state == DSM_WORKER_RUNNING, "who is not connected");
		refused(0, "node 1 0 0", "internal the VM has ended: its domain has ended");
		refused(1, "fail because", "the VM has ended already");
		told(1, "forget");
		end();
		if (forgotten)
			break;
	}
}

/* One that is no home says that the VM has ended: it is lost, with what it has. */
static void destroyed_elsewhere(const void *argument)
{
	(void)argument;
	begin();
	joined(0, 1);
	attach(1, 1);
	play(500);
	node[1].xen.ended = true;
	dsm_engine_fail(dsm_worker_engine(node[1].worker), "its slice was destroyed");
	UNTIL(node[0].state == DSM_WORKER_FAILED);
	CHECK(node[1].state == DSM_WORKER_OVER, "%u", node[1].state);
	CHECK(strstr(node[0].why, "host beta is lost (the peer says that the VM has ended)"), "%s",
	      node[0].why);
	CHECK(node[0].xen.crashes == 1, "the domain crashes");
	end();
}

/* With something attached the VM fails, as ever; who asks is told why. */
static void lost_with_harm(const void *argument)
{
	(void)argument;
	begin();
	joined(0, 1);
	joined(0, 2);
	attach(1, 1);
	attach(2, 1);
	play(500);
	stop(2);
	UNTIL(node[0].state == DSM_WORKER_FAILED && node[1].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, "host gamma is lost (") && strstr(node[0].why, "of its own 512 pages"),
	      "%s", node[0].why);
	CHECK(node[0].xen.crashes == 1, "the domain crashes");
	refused(0, "node 1 0 0", "internal the VM has failed: host gamma is lost");
	refused(0, "connect gamma", "internal the VM has failed: ");
	refused(0, "leave beta", "internal the VM has failed: ");
	link_is(0, 2, "lost");
	end();
}

/* It is lost while a request is at work: the answer comes. */
static void lost_meanwhile(const void *argument)
{
	char *text;
	int fd;

	(void)argument;
	begin();
	joined(0, 1);
	attach(1, 1);
	play(500);
	/* A page that is in use can't go. */
	has[1] = 0;
	UNTIL(!run[0].set && !run[1].set);
	for (uint64_t gfn = UNIT; gfn < 2 * UNIT; gfn++)
		node[0].xen.page[gfn].pinned = true;
	fd = ask(0, "node 1 0 0");
	play(200);
	refused(0, "node 1 0 0", "busy vnode 1 is on its way to 0 KiB");
	refused(0, "leave beta", "busy vnode 1 is on its way to another size");
	stop(1);
	text = answer(fd);
	CHECK(!strncmp(text, "error: internal the VM has failed: host beta is lost", 52), "%s", text);
	end();
}

/* Memory is attached, and nobody has used it: who has it can't go all the same. */
static void lost_and_not_used(const void *argument)
{
	(void)argument;
	begin();
	stopping = true;
	joined(0, 1);
	attach(1, 1);
	stop(1);
	UNTIL(node[0].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, "host beta is lost ("), "%s", node[0].why);
	end();
}

/* A page in use can't go: after a while all is as it was before, and later it goes. */
static void too_long(const void *argument)
{
	uint64_t gfn;

	(void)argument;
	patience = 2.;
	begin();
	patience = 0.;
	joined(0, 1);
	attach(1, 1);
	play(500);
	has[1] = 0;
	UNTIL(!run[0].set && !run[1].set);
	for (gfn = UNIT; gfn < 2 * UNIT; gfn++)
		node[0].xen.page[gfn].pinned = true;
	CHECK(dsm_engine_guests(dsm_worker_engine(node[0].worker)), "nothing is here");
	refused(0, "node 1 0 0", "in-use vnode 1: ");
	CHECK(strstr(node[0].last_log, "pages behind 0 KiB are in use still, after 2 s"), "%s",
	      node[0].last_log);
	CHECK(number_of(0, 1, "size_kib") == 2048, "size");
	for (gfn = UNIT; gfn < 2 * UNIT; gfn++)
		node[0].xen.page[gfn].pinned = false;
	has[1] = UNIT;
	play(500);
	detach(1, 0);
	check_all_back(1);
	rest();
	end();
}

/* What is lent is all that Xen lets the slice have: it is the last who refuses what a home asks for. */
static void limits(const void *argument)
{
	struct played_xen *there;
	uint64_t own;

	(void)argument;
	begin();
	there = &node[1].xen;
	own = there->limit;
	CHECK(own == 64 + 256, "the pool, and what Xen needs: %" PRIu64, own);
	joined(0, 1);
	attach(1, 2);
	CHECK(there->limit == own + 2 * UNIT, "4 MiB: %" PRIu64, there->limit);
	/* A page that the guest has freed may come again, and none more. */
	CHECK(there->populated == 2 * UNIT && !node[0].xen.limit, "the home's is the toolstack's");
	detach(1, 1);
	CHECK(there->limit == own + UNIT, "2 MiB: %" PRIu64, there->limit);
	/* What can't be set is undone, and comes with the next try. */
	there->break_limit = -ESRCH;
	refused(1, "node 1 4096 0", "internal vnode 1: the limit of the domain at gfn 0x400: No such process");
	CHECK(there->limit == own + UNIT && there->populated == UNIT, "as before");
	there->break_limit = 0;
	attach(1, 2);
	/* Half of it, and nothing more: Xen has the old limit again. */
	detach(1, 1);
	there->part = 100;
	there->break_memory = -EIO;
	there->host_frames = 150;
	refused(1, "node 1 4096 0", "internal vnode 1: memory of the host at gfn 0x");
	CHECK(there->limit == own + UNIT && there->populated == UNIT, "undone: %" PRIu64, there->limit);
	there->break_memory = 0;
	there->host_frames = 4000 - UNIT;
	detach(1, 0);
	CHECK(there->limit == own, "nothing: %" PRIu64, there->limit);
	check_all_back(1);
	rest();
	end();
}

/* Each step fails once: what was before is again, and the next try succeeds. */
static const struct step {
	const char *name;
	unsigned int number;
	bool smaller;
	size_t what;
	int error;
	const char *words;
} steps[] = {
#define BREAK(call)	offsetof(struct played_xen, break_ ## call)
	{ "memory there", 1, false, BREAK(fill), -EPERM, "internal vnode 1: memory at gfn 0x400: Operation not permitted" },
	{ "no memory there", 1, false, BREAK(fill), -ENOMEM, "memory-there vnode 1: host beta has 13952 KiB of free memory, 2048 KiB are needed, short by 0 KiB" },
	{ "AWAY", 0, false, BREAK(away), -ERANGE, "internal vnode 1: AWAY at gfn 0x400: Numerical result out of range" },
	{ "no hole", 0, false, BREAK(away), -EEXIST, "in-use vnode 1: the guest has memory of this host between gfn 0x400 and 0x600" },
	{ "DROP_RANGE", 0, true, BREAK(drop), -EIO, "internal vnode 1: DROP_RANGE at gfn 0x400: Input/output error" },
	{ "the pool", 0, true, BREAK(pool_del), -EBUSY, "internal vnode 1: frames of the pool at gfn 0x200: Device or resource busy" },
	{ "memory back", 1, true, BREAK(empty), -EIO, "internal vnode 1: memory back to the host at gfn 0x400: Input/output error" },
};

static void one_step_fails(const void *argument)
{
	const struct step *s = argument;
	int *call = (int *)((char *)&node[s->number].xen + s->what);

	begin();
	joined(0, 1);
	attach(1, 1);
	play(500);
	if (s->smaller) {
		has[1] = 0;
		if (s->number)
			node_is(0, 1, 0, true);
		*call = s->error;
		refused(s->number, "node 1 0 0", s->words);
		CHECK(number_of(s->number, 1, "size_kib") == 2048, "%llu KiB", (unsigned long long)
		      number_of(s->number, 1, "size_kib"));
		*call = 0;
		if (!s->number) {
			CHECK(node[0].xen.page[UNIT].state != DSM_XEN_STATE_HOLE, "undone");
			has[1] = UNIT;
			play(500);
		}
		detach(1, 0);
		check_all_back(1);
	} else {
		if (!s->number)
			node_is(1, 1, 2, false);
		*call = s->error;
		refused(s->number, s->number ? "node 1 4096 0" : "node 1 4096 1024", s->words);
		CHECK(number_of(s->number, 1, "size_kib") == 2048, "%llu KiB", (unsigned long long)
		      number_of(s->number, 1, "size_kib"));
		*call = 0;
		play(500);
		attach(1, 2);
		play(500);
	}
	rest();
	end();
}

/* Memory there ends in the middle; the guest has filled a hole here. */
static void undone(const void *argument)
{
	(void)argument;
	begin();
	node[1].xen.part = 100;
	node[1].xen.host_frames = 2 * UNIT;
	joined(0, 1);
	attach(1, 1);
	/* Somebody else takes it after it was looked for. */
	CHECK(node[1].xen.host_frames == UNIT, "%u", node[1].xen.host_frames);
	{
		int fd = ask(1, "node 1 4096 0");

		UNTIL(node[1].xen.host_frames < UNIT);
		node[1].xen.host_frames -= 300;
		CHECK(strstr(answer(fd), "error: memory-there vnode 1: host beta has "), "words");
	}
	CHECK(node[1].xen.host_frames == UNIT - 300 && number_of(1, 1, "size_kib") == 2048, "%u frames",
	      node[1].xen.host_frames);
	node[1].xen.host_frames = UNIT;
	node_is(1, 1, 2, false);
	CHECK(played_guest_populates(&node[0].xen, 3 * UNIT - 1), "a hole");
	refused(0, "node 1 4096 1024", "in-use vnode 1: the guest has memory of this host between gfn 0x400 and 0x600");
	CHECK(node[0].xen.page[2 * UNIT].state == DSM_XEN_STATE_HOLE, "undone");
	CHECK(played_guest_frees(&node[0].xen, 3 * UNIT - 1), "free it");
	attach(1, 2);
	play(1000);
	detach(1, 0);
	check_all_back(1);
	rest();
	end();
}

/* The last of several steps fails: what those before have done is undone, too. */
static void undone_later(const void *argument)
{
	(void)argument;
	step = 100;
	begin();
	joined(0, 1);
	attach(1, 1);
	node_is(1, 1, 2, false);
	CHECK(played_guest_populates(&node[0].xen, 3 * UNIT - 1), "a hole");
	refused(0, "node 1 4096 1024", "in-use vnode 1: the guest has memory of this host between gfn 0x5f4 and 0x600");
	CHECK(node[0].xen.page[2 * UNIT].state == DSM_XEN_STATE_HOLE &&
	      node[0].xen.page[3 * UNIT - 100].state == DSM_XEN_STATE_HOLE &&
	      node[0].xen.page[2 * UNIT - 1].state != DSM_XEN_STATE_HOLE, "undone");
	CHECK(number_of(0, 1, "size_kib") == 2048 && node[0].xen.pool <= POOL, "as before");
	CHECK(played_guest_frees(&node[0].xen, 3 * UNIT - 1), "free it");
	attach(1, 2);
	play(500);
	detach(1, 0);
	check_all_back(1);
	rest();
	end();
	step = 0;
}

/* Nobody comes: words and numbers; then somebody does. */
static void nobody_comes(const void *argument)
{
	(void)argument;
	begin();
	node[0].config.opening_ms = 300;
	node[1].config.opening_ms = 300;
	refused(0, "connect beta", "unreachable host beta did not connect to this one within 300 ms");
	/* Refused by the other end, which waits for nobody: it listens. */
	refused(1, "connect alpha", "unreachable host alpha at 127.0.0.1, port ");
	stop(0);
	refused(1, "connect alpha", "no-dsmd-there host alpha at 127.0.0.1, port ");
	play(0);
	end();
}

/* Beta's tools write to a page of the home. */
static void take(unsigned int host, uint64_t gfn)
{
	UNTIL(played_use(&node[host].xen, NO_VCPU, gfn, DSM_XEN_WANT_M, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[host].worker), false));
}

/*
 * A page that is in use there comes home after each look, but for page 5.
 * @most: s, for all of it; 0: as ever.
 * Return: ms until it was refused.
 */
static unsigned int refused_after(double most)
{
	static const uint64_t pinned[] = { 6, 4 };
	struct played_xen *xen = &node[1].xen;
	unsigned int i, ms;
	const char *text;
	int fd;

	for (i = 0; i < NR(pinned); i++) {
		take(1, pinned[i]);
		xen->page[pinned[i]].pinned = true;
	}
	node[0].config.opening_ms = 800;
	node[0].worker->p.patience = most;
	fd = ask(0, "leave beta");
	for (i = 0; i < NR(pinned); i++) {
		xen->page[pinned[i]].pinned = false;
		UNTIL(node[0].worker->peer[1].shared == NR(pinned) - i);
		/* Who asks again has what time is left. */
		if (i)
			continue;
		close(fd);
		fd = ask(0, "leave beta");
	}
	text = answer(fd);
	node[0].worker->p.patience = 0.;
	CHECK(sscanf(text, "error: in-use host beta: 1 pages are shared with it or asked for still, after %u ms\n",
		     &ms) == 1, "%s", text);
	return ms;
}

/* Somebody at the other host has pages of the home: they go back before the end. */
static void pages_of_the_home(const void *argument)
{
	struct played_xen *xen = &node[1].xen;
	unsigned int ms;
	char *text;
	int fd;

	(void)argument;
	all_ask = true;
	begin();
	joined(0, 1);
	stopping = true;
	rest();
	node[0].xen.page[5].word[3] = 77;
	UNTIL(played_use(xen, NO_VCPU, 5, DSM_XEN_WANT_M, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[1].worker), false));
	UNTIL(played_use(xen, NO_VCPU, 6, DSM_XEN_WANT_S, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[1].worker), false));
	CHECK(xen->page[5].word[3] == 77, "its bytes");
	xen->page[5].word[3] = 78;
	fd = ask(0, "leave beta");
	text = answer(ask(1, "leave alpha"));
	CHECK(!strcmp(text, "ok\n"), "%s", text);
	CHECK(!strcmp(answer(fd), "ok\n"), "leave");
	CHECK(node[0].xen.page[5].state == DSM_XEN_STATE_M && node[0].xen.page[5].word[3] == 78,
	      "it came home");
	CHECK(xen->page[5].state == DSM_XEN_STATE_I && xen->page[6].state == DSM_XEN_STATE_I, "it went");
	/* And it can have them again. */
	joined(0, 1);
	UNTIL(played_use(xen, NO_VCPU, 5, DSM_XEN_WANT_S, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[1].worker), false));
	CHECK(xen->page[5].word[3] == 78, "its bytes");
	/* The home alone: it calls them, and ends it when the other has not. */
	node[0].config.opening_ms = 300;
	told(0, "leave beta");
	CHECK(xen->page[5].state == DSM_XEN_STATE_I && node[1].state == DSM_WORKER_RUNNING, "%s", node[1].why);
	told(1, "leave alpha");
	node[0].config.opening_ms = 10000;
	joined(0, 1);
	node[0].config.opening_ms = 300;
	node[0].worker->p.patience = 5.;
	/* While it is in use there it stays, and so does the connection. */
	UNTIL(played_use(xen, NO_VCPU, 5, DSM_XEN_WANT_M, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[1].worker), false));
	xen->page[5].pinned = true;
	fd = ask(0, "leave beta");
	refused(0, "leave beta", "busy a leave of host beta is at work");
	refused(0, "connect beta", "busy a leave of host beta is at work");
	refused(0, "node 1 2048 1024", "busy host beta is leaving: 1 pages are shared with it or asked for still");
	refused(0, "evacuate", "the memory of a vnode is being changed, or a host leaves");
	text = answer(fd);
	CHECK(!strcmp(text, "error: in-use host beta: 1 pages are shared with it or asked for still, after 300 ms\n"),
	      "%s", text);
	CHECK(node[0].state == DSM_WORKER_RUNNING && xen->page[5].state == DSM_XEN_STATE_M, "it stays");
	/* As long as they become fewer it is waited for, and not for ever. */
	ms = refused_after(0.);
	CHECK(ms == 2400, "%u ms", ms);
	ms = refused_after(2.);
	CHECK(ms >= 1600 && ms <= 2001, "%u ms", ms);
	node[0].config.opening_ms = 300;
	/* The other end can't go either: then it has its pages still, asks for more, and calls nothing home. */
	node[1].config.opening_ms = 300;
	refused(1, "leave alpha", "in-use host alpha: 1 pages are shared with it or asked for still, after 300 ms");
	UNTIL(played_use(xen, NO_VCPU, 7, DSM_XEN_WANT_S, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[1].worker), false));
	CHECK(!dsm_engine_is_evacuating(dsm_worker_engine(node[0].worker)) &&
	      !dsm_engine_is_evacuating(dsm_worker_engine(node[1].worker)), "it goes on");
	xen->page[5].pinned = false;
	/* With a copy there it can't be lost. */
	stop(1);
	UNTIL(node[0].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, "host beta is lost ("), "%s", node[0].why);
	end();
	all_ask = false;
}

/* Who waits for the end of a leave is told when the VM fails. */
static void fails_while_leaving(const void *argument)
{
	struct played_xen *xen = &node[1].xen;
	char *text;
	int fd;

	(void)argument;
	all_ask = true;
	begin();
	joined(0, 1);
	stopping = true;
	rest();
	UNTIL(played_use(xen, NO_VCPU, 5, DSM_XEN_WANT_M, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[1].worker), false));
	xen->page[5].pinned = true;
	fd = ask(0, "leave beta");
	refused(0, "leave beta", "busy a leave of host beta is at work");
	dsm_engine_fail(dsm_worker_engine(node[0].worker), "because");
	text = answer(fd);
	CHECK(!strcmp(text, "error: internal the VM has failed: because\n"), "%s", text);
	end();
	all_ask = false;
}

/* ---- Worlds ---- */

static bool here[HOSTS];		/* connected, as far as was asked */
static uint64_t there[HOSTS];		/* units that host has */

static void come(unsigned int host)
{
	if (!node[host].worker) {
		prepare(host);
		node[host].xen.part = 1 + dice_below(300);
		start(host);
	}
	joined(0, host);
	here[host] = true;
}

static void go(unsigned int host)
{
	if (dice_below(2)) {
		left(host);
	} else {
		stop(host);
		UNTIL(!dsm_worker_stats(node[0].worker)->peer[host].up);
	}
	here[host] = false;
}

static void change(unsigned int host)
{
	uint64_t most = (range[host].end - range[host].start) / UNIT, units = dice_below((uint32_t)most + 1);

	if (units > there[host])
		attach(host, units);
	else if (units < there[host])
		detach(host, units);
	there[host] = units;
}

/* Hosts come, have memory, lose it, go and are lost when they have none. */
static void world(const void *argument)
{
	unsigned int i, host;

	(void)argument;
	step = dice_below(2) ? 1 + dice_below(300) : 0;
	begin();
	memset(here, 0, sizeof(here));
	memset(there, 0, sizeof(there));
	node[0].xen.busy_permille = dice_below(50);
	node[0].xen.part = 1 + dice_below(300);
	for (i = 0; i < 60; i++) {
		host = 1 + dice_below(HOSTS - 1);
		if (!here[host])
			come(host);
		else if (!there[host] && !dice_below(3))
			go(host);
		else
			change(host);
		play(dice_below(400));
		CHECK(node[0].state == DSM_WORKER_RUNNING, "%s", node[0].why);
		CHECK(!dsm_engine_broken_rule(dsm_worker_engine(node[0].worker)), "%s",
		      dsm_engine_broken_rule(dsm_worker_engine(node[0].worker)));
	}
	for (host = 1; host < HOSTS; host++) {
		if (there[host])
			detach(host, 0);
		check_all_back(host);
	}
	CHECK(!node[0].xen.pool, "%u frames in the pool", node[0].xen.pool);
	play(500);
	/* One with something attached is lost, at last. */
	host = 1 + dice_below(HOSTS - 1);
	if (!here[host])
		come(host);
	attach(host, 1);
	play(500);
	stop(host);
	UNTIL(node[0].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, names[host]), "%s", node[0].why);
	end();
}

static void begin_with_place(int policy, bool tsc)
{
	unsigned int i;

	rig_begin();
	for (i = 0; i < HOSTS; i++) {
		prepare(i);
		give_place(&node[i]);
		if (i == 1 && !tsc)
			node[i].xen.tsc_khz = 0;
		node[i].xen.break_policy = i == 1 ? policy : 0;
		start(i);
	}
}

static void end_with_place(void)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		dsm_worker_destroy(node[i].worker);
	rig_end();
}

static void apart(unsigned int a, unsigned int b)
{
	char line[64];
	int fd;

	snprintf(line, sizeof(line), "leave %s", names[b]);
	fd = ask(a, line);
	snprintf(line, sizeof(line), "leave %s", names[a]);
	told(b, line);
	CHECK(!strcmp(answer(fd), "ok\n"), "leave");
}

static void vcpus_come_and_go(const void *argument)
{
	const struct dsm_vcpu_msg event = { .type = DSM_VCPU_EVENT, .vcpu = 1, .flags = DSM_EVENT_NMI };
	unsigned int i;
	char *text;
	int fd;

	(void)argument;
	begin_with_place(0, true);
	CHECK(node[0].xen.time_is_set && !node[0].xen.places && !node[1].xen.places, "its time, and no place");
	refused(0, "place beta 1", "unreachable host beta is not connected");
	refused(0, "place gamma 1", "places vCPU 1 has no place at host gamma");
	refused(0, "place nowhere 1", "unknown-host ");
	refused(0, "place alpha 1", "own-host ");
	for (i = 0; i < 8; i++) {
		static const char *const lists[] = { "x", "1-", "1,1", "2-1", "1,", "512", "-1", "1 2" };
		char line[64];

		snprintf(line, sizeof(line), "place beta %s", lists[i]);
		refused(0, line, "internal want: place HOST VCPUS");
	}
	refused(0, "place beta", "internal want: place HOST VCPUS");
	refused(1, "home 1", "internal it is said at the machine's home, host alpha");
	told(0, "home 1");
	for (i = 0; i < 2; i++) {
		joined(0, 1);
		told(0, "place beta 1");
		CHECK(node[1].xen.started && node[1].xen.time_is_set && !node[1].xen.elsewhere[1] &&
		      node[0].xen.elsewhere[1] && !node[0].xen.pauses, "it is there");
		/* It answers when the home has GO already. */
		UNTIL(!node[1].xen.pauses);
		CHECK(!memcmp(node[1].xen.policy, node[0].xen.policy, sizeof(node[0].xen.policy)), "the policy");
		told(0, "place beta 1");
		text = answer(ask(0, "state"));
		CHECK(strstr(text, "\"vcpus\":[{\"vcpu\":1,\"host\":\"beta\"}]"), "%s", text);
		CHECK(played_says(&node[0].xen, &event), "a full ring");
		dsm_worker_kick(node[0].worker);
		UNTIL(node[1].xen.nr_log == i + 1);
		node_is(1, 1, 1, false);
		node_is(0, 1, 1, true);
		refused(0, "node 1 0 0", "in-use vnode 1: vCPUs run at host beta");
		refused(0, "leave beta", "in-use host beta: ");
		refused(1, "leave alpha", "in-use host alpha: ");
		CHECK(dsm_worker_leave(node[1].worker) == -EBUSY, "nor does it end");
		/* It is up: the answer of another host. */
		node[1].xen.up[1] = true;
		refused(0, "home 1", "vcpu-up vCPU 1 is up, at host beta");
		node[1].xen.up[1] = false;
		/* Who asked is gone before it is done. */
		close(ask(0, "home 1"));
		UNTIL(!node[0].xen.elsewhere[1] && !dsm_engine_is_placing(dsm_worker_engine(node[0].worker)));
		told(0, "home 1");
		text = answer(ask(0, "state"));
		CHECK(strstr(text, "\"vcpus\":[]"), "%s", text);
		node_is(0, 1, 0, true);
		node_is(1, 1, 0, false);
		apart(0, 1);
		for (unsigned int k = 0; k < HOSTS; k++)
			CHECK(node[k].state == DSM_WORKER_RUNNING, "%s: %s", names[k], node[k].why);
	}
	/* A host that is lost without one is none that is missed. */
	joined(0, 1);
	told(0, "place beta 1");
	told(0, "home 1");
	stop(1);
	UNTIL(strstr(node[0].last_log, "beta"));
	run_pending();
	CHECK(node[0].state == DSM_WORKER_RUNNING, "%s", node[0].why);
	prepare(1);
	give_place(&node[1]);
	start(1);
	joined(0, 1);
	fd = ask(0, "place beta 1");
	CHECK(!strcmp(answer(fd), "ok\n"), "anew");
	stop(1);
	UNTIL(node[0].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, "beta") && strstr(node[0].why, "vCPUs 1 ran there"), "%s", node[0].why);
	refused(0, "home 1", "internal the VM has failed");
	end_with_place();
}

static bool says(unsigned int number, const char *line, const char *words)
{
	return strstr(answer(ask(number, line)), words);
}

/* The operator's pause, which Xen at home knows, is beta's as well. */
static void a_pause(const void *argument)
{
	const struct dsm_vcpu_msg call = {
		.type = DSM_VCPU_CALL, .host = 1, .vcpu = 0, .op = 32, .cmd = 9, .word = { 1024 + 5 },
	};
	unsigned int i;
	int fd, other, later;
	char *text, byte;
	double asked;

	(void)argument;
	patience = 2.;
	begin_with_place(0, true);
	refused(1, "follow", "internal it is said at the machine's home, host alpha");
	refused(0, "follow now", "no such command");
	told(0, "follow");
	joined(0, 1);
	told(0, "place beta 1");
	UNTIL(!node[1].xen.pauses);
	CHECK(says(0, "state", "\"paused\":[]") && says(0, "status", "\"paused\":false"), "it runs");
	CHECK(says(1, "status", "\"class_u\":false"), "what ends it, if it uses a device there");
	told(1, "set class_u=1");
	CHECK(says(1, "status", "\"class_u\":true") && says(0, "status", "\"class_u\":false"), "and not any more");
	told(1, "set class_u=0");
	for (i = 0; i < 2; i++) {
		node[0].xen.others = 1;
		told(0, "follow");
		CHECK(node[1].xen.pauses == 1 && !node[0].xen.pauses, "it stands still");
		CHECK(says(0, "state", "\"paused\":[\"beta\"]"), "state");
		CHECK(says(0, "status", "\"paused\":true") && says(1, "status", "\"paused\":true"), "status");
		told(0, "follow");
		node[0].xen.others = 0;
		told(0, "follow");
		CHECK(!node[1].xen.pauses && says(1, "status", "\"paused\":false"), "it goes on");
	}
	/* Nobody asks. */
	node[0].xen.others = 1;
	UNTIL(node[1].xen.pauses == 1 && strstr(node[0].last_log, "the guest is paused"));
	node[0].xen.others = 0;
	UNTIL(!node[1].xen.pauses);
	/* While vCPUs are on their way: whoever asks waits, and not for ever.  No host leaves. */
	joined(0, 2);
	node[1].xen.break_call = -EAGAIN;
	CHECK(played_says(&node[0].xen, &call), "a full ring");
	dsm_worker_kick(node[0].worker);
	UNTIL(node[1].xen.call_tries);
	fd = ask(0, "home 1");
	UNTIL(node[0].xen.pauses && node[1].xen.pauses);
	refused(0, "leave gamma", "busy vCPUs are on their way");
	node[0].xen.others = 1;
	other = ask(0, "follow");
	refused(0, "follow", "busy vCPUs are on their way");
	CHECK(!strcmp(answer(other), "error: busy vCPUs are on their way\n"), "the other one");
	CHECK(strstr(node[0].last_log, "follow: busy vCPUs"), "%s", node[0].last_log);
	/* Who asks later does not put him off. */
	other = ask(0, "follow");
	asked = ev_time();
	UNTIL(ev_time() >= asked + 1.);
	later = ask(0, "follow");
	CHECK(!strcmp(answer(other), "error: busy vCPUs are on their way\n"), "the first one");
	CHECK(read(later, &byte, 1) < 0 && errno == EAGAIN, "his time is not over");
	CHECK(!strcmp(answer(later), "error: busy vCPUs are on their way\n"), "the second one");
	/* All who ask. */
	other = ask(0, "follow");
	later = ask(0, "follow");
	run_pending();
	node[1].xen.break_call = 0;
	text = answer(fd);
	CHECK(!strcmp(text, "ok\n"), "home: %s", text);
	CHECK(!strcmp(answer(other), "ok\n") && node[1].xen.pauses == 1, "then");
	CHECK(!strcmp(answer(later), "ok\n"), "the other one, then");
	/* Its end is the answer. */
	told(0, "place beta 1");
	node[1].xen.break_call = -EAGAIN;
	CHECK(played_says(&node[0].xen, &call), "a full ring");
	dsm_worker_kick(node[0].worker);
	fd = ask(0, "home 1");
	UNTIL(node[0].xen.pauses == 1 && node[1].xen.pauses == 2);
	other = ask(0, "follow");
	run_pending();
	stop(1);
	CHECK(strstr(answer(other), "error: internal the VM has failed"), "it waits");
	CHECK(strstr(answer(fd), "error: "), "home");
	refused(0, "follow", "internal the VM has failed");
	patience = 0.;
	end_with_place();
}

/* The home answers a host so often. */
static void answers(unsigned int number, unsigned int times)
{
	const struct dsm_histogram *h = &node[number].worker->peer[0].round_trip;
	uint64_t until = h->count + times;

	UNTIL(h->count >= until);
	run_pending();
}

/* A host that can't have vCPUs has memory: the VM goes on, and says why not. */
static void not_for_vcpus(const void *argument)
{
	(void)argument;
	begin_with_place(0, false);
	joined(0, 1);
	refused(0, "place beta 1", "not-ready host beta: its TSC and ours can't be one guest's");
	/* Which is said once, however often it answers. */
	answers(1, 3);
	node_is(1, 1, 1, false);
	node_is(0, 1, 1, true);
	CHECK(node[0].state == DSM_WORKER_RUNNING && node[1].state == DSM_WORKER_RUNNING &&
	      !node[1].xen.started, "memory only");
	end_with_place();
	begin_with_place(-EINVAL, true);
	joined(0, 1);
	UNTIL(strstr(node[0].last_log, "it can't have vCPUs"));
	refused(0, "place beta 1", "not-ready host beta: the guest's CPU policy can't be that of that host");
	CHECK(node[0].state == DSM_WORKER_RUNNING && node[1].state == DSM_WORKER_RUNNING, "all the same");
	end_with_place();
}

/* ---- A leave, and what is asked meanwhile ---- */

/* Who asks for what is being done hears of its end, if who asked first has gone. */
static void asked_again(const void *argument)
{
	struct played_xen *xen = &node[1].xen;
	uint64_t until;
	char *text;
	int fd;

	(void)argument;
	all_ask = true;
	begin();
	joined(0, 1);
	stopping = true;
	rest();
	take(1, 5);
	xen->page[5].pinned = true;
	fd = ask(0, "leave beta");
	refused(0, "leave beta", "busy a leave of host beta is at work");
	CHECK(says(0, "status", "\"leaves\":1") && !says(0, "status", "\"leaves\":0"), "beta, and nobody else");
	/* What is so is said, and what is not has to wait. */
	told(0, "node 1 0 0");
	refused(0, "node 1 2048 1024", "busy host beta is leaving: 1 pages are shared with it or asked for still");
	close(fd);
	fd = ask(0, "leave beta");
	told(0, "node 1 0 0");
	xen->page[5].pinned = false;
	told(1, "leave alpha");
	text = answer(fd);
	CHECK(!strcmp(text, "ok\n"), "%s", text);
	CHECK(!says(0, "status", "\"leaves\""), "it has left");
	/* The time for a connection is over, and it stays. */
	node[0].config.opening_ms = 1500;
	joined(0, 1);
	until = dsm_worker_now(NULL) + 1700 * 1000000ull;
	UNTIL(dsm_worker_now(NULL) > until);
	CHECK(dsm_worker_stats(node[0].worker)->peer[1].up, "%s", node[0].last_log);
	/* The first look is not later than the last one may be. */
	take(1, 5);
	xen->page[5].pinned = true;
	node[0].config.opening_ms = 10000;
	node[0].worker->p.patience = .3;
	refused(0, "leave beta", "in-use host beta: 1 pages are shared with it or asked for still, after 300 ms");
	node[0].worker->p.patience = 0.;
	/* Nobody waits for it: the log has it. */
	node[0].last_log[0] = 0;
	node[0].config.opening_ms = 300;
	close(ask(0, "leave beta"));
	UNTIL(strstr(node[0].last_log, "leave: in-use host beta: 1 pages are shared with it"));
	end();
	all_ask = false;
}

/*
 * Beta is told that this is the end, as far as alpha knows: it does not say so, too.  What it
 * asked for meanwhile is no reason to stay.
 */
static void leave_without_an_end(const void *argument)
{
	unsigned int ms;

	(void)argument;
	all_ask = true;
	begin();
	joined(0, 1);
	stopping = true;
	rest();
	take(1, 5);
	node[1].xen.page[5].pinned = true;
	node[0].config.opening_ms = 300;
	node[0].worker->p.patience = 1.;
	node[0].worker->peer[1].closing = true;
	refused(0, "leave beta", "unreachable host beta: its end of the connection has not come, after ");
	CHECK(sscanf(strstr(refusal, "after "), "after %u ms", &ms) == 1 && ms > 3000 && ms <= 4001, "%s", refusal);
	CHECK(strstr(node[0].last_log, "leave: unreachable host beta: its end"), "%s", node[0].last_log);
	CHECK(!dsm_engine_is_evacuating(dsm_worker_engine(node[0].worker)), "nor is it looked for");
	node[1].xen.page[5].pinned = false;
	stopping = false;
	play(100);
	refused(0, "connect beta", "busy a leave of host beta is at work");
	node[0].worker->peer[1].closing = false;
	told(0, "connect beta");
	told(0, "leave beta");
	CHECK(node[0].state == DSM_WORKER_RUNNING && node[1].state == DSM_WORKER_RUNNING, "both run");
	rest();
	end();
	all_ask = false;
}

/*
 * Two at once, of which alpha alone knows: what either has is called home, and that of beta
 * also when gamma, which gives nothing back, stays.
 */
static void one_of_two_stays(const void *argument)
{
	char *text;
	int fd[2];

	(void)argument;
	all_ask = true;
	begin();
	joined(0, 1);
	joined(0, 2);
	stopping = true;
	rest();
	take(1, 4);
	take(1, 5);
	take(2, 6);
	node[1].xen.page[4].pinned = node[2].xen.page[6].pinned = true;
	node[0].config.opening_ms = 2000;
	fd[1] = ask(0, "leave gamma");
	UNTIL(node[0].worker->peer[2].leaving);
	node[0].config.opening_ms = 30000;
	fd[0] = ask(0, "leave beta");
	UNTIL(node[0].xen.page[5].state == DSM_XEN_STATE_M || !node[0].worker->peer[2].leaving);
	CHECK(node[0].worker->peer[2].leaving, "not before gamma stays");
	text = answer(fd[1]);
	CHECK(!strcmp(text, "error: in-use host gamma: 1 pages are shared with it or asked for still, after 2000 ms\n"),
	      "%s", text);
	take(1, 7);
	UNTIL(node[0].xen.page[7].state == DSM_XEN_STATE_M);
	CHECK(node[2].xen.page[6].state == DSM_XEN_STATE_M, "gamma has its page");
	node[1].xen.page[4].pinned = false;
	told(1, "leave alpha");
	text = answer(fd[0]);
	CHECK(!strcmp(text, "ok\n"), "beta: %s", text);
	end();
	all_ask = false;
}

/* The home does not say that it ends before the other one, which may ask still; who leaves does not. */
static void asked_meanwhile(const void *argument)
{
	struct played_xen *xen = &node[1].xen;
	uint64_t until;
	char *text;
	int fd;

	(void)argument;
	all_ask = true;
	begin();
	joined(0, 1);
	stopping = true;
	rest();
	node[0].config.opening_ms = node[1].config.opening_ms = 1500;
	fd = ask(0, "leave beta");
	UNTIL(node[0].worker->peer[1].leaving && !dsm_engine_is_evacuating(dsm_worker_engine(node[0].worker)));
	take(1, 5);
	xen->page[5].pinned = true;
	text = answer(fd);
	CHECK(!strcmp(text, "error: in-use host beta: 1 pages are shared with it or asked for still, after 1500 ms\n"),
	      "%s", text);
	fd = ask(1, "leave alpha");
	UNTIL(node[1].worker->peer[0].leaving);
	until = dsm_worker_now(NULL) + 200 * 1000000ull;
	UNTIL(played_use(xen, NO_VCPU, 9, DSM_XEN_WANT_S, 0) == PLAYED_DONE || dsm_worker_now(NULL) > until ||
	      (dsm_worker_kick(node[1].worker), false));
	CHECK(xen->page[9].state == DSM_XEN_STATE_I, "who leaves asks for nothing");
	text = answer(fd);
	CHECK(!strcmp(text, "error: in-use host alpha: 1 pages are shared with it or asked for still, after 1500 ms\n"),
	      "%s", text);
	UNTIL(played_use(xen, NO_VCPU, 9, DSM_XEN_WANT_S, 0) == PLAYED_DONE ||
	      (dsm_worker_kick(node[1].worker), false));
	end();
	all_ask = false;
}

/* All of the time for a connection is over before it is waited for. */
static void no_time_to_connect(const void *argument)
{
	(void)argument;
	begin();
	stopping = true;
	rest();
	node[0].config.opening_ms = 0;
	refused(0, "connect beta", "unreachable host beta did not connect to this one within 0 ms");
	node[0].config.opening_ms = 10000;
	joined(0, 1);
	end();
}

/* Two at once: what the one has is looked for when the other one has left, and nothing else. */
static void two_leave(const void *argument)
{
	uint64_t until;
	char *text;
	int fd[2];

	(void)argument;
	all_ask = true;
	begin();
	joined(0, 1);
	joined(0, 2);
	stopping = true;
	rest();
	take(1, 5);
	take(2, 6);
	node[1].xen.page[5].pinned = node[2].xen.page[6].pinned = true;
	node[0].config.opening_ms = 3000;
	fd[0] = ask(0, "leave beta");
	fd[1] = ask(0, "leave gamma");
	UNTIL(node[0].worker->peer[1].leaving && node[0].worker->peer[2].leaving);
	node[1].xen.page[5].pinned = false;
	told(1, "leave alpha");
	text = answer(fd[0]);
	CHECK(!strcmp(text, "ok\n"), "beta: %s", text);
	joined(0, 1);
	take(1, 7);
	/* Longer than it is tried to take a page that is in use. */
	until = dsm_worker_now(NULL) + 5 * node[2].description.pin_ns;
	UNTIL(dsm_worker_now(NULL) > until);
	CHECK(node[1].xen.page[7].state == DSM_XEN_STATE_M, "who came back has what it takes");
	node[2].xen.page[6].pinned = false;
	text = answer(fd[1]);
	CHECK(!strcmp(text, "ok\n"), "gamma: %s", text);
	CHECK(node[0].xen.page[6].state == DSM_XEN_STATE_M, "it came home");
	end();
	all_ask = false;
}

/* ---- Three hosts, of which two or all have vCPUs ---- */

/* vCPU 1 has its place at beta, and vCPU 2 at gamma, or at home for good. */
static void begin_three(bool gamma)
{
	unsigned int i;

	rig_begin();
	for (i = 0; i < HOSTS; i++) {
		struct node *n = &node[i];

		prepare(i);
		give_place(n);
		n->description.nr_vcpus = n->xen.nr_vcpus = 3;
		n->description.frames = n->xen.pool = i ? 96 : 0;
		n->description.lenders = gamma ? 0 : 1 << 2;
		n->xen.elsewhere[2] = i;
		if (gamma) {
			n->description.place[n->description.nr_places++] = (struct dsm_place){ 2, 1, 2, false };
			n->description.places[2] = 2;
		}
		start(i);
	}
}

/* Connected with the home, with memory there, which nobody else knows of. */
static void have_memory(unsigned int host)
{
	joined(0, host);
	node_is(host, host, 1, false);
}

/* A vCPU somewhere uses a page: its words. */
static uint64_t *used(unsigned int number, unsigned int vcpu, uint64_t gfn, unsigned int want)
{
	struct played_xen *xen = &node[number].xen;

	UNTIL((!xen->vcpu[vcpu].waits && played_use(xen, vcpu, gfn, want, gfn) == PLAYED_DONE) ||
	      (dsm_worker_kick(node[number].worker), false));
	return xen->page[gfn].word;
}

static void running(const char *when)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		CHECK(!node[i].worker || node[i].state == DSM_WORKER_RUNNING, "%s: %s: %s", when, names[i],
		      node[i].why);
}

static bool is_evacuating(unsigned int number)
{
	return dsm_engine_is_evacuating(dsm_worker_engine(node[number].worker));
}

/* Gamma's memory goes, and gamma; beta stays, with its vCPU. */
static void gamma_goes(bool had_vcpu)
{
	int fd;

	node_is(0, 2, 0, true);
	node_is(1, 2, 0, false);
	node_is(2, 2, 0, false);
	if (had_vcpu)
		node_is(2, 1, 0, false);
	used(1, 1, 7, DSM_XEN_WANT_M)[0]++;
	apart(1, 2);
	CHECK(!is_evacuating(1) && node[1].xen.page[7].state == DSM_XEN_STATE_M, "beta has what it had");
	fd = ask(0, "leave gamma");
	UNTIL(node[0].worker->peer[2].leaving && !is_evacuating(0));
	CHECK(node[1].xen.page[7].state == DSM_XEN_STATE_M, "what beta has is not looked for");
	refused(0, "place beta 1", "busy host gamma is leaving: ");
	told(2, "leave alpha");
	CHECK(!strcmp(answer(fd), "ok\n"), "leave");
	used(1, 1, 7, DSM_XEN_WANT_M)[0]++;
	running("gamma has gone");
}

static void vcpus_at_three(const void *argument)
{
	const uint64_t of_beta = range[1].start + 3, of_gamma = range[2].start + 5;
	unsigned int i;

	(void)argument;
	begin_three(true);
	have_memory(1);
	have_memory(2);
	/* Two hosts with vCPUs that are not connected. */
	refused(1, "node 2 2048 0", "unreachable vnode 2: host gamma is not connected");
	told(0, "place beta 1");
	refused(0, "place gamma 2", "not-ready host ");
	CHECK(strstr(node[0].last_log, "is not connected with host"), "%s", node[0].last_log);
	node_is(0, 1, 1, true);
	for (i = 0; i < 2; i++) {
		if (i)
			have_memory(2);
		joined(1, 2);
		refused(1, "node 2 2048 1024", "sizes vnode 2: a pool of 1024 KiB");
		node_is(1, 2, 1, false);
		node_is(2, 1, 1, false);
		node_is(0, 2, 1, true);
		told(0, "place gamma 2");
		*used(1, 1, of_gamma, DSM_XEN_WANT_M) = 11;
		CHECK(*used(2, 2, of_gamma, DSM_XEN_WANT_S) == 11, "beta's word at gamma");
		*used(2, 2, of_beta, DSM_XEN_WANT_M) = 22;
		CHECK(*used(1, 1, of_beta, DSM_XEN_WANT_S) == 22, "gamma's at beta");
		*used(0, 0, of_gamma, DSM_XEN_WANT_M) = 33;
		CHECK(*used(1, 1, of_gamma, DSM_XEN_WANT_S) == 33, "alpha's at beta, of gamma's memory");
		*used(2, 2, 9, DSM_XEN_WANT_M) = 44;
		CHECK(*used(1, 1, 9, DSM_XEN_WANT_M) == 44, "gamma's at beta, of alpha's memory");
		running("all have vCPUs");
		refused(1, "leave gamma", "in-use host gamma: 2048 KiB are attached");
		refused(2, "leave beta", "in-use host beta: 2048 KiB are attached");
		node_is(1, 2, 0, false);
		node_is(2, 1, 0, false);
		refused(1, "leave gamma", "in-use host gamma: vCPUs run there, or here");
		refused(2, "leave beta", "in-use host beta: vCPUs run there, or here");
		told(0, "home 2");
		gamma_goes(true);
	}
	CHECK(*used(1, 1, of_beta, DSM_XEN_WANT_S) == 22, "beta's memory is as it was");
	/* The end of what is between the two others is that of the machine. */
	have_memory(2);
	joined(1, 2);
	told(0, "place gamma 2");
	running("as before");
	dsm_transport_fail(dsm_worker_transport(node[2].worker), 1, 42);
	UNTIL(node[0].state == DSM_WORKER_FAILED && node[2].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[1].why, "host gamma is lost (the peer says that the VM has failed: reason 42 (?)): vCPUs 2 ran there"),
	      "%s", node[1].why);
	CHECK(strstr(node[0].why, "host beta is lost (the peer says that the VM has failed: it has lost host gamma): vCPUs 1 ran there"),
	      "%s", node[0].why);
	/* The home hears of gamma by beta, or by itself: it tells of both, or of that one. */
	CHECK(strstr(node[0].why, "; host gamma: vCPUs 2 ran there, 0 pages of alpha were modified there"),
	      "%s", node[0].why);
	end_with_place();
}

/*
 * A host was ready once, and has another table when it is connected again, which its Xen does not take:
 * it says so, once, and has memory only until Xen does.
 */
static void a_table_that_is_refused(const void *argument)
{
	(void)argument;
	begin_three(true);
	joined(0, 1);
	joined(0, 2);
	joined(1, 2);
	told(0, "place gamma 2");
	told(0, "home 2");
	apart(1, 2);
	apart(0, 2);
	told(0, "place beta 1");
	node[2].xen.break_place = -EIO;
	joined(0, 2);
	joined(1, 2);
	UNTIL(strstr(node[0].last_log, "host gamma: it can't have vCPUs"));
	answers(2, 3);
	running("memory only");
	refused(0, "place gamma 2", "not-ready host gamma: its Xen does not take where vCPUs run");
	running("it has been refused");
	/* A new connection, and a new table. */
	apart(1, 2);
	apart(0, 2);
	node[2].xen.break_place = 0;
	joined(0, 2);
	joined(1, 2);
	told(0, "place gamma 2");
	running("it takes it now");
	CHECK(node[0].xen.elsewhere[2] && !node[2].xen.elsewhere[2], "it is there");
	end_with_place();
}

/* What beta's and alpha's slices have jumped since is what gamma's TSC was set by, or less. */
static bool follow(uint64_t by)
{
	return node[0].xen.jumped >= by && node[1].xen.jumped >= by;
}

/* Gamma's clock is ahead: all follow it, while vCPUs go and come back, and who is connected anew has that time. */
static void one_time_of_three(const void *argument)
{
	unsigned int i;

	(void)argument;
	/* It is one time, as far as anybody wants to know. */
	error_us = 100000;
	begin_three(true);
	error_us = 1000;
	have_memory(1);
	have_memory(2);
	joined(1, 2);
	node_is(1, 2, 1, false);
	node_is(2, 1, 1, false);
	told(0, "place gamma 2");
	node[2].xen.tsc_offset += 20000000;
	/* Of 200 us a second there is more than this after a second or two. */
	for (i = 0; !follow(400000) && i < 200; i++) {
		told(0, "home 2");
		told(0, i & 1 ? "place beta 1" : "place gamma 2");
		told(0, i & 1 ? "place gamma 2" : "home 2");
		told(0, i & 1 ? "home 1" : "place gamma 2");
		running("while they jump");
	}
	UNTIL(follow(400000));
	told(0, "home 2");
	CHECK(node[0].xen.jumped < 20100000 && node[1].xen.jumped < 20100000, "no farther");
	/* The home's time of now is what it says to one that comes. */
	node_is(0, 2, 0, true);
	node_is(1, 2, 0, false);
	node_is(2, 2, 0, false);
	node_is(2, 1, 0, false);
	apart(1, 2);
	apart(0, 2);
	/* As another boot of it, whose TSC is less: nobody takes that for a lie.  Nobody has news for it. */
	node[2].worker->jumps.offset -= 1000000;
	node[1].xen.break_jump = -EINVAL;
	have_memory(2);
	joined(1, 2);
	UNTIL(node[0].worker->jumps.peer[2].has && node[1].worker->jumps.peer[2].has &&
	      node[2].worker->jumps.peer[1].has && node[2].worker->jumps.peer[0].has);
	node[1].xen.break_jump = 0;
	told(0, "place gamma 2");
	running("it has come back");
	told(0, "home 2");
	end_with_place();
}

static enum dsm_peer_time time_of(unsigned int number, unsigned int host)
{
	return node[number].worker->peer[host].time;
}

/* As soon as it begins to be believed beta's TSC is set anew. */
static bool nobody_knows(void)
{
	if (node[0].worker->peer[1].clock.agreeing > 2)
		node[1].xen.tsc_offset += 50000000;
	return time_of(0, 1) == DSM_TIME_APART;
}

/* Beta has no vCPUs, since its time is another one, by so many ns. */
static void refused_for(uint64_t apart_by)
{
	uint64_t least = 0, most = 0;

	refused(0, "place beta 1", "not-ready host beta: the guest has two times: there and here they are apart by ");
	CHECK(sscanf(strstr(refusal, "apart by "), "apart by %" SCNu64 " to %" SCNu64 " ns; clock_error_us is 1000", &least, &most) == 2,
	      "%s", refusal);
	/* The slices were a millisecond apart at most, and one of them has jumped since. */
	CHECK(least <= most && least > apart_by - 20000000 && most < apart_by + 20000000, "%s", refusal);
}

/* A host that is known to have another time has no vCPUs until it is one; they can come home. */
static void another_time(const void *argument)
{
	const uint64_t second = 1000000000;
	uint64_t offset;
	unsigned int i;

	(void)argument;
	question_ms = 20;
	begin_with_place(0, true);
	joined(0, 1);
	told(0, "place beta 1");
	CHECK(time_of(0, 1) == DSM_TIME_ONE && time_of(1, 0) != DSM_TIME_APART, "one");
	/* It is set: ahead of all, and behind. */
	for (i = 0; i < 2; i++) {
		node[1].xen.tsc_offset += i ? -second : second;
		UNTIL(time_of(0, 1) == DSM_TIME_APART && time_of(1, 0) == DSM_TIME_APART);
		told(0, "home 1");
		refused_for(second);
		CHECK(!node[0].xen.elsewhere[1] && node[0].state == DSM_WORKER_RUNNING && !node[0].xen.pauses, "nothing has changed");
		node[1].xen.tsc_offset -= i ? -second : second;
		UNTIL(time_of(0, 1) == DSM_TIME_ONE);
		told(0, "place beta 1");
	}
	told(0, "home 1");
	/* Nobody knows. */
	offset = node[1].xen.tsc_offset;
	UNTIL(nobody_knows());
	refused(0, "place beta 1", "not-ready host beta: the guest may have two times: the clocks contradict each other");
	CHECK(strstr(refusal, "clock_drift_ppm is 200"), "%s", refusal);
	apart(0, 1);
	/* It comes back with its slice of before, which has not jumped meanwhile: that it is ready is not enough. */
	node[1].xen.tsc_offset = offset;
	node[1].worker->jumps.offset -= second;
	joined(0, 1);
	refused_for(second);
	apart(0, 1);
	node[1].worker->jumps.offset += second;
	joined(0, 1);
	told(0, "place beta 1");
	told(0, "home 1");
	/* It says that its TSC is another one. */
	apart(0, 1);
	node[0].worker->peer[1].clock.params.khz *= 2;
	joined(0, 1);
	refused(0, "place beta 1", "not-ready host beta: the guest may have two times: the TSC there has 1000000 kHz now, the one here 1000000");
	/* It, or the home, has no clock any more: who has his time has it, and nothing ends. */
	apart(0, 1);
	node[0].worker->transport_params.tsc = NULL;
	node[0].worker->transport_params.tsc_khz = 0;
	joined(0, 1);
	answers(1, 3);
	CHECK(node[0].state == DSM_WORKER_RUNNING && node[1].state == DSM_WORKER_RUNNING, "%s%s", node[0].why, node[1].why);
	question_ms = 1000;
	end_with_place();
}

/* Gamma only lends: it is asked, and asks for nothing. */
static void a_lender_beside_vcpus(const void *argument)
{
	const uint64_t of_gamma = range[2].start + 5;
	unsigned int i;

	(void)argument;
	begin_three(false);
	have_memory(1);
	node_is(0, 1, 1, true);
	told(0, "place beta 1");
	for (i = 0; i < 2; i++) {
		have_memory(2);
		joined(1, 2);
		node_is(1, 2, 1, false);
		node_is(0, 2, 1, true);
		*used(1, 1, of_gamma, DSM_XEN_WANT_M) = 11 + i;
		/* What it lends it has for the home: of beta only pages count. */
		node[2].config.opening_ms = 300;
		refused(2, "leave beta", "in-use host beta: 1 pages are shared with it or asked for still, after 300 ms");
		node[2].config.opening_ms = 10000;
		CHECK(*used(0, 0, of_gamma, DSM_XEN_WANT_S) == 11 + i, "beta's word");
		running("a lender");
		gamma_goes(false);
	}
	/* Connected with nothing attached: it may be lost. */
	joined(0, 2);
	joined(1, 2);
	stop(2);
	UNTIL(!dsm_worker_stats(node[0].worker)->peer[2].up && !dsm_worker_stats(node[1].worker)->peer[2].up);
	run_pending();
	running("nobody needs it");
	prepare(2);
	give_place(&node[2]);
	node[2].description.nr_vcpus = node[2].xen.nr_vcpus = 3;
	node[2].description.frames = node[2].xen.pool = 96;
	node[2].description.lenders = 1 << 2;
	node[2].xen.elsewhere[2] = true;
	start(2);
	/* With memory it may not, though nobody has a page of it: a vCPU of beta would wait for ever. */
	have_memory(2);
	joined(1, 2);
	node_is(1, 2, 1, false);
	node_is(0, 2, 1, true);
	dsm_transport_fail(dsm_worker_transport(node[2].worker), 1, 42);
	UNTIL(node[0].state == DSM_WORKER_FAILED && node[2].state == DSM_WORKER_FAILED);
	CHECK(strstr(node[0].why, "host beta is lost (the peer says that the VM has failed: it has lost host gamma): vCPUs 1 ran there"),
	      "%s", node[0].why);
	CHECK(strstr(node[2].why, "host alpha is lost (the peer says that the VM has failed: it has lost host beta)"),
	      "%s", node[2].why);
	end_with_place();
}

/* ---- Three hosts, by chance ---- */

static bool rests[HOSTS];		/* this vCPU begins nothing */
static bool placed[HOSTS];

static void on_three(struct ev_loop *l, ev_idle *idle, int events)
{
	unsigned int i;

	(void)l;
	(void)idle;
	(void)events;
	for (i = 0; i < HOSTS; i++) {
		if (!node[runs_at[i]].worker || node[runs_at[i]].xen.crashes)
			return;
		if (run[i].set || !rests[i])
			try_instruction(i);
	}
	for (i = 0; i < HOSTS; i++)
		if (node[i].worker && node[i].xen.in_ring)
			dsm_worker_kick(node[i].worker);
}

/* The vCPU of a host goes there, or home: it is down meanwhile. */
static void move(unsigned int host, bool home)
{
	char line[64];

	rests[host] = true;
	UNTIL(!run[host].set && !node[runs_at[host]].xen.vcpu[host].waits);
	if (home)
		snprintf(line, sizeof(line), "home %u", host);
	else
		snprintf(line, sizeof(line), "place %s %u", names[host], host);
	told(0, line);
	runs_at[host] = home ? 0 : host;
	rests[host] = false;
	placed[host] = !home;
}

/* As dsmd-host does, with a pair if the other one is there. */
static void attach_one(unsigned int host)
{
	unsigned int other = 3 - host;

	joined(0, host);
	if (has[other]) {
		joined(1, 2);
		node_is(host, other, 1, false);
	}
	node_is(host, host, 1, false);
	if (has[other])
		node_is(other, host, 1, false);
	node_is(0, host, 1, true);
	has[host] = UNIT;
}

static void detach_one(unsigned int host)
{
	unsigned int other = 3 - host;

	has[host] = 0;
	node_is(0, host, 0, true);
	if (has[other])
		node_is(other, host, 0, false);
	node_is(host, host, 0, false);
	forget_words(host, 0);
	if (has[other]) {
		node_is(host, other, 0, false);
		apart(1, 2);
	}
	apart(0, host);
	check_all_back(host);
}

/* vCPUs of all hosts use all memory: what is read is what was written last, whoever has written it. */
static void world_of_three(const void *argument)
{
	uint64_t turns[HOSTS] = { 0 };
	unsigned int i, host;
	const char *rule;

	(void)argument;
	memset(last_written, 0, sizeof(last_written));
	memset(has, 0, sizeof(has));
	memset(run, 0, sizeof(run));
	memset(rests, 0, sizeof(rests));
	memset(placed, 0, sizeof(placed));
	memset(runs_at, 0, sizeof(runs_at));
	written = checked = holes = 0;
	stopping = false;
	begin_three(true);
	for (i = 0; i < HOSTS; i++)
		node[i].xen.busy_permille = dice_below(50);
	ev_idle_init(&vcpus, on_three);
	ev_idle_start(loop, &vcpus);
	for (i = 0; i < 60; i++) {
		host = 1 + dice_below(HOSTS - 1);
		if (!has[host])
			attach_one(host);
		else if (!placed[host])
			dice_below(2) ? move(host, false) : detach_one(host);
		else if (!dice_below(3))
			move(host, true);
		turns[host] += placed[host];
		play(dice_below(300));
		running("worlds");
		for (host = 0; host < HOSTS; host++) {
			rule = dsm_engine_broken_rule(dsm_worker_engine(node[host].worker));
			CHECK(!rule, "%s: %s", names[host], rule);
		}
	}
	CHECK(turns[1] && turns[2] && checked > 1000, "%" PRIu64 " words", checked);
	ev_idle_stop(loop, &vcpus);
	end_with_place();
}

static const struct test_case simple[] = {
	{ "resize: worlds of three hosts with vCPUs", world_of_three, NULL },
	{ "resize: vCPUs at three hosts", vcpus_at_three, NULL },
	{ "resize: a table that is refused", a_table_that_is_refused, NULL },
	{ "resize: one time of three hosts", one_time_of_three, NULL },
	{ "resize: a host with another time", another_time, NULL },
	{ "resize: a lender beside vCPUs", a_lender_beside_vcpus, NULL },
	{ "resize: vCPUs come and go", vcpus_come_and_go, NULL },
	{ "resize: a pause", a_pause, NULL },
	{ "resize: a host without vCPUs", not_for_vcpus, NULL },
	{ "resize: what is refused", refusing, NULL },
	{ "resize: one vnode", one_vnode, NULL },
	{ "resize: what a vnode says", what_a_vnode_says, NULL },
	{ "resize: lost without harm", lost_without_harm, NULL },
	{ "resize: destroyed", destroyed, NULL },
	{ "resize: destroyed elsewhere", destroyed_elsewhere, NULL },
	{ "resize: lost with harm", lost_with_harm, NULL },
	{ "resize: lost meanwhile", lost_meanwhile, NULL },
	{ "resize: lost and not used", lost_and_not_used, NULL },
	{ "resize: too long", too_long, NULL },
	{ "resize: limits", limits, NULL },
	{ "resize: undone", undone, NULL },
	{ "resize: undone later", undone_later, NULL },
	{ "resize: nobody comes", nobody_comes, NULL },
	{ "resize: pages of the home", pages_of_the_home, NULL },
	{ "resize: fails while a host leaves", fails_while_leaving, NULL },
	{ "resize: a leave that is asked for again", asked_again, NULL },
	{ "resize: a leave without an end", leave_without_an_end, NULL },
	{ "resize: two leave at once", two_leave, NULL },
	{ "resize: one of two stays", one_of_two_stays, NULL },
	{ "resize: what is asked while a host leaves", asked_meanwhile, NULL },
	{ "resize: no time to connect", no_time_to_connect, NULL },
	{ "resize: worlds", world, NULL },
};

int main(int argc, char **argv)
{
	static struct test_case cases[NR(simple) + NR(steps)];
	static char words[NR(steps)][64];
	size_t i;

	memcpy(cases, simple, sizeof(simple));
	for (i = 0; i < NR(steps); i++) {
		snprintf(words[i], sizeof(words[i]), "resize: %s fails", steps[i].name);
		cases[NR(simple) + i] = (struct test_case){ words[i], one_step_fails, &steps[i] };
	}
	return run_cases(argc, argv, cases, NR(cases));
}
