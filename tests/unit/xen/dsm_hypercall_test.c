// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hypercalls of a guest with DSM: which pages come before one runs.
 *
 * Linear address and guest-physical address are the same, frames 1 to 63 are
 * mapped.  Each case is a call, and the pages that it must bring, in order:
 * "4r" is frame 4 to read, "5w" frame 5 to write.
 *
 * usage: dsm_hypercall_test --list | CASE
 */
#include "cases.h"
#include "fake_hcall.h"
#include <asm/dsm.h>
#include <asm/dsm_domain.h>
#include <asm/dsm_route.h>

#define PAGES 64UL
#define at(page, offset) ((page) * PAGE_SIZE + (offset))

struct vcpu *current;
struct cpu_user_regs fake_regs;
struct domain dom;
struct page_info frames[NR_MFNS];
static struct vcpu vcpu;
static struct dsm_domain dsm;
static struct dsm_vcpu dsm_vcpus[3];
#define dsm_vcpu dsm_vcpus[0]

static uint8_t memory[PAGES * PAGE_SIZE] __attribute__((aligned(4096)));
static bool away[PAGES], shared[PAGES], no_table[PAGES], stays[PAGES],
            empty[PAGES], unreadable, unwritable;
static unsigned long missed;            /* frames that were asked for */
static char looked_at[4096];
static bool gate_closed, cache_disabled;
static unsigned long walked;    /* the last page, and how */
static bool walked_to_write;

#define expect(what, got, want)                                         \
    do {                                                                \
        long got_ = (got), want_ = (want);                              \
        if ( got_ != want_ )                                            \
            die("%s: %ld, expected %ld", what, got_, want_);            \
    } while ( 0 )

/* ---- What it calls ---- */

struct page_info *get_page_from_gfn(struct domain *d, unsigned long gfn,
                                    p2m_type_t *t, p2m_query_t q)
{
    static struct page_info page;
    bool write = q & P2M_UNSHARE;
    size_t n = strlen(looked_at);

    if ( !cache_disabled )
        die("looks a page up with the emulator's cache on");
    if ( write && walked == gfn && !walked_to_write )
        die("a walk to write would have set the dirty bit");
    snprintf(looked_at + n, sizeof(looked_at) - n, "%s%lu%c", n ? " " : "",
             gfn, write ? 'w' : 'r');
    *t = p2m_ram_rw;
    if ( gfn >= PAGES || empty[gfn] )
    {
        *t = p2m_mmio_dm;
        return NULL;
    }
    if ( away[gfn] || (shared[gfn] && write) )
    {
        *t = p2m_ram_paged;
        return NULL;
    }
    page.count_info++;

    return &page;
}

void put_page(struct page_info *pg)
{
    if ( !pg->count_info-- )
        die("put of a page without a reference");
}

unsigned long paging_gva_to_gfn(struct vcpu *v, unsigned long va,
                                uint32_t *pfec)
{
    unsigned long gfn = va >> PAGE_SHIFT;

    walked = gfn;
    walked_to_write = *pfec & PFEC_write_access;
    if ( gfn && gfn < PAGES && !no_table[gfn] )
        return gfn;
    *pfec = gfn < PAGES && no_table[gfn] ? PFEC_page_paged : 0;

    return gfn_x(INVALID_GFN);
}

int hvm_copy_from_guest_linear(void *buf, uint64_t addr, unsigned int size,
                               uint32_t pfec, void *pfinfo)
{
    if ( unreadable || addr + size > sizeof(memory) )
        return HVMTRANS_bad_linear_to_gfn;
    memcpy(buf, memory + addr, size);

    return HVMTRANS_okay;
}

int hvm_copy_to_guest_linear(uint64_t addr, const void *buf, unsigned int size,
                             uint32_t pfec, void *pfinfo)
{
    if ( unwritable || addr + size > sizeof(memory) )
        return HVMTRANS_bad_linear_to_gfn;
    memcpy(memory + addr, buf, size);

    return HVMTRANS_okay;
}

unsigned int hvmemul_cache_disable(struct vcpu *v)
{
    cache_disabled = true;

    return 7;
}

void hvmemul_cache_restore(struct vcpu *v, unsigned int token)
{
    expect("token", token, 7);
    cache_disabled = false;
}

bool dsm_is_uncached(const struct domain *d, gfn_t gfn)
{
    return stays[gfn_x(gfn)];
}

void dsm_populate(struct domain *d, gfn_t gfn)
{
    expect("may wait", dsm_vcpu.hcall_retries, true);
    missed |= 1UL << gfn_x(gfn);
}

/* Calls that leave, and what is said to who makes them. */
static char sent[256];
static int reply;

int dsm_call_away(struct vcpu *v, const struct dsm_rule *rule,
                  unsigned int subject, unsigned int slice, void *arg)
{
    size_t n = strlen(sent);
    unsigned int i;

    n += snprintf(sent + n, sizeof(sent) - n, "%u %u %u@%u:", rule->op,
                  rule->cmd, subject, slice);
    for ( i = 0; i < rule->bytes; i += 4 )
        n += snprintf(sent + n, sizeof(sent) - n, " %x",
                      *(const uint32_t *)(arg + i));
    for ( ; reply == 1 && i < rule->back; i++ )
        ((uint8_t *)arg)[i] = 0x70 + i;

    return reply;
}

void dsm_forward_port(struct domain *d, unsigned int port)
{
    size_t n = strlen(sent);

    if ( d != &dom )
        die("another domain");
    snprintf(sent + n, sizeof(sent) - n, "event %u", port);
}

bool dsm_gate_enter(struct vcpu *v)
{
    dsm_vcpu.in_hcall = !gate_closed;

    return !gate_closed;
}

void dsm_gate_leave(struct vcpu *v)
{
    dsm_vcpu.in_hcall = dsm_vcpu.hcall_retries = false;
}

/* ---- Calls ---- */

struct call {
    const char *name;
    unsigned long rax, rdi, rsi, rdx;
    const char *pages;          /* that it has to bring */
    long answer;                /* or what the guest is told at once */
    bool answered;
    const char *sent;           /* what goes to another slice */
};

static enum dsm_hcall call(const struct call *c, struct cpu_user_regs *regs)
{
    *regs = (struct cpu_user_regs){
        .rax = c->rax, .rdi = c->rdi, .rsi = c->rsi, .rdx = c->rdx };
    looked_at[0] = sent[0] = 0;
    missed = 0;

    return dsm_hcall_begin(regs, X86_MODE_64BIT);
}

/* Arguments that point to others. */
static void arguments(void)
{
    struct xen_memory_reservation r = {
        .extent_start.p = (void *)at(5, 4088), .nr_extents = 4 };
    struct xen_memory_reservation huge = {
        .extent_start.p = (void *)at(5, 0), .nr_extents = 1UL << 40 };
    struct xen_memory_reservation overflows = {
        .extent_start.p = (void *)at(5, 0), .nr_extents = 1UL << 61 };
    struct xen_memory_reservation wraps = {
        .extent_start.p = (void *)(~0UL - 100), .nr_extents = 100 };
    struct xen_add_to_physmap_batch b = {
        .size = 3, .idxs.p = (void *)at(6, 0), .gpfns.p = (void *)at(7, 0),
        .errs.p = (void *)at(8, 0) };
    struct xen_memory_map map = {
        .nr_entries = 10, .buffer.p = (void *)at(9, 0) };
    struct xen_vnuma_topology_info t = {
        .nr_vnodes = 2, .nr_vcpus = 4, .nr_vmemranges = 2,
        .vdistance.h.p = (void *)at(10, 0),
        .vcpu_to_vnode.h.p = (void *)at(11, 0),
        .vmemrange.h.p = (void *)at(12, 0) };
    struct sched_poll poll = { .ports.p = (void *)at(13, 0), .nr_ports = 2 };
    struct sched_poll polls = {
        .ports.p = (void *)at(13, 0), .nr_ports = 1U << 20 };
    struct vcpu_register_vcpu_info info = { .mfn = 14 };
    struct gnttab_setup_table setup = {
        .nr_frames = 4, .frame_list.p = (void *)at(15, 0) };
    struct xen_varbuf buf = { .len = 5000 }, any = { .len = ~0U };
    struct xen_memory_map maps_all = {
        .nr_entries = 1U << 20, .buffer.p = (void *)at(9, 0) };

    const struct evtchn_bind_ipi ipi = { .vcpu = 1, .port = 99 };
    static const struct evtchn_status mine = { .dom = DOMID_SELF, .port = 7 };
    static const struct evtchn_status other = { .dom = DOMID_SELF, .port = 2048 };
    static const struct evtchn_status domain = { .dom = 3, .port = 2048 };
    const struct evtchn_bind_virq virq = { .vcpu = 1 };
    const struct evtchn_bind_vcpu to = { .vcpu = 1 };
    static const struct xen_hvm_evtchn_upcall_vector upcall = {
        .vcpu = 1, .vector = 0xf3 };

    const struct xen_add_to_physmap moves = {
        .space = XENMAPSPACE_gmfn, .idx = 20, .gpfn = 21 };
    const struct xen_add_to_physmap maps = {
        .space = XENMAPSPACE_gmfn_foreign, .idx = 20, .gpfn = 22 };
    const struct xen_remove_from_physmap removes = { .gpfn = 23 };

    memcpy(memory + at(19, 4080), &moves, sizeof(moves));
    memcpy(memory + at(19, 0), &maps, sizeof(maps));
    memcpy(memory + at(19, 64), &removes, sizeof(removes));
    memcpy(memory + at(14, 0), &ipi, sizeof(ipi));
    memcpy(memory + at(14, 128), &virq, sizeof(virq));
    memcpy(memory + at(14, 256), &to, sizeof(to));
    memcpy(memory + at(14, 384), &upcall, sizeof(upcall));
    /* Ports: of slice 0, the first one of slice 1, and of nobody. */
    memcpy(memory + at(16, 0), &(uint32_t){ 7 }, 4);
    memcpy(memory + at(16, 64), &(uint32_t){ 2048 }, 4);
    memcpy(memory + at(16, 128), &(uint32_t){ 4096 }, 4);
    memcpy(memory + at(17, 0), &mine, sizeof(mine));
    memcpy(memory + at(17, 64), &other, sizeof(other));
    memcpy(memory + at(17, 128), &domain, sizeof(domain));
    /* Nothing of another slice. */
    memcpy(memory + at(18, 0), &(struct evtchn_bind_virq){ .virq = 3 }, 12);
    memcpy(memory + at(18, 64), &(struct evtchn_bind_ipi){ .vcpu = 9 }, 8);
    memcpy(memory + at(18, 128),
           &(struct sched_shutdown){ .reason = SHUTDOWN_suspend }, 4);
    memcpy(memory + at(18, 192),
           &(struct sched_shutdown){ .reason = SHUTDOWN_soft_reset }, 4);
    memcpy(memory + at(2, 0), &r, sizeof(r));
    memcpy(memory + at(2, 512), &huge, sizeof(huge));
    memcpy(memory + at(2, 1024), &wraps, sizeof(wraps));
    memcpy(memory + at(2, 1536), &overflows, sizeof(overflows));
    memcpy(memory + at(3, 3072), &polls, sizeof(polls));
    memcpy(memory + at(3, 0), &b, sizeof(b));
    memcpy(memory + at(3, 512), &map, sizeof(map));
    memcpy(memory + at(3, 1024), &t, sizeof(t));
    memcpy(memory + at(3, 2048), &poll, sizeof(poll));
    memcpy(memory + at(4, 0), &info, sizeof(info));
    info.offset = 64;
    memcpy(memory + at(4, 256), &info, sizeof(info));
    memcpy(memory + at(4, 512), &setup, sizeof(setup));
    memcpy(memory + at(4, 1024), &buf, sizeof(buf));
    memcpy(memory + at(4, 1536), &any, sizeof(any));
    memcpy(memory + at(4, 2048), &maps_all, sizeof(maps_all));
}

#define RUNS(call, a1, a2, a3, pages) \
    #call " " #a1, __HYPERVISOR_##call, a1, a2, a3, pages, 0, false
#define SAYS(call, a1, a2, a3, pages, answer) \
    #call " " #a1, __HYPERVISOR_##call, a1, a2, a3, pages, answer, true

static const struct call calls[] = {
    { RUNS(memory_op, XENMEM_populate_physmap, at(2, 0), 0,
           "2r 2w 5r 5w 6r 6w") },
    /* A continuation: three of four extents are done. */
    { RUNS(memory_op, XENMEM_decrease_reservation | 3 << MEMOP_EXTENT_SHIFT,
           at(2, 0), 0, "2r 2w 6r 6w") },
    { RUNS(memory_op, XENMEM_decrease_reservation | 4 << MEMOP_EXTENT_SHIFT,
           at(2, 0), 0, "2r 2w") },
    { SAYS(memory_op, XENMEM_populate_physmap, at(2, 512), 0, "2r 2w",
           -E2BIG) },
    { SAYS(memory_op, XENMEM_populate_physmap, at(2, 1536), 0, "2r 2w",
           -E2BIG) },
    { RUNS(memory_op, XENMEM_populate_physmap, at(2, 1024), 0, "2r 2w") },
    /* By number: what moves, and what has its place. */
    { RUNS(memory_op, XENMEM_add_to_physmap, at(19, 4080), 0,
           "19r 19w 20r 20w 20w 21w") },
    { RUNS(memory_op, XENMEM_add_to_physmap, at(19, 0), 0, "19r 19w 22w") },
    { RUNS(memory_op, XENMEM_remove_from_physmap, at(19, 64), 0,
           "19r 23w") },
    { RUNS(memory_op, XENMEM_add_to_physmap_batch, at(3, 0), 0,
           "3r 3w 6r 7r 8r 8w") },
    { RUNS(memory_op, XENMEM_memory_map, at(3, 512), 0, "3r 3w 9r 9w") },
    /* As much as Xen has, if the guest has more room. */
    { RUNS(memory_op, XENMEM_memory_map, at(4, 2048), 0,
           "4r 4w 9r 9w 10r 10w") },
    { RUNS(memory_op, XENMEM_get_vnumainfo, at(3, 1024), 0,
           "3r 3w 10r 10w 11r 11w 12r 12w") },
    { RUNS(memory_op, XENMEM_maximum_ram_page, 0, 0, "") },
    { RUNS(memory_op, XENMEM_maximum_gpfn, at(9, 0), 0, "9r") },
    { SAYS(memory_op, 29, at(9, 0), 0, "", -ENOSYS) },
    { RUNS(xen_version, XENVER_version, 0, 0, "") },
    { RUNS(xen_version, XENVER_extraversion, at(9, 0), 0, "9r 9w") },
    { RUNS(xen_version, XENVER_compile_info, at(9, 0), 0, "9r 9w") },
    { RUNS(xen_version, XENVER_capabilities, at(9, 4000), 0,
           "9r 9w 10r 10w") },
    { RUNS(xen_version, XENVER_changeset, at(9, 0), 0, "9r 9w") },
    { RUNS(xen_version, XENVER_platform_parameters, at(9, 0), 0, "9r 9w") },
    { RUNS(xen_version, XENVER_get_features, at(9, 0), 0, "9r 9w") },
    { RUNS(xen_version, XENVER_guest_handle, at(9, 0), 0, "9r 9w") },
    { RUNS(xen_version, XENVER_commandline, at(9, 0), 0, "9r 9w") },
    { SAYS(xen_version, 99, at(9, 0), 0, "", -ENOSYS) },
    { RUNS(xen_version, XENVER_build_id, 0, 0, "") },
    { RUNS(xen_version, XENVER_build_id, at(4, 1024), 0, "4r 4r 4w 5r 5w") },
    { RUNS(xen_version, XENVER_build_id, at(4, 1536), 0,
           "4r 4r 4w 5r 5w 6r 6w 7r 7w 8r 8w 9r 9w 10r 10w 11r 11w 12r 12w "
           "13r 13w 14r 14w 15r 15w 16r 16w 17r 17w 18r 18w 19r 19w 20r 20w") },
    { RUNS(console_io, 0, 5000, at(9, 0), "9r 9w 10r 10w") },
    { RUNS(console_io, 0, 1UL << 32 | 5000, at(9, 0), "9r 9w 10r 10w") },
    { SAYS(console_io, 0, (16 << 12) + 1, at(9, 0), "", -E2BIG) },
    { SAYS(console_io, 0, 1 << 20, at(9, 0), "", -E2BIG) },
    { RUNS(sched_op, SCHEDOP_yield, 0, 0, "") },
    { RUNS(sched_op, SCHEDOP_poll, at(3, 2048), 0, "3r 13r") },
    { RUNS(sched_op, SCHEDOP_poll, at(3, 3072), 0, "3r 13r") },
    { RUNS(sched_op, SCHEDOP_shutdown, at(9, 0), 0, "9r") },
    { RUNS(sched_op, SCHEDOP_shutdown, at(18, 128), 0, "18r") },
    { RUNS(sched_op, SCHEDOP_shutdown_code, at(9, 0), 0, "9r") },
    { RUNS(sched_op, SCHEDOP_remote_shutdown, at(9, 0), 0, "9r") },
    { RUNS(sched_op, SCHEDOP_watchdog, at(9, 0), 0, "9r") },
    { SAYS(sched_op, SCHEDOP_pin_override, at(9, 0), 0, "", -ENOSYS) },
    { SAYS(sched_op, 99, at(9, 0), 0, "", -ENOSYS) },
    { RUNS(vcpu_op, VCPUOP_register_vcpu_info, 0, at(4, 0), "4r 14w") },
    { RUNS(vcpu_op, VCPUOP_register_vcpu_info, 0, at(4, 256), "4r 14w") },
    { SAYS(vcpu_op, VCPUOP_register_runstate_memory_area, 0, at(9, 0), "",
           0) },
    { SAYS(vcpu_op, VCPUOP_register_vcpu_time_memory_area, 0, at(9, 0), "",
           -ENOSYS) },
    { SAYS(vcpu_op, VCPUOP_register_runstate_phys_area, 0, at(9, 0), "",
           -ENOSYS) },
    { SAYS(vcpu_op, VCPUOP_register_vcpu_time_phys_area, 0, at(9, 0), "",
           -ENOSYS) },
    { RUNS(vcpu_op, VCPUOP_initialise, 1, at(9, 0), "9r 10r") },
    { RUNS(vcpu_op, VCPUOP_up, 0, at(9, 0), "") },
    { RUNS(vcpu_op, VCPUOP_down, 0, 0, "") },
    { RUNS(vcpu_op, VCPUOP_is_up, 0, 0, "") },
    { RUNS(vcpu_op, VCPUOP_stop_periodic_timer, 0, 0, "") },
    { RUNS(vcpu_op, VCPUOP_stop_singleshot_timer, 0, 0, "") },
    { RUNS(vcpu_op, VCPUOP_send_nmi, 0, 0, "") },
    { RUNS(vcpu_op, VCPUOP_get_runstate_info, 0, at(9, 4090),
           "9r 9w 10r 10w") },
    { RUNS(vcpu_op, VCPUOP_set_periodic_timer, 0, at(9, 0), "9r 9w") },
    { RUNS(vcpu_op, VCPUOP_set_singleshot_timer, 0, at(9, 0), "9r 9w") },
    { RUNS(vcpu_op, VCPUOP_get_physid, 0, at(9, 0), "9r 9w") },
    { SAYS(vcpu_op, 16, 0, at(9, 0), "", -ENOSYS) },
    { RUNS(event_channel_op, EVTCHNOP_send, at(9, 0), 0, "9r") },
    { RUNS(event_channel_op, EVTCHNOP_send, at(9, 4093), 0, "9r 10r") },
    { RUNS(event_channel_op, EVTCHNOP_alloc_unbound, at(9, 0), 0, "9r 9w") },
    { RUNS(event_channel_op, EVTCHNOP_bind_interdomain, at(9, 4080), 0,
           "9r 9w 10r 10w") },
    { RUNS(event_channel_op, EVTCHNOP_close, at(9, 0), 0, "9r") },
    { RUNS(event_channel_op, EVTCHNOP_status, at(9, 0), 0, "9r 9w") },
    { RUNS(event_channel_op, EVTCHNOP_unmask, at(9, 0), 0, "9r") },
    { RUNS(event_channel_op, EVTCHNOP_reset, at(9, 0), 0, "9r 9w") },
    { RUNS(event_channel_op, EVTCHNOP_reset_cont, at(9, 0), 0, "9r 9w") },
    { SAYS(event_channel_op, EVTCHNOP_bind_pirq, at(9, 0), 0, "", -ENOSYS) },
    { SAYS(event_channel_op, 15, at(9, 0), 0, "", -ENOSYS) },
    { SAYS(event_channel_op, EVTCHNOP_init_control, at(9, 0), 0, "",
           -ENOSYS) },
    { SAYS(event_channel_op, EVTCHNOP_expand_array, at(9, 0), 0, "",
           -ENOSYS) },
    { SAYS(event_channel_op, EVTCHNOP_set_priority, at(9, 0), 0, "",
           -ENOSYS) },
    { RUNS(grant_table_op, GNTTABOP_map_grant_ref, at(9, 4090), 2,
           "9r 9w 10r 10w") },
    { SAYS(grant_table_op, GNTTABOP_map_grant_ref, at(9, 0), 1 << 20, "",
           -E2BIG) },
    /* The hypervisor takes 32 bits of it. */
    { RUNS(grant_table_op, GNTTABOP_map_grant_ref, at(9, 0), 1UL << 32 | 1,
           "9r 9w") },
    { RUNS(grant_table_op, GNTTABOP_setup_table, at(4, 512), 1,
           "4r 4w 15r 15w") },
    { SAYS(grant_table_op, GNTTABOP_setup_table, at(4, 512), 2, "", -EINVAL) },
    { SAYS(grant_table_op, GNTTABOP_dump_table, at(9, 0), 1, "", -ENOSYS) },
    { RUNS(hvm_op, HVMOP_get_param, at(9, 0), 0, "9r 9w") },
    { RUNS(hvm_op, HVMOP_flush_tlbs, 0, 0, "") },
    { SAYS(hvm_op, HVMOP_altp2m, at(9, 0), 0, "", -ENOSYS) },
    { RUNS(event_channel_op, EVTCHNOP_bind_ipi, at(14, 0), 0, "14r 14w") },
    { RUNS(event_channel_op, EVTCHNOP_bind_virq, at(14, 128), 0, "14r 14w") },
    { RUNS(event_channel_op, EVTCHNOP_bind_vcpu, at(14, 256), 0, "14r") },
    { RUNS(hvm_op, HVMOP_set_evtchn_upcall_vector, at(14, 384), 0,
           "14r 14w") },
    { RUNS(physdev_op, PHYSDEVOP_irq_status_query, at(9, 0), 0, "9r 9w") },
    { RUNS(physdev_op, PHYSDEVOP_eoi, at(9, 0), 0, "9r 9w") },
    { RUNS(physdev_op, PHYSDEVOP_map_pirq, at(9, 4090), 0,
           "9r 9w 10r 10w") },
    { RUNS(physdev_op, PHYSDEVOP_unmap_pirq, at(9, 0), 0, "9r 9w") },
    { RUNS(physdev_op, PHYSDEVOP_get_free_pirq, at(9, 0), 0, "9r 9w") },
    { SAYS(physdev_op, PHYSDEVOP_setup_gsi, at(9, 0), 0, "", -ENOSYS) },
    { SAYS(physdev_op, 99, at(9, 0), 0, "", -ENOSYS) },
    { RUNS(set_timer_op, 12345, 0, 0, "") },
    { "a call that is not listed", 13, 0, 0, 0, "", -ENOSYS, true },
};

/* vCPU 1 runs in slice 1; these are made in slice 0. */
static const struct call about_another[] = {
    { SAYS(vcpu_op, VCPUOP_up, 1, 0, "", -ENOSYS) },
    { SAYS(vcpu_op, VCPUOP_register_vcpu_info, 1, at(4, 0), "4r", -EBUSY),
      .sent = "24 10 1@1: e 0 0 0" },
    { SAYS(vcpu_op, VCPUOP_register_vcpu_info, 1 | 1UL << 32, at(4, 0), "4r",
           -EBUSY), .sent = "24 10 1@1: e 0 0 0" },
    /* The hypervisor takes 32 bits of it. */
    { SAYS(vcpu_op, VCPUOP_up, 1 | 1UL << 32, 0, "", -ENOSYS) },
    { RUNS(vcpu_op, VCPUOP_register_vcpu_info, 0, at(4, 0), "4r 14w") },
    /* There is no such vCPU: the hypercall says so. */
    { RUNS(vcpu_op, VCPUOP_up, 3, 0, "") },
    { SAYS(event_channel_op, EVTCHNOP_bind_ipi, at(14, 0), 0, "14r 14w",
           -EBUSY), .sent = "32 7 1@1: 1" },
    { SAYS(event_channel_op, EVTCHNOP_bind_virq, at(14, 128), 0, "14r 14w",
           -EBUSY), .sent = "32 1 1@1: 0 1" },
    { RUNS(event_channel_op, EVTCHNOP_bind_virq, at(18, 0), 0, "18r 18w") },
    { RUNS(event_channel_op, EVTCHNOP_bind_ipi, at(18, 64), 0, "18r 18w") },
    { RUNS(event_channel_op, EVTCHNOP_send, at(16, 0), 0, "16r") },
    { SAYS(event_channel_op, EVTCHNOP_send, at(16, 64), 0, "16r", 0),
      .sent = "event 2048" },
    /* Of the sub-operation, too. */
    { SAYS(event_channel_op, EVTCHNOP_send | 1UL << 32, at(16, 64), 0, "16r",
           0), .sent = "event 2048" },
    { RUNS(event_channel_op, EVTCHNOP_send, at(16, 128), 0, "16r") },
    { RUNS(event_channel_op, EVTCHNOP_unmask, at(16, 0), 0, "16r") },
    { SAYS(event_channel_op, EVTCHNOP_unmask, at(16, 64), 0, "16r", -EBUSY),
      .sent = "32 9 2048@1: 800" },
    { RUNS(event_channel_op, EVTCHNOP_close, at(16, 0), 0, "16r") },
    { SAYS(event_channel_op, EVTCHNOP_close, at(16, 64), 0, "16r", -EBUSY),
      .sent = "32 3 2048@1: 800" },
    { RUNS(event_channel_op, EVTCHNOP_status, at(17, 0), 0, "17r 17w") },
    { SAYS(event_channel_op, EVTCHNOP_status, at(17, 64), 0, "17r 17w",
           -EBUSY), .sent = "32 5 2048@1: 7ff0 800" },
    { RUNS(event_channel_op, EVTCHNOP_status, at(17, 128), 0, "17r 17w") },
    { SAYS(event_channel_op, EVTCHNOP_bind_vcpu, at(14, 256), 0, "14r",
           -ENOSYS) },
    { SAYS(hvm_op, HVMOP_set_evtchn_upcall_vector, at(14, 384), 0, "14r 14w",
           -EBUSY), .sent = "34 23 1@1: 1 f3" },
    { SAYS(hvm_op, HVMOP_flush_tlbs, 0, 0, "", -ENOSYS) },
    /* All slices would stand still, and nobody has others than this go on. */
    { SAYS(sched_op, SCHEDOP_shutdown, at(18, 128), 0, "18r", -ENOSYS) },
    /* The end of the guest, in all of them. */
    { RUNS(sched_op, SCHEDOP_shutdown, at(18, 192), 0, "18r") },
};

/* These in slice 1. */
static const struct call abroad[] = {
    { RUNS(xen_version, XENVER_version, 0, 0, "") },
    { RUNS(console_io, 0, 100, at(9, 0), "9r 9w") },
    { RUNS(sched_op, SCHEDOP_yield, 0, 0, "") },
    { RUNS(sched_op, SCHEDOP_block, 0, 0, "") },
    { RUNS(sched_op, SCHEDOP_shutdown, at(9, 0), 0, "9r") },
    { SAYS(sched_op, SCHEDOP_shutdown, at(18, 128), 0, "18r", -ENOSYS) },
    { RUNS(sched_op, SCHEDOP_poll, at(3, 2048), 0, "3r 13r") },
    { SAYS(memory_op, XENMEM_populate_physmap, at(2, 0), 0, "", -ENOSYS) },
    /* vCPU 1 runs there, too: its own vcpu_info, and that of vCPU 2. */
    { RUNS(vcpu_op, VCPUOP_register_vcpu_info, 1, at(4, 0), "4r 14w") },
    { SAYS(vcpu_op, VCPUOP_register_vcpu_info, 2, at(4, 0), "4r", -EBUSY),
      .sent = "24 10 2@0: e 0 0 0" },
    /* With others in its page. */
    { SAYS(vcpu_op, VCPUOP_register_vcpu_info, 1, at(4, 256), "4r", -EINVAL) },
    { SAYS(vcpu_op, VCPUOP_register_vcpu_info, 2, at(4, 256), "4r", -EBUSY),
      .sent = "24 10 2@0: e 0 40 0" },
    { SAYS(vcpu_op, VCPUOP_register_runstate_memory_area, 1, at(9, 0), "",
           0) },
    { SAYS(vcpu_op, VCPUOP_register_runstate_memory_area, 2, at(9, 0), "",
           -ENOSYS) },
    { RUNS(vcpu_op, VCPUOP_stop_periodic_timer, 1, 0, "") },
    { RUNS(vcpu_op, VCPUOP_stop_singleshot_timer, 1, 0, "") },
    { SAYS(vcpu_op, VCPUOP_stop_singleshot_timer, 2, 0, "", -ENOSYS) },
    { RUNS(vcpu_op, VCPUOP_set_singleshot_timer, 1, at(9, 0), "9r 9w") },
    { SAYS(vcpu_op, VCPUOP_set_singleshot_timer, 2, at(9, 0), "", -ENOSYS) },
    { SAYS(vcpu_op, VCPUOP_set_periodic_timer, 1, at(9, 0), "", -ENOSYS) },
    { SAYS(vcpu_op, VCPUOP_up, 1, 0, "", -ENOSYS) },
    { RUNS(hvm_op, HVMOP_set_evtchn_upcall_vector, at(14, 384), 0,
           "14r 14w") },
    { RUNS(event_channel_op, EVTCHNOP_bind_ipi, at(14, 0), 0, "14r 14w") },
    { SAYS(event_channel_op, EVTCHNOP_bind_vcpu, at(14, 256), 0, "",
           -ENOSYS) },
    { SAYS(event_channel_op, EVTCHNOP_alloc_unbound, at(9, 0), 0, "",
           -ENOSYS) },
    { SAYS(event_channel_op, EVTCHNOP_bind_interdomain, at(9, 0), 0, "",
           -ENOSYS) },
    { SAYS(event_channel_op, EVTCHNOP_reset, at(9, 0), 0, "", -ENOSYS) },
    { SAYS(event_channel_op, EVTCHNOP_send, at(16, 0), 0, "16r", 0),
      .sent = "event 7" },
    { RUNS(event_channel_op, EVTCHNOP_send, at(16, 64), 0, "16r") },
    { RUNS(event_channel_op, EVTCHNOP_close, at(16, 64), 0, "16r") },
    { SAYS(event_channel_op, EVTCHNOP_close, at(16, 0), 0, "16r", -EBUSY),
      .sent = "32 3 7@0: 7" },
    { SAYS(event_channel_op, EVTCHNOP_status, at(17, 0), 0, "17r 17w",
           -EBUSY), .sent = "32 5 7@0: 7ff0 7" },
    { SAYS(hvm_op, HVMOP_flush_tlbs, 0, 0, "", -ENOSYS) },
    { SAYS(grant_table_op, GNTTABOP_map_grant_ref, at(9, 0), 1, "", -ENOSYS) },
    { SAYS(hvm_op, HVMOP_get_param, at(9, 0), 0, "", -ENOSYS) },
    { SAYS(physdev_op, 0, at(9, 0), 0, "", -ENOSYS) },
    { SAYS(set_timer_op, 12345, 0, 0, "", -ENOSYS) },
};

/* ---- Cases ---- */

/* Of what is refused (0: nothing is) to a vCPU elsewhere the log has a line. */
static void said(const char *what, unsigned long nr, unsigned long op)
{
    char words[sizeof(fake_said)] = "";

    if ( nr && dsm.slice )
        snprintf(words, sizeof(words),
                 "DSM: hypercall %lu, operation %lu, is refused on this host\n",
                 nr, op);
    if ( strcmp(fake_said, words) )
        die("%s: the log has \"%s\", not \"%s\"", what, fake_said, words);
}

static void check(const struct call *list, unsigned int nr)
{
    struct cpu_user_regs regs;
    unsigned int i;

    for ( i = 0; i < nr; i++ )
    {
        const struct call *c = &list[i];
        enum dsm_hcall rc;

        fake_said[0] = 0;
        rc = call(c, &regs);
        said(c->name, c->answered && c->answer == -ENOSYS ? c->rax : 0, c->rdi);
        if ( strcmp(looked_at, c->pages) )
            die("%s: looks at \"%s\", not at \"%s\"", c->name, looked_at,
                c->pages);
        if ( strcmp(sent, c->sent ?: "") )
            die("%s: sends \"%s\", not \"%s\"", c->name, sent, c->sent ?: "");
        expect(c->name, rc, c->answered ? DSM_HCALL_ANSWERED : DSM_HCALL_RUN);
        expect("the emulator's cache is off", cache_disabled, false);
        expect("the gate is held", dsm_vcpu.in_hcall, !c->answered);
        expect("RAX", regs.rax, c->answered ? c->answer : (long)c->rax);
        if ( !c->answered )
        {
            expect("number", dsm_vcpu.hcall, c->rax);
            expect("its copies may wait", dsm_vcpu.hcall_retries,
                   c->rax == __HYPERVISOR_grant_table_op);
        }
        dsm_hcall_end();
        expect("the gate is left", dsm_vcpu.in_hcall, false);
    }
}

static void all_here(void)
{
    check(calls, ARRAY_SIZE(calls));
}

/* Once vCPUs are in several slices, each with one there, it stays. */
static void shared_info_stays(void)
{
    static const struct call moves = {
        RUNS(memory_op, XENMEM_add_to_physmap, at(20, 0), 0, "") };
    static const struct call covers = {
        RUNS(memory_op, XENMEM_add_to_physmap, at(20, 64), 0, "") };
    static const struct call removes = {
        RUNS(memory_op, XENMEM_remove_from_physmap, at(20, 128), 0, "") };
    static const struct call moves_by_list = {
        RUNS(memory_op, XENMEM_add_to_physmap_batch, at(20, 192), 0, "") };
    static const struct call covers_by_list = {
        RUNS(memory_op, XENMEM_add_to_physmap_batch, at(20, 256), 0, "") };
    struct xen_add_to_physmap_batch list = {
        .space = XENMAPSPACE_shared_info, .size = 1,
        .idxs.p = (void *)at(6, 0), .gpfns.p = (void *)at(7, 0),
        .errs.p = (void *)at(8, 0) };
    static const struct {
        const struct call *call;
        unsigned long at;
        bool refused;
    } t[] = {
        /* One entry at a time moves it, too. */
        { &moves_by_list, 30, true },
        { &moves_by_list, INVALID_M2P_ENTRY, false },
        { &covers_by_list, 30, false },
        { &moves, 30, true }, { &moves, 31, false },
        { &moves, INVALID_M2P_ENTRY, false },
        { &covers, 30, false }, { &covers, 31, true },
        { &covers, INVALID_M2P_ENTRY, false },
        { &removes, 30, false }, { &removes, 31, true },
    };
    struct xen_add_to_physmap add = { .space = XENMAPSPACE_shared_info, .gpfn = 31 };
    struct xen_remove_from_physmap remove = { .gpfn = 31 };
    struct cpu_user_regs regs;
    unsigned int i;

    memcpy(memory + at(20, 0), &add, sizeof(add));
    add.space = XENMAPSPACE_gmfn_foreign;
    memcpy(memory + at(20, 64), &add, sizeof(add));
    memcpy(memory + at(20, 128), &remove, sizeof(remove));
    memcpy(memory + at(20, 192), &list, sizeof(list));
    list.space = XENMAPSPACE_gmfn_foreign;
    memcpy(memory + at(20, 256), &list, sizeof(list));
    dom.shared_info = (void *)frames[SHARED_MFN].bytes;
    dsm.nr_slices = 2;
    for ( i = 0; i < 2 * ARRAY_SIZE(t); i++ )
    {
        bool refused = t[i / 2].refused && i % 2;

        dsm.spread = i % 2;
        frames[SHARED_MFN].m2p = t[i / 2].at;
        expect("shared_info", call(t[i / 2].call, &regs),
               refused ? DSM_HCALL_ANSWERED : DSM_HCALL_RUN);
        if ( refused )
            expect("RAX", regs.rax, -EBUSY);
        dsm_hcall_end();
    }
}

/* A guest whose vCPUs have come home can be suspended again. */
static void suspended(void)
{
    static const struct call suspends = {
        RUNS(sched_op, SCHEDOP_shutdown, at(18, 128), 0, "") };
    struct cpu_user_regs regs;

    dsm.nr_slices = 2;
    dsm.spread = true;
    dsm_vcpus[1].slice = 1;
    expect("one is elsewhere", call(&suspends, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, -ENOSYS);
    unreadable = true;
    expect("Xen says what can't be read", call(&suspends, &regs), DSM_HCALL_RUN);
    dsm_hcall_end();
    unreadable = false;
    dsm_vcpus[1].slice = 0;
    expect("all are at home", call(&suspends, &regs), DSM_HCALL_RUN);
    dsm_hcall_end();
    /* By a vCPU of another slice: all that run elsewhere may be vCPU 0. */
    dsm.slice = vcpu.vcpu_id = dsm_vcpus[1].slice = dsm_vcpus[2].slice = 1;
    expect("vCPU 0 is elsewhere", call(&suspends, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, -ENOSYS);
}

/* Where vCPU 0 runs says nothing of a vCPU that there is not. */
static void no_such_vcpu(void)
{
    static const struct call up = { RUNS(vcpu_op, VCPUOP_stop_periodic_timer, 3,
                                         0, "") };
    struct cpu_user_regs regs;

    dsm.nr_slices = 2;
    dsm.spread = true;
    dsm.slice = vcpu.vcpu_id = dsm_vcpus[1].slice = dsm_vcpus[2].slice = 1;
    expect("Xen says that there is none", call(&up, &regs), DSM_HCALL_RUN);
    dsm_hcall_end();
}

static void another_slice(void)
{
    dsm.nr_slices = 2;
    dsm.spread = true;
    dsm_vcpus[1].slice = 1;
    reply = -EBUSY;
    check(about_another, ARRAY_SIZE(about_another));
    dsm.slice = 1;
    dsm_vcpus[0].slice = 1;
    check(abroad, ARRAY_SIZE(abroad));
}

/* What a call leaves in its structure comes back into it. */
static void results(void)
{
    const struct call ipi = {
        RUNS(event_channel_op, EVTCHNOP_bind_ipi, at(14, 0), 0, "") };
    const struct call close = {
        RUNS(event_channel_op, EVTCHNOP_close, at(16, 64), 0, "") };
    const struct call status = {
        RUNS(event_channel_op, EVTCHNOP_status, at(17, 64), 0, "") };
    struct evtchn_bind_ipi *bound = (void *)(memory + at(14, 0));
    struct evtchn_status *told = (void *)(memory + at(17, 64));
    struct cpu_user_regs regs;

    dsm.nr_slices = 2;
    dsm.spread = true;
    dsm_vcpus[1].slice = 1;
    reply = -EEXIST;
    expect("an error", call(&ipi, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, -EEXIST);
    expect("nothing is written", bound->port, 99);
    unwritable = true;
    expect("an error", call(&ipi, &regs), DSM_HCALL_ANSWERED);
    expect("needs no place", regs.rax, -EEXIST);
    unwritable = false;
    reply = 1;
    expect("a port", call(&ipi, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, 0);
    expect("vCPU", bound->vcpu, 1);
    expect("port", bound->port, 0x77767574);
    expect("and nothing behind it", bound[1].vcpu, 0);
    expect("a status", call(&status, &regs), DSM_HCALL_ANSWERED);
    expect("port", told->port, 2048);
    expect("status", told->status, 0x7b7a7978);
    expect("the rest", told->u, 0x8786858483828180UL);
    unwritable = true;
    expect("no place", call(&ipi, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, -EFAULT);
    expect("not needed", call(&close, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, 0);
    unwritable = false;
}

/* Nobody has ports in another slice as long as no vCPU is there. */
static void ports_at_home(void)
{
    const struct call c = {
        RUNS(event_channel_op, EVTCHNOP_send, at(16, 64), 0, "") };
    struct cpu_user_regs regs;

    dsm.nr_slices = 2;
    expect("runs", call(&c, &regs), DSM_HCALL_RUN);
    dsm.spread = true;
    expect("is sent", call(&c, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, 0);
}

/* It waits for another slice; then it is told 0; and what cannot be read. */
static void answers(void)
{
    const struct call c = {
        RUNS(vcpu_op, VCPUOP_register_vcpu_info, 1, at(4, 0), "") };
    struct cpu_user_regs regs;

    dsm.nr_slices = 2;
    dsm.spread = true;
    dsm_vcpus[1].slice = 1;
    reply = -ERESTART;
    expect("waits", call(&c, &regs), DSM_HCALL_RETRY);
    expect("nothing else happened", regs.rax, c.rax);
    expect("the gate is left", dsm_vcpu.in_hcall, false);
    reply = 1;
    expect("answered", call(&c, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, 0);
    expect("the gate is left", dsm_vcpu.in_hcall, false);

    unreadable = true;
    expect("cannot be read", call(&c, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, -EFAULT);
    expect("nothing is sent", strlen(sent), 0);
    unreadable = false;

    /* No error of another slice has the call done here, to a ghost. */
    for ( reply = -1; reply >= -DSM_MAX_ERRNO; reply-- )
    {
        if ( reply == -ERESTART )
            continue;
        expect("an error", call(&c, &regs), DSM_HCALL_ANSWERED);
        expect("RAX", regs.rax, reply);
        expect("the gate is left", dsm_vcpu.in_hcall, false);
    }

    away[4] = true;
    expect("its structure is away", call(&c, &regs), DSM_HCALL_RETRY);
    expect("it is asked for", missed, 1UL << 4);
    expect("nothing is sent", strlen(sent), 0);
    away[4] = false;
}

static bool needs(const struct call *c, unsigned long page, char how)
{
    char word[16], list[256];

    snprintf(word, sizeof(word), " %lu%c ", page, how);
    snprintf(list, sizeof(list), " %s ", c->pages);

    return strstr(list, word);
}

/* Each of the pages that a call needs is away once, or shared. */
static void one_is_missing(void)
{
    struct cpu_user_regs regs;
    unsigned int i, waits = 0;
    unsigned long page;

    for ( i = 0; i < ARRAY_SIZE(calls); i++ )
        for ( page = 0; page < PAGES; page++ )
        {
            const struct call *c = &calls[i];

            away[page] = true;
            if ( needs(c, page, 'r') || needs(c, page, 'w') )
            {
                expect(c->name, call(c, &regs), DSM_HCALL_RETRY);
                expect("asks for it", missed, 1UL << page);
                expect("and nothing else happened", regs.rax, c->rax);
                expect("the gate is left", dsm_vcpu.in_hcall, false);
                waits++;
            }
            away[page] = false;

            shared[page] = true;
            if ( needs(c, page, 'w') )
            {
                expect(c->name, call(c, &regs), DSM_HCALL_RETRY);
                expect("asks for it", missed, 1UL << page);
                waits++;
            }
            else if ( !c->answered )
                expect(c->name, call(c, &regs), DSM_HCALL_RUN);
            dsm_gate_leave(&vcpu);
            shared[page] = false;
        }
    if ( waits < 50 )
        die("only %u waits were tried", waits);
}

static void tables_missing(void)
{
    const struct call c = { RUNS(console_io, 0, 5000, at(9, 0), "") };
    struct cpu_user_regs regs;

    no_table[10] = true;
    expect("waits", call(&c, &regs), DSM_HCALL_RETRY);
    expect("the gate is left", dsm_vcpu.in_hcall, false);
    expect("the walk has asked", missed, 0);
}

static void bad_pointers(void)
{
    const struct call nowhere = {
        RUNS(event_channel_op, EVTCHNOP_send, at(PAGES + 5, 0), 0, "") };
    const struct call top = {
        RUNS(event_channel_op, EVTCHNOP_send, ~0UL - 5, 0, "") };
    const struct call peeked = {
        RUNS(memory_op, XENMEM_populate_physmap, at(2, 0), 0, "") };
    struct cpu_user_regs regs;

    expect("not mapped", call(&nowhere, &regs), DSM_HCALL_RUN);
    expect("wraps around", call(&top, &regs), DSM_HCALL_RUN);
    unreadable = true;
    expect("cannot be read", call(&peeked, &regs), DSM_HCALL_RUN);
    unreadable = false;
}

/* A page that stays where it is does not come, and nothing can be copied there. */
/* Where there is no memory the copy ends: what is behind it need not come. */
static void no_memory(void)
{
    static const struct {
        unsigned int page;
        struct call call;
    } t[] = {
        { 9, { RUNS(console_io, 0, 9000, at(9, 0), "9r") } },
        { 10, { RUNS(console_io, 0, 9000, at(9, 0), "9r 9w 10r") } },
        { 11, { RUNS(console_io, 0, 9000, at(9, 0),
                     "9r 9w 10r 10w 11r") } },
        { 5, { RUNS(memory_op, XENMEM_populate_physmap, at(2, 0), 0,
                    "2r 2w 5r") } },
        /* Other arguments are looked at by themselves. */
        { 6, { RUNS(memory_op, XENMEM_add_to_physmap_batch, at(3, 0), 0,
                    "3r 3w 6r 7r 8r 8w") } },
        /* So are those that are only numbers. */
        { 23, { RUNS(memory_op, XENMEM_remove_from_physmap, at(19, 64), 0,
                     "19r 23w") } },
        { 22, { RUNS(memory_op, XENMEM_add_to_physmap, at(19, 0), 0,
                     "19r 19w 22w") } },
    };
    struct cpu_user_regs regs;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(t); i++ )
    {
        const char *pages = t[i].call.pages;

        empty[t[i].page] = true;
        expect(t[i].call.name, call(&t[i].call, &regs), DSM_HCALL_RUN);
        if ( strcmp(looked_at, pages) )
            die("%s: \"%s\", expected \"%s\"", t[i].call.name, looked_at, pages);
        expect("the guest's own answer", regs.rax, t[i].call.rax);
        dsm_gate_leave(&vcpu);
        empty[t[i].page] = false;
    }
}

static void elsewhere(void)
{
    const struct call c = {
        RUNS(event_channel_op, EVTCHNOP_send, at(9, 0), 0, "") };
    struct cpu_user_regs regs;

    away[9] = stays[9] = true;
    expect("answered", call(&c, &regs), DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, -EFAULT);
    expect("asks for nothing", missed, 0);
    expect("the gate is free", dsm_vcpu.in_hcall, false);
    /* It is here, whatever it was before. */
    away[9] = false;
    expect("runs", call(&c, &regs), DSM_HCALL_RUN);
    dsm_gate_leave(&vcpu);
    stays[9] = false;
}

static void closed(void)
{
    const struct call c = {
        RUNS(event_channel_op, EVTCHNOP_send, at(9, 0), 0, "") };
    struct cpu_user_regs regs;

    gate_closed = true;
    expect("again", call(&c, &regs), DSM_HCALL_RETRY);
    expect("looks at nothing", strlen(looked_at), 0);
    gate_closed = false;
}

static void narrow(void)
{
    struct cpu_user_regs regs = { .rax = __HYPERVISOR_sched_op };

    expect("32 bits", dsm_hcall_begin(&regs, X86_MODE_32BIT),
           DSM_HCALL_ANSWERED);
    expect("RAX", regs.rax, -ENOSYS);
    said("at home", 0, 0);
    expect("the gate is free", dsm_vcpu.in_hcall, false);
    dsm.slice = 1;
    regs = (struct cpu_user_regs){ .rax = __HYPERVISOR_sched_op,
                                   .rdi = SCHEDOP_block };
    expect("32 bits elsewhere", dsm_hcall_begin(&regs, X86_MODE_32BIT),
           DSM_HCALL_ANSWERED);
    said("32 bits elsewhere", __HYPERVISOR_sched_op, SCHEDOP_block);
}

static const struct test_case cases[] = {
    { "pages that each call needs", all_here },
    { "one of them is missing", one_is_missing },
    { "a page table is missing", tables_missing },
    { "pointers that lead nowhere", bad_pointers },
    { "arguments without memory", no_memory },
    { "a page that stays elsewhere", elsewhere },
    { "the gate is closed", closed },
    { "a guest of 32 bits", narrow },
    { "vCPUs of another slice", another_slice },
    { "where shared_info is", shared_info_stays },
    { "a guest that is suspended", suspended },
    { "no such vCPU", no_such_vcpu },
    { "answers of another slice", answers },
    { "results of another slice", results },
    { "ports while all are at home", ports_at_home },
};

int main(int argc, char **argv)
{
    dsm.vcpu = dsm_vcpus;
    dom.max_vcpus = ARRAY_SIZE(dsm_vcpus);
    dom.arch.dsm = &dsm;
    vcpu.domain = &dom;
    current = &vcpu;
    arguments();

    return main_of(cases, ARRAY_SIZE(cases), argc, argv);
}
