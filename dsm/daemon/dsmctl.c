// SPDX-License-Identifier: GPL-2.0
/*
 * dsmctl: look at the dsmds of this host, and act; dsmctl(8).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "control.h"
#include "top.h"
#include "version.h"

#define SUFFIX	".sock"
#define FAILED	".failed"	/* of a file of dsmd-host: why, if its dsmd died */
#define HAS_ENDED	"its dsmd has ended; dsmctl status says why"
#define HOST_SOCKET	"/run/xenuma/dsmd.sock"
#define HOSTS_REQUEST	"{\"version\": 1, \"op\": \"hosts\"}"
#define PATH	512
#define VMS	1024
#define AT_ONCE	15.			/* s for what is answered at once */
#define LATER	(DSM_CONTROL_LATE + 5.)

enum status {			/* of the command */
	STATUS_DONE = 0,
	STATUS_REFUSED = 1,	/* dsmd says no; or a VM has failed (status, wait) */
	STATUS_USAGE = 2,
	STATUS_NOBODY = 3,	/* no such VM, or its dsmd does not answer */
	STATUS_TIMEOUT = 4,	/* of wait */
};

static const char *folder = DSM_CONTROL_FOLDER;
static bool as_json;
static long timeout_s = 60;
static long interval_s;			/* of top; 0: since it is counted */
static long rows = 20;
static const char *symbols_path;

static void usage(FILE *to)
{
	fputs("usage: dsmctl [OPTION...] COMMAND\n"
	      "  list                 the VMs with a dsmd on this host\n"
	      "  hosts                dsmd-host here, and what it knows of the others\n"
	      "  status [VM]          state, faults and pages, of all VMs if none is named\n"
	      "  peers VM             its connections\n"
	      "  metrics [VM]         for node_exporter's textfile collector\n"
	      "  wait VM [STATE]      until it is in the state (default: running)\n"
	      "  top VM               pages that bounce most, with names of the guest's kernel;\n"
	      "                       after: set VM profile=1\n"
	      "  set VM KEY=N         prefetch, clear_hint, class_u, busy_wait_us, poll_us or\n"
	      "                       profile, while it runs\n"
	      "  evacuate VM          all its pages to their homes, while the VM runs\n"
	      "  vnodes VM            memory that other hosts have for it, and its vCPUs there\n"
	      "  fail VM REASON       stop the VM on all hosts\n"
	      "dsmd-host says these, for xl; nobody else has to:\n"
	      "  connect VM HOST      make the connection with a host\n"
	      "  node VM VNODE SIZE POOL\n"
	      "                       so much memory there for the vnode, KiB, and so large a\n"
	      "                       pool here\n"
	      "  leaving VM VNODE SIZE\n"
	      "                       the guest will empty the vnode but for so many KiB\n"
	      "  place VM HOST VCPUS  these vCPUs, which are down, run there: 1,4-7\n"
	      "  home VM VCPUS        or at the VM's home\n"
	      "  leave VM HOST        end the connection with a host\n"
	      "  leave VM             give back what is here of other hosts, and end\n"
	      "  forget VM [--force]  end the dsmd of a VM that has failed or ended\n"
	      "Options:\n"
	      "  -j, --json           what list, hosts, status, peers, top and vnodes say as JSON\n"
	      "  -t, --timeout S      of wait (default 60)\n"
	      "  -i, --interval S     of top: of so long, and not since it is counted\n"
	      "  -n, --number N       of top: so many pages (default 20)\n"
	      "  -s, --symbols FILE   of top: the guest's System.map or vmlinux\n"
	      "  -F, --force          forget: one that has not ended, too\n"
	      "  -f, --folder PATH    of the sockets; not of hosts (default " DSM_CONTROL_FOLDER ")\n"
	      "  -l, --listen PATH    of hosts: the socket of dsmd-host (default " HOST_SOCKET ")\n"
	      "  -V, --version        of this program, and of what it speaks\n"
	      "  -h, --help\n", to);
}

/* ---- Whom to ask ---- */

static int order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Return: the name of a VM whose file this is, without @suffix; NULL. */
static char *without(const char *file, const char *suffix)
{
	size_t length = strlen(file), less = strlen(suffix);

	return length > less && !strcmp(file + length - less, suffix) ?
	       strndup(file, length - less) : NULL;
}

/* vms() knows nothing: who there is has not been seen. */
static bool unreadable;

/* The VMs, sorted, each once; NULL at the end.  Once: they stay allocated. */
static char **vms(void)
{
	static char *names[VMS + 1];
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t nr = 0, i, left = 0;
	int why = errno;

	while (dir && nr < VMS && (entry = readdir(dir))) {
		names[nr] = without(entry->d_name, SUFFIX);
		if (!names[nr])
			names[nr] = without(entry->d_name, FAILED);
		nr += names[nr] != NULL;
	}
	if (dir)
		closedir(dir);
	else if (why != ENOENT)
		fprintf(stderr, "dsmctl: %s: %s\n", folder, strerror(why));
	if (!nr && (dir || why == ENOENT))
		fprintf(stderr, "dsmctl: no VM has a dsmd here: %s%s\n", folder,
			dir ? " is empty" : ": No such file or directory");
	unreadable = !dir && why != ENOENT;
	qsort(names, nr, sizeof(*names), order);
	for (i = 0; i < nr; i++) {
		if (left && !strcmp(names[left - 1], names[i]))
			free(names[i]);
		else
			names[left++] = names[i];
	}
	names[left] = NULL;
	return names;
}

/* Has dsmd-host written down that its dsmd has? */
static bool has_died(const char *vm)
{
	char path[PATH];

	return (size_t)snprintf(path, sizeof(path), "%s/%s" FAILED, folder, vm) < sizeof(path) &&
	       !access(path, F_OK);
}

/* Says what went wrong.  Return: a status. */
static enum status ask(const char *vm, const char *command, double seconds,
		       char **answer)
{
	char path[PATH];
	int rc;

	*answer = NULL;
	if (strchr(vm, '/') || (size_t)snprintf(path, sizeof(path), "%s/%s" SUFFIX,
						folder, vm) >= sizeof(path)) {
		fprintf(stderr, "dsmctl: %s: no name of a VM\n", vm);
		return STATUS_USAGE;
	}
	rc = dsm_control_ask(path, command, seconds, answer);
	if (!rc)
		return STATUS_DONE;
	if (rc == -EREMOTEIO) {
		fprintf(stderr, "dsmctl: %s: %s\n", vm, *answer);
		free(*answer);
		*answer = NULL;
		return STATUS_REFUSED;
	}
	fprintf(stderr, "dsmctl: %s: %s\n", vm, rc != -ENOENT && rc != -ECONNREFUSED ? strerror(-rc) :
		has_died(vm) ? HAS_ENDED :
		"there is no dsmd of such a VM; dsmctl list says which there are");
	return rc == -EINVAL ? STATUS_USAGE : STATUS_NOBODY;
}

/*
 * A dsmd that died can't be asked; dsmd-host has written down what that means.
 * Return: NULL: none did.
 */
static struct json_object *status_of_dead(const char *vm)
{
	char path[PATH], why[PATH] = "";
	struct json_object *all = NULL;
	int fd = -1;
	ssize_t n;

	if (!strchr(vm, '/') &&
	    (size_t)snprintf(path, sizeof(path), "%s/%s" FAILED, folder, vm) < sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, why, sizeof(why) - 1);
	close(fd);
	if (n > 0) {
		why[strcspn(why, "\n")] = 0;
		all = json_object_new_object();
		json_object_object_add(all, "name", json_object_new_string(vm));
		json_object_object_add(all, "state", json_object_new_string("failed"));
		json_object_object_add(all, "failure", json_object_new_string(why));
	}
	return all;
}

/* @answer is gone then. */
static enum status parsed(const char *vm, char *answer, struct json_object **all)
{
	*all = json_tokener_parse(answer);
	free(answer);
	if (*all)
		return STATUS_DONE;
	fprintf(stderr, "dsmctl: %s: an answer that is no JSON\n", vm);
	return STATUS_NOBODY;
}

static enum status ask_status(const char *vm, struct json_object **all)
{
	enum status status;
	char *answer;

	*all = status_of_dead(vm);
	if (*all)
		return STATUS_DONE;
	status = ask(vm, "status", AT_ONCE, &answer);
	if (status)
		return status;
	return parsed(vm, answer, all);
}

/* ---- What is said ---- */

static struct json_object *get(struct json_object *from, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(from, key, &value);
	return value;
}

static const char *words(struct json_object *from, const char *key)
{
	const char *text = json_object_get_string(get(from, key));

	return text ? text : "";
}

static uint64_t number(struct json_object *from, const char *key)
{
	return json_object_get_uint64(get(from, key));
}

static void say_time(const char *what, struct json_object *histogram)
{
	printf("  %s: %" PRIu64 ", median %.1f us, 99%% %.1f us, longest %.1f us\n",
	       what, number(histogram, "count"),
	       (double)number(histogram, "median_ns") / 1000.,
	       (double)number(histogram, "p99_ns") / 1000.,
	       (double)number(histogram, "max_ns") / 1000.);
}

/* Where the time of faults goes that other hosts answer. */
static void say_phases(struct json_object *phases)
{
	if (!phases)
		return;
	say_time("  in queues", get(phases, "queue"));
	say_time("  until the answer", get(phases, "wire"));
	say_time("  until it is in place", get(phases, "install"));
	say_time("other hosts' faults", get(phases, "serve"));
}

/* A host that has sent none may have had some. */
static void say_interrupts(struct json_object *phases)
{
	struct json_object *out = get(phases, "ipi_out"), *in = get(phases, "ipi_in");

	if (number(out, "count"))
		say_time("interrupts and events, until they are sent", out);
	if (number(in, "count"))
		say_time("other hosts' interrupts and events, until Xen has them", in);
}

static void say_mean(const char *what, struct json_object *xen, const char *count, const char *sum)
{
	uint64_t nr = number(xen, count);

	printf("  %s: %" PRIu64 ", mean %.1f us\n", what, nr,
	       nr ? (double)number(xen, sum) / 1000. / (double)nr : 0.);
}

/* Of all waits for pages, whoever answers; dsmd's times are within the first. */
static void say_waits(struct json_object *xen)
{
	if (!xen)
		return;
	say_mean("vCPUs stopped by Xen", xen, "waits", "wait_ns");
	say_mean("  before that, from the fault on", xen, "traps", "trap_ns");
	say_mean("  behind it, until the vCPU runs", xen, "wakes", "wake_ns");
}

static void say_status(struct json_object *all)
{
	struct json_object *engine = get(all, "engine"), *peers = get(all, "peers");

	if (engine)
		printf("%s (%s) on %s: %s\n", words(all, "name"), words(all, "vm"),
		       words(all, "host"), words(all, "state"));
	else
		printf("%s: %s\n", words(all, "name"), words(all, "state"));
	if (get(all, "failure"))
		printf("  why: %s\n", words(all, "failure"));
	if (json_object_get_boolean(get(all, "paused")))
		printf("  paused\n");
	if (!engine)
		return;
	if (get(all, "class_u"))
		printf("  class_u: %s\n", json_object_get_boolean(get(all, "class_u")) ? "on" :
		       "off: a vCPU elsewhere that uses a device ends it");
	say_time("read faults", get(all, "read_fault"));
	say_time("write faults", get(all, "write_fault"));
	say_phases(get(all, "phases"));
	say_waits(get(all, "xen"));
	printf("  pages: %" PRIu64 " of this host are elsewhere; %" PRIu64 " of %" PRIu64
	       " frames for pages of others in use\n", number(engine, "elsewhere"),
	       number(engine, "frames_used"), number(engine, "frames"));
	printf("  open: %" PRIu64 " requests, %" PRIu64 " misses wait\n",
	       number(engine, "requests"), number(engine, "waiting"));
	if (number(engine, "evacuating"))
		printf("  pages come home: %" PRIu64 " so far\n", number(engine, "evacuated"));
	if (number(engine, "prefetches"))
		printf("  prefetch: %" PRIu64 ", %" PRIu64 " used, %" PRIu64 " for nothing, %" PRIu64
		       " refused\n", number(engine, "prefetches"), number(engine, "prefetch_hits"),
		       number(engine, "prefetch_wasted"), number(engine, "prefetch_refused"));
	if (number(engine, "cleared"))
		printf("  cleared: %" PRIu64 " came without bytes\n", number(engine, "cleared"));
	if (number(engine, "vcpu_events") + number(engine, "vcpu_ports") +
	    number(engine, "vcpu_calls") + number(engine, "vcpu_calls_done"))
		printf("  vCPUs elsewhere: interrupts sent %" PRIu64 " times, events %" PRIu64
		       " times; %" PRIu64 " hypercalls sent, %" PRIu64 " done for others\n", number(engine, "vcpu_events"),
		       number(engine, "vcpu_ports"), number(engine, "vcpu_calls"),
		       number(engine, "vcpu_calls_done"));
	say_interrupts(get(all, "phases"));
	if (number(all, "time_jumps"))
		printf("  time: it has jumped ahead here %" PRIu64 " times, by %.1f us together, to keep up with other hosts\n",
		       number(all, "time_jumps"), (double)number(all, "time_jumped_ns") / 1000.);
	if (!peers)
		return;
	json_object_object_foreach(peers, name, peer) {
		printf("  peer %s: %s", name,
		       json_object_get_boolean(get(peer, "up")) ? "connected" : "not connected");
		if (get(peer, "leaves"))
			printf(", leaving: %" PRIu64 " pages are shared with it or asked for still",
			       number(peer, "leaves"));
		putchar('\n');
	}
}

/* A word, or how well the offset of the TSC there is known. */
static void say_clock(struct json_object *clock)
{
	const char *state = json_object_get_string(get(clock, "state"));
	const char *two = json_object_get_boolean(get(clock, "two_times")) ? ", TWO TIMES" : "";

	if (!get(clock, "error_ns"))
		printf(" %s%s\n", state ? state : "", two);
	else
		printf(" %s, +-%.1f us%s\n", state ? state : "", (double)number(clock, "error_ns") / 1000., two);
}

static void say_peers(struct json_object *all)
{
	struct json_object *peers = get(all, "peers");

	printf("%-20s %-13s %10s %10s %12s %s\n", "PEER", "STATE", "SENT", "RECEIVED",
	       "ROUND TRIP", "CLOCK");
	if (!peers)
		return;
	json_object_object_foreach(peers, name, peer) {
		printf("%-20s %-13s %10" PRIu64 " %10" PRIu64 " %9.1f us", name,
		       json_object_get_boolean(get(peer, "up")) ? "connected" : "not connected",
		       number(peer, "sent"), number(peer, "received"),
		       (double)number(get(peer, "round_trip"), "median_ns") / 1000.);
		say_clock(get(peer, "clock"));
	}
}

static void say_json(struct json_object *value)
{
	puts(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PRETTY));
}

/* ---- Commands ---- */

static enum status do_list(char **words_after)
{
	struct json_object *list = json_object_new_array(), *all;
	enum status status = STATUS_DONE, one;
	char **name;

	(void)words_after;
	for (name = vms(); *name; name++) {
		one = ask_status(*name, &all);
		if (one)
			status = one;
		if (as_json) {
			struct json_object *row = json_object_new_object();

			json_object_object_add(row, "name", json_object_new_string(*name));
			json_object_object_add(row, "state", all ?
				json_object_new_string(words(all, "state")) : NULL);
			json_object_array_add(list, row);
		} else {
			printf("%-24s %s\n", *name, all ? words(all, "state") : "?");
		}
		json_object_put(all);
	}
	if (as_json)
		say_json(list);
	json_object_put(list);
	return unreadable ? STATUS_NOBODY : status;
}

/* One VM that is named, or all. */
static char **named(char **words_after)
{
	return words_after[0] ? words_after : vms();
}

static enum status do_status(char **words_after)
{
	struct json_object *list = json_object_new_array(), *all;
	enum status status = STATUS_DONE, one;
	char **name;

	for (name = named(words_after); *name; name++) {
		one = ask_status(*name, &all);
		if (one) {
			status = one;
			continue;
		}
		if (!strcmp(words(all, "state"), "failed") && !status)
			status = STATUS_REFUSED;
		if (as_json) {
			json_object_array_add(list, all);
			continue;
		}
		say_status(all);
		json_object_put(all);
	}
	if (as_json)
		say_json(list);
	json_object_put(list);
	return unreadable ? STATUS_NOBODY : status;
}

static enum status do_peers(char **words_after)
{
	struct json_object *all;
	enum status status = ask_status(words_after[0], &all);

	if (status)
		return status;
	if (!get(all, "peers")) {
		fprintf(stderr, "dsmctl: %s: %s\n", words_after[0], HAS_ENDED);
		status = STATUS_NOBODY;
	} else if (as_json) {
		say_json(get(all, "peers"));
	} else {
		say_peers(all);
	}
	json_object_put(all);
	return status;
}

static enum status do_metrics(char **words_after)
{
	enum status status = STATUS_DONE, one;
	char **name, *answer;

	for (name = named(words_after); *name; name++) {
		one = ask(*name, "metrics", AT_ONCE, &answer);
		if (one)
			status = one;
		else
			fputs(answer, stdout);
		free(answer);
	}
	return unreadable ? STATUS_NOBODY : status;
}

static enum status do_wait(char **words_after)
{
	static const char *const states[] = {
		"connecting", "running", "leaving", "ended", "failed", "over",
	};
	const char *state = words_after[1] ? words_after[1] : "running";
	size_t i, nr = sizeof(states) / sizeof(states[0]);
	struct timespec pause = { .tv_nsec = 100000000 };
	time_t end = time(NULL) + timeout_s;
	struct json_object *all;
	enum status status;
	bool there, failed, over;

	for (i = 0; i < nr && strcmp(states[i], state); i++)
		;
	if (i == nr) {
		fprintf(stderr, "dsmctl: %s: no state; there are", state);
		for (i = 0; i < nr; i++)
			fprintf(stderr, "%s %s", i ? "," : "", states[i]);
		fputc('\n', stderr);
		return STATUS_USAGE;
	}
	do {
		status = ask_status(words_after[0], &all);
		if (status)
			return status;
		there = !strcmp(words(all, "state"), state);
		failed = !strcmp(words(all, "state"), "failed");
		over = !strcmp(words(all, "state"), "over");
		if ((failed || over) && !there)
			fprintf(stderr, "dsmctl: %s has %s: %s\n", words_after[0],
				over ? "ended" : "failed", words(all, "failure"));
		json_object_put(all);
		if (there || failed || over)
			return there ? STATUS_DONE : STATUS_REFUSED;
		nanosleep(&pause, NULL);
	} while (time(NULL) < end);
	fprintf(stderr, "dsmctl: %s: not %s after %ld s\n", words_after[0], state,
		timeout_s);
	return STATUS_TIMEOUT;
}

/* A command of some words: the first is the VM's name. */
static enum status tell(const char *command, char **words_after)
{
	char line[DSM_CONTROL_LINE];
	size_t size = strlen(strcpy(line, command));
	enum status status;
	char **word, *answer;

	for (word = words_after + 1; *word; word++) {
		if (size + 1 + strlen(*word) >= sizeof(line) - 1) {
			fprintf(stderr, "dsmctl: %s: more than %zu letters\n",
				command, sizeof(line) - 2);
			return STATUS_USAGE;
		}
		size += (size_t)sprintf(line + size, " %s", *word);
	}
	status = ask(words_after[0], line, LATER, &answer);
	free(answer);
	return status;
}

static enum status do_set(char **words_after)
{
	return tell("set", words_after);
}

static enum status do_evacuate(char **words_after)
{
	return tell("evacuate", words_after);
}

static enum status do_connect(char **words_after)
{
	return tell("connect", words_after);
}

static enum status do_node(char **words_after)
{
	return tell("node", words_after);
}

static enum status do_leaving(char **words_after)
{
	return tell("leaving", words_after);
}

static enum status do_place(char **words_after)
{
	return tell("place", words_after);
}

static enum status do_home(char **words_after)
{
	return tell("home", words_after);
}

static enum status do_leave(char **words_after)
{
	return tell("leave", words_after);
}

static void say_vnodes(struct json_object *list)
{
	size_t i;

	printf("%5s %-8s %12s %10s %10s %10s %9s %12s %12s\n", "VNODE", "LINK",
	       "SIZE/KiB", "MODIFIED", "SHARED", "HOME", "FAULTS/s", "MEDIAN", "99%");
	for (i = 0; i < json_object_array_length(list); i++) {
		struct json_object *vnode = json_object_array_get_idx(list, i);

		printf("%5" PRIu64 " %-8s %12" PRIu64 " %10" PRIu64 " %10" PRIu64
		       " %10" PRIu64 " %9" PRIu64 " %9.1f us %9.1f us\n",
		       number(vnode, "vnode"), words(vnode, "link"),
		       number(vnode, "size_kib"), number(vnode, "pages_modified"),
		       number(vnode, "pages_shared"), number(vnode, "pages_home"),
		       number(vnode, "faults_per_second"),
		       (double)number(vnode, "median_ns") / 1000.,
		       (double)number(vnode, "p99_ns") / 1000.);
	}
}

static size_t length(struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

/* Of a VM with places: vCPUs that are not at home, and where a VM that is paused stands still. */
static void say_elsewhere(struct json_object *all)
{
	struct json_object *vcpus = get(all, "vcpus"), *paused = get(all, "paused"), *one;
	size_t i;

	for (i = 0; i < length(vcpus); i++) {
		one = json_object_array_get_idx(vcpus, i);
		printf("vCPU %" PRIu64 " runs at host %s\n", number(one, "vcpu"), words(one, "host"));
	}
	for (i = 0; i < length(paused); i++)
		printf("paused at host %s\n", json_object_get_string(json_object_array_get_idx(paused, i)));
}

static enum status do_vnodes(char **words_after)
{
	enum status status;
	struct json_object *all, *list;
	char *answer;

	status = ask(words_after[0], "state", AT_ONCE, &answer);
	if (status)
		return status;
	all = json_tokener_parse(answer);
	free(answer);
	list = get(all, "vnodes");
	if (!json_object_is_type(list, json_type_array)) {
		fprintf(stderr, "dsmctl: %s: an answer that is no JSON\n", words_after[0]);
		status = STATUS_NOBODY;
	} else if (as_json) {
		say_json(all);
	} else {
		say_vnodes(list);
		say_elsewhere(all);
	}
	json_object_put(all);
	return status;
}

/* What is counted there, now. */
static enum status ask_top(const char *vm, struct json_object **all)
{
	char *answer;
	enum status status = ask(vm, "top", AT_ONCE, &answer);

	if (status)
		return status;
	return parsed(vm, answer, all);
}

static enum status do_top(char **words_after)
{
	struct timespec pause = { .tv_sec = interval_s };
	struct json_object *before = NULL, *after = NULL, *top = NULL;
	struct dsm_symbols *symbols = NULL;
	char text[DSM_SYMBOLS_TEXT];
	enum status status = STATUS_DONE;

	if (symbols_path) {
		symbols = dsm_symbols_read(symbols_path, text);
		if (!symbols) {
			fprintf(stderr, "dsmctl: %s\n", text);
			return STATUS_USAGE;
		}
	}
	if (interval_s) {
		status = ask_top(words_after[0], &before);
		while (!status && nanosleep(&pause, &pause) && errno == EINTR)
			;
	}
	if (!status)
		status = ask_top(words_after[0], &after);
	if (!status) {
		top = dsm_top(before, after, symbols, (unsigned int)rows);
		if (!top) {
			fprintf(stderr, "dsmctl: %s: an answer that makes no sense, or the counting was begun anew\n",
				words_after[0]);
			status = STATUS_NOBODY;
		} else if (as_json) {
			say_json(top);
		} else {
			dsm_top_say(top);
		}
	}
	json_object_put(top);
	json_object_put(before);
	json_object_put(after);
	dsm_symbols_free(symbols);
	return status;
}

static enum status do_fail(char **words_after)
{
	return tell("fail", words_after);
}

static bool forced;

static enum status do_forget(char **words_after)
{
	return tell(forced ? "forget force" : "forget", words_after);
}

/* ---- dsmd-host ---- */

static const char *host_socket = HOST_SOCKET;

/* "2026-12-24"; "?": not known. */
static const char *date_of(struct json_object *host, const char *key)
{
	static char text[16];
	time_t when = json_object_get_int64(get(host, key));
	struct tm tm;

	return when && gmtime_r(&when, &tm) && strftime(text, sizeof(text), "%Y-%m-%d", &tm) ? text : "?";
}

/* Return: is its dsm.toml ours, as far as it says? */
static bool is_file_good(struct json_object *host)
{
	const char *file = words(host, "file");

	return strcmp(file, "differs") && strcmp(file, "wrong");
}

static void say_file(struct json_object *host)
{
	struct json_object *list = get(host, "differences"), *one;
	const char *name = words(host, "host"), *file = words(host, "file");
	size_t i;

	if (!strcmp(file, "unsaid"))
		printf("%s: what its dsm.toml says of the hosts it does not say: its dsmd-host is older\n", name);
	else if (!strcmp(file, "wrong"))
		printf("%s: what it says of its dsm.toml makes no sense\n", name);
	if (!json_object_is_type(list, json_type_array))
		return;
	for (i = 0; i < json_object_array_length(list); i++) {
		one = json_object_array_get_idx(list, i);
		printf("%s: its dsm.toml differs: %s is %s there, %s here\n", name, words(one, "key"),
		       words(one, "there"), words(one, "here"));
	}
	if (number(host, "more"))
		printf("%s: its dsm.toml differs: %" PRIu64 " more\n", name, number(host, "more"));
}

/* Of each host, after the table: what somebody should do something about. */
static void say_notes(struct json_object *host)
{
	static const char *const soon[] = { "certificate_expires_soon", "ca_expires_soon" };
	unsigned int i;

	for (i = 0; i < sizeof(soon) / sizeof(soon[0]); i++)
		if (get(host, soon[i]))
			printf("%s: %s\n", words(host, "host"), words(host, soon[i]));
	if (get(host, "xen_differs"))
		printf("%s: its Xen differs: %s; no guest can have memory of both\n", words(host, "host"),
		       words(host, "xen_differs"));
	say_file(host);
}

static void say_hosts(struct json_object *list)
{
	size_t i;

	printf("%-24s %-14s %-16s %5s %12s %s\n", "HOST", "STATE", "XEN", "VMS", "FREE/KiB", "EXPIRES");
	for (i = 0; i < json_object_array_length(list); i++) {
		struct json_object *host = json_object_array_get_idx(list, i);

		printf("%-24s %-14s", words(host, "host"), words(host, "state"));
		if (get(host, "xen"))
			printf(" %-16s %5" PRIu64 " %12" PRIu64 " %s\n", words(host, "xen"),
			       number(host, "vms"), number(host, "free_kib"),
			       date_of(host, "certificate_expires"));
		else
			printf(" %s\n", words(host, "text"));
	}
	for (i = 0; i < json_object_array_length(list); i++)
		say_notes(json_object_array_get_idx(list, i));
}

/* Return: is every host there, with our Xen and our dsm.toml? */
static bool are_up(struct json_object *list)
{
	const char *state;
	size_t i;

	for (i = 0; i < json_object_array_length(list); i++) {
		state = words(json_object_array_get_idx(list, i), "state");
		if ((strcmp(state, "up") && strcmp(state, "here")) ||
		    !get(json_object_array_get_idx(list, i), "xen") ||
		    get(json_object_array_get_idx(list, i), "xen_differs"))
			return false;
		if (!is_file_good(json_object_array_get_idx(list, i)))
			return false;
	}
	return true;
}

static enum status do_hosts(char **words_after)
{
	enum status status = STATUS_NOBODY;
	struct json_object *all, *list;
	char *answer;
	int rc;

	(void)words_after;
	rc = dsm_control_ask_line(host_socket, HOSTS_REQUEST, LATER, &answer);
	if (rc) {
		if (rc == -ENOENT || rc == -ECONNREFUSED)
			fprintf(stderr, "dsmctl: nobody listens at %s: start dsmd-host\n", host_socket);
		else
			fprintf(stderr, "dsmctl: dsmd-host at %s: %s\n", host_socket, strerror(-rc));
		return STATUS_NOBODY;
	}
	all = json_tokener_parse(answer);
	free(answer);
	list = get(all, "hosts");
	if (list && json_object_is_type(list, json_type_array)) {
		if (as_json)
			say_json(list);
		else
			say_hosts(list);
		status = are_up(list) ? STATUS_DONE : STATUS_REFUSED;
	} else {
		fprintf(stderr, "dsmctl: dsmd-host: %s\n", all && get(all, "text") ?
			words(all, "text") : "an answer that is none");
	}
	json_object_put(all);
	return status;
}

static const struct command {
	const char *name;
	enum status (*run)(char **words);
	const char *options;	/* their letters, but for help and version */
	int least, most;	/* words after it */
	const char *words;
} commands[] = {
	{ "list", do_list, "jf", 0, 0, "" },
	{ "hosts", do_hosts, "jl", 0, 0, "" },
	{ "status", do_status, "jf", 0, 1, "VM" },
	{ "peers", do_peers, "jf", 1, 1, "VM" },
	{ "metrics", do_metrics, "f", 0, 1, "VM" },
	{ "wait", do_wait, "tf", 1, 2, "VM [STATE]" },
	{ "top", do_top, "jinsf", 1, 1, "VM" },
	{ "set", do_set, "f", 2, 2, "VM KEY=NUMBER" },
	{ "evacuate", do_evacuate, "f", 1, 1, "VM" },
	{ "vnodes", do_vnodes, "jf", 1, 1, "VM" },
	{ "connect", do_connect, "f", 2, 2, "VM HOST" },
	{ "node", do_node, "f", 4, 4, "VM VNODE SIZE POOL" },
	{ "leaving", do_leaving, "f", 3, 3, "VM VNODE SIZE" },
	{ "place", do_place, "f", 3, 3, "VM HOST VCPUS" },
	{ "home", do_home, "f", 2, 2, "VM VCPUS" },
	{ "leave", do_leave, "f", 1, 2, "VM [HOST]" },
	{ "fail", do_fail, "f", 2, 2, "VM REASON, which is one word or in quotes" },
	{ "forget", do_forget, "Ff", 1, 1, "VM" },
};

/* Says what is wrong.  Return: has the command these words and, of @given, no option that it does not have? */
static bool are_right(const struct command *c, int left, const char *extra, const char *given, const struct option *options)
{
	const struct option *o;
	bool fine = true;

	for (o = options; o->name; o++) {
		if (!strchr(given, o->val) || strchr(c->options, o->val))
			continue;
		fprintf(stderr, "dsmctl: %s has no option --%s; dsmctl --help says whose it is\n", c->name, o->name);
		fine = false;
	}
	if (left >= c->least && left <= c->most)
		return fine;
	if (!c->most)
		fprintf(stderr, "dsmctl: %s takes no word, not %d (%s)\n", c->name, left, extra);
	else if (c->least && c->least < c->most)
		fprintf(stderr, "dsmctl: %s takes %d to %d words (%s), not %d\n", c->name, c->least, c->most, c->words, left);
	else
		fprintf(stderr, "dsmctl: %s takes %s%d word%s (%s), not %d\n", c->name, c->least ? "" : "at most ", c->most,
			c->most == 1 ? "" : "s", c->words, left);
	return false;
}

static bool read_number(const char *option, const char *text, long least, long most, long *value)
{
	char *end;

	*value = strtol(text, &end, 10);
	if (*text && !*end && *value >= least && *value <= most)
		return true;
	fprintf(stderr, "dsmctl: --%s %s: want %ld to %ld\n", option, text, least, most);
	return false;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "timeout", required_argument, NULL, 't' },
		{ "interval", required_argument, NULL, 'i' },
		{ "number", required_argument, NULL, 'n' },
		{ "symbols", required_argument, NULL, 's' },
		{ "force", no_argument, NULL, 'F' },
		{ "folder", required_argument, NULL, 'f' },
		{ "listen", required_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char given[sizeof(options) / sizeof(options[0])] = "";
	const struct command *c;
	int option, left;

	while ((option = getopt_long(argc, argv, "jt:i:n:s:Ff:l:Vh", options, NULL)) != -1) {
		if (option != '?' && !strchr(given, option))
			given[strlen(given)] = (char)option;
		switch (option) {
		case 'j':
			as_json = true;
			break;
		case 't':
			if (!read_number("timeout", optarg, 0, 86400, &timeout_s))
				return STATUS_USAGE;
			break;
		case 'i':
			if (!read_number("interval", optarg, 0, 86400, &interval_s))
				return STATUS_USAGE;
			break;
		case 'n':
			if (!read_number("number", optarg, 1, DSM_TOP_ROWS, &rows))
				return STATUS_USAGE;
			break;
		case 's':
			symbols_path = optarg;
			break;
		case 'F':
			forced = true;
			break;
		case 'f':
			folder = optarg;
			break;
		case 'l':
			host_socket = optarg;
			break;
		case 'V':
			dsm_version_say(stdout, "dsmctl");
			return STATUS_DONE;
		case 'h':
			usage(stdout);
			return STATUS_DONE;
		default:
			usage(stderr);
			return STATUS_USAGE;
		}
	}
	left = argc - optind - 1;
	for (c = commands; c < commands + sizeof(commands) / sizeof(commands[0]); c++) {
		if (left < 0 || strcmp(argv[optind], c->name))
			continue;
		if (!are_right(c, left, argv[optind + 1], given, options))
			return STATUS_USAGE;
		return c->run(argv + optind + 1);
	}
	/* The help is longer than a screen. */
	if (left >= 0)
		fprintf(stderr, "dsmctl: %s is no command; dsmctl --help has them\n", argv[optind]);
	else
		usage(stderr);
	return STATUS_USAGE;
}
