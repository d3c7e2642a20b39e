/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: what libacpi's header of the same name has of use. */
#ifndef LIBACPI_H
#define LIBACPI_H

#define LIBACPI_VMEMRANGE_HOTPLUG (1u << 31)

#endif /* LIBACPI_H */
