/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What arch/x86/hvm/dsm_hypercall.c needs beyond fake_dsm.h: the numbers and
 * structures of hypercalls, with the sizes that they have for a 64-bit guest.
 */
#ifndef FAKE_HCALL_H
#define FAKE_HCALL_H

#include "fake_dsm.h"

#define __init
#define __maybe_unused __attribute__((unused))
#define X86_MODE_64BIT 8
#define X86_MODE_32BIT 4

/* The hypervisor. */
#define PFEC_page_present (1u << 0)
#define PFEC_write_access (1u << 1)
#define PFEC_page_paged   (1u << 4)
#define INVALID_GFN _gfn(~0UL)
#define p2m_is_paging(t) ((t) == p2m_ram_paged)
enum { HVMTRANS_okay, HVMTRANS_bad_linear_to_gfn, HVMTRANS_gfn_paged_out };
#define X86_EFLAGS_DF 0x400
extern unsigned int fake_mode, fake_cpl;
#define hvm_guest_x86_mode(v) ((void)(v), fake_mode)
#define hvm_get_cpl(v) ((void)(v), fake_cpl)
extern bool fake_event;         /* was being delivered */
#define hvm_event_pending(v) ((void)(v), fake_event)
struct page_info *get_page_from_gfn(struct domain *d, unsigned long gfn,
                                    p2m_type_t *t, p2m_query_t q);
unsigned long paging_gva_to_gfn(struct vcpu *v, unsigned long va,
                                uint32_t *pfec);
int hvm_copy_from_guest_linear(void *buf, uint64_t addr, unsigned int size,
                               uint32_t pfec, void *pfinfo);
int hvm_copy_to_guest_linear(uint64_t addr, const void *buf, unsigned int size,
                             uint32_t pfec, void *pfinfo);
unsigned int hvmemul_cache_disable(struct vcpu *v);
void hvmemul_cache_restore(struct vcpu *v, unsigned int token);

/* Hypercalls. */
#undef __HYPERVISOR_memory_op
#define __HYPERVISOR_memory_op        12
#define __HYPERVISOR_set_timer_op     15
#define __HYPERVISOR_xen_version      17
#define __HYPERVISOR_console_io       18
#define __HYPERVISOR_grant_table_op   20
#define __HYPERVISOR_vcpu_op          24
#define __HYPERVISOR_sched_op         29
#define __HYPERVISOR_event_channel_op 32
#define __HYPERVISOR_physdev_op       33
#define __HYPERVISOR_hvm_op           34

#define XEN_GUEST_HANDLE(type) struct { type *p; }

#define MEMOP_EXTENT_SHIFT 6
#define MEMOP_CMD_MASK ((1 << MEMOP_EXTENT_SHIFT) - 1)
#define XENMEM_increase_reservation  0
#define XENMEM_decrease_reservation  1
#define XENMEM_maximum_ram_page      2
#define XENMEM_current_reservation   3
#define XENMEM_maximum_reservation   4
#define XENMEM_populate_physmap      6
#define XENMEM_add_to_physmap        7
#define XENMEM_memory_map            9
#define XENMEM_maximum_gpfn          14
#define XENMEM_remove_from_physmap   15
#define XENMEM_add_to_physmap_batch  23
#define XENMEM_get_vnumainfo         26
struct xen_memory_reservation {
    XEN_GUEST_HANDLE(xen_pfn_t) extent_start;
    uint64_t nr_extents;
    uint32_t extent_order, mem_flags;
    domid_t domid;
};
#define XENMAPSPACE_shared_info      0
#define XENMAPSPACE_gmfn             2
#define XENMAPSPACE_gmfn_foreign     4
struct xen_add_to_physmap {
    domid_t domid;
    uint16_t size;
    unsigned int space;
    uint64_t idx, gpfn;
};
struct xen_add_to_physmap_batch {
    domid_t domid;
    uint16_t space, size, extra;
    XEN_GUEST_HANDLE(uint64_t) idxs;
    XEN_GUEST_HANDLE(xen_pfn_t) gpfns;
    XEN_GUEST_HANDLE(int) errs;
};
struct xen_remove_from_physmap { domid_t domid; uint64_t gpfn; };
struct e820entry { uint8_t bytes[20]; };
struct xen_memory_map {
    uint32_t nr_entries;
    XEN_GUEST_HANDLE(void) buffer;
};
struct xen_vnuma_topology_info {
    domid_t domid;
    uint16_t pad;
    uint32_t nr_vnodes, nr_vcpus, nr_vmemranges;
    struct { XEN_GUEST_HANDLE(uint32_t) h; } vdistance, vcpu_to_vnode;
    struct { XEN_GUEST_HANDLE(struct xen_add_to_physmap) h; } vmemrange;
};

#define XENVER_version        0
#define XENVER_extraversion   1
#define XENVER_compile_info   2
#define XENVER_capabilities   3
#define XENVER_changeset      4
#define XENVER_platform_parameters 5
#define XENVER_get_features   6
#define XENVER_pagesize       7
#define XENVER_guest_handle   8
#define XENVER_commandline    9
#define XENVER_build_id       10
#define XENVER_extraversion2  11
#define XENVER_capabilities2  12
#define XENVER_changeset2     13
#define XENVER_commandline2   14
struct xen_varbuf { uint32_t len; };
typedef struct { char c[1024]; } xen_capabilities_info_t;
typedef struct { char c[1024]; } xen_commandline_t;

#define SCHEDOP_yield 0
#define SCHEDOP_block 1
#define SCHEDOP_shutdown 2
#define SCHEDOP_poll  3
#define SCHEDOP_remote_shutdown 4
#define SCHEDOP_shutdown_code   5
#define SCHEDOP_watchdog        6
#define SCHEDOP_pin_override    7
#define SHUTDOWN_suspend    2
#define SHUTDOWN_soft_reset 5
struct sched_shutdown { unsigned int reason; };
struct sched_poll {
    XEN_GUEST_HANDLE(uint32_t) ports;
    unsigned int nr_ports;
    uint64_t timeout;
};
struct sched_watchdog { uint32_t words[2]; };
struct sched_remote_shutdown { uint32_t words[2]; };

#define VCPUOP_initialise                      0
#define VCPUOP_up                              1
#define VCPUOP_down                            2
#define VCPUOP_is_up                           3
#define VCPUOP_get_runstate_info               4
#define VCPUOP_register_runstate_memory_area   5
#define VCPUOP_set_periodic_timer              6
#define VCPUOP_stop_periodic_timer             7
#define VCPUOP_set_singleshot_timer            8
#define VCPUOP_stop_singleshot_timer           9
#define VCPUOP_register_vcpu_info              10
#define VCPUOP_send_nmi                        11
#define VCPUOP_get_physid                      12
#define VCPUOP_register_vcpu_time_memory_area  13
#define VCPUOP_register_runstate_phys_area     14
#define VCPUOP_register_vcpu_time_phys_area    15
struct vcpu_register_vcpu_info { uint64_t mfn; uint32_t offset, rsvd; };
struct vcpu_set_singleshot_timer { uint64_t words[2]; };
struct vcpu_guest_context { uint8_t bytes[5168]; };

#define EVTCHNOP_bind_interdomain 0
#define EVTCHNOP_bind_virq     1
#define EVTCHNOP_bind_pirq     2
#define EVTCHNOP_close         3
#define EVTCHNOP_send          4
#define EVTCHNOP_status        5
#define EVTCHNOP_alloc_unbound 6
#define EVTCHNOP_bind_ipi      7
#define EVTCHNOP_bind_vcpu     8
#define EVTCHNOP_unmask        9
#define EVTCHNOP_reset         10
#define EVTCHNOP_init_control  11
#define EVTCHNOP_expand_array  12
#define EVTCHNOP_set_priority  13
#define EVTCHNOP_reset_cont    14

#define GNTTABOP_map_grant_ref    0
#define GNTTABOP_unmap_grant_ref  1
#define GNTTABOP_setup_table      2
#define GNTTABOP_dump_table       3
#define GNTTABOP_copy             5
#define GNTTABOP_query_size       6
#define GNTTABOP_set_version      8
#define GNTTABOP_get_version      10
#define GNTTABOP_swap_grant_ref   11
struct gnttab_map_grant_ref { uint64_t words[4]; };
struct gnttab_unmap_grant_ref { uint64_t words[3]; };
struct gnttab_setup_table {
    domid_t dom;
    uint32_t nr_frames;
    int16_t status;
    XEN_GUEST_HANDLE(xen_pfn_t) frame_list;
};
struct gnttab_copy { uint64_t words[5]; };
struct gnttab_query_size { uint32_t words[4]; };
struct gnttab_set_version { uint32_t version; };
struct gnttab_get_version { uint32_t words[2]; };
struct gnttab_swap_grant_ref { uint32_t words[3]; };

#define HVMOP_set_param                  0
#define HVMOP_get_param                  1
#define HVMOP_flush_tlbs                 5
#define HVMOP_pagetable_dying            9
#define HVMOP_get_time                   10
#define HVMOP_get_mem_type               15
#define HVMOP_set_evtchn_upcall_vector   23
#define HVMOP_altp2m                     25
struct xen_hvm_param { uint64_t words[2]; };
struct xen_hvm_get_mem_type { uint64_t words[2]; };
struct xen_hvm_evtchn_upcall_vector { uint32_t vcpu; uint8_t vector; };

#define PHYSDEVOP_irq_status_query 5
#define PHYSDEVOP_eoi              12
#define PHYSDEVOP_map_pirq         13
#define PHYSDEVOP_unmap_pirq       14
#define PHYSDEVOP_setup_gsi        21
#define PHYSDEVOP_get_free_pirq    23
struct physdev_map_pirq { uint32_t words[8]; };

#endif /* FAKE_HCALL_H */
