/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of the program: begin, end, and what they tell each other. */
#ifndef HAMLYN_AM_WORLD_H
#define HAMLYN_AM_WORLD_H

#include <stdbool.h>

/* Ends all of the program with status 1: the launcher sees that this process failed. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program if @ret is a negative errno. */
void must(int ret, const char *call);

/* As am_wait_for(), but it ends when another process is lost. */
#define WAIT_FOR(condition)						\
	do {								\
		while (!(condition))					\
			world_poll();					\
	} while (0)

void world_poll(void);

/* Joins the program, which must have from @least to @most processes (0: any number). */
void world_enable(const char *program, int least, int most);

/* All processes. Return: exit status. */
int world_disable(void);

void world_barrier(void);

/* Each process gives @n words; all[p * n + i] is word i of process p, everywhere. */
void world_share(const unsigned long *mine, int n, unsigned long *all);

/* Sums of @n words over all processes, everywhere. */
void world_sum(unsigned long *words, int n);

/* The same address or word from everybody: all[p] is what process p gave. */
void world_share_pointer(const void *mine, unsigned long *all);

/* Serves process 0 until it calls world_release(); all processes but 0 call it. */
void world_serve(void);
void world_release(void);

/* malloc() that does not fail. */
void *world_alloc(unsigned long bytes);

/* A result, as a line of JSON. */
void json_open(const char *test, unsigned long size);
void json_number(const char *key, double value);
void json_text(const char *key, const char *text);
void json_close(void);

#endif /* HAMLYN_AM_WORLD_H */
