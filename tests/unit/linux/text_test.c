// SPDX-License-Identifier: GPL-2.0
/*
 * Texts for the toolstack: whatever a program is called and however many kinds
 * of pages are stuck, the result is one line of at most 200 characters from
 * 0x20 to 0x7e.  docs/xenstore-paths.md promises that.
 */
#include "case.h"
#include "text.h"

#define MANY	(~0UL)

struct text_case {
	const char *name;
	struct elastic_residue residue;
	const char *text;
};

static const struct text_case texts[] = {
	{ "text: nothing was found", {},
	  "nothing in use was found; try again" },
	{ "text: pinned by nobody known", { .pinned = 3 }, "pinned: 3 pages" },
	{ "text: pinned", { .pinned = 12, .pid = 318, .comm = "pinner" },
	  "pinned: 12 pages, pid 318 (pinner)" },
	{ "text: a name in UTF-8",
	  { .pinned = 1, .pid = 7, .comm = "gr\xc3\xb6\xc3\x9f" "e" },
	  "pinned: 1 pages, pid 7 (gr????e)" },
	{ "text: a name in Latin-1", { .pinned = 1, .pid = 7, .comm = "\xe9t\xe9" },
	  "pinned: 1 pages, pid 7 (?t?)" },
	{ "text: a name with control characters",
	  { .pinned = 1, .pid = 7, .comm = "a\nb\033[2J\x7f" },
	  "pinned: 1 pages, pid 7 (a?b?[2J?)" },
	{ "text: a name of 15 bytes",
	  { .pinned = 1, .pid = 7, .comm = "abcdefghijklmno" },
	  "pinned: 1 pages, pid 7 (abcdefghijklmno)" },
	{ "text: a name that no byte ends",
	  { .pinned = 1, .pid = 7, .comm = { [0 ... 15] = 'x' } },
	  "pinned: 1 pages, pid 7 (xxxxxxxxxxxxxxx)" },
	{ "text: an owner whose pages have moved", { .pid = 7, .comm = "late", .busy = 2 },
	  "busy: 2 pages" },
	{ "text: locked and under writeback", { .locked = 1, .writeback = 16 },
	  "locked: 1 pages; under writeback: 16 pages" },
	{ "text: everything",
	  { 1, 2, 3, 4, 5, 6, 7, 9, "all" },
	  "pinned: 1 pages, pid 9 (all); locked: 2 pages; under writeback: 3 pages; unmovable: 5 pages; reserved huge: 6 pages; poisoned: 7 pages; busy: 4 pages" },
	{ "text: huge pages that are promised", { .reserved = 512 },
	  "reserved huge: 512 pages" },
};

static void one_text(const void *argument)
{
	const struct text_case *c = argument;
	char text[ELASTIC_TEXT_LEN];

	memset(text, '#', sizeof(text));
	elastic_residue_text(&c->residue, text);
	CHECK(!strcmp(text, c->text), "'%s'", text);
}

static void never_too_long(const void *argument)
{
	struct elastic_residue most = {
		MANY, MANY, MANY, MANY, MANY, MANY, MANY, 4194304, "abcdefghijklmno",
	};
	char text[ELASTIC_TEXT_LEN + 8];

	memset(text, '#', sizeof(text));
	elastic_residue_text(&most, text);
	CHECK(memchr(text, '\0', ELASTIC_TEXT_LEN), "no end within 201 bytes");
	CHECK(text[ELASTIC_TEXT_LEN] == '#', "a byte beyond the text was written");
}

static void every_byte(const void *argument)
{
	char text[2] = "";
	int byte;

	for (byte = 1; byte < 256; byte++) {
		text[0] = byte;
		elastic_text_clean(text);
		CHECK(text[0] == (byte >= 0x20 && byte <= 0x7e ? byte : '?'),
		      "%#x became %#x", byte, (unsigned char)text[0]);
		CHECK(!text[1], "the end moved");
	}
}

int main(int argc, char **argv)
{
	enum { TEXTS = sizeof(texts) / sizeof(texts[0]), MORE = 2 };
	static struct test_case cases[TEXTS + MORE];
	size_t i;

	for (i = 0; i < TEXTS; i++)
		cases[i] = (struct test_case){ texts[i].name, one_text, &texts[i] };
	cases[TEXTS] = (struct test_case){ "text: never longer than 200", never_too_long };
	cases[TEXTS + 1] = (struct test_case){ "text: every byte", every_byte };
	return run_cases(argc, argv, cases, TEXTS + MORE);
}
