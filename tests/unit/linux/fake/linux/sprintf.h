/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's snprintf() that returns what it wrote. */
#ifndef FAKE_LINUX_SPRINTF_H
#define FAKE_LINUX_SPRINTF_H

#include <stdarg.h>
#include <stdio.h>

static inline int vscnprintf(char *text, size_t size, const char *format,
			     va_list args)
{
	int length = vsnprintf(text, size, format, args);

	if ((size_t)length < size)
		return length;
	return size ? size - 1 : 0;
}

__attribute__((format(printf, 3, 4)))
static inline int scnprintf(char *text, size_t size, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vscnprintf(text, size, format, args);
	va_end(args);
	return length;
}

#endif
