/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys of a process, and how they get to their places. */
#ifndef HAMLYN_AM_RADIX_H
#define HAMLYN_AM_RADIX_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct radix - the keys of this process
 * @from: keys of this pass
 * @to: where those of the next one arrive
 * @total: keys of all processes
 * @first: place of the first of this block among all keys
 * @mine: keys of this block
 * @shift: of this pass's digit
 * @mask: of this pass's digit
 * @received: keys that have arrived in @to in this pass
 */
struct radix {
	uint32_t *from, *to;
	unsigned long total, first, mine;
	unsigned int shift;
	uint32_t mask;
	unsigned long received;
};

static inline uint32_t radix_digit(const struct radix *radix, uint32_t key)
{
	return (key >> radix->shift) & radix->mask;
}

/* Is there a way of that name for keys to travel? */
bool radix_way_exists(const char *name);

/* All processes; @radix must stay where it is. */
void radix_open(struct radix *radix, unsigned long total, const char *way);

/*
 * Sends all keys to their places and waits until the own block is full. @places: of the
 * first own key of each digit, and is used up.
 */
void radix_coalesce(struct radix *radix, uint32_t *places);

/* What arrived is what the next pass begins with. */
void radix_swap(struct radix *radix);

#endif /* HAMLYN_AM_RADIX_H */
