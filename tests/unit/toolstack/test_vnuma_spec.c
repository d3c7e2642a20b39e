// SPDX-License-Identifier: GPL-2.0
/*
 * vnuma= in a domain's configuration: xl_vnuma_spec.c.
 *
 * Each configuration is a list of vnodes, each a "|"-separated list of items.
 * For a wrong one, the message must name the vnode, the key and the reason.
 */
#include <stdlib.h>

#include "tap.h"
#include "xl_vnuma_spec.h"

#define NODE0 "pnode=0|size=512|vcpus=0-1|vdistances=10,21"
#define NODE1 "pnode=1|size=512|vcpus=2-3|vdistances=21,10"

static bool parse(const char *const *nodes, struct vnuma_spec *specs,
                  unsigned int *nr_vcpus, char *error)
{
    unsigned int nr = 0;

    for (; nodes[nr]; nr++) {
        char *copy = strdup(nodes[nr]), *save = NULL, *item;

        for (item = strtok_r(copy, "|", &save); item;
             item = strtok_r(NULL, "|", &save))
            if (!vnuma_spec_item(&specs[nr], nr, item, error)) {
                free(copy);
                return false;
            }
        free(copy);
    }

    return vnuma_spec_check(specs, nr, 2, nr_vcpus, error);
}

static void test_good(void)
{
    static const struct {
        const char *name;
        const char *nodes[5];
        unsigned int nr_vcpus;
    } t[] = {
        { "two nodes", { NODE0, NODE1 }, 4 },
        { "elastic", { NODE0, NODE1 "|elastic=1" }, 4 },
        { "elastic=0", { NODE0, NODE1 "|elastic=0" }, 4 },
        { "elastic without pnode",
          { NODE0, "size=256|vcpus=2|vdistances=21,10|elastic=1" }, 3 },
        { "elastic without vCPUs",
          { NODE0, "size=256|vdistances=21,10|elastic=1" }, 2 },
        { "on another host",
          { NODE0, "size=256|vcpus=2-3|vdistances=21,10|elastic=1|host=b" }, 4 },
        { "on another host, without vCPUs, blanks",
          { NODE0, "size=256|elastic=1|vdistances=21,10|host= b-1.x_y " }, 2 },
        { "on another host, with its vCPUs",
          { NODE0, "size=128|vcpus=2|elastic=1|host=b|remote_vcpus=1|"
            "vdistances=21,10" }, 3 },
        { "on another host, its vCPUs at home",
          { NODE0, "size=128|vcpus=2|elastic=1|host=b|remote_vcpus=0|"
            "vdistances=21,10" }, 3 },
        { "vCPUs here, said where there is no other host",
          { NODE0 "|remote_vcpus=0", NODE1 }, 4 },
        { "one node", { "pnode=1|size=64|vcpus=0|vdistances=10" }, 1 },
        { "blanks", { " pnode = 0 |size= 512|vcpus=0 - 1, 2|vdistances=10" },
          3 },
        { "distances left out", { "pnode=0|size=1|vcpus=0",
                                  "pnode=0|size=1|vcpus=1" }, 2 },
        { "vCPUs interleaved", { "pnode=0|size=1|vcpus=0,2",
                                 "pnode=0|size=1|vcpus=1,3" }, 4 },
        { "four nodes", { "pnode=0|size=1|vcpus=0", "pnode=0|size=1|vcpus=1",
                          "size=128|vcpus=2|elastic=1",
                          "size=128|vcpus=3|elastic=1" }, 4 },
    };

    for (size_t i = 0; i < NR(t); i++) {
        struct vnuma_spec specs[VNUMA_SPEC_NODES] = { 0 };
        char error[VNUMA_SPEC_ERROR] = "";
        unsigned int nr_vcpus = 0;
        bool ok = parse(t[i].nodes, specs, &nr_vcpus, error) &&
                  nr_vcpus == t[i].nr_vcpus;

        ok_("good: %s", ok, t[i].name);
        if (!ok)
            note("%s, %u vCPUs", error, nr_vcpus);
    }
}

static void test_bad(void)
{
    static const struct {
        const char *name;
        const char *nodes[4];
        const char *says[3];
    } t[] = {
        { "no value", { "pnode|size=1|vcpus=0" },
          { "vnode 0", "pnode", "KEY=VALUE" } },
        { "unknown key", { NODE0, NODE1 "|elastik=1" },
          { "vnode 1", "elastik", "known are" } },
        { "key in capitals", { "PNODE=0|size=1|vcpus=0" },
          { "vnode 0", "PNODE", "no key" } },
        { "empty key", { "=0|size=1|vcpus=0" }, { "vnode 0", "no key" } },
        { "key given twice", { "pnode=0|pnode=0|size=1|vcpus=0" },
          { "vnode 0", "pnode=", "twice" } },
        { "pnode is not a number", { "pnode=a|size=1|vcpus=0" },
          { "vnode 0", "pnode=a" } },
        { "pnode is negative", { "pnode=-1|size=1|vcpus=0" },
          { "vnode 0", "pnode=-1" } },
        { "pnode is empty", { "pnode=|size=1|vcpus=0" },
          { "vnode 0", "pnode=" } },
        { "pnode does not exist", { "pnode=2|size=1|vcpus=0" },
          { "vnode 0", "pnode=2", "2 nodes" } },
        { "pnode missing", { "size=1|vcpus=0" },
          { "vnode 0", "pnode=", "missing" } },
        { "size missing", { "pnode=0|vcpus=0" },
          { "vnode 0", "size=", "missing" } },
        { "size is 0", { "pnode=0|size=0|vcpus=0" }, { "vnode 0", "size=0" } },
        { "size has a unit", { "pnode=0|size=1G|vcpus=0" },
          { "vnode 0", "size=1G", "MiB" } },
        { "size is huge", { "pnode=0|size=99999999999999999999|vcpus=0" },
          { "vnode 0", "size=" } },
        { "vcpus missing", { "pnode=0|size=1" },
          { "vnode 0", "vcpus=", "missing" } },
        { "vcpus backwards", { "pnode=0|size=1|vcpus=3-1" },
          { "vnode 0", "vcpus=3-1" } },
        { "vcpus out of bounds", { "pnode=0|size=1|vcpus=512" },
          { "vnode 0", "vcpus=512" } },
        { "vcpus with text", { "pnode=0|size=1|vcpus=0-1x" },
          { "vnode 0", "vcpus=" } },
        { "vcpus end in a comma", { "pnode=0|size=1|vcpus=0," },
          { "vnode 0", "vcpus=" } },
        { "a vCPU in two nodes", { "pnode=0|size=1|vcpus=0-1",
                                   "pnode=0|size=1|vcpus=1" },
          { "vnode 1", "vcpus=", "vCPU 1" } },
        { "a vCPU in no node", { "pnode=0|size=1|vcpus=0,2" },
          { "vnode 0", "vcpus=", "no vCPU 1" } },
        { "elastic vCPU before a home one",
          { "pnode=0|size=1|vcpus=0,2", "size=128|vcpus=1|elastic=1" },
          { "vnode 0", "vcpus=", "elastic" } },
        { "distances too few", { "pnode=0|size=1|vcpus=0|vdistances=10", NODE1 },
          { "vnode 0", "vdistances=", "2 vnodes" } },
        { "distances too many",
          { "pnode=0|size=1|vcpus=0|vdistances=10,20,20" },
          { "vnode 0", "vdistances=", "1 vnodes" } },
        { "more distances than any host has nodes",
          { "pnode=0|size=1|vcpus=0|vdistances=10,11,11,11,11,11,11,11,11,11,"
            "11,11,11,11,11,11,11,11,11,11,11,11,11,11,11,11,11,11,11,11,11,"
            "11,11,11,11,11,11,11,11,11" }, { "vnode 0", "vdistances=" } },
        { "distance below the least",
          { "pnode=0|size=1|vcpus=0|vdistances=9" },
          { "vnode 0", "vdistances=9" } },
        { "distance above the largest",
          { "pnode=0|size=1|vcpus=0|vdistances=255" },
          { "vnode 0", "vdistances=255" } },
        { "remote nearer than local",
          { "pnode=0|size=1|vcpus=0|vdistances=20,10",
            "pnode=0|size=1|vcpus=1|vdistances=20,10" },
          { "vnode 0", "vdistances=", "vnode 1" } },
        { "elastic is neither 0 nor 1", { NODE0, NODE1 "|elastic=yes" },
          { "vnode 1", "elastic=yes", "0 or 1" } },
        { "host is empty", { NODE0, "size=128|elastic=1|host=" },
          { "vnode 1", "host=", "dsm.toml" } },
        { "host with a blank", { NODE0, "size=128|elastic=1|host=a b" },
          { "vnode 1", "host=a b", "dsm.toml" } },
        { "host with a quote", { NODE0, "size=128|elastic=1|host=a\"" },
          { "vnode 1", "host=a\"", "dsm.toml" } },
        { "host with a slash", { NODE0, "size=128|elastic=1|host=a/b" },
          { "vnode 1", "host=a/b", "dsm.toml" } },
        { "host that begins with a dot",
          { NODE0, "size=128|elastic=1|host=.a" },
          { "vnode 1", "host=.a", "dsm.toml" } },
        { "host given twice", { NODE0, "size=128|elastic=1|host=a|host=a" },
          { "vnode 1", "host=", "twice" } },
        { "host without elastic", { NODE0, "size=128|vcpus=2|host=b" },
          { "vnode 1", "host=b", "elastic=1 is missing" } },
        { "host of vnode 0", { NODE0 "|host=b", NODE1 },
          { "vnode 0", "host=b", "elastic=1" } },
        { "remote_vcpus is a word",
          { NODE0, "size=128|vcpus=2|elastic=1|host=b|remote_vcpus=yes" },
          { "vnode 1", "remote_vcpus=yes", "0 or 1" } },
        { "remote_vcpus of no host",
          { NODE0, "size=128|vcpus=2|elastic=1|remote_vcpus=1" },
          { "vnode 1", "remote_vcpus=1", "host= is missing" } },
        { "remote_vcpus without vCPUs",
          { NODE0, "size=128|elastic=1|host=b|remote_vcpus=1" },
          { "vnode 1", "remote_vcpus=1", "vcpus= is missing" } },
        { "host and pnode", { NODE0, "pnode=1|size=128|elastic=1|host=b" },
          { "vnode 1", "host=b", "pnode=1" } },
        { "host's size is not a block",
          { NODE0, "size=100|vdistances=21,10|elastic=1|host=b" },
          { "vnode 1", "size=100", "128 MiB" } },
        { "vnode 0 is elastic", { NODE0 "|elastic=1", NODE1 },
          { "vnode 0", "elastic=1", "boots" } },
        { "elastic size is not a block",
          { NODE0, "size=100|vcpus=2-3|vdistances=21,10|elastic=1" },
          { "vnode 1", "size=100", "128 MiB" } },
    };

    for (size_t i = 0; i < NR(t); i++) {
        struct vnuma_spec specs[VNUMA_SPEC_NODES] = { 0 };
        char error[VNUMA_SPEC_ERROR] = "";
        unsigned int nr_vcpus;
        bool right = !parse(t[i].nodes, specs, &nr_vcpus, error);

        for (size_t j = 0; j < NR(t[i].says) && t[i].says[j]; j++)
            right = right && strstr(error, t[i].says[j]);
        ok_("bad: %s", right, t[i].name);
        if (!right)
            note("it says \"%s\"", error);
    }
}

static void test_too_many(void)
{
    struct vnuma_spec specs[VNUMA_SPEC_NODES] = { 0 };
    char error[VNUMA_SPEC_ERROR] = "";
    unsigned int nr_vcpus;

    ok_("bad: 33 vnodes", !vnuma_spec_check(specs, 33, 2, &nr_vcpus, error));
    ok_("bad: no vnode", !vnuma_spec_check(specs, 0, 2, &nr_vcpus, error));
}

static bool takes_host(size_t len)
{
    struct vnuma_spec spec = { 0 };
    char error[VNUMA_SPEC_ERROR], item[400] = "host=";

    memset(item + 5, 'x', len);

    return vnuma_spec_item(&spec, 1, item, error) && spec.has_host &&
           strlen(spec.host) == len;
}

static void test_host(void)
{
    struct vnuma_spec spec = { 0 };
    char error[VNUMA_SPEC_ERROR];

    ok_("host: its name, without blanks",
        vnuma_spec_item(&spec, 1, "host = beta-2.x ", error) &&
        !strcmp(spec.host, "beta-2.x"));
    ok_("host: as long as dsm.toml's", takes_host(253) && !takes_host(254));
}

static void test_garbage(void)
{
    static const char alphabet[] = "pnode=size=vcpus=elastic=0123456789,-= \t|\xff\n";
    bool terminated = true;

    srand(2);
    for (int i = 0; i < 50000; i++) {
        struct vnuma_spec spec = { 0 };
        char item[64], error[VNUMA_SPEC_ERROR];
        int len = rand() % 60;

        for (int j = 0; j < len; j++)
            item[j] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
        item[len] = '\0';
        memset(error, 'x', sizeof(error));
        if (!vnuma_spec_item(&spec, 1, item, error))
            terminated &= memchr(error, '\0', sizeof(error)) != NULL;
    }
    ok_("garbage: messages fit", terminated);
}

int main(void)
{
    test_good();
    test_bad();
    test_too_many();
    test_host();
    test_garbage();

    return done_testing();
}
