// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets with any header, for slots of any kind, whose metadata entries their owner
 * rewrites while they are read.
 */
#include "fuzz_core.h"

#define MOST_PACKETS	32

static struct hamlyn_packet header(struct fuzz *f)
{
	uint8_t how = fuzz_u8(f);
	struct hamlyn_packet h;

	if (how == 0xff) {
		fuzz_bytes(f, &h, sizeof(h));
	} else {
		h = (struct hamlyn_packet) {
			.version = how & 64 ? fuzz_u8(f) : HAMLYN_PACKET_VERSION,
			.flags = fuzz_u8(f) & (how & 128 ? 0xff : HAMLYN_PACKET_FLAGS),
			.meta_length = how & 1 ? fuzz_u8(f) : 0,
			.host = CORE_HOST,
			.source = fuzz_u8(f),
			.slot = fuzz_below(f, CORE_SLOTS + 1),
			.meta_index = how & 2 ? HAMLYN_META_FAST : fuzz_below(f, 5),
			.key = how & 4 ? fuzz_u64(f) : CORE_KEY,
			.offset = fuzz_number(f, CORE_AREA),
			.length = (uint32_t)fuzz_number(f, CORE_AREA),
			.delta = how & 8 ? fuzz_u32(f) : 0,
			.ticket_key = how & 16 ? CORE_TICKET : 0,
			.reserved = how & 32 ? fuzz_u8(f) & 1 : 0,
			.word = fuzz_u8(f),
		};
		if (how & 2)
			h.flags |= HAMLYN_PACKET_FAST | HAMLYN_PACKET_SINGLE;
	}
	return h;
}

/* As long as any that is let in. Its bytes are nobody's secret. */
static void payload_of(struct hml_payload *p, struct hml_piece pieces[3],
		       uint32_t length, struct fuzz *f)
{
	static uint8_t flat[CORE_AREA], meta[HAMLYN_MAX_METADATA];
	uint8_t how = fuzz_u8(f);
	uint32_t cut, skip;

	memset(flat, how, sizeof(flat));
	memset(meta, how | 1, sizeof(meta));
	if (how == SECRET)
		memset(flat, 0, sizeof(flat));
	*p = (struct hml_payload) { .meta = meta, .flat = flat };
	if (!(how & 1) || !length || length > CORE_AREA)
		return;
	/* In two pieces, the first of which begins before the packet. */
	cut = 1 + how % length;
	skip = how % 5;
	p->flat = NULL;
	p->skip = skip;
	p->piece = pieces;
	pieces[0] = (struct hml_piece) { (uintptr_t)flat - skip, 0, cut + skip };
	pieces[1] = (struct hml_piece) { (uintptr_t)flat, cut, length - cut };
	pieces[2] = (struct hml_piece) { 0, 0, ~0ULL };
}

/* Whoever owns the entries does that at any time. */
static void rewrite_entry(struct fuzz *f)
{
	uint32_t slot = fuzz_below(f, CORE_SLOTS), i = fuzz_below(f, CORE_ENTRIES);
	struct hamlyn_metadata *m = &core.memory.entries[slot][i];

	core_entry(f, m);
	core.shadow.entries[slot][i] = *m;
}

static void opens(struct fuzz *f)
{
	const struct hml_slot *slot = &core.slots[fuzz_below(f, CORE_SLOTS)];
	uint64_t key = fuzz_u8(f) & 1 ? CORE_KEY : CORE_TICKET;
	uint32_t index = fuzz_below(f, 6);
	bool ticket = fuzz_u8(f) & 1;
	int reject = hml_slot_opens(&core.nic, slot, key, index, ticket);

	MUST(reject >= -1 && reject < HAMLYN_REJECT_REASONS);
	MUST(reject >= 0 || (slot->live && slot != &core.slots[CORE_LOCKED]));
	if (reject < 0 && ticket)
		MUST(key == slot->ticket_key);
	else if (reject < 0 && slot->mode == HAMLYN_SLOT_NORMAL)
		MUST(key == slot->key && !(slot->flags & HAMLYN_SLOT_TICKET_ONLY));
	else if (reject < 0)
		MUST(index < slot->meta_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	struct hml_piece pieces[3];
	struct hml_payload payload;
	struct hamlyn_packet h;
	uint32_t i, start;

	core_make(&f, fuzz_hash(data, size, 2));
	start = core.nq.cursor;
	for (i = 0; f.left && i < MOST_PACKETS; i++) {
		uint8_t what = fuzz_u8(&f);

		if (what & 0x80)
			core.control.consumer = what & 0x40 ? core.nq.cursor :
							      fuzz_u32(&f);
		if ((what & 0x30) == 0x30)
			rewrite_entry(&f);
		h = header(&f);
		payload_of(&payload, pieces, h.length, &f);
		core.nq.armed = what & 1;
		core.t.sender.guessed = false;
		tamper.on = true;
		core_packet(&core.nic, &h, &payload, &core.t.sender);
		if (what & 2)
			opens(&f);
		tamper.on = false;
	}
	MUST(core.placed + core.rejected == i);
	core_check(start);
	return 0;
}
