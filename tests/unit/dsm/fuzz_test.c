// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that lie all the time, and a caller that does anything at any time:
 * whatever has come before, an error changes nothing, the page keeps its rules
 * and the actions stay within their bounds.  Most values are near those that
 * are right, so that the lies get far.
 */
#include "case.h"
#include "dice.h"
#include "page.h"
#include "token.h"

#define ROUNDS	400000

static uint32_t near_txn(const struct dsm_page *page)
{
	switch (dice_below(6)) {
	case 0:
		return 0;
	case 1:
		return page->grant;
	case 2:
		return page->dir.grant;
	case 3:
		return page->recall_txn;
	case 4:
		return 1 + dice_below(5);
	default:
		return page->dir.txn;
	}
}

static struct dsm_event any_event(const struct dsm_vm *vm,
				  const struct dsm_page *page)
{
	struct dsm_event e = {
		.type = dice_below(3) ? DSM_EV_MESSAGE :
			(uint8_t)dice_below(DSM_NR_EVENTS + 1),
		.from = (uint8_t)dice_below(vm->nr_hosts + 1u),
		.result = (uint8_t)dice_below(DSM_NR_RESULTS + 1),
		.flags = dice_below(2) ? 0 : dice_below(4) ? (uint8_t)dice_below(16) : DSM_F_TOOL,
		.write = dice_below(2),
		.msg = {
			.type = (uint8_t)dice_below(DSM_NR_TYPES + 1),
			.flags = (uint8_t)(dice_below(2) ? 0 : 1u << dice_below(5)),
			.reason = dice_below(2) ? 0 :
				  (uint8_t)dice_below(DSM_NR_REASONS + 1),
			.epoch = dice_below(50) ? 1 : 2,
			.txn = near_txn(page),
			.gfn = dice_below(50) ? page->gfn : dice(),
		},
	};

	if (page->operation && dice_below(4)) {
		e.type = DSM_EV_RESULT;
		e.result = dice_below(3) ? DSM_OP_DONE : e.result;
	}
	/* The home is who a holder hears of. */
	if (page->home != vm->self && dice_below(4))
		e.from = page->home;
	/* Txn 0 where it has to be 0. */
	if (e.msg.type <= DSM_POPULATE || e.msg.type == DSM_PUTS)
		e.msg.txn = dice_below(20) ? 0 : e.msg.txn;
	return e;
}

static void one_host(unsigned int self, unsigned int nr_hosts)
{
	struct dsm_page page, before;
	struct dsm_actions out;
	struct dsm_event e;
	struct dsm_vm vm;
	unsigned int i, taken = 0, most = 0;
	const char *rule;
	int rc;

	CHECK(!dsm_vm_init(&vm, self, nr_hosts), "a VM");
	CHECK(!dsm_vm_add_range(&vm, 0, 100, 0), "a range");
	vm.leases = true;
	for (i = 0; i < nr_hosts; i++)
		if (i != self)
			CHECK(!dsm_vm_peer_up(&vm, i, 1), "a peer");
	CHECK(!dsm_page_init(&page, &vm, 7), "a page");

	for (i = 0; i < ROUNDS; i++) {
		e = any_event(&vm, &page);
		before = page;
		if (e.type == DSM_EV_HOST_LOST && e.from < nr_hosts &&
		    e.from != self && !dice_below(100))
			dsm_vm_peer_down(&vm, e.from);
		rc = dsm_step(&vm, &page, &e, &out);
		if (rc)
			CHECK(!out.nr && !memcmp(&before, &page, sizeof(page)),
			      "%s: '%s' had an effect", dsm_event_name(e.type),
			      dsm_error_name((unsigned int)-rc));
		rule = dsm_page_broken_rule(&page, &vm);
		CHECK(!rule, "round %u, %s %s: %s", i, dsm_event_name(e.type),
		      dsm_type_name(e.msg.type), rule);
		CHECK(out.nr <= DSM_MAX_ACTIONS, "%u actions", out.nr);
		taken += !rc;
		most = out.nr > most ? out.nr : most;
		/* Begin anew when all is lost, and at times. */
		if (!dice_below(200) || page.broken) {
			CHECK(!dsm_page_init(&page, &vm, 7), "a page");
			for (e.from = 0; e.from < nr_hosts; e.from++)
				if (!(vm.up >> e.from & 1) && e.from != self) {
					vm.epoch[e.from] = 0;
					vm.lost = 0;
					dsm_vm_peer_up(&vm, e.from, 1);
				}
		}
	}
	printf("%u hosts, host %u: %u of %u events taken, %u actions at most\n",
	       nr_hosts, self, taken, ROUNDS, most);
	CHECK(taken > ROUNDS / 20, "the dice are wrong");
}

static void home(const void *argument)
{
	(void)argument;
	dice_begin();
	one_host(0, 2);
	one_host(0, 3);
	one_host(0, DSM_MAX_HOSTS);
}

static void holder(const void *argument)
{
	(void)argument;
	dice_begin();
	one_host(1, 2);
	one_host(2, DSM_MAX_HOSTS);
}

static void token(const void *argument)
{
	struct dsm_vm vm;
	struct dsm_token t;
	struct dsm_actions out;
	struct dsm_msg msg = { .epoch = 1 };
	unsigned int i, k, self;

	(void)argument;
	dice_begin();
	for (self = 0; self < 2; self++) {
		CHECK(!dsm_vm_init(&vm, self, DSM_MAX_HOSTS), "a VM");
		for (i = 0; i < DSM_MAX_HOSTS; i++)
			dsm_vm_peer_up(&vm, i, 1);
		dsm_token_init(&t);
		for (i = 0; i < ROUNDS; i++) {
			msg.type = (uint8_t)(DSM_TOKEN_REQ + dice_below(3));
			switch (dice_below(12)) {
			case 0:
				dsm_token_want(&vm, &t, &out);
				break;
			case 1:
				dsm_token_free(&vm, &t, &out);
				break;
			case 2:
				k = dice_below(DSM_MAX_HOSTS);
				if (k != self)
					dsm_token_host_lost(&vm, &t, k, &out);
				break;
			default:
				dsm_token_message(&vm, &t,
						  dice_below(DSM_MAX_HOSTS),
						  &msg, &out);
			}
			CHECK(t.nr_queued < DSM_MAX_HOSTS, "the queue");
			CHECK(t.state <= DSM_TOKEN_UNWANTED, "the state");
			for (k = 0; k < t.nr_queued; k++)
				CHECK(t.queue[k] != t.holder, "has and wants it");
		}
	}
}

static const struct test_case cases[] = {
	{ "fuzz: a home", home, NULL },
	{ "fuzz: a holder", holder, NULL },
	{ "fuzz: the token", token, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
