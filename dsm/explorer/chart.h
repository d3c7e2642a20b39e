/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A trace as a sequence chart in plain text: one column a host, one line a
 * move, arrows for messages; to the right what each host has afterwards.
 */
#ifndef DSM_CHART_H
#define DSM_CHART_H

#include <string>

#include "world.h"

class Chart {
public:
	explicit Chart(unsigned nr_hosts);
	void line(const Move &move, const std::string &text,
		  const std::string &after);
	void end(const std::string &text) const;

private:
	unsigned hosts, number = 0;
};

#endif
