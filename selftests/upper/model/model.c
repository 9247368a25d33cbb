// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random programs over the upper layer's protocols, beside a model of each: what is
 * received is what was sent. One thread or several, one manager or two, ends that
 * are closed and destroyed at any time; with HAMLYN_TEST_SEED a certain program.
 * On the kernel device also while the fabric reorders and delays, as root.
 *
 * The protocols and their models are in model.h.
 */
#include <pthread.h>
#include <unistd.h>

#include <linux/hamlyn_netlink.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "genl.h"
#include "model.h"

#define PROGRAMS	2000		/* at most */
#define PROGRAM_NS	(2500 * HT_MS)	/* for all of them, and then the last one */
#define STEPS		400		/* of a program with one thread */

/* ---- worlds ---- */

static const char *pair_open(struct pair *p, uint64_t *random)
{
	struct world *w = p->world;
	const char *wrong;
	void *wired;
	int err;

	memset(p, 0, sizeof(*p));
	p->world = w;
	p->protocol = &protocols[below(random, ARRAY_SIZE(protocols))];
	p->pattern = ht_random(random);
	p->random[0] = ht_random(random);
	p->random[1] = ht_random(random);
	err = h_manager_alloc(w->from, LARGEST, &wired);
	if (err)
		return complain("no memory: %d", err);
	p->wired = wired;
	wrong = p->protocol->open(p, random);
	return wrong ? complain("%s: %s", p->protocol->name, wrong) : NULL;
}

static const char *pair_close(struct pair *p)
{
	const char *wrong = p->protocol->close(p);

	h_manager_free(p->world->from, p->wired);
	p->wired = NULL;
	return wrong ? complain("%s: %s", p->protocol->name, wrong) : NULL;
}

static const char *world_open(struct world *w, uint64_t *random, bool threads)
{
	static const uint32_t entries[] = { 2, 4, 64, 256 };
	struct h_manager_attr attr = {
		.flags = threads ? 0 : below(random, 2) * H_MANAGER_SINGLE,
		.spin_ns = below(random, 2),
		.wq_entries = entries[below(random, 4)],
		.wq_entry_size = below(random, 2) ? 256 : 512,
	};
	bool two = below(random, 2);
	struct hamlyn_query query;
	const char *wrong;
	int err;
	uint32_t i;

	w->threads = threads;
	err = h_open(ht_device(), &w->dev[0]);
	if (!err)
		err = h_query(w->dev[0], &query);
	if (!err)
		err = h_manager_create(w->dev[0], &attr, &w->to);
	w->from = w->to;
	if (!err && two)
		err = ht_open_tx(&w->dev[1]);
	if (!err && two)
		err = h_manager_create(w->dev[1], &attr, &w->from);
	if (err)
		return complain("no world: %d", err);
	w->packet = query.packet_size;
	w->pairs = 1 + below(random, MOST_PAIRS);
	for (i = 0; i < w->pairs; i++) {
		w->pair[i].world = w;
		wrong = pair_open(&w->pair[i], random);
		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *world_close(struct world *w)
{
	const char *wrong = NULL;
	uint32_t i;
	int err = 0;

	for (i = 0; i < w->pairs; i++) {
		const char *at_close = w->pair[i].wired ?
				       pair_close(&w->pair[i]) : NULL;

		if (!wrong)
			wrong = at_close;
	}
	if (w->from && w->from != w->to)
		err = h_manager_destroy(w->from);
	if (w->to && !err)
		err = h_manager_destroy(w->to);
	for (i = 0; i < 2; i++)
		if (w->dev[i])
			h_close(w->dev[i]);
	return wrong ? wrong : err ? "the managers do not end" : NULL;
}

/* ---- one thread: nothing waits ---- */

static const char *step(struct world *w, uint64_t *random)
{
	struct pair *p = &w->pair[below(random, w->pairs)];
	uint32_t what = below(random, 1000);
	const char *wrong;

	if (what < 8) {
		wrong = pair_close(p);
		return wrong ? wrong : pair_open(p, random);
	}
	if (what < 16) {
		h_manager_poll(below(random, 2) ? w->from : w->to);
		return NULL;
	}
	wrong = what < 26 ? p->protocol->finish(p, random) :
			    p->protocol->step(p, random);
	return wrong ? complain("%s: %s", p->protocol->name, wrong) : NULL;
}

static const char *run_alone(struct world *w, uint64_t *random)
{
	const char *wrong = NULL;
	uint32_t i;

	for (i = 0; i < STEPS && !wrong; i++)
		wrong = step(w, random);
	for (i = 0; i < w->pairs && !wrong; i++)
		wrong = w->pair[i].protocol->finish(&w->pair[i], random);
	return wrong;
}

/* ---- several threads ---- */

static void *talk(struct pair *p, int which)
{
	const char *wrong = p->protocol->talk[which](p, &p->random[which]);

	p->wrong[which] = wrong ? strdup(wrong) : NULL;
	return NULL;
}

static void *talk_first(void *arg)
{
	return talk(arg, 0);
}

static void *talk_second(void *arg)
{
	return talk(arg, 1);
}

static void *keep_polling(void *arg)
{
	struct world *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_SEQ_CST)) {
		if (!h_manager_poll(w->to) && !h_manager_poll(w->from))
			ht_sleep_ns(300000);
	}
	return NULL;
}

static const char *judge(struct pair *p)
{
	const char *wrong;

	/* One end's fault may be what the other complains of. */
	if (p->wrong[0] || p->wrong[1])
		return complain("%s: first: %s; second: %s", p->protocol->name,
				p->wrong[0] ? p->wrong[0] : "good",
				p->wrong[1] ? p->wrong[1] : "good");
	wrong = p->protocol->judge(p);
	return wrong ? complain("%s: %s", p->protocol->name, wrong) : NULL;
}

static const char *run_threads(struct world *w, uint64_t *random)
{
	pthread_t thread[2 * MOST_PAIRS + 1];
	bool polls = below(random, 2);
	const char *wrong = NULL;
	uint32_t i, j;

	if (polls)
		pthread_create(&thread[2 * w->pairs], NULL, keep_polling, w);
	for (i = 0; i < w->pairs; i++) {
		pthread_create(&thread[2 * i], NULL, talk_first, &w->pair[i]);
		pthread_create(&thread[2 * i + 1], NULL, talk_second,
			       &w->pair[i]);
	}
	for (i = 0; i < 2 * w->pairs; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&w->stop, 1, __ATOMIC_SEQ_CST);
	if (polls)
		pthread_join(thread[2 * w->pairs], NULL);
	for (i = 0; i < w->pairs; i++) {
		if (!wrong)
			wrong = judge(&w->pair[i]);
		for (j = 0; j < 2; j++)
			free((void *)(uintptr_t)w->pair[i].wrong[j]);
	}
	return wrong;
}

/* ---- programs ---- */

static const char *run_program(uint64_t seed, bool threads)
{
	uint64_t random = seed;
	struct world *w = calloc(1, sizeof(*w));
	const char *wrong, *at_close;

	wrong = world_open(w, &random, threads);
	if (!wrong)
		wrong = threads ? run_threads(w, &random) :
				  run_alone(w, &random);
	at_close = world_close(w);
	free(w);
	return wrong ? wrong : at_close;
}

static const char *run_programs(bool threads)
{
	int64_t end = ht_now_ns() + PROGRAM_NS;
	const char *wrong = NULL;
	struct h_dev *keep;
	uint64_t i;

	/* The embedded device's memory, or each program would have it made anew. */
	if (h_open(ht_device(), &keep))
		return "no device";
	/* Found out before there are threads that ask. */
	(void)ht_patience_ns();
	for (i = 0; i < PROGRAMS && !wrong && ht_now_ns() < end; i++)
		wrong = run_program(ht_seed() + i, threads);
	h_close(keep);
	if (wrong)
		printf("# HAMLYN_TEST_SEED=%llu: %s\n",
		       (unsigned long long)(ht_seed() + i - 1), wrong);
	else
		printf("# %llu programs\n", (unsigned long long)i);
	return wrong;
}

TEST(programs_with_one_thread)
{
	EXPECT_EQ(NULL, run_programs(false));
}

TEST(programs_with_several_threads)
{
	EXPECT_EQ(NULL, run_programs(true));
}

/* ---- a fabric that reorders and delays ---- */

FIXTURE(adversary) {
	struct genl genl;
	bool ready;
};

/* The NIC that is sent from: the only one, or that of the other host. */
static uint32_t sending_nic(void)
{
	const char *name = getenv("HAMLYN_TX_DEVICE");
	uint32_t nic;

	return name && sscanf(name, "/dev/hamlyn%u", &nic) == 1 ? nic : 0;
}

/* In parts of a million. */
static int set_adversary(struct genl *g, uint32_t reorder, uint32_t delay_us)
{
	struct nlattr *nest;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, sending_nic());
	nest = genl_put(g, HAMLYN_A_ADVERSARY | NLA_F_NESTED, NULL, 0);
	genl_put_u64(g, HAMLYN_A_ADV_SEED, ht_seed());
	genl_put_u32(g, HAMLYN_A_ADV_REORDER, reorder);
	genl_put_u32(g, HAMLYN_A_ADV_DELAY_US, delay_us);
	genl_end(g, nest);
	return genl_call(g);
}

FIXTURE_SETUP(adversary)
{
	self->genl.fd = -1;
	if (geteuid() || access("/dev/hamlyn0", F_OK) || !ht_device() ||
	    (strcmp(ht_device(), "/dev/hamlyn0") && !ht_is_remote()) ||
	    genl_open(&self->genl, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return;
	self->ready = true;
}

FIXTURE_TEARDOWN(adversary)
{
	if (!self->ready)
		return;
	EXPECT_EQ(0, set_adversary(&self->genl, 0, 0));
	genl_close(&self->genl);
}

/* H 6.1: The library makes order, over a fabric that delivers packets in any. */
/* kernel: as root */
/* embedded: its fabric is the segment, and has no adversary */
TEST_F(adversary, programs_whose_packets_are_reordered)
{
	if (!self->ready)
		SKIP(return, "kernel: as root");
	packets_are_late = true;
	ASSERT_EQ(0, set_adversary(&self->genl, 200000, 0));
	EXPECT_EQ(NULL, run_programs(true));
	EXPECT_EQ(NULL, run_programs(false));
}

TEST_F(adversary, programs_whose_packets_are_reordered_and_late)
{
	if (!self->ready)
		SKIP(return, "kernel: as root");
	packets_are_late = true;
	ASSERT_EQ(0, set_adversary(&self->genl, 100000, 300));
	EXPECT_EQ(NULL, run_programs(true));
}

TEST_HARNESS_MAIN
