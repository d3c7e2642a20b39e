/* SPDX-License-Identifier: GPL-2.0 */
/*
 * receive: what comes by one TCP connection goes to standard output.
 *
 * Usage: receive PORT
 * Says "listens" on standard error when it does.
 * Exit status: 0 the other side has ended it; 1 something failed; 2 usage.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "receive: %s: %s\n", what, strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	static char bytes[1 << 16];
	ssize_t got;
	int l, s, on = 1;

	if (argc != 2 || atoi(argv[1]) < 1 || atoi(argv[1]) > 65535) {
		fprintf(stderr, "Usage: receive PORT\n");
		return 2;
	}
	at.sin_port = htons(atoi(argv[1]));
	l = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(l, (struct sockaddr *)&at, sizeof(at)) || listen(l, 1))
		die("listen");
	fprintf(stderr, "listens\n");
	s = accept(l, NULL, NULL);
	if (s < 0)
		die("accept");
	while ((got = read(s, bytes, sizeof(bytes))) > 0)
		if (fwrite(bytes, 1, got, stdout) != (size_t)got)
			die("write");
	if (got < 0)
		die("read");
	if (fflush(stdout))
		die("write");
	return 0;
}
