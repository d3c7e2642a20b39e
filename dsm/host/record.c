// SPDX-License-Identifier: GPL-2.0
/*
 * Files that say what a host knows of a VM.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "overhead.h"
#include "record.h"
#include "wire.h"

#define MOST_GFN	(1ull << 40)
#define UUID_LETTERS	36
#define PATH		512
#define POOL_PART	16	/* libxl's, of a vnode (libxl_vnode_span.h) */

bool record_is_rings(const struct record_range *range)
{
	return range->vnode == DSM_VNODES;
}

bool record_is_home(const struct host *host, const struct record *record)
{
	return record->home == host->config.self;
}

const struct record_range *record_vnode(const struct record *record, unsigned int vnode)
{
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		if (record->range[i].spans && record->range[i].vnode == vnode)
			return &record->range[i];
	return NULL;
}

bool record_has_host(const struct record *record, unsigned int host)
{
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		if (record->range[i].spans && record->range[i].host == host)
			return true;
	return false;
}

uint64_t record_frames_of(const struct record *record, unsigned int host)
{
	uint64_t frames = 0;
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		if (record->range[i].spans && record->range[i].host == host)
			frames += record->range[i].frames;
	return frames;
}

bool record_has_same_places(const struct record *a, const struct record *b)
{
	unsigned int i;

	for (i = 0; i < a->nr_places && i < b->nr_places; i++)
		if (a->place[i].first != b->place[i].first || a->place[i].nr != b->place[i].nr ||
		    a->place[i].host != b->place[i].host)
			return false;
	return a->nr_places == b->nr_places;
}

unsigned int record_vcpus_of(const struct record *record, unsigned int host)
{
	unsigned int i, nr = 0;

	for (i = 0; i < record->nr_places; i++)
		if (record->place[i].host == host)
			nr += record->place[i].nr;
	return nr;
}

bool record_has_vcpu(const struct record *record, unsigned int vcpu, unsigned int host)
{
	const struct record_place *place = record->place;

	for (; place < record->place + record->nr_places; place++)
		if (vcpu >= place->first && vcpu - place->first < place->nr)
			return place->host == host;
	return false;
}

bool record_is_same(const struct record *a, const struct record *b)
{
	unsigned int i;

	if (!record_has_same_places(a, b))
		return false;
	if (memcmp(a->uuid, b->uuid, sizeof(a->uuid)) || strcmp(a->guest, b->guest) ||
	    a->home != b->home || a->nr_vcpus != b->nr_vcpus || a->nr_ranges != b->nr_ranges)
		return false;
	for (i = 0; i < a->nr_ranges; i++)
		if (a->range[i].vnode != b->range[i].vnode ||
		    a->range[i].host != b->range[i].host ||
		    a->range[i].first != b->range[i].first ||
		    a->range[i].frames != b->range[i].frames ||
		    a->range[i].pool_kib != b->range[i].pool_kib)
			return false;
	return true;
}

uint64_t record_pool_frames(const struct record *record, unsigned int host)
{
	uint64_t least = (uint64_t)DSM_FRAMES_PER_VCPU * record->nr_vcpus, others = 0;
	unsigned int i;

	if (!record_vcpus_of(record, host))
		return least;
	for (i = 0; i < record->nr_ranges; i++)
		if (record->range[i].host != host)
			others += record->range[i].frames;
	return others / POOL_PART > least ? others / POOL_PART : least;
}

uint64_t record_overhead_kib(const struct record *record, unsigned int host)
{
	uint64_t frames = 0;
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		frames += record->range[i].frames;
	return dsm_paging_bytes(frames, record->nr_vcpus) / 1024 +
	       record_pool_frames(record, host) * 4;
}

/* ---- JSON ---- */

static struct json_object *text_of(const char *text)
{
	return json_object_new_string(text);
}

static struct json_object *number_of(uint64_t number)
{
	return json_object_new_uint64(number);
}

/* Without any there is no such key: nor is it needed for a dsmd-host that does not know it. */
static void add_places(struct json_object *to, const struct host *host,
		       const struct record *record, bool for_dsmd)
{
	struct json_object *list = json_object_new_array();
	unsigned int i;

	for (i = 0; i < record->nr_places; i++) {
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "first", number_of(record->place[i].first));
		json_object_object_add(one, "vcpus", number_of(record->place[i].nr));
		json_object_object_add(one, "host", text_of(host_name(host, record->place[i].host)));
		if (for_dsmd)
			json_object_object_add(one, "attached", json_object_new_boolean(false));
		json_object_array_add(list, one);
	}
	if (record->nr_places)
		json_object_object_add(to, "places", list);
	else
		json_object_put(list);
}

struct json_object *record_to_json(const struct host *host, const struct record *record)
{
	struct json_object *all = json_object_new_object(), *list = json_object_new_array();
	unsigned int i;

	json_object_object_add(all, "uuid", text_of(record->uuid_text));
	json_object_object_add(all, "name", text_of(record->name));
	json_object_object_add(all, "guest", text_of(record->guest));
	json_object_object_add(all, "number", number_of(record->number));
	json_object_object_add(all, "home", text_of(host_name(host, record->home)));
	json_object_object_add(all, "domid", number_of(record->domid));
	json_object_object_add(all, "vcpus", number_of(record->nr_vcpus));
	json_object_object_add(all, "begun", json_object_new_boolean(record->begun));
	for (i = 0; i < record->nr_ranges; i++) {
		const struct record_range *range = &record->range[i];
		struct json_object *one = json_object_new_object();

		if (!record_is_rings(range))
			json_object_object_add(one, "vnode", number_of(range->vnode));
		json_object_object_add(one, "host", text_of(host_name(host, range->host)));
		json_object_object_add(one, "first", number_of(range->first));
		json_object_object_add(one, "frames", number_of(range->frames));
		json_object_object_add(one, "pool_kib", number_of(range->pool_kib));
		if (range->lent_kib)
			json_object_object_add(one, "lent_kib", number_of(range->lent_kib));
		json_object_array_add(list, one);
	}
	json_object_object_add(all, "ranges", list);
	add_places(all, host, record, false);
	return all;
}

static int read_host(struct host *host, struct json_object *from, const char *key,
		     unsigned int *number, struct answer *answer)
{
	const char *name = read_text(from, key, DSM_CONFIG_NAME - 1, answer);

	if (!name)
		return -1;
	*number = host_find(host, name, answer);
	return *number == DSM_NOBODY ? -1 : 0;
}

int record_read_vnode(struct json_object *from, unsigned int *vnode, struct answer *answer)
{
	uint64_t number = DSM_VNODES;

	if (json_object_object_get_ex(from, "vnode", NULL) &&
	    read_number(from, "vnode", 0, DSM_VNODES - 1, &number, answer))
		return -1;
	*vnode = (unsigned int)number;
	return 0;
}

static int read_range(struct host *host, struct json_object *from, struct record *record,
		      struct answer *answer)
{
	struct record_range *range = &record->range[record->nr_ranges];

	if (!json_object_is_type(from, json_type_object))
		return answer_error(answer, "internal", "a range is no object");
	if (record_read_vnode(from, &range->vnode, answer) ||
	    read_host(host, from, "host", &range->host, answer) ||
	    read_number(from, "first", 0, MOST_GFN, &range->first, answer) ||
	    read_number(from, "frames", 1, MOST_GFN, &range->frames, answer) ||
	    read_number(from, "pool_kib", 0, MOST_GFN * 4, &range->pool_kib, answer))
		return -1;
	if (json_object_object_get_ex(from, "lent_kib", NULL) &&
	    read_number(from, "lent_kib", 0, 1ull << 30, &range->lent_kib, answer))
		return -1;
	range->spans = range->host != record->home;
	if (range->spans && record_is_rings(range))
		return answer_error(answer, "sizes", "a range without vnode is the home's");
	if (record->nr_ranges && range->first < range[-1].first + range[-1].frames)
		return answer_error(answer, "sizes", "ranges overlap, or are not sorted");
	if (range->spans && ((range->first | range->frames) % 512 || record_vnode(record, range->vnode)))
		return answer_error(answer, "sizes", "vnode %u has one range of another host, in units of 2 MiB",
				    range->vnode);
	record->nr_ranges++;
	return 0;
}

static int read_place(struct host *host, struct json_object *from, struct record *record,
		      struct answer *answer)
{
	struct record_place *place = &record->place[record->nr_places];
	uint64_t first, nr;

	if (!json_object_is_type(from, json_type_object))
		return answer_error(answer, "internal", "a place is no object");
	if (read_number(from, "first", 0, DSM_ENGINE_VCPUS - 1, &first, answer) ||
	    read_number(from, "vcpus", 1, DSM_ENGINE_VCPUS, &nr, answer) ||
	    read_host(host, from, "host", &place->host, answer))
		return -1;
	place->first = (unsigned int)first;
	place->nr = (unsigned int)nr;
	if (!first)
		return answer_error(answer, "places", "vCPU 0 can't have its place at %s: the guest boots on it, at home",
				    host_name(host, place->host));
	if (first + nr > record->nr_vcpus)
		return answer_error(answer, "places", "vCPU %llu has its place at %s; the guest has %u",
				    (unsigned long long)(first + nr - 1),
				    host_name(host, place->host), record->nr_vcpus);
	if (record->nr_places && first < place[-1].first + place[-1].nr)
		return answer_error(answer, "places", "vCPU %llu has two places, or they are not sorted",
				    (unsigned long long)first);
	if (!record_has_host(record, place->host))
		return answer_error(answer, "places", "vCPU %llu has its place at %s, which has no vnode of the guest",
				    (unsigned long long)first, host_name(host, place->host));
	record->nr_places++;
	return 0;
}

int record_read_places(struct host *host, struct json_object *from, struct record *record,
		       struct answer *answer)
{
	struct json_object *list;
	size_t i;

	if (!json_object_object_get_ex(from, "places", &list))
		return 0;
	if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) > DSM_PLACES)
		return answer_error(answer, "internal", "places: want a list of at most %u", DSM_PLACES);
	for (i = 0; i < json_object_array_length(list); i++)
		if (read_place(host, json_object_array_get_idx(list, i), record, answer))
			return -1;
	return 0;
}

/* A name that can be one of a file: dsmd's own rule (dsmd(8)). */
static bool is_file_name(const char *name)
{
	return name[0] && name[0] != '.' && strlen(name) < DSM_DESCRIPTION_NAME &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")];
}

int record_from_json(struct host *host, struct json_object *json, struct record *record,
		     struct answer *answer)
{
	struct json_object *list, *begun;
	uint64_t number, domid, vcpus;
	const char *name, *guest;
	size_t i;

	memset(record, 0, sizeof(*record));
	if (!json || !json_object_is_type(json, json_type_object))
		return answer_error(answer, "internal", "a VM is no object");
	name = read_text(json, "name", DSM_DESCRIPTION_NAME - 1, answer);
	guest = read_text(json, "guest", sizeof(record->guest) - 1, answer);
	if (!name || !guest || read_uuid(json, record->uuid, record->uuid_text, answer) ||
	    read_number(json, "number", 1, DSM_VM_NUMBERS - 1, &number, answer) ||
	    read_host(host, json, "home", &record->home, answer) ||
	    read_number(json, "domid", 0, 0x7fef, &domid, answer) ||
	    read_number(json, "vcpus", 1, DSM_ENGINE_VCPUS, &vcpus, answer))
		return -1;
	if (!is_file_name(name))
		return answer_error(answer, "internal", "name: %s can't be the name of a file", name);
	strcpy(record->name, name);
	strcpy(record->guest, guest);
	record->number = (unsigned int)number;
	record->domid = (uint32_t)domid;
	record->nr_vcpus = (unsigned int)vcpus;
	if (json_object_object_get_ex(json, "begun", &begun))
		record->begun = json_object_get_boolean(begun);
	if (!json_object_object_get_ex(json, "ranges", &list) ||
	    !json_object_is_type(list, json_type_array) || !json_object_array_length(list) ||
	    json_object_array_length(list) > DSM_DESCRIPTION_RANGES)
		return answer_error(answer, "internal", "ranges: want a list of 1 to %u",
				    DSM_DESCRIPTION_RANGES);
	for (i = 0; i < json_object_array_length(list); i++)
		if (read_range(host, json_object_array_get_idx(list, i), record, answer))
			return -1;
	return record_read_places(host, json, record, answer);
}

/* What its dsmd is told; dsmd(8). */
static struct json_object *description(const struct host *host, const struct record *record)
{
	struct json_object *all = json_object_new_object(), *list = json_object_new_array();
	bool home = record_is_home(host, record);
	unsigned int i;

	json_object_object_add(all, "name", text_of(record->name));
	json_object_object_add(all, "uuid", text_of(record->uuid_text));
	json_object_object_add(all, "number", number_of(record->number));
	if (home)
		json_object_object_add(all, "domid", number_of(record->domid));
	else
		json_object_object_add(all, "build", json_object_new_boolean(true));
	json_object_object_add(all, "vcpus", number_of(record->nr_vcpus));
	/* At home the pool comes with "node"; elsewhere the home's pages can be had. */
	json_object_object_add(all, "frames",
			       number_of(home ? 0 : record_pool_frames(record, host->config.self)));
	json_object_object_add(all, "token", text_of(host_name(host, record->home)));
	for (i = 0; i < record->nr_ranges; i++) {
		const struct record_range *range = &record->range[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "first", number_of(range->first));
		json_object_object_add(one, "frames", number_of(range->frames));
		json_object_object_add(one, "host", text_of(host_name(host, range->host)));
		if (record_is_rings(range))
			json_object_object_add(one, "rings", json_object_new_boolean(true));
		else
			json_object_object_add(one, "vnode", number_of(range->vnode));
		if (range->spans)
			json_object_object_add(one, "attached", json_object_new_boolean(false));
		json_object_array_add(list, one);
	}
	json_object_object_add(all, "ranges", list);
	add_places(all, host, record, true);
	if (record->nr_places && host->config.class_u)
		json_object_object_add(all, "class_u", json_object_new_boolean(true));
	return all;
}

/* ---- Files ---- */

static int path_of(const struct host *host, const char *uuid, const char *file, char path[PATH])
{
	int n = snprintf(path, PATH, "%s/vm/%s%s", host->folder, uuid, file);

	return n < 0 || n >= PATH ? -ENAMETOOLONG : 0;
}

static int make_folder(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

int record_prepare(const struct host *host)
{
	char path[PATH];
	char *slash;
	int rc;

	/* /run/xenuma, which nobody else makes where there is no systemd. */
	if ((size_t)snprintf(path, sizeof(path), "%s", host->folder) >= sizeof(path))
		return -ENAMETOOLONG;
	slash = strrchr(path, '/');
	if (slash && slash > path) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
	}
	rc = make_folder(host->folder);
	if (!rc)
		rc = path_of(host, "", "", path);
	return rc ? rc : make_folder(path);
}

static int try_lock(const char *path)
{
	struct stat ours, theirs;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return -EBUSY;
	}
	/* Who had it before may have removed it. */
	if (!fstat(fd, &ours) && !stat(path, &theirs) && ours.st_ino == theirs.st_ino)
		return fd;
	close(fd);
	return -EBUSY;
}

static int lock_within(const char *path, double seconds)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	double end = wire_now() + seconds;
	int fd;

	while ((fd = try_lock(path)) == -EBUSY && wire_now() < end)
		nanosleep(&pause, NULL);
	return fd;
}

int record_lock(const struct host *host, const char *uuid, double seconds)
{
	char path[PATH];
	int rc = path_of(host, uuid, ".lock", path);

	return rc ? rc : lock_within(path, seconds);
}

void record_unlock(const struct host *host, const char *uuid, int lock)
{
	char path[PATH];

	if (lock < 0)
		return;
	if (!path_of(host, uuid, "/record.json", path) && access(path, F_OK) &&
	    !path_of(host, uuid, ".lock", path))
		unlink(path);
	close(lock);
}

int record_lock_numbers(const struct host *host)
{
	char path[PATH];
	int rc = path_of(host, "", "numbers", path);

	return rc ? rc : lock_within(path, HOST_BUSY_S);
}

static int read_file(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, size - 1);
	int error = errno;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -error;
	bytes[n] = 0;
	return 0;
}

/* As a whole, or not at all. */
static int replace_file(const char *path, const char *bytes)
{
	char beside[PATH + 8];
	size_t size = strlen(bytes);
	int fd, rc = 0;

	snprintf(beside, sizeof(beside), "%s.new", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, bytes, size) != (ssize_t)size)
		rc = errno ? -errno : -EIO;
	close(fd);
	if (!rc && rename(beside, path))
		rc = -errno;
	return rc;
}

int record_read(struct host *host, const char *uuid, struct record *record)
{
	struct answer answer = { 0 };
	char path[PATH], *bytes = malloc(HOST_LINE);
	struct json_object *json = NULL;
	int rc = path_of(host, uuid, "/record.json", path);

	if (!bytes)
		return -ENOMEM;
	if (!rc)
		rc = read_file(path, bytes, HOST_LINE);
	if (!rc) {
		json = read_line_json(bytes, strlen(bytes), &answer);
		if (!json || record_from_json(host, json, record, &answer) ||
		    strcmp(record->uuid_text, uuid))
			rc = -EINVAL;
	}
	json_object_put(json);
	answer_free(&answer);
	free(bytes);
	return rc == -ENOTDIR ? -ENOENT : rc;
}

int record_find(struct host *host, const char *uuid, struct record *record,
		struct answer *answer)
{
	int rc = record_read(host, uuid, record);

	if (!rc)
		return 1;
	if (rc == -ENOENT)
		return 0;
	return answer_error(answer, "internal", "host %s: %s/vm/%s/record.json can't be read: %s",
			    host_name(host, host->config.self), host->folder, uuid,
			    rc == -EINVAL ? "it is no record, or names a host that is not in dsm.toml" :
			    strerror(-rc));
}

int record_has_domain(const struct host *host, const struct record *record)
{
	uint8_t uuid[16];
	int rc = host->xen->uuid(record->domid, uuid);

	if (rc)
		return rc == -ESRCH ? 0 : rc;
	return !memcmp(uuid, record->uuid, sizeof(uuid));
}

static int write_json(const struct host *host, const char *uuid, const char *file,
		      struct json_object *json)
{
	char path[PATH];
	int rc = path_of(host, uuid, file, path);

	if (!rc)
		rc = replace_file(path, json_object_to_json_string_ext(json,
				  JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(json);
	return rc;
}

int record_write(const struct host *host, const struct record *record)
{
	char path[PATH];
	int rc = path_of(host, record->uuid_text, "", path);

	if (!rc)
		rc = make_folder(path);
	if (!rc)
		rc = write_json(host, record->uuid_text, "/vm.json", description(host, record));
	/* Last: it is what makes the others count. */
	if (!rc)
		rc = write_json(host, record->uuid_text, "/record.json",
				record_to_json(host, record));
	return rc;
}

int record_remove(const struct host *host, const char *uuid)
{
	/*
	 * The pid first: without the record it would be that of a dsmd of the next
	 * guest of this UUID.  Then the record: without it there is nothing.
	 */
	static const char *const files[] = {
		"/pid", "/record.json", "/record.json.new", "/vm.json", "/vm.json.new",
		"/pid.new", "/alive",
	};
	char path[PATH];
	size_t i;
	int rc;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		rc = path_of(host, uuid, files[i], path);
		if (rc || (unlink(path) && errno != ENOENT && errno != ENOTDIR))
			return rc ? rc : -errno;
	}
	rc = path_of(host, uuid, "", path);
	return rc ? rc : rmdir(path) && errno != ENOENT ? -errno : 0;
}

const char *record_each(struct host *host, void (*each)(struct host *host,
			const struct record *record, void *context), void *context)
{
	static char unread[UUID_LETTERS + 1];
	struct record record;
	struct dirent *entry;
	uint8_t uuid[16];
	char path[PATH];
	DIR *dir;
	int rc;

	unread[0] = 0;
	if (path_of(host, "", "", path))
		return NULL;
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (strlen(entry->d_name) != UUID_LETTERS || !dsm_uuid_read(entry->d_name, uuid))
			continue;
		rc = record_read(host, entry->d_name, &record);
		if (!rc)
			each(host, &record, context);
		else if (rc != -ENOENT)
			strcpy(unread, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return unread[0] ? unread : NULL;
}
