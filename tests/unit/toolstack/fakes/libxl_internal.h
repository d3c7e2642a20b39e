/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the unit tests: as much of libxl's internals as the elastic vnodes use,
 * on a xenstore, a hypervisor and a guest made of arrays (fake_libxl.c).
 *
 * Names and meanings are libxl's; the types have only the fields in use.
 */
#ifndef LIBXL_INTERNAL_H
#define LIBXL_INTERNAL_H

#include "libxl_osdeps.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "libxl_json.h"
#include "xenstore.h"

#define _hidden
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, outer, member) \
    ((__typeof__(outer) *)((char *)(ptr) - offsetof(__typeof__(outer), member)))

/*---------- libxl's types ----------*/

enum {
    ERROR_FAIL = -3,
    ERROR_NOMEM = -5,
    ERROR_INVAL = -6,
    ERROR_LOCK_FAIL = -17,
    ERROR_BUFFERFULL = -13,
    ERROR_NOT_READY = -11,
    ERROR_NOTFOUND = -25,
    ERROR_ABORTED = -29,
    ERROR_TIMEDOUT = -4,
    ERROR_DOMAIN_NOTFOUND = -21,
    ERROR_DOMAIN_DESTROYED = -27,
    ERROR_VNODE_REFUSED = -33,
    ERROR_VNODE_UNDONE = -34,
    ERROR_VNODE_RESIDUAL = -35,
    ERROR_VNODE_UNSETTLED = -36,
    ERROR_VNODE_NOT_UNDONE = -37,
    ERROR_VNUMA_CONFIG_INVALID = -19,
};

typedef struct libxl_ctx libxl_ctx;
typedef struct libxl__gc libxl__gc;
typedef struct libxl__egc libxl__egc;
typedef struct libxl__ao libxl__ao;
typedef struct libxl__carefd libxl__carefd;
typedef struct { int unused; } libxl__flock;
typedef struct {
    void (*callback)(void);
    union { uint64_t for_event; } u;
} libxl_asyncop_how;
typedef struct { void (*callback)(void); uint64_t for_event; }
    libxl_asyncprogress_how;
typedef uint32_t libxl_domid;

struct libxl_ctx { void *xch; struct xs_handle *xsh; };
struct libxl__gc { libxl_ctx *ctx; };
extern libxl_ctx fake_ctx;
extern libxl__gc fake_gc;

#define CTX (gc->ctx)
#define NOGC NULL

typedef struct { uint32_t size; uint8_t *map; } libxl_bitmap;
typedef struct { int val; } libxl_defbool;

typedef struct {
    int vnode, pnode;
    uint64_t memkb;
    int grace_ms, timeout_ms;
    libxl_defbool wait;
} libxl_vnode_request;

typedef enum {
    LIBXL_VNODE_STATE_UNKNOWN, LIBXL_VNODE_STATE_HOME,
    LIBXL_VNODE_STATE_OFFLINE, LIBXL_VNODE_STATE_GROWING,
    LIBXL_VNODE_STATE_ONLINE, LIBXL_VNODE_STATE_DRAINING,
    LIBXL_VNODE_STATE_RESIDUAL, LIBXL_VNODE_STATE_FAULTY,
} libxl_vnode_state;
typedef enum {
    LIBXL_VNODE_OP_NONE, LIBXL_VNODE_OP_ATTACH, LIBXL_VNODE_OP_DETACH,
    LIBXL_VNODE_OP_SET,
} libxl_vnode_op;
typedef enum {
    LIBXL_VNODE_PHASE_PREPARE = 1, LIBXL_VNODE_PHASE_GUEST,
    LIBXL_VNODE_PHASE_SETTLE, LIBXL_VNODE_PHASE_END,
} libxl_vnode_phase;

typedef enum {
    LIBXL_VNODE_LINK_UNKNOWN, LIBXL_VNODE_LINK_DOWN, LIBXL_VNODE_LINK_OPENING,
    LIBXL_VNODE_LINK_UP, LIBXL_VNODE_LINK_LOST,
} libxl_vnode_link;

typedef struct {
    uint32_t vnode;
    libxl_vnode_state state;
    bool elastic, driver;
    int pnode;
    uint64_t target_memkb, actual_memkb, max_memkb, residual_memkb;
    uint64_t progress_memkb;
    libxl_bitmap cpus;
    char *reason, *error, *fault, *phases, *toolstack_phases;
    libxl_vnode_op op;
    uint32_t op_pid;
    bool op_done;
    char *host, *link_error;
    bool remote_vcpus, there_cpus_known, there_paused;
    libxl_bitmap there_cpus;
    libxl_vnode_link link;
    uint64_t there_memkb, modified_pages, shared_pages, home_pages;
    uint64_t faults_per_s, median_ns, p99_ns;
} libxl_vnodeinfo;

typedef struct {
    uint32_t pnode;
    uint64_t memkb;
    bool elastic;
    char *host;
    bool remote_vcpus;
    libxl_bitmap vcpus;
    uint32_t *distances;
    int num_distances;
} libxl_vnode_info;
typedef struct { uint64_t size, free; } libxl_numainfo;
typedef struct { uint32_t core, socket, node; } libxl_cputopology;
#define LIBXL_NUMAINFO_INVALID_ENTRY (~(uint64_t)0)
#define LIBXL_CPUTOPOLOGY_INVALID_ENTRY (~(uint32_t)0)

typedef enum {
    LIBXL_DOMAIN_TYPE_HVM = 1, LIBXL_DOMAIN_TYPE_PV, LIBXL_DOMAIN_TYPE_PVH,
} libxl_domain_type;
#define LIBXL_MEMKB_DEFAULT (~(uint64_t)0)

typedef enum {
    LIBXL_TSC_MODE_DEFAULT, LIBXL_TSC_MODE_ALWAYS_EMULATE,
    LIBXL_TSC_MODE_NATIVE, LIBXL_TSC_MODE_NATIVE_PARAVIRT,
} libxl_tsc_mode;

typedef struct {
    unsigned int num_vnuma_nodes;
    libxl_vnode_info *vnuma_nodes;
    unsigned int num_vcpu_hard_affinity, num_vcpu_soft_affinity;
    libxl_domain_type type;
    int max_vcpus;
    libxl_bitmap avail_vcpus;
    uint64_t max_memkb, target_memkb;
    libxl_defbool numa_placement, nested_hvm;
    enum { LIBXL_ALTP2M_MODE_DISABLED, LIBXL_ALTP2M_MODE_MIXED } altp2m;
    libxl_tsc_mode tsc_mode;
    uint32_t event_channels;
} libxl_domain_build_info;
typedef struct {
    enum {
        LIBXL_PASSTHROUGH_DEFAULT, LIBXL_PASSTHROUGH_DISABLED,
        LIBXL_PASSTHROUGH_ENABLED,
    } passthrough;
    libxl_defbool hap;
} libxl_domain_create_info;
#define LIBXL_TOOLSTACK_DOMID 0
typedef struct { uint32_t backend_domid; } libxl_device_nic;
typedef struct {
    libxl_domain_create_info c_info;
    libxl_domain_build_info b_info;
    int num_pcidevs, num_dtdevs, num_nics;
    libxl_device_nic *nics;
} libxl_domain_config;

typedef enum {
    LIBXL_EVENT_TYPE_OPERATION_COMPLETE = 4, LIBXL_EVENT_TYPE_VNODE_PROGRESS = 6,
} libxl_event_type;

typedef struct {
    libxl_event_type type;
    uint64_t for_user;
    struct {
        struct { int rc; } operation_complete;
        struct {
            uint32_t vnode;
            libxl_vnode_phase phase;
            libxl_vnode_state state;
            bool undoing;
            uint64_t progress_memkb, target_memkb;
            libxl_vnodeinfo info;
        } vnode_progress;
    } u;
} libxl_event;

typedef struct { uint32_t cpupool_id; uint8_t *cpumap; } xc_cpupoolinfo_t;

/*---------- Xen ----------*/

#define XC_PAGE_SHIFT 12
#define XEN_DOMINF_dying 1
#define XEN_DOMINF_shutdown 2
#define XEN_DOMINF_paused 4

typedef struct {
    uint32_t flags, cpupool;
    uint64_t tot_pages, max_pages;
    uint8_t handle[16];
} xc_domaininfo_t;
#define LIBXL_UUID_FMT "%02hhx%02hhx%02hhx%02hhx-%02hhx%02hhx-%02hhx%02hhx-" \
    "%02hhx%02hhx-%02hhx%02hhx%02hhx%02hhx%02hhx%02hhx"
#define LIBXL__UUID_BYTES(u) u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], \
    u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]
typedef struct {
    uint64_t start, end;
    uint32_t flags, nid;
} xen_vmemrange_t;

#define XC_PAGE_SHIFT 12
#define X86_HVM_NR_SPECIAL_PAGES    8
#define X86_HVM_END_SPECIAL_REGION  0xff000u
#define HVM_PARAM_STORE_PFN 1
#define HVM_PARAM_CONSOLE_PFN 17

int xc_hvm_param_get(void *xch, uint32_t domid, uint32_t param,
                     uint64_t *value);
int xc_cpuid_apply_vnuma(void *xch, uint32_t domid,
                         const unsigned int *vcpu_to_vnode,
                         unsigned int nr_vcpus);
int xc_domain_getinfo_single(void *xch, uint32_t domid, xc_domaininfo_t *info);
#define XEN_VCPUAFFINITY_HARD 1
int xc_vcpu_getaffinity(void *xch, uint32_t domid, int vcpu, uint8_t *hard,
                        uint8_t *soft, uint32_t flags);
int xc_domain_setmaxmem(void *xch, uint32_t domid, uint64_t kb);
int xc_domain_unpause(void *xch, uint32_t domid);
int xc_domain_getvnuma(void *xch, uint32_t domid, uint32_t *nr_vnodes,
                       uint32_t *nr_vmemranges, uint32_t *nr_vcpus,
                       xen_vmemrange_t *vmemrange, unsigned int *vdistance,
                       unsigned int *vcpu_to_vnode);
int xc_domain_setvnuma(void *xch, uint32_t domid, uint32_t nr_vnodes,
                       uint32_t nr_vmemranges, uint32_t nr_vcpus,
                       xen_vmemrange_t *vmemrange, unsigned int *vdistance,
                       unsigned int *vcpu_to_vnode,
                       unsigned int *vnode_to_pnode);

/*---------- memory, messages ----------*/

void *libxl__zalloc(libxl__gc *gc, size_t size);
void *libxl__calloc(libxl__gc *gc, size_t nr, size_t size);
void *libxl__realloc_array(libxl__gc *gc, void *p, size_t nr, size_t size);
char *libxl__strdup(libxl__gc *gc, const char *s);
void libxl__ptr_add(libxl__gc *gc, void *p);
char *libxl__sprintf(libxl__gc *gc, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#define GCSPRINTF(...) libxl__sprintf(gc, __VA_ARGS__)
#define GCREALLOC_ARRAY(p, nr) \
    ((p) = libxl__realloc_array(gc, p, nr, sizeof(*(p))))
#define GCNEW(p) ((p) = libxl__zalloc(gc, sizeof(*(p))))
#define GC_INIT(c) libxl__gc *gc = &fake_gc; (void)(c)
#define GC_FREE ((void)gc)
#define CTX_LOCK ((void)gc)
#define CTX_UNLOCK ((void)gc)

void fake_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define LOGD(level, domid, ...) ((void)gc, (void)(domid), fake_log(__VA_ARGS__))
#define LOGED LOGD
#define LOGE LOG
#define LOGEV(level, errnoval, ...) ((void)(errnoval), LOG(level, __VA_ARGS__))
#define LOGEVD(level, errnoval, domid, ...) LOGD(level, domid, __VA_ARGS__)
#define LOG(level, ...) ((void)gc, fake_log(__VA_ARGS__))

/*---------- xenstore ----------*/

char *libxl__xs_read(libxl__gc *gc, xs_transaction_t t, const char *path);
char **libxl__xs_directory(libxl__gc *gc, xs_transaction_t t, const char *path,
                           unsigned int *nr);
int libxl__xs_read_checked(libxl__gc *gc, xs_transaction_t t, const char *path,
                           const char **out);
int libxl__xs_write_checked(libxl__gc *gc, xs_transaction_t t,
                            const char *path, const char *value);
int libxl__xs_printf(libxl__gc *gc, xs_transaction_t t, const char *path,
                     const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int libxl__xs_rm_checked(libxl__gc *gc, xs_transaction_t t, const char *path);
int libxl__xs_transaction_start(libxl__gc *gc, xs_transaction_t *t);
int libxl__xs_transaction_commit(libxl__gc *gc, xs_transaction_t *t);
void libxl__xs_transaction_abort(libxl__gc *gc, xs_transaction_t *t);

enum { XS_PERM_NONE, XS_PERM_READ };
struct xs_permissions { unsigned int id, perms; };
char *libxl__xs_get_dompath(libxl__gc *gc, uint32_t domid);
int libxl__xs_mknod(libxl__gc *gc, xs_transaction_t t, const char *path,
                    struct xs_permissions *perms, unsigned int nr);

/*---------- locks ----------*/

libxl__flock *libxl__lock_domain_userdata(libxl__gc *gc, uint32_t domid);
void libxl__unlock_file(libxl__flock *lock);
const char *libxl__userdata_path(libxl__gc *gc, uint32_t domid,
                                 const char *id, const char *wh);
void libxl__carefd_begin(void);
libxl__carefd *libxl__carefd_opened(libxl_ctx *ctx, int fd);
int libxl__carefd_close(libxl__carefd *carefd);
int libxl__carefd_fd(const libxl__carefd *carefd);

/*---------- the rest of libxl ----------*/

void libxl_bitmap_init(libxl_bitmap *map);
void libxl_bitmap_dispose(libxl_bitmap *map);
int libxl_bitmap_alloc(libxl_ctx *ctx, libxl_bitmap *map, int bits);
void libxl_bitmap_set(libxl_bitmap *map, int bit);
void libxl_bitmap_reset(libxl_bitmap *map, int bit);
#define libxl_for_each_set_bit(v, m)            \
    for ((v) = 0; (v) < (int)(m).size * 8; (v)++) \
        if (libxl_bitmap_test(&(m), v))
const char *libxl_domain_type_to_string(libxl_domain_type type);
const char *libxl_tsc_mode_to_string(libxl_tsc_mode mode);
void libxl_bitmap_set_any(libxl_bitmap *map);
int libxl_bitmap_test(const libxl_bitmap *map, int bit);
void libxl_bitmap_copy_alloc(libxl_ctx *ctx, libxl_bitmap *to,
                             const libxl_bitmap *from);
xc_cpupoolinfo_t *xc_cpupool_getinfo(void *xch, uint32_t pool);
void xc_cpupool_infofree(void *xch, xc_cpupoolinfo_t *info);
char *libxl__cpupoolid_to_name(libxl__gc *gc, uint32_t pool);
libxl_numainfo *libxl_get_numainfo(libxl_ctx *ctx, int *nr);
void libxl_numainfo_list_free(libxl_numainfo *info, int nr);
libxl_cputopology *libxl_get_cpu_topology(libxl_ctx *ctx, int *nr);
void libxl_cputopology_list_free(libxl_cputopology *cpus, int nr);
bool libxl_bitmap_is_empty(const libxl_bitmap *map);
int libxl_cpu_bitmap_alloc(libxl_ctx *ctx, libxl_bitmap *map, int max);
int libxl_node_to_cpumap(libxl_ctx *ctx, int node, libxl_bitmap *map);
int libxl_set_vcpuaffinity(libxl_ctx *ctx, uint32_t domid, uint32_t vcpu,
                           const libxl_bitmap *hard, const libxl_bitmap *soft);
void libxl_domain_config_init(libxl_domain_config *config);
void libxl_domain_config_dispose(libxl_domain_config *config);
int libxl__get_domain_configuration(libxl__gc *gc, uint32_t domid,
                                    libxl_domain_config *config);
void libxl_defbool_setdefault(libxl_defbool *b, bool value);
bool libxl_defbool_val(libxl_defbool b);
void libxl_vnode_request_init(libxl_vnode_request *req);
void libxl_vnode_request_copy(libxl_ctx *ctx, libxl_vnode_request *to,
                              const libxl_vnode_request *from);
void libxl_vnode_request_dispose(libxl_vnode_request *req);
void libxl_vnodeinfo_init(libxl_vnodeinfo *info);
void libxl_vnodeinfo_dispose(libxl_vnodeinfo *info);

/*---------- events ----------*/

typedef struct libxl__ev_time libxl__ev_time;
typedef void libxl__ev_time_callback(libxl__egc *egc, libxl__ev_time *ev,
                                     const struct timeval *requested_abs,
                                     int rc);
struct libxl__ev_time {
    libxl__ev_time_callback *callback;
    uint64_t at_ms;
    unsigned int turn;              /* the newest has the largest */
};

typedef struct libxl__ev_xswatch libxl__ev_xswatch;
typedef void libxl__ev_xswatch_callback(libxl__egc *egc, libxl__ev_xswatch *w,
                                        const char *watch_path,
                                        const char *event_path);
struct libxl__ev_xswatch {
    libxl__ev_xswatch_callback *callback;
    char path[96];
};

void libxl__ev_time_init(libxl__ev_time *ev);
int libxl__ev_time_register_rel(libxl__ao *ao, libxl__ev_time *ev,
                                libxl__ev_time_callback *callback, int ms);
void libxl__ev_time_deregister(libxl__gc *gc, libxl__ev_time *ev);
bool libxl__ev_time_isregistered(const libxl__ev_time *ev);
void libxl__ev_xswatch_init(libxl__ev_xswatch *w);
int libxl__ev_xswatch_register(libxl__gc *gc, libxl__ev_xswatch *w,
                               libxl__ev_xswatch_callback *callback,
                               const char *path);
void libxl__ev_xswatch_deregister(libxl__gc *gc, libxl__ev_xswatch *w);

typedef struct libxl__ev_fd libxl__ev_fd;
typedef void libxl__ev_fd_callback(libxl__egc *egc, libxl__ev_fd *ev, int fd,
                                   short events, short revents);
struct libxl__ev_fd { int fd; short events; libxl__ev_fd_callback *func; };
void libxl__ev_fd_init(libxl__ev_fd *ev);
int libxl__ev_fd_register(libxl__gc *gc, libxl__ev_fd *ev,
                          libxl__ev_fd_callback *func, int fd, short events);
int libxl__ev_fd_modify(libxl__gc *gc, libxl__ev_fd *ev, short events);
void libxl__ev_fd_deregister(libxl__gc *gc, libxl__ev_fd *ev);
int libxl__prepare_sockaddr_un(libxl__gc *gc, struct sockaddr_un *un,
                               const char *path, const char *what);

/*---------- JSON (fake_json.c) ----------*/

typedef enum {
    JSON_NULL = 1, JSON_BOOL = 2, JSON_INTEGER = 4, JSON_DOUBLE = 8,
    JSON_NUMBER = 16, JSON_STRING = 32, JSON_MAP = 64, JSON_ARRAY = 128,
    JSON_ANY = 255,
} libxl__json_node_type;
typedef struct libxl__json_object libxl__json_object;
libxl__json_object *libxl__json_parse(libxl__gc *gc, const char *s);
bool libxl__json_object_is_map(const libxl__json_object *o);
bool libxl__json_object_get_bool(const libxl__json_object *o);
const char *libxl__json_object_get_string(const libxl__json_object *o);
long long libxl__json_object_get_integer(const libxl__json_object *o);
libxl__json_object *libxl__json_array_get(const libxl__json_object *o, int i);
const libxl__json_object *libxl__json_map_get(const char *key,
                                              const libxl__json_object *o,
                                              libxl__json_node_type type);

libxl__ao *fake_ao(void);
void libxl__ao_complete(libxl__egc *egc, libxl__ao *ao, int rc);
libxl_event *fake_event(void);
void fake_report(libxl_event *ev);
#define AO_CREATE(ctx, domid, how)                                      \
    libxl__ao *ao = fake_ao();                                          \
    libxl__egc *egc = NULL;                                             \
    libxl__gc *gc = &fake_gc;                                           \
    (void)(ctx), (void)(domid), (void)(how), (void)egc, (void)gc
#define AO_INPROGRESS 0
#define AO_CREATE_FAIL(rc) (rc)
#define STATE_AO_GC(op_ao)                                              \
    libxl__ao *ao __attribute__((unused)) = (op_ao);                    \
    libxl__gc *gc __attribute__((unused)) = &fake_gc
#define libxl__nested_ao_create(ao) (ao)
#define libxl__nested_ao_free(ao) ((void)(ao))
#define libxl__ao_inprogress_gc(ao) ((void)(ao), &fake_gc)
#define NEW_EVENT(egc, type, domid, user) ((void)(egc), fake_event())
#define libxl__ao_progress_gethow(to, how) ((void)(to), (void)(how))
#define libxl__ao_progress_report(egc, ao, how, ev) \
    ((void)(egc), (void)(ao), (void)(how), fake_report(ev))

/*---------- the API of elastic vnodes ----------*/

#define LIBXL_EXTERNAL_CALLERS_ONLY
#include "libxl_vnode.h"

#include "libxl_vnode_internal.h"

#endif /* LIBXL_INTERNAL_H */
