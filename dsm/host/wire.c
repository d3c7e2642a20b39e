// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets that do not block, and poll().
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>

#include "wire.h"

double wire_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double host_opening_s(const struct host *host, bool leaves)
{
	return leaves ? HOST_LEAVE_S : host->config.opening_ms / 1000. + HOST_ASK_S;
}

double host_left(const struct host *host, double seconds)
{
	double left = host->end ? host->end - wire_now() : seconds;

	return left < seconds ? left : seconds;
}

static int wait_for(struct wire *wire, short events)
{
	struct pollfd both[2] = {
		{ .fd = wire->fd, .events = events }, { .fd = wire->asker, .events = POLLRDHUP },
	};
	double left = wire->end - wire_now();
	int n;

	if (left <= 0)
		return -ETIMEDOUT;
	n = poll(both, wire->asker ? 2 : 1, (int)(left * 1000.) + 1);
	if (n < 0 && errno != EINTR)
		return -errno;
	return n > 0 && both[1].revents ? -ECANCELED : 0;
}

/* What OpenSSL waits for.  Return: an event; 0: the end; -errno. */
static int wanted(struct wire *wire, int result)
{
	char text[DSM_TRANSPORT_TEXT];
	int end;

	switch (SSL_get_error(wire->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return POLLIN;
	case SSL_ERROR_WANT_WRITE:
		return POLLOUT;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		end = dsm_tls_end(wire->ssl, result, text);
		wire->cut = end == DSM_END_CUT;
		snprintf(wire->text, sizeof(wire->text), "%s%.220s",
			 end == DSM_END_REFUSED ? "it does not accept us: " : "", text);
		return -ECONNRESET;
	}
}

static int handshake(struct wire *wire)
{
	int rc, events;

	do {
		ERR_clear_error();
		errno = 0;
		rc = SSL_do_handshake(wire->ssl);
		if (rc == 1) {
			wire->expires = dsm_expiry_of_peer(wire->ssl);
			return wire->who.host < DSM_MAX_HOSTS ? 0 : -EACCES;
		}
		events = wanted(wire, rc);
		rc = events > 0 ? wait_for(wire, (short)events) : events ? events : -ECONNRESET;
	} while (!rc);
	return rc;
}

static socklen_t address_size(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
}

static int begin_tls(struct wire *wire, const struct host *host, unsigned int peer,
		     bool accept)
{
	wire->who.params = &host->params;
	wire->who.wanted = peer;
	wire->ssl = dsm_tls_session(host->tls, wire->fd, accept, &wire->who);
	return wire->ssl ? handshake(wire) : -ENOMEM;
}

int wire_accept(struct wire *wire, const struct host *host, int fd, double end)
{
	*wire = (struct wire){ .fd = fd, .end = end };
	return begin_tls(wire, host, DSM_NOBODY, true);
}

/* The same address, any port. */
static int bind_address(int fd, const struct sockaddr_storage *own)
{
	struct sockaddr_storage from = *own;

	if (from.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&from)->sin6_port = 0;
	else
		((struct sockaddr_in *)&from)->sin_port = 0;
	return bind(fd, (const struct sockaddr *)&from, address_size(&from)) ? -errno : 0;
}

/* @own: from this address; NULL.  Return: 0; -errno. */
static int connect_to(struct wire *wire, const struct sockaddr *to, socklen_t size,
		      const struct sockaddr_storage *own)
{
	socklen_t length = sizeof(int);
	int rc, error = 0;

	wire->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (wire->fd < 0)
		return -errno;
	rc = own ? bind_address(wire->fd, own) : 0;
	if (rc)
		return rc;
	if (!connect(wire->fd, to, size))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	do {
		struct pollfd one = { .fd = wire->fd, .events = POLLOUT };

		rc = wait_for(wire, POLLOUT);
		if (rc)
			return rc;
		if (poll(&one, 1, 0) > 0)
			break;
	} while (true);
	if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &length))
		return -errno;
	return -error;
}

int wire_unix(struct wire *wire, const char *path, double end)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	*wire = (struct wire){ .fd = -1, .end = end };
	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	return connect_to(wire, (struct sockaddr *)&at, sizeof(at), NULL);
}

void wire_address(const struct sockaddr_storage *address, char *text, size_t size)
{
	char number[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo((const struct sockaddr *)address, address_size(address), number,
			sizeof(number), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, size, "an unknown address");
	else
		snprintf(text, size, "%.80s, port %.8s", number, port);
}

/* Once. */
static int open_to(struct wire *wire, struct host *host, unsigned int peer, double end)
{
	const struct sockaddr_storage *to = &host->config.host[peer].address;
	int rc;

	*wire = (struct wire){ .fd = -1, .end = end };
	rc = connect_to(wire, (const struct sockaddr *)to, address_size(to),
			&host->config.host[host->config.self].address);
	return rc ? rc : begin_tls(wire, host, peer, false);
}

int wire_connect(struct wire *wire, struct host *host, unsigned int peer, double end,
		 struct answer *answer)
{
	/* There is no event for a place that gets free at another host. */
	const struct timespec pause = { .tv_nsec = 100000000 };
	double opening = wire_now() + host->config.opening_ms / 1000.;
	char address[128], within[32];
	int rc;

	if (opening > end)
		opening = end;
	wire_address(&host->config.host[peer].address, address, sizeof(address));
	while ((rc = open_to(wire, host, peer, opening)) && wire->cut && wire_now() < opening) {
		wire_close(wire);
		nanosleep(&pause, NULL);
	}
	if (rc == -ECONNREFUSED) {
		wire_close(wire);
		return answer_error(answer, "no-dsmd-there",
				    "host %s (%s): nobody listens; start dsmd-host there",
				    host_name(host, peer), address);
	}
	if (rc) {
		/* What TLS refuses is not tried again until the time is over. */
		snprintf(within, sizeof(within), " within %u ms", host->config.opening_ms);
		answer_error(answer, "unreachable", "host %s (%s): no connection%s: %s",
			     host_name(host, peer), address, wire->text[0] && !wire->cut ? "" : within,
			     wire->text[0] ? wire->text : strerror(-rc));
		wire_close(wire);
		return -1;
	}
	wire->end = end;
	return 0;
}

/* Some bytes, one way or the other.  Return: how many; 0: the end; -errno. */
static ssize_t move(struct wire *wire, void *bytes, size_t size, bool write)
{
	ssize_t n;
	int events, rc;

	for (;;) {
		events = write ? POLLOUT : POLLIN;
		if (wire->ssl) {
			ERR_clear_error();
			errno = 0;
			n = write ? SSL_write(wire->ssl, bytes, (int)size) :
				    SSL_read(wire->ssl, bytes, (int)size);
			if (n > 0)
				return n;
			events = wanted(wire, (int)n);
			if (events <= 0)
				return events;
		} else {
			n = write ? send(wire->fd, bytes, size, MSG_NOSIGNAL) :
				    read(wire->fd, bytes, size);
			if (n >= 0)
				return n;
			if (errno != EAGAIN && errno != EINTR)
				return -errno;
		}
		rc = wait_for(wire, (short)events);
		if (rc)
			return rc;
	}
}

int wire_write(struct wire *wire, const char *bytes, size_t size)
{
	ssize_t n;

	for (; size; bytes += n, size -= (size_t)n) {
		n = move(wire, (char *)bytes, size, true);
		if (n <= 0)
			return n ? (int)n : -EPIPE;
	}
	return 0;
}

ssize_t wire_read_line(struct wire *wire, char *line, size_t size)
{
	size_t have = 0;
	char *end = NULL;
	ssize_t n;

	while (!end) {
		if (have == size)
			return -EMSGSIZE;
		n = move(wire, line + have, size - have, false);
		if (n <= 0)
			return n ? n : -ECONNRESET;
		have += (size_t)n;
		end = memchr(line, '\n', have);
	}
	if (end + 1 != line + have)
		return -EBADMSG;
	*end = 0;
	return end - line;
}

ssize_t wire_read_all(struct wire *wire, char *bytes, size_t size)
{
	size_t have = 0;
	ssize_t n;

	for (;;) {
		if (have + 1 >= size)
			return -EMSGSIZE;
		n = move(wire, bytes + have, size - have - 1, false);
		if (n < 0)
			return n;
		if (!n)
			break;
		have += (size_t)n;
	}
	bytes[have] = 0;
	return (ssize_t)have;
}

void wire_close(struct wire *wire)
{
	if (wire->ssl) {
		ERR_clear_error();
		SSL_shutdown(wire->ssl);
		SSL_free(wire->ssl);
	}
	if (wire->fd >= 0)
		close(wire->fd);
	wire->ssl = NULL;
	wire->fd = -1;
}

/* ---- Questions ---- */

struct json_object *question_words(const char *op, const char *uuid)
{
	struct json_object *words = json_object_new_object();

	json_object_object_add(words, "version", json_object_new_int(HOST_VERSION));
	json_object_object_add(words, "op", json_object_new_string(op));
	if (uuid)
		json_object_object_add(words, "uuid", json_object_new_string(uuid));
	return words;
}

int question_ask(struct question *question, struct host *host, unsigned int peer,
		 struct json_object *words, double seconds, struct answer *answer)
{
	char *line = NULL;
	int rc;

	question->peer = peer;
	question->wire.fd = -1;
	question->wire.ssl = NULL;
	if (asprintf(&line, "%s\n", json_object_to_json_string_ext(words,
					JSON_C_TO_STRING_PLAIN)) < 0)
		line = NULL;
	json_object_put(words);
	if (!line)
		return answer_error(answer, "internal", "no memory");
	rc = wire_connect(&question->wire, host, peer, wire_now() + host_left(host, seconds), answer);
	if (!rc) {
		rc = wire_write(&question->wire, line, strlen(line));
		if (rc) {
			wire_close(&question->wire);
			rc = answer_error(answer, "unreachable", "host %s: %s",
					  host_name(host, peer), strerror(-rc));
		}
	}
	free(line);
	return rc;
}

int question_reply(struct question *question, struct host *host, struct answer *answer)
{
	char *line = malloc(HOST_LINE);
	ssize_t n = -ENOMEM;
	int rc;

	if (line && question->wire.fd >= 0)
		n = wire_read_line(&question->wire, line, HOST_LINE);
	if (n < 0)
		rc = answer_error(answer, "unreachable", "host %s: no reply: %s%s%s",
				  host_name(host, question->peer), strerror((int)-n),
				  question->wire.text[0] ? ": " : "", question->wire.text);
	else
		rc = answer_read(answer, line, host_name(host, question->peer));
	free(line);
	wire_close(&question->wire);
	return rc;
}

int ask_host(struct host *host, unsigned int peer, struct json_object *words,
	     double seconds, struct answer *answer)
{
	struct question question = { 0 };

	if (question_ask(&question, host, peer, words, seconds, answer))
		return -1;
	return question_reply(&question, host, answer);
}

static int ask_for(struct host *host, int asker, const char *name, const char *command,
		   double seconds, char **text, struct answer *answer)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)], *said = malloc(HOST_LINE);
	struct wire wire = { .fd = -1 };
	ssize_t n = -ENAMETOOLONG;
	char *line = NULL;
	int rc = -1;

	if (text)
		*text = NULL;
	if (!said || asprintf(&line, "%s\n", command) < 0)
		return answer_error(answer, "internal", "no memory");
	if ((size_t)snprintf(path, sizeof(path), "%s/%s.sock", host->folder, name) < sizeof(path)) {
		n = wire_unix(&wire, path, wire_now() + seconds);
		wire.asker = asker;
		if (!n)
			n = wire_write(&wire, line, strlen(line));
		if (!n)
			n = wire_read_all(&wire, said, HOST_LINE);
	}
	wire_close(&wire);
	free(line);
	if (n < 0) {
		answer_error(answer, "internal", "the dsmd of %s on host %s does not answer \"%.*s\": %s",
			     name, host_name(host, host->config.self), (int)strcspn(command, " "),
			     command, strerror((int)-n));
	} else if (!strncmp(said, "ok\n", 3)) {
		rc = 0;
		if (text)
			*text = strdup(said + 3);
	} else if (!strncmp(said, "error: ", 7)) {
		if (said[n - 1] == '\n')
			said[n - 1] = 0;
		answer_words(answer, said + 7);
	} else {
		answer_error(answer, "internal", "the dsmd of %s says neither ok nor error", name);
	}
	free(said);
	return rc;
}

int ask_dsmd(struct host *host, const char *name, const char *command, double seconds,
	     char **text, struct answer *answer)
{
	return ask_for(host, 0, name, command, seconds, text, answer);
}

int ask_dsmd_for_asker(struct host *host, const char *name, const char *command,
		       double seconds, struct answer *answer)
{
	return ask_for(host, host->asker, name, command, seconds, NULL, answer);
}
