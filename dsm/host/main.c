// SPDX-License-Identifier: GPL-2.0
/*
 * dsmd-host: the loop that accepts, counts, and ends what takes too long.  It does
 * nothing that waits; host.h says who does.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ev.h>

#include "record.h"
#include "version.h"
#include "wire.h"

#define CONFIG		"/etc/xenuma/dsm.toml"
#define FOLDER		"/run/xenuma/dsmd"
#define SOCKET		"/run/xenuma/dsmd.sock"
#define DSMD		"/usr/sbin/dsmd"
#define LOCALS		32	/* requests of the toolstack at a time; more wait */
/* Of each host: as many as it may have at work, and its sweep.  More are turned away. */
#define PEERS_EACH	(LOCALS + 4)
#define PEERS		((DSM_MAX_HOSTS - 1) * PEERS_EACH)
#define PEERS_SECOND	64	/* and in a second */
#define SWEEP_S		30.
#define WATCHED		1024	/* dsmds */

enum status {			/* of the process */
	STATUS_ENDED = 0,
	STATUS_USAGE = 2,	/* or a mistake in a file */
	STATUS_SYSTEM = 3,
};

enum kind { FREE, LOCAL, PEER, SWEEP };

struct job {
	enum kind kind;
	ev_child child;
	unsigned int from;		/* of a peer: by its address */
};

struct watched {
	bool used;
	char uuid[37];
	ev_io io;			/* of a pidfd */
};

static struct process {
	struct host host;
	struct ev_loop *loop;
	ev_io local, peers, xen;
	ev_stat xenstore;		/* while there is no word of domains that end */
	ev_timer sweep, second;
	ev_signal signals[2];
	struct job job[LOCALS + PEERS + 1];
	unsigned int nr[SWEEP + 1];	/* jobs of each kind */
	unsigned int accepted[DSM_MAX_HOSTS];	/* of each host, in this second */
	unsigned int turned_away;	/* in this second */
	char last_away[160];		/* who, and why */
	bool sweep_again;
	bool xenstore_begins;		/* there is something at its path */
	struct watched watched[WATCHED];
	int lock;
} process = {
	.host = {
		.config_file = CONFIG, .folder = FOLDER, .socket = SOCKET, .dsmd = DSMD,
	},
};

static void usage(FILE *to)
{
	fputs("usage: dsmd-host [OPTION...]\n"
	      "Start and end dsmd for VMs, here and on other hosts; see dsmd-host(8).\n"
	      "  -c, --config FILE   the hosts (default " CONFIG ")\n"
	      "  -f, --folder PATH   of what is known of VMs (default " FOLDER ")\n"
	      "  -l, --listen PATH   the toolstack's socket (default " SOCKET ")\n"
	      "  -d, --dsmd PATH     the program for a VM (default " DSMD ")\n"
	      "  -k, --check         look at the file, the certificates and the address, say what is\n"
	      "                      wrong, and end\n"
	      "  -u, --unlocked      dsmds do not lock memory (for tests)\n"
	      "  -V, --version       of this program, and of what it speaks\n"
	      "  -h, --help\n", to);
}

/* ---- In the process of a request ---- */

static void answer_request(struct wire *wire, unsigned int from)
{
	struct answer answer = { 0 };
	struct json_object *request = NULL;
	char *line = malloc(HOST_LINE), *reply;
	uint64_t version;
	ssize_t n;

	wire->end = wire_now() + HOST_REQUEST_S;
	n = line ? wire_read_line(wire, line, HOST_LINE) : -ENOMEM;
	if (n < 0) {
		/* Silence: a toolstack that had no CPU is told so; another host is not. */
		if (n != -EMSGSIZE && n != -EBADMSG && (n != -ETIMEDOUT || from != DSM_NOBODY))
			return;
		if (n == -ETIMEDOUT)
			answer_error(&answer, "internal", "no request within %.0f s; ask again", HOST_REQUEST_S);
		else
			answer_error(&answer, "internal", n == -EMSGSIZE ? "more than %u bytes" :
				     "something follows the line (at most %u bytes)", HOST_LINE);
	} else {
		request = read_line_json(line, (size_t)n, &answer);
	}
	process.host.asker = from == DSM_NOBODY ? 0 : wire->fd;
	if (request && !read_number(request, "version", 0, INT64_MAX, &version, &answer)) {
		if (version != HOST_VERSION)
			answer_error(&answer, "version", "version %llu is asked for; dsmd-host of host %s has %d",
				     (unsigned long long)version,
				     host_name(&process.host, process.host.config.self), HOST_VERSION);
		else if (from == DSM_NOBODY)
			guest_request(&process.host, request, &answer);
		else
			peer_request(&process.host, from, request, &answer);
	}
	reply = answer_line(&answer);
	wire->end = wire_now() + HOST_REQUEST_S;
	if (reply)
		wire_write(wire, reply, strlen(reply));
	if (answer.word[0])
		host_say(SAY_WARNING, NULL, "%s: %s", answer.word, answer.text);
}

static void do_job(enum kind kind, int fd, unsigned int from)
{
	struct wire wire = { .fd = fd };
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	sigaction(SIGTERM, &plain, NULL);
	sigaction(SIGINT, &plain, NULL);
	sigaction(SIGCHLD, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Not ours: who starts the parent again needs them free. */
	close(process.lock);
	close(process.local.fd);
	close(process.peers.fd);
	alarm(HOST_JOB_S);
	if (kind == SWEEP) {
		sweep(&process.host);
	} else if (kind == LOCAL) {
		answer_request(&wire, DSM_NOBODY);
		wire_close(&wire);
	} else {
		if (!wire_accept(&wire, &process.host, fd,
				 wire_now() + process.host.config.opening_ms / 1000.))
			answer_request(&wire, wire.who.host);
		else
			host_say(SAY_WARNING, NULL, "a stranger at the address of host %s was turned away: %s",
			    host_name(&process.host, from), wire.text);
		wire_close(&wire);
	}
	_exit(0);
}

/* ---- The loop ---- */

static void begin_sweep(void);

static void on_dsmd_end(struct ev_loop *loop, ev_io *io, int events)
{
	struct watched *watched = io->data;

	(void)events;
	ev_io_stop(loop, io);
	close(io->fd);
	watched->used = false;
	host_say(SAY_NOTICE, NULL, "the dsmd of %s has ended", watched->uuid);
	begin_sweep();
}

/* Those that are not watched yet. */
static void watch_dsmd(struct host *host, const struct record *record, void *context)
{
	struct watched *watched, *place = NULL;
	pid_t pid = dsmd_pid(host, record->uuid_text);
	int fd;

	(void)context;
	for (watched = process.watched; watched < process.watched + WATCHED; watched++) {
		if (watched->used && !strcmp(watched->uuid, record->uuid_text))
			return;
		if (!watched->used && !place)
			place = watched;
	}
	fd = pid && place ? pidfd_open(pid, 0) : -1;
	if (fd < 0)
		return;
	/* Still the same, now that the descriptor is one of it. */
	if (dsmd_pid(host, record->uuid_text) != pid) {
		close(fd);
		return;
	}
	place->used = true;
	strcpy(place->uuid, record->uuid_text);
	ev_io_init(&place->io, on_dsmd_end, fd, EV_READ);
	place->io.data = place;
	ev_io_start(process.loop, &place->io);
}

static void on_job_end(struct ev_loop *loop, ev_child *child, int events)
{
	struct job *job = child->data;
	enum kind kind = job->kind;

	(void)events;
	ev_child_stop(loop, child);
	if (WIFSIGNALED(child->rstatus) && WTERMSIG(child->rstatus) == SIGALRM)
		host_say(SAY_ERROR, NULL, "a request was not done after %d s, and has ended: what it began goes on, and the same again goes on from there",
		    HOST_JOB_S);
	else if (child->rstatus)
		host_say(SAY_ERROR, NULL, "a request ended with %s %d",
		    WIFSIGNALED(child->rstatus) ? "signal" : "status",
		    WIFSIGNALED(child->rstatus) ? WTERMSIG(child->rstatus) :
						  WEXITSTATUS(child->rstatus));
	job->kind = FREE;
	process.nr[kind]--;
	if (kind == LOCAL)
		ev_io_start(loop, &process.local);
	record_each(&process.host, watch_dsmd, NULL);
	if (kind == SWEEP && process.sweep_again) {
		process.sweep_again = false;
		begin_sweep();
	}
}

/* @fd: closed here; -1: none.  Return: was there a place, and a process? */
static bool start_job(enum kind kind, int fd, unsigned int from)
{
	struct job *job = process.job;
	pid_t pid;

	while (job->kind != FREE)
		job++;		/* there are enough for the most of each kind */
	pid = fork();
	if (!pid)
		do_job(kind, fd, from);
	if (fd >= 0)
		close(fd);
	if (pid < 0) {
		host_say(SAY_ERROR, NULL, "no process for a request: %s", strerror(errno));
		return false;
	}
	job->kind = kind;
	job->from = from;
	process.nr[kind]++;
	ev_child_init(&job->child, on_job_end, pid, 0);
	job->child.data = job;
	ev_child_start(process.loop, &job->child);
	return true;
}

static void begin_sweep(void)
{
	if (process.nr[SWEEP])
		process.sweep_again = true;
	else if (++process.host.turn)
		start_job(SWEEP, -1, DSM_NOBODY);
}

/* Without a descriptor for it: it waits for on_second(). */
static void not_accepted(struct ev_loop *loop, ev_io *io)
{
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return;
	host_say(SAY_ERROR, NULL, "a connection can't be accepted: %s", strerror(errno));
	ev_io_stop(loop, io);
}

static void on_local(struct ev_loop *loop, ev_io *io, int events)
{
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(who);

	(void)events;
	if (fd < 0) {
		not_accepted(loop, io);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) ||
	    (who.uid && who.uid != geteuid())) {
		host_say(SAY_WARNING, NULL, "user %u is not served", who.uid);
		close(fd);
		return;
	}
	start_job(LOCAL, fd, DSM_NOBODY);
	if (process.nr[LOCAL] == LOCALS)
		ev_io_stop(loop, io);
}

static bool is_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/* Return: whose address it is; DSM_NOBODY. */
static unsigned int host_of(const struct sockaddr_storage *from)
{
	const struct dsm_config *config = &process.host.config;
	unsigned int i;

	for (i = 0; i < config->nr_hosts; i++)
		if (i != config->self && is_same_address(from, &config->host[i].address))
			return i;
	return DSM_NOBODY;
}

/* May one more come from there? */
static const char *why_not(unsigned int from)
{
	unsigned int i, nr = 0;

	if (from == DSM_NOBODY)
		return "not the address of a host";
	for (i = 0; i < sizeof(process.job) / sizeof(process.job[0]); i++)
		nr += process.job[i].kind == PEER && process.job[i].from == from;
	if (nr >= PEERS_EACH)
		return "too many at a time from one address";
	return process.accepted[from] >= PEERS_SECOND ? "too many in a second from one address" : NULL;
}

/* Before the handshake: nobody else has to wait for those. */
static void on_peer(struct ev_loop *loop, ev_io *io, int events)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);
	int fd = accept4(io->fd, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
	char text[100];
	const char *why;
	unsigned int from;

	(void)events;
	if (fd < 0) {
		not_accepted(loop, io);
		return;
	}
	from = host_of(&address);
	why = why_not(from);
	if (!why) {
		process.accepted[from]++;
		start_job(PEER, fd, from);
		return;
	}
	close(fd);
	process.turned_away++;
	wire_address(&address, text, sizeof(text));
	snprintf(process.last_away, sizeof(process.last_away), "%s: %s", text, why);
}

static void on_xen(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)io;
	(void)events;
	process.host.xen->watched();
	begin_sweep();
}

/* Return: is there word of domains that end? */
static bool watch_xen(void)
{
	int fd = process.host.xen->watch();

	if (fd < 0)
		return false;
	ev_io_init(&process.xen, on_xen, fd, EV_READ);
	ev_io_start(process.loop, &process.xen);
	return true;
}

/* The domains that have ended meanwhile are looked for at once. */
static void try_xen_again(void)
{
	if (!watch_xen())
		return;
	process.xenstore_begins = false;
	ev_stat_stop(process.loop, &process.xenstore);
	host_say(SAY_NOTICE, NULL, "xenstore has begun: there is word of domains that end");
	begin_sweep();
}

/* Its socket is made before it listens there: on_second() tries again. */
static void on_xenstore(struct ev_loop *loop, ev_stat *file, int events)
{
	(void)loop;
	(void)events;
	process.xenstore_begins = file->attr.st_nlink;
	if (process.xenstore_begins)
		try_xen_again();
}

static void on_second(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)timer;
	(void)events;
	if (process.xenstore_begins)
		try_xen_again();
	if (process.turned_away)
		host_say(SAY_WARNING, NULL, "connections turned away in a second: %u, the last one of %s",
		    process.turned_away, process.last_away);
	process.turned_away = 0;
	memset(process.accepted, 0, sizeof(process.accepted));
	ev_io_start(loop, &process.peers);
	if (process.nr[LOCAL] < LOCALS)
		ev_io_start(loop, &process.local);
}

static void on_sweep(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)timer;
	(void)events;
	begin_sweep();
}

static void on_signal(struct ev_loop *loop, ev_signal *signal, int events)
{
	(void)signal;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

/* ---- Begin ---- */

static int fail(char *text, const char *what)
{
	snprintf(text, DSM_CONFIG_TEXT, "%s: %s", what, strerror(errno));
	return -1;
}

static int be_the_only_one(char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/vm/host", process.host.folder);
	process.lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (process.lock < 0)
		return fail(text, path);
	if (!flock(process.lock, LOCK_EX | LOCK_NB))
		return 0;
	snprintf(text, DSM_CONFIG_TEXT, "another dsmd-host has %s", process.host.folder);
	return -1;
}

static int listen_local(char *text)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	mode_t mask;
	int fd, rc;

	if (strlen(process.host.socket) >= sizeof(at.sun_path)) {
		errno = ENAMETOOLONG;
		return fail(text, process.host.socket);
	}
	strcpy(at.sun_path, process.host.socket);
	unlink(at.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0177);
	rc = fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 64);
	umask(mask);
	if (rc)
		return fail(text, process.host.socket);
	ev_io_init(&process.local, on_local, fd, EV_READ);
	ev_io_start(process.loop, &process.local);
	return 0;
}

/* @at: of this host.  errno is left as it was. */
static int fail_address(char *text, const struct sockaddr_storage *at)
{
	char where[100], what[300];
	int saved = errno;

	wire_address(at, where, sizeof(where));
	snprintf(what, sizeof(what), "%s: %s of host %s, which is to be this one%s",
		 process.host.config_file, where, host_name(&process.host, process.host.config.self),
		 saved == EADDRNOTAVAIL ? " by self (no interface here has the address)" : "");
	errno = saved;
	return fail(text, what);
}

static socklen_t size_of(const struct sockaddr_storage *at)
{
	return at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* At any port: a dsmd-host that runs has the right one. */
static int check_address(char *text)
{
	const struct sockaddr_storage *own = &process.host.config.host[process.host.config.self].address;
	int fd = socket(own->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;
	struct sockaddr_storage any = *own;

	if (any.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&any)->sin6_port = 0;
	else
		((struct sockaddr_in *)&any)->sin_port = 0;
	rc = fd < 0 || bind(fd, (const struct sockaddr *)&any, size_of(&any)) ?
	     fail_address(text, own) : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int listen_peers(char *text)
{
	const struct sockaddr_storage *at = &process.host.config.host[process.host.config.self].address;
	int one = 1, fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (const struct sockaddr *)at, size_of(at)) || listen(fd, 64))
		return fail_address(text, at);
	ev_io_init(&process.peers, on_peer, fd, EV_READ);
	ev_io_start(process.loop, &process.peers);
	return 0;
}

static void watch_all(void)
{
	static const int numbers[] = { SIGTERM, SIGINT };
	unsigned int i;

	/* First the file: what is made between both is an event. */
	ev_stat_init(&process.xenstore, on_xenstore, process.host.xen->xenstore(), 0.);
	ev_stat_start(process.loop, &process.xenstore);
	if (watch_xen())
		ev_stat_stop(process.loop, &process.xenstore);
	else
		host_say(SAY_WARNING, NULL, "no word of domains that end (xenstore: %s): looking every %.0f s, until it is there",
			 strerror(errno), SWEEP_S);
	for (i = 0; i < 2; i++) {
		ev_signal_init(&process.signals[i], on_signal, numbers[i]);
		ev_signal_start(process.loop, &process.signals[i]);
	}
	ev_timer_init(&process.sweep, on_sweep, 0., SWEEP_S);
	ev_timer_start(process.loop, &process.sweep);
	ev_timer_init(&process.second, on_second, 1., 1.);
	ev_timer_start(process.loop, &process.second);
	record_each(&process.host, watch_dsmd, NULL);
}

/* For systemd; sd_notify(3). */
static void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(to.sun_path))
		return;
	strcpy(to.sun_path, path);
	if (path[0] == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) < 0)
		host_say(SAY_WARNING, NULL, "systemd's socket: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void on_expiry(void *context, const char *text)
{
	(void)context;
	host_say(SAY_WARNING, NULL, "%s", text);
}

/* Not the end: it may be a tool that is wrong, and guests may be here. */
static void look_at_xen(void)
{
	char text[HOST_TEXT + 1];
	struct host_facts facts;
	int rc = process.host.xen->facts(&facts);

	if (!rc)
		return;
	host_why_not_xen(&process.host, rc, text);
	host_say(SAY_ERROR, NULL, "%s", text);
}

static int run(char *text)
{
	int rc = record_prepare(&process.host);

	if (rc) {
		errno = -rc;
		return fail(text, process.host.folder);
	}
	process.loop = ev_default_loop(EVFLAG_AUTO);
	if (!process.loop)
		return fail(text, "no event loop");
	if (be_the_only_one(text) || listen_peers(text) || listen_local(text))
		return -1;
	watch_all();
	look_at_xen();
	dsm_expiry_begin(&process.host.expiry, &process.host.params, process.loop, DSM_EXPIRY_PERIOD,
			 on_expiry, NULL);
	host_say(SAY_NOTICE, NULL, "host %s is ready", host_name(&process.host, process.host.config.self));
	notify("READY=1");
	ev_run(process.loop, 0);
	unlink(process.host.socket);
	return 0;
}

static int read_files(char *text)
{
	char name[DSM_CONFIG_NAME] = "", why[DSM_TRANSPORT_TEXT] = "";
	int rc;

	gethostname(name, sizeof(name) - 1);
	rc = dsm_config_read(process.host.config_file, name, &process.host.config, text);
	if (rc)
		return rc;
	dsm_config_transport(&process.host.config, &process.host.params);
	rc = dsm_tls_create(&process.host.params, &process.host.tls, why);
	if (rc)
		snprintf(text, DSM_CONFIG_TEXT, "%s", why[0] ? why : strerror(-rc));
	return rc;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "folder", required_argument, NULL, 'f' },
		{ "listen", required_argument, NULL, 'l' },
		{ "dsmd", required_argument, NULL, 'd' },
		{ "check", no_argument, NULL, 'k' },
		{ "unlocked", no_argument, NULL, 'u' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char text[DSM_CONFIG_TEXT] = "";
	bool check = false;
	int option, rc;

	while ((option = getopt_long(argc, argv, "c:f:l:d:kuVh", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			process.host.config_file = optarg;
			break;
		case 'f':
			process.host.folder = optarg;
			break;
		case 'l':
			process.host.socket = optarg;
			break;
		case 'd':
			process.host.dsmd = optarg;
			break;
		case 'k':
			check = true;
			break;
		case 'u':
			process.host.unlocked = true;
			break;
		case 'V':
			dsm_version_say(stdout, "dsmd-host");
			return STATUS_ENDED;
		case 'h':
			usage(stdout);
			return STATUS_ENDED;
		default:
			usage(stderr);
			return STATUS_USAGE;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "dsmd-host: %s: no word is wanted\n", argv[optind]);
		usage(stderr);
		return STATUS_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	rc = read_files(text);
	if (rc) {
		fprintf(stderr, "dsmd-host: %s\n", text);
		/* A certificate that is not valid yet is no mistake: systemd tries again. */
		return rc == -EAGAIN ? STATUS_SYSTEM : STATUS_USAGE;
	}
	if (check && check_address(text)) {
		fprintf(stderr, "dsmd-host: %s\n", text);
		return STATUS_SYSTEM;
	}
	if (check)
		return STATUS_ENDED;
	process.host.xen = host_xen_get();
	if (run(text)) {
		fprintf(stderr, "dsmd-host: %s\n", text);
		return STATUS_SYSTEM;
	}
	return STATUS_ENDED;
}
