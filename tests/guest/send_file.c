/* SPDX-License-Identifier: GPL-2.0 */
/*
 * send_file: a file goes to a TCP connection as it lies in memory, by sendfile(2).
 *
 * Nobody copies its pages in the guest: the backend of its network has them from
 * wherever they are.
 *
 * Usage: send_file ADDRESS PORT FILE      an IPv4 address
 * Prints {"bytes":N} when all of it is sent.
 * Exit status: 0 it is; 1 it is not; 2 usage.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "send_file: %s: %s\n", what, strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct stat file;
	off_t at = 0;
	int from, s;

	if (argc != 4 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 ||
	    atoi(argv[2]) < 1 || atoi(argv[2]) > 65535) {
		fprintf(stderr, "Usage: send_file ADDRESS PORT FILE\n");
		return 2;
	}
	to.sin_port = htons(atoi(argv[2]));
	from = open(argv[3], O_RDONLY);
	if (from < 0 || fstat(from, &file))
		die(argv[3]);
	s = socket(AF_INET, SOCK_STREAM, 0);
	if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	while (at < file.st_size)
		if (sendfile(s, from, &at, file.st_size - at) <= 0)
			die("sendfile");
	/* The other side has all of it when it has seen the end. */
	if (shutdown(s, SHUT_WR) || read(s, &to, 1) < 0)
		die("shutdown");
	printf("{\"bytes\":%lld}\n", (long long)at);
	return 0;
}
