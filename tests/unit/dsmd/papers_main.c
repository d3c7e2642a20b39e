// SPDX-License-Identifier: GPL-2.0
/*
 * papers FOLDER NAME...: a CA, and a certificate with its key for each host:
 * ca.pem, NAME.pem, NAME.key.  NAME:DAYS: one that is good for so long; NAME:expired;
 * NAME:later: from tomorrow on; ca:DAYS, first: the CA.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "case.h"
#include "papers.h"

int main(int argc, char **argv)
{
	struct wanted site = { .subject = "the site's CA", .from = -1, .to = 100, .ca = true };
	char file[2][512], names[128];
	struct papers ca;
	int i = 2;

	umask(022);	/* a CA's certificate that others can write is refused */
	CHECK(argc > 2, "papers FOLDER NAME...");
	if (!strncmp(argv[i], "ca:", 3))
		site.to = atoi(argv[i++] + 3);
	ca = papers_make(&site, NULL);
	snprintf(file[0], sizeof(file[0]), "%s/ca.pem", argv[1]);
	papers_write(&ca, file[0], NULL, 0);
	for (; i < argc; i++) {
		struct wanted wanted = {
			.names = names, .usage = BOTH_ROLES, .subject = "host",
			.from = -1, .to = 100,
		};
		struct papers papers;
		char *kind = strchr(argv[i], ':');

		if (kind) {
			bool later = !strcmp(kind, ":later");

			wanted.to = later ? 100 : strcmp(kind, ":expired") ? atoi(kind + 1) : -1;
			wanted.from = later ? 1 : wanted.to < 0 ? -10 : -1;
			CHECK(wanted.to, "%s: no kind of papers", kind);
			*kind = 0;
		}
		snprintf(names, sizeof(names), "DNS:%s", argv[i]);
		snprintf(file[0], sizeof(file[0]), "%s/%s.pem", argv[1], argv[i]);
		snprintf(file[1], sizeof(file[1]), "%s/%s.key", argv[1], argv[i]);
		papers = papers_make(&wanted, &ca);
		papers_write(&papers, file[0], file[1], 0600);
		papers_free(&papers);
	}
	papers_free(&ca);
	return 0;
}
