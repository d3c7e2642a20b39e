// SPDX-License-Identifier: GPL-2.0
/*
 * The stub of Xen, the channels, and what must hold in every state.
 */
#include "world.h"

#include <algorithm>
#include <utility>

/* What the core of this host knows of its peers. */
template<unsigned H, unsigned P>
const dsm_vm *World<H, P>::view(Rules<H, P> &rules, unsigned h) const
{
	dsm_vm &vm = rules.vm[h];

	vm.up = up[h];
	if (rules.may.comes_back)
		for (unsigned g = 0; g < H; g++)
			vm.epoch[g] = epoch[h][g];
	return &vm;
}

/* Is there something for host h to notice: its connection with g has ended? */
template<unsigned H, unsigned P>
bool World<H, P>::is_gone(unsigned h, unsigned g) const
{
	if (!is_up(h, g))
		return false;
	return is_dead(g) || cut[h] >> g & 1 ||
	       (!is_up(g, h) && !under_way[g][h]);
}

template<unsigned H, unsigned P>
void World<H, P>::wake(const Rules<H, P> &rules, unsigned h, unsigned p, unsigned whom)
{
	XenPage &x = xen[h][p];

	if (whom & DSM_WAKE_READERS)
		x.waiters &= uint8_t(~READER);
	if (whom & DSM_WAKE_WRITERS)
		x.waiters &= READER;
	x.met_hole |= uint8_t(ANYBODY & ~x.waiters);
	if (!x.waiters && vcpu[h].waits_for == p)
		vcpu[h].waits_for = NO_PAGE;
	for (unsigned t = 0; t < MAX_THREADS; t++)
		if (thread[t].waits_for == p && rules.host_of(t) == h &&
		    !(x.waiters & thread[t].kind))
			thread[t].waits_for = NO_PAGE;
}

/* Whoever waits for it anywhere has met a hole now. */
template<unsigned H, unsigned P>
void World<H, P>::becomes_hole(unsigned h, unsigned p)
{
	xen[h][p].state = HOLE;
	for (unsigned i = 0; i < H; i++)
		xen[i][p].met_hole = xen[i][p].ring_met_hole = ANYBODY;
}

template<unsigned H, unsigned P>
void World<H, P>::miss(unsigned h, unsigned p, uint8_t kind)
{
	xen[h][p].waiters |= kind;
	xen[h][p].ring |= kind;
	if (xen[page[h][p].home][p].state == HOLE)
		xen[h][p].ring_met_hole |= kind;
	else
		xen[h][p].ring_met_hole &= uint8_t(~kind);
}

/* Host h has written the page: whatever there is elsewhere is a write older. */
template<unsigned H, unsigned P>
void World<H, P>::new_bytes(unsigned h, unsigned p)
{
	auto older = [](uint8_t &age) { age = std::min<uint8_t>(age + 1, OLD); };

	for (unsigned i = 0; i < H; i++) {
		older(xen[i][p].age);
		older(xen[i][p].buffer);
		for (unsigned j = 0; j < H; j++)
			for (unsigned k = 0; k < under_way[i][j]; k++)
				if (channel[i][j][k].page == p)
					older(channel[i][j][k].age);
	}
	xen[h][p].age = 0;
}

/* The operation that is due, as xen/arch/x86/mm/dsm.c has to do it. */
template<unsigned H, unsigned P>
unsigned World<H, P>::result_of(const Rules<H, P> &rules, unsigned h, unsigned p,
				 Violation &wrong)
{
	XenPage &x = xen[h][p];
	unsigned operation = page[h][p].operation;
	bool takes_away = operation == DSM_OP_DOWNGRADE ||
			  operation == DSM_OP_INVALIDATE ||
			  operation == DSM_OP_DROP;
	auto need = [&](bool possible) {
		if (!possible)
			wrong = std::string("Xen refuses ") +
				dsm_operation_name(operation);
	};

	if (takes_away && x.state == HOLE)
		return DSM_OP_ABSENT;
	if (takes_away && x.pin)
		return DSM_OP_BUSY;
	if (takes_away && !rules.may.late_stores)
		empty_buffers(rules, h);
	if (x.bytes == DSM_BYTES_OUT)
		x.buffer = x.age;

	switch (operation) {
	case DSM_OP_INSTALL_S:
	case DSM_OP_INSTALL_M:
		need(x.state == NONE && x.bytes == DSM_BYTES_IN);
		x.state = operation == DSM_OP_INSTALL_S ? READ_ONLY : WRITABLE;
		x.age = x.buffer;
		break;
	case DSM_OP_ZERO_M:
		need(x.state == NONE || x.state == READ_ONLY);
		x.state = WRITABLE;
		new_bytes(h, p);
		break;
	case DSM_OP_UPGRADE:
		need(x.state == READ_ONLY);
		x.state = WRITABLE;
		break;
	case DSM_OP_DOWNGRADE:
		need(x.state == WRITABLE && x.bytes == DSM_BYTES_OUT);
		x.state = READ_ONLY;
		break;
	case DSM_OP_INVALIDATE:
		need(x.state == READ_ONLY || x.state == WRITABLE);
		x.state = NONE;
		break;
	case DSM_OP_READ:
		need(x.state == READ_ONLY && x.bytes == DSM_BYTES_OUT);
		break;
	case DSM_OP_DROP:
		becomes_hole(h, p);
		break;
	case DSM_OP_POPULATE:
		if (x.state != HOLE)
			return DSM_OP_EXISTS;
		x.state = WRITABLE;
		new_bytes(h, p);
		break;
	default:
		need(false);
	}
	return DSM_OP_DONE;
}

/* With this result, or with what comes of it. */
template<unsigned H, unsigned P>
bool World<H, P>::operate(Rules<H, P> &rules, unsigned h, unsigned p,
			  Violation &wrong, unsigned result)
{
	dsm_event event = {};
	unsigned whom = xen[h][p].wake;

	if (result == DSM_NR_RESULTS)
		result = result_of(rules, h, p, wrong);

	xen[h][p].bytes = xen[h][p].wake = 0;
	if (result == DSM_OP_DONE)
		wake(rules, h, p, whom);
	event.type = DSM_EV_RESULT;
	event.result = uint8_t(result);
	bool possible = step(rules, h, p, event, 0, wrong);
	tell_losses(rules, h, p, wrong);
	return possible;
}

/* As soon as no result is due, and before anything else. */
template<unsigned H, unsigned P>
void World<H, P>::tell_losses(Rules<H, P> &rules, unsigned h, unsigned p,
			      Violation &wrong)
{
	for (unsigned g = 0; g < H; g++) {
		dsm_event event = {};

		if (page[h][p].operation || failed || !wrong.empty())
			return;
		if (!(xen[h][p].untold >> g & 1))
			continue;
		event.type = DSM_EV_HOST_LOST;
		event.from = uint8_t(g);
		xen[h][p].untold &= uint16_t(~(1u << g));
		step(rules, h, p, event, 0, wrong);
	}
}

template<unsigned H, unsigned P>
void World<H, P>::send(unsigned h, unsigned p, const dsm_action &action,
		       Violation &wrong)
{
	const dsm_msg &m = action.msg;
	uint8_t &n = under_way[h][action.host];

	if (!(up[h] >> action.host & 1))
		wrong = "a message to a host that is known to be gone";
	if (is_dead(action.host) || cut[h] >> action.host & 1 ||
	    !is_up(action.host, h))
		return;
	if (n == CHANNEL) {
		wrong = "more messages under way than a channel holds";
		return;
	}
	if (p != NO_PAGE && m.reason == DSM_R_HOLE && xen[h][p].state != HOLE)
		wrong = "says that there is a hole, and there is none";
	bool bytes = dsm_type_has_page(m.type);
	channel[h][action.host][n++] = {
		m.type, m.flags, m.reason, uint8_t(p),
		bytes ? xen[h][p].buffer : OLD, uint8_t(m.epoch), m.txn,
	};
}

template<unsigned H, unsigned P> bool World<H, P>::has_good_copy(unsigned p) const
{
	for (unsigned h = 0; h < H; h++)
		if (!is_dead(h) &&
		    ((!xen[h][p].age && (xen[h][p].state == READ_ONLY ||
					 xen[h][p].state == WRITABLE)) ||
		     (!xen[h][p].buffer && page[h][p].dir.bytes)))
			return true;
	return false;
}

/* Has host h a reason to stop the VM? */
template<unsigned H, unsigned P>
void World<H, P>::check_failure(const Rules<H, P> &rules, unsigned h, unsigned p,
				const dsm_action &action, Violation &wrong) const
{
	unsigned home = rules.home[p];

	switch (action.reason) {
	case DSM_R_PRIVATE:
		if (page[home][p].dir.mode != DSM_MODE_PRIVATE)
			wrong = "the VM fails for a page that is not private";
		break;
	case DSM_R_BROKEN:
		if (action.host != h || !rules.may.broken)
			wrong = "the VM fails, and no operation has failed";
		break;
	case DSM_R_LOST:
		if (std::any_of(cut, cut + H, [](auto c) { return c; }))
			break;	/* there may be good copies beyond the cut */
		if (!dead)
			wrong = "the VM fails, and nothing has happened";
		else if (!(dead >> home & 1) && has_good_copy(p))
			wrong = "the VM fails for a page that is not lost";
		break;
	default:
		wrong = "the VM fails, and nobody knows why";
	}
}

template<unsigned H, unsigned P>
void World<H, P>::act(Rules<H, P> &rules, unsigned h, unsigned p,
		      const dsm_actions &actions, uint8_t age, Violation &wrong)
{
	for (unsigned i = 0; i < actions.nr; i++) {
		const dsm_action &a = actions.action[i];
		switch (a.type) {
		case DSM_ACT_TAKE:
			xen[h][p].buffer = age;
			break;
		case DSM_ACT_SEND:
			send(h, p, a, wrong);
			break;
		case DSM_ACT_WAKE:
			if (a.wake & DSM_WAKE_HOLE &&
			    xen[h][p].waiters & ~xen[h][p].met_hole)
				wrong = "an access finds no memory, and there was some "
					"ever since it began";
			wake(rules, h, p, a.wake);
			break;
		case DSM_ACT_RETRY:
			xen[h][p].retry = true;
			break;
		case DSM_ACT_FINISHED:
			break;
		case DSM_ACT_STAYS:
			/*
			 * An access at the home is one that a vCPU there could make:
			 * nothing new, as long as the home has the page alone while it is
			 * private, which dsm_page_broken_rule() says.
			 */
			if (rules.home[p] == h || page[h][p].state != DSM_INVALID)
				wrong = "a page that is here is used at its home";
			wake(rules, h, p, DSM_WAKE_ALL);
			break;
		case DSM_ACT_FAIL:
			failed = true;
			check_failure(rules, h, p, a, wrong);
			if (i + 1 != actions.nr)
				wrong = "something after the end";
			break;
		case DSM_ACT_OPERATION:
			if (i + 1 != actions.nr)
				wrong = "an operation that is not the last action";
			xen[h][p].bytes = a.bytes;
			xen[h][p].wake = a.wake;
			if (!rules.may.split && wrong.empty())
				operate(rules, h, p, wrong);
			break;
		default:
			wrong = "no such action";
		}
	}
}

/* False: the core says "not now".  A message is never "not now". */
template<unsigned H, unsigned P>
bool World<H, P>::step(Rules<H, P> &rules, unsigned h, unsigned p,
		       dsm_event event, uint8_t age, Violation &wrong)
{
	dsm_actions actions;
	const char *rule;

	event.msg.gfn = p;
	int rc = dsm_step(view(rules, h), &page[h][p], &event, &actions);
	if (rc == -DSM_E_NOT_NOW && event.type != DSM_EV_MESSAGE)
		return false;
	if (rc) {
		wrong = std::string(dsm_event_name(event.type)) + ": " +
			dsm_error_name(unsigned(-rc));
		return true;
	}
	if (actions.nr > DSM_MAX_ACTIONS)
		wrong = "too many actions";
	rule = dsm_page_broken_rule(&page[h][p], &rules.vm[h]);
	if (rule && !rules.may.litmus)
		wrong = rule;
	if (wrong.empty())
		act(rules, h, p, actions, age, wrong);
	return true;
}

static dsm_event simple(dsm_event_type type)
{
	dsm_event event = {};

	event.type = uint8_t(type);
	return event;
}

static dsm_event a_miss(uint8_t kind, unsigned flags)
{
	dsm_event event = simple(DSM_EV_MISS);

	event.write = kind != READER;
	event.flags = uint8_t(flags | (kind == ZEROER ? DSM_F_NODATA : 0));
	return event;
}

/* The core's caller takes a miss from the ring. */
template<unsigned H, unsigned P>
bool World<H, P>::consume(Rules<H, P> &rules, const Move &move, Violation &wrong)
{
	unsigned h = move.host, p = move.page, flags = 0;
	dsm_actions out;

	view(rules, h);
	/* A vCPU that runs again has no use for the token. */
	if (rules.may.program && vcpu[h].waits_for == p) {
		bool need = dsm_losses_miss(&vcpu[h].losses, &rules.vm[h],
					    &page[h][p]);
		/* Without the token's home it goes on without. */
		if (need && token[h].state != DSM_TOKEN_HERE &&
		    dsm_token_want(&rules.vm[h], &token[h], &out) !=
		    -DSM_E_PEER) {
			for (unsigned i = 0; i < out.nr; i++)
				send(h, NO_PAGE, out.action[i], wrong);
			return true;
		}
		if (need && token[h].state == DSM_TOKEN_HERE)
			flags = DSM_F_TOKEN;
	}
	xen[h][p].ring &= uint8_t(~move.other);
	if (!(xen[h][p].ring_met_hole & move.other))
		xen[h][p].met_hole &= uint8_t(~move.other);
	xen[h][p].ring_met_hole |= move.other;
	return step(rules, h, p, a_miss(move.other, flags), 0, wrong);
}

template<unsigned H, unsigned P>
bool World<H, P>::deliver(Rules<H, P> &rules, const Move &move, unsigned place,
			  Violation &wrong)
{
	unsigned from = move.other, h = move.host;
	Message m = channel[from][h][place];
	dsm_event event = simple(DSM_EV_MESSAGE);

	under_way[from][h]--;
	memmove(channel[from][h] + place, channel[from][h] + place + 1,
		sizeof(Message) * (CHANNEL - 1 - place));
	channel[from][h][under_way[from][h]] = {};

	event.from = uint8_t(from);
	event.msg.type = m.type;
	event.msg.flags = m.flags;
	event.msg.reason = m.reason;
	event.msg.txn = m.txn;
	event.msg.epoch = m.epoch;
	if (m.epoch != epoch[h][from] || !is_up(h, from)) {
		dsm_page before = page[h][m.page], after = before;
		dsm_actions none;

		event.msg.gfn = m.page;
		if (!dsm_step(view(rules, h), &after, &event, &none) || none.nr ||
		    memcmp(&before, &after, sizeof(before)))
			wrong = "a message of an old connection is taken";
		return true;
	}
	if (m.page != NO_PAGE) {
		bool demand = page[h][m.page].demand;

		bool possible = step(rules, h, m.page, event, m.age, wrong);
		if (failed && m.type == DSM_NACK && !demand)
			wrong = "the VM fails for a page that nobody touches";
		return possible;
	}

	dsm_actions out;
	view(rules, h);
	int rc = dsm_token_message(&rules.vm[h], &token[h], from, &event.msg,
				   &out);
	if (rc)
		wrong = dsm_error_name(unsigned(-rc));
	for (unsigned i = 0; i < out.nr; i++)
		send(h, NO_PAGE, out.action[i], wrong);
	return true;
}

template<unsigned H, unsigned P>
void World<H, P>::die(const Rules<H, P> &rules, unsigned h)
{
	dead |= uint16_t(1u << h);
	for (unsigned g = 0; g < H; g++) {
		under_way[g][h] = 0;
		memset(channel[g][h], 0, sizeof(channel[g][h]));
	}
	World fresh(rules);
	for (unsigned p = 0; p < P; p++) {
		/* Those whom it has told that the page is private may act on it yet. */
		bool was_private = page[h][p].dir.mode == DSM_MODE_PRIVATE;

		page[h][p] = fresh.page[h][p];
		if (was_private)
			page[h][p].dir.mode = DSM_MODE_PRIVATE;
		xen[h][p] = fresh.xen[h][p];
		xen[h][p].age = rules.no_bytes();
	}
	token[h] = fresh.token[h];
	vcpu[h] = { 0, NO_PAGE, { 0 } };
	up[h] = 0;
	cut[h] = 0;
	for (unsigned g = 0; g < H; g++)
		cut[g] &= uint16_t(~(1u << h));
}

/* It has nothing, wants nothing and is to answer nothing; others may not know yet. */
template<unsigned H, unsigned P>
bool World<H, P>::can_leave(const Rules<H, P> &rules, unsigned h) const
{
	if (left == rules.may.comes_back ||
	    up[h] != uint16_t(((1u << H) - 1) & ~(1u << h)))
		return false;
	for (unsigned p = 0; p < P; p++)
		if (rules.home[p] == h || xen[h][p].waiters || xen[h][p].ring ||
		    !dsm_page_is_idle(&page[h][p], &rules.vm[h]))
			return false;
	return true;
}

/* The connection of h with g ends at h, where nothing is lost by it. */
static void part(dsm_vm &vm, unsigned g, Violation &wrong)
{
	dsm_vm_peer_down(&vm, g);
	if (dsm_vm_peer_left(&vm, g))
		wrong = "who leaves in order is taken for lost";
}

template<unsigned H, unsigned P>
void World<H, P>::leave(Rules<H, P> &rules, unsigned h, Violation &wrong)
{
	dsm_vm vm = *view(rules, h);

	left++;
	up[h] = 0;
	/* Its own end: the VM is over here, it may begin anew. */
	for (unsigned p = 0; p < P; p++)
		vm.unbound |= uint16_t(1u << rules.home[p]);
	vm.unbound |= uint16_t(1u << vm.token_home);
	for (unsigned g = 0; g < H; g++)
		if (g != h)
			part(vm, g, wrong);
	if (vm.up || vm.lost)
		wrong = "who has left has connections";
}

/* Two that have no connection, and all pages have been told. */
template<unsigned H, unsigned P>
bool World<H, P>::can_connect(unsigned h, unsigned g) const
{
	if (is_dead(h) || is_dead(g) || is_up(h, g) || is_up(g, h) ||
	    cut[h] >> g & 1)
		return false;
	for (unsigned p = 0; p < P; p++)
		if (xen[h][p].untold >> g & 1 || xen[g][p].untold >> h & 1)
			return false;
	return true;
}

/* A new connection of these. */
template<unsigned H, unsigned P>
void World<H, P>::come_back(Rules<H, P> &rules, unsigned h, unsigned g,
			    Violation &wrong)
{
	for (auto [a, b] : { std::pair(h, g), std::pair(g, h) }) {
		dsm_vm vm = *view(rules, a);
		if (!dsm_vm_peer_up(&vm, b, epoch[a][b]))
			wrong = "an epoch that was is taken for a new one";
		if (dsm_vm_peer_up(&vm, b, epoch[a][b] + 1u))
			wrong = "who has left in order is not attached anew";
	}
	for (auto [a, b] : { std::pair(h, g), std::pair(g, h) }) {
		up[a] |= uint16_t(1u << b);
		epoch[a][b]++;
	}
}

template<unsigned H, unsigned P>
bool World<H, P>::notice(Rules<H, P> &rules, const Move &move, Violation &wrong)
{
	unsigned h = move.host, gone = move.other;
	dsm_actions out;

	if (rules.may.cut && !rules.may.goes_on) {
		die(rules, h);
		return true;
	}
	if (!is_dead(gone) && !(cut[h] >> gone & 1)) {
		dsm_vm vm = *view(rules, h);
		part(vm, gone, wrong);
	}
	up[h] &= uint16_t(~(1u << gone));
	under_way[gone][h] = 0;
	memset(channel[gone][h], 0, sizeof(channel[gone][h]));
	view(rules, h);
	dsm_token_host_lost(&rules.vm[h], &token[h], gone, &out);
	for (unsigned i = 0; i < out.nr; i++)
		send(h, NO_PAGE, out.action[i], wrong);
	for (unsigned p = 0; p < P; p++) {
		xen[h][p].untold |= uint16_t(1u << gone);
		tell_losses(rules, h, p, wrong);
	}
	return true;
}

/* An access that its home makes, as long as the page is private there. */
template<unsigned H, unsigned P>
bool World<H, P>::is_used_at_home(const Rules<H, P> &rules, unsigned h, unsigned p) const
{
	unsigned home = rules.home[p];

	return rules.may.rings && rules.may.at_home && home != h && xen[h][p].state == NONE &&
	       !page[h][p].request && page[home][p].dir.mode == DSM_MODE_PRIVATE;
}

/*
 * It has been in use at home for too long, and need never be let go.  What others have
 * copies of the home asks for itself; who asked hears that it is in use, and asks again.
 */
template<unsigned H, unsigned P>
void World<H, P>::for_ever(Rules<H, P> &rules, unsigned h, unsigned p, Violation &wrong)
{
	if (xen[h][p].state == WRITABLE && step(rules, h, p, simple(DSM_EV_PRIVATE), 0, wrong))
		return;
	step(rules, h, p, simple(DSM_EV_PIN_TIMEOUT), 0, wrong);
	if (xen[h][p].state == READ_ONLY && !(xen[h][p].waiters & WRITER))
		miss(h, p, WRITER);
}

/* The first page, in this vCPU's order, that is not there. */
template<unsigned H, unsigned P>
bool World<H, P>::enter_miss(const Rules<H, P> &rules, unsigned h, bool write)
{
	for (unsigned i = 0; i < P; i++) {
		unsigned p = (i + h) % P;
		if (xen[h][p].state == WRITABLE ||
		    (!write && xen[h][p].state == READ_ONLY) || is_used_at_home(rules, h, p))
			continue;
		miss(h, p, write ? WRITER : READER);
		vcpu[h].waits_for = uint8_t(p);
		return true;
	}
	return false;
}

/* A vCPU tries its instruction: a miss, or it retires. */
template<unsigned H, unsigned P>
bool World<H, P>::enter(Rules<H, P> &rules, unsigned h, Violation &wrong)
{
	dsm_actions out;

	view(rules, h);
	if (rules.may.reads_first && enter_miss(rules, h, false))
		return true;
	if (enter_miss(rules, h, true))
		return true;
	for (unsigned p = 0; p < P; p++) {
		if (is_used_at_home(rules, h, p)) {
			new_bytes(rules.home[p], p);
			continue;
		}
		new_bytes(h, p);
		step(rules, h, p, simple(DSM_EV_RETIRED), 0, wrong);
	}
	dsm_losses_retired(&vcpu[h].losses);
	vcpu[h].left--;
	if (token[h].state == DSM_TOKEN_HERE ||
	    token[h].state == DSM_TOKEN_ASKED) {
		dsm_token_free(&rules.vm[h], &token[h], &out);
		for (unsigned i = 0; i < out.nr; i++)
			send(h, NO_PAGE, out.action[i], wrong);
	}
	return true;
}

template<unsigned H, unsigned P>
bool World<H, P>::make(Rules<H, P> &rules, const Move &move, Violation &wrong)
{
	unsigned h = move.host, p = move.page;
	XenPage *x = p == NO_PAGE ? nullptr : &xen[h][p];
	bool possible = true;

	switch (move.will) {
	case Will::READ:
		miss(h, p, READER);
		if (rules.may.prompt && !page[h][p].operation)
			possible = consume(rules, { Will::RING, uint8_t(h), uint8_t(p), READER },
					   wrong);
		break;
	case Will::WRITE_MISS:
		miss(h, p, WRITER);
		if (rules.may.prompt && !page[h][p].operation)
			possible = consume(rules, { Will::RING, uint8_t(h), uint8_t(p), WRITER },
					   wrong);
		break;
	case Will::ZERO:
		miss(h, p, ZEROER);
		if (rules.may.prompt && !page[h][p].operation)
			possible = consume(rules, { Will::RING, uint8_t(h), uint8_t(p), ZEROER },
					   wrong);
		break;
	case Will::PREFETCH:
		possible = step(rules, h, p, a_miss(move.other, DSM_F_PREFETCH), 0,
				wrong);
		break;
	case Will::STORE:
		new_bytes(h, p);
		break;
	case Will::EVICT:
		possible = step(rules, h, p, simple(DSM_EV_EVICT), 0, wrong);
		break;
	case Will::PIN:
		x->pin = true;
		break;
	case Will::PIN_TIMEOUT:
		possible = step(rules, h, p, simple(DSM_EV_PIN_TIMEOUT), 0,
				wrong);
		break;
	case Will::XEN_DROP:
		becomes_hole(h, p);
		break;
	case Will::XEN_POPULATE:
		x->state = WRITABLE;
		new_bytes(h, p);
		break;
	case Will::DROP:
		possible = step(rules, h, p, simple(DSM_EV_DROP), 0, wrong);
		break;
	case Will::POPULATE:
		possible = step(rules, h, p, simple(DSM_EV_POPULATE), 0, wrong);
		break;
	case Will::PRIVATE:
		possible = step(rules, h, p, simple(DSM_EV_PRIVATE), 0, wrong);
		break;
	case Will::STAYS:
		possible = step(rules, h, p, simple(DSM_EV_STAYS), 0, wrong);
		break;
	case Will::PUBLIC:
		possible = step(rules, h, p, simple(DSM_EV_PUBLIC), 0, wrong);
		break;
	case Will::NO_MEMORY:
		possible = operate(rules, h, p, wrong, DSM_OP_NOMEM);
		break;
	case Will::BREAK:
		possible = operate(rules, h, p, wrong, DSM_OP_BROKEN);
		break;
	case Will::RETIRED:
		possible = step(rules, h, p, simple(DSM_EV_RETIRED), 0, wrong);
		break;
	case Will::DIE:
		die(rules, h);
		break;
	case Will::LEAVE:
		leave(rules, h, wrong);
		break;
	case Will::COME_BACK:
		come_back(rules, h, move.other, wrong);
		break;
	case Will::CUT:
		cut[h] |= uint16_t(1u << move.other);
		cut[move.other] |= uint16_t(1u << h);
		break;
	case Will::RING:
		possible = consume(rules, move, wrong);
		break;
	case Will::OPERATION:
		possible = operate(rules, h, p, wrong);
		break;
	case Will::DELIVER:
		possible = deliver(rules, move, 0, wrong);
		break;
	case Will::OVERTAKE:
		possible = deliver(rules, move, 1, wrong);
		break;
	case Will::UNPIN:
	case Will::LET_GO:
		x->pin = false;
		break;
	case Will::FOR_EVER:
		for_ever(rules, h, p, wrong);
		break;
	case Will::RETRY:
		x->retry = false;
		possible = step(rules, h, p, simple(DSM_EV_RETRY), 0, wrong);
		break;
	case Will::NOTICE:
		possible = notice(rules, move, wrong);
		break;
	case Will::LEASE_OVER:
		possible = step(rules, h, p, simple(DSM_EV_LEASE_OVER), 0,
				wrong);
		break;
	case Will::ENTER:
		possible = enter(rules, h, wrong);
		break;
	case Will::ACCESS:
		possible = access(rules, move, wrong);
		break;
	case Will::DRAIN:
		drain(rules, move.other);
		break;
	}
	if (possible && wrong.empty()) {
		tidy(rules);
		check(rules, wrong);
	}
	return possible;
}

template<unsigned H, unsigned P>
void World<H, P>::program_moves(std::vector<Move> &found) const
{
	/* The core hears of what has retired when no result is due. */
	for (uint8_t h = 0; h < H; h++) {
		bool due = false;
		for (unsigned p = 0; p < P; p++)
			due |= page[h][p].operation != 0;
		if (vcpu[h].left && vcpu[h].waits_for == NO_PAGE && !is_dead(h) && !due)
			found.push_back({ Will::ENTER, h, NO_PAGE, 0 });
	}
}

/* Stores of this thread that are not in memory yet. */
template<unsigned H, unsigned P>
unsigned World<H, P>::buffered(const Rules<H, P> &rules, unsigned t) const
{
	LitmusThread begun = rules.may.shape().threads[t];

	begun.length = thread[t].next;
	return begun.stores() - thread[t].stored;
}

/* Has the program of a litmus test ended, and is all in memory that it has written? */
template<unsigned H, unsigned P>
bool World<H, P>::is_over(const Rules<H, P> &rules) const
{
	const std::vector<LitmusThread> &threads = rules.may.shape().threads;

	for (unsigned t = 0; t < threads.size(); t++)
		if (thread[t].next < threads[t].length || buffered(rules, t))
			return false;
	return true;
}

/* A thread of a litmus test tries its next access: a miss, or it goes on. */
template<unsigned H, unsigned P>
bool World<H, P>::access(Rules<H, P> &rules, const Move &move, Violation &wrong)
{
	unsigned h = move.host, p = move.page;
	Thread &t = thread[move.other];
	const Access &a = rules.may.shape().threads[move.other].access[t.next];
	XenPage &x = xen[h][p];

	if (x.state != WRITABLE && (a.value || x.state != READ_ONLY)) {
		t.waits_for = uint8_t(p);
		t.kind = a.value ? WRITER : READER;
		miss(h, p, t.kind);
		return !rules.may.prompt || page[h][p].operation ||
		       consume(rules, { Will::RING, uint8_t(h), uint8_t(p), t.kind }, wrong);
	}
	if (!a.value)
		t.read[t.next] = x.age;
	t.next++;
	if (a.value && !rules.may.buffers)
		drain(rules, move.other);
	if (rules.may.leases && page[h][p].lease && !page[h][p].operation)
		step(rules, h, p, simple(DSM_EV_RETIRED), 0, wrong);
	return true;
}

/* The oldest store of a thread's buffer.  If its page has gone meanwhile, it meets the frame that was there. */
template<unsigned H, unsigned P>
void World<H, P>::drain(const Rules<H, P> &rules, unsigned t)
{
	const Access &a = rules.may.shape().threads[t].store(thread[t].stored++);
	XenPage &x = xen[rules.host_of(t)][a.page];

	if (x.state == WRITABLE || x.state == READ_ONLY)
		x.age = a.value;
}

template<unsigned H, unsigned P>
void World<H, P>::empty_buffers(const Rules<H, P> &rules, unsigned h)
{
	if (!rules.may.litmus)
		return;
	for (unsigned t = 0; t < rules.may.shape().threads.size(); t++)
		while (rules.host_of(t) == h && buffered(rules, t))
			drain(rules, t);
}

template<unsigned H, unsigned P>
void World<H, P>::litmus_moves(const Rules<H, P> &rules, std::vector<Move> &found) const
{
	const std::vector<LitmusThread> &threads = rules.may.shape().threads;

	for (uint8_t t = 0; t < threads.size(); t++) {
		uint8_t h = uint8_t(rules.host_of(t));
		if (thread[t].next < threads[t].length && thread[t].waits_for == NO_PAGE)
			found.push_back({ Will::ACCESS, h,
					  threads[t].access[thread[t].next].page, t });
		if (buffered(rules, t))
			found.push_back({ Will::DRAIN, h,
					  threads[t].store(thread[t].stored).page, t });
	}
}

template<unsigned H, unsigned P>
void World<H, P>::outcomes(const Rules<H, P> &rules, Outcomes &found) const
{
	uint8_t read[MAX_THREADS][MAX_ACCESSES], memory[2] = {};

	for (unsigned t = 0; t < MAX_THREADS; t++)
		memcpy(read[t], thread[t].read, sizeof(read[t]));
	/* Any copy may be the one that somebody looks at next. */
	for (unsigned h = 0; h < H; h++)
		for (unsigned g = 0; g < H; g++) {
			const XenPage &x = xen[h][0], &y = xen[g][P - 1];
			if (x.state == NONE || y.state == NONE)
				continue;
			memory[0] = x.age;
			memory[1] = y.age;
			found.insert(say_outcome(rules.may.shape(), read, memory));
		}
}

template<unsigned H, unsigned P>
void World<H, P>::moves(const Rules<H, P> &rules, std::vector<Move> &found) const
{
	const Features &may = rules.may;
	unsigned deaths = unsigned(__builtin_popcount(dead));
	bool over = may.litmus && is_over(rules);

	found.clear();
	if (failed)
		return;
	for (uint8_t h = 0; h < H; h++) {
		if (is_dead(h))
			continue;
		for (uint8_t p = 0; p < P; p++) {
			const XenPage &x = xen[h][p];
			const dsm_page &c = page[h][p];
			bool home = rules.home[p] == h, here = x.state == READ_ONLY ||
			     x.state == WRITABLE, due = c.operation;
			auto can = [&](Will will, bool when, uint8_t other = 0) {
				if (when)
					found.push_back({ will, h, p, other });
			};
			auto waits = [&](uint8_t kind) {
				if ((x.waiters & kind) && (x.ring & kind))
					return true;
				return !may.merge && x.waiters & ~kind;
			};

			can(Will::OPERATION, due);
			bool ring = may.rings && home;
			can(Will::UNPIN, x.pin && !ring);
			can(Will::LET_GO, x.pin && ring);
			can(Will::FOR_EVER, x.pin && ring && !due && x.retry);
			can(Will::RETRY, x.retry && !x.pin && !due);
			can(Will::LEASE_OVER, !due && c.lease == DSM_LEASE_ACTIVE);
			for (uint8_t kind : { READER, WRITER, ZEROER })
				can(Will::RING, !due && x.ring & kind &&
				    token[h].state != DSM_TOKEN_ASKED, kind);
			if (!is_up(h, rules.home[p]) && may.comes_back && !home)
				continue;
			/* A program's pages are touched by its instructions only. */
			bool free = !may.program && !may.litmus;
			can(Will::READ, free && (x.state == NONE ||
			    (may.loose && here)) && !waits(READER));
			can(Will::WRITE_MISS, free && (x.state == NONE ||
			    x.state == READ_ONLY || (may.loose && here)) &&
			    !waits(WRITER));
			can(Will::ZERO, may.zero && (x.state == NONE ||
			    x.state == READ_ONLY) && !waits(ZEROER));
			for (uint8_t kind : { READER, WRITER })
				can(Will::PREFETCH, (kind == READER ? may.prefetch :
				    may.ahead) && !due && !over && x.state == NONE &&
				    !c.request && !c.writeback, kind);
			can(Will::STORE, free && x.state == WRITABLE);
			can(Will::EVICT, may.evict && !home && here && !due && !over);
			can(Will::PIN, (may.pins || ring) && here && !x.pin);
			can(Will::PIN_TIMEOUT, may.pins && !due && x.retry);
			can(Will::XEN_DROP, may.drop && home && !x.pin &&
			    x.state == WRITABLE && c.dir.mode != DSM_MODE_PRIVATE);
			can(Will::XEN_POPULATE, may.drop && home && x.state == HOLE);
			can(Will::DROP, !due && ((may.drop && home &&
			    (x.state == NONE || x.state == READ_ONLY)) ||
			    (may.remote_drop && !home)));
			can(Will::POPULATE, !due && may.remote_drop && !home);
			can(Will::PRIVATE, may.private_pages && home && !due &&
			    x.state == WRITABLE && c.dir.mode != DSM_MODE_PRIVATE);
			can(Will::STAYS, may.at_home && may.pins && home && !due && x.retry);
			can(Will::PUBLIC, may.at_home && home && !due &&
			    c.dir.mode == DSM_MODE_PRIVATE);
			can(Will::NO_MEMORY, may.no_memory && x.state == HOLE &&
			    c.operation == DSM_OP_POPULATE);
			can(Will::BREAK, may.broken && due);
			can(Will::RETIRED, free && !due && may.leases && c.lease);
		}
		for (uint8_t g = 0; g < H; g++) {
			if (under_way[g][h]) {
				uint8_t p = channel[g][h][0].page;
				if (p == NO_PAGE || !page[h][p].operation)
					found.push_back({ Will::DELIVER, h, p, g });
			}
			if (may.reorder && under_way[g][h] > 1)
				found.push_back({ Will::OVERTAKE, h,
						  channel[g][h][1].page, g });
			if (is_gone(h, g))
				found.push_back({ Will::NOTICE, h, NO_PAGE, g });
			if (may.cut && h < g && is_up(h, g) && is_up(g, h) &&
			    !std::any_of(cut, cut + H, [](auto c) { return c; }))
				found.push_back({ Will::CUT, h, NO_PAGE, g });
			if (may.comes_back && h < g && can_connect(h, g))
				found.push_back({ Will::COME_BACK, h, NO_PAGE, g });
		}
		bool is_home = std::count(rules.home, rules.home + P, h);
		if (deaths < may.deaths && (!is_home || may.home_dies))
			found.push_back({ Will::DIE, h, NO_PAGE, 0 });
		if (may.comes_back && can_leave(rules, h))
			found.push_back({ Will::LEAVE, h, NO_PAGE, 0 });
	}
	if (may.program)
		program_moves(found);
	if (may.litmus)
		litmus_moves(rules, found);
}

/* Is there more to say of it than its state? */
static bool is_busy(const dsm_page &c)
{
	return c.request || c.operation || c.writeback || c.recall || c.lease ||
	       c.lost;
}

/* What nobody can tell apart becomes the same. */
template<unsigned H, unsigned P> void World<H, P>::tidy(const Rules<H, P> &rules)
{
	for (unsigned h = 0; h < H; h++) {
		for (unsigned p = 0; p < P; p++) {
			XenPage &x = xen[h][p];
			if (!dsm_page_needs_buffer(&page[h][p]))
				x.buffer = rules.no_bytes();
			if (x.state == NONE || x.state == HOLE) {
				x.age = rules.no_bytes();
				x.pin = false;
			}
			if (!page[h][p].recall_busy && !page[h][p].dir.busy)
				x.retry = false;
			/* It is compared while a copy is the only one, or asked for. */
			if (page[h][p].state != DSM_MODIFIED && !is_busy(page[h][p]))
				page[h][p].grant = 0;
			x.met_hole |= uint8_t(ANYBODY & ~x.waiters);
			/* It matters for NACK(hole) and NACK(private) only. */
			if (!rules.may.drop && !rules.may.private_pages && !rules.may.rings)
				page[h][p].merged = false;
			if (!rules.may.drop || page[h][p].home == h)
				x.met_hole = x.ring_met_hole = ANYBODY;
		}
	}
	for (unsigned p = 0; p < P; p++)
		number_transactions(rules, p);
}

/* Numbers of transactions are only compared: 1, 2, 3 ... in their order. */
template<unsigned H, unsigned P>
void World<H, P>::number_transactions(const Rules<H, P> &rules, unsigned p)
{
	uint32_t *all[4 * H + H * H * CHANNEL];
	uint32_t values[4 * H + H * H * CHANNEL];
	unsigned n = 0, distinct;
	auto add = [&](uint32_t &txn) {
		if (txn)
			all[n++] = &txn;
	};

	for (unsigned h = 0; h < H; h++) {
		add(page[h][p].grant);
		add(page[h][p].recall_txn);
		for (unsigned g = 0; g < H; g++)
			for (unsigned k = 0; k < under_way[h][g]; k++)
				if (channel[h][g][k].page == p)
					add(channel[h][g][k].txn);
	}
	dsm_directory &d = page[rules.home[p]][p].dir;
	add(d.grant);
	add(d.txn);
	for (unsigned i = 0; i < n; i++)
		values[i] = *all[i];
	std::sort(values, values + n);
	distinct = unsigned(std::unique(values, values + n) - values);
	for (unsigned i = 0; i < n; i++)
		*all[i] = uint32_t(std::lower_bound(values, values + distinct,
						    *all[i]) - values) + 1;
}

template<unsigned H, unsigned P>
bool World<H, P>::quiet(const Rules<H, P> &rules) const
{
	if (failed)
		return true;
	if (rules.may.litmus && !is_over(rules))
		return false;
	for (unsigned h = 0; h < H; h++) {
		if (is_dead(h))
			continue;
		if (vcpu[h].left || token[h].state != DSM_TOKEN_ELSEWHERE ||
		    token[h].nr_queued || token[h].holder != DSM_NOBODY)
			return false;
		for (unsigned p = 0; p < P; p++) {
			const XenPage &x = xen[h][p];
			const dsm_page &c = page[h][p];
			bool pin = x.pin && !(rules.may.rings && rules.home[p] == h);
			if (x.waiters || x.ring || pin || x.retry)
				return false;
			if (c.operation || c.request || c.writeback || c.recall ||
			    c.wanted || c.lease == DSM_LEASE_ACTIVE ||
			    c.lease == DSM_LEASE_TOKEN || c.dir.phase != DSM_IDLE)
				return false;
		}
		for (unsigned g = 0; g < H; g++)
			if (under_way[g][h] || is_gone(h, g))
				return false;
	}
	return true;
}

/* I4: what is under way for a transaction belongs to the one that waits. */
template<unsigned H, unsigned P>
void World<H, P>::check_transaction(const Rules<H, P> &rules, unsigned p,
				    Violation &wrong) const
{
	unsigned home = rules.home[p];
	const dsm_directory &d = page[home][p].dir;
	auto of_this = [&](uint32_t txn, unsigned h) {
		if (is_dead(h) || !(up[home] >> h & 1))
			return;
		if (d.phase != DSM_COLLECT || txn != d.txn ||
		    !(d.pending >> h & 1))
			wrong = "I4: a question or an answer outlives its transaction";
	};

	for (unsigned h = 0; h < H; h++) {
		if (page[h][p].recall)
			of_this(page[h][p].recall_txn, h);
		for (unsigned k = 0; k < under_way[home][h]; k++) {
			const Message &m = channel[home][h][k];
			if (m.page == p && m.epoch == epoch[h][home] && (m.type == DSM_INV ||
			    m.type == DSM_RECALL_S || m.type == DSM_RECALL_I))
				of_this(m.txn, h);
		}
		for (unsigned k = 0; k < under_way[h][home]; k++) {
			const Message &m = channel[h][home][k];
			if (m.page == p && (m.type == DSM_INV_ACK ||
			    m.type == DSM_RDATA || m.type == DSM_BUSY_PIN))
				of_this(m.txn, h);
		}
	}
}

template<unsigned H, unsigned P>
void World<H, P>::check_page(const Rules<H, P> &rules, unsigned p,
			     Violation &wrong) const
{
	const unsigned home = rules.home[p];
	const dsm_directory &d = page[home][p].dir;
	unsigned readers = 0, writers = 0;

	for (unsigned h = 0; h < H; h++) {
		const XenPage &x = xen[h][p];
		if (is_dead(h))
			continue;
		readers += x.state == READ_ONLY;
		writers += x.state == WRITABLE;
		if ((x.state == READ_ONLY || x.state == WRITABLE) && x.age)
			wrong = "I2: a copy that can be read is not the newest";
		unsigned has = x.state == HOLE ? unsigned(WRITABLE) : x.state;
		if (has != page[h][p].state)
			wrong = "the core's state is not Xen's";
		if (is_dead(home))
			continue;
		if (x.state == WRITABLE && (d.mode == DSM_MODE_SHARED || d.owner != h))
			wrong = "I5: a writer that the directory does not know";
		if (x.state == READ_ONLY && !(d.mode == DSM_MODE_SHARED ?
		    d.copyset >> h & 1 : d.owner == h))
			wrong = "I5: a reader that the directory does not know";
	}
	if (writers > 1 || (writers && readers))
		wrong = "I1: a writer beside another copy";
	if (is_dead(home))
		return;
	if (xen[home][p].state == HOLE && (readers || writers))
		wrong = "I1: a copy of a hole";
	if (d.mode == DSM_MODE_SHARED && xen[home][p].state != READ_ONLY)
		wrong = "I3: shared, and the home has no copy";
	check_transaction(rules, p, wrong);
}

template<unsigned H, unsigned P>
void World<H, P>::check(const Rules<H, P> &rules, Violation &wrong) const
{
	for (unsigned p = 0; p < P && !failed && !rules.may.litmus && wrong.empty(); p++)
		check_page(rules, p, wrong);
}

/*
 * The state as bits.  What can be derived from the rest is left out; both
 * functions follow the same order.
 */
template<unsigned H, unsigned P>
void World<H, P>::pack(const Rules<H, P> &rules, const Order<H, P> &order,
		       Packer &out) const
{
	auto set = [&](uint16_t hosts) {
		uint16_t moved = 0;
		for (unsigned i = 0; i < H; i++)
			moved |= uint16_t((hosts >> order.host_at[i] & 1) << i);
		return moved;
	};
	auto host = [&](uint8_t h) {
		return h < H ? order.place_of[h] : uint8_t(31);
	};
	auto request = [&](const dsm_request &r) {
		out.bits(host(r.host), 5);
		out.bits(r.type, 3);
		out.bits(r.flags, 3);
	};

	const unsigned bytes = rules.may.litmus ? 2 : 1;

	out.bits(failed, 1);
	if (rules.may.apart())
		out.bits(set(dead), H);
	if (rules.may.comes_back)
		out.bits(left, 2);
	for (unsigned i = 0; i < H; i++) {
		unsigned h = order.host_at[i];
		if (rules.may.apart())
			out.bits(set(up[h]), H);
		if (rules.may.cut)
			out.bits(set(cut[h]), H);
		if (rules.may.comes_back)
			for (unsigned k = 0; k < H; k++)
				out.bits(epoch[h][order.host_at[k]], 2);
		if (rules.may.program) {
			out.bits(vcpu[h].left, 3);
			out.bits(vcpu[h].waits_for == NO_PAGE ? 7 :
				 vcpu[h].waits_for, 3);
			out.bits(vcpu[h].losses.count, 4);
			out.bits(token[h].state, 2);
			out.bits(host(token[h].holder), 5);
			out.bits(token[h].nr_queued, 5);
			for (unsigned k = 0; k < token[h].nr_queued; k++)
				out.bits(host(token[h].queue[k]), 5);
		}
		for (unsigned j = 0; j < P; j++) {
			unsigned p = order.page_at[j];
			const XenPage &x = xen[h][p];
			const dsm_page &c = page[h][p];
			bool busy = is_busy(c);
			out.bits(x.state, 2);
			out.bits(x.age, bytes);
			out.bits(x.waiters, 3);
			out.bits(x.ring, 3);
			out.bits(x.pin, 1);
			if (rules.may.drop) {
				out.bits(x.met_hole, 3);
				out.bits(x.ring_met_hole, 3);
			}
			out.bits(c.state, 2);
			out.bits(busy, 1);
			if (c.state == DSM_MODIFIED || busy)
				out.bits(c.grant, 4);
			if (busy) {
				out.bits(c.request, 3);
				out.bits(c.request_flags, 3);
				out.bits(c.demand, 1);
				out.bits(c.merged, 1);
				out.bits(c.operation, 4);
				out.bits(c.purpose, 3);
				out.bits(x.bytes, 2);
				out.bits(x.wake, 2);
				if (rules.may.apart())
					out.bits(set(x.untold), H);
				out.bits(c.writeback, 1);
				out.bits(c.wanted, 2);
				out.bits(c.wanted_flags, 3);
				out.bits(c.lease, 2);
				out.bits(c.lost, 1);
				out.bits(c.recall, 4);
				out.bits(c.recall_flags, 3);
				out.bits(c.recall_busy, 1);
				out.bits(c.recall_txn, 4);
				out.bits(x.retry, 1);
				out.bits(x.buffer, bytes);
			}
			if (rules.home[p] != h)
				continue;
			const dsm_directory &d = c.dir;
			out.bits(d.mode, 2);
			out.bits(host(d.owner), 5);
			out.bits(d.txn, 4);
			out.bits(d.grant, 4);
			out.bits(set(d.copyset), H);
			out.bits(d.phase, 2);
			if (d.phase == DSM_IDLE)
				continue;
			request(d.now);
			out.bits(d.abort, 4);
			out.bits(d.bytes, 1);
			out.bits(d.kept, 1);
			out.bits(d.busy, 1);
			out.bits(x.retry, 1);
			out.bits(x.buffer, bytes);
			out.bits(set(d.pending), H);
			out.bits(d.nr_queued, 5);
			for (unsigned k = 0; k < d.nr_queued; k++)
				request(d.queue[k]);
		}
		for (unsigned k = 0; k < H; k++) {
			unsigned g = order.host_at[k];
			out.bits(under_way[h][g], 4);
			for (unsigned n = 0; n < under_way[h][g]; n++) {
				const Message &m = channel[h][g][n];
				out.bits(m.type, 5);
				out.bits(m.flags, 4);
				out.bits(m.reason, 4);
				out.bits(m.page == NO_PAGE ? 7 :
					 order.page_place[m.page], 3);
				out.bits(m.age, bytes);
				out.bits(m.txn, 4);
				if (rules.may.comes_back)
					out.bits(m.epoch, 2);
			}
		}
	}
	for (unsigned t = 0; rules.may.litmus && t < rules.may.shape().threads.size(); t++) {
		out.bits(thread[t].next, 2);
		out.bits(thread[t].stored, 2);
		out.bits(thread[t].waits_for == NO_PAGE ? 7 : thread[t].waits_for, 3);
		out.bits(thread[t].kind, 2);
		for (uint8_t value : thread[t].read)
			out.bits(value, 2);
	}
	out.finish();
}

template<unsigned H, unsigned P>
void World<H, P>::unpack(const Rules<H, P> &rules, Unpacker &in)
{
	auto host = [&] {
		uint32_t h = in.bits(5);
		return h == 31 ? uint8_t(DSM_NOBODY) : uint8_t(h);
	};
	auto small = [&](unsigned count) { return uint8_t(in.bits(count)); };
	auto flag = [&] { return in.bits(1) != 0; };
	auto request = [&](dsm_request &r) {
		r.host = host();
		r.type = small(3);
		r.flags = small(3);
	};

	const unsigned bytes = rules.may.litmus ? 2 : 1;

	*this = World(rules);
	failed = flag();
	if (rules.may.apart())
		dead = uint16_t(in.bits(H));
	if (rules.may.comes_back)
		left = small(2);
	for (unsigned h = 0; h < H; h++) {
		if (rules.may.apart())
			up[h] = uint16_t(in.bits(H));
		if (rules.may.cut)
			cut[h] = uint16_t(in.bits(H));
		if (rules.may.comes_back)
			for (unsigned g = 0; g < H; g++)
				epoch[h][g] = small(2);
		if (rules.may.program) {
			vcpu[h].left = small(3);
			vcpu[h].waits_for = small(3);
			if (vcpu[h].waits_for == 7)
				vcpu[h].waits_for = NO_PAGE;
			vcpu[h].losses.count = small(4);
			token[h].state = small(2);
			token[h].holder = host();
			token[h].nr_queued = small(5);
			for (unsigned k = 0; k < token[h].nr_queued; k++)
				token[h].queue[k] = host();
		}
		for (unsigned p = 0; p < P; p++) {
			XenPage &x = xen[h][p];
			dsm_page &c = page[h][p];
			x.state = small(2);
			x.age = small(bytes);
			x.waiters = small(3);
			x.ring = small(3);
			x.pin = flag();
			if (rules.may.drop) {
				x.met_hole = small(3);
				x.ring_met_hole = small(3);
			}
			c.state = small(2);
			bool busy = flag();
			if (c.state == DSM_MODIFIED || busy)
				c.grant = in.bits(4);
			if (busy) {
				c.request = small(3);
				c.request_flags = small(3);
				c.demand = c.stopped = flag();	/* no tool plays along */
				c.merged = flag();
				c.operation = small(4);
				c.purpose = small(3);
				x.bytes = small(2);
				x.wake = small(2);
				if (rules.may.apart())
					x.untold = uint16_t(in.bits(H));
				c.writeback = flag();
				c.wanted = small(2);
				c.wanted_flags = small(3);
				c.lease = small(2);
				c.lost = flag();
				c.recall = small(4);
				c.recall_flags = small(3);
				c.recall_busy = flag();
				c.recall_txn = in.bits(4);
				x.retry = flag();
				x.buffer = small(bytes);
			}
			if (rules.home[p] != h)
				continue;
			dsm_directory &d = c.dir;
			d.mode = small(2);
			d.owner = host();
			d.txn = in.bits(4);
			d.grant = in.bits(4);
			d.copyset = uint16_t(in.bits(H));
			d.phase = small(2);
			if (d.phase == DSM_IDLE)
				continue;
			request(d.now);
			d.abort = small(4);
			d.bytes = flag();
			d.kept = flag();
			d.busy = flag();
			x.retry = flag();
			x.buffer = small(bytes);
			d.pending = uint16_t(in.bits(H));
			d.nr_queued = small(5);
			for (unsigned k = 0; k < d.nr_queued; k++)
				request(d.queue[k]);
		}
		for (unsigned g = 0; g < H; g++) {
			under_way[h][g] = small(4);
			for (unsigned n = 0; n < under_way[h][g]; n++) {
				Message &m = channel[h][g][n];
				m.type = small(5);
				m.flags = small(4);
				m.reason = small(4);
				m.page = small(3);
				if (m.page == 7)
					m.page = NO_PAGE;
				m.age = small(bytes);
				m.txn = in.bits(4);
				m.epoch = rules.may.comes_back ? small(2) : uint8_t(1);
			}
		}
	}
	for (unsigned t = 0; rules.may.litmus && t < rules.may.shape().threads.size(); t++) {
		thread[t].next = small(2);
		thread[t].stored = small(2);
		thread[t].waits_for = small(3);
		if (thread[t].waits_for == 7)
			thread[t].waits_for = NO_PAGE;
		thread[t].kind = small(2);
		for (uint8_t &value : thread[t].read)
			value = small(2);
	}
}

static bool same_request(const dsm_request &a, const dsm_request &b)
{
	return a.host == b.host && a.type == b.type && a.flags == b.flags;
}

static const char *differs(const dsm_directory &a, const dsm_directory &b)
{
#define FIELD(name)	if (a.name != b.name) return #name
	FIELD(mode);
	FIELD(owner);
	FIELD(txn);
	FIELD(grant);
	FIELD(copyset);
	FIELD(phase);
	FIELD(abort);
	FIELD(bytes);
	FIELD(kept);
	FIELD(busy);
	FIELD(pending);
	FIELD(nr_queued);
	if (a.phase != DSM_IDLE && !same_request(a.now, b.now))
		return "now";
	for (unsigned k = 0; k < a.nr_queued; k++)
		if (!same_request(a.queue[k], b.queue[k]))
			return "queue";
	return nullptr;
}

static const char *differs(const dsm_page &a, const dsm_page &b)
{
	FIELD(home);
	FIELD(state);
	FIELD(grant);
	FIELD(request);
	FIELD(request_flags);
	FIELD(demand);
	FIELD(stopped);
	FIELD(merged);
	FIELD(operation);
	FIELD(purpose);
	FIELD(writeback);
	FIELD(wanted);
	FIELD(wanted_flags);
	FIELD(lease);
	FIELD(lost);
	FIELD(recall);
	FIELD(recall_flags);
	FIELD(recall_busy);
	FIELD(recall_txn);
	return nullptr;
}

static const char *differs(const XenPage &a, const XenPage &b)
{
	FIELD(state);
	FIELD(age);
	FIELD(waiters);
	FIELD(ring);
	FIELD(met_hole);
	FIELD(ring_met_hole);
	FIELD(pin);
	FIELD(retry);
	FIELD(buffer);
	FIELD(bytes);
	FIELD(wake);
	FIELD(untold);
	return nullptr;
}

static const char *differs(const dsm_token &a, const dsm_token &b)
{
	FIELD(state);
	FIELD(holder);
	FIELD(nr_queued);
	return memcmp(a.queue, b.queue, a.nr_queued) ? "queue" : nullptr;
}

static const char *differs(const Vcpu &a, const Vcpu &b)
{
	FIELD(left);
	FIELD(waits_for);
	FIELD(losses.count);
	return nullptr;
}

static const char *differs(const Thread &a, const Thread &b)
{
	FIELD(next);
	FIELD(stored);
	FIELD(waits_for);
	FIELD(kind);
	return memcmp(a.read, b.read, sizeof(a.read)) ? "read" : nullptr;
}

static const char *differs(const Message &a, const Message &b)
{
	FIELD(type);
	FIELD(flags);
	FIELD(reason);
	FIELD(page);
	FIELD(age);
	FIELD(epoch);
	FIELD(txn);
	return nullptr;
}
#undef FIELD

template<unsigned H, unsigned P>
std::string World<H, P>::difference(const World &other) const
{
	const char *what = nullptr;
	std::string at;
	auto look = [&](const char *of, const auto &a, const auto &b) {
		if (!what && (what = differs(a, b)))
			at = of;
	};

	if (failed != other.failed || dead != other.dead || left != other.left ||
	    memcmp(up, other.up, sizeof(up)) || memcmp(cut, other.cut, sizeof(cut)) ||
	    memcmp(epoch, other.epoch, sizeof(epoch)))
		return "who is there";
	if (failed)
		return "";	/* the end: nobody looks at it */
	for (unsigned t = 0; t < MAX_THREADS; t++)
		look("thread.", thread[t], other.thread[t]);
	for (unsigned h = 0; h < H; h++) {
		look("token.", token[h], other.token[h]);
		look("vcpu.", vcpu[h], other.vcpu[h]);
		for (unsigned p = 0; p < P; p++) {
			const dsm_page &a = page[h][p], &b = other.page[h][p];
			look("page.", a, b);
			look("xen.", xen[h][p], other.xen[h][p]);
			if (a.home == h)
				look("dir.", a.dir, b.dir);
		}
		for (unsigned g = 0; g < H; g++) {
			if (under_way[h][g] != other.under_way[h][g])
				return "messages under way";
			for (unsigned k = 0; k < under_way[h][g]; k++)
				look("message.", channel[h][g][k],
				     other.channel[h][g][k]);
		}
	}
	return what ? at + what : "";
}

static const char *kind_name(uint8_t kind)
{
	return kind == READER ? "read" : kind == WRITER ? "write" : "zero";
}

template<unsigned H, unsigned P>
std::string World<H, P>::say(const Move &move) const
{
	const dsm_page *c = move.page < P ? &page[move.host][move.page] : nullptr;

	switch (move.will) {
	case Will::READ:
		return "a vCPU reads: miss, waits";
	case Will::WRITE_MISS:
		return "a vCPU writes: miss, waits";
	case Will::ZERO:
		return "a vCPU zeroes the page: waits";
	case Will::PREFETCH:
		return move.other == READER ? "prefetch" : "prefetch, to write";
	case Will::STORE:
		return "a vCPU writes";
	case Will::EVICT:
		return "evict";
	case Will::PIN:
		return "a hypercall pins it";
	case Will::PIN_TIMEOUT:
		return "pinned for too long";
	case Will::XEN_DROP:
		return "Xen frees it: a hole";
	case Will::XEN_POPULATE:
		return "Xen populates it";
	case Will::DROP:
		return "the guest frees it";
	case Will::POPULATE:
		return "the guest populates it";
	case Will::PRIVATE:
		return "users that never let go";
	case Will::STAYS:
		return "pinned for too long: it can be used at home";
	case Will::PUBLIC:
		return "users that let go";
	case Will::NO_MEMORY:
		return "Xen: POPULATE finds no frame";
	case Will::BREAK:
		return std::string("Xen fails: ") + dsm_operation_name(c->operation);
	case Will::RETIRED:
		return "an instruction retires";
	case Will::DIE:
		return "power is cut";
	case Will::LEAVE:
		return "leaves";
	case Will::COME_BACK:
		return "connected with host " + std::to_string(move.other);
	case Will::CUT:
		return "the way to host " + std::to_string(move.other) + " is cut";
	case Will::RING:
		return std::string("ring: ") + kind_name(move.other) + " miss";
	case Will::OPERATION:
		return std::string("Xen: ") + dsm_operation_name(c->operation);
	case Will::DELIVER:
	case Will::OVERTAKE: {
		bool first = move.will == Will::DELIVER;
		const Message &m = channel[move.other][move.host][!first];
		std::string text = first ? "" : "OVERTAKES: ";
		text += dsm_type_name(m.type);
		if (m.flags & DSM_F_KEPT)
			text += " kept";
		if (m.flags & DSM_F_NODATA)
			text += " nodata";
		if (m.flags & DSM_F_PREFETCH)
			text += " prefetch";
		if (m.flags & DSM_F_TOKEN)
			text += " token";
		if (m.reason)
			text += std::string(" ") + dsm_reason_name(m.reason);
		if (m.txn)
			text += " #" + std::to_string(m.txn);
		return text;
	}
	case Will::UNPIN:
		return "unpin";
	case Will::LET_GO:
		return "it is let go after all";
	case Will::FOR_EVER:
		return "pinned for too long, and it need never end";
	case Will::RETRY:
		return "retry";
	case Will::NOTICE:
		return "host " + std::to_string(move.other) + " is gone";
	case Will::LEASE_OVER:
		return "lease over";
	case Will::ENTER:
		return "the vCPU enters";
	case Will::ACCESS:
		return "thread " + std::to_string(move.other) + ", access " +
		       std::to_string(thread[move.other].next);
	case Will::DRAIN:
		return "thread " + std::to_string(move.other) + ", a store leaves the buffer";
	}
	return "?";
}

/* Per host: entry of each page; lower case: somebody waits; '!' a pin. */
template<unsigned H, unsigned P> std::string World<H, P>::picture() const
{
	std::string text;

	for (unsigned h = 0; h < H; h++) {
		text += h ? " | " : "";
		for (unsigned p = 0; p < P; p++) {
			const XenPage &x = xen[h][p];
			text += is_dead(h) ? '+' : "ISMo"[x.state];
			text += x.pin ? "!" : "";
			text += x.waiters & READER ? "r" : "";
			text += x.waiters & WRITER ? "w" : "";
			text += x.waiters & ZEROER ? "z" : "";
		}
	}
	return text;
}

template class World<2, 1>;
template class World<2, 2>;
template class World<3, 1>;
template class World<3, 2>;
template class World<4, 1>;
template class World<4, 2>;
template class World<16, 4>;
