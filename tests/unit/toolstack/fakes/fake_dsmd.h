/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A dsmd behind a socketpair, in the process under test: it looks for requests
 * when the event loop turns.  What it does is outside the process, and stays when
 * that dies; the process can die just before.
 */
#ifndef FAKE_DSMD_H
#define FAKE_DSMD_H

#include "fake_libxl.h"

#define FAKE_DSMD_POOL_KB 16384ULL      /* for a vnode of NODE_KB */

enum dsmd_mood {
    DSMD_WORKS,
    DSMD_SILENT,                /* neither does nor says anything */
    DSMD_CUTS,                  /* does it, and ends the connection */
    DSMD_CUTS_FIRST,            /* ends the connection */
    DSMD_REFUSES,               /* with world.word and .text */
    DSMD_SAYS,                  /* does nothing and says raw text */
};

struct dsmd {
    bool absent;
    enum dsmd_mood mood;
    unsigned int moody;         /* requests for which it has it; 0: all */
    unsigned int spared;        /* requests before it has it */
    const char *word, *text;    /* REFUSES */
    const char *raw;            /* SAYS; without a new line */
    size_t chunk;               /* bytes at once; 0: all */
    bool narrow;                /* a socket that takes little at once */
    void (*on_request)(void);   /* what happens while it works */
    enum dsmd_mood hint_mood;   /* for "leaving", which is no request */
    /* what it has seen and done */
    unsigned int connections, requests, hints;
    uint64_t hint_kb;           /* of the last one, */
    char hint_target[24];       /* and what the guest was asked for then */
    char request[16384];        /* the last one, without its new line */
    uint64_t there_kb[NR_VNODES], pool_kb[NR_VNODES];
    bool placed;                /* vCPU 4, of vnode 2, runs there */
    bool placed_1;              /* vCPUs 2 and 3, of vnode 1 */
    bool vcpu_up;               /* the guest has it up, whatever it says */
    bool paused;                /* it stands still there */
    bool bad;                   /* it was asked for nonsense */
};

extern struct dsmd dsmd;

/* Is it dsmd's end of the connection? */
bool fake_dsmd_has(int fd);

#endif /* FAKE_DSMD_H */
