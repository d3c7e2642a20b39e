/* SPDX-License-Identifier: LGPL-2.1-only */
/* xl: what the commands for elastic vnodes share. */
#ifndef XL_VNODE_H
#define XL_VNODE_H

#include <getopt.h>

#include <libxl.h>

/* Exit codes, as in xl-vnode(1). */
enum {
    VNODE_EXIT_DONE,
    VNODE_EXIT_FAILED,      /* no such domain, it stopped, internal error */
    VNODE_EXIT_USAGE,       /* arguments that make no sense */
    VNODE_EXIT_REFUSED,     /* not possible now; nothing has changed */
    VNODE_EXIT_UNDONE,      /* failed or too slow; as before */
    VNODE_EXIT_RESIDUAL,    /* some memory could not leave */
    VNODE_EXIT_UNSETTLED,   /* has not ended; the record of it remains */
    VNODE_EXIT_NOT_UNDONE,  /* failed, and undoing it too: not as before */
};

/* Of the commands that change something, for their help. */
#define VNODE_HELP_EXITS                                                \
    "Exit status: 0 done, 1 failed, 2 usage, 3 refused, 4 undone,\n"    \
    "5 residual, 6 not ended, 7 not undone: see xl-vnode(1)"

/* Exit code for a libxl error. */
int vnode_exit_code(int rc);

/* Says what is wrong with an argument, and ends xl. */
void vnode_usage(const char *command, const char *what, const char *arg)
    __attribute__((noreturn));

/*
 * As def_getopt(), whose place it takes in SWITCH_FOREACH_OPT: but says which
 * long option it is that there is not.  @options have no short form of 'h'.
 */
int vnode_getopt(int argc, char **argv, const char *letters,
                 const struct option *options, const char *command,
                 int required);

/* "2-3,6"; "" for none.  To be freed. */
char *vnode_cpus_string(const libxl_bitmap *cpus);

int main_vnodelist(int argc, char **argv);
int main_vnodeattach(int argc, char **argv);
int main_vnodedetach(int argc, char **argv);
int main_vnodeset(int argc, char **argv);

#endif /* XL_VNODE_H */
