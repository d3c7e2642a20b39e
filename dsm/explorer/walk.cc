// SPDX-License-Identifier: GPL-2.0
/*
 * Long walks through worlds that are too large for exploration.
 */
#include "walk.h"

#include <deque>

#include "chart.h"
#include "world.h"

constexpr unsigned HOSTS = 16, PAGES = 4;
constexpr unsigned REST_EVERY = 2000;	/* moves */
constexpr unsigned MOVES_TO_QUIET = 20000;
constexpr unsigned RARELY = 500;	/* once in so many moves a host is to die */
constexpr unsigned ALONE_RARELY = 20;	/* and once in so many of these one whose death ends the VM */
constexpr size_t LAST_MOVES = 40;	/* shown after a violation */

namespace {

class Dice {
public:
	explicit Dice(uint64_t seed) : state(seed) {}
	uint32_t below(uint32_t limit)	/* splitmix64 */
	{
		uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		z ^= z >> 31;
		return uint32_t((z >> 32) * limit >> 32);
	}

private:
	uint64_t state;
};

struct Line {
	Move move;
	std::string text, after;
};

using W = World<HOSTS, PAGES>;

class Walk {
public:
	Walk(unsigned hosts, unsigned pages, uint64_t seed, const uint8_t (&homes)[PAGES],
	     const Features &may)
		: nr_hosts(hosts), nr_pages(pages), dice(seed), rules(may, homes),
		  world(rules)
	{
		for (unsigned h = 0; h < HOSTS; h++)
			world.up[h] &= uint16_t(h < hosts ? (1u << hosts) - 1 : 0);
	}

	bool step(bool rest);
	bool quiet() const { return world.quiet(rules); }
	bool failed() const { return world.failed; }
	unsigned deaths() const { return unsigned(__builtin_popcount(world.dead)); }
	Violation wrong;
	void show() const;

private:
	bool is_in(const Move &move) const
	{
		return move.host < nr_hosts &&
		       (move.page == NO_PAGE || move.page < nr_pages);
	}

	/* Its death loses a page, or a home. */
	bool has_alone(unsigned host) const
	{
		for (unsigned p = 0; p < nr_pages; p++)
			if (world.page[host][p].home == host ||
			    world.page[host][p].state == DSM_MODIFIED ||
			    world.page[host][p].writeback)
				return true;
		return false;
	}
	/* Who dies now, if it is time and the world has that move; or HOSTS. */
	unsigned who_dies()
	{
		unsigned host;

		if (!rules.may.deaths || dice.below(RARELY))
			return HOSTS;
		host = dice.below(nr_hosts);
		return has_alone(host) && dice.below(ALONE_RARELY) ? HOSTS : host;
	}

	unsigned nr_hosts, nr_pages;
	Dice dice;
	Rules<HOSTS, PAGES> rules;
	W world;
	std::vector<Move> moves;
	std::deque<Line> last;
};

/* False: nothing can be done, or something is wrong. */
bool Walk::step(bool rest)
{
	std::vector<Move> possible;
	unsigned dying = rest ? HOSTS : who_dies();
	bool dies = false;

	world.moves(rules, moves);
	for (const Move &move : moves) {
		if (!is_in(move) || (rest && !move.owed()))
			continue;
		if (move.will == Will::DIE && move.host == dying) {
			possible = { move };
			dies = true;
			break;
		}
		if (move.will != Will::DIE)
			possible.push_back(move);
	}
	/* What is owed goes first half of the time, or nothing ever ends. */
	if (!rest && !dies && dice.below(2)) {
		std::vector<Move> owed;
		for (const Move &move : possible)
			if (move.owed())
				owed.push_back(move);
		if (!owed.empty())
			possible.swap(owed);
	}
	while (!possible.empty()) {
		size_t i = dice.below(uint32_t(possible.size()));
		Move move = possible[i];
		std::string text = world.say(move);
		if (world.make(rules, move, wrong) || !wrong.empty()) {
			last.push_back({ move, text, world.picture() });
			if (last.size() > LAST_MOVES)
				last.pop_front();
			return wrong.empty();
		}
		possible.erase(possible.begin() + long(i));
	}
	return false;
}

void Walk::show() const
{
	Chart chart(nr_hosts);

	for (const Line &line : last)
		chart.line(line.move, line.text, line.after);
	chart.end(wrong);
}

} // namespace

bool walk(unsigned hosts, unsigned pages, uint64_t seed, uint64_t steps)
{
	uint8_t homes[PAGES] = {};
	Features may = {};
	Dice dice(seed ^ 0x5bd1e995);

	if (hosts < 2 || hosts > HOSTS || !pages || pages > PAGES) {
		fprintf(stderr, "2 to %u hosts, 1 to %u pages\n", HOSTS, PAGES);
		return false;
	}
	for (uint8_t &home : homes)
		home = uint8_t(dice.below(hosts));
	may.evict = may.merge = true;
	may.pins = dice.below(4);
	may.prefetch = dice.below(2);
	may.zero = dice.below(2);
	may.drop = dice.below(2);
	may.remote_drop = may.drop && dice.below(2);
	may.leases = dice.below(3) == 0;
	may.split = dice.below(2);
	/* Two are left: one alone has nobody to speak with. */
	may.deaths = !dice.below(2) ? 0 : hosts > 2 ? hosts - 2 : 1;
	may.home_dies = !dice.below(8);
	may.ahead = may.prefetch && dice.below(2);
	printf("walk: %u hosts, %u pages, seed %llu:", hosts, pages,
	       static_cast<unsigned long long>(seed));

	uint64_t n = 0;
	Walk way(hosts, pages, seed, homes, may);
	for (; n < steps && way.wrong.empty() && !way.failed(); n++) {
		way.step(false);
		if (n % REST_EVERY != REST_EVERY - 1)
			continue;
		unsigned m = 0;
		while (m++ < MOVES_TO_QUIET && !way.quiet() && way.step(true))
			;
		if (!way.quiet() && way.wrong.empty())
			way.wrong = "what is owed does not lead to quiet";
	}
	if (way.wrong.empty()) {
		printf(" %llu moves, %u hosts died, no violation%s\n",
		       static_cast<unsigned long long>(n), way.deaths(),
		       way.failed() ? "; a page was lost with its host" : "");
		return true;
	}
	printf("\nVIOLATION: %s\n", way.wrong.c_str());
	way.show();
	return false;
}
