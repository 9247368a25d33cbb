/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What test_xfer and test_med have in common (L 4.1): three phases, 1-to-1, all-to-1 and
 * all-to-all, of messages that all processes can work out from the seed, so that the
 * receiver knows what must arrive.
 */
#ifndef HAMLYN_AM_TORTURE_H
#define HAMLYN_AM_TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct torture_message - a message, made of the seed, its phase, source and number
 * @source: process
 * @number: counts from 0 in each phase
 * @dest: process
 * @kind: any number
 * @size: bytes
 * @at: alignment of the destination, less than LANDING_ROOM
 * @from: alignment of the source, less than LANDING_ROOM
 * @key: of its contents
 */
struct torture_message {
	int source, dest;
	uint32_t number;
	uint32_t kind;
	size_t size, at, from;
	uint64_t key;
};

/**
 * struct torture - a test
 * @name: of the program
 * @what: it does
 * @most: the largest size, known after am_enable(), with @given that of the command
 *	line or 0
 * @begin: after that
 * @send: a message
 * @idle: has all that this process began come to its end?
 * @arrived: messages from a process in this phase, of those that arrive
 * @arrives: does a message make something happen at its destination?
 * @phase_end: when the phase is over in all processes; die() if something is wrong
 */
struct torture {
	const char *name;
	const char *what;
	size_t (*most)(size_t given);
	void (*begin)(void);
	void (*send)(const struct torture_message *message);
	bool (*idle)(void);
	unsigned long *(*arrived)(int source);
	bool (*arrives)(const struct torture_message *message);
	void (*phase_end)(const char *who);
};

/* The name of the phase, as in the paper. */
const char *torture_phase(void);
/* The largest size. */
size_t torture_most(void);

/* The contents of a message, where it is sent from; with --corrupt not quite. */
void torture_fill(void *to, const struct torture_message *message);
/* die() if they are something else by now. */
void torture_check_source(const void *at, const struct torture_message *message);

/* A message of this phase. */
void torture_plan(int source, uint32_t number, struct torture_message *message);

/* "all-to-all, message 5 of process 2 to 3 (17 bytes)"; valid until the next call. */
const char *torture_text(const struct torture_message *message);

int torture_main(int argc, char **argv, const struct torture *torture);

#endif /* HAMLYN_AM_TORTURE_H */
