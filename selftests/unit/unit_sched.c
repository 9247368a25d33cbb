// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who is served when: core/sched.c with the real hml_tx_run() and termini that
 * differ in what they send. The fabric is this program's: it only counts.
 */
#include "unit.h"

static void fabric(const struct hml_sender *sender,
		   const struct hamlyn_packet *h,
		   const struct hml_payload *payload);

#undef hml_port_carry
#define hml_port_carry(from, path, h, payload, sender)	fabric(sender, h, payload)

#include "tx.c"
#include "sched.c"
#include "guard.c"
#include "link.c"

/* No path of this program is in doubt. */
void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_sender *sender)
{
	(void)nic;
	(void)h;
	(void)payload;
	(void)sender;
	abort();
}

/* Whatever it is, it goes the way that is counted here. */
bool hml_rx_plain(struct hml_nic *nic, struct hml_single s, const void *flat,
		  struct hml_sender *sender)
{
	(void)nic;
	(void)s;
	(void)flat;
	(void)sender;
	return false;
}

#define HOST	3
#define PACKET	1024
#define MANY	32
#define HUGE_MESSAGE	(1ULL << 30)

#define USERS	4

struct peer {
	struct hml_turn turn;
	struct hml_terminus t;
	struct hml_view tag;
	struct hml_stats stats;
	struct hamlyn_wq_control wq;
	u32 entries;
	u32 id;
	/* Length of its next message; it always has one. NULL: it has none. */
	u64 (*next_length)(struct peer *p);
	u64 length;
	u64 charge;		/* bytes, and at least a share for each packet */
	u32 turns;
};

static struct hml_nic nic;
static struct hml_link link_of_nic;
static struct hml_order order;
static struct hml_share shares[USERS];
static struct peer *peers;
static u32 nr_peers;
static u64 rng;

/* Whose packets left, one by one. */
static u8 left[200000];
static u32 nr_left;

static void fabric(const struct hml_sender *sender,
		   const struct hamlyn_packet *h,
		   const struct hml_payload *payload)
{
	u32 i;

	(void)payload;
	for (i = 0; &peers[i].t.sender != sender; i++)
		assert_true(i + 1 < nr_peers);
	peers[i].charge += h->length < PACKET / 16 ? PACKET / 16 : h->length;
	if (nr_left < sizeof(left))
		left[nr_left++] = i;
}

static void begin(u32 n)
{
	u32 i;

	peers = unit_zalloc(n * sizeof(*peers));
	nr_peers = n;
	for (i = 0; i < n; i++) {
		struct peer *p = &peers[i];

		p->id = i;
		p->entries = 32;
		p->turn.share = shares;
		p->turn.weight = 1;
		p->t.sender.stats = &p->stats;
		p->t.wq = &p->wq;
		p->t.entry_size = 128;
		p->t.entry_shift = 7;
		/* Of an endless buffer, which nobody reads. */
		p->tag.length = 1ULL << 40;
		p->t.tags = &p->tag;
		p->t.tag_count = 1;
	}
}

static void end(void)
{
	u32 i;

	for (i = 0; i < nr_peers; i++) {
		free((void *)peers[i].t.entries);
		free(peers[i].t.status);
	}
	free(peers);
	peers = NULL;
	nr_peers = 0;
}

static void forget(void)
{
	memset(&order, 0, sizeof(order));
	memset(shares, 0, sizeof(shares));
}

static int setup(void **state)
{
	(void)state;
	forget();
	nic.host = HOST;
	nic.packet_size = PACKET;
	nic.link = &link_of_nic;
	rng = unit_seed();
	nr_left = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	end();
	return 0;
}

static void make_queue(struct peer *p)
{
	if (p->t.entries)
		return;
	p->t.entries = unit_zalloc(p->entries * 128);
	p->t.status = unit_zalloc(sizeof(*p->t.status) +
				  p->entries * sizeof(s32));
	p->t.mask = p->entries - 1;
}

static void post(struct peer *p, u64 length)
{
	struct hamlyn_trb trb = {
		.host = HOST,
		.length = length,
		.fragments = 1,
	};
	struct hamlyn_fragment f = { .length = length };
	u8 *entry;

	make_queue(p);
	entry = (u8 *)p->t.entries + (p->wq.producer & p->t.mask) * 128;
	memcpy(entry, &trb, sizeof(trb));
	memcpy(entry + sizeof(trb), &f, sizeof(f));
	((struct hamlyn_trb *)entry)->sequence = ++p->wq.producer;
}

static void refill(struct peer *p)
{
	if (!p->next_length)
		return;
	while (p->wq.producer - p->t.head < p->entries)
		post(p, p->next_length(p));
}

static u64 always_the_same(struct peer *p)
{
	return p->length;
}

static u64 any_length(struct peer *p)
{
	(void)p;
	switch (unit_below(&rng, 4)) {
	case 0:
		return unit_below(&rng, 64);
	case 1:
		return unit_below(&rng, PACKET + 1);
	case 2:
		return PACKET + unit_below(&rng, 4) * PACKET;
	default:
		return unit_below(&rng, 10 * PACKET);
	}
}

static void greedy(struct peer *p, u64 length)
{
	p->next_length = length ? always_the_same : any_length;
	p->length = length;
}

static struct peer *peer_of(struct hml_turn *turn)
{
	return (struct peer *)((u8 *)turn - offsetof(struct peer, turn));
}

static u32 work(struct peer *p)
{
	s64 credit = hml_turn_credit(&p->turn, PACKET);
	u32 sent;

	make_queue(p);
	refill(p);
	p->turns++;
	sent = hml_tx_run(&nic, &p->t, UINT32_MAX, &credit);
	hml_order_done(&order, &p->turn, credit, sent);
	return sent;
}

/* One turn, as an engine does it. */
static struct peer *serve(void)
{
	struct hml_turn *turn = hml_order_next(&order);

	if (!turn)
		return NULL;
	work(peer_of(turn));
	return peer_of(turn);
}

static void serve_times(u32 n)
{
	while (n--)
		assert_non_null(serve());
}

/* Until it has sent a message. Returns the turns that took. */
static u32 serve_until_sent(const struct peer *p)
{
	u32 turns = 0;

	while (!p->stats.messages) {
		assert_true(turns++ < 1000);
		serve();
	}
	return turns;
}

static void add_all(void)
{
	u32 i;

	for (i = 0; i < nr_peers; i++)
		hml_order_add(&order, &peers[i].turn);
}

/* ---- round robin --------------------------------------------------------- */

static void nobody_is_next_in_an_empty_order(void **state)
{
	(void)state;
	assert_null(hml_order_next(&order));
	begin(1);
	hml_order_add(&order, &peers[0].turn);
	assert_ptr_equal(hml_order_next(&order), &peers[0].turn);
	hml_order_remove(&order, &peers[0].turn);
	assert_null(hml_order_next(&order));
	assert_null(peers[0].turn.next);
}

static void who_is_alone_has_every_turn(void **state)
{
	u32 i;

	(void)state;
	begin(1);
	greedy(peers, HUGE_MESSAGE);
	add_all();
	for (i = 1; i <= 100; i++) {
		assert_ptr_equal(serve(), peers);
		assert_int_equal(peers[0].stats.packets, i);
	}
}

static void turns_go_round_in_the_order_of_coming(void **state)
{
	u32 n, i;

	(void)state;
	for (n = 1; n <= MANY; n++) {
		forget();
		begin(n);
		for (i = 0; i < n; i++)
			greedy(&peers[i], HUGE_MESSAGE);
		add_all();
		for (i = 0; i < 5 * n; i++)
			assert_ptr_equal(serve(), &peers[i % n]);
		end();
	}
}

static void newcomer_is_last_of_its_priority(void **state)
{
	u32 i;

	(void)state;
	begin(4);
	for (i = 0; i < 4; i++)
		greedy(&peers[i], HUGE_MESSAGE);
	for (i = 0; i < 3; i++)
		hml_order_add(&order, &peers[i].turn);
	assert_ptr_equal(serve(), &peers[0]);
	hml_order_add(&order, &peers[3].turn);
	assert_ptr_equal(serve(), &peers[1]);
	assert_ptr_equal(serve(), &peers[2]);
	assert_ptr_equal(serve(), &peers[0]);
	assert_ptr_equal(serve(), &peers[3]);
	assert_ptr_equal(serve(), &peers[1]);
}

static void removed_one_leaves_the_others_in_their_order(void **state)
{
	u32 gone, i, k;

	(void)state;
	for (gone = 0; gone < 5; gone++) {
		forget();
		begin(5);
		for (i = 0; i < 5; i++)
			greedy(&peers[i], HUGE_MESSAGE);
		add_all();
		serve_times(2);
		hml_order_remove(&order, &peers[gone].turn);
		assert_null(peers[gone].turn.next);
		assert_null(peers[gone].turn.prev);
		for (i = 2, k = 0; k < 12; i++) {
			if (i % 5 == gone)
				continue;
			assert_ptr_equal(serve(), &peers[i % 5]);
			k++;
		}
		end();
	}
}

/* ---- fairness ------------------------------------------------------------ */

static void after_each_round_shares_in_bytes_differ_by_less_than_a_packet(void **state)
{
	u32 n, round, i;

	(void)state;
	for (n = 2; n <= MANY; n += 3) {
		forget();
		begin(n);
		for (i = 0; i < n; i++)
			greedy(&peers[i], 0);
		add_all();
		for (round = 1; round <= 300; round++) {
			u64 least = U64_MAX, most = 0;

			serve_times(n);
			for (i = 0; i < n; i++) {
				u64 c = peers[i].charge;

				least = c < least ? c : least;
				most = c > most ? c : most;
				/* Its due, and overdrawn by less than one. */
				assert_true(c >= (u64)round * PACKET);
				assert_true(c < (u64)(round + 1) * PACKET);
			}
			assert_true(most - least < PACKET);
		}
		end();
	}
}

/* Each one's own size, from the shortest packet that pays for itself. */
static void small_messages_get_as_many_bytes_as_large_ones(void **state)
{
	static const u64 lengths[] = {
		64, 65, 100, 512, 700, 1023, 1024, 5 * 1024, HUGE_MESSAGE,
	};
	u32 i;

	(void)state;
	begin(ARRAY_SIZE(lengths));
	for (i = 0; i < nr_peers; i++)
		greedy(&peers[i], lengths[i]);
	add_all();
	serve_times(1000 * nr_peers);
	for (i = 0; i < nr_peers; i++) {
		assert_true(peers[i].stats.bytes >= 1000 * PACKET);
		assert_true(peers[i].stats.bytes < 1001 * PACKET);
	}
	/* And so many packets more. */
	assert_int_equal(peers[0].stats.packets, 16 * 1000);
	assert_int_equal(peers[8].stats.packets, 1000);
}

static void shortest_packets_are_sixteen_to_a_long_one(void **state)
{
	static const u64 lengths[] = { 1, 63 };
	u32 i;

	(void)state;
	begin(3);
	greedy(&peers[0], lengths[0]);
	greedy(&peers[1], lengths[1]);
	greedy(&peers[2], HUGE_MESSAGE);
	add_all();
	serve_times(3 * 100);
	for (i = 0; i < 2; i++)
		assert_int_equal(peers[i].stats.packets, 1600);
	assert_int_equal(peers[2].stats.packets, 100);
}

static void shares_are_as_the_weights(void **state)
{
	static const u32 weights[] = { 1, 2, 3, 7, 16, HAMLYN_MAX_WEIGHT };
	u32 round, i;

	(void)state;
	begin(ARRAY_SIZE(weights));
	for (i = 0; i < nr_peers; i++) {
		peers[i].turn.weight = weights[i];
		peers[i].entries = 2048;
		greedy(&peers[i], i & 1 ? HUGE_MESSAGE : 0);
	}
	add_all();
	for (round = 1; round <= 50; round++) {
		serve_times(nr_peers);
		for (i = 0; i < nr_peers; i++) {
			u64 due = (u64)round * weights[i] * PACKET;

			assert_true(peers[i].charge >= due);
			assert_true(peers[i].charge < due + PACKET);
		}
	}
}

static void equal_weights_are_equal_shares_whatever_they_are(void **state)
{
	u32 i;

	(void)state;
	begin(3);
	for (i = 0; i < 3; i++) {
		peers[i].turn.weight = 5;
		greedy(&peers[i], HUGE_MESSAGE);
	}
	add_all();
	serve_times(3 * 20);
	for (i = 0; i < 3; i++)
		assert_int_equal(peers[i].stats.packets, 100);
}

/* Counted in packets, for a small message that is posted at any moment. */
static void huge_messages_delay_a_small_one_by_a_packet_each_at_most(void **state)
{
	u32 n, at, i;

	(void)state;
	for (n = 1; n <= MANY; n++) {
		for (at = 0; at <= 2 * n; at++) {
			u32 before;

			forget();
			begin(n + 1);
			for (i = 1; i <= n; i++)
				greedy(&peers[i], HUGE_MESSAGE);
			add_all();
			serve_times(at);
			post(peers, 8);
			nr_left = 0;
			before = serve_until_sent(peers) - 1;
			assert_true(before <= n);
			assert_int_equal(nr_left, before + 1);
			end();
		}
	}
}

/* So also if it is not in the order yet: a KICK adds it. */
static void small_message_of_a_newcomer_waits_a_packet_each_at_most(void **state)
{
	u32 n, i;

	(void)state;
	for (n = 1; n <= MANY; n++) {
		forget();
		begin(n + 1);
		for (i = 1; i <= n; i++) {
			greedy(&peers[i], HUGE_MESSAGE);
			hml_order_add(&order, &peers[i].turn);
		}
		serve_times(n / 2 + 1);
		post(peers, 8);
		hml_order_add(&order, &peers[0].turn);
		nr_left = 0;
		serve_until_sent(peers);
		assert_true(nr_left <= n + 1);
		end();
	}
}

static void nobody_starves_within_a_priority(void **state)
{
	u32 round, i;

	(void)state;
	begin(MANY);
	for (i = 0; i < MANY; i++) {
		peers[i].turn.weight = 1 + unit_below(&rng, HAMLYN_MAX_WEIGHT);
		peers[i].entries = 2048;
		greedy(&peers[i], unit_below(&rng, 2) ? 0 : HUGE_MESSAGE);
	}
	add_all();
	for (round = 0; round < 20; round++) {
		u64 had[MANY];

		for (i = 0; i < MANY; i++)
			had[i] = peers[i].stats.packets;
		serve_times(MANY);
		for (i = 0; i < MANY; i++)
			assert_true(peers[i].stats.packets > had[i]);
	}
}

/* ---- credit -------------------------------------------------------------- */

static void credit_is_a_packet_for_each_unit_of_weight_less_debts(void **state)
{
	struct hml_turn turn = { .weight = 1, .share = shares };

	(void)state;
	assert_int_equal(hml_turn_credit(&turn, PACKET), PACKET);
	turn.weight = HAMLYN_MAX_WEIGHT;
	assert_int_equal(hml_turn_credit(&turn, HAMLYN_MAX_PACKET),
			 (s64)HAMLYN_MAX_WEIGHT * HAMLYN_MAX_PACKET);
	turn.weight = 1;
	turn.credit = 1 - PACKET;
	assert_int_equal(hml_turn_credit(&turn, PACKET), 1);
}

static void debt_is_carried_over_and_credit_is_not(void **state)
{
	(void)state;
	begin(1);
	add_all();
	hml_order_done(&order, &peers[0].turn, -77, 1);
	assert_int_equal(peers[0].turn.credit, -77);
	assert_int_equal(hml_turn_credit(&peers[0].turn, PACKET), PACKET - 77);
	hml_order_done(&order, &peers[0].turn, 500, 1);
	assert_int_equal(peers[0].turn.credit, 0);
	hml_order_done(&order, &peers[0].turn, 500, 0);
	assert_int_equal(peers[0].turn.credit, 0);
	hml_order_done(&order, &peers[0].turn, 0, 1);
	assert_int_equal(peers[0].turn.credit, 0);
}

static void who_was_silent_for_long_has_saved_nothing(void **state)
{
	u32 i;

	(void)state;
	begin(2);
	greedy(&peers[0], HUGE_MESSAGE);
	add_all();
	serve_times(1000);
	greedy(&peers[1], HUGE_MESSAGE);
	for (i = 0; i < 2; i++)
		peers[i].charge = 0;
	serve_times(20);
	assert_int_equal(peers[0].charge, 10 * PACKET);
	assert_int_equal(peers[1].charge, 10 * PACKET);
}

/* 1024 + 1 bytes: the turn begins with 1 byte of credit and takes 1024. */
static void who_has_overdrawn_gets_less_the_next_time(void **state)
{
	(void)state;
	begin(1);
	add_all();
	post(peers, 1);
	post(peers, HUGE_MESSAGE);
	serve();
	/* A short one, and a long one for what is left. */
	assert_int_equal(peers[0].stats.packets, 2);
	assert_int_equal(peers[0].turn.credit, -PACKET / 16);
	serve();
	assert_int_equal(peers[0].stats.packets, 3);
	assert_int_equal(peers[0].turn.credit, -PACKET / 16);
}

static void leaving_and_coming_back_does_not_cancel_a_debt(void **state)
{
	(void)state;
	begin(1);
	add_all();
	hml_order_done(&order, &peers[0].turn, -100, 1);
	hml_order_remove(&order, &peers[0].turn);
	hml_order_add(&order, &peers[0].turn);
	assert_int_equal(peers[0].turn.credit, -100);
}

static void leaving_and_coming_back_does_not_keep_a_credit(void **state)
{
	(void)state;
	begin(1);
	peers[0].turn.credit = 100;
	hml_order_add(&order, &peers[0].turn);
	assert_int_equal(peers[0].turn.credit, 0);
	hml_order_remove(&order, &peers[0].turn);
	peers[0].turn.credit = 0;
	hml_order_add(&order, &peers[0].turn);
	assert_int_equal(peers[0].turn.credit, 0);
}

/* ---- who has nothing ----------------------------------------------------- */

static void idle_ones_pass_and_cost_the_others_nothing(void **state)
{
	u32 i;

	(void)state;
	begin(MANY);
	greedy(&peers[7], HUGE_MESSAGE);
	greedy(&peers[20], 100);
	add_all();
	serve_times(100 * MANY);
	/* Each was asked as often as any other. */
	for (i = 0; i < MANY; i++)
		assert_int_equal(peers[i].turns, 100);
	assert_int_equal(peers[7].charge, 100 * PACKET);
	assert_true(peers[20].charge - 100 * PACKET < 100);
	for (i = 0; i < MANY; i++)
		if (i != 7 && i != 20)
			assert_int_equal(peers[i].turn.credit, 0);
}

/* The engine tells from the number of turns without a packet. */
static void when_all_are_idle_each_is_asked_once_in_so_many_turns(void **state)
{
	u32 round, i;

	(void)state;
	begin(9);
	for (i = 0; i < 9; i++)
		peers[i].turn.priority = i % 3;
	add_all();
	for (round = 1; round <= 10; round++) {
		serve_times(9);
		for (i = 0; i < 9; i++)
			assert_int_equal(peers[i].turns, round);
	}
	assert_int_equal(nr_left, 0);
}

static void what_comes_while_all_are_idle_leaves_within_a_round(void **state)
{
	u32 priority, n, i;

	(void)state;
	for (priority = 0; priority < HAMLYN_PRIORITIES; priority++) {
		for (n = 0; n < 20; n++) {
			forget();
			begin(9);
			for (i = 0; i < 9; i++)
				peers[i].turn.priority = i % 3;
			add_all();
			serve_times(n);
			post(&peers[priority], 1);
			assert_true(serve_until_sent(&peers[priority]) <= 2 * 9);
			end();
		}
	}
}

/* ---- priorities ---------------------------------------------------------- */

static void lower_priority_gets_nothing_while_a_higher_one_has_packets(void **state)
{
	u32 i;

	(void)state;
	begin(6);
	for (i = 0; i < 6; i++) {
		peers[i].turn.priority = i % 3;
		greedy(&peers[i], HUGE_MESSAGE);
	}
	add_all();
	serve_times(100);
	assert_int_equal(peers[HAMLYN_PRIORITY_HIGH].stats.packets, 50);
	assert_int_equal(peers[3 + HAMLYN_PRIORITY_HIGH].stats.packets, 50);
	peers[2].next_length = NULL;
	peers[5].next_length = NULL;
	hml_order_remove(&order, &peers[2].turn);
	hml_order_remove(&order, &peers[5].turn);
	serve_times(100);
	assert_int_equal(peers[HAMLYN_PRIORITY_NORMAL].stats.packets, 50);
	assert_int_equal(peers[3 + HAMLYN_PRIORITY_NORMAL].stats.packets, 50);
	assert_int_equal(peers[HAMLYN_PRIORITY_BULK].stats.packets, 0);
	hml_order_remove(&order, &peers[0].turn);
	hml_order_remove(&order, &peers[3].turn);
	serve_times(100);
	assert_int_equal(peers[HAMLYN_PRIORITY_BULK].stats.packets, 50);
}

static void weight_and_number_do_not_make_up_for_priority(void **state)
{
	u32 i;

	(void)state;
	begin(11);
	for (i = 0; i < 10; i++) {
		peers[i].turn.weight = HAMLYN_MAX_WEIGHT;
		greedy(&peers[i], HUGE_MESSAGE);
	}
	peers[10].turn.priority = HAMLYN_PRIORITY_HIGH;
	greedy(&peers[10], 1);
	add_all();
	serve_times(200);
	assert_int_equal(peers[10].turns, 200);
	for (i = 0; i < 10; i++)
		assert_int_equal(peers[i].turns, 0);
}

/* Behind at most the turn that is under way, whoever there is below. */
static void high_one_that_arrives_in_the_middle_is_next(void **state)
{
	u32 at, i;

	(void)state;
	for (at = 0; at < 3 * MANY; at++) {
		forget();
		begin(MANY + 1);
		for (i = 0; i < MANY; i++) {
			peers[i].turn.priority = i & 1;
			greedy(&peers[i], HUGE_MESSAGE);
		}
		peers[MANY].turn.priority = HAMLYN_PRIORITY_HIGH;
		add_all();
		serve_times(at);
		post(&peers[MANY], 3 * PACKET);
		nr_left = 0;
		serve_until_sent(&peers[MANY]);
		/* If it had passed just before, one of the others' leaves. */
		assert_true(nr_left <= 4);
		for (i = nr_left - 3; i < nr_left; i++)
			assert_int_equal(left[i], MANY);
		end();
	}
}

static void high_one_that_is_added_in_the_middle_is_next(void **state)
{
	u32 at;

	(void)state;
	for (at = 0; at < 10; at++) {
		forget();
		begin(4);
		peers[0].turn.priority = HAMLYN_PRIORITY_BULK;
		greedy(&peers[0], HUGE_MESSAGE);
		peers[3].turn.priority = HAMLYN_PRIORITY_HIGH;
		greedy(&peers[3], HUGE_MESSAGE);
		hml_order_add(&order, &peers[0].turn);
		hml_order_add(&order, &peers[1].turn);
		hml_order_add(&order, &peers[2].turn);
		serve_times(at);
		hml_order_add(&order, &peers[3].turn);
		assert_ptr_equal(serve(), &peers[3]);
		assert_ptr_equal(serve(), &peers[3]);
		end();
	}
}

static void idle_ones_above_are_asked_before_each_turn_below(void **state)
{
	u32 i;

	(void)state;
	begin(4);
	peers[0].turn.priority = HAMLYN_PRIORITY_BULK;
	greedy(&peers[0], HUGE_MESSAGE);
	peers[2].turn.priority = HAMLYN_PRIORITY_HIGH;
	add_all();
	for (i = 0; i < 10; i++) {
		assert_ptr_equal(serve(), &peers[2]);
		serve();
		assert_ptr_not_equal(serve(), peers);
		assert_ptr_equal(serve(), peers);
	}
	assert_int_equal(peers[0].stats.packets, 10);
}

static void unknown_priority_is_normal(void **state)
{
	(void)state;
	begin(3);
	peers[0].turn.priority = HAMLYN_PRIORITY_BULK;
	peers[1].turn.priority = 77;
	peers[2].turn.priority = HAMLYN_PRIORITY_HIGH;
	add_all();
	assert_ptr_equal(serve(), &peers[2]);
	assert_ptr_equal(serve(), &peers[1]);
	assert_ptr_equal(serve(), &peers[0]);
}

/* ---- leaving ------------------------------------------------------------- */

/* The one that left had passed; the one that stays has not been asked. */
static void who_leaves_takes_its_pass_along(void **state)
{
	(void)state;
	begin(3);
	greedy(&peers[1], HUGE_MESSAGE);
	peers[2].turn.priority = HAMLYN_PRIORITY_BULK;
	greedy(&peers[2], HUGE_MESSAGE);
	add_all();
	assert_ptr_equal(serve(), &peers[0]);
	hml_order_remove(&order, &peers[0].turn);
	assert_ptr_equal(serve(), &peers[1]);
	assert_int_equal(peers[2].stats.packets, 0);
}

static void who_leaves_in_its_turn_does_not_pass_for_another(void **state)
{
	struct hml_turn *turn;

	(void)state;
	begin(3);
	greedy(&peers[1], HUGE_MESSAGE);
	peers[2].turn.priority = HAMLYN_PRIORITY_BULK;
	greedy(&peers[2], HUGE_MESSAGE);
	add_all();
	turn = hml_order_next(&order);
	assert_ptr_equal(turn, &peers[0].turn);
	hml_order_remove(&order, turn);
	work(&peers[0]);
	assert_ptr_equal(serve(), &peers[1]);
	assert_int_equal(peers[2].stats.packets, 0);
}

/* It would be one pass too many, and the newcomer would not be asked. */
static void who_comes_in_the_turn_of_an_idle_one_is_asked_first(void **state)
{
	struct hml_turn *turn;

	(void)state;
	begin(3);
	greedy(&peers[1], HUGE_MESSAGE);
	peers[2].turn.priority = HAMLYN_PRIORITY_BULK;
	greedy(&peers[2], HUGE_MESSAGE);
	hml_order_add(&order, &peers[0].turn);
	hml_order_add(&order, &peers[2].turn);
	turn = hml_order_next(&order);
	hml_order_add(&order, &peers[1].turn);
	work(peer_of(turn));
	assert_ptr_equal(serve(), &peers[0]);
	assert_ptr_equal(serve(), &peers[1]);
}

static void last_one_that_leaves_in_its_turn_leaves_an_empty_order(void **state)
{
	struct hml_turn *turn;

	(void)state;
	begin(1);
	greedy(&peers[0], HUGE_MESSAGE);
	add_all();
	turn = hml_order_next(&order);
	hml_order_remove(&order, turn);
	assert_int_equal(work(&peers[0]), 1);
	assert_null(hml_order_next(&order));
	hml_order_add(&order, turn);
	assert_ptr_equal(serve(), &peers[0]);
}

static void last_one_that_leaves_in_its_turn_idle_leaves_an_empty_order(void **state)
{
	struct hml_turn *turn;
	u32 i;

	(void)state;
	begin(2);
	peers[1].turn.priority = HAMLYN_PRIORITY_BULK;
	greedy(&peers[1], 1);
	add_all();
	turn = hml_order_next(&order);
	hml_order_remove(&order, turn);
	assert_int_equal(work(&peers[0]), 0);
	for (i = 0; i < 5; i++)
		assert_ptr_equal(serve(), &peers[1]);
	hml_order_add(&order, turn);
	greedy(&peers[0], 1);
	assert_ptr_equal(serve(), &peers[0]);
}

/* ---- users --------------------------------------------------------------- */

/* The first is one user's, all others are another's. */
static void begin_two_users(u32 n)
{
	u32 i;

	begin(n);
	peers[0].turn.share = &shares[0];
	for (i = 1; i < n; i++)
		peers[i].turn.share = &shares[1];
}

static void many_termini_are_no_more_than_one(void **state)
{
	u32 n, i;

	(void)state;
	for (n = 2; n <= MANY; n++) {
		u64 others = 0;

		forget();
		begin_two_users(n);
		for (i = 0; i < n; i++)
			greedy(&peers[i], 0);
		add_all();
		serve_times(400);
		for (i = 1; i < n; i++) {
			others += peers[i].charge;
			/* And within the user it goes round. */
			assert_true(peers[i].turns >= 200 / (n - 1));
			assert_true(peers[i].turns <= 200 / (n - 1) + 1);
		}
		assert_int_equal(peers[0].turns, 200);
		assert_true(peers[0].charge < 201 * PACKET);
		assert_true(others < (200 + n) * PACKET);
		end();
	}
}

/* Posted at any moment: as beside one terminus of the other user. */
static void a_crowd_of_one_user_delays_another_by_one_packet(void **state)
{
	u32 n, at, i;

	(void)state;
	for (n = 2; n <= MANY; n++) {
		for (at = 0; at <= 2 * n; at++) {
			forget();
			begin_two_users(n);
			for (i = 1; i < n; i++)
				greedy(&peers[i], HUGE_MESSAGE);
			add_all();
			serve_times(at);
			post(peers, 8);
			nr_left = 0;
			serve_until_sent(peers);
			assert_true(nr_left <= 2);
			end();
		}
	}
}

/* So also where they have nothing, and are only asked. */
static void idle_termini_of_one_user_are_asked_some_at_a_time(void **state)
{
	u32 i;

	(void)state;
	begin_two_users(4 * HML_ORDER_ASKS);
	greedy(&peers[0], HUGE_MESSAGE);
	add_all();
	for (i = 0; i < 40; i++) {
		u32 before = peers[0].turns;
		u32 others = 0;

		while (peers[0].turns == before) {
			serve();
			others++;
		}
		assert_true(others <= HML_ORDER_ASKS + 1);
	}
	/* Each in turn. */
	for (i = 1; i < nr_peers; i++)
		assert_in_range(peers[i].turns, 9, 11);
}

static void a_busy_terminus_among_idle_ones_has_its_users_share(void **state)
{
	(void)state;
	begin_two_users(HML_ORDER_ASKS);
	greedy(&peers[0], HUGE_MESSAGE);
	greedy(&peers[7], HUGE_MESSAGE);
	add_all();
	while (peers[0].turns < 100)
		serve();
	assert_in_range(peers[7].stats.packets, 99, 101);
}

static void weights_count_within_and_between_users(void **state)
{
	(void)state;
	begin_two_users(3);
	peers[0].turn.weight = 4;
	peers[1].turn.weight = 3;
	greedy(&peers[0], HUGE_MESSAGE);
	greedy(&peers[1], HUGE_MESSAGE);
	greedy(&peers[2], HUGE_MESSAGE);
	add_all();
	serve_times(400);
	assert_int_equal(peers[0].stats.packets, 4 * 200);
	assert_int_equal(peers[1].stats.packets, 3 * 100);
	assert_int_equal(peers[2].stats.packets, 100);
}

static void priorities_are_strict_between_users(void **state)
{
	u32 i;

	(void)state;
	begin_two_users(5);
	peers[0].turn.priority = HAMLYN_PRIORITY_BULK;
	peers[4].turn.priority = HAMLYN_PRIORITY_HIGH;
	for (i = 0; i < 5; i++)
		greedy(&peers[i], HUGE_MESSAGE);
	add_all();
	serve_times(100);
	assert_int_equal(peers[4].stats.packets, 100);
	hml_order_remove(&order, &peers[4].turn);
	serve_times(99);
	assert_int_equal(peers[0].stats.packets, 0);
	for (i = 1; i < 4; i++) {
		assert_int_equal(peers[i].stats.packets, 33);
		hml_order_remove(&order, &peers[i].turn);
	}
	assert_ptr_equal(serve(), &peers[0]);
}

/* ---- against a model ----------------------------------------------------- */

/*
 * The rules in other words: a line of termini in order of service, and who has
 * passed since anybody has sent something. A line of users, too: those of whose
 * termini all have passed stand in another one, and come after the rest when
 * they come again. There is a line for each priority.
 */
#define MODEL	12

static u32 line[MODEL];		/* of all users and priorities, next one first */
static u32 in_line;
static bool passed[MODEL];
static u32 in_turn;		/* whose turn it is, while it counts */

struct user_line {
	u32 users[USERS];
	u32 n;
};

static struct user_line asked[HAMLYN_PRIORITIES], done_with[HAMLYN_PRIORITIES];
static u32 passes[HAMLYN_PRIORITIES][USERS];	/* in this visit */

static u32 model_rank(u32 id)
{
	static const u32 ranks[HAMLYN_PRIORITIES] = { 1, 2, 0 };

	return ranks[peers[id].turn.priority];
}

static u32 model_user(u32 id)
{
	return (u32)(peers[id].turn.share - shares);
}

static u32 place_of(u32 id)
{
	u32 i;

	for (i = 0; i < in_line; i++)
		if (line[i] == id)
			return i;
	return MODEL;
}

static void model_remove(u32 id)
{
	u32 at = place_of(id);

	memmove(line + at, line + at + 1, (in_line - at - 1) * sizeof(*line));
	in_line--;
}

static bool stands(const struct user_line *l, u32 user)
{
	u32 i;

	for (i = 0; i < l->n; i++)
		if (l->users[i] == user)
			return true;
	return false;
}

static void to_the_end(struct user_line *l, u32 user)
{
	l->users[l->n++] = user;
}

static void out_of(struct user_line *l, u32 user)
{
	u32 i, n = 0;

	for (i = 0; i < l->n; i++)
		if (l->users[i] != user)
			l->users[n++] = l->users[i];
	l->n = n;
}

/* Where a user belongs, after whatever has changed. */
static void put_user(u32 rank, u32 user)
{
	bool any = false, open = false;
	u32 i;

	for (i = 0; i < in_line; i++) {
		if (model_rank(line[i]) != rank || model_user(line[i]) != user)
			continue;
		any = true;
		open |= !passed[line[i]];
	}
	if (!open && stands(&asked[rank], user)) {
		out_of(&asked[rank], user);
		passes[rank][user] = 0;
	}
	if (open || !any)
		out_of(&done_with[rank], user);
	if (open && !stands(&asked[rank], user))
		to_the_end(&asked[rank], user);
	if (any && !open && !stands(&done_with[rank], user))
		to_the_end(&done_with[rank], user);
}

static void model_round(void)
{
	u32 r, i;

	memset(passed, 0, sizeof(passed));
	for (r = 0; r < HAMLYN_PRIORITIES; r++) {
		for (i = 0; i < done_with[r].n; i++)
			to_the_end(&asked[r], done_with[r].users[i]);
		done_with[r].n = 0;
	}
}

/* The first of the user whose turn it is, in the highest priority that has one. */
static u32 model_next(void)
{
	u32 rank = 0;
	u32 i = 0;

	while (rank < HAMLYN_PRIORITIES && !asked[rank].n)
		rank++;
	if (rank == HAMLYN_PRIORITIES) {
		model_round();
		return model_next();
	}
	while (model_rank(line[i]) != rank ||
	       model_user(line[i]) != asked[rank].users[0])
		i++;
	return line[i];
}

static void visit_ends(u32 rank, u32 user)
{
	if (!asked[rank].n || asked[rank].users[0] != user)
		return;
	passes[rank][user] = 0;
	out_of(&asked[rank], user);
	to_the_end(&asked[rank], user);
}

static void model_done(u32 id, u32 sent)
{
	u32 rank = model_rank(id), user = model_user(id);

	if (sent) {
		model_round();
		visit_ends(rank, user);
	} else if (in_turn == id) {
		passed[id] = true;
		put_user(rank, user);
		if (stands(&asked[rank], user) &&
		    ++passes[rank][user] >= HML_ORDER_ASKS)
			visit_ends(rank, user);
	}
	in_turn = MODEL;
}

static void any_coming_and_leaving(u32 id)
{
	struct hml_turn *turn = &peers[id].turn;
	u32 rank;

	passed[id] = false;
	if (place_of(id) < MODEL) {
		rank = model_rank(id);
		hml_order_remove(&order, turn);
		model_remove(id);
		put_user(rank, model_user(id));
	} else {
		if (unit_below(&rng, 2)) {
			turn->priority = unit_below(&rng, 3);
			turn->weight = 1 + unit_below(&rng, 3);
		}
		hml_order_add(&order, turn);
		line[in_line++] = id;
		put_user(model_rank(id), model_user(id));
	}
	if (in_turn == id)
		in_turn = MODEL;
}

static void one_turn_like_the_model(void)
{
	struct hml_turn *turn = hml_order_next(&order);
	struct peer *p;
	u32 expected;
	s64 debt;
	u32 sent;

	if (!in_line) {
		assert_null(turn);
		return;
	}
	expected = model_next();
	model_remove(expected);
	line[in_line++] = expected;
	p = peer_of(turn);
	assert_int_equal(p->id, expected);
	in_turn = expected;
	debt = turn->credit;
	assert_true(debt <= 0 && debt > -PACKET);
	if (!unit_below(&rng, 6))
		any_coming_and_leaving(expected);
	while (!unit_below(&rng, 10))
		any_coming_and_leaving(unit_below(&rng, MODEL));
	p->charge = 0;
	sent = work(p);
	/* With something to send, it sends; and its due, no more. */
	assert_int_equal(!!sent, !!p->charge);
	assert_true((s64)p->charge < debt + (s64)p->turn.weight * PACKET + PACKET);
	model_done(expected, sent);
}

static void any_history_is_like_the_model(u32 users)
{
	u32 i;

	begin(MODEL);
	for (i = 0; i < MODEL; i++)
		peers[i].turn.share = &shares[i % users];
	in_line = 0;
	in_turn = MODEL;
	memset(passed, 0, sizeof(passed));
	memset(asked, 0, sizeof(asked));
	memset(done_with, 0, sizeof(done_with));
	memset(passes, 0, sizeof(passes));
	for (i = 0; i < 300000; i++) {
		u32 id = unit_below(&rng, MODEL);
		struct peer *p = &peers[id];

		switch (unit_below(&rng, 12)) {
		case 0:
			any_coming_and_leaving(id);
			break;
		case 1:
		case 2:
			if (p->wq.producer - p->t.head < p->entries)
				post(p, any_length(p));
			break;
		default:
			one_turn_like_the_model();
		}
		assert_int_equal(order.count, in_line);
	}
	for (i = 0; i < MODEL; i++)
		assert_true(peers[i].stats.messages > 1000);
}

static void any_history_of_coming_leaving_and_sending_is_like_the_model(void **state)
{
	(void)state;
	any_history_is_like_the_model(1);
}

static void any_history_of_several_users_is_like_the_model(void **state)
{
	(void)state;
	any_history_is_like_the_model(2);
	end();
	forget();
	any_history_is_like_the_model(USERS);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(nobody_is_next_in_an_empty_order),
		TEST(who_is_alone_has_every_turn),
		TEST(turns_go_round_in_the_order_of_coming),
		TEST(newcomer_is_last_of_its_priority),
		TEST(removed_one_leaves_the_others_in_their_order),

		TEST(after_each_round_shares_in_bytes_differ_by_less_than_a_packet),
		TEST(small_messages_get_as_many_bytes_as_large_ones),
		TEST(shortest_packets_are_sixteen_to_a_long_one),
		TEST(shares_are_as_the_weights),
		TEST(equal_weights_are_equal_shares_whatever_they_are),
		TEST(huge_messages_delay_a_small_one_by_a_packet_each_at_most),
		TEST(small_message_of_a_newcomer_waits_a_packet_each_at_most),
		TEST(nobody_starves_within_a_priority),

		TEST(credit_is_a_packet_for_each_unit_of_weight_less_debts),
		TEST(debt_is_carried_over_and_credit_is_not),
		TEST(who_was_silent_for_long_has_saved_nothing),
		TEST(who_has_overdrawn_gets_less_the_next_time),
		TEST(leaving_and_coming_back_does_not_cancel_a_debt),
		TEST(leaving_and_coming_back_does_not_keep_a_credit),

		TEST(idle_ones_pass_and_cost_the_others_nothing),
		TEST(when_all_are_idle_each_is_asked_once_in_so_many_turns),
		TEST(what_comes_while_all_are_idle_leaves_within_a_round),

		TEST(lower_priority_gets_nothing_while_a_higher_one_has_packets),
		TEST(weight_and_number_do_not_make_up_for_priority),
		TEST(high_one_that_arrives_in_the_middle_is_next),
		TEST(high_one_that_is_added_in_the_middle_is_next),
		TEST(idle_ones_above_are_asked_before_each_turn_below),
		TEST(unknown_priority_is_normal),

		TEST(who_leaves_takes_its_pass_along),
		TEST(who_leaves_in_its_turn_does_not_pass_for_another),
		TEST(who_comes_in_the_turn_of_an_idle_one_is_asked_first),
		TEST(last_one_that_leaves_in_its_turn_leaves_an_empty_order),
		TEST(last_one_that_leaves_in_its_turn_idle_leaves_an_empty_order),

		TEST(many_termini_are_no_more_than_one),
		TEST(a_crowd_of_one_user_delays_another_by_one_packet),
		TEST(idle_termini_of_one_user_are_asked_some_at_a_time),
		TEST(a_busy_terminus_among_idle_ones_has_its_users_share),
		TEST(weights_count_within_and_between_users),
		TEST(priorities_are_strict_between_users),

		TEST(any_history_of_coming_leaving_and_sending_is_like_the_model),
		TEST(any_history_of_several_users_is_like_the_model),
	};

	print_message("# HAMLYN_TEST_SEED=%llu\n", (unsigned long long)unit_seed());
	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
