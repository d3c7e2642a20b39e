// SPDX-License-Identifier: GPL-2.0
/*
 * One line in, one text out.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <ev.h>

#include "control.h"

#define ANSWER_MOST	(16u << 20)	/* bytes that a client takes */

struct client {
	struct dsm_control *control;
	ev_io io;
	ev_timer deadline;
	bool used;
	uint64_t number;		/* for an answer that comes later */
	bool waits;			/* for it */
	size_t have;
	char line[DSM_CONTROL_LINE];
	char *answer;			/* NULL: not yet */
	size_t size, sent;
};

struct dsm_control {
	struct ev_loop *loop;
	ev_io io;
	struct client client[DSM_CONTROL_CLIENTS];
	uint64_t numbers;
	const struct dsm_control_calls *calls;
	void *context;
	struct sockaddr_un address;
};

static void close_client(struct client *client)
{
	struct ev_loop *loop = client->control->loop;

	ev_io_stop(loop, &client->io);
	ev_timer_stop(loop, &client->deadline);
	close(client->io.fd);
	free(client->answer);
	client->answer = NULL;
	client->used = false;
}

static void set_deadline(struct client *client, double seconds)
{
	ev_timer_stop(client->control->loop, &client->deadline);
	ev_timer_set(&client->deadline, seconds, 0.);
	ev_timer_start(client->control->loop, &client->deadline);
}

static void watch(struct client *client, int events)
{
	ev_io_stop(client->control->loop, &client->io);
	if (!events)
		return;
	ev_io_set(&client->io, client->io.fd, events);
	ev_io_start(client->control->loop, &client->io);
}

/* "error: " and the words, or "ok" and the text. */
static void send_answer(struct client *client, bool good, const char *text)
{
	int size = asprintf(&client->answer, good ? "ok\n%s" : "error: %s\n",
			    text ? text : "");

	client->waits = false;
	if (size < 0) {
		client->answer = NULL;
		close_client(client);
		return;
	}
	client->size = (size_t)size;
	client->sent = 0;
	set_deadline(client, DSM_CONTROL_SECONDS);
	watch(client, EV_WRITE);
}

static void command(struct client *client)
{
	struct dsm_control *control = client->control;
	char *line = client->line, *word = strchr(line, ' ');
	enum dsm_control_answer answer;
	char *text = NULL;

	if (word)
		*word++ = 0;
	/* Who is answered before the return is answered for good. */
	client->waits = true;
	set_deadline(client, DSM_CONTROL_LATE);
	answer = control->calls->command(control->context, line, word ? word : "",
					 client->number, &text);
	if (answer != DSM_CONTROL_LATER)
		send_answer(client, answer == DSM_CONTROL_OK, text);
	free(text);
}

void dsm_control_answer(struct dsm_control *control, uint64_t number,
			enum dsm_control_answer answer, const char *text)
{
	struct client *client = control->client;

	for (; client < control->client + DSM_CONTROL_CLIENTS; client++)
		if (client->used && client->waits && client->number == number)
			send_answer(client, answer == DSM_CONTROL_OK, text);
}

bool dsm_control_waits(const struct dsm_control *control, uint64_t number)
{
	const struct client *client = control->client;

	for (; client < control->client + DSM_CONTROL_CLIENTS; client++)
		if (client->used && client->waits && client->number == number)
			return true;
	return false;
}

/* It has no more to say: has it gone, or does it only not write any more? */
static void wait_on(struct client *client)
{
	struct pollfd end = { .fd = client->io.fd };
	char more[64];
	ssize_t n = read(client->io.fd, more, sizeof(more));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n || poll(&end, 1, 0) != 0)
		close_client(client);
	else
		watch(client, 0);
}

static void read_line(struct client *client)
{
	ssize_t n = read(client->io.fd, client->line + client->have,
			 sizeof(client->line) - client->have);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_client(client);
		return;
	}
	client->have += (size_t)n;
	end = memchr(client->line, '\n', client->have);
	if (!end && client->have == sizeof(client->line)) {
		close_client(client);
	} else if (end) {
		*end = 0;
		if (memchr(client->line, 0, (size_t)(end - client->line)))
			close_client(client);
		else
			command(client);
	}
}

static void write_answer(struct client *client)
{
	ssize_t n = send(client->io.fd, client->answer + client->sent,
			 client->size - client->sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		client->sent += (size_t)n;
	if (n <= 0 || client->sent == client->size)
		close_client(client);
}

static void on_client(struct ev_loop *loop, ev_io *io, int events)
{
	struct client *client = io->data;

	(void)loop;
	(void)events;
	if (client->answer)
		write_answer(client);
	else if (client->waits)
		wait_on(client);
	else
		read_line(client);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	close_client(timer->data);
}

static void on_connect(struct ev_loop *loop, ev_io *io, int events)
{
	struct dsm_control *control = io->data;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client = control->client;

	(void)events;
	if (fd < 0)
		return;
	while (client < control->client + DSM_CONTROL_CLIENTS && client->used)
		client++;
	if (client == control->client + DSM_CONTROL_CLIENTS) {
		close(fd);
		return;
	}
	memset(client, 0, sizeof(*client));
	client->control = control;
	client->used = true;
	client->number = ++control->numbers;
	ev_io_init(&client->io, on_client, fd, EV_READ);
	client->io.data = client;
	ev_io_start(loop, &client->io);
	ev_timer_init(&client->deadline, on_deadline, DSM_CONTROL_SECONDS, 0.);
	client->deadline.data = client;
	ev_timer_start(loop, &client->deadline);
}

static int set_address(struct sockaddr_un *address, const char *path)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

/* Does anybody listen?  If not, what is left of it is removed. */
static int take_place(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = fd < 0 ? -errno : 0;

	if (!rc && (!connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
		    errno == EAGAIN))
		rc = -EADDRINUSE;
	else if (!rc && unlink(address->sun_path) && errno != ENOENT)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

int dsm_control_create(struct ev_loop *loop, const char *path,
		       const struct dsm_control_calls *calls, void *context,
		       struct dsm_control **control)
{
	struct dsm_control *c = calloc(1, sizeof(*c));
	mode_t mask;
	int fd = -1, rc;

	if (!c)
		return -ENOMEM;
	c->loop = loop;
	c->calls = calls;
	c->context = context;
	rc = set_address(&c->address, path);
	if (!rc)
		rc = take_place(&c->address);
	if (rc)
		goto fail;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0177);
	rc = fd < 0 || bind(fd, (struct sockaddr *)&c->address, sizeof(c->address)) ||
	     listen(fd, DSM_CONTROL_CLIENTS) ? -errno : 0;
	umask(mask);
	if (rc)
		goto fail;
	ev_io_init(&c->io, on_connect, fd, EV_READ);
	c->io.data = c;
	ev_io_start(loop, &c->io);
	*control = c;
	return 0;

fail:
	if (fd >= 0)
		close(fd);
	free(c);
	return rc;
}

void dsm_control_destroy(struct dsm_control *control)
{
	struct client *client;

	if (!control)
		return;
	for (client = control->client; client < control->client + DSM_CONTROL_CLIENTS; client++)
		if (client->used)
			close_client(client);
	ev_io_stop(control->loop, &control->io);
	close(control->io.fd);
	unlink(control->address.sun_path);
	free(control);
}

unsigned int dsm_control_clients(const struct dsm_control *control)
{
	unsigned int i, nr = 0;

	for (i = 0; i < DSM_CONTROL_CLIENTS; i++)
		nr += control->client[i].used;
	return nr;
}

/* ---- A client ---- */

static int read_all(int fd, char **text)
{
	size_t have = 0, room = 0;
	ssize_t n;

	*text = NULL;
	for (;;) {
		if (room - have < 2) {
			char *more = realloc(*text, room + 65536);

			if (!more || room >= ANSWER_MOST)
				return more ? -EMSGSIZE : -ENOMEM;
			*text = more;
			room += 65536;
		}
		n = read(fd, *text + have, room - have - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (!n)
			break;
		have += (size_t)n;
	}
	(*text)[have] = 0;
	return strlen(*text) == have ? 0 : -EPROTO;
}

/* What follows the first line's word. */
static int understand(char *text)
{
	if (!strncmp(text, "ok\n", 3)) {
		memmove(text, text + 3, strlen(text + 3) + 1);
		return 0;
	}
	if (!strncmp(text, "error: ", 7) && text[strlen(text) - 1] == '\n') {
		text[strlen(text) - 1] = 0;
		memmove(text, text + 7, strlen(text + 7) + 1);
		return -EREMOTEIO;
	}
	return -EPROTO;
}

int dsm_control_ask_line(const char *path, const char *line_text, double seconds,
			 char **answer_text)
{
	struct timeval patience = { .tv_sec = (long)seconds };
	struct sockaddr_un address;
	char line[DSM_CONTROL_LINE];
	int size = snprintf(line, sizeof(line), "%s\n", line_text);
	int rc = set_address(&address, path), fd;

	*answer_text = NULL;
	if (rc)
		return rc;
	if (size < 0 || (size_t)size >= sizeof(line) || strchr(line_text, '\n'))
		return -EINVAL;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		rc = -errno;
	else if (send(fd, line, (size_t)size, MSG_NOSIGNAL) != size)
		rc = -EPIPE;
	else
		rc = read_all(fd, answer_text);
	if (fd >= 0)
		close(fd);
	if (rc) {
		free(*answer_text);
		*answer_text = NULL;
	}
	return rc;
}

int dsm_control_ask(const char *path, const char *command, double seconds,
		    char **answer_text)
{
	int rc = dsm_control_ask_line(path, command, seconds, answer_text);

	if (!rc)
		rc = understand(*answer_text);
	if (rc && rc != -EREMOTEIO) {
		free(*answer_text);
		*answer_text = NULL;
	}
	return rc;
}
