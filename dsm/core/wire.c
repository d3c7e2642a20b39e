// SPDX-License-Identifier: GPL-2.0
/*
 * Messages as bytes.
 */
#include <string.h>

#include "vcpu.h"
#include "wire.h"

static void put32(uint8_t *bytes, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
	       (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	while (count--)
		if (*bytes++)
			return false;
	return true;
}

/* What such messages say is behind it. */
static bool is_vcpu_head(const uint8_t *bytes)
{
	if (bytes[2] || bytes[3] || !is_zero(bytes + 8, 4) || !is_zero(bytes + 17, 7))
		return false;
	return bytes[16] < (bytes[1] == DSM_VCPU_POLICY ? DSM_POLICY_PARTS : 1);
}

unsigned int dsm_wire_version(unsigned int type)
{
	if (type == DSM_VCPU_ACCESS || type == DSM_VCPU_ACCESSED)
		return DSM_WIRE_ACCESS;
	if (type == DSM_VCPU_PAUSE || type == DSM_VCPU_PAUSED)
		return DSM_WIRE_PAUSE;
	if (type == DSM_VCPU_TSC)
		return DSM_WIRE_TSC;
	return dsm_type_is_vcpu(type) ? DSM_WIRE_VCPUS : DSM_WIRE_LOWEST;
}

void dsm_wire_put(const struct dsm_msg *msg, uint8_t bytes[DSM_WIRE_BYTES])
{
	memset(bytes, 0, DSM_WIRE_BYTES);
	bytes[0] = DSM_WIRE_VERSION;
	bytes[1] = msg->type;
	bytes[2] = msg->flags;
	bytes[3] = msg->reason;
	put32(bytes + 4, msg->epoch);
	put32(bytes + 8, msg->txn);
	put32(bytes + 12, dsm_type_bytes(msg->type));
	put32(bytes + 16, (uint32_t)msg->gfn);
	put32(bytes + 20, (uint32_t)(msg->gfn >> 32));
}

int dsm_wire_get(const uint8_t bytes[DSM_WIRE_BYTES], struct dsm_msg *msg)
{
	uint32_t length = get32(bytes + 12);

	if (bytes[0] != DSM_WIRE_VERSION)
		return -DSM_E_VERSION;
	if (!dsm_type_is_vcpu(bytes[1]) && (!bytes[1] || bytes[1] >= DSM_NR_TYPES))
		return -DSM_E_TYPE;
	if (bytes[3] >= DSM_NR_REASONS)
		return -DSM_E_REASON;
	if (length != dsm_type_bytes(bytes[1]))
		return -DSM_E_LENGTH;
	if (!is_zero(bytes + 24, 8))
		return -DSM_E_RESERVED;
	if (dsm_type_is_vcpu(bytes[1]) && !is_vcpu_head(bytes))
		return -DSM_E_RESERVED;

	*msg = (struct dsm_msg){
		.type = bytes[1],
		.flags = bytes[2],
		.reason = bytes[3],
		.epoch = get32(bytes + 4),
		.txn = get32(bytes + 8),
		.gfn = get32(bytes + 16) | (uint64_t)get32(bytes + 20) << 32,
	};
	return (int)length;
}

void dsm_wire_put_hello(const struct dsm_hello *hello,
			uint8_t bytes[DSM_WIRE_BYTES])
{
	memset(bytes, 0, DSM_WIRE_BYTES);
	bytes[2] = hello->lowest;
	bytes[3] = hello->highest;
	put32(bytes + 4, DSM_WIRE_MAGIC);
	bytes[8] = hello->host;
	bytes[9] = hello->nr_hosts;
	put32(bytes + 12, hello->epoch);
	memcpy(bytes + 16, hello->vm, sizeof(hello->vm));
}

int dsm_wire_get_hello(const uint8_t bytes[DSM_WIRE_BYTES],
		       struct dsm_hello *hello)
{
	uint8_t version = bytes[3] < DSM_WIRE_HIGHEST ? bytes[3] : DSM_WIRE_HIGHEST;

	if (bytes[0] || bytes[1] || get32(bytes + 4) != DSM_WIRE_MAGIC)
		return -DSM_E_TYPE;
	if (version < bytes[2] || version < DSM_WIRE_LOWEST)
		return -DSM_E_VERSION;
	if (!is_zero(bytes + 10, 2))
		return -DSM_E_RESERVED;
	if (!bytes[9] || bytes[9] > DSM_MAX_HOSTS || bytes[8] >= bytes[9])
		return -DSM_E_PEER;
	if (!get32(bytes + 12))
		return -DSM_E_EPOCH;

	*hello = (struct dsm_hello){
		.lowest = bytes[2],
		.highest = bytes[3],
		.host = bytes[8],
		.nr_hosts = bytes[9],
		.epoch = get32(bytes + 12),
	};
	memcpy(hello->vm, bytes + 16, sizeof(hello->vm));
	return version;
}
