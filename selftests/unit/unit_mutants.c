// SPDX-License-Identifier: GPL-2.0-only
/*
 * What selftests/mutants/run.py could take out of the core without any other unit
 * test noticing. First how words that others read or write are accessed: on a
 * processor with a strong memory order nothing goes wrong without an acquire or
 * a release, and hardly ever when a word is read twice, so that is written down
 * here for each of them (Documentation/barriers.rst). Then edges.
 */
#include "unit_access.h"

static struct hamlyn_trb *entry_at(u32 position)
{
	return (void *)(snd.entries + (position & snd.t.mask) * WORLD_ENTRY);
}

static struct hamlyn_nq_entry *told_at(u32 position)
{
	return &hosts[1].nq.entries[position & hosts[1].nq.nq.mask];
}

static s32 *code_at(u32 position)
{
	return (s32 *)(snd.t.status + 1) + (position & snd.t.mask);
}

/* Everything is forgotten that was seen before it is sent. */
static void send_and_look(const struct hamlyn_trb *request)
{
	forget_all();
	assert_int_equal(world_send(&snd, request), 0);
}

/* ---- sending: B1, B6, and one look at each word ---------------------------- */

/* However a request is read: once. */
static const struct word request_words[] = {
	WORD(struct hamlyn_trb, host), WORD(struct hamlyn_trb, slot),
	WORD(struct hamlyn_trb, key), WORD(struct hamlyn_trb, offset),
	WORD(struct hamlyn_trb, length), WORD(struct hamlyn_trb, delta),
	WORD(struct hamlyn_trb, meta_index), WORD(struct hamlyn_trb, word),
	WORD(struct hamlyn_trb, ticket),
};

static void plain_request_is_read_once_behind_its_sequence(void **state)
{
	const struct hamlyn_trb request = world_request(16);
	const struct hamlyn_trb *trb = entry_at(0);

	(void)state;
	send_and_look(&request);
	assert_int_equal(place_of(&trb->sequence, ACQUIRE), 0);
	assert_seen(&trb->sequence, ACQUIRE, 1);
	assert_words_seen(trb, request_words, ARRAY_SIZE(request_words), READ);
	assert_seen(&trb->meta_length, READ, 1);
	assert_seen(&snd.t.head, WRITE, 1);
	assert_seen(&snd.t.status->completed, RELEASE, 1);
	assert_true(place_of(&snd.t.status->completed, RELEASE) >
		    place_of(&snd.t.head, WRITE));
}

/* Once to see that it is not plain, and once to be copied. */
static void other_requests_are_copied_once(void **state)
{
	struct hamlyn_trb request = world_request(16);
	const struct hamlyn_trb *trb = entry_at(0);

	(void)state;
	request.meta_length = 8;
	send_and_look(&request);
	assert_seen(&trb->meta_length, READ, 2);
	assert_words_seen(trb, request_words, ARRAY_SIZE(request_words), READ);
	assert_seen(&trb->fragments, READ, 1);
	assert_seen(&trb->flags, READ, 1);
}

static void each_word_of_a_fragment_is_read_once(void **state)
{
	struct hamlyn_trb request = world_request(32);
	static const struct word words[] = {
		WORD(struct hamlyn_fragment, tag),
		WORD(struct hamlyn_fragment, offset),
		WORD(struct hamlyn_fragment, length),
		WORD(struct hamlyn_fragment, reserved),
	};
	struct hamlyn_fragment *f = (void *)(entry_at(0) + 1);
	static u8 source[64];

	(void)state;
	snd.tags[3] = (struct hml_view) { unit_ref(source), 0, sizeof(source) };
	request.fragments = 1;
	world_post(&snd, &request);
	*f = (struct hamlyn_fragment) { .tag = 3, .offset = 8, .length = 32 };
	forget_all();
	world_run(&snd, 8);
	assert_int_equal(*code_at(0), 0);
	assert_words_seen(f, words, ARRAY_SIZE(words), READ);
	/* Others look whether it is busy. */
	assert_seen(&snd.t.busy, WRITE, 2);
	assert_true(place_of(&snd.t.status->completed, RELEASE) >
		    place_of(&snd.t.head, WRITE));
}

static void failures_are_written_for_a_reader(void **state)
{
	struct hamlyn_trb request = world_request(16);

	(void)state;
	request.host = WORLD_HOSTS;
	forget_all();
	assert_int_equal(world_send(&snd, &request), -EHOSTUNREACH);
	assert_seen(code_at(0), RELEASE, 1);
	assert_seen(&snd.t.status->failed, WRITE, 1);
	assert_true(place_of(&snd.t.status->completed, RELEASE) >
		    place_of(code_at(0), RELEASE));
}

static void who_asks_whether_there_is_work_reads_once(void **state)
{
	(void)state;
	forget_all();
	assert_false(hml_tx_pending(&snd.t));
	assert_seen(&snd.t.head, READ, 1);
	assert_seen(&snd.t.busy, READ, 1);
	assert_seen(&entry_at(0)->sequence, ACQUIRE, 1);
}

/* ---- receiving: B9, B10 ----------------------------------------------------- */

static void plain_slot_is_looked_at_with_acquire(void **state)
{
	const struct hamlyn_trb request = world_request(16);
	const struct hml_slot *slot = &hosts[1].slots[1];

	(void)state;
	send_and_look(&request);
	assert_seen(&slot->state, ACQUIRE, 1);
	assert_seen(&slot->key, READ, 1);
}

static struct hamlyn_packet packet_for(u32 slot)
{
	return (struct hamlyn_packet) {
		.version = HAMLYN_PACKET_VERSION,
		.flags = HAMLYN_PACKET_SINGLE,
		.length = 8,
		.host = 1,
		.slot = slot,
		.key = WORLD_KEY,
	};
}

static void special_slot_is_looked_at_with_acquire_again(void **state)
{
	struct hml_slot *slot = &hosts[1].slots[1];
	struct hamlyn_packet h = packet_for(1);

	(void)state;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	forget_all();
	assert_int_equal(admit_packet(slot, &h, plain(slot, &h)), HAMLYN_REJECT_TICKET);
	/* The state begins with it. */
	assert_seen(&slot->live, ACQUIRE, 2);
	h.flags |= HAMLYN_PACKET_TICKET;
	h.ticket_key = WORLD_TICKET;
	forget_all();
	assert_int_equal(admit_packet(slot, &h, plain(slot, &h)), -1);
	assert_seen(&slot->ticket_key, READ, 1);
	assert_seen(&slot->live, ACQUIRE, 2);
	/* Not plain for a reason that nobody has thought of: the key counts. */
	slot->flags = 0x80;
	h = packet_for(1);
	forget_all();
	assert_int_equal(admit_packet(slot, &h, plain(slot, &h)), -1);
	assert_seen(&slot->key, READ, 1);
	h.key ^= 1;
	assert_int_equal(admit_packet(slot, &h, plain(slot, &h)), HAMLYN_REJECT_KEY);
}

static struct hamlyn_metadata *arm(u32 mode)
{
	struct hamlyn_metadata *m = &hosts[1].entries[1][2];

	hosts[1].slots[1].mode = mode;
	m->key = WORLD_KEY;
	m->low = 0;
	m->high = WORLD_LENGTH;
	m->state = HAMLYN_META_ARMED;
	return m;
}

static void one_shot_entry_is_entered_with_acquire(void **state)
{
	const struct hamlyn_metadata *m = arm(HAMLYN_SLOT_PARANOID_ONE_SHOT);
	struct hamlyn_trb request = world_request(16);

	(void)state;
	request.meta_index = 2;
	request.meta_length = 4;
	send_and_look(&request);
	assert_int_equal(world_told(1), 1);
	assert_int_equal(times(&m->state, ACQUIRE), 1);
	assert_int_equal(times(&m->state, READ), 0);
	assert_true(place_of(&m->state, ACQUIRE) < place_of(&m->length, WRITE));
	/* Before the door and behind it. */
	assert_seen(&m->key, READ, 2);
	assert_seen(&m->low, READ, 2);
	assert_seen(&m->high, READ, 2);
	assert_seen(&m->meta_length, WRITE, 1);
	assert_seen(&m->length, WRITE, 1);
}

static void who_watches_looks_with_acquire(void **state)
{
	struct hml_slot *slot = &hosts[1].slots[1];
	struct hml_nic *nic = &hosts[1].nic;
	const struct hamlyn_metadata *m;

	(void)state;
	forget_all();
	assert_int_equal(hml_slot_opens(nic, slot, WORLD_KEY, 0, false), -1);
	assert_seen(&slot->live, ACQUIRE, 1);
	assert_seen(&slot->key, READ, 1);
	assert_int_equal(hml_slot_opens(nic, slot, WORLD_TICKET, 0, true), -1);
	assert_seen(&slot->ticket_key, READ, 1);
	m = arm(HAMLYN_SLOT_PARANOID);
	forget_all();
	assert_int_equal(hml_slot_opens(nic, slot, WORLD_KEY, 2, false), -1);
	assert_seen(&m->key, READ, 1);
}

/* ---- notifying: B3, B4, B5 --------------------------------------------------- */

static void entry_is_published_with_release_and_a_full_barrier(void **state)
{
	static const struct word words[] = {
		WORD(struct hamlyn_nq_entry, data),
		WORD(struct hamlyn_nq_entry, slot),
		WORD(struct hamlyn_nq_entry, index),
		WORD(struct hamlyn_nq_entry, source),
		WORD(struct hamlyn_nq_entry, length),
		WORD(struct hamlyn_nq_entry, flags),
	};
	const struct hamlyn_trb request = world_request(16);
	const struct hml_nq *nq = &hosts[1].nq.nq;
	const struct hamlyn_nq_entry *e = told_at(0);
	u32 end;

	(void)state;
	send_and_look(&request);
	assert_seen(&e->sequence, RELEASE_MB, 1);
	assert_words_seen(e, words, ARRAY_SIZE(words), WRITE);
	end = place_of(&e->sequence, RELEASE_MB);
	assert_true(place_of(&e->data, WRITE) < end);
	assert_true(place_of(&e->flags, WRITE) < end);
	/* The cursor before the consumer index; the sleeper afterwards. */
	assert_seen(&nq->cursor, ACQUIRE, 1);
	assert_seen(&nq->consumer, ACQUIRE, 1);
	assert_true(place_of(&nq->cursor, ACQUIRE) <
		    place_of(&nq->consumer, ACQUIRE));
	assert_seen(&nq->armed, READ, 1);
	assert_true(place_of(&nq->armed, READ) > end);
}

static bool append(struct world_host *host, bool wake)
{
	const struct hamlyn_nq_entry e = { .data = 1 };

	return hml_nq_append(&host->nic, &host->nq.nq,
			     hml_nq_expect(&host->nic, &host->nq.nq, 0), &e, wake);
}

static void consumer_index_comes_with_acquire_and_goes_with_release(void **state)
{
	struct world_host *host = &hosts[1];
	struct hml_nq *nq = &host->nq.nq;

	(void)state;
	/* The copy says that it is full, the application that it is empty. */
	nq->cursor = nq->mask;
	host->nq.control->consumer = nq->mask;
	forget_all();
	assert_true(append(host, true));
	assert_seen(&host->nq.control->consumer, ACQUIRE, 1);
	assert_int_equal(times(&nq->consumer, RELEASE), 1);
	assert_int_equal(times(&nq->consumer, ACQUIRE), 2);
	assert_int_equal(times(&nq->cursor, ACQUIRE), 2);
	assert_int_equal(nq->consumer, nq->mask);
}

static void quiet_entry_looks_again_whether_others_came(void **state)
{
	struct world_host *host = &hosts[1];

	(void)state;
	forget_all();
	assert_true(append(host, false));
	assert_int_equal(times(&host->nq.nq.cursor, READ), 1);
	assert_int_equal(times(&host->nq.nq.armed, READ), 0);
}

/* What was lost is told to a sleeper as well: he may have gone to sleep meanwhile. */
static void full_queue_has_a_barrier_before_the_sleeper(void **state)
{
	struct world_host *host = &hosts[1];
	struct hml_nq *nq = &host->nq.nq;

	(void)state;
	nq->cursor = nq->mask + 1;
	forget_all();
	assert_false(append(host, true));
	assert_int_equal(nq->cursor, nq->mask + 1);
	assert_true(place_of(NULL, MB) < place_of(&nq->armed, READ));
	/* A stale cursor looks full as well: it was looked at again. */
	assert_int_equal(times(&nq->cursor, ACQUIRE), 3);
}

static void report_of_an_overrun_is_looked_for_with_acquire(void **state)
{
	struct world_host *host = &hosts[1];
	struct hml_nq *nq = &host->nq.nq;
	struct hamlyn_nq_entry *last = told_at(nq->mask - 1);

	(void)state;
	nq->cursor = nq->mask;
	last->sequence = nq->mask;
	last->flags = HAMLYN_NQE_OVERRUN;
	forget_all();
	assert_false(append(host, true));
	assert_int_equal(nq->cursor, nq->mask);
	assert_int_equal(times(&last->sequence, ACQUIRE), 1);
	assert_int_equal(times(&last->flags, READ), 1);
}

/*
 * The last entry was taken by somebody who has not filled it yet: what is in it is
 * of an earlier lap, and no report of this overrun.
 */
static void report_of_an_earlier_lap_is_none(void **state)
{
	struct world_host *host = &hosts[1];
	struct hml_nq *nq = &host->nq.nq;
	u32 lap = nq->mask + 1;
	struct hamlyn_nq_entry *last = told_at(lap + nq->mask - 1);

	(void)state;
	host->nq.control->consumer = lap;
	nq->consumer = lap;
	nq->cursor = lap + nq->mask;
	last->sequence = nq->mask;
	last->flags = HAMLYN_NQE_OVERRUN;
	assert_false(append(host, true));
	assert_int_equal(nq->cursor, lap + nq->mask + 1);
	assert_int_equal(told_at(lap + nq->mask)->flags, HAMLYN_NQE_OVERRUN);
	assert_int_equal(told_at(lap + nq->mask)->sequence, lap + nq->mask + 1);
}

static void who_asks_for_an_entry_asks_with_acquire(void **state)
{
	struct world_host *host = &hosts[1];

	(void)state;
	forget_all();
	assert_false(hml_nq_ready(&host->nic, &host->nq.nq, 0));
	assert_seen(&host->nq.nq.cursor, READ, 1);
	assert_seen(&told_at(0)->sequence, ACQUIRE, 1);
}

/* ---- the link, and guesses: B11 ----------------------------------------------- */

static void watchdog_is_fed_before_it_is_set(void **state)
{
	struct hml_nic *nic = &hosts[0].nic;
	struct hml_link *l = &hosts[0].link;
	const struct hamlyn_nic_set set = {
		.flags = HAMLYN_NIC_SET_WATCHDOG | HAMLYN_NIC_SET_STATE,
		.state = HAMLYN_NIC_UP, .watchdog_ms = 5,
	};

	(void)state;
	forget_all();
	hml_link_set(nic, &set);
	assert_int_equal(times(&l->fed, READ), 1);
	assert_int_equal(times(&l->fed, WRITE), 1);
	assert_int_equal(times(&l->down, WRITE), 1);
	assert_seen(&l->watchdog_ms, RELEASE, 1);
	assert_true(place_of(&l->fed, WRITE) <
		    place_of(&l->watchdog_ms, RELEASE));
	forget_all();
	assert_true(hml_link_up(nic));
	/* All doubts in one look; then what they are. They begin with "down". */
	assert_seen(&l->doubts, READ, 2);
	assert_seen(&l->watchdog_ms, ACQUIRE, 1);
	assert_seen(&l->fed, READ, 1);
	assert_true(place_of(&l->watchdog_ms, ACQUIRE) < place_of(&l->fed, READ));
}

static void guesses_are_counted_for_readers(void **state)
{
	struct hml_nic *nic = &hosts[0].nic;
	struct hml_guard *g = &snd.t.sender.guard;

	(void)state;
	nic->guesses = 1;
	forget_all();
	hml_guard_guess(nic, &snd.t.sender);
	assert_seen(&nic->guesses, READ, 1);
	hml_guard_guess(nic, &snd.t.sender);
	assert_seen(&g->until, WRITE, 1);
	unit_now_ns = g->until;
	assert_false(hml_guard_paused(nic, g));
	assert_seen(&g->until, WRITE, 2);
}

/* ---- edges --------------------------------------------------------------------- */

/* A slot that was never given a ticket key is opened by no ticket, also not by 0. */
static void ticket_key_of_nobody_opens_nothing(void **state)
{
	struct hml_slot *slot = &hosts[1].slots[1];
	struct hamlyn_packet h = packet_for(1);

	(void)state;
	h.flags |= HAMLYN_PACKET_TICKET;
	h.ticket_key = 0;
	slot->ticket_key = 0;
	assert_int_equal(admit_packet(slot, &h, plain(slot, &h)), HAMLYN_REJECT_KEY);
	assert_int_equal(hml_slot_opens(&hosts[1].nic, slot, 0, 0, true),
			 HAMLYN_REJECT_KEY);
}

/* To the entry that arm() armed. */
static void send_part(u64 offset, u64 length, s32 delta)
{
	struct hamlyn_trb request = world_request(length);

	request.meta_index = 2;
	request.offset = offset;
	request.delta = (u32)delta;
	assert_int_equal(world_send(&snd, &request), 0);
}

static void limits_that_cross_let_nothing_in(void **state)
{
	struct hamlyn_metadata *m = arm(HAMLYN_SLOT_PARANOID);
	u64 offset;

	(void)state;
	m->low = 200;
	m->high = 100;
	for (offset = 0; offset < 400; offset += 50)
		send_part(offset, 8, 0);
	world_assert_landed(1, 1, 0, 0);
	assert_int_equal(world_told(1), 0);
}

/* What is left in the counter of an entry does not hold up who is not counted. */
static void single_packet_is_told_whatever_was_counted_before(void **state)
{
	struct hamlyn_metadata *m = arm(HAMLYN_SLOT_PARANOID);

	(void)state;
	m->accumulator = 7;
	send_part(0, 16, 0);
	assert_int_equal(world_told(1), 1);
	assert_int_equal(m->accumulator, 7);
}

static void one_shot_length_of_a_single_packet_is_its_own(void **state)
{
	struct hamlyn_metadata *m = arm(HAMLYN_SLOT_PARANOID_ONE_SHOT);

	(void)state;
	m->length = 1000;
	send_part(0, 16, 0);
	assert_int_equal(world_told(1), 1);
	assert_int_equal(m->length, 16);
}

/* The last packet brings nothing to the counter, and its bytes count all the same. */
static void one_shot_length_of_a_long_message_is_all_of_it(void **state)
{
	struct hamlyn_metadata *m = arm(HAMLYN_SLOT_PARANOID_ONE_SHOT);

	(void)state;
	m->accumulator = 5;	/* more is to come from others */
	send_part(0, 2 * WORLD_PACKET + 8, 2);
	assert_int_equal(world_told(1), 0);
	assert_int_equal(m->length, 2 * WORLD_PACKET + 8);
}

static void one_shot_length_of_several_messages_is_their_sum(void **state)
{
	struct hamlyn_metadata *m = arm(HAMLYN_SLOT_PARANOID_ONE_SHOT);

	(void)state;
	send_part(0, 8, 1);
	assert_int_equal(world_told(1), 0);
	send_part(8, 24, -1);
	assert_int_equal(world_told(1), 1);
	assert_int_equal(m->length, 32);
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(plain_request_is_read_once_behind_its_sequence),
		TEST(other_requests_are_copied_once),
		TEST(each_word_of_a_fragment_is_read_once),
		TEST(failures_are_written_for_a_reader),
		TEST(who_asks_whether_there_is_work_reads_once),
		TEST(plain_slot_is_looked_at_with_acquire),
		TEST(special_slot_is_looked_at_with_acquire_again),
		TEST(one_shot_entry_is_entered_with_acquire),
		TEST(who_watches_looks_with_acquire),
		TEST(entry_is_published_with_release_and_a_full_barrier),
		TEST(consumer_index_comes_with_acquire_and_goes_with_release),
		TEST(quiet_entry_looks_again_whether_others_came),
		TEST(full_queue_has_a_barrier_before_the_sleeper),
		TEST(report_of_an_overrun_is_looked_for_with_acquire),
		TEST(report_of_an_earlier_lap_is_none),
		TEST(who_asks_for_an_entry_asks_with_acquire),
		TEST(watchdog_is_fed_before_it_is_set),
		TEST(guesses_are_counted_for_readers),
		TEST(ticket_key_of_nobody_opens_nothing),
		TEST(limits_that_cross_let_nothing_in),
		TEST(single_packet_is_told_whatever_was_counted_before),
		TEST(one_shot_length_of_a_single_packet_is_its_own),
		TEST(one_shot_length_of_a_long_message_is_all_of_it),
		TEST(one_shot_length_of_several_messages_is_their_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
