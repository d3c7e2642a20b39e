/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lying peer: in a state of an honest world, each host gets every message
 * that there is, from every other host.  It is refused, and then nothing has
 * changed; or it is taken, and then the page keeps its rules and the actions
 * stay within their bounds.
 *
 * Could an honest peer have sent what is taken?  A host knows its own struct of
 * the page and nothing else.  So two things are noted: a message with the state
 * of the struct that it met, for each lie that was taken, and for each message
 * that is under way in the honest world.  What is among the first and not among
 * the second is a lie that the host could tell from the truth.  Other worlds
 * may be asked for their truth first.
 */
#ifndef DSM_LIES_H
#define DSM_LIES_H

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "world.h"

struct Lies {
	size_t told = 0, refused = 0;
	std::unordered_set<std::string> taken, honest;

	/* Lies that were taken, and could have been told from the truth: by type. */
	std::map<std::string, std::vector<std::string>> foolish() const
	{
		std::map<std::string, std::vector<std::string>> found;

		for (const std::string &view : taken)
			if (!honest.count(view))
				found[dsm_type_name(uint8_t(view[0]))].push_back(view);
		return found;
	}
};

/* What a host sees of a message; numbers of transactions by their order. */
inline std::string view_of(dsm_page page, unsigned host, unsigned from, dsm_msg msg)
{
	uint32_t *all[] = { &page.grant, &page.recall_txn, &page.dir.grant,
			    &page.dir.txn, &msg.txn };
	uint32_t rank[5] = {};
	auto byte = [](unsigned value) { return char(uint8_t(value)); };

	/* Is one of its kind the first, and how many are below? */
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 5; k++) {
			bool again = false;
			for (unsigned j = 0; j < k; j++)
				again |= *all[j] == *all[k];
			rank[i] += *all[i] && *all[k] && !again &&
				   *all[k] <= *all[i];
		}
	for (unsigned i = 0; i < 5; i++)
		*all[i] = rank[i];

	const dsm_directory &d = page.dir;
	std::string view = {
		byte(msg.type), byte(msg.flags), byte(msg.reason), byte(msg.txn),
		byte(host), byte(from), byte(page.state), byte(page.request),
		byte(page.request_flags), byte(page.operation), byte(page.purpose),
		byte(page.writeback), byte(page.wanted), byte(page.lease),
		byte(page.lost), byte(page.recall), byte(page.recall_flags),
		byte(page.recall_busy), byte(page.recall_txn), byte(page.grant),
		byte(d.mode), byte(d.owner), byte(d.phase), byte(d.abort),
		byte(d.bytes), byte(d.kept), byte(d.busy), byte(d.copyset),
		byte(d.pending), byte(d.txn), byte(d.grant), byte(d.nr_queued),
	};
	auto request = [&](const dsm_request &r) {
		view += { byte(r.host), byte(r.type), byte(r.flags) };
	};
	if (d.phase != DSM_IDLE)
		request(d.now);
	for (unsigned k = 0; k < d.nr_queued; k++)
		request(d.queue[k]);
	return view;
}

/* A view in words: the message, the host's page, the directory at home. */
inline std::string say_view(const std::string &view)
{
	static const char *const names[] = {
		"flags", "reason", "txn", "at", "from", "state", "request",
		"request_flags", "operation", "purpose", "writeback", "wanted",
		"lease", "lost", "recall", "recall_flags", "recall_busy",
		"recall_txn", "grant", "mode", "owner", "phase", "abort", "bytes",
		"kept", "busy", "copyset", "pending", "dir.txn", "dir.grant", "queued",
	};
	constexpr size_t COUNT = sizeof(names) / sizeof(names[0]);
	std::string text = dsm_type_name(uint8_t(view[0]));

	for (size_t i = 1; i < view.size(); i++) {
		std::string value = std::to_string(uint8_t(view[i]));
		if (i > COUNT)	/* requests: host, type, flags */
			text += ((i - COUNT) % 3 == 1 ? " | " : " ") + value;
		else if (view[i])
			text += std::string(" ") + names[i - 1] + "=" + value;
	}
	return text;
}

/* The messages that are next in the honest world. */
template<unsigned H, unsigned P>
void note_truth(const World<H, P> &world, Lies &lies)
{
	for (unsigned h = 0; h < H; h++)
		for (unsigned from = 0; from < H; from++) {
			const Message &m = world.channel[from][h][0];
			dsm_msg msg = {};
			if (!world.under_way[from][h] || m.page == NO_PAGE)
				continue;
			msg.type = m.type;
			msg.flags = m.flags;
			msg.reason = m.reason;
			msg.txn = m.txn;
			lies.honest.insert(view_of(world.page[h][m.page], h, from,
						   msg));
		}
}

template<unsigned H, unsigned P>
bool tell_lies(const World<H, P> &world, Rules<H, P> &rules, Lies &lies,
	       Violation &wrong)
{
	size_t &told = lies.told, &refused = lies.refused;

	note_truth(world, lies);
	static const uint8_t flags[] = { 0, DSM_F_PREFETCH, DSM_F_NODATA,
					 DSM_F_TOKEN, DSM_F_KEPT, 0x80 };

	for (unsigned h = 0; h < H; h++)
		for (unsigned p = 0; p < P; p++)
			for (unsigned from = 0; from <= H; from++)
				for (unsigned type = 0; type <= DSM_NR_TYPES; type++)
					for (uint8_t flag : flags)
						for (uint32_t txn = 0; txn < 4; txn++)
	for (unsigned reason = 0; reason <= DSM_NR_REASONS; reason++) {
		dsm_page page = world.page[h][p];
		dsm_event event = {};
		dsm_actions out;
		const char *rule;

		if (reason && type != DSM_NACK && type != DSM_RESULT)
			break;
		rules.vm[h].up = world.up[h];
		event.type = DSM_EV_MESSAGE;
		event.from = uint8_t(from);
		event.msg.type = uint8_t(type);
		event.msg.flags = flag;
		event.msg.reason = uint8_t(reason);
		event.msg.txn = txn;
		event.msg.epoch = 1;
		event.msg.gfn = p;
		/* The same of another connection, and of another page. */
		for (unsigned wrong_field = 0; wrong_field < 2; wrong_field++) {
			dsm_event other = event;
			if (wrong_field)
				other.msg.gfn = p + 1;
			else
				other.msg.epoch = 2;
			told++;
			if (!dsm_step(&rules.vm[h], &page, &other, &out) || out.nr ||
			    memcmp(&page, &world.page[h][p], sizeof(page))) {
				wrong = std::string("not for this page: ") +
					dsm_type_name(type);
				return false;
			}
			refused++;
		}
		told++;
		if (dsm_step(&rules.vm[h], &page, &event, &out)) {
			refused++;
			if (memcmp(&page, &world.page[h][p], sizeof(page)) || out.nr) {
				wrong = std::string("a lie was refused and had an effect: ") +
					dsm_type_name(type);
				return false;
			}
			continue;
		}
		rule = dsm_page_broken_rule(&page, &rules.vm[h]);
		if (rule || out.nr > DSM_MAX_ACTIONS) {
			wrong = std::string("a lie broke a rule: ") +
				dsm_type_name(type) + ": " + (rule ? rule : "actions");
			return false;
		}
		lies.taken.insert(view_of(world.page[h][p], h, from, event.msg));
	}
	return true;
}

#endif
