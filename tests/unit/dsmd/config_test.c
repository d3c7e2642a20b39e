// SPDX-License-Identifier: GPL-2.0
/*
 * dsm.toml: one that is right, and each mistake, with what is said of it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "case.h"
#include "config.h"
#include "dice.h"

static const char right[] =
	"self = 'beta'\n"				/* line 1 */
	"transport = 'tcp'\n"
	"trusted_fabric = false\n"
	"[tls]\n"
	"ca = '/etc/xenuma/dsm/ca.pem'\n"		/* 5 */
	"certificate = '/etc/xenuma/dsm/host.pem'\n"
	"key = '/etc/xenuma/dsm/host.key'\n"
	"[limits]\n"
	"credits = 32\n"
	"question_ms = 250\n"				/* 10 */
	"[[host]]\n"
	"name = 'alpha'\n"
	"number = 0\n"
	"address = '192.0.2.1'\n"
	"port = 7100\n"					/* 15 */
	"certificate_names = ['alpha.example']\n"
	"[[host]]\n"
	"name = 'beta'\n"
	"number = 1\n"
	"address = '192.0.2.2'\n"			/* 20 */
	"port = 7100\n"
	"certificate_names = ['beta.example', 'b.example']\n";

static int parse(const char *text, struct dsm_config *config, char *said)
{
	memset(config, 0x55, sizeof(*config));
	return dsm_config_parse(text, strlen(text), "dsm.toml", "alpha", config,
				said);
}

static void good(const void *argument)
{
	struct dsm_transport_params params = { .credits = 1 };
	char said[DSM_CONFIG_TEXT], address[INET_ADDRSTRLEN];
	const struct sockaddr_in *four;
	static struct dsm_config config;

	(void)argument;
	CHECK(!parse(right, &config, said), "%s", said);
	CHECK(config.self == 1 && config.nr_hosts == 2 &&
	      config.transport == DSM_TRANSPORT_TCP && !config.trusted_fabric &&
	      !config.class_u, "who and how");
	CHECK(!strcmp(config.ca, "/etc/xenuma/dsm/ca.pem") &&
	      !strcmp(config.certificate, "/etc/xenuma/dsm/host.pem") &&
	      !strcmp(config.key, "/etc/xenuma/dsm/host.key"), "files");
	CHECK(config.credits == 32 && config.question_ms == 250 &&
	      config.queue == 1024 && config.strangers == 16 &&
	      config.opening_ms == 10000 && config.deadline_ms == 3000 &&
	      config.rekey_records == 1 << 23 && config.lend_percent == 50 &&
	      config.lend_guests == 32 && config.lend_dom0_percent == 25, "limits");

	dsm_config_transport(&config, &params);
	CHECK(params.self == 1 && params.nr_hosts == 2 && params.credits == 32 &&
	      params.question_ns == 250000000 && params.deadline_ns == 3000000000 &&
	      params.opening_ns == 10000000000 && params.queue == 1024 &&
	      params.strangers == 16 && params.rekey_records == 1 << 23, "numbers");
	CHECK(params.peer[0].used && !params.peer[1].used && !params.peer[2].used,
	      "peers");
	CHECK(!strcmp(params.peer[0].names[0], "alpha.example") &&
	      !params.peer[0].names[1], "its names");
	CHECK(!strcmp(params.names[0], "beta.example") &&
	      !strcmp(params.names[1], "b.example") && !params.names[2], "ours");
	four = (const struct sockaddr_in *)&params.peer[0].address;
	inet_ntop(AF_INET, &four->sin_addr, address, sizeof(address));
	CHECK(!strcmp(address, "192.0.2.1") && ntohs(four->sin_port) == 7100,
	      "%s", address);
	four = (const struct sockaddr_in *)&params.address;
	inet_ntop(AF_INET, &four->sin_addr, address, sizeof(address));
	CHECK(!strcmp(address, "192.0.2.2"), "%s", address);
}

/* A line of the right file is replaced, or more comes after it. */
static const struct mistake {
	const char *name;
	unsigned int line;
	const char *becomes;
	const char *says[4];	/* besides the file; the first: its line and key */
} mistakes[] = {
	{ "no TOML", 2, "transport = tcp", { "dsm.toml:2: this is not TOML: " } },
	{ "a key twice", 3, "transport = 'tcp'", { "dsm.toml:3: " } },
	{ "an unknown key", 3, "transprot = 'tcp'",
	  { "dsm.toml:3: transprot: ", "no such key", "transport, trusted_fabric" } },
	{ "an unknown key of a table", 9, "credit = 32",
	  { "dsm.toml:9: limits.credit: ", "no such key", "credits, queue" } },
	{ "this host, at the end", 22, "self = 'beta'",
	  { "dsm.toml:22: host.self: ", "no such key", "self stands before the first table" } },
	{ "trust in a table", 7, "trusted_fabric = true",
	  { "dsm.toml:7: tls.trusted_fabric: ", "trusted_fabric stands before the first table" } },
	{ "the transport in a table", 7, "transport = 'tcp'",
	  { "dsm.toml:7: tls.transport: ", "transport stands before the first table" } },
	{ "class U in a table", 9, "class_u = true",
	  { "dsm.toml:9: limits.class_u: ", "class_u stands before the first table" } },
	{ "class U that is a number", 3, "class_u = 1",
	  { "dsm.toml:3: class_u: ", "true or false" } },
	{ "an unknown table", 10, "[more]", { "dsm.toml:10: more: ", "no such key" } },
	{ "an unknown transport", 2, "transport = 'udp'",
	  { "dsm.toml:2: transport: ", "\"tcp\" or \"rdma\"" } },
	{ "a transport that is a number", 2, "transport = 1",
	  { "dsm.toml:2: transport: ", "\"tcp\" or \"rdma\"" } },
	{ "no transport", 2, "", { "transport: missing", "\"tcp\" or \"rdma\"" } },
	{ "RDMA on any wire", 2, "transport = 'rdma'",
	  { "dsm.toml:2: transport: ", "trusted_fabric = true" } },
	{ "trust that is a word", 3, "trusted_fabric = 'yes'",
	  { "dsm.toml:3: trusted_fabric: ", "true or false" } },
	{ "nobody's name", 1, "self = 'gamma'",
	  { "dsm.toml:1: self: ", "\"gamma\"", "alpha, beta" } },
	{ "a relative path", 5, "ca = 'ca.pem'",
	  { "dsm.toml:5: tls.ca: ", "absolute path" } },
	{ "no key", 7, "", { "dsm.toml:4: tls.key: missing" } },
	{ "an empty path", 6, "certificate = ''", { "dsm.toml:6: tls.certificate: " } },
	{ "a 0 in a path", 6, "certificate = \"/a\\u0000b\"",
	  { "dsm.toml:6: tls.certificate: " } },
	{ "a limit below", 9, "credits = 3", { "dsm.toml:9: limits.credits: ", "from 4 to 1024" } },
	{ "a limit above", 9, "credits = 1025",
	  { "dsm.toml:9: limits.credits: ", "from 4 to 1024" } },
	{ "a limit far above", 9, "credits = 65568",
	  { "dsm.toml:9: limits.credits: ", "from 4 to 1024" } },
	{ "a limit that is no whole number", 9, "credits = 32.0",
	  { "dsm.toml:9: limits.credits: ", "whole number" } },
	{ "a deadline before the question", 10, "question_ms = 3000",
	  { "limits.deadline_ms: ", "more than question_ms, here 3000, and is 3000" } },
	{ "a name instead of an address", 14, "address = 'alpha.example'",
	  { "dsm.toml:14: host.address: ", "in numbers" } },
	{ "any address", 14, "address = '0.0.0.0'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "a group's address", 14, "address = '224.0.0.1'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "everybody's address", 14, "address = '255.255.255.255'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "nobody's address", 14, "address = '0.1.2.3'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "any IPv6 address", 14, "address = '::'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "an IPv6 group's address", 14, "address = 'ff02::1'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "an address of a link", 14, "address = 'fe80::1'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "an IPv4 address in IPv6", 14, "address = '::ffff:192.0.2.1'",
	  { "dsm.toml:14: host.address: ", "others can reach" } },
	{ "a label of 64", 16, "certificate_names = ['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example']",
	  { "dsm.toml:16: host.certificate_names: ", "no DNS name" } },
	{ "a DEL in a path", 6, "certificate = \"/a\\u007fb\"",
	  { "dsm.toml:6: tls.certificate: " } },
	{ "another kind of address", 20, "address = '2001:db8::1'",
	  { "host.address: ", "all hosts have IPv4", "\"alpha\"" } },
	{ "port 0", 15, "port = 0", { "dsm.toml:15: host.port: ", "from 1 to 64512" } },
	{ "no port", 15, "", { "host.port: missing", "from 1 to 64512" } },
	{ "a port too many", 15, "port = 65536",
	  { "dsm.toml:15: host.port: ", "from 1 to 64512" } },
	{ "a port with too few after it", 15, "port = 64513",
	  { "dsm.toml:15: host.port: ", "from 1 to 64512", "1023 after it" } },
	{ "no certificate names", 16, "certificate_names = []",
	  { "dsm.toml:16: host.certificate_names: ", "1 to 8 DNS names" } },
	{ "nine certificate names", 16,
	  "certificate_names = ['a','b','c','d','e','f','g','h','i']",
	  { "dsm.toml:16: host.certificate_names: ", "1 to 8 DNS names" } },
	{ "a wildcard", 16, "certificate_names = ['*.example']",
	  { "dsm.toml:16: host.certificate_names: ", "\"*.example\"", "without wildcards" } },
	{ "a name with an empty label", 16, "certificate_names = ['a..example']",
	  { "dsm.toml:16: host.certificate_names: ", "no DNS name" } },
	{ "a name that ends with a hyphen", 16, "certificate_names = ['a-.example']",
	  { "dsm.toml:16: host.certificate_names: ", "no DNS name" } },
	{ "a certificate name of both", 22, "certificate_names = ['x', 'Alpha.Example']",
	  { "host.certificate_names: ", "host \"alpha\" has it, too" } },
	{ "a loopback among others", 20, "address = '127.0.0.1'",
	  { "host.address: ", "loopback", "\"alpha\" has none" } },
	{ "a name that ends with a dot", 16, "certificate_names = ['alpha.example.']",
	  { "dsm.toml:16: host.certificate_names: ", "no DNS name" } },
	{ "a name with a space", 12, "name = 'al pha'",
	  { "dsm.toml:12: host.name: ", "\"al pha\"", "letters, digits" } },
	{ "a name with a slash", 12, "name = 'al/pha'",
	  { "dsm.toml:12: host.name: ", "letters, digits" } },
	{ "a name beyond ASCII", 12, "name = 'älpha'",
	  { "dsm.toml:12: host.name: ", "letters, digits" } },
	{ "a name that begins with a dot", 12, "name = '.alpha'",
	  { "dsm.toml:12: host.name: ", "letters, digits" } },
	{ "a host twice", 18, "name = 'alpha'",
	  { "host.name: ", "host \"alpha\" has it, too" } },
	{ "a number twice", 19, "number = 0",
	  { "dsm.toml:17: host.number: ", "host \"alpha\" has it, too" } },
	{ "a place twice", 20, "address = '192.0.2.1'",
	  { "host.address: ", "host \"alpha\" has it, too" } },
	{ "a number that is too high", 19, "number = 16",
	  { "dsm.toml:19: host.number: ", "from 0 to 15" } },
	{ "a number that leaves one out", 19, "number = 2",
	  { "host.number: ", "0 to 1", "no host is 1" } },
	{ "a negative number", 19, "number = -1",
	  { "dsm.toml:19: host.number: ", "from 0 to 15" } },
};

static void mistake(const void *argument)
{
	const struct mistake *m = argument;
	static struct dsm_config config, before;
	char text[4096], said[DSM_CONFIG_TEXT];
	const char *line = right, *next;
	size_t length = 0;
	unsigned int i;
	int rc;

	for (i = 1; *line; i++, line = next) {
		next = strchr(line, '\n') + 1;
		if (i == m->line)
			length += (size_t)snprintf(text + length, sizeof(text) - length,
						   "%s\n", m->becomes);
		else
			length += (size_t)snprintf(text + length, sizeof(text) - length,
						   "%.*s", (int)(next - line), line);
	}
	memset(&before, 0x55, sizeof(before));
	rc = parse(text, &config, said);
	CHECK(rc == -EINVAL, "%d", rc);
	CHECK(!memcmp(&config, &before, sizeof(config)), "something was taken over");
	CHECK(!strncmp(said, "dsm.toml:", 9), "no file: %s", said);
	for (i = 0; i < 4 && m->says[i]; i++)
		CHECK(strstr(said, m->says[i]), "'%s' lacks '%s'", said, m->says[i]);
}

static void more(const void *argument)
{
	static char text[64 * 1024];
	static struct dsm_config config;
	char said[DSM_CONFIG_TEXT];
	size_t length;
	unsigned int i;

	(void)argument;
	/* This host's name, if the file does not say who it is. */
	CHECK(!parse(strchr(right, '\n') + 1, &config, said) && !config.self,
	      "%s", said);
	CHECK(dsm_config_parse(strchr(right, '\n') + 1, strlen(right) - 14, "f", "vm7", &config,
			       said) == -EINVAL && strstr(said, "\"vm7\"") &&
	      strstr(said, "host name") && strstr(said, "alpha, beta"), "%s", said);
	/* RDMA, with trust. */
	length = (size_t)snprintf(text, sizeof(text), "self = 'beta'\n"
				  "transport = 'rdma'\ntrusted_fabric = true\n%s",
				  strstr(right, "[tls]"));
	CHECK(!dsm_config_parse(text, length, "f", "alpha", &config, said) &&
	      config.transport == DSM_TRANSPORT_RDMA && config.trusted_fabric,
	      "%s", said);
	/* CPUs elsewhere may use devices. */
	length = (size_t)snprintf(text, sizeof(text), "class_u = true\n%s", right);
	CHECK(!dsm_config_parse(text, length, "f", "alpha", &config, said) && config.class_u,
	      "%s", said);
	/* 16 hosts are the most, with IPv6. */
	length = (size_t)snprintf(text, sizeof(text), "transport = 'tcp'\n%.*s",
				  (int)(strstr(right, "[[host]]") - strstr(right, "[tls]")),
				  strstr(right, "[tls]"));
	for (i = 0; i < 17; i++) {
		length += (size_t)snprintf(text + length, sizeof(text) - length,
			"[[host]]\nname = 'h%u'\nnumber = %u\n"
			"address = '2001:db8::%x'\nport = 7100\n"
			"certificate_names = ['h%u']\n", i, 15 - i % 16, i + 1, i);
		if (i == 15)
			CHECK(!dsm_config_parse(text, length, "f", "h3", &config, said) &&
			      config.nr_hosts == 16 && config.self == 12, "%s", said);
	}
	CHECK(dsm_config_parse(text, length, "f", "x", &config, said) == -EINVAL &&
	      !strcmp(said, "f:9: host: there are 2 to 16 tables, [[host]], and here 17"), "%s", said);
	/* Alone is no membership. */
	length = (size_t)(strstr(right, "[[host]]\nname = 'beta'") - right);
	CHECK(dsm_config_parse(right, length, "f", "x", &config, said) == -EINVAL &&
	      strstr(said, "2 to 16 tables, [[host]], and here 1"), "%s", said);
	length = (size_t)snprintf(text, sizeof(text), "host = 3\n%.*s",
				  (int)(strstr(right, "[[host]]") - right), right);
	CHECK(dsm_config_parse(text, length, "f", "x", &config, said) == -EINVAL &&
	      !strcmp(said, "f:1: host: there are 2 to 16 tables, [[host]]"), "%s", said);
	CHECK(dsm_config_parse("", 0, "f", "x", &config, said) == -EINVAL, "empty");
}

static void files(const void *argument)
{
	static struct dsm_config config;
	char name[] = "/tmp/dsm_config.XXXXXX", said[DSM_CONFIG_TEXT];
	int fd = mkstemp(name), i;

	(void)argument;
	CHECK(fd >= 0 && write(fd, right, sizeof(right) - 1) > 0, "a file");
	CHECK(!dsm_config_read(name, "x", &config, said), "%s", said);
	CHECK(config.self == 1, "self");
	for (i = 0; i < 2200; i++)
		CHECK(write(fd, "# thirty bytes of no meaning.\n", 30) == 30, "write");
	CHECK(dsm_config_read(name, "x", &config, said) == -E2BIG &&
	      strstr(said, name) && strstr(said, "65536"), "%s", said);
	close(fd);
	unlink(name);
	CHECK(dsm_config_read(name, "x", &config, said) == -ENOENT &&
	      strstr(said, name), "%s", said);
	CHECK(dsm_config_read("/", "x", &config, said) == -EISDIR, "%s", said);
}

/* Whatever the bytes are: an answer, and no more. */
static void fuzz(const void *argument)
{
	static struct dsm_config config;
	char text[sizeof(right)], said[DSM_CONFIG_TEXT];
	unsigned int i, n, accepted = 0;
	size_t size;

	(void)argument;
	dice_begin();
	for (i = 0; i < 20000; i++) {
		memcpy(text, right, sizeof(right));
		for (n = 1 + dice_below(3); n--;)
			text[dice_below(sizeof(right) - 1)] = (char)dice();
		size = dice_below(4) ? sizeof(right) - 1 :
		       dice_below(sizeof(right));
		if (!dsm_config_parse(text, size, "f", "alpha", &config, said)) {
			accepted++;
			CHECK(config.nr_hosts == 2 && config.self < 2 &&
			      config.credits >= 4 && config.credits <= 1024, "values");
		} else {
			CHECK(!strncmp(said, "f:", 2), "%s", said);
		}
	}
	printf("%u accepted\n", accepted);
	CHECK(accepted > 10 && accepted < 10000, "the dice are wrong");
}

#define NR(table)	(sizeof(table) / sizeof(table[0]))

int main(int argc, char **argv)
{
	static struct test_case cases[NR(mistakes) + 4] = {
		{ "a file that is right", good, NULL },
		{ "other files that are right, or not", more, NULL },
		{ "files", files, NULL },
		{ "fuzz", fuzz, NULL },
	};
	static char names[NR(mistakes)][80];
	size_t i;

	for (i = 0; i < NR(mistakes); i++) {
		snprintf(names[i], sizeof(names[i]), "a mistake: %s",
			 mistakes[i].name);
		cases[4 + i] = (struct test_case){ names[i], mistake, &mistakes[i] };
	}
	return run_cases(argc, argv, cases, NR(cases));
}
