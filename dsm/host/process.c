// SPDX-License-Identifier: GPL-2.0
/*
 * The dsmd of a VM as a process: begin, is it there, end.
 *
 * It is in a session of its own and outlives who started it.  It keeps UUID/alive
 * open, which is locked (fcntl(2), a lock of the open file: it goes through fork()
 * and exec(), and can be looked at without being taken): so who wants to know
 * whether it lives needs no pid, and its pid is that of a process that lives as
 * long as the lock is held.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "wire.h"

#define PATH	512
#define SAID	1024

static int path_of(const struct host *host, const char *uuid, const char *file, char path[PATH])
{
	int n = snprintf(path, PATH, "%s/vm/%s/%s", host->folder, uuid, file);

	return n < 0 || n >= PATH ? -ENAMETOOLONG : 0;
}

/* The lock is looked at, not taken: who starts a dsmd would find it held. */
bool dsmd_lives(const struct host *host, const char *uuid)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[PATH];
	bool held;
	int fd;

	if (path_of(host, uuid, "alive", path))
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT && errno != ENOTDIR;
	held = fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
	close(fd);
	return held;
}

pid_t dsmd_pid(const struct host *host, const char *uuid)
{
	char path[PATH], text[16] = "";
	ssize_t n;
	int fd;

	if (!dsmd_lives(host, uuid) || path_of(host, uuid, "pid", path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	n = atoi(text);
	return n > 1 ? (pid_t)n : 0;
}

bool dsmd_has_ended(const struct host *host, const char *uuid)
{
	return dsmd_was_started(host, uuid) && !dsmd_lives(host, uuid);
}

/* ---- It has died ---- */

/* A file of the VM's name, beside the socket: no two VMs of a host have the same. */
static int path_beside(const struct host *host, const struct record *record,
		       const char *suffix, char path[PATH])
{
	int n = snprintf(path, PATH, "%s/%s%s", host->folder, record->name, suffix);

	return n < 0 || n >= PATH ? -ENAMETOOLONG : 0;
}

static void remove_beside(const struct host *host, const struct record *record,
			  const char *suffix)
{
	char path[PATH];

	if (!path_beside(host, record, suffix, path) && unlink(path) && errno != ENOENT)
		host_say(SAY_WARNING, record->name, "%s: %s", path, strerror(errno));
}

static void remove_traces(struct host *host, const struct record *record)
{
	remove_beside(host, record, ".sock");
	remove_beside(host, record, ".failed");
	host->xen->forget(record->uuid);
}

/* Whose pages nobody knows of any more. */
static void say_what_is_lost(const struct host *host, const struct record *record,
			     char why[HOST_TEXT])
{
	unsigned int i, self = host->config.self;
	uint64_t frames;
	int n;

	n = snprintf(why, HOST_TEXT, "host %s: its dsmd has ended", host_name(host, self));
	for (i = 0; i < host->config.nr_hosts && n > 0 && n < HOST_TEXT; i++) {
		frames = record_frames_of(record, i);
		if (frames && (record_is_home(host, record) || i == self))
			n += snprintf(why + n, (size_t)(HOST_TEXT - n),
				      "; who has which of up to %llu pages of host %s is lost with it",
				      (unsigned long long)frames, host_name(host, i));
	}
}

void dsmd_died(struct host *host, const struct record *record)
{
	char path[PATH], why[HOST_TEXT];
	int rc, fd;

	if (path_beside(host, record, ".failed", path) || !access(path, F_OK))
		return;
	say_what_is_lost(host, record, why);
	host_say(SAY_ERROR, record->name, "the VM has failed: %s", why);
	rc = host->xen->fail(record_is_home(host, record) ? record->domid : 0, record->uuid, why);
	if (rc) {
		/* The next sweep does it; Xen pauses the domain meanwhile. */
		host_say(SAY_ERROR, record->name, "Xen does not end it: %s", strerror(-rc));
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || dprintf(fd, "%s\n", why) < 0)
		host_say(SAY_WARNING, record->name, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* ---- Start ---- */

static int write_pid(const struct host *host, const char *uuid, pid_t pid)
{
	char path[PATH], beside[PATH + 8];
	int fd, rc = path_of(host, uuid, "pid", path);

	if (rc)
		return rc;
	snprintf(beside, sizeof(beside), "%s.new", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%d\n", pid) < 0 || rename(beside, path))
		rc = -errno;
	close(fd);
	return rc;
}

/* In the new process.  Does not return. */
static void become_dsmd(const struct host *host, const char *uuid, const char *description,
			const char *notify, int alive)
{
	const char *words[] = {
		host->dsmd, "-c", host->config_file, "-f", host->folder,
		host->unlocked ? "-u" : "-s", description, NULL,
	};
	sigset_t none;
	int rc;

	/* By itself: so there is no moment at which it lives without a pid. */
	rc = write_pid(host, uuid, getpid());
	if (rc) {
		host_say(SAY_ERROR, NULL, "the pid of %s: %s", uuid, strerror(-rc));
		_exit(127);
	}
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	fcntl(alive, F_SETFD, 0);
	setenv("NOTIFY_SOCKET", notify, 1);
	execv(host->dsmd, (char *const *)words);
	host_say(SAY_ERROR, NULL, "%s: %s", host->dsmd, strerror(errno));
	_exit(127);
}

static int listen_for_word(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	unlink(path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	return fd;
}

/* "READY=1\nSTATUS=running", or "STATUS=why not" before it ends. */
static bool is_running(const char *said)
{
	return strstr(said, "READY=1") && strstr(said, "STATUS=running");
}

/* Take what it has said.  Return: does it run? */
static bool hear(int words, char *status)
{
	char said[SAID];
	bool runs = false;
	char *at;
	ssize_t n;

	while ((n = recv(words, said, sizeof(said) - 1, 0)) > 0) {
		said[n] = 0;
		runs |= is_running(said);
		at = strstr(said, "STATUS=");
		if (at)
			snprintf(status, SAID, "%.*s", (int)strcspn(at + 7, "\n"), at + 7);
	}
	return runs;
}

/* What dsmd said before it ended, in the contract's words. */
static int say_why(const struct host *host, const struct record *record, const char *status,
		   struct answer *answer)
{
	const char *word = "internal";

	if (strstr(status, ": DSM: "))
		word = "not-possible";
	else if (strstr(status, "Cannot allocate memory"))
		word = record_is_home(host, record) ? "memory-here" : "memory-there";
	return answer_error(answer, word, "host %s: dsmd of %s did not start: %s",
			    host_name(host, host->config.self), record->guest,
			    status[0] ? status : "its log says why");
}

static int wait_until_it_runs(struct host *host, const struct record *record, pid_t pid,
			      int words, struct answer *answer)
{
	double begin = wire_now(), end = begin + host_left(host, HOST_START_S);
	int process = pidfd_open(pid, 0);
	struct pollfd both[2] = {
		{ .fd = words, .events = POLLIN }, { .fd = process, .events = POLLIN },
	};
	char status[SAID] = "";
	bool runs = false, ended = process < 0;

	while (!runs && !ended && wire_now() < end) {
		if (poll(both, 2, (int)((end - wire_now()) * 1000.) + 1) < 0 && errno != EINTR)
			break;
		ended = both[1].revents;
		runs = hear(words, status);
	}
	if (process >= 0)
		close(process);
	if (runs && !ended)
		return 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!ended)
		return answer_error(answer, "internal", "host %s: dsmd of %s does not run after %.0f s: %s",
				    host_name(host, host->config.self), record->guest,
				    end - begin, status);
	return say_why(host, record, status, answer);
}

/*
 * Who has started it is gone, and with him what it says to him.  There is no event
 * for a socket that comes: it is tried again and again.
 */
static int wait_until_it_answers(struct host *host, const struct record *record,
				 struct answer *answer)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	double end = wire_now() + host_left(host, HOST_START_S);
	struct answer last = { 0 };
	int rc;

	while ((rc = ask_dsmd(host, record->name, "status", HOST_ASK_S, NULL, &last)) &&
	       dsmd_lives(host, record->uuid_text) && wire_now() < end) {
		answer_free(&last);
		nanosleep(&pause, NULL);
	}
	if (rc)
		answer_error(answer, last.word, "%s", last.text);
	answer_free(&last);
	return rc;
}

int dsmd_start(struct host *host, const struct record *record, struct answer *answer)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char description[PATH], notify[PATH], alive_path[PATH];
	int alive, words, rc = -1;
	pid_t pid;

	if (dsmd_lives(host, record->uuid_text))
		return wait_until_it_answers(host, record, answer);
	/* Short: a socket's path has 107 letters. */
	snprintf(notify, sizeof(notify), "%s/vm/%d.n", host->folder, getpid());
	if (path_of(host, record->uuid_text, "vm.json", description) ||
	    path_of(host, record->uuid_text, "alive", alive_path))
		return answer_error(answer, "internal", "%s: too long", host->folder);
	alive = open(alive_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (alive < 0 || fcntl(alive, F_OFD_SETLK, &lock)) {
		answer_error(answer, "internal", "%s: %s", alive_path, strerror(errno));
		if (alive >= 0)
			close(alive);
		return -1;
	}
	remove_beside(host, record, ".failed");
	words = listen_for_word(notify);
	pid = words < 0 ? -1 : fork();
	if (!pid)
		become_dsmd(host, record->uuid_text, description, notify, alive);
	close(alive);
	if (pid < 0)
		answer_error(answer, "internal", "no process for %s: %s", record->guest,
			     strerror(words < 0 ? -words : errno));
	else
		rc = wait_until_it_runs(host, record, pid, words, answer);
	if (words >= 0)
		close(words);
	unlink(notify);
	if (rc && pid > 0)
		remove_traces(host, record);
	return rc;
}

/* ---- End ---- */

/* Return: has it ended? */
static bool ends_within(pid_t pid, double seconds)
{
	struct pollfd one = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	bool ended = one.fd < 0;

	if (!ended) {
		ended = poll(&one, 1, (int)(seconds * 1000.)) > 0;
		close(one.fd);
	}
	waitpid(pid, NULL, WNOHANG);
	return ended;
}

bool dsmd_was_started(const struct host *host, const char *uuid)
{
	char path[PATH];

	return !path_of(host, uuid, "pid", path) && !access(path, F_OK);
}

/* It, and nobody who has its number by now. */
static void kill_dsmd(const struct host *host, const char *uuid, pid_t pid)
{
	int process = pidfd_open(pid, 0);

	if (process < 0)
		return;
	if (dsmd_pid(host, uuid) == pid)
		pidfd_send_signal(process, SIGKILL, NULL, 0);
	close(process);
	ends_within(pid, 2.);
}

/* A slice of ours, whose dsmd had no time to destroy it, or not for all of it. */
static int destroy_slice(struct host *host, const struct record *record, struct answer *answer)
{
	uint32_t domid = 0;
	int rc = host->xen->find_slice(record->uuid, &domid);

	if (rc == -ESRCH)
		return 0;
	if (!rc)
		rc = host->xen->destroy(domid);
	if (rc)
		return answer_error(answer, "internal", "host %s: the memory of %s (domain %u) can't be given back: %s",
				    host_name(host, host->config.self), record->guest, domid,
				    strerror(-rc));
	return 0;
}

/* Without a pid there is no event: it is looked again and again. */
static void wait_for_lock(const struct host *host, const char *uuid, double seconds)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	double end = wire_now() + seconds;

	while (dsmd_lives(host, uuid) && wire_now() < end)
		nanosleep(&pause, NULL);
}

static int does_not_end(const struct host *host, const struct record *record, pid_t pid,
			struct answer *answer)
{
	const char *here = host_name(host, host->config.self);

	if (pid)
		return answer_error(answer, "internal", "host %s: dsmd of %s (pid %d) does not end",
				    here, record->guest, pid);
	return answer_error(answer, "internal", "host %s: dsmd of %s does not end, and %s/vm/%s/pid does not say which process it is; kill it",
			    here, record->guest, host->folder, record->uuid_text);
}

int dsmd_end(struct host *host, const struct record *record, struct answer *answer)
{
	struct answer ignored = { 0 };
	pid_t pid = dsmd_pid(host, record->uuid_text);
	bool told = dsmd_lives(host, record->uuid_text) &&
		    !ask_dsmd(host, record->name, "forget force", 2., NULL, &ignored);

	answer_free(&ignored);
	if (pid && (!told || !ends_within(pid, 5.)))
		kill_dsmd(host, record->uuid_text, pid);
	else if (!pid && told)
		wait_for_lock(host, record->uuid_text, 5.);
	if (dsmd_lives(host, record->uuid_text))
		return does_not_end(host, record, pid, answer);
	if (!record_is_home(host, record) && record->begun && destroy_slice(host, record, answer))
		return -1;
	/* What else it had no time for. */
	if (dsmd_was_started(host, record->uuid_text))
		remove_traces(host, record);
	return 0;
}
