/* SPDX-License-Identifier: GPL-2.0-only */
#include "fake_scrub.h"
