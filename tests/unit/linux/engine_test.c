// SPDX-License-Identifier: GPL-2.0
/*
 * The engine with several nodes: which is worked on when, and what is told of it.
 * engine.c as it is; operations and xenstore are names in a list.
 */
#include "case.h"
#include "elastic.h"

static struct elastic_node nodes_of[3] = {
	{ .vnode = 1, .nid = 1 }, { .vnode = 2, .nid = 2 }, { .vnode = 3, .nid = 3 },
};
struct elastic_node *elastic_nodes = nodes_of;
unsigned int elastic_nr_nodes = 3;
struct task_struct the_engine, *at_work = &the_engine;
static int (*engine_thread)(void *data);
static struct xenbus_watch *the_watch;
static struct notifier_block *before_a_reboot;
static unsigned int events, seen, rounds, flushed;
static const char *failing;	/* what cannot be had as it starts */
static char began[200];
static bool known_to_op;	/* which has the thread */
static bool stopped, runs;
static u32 stranger;	/* a vnode that the toolstack does not know */
static u32 missing;	/* extents that an operation leaves out, and says nothing */
static u64 generation;
static u32 targets[3];
static int results[3];
static char list[2000];

static char said[1000];

void say(const char *format, ...)
{
	size_t used = strlen(said);
	va_list args;

	va_start(args, format);
	vsnprintf(said + used, sizeof(said) - used, format, args);
	va_end(args);
}
void fail(const char *format, ...) { exit(1); }

static void note(const char *format, ...)
{
	va_list args;

	CHECK(strlen(list) < sizeof(list) / 2, "without end: %.100s", list);
	va_start(args, format);
	vsnprintf(list + strlen(list), sizeof(list) - strlen(list), format, args);
	va_end(args);
}

/* A step of its start. */
static int begins(const char *what)
{
	snprintf(began + strlen(began), sizeof(began) - strlen(began), "%s ", what);
	return failing && !strcmp(failing, what) ? -EIO : 0;
}

static unsigned int index_of(const struct elastic_node *node)
{
	return node - nodes_of;
}

/* ---- What is below the engine ---- */

int elastic_node_operate(struct elastic_node *node)
{
	int rc = results[index_of(node)];

	note("operate %u; ", node->vnode);
	if (!rc) {
		node->nr_populated.counter = node->target - missing;
		node->state = node->target ? ELASTIC_ONLINE : ELASTIC_OFFLINE;
	}
	return rc;
}

bool elastic_node_settled(const struct elastic_node *node)
{
	return node->target == elastic_populated(node);
}

int elastic_node_error(struct elastic_node *node, int err, const char *format, ...)
{
	note("error %u; ", node->vnode);
	return err;
}

int elastic_store_requests(u64 *now)
{
	unsigned int i;

	note("read; ");
	for (i = 0; i < 3; i++)
		nodes_of[i].target = targets[i];
	*now = generation;
	return 0;
}

void elastic_store_ack(u64 now) { note("ack %llu; ", now); }
void elastic_store_report(const struct elastic_node *node) { note("report %u; ", node->vnode); }
void elastic_store_state(const struct elastic_node *node) { note("state %u; ", node->vnode); }
void elastic_store_done(u64 now) { note("done %llu", now); }
int elastic_store_node(struct elastic_node *node) { return node->vnode == stranger ? -ENOENT : 0; }
u64 elastic_store_left_behind(const struct elastic_node *node) { return 0; }
u32 elastic_reclaim(struct elastic_node *node, u32 had) { return 0; }
void elastic_store_hello(void) { note("hello"); }
void elastic_store_goodbye(void) { note("goodbye"); }
void elastic_watch_fires(void) { events++; }
unsigned int elastic_watch_events(void) { return events; }
void elastic_watch_is_seen(void) { seen = events; }
int elastic_mem_init(struct elastic_node *node) { return begins("memory"); }
int elastic_balloon_init(void) { return begins("balloon"); }
int elastic_evac_init(void) { return begins("evacuation"); }
int elastic_topo_init(void) { return begins("topology"); }
int elastic_pm_init(void) { return begins("suspend"); }
void elastic_cpu_init(void) { begins("CPUs"); }
void elastic_stats_init(void) { begins("statistics"); }
void elastic_op_init(struct task_struct *thread) { known_to_op = thread == &the_engine; }
void elastic_op_exit(void) { known_to_op = false; }
unsigned int memalloc_nofs_save(void) { return 0; }
void flush_signals(struct task_struct *task) { flushed++; }
void reboots(struct notifier_block *nb) { before_a_reboot = nb; }
bool kthread_should_stop(void)
{
	if (!rounds)
		return true;
	rounds--;
	return false;
}

void begins_to_run(struct task_struct *task)
{
	runs = task == &the_engine;
}

/* It has just come to where it sleeps. */
void kthread_stop(struct task_struct *task)
{
	rounds = 1;
	engine_thread(NULL);
	stopped = true;
}

struct task_struct *kthread_create(int (*thread)(void *), void *data, const char *name)
{
	engine_thread = thread;
	return begins("thread") ? ERR_PTR(-EIO) : &the_engine;
}

int register_xenbus_watch(struct xenbus_watch *watch)
{
	CHECK(known_to_op, "an event would be lost");
	the_watch = watch;
	return begins("watch");
}

void register_xenstore_notifier(struct notifier_block *nb)
{
	nb->notifier_call(nb, 0, NULL);
}

/* ---- Cases ---- */

static void command(u32 first, u32 second, u32 third)
{
	generation++;
	targets[0] = first;
	targets[1] = second;
	targets[2] = third;
	list[0] = '\0';
	the_watch->will_handle(the_watch, NULL, NULL);
	rounds = 1;
	engine_thread(NULL);
	CHECK(seen == events, "%u of %u events seen", seen, events);
	/* One that is left would wake it again and again. */
	CHECK(flushed, "signals are left");
	flushed = 0;
}

#define IS(expected)	CHECK(!strcmp(list, expected), "%s", list)

/* As after a reboot of a guest with nodes: each but the last is told of at once. */
static void several_nodes(const void *argument)
{
	elastic_initcall();
	command(5, 5, 0);
	IS("read; ack 1; operate 1; report 1; operate 2; done 1");
	command(5, 5, 5);
	IS("read; ack 2; operate 3; done 2");
	/* Growth first. */
	command(4, 6, 5);
	IS("read; ack 3; operate 2; report 2; operate 1; done 3");
}

/* What failed is told, and waits for somebody to ask again. */
static void one_fails(const void *argument)
{
	elastic_initcall();
	results[0] = -EBUSY;
	command(5, 5, 0);
	IS("read; ack 1; operate 1; report 1; operate 2; done 1");
	command(5, 5, 0);
	IS("read; ack 2; operate 1; done 2");
}

/* What says that it has done all, and has not. */
static void too_little(const void *argument)
{
	elastic_initcall();
	missing = 1;
	command(5, 0, 0);
	IS("read; ack 1; operate 1; error 1; done 1");
}

static void strangers(const void *argument)
{
	stranger = 2;
	elastic_initcall();
	command(5, 5, 5);
	IS("read; ack 1; operate 1; report 1; operate 3; done 1");
}

/* One that is to stop, or has got a signal by mistake, looks for no work. */
static void no_news(const void *argument)
{
	failing = "watch";
	generation = 7;
	targets[0] = 5;
	elastic_initcall();
	IS("hellogoodbye");
	CHECK(stopped && !known_to_op && !before_a_reboot, "something of it stays");
	failing = NULL;
	list[0] = '\0';
	elastic_initcall();
	rounds = 1;
	engine_thread(NULL);
	IS("hello");
}

/* What it cannot do without, and what it can. */
static void steps_of_a_start(const void *argument)
{
	static const struct { const char *failing, *began, *says; } cases[] = {
		{ NULL, "memory memory memory balloon evacuation topology suspend CPUs statistics thread watch ",
		  "vnode 3 is node 3" },
		{ "memory", "memory memory memory ", "xenstore offers none: idle" },
		{ "balloon", "memory memory memory balloon ", "cannot start: -5" },
		{ "evacuation", "memory memory memory balloon evacuation ", "cannot start: -5" },
		{ "topology", "memory memory memory balloon evacuation topology ", "cannot start: -5" },
		{ "suspend", "memory memory memory balloon evacuation topology suspend CPUs statistics thread watch ",
		  "a suspend will not be refused: -5" },
		{ "thread", "memory memory memory balloon evacuation topology suspend CPUs statistics thread ",
		  "cannot start: -5" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		failing = cases[i].failing;
		began[0] = list[0] = said[0] = '\0';
		runs = false;
		elastic_initcall();
		CHECK(!strcmp(began, cases[i].began), "%s: %s", failing, began);
		IS(strstr(began, "watch") ? "hello" : "");
		CHECK(known_to_op == !!strstr(began, "watch") && runs == known_to_op, "%s", began);
		CHECK(strstr(said, cases[i].says), "%s: '%s'", failing, said);
		CHECK(!strstr(said, "cannot start") == !strstr(cases[i].says, "cannot start") &&
		      !strstr(said, "suspend") == !strstr(cases[i].says, "suspend"), "%s: '%s'", failing, said);
		known_to_op = false;
	}
}

/* The next kernel has a driver, or has none. */
static void hello_and_goodbye(const void *argument)
{
	elastic_initcall();
	IS("hello");
	before_a_reboot->notifier_call(before_a_reboot, 0, NULL);
	IS("hellogoodbye");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "engine: several nodes", several_nodes },
		{ "engine: one node fails", one_fails },
		{ "engine: too little", too_little },
		{ "engine: a node of a stranger", strangers },
		{ "engine: no news", no_news },
		{ "engine: a start", steps_of_a_start },
		{ "engine: hello and goodbye", hello_and_goodbye },
	};

	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
