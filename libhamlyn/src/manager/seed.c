// SPDX-License-Identifier: MIT
/*
 * Seeds (H 3.3): a ticket and what else the other end needs, as bytes.
 *
 * Little endian: magic "HmSd", version, kind, 2 zero bytes, the ticket in its
 * exported form, which has a check word of its own, entries, buffer, more, 4 zero
 * bytes and a check word.
 */
#include "manager/manager.h"

#define SEED_VERSION	2
#define SEED_MAGIC	0x6453486du

/* Where things are. */
#define KIND		5
#define TICKET		8
#define ENTRIES		(TICKET + H_TICKET_BYTES)
#define BUFFER		(ENTRIES + 4)
#define MORE		(BUFFER + 4)
#define CHECK		(H_SEED_BYTES - 4)

_Static_assert(MORE + 8 <= H_SEED_BYTES - 4, "a seed's bytes");

void h__seed_put(struct h_seed *seed, const struct h_seed_fields *f)
{
	unsigned char *p = seed->bytes;

	memset(p, 0, H_SEED_BYTES);
	h__put(p, SEED_MAGIC, 4);
	p[4] = SEED_VERSION;
	p[KIND] = (unsigned char)f->kind;
	h_ticket_export(&f->ticket, p + TICKET);
	h__put(p + ENTRIES, f->entries, 4);
	h__put(p + BUFFER, f->buffer, 4);
	h__put(p + MORE, f->more, 8);
	h__put(p + CHECK, h__check_word(p, CHECK), 4);
}

int h__seed_get(const struct h_seed *seed, uint32_t kind,
		struct h_seed_fields *f)
{
	const unsigned char *p = seed->bytes;

	if (h__get(p, 4) != SEED_MAGIC ||
	    h__get(p + CHECK, 4) != h__check_word(p, CHECK))
		return -EINVAL;
	if (p[4] != SEED_VERSION)
		return -EPROTO;
	if (p[KIND] != kind || h__get(p + KIND + 1, 2) || h__get(p + MORE + 8, 4))
		return -EINVAL;
	f->kind = kind;
	f->entries = (uint32_t)h__get(p + ENTRIES, 4);
	f->buffer = (uint32_t)h__get(p + BUFFER, 4);
	f->more = h__get(p + MORE, 8);
	return h_ticket_import(p + TICKET, H_TICKET_BYTES, &f->ticket);
}
