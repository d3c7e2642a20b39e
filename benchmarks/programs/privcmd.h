/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hypercalls of a guest's program, by /dev/xen/privcmd, and those that are made here.
 * Shapes and numbers: Linux' include/uapi/xen/privcmd.h, Xen's public headers xen.h,
 * version.h and event_channel.h.  A kernel allows them to programs of a guest only with
 * its argument xen_privcmd.unrestricted=1; without, they fail with EPERM.
 */
#ifndef PRIVCMD_H
#define PRIVCMD_H

#include <stdint.h>
#include <sys/ioctl.h>

#define PRIVCMD		"/dev/xen/privcmd"

struct privcmd_hypercall {
	uint64_t op, arg[5];
};
#define IOCTL_PRIVCMD_HYPERCALL \
	_IOC(_IOC_NONE, 'P', 0, sizeof(struct privcmd_hypercall))

#define HYPERVISOR_XEN_VERSION	17
#define XENVER_VERSION		0
#define XENVER_GET_FEATURES	6
#define XENVER_GUEST_HANDLE	8
#define HYPERVISOR_EVENT_CHANNEL_OP	32
#define EVTCHNOP_STATUS		5
#define EVTCHNSTAT_CLOSED	0
#define DOMID_SELF		0x7ff0
#define HOME_PORT		1	/* xenstore's or the console's */

struct evtchn_status {
	uint16_t dom;
	uint32_t port, status, vcpu;
	uint32_t more[2];
};

/*
 * @fd: of PRIVCMD.  @argument: where Xen reads and writes; it brings no page there that
 * is not mapped (EFAULT).
 * Return: what Xen says, 0 or more; -1 and errno.
 */
static inline long hypercall(int fd, uint64_t op, uint64_t command, void *argument)
{
	struct privcmd_hypercall call = {
		.op = op,
		.arg = { command, (uintptr_t)argument },
	};

	return ioctl(fd, IOCTL_PRIVCMD_HYPERCALL, &call);
}

#endif
