// SPDX-License-Identifier: GPL-2.0
/*
 * vCPUs of a guest at other hosts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/vcpu.h"
#include "../core/wire.h"
#include "clock.h"
#include "guest.h"
#include "mesh.h"
#include "places.h"
#include "wire.h"

#define LINE	1023u		/* of dsmd's control socket, without its new line */

/*
 * Ports that Linux 6.12 binds for each CPU that is up: reschedule, two kinds of calls,
 * debug, spinlock, timer (arch/x86/xen/{smp,smp_hvm,spinlock,time}.c).  And those at home
 * that no CPU can have: 0, the ring's, console's and xenstore's, and one for a device.
 */
#define PORTS_OF_VCPU	6u
#define PORTS_OF_HOME	5u

/* A set of vCPUs. */
struct vcpus {
	bool is[DSM_ENGINE_VCPUS];
};

int places_take(struct host *host, struct json_object *request, struct record *record,
		struct answer *answer)
{
	record->nr_places = 0;
	return record_read_places(host, request, record, answer);
}

int places_check_ports(struct host *host, const struct record *record, struct answer *answer)
{
	unsigned int ports = dsm_ports(host->config.nr_hosts);
	unsigned int i, vcpus, others, most, home = record->nr_vcpus;

	for (i = 0; i < record->nr_places; i++)
		home -= record->place[i].nr;
	for (i = 0; i < host->config.nr_hosts; i++) {
		vcpus = i == record->home ? home : record_vcpus_of(record, i);
		others = i == record->home ? PORTS_OF_HOME : 0;
		most = (ports - others) / PORTS_OF_VCPU;
		if (vcpus > most)
			return answer_error(answer, "cpus-there", "host %s: %u vCPUs are to run there, Linux has event channels for %u: each of the %u hosts of dsm.toml has %u of them, whether the guest uses it or not, each vCPU needs %u and all else at least %u; give it fewer vCPUs there, or take hosts out of all dsm.toml",
					    host_name(host, i), vcpus, most, host->config.nr_hosts,
					    ports, PORTS_OF_VCPU, others);
	}
	return 0;
}

void places_tell(const struct host_facts *facts, struct answer *answer)
{
	answer_add(answer, "cpus", json_object_new_uint64(facts->cpus));
	answer_add(answer, "tsc_khz", json_object_new_uint64(facts->tsc_khz));
	answer_add(answer, "wire", json_object_new_uint64(DSM_WIRE_HIGHEST));
	answer_add(answer, "rings", json_object_new_boolean(true));
}

static int compare_tsc(struct host *host, unsigned int peer, uint32_t ours, uint32_t theirs,
		       struct answer *answer)
{
	const char *name = host_name(host, ours ? peer : host->config.self);
	uint32_t apart, most = dsm_clock_khz_ppm(host->config.clock_drift_ppm);

	if (!ours || !theirs)
		return answer_error(answer, "tsc", "host %s: its TSC can't be that of a guest on several hosts: dom0 is not PV, or Xen emulates it; the log of a dsmd there says which",
				    name);
	apart = dsm_clock_khz_apart(ours, theirs);
	if (apart <= most)
		return 0;
	return answer_error(answer, "tsc", "host %s: its TSC has %u kHz, the one here %u: they differ by %u ppm, and may by %u, since clock_drift_ppm is %u: a guest on both would have two times",
			    name, theirs, ours, apart, most, host->config.clock_drift_ppm);
}

static bool has_rings(const struct record *record)
{
	unsigned int i;

	for (i = 0; i < record->nr_ranges; i++)
		if (record_is_rings(&record->range[i]))
			return true;
	return false;
}

int places_compare(struct host *host, unsigned int peer, const struct record *record,
		   const struct host_facts *here, struct json_object *there,
		   struct answer *answer)
{
	unsigned int vcpus = record_vcpus_of(record, peer);
	const char *name = host_name(host, peer);
	uint64_t cpus, khz, wire;

	if (has_rings(record) && !json_object_get_boolean(json_object_object_get(there, "rings")))
		return answer_error(answer, "version", "host %s: its dsmd-host knows of vnodes only, not of a guest's rings",
				    name);
	if (mesh_is_needed(host, record, peer) &&
	    !json_object_get_boolean(json_object_object_get(there, "joins")))
		return answer_error(answer, "version", "host %s: its dsmd-host can't connect it with hosts that are not the guest's home",
				    name);
	if (!vcpus)
		return 0;
	if (!json_object_object_get_ex(there, "wire", NULL))
		return answer_error(answer, "version", "host %s: its dsmd-host knows nothing of vCPUs at other hosts",
				    name);
	if (read_number(there, "wire", 0, UINT32_MAX, &wire, answer) ||
	    read_number(there, "cpus", 0, UINT32_MAX, &cpus, answer) ||
	    read_number(there, "tsc_khz", 0, UINT32_MAX, &khz, answer))
		return -1;
	if (wire < DSM_WIRE_VCPUS)
		return answer_error(answer, "version", "host %s: its dsmd speaks version %llu of the protocol, vCPUs need %u",
				    name, (unsigned long long)wire, DSM_WIRE_VCPUS);
	if (vcpus > cpus)
		return answer_error(answer, "cpus-there", "host %s: %u vCPUs are to run there, it has %llu CPUs",
				    name, vcpus, (unsigned long long)cpus);
	return compare_tsc(host, peer, here->tsc_khz, (uint32_t)khz, answer);
}

/* ---- place, home ---- */

/* "4-7,9" */
static void write_vcpus(const struct vcpus *vcpus, FILE *to)
{
	const char *before = "";
	unsigned int first, last;

	for (first = 0; first < DSM_ENGINE_VCPUS; first = last + 1) {
		last = first;
		if (!vcpus->is[first])
			continue;
		while (last + 1 < DSM_ENGINE_VCPUS && vcpus->is[last + 1])
			last++;
		fprintf(to, last > first ? "%s%u-%u" : "%s%u", before, first, last);
		before = ",";
	}
}

/* What dsmd is asked.  @there: DSM_NOBODY: "home".  Return: for free(); NULL: no memory. */
static char *make_line(const struct host *host, unsigned int there, const struct vcpus *vcpus)
{
	char *line = NULL;
	size_t size;
	FILE *to = open_memstream(&line, &size);

	if (!to)
		return NULL;
	if (there == DSM_NOBODY)
		fputs("home ", to);
	else
		fprintf(to, "place %s ", host_name(host, there));
	write_vcpus(vcpus, to);
	if (!fclose(to))
		return line;
	free(line);
	return NULL;
}

/* Has it its place there?  @there: DSM_NOBODY: anywhere. */
static bool has_place(const struct host *host, const struct record *record, unsigned int vcpu,
		      unsigned int there)
{
	unsigned int i;

	if (there != DSM_NOBODY)
		return record_has_vcpu(record, vcpu, there);
	for (i = 0; i < host->config.nr_hosts; i++)
		if (record_has_vcpu(record, vcpu, i))
			return true;
	return false;
}

static int take_vcpus(struct host *host, const struct record *record, unsigned int there,
		      struct json_object *request, struct vcpus *vcpus, struct answer *answer)
{
	struct json_object *list, *one;
	int64_t vcpu, before = -1;
	size_t i;

	if (!json_object_object_get_ex(request, "vcpus", &list) ||
	    !json_object_is_type(list, json_type_array) || !json_object_array_length(list))
		return answer_error(answer, "internal", "vcpus: want a list of numbers");
	for (i = 0; i < json_object_array_length(list); i++, before = vcpu) {
		one = json_object_array_get_idx(list, i);
		vcpu = json_object_is_type(one, json_type_int) ? json_object_get_int64(one) : -1;
		if (vcpu <= before || vcpu >= DSM_ENGINE_VCPUS)
			return answer_error(answer, "internal", "vcpus: want numbers below %u, ascending",
					    DSM_ENGINE_VCPUS);
		if (!has_place(host, record, (unsigned int)vcpu, there))
			return answer_error(answer, "places", "vCPU %lld of this guest has no place at %s",
					    (long long)vcpu,
					    there == DSM_NOBODY ? "another host" : host_name(host, there));
		vcpus->is[vcpu] = true;
	}
	return 0;
}

/* Return: the number of "host"; DSM_NOBODY. */
static unsigned int take_host(struct host *host, struct json_object *request,
			      struct answer *answer)
{
	const char *name = read_text(request, "host", DSM_CONFIG_NAME - 1, answer);
	unsigned int there = name ? host_find(host, name, answer) : DSM_NOBODY;

	if (there == host->config.self) {
		answer_error(answer, "own-host", "%s is this host", name);
		there = DSM_NOBODY;
	}
	return there;
}

void guest_place(struct host *host, const struct record *record, bool home,
		 struct json_object *request, struct answer *answer)
{
	unsigned int there = home ? DSM_NOBODY : take_host(host, request, answer);
	struct vcpus vcpus = { { false } };
	struct mesh mesh;
	char *line;

	if ((!home && there == DSM_NOBODY) ||
	    take_vcpus(host, record, there, request, &vcpus, answer))
		return;
	if (!dsmd_lives(host, record->uuid_text)) {
		answer_error(answer, "internal", "dsmd of %s has ended: what it knew of the pages is lost; destroy the guest",
			     record->guest);
		return;
	}
	host->end = wire_now() + (home ? HOST_HOME_S : HOST_PLACE_S);
	if (!home && mesh_is_needed(host, record, there) &&
	    (mesh_read(&mesh, host, record, answer) || mesh_check(&mesh, there, answer)))
		return;
	line = make_line(host, there, &vcpus);
	if (!line)
		answer_error(answer, "internal", "no memory");
	else if (strlen(line) > LINE)
		answer_error(answer, "internal", "vcpus: so many pieces do not fit into a line");
	else
		ask_dsmd(host, record->name, line, host->end - wire_now(), NULL, answer);
	free(line);
}
