/* SPDX-License-Identifier: GPL-2.0-only */
/* top in two parts: what is shown, and the screen that it is shown on. */
#ifndef HAMLYNCTL_TOP_H
#define HAMLYNCTL_TOP_H

#include "watch/sample.h"

struct top {
	struct netlink nl;
	struct sample now;
	enum counter sort;	/* COUNTERS: by what is pending */
	bool paused;
	bool keys;		/* there is no screen, but somebody at a keyboard */
};

/* Another sample, with its rates; 0 or -errno. */
int top_sample(struct top *top);
void top_next_sort(struct top *top);

enum top_style {
	TOP_PLAIN,
	TOP_HEAD,	/* names of columns */
};

/* Calls @line for each line of a picture, until it returns false. */
typedef bool (*top_line_fn)(void *arg, enum top_style style, const char *text);
/* @width: columns that there are; less than TOP_WIDE: without what matters least. */
#define TOP_WIDE	100
void top_paint(const struct top *top, int width, top_line_fn line, void *arg);

/* The live screen; status, or less than 0 if there can be none on this terminal. */
int top_screen(struct top *top, const struct options *options);

#endif /* HAMLYNCTL_TOP_H */
