// SPDX-License-Identifier: GPL-2.0
/*
 * The shapes, and a memory that is one: no pages, no hosts, no protocol.
 */
#include "litmus.h"

constexpr uint8_t X = 0, Y = 1, READ = 0;

const std::vector<Shape> &all_shapes()
{
	static const std::vector<Shape> shapes = {
		{ "sb", 2,
		  { { 2, { { X, 1 }, { Y, READ } } }, { 2, { { Y, 1 }, { X, READ } } } } },
		{ "mp", 2,
		  { { 2, { { X, 1 }, { Y, 1 } } }, { 2, { { Y, READ }, { X, READ } } } } },
		{ "lb", 2,
		  { { 2, { { X, READ }, { Y, 1 } } }, { 2, { { Y, READ }, { X, 1 } } } } },
		{ "corr", 1,
		  { { 1, { { X, 1 }, {} } }, { 2, { { X, READ }, { X, READ } } } } },
		{ "iriw", 2,
		  { { 1, { { X, 1 }, {} } }, { 1, { { Y, 1 }, {} } },
		    { 2, { { X, READ }, { Y, READ } } }, { 2, { { Y, READ }, { X, READ } } } } },
		{ "22w", 2,
		  { { 2, { { X, 1 }, { Y, 2 } } }, { 2, { { Y, 1 }, { X, 2 } } } } },
		{ "r", 2,
		  { { 2, { { X, 1 }, { Y, 1 } } }, { 2, { { Y, 2 }, { X, READ } } } } },
		{ "s", 2,
		  { { 2, { { X, 2 }, { Y, 1 } } }, { 2, { { Y, READ }, { X, 1 } } } } },
	};

	return shapes;
}

unsigned LitmusThread::stores() const
{
	unsigned n = 0;

	for (unsigned i = 0; i < length; i++)
		n += access[i].value != READ;
	return n;
}

const Access &LitmusThread::store(unsigned n) const
{
	unsigned i = 0;

	while (access[i].value == READ || n--)
		i++;
	return access[i];
}

std::string say_outcome(const Shape &shape, const uint8_t (&read)[MAX_THREADS][MAX_ACCESSES],
			const uint8_t *memory)
{
	std::string text;
	char name = 'a';
	auto add = [&](char what, uint8_t value) {
		text += (text.empty() ? "" : " ") + std::string(1, what) + "=" +
			(value == NO_VALUE ? "?" : std::to_string(value));
	};

	for (size_t t = 0; t < shape.threads.size(); t++)
		for (unsigned i = 0; i < shape.threads[t].length; i++)
			if (shape.threads[t].access[i].value == READ)
				add(name++, read[t][i]);
	for (unsigned p = 0; p < shape.pages; p++)
		add(char('x' + p), memory[p]);
	return text;
}

namespace {

struct Machine {
	const Shape &shape;
	bool buffers;
	Outcomes found = {};
	unsigned next[MAX_THREADS] = {}, stored[MAX_THREADS] = {};	/* accesses, stores */
	uint8_t read[MAX_THREADS][MAX_ACCESSES] = {}, memory[2] = {};

	void run();
	void access(size_t t);
	void drain(size_t t);
};

/* Whoever can go on does, in each order. */
void Machine::run()
{
	bool over = true;

	for (size_t t = 0; t < shape.threads.size(); t++) {
		const LitmusThread &thread = shape.threads[t];
		unsigned issued = 0;
		for (unsigned i = 0; i < next[t]; i++)
			issued += thread.access[i].value != READ;
		if (next[t] < thread.length) {
			over = false;
			access(t);
		}
		if (stored[t] < issued) {
			over = false;
			drain(t);
		}
	}
	if (over)
		found.insert(say_outcome(shape, read, memory));
}

void Machine::access(size_t t)
{
	const Access &a = shape.threads[t].access[next[t]++];
	bool at_once = a.value != READ && !buffers;

	/* No shape reads what the same thread has written. */
	if (a.value == READ)
		read[t][next[t] - 1] = memory[a.page];
	if (at_once)
		drain(t);
	else
		run();
	next[t]--;
}

void Machine::drain(size_t t)
{
	const Access &a = shape.threads[t].store(stored[t]++);
	uint8_t before = memory[a.page];

	memory[a.page] = a.value;
	run();
	memory[a.page] = before;
	stored[t]--;
}

} // namespace

Outcomes possible_outcomes(const Shape &shape, bool buffers)
{
	Machine machine{ shape, buffers };

	machine.run();
	return machine.found;
}
