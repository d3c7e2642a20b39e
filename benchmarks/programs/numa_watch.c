/* SPDX-License-Identifier: GPL-2.0 */
/*
 * numa_watch: where the memory and the threads of a process are, over time.
 *
 * It reads the kernel's own account, from outside the process:
 *   memory   /proc/PID/numa_maps: pages on each node, times the page size
 *   threads  /proc/PID/task/TID/stat: state, and the CPU it was last on
 *   nodes    /sys/devices/system/node/online, .../nodeN/cpulist
 *
 * Output, one JSON object a line, flushed:
 *   {"t":..,"nodes":[0,1],"cpus":[4,..],"kib":[..],"threads":[..],"running":[..]}
 * t is CLOCK_REALTIME in seconds; each list but "nodes" has one entry a node
 * number, from 0 to the highest that was seen: CPUs online, resident KiB,
 * threads, and threads that were running or runnable.
 *
 * It ends when the process ends, on SIGTERM, or after --samples.
 * Exit status: 0, or 2 for bad arguments or no such process.
 *
 * Locking: none, one thread.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_NODES	64
#define MAX_CPUS	4096
#define MIN_PERIOD_MS	10
#define MAX_PERIOD_MS	60000
#define LINE_BYTES	65536	/* a line of numa_maps: path and one item a node */

struct sample {
	bool online[MAX_NODES];
	unsigned long cpus[MAX_NODES];
	unsigned long kib[MAX_NODES];
	unsigned long threads[MAX_NODES];
	unsigned long running[MAX_NODES];
	int nodes;			/* highest node number seen, plus one */
};

static signed char cpu_node[MAX_CPUS];	/* -1: not online, or not known */
static volatile sig_atomic_t stop;
static char line[LINE_BYTES];

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void saw_node(struct sample *s, long node)
{
	if (node >= s->nodes)
		s->nodes = node + 1;
}

/*
 * Calls fn(n, arg) for each number of a kernel list such as "0-3,6".  Numbers
 * of max and above are left out.
 */
static void for_each_in_list(const char *list, long max,
			     void (*fn)(long n, void *arg), void *arg)
{
	const char *p = list;
	char *end;

	while (*p >= '0' && *p <= '9') {
		long low = strtol(p, &end, 10), high = low;

		if (*end == '-')
			high = strtol(end + 1, &end, 10);
		for (long n = low; n <= high && n < max; n++)
			fn(n, arg);
		p = *end == ',' ? end + 1 : end;
	}
}

static bool read_line(const char *path)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(line, sizeof(line), f) != NULL;
	fclose(f);
	return ok;
}

struct cpu_arg {
	struct sample *s;
	long node;
};

static void add_cpu(long cpu, void *arg)
{
	struct cpu_arg *a = arg;

	cpu_node[cpu] = a->node;
	a->s->cpus[a->node]++;
}

static void add_node(long node, void *arg)
{
	struct sample *s = arg;

	s->online[node] = true;
	saw_node(s, node);
}

static void read_nodes(struct sample *s)
{
	char path[64];

	memset(cpu_node, -1, sizeof(cpu_node));
	if (!read_line("/sys/devices/system/node/online"))
		return;
	for_each_in_list(line, MAX_NODES, add_node, s);
	for (long n = 0; n < s->nodes; n++) {
		struct cpu_arg arg = { s, n };

		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%ld/cpulist", n);
		if (s->online[n] && read_line(path))
			for_each_in_list(line, MAX_CPUS, add_cpu, &arg);
	}
}

/* Adds the "N<node>=<pages>" items of one line of numa_maps. */
static void add_mapping(struct sample *s, char *text)
{
	unsigned long pages[MAX_NODES] = { 0 }, page_kib = 4;
	char *save;

	for (char *word = strtok_r(text, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save)) {
		unsigned long node, count;

		if (sscanf(word, "N%lu=%lu", &node, &count) == 2) {
			if (node < MAX_NODES)
				pages[node] += count;
		} else {
			sscanf(word, "kernelpagesize_kB=%lu", &page_kib);
		}
	}
	for (long n = 0; n < MAX_NODES; n++) {
		if (!pages[n])
			continue;
		s->kib[n] += pages[n] * page_kib;
		saw_node(s, n);
	}
}

static bool read_memory(struct sample *s, int pid)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/numa_maps", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		add_mapping(s, line);
	fclose(f);
	return true;
}

/* Field 3 (state) and field 39 (processor) of stat, counted after the name. */
static void add_thread(struct sample *s, const char *path)
{
	char *p, *save, *word, state = 0;
	long cpu = -1;
	int field = 3;

	if (!read_line(path) || !(p = strrchr(line, ')')))
		return;
	for (word = strtok_r(p + 1, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save), field++) {
		if (field == 3)
			state = *word;
		if (field == 39)
			cpu = strtol(word, NULL, 10);
	}
	if (cpu < 0 || cpu >= MAX_CPUS || cpu_node[cpu] < 0)
		return;
	s->threads[(int)cpu_node[cpu]]++;
	s->running[(int)cpu_node[cpu]] += state == 'R';
}

static bool read_threads(struct sample *s, int pid)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid,
			 entry->d_name);
		add_thread(s, path);
	}
	closedir(dir);
	return true;
}

static void print_list(const char *name, const unsigned long *value, int n)
{
	printf(",\"%s\":[", name);
	for (int i = 0; i < n; i++)
		printf("%s%lu", i ? "," : "", value[i]);
	printf("]");
}

static void print_sample(const struct sample *s)
{
	struct timespec ts;
	const char *comma = "";

	clock_gettime(CLOCK_REALTIME, &ts);
	printf("{\"t\":%lld.%03ld,\"nodes\":[", (long long)ts.tv_sec,
	       ts.tv_nsec / 1000000);
	for (int n = 0; n < s->nodes; n++) {
		if (!s->online[n])
			continue;
		printf("%s%d", comma, n);
		comma = ",";
	}
	printf("]");
	print_list("cpus", s->cpus, s->nodes);
	print_list("kib", s->kib, s->nodes);
	print_list("threads", s->threads, s->nodes);
	print_list("running", s->running, s->nodes);
	printf("}\n");
	fflush(stdout);
}

static void usage(void)
{
	fprintf(stderr,
		"Usage: numa_watch PID PERIOD_MS [SAMPLES]\n"
		"Print the memory and threads of a process on each NUMA node.\n"
		"  PERIOD_MS  time between samples, %d to %d\n"
		"  SAMPLES    how many; 0 or absent: until the process ends\n",
		MIN_PERIOD_MS, MAX_PERIOD_MS);
	exit(2);
}

static long number(const char *text, long low, long high)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < low || n > high)
		usage();
	return n;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	long pid, period, samples, taken = 0;
	struct timespec pause;

	if (argc < 3 || argc > 4)
		usage();
	pid = number(argv[1], 1, INT_MAX);
	period = number(argv[2], MIN_PERIOD_MS, MAX_PERIOD_MS);
	samples = argc == 4 ? number(argv[3], 0, LONG_MAX) : 0;
	pause.tv_sec = period / 1000;
	pause.tv_nsec = period % 1000 * 1000000;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);

	while (!stop) {
		struct sample s = { .nodes = 0 };

		read_nodes(&s);
		if (!read_memory(&s, pid) || !read_threads(&s, pid))
			break;
		print_sample(&s);
		if (++taken == samples)
			return 0;
		nanosleep(&pause, NULL);
	}
	if (taken == 0) {
		fprintf(stderr, "numa_watch: cannot read /proc/%ld: %s\n", pid,
			strerror(errno));
		return 2;
	}
	return 0;
}
