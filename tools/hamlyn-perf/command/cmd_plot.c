// SPDX-License-Identifier: GPL-2.0-only
/* plot: a diagram of results that were kept as JSON lines. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "report/lines.h"
#include "report/plot.h"

#define LINE_ROOM	16384

/* The end of a JSON string whose first character is at @p. */
static const char *string_end(const char *p)
{
	while (*p && *p != '"')
		p += *p == '\\' && p[1] ? 2 : 1;
	return p;
}

/* The end of the value at @p: the comma or brace that belongs to the object. */
static const char *value_end(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		if (*p == '"') {
			p = string_end(p + 1);
			if (!*p)
				break;
		} else if (*p == '[' || *p == '{') {
			depth++;
		} else if (depth && (*p == ']' || *p == '}')) {
			depth--;
		} else if (!depth && (*p == ',' || *p == '}')) {
			break;
		}
	}
	return p;
}

/*
 * The text of a member of the object on the line: of a string what is between
 * the quotes. False if there is no such member, or it does not fit.
 */
static bool member(const char *line, const char *key, char *text, size_t room)
{
	size_t length = strlen(key);
	const char *name, *end;

	line += strspn(line, " \t");
	if (*line != '{')
		return false;
	for (line++; *line; line = *end == ',' ? end + 1 : "") {
		line += strspn(line, " \t");
		if (*line != '"')
			return false;
		name = line + 1;
		line = string_end(name);
		if (!*line)
			return false;
		end = line++;
		line += strspn(line, " \t:");
		if ((size_t)(end - name) == length && !memcmp(name, key, length)) {
			end = *line == '"' ? string_end(++line) : value_end(line);
			return (size_t)snprintf(text, room, "%.*s", (int)(end - line),
						line) < room;
		}
		end = value_end(line);
	}
	return false;
}

static bool is_plain_name(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("-_.+", *text))
			return false;
	return true;
}

static int add_result(struct plot *plot, const char *line, const char *test)
{
	char system[PLOT_NAME], size[24], value[32];
	char *end;
	double number;
	int kind;

	for (kind = 0; kind < TEST_KINDS; kind++)
		if (!strcmp(test, lines_test[kind]))
			break;
	if (kind != TEST_LAT && kind != TEST_BW)
		return 0;
	if (!member(line, "system", system, sizeof(system)) || !is_plain_name(system) ||
	    !member(line, "size", size, sizeof(size)) ||
	    !member(line, lines_key[kind], value, sizeof(value)))
		return fail("not a result: %.100s", line);
	number = strtod(value, &end);
	if (*end || !(number > 0 && number < 1e18) || strspn(size, "0123456789") != strlen(size))
		return fail("not a result: %.100s", line);
	return plot_add(plot, system, (enum test_kind)kind, strtoull(size, NULL, 10), number);
}

static int add_line(struct plot *plot, const char *line)
{
	char test[32], cpu[128], kernel[128], virtual[8] = "";

	if (!*line)
		return 0;
	if (!member(line, "test", test, sizeof(test)))
		return fail("not a line that hamlyn-perf --save writes: %.100s", line);
	if (strcmp(test, "machine"))
		return add_result(plot, line, test);
	if (member(line, "cpu", cpu, sizeof(cpu)) &&
	    member(line, "kernel", kernel, sizeof(kernel)))
		snprintf(plot->title, sizeof(plot->title), "%s%s, %s", cpu,
			 member(line, "virtual", virtual, sizeof(virtual)) &&
			 !strcmp(virtual, "true") ? " (virtual)" : "", kernel);
	return 0;
}

static int read_results(struct plot *plot, const char *name)
{
	static char line[LINE_ROOM];
	FILE *file = fopen(name, "r");
	uint32_t number = 0;
	int ret = 0;

	if (!file)
		return fail("cannot read %s: %s", name, strerror(errno));
	while (!ret && fgets(line, sizeof(line), file)) {
		number++;
		if (!strchr(line, '\n') && !feof(file))
			ret = fail("%s: line %u is too long", name, number);
		line[strcspn(line, "\n")] = 0;
		if (!ret)
			ret = add_line(plot, line);
	}
	if (!ret && ferror(file))
		ret = fail("cannot read %s", name);
	fclose(file);
	if (!ret && !plot->n)
		ret = fail("%s has no latency and no bandwidth to draw", name);
	return ret;
}

int cmd_plot(const struct options *options)
{
	static struct plot plot;

	if (read_results(&plot, options->operand) < 0 || plot_ready(options->plot) < 0)
		return -1;
	return plot_draw(&plot, options->plot);
}
