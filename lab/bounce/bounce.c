/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which pages bounce: a QEMU TCG plugin that plays the page protocol of DSM
 * (protocol.h) between the vCPUs of one plain machine. Each vCPU is given to a
 * host; what a vCPU would have to wait for is counted by page, instruction,
 * address, host and kind.
 *
 * What it does not see, and so does not count: what the CPU itself reads and
 * writes (page tables with their accessed and dirty bits, the frame of an
 * interrupt, descriptors), code that is fetched, and devices.
 * QEMU tells of an access when it is over. Another CPU that spins on a word may
 * so see it before the plugin has heard of the write: two that hand a page to each
 * other as quickly as they can have a sixth of their faults missing, and some that
 * are of another kind. Who looks now and then has next to none: 7993 of 8000 (init.c, bounce_turns).
 * What it does not model: Xen, hypercalls, event channels, pvclock; tokens,
 * prefetch, pages that stay at home. Without `delay` everything is instant, so a
 * page can be taken from a CPU after each instruction, and one that waits loses
 * nothing; with it who waits sleeps for so long, after its access, which it has
 * made with what was there. With `lease` a page stays for so long where it has
 * come to. The file that it writes is read by
 * lab/bounce/__init__.py.
 *
 * Arguments: out=FILE, hosts=DIGITS (the host of each vCPU, 0 to 3), pages=N
 * (of guest memory, from address 0; what is above is counted as `beyond`),
 * percpu=HEX (optional: address of Linux's __per_cpu_offset), delay=US and
 * lease=US (0 by default).
 *
 * The guest says when (magic.h): BOUNCE_PLAY, then BOUNCE_COUNT, then
 * BOUNCE_END. Until BOUNCE_PLAY the memory callbacks return at once.
 *
 * Locking: `lock` guards `counts` and the writing of the file. `playing` and the
 * states are read without it, atomically: nearly all accesses hit, and two vCPUs
 * that took a lock for each would run one after the other.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <glib.h>
#include <qemu-plugin.h>

#include "magic.h"
#include "protocol.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bounce counts;
enum { LEASE_POLL_US = 100 };

static bool playing;
static uint64_t beyond;

/* Fixed when the plugin is installed. */
static unsigned int cpus;
static uint8_t host_of[BOUNCE_MAX_CPUS];
static const char *out;
static uint64_t percpu;
static uint64_t delay_ns, lease_ns;
/* By page: until then it stays where it has come to. With the lock held. */
static uint64_t *stays;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* vCPU context, after each access of an instruction at `pc`. */
static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, void *pc)
{
	struct qemu_plugin_hwaddr *hwaddr;
	uint64_t page;
	bool write, waits = false;

	if (!__atomic_load_n(&playing, __ATOMIC_RELAXED))
		return;
	hwaddr = qemu_plugin_get_hwaddr(info, va);
	if (!hwaddr || qemu_plugin_hwaddr_is_io(hwaddr))
		return;
	page = qemu_plugin_hwaddr_phys_addr(hwaddr) >> 12;
	if (page >= counts.pages) {
		__atomic_add_fetch(&beyond, 1, __ATOMIC_RELAXED);
		return;
	}
	write = qemu_plugin_mem_is_store(info);
	if (bounce_hits(__atomic_load_n(&counts.state[page], __ATOMIC_RELAXED), host_of[cpu], write))
		return;
	pthread_mutex_lock(&lock);
	while (playing && now_ns() < stays[page] && !bounce_hits(counts.state[page], host_of[cpu], write)) {
		pthread_mutex_unlock(&lock);
		usleep(LEASE_POLL_US);
		pthread_mutex_lock(&lock);
	}
	if (playing)
		waits = bounce_access(&counts, cpu, host_of[cpu], page, (uintptr_t)pc, va, write);
	if (waits && lease_ns)
		stays[page] = now_ns() + delay_ns + lease_ns;
	pthread_mutex_unlock(&lock);
	if (waits && delay_ns)
		usleep(delay_ns / 1000);
}

/* Where Linux has put the per-CPU areas: what the vCPU that is in this callback can read. */
static void write_percpu(FILE *file)
{
	GByteArray *bytes = g_byte_array_new();
	unsigned int i;

	fputs("\"percpu\": [", file);
	if (percpu && qemu_plugin_read_memory_vaddr(percpu, bytes, cpus * sizeof(uint64_t)))
		for (i = 0; i < cpus; i++) {
			uint64_t offset;

			memcpy(&offset, bytes->data + i * sizeof(offset), sizeof(offset));
			fprintf(file, "%s%" PRIu64, i ? ", " : "", offset);
		}
	fputs("], ", file);
	g_byte_array_free(bytes, TRUE);
}

static void write_file(void)
{
	static const char *const kinds[BOUNCE_KINDS] = { "read", "write", "upgrade" };
	FILE *file = fopen(out, "w");
	const char *comma = "";
	unsigned int i;
	size_t row;

	if (!file) {
		fprintf(stderr, "bounce: %s: %s\n", out, strerror(errno));
		return;
	}
	fputs("{\"hosts\": [", file);
	for (i = 0; i < cpus; i++)
		fprintf(file, "%s%u", i ? ", " : "", host_of[i]);
	fprintf(file, "], \"lost\": %" PRIu64 ", \"beyond\": %" PRIu64 ", ", counts.lost, beyond);
	write_percpu(file);
	fputs("\"faults\": [", file);
	for (i = 0; i < BOUNCE_MAX_HOSTS; i++)
		fprintf(file, "%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", i ? ", " : "", counts.faults[i][BOUNCE_READ],
			counts.faults[i][BOUNCE_WRITE], counts.faults[i][BOUNCE_UPGRADE]);
	fputs("],\n\"rows\": [", file);
	for (row = 0; row < counts.rows; row++) {
		const struct bounce_row *r = &counts.row[row];

		if (!r->count)
			continue;
		fprintf(file, "%s\n[%u, \"%s\", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", comma, r->host,
			kinds[r->kind], r->page, r->pc, r->va, r->count);
		comma = ",";
	}
	fputs("]}\n", file);
	if (fclose(file))
		fprintf(stderr, "bounce: %s: %s\n", out, strerror(errno));
}

/* vCPU context, before the no-op. */
static void on_magic(unsigned int cpu, void *word)
{
	(void)cpu;
	pthread_mutex_lock(&lock);
	switch ((uintptr_t)word) {
	case BOUNCE_PLAY:
		__atomic_store_n(&playing, true, __ATOMIC_RELAXED);
		break;
	case BOUNCE_COUNT:
		bounce_clear(&counts);
		__atomic_store_n(&beyond, 0, __ATOMIC_RELAXED);
		break;
	case BOUNCE_END:
		__atomic_store_n(&playing, false, __ATOMIC_RELAXED);
		write_file();
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* The word that an instruction says, or 0. */
static unsigned int magic_of(const struct qemu_plugin_insn *insn)
{
	static const uint8_t nop[BOUNCE_MAGIC_BYTES] = { 0x0f, 0x1f, 0x84, 0x00, 0, 0x42, 0x53, 0x0d };
	uint8_t bytes[BOUNCE_MAGIC_BYTES];
	unsigned int word;

	if (qemu_plugin_insn_size(insn) != sizeof(bytes) ||
	    qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) != sizeof(bytes))
		return 0;
	word = bytes[BOUNCE_MAGIC_WORD];
	bytes[BOUNCE_MAGIC_WORD] = 0;
	return memcmp(bytes, nop, sizeof(bytes)) ? 0 : word;
}

/* vCPU context, for each block of code that is translated. */
static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		unsigned int word = magic_of(insn);

		if (word)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_magic, QEMU_PLUGIN_CB_NO_REGS,
							       (void *)(uintptr_t)word);
		qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
						 (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
	}
}

static int fail(const char *format, ...)
{
	va_list arguments;

	fputs("bounce: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return -1;
}

/* A whole number; 0 for anything else. */
static uint64_t number_of(const char *text, int base)
{
	char *end;
	uint64_t number = strtoull(text, &end, base);

	return *text == '-' || *end ? 0 : number;
}

static int take_hosts(const char *digits)
{
	for (cpus = 0; digits[cpus]; cpus++) {
		if (cpus == BOUNCE_MAX_CPUS || digits[cpus] < '0' || digits[cpus] >= '0' + BOUNCE_MAX_HOSTS)
			return fail("hosts=%s: want one digit, 0 to %d, for each of at most %d vCPUs", digits,
				    BOUNCE_MAX_HOSTS - 1, BOUNCE_MAX_CPUS);
		host_of[cpus] = digits[cpus] - '0';
	}
	return 0;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return fail("'%s': want NAME=VALUE", argv[i]);
		value++;
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(value);
		else if (!strncmp(argv[i], "pages=", 6))
			counts.pages = number_of(value, 10);
		else if (!strncmp(argv[i], "percpu=", 7))
			percpu = number_of(value, 16);
		else if (!strncmp(argv[i], "delay=", 6))
			delay_ns = number_of(value, 10) * 1000;
		else if (!strncmp(argv[i], "lease=", 6))
			lease_ns = number_of(value, 10) * 1000;
		else if (strncmp(argv[i], "hosts=", 6))
			return fail("unknown argument '%s'; want out=, hosts=, pages=, percpu=, delay=, lease=", argv[i]);
		else if (take_hosts(value))
			return -1;
	}
	if (!out)
		return fail("want out=FILE");
	if (counts.pages < 1 || counts.pages > BOUNCE_MAX_PAGES)
		return fail("pages: want 1 to %d", BOUNCE_MAX_PAGES);
	if (!info->system_emulation || info->system.max_vcpus != (int)cpus)
		return fail("hosts: want a digit for each of the machine's %d vCPUs", info->system.max_vcpus);
	counts.state = calloc(counts.pages, 1);
	stays = calloc(counts.pages, sizeof(*stays));
	if (!counts.state || !stays)
		return fail("no memory for the states of %" PRIu64 " pages", counts.pages);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
