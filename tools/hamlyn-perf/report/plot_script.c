// SPDX-License-Identifier: GPL-2.0-only
/* What gnuplot is told: a panel per test, a curve per system. */
#include <string.h>

#include "report/plot.h"
#include "report/report.h"

#define PANEL_WIDTH	1120
#define PANEL_HEIGHT	600
#define MAX_CURVES	SYSTEMS_MAX

/* Systems that differ in how they wait share a colour; dashes tell them apart. */
static const struct colour {
	const char *family;
	const char *colour;
} colours[] = {
	{ "limit", "#000000" },
	{ "hamlyn", "#d62728" },
	{ "fast", "#ff7f0e" },
	{ "unix-stream", "#1f77b4" },
	{ "unix-seqpacket", "#17becf" },
	{ "pipe", "#2ca02c" },
	{ "tcp", "#9467bd" },
	{ "eventfd", "#8c564b" },
	{ "vm-writev", "#e377c2" },
	{ "io-uring", "#b5a800" },
	{ "shm", "#7f7f7f" },
	{ "ucx", "#004d40" },
	{ "ucx-put", "#26a69a" },
	{ "libfabric-shm", "#b8860b" },
	{ "libfabric-tcp", "#e0b050" },
	{ "libfabric-hamlyn-rxm", "#8b0000" },
	{ "libfabric-hamlyn-rdm", "#b22222" },
	{ "libfabric-hamlyn-msg", "#cd5c5c" },
	{ "openmpi", "#283593" },
	{ "mpich", "#7986cb" },
	{ "rxe-send", "#ad1457" },
	{ "rxe-write", "#f06292" },
};

/* For systems that are not in the list. */
static const char *const others[] = { "#556b2f", "#a0522d", "#4a148c", "#00838f" };

static const struct panel {
	enum test_kind test;
	const char *title;
	const char *tics;
} panels[] = {
	{ TEST_LAT, "One-way latency (half of the round trip)",
	  "'1 ns' 1, '10 ns' 10, '100 ns' 100, '1 µs' 1e3, '10 µs' 1e4, '100 µs' 1e5, "
	  "'1 ms' 1e6, '10 ms' 1e7, '100 ms' 1e8, '1 s' 1e9" },
	{ TEST_BW, "Bandwidth",
	  "'1 kB/s' 1e3, '10 kB/s' 1e4, '100 kB/s' 1e5, '1 MB/s' 1e6, '10 MB/s' 1e7, "
	  "'100 MB/s' 1e8, '1 GB/s' 1e9, '10 GB/s' 1e10, '100 GB/s' 1e11, '1 TB/s' 1e12" },
};

static bool ends_with(const char *name, const char *tail)
{
	size_t length = strlen(name), n = strlen(tail);

	return length > n && !strcmp(name + length - n, tail);
}

static size_t family_length(const char *name)
{
	if (ends_with(name, "-spin"))
		return strlen(name) - strlen("-spin");
	if (ends_with(name, "-block"))
		return strlen(name) - strlen("-block");
	return strlen(name);
}

/* @number: of the curve, for systems without a colour of their own */
static void print_style(FILE *file, const char *name, uint32_t number)
{
	const char *colour = others[number % ARRAY_SIZE(others)];
	bool limit = !strcmp(name, "limit");
	size_t length = family_length(name);
	int width = 2;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(colours); i++)
		if (strlen(colours[i].family) == length &&
		    !memcmp(colours[i].family, name, length))
			break;
	if (i < ARRAY_SIZE(colours))
		colour = colours[i].colour;
	if (limit || !strcmp(name, "hamlyn") || !strcmp(name, "fast"))
		width = 4;
	fprintf(file, "lc rgb '%s' lw %d dt %s pt %zu ps %s", colour, width,
		limit ? "(18,8)" : ends_with(name, "-spin") ? "(8,5)" :
		ends_with(name, "-block") ? "(3,4)" : "1",
		4 + i % 12, limit ? "0.4" : "0.7");
}

static bool has_test(const struct plot *plot, enum test_kind test)
{
	uint32_t i;

	for (i = 0; i < plot->n; i++)
		if (plot->points[i].test == test)
			return true;
	return false;
}

/* A logarithmic axis has no place for 0: it stands left of the smallest size. */
static double place_of(const struct plot *plot, const struct plot_point *point)
{
	size_t smallest = 16;
	uint32_t i;

	for (i = 0; i < plot->n; i++)
		if (plot->points[i].test == point->test && plot->points[i].size &&
		    plot->points[i].size < smallest)
			smallest = plot->points[i].size;
	return point->size ? (double)point->size : (double)smallest / 2;
}

/* As many sizes as have room for their label. */
static void print_sizes(FILE *file, const struct plot *plot, enum test_kind test)
{
	const struct plot_point *point, *next;
	double place, last = 0;
	const char *comma = "";
	char size[24];
	uint32_t i;

	fprintf(file, "set xtics (");
	for (;;) {
		next = NULL;
		for (i = 0; i < plot->n; i++) {
			point = &plot->points[i];
			place = place_of(plot, point);
			if (point->test == test && place >= 2 * last && place > last &&
			    (!next || place < place_of(plot, next)))
				next = point;
		}
		if (!next)
			break;
		last = place_of(plot, next);
		report_size(size, sizeof(size), next->size);
		fprintf(file, "%s'%s' %g", comma, size, last);
		comma = ", ";
	}
	fprintf(file, ")\n");
}

/* Points of one curve in the order of sizes, each under its number. */
static void print_curve(FILE *file, const struct plot *plot, enum test_kind test,
			const char *system, uint32_t number)
{
	const struct plot_point *point, *next;
	double last = 0;
	uint32_t i;

	fprintf(file, "$curve%u << END\n", number);
	for (;;) {
		next = NULL;
		for (i = 0; i < plot->n; i++) {
			point = &plot->points[i];
			if (point->test == test && !strcmp(point->system, system) &&
			    place_of(plot, point) > last &&
			    (!next || point->size < next->size))
				next = point;
		}
		if (!next)
			break;
		last = place_of(plot, next);
		fprintf(file, "%g %g\n", last, next->value);
	}
	fprintf(file, "END\n");
}

static void move_to_end(const char **names, uint32_t n, const char *name)
{
	const char *swap;
	uint32_t i;

	for (i = 0; i + 1 < n; i++)
		if (!strcmp(names[i], name)) {
			swap = names[i];
			names[i] = names[i + 1];
			names[i + 1] = swap;
		}
}

/* The systems that the panel shows, as they come, the limit last and on top. */
static uint32_t find_curves(const struct plot *plot, enum test_kind test,
			    const char **names)
{
	uint32_t n = 0, i, k;

	for (i = 0; i < plot->n; i++) {
		if (plot->points[i].test != test)
			continue;
		for (k = 0; k < n; k++)
			if (!strcmp(names[k], plot->points[i].system))
				break;
		if (k == n && n < MAX_CURVES)
			names[n++] = plot->points[i].system;
	}
	move_to_end(names, n, "limit");
	return n;
}

static void print_panel(FILE *file, const struct plot *plot, const struct panel *panel)
{
	const char *names[MAX_CURVES];
	uint32_t n = find_curves(plot, panel->test, names);
	uint32_t i;

	for (i = 0; i < n; i++)
		print_curve(file, plot, panel->test, names[i], i);
	fprintf(file, "set title '%s' font ',16'\n", panel->title);
	fprintf(file, "set ytics (%s)\n", panel->tics);
	print_sizes(file, plot, panel->test);
	fprintf(file, "plot ");
	for (i = 0; i < n; i++) {
		fprintf(file, "%s$curve%u using 1:2 with linespoints ", i ? ", \\\n  " : "", i);
		print_style(file, names[i], i);
		fprintf(file, " title '%s' noenhanced", names[i]);
	}
	fprintf(file, "\n");
}

/* Within quotes of gnuplot's; a file may say anything. */
static void print_quoted(FILE *file, const char *text)
{
	putc('\'', file);
	for (; *text; text++) {
		if (*text == '\'')
			putc('\'', file);
		if ((unsigned char)*text >= 0x20)
			putc(*text, file);
	}
	putc('\'', file);
}

void plot_script(FILE *file, const struct plot *plot)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(panels); i++)
		n += has_test(plot, panels[i].test);
	fprintf(file, "set encoding utf8\n"
		"set terminal svg size %d,%u background rgb 'white' font 'sans-serif,14'\n"
		"set multiplot layout %u,1 title ", PANEL_WIDTH,
		n * PANEL_HEIGHT + 40, n);
	print_quoted(file, plot->title);
	fprintf(file, " font ',15' noenhanced\n"
		"set lmargin at screen 0.09\nset rmargin at screen 0.76\n"
		"set logscale x 2\nset logscale y 10\nset mytics 10\n"
		"set grid xtics ytics lc rgb '#cccccc' lw 1\n"
		"set xlabel 'message size'\nset offsets graph 0.02, graph 0.02, 0, 0\n"
		"set key at screen 0.775, graph 1 left top Left reverse spacing 1.05 "
		"samplen 3.5 font ',12' maxcols 1\n");
	for (i = 0; i < ARRAY_SIZE(panels); i++)
		if (has_test(plot, panels[i].test))
			print_panel(file, plot, &panels[i]);
	fprintf(file, "unset multiplot\n");
}
