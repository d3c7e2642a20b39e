// SPDX-License-Identifier: GPL-2.0
/*
 * dsmd: the process of one VM on one host; dsmd(8).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <ev.h>

#include "hypervisor.h"
#include "log.h"
#include "version.h"
#include "worker.h"

#define CONFIG	"/etc/xenuma/dsm.toml"

enum status {			/* of the process */
	STATUS_ENDED = 0,
	STATUS_FAILED = 1,	/* the VM has */
	STATUS_USAGE = 2,	/* or a mistake in a file */
	STATUS_SYSTEM = 3,	/* no slice, no socket, no memory */
};

static struct process {
	const char *config_file, *folder;
	bool check, to_syslog, unlocked;
	struct dsm_config config;
	struct dsm_description description;
	struct dsm_worker *worker;
	struct ev_loop *loop;
	ev_signal signals[2];
	ev_timer end;
	enum status status;
} process = { .config_file = CONFIG, .folder = DSM_CONTROL_FOLDER };

static void usage(FILE *to)
{
	fputs("usage: dsmd [OPTION...] VM.json\n"
	      "The distributed shared memory of one VM on this host; see dsmd(8).\n"
	      "  -c, --config FILE   the hosts (default " CONFIG ")\n"
	      "  -f, --folder PATH   of the control socket (default " DSM_CONTROL_FOLDER ")\n"
	      "  -k, --check         read both files, say what is wrong, and end\n"
	      "  -s, --syslog        log to syslog besides standard error\n"
	      "  -u, --unlocked      do not lock memory (for tests)\n"
	      "  -V, --version       of this program, and of what it speaks\n"
	      "  -h, --help\n", to);
}

/* READY=1 and STATUS= for systemd, if it waits for them; sd_notify(3). */
static void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(address.sun_path))
		return;
	strcpy(address.sun_path, path);
	if (path[0] == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			       strlen(path))) < 0 &&
	    errno != ECONNREFUSED && errno != ENOENT)	/* who waited has gone */
		dsm_log(DSM_LOG_WARNING, "systemd's socket: %s", strerror(errno));
	close(fd);
}

static void publish(void *context, const char *state)
{
	(void)context;
	dsm_hypervisor_publish(&process.description, state);
}

static void on_log(void *context, int level, const char *text)
{
	(void)context;
	dsm_log((enum dsm_log_level)level, "%s", text);
}

static void on_state(void *context, enum dsm_worker_state state, const char *text)
{
	char line[DSM_LOG_LINE];

	(void)context;
	snprintf(line, sizeof(line), "%s%s%s", dsm_worker_state_name(state),
		 text[0] ? ": " : "", text);
	dsm_log(state == DSM_WORKER_FAILED ? DSM_LOG_ERROR : DSM_LOG_NOTICE,
		"state: %s", line);
	dsm_log_state(line);
	snprintf(line, sizeof(line), "READY=1\nSTATUS=%s",
		 dsm_worker_state_name(state));
	notify(line);
	if (state == DSM_WORKER_FAILED)
		process.status = STATUS_FAILED;
	if (state == DSM_WORKER_ENDED)
		ev_break(process.loop, EVBREAK_ALL);
}

static void on_end(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)timer;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

/* A moment later, so that the answer goes out first. */
static void on_forgotten(void *context)
{
	(void)context;
	ev_timer_init(&process.end, on_end, 0.2, 0.);
	ev_timer_start(process.loop, &process.end);
}

static const struct dsm_worker_calls worker_calls = {
	.log = on_log, .state = on_state, .forgotten = on_forgotten,
};

/*
 * A host that is no home gives back what it has, and ends.  At a home the
 * process ends at once: Xen pauses the domain, the peers' VMs fail.
 */
static void on_signal(struct ev_loop *loop, ev_signal *signal, int events)
{
	enum dsm_worker_state state;

	(void)events;
	if (!dsm_worker_leave(process.worker)) {
		dsm_log(DSM_LOG_NOTICE, "signal %d: leaving", signal->signum);
		return;
	}
	state = dsm_worker_get_state(process.worker);
	/* One that leaves may have pages of others still. */
	if (state == DSM_WORKER_RUNNING || state == DSM_WORKER_LEAVING) {
		dsm_log(DSM_LOG_ERROR, "signal %d: ends with a VM that runs", signal->signum);
		process.status = STATUS_FAILED;
	}
	ev_break(loop, EVBREAK_ALL);
}

/* No page fault of ours may wait for a disk, and nobody kills us for memory. */
static int be_reliable(char text[DSM_ENGINE_TEXT])
{
	static const char least[] = "-1000\n";
	int fd;

	if (process.unlocked)
		return 0;
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		snprintf(text, DSM_ENGINE_TEXT, "mlockall: %s", strerror(errno));
		return -errno;
	}
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, least, sizeof(least) - 1) != sizeof(least) - 1)
		dsm_log(DSM_LOG_WARNING, "oom_score_adj: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return 0;
}

static void watch_signals(void)
{
	static const int numbers[] = { SIGTERM, SIGINT };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ev_signal_init(&process.signals[i], on_signal, numbers[i]);
		ev_signal_start(process.loop, &process.signals[i]);
		ev_unref(process.loop);
	}
}

static int run(char text[DSM_ENGINE_TEXT])
{
	char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct dsm_worker_params params = {
		.config = &process.config, .description = &process.description,
		.socket = socket_path, .calls = &worker_calls,
	};
	int rc;

	if ((size_t)snprintf(socket_path, sizeof(socket_path), "%s/%s.sock",
			     process.folder, process.description.name) >=
	    sizeof(socket_path)) {
		snprintf(text, DSM_ENGINE_TEXT, "%s: too long for a socket", process.folder);
		return -ENAMETOOLONG;
	}
	if (mkdir(process.folder, 0700) && errno != EEXIST) {
		snprintf(text, DSM_ENGINE_TEXT, "%s: %s", process.folder, strerror(errno));
		return -errno;
	}
	rc = be_reliable(text);
	if (rc)
		return rc;
	process.loop = ev_default_loop(EVFLAG_AUTO);
	if (!process.loop || getrandom(&params.seed, sizeof(params.seed), 0) < 0) {
		snprintf(text, DSM_ENGINE_TEXT, "no event loop, or no random numbers");
		return -EIO;
	}
	params.loop = process.loop;
	params.xen = dsm_hypervisor_open(&process.description, &process.config, text);
	if (!params.xen)
		return -EIO;
	rc = dsm_worker_create(&params, &process.worker, text);
	if (!rc) {
		watch_signals();
		ev_run(process.loop, 0);
		notify("STOPPING=1");
		dsm_worker_destroy(process.worker);
	}
	params.xen->calls->close(params.xen);
	return rc;
}

static int read_files(const char *description, char *text)
{
	char host[DSM_CONFIG_NAME];
	int rc;

	if (gethostname(host, sizeof(host)))
		host[0] = 0;
	host[sizeof(host) - 1] = 0;
	rc = dsm_config_read(process.config_file, host, &process.config, text);
	return rc ? rc : dsm_description_read(description, &process.config,
					      &process.description, text);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "folder", required_argument, NULL, 'f' },
		{ "check", no_argument, NULL, 'k' },
		{ "syslog", no_argument, NULL, 's' },
		{ "unlocked", no_argument, NULL, 'u' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char text[DSM_ENGINE_TEXT + DSM_CONFIG_TEXT] = "";
	int option, rc;

	while ((option = getopt_long(argc, argv, "c:f:ksuVh", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			process.config_file = optarg;
			break;
		case 'f':
			process.folder = optarg;
			break;
		case 'k':
			process.check = true;
			break;
		case 's':
			process.to_syslog = true;
			break;
		case 'u':
			process.unlocked = true;
			break;
		case 'V':
			dsm_version_say(stdout, "dsmd");
			return STATUS_ENDED;
		case 'h':
			usage(stdout);
			return STATUS_ENDED;
		default:
			usage(stderr);
			return STATUS_USAGE;
		}
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "dsmd: words after it: 1, the file of a VM, not %d\n", argc - optind);
		usage(stderr);
		return STATUS_USAGE;
	}
	if (read_files(argv[optind], text)) {
		fprintf(stderr, "dsmd: %s\n", text);
		return STATUS_USAGE;
	}
	if (process.check)
		return STATUS_ENDED;

	signal(SIGPIPE, SIG_IGN);
	rc = dsm_log_begin(process.description.name, process.to_syslog, publish, NULL);
	if (rc) {
		fprintf(stderr, "dsmd: no thread for the log: %s\n", strerror(-rc));
		return STATUS_SYSTEM;
	}
	if (run(text)) {
		char line[sizeof(text) + 16];

		dsm_log(DSM_LOG_ERROR, "%s", text);
		snprintf(line, sizeof(line), "STATUS=%s", text);
		notify(line);
		process.status = STATUS_SYSTEM;
	}
	dsm_log_end();
	return process.status;
}
