// SPDX-License-Identifier: GPL-2.0
/*
 * Exhaustive exploration of small worlds, and long walks through larger ones.
 *
 *	explore [--states N] [--lies [--say]] WORLD...	all states of these worlds
 *	explore --truth WORLD... --lies WORLD...	and what is true in the first is no lie in the others
 *	explore --list				their names
 *	explore --pairs				pairs of features, and the worlds that have both
 *	explore --outcomes			of each litmus test: its pages, threads, and what is allowed with
 *						one memory, and with store buffers
 *	explore --walk HOSTS PAGES SEED STEPS	one long walk
 *
 * Breadth first, so that the trace to a violation is a shortest one.  States
 * are known by a hash of their bits (store.h says what that can miss); those
 * that differ in the names of hosts only are one.  When all are known: if the world's will rests in any of them, does
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
#include "store.h"
#include "walk.h"
#include "worlds.h"
#include "world.h"

constexpr size_t LOOK_EVERY = 16;	/* transitions: are all fields among the bits? */

struct How {
	bool lies, say;				/* tell all lies, and say which are foolish */
	Lies *truth;				/* not null: note what is true */
	const std::unordered_set<std::string> *known;	/* what is true elsewhere */
};

template<unsigned H, unsigned P> class Exploration {
public:
	Exploration(const WorldSpec &given, const Features &features,
		    const uint8_t (&homes)[P], size_t limit)
		: spec(given), rules(features, homes), store(limit)
	{
		find_orders();
		/* A page that leaves a host empties its buffers, so of them others see nothing. */
		if (features.litmus)
			allowed = possible_outcomes(features.shape(), features.weak ||
						    (features.buffers && features.together));
	}

	bool run(const How &how);

private:
	using W = World<H, P>;

	void find_orders();
	struct Successor {
		Packer bits;
		uint64_t hash;
		bool owed;
	};

	void prepare(const W &world, Successor &next) const;
	uint32_t enter(const Successor &next, uint32_t from);
	void canonical(const W &world, Packer &best) const;
	W next_state()
	{
		W world(rules);
		Unpacker in(queue.pop());
		world.unpack(rules, in);
		return world;
	}
	void look_at_bits(const W &world) const;
	bool look_at_outcome(uint32_t n, const W &world);
	bool expand(uint32_t n);
	uint32_t first_without_end();
	void show(uint32_t n, const Move *last, const Violation &wrong,
		  const std::vector<uint32_t> &further = {});
	void show_endless(uint32_t n);

	const WorldSpec &spec;
	Rules<H, P> rules;
	Store store;
	std::vector<Order<H, P>> orders;
	Queue queue;
	Column<uint32_t> edges;		/* what is owed: where it leads */
	Column<uint8_t> degree;		/* and how many of these each state has */
	std::vector<bool> ends;		/* first: is quiet */
	std::vector<Move> moves;
	std::vector<Successor> successors;	/* of the state that is expanded */
	size_t transitions = 0;
	Outcomes allowed, reached;	/* of a litmus test */
	struct {
		uint32_t at;
		Move move;
		Violation wrong;
	} aside = {};	/* what is wrong in a litmus test without being seen by its program */
	Lies told;
	How how = {};
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
			/* What a program does depends on the host. */
			if (same && (itself || !(rules.may.program || rules.may.litmus)))
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
void Exploration<H, P>::prepare(const W &world, Successor &next) const
{
	next.bits = Packer();
	canonical(world, next.bits);
	if (next.bits.overflow) {
		fprintf(stderr, "%s: a state that the bits do not hold\n", spec.name);
		exit(2);
	}
	next.hash = hash_of(next.bits.bytes, next.bits.size);
	store.prefetch(next.hash);
}

template<unsigned H, unsigned P>
uint32_t Exploration<H, P>::enter(const Successor &next, uint32_t from)
{
	size_t before = store.size();
	uint32_t n = store.find_or_add(next.hash, from);

	if (store.size() != before)
		queue.push(next.bits.bytes, next.bits.size);
	return n;
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

/* False: no machine with one memory has it. */
template<unsigned H, unsigned P>
bool Exploration<H, P>::look_at_outcome(uint32_t n, const W &world)
{
	Outcomes here;

	world.outcomes(rules, here);
	for (const std::string &outcome : here) {
		if (!allowed.count(outcome)) {
			show(n, nullptr, "a forbidden outcome: " + outcome);
			return false;
		}
		reached.insert(outcome);
	}
	return true;
}

template<unsigned H, unsigned P> bool Exploration<H, P>::expand(uint32_t n)
{
	const W here = next_state();
	size_t edges_before = edges.size();
	Violation wrong;

	ends.push_back(here.quiet(rules));
	if (rules.may.litmus && ends.back() && !look_at_outcome(n, here))
		return false;
	here.moves(rules, moves);
	if (successors.size() < moves.size())
		successors.resize(moves.size());
	size_t found = 0;
	for (const Move &move : moves) {
		W next = here;
		if (!next.make(rules, move, wrong) && wrong.empty())
			continue;
		transitions++;
		if (!wrong.empty() && rules.may.litmus) {
			/* The end of the VM: its program sees nothing more. */
			if (aside.wrong.empty())
				aside = { n, move, wrong };
			wrong.clear();
			continue;
		}
		if (!wrong.empty()) {
			show(n, &move, wrong);
			return false;
		}
		if (transitions % LOOK_EVERY == 1)
			look_at_bits(next);
		prepare(next, successors[found]);
		successors[found++].owed = move.owed();
	}
	/* All at once, so that memory is waited for once. */
	for (size_t i = 0; i < found; i++) {
		uint32_t to = enter(successors[i], n);
		if (successors[i].owed)
			edges.push_back(to);
	}
	degree.push_back(uint8_t(edges.size() - edges_before));
	if (how.truth)
		note_truth(here, *how.truth);
	if (how.lies && !tell_lies(here, rules, told, wrong)) {
		show(n, nullptr, wrong);
		return false;
	}
	return true;
}

/*
 * A state has an end if it is quiet, or something is owed and wherever that
 * leads has an end.  Going backwards settles nearly all in one round.
 *
 * A litmus test has neither token nor fairness: of two threads that take a page
 * from each other for ever each could have gone on.  So one way to an end is
 * enough there.
 */
template<unsigned H, unsigned P> uint32_t Exploration<H, P>::first_without_end()
{
	bool changed = true;

	while (changed) {
		size_t last = edges.size();
		changed = false;
		for (size_t n = ends.size(); n--;) {
			size_t first = last - degree[n];
			bool all = first != last, any = false;
			for (size_t e = first; e < last && !ends[n]; e++) {
				all = all && ends[edges[e]];
				any = any || ends[edges[e]];
			}
			if (!ends[n] && (rules.may.litmus ? any : all))
				ends[n] = changed = true;
			last = first;
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
			if (store.find(hash_of(best.bytes, best.size)) != to)
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

	while (degree[k] && !again) {
		size_t e = 0;
		for (uint32_t before = 0; before < k; before++)
			e += degree[before];
		while (ends[edges[e]])
			e++;
		k = edges[e];
		again = std::count(further.begin(), further.end(), k);
		further.push_back(k);
	}
	show(n, nullptr, again ? "and so on, for ever" :
	     "nothing is owed any more, and somebody waits", further);
}

template<unsigned H, unsigned P> bool Exploration<H, P>::run(const How &given)
{
	clock_t begun = clock();
	uint32_t endless;

	how = given;
	successors.resize(1);
	prepare(W(rules), successors[0]);
	enter(successors[0], 0);
	for (uint32_t n = 0; n < store.size(); n++) {
		if (store.full()) {
			fprintf(stderr, "%s: more than %zu states\n", spec.name,
				store.size());
			exit(2);
		}
		if (!expand(n))
			return false;
	}
	if (!aside.wrong.empty()) {
		show(aside.at, &aside.move, aside.wrong);
		return false;
	}
	endless = first_without_end();
	if (endless != Store::NOTHING) {
		show_endless(endless);
		return false;
	}
	for (const std::string &outcome : allowed)
		if (!reached.count(outcome)) {
			printf("VIOLATION in %s: an outcome that nothing leads to: %s\n", spec.name,
			       outcome.c_str());
			return false;
		}
	double seconds = double(clock() - begun) / CLOCKS_PER_SEC;
	printf("%-18s %9zu states %10zu transitions %7.1f s %8.0f states/s",
	       spec.name, store.size(), transitions, seconds,
	       double(store.size()) / std::max(seconds, 1e-3));
	if (how.lies) {
		printf(" %zu of %zu lies refused", told.refused, told.told);
		told.honest.insert(how.known->begin(), how.known->end());
	}
	if (rules.may.litmus)
		printf(" %zu outcomes, all that are allowed", reached.size());
	const auto foolish = told.foolish();
	for (const auto &[type, views] : foolish)
		printf("; taken, and never true: %zu %s", views.size(), type.c_str());
	printf("\n");
	for (const auto &[type, views] : foolish)
		for (const std::string &view : views)
			if (how.say)
				printf("  %s\n", say_view(view).c_str());
	fflush(stdout);
	return true;
}

template<unsigned H, unsigned P>
static bool explore(const WorldSpec &spec, size_t limit, const How &how)
{
	uint8_t homes[P];

	for (unsigned p = 0; p < P; p++)
		homes[p] = spec.homes[p];
	return std::make_unique<Exploration<H, P>>(spec, spec.features, homes,
						   limit)->run(how);
}

static bool explore(const WorldSpec &spec, size_t limit, const How &how)
{
	switch (spec.hosts * 10 + spec.pages) {
	case 21:
		return explore<2, 1>(spec, limit, how);
	case 22:
		return explore<2, 2>(spec, limit, how);
	case 31:
		return explore<3, 1>(spec, limit, how);
	case 32:
		return explore<3, 2>(spec, limit, how);
	case 41:
		return explore<4, 1>(spec, limit, how);
	case 42:
		return explore<4, 2>(spec, limit, how);
	}
	fprintf(stderr, "%s: no world has this size\n", spec.name);
	exit(2);
}

static void print_outcomes()
{
	for (const Shape &shape : all_shapes())
		for (bool buffers : { false, true }) {
			printf("%s\t%u\t%zu\t%s", shape.name, shape.pages, shape.threads.size(),
			       buffers ? "buffers" : "memory");
			for (const std::string &outcome : possible_outcomes(shape, buffers))
				printf("\t%s", outcome.c_str());
			printf("\n");
		}
}

int main(int argc, char **argv)
{
	size_t limit = 24000000;	/* 1.5 GiB: see store.h */
	bool fine = true;
	Lies truth;
	How how = { false, false, nullptr, &truth.honest };

	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];
		if (word == "--list") {
			for (const WorldSpec &spec : all_worlds())
				printf("%s\t%s\n", spec.name, spec.about);
		} else if (word == "--pairs") {
			fine &= !print_pairs();
		} else if (word == "--outcomes") {
			print_outcomes();
		} else if (word == "--lies") {
			how.lies = true;
			how.truth = nullptr;
		} else if (word == "--say") {
			how.say = true;
		} else if (word == "--truth") {
			how.lies = false;
			how.truth = &truth;
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
			fine &= explore(*spec, limit, how);
		}
	}
	return fine ? 0 : 1;
}
