/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small world: some hosts with the product's own dsm/core, a stub of each
 * host's Xen, and the channels between them.
 *
 * Whatever may happen next is a Move.  Some moves are the world's own will (a
 * vCPU touches a page, a frame is wanted back, a host dies); the others are
 * owed: sooner or later they happen.  If the world's will rests, what is owed
 * has to lead to quiet on every path: each wait ends.
 *
 * The stub of Xen, for each host and page: the entry (nothing, read-only,
 * writable, a hole), the bytes, a pin (a hypercall or a grant copy uses the
 * page, -EBUSY for who takes it away), and who waits: readers, writers and
 * those that zero the page, each kind as one bit.  vCPUs of one kind have the
 * same future, so a bit stands for any number of them.  The ring holds misses
 * that the core has not seen.  A waiter is woken by the core only; what was in
 * the ring stays there, so late misses of vCPUs that run again happen, too.
 *
 * Bytes are a number: how many writes old, 0 for the newest, not more than
 * OLD.  A buffer that nobody needs any more is OLD, so that its use is seen.
 *
 * An access may find that there is no memory only if that was so at a time
 * after it began.  For each kind of who waits, once for those that the core
 * knows and once for those in the ring: was it so for all of them?
 *
 * Hosts part in three ways.  One dies: what it has sent may arrive yet.  One
 * that has nothing and is no home leaves in order: all that it has sent arrives
 * before its end is noticed, what is on the way to it becomes stale, and it may
 * be attached anew, with a later epoch.  Or a connection breaks, and both live:
 * what was sent before may arrive; who notices it stops its part of the VM, as
 * dsmd does, and that counts as its death.
 *
 * In a litmus world bytes are the value of the page's cell, and nothing is
 * checked but what its program can see: registers, and what is in memory in the
 * end.  A thread's store needs the page writable, and then it may wait in the
 * CPU's store buffer; who takes a page of the host away empties all buffers
 * first, since each CPU has answered an interrupt before the frame is copied.
 */
#ifndef DSM_WORLD_H
#define DSM_WORLD_H

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../core/token.h"
#include "litmus.h"

constexpr uint8_t OLD = 1;
constexpr uint8_t NO_PAGE = 0xff;

/* What may happen in a world; see Move. */
struct Features {
	bool evict, pins, prefetch, zero, drop, remote_drop, leases;
	bool ahead;		/* prefetches of pages that will be written */
	bool split;		/* page operations take time */
	bool private_pages;	/* the home's page gets users that never let go */
	bool at_home;		/* who needs such a page uses it there; they let go after all */
	bool rings;		/* who uses the home's page need never let go: it becomes private */
	bool no_memory, broken;	/* POPULATE finds no frame; any operation fails; with split */
	unsigned deaths;	/* so many hosts may die */
	bool home_dies;
	bool loose;		/* a miss is recorded though the page has come meanwhile */
	bool merge;		/* readers and writers can wait together at one host */
	bool prompt;		/* the core sees a miss at once, unless an operation is due */
	unsigned comes_back;	/* so many times may a host leave in order and be attached anew */
	bool cut;		/* a connection may break, and both ends live */
	bool goes_on;		/* who notices that does not stop: wrong */
	unsigned program;	/* not 0: vCPUs run so many instructions that write all pages */
	bool reads_first;	/* and read them before */
	bool reorder;		/* a message may overtake the one before: a wrong transport */
	unsigned max_losses;
	unsigned litmus;	/* not 0: vCPUs run the shape of that number, from 1 */
	bool buffers;		/* their stores wait in buffers */
	bool together;		/* they are at one host; else each at the next one */
	bool late_stores;	/* who takes a page away does not wait for the buffers: wrong */
	bool weak;		/* between hosts there is what buffers allow on one: wrong */

	/* Can a host be without a connection to another? */
	bool apart() const { return deaths || comes_back || cut; }
	const Shape &shape() const { return all_shapes()[litmus - 1]; }
};

enum class Will : uint8_t {	/* and what is owed, from RING on */
	READ, WRITE_MISS, ZERO, PREFETCH, STORE, EVICT, PIN, PIN_TIMEOUT, XEN_DROP,
	XEN_POPULATE, DROP, POPULATE, PRIVATE, RETIRED, DIE, NO_MEMORY, BREAK,
	LEAVE, COME_BACK, CUT, PUBLIC, STAYS, LET_GO,
	RING, OPERATION, DELIVER, OVERTAKE, UNPIN, RETRY, NOTICE, LEASE_OVER, ENTER, FOR_EVER,
	ACCESS, DRAIN,
};

struct Move {
	Will will;
	uint8_t host, page, other;	/* other: sender, miss kind, dead host, thread */

	bool owed() const { return will >= Will::RING; }
};

enum Waiter : uint8_t { READER = 1, WRITER = 2, ZEROER = 4, ANYBODY = 7 };
enum XenState : uint8_t { NONE, READ_ONLY, WRITABLE, HOLE };

struct Message {
	uint8_t type, flags, reason, page, age, epoch;
	uint32_t txn;
};

struct XenPage {
	uint8_t state, age, waiters, ring;
	uint8_t met_hole, ring_met_hole;	/* kinds; of those that the core knows, in the ring */
	bool pin, retry;		/* retry: the core wants DSM_EV_RETRY */
	uint8_t buffer;			/* age of the bytes in the core's buffer */
	uint8_t bytes, wake;		/* of the operation that is due */
	uint16_t untold;		/* hosts whose loss the core is told after that */
};

struct Vcpu {
	uint8_t left, waits_for;	/* instructions; page or NO_PAGE */
	dsm_losses losses;
};

/* Of a litmus test. */
struct Thread {
	uint8_t next, stored;		/* accesses, and stores that are in memory */
	uint8_t waits_for, kind;	/* page or NO_PAGE */
	uint8_t read[MAX_ACCESSES];
};

/* Bits, written or read by the same description of the state. */
class Packer {
public:
	[[gnu::always_inline]] void bits(uint32_t value, unsigned count)
	{
		overflow |= value >> count;
		word |= uint64_t(value) << fill;
		fill += count;
		if (fill >= 32)
			flush();
	}
	void finish()
	{
		for (; fill; fill -= fill < 8 ? fill : 8, word >>= 8)
			bytes[size++] = uint8_t(word);
		overflow |= size > ROOM;
	}
	bool less_than(const Packer &other) const
	{
		if (size != other.size)
			return size < other.size;
		return memcmp(bytes, other.bytes, size) < 0;
	}
	void take(const Packer &other)
	{
		size = other.size;
		overflow |= other.overflow;
		memcpy(bytes, other.bytes, size);
	}
	static constexpr unsigned ROOM = 255;
	uint8_t bytes[ROOM + 16];
	unsigned size = 0;
	uint32_t overflow = 0;	/* not 0: a value or the whole did not fit */

private:
	void flush()
	{
		uint32_t low = uint32_t(word);

		if (size > ROOM) {
			overflow = 1;
			size = ROOM;
		}
		memcpy(bytes + size, &low, 4);
		size += 4;
		word >>= 32;
		fill -= 32;
	}

	uint64_t word = 0;
	unsigned fill = 0;
};

class Unpacker {
public:
	explicit Unpacker(const uint8_t *bytes) : next(bytes) {}
	uint32_t bits(unsigned count)
	{
		while (fill < count) {
			word |= uint64_t(*next++) << fill;
			fill += 8;
		}
		uint32_t value = uint32_t(word & ((uint64_t(1) << count) - 1));
		word >>= count;
		fill -= count;
		return value;
	}

private:
	const uint8_t *next;
	uint64_t word = 0;
	unsigned fill = 0;
};

/* Which host is in which place, and which page. */
template<unsigned H, unsigned P> struct Order {
	uint8_t host_at[H], place_of[H], page_at[P], page_place[P];
};

template<unsigned H, unsigned P> struct Rules {
	Features may;
	uint8_t home[P];
	dsm_vm vm[H];

	Rules(const Features &features, const uint8_t (&homes)[P]) : may(features)
	{
		for (unsigned h = 0; h < H; h++) {
			dsm_vm_init(&vm[h], h, H);
			vm[h].leases = may.leases;
			vm[h].used_at_home = may.at_home ? uint16_t((1u << H) - 1) : 0;
			if (may.max_losses)
				vm[h].max_losses = uint8_t(may.max_losses);
			for (unsigned p = 0; p < P; p++)
				dsm_vm_add_range(&vm[h], p, p + 1, homes[p]);
			for (unsigned g = 0; g < H; g++)
				if (g != h)
					dsm_vm_peer_up(&vm[h], g, 1);
		}
		memcpy(home, homes, sizeof(home));
	}
	uint8_t no_bytes() const { return may.litmus ? NO_VALUE : OLD; }
	unsigned host_of(unsigned thread) const { return may.together ? 0 : thread % H; }
};

/* What is wrong, in words; empty: nothing. */
using Violation = std::string;

template<unsigned H, unsigned P> class World {
public:
	/* Messages under way from one host to another: four a page are enough. */
	static constexpr unsigned CHANNEL = P > 2 ? 4 * P : 8;

	dsm_page page[H][P];
	XenPage xen[H][P];
	dsm_token token[H];
	Vcpu vcpu[H];
	Thread thread[MAX_THREADS];
	uint8_t under_way[H][H];
	Message channel[H][H][CHANNEL];
	uint16_t dead;
	uint16_t up[H];
	uint16_t cut[H];	/* to whom there is no way any more */
	uint8_t epoch[H][H];	/* of the connection, or of the one before */
	uint8_t left;		/* how many times a host has left */
	bool failed;		/* the VM has been stopped */

	explicit World(const Rules<H, P> &rules)
	{
		memset(static_cast<void *>(this), 0, sizeof(*this));
		for (unsigned h = 0; h < H; h++) {
			up[h] = rules.vm[h].up;
			memset(epoch[h], 1, sizeof(epoch[h]));
			dsm_token_init(&token[h]);
			vcpu[h] = { uint8_t(rules.may.program), NO_PAGE, { 0 } };
			for (unsigned p = 0; p < P; p++) {
				dsm_page_init(&page[h][p], &rules.vm[h], p);
				bool home = rules.home[p] == h;
				xen[h][p].state = home ? WRITABLE : NONE;
				xen[h][p].age = home ? 0 : rules.no_bytes();
				xen[h][p].buffer = rules.no_bytes();
				xen[h][p].met_hole = xen[h][p].ring_met_hole = ANYBODY;
			}
		}
		for (Thread &t : thread)
			t.waits_for = NO_PAGE;
	}

	bool is_dead(unsigned h) const { return dead >> h & 1; }
	bool is_up(unsigned h, unsigned g) const { return up[h] >> g & 1; }
	void moves(const Rules<H, P> &rules, std::vector<Move> &found) const;
	bool make(Rules<H, P> &rules, const Move &move, Violation &wrong);
	bool quiet(const Rules<H, P> &rules) const;
	/* Of a program that has ended, and nothing is owed; more than one if copies differ. */
	void outcomes(const Rules<H, P> &rules, Outcomes &found) const;
	void check(const Rules<H, P> &rules, Violation &wrong) const;
	void tidy(const Rules<H, P> &rules);
	void pack(const Rules<H, P> &rules, const Order<H, P> &order,
		  Packer &out) const;
	void unpack(const Rules<H, P> &rules, Unpacker &in);
	/* A field that is not the same in both; empty: there is none. */
	std::string difference(const World &other) const;
	std::string say(const Move &move) const;
	std::string picture() const;

private:
	bool step(Rules<H, P> &rules, unsigned h, unsigned p, dsm_event event,
		  uint8_t age, Violation &wrong);
	void act(Rules<H, P> &rules, unsigned h, unsigned p,
		 const dsm_actions &actions, uint8_t age, Violation &wrong);
	bool operate(Rules<H, P> &rules, unsigned h, unsigned p,
		     Violation &wrong, unsigned result = DSM_NR_RESULTS);
	void check_failure(const Rules<H, P> &rules, unsigned h, unsigned p,
			   const dsm_action &action, Violation &wrong) const;
	unsigned result_of(const Rules<H, P> &rules, unsigned h, unsigned p,
			   Violation &wrong);
	void send(unsigned h, unsigned p, const dsm_action &action,
		  Violation &wrong);
	void wake(const Rules<H, P> &rules, unsigned h, unsigned p, unsigned whom);
	void miss(unsigned h, unsigned p, uint8_t kind);
	void becomes_hole(unsigned h, unsigned p);
	void new_bytes(unsigned h, unsigned p);
	bool consume(Rules<H, P> &rules, const Move &move, Violation &wrong);
	bool deliver(Rules<H, P> &rules, const Move &move, unsigned place,
		     Violation &wrong);
	const dsm_vm *view(Rules<H, P> &rules, unsigned h) const;
	bool is_gone(unsigned h, unsigned g) const;
	bool can_leave(const Rules<H, P> &rules, unsigned h) const;
	bool can_connect(unsigned h, unsigned g) const;
	void leave(Rules<H, P> &rules, unsigned h, Violation &wrong);
	void come_back(Rules<H, P> &rules, unsigned h, unsigned g,
		       Violation &wrong);
	void die(const Rules<H, P> &rules, unsigned h);
	void tell_losses(Rules<H, P> &rules, unsigned h, unsigned p,
			 Violation &wrong);
	bool notice(Rules<H, P> &rules, const Move &move, Violation &wrong);
	bool enter(Rules<H, P> &rules, unsigned h, Violation &wrong);
	bool enter_miss(const Rules<H, P> &rules, unsigned h, bool write);
	bool is_used_at_home(const Rules<H, P> &rules, unsigned h, unsigned p) const;
	void for_ever(Rules<H, P> &rules, unsigned h, unsigned p, Violation &wrong);
	void program_moves(std::vector<Move> &found) const;
	unsigned buffered(const Rules<H, P> &rules, unsigned t) const;
	bool is_over(const Rules<H, P> &rules) const;
	bool access(Rules<H, P> &rules, const Move &move, Violation &wrong);
	void drain(const Rules<H, P> &rules, unsigned t);
	void empty_buffers(const Rules<H, P> &rules, unsigned h);
	void litmus_moves(const Rules<H, P> &rules, std::vector<Move> &found) const;
	bool has_good_copy(unsigned p) const;
	void check_page(const Rules<H, P> &rules, unsigned p,
			Violation &wrong) const;
	void check_transaction(const Rules<H, P> &rules, unsigned p,
			       Violation &wrong) const;
	void number_transactions(const Rules<H, P> &rules, unsigned p);
};

#endif
