// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>

#include "rig.h"

struct ev_loop *loop;
uint64_t clock_ns;
struct papers ca, other_ca;
const char *const host_names[HOSTS] = {
	"alpha.a.example", "beta.b.example", "gamma.c.example"
};

static char folder[] = "/tmp/dsmd_test.XXXXXX";
static ev_timer patience;
static unsigned int patient;		/* UNTILs within each other: the outermost has the time */
static ev_timer wake;		/* strangers are threads: look at them at times */

static double patience_seconds(void)
{
	const char *seconds = getenv("DSMD_PATIENCE");

	return seconds ? atof(seconds) : PATIENCE;
}

static void out_of_patience(struct ev_loop *l, ev_timer *timer, int events)
{
	(void)l;
	(void)events;
	CHECK(false, "after %.0f s: still not %s", patience_seconds(),
	      (const char *)timer->data);
}

static void look_again(struct ev_loop *l, ev_timer *timer, int events)
{
	(void)l;
	(void)timer;
	(void)events;
}

void patience_begin(const char *what)
{
	union { const char *in; void *out; } text = { what };

	if (patient++)
		return;
	patience.data = text.out;
	ev_timer_set(&patience, patience_seconds(), 0.);
	ev_now_update(loop);
	ev_timer_start(loop, &patience);
	ev_timer_set(&wake, 0.002, 0.002);
	ev_timer_start(loop, &wake);
}

void patience_end(void)
{
	if (--patient)
		return;
	ev_timer_stop(loop, &patience);
	ev_timer_stop(loop, &wake);
}

void run_pending(void)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		ev_run(loop, EVRUN_NOWAIT);
}

const char *rig_file(const char *name)
{
	static char path[16][128];
	static unsigned int next;
	char *to = path[next++ % 16];

	snprintf(to, sizeof(path[0]), "%s/%s", folder, name);
	return to;
}

struct papers host_papers(unsigned int number)
{
	char names[64];
	struct wanted wanted = {
		.names = names, .usage = BOTH_ROLES, .subject = "host",
		.from = -1, .to = 100,
	};

	snprintf(names, sizeof(names), "DNS:%s", host_names[number]);
	return papers_make(&wanted, &ca);
}

void rig_begin(void)
{
	struct wanted wanted = {
		.subject = "the site's CA", .from = -100, .to = 100, .ca = true,
	};

	signal(SIGPIPE, SIG_IGN);
	umask(022);	/* a CA's certificate that others can write is refused */
	dice_begin();
	loop = ev_loop_new(EVFLAG_AUTO);
	CHECK(loop && mkdtemp(folder), "a place");
	clock_ns = 5 * NS;
	ev_timer_init(&patience, out_of_patience, PATIENCE, 0.);
	ev_timer_init(&wake, look_again, 0.002, 0.002);
	ca = papers_make(&wanted, NULL);
	other_ca = papers_make(&wanted, NULL);
	papers_write(&ca, rig_file("ca.pem"), NULL, 0);
}

void rig_end(void)
{
	char command[64];

	papers_free(&ca);
	papers_free(&other_ca);
	ev_loop_destroy(loop);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(!system(command), "%s", command);
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
}

static uint64_t played_clock(void *context)
{
	(void)context;
	return clock_ns;
}

uint64_t rig_tsc(void *context)
{
	const struct host *h = context;

	return clock_ns + h->tsc_offset;
}

static void on_up(void *context, unsigned int host, uint32_t epoch)
{
	struct host *h = context;

	h->ups++;
	h->from = host;
	h->epoch = epoch;
}

static void on_message(void *context, unsigned int host,
		       const struct dsm_msg *msg, const uint8_t *page)
{
	struct host *h = context;

	h->messages++;
	h->from = host;
	h->last = *msg;
	h->pages += dsm_type_has_page(msg->type);
	if (page)
		memcpy(h->page, page, dsm_type_bytes(msg->type));
	if (h->on_message)
		h->on_message(h, msg, page);
}

static void on_room(void *context, unsigned int host)
{
	struct host *h = context;

	(void)host;
	h->rooms++;
}

static void on_end(void *context, unsigned int host, enum dsm_end reason,
		   const char *text)
{
	struct host *h = context;

	CHECK(h->nr_ends < MAX_ENDS, "many ends");
	h->end[h->nr_ends].host = host;
	h->end[h->nr_ends].reason = reason;
	snprintf(h->end[h->nr_ends].text, DSM_TRANSPORT_TEXT, "%s", text);
	h->nr_ends++;
	if (h->on_end)
		h->on_end(h);
}

static void on_lost(void *context, unsigned int host, unsigned int lost)
{
	struct host *h = context;

	CHECK(!h->nr_ends, "after its end");
	h->says_lost.times++;
	h->says_lost.by = host;
	h->says_lost.lost = lost;
}

static void on_round_trip(void *context, unsigned int host, uint64_t ns,
			  const struct dsm_clock_sample *clock)
{
	struct host *h = context;

	(void)host;
	h->round_trips++;
	h->last_round_trip = ns;
	if (!clock)
		return;
	h->clocks++;
	h->last_clock = *clock;
}

static const struct dsm_transport_calls calls = {
	.up = on_up, .message = on_message, .room = on_room, .end = on_end,
	.lost = on_lost, .round_trip = on_round_trip,
};

bool rig_is_rdma(void)
{
	const char *transport = getenv("DSMD_TRANSPORT");

	return transport && !strcmp(transport, "rdma");
}

static const char *own_address(void)
{
	const char *address = getenv("DSMD_ADDRESS");

	return address ? address : "127.0.0.1";
}

void set_address(struct sockaddr_storage *address, unsigned int port)
{
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
	};

	CHECK(inet_pton(AF_INET, own_address(), &four.sin_addr) == 1, "%s",
	      own_address());
	memcpy(address, &four, sizeof(four));
}

void host_prepare(struct host *host, unsigned int number)
{
	struct papers papers = host_papers(number);
	struct dsm_transport_params *p = &host->params;
	static char names[HOSTS][2][128];
	unsigned int i;

	memset(host, 0, sizeof(*host));
	snprintf(names[number][0], 128, "%s/%u.pem", folder, number);
	snprintf(names[number][1], 128, "%s/%u.key", folder, number);
	papers_write(&papers, names[number][0], names[number][1], 0600);
	papers_free(&papers);
	*p = (struct dsm_transport_params){
		.loop = loop,
		.kind = rig_is_rdma() ? DSM_TRANSPORT_RDMA : DSM_TRANSPORT_TCP,
		.trusted_fabric = true, .self = (uint8_t)number, .nr_hosts = HOSTS,
		.vm = "fifteen letters", .ca_file = rig_file("ca.pem"),
		.certificate_file = names[number][0],
		.key_file = names[number][1], .names = { host_names[number] },
		.credits = 16, .queue = 256, .strangers = 4,
		.opening_ns = OPENING, .question_ns = QUESTION,
		.deadline_ns = DEADLINE, .rekey_records = 1 << 20,
		.now = played_clock, .calls = &calls, .context = host,
	};
	set_address(&p->address, 0);
	for (i = 0; i < HOSTS; i++) {
		if (i == number)
			continue;
		p->peer[i].used = true;
		p->peer[i].names[0] = host_names[i];
		set_address(&p->peer[i].address, 1);
	}
}

void host_start(struct host *host)
{
	int rc = dsm_transport_create(&host->params, &host->transport,
				      host->text);

	CHECK(!rc, "%d: %s", rc, host->text);
}

void host_stop(struct host *host)
{
	dsm_transport_destroy(host->transport);
	host->transport = NULL;
}

void point_to(struct host *a, unsigned int number, unsigned int port)
{
	set_address(&a->params.peer[number].address, port);
}

void connect_hosts(struct host *a, struct host *b)
{
	unsigned int ups = a->ups;
	uint32_t later = a->epoch ? a->epoch + 1 : 7;

	if (!((struct sockaddr_in *)&a->params.peer[b->params.self].address)->sin_port ||
	    ntohs(((struct sockaddr_in *)&a->params.peer[b->params.self].address)->sin_port) == 1)
		point_to(a, b->params.self, dsm_transport_port(b->transport));
	CHECK(!dsm_transport_expect(b->transport, a->params.self,
				    a->epoch ? later : 4), "expect");
	CHECK(!dsm_transport_open(a->transport, b->params.self, later), "open");
	UNTIL((a->ups > ups && b->ups) || a->nr_ends || b->nr_ends);
	CHECK(a->ups > ups && !a->nr_ends && !b->nr_ends, "%s %s / %s %s",
	      dsm_end_name(a->end[0].reason), a->end[0].text,
	      dsm_end_name(b->end[0].reason), b->end[0].text);
}

struct dsm_msg message(uint32_t epoch, unsigned int type, uint64_t gfn)
{
	return (struct dsm_msg){
		.type = (uint8_t)type, .epoch = epoch, .gfn = gfn,
	};
}

/* Strangers. */

unsigned int listen_at_any(int *fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(struct sockaddr_in);

	set_address(&address, 0);
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(*fd >= 0 && !bind(*fd, (struct sockaddr *)&address, size) &&
	      !listen(*fd, 64) &&
	      !getsockname(*fd, (struct sockaddr *)&address, &size),
	      "%s", strerror(errno));
	return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static int connect_to(const char *from, unsigned int port)
{
	struct sockaddr_storage to = { 0 };
	struct sockaddr_in own = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, from ? from : own_address(), &own.sin_addr);
	set_address(&to, port);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&own, sizeof(own)) &&
	      !connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)),
	      "%s", strerror(errno));
	return fd;
}

bool stranger_write(struct stranger *stranger, const void *bytes, size_t size)
{
	if (!stranger->ssl)
		return write(stranger->fd, bytes, size) == (ssize_t)size;
	return SSL_write(stranger->ssl, bytes, (int)size) == (int)size;
}

bool stranger_read(struct stranger *stranger, void *bytes, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while (have < size) {
		n = stranger->ssl ?
		    SSL_read(stranger->ssl, (char *)bytes + have,
			     (int)(size - have)) :
		    read(stranger->fd, (char *)bytes + have, size - have);
		if (n <= 0)
			return false;
		have += (size_t)n;
		stranger->got += (unsigned int)n;
	}
	return true;
}

void stranger_read_to_end(struct stranger *stranger)
{
	char byte;

	while (stranger_read(stranger, &byte, 1))
		;
}

static void open_tls(struct stranger *s)
{
	unsigned int i;

	s->context = SSL_CTX_new(TLS_method());
	CHECK(s->context, "a context");
	if (s->tls_version)
		SSL_CTX_set_max_proto_version(s->context, s->tls_version);
	SSL_CTX_set_verify(s->context, SSL_VERIFY_NONE, NULL);
	if (s->papers.certificate)
		CHECK(SSL_CTX_use_certificate(s->context, s->papers.certificate) == 1 &&
		      SSL_CTX_use_PrivateKey(s->context, s->papers.key) == 1,
		      "its papers");
	for (i = 0; i < s->nr_between; i++)
		CHECK(SSL_CTX_add1_chain_cert(s->context,
					      s->between[i].certificate) == 1,
		      "a chain");
	s->ssl = SSL_new(s->context);
	CHECK(s->ssl && SSL_set_fd(s->ssl, s->fd), "a session");
	s->proved = (s->port ? SSL_connect(s->ssl) : SSL_accept(s->ssl)) == 1;
}

static void *stranger_run(void *argument)
{
	struct stranger *s = argument;

	s->fd = s->port ? connect_to(s->address, s->port) :
			  accept(s->listen_fd, NULL, NULL);
	CHECK(s->fd >= 0, "%s", strerror(errno));
	if (s->tls_version >= 0)
		open_tls(s);
	if (s->script)
		s->script(s);
	else if (!s->ssl || s->proved)
		stranger_read_to_end(s);
	SSL_free(s->ssl);
	SSL_CTX_free(s->context);
	close(s->fd);
	ERR_clear_error();
	s->done = true;
	return NULL;
}

void stranger_start(struct stranger *s)
{
	CHECK(!pthread_create(&s->thread, NULL, stranger_run, s), "a thread");
}

void stranger_meets(struct stranger *s, struct host *host, uint32_t epoch)
{
	host_start(host);
	CHECK(!dsm_transport_expect(host->transport, 1, epoch), "expect");
	s->port = dsm_transport_port(host->transport);
	stranger_start(s);
}

void stranger_join(struct stranger *s)
{
	UNTIL(s->done);
	pthread_join(s->thread, NULL);
	run_pending();
}

/* The network. */

static bool pass(struct relay *relay, int from, int to, bool forward)
{
	uint8_t bytes[4096];
	unsigned long long before = forward ? relay->forward : relay->back;
	unsigned long long limit = forward ? relay->cut_at : ~0ull;
	ssize_t n = 1, k, done = 0;

	if (before < limit) {
		size_t size = sizeof(bytes);

		if (limit - before < size)
			size = limit - before;
		n = read(from, bytes, size);
		if (n <= 0)
			return false;
	} else {
		return false;
	}
	if (forward && relay->flip_at >= before &&
	    relay->flip_at < before + (unsigned long long)n)
		bytes[relay->flip_at - before] ^= 1;
	if (forward && relay->record && before + (size_t)n <= relay->record_size)
		memcpy(relay->record + before, bytes, (size_t)n);
	/* Counted before who gets them can act on them. */
	if (forward)
		relay->forward += (unsigned long long)n;
	else
		relay->back += (unsigned long long)n;
	while (done < n) {
		k = write(to, bytes + done, (size_t)(n - done));
		if (k <= 0)
			return false;
		done += k;
	}
	return !forward || before + (unsigned long long)n < relay->cut_at;
}

static bool repeat(struct relay *relay, int to)
{
	size_t size = (size_t)(relay->repeat_to - relay->repeat_from);

	relay->repeat = false;
	return write(to, relay->record + relay->repeat_from, size) == (ssize_t)size;
}

struct relay_thread {
	struct relay *relay;
	unsigned int to_port;
};

static void *relay_run(void *argument)
{
	struct relay_thread *t = argument;
	struct relay *relay = t->relay;
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };

	fds[0].fd = relay->listen_fd;
	while (!relay->stop && poll(fds, 1, 5) == 0)
		;
	if (relay->stop)
		goto out;
	fds[0].fd = accept(relay->listen_fd, NULL, NULL);
	fds[1].fd = connect_to(NULL, t->to_port);
	while (!relay->stop) {
		if (relay->repeat && !repeat(relay, fds[1].fd))
			break;
		if (poll(fds, 2, 5) <= 0 && relay->forward < relay->cut_at)
			continue;
		if (relay->forward >= relay->cut_at)
			break;
		if ((fds[0].revents && !pass(relay, fds[0].fd, fds[1].fd, true)) ||
		    (fds[1].revents && !pass(relay, fds[1].fd, fds[0].fd, false)))
			break;
	}
	shutdown(fds[1].fd, SHUT_WR);
	shutdown(fds[0].fd, SHUT_WR);
	close(fds[0].fd);
	close(fds[1].fd);
out:
	free(t);
	return NULL;
}

void relay_start(struct relay *relay, unsigned int to_port)
{
	struct relay_thread *t = malloc(sizeof(*t));

	CHECK(t, "memory");
	*t = (struct relay_thread){ relay, to_port };
	relay->forward = 0;
	relay->back = 0;
	relay->cut_at = ~0ull;
	relay->flip_at = ~0ull;
	relay->repeat = false;
	relay->stop = false;
	relay->port = listen_at_any(&relay->listen_fd);
	CHECK(!pthread_create(&relay->thread, NULL, relay_run, t), "a thread");
}

void relay_stop(struct relay *relay)
{
	relay->stop = true;
	pthread_join(relay->thread, NULL);
	close(relay->listen_fd);
}
