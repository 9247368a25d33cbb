/* SPDX-License-Identifier: MIT */
/* Lines of PMI-1, "cmd=put kvsname=K key=A value=1": for the client and for hamlyn-run. */
#ifndef HAMLYN_AM_PMI_LINE_H
#define HAMLYN_AM_PMI_LINE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PMI_LINE_BYTES	2048	/* longest line, its end included */
#define PMI_WORD_BYTES	32	/* room for a command or a number */

/* @length bytes without the line's end: is it printable text? */
static inline bool pmi_line_is_text(const char *line, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (line[i] < ' ' || line[i] > '~')
			return false;
	return true;
}

/*
 * The value of the first field of this name into @value of @size bytes.
 * Return: 0, -ENOENT without such a field, -EMSGSIZE if the value does not fit.
 */
static inline int pmi_line_field(const char *line, const char *name, char *value, size_t size)
{
	size_t length = strlen(name), n;

	for (;; line += n) {
		line += strspn(line, " ");
		n = strcspn(line, " ");
		if (!n)
			return -ENOENT;
		if (n > length && line[length] == '=' && !strncmp(line, name, length))
			break;
	}
	line += length + 1;
	n -= length + 1;
	if (n >= size)
		return -EMSGSIZE;
	memcpy(value, line, n);
	value[n] = 0;
	return 0;
}

/* Return: 0 and the number, or -EINVAL if @text is none from @min to @max */
static inline int pmi_number(const char *text, long min, long max, long *number)
{
	char *end;
	long value;

	if (*text != '-' && (*text < '0' || *text > '9'))
		return -EINVAL;
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		return -EINVAL;
	*number = value;
	return 0;
}

/* Return: 0 and the number, -ENOENT without such a field, or -EINVAL */
static inline int pmi_line_number(const char *line, const char *name, long min, long max,
				  long *number)
{
	char text[PMI_WORD_BYTES];
	int ret = pmi_line_field(line, name, text, sizeof(text));

	if (ret < 0)
		return ret == -ENOENT ? ret : -EINVAL;
	return pmi_number(text, min, max, number);
}

/* Is it a line of this command? */
static inline bool pmi_line_is(const char *line, const char *command)
{
	char text[PMI_WORD_BYTES];

	return !pmi_line_field(line, "cmd", text, sizeof(text)) && !strcmp(text, command);
}

#endif /* HAMLYN_AM_PMI_LINE_H */
