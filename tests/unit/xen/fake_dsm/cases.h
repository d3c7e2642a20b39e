/* SPDX-License-Identifier: GPL-2.0-only */
/* A table of named cases, and a main() for it; case_programs.py runs them. */
#ifndef CASES_H
#define CASES_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct test_case { const char *name; void (*run)(void); };

/* --list, or the name of a case. */
static int main_of(const struct test_case *cases, unsigned int nr, int argc,
                   char **argv)
{
    unsigned int i;

    for ( i = 0; argc == 2 && i < nr; i++ )
        if ( !strcmp(argv[1], "--list") )
            puts(cases[i].name);
        else if ( !strcmp(argv[1], cases[i].name) )
        {
            cases[i].run();
            return 0;
        }

    return argc != 2 || strcmp(argv[1], "--list");
}

#endif
