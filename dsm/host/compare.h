/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Do the hosts have the same dsm.toml?  What has to be the same: which hosts there are,
 * their numbers, addresses, ports and names of certificates, and the transport.
 * Keys of one host alone (self, tls, limits) are not looked at.
 *
 * A host says what it has if it is asked for "file" in a probe.  An older one does not
 * know that, and says nothing of it.
 */
#ifndef HOST_COMPARE_H
#define HOST_COMPARE_H

#include "host.h"

#define COMPARE_MOST	8	/* differences of a host that are told; of more, how many */
#define COMPARE_TEXT	100	/* bytes of a value; longer ones are cut */

/** What this host's file says, for a probe that asks. */
void compare_tell(const struct host *host, struct answer *answer);

/**
 * What the file of another host says that is not what ours does.
 * @said: its reply, which it may have made up.
 * @one: gets "file", "same", "differs", "unsaid" or "wrong"; and "differences", a list of
 * "key", "here" and "there", if it differs, and "more", if there are more than that.
 */
void compare_add(const struct host *host, struct json_object *said, struct json_object *one);

#endif
