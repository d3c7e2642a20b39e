/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * main() of a program of cases: --list prints their names, a name runs one.
 *
 * Each program has a struct test_case of its own, with a name and what its cases
 * differ in: this is included last, behind its cases[] and its run().
 */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *name = argc == 2 ? argv[1] : "";
    const struct test_case *t;

    for ( t = cases; t < cases + sizeof(cases) / sizeof(cases[0]); t++ )
        if ( !strcmp(name, "--list") )
            puts(t->name);
        else if ( !strcmp(name, t->name) )
        {
            run(t);
            return 0;
        }

    return strcmp(name, "--list") ? 2 : 0;
}
