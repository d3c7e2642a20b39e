/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lying peer: in a state of an honest world, each host gets every message
 * that there is, from every other host.  It is refused, and then nothing has
 * changed; or it is taken, and then the page keeps its rules and the actions
 * stay within their bounds.  Whether an honest peer could have sent what is
 * taken is not asked.
 */
#ifndef DSM_LIES_H
#define DSM_LIES_H

#include "world.h"

template<unsigned H, unsigned P>
bool tell_lies(const World<H, P> &world, Rules<H, P> &rules, size_t &told,
	       size_t &refused, Violation &wrong)
{
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
	}
	return true;
}

#endif
