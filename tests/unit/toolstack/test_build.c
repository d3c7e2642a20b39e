// SPDX-License-Identifier: GPL-2.0
/*
 * Elastic vnodes when a domain is built: what a configuration may say, where
 * the vnodes lie, the first keys, ACPI's flags and CPUID's vnodes.
 */
#include <elf.h>

#include "fake_libxl.h"
#include "libacpi.h"
#include "libxl_arch.h"
#include "libxl_vnode_kernel.h"
#include "libxl_vnode_span.h"
#include "tap.h"

#define MIB (1ULL << 10)
#define GIB (1ULL << 30)
#define EXTRA_KB 1024
#define KEY "/local/domain/7/vnuma/"

static bool extra_fails;

int libxl__arch_extra_memory(libxl__gc *gc, const libxl_domain_build_info *info,
                             uint64_t *out_kb)
{
    (void)gc, (void)info;
    *out_kb = EXTRA_KB;

    return extra_fails ? ERROR_FAIL : 0;
}

const char *libxl_domain_type_to_string(libxl_domain_type type)
{
    return type == LIBXL_DOMAIN_TYPE_HVM ? "hvm" : "pv";
}

static unsigned int applied[8], nr_applied;
static bool cpuid_fails;

int xc_cpuid_apply_vnuma(void *xch, uint32_t domid,
                         const unsigned int *vcpu_to_vnode,
                         unsigned int nr_vcpus)
{
    (void)xch, (void)domid;
    nr_applied = nr_vcpus;
    memcpy(applied, vcpu_to_vnode, nr_vcpus * sizeof(*applied));

    return cpuid_fails ? -EPERM : 0;
}

/*---------- configurations ----------*/

static libxl_vnode_info nodes[NR_VNODES];
static libxl_domain_config config;
static libxl_domain_build_info *info = &config.b_info;

static void set_bits(libxl_bitmap *map, uint8_t bits)
{
    libxl_bitmap_dispose(map);
    libxl_bitmap_alloc(&fake_ctx, map, 8);
    map->map[0] = bits;
}

static void drop_config(void)
{
    unsigned int i;

    for (i = 0; i < NR_VNODES; i++)
        libxl_bitmap_dispose(&nodes[i].vcpus);
    libxl_bitmap_dispose(&info->avail_vcpus);
}

/* Vnode 0 at home (vCPUs 0-1), 1 (2-3) and 2 (4) elastic; all vCPUs online. */
static void good_config(void)
{
    static const uint8_t vcpus[] = { 0x03, 0x0c, 0x10 };
    unsigned int i;

    drop_config();
    *info = (libxl_domain_build_info) {
        .num_vnuma_nodes = NR_VNODES, .vnuma_nodes = nodes,
        .type = LIBXL_DOMAIN_TYPE_PVH, .max_vcpus = NR_VCPUS,
        .target_memkb = 512 * MIB,
    };
    for (i = 0; i < NR_VNODES; i++) {
        nodes[i] = (libxl_vnode_info) {
            .pnode = i ? LIBXL_VNODE_PNODE_ANY : 3,
            .memkb = i ? 128 * i * MIB : 512 * MIB, .elastic = i > 0,
        };
        set_bits(&nodes[i].vcpus, vcpus[i]);
    }
    set_bits(&info->avail_vcpus, 0x1f);
    config.c_info = (libxl_domain_create_info) {
        .passthrough = LIBXL_PASSTHROUGH_DISABLED, .hap = { 1 },
    };
    config.num_pcidevs = config.num_dtdevs = 0;
    world.log[0] = '\0';
}

static int setdefault(void)
{
    return libxl__vnode_setdefault(&fake_gc, &config, DOMID);
}

static void test_sums(void)
{
    good_config();
    ok_("elastic vnodes: their number and size",
        libxl__vnode_nr_elastic(info) == 2 &&
        libxl__vnode_elastic_memkb(info) == 384 * MIB);
    nodes[1].elastic = false;
    ok_("... and of one", libxl__vnode_nr_elastic(info) == 1 &&
        libxl__vnode_elastic_memkb(info) == 256 * MIB);
}

static void refused(const char *name, const char *words)
{
    int rc = setdefault();

    ok_("refused: %s", rc == ERROR_VNUMA_CONFIG_INVALID &&
        strstr(world.log, words), name);
    if (!strstr(world.log, words))
        note("%d: %s", rc, world.log);
}

static void test_setdefault(void)
{
    good_config();
    ok_("vCPUs of elastic vnodes are not online at boot",
        setdefault() == 0 && info->avail_vcpus.map[0] == 0x03 &&
        !world.log[0]);
    ok_("... again", setdefault() == 0 && info->avail_vcpus.map[0] == 0x03);

    good_config();
    nodes[1].elastic = nodes[2].elastic = false;
    info->type = LIBXL_DOMAIN_TYPE_HVM;
    ok_("without elastic vnodes nothing is changed or refused",
        setdefault() == 0 && info->avail_vcpus.map[0] == 0x1f);

    good_config();
    info->type = LIBXL_DOMAIN_TYPE_HVM;
    refused("no PVH guest", "this one is hvm");
    good_config();
    nodes[0].elastic = true;
    refused("vnode 0", "vnode 0 must not be elastic");
    good_config();
    nodes[2].memkb = 0;
    refused("no size", "vnode 2 is elastic: its size, 0 KiB");
    good_config();
    nodes[2].memkb += 4;
    refused("no multiple of a block", "a multiple of 128 MiB");
    good_config();
    nodes[1].memkb += 4;
    refused("... of any of them", "vnode 1 is elastic: its size");
    good_config();
    nodes[1].elastic = false;
    nodes[1].memkb += 4;
    ok_("a home vnode may have any size", setdefault() == 0);
    good_config();
    set_bits(&nodes[0].vcpus, 0x0b);
    set_bits(&nodes[1].vcpus, 0x04);
    refused("an elastic vCPU before one of home",
            "vCPU 2 of an elastic vnode comes before vCPU 3");
    good_config();
    set_bits(&nodes[0].vcpus, 0x07);
    set_bits(&nodes[1].vcpus, 0x08);
    ok_("... and behind it is right", setdefault() == 0 &&
        info->avail_vcpus.map[0] == 0x07);
    good_config();
    set_bits(&nodes[1].vcpus, 0);
    set_bits(&nodes[2].vcpus, 0);
    ok_("elastic vnodes without vCPUs", setdefault() == 0 &&
        info->avail_vcpus.map[0] == 0x1f);
    good_config();
    set_bits(&info->avail_vcpus, 0x1c);
    refused("no vCPU left to boot with", "no vCPU of a home vnode is online");
}

/* The good one, with vnode 2 on host b. */
static void spanning_config(void)
{
    good_config();
    nodes[2].host = "b";
}

static void many_hosts(unsigned int nr)
{
    static libxl_vnode_info many[20];
    static char name[20][16];
    unsigned int i;

    spanning_config();
    info->vnuma_nodes = many;
    info->num_vnuma_nodes = nr;
    many[0] = nodes[0];
    for (i = 1; i < nr; i++) {
        snprintf(name[i], sizeof(name[i]), "h%u", i);
        many[i] = (libxl_vnode_info) {
            .pnode = LIBXL_VNODE_PNODE_ANY, .memkb = 128 * MIB, .elastic = true,
            .host = name[i],
        };
    }
}

static void test_hosts(void)
{
    static char long_name[VNODE_HOST_NAME + 1];

    spanning_config();
    ok_("a vnode on another host", setdefault() == 0 && !world.log[0] &&
        libxl__vnode_nr_spanning(info) == 1);
    good_config();
    config.num_pcidevs = 1;
    info->nested_hvm.val = 1;
    info->altp2m = LIBXL_ALTP2M_MODE_MIXED;
    config.c_info.hap.val = -1;
    ok_("without one, nothing of that is looked at", setdefault() == 0 &&
        libxl__vnode_nr_spanning(info) == 0);

    spanning_config();
    nodes[2].elastic = false;
    refused("a host, and not elastic", "vnode 2 is on host b");
    spanning_config();
    nodes[1].elastic = nodes[2].elastic = false;
    refused("... although nothing is elastic", "it must be elastic");
    spanning_config();
    nodes[2].pnode = 1;
    refused("a host and a pnode", "pnode 1 would be a node of this host");
    spanning_config();
    nodes[1].host = "";
    refused("a host without a name", "vnode 1: host is not the name");
    spanning_config();
    nodes[2].host = "a\"b";
    refused("a host whose name is no name", "vnode 2: host is not the name");
    memset(long_name, 'x', VNODE_HOST_NAME);
    nodes[2].host = long_name;
    refused("a host whose name is too long", "at most 253");
    long_name[VNODE_HOST_NAME - 1] = '\0';
    ok_("... and the longest", setdefault() == 0 &&
        vnode_host_name_valid("0-") && !vnode_host_name_valid("-0"));

    spanning_config();
    config.num_pcidevs = 1;
    refused("passthrough: a PCI device", "passthrough of devices");
    spanning_config();
    config.num_dtdevs = 1;
    refused("passthrough: a device of the tree", "passthrough of devices");
    spanning_config();
    config.c_info.passthrough = LIBXL_PASSTHROUGH_ENABLED;
    refused("passthrough, before there is a device", "cannot wait for a page");
    spanning_config();
    info->nested_hvm.val = 1;
    refused("nested virtualisation", "nested virtualisation: Xen");
    spanning_config();
    info->altp2m = LIBXL_ALTP2M_MODE_MIXED;
    refused("altp2m", "altp2m: a page");
    spanning_config();
    config.c_info.hap.val = -1;
    refused("shadow paging", "hap=0: the hardware");
    spanning_config();
    info->type = LIBXL_DOMAIN_TYPE_HVM;
    refused("a device model", "this one is hvm");

    spanning_config();
    nodes[2].memkb = (1ULL << 30) - 640 * MIB;
    ok_("1 TiB together", setdefault() == 0);
    nodes[2].memkb += 128 * MIB;
    refused("more", "at most 1048576 MiB");
    many_hosts(16);
    ok_("16 hosts", setdefault() == 0);
    many_hosts(17);
    refused("17 hosts", "on 17 hosts, this one included; at most 16");
    many_hosts(18);
    info->vnuma_nodes[17].host = info->vnuma_nodes[16].host = "h1";
    ok_("... unless some are the same", setdefault() == 0);
}

/* The good one, with vnode 2 on host b, and its vCPU 4, too. */
static void remote_config(void)
{
    spanning_config();
    nodes[2].remote_vcpus = true;
    info->event_channels = 1023;
}

/* Of a kernel whose note has these abilities. */
static int check_image(uint32_t abilities)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr segment;
        Elf64_Nhdr note;
        char name[8];
        uint32_t abilities;
    } image = {
        .head = {
            .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
            .e_phoff = sizeof(image.head),
            .e_phentsize = sizeof(image.segment),
            .e_phnum = 1,
        },
        .segment = {
            .p_type = PT_NOTE,
            .p_offset = sizeof(image.head) + sizeof(image.segment),
            .p_filesz = sizeof(image.note) + sizeof(image.name) +
                        sizeof(image.abilities),
        },
        .note = { sizeof(VNODE_KERNEL_NOTE), sizeof(image.abilities),
                  VNODE_KERNEL_NOTE_TYPE },
        .name = VNODE_KERNEL_NOTE,
        .abilities = abilities,
    };

    return libxl__vnode_check_kernel(&fake_gc, DOMID, info, &image,
                                     sizeof(image));
}

static void test_remote_vcpus(void)
{
    remote_config();
    ok_("vCPUs on another host: the TSC is read there",
        setdefault() == 0 && !world.log[0] &&
        info->tsc_mode == LIBXL_TSC_MODE_NATIVE &&
        info->avail_vcpus.map[0] == 0x03);
    remote_config();
    info->tsc_mode = LIBXL_TSC_MODE_NATIVE;
    info->event_channels = 4096;
    ok_("... which may be said", setdefault() == 0);
    spanning_config();
    info->tsc_mode = LIBXL_TSC_MODE_ALWAYS_EMULATE;
    info->event_channels = 131072;
    ok_("... and without them nothing of that is looked at",
        setdefault() == 0 && info->tsc_mode == LIBXL_TSC_MODE_ALWAYS_EMULATE);
    spanning_config();
    setdefault();
    ok_("... or changed", info->tsc_mode == LIBXL_TSC_MODE_DEFAULT);

    remote_config();
    nodes[2].host = NULL;
    refused("vCPUs on another host, of none", "vnode 2: its vCPUs are to run");
    remote_config();
    set_bits(&nodes[2].vcpus, 0);
    refused("vCPUs on another host, without any", "has no vCPUs that could");
    remote_config();
    set_bits(&nodes[0].vcpus, 0x02);
    set_bits(&nodes[2].vcpus, 0x11);
    refused("vCPU 0 on another host", "vCPU 0 cannot run on host b");
    remote_config();
    info->tsc_mode = LIBXL_TSC_MODE_ALWAYS_EMULATE;
    refused("a TSC that is emulated", "tsc_mode=always_emulate");
    remote_config();
    info->tsc_mode = LIBXL_TSC_MODE_NATIVE_PARAVIRT;
    refused("a TSC by the guest's own ways", "tsc_mode=native_paravirt");
    remote_config();
    info->event_channels = 4097;
    refused("FIFO event channels", "with 4097 event channels: more than 4096");
    remote_config();
    info->nested_hvm.val = 1;
    refused("vCPUs on another host, nested", "nested virtualisation");
    remote_config();
    info->type = LIBXL_DOMAIN_TYPE_HVM;
    refused("vCPUs on another host, not PVH", "this one is hvm");

    remote_config();
    ok_("a kernel that does not say that it can",
        libxl__vnode_check_kernel(&fake_gc, DOMID, info, "MZ", 2) ==
        ERROR_VNUMA_CONFIG_INVALID && strstr(world.log, "no ELF note Xenuma"));
    ok_("... one that says that it can something else", check_image(~1u) ==
        ERROR_VNUMA_CONFIG_INVALID && strstr(world.log, "vcpu_info"));
    ok_("... one whose tables of grants are elsewhere", check_image(~2u) ==
        ERROR_VNUMA_CONFIG_INVALID &&
        strstr(world.log, "does not say so (bit 1") &&
        strstr(world.log, "as new as this xl") &&
        strstr(world.log, "built without CONFIG_XEN_UNPOPULATED_ALLOC"));
    ok_("... one that is preempted, or says nothing of that", check_image(3) ==
        ERROR_VNUMA_CONFIG_INVALID &&
        strstr(world.log, "does not say so (bit 2") &&
        strstr(world.log, "as new as this xl") &&
        strstr(world.log, "CONFIG_PREEMPT_NONE or CONFIG_PREEMPT_VOLUNTARY") &&
        strstr(world.log, "without CONFIG_PREEMPT_DYNAMIC"));
    ok_("... whatever else it can", check_image(3 | 8) ==
        ERROR_VNUMA_CONFIG_INVALID && strstr(world.log, "(bit 2"));
    world.log[0] = '\0';
    ok_("... one thing is said at a time", check_image(1) ==
        ERROR_VNUMA_CONFIG_INVALID && !strstr(world.log, "(bit 2"));
    ok_("... one that says that it can", check_image(7) == 0);
    ok_("... and more than is known", check_image(15) == 0);
    spanning_config();
    ok_("... is nobody's business without vCPUs on another host",
        libxl__vnode_check_kernel(&fake_gc, DOMID, info, "MZ", 2) == 0 &&
        !world.log[0]);
}

/* What there is below /sys/module/xen_netback: nothing, a netback, one that waits. */
static enum { NO_NETBACK, OLD_NETBACK, NETBACK } netback;

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    const char *module = "/sys/module/xen_netback";
    bool there = !strcmp(path, module) ? netback != NO_NETBACK
                 : !strncmp(path, module, strlen(module)) &&
                   !strcmp(path + strlen(module), "/parameters/page_wait_msecs")
                 ? netback == NETBACK : false;

    errno = there && mode == F_OK ? 0 : ENOENT;

    return errno ? -1 : 0;
}

static const struct {
    const char *name;
    const char *host;           /* of vnode 2 */
    int nr_nics;                /* of two */
    libxl_device_nic nic[2];
    int netback;
    int rc;
    const char *text;           /* in the log; NULL: nothing is said */
} nics[] = {
#define INVALID ERROR_VNUMA_CONFIG_INVALID
    { "a netback that waits", "b", 2, { { 0 } }, NETBACK, 0, NULL },
    { "one that cannot", "b", 1, { { 0 } }, OLD_NETBACK, INVALID,
      "would crash this domain (no /sys/module/xen_netback/parameters/"
      "page_wait_msecs); boot it with Xenuma's Linux" },
    { "none", "b", 1, { { 0 } }, NO_NETBACK, INVALID,
      "this domain has none (no /sys/module/xen_netback); load xen-netback "
      "first" },
    { "one that cannot, and no vnode on another host", NULL, 2, { { 0 }, { 5 } },
      OLD_NETBACK, 0, NULL },
    { "one that cannot, and no vif", "b", 0, { { 0 } }, OLD_NETBACK, 0, NULL },
    { "one in another domain", "b", 1, { { 5 } }, OLD_NETBACK, 0,
      "backend in domain 5: it is not seen from here" },
    { "one in another domain, and one here that cannot", "b", 2, { { 5 }, { 0 } },
      OLD_NETBACK, INVALID, "would crash this domain" },
    { "one here, and one in another domain", "b", 2, { { 0 }, { 6 } }, NETBACK, 0,
      "backend in domain 6" },
    { "one here that cannot, and one in another domain", "b", 2, { { 0 }, { 6 } },
      OLD_NETBACK, INVALID, "would crash this domain" },
};

static void test_nics(void)
{
    libxl_device_nic nic[2];
    size_t i;
    int rc;

    for (i = 0; i < NR(nics); i++) {
        good_config();
        nodes[2].host = (char *)nics[i].host;
        memcpy(nic, nics[i].nic, sizeof(nic));
        config.nics = nic;
        config.num_nics = nics[i].nr_nics;
        netback = nics[i].netback;
        rc = libxl__vnode_check_nics(&fake_gc, DOMID, &config);
        ok_("vifs: %s", rc == nics[i].rc &&
            (nics[i].text ? !!strstr(world.log, nics[i].text) : !world.log[0]),
            nics[i].name);
        if (world.log[0])
            note("%d: %s", rc, world.log);
    }
    config.num_nics = 0;
    config.nics = NULL;

    for (i = 0; i < NR(nics); i++) {
        if (nics[i].nr_nics != 1)
            continue;
        good_config();
        world.config[2].host = (char *)nics[i].host;
        netback = nics[i].netback;
        rc = libxl__vnode_check_new_nic(&fake_gc, DOMID, &nics[i].nic[0]);
        ok_("a vif that comes later: %s", rc == nics[i].rc &&
            strstr(world.log, nics[i].text), nics[i].name);
    }
    world.config[2].host = NULL;
    good_config();
    netback = OLD_NETBACK;
    ok_("... and no vnode on another host",
        !libxl__vnode_check_new_nic(&fake_gc, DOMID, &nics[1].nic[0]) &&
        !world.log[0]);
    world.calls = 0;
    world.fail_at = 1;
    ok_("... and nobody knows which vnodes it has",
        libxl__vnode_check_new_nic(&fake_gc, DOMID, &nics[1].nic[0]) ==
        ERROR_FAIL);
    world.fail_at = 0;
}

static void test_pool(void)
{
    ok_("the pool: a sixteenth, in frames",
        vnode_pool_kb(2, 128 * MIB) == 8 * MIB &&
        vnode_pool_kb(0, 16 * 7) == 4);
    ok_("... and 32 frames a vCPU at least",
        vnode_pool_kb(65, 128 * MIB) == 65 * 128 &&
        vnode_pool_kb(64, 128 * MIB) == 8 * MIB);
    ok_("... never more than the smallest vnode",
        vnode_pool_kb(512, 128 * MIB) <= 128 * MIB);
}

static void test_pnodes(void)
{
    good_config();
    ok_("no pnode in particular",
        libxl__vnode_check_pnode(&fake_gc, info, 1, 4) == 0);
    nodes[1].pnode = 3;
    ok_("the last pnode",
        libxl__vnode_check_pnode(&fake_gc, info, 1, 4) == 0);
    nodes[1].pnode = 4;
    ok_("one behind it",
        libxl__vnode_check_pnode(&fake_gc, info, 1, 4) ==
        ERROR_VNUMA_CONFIG_INVALID && strstr(world.log, "pnode 4"));

    good_config();
    nodes[2].elastic = false;
    nodes[2].pnode = 2;
    ok_("an absent vnode leads to home's pnode, another to its own",
        libxl__vnode_boot_pnode(info, 0) == 3 &&
        libxl__vnode_boot_pnode(info, 1) == 3 &&
        libxl__vnode_boot_pnode(info, 2) == 2);
}

/*---------- addresses ----------*/

static void test_place(void)
{
    xen_vmemrange_t *ranges;
    int nr = 2;

    good_config();
    ranges = libxl__calloc(&fake_gc, 2, sizeof(*ranges));
    ranges[0] = (xen_vmemrange_t) { 4 * GIB, 5 * GIB, 0, 0 };
    ranges[1] = (xen_vmemrange_t) { 0, GIB, 0, 0 };
    ok_("elastic ranges lie behind all others, 2 GiB apart",
        libxl__vnode_place(&fake_gc, DOMID, info, &ranges, &nr) == 0 &&
        nr == 4 && ranges[0].end == 5 * GIB && ranges[1].end == GIB &&
        ranges[2].start == 6 * GIB && ranges[2].nid == 1 &&
        ranges[2].end == 6 * GIB + (128 << 20) && ranges[2].flags == 0 &&
        ranges[3].start == 8 * GIB && ranges[3].nid == 2 &&
        ranges[3].end == 8 * GIB + (256 << 20));

    libxl__vnode_mark_hotplug(info, ranges, nr);
    ok_("... and only they are hot-pluggable",
        !ranges[0].flags && !ranges[1].flags &&
        ranges[2].flags == LIBACPI_VMEMRANGE_HOTPLUG &&
        ranges[3].flags == LIBACPI_VMEMRANGE_HOTPLUG);
    ranges[3].flags = 0;
    ranges[3].nid = NR_VNODES;
    libxl__vnode_mark_hotplug(info, ranges, nr);
    ok_("... not a range of a vnode that there is not", !ranges[3].flags);

    nr = 1;
    ranges[0].end = (1ULL << 52) - GIB;
    ok_("no room", libxl__vnode_place(&fake_gc, DOMID, info, &ranges, &nr) ==
        ERROR_VNUMA_CONFIG_INVALID && strstr(world.log, "no room for vnode 1"));
}

/*---------- keys ----------*/

static bool is(const char *path, const char *value)
{
    const char *s = fake_get(path);
    bool same = s && value ? !strcmp(s, value) : !s && !value;

    if (!same)
        note("%s is %s, not %s", path, s ? s : "absent",
             value ? value : "absent");

    return same;
}

static void forget_keys(void)
{
    fake_remove_below("/local/domain/7/");
    fake_remove_below("/libxl/7/");
}

static void test_keys(void)
{
    unsigned int n;
    int rc = 1;

    fake_boot();
    forget_keys();
    good_config();
    nodes[1].pnode = 1;
    world.log[0] = '\0';
    ok_("keys of a new domain",
        libxl__vnode_xenstore_setup(&fake_gc, DOMID, info) == 0 &&
        is(KEY "nodes", "3") && is("/local/domain/7/vnuma", "n0 r7") &&
        is(KEY "guest", "n7") && !world.log[0]);
    ok_("... of a home vnode",
        is(KEY "node/0/elastic", "0") && is(KEY "node/0/max-kb", "524288") &&
        is(KEY "node/0/target-kb", "524288") && is(KEY "node/0/cpus", "0-1") &&
        is(KEY "node/0/start", NULL) && is("/libxl/7/vnuma/node/0/pnode", "3"));
    ok_("... of elastic ones: absent, at the start of their range",
        is(KEY "node/1/elastic", "1") && is(KEY "node/1/max-kb", "131072") &&
        is(KEY "node/1/target-kb", "0") && is(KEY "node/1/cpus", "2-3") &&
        is(KEY "node/1/start", "0x180000000") &&
        is(KEY "node/2/start", "0x200000000") && is(KEY "node/2/cpus", "4") &&
        is("/libxl/7/vnuma/node/1/pnode", NULL));
    ok_("... and what the limit is without them",
        is("/libxl/7/vnuma/home-limit-kb", "525312"));

    forget_keys();
    nodes[1].elastic = nodes[2].elastic = false;
    ok_("without elastic vnodes there is no such limit",
        libxl__vnode_xenstore_setup(&fake_gc, DOMID, info) == 0 &&
        is(KEY "nodes", "3") && is("/libxl/7/vnuma/home-limit-kb", NULL) &&
        is(KEY "node/1/start", NULL) &&
        is("/libxl/7/vnuma/node/1/pnode", "1"));

    ok_("... nor is there another host",
        is("/libxl/7/vnuma/node/1/host", NULL) &&
        is("/libxl/7/vnuma/node/2/host", NULL));

    forget_keys();
    spanning_config();
    ok_("keys of a vnode on another host: which",
        libxl__vnode_xenstore_setup(&fake_gc, DOMID, info) == 0 &&
        is("/libxl/7/vnuma/node/2/host", "b") &&
        is("/libxl/7/vnuma/node/1/host", NULL) &&
        is(KEY "node/2/elastic", "1") && is(KEY "node/2/target-kb", "0"));

    ok_("... whose vCPUs stay at home",
        is("/libxl/7/vnuma/node/2/remote-vcpus", NULL));

    forget_keys();
    remote_config();
    ok_("... or do not",
        libxl__vnode_xenstore_setup(&fake_gc, DOMID, info) == 0 &&
        is("/libxl/7/vnuma/node/2/remote-vcpus", "1") &&
        is("/libxl/7/vnuma/node/2/placed", NULL));

    forget_keys();
    good_config();
    info->num_vnuma_nodes = 0;
    ok_("without vnodes there is nothing",
        libxl__vnode_xenstore_setup(&fake_gc, DOMID, info) == 0 &&
        is(KEY "nodes", NULL) && is("/local/domain/7/vnuma", NULL));

    good_config();
    extra_fails = true;
    ok_("a failure is said",
        libxl__vnode_xenstore_setup(&fake_gc, DOMID, info) &&
        strstr(world.log, "cannot write the keys"));
    extra_fails = false;

    for (n = 1; rc; n++) {
        fake_boot();
        forget_keys();
        good_config();
        world.fail_at = n;
        rc = libxl__vnode_xenstore_setup(&fake_gc, DOMID, info);
        if (rc && fake_get(KEY "nodes"))
            break;
    }
    ok_("all keys or none, whichever call fails",
        !rc && n > 20 && fake_get(KEY "nodes"));
    fake_end();
}

/*---------- CPUID ----------*/

static void test_cpuid(void)
{
    static const unsigned int vnodes[] = { 0, 0, 1, 1, 2 };

    good_config();
    ok_("CPUID is told the vnode of each vCPU",
        libxl__vnode_cpuid(&fake_gc, DOMID, info) == 0 &&
        nr_applied == NR_VCPUS && !memcmp(applied, vnodes, sizeof(vnodes)));
    set_bits(&nodes[2].vcpus, 0xf0);
    ok_("... and of none that there is not",
        libxl__vnode_cpuid(&fake_gc, DOMID, info) == 0 &&
        nr_applied == NR_VCPUS);
    cpuid_fails = true;
    ok_("... or why not", libxl__vnode_cpuid(&fake_gc, DOMID, info) &&
        strstr(world.log, "cannot make CPUID agree"));
    cpuid_fails = false;

    good_config();
    nr_applied = 0;
    info->type = LIBXL_DOMAIN_TYPE_PV;
    ok_("a PV guest's is left alone",
        libxl__vnode_cpuid(&fake_gc, DOMID, info) == 0 && !nr_applied);
    good_config();
    info->num_vnuma_nodes = 0;
    ok_("... and that of one without vnodes",
        libxl__vnode_cpuid(&fake_gc, DOMID, info) == 0 && !nr_applied);
}

int main(void)
{
    fake_boot();
    test_sums();
    test_setdefault();
    test_hosts();
    test_remote_vcpus();
    test_nics();
    test_pool();
    test_pnodes();
    test_place();
    test_cpuid();
    test_keys();
    drop_config();
    fake_end();

    return done_testing();
}
