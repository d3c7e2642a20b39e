// SPDX-License-Identifier: GPL-2.0
/*
 * The real Xen of this host: libxenctrl, libxenguest for CPU policies, xenstore.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xenctrl.h>
#include <xenctrl_dsm.h>
#include <xenguest.h>
#include <xenstore.h>
#include <xenstore_lib.h>

#include "cpu_features.h"
#include "description.h"
#include "host.h"
#include "tsc.h"

#define DOMAINS	128		/* asked for at a time */
#define KIB_PER_PAGE	(XC_PAGE_SIZE / 1024)

/*
 * Xen adds these to a guest's policy after it has compared it with the host's
 * (xen/arch/x86/cpu-policy.c, recalculate_cpuid_policy()), so they are in no
 * policy of a host: features of leaf 1 that AMD's leaf 0x80000001 repeats; and
 * what the FPU does not do any more (FDP_EXCP_ONLY, NO_FPU_SEL).
 */
#define REPEATED	0x0183f3ffu
#define FPU		(1u << 6 | 1u << 13)

/* Words of features in CPUID; two hosts compare them by their place here. */
static const struct word {
	uint32_t leaf, subleaf;
	enum { A, B, C, D } reg;
	uint32_t left_out;
} words[] = {
	{ 0x1, XEN_CPUID_NO_SUBLEAF, D, 0 }, { 0x1, XEN_CPUID_NO_SUBLEAF, C, 0 },
	{ 0x80000001, XEN_CPUID_NO_SUBLEAF, D, REPEATED },
	{ 0x80000001, XEN_CPUID_NO_SUBLEAF, C, 0 },
	{ 0xd, 1, A, 0 }, { 0x7, 0, B, FPU }, { 0x7, 0, C, 0 },
	{ 0x80000007, XEN_CPUID_NO_SUBLEAF, D, 0 }, { 0x80000008, XEN_CPUID_NO_SUBLEAF, B, 0 },
	{ 0x7, 0, D, 0 }, { 0x7, 1, A, 0 }, { 0x80000021, XEN_CPUID_NO_SUBLEAF, A, 0 },
	{ 0x7, 1, B, 0 }, { 0x7, 2, D, 0 }, { 0x7, 1, C, 0 }, { 0x7, 1, D, 0 },
	{ 0x80000021, XEN_CPUID_NO_SUBLEAF, C, 0 },
};
#define WORDS	(sizeof(words) / sizeof(words[0]))

_Static_assert(WORDS <= HOST_XEN_FEATURES, "they fit into struct host_facts");

static uint32_t value_of(const struct word *word, const xen_cpuid_leaf_t *leaves, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		if (leaves[i].leaf != word->leaf || leaves[i].subleaf != word->subleaf)
			continue;
		switch (word->reg) {
		case A:
			return leaves[i].a;
		case B:
			return leaves[i].b;
		case C:
			return leaves[i].c;
		case D:
			return leaves[i].d;
		}
	}
	return 0;
}

/* @domid: or DOMID_INVALID for what guests of this host could be shown. */
static int read_features(xc_interface *xch, uint32_t domid, unsigned int *nr,
			 uint32_t feature[HOST_XEN_FEATURES])
{
	xc_cpu_policy_t *policy = xc_cpu_policy_init();
	xen_cpuid_leaf_t *leaves = NULL;
	uint32_t nr_leaves = 0, nr_msrs = 0;
	unsigned int i;
	int rc = -1;

	errno = ENOMEM;
	if (policy)
		rc = domid == DOMID_INVALID ?
		     xc_cpu_policy_get_system(xch, XEN_SYSCTL_cpu_policy_hvm_max, policy) :
		     xc_cpu_policy_get_domain(xch, domid, policy);
	if (!rc)
		rc = xc_cpu_policy_get_size(xch, &nr_leaves, &nr_msrs);
	if (!rc) {
		leaves = calloc(nr_leaves ? nr_leaves : 1, sizeof(*leaves));
		rc = leaves ? 0 : -1;
	}
	nr_msrs = 0;
	if (!rc)
		rc = xc_cpu_policy_serialise(xch, policy, leaves, &nr_leaves, NULL, &nr_msrs);
	if (rc)
		rc = errno ? -errno : -EIO;
	for (i = 0; !rc && i < WORDS; i++)
		feature[i] = value_of(&words[i], leaves, nr_leaves) & ~words[i].left_out;
	*nr = WORDS;
	free(leaves);
	if (policy)
		xc_cpu_policy_destroy(policy);
	return rc;
}

static size_t say_features(unsigned int word, uint32_t bits, char *text, size_t size)
{
	if (word >= WORDS)
		return (size_t)snprintf(text, size, "word %u=0x%" PRIx32, word, bits);
	return dsm_features_say(words[word].leaf, words[word].subleaf, "abcd"[words[word].reg], bits,
				text, size);
}

/* As the dsmds of this host will see it. */
static uint32_t tsc_khz(void)
{
	struct dsm_tsc_leaves leaves;
	const char *text;
	int khz;

	dsm_tsc_ask_xen(&leaves);
	khz = dsm_tsc_judge(&leaves, &text);
	return khz < 0 ? 0 : (uint32_t)khz;
}

/* What this kernel has now, not what it could be given. */
static uint64_t dom0_kib(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes / 1024 : 0;
}

/*
 * DSM of no domain: a Xen that has it says that there is none such.
 * Return: 0; -ENOSYS: it has not; -EACCES: another version of it.
 */
static int check_dsm(xc_interface *xch)
{
	xen_dsm_stats_t stats;

	if (!xc_dsm_stats(xch, DOMID_INVALID, &stats))
		return 0;
	if (errno == EACCES)
		return -EACCES;
	return errno == ENOSYS || errno == EOPNOTSUPP ? -ENOSYS : 0;
}

static int facts(struct host_facts *f)
{
	xc_interface *xch = xc_interface_open(NULL, NULL, 0);
	xen_extraversion_t extra = "";
	xc_physinfo_t info = { 0 };
	int version, rc;

	if (!xch)
		return -errno;
	memset(f, 0, sizeof(*f));
	version = xc_version(xch, XENVER_version, NULL);
	rc = version < 0 || xc_version(xch, XENVER_extraversion, &extra) < 0 ||
	     xc_physinfo(xch, &info) ? -errno : 0;
	if (!rc) {
		extra[sizeof(extra) - 1] = 0;
		snprintf(f->version, sizeof(f->version), "%d.%d%.40s", version >> 16,
			 version & 0xffff, extra);
		f->abi = XEN_DSM_INTERFACE_VERSION;
		f->hap = info.capabilities & XEN_SYSCTL_PHYSCAP_hap;
		f->free_kib = info.free_pages * KIB_PER_PAGE;
		f->total_kib = info.total_pages * KIB_PER_PAGE;
		f->dom0_kib = dom0_kib();
		f->cpus = info.nr_cpus;
		f->tsc_khz = tsc_khz();
		rc = read_features(xch, DOMID_INVALID, &f->nr_features, f->feature);
	}
	if (!rc)
		rc = check_dsm(xch);
	xc_interface_close(xch);
	return rc;
}

static int features(uint32_t domid, unsigned int *nr, uint32_t feature[HOST_XEN_FEATURES])
{
	xc_interface *xch = xc_interface_open(NULL, NULL, 0);
	int rc = xch ? read_features(xch, domid, nr, feature) : -errno;

	if (xch)
		xc_interface_close(xch);
	return rc;
}

static int uuid(uint32_t domid, uint8_t to[16])
{
	xc_interface *xch = xc_interface_open(NULL, NULL, 0);
	xc_domaininfo_t info;
	int rc = -EIO;

	if (!xch)
		return -errno;
	if (xc_domain_getinfo_single(xch, domid, &info))
		rc = errno == ESRCH ? -ESRCH : -errno;
	else if (info.flags & XEN_DOMINF_dying)
		rc = -ESRCH;
	else
		rc = 0;
	if (!rc)
		memcpy(to, info.handle, 16);
	xc_interface_close(xch);
	return rc;
}

/*
 * The first domain of a UUID of which @is says so.
 * Return: 0; -ESRCH: there is none; -errno, @is's, too.
 */
static int find_domain(const uint8_t wanted[16], int (*is)(const xc_domaininfo_t *info),
		       uint32_t *domid)
{
	xc_interface *xch = xc_interface_open(NULL, NULL, 0);
	static xc_domaininfo_t list[DOMAINS];
	uint32_t first = 0;
	int i, nr, rc = -ESRCH;

	if (!xch)
		return -errno;
	do {
		nr = xc_domain_getinfolist(xch, first, DOMAINS, list);
		if (nr < 0)
			rc = -errno;
		for (i = 0; i < nr && rc == -ESRCH; i++) {
			if (memcmp(list[i].handle, wanted, 16))
				continue;
			rc = is(&list[i]);
			*domid = list[i].domain;
		}
		if (nr > 0)
			first = list[nr - 1].domain + 1u;
	} while (nr == DOMAINS && rc == -ESRCH);
	xc_interface_close(xch);
	return rc;
}

static int is_alive(const xc_domaininfo_t *info)
{
	return info->flags & XEN_DOMINF_dying ? -ESRCH : 0;
}

static int find_uuid(const uint8_t wanted[16], uint32_t *domid)
{
	return find_domain(wanted, is_alive, domid);
}

/* libxl makes /libxl/DOMID with the domain and removes it with it; dsmd does not. */
static int is_slice(const xc_domaininfo_t *info)
{
	struct xs_handle *xs = xs_open(0);
	char path[32], *value;
	unsigned int size;
	int rc;

	if (!xs)
		return -errno;
	snprintf(path, sizeof(path), "/libxl/%u", info->domain);
	errno = 0;
	value = xs_read(xs, XBT_NULL, path, &size);
	rc = value ? -ESRCH : errno == ENOENT ? 0 : errno ? -errno : -EIO;
	free(value);
	xs_close(xs);
	return rc;
}

static int find_slice(const uint8_t wanted[16], uint32_t *domid)
{
	return find_domain(wanted, is_slice, domid);
}

static int find_name(const char *name, uint32_t *domid)
{
	struct xs_handle *xs = xs_open(0);
	unsigned int nr = 0, size, i;
	char **list, *value, path[64];
	int rc = -ESRCH;

	if (!xs)
		return -errno;
	list = xs_directory(xs, XBT_NULL, "/local/domain", &nr);
	if (!list)
		rc = errno ? -errno : -EIO;
	for (i = 0; list && i < nr && rc == -ESRCH; i++) {
		snprintf(path, sizeof(path), "/local/domain/%.20s/name", list[i]);
		value = xs_read(xs, XBT_NULL, path, &size);
		if (value && !strcmp(value, name)) {
			*domid = (uint32_t)strtoul(list[i], NULL, 10);
			rc = 0;
		}
		free(value);
	}
	free(list);
	xs_close(xs);
	return rc;
}

/* Of a slice it is all that xenstore has; without it there is a name too much. */
static void forget_name(uint32_t domid)
{
	struct xs_handle *xs = xs_open(0);
	char path[48];

	snprintf(path, sizeof(path), "/local/domain/%" PRIu32, domid);
	if (!xs || (!xs_rm(xs, XBT_NULL, path) && errno != ENOENT))
		host_say(SAY_WARNING, NULL, "%s of a slice that has gone: %s", path, strerror(errno));
	xs_close(xs);
}

static int destroy(uint32_t domid)
{
	xc_interface *xch = xc_interface_open(NULL, NULL, 0);
	int rc;

	if (!xch)
		return -errno;
	rc = xc_domain_destroy(xch, domid) ? -errno : 0;
	xc_interface_close(xch);
	if (!rc)
		forget_name(domid);
	return rc;
}

static void path_of_vm(const uint8_t uuid[16], const char *below, char path[64])
{
	char text[37];

	dsm_uuid_text(uuid, text);
	snprintf(path, 64, "/tool/dsm/%s%s", text, below);
}

static int publish(const uint8_t uuid[16], const char *why)
{
	struct xs_handle *xs = xs_open(0);
	unsigned int size;
	char path[64], state[512], *said;
	int rc = 0;

	if (!xs)
		return -errno;
	path_of_vm(uuid, "/state", path);
	said = xs_read(xs, XBT_NULL, path, &size);
	if (!said || strncmp(said, "failed", 6)) {
		snprintf(state, sizeof(state), "failed: %s", why);
		if (!xs_write(xs, XBT_NULL, path, state, (unsigned int)strlen(state)))
			rc = -errno;
	}
	free(said);
	xs_close(xs);
	return rc;
}

static int fail(uint32_t domid, const uint8_t uuid[16], const char *why)
{
	int rc = publish(uuid, why);
	xc_interface *xch;

	if (!domid)
		return rc;
	xch = xc_interface_open(NULL, NULL, 0);
	if (!xch)
		return -errno;
	if (xc_domain_shutdown(xch, domid, SHUTDOWN_crash))
		rc = -errno;
	xc_interface_close(xch);
	return rc;
}

static int forget(const uint8_t uuid[16])
{
	struct xs_handle *xs = xs_open(0);
	char path[64];
	int rc;

	if (!xs)
		return -errno;
	path_of_vm(uuid, "", path);
	rc = xs_rm(xs, XBT_NULL, path) || errno == ENOENT ? 0 : -errno;
	xs_close(xs);
	return rc;
}

static struct xs_handle *watching;

static int watch(void)
{
	int why;

	watching = xs_open(0);
	if (!watching)
		return -1;
	if (!xs_watch(watching, "@releaseDomain", "domain")) {
		why = errno;
		xs_close(watching);
		watching = NULL;
		errno = why;
		return -1;
	}
	return xs_fileno(watching);
}

static const char *xenstore(void)
{
	return xs_daemon_socket();
}

static void watched(void)
{
	char **event;

	while ((event = xs_check_watch(watching)))
		free(event);
}

const struct host_xen *host_xen_get(void)
{
	static const struct host_xen xen = {
		.facts = facts, .features = features, .uuid = uuid,
		.find_uuid = find_uuid, .find_slice = find_slice,
		.find_name = find_name, .destroy = destroy,
		.fail = fail, .forget = forget,
		.watch = watch, .xenstore = xenstore, .watched = watched, .say_features = say_features,
	};

	return &xen;
}
