/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole core on one host, for the targets that give it requests and packets.
 *
 * Memory that others can write changes while the core reads it: the file is compiled
 * with -fsanitize-coverage=trace-loads, so that each load comes here first, and what
 * is loaded is rewritten, when and as the input says. A value that is checked and
 * then read a second time is another one by then. What the hook decides on are
 * addresses, so also plain accesses are seen, not only READ_ONCE().
 */
#ifndef HML_FUZZ_CORE_H
#define HML_FUZZ_CORE_H

#include "fuzz.h"
#include "guard.h"
#include "link.h"
#include "nic.h"
#include "notify.h"
#include "rx.h"
#include "tx.h"

static uint64_t core_now_ns = 1000000000ULL;
static struct hml_nic *core_route(uint32_t host);
static void core_xmit(struct hml_nic *to, const struct hamlyn_packet *h,
		      const struct hml_payload *payload, struct hml_sender *sender);

#define hml_port_now_ns(port)	((void)(port), core_now_ns)
#undef hml_port_route
#define hml_port_route(nic, to)	core_route(to)
#undef hml_port_carry
#define hml_port_carry(from, to, h, payload, sender) \
	core_xmit(to, h, payload, sender)

static bool core_xmit_plain(struct hml_nic *to, struct hml_single s, const void *flat,
			    struct hml_sender *sender);

#define hml_rx_plain	core_xmit_plain
#include "tx.c"
#undef hml_rx_plain
#include "rx.c"
#include "notify.c"
#include "guard.c"
#include "link.c"

#define CORE_HOST	7
#define CORE_SLOTS	6		/* the last one is LOCKED */
#define CORE_LOCKED	(CORE_SLOTS - 1)
#define CORE_AREA	1024
#define CORE_ENTRIES	6		/* metadata entries in memory, each slot's are some */
#define CORE_NQ		8
#define CORE_WQ		8
#define CORE_WQ_ENTRY	512
#define CORE_SOURCE	512
#define CORE_TAGS	8
#define CORE_KEY	0x1122334455667788ULL	/* what a sender may know */
#define CORE_TICKET	0x99aabbccddeeff00ULL

#define GUARD		0xa5
#define SECRET		0x5e		/* in what no fragment may reach */

struct core_memory {
	uint8_t area[CORE_SLOTS][CORE_AREA];
	struct hamlyn_metadata entries[CORE_SLOTS][CORE_ENTRIES];
};

static struct {
	struct hml_nic nic;
	struct hml_link link;
	struct hml_slot slots[CORE_SLOTS];
	struct hml_nq nq;
	struct hamlyn_nq_ring ring;
	struct hamlyn_nq_control control;
	struct hamlyn_nq_entry queue[CORE_NQ];
	struct core_memory memory;
	struct core_memory shadow;	/* as it was before the packet */
	uint8_t wq[CORE_WQ * CORE_WQ_ENTRY] __attribute__((aligned(64)));
	uint8_t source[CORE_TAGS][CORE_SOURCE];
	struct {
		struct hamlyn_terminus_status head;
		int32_t of[CORE_WQ];
	} status;
	struct hamlyn_wq_control control_wq;
	struct hml_terminus t;
	struct hml_stats stats;
	struct hml_bucket bucket;
	struct hml_ticket tickets[3];
	struct hml_view tags[CORE_TAGS];
	uint64_t placed;		/* packets */
	uint64_t rejected;
	uint64_t wakes;
	int reason;
} core;

static struct hml_nic *core_route(uint32_t host)
{
	return host == CORE_HOST ? &core.nic : NULL;
}

void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender)
{
	MUST(nic == &core.nic && sender == &core.t.sender);
	MUST(reason >= 0 && reason < HAMLYN_REJECT_REASONS);
	MUST(!slot || slot == &core.slots[h->slot]);
	core.rejected++;
	core.reason = reason;
}

bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender)
{
	MUST(nic == &core.nic && sender == &core.t.sender);
	return h->key % 5 == 1;
}

void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq)
{
	(void)port;
	core.wakes++;
	nq->armed = 0;
}

/* ---- memory that changes while it is read -------------------------------- */

#define TAMPERS	8

static struct {
	bool on;
	uint32_t loads;			/* since the last one that was rewritten */
	uint32_t next, count;
	struct {
		uint32_t skip;
		uint64_t value;
	} plan[TAMPERS];
} tamper;

static bool core_inside(const void *p, const void *base, size_t n)
{
	return (uintptr_t)p - (uintptr_t)base < n;
}

/* What fragments must not reach has a byte that nobody else has. */
static uint64_t not_secret(uint64_t v)
{
	uint8_t *b = (uint8_t *)&v;
	size_t i;

	for (i = 0; i < sizeof(v); i++)
		if (b[i] == SECRET)
			b[i]++;
	return v;
}

static __attribute__((no_sanitize("coverage")))
void tamper_load(void *p, size_t n)
{
	uint64_t value;
	bool metadata;

	if (!tamper.on || tamper.next == tamper.count)
		return;
	metadata = core_inside(p, core.memory.entries, sizeof(core.memory.entries));
	if (!metadata && !core_inside(p, core.wq, sizeof(core.wq)) &&
	    !core_inside(p, &core.control, sizeof(core.control)))
		return;
	if (tamper.loads++ != tamper.plan[tamper.next].skip)
		return;
	tamper.loads = 0;
	value = tamper.plan[tamper.next++].value;
	memcpy(p, &value, n);
	if (metadata)
		memcpy((char *)core.shadow.entries +
		       ((char *)p - (char *)core.memory.entries), &value, n);
}

#define TRACE_LOAD(n, type)						\
void __sanitizer_cov_load##n(type *p);					\
__attribute__((no_sanitize("coverage")))				\
void __sanitizer_cov_load##n(type *p)					\
{									\
	tamper_load(p, n);						\
}
TRACE_LOAD(1, uint8_t)
TRACE_LOAD(2, uint16_t)
TRACE_LOAD(4, uint32_t)
TRACE_LOAD(8, uint64_t)

void __sanitizer_cov_load16(__uint128_t *p);
void __sanitizer_cov_load16(__uint128_t *p)
{
	(void)p;
}

static void tamper_plan(struct fuzz *f)
{
	uint32_t i;

	memset(&tamper, 0, sizeof(tamper));
	tamper.count = fuzz_below(f, TAMPERS + 1);
	for (i = 0; i < tamper.count; i++) {
		tamper.plan[i].skip = fuzz_u8(f);
		tamper.plan[i].value = not_secret(fuzz_number(f, CORE_AREA));
	}
}

/* ---- the rules, told once more ------------------------------------------- */

static bool rule_metadata(const struct hml_slot *s, const struct hamlyn_packet *h)
{
	bool single = h->flags & HAMLYN_PACKET_SINGLE;
	bool silent = h->flags & HAMLYN_PACKET_NO_NOTIFY;

	if (silent && s->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT)
		return false;
	if (h->flags & HAMLYN_PACKET_FAST)
		return s->mode == HAMLYN_SLOT_NORMAL && single && !h->delta &&
		       !h->meta_length && h->meta_index == HAMLYN_META_FAST;
	if (s->meta_count)
		return h->meta_index < s->meta_count;
	return !h->meta_length && !h->meta_index &&
	       ((single && !h->delta) || silent);
}

static bool rule_key(const struct hml_slot *s, const struct hamlyn_packet *h)
{
	if (h->flags & HAMLYN_PACKET_TICKET)
		return h->ticket_key && h->ticket_key == s->ticket_key;
	if (s->flags & HAMLYN_SLOT_TICKET_ONLY)
		return false;
	return s->mode != HAMLYN_SLOT_NORMAL || h->key == s->key;
}

/* May it land, as far as the metadata entry's secondary tests have no say? */
static bool rule_admits(const struct hml_slot *s, const struct hamlyn_packet *h)
{
	return s && s->live && rule_key(s, h) &&
	       h->version == HAMLYN_PACKET_VERSION && !h->reserved &&
	       !(h->flags & ~HAMLYN_PACKET_FLAGS) &&
	       h->meta_length <= HAMLYN_MAX_METADATA &&
	       (__uint128_t)h->offset + h->length <= s->data.length &&
	       rule_metadata(s, h);
}

/* One shot: a message of one packet is alone in its entry. */
static bool rule_entry_open(uint32_t state, const struct hamlyn_packet *h)
{
	if (h->flags & HAMLYN_PACKET_SINGLE && !h->delta)
		return state == HAMLYN_META_ARMED;
	return state & HAMLYN_META_ARMED && !(state & HAMLYN_META_COMPLETE);
}

static bool rule_admits_second(const struct hamlyn_metadata *m, uint32_t mode,
			       const struct hamlyn_packet *h)
{
	return m->key && h->key == m->key && m->low <= m->high &&
	       h->offset >= m->low &&
	       (__uint128_t)h->offset + h->length <= m->high &&
	       (mode != HAMLYN_SLOT_PARANOID_ONE_SHOT || rule_entry_open(m->state, h));
}

/* ---- what a packet may change -------------------------------------------- */

static void check_areas(const struct hml_slot *slot, const struct hamlyn_packet *h)
{
	uint32_t i;

	for (i = 0; i < CORE_SLOTS; i++) {
		uint8_t *now = core.memory.area[i], *was = core.shadow.area[i];
		size_t from = 0, to = 0;

		if (slot == &core.slots[i]) {
			from = slot->data.base + h->offset;
			to = from + h->length;
			MUST(to <= CORE_AREA);
			MUST(!memchr(now + from, SECRET, to - from));
		}
		MUST(!memcmp(now, was, from));
		MUST(!memcmp(now + to, was + to, CORE_AREA - to));
		memcpy(was, now, CORE_AREA);
	}
}

/* Of the one entry that it names: what the NIC writes there, and nothing else. */
static void check_entry(const struct hamlyn_metadata *now, struct hamlyn_metadata *was,
			const struct hamlyn_packet *h, bool landed)
{
	struct hamlyn_metadata allowed = *was;

	if (!landed) {
		allowed.state = now->state;
		MUST(!memcmp(&allowed, now, sizeof(allowed)));
		*was = *now;
		return;
	}
	memcpy(allowed.user, now->user, h->meta_length);
	allowed.accumulator = now->accumulator;
	allowed.state = now->state;
	allowed.length = now->length;
	if (h->meta_length)
		allowed.meta_length = h->meta_length;
	MUST(!memcmp(&allowed, now, sizeof(allowed)));
	*was = *now;
}

static void check_entries(const struct hml_slot *slot, const struct hamlyn_packet *h,
			  bool landed)
{
	const size_t all = sizeof(core.memory.entries);
	struct hamlyn_metadata *now, *was;

	if (slot && slot->meta_count && h->meta_index < slot->meta_count) {
		size_t at = slot->meta_mem - (uintptr_t)core.memory.entries +
			    slot->meta_base + h->meta_index * sizeof(*now);

		MUST(at <= all - sizeof(*now));
		now = (void *)((char *)core.memory.entries + at);
		was = (void *)((char *)core.shadow.entries + at);
		check_entry(now, was, h, landed);
	}
	MUST(!memcmp(core.memory.entries, core.shadow.entries, all));
}

/*
 * A packet goes in, one that is plain on the short way. What comes of it is what the rules say, and
 * nothing besides: the short way may leave it at that, and refuses nothing. Has it landed?
 */
static bool core_receive(struct hml_nic *to, const struct hamlyn_packet *h,
			 const struct hml_payload *payload, const struct hml_single *plain,
			 struct hml_sender *sender)
{
	struct hml_slot *slot = h->slot < CORE_SLOTS ? &core.slots[h->slot] : NULL;
	const struct hamlyn_packet copy = *h;
	bool may = rule_admits(slot, h), tampered, second = true;
	uint64_t rejected = core.rejected, tampers = tamper.next;
	uint64_t told = sender->stats->notifications + sender->stats->overruns;
	bool landed, turned_back;

	if (may && slot->mode != HAMLYN_SLOT_NORMAL)
		second = rule_admits_second((struct hamlyn_metadata *)(uintptr_t)
					    (slot->meta_mem + slot->meta_base) +
					    h->meta_index, slot->mode, h);
	if (plain) {
		landed = hml_rx_plain(to, *plain, payload->flat, sender);
		MUST(core.rejected == rejected);
	} else {
		hml_rx(to, h, payload, sender);
		landed = core.rejected == rejected;
	}
	MUST(!memcmp(&copy, h, sizeof(copy)));
	core.placed += landed;
	MUST(core.rejected - rejected <= 1);
	/* What is written while the secondary tests read may change their outcome. */
	tampered = tamper.next != tampers;
	MUST(!landed || may);
	if (!tampered)
		MUST(landed == (may && second) || (plain && !landed));
	/* It had come in when the second look said no, and may be the last to leave. */
	turned_back = !landed && tampered && may &&
		      slot->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT;
	check_areas(landed ? slot : NULL, h);
	check_entries(landed || turned_back ? slot : NULL, h, landed);
	told = sender->stats->notifications + sender->stats->overruns - told;
	MUST(told <= (landed || turned_back));
	if (landed && (h->flags & HAMLYN_PACKET_NO_NOTIFY || !slot->nq))
		MUST(!told);
	else if (landed && slot->mode == HAMLYN_SLOT_NORMAL &&
		 h->flags & HAMLYN_PACKET_SINGLE && !h->delta)
		MUST(told == 1);
	/* Nobody knows its key. */
	MUST(!landed || h->slot != CORE_LOCKED);
	return landed;
}

static void core_packet(struct hml_nic *to, const struct hamlyn_packet *h,
			const struct hml_payload *payload, struct hml_sender *sender)
{
	core_receive(to, h, payload, NULL, sender);
}

/* A packet by a ticket is inside of what the ticket is for. */
static bool rule_ticket(const struct hamlyn_packet *h)
{
	uint32_t i;

	for (i = 0; i < FUZZ_COUNT(core.tickets); i++) {
		const struct hml_ticket *k = &core.tickets[i];

		if (k->key && k->key == h->ticket_key && k->slot == h->slot &&
		    k->host == h->host && h->offset >= k->base &&
		    (__uint128_t)h->offset + h->length <=
		    (__uint128_t)k->base + k->length)
			return true;
	}
	return false;
}

/* What tx.c makes of a request is a packet that may be. */
static void core_xmit(struct hml_nic *to, const struct hamlyn_packet *h,
		      const struct hml_payload *payload, struct hml_sender *sender)
{
	MUST(to == &core.nic && sender == &core.t.sender);
	MUST(h->version == HAMLYN_PACKET_VERSION && !h->reserved);
	MUST(h->length <= core.nic.packet_size && h->source == CORE_HOST);
	MUST(h->meta_length <= HAMLYN_MAX_METADATA);
	MUST(!(h->flags & ~HAMLYN_PACKET_FLAGS));
	MUST(!h->meta_length || payload->meta);
	MUST(!!h->ticket_key == !!(h->flags & HAMLYN_PACKET_TICKET));
	MUST(!h->ticket_key || rule_ticket(h));
	core_packet(to, h, payload, sender);
}

static bool core_xmit_plain(struct hml_nic *to, struct hml_single s, const void *flat,
			    struct hml_sender *sender)
{
	const struct hml_payload payload = { .meta = flat, .flat = flat };
	const struct hamlyn_packet h = hml_single_header(s);

	MUST(to == &core.nic && sender == &core.t.sender);
	MUST(h.length <= core.nic.packet_size && h.source == CORE_HOST && !h.meta_length);
	return core_receive(to, &h, &payload, &s, sender);
}

/* ---- making it ----------------------------------------------------------- */

static void core_slot(struct fuzz *f, uint32_t i, uint64_t locked)
{
	struct hml_slot *s = &core.slots[i];
	uint8_t how = fuzz_u8(f);

	*s = (struct hml_slot) {
		.live = i != 4,
		.mode = how % 3,
		.flags = how & 0x40 ? HAMLYN_SLOT_TICKET_ONLY : 0,
		.meta_count = (how >> 2) % 4,
		.key = CORE_KEY,
		.data = {
			.mem = (uintptr_t)core.memory.area[i],
			.base = fuzz_u8(f),
			.length = 1 + fuzz_below(f, CORE_AREA - 256),
		},
		.meta_mem = (uintptr_t)core.memory.entries[i],
		.meta_base = how & 0x10 ? sizeof(struct hamlyn_metadata) : 0,
		.nq = how & 0x80 ? HML_NQ_NONE : (uintptr_t)&core.nq,
		.ticket_key = how & 0x20 ? CORE_TICKET : 0,
		.number = i,
	};
	if (s->mode != HAMLYN_SLOT_NORMAL && !s->meta_count)
		s->meta_count = 1;
	if (!s->meta_count)
		s->meta_base = 0;
	if (i == CORE_LOCKED) {
		s->mode = HAMLYN_SLOT_NORMAL;
		s->key = locked;
		s->ticket_key = locked + 1;
	}
}

static void core_entry(struct fuzz *f, struct hamlyn_metadata *m)
{
	uint8_t how = fuzz_u8(f);

	m->key = how & 1 ? CORE_KEY : how & 2 ? fuzz_u64(f) : 0;
	m->low = how & 4 ? fuzz_number(f, CORE_AREA) : 0;
	m->high = how & 8 ? fuzz_number(f, CORE_AREA) : CORE_AREA;
	m->state = how & 16 ? HAMLYN_META_ARMED : how & 32 ? fuzz_u32(f) : 0;
	m->accumulator = how & 64 ? fuzz_u32(f) : 0;
}

static void core_terminus(struct fuzz *f)
{
	uint32_t size_shift = 7 + fuzz_below(f, 3), i;

	core.t.sender.stats = &core.stats;
	core.t.sender.guard.bucket = &core.bucket;
	core.t.wq = &core.control_wq;
	core.t.entries = core.wq;
	core.t.status = &core.status.head;
	core.t.mask = CORE_WQ - 1;
	core.t.entry_shift = size_shift;
	core.t.entry_size = 1u << size_shift;
	core.t.head = fuzz_u8(f) - 4u;
	core.status.head.completed = core.t.head;
	core.t.tags = core.tags;
	core.t.tag_count = FUZZ_COUNT(core.tags);
	core.t.tickets = core.tickets;
	core.t.ticket_count = FUZZ_COUNT(core.tickets);
	core.tickets[0] = (struct hml_ticket) {
		.key = CORE_TICKET, .host = CORE_HOST, .slot = fuzz_below(f, CORE_SLOTS),
		.base = fuzz_u8(f), .length = fuzz_u16(f),
	};
	core.tickets[2] = (struct hml_ticket) { .key = fuzz_u64(f), .host = fuzz_u8(f) };
	for (i = 0; i < CORE_TAGS; i++) {
		uint32_t base = fuzz_u8(f), length = fuzz_u8(f);

		core.tags[i] = (struct hml_view) {
			.mem = (uintptr_t)core.source[i], .base = base, .length = length,
		};
		memset(core.source[i], SECRET, sizeof(core.source[i]));
		memset(core.source[i] + base, 0x11 * (i + 1), length);
	}
}

/* @locked: a key that the input cannot know. */
static void core_make(struct fuzz *f, uint64_t locked)
{
	uint32_t start = fuzz_u8(f) - 8u, i, k;

	memset(&core, 0, sizeof(core));
	memset(core.memory.area, GUARD, sizeof(core.memory.area));
	core_now_ns += 1ULL << 40;
	core.nic.host = CORE_HOST;
	core.nic.packet_size = 1 + fuzz_u8(f);
	core.nic.guesses = fuzz_u8(f) & 1 ? 4 : 0;
	core.nic.link = &core.link;
	core.nic.port.slots = (uintptr_t)core.slots;
	core.nic.port.slot_stride = sizeof(core.slots[0]);
	core.nic.port.max_slots = CORE_SLOTS;
	core.ring.entries = CORE_NQ;
	core.nq = (struct hml_nq) {
		.cursor = start, .consumer = start, .mask = CORE_NQ - 1,
		.ring = (uintptr_t)&core.ring, .entries = (uintptr_t)core.queue,
		.control = (uintptr_t)&core.control,
	};
	core.control.consumer = start;
	for (i = 0; i < CORE_NQ; i++)
		core.queue[i].sequence = start - CORE_NQ;
	for (i = 0; i < CORE_SLOTS; i++) {
		core_slot(f, i, locked);
		for (k = 0; k < 3; k++)
			core_entry(f, &core.memory.entries[i][k]);
	}
	core_terminus(f);
	core.shadow = core.memory;
	tamper_plan(f);
}

/* ---- and what holds at the end ------------------------------------------- */

static uint64_t core_rejects(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		sum += core.stats.rejects[i];
	return sum;
}

static void core_check(uint32_t start)
{
	uint64_t reports, of_slots = 0;
	uint32_t i, k;

	reports = (uint32_t)(core.nq.cursor - start) - core.stats.notifications;
	MUST(core.nq.cursor - start >= core.stats.notifications);
	MUST(reports <= core.stats.overruns);
	MUST(core.ring.lost == (uint32_t)core.stats.overruns);
	MUST(core.ring.entries == CORE_NQ);
	MUST(core_rejects() == core.rejected + core.stats.rejects[HAMLYN_REJECT_DOWN]);
	for (i = 0; i < CORE_SLOTS; i++)
		for (k = 0; k < HAMLYN_REJECT_REASONS; k++)
			of_slots += core.slots[i].rejects[k];
	MUST(of_slots <= core.rejected);
	MUST(!memcmp(&core.shadow, &core.memory, sizeof(core.memory)));
}

#endif /* HML_FUZZ_CORE_H */
