// SPDX-License-Identifier: GPL-2.0
/*
 * What a host knows without asking anybody else: the hosts by name and number, and
 * whose a domain is.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

unsigned int host_find(const struct host *host, const char *name, struct answer *answer)
{
	char names[HOST_TEXT] = "";
	size_t at = 0;
	unsigned int i;

	for (i = 0; i < host->config.nr_hosts; i++) {
		if (!strcmp(host->config.host[i].name, name))
			return i;
		if (at < sizeof(names))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       i ? ", " : "", host->config.host[i].name);
	}
	answer_error(answer, "unknown-host", "%.64s: no host of %s; there are %s", name,
		     host->config_file, names);
	return DSM_NOBODY;
}

const char *host_name(const struct host *host, unsigned int number)
{
	return number < host->config.nr_hosts ? host->config.host[number].name : "?";
}

void host_why_not_xen(const struct host *host, int rc, char text[HOST_TEXT + 1])
{
	const char *why = "", *between = "", *advice = "";

	switch (-rc) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		why = "this is no control domain of Xen";
		advice = "; boot Xen";
		break;
	case EACCES:
		why = "the Xen that was booted is not of the version of these tools";
		advice = "; boot the one that was built with them";
		break;
	case ENOSYS:
		why = "it was built without CONFIG_DSM";
		advice = "; boot one that was built with it";
		break;
	}
	if (why[0])
		between = ": ";
	snprintf(text, HOST_TEXT + 1, "host %s: Xen can't be used: %s%s%s%s",
		 host_name(host, host->config.self), why, between, strerror(-rc), advice);
}

int guest_check_domid(struct host *host, uint32_t domid, const uint8_t uuid[16],
		      struct answer *answer)
{
	uint8_t theirs[16];
	int rc = host->xen->uuid(domid, theirs);

	if (!rc && !memcmp(uuid, theirs, sizeof(theirs)))
		return 0;
	if (rc && rc != -ESRCH)
		return answer_error(answer, "internal", "whose domain %u is: %s", domid,
				    strerror(-rc));
	return answer_error(answer, "unknown-vm", "domain %u is not the guest of this UUID", domid);
}
