// SPDX-License-Identifier: GPL-2.0
/*
 * dsmctl top: names of pages, and what happened between two answers.
 */
#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "symbols.h"
#include "top.h"

#define MAP	"0000000000000000 D __per_cpu_start\n"	\
		"0000000000001000 D hot_of_a_cpu\n"	\
		"ffffffff81000000 T _text\n"		\
		"ffffffff81000000 T startup_64\n"	\
		"ffffffff81002010 t long_function\n"	\
		"ffffffff81006000 T _etext\n"		\
		"ffffffff81008000 D jiffies\n"		\
		"ffffffff81008040 d tick_next\n"	\
		"ffffffff81008080 d tick_lock\n"	\
		"ffffffff810080c0 d tick_cpu\n"		\
		"ffffffff81008100 d tick_last\n"	\
		"ffffffff81009ff0 D spans\n"		\
		"ffffffff8100b000 D __init_begin\n"	\
		"ffffffff8100b008 d forgotten\n"	\
		"ffffffff8100d000 B __init_end\n"	\
		"ffffffff8100d000 B init_mm\n"		\
		"ffffffff8100f000 B _end\n"		\
		"ffffffffff600000 D vsyscall\n"

static const char *path;

static void write_file(const void *bytes, size_t size)
{
	static char name[] = "/tmp/top_test.XXXXXX";
	static char fresh[sizeof(name)];
	int fd;

	strcpy(fresh, name);
	fd = mkstemp(fresh);
	CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size, "a file");
	close(fd);
	path = fresh;
}

static struct dsm_symbols *read_bytes(const void *bytes, size_t size, char *text)
{
	struct dsm_symbols *s;

	write_file(bytes, size);
	s = dsm_symbols_read(path, text);
	unlink(path);
	return s;
}

static const struct named { uint64_t gfn; const char *name; } named[] = {
	{ 0, "?" }, { 1, "?" }, { 0xfff, "?" },
	{ 0x1000, "_text, startup_64" }, { 0x1001, "startup_64" },
	{ 0x1002, "startup_64, long_function" }, { 0x1003, "long_function" }, { 0x1005, "long_function" },
	{ 0x1006, "?" }, { 0x1007, "?" },
	{ 0x1008, "jiffies, tick_next, tick_lock and 2 more" },
	{ 0x1009, "tick_last, spans" }, { 0x100a, "spans" },
	{ 0x100b, "?" }, { 0x100c, "?" }, { 0x100d, "__init_end, init_mm" }, { 0x100e, "init_mm" },
	{ 0x100f, "?" }, { 0x40000, "?" }, { UINT64_MAX, "?" },
};

static void check_names(const struct dsm_symbols *s)
{
	char name[128];
	unsigned int i;

	for (i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		dsm_symbols_name(s, named[i].gfn, name, sizeof(name));
		CHECK(!strcmp(name, named[i].name), "0x%llx: %s, not %s", (unsigned long long)named[i].gfn, name,
		      named[i].name);
	}
	dsm_symbols_name(s, 0x1008, name, 12);
	CHECK(!strcmp(name, "jiffies, ti"), "%s", name);
	dsm_symbols_name(NULL, 0x1008, name, sizeof(name));
	CHECK(!strcmp(name, "?"), "without symbols");
}

static void system_map(const void *argument)
{
	static const struct { const char *map, *wrong; } bad[] = {
		{ "", "no _text" }, { "x\n", "neither" }, { "ffffffff81000000 T _text", "neither" },
		{ "ffffffff81000000 T _text\n", "no _text and _end" }, { "ffffffff81000000\n", "neither" },
		{ "ffffffff81000000  _text\n", "neither" }, { "fffffffffffffffff T a\n", "neither" },
		{ "c1000000 T _text\nc1001000 B _end\n", "no _text" }, { "ffffffff81000000 T \n", "neither" },
		{ "ffffffff81001000 T _text\nffffffff81000000 B _end\n", "no _text" },
	};
	char text[DSM_SYMBOLS_TEXT];
	struct dsm_symbols *s;
	unsigned int i;

	(void)argument;
	s = read_bytes(MAP, strlen(MAP), text);
	CHECK(s, "%s", text);
	check_names(s);
	dsm_symbols_free(s);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!read_bytes(bad[i].map, strlen(bad[i].map), text) && strstr(text, bad[i].wrong), "%s: %s",
		      bad[i].map, text);
	CHECK(!read_bytes(MAP "ffffffff8100e000 B a\0b\n", sizeof(MAP) + 22, text) && strstr(text, "neither"), "a zero");
	CHECK(!dsm_symbols_read("/does/not/exist", text) && strstr(text, "No such file"), "%s", text);
}

/* The same symbols in an ELF file: sections none, symbols, names. */
static struct elf {
	Elf64_Ehdr head;
	Elf64_Shdr section[3];
	Elf64_Sym symbol[24];
	char names[1024];
} elf;

static void make_elf(void)
{
	static char lines[] = MAP;
	char copy[sizeof(lines)], *line, *rest = NULL;
	size_t used = 1, nr = 1;

	memset(&elf, 0, sizeof(elf));
	memcpy(elf.head.e_ident, ELFMAG, SELFMAG);
	elf.head.e_ident[EI_CLASS] = ELFCLASS64;
	elf.head.e_machine = EM_X86_64;
	elf.head.e_shoff = offsetof(struct elf, section);
	elf.head.e_shentsize = sizeof(Elf64_Shdr);
	elf.head.e_shnum = 3;
	/* Those in the last two words are none: a section's, and one of another file. */
	elf.symbol[nr++] = (Elf64_Sym){ 1, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), 0, 1, 0xffffffff81008000, 0 };
	elf.symbol[nr++] = (Elf64_Sym){ 1, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, SHN_UNDEF, 0xffffffff81008000, 0 };
	memcpy(copy, lines, sizeof(lines));
	for (line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		elf.symbol[nr++] = (Elf64_Sym){
			(Elf64_Word)used, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, strtoull(line, NULL, 16), 8,
		};
		used += strlen(strcpy(elf.names + used, line + 19)) + 1;
	}
	elf.section[1] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_link = 2, .sh_offset = offsetof(struct elf, symbol),
				       .sh_size = nr * sizeof(Elf64_Sym) };
	elf.section[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct elf, names), .sh_size = used };
}

static void vmlinux(const void *argument)
{
	static const struct { size_t at, size; uint64_t value; } bad[] = {
#define FIELD(field, value)	{ offsetof(struct elf, field), sizeof(elf.field), value }
		FIELD(head.e_ident[EI_CLASS], ELFCLASS32), FIELD(head.e_machine, EM_386),
		FIELD(head.e_shentsize, 1), FIELD(head.e_shnum, 60000), FIELD(head.e_shnum, 1),
		FIELD(head.e_shoff, UINT64_MAX), FIELD(head.e_shoff, UINT64_MAX - 4), FIELD(section[1].sh_link, 3),
		FIELD(section[1].sh_offset, UINT64_MAX - 8), FIELD(section[1].sh_size, 1 << 20),
		FIELD(section[2].sh_offset, 1 << 20), FIELD(section[2].sh_size, 0), FIELD(section[2].sh_size, 12),
		FIELD(section[2].sh_size, UINT64_MAX), FIELD(symbol[3].st_name, 5000),
#undef FIELD
	};
	char text[DSM_SYMBOLS_TEXT];
	struct dsm_symbols *s;
	unsigned int i;

	(void)argument;
	make_elf();
	s = read_bytes(&elf, sizeof(elf), text);
	CHECK(s, "%s", text);
	check_names(s);
	dsm_symbols_free(s);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make_elf();
		memcpy((char *)&elf + bad[i].at, &bad[i].value, bad[i].size);
		CHECK(!read_bytes(&elf, sizeof(elf), text) && strstr(text, "neither"), "%u: %s", i, text);
	}
	make_elf();
	for (i = 0; i < sizeof(elf); i += 7) {
		s = read_bytes(&elf, i, text);
		dsm_symbols_free(s);
	}
}

#define ANSWER(ns, events, least, pages) \
	"{\"ns\": " #ns ", \"events\": " #events ", \"least\": " #least ", \"pages\": [" pages "]}"
#define PAGE(gfn, error, reads, writes, taken) "{\"gfn\": " #gfn ", \"error\": " #error ", \"reads\": " #reads \
	", \"writes\": " #writes ", \"taken\": " #taken ", \"accesses\": 0, \"hosts\": [\"beta\"]}"

static struct json_object *top_of(const char *before, const char *after, unsigned int most)
{
	struct json_object *then = before ? json_tokener_parse(before) : NULL, *now = json_tokener_parse(after), *top;

	top = dsm_top(then, now, NULL, most);
	json_object_put(then);
	json_object_put(now);
	return top;
}

static void check_top(struct json_object *top, const char *expected)
{
	const char *text = json_object_to_json_string_ext(top, JSON_C_TO_STRING_PLAIN);

	CHECK(!strcmp(text, expected), "%s\nnot\n%s", text, expected);
	json_object_put(top);
}

static void rows(const void *argument)
{
	static const char *const wrong[] = {
		"[]", "{}", ANSWER(-1, 2, 3, "{}"), ANSWER(1, 2, 3, "7"), ANSWER(1, "x", 3, ""),
		ANSWER(1, 2, 3, "{\"gfn\": 1, \"error\": 0, \"reads\": 1, \"writes\": 1, \"taken\": 1, \"accesses\": 1}"),
		ANSWER(1, 2, 3, "{\"gfn\": 1, \"error\": 0, \"reads\": 1, \"writes\": 1, \"taken\": 1, \"accesses\": 1, \"hosts\": 7}"),
		ANSWER(1, 2, 3, "{\"gfn\": 1, \"error\": 0, \"reads\": 1, \"writes\": 1, \"taken\": 1, \"hosts\": []}"),
		ANSWER(1, 2, 3, "{\"gfn\": 1, \"error\": 0, \"reads\": 1, \"writes\": 1, \"accesses\": 1, \"hosts\": []}"),
	};
	unsigned int i;

	(void)argument;
	check_top(top_of(NULL, ANSWER(2000000000, 9, 1, PAGE(4, 1, 1, 0, 1) ", " PAGE(2, 0, 1, 2, 3) ", " PAGE(3, 0, 0, 0, 2)), 2),
		  "{\"seconds\":2.0,\"events\":9,\"least\":1,\"pages\":["
		  "{\"gfn\":2,\"symbol\":\"?\",\"reads\":1,\"writes\":2,\"taken\":3,\"accesses\":0,\"error\":0,\"per_second\":3.0,\"hosts\":[\"beta\"]},"
		  "{\"gfn\":3,\"symbol\":\"?\",\"reads\":0,\"writes\":0,\"taken\":2,\"accesses\":0,\"error\":0,\"per_second\":1.0,\"hosts\":[\"beta\"]}]}");
	/* 2 had more before; 3 is new; 4 has lost its place and has one again; 5 was quiet. */
	check_top(top_of(ANSWER(1000000000, 20, 1, PAGE(2, 0, 5, 5, 5) ", " PAGE(4, 1, 3, 0, 0) ", " PAGE(5, 0, 1, 0, 0)),
			 ANSWER(3000000000, 40, 4, PAGE(2, 0, 5, 6, 6) ", " PAGE(3, 1, 4, 0, 0) ", " PAGE(4, 4, 6, 0, 0) ", "
				PAGE(5, 0, 1, 0, 0)), 8),
		  "{\"seconds\":2.0,\"events\":20,\"least\":4,\"pages\":["
		  "{\"gfn\":4,\"symbol\":\"?\",\"reads\":6,\"writes\":0,\"taken\":0,\"accesses\":0,\"error\":4,\"per_second\":3.0,\"hosts\":[\"beta\"]},"
		  "{\"gfn\":3,\"symbol\":\"?\",\"reads\":4,\"writes\":0,\"taken\":0,\"accesses\":0,\"error\":1,\"per_second\":2.0,\"hosts\":[\"beta\"]},"
		  "{\"gfn\":2,\"symbol\":\"?\",\"reads\":0,\"writes\":1,\"taken\":1,\"accesses\":0,\"error\":0,\"per_second\":1.0,\"hosts\":[\"beta\"]}]}");
	/* Accesses count as the others do. */
	check_top(top_of(NULL, ANSWER(1000000000, 7, 0, "{\"gfn\": 2, \"error\": 0, \"reads\": 0, \"writes\": 0, \"taken\": 0, "
				      "\"accesses\": 7, \"hosts\": []}"), 2),
		  "{\"seconds\":1.0,\"events\":7,\"least\":0,\"pages\":["
		  "{\"gfn\":2,\"symbol\":\"?\",\"reads\":0,\"writes\":0,\"taken\":0,\"accesses\":7,\"error\":0,\"per_second\":7.0,\"hosts\":[]}]}");
	CHECK(!top_of(ANSWER(5, 20, 1, ""), ANSWER(4, 21, 1, ""), 8), "less time");
	CHECK(!top_of(ANSWER(5, 20, 1, ""), ANSWER(6, 19, 1, ""), 8), "fewer events");
	CHECK(!top_of(ANSWER(5, 20, 1, PAGE(2, 0, 5, 5, 5)), ANSWER(6, 20, 1, PAGE(2, 0, 6, 4, 5)), 8), "fewer of a page");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(!top_of(NULL, wrong[i], 8), "%s", wrong[i]);
		CHECK(!top_of(wrong[i], ANSWER(6, 20, 1, ""), 8), "%s", wrong[i]);
	}
}

static const struct test_case cases[] = {
	{ "top: System.map", system_map, NULL },
	{ "top: vmlinux", vmlinux, NULL },
	{ "top: rows", rows, NULL },
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
