// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of the log: logfmt, with the level that systemd reads before it.
 */
#include <stdarg.h>
#include <stdio.h>

#include "host.h"

void host_say(int level, const char *vm, const char *format, ...)
{
	char text[512], *at;
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	/* What others say in it begins no key of its own, and no line. */
	for (at = text; *at; at++)
		if (*at == '"' || *at < 0x20 || *at > 0x7e)
			*at = '\'';
	/* Other processes write there, too: all at once. */
	fprintf(stderr, "<%d>level=%s%s%s msg=\"%s\"\n", level,
		level == SAY_ERROR ? "error" : level == SAY_WARNING ? "warning" : "notice",
		vm ? " vm=" : "", vm ? vm : "", text);
}
