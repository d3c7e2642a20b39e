// SPDX-License-Identifier: GPL-2.0
/*
 * A trace as a sequence chart.
 */
#include "chart.h"

#include <algorithm>

constexpr size_t COLUMN = 30;	/* characters from one host's line to the next */

static std::string lines(unsigned hosts)
{
	std::string text(hosts * COLUMN, ' ');

	for (unsigned h = 0; h < hosts; h++)
		text[h * COLUMN] = '|';
	return text;
}

Chart::Chart(unsigned nr_hosts) : hosts(nr_hosts)
{
	std::string head(hosts * COLUMN, ' ');

	for (unsigned h = 0; h < hosts; h++) {
		std::string name = "host " + std::to_string(h);
		head.replace(h * COLUMN, name.size(), name);
	}
	printf("      %s   I, S, M, o a hole; r, w, z wait; ! pinned\n",
	       head.c_str());
}

void Chart::line(const Move &move, const std::string &text,
		 const std::string &after)
{
	std::string row = lines(hosts), label = text;

	if (move.page != NO_PAGE && move.page)
		label += " (page " + std::to_string(move.page) + ")";
	if (move.will == Will::DELIVER || move.will == Will::OVERTAKE) {
		size_t from = move.other * COLUMN, to = move.host * COLUMN;
		size_t left = std::min(from, to), right = std::max(from, to);
		for (size_t i = left + 1; i < right; i++)
			row[i] = '-';
		row[to < from ? left + 1 : right - 1] = to < from ? '<' : '>';
		row.replace(left + 4, label.size() + 2, " " + label + " ");
	} else {
		row.replace(move.host * COLUMN + 2, label.size(), label);
	}
	row.resize(std::max<size_t>(row.size(), hosts * COLUMN), ' ');
	printf("%4u  %s   %s\n", ++number, row.c_str(), after.c_str());
}

void Chart::end(const std::string &text) const
{
	printf("      %s\n", lines(hosts).c_str());
	printf("      %s\n", text.c_str());
}
