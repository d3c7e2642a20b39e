/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an exploration keeps of the states that it has seen.
 *
 * Not the states, only 64 bits of hash of each (hash compaction: Wolper and
 * Leroy 1993, Stern and Dill 1995).  Two states with the same hash are taken
 * for one, and what comes after the second is not looked at.  If the hash is as
 * good as chance, the probability that this happens at all in a world of n
 * states is below n^2 / 2^65: 3e-4 for 1e8 states.  Such a merge can hide a
 * violation.  It can't feign one, for a violation is seen in a whole state, and
 * the way to it is walked again before it is shown.
 *
 * States that wait to be expanded are whole, in a queue; breadth first, so it
 * holds two layers at most.
 *
 * A state costs 8 bytes of hash, 4 of parent, 1 of degree, 11 to 21 of table, 4
 * for each thing that is owed in it, and what the queue holds: 35 to 55 in all.
 */
#ifndef DSM_STORE_H
#define DSM_STORE_H

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

inline uint64_t hash_of(const uint8_t *bytes, unsigned size)
{
	const uint64_t k1 = 0xff51afd7ed558ccdu, k2 = 0xc4ceb9fe1a85ec53u;
	uint64_t a = 0x9e3779b97f4a7c15u * (size + 1), b = ~a, word;
	auto mix = [&] {
		__uint128_t product = __uint128_t(a ^ word) * (k1 ^ b);
		a += uint64_t(product) ^ word;
		b = (b ^ uint64_t(product >> 64)) * k2;
		b ^= b >> 29;
	};

	for (; size >= 8; size -= 8, bytes += 8) {
		memcpy(&word, bytes, 8);
		mix();
	}
	word = 0;
	memcpy(&word, bytes, size);
	mix();
	/* The end of MurmurHash3: each bit of either half reaches all. */
	a ^= b;
	a = (a ^ a >> 33) * k1;
	a = (a ^ a >> 33) * k2;
	return a ^ a >> 33;
}

/* A vector that grows without moving what it has. */
template<typename T> class Column {
public:
	void push_back(T value)
	{
		if (count % CHUNK == 0)
			chunks.emplace_back(new T[CHUNK]);
		chunks[count / CHUNK][count % CHUNK] = value;
		count++;
	}
	T operator[](size_t n) const { return chunks[n / CHUNK][n % CHUNK]; }
	size_t size() const { return count; }

private:
	static constexpr size_t CHUNK = 1u << 18;

	std::vector<std::unique_ptr<T[]>> chunks;
	size_t count = 0;
};

/* Packed states, first in, first out. */
class Queue {
public:
	void push(const uint8_t *bytes, unsigned size)
	{
		if (chunks.empty() || chunks.back().size() + size + 1 > CHUNK) {
			chunks.emplace_back();
			chunks.back().reserve(CHUNK);
		}
		std::vector<uint8_t> &last = chunks.back();
		last.push_back(uint8_t(size));
		last.insert(last.end(), bytes, bytes + size);
	}
	/* What is returned stays until the next pop(). */
	const uint8_t *pop()
	{
		if (next == chunks.front().size()) {
			chunks.pop_front();
			next = 0;
		}
		const uint8_t *state = &chunks.front()[next];
		next += 1u + *state;
		return state + 1;
	}

private:
	static constexpr size_t CHUNK = 1u << 20;

	std::deque<std::vector<uint8_t>> chunks;
	size_t next = 0;
};

/* All states that were seen, each once, with a number; by what they are known. */
class Store {
public:
	explicit Store(size_t most)
		: limit(most), table(1u << 16, Slot{ 0, NOTHING })
	{
	}

	static constexpr uint32_t NOTHING = ~0u;

	/* It will be looked for soon. */
	void prefetch(uint64_t hash) const
	{
		__builtin_prefetch(&table[hash & (table.size() - 1)]);
	}
	/* Its number; if it is new, that is size() before. */
	uint32_t find_or_add(uint64_t hash, uint32_t from)
	{
		if (hashes.size() * 4 > table.size() * 3)
			grow();
		Slot &slot = table[place(hash)];
		if (slot.number == NOTHING) {
			slot = { uint32_t(hash >> 32), uint32_t(hashes.size()) };
			hashes.push_back(hash);
			parent.push_back(from);
		}
		return slot.number;
	}
	uint32_t find(uint64_t hash) const { return table[place(hash)].number; }
	size_t size() const { return hashes.size(); }
	bool full() const { return hashes.size() >= limit; }
	uint32_t from(uint32_t n) const { return parent[n]; }

private:
	struct Slot {
		uint32_t high, number;
	};

	/* Where it is, or where it would go. */
	size_t place(uint64_t hash) const
	{
		size_t mask = table.size() - 1, i = hash & mask;

		for (; table[i].number != NOTHING; i = (i + 1) & mask)
			if (table[i].high == uint32_t(hash >> 32) &&
			    hashes[table[i].number] == hash)
				break;
		return i;
	}
	void grow()
	{
		size_t larger = table.size() * 2;

		table = {};	/* first, so that there are never both */
		table.shrink_to_fit();
		table.assign(larger, Slot{ 0, NOTHING });
		for (size_t n = 0; n < hashes.size(); n++) {
			uint64_t hash = hashes[n];
			size_t i = hash & (larger - 1);
			while (table[i].number != NOTHING)
				i = (i + 1) & (larger - 1);
			table[i] = { uint32_t(hash >> 32), uint32_t(n) };
		}
	}

	size_t limit;
	std::vector<Slot> table;
	Column<uint64_t> hashes;
	Column<uint32_t> parent;
};

#endif
