/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two processes with a Hamlyn endpoint each: for tests that time the parts of a
 * conversation themselves. A message says its number, and a value of the
 * sender's; it lies in its place of a ring in the receiver's area.
 */
#ifndef HAMLYN_PERF_DUO_H
#define HAMLYN_PERF_DUO_H

#include "load/endpoint.h"
#include "load/pair.h"

#define DUO_MIN		16	/* bytes of a message */
#define DUO_PLACES	1024	/* at most, and messages on their way */

struct duo {
	struct side *side;
	struct endpoint ep;
	size_t size;		/* of a message */
	size_t stride;
	uint32_t places;
	uint64_t sent;
	uint64_t taken;
};

int duo_open(struct duo *duo, struct side *side, size_t bytes);
int duo_layout(struct duo *duo, size_t size, uint32_t places);
int duo_close(struct duo *duo, int ret);
int duo_wrong(const struct duo *duo, uint64_t number);
uint64_t duo_kicks(struct duo *duo);

/* Nobody waits for room at the receiver here: at most @places are on their way. */
static inline int duo_send(struct duo *duo, uint64_t value)
{
	size_t place = duo->sent % duo->places * duo->stride;
	unsigned char *data = (unsigned char *)h_area_addr(duo->ep.out) + place;
	struct h_ticket ticket = duo->ep.peer;

	ticket.base += place;
	ticket.length = duo->size;
	memcpy(data, &duo->sent, sizeof(duo->sent));
	memcpy(data + 8, &value, sizeof(value));
	duo->sent++;
	return endpoint_send(&duo->ep, &ticket, data, duo->size) < 0 ? -1 : 0;
}

/* It has been announced: is it there, and the one that is due? */
static inline int duo_look(struct duo *duo, uint64_t *value)
{
	size_t place = duo->taken % duo->places * duo->stride;
	const unsigned char *data = (unsigned char *)h_area_addr(duo->ep.in) + place;
	uint64_t number;

	memcpy(&number, data, sizeof(number));
	memcpy(value, data + 8, sizeof(*value));
	if (__builtin_expect(number != duo->taken, 0))
		return duo_wrong(duo, number);
	duo->taken++;
	return 0;
}

static inline int duo_take(struct duo *duo, uint64_t *value)
{
	struct hamlyn_nq_entry entry;

	return endpoint_recv(&duo->ep, &entry) < 0 ? -1 : duo_look(duo, value);
}

#endif /* HAMLYN_PERF_DUO_H */
