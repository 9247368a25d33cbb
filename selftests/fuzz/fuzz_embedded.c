// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sequences of all calls of the embedded device, with any arguments. What must be
 * refused is reckoned anew here; what is sent lands inside of what its ticket is for,
 * and nowhere else; a ticket is void when its slot was rekeyed or destroyed.
 */
#include <sys/uio.h>

#include "fuzz_device.h"

#define AREAS		3
#define NQS		2
#define SLOTS		4
#define TERMINI		2
#define LOW_TAGS	8
#define TICKETS		8
#define MOST_AREA	16384
#define STEPS		60

struct area {
	struct h_area *a;
	uint8_t shadow[MOST_AREA];
	size_t length;
	uint32_t users;
};

struct slot {
	struct h_slot *s;
	struct h_slot_attr at;
	uint32_t area, meta_area, nq;
	uint32_t generation;
	uint64_t length;
};

struct ticket {
	struct h_ticket k;
	uint32_t slot, generation;
	bool valid;		/* the slot was there when it was made */
	struct h_terminus *imported;
};

static struct h_dev *dev;
static struct area areas[AREAS];
static struct h_nq *nqs[NQS];
static uint32_t nq_users[NQS];
static struct slot slots[SLOTS];
static struct h_terminus *termini[TERMINI];
static struct ticket tickets[TICKETS];
static bool down;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	dev = fuzz_open_device("embedded");
	return 0;
}

static bool in_range(uint64_t length, uint64_t base, uint64_t bytes)
{
	return (__uint128_t)base + bytes <= length;
}

/* Areas are as they were, but for @n bytes from @from on of one, and entries of another. */
static void check_areas(const struct slot *s, uint64_t from, uint64_t n)
{
	uint32_t i;

	for (i = 0; i < AREAS; i++) {
		struct area *a = &areas[i];
		uint8_t *now;

		if (!a->a)
			continue;
		now = h_area_addr(a->a);
		if (s && s->at.area == a->a)
			memcpy(a->shadow + from, now + from, n);
		if (s && s->at.meta_area == a->a)
			memcpy(a->shadow + s->at.meta_base, now + s->at.meta_base,
			       s->at.meta_count * sizeof(struct hamlyn_metadata));
		MUST(!memcmp(a->shadow, now, a->length));
	}
}

/* ---- areas and queues ---------------------------------------------------- */

static void area_step(struct fuzz *f)
{
	struct area *a = &areas[fuzz_below(f, AREAS)];
	size_t length = fuzz_number(f, MOST_AREA - 4096);
	uint32_t flags = fuzz_u8(f);
	int err;

	if (a->a) {
		err = h_area_remove(a->a);
		MUST(err == (a->users ? -EBUSY : 0));
		if (!err)
			a->a = NULL;
		return;
	}
	flags = flags > 250 ? flags : 0;
	err = h_area_alloc_flags(dev, length, flags, &a->a);
	MUST(!err == !!a->a);
	if (err)
		return;
	MUST(length && !(flags & ~HAMLYN_AREA_HUGE));
	a->length = h_area_length(a->a);
	MUST(a->length >= length && a->length - length < 4096);
	a->users = 0;
	if (a->length > MOST_AREA) {
		MUST(!h_area_remove(a->a));
		a->a = NULL;
		return;
	}
	memset(a->shadow, 0, sizeof(a->shadow));
}

static void nq_step(struct fuzz *f)
{
	uint32_t i = fuzz_below(f, NQS), entries = (uint32_t)fuzz_number(f, 16);
	struct hamlyn_nq_entry e;
	int err;

	if (!nqs[i]) {
		if (fuzz_u8(f) & 1)
			entries = 1u << entries % 8;
		/* Those that are valid and large are only slow. */
		if (entries > 4096 && !(entries & (entries - 1)))
			return;
		err = h_nq_create(dev, entries, &nqs[i]);
		MUST(!err == (entries >= 2 && entries <= 4096 &&
			      !(entries & (entries - 1))));
		return;
	}
	if (fuzz_u8(f) & 1) {
		err = h_recv(nqs[i], &e);
		MUST(err == 0 || err == 1 || err == -EOVERFLOW);
		h_nq_lost(nqs[i]);
		return;
	}
	err = h_nq_destroy(nqs[i]);
	MUST(err == (nq_users[i] ? -EBUSY : 0));
	if (!err)
		nqs[i] = NULL;
}

/* ---- slots --------------------------------------------------------------- */

static bool slot_is_right(const struct h_slot_attr *at, uint64_t *length)
{
	uint64_t room;

	if (!at->area || !at->meta_area != !at->meta_count || at->mode > 2 ||
	    (at->mode && !at->meta_area) ||
	    at->flags & ~(HAMLYN_SLOT_KEY_GIVEN | HAMLYN_SLOT_TICKET_ONLY))
		return false;
	room = h_area_length(at->area);
	if (at->base > room)
		return false;
	*length = at->length ? at->length : room - at->base;
	if (!in_range(room, at->base, *length))
		return false;
	if (!at->meta_area)
		return true;
	return in_range(h_area_length(at->meta_area), at->meta_base,
			(uint64_t)at->meta_count * HAMLYN_METADATA_SIZE) &&
	       !(((uintptr_t)h_area_addr(at->meta_area) + at->meta_base) %
		 HAMLYN_METADATA_SIZE);
}

static void slot_make(struct fuzz *f, struct slot *s)
{
	uint32_t area = fuzz_below(f, AREAS), meta = fuzz_below(f, AREAS);
	uint32_t nq = fuzz_below(f, NQS);
	uint8_t how = fuzz_u8(f);
	int err;

	s->at = (struct h_slot_attr) {
		.area = areas[area].a,
		.base = how & 1 ? fuzz_number(f, areas[area].length) : 0,
		.length = how & 2 ? fuzz_number(f, areas[area].length) : 512,
		.meta_area = how & 4 ? areas[meta].a : NULL,
		.meta_base = how & 8 ? fuzz_number(f, 4096) : 2048,
		.meta_count = how & 4 ? 1 + fuzz_below(f, 8) : how == 0x80,
		.mode = how & 16 ? fuzz_below(f, 4) : 0,
		.flags = how & 32 ? fuzz_u8(f) & 7 : 0,
		.nq = how & 64 ? nqs[nq] : NULL,
		.key = fuzz_u8(f),
	};
	if (how & 8 && s->at.meta_count == 8)
		s->at.meta_count = fuzz_u32(f);
	err = h_slot_create(dev, &s->at, &s->s);
	MUST(!err == !!s->s);
	MUST(!err == slot_is_right(&s->at, &s->length));
	if (err)
		return;
	s->area = area;
	s->meta_area = s->at.meta_area ? meta : AREAS;
	s->nq = s->at.nq ? nq : NQS;
	areas[area].users++;
	if (s->meta_area < AREAS)
		areas[meta].users++;
	if (s->nq < NQS)
		nq_users[nq]++;
}

static void slot_end(struct slot *s)
{
	MUST(!h_slot_destroy(s->s));
	s->s = NULL;
	s->generation++;
	areas[s->area].users--;
	if (s->meta_area < AREAS)
		areas[s->meta_area].users--;
	if (s->nq < NQS)
		nq_users[s->nq]--;
}

static void slot_step(struct fuzz *f)
{
	struct slot *s = &slots[fuzz_below(f, SLOTS)];
	struct hamlyn_stats stats;

	if (!s->s) {
		slot_make(f, s);
		return;
	}
	switch (fuzz_u8(f) & 3) {
	case 0:
		slot_end(s);
		break;
	case 1:
		MUST(!h_slot_rekey(s->s));
		if (!s->at.mode)
			s->generation++;
		break;
	default:
		MUST(!h_slot_stats(s->s, &stats));
		h_slot_entry_arm(s->s, fuzz_u8(f));
		check_areas(s, 0, 0);
	}
}

/* ---- tickets ------------------------------------------------------------- */

static void grant(struct fuzz *f, struct slot *s, struct ticket *t)
{
	uint64_t base = fuzz_number(f, s->length), length = fuzz_number(f, s->length);
	uint32_t index = fuzz_below(f, 10);
	int err;

	err = h_slot_entry_grant(s->s, index, base, length, &t->k);
	MUST(!err == (s->at.mode && index < s->at.meta_count && base <= s->length &&
		      in_range(s->length, base, length)));
	t->valid = !err;
	check_areas(s, 0, 0);
}

static void ticket_step(struct fuzz *f)
{
	uint32_t i = fuzz_below(f, SLOTS), index;
	struct ticket *t = &tickets[fuzz_below(f, TICKETS)];
	struct h_terminus *terminus = termini[fuzz_below(f, TERMINI)];
	struct slot *s = &slots[i];
	uint64_t base, length;
	int err, fd;

	if (t->imported || !s->s)
		return;
	t->slot = i;
	t->generation = s->generation;
	t->valid = false;
	switch (fuzz_u8(f) % 3) {
	case 0:
		grant(f, s, t);
		return;
	case 1:
		base = fuzz_number(f, s->length);
		length = fuzz_number(f, s->length);
		index = fuzz_u8(f) & 1 ? fuzz_below(f, 10) : HAMLYN_META_FAST;
		err = h_slot_ticket(s->s, base, length, index, &t->k);
		MUST(err || in_range(s->length, base, length));
		t->valid = !err;
		return;
	}
	if (!terminus)
		return;
	base = fuzz_number(f, s->length);
	length = fuzz_number(f, s->length);
	err = h_slot_ticket_fd(s->s, base, length, &fd);
	MUST(!err == (base <= s->length && in_range(s->length, base, length)));
	if (err)
		return;
	err = h_terminus_import(terminus, fd, &t->k);
	close(fd);
	t->valid = !err;
	t->imported = err ? NULL : terminus;
}

static void forget_imported(const struct h_terminus *of)
{
	uint32_t i;

	for (i = 0; i < TICKETS; i++)
		if (tickets[i].imported == of)
			tickets[i] = (struct ticket) {};
}

/* ---- sending ------------------------------------------------------------- */

static const struct h_area *bound_to(const struct h__terminus_full *f, uint32_t tag)
{
	return tag < f->area_room ? f->areas[tag] : NULL;
}

static void terminus_step(struct fuzz *f)
{
	uint32_t i = fuzz_below(f, TERMINI), area = fuzz_below(f, AREAS);
	struct h_terminus_attr at = { 0 };
	uint64_t base, length;
	int err;

	if (!termini[i]) {
		at.entries = 1u << fuzz_below(f, 14);
		at.entry_size = 1u << fuzz_below(f, 14);
		at.flags = fuzz_u8(f) & 1;
		err = h_terminus_create(dev, &at, &termini[i]);
		MUST(!err == (at.entries >= 2 && at.entries <= SHM_MAX_WQ_ENTRIES &&
			      at.entry_size >= 128 &&
			      at.entry_size <= SHM_MAX_ENTRY_SIZE));
		return;
	}
	if (fuzz_u8(f) & 1) {
		struct h__terminus_full *full = (void *)termini[i];
		uint32_t tag = fuzz_below(f, LOW_TAGS + 1), k;

		/* Now and then one far from the others, or none. */
		if (tag == LOW_TAGS)
			tag = fuzz_below(f, HAMLYN_MAX_TAGS + 64);
		base = fuzz_number(f, areas[area].length);
		length = fuzz_number(f, areas[area].length);
		for (k = 0; k < AREAS; k++)
			areas[k].users -= areas[k].a && bound_to(full, tag) == areas[k].a;
		err = h_terminus_bind(termini[i], tag, areas[area].a, base, length);
		MUST(err || tag < HAMLYN_MAX_TAGS);
		if (!err && areas[area].a)
			MUST(in_range(areas[area].length, base, length));
		for (k = 0; k < AREAS; k++)
			areas[k].users += areas[k].a && bound_to(full, tag) == areas[k].a;
		return;
	}
	for (area = 0; area < AREAS; area++) {
		struct h__terminus_full *full = (void *)termini[i];
		uint32_t k;

		for (k = 0; k < full->area_room; k++)
			areas[area].users -= areas[area].a &&
					     full->areas[k] == areas[area].a;
	}
	forget_imported(termini[i]);
	MUST(!h_terminus_destroy(termini[i]));
	termini[i] = NULL;
}

/* Where data is sent from: our own memory, or a part of an area. */
static const char *source(struct fuzz *f, size_t *length)
{
	static const char own[4200];
	const struct area *a = &areas[fuzz_below(f, AREAS)];
	uint32_t base = fuzz_u16(f);

	if (fuzz_u8(f) & 1 && a->a && base < a->length) {
		*length = *length % (a->length - base + 1);
		return (const char *)h_area_addr(a->a) + base;
	}
	*length %= sizeof(own);
	return own;
}

static void send_step(struct fuzz *f)
{
	struct h_terminus *terminus = termini[fuzz_below(f, TERMINI)];
	struct ticket *t = &tickets[fuzz_below(f, TICKETS)];
	const struct slot *s = &slots[t->slot];
	struct iovec iov[HAMLYN_MAX_FRAGMENTS + 1];
	struct h_msg m = { .ticket = &t->k };
	uint8_t how = fuzz_u8(f);
	uint64_t length;
	int64_t ret;
	bool valid;
	int i;

	if (!terminus || !t->valid || (t->imported && t->imported != terminus))
		return;
	m.length = fuzz_number(f, t->k.length);
	m.offset = how & 1 ? fuzz_number(f, t->k.length) : 0;
	m.data = source(f, &m.length);
	length = m.length;
	if (how & 2) {
		m.iov = iov;
		m.iovcnt = (int)fuzz_below(f, FUZZ_COUNT(iov) + 1);
		for (i = 0, length = 0; i < m.iovcnt; i++) {
			iov[i].iov_len = fuzz_u16(f);
			iov[i].iov_base = (void *)source(f, &iov[i].iov_len);
			length += iov[i].iov_len;
		}
	}
	m.delta = how & 4 ? fuzz_u8(f) : 0;
	m.meta = "012345678901234567890123456789012345678901234567890123456789abcdef";
	m.meta_length = how & 8 ? fuzz_u8(f) % 66 : 0;
	m.flags = how & 16 ? fuzz_u8(f) & 7 : 0;
	m.word = how & 32 ? fuzz_u8(f) : 0;
	valid = s->s && s->generation == t->generation && !down;
	if (how & 64 && !m.iov && !m.offset && !m.delta && !m.flags && !m.word)
		ret = h_send_msg(terminus, &t->k, m.data, m.length, m.meta,
				 m.meta_length);
	else
		ret = h_send(terminus, &m);
	if (ret >= 0)
		MUST(h_send_done(terminus, ret));
	if (ret < 0 || !valid)
		check_areas(NULL, 0, 0);
	else
		check_areas(s, s->at.base + t->k.base + m.offset, length);
}

/* ---- the device ---------------------------------------------------------- */

static void device_step(struct fuzz *f)
{
	struct hamlyn_nic_set set = {
		.size = sizeof(set), .flags = fuzz_u8(f), .state = fuzz_below(f, 4),
		.watchdog_ms = fuzz_u32(f),
	};
	struct hamlyn_audit_entry audit[4];
	struct hamlyn_query query;
	struct hamlyn_stats stats;
	uint64_t sequence = fuzz_number(f, 1024);
	char text[HAMLYN_EXPLAIN_BYTES];

	switch (fuzz_u8(f) & 3) {
	case 0:
		/* A watchdog depends on the clock: whether it can be set is tested. */
		if (!h_nic_set(dev, &set)) {
			MUST(set.flags < 8 && set.state <= HAMLYN_NIC_DOWN &&
			     set.watchdog_ms <= HAMLYN_MAX_WATCHDOG_MS);
			if (set.flags & HAMLYN_NIC_SET_STATE)
				down = set.state == HAMLYN_NIC_DOWN;
			set.flags = HAMLYN_NIC_SET_WATCHDOG;
			set.watchdog_ms = 0;
			MUST(!h_nic_set(dev, &set));
		}
		break;
	case 1:
		MUST(h_audit(dev, audit, fuzz_below(f, 5), &sequence) <= 4);
		break;
	case 2:
		MUST(!h_query(dev, &query));
		MUST(!h_dev_stats(dev, &stats));
		break;
	default:
		memset(text, 1, sizeof(text));
		h_explain(dev, text, fuzz_below(f, HAMLYN_EXPLAIN_BYTES) + 1);
		MUST(memchr(text, 0, sizeof(text)));
	}
}

static void clean_up(void)
{
	struct hamlyn_nic_set up = { .size = sizeof(up), .flags = HAMLYN_NIC_SET_STATE };
	uint32_t i;

	for (i = 0; i < SLOTS; i++)
		if (slots[i].s)
			slot_end(&slots[i]);
	for (i = 0; i < TERMINI; i++)
		if (termini[i])
			MUST(!h_terminus_destroy(termini[i]));
	for (i = 0; i < NQS; i++)
		if (nqs[i])
			MUST(!h_nq_destroy(nqs[i]));
	for (i = 0; i < AREAS; i++)
		if (areas[i].a)
			MUST(!h_area_remove(areas[i].a));
	memset(areas, 0, sizeof(areas));
	memset(nqs, 0, sizeof(nqs));
	memset(nq_users, 0, sizeof(nq_users));
	memset(termini, 0, sizeof(termini));
	memset(slots, 0, sizeof(slots));
	memset(tickets, 0, sizeof(tickets));
	MUST(!h_nic_set(dev, &up));
	down = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const steps[])(struct fuzz *f) = {
		area_step, nq_step, slot_step, slot_step, terminus_step, ticket_step,
		ticket_step, send_step, send_step, send_step, device_step,
	};
	struct fuzz f = { data, size };
	int n;

	for (n = 0; f.left && n < STEPS; n++) {
		steps[fuzz_below(&f, FUZZ_COUNT(steps))](&f);
		check_areas(NULL, 0, 0);
	}
	clean_up();
	return 0;
}
