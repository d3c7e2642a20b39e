// SPDX-License-Identifier: GPL-2.0
/*
 * What libxl asks of dsmd: requests and replies as lines (libxl_dsm_json.c).
 * The contract is docs/dsm-control.md.  Calls are test_span.c's.
 */
#include "fake_dsmd.h"
#include "tap.h"

#define UUID "00010203-0405-0607-0809-0a0b0c0d0e0f"

static bool formats(const libxl__dsm_request *req, const char *line)
{
    const char *s = libxl__dsm_format(&fake_gc, req);

    if (s && !strcmp(s, line))
        return true;
    note("it is %s", s ? s : "nothing");

    return false;
}

static void test_requests(void)
{
    static const libxl__dsm_range ranges[] = {
        { 0, 0, 512 << 10, NULL, 0 },
        { 1, 6ULL << 30, 1 << 20, "b-1", 65536 },
    };

    ok_("enable", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_ENABLE, .domid = 7, .uuid = UUID, .name = "a \"b\"",
            .nr_vcpus = 5, .nr_ranges = 2, .range = ranges },
        "{\"version\":1,\"op\":\"enable\",\"uuid\":\"" UUID "\",\"domid\":7,"
        "\"name\":\"a \\\"b\\\"\",\"vcpus\":5,\"ranges\":[{\"vnode\":0,"
        "\"start\":0,\"size_kib\":524288},{\"vnode\":1,\"start\":6442450944,"
        "\"size_kib\":1048576,\"host\":\"b-1\",\"pool_kib\":65536}]}\n"));
    ok_("node", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_NODE, .domid = 7, .uuid = UUID, .vnode = 1,
            .host = "b", .kb = 2048, .pool_kb = 640 },
        "{\"version\":1,\"op\":\"node\",\"uuid\":\"" UUID "\",\"domid\":7,"
        "\"vnode\":1,\"host\":\"b\",\"size_kib\":2048,\"pool_kib\":640}\n"));
    ok_("enable, with places", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_ENABLE, .domid = 7, .uuid = UUID, .name = "a",
            .nr_vcpus = 5, .nr_places = 2, .place = (libxl__dsm_place []) {
                { 2, 2, "b" }, { 4, 1, "c" } } },
        "{\"version\":1,\"op\":\"enable\",\"uuid\":\"" UUID "\",\"domid\":7,"
        "\"name\":\"a\",\"vcpus\":5,\"ranges\":[],\"places\":["
        "{\"first\":2,\"vcpus\":2,\"host\":\"b\"},"
        "{\"first\":4,\"vcpus\":1,\"host\":\"c\"}]}\n"));
    ok_("place", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_PLACE, .domid = 7, .uuid = UUID, .host = "b",
            .nr_vcpus = 12, .vcpus = (uint8_t []) { 0x0c, 0x08 } },
        "{\"version\":1,\"op\":\"place\",\"uuid\":\"" UUID "\",\"domid\":7,"
        "\"host\":\"b\",\"vcpus\":[2,3,11]}\n"));
    ok_("home", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_HOME, .domid = 7, .uuid = UUID, .host = "b",
            .nr_vcpus = 5, .vcpus = (uint8_t []) { 0x18 } },
        "{\"version\":1,\"op\":\"home\",\"uuid\":\"" UUID "\",\"domid\":7,"
        "\"vcpus\":[3,4]}\n"));
    ok_("follow", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_FOLLOW, .domid = 7, .uuid = UUID },
        "{\"version\":1,\"op\":\"follow\",\"uuid\":\"" UUID "\",\"domid\":7}\n"));
    ok_("leaving", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_LEAVING, .domid = 7, .uuid = UUID, .vnode = 1,
            .kb = 2048 },
        "{\"version\":1,\"op\":\"leaving\",\"uuid\":\"" UUID "\",\"domid\":7,"
        "\"vnode\":1,\"size_kib\":2048}\n"));
    ok_("state", formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_STATE, .domid = 7, .uuid = UUID },
        "{\"version\":1,\"op\":\"state\",\"uuid\":\"" UUID "\",\"domid\":7}\n"));
    ok_("a line has one new line, whatever the name",
        formats(&(libxl__dsm_request) {
            .op = LIBXL__DSM_ENABLE, .domid = 7, .uuid = UUID, .name = "a\nb" },
        "{\"version\":1,\"op\":\"enable\",\"uuid\":\"" UUID "\",\"domid\":7,"
        "\"name\":\"a\\nb\",\"vcpus\":0,\"ranges\":[]}\n"));
}

#define V "\"version\":1,"
#define OK V "\"ok\":true"
#define NODE(n) "{\"vnode\":" n ",\"link\":\"up\",\"size_kib\":1024," \
    "\"pages_modified\":1,\"pages_shared\":2,\"pages_home\":3," \
    "\"faults_per_second\":4,\"median_ns\":5,\"p99_ns\":6}"

static const struct {
    const char *name;
    libxl__dsm_op op;
    const char *line;
    libxl__dsm_error error;
    const char *text;           /* a part of it */
} replies[] = {
    { "ok", LIBXL__DSM_NODE, "{" OK "}" },
    { "ok, and keys that nobody knows", LIBXL__DSM_NODE,
      "{" OK ",\"more\":[{}]}" },
    { "state of none", LIBXL__DSM_STATE, "{" OK ",\"vnodes\":[]}" },
    { "state of two", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("1") "," NODE("2") "]}" },
    { "an error", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"error\":\"cpu\",\"text\":\"avx2\"}",
      LIBXL__DSM_CPU, "avx2" },
    { "an error of state", LIBXL__DSM_STATE,
      "{" V "\"ok\":false,\"error\":\"unknown-vm\",\"text\":\"x\"}",
      LIBXL__DSM_UNKNOWN_VM, "x" },
    { "a text that is not printable", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"error\":\"cpu\",\"text\":\"a\\u001b\\nb\"}",
      LIBXL__DSM_CPU, "a??b" },
    /* garbage */
#define BAD LIBXL__DSM_GARBAGE
    { "nothing", LIBXL__DSM_NODE, "", BAD, "not a JSON object" },
    { "no JSON", LIBXL__DSM_NODE, "ok", BAD, "not a JSON object" },
    { "half of it", LIBXL__DSM_NODE, "{" OK, BAD, "not a JSON object" },
    { "a list", LIBXL__DSM_NODE, "[]", BAD, "not a JSON object" },
    { "no version", LIBXL__DSM_NODE, "{\"ok\":true}", BAD, "version is not 1" },
    { "another version", LIBXL__DSM_NODE, "{\"version\":2,\"ok\":true}", BAD,
      "version is not 1" },
    { "a version that is a text", LIBXL__DSM_NODE,
      "{\"version\":\"1\",\"ok\":true}", BAD, "version is not 1" },
    { "neither ok nor not", LIBXL__DSM_NODE, "{\"version\":1}", BAD, "ok" },
    { "ok is a text", LIBXL__DSM_NODE, "{" V "\"ok\":\"true\"}", BAD, "ok" },
    { "an error without a word", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"text\":\"x\"}", BAD, "without its word" },
    { "an error without a text", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"error\":\"cpu\"}", BAD, "word or text" },
    { "an error with an empty text", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"error\":\"cpu\",\"text\":\"\"}", BAD, "text" },
    { "an error that nobody knows", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"error\":\"blue\",\"text\":\"x\"}", BAD, "not know" },
    { "an error that is ok", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"error\":\"ok\",\"text\":\"x\"}", BAD, "not know" },
    { "an error that only libxl can find", LIBXL__DSM_NODE,
      "{" V "\"ok\":false,\"error\":\"timeout\",\"text\":\"x\"}", BAD,
      "not know" },
    { "state without vnodes", LIBXL__DSM_STATE, "{" OK "}", BAD, "vnodes" },
    { "vnodes are no list", LIBXL__DSM_STATE, "{" OK ",\"vnodes\":{}}", BAD,
      "vnodes" },
    { "a vnode is a number", LIBXL__DSM_STATE, "{" OK ",\"vnodes\":[1]}", BAD,
      "not as it must be" },
    { "a vnode that cannot be", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("32") "]}", BAD, "not as it must be" },
    { "a vnode below 0", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("-1") "]}", BAD, "not as it must be" },
    { "a vnode and a half", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("1.5") "]}", BAD, "not as it must be" },
    { "a vnode twice", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("1") "," NODE("1") "]}", BAD, "twice" },
    { "vCPUs", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[],\"vcpus\":[{\"vcpu\":511,\"host\":\"b\"}]}" },
    { "vCPUs are no list", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("1") "],\"vcpus\":{}}", BAD, "are no list" },
    { "a vCPU without a host", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[],\"vcpus\":[{\"vcpu\":1}]}", BAD, "a vCPU in it" },
    { "a vCPU that is a number", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[],\"vcpus\":[1]}", BAD, "a vCPU in it" },
    { "a vCPU that cannot be", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[],\"vcpus\":[{\"vcpu\":512,\"host\":\"b\"}]}", BAD,
      "a vCPU in it" },
    { "hosts that stand still", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[],\"paused\":[\"b\"]}" },
    { "what stands still is no list", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("1") "],\"paused\":true}", BAD,
      "is no list" },
    { "what stands still is a number", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[],\"paused\":[1]}", BAD, "a host in it" },
    { "more hosts stand still than there can be", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[],\"paused\":[\"b\",\"b\",\"b\",\"b\",\"b\","
      "\"b\",\"b\",\"b\",\"b\",\"b\",\"b\",\"b\",\"b\",\"b\",\"b\",\"b\","
      "\"b\"]}", BAD, "a host in it" },
    { "a vnode that is right and one that is not", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[" NODE("1") ",{\"vnode\":2}]}", BAD, "must be" },
    { "a link that nobody knows", LIBXL__DSM_STATE,
      "{" OK ",\"vnodes\":[{\"vnode\":1,\"link\":\"blue\",\"size_kib\":1,"
      "\"pages_modified\":1,\"pages_shared\":2,\"pages_home\":3,"
      "\"faults_per_second\":4,\"median_ns\":5,\"p99_ns\":6}]}", BAD,
      "not as it must be" },
};

static void test_replies(void)
{
    size_t i;

    for (i = 0; i < NR(replies); i++) {
        libxl__dsm_request req = { .op = replies[i].op };
        libxl__dsm_reply r;
        bool good;

        memset(&r, 0xff, sizeof(r));
        libxl__dsm_parse(&fake_gc, &req, replies[i].line, &r);
        good = r.error == replies[i].error &&
               (replies[i].text ? !!strstr(r.text, replies[i].text)
                                : !r.text[0]) &&
               (!r.error || (!r.nr_nodes && !r.nr_paused));
        ok_("reply: %s", good, replies[i].name);
        if (!good)
            note("error %s, \"%s\"", libxl__dsm_error_word(r.error), r.text);
    }
}

/* A reply of so many vnodes, the last of them number 0 once more. */
static libxl__dsm_error state_of(unsigned int nr, const char *kib,
                                 libxl__dsm_reply *r)
{
    static char line[(VNODE_MAX + 2) * 256];
    libxl__dsm_request req = { .op = LIBXL__DSM_STATE };
    size_t n = sprintf(line, "{" OK ",\"vnodes\":[");
    unsigned int i;

    for (i = 0; i < nr; i++)
        n += sprintf(line + n, "%s{\"vnode\":%u,\"link\":\"up\","
                     "\"size_kib\":%s,\"pages_modified\":1,"
                     "\"pages_shared\":2,\"pages_home\":3,"
                     "\"faults_per_second\":4,\"median_ns\":5,\"p99_ns\":6}",
                     i ? "," : "", i % VNODE_MAX, kib);
    strcpy(line + n, "]}");
    libxl__dsm_parse(&fake_gc, &req, line, r);

    return r->error;
}

static void test_many_vcpus(unsigned int nr, libxl__dsm_error error)
{
    libxl__dsm_request req = { .op = LIBXL__DSM_STATE };
    static char line[20000];
    libxl__dsm_reply r;
    unsigned int i;

    strcpy(line, "{" OK ",\"vnodes\":[],\"vcpus\":[");
    for (i = 0; i < nr; i++)
        sprintf(line + strlen(line), "%s{\"vcpu\":1,\"host\":\"b\"}",
                i ? "," : "");
    strcat(line, "]}");
    libxl__dsm_parse(&fake_gc, &req, line, &r);
    ok_("state: %u vCPUs", r.error == error && r.nr_vcpus == (error ? 0 : nr),
        nr);
}

static void test_state(void)
{
    libxl__dsm_request req = { .op = LIBXL__DSM_STATE };
    libxl__dsm_reply r, many;

    libxl__dsm_parse(&fake_gc, &req, "{" OK ",\"vnodes\":[" NODE("31") "]}", &r);
    ok_("state: each number in its place",
        r.nr_nodes == 1 && r.node[0].vnode == 31 &&
        r.node[0].link == LIBXL_VNODE_LINK_UP && r.node[0].there_kb == 1024 &&
        r.node[0].modified == 1 && r.node[0].shared == 2 &&
        r.node[0].home == 3 && r.node[0].faults_per_s == 4 &&
        r.node[0].median_ns == 5 && r.node[0].p99_ns == 6 && !r.says_vcpus &&
        /* as many as there can be, and as much */
        !state_of(VNODE_MAX, "1024", &many) && many.nr_nodes == VNODE_MAX &&
        state_of(VNODE_MAX + 1, "1024", &many) == BAD &&
        strstr(many.text, "more vnodes") &&
        !state_of(1, "17592186044415", &many) &&
        state_of(1, "17592186044416", &many) == BAD);
    libxl__dsm_parse(&fake_gc, &req, "{" OK ",\"vnodes\":[],\"vcpus\":["
                     "{\"vcpu\":1,\"host\":\"b\"},"
                     "{\"vcpu\":2,\"host\":\"c\"}]}", &r);
    ok_("state: where vCPUs are", r.says_vcpus && r.nr_vcpus == 2 &&
        r.vcpu[0].vcpu == 1 && !strcmp(r.vcpu[0].host, "b") &&
        r.vcpu[1].vcpu == 2 && !strcmp(r.vcpu[1].host, "c"));
    test_many_vcpus(513, LIBXL__DSM_GARBAGE);
    test_many_vcpus(512, LIBXL__DSM_OK);
}

static void test_text(void)
{
    char line[2000] = "{" V "\"ok\":false,\"error\":\"cpu\",\"text\":\"";
    libxl__dsm_request req = { .op = LIBXL__DSM_NODE };
    libxl__dsm_reply r;

    memset(line + strlen(line), 'x', 1000);
    strcat(line, "\"}");
    libxl__dsm_parse(&fake_gc, &req, line, &r);
    ok_("a long text is cut", r.error == LIBXL__DSM_CPU &&
        strlen(r.text) == LIBXL__DSM_TEXT_MAX);
}

static void test_garbage(void)
{
    static const char good[] = "{" OK ",\"vnodes\":[" NODE("1") "]}";
    libxl__dsm_request req = { .op = LIBXL__DSM_STATE };
    bool sane = true;
    int i;

    srand(7);
    for (i = 0; i < 20000; i++) {
        char line[sizeof(good)];
        libxl__dsm_reply r;
        int changes = 1 + rand() % 3;

        memcpy(line, good, sizeof(good));
        while (changes--)
            line[(size_t)rand() % (sizeof(good) - 1)] = 1 + rand() % 255;
        libxl__dsm_parse(&fake_gc, &req, line, &r);
        sane &= r.error ? r.error == LIBXL__DSM_GARBAGE && r.text[0] &&
                          !r.nr_nodes
                        : r.nr_nodes == 1 && r.node[0].vnode < VNODE_MAX;
        if (i % 200 == 0)
            fake_end();
    }
    ok_("bytes that are changed: garbage, or a state that can be", sane);
}

int main(void)
{
    fake_boot();
    test_requests();
    test_replies();
    test_state();
    test_text();
    test_garbage();
    libxl__json_parse(&fake_gc, NULL);
    fake_end();

    return done_testing();
}
