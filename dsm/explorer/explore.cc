// SPDX-License-Identifier: GPL-2.0
/*
 * Exhaustive exploration of small worlds, and long walks through larger ones.
 *
 *	explore [--states N] [--lies] WORLD...	all states of these worlds
 *	explore --list				their names
 *	explore --walk HOSTS PAGES SEED STEPS	one long walk
 *
 * Breadth first, so that the trace to a violation is a shortest one.  States
 * are kept whole, as bits; those that differ in the names of hosts only are
 * one.  When all are known: if the world's will rests in any of them, does
 * everything that is owed lead to quiet, whatever comes first?
 *
 * Seconds are of CPU time.
 *
 * Exit code: 0 all is well; 1 a violation; 2 wrong words, or no room.
 */
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "chart.h"
#include "lies.h"
#include "walk.h"
#include "worlds.h"
#include "world.h"

constexpr size_t LOOK_EVERY = 16;	/* transitions: are all fields among the bits? */

static uint32_t hash_of(const uint8_t *bytes, unsigned size)
{
	uint64_t h = 0x9e3779b97f4a7c15u * (size + 1), word;

	for (; size >= 8; size -= 8, bytes += 8) {
		memcpy(&word, bytes, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, bytes, size);
	h = (h ^ word) * 0xc4ceb9fe1a85ec53u;
	return uint32_t(h ^ h >> 32);
}

/* All states that were seen, each once, with a number. */
class Store {
public:
	explicit Store(size_t most)
		: limit(most), table(1u << 16, Slot{ 0, NOTHING })
	{
	}

	static constexpr uint32_t NOTHING = ~0u;

	/* Its number; if it is new, that is size() before. */
	uint32_t find_or_add(const uint8_t *bytes, unsigned size, uint32_t from)
	{
		if (start.size() * 3 > table.size() * 2)
			grow();
		uint32_t hash = hash_of(bytes, size);
		Slot &slot = table[place(bytes, size, hash)];
		if (slot.number == NOTHING) {
			slot = { hash, uint32_t(start.size()) };
			start.push_back(uint32_t(arena.size()));
			arena.push_back(uint8_t(size));
			arena.insert(arena.end(), bytes, bytes + size);
			parent.push_back(from);
		}
		return slot.number;
	}
	uint32_t find(const uint8_t *bytes, unsigned size) const
	{
		return table[place(bytes, size, hash_of(bytes, size))].number;
	}
	const uint8_t *at(uint32_t n) const { return &arena[start[n]] + 1; }
	size_t size() const { return start.size(); }
	bool full() const
	{
		return start.size() >= limit || arena.size() > 0xffff0000u;
	}
	uint32_t from(uint32_t n) const { return parent[n]; }

private:
	struct Slot {
		uint32_t hash, number;
	};

	/* Where it is, or where it would go. */
	size_t place(const uint8_t *bytes, unsigned size, uint32_t hash) const
	{
		size_t mask = table.size() - 1, i = hash & mask;

		for (; table[i].number != NOTHING; i = (i + 1) & mask) {
			if (table[i].hash != hash)
				continue;
			const uint8_t *other = &arena[start[table[i].number]];
			if (other[0] == size && !memcmp(other + 1, bytes, size))
				break;
		}
		return i;
	}
	void grow()
	{
		std::vector<Slot> larger(table.size() * 2, Slot{ 0, NOTHING });
		for (const Slot &slot : table) {
			if (slot.number == NOTHING)
				continue;
			size_t i = slot.hash & (larger.size() - 1);
			while (larger[i].number != NOTHING)
				i = (i + 1) & (larger.size() - 1);
			larger[i] = slot;
		}
		table.swap(larger);
	}

	size_t limit;
	std::vector<Slot> table;
	std::vector<uint32_t> parent, start;
	std::vector<uint8_t> arena;
};

template<unsigned H, unsigned P> class Exploration {
public:
	Exploration(const WorldSpec &given, const Features &features,
		    const uint8_t (&homes)[P], size_t limit)
		: spec(given), rules(features, homes), store(limit)
	{
		find_orders();
	}

	bool run(bool lies);

private:
	using W = World<H, P>;

	void find_orders();
	uint32_t enter(const W &world, uint32_t from);
	void canonical(const W &world, Packer &best) const;
	W state(uint32_t n) const
	{
		W world(rules);
		Unpacker in(store.at(n));
		world.unpack(rules, in);
		return world;
	}
	void look_at_bits(const W &world) const;
	bool expand(uint32_t n);
	uint32_t first_without_end();
	void show(uint32_t n, const Move *last, const Violation &wrong,
		  const std::vector<uint32_t> &further = {});
	void show_endless(uint32_t n);

	const WorldSpec &spec;
	Rules<H, P> rules;
	Store store;
	std::vector<Order<H, P>> orders;
	std::vector<uint64_t> edges_start;
	std::vector<uint32_t> edges;	/* what is owed: where it leads */
	std::vector<bool> is_quiet, ends;
	std::vector<Move> moves;
	size_t transitions = 0;
	Lies told;
	bool lie = false;
};

/* Names of hosts and pages that may be exchanged: those that the homes allow. */
template<unsigned H, unsigned P> void Exploration<H, P>::find_orders()
{
	uint8_t hosts[H], pages[P];

	for (unsigned h = 0; h < H; h++)
		hosts[h] = uint8_t(h);
	do {
		for (unsigned p = 0; p < P; p++)
			pages[p] = uint8_t(p);
		do {
			Order<H, P> o;
			bool same = true;
			for (unsigned i = 0; i < H; i++) {
				o.host_at[i] = hosts[i];
				o.place_of[hosts[i]] = uint8_t(i);
			}
			for (unsigned j = 0; j < P; j++) {
				o.page_at[j] = pages[j];
				o.page_place[pages[j]] = uint8_t(j);
				same &= o.place_of[rules.home[pages[j]]] ==
					rules.home[j];
			}
			bool itself = std::is_sorted(hosts, hosts + H) &&
				      std::is_sorted(pages, pages + P);
			/* A program's order of pages depends on the host. */
			if (same && (itself || !rules.may.program))
				orders.push_back(o);
		} while (std::next_permutation(pages, pages + P));
	} while (std::next_permutation(hosts, hosts + H));
}

template<unsigned H, unsigned P>
void Exploration<H, P>::canonical(const W &world, Packer &best) const
{
	world.pack(rules, orders[0], best);
	for (size_t i = 1; i < orders.size(); i++) {
		Packer other;
		world.pack(rules, orders[i], other);
		if (other.less_than(best))
			best.take(other);
	}
}

template<unsigned H, unsigned P>
uint32_t Exploration<H, P>::enter(const W &world, uint32_t from)
{
	Packer best;

	canonical(world, best);
	if (best.overflow) {
		fprintf(stderr, "%s: a state that the bits do not hold\n", spec.name);
		exit(2);
	}
	return store.find_or_add(best.bytes, best.size, from);
}

/* Do the bits say all that the world has?  Ends the program if they do not. */
template<unsigned H, unsigned P>
void Exploration<H, P>::look_at_bits(const W &world) const
{
	Packer bits;
	W again(rules);

	world.pack(rules, orders[0], bits);
	Unpacker in(bits.bytes);
	again.unpack(rules, in);
	std::string lost = world.difference(again);
	if (!lost.empty()) {
		fprintf(stderr, "%s: the bits lose %s\n", spec.name, lost.c_str());
		exit(2);
	}
}

template<unsigned H, unsigned P> bool Exploration<H, P>::expand(uint32_t n)
{
	const W here = state(n);
	Violation wrong;

	is_quiet.push_back(here.quiet(rules));
	edges_start.push_back(edges.size());
	here.moves(rules, moves);
	for (const Move &move : moves) {
		W next = here;
		if (!next.make(rules, move, wrong) && wrong.empty())
			continue;
		transitions++;
		if (!wrong.empty()) {
			show(n, &move, wrong);
			return false;
		}
		if (transitions % LOOK_EVERY == 1)
			look_at_bits(next);
		uint32_t to = enter(next, n);
		if (move.owed())
			edges.push_back(to);
	}
	if (lie && !tell_lies(here, rules, told, wrong)) {
		show(n, nullptr, wrong);
		return false;
	}
	return true;
}

/*
 * A state has an end if it is quiet, or something is owed and wherever that
 * leads has an end.  Going backwards settles nearly all in one round.
 */
template<unsigned H, unsigned P> uint32_t Exploration<H, P>::first_without_end()
{
	bool changed = true;

	ends = is_quiet;
	edges_start.push_back(edges.size());
	while (changed) {
		changed = false;
		for (size_t n = ends.size(); n--;) {
			if (ends[n] || edges_start[n] == edges_start[n + 1])
				continue;
			bool all = true;
			for (uint64_t e = edges_start[n];
			     all && e < edges_start[n + 1]; e++)
				all = ends[edges[e]];
			if (all)
				ends[n] = changed = true;
		}
	}
	for (uint32_t n = 0; n < ends.size(); n++)
		if (!ends[n])
			return n;
	return Store::NOTHING;
}

/* The way to state n with the names that hosts have on the way. */
template<unsigned H, unsigned P>
void Exploration<H, P>::show(uint32_t n, const Move *last, const Violation &wrong,
			     const std::vector<uint32_t> &further)
{
	std::vector<uint32_t> way;
	Chart chart(H);
	W world(rules);
	Violation ignored;

	for (uint32_t k = n; k != 0; k = store.from(k))
		way.push_back(k);
	std::reverse(way.begin(), way.end());
	way.insert(way.end(), further.begin(), further.end());
	printf("VIOLATION in %s: %s\n", spec.name, wrong.c_str());
	for (uint32_t to : way) {
		world.moves(rules, moves);
		for (const Move &move : moves) {
			W next = world;
			Packer best;
			if (!next.make(rules, move, ignored))
				continue;
			canonical(next, best);
			if (store.find(best.bytes, best.size) != to)
				continue;
			chart.line(move, world.say(move), next.picture());
			world = next;
			break;
		}
	}
	if (last) {
		/* The same move with the names that the hosts have here. */
		world.moves(rules, moves);
		for (const Move &move : moves) {
			W next = world;
			Violation w;
			if (move.will != last->will)
				continue;
			next.make(rules, move, w);
			if (w != wrong)
				continue;
			chart.line(move, world.say(move), next.picture());
			break;
		}
	}
	chart.end(wrong);
}

/* On through states without an end, to one where nothing is owed or again. */
template<unsigned H, unsigned P> void Exploration<H, P>::show_endless(uint32_t n)
{
	std::vector<uint32_t> further;
	uint32_t k = n;
	bool again = false;

	while (edges_start[k] != edges_start[k + 1] && !again) {
		uint64_t e = edges_start[k];
		while (ends[edges[e]])
			e++;
		k = edges[e];
		again = std::count(further.begin(), further.end(), k);
		further.push_back(k);
	}
	show(n, nullptr, again ? "and so on, for ever" :
	     "nothing is owed any more, and somebody waits", further);
}

template<unsigned H, unsigned P> bool Exploration<H, P>::run(bool lies)
{
	clock_t begun = clock();
	uint32_t endless;

	lie = lies;
	enter(W(rules), 0);
	for (uint32_t n = 0; n < store.size(); n++) {
		if (store.full()) {
			fprintf(stderr, "%s: more than %zu states\n", spec.name,
				store.size());
			exit(2);
		}
		if (!expand(n))
			return false;
	}
	endless = first_without_end();
	if (endless != Store::NOTHING) {
		show_endless(endless);
		return false;
	}
	double seconds = double(clock() - begun) / CLOCKS_PER_SEC;
	printf("%-18s %9zu states %10zu transitions %7.1f s %8.0f states/s",
	       spec.name, store.size(), transitions, seconds,
	       double(store.size()) / std::max(seconds, 1e-3));
	if (lies)
		printf(" %zu of %zu lies refused", told.refused, told.told);
	for (const auto &[type, n] : told.foolish())
		printf("; taken, and never true: %zu %s", n, type.c_str());
	printf("\n");
	fflush(stdout);
	return true;
}

template<unsigned H, unsigned P>
static bool explore(const WorldSpec &spec, size_t limit, bool lies)
{
	uint8_t homes[P];

	for (unsigned p = 0; p < P; p++)
		homes[p] = spec.homes[p];
	return std::make_unique<Exploration<H, P>>(spec, spec.features, homes,
						   limit)->run(lies);
}

static bool explore(const WorldSpec &spec, size_t limit, bool lies)
{
	switch (spec.hosts * 10 + spec.pages) {
	case 21:
		return explore<2, 1>(spec, limit, lies);
	case 22:
		return explore<2, 2>(spec, limit, lies);
	case 31:
		return explore<3, 1>(spec, limit, lies);
	case 32:
		return explore<3, 2>(spec, limit, lies);
	case 41:
		return explore<4, 1>(spec, limit, lies);
	}
	fprintf(stderr, "%s: no world has this size\n", spec.name);
	exit(2);
}

int main(int argc, char **argv)
{
	size_t limit = 24000000;	/* about 1.8 GB */
	bool lies = false, fine = true;

	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];
		if (word == "--list") {
			for (const WorldSpec &spec : all_worlds())
				printf("%s\t%s\n", spec.name, spec.about);
		} else if (word == "--lies") {
			lies = true;
		} else if (word == "--states" && i + 1 < argc) {
			limit = strtoull(argv[++i], nullptr, 0);
		} else if (word == "--walk" && i + 4 < argc) {
			unsigned hosts = unsigned(atoi(argv[++i]));
			unsigned pages = unsigned(atoi(argv[++i]));
			uint64_t seed = strtoull(argv[++i], nullptr, 0);
			uint64_t steps = strtoull(argv[++i], nullptr, 0);
			fine &= walk(hosts, pages, seed, steps);
		} else {
			const WorldSpec *spec = find_world(word);
			if (!spec) {
				fprintf(stderr, "no world %s; --list names them\n",
					word.c_str());
				return 2;
			}
			fine &= explore(*spec, limit, lies);
		}
	}
	return fine ? 0 : 1;
}
