// SPDX-License-Identifier: GPL-2.0
/*
 * papers FOLDER NAME...: a CA, and a certificate with its key for each host:
 * ca.pem, NAME.pem, NAME.key.
 */
#include <stdbool.h>
#include <stdio.h>

#include <sys/stat.h>

#include "case.h"
#include "papers.h"

int main(int argc, char **argv)
{
	struct wanted site = { .subject = "the site's CA", .from = -1, .to = 10, .ca = true };
	struct papers ca = papers_make(&site, NULL);
	char file[2][512], names[128];
	int i;

	umask(022);	/* a CA's certificate that others can write is refused */
	CHECK(argc > 2, "papers FOLDER NAME...");
	snprintf(file[0], sizeof(file[0]), "%s/ca.pem", argv[1]);
	papers_write(&ca, file[0], NULL, 0);
	for (i = 2; i < argc; i++) {
		struct wanted wanted = {
			.names = names, .usage = BOTH_ROLES, .subject = "host",
			.from = -1, .to = 10,
		};
		struct papers papers;
		char *kind = strchr(argv[i], ':');

		if (kind) {
			CHECK(!strcmp(kind, ":expired"), "%s: no kind of papers", kind);
			*kind = 0;
			wanted.from = -10;
			wanted.to = -1;
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
