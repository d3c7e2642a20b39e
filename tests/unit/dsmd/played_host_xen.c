// SPDX-License-Identifier: GPL-2.0
/*
 * Xen for dsmd-host: what a file says, HOST_XEN, each time it is asked for.
 *
 *	version 4.20.3		free 1048576		total 2097152	hap 1		abi 2
 *	cpus 4			tsc 2000000 (kHz)
 *	features 3 7		(of the host, words)
 *	domain 5 UUID NAME 3 7	(with the features that it is shown; NAME "slice": it is one)
 *	fails CALL		(this call says -EIO)
 *	errno 2			(facts() says -2)
 *
 * HOST_XEN.log has a line for a domain that is destroyed, "destroyed DOMID", for a VM
 * that can't go on, "failed DOMID WHY", and for one of which xenstore knows nothing
 * any more, "forgot UUID".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../dsm/host/xen.h"
#include "description.h"

struct line {
	char word[16], rest[256];
};

/* Return: was there one more? */
static bool next(FILE *file, struct line *line)
{
	char text[300];

	while (fgets(text, sizeof(text), file))
		if (sscanf(text, "%15s %255[^\n]", line->word, line->rest) == 2)
			return true;
	return false;
}

static FILE *file_of(void)
{
	const char *path = getenv("HOST_XEN");

	return path ? fopen(path, "re") : NULL;
}

static bool fails(const char *call)
{
	FILE *file = file_of();
	struct line line;
	bool found = false;

	while (!found && file && next(file, &line))
		found = !strcmp(line.word, "fails") && !strcmp(line.rest, call);
	if (file)
		fclose(file);
	return found;
}

static void take_features(const char *text, unsigned int *nr, uint32_t *feature)
{
	char *end;

	for (*nr = 0; *nr < HOST_XEN_FEATURES; text = end, ++*nr) {
		feature[*nr] = (uint32_t)strtoul(text, &end, 10);
		if (end == text)
			break;
	}
}

static int facts(struct host_facts *f)
{
	FILE *file = file_of();
	struct line line;

	int rc = 0;

	if (!file)
		return -EIO;
	memset(f, 0, sizeof(*f));
	while (next(file, &line)) {
		if (!strcmp(line.word, "version"))
			snprintf(f->version, sizeof(f->version), "%.60s", line.rest);
		else if (!strcmp(line.word, "free"))
			f->free_kib = strtoull(line.rest, NULL, 10);
		else if (!strcmp(line.word, "total"))
			f->total_kib = strtoull(line.rest, NULL, 10);
		else if (!strcmp(line.word, "dom0"))
			f->dom0_kib = strtoull(line.rest, NULL, 10);
		else if (!strcmp(line.word, "cpus"))
			f->cpus = (unsigned int)atoi(line.rest);
		else if (!strcmp(line.word, "tsc"))
			f->tsc_khz = (uint32_t)strtoul(line.rest, NULL, 10);
		else if (!strcmp(line.word, "hap"))
			f->hap = atoi(line.rest);
		else if (!strcmp(line.word, "abi"))
			f->abi = (uint32_t)atoi(line.rest);
		else if (!strcmp(line.word, "features"))
			take_features(line.rest, &f->nr_features, f->feature);
		else if (!strcmp(line.word, "errno"))
			rc = -atoi(line.rest);
	}
	fclose(file);
	return rc;
}

struct domain {
	uint32_t domid;
	uint8_t uuid[16];
	char name[64];
	unsigned int nr;
	uint32_t feature[HOST_XEN_FEATURES];
};

/* The first one that is like this.  Return: 0; -ESRCH. */
static int find(bool (*is)(const struct domain *domain, const void *what), const void *what,
		struct domain *domain)
{
	FILE *file = file_of();
	struct line line;
	char uuid[40];
	int at, rc = -ESRCH;

	while (rc && file && next(file, &line)) {
		if (strcmp(line.word, "domain") ||
		    sscanf(line.rest, "%u %36s %63s%n", &domain->domid, uuid, domain->name, &at) != 3 ||
		    !dsm_uuid_read(uuid, domain->uuid))
			continue;
		take_features(line.rest + at, &domain->nr, domain->feature);
		if (is(domain, what))
			rc = 0;
	}
	if (file)
		fclose(file);
	return rc;
}

static bool is_domid(const struct domain *domain, const void *what)
{
	return domain->domid == *(const uint32_t *)what;
}

static bool is_uuid(const struct domain *domain, const void *what)
{
	return !memcmp(domain->uuid, what, sizeof(domain->uuid));
}

static bool is_name(const struct domain *domain, const void *what)
{
	return !strcmp(domain->name, what);
}

static int features(uint32_t domid, unsigned int *nr, uint32_t feature[HOST_XEN_FEATURES])
{
	struct domain domain;
	int rc = find(is_domid, &domid, &domain);

	if (!rc) {
		*nr = domain.nr;
		memcpy(feature, domain.feature, sizeof(domain.feature));
	}
	return rc;
}

static int uuid(uint32_t domid, uint8_t to[16])
{
	struct domain domain;
	int rc = fails("uuid") ? -EIO : find(is_domid, &domid, &domain);

	if (!rc)
		memcpy(to, domain.uuid, 16);
	return rc;
}

static int find_uuid(const uint8_t wanted[16], uint32_t *domid)
{
	struct domain domain;
	int rc = fails("find_uuid") ? -EIO : find(is_uuid, wanted, &domain);

	if (!rc)
		*domid = domain.domid;
	return rc;
}

static bool is_slice(const struct domain *domain, const void *what)
{
	return is_uuid(domain, what) && !strcmp(domain->name, "slice");
}

static int find_slice(const uint8_t wanted[16], uint32_t *domid)
{
	struct domain domain;
	int rc = fails("find_slice") ? -EIO : find(is_slice, wanted, &domain);

	if (!rc)
		*domid = domain.domid;
	return rc;
}

static int find_name(const char *name, uint32_t *domid)
{
	struct domain domain;
	int rc = fails("find_name") ? -EIO : find(is_name, name, &domain);

	*domid = domain.domid;
	return rc;
}

__attribute__((format(printf, 1, 2)))
static int note(const char *format, ...)
{
	char path[512];
	va_list words;
	int fd;

	snprintf(path, sizeof(path), "%s.log", getenv("HOST_XEN"));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	va_start(words, format);
	vdprintf(fd, format, words);
	va_end(words);
	close(fd);
	return 0;
}

static int destroy(uint32_t domid)
{
	if (fails("destroy"))
		return -EIO;
	return note("destroyed %u\n", domid);
}

static int fail(uint32_t domid, const uint8_t uuid[16], const char *why)
{
	(void)uuid;
	return note("failed %u %s\n", domid, why);
}

static int forget(const uint8_t uuid[16])
{
	char text[37];

	dsm_uuid_text(uuid, text);
	return note("forgot %s\n", text);
}

/* A pipe: who writes to it has a domain end. */
static int watching = -1;

static int watch(void)
{
	const char *path = getenv("HOST_XEN_EVENTS");
	char tries[512];
	int fd;

	/* A byte for each try, for who waits for some. */
	snprintf(tries, sizeof(tries), "%s.tries", getenv("HOST_XEN"));
	fd = open(tries, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0) {
		dprintf(fd, "w");
		close(fd);
	}
	errno = EIO;
	watching = path && !fails("watch") ? open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
	return watching;
}

static const char *xenstore(void)
{
	return getenv("HOST_XEN_EVENTS");
}

static void watched(void)
{
	char bytes[64];

	while (read(watching, bytes, sizeof(bytes)) > 0)
		;
}

static size_t say_features(unsigned int word, uint32_t bits, char *text, size_t size)
{
	return (size_t)snprintf(text, size, "word %u=0x%x", word, bits);
}

const struct host_xen *host_xen_get(void)
{
	static const struct host_xen xen = {
		.facts = facts, .features = features, .uuid = uuid,
		.find_uuid = find_uuid, .find_slice = find_slice,
		.find_name = find_name, .destroy = destroy,
		.fail = fail, .forget = forget,
		.watch = watch, .xenstore = xenstore, .watched = watched, .say_features = say_features,
	};

	return &xen;
}
