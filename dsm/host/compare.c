// SPDX-License-Identifier: GPL-2.0
/*
 * This host's dsm.toml beside that of another one (compare.h).
 *
 * What the other says is read as dsm.toml(5) itself would be: so many hosts, numbers,
 * addresses in numbers, names of letters.  A value that is none of these is no
 * difference: then all that it says of its file is wrong.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "compare.h"

/* Of one host, as text; of two files the same if each of these is. */
struct row {
	char name[DSM_CONFIG_NAME];
	unsigned int number, port;
	char address[INET6_ADDRSTRLEN];
	unsigned int nr_names;
	char names[DSM_TRANSPORT_NAMES][DSM_CONFIG_NAME];
};

struct file {
	char transport[8];
	bool class_u;
	unsigned int nr;
	struct row row[DSM_MAX_HOSTS];
};

/* ---- Ours ---- */

static void take_address(const struct sockaddr_storage *address, struct row *row)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;
	bool is_six = address->ss_family == AF_INET6;

	if (!inet_ntop(address->ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr,
		       row->address, sizeof(row->address)))
		row->address[0] = 0;
	row->port = ntohs(is_six ? six->sin6_port : four->sin_port);
}

static void take_own(const struct host *host, struct file *file)
{
	unsigned int i, k;

	strcpy(file->transport, host->config.transport == DSM_TRANSPORT_RDMA ? "rdma" : "tcp");
	file->class_u = host->config.class_u;
	file->nr = host->config.nr_hosts;
	for (i = 0; i < file->nr; i++) {
		const struct dsm_config_host *from = &host->config.host[i];
		struct row *row = &file->row[i];

		strcpy(row->name, from->name);
		row->number = i;
		take_address(&from->address, row);
		row->nr_names = from->nr_names;
		for (k = 0; k < from->nr_names; k++)
			strcpy(row->names[k], from->certificate_names[k]);
	}
}

static void add_text(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key, json_object_new_string(text));
}

void compare_tell(const struct host *host, struct answer *answer)
{
	struct json_object *all = json_object_new_object(), *hosts = json_object_new_array();
	static struct file file;
	unsigned int i, k;

	take_own(host, &file);
	for (i = 0; i < file.nr; i++) {
		struct json_object *one = json_object_new_object(), *names = json_object_new_array();
		const struct row *row = &file.row[i];

		add_text(one, "name", row->name);
		json_object_object_add(one, "number", json_object_new_uint64(row->number));
		add_text(one, "address", row->address);
		json_object_object_add(one, "port", json_object_new_uint64(row->port));
		for (k = 0; k < row->nr_names; k++)
			json_object_array_add(names, json_object_new_string(row->names[k]));
		json_object_object_add(one, "certificate_names", names);
		json_object_array_add(hosts, one);
	}
	add_text(all, "transport", file.transport);
	json_object_object_add(all, "class_u", json_object_new_boolean(file.class_u));
	json_object_object_add(all, "hosts", hosts);
	answer_add(answer, "file", all);
}

/* ---- Theirs ---- */

/* What names of hosts and of certificates are made of.  Return: was it that? */
static bool read_name(struct json_object *value, char name[DSM_CONFIG_NAME])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const char *text = json_object_is_type(value, json_type_string) ?
			   json_object_get_string(value) : "";
	size_t size = strspn(text, letters);

	if (!size || size >= DSM_CONFIG_NAME || size != (size_t)json_object_get_string_len(value))
		return false;
	memcpy(name, text, size + 1);
	return true;
}

/* As we would write it. */
static bool read_address(const char *text, char address[INET6_ADDRSTRLEN])
{
	int family = text && strchr(text, ':') ? AF_INET6 : AF_INET;
	struct in6_addr bytes;

	return text && inet_pton(family, text, &bytes) == 1 &&
	       inet_ntop(family, &bytes, address, INET6_ADDRSTRLEN);
}

static bool read_names(struct json_object *one, struct row *row)
{
	struct json_object *names;
	unsigned int k;

	if (!json_object_object_get_ex(one, "certificate_names", &names) ||
	    !json_object_is_type(names, json_type_array) ||
	    !json_object_array_length(names) || json_object_array_length(names) > DSM_TRANSPORT_NAMES)
		return false;
	row->nr_names = (unsigned int)json_object_array_length(names);
	for (k = 0; k < row->nr_names; k++)
		if (!read_name(json_object_array_get_idx(names, k), row->names[k]))
			return false;
	return true;
}

static bool read_row(struct json_object *one, struct row *row)
{
	struct answer wrong = { 0 };
	struct json_object *name;
	uint64_t number, port;
	const char *address;

	if (!json_object_is_type(one, json_type_object) ||
	    !json_object_object_get_ex(one, "name", &name) || !read_name(name, row->name) ||
	    read_number(one, "number", 0, DSM_MAX_HOSTS - 1, &number, &wrong) ||
	    read_number(one, "port", 1, UINT16_MAX, &port, &wrong))
		return false;
	row->number = (unsigned int)number;
	row->port = (unsigned int)port;
	address = read_text(one, "address", INET6_ADDRSTRLEN - 1, &wrong);
	return read_address(address, row->address) && read_names(one, row);
}

/* Names of hosts, and their numbers. */
static bool is_each_once(const struct file *file)
{
	unsigned int i, k;

	for (i = 0; i < file->nr; i++)
		for (k = 0; k < i; k++)
			if (!strcmp(file->row[i].name, file->row[k].name) ||
			    file->row[i].number == file->row[k].number)
				return false;
	return true;
}

/* An older dsmd-host knows nothing of it: then it is off there. */
static bool read_class_u(struct json_object *said, bool *on)
{
	struct json_object *value;
	bool is_said = json_object_object_get_ex(said, "class_u", &value);

	*on = is_said && json_object_get_boolean(value);
	return !is_said || json_object_is_type(value, json_type_boolean);
}

/* Return: is it what a file can say? */
static bool read_theirs(struct json_object *said, struct file *file)
{
	struct answer wrong = { 0 };
	struct json_object *hosts;
	const char *transport;
	unsigned int i;

	if (!json_object_is_type(said, json_type_object))
		return false;
	transport = read_text(said, "transport", sizeof(file->transport) - 1, &wrong);
	if (!transport || (strcmp(transport, "tcp") && strcmp(transport, "rdma")) ||
	    !read_class_u(said, &file->class_u) ||
	    !json_object_object_get_ex(said, "hosts", &hosts) ||
	    !json_object_is_type(hosts, json_type_array) ||
	    json_object_array_length(hosts) < 2 || json_object_array_length(hosts) > DSM_MAX_HOSTS)
		return false;
	strcpy(file->transport, transport);
	file->nr = (unsigned int)json_object_array_length(hosts);
	for (i = 0; i < file->nr; i++)
		if (!read_row(json_object_array_get_idx(hosts, i), &file->row[i]))
			return false;
	return is_each_once(file);
}

/* ---- Both ---- */

struct differences {
	struct json_object *list;
	unsigned int more;
};

/* @host: NULL: of no host. */
static void add(struct differences *differences, const char *host, const char *key,
		const char *here, const char *there)
{
	struct json_object *one;
	char text[COMPARE_TEXT];

	if (json_object_array_length(differences->list) == COMPARE_MOST) {
		differences->more++;
		return;
	}
	one = json_object_new_object();
	if (host)
		snprintf(text, sizeof(text), "%.70s%s%s", host, key[0] ? "." : "", key);
	else
		snprintf(text, sizeof(text), "%s", key);
	add_text(one, "key", text);
	snprintf(text, sizeof(text), "%.*s%s", COMPARE_TEXT - 4, here, strlen(here) > COMPARE_TEXT - 4 ? "..." : "");
	add_text(one, "here", text);
	snprintf(text, sizeof(text), "%.*s%s", COMPARE_TEXT - 4, there, strlen(there) > COMPARE_TEXT - 4 ? "..." : "");
	add_text(one, "there", text);
	json_object_array_add(differences->list, one);
}

static void add_numbers(struct differences *differences, const char *host, const char *key,
			unsigned int here, unsigned int there)
{
	char text[2][12];

	snprintf(text[0], sizeof(text[0]), "%u", here);
	snprintf(text[1], sizeof(text[1]), "%u", there);
	add(differences, host, key, text[0], text[1]);
}

static const struct row *find_row(const struct file *file, const char *name)
{
	unsigned int i;

	for (i = 0; i < file->nr; i++)
		if (!strcmp(file->row[i].name, name))
			return &file->row[i];
	return NULL;
}

static bool has_name(const struct row *row, const char *name)
{
	unsigned int k;

	for (k = 0; k < row->nr_names && strcasecmp(row->names[k], name); k++)
		;
	return k < row->nr_names;
}

static bool has_names(const struct row *row, const struct row *names)
{
	unsigned int i;

	for (i = 0; i < names->nr_names && has_name(row, names->names[i]); i++)
		;
	return i == names->nr_names;
}

/* First those that the other one has not: the text may be cut. */
static void join(const struct row *row, const struct row *other, char text[2 * COMPARE_TEXT])
{
	size_t at = 0;
	unsigned int k, both;

	text[0] = 0;
	for (both = 0; both < 2; both++)
		for (k = 0; k < row->nr_names && at < 2 * COMPARE_TEXT; k++)
			if (has_name(other, row->names[k]) == both)
				at += (size_t)snprintf(text + at, 2 * COMPARE_TEXT - at, "%s%s", at ? " " : "",
						       row->names[k]);
}

static void compare_rows(struct differences *differences, const struct row *here, const struct row *there)
{
	char text[2][2 * COMPARE_TEXT];

	if (here->number != there->number)
		add_numbers(differences, here->name, "number", here->number, there->number);
	if (strcmp(here->address, there->address))
		add(differences, here->name, "address", here->address, there->address);
	if (here->port != there->port)
		add_numbers(differences, here->name, "port", here->port, there->port);
	if (!has_names(here, there) || !has_names(there, here)) {
		join(here, there, text[0]);
		join(there, here, text[1]);
		add(differences, here->name, "certificate_names", text[0], text[1]);
	}
}

static void compare_files(struct differences *differences, const struct file *here, const struct file *there)
{
	const struct row *other;
	unsigned int i;

	if (strcmp(here->transport, there->transport))
		add(differences, NULL, "transport", here->transport, there->transport);
	if (here->class_u != there->class_u)
		add(differences, NULL, "class_u", here->class_u ? "true" : "false",
		    there->class_u ? "true" : "false");
	for (i = 0; i < here->nr; i++) {
		other = find_row(there, here->row[i].name);
		if (other)
			compare_rows(differences, &here->row[i], other);
		else
			add(differences, here->row[i].name, "", here->row[i].address, "no such host");
	}
	for (i = 0; i < there->nr; i++)
		if (!find_row(here, there->row[i].name))
			add(differences, there->row[i].name, "", "no such host", there->row[i].address);
}

void compare_add(const struct host *host, struct json_object *said, struct json_object *one)
{
	struct differences differences = { .more = 0 };
	static struct file here, there;
	struct json_object *theirs;

	if (!json_object_object_get_ex(said, "file", &theirs)) {
		add_text(one, "file", "unsaid");
		return;
	}
	if (!read_theirs(theirs, &there)) {
		add_text(one, "file", "wrong");
		return;
	}
	take_own(host, &here);
	differences.list = json_object_new_array();
	compare_files(&differences, &here, &there);
	if (!json_object_array_length(differences.list)) {
		add_text(one, "file", "same");
		json_object_put(differences.list);
		return;
	}
	add_text(one, "file", "differs");
	json_object_object_add(one, "differences", differences.list);
	if (differences.more)
		json_object_object_add(one, "more", json_object_new_uint64(differences.more));
}
