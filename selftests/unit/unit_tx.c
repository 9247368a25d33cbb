// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sending: what core/tx.c refuses, what it gathers, how it segments, and how
 * it works through a work queue whose owner is hostile.
 */
#include "unit.h"

/*
 * The hostile owner. after_read() runs right after the core has read a word
 * with READ_ONCE(), at_barrier() after it has copied a request.
 */
static void (*after_read)(const volatile void *p);
static void (*at_barrier)(void);

#undef READ_ONCE
#define READ_ONCE(x) ({						\
	__typeof__(x) val_ = __atomic_load_n(&(x), __ATOMIC_RELAXED);	\
	if (after_read)							\
		after_read(&(x));					\
	val_;								\
})

#undef hml_barrier
#define hml_barrier() do {						\
	if (at_barrier)							\
		at_barrier();						\
} while (0)

/* Packets that a home is told of as not having left. */
static u32 nr_traced_down;

#undef hml_port_trace_down
#define hml_port_trace_down(nic, h, sender) do {			\
	assert_non_null(nic);						\
	assert_int_equal((h)->version, HAMLYN_PACKET_VERSION);		\
	assert_non_null(sender);					\
	nr_traced_down++;						\
} while (0)

/* A fabric that may be asked, and does not take everything at once. */
#undef HML_PORT_STALLS
#define HML_PORT_STALLS	1

/* A home that goes on when memory cannot be read. */
#undef HML_PORT_UNREADABLE
#define HML_PORT_UNREADABLE	1

#undef hml_port_direct
#define hml_port_direct(from, path)					\
	(!READ_ONCE((from)->link->doubts) && (path) == (from))

#undef hml_port_xmit
#define hml_port_xmit	fabric_takes

static u32 nr_refused;		/* packets that it does not take before it does */

static bool fabric_takes(struct hml_nic *from, hml_path_t path,
			 const struct hamlyn_packet *h,
			 const struct hml_payload *payload, struct hml_sender *sender);

#include "tx.c"

#define HOST		7
#define TAGS		8	/* as long as the table is */
#define PACKET		64
#define ENTRIES		8
#define ENTRY_SIZE	512
#define MEMORY		4096

struct sender {
	struct hml_nic nic;
	struct hml_link link;
	struct hml_terminus t;
	struct hml_view tags[TAGS];
	struct hml_stats stats;
	struct hamlyn_wq_control wq;
	u8 *entries;
	u8 *memory;		/* byte i is pattern(i); tag 0 is all of it */
};

/* What arrives at this program's own receiver. */
struct arrival {
	struct hamlyn_packet h;
	u8 data[PACKET];
	u8 meta[HAMLYN_MAX_METADATA];
	bool has_meta;
	u32 completed;		/* as the application saw it meanwhile */
	u32 to;
};

static struct arrival arrivals[64];
static u32 nr_arrivals;
static u32 unreadable;		/* which of them cannot be read, from 1 on */
static const struct hamlyn_terminus_status *watched;

/* What link.c and guard.c would say. */
static u32 link_state;
static bool paused;

u32 hml_link_state(const struct hml_nic *nic)
{
	assert_non_null(nic);
	return link_state;
}

bool hml_guard_paused(const struct hml_nic *nic, struct hml_guard *guard)
{
	assert_non_null(nic);
	assert_non_null(guard);
	return paused;
}

void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_sender *sender)
{
	struct arrival *a = &arrivals[nr_arrivals++];
	const struct hml_piece *piece = payload->piece;
	u64 skip = payload->skip;
	u32 i;

	assert_true(nr_arrivals <= ARRAY_SIZE(arrivals));
	assert_true(h->length <= PACKET);
	assert_non_null(sender->stats);
	memset(a, 0, sizeof(*a));
	a->h = *h;
	a->to = nic->host;
	a->has_meta = payload->meta;
	if (h->meta_length)
		memcpy(a->meta, payload->meta, h->meta_length);
	if (watched)
		a->completed = watched->completed;
	if (nr_arrivals == unreadable)
		sender->unreadable = true;
	if (payload->flat) {
		memcpy(a->data, payload->flat, h->length);
		return;
	}
	for (i = 0; i < h->length; i++) {
		while (skip == piece->length) {
			piece++;
			skip = 0;
		}
		a->data[i] = *(u8 *)hml_mem_at(&nic->port, piece->mem,
					       piece->offset + skip++);
	}
}

/* It has something to say against what goes to a slot with this number. */
static u32 refused_slot;

bool hml_rx_plain(struct hml_nic *nic, struct hml_single s, const void *flat,
		  struct hml_sender *sender)
{
	const struct hml_payload payload = { .flat = flat };
	const struct hamlyn_packet h = hml_single_header(s);

	if (s.slot == refused_slot)
		return false;
	hml_rx(nic, &h, &payload, sender);
	return true;
}

static bool fabric_takes(struct hml_nic *from, hml_path_t path,
			 const struct hamlyn_packet *h,
			 const struct hml_payload *payload, struct hml_sender *sender)
{
	if (nr_refused) {
		nr_refused--;
		return false;
	}
	hml_tx_local(from, path, h, payload, sender);
	return true;
}

static u8 pattern(u64 i)
{
	return i * 7 + i / 256;
}

static int setup(void **state)
{
	struct sender *s = unit_zalloc(sizeof(*s));
	u32 i;

	s->nic.host = HOST;
	s->nic.packet_size = PACKET;
	s->entries = unit_zalloc(ENTRIES * ENTRY_SIZE);
	s->memory = unit_zalloc(MEMORY);
	for (i = 0; i < MEMORY; i++)
		s->memory[i] = pattern(i);
	s->nic.link = &s->link;
	s->t.sender.stats = &s->stats;
	s->t.wq = &s->wq;
	s->t.entries = s->entries;
	s->t.status = unit_zalloc(sizeof(*s->t.status) + ENTRIES * sizeof(s32));
	s->t.mask = ENTRIES - 1;
	s->t.entry_size = ENTRY_SIZE;
	s->t.entry_shift = __builtin_ctz(ENTRY_SIZE);
	s->t.tags = s->tags;
	s->t.tag_count = TAGS;
	s->t.tags[0].mem = unit_ref(s->memory);
	s->t.tags[0].length = MEMORY;
	nr_arrivals = 0;
	unreadable = 0;
	nr_refused = 0;
	watched = s->t.status;
	after_read = NULL;
	at_barrier = NULL;
	link_state = HAMLYN_NIC_UP;
	paused = false;
	nr_traced_down = 0;
	refused_slot = HAMLYN_NONE;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct sender *s = *state;

	free(s->t.status);
	free(s->entries);
	free(s->memory);
	free(s);
	return 0;
}

static struct hamlyn_trb request(u64 length)
{
	struct hamlyn_trb trb = {
		.host = HOST,
		.slot = 3,
		.key = 0x1122334455667788ULL,
		.offset = 1000,
		.length = length,
		.meta_index = 5,
	};

	return trb;
}

static struct hamlyn_trb fast_request(u64 length)
{
	struct hamlyn_trb trb = request(length);

	trb.flags = HAMLYN_TRB_FAST;
	trb.meta_index = HAMLYN_META_FAST;
	trb.word = 0xfeedfacecafebeefULL;
	return trb;
}

static struct hamlyn_fragment fragment(u32 tag, u64 offset, u64 length)
{
	struct hamlyn_fragment f = {
		.tag = tag,
		.offset = offset,
		.length = length,
	};

	return f;
}

/* Begin a message of fragments. */
static int begin(struct sender *s, u64 length, const struct hamlyn_fragment *f,
		 u32 n)
{
	struct hamlyn_trb trb = request(length);

	trb.fragments = n;
	return hml_tx_begin(&s->nic, &s->t, &trb, NULL, f, n * sizeof(*f));
}

static void send_all(struct sender *s)
{
	while (s->t.busy)
		hml_tx_packet(&s->nic, &s->t);
}

/* With all the credit in the world. */
static u32 run(struct sender *s, u32 budget)
{
	s64 bytes = INT64_MAX;

	return hml_tx_run(&s->nic, &s->t, budget, &bytes);
}

static void *entry_at(struct sender *s, u32 position)
{
	return s->entries + (position & (ENTRIES - 1)) * ENTRY_SIZE;
}

static s32 status_of(struct sender *s, u32 position)
{
	return ((s32 *)(s->t.status + 1))[position & (ENTRIES - 1)];
}

/* Post a request with what stands behind it in the entry. */
static void post(struct sender *s, const struct hamlyn_trb *trb,
		 const void *tail, size_t bytes)
{
	u8 *entry = entry_at(s, s->wq.producer);

	memcpy(entry, trb, sizeof(*trb));
	if (bytes)
		memcpy(entry + sizeof(*trb), tail, bytes);
	((struct hamlyn_trb *)entry)->sequence = ++s->wq.producer;
}

static void post_plain(struct sender *s, u64 length)
{
	struct hamlyn_trb trb = request(length);

	post(s, &trb, s->memory, length);
}

static void post_malformed(struct sender *s)
{
	struct hamlyn_trb trb = request(0);

	trb.flags = 1U << 31;
	post(s, &trb, NULL, 0);
}

static void start_counting_at(struct sender *s, u32 n)
{
	s->wq.producer = n;
	s->t.head = n;
	s->t.status->completed = n;
}

/* ---- hml_view_covers() --------------------------------------------------- */

static void view_covers_itself_and_its_parts(void **state)
{
	(void)state;
	assert_true(hml_view_covers(10, 0, 10));
	assert_true(hml_view_covers(10, 0, 9));
	assert_true(hml_view_covers(10, 1, 9));
	assert_true(hml_view_covers(10, 9, 1));
	assert_true(hml_view_covers(10, 0, 0));
}

static void empty_range_at_the_end_is_covered_and_one_behind_is_not(void **state)
{
	(void)state;
	assert_true(hml_view_covers(10, 10, 0));
	assert_false(hml_view_covers(10, 11, 0));
	assert_false(hml_view_covers(10, ~0ULL, 0));
}

static void range_that_ends_one_byte_too_late_is_not_covered(void **state)
{
	(void)state;
	assert_false(hml_view_covers(10, 0, 11));
	assert_false(hml_view_covers(10, 1, 10));
	assert_false(hml_view_covers(10, 9, 2));
	assert_false(hml_view_covers(10, 10, 1));
}

static void range_whose_end_wraps_is_not_covered(void **state)
{
	(void)state;
	assert_false(hml_view_covers(10, ~0ULL, 1));
	assert_false(hml_view_covers(10, ~0ULL, 2));
	assert_false(hml_view_covers(10, 1, ~0ULL));
	assert_false(hml_view_covers(10, 5, ~0ULL - 4));
	assert_false(hml_view_covers(10, 1ULL << 63, 1ULL << 63));
}

static void empty_view_covers_only_the_empty_range_at_0(void **state)
{
	(void)state;
	assert_true(hml_view_covers(0, 0, 0));
	assert_false(hml_view_covers(0, 0, 1));
	assert_false(hml_view_covers(0, 1, 0));
	assert_false(hml_view_covers(0, ~0ULL, 0));
}

static void largest_view_has_the_same_edges(void **state)
{
	(void)state;
	assert_true(hml_view_covers(~0ULL, 0, ~0ULL));
	assert_true(hml_view_covers(~0ULL, 1, ~0ULL - 1));
	assert_true(hml_view_covers(~0ULL, ~0ULL - 1, 1));
	assert_true(hml_view_covers(~0ULL, ~0ULL, 0));
	assert_false(hml_view_covers(~0ULL, ~0ULL, 1));
	assert_false(hml_view_covers(~0ULL, 1, ~0ULL));
	assert_false(hml_view_covers(~0ULL - 1, 0, ~0ULL));
	assert_false(hml_view_covers(~0ULL - 1, ~0ULL, 0));
}

/* ---- check_trb() --------------------------------------------------------- */

static void ordinary_request_passes(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(100);

	assert_int_equal(check_trb(&s->nic, &trb), 0);
	trb.flags = HAMLYN_TRB_NO_NOTIFY;
	trb.delta = 77;
	trb.meta_length = 3;
	assert_int_equal(check_trb(&s->nic, &trb), 0);
}

static void each_unknown_flag_is_refused(void **state)
{
	struct sender *s = *state;
	u32 i;

	for (i = 0; i < 32; i++) {
		struct hamlyn_trb trb = request(0);

		trb.flags = 1U << i;
		if (trb.flags & HAMLYN_TRB_FLAGS)
			continue;
		assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
	}
}

static void longest_message_passes_and_one_byte_more_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(HAMLYN_MAX_MESSAGE);

	assert_int_equal(check_trb(&s->nic, &trb), 0);
	trb.length++;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
	trb.length = ~0ULL;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
}

static void metadata_of_60_bytes_passes_and_61_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(0);

	trb.meta_length = 60;
	assert_int_equal(check_trb(&s->nic, &trb), 0);
	trb.meta_length = 61;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
	trb.meta_length = 0xffff;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
}

static void sixteen_fragments_pass_and_17_are_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[17] = { 0 };
	struct hamlyn_trb trb = request(0);

	trb.fragments = 16;
	assert_int_equal(check_trb(&s->nic, &trb), 0);
	trb.fragments = 17;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
	trb.fragments = 0xffff;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
	assert_int_equal(begin(s, 0, f, 16), 0);
	send_all(s);
	assert_int_equal(begin(s, 0, f, 17), -EINVAL);
}

static void word_without_fast_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(0);

	trb.word = 1;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
	trb.word = 1ULL << 63;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
}

static void fast_request_of_one_packet_passes(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = fast_request(PACKET);

	assert_int_equal(check_trb(&s->nic, &trb), 0);
	trb.length = 0;
	trb.word = 0;
	assert_int_equal(check_trb(&s->nic, &trb), 0);
}

static void fast_request_longer_than_a_packet_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = fast_request(PACKET + 1);

	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
}

static void fast_request_with_a_metadata_entry_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = fast_request(0);

	trb.meta_index = 0;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
	trb.meta_index = HAMLYN_META_FAST - 1;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
}

static void fast_request_with_metadata_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = fast_request(0);

	trb.meta_length = 1;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
}

static void fast_request_with_a_group_share_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = fast_request(0);

	trb.delta = 1;
	assert_int_equal(check_trb(&s->nic, &trb), -EINVAL);
}

/* ---- take_fragment() ----------------------------------------------------- */

static void fragment_is_counted_from_the_base_of_its_area(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f = fragment(7, 3, 97);
	struct hml_piece p;

	s->t.tags[7].mem = 0x10000;
	s->t.tags[7].base = 0x500;
	s->t.tags[7].length = 100;
	assert_int_equal(take_fragment(&s->t, &f, &p), 0);
	assert_int_equal(p.mem, 0x10000);
	assert_int_equal(p.offset, 0x503);
	assert_int_equal(p.length, 97);
}

static void tag_that_no_terminus_has_is_refused(void **state)
{
	static const u32 tags[] = {
		HAMLYN_MAX_TAGS, HAMLYN_MAX_TAGS + 1, 1U << 16, 1U << 31, 0xffffffffU
	};
	struct sender *s = *state;
	struct hml_piece p;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		struct hamlyn_fragment f = fragment(tags[i], 0, 1);

		assert_int_equal(take_fragment(&s->t, &f, &p), -EINVAL);
	}
}

static void tag_without_an_area_is_refused(void **state)
{
	struct sender *s = *state;
	struct hml_piece p;
	u32 i;

	/* In its table, and beyond the end of it. */
	for (i = 1; i < HAMLYN_MAX_TAGS; i++) {
		struct hamlyn_fragment f = fragment(i, 0, 1);

		assert_int_equal(take_fragment(&s->t, &f, &p), -ENXIO);
		f.length = 0;
		assert_int_equal(take_fragment(&s->t, &f, &p), -ENXIO);
	}
}

static void terminus_without_a_table_has_no_tag(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f = fragment(0, 0, 1);
	struct hml_piece p;

	s->t.tags = NULL;
	s->t.tag_count = 0;
	assert_int_equal(take_fragment(&s->t, &f, &p), -ENXIO);
	f.tag = HAMLYN_MAX_TAGS;
	assert_int_equal(take_fragment(&s->t, &f, &p), -EINVAL);
}

static void each_reserved_bit_of_a_fragment_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f = fragment(0, 0, 1);
	struct hml_piece p;
	u32 i;

	for (i = 0; i < 32; i++) {
		f.reserved = 1U << i;
		assert_int_equal(take_fragment(&s->t, &f, &p), -EINVAL);
	}
}

static void fragment_outside_its_area_by_one_byte_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f;
	struct hml_piece p;

	f = fragment(0, 0, MEMORY);
	assert_int_equal(take_fragment(&s->t, &f, &p), 0);
	f = fragment(0, 0, MEMORY + 1);
	assert_int_equal(take_fragment(&s->t, &f, &p), -ERANGE);
	f = fragment(0, 1, MEMORY);
	assert_int_equal(take_fragment(&s->t, &f, &p), -ERANGE);
	f = fragment(0, MEMORY, 1);
	assert_int_equal(take_fragment(&s->t, &f, &p), -ERANGE);
	f = fragment(0, MEMORY, 0);
	assert_int_equal(take_fragment(&s->t, &f, &p), 0);
	f = fragment(0, MEMORY + 1, 0);
	assert_int_equal(take_fragment(&s->t, &f, &p), -ERANGE);
}

static void fragment_whose_end_wraps_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f;
	struct hml_piece p;

	f = fragment(0, ~0ULL, 2);
	assert_int_equal(take_fragment(&s->t, &f, &p), -ERANGE);
	f = fragment(0, 2, ~0ULL);
	assert_int_equal(take_fragment(&s->t, &f, &p), -ERANGE);
	/* It would wrap back to before the area once the base is added. */
	s->t.tags[0].base = 4096;
	f = fragment(0, ~0ULL - 4095, 1);
	assert_int_equal(take_fragment(&s->t, &f, &p), -ERANGE);
}

static struct hamlyn_fragment *victim;
static struct hamlyn_fragment replacement;

static void rewrite_victim(const volatile void *p)
{
	if (p == &victim->tag)
		victim->tag = replacement.tag;
	else if (p == &victim->reserved)
		victim->reserved = replacement.reserved;
	else if (p == &victim->offset)
		victim->offset = replacement.offset;
	else if (p == &victim->length)
		victim->length = replacement.length;
}

static void fragment_rewritten_behind_each_read_is_as_it_was_read(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f;
	struct hml_piece p;

	/* Every word is hostile from its second reading on. */
	victim = &f;
	replacement = fragment(0xffffffffU, MEMORY, ~0ULL);
	replacement.reserved = 1;
	after_read = rewrite_victim;
	f = fragment(0, 10, 20);
	assert_int_equal(take_fragment(&s->t, &f, &p), 0);
	assert_int_equal(p.mem, unit_ref(s->memory));
	assert_int_equal(p.offset, 10);
	assert_int_equal(p.length, 20);
	assert_memory_equal(&f, &replacement, sizeof(f));
}

/* ---- take_fragments() ---------------------------------------------------- */

static void fragments_that_add_up_are_taken_in_order(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[3] = {
		fragment(0, 100, 5), fragment(0, 0, 7), fragment(0, 200, 11),
	};
	u32 i;

	assert_int_equal(begin(s, 23, f, 3), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(s->t.message.pieces[i].offset, f[i].offset);
		assert_int_equal(s->t.message.pieces[i].length, f[i].length);
	}
}

static void fragments_that_miss_the_length_by_one_byte_are_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[2] = { fragment(0, 0, 5), fragment(0, 9, 7) };

	assert_int_equal(begin(s, 11, f, 2), -EINVAL);
	assert_int_equal(begin(s, 12, f, 2), 0);
	send_all(s);
	assert_int_equal(begin(s, 13, f, 2), -EINVAL);
	assert_int_equal(begin(s, 0, f, 2), -EINVAL);
}

static void fragments_whose_sum_wraps_are_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[3];

	s->t.tags[0].length = ~0ULL;
	f[0] = fragment(0, 0, ~0ULL);
	f[1] = fragment(0, 0, 2);
	assert_int_equal(begin(s, 1, f, 2), -EINVAL);
	f[0] = fragment(0, 0, 1);
	f[1] = fragment(0, 0, ~0ULL);
	f[2] = fragment(0, 0, 1);
	assert_int_equal(begin(s, 1, f, 3), -EINVAL);
	f[0] = fragment(0, 0, 1ULL << 63);
	f[1] = fragment(0, 0, 1ULL << 63);
	assert_int_equal(begin(s, 0, f, 2), -EINVAL);
	assert_false(s->t.busy);
}

static void more_fragments_than_fit_the_entry_are_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment *f = unit_zalloc(2 * sizeof(*f));
	struct hamlyn_trb trb = request(2);

	f[0] = fragment(0, 0, 1);
	f[1] = fragment(0, 5, 1);
	trb.fragments = 2;
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, f, 47), -EINVAL);
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, f, 48), 0);
	send_all(s);
	trb.fragments = 3;
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, f, 48), -EINVAL);
	trb.fragments = 1;
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, f, 0), -EINVAL);
	free(f);
}

static void empty_fragments_carry_nothing(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[6] = {
		fragment(0, MEMORY, 0), fragment(0, 50, 3), fragment(0, 0, 0),
		fragment(0, 9, 0), fragment(0, 70, 2), fragment(0, 1, 0),
	};

	assert_int_equal(begin(s, 5, f, 6), 0);
	/* No home is asked for nothing at the end of an area. */
	assert_int_equal(s->t.message.pieces[0].offset, 50);
	assert_int_equal(s->t.message.pieces[1].offset, 70);
	send_all(s);
	assert_int_equal(nr_arrivals, 1);
	assert_memory_equal(arrivals[0].data, s->memory + 50, 3);
	assert_memory_equal(arrivals[0].data + 3, s->memory + 70, 2);
}

static void only_empty_fragments_make_an_empty_message(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[2] = { fragment(0, 0, 0), fragment(0, 1, 0) };

	assert_int_equal(begin(s, 0, f, 2), 0);
	send_all(s);
	assert_int_equal(nr_arrivals, 1);
	assert_int_equal(arrivals[0].h.length, 0);
	assert_int_equal(begin(s, 1, f, 2), -EINVAL);
}

static void empty_fragment_is_checked_like_any_other(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[2] = { fragment(0, 0, 5), fragment(HAMLYN_MAX_TAGS, 0, 0) };

	assert_int_equal(begin(s, 5, f, 2), -EINVAL);
	f[1] = fragment(1, 0, 0);
	assert_int_equal(begin(s, 5, f, 2), -ENXIO);
	f[1] = fragment(0, MEMORY + 1, 0);
	assert_int_equal(begin(s, 5, f, 2), -ERANGE);
}

static void bad_fragment_is_refused_wherever_it_stands(void **state)
{
	struct sender *s = *state;
	u32 i, bad;

	for (bad = 0; bad < HAMLYN_MAX_FRAGMENTS; bad++) {
		struct hamlyn_fragment f[HAMLYN_MAX_FRAGMENTS];

		for (i = 0; i < HAMLYN_MAX_FRAGMENTS; i++)
			f[i] = fragment(0, i, 1);
		f[bad].offset = MEMORY;
		assert_int_equal(begin(s, HAMLYN_MAX_FRAGMENTS, f,
				       HAMLYN_MAX_FRAGMENTS), -ERANGE);
		assert_false(s->t.busy);
	}
}

static void fragments_changed_after_the_check_change_nothing(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[2] = { fragment(0, 10, 70), fragment(0, 0, 30) };

	assert_int_equal(begin(s, 100, f, 2), 0);
	f[0] = fragment(8, ~0ULL, ~0ULL);
	f[1] = fragment(9, ~0ULL, ~0ULL);
	/* Another binding is for messages that begin after it. */
	s->t.tags[0].length = 0;
	s->t.tags[0].mem = 0;
	send_all(s);
	assert_int_equal(nr_arrivals, 2);
	assert_memory_equal(arrivals[0].data, s->memory + 10, 64);
	assert_memory_equal(arrivals[1].data, s->memory + 74, 6);
	assert_memory_equal(arrivals[1].data + 6, s->memory, 30);
}

/* ---- fill_header(), hml_tx_begin() --------------------------------------- */

static void header_repeats_the_request(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(10);
	struct hamlyn_packet h;

	trb.meta_length = 12;
	h = header_of(&s->nic, &trb, 0);
	assert_int_equal(h.version, HAMLYN_PACKET_VERSION);
	assert_int_equal(h.flags, HAMLYN_PACKET_SINGLE);
	assert_int_equal(h.meta_length, 12);
	assert_int_equal(h.host, HOST);
	assert_int_equal(h.slot, 3);
	assert_int_equal(h.meta_index, 5);
	assert_int_equal(h.key, 0x1122334455667788ULL);
	assert_int_equal(h.offset, 1000);
	assert_int_equal(h.word, 0);
	assert_int_equal(h.reserved, 0);
	assert_int_equal(h.ticket_key, 0);
}

static void source_is_the_nic_and_not_what_the_request_says(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(0);
	struct hamlyn_packet h;

	trb.host = 99;
	h = header_of(&s->nic, &trb, 0);
	assert_int_equal(h.host, 99);
	assert_int_equal(h.source, HOST);
}

static void flags_of_the_request_become_flags_of_the_packet(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = fast_request(0);
	struct hamlyn_packet h;

	h = header_of(&s->nic, &trb, 0);
	assert_int_equal(h.flags, HAMLYN_PACKET_FAST | HAMLYN_PACKET_SINGLE);
	assert_int_equal(h.word, 0xfeedfacecafebeefULL);
	assert_int_equal(h.meta_index, HAMLYN_META_FAST);
	trb = request(0);
	trb.flags = HAMLYN_TRB_NO_NOTIFY;
	h = header_of(&s->nic, &trb, 0);
	assert_int_equal(h.flags, HAMLYN_PACKET_NO_NOTIFY | HAMLYN_PACKET_SINGLE);
	trb.flags = HAMLYN_TRB_QUIET;
	h = header_of(&s->nic, &trb, 0);
	assert_int_equal(h.flags, HAMLYN_PACKET_QUIET | HAMLYN_PACKET_SINGLE);
	trb.flags = HAMLYN_TRB_TICKET;
	h = header_of(&s->nic, &trb, 0x77);
	assert_int_equal(h.flags, HAMLYN_PACKET_TICKET | HAMLYN_PACKET_SINGLE);
	assert_int_equal(h.ticket_key, 0x77);
	trb.flags = HAMLYN_TRB_FLAGS;
	trb.length = PACKET + 1;
	h = header_of(&s->nic, &trb, 0x77);
	assert_int_equal(h.flags, HAMLYN_PACKET_FLAGS & ~HAMLYN_PACKET_SINGLE);
}

static void single_flag_is_set_up_to_one_packet_and_not_beyond(void **state)
{
	struct sender *s = *state;
	struct hamlyn_packet h;
	u64 length;

	for (length = 0; length <= 2 * PACKET; length++) {
		struct hamlyn_trb trb = request(length);

		h = header_of(&s->nic, &trb, 0);
		assert_int_equal(!!(h.flags & HAMLYN_PACKET_SINGLE),
				 length <= PACKET);
	}
}

static void inline_payload_must_fit_the_entry(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(33);

	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory, 32),
			 -EINVAL);
	assert_false(s->t.busy);
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory, 33), 0);
	assert_true(s->t.busy);
}

static void unknown_host_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(0);

	trb.host = HOST + 1;
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, NULL, 0),
			 -EHOSTUNREACH);
	assert_false(s->t.busy);
}

static void malformed_request_is_refused_and_leaves_the_terminus_idle(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(0);

	trb.flags = 0x80000000U;
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, NULL, 0), -EINVAL);
	assert_false(s->t.busy);
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(s->stats.packets, 0);
}

/* ---- hml_tx_packet(), advance() ------------------------------------------ */

static void message_becomes_packets_at_advancing_offsets(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(2 * PACKET + 10);
	u32 i;

	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory,
				      MEMORY), 0);
	send_all(s);
	assert_int_equal(nr_arrivals, 3);
	for (i = 0; i < 3; i++) {
		const struct hamlyn_packet *h = &arrivals[i].h;

		assert_int_equal(h->offset, 1000 + i * PACKET);
		assert_int_equal(h->length, i < 2 ? PACKET : 10);
		assert_int_equal(h->key, trb.key);
		assert_int_equal(h->slot, trb.slot);
		assert_int_equal(h->meta_index, trb.meta_index);
		assert_int_equal(h->flags, 0);
		assert_int_equal(arrivals[i].to, HOST);
		assert_memory_equal(arrivals[i].data, s->memory + i * PACKET,
				    h->length);
	}
	assert_int_equal(s->stats.packets, 3);
	assert_int_equal(s->stats.messages, 1);
}

static void deltas_add_up_to_the_share_modulo_2_to_the_32(void **state)
{
	static const u32 shares[] = { 0, 1, 2, 3, 1000, 0x80000000U, 0xffffffffU };
	struct sender *s = *state;
	u32 i, k, n;

	for (k = 0; k < ARRAY_SIZE(shares); k++) {
		for (n = 1; n <= 5; n++) {
			struct hamlyn_trb trb = request(n * PACKET);
			u32 sum = 0;

			nr_arrivals = 0;
			trb.delta = shares[k];
			assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL,
						      s->memory, MEMORY), 0);
			send_all(s);
			assert_int_equal(nr_arrivals, n);
			for (i = 0; i < n; i++) {
				sum += arrivals[i].h.delta;
				if (i < n - 1)
					assert_int_equal(arrivals[i].h.delta, 1);
			}
			assert_int_equal(sum, shares[k]);
		}
	}
}

static void metadata_goes_with_the_first_packet_only(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(3 * PACKET);
	u32 i;

	trb.meta_length = 60;
	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, s->memory + 2000,
				      s->memory, MEMORY), 0);
	send_all(s);
	assert_int_equal(nr_arrivals, 3);
	assert_int_equal(arrivals[0].h.meta_length, 60);
	assert_memory_equal(arrivals[0].meta, s->memory + 2000, 60);
	for (i = 1; i < 3; i++) {
		assert_int_equal(arrivals[i].h.meta_length, 0);
		assert_false(arrivals[i].has_meta);
	}
}

static void empty_message_is_one_empty_packet(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(0);

	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory, 0), 0);
	send_all(s);
	assert_int_equal(nr_arrivals, 1);
	assert_int_equal(arrivals[0].h.length, 0);
	assert_int_equal(arrivals[0].h.delta, 0);
	assert_int_equal(arrivals[0].h.flags, HAMLYN_PACKET_SINGLE);
}

static void message_of_whole_packets_has_no_empty_one_behind(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(2 * PACKET);

	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory,
				      MEMORY), 0);
	send_all(s);
	assert_int_equal(nr_arrivals, 2);
	assert_int_equal(arrivals[1].h.length, PACKET);
}

static void busy_ends_with_the_last_packet_and_not_before(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(2 * PACKET + 1);

	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory,
				      MEMORY), 0);
	hml_tx_packet(&s->nic, &s->t);
	assert_true(s->t.busy);
	hml_tx_packet(&s->nic, &s->t);
	assert_true(s->t.busy);
	assert_int_equal(s->stats.messages, 0);
	hml_tx_packet(&s->nic, &s->t);
	assert_false(s->t.busy);
	assert_int_equal(s->stats.messages, 1);
}

/* Fragments shorter and longer than a packet, and ends that coincide. */
static void packets_are_gathered_across_fragments(void **state)
{
	struct sender *s = *state;
	static const u32 lengths[] = { 1, 63, 64, 65, 200, 2, 3, 128, 10 };
	struct hamlyn_fragment f[ARRAY_SIZE(lengths)];
	u8 expected[1024];
	u32 at = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		f[i] = fragment(0, 300 * i + 17, lengths[i]);
		memcpy(expected + at, s->memory + 300 * i + 17, lengths[i]);
		at += lengths[i];
	}
	assert_int_equal(begin(s, at, f, ARRAY_SIZE(lengths)), 0);
	send_all(s);
	assert_int_equal(nr_arrivals, (at + PACKET - 1) / PACKET);
	for (i = 0; i < nr_arrivals; i++)
		assert_memory_equal(arrivals[i].data, expected + i * PACKET,
				    arrivals[i].h.length);
}

static void advance_moves_to_the_piece_that_the_next_byte_is_in(void **state)
{
	struct hml_message m = { .left = 1 };

	(void)state;
	m.pieces[0].length = 10;
	m.pieces[1].length = 1;
	m.pieces[2].length = 20;
	m.payload.piece = m.pieces;
	m.header.offset = 100;
	m.header.meta_length = 9;
	m.payload.meta = &m;

	advance(&m, 9);
	assert_ptr_equal(m.payload.piece, &m.pieces[0]);
	assert_int_equal(m.payload.skip, 9);
	assert_int_equal(m.header.offset, 109);
	assert_int_equal(m.header.meta_length, 0);
	assert_null(m.payload.meta);

	advance(&m, 1);
	assert_ptr_equal(m.payload.piece, &m.pieces[1]);
	assert_int_equal(m.payload.skip, 0);

	advance(&m, 3);
	assert_ptr_equal(m.payload.piece, &m.pieces[2]);
	assert_int_equal(m.payload.skip, 2);
}

static void message_at_the_top_does_not_come_round_to_the_bottom(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(4 * PACKET);
	u32 i, k;

	for (k = 0; k <= 2 * PACKET; k++) {
		nr_arrivals = 0;
		trb.offset = ~0ULL - k;
		assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL,
					      s->memory, MEMORY), 0);
		send_all(s);
		assert_int_equal(nr_arrivals, 4);
		for (i = 0; i < 4; i++)
			assert_int_equal(arrivals[i].h.offset, i * PACKET < k ?
					 ~0ULL - k + i * PACKET : ~0ULL);
	}
}

static void bytes_count_as_sent_whether_or_not_they_arrive(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(2 * PACKET + 5);

	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory,
				      MEMORY), 0);
	hml_tx_packet(&s->nic, &s->t);
	assert_int_equal(s->stats.bytes, PACKET);
	s->nic.host = HOST + 1;
	send_all(s);
	assert_int_equal(s->stats.bytes, 2 * PACKET + 5);
}

static void host_that_goes_away_in_the_middle_takes_the_packets_with_it(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(3 * PACKET);

	assert_int_equal(hml_tx_begin(&s->nic, &s->t, &trb, NULL, s->memory,
				      MEMORY), 0);
	hml_tx_packet(&s->nic, &s->t);
	s->nic.host = HOST + 1;
	send_all(s);
	assert_int_equal(nr_arrivals, 1);
	assert_false(s->t.busy);
	assert_int_equal(s->stats.packets, 3);
	assert_int_equal(s->stats.messages, 1);
	assert_int_equal(s->stats.rejects[HAMLYN_REJECT_DOWN], 2);
}

/* What link.c says of it is asked only when there is something to ask. */
static void packets_of_a_nic_that_is_not_up_go_nowhere(void **state)
{
	struct sender *s = *state;
	u32 i;

	link_state = HAMLYN_NIC_DOWN;
	post_plain(s, 1);
	assert_int_equal(run(s, 10), 1);
	assert_int_equal(nr_arrivals, 1);
	s->link.watchdog_ms = 1;
	post_plain(s, 1);
	post_plain(s, 3 * PACKET);
	assert_int_equal(run(s, 10), 4);
	assert_int_equal(nr_arrivals, 1);
	assert_int_equal(s->stats.packets, 5);
	assert_int_equal(s->stats.messages, 3);
	assert_int_equal(s->stats.rejects[HAMLYN_REJECT_DOWN], 4);
	assert_int_equal(nr_traced_down, 4);
	for (i = 0; i < 3; i++)
		assert_int_equal(status_of(s, i), 0);
	link_state = HAMLYN_NIC_UP;
	post_plain(s, 1);
	assert_int_equal(run(s, 10), 1);
	assert_int_equal(nr_arrivals, 2);
}

/* ---- work queue ---------------------------------------------------------- */

static void empty_work_queue_is_not_pending(void **state)
{
	struct sender *s = *state;

	assert_false(hml_tx_pending(&s->t));
	assert_int_equal(run(s, 10), 0);
	post_plain(s, 1);
	assert_true(hml_tx_pending(&s->t));
	assert_int_equal(run(s, 10), 1);
	assert_false(hml_tx_pending(&s->t));
}

static void full_work_queue_is_taken_whole(void **state)
{
	struct sender *s = *state;
	u32 i;

	for (i = 0; i < ENTRIES; i++)
		post_plain(s, i);
	assert_false(s->t.busy);
	assert_true(hml_tx_pending(&s->t));
	assert_int_equal(run(s, 100), ENTRIES);
	for (i = 0; i < ENTRIES; i++)
		assert_int_equal(arrivals[i].h.length, i);
}

/* As the application saw it when each of them arrived. */
static void completed_lags_by_half_a_queue_at_most(void **state)
{
	struct sender *s = *state;
	u32 i;

	for (i = 0; i < ENTRIES; i++)
		post_plain(s, i);
	run(s, 100);
	for (i = 0; i < ENTRIES; i++)
		assert_int_equal(arrivals[i].completed,
				 i < ENTRIES / 2 ? 0 : ENTRIES / 2);
	assert_int_equal(s->t.status->completed, ENTRIES);
}

static void queue_of_two_entries_completes_each_at_once(void **state)
{
	struct sender *s = *state;

	s->t.mask = 1;
	post_plain(s, 1);
	post_plain(s, 2);
	run(s, 100);
	assert_int_equal(arrivals[0].completed, 0);
	assert_int_equal(arrivals[1].completed, 1);
	assert_int_equal(s->t.status->completed, 2);
}

static void only_its_own_sequence_posts_an_entry(void **state)
{
	struct sender *s = *state;
	static const u32 others[] = {
		0U - 21, 0U - 1, 0U - ENTRIES, ENTRIES, 1, 2, 1000, 0x7fffffffU,
		0x80000000U,
	};
	struct hamlyn_trb *trb = entry_at(s, 20);
	u32 i;

	start_counting_at(s, 20);
	post_plain(s, 1);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		trb->sequence = 21 + others[i];
		assert_false(hml_tx_pending(&s->t));
		assert_int_equal(run(s, 10), 0);
	}
	assert_int_equal(s->t.head, 20);
	assert_int_equal(s->t.status->completed, 20);
	trb->sequence = 21;
	assert_true(hml_tx_pending(&s->t));
	assert_int_equal(run(s, 10), 1);
}

static void entry_behind_one_that_is_not_posted_waits(void **state)
{
	struct sender *s = *state;

	post_plain(s, 1);
	post_plain(s, 2);
	((struct hamlyn_trb *)entry_at(s, 0))->sequence = 0;
	assert_false(hml_tx_pending(&s->t));
	assert_int_equal(run(s, 10), 0);
	((struct hamlyn_trb *)entry_at(s, 0))->sequence = 1;
	assert_int_equal(run(s, 10), 2);
}

static void producer_index_means_nothing(void **state)
{
	struct sender *s = *state;
	u32 i;

	start_counting_at(s, 3);
	for (i = 0; i < 2 * ENTRIES; i++) {
		s->wq.producer = i;
		assert_false(hml_tx_pending(&s->t));
		assert_int_equal(run(s, 10), 0);
	}
	assert_int_equal(s->t.head, 3);
}

static void counters_wrap_without_a_gap(void **state)
{
	struct sender *s = *state;
	u32 i;

	start_counting_at(s, 0xfffffffdU);
	for (i = 0; i < 6; i++)
		post_plain(s, i);
	assert_int_equal(s->wq.producer, 3);
	assert_true(hml_tx_pending(&s->t));
	assert_int_equal(run(s, 100), 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(arrivals[i].h.length, i);
	assert_int_equal(s->t.head, 3);
	assert_int_equal(s->t.status->completed, 3);
}

static void each_entry_gets_its_own_status(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f;
	struct hamlyn_trb trb;

	post_plain(s, 4);
	post_malformed(s);
	trb = request(1);
	trb.fragments = 1;
	f = fragment(1, 0, 1);
	post(s, &trb, &f, sizeof(f));
	f = fragment(0, MEMORY, 1);
	post(s, &trb, &f, sizeof(f));
	trb = request(0);
	trb.host = 1;
	post(s, &trb, NULL, 0);
	post_plain(s, 2);

	assert_int_equal(run(s, 100), 6);
	assert_int_equal(status_of(s, 0), 0);
	assert_int_equal(status_of(s, 1), -EINVAL);
	assert_int_equal(status_of(s, 2), -ENXIO);
	assert_int_equal(status_of(s, 3), -ERANGE);
	assert_int_equal(status_of(s, 4), -EHOSTUNREACH);
	assert_int_equal(status_of(s, 5), 0);
	assert_int_equal(s->t.status->completed, 6);
	assert_int_equal(s->t.status->failed, 4);
	assert_int_equal(s->stats.failed, 4);
	assert_int_equal(s->stats.messages, 2);
	assert_int_equal(nr_arrivals, 2);
}

static void status_of_an_earlier_lap_does_not_stay(void **state)
{
	struct sender *s = *state;
	u32 i;

	for (i = 0; i < ENTRIES; i++)
		post_malformed(s);
	run(s, 100);
	for (i = 0; i < ENTRIES; i++) {
		assert_int_equal(status_of(s, i), -EINVAL);
		post_plain(s, 1);
	}
	run(s, 100);
	for (i = 0; i < ENTRIES; i++)
		assert_int_equal(status_of(s, i), 0);
	assert_int_equal(s->t.status->failed, ENTRIES);
}

/* Else the statuses of an earlier lap were those of what is sent. */
static void count_of_failures_does_not_come_round_to_0(void **state)
{
	struct sender *s = *state;
	u32 i;

	s->t.status->failed = ~0U;
	post_malformed(s);
	for (i = 1; i < ENTRIES; i++)
		post_plain(s, 1);
	run(s, 100);
	assert_int_equal(s->t.status->failed, 1);
	post_plain(s, 1);
	run(s, 100);
	assert_int_equal(status_of(s, 0), 0);
}

static void entry_completes_only_after_its_last_packet(void **state)
{
	struct sender *s = *state;
	u32 i;

	post_plain(s, 3 * PACKET);
	post_plain(s, 1);
	assert_int_equal(run(s, 100), 4);
	for (i = 0; i < 3; i++)
		assert_int_equal(arrivals[i].completed, 0);
	assert_int_equal(arrivals[3].completed, 1);
	assert_int_equal(s->t.status->completed, 2);
}

static void budget_is_kept_to_the_packet_and_the_message_resumes(void **state)
{
	struct sender *s = *state;
	u32 i;

	post_plain(s, 3 * PACKET);
	post_plain(s, 2 * PACKET);
	assert_int_equal(run(s, 0), 0);
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(run(s, 2), 2);
	assert_int_equal(nr_arrivals, 2);
	assert_true(s->t.busy);
	assert_int_equal(s->t.status->completed, 0);
	assert_int_equal(run(s, 2), 2);
	assert_int_equal(s->t.status->completed, 1);
	assert_true(s->t.busy);
	assert_int_equal(run(s, 2), 1);
	assert_int_equal(s->t.status->completed, 2);
	for (i = 0; i < 5; i++) {
		u32 packet = i < 3 ? i : i - 3;

		assert_int_equal(arrivals[i].h.offset, 1000 + packet * PACKET);
		assert_memory_equal(arrivals[i].data, s->memory + packet * PACKET,
				    PACKET);
	}
}

static void refused_entry_costs_a_packet_of_the_budget(void **state)
{
	struct sender *s = *state;
	u32 i;

	for (i = 0; i < 4; i++)
		post_malformed(s);
	post_plain(s, 1);
	assert_int_equal(run(s, 3), 3);
	assert_int_equal(s->t.status->completed, 3);
	assert_int_equal(run(s, 3), 2);
	assert_int_equal(nr_arrivals, 1);
}

/* ---- credit -------------------------------------------------------------- */

/* Run until it stops for want of credit. Returns what is left of that. */
static s64 run_with(struct sender *s, s64 bytes)
{
	hml_tx_run(&s->nic, &s->t, 1000, &bytes);
	return bytes;
}

static void without_credit_nothing_is_sent_and_nothing_is_taken(void **state)
{
	struct sender *s = *state;

	post_plain(s, 1);
	assert_int_equal(run_with(s, 0), 0);
	assert_int_equal(run_with(s, -1), -1);
	assert_int_equal(run_with(s, INT64_MIN), INT64_MIN);
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(s->t.head, 0);
}

static void credit_is_overdrawn_by_one_packet_at_most(void **state)
{
	struct sender *s = *state;
	s64 credit;

	for (credit = 1; credit <= 4 * PACKET; credit++) {
		u32 packets = (credit + PACKET - 1) / PACKET;
		s64 left;

		nr_arrivals = 0;
		post_plain(s, 5 * PACKET);
		left = run_with(s, credit);
		assert_int_equal(nr_arrivals, packets);
		assert_int_equal(left, credit - packets * PACKET);
		assert_true(left > -PACKET);
		run(s, 100);
	}
}

static void what_is_sent_is_taken_off_to_the_byte(void **state)
{
	struct sender *s = *state;
	u32 length;

	for (length = PACKET / 16; length <= 5 * PACKET; length++) {
		/* Its last packet may be shorter than what is counted. */
		if (length % PACKET && length % PACKET < PACKET / 16)
			continue;
		nr_arrivals = 0;
		post_plain(s, length);
		assert_int_equal(run_with(s, 1000000), 1000000 - length);
	}
}

static void short_packet_costs_a_sixteenth_of_a_long_one(void **state)
{
	struct sender *s = *state;
	u32 length;

	s->nic.packet_size = 32 * HML_PACKET_SHARE;
	for (length = 0; length <= 32; length++) {
		struct hamlyn_trb trb = request(length);

		nr_arrivals = 0;
		post(s, &trb, s->memory, length);
		assert_int_equal(run_with(s, 1000), 1000 - 32);
	}
}

static void refused_entry_costs_a_sixteenth_as_well(void **state)
{
	struct sender *s = *state;
	u32 i;

	for (i = 0; i < 5; i++)
		post_malformed(s);
	assert_int_equal(run_with(s, 3 * PACKET / 16), 0);
	assert_int_equal(s->t.status->completed, 3);
}

/* It costs what it would have cost, for whoever serves it. */
static void packet_that_goes_nowhere_costs_as_much(void **state)
{
	struct sender *s = *state;

	s->link.down = 1;
	link_state = HAMLYN_NIC_DOWN;
	post_plain(s, 2 * PACKET);
	assert_int_equal(run_with(s, 1000), 1000 - 2 * PACKET);
}

static void empty_queue_costs_nothing(void **state)
{
	assert_int_equal(run_with(*state, 17), 17);
}

static void paused_sender_sends_nothing_and_pays_nothing(void **state)
{
	struct sender *s = *state;

	post_plain(s, 2 * PACKET);
	paused = true;
	/* guard.c is not asked about one that was never paused. */
	assert_int_equal(run(s, 1), 1);
	s->t.sender.guard.until = 1;
	assert_int_equal(run_with(s, 1000), 1000);
	assert_int_equal(nr_arrivals, 1);
	assert_true(hml_tx_pending(&s->t));
	paused = false;
	assert_int_equal(run(s, 10), 1);
	assert_int_equal(s->t.status->completed, 1);
}

static void begun_message_is_pending_whatever_the_entry_says(void **state)
{
	struct sender *s = *state;

	post_plain(s, 2 * PACKET);
	run(s, 1);
	((struct hamlyn_trb *)entry_at(s, 0))->sequence = 0x80000000U;
	assert_true(hml_tx_pending(&s->t));
	assert_int_equal(run(s, 10), 1);
	assert_int_equal(s->t.status->completed, 1);
	assert_false(hml_tx_pending(&s->t));
}

static void two_termini_interleave_packet_by_packet(void **state)
{
	struct sender *a = *state;
	struct sender *b;
	void *other;
	u32 i;

	setup(&other);
	b = other;
	b->memory[0] ^= 0xff;
	post_plain(a, 3 * PACKET);
	post_plain(b, 3 * PACKET);
	for (i = 0; i < 3; i++) {
		assert_int_equal(run(a, 1), 1);
		assert_int_equal(run(b, 1), 1);
	}
	assert_int_equal(nr_arrivals, 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(arrivals[i].h.offset, 1000 + i / 2 * PACKET);
	assert_int_equal(arrivals[0].data[0] ^ arrivals[1].data[0], 0xff);
	assert_int_equal(a->t.status->completed, 1);
	assert_int_equal(b->t.status->completed, 1);
	teardown(&other);
}

static void payload_follows_the_request_if_there_is_no_metadata(void **state)
{
	struct sender *s = *state;
	const u32 most = ENTRY_SIZE - sizeof(struct hamlyn_trb);
	u32 i;

	post_plain(s, most);
	run(s, 100);
	assert_int_equal(status_of(s, 0), 0);
	for (i = 0; i < nr_arrivals; i++)
		assert_memory_equal(arrivals[i].data, s->memory + i * PACKET,
				    arrivals[i].h.length);
}

static void payload_one_byte_longer_than_the_entry_is_refused(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(ENTRY_SIZE - sizeof(trb) + 1);

	post(s, &trb, NULL, 0);
	/* The last entry has nothing behind it at all. */
	start_counting_at(s, ENTRIES - 1);
	post(s, &trb, NULL, 0);
	run(s, 100);
	assert_int_equal(status_of(s, ENTRIES - 1), -EINVAL);
	assert_int_equal(nr_arrivals, 0);
}

static void metadata_takes_64_bytes_of_the_entry(void **state)
{
	struct sender *s = *state;
	const u32 most = ENTRY_SIZE - sizeof(struct hamlyn_trb) - 64;
	struct hamlyn_trb trb = request(most);
	u32 i;

	trb.meta_length = 1;
	post(s, &trb, s->memory + 500, 64 + most);
	trb.length++;
	post(s, &trb, s->memory + 500, 64 + most);
	run(s, 100);
	assert_int_equal(status_of(s, 0), 0);
	assert_int_equal(status_of(s, 1), -EINVAL);
	assert_int_equal(arrivals[0].meta[0], s->memory[500]);
	for (i = 0; i < nr_arrivals; i++)
		assert_memory_equal(arrivals[i].data,
				    s->memory + 564 + i * PACKET,
				    arrivals[i].h.length);
}

static void smallest_entry_has_room_for_metadata_and_nothing_else(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(0);

	s->t.entry_size = 128;
	s->t.entry_shift = 7;
	trb.meta_length = 60;
	trb.sequence = 1;
	memcpy(s->entries, &trb, sizeof(trb));
	memcpy(s->entries + 64, s->memory, 60);
	trb.length = 1;
	trb.sequence = 2;
	memcpy(s->entries + 128, &trb, sizeof(trb));
	s->wq.producer = 2;
	run(s, 100);
	assert_int_equal(status_of(s, 0), 0);
	assert_int_equal(status_of(s, 1), -EINVAL);
	assert_int_equal(nr_arrivals, 1);
	assert_memory_equal(arrivals[0].meta, s->memory, 60);
}

static void fragments_in_the_entry_must_fit_behind_the_metadata(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[HAMLYN_MAX_FRAGMENTS];
	u8 tail[64 + sizeof(f)] = { 0 };
	struct hamlyn_trb trb;
	u32 i;

	for (i = 0; i < HAMLYN_MAX_FRAGMENTS; i++)
		f[i] = fragment(0, i, 1);
	memcpy(tail + 64, f, sizeof(f));
	trb = request(16);
	trb.fragments = 16;
	trb.meta_length = 4;
	post(s, &trb, tail, sizeof(tail));	/* 384 of 384 bytes */
	run(s, 100);
	assert_int_equal(status_of(s, 0), 0);
	assert_memory_equal(arrivals[0].data, s->memory, 16);

	s->t.entry_size = 256;			/* 128 bytes: 5 fragments fit */
	s->t.entry_shift = 8;
	start_counting_at(s, 0);
	trb.fragments = 5;
	trb.length = 5;
	trb.sequence = 1;
	memcpy(s->entries, &trb, sizeof(trb));
	memcpy(s->entries + 64, tail, 192);
	trb.fragments = 6;
	trb.length = 6;
	trb.sequence = 2;
	memcpy(s->entries + 256, &trb, sizeof(trb));
	memcpy(s->entries + 256 + 64, tail, 192);
	s->wq.producer = 2;
	run(s, 100);
	assert_int_equal(status_of(s, 0), 0);
	assert_int_equal(status_of(s, 1), -EINVAL);
}

static struct sender *robbed;

static void rewrite_request(void)
{
	struct hamlyn_trb *trb = entry_at(robbed, robbed->t.head);

	memset(trb, 0xff, sizeof(*trb));
	trb->flags = 0;
	trb->host = HOST;
}

/* The copy is what counts: the entry turns hostile behind the copying. */
static void request_rewritten_after_the_copy_changes_nothing(void **state)
{
	struct sender *s = *state;
	struct hamlyn_fragment f[2] = { fragment(0, 40, 60), fragment(0, 0, 9) };
	u8 tail[64 + sizeof(f)] = { 1, 2, 3 };
	struct hamlyn_trb trb = request(69);
	u32 i;

	memcpy(tail + 64, f, sizeof(f));
	trb.fragments = 2;
	trb.meta_length = 3;
	post(s, &trb, tail, sizeof(tail));
	trb = request(70);
	post(s, &trb, s->memory, 70);
	trb = request(0);
	trb.meta_length = 3;
	post(s, &trb, tail, 3);
	robbed = s;
	at_barrier = rewrite_request;
	assert_int_equal(run(s, 100), 5);
	assert_int_equal(s->t.status->failed, 0);
	for (i = 0; i < 5; i++) {
		assert_int_equal(arrivals[i].h.key, trb.key);
		assert_int_equal(arrivals[i].h.slot, 3);
		assert_int_equal(arrivals[i].h.meta_index, 5);
		assert_int_equal(arrivals[i].h.offset, 1000 + (i & 1) * PACKET);
	}
	assert_int_equal(arrivals[0].h.meta_length, 3);
	assert_memory_equal(arrivals[0].meta, tail, 3);
	assert_memory_equal(arrivals[0].data, s->memory + 40, 60);
	assert_int_equal(arrivals[2].h.meta_length, 0);
	assert_memory_equal(arrivals[2].data, s->memory, 64);
	assert_memory_equal(arrivals[3].data, s->memory + 64, 6);
	assert_int_equal(arrivals[4].h.length, 0);
	assert_int_equal(arrivals[4].h.meta_length, 3);
}

/* ---- plain requests ------------------------------------------------------ */

static struct hamlyn_trb *plain_entry;

/* Every word that was read is hostile from then on. */
static void spoil_word(const volatile void *p)
{
	size_t at = (uintptr_t)p - (uintptr_t)plain_entry;

	switch (at) {
	case offsetof(struct hamlyn_trb, host):
	case offsetof(struct hamlyn_trb, slot):
	case offsetof(struct hamlyn_trb, delta):
	case offsetof(struct hamlyn_trb, meta_index):
	case offsetof(struct hamlyn_trb, ticket):
		memset((u8 *)plain_entry + at, 0xff, 4);
		break;
	case offsetof(struct hamlyn_trb, key):
	case offsetof(struct hamlyn_trb, offset):
	case offsetof(struct hamlyn_trb, length):
	case offsetof(struct hamlyn_trb, word):
	case offsetof(struct hamlyn_trb, meta_length):	/* and two more */
		memset((u8 *)plain_entry + at, 0xff, 8);
	}
}

static void plain_request_rewritten_behind_each_read_is_as_it_was_read(void **state)
{
	struct sender *s = *state;

	post_plain(s, 16);
	plain_entry = entry_at(s, 0);
	after_read = spoil_word;
	assert_int_equal(run(s, 1), 1);
	assert_int_equal(s->t.status->failed, 0);
	assert_int_equal(nr_arrivals, 1);
	assert_int_equal(arrivals[0].to, HOST);
	assert_int_equal(arrivals[0].h.flags, HAMLYN_PACKET_SINGLE);
	assert_int_equal(arrivals[0].h.slot, 3);
	assert_int_equal(arrivals[0].h.key, 0x1122334455667788ULL);
	assert_int_equal(arrivals[0].h.offset, 1000);
	assert_int_equal(arrivals[0].h.length, 16);
	assert_int_equal(arrivals[0].h.meta_index, 5);
	assert_int_equal(arrivals[0].h.meta_length, 0);
	assert_int_equal(arrivals[0].h.delta, 0);
	assert_int_equal(arrivals[0].h.word, 0);
	assert_memory_equal(arrivals[0].data, s->memory, 16);
	assert_true(unit_all((u8 *)plain_entry, 0xff,
			     offsetof(struct hamlyn_trb, sequence)));
}

static void plain_is_what_asks_for_nothing_special(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb *trb = entry_at(s, 0);
	u32 bit;

	assert_null(hml_tx_plain(&s->t));
	post_plain(s, 16);
	assert_ptr_equal(hml_tx_plain(&s->t), trb);
	for (bit = 0; bit < 32; bit++) {
		trb->flags = 1U << bit;
		assert_null(hml_tx_plain(&s->t));
		trb->flags = 0;
		trb->delta = 1U << bit;
		assert_null(hml_tx_plain(&s->t));
		trb->delta = 0;
		trb->ticket = 1U << bit;
		assert_null(hml_tx_plain(&s->t));
		trb->ticket = 0;
	}
	for (bit = 0; bit < 64; bit++) {
		trb->word = 1ULL << bit;
		assert_null(hml_tx_plain(&s->t));
		trb->word = 0;
	}
	for (bit = 0; bit < 16; bit++) {
		trb->meta_length = 1U << bit;
		assert_null(hml_tx_plain(&s->t));
		trb->meta_length = 0;
		trb->fragments = 1U << bit;
		assert_null(hml_tx_plain(&s->t));
		trb->fragments = 0;
	}
	assert_ptr_equal(hml_tx_plain(&s->t), trb);
}

static void plain_request_waits_for_a_pause_and_a_begun_message(void **state)
{
	struct sender *s = *state;

	post_plain(s, 16);
	s->t.sender.guard.until = 1;
	assert_null(hml_tx_plain(&s->t));
	s->t.sender.guard.until = 0;
	s->t.busy = true;
	assert_null(hml_tx_plain(&s->t));
	s->t.busy = false;
	assert_non_null(hml_tx_plain(&s->t));
}

static void plain_request_is_sent_at_once_and_alone(void **state)
{
	struct sender *s = *state;

	post_plain(s, 16);
	post_plain(s, 17);
	assert_true(hml_tx_run_plain(&s->nic, &s->t, hml_tx_plain(&s->t)));
	assert_int_equal(nr_arrivals, 1);
	assert_int_equal(arrivals[0].h.length, 16);
	assert_int_equal(arrivals[0].completed, 0);
	assert_int_equal(s->t.status->completed, 1);
	assert_int_equal(s->stats.messages, 1);
	assert_int_equal(s->stats.packets, 1);
	assert_int_equal(s->stats.bytes, 16);
	assert_true(hml_tx_run_plain(&s->nic, &s->t, hml_tx_plain(&s->t)));
	assert_int_equal(arrivals[1].h.length, 17);
	assert_int_equal(s->t.status->completed, 2);
	assert_null(hml_tx_plain(&s->t));
}

/* ---- a fabric that does not take everything at once ---------------------- */

static void message_that_is_not_taken_is_left_as_it_is(void **state)
{
	struct sender *s = *state;
	s64 credit = 1000;

	s->link.remote = 1;
	post_plain(s, 16);
	post_plain(s, 17);
	nr_refused = 2;
	assert_false(hml_tx_run_plain(&s->nic, &s->t, hml_tx_plain(&s->t)));
	assert_false(s->t.stalled);
	assert_int_equal(run(s, 10), 0);
	assert_true(s->t.stalled);
	assert_null(hml_tx_plain(&s->t));
	assert_int_equal(hml_tx_run(&s->nic, &s->t, 10, &credit), 0);
	assert_int_equal(credit, 1000);
	assert_true(s->t.stalled);
	assert_true(hml_tx_pending(&s->t));
	assert_int_equal(s->t.head, 0);
	assert_int_equal(s->t.status->completed, 0);
	assert_int_equal(s->stats.messages, 0);
	assert_int_equal(s->stats.packets, 0);
	assert_int_equal(s->stats.bytes, 0);
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(run(s, 10), 2);
	assert_false(s->t.stalled);
	assert_int_equal(nr_arrivals, 2);
	assert_int_equal(arrivals[0].h.length, 16);
	assert_int_equal(arrivals[1].h.length, 17);
	assert_int_equal(s->t.status->completed, 2);
	assert_int_equal(s->stats.messages, 2);
	assert_int_equal(s->stats.packets, 2);
	assert_int_equal(s->stats.bytes, 33);
}

/* Whatever its owner makes of the entry meanwhile is what is checked, and sent, later. */
static void message_that_is_not_taken_is_checked_anew(void **state)
{
	struct sender *s = *state;

	s->link.remote = 1;
	post_plain(s, 16);
	nr_refused = 1;
	assert_int_equal(run(s, 10), 0);
	((struct hamlyn_trb *)entry_at(s, 0))->flags = ~0U;
	assert_int_equal(run(s, 10), 1);
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(status_of(s, 0), -EINVAL);
}

/* After @taken packets of five one is not taken, three times. */
static void stall_after(struct sender *s, u32 taken)
{
	u32 i, sum = 0;

	s->nic.packet_size = 16;
	s->link.remote = 1;
	post_plain(s, 80);
	assert_int_equal(run(s, taken), taken);
	for (i = 0; i < 3; i++) {
		nr_refused = 1;
		assert_int_equal(run(s, 10), 0);
		assert_true(s->t.stalled);
		assert_int_equal(s->stats.packets, taken);
		assert_int_equal(s->t.status->completed, 0);
	}
	assert_int_equal(run(s, 10), 5 - taken);
	assert_int_equal(nr_arrivals, 5);
	for (i = 0; i < 5; i++) {
		assert_int_equal(arrivals[i].h.offset, 1000 + 16 * i);
		assert_int_equal(arrivals[i].h.length, 16);
		sum += arrivals[i].h.delta;
	}
	/* Each adds 1 but the last, which takes them away. */
	assert_int_equal(sum, 0);
	assert_int_equal(s->t.status->completed, 1);
	assert_int_equal(s->stats.messages, 1);
}

static void long_message_goes_on_where_it_was_stalled(void **state)
{
	u32 taken;

	for (taken = 0; taken < 5; taken++) {
		stall_after(*state, taken);
		teardown(state);
		setup(state);
	}
}

static void message_that_is_given_up_tells_its_owner(void **state)
{
	struct sender *s = *state;

	s->nic.packet_size = 16;
	s->link.remote = 1;
	post_plain(s, 80);
	post_plain(s, 16);
	run(s, 2);
	nr_refused = 1;
	run(s, 2);
	hml_tx_abort(&s->t, -ECANCELED);
	assert_false(s->t.busy);
	assert_false(s->t.stalled);
	assert_int_equal(s->t.status->completed, 1);
	assert_int_equal(s->t.status->failed, 1);
	assert_int_equal(status_of(s, 0), -ECANCELED);
	assert_int_equal(s->stats.failed, 1);
	assert_int_equal(s->stats.messages, 0);
	assert_int_equal(run(s, 10), 1);
	assert_int_equal(nr_arrivals, 3);
	assert_int_equal(status_of(s, 1), 0);
}

/* The rest of it is not sent, and what comes after it is. */
static void message_that_cannot_be_read_ends_there(void **state)
{
	struct sender *s = *state;
	u32 at;

	s->nic.packet_size = 16;
	for (at = 1; at <= 5; at++) {
		unreadable = nr_arrivals + at;
		post_plain(s, 80);
		post_plain(s, 80);
		run(s, 20);
		assert_int_equal(nr_arrivals, unreadable + 5);
		assert_false(s->t.busy);
		assert_int_equal(s->t.status->completed, 2 * at);
		assert_int_equal(s->t.status->failed, at);
		assert_int_equal(status_of(s, 2 * at - 2), -EIO);
		assert_int_equal(status_of(s, 2 * at - 1), 0);
		assert_int_equal(s->stats.failed, at);
	}
}

/* Nothing has been done: it is as if nobody had looked. */
static void check_left_alone(struct sender *s)
{
	assert_false(hml_tx_run_plain(&s->nic, &s->t, hml_tx_plain(&s->t)));
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(s->t.head, 0);
	assert_int_equal(s->t.status->completed, 0);
	assert_int_equal(s->stats.packets, 0);
	assert_int_equal(s->stats.bytes, 0);
	assert_int_equal(s->stats.messages, 0);
}

static void plain_request_that_is_refused_gets_a_status_later(void **state)
{
	struct sender *s = *state;
	struct hamlyn_trb trb = request(16);

	trb.host = HOST + 1;
	post(s, &trb, s->memory, 16);
	check_left_alone(s);
	assert_int_equal(run(s, 1), 1);
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(s->t.status->completed, 1);
	assert_int_equal(s->t.status->failed, 1);
	assert_int_equal(status_of(s, 0), -EHOSTUNREACH);
}

static void plain_request_that_its_receiver_is_against_is_counted_once(void **state)
{
	struct sender *s = *state;

	post_plain(s, 16);
	refused_slot = 3;
	check_left_alone(s);
	assert_int_equal(run(s, 1), 1);
	assert_int_equal(nr_arrivals, 1);
	assert_int_equal(arrivals[0].h.host, HOST);
	assert_int_equal(s->t.status->completed, 1);
	assert_int_equal(s->stats.packets, 1);
	assert_int_equal(s->stats.bytes, 16);
	assert_int_equal(s->stats.messages, 1);
}

static void plain_request_for_a_nic_that_is_down_is_left_alone(void **state)
{
	struct sender *s = *state;

	post_plain(s, 16);
	s->link.down = 1;
	check_left_alone(s);
}

/* One byte more than a packet, or than the entry has room for. */
static void plain_request_that_is_too_long_is_left_alone(void **state)
{
	struct sender *s = *state;
	const struct hamlyn_trb *entry;

	post_plain(s, PACKET + 1);
	entry = hml_tx_plain(&s->t);
	assert_false(hml_tx_run_plain(&s->nic, &s->t, entry));
	s->nic.packet_size = MEMORY;
	post_plain(s, 0);
	((struct hamlyn_trb *)entry_at(s, 0))->length = ENTRY_SIZE - 63;
	assert_false(hml_tx_run_plain(&s->nic, &s->t, entry));
	((struct hamlyn_trb *)entry_at(s, 0))->length = ~0ULL;
	assert_false(hml_tx_run_plain(&s->nic, &s->t, entry));
	assert_int_equal(nr_arrivals, 0);
	assert_int_equal(s->t.head, 0);
	assert_int_equal(s->t.status->completed, 0);
	assert_int_equal(s->t.status->failed, 0);
	assert_int_equal(s->stats.packets, 0);
	run(s, 1);
	assert_int_equal(status_of(s, 0), -EINVAL);
}

static void need_kick_and_producer_are_not_written_by_the_core(void **state)
{
	struct sender *s = *state;

	s->t.status->need_kick = 1;
	post_plain(s, 1);
	run(s, 100);
	assert_int_equal(s->t.status->need_kick, 1);
	assert_int_equal(s->wq.producer, 1);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(view_covers_itself_and_its_parts),
		TEST(empty_range_at_the_end_is_covered_and_one_behind_is_not),
		TEST(range_that_ends_one_byte_too_late_is_not_covered),
		TEST(range_whose_end_wraps_is_not_covered),
		TEST(empty_view_covers_only_the_empty_range_at_0),
		TEST(largest_view_has_the_same_edges),

		TEST(ordinary_request_passes),
		TEST(each_unknown_flag_is_refused),
		TEST(longest_message_passes_and_one_byte_more_is_refused),
		TEST(metadata_of_60_bytes_passes_and_61_is_refused),
		TEST(sixteen_fragments_pass_and_17_are_refused),
		TEST(word_without_fast_is_refused),
		TEST(fast_request_of_one_packet_passes),
		TEST(fast_request_longer_than_a_packet_is_refused),
		TEST(fast_request_with_a_metadata_entry_is_refused),
		TEST(fast_request_with_metadata_is_refused),
		TEST(fast_request_with_a_group_share_is_refused),

		TEST(fragment_is_counted_from_the_base_of_its_area),
		TEST(tag_that_no_terminus_has_is_refused),
		TEST(tag_without_an_area_is_refused),
		TEST(terminus_without_a_table_has_no_tag),
		TEST(each_reserved_bit_of_a_fragment_is_refused),
		TEST(fragment_outside_its_area_by_one_byte_is_refused),
		TEST(fragment_whose_end_wraps_is_refused),
		TEST(fragment_rewritten_behind_each_read_is_as_it_was_read),

		TEST(fragments_that_add_up_are_taken_in_order),
		TEST(fragments_that_miss_the_length_by_one_byte_are_refused),
		TEST(fragments_whose_sum_wraps_are_refused),
		TEST(more_fragments_than_fit_the_entry_are_refused),
		TEST(empty_fragments_carry_nothing),
		TEST(only_empty_fragments_make_an_empty_message),
		TEST(empty_fragment_is_checked_like_any_other),
		TEST(bad_fragment_is_refused_wherever_it_stands),
		TEST(fragments_changed_after_the_check_change_nothing),

		TEST(header_repeats_the_request),
		TEST(source_is_the_nic_and_not_what_the_request_says),
		TEST(flags_of_the_request_become_flags_of_the_packet),
		TEST(single_flag_is_set_up_to_one_packet_and_not_beyond),
		TEST(inline_payload_must_fit_the_entry),
		TEST(unknown_host_is_refused),
		TEST(malformed_request_is_refused_and_leaves_the_terminus_idle),

		TEST(message_becomes_packets_at_advancing_offsets),
		TEST(deltas_add_up_to_the_share_modulo_2_to_the_32),
		TEST(metadata_goes_with_the_first_packet_only),
		TEST(empty_message_is_one_empty_packet),
		TEST(message_of_whole_packets_has_no_empty_one_behind),
		TEST(busy_ends_with_the_last_packet_and_not_before),
		TEST(packets_are_gathered_across_fragments),
		TEST(advance_moves_to_the_piece_that_the_next_byte_is_in),
		TEST(message_at_the_top_does_not_come_round_to_the_bottom),
		TEST(bytes_count_as_sent_whether_or_not_they_arrive),
		TEST(host_that_goes_away_in_the_middle_takes_the_packets_with_it),

		TEST(packets_of_a_nic_that_is_not_up_go_nowhere),

		TEST(empty_work_queue_is_not_pending),
		TEST(full_work_queue_is_taken_whole),
		TEST(completed_lags_by_half_a_queue_at_most),
		TEST(queue_of_two_entries_completes_each_at_once),
		TEST(only_its_own_sequence_posts_an_entry),
		TEST(entry_behind_one_that_is_not_posted_waits),
		TEST(producer_index_means_nothing),
		TEST(counters_wrap_without_a_gap),
		TEST(each_entry_gets_its_own_status),
		TEST(status_of_an_earlier_lap_does_not_stay),
		TEST(count_of_failures_does_not_come_round_to_0),
		TEST(entry_completes_only_after_its_last_packet),
		TEST(budget_is_kept_to_the_packet_and_the_message_resumes),
		TEST(refused_entry_costs_a_packet_of_the_budget),
		TEST(without_credit_nothing_is_sent_and_nothing_is_taken),
		TEST(credit_is_overdrawn_by_one_packet_at_most),
		TEST(what_is_sent_is_taken_off_to_the_byte),
		TEST(short_packet_costs_a_sixteenth_of_a_long_one),
		TEST(refused_entry_costs_a_sixteenth_as_well),
		TEST(packet_that_goes_nowhere_costs_as_much),
		TEST(empty_queue_costs_nothing),
		TEST(paused_sender_sends_nothing_and_pays_nothing),
		TEST(begun_message_is_pending_whatever_the_entry_says),
		TEST(two_termini_interleave_packet_by_packet),
		TEST(payload_follows_the_request_if_there_is_no_metadata),
		TEST(payload_one_byte_longer_than_the_entry_is_refused),
		TEST(metadata_takes_64_bytes_of_the_entry),
		TEST(smallest_entry_has_room_for_metadata_and_nothing_else),
		TEST(fragments_in_the_entry_must_fit_behind_the_metadata),
		TEST(request_rewritten_after_the_copy_changes_nothing),
		TEST(plain_request_rewritten_behind_each_read_is_as_it_was_read),
		TEST(plain_is_what_asks_for_nothing_special),
		TEST(plain_request_waits_for_a_pause_and_a_begun_message),
		TEST(plain_request_is_sent_at_once_and_alone),
		TEST(message_that_cannot_be_read_ends_there),
		TEST(plain_request_that_is_refused_gets_a_status_later),
		TEST(plain_request_that_its_receiver_is_against_is_counted_once),
		TEST(plain_request_for_a_nic_that_is_down_is_left_alone),
		TEST(message_that_is_not_taken_is_left_as_it_is),
		TEST(message_that_is_not_taken_is_checked_anew),
		TEST(long_message_goes_on_where_it_was_stalled),
		TEST(message_that_is_given_up_tells_its_owner),
		TEST(plain_request_that_is_too_long_is_left_alone),
		TEST(need_kick_and_producer_are_not_written_by_the_core),
	};

	return cmocka_run_group_tests_name("tx", tests, NULL, NULL);
}
