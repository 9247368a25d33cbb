/* SPDX-License-Identifier: MIT */
/*
 * Processes that a parent creates, as PARMACS and the ANL macros have it.
 *
 * This is what the macros of c.m4.stache expand to; programs use those.
 */
#ifndef STACHE_PARMACS_H
#define STACHE_PARMACS_H

#include <stache.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * stache_parmacs_begin() - before main(): only node 0 goes on
 * @data: begin of the program's static data
 * @end: their end
 *
 * Calls stache_init(). The other nodes wait for stache_parmacs_create(), and end when node
 * 0 does.
 */
void stache_parmacs_begin(void *data, void *end);

/**
 * stache_parmacs_create() - have another node run a function
 * @function: of the program
 *
 * For node 0. The other node begins with the program's static data as they are here now,
 * whatever becomes of them after this call. At most as many as there are other nodes run at
 * a time, and a node whose function has called exit() runs no other; one more ends the
 * program with a message, as does a call on another node.
 */
void stache_parmacs_create(void (*function)(void));

/**
 * stache_parmacs_wait() - wait until functions have returned, or called exit(0)
 * @number: how many more
 *
 * For node 0; a call on another node ends the program with a message.
 */
void stache_parmacs_wait(unsigned int number);

/**
 * stache_parmacs_subscript() - next subscript of a loop that is shared
 * @name: of it
 * @last: last subscript, from 0
 * @threads: how many share it
 *
 * Return: the subscript; -1 when there are none left, after all threads were told so.
 */
int stache_parmacs_subscript(const void *name, int last, unsigned int threads);

/**
 * stache_parmacs_clock() - what time is it?
 *
 * Return: microseconds.
 */
unsigned long stache_parmacs_clock(void);

#ifdef __cplusplus
}
#endif

/* From the C library's and the linker's names of the program's static data. */
#define STACHE_PARMACS_MAIN	\
	extern char data_start[], _end[]; \
	__attribute__((constructor)) static void stache_parmacs_start_(void) \
	{ \
		stache_parmacs_begin(data_start, _end); \
	}

#endif /* STACHE_PARMACS_H */
