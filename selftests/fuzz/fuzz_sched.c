// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of service within a user against a model of it: arrays instead of rings,
 * sets of who has passed instead of counts. Termini come and go at any time, also
 * while they have their turn. Several users: unit_sched.
 */
#include "fuzz.h"
#include "sched.h"

#include "sched.c"

#define TURNS	12
#define RANKS	HAMLYN_PRIORITIES
#define STEPS	400

static struct hml_order order;
static struct hml_turn turns[TURNS];
static struct hml_share share;

static struct model {
	struct hml_turn *ring[RANKS][TURNS];
	uint32_t count[RANKS];
	bool in[TURNS];
	bool passed[TURNS];
	bool asked[TURNS];
} model;

static uint32_t number_of(const struct hml_turn *turn)
{
	return (uint32_t)(turn - turns);
}

static uint32_t rank_of(const struct hml_turn *turn)
{
	static const uint32_t ranks[] = {
		[HAMLYN_PRIORITY_HIGH] = 0,
		[HAMLYN_PRIORITY_NORMAL] = 1,
		[HAMLYN_PRIORITY_BULK] = 2,
	};

	return ranks[turn->priority];
}

static void model_remove(struct hml_turn *turn)
{
	uint32_t r = rank_of(turn), i = 0;

	while (model.ring[r][i] != turn)
		i++;
	model.count[r]--;
	memmove(&model.ring[r][i], &model.ring[r][i + 1],
		(model.count[r] - i) * sizeof(turn));
}

static void model_add(struct hml_turn *turn)
{
	uint32_t r = rank_of(turn);

	model.ring[r][model.count[r]++] = turn;
}

static bool anybody_left(uint32_t r)
{
	uint32_t i;

	for (i = 0; i < model.count[r]; i++)
		if (!model.passed[number_of(model.ring[r][i])])
			return true;
	return false;
}

/* Whose turn it should be. */
static struct hml_turn *model_next(void)
{
	struct hml_turn *turn;
	uint32_t r, tries;

	for (tries = 0; tries < 2; tries++) {
		for (r = 0; r < RANKS; r++) {
			if (!anybody_left(r))
				continue;
			turn = model.ring[r][0];
			model_remove(turn);
			model_add(turn);
			model.asked[number_of(turn)] = true;
			return turn;
		}
		memset(model.passed, 0, sizeof(model.passed));
	}
	return NULL;
}

static void step_add_or_remove(struct fuzz *f, struct hml_turn *turn)
{
	uint32_t i = number_of(turn);

	if (model.in[i]) {
		model_remove(turn);
		hml_order_remove(&order, turn);
		MUST(!turn->next && !turn->prev && !turn->asked);
		model.asked[i] = false;
	} else {
		int64_t credit = turn->credit;

		turn->priority = fuzz_below(f, RANKS);
		turn->weight = 1 + fuzz_below(f, HAMLYN_MAX_WEIGHT);
		model_add(turn);
		hml_order_add(&order, turn);
		MUST(turn->credit == (credit > 0 ? 0 : credit));
	}
	model.passed[i] = false;
	model.in[i] = !model.in[i];
}

static void step_done(struct fuzz *f, struct hml_turn *turn)
{
	uint32_t i = number_of(turn), sent = fuzz_below(f, 3);
	int64_t left = (int64_t)fuzz_u16(f) - 32768;

	hml_order_done(&order, turn, left, sent);
	MUST(turn->credit == (left < 0 ? left : 0));
	if (sent)
		memset(model.passed, 0, sizeof(model.passed));
	else if (model.asked[i])
		model.passed[i] = true;
	model.asked[i] = false;
}

static void check(void)
{
	uint32_t r, i;

	for (r = 0; r < RANKS; r++) {
		const struct hml_share_rank *s = &share.ranks[r];
		const struct hml_turn *turn = s->first;
		uint32_t passed = 0;

		MUST(s->count == model.count[r]);
		MUST(!turn == !model.count[r]);
		for (i = 0; i < model.count[r]; i++) {
			MUST(turn == model.ring[r][i]);
			MUST(turn->next->prev == turn);
			passed += model.passed[number_of(turn)];
			turn = turn->next;
		}
		MUST(turn == s->first);
		MUST((s->round == order.round ? s->idle : 0) == passed || !s->count);
		MUST(order.open[r] == (passed < s->count ? s : NULL));
		MUST(order.closed[r] == (s->count && passed == s->count ? s : NULL));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	uint32_t n;

	memset(&order, 0, sizeof(order));
	memset(turns, 0, sizeof(turns));
	memset(&model, 0, sizeof(model));
	memset(&share, 0, sizeof(share));
	for (n = 0; n < TURNS; n++)
		turns[n].share = &share;
	for (n = 0; n < STEPS && f.left; n++) {
		uint8_t what = fuzz_u8(&f);
		struct hml_turn *turn = &turns[(what >> 2) % TURNS];

		switch (what & 3) {
		case 0:
			step_add_or_remove(&f, turn);
			break;
		case 1:
			step_done(&f, turn);
			break;
		default:
			turn = model_next();
			MUST(hml_order_next(&order) == turn);
			if (!turn)
				break;
			MUST(hml_turn_credit(turn, 1000) ==
			     turn->credit + 1000 * (int64_t)turn->weight);
			if (what & 128)
				step_done(&f, turn);
		}
		check();
	}
	return 0;
}
