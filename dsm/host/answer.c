// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of JSON: what is said, and what others say.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* Those of docs/dsm-control.md, and "number": a VM's number is taken there. */
static const char *const words[] = {
	"unknown-host", "own-host", "unreachable", "no-dsmd-there", "xen-version",
	"cpu", "page-size", "sizes", "memory-there", "memory-here", "name-taken",
	"not-possible", "in-use", "busy", "unknown-vm", "version", "number",
	"cpus-there", "tsc", "places", "vcpu-up", "not-ready", "one-host",
	"vcpu-info", "internal",
};

static bool is_word(const char *word, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == size && !memcmp(words[i], word, size))
			return true;
	return false;
}

/* As one line of printable ASCII. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

int answer_error(struct answer *answer, const char *word, const char *format, ...)
{
	va_list list;

	if (answer->word[0])
		return -1;
	snprintf(answer->word, sizeof(answer->word), "%s", word);
	va_start(list, format);
	vsnprintf(answer->text, sizeof(answer->text), format, list);
	va_end(list);
	make_printable(answer->text);
	json_object_put(answer->more);
	answer->more = NULL;
	return -1;
}

int answer_words(struct answer *answer, const char *text)
{
	size_t size = strcspn(text, " ");
	char word[HOST_WORD];

	if (size >= sizeof(word) || !text[size] || !text[size + 1] || !is_word(text, size))
		return answer_error(answer, "internal", "%s", text[0] ? text : "no reason was given");
	memcpy(word, text, size);
	word[size] = 0;
	return answer_error(answer, word, "%s", text + size + 1);
}

int answer_pass(struct answer *answer, const struct answer *reply)
{
	/* It is a word between hosts. */
	bool between = !strcmp(reply->word, "number");

	return answer_error(answer, between ? "internal" : reply->word, "%s", reply->text);
}

void answer_add(struct answer *answer, const char *key, struct json_object *value)
{
	if (!answer->more)
		answer->more = json_object_new_object();
	json_object_object_add(answer->more, key, value);
}

char *answer_line(const struct answer *answer)
{
	struct json_object *all = json_object_new_object();
	char *line = NULL;

	json_object_object_add(all, "version", json_object_new_int(HOST_VERSION));
	json_object_object_add(all, "ok", json_object_new_boolean(!answer->word[0]));
	if (answer->word[0]) {
		json_object_object_add(all, "error", json_object_new_string(answer->word));
		json_object_object_add(all, "text", json_object_new_string(answer->text));
	} else if (answer->more) {
		json_object_object_foreach(answer->more, key, value)
			json_object_object_add(all, key, json_object_get(value));
	}
	if (asprintf(&line, "%s\n", json_object_to_json_string_ext(all,
			JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)) < 0)
		line = NULL;
	json_object_put(all);
	return line;
}

void answer_free(struct answer *answer)
{
	json_object_put(answer->more);
	memset(answer, 0, sizeof(*answer));
}

struct json_object *read_line_json(const char *line, size_t size, struct answer *answer)
{
	struct json_tokener *tokener = json_tokener_new_ex(8);
	struct json_object *all = NULL;

	if (!tokener) {
		answer_error(answer, "internal", "no memory");
		return NULL;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	if (!memchr(line, 0, size))
		all = json_tokener_parse_ex(tokener, line, (int)size + 1);
	if (!all || !json_object_is_type(all, json_type_object)) {
		answer_error(answer, "internal", "the request is no JSON object");
		json_object_put(all);
		all = NULL;
	}
	json_tokener_free(tokener);
	return all;
}

int read_number(struct json_object *from, const char *key, uint64_t least,
		uint64_t most, uint64_t *number, struct answer *answer)
{
	struct json_object *value;

	if (!json_object_object_get_ex(from, key, &value) ||
	    !json_object_is_type(value, json_type_int) ||
	    json_object_get_int64(value) < 0 ||
	    json_object_get_uint64(value) < least || json_object_get_uint64(value) > most)
		return answer_error(answer, "internal", "%s: want a number, %llu to %llu", key,
				    (unsigned long long)least, (unsigned long long)most);
	*number = json_object_get_uint64(value);
	return 0;
}

const char *read_text(struct json_object *from, const char *key, size_t most,
		      struct answer *answer)
{
	struct json_object *value;
	const char *text;
	size_t i, size;

	if (json_object_object_get_ex(from, key, &value) &&
	    json_object_is_type(value, json_type_string)) {
		text = json_object_get_string(value);
		size = (size_t)json_object_get_string_len(value);
		for (i = 0; i < size && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f; i++)
			;
		if (size && size <= most && i == size)
			return text;
	}
	answer_error(answer, "internal", "%s: want a text of 1 to %zu bytes", key, most);
	return NULL;
}

int read_uuid(struct json_object *from, uint8_t uuid[16], char text[37],
	      struct answer *answer)
{
	const char *read = read_text(from, "uuid", 36, answer);

	if (!read)
		return -1;
	if (!dsm_uuid_read(read, uuid))
		return answer_error(answer, "internal", "uuid: want 01234567-89ab-cdef-0123-456789abcdef");
	dsm_uuid_text(uuid, text);
	return 0;
}

/* Is it a reply at all? */
static bool understand(struct answer *answer, struct json_object *all)
{
	struct json_object *ok, *version, *error, *text;

	if (!json_object_object_get_ex(all, "version", &version) ||
	    !json_object_is_type(version, json_type_int) ||
	    json_object_get_int64(version) != HOST_VERSION ||
	    !json_object_object_get_ex(all, "ok", &ok) ||
	    !json_object_is_type(ok, json_type_boolean))
		return false;
	if (json_object_get_boolean(ok)) {
		answer->more = json_object_get(all);
		return true;
	}
	if (!json_object_object_get_ex(all, "error", &error) ||
	    !json_object_is_type(error, json_type_string) ||
	    !is_word(json_object_get_string(error), strlen(json_object_get_string(error))) ||
	    !json_object_object_get_ex(all, "text", &text) ||
	    !json_object_is_type(text, json_type_string) || !json_object_get_string_len(text))
		return false;
	answer_error(answer, json_object_get_string(error), "%s", json_object_get_string(text));
	return true;
}

int answer_read(struct answer *answer, const char *line, const char *host)
{
	struct answer unread = { 0 };
	struct json_object *all = read_line_json(line, strlen(line), &unread);
	bool good = all && understand(answer, all);

	json_object_put(all);
	if (!good)
		answer_error(answer, "internal", "host %s: what it answers is no reply of version %d",
			     host, HOST_VERSION);
	return answer->word[0] ? -1 : 0;
}
