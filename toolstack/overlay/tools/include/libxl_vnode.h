/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * libxl: NUMA nodes of a guest that come and go while it runs.
 *
 * Included by libxl.h; not to be included alone.
 *
 * An elastic vnode is declared when a guest is built (libxl_vnode_info's
 * elastic) and is absent at first: no memory, CPUs not online.  It is attached
 * and detached in any order.  One operation at a time runs on a domain; it is
 * recorded, so that a caller that dies half-way leaves no riddle: the next one
 * can repeat the operation or do the opposite.
 *
 * The guest's part of the protocol is untrusted.  A vnode whose report cannot
 * be true is shown as faulty, and nothing is done on the strength of it.
 */
#ifndef LIBXL_VNODE_H
#define LIBXL_VNODE_H

/*
 * libxl_vnode_info.pnode of an elastic vnode without a preference: each
 * attach takes the pnode with the most free memory.
 */
#define LIBXL_VNODE_PNODE_ANY (~0U)

/*
 * libxl_vnode_request.timeout_ms by default, as any number below 0: so much,
 * and then, if there is a driver in the guest, so much more for each GiB, also
 * one that is begun, that comes or goes.
 */
#define LIBXL_VNODE_TIMEOUT_DEFAULT (-1)
#define LIBXL_VNODE_TIMEOUT_MS 120000
#define LIBXL_VNODE_TIMEOUT_MS_PER_GIB 1000

/*
 * The vnodes of a domain, home nodes included, in order of their number.
 *
 * @nr: out: how many, 0 if the domain has no vNUMA, -1 on an error
 *
 * Returns an array for libxl_vnodeinfo_list_free(), or NULL on an error (no
 * such domain, xenstore not readable; logged).
 * Changes nothing.
 */
libxl_vnodeinfo *libxl_vnode_list(libxl_ctx *ctx, uint32_t domid, int *nr);
void libxl_vnodeinfo_list_free(libxl_vnodeinfo *list, int nr);

/*
 * Ask dsmd how the vnodes do whose memory is on another host, and fill it into
 * @list, of libxl_vnode_list(): link, there_memkb, pages, faults, latency, and
 * which vCPUs run there (there_cpus, if there_cpus_known).  If there are none,
 * nobody is asked.  Changes nothing else.
 *
 * Completes within a few seconds with 0; or with an error, if dsmd does not
 * answer or not of that domain: then link is UNKNOWN and link_error says why
 * (not logged).  @list must stay until then.
 */
int libxl_vnode_ask(libxl_ctx *ctx, uint32_t domid, libxl_vnodeinfo *list,
                    int nr, const libxl_asyncop_how *ao_how)
                    LIBXL_EXTERNAL_CALLERS_ONLY;

/*
 * Make the host what it must be for the domain's vnodes, whatever has been left
 * half done: memory limit, backing pnodes, CPU affinity and availability.
 * Close the books on an operation that nobody waits for any more (started
 * without waiting, or its caller died) and that the guest has finished; what
 * the guest has failed is taken back.  Does nothing while somebody is at work.
 * dsmd is told of vnodes on another host, and given ten seconds.
 *
 * Complete with 0, ERROR_DOMAIN_NOTFOUND, ERROR_LOCK_FAIL, ERROR_VNODE_REFUSED
 * or ERROR_VNODE_UNSETTLED (dsmd refuses, or says nothing), ERROR_FAIL (logged;
 * what is missing stays to be done by the next one).
 */
int libxl_vnode_settle(libxl_ctx *ctx, uint32_t domid,
                       const libxl_asyncop_how *ao_how)
                       LIBXL_EXTERNAL_CALLERS_ONLY;

/*
 * Attach an absent vnode, detach one, or resize an attached one.
 *
 * @req->vnode: which; -1: the one whose attach or detach has not ended, else
 *   the lowest absent one (attach), the highest that is attached or residual
 *   (detach); required for set
 * @req->pnode: attach only: physical node to back it; -1: the configured one,
 *   else the one with the most free memory
 * @req->memkb: size in KiB, a multiple of 2048; 0: the declared size (attach);
 *   required for set; ignored by detach
 * @req->grace_ms: how long the guest waits for its programs before memory is
 *   taken away; -1: the guest's own default
 * @req->timeout_ms: how long to wait for the guest before the operation is
 *   undone; 0: for ever; LIBXL_VNODE_TIMEOUT_DEFAULT: by what comes or goes.
 *   An undo has 30000, and 1000 for each GiB, whatever is said here
 * @req->wait: false: complete as soon as the guest has been told; then
 *   libxl_vnode_settle() closes the books later
 * @progress: events of type LIBXL_EVENT_TYPE_VNODE_PROGRESS: at each phase
 *   (prepare, guest, settle), and when the guest gets on; may be NULL.  With
 *   the phase prepare, vnode is that of the request, or ~0, and the other
 *   fields say nothing.  With the phase end, once the host's side is in order
 *   and whatever the result, info is of that vnode as libxl_vnode_list() has
 *   it; there may be none: a request that is refused, one that has not ended.
 *
 * Nothing is done before the event loop of the caller runs: what the request
 * comes to is said when the operation completes.
 *
 * Complete with:
 *  0                           done
 *  ERROR_INVAL                 the request makes no sense; nothing was done
 *  ERROR_VNODE_REFUSED         not possible now; nothing has changed
 *  ERROR_VNODE_UNDONE          the guest failed or did not answer in time;
 *                              state and size of the node are as before
 *  ERROR_VNODE_RESIDUAL        detach: some memory could not leave
 *  ERROR_VNODE_NOT_UNDONE      the guest failed, and undoing it failed too: not
 *                              as before
 *  ERROR_VNODE_UNSETTLED       not ended: to be undone, and the guest has not
 *                              answered to that either, or Xen counts memory
 *                              that the guest says has left, or what has become
 *                              of it cannot be told; the record of it remains
 *                              for libxl_vnode_settle()
 *  ERROR_ABORTED               libxl_ao_abort(): the guest has been told to
 *                              undo it; libxl_vnode_settle() later.  Without a
 *                              driver in the guest ERROR_VNODE_UNDONE instead
 *  ERROR_DOMAIN_NOTFOUND, ERROR_DOMAIN_DESTROYED  there is no such domain,
 *                              or it stopped half-way; what it has of the vnode
 *                              ends with it
 *  ERROR_FAIL, ERROR_LOCK_FAIL, ERROR_NOMEM       internal; see the log
 *
 * Each failure logs one message that says what, with which numbers, and why.
 */
int libxl_vnode_attach(libxl_ctx *ctx, uint32_t domid,
                       const libxl_vnode_request *req,
                       const libxl_asyncop_how *ao_how,
                       const libxl_asyncprogress_how *progress)
                       LIBXL_EXTERNAL_CALLERS_ONLY;
int libxl_vnode_detach(libxl_ctx *ctx, uint32_t domid,
                       const libxl_vnode_request *req,
                       const libxl_asyncop_how *ao_how,
                       const libxl_asyncprogress_how *progress)
                       LIBXL_EXTERNAL_CALLERS_ONLY;
int libxl_vnode_set(libxl_ctx *ctx, uint32_t domid,
                    const libxl_vnode_request *req,
                    const libxl_asyncop_how *ao_how,
                    const libxl_asyncprogress_how *progress)
                    LIBXL_EXTERNAL_CALLERS_ONLY;

#endif /* LIBXL_VNODE_H */

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
