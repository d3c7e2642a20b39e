// SPDX-License-Identifier: GPL-2.0
/*
 * From nothing to a slice, by libxenctrl.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xenctrl.h>
#include <xenctrl_dsm.h>
#include <xenguest.h>
#include <xen/arch-x86/cpuid.h>

#include "cpu_features.h"
#include "overhead.h"
#include "slice.h"

#define ORDER_1G	18
#define ORDER_2M	9
#define FRAME_KIB	(XC_PAGE_SIZE / 1024)
#define EVENT_PORTS	4095		/* 2-level event channels */
#define EXTENTS		512u		/* populated by one call */
#define TSC_NATIVE	XEN_CPUID_TSC_MODE_NEVER_EMULATE

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

static uint64_t all_frames(const struct dsm_description *d)
{
	uint64_t frames = 0;
	unsigned int i;

	for (i = 0; i < d->nr_ranges; i++)
		frames += d->range[i].end - d->range[i].start;
	return frames;
}

/* Extents of one order, as many as fit from gfn on.  Return: frames; fewer are no error; -1. */
static int64_t populate_some(xc_interface *xch, uint32_t domid, uint64_t gfn,
			     uint64_t end, unsigned int order, unsigned int most)
{
	xen_pfn_t list[EXTENTS];
	unsigned int nr;
	int done;

	for (nr = 0; nr < most && gfn + ((nr + 1ull) << order) <= end; nr++)
		list[nr] = gfn + ((uint64_t)nr << order);
	if (!nr)
		return 0;
	done = xc_domain_populate_physmap(xch, domid, nr, order, 0, list);
	return done < 0 ? -1 : (int64_t)done << order;
}

int64_t dsm_slice_fill(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr)
{
	/* At most 1 GiB, 128 MiB or 2 MiB by one hypercall. */
	static const struct {
		unsigned int order, most;
	} sizes[] = { { ORDER_1G, 1 }, { ORDER_2M, 64 }, { 0, EXTENTS } };
	uint64_t end = first + nr, part;
	unsigned int i;
	int64_t done;

	errno = 0;
	for (i = 0; i < 3; i++) {
		uint64_t size = 1ull << sizes[i].order;

		if (first & (size - 1))
			continue;
		/* Up to where a larger page could begin. */
		part = end;
		if (i && (first | ((1ull << sizes[i - 1].order) - 1)) + 1 < part)
			part = (first | ((1ull << sizes[i - 1].order) - 1)) + 1;
		done = populate_some(xch, domid, first, part, sizes[i].order, sizes[i].most);
		if (done > 0)
			return done;
	}
	/* Xen says "none of them" for any reason. */
	return errno && errno != EBUSY ? -errno : -ENOMEM;
}

int64_t dsm_slice_empty(xc_interface *xch, uint32_t domid, uint64_t first, uint64_t nr)
{
	xen_pfn_t list[EXTENTS];
	uint64_t part = nr < EXTENTS ? nr : EXTENTS, i;
	int done;

	for (i = 0; i < part; i++)
		list[i] = first + nr - part + i;
	errno = 0;
	done = xc_domain_decrease_reservation(xch, domid, part, 0, list);
	if (done == (int)part)
		return done;
	return done < 0 && errno ? -errno : -EIO;
}

int dsm_slice_limit(xc_interface *xch, uint32_t domid, uint64_t frames)
{
	return xc_domain_setmaxmem(xch, domid, frames * FRAME_KIB) ? -errno : 0;
}

int dsm_slice_memory(xc_interface *xch, uint32_t domid, struct dsm_xen_memory *memory)
{
	xc_domaininfo_t domain;
	xc_physinfo_t host;

	if (xc_physinfo(xch, &host) || xc_domain_getinfo_single(xch, domid, &domain))
		return -errno;
	*memory = (struct dsm_xen_memory){
		.free = (host.free_pages + host.scrub_pages) * FRAME_KIB,
		.used = domain.tot_pages * FRAME_KIB,
		.limit = domain.max_pages * FRAME_KIB,
	};
	return 0;
}

static int populate(xc_interface *xch, uint32_t domid,
		    const struct dsm_range *range, char *text)
{
	uint64_t gfn = range->start;

	while (gfn < range->end) {
		int64_t done = dsm_slice_fill(xch, domid, gfn, range->end - gfn);

		if (done < 0) {
			errno = (int)-done;
			return failed(text, "domain %u: memory at gfn 0x%" PRIx64
				      " of 0x%" PRIx64 " to 0x%" PRIx64, domid, gfn,
				      range->start, range->end);
		}
		gfn += (uint64_t)done;
	}
	return 0;
}

static int fill(xc_interface *xch, uint32_t domid, const struct dsm_description *d,
		unsigned int self, char *text)
{
	unsigned int i;
	int rc;

	for (i = 0; i < d->nr_ranges; i++) {
		if (d->range[i].home != self || d->detached[i])
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
	uint64_t kib = dsm_description_limit(d, self) * FRAME_KIB;
	uint64_t paging = dsm_paging_bytes(all_frames(d), d->nr_vcpus);
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
	else if (xc_set_paging_mempool_size(xch, made, paging))
		rc = failed(text, "domain %u: %" PRIu64 " bytes for page tables",
			    made, paging);
	else if (d->nr_places && xc_domain_set_tsc_info(xch, made, TSC_NATIVE, 0, 0, 0))
		rc = failed(text, "domain %u: a TSC that is not emulated", made);
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
	if (xc_dsm_enable(xch, domid, ranges, d->nr_ranges,
			  dsm_description_slice(d, config->self), config->nr_hosts, port,
			  &refused)) {
		if (refused) {
			snprintf(text, DSM_ENGINE_TEXT, "domain %u: DSM: %s", domid,
				 xc_dsm_refusal(refused));
			return -EOPNOTSUPP;
		}
		return failed(text, "domain %u: DSM", domid);
	}
	for (i = 0; i < d->nr_ranges; i++)
		if (d->range[i].home != config->self && !d->detached[i] &&
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

/* A policy as bytes: how many leaves and MSRs, and these. */
struct policy_head {
	uint32_t leaves, msrs;
};

static size_t policy_bytes(uint32_t leaves, uint32_t msrs)
{
	return sizeof(struct policy_head) + leaves * sizeof(xen_cpuid_leaf_t) +
	       msrs * sizeof(xen_msr_entry_t);
}

int dsm_slice_get_policy(xc_interface *xch, uint32_t domid, uint8_t *bytes, size_t size)
{
	xc_cpu_policy_t *policy = xc_cpu_policy_init();
	xen_cpuid_leaf_t *leaves = NULL;
	xen_msr_entry_t *msrs = NULL;
	struct policy_head head;
	int rc = -ENOMEM;

	if (!policy)
		return rc;
	rc = -E2BIG;
	if (xc_cpu_policy_get_size(xch, &head.leaves, &head.msrs))
		goto fail;
	if (head.leaves > size / sizeof(*leaves) || head.msrs > size / sizeof(*msrs))
		goto out;
	rc = -ENOMEM;
	leaves = calloc(head.leaves, sizeof(*leaves));
	msrs = calloc(head.msrs, sizeof(*msrs));
	if (!leaves || !msrs)
		goto out;
	if (xc_cpu_policy_get_domain(xch, domid, policy) ||
	    xc_cpu_policy_serialise(xch, policy, leaves, &head.leaves, msrs, &head.msrs))
		goto fail;
	rc = -E2BIG;
	if (policy_bytes(head.leaves, head.msrs) > size)
		goto out;
	memset(bytes, 0, size);
	memcpy(bytes, &head, sizeof(head));
	bytes += sizeof(head);
	memcpy(bytes, leaves, head.leaves * sizeof(*leaves));
	memcpy(bytes + head.leaves * sizeof(*leaves), msrs, head.msrs * sizeof(*msrs));
	rc = 0;
	goto out;

fail:
	rc = errno ? -errno : -EIO;
out:
	free(leaves);
	free(msrs);
	xc_cpu_policy_destroy(policy);
	return rc;
}

static uint32_t value_of(const struct dsm_feature_word *word, const xen_cpuid_leaf_t *leaves, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (leaves[i].leaf == word->leaf && leaves[i].subleaf == word->subleaf)
			return word->reg == 'a' ? leaves[i].a : word->reg == 'b' ? leaves[i].b :
			       word->reg == 'c' ? leaves[i].c : leaves[i].d;
	return 0;
}

/*
 * Features of these leaves that one of Xen's own policies here does not have: that of
 * guests by default, or all that a guest can have.
 */
static void say_more(xc_interface *xch, unsigned int than, const xen_cpuid_leaf_t *leaves,
		     uint32_t nr, char text[DSM_ENGINE_TEXT])
{
	xc_cpu_policy_t *policy = xc_cpu_policy_init();
	uint32_t nr_leaves = 0, nr_msrs = 0, more;
	xen_cpuid_leaf_t *usual = NULL;
	xen_msr_entry_t *msrs = NULL;
	size_t at = 0;
	unsigned int i;

	if (!policy || xc_cpu_policy_get_size(xch, &nr_leaves, &nr_msrs))
		goto out;
	usual = calloc(nr_leaves, sizeof(*usual));
	msrs = calloc(nr_msrs, sizeof(*msrs));
	if (!usual || !msrs ||
	    xc_cpu_policy_get_system(xch, than, policy) ||
	    xc_cpu_policy_serialise(xch, policy, usual, &nr_leaves, msrs, &nr_msrs))
		goto out;
	for (i = 0; i < DSM_FEATURE_WORDS && at < DSM_ENGINE_TEXT; i++) {
		const struct dsm_feature_word *word = &dsm_feature_word[i];

		more = value_of(word, leaves, nr) & ~value_of(word, usual, nr_leaves);
		if (!more)
			continue;
		if (at)
			at += (size_t)snprintf(text + at, DSM_ENGINE_TEXT - at, ", ");
		if (at < DSM_ENGINE_TEXT)
			at += dsm_features_say(word->leaf, word->subleaf, word->reg, more, text + at,
					       DSM_ENGINE_TEXT - at);
	}
out:
	free(usual);
	free(msrs);
	xc_cpu_policy_destroy(policy);
}

int dsm_slice_set_policy(xc_interface *xch, uint32_t domid, const uint8_t *bytes, size_t size,
			 char text[DSM_ENGINE_TEXT])
{
	xc_cpu_policy_t *policy;
	const xen_cpuid_leaf_t *leaves;
	const xen_msr_entry_t *msrs;
	struct policy_head head;
	int rc = 0;

	text[0] = 0;
	memcpy(&head, bytes, sizeof(head));
	if (head.leaves > size / sizeof(*leaves) || head.msrs > size / sizeof(*msrs) ||
	    policy_bytes(head.leaves, head.msrs) > size)
		return -EINVAL;
	policy = xc_cpu_policy_init();
	if (!policy)
		return -ENOMEM;
	/* Both have numbers of 32 bits, and of 64 where those before them end at 8 bytes. */
	leaves = (const void *)(bytes + sizeof(head));
	msrs = (const void *)(leaves + head.leaves);
	errno = 0;
	if (xc_cpu_policy_get_domain(xch, domid, policy) ||
	    xc_cpu_policy_update_cpuid(xch, policy, leaves, head.leaves) ||
	    xc_cpu_policy_update_msrs(xch, policy, msrs, head.msrs) ||
	    xc_cpu_policy_set_domain(xch, domid, policy))
		rc = errno ? -errno : -EIO;
	say_more(xch, rc ? XEN_SYSCTL_cpu_policy_hvm_max : XEN_SYSCTL_cpu_policy_hvm_default,
		 leaves, head.leaves, text);
	xc_cpu_policy_destroy(policy);
	return rc;
}
