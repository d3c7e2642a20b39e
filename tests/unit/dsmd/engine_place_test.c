// SPDX-License-Identifier: GPL-2.0
/*
 * vCPUs go to other hosts and come back while the guest runs: engines with a played
 * hypervisor each, which refuses what Xen refuses, and ends the test if something
 * is sent to a ghost.
 */
#include <errno.h>
#include <string.h>

#include "vcpu_rig.h"

/* At the home.  Return: what dsm_engine_place() says; its text is node[home].error. */
static int place(unsigned int host, unsigned int first, unsigned int nr)
{
	char text[DSM_ENGINE_TEXT] = "";
	uint16_t vcpus[VCPUS];
	unsigned int i;
	int rc;

	for (i = 0; i < nr; i++)
		vcpus[i] = (uint16_t)(first + i);
	node[home].error[0] = 0;
	node[home].placed = 0;
	rc = dsm_engine_place(node[home].engine, host, vcpus, nr, text);
	if (rc == -EINVAL)
		snprintf(node[home].error, sizeof(node[home].error), "%s", text);
	return rc;
}

/* All hosts say the same of a vCPU, it runs at that one only, and the guest goes on. */
static void runs_at(unsigned int vcpu, unsigned int host, const char *what)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		CHECK(!node[i].failure[0], "%s: host %u: %s", what, i, node[i].failure);
		CHECK(dsm_engine_where(node[i].engine, vcpu) == host, "%s: host %u says that vCPU %u is at %u",
		      what, i, vcpu, dsm_engine_where(node[i].engine, vcpu));
		CHECK(node[i].xen.elsewhere[vcpu] == (i != host), "%s: Xen of host %u, vCPU %u", what, i,
		      vcpu);
		CHECK(!node[i].xen.pauses, "%s: host %u stands still, '%s', %u are waited for", what, i,
		      dsm_engine_failure(node[i].engine), in_channel[0][1] + in_channel[0][2]);
	}
}

static void done(const char *what)
{
	CHECK(node[home].placed == 1 && !node[home].error[0], "%s: %u, '%s'", what, node[home].placed,
	      node[home].error);
}

static void there_and_back(const void *argument)
{
	unsigned int of_vm, i;

	(void)argument;
	dice_begin();
	for (of_vm = 0; of_vm < HOSTS; of_vm++) {
		unsigned int there = (of_vm + 1) % HOSTS;

		begin_at_home(of_vm);
		settle();
		for (i = 0; i < 3; i++) {
			CHECK(place(there, 1, 1) == -EINPROGRESS, "%s", node[home].error);
			CHECK(dsm_engine_is_placing(node[home].engine), "it goes on");
			CHECK(place(there, 1, 1) == -EINVAL && strstr(node[home].error, "busy "), "%s",
			      node[home].error);
			settle();
			done("place");
			runs_at(1, there, "there");
			runs_at(2, home, "another one");
			CHECK(!dsm_engine_is_placing(node[home].engine) &&
			      !dsm_engine_is_placing(node[there].engine), "it has ended");
			CHECK(!place(there, 1, 1) && !node[home].placed, "it is there");
			/* It is started, and starts another one's work. */
			says(home, event(1, DSM_EVENT_INIT | DSM_EVENT_SIPI, 7));
			says(there, event(0, 0, 0x40));
			settle();
			CHECK(logged(there, node[there].xen.nr_log - 1, DSM_VCPU_EVENT)->sipi == 7, "SIPI");
			logged(home, node[home].xen.nr_log - 1, DSM_VCPU_EVENT);
			CHECK(place(home, 1, 1) == -EINPROGRESS, "%s", node[home].error);
			settle();
			done("home");
			runs_at(1, home, "back");
			CHECK(!place(home, 1, 1), "it is here");
		}
		CHECK(node[home].xen.places == 6 && node[(of_vm + 2) % HOSTS].xen.places == 6, "all are told");
		end();
	}
}


/* vCPUs 1 and 2 to host 1, 3 to host 2; all are told, the others stay. */
static void several(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	settle();
	CHECK(place(1, 1, 2) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("two");
	CHECK(place(2, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("another host");
	runs_at(1, 1, "1");
	runs_at(2, 1, "2");
	runs_at(3, 2, "3");
	/* Home from both; one is there already. */
	CHECK(place(0, 2, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	runs_at(2, 0, "2");
	CHECK(place(0, 1, 3) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("all");
	runs_at(1, 0, "1");
	runs_at(2, 0, "2");
	runs_at(3, 0, "3");
	end();
}

/* The page of its vcpu_info goes with it, and shared_info before. */
static void its_vcpu_info(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin_placed(1, 1, 2);
	node[0].xen.info[1] = 3 * DSM_PAGE_BYTES;
	node[0].xen.page[3].pinned = true;
	node[0].xen.info_gfn = 4;
	for (i = 0; i < 2; i++) {
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		done("place");
		runs_at(1, 1, "there");
		CHECK(node[1].xen.info[1] == 3 * DSM_PAGE_BYTES && node[1].xen.page[3].pinned &&
		      node[1].xen.page[3].state == DSM_XEN_STATE_M && node[1].xen.info_gfn == 4, "it is there");
		CHECK(!node[0].xen.info[1] && node[0].xen.page[3].state == DSM_XEN_STATE_I, "and not here");
		CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		done("home");
		runs_at(1, 0, "back");
		CHECK(node[0].xen.info[1] == 3 * DSM_PAGE_BYTES && node[0].xen.page[3].pinned &&
		      !node[1].xen.info[1] && !node[1].xen.page[3].pinned, "it is here");
	}
	/* It is not alone in its page: no other host could have it. */
	node[0].xen.info[1] += 0x540;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(node[0].placed == 1 && !strncmp(node[0].error, "one-host vCPU 1: ", 17), "%s", node[0].error);
	runs_at(1, 0, "it stays");
	CHECK(node[0].xen.info[1] == 3 * DSM_PAGE_BYTES + 0x540, "with what it had");
	end();
}

/* Somebody uses that page: it is said, and done later. */
static void info_that_does_not_come(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	node[0].xen.info[1] = 25 * DSM_PAGE_BYTES;
	node[0].xen.page[25].state = DSM_XEN_STATE_I;
	node[2].xen.page[25].pinned = true;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(!node[0].placed && node[1].xen.pauses == 1, "all wait for it");
	pass(4900 * MS);
	settle();
	CHECK(!node[0].placed, "still");
	pass(200 * MS);
	settle();
	CHECK(node[0].placed == 1 && !strncmp(node[0].error, "vcpu-info vCPU 1 runs at host beta, ", 36) &&
	      strstr(node[0].error, "gfn 0x19,"), "%s", node[0].error);
	runs_at(1, 1, "it is there all the same");
	CHECK(!node[1].xen.info[1], "without");
	/* Once more, while it is up: the others do not mind. */
	node[2].xen.page[25].pinned = false;
	node[1].xen.up[1] = true;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	pass(10 * MS);
	settle();
	done("again");
	runs_at(1, 1, "as it was");
	CHECK(node[1].xen.info[1] == 25 * DSM_PAGE_BYTES, "it has it");
	CHECK(!place(1, 1, 1), "and that is all");
	node[1].xen.up[1] = false;
	/* The guest has done something else with that page: its own business. */
	node[1].xen.info[1] = 0;
	node[1].warnings = 0;
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	node[0].xen.info[1] = 3 * DSM_PAGE_BYTES;
	node[1].xen.info[1] = 11 * DSM_PAGE_BYTES;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("Xen has one");
	CHECK(node[1].xen.info[1] == 11 * DSM_PAGE_BYTES && !node[1].warnings, "as it was");
	end();
	begin_placed(1, 1, 2);
	node[0].xen.info[1] = 3 * DSM_PAGE_BYTES;
	node[1].xen.break_call = -EINVAL;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("Xen does not register it");
	CHECK(node[1].warnings == 1, "but somebody is told");
	end();
}

/* What a PLACE has given up needs no frame any more. */
static void info_given_up(const void *argument)
{
	unsigned int i, late;

	(void)argument;
	for (late = 0; late < 2; late++) {
		begin_placed(1, 1, 2);
		node[0].xen.info[1] = 25 * DSM_PAGE_BYTES;
		node[0].xen.page[25].state = DSM_XEN_STATE_I;
		node[2].xen.page[25].pinned = true;
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		for (i = 0; i < 5200 && !node[0].placed; i++) {
			pass(MS);
			settle();
		}
		CHECK(node[0].placed == 1, "given up");
		for (i = 0; late && i < 40; i++) {
			pass(MS / 4);
			settle();
		}
		node[2].xen.page[25].pinned = false;
		node[2].xen.page[25].special = true;
		for (i = 0; i < 10; i++) {
			pass(MS / 4);
			settle();
			if (late && !i)
				CHECK(played_use(&node[1].xen, NO_VCPU, 25, DSM_XEN_WANT_M, 0) == PLAYED_MISS,
				      "look");
		}
		CHECK(!node[1].failure[0], "%u: nobody waits for it: %s", late, node[1].failure);
		CHECK(!late || node[1].xen.page[25].foreign_hole, "%u: told", late);
		end();
	}
}

/* It is no plain memory of the home: the guest can't go on.  For a tool that looks elsewhere it does. */
static void info_that_can_not_leave(const void *argument)
{
	unsigned int i, can;

	(void)argument;
	for (can = 0; can < 2; can++) {
		begin_placed(1, 1, 2);
		node[0].xen.info[1] = 3 * DSM_PAGE_BYTES;
		node[0].xen.page[3].special = !can;
		node[0].xen.page[5].special = true;
		if (can) {
			/* One that is in use elsewhere is waited for. */
			node[0].xen.info[1] = 25 * DSM_PAGE_BYTES;
			node[0].xen.page[25].state = DSM_XEN_STATE_I;
			node[2].xen.page[25].pinned = true;
		}
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		if (can) {
			CHECK(!node[0].placed && node[1].xen.pauses == 1, "all wait for it");
			CHECK(played_use(&node[1].xen, NO_VCPU, 5, DSM_XEN_WANT_S, 0) == PLAYED_MISS, "look");
		}
		for (i = 0; i < 20 && !node[1].failure[0]; i++) {
			pass(MS / 10);
			settle();
		}
		if (can)
			CHECK(!node[1].failure[0] && node[1].xen.page[5].foreign_hole, "'%s'", node[1].failure);
		else
			CHECK(strstr(node[1].failure, "gfn 0x3 is needed here, and it can't leave alpha"), "'%s'",
			      node[1].failure);
		end();
	}
}

/* What is refused changes nothing, wherever it is. */
static void refusals(const void *argument)
{
	static const struct {
		unsigned int host;	/* whose Xen refuses */
		int rc;
		const char *error;
	} table[] = {
		{ 0, -EIO, "internal vCPU 1: Xen of host alpha does not place it" },
		{ 1, -EIO, "internal vCPU 1: Xen of host beta does not place it" },
		{ 2, -EIO, "internal vCPU 1: Xen of host gamma does not place it" },
		{ 0, -EBUSY, "busy vCPU 1: at host alpha " },
		{ 2, -EBUSY, "busy vCPU 1: at host gamma " },
		{ 2, -EOPNOTSUPP, "one-host vCPU 1: " },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(table); i++) {
		begin_placed(1, 1, 2);
		node[0].xen.info[1] = 3 * DSM_PAGE_BYTES;
		node[0].xen.page[3].pinned = true;
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		node[table[i].host].xen.break_place = table[i].rc;
		settle();
		pass(1001 * MS);
		settle();
		CHECK(node[0].placed == 1 && !strncmp(node[0].error, table[i].error, strlen(table[i].error)), "%s",
		      node[0].error);
		node[table[i].host].xen.break_place = 0;
		runs_at(1, 0, table[i].error);
		CHECK(node[0].xen.info[1] == 3 * DSM_PAGE_BYTES && !node[1].xen.info[1], "its page");
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		done("now");
		runs_at(1, 1, "now");
		end();
	}
	/* The second of two: the first one comes back. */
	begin_placed(1, 1, 2);
	settle();
	node[0].xen.up[2] = false;
	CHECK(place(1, 1, 2) == -EINPROGRESS, "%s", node[0].error);
	node[0].xen.up[2] = true;
	settle();
	CHECK(!strncmp(node[0].error, "vcpu-up vCPU 2 is up, at host alpha", 35), "%s", node[0].error);
	runs_at(1, 0, "the first one");
	runs_at(2, 0, "the second one");
	/* Before anybody is stopped. */
	CHECK(place(1, 1, 2) == -EINVAL && !strncmp(node[0].error, "vcpu-up vCPU 2 ", 15), "%s", node[0].error);
	node[0].xen.up[2] = false;
	CHECK(place(1, 1, 2) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("both");
	/* At another host nobody knows before. */
	node[1].xen.up[2] = true;
	CHECK(place(0, 1, 2) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(!strncmp(node[0].error, "vcpu-up vCPU 2 is up, at host beta", 34), "%s", node[0].error);
	runs_at(1, 1, "the first one");
	runs_at(2, 1, "the second one");
	end();
	/* Something was on its way, and has come. */
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	node[0].xen.busy_places = 2;
	node[1].xen.busy_places = 3;
	for (i = 0; i < 6; i++) {
		settle();
		CHECK(!node[0].placed || i == 5, "after %u ms", i);
		pass(MS);
	}
	settle();
	done("later");
	runs_at(1, 1, "later");
	end();
	/* What can't be taken back ends it. */
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	node[1].xen.break_place = -EIO;
	while (next_type(1, 0) != DSM_VCPU_PLACED) {
		look(0);
		deliver(0, 1);
		deliver(0, 2);
		look(1);
		look(2);
		if (next_type(1, 0) == DSM_VCPU_PLACED)
			break;
		deliver(1, 0);
		deliver(2, 0);
		deliver(1, 2);
		deliver(2, 1);
	}
	node[0].xen.break_place = -EIO;
	settle();
	expect_failure(0, "vCPU 1 can't be brought back to host alpha: internal vCPU 1: Xen of host beta");
	CHECK(node[0].placed == 1 && strstr(node[0].error, "internal the VM has failed"), "%s", node[0].error);
	end();
}

static void requests(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin_placed(1, 1, 2);
	CHECK(place(2, 1, 1) == -EINVAL && !strcmp(node[0].error, "places vCPU 1 has no place at host gamma"), "%s",
	      node[0].error);
	CHECK(place(1, 0, 1) == -EINVAL && strstr(node[0].error, "places vCPU 0 has"), "%s", node[0].error);
	CHECK(place(0, 4, 1) == -EINVAL && strstr(node[0].error, "places vCPU 4 has"), "%s", node[0].error);
	home = 1;
	CHECK(place(1, 1, 1) == -EINVAL && strstr(node[1].error, "internal this is no home"), "%s", node[1].error);
	home = 0;
	/* Who can't have any; who is not there. */
	for (i = DSM_NOT_TSC; i < DSM_NOTS; i++) {
		dsm_engine_ready(node[0].engine, 1, i);
		CHECK(place(1, 1, 1) == -EINVAL && !strncmp(node[0].error, "not-ready host beta: ", 21), "%s",
		      node[0].error);
	}
	dsm_engine_ready(node[0].engine, 1, 0);
	unbind(1);
	dsm_engine_open_range(node[0].engine, 1, 0);
	dsm_engine_range_done(node[0].engine, 1);
	part(0, 1);
	CHECK(place(1, 1, 1) == -EINVAL && !strcmp(node[0].error, "unreachable host beta is not connected"), "%s",
	      node[0].error);
	/* It is there, and not ready: later, or never. */
	join(0, 1);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	pass(29000 * MS);
	settle();
	CHECK(!node[0].placed && !node[0].xen.pauses, "nobody is stopped");
	dsm_engine_ready(node[0].engine, 1, 0);
	settle();
	done("ready");
	runs_at(1, 1, "ready");
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	part(0, 1);
	join(0, 1);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	pass(30001 * MS);
	CHECK(node[0].placed == 1 && !strncmp(node[0].error, "not-ready host beta: ", 21), "%s", node[0].error);
	/* It says that it can't be, meanwhile. */
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	dsm_engine_ready(node[0].engine, 1, DSM_NOT_POLICY);
	CHECK(node[0].placed == 1 && !strncmp(node[0].error, "not-ready host beta: the guest's CPU", 36), "%s",
	      node[0].error);
	part(0, 1);
	join(0, 1);
	/* Lost before it is ready; and not even then while somebody has to wait for others. */
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	part(0, 1);
	CHECK(node[0].placed == 1 && !strncmp(node[0].error, "unreachable host beta was lost", 30), "%s",
	      node[0].error);
	join(0, 1);
	dsm_engine_ready(node[0].engine, 1, 0);
	dsm_engine_hold_vcpus(node[0].engine, true);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(!node[0].placed && !node[0].xen.pauses, "held");
	dsm_engine_hold_vcpus(node[0].engine, false);
	settle();
	done("not held");
	/* The guest has ended. */
	node[0].xen.shut = true;
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN });
	CHECK(place(0, 1, 1) == -EINVAL && strstr(node[0].error, "internal the guest has shut down"), "%s",
	      node[0].error);
	end();
}

/* A vCPU waits for a call: for that page, and not for ever. */
/* A host with another time has no vCPUs until it is one; who has some there can have them home. */
static void two_times(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin_placed(1, 1, 2);
	for (i = 0; i < 2; i++) {
		node[0].time_there[1] = -ERANGE;
		CHECK(place(1, 1, 2) == -EINPROGRESS, "%s", node[0].error);
		settle();
		CHECK(node[0].placed == 1 && !strcmp(node[0].error, "not-ready host beta: it is ahead by 7 ns") &&
		      !node[0].xen.places && !node[1].xen.places, "%s", node[0].error);
		runs_at(1, 0, "it stays");
	}
	CHECK(place(2, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("another host");
	/* Not known yet: nobody stands still for it. */
	node[0].time_there[1] = -EAGAIN;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	pass(29000 * MS);
	settle();
	CHECK(!node[0].placed && !node[0].xen.pauses, "it waits");
	node[0].time_there[1] = -ERANGE;
	settle();
	CHECK(node[0].placed == 1 && !strcmp(node[0].error, "not-ready host beta: it is ahead by 7 ns"), "%s", node[0].error);
	node[0].time_there[1] = -EAGAIN;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	pass(30001 * MS);
	CHECK(node[0].placed == 1 && strstr(node[0].error, "not-ready host beta: it is not known well enough how far its TSC"),
	      "%s", node[0].error);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	node[0].time_there[1] = 0;
	settle();
	done("it is known");
	runs_at(1, 1, "there");
	end();
	/* It can be known before it is ready. */
	begin_placed(1, 1, 2);
	unbind(1);
	dsm_engine_open_range(node[0].engine, 1, 0);
	dsm_engine_range_done(node[0].engine, 1);
	part(0, 1);
	join(0, 1);
	node[0].time_there[1] = -ERANGE;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(node[0].placed == 1 && !strcmp(node[0].error, "not-ready host beta: it is ahead by 7 ns"), "%s", node[0].error);
	node[0].time_there[1] = 0;
	dsm_engine_ready(node[0].engine, 1, 0);
	CHECK(place(1, 1, 2) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("ready");
	/* Home. */
	node[0].time_there[1] = -ERANGE;
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("home");
	runs_at(1, 0, "back");
	node[0].time_there[1] = -EAGAIN;
	CHECK(place(0, 2, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("home");
	runs_at(2, 0, "back");
	end();
}

static void calls_under_way(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("place");
	node[1].xen.no_foreign = true;
	says(0, a_call(0, 1, REGISTER, 1, 5));
	settle();
	CHECK(node[0].xen.asks[0].type, "it waits");
	CHECK(place(2, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(!node[0].placed && node[0].xen.pauses == 1 && node[1].xen.pauses == 1, "all stand still");
	node[1].xen.no_foreign = false;
	pass(2 * MS);
	settle();
	done("the call has ended");
	runs_at(3, 2, "then");
	CHECK(!node[0].xen.asks[0].type, "it has its result");
	/* And one that does not end. */
	node[1].xen.no_foreign = true;
	node[1].xen.info[1] = 0;
	says(0, a_call(0, 1, REGISTER, 1, 6));
	CHECK(place(0, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	pass(9990 * MS);
	settle();
	CHECK(!node[0].placed, "not yet");
	pass(20 * MS);
	settle();
	CHECK(node[0].placed == 1 && !strcmp(node[0].error, "busy vCPU 0, at host alpha, waits for a hypercall, or an access to memory, that does not end"),
	      "%s", node[0].error);
	runs_at(3, 2, "as it was");
	node[1].xen.no_foreign = false;
	pass(64 * MS);
	settle();
	CHECK(!node[0].xen.asks[0].type, "it ends after all");
	end();
}

/* What was sent before is there before; what comes into the ring later goes where it is then. */
static void letters(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("place");
	CHECK(place(2, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("place");
	credits = 0;
	says(0, event(1, 0, 0x40));
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_PORTS, .host = 1, .number = 1024, .word = { 1 } });
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(next_type(0, 1) == 0 && !node[0].placed && !node[1].xen.nr_log, "no credit");
	/* A tasklet that was late. */
	credits = 1;
	dsm_engine_room(node[0].engine, 1);
	deliver(0, 1);
	CHECK(node[1].xen.nr_log == 1 && logged(1, 0, DSM_VCPU_EVENT)->word[1] == 1, "the event");
	while (next_type(0, 1) != DSM_VCPU_FENCE) {
		look(0);
		look(1);
		deliver(1, 0);
		if (next_type(0, 1) != DSM_VCPU_FENCE)
			deliver(0, 1);
	}
	CHECK(node[1].xen.nr_log == 2, "and the ports, before the fence");
	says(0, event(1, DSM_EVENT_INIT | DSM_EVENT_SIPI, 9));
	says(2, event(1, 0, 0x41));
	CHECK(next_type(0, 1) == DSM_VCPU_FENCE && in_channel[0][1] == 1, "behind the fence is nothing");
	credits = 16;
	settle();
	done("home");
	runs_at(1, 0, "home");
	CHECK(node[1].xen.nr_log == 2 && node[0].xen.nr_log == 2, "%u there, %u here", node[1].xen.nr_log,
	      node[0].xen.nr_log);
	CHECK(logged(0, 0, DSM_VCPU_EVENT)->sipi == 9 && logged(0, 1, DSM_VCPU_EVENT)->word[1] == 2, "both");
	/* Said of one that runs here, before Xen was told: and then it runs elsewhere. */
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	says(2, event(1, 0, 0x42));
	settle();
	done("there again");
	CHECK(node[1].xen.nr_log == 2 && node[0].xen.nr_log == 3, "before it was placed");
	/* Into the ring of who gives it away, for who has it, and read after it has come back. */
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	while (!node[0].xen.pauses || next_type(0, 1) != DSM_VCPU_PLACE) {
		look(0);
		deliver(0, 1);
		deliver(0, 2);
		look(1);
		look(2);
		deliver(1, 0);
		deliver(2, 0);
		deliver(1, 2);
		deliver(2, 1);
		look(0);
	}
	{
		const struct dsm_vcpu_msg m = event(1, 0, 0x44);

		CHECK(played_says(&node[0].xen, &m), "a full ring");
	}
	settle();
	done("home again");
	CHECK(node[0].xen.nr_log == 4 && logged(0, 3, DSM_VCPU_EVENT)->word[1] == 1 << 4, "it is done here");
	/* Xen has been told, and the table has not. */
	node[0].xen.at_place = event(1, 0, 0x45);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("once more");
	CHECK(node[1].xen.nr_log == 3 && logged(1, 2, DSM_VCPU_EVENT)->word[1] == 1 << 5, "it is done there");
	runs_at(1, 1, "once more");
	end();
}

/* An interrupt that waits until the guest goes on is sent, and is none whose time counts. */
static void time_of_letters(const void *argument)
{
	struct dsm_engine_counts before, after, there, first;
	unsigned int nr_log, nr_home;

	(void)argument;
	begin_placed(1, 1, 2);
	settle();
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(place(2, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	/* What is in the line when the stop begins goes before the fence, and counts. */
	dsm_engine_get_counts(node[0].engine, &before);
	dsm_engine_get_counts(node[1].engine, &first);
	credits = 0;
	says(0, event(1, 0, 0x3f));
	CHECK(place(0, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	CHECK(node[0].xen.pauses, "it has begun");
	credits = 16;
	while (!node[0].xen.pauses || next_type(0, 1) != DSM_VCPU_FENCE) {
		look(0);
		deliver(0, 1);
	}
	/* There, too, where the stop has begun as well. */
	dsm_engine_get_counts(node[1].engine, &there);
	CHECK(there.ipi_in.count == first.ipi_in.count + 1, "%llu have come",
	      (unsigned long long)(there.ipi_in.count - first.ipi_in.count));
	dsm_engine_get_counts(node[0].engine, &after);
	CHECK(after.ipi_out.count == before.ipi_out.count + 1, "%llu were counted",
	      (unsigned long long)(after.ipi_out.count - before.ipi_out.count));
	before = after;
	nr_log = node[1].xen.nr_log;
	says(0, event(1, 0, 0x40));
	pass(MS);
	CHECK(in_channel[0][1] == 1, "behind the fence is nothing");
	/* And one for the vCPU that is placed: it goes to another host than it was said for. */
	while (next_type(1, 2) != DSM_VCPU_FENCE)
		look(1);
	nr_home = node[0].xen.nr_log;
	says(1, event(3, 0, 0x42));
	pass(MS);
	settle();
	done("home");
	dsm_engine_get_counts(node[0].engine, &after);
	CHECK(node[1].xen.nr_log == nr_log + 1, "it has come");
	dsm_engine_get_counts(node[1].engine, &there);
	CHECK(node[0].xen.nr_log == nr_home + 1 && !there.ipi_out.count, "and the other one: %llu were counted",
	      (unsigned long long)there.ipi_out.count);
	CHECK(after.ipi_out.count == before.ipi_out.count, "%llu were counted",
	      (unsigned long long)(after.ipi_out.count - before.ipi_out.count));
	says(0, event(1, 0, 0x41));
	dsm_engine_get_counts(node[0].engine, &after);
	CHECK(after.ipi_out.count == before.ipi_out.count + 1 && after.ipi_out.sum == before.ipi_out.sum, "the next one");
	end();
}

/* It ends meanwhile, for another reason: all are told when tables are the same again. */
static void shut_down_meanwhile(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	while (!node[1].xen.pauses) {
		look(0);
		deliver(0, 1);
		look(1);
	}
	node[1].xen.shut = true;
	shutdowns_sent = 0;
	says(1, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN, .flags = 3 });
	CHECK(!shutdowns_sent, "not now");
	settle();
	done("home");
	runs_at(1, 0, "home");
	CHECK(shutdowns_sent == 2 && node[0].xen.shut && node[2].xen.shut, "then");
	for (i = 0; i < HOSTS; i++)
		CHECK(!node[i].failure[0], "%s", node[i].failure);
	/* And so is who is connected later. */
	unbind(1);
	unbind(2);
	dsm_engine_open_range(node[1].engine, 2, 0);
	dsm_engine_range_done(node[1].engine, 2);
	dsm_engine_open_range(node[2].engine, 1, 0);
	dsm_engine_range_done(node[2].engine, 1);
	part(1, 2);
	join(1, 2);
	settle();
	CHECK(shutdowns_sent == 4, "each to the other: %u", shutdowns_sent);
	end();
}

/* Who is connected later hears of it, too. */
static void shut_down_before(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	unbind(2);
	dsm_engine_open_range(node[0].engine, 2, 0);
	dsm_engine_range_done(node[0].engine, 2);
	dsm_engine_open_range(node[1].engine, 2, 0);
	dsm_engine_range_done(node[1].engine, 2);
	part(0, 2);
	part(1, 2);
	node[0].xen.shut = true;
	says(0, (struct dsm_vcpu_msg){ .type = DSM_VCPU_SHUTDOWN, .flags = 2 });
	settle();
	CHECK(node[1].xen.shut && !node[2].xen.shut, "who is there");
	join(0, 2);
	settle();
	CHECK(node[2].xen.shut && logged(2, 0, DSM_VCPU_SHUTDOWN)->flags == 2, "who comes");
	CHECK(!node[0].failure[0] && !node[2].failure[0], "%s%s", node[0].failure, node[2].failure);
	end();
}

/* A ring that is filled as fast as it is read does not keep all else waiting. */
static void an_endless_ring(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	settle();
	node[0].xen.endless = true;
	dsm_engine_misses(node[0].engine);
	CHECK(dsm_engine_next(node[0].engine) <= clock_ns, "and goes on at once");
	dsm_engine_tick(node[0].engine);
	CHECK(dsm_engine_next(node[0].engine) <= clock_ns, "and again");
	/* Nobody is quiet before it is empty. */
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(!node[0].placed && node[0].xen.pauses, "it is not");
	node[0].xen.endless = false;
	pass(MS);
	settle();
	CHECK(dsm_engine_next(node[0].engine) > clock_ns, "it is");
	done("then");
	runs_at(1, 1, "then");
	end();
}

static void an_operator_unpauses(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	deliver(0, 1);
	look(1);
	deliver(1, 0);
	deliver(0, 1);
	node[2].xen.started = false;
	deliver(0, 2);
	look(2);
	CHECK(node[2].xen.pauses == 1, "paused");
	node[2].xen.pauses = 0;
	settle();
	done("place");
	CHECK(node[2].warnings == 1, "said");
	runs_at(1, 1, "there");
	end();
	begin_placed(1, 1, 2);
	node[2].xen.break_pause = -EIO;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	expect_failure(2, "Xen does not pause the guest: ");
	end();
}

/* A host without memory is lost, after each message: before it has a vCPU nobody misses it. */
static void lost_after_each_message(const void *argument)
{
	unsigned int after, n, lost, i;
	bool was_placed = false, came_back = false;

	(void)argument;
	for (lost = 1; lost < 3; lost++) {
		for (after = 0; after < 40; after++) {
			begin_placed(1, 1, 2);
			unbind(1);
			unbind(2);
			for (i = 0; i < HOSTS; i++) {
				dsm_engine_open_range(node[i].engine, 1, i == 1 ? 10 : 0);
				dsm_engine_open_range(node[i].engine, 2, i == 2 ? 10 : 0);
				dsm_engine_range_done(node[i].engine, 1);
				dsm_engine_range_done(node[i].engine, 2);
			}
			settle();
			CHECK(place(1, 1, 2) == -EINPROGRESS, "%s", node[0].error);
			look(0);
			for (n = 0; n < after && !node[0].placed;) {
				unsigned int before = n;

				for (i = 0; i < HOSTS * HOSTS && n < after; i++)
					if (i / HOSTS != i % HOSTS && deliver(i / HOSTS, i % HOSTS)) {
						look(i % HOSTS);
						n++;
					}
				if (n == before)
					break;
			}
			if (node[0].placed) {
				end();
				was_placed = true;
				break;
			}
			for (i = 0; i < HOSTS; i++)
				if (i != lost)
					part(i, lost);
			settle();
			for (i = 0; i < HOSTS; i++) {
				if (i == lost)
					continue;
				CHECK(!node[i].failure[0] && !node[i].xen.pauses, "after %u: host %u: %s", after,
				      i, node[i].failure);
				CHECK(dsm_engine_where(node[i].engine, 1) == (lost == 1 ? 0 : 1) &&
				      node[i].xen.elsewhere[1] == (i != (lost == 1 ? 0 : 1)), "after %u: host %u",
				      after, i);
			}
			CHECK(node[0].placed == 1, "after %u: it has ended", after);
			CHECK(lost == 2 ? !node[0].error[0] : !strncmp(node[0].error, "unreachable host beta", 21),
			      "after %u: '%s'", after, node[0].error);
			/* Whose home is gone stands still no longer; a table brings it back. */
			if (lost == 1) {
				uint8_t table[VCPUS] = { 0 };

				CHECK(!node[1].failure[0] && !node[1].xen.pauses, "%s", node[1].failure);
				CHECK(!dsm_engine_where(node[1].engine, 1) && node[1].xen.elsewhere[1], "at home");
				came_back |= node[1].xen.places > 1;
				join(0, 1);
				join(1, 2);
				CHECK(!dsm_engine_set_table(node[1].engine, table), "the table");
				dsm_engine_ready(node[0].engine, 1, 0);
				CHECK(place(1, 1, 2) == -EINPROGRESS, "%s", node[0].error);
				settle();
				done("after all");
				runs_at(1, 1, "after all");
				runs_at(2, 1, "after all");
			}
			end();
		}
	}
	CHECK(was_placed && came_back, "all steps");
}

/* And with one it is a loss, which names it. */
static void lost_with_vcpus(const void *argument)
{
	(void)argument;
	begin_placed(1, 2, 2);
	unbind(1);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("place");
	CHECK(place(2, 2, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	deliver(0, 1);
	part(0, 1);
	expect_failure(0, "host beta is lost (cut off): vCPUs 1 ran there");
	CHECK(node[0].placed == 1 && strstr(node[0].error, "internal the VM has failed, or ended: host beta"), "%s",
	      node[0].error);
	end();
}

/* Who lives and does not answer, at each question. */
static void hosts_that_do_not_answer(const void *argument)
{
	static const struct {
		unsigned int type, from;	/* what does not come */
		const char *words;
	} table[] = {
		{ DSM_VCPU_QUIET, 1, "host beta is lost (it lives, and does not say that the guest stands still" },
		{ DSM_VCPU_QUIET, 2, "host gamma is lost (it lives, and does not say that the guest stands still" },
		{ DSM_VCPU_PLACED, 1, "host beta is lost (it lives, and does not say that it has placed a vCPU" },
		{ DSM_VCPU_PLACED, 2, "host gamma is lost (it lives, and does not say that it has placed a vCPU" },
	};
	unsigned int i, k, n;

	(void)argument;
	for (i = 0; i < NR(table); i++) {
		answer_ns = 40000 * MS;
		begin_placed(1, 1, 2);
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		for (n = 0; n < 20; n++) {
			for (k = 0; k < HOSTS; k++)
				look(k);
			for (k = 0; k < HOSTS * HOSTS; k++)
				if (k / HOSTS != k % HOSTS && !(k / HOSTS == table[i].from && !(k % HOSTS) &&
								next_type(k / HOSTS, 0) == table[i].type))
					deliver(k / HOSTS, k % HOSTS);
		}
		CHECK(next_type(table[i].from, 0) == table[i].type, "%s", dsm_type_name(table[i].type));
		pass(79000 * MS);
		CHECK(!node[0].failure[0] && !node[0].placed, "%s", node[0].failure);
		pass(1001 * MS);
		expect_failure(0, table[i].words);
		end();
	}
	answer_ns = 0;
}

/* Two hosts that should talk to each other. */
static void hosts_apart(const void *argument)
{
	(void)argument;
	begin_placed(1, 2, 2);
	unbind(1);
	unbind(2);
	dsm_engine_open_range(node[1].engine, 2, 0);
	dsm_engine_range_done(node[1].engine, 2);
	dsm_engine_open_range(node[2].engine, 1, 0);
	dsm_engine_range_done(node[2].engine, 1);
	part(1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("one of them");
	runs_at(1, 1, "one of them");
	CHECK(place(2, 2, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(node[0].placed == 1 && (!strcmp(node[0].error, "not-ready host beta is not connected with host gamma") ||
				      !strcmp(node[0].error, "not-ready host gamma is not connected with host beta")),
	      "%s", node[0].error);
	runs_at(2, 0, "it stays");
	/* In the middle of it: both say FENCE. */
	CHECK(place(2, 2, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	deliver(0, 1);
	look(1);
	join(1, 2);
	settle();
	done("they are");
	runs_at(2, 2, "they are");
	end();
}

/* All is down, and something is kept back while a vCPU moves: no end before it is there. */
static void halted_meanwhile(const void *argument)
{
	(void)argument;
	begin_placed(1, 1, 2);
	settle();
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	says(0, event(1, DSM_EVENT_INIT | DSM_EVENT_SIPI, 9));
	settle();
	active(1, true, 1);
	active(0, false, 0);
	settle();
	is_shut(false, "vCPU 1 runs");
	CHECK(played_says(&node[1].xen, &(struct dsm_vcpu_msg){ .type = DSM_VCPU_IDLE, .number = 1 }), "room");
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	is_shut(true, "none is up");
	end();
	/* One is started by what waits. */
	begin_placed(1, 1, 2);
	settle();
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	deliver(0, 1);
	look(1);
	deliver(1, 0);
	deliver(0, 1);
	says(0, event(1, DSM_EVENT_INIT | DSM_EVENT_SIPI, 9));
	active(0, false, 0);
	settle();
	done("place");
	is_shut(false, "it was started");
	active(1, true, 1);
	active(1, false, 1);
	settle();
	is_shut(true, "and is down");
	end();
	/* Events before and after: counts are those of a round. */
	begin_placed(1, 1, 2);
	settle();
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	for (unsigned int i = 1; i <= 3; i++)
		says(0, event(1, 0, 0x40 + i));
	settle();
	active(1, false, 3);
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	says(0, event(1, DSM_EVENT_SIPI, 9));
	active(0, false, 0);
	settle();
	is_shut(false, "it is started");
	active(1, false, 4);
	settle();
	is_shut(true, "none is up");
	end();
	/* A host that is there anew has counted nothing: who has, does not wait for it for ever. */
	begin_placed(1, 1, 2);
	settle();
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	says(0, event(1, 0, 0x40));
	says(1, event(0, 0, 0x40));
	settle();
	for (unsigned int i = 0; i < 3; i++) {
		active(1, false, 1);
		settle();
	}
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	unbind(1);
	dsm_engine_open_range(node[0].engine, 1, 0);
	dsm_engine_range_done(node[0].engine, 1);
	dsm_engine_open_range(node[2].engine, 1, 0);
	dsm_engine_range_done(node[2].engine, 1);
	part(0, 1);
	part(1, 2);
	begin_alone(1);
	join(0, 1);
	join(1, 2);
	dsm_engine_ready(node[0].engine, 1, 0);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("anew");
	active(0, false, 1);
	settle();
	is_shut(true, "none is up");
	end();
}

#define STOP(n, hosts) { .type = DSM_VCPU_STOP, .number = n, .word = { hosts } }
#define FENCE(n) { .type = DSM_VCPU_FENCE, .number = n }
#define QUIET(n) { .type = DSM_VCPU_QUIET, .number = n }
#define PLACE(n, v, ...) { .type = DSM_VCPU_PLACE, .number = n, .vcpu = v, .word = { __VA_ARGS__ } }
#define PLACED(n, v, ...) { .type = DSM_VCPU_PLACED, .number = n, .vcpu = v, .word = { __VA_ARGS__ } }
#define GO(n) { .type = DSM_VCPU_GO, .number = n }

static const char not_now[] = "not in this state", not_asked[] = "nobody waits for";

/* Nothing goes on: what must not be said then, to whom, by whom. */
static void lies(const void *argument)
{
	static const struct {
		struct dsm_vcpu_msg msg;
		unsigned int from, to;
		const char *words;
	} table[] = {
		{ STOP(1, 3), 1, 0, "only the home says so" }, { STOP(1, 3), 2, 1, "only the home says so" },
		{ PLACE(1, 1, 1), 2, 1, "only the home says so" }, { GO(1), 2, 1, "only the home says so" },
		{ STOP(0, 3), 0, 1, not_now }, { STOP(1ull << 32, 3), 0, 1, not_now },
		{ STOP(1, 0xf), 0, 1, "no vCPU that is there" }, { STOP(1, 2), 0, 1, "no vCPU that is there" },
		{ FENCE(1), 1, 0, not_now }, { FENCE(0), 2, 1, not_now }, { FENCE(1ull << 32), 2, 1, not_now },
		{ PLACE(1, 1, 1), 0, 1, not_now }, { GO(1), 0, 1, not_now }, { GO(0), 0, 1, not_now },
		{ QUIET(1), 0, 1, "only the home says so" }, { PLACED(1, 1), 2, 1, "only the home says so" },
		{ QUIET(0), 1, 0, not_asked }, { QUIET(1), 1, 0, not_asked }, { PLACED(0, 1), 1, 0, not_asked },
		{ PLACED(0, 4), 1, 0, "no vCPU that is there" },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(table); i++) {
		begin_placed(1, 1, 2);
		settle();
		lie(table[i].from, table[i].to, table[i].msg, table[i].words);
		CHECK(!node[table[i].to].xen.pauses && !node[table[i].to].xen.places, "%u: something was done", i);
		end();
	}
}

/* Host 1 has been told STOP, and no more. */
static void stopped(void)
{
	begin_placed(1, 1, 2);
	settle();
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	CHECK(next_type(0, 1) == DSM_VCPU_STOP && deliver(0, 1), "STOP");
	look(1);
}

/* Up to a message of that type from @from to @to, which is the next one there. */
static void up_to(unsigned int from, unsigned int to, unsigned int type)
{
	unsigned int n, k;

	for (n = 0; n < 100 && next_type(from, to) != type; n++)
		for (k = 0; k < HOSTS * HOSTS; k++) {
			for (unsigned int i = 0; i < HOSTS; i++)
				look(i);
			if (next_type(from, to) == type)
				return;
			if (k / HOSTS != k % HOSTS)
				deliver(k / HOSTS, k % HOSTS);
		}
	CHECK(next_type(from, to) == type, "no %s", dsm_type_name(type));
}

static void lies_in_a_state(const void *argument)
{
	static const struct {
		struct dsm_vcpu_msg msg;
		unsigned int from;
		const char *words;
	} to_who_is_stopped[] = {
		{ STOP(2, 3), 0, not_now },		/* twice */
		{ FENCE(2), 0, not_now },		/* too early: ours is the first */
		{ FENCE(1), 2, not_asked },		/* it has no vCPU, and gets none */
		{ PLACE(1, 1, 1), 0, not_now },		/* before it was said to be quiet */
		{ GO(2), 0, not_now },
	}, to_who_is_quiet[] = {
		{ PLACE(1, 0, 0), 0, "no vCPU that is there" },
		{ PLACE(1, 4, 0), 0, "no vCPU that is there" },
		{ PLACE(1, 1, 2), 0, "no vCPU that is there" },
		{ PLACE(1, 3, 1), 0, "no vCPU that is there" },
		{ PLACE(1, 1, 77), 0, "no vCPU that is there" },
		{ PLACE(2, 1, 1), 0, not_now },
		{ PLACE(1, 3, 2, 4096), 0, "a reserved byte" },
		{ PLACE(1, 3, 2, 0, 3), 0, "a reserved byte" },
		{ FENCE(1), 0, not_now },		/* twice */
	}, to_home_that_stops[] = {
		{ QUIET(2), 1, not_asked },
		{ QUIET(0), 1, not_asked },
		{ PLACED(1, 1), 1, not_asked },
		{ { .type = DSM_VCPU_QUIET, .number = 1, .flags = 1, .vcpu = 0 }, 1, "no vCPU that is there" },
		{ { .type = DSM_VCPU_QUIET, .number = 1, .word = { 8 } }, 1, "from a host that is not there" },
		{ FENCE(1), 2, not_asked },
	}, to_home_that_places[] = {
		{ QUIET(1), 1, not_asked },
		{ PLACED(1, 2), 1, not_asked },		/* another one */
		{ PLACED(2, 1), 1, not_asked },
		{ PLACED(1, 1, 4096), 1, "a reserved byte" },	/* that was told none */
		{ PLACED(1, 1, 4096), 2, "a reserved byte" },
		{ { .type = DSM_VCPU_PLACED, .number = 1, .vcpu = 1, .flags = 1, .word = { 4096 } }, 1, "a reserved byte" },
	};
	unsigned int i;

	(void)argument;
	for (i = 0; i < NR(to_who_is_stopped); i++) {
		stopped();
		lie(to_who_is_stopped[i].from, 1, to_who_is_stopped[i].msg, to_who_is_stopped[i].words);
		end();
	}
	for (i = 0; i < NR(to_who_is_quiet); i++) {
		stopped();
		up_to(0, 1, DSM_VCPU_PLACE);
		lie(to_who_is_quiet[i].from, 1, to_who_is_quiet[i].msg, to_who_is_quiet[i].words);
		end();
	}
	for (i = 0; i < NR(to_home_that_stops); i++) {
		stopped();
		lie(to_home_that_stops[i].from, 0, to_home_that_stops[i].msg, to_home_that_stops[i].words);
		end();
	}
	for (i = 0; i < NR(to_home_that_places); i++) {
		stopped();
		up_to(1, 0, DSM_VCPU_PLACED);
		lie(to_home_that_places[i].from, 0, to_home_that_places[i].msg, to_home_that_places[i].words);
		end();
	}
	/* Twice the same. */
	stopped();
	up_to(1, 0, DSM_VCPU_QUIET);
	CHECK(deliver(1, 0), "QUIET");
	lie(1, 0, (struct dsm_vcpu_msg)QUIET(1), not_asked);
	end();
	stopped();
	up_to(1, 0, DSM_VCPU_PLACED);
	CHECK(deliver(1, 0), "PLACED");
	lie(1, 0, (struct dsm_vcpu_msg)PLACED(1, 1), not_asked);
	end();
	/* It says that it has placed one, and is not asked before who runs it has given it away. */
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	up_to(0, 1, DSM_VCPU_PLACE);
	lie(2, 0, (struct dsm_vcpu_msg)PLACED(2, 1), not_asked);
	end();
	/* FENCE before our STOP: of who gets none; of a round that is not the next one. */
	begin_placed(1, 1, 2);
	lie(2, 1, (struct dsm_vcpu_msg)FENCE(1), NULL);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	expect_failure(1, "host gamma is lost (it breaks the protocol: FENCE");
	end();
	begin_placed(1, 1, 2);
	lie(0, 1, (struct dsm_vcpu_msg)FENCE(7), NULL);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	expect_failure(1, "host alpha is lost (it breaks the protocol: FENCE");
	end();
	/* Old ones. */
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	lie(0, 1, (struct dsm_vcpu_msg)STOP(1, 3), not_now);
	end();
}

/* Where vCPUs run, as the home tells a host that is new. */
static void tables(const void *argument)
{
	static const uint8_t good[VCPUS] = { 0, 0, 1, 0 }, bad[][VCPUS] = {
		{ 1, 0, 0, 0 }, { 0, 2, 0, 0 }, { 0, 0, 0, 2 }, { 0, 0, 0, 0xff },
	};
	unsigned int i;

	(void)argument;
	begin_placed(1, 1, 2);
	for (i = 0; i < NR(bad); i++)
		CHECK(dsm_engine_set_table(node[2].engine, bad[i]) == -DSM_E_VCPU, "%u", i);
	CHECK(!node[2].xen.places, "nothing was done");
	CHECK(!dsm_engine_set_table(node[2].engine, good), "good");
	CHECK(dsm_engine_where(node[2].engine, 2) == 1 && node[2].xen.places == 1 && node[2].xen.place[2] == 1 &&
	      !node[2].xen.pauses, "placed");
	CHECK(!dsm_engine_set_table(node[2].engine, good) && node[2].xen.places == 1, "once");
	node[2].xen.break_place = -EIO;
	CHECK(dsm_engine_set_table(node[2].engine, (const uint8_t[]){ 0, 1, 1, 0 }) == -EIO &&
	      dsm_engine_where(node[2].engine, 1) == 0 && !node[2].xen.pauses, "Xen does not");
	node[2].xen.break_pause = -EIO;
	CHECK(dsm_engine_set_table(node[2].engine, (const uint8_t[]){ 0, 1, 1, 0 }) == -EIO, "nor pauses");
	end();
}

/* Interrupts from all to all while vCPUs go to and fro: each comes once, or is put together. */
static void chance(const void *argument)
{
	uint64_t sent[VCPUS] = { 0 }, came[VCPUS] = { 0 };
	unsigned int seen[HOSTS] = { 0 }, n, i, moves = 0, meanwhile = 0;

	(void)argument;
	begin_placed(1, 2, 2);
	credits = 2;
	for (n = 0; n < 60000; n++) {
		unsigned int a = (unsigned int)dice_below(HOSTS), v = (unsigned int)dice_below(VCPUS);
		unsigned int bit = (unsigned int)dice_below(64);
		struct dsm_vcpu_msg m = event(v, 0, 128 + bit);

		switch (dice_below(8)) {
		case 0:
		case 1:
			/* Xen says so of ghosts only, and no vCPU of a slice that stands still sends. */
			for (i = 0; i < VCPUS && node[a].xen.elsewhere[i]; i++)
				;
			if (i < VCPUS && node[a].xen.elsewhere[v] && !node[a].xen.pauses &&
			    played_says(&node[a].xen, &m))
				sent[v] |= 1ull << bit;
			break;
		case 2:
			look(a);
			break;
		case 3:
			v = 1 + (unsigned int)dice_below(3);
			if (!dsm_engine_is_placing(node[0].engine))
				place(dice_below(2) ? 0 : places[v], v, 1);
			break;
		default:
			deliver(a, (unsigned int)dice_below(HOSTS));
		}
		meanwhile += dsm_engine_is_placing(node[0].engine);
		for (i = 0; i < HOSTS; i++)
			for (; seen[i] < node[i].xen.nr_log; seen[i]++) {
				const struct dsm_vcpu_msg *l = &node[i].xen.log[seen[i] % PLAYED_LOG];

				CHECK(l->type == DSM_VCPU_EVENT, "%s", dsm_type_name(l->type));
				came[l->vcpu] |= l->word[2];
			}
		if (n % 500 != 499)
			continue;
		settle();
		for (i = 0; i < HOSTS; i++)
			for (; seen[i] < node[i].xen.nr_log; seen[i]++)
				came[node[i].xen.log[seen[i] % PLAYED_LOG].vcpu] |=
					node[i].xen.log[seen[i] % PLAYED_LOG].word[2];
		CHECK(!memcmp(sent, came, sizeof(sent)), "round %u", n);
		for (v = 1; v < VCPUS; v++)
			runs_at(v, dsm_engine_where(node[0].engine, v), "round");
		moves += node[0].xen.places;
		node[0].xen.places = 0;
		memset(sent, 0, sizeof(sent));
		memset(came, 0, sizeof(came));
	}
	CHECK(moves > 100 && meanwhile > 1000, "%u moves, %u steps", moves, meanwhile);
	end();
}

/* Host 2 has vCPU 3 and no memory, host 1 has neither, and is about to get vCPU 1. */
static void one_at_gamma(void)
{
	unsigned int i;

	begin_placed(1, 1, 2);
	unbind(1);
	unbind(2);
	for (i = 0; i < HOSTS; i++) {
		dsm_engine_open_range(node[i].engine, 1, i == 1 ? 10 : 0);
		dsm_engine_open_range(node[i].engine, 2, i == 2 ? 10 : 0);
		dsm_engine_range_done(node[i].engine, 1);
		dsm_engine_range_done(node[i].engine, 2);
	}
	CHECK(place(2, 3, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("gamma has one");
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
}

/* So many messages, in turn.  Return: the vCPU has been placed before. */
static bool deliver_some(unsigned int nr)
{
	unsigned int n, i, before;

	for (n = 0; n < nr && !node[0].placed;) {
		before = n;
		for (i = 0; i < HOSTS * HOSTS && n < nr; i++)
			if (i / HOSTS != i % HOSTS && deliver(i / HOSTS, i % HOSTS)) {
				look(i % HOSTS);
				n++;
			}
		if (n == before)
			break;
	}
	return node[0].placed;
}

/*
 * The home loses the host that is to get a vCPU, after each message, and a third host with
 * vCPUs does not: that one waits for no FENCE that never comes.
 */
static void one_cable_is_cut(const void *argument)
{
	unsigned int after, i;
	bool placed = false;

	(void)argument;
	for (after = 0; after < 60 && !placed; after++) {
		answer_ns = 40000 * MS;
		one_at_gamma();
		placed = deliver_some(after);
		if (!placed) {
			part(0, 1);
			settle();
			pass(200000 * MS);
			settle();
			CHECK(node[0].placed == 1 && !strncmp(node[0].error, "unreachable host beta", 21),
			      "after %u: %u, '%s'", after, node[0].placed, node[0].error);
			for (i = 0; i < HOSTS; i++)
				CHECK(!node[i].failure[0] && !node[i].xen.pauses &&
				      !dsm_engine_where(node[i].engine, 1) && dsm_engine_where(node[i].engine, 3) == 2,
				      "after %u: host %u: '%s'", after, i, node[i].failure);
			join(0, 1);
			dsm_engine_ready(node[0].engine, 1, 0);
			CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
			settle();
			done("after all");
			runs_at(1, 1, "after all");
			runs_at(3, 2, "after all");
		}
		end();
	}
	CHECK(placed && after > 10, "all steps");
	/* It was cut before STOP was there, and the FENCE of the other one is. */
	one_at_gamma();
	CHECK(deliver(0, 2), "STOP");
	look(2);
	CHECK(next_type(2, 1) == DSM_VCPU_FENCE && deliver(2, 1), "FENCE");
	CHECK(!next_type(1, 2), "it knows of no round, and its home may say so yet");
	part(0, 1);
	settle();
	pass(200000 * MS);
	CHECK(node[0].placed == 1 && !strncmp(node[0].error, "unreachable host beta", 21), "%u, '%s'", node[0].placed,
	      node[0].error);
	runs_at(1, 0, "it stays");
	end();
	answer_ns = 0;
}

/* The two others lose each other: they never have vCPUs both, and go on. */
static void two_others_part(const void *argument)
{
	unsigned int after, i, refused = 0, failed = 0;
	bool placed = false;

	(void)argument;
	for (after = 0; after < 60 && !placed; after++) {
		one_at_gamma();
		placed = deliver_some(after);
		if (!placed) {
			part(1, 2);
			settle();
			CHECK(node[0].placed == 1, "after %u: it has ended", after);
			if (!strncmp(node[0].error, "not-ready host ", 15)) {
				for (i = 0; i < HOSTS; i++)
					CHECK(!node[i].failure[0] && !node[i].xen.pauses &&
					      !dsm_engine_where(node[i].engine, 1), "after %u: host %u: '%s'",
					      after, i, node[i].failure);
				refused++;
			} else {
				CHECK(strstr(node[1].failure, "host gamma is lost (the connection with it ended while") &&
				      strstr(node[2].failure, "host beta is lost (the connection with it ended while"),
				      "after %u: '%s', '%s', '%s'", after, node[0].error, node[1].failure,
				      node[2].failure);
				failed++;
			}
		}
		end();
	}
	CHECK(placed && refused && failed, "all steps: %u, %u", refused, failed);
}

/* And have a new connection at once: what was said on the old one is said again. */
static void two_others_meet_again(const void *argument)
{
	unsigned int after;
	bool placed = false;

	(void)argument;
	for (after = 0; after < 60 && !placed; after++) {
		one_at_gamma();
		placed = deliver_some(after);
		if (!placed) {
			part(1, 2);
			join(1, 2);
			settle();
			done("all the same");
			runs_at(1, 1, "there");
			runs_at(3, 2, "as it was");
			/* Counts of EVENTs are those of the new connection, too. */
			says(1, event(3, 0, 0x40));
			settle();
			logged(2, node[2].xen.nr_log - 1, DSM_VCPU_EVENT);
			CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
			settle();
			done("home");
		}
		end();
	}
	CHECK(placed, "all steps");
}

/*
 * A host says that it is quiet, and has a call that is at work at another one, or whose result is on
 * its way: it is that one that is named.
 */
static void quiet_with_a_call(const void *argument)
{
	bool is_done;

	(void)argument;
	for (is_done = false;; is_done = true) {
		begin_placed(1, 1, 2);
		settle();
		CHECK(place(2, 3, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		done("both");
		node[1].xen.break_call = -EAGAIN;
		says(2, a_call(3, 1, BIND_IPI, 1, 1));
		settle();
		CHECK(node[2].xen.asks[3].type && !node[1].failure[0], "it waits");
		CHECK(place(0, 3, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		CHECK(!node[0].placed && node[0].xen.pauses, "all wait for it");
		if (is_done) {
			credits = 0;
			node[1].xen.break_call = 0;
			pass(64 * MS);
			CHECK(!next_type(1, 2), "the result has no credit");
		}
		lie(2, 0, (struct dsm_vcpu_msg)QUIET(3), NULL);
		look(0);
		CHECK(next_type(0, 2) == DSM_VCPU_PLACE, "who runs it first");
		lose_channel(0, 2);
		lie(2, 0, (struct dsm_vcpu_msg)PLACED(3, 3), NULL);
		look(0);
		CHECK(next_type(0, 1) == DSM_VCPU_PLACE && deliver(0, 1), "then the others");
		expect_failure(1, "host gamma is lost (it breaks the protocol: CALL of vCPU 3");
		end();
		if (is_done)
			break;
	}
}

/* A host may try for seconds; it is not lost before, however soon an answer is wanted. */
static void who_tries_has_time(const void *argument)
{
	(void)argument;
	answer_ns = 100 * MS;
	begin_placed(1, 1, 2);
	node[0].xen.info[1] = 25 * DSM_PAGE_BYTES;
	node[0].xen.page[25].state = DSM_XEN_STATE_I;
	node[1].xen.no_foreign = true;
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	pass(4900 * MS);
	settle();
	CHECK(!node[0].placed && !node[0].failure[0], "%s", node[0].failure);
	pass(200 * MS);
	settle();
	CHECK(node[0].placed == 1 && !strncmp(node[0].error, "vcpu-info vCPU 1 runs at host beta, ", 36), "%s",
	      node[0].error);
	end();
	/* No limit: for ever. */
	answer_ns = 0;
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	look(0);
	pass(3600000 * MS);
	pass(3600000 * MS);
	CHECK(!node[0].placed && !node[0].failure[0], "%s", node[0].failure);
	settle();
	done("after all");
	end();
}

/* The home has a vCPU placed there again and again, with a page that can't be registered. */
static void lines_of_a_lying_home(const void *argument)
{
	unsigned int i;

	(void)argument;
	begin_placed(1, 1, 2);
	CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
	settle();
	done("place");
	node[1].warnings = 0;
	for (i = 0; i < 100; i++) {
		/* It is not at home, whatever the home says of it. */
		node[0].xen.info[1] = 0;
		node[1].xen.break_call = -EINVAL;
		CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		node[0].xen.info[1] = 3 * DSM_PAGE_BYTES;
		CHECK(place(1, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
		done("there");
	}
	CHECK(node[1].warnings == 1, "%u lines", node[1].warnings);
	pass(1001 * MS);
	node[1].xen.break_place = -EIO;
	for (i = 0; i < 100; i++) {
		CHECK(place(0, 1, 1) == -EINPROGRESS, "%s", node[0].error);
		settle();
	}
	CHECK(node[1].warnings == 2, "%u lines", node[1].warnings);
	end();
}

static const struct test_case cases[] = {
	{ "place: there and back", there_and_back, NULL },
	{ "place: several", several, NULL },
	{ "place: its vcpu_info", its_vcpu_info, NULL },
	{ "place: a vcpu_info that does not come", info_that_does_not_come, NULL },
		{ "place: a vcpu_info that can't leave", info_that_can_not_leave, NULL },
	{ "place: a vcpu_info that is given up", info_given_up, NULL },
	{ "place: refusals", refusals, NULL },
	{ "place: requests", requests, NULL },
	{ "place: two times", two_times, NULL },
	{ "place: calls under way", calls_under_way, NULL },
	{ "place: letters", letters, NULL },
	{ "place: the time of letters", time_of_letters, NULL },
	{ "place: a shutdown meanwhile", shut_down_meanwhile, NULL },
	{ "place: a shutdown before", shut_down_before, NULL },
	{ "place: an endless ring", an_endless_ring, NULL },
	{ "place: an operator unpauses", an_operator_unpauses, NULL },
	{ "place: lost after each message", lost_after_each_message, NULL },
	{ "place: lost with vCPUs", lost_with_vcpus, NULL },
	{ "place: hosts that do not answer", hosts_that_do_not_answer, NULL },
	{ "place: hosts apart", hosts_apart, NULL },
	{ "place: halted meanwhile", halted_meanwhile, NULL },
	{ "place: lies", lies, NULL },
	{ "place: lies in a state", lies_in_a_state, NULL },
	{ "place: tables", tables, NULL },
	{ "place: one cable is cut", one_cable_is_cut, NULL },
	{ "place: two others part", two_others_part, NULL },
	{ "place: two others meet again", two_others_meet_again, NULL },
	{ "place: quiet with a call", quiet_with_a_call, NULL },
	{ "place: who tries has time", who_tries_has_time, NULL },
	{ "place: lines of a lying home", lines_of_a_lying_home, NULL },
	{ "place: chance", chance, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
