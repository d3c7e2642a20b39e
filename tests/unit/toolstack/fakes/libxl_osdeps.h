/* SPDX-License-Identifier: GPL-2.0 */
/* For the unit tests: what libxl's header of the same name provides. */
#ifndef LIBXL_OSDEPS_H
#define LIBXL_OSDEPS_H

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#endif /* LIBXL_OSDEPS_H */
