// SPDX-License-Identifier: GPL-2.0-only
/* The live screen of top. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <ncurses.h>

#include "watch/top.h"

/*
 * A signal just before getch() does not end it: at most so long until it is seen. With no
 * keyboard there is nothing to wait in, and a shorter nap in its place.
 */
#define LOOK_MS		500
#define NAP_MS		100

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static bool draw_line(void *arg, enum top_style style, const char *text)
{
	int *row = arg;

	if (*row >= LINES)
		return false;
	if (style == TOP_HEAD)
		attron(A_REVERSE);
	mvaddnstr(*row, 0, text, COLS);
	if (style == TOP_HEAD) {
		hline(' ' | A_REVERSE, COLS);
		attroff(A_REVERSE);
	}
	(*row)++;
	return true;
}

static void draw(const struct top *top)
{
	int row = 0;

	erase();
	top_paint(top, COLS, draw_line, &row);
	refresh();
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int ms_until(uint64_t until, uint64_t now, int most)
{
	return until - now < (uint64_t)most ? (int)(until - now) : most;
}

/* Keys until it is time for the next picture; false: enough. */
static bool serve_keys(struct top *top, uint64_t until)
{
	uint64_t now;

	while (!interrupted) {
		now = now_ms();
		if (now >= until)
			return true;
		timeout(ms_until(until, now, LOOK_MS));
		switch (getch()) {
		case 'q':
		case 'Q':
			return false;
		case 's':
		case 'S':
			top_next_sort(top);
			break;
		case 'p':
		case 'P':
			top->paused = !top->paused;
			break;
		case KEY_RESIZE:
			break;
		case ERR:
			/* Time, a signal, or no keyboard: then do not spin. */
			if (!interrupted && now_ms() < until && now_ms() - now < 2)
				napms(ms_until(until, now, NAP_MS));
			continue;
		default:
			continue;
		}
		draw(top);
	}
	return false;
}

/* 0 or -errno */
static int run(struct top *top, const struct options *options)
{
	uint64_t i, next = now_ms();
	int err = top_sample(top);

	for (i = 0; !err; i++) {
		draw(top);
		if (options->count && i + 1 >= options->count)
			break;
		next += options->delay_ms;
		if (next < now_ms())
			next = now_ms();
		if (!serve_keys(top, next))
			break;
		if (!top->paused)
			err = top_sample(top);
	}
	return err;
}

/* A failure is told when the screen is gone, or it would be gone too. */
int top_screen(struct top *top, const struct options *options)
{
	struct sigaction action = { .sa_handler = on_signal };
	SCREEN *screen = newterm(NULL, stdout, stdin);
	const char *term = getenv("TERM");
	int err;

	if (!screen) {
		warn("no live screen: $TERM is \"%s\", which is not known here; batch mode instead",
		     term ? term : "");
		return -1;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGQUIT, &action, NULL);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	err = run(top, options);
	endwin();
	delscreen(screen);
	return err ? netlink_refused(&top->nl, "top", err) : STATUS_OK;
}
