// SPDX-License-Identifier: MIT
/* Metadata entries: the owner's side of the paranoid modes (H 2.4, 2.7). */
#include "low/device.h"

struct hamlyn_metadata *h_slot_entry(const struct h_slot *s, uint32_t index)
{
	struct hamlyn_metadata *entries;

	if (index >= s->meta_count)
		return NULL;
	entries = (void *)((char *)s->meta_area->addr + s->meta_base);
	return &entries[index];
}

int h__key(uint64_t *key)
{
	int err;

	do {
		err = h__random(key, sizeof(*key));
	} while (!err && !*key);
	return err;
}

static int new_key(struct hamlyn_metadata *m)
{
	uint64_t key;
	int err;

	err = h__key(&key);
	if (!err)
		h__write_once(&m->key, key);
	return err;
}

int h_slot_entry_arm(struct h_slot *s, uint32_t index)
{
	struct hamlyn_metadata *m = h_slot_entry(s, index);

	if (!m)
		return -ERANGE;
	h__write_once(&m->accumulator, 0);
	h__write_once(&m->length, 0);
	h__store_release(&m->state, HAMLYN_META_ARMED);		/* B10 */
	return 0;
}

int h_slot_entry_grant(struct h_slot *s, uint32_t index, uint64_t base,
		       uint64_t length, struct h_ticket *ticket)
{
	struct hamlyn_metadata *m = h_slot_entry(s, index);
	int err;

	if (s->mode == HAMLYN_SLOT_NORMAL)
		return -EINVAL;
	if (!m || base > s->length)
		return -ERANGE;
	if (!length)
		length = s->length - base;
	if (length > s->length - base)
		return -ERANGE;
	err = h_slot_entry_revoke(s, index);
	if (err)
		return err;
	h__write_once(&m->low, base);
	h__write_once(&m->high, base + length);
	err = new_key(m);
	if (err)
		return err;
	h_slot_entry_arm(s, index);
	return h_slot_ticket(s, base, length, index, ticket);
}

int h_slot_entry_revoke(struct h_slot *s, uint32_t index)
{
	struct hamlyn_metadata *m = h_slot_entry(s, index);

	if (!m)
		return -ERANGE;
	h__write_once(&m->key, 0);
	h__write_once(&m->state, 0);
	return 0;
}
