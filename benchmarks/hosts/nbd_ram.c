/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nbd_ram: a disk in the memory of another host, for a comparison: what an
 * administrator without DSM does for a guest that needs more memory.
 *
 *	nbd_ram serve ADDRESS PORT MIB
 *		Waits for one client, and answers it from memory until it goes.
 *	nbd_ram attach ADDRESS PORT MIB DEVICE
 *		Connects, and gives the connection to Linux's nbd driver.  Stays
 *		until the disk is gone: SIGTERM ends it.
 *
 * It is nbd's transmission phase (the NBD protocol, doc/proto.md: requests of
 * 28 bytes, simple replies) and none of its negotiation: both ends know the
 * size.  All that takes time is Linux's: its nbd driver and its TCP.  The server
 * has one thread and no file system below it, so it is not slower than those
 * that people use.
 *
 * It says "listening", and "attached" with the device, on lines of their own.
 * At its end the server prints {"reads":..,"writes":..,"read_bytes":..,
 * "written_bytes":..}.
 * Exit status: 0; 1 if the client broke the protocol or the network failed;
 * 2 usage, no memory, no socket, no device.
 *
 * A request is checked: its magic, its flags, that it lies within the disk, and
 * its length (at most MAX_REQUEST).  Nobody proves who he is: only for a network
 * that belongs to the benchmark.
 *
 * Context: one thread.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nbd.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MIB		(1024ul * 1024)
#define MAX_MIB		65536ul
#define BLOCK		4096ul
#define MAX_REQUEST	(32 * MIB)
#define SECONDS		60	/* for an answer, before the driver gives up */

static int device = -1;

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("nbd_ram: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	exit(status);
}

static int tcp_socket(const char *address, const char *port,
		      struct sockaddr_in *at)
{
	unsigned long number = strtoul(port, NULL, 10);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(at, 0, sizeof(*at));
	at->sin_family = AF_INET;
	at->sin_port = htons((uint16_t)number);
	if (inet_pton(AF_INET, address, &at->sin_addr) != 1 || !number ||
	    number > UINT16_MAX)
		die(2, "%s port %s: no address", address, port);
	if (fd < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		die(2, "socket: %s", strerror(errno));
	return fd;
}

static size_t size_of(const char *mib)
{
	char *end;
	unsigned long number = strtoul(mib, &end, 10);

	if (end == mib || *end || !number || number > MAX_MIB)
		die(2, "%s: want MiB from 1 to %lu", mib, MAX_MIB);
	return number * MIB;
}

/* --- serve ---------------------------------------------------------------- */

/* Return: false at the end of the bytes before the first; else all are there. */
static bool receive(int fd, void *to, size_t bytes)
{
	size_t got = 0;
	ssize_t n;

	while (got < bytes) {
		n = recv(fd, (char *)to + got, bytes - got, MSG_WAITALL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && got == 0)
			return false;
		if (n <= 0)
			die(1, "the client went within %zu bytes: %s", bytes,
			    n ? strerror(errno) : "end");
		got += (size_t)n;
	}
	return true;
}

static void answer(int fd, const struct nbd_request *request, uint32_t error,
		   const void *data, size_t bytes)
{
	struct nbd_reply reply = {
		.magic = htobe32(NBD_REPLY_MAGIC), .error = htobe32(error),
	};
	struct iovec parts[2] = {
		{ .iov_base = &reply, .iov_len = sizeof(reply) },
		{ .iov_base = (void *)data, .iov_len = bytes },
	};
	unsigned int first = 0;
	ssize_t n;

	memcpy(reply.handle, request->handle, sizeof(reply.handle));
	while (first < 2) {
		n = writev(fd, parts + first, (int)(2 - first));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die(1, "answer: %s", strerror(errno));
		for (; first < 2 && (size_t)n >= parts[first].iov_len; first++)
			n -= (ssize_t)parts[first].iov_len;
		if (first < 2) {
			parts[first].iov_base = (char *)parts[first].iov_base + n;
			parts[first].iov_len -= (size_t)n;
		}
	}
}

static void serve_one(int fd, uint8_t *memory, size_t size)
{
	uint64_t reads = 0, writes = 0, read_bytes = 0, written_bytes = 0;
	struct nbd_request request;

	while (receive(fd, &request, sizeof(request))) {
		uint32_t type = be32toh(request.type);
		uint64_t from = be64toh(request.from);
		uint32_t bytes = be32toh(request.len);

		if (be32toh(request.magic) != NBD_REQUEST_MAGIC)
			die(1, "a request with magic %08x", be32toh(request.magic));
		if (type == NBD_CMD_DISC)
			break;
		if (type == NBD_CMD_FLUSH) {
			answer(fd, &request, 0, NULL, 0);
			continue;
		}
		if ((type != NBD_CMD_READ && type != NBD_CMD_WRITE) ||
		    bytes > MAX_REQUEST || from > size || bytes > size - from)
			die(1, "request of type %u, %u bytes from %" PRIu64 " of %zu",
			    type, bytes, from, size);
		if (type == NBD_CMD_READ) {
			reads++;
			read_bytes += bytes;
			answer(fd, &request, 0, memory + from, bytes);
			continue;
		}
		if (!receive(fd, memory + from, bytes) && bytes)
			die(1, "the client went before the bytes of a write");
		writes++;
		written_bytes += bytes;
		answer(fd, &request, 0, NULL, 0);
	}
	printf("{\"reads\":%" PRIu64 ",\"writes\":%" PRIu64 ",\"read_bytes\":%" PRIu64 ",\"written_bytes\":%" PRIu64 "}\n",
	       reads, writes, read_bytes, written_bytes);
}

static void serve(char **words)
{
	size_t size = size_of(words[2]);
	struct sockaddr_in at;
	int one = 1, fd, listener = tcp_socket(words[0], words[1], &at);
	void *memory;

	/* All of it now: no fault of this host is measured later. */
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED || mlock(memory, size))
		die(2, "no %zu bytes: %s", size, strerror(errno));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 1))
		die(2, "%s port %s: %s", words[0], words[1], strerror(errno));
	puts("listening");
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die(2, "accept: %s", strerror(errno));
	close(listener);
	serve_one(fd, memory, size);
}

/* --- attach --------------------------------------------------------------- */

static void on_term(int sig)
{
	(void)sig;
	ioctl(device, NBD_DISCONNECT);
}

static void attach(char **words)
{
	struct sigaction action = { .sa_handler = on_term };
	size_t size = size_of(words[2]);
	struct sockaddr_in at;
	int fd = tcp_socket(words[0], words[1], &at);

	if (connect(fd, (struct sockaddr *)&at, sizeof(at)))
		die(2, "%s port %s: %s", words[0], words[1], strerror(errno));
	device = open(words[3], O_RDWR | O_CLOEXEC);
	if (device < 0 || ioctl(device, NBD_CLEAR_SOCK) < 0 ||
	    ioctl(device, NBD_SET_BLKSIZE, BLOCK) < 0 ||
	    ioctl(device, NBD_SET_SIZE_BLOCKS, size / BLOCK) < 0 ||
	    ioctl(device, NBD_SET_TIMEOUT, (unsigned long)SECONDS) < 0 ||
	    ioctl(device, NBD_SET_SOCK, (unsigned long)fd) < 0)
		die(2, "%s: %s", words[3], strerror(errno));
	sigaction(SIGTERM, &action, NULL);
	printf("attached %s\n", words[3]);
	fflush(stdout);
	/* Returns when the disk is gone; EINTR: because of the signal. */
	if (ioctl(device, NBD_DO_IT) < 0 && errno != EINTR)
		die(1, "%s: %s", words[3], strerror(errno));
	ioctl(device, NBD_CLEAR_QUE);
	ioctl(device, NBD_CLEAR_SOCK);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 5 && !strcmp(argv[1], "serve"))
		serve(argv + 2);
	else if (argc == 6 && !strcmp(argv[1], "attach"))
		attach(argv + 2);
	else
		die(2, "usage: nbd_ram serve ADDRESS PORT MIB | attach ADDRESS PORT MIB DEVICE");
	return 0;
}
