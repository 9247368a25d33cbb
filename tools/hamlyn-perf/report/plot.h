/* SPDX-License-Identifier: GPL-2.0-only */
/* Diagrams of latency and bandwidth over message size, drawn by gnuplot. */
#ifndef HAMLYN_PERF_PLOT_H
#define HAMLYN_PERF_PLOT_H

#include <stdio.h>

#include "measure/plan.h"

#define PLOT_NAME	32
#define PLOT_MAX_POINTS	(SYSTEMS_MAX * PLAN_MAX_POINTS)

struct plot_point {
	char system[PLOT_NAME];
	enum test_kind test;
	size_t size;
	double value;
};

struct plot {
	char title[300];
	struct plot_point points[PLOT_MAX_POINTS];
	uint32_t n;
};

/* Before anything is measured: is gnuplot there, and can @file be written? */
int plot_ready(const char *file);
/* The last value of a system, test and size is the one that counts. */
int plot_add(struct plot *plot, const char *system, enum test_kind test, size_t size,
	     double value);
int plot_draw(const struct plot *plot, const char *file);
int plot_plan(const struct plan *plan, const char *file);

/* plot_script.c: what gnuplot is told. */
void plot_script(FILE *file, const struct plot *plot);

#endif /* HAMLYN_PERF_PLOT_H */
