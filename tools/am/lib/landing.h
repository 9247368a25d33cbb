/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places where blocks of memory land, each among guard bytes that must not change. A
 * sender has some of its own in every process, so that it alone knows which are free.
 */
#ifndef HAMLYN_AM_LANDING_H
#define HAMLYN_AM_LANDING_H

#include <stdbool.h>
#include <stddef.h>

#define LANDING_EACH	4	/* places of a sender in a process */
#define LANDING_ROOM	64	/* a block begins at any of so many bytes of its place */

/**
 * struct landing - the places of all processes
 * @most: bytes of the largest block
 * @stride: bytes of a place
 * @base: of the places in this process
 * @bases: of those in the others
 * @busy: places of this process in the others, each a bit of one byte per process
 */
struct landing {
	size_t most, stride;
	unsigned char *base;
	unsigned long *bases;
	unsigned char *busy;
};

/* All processes. */
void landing_open(struct landing *landing, size_t most);
void landing_close(struct landing *landing);

/* Takes a free place in @dest; waits for one if need be. Return: its number. */
int landing_take(struct landing *landing, int dest);
void landing_free(struct landing *landing, int dest, int place);
/* Are all free? */
bool landing_idle(const struct landing *landing);

/* Where a block goes to in @dest, from this process; @at: less than LANDING_ROOM. */
void *landing_there(const struct landing *landing, int dest, int place, size_t at);
/* Where the block that @source sends to this process comes to. */
void *landing_here(const struct landing *landing, int source, int place, size_t at);

/*
 * A block has been looked at: die() if bytes next to it have changed, then put guard
 * bytes into its place. @who: for the message.
 */
void landing_wipe(const struct landing *landing, void *block, size_t n, const char *who);

/* die() if any byte of this process's places is no guard byte. */
void landing_check_all(const struct landing *landing, const char *who);

#endif /* HAMLYN_AM_LANDING_H */
