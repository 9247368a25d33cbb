// SPDX-License-Identifier: MIT
/* Tickets as values and as bytes (H 3.2). */
#include "low/device.h"

/*
 * Exported form, little endian: magic "HmTk", version, 3 zero bytes, host,
 * slot, key, base, length, meta_index, check word.
 */
#define TICKET_VERSION	1
#define TICKET_MAGIC	0x6b546d48u

static uint64_t get(const unsigned char **p, size_t bytes)
{
	uint64_t v = h__get(*p, bytes);

	*p += bytes;
	return v;
}

/* FNV-1a: tells a damaged ticket from a good one. It protects nothing. */
uint32_t h__check_word(const unsigned char *p, size_t n)
{
	uint32_t h = 2166136261u;

	while (n--)
		h = (h ^ *p++) * 16777619u;
	return h;
}

void h_ticket_export(const struct h_ticket *k, void *bytes)
{
	unsigned char *p = bytes;

	p = h__put(p, TICKET_MAGIC, 4);
	p = h__put(p, TICKET_VERSION, 4);
	p = h__put(p, k->host, 4);
	p = h__put(p, k->slot, 4);
	p = h__put(p, k->key, 8);
	p = h__put(p, k->base, 8);
	p = h__put(p, k->length, 8);
	p = h__put(p, k->meta_index, 4);
	h__put(p, h__check_word(bytes, H_TICKET_BYTES - 4), 4);
}

int h_ticket_import(const void *bytes, size_t length, struct h_ticket *k)
{
	const unsigned char *p = bytes;

	if (length < H_TICKET_BYTES || get(&p, 4) != TICKET_MAGIC)
		return -EINVAL;
	if (get(&p, 4) != TICKET_VERSION)
		return -EPROTO;
	k->host = get(&p, 4);
	k->slot = get(&p, 4);
	k->key = get(&p, 8);
	k->base = get(&p, 8);
	k->length = get(&p, 8);
	k->meta_index = get(&p, 4);
	k->flags = 0;
	if (get(&p, 4) != h__check_word(bytes, H_TICKET_BYTES - 4))
		return -EINVAL;
	return 0;
}

int h_slot_ticket(const struct h_slot *s, uint64_t base, uint64_t length,
		  uint32_t meta_index, struct h_ticket *k)
{
	if (base > s->length)
		return -ERANGE;
	if (!length)
		length = s->length - base;
	if (length > s->length - base)
		return -ERANGE;
	if (meta_index == HAMLYN_META_FAST && s->mode != HAMLYN_SLOT_NORMAL)
		return -ERANGE;
	if (meta_index != HAMLYN_META_FAST && meta_index &&
	    meta_index >= s->meta_count)
		return -ERANGE;
	*k = (struct h_ticket) {
		.host = s->host,
		.slot = s->number,
		.key = s->mode == HAMLYN_SLOT_NORMAL || !s->meta_count ?
		       s->key : h__read_once(&h_slot_entry(s, meta_index)->key),
		.base = base,
		.length = length,
		.meta_index = meta_index,
	};
	return 0;
}

/* ---- tickets that are descriptors (H 6.5) ---- */

int h_slot_ticket_fd(struct h_slot *s, uint64_t base, uint64_t length, int *fd)
{
	int err;

	*fd = -1;
	if (base > s->length || length > s->length - base)
		return h__refuse(s->dev, -ERANGE,
				 "%llu bytes from %llu on of a message area of %llu",
				 (unsigned long long)length,
				 (unsigned long long)base,
				 (unsigned long long)s->length);
	if (!length)
		length = s->length - base;
	err = h__dev_lock(s->dev);
	if (err)
		return err;
	err = s->dev->ops->slot_ticket_fd(s, base, length, fd);
	h__unlock(&s->dev->lock);
	return err;
}

int h_terminus_import(struct h_terminus *t, int fd, struct h_ticket *k)
{
	uint32_t index;
	int err;

	*k = (struct h_ticket) {};
	err = h__dev_lock(t->dev);
	if (err)
		return err;
	err = t->dev->ops->terminus_import(t, fd, &index, k);
	h__unlock(&t->dev->lock);
	if (!err)
		k->flags = H_TICKET_IMPORTED | index;
	return err;
}

int h_terminus_drop(struct h_terminus *t, const struct h_ticket *k)
{
	int err;

	if (!h__ticket_imported(k))
		return h__refuse(t->dev, -EINVAL, "the ticket was not imported");
	err = h__dev_lock(t->dev);
	if (err)
		return err;
	err = t->dev->ops->terminus_drop(t, h__ticket_index(k));
	h__unlock(&t->dev->lock);
	return err;
}
