// SPDX-License-Identifier: GPL-2.0
/*
 * What dsmd is told of a VM: what is right, each mistake with its words, and
 * anything at all.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "description.h"
#include "dice.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))

#define NAME	"\"name\": \"web-1.x_y\""
#define UUID	"\"uuid\": \"01234567-89ab-cdef-0123-456789ABCDEF\""
#define NUMBER	"\"number\": 3"
#define DOMID	"\"domid\": 7"
#define VCPUS	"\"vcpus\": 4"
#define FRAMES	"\"frames\": 256"
#define TOKEN	"\"token\": \"alpha\""
#define RANGE_A	"{\"first\": 0, \"frames\": 1048576, \"host\": \"alpha\"}"
#define RANGE_B	"{\"first\": 4194304, \"frames\": 262144, \"host\": \"beta\"}"
#define RANGE_C(first)	"{\"first\": " #first ", \"frames\": 512, \"host\": \"beta\", \"attached\": false}"
#define ELASTIC(ranges)	"{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN ", \"ranges\": [" ranges "]}"
#define RANGES	"\"ranges\": [" RANGE_A ", " RANGE_B "]"
#define ALL	NAME ", " UUID ", " NUMBER ", " DOMID ", " VCPUS ", " FRAMES ", " TOKEN ", " RANGES
#define RIGHT	"{" ALL "}"

#define PLACE	"\"places\": [{\"first\": 1, \"vcpus\": 2, \"host\": \"beta\"}]"

static struct dsm_config config;

static void make_config(void)
{
	static const char *const names[] = { "alpha", "beta" };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(7000) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(65000) };

	memset(&config, 0, sizeof(config));
	config.nr_hosts = 2;
	for (unsigned int i = 0; i < 2; i++) {
		config.host[i].used = true;
		strcpy(config.host[i].name, names[i]);
	}
	memcpy(&config.host[0].address, &four, sizeof(four));
	memcpy(&config.host[1].address, &six, sizeof(six));
}

static int parse(const char *text, struct dsm_description *d, char *said)
{
	return dsm_description_parse(text, strlen(text), "vm.json", &config, d, said);
}

static void right(const void *argument)
{
	char said[DSM_DESCRIPTION_TEXT], uuid[37];
	struct dsm_transport_params transport = { 0 };
	struct dsm_engine_params engine = { 0 };
	struct dsm_description d;

	(void)argument;
	make_config();
	CHECK(!parse(RIGHT, &d, said), "%s", said);
	dsm_uuid_text(d.uuid, uuid);
	CHECK(!strcmp(d.name, "web-1.x_y") && !strcmp(uuid, "01234567-89ab-cdef-0123-456789abcdef"),
	      "%s %s", d.name, uuid);
	CHECK(d.number == 3 && d.domid == 7 && !d.build && d.nr_vcpus == 4 &&
	      d.frames == 256 && d.token_home == 0 && d.nr_ranges == 2, "numbers");
	CHECK(d.range[0].end == 1048576 && d.range[1].start == 4194304 &&
	      d.range[1].end == 4456448 && d.range[1].home == 1, "ranges");
	CHECK(d.lease_ns == 200000 && d.token_ns == 20000000 && d.pin_ns == 20000000 &&
	      d.keepalive_ms == 10000 && d.retry_ns, "what was left out");

	dsm_description_engine(&d, &config, &engine);
	CHECK(engine.nr_hosts == 2 && !strcmp(engine.name[1], "beta") &&
	      engine.range[1].home == 1 && engine.frames == 256 &&
	      engine.keepalive_ms == 10000, "the engine's");
	dsm_config_transport(&config, &transport);
	dsm_description_transport(&d, &transport);
	CHECK(!memcmp(transport.vm, d.uuid, 16) &&
	      ((struct sockaddr_in *)&transport.address)->sin_port == htons(7003) &&
	      ((struct sockaddr_in6 *)&transport.peer[1].address)->sin6_port == htons(65003),
	      "ports of the VM");

	CHECK(!parse("{" NAME "," UUID "," NUMBER "," VCPUS "," FRAMES "," TOKEN "," RANGES
		     ", \"build\": true, \"lease_us\": 0, \"token_ms\": 5, \"pin_ms\": 6,"
		     "\"keepalive_ms\": 0, \"prefetch\": 64, \"clear_hint\": true, \"class_u\": true, \"busy_wait_us\": 100000,"
		     "\"poll_us\": 20}", &d, said), "%s", said);
	dsm_description_engine(&d, &config, &engine);
	CHECK(engine.prefetch == 64 && engine.clear_hint && engine.class_u, "the engine's");
	CHECK(engine.merge_ns == 5000000000ull, "superpages");
	CHECK(d.prefetch == 64 && d.busy_wait_ns == 100000000 && d.poll_ns == 20000, "what is quick");
	CHECK(d.build && !d.domid && !d.lease_ns && d.token_ns == 5000000 &&
	      d.pin_ns == 6000000 && !d.keepalive_ms, "all keys");
}

static void elastic(const void *argument)
{
	char said[DSM_DESCRIPTION_TEXT];
	struct dsm_engine_params engine = { 0 };
	struct dsm_description d;

	(void)argument;
	make_config();
	CHECK(!parse(RIGHT, &d, said) && !d.elastic && d.vnode[0] == 0 && d.vnode[1] == 1 &&
	      !d.detached[1], "all is attached: %s", said);
	CHECK(!parse(ELASTIC(RANGE_A "," RANGE_C(4194304)), &d, said), "%s", said);
	dsm_description_engine(&d, &config, &engine);
	CHECK(d.elastic && !d.detached[0] && d.detached[1] && engine.detached[1] &&
	      !engine.detached[0], "one is not");
	CHECK(engine.lenders == 1 << 1, "beta lends: %x", engine.lenders);
	/* Processors may come to be there. */
	CHECK(!parse("{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN ", \"ranges\": [" RANGE_A ","
		     RANGE_C(4194304) "], \"places\": [{\"first\": 1, \"vcpus\": 1, \"host\": \"beta\", \"attached\": false}]}",
		     &d, said), "%s", said);
	dsm_description_engine(&d, &config, &engine);
	CHECK(!engine.lenders, "nobody only lends: %x", engine.lenders);
	CHECK(!parse(RIGHT, &d, said), "%s", said);
	dsm_description_engine(&d, &config, &engine);
	CHECK(!engine.lenders, "who knows: %x", engine.lenders);
	CHECK(!parse(ELASTIC("{\"first\": 0, \"frames\": 5, \"host\": \"alpha\", \"vnode\": 7},"
			     "{\"first\": 5, \"frames\": 5, \"host\": \"alpha\", \"vnode\": 7}"), &d, said) &&
	      d.vnode[0] == 7 && d.vnode[1] == 7, "two ranges at home: %s", said);
	/* Where it is built it may come later, too. */
	CHECK(!parse("{" NAME "," UUID "," NUMBER "," VCPUS "," FRAMES "," TOKEN ", \"build\": true, \"ranges\": ["
		     "{\"first\": 0, \"frames\": 512, \"host\": \"alpha\", \"attached\": false}]}", &d, said),
	      "%s", said);
}

/* What is no vnode's; its vnode would be that of the host's number, which may be another's. */
static void rings(const void *argument)
{
	static const char at_beta[] = "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES ", \"token\": \"beta\", \"ranges\": ["
		"{\"first\": 0, \"frames\": 512, \"host\": \"beta\", \"vnode\": 0},"
		"{\"first\": 512, \"frames\": 512, \"host\": \"alpha\", \"vnode\": 1, \"attached\": false},"
		"{\"first\": 1044472, \"frames\": 8, \"host\": \"beta\", \"rings\": true}]}";
	char said[DSM_DESCRIPTION_TEXT];
	struct dsm_engine_params engine = { 0 };
	struct dsm_description d;

	(void)argument;
	make_config();
	config.self = 1;
	CHECK(!parse(at_beta, &d, said), "%s", said);
	CHECK(d.nr_ranges == 3 && d.range[2].start == 0xfeff8 && d.range[2].end == 0xff000 && d.range[2].home == 1,
	      "where");
	CHECK(!d.rings[0] && !d.rings[1] && d.rings[2] && d.vnode[2] == DSM_VNODES && !d.detached[2], "rings");
	dsm_description_engine(&d, &config, &engine);
	CHECK(!engine.rings[0] && !engine.rings[1] && engine.rings[2], "the engine's");
	CHECK(dsm_description_limit(&d, 1) - dsm_description_limit(&d, 0) == 512 + 8, "memory of the home");
}

static void places(const void *argument)
{
	static const char two[] = "{" ALL ", \"slow\": 10, \"places\": ["
		"{\"first\": 1, \"vcpus\": 1, \"host\": \"beta\"},"
		"{\"first\": 2, \"vcpus\": 2, \"host\": \"beta\", \"attached\": false}]}";
	char said[DSM_DESCRIPTION_TEXT];
	struct dsm_engine_params engine = { 0 };
	struct dsm_description d;

	(void)argument;
	make_config();
	CHECK(!parse(RIGHT, &d, said) && !d.nr_places && d.slow == 1, "%s", said);
	dsm_description_engine(&d, &config, &engine);
	CHECK(!engine.where && dsm_description_slice(&d, 1) == 1 && dsm_description_slice(&d, 0) == 0, "none");
	CHECK(!parse("{" ALL ", " PLACE "}", &d, said) && d.nr_places == 1, "%s", said);
	dsm_description_engine(&d, &config, &engine);
	CHECK(engine.where == d.where && !d.where[0] && d.where[1] == 1 && d.where[2] == 1 &&
	      !d.where[3], "two at beta");
	CHECK(!parse(two, &d, said) && d.nr_places == 2 && d.slow == 10 && d.where[1] == 1 &&
	      !d.where[2] && !d.where[3] && !d.place[1].attached && d.place[1].nr == 2, "%s", said);
	/* At the other host it is built. */
	config.self = 1;
	CHECK(!parse("{" NAME "," UUID "," NUMBER "," VCPUS "," FRAMES "," TOKEN "," RANGES
		     ", \"build\": true, " PLACE "}", &d, said), "%s", said);
	/* The home is slice 0, whatever its number. */
	CHECK(!parse("{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES ", \"token\": \"beta\","
		     RANGES ", \"places\": [{\"first\": 3, \"vcpus\": 1, \"host\": \"alpha\"}]}", &d, said),
	      "%s", said);
	CHECK(dsm_description_slice(&d, 1) == 0 && dsm_description_slice(&d, 0) == 1 &&
	      dsm_description_slice(&d, 2) == 2 && dsm_description_host(&d, 0) == 1, "slices");
	CHECK(d.where[0] == 1 && d.where[3] == 0, "where");
}

static const struct mistake {
	const char *name, *text, *words;
} mistakes[] = {
	{ "rings of a vnode", ELASTIC("{\"first\": 0, \"frames\": 8, \"host\": \"alpha\", \"vnode\": 0, \"rings\": true}"),
	  "vm.json: ranges: \"rings\" without" },
	{ "rings that come and go", ELASTIC("{\"first\": 0, \"frames\": 512, \"host\": \"alpha\", \"rings\": true, \"attached\": false}"),
	  "vm.json: ranges: \"rings\" without" },
	{ "rings of another host", ELASTIC("{\"first\": 0, \"frames\": 8, \"host\": \"beta\", \"rings\": true}"),
	  "vm.json: ranges: \"rings\" without" },
	{ "rings that are a number", ELASTIC("{\"first\": 0, \"frames\": 8, \"host\": \"alpha\", \"rings\": 1}"),
	  "vm.json: rings: true or false" },
	{ "nothing", "", "vm.json: JSON: it ends before its end, at byte 0" },
	{ "no JSON", "name: web", "vm.json: JSON: " },
	{ "two objects", RIGHT RIGHT, "vm.json: JSON: " },
	{ "cut", "{" ALL, "vm.json: JSON: it ends before its end, at byte " },
	{ "deep", "{\"name\": [[[[[[[[[[[1]]]]]]]]]]]}", "vm.json: JSON: " },
	{ "a list", "[1]", "vm.json: the description: an object" },
	{ "an unknown key", "{" ALL ", \"colour\": 1}", "vm.json: colour: no such key in the description" },
	{ "no name", "{" UUID "}", "vm.json: name: missing in the description" },
	{ "a name that is a path", "{\"name\": \"a/b\"}", "vm.json: name: 1 to 63 letters" },
	{ "a name that is hidden", "{\"name\": \".a\"}", "vm.json: name: 1 to 63 letters" },
	{ "an empty name", "{\"name\": \"\"}", "vm.json: name: 1 to 63 letters" },
	{ "a name with a 0", "{\"name\": \"a\\u0000b\"}", "vm.json: name: 1 to 63 letters" },
	{ "a name that is a number", "{\"name\": 7}", "vm.json: name: 1 to 63 letters" },
	{ "a long name", "{\"name\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
	  "vm.json: name: 1 to 63 letters" },
	{ "a UUID too short", "{" NAME ", \"uuid\": \"01234567-89ab-cdef-0123-456789abcde\"}", "vm.json: uuid: a UUID" },
	{ "a UUID of letters", "{" NAME ", \"uuid\": \"01234567-89ab-cdef-0123-456789abcdeg\"}", "vm.json: uuid: a UUID" },
	{ "a UUID without dashes", "{" NAME ", \"uuid\": \"0123456789abcdef0123456789abcdef0000\"}", "vm.json: uuid: a UUID" },
	{ "number 0", "{" NAME "," UUID ", \"number\": 0}", "vm.json: number: a number, 1 to 1023" },
	{ "number 1024", "{" NAME "," UUID ", \"number\": 1024}", "vm.json: number: a number, 1 to 1023" },
	{ "a number below 0", "{" NAME "," UUID ", \"number\": -1}", "vm.json: number: a number, 1 to 1023" },
	{ "a number of 2^64 + 3", "{" NAME "," UUID ", \"number\": 18446744073709551619}", "vm.json: JSON: number" },
	{ "a number with a point", "{" NAME "," UUID ", \"number\": 3.0}", "vm.json: number: a number" },
	{ "a port above all", "{" NAME "," UUID ", \"number\": 536," DOMID "," VCPUS "," FRAMES "," TOKEN "," RANGES "}",
	  "vm.json: number: so small that its sum with the port of beta" },
	{ "no domain", "{" NAME "," UUID "," NUMBER "," VCPUS "," FRAMES "," TOKEN "," RANGES "}",
	  "vm.json: domid: needed if" },
	{ "two domains", "{" ALL ", \"build\": true}", "vm.json: domid: needed if" },
	{ "build as a word", "{" NAME "," UUID "," NUMBER ", \"build\": \"yes\"}", "vm.json: build: true or false" },
	{ "dom0", "{" NAME "," UUID "," NUMBER ", \"domid\": 0}", "vm.json: domid: a number, 1 to 32751" },
	{ "no vCPUs", "{" NAME "," UUID "," NUMBER "," DOMID ", \"vcpus\": 0}", "vm.json: vcpus: a number, 1 to 512" },
	{ "a token nowhere", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES ", \"token\": \"gamma\"}",
	  "vm.json: token: the name of a host" },
	{ "no ranges", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN ", \"ranges\": []}",
	  "vm.json: ranges: a list of 1 to 16" },
	{ "a range of no frames", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN
	  ", \"ranges\": [{\"first\": 0, \"frames\": 0, \"host\": \"alpha\"}]}", "vm.json: frames: a number, 1 to" },
	{ "a range of nobody", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN
	  ", \"ranges\": [{\"first\": 0, \"frames\": 1, \"host\": 1}]}", "vm.json: host: the name of a host" },
	{ "a range with more", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN
	  ", \"ranges\": [{\"first\": 0, \"frames\": 1, \"host\": \"beta\", \"x\": 1}]}", "vm.json: x: no such key in a range" },
	{ "ranges in another order", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN
	  ", \"ranges\": [" RANGE_B "," RANGE_A "]}", "vm.json: ranges: sorted" },
	{ "ranges that overlap", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN
	  ", \"ranges\": [" RANGE_A "," RANGE_A "]}", "vm.json: ranges: sorted" },
	{ "a vnode of 64", ELASTIC("{\"first\": 0, \"frames\": 512, \"host\": \"alpha\", \"vnode\": 64}"),
	  "vm.json: vnode: a number, 0 to 63" },
	{ "attached as a word", ELASTIC("{\"first\": 0, \"frames\": 512, \"host\": \"beta\", \"attached\": \"no\"}"),
	  "vm.json: attached: true or false" },
	{ "detached, and no 2 MiB", ELASTIC("{\"first\": 512, \"frames\": 511, \"host\": \"beta\", \"attached\": false}"),
	  "vm.json: ranges: \"first\" and \"frames\" are multiples of 512" },
	{ "detached, and not from 2 MiB on", ELASTIC("{\"first\": 1, \"frames\": 512, \"host\": \"beta\", \"attached\": false}"),
	  "vm.json: ranges: \"first\" and \"frames\" are multiples of 512" },
	{ "a detached vnode of two ranges", ELASTIC(RANGE_C(0) "," RANGE_C(512)),
	  "vm.json: ranges: vnode 1 has one range if \"attached\" is false" },
	{ "a vnode of two hosts", ELASTIC("{\"first\": 0, \"frames\": 512, \"host\": \"alpha\", \"vnode\": 1}," RANGE_B),
	  "vm.json: ranges: vnode 1 has one host" },
	{ "a domain without its memory", ELASTIC("{\"first\": 0, \"frames\": 512, \"host\": \"alpha\", \"attached\": false}"),
	  "vm.json: ranges: vnode 0 has its memory here" },
	{ "a domain elsewhere than the token", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES ", \"token\": \"beta\", \"ranges\": ["
	  RANGE_A "," RANGE_C(4194304) "]}", "vm.json: token: the host of the domain" },
	{ "no places", "{" ALL ", \"places\": []}", "vm.json: places: a list of 1 to 64" },
	{ "a place that is none", "{" ALL ", \"places\": [1]}", "vm.json: a place: an object" },
	{ "a place with more", "{" ALL ", \"places\": [{\"first\": 1, \"vcpus\": 1, \"host\": \"beta\", \"x\": 1}]}",
	  "vm.json: x: no such key in a place" },
	{ "a place of vCPU 0", "{" ALL ", \"places\": [{\"first\": 0, \"vcpus\": 1, \"host\": \"beta\"}]}",
	  "vm.json: first: a number, 1 to 511" },
	{ "a place of no vCPU", "{" ALL ", \"places\": [{\"first\": 1, \"vcpus\": 0, \"host\": \"beta\"}]}",
	  "vm.json: vcpus: a number, 1 to 511" },
	{ "a place of more vCPUs than there are",
	  "{" ALL ", \"places\": [{\"first\": 1, \"vcpus\": 4, \"host\": \"beta\"}]}", "vm.json: places: vCPUs below 4" },
	{ "a place at home", "{" ALL ", \"places\": [{\"first\": 1, \"vcpus\": 1, \"host\": \"alpha\"}]}",
	  "vm.json: places: at other hosts" },
	{ "places that overlap", "{" ALL ", \"places\": [{\"first\": 1, \"vcpus\": 2, \"host\": \"beta\"},"
	  "{\"first\": 2, \"vcpus\": 1, \"host\": \"beta\"}]}", "vm.json: places: sorted" },
	{ "places of a domain that is built at home", "{" NAME "," UUID "," NUMBER "," VCPUS "," FRAMES "," TOKEN ","
	  RANGES ", \"build\": true, " PLACE "}", "vm.json: places: the domain of the host of \"token\" is there" },
	{ "places from the start, and ranges later", "{" NAME "," UUID "," NUMBER "," DOMID "," VCPUS "," FRAMES "," TOKEN
	  ", \"ranges\": [" RANGE_A "," RANGE_C(4194304) "], " PLACE "}", "vm.json: places: \"attached\" is false" },
	{ "a slow clock without places", "{" ALL ", \"slow\": 10}", "vm.json: slow: there have to be \"places\"" },
	{ "a clock that is too slow", "{" ALL ", \"slow\": 101, " PLACE "}", "vm.json: slow: a number, 1 to 100" },
	{ "a lease of two seconds", "{" ALL ", \"lease_us\": 2000000}", "vm.json: lease_us: a number, 0 to 1000000" },
	{ "a hint that is no flag", "{" ALL ", \"clear_hint\": 1}", "vm.json: clear_hint: true or false" },
	{ "too long a window", "{" ALL ", \"prefetch\": 65}", "vm.json: prefetch: a number, 0 to 64" },
	{ "too long a look", "{" ALL ", \"poll_us\": 100001}", "vm.json: poll_us: a number, 0 to 100000" },
	{ "too long a wait", "{" ALL ", \"busy_wait_us\": -1}", "vm.json: busy_wait_us: a number" },
	{ "no time for a token", "{" ALL ", \"token_ms\": 0}", "vm.json: token_ms: a number, 1 to" },
};

static void wrong(const void *argument)
{
	const struct mistake *m = argument;
	struct dsm_description d = { .number = 99 };
	char said[DSM_DESCRIPTION_TEXT];
	int rc;

	make_config();
	rc = parse(m->text, &d, said);
	CHECK(rc == -EINVAL, "%d", rc);
	CHECK(!strncmp(said, m->words, strlen(m->words)), "'%s', want '%s'", said, m->words);
	CHECK(d.number == 99, "nothing is taken over");
}

static void files(const void *argument)
{
	static char large[DSM_DESCRIPTION_BYTES + 2];
	char path[] = "/tmp/description_test.XXXXXX", said[DSM_DESCRIPTION_TEXT];
	struct dsm_description d;
	int fd = mkstemp(path);

	(void)argument;
	make_config();
	CHECK(fd >= 0 && write(fd, RIGHT, strlen(RIGHT)) == (ssize_t)strlen(RIGHT), "a file");
	CHECK(!dsm_description_read(path, &config, &d, said) && d.number == 3, "%s", said);
	memset(large, ' ', sizeof(large));
	CHECK(pwrite(fd, large, sizeof(large), 0) == (ssize_t)sizeof(large), "a large one");
	CHECK(dsm_description_read(path, &config, &d, said) == -E2BIG &&
	      strstr(said, "more than 65536 bytes"), "%s", said);
	close(fd);
	unlink(path);
	CHECK(dsm_description_read(path, &config, &d, said) == -ENOENT &&
	      strstr(said, "No such file"), "%s", said);
	CHECK(dsm_description_read("/", &config, &d, said) == -EISDIR, "%s", said);
}

/* Any bytes are refused with words, or they are right. */
static void fuzz(const void *argument)
{
	char text[sizeof(RIGHT) + 64], said[DSM_DESCRIPTION_TEXT];
	unsigned int i, k, good = 0;

	(void)argument;
	dice_begin();
	make_config();
	for (i = 0; i < 20000; i++) {
		struct dsm_description d;
		size_t size = sizeof(RIGHT) - 1;
		int rc;

		memcpy(text, RIGHT, size);
		for (k = dice_below(4); k; k--) {
			size_t at = dice_below((uint32_t)size);

			switch (dice_below(3)) {
			case 0:
				text[at] = (char)dice_below(256);
				break;
			case 1:
				memmove(text + at, text + at + 1, size - at - 1);
				size--;
				break;
			default:
				memmove(text + at + 1, text + at, size - at);
				text[at] = "0{}[]\",:-"[dice_below(9)];
				size++;
			}
		}
		rc = dsm_description_parse(text, size, "f", &config, &d, said);
		CHECK(!rc || (rc == -EINVAL && said[0]), "%d", rc);
		if (rc)
			continue;
		good++;
		CHECK(d.number && d.number < DSM_VM_NUMBERS && d.nr_ranges &&
		      d.nr_ranges <= DSM_DESCRIPTION_RANGES && d.nr_vcpus &&
		      d.token_home < 2 && d.name[0] && !strchr(d.name, '/'), "in range");
	}
	CHECK(good > 1000, "%u were right", good);
}

int main(int argc, char **argv)
{
	static struct test_case cases[NR(mistakes) + 6] = {
		{ "description: right", right, NULL },
		{ "description: files", files, NULL },
		{ "description: fuzz", fuzz, NULL },
		{ "description: memory that comes later", elastic, NULL },
		{ "description: places of vCPUs", places, NULL },
		{ "description: rings", rings, NULL },
	};
	static char names[NR(mistakes)][96];
	size_t i;

	for (i = 0; i < NR(mistakes); i++) {
		snprintf(names[i], sizeof(names[i]), "a wrong description: %s", mistakes[i].name);
		cases[6 + i] = (struct test_case){ names[i], wrong, &mistakes[i] };
	}
	return run_cases(argc, argv, cases, NR(cases));
}
