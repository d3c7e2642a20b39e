/* SPDX-License-Identifier: GPL-2.0 */
/*
 * xenstore for the driver: a table of keys, in which anybody may have written
 * anything, and a list of what was asked of it.  A request that is waited for by
 * itself is a line of that list, and so is a row of requests that is waited for at
 * its end, or not at all.
 */
#ifndef FAKE_XENSTORE_H
#define FAKE_XENSTORE_H

#include <xen/xenbus_batch.h>

#include "case.h"

#define KEYS	64

static struct { char path[80], text[400]; } keys[KEYS];
static bool in_transaction;
static int refused;		/* why nothing can be written; 0: it can */
static unsigned int starts, again, aborted;
/* What was asked since it was last emptied, how many requests, how many waits. */
static char asked[1 << 16];
static unsigned int nr_requests, nr_waits;
static const char *unreadable;	/* a key of which xenstored says something else than that it is not there */
/* Rows that nobody waits for are done when somebody waits for all of them, or after the next transaction. */
static bool late;
/* Something happens when so many requests more have come. */
static unsigned int happens_at;
static void (*happens)(void);
/* ... and when the first row has been answered, before who has sent it goes on. */
static void (*on_the_way)(void);
/* Who looks whenever others can see something new. */
static void (*looks)(void);
static int cannot_start, cannot_end;	/* why no transaction begins, or is committed; 0: it is */

static inline int find(const char *path)
{
	int i;

	for (i = 0; i < KEYS; i++) {
		if (!strcmp(keys[i].path, path))
			return i;
	}
	return -1;
}

static inline void set(const char *path, const char *text)
{
	int i = find(path);

	if (i < 0)
		i = find("");
	snprintf(keys[i].path, sizeof(keys[i].path), "%s", text ? path : "");
	snprintf(keys[i].text, sizeof(keys[i].text), "%s", text ?: "");
}

static inline const char *get(const char *path)
{
	int i = find(path);

	return i < 0 ? "(none)" : keys[i].text;
}

static inline const char *path_of(const char *dir, const char *key)
{
	static char path[80];

	snprintf(path, sizeof(path), "%s/%s", dir, key);
	return path;
}

/* A request: its words in the list, without the folders that all have. */
static void request(const char *what, const char *dir, const char *key, const char *text)
{
	size_t used = strlen(asked);

	if (looks && !in_transaction)
		looks();
	nr_requests++;
	CHECK(used < sizeof(asked) / 2, "%u requests", nr_requests);
	if (happens_at && !--happens_at)
		happens();
	snprintf(asked + used, sizeof(asked) - used, "%s%s%s%s%s", used && asked[used - 1] != '\n' ? ", " : "",
		 what, key ? key : "", text ? "=" : "", text ? !strcmp(key, "phases") ? "..." : text : "");
}

static void end_of_row(bool waited)
{
	void (*now)(void) = on_the_way;

	nr_waits += waited;
	strcat(asked, waited ? "\n" : " (not waited for)\n");
	if (looks && !in_transaction)
		looks();
	on_the_way = NULL;
	if (now)
		now();
}

static char *do_read(const char *dir, const char *key)
{
	int i = find(path_of(dir, key));

	request("read ", dir, key, NULL);
	if (unreadable && !strcmp(key, unreadable))
		return ERR_PTR(-EIO);
	return i < 0 ? ERR_PTR(-ENOENT) : strdup(keys[i].text);
}

static int do_write(struct xenbus_transaction t, const char *dir, const char *key, const char *text)
{
	request("write ", dir, key, text);
	CHECK(!strncmp(dir, "vnuma/guest", 11), "%s/%s is not ours", dir, key);
	CHECK(!t.id == !in_transaction, "%s/%s by the way", dir, key);
	if (refused)
		return refused;
	set(path_of(dir, key), text);
	return 0;
}

static int do_rm(const char *dir, const char *key)
{
	request("rm ", dir, key, NULL);
	if (find(path_of(dir, key)) >= 0)
		set(path_of(dir, key), NULL);
	return 0;
}

/* Rows: done when they are sent, in order; writes of one that is late are not. */
static struct { char what, dir[64], key[32], text[400], **answer; } row[128];
static struct { char *path, *text; } late_writes[32];
static unsigned int row_length, nr_late, settled;
static bool no_memory;
static const struct xenbus_batch *begun;

static void do_late(void)
{
	unsigned int i;

	for (i = 0; i < nr_late; i++)
		set(late_writes[i].path, late_writes[i].text);
	nr_late = 0;
}

static int write_late(const char *dir, const char *key, const char *text)
{
	request("write ", dir, key, text);
	CHECK(nr_late < ARRAY_SIZE(late_writes), "%u writes", nr_late);
	late_writes[nr_late].path = strdup(path_of(dir, key));
	late_writes[nr_late++].text = strdup(text);
	return 0;
}

void xenbus_batch_init(struct xenbus_batch *batch)
{
	CHECK(!row_length, "a row that is never sent");
	begun = batch;
	batch->error = 0;
}

static void add(struct xenbus_batch *batch, char what, const char *dir, const char *key,
		const char *text, char **answer)
{
	CHECK(begun == batch, "a row that was never begun");
	CHECK(row_length < ARRAY_SIZE(row), "a long row");
	row[row_length].what = what;
	snprintf(row[row_length].dir, sizeof(row[0].dir), "%s", dir);
	snprintf(row[row_length].key, sizeof(row[0].key), "%s", key);
	snprintf(row[row_length].text, sizeof(row[0].text), "%s", text);
	row[row_length++].answer = answer;
	if (answer)
		*answer = ERR_PTR(-ENOMEM);
	if (no_memory)
		batch->error = -ENOMEM;
}

void xenbus_batch_read(struct xenbus_batch *batch, const char *dir, const char *key,
		       char **text)
{
	add(batch, 'r', dir, key, "", text);
}

void xenbus_batch_write(struct xenbus_batch *batch, const char *dir, const char *key,
			const char *text)
{
	add(batch, 'w', dir, key, text, NULL);
}

void xenbus_batch_rm(struct xenbus_batch *batch, const char *dir, const char *key)
{
	add(batch, 'd', dir, key, "", NULL);
}

static int send_row(struct xenbus_batch *batch, struct xenbus_transaction t, bool waited)
{
	int rc = 0, err = 0;
	unsigned int i;

	for (i = 0; i < row_length && !batch->error; i++) {
		if (row[i].what == 'r')
			*row[i].answer = do_read(row[i].dir, row[i].key);
		else if (row[i].what == 'w' && late && !waited)
			err = write_late(row[i].dir, row[i].key, row[i].text);
		else if (row[i].what == 'w')
			err = do_write(t, row[i].dir, row[i].key, row[i].text);
		else
			err = do_rm(row[i].dir, row[i].key);
		CHECK(waited || row[i].what != 'r', "nobody waits for the answer");
		rc = rc ?: err;
	}
	row_length = 0;
	begun = NULL;
	if (batch->error)
		return batch->error;
	end_of_row(waited);
	return rc;
}

int xenbus_batch_run(struct xenbus_batch *batch, struct xenbus_transaction t)
{
	return send_row(batch, t, true);
}

/* What becomes of it nobody hears. */
int xenbus_batch_post(struct xenbus_batch *batch)
{
	int rc = send_row(batch, XBT_NIL, false);

	return rc == -ENOMEM ? rc : 0;
}

void xenbus_batch_settle(void)
{
	settled++;
	do_late();
}

char *xenbus_read(struct xenbus_transaction t, const char *dir,
		  const char *key, unsigned int *length)
{
	char *text = do_read(dir, key);

	end_of_row(true);
	return text;
}

int xenbus_write(struct xenbus_transaction t, const char *dir, const char *key,
		 const char *text)
{
	int rc = do_write(t, dir, key, text);

	end_of_row(true);
	return rc;
}

int xenbus_exists(struct xenbus_transaction t, const char *dir, const char *key)
{
	request("exists ", dir, key, NULL);
	end_of_row(true);
	return find(path_of(dir, key)) >= 0;
}

int xenbus_rm(struct xenbus_transaction t, const char *dir, const char *key)
{
	int rc = do_rm(dir, key);

	end_of_row(true);
	return rc;
}

int xenbus_transaction_start(struct xenbus_transaction *t)
{
	CHECK(!in_transaction, "a transaction in another");
	request("start", NULL, NULL, NULL);
	in_transaction = !cannot_start;
	end_of_row(true);
	if (cannot_start)
		return cannot_start;
	t->id = ++starts;
	return 0;
}

int xenbus_transaction_end(struct xenbus_transaction t, int abort)
{
	CHECK(in_transaction && t.id == starts, "no transaction");
	request(abort ? "abort" : "commit", NULL, NULL, NULL);
	in_transaction = false;
	aborted += abort;
	end_of_row(true);
	do_late();
	if (!abort && cannot_end)
		return cannot_end;
	if (abort || !again)
		return 0;
	again--;
	return -EAGAIN;
}

int kstrtoull(const char *text, unsigned int base, u64 *value)
{
	unsigned long long n;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, base);
	if (errno)
		return -ERANGE;
	if (*end)
		return -EINVAL;
	*value = n;
	return 0;
}

int cpulist_parse(const char *text, struct cpumask *cpus)
{
	unsigned int from, to;
	int length;

	cpus->bits[0] = 0;
	for (; *text; text += length + (text[length] == ',')) {
		if (sscanf(text, "%u-%u%n", &from, &to, &length) != 2) {
			if (sscanf(text, "%u%n", &from, &length) != 1)
				return -EINVAL;
			to = from;
		}
		if (to >= nr_cpu_ids)
			return -ERANGE;
		for (; from <= to; from++)
			set_bit(from, cpus->bits);
	}
	return 0;
}

#endif
