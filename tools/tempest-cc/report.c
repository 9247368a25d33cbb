// SPDX-License-Identifier: GPL-2.0-only
/* What was checked, and what was left plain and why: for whoever wonders where time goes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static void blanks_to_one(FILE *out, const char *s)
{
	s += strspn(s, " \t");
	for (; *s; s++)
		if (*s != '\t' || (s[1] && s[1] != '\t'))
			fputc(*s == '\t' ? ' ' : *s, out);
}

/* ".loc FILE LINE": where the compiler says that what follows comes from (-g). */
static unsigned long source_line(const struct line *line, unsigned long before)
{
	const char *s = line->text + strspn(line->text, " \t");
	unsigned long file, number;

	if (line->kind != LINE_DIRECTIVE || sscanf(s, ".loc %lu %lu", &file, &number) != 2)
		return before;
	return number;
}

static void left_plain(FILE *out, const char *name, const struct text *text,
		       const struct site *sites)
{
	unsigned long number = 0;
	size_t i;

	for (i = 0; i < text->n; i++) {
		number = source_line(&text->lines[i], number);
		if (!sites[i].why)
			continue;
		fprintf(out, "%s:%lu: plain: %s: ", name, number, sites[i].why);
		blanks_to_one(out, text->lines[i].text);
		fputc('\n', out);
	}
}

static void count(const struct text *text, const struct site *sites, size_t *checked, size_t *plain)
{
	size_t i;

	*checked = *plain = 0;
	for (i = 0; i < text->n; i++) {
		*checked += !!sites[i].check;
		*plain += !!sites[i].why;
	}
}

static int append(const char *path, const char *what, size_t size)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, what, size);
	if (n < 0)
		err = -errno;
	else if ((size_t)n != size)
		err = -ENOSPC;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int report(const char *path, const char *name, const struct text *text, const struct site *sites,
	   const char *why)
{
	size_t size, checked, plain;
	char *whole;
	FILE *out = open_memstream(&whole, &size);
	int err;

	if (!out)
		return -ENOMEM;
	if (sites) {
		count(text, sites, &checked, &plain);
		fprintf(out, "%s: %zu checked, %zu left plain\n", name, checked, plain);
		left_plain(out, name, text, sites);
	} else {
		fprintf(out, "%s: nothing checked: %s\n", name, why);
	}
	if (fclose(out))
		return -ENOMEM;
	err = append(path, whole, size);
	free(whole);
	return err;
}
