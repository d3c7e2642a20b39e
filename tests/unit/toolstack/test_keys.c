// SPDX-License-Identifier: GPL-2.0
/*
 * What xenstore keys of elastic vnodes may contain: libxl_vnode_keys.c.
 *
 * Tables of good and bad values; then random bytes as the guest's keys, with
 * what must hold whatever they are.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tap.h"
#include "libxl_vnode_keys.h"

#define MIB 1024ULL

static void test_numbers(void)
{
    static const struct {
        const char *s;
        uint64_t max;
        bool ok;
        uint64_t value;
    } t[] = {
        { "0", 10, true, 0 },
        { "10", 10, true, 10 },
        { "11", 10, false },
        { "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
        { "18446744073709551616", UINT64_MAX, false },
        { "99999999999999999999999", UINT64_MAX, false },
        { "", 10, false },
        { NULL, 10, false },
        { "01", 10, false },
        { "00", 10, false },
        { "-1", 10, false },
        { "+1", 10, false },
        { " 1", 10, false },
        { "1 ", 10, false },
        { "1\n", 10, false },
        { "0x1", 10, false },
        { "1k", 10000, false },
    };

    for (size_t i = 0; i < NR(t); i++) {
        uint64_t n = 77;
        bool ok = vnode_parse_number(t[i].s, t[i].max, &n);

        ok_("number \"%s\"", ok == t[i].ok && n == (ok ? t[i].value : 77),
            t[i].s ? t[i].s : "(none)");
    }
}

#define LONG_200 \
    "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp" \
    "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp" \
    "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"

static void test_reports(void)
{
    static const struct {
        const char *name;
        struct vnode_raw raw;
        const char *fault;      /* the key that is to blame, NULL: none */
    } t[] = {
        { "nothing said", { 0 }, NULL },
        { "offline", { .state = "offline", .current_kb = "0" }, NULL },
        { "growing", { .state = "growing", .current_kb = "131072",
                       .progress_kb = "131072" }, NULL },
        { "growing from nothing", { .state = "growing", .current_kb = "0" },
          NULL },
        { "online", { .state = "online", .current_kb = "524288" }, NULL },
        { "draining", { .state = "draining", .current_kb = "4096" }, NULL },
        { "residual", { .state = "residual", .current_kb = "2048",
                        .residual_kb = "2048",
                        .reason = "pinned: 12 pages, pid 318 (pinner)" },
          NULL },
        { "error with text", { .state = "offline", .error = "-12 need 9 KiB" },
          NULL },
        { "error without text", { .state = "offline", .error = "-5" }, NULL },
        { "reason of 200 characters", { .state = "offline",
                                        .reason = LONG_200 }, NULL },

        { "residual without memory, of a vCPU that came back",
          { .state = "residual", .current_kb = "0", .residual_kb = "0",
            .reason = "vCPU 2 is online again" }, NULL },

        { "unknown state", { .state = "sideways" }, "state" },
        { "state in capitals", { .state = "ONLINE", .current_kb = "1" },
          "state" },
        { "empty state", { .state = "" }, "state" },
        { "state absent, by name", { .state = "absent" }, "state" },
        { "more than the range", { .state = "online", .current_kb = "1048577" },
          "current-kb" },
        { "negative size", { .state = "online", .current_kb = "-1" },
          "current-kb" },
        { "huge size", { .state = "online",
                         .current_kb = "36893488147419103232" }, "current-kb" },
        { "size with text", { .state = "online", .current_kb = "12 KiB" },
          "current-kb" },
        { "offline with memory", { .state = "offline", .current_kb = "4" },
          "current-kb" },
        { "no state but memory", { .current_kb = "4" }, "current-kb" },
        { "online without memory", { .state = "online", .current_kb = "0" },
          "current-kb" },
        { "residual above current", { .state = "residual", .current_kb = "4",
                                      .residual_kb = "8" }, "residual-kb" },
        { "progress above the range", { .state = "growing",
                                        .progress_kb = "1048577" },
          "progress-kb" },
        { "error without sign", { .state = "offline", .error = "12 x" },
          "error" },
        { "error 0", { .state = "offline", .error = "-0 x" }, "error" },
        { "error too large", { .state = "offline", .error = "-4096 x" },
          "error" },
        { "error without blank", { .state = "offline", .error = "-12need" },
          "error" },
        { "empty error", { .state = "offline", .error = "" }, "error" },
    };

    for (size_t i = 0; i < NR(t); i++) {
        struct vnode_report r;
        bool ok = vnode_parse_report(&t[i].raw, 1024 * MIB, &r);
        bool right = t[i].fault
            ? !ok && !strncmp(r.fault, t[i].fault, strlen(t[i].fault))
            : ok && !r.fault[0];

        ok_("report: %s", right, t[i].name);
        if (!right)
            note("ok=%d fault=\"%s\"", ok, r.fault);
    }
}

/* Texts are for people: they are made fit to be shown, and decide nothing. */
static void test_texts(void)
{
    static const struct {
        const char *name, *given, *shown;
    } t[] = {
        { "in UTF-8", "pid 7 (gr\xc3\xb6\xc3\x9f)", "pid 7 (gr??" "?" "?)" },
        { "of two lines", "a\nb", "a?b" },
        { "with an escape", "\033[2Jgotcha", "?[2Jgotcha" },
        { "of 200 characters", LONG_200, LONG_200 },
        { "of 201 characters", LONG_200 "p", LONG_200 },
        { "empty", "", "" },
    }, phases[] = {
        { "in order", "notify=1,acks=2", "notify=1,acks=2" },
        { "without names", "a=b,,=1", "" },
        { "without a number", "acks=", "" },
        { "that end in a comma", "acks=1,", "" },
        { "with a tab", "a=1\tb=2", "" },
        { "of 405 characters", "a=1," LONG_200 LONG_200 "=1", "" },
    };
    struct vnode_report r;

    for (size_t i = 0; i < NR(t); i++) {
        struct vnode_raw raw = { .state = "residual", .current_kb = "4",
                                 .residual_kb = "4", .reason = t[i].given };

        ok_("reason %s",
            vnode_parse_report(&raw, 1024, &r) &&
            !strcmp(r.reason, t[i].shown) &&
            vnode_op_outcome(VNODE_OP_DETACH, 0, &r) == VNODE_OUTCOME_RESIDUAL,
            t[i].name);
    }
    for (size_t i = 0; i < NR(phases); i++) {
        struct vnode_raw raw = { .state = "offline",
                                 .phases = phases[i].given };

        ok_("phases %s",
            vnode_parse_report(&raw, 1024, &r) &&
            !strcmp(r.phases, phases[i].shown) &&
            vnode_op_outcome(VNODE_OP_DETACH, 0, &r) == VNODE_OUTCOME_DONE,
            phases[i].name);
    }
}

static void test_error_number(void)
{
    struct vnode_raw raw = { .state = "online", .current_kb = "4",
                             .error = "-12 need 9 KiB, free elsewhere 3 KiB" };
    struct vnode_report r;

    ok_("error: number and text",
        vnode_parse_report(&raw, 1024, &r) && r.error_nr == 12 &&
        !strcmp(r.error, raw.error));
    raw.error = "-16 pid 7 (\xe9t\xe9)";
    ok_("error: text in Latin-1",
        vnode_parse_report(&raw, 1024, &r) && r.error_nr == 16 &&
        !strcmp(r.error, "-16 pid 7 (?t" "?)"));
}

static void test_ops(void)
{
    static const struct {
        const char *s;
        bool ok;
    } t[] = {
        { "1 attach 1 0 524288 417 1048576 0", true },
        { "18446744073709551614 set 3 2048 4096 0 0 4096", true },
        { "7 detach 2 524288 0 1 99 0", true },
        { NULL, false },
        { "", false },
        { "1", false },
        { "1 attach", false },
        { "1 attach 1 0 524288", false },
        { "1 attach 1 0 524288 417", false },
        { "1 attach 1 0 524288 417 1048576", false },
        { "1 attach 1 0 524288 417 1048576 0 ", false },
        { "1 attach 1 0 524288 417 1048576 0 9", false },
        { "1 attach 4 0 524288 417 1048576 0", false },
        { "1 none 1 0 524288 417 1048576 0", false },
        { "1 attachment 1 0 524288 417 1048576 0", false },
        { "1  attach 1 0 524288 417 1048576 0", false },
        { "-1 attach 1 0 524288 417 1048576 0", false },
        { "1 attach 1 0 524288 4294967296 0 0", false },
    };

    for (size_t i = 0; i < NR(t); i++) {
        struct vnode_op_record op;
        char buf[VNODE_OP_TEXT];
        bool ok = vnode_parse_op(t[i].s, 4, &op);

        ok_("record \"%s\"", ok == t[i].ok &&
            (!ok || !strcmp(vnode_format_op(&op, buf, sizeof(buf)), t[i].s)),
            t[i].s ? t[i].s : "(none)");
    }
}

static void test_cpus(void)
{
    static const struct {
        const char *s, *back;   /* back: NULL if s is wrong */
    } t[] = {
        { "", "" },
        { "0", "0" },
        { "2-3,6", "2-3,6" },
        { "6,2,3", "2-3,6" },
        { "0-15", "0-15" },
        { "5-5", "5" },
        { "16", NULL },
        { "0-16", NULL },
        { "3-2", NULL },
        { "1,", NULL },
        { ",1", NULL },
        { "1,,2", NULL },
        { "1-", NULL },
        { "-1", NULL },
        { "a", NULL },
        { "1 2", NULL },
    };

    for (size_t i = 0; i < NR(t); i++) {
        uint8_t map[2];
        char buf[64];
        bool ok = vnode_parse_cpus(t[i].s, 16, map);

        ok_("vCPU list \"%s\"", ok == !!t[i].back &&
            (!ok || (vnode_format_cpus(map, 16, buf, sizeof(buf)) &&
                     !strcmp(buf, t[i].back))), t[i].s);
    }

    {
        uint8_t map[2] = { 0x55, 0x55 };
        char buf[8];

        ok_("vCPU list that does not fit",
            !vnode_format_cpus(map, 16, buf, sizeof(buf)));
    }
}

static void test_outcomes(void)
{
    static const struct {
        const char *name;
        enum vnode_op_kind kind;
        struct vnode_raw raw;
        enum vnode_outcome outcome;
        uint64_t kb;            /* that was asked for */
    } t[] = {
        { "attached", VNODE_OP_ATTACH,
          { .state = "online", .current_kb = "4" }, VNODE_OUTCOME_DONE, 4 },
        { "attached, an error of before", VNODE_OP_ATTACH,
          { .state = "online", .current_kb = "4", .error = "-12 x" },
          VNODE_OUTCOME_DONE, 4 },
        { "attached, with less than was asked for", VNODE_OP_ATTACH,
          { .state = "online", .current_kb = "4" }, VNODE_OUTCOME_FAILED, 8 },
        { "attach failed", VNODE_OP_ATTACH,
          { .state = "offline", .error = "-12 no memory" },
          VNODE_OUTCOME_FAILED },
        { "attach without a word", VNODE_OP_ATTACH, { 0 },
          VNODE_OUTCOME_FAILED },
        { "attach still growing", VNODE_OP_ATTACH,
          { .state = "growing", .current_kb = "4" }, VNODE_OUTCOME_FAILED },
        { "attach, garbage", VNODE_OP_ATTACH,
          { .state = "online", .current_kb = "x" }, VNODE_OUTCOME_FAULTY },
        { "detached", VNODE_OP_DETACH, { .state = "offline" },
          VNODE_OUTCOME_DONE },
        { "detached, an old error", VNODE_OP_DETACH,
          { .state = "offline", .error = "-5 x" }, VNODE_OUTCOME_DONE },
        { "detach left a residual", VNODE_OP_DETACH,
          { .state = "residual", .current_kb = "4", .residual_kb = "4" },
          VNODE_OUTCOME_RESIDUAL },
        { "detach refused", VNODE_OP_DETACH,
          { .state = "online", .current_kb = "4", .error = "-12 need 9 KiB" },
          VNODE_OUTCOME_FAILED },
        { "detach without effect", VNODE_OP_DETACH,
          { .state = "online", .current_kb = "4" }, VNODE_OUTCOME_FAILED },
        { "resized", VNODE_OP_SET, { .state = "online", .current_kb = "4" },
          VNODE_OUTCOME_DONE, 4 },
        { "resize failed", VNODE_OP_SET,
          { .state = "online", .current_kb = "4", .error = "-12 x" },
          VNODE_OUTCOME_FAILED, 8 },
        { "still larger than it was to be", VNODE_OP_SET,
          { .state = "online", .current_kb = "8" }, VNODE_OUTCOME_FAILED, 4 },
    };

    for (size_t i = 0; i < NR(t); i++) {
        struct vnode_report r;

        vnode_parse_report(&t[i].raw, 1024, &r);
        ok_("outcome: %s", vnode_op_outcome(t[i].kind, t[i].kb, &r) ==
            t[i].outcome, t[i].name);
    }
}

static void test_allowances(void)
{
    static const struct {
        const char *name;
        uint64_t target, allowed;
        struct vnode_raw raw;
        uint64_t settled;
    } t[] = {
        { "absent", 0, 0, { 0 }, 0 },
        { "gone after a detach", 0, 512, { .state = "offline" }, 0 },
        { "online", 512, 512, { .state = "online", .current_kb = "512" }, 512 },
        { "smaller after a resize", 256, 512,
          { .state = "online", .current_kb = "256" }, 256 },
        { "not smaller yet", 256, 512,
          { .state = "online", .current_kb = "300" }, 300 },
        { "residual", 0, 512,
          { .state = "residual", .current_kb = "8", .residual_kb = "8" }, 8 },
        { "claims more than it was allowed", 0, 256,
          { .state = "residual", .current_kb = "1024" }, 256 },
        { "garbage does not lower it", 0, 512, { .state = "gone" }, 512 },
        { "garbage does not raise it", 0, 0,
          { .state = "online", .current_kb = "99999" }, 0 },
    };

    for (size_t i = 0; i < NR(t); i++) {
        struct vnode_report r;

        vnode_parse_report(&t[i].raw, 1024, &r);
        ok_("allowance: %s",
            vnode_settled_allowance(t[i].target, t[i].allowed, &r) ==
            t[i].settled, t[i].name);
    }
}

/* Random bytes, biased towards what parsers look at. */
static char *garbage(void)
{
    static const char *const bits[] = {
        "offline", "online", "residual", "-", "-12 ", "0", "1024", "99999999",
        ",", " ", "\n", "\x7f", "\xff", "=", "18446744073709551616",
    };
    size_t len = 0;
    char *s = calloc(1, 1200);
    int pieces = rand() % 12;

    if (rand() % 4 == 0) {
        free(s);
        return NULL;
    }
    while (pieces--) {
        if (rand() % 2) {
            const char *b = bits[(size_t)rand() % NR(bits)];

            memcpy(s + len, b, strlen(b));
            len += strlen(b);
        } else {
            for (int n = rand() % 60; n--;)
                s[len++] = rand() % 255 + 1;
        }
    }

    return s;
}

static bool printable(const char *s, size_t max)
{
    size_t i;

    for (i = 0; s[i]; i++)
        if (i >= max || s[i] < 0x20 || s[i] > 0x7e)
            return false;

    return true;
}

static void test_garbage(void)
{
    bool texts = true, ranges = true, allowance = true, records = true;

    srand(4711);
    for (int i = 0; i < 20000; i++) {
        struct vnode_raw raw = {
            garbage(), garbage(), garbage(), garbage(),
            garbage(), garbage(), garbage(),
        };
        struct vnode_report r;
        struct vnode_op_record op;
        bool ok = vnode_parse_report(&raw, 1024, &r);
        uint64_t a = vnode_settled_allowance(64, 512, &r);

        texts &= printable(r.reason, VNODE_TEXT_MAX) &&
                 printable(r.error, VNODE_TEXT_MAX) &&
                 printable(r.phases, VNODE_PHASES_MAX) &&
                 printable(r.fault, sizeof(r.fault)) && ok == !r.fault[0];
        ranges &= r.current_kb <= 1024 && r.residual_kb <= 1024 &&
                  r.progress_kb <= 1024 && r.error_nr >= 0 &&
                  r.error_nr <= 4095;
        allowance &= a >= 64 && a <= 512 && (ok || a == 512);
        if (vnode_parse_op(raw.reason, 4, &op))
            records &= op.vnode < 4;
        free((char *)raw.state);
        free((char *)raw.current_kb);
        free((char *)raw.residual_kb);
        free((char *)raw.progress_kb);
        free((char *)raw.reason);
        free((char *)raw.error);
        free((char *)raw.phases);
    }
    ok_("garbage: texts are short and printable", texts);
    ok_("garbage: numbers are within their ranges", ranges);
    ok_("garbage: never lowers an allowance, nor raises it", allowance);
    ok_("garbage: records name existing vnodes", records);
}

static void test_total(void)
{
    ok_("total: as much as there is", vnode_total_plausible(5, 5));
    ok_("total: more than there is", !vnode_total_plausible(6, 5));
}

int main(void)
{
    test_numbers();
    test_reports();
    test_error_number();
    test_texts();
    test_ops();
    test_cpus();
    test_outcomes();
    test_allowances();
    test_total();
    test_garbage();

    return done_testing();
}
