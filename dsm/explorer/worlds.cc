// SPDX-License-Identifier: GPL-2.0
/*
 * The table of worlds.  What a world leaves out, another one has; the sizes
 * say what one core explores in some minutes.
 */
#include "worlds.h"

#include <cstdlib>
#include <deque>
#include <memory>

using F = Features;
using Flags = std::vector<bool F::*>;

/* Numbers that are not 0: of deaths, of hosts that leave and come back. */
static F can(const Flags &flags, unsigned deaths = 0, unsigned comes_back = 0)
{
	F may = {};

	for (bool F::*flag : flags)
		may.*flag = true;
	may.deaths = deaths;
	may.comes_back = comes_back;
	return may;
}

static F program(unsigned instructions, unsigned losses, const Flags &flags, unsigned deaths = 0)
{
	F may = can(flags, deaths);

	may.program = instructions;
	may.max_losses = losses;
	may.leases = true;
	return may;
}

/* The shape of that name. */
static F litmus(const char *name, const Flags &flags)
{
	F may = can(flags);

	while (std::string(all_shapes()[may.litmus++].name) != name)
		;
	return may;
}

constexpr auto EVICT = &F::evict, PINS = &F::pins, PREFETCH = &F::prefetch,
	       ZERO = &F::zero, DROP = &F::drop, REMOTE_DROP = &F::remote_drop,
	       LEASES = &F::leases, SPLIT = &F::split, PRIVATE = &F::private_pages,
	       NO_MEMORY = &F::no_memory, BROKEN = &F::broken, LOOSE = &F::loose,
	       MERGE = &F::merge, PROMPT = &F::prompt, CUT = &F::cut,
	       GOES_ON = &F::goes_on, HOME_DIES = &F::home_dies,
	       READS_FIRST = &F::reads_first, REORDER = &F::reorder,
	       AHEAD = &F::ahead, AT_HOME = &F::at_home, RINGS = &F::rings,
	       BUFFERS = &F::buffers, TOGETHER = &F::together,
	       LATE_STORES = &F::late_stores, WEAK = &F::weak;

static const std::vector<WorldSpec> one_by_one = {
	{ "2x1-small", "evictions", 2, 1, { 0 }, can({ EVICT }) },
	{ "2x1-core", "misses that merge, evictions, pins", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE }) },
	{ "2x1", "all but pages that are zeroed, leases and death", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, DROP, REMOTE_DROP, SPLIT }) },
	{ "2x1-zero", "pages that are zeroed, no holes", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, ZERO, SPLIT }) },
	{ "2x1-zero-holes", "pages that are zeroed, holes", 2, 1, { 0 },
	  can({ MERGE, ZERO, DROP, REMOTE_DROP }) },
	{ "2x1-zero-pins", "pages that are zeroed, holes at home, pins", 2, 1, { 0 },
	  can({ EVICT, PINS, ZERO, DROP }) },
	{ "2x1-zero-leases", "pages that are zeroed, leases", 2, 1, { 0 },
	  can({ EVICT, PINS, ZERO, LEASES, SPLIT }) },
	{ "2x1-holes", "holes, prefetches, and misses that merge", 2, 1, { 0 },
	  can({ MERGE, PREFETCH, DROP, REMOTE_DROP }) },
	{ "2x1-loose", "Xen records misses without a second look", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, LEASES, SPLIT, LOOSE }) },
	{ "2x1-loose-holes", "the same with holes and pages that are zeroed", 2, 1, { 0 },
	  can({ ZERO, DROP, REMOTE_DROP, LOOSE }) },
	{ "2x1-ahead", "prefetches of pages that will be written", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, AHEAD, LEASES, SPLIT, LOOSE }) },
	{ "2x1-ahead-holes", "the same; holes, private pages, operations fail", 2, 1,
	  { 0 }, can({ EVICT, AHEAD, ZERO, DROP, REMOTE_DROP, SPLIT, PRIVATE,
		       NO_MEMORY, BROKEN }) },
	{ "2x1-ahead-lost", "the same; a host leaves, dies, or the connection breaks", 2,
	  1, { 0 }, can({ EVICT, AHEAD, CUT, HOME_DIES }, 1, 1) },
	{ "2x1-leases", "leases", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, LEASES }) },
	{ "2x1-leases-holes", "leases and holes", 2, 1, { 0 },
	  can({ EVICT, PINS, PREFETCH, DROP, REMOTE_DROP, LEASES }) },
	{ "2x1-private", "a page that can't leave its home", 2, 1, { 0 },
	  can({ EVICT, MERGE, PREFETCH, PRIVATE, SPLIT }) },
	{ "2x1-private-zero", "the same with all but holes", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, ZERO, LEASES, PRIVATE, SPLIT }) },
	{ "2x1-private-holes", "the same with all but pages that are zeroed", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, DROP, REMOTE_DROP, LEASES, PRIVATE,
		SPLIT }) },
	{ "2x1-at-home", "a page that can't leave its home is used there, until it can", 2, 1,
	  { 0 }, can({ EVICT, PINS, MERGE, PREFETCH, PRIVATE, AT_HOME, SPLIT }) },
	{ "2x1-at-home-leases", "the same with leases, pages that are zeroed", 2, 1, { 0 },
	  can({ EVICT, PINS, ZERO, LEASES, PRIVATE, AT_HOME, SPLIT }) },
	{ "2x1-ring", "a page that is in use at home, and need never be let go", 2, 1, { 0 },
	  can({ EVICT, MERGE, PREFETCH, RINGS, AT_HOME, SPLIT }) },
	{ "2x1-ring-leases", "the same with leases, holes at home", 2, 1, { 0 },
	  can({ EVICT, DROP, LEASES, RINGS, AT_HOME }) },
	{ "2x1-broken", "page operations fail, or find no memory", 2, 1, { 0 },
	  can({ DROP, REMOTE_DROP, SPLIT, NO_MEMORY, BROKEN }) },
	{ "2x1-broken-evict", "the same with evictions, pins, prefetches", 2, 1, { 0 },
	  can({ EVICT, PINS, PREFETCH, DROP, REMOTE_DROP, SPLIT, NO_MEMORY, BROKEN }) },
	{ "2x1-broken-zero", "the same with pages that are zeroed", 2, 1, { 0 },
	  can({ ZERO, DROP, SPLIT, PRIVATE, LOOSE, NO_MEMORY, BROKEN }) },
	{ "2x1-broken-leases", "the same with leases, misses that merge", 2, 1, { 0 },
	  can({ MERGE, DROP, REMOTE_DROP, LEASES, SPLIT, NO_MEMORY, BROKEN }) },
	{ "2x1-death-small", "one host dies, evictions", 2, 1, { 0 },
	  can({ EVICT, HOME_DIES }, 1) },
	{ "2x1-death-split", "one host dies, page operations take time", 2, 1, { 0 },
	  can({ EVICT, ZERO, SPLIT, HOME_DIES }, 1) },
	{ "2x1-death", "one host dies, all but pages that are zeroed and leases", 2, 1,
	  { 0 }, can({ EVICT, PINS, MERGE, PREFETCH, DROP, REMOTE_DROP, SPLIT,
		       HOME_DIES }, 1) },
	{ "2x1-death-leases", "one host dies, leases", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, LEASES, HOME_DIES }, 1) },
	{ "2x1-death-zero", "one host dies, pages that are zeroed, leases", 2, 1, { 0 },
	  can({ EVICT, PINS, PREFETCH, ZERO, LEASES, SPLIT, HOME_DIES }, 1) },
	{ "2x1-death-broken", "one host dies, operations fail, private pages", 2, 1,
	  { 0 }, can({ EVICT, DROP, SPLIT, PRIVATE, LOOSE, NO_MEMORY, BROKEN,
		       HOME_DIES }, 1) },
	{ "2x1-returns", "a host leaves in order and is attached anew; holes", 2, 1,
	  { 0 }, can({ EVICT, PINS, MERGE, DROP, REMOTE_DROP, SPLIT }, 0, 1) },
	{ "2x1-returns-twice", "it does so twice", 2, 1, { 0 },
	  can({ EVICT, PREFETCH, DROP, REMOTE_DROP }, 0, 2) },
	{ "2x1-returns-leases", "it does so, leases", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, LEASES, SPLIT }, 0, 1) },
	{ "2x1-returns-zero", "it does so, or one dies, or the connection breaks", 2, 1,
	  { 0 }, can({ EVICT, ZERO, PRIVATE, LOOSE, CUT, HOME_DIES }, 1, 1) },
	{ "2x1-returns-broken", "it does so, or one dies, and operations fail", 2, 1,
	  { 0 }, can({ EVICT, DROP, SPLIT, NO_MEMORY, BROKEN, HOME_DIES }, 1, 1) },
	{ "2x1-cut", "a connection breaks, and both live", 2, 1, { 0 },
	  can({ EVICT, PINS, MERGE, PREFETCH, LEASES, SPLIT, CUT }) },
	{ "2x1-cut-holes", "the same with holes", 2, 1, { 0 },
	  can({ EVICT, DROP, REMOTE_DROP, SPLIT, CUT }) },
	{ "2x1-cut-broken", "the same, and operations fail", 2, 1, { 0 },
	  can({ ZERO, DROP, SPLIT, NO_MEMORY, BROKEN, CUT }) },
	{ "3x1-alone", "nothing but misses and writes", 3, 1, { 0 }, can({}) },
	{ "3x1-late", "evictions", 3, 1, { 0 }, can({ EVICT }) },
	{ "3x1-core", "evictions and pins", 3, 1, { 0 }, can({ EVICT, PINS, PROMPT }) },
	{ "3x1-merge", "readers and writers that wait together", 3, 1, { 0 },
	  can({ EVICT, MERGE, PROMPT }) },
	{ "3x1-loose", "the same, recorded without a second look", 3, 1, { 0 },
	  can({ MERGE, LOOSE, PROMPT }) },
	{ "3x1-leases", "leases, evictions, pins, prefetches", 3, 1, { 0 },
	  can({ EVICT, PINS, PREFETCH, LEASES, PROMPT }) },
	{ "3x1-ahead", "prefetches of pages that will be written, evictions", 3, 1, { 0 },
	  can({ EVICT, PREFETCH, AHEAD, PROMPT }) },
	{ "3x1-zero", "pages that are zeroed, evictions, pins", 3, 1, { 0 },
	  can({ EVICT, PINS, ZERO, PROMPT }) },
	{ "3x1-holes", "populate and drop, at home and elsewhere", 3, 1, { 0 },
	  can({ DROP, REMOTE_DROP, PROMPT }) },
	{ "3x1-holes-evict", "populate and drop at home, evictions, zeroed pages", 3, 1,
	  { 0 }, can({ EVICT, DROP, ZERO, PROMPT }) },
	{ "3x1-split", "page operations take time", 3, 1, { 0 },
	  can({ EVICT, SPLIT, PROMPT }) },
	{ "3x1-private", "a page that can't leave its home", 3, 1, { 0 },
	  can({ EVICT, PREFETCH, PRIVATE, PROMPT }) },
	{ "3x1-at-home", "a page that can't leave its home is used there, until it can", 3, 1,
	  { 0 }, can({ EVICT, PINS, PRIVATE, AT_HOME, PROMPT }) },
	{ "3x1-ring", "a page that is in use at home, and need never be let go", 3, 1, { 0 },
	  can({ EVICT, RINGS, AT_HOME, PROMPT }) },
	{ "3x1-ring-program", "the same; vCPUs of all hosts ask until they have used it", 3, 1,
	  { 0 }, program(2, 2, { RINGS, AT_HOME, PROMPT }) },
	{ "3x1-ring-off", "the same, and nobody can use it there", 3, 1, { 0 },
	  program(1, 2, { RINGS, PROMPT }) },
	{ "3x1-broken", "operations fail, or find no memory", 3, 1, { 0 },
	  can({ DROP, SPLIT, NO_MEMORY, BROKEN, PROMPT }) },
	{ "3x1-death", "one host dies, evictions", 3, 1, { 0 },
	  can({ EVICT, HOME_DIES }, 1) },
	{ "3x1-death-pins", "two hosts die, pins and holes", 3, 1, { 0 },
	  can({ PINS, DROP, PROMPT, HOME_DIES }, 2) },
	{ "3x1-death-leases", "one host dies, leases", 3, 1, { 0 },
	  can({ LEASES, HOME_DIES }, 1) },
	{ "3x1-returns", "a host leaves and comes back, evictions, pins", 3, 1, { 0 },
	  can({ EVICT, PINS, PROMPT }, 0, 1) },
	{ "3x1-returns-death", "the same, or one dies", 3, 1, { 0 },
	  can({ EVICT, PROMPT, HOME_DIES }, 1, 1) },
	{ "3x1-cut", "connections break", 3, 1, { 0 }, can({ EVICT, CUT, PROMPT }) },
	{ "4x1-alone", "nothing but misses and writes", 4, 1, { 0 }, can({ PROMPT }) },
	{ "4x1-evict", "evictions", 4, 1, { 0 }, can({ EVICT, PROMPT }) },
	{ "2x2-alone", "two pages with one home", 2, 2, { 0, 0 }, can({}) },
	{ "2x2-cross", "two pages, each at home at one host", 2, 2, { 0, 1 },
	  can({}) },
	{ "2x2-pins", "the same with evictions and pins", 2, 2, { 0, 1 },
	  can({ EVICT, PINS, PROMPT }) },
	{ "2x2-program", "instructions of two pages, leases, the token", 2, 2,
	  { 0, 0 }, program(2, 2, { EVICT }) },
	{ "2x2-program-cross", "the same with two homes", 2, 2, { 0, 1 },
	  program(2, 2, { EVICT }) },
	{ "2x2-program-pins", "the same with pins", 2, 2, { 0, 1 },
	  program(1, 1, { PINS }) },
	{ "2x2-program-split", "page operations take time", 2, 2, { 0, 0 },
	  program(1, 1, { SPLIT }) },
	{ "2x2-program-cut", "the connection breaks", 2, 2, { 0, 1 },
	  program(1, 1, { EVICT, CUT }) },
	{ "2x2-upgrades", "instructions that read both pages, then write them", 2, 2,
	  { 0, 0 }, program(1, 1, { READS_FIRST }) },
	{ "2x2-upgrades-cross", "the same with two homes", 2, 2, { 0, 1 },
	  program(1, 1, { READS_FIRST }) },
	{ "2x2-upgrades-pins", "the same with pins", 2, 2,
	  { 0, 1 }, program(1, 1, { PINS, READS_FIRST }) },
	{ "2x2-upgrades-split", "page operations take time", 2, 2, { 0, 0 },
	  program(1, 1, { SPLIT, READS_FIRST }) },
	{ "2x2-upgrades-death", "one host dies, or the connection breaks", 2, 2,
	  { 0, 1 }, program(1, 1, { CUT, HOME_DIES, READS_FIRST }, 1) },
	{ "3x2-upgrades", "three hosts", 3, 2, { 0, 1 },
	  program(1, 1, { READS_FIRST, PROMPT }) },
	{ "3x2-program", "instructions of two pages, three hosts", 3, 2, { 0, 1 },
	  program(1, 1, { PROMPT }) },
	{ "2x2-death-program", "instructions, the token, and one host dies", 2, 2,
	  { 0, 0 }, program(2, 1, { EVICT, HOME_DIES }, 1) },
	{ "2x2-death-program-cross", "the same with two homes", 2, 2, { 0, 1 },
	  program(2, 1, { EVICT, HOME_DIES }, 1) },
	{ "3x2-death-program", "the same for three hosts, without evictions", 3, 2,
	  { 0, 1 }, program(1, 1, { HOME_DIES }, 1) },
	{ "wrong-transport", "messages overtake: has to be refuted", 2, 1, { 0 },
	  can({ EVICT, REORDER }) },
	{ "wrong-partition", "a connection breaks, both ends go on: has to be refuted", 2, 1,
	  { 0 }, can({ CUT, GOES_ON }) },
	{ "wrong-flush", "a page leaves before stores of CPUs are in it: has to be refuted",
	  2, 2, { 0, 1 }, litmus("mp", { EVICT, BUFFERS, LATE_STORES }) },
	{ "wrong-weak", "what buffers allow is expected of two hosts: has to be refuted",
	  2, 2, { 0, 1 }, litmus("sb", { EVICT, BUFFERS, WEAK }) },
};

/* Where the threads of litmus tests run, and where their pages are at home. */
static const struct {
	const char *suffix, *about;
	unsigned threads, hosts;	/* of shapes with so many threads */
	uint8_t homes[2];
	Flags flags;
} litmus_worlds[] = {
	{ "", "pages at home at one host each, leases", 2, 2, { 0, 1 },
	  { EVICT, SPLIT, LEASES, BUFFERS } },
	{ "-crossed", "at home at one host each, the other way round", 2, 2, { 1, 0 },
	  { EVICT, SPLIT, BUFFERS } },
	{ "-copies", "a copy of any page may be anywhere", 2, 2, { 0, 1 },
	  { PREFETCH, BUFFERS } },
	{ "-ahead", "the same, evictions", 2, 2, { 0, 1 }, { EVICT, PREFETCH, BUFFERS } },
	{ "-third", "at home at a third host", 2, 3, { 2, 2 }, { EVICT, BUFFERS } },
	{ "-one-host", "CPUs of one host, pages of another", 2, 2, { 1, 1 },
	  { EVICT, SPLIT, BUFFERS, TOGETHER } },
	{ "", "two CPUs of each host", 4, 2, { 0, 1 }, { EVICT, SPLIT, LEASES, BUFFERS } },
	{ "-three", "on three hosts", 4, 3, { 0, 1 }, { EVICT, BUFFERS } },
	{ "-four", "a host for each CPU", 4, 4, { 0, 1 }, { EVICT, BUFFERS, PROMPT } },
};

static std::vector<WorldSpec> make_table()
{
	static std::deque<std::string> names;	/* kept for WorldSpec */
	std::vector<WorldSpec> table = one_by_one;
	const std::vector<Shape> &shapes = all_shapes();

	for (const auto &kind : litmus_worlds)
		for (unsigned i = 0; i < shapes.size(); i++) {
			WorldSpec spec = {};
			if (kind.threads != shapes[i].threads.size())
				continue;
			names.push_back(std::string("litmus-") + shapes[i].name + kind.suffix);
			spec.name = names.back().c_str();
			spec.about = kind.about;
			spec.hosts = kind.hosts;
			spec.pages = shapes[i].pages;
			memcpy(spec.homes, kind.homes, sizeof(kind.homes));
			spec.features = can(kind.flags);
			spec.features.litmus = i + 1;
			table.push_back(spec);
		}
	return table;
}

static const std::vector<WorldSpec> worlds = make_table();

const std::vector<WorldSpec> &all_worlds()
{
	return worlds;
}

/* What a world can have, by name; a number if one is said, else yes or no. */
struct FeatureName {
	const char *name;
	bool F::*flag;
	unsigned F::*number;
};

static const FeatureName feature_names[] = {
	{ "evict", &F::evict, nullptr },
	{ "pins", &F::pins, nullptr },
	{ "prefetch", &F::prefetch, nullptr },
	{ "ahead", &F::ahead, nullptr },
	{ "zero", &F::zero, nullptr },
	{ "drop", &F::drop, nullptr },
	{ "remote_drop", &F::remote_drop, nullptr },
	{ "leases", &F::leases, nullptr },
	{ "split", &F::split, nullptr },
	{ "private", &F::private_pages, nullptr },
	{ "at_home", &F::at_home, nullptr },
	{ "rings", &F::rings, nullptr },
	{ "no_memory", &F::no_memory, nullptr },
	{ "broken", &F::broken, nullptr },
	{ "loose", &F::loose, nullptr },
	{ "merge", &F::merge, nullptr },
	{ "prompt", &F::prompt, nullptr },
	{ "comes_back", nullptr, &F::comes_back },
	{ "cut", &F::cut, nullptr },
	{ "goes_on", &F::goes_on, nullptr },
	{ "deaths", nullptr, &F::deaths },
	{ "home_dies", &F::home_dies, nullptr },
	{ "program", nullptr, &F::program },
	{ "reads_first", &F::reads_first, nullptr },
	{ "reorder", &F::reorder, nullptr },
	{ "losses", nullptr, &F::max_losses },
	{ "litmus", nullptr, &F::litmus },
	{ "buffers", &F::buffers, nullptr },
	{ "together", &F::together, nullptr },
	{ "late_stores", &F::late_stores, nullptr },
	{ "weak", &F::weak, nullptr },
};

/* One word of a made world. */
static bool add_word(WorldSpec &spec, const std::string &word)
{
	size_t equals = word.find('=');
	std::string name = word.substr(0, equals);
	unsigned number = equals == std::string::npos ? 1 :
			  unsigned(atoi(word.c_str() + equals + 1));

	if (name == "home0" || name == "home1") {
		spec.homes[name == "home1"] = uint8_t(number);
		return number < spec.hosts;
	}
	for (const FeatureName &feature : feature_names) {
		if (name != feature.name)
			continue;
		if (feature.flag)
			spec.features.*feature.flag = true;
		else
			spec.features.*feature.number = number;
		return number && (feature.number || equals == std::string::npos);
	}
	return false;
}

/* A litmus test needs its pages, and nobody else may write, free or lose them. */
static bool is_possible(const WorldSpec &spec)
{
	const F &may = spec.features;

	if (!may.litmus)
		return !(may.buffers || may.together || may.late_stores || may.weak);
	return may.litmus <= all_shapes().size() && may.shape().pages == spec.pages &&
	       !(may.program || may.zero || may.drop || may.remote_drop || may.private_pages ||
		 may.rings || may.broken || may.apart());
}

static const WorldSpec *make_world(const std::string &text)
{
	static std::vector<std::unique_ptr<std::string>> names;	/* kept for name */
	static std::vector<std::unique_ptr<WorldSpec>> made;
	auto spec = std::make_unique<WorldSpec>();
	size_t colon = text.find(':');
	std::string words = text.substr(colon + 1) + "+";

	if (colon != 3 || text[1] != 'x')
		return nullptr;
	spec->hosts = unsigned(text[0] - '0');
	spec->pages = unsigned(text[2] - '0');
	if (words != "+")
		for (size_t at = 0, end; at < words.size(); at = end + 1) {
			end = words.find('+', at);
			if (!add_word(*spec, words.substr(at, end - at)))
				return nullptr;
		}
	if (!is_possible(*spec))
		return nullptr;
	names.push_back(std::make_unique<std::string>(text));
	spec->name = names.back()->c_str();
	spec->about = "";
	made.push_back(std::move(spec));
	return made.back().get();
}

const WorldSpec *find_world(const std::string &name)
{
	for (const WorldSpec &spec : worlds)
		if (name == spec.name)
			return &spec;
	return name.find(':') == std::string::npos ? nullptr : make_world(name);
}

/*
 * What the table of pairs is about: features, and how large a world is.  A litmus
 * test looks at outcomes only, so it stands for no pair.
 */
struct Trait {
	const char *name;
	bool (*in)(const WorldSpec &spec);
};

#define TRAIT(name, of)	{ name, [](const WorldSpec &w) { return bool(of); } }
static const Trait traits[] = {
	TRAIT("evict", w.features.evict),
	TRAIT("pins", w.features.pins),
	TRAIT("prefetch", w.features.prefetch),
	TRAIT("ahead", w.features.ahead),
	TRAIT("zero", w.features.zero),
	TRAIT("drop", w.features.drop),
	TRAIT("remote_drop", w.features.remote_drop),
	TRAIT("leases", w.features.leases),
	TRAIT("split", w.features.split),
	TRAIT("private", w.features.private_pages),
	TRAIT("no_memory", w.features.no_memory),
	TRAIT("broken", w.features.broken),
	TRAIT("loose", w.features.loose),
	TRAIT("merge", w.features.merge),
	TRAIT("late misses", !w.features.prompt),
	TRAIT("deaths", w.features.deaths),
	TRAIT("home dies", w.features.home_dies),
	TRAIT("comes back", w.features.comes_back),
	TRAIT("cut", w.features.cut),
	TRAIT("program", w.features.program),
	TRAIT("reads first", w.features.reads_first),
	TRAIT("3 hosts", w.hosts > 2),
	TRAIT("2 pages", w.pages > 1),
};
#undef TRAIT

/* Pairs that no world has, by names; "" is any. */
static const struct {
	const char *one, *others, *why;
} no_world[] = {
	{ "program", "zero drop remote_drop no_memory private loose merge",
	  "an instruction is all that touches its pages, and one of a host waits" },
	{ "reads first", "zero drop remote_drop no_memory private loose merge",
	  "as for program" },
	{ "program", "prefetch ahead", "too large; a prefetch never has the token" },
	{ "reads first", "prefetch ahead", "as for program" },
	{ "reads first", "evict", "not seen to end" },
	{ "program", "broken", "a broken operation is the end, whoever waits" },
	{ "reads first", "broken", "as for program" },
	{ "program", "comes_back", "who leaves has no vCPU that runs" },
	{ "reads first", "comes_back", "as for program" },
	{ "2 pages", "prefetch ahead zero drop remote_drop no_memory private loose merge broken"
	  " comes_back", "pages share channels and the token only: decision 0108" },
};

static bool is_among(const std::string &name, const std::string &names)
{
	std::string word = name;

	for (char &c : word)
		if (c == ' ')
			c = '_';
	return (" " + names + " ").find(" " + word + " ") != std::string::npos;
}

static const char *why_not(const Trait &a, const Trait &b)
{
	for (const auto &row : no_world)
		if ((std::string(a.name) == row.one && is_among(b.name, row.others)) ||
		    (std::string(b.name) == row.one && is_among(a.name, row.others)))
			return row.why;
	return nullptr;
}

static bool has_world(std::initializer_list<const Trait *> all)
{
	for (const WorldSpec &spec : worlds) {
		bool has = !spec.is_wrong() && !spec.features.litmus;
		for (const Trait *trait : all)
			has = has && trait->in(spec);
		if (has)
			return true;
	}
	return false;
}

/* Of those whose pairs are all possible. */
static void print_triples()
{
	unsigned all = 0, covered = 0;

	for (const Trait *a = std::begin(traits); a != std::end(traits); a++)
		for (const Trait *b = a + 1; b != std::end(traits); b++)
			for (const Trait *c = b + 1; c != std::end(traits); c++) {
				if (why_not(*a, *b) || why_not(*a, *c) || why_not(*b, *c))
					continue;
				all++;
				covered += has_world({ a, b, c });
			}
	printf("%u of %u sets of three\n", covered, all);
}

unsigned print_pairs()
{
	unsigned missing = 0;

	for (const Trait *a = std::begin(traits); a != std::end(traits); a++)
		for (const Trait *b = a + 1; b != std::end(traits); b++) {
			std::string where;
			for (const WorldSpec &spec : worlds)
				if (!spec.is_wrong() && !spec.features.litmus && a->in(spec) &&
				    b->in(spec))
					where += std::string(where.empty() ? "" : " ") +
						 spec.name;
			const char *why = why_not(*a, *b);
			bool bad = where.empty() == !why;
			missing += bad;
			printf("%s\t%s\t%s%s%s\n", a->name, b->name, where.c_str(),
			       bad ? where.empty() ? "MISSING" : " AND YET: " : "",
			       where.empty() || bad ? why ? why : "" : "");
		}
	print_triples();
	return missing;
}
