/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What libxl asks of dsmd, the daemon that moves pages of a guest between
 * hosts.  The contract is docs/dsm-control.md.
 * Included at the end of libxl_internal.h.
 *
 * A request is a line of JSON over a UNIX socket, and so is its reply; one
 * request a connection.  Nothing here blocks: what waits, waits in libxl's
 * event loop, and for a bounded time.  Nobody who has no vnode with host=
 * comes here.
 *
 * dsmd is root's, and yet what it says is checked: length, form, each number.
 *
 * Each request can be repeated: it says what is to be, and dsmd makes what is
 * missing and removes what is too much.
 *
 * Context: as for all of libxl, with the context's lock.  No other lock is held
 * while a call waits but the domain's operation lock.
 */
#ifndef LIBXL_DSM_H
#define LIBXL_DSM_H

#include "libxl_vnode_layout.h"
#include "libxl_vnode_span.h"

#define LIBXL__DSM_SOCKET "/run/xenuma/dsmd.sock"
#define LIBXL__DSM_VERSION 1

/* Longest reply, without its new line. */
#define LIBXL__DSM_REPLY_MAX 65536
/* Longest text in it that is shown. */
#define LIBXL__DSM_TEXT_MAX 400

/* Hosts of a guest, at most. */
#define LIBXL__DSM_HOSTS_MAX 16

/* vCPUs of a guest, at most. */
#define LIBXL__DSM_VCPUS_MAX 512

/* How long a reply may take. */
#define LIBXL__DSM_ENABLE_MS 30000
#define LIBXL__DSM_NODE_MS 120000       /* memory is scrubbed, or comes home */
#define LIBXL__DSM_PLACE_MS 90000       /* a host becomes ready */
#define LIBXL__DSM_HOME_MS 60000
#define LIBXL__DSM_STATE_MS 2000
#define LIBXL__DSM_FOLLOW_MS 15000      /* all hosts stand still */

typedef enum {
    LIBXL__DSM_ENABLE,      /* before the domain runs: who, where, how much */
    LIBXL__DSM_NODE,        /* so much memory for a vnode there; 0: none */
    LIBXL__DSM_LEAVING,     /* the guest will empty it down to so much */
    LIBXL__DSM_STATE,       /* how the vnodes do */
    LIBXL__DSM_PLACE,       /* vCPUs of a vnode, which are down, run there */
    LIBXL__DSM_HOME,        /* and here again */
    LIBXL__DSM_FOLLOW,      /* all hosts stand still, or go on, as Xen here */
} libxl__dsm_op;

/* Why not.  The words are the contract's. */
typedef enum {
    LIBXL__DSM_OK,
    /* found here */
    LIBXL__DSM_ABSENT,      /* nobody listens */
    LIBXL__DSM_STRANGER,    /* who listens is not root */
    LIBXL__DSM_TIMEOUT,     /* no reply: what has become of it is not known */
    LIBXL__DSM_CUT,         /* the connection ended: the same */
    LIBXL__DSM_GARBAGE,     /* the reply is none: the same */
    /* dsmd's words: nothing has changed */
    LIBXL__DSM_UNKNOWN_HOST,
    LIBXL__DSM_OWN_HOST,
    LIBXL__DSM_UNREACHABLE,
    LIBXL__DSM_NO_DSMD_THERE,
    LIBXL__DSM_XEN_VERSION,
    LIBXL__DSM_CPU,
    LIBXL__DSM_PAGE_SIZE,
    LIBXL__DSM_SIZES,
    LIBXL__DSM_MEMORY_THERE,
    LIBXL__DSM_MEMORY_HERE,
    LIBXL__DSM_NAME_TAKEN,
    LIBXL__DSM_NOT_POSSIBLE,
    LIBXL__DSM_IN_USE,
    LIBXL__DSM_BUSY,
    LIBXL__DSM_UNKNOWN_VM,
    LIBXL__DSM_VERSION_OF_CONTROL,
    LIBXL__DSM_CPUS_THERE,
    LIBXL__DSM_TSC,
    LIBXL__DSM_PLACES,
    LIBXL__DSM_VCPU_UP,
    LIBXL__DSM_NOT_READY,
    LIBXL__DSM_ONE_HOST,
    LIBXL__DSM_VCPU_INFO,   /* it is done but for this: to be asked again */
    LIBXL__DSM_INTERNAL,
} libxl__dsm_error;

/* Of a range that is no vnode's: the rings of console and xenstore. */
#define LIBXL__DSM_NO_VNODE (~0U)

/* One range of the guest's memory. */
typedef struct {
    unsigned int vnode;
    uint64_t start;             /* bytes */
    uint64_t kb;
    const char *host;           /* NULL: this one's */
    uint64_t pool_kb;           /* of a vnode that spans */
} libxl__dsm_range;

/* vCPUs of a vnode that run on its host while it is attached. */
typedef struct {
    unsigned int first, nr;
    const char *host;
} libxl__dsm_place;

typedef struct {
    libxl__dsm_op op;
    uint32_t domid;
    const char *uuid;           /* 36 characters */
    /* ENABLE */
    const char *name;
    unsigned int nr_vcpus, nr_ranges, nr_places;
    const libxl__dsm_range *range;
    const libxl__dsm_place *place;
    /* PLACE, HOME: of nr_vcpus bits; and host */
    const uint8_t *vcpus;
    /* NODE, and LEAVING: vnode, kb */
    unsigned int vnode;
    const char *host;
    uint64_t kb, pool_kb;       /* kb 0: both are 0 */
} libxl__dsm_request;

/* What STATE says of a vnode. */
typedef struct {
    unsigned int vnode;
    libxl_vnode_link link;
    uint64_t there_kb;          /* memory there */
    uint64_t modified, shared;  /* pages that are here: M, S */
    uint64_t home;              /* pages that are nowhere but there */
    uint64_t faults_per_s;
    uint64_t median_ns, p99_ns; /* of a fault; 0: none yet */
} libxl__dsm_node;

/* What STATE says of a vCPU that is not at home. */
typedef struct {
    unsigned int vcpu;
    const char *host;           /* lives as long as the reply */
} libxl__dsm_vcpu;

typedef struct {
    libxl__dsm_error error;
    char text[LIBXL__DSM_TEXT_MAX + 1]; /* for the operator; printable */
    unsigned int nr_nodes;
    libxl__dsm_node node[VNODE_MAX];
    bool says_vcpus;
    unsigned int nr_vcpus;
    libxl__dsm_vcpu vcpu[LIBXL__DSM_VCPUS_MAX];
    unsigned int nr_paused;
    const char *paused[LIBXL__DSM_HOSTS_MAX];   /* where it stands still */
} libxl__dsm_reply;

/*---------- lines (libxl_dsm_json.c) ----------*/

/* The word of an error, as the contract has it. */
_hidden const char *libxl__dsm_error_word(libxl__dsm_error error);

/* A request with its new line; NULL if it cannot be made (logged). */
_hidden char *libxl__dsm_format(libxl__gc *gc, const libxl__dsm_request *req);

/*
 * A reply, without its new line.  Always fills in *reply; what is no reply is
 * LIBXL__DSM_GARBAGE, with a text that says why.
 */
_hidden void libxl__dsm_parse(libxl__gc *gc, const libxl__dsm_request *req,
                              const char *line, libxl__dsm_reply *reply);

/*---------- the socket (libxl_dsm_socket.c) ----------*/

/*
 * Connect to the dsmd at @path.  On failure reply->error says which, with a
 * text.  The socket does not block.
 */
_hidden int libxl__dsm_connect(libxl__gc *gc, const char *path,
                               libxl__carefd **cfd, libxl__dsm_reply *reply);

/*---------- calls (libxl_dsm.c) ----------*/

typedef struct libxl__dsm_call libxl__dsm_call;

/*
 * @rc: 0
 *      ERROR_VNODE_REFUSED     dsmd has said why not: nothing has changed
 *      ERROR_VNODE_UNSETTLED   what has become of it is not known
 *      ERROR_ABORTED           the same, because of libxl_ao_abort()
 * Each failure but the last has been logged.  The call can be started again.
 */
typedef void libxl__dsm_callback(libxl__egc *egc, libxl__dsm_call *call,
                                 int rc);

struct libxl__dsm_call {
    /* filled in by the caller; all that it points to stays */
    libxl__ao *ao;
    libxl__dsm_request request;
    libxl__dsm_callback *callback;
    bool quiet;                 /* log nothing: the caller says it */
    int within_ms;              /* 0: as long as the request may take */
    /* the result */
    libxl__dsm_reply reply;
    /* private */
    libxl__carefd *cfd;
    libxl__ev_fd efd;
    libxl__ev_time timer;
    char *out, *in;
    size_t out_len, sent, got;
};

/* Before anything else. */
_hidden void libxl__dsm_init(libxl__dsm_call *call);

/*
 * 0: callback will be called once, not from within.  Otherwise it will not:
 * ERROR_VNODE_REFUSED (logged, call->reply says why), or what libxl's events
 * say; nothing was asked.
 */
_hidden int libxl__dsm_start(libxl__gc *gc, libxl__dsm_call *call);

/* Idempotent.  The callback will not be called any more. */
_hidden void libxl__dsm_stop(libxl__gc *gc, libxl__dsm_call *call);

#endif /* LIBXL_DSM_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
