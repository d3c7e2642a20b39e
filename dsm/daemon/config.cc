// SPDX-License-Identifier: GPL-2.0
/*
 * From TOML to struct dsm_config.  toml++ says where each value is; everything
 * else is decided here: a key that nobody knows is a mistake, never skipped.
 */
#include "config.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#define TOML_HEADER_ONLY 0
#include <toml++/toml.hpp>

namespace {

struct Mistake {
	unsigned int line;
	std::string text;
};

[[noreturn]] void mistake(const toml::node &at, const std::string &key,
			  const std::string &allowed)
{
	throw Mistake{ unsigned(at.source().begin.line), key + ": " + allowed };
}

std::string list(const std::vector<std::string> &words)
{
	std::string text;

	for (const std::string &word : words)
		text += (text.empty() ? "" : ", ") + word;
	return text;
}

/* The file's own: in TOML one that stands at its end is the last table's. */
const std::vector<std::string> BEFORE_TABLES = { "self", "transport", "trusted_fabric", "class_u" };

bool is_in(const std::string &word, const std::vector<std::string> &words)
{
	return std::find(words.begin(), words.end(), word) != words.end();
}

/* One table of the file, of which every key has to be known. */
class Table {
public:
	Table(const toml::table &of, std::string called,
	      std::vector<std::string> known)
		: table(of), name(std::move(called))
	{
		for (const auto &[key, node] : table) {
			std::string word(key.str());
			if (!is_in(word, known))
				throw Mistake{ unsigned(key.source().begin.line),
					path(word) + ": no such key; there are " + list(known) +
					(is_in(word, BEFORE_TABLES) ? "; " + word + " stands before the first table" : "") };
		}
	}

	const toml::node *find(const char *key) const { return table.get(key); }

	const toml::node &need(const char *key, const char *what) const
	{
		const toml::node *node = find(key);

		if (!node)
			mistake(table, path(key), std::string("missing; it is ") + what);
		return *node;
	}

	std::string path(const std::string &key) const
	{
		return name.empty() ? key : name + "." + key;
	}

	/* A string of 1 to limit - 1 bytes, none of them a 0 or a control. */
	std::string text(const char *key, const char *what, size_t limit) const
	{
		return text_of(need(key, what), path(key), what, limit);
	}

	static std::string text_of(const toml::node &node, const std::string &key,
				   const char *what, size_t limit)
	{
		const auto *value = node.as_string();

		if (!value)
			mistake(node, key, std::string("it is a string, ") + what);
		const std::string &text = value->get();
		if (text.empty() || text.size() >= limit ||
		    std::any_of(text.begin(), text.end(), [](unsigned char c) {
			    return c < ' ' || c == 0x7f;
		    }))
			mistake(node, key, std::string("it is ") + what + ", 1 to " +
				std::to_string(limit - 1) + " bytes");
		return text;
	}

	int64_t number(const char *key, int64_t least, int64_t most, const char *why = "") const
	{
		std::string what = "a whole number from " + std::to_string(least) +
				   " to " + std::to_string(most) + why;
		const toml::node &node = need(key, what.c_str());
		const auto *value = node.as_integer();

		if (!value || value->get() < least || value->get() > most)
			mistake(node, path(key), "it is " + what);
		return value->get();
	}

	int64_t number_or(const char *key, int64_t otherwise, int64_t least,
			  int64_t most) const
	{
		return find(key) ? number(key, least, most) : otherwise;
	}

	bool flag(const char *key) const
	{
		const toml::node *node = find(key);

		if (!node)
			return false;
		if (!node->is_boolean())
			mistake(*node, path(key), "it is true or false");
		return node->as_boolean()->get();
	}

	const toml::table &table;
	std::string name;
};

template <size_t SIZE>
void copy(char (&to)[SIZE], const std::string &text)
{
	text.copy(to, SIZE - 1);
	to[std::min(text.size(), SIZE - 1)] = 0;
}

/* Letters, digits and inner hyphens, in labels of 1 to 63; no wildcard. */
bool is_dns_name(const std::string &name)
{
	size_t label = 0;

	for (size_t i = 0; i <= name.size(); i++) {
		char c = i < name.size() ? name[i] : '.';
		if (c == '.') {
			if (!label || label > 63 || name[i - 1] == '-')
				return false;
			label = 0;
		} else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			   (c >= '0' && c <= '9') || (c == '-' && label)) {
			label++;
		} else {
			return false;
		}
	}
	return true;
}

/* What host= of xl.cfg(5) takes. */
bool is_host_name(const std::string &name)
{
	return std::all_of(name.begin(), name.end(), [&](const char &c) {
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		       (&c != &name[0] && std::strchr("-_.", c));
	});
}

std::string path_of(const Table &table, const char *key)
{
	const char *what = "the absolute path of a PEM file";
	std::string path = table.text(key, what, DSM_CONFIG_PATH);

	if (path[0] != '/')
		mistake(table.need(key, what), table.path(key),
			std::string("it is ") + what);
	return path;
}

void read_tls(const toml::node &node, struct dsm_config &config)
{
	if (!node.is_table())
		mistake(node, "tls", "it is a table, [tls]");
	Table tls(*node.as_table(), "tls", { "ca", "certificate", "key" });

	copy(config.ca, path_of(tls, "ca"));
	copy(config.certificate, path_of(tls, "certificate"));
	copy(config.key, path_of(tls, "key"));
}

void read_limits(const toml::table &file, struct dsm_config &config)
{
	static const toml::table none;
	const toml::node *node = file.get("limits");

	if (node && !node->is_table())
		mistake(*node, "limits", "it is a table, [limits]");
	Table limits(node ? *node->as_table() : none, "limits",
		     { "credits", "queue", "strangers", "opening_ms",
		       "question_ms", "deadline_ms", "rekey_records", "lend_percent", "lend_guests",
		       "lend_dom0_percent",
		       "clock_drift_ppm", "clock_error_us" });

	config.credits = uint16_t(limits.number_or("credits", 64,
				  DSM_CREDITS_LEAST, DSM_CREDITS_MOST));
	config.queue = uint16_t(limits.number_or("queue", 1024, 1, DSM_QUEUE_MOST));
	config.strangers = uint16_t(limits.number_or("strangers", 16, 1,
				    DSM_STRANGERS_MOST));
	config.opening_ms = uint32_t(limits.number_or("opening_ms", 10000, 10, 600000));
	config.question_ms = uint32_t(limits.number_or("question_ms", 500, 10, 600000));
	config.deadline_ms = uint32_t(limits.number_or("deadline_ms", 3000, 10, 600000));
	config.lend_percent = uint8_t(limits.number_or("lend_percent", 50, 0, 100));
	config.lend_dom0_percent = uint8_t(limits.number_or("lend_dom0_percent", 25, 1, 100));
	config.lend_guests = uint16_t(limits.number_or("lend_guests", 32, 0, 1022));
	config.rekey_records = uint32_t(limits.number_or("rekey_records", 1 << 23,
					1, 1 << 24));
	config.clock_drift_ppm = uint32_t(limits.number_or("clock_drift_ppm", 200,
					  1, 10000));
	config.clock_error_us = uint32_t(limits.number_or("clock_error_us", 1000,
					 1, 1000000));
	if (config.deadline_ms <= config.question_ms)
		mistake(node ? *node : file, "limits.deadline_ms",
			"it is more than question_ms, here " +
			std::to_string(config.question_ms) + ", and is " +
			std::to_string(config.deadline_ms));
}

void read_address(const Table &host, struct sockaddr_storage &address)
{
	const char *what = "an IPv4 or IPv6 address in numbers";
	std::string text = host.text("address", what, INET6_ADDRSTRLEN);
	auto port = htons(uint16_t(host.number("port", 1, DSM_CONFIG_PORT_MOST,
					       ": the 1023 after it are those of VMs")));
	auto *six = reinterpret_cast<struct sockaddr_in6 *>(&address);
	auto *four = reinterpret_cast<struct sockaddr_in *>(&address);

	if (inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = port;
		/* 0/8 is nobody's; 224/3 are groups, everybody, or not used */
		uint32_t bits = ntohl(four->sin_addr.s_addr);
		if (bits >> 24 && bits >> 29 != 7)
			return;
	} else if (inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = port;
		/* a link's own would need its scope; IPv4 is written as such */
		if (!IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr) &&
		    !IN6_IS_ADDR_MULTICAST(&six->sin6_addr) &&
		    !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) &&
		    !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
			return;
	}
	mistake(host.need("address", what), host.path("address"),
		std::string("it is ") + what + ", which the others can reach");
}

void read_certificate_names(const Table &host, struct dsm_config_host &to)
{
	std::string what = "1 to " + std::to_string(DSM_TRANSPORT_NAMES) +
			   " DNS names, without wildcards";
	const toml::node &node = host.need("certificate_names", what.c_str());
	const toml::array *names = node.as_array();
	std::string key = host.path("certificate_names");

	if (!names || names->empty() || names->size() > DSM_TRANSPORT_NAMES)
		mistake(node, key, "it is an array of " + what);
	for (const toml::node &each : *names) {
		std::string name = Table::text_of(each, key, "a DNS name",
						  DSM_CONFIG_NAME);
		if (!is_dns_name(name))
			mistake(each, key, "\"" + name + "\" is no DNS name; it is " + what);
		copy(to.certificate_names[to.nr_names++], name);
	}
}

bool same_place(const struct dsm_config_host &a, const struct dsm_config_host &b)
{
	return !memcmp(&a.address, &b.address, sizeof(a.address));
}

bool is_loopback(const struct sockaddr_storage &address)
{
	if (address.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const struct sockaddr_in6 &>(address).sin6_addr);
	return ntohl(reinterpret_cast<const struct sockaddr_in &>(address).sin_addr.s_addr) >> 24 == 127;
}

bool share_a_name(const struct dsm_config_host &a, const struct dsm_config_host &b)
{
	for (unsigned i = 0; i < a.nr_names; i++)
		for (unsigned k = 0; k < b.nr_names; k++)
			if (!strcasecmp(a.certificate_names[i],
					b.certificate_names[k]))
				return true;
	return false;
}

void compare(const toml::node &at, const std::string &name,
	     const struct dsm_config_host &host,
	     const struct dsm_config_host &other)
{
	std::string of = std::string("host \"") + other.name + "\" has it, too";

	if (!strcmp(host.name, other.name))
		mistake(at, name + ".name", of);
	if (same_place(host, other))
		mistake(at, name + ".address", of + ", with the same port");
	if (host.address.ss_family != other.address.ss_family)
		mistake(at, name + ".address", std::string("all hosts have IPv4 "
			"addresses, or all have IPv6; host \"") + other.name +
			"\" has the other kind");
	/* All of them: that is one machine, as in tests. */
	if (is_loopback(host.address) != is_loopback(other.address))
		mistake(at, name + ".address", std::string("a loopback address is reached from "
			"its own host only; host \"") + (is_loopback(host.address) ? other.name : host.name) +
			"\" has none, host \"" + (is_loopback(host.address) ? host.name : other.name) + "\" has one");
	if (share_a_name(host, other))
		mistake(at, name + ".certificate_names", of);
}

void read_host(const toml::node &node, struct dsm_config &config)
{
	if (!node.is_table())
		mistake(node, "host", "each is a table, [[host]]");
	Table table(*node.as_table(), "host", { "name", "number", "address",
		    "port", "certificate_names" });
	struct dsm_config_host host = {};
	auto number = size_t(table.number("number", 0, DSM_MAX_HOSTS - 1));

	host.used = true;
	std::string called = table.text("name", "the host's name", DSM_CONFIG_NAME);
	if (!is_host_name(called))
		mistake(*table.find("name"), "host.name", "\"" + called + "\": it is letters, digits, "
			"-, _ and ., a letter or digit first");
	copy(host.name, called);
	read_address(table, host.address);
	read_certificate_names(table, host);
	if (config.host[number].used)
		mistake(node, "host.number", std::string("host \"") +
			config.host[number].name + "\" has it, too");
	for (const struct dsm_config_host &other : config.host)
		if (other.used)
			compare(node, "host", host, other);
	config.host[number] = host;
	config.nr_hosts++;
}

void read_hosts(const Table &file, struct dsm_config &config)
{
	const char *what = "2 to 16 tables, [[host]]";
	const toml::node &node = file.need("host", what);
	const toml::array *hosts = node.as_array();

	if (!hosts || hosts->size() < 2 || hosts->size() > DSM_MAX_HOSTS)
		mistake(node, "host", std::string("there are ") + what +
			(hosts ? ", and here " + std::to_string(hosts->size()) : ""));
	for (const toml::node &each : *hosts)
		read_host(each, config);
	for (unsigned i = 0; i < config.nr_hosts; i++)
		if (!config.host[i].used)
			mistake(node, "host.number", "the numbers of " +
				std::to_string(config.nr_hosts) + " hosts are 0 to " +
				std::to_string(config.nr_hosts - 1) + ", and no host is " +
				std::to_string(i));
}

void read_self(const Table &file, const char *host_name, struct dsm_config &config)
{
	const toml::node *node = file.find("self");
	std::string self = node ? file.text("self", "the name of this host",
					    DSM_CONFIG_NAME) : host_name;
	std::vector<std::string> names;

	for (unsigned i = 0; i < config.nr_hosts; i++) {
		names.emplace_back(config.host[i].name);
		if (self == config.host[i].name) {
			config.self = uint8_t(i);
			return;
		}
	}
	mistake(node ? *node : file.table, "self", (node ? "no host is called \"" + self + "\"" :
		"missing, and no host is called \"" + self + "\", which is the host name here") +
		"; there are " + list(names));
}

void read_transport(const Table &file, struct dsm_config &config)
{
	std::string kind = file.text("transport", "\"tcp\" or \"rdma\"", 8);
	const toml::node &node = *file.find("transport");

	config.trusted_fabric = file.flag("trusted_fabric");
	if (kind == "tcp")
		config.transport = DSM_TRANSPORT_TCP;
	else if (kind == "rdma")
		config.transport = DSM_TRANSPORT_RDMA;
	else
		mistake(node, "transport", "it is \"tcp\" or \"rdma\"");
	if (config.transport == DSM_TRANSPORT_RDMA && !config.trusted_fabric)
		mistake(node, "transport", "\"rdma\" needs trusted_fabric = true: who "
			"is on its wire can read and change pages (dsm.toml(5))");
}

void read_file(const toml::table &table, const char *host_name,
	       struct dsm_config &config)
{
	Table file(table, "", { "self", "transport", "trusted_fabric", "class_u", "tls",
		   "limits", "host" });

	read_transport(file, config);
	config.class_u = file.flag("class_u");
	read_tls(file.need("tls", "a table, [tls]"), config);
	read_limits(table, config);
	read_hosts(file, config);
	read_self(file, host_name, config);
}

int wrong(char *text, const char *file, unsigned int line, const std::string &what)
{
	/* line 0: what is missing is not in a line */
	snprintf(text, DSM_CONFIG_TEXT, "%s:%u: %s", file, line ? line : 1,
		 what.c_str());
	return -EINVAL;
}

} // namespace

int dsm_config_parse(const char *bytes, size_t size, const char *file,
		     const char *host_name, struct dsm_config *config,
		     char text[DSM_CONFIG_TEXT])
try {
	struct dsm_config read = {};

	text[0] = 0;
	read_file(toml::parse(std::string_view(bytes, size)), host_name, read);
	*config = read;
	return 0;
} catch (const Mistake &m) {
	return wrong(text, file, m.line, m.text);
} catch (const toml::parse_error &e) {
	return wrong(text, file, unsigned(e.source().begin.line),
		     "this is not TOML: " + std::string(e.description()));
} catch (const std::bad_alloc &) {
	snprintf(text, DSM_CONFIG_TEXT, "%s: no memory", file);
	return -ENOMEM;
}

int dsm_config_read(const char *file, const char *host_name,
		    struct dsm_config *config, char text[DSM_CONFIG_TEXT])
{
	static char bytes[DSM_CONFIG_BYTES + 1];
	size_t size = 0;
	ssize_t n;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && size < sizeof(bytes)) {
		n = read(fd, bytes + size, sizeof(bytes) - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (!n)
				errno = 0;
			break;
		}
		size += size_t(n);
	}
	int rc = fd < 0 || size < sizeof(bytes) ? -errno : -E2BIG;
	if (fd >= 0)
		close(fd);
	if (rc) {
		snprintf(text, DSM_CONFIG_TEXT, "%s: %s", file, rc == -E2BIG ?
			 "more than 65536 bytes" : strerror(-rc));
		return rc;
	}
	return dsm_config_parse(bytes, size, file, host_name, config, text);
}

void dsm_config_transport(const struct dsm_config *config,
			  struct dsm_transport_params *params)
{
	constexpr uint64_t NS = 1000000;	/* in a ms */

	params->kind = config->transport;
	params->trusted_fabric = config->trusted_fabric;
	params->self = config->self;
	params->nr_hosts = config->nr_hosts;
	params->address = config->host[config->self].address;
	params->ca_file = config->ca;
	params->certificate_file = config->certificate;
	params->key_file = config->key;
	params->credits = config->credits;
	params->queue = config->queue;
	params->strangers = config->strangers;
	params->opening_ns = config->opening_ms * NS;
	params->question_ns = config->question_ms * NS;
	params->deadline_ns = config->deadline_ms * NS;
	params->rekey_records = config->rekey_records;
	for (unsigned i = 0; i < DSM_MAX_HOSTS; i++) {
		const struct dsm_config_host &host = config->host[i];
		struct dsm_transport_peer &peer = params->peer[i];
		const char **names = i == config->self ? params->names : peer.names;

		peer = {};
		if (!host.used)
			continue;
		if (i != config->self) {
			peer.used = true;
			peer.address = host.address;
			peer.name = host.name;
		}
		for (unsigned k = 0; k < DSM_TRANSPORT_NAMES; k++)
			names[k] = k < host.nr_names ? host.certificate_names[k] : nullptr;
	}
}
