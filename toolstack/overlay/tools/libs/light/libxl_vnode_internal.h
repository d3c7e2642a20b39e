/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * libxl's elastic vnodes: what the parts of libxl share.
 * Included at the end of libxl_internal.h.
 *
 * Locking, in this order: the domain's userdata lock is held by everything that
 * writes the toolstack's keys of its vnodes, and never while waiting for the
 * guest.  The operation lock is held by who attends an operation, from before
 * its record is written until it is left; it is never waited for, and only
 * tried with the userdata lock held.  Both die with their holder.
 */
#ifndef LIBXL_VNODE_INTERNAL_H
#define LIBXL_VNODE_INTERNAL_H

#include <xenstore_batch.h>

#include "libxl_vnode_keys.h"
#include "libxl_vnode_phases.h"
#include "libxl_vnode_settle.h"
#include "libxl_vnode_span.h"
#include "libxl_dsm.h"

/* One vnode of a running domain. */
typedef struct {
    bool elastic;
    uint64_t max_kb;        /* size of its range */
    uint64_t target_kb;     /* what the toolstack wants */
    uint64_t allowed_kb;    /* its share of the domain's memory limit */
    const char *host;       /* whose memory it is, NULL: this one's */
    uint64_t there_kb;      /* of another host: what is recorded there */
    uint64_t pool_kb;       /* and the pool here, while it is there */
    bool remote_vcpus;      /* its vCPUs run there, too, while it is there */
    bool placed;            /* recorded: they may be there */
    int pnode;              /* backing physical node, -1: none */
    int table_pnode;        /* what Xen is told: as pnode, if not on the way */
    uint8_t *cpus;          /* bitmap of nr_vcpus bits */
    enum vnode_cpus availability;   /* of those vCPUs; elastic vnodes only */
    bool unbound;           /* some run anywhere, though it has a pnode */
    uint8_t *loose;         /* bitmap of those; NULL: not asked for */
    struct vnode_report report;     /* the guest's word, checked */
} libxl__vnode;

/* What xenstore and Xen say about the vnodes of a running domain. */
typedef struct {
    uint32_t domid;
    uint32_t nr_vnodes, nr_vmemranges, nr_vcpus;
    libxl__vnode *node;
    uint64_t generation;    /* newest operation announced, 0: none yet */
    uint64_t done;          /* newest one the guest has finished, 0: none */
    bool driver;            /* the guest has a driver */
    uint64_t total_kb;      /* memory of the domain, by Xen's count */
    uint64_t limit_kb;      /* its memory limit, by Xen */
    uint64_t home_kb;       /* what the limit is without elastic vnodes */
    const char *nonsense;   /* the toolstack's keys are; NULL: they are not */
    struct vnode_op_record op;      /* kind NONE: no operation under way */
    xen_vmemrange_t *vmemrange;
    unsigned int *vdistance, *vcpu_to_vnode;
    char *uuid;
    /* libxl__vnode_know_config(); config_pnode is NULL before */
    unsigned int pinned_hard, pinned_soft;  /* vCPUs below: by their owner */
    unsigned int *config_pnode;     /* by vnode, or LIBXL_VNODE_PNODE_ANY */
    struct libxl__vnode_teller *teller; /* NULL: dsmd is not told anything */
} libxl__vnode_domain;

/*---------- when a domain is built ----------*/

/* Does the architecture have elastic vnodes? */
_hidden bool libxl__vnode_supported(void);

/* Elastic vnodes of a configuration: number, and sum of their sizes. */
_hidden unsigned int libxl__vnode_nr_elastic(const libxl_domain_build_info *);
_hidden uint64_t libxl__vnode_elastic_memkb(const libxl_domain_build_info *);

/* Vnodes of a configuration whose memory is on another host. */
_hidden unsigned int libxl__vnode_nr_spanning(const libxl_domain_build_info *);

/*
 * Check those, if there are any.  The domain's defaults are set; a TSC mode
 * that is left open is decided here.
 * 0 or ERROR_VNUMA_CONFIG_INVALID, logged.
 */
_hidden int libxl__vnode_check_hosts(libxl__gc *gc, uint32_t domid,
                                     libxl_domain_config *d_config);

/*
 * Can the backends of its network wait for pages of another host, if there are
 * any?  Of a configuration whose backends are known, and of a vif that comes
 * while the guest runs.  0 or an error, logged.
 */
_hidden int libxl__vnode_check_nics(libxl__gc *gc, uint32_t domid,
                                    const libxl_domain_config *d_config);
_hidden int libxl__vnode_check_new_nic(libxl__gc *gc, uint32_t domid,
                                       const libxl_device_nic *nic);

/* Do vCPUs of some vnode run on another host? */
_hidden bool
libxl__vnode_has_remote_vcpus(const libxl_domain_build_info *info);

/*
 * Can the kernel have vCPUs on other hosts, if it is to?  The image is as the
 * loader has unpacked it.
 * 0 or ERROR_VNUMA_CONFIG_INVALID, logged.
 */
_hidden int libxl__vnode_check_kernel(libxl__gc *gc, uint32_t domid,
                                      const libxl_domain_build_info *info,
                                      const void *image, size_t size);

/*
 * Check the elastic vnodes of a configuration and take their vCPUs out of
 * avail_vcpus.  Idempotent.  0 or ERROR_VNUMA_CONFIG_INVALID, logged.
 */
_hidden int libxl__vnode_setdefault(libxl__gc *gc,
                                    libxl_domain_config *d_config,
                                    uint32_t domid);

/* Is the pnode of elastic vnode @nr possible?  0 or an error, logged. */
_hidden int libxl__vnode_check_pnode(libxl__gc *gc,
                                     const libxl_domain_build_info *info,
                                     unsigned int nr, unsigned int nr_pnodes);

/* Physical node that Xen is told for a vnode when the domain is built. */
_hidden unsigned int
libxl__vnode_boot_pnode(const libxl_domain_build_info *info, unsigned int nr);

/* Append the ranges of the elastic vnodes, behind all others. */
_hidden int libxl__vnode_place(libxl__gc *gc, uint32_t domid,
                               const libxl_domain_build_info *info,
                               xen_vmemrange_t **ranges, int *nr_ranges);

/* Set LIBACPI_VMEMRANGE_HOTPLUG on the ranges of elastic vnodes. */
_hidden void libxl__vnode_mark_hotplug(const libxl_domain_build_info *info,
                                       xen_vmemrange_t *ranges,
                                       unsigned int nr_ranges);

/* Make CPUID agree with the vNUMA layout. */
_hidden int libxl__vnode_cpuid(libxl__gc *gc, uint32_t domid,
                               const libxl_domain_build_info *info);

/* Create the xenstore keys of a new domain's vnodes. */
_hidden int libxl__vnode_xenstore_setup(libxl__gc *gc, uint32_t domid,
                                        const libxl_domain_build_info *info);

/*
 * The range that the rings of console and xenstore are in, of a PVH guest that
 * is built.  0; ERROR_FAIL (logged): Xen doesn't say where they are, or they
 * are elsewhere.  Context: the domain does not run.
 */
_hidden int libxl__vnode_find_rings(libxl__gc *gc, uint32_t domid,
                                    libxl__dsm_range *range);

/*
 * The domain is built: if some of its vnodes are on another host, tell dsmd.
 * @callback is called once, maybe from within; with @rc if that is not 0, and
 * at once if there are none.
 */
typedef void libxl__vnode_enabled_callback(libxl__egc *egc, void *user,
                                           int rc);
_hidden void libxl__vnode_enable(libxl__egc *egc, libxl__ao *ao_outer,
                                 uint32_t domid,
                                 const libxl_domain_build_info *info,
                                 const char *name,
                                 libxl__vnode_enabled_callback *callback,
                                 void *user, int rc);

/*---------- where its keys are (libxl_vnode_paths.c) ----------*/

_hidden char *libxl__vnode_path(libxl__gc *gc, uint32_t domid, unsigned int nr,
                                const char *key);
_hidden char *libxl__vnode_libxl_path(libxl__gc *gc, uint32_t domid,
                                      unsigned int nr, const char *key);
_hidden char *libxl__vnode_cpu_path(libxl__gc *gc, uint32_t domid,
                                    unsigned int vcpu);
_hidden char *libxl__vnode_op_path(libxl__gc *gc, uint32_t domid);
_hidden char *libxl__vnode_home_limit_path(libxl__gc *gc, uint32_t domid);

/*---------- requests that are sent at once (libxl_vnode_batch.c) ----------*/

/*
 * Some reads, or some writes.  Empty: all 0, and so it is again when it has
 * been sent.  What is passed has to stay until then.
 */
typedef struct {
    struct libxl__vnode_request *first, *last;
    unsigned int nr;
} libxl__vnode_batch;

/* *out: NULL if the key is absent; known when the batch has been sent. */
_hidden void libxl__vnode_read(libxl__gc *gc, libxl__vnode_batch *batch,
                               const char *path, const char **out);
_hidden void libxl__vnode_write(libxl__gc *gc, libxl__vnode_batch *batch,
                                const char *path, const char *value);
_hidden void libxl__vnode_rm(libxl__gc *gc, libxl__vnode_batch *batch,
                             const char *path);

/*
 * In any order: what has to come after them, as the end of the transaction,
 * comes when all have been answered.  0; ERROR_FAIL (logged): one could not be
 * carried out, which says nothing of the others.
 */
_hidden int libxl__vnode_send(libxl__gc *gc, libxl__vnode_batch *batch,
                              xs_transaction_t t);

/*---------- when it runs ----------*/

/*
 * Add to @memkb what elastic vnodes add to the domain's memory limit; nothing
 * if there are none.  Not changed if that cannot be read, which is an error.
 */
_hidden int libxl__vnode_add_allowed_memkb(libxl__gc *gc, uint32_t domid,
                                           uint64_t *memkb);

/*
 * The operator has set the domain's limit to @limit_kb, what its elastic vnodes
 * add included: keep it.  Does nothing for a domain without elastic vnodes.
 * The caller holds the userdata lock.
 */
_hidden int libxl__vnode_note_limit(libxl__gc *gc, xs_transaction_t t,
                                    uint32_t domid, uint64_t limit_kb);

/*
 * The vCPUs that belong to elastic vnodes, as a bitmap of @nr_vcpus bits: they
 * come and go with their vnode and with nothing else.  *out is NULL if there
 * are none.  Says so (a message) if @wanted would change any of them.
 */
_hidden int libxl__vnode_elastic_vcpus(libxl__gc *gc, uint32_t domid,
                                       unsigned int nr_vcpus,
                                       const libxl_bitmap *wanted,
                                       uint8_t **out);

/*
 * Do vCPUs of the domain run on other hosts, as far as is recorded?  *out is
 * false after an error.  0, ERROR_FAIL.
 */
_hidden int libxl__vnode_any_placed(libxl__gc *gc, uint32_t domid, bool *out);

static inline bool libxl__vnode_has_vcpu(const uint8_t *cpus, unsigned int v)
{
    return cpus && (cpus[v / 8] & (1 << (v % 8)));
}

/*
 * Read everything, all of xenstore at one moment.  *out->nr_vnodes is 0 for a
 * domain without vNUMA, or whose keys are gone already because it is being
 * destroyed.  A guest that writes its keys faster than they can be
 * read is faulty.  0, ERROR_DOMAIN_NOTFOUND, ERROR_FAIL.
 */
_hidden int libxl__vnode_load(libxl__gc *gc, uint32_t domid,
                              libxl__vnode_domain *out);

/* How far a vnode has come, by the guest's word. */
typedef struct {
    uint64_t done;          /* newest generation finished, 0: none */
    bool faulty;            /* then the rest says nothing */
    libxl_vnode_state state;
    uint64_t progress_kb;
} libxl__vnode_progress;

/*
 * A few reads only, for whenever the guest writes something.  A generation
 * beyond @announced is none: it cannot be.  0, ERROR_FAIL.
 */
_hidden int libxl__vnode_look(libxl__gc *gc, uint32_t domid, unsigned int nr,
                              uint64_t max_kb, uint64_t announced,
                              libxl__vnode_progress *out);

/* Microseconds since some moment; never goes back. */
_hidden uint64_t libxl__vnode_now_us(void);

/*
 * Note how long the phases of the last operation took.  A failure is logged
 * and does no harm.
 */
_hidden void libxl__vnode_write_phases(libxl__gc *gc, uint32_t domid,
                                       unsigned int nr,
                                       const struct vnode_phases *phases);

/*
 * What callers of libxl see of vnode @nr.  @attended: somebody attends the
 * operation on record; @phases: what it took the toolstack, NULL: not known.
 * 0 or an error; *info is to be disposed of in either case.
 */
_hidden int libxl__vnode_fill_info(libxl__gc *gc,
                                   const libxl__vnode_domain *vd,
                                   bool attended, unsigned int nr,
                                   const char *phases, libxl_vnodeinfo *info);

/* The state that callers of libxl see. */
_hidden libxl_vnode_state libxl__vnode_public_state(const libxl__vnode *v);

/*---------- a pause of all of it (libxl_vnode_pause.c) ----------*/

/*
 * Xen has paused the domain, or unpaused it, on this host.  Completes @ao,
 * later or at once, when vCPUs of it that run on other hosts stand still, or go
 * on, as well; with 0, what libxl__dsm_callback has, or ERROR_FAIL.  If they do
 * not stand still Xen has unpaused it again (all of that is logged).
 */
_hidden void libxl__vnode_follow(libxl__egc *egc, libxl__ao *ao,
                                 uint32_t domid, bool paused);

/*
 * @what, a command, is for a domain that runs on this host only.  0,
 * ERROR_INVAL if vCPUs of it run on others, ERROR_FAIL; logged.
 */
_hidden int libxl__vnode_all_here(libxl__gc *gc, uint32_t domid,
                                  const char *what);

/*---------- the host's side of a vnode (libxl_vnode_host.c) ----------*/


/*
 * Set the domain's memory limit.  @count, @most_kb: see vnode_step; fails with
 * ERROR_FAIL (logged), the limit set, if Xen counts more than @most_kb.
 */
_hidden int libxl__vnode_set_limit(libxl__gc *gc, libxl__vnode_domain *vd,
                                   uint64_t limit_kb, bool count,
                                   uint64_t most_kb);

/* Back vnode @nr by @pnode in Xen's table; -1: by the pnode of vnode 0. */
_hidden int libxl__vnode_set_table(libxl__gc *gc, libxl__vnode_domain *vd,
                                   unsigned int nr, int pnode);

/* Write the availability of the vCPUs of vnode @nr. */
_hidden int libxl__vnode_set_cpus(libxl__gc *gc, libxl__vnode_domain *vd,
                                  unsigned int nr, bool online);

/*---------- where its vCPUs run (libxl_vnode_affinity.c) ----------*/

/* Fill in what the domain's configuration says, once.  0 or an error. */
_hidden int libxl__vnode_know_config(libxl__gc *gc, libxl__vnode_domain *vd);

/*
 * The CPUs of the domain's cpupool, and its number.  *cpumap is to be disposed
 * of.  0 or an error, logged.
 */
_hidden int libxl__vnode_pool_cpus(libxl__gc *gc, uint32_t domid,
                                   libxl_bitmap *cpumap, uint32_t *poolid);

/*
 * Let the vCPUs of vnode @nr run on @pnode; -1: anywhere.  @loose: only those
 * that libxl__vnode_find_unbound() has found.
 */
_hidden int libxl__vnode_set_affinity(libxl__gc *gc, libxl__vnode_domain *vd,
                                      unsigned int nr, int pnode, bool loose);

/*
 * Ask Xen which vnodes are unbound.  Where it cannot be told (logged), none
 * is.
 */
_hidden void libxl__vnode_find_unbound(libxl__gc *gc, libxl__vnode_domain *vd);

/*---------- the books of operations (libxl_vnode_books.c) ----------*/

static inline const char *
libxl__vnode_op_name(const struct vnode_op_record *rec)
{
    return vnode_op_kind_name(rec->kind);
}

/*
 * Take the domain's operation lock.  The userdata lock is held.
 * 0, ERROR_LOCK_FAIL: somebody has it (not logged), ERROR_FAIL.
 */
_hidden int libxl__vnode_lock(libxl__gc *gc, uint32_t domid,
                              libxl__carefd **lock);
_hidden void libxl__vnode_unlock(libxl__carefd **lock);

/* Write or remove the record of the operation under way. */
_hidden int libxl__vnode_write_record(libxl__gc *gc, uint32_t domid,
                                      const struct vnode_op_record *rec);
_hidden int libxl__vnode_drop_record(libxl__gc *gc, uint32_t domid);

/*
 * Tell the guest: record, target, grace and, last, the generation, in one
 * transaction.  @grace_ms < 0: the guest's default.
 */
_hidden int libxl__vnode_announce(libxl__gc *gc, libxl__vnode_domain *vd,
                                  const struct vnode_op_record *rec,
                                  int grace_ms);

/* The operation that takes @rec back.  It has no way back of its own. */
_hidden struct vnode_op_record
libxl__vnode_inverse(const libxl__vnode_domain *vd,
                     const struct vnode_op_record *rec, unsigned int pid);

/*
 * Make the host what it must be (libxl_vnode_settle.h), @vd with it.  Stops at
 * the first step that fails; whoever comes next goes on from there.
 * ERROR_NOT_READY (not logged): dsmd is to be told, see libxl__vnode_teller.
 *
 * @wish: of an operation that is about to be announced; NULL: none
 * @attended: the caller decides on an operation that the guest has failed
 *
 * Both locks are held.
 */
_hidden int libxl__vnode_bring(libxl__gc *gc, libxl__vnode_domain *vd,
                               const struct vnode_wish *wish, bool attended);

/* Is there nothing to do for it, as far as it can be seen without locks? */
_hidden bool libxl__vnode_is_settled(libxl__gc *gc, libxl__vnode_domain *vd);

/*
 * Complete @rec (its kind is set) from the request and the domain's state.
 * @found: the record as the caller found it, before settling.
 * 0, ERROR_VNODE_REFUSED or ERROR_INVAL, logged.
 */
_hidden int libxl__vnode_check_request(libxl__gc *gc,
                                       const libxl__vnode_domain *vd,
                                       const libxl_vnode_request *req,
                                       const struct vnode_op_record *found,
                                       struct vnode_op_record *rec);

/*---------- telling dsmd (libxl_vnode_tell.c) ----------*/

/*
 * Telling dsmd takes time.  So libxl__vnode_bring() stops at that step with
 * ERROR_NOT_READY and leaves word here; the caller gives the userdata lock back
 * and calls libxl__vnode_tell(), and begins anew when that has ended: reads
 * everything and brings.  A failure is the result of that step then, once.
 */
typedef struct libxl__vnode_teller libxl__vnode_teller;
struct libxl__vnode_teller {
    /* filled in by the caller */
    libxl__ao *ao;
    void (*callback)(libxl__egc *egc, libxl__vnode_teller *teller);
    /* private */
    unsigned int vnode;         /* of which something is known or asked */
    uint64_t known_kb;          /* what dsmd has done last, VNODE_UNTOLD */
    uint64_t asked_kb;
    enum vnode_where known_where, asked_where;
    int rc;                     /* failed, and not said yet */
    libxl__dsm_call call;
};

_hidden void libxl__vnode_teller_init(libxl__vnode_teller *teller);

/* The books of @nr are settled: what they say is what dsmd has done. */
_hidden void libxl__vnode_teller_know(libxl__vnode_teller *teller,
                                      const libxl__vnode_domain *vd,
                                      unsigned int nr);

/* What dsmd has done last for @nr, as far as it is known. */
_hidden uint64_t libxl__vnode_told_kb(const libxl__vnode_domain *vd,
                                      unsigned int nr);

_hidden enum vnode_where
libxl__vnode_told_where(const libxl__vnode_domain *vd, unsigned int nr);

/* The steps of libxl__vnode_bring(). */
_hidden int libxl__vnode_tell_step(libxl__gc *gc, libxl__vnode_domain *vd,
                                   unsigned int nr, uint64_t kb);
_hidden int libxl__vnode_place_step(libxl__gc *gc, libxl__vnode_domain *vd,
                                    unsigned int nr, bool placed);

/*
 * The next thing to tell: the guest is about to empty @nr down to @kb, or, what
 * it has, is not any more.  A hint: only ERROR_ABORTED is a failure of it.
 */
_hidden void libxl__vnode_leaving(const libxl__vnode_domain *vd,
                                  unsigned int nr, uint64_t kb);

/* 0: callback will be called, not from within.  Else: begin anew at once. */
_hidden int libxl__vnode_tell(libxl__gc *gc, libxl__vnode_teller *teller);

_hidden void libxl__vnode_teller_stop(libxl__gc *gc,
                                      libxl__vnode_teller *teller);

/* Does the domain have more of a vnode than the books will say? */
_hidden bool libxl__vnode_owes(const libxl__vnode *v);

/* May a vnode that spans be given memory?  0, ERROR_VNODE_REFUSED (logged). */
_hidden int libxl__vnode_check_span(libxl__gc *gc,
                                    const libxl__vnode_domain *vd,
                                    const libxl_vnode_request *req,
                                    unsigned int nr);

/*---------- which pnode backs a vnode (libxl_vnode_pnode.c) ----------*/

/*
 * The pnode for a vnode that is to get @need_kb KiB more: the one that it is
 * on, that the request or the configuration names, or the one with the most
 * free memory.  Not one outside the domain's cpupool, if the vnode's CPUs are
 * to run there.  0, ERROR_VNODE_REFUSED (logged), ERROR_FAIL.
 */
_hidden int libxl__vnode_choose_pnode(libxl__gc *gc,
                                      libxl__vnode_domain *vd,
                                      const libxl_vnode_request *req,
                                      unsigned int nr, uint64_t need_kb,
                                      unsigned int *pnode);

#endif /* LIBXL_VNODE_INTERNAL_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
