// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work queue entries of any content, which change while they are taken, from posting
 * to the receiver's memory.
 */
#include "fuzz_core.h"

#define MOST_RUNS	20000

/* A word, without the byte that would pass for one of another's memory. */
static void entry_bytes(struct fuzz *f, uint8_t *p, size_t n)
{
	size_t i;

	fuzz_bytes(f, p, n);
	for (i = 0; i < n; i++)
		if (p[i] == SECRET)
			p[i]++;
}

static void fill_fragments(struct fuzz *f, struct hamlyn_fragment *to, uint32_t n,
			   uint64_t *length)
{
	uint32_t i;

	*length = 0;
	for (i = 0; i < n; i++) {
		uint32_t tag = fuzz_below(f, CORE_TAGS + 1);
		uint64_t edge = tag < CORE_TAGS ? core.tags[tag].length : 0;
		struct hamlyn_fragment g = {
			.tag = tag,
			.reserved = fuzz_u8(f) == 0xff,
			.offset = not_secret(fuzz_number(f, edge)),
			.length = not_secret(fuzz_number(f, edge)),
		};

		to[i] = g;
		*length += g.length;
	}
}

/* As a sender that knows one of the keys would make it, but for the details. */
static void shaped(struct fuzz *f, struct hamlyn_trb *trb, uint8_t *tail, size_t room)
{
	uint8_t how = fuzz_u8(f);
	uint32_t n = how & 1 ? fuzz_below(f, HAMLYN_MAX_FRAGMENTS + 2) : 0;
	uint64_t length;

	*trb = (struct hamlyn_trb) {
		.host = how & 2 ? CORE_HOST : fuzz_u8(f),
		.slot = fuzz_below(f, CORE_SLOTS + 1),
		.key = CORE_KEY,
		.offset = fuzz_number(f, CORE_AREA),
		.length = fuzz_number(f, how & 4 ? core.nic.packet_size : room),
		.meta_index = how & 8 ? HAMLYN_META_FAST : fuzz_below(f, 5),
		.delta = how & 16 ? fuzz_u32(f) : 0,
		.flags = how & 32 ? fuzz_u8(f) & 0x1f : 0,
		.meta_length = how & 64 ? fuzz_u8(f) % 64 : 0,
		.fragments = (uint16_t)n,
		.ticket = how & 128 ? fuzz_below(f, 4) : 0,
	};
	if (trb->flags & HAMLYN_TRB_FAST)
		trb->word = fuzz_u64(f);
	if (trb->meta_length) {
		tail += HAMLYN_TRB_METADATA_SPACE;
		room -= HAMLYN_TRB_METADATA_SPACE;
	}
	if (n > room / sizeof(struct hamlyn_fragment))
		return;
	if (n) {
		fill_fragments(f, (void *)tail, n, &length);
		if (!(how & 4))
			trb->length = length;
	}
}

static void post(struct fuzz *f, uint32_t position)
{
	size_t size = core.t.entry_size;
	uint8_t *entry = core.wq + (position & core.t.mask) * size;
	struct hamlyn_trb *trb = (void *)entry;

	memset(entry, 0x42, size);
	if (fuzz_u8(f) & 1)
		entry_bytes(f, entry, size);
	else
		shaped(f, trb, entry + sizeof(*trb), size - sizeof(*trb));
	trb->sequence = position + 1;
}

/* Only what was posted, and the rest is not touched. */
static void run(struct fuzz *f, uint32_t posted)
{
	uint32_t runs, budget, sent;
	int64_t bytes;

	for (runs = 0; hml_tx_pending(&core.t) && runs < MOST_RUNS; runs++) {
		const struct hamlyn_trb *entry = NULL;

		budget = 1 + fuzz_below(f, 16);
		bytes = 1 + fuzz_u16(f);
		core.control.consumer = fuzz_u8(f) & 3 ? core.nq.cursor :
							  core.control.consumer;
		/* Nobody waits longer than a second for having guessed. */
		core_now_ns += 1ULL << 31;
		tamper.on = true;
		hml_guard_paused(&core.nic, &core.t.sender.guard);
		if (fuzz_u8(f) & 1)
			entry = hml_tx_plain(&core.t);
		if (entry && hml_tx_run_plain(&core.nic, &core.t, entry)) {
			tamper.on = false;
			continue;
		}
		sent = hml_tx_run(&core.nic, &core.t, budget, &bytes);
		tamper.on = false;
		MUST(sent <= budget);
		if (!sent)
			break;
		MUST((int32_t)(posted - core.t.head) >= 0 || tamper.next);
	}
	MUST(runs < MOST_RUNS);
}

static void check_status(uint32_t first, uint32_t told)
{
	static const int32_t allowed[] = {
		0, -EINVAL, -ENXIO, -ERANGE, -ENOKEY, -EHOSTUNREACH,
	};
	uint32_t i, k;

	MUST(core.status.head.completed == core.t.head || told);
	MUST(core.status.head.failed == core.stats.failed);
	MUST(core.t.head - first ==
	     core.stats.failed + core.stats.messages);
	for (i = 0; i < CORE_WQ; i++) {
		for (k = 0; k < FUZZ_COUNT(allowed) - 1; k++)
			if (core.status.of[i] == allowed[k])
				break;
		MUST(core.status.of[i] == allowed[k]);
	}
	MUST(!core.status.head.need_kick);
	MUST(core.stats.packets == core.placed + core_rejects());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	uint32_t round, n, i, first, start, posted;

	core_make(&f, fuzz_hash(data, size, 1));
	first = core.t.head;
	for (i = 0; i < CORE_WQ; i++)
		((struct hamlyn_trb *)(core.wq + i * core.t.entry_size))->sequence =
			first - CORE_WQ;
	posted = first;
	start = core.nq.cursor;
	core.link.down = fuzz_u8(&f) == 0xff;
	for (round = 0; round < 4; round++) {
		n = 1 + fuzz_below(&f, CORE_WQ);
		for (i = 0; i < n && posted - core.t.head < CORE_WQ; i++)
			post(&f, posted++);
		run(&f, posted);
		if (core.t.busy)
			break;
	}
	check_status(first, core.t.busy);
	core_check(start);
	return 0;
}
