// SPDX-License-Identifier: GPL-2.0
/*
 * From nothing to a slice, by libxenctrl.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <xenctrl.h>
#include <xenctrl_dsm.h>

#include "slice.h"

#define ORDER_1G	18
#define ORDER_2M	9
#define MIB_FRAMES	256u
#define EVENT_PORTS	4095		/* 2-level event channels */
#define EXTENTS		512u		/* populated by one call */

__attribute__((format(printf, 2, 3)))
static int failed(char *text, const char *format, ...)
{
	int error = errno ? errno : EIO;
	va_list words;
	size_t size;

	va_start(words, format);
	vsnprintf(text, DSM_ENGINE_TEXT, format, words);
	va_end(words);
	size = strlen(text);
	snprintf(text + size, DSM_ENGINE_TEXT - size, ": %s", strerror(error));
	return -error;
}

static uint64_t frames_of(const struct dsm_description *d, int home)
{
	uint64_t frames = 0;
	unsigned int i;

	for (i = 0; i < d->nr_ranges; i++)
		if (home < 0 || d->range[i].home == home)
			frames += d->range[i].end - d->range[i].start;
	return frames;
}

/*
 * Page tables for the whole guest in 4 KiB pages, since misses scatter: half a
 * page for each MiB, and slack for each vCPU.
 */
static uint64_t paging_bytes(const struct dsm_description *d)
{
	uint64_t pages = frames_of(d, -1) / (2 * MIB_FRAMES) + 256 * (d->nr_vcpus + 1);

	/* The hypervisor takes whole MiB. */
	return (pages * XC_PAGE_SIZE + (1 << 20) - 1) >> 20 << 20;
}

/* Extents of one order, as many as fit from *gfn on; fewer are no error. */
static int populate_some(xc_interface *xch, uint32_t domid, uint64_t *gfn,
			 uint64_t end, unsigned int order)
{
	xen_pfn_t list[EXTENTS];
	unsigned int i, nr;
	int done;

	for (nr = 0; nr < EXTENTS && *gfn + ((nr + 1ull) << order) <= end; nr++)
		;
	for (i = 0; i < nr; i++)
		list[i] = *gfn + ((uint64_t)i << order);
	if (!nr)
		return 0;
	done = xc_domain_populate_physmap(xch, domid, nr, order, 0, list);
	if (done < 0)
		return -1;
	*gfn += (uint64_t)done << order;
	return done;
}

static int populate(xc_interface *xch, uint32_t domid,
		    const struct dsm_range *range, char *text)
{
	static const unsigned int orders[] = { ORDER_1G, ORDER_2M, 0 };
	uint64_t gfn = range->start, part;
	unsigned int i;
	int done;

	while (gfn < range->end) {
		for (i = 0; i < 3; i++) {
			uint64_t size = 1ull << orders[i];

			if (gfn & (size - 1))
				continue;
			/* Up to where a larger page could begin. */
			part = range->end;
			if (i && (gfn | ((1ull << orders[i - 1]) - 1)) + 1 < part)
				part = (gfn | ((1ull << orders[i - 1]) - 1)) + 1;
			done = populate_some(xch, domid, &gfn, part, orders[i]);
			if (done > 0)
				break;
		}
		if (i == 3)
			return failed(text, "domain %u: memory at gfn 0x%" PRIx64
				      " of 0x%" PRIx64 " to 0x%" PRIx64, domid, gfn,
				      range->start, range->end);
	}
	return 0;
}

static int fill(xc_interface *xch, uint32_t domid, const struct dsm_description *d,
		unsigned int self, char *text)
{
	unsigned int i;
	int rc;

	for (i = 0; i < d->nr_ranges; i++) {
		if (d->range[i].home != self)
			continue;
		rc = populate(xch, domid, &d->range[i], text);
		if (rc)
			return rc;
	}
	return 0;
}

int dsm_slice_create(xc_interface *xch, const struct dsm_description *d,
		     unsigned int self, uint32_t *domid, char text[DSM_ENGINE_TEXT])
{
	struct xen_domctl_createdomain config = {
		.flags = XEN_DOMCTL_CDF_hvm | XEN_DOMCTL_CDF_hap,
		.max_vcpus = d->nr_vcpus,
		.max_grant_frames = 1,
		.max_evtchn_port = EVENT_PORTS,
		.grant_opts = XEN_DOMCTL_GRANT_version(1),
		.arch.emulation_flags = XEN_X86_EMU_LAPIC,
	};
	uint64_t kib = (frames_of(d, (int)self) + d->frames + MIB_FRAMES) *
		       (XC_PAGE_SIZE / 1024);
	uint32_t made = 0;
	int rc;

	memcpy(config.handle, d->uuid, sizeof(d->uuid));
	errno = 0;
	if (xc_domain_create(xch, &made, &config))
		return failed(text, "a domain of %u vCPUs", d->nr_vcpus);
	if (xc_domain_max_vcpus(xch, made, d->nr_vcpus))
		rc = failed(text, "domain %u: %u vCPUs", made, d->nr_vcpus);
	else if (xc_domain_setmaxmem(xch, made, kib))
		rc = failed(text, "domain %u: a limit of %" PRIu64 " KiB", made, kib);
	else if (xc_set_paging_mempool_size(xch, made, paging_bytes(d)))
		rc = failed(text, "domain %u: %" PRIu64 " bytes for page tables",
			    made, paging_bytes(d));
	else
		rc = fill(xch, made, d, self, text);
	if (rc)
		xc_domain_destroy(xch, made);
	else
		*domid = made;
	return rc;
}

int dsm_slice_enable(xc_interface *xch, uint32_t domid,
		     const struct dsm_description *d,
		     const struct dsm_config *config, evtchn_port_t *port,
		     char text[DSM_ENGINE_TEXT])
{
	xen_dsm_range_t ranges[DSM_DESCRIPTION_RANGES];
	unsigned int i, refused = 0;
	uint64_t done = 0;

	for (i = 0; i < d->nr_ranges; i++) {
		ranges[i].first = d->range[i].start;
		ranges[i].nr = d->range[i].end - d->range[i].start;
	}
	errno = 0;
	if (xc_dsm_enable(xch, domid, ranges, d->nr_ranges, config->self,
			  config->nr_hosts, port, &refused)) {
		if (refused) {
			snprintf(text, DSM_ENGINE_TEXT, "domain %u: DSM: %s", domid,
				 xc_dsm_refusal(refused));
			return -EOPNOTSUPP;
		}
		return failed(text, "domain %u: DSM", domid);
	}
	for (i = 0; i < d->nr_ranges; i++)
		if (d->range[i].home != config->self &&
		    xc_dsm_away(xch, domid, ranges[i].first, ranges[i].nr, &done))
			return failed(text, "domain %u: gfn 0x%" PRIx64 " of host %s", domid,
				      (uint64_t)ranges[i].first + done,
				      config->host[d->range[i].home].name);
	done = 0;
	if (d->frames && xc_dsm_pool_add(xch, domid, d->frames, &done))
		return failed(text, "domain %u: %" PRIu64 " of %u frames for the pool",
			      domid, done, d->frames);
	return 0;
}
