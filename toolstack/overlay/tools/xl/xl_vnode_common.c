/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * xl: what the commands for elastic vnodes share: their command lines, and
 * lists of CPUs.
 *
 * Single-threaded; no locking.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libxl.h>
#include <libxl_utils.h>

#include "xl.h"
#include "xl_utils.h"
#include "xl_vnode.h"

void vnode_usage(const char *command, const char *what, const char *arg)
{
    fprintf(stderr, "%s: %s\n\n", what, arg);
    help(command);
    exit(VNODE_EXIT_USAGE);
}

/* Is this word the whole name of a long option?  getopt takes a beginning. */
static bool is_named(const char *word, const char *name)
{
    return !strncmp(word, "--", 2) && strcspn(word + 2, "=") == strlen(name) &&
           !strncmp(word + 2, name, strlen(name));
}

int vnode_getopt(int argc, char **argv, const char *letters,
                 const struct option *options, const char *command,
                 int required)
{
    char told[16];              /* ':' tells an argument that lacks */
    int opt, found = -1;

    opterr = 0;
    snprintf(told, sizeof(told), ":%s", letters);
    opt = getopt_long(argc, argv, told, options, &found);
    if (found >= 0 && opt != '?' && opt != ':') {
        const char *word = argv[optind - 1];

        if (optarg == word)
            word = argv[optind - 2];
        if (!is_named(word, options[found].name))
            vnode_usage(command, "no such option", word);
    }
    if (opt == 'h' || (opt == '?' && optopt == 'h')) {
        help(command);
        exit(VNODE_EXIT_DONE);
    }
    if (opt == '?' || opt == ':') {
        /* A letter may be one of several in a word; a long option is a word. */
        char letter[] = { '-', optopt, '\0' };
        const char *word = argv[optind > 1 ? optind - 1 : 1];

        vnode_usage(command, opt == ':' ? "this option needs a value"
                             : optopt > CHAR_MAX ? "this option has no value"
                             : "no such option",
                    optopt > 0 && optopt <= CHAR_MAX ? letter : word);
    }
    if (opt == -1 && argc - optind < required) {
        char number[16];

        snprintf(number, sizeof(number), "%d", required);
        vnode_usage(command, "not enough arguments, it needs at least", number);
    }

    return opt;
}

char *vnode_cpus_string(const libxl_bitmap *cpus)
{
    int c, last, nr = cpus->size * 8;
    char *s = xcalloc(nr + 1, 8);
    size_t used = 0;

    for (c = 0; c < nr; c = last + 1) {
        last = c;
        if (!libxl_bitmap_test(cpus, c))
            continue;
        while (last + 1 < nr && libxl_bitmap_test(cpus, last + 1))
            last++;
        used += sprintf(s + used, last > c ? "%s%d-%d" : "%s%d",
                        used ? "," : "", c, last);
    }

    return s;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
