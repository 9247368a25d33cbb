/* SPDX-License-Identifier: GPL-2.0-only */
/* Running gnuplot. */
#ifndef HAMLYN_AM_GNUPLOT_H
#define HAMLYN_AM_GNUPLOT_H

#include <stdio.h>

/*
 * Before anything is measured: is gnuplot there, and can @file be written? Return: NULL,
 * or what is wrong.
 */
const char *gnuplot_refusal(const char *file);

/* Runs gnuplot with what @script() writes; @file gets its SVG. die() if it fails. */
void gnuplot_draw(const char *file, void (*script)(FILE *to, const void *arg),
		  const void *arg);

#endif /* HAMLYN_AM_GNUPLOT_H */
