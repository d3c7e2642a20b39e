/* SPDX-License-Identifier: GPL-2.0 */
/* As much of Xen's libraries as dsmd uses; xen_test.c plays them. */
#ifndef FAKE_XENCTRL_H
#define FAKE_XENCTRL_H

#include <stddef.h>
#include <stdint.h>

#define __XEN_TOOLS__ 1
#include "event_channel.h"
#include "xen.h"

#define XC_PAGE_SIZE	4096ul
#define SHUTDOWN_crash	3

typedef struct fake_handle xc_interface;
typedef unsigned long xen_pfn_t;

#define XEN_DOMCTL_CDF_hvm		1u
#define XEN_DOMCTL_CDF_hap		2u
#define XEN_DOMCTL_GRANT_version(v)	(v)
#define XEN_X86_EMU_LAPIC		1u
struct xen_domctl_createdomain {
	uint8_t handle[16];
	unsigned int flags, max_vcpus, max_grant_frames, max_evtchn_port, grant_opts;
	struct { unsigned int emulation_flags; } arch;
};

xc_interface *xc_interface_open(void *logger, void *builder, unsigned int flags);
int xc_interface_close(xc_interface *xch);
int xc_domain_create(xc_interface *xch, uint32_t *domid, struct xen_domctl_createdomain *config);
int xc_domain_destroy(xc_interface *xch, uint32_t domid);
int xc_domain_shutdown(xc_interface *xch, uint32_t domid, int reason);
int xc_domain_max_vcpus(xc_interface *xch, uint32_t domid, unsigned int max);
int xc_domain_setmaxmem(xc_interface *xch, uint32_t domid, uint64_t kib);
int xc_set_paging_mempool_size(xc_interface *xch, uint32_t domid, uint64_t bytes);
int xc_domain_populate_physmap(xc_interface *xch, uint32_t domid, unsigned long nr,
			       unsigned int order, unsigned int flags, xen_pfn_t *list);
int xc_domain_decrease_reservation(xc_interface *xch, uint32_t domid, unsigned long nr,
				   unsigned int order, xen_pfn_t *list);

typedef struct {
	uint64_t free_pages, scrub_pages;
} xc_physinfo_t;
int xc_physinfo(xc_interface *xch, xc_physinfo_t *info);

typedef struct {
	uint64_t tot_pages, max_pages, shared_info_frame;
	uint32_t flags;
} xc_domaininfo_t;
#define XEN_DOMINF_dying	(1u << 0)
#define XEN_DOMINF_paused	(1u << 3)
int xc_domain_getinfo_single(xc_interface *xch, uint32_t domid, xc_domaininfo_t *info);

int xc_domain_unpause(xc_interface *xch, uint32_t domid);
int xc_domain_pause(xc_interface *xch, uint32_t domid);

typedef struct {
	uint8_t online;
} xc_vcpuinfo_t;
int xc_vcpu_getinfo(xc_interface *xch, uint32_t domid, uint32_t vcpu, xc_vcpuinfo_t *info);
int xc_domain_set_tsc_info(xc_interface *xch, uint32_t domid, uint32_t mode, uint64_t ns,
			   uint32_t khz, uint32_t incarnation);

#endif
