// SPDX-License-Identifier: GPL-2.0
/*
 * The progress token: one holder, first come first served, never lost.
 */
#include "case.h"
#include "token.h"

#define HOSTS	4

static struct dsm_vm vm[HOSTS];
static struct dsm_token token[HOSTS];
static struct dsm_actions out;

static void begin(void)
{
	unsigned int h, g;

	for (h = 0; h < HOSTS; h++) {
		CHECK(!dsm_vm_init(&vm[h], h, HOSTS), "a VM");
		dsm_token_init(&token[h]);
		for (g = 0; g < HOSTS; g++)
			if (g != h)
				CHECK(!dsm_vm_peer_up(&vm[h], g, 9), "a peer");
	}
}

static int message(unsigned int to, unsigned int from, unsigned int type)
{
	struct dsm_msg msg = { .type = (uint8_t)type, .epoch = 9 };
	struct dsm_token before = token[to];
	int rc = dsm_token_message(&vm[to], &token[to], from, &msg, &out);

	if (rc)
		CHECK(!out.nr && !memcmp(&before, &token[to], sizeof(before)),
		      "an error had an effect");
	return rc;
}

/* What was said is heard, until nothing is said any more. */
static void settle(unsigned int said_by)
{
	while (out.nr) {
		unsigned int to = out.action[0].host;
		unsigned int type = out.action[0].msg.type;

		CHECK(out.nr == 1, "one message at a time");
		CHECK(!message(to, said_by, type), "%s", dsm_type_name(type));
		said_by = to;
	}
}

static void want(unsigned int h)
{
	CHECK(!dsm_token_want(&vm[h], &token[h], &out), "host %u wants it", h);
	settle(h);
}

static void release(unsigned int h)
{
	CHECK(!dsm_token_free(&vm[h], &token[h], &out), "host %u frees it", h);
	settle(h);
}

static void in_turn(const void *argument)
{
	unsigned int h, i;

	(void)argument;
	begin();
	for (h = HOSTS; h--;)
		want(h);
	for (h = HOSTS; h--;) {
		for (i = 0; i < HOSTS; i++)
			CHECK((token[i].state == DSM_TOKEN_HERE) == (i == h),
			      "host %u in the turn of %u", i, h);
		CHECK(dsm_token_want(&vm[h], &token[h], &out) == -DSM_E_NOT_NOW,
		      "twice");
		release(h);
	}
	CHECK(token[0].holder == DSM_NOBODY && !token[0].nr_queued, "free");
	CHECK(dsm_token_free(&vm[1], &token[1], &out) == -DSM_E_NOT_NOW,
	      "not here");
}

static void unwanted(const void *argument)
{
	unsigned int h;

	(void)argument;
	for (h = 0; h < 2; h++) {
		begin();
		want(3);
		want(h);
		want(2);
		release(h);		/* before it has come */
		CHECK(token[h].state == DSM_TOKEN_UNWANTED, "host %u", h);
		release(3);
		CHECK(token[2].state == DSM_TOKEN_HERE, "went on from %u", h);
		release(2);

		begin();
		want(3);
		want(h);
		release(h);
		want(h);		/* and needs it after all */
		release(3);
		CHECK(token[h].state == DSM_TOKEN_HERE, "came to %u", h);
	}
}

static void lies(const void *argument)
{
	(void)argument;
	begin();
	want(1);
	CHECK(message(0, 1, DSM_TOKEN_REQ) == -DSM_E_TOKEN, "has it");
	CHECK(message(0, 2, DSM_TOKEN_FREE) == -DSM_E_TOKEN, "has it not");
	want(2);
	CHECK(message(0, 2, DSM_TOKEN_REQ) == -DSM_E_TOKEN, "has asked");
	CHECK(message(3, 0, DSM_TOKEN_GRANT) == -DSM_E_TOKEN, "not asked");
	CHECK(message(2, 1, DSM_TOKEN_GRANT) == -DSM_E_HOME, "not its home");
	CHECK(message(1, 2, DSM_TOKEN_REQ) == -DSM_E_HOME, "not its home");
	CHECK(message(0, 0, DSM_TOKEN_REQ) == -DSM_E_PEER, "ourselves");
	CHECK(message(0, 1, DSM_GETS) == -DSM_E_HOME ||
	      message(0, 1, DSM_GETS) == -DSM_E_GFN, "not about the token");
}

static void lost(const void *argument)
{
	(void)argument;
	begin();
	want(1);
	want(2);
	want(3);
	dsm_vm_peer_down(&vm[0], 2);
	dsm_token_host_lost(&vm[0], &token[0], 2, &out);
	CHECK(!out.nr, "it only waited");
	dsm_vm_peer_down(&vm[0], 1);
	dsm_token_host_lost(&vm[0], &token[0], 1, &out);
	settle(0);
	CHECK(token[3].state == DSM_TOKEN_HERE, "the next one has it");
}

static void lose(unsigned int h, unsigned int peer)
{
	dsm_vm_peer_down(&vm[h], peer);
	dsm_token_host_lost(&vm[h], &token[h], peer, &out);
	CHECK(!out.nr, "nobody to tell");
}

/* Without its home there is no token: who has or wants it does not go on so. */
static void home_lost(const void *argument)
{
	(void)argument;
	begin();
	want(1);
	want(2);
	want(3);
	CHECK(!dsm_token_free(&vm[3], &token[3], &out), "not needed any more");
	lose(1, 0);
	lose(2, 0);
	lose(3, 0);
	CHECK(token[1].state == DSM_TOKEN_ELSEWHERE, "who had it");
	CHECK(token[2].state == DSM_TOKEN_ELSEWHERE, "who waited for it");
	CHECK(token[3].state == DSM_TOKEN_ELSEWHERE, "who did not need it");
	CHECK(dsm_token_want(&vm[1], &token[1], &out) == -DSM_E_PEER && !out.nr,
	      "there is none");
	CHECK(dsm_token_free(&vm[1], &token[1], &out) == -DSM_E_NOT_NOW, "nor here");

	begin();		/* before the token is told */
	want(1);
	want(2);
	dsm_vm_peer_down(&vm[1], 0);
	CHECK(!dsm_token_free(&vm[1], &token[1], &out) && !out.nr, "not sent");
	dsm_vm_peer_down(&vm[0], 2);
	CHECK(!message(0, 1, DSM_TOKEN_FREE) && !out.nr, "not handed out");
	dsm_token_host_lost(&vm[0], &token[0], 2, &out);
	CHECK(token[0].holder == DSM_NOBODY && !token[0].nr_queued, "free");
}

static void losses(const void *argument)
{
	struct dsm_losses counted = { 0 };
	struct dsm_page page = { .lost = true };
	unsigned int i;

	(void)argument;
	begin();
	for (i = 1; i < vm[0].max_losses; i++)
		CHECK(!dsm_losses_miss(&counted, &vm[0], &page), "loss %u", i);
	page.lost = false;
	CHECK(!dsm_losses_miss(&counted, &vm[0], &page), "not a loss");
	page.lost = true;
	CHECK(dsm_losses_miss(&counted, &vm[0], &page), "too many");
	dsm_losses_retired(&counted);
	CHECK(!dsm_losses_miss(&counted, &vm[0], &page), "from the beginning");
}

static const struct test_case cases[] = {
	{ "token: in turn", in_turn, NULL },
	{ "token: not needed when it comes", unwanted, NULL },
	{ "token: lies", lies, NULL },
	{ "token: lost hosts", lost, NULL },
	{ "token: its home is lost", home_lost, NULL },
	{ "token: losses", losses, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
