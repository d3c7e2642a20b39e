/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Named cases in TAP: "ok 3 - name", "not ok 4 - name", and at the end how
 * many there were.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NR(a) (sizeof(a) / sizeof((a)[0]))

static int tap_count, tap_failed;

static void __attribute__((format(printf, 1, 3)))
ok_(const char *name, bool passed, ...)
{
    char line[200], *c;
    va_list ap;

    va_start(ap, passed);
    vsnprintf(line, sizeof(line), name, ap);
    va_end(ap);
    for (c = line; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';

    tap_count++;
    tap_failed += !passed;
    printf("%sok %d - %s\n", passed ? "" : "not ", tap_count, line);
}

static inline void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
    va_list ap;

    printf("# ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* The program's exit code. */
static int done_testing(void)
{
    printf("1..%d\n", tap_count);

    return tap_failed ? 1 : 0;
}

#endif /* TAP_H */
