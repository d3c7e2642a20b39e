// SPDX-License-Identifier: GPL-2.0
/*
 * vCPUs that run on several hosts: engines with a played hypervisor each, joined
 * by channels that keep the order of each pair.  What is sent comes once and in
 * its order, or put together; calls come back, whatever pages they need; what a
 * peer must not say fails the VM and names the peer.
 */
#include <errno.h>
#include <string.h>

#include "vcpu_rig.h"

static void events(const void *argument)
{
	const struct dsm_vcpu_msg *m;

	(void)argument;
	begin();
	says(0, event(1, DSM_EVENT_INIT, 0));
	says(0, event(1, DSM_EVENT_SIPI, 0x9a));
	says(0, event(1, DSM_EVENT_NMI, 0));
	says(0, event(1, 0, 0xfd));
	says(0, event(2, 0, 0x20));
	settle();
	CHECK(node[1].xen.nr_log == 4 && node[2].xen.nr_log == 1 && !node[0].xen.nr_log, "where");
	CHECK(logged(1, 0, DSM_VCPU_EVENT)->flags == DSM_EVENT_INIT, "INIT");
	m = logged(1, 1, DSM_VCPU_EVENT);
	CHECK(m->flags == DSM_EVENT_SIPI && m->sipi == 0x9a && m->vcpu == 1, "SIPI");
	CHECK(logged(1, 2, DSM_VCPU_EVENT)->flags == DSM_EVENT_NMI, "NMI");
	m = logged(1, 3, DSM_VCPU_EVENT);
	CHECK(!m->flags && m->word[3] == 1ull << 61 && !m->word[0], "a vector");
	CHECK(logged(2, 0, DSM_VCPU_EVENT)->vcpu == 2, "another host");
	/* And to the first one, from both. */
	says(1, event(0, 0, 0x30));
	says(2, event(0, 0, 0x31));
	settle();
	CHECK(node[0].xen.nr_log == 2, "%u", node[0].xen.nr_log);
	end();
}

/* What the link is too slow for is put together, and comes when there is room. */
static void slow_link(const void *argument)
{
	struct dsm_engine_counts counts;
	const struct dsm_vcpu_msg *m;

	(void)argument;
	begin();
	credits = 0;
	says(0, event(1, 0, 0x20));
	says(0, event(1, DSM_EVENT_NMI, 0));
	says(0, event(1, 0, 0x80));
	says(0, event(2, 0, 0x40));
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 1 } });
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 4, 8 } });
	CHECK(!in_channel[0][1] && !in_channel[0][2], "without a credit");
	CHECK(!dsm_engine_is_quiet(node[0].engine), "it waits");
	dsm_engine_get_counts(node[0].engine, &counts);
	CHECK(counts.vcpu_events == 4 && counts.vcpu_ports == 2 && counts.vcpu_merged == 3, "%llu merged",
	      (unsigned long long)counts.vcpu_merged);
	credits = 1;
	dsm_engine_room(node[0].engine, 1);
	CHECK(in_channel[0][1] == 1 && in_channel[0][2] == 1, "one each");
	settle();
	m = logged(1, 0, DSM_VCPU_EVENT);
	CHECK(m->flags == DSM_EVENT_NMI && m->word[0] == 1ull << 0x20 && m->word[2] == 1, "all of it");
	m = logged(1, 1, DSM_VCPU_PORTS);
	CHECK(m->number == 1024 && m->word[0] == 5 && m->word[1] == 8, "or-ed");
	CHECK(node[1].xen.nr_log == 2 && node[2].xen.nr_log == 1, "and no more");
	CHECK(dsm_engine_is_quiet(node[0].engine), "all is sent");

	/* INIT makes void what was not sent yet; what comes later is new. */
	credits = 0;
	says(0, event(1, 0, 0x20));
	says(0, event(1, DSM_EVENT_INIT, 0));
	says(0, event(1, DSM_EVENT_SIPI, 7));
	says(0, event(1, DSM_EVENT_SIPI, 8));
	credits = 1;
	settle();
	m = logged(1, 2, DSM_VCPU_EVENT);
	CHECK(m->flags == (DSM_EVENT_INIT | DSM_EVENT_SIPI) && m->sipi == 7 && !m->word[0], "INIT");
	says(0, event(1, 0, 0x21));
	settle();
	m = logged(1, 3, DSM_VCPU_EVENT);
	CHECK(!m->flags && m->word[0] == 1ull << 0x21, "what was sent is not sent again");
	end();
}

static void hypercall_takes(void)
{
	clock_ns += 7 * US;
}

static void took(unsigned int host, const char *what, uint64_t out, uint64_t out_us, uint64_t in, uint64_t in_us)
{
	struct dsm_engine_counts counts;

	dsm_engine_get_counts(node[host].engine, &counts);
	CHECK(counts.ipi_out.count == out && counts.ipi_out.sum == out_us * US, "%s: %llu out, in %llu ns", what,
	      (unsigned long long)counts.ipi_out.count, (unsigned long long)counts.ipi_out.sum);
	CHECK(counts.ipi_in.count == in && counts.ipi_in.sum == in_us * US, "%s: %llu in, in %llu ns", what,
	      (unsigned long long)counts.ipi_in.count, (unsigned long long)counts.ipi_in.sum);
}

/* From the ring until it is sent, and from where it is read until Xen has it; and of nothing else. */
static void time_of_an_interrupt(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin();
	settle();
	node[1].xen.on_send = hypercall_takes;
	send_ns = 2 * US;
	/* Two events that are put together, and two of ports, wait for credits. */
	credits = 0;
	says(0, event(1, 0, 0x20));
	clock_ns += 3 * US;
	says(0, event(1, 0, 0x30));
	clock_ns += 10 * US;
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 1 } });
	clock_ns += 20 * US;
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 2 } });
	clock_ns += 40 * US;
	took(0, "without credits", 0, 0, 0, 0);
	credits = 16;
	dsm_engine_room(node[0].engine, 1);
	look(0);
	/* 3 + 10 + 20 + 40, and 20 + 40; the second one is behind the first. */
	took(0, "sent", 2, 73 + 2 + 60 + 4, 0, 0);
	clock_ns += 1000 * US;
	CHECK(deliver(0, 1), "an event");
	took(1, "an event", 0, 0, 1, 7);
	look(1);
	clock_ns += 1000 * US;
	CHECK(deliver(0, 1) && !deliver(0, 1), "ports");
	took(1, "ports", 0, 0, 2, 14);
	took(0, "none came back", 2, 139, 0, 0);
	took(2, "another host", 0, 0, 0, 0);
	/* Neither a call nor its answer, nor what all is halted. */
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	settle();
	active(2, false, 0);
	settle();
	took(0, "a call", 2, 139, 0, 0);
	took(1, "its answer", 0, 0, 2, 14);
	/* The next one in a letter that has gone is new. */
	says(1, event(0, 0, 0x20));
	clock_ns += 1000 * US;
	settle();
	took(1, "the first one back", 1, 2, 2, 14);
	clock_ns += 1000 * US;
	says(1, event(0, 0, 0x20));
	settle();
	took(1, "the second one", 2, 4, 2, 14);
	took(0, "both are here", 2, 139, 2, 0);
	/* What waits for the first start does not count, what is said later does. */
	dsm_engine_hold_vcpus(node[0].engine, true);
	says(0, event(1, 0, 0x20));
	clock_ns += 1000 * US;
	look(0);
	CHECK(!in_channel[0][1], "it waits");
	dsm_engine_hold_vcpus(node[0].engine, false);
	look(0);
	CHECK(in_channel[0][1] == 1, "it goes");
	took(0, "after the start", 2, 139, 2, 0);
	says(0, event(1, 0, 0x20));
	took(0, "later", 3, 141, 2, 0);
	settle();
	/* It is said again that nothing waits for the start: what waits for a credit counts. */
	credits = 0;
	says(0, event(1, 0, 0x20));
	clock_ns += 5 * US;
	dsm_engine_hold_vcpus(node[0].engine, false);
	credits = 16;
	dsm_engine_room(node[0].engine, 1);
	look(0);
	took(0, "a credit", 4, 141 + 5 + 2, 2, 0);
	settle();
	/* As do the next ones in a letter that has gone, to another host, and what starts a vCPU. */
	clock_ns += 1000 * US;
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 1 } });
	says(0, event(2, DSM_EVENT_INIT | DSM_EVENT_SIPI, 9));
	took(0, "ports and SIPI", 6, 148 + 2 + 2, 2, 0);
	settle();
	took(2, "SIPI", 0, 0, 1, 0);
	/* Three that are read in one turn, with other work before each: none of their time. */
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 1 } });
	says(0, event(1, 0, 0x20));
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1280, .word = { 1 } });
	for (i = 0; i < 3; i++) {
		clock_ns += 1000 * US;
		CHECK(deliver(0, 1), "message %u", i);
	}
	took(1, "all three", 2, 4, 9, 63);
	settle();
	/* What is refused was no interrupt. */
	took(1, "before", 2, 4, 9, 63);
	lie(0, 1, event(2, 0, 0x20), "EVENT of vCPU 2");
	took(1, "a lie", 2, 4, 9, 63);
	send_ns = 0;
	end();
	begin();
	lie(0, 1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .word = { 1 } }, "no event channel that is there");
	took(1, "ports of another host", 0, 0, 0, 0);
	end();
}

/* One credit at a time, two vCPUs that always miss a page, and one that sends without end. */
static void busy_link(const void *argument)
{
	unsigned int next[VCPUS] = { 10, 0, 0, 15 }, sent = 0, before = 0, v;

	(void)argument;
	begin();
	credits = 1;
	while (next[0] < 15 && next[3] < 20) {
		for (v = 0; v < VCPUS; v += 3)
			if (!node[0].xen.vcpu[v].waits && next[v] < 15 + v / 3 * 5)
				played_use(&node[0].xen, v, next[v]++, DSM_XEN_WANT_M, 1);
		says(0, event(1, 0, 0x20 + sent++));
		CHECK(sent < 100, "the misses wait for ever");
		/* From here on one of the two always waits for a credit. */
		if (sent == 5)
			before = node[1].xen.nr_log;
		deliver(0, 1);
		look(1);
		deliver(1, 0);
		look(0);
	}
	CHECK(node[1].xen.nr_log > before + 2, "%u letters", node[1].xen.nr_log - before);
	settle();
	end();
}

/*
 * A host that asks for pages as fast as it gets them has all the credits: letters and requests
 * to it go all the same, one of each for eight answers.
 */
static void full_of_answers(const void *argument)
{
	struct dsm_msg msg = { .type = DSM_GETS, .epoch = 7 };
	unsigned int i;

	(void)argument;
	begin();
	credits = 1;
	/* The only credit is gone before, and nothing of this is read meanwhile. */
	says(0, event(1, 0, 0x20));
	look(0);
	CHECK(in_channel[0][1] == 1, "a first letter");
	says(0, event(1, 0, 0x21));
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 1 } });
	CHECK(played_use(&node[0].xen, 0, 15, DSM_XEN_WANT_M, 1) == PLAYED_MISS, "a page of host 1");
	look(0);
	CHECK(in_channel[0][1] == 1, "all of it waits");
	for (i = 0; i < 10; i++) {
		msg.gfn = i;
		dsm_engine_message(node[0].engine, 1, &msg, NULL);
		look(0);
		/* With the eighth goes one of each; the second letter would need eight more. */
		CHECK(in_channel[0][1] == (i < 7 ? 2 + i : 4 + i), "%u messages after %u answers",
		      in_channel[0][1], i + 1);
	}
	CHECK(!node[0].failure[0], "%s", node[0].failure);
	end();
}

/* Each host's ports, from each other one, whichever of them is the home. */
static void ports(const void *argument)
{
	unsigned int first, to, from, of_vm;

	(void)argument;
	dice_begin();
	for (of_vm = 0; of_vm < HOSTS; of_vm++) {
		begin_at(of_vm);
		for (first = 0; first < 3072; first += 256) {
			to = dsm_slice_number(home, first / 1024);
			for (from = 0; from < HOSTS; from++) {
				unsigned int had = node[to].xen.nr_log;
				const struct dsm_vcpu_msg *last;

				if (to == from)
					continue;
				says(from, (struct dsm_vcpu_msg){
					.type = DSM_VCPU_PORTS, .host = (uint8_t)to,
					.number = first, .word = { 0, 0, from, 1ull << 63 } });
				settle();
				last = &node[to].xen.log[node[to].xen.nr_log - 1];
				CHECK(node[to].xen.nr_log == had + 1, "once to %u", to);
				CHECK(last->number == first && last->word[2] == from,
				      "port %u", first);
			}
		}
		CHECK(!node[home].failure[0], "%s", node[home].failure);
		end();
	}
}

static void calls_and_replies(const void *argument)
{
	const struct dsm_vcpu_msg *m;

	(void)argument;
	begin();
	node[0].xen.info_gfn = 3;
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	CHECK(node[0].xen.asks[0].type, "it waits");
	CHECK(!dsm_engine_is_quiet(node[0].engine), "not quiet");
	settle();
	m = logged(1, 0, DSM_VCPU_CALL);
	CHECK(m->op == 32 && m->cmd == 7 && m->about == 1, "the call");
	CHECK(node[1].xen.info_gfn == 3, "shared_info first");
	m = logged(0, 0, DSM_VCPU_REPLY);
	CHECK(!m->rc && m->word[0] == (1ull | 1025ull << 32) && m->vcpu == 0, "%llx",
	      (unsigned long long)m->word[0]);
	CHECK(!node[0].xen.asks[0].type && dsm_engine_is_quiet(node[0].engine) &&
	      dsm_engine_is_quiet(node[1].engine), "done");
	/* The next one; the guest has moved its shared_info, which nobody minds. */
	node[0].xen.info_gfn = 4;
	says(0, a_call(0, 1, UNMASK, 0, 1025));
	settle();
	CHECK(node[0].xen.nr_log == 2 && node[1].xen.info_gfn == 3 && node[1].xen.info_calls == 1, "again");
	/* From the others, to the home and among them. */
	says(1, a_call(1, 0, BIND_IPI, 0, 0));
	says(2, a_call(2, 1, BIND_IPI, 1, 1));
	settle();
	CHECK(!node[1].xen.asks[1].type && !node[2].xen.asks[2].type, "all are back");
	CHECK(!node[2].xen.info_gfn, "only the home says where it is");
	end();
	/* Where the home has no memory, or another host has: the guest's mistake, and no host's. */
	for (unsigned int gfn = 12; gfn <= 1000; gfn += 988) {
		begin();
		node[0].xen.info_gfn = gfn;
		says(0, a_call(0, 1, BIND_IPI, 1, 1));
		settle();
		CHECK(!node[0].failure[0] && !node[1].failure[0], "gfn %u: %s", gfn, node[1].failure);
		CHECK(!node[0].xen.asks[0].type && !node[1].xen.info_gfn, "gfn %u", gfn);
		end();
	}
}

/* Its page has to come first; whoever waits for it does not stop others. */
static void call_that_needs_a_page(const void *argument)
{
	struct dsm_engine_counts counts;

	(void)argument;
	/* There is no memory, which Xen knows for a moment only. */
	begin();
	CHECK(played_guest_frees(&node[0].xen, 5), "a hole");
	says(0, a_call(0, 1, REGISTER, 1, 5));
	settle();
	CHECK(!node[0].xen.asks[0].type && logged(0, 0, DSM_VCPU_REPLY)->rc == -EINVAL, "and no time has passed");
	end();

	begin();
	says(0, a_call(0, 1, REGISTER, 1, 5));
	settle();
	CHECK(node[1].xen.page[5].state == DSM_XEN_STATE_M && node[1].xen.page[5].pinned,
	      "it came, in state %u", node[1].xen.page[5].state);
	CHECK(logged(0, 0, DSM_VCPU_REPLY)->rc == 0, "and no time has passed");
	dsm_engine_get_counts(node[1].engine, &counts);
	CHECK(counts.vcpu_calls_done == 1 && counts.vcpu_calls_again == 1, "%llu tries in vain",
	      (unsigned long long)counts.vcpu_calls_again);

	/* Xen had no room to say which page: it is asked again after a while. */
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	settle();
	CHECK(node[0].xen.asks[0].type && dsm_engine_next(node[1].engine) <= clock_ns + MS, "later");
	CHECK(!dsm_engine_is_quiet(node[1].engine), "not quiet");
	/* And again. */
	clock_ns += MS;
	dsm_engine_tick(node[1].engine);
	settle();
	CHECK(node[0].xen.asks[0].type && dsm_engine_next(node[1].engine) == clock_ns + 2 * MS, "once more");
	node[1].xen.no_foreign = false;
	clock_ns += 2 * MS;
	dsm_engine_tick(node[1].engine);
	settle();
	CHECK(!node[0].xen.asks[0].type, "it is done");
	clock_ns += 100 * MS;
	CHECK(dsm_engine_next(node[1].engine) > clock_ns, "and nobody looks any more");

	/* The frame of shared_info is here still: a moment later it is not. */
	node[0].xen.info_gfn = 7;
	node[2].xen.page[7].state = DSM_XEN_STATE_S;
	says(0, a_call(0, 2, BIND_IPI, 2, 2));
	settle();
	CHECK(node[0].xen.asks[0].type && !node[2].xen.call_tries, "not before");
	node[2].xen.page[7].state = DSM_XEN_STATE_I;
	clock_ns += MS;
	dsm_engine_tick(node[2].engine);
	settle();
	CHECK(!node[0].xen.asks[0].type && node[2].xen.info_gfn == 7, "it is done");
	end();
}

/* Of an access that can't succeed Xen says so each time: it is tried less and less often, and said. */
/* Credits come back, letters and misses wait for them: each has half. */
static void half_of_the_credits(const void *argument)
{
	unsigned int i, letters = 0, requests = 0;

	(void)argument;
	begin();
	settle();
	credits = 0;
	says(0, event(1, 0, 0x40));
	for (i = 0; i < 4; i++)
		says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024 + 256 * i, .word = { 1 } });
	played_use(&node[0].xen, 0, 15, DSM_XEN_WANT_M, 1);
	played_use(&node[0].xen, 3, 16, DSM_XEN_WANT_M, 1);
	look(0);
	CHECK(!next_type(0, 1), "all wait");
	credits = 4;
	dsm_engine_room(node[0].engine, 1);
	look(0);
	CHECK(in_channel[0][1] == 4, "%u have gone", in_channel[0][1]);
	for (i = 0; i < 4; i++) {
		letters += dsm_type_is_vcpu(next_type(0, 1));
		requests += next_type(0, 1) == DSM_GETM;
		credits = 0;
		deliver(0, 1);
	}
	CHECK(letters == 2 && requests == 2, "%u letters, %u requests", letters, requests);
	credits = 16;
	settle();
	end();
}

/*
 * A tool looks at a page that can't leave its home, beside a call: one that needs that page
 * must not find a hole where there is memory, whoever asked first; any other is no matter.
 */
static void call_and_a_tool(const void *argument)
{
	static const struct {
		unsigned int tool;	/* 0: none; 1: it has asked before, to read; 2: to write; 3: it asks later */
		uint64_t gfn;		/* that the call needs; or only the same number */
		bool ends, other;
	} played[] = {
		{ 0, 6, true, false }, { 1, 6, true, false }, { 2, 6, true, false }, { 3, 6, true, false },
		{ 1, 5, false, false }, { 2, 5, false, false }, { 3, 5, false, false },
		{ 1, 6, false, true }, { 3, 6, false, true },
	};
	unsigned int k, i;

	(void)argument;
	for (k = 0; k < NR(played); k++) {
		unsigned int want = played[k].tool == 2 ? DSM_XEN_WANT_M : DSM_XEN_WANT_S;

		begin();
		settle();
		node[0].xen.page[6].special = true;
		/* So that the call is tried on and on. */
		node[0].xen.page[5].pinned = true;
		if (played[k].other) {
			node[0].xen.info_gfn = 7;
			node[1].xen.page[7].state = DSM_XEN_STATE_S;
		}
		if (played[k].tool == 1 || played[k].tool == 2) {
			CHECK(played_use(&node[1].xen, NO_VCPU, 6, want, 0) == PLAYED_MISS, "%u: look", k);
			look(1);
			/* Xen has told that somebody writes. */
			node[1].xen.no_foreign = played[k].tool == 2;
		}
		says(0, played[k].other ? a_call(0, 1, BIND_IPI, 1, played[k].gfn) : a_call(0, 1, REGISTER, 1, played[k].gfn));
		look(0);
		deliver(0, 1);
		if (played[k].tool == 3) {
			settle();
			played_use(&node[1].xen, NO_VCPU, 6, want, 0);
		}
		for (i = 0; i < 20 && !node[1].failure[0]; i++) {
			settle();
			pass(MS / 10);
		}
		if (played[k].ends)
			CHECK(strstr(node[1].failure, "gfn 0x6 is needed here, and it can't leave alpha"), "%u: '%s'", k,
			      node[1].failure);
		else
			CHECK(!node[1].failure[0] && node[1].xen.page[6].foreign_hole && node[0].xen.asks[0].type,
			      "%u: '%s'", k, node[1].failure);
		end();
	}
}

/* The call joins what the tool has asked for once, however often it is tried; and not for ever. */
static void call_and_a_tool_at_a_hole(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin();
	settle();
	CHECK(played_guest_frees(&node[0].xen, 6), "a hole");
	CHECK(played_use(&node[1].xen, NO_VCPU, 6, DSM_XEN_WANT_M, 0) == PLAYED_MISS, "look");
	look(1);
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	look(0);
	deliver(0, 1);
	for (i = 0; i < 2; i++) {
		CHECK(in_channel[1][0] == 1 && next_type(1, 0) == DSM_GETM, "answer %u", i);
		deliver(1, 0);
		look(0);
		clock_ns += 100 * MS;
		dsm_engine_tick(node[1].engine);
		CHECK(node[1].xen.call_tries == i + 2, "%u tries", node[1].xen.call_tries);
		deliver(0, 1);
		look(1);
	}
	CHECK(next_type(1, 0) == DSM_VCPU_REPLY, "and that is all");
	settle();
	CHECK(!node[0].xen.asks[0].type && logged(0, 0, DSM_VCPU_REPLY)->rc == -EINVAL, "it finds none");
	/* That is over, and what another call waits for is another page. */
	node[1].xen.no_foreign = false;
	CHECK(played_guest_populates(&node[0].xen, 6), "room");
	node[0].xen.page[6].special = true;
	node[0].xen.page[5].pinned = true;
	says(2, a_call(2, 1, REGISTER, 1, 5));
	settle();
	CHECK(played_use(&node[1].xen, NO_VCPU, 6, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "look");
	for (i = 0; i < 20; i++) {
		settle();
		pass(MS / 10);
	}
	CHECK(!node[1].failure[0] && node[1].xen.page[6].foreign_hole, "a tool: %s", node[1].failure);
	end();
}

/* The tool's question waits for a write-back when the call comes, or has just gone. */
static void call_and_a_tool_at_a_writeback(const void *argument)
{
	unsigned int k, late;

	(void)argument;
	for (late = 0; late < 2; late++) {
		begin();
		settle();
		CHECK(played_use(&node[1].xen, 1, 6, DSM_XEN_WANT_M, 1) == PLAYED_MISS, "wants it");
		settle();
		CHECK(node[1].xen.page[6].state == DSM_XEN_STATE_M, "has it");
		CHECK(!dsm_engine_evacuate(node[1].engine, 6, 7), "give it up");
		look(1);
		CHECK(next_type(1, 0) == DSM_PUTM, "%s", dsm_type_name(next_type(1, 0)));
		CHECK(played_use(&node[1].xen, NO_VCPU, 6, DSM_XEN_WANT_M, 0) == PLAYED_MISS, "look");
		look(1);
		/* Xen has told that somebody writes. */
		node[1].xen.no_foreign = true;
		if (late) {
			deliver(1, 0);
			look(0);
			deliver(0, 1);	/* PUT_ACK: now it is asked for */
			CHECK(next_type(1, 0) == DSM_GETM, "asked");
		}
		says(0, a_call(0, 1, REGISTER, 1, 6));
		look(0);
		deliver(0, 1);
		node[0].xen.page[6].special = true;
		for (k = 0; k < 6; k++) {
			settle();
			pass(0);
		}
		CHECK(strstr(node[1].failure, "gfn 0x6 is needed here"), "%u: '%s'", late, node[1].failure);
		end();
	}
}

/* A copy at node 1, which the home calls back, as it writes: INV is on its way, and so is a tool's GETM. */
static void tool_asks_for_what_is_called_back(void)
{
	begin();
	settle();
	played_use(&node[1].xen, 1, 6, DSM_XEN_WANT_S, 1);
	settle();
	CHECK(node[1].xen.page[6].state == DSM_XEN_STATE_S, "a copy");
	/* The home writes, and INV is on its way. */
	CHECK(played_use(&node[0].xen, 0, 6, DSM_XEN_WANT_M, 1) == PLAYED_MISS, "the home writes");
	look(0);
	CHECK(next_type(0, 1) == DSM_INV, "INV");
	CHECK(played_use(&node[1].xen, NO_VCPU, 6, DSM_XEN_WANT_M, 0) == PLAYED_MISS, "look");
	look(1);
	CHECK(next_type(1, 0) == DSM_GETM, "asked");
	node[1].xen.no_foreign = true;
}

/* An operation of that page is due when the call comes, or was. */
static void call_and_a_tool_at_an_operation(const void *argument)
{
	unsigned int k, due;

	(void)argument;
	for (due = 0; due < 2; due++) {
		tool_asks_for_what_is_called_back();
		if (!due) {
			/* The call comes first. */
			deliver(0, 1);
			look(1);
		}
		says(0, a_call(3, 1, REGISTER, 1, 6));
		look(0);
		if (due)
			deliver(0, 1);
		deliver(0, 1);
		node[0].xen.page[6].special = true;
		for (k = 0; k < 6; k++) {
			settle();
			pass(0);
		}
		CHECK(strstr(node[1].failure, "gfn 0x6 is needed here"), "%u: '%s'", due, node[1].failure);
		end();
	}
}

/* There is a copy still when the call comes; a tool alone ends nothing. */
static void call_and_a_tool_at_a_copy(const void *argument)
{
	unsigned int k, calls;

	(void)argument;
	for (calls = 0; calls < 2; calls++) {
		tool_asks_for_what_is_called_back();
		if (calls) {
			says(2, a_call(2, 1, REGISTER, 1, 6));
			CHECK(next_type(2, 1) == DSM_VCPU_CALL, "CALL");
			deliver(2, 1);
		}
		node[0].xen.page[6].special = true;
		for (k = 0; k < 6; k++) {
			settle();
			pass(0);
		}
		if (calls)
			CHECK(strstr(node[1].failure, "gfn 0x6 is needed here"), "'%s'", node[1].failure);
		else
			CHECK(!node[1].failure[0] && node[1].xen.page[6].foreign_hole, "a tool alone");
		end();
	}
}

/* A call that found the hole which a tool had been told of waits for nothing: the tool's next look is its own. */
static void call_that_is_done_and_a_tool(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin();
	settle();
	node[0].xen.page[6].special = true;
	CHECK(played_use(&node[1].xen, NO_VCPU, 6, DSM_XEN_WANT_M, 0) == PLAYED_MISS, "look");
	look(1);
	CHECK(next_type(1, 0) == DSM_GETM, "asked");
	node[1].xen.page[6].foreign_hole = true;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	look(0);
	deliver(0, 1);
	for (i = 0; i < 6; i++) {
		settle();
		pass(0);
	}
	CHECK(!node[0].xen.asks[0].type && logged(0, 0, DSM_VCPU_REPLY)->rc == -EINVAL, "done");
	CHECK(!node[1].failure[0] && node[1].xen.page[6].foreign_hole, "told: %s", node[1].failure);
	end();
}

/* The home is slow, and Xen reports the call's miss again and again: two answers are enough. */
static void call_that_misses_again(const void *argument)
{
	unsigned int i, k;

	(void)argument;
	begin();
	settle();
	CHECK(played_guest_frees(&node[0].xen, 6), "a hole");
	says(0, a_call(0, 1, REGISTER, 1, 6));
	look(0);
	deliver(0, 1);
	look(1);
	for (i = 0; i < 3 && node[0].xen.asks[0].type; i++) {
		CHECK(i < 2 && in_channel[1][0] == 1 && next_type(1, 0) == DSM_GETM, "answer %u", i);
		for (k = 0; k < 4; k++) {
			clock_ns += 100 * MS;
			dsm_engine_tick(node[1].engine);
			look(1);
		}
		deliver(1, 0);
		look(0);
		deliver(0, 1);
		look(1);
		if (next_type(1, 0) == DSM_VCPU_REPLY)
			break;
	}
	settle();
	CHECK(!node[0].xen.asks[0].type && logged(0, 0, DSM_VCPU_REPLY)->rc == -EINVAL, "it finds none");
	end();
}

/* A tool reads what a call waits for, which Xen had no room to say. */
static void call_and_a_tool_that_reads(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin();
	settle();
	node[0].xen.page[6].special = true;
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	look(0);
	deliver(0, 1);
	CHECK(played_use(&node[1].xen, NO_VCPU, 6, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "look");
	look(1);
	for (i = 0; i < 4; i++) {
		settle();
		pass(0);
	}
	CHECK(strstr(node[1].failure, "gfn 0x6 is needed here"), "'%s'", node[1].failure);
	end();
}

/* The last vCPU's call needs the frame. */
static void last_vcpus_call_and_a_tool(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin();
	settle();
	node[0].xen.page[6].special = true;
	node[1].xen.no_foreign = true;
	says(0, a_call(3, 1, REGISTER, 1, 6));
	look(0);
	deliver(0, 1);
	CHECK(played_use(&node[1].xen, NO_VCPU, 6, DSM_XEN_WANT_M, 0) == PLAYED_MISS, "look");
	look(1);
	for (i = 0; i < 4; i++) {
		settle();
		pass(0);
	}
	CHECK(strstr(node[1].failure, "gfn 0x6 is needed here"), "'%s'", node[1].failure);
	end();
}

/* Each call has its own time, which begins anew with the next one. */
static void tries_of_two_calls(const void *argument)
{
	unsigned int i, tries;

	(void)argument;
	begin();
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	settle();
	/* A page that somebody else has missed has come: that is no reason to wait for longer. */
	node[1].xen.no_foreign = false;
	says(2, a_call(2, 1, REGISTER, 1, 5));
	deliver(2, 1);
	node[1].xen.no_foreign = true;
	tries = node[1].xen.call_tries;
	settle();
	CHECK(!node[2].xen.asks[2].type && node[0].xen.asks[0].type && node[1].xen.call_tries == tries + 2,
	      "both were tried");
	CHECK(dsm_engine_next(node[1].engine) == clock_ns + MS, "its time is as it was");
	for (i = 0; i < 200; i++)
		pass(MS);
	/* It is tried each 64 ms now, and another one, which is new, is not. */
	for (tries = node[1].xen.call_tries; node[1].xen.call_tries == tries;)
		pass(MS);
	says(2, a_call(2, 1, REGISTER, 1, 7));
	settle();
	CHECK(node[1].xen.call_tries == tries + 2, "the new one at once");
	for (i = 0; i < 3; i++)
		pass(MS);
	CHECK(node[1].xen.call_tries == tries + 4, "and again after 1 and 2 ms: %u", node[1].xen.call_tries - tries);
	node[1].xen.no_foreign = false;
	for (i = 0; i < 64; i++) {
		pass(MS);
		settle();
	}
	CHECK(!node[0].xen.asks[0].type && !node[2].xen.asks[2].type, "both are done");
	/* The next one of the same vCPU. */
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 8));
	settle();
	CHECK(node[0].xen.asks[0].type && dsm_engine_next(node[1].engine) == clock_ns + MS, "soon");
	end();
}

static void call_that_never_succeeds(const void *argument)
{
	unsigned int i, tries, warnings;

	(void)argument;
	begin();
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	settle();
	tries = node[1].xen.call_tries;
	for (i = 0; i < 1000; i++) {
		clock_ns += MS;
		dsm_engine_tick(node[1].engine);
		settle();
	}
	tries = node[1].xen.call_tries - tries;
	CHECK(tries >= 18 && tries <= 22, "%u tries in a second", tries);
	/* Pages that vCPUs miss are none of its business; one for which it may have asked is. */
	tries = node[1].xen.call_tries;
	played_use(&node[1].xen, 1, 25, DSM_XEN_WANT_M, 1);
	settle();
	CHECK(node[1].xen.page[25].state == DSM_XEN_STATE_M && node[1].xen.call_tries == tries, "a vCPU's page");
	says(2, a_call(2, 1, REGISTER, 1, 5));
	node[1].xen.no_foreign = false;
	settle();
	CHECK(!node[2].xen.asks[2].type && node[1].xen.page[5].pinned, "another one is done at once");
	/* And this one has its page now, since Xen could say which it is. */
	CHECK(!node[0].xen.asks[0].type && node[1].xen.call_tries > tries, "and so is this one");
	end();

	begin();
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	settle();
	warnings = node[1].warnings;
	for (i = 0; i < 3000; i++) {
		clock_ns += MS;
		dsm_engine_tick(node[1].engine);
		if (i == 900)
			CHECK(node[1].warnings == warnings, "too early");
	}
	CHECK(node[1].warnings - warnings >= 2 && node[1].warnings - warnings <= 3, "%u lines",
	      node[1].warnings - warnings);
	end();
}

static void shutdowns(const void *argument)
{
	/* A reboot, a soft reset (kexec), which is the last code of all, a crash. */
	static const uint8_t codes[HOSTS] = { 1, 5, 3 };
	unsigned int i;

	(void)argument;
	for (i = 0; i < HOSTS; i++) {
		begin();
		shutdowns_sent = 0;
		node[i].xen.shut = true;
		says(i, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN, .flags = codes[i] });
		settle();
		CHECK(shutdowns_sent == 2, "%u say so", shutdowns_sent);
		CHECK(node[0].xen.shut && node[1].xen.shut && node[2].xen.shut, "all");
		CHECK(!node[0].failure[0] && !node[0].xen.crashes, "no failure");
		CHECK(logged((i + 1) % 3, 0, DSM_VCPU_SHUTDOWN)->flags == codes[i], "the reason");
		/* Pages are served as before. */
		played_use(&node[0].xen, 0, 25, DSM_XEN_WANT_M, 1);
		settle();
		CHECK(node[0].xen.page[25].state == DSM_XEN_STATE_M, "a page");
		end();
	}
	/* Two at the same time, and without a credit. */
	begin();
	settle();
	credits = 0;
	for (i = 0; i < 2; i++) {
		node[i].xen.shut = true;
		says(i, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN, .flags = (uint8_t)(2 * i) });
	}
	CHECK(in_channel[0][1] == 1 && in_channel[1][0] == 1, "both say so");
	settle();
	CHECK(node[2].xen.shut && logged(2, 0, DSM_VCPU_SHUTDOWN)->flags == 0, "the first one counts");
	CHECK(!node[0].failure[0] && !node[1].failure[0], "and nobody minds");
	end();
}

/* A guest whose vCPUs are all halted is ended, and no other one. */
static void all_halted(const void *argument)
{
	unsigned int i;

	(void)argument;
	/* CPUs of other hosts were never started; the home may be any host. */
	for (i = 0; i < HOSTS; i++) {
		dice_begin();
		begin_at(i);
		settle();
		is_shut(false, "vCPU 0 runs");
		active(i, false, 0);
		settle();
		is_shut(true, "it is down");
		end();
	}
	/* One was started, and is the last. */
	begin();
	says(0, event(1, DSM_EVENT_INIT | DSM_EVENT_SIPI, 0x9a));
	active(0, false, 0);
	is_shut(false, "on its way");
	settle();
	is_shut(false, "it has begun");
	active(1, false, 0);
	settle();
	is_shut(false, "said before it began");
	active(1, true, 1);
	settle();
	is_shut(false, "it runs");
	active(1, false, 1);
	settle();
	is_shut(true, "both are down");
	end();
	/* Who is down starts another one before: counts of pairs, not of hosts. */
	begin();
	settle();
	says(0, event(1, DSM_EVENT_SIPI, 0x9a));
	active(0, false, 0);
	deliver(0, 1);
	says(1, event(2, DSM_EVENT_SIPI, 0x9a));
	active(1, false, 1);
	while (deliver(1, 0))
		;
	look(0);
	is_shut(false, "from beta to gamma");
	settle();
	active(2, true, 1);
	says(2, event(0, DSM_EVENT_NMI, 0));
	active(2, false, 1);
	settle();
	is_shut(false, "alpha was sent something");
	active(0, false, 1);
	settle();
	is_shut(true, "all are down");
	end();
	/* A part of a report, and of the next one. */
	begin();
	look(1);
	look(2);
	CHECK(in_channel[1][0] == 2 && deliver(1, 0) && deliver(2, 0) && deliver(2, 0), "three parts");
	active(0, false, 0);
	is_shut(false, "what beta has sent gamma is not known");
	settle();
	is_shut(true, "it is");
	end();
	begin();
	settle();
	says(0, event(1, DSM_EVENT_SIPI, 0x9a));
	active(0, false, 0);
	deliver(0, 1);
	says(1, event(2, DSM_EVENT_SIPI, 0x9a));
	active(1, false, 1);
	CHECK(in_channel[1][0] == 2 && deliver(1, 0), "the first part of beta's second report");
	look(0);
	is_shut(false, "gamma will be started");
	settle();
	active(2, false, 1);
	settle();
	is_shut(true, "none is up");
	end();
	/* What can't be sent yet. */
	begin();
	settle();
	says(0, event(1, DSM_EVENT_SIPI, 0x9a));
	active(0, true, 0);
	settle();
	active(1, true, 1);
	settle();
	credits = 0;
	says(1, event(2, DSM_EVENT_SIPI, 0x9a));
	active(1, false, 1);
	active(0, false, 0);
	look(1);
	is_shut(false, "an event without a credit");
	credits = 16;
	settle();
	is_shut(false, "gamma has it");
	active(2, false, 1);
	settle();
	is_shut(true, "none is up");
	end();
	/* A report that waits is as new as the last one, when it goes. */
	begin();
	credits = 0;
	look(1);
	for (i = 1; i <= 3; i++)
		active(1, false, 0);
	credits = 16;
	active(0, false, 0);
	settle();
	is_shut(true, "reports that were late");
	end();
	/* Who has shut down is not ended once more. */
	begin();
	settle();
	node[1].xen.shut = true;
	says(1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN, .flags = 1 });
	settle();
	active(0, false, 0);
	settle();
	CHECK(node[0].xen.shut, "played_xen.c looks whether it is said twice");
	end();
}

/* What one host must not say to another: to host 0, from 1 or 2. */
static void lies(const void *argument)
{
	static const struct {
		struct dsm_vcpu_msg msg;
		unsigned int from;
		const char *words;
	} table[] = {
		{ { .type = DSM_VCPU_EVENT, .vcpu = 1 }, 1, "EVENT of vCPU 1, 0x0: no vCPU that is there" },
		{ { .type = DSM_VCPU_EVENT, .vcpu = 4 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_EVENT, .vcpu = UINT32_MAX }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_EVENT, .flags = 8 }, 1, "flags that the type does not have" },
		{ { .type = DSM_VCPU_EVENT, .word = { 1 << 14 } }, 1, "a vector that no interrupt has" },
		{ { .type = DSM_VCPU_PORTS, .number = 1024 }, 1, "no event channel that is there" },
		{ { .type = DSM_VCPU_PORTS, .number = 3072 }, 1, "no event channel that is there" },
		{ { .type = DSM_VCPU_PORTS, .number = 7 }, 1, "no event channel that is there" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 2, .op = 32, .cmd = 7 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 0, .op = 32, .cmd = 7 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 9, .op = 32, .cmd = 7 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 1, .op = 32, .cmd = 7, .about = 2 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 1, .op = 32, .cmd = 7, .about = 77 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 1, .op = 32, .cmd = 4 }, 1, "not done for other hosts" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 1, .op = 12, .cmd = 1 }, 1, "not done for other hosts" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 1, .op = 32, .cmd = 9, .word = { 1024 } }, 1, "no event channel" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 1, .op = 32, .cmd = 9, .about = 3 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_CALL, .vcpu = 1, .op = 32, .cmd = 7, .word = { 0, 0, 0, 3 } }, 1,
		  "a reserved byte" },
		{ { .type = DSM_VCPU_REPLY, .vcpu = 0, .number = 1 }, 1, "nobody waits for" },
		{ { .type = DSM_VCPU_REPLY, .vcpu = 1, .number = 1 }, 1, "nobody waits for" },
		{ { .type = DSM_VCPU_REPLY, .vcpu = 0, .rc = 1 }, 1, "the result of no hypercall" },
		{ { .type = DSM_VCPU_SHUTDOWN, .flags = 6 }, 1, "a reason that makes no sense" },
		{ { .type = DSM_VCPU_READY }, 1, "no such message" },
		{ { .type = DSM_VCPU_IDLE, .number = 1, .word = { 1 } }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_IDLE, .number = 1, .word = { 3 } }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_IDLE, .number = 1, .word = { 1ull << 32 } }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_IDLE, .word = { 2 } }, 1, "nobody waits for" },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(table); i++) {
		struct dsm_msg head = { .type = table[i].msg.type, .epoch = 7 };
		uint8_t bytes[DSM_VCPU_BYTES];
		char lost[64];

		begin();
		dsm_vcpu_put(&table[i].msg, bytes);
		dsm_engine_vcpu_message(node[0].engine, table[i].from, &head, bytes);
		expect_failure(0, table[i].words);
		snprintf(lost, sizeof(lost), "host %s is lost (it breaks the protocol: %s",
			 table[i].from == 1 ? "beta" : "gamma", dsm_type_name(head.type));
		expect_failure(0, lost);
		CHECK(!node[0].xen.nr_log, "nothing was done");
		end();
	}
}

/* Lies that need a state. */
static void lies_in_a_state(const void *argument)
{
	struct dsm_vcpu_msg reply = { .type = DSM_VCPU_REPLY, .number = 1 };
	struct dsm_vcpu_msg the_call = a_call(1, 0, REGISTER, 0, 12);
	struct dsm_msg head = { .type = DSM_VCPU_EVENT, .epoch = 8 };
	static const uint8_t nothing[DSM_VCPU_BYTES];
	static const struct dsm_vcpu_msg early[] = {
		{ .type = DSM_VCPU_EVENT, .flags = DSM_EVENT_NMI },
		{ .type = DSM_VCPU_PORTS, .word = { 1 } },
		{ .type = DSM_VCPU_CALL, .vcpu = 1, .op = 32, .cmd = 7 },
		{ .type = DSM_VCPU_SHUTDOWN },
		{ .type = DSM_VCPU_IDLE, .number = 1, .word = { 2 } },
	};
	unsigned int i;

	(void)argument;
	/* Before it was asked. */
	begin();
	credits = 0;
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	lie(1, 0, reply, "nobody waits for");
	end();
	/* Of who is not connected; of who is, and was not told where vCPUs run. */
	begin();
	begin_alone(0);
	lie(1, 0, event(0, DSM_EVENT_NMI, 0), "from a host that is not there");
	end();
	begin();
	begin_again(0);
	lie(2, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN }, "no vCPU that is there");
	end();
	/* To who is not the home, and an old one. */
	begin();
	lie(1, 2, (struct dsm_vcpu_msg){ .type = DSM_VCPU_IDLE, .number = 1 }, "nobody waits for");
	end();
	begin();
	lie(1, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_IDLE, .number = 7, .word = { 2 } }, NULL);
	lie(1, 0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_IDLE, .number = 6, .word = { 2 } }, "nobody waits for");
	end();
	/* Another host, another cookie, twice. */
	begin();
	says(0, a_call(0, 1, UNMASK, 0, 1024));
	lie(2, 0, reply, "host gamma is lost (it breaks the protocol: REPLY of vCPU 0, 0x1: an answer that nobody waits for");
	end();
	begin();
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	reply.number = 2;
	lie(1, 0, reply, "nobody waits for");
	end();
	begin();
	says(0, a_call(0, 1, UNMASK, 0, 1024));
	reply.number = 1;
	lie(1, 0, reply, NULL);
	lie(1, 0, reply, "nobody waits for");
	end();
	/* A port of the one who asked, as Xen notices. */
	begin();
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	reply.word[0] = 1ull | 5ull << 32;
	lie(1, 0, reply, "no event channel that is there");
	end();
	/* A second call while one is tried, and while its answer waits for a credit. */
	begin();
	node[0].xen.page[12].state = DSM_XEN_STATE_I;
	lie(1, 0, the_call, NULL);
	lie(1, 0, the_call, "a second request");
	end();
	begin();
	credits = 0;
	lie(1, 0, a_call(1, 0, BIND_IPI, 0, 0), NULL);
	look(0);
	lie(1, 0, a_call(1, 0, BIND_IPI, 0, 0), "a second request");
	end();
	/* shared_info where it can't be. */
	begin();
	the_call = a_call(0, 1, BIND_IPI, 1, 1);
	the_call.word[3] = 15;
	lie(0, 1, the_call, "Xen does not do it for another host");
	end();
	begin();
	the_call.word[3] = 1000;
	lie(0, 1, the_call, "Xen does not do it for another host");
	CHECK(!node[1].xen.call_tries, "before the call");
	end();
	/* Of another connection, and of a host that is not there. */
	begin();
	dsm_engine_vcpu_message(node[0].engine, 1, &head, nothing);
	expect_failure(0, "of another connection");
	end();
	/* Before the first start; its end may come then, and a report. */
	for (i = 0; i < NR(early); i++) {
		begin();
		dsm_engine_hold_vcpus(node[0].engine, true);
		lie(1, 0, early[i], i < 3 ? "not in this state" : NULL);
		CHECK(node[0].xen.nr_log == (i == 3), "what was done");
		dsm_engine_hold_vcpus(node[0].engine, false);
		end();
	}
	/* Who has no vCPU says nothing about any. */
	begin();
	where[1] = 2;
	begin_again(0);
	lie(1, 0, event(0, 0, 0x20), "host beta is lost (it breaks the protocol: EVENT of vCPU 0, 0x0: no vCPU");
	end();
}

/* A guest may name ports of a host that has none: they are nobody's, and nobody is asked. */
static void ports_of_nobody(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin();
	where[2] = 1;
	for (i = 0; i < HOSTS; i++)
		begin_again(i);
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 2, .number = 2048, .word = { 1 } });
	says(0, a_call(0, 2, UNMASK, 0, 2048));
	CHECK(!in_channel[0][2] && dsm_engine_is_quiet(node[0].engine), "nothing goes there");
	CHECK(!node[0].xen.asks[0].type && logged(0, 0, DSM_VCPU_REPLY)->rc == -22 &&
	      !node[0].failure[0], "answered");
	end();
}

/* What the ring can't have said. */
static void nonsense(const void *argument)
{
	static const struct dsm_vcpu_msg table[] = {
		{ .type = DSM_VCPU_EVENT, .vcpu = 0, .word = { 1 << 20 } },
		{ .type = DSM_VCPU_EVENT, .vcpu = 4 },
		{ .type = DSM_VCPU_PORTS, .host = 0, .number = 0 },
		{ .type = DSM_VCPU_PORTS, .host = 2, .number = 1024 },
		{ .type = DSM_VCPU_PORTS, .host = 1, .number = 1025 },
		{ .type = DSM_VCPU_PORTS, .host = 3, .number = 3072 },
		{ .type = DSM_VCPU_PORTS, .host = 1, .number = 4096 },
		{ .type = DSM_VCPU_CALL, .host = 1, .vcpu = 1 },
		{ .type = DSM_VCPU_CALL, .host = 0, .vcpu = 0 },
		{ .type = DSM_VCPU_CALL, .host = 3, .vcpu = 0 },
		{ .type = DSM_VCPU_SHUTDOWN, .flags = 6 },
		{ .type = DSM_VCPU_REPLY },
		{ .type = DSM_VCPU_IDLE, .flags = 2 },
		{ .type = DSM_VCPU_IDLE, .number = 1 },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(table); i++) {
		begin();
		node[0].xen.ring[0] = (struct dsm_xen_entry){ .vcpu = table[i] };
		node[0].xen.in_ring = 1;
		look(0);
		expect_failure(0, "which makes no sense");
		end();
	}
	/* A vCPU that waits. */
	begin();
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	node[0].xen.asks[0].type = 0;
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	expect_failure(0, "CALL of vCPU 0, 0x2 for host 1, which makes no sense");
	end();
}

static void xen_refuses(const void *argument)
{
	(void)argument;
	begin();
	node[1].xen.break_send = -ESRCH;
	says(0, event(1, 0, 0x20));
	settle();
	expect_failure(1, "Xen does not do EVENT of vCPU 1, 0x0: No such process");
	end();
	begin();
	node[1].xen.break_send = -EINVAL;
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 1 } });
	settle();
	expect_failure(1, "Xen does not do PORTS");
	end();
	begin();
	node[1].xen.break_call = -EIO;
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	settle();
	expect_failure(1, "Xen does not do CALL of vCPU 0");
	end();
	begin();
	node[1].xen.break_call = -EXDEV;
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	settle();
	expect_failure(1, "host alpha is lost (it breaks the protocol: CALL of vCPU 0, 0x1: Xen does not do it");
	end();
	begin();
	node[0].xen.break_reply = -ESRCH;
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	settle();
	expect_failure(0, "Xen does not do REPLY of vCPU 0");
	end();
	begin();
	node[0].xen.info_gfn = 3;
	node[1].xen.break_info = -EEXIST;
	says(0, a_call(0, 1, BIND_IPI, 1, 1));
	settle();
	CHECK(!node[0].xen.asks[0].type, "it is there already");
	end();
	begin();
	node[1].xen.break_shutdown = -EIO;
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN });
	settle();
	expect_failure(1, "Xen does not do SHUTDOWN");
	end();
	/* All are halted, which nobody else will see. */
	begin();
	settle();
	node[0].xen.break_shutdown = -EIO;
	active(0, false, 0);
	settle();
	expect_failure(0, "Xen does not shut the guest down: ");
	end();
}

static void lost_hosts(const void *argument)
{
	static const unsigned int taken[] = { 7, 2, 5, 1, 8, 6 };
	unsigned int i;

	(void)argument;
	begin();
	CHECK(dsm_engine_runs_vcpus(node[0].engine, 1) && dsm_engine_runs_vcpus(node[1].engine, 0), "runs");
	dsm_engine_peer_down(node[1].engine, 0, false, "cut off");
	expect_failure(1, "host alpha is lost (cut off): vCPUs 0, 3 ran there, 0 pages of beta");
	CHECK(!strstr(node[1].failure, "the first"), "none: %s", node[1].failure);
	end();
	/* Of the pages that are lost with it some are named, in their order. */
	begin();
	for (i = 0; i < NR(taken); i++) {
		CHECK(played_use(&node[1].xen, 1, taken[i], DSM_XEN_WANT_M, i) == PLAYED_MISS, "a miss");
		settle();
	}
	dsm_engine_peer_down(node[0].engine, 1, false, "cut off");
	expect_failure(0, "host beta is lost (cut off): vCPUs 1 ran there, 6 pages of alpha were modified there; of its own");
	expect_failure(0, " pages 0 are here; of alpha's the first are gfns 0x1, 0x2, 0x5, 0x6");
	CHECK(!strstr(node[0].failure, "0x7"), "four of them: %s", node[0].failure);
	end();
	/* Nothing of its pages is anywhere, it has said good-bye, nothing is bound: its vCPUs are enough. */
	begin();
	dsm_engine_open_range(node[0].engine, 2, 0);
	dsm_engine_range_done(node[0].engine, 2);
	dsm_engine_peer_down(node[0].engine, 2, true, "closed");
	expect_failure(0, "vCPUs 2 ran there");
	end();
	begin();
	dsm_engine_bind(node[0].engine, 1, false);
	dsm_engine_open_range(node[0].engine, 1, 0);
	dsm_engine_range_done(node[0].engine, 1);
	dsm_engine_peer_down(node[0].engine, 1, false, "cut off");
	expect_failure(0, "vCPUs 1 ran there");
	end();
}

/* A VM whose vCPUs all stay at home: nobody has anything to say about them. */
static void none_elsewhere(const void *argument)
{
	struct dsm_msg head = { .type = DSM_VCPU_EVENT, .epoch = 7 };
	static const uint8_t nothing[DSM_VCPU_BYTES];
	struct dsm_engine_params p;
	char text[DSM_ENGINE_TEXT];
	unsigned int i;

	(void)argument;
	for (i = 0; i < 2; i++) {
		begin();
		dsm_engine_destroy(node[0].engine);
		p = params_of(&node[0]);
		p.where = NULL;
		CHECK(!dsm_engine_create(&p, &node[0].engine, text), "%s", text);
		dsm_engine_peer_up(node[0].engine, 1, 7);
		CHECK(!dsm_engine_runs_vcpus(node[0].engine, 1) && dsm_engine_is_quiet(node[0].engine), "none");
		active(0, false, 5);
		CHECK(!node[0].failure[0] && !node[0].xen.shut, "Xen's business");
		if (i) {
			says(0, event(1, 0, 0x20));
			expect_failure(0, "Xen's ring: EVENT of vCPU 1");
		} else {
			dsm_engine_vcpu_message(node[0].engine, 1, &head, nothing);
			expect_failure(0, "host beta is lost (it breaks the protocol: EVENT");
		}
		end();
	}
	begin();
	p = params_of(&node[0]);
	where[2] = HOSTS;
	CHECK(dsm_engine_create(&p, &(struct dsm_engine *){ NULL }, text) == -EINVAL &&
	      strstr(text, "vCPU 2 at host 3"), "%s", text);
	where[2] = 2;
	where[0] = 1;
	CHECK(dsm_engine_create(&p, &(struct dsm_engine *){ NULL }, text) == -EINVAL &&
	      strstr(text, "vCPU 0 at 0"), "%s", text);
	end();
}

/* Who is sent what: by chance, over links that are slow, with calls between. */
struct tally {
	uint64_t events[VCPUS], ports[12];
	unsigned int calls;
};

static unsigned int seen[HOSTS];

static void collect(struct tally *t)
{
	const struct dsm_vcpu_msg *m;
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		for (; seen[i] < node[i].xen.nr_log; seen[i]++) {
			CHECK(node[i].xen.nr_log - seen[i] <= PLAYED_LOG, "a long log");
			m = &node[i].xen.log[seen[i] % PLAYED_LOG];
			if (m->type == DSM_VCPU_EVENT)
				t->events[m->vcpu] |= m->word[2];
			else if (m->type == DSM_VCPU_PORTS)
				t->ports[m->number / 256] |= m->word[1];
			else if (m->type == DSM_VCPU_REPLY)
				t->calls++;
		}
}

static void by_chance(unsigned int from, struct tally *sent)
{
	unsigned int v = dice_below(VCPUS), k = dice_below(12), bit = dice_below(64);
	struct dsm_vcpu_msg m = event(v, 0, 128 + bit);

	switch (dice_below(3)) {
	case 0:
		if (where[v] != from && played_says(&node[from].xen, &m))
			sent->events[v] |= 1ull << bit;
		break;
	case 1:
		m = (struct dsm_vcpu_msg){
			.type = DSM_VCPU_PORTS, .host = (uint8_t)(k / 4), .number = 256 * k,
			.word = { 0, 1ull << bit },
		};
		if (k / 4 != from && played_says(&node[from].xen, &m))
			sent->ports[k] |= 1ull << bit;
		break;
	case 2:
		k %= VCPUS;
		m = a_call(v, where[k], BIND_IPI, k, k);
		if (where[v] == from && where[k] != from && !node[from].xen.asks[v].type)
			sent->calls += played_says(&node[from].xen, &m);
		break;
	}
}

static void chance(const void *argument)
{
	struct tally sent = { 0 }, came = { 0 };
	unsigned int i, n, calls_made = 0;

	(void)argument;
	begin();
	memset(seen, 0, sizeof(seen));
	credits = 2;
	for (n = 0; n < 20000; n++) {
		unsigned int from = dice_below(HOSTS);

		switch (dice_below(6)) {
		case 0:
		case 1:
		case 2:
			by_chance(from, &sent);
			break;
		case 3:
			look(from);
			break;
		default:
			deliver(from, dice_below(HOSTS));
		}
		collect(&came);
		if (n % 1000 != 999)
			continue;
		/* At times all of it has come. */
		settle();
		collect(&came);
		for (i = 0; i < HOSTS; i++)
			CHECK(!node[i].failure[0] && dsm_engine_is_quiet(node[i].engine), "host %u: %s",
			      i, node[i].failure);
		CHECK(!memcmp(&sent, &came, sizeof(sent)), "round %u: %u calls, %u replies", n,
		      sent.calls, came.calls);
		calls_made += sent.calls;
		memset(&sent, 0, sizeof(sent));
		memset(&came, 0, sizeof(came));
	}
	CHECK(calls_made > 100, "%u calls", calls_made);
	end();
}

static const struct test_case cases[] = {
	{ "vcpus: events", events, NULL },
	{ "vcpus: a slow link", slow_link, NULL },
	{ "vcpus: where the time of an interrupt goes", time_of_an_interrupt, NULL },
	{ "vcpus: a busy link", busy_link, NULL },
	{ "vcpus: a link full of answers", full_of_answers, NULL },
	{ "vcpus: ports of each host", ports, NULL },
	{ "vcpus: calls and replies", calls_and_replies, NULL },
	{ "vcpus: a call that needs a page", call_that_needs_a_page, NULL },
	{ "vcpus: a call that never succeeds", call_that_never_succeeds, NULL },
	{ "vcpus: half of the credits", half_of_the_credits, NULL },
	{ "vcpus: a call and a tool", call_and_a_tool, NULL },
	{ "vcpus: a call and a tool, at a hole", call_and_a_tool_at_a_hole, NULL },
	{ "vcpus: a call and a tool, at a write-back", call_and_a_tool_at_a_writeback, NULL },
	{ "vcpus: a call and a tool, at an operation", call_and_a_tool_at_an_operation, NULL },
	{ "vcpus: a call and a tool, at a copy", call_and_a_tool_at_a_copy, NULL },
	{ "vcpus: a call that is done, and a tool", call_that_is_done_and_a_tool, NULL },
	{ "vcpus: a call that misses again", call_that_misses_again, NULL },
	{ "vcpus: a call, and a tool that reads", call_and_a_tool_that_reads, NULL },
	{ "vcpus: the last one's call, and a tool", last_vcpus_call_and_a_tool, NULL },
	{ "vcpus: tries of two calls", tries_of_two_calls, NULL },
	{ "vcpus: shutdown", shutdowns, NULL },
	{ "vcpus: all are halted", all_halted, NULL },
	{ "vcpus: lies", lies, NULL },
	{ "vcpus: lies in a state", lies_in_a_state, NULL },
	{ "vcpus: ports of nobody", ports_of_nobody, NULL },
	{ "vcpus: what the ring can't say", nonsense, NULL },
	{ "vcpus: Xen refuses", xen_refuses, NULL },
	{ "vcpus: lost hosts", lost_hosts, NULL },
	{ "vcpus: none elsewhere", none_elsewhere, NULL },
	{ "vcpus: chance", chance, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
