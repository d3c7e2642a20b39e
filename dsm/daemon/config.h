/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /etc/xenuma/dsm.toml: who takes part, and how they talk (dsm.toml(5)).
 *
 * The file is read once.  Nothing is taken over from a file with a mistake;
 * each mistake is told with the file, the line, the key and what is allowed.
 */
#ifndef DSM_CONFIG_H
#define DSM_CONFIG_H

#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSM_CONFIG_BYTES	65536	/* of a file, at most */
#define DSM_CONFIG_NAME		254	/* a DNS name with its 0 */
#define DSM_CONFIG_PATH		1024
#define DSM_CONFIG_PORT_MOST	64512	/* and 1023 after it, DSM_VM_NUMBERS - 1 */
#define DSM_CONFIG_TEXT		512

struct dsm_config_host {
	bool used;
	char name[DSM_CONFIG_NAME];
	struct sockaddr_storage address;	/* with port */
	unsigned int nr_names;
	char certificate_names[DSM_TRANSPORT_NAMES][DSM_CONFIG_NAME];
};

struct dsm_config {
	uint8_t self, nr_hosts;
	enum dsm_transport_kind transport;
	bool trusted_fabric;
	bool class_u;			/* of VMs with vCPUs at several hosts (dsmd(8)) */
	char ca[DSM_CONFIG_PATH];
	char certificate[DSM_CONFIG_PATH];
	char key[DSM_CONFIG_PATH];
	struct dsm_config_host host[DSM_MAX_HOSTS];	/* by its number */
	/* limits; the file may leave them out */
	uint16_t credits, queue, strangers;
	uint32_t opening_ms, question_ms, deadline_ms;
	uint32_t rekey_records;
	uint8_t lend_percent;		/* of this host's memory, to VMs of other hosts */
	uint8_t lend_dom0_percent;	/* of dom0's, that dsmds of theirs may need to know of it */
	uint16_t lend_guests;		/* VMs of each other host that have a slice here */
	uint32_t clock_drift_ppm, clock_error_us;
};

/**
 * Read a file.
 * @host_name: this host's name, if the file does not say `self`.
 * @config: written only if all is right.
 * @text: what is wrong: "FILE:LINE: KEY: what is allowed".
 * Return: 0; -EINVAL for a mistake in the file; -E2BIG for one that is larger
 * than DSM_CONFIG_BYTES; what open() and read() say.
 */
int dsm_config_read(const char *file, const char *host_name,
		    struct dsm_config *config, char text[DSM_CONFIG_TEXT]);

/** The same, of @size bytes that are said to come from @file. */
int dsm_config_parse(const char *bytes, size_t size, const char *file,
		     const char *host_name, struct dsm_config *config,
		     char text[DSM_CONFIG_TEXT]);

/**
 * What the file says of the transport's parameters; the others stay.
 * @params: points into @config afterwards.
 */
void dsm_config_transport(const struct dsm_config *config,
			  struct dsm_transport_params *params);

#ifdef __cplusplus
}
#endif

#endif
