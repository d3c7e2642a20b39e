// SPDX-License-Identifier: GPL-2.0
/* Times of an operation's phases on the host's side: libxl_vnode_phases.c. */
#include "tap.h"
#include "libxl_vnode_phases.h"

static void test_usual(void)
{
    struct vnode_phases p;

    memset(&p, 0x5a, sizeof(p));
    vnode_phases_begin(&p, 1000);
    ok_("nothing has ended", !strcmp(p.text, ""));
    vnode_phases_end(&p, "prepare", 3100);
    ok_("one", !strcmp(p.text, "prepare=2100"));
    vnode_phases_end(&p, "guest", 3208100);
    vnode_phases_end(&p, "settle", 3209900);
    ok_("in order, each from the end of the last", !strcmp(p.text, "prepare=2100,guest=3205000,settle=1800"));
    vnode_phases_begin(&p, 5000000);
    ok_("begun anew", !strcmp(p.text, "") && p.begun_us == 5000000);
}

static void test_odd(void)
{
    struct vnode_phases p;
    size_t len = 0;

    vnode_phases_begin(&p, 1000);
    vnode_phases_end(&p, "prepare", 1000);
    ok_("no time at all", !strcmp(p.text, "prepare=0"));
    vnode_phases_end(&p, "guest", 900);
    ok_("a clock that goes back gives no huge time", !strcmp(p.text, "prepare=0,guest=0"));
    vnode_phases_end(&p, "undo", 900 + UINT64_MAX / 2);
    ok_("a long time is whole", !strcmp(p.text, "prepare=0,guest=0,undo=9223372036854775807"));
    for (int i = 0; i < 100; i++) {
        vnode_phases_end(&p, "again", UINT64_MAX);
        len = strlen(p.text);
        if (len >= sizeof(p.text) || p.text[len - 1] < '0' || p.text[len - 1] > '9')
            break;
    }
    ok_("what does not fit is left out whole", len < sizeof(p.text) && strchr("0123456789", p.text[len - 1]));
}

int main(void)
{
    test_usual();
    test_odd();

    return done_testing();
}
