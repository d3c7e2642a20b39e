// SPDX-License-Identifier: GPL-2.0
/*
 * From JSON to struct dsm_description.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "description.h"

#define US		1000ull
#define MS		1000000ull
#define MOST_GFN	(1ull << 40)	/* 4 PiB of guest memory */
#define SLACK_FRAMES	256u		/* of a slice, for what Xen has of it */
#define MERGE_NS	(5000 * MS)	/* at home for so long: a superpage again */

struct reader {
	const char *file;
	char *text;
	const struct dsm_config *config;
	struct dsm_description *d;
};

__attribute__((format(printf, 3, 4)))
static int wrong(const struct reader *r, const char *key, const char *format, ...)
{
	size_t at = (size_t)snprintf(r->text, DSM_DESCRIPTION_TEXT, "%s: %s: ",
				     r->file, key);
	va_list words;

	if (at >= DSM_DESCRIPTION_TEXT)
		at = DSM_DESCRIPTION_TEXT - 1;
	va_start(words, format);
	vsnprintf(r->text + at, DSM_DESCRIPTION_TEXT - at, format, words);
	va_end(words);
	return -EINVAL;
}

/* Keys of an object, and what each is read by. */
struct key {
	const char *name;
	int (*read)(const struct reader *r, const struct key *key,
		    struct json_object *value, void *to);
	size_t offset;
	uint64_t least, most, unit;
	bool may_miss;
};

static int read_number(const struct reader *r, const struct key *key,
		       struct json_object *value, void *to)
{
	uint64_t number = 0;

	if (json_object_is_type(value, json_type_int)) {
		number = json_object_get_uint64(value);
		if (json_object_get_int64(value) < 0)
			number = UINT64_MAX;
	}
	if (!json_object_is_type(value, json_type_int) || number < key->least ||
	    number > key->most)
		return wrong(r, key->name, "a number, %" PRIu64 " to %" PRIu64,
			     key->least, key->most);
	if (key->unit) {
		number *= key->unit;
		memcpy(to, &number, sizeof(number));
	} else {
		unsigned int small = (unsigned int)number;

		memcpy(to, &small, sizeof(small));
	}
	return 0;
}

static int read_flag(const struct reader *r, const struct key *key,
		     struct json_object *value, void *to)
{
	bool flag = json_object_get_boolean(value);

	if (!json_object_is_type(value, json_type_boolean))
		return wrong(r, key->name, "true or false");
	memcpy(to, &flag, sizeof(flag));
	return 0;
}

static int read_name(const struct reader *r, const struct key *key,
		     struct json_object *value, void *to)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const char *name = json_object_get_string(value);
	size_t length;

	if (!json_object_is_type(value, json_type_string))
		name = "";
	length = strlen(name);
	if (!length || length >= DSM_DESCRIPTION_NAME || name[0] == '.' ||
	    strspn(name, letters) != length ||
	    length != (size_t)json_object_get_string_len(value))
		return wrong(r, key->name, "1 to %u letters, digits, \"-\", \"_\" and \".\", no \".\" first",
			     DSM_DESCRIPTION_NAME - 1);
	memcpy(to, name, length + 1);
	return 0;
}

static int read_uuid(const struct reader *r, const struct key *key,
		     struct json_object *value, void *to)
{
	const char *text = json_object_get_string(value);

	if (!json_object_is_type(value, json_type_string) ||
	    strlen(text) != (size_t)json_object_get_string_len(value) ||
	    !dsm_uuid_read(text, to))
		return wrong(r, key->name, "a UUID, \"01234567-89ab-cdef-0123-456789abcdef\"");
	return 0;
}

static int read_host(const struct reader *r, const struct key *key,
		     struct json_object *value, void *to)
{
	const char *name = json_object_get_string(value);
	unsigned int i;

	for (i = 0; i < r->config->nr_hosts; i++) {
		if (json_object_is_type(value, json_type_string) &&
		    !strcmp(name, r->config->host[i].name)) {
			memcpy(to, &i, sizeof(i));
			return 0;
		}
	}
	return wrong(r, key->name, "the name of a host of dsm.toml");
}

static int read_object(const struct reader *r, const char *what,
		       struct json_object *object, const struct key *keys,
		       size_t nr, void *to)
{
	size_t i;

	if (!json_object_is_type(object, json_type_object))
		return wrong(r, what, "an object");
	json_object_object_foreach(object, name, unused) {
		(void)unused;
		for (i = 0; i < nr && strcmp(keys[i].name, name); i++)
			;
		if (i == nr)
			return wrong(r, name, "no such key in %s", what);
	}
	for (i = 0; i < nr; i++) {
		struct json_object *value;
		int rc;

		if (!json_object_object_get_ex(object, keys[i].name, &value)) {
			if (keys[i].may_miss)
				continue;
			return wrong(r, keys[i].name, "missing in %s", what);
		}
		rc = keys[i].read(r, &keys[i], value, (char *)to + keys[i].offset);
		if (rc)
			return rc;
	}
	return 0;
}

struct written_range {
	uint64_t first, frames;
	unsigned int host, vnode;
	bool attached, rings;
};

#define NR(a)	(sizeof(a) / sizeof((a)[0]))
#define IN(type, field)	offsetof(struct type, field)

static const struct key range_keys[] = {
	{ "first", read_number, IN(written_range, first), 0, MOST_GFN, 1, false },
	{ "frames", read_number, IN(written_range, frames), 1, MOST_GFN, 1, false },
	{ "host", read_host, IN(written_range, host), 0, 0, 0, false },
	{ "vnode", read_number, IN(written_range, vnode), 0, DSM_VNODES - 1, 0, true },
	{ "attached", read_flag, IN(written_range, attached), 0, 0, 0, true },
	{ "rings", read_flag, IN(written_range, rings), 0, 0, 0, true },
};

/* What range @i must be with regard to those before it. */
static int check_range(const struct reader *r, const struct key *key, size_t i)
{
	const struct dsm_range *range = &r->d->range[i];
	size_t k;

	if (i && range->start < range[-1].end)
		return wrong(r, key->name, "sorted by \"first\", without overlap");
	if (r->d->detached[i] && (range->start | range->end) % DSM_RANGE_FRAMES)
		return wrong(r, key->name, "\"first\" and \"frames\" are multiples of %u if \"attached\" is false",
			     DSM_RANGE_FRAMES);
	for (k = 0; k < i; k++) {
		if (r->d->vnode[k] != r->d->vnode[i])
			continue;
		if (r->d->range[k].home != range->home)
			return wrong(r, key->name, "vnode %u has one host", r->d->vnode[i]);
		if (r->d->detached[k] || r->d->detached[i])
			return wrong(r, key->name, "vnode %u has one range if \"attached\" is false",
				     r->d->vnode[i]);
	}
	return 0;
}

static int read_ranges(const struct reader *r, const struct key *key,
		       struct json_object *value, void *to)
{
	size_t i, nr;

	(void)to;
	nr = json_object_is_type(value, json_type_array) ?
	     json_object_array_length(value) : 0;
	if (!nr || nr > DSM_DESCRIPTION_RANGES)
		return wrong(r, key->name, "a list of 1 to %u objects", DSM_DESCRIPTION_RANGES);
	for (i = 0; i < nr; i++) {
		struct written_range w = { .vnode = DSM_VNODES, .attached = true };
		int rc = read_object(r, "a range", json_object_array_get_idx(value, i),
				     range_keys, NR(range_keys), &w);

		if (rc)
			return rc;
		if (w.rings && (w.vnode < DSM_VNODES || !w.attached || w.host != r->d->token_home))
			return wrong(r, key->name, "\"rings\" without \"vnode\" and \"attached\", at the host of \"token\"");
		r->d->range[i] = (struct dsm_range){
			w.first, w.first + w.frames, (uint8_t)w.host,
		};
		r->d->vnode[i] = w.vnode < DSM_VNODES || w.rings ? w.vnode : w.host;
		r->d->rings[i] = w.rings;
		r->d->detached[i] = !w.attached;
		r->d->elastic |= !w.attached;
		rc = check_range(r, key, i);
		if (rc)
			return rc;
	}
	r->d->nr_ranges = (unsigned int)nr;
	return 0;
}

struct written_place {
	unsigned int first, nr, host;
	bool attached;
};

static const struct key place_keys[] = {
	{ "first", read_number, IN(written_place, first), 1, DSM_ENGINE_VCPUS - 1, 0, false },
	{ "vcpus", read_number, IN(written_place, nr), 1, DSM_ENGINE_VCPUS - 1, 0, false },
	{ "host", read_host, IN(written_place, host), 0, 0, 0, false },
	{ "attached", read_flag, IN(written_place, attached), 0, 0, 0, true },
};

static int read_places(const struct reader *r, const struct key *key,
		       struct json_object *value, void *to)
{
	struct dsm_description *d = r->d;
	size_t i, nr;

	(void)to;
	nr = json_object_is_type(value, json_type_array) ?
	     json_object_array_length(value) : 0;
	if (!nr || nr > DSM_PLACES)
		return wrong(r, key->name, "a list of 1 to %u objects", DSM_PLACES);
	for (i = 0; i < nr; i++) {
		struct written_place w = { .attached = true };
		int rc = read_object(r, "a place", json_object_array_get_idx(value, i),
				     place_keys, NR(place_keys), &w);

		if (rc)
			return rc;
		if (i && w.first < d->place[i - 1].first + d->place[i - 1].nr)
			return wrong(r, key->name, "sorted by \"first\", without overlap");
		d->place[i] = (struct dsm_place){ w.first, w.nr, w.host, w.attached };
	}
	d->nr_places = (unsigned int)nr;
	return 0;
}

/* When all else is known. */
static int check_places(const struct reader *r)
{
	struct dsm_description *d = r->d;
	const struct dsm_place *p;

	if (!d->nr_places)
		return d->slow == 1 ? 0 : wrong(r, "slow", "there have to be \"places\"");
	if (d->build != (r->config->self != d->token_home))
		return wrong(r, "places", "the domain of the host of \"token\" is there, and all others are built");
	memset(d->where, (int)d->token_home, sizeof(d->where));
	memset(d->places, (int)d->token_home, sizeof(d->places));
	for (p = d->place; p < d->place + d->nr_places; p++) {
		if (p->attached && d->elastic)
			return wrong(r, "places", "\"attached\" is false, since that of a range is");
		if (p->first + p->nr > d->nr_vcpus)
			return wrong(r, "places", "vCPUs below %u", d->nr_vcpus);
		if (p->host == d->token_home)
			return wrong(r, "places", "at other hosts than that of \"token\"");
		memset(d->places + p->first, (int)p->host, p->nr);
		if (p->attached)
			memset(d->where + p->first, (int)p->host, p->nr);
	}
	return 0;
}

static const struct key keys[] = {
	{ "name", read_name, IN(dsm_description, name), 0, 0, 0, false },
	{ "uuid", read_uuid, IN(dsm_description, uuid), 0, 0, 0, false },
	{ "number", read_number, IN(dsm_description, number), 1, DSM_VM_NUMBERS - 1, 0, false },
	{ "build", read_flag, IN(dsm_description, build), 0, 0, 0, true },
	{ "domid", read_number, IN(dsm_description, domid), 1, 0x7fef, 0, true },
	{ "vcpus", read_number, IN(dsm_description, nr_vcpus), 1, DSM_ENGINE_VCPUS, 0, false },
	{ "frames", read_number, IN(dsm_description, frames), 0, 1u << 28, 0, false },
	{ "token", read_host, IN(dsm_description, token_home), 0, 0, 0, false },
	{ "ranges", read_ranges, 0, 0, 0, 0, false },
	{ "places", read_places, 0, 0, 0, 0, true },
	{ "slow", read_number, IN(dsm_description, slow), 1, DSM_MOST_SLOW, 0, true },
	{ "lease_us", read_number, IN(dsm_description, lease_ns), 0, 1000000, US, true },
	{ "token_ms", read_number, IN(dsm_description, token_ns), 1, 10000, MS, true },
	{ "pin_ms", read_number, IN(dsm_description, pin_ns), 1, 60000, MS, true },
	{ "answer_ms", read_number, IN(dsm_description, answer_ns), 0, 3600000, MS, true },
	{ "keepalive_ms", read_number, IN(dsm_description, keepalive_ms), 0, 3600000, 0, true },
	{ "prefetch", read_number, IN(dsm_description, prefetch), 0, DSM_ENGINE_PREFETCH, 0, true },
	{ "clear_hint", read_flag, IN(dsm_description, clear_hint), 0, 0, 0, true },
	{ "class_u", read_flag, IN(dsm_description, class_u), 0, 0, 0, true },
	{ "busy_wait_us", read_number, IN(dsm_description, busy_wait_ns), 0, DSM_POLL_MOST / US, US, true },
	{ "poll_us", read_number, IN(dsm_description, poll_ns), 0, DSM_POLL_MOST / US, US, true },
};

static unsigned int port_of(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	return ntohs(address->ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

/*
 * Where no vCPU is, nor will be.  Without memory that comes later nothing says at
 * which hosts there is a domain that runs.
 */
static uint16_t lenders(const struct dsm_description *d, unsigned int nr_hosts)
{
	uint16_t hosts = (uint16_t)((1u << nr_hosts) - 1);
	unsigned int i;

	if (!d->elastic)
		return 0;
	hosts &= (uint16_t)~dsm_bit(d->token_home);
	for (i = 0; i < d->nr_places; i++)
		hosts &= (uint16_t)~dsm_bit(d->place[i].host);
	return hosts;
}

static int read_all(const struct reader *r, struct json_object *all)
{
	int rc = read_object(r, "the description", all, keys, NR(keys), r->d);
	unsigned int i;

	if (rc)
		return rc;
	for (i = 0; i < r->config->nr_hosts; i++)
		if (port_of(&r->config->host[i].address) + r->d->number > 65535)
			return wrong(r, "number", "so small that its sum with the port of %s is a port",
				     r->config->host[i].name);
	if (r->d->build == (r->d->domid != 0))
		return wrong(r, "domid", "needed if \"build\" is not true, and not there if it is");
	if (r->d->elastic && !r->d->build && r->config->self != r->d->token_home)
		return wrong(r, "token", "the host of the domain, if \"attached\" of a range is false");
	for (i = 0; i < r->d->nr_ranges && !r->d->build; i++)
		if (r->d->detached[i] && r->d->range[i].home == r->config->self)
			return wrong(r, "ranges", "vnode %u has its memory here, in a domain that is there: \"attached\" is not false",
				     r->d->vnode[i]);
	rc = check_places(r);
	r->d->lenders = lenders(r->d, r->config->nr_hosts);
	return rc;
}

int dsm_description_parse(const char *bytes, size_t size, const char *file,
			  const struct dsm_config *config,
			  struct dsm_description *description,
			  char text[DSM_DESCRIPTION_TEXT])
{
	struct dsm_description read = {
		.lease_ns = 200 * US, .token_ns = 20 * MS, .retry_ns = 50 * US,
		.pin_ns = 20 * MS, .answer_ns = UINT64_MAX, .keepalive_ms = 10000,
		.slow = 1,
	};
	struct reader r = { file, text, config, &read };
	struct json_tokener *tokener = json_tokener_new_ex(8);
	struct json_object *all;
	int rc;

	text[0] = 0;
	if (!tokener) {
		snprintf(text, DSM_DESCRIPTION_TEXT, "%s: no memory", file);
		return -ENOMEM;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	all = size <= DSM_DESCRIPTION_BYTES ?
	      json_tokener_parse_ex(tokener, bytes, (int)size) : NULL;
	if (size > DSM_DESCRIPTION_BYTES) {
		snprintf(text, DSM_DESCRIPTION_TEXT, "%s: more than %u bytes", file,
			 DSM_DESCRIPTION_BYTES);
		rc = -E2BIG;
	} else if (!all) {
		rc = wrong(&r, "JSON", "%s, at byte %zu",
			   json_tokener_get_error(tokener) == json_tokener_continue ?
			   "it ends before its end" :
			   json_tokener_error_desc(json_tokener_get_error(tokener)),
			   json_tokener_get_parse_end(tokener));
	} else {
		rc = read_all(&r, all);
	}
	json_object_put(all);
	json_tokener_free(tokener);
	if (!rc)
		*description = read;
	return rc;
}

int dsm_description_read(const char *file, const struct dsm_config *config,
			 struct dsm_description *description,
			 char text[DSM_DESCRIPTION_TEXT])
{
	static char bytes[DSM_DESCRIPTION_BYTES + 1];
	size_t size = 0;
	ssize_t n = 0;
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc = 0;

	while (fd >= 0 && size < sizeof(bytes)) {
		n = read(fd, bytes + size, sizeof(bytes) - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size += (size_t)n;
	}
	if (fd < 0 || n < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	if (rc) {
		snprintf(text, DSM_DESCRIPTION_TEXT, "%s: %s", file, strerror(-rc));
		return rc;
	}
	return dsm_description_parse(bytes, size, file, config, description, text);
}

void dsm_description_engine(const struct dsm_description *d,
			    const struct dsm_config *config,
			    struct dsm_engine_params *p)
{
	unsigned int i;

	p->self = config->self;
	p->nr_hosts = config->nr_hosts;
	p->token_home = (uint8_t)d->token_home;
	for (i = 0; i < config->nr_hosts; i++)
		p->name[i] = config->host[i].name;
	p->nr_ranges = d->nr_ranges;
	memcpy(p->range, d->range, sizeof(d->range));
	memcpy(p->detached, d->detached, sizeof(d->detached));
	memcpy(p->rings, d->rings, sizeof(d->rings));
	p->nr_vcpus = d->nr_vcpus;
	p->where = d->nr_places ? d->where : NULL;
	p->lenders = d->lenders;
	p->places = d->nr_places ? d->places : NULL;
	p->frames = d->frames;
	p->lease_ns = d->lease_ns;
	p->merge_ns = MERGE_NS;
	p->token_ns = d->token_ns;
	p->retry_ns = d->retry_ns;
	p->pin_ns = d->pin_ns;
	/* Longer than a host may be silent, here and where it waits, and still live. */
	p->answer_ns = d->answer_ns != UINT64_MAX ? d->answer_ns :
		       (2ull * config->deadline_ms + d->keepalive_ms) * MS +
		       d->pin_ns + 32 * d->lease_ns;
	p->keepalive_ms = d->keepalive_ms;
	p->prefetch = d->prefetch;
	p->clear_hint = d->clear_hint;
	p->class_u = d->class_u;
}

uint64_t dsm_description_limit(const struct dsm_description *d, unsigned int host)
{
	uint64_t frames = d->frames + SLACK_FRAMES;
	unsigned int i;

	for (i = 0; i < d->nr_ranges; i++)
		if (d->range[i].home == host && !d->detached[i])
			frames += d->range[i].end - d->range[i].start;
	return frames;
}

uint8_t dsm_description_slice(const struct dsm_description *d, unsigned int host)
{
	return (uint8_t)(d->nr_places ? dsm_slice_number(d->token_home, host) : host);
}

/* Its own inverse. */
uint8_t dsm_description_host(const struct dsm_description *d, unsigned int slice)
{
	return dsm_description_slice(d, slice);
}

static void add_to_port(struct sockaddr_storage *address, unsigned int number)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (address->ss_family == AF_INET6) {
		memcpy(&six, address, sizeof(six));
		six.sin6_port = htons((uint16_t)(ntohs(six.sin6_port) + number));
		memcpy(address, &six, sizeof(six));
	} else {
		memcpy(&four, address, sizeof(four));
		four.sin_port = htons((uint16_t)(ntohs(four.sin_port) + number));
		memcpy(address, &four, sizeof(four));
	}
}

void dsm_description_transport(const struct dsm_description *d,
			       struct dsm_transport_params *p)
{
	unsigned int i;

	memcpy(p->vm, d->uuid, sizeof(p->vm));
	add_to_port(&p->address, d->number);
	for (i = 0; i < DSM_MAX_HOSTS; i++)
		if (p->peer[i].used)
			add_to_port(&p->peer[i].address, d->number);
}

void dsm_uuid_text(const uint8_t uuid[16], char text[37])
{
	unsigned int i, at = 0;

	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[at++] = '-';
		snprintf(text + at, 3, "%02x", uuid[i]);
		at += 2;
	}
}

bool dsm_uuid_read(const char *text, uint8_t uuid[16])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[16];
	unsigned int i, at = 0;

	if (strlen(text) != 36)
		return false;
	for (i = 0; i < 32; i++) {
		const char *digit;

		if ((i == 8 || i == 12 || i == 16 || i == 20) && text[at++] != '-')
			return false;
		digit = memchr(digits, text[at] >= 'A' && text[at] <= 'F' ?
			       text[at] - 'A' + 'a' : text[at], 16);
		if (!digit)
			return false;
		bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (digit - digits));
		at++;
	}
	memcpy(uuid, bytes, sizeof(bytes));
	return true;
}
