/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What libxl asks of dsmd: requests and replies as lines of JSON.
 * See libxl_dsm.h.
 *
 * A reply is read like anything that comes from outside: what is missing, has
 * another type, is out of its range or names a vnode twice makes it garbage as
 * a whole.  Keys that are not known are left alone: dsmd may be newer.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

static const char *const error_words[] = {
    [LIBXL__DSM_OK]                 = "ok",
    [LIBXL__DSM_ABSENT]             = "no-dsmd-here",
    [LIBXL__DSM_STRANGER]           = "stranger",
    [LIBXL__DSM_TIMEOUT]            = "timeout",
    [LIBXL__DSM_CUT]                = "cut",
    [LIBXL__DSM_GARBAGE]            = "garbage",
    [LIBXL__DSM_UNKNOWN_HOST]       = "unknown-host",
    [LIBXL__DSM_OWN_HOST]           = "own-host",
    [LIBXL__DSM_UNREACHABLE]        = "unreachable",
    [LIBXL__DSM_NO_DSMD_THERE]      = "no-dsmd-there",
    [LIBXL__DSM_XEN_VERSION]        = "xen-version",
    [LIBXL__DSM_CPU]                = "cpu",
    [LIBXL__DSM_PAGE_SIZE]          = "page-size",
    [LIBXL__DSM_SIZES]              = "sizes",
    [LIBXL__DSM_MEMORY_THERE]       = "memory-there",
    [LIBXL__DSM_MEMORY_HERE]        = "memory-here",
    [LIBXL__DSM_NAME_TAKEN]         = "name-taken",
    [LIBXL__DSM_NOT_POSSIBLE]       = "not-possible",
    [LIBXL__DSM_IN_USE]             = "in-use",
    [LIBXL__DSM_BUSY]               = "busy",
    [LIBXL__DSM_UNKNOWN_VM]         = "unknown-vm",
    [LIBXL__DSM_VERSION_OF_CONTROL] = "version",
    [LIBXL__DSM_CPUS_THERE]         = "cpus-there",
    [LIBXL__DSM_TSC]                = "tsc",
    [LIBXL__DSM_PLACES]             = "places",
    [LIBXL__DSM_VCPU_UP]            = "vcpu-up",
    [LIBXL__DSM_NOT_READY]          = "not-ready",
    [LIBXL__DSM_ONE_HOST]           = "one-host",
    [LIBXL__DSM_VCPU_INFO]          = "vcpu-info",
    [LIBXL__DSM_INTERNAL]           = "internal",
};

static const char *const op_words[] = {
    [LIBXL__DSM_ENABLE] = "enable",
    [LIBXL__DSM_NODE]   = "node",
    [LIBXL__DSM_LEAVING] = "leaving",
    [LIBXL__DSM_STATE]  = "state",
    [LIBXL__DSM_PLACE]  = "place",
    [LIBXL__DSM_HOME]   = "home",
    [LIBXL__DSM_FOLLOW] = "follow",
};

const char *libxl__dsm_error_word(libxl__dsm_error error)
{
    return error_words[error];
}

/*---------- requests ----------*/

static void gen_string(yajl_gen hand, const char *s)
{
    yajl_gen_string(hand, (const unsigned char *)s, strlen(s));
}

static void gen_text(yajl_gen hand, const char *key, const char *value)
{
    gen_string(hand, key);
    gen_string(hand, value);
}

static void gen_number(yajl_gen hand, const char *key, uint64_t value)
{
    gen_string(hand, key);
    yajl_gen_integer(hand, value);
}

static void gen_range(yajl_gen hand, const libxl__dsm_range *r)
{
    yajl_gen_map_open(hand);
    if (r->vnode != LIBXL__DSM_NO_VNODE)
        gen_number(hand, "vnode", r->vnode);
    gen_number(hand, "start", r->start);
    gen_number(hand, "size_kib", r->kb);
    if (r->host) {
        gen_text(hand, "host", r->host);
        gen_number(hand, "pool_kib", r->pool_kb);
    }
    yajl_gen_map_close(hand);
}

static void gen_place(yajl_gen hand, const libxl__dsm_place *p)
{
    yajl_gen_map_open(hand);
    gen_number(hand, "first", p->first);
    gen_number(hand, "vcpus", p->nr);
    gen_text(hand, "host", p->host);
    yajl_gen_map_close(hand);
}

static void gen_enable(yajl_gen hand, const libxl__dsm_request *req)
{
    unsigned int i;

    gen_text(hand, "name", req->name);
    gen_number(hand, "vcpus", req->nr_vcpus);
    gen_string(hand, "ranges");
    yajl_gen_array_open(hand);
    for (i = 0; i < req->nr_ranges; i++)
        gen_range(hand, &req->range[i]);
    yajl_gen_array_close(hand);
    if (!req->nr_places)
        return;
    gen_string(hand, "places");
    yajl_gen_array_open(hand);
    for (i = 0; i < req->nr_places; i++)
        gen_place(hand, &req->place[i]);
    yajl_gen_array_close(hand);
}

static void gen_node(yajl_gen hand, const libxl__dsm_request *req)
{
    gen_number(hand, "vnode", req->vnode);
    gen_text(hand, "host", req->host);
    gen_number(hand, "size_kib", req->kb);
    gen_number(hand, "pool_kib", req->pool_kb);
}

/* PLACE and HOME. */
static void gen_where(yajl_gen hand, const libxl__dsm_request *req)
{
    unsigned int v;

    if (req->op == LIBXL__DSM_PLACE)
        gen_text(hand, "host", req->host);
    gen_string(hand, "vcpus");
    yajl_gen_array_open(hand);
    for (v = 0; v < req->nr_vcpus; v++)
        if (libxl__vnode_has_vcpu(req->vcpus, v))
            yajl_gen_integer(hand, v);
    yajl_gen_array_close(hand);
}

static void gen_leaving(yajl_gen hand, const libxl__dsm_request *req)
{
    gen_number(hand, "vnode", req->vnode);
    gen_number(hand, "size_kib", req->kb);
}

char *libxl__dsm_format(libxl__gc *gc, const libxl__dsm_request *req)
{
    const unsigned char *buf;
    libxl_yajl_length len;
    char *line = NULL;
    yajl_gen hand = libxl_yajl_gen_alloc(NULL);

    if (!hand) {
        LOGD(ERROR, req->domid, "out of memory");
        goto out;
    }
#if HAVE_YAJL_V2
    yajl_gen_config(hand, yajl_gen_beautify, 0);
#endif

    yajl_gen_map_open(hand);
    gen_number(hand, "version", LIBXL__DSM_VERSION);
    gen_text(hand, "op", op_words[req->op]);
    gen_text(hand, "uuid", req->uuid);
    gen_number(hand, "domid", req->domid);
    if (req->op == LIBXL__DSM_ENABLE)
        gen_enable(hand, req);
    else if (req->op == LIBXL__DSM_NODE)
        gen_node(hand, req);
    else if (req->op == LIBXL__DSM_LEAVING)
        gen_leaving(hand, req);
    else if (req->op == LIBXL__DSM_PLACE || req->op == LIBXL__DSM_HOME)
        gen_where(hand, req);
    /* What has failed before fails on. */
    if (yajl_gen_map_close(hand) != yajl_gen_status_ok)
        goto fail;
    if (yajl_gen_get_buf(hand, &buf, &len) != yajl_gen_status_ok)
        goto fail;
    line = GCSPRINTF("%.*s\n", (int)len, (const char *)buf);
    goto out;

 fail:
    LOGD(ERROR, req->domid, "cannot say it to dsmd as JSON");
 out:
    if (hand) yajl_gen_free(hand);
    return line;
}

/*---------- replies ----------*/

/* As one line of printable ASCII: what is none becomes '?'. */
static void copy_text(char out[LIBXL__DSM_TEXT_MAX + 1], const char *s)
{
    unsigned int i;

    for (i = 0; s[i] && i < LIBXL__DSM_TEXT_MAX; i++)
        out[i] = s[i] < 0x20 || s[i] > 0x7e ? '?' : s[i];
    out[i] = '\0';
}

static int garbage(libxl__dsm_reply *reply, const char *why)
{
    reply->error = LIBXL__DSM_GARBAGE;
    reply->nr_nodes = reply->nr_vcpus = reply->nr_paused = 0;
    copy_text(reply->text, why);

    return ERROR_FAIL;
}

/* A number 0 .. @max. */
static bool get_number(const libxl__json_object *o, const char *key,
                       uint64_t max, uint64_t *out)
{
    const libxl__json_object *n = libxl__json_map_get(key, o, JSON_INTEGER);
    long long value = libxl__json_object_get_integer(n);

    if (!n || value < 0 || value > max)
        return false;
    *out = value;

    return true;
}

static bool get_link(const libxl__json_object *o, libxl_vnode_link *link)
{
    static const char *const words[] = {
        [LIBXL_VNODE_LINK_DOWN]    = "down",
        [LIBXL_VNODE_LINK_OPENING] = "opening",
        [LIBXL_VNODE_LINK_UP]      = "up",
        [LIBXL_VNODE_LINK_LOST]    = "lost",
    };
    const char *s =
        libxl__json_object_get_string(libxl__json_map_get("link", o,
                                                          JSON_STRING));
    unsigned int i;

    for (i = 0; s && i < ARRAY_SIZE(words); i++) {
        if (!words[i] || strcmp(words[i], s))
            continue;
        *link = i;
        return true;
    }

    return false;
}

static bool get_node(const libxl__json_object *o, libxl__dsm_node *node)
{
    const uint64_t max = INT64_MAX;
    uint64_t vnode;

    if (!get_number(o, "vnode", VNODE_MAX - 1, &vnode) ||
        !get_link(o, &node->link) ||
        !get_number(o, "size_kib", UINT64_MAX >> 20, &node->there_kb) ||
        !get_number(o, "pages_modified", max, &node->modified) ||
        !get_number(o, "pages_shared", max, &node->shared) ||
        !get_number(o, "pages_home", max, &node->home) ||
        !get_number(o, "faults_per_second", max, &node->faults_per_s) ||
        !get_number(o, "median_ns", max, &node->median_ns) ||
        !get_number(o, "p99_ns", max, &node->p99_ns))
        return false;
    node->vnode = vnode;

    return true;
}

static int parse_nodes(const libxl__json_object *o, libxl__dsm_reply *reply)
{
    const libxl__json_object *list = libxl__json_map_get("vnodes", o,
                                                         JSON_ARRAY);
    const libxl__json_object *one;
    unsigned int i, j;

    if (!list)
        return garbage(reply, "it has no list \"vnodes\"");
    for (i = 0; (one = libxl__json_array_get(list, i)); i++) {
        if (i == VNODE_MAX)
            return garbage(reply, "it has more vnodes than there can be");
        if (!get_node(one, &reply->node[i]))
            return garbage(reply, "a vnode in it is not as it must be");
        for (j = 0; j < i; j++)
            if (reply->node[j].vnode == reply->node[i].vnode)
                return garbage(reply, "it has a vnode twice");
        reply->nr_nodes = i + 1;
    }

    return 0;
}

/* Who is older, or has a guest without places, does not say it. */
static int parse_vcpus(const libxl__json_object *o, libxl__dsm_reply *reply)
{
    const libxl__json_object *list, *one;
    const char *host;
    uint64_t vcpu;
    unsigned int i;

    if (!libxl__json_map_get("vcpus", o, JSON_ANY))
        return 0;
    list = libxl__json_map_get("vcpus", o, JSON_ARRAY);
    if (!list)
        return garbage(reply, "its \"vcpus\" are no list");
    for (i = 0; (one = libxl__json_array_get(list, i)); i++) {
        host = libxl__json_object_get_string(libxl__json_map_get("host", one,
                                                                 JSON_STRING));
        if (i == LIBXL__DSM_VCPUS_MAX || !host ||
            !get_number(one, "vcpu", LIBXL__DSM_VCPUS_MAX - 1, &vcpu))
            return garbage(reply, "a vCPU in it is not as it must be");
        reply->vcpu[i] = (libxl__dsm_vcpu) { .vcpu = vcpu, .host = host };
    }
    reply->nr_vcpus = i;
    reply->says_vcpus = true;

    return 0;
}

/* The same. */
static int parse_paused(const libxl__json_object *o, libxl__dsm_reply *reply)
{
    const libxl__json_object *list, *one;
    const char *host;
    unsigned int i;

    if (!libxl__json_map_get("paused", o, JSON_ANY))
        return 0;
    list = libxl__json_map_get("paused", o, JSON_ARRAY);
    if (!list)
        return garbage(reply, "its \"paused\" is no list");
    for (i = 0; (one = libxl__json_array_get(list, i)); i++) {
        host = libxl__json_object_get_string(one);
        if (i == LIBXL__DSM_HOSTS_MAX || !host)
            return garbage(reply, "a host in it is not as it must be");
        reply->paused[i] = host;
    }
    reply->nr_paused = i;

    return 0;
}

static void parse_state(const libxl__json_object *o, libxl__dsm_reply *reply)
{
    if (!parse_nodes(o, reply) && !parse_vcpus(o, reply))
        parse_paused(o, reply);
}

/* One of dsmd's words; those of this side are not dsmd's to say. */
static libxl__dsm_error error_of(const char *word)
{
    unsigned int i;

    for (i = LIBXL__DSM_UNKNOWN_HOST; i < ARRAY_SIZE(error_words); i++)
        if (!strcmp(error_words[i], word))
            return i;

    return LIBXL__DSM_OK;
}

static void parse_error(const libxl__json_object *o, libxl__dsm_reply *reply)
{
    const char *word, *text;

    word = libxl__json_object_get_string(libxl__json_map_get("error", o,
                                                             JSON_STRING));
    text = libxl__json_object_get_string(libxl__json_map_get("text", o,
                                                             JSON_STRING));
    if (!word || !text || !text[0]) {
        garbage(reply, "it is an error without its word or text");
        return;
    }
    reply->error = error_of(word);
    if (reply->error == LIBXL__DSM_OK)
        garbage(reply, "its error is a word that libxl does not know");
    else
        copy_text(reply->text, text);
}

void libxl__dsm_parse(libxl__gc *gc, const libxl__dsm_request *req,
                      const char *line, libxl__dsm_reply *reply)
{
    const libxl__json_object *o, *ok;
    uint64_t version;

    memset(reply, 0, sizeof(*reply));
    o = libxl__json_parse(gc, line);
    if (!libxl__json_object_is_map(o)) {
        garbage(reply, "it is not a JSON object");
        return;
    }
    if (!get_number(o, "version", UINT32_MAX, &version) ||
        version != LIBXL__DSM_VERSION) {
        garbage(reply, GCSPRINTF("its version is not %d", LIBXL__DSM_VERSION));
        return;
    }
    ok = libxl__json_map_get("ok", o, JSON_BOOL);
    if (!ok)
        garbage(reply, "it does not say whether it is ok");
    else if (!libxl__json_object_get_bool(ok))
        parse_error(o, reply);
    else if (req->op == LIBXL__DSM_STATE)
        parse_state(o, reply);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
