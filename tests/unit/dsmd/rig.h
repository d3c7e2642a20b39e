/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hosts with a transport each, in one event loop, and others that play a
 * stranger or the network between them, each in a thread with sockets that
 * block.  The clock that the transports see stands still unless a case plays
 * it; a case that waits for what does not come ends after PATIENCE
 * seconds, or those of DSMD_PATIENCE.
 *
 * All hosts and strangers are at 127.0.0.1, or at DSMD_ADDRESS; with
 * DSMD_TRANSPORT=rdma the hosts talk over RDMA, which needs an address that an
 * RDMA device has.
 */
#ifndef RIG_H
#define RIG_H

#include <pthread.h>
#include <stdatomic.h>

#include <ev.h>
#include <openssl/ssl.h>

#include "case.h"
#include "dice.h"
#include "link.h"
#include "papers.h"

#define PATIENCE	60.
#define HOSTS		3
#define OPENING		(10 * 1000000000ull)	/* ns */
#define QUESTION	(1 * 1000000000ull)
#define DEADLINE	(3 * 1000000000ull)
#define NS		1000000000ull
#define MAX_ENDS	64

/* One host's end, and what its transport said. */
struct host {
	struct dsm_transport_params params;
	struct dsm_transport *transport;
	char text[DSM_TRANSPORT_TEXT];
	unsigned int ups, messages, pages, rooms, round_trips, nr_ends;
	struct { unsigned int times, by, lost; } says_lost;	/* the last one */
	uint32_t epoch;
	unsigned int from;
	uint64_t last_round_trip;
	unsigned int clocks;		/* samples */
	struct dsm_clock_sample last_clock;
	uint64_t tsc_offset;		/* its TSC is clock_ns and that */
	struct dsm_msg last;
	uint8_t page[DSM_PAGE_BYTES];
	struct {
		unsigned int host;
		enum dsm_end reason;
		char text[DSM_TRANSPORT_TEXT];
	} end[MAX_ENDS];
	/* More for a message. */
	void (*on_message)(struct host *host, const struct dsm_msg *msg,
			   const uint8_t *page);
	void (*on_end)(struct host *host);
	void *more;
};

/* A peer that is none, or lies: a client or a server of one connection. */
struct stranger {
	void (*script)(struct stranger *stranger);
	const void *argument;
	unsigned int port;	/* to connect to; 0: it is a server at listen_fd */
	const char *address;	/* that it comes from; NULL: ours */
	struct papers papers;	/* none if empty; the caller's */
	const struct papers *between;	/* CAs above the papers, likewise */
	unsigned int nr_between;
	int tls_version;	/* highest; 0: any */
	pthread_t thread;
	int fd, listen_fd;
	SSL_CTX *context;
	SSL *ssl;
	atomic_bool proved;	/* its handshake ended well */
	atomic_uint got;	/* bytes that it could read */
	atomic_bool done;
};

/* The network between an opener and who listens at port. */
struct relay {
	int listen_fd;
	unsigned int port;	/* to connect to */
	pthread_t thread;
	atomic_ullong forward, back;	/* bytes that went through */
	atomic_ullong cut_at;		/* forward bytes, then the end */
	atomic_ullong flip_at;		/* bit 0 of this forward byte is wrong */
	uint8_t *record;		/* of what went forward */
	size_t record_size;
	atomic_ullong repeat_from, repeat_to;	/* bytes of the record */
	atomic_bool repeat;		/* once more, now */
	atomic_bool stop;
};

extern struct ev_loop *loop;
extern uint64_t clock_ns;
extern struct papers ca, other_ca;

/* Begin and end of a case. */
void rig_begin(void);
void rig_end(void);
/** A TSC for params.tsc: 1 GHz, clock_ns and the host's tsc_offset. */
uint64_t rig_tsc(void *context);

/* A file in the case's own folder. */
const char *rig_file(const char *name);

/* Is the transport RDMA? */
bool rig_is_rdma(void);

/* What a host's parameters are when all is right; then its transport. */
void host_prepare(struct host *host, unsigned int number);
void host_start(struct host *host);
void host_stop(struct host *host);

/* The certificate that is right for a host. */
struct papers host_papers(unsigned int number);
extern const char *const host_names[HOSTS];

/*
 * Host @a opens to @b, and both are up: with epoch 7, and one more each time.
 */
void connect_hosts(struct host *a, struct host *b);
void point_to(struct host *a, unsigned int number, unsigned int port);
void set_address(struct sockaddr_storage *address, unsigned int port);

/* Run the loop until it is true. */
#define UNTIL(condition) do {						\
	patience_begin(#condition);					\
	while (!(condition))						\
		ev_run(loop, EVRUN_ONCE);				\
	patience_end();							\
} while (0)

void patience_begin(const char *what);
void patience_end(void);

/* What has come is done; nothing is waited for. */
void run_pending(void);

unsigned int listen_at_any(int *fd);
void stranger_start(struct stranger *stranger);
/* The host starts and expects host 1, with this epoch; the stranger connects to it. */
void stranger_meets(struct stranger *stranger, struct host *host, uint32_t epoch);
void stranger_join(struct stranger *stranger);	/* with the loop running */
bool stranger_write(struct stranger *stranger, const void *bytes, size_t size);
bool stranger_read(struct stranger *stranger, void *bytes, size_t size);
void stranger_read_to_end(struct stranger *stranger);

void relay_start(struct relay *relay, unsigned int to_port);
void relay_stop(struct relay *relay);

struct dsm_msg message(uint32_t epoch, unsigned int type, uint64_t gfn);

#endif
