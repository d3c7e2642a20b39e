/* SPDX-License-Identifier: GPL-2.0 */
/*
 * power_off: end the machine at once, as poweroff(8) does when there is nothing to
 * stop: reboot(2).
 *
 * A PVH guest has no register that turns it off.  reboot(2) halts it then: all CPUs
 * stop with interrupts off, which Xen takes for its end.  Sysrq's "o" does not.
 *
 * Exit status: 1 if it is not allowed; else it does not return.
 */
#include <stdio.h>
#include <sys/reboot.h>
#include <unistd.h>

int main(void)
{
	sync();
	reboot(RB_POWER_OFF);
	perror("power_off");
	return 1;
}
