/* SPDX-License-Identifier: GPL-2.0 */
/* See fake_libxl.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/file.h>

#include "fake_libxl.h"

struct world world;
libxl_ctx fake_ctx;
libxl__gc fake_gc = { &fake_ctx };

static const struct fake_neighbour *neighbour;

void fake_meet(const struct fake_neighbour *met)
{
    neighbour = met;
}

#define MAX_KEYS 128
#define KEY_MAX 128
#define VALUE_MAX 256

struct store {
    unsigned int nr;
    struct {
        uint32_t hash;          /* of the path */
        char path[KEY_MAX], value[VALUE_MAX];
    } key[MAX_KEYS];
};

static struct store store, snapshot;
static uint64_t version, version_at_start;
static bool in_transaction, wrote;

static void *allocated[65536];
static unsigned int nr_allocated;

static char lock_path[64];
static int lock_fds[8];
static bool userdata_locked;
static jmp_buf killed;

static libxl__ev_time *timers[8];
static libxl__ev_fd *fds[8];
static libxl__ev_xswatch *watches[8];
static bool guest_wrote, aborting;
static uint64_t now_ms;

/*---------- memory, messages ----------*/

/* Freed in the end, as all that belongs to a gc. */
void libxl__ptr_add(libxl__gc *gc, void *p)
{
    if (gc && p) {
        assert(nr_allocated < ARRAY_SIZE(allocated));
        allocated[nr_allocated++] = p;
    }
}

void *libxl__zalloc(libxl__gc *gc, size_t size)
{
    void *p = calloc(1, size ? size : 1);

    libxl__ptr_add(gc, p);

    return p;
}

void *libxl__calloc(libxl__gc *gc, size_t nr, size_t size)
{
    return libxl__zalloc(gc, nr * size);
}

/* The old one stays until the end: nothing says how large it was. */
void *libxl__realloc_array(libxl__gc *gc, void *p, size_t nr, size_t size)
{
    void *larger = libxl__calloc(gc, nr, size);

    if (nr > 1)
        memcpy(larger, p, (nr - 1) * size);     /* it grows by one */

    return larger;
}

char *libxl__strdup(libxl__gc *gc, const char *s)
{
    return !s ? NULL : strcpy(libxl__zalloc(gc, strlen(s) + 1), s);
}

static char *format(const char *fmt, va_list ap)
{
    static char buf[16384];

    if (vsnprintf(buf, sizeof(buf), fmt, ap) >= (int)sizeof(buf))
        abort();

    return libxl__strdup(&fake_gc, buf);
}

char *libxl__sprintf(libxl__gc *gc, const char *fmt, ...)
{
    va_list ap;
    char *s;

    (void)gc;
    va_start(ap, fmt);
    s = format(fmt, ap);
    va_end(ap);

    return s;
}

void fake_log(const char *fmt, ...)
{
    size_t len = strlen(world.log);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(world.log + len, sizeof(world.log) - len, fmt, ap);
    va_end(ap);
    len = strlen(world.log);
    snprintf(world.log + len, sizeof(world.log) - len, "\n");
}

/* Something outside the process changes, unless it dies before. */
static void effect(void)
{
    if (++world.effects == world.kill_at)
        longjmp(killed, 1);
}

/* Is this the call that fails? */
static bool fails(void)
{
    return ++world.calls == world.fail_at;
}

/*
 * Has the connection to xenstored ended before this request?  It does with
 * request world.break_at: that is still carried out, but who has asked does not
 * hear of it, nor of anything else.
 */
static bool ended_before(void)
{
    return world.broken;
}

static bool ends_now(void)
{
    if (!world.break_at || ++world.asked < world.break_at)
        return false;
    world.broken = true;
    in_transaction = false;     /* xenstored forgets it */

    return true;
}

void fake_effect(void)
{
    effect();
}

bool fake_fails(void)
{
    return fails();
}

/* As a hypercall fails. */
static int hypercall_fails(void)
{
    errno = EIO;

    return -1;
}

/*---------- xenstore ----------*/

/* FNV-1a: the tests spend their time looking for keys. */
static uint32_t hash_of(const char *s)
{
    uint32_t hash = 2166136261U;

    while (*s)
        hash = (hash ^ (uint8_t)*s++) * 16777619U;

    return hash;
}

static int find(const struct store *s, const char *path)
{
    uint32_t hash = hash_of(path);
    unsigned int i;

    for (i = 0; i < s->nr; i++)
        if (s->key[i].hash == hash && !strcmp(s->key[i].path, path))
            return i;

    return -1;
}

static void copy_store(struct store *to, const struct store *from)
{
    to->nr = from->nr;
    memcpy(to->key, from->key, from->nr * sizeof(from->key[0]));
}

static void put(struct store *s, const char *path, const char *value)
{
    int i = find(s, path);

    if (i < 0) {
        assert(s->nr < MAX_KEYS);
        i = s->nr++;
    }
    assert(strlen(path) < KEY_MAX && strlen(value) < VALUE_MAX);
    s->key[i].hash = hash_of(path);
    strcpy(s->key[i].path, path);
    strcpy(s->key[i].value, value);
}

static void take(struct store *s, const char *path)
{
    int i = find(s, path);

    if (i >= 0)
        s->key[i] = s->key[--s->nr];
}

const char *fake_get(const char *path)
{
    int i = find(&store, path);

    return i < 0 ? NULL : store.key[i].value;
}

void fake_set(const char *path, const char *fmt, ...)
{
    char value[VALUE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(value, sizeof(value), fmt, ap);
    va_end(ap);
    put(&store, path, value);
    version++;
}

void fake_remove(const char *path)
{
    take(&store, path);
    version++;
}

void fake_remove_below(const char *path)
{
    unsigned int i = 0;

    while (i < store.nr)
        if (!strncmp(store.key[i].path, path, strlen(path)))
            fake_remove(store.key[i].path);
        else
            i++;
}

/* One that is waited for. */
static void request(void)
{
    world.requests++;
    world.waits++;
}

/* As in C xenstored: what a transaction reads is what is there just then. */
static char *read_key(xs_transaction_t t, const char *path)
{
    const struct store *s = t && wrote ? &snapshot : &store;
    int i;

    if (world.on_read)
        world.on_read(path);
    i = find(s, path);

    return i < 0 ? NULL : libxl__strdup(&fake_gc, s->key[i].value);
}

char *libxl__xs_read(libxl__gc *gc, xs_transaction_t t, const char *path)
{
    (void)gc;
    request();

    return read_key(t, path);
}

int libxl__xs_read_checked(libxl__gc *gc, xs_transaction_t t, const char *path,
                           const char **out)
{
    *out = NULL;
    if (fails() || ended_before())
        return ERROR_FAIL;
    *out = libxl__xs_read(gc, t, path);

    return ends_now() ? ERROR_FAIL : 0;
}

char **libxl__xs_directory(libxl__gc *gc, xs_transaction_t t, const char *path,
                           unsigned int *nr)
{
    char **names = libxl__calloc(gc, MAX_KEYS, sizeof(*names));
    size_t len = strlen(path);
    unsigned int i, j;

    (void)t;
    request();
    *nr = 0;
    if (fails() || ended_before() || ends_now()) {
        errno = EIO;
        return NULL;
    }
    for (i = 0; i < store.nr; i++) {
        char name[KEY_MAX], *slash;

        if (strncmp(store.key[i].path, path, len) ||
            store.key[i].path[len] != '/')
            continue;
        strcpy(name, store.key[i].path + len + 1);
        slash = strchr(name, '/');
        if (slash)
            *slash = '\0';
        for (j = 0; j < *nr && strcmp(names[j], name); j++)
            ;
        if (j == *nr)
            names[(*nr)++] = libxl__strdup(gc, name);
    }

    return names;
}

/* Where a write goes: a transaction's own copy, or the store. */
static struct store *target(xs_transaction_t t)
{
    if (!t) {
        effect();
        version++;
        return &store;
    }
    if (!wrote)
        copy_store(&snapshot, &store);
    wrote = true;

    return &snapshot;
}

int libxl__xs_write_checked(libxl__gc *gc, xs_transaction_t t,
                            const char *path, const char *value)
{
    (void)gc;
    request();
    if (fails() || ended_before())
        return ERROR_FAIL;
    put(target(t), path, value);

    return ends_now() ? ERROR_FAIL : 0;
}

int libxl__xs_printf(libxl__gc *gc, xs_transaction_t t, const char *path,
                     const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start(ap, fmt);
    rc = libxl__xs_write_checked(gc, t, path, format(fmt, ap));
    va_end(ap);

    return rc;
}

int libxl__xs_rm_checked(libxl__gc *gc, xs_transaction_t t, const char *path)
{
    (void)gc;
    request();
    if (fails() || ended_before())
        return ERROR_FAIL;
    take(target(t), path);

    return ends_now() ? ERROR_FAIL : 0;
}

char *libxl__xs_get_dompath(libxl__gc *gc, uint32_t domid)
{
    return fails() ? NULL : GCSPRINTF("/local/domain/%"PRIu32, domid);
}

/* "n7" is owned by domain 7; "n0 r7": by domain 0, and domain 7 may read. */
int libxl__xs_mknod(libxl__gc *gc, xs_transaction_t t, const char *path,
                    struct xs_permissions *perms, unsigned int nr)
{
    char text[40] = "";
    unsigned int i;

    for (i = 0; i < nr; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c%u",
                 i ? " " : "", perms[i].perms == XS_PERM_READ ? 'r' : 'n',
                 perms[i].id);

    return libxl__xs_write_checked(gc, t, path, text);
}

int libxl__xs_transaction_start(libxl__gc *gc, xs_transaction_t *t)
{
    (void)gc;
    assert(!in_transaction);
    request();
    if (fails() || ended_before() || ends_now())
        return ERROR_FAIL;
    in_transaction = true;
    wrote = false;
    version_at_start = version;
    *t = 1;

    return 0;
}

int libxl__xs_transaction_commit(libxl__gc *gc, xs_transaction_t *t)
{
    (void)gc;
    assert((in_transaction || world.broken) && *t);
    request();
    *t = 0;
    in_transaction = false;
    if (fails() || ended_before())
        return ERROR_FAIL;
    if (version != version_at_start)
        return ends_now() ? ERROR_FAIL : +1;
    if (wrote) {
        effect();
        copy_store(&store, &snapshot);
        version++;
    }

    return ends_now() ? ERROR_FAIL : 0;
}

static int carry_out(xs_transaction_t t, struct xs_batch_request *r)
{
    if (fails())
        return EIO;
    switch (r->kind) {
    case XS_BATCH_READ:
        r->value = read_key(t, r->path);
        if (r->value)
            r->value = strdup(r->value);    /* whose it is, who has asked says */
        return r->value ? 0 : ENOENT;
    case XS_BATCH_WRITE:
        put(target(t), r->path, r->data);
        return 0;
    default:
        take(target(t), r->path);
        return 0;
    }
}

bool xs_batch(struct xs_handle *h, xs_transaction_t t,
              struct xs_batch_request *requests, unsigned int nr)
{
    unsigned int i;

    (void)h;
    world.waits++;
    world.requests += nr;
    if (fails() || ended_before())
        return false;           /* the connection is broken */
    for (i = 0; i < nr; i++)
        requests[i].error = carry_out(t, &requests[i]);
    if (!ends_now())
        return true;
    for (i = 0; i < nr; i++)
        free(requests[i].value);

    return false;
}

void libxl__xs_transaction_abort(libxl__gc *gc, xs_transaction_t *t)
{
    (void)gc;
    if (*t) {
        request();
        in_transaction = false;
    }
    *t = 0;
}

/*---------- Xen ----------*/

int xc_domain_getinfo_single(void *xch, uint32_t domid, xc_domaininfo_t *info)
{
    (void)xch;
    world.hypercalls++;
    if (domid != DOMID || world.destroyed) {
        errno = ESRCH;
        return -1;
    }
    if (fails())
        return hypercall_fails();
    if (world.on_count)
        world.on_count();
    *info = (xc_domaininfo_t) {
        .flags = world.flags,
        .tot_pages = world.total_kb / 4,
        .max_pages = world.limit_kb / 4,
        .handle = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    };

    return 0;
}

int xc_domain_unpause(void *xch, uint32_t domid)
{
    (void)xch;
    world.hypercalls++;
    if (fails())
        return hypercall_fails();
    effect();
    if (!world.pauses || domid != DOMID) {
        errno = EINVAL;
        return -1;
    }
    world.pauses--;

    return 0;
}

int xc_domain_setmaxmem(void *xch, uint32_t domid, uint64_t kb)
{
    (void)xch, (void)domid;
    world.hypercalls++;
    if (fails())
        return hypercall_fails();
    effect();
    world.limit_kb = kb;
    if (kb < world.lowest_limit_kb)
        world.lowest_limit_kb = kb;

    return 0;
}

int xc_domain_getvnuma(void *xch, uint32_t domid, uint32_t *nr_vnodes,
                       uint32_t *nr_vmemranges, uint32_t *nr_vcpus,
                       xen_vmemrange_t *vmemrange, unsigned int *vdistance,
                       unsigned int *vcpu_to_vnode)
{
    unsigned int i;

    (void)xch, (void)domid, (void)vdistance, (void)vcpu_to_vnode;
    world.hypercalls++;
    if (fails())
        return hypercall_fails();
    *nr_vnodes = world.nr_vnodes;
    *nr_vmemranges = NR_RANGES + world.more_ranges;
    *nr_vcpus = world.nr_vcpus;
    errno = ENOBUFS;
    if (vmemrange)
        for (i = 0; i < *nr_vmemranges; i++)
            vmemrange[i] = world.range[i < NR_RANGES ? i : NR_RANGES - 1];

    return vmemrange ? 0 : -1;
}

int xc_hvm_param_get(void *xch, uint32_t domid, uint32_t param, uint64_t *value)
{
    (void)xch, (void)domid;
    world.hypercalls++;
    if (fails())
        return hypercall_fails();
    assert(param == HVM_PARAM_CONSOLE_PFN || param == HVM_PARAM_STORE_PFN);
    *value = param == HVM_PARAM_STORE_PFN ? world.store : world.console;

    return 0;
}

int xc_domain_setvnuma(void *xch, uint32_t domid, uint32_t nr_vnodes,
                       uint32_t nr_vmemranges, uint32_t nr_vcpus,
                       xen_vmemrange_t *vmemrange, unsigned int *vdistance,
                       unsigned int *vcpu_to_vnode,
                       unsigned int *vnode_to_pnode)
{
    (void)xch, (void)domid, (void)nr_vmemranges, (void)nr_vcpus;
    (void)vmemrange, (void)vdistance, (void)vcpu_to_vnode;
    world.hypercalls++;
    if (fails())
        return hypercall_fails();
    effect();
    memcpy(world.to_pnode, vnode_to_pnode, nr_vnodes * sizeof(unsigned int));

    return 0;
}

/*---------- locks ----------*/

libxl__flock *libxl__lock_domain_userdata(libxl__gc *gc, uint32_t domid)
{
    static libxl__flock lock;

    (void)gc, (void)domid;
    /* libxl asks for the domain's UUID first. */
    if (fails() || world.destroyed)
        return NULL;
    assert(!userdata_locked);
    userdata_locked = true;

    return &lock;
}

void libxl__unlock_file(libxl__flock *lock)
{
    (void)lock;
    assert(userdata_locked);
    userdata_locked = false;
}

const char *libxl__userdata_path(libxl__gc *gc, uint32_t domid,
                                 const char *id, const char *wh)
{
    (void)gc, (void)domid, (void)id, (void)wh;

    return fails() ? NULL : lock_path;
}

void libxl__carefd_begin(void)
{
}

libxl__carefd *libxl__carefd_opened(libxl_ctx *ctx, int fd)
{
    unsigned int i;

    (void)ctx;
    assert(fd >= 0);
    for (i = 0; lock_fds[i]; i++)
        assert(i + 1 < ARRAY_SIZE(lock_fds));
    lock_fds[i] = fd;

    return (libxl__carefd *)&lock_fds[i];
}

int libxl__carefd_close(libxl__carefd *carefd)
{
    int *fd = (int *)carefd, r;

    if (!carefd)
        return 0;
    r = close(*fd);
    *fd = 0;

    return r;
}

int libxl__carefd_fd(const libxl__carefd *carefd)
{
    return *(const int *)carefd;
}

/*---------- bitmaps, structs ----------*/

void libxl_bitmap_init(libxl_bitmap *map)
{
    *map = (libxl_bitmap) { 0 };
}

void libxl_bitmap_dispose(libxl_bitmap *map)
{
    free(map->map);
    libxl_bitmap_init(map);
}

int libxl_bitmap_alloc(libxl_ctx *ctx, libxl_bitmap *map, int bits)
{
    (void)ctx;
    map->size = (bits + 7) / 8;
    map->map = calloc(1, map->size);

    return 0;
}

void libxl_bitmap_set(libxl_bitmap *map, int bit)
{
    map->map[bit / 8] |= 1 << (bit % 8);
}

void libxl_bitmap_reset(libxl_bitmap *map, int bit)
{
    map->map[bit / 8] &= ~(1 << (bit % 8));
}

void libxl_bitmap_set_any(libxl_bitmap *map)
{
    memset(map->map, 0xff, map->size);
}

int libxl_bitmap_test(const libxl_bitmap *map, int bit)
{
    return bit < (int)map->size * 8 && map->map[bit / 8] & (1 << (bit % 8));
}

void libxl_bitmap_copy_alloc(libxl_ctx *ctx, libxl_bitmap *to,
                             const libxl_bitmap *from)
{
    libxl_bitmap_alloc(ctx, to, from->size * 8);
    memcpy(to->map, from->map, from->size);
}

bool libxl_bitmap_is_empty(const libxl_bitmap *map)
{
    unsigned int i;

    for (i = 0; i < map->size; i++)
        if (map->map[i])
            return false;

    return true;
}

/* Two CPUs a pnode, four pnodes; from libxl's memory, as a process dies. */
int libxl_cpu_bitmap_alloc(libxl_ctx *ctx, libxl_bitmap *map, int max)
{
    (void)max;

    return libxl_bitmap_alloc(ctx, map, 8);
}

int libxl_node_to_cpumap(libxl_ctx *ctx, int node, libxl_bitmap *map)
{
    (void)ctx;
    world.hypercalls++;
    if (fails())
        return ERROR_FAIL;
    map->map[0] = world.cpuless == (unsigned int)node + 1 ? 0
                                                          : 3 << (2 * node);

    return 0;
}

/* The pnode that has these CPUs; -1: all have. */
static int node_of(uint8_t cpus)
{
    int node = -1;

    while (cpus && cpus != 0xff && node < 4 && !(cpus & (3 << (2 * ++node))))
        ;

    return node;
}

int libxl_set_vcpuaffinity(libxl_ctx *ctx, uint32_t domid, uint32_t vcpu,
                           const libxl_bitmap *hard, const libxl_bitmap *soft)
{
    (void)ctx, (void)domid;
    world.hypercalls++;
    if (fails() || (hard && !hard->map[0]))     /* nowhere: Xen refuses */
        return ERROR_FAIL;
    if (world.effects + 1 == world.kill_at)
        free((hard ? hard : soft)->map);    /* its owner will not come back */
    effect();
    if (hard)
        world.affinity[vcpu] = node_of(hard->map[0]);
    if (soft)
        world.soft[vcpu] = node_of(soft->map[0]);

    return 0;
}

int xc_vcpu_getaffinity(void *xch, uint32_t domid, int vcpu, uint8_t *hard,
                        uint8_t *soft, uint32_t flags)
{
    int node = world.affinity[vcpu];

    (void)xch, (void)domid, (void)soft;
    assert(flags == XEN_VCPUAFFINITY_HARD);
    world.hypercalls++;
    if (fails())
        return hypercall_fails();
    *hard = node < 0 ? 0xff : 3 << (2 * node);

    return 0;
}

/* As Xen: without one of that number, the next. */
xc_cpupoolinfo_t *xc_cpupool_getinfo(void *xch, uint32_t pool)
{
    static xc_cpupoolinfo_t info;

    (void)xch;
    world.hypercalls++;
    if (fails())
        return NULL;
    info = (xc_cpupoolinfo_t) { pool + world.no_pool, &world.pool };

    return &info;
}

void xc_cpupool_infofree(void *xch, xc_cpupoolinfo_t *info)
{
    (void)xch, (void)info;
}

char *libxl__cpupoolid_to_name(libxl__gc *gc, uint32_t pool)
{
    (void)pool;
    request();

    return fails() ? NULL : libxl__strdup(gc, "Pool-0");
}

void libxl_domain_config_init(libxl_domain_config *config)
{
    *config = (libxl_domain_config) { .b_info = { 0 } };
}

void libxl_domain_config_dispose(libxl_domain_config *config)
{
    (void)config;
}

int libxl__get_domain_configuration(libxl__gc *gc, uint32_t domid,
                                    libxl_domain_config *config)
{
    (void)gc, (void)domid;
    world.configs++;
    if (fails() || world.no_config)
        return ERROR_FAIL;
    config->b_info.num_vnuma_nodes = world.nr_vnodes;
    config->b_info.vnuma_nodes = world.config;
    config->b_info.num_vcpu_hard_affinity = world.pinned_hard;
    config->b_info.num_vcpu_soft_affinity = world.pinned_soft;

    return 0;
}

void libxl_defbool_setdefault(libxl_defbool *b, bool value)
{
    if (!b->val)
        b->val = value ? 1 : -1;
}

bool libxl_defbool_val(libxl_defbool b)
{
    return b.val > 0;
}

void libxl_vnode_request_init(libxl_vnode_request *req)
{
    *req = (libxl_vnode_request) {
        .vnode = -1, .pnode = -1, .grace_ms = -1,
        .timeout_ms = LIBXL_VNODE_TIMEOUT_DEFAULT,
    };
}

void libxl_vnode_request_copy(libxl_ctx *ctx, libxl_vnode_request *to,
                              const libxl_vnode_request *from)
{
    (void)ctx;
    *to = *from;
}

void libxl_vnode_request_dispose(libxl_vnode_request *req)
{
    (void)req;
}

const char *libxl_tsc_mode_to_string(libxl_tsc_mode mode)
{
    return mode == LIBXL_TSC_MODE_NATIVE_PARAVIRT ? "native_paravirt"
                                                  : "always_emulate";
}

void libxl_vnodeinfo_init(libxl_vnodeinfo *info)
{
    memset(info, 0, sizeof(*info));
}

void libxl_vnodeinfo_dispose(libxl_vnodeinfo *info)
{
    libxl_bitmap_dispose(&info->cpus);
    libxl_bitmap_dispose(&info->there_cpus);
    free(info->reason);
    free(info->error);
    free(info->fault);
    free(info->phases);
    free(info->toolstack_phases);
    free(info->host);
    free(info->link_error);
}

/*---------- the host's pnodes ----------*/

libxl_numainfo *libxl_get_numainfo(libxl_ctx *ctx, int *nr)
{
    libxl_numainfo *info;
    unsigned int i;

    (void)ctx;
    world.hypercalls++;
    if (fails())
        return NULL;
    *nr = NR_PNODES;
    info = calloc(NR_PNODES, sizeof(*info));
    for (i = 0; i < NR_PNODES; i++) {
        bool hole = world.hole == i + 1;

        info[i].size = hole ? LIBXL_NUMAINFO_INVALID_ENTRY : 1ULL << 30;
        info[i].free = hole ? LIBXL_NUMAINFO_INVALID_ENTRY
                            : world.free_kb[i] << 10;
    }

    return info;
}

void libxl_numainfo_list_free(libxl_numainfo *info, int nr)
{
    (void)nr;
    free(info);
}

libxl_cputopology *libxl_get_cpu_topology(libxl_ctx *ctx, int *nr)
{
    libxl_cputopology *cpus;
    int i;

    (void)ctx;
    world.hypercalls++;
    if (fails())
        return NULL;
    *nr = 2 * NR_PNODES + 1;
    cpus = calloc(*nr, sizeof(*cpus));
    for (i = 0; i < *nr; i++)
        cpus[i].node = i < 2 * NR_PNODES ? (uint32_t)i / 2
                                         : LIBXL_CPUTOPOLOGY_INVALID_ENTRY;

    return cpus;
}

void libxl_cputopology_list_free(libxl_cputopology *cpus, int nr)
{
    (void)nr;
    free(cpus);
}

/*---------- events ----------*/

static libxl_vnodeinfo ended;

static void forget_end(void)
{
    if (world.end)
        libxl_vnodeinfo_dispose(world.end);
    world.end = NULL;
}

libxl__ao *fake_ao(void)
{
    world.completed = false;
    forget_end();

    return (libxl__ao *)&world;
}

void libxl__ao_complete(libxl__egc *egc, libxl__ao *ao, int rc)
{
    (void)egc, (void)ao;
    assert(!world.completed);
    world.completed = true;
    world.rc = rc;
}

libxl_event *fake_event(void)
{
    static libxl_event event;

    event = (libxl_event) { 0 };

    return &event;
}

void fake_report(libxl_event *ev)
{
    if (ev->u.vnode_progress.phase != LIBXL_VNODE_PHASE_END)
        return;
    assert(!world.end);
    world.end = &ended;
    ended = ev->u.vnode_progress.info;
}

/* Put @p into the first free place of @list, or take it out. */
static void enlist(void **list, void *p)
{
    while (*list)
        list++;
    *list = p;
}

static void delist(void **list, void *p)
{
    unsigned int i;

    for (i = 0; i < 8; i++)
        if (list[i] == p)
            list[i] = NULL;
}

void libxl__ev_time_init(libxl__ev_time *ev)
{
    *ev = (libxl__ev_time) { 0 };
}

int libxl__ev_time_register_rel(libxl__ao *ao, libxl__ev_time *ev,
                                libxl__ev_time_callback *callback, int ms)
{
    static unsigned int turn;

    (void)ao;
    if (aborting)
        return ERROR_ABORTED;
    if (fails())
        return ERROR_FAIL;
    assert(!ev->callback);          /* as libxl does */
    ev->callback = callback;
    ev->turn = ++turn;
    ev->at_ms = ms < 0 ? UINT64_MAX : now_ms + ms;
    enlist((void **)timers, ev);

    return 0;
}

void libxl__ev_time_deregister(libxl__gc *gc, libxl__ev_time *ev)
{
    (void)gc;
    delist((void **)timers, ev);
    libxl__ev_time_init(ev);
}

bool libxl__ev_time_isregistered(const libxl__ev_time *ev)
{
    return ev->callback;
}

void libxl__ev_xswatch_init(libxl__ev_xswatch *w)
{
    *w = (libxl__ev_xswatch) { 0 };
}

int libxl__ev_xswatch_register(libxl__gc *gc, libxl__ev_xswatch *w,
                               libxl__ev_xswatch_callback *callback,
                               const char *path)
{
    (void)gc;
    request();
    if (fails() || ended_before() || ends_now())
        return ERROR_FAIL;
    w->callback = callback;
    snprintf(w->path, sizeof(w->path), "%s", path);
    enlist((void **)watches, w);
    guest_wrote = true;         /* a watch fires once for nothing */

    return 0;
}

void libxl__ev_xswatch_deregister(libxl__gc *gc, libxl__ev_xswatch *w)
{
    (void)gc;
    if (w->callback)
        request();
    delist((void **)watches, w);
    libxl__ev_xswatch_init(w);
}

void libxl__ev_fd_init(libxl__ev_fd *ev)
{
    *ev = (libxl__ev_fd) { .fd = -1 };
}

int libxl__ev_fd_register(libxl__gc *gc, libxl__ev_fd *ev,
                          libxl__ev_fd_callback *func, int fd, short events)
{
    (void)gc;
    if (fails())
        return ERROR_FAIL;
    assert(ev->fd < 0);
    *ev = (libxl__ev_fd) { fd, events, func };
    enlist((void **)fds, ev);

    return 0;
}

int libxl__ev_fd_modify(libxl__gc *gc, libxl__ev_fd *ev, short events)
{
    (void)gc;
    assert(ev->fd >= 0);
    if (fails())
        return ERROR_FAIL;
    ev->events = events;

    return 0;
}

void libxl__ev_fd_deregister(libxl__gc *gc, libxl__ev_fd *ev)
{
    (void)gc;
    delist((void **)fds, ev);
    libxl__ev_fd_init(ev);
}

int libxl__prepare_sockaddr_un(libxl__gc *gc, struct sockaddr_un *un,
                               const char *path, const char *what)
{
    (void)gc, (void)what;
    memset(un, 0, sizeof(*un));
    un->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(un->sun_path))
        return ERROR_INVAL;
    strcpy(un->sun_path, path);

    return 0;
}

/* Was there anything? */
static bool fire_fds(void)
{
    bool any = false;
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(fds) && !world.completed; i++) {
        struct pollfd p;

        if (!fds[i])
            continue;
        p = (struct pollfd) { fds[i]->fd, fds[i]->events, 0 };
        if (poll(&p, 1, 0) != 1)
            continue;
        any = true;
        assert(!(p.revents & POLLNVAL));
        fds[i]->func(NULL, fds[i], p.fd, p.events, p.revents);
    }

    return any;
}

/* Each twice: a transaction is an event for each key. */
static void fire_watches(void)
{
    unsigned int n, i;

    for (n = 0; n < 2 * ARRAY_SIZE(watches) && !world.completed; n++) {
        i = n / 2;
        if (watches[i] && !world.broken &&
            !(watches[i]->path[0] == '@' ? world.no_release : world.no_guest))
            watches[i]->callback(NULL, watches[i], watches[i]->path,
                                 watches[i]->path);
    }
}

static void fire_timer(int rc)
{
    libxl__ev_time *next = NULL;
    unsigned int i;

    /* libxl aborts the newest first. */
    for (i = 0; i < ARRAY_SIZE(timers); i++)
        if (timers[i] && (!next || (rc == ERROR_ABORTED
                                       ? timers[i]->turn > next->turn
                                       : timers[i]->at_ms < next->at_ms)))
            next = timers[i];
    assert(next);
    delist((void **)timers, next);
    if (rc != ERROR_ABORTED)
        now_ms = next->at_ms;
    next->callback(NULL, next, NULL, rc);
}

void fake_abort(void)
{
    aborting = true;
}

void fake_begin(void)
{
    fire_timer(ERROR_TIMEDOUT);
}

void fake_fire_once(void)
{
    guest_wrote = false;
    fire_watches();
    if (!world.completed)
        fire_timer(ERROR_TIMEDOUT);
}

uint64_t fake_now_ms(void)
{
    return now_ms;
}

void fake_loop(void)
{
    while (!world.completed) {
        fake_guest_runs();
        neighbour->run();
        if (!aborting && fire_fds())
            continue;
        if (guest_wrote) {
            guest_wrote = false;
            fire_watches();
        }
        if (!world.completed)
            fire_timer(aborting ? ERROR_ABORTED : ERROR_TIMEDOUT);
    }
    aborting = false;
}

unsigned int fake_left(void)
{
    unsigned int i, nr = 0;

    for (i = 0; i < ARRAY_SIZE(timers); i++)
        nr += !!timers[i];
    for (i = 0; i < ARRAY_SIZE(fds); i++)
        nr += !!fds[i];

    return nr;
}

/*---------- the guest ----------*/

#define NODE "/local/domain/7/vnuma/node/%u/"
#define SAYS "/local/domain/7/vnuma/guest/node/%u/"

static char *key(const char *fmt, unsigned int nr, const char *name)
{
    static char path[4][KEY_MAX];
    static unsigned int turn;
    char *p = path[turn++ % 4];

    snprintf(p, KEY_MAX, fmt, nr);
    strcat(p, name);

    return p;
}

static void say(unsigned int nr, const char *state, uint64_t residual_kb)
{
    fake_set(key(SAYS, nr, "state"), "%s", state);
    fake_set(key(SAYS, nr, "current-kb"), "%"PRIu64,
             !strcmp(state, "offline") ? 0 : world.has_kb[nr]);
    fake_set(key(SAYS, nr, "residual-kb"), "%"PRIu64, residual_kb);
}

/* Have @kb of a node: as far as Xen lets it, from where Xen's table says. */
static bool have(unsigned int nr, uint64_t kb)
{
    uint64_t rest = world.total_kb - world.has_kb[nr];

    if (fake_get(key("/libxl/7/vnuma/node/%u/", nr, "host"))) {
        if (kb > neighbour->there_kb(nr))
            return false;
        world.has_kb[nr] = kb;
        return true;
    }
    if (kb > world.has_kb[nr] && rest + kb > world.limit_kb)
        return false;
    if (kb > world.has_kb[nr])
        world.on_pnode[nr] = world.to_pnode[nr];
    world.total_kb = rest + kb;
    world.has_kb[nr] = kb;

    return true;
}

static void fail(unsigned int nr)
{
    fake_set(key(SAYS, nr, "error"), "-12 no memory");
    say(nr, world.has_kb[nr] ? "online" : "offline", 0);
}

/* Work towards one target.  false: for ever. */
static bool work(unsigned int nr)
{
    uint64_t target_kb = atoll(fake_get(key(NODE, nr, "target-kb")));
    bool grows = target_kb > world.has_kb[nr];

    if (target_kb == world.has_kb[nr] && !target_kb) {
        fake_remove(key(SAYS, nr, "error"));
        say(nr, "offline", 0);
        return true;
    }
    fake_remove(key(SAYS, nr, "error"));

    switch (world.mood) {
    case GUEST_FAILS_TO_GROW:
        if (grows) {
            fail(nr);
            return true;
        }
        break;
    case GUEST_REFUSES_TO_SHRINK:
        if (target_kb < world.has_kb[nr]) {
            fail(nr);
            return true;
        }
        break;
    case GUEST_GROWS_SLOWLY_AND_KEEPS_SOME:
        if (grows) {
            have(nr, world.has_kb[nr] + RESIDUAL_KB);
            say(nr, "growing", 0);
            return false;
        }
        if (target_kb) {
            fake_set(key(SAYS, nr, "error"), "-12 no room");
            say(nr, "online", 0);
            return true;
        }
        /* fall through */
    case GUEST_KEEPS_SOME:
        if (!target_kb) {
            have(nr, RESIDUAL_KB);
            say(nr, "residual", RESIDUAL_KB);
            return true;
        }
        break;
    case GUEST_LOSES_A_CPU:
        have(nr, target_kb ? target_kb : world.has_kb[nr]);
        if (target_kb)
            fake_set(key(SAYS, nr, "error"), "-5 vCPU 2 does not come up");
        say(nr, target_kb ? "online" : "draining", 0);
        return target_kb;
    case GUEST_LIES_ABOUT_LEAVING:
        if (!target_kb) {
            say(nr, "offline", 0);
            return true;
        }
        break;
    case GUEST_KEEPS_A_PAGE:
        have(nr, target_kb ? target_kb : 4);
        say(nr, target_kb ? "online" : "offline", 0);
        return true;
    case GUEST_GARBLES:
        have(nr, target_kb);
        say(nr, "sideways", 0);
        return true;
    default:
        break;
    }

    if (!have(nr, target_kb))
        fail(nr);
    else
        say(nr, target_kb ? "online" : "offline", 0);

    return true;
}

/* As the driver: what is as it was told to be is not touched, nor its error. */
static bool is_settled(unsigned int nr)
{
    uint64_t target_kb = atoll(fake_get(key(NODE, nr, "target-kb")));
    const char *state = fake_get(key(SAYS, nr, "state"));

    return target_kb == world.has_kb[nr] &&
           !strcmp(state ? state : "offline", target_kb ? "online" : "offline");
}

void fake_guest_runs(void)
{
    const char *s = fake_get("/local/domain/7/vnuma/generation");
    uint64_t generation = s ? atoll(s) : 0;
    bool done = true;
    unsigned int i;

    guest_wrote |= world.writes_on;
    if (world.mood == GUEST_SILENT || generation == world.seen ||
        !fake_get("/local/domain/7/vnuma/guest/version"))
        return;
    world.seen = generation;
    for (i = 1; i < world.nr_vnodes; i++)
        if (!is_settled(i))
            done &= work(i);
    if (done)
        fake_set("/local/domain/7/vnuma/guest/done-generation", "%"PRIu64,
                 generation);
    guest_wrote = true;
}

/*---------- the whole ----------*/

void fake_kill(void)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(lock_fds); i++)
        if (lock_fds[i])
            libxl__carefd_close((libxl__carefd *)&lock_fds[i]);
    userdata_locked = in_transaction = aborting = false;
    memset(timers, 0, sizeof(timers));
    memset(fds, 0, sizeof(fds));
    neighbour->forget();
    memset(watches, 0, sizeof(watches));
}

void fake_end(void)
{
    fake_kill();
    forget_end();
    while (nr_allocated)
        free(allocated[--nr_allocated]);
    if (lock_path[0])
        unlink(lock_path);
}

void fake_boot(void)
{
    fake_boot_nodes(NR_VNODES);
}

void fake_boot_nodes(unsigned int nr)
{
    static const char *const cpus[MAX_VNODES] = { "0-1", "2-3", "4", "5-6" };
    static const unsigned int nr_vcpus[] = { 0, 2, 4, NR_VCPUS, MAX_VCPUS };
    unsigned int i;

    fake_end();
    neighbour->boot();
    if (!lock_path[0])
        snprintf(lock_path, sizeof(lock_path), "/tmp/test-operations.%d",
                 getpid());
    store.nr = 0;
    version = 0;
    world = (struct world) {
        .nr_vnodes = nr, .nr_vcpus = nr_vcpus[nr],
        .total_kb = HOME_KB, .limit_kb = HOME_KB, .lowest_limit_kb = HOME_KB,
        .pool = 0xff,
        .range = { { 0, 1ULL << 28, 0, 0 }, { 1ULL << 32, 5ULL << 30, 0, 0 },
                   { 6ULL << 30, 7ULL << 30, 0, 1 },
                   { 8ULL << 30, 9ULL << 30, 0, 2 } },
        .console = 0xfefff, .store = 0xfeffc,
        .config = { { 0 }, { 1 }, { LIBXL_VNODE_PNODE_ANY }, { 3 } },
        .free_kb = { 2 * NODE_KB, 2 * NODE_KB, 4 * NODE_KB, 2 * NODE_KB },
    };
    for (i = 0; i < nr; i++) {
        fake_set(key(NODE, i, "elastic"), "%d", i > 0);
        fake_set(key(NODE, i, "max-kb"), "%llu", i ? NODE_KB : HOME_KB);
        fake_set(key(NODE, i, "target-kb"), "%llu", i ? 0 : HOME_KB);
        fake_set(key(NODE, i, "cpus"), "%s", cpus[i]);
    }
    for (i = 0; i < world.nr_vcpus; i++) {
        fake_set(key("/local/domain/7/cpu/%u/", i, "availability"), "%s",
                 i < 2 ? "online" : "offline");
        world.affinity[i] = world.soft[i] = i < 2 ? 0 : -1;
    }
    fake_set("/local/domain/7/vnuma/nodes", "%u", nr);
    fake_set("/libxl/7/vnuma/node/0/pnode", "0");
    fake_set("/libxl/7/vnuma/home-limit-kb", "%llu", HOME_KB);
    fake_set("/local/domain/7/vnuma/guest/version", "1");
}

bool fake_process(void (*f)(void *arg), void *arg)
{
    bool lived = !setjmp(killed);

    if (lived)
        f(arg);
    else
        fake_kill();

    return lived;
}
