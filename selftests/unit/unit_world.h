/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole core between two hosts: for the unit tests of what takes both a
 * sender and a receiver. The fabric is the user-space home's, with a route to
 * either host.
 */
#ifndef HML_UNIT_WORLD_H
#define HML_UNIT_WORLD_H

#include "unit.h"

static struct hml_nic *world_route(u32 host);

#undef hml_port_route
#define hml_port_route(nic, to)	world_route(to)

#include "tx.c"
#include "rx.c"
#include "notify.c"
#include "guard.c"
#include "link.c"

#define WORLD_HOSTS	2
#define WORLD_SLOTS	4	/* slot 0 is never made */
#define WORLD_AREA	4096
#define WORLD_BASE	512	/* of the message area */
#define WORLD_LENGTH	2048
#define WORLD_META	4	/* metadata entries of each slot */
#define WORLD_NQ	256
#define WORLD_WQ	16
#define WORLD_ENTRY	1024
#define WORLD_PACKET	64
#define WORLD_KEY	0x1234567890abcdefULL
#define WORLD_TICKET	0xfedcba0987654321ULL	/* the slots' ticket key */

struct world_host {
	struct hml_nic nic;
	struct hml_link link;
	struct hml_slot slots[WORLD_SLOTS];
	struct unit_nq nq;
	u8 *area[WORLD_SLOTS];
	struct hamlyn_metadata *entries[WORLD_SLOTS];
};

struct world_sender {
	struct hml_bucket bucket;
	struct hml_nic *nic;
	struct hml_terminus t;
	struct hml_stats stats;
	struct hamlyn_wq_control wq;
	struct hml_ticket tickets[4];
	struct hml_view tags[4];
	u8 *entries;
};

static struct world_host hosts[WORLD_HOSTS];
static struct world_sender snd;

/* Packets that a home was told of as discarded, the last one in full. */
static u32 world_rejected;
static u32 world_wakes;

static struct hml_nic *world_route(u32 host)
{
	return host < WORLD_HOSTS ? &hosts[host].nic : NULL;
}

void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender)
{
	assert_non_null(nic);
	assert_non_null(h);
	assert_non_null(sender);
	assert_in_range(reason, 0, HAMLYN_REJECT_REASONS - 1);
	(void)slot;
	world_rejected++;
}

/* Keys that its users have had. */
static u64 world_known;

bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender)
{
	(void)nic;
	(void)sender;
	return world_known && h->key == world_known;
}

void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq)
{
	(void)port;
	world_wakes++;
	nq->armed = 0;
}

static inline void world_slot(struct world_host *host, u32 number)
{
	struct hml_slot *slot = &host->slots[number];

	host->area[number] = unit_alloc(WORLD_AREA);
	host->entries[number] = unit_zalloc(WORLD_META *
					    sizeof(struct hamlyn_metadata));
	*slot = (struct hml_slot) {
		.live = 1,
		.meta_count = WORLD_META,
		.key = WORLD_KEY,
		.data = {
			.mem = unit_ref(host->area[number]),
			.base = WORLD_BASE,
			.length = WORLD_LENGTH,
		},
		.meta_mem = unit_ref(host->entries[number]),
		.nq = unit_ref(&host->nq.nq),
		.ticket_key = WORLD_TICKET,
		.number = number,
	};
}

static inline void world_sender_init(struct world_sender *s, u32 host)
{
	memset(s, 0, sizeof(*s));
	s->nic = &hosts[host].nic;
	s->entries = unit_zalloc(WORLD_WQ * WORLD_ENTRY);
	s->t.sender.stats = &s->stats;
	s->t.sender.guard.bucket = &s->bucket;
	s->t.sender.pid = 77;
	s->t.wq = &s->wq;
	s->t.entries = s->entries;
	s->t.status = unit_zalloc(sizeof(*s->t.status) + WORLD_WQ * sizeof(s32));
	s->t.mask = WORLD_WQ - 1;
	s->t.entry_size = WORLD_ENTRY;
	s->t.entry_shift = __builtin_ctz(WORLD_ENTRY);
	s->t.tags = s->tags;
	s->t.tag_count = ARRAY_SIZE(s->tags);
	s->t.tickets = s->tickets;
	s->t.ticket_count = ARRAY_SIZE(s->tickets);
}

static inline void world_sender_free(struct world_sender *s)
{
	free(s->t.status);
	free(s->entries);
}

static inline int world_setup(void **state)
{
	u32 i, k;

	(void)state;
	memset(hosts, 0, sizeof(hosts));
	for (i = 0; i < WORLD_HOSTS; i++) {
		struct world_host *host = &hosts[i];

		host->nic.host = i;
		host->nic.packet_size = WORLD_PACKET;
		host->nic.link = &host->link;
		host->nic.port.slots = unit_ref(host->slots);
		host->nic.port.slot_stride = sizeof(host->slots[0]);
		host->nic.port.max_slots = WORLD_SLOTS;
		unit_nq_init(&host->nq, WORLD_NQ, 0);
		for (k = 1; k < WORLD_SLOTS; k++)
			world_slot(host, k);
	}
	world_sender_init(&snd, 0);
	world_rejected = 0;
	world_wakes = 0;
	world_known = 0;
	unit_now_ns = 1000 * UNIT_SECOND;
	return 0;
}

static inline int world_teardown(void **state)
{
	u32 i, k;

	(void)state;
	world_sender_free(&snd);
	for (i = 0; i < WORLD_HOSTS; i++) {
		unit_nq_free(&hosts[i].nq);
		for (k = 0; k < WORLD_SLOTS; k++) {
			free(hosts[i].area[k]);
			free(hosts[i].entries[k]);
		}
	}
	return 0;
}

/* For slot 1 of the other host, with the right key. */
static inline struct hamlyn_trb world_request(u64 length)
{
	return (struct hamlyn_trb) {
		.host = 1,
		.slot = 1,
		.key = WORLD_KEY,
		.length = length,
	};
}

/* The payload is byte after byte of the message: i, or what follows from it. */
static inline u8 world_byte(u64 i)
{
	return i * 5 + 1;
}

static inline void world_post(struct world_sender *s, const struct hamlyn_trb *trb)
{
	u8 *entry = s->entries + (s->wq.producer & s->t.mask) * WORLD_ENTRY;
	u64 i;

	assert_true(s->wq.producer - s->t.status->completed < WORLD_WQ);
	memcpy(entry, trb, sizeof(*trb));
	for (i = 0; i < trb->length && i < WORLD_ENTRY - sizeof(*trb); i++)
		entry[sizeof(*trb) + i] = world_byte(i);
	((struct hamlyn_trb *)entry)->sequence = ++s->wq.producer;
}

/* Up to @budget packets, or all that there is to send. Returns what it sent. */
static inline u32 world_run(struct world_sender *s, u32 budget)
{
	s64 bytes = INT64_MAX;

	return hml_tx_run(s->nic, &s->t, budget, &bytes);
}

/* Send one message, all of it. Returns its status. */
static inline s32 world_send(struct world_sender *s, const struct hamlyn_trb *trb)
{
	u32 position = s->wq.producer;

	world_post(s, trb);
	world_run(s, UINT32_MAX);
	assert_int_equal(s->t.status->completed, s->wq.producer);
	return ((s32 *)(s->t.status + 1))[position & s->t.mask];
}

static inline u32 world_told(u32 host)
{
	return hosts[host].nq.nq.cursor;
}

/* Nothing but the message of that length at that offset is in the slot. */
static inline void world_assert_landed(u32 host, u32 slot, u64 offset, u64 length)
{
	const u8 *area = hosts[host].area[slot];
	u64 i;

	for (i = 0; i < length; i++)
		assert_int_equal(area[WORLD_BASE + offset + i], world_byte(i));
	assert_true(unit_all(area, UNIT_GUARD, WORLD_BASE + offset));
	assert_true(unit_all(area + WORLD_BASE + offset + length, UNIT_GUARD,
			     WORLD_AREA - WORLD_BASE - offset - length));
}

static inline void world_clear(u32 host, u32 slot)
{
	memset(hosts[host].area[slot], UNIT_GUARD, WORLD_AREA);
}

/* Neither bytes nor words of the NICs' have changed, anywhere. */
static inline void world_assert_nothing_landed(void)
{
	u32 i, k;

	for (i = 0; i < WORLD_HOSTS; i++) {
		assert_int_equal(world_told(i), 0);
		assert_int_equal(hosts[i].nq.ring->lost, 0);
		for (k = 1; k < WORLD_SLOTS; k++) {
			struct hamlyn_metadata *m = hosts[i].entries[k];
			u32 n;

			world_assert_landed(i, k, 0, 0);
			for (n = 0; n < WORLD_META; n++)
				assert_int_equal(m[n].accumulator, 0);
		}
	}
}

static inline u64 world_slot_rejects(void)
{
	u64 sum = 0;
	u32 i, k, n;

	for (i = 0; i < WORLD_HOSTS; i++)
		for (k = 0; k < WORLD_SLOTS; k++)
			for (n = 0; n < HAMLYN_REJECT_REASONS; n++)
				sum += hosts[i].slots[k].rejects[n];
	return sum;
}

#endif /* HML_UNIT_WORLD_H */
