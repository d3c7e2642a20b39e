/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NUMA meter: a QEMU TCG plugin that counts which CPU touches the memory of
 * which node.
 *
 * TCG knows the host physical address of every access, also below nested
 * paging. A sample of the accesses is counted by (CPU, node, read or write)
 * in a file that the lab maps. Which addresses belong to which node, and which
 * CPU to which node, is the lab's business: it sends the address ranges.
 *
 * Switching. Code is translated with memory callbacks only while the meter is
 * on. To switch, one vCPU calls qemu_plugin_reset(), which stops all vCPUs,
 * drops all translated code and lets us register anew. What triggers that call
 * is a conditional callback (an inline load, compare and branch) in translated
 * code of the upper half of the address space: kernels and the hypervisor,
 * which every CPU runs at each of its timer ticks. User code that runs while
 * the meter is off is translated exactly as without a plugin.
 *
 * Control: a Unix stream socket, one client at a time, lines:
 *   on EVERY user|all START-END:NODE ...   hex addresses, END exclusive;
 *                                          EVERY: mean accesses per sample
 *   off
 * each answered by "ok" when it has taken effect, or "error TEXT".
 *
 * Locking: `lock` guards `wanted`, `next` and `applied`. `active` is written
 * only while all vCPUs are stopped (after_reset) and read only by vCPUs. A
 * CPU's counters are written by its own thread alone; the lab reads them
 * without a lock, so a reading may be one sample old.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

enum {
	METER_MAX_CPUS = 64,
	METER_MAX_NODES = 8,
	METER_MAX_EXTENTS = 32,
	METER_MAX_EVERY = 1 << 20,
	METER_MAX_LINE = 4096,
	/* Xen's time calibration runs on every CPU once a second. */
	METER_SWITCH_SECONDS = 20,
};

#define METER_MAGIC 0x314d414e554e4558ull /* "XENUNAM1", little-endian */

/* Canonical user addresses end here; also with 5-level paging off. */
#define USER_END (1ull << 47)

/* The file that the lab maps. lab/meter/__init__.py knows this layout. */
struct cpu_counters {
	uint64_t samples[METER_MAX_NODES][2];	/* by node; read, write */
	uint64_t elsewhere;			/* no node: devices, ROM */
	uint64_t until_next;			/* accesses to the next sample */
	uint64_t random;			/* xorshift64 state, never 0 */
	uint64_t unused[5];
};

struct counters {
	uint64_t magic;
	uint64_t on;				/* 1: samples are being taken */
	uint64_t every;
	uint64_t unused[5];
	struct cpu_counters cpu[METER_MAX_CPUS];
};

_Static_assert(sizeof(struct cpu_counters) == 192, "layout is shared with Python");
_Static_assert(offsetof(struct counters, cpu) == 64, "layout is shared with Python");

struct extent {
	uint64_t start, end;			/* host physical, bytes */
	unsigned int node;
};

struct settings {
	bool on;
	bool user_only;
	uint64_t every;
	unsigned int extents;
	struct extent extent[METER_MAX_EXTENTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t applied_changed = PTHREAD_COND_INITIALIZER;
static struct settings next;		/* to become active */
static uint64_t wanted, applied;	/* numbers of switches */

static struct settings active;
static struct counters *counters;
static qemu_plugin_id_t plugin;
static qemu_plugin_u64 trigger;		/* per vCPU: not 0 asks for a switch */
static int listener = -1;

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/*
 * Intervals are spread evenly over 1 .. 2 * every - 1 (mean: every): a constant
 * one would fall into step with loops and sample the same instruction for ever.
 */
static uint64_t interval(struct cpu_counters *cpu)
{
	return 1 + next_random(&cpu->random) % (2 * active.every - 1);
}

static void add(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* vCPU context, once for each access while the meter is on. */
static void on_access(unsigned int index, qemu_plugin_meminfo_t info,
		      uint64_t vaddr, void *unused)
{
	struct cpu_counters *cpu = &counters->cpu[index % METER_MAX_CPUS];
	struct qemu_plugin_hwaddr *hwaddr;
	uint64_t address;
	unsigned int i;

	(void)unused;
	if (--cpu->until_next)
		return;
	cpu->until_next = interval(cpu);

	hwaddr = qemu_plugin_get_hwaddr(info, vaddr);
	if (!hwaddr || qemu_plugin_hwaddr_is_io(hwaddr)) {
		add(&cpu->elsewhere);
		return;
	}
	address = qemu_plugin_hwaddr_phys_addr(hwaddr);
	for (i = 0; i < active.extents; i++) {
		const struct extent *extent = &active.extent[i];

		if (address >= extent->start && address < extent->end) {
			add(&cpu->samples[extent->node][qemu_plugin_mem_is_store(info)]);
			return;
		}
	}
	add(&cpu->elsewhere);
}

static void on_trigger(unsigned int index, void *unused);

/* vCPU context, for each block of code that is translated. */
static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	if (qemu_plugin_tb_vaddr(tb) >= USER_END)
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_trigger, QEMU_PLUGIN_CB_NO_REGS,
							  QEMU_PLUGIN_COND_NE, trigger, 0, NULL);
	if (!active.on)
		return;
	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (!active.user_only || qemu_plugin_insn_vaddr(insn) < USER_END)
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, NULL);
	}
}

static void set_triggers(uint64_t value)
{
	int cpus = qemu_plugin_num_vcpus(), i;

	for (i = 0; i < cpus; i++)
		qemu_plugin_u64_set(trigger, i, value);
}

static void restart_sampling(void)
{
	unsigned int i;

	for (i = 0; i < METER_MAX_CPUS; i++) {
		counters->cpu[i].random = 0x9e3779b97f4a7c15ull * (i + 1);
		counters->cpu[i].until_next = interval(&counters->cpu[i]);
	}
}

/* All vCPUs are stopped, no translated code is left. */
static void after_reset(qemu_plugin_id_t id)
{
	pthread_mutex_lock(&lock);
	active = next;
	if (active.on)
		restart_sampling();
	counters->every = active.every;
	__atomic_store_n(&counters->on, active.on, __ATOMIC_RELEASE);
	set_triggers(0);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	applied = wanted;
	pthread_cond_broadcast(&applied_changed);
	pthread_mutex_unlock(&lock);
}

/* vCPU context. A second reset while one is pending is ignored by QEMU. */
static void on_trigger(unsigned int index, void *unused)
{
	(void)index;
	(void)unused;
	qemu_plugin_reset(plugin, after_reset);
}

/* Control thread: make `settings` active. Returns 0, or -ETIMEDOUT when no vCPU ran kernel code in time. */
static int switch_to(const struct settings *settings)
{
	struct timespec deadline;
	uint64_t number;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += METER_SWITCH_SECONDS;
	pthread_mutex_lock(&lock);
	next = *settings;
	number = ++wanted;
	set_triggers(1);
	while (applied < number && !rc)
		rc = pthread_cond_timedwait(&applied_changed, &lock, &deadline);
	pthread_mutex_unlock(&lock);
	return -rc;
}

/* "START-END:NODE" in hex, hex, decimal. Returns 0 or -EINVAL. */
static int parse_extent(const char *word, struct extent *extent)
{
	char end;

	if (sscanf(word, "%" SCNx64 "-%" SCNx64 ":%u%c", &extent->start, &extent->end, &extent->node, &end) != 3)
		return -EINVAL;
	return extent->start < extent->end && extent->node < METER_MAX_NODES ? 0 : -EINVAL;
}

/* A line of the control protocol to settings. Returns NULL, or what is wrong. */
static const char *parse(char *line, struct settings *settings)
{
	char *position, *word = strtok_r(line, " ", &position);
	char *end;

	memset(settings, 0, sizeof(*settings));
	settings->every = 1;
	if (word && !strcmp(word, "off"))
		return strtok_r(NULL, " ", &position) ? "off takes no argument" : NULL;
	if (!word || strcmp(word, "on"))
		return "want 'on' or 'off'";
	settings->on = true;

	word = strtok_r(NULL, " ", &position);
	settings->every = word ? strtoull(word, &end, 10) : 0;
	if (!word || *end || settings->every < 1 || settings->every > METER_MAX_EVERY)
		return "EVERY: want 1 to 1048576";

	word = strtok_r(NULL, " ", &position);
	if (!word || (strcmp(word, "user") && strcmp(word, "all")))
		return "want 'user' or 'all'";
	settings->user_only = !strcmp(word, "user");

	while ((word = strtok_r(NULL, " ", &position))) {
		if (settings->extents == METER_MAX_EXTENTS)
			return "more than 32 address ranges";
		if (parse_extent(word, &settings->extent[settings->extents++]))
			return "address range: want START-END:NODE, hex, node 0 to 7";
	}
	return settings->extents ? NULL : "no address ranges";
}

static void serve(FILE *client)
{
	char line[METER_MAX_LINE];
	struct settings settings;

	while (fgets(line, sizeof(line), client)) {
		const char *wrong;

		line[strcspn(line, "\n")] = '\0';
		wrong = parse(line, &settings);
		if (!wrong && switch_to(&settings))
			wrong = "no CPU ran kernel code within 20 s; is the machine paused?";
		fprintf(client, wrong ? "error %s\n" : "ok\n", wrong);
		fflush(client);
	}
}

static void *control(void *unused)
{
	(void)unused;
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		FILE *client;

		if (fd < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			fprintf(stderr, "meter: accept: %s; the meter can no longer be switched\n", strerror(errno));
			return NULL;
		}
		client = fdopen(fd, "r+");
		if (!client) {
			close(fd);
			continue;
		}
		serve(client);
		fclose(client);
	}
}

static int fail(const char *format, ...)
{
	va_list arguments;

	fputs("meter: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return -1;
}

static int open_counters(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*counters)))
		return fail("%s: %s", path, strerror(errno));
	counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (counters == MAP_FAILED)
		return fail("%s: %s", path, strerror(errno));
	counters->magic = METER_MAGIC;
	return 0;
}

static int open_control(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	pthread_t thread;
	int rc;

	if (strlen(path) >= sizeof(address.sun_path))
		return fail("%s: longer than the %zu bytes of a socket address", path, sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	unlink(path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 4))
		return fail("%s: %s", path, strerror(errno));
	rc = pthread_create(&thread, NULL, control, NULL);
	if (rc)
		return fail("thread: %s", strerror(rc));
	return 0;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *control_path = NULL, *counters_path = NULL;
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "control=", 8))
			control_path = argv[i] + 8;
		else if (!strncmp(argv[i], "counters=", 9))
			counters_path = argv[i] + 9;
		else
			return fail("unknown argument '%s'; want control=PATH,counters=PATH", argv[i]);
	}
	if (!control_path || !counters_path)
		return fail("want control=PATH,counters=PATH");
	if (!info->system_emulation || info->system.max_vcpus > METER_MAX_CPUS)
		return fail("want system emulation with at most %d CPUs", METER_MAX_CPUS);

	plugin = id;
	active.every = 1;
	trigger = qemu_plugin_scoreboard_u64(qemu_plugin_scoreboard_new(sizeof(uint64_t)));
	if (open_counters(counters_path) || open_control(control_path))
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
