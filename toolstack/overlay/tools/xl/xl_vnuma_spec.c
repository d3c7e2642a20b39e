/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * The value of vnuma= in a domain's configuration, parsed and checked.
 * See xl_vnuma_spec.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "xl_vnuma_spec.h"

#define FAIL(...) (snprintf(error, VNUMA_SPEC_ERROR, __VA_ARGS__), false)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *s)
{
    while (is_blank(*s))
        s++;

    return s;
}

/* Decimal digits, 0 .. @max; returns what follows them, or NULL. */
static const char *parse_digits(const char *s, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    const char *p;

    for (p = s; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > max)
            return NULL;
    }
    if (p == s)
        return NULL;
    *out = value;

    return p;
}

/* A number and nothing else. */
static bool parse_number(const char *s, uint64_t max, uint64_t *out)
{
    s = parse_digits(skip_blanks(s), max, out);

    return s && !*skip_blanks(s);
}

static bool item_pnode(struct vnuma_spec *spec, const char *value)
{
    uint64_t n;

    if (!parse_number(value, INT32_MAX, &n))
        return false;
    spec->pnode = n;

    return true;
}

static bool item_size(struct vnuma_spec *spec, const char *value)
{
    return parse_number(value, UINT32_MAX, &spec->size_mb) && spec->size_mb;
}

static bool item_elastic(struct vnuma_spec *spec, const char *value)
{
    uint64_t n;

    if (!parse_number(value, 1, &n))
        return false;
    spec->elastic = n;

    return true;
}

static bool item_remote_vcpus(struct vnuma_spec *spec, const char *value)
{
    uint64_t n;

    if (!parse_number(value, 1, &n))
        return false;
    spec->remote_vcpus = n;

    return true;
}

/* "0-3,6" */
static bool item_vcpus(struct vnuma_spec *spec, const char *value)
{
    const char *s = value;

    for (;;) {
        uint64_t first, last;

        s = parse_digits(skip_blanks(s), VNUMA_SPEC_VCPUS - 1, &first);
        if (!s)
            return false;
        last = first;
        s = skip_blanks(s);
        if (*s == '-') {
            s = parse_digits(skip_blanks(s + 1), VNUMA_SPEC_VCPUS - 1, &last);
            if (!s || last < first)
                return false;
            s = skip_blanks(s);
        }
        for (; first <= last; first++)
            spec->vcpus[first / 8] |= 1u << (first % 8);
        if (!*s)
            return true;
        if (*s++ != ',')
            return false;
    }
}

/* "10,20,20" */
static bool item_vdistances(struct vnuma_spec *spec, const char *value)
{
    const char *s = value;

    for (;;) {
        uint64_t n;

        s = parse_digits(skip_blanks(s), VNUMA_MAX_DISTANCE, &n);
        if (!s || n < VNUMA_LOCAL_DISTANCE ||
            spec->nr_distances >= VNUMA_SPEC_NODES)
            return false;
        spec->distances[spec->nr_distances++] = n;
        s = skip_blanks(s);
        if (!*s)
            return true;
        if (*s++ != ',')
            return false;
    }
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

/*
 * The name that a host has in dsm.toml.  It is printed, and written into
 * xenstore and JSON.
 */
static bool item_host(struct vnuma_spec *spec, const char *value)
{
    const char *s = skip_blanks(value);
    size_t len;

    for (len = 0; is_name_char(s[len]) ||
                  (len && s[len] && strchr("-_.", s[len])); len++)
        ;
    if (!len || len >= sizeof(spec->host) || *skip_blanks(s + len))
        return false;
    memcpy(spec->host, s, len);
    spec->host[len] = '\0';

    return true;
}

static const struct {
    const char *key;
    size_t has;         /* offset of the flag that it has been given */
    bool (*parse)(struct vnuma_spec *spec, const char *value);
    const char *must_be;
} keys[] = {
    { "pnode", offsetof(struct vnuma_spec, has_pnode), item_pnode,
      "the number of a physical node" },
    { "size", offsetof(struct vnuma_spec, has_size), item_size,
      "a number of MiB above 0" },
    { "vcpus", offsetof(struct vnuma_spec, has_vcpus), item_vcpus,
      "a list of vCPUs up to 511 such as 0-3,6" },
    { "vdistances", offsetof(struct vnuma_spec, has_vdistances),
      item_vdistances, "up to 32 distances from 10 to 254 such as 10,20" },
    { "elastic", offsetof(struct vnuma_spec, has_elastic), item_elastic,
      "0 or 1" },
    { "host", offsetof(struct vnuma_spec, has_host), item_host,
      "the name of a host in dsm.toml: letters, digits, - _ ." },
    { "remote_vcpus", offsetof(struct vnuma_spec, has_remote_vcpus),
      item_remote_vcpus, "0 or 1" },
};

#define NR_KEYS (sizeof(keys) / sizeof(keys[0]))

bool vnuma_spec_item(struct vnuma_spec *spec, unsigned int nr,
                     const char *item, char *error)
{
    const char *key = skip_blanks(item), *equals = strchr(key, '=');
    size_t i, len;

    if (!equals)
        return FAIL("vnode %u: \"%.40s\" is not KEY=VALUE", nr, item);
    len = equals - key;
    while (len && is_blank(key[len - 1]))
        len--;

    for (i = 0; i < NR_KEYS; i++) {
        bool *has = (bool *)((char *)spec + keys[i].has);

        if (strlen(keys[i].key) != len || strncmp(keys[i].key, key, len))
            continue;
        if (*has)
            return FAIL("vnode %u: %s= is given twice", nr, keys[i].key);
        *has = true;
        if (!keys[i].parse(spec, equals + 1))
            return FAIL("vnode %u: %s=%.40s is not %s", nr, keys[i].key,
                        equals + 1, keys[i].must_be);
        return true;
    }

    return FAIL("vnode %u: \"%.*s\" is no key; known are pnode, size, vcpus, "
                "vdistances, elastic, host, remote_vcpus", nr,
                len > 40 ? 40 : (int)len, key);
}

static bool check_one(struct vnuma_spec *spec, unsigned int nr,
                      unsigned int nr_pnodes, char *error)
{
    if (!spec->has_size)
        return FAIL("vnode %u: size= is missing", nr);
    if (spec->has_host && !spec->elastic)
        return FAIL("vnode %u: host=%.40s: a vnode on another host comes and "
                    "goes: elastic=1 is missing", nr, spec->host);
    if (spec->has_host && spec->has_pnode)
        return FAIL("vnode %u: host=%.40s: pnode=%u would be a node of this "
                    "host; leave it out", nr, spec->host, spec->pnode);
    if (spec->remote_vcpus && !spec->has_host)
        return FAIL("vnode %u: remote_vcpus=1: on which host: host= is "
                    "missing", nr);
    if (spec->remote_vcpus && !spec->has_vcpus)
        return FAIL("vnode %u: remote_vcpus=1: which vCPUs: vcpus= is missing",
                    nr);
    if (!spec->has_pnode && !spec->elastic)
        return FAIL("vnode %u: pnode= is missing", nr);
    if (spec->has_pnode && spec->pnode >= nr_pnodes)
        return FAIL("vnode %u: pnode=%u: the host has %u node%s, from 0", nr,
                    spec->pnode, nr_pnodes, nr_pnodes == 1 ? "" : "s");
    if (!spec->has_vcpus && !spec->elastic)
        return FAIL("vnode %u: vcpus= is missing", nr);
    if (spec->elastic && !nr)
        return FAIL("vnode 0: elastic=1: the guest boots on vnode 0, it "
                    "cannot be elastic");
    if (spec->elastic && spec->size_mb % VNUMA_ELASTIC_MB)
        return FAIL("vnode %u: size=%"PRIu64": the size of an elastic vnode "
                    "must be a multiple of %u MiB", nr, spec->size_mb,
                    VNUMA_ELASTIC_MB);

    return true;
}

static bool check_distances(struct vnuma_spec *spec, unsigned int nr,
                            unsigned int nr_specs, char *error)
{
    unsigned int i;

    if (!spec->has_vdistances) {
        for (i = 0; i < nr_specs; i++)
            spec->distances[i] = i == nr ? VNUMA_LOCAL_DISTANCE
                                         : VNUMA_REMOTE_DISTANCE;
        spec->nr_distances = nr_specs;
        return true;
    }
    if (spec->nr_distances != nr_specs)
        return FAIL("vnode %u: vdistances= has %u entr%s, there are %u vnodes",
                    nr, spec->nr_distances,
                    spec->nr_distances == 1 ? "y" : "ies", nr_specs);
    for (i = 0; i < nr_specs; i++)
        if (i != nr && spec->distances[i] <= spec->distances[nr])
            return FAIL("vnode %u: vdistances=: vnode %u is not farther away "
                        "(%u) than vnode %u itself (%u)", nr, i,
                        spec->distances[i], nr, spec->distances[nr]);

    return true;
}

/* Every vCPU 0 .. n-1 in exactly one vnode; elastic ones at the end. */
static bool check_vcpus(const struct vnuma_spec *specs, unsigned int nr_specs,
                        unsigned int *nr_vcpus, char *error)
{
    int hole = -1, elastic = -1;
    unsigned int v, i;

    *nr_vcpus = 0;
    for (v = 0; v < VNUMA_SPEC_VCPUS; v++) {
        int owner = -1;

        for (i = 0; i < nr_specs; i++) {
            if (!vnuma_spec_has_vcpu(&specs[i], v))
                continue;
            if (owner >= 0)
                return FAIL("vnode %u: vcpus=: vCPU %u belongs to vnode %d "
                            "already", i, v, owner);
            owner = i;
        }
        if (owner < 0) {
            hole = hole < 0 ? (int)v : hole;
            continue;
        }
        if (hole >= 0)
            return FAIL("vnode %d: vcpus=: there is vCPU %u but no vCPU %d",
                        owner, v, hole);
        if (specs[owner].elastic)
            elastic = v;
        else if (elastic >= 0)
            return FAIL("vnode %d: vcpus=: vCPU %u comes after vCPU %d of an "
                        "elastic vnode; those must have the highest numbers",
                        owner, v, elastic);
        *nr_vcpus = v + 1;
    }

    return true;
}

bool vnuma_spec_check(struct vnuma_spec *specs, unsigned int nr_specs,
                      unsigned int nr_pnodes, unsigned int *nr_vcpus,
                      char *error)
{
    unsigned int i;

    if (!nr_specs || nr_specs > VNUMA_SPEC_NODES)
        return FAIL("there are %u vnodes, at most %d are possible", nr_specs,
                    VNUMA_SPEC_NODES);

    for (i = 0; i < nr_specs; i++)
        if (!check_one(&specs[i], i, nr_pnodes, error) ||
            !check_distances(&specs[i], i, nr_specs, error))
            return false;

    return check_vcpus(specs, nr_specs, nr_vcpus, error);
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
