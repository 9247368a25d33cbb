// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who guesses keys is held to a rate, whatever he makes anew to begin again: in any time T
 * a user presents at most RATE * (T + 1 s) wrong keys, and one more for each terminus. With
 * a low rate, so that it does not take many. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <fcntl.h>
#include <pthread.h>

#define OTHER_NIC	"/dev/hamlyn1"
#define RATE		8	/* wrong keys a second, and as many at once */
#define EACH_NS		(HT_SEC / RATE)
#define TOO_MANY	(RATE + 9)

/* What so many take at least, by one who begins with a full bucket. */
#define LEAST_NS(count)	(((count) - RATE - 1) * EACH_NS)

FIXTURE(hostile_guess) {
	struct party owner;
	uint32_t guesses;	/* as it was */
};

/* The module's parameter: what it is when no test has changed it. */
static uint32_t usual_guesses(void)
{
	FILE *file = fopen("/sys/module/hamlyn/parameters/guesses", "re");
	unsigned int n = 10000;

	if (file) {
		if (fscanf(file, "%u", &n) != 1)
			n = 10000;
		fclose(file);
	}
	return n;
}

FIXTURE_SETUP(hostile_guess)
{
	self->guesses = usual_guesses();
	ASSERT_EQ(0, party_open(&self->owner));
	ASSERT_EQ(0, set_nic(0, HAMLYN_A_GUESSES, RATE));
}

/* In the parent, also when the test crashes. The owner goes with its process. */
FIXTURE_TEARDOWN_PARENT(hostile_guess)
{
	EXPECT_EQ(0, set_nic(0, HAMLYN_A_GUESSES, self->guesses));
	if (!access(OTHER_NIC, F_OK))
		EXPECT_EQ(0, set_nic(1, HAMLYN_A_GUESSES, self->guesses));
}

/* What nobody is held back for takes less: if it counted it would take MANY * EACH_NS. */
#define MANY		(40 * RATE)
static int64_t unhindered_ns(void)
{
	return LEAST_NS(MANY) / 2;
}

static void take_pauses(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *a = attr_of(h, HAMLYN_A_PAUSES);

	if (a)
		memcpy(arg, (const char *)a + NLA_HDRLEN, sizeof(uint64_t));
}

/* How often a terminus of the NIC was held back, or -1. */
static int64_t pauses(void)
{
	struct request r;
	uint16_t family = 0;
	int64_t n = -1;
	int fd = netlink_open(&family);

	if (fd < 0)
		return -1;
	request_init(&r, family, HAMLYN_NL_CMD_STATS_GET, NLM_F_ACK);
	request_u32(&r, HAMLYN_A_NIC, 0);
	if (ask(fd, &r, take_pauses, &n))
		n = -1;
	close(fd);
	return n;
}

/* @count guesses by @p; how long they took, or a negative errno. */
static int64_t guess(struct party *p, const struct party *at, unsigned int count)
{
	struct hamlyn_trb trb = to_party(at);
	int64_t begun = ht_now_ns();
	unsigned int i;

	for (i = 0; i < count; i++) {
		trb.key = at->slot.key ^ (i + 1);
		if (post(&p->terminus, &trb))
			return -EIO;
	}
	return ht_now_ns() - begun;
}

/* One message that is right. */
static int64_t say(struct party *p, const struct party *to)
{
	struct hamlyn_trb trb = to_party(to);
	int64_t begun = ht_now_ns();

	return post(&p->terminus, &trb) ? -EIO : ht_now_ns() - begun;
}

static int too_quick(int64_t took, int64_t least)
{
	fprintf(stderr, "# took %jd ms, least %jd ms\n",
		(intmax_t)(took / HT_MS), (intmax_t)(least / HT_MS));
	return took < least;
}

/* Children exit with 0 or the step that went wrong. */
static int guess_with_one(void *arg)
{
	const struct party *owner = arg;
	const struct hamlyn_trb right = to_party(owner);
	int64_t begun = ht_now_ns();
	struct party p;

	if (party_open(&p))
		return 1;
	if (guess(&p, owner, TOO_MANY) < 0)
		return 2;
	if (too_quick(ht_now_ns() - begun, LEAST_NS(TOO_MANY)))
		return 3;
	/* What is queued after a guess waits for its token, right or not, from the beginning on. */
	if (post(&p.terminus, &right))
		return 4;
	return too_quick(ht_now_ns() - begun, LEAST_NS(TOO_MANY + 1)) ? 4 : 0;
}

TEST_F(hostile_guess, who_guesses_is_held_back)
{
	EXPECT_EQ(0, as(somebody(0), guess_with_one, &self->owner));
}

/* Nobody is shut out: no pause is longer than a token takes, however many there were. */
static int guess_on(void *arg)
{
	const struct party *owner = arg;
	struct party p;
	int64_t took;
	int i;

	if (party_open(&p) || guess(&p, owner, TOO_MANY) < 0)
		return 1;
	for (i = 0; i < 5; i++) {
		took = say(&p, owner);
		if (took < 0 || took > ht_scale() * 3 * EACH_NS)
			return 2;
		if (guess(&p, owner, 2) < 0)
			return 3;
	}
	return 0;
}

TEST_F(hostile_guess, no_pause_is_longer_than_a_token_takes)
{
	EXPECT_EQ(0, as(somebody(23), guess_on, &self->owner));
}

static int guess_freely(void *arg)
{
	struct party p;

	return party_open(&p) || guess(&p, arg, RATE) < 0;
}

TEST_F(hostile_guess, a_seconds_worth_is_free)
{
	int64_t before = pauses();

	ASSERT_LE(0, before);
	EXPECT_EQ(0, as(somebody(15), guess_freely, &self->owner));
	EXPECT_EQ(before, pauses());
	EXPECT_EQ(0, as(somebody(16), guess_with_one, &self->owner));
	EXPECT_LT(before, pauses());
}

static int guess_slots(void *arg)
{
	const struct party *owner = arg;
	struct hamlyn_trb trb = to_party(owner);
	int64_t begun = ht_now_ns();
	uint32_t slots[4];
	struct party p;
	int i;

	if (party_open(&p))
		return 1;
	for (i = 0; i < 4; i++) {
		slots[i] = nobodys_slot(&p);
		if (slots[i] == HAMLYN_NONE)
			return 1;
	}
	for (i = 0; i < MANY; i++) {
		trb.slot = slots[i % 4];
		if (post(&p.terminus, &trb))
			return 2;
	}
	return ht_now_ns() - begun > unhindered_ns() ? 3 : 0;
}

/* Nothing opens it. Which there are he sees from the numbers that he is given. */
TEST_F(hostile_guess, a_slot_that_is_not_there_is_no_guess)
{
	int64_t before = pauses();

	EXPECT_EQ(0, as(somebody(1), guess_slots, &self->owner));
	EXPECT_EQ(before, pauses());
}

static int miss(void *arg)
{
	const struct party *owner = arg;
	struct hamlyn_trb trb = to_party(owner);
	struct party p;
	int64_t begun;
	int i;

	if (party_open(&p))
		return 1;
	begun = ht_now_ns();
	trb.offset = PAGE;
	for (i = 0; i < MANY; i++)
		if (post(&p.terminus, &trb))
			return 2;
	return ht_now_ns() - begun > unhindered_ns() ? 3 : 0;
}

TEST_F(hostile_guess, who_has_the_key_and_errs_is_not_held_back)
{
	int64_t before = pauses();

	EXPECT_EQ(0, as(somebody(2), miss, &self->owner));
	EXPECT_EQ(before, pauses());
}

TEST_F(hostile_guess, a_key_where_a_ticket_is_needed_is_a_guess)
{
	ASSERT_EQ(0, party_slot(&self->owner, HAMLYN_SLOT_TICKET_ONLY));
	EXPECT_EQ(0, as(somebody(3), guess_with_one, &self->owner));
}

/* ---- beginning anew ----------------------------------------------------- */

/* With a bucket of its own what comes anew would have RATE of them in no time. */
#define ALL		(TOO_MANY + RATE)

static int another_terminus(void *arg)
{
	const struct party *owner = arg;
	int64_t begun = ht_now_ns();
	struct party p;

	if (party_open(&p) || guess(&p, owner, TOO_MANY) < 0)
		return 1;
	if (ht_raw_id(p.fd, HAMLYN_IOC_TERMINUS_DESTROY,
		      p.terminus.arg.terminus))
		return 2;
	if (ht_raw_terminus_create(p.fd, 8, 256, &p.terminus))
		return 3;
	if (guess(&p, owner, RATE) < 0)
		return 4;
	return too_quick(ht_now_ns() - begun, LEAST_NS(ALL)) ? 5 : 0;
}

TEST_F(hostile_guess, a_new_terminus_is_no_new_beginning)
{
	EXPECT_EQ(0, as(somebody(4), another_terminus, &self->owner));
}

#define AT_THE_SAME_TIME	6

/* One after the other, so that each finds what the others have left: less than one each. */
static int many_termini(void *arg)
{
	const struct party *owner = arg;
	int64_t begun = ht_now_ns();
	struct party p[AT_THE_SAME_TIME];
	int i, k;

	for (i = 0; i < AT_THE_SAME_TIME; i++)
		if (party_open(&p[i]))
			return 1;
	for (k = 0; k < 4; k++)
		for (i = 0; i < AT_THE_SAME_TIME; i++)
			if (guess(&p[i], owner, 1) < 0)
				return 2;
	return too_quick(ht_now_ns() - begun,
			 LEAST_NS(4 * AT_THE_SAME_TIME - AT_THE_SAME_TIME)) ? 3 : 0;
}

TEST_F(hostile_guess, termini_of_a_user_have_one_bucket)
{
	EXPECT_EQ(0, as(somebody(24), many_termini, &self->owner));
}

static int another_file(void *arg)
{
	const struct party *owner = arg;
	int64_t begun = ht_now_ns();
	struct party p;

	if (party_open(&p) || guess(&p, owner, TOO_MANY) < 0)
		return 1;
	party_close(&p);
	/* The last reference may go a moment later. */
	ht_sleep_ns(10 * HT_MS);
	if (party_open(&p))
		return 2;
	if (guess(&p, owner, RATE) < 0)
		return 3;
	return too_quick(ht_now_ns() - begun, LEAST_NS(ALL)) ? 4 : 0;
}

TEST_F(hostile_guess, opening_the_device_again_is_no_new_beginning)
{
	EXPECT_EQ(0, as(somebody(5), another_file, &self->owner));
}

static int guess_rate(void *arg)
{
	struct party p;

	return party_open(&p) || guess(&p, arg, RATE) < 0;
}

static int guess_and_die(void *arg)
{
	struct party p;

	if (party_open(&p) || guess(&p, arg, TOO_MANY) < 0)
		return 1;
	kill(getpid(), SIGKILL);
	return 2;
}

/* Which is when records are looked through. */
static int only_open(void *arg)
{
	struct party p;

	(void)arg;
	return party_open(&p);
}

TEST_F(hostile_guess, another_process_is_no_new_beginning)
{
	int64_t begun = ht_now_ns();

	ASSERT_EQ(128 + SIGKILL, as(somebody(6), guess_and_die, &self->owner));
	EXPECT_EQ(0, as(somebody(7), only_open, &self->owner));
	EXPECT_EQ(0, as(somebody(6), guess_rate, &self->owner));
	EXPECT_FALSE(too_quick(ht_now_ns() - begun, LEAST_NS(ALL)));
}

/* A first guess is free, and what is sent after it leaves. */
static int guess_once(void *arg)
{
	struct party p;
	int64_t took;

	if (party_open(&p) || guess(&p, arg, 1) < 0)
		return 1;
	took = say(&p, arg);
	return took < 0 || took > unhindered_ns() ? 2 : 0;
}

TEST_F(hostile_guess, one_users_guesses_do_not_hold_back_another)
{
	int64_t before;

	ASSERT_EQ(128 + SIGKILL, as(somebody(8), guess_and_die, &self->owner));
	before = pauses();
	EXPECT_EQ(0, as(somebody(17), guess_once, &self->owner));
	EXPECT_EQ(before, pauses());
	EXPECT_TRUE(came(&self->owner));
}

/* ---- WATCH -------------------------------------------------------------- */

static int watch_and_forget(const struct party *p, struct hamlyn_watch *w)
{
	int ret = ht_raw(p->fd, HAMLYN_IOC_WATCH, w);

	return ret ? ret : ht_raw_id(p->fd, HAMLYN_IOC_UNWATCH, w->watch);
}

static int watch(const struct party *p, const struct party *at, uint64_t key)
{
	struct hamlyn_watch w = {
		.size = sizeof(w),
		.host = at->query.host,
		.slot = at->slot.slot,
		.key = key,
		.nq = p->nq.arg.nq,
	};
	return watch_and_forget(p, &w);
}

static int ticket_of(const struct party *p)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg),
					    .slot = p->slot.slot };
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_CREATE, &arg);

	return ret ? ret : arg.fd;
}

static int watch_ticket(const struct party *p, int ticket)
{
	struct hamlyn_watch w = {
		.size = sizeof(w),
		.flags = HAMLYN_WATCH_TICKET,
		.key = (uint64_t)ticket,
		.nq = p->nq.arg.nq,
	};

	return watch_and_forget(p, &w);
}

/* Who is held back has to come again. */
static int watch_in_the_end(const struct party *p, const struct party *at,
			    uint64_t key)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	int ret;

	do {
		ret = watch(p, at, key);
		if (ret == -EAGAIN)
			ht_sleep_ns(HT_MS / 2);
	} while (ret == -EAGAIN && ht_now_ns() < end);
	return ret;
}

static int guess_by_watch(void *arg)
{
	const struct party *owner = arg;
	int64_t begun = ht_now_ns();
	struct party p;
	int i;

	if (party_open(&p))
		return 1;
	for (i = 0; i < TOO_MANY; i++)
		if (watch_in_the_end(&p, owner, owner->slot.key ^ (i + 1)))
			return 2;
	return too_quick(ht_now_ns() - begun, LEAST_NS(TOO_MANY)) ? 3 : 0;
}

TEST_F(hostile_guess, watches_with_wrong_keys_are_guesses)
{
	EXPECT_EQ(0, as(somebody(9), guess_by_watch, &self->owner));
}

static int guess_from_elsewhere(void *arg)
{
	setenv("HAMLYN_DEVICE", OTHER_NIC, 1);
	return guess_by_watch(arg);
}

TEST_F(hostile_guess, the_slots_nic_says_how_many_are_free_not_the_watchers)
{
	if (access(OTHER_NIC, F_OK))
		SKIP(return, "kernel: with nics=2");
	ASSERT_EQ(0, set_nic(1, HAMLYN_A_GUESSES, 0));
	EXPECT_EQ(0, as(somebody(18), guess_from_elsewhere, &self->owner));
	ASSERT_EQ(0, set_nic(0, HAMLYN_A_GUESSES, 0));
	ASSERT_EQ(0, set_nic(1, HAMLYN_A_GUESSES, RATE));
	/* 3: it took no time. */
	EXPECT_EQ(3, as(somebody(19), guess_from_elsewhere, &self->owner));
}

static int guess_by_contexts(void *arg)
{
	const struct party *owner = arg;
	int64_t begun = ht_now_ns();
	struct party p;
	int i;

	for (i = 0; i < TOO_MANY; i++) {
		if (party_open(&p))
			return 1;
		if (watch_in_the_end(&p, owner, owner->slot.key ^ (i + 1)))
			return 2;
		/* Some are left open: no context knows of the others. */
		if (i % 2)
			party_close(&p);
	}
	return too_quick(ht_now_ns() - begun, LEAST_NS(TOO_MANY)) ? 3 : 0;
}

TEST_F(hostile_guess, many_contexts_count_together)
{
	EXPECT_EQ(0, as(somebody(10), guess_by_contexts, &self->owner));
}

#define AT_ONCE	4

/* A guess that was answered: when it was asked, and when that was known. */
struct answer {
	int64_t asked;
	int64_t told;
};

/* One of several threads of a user, each with a context of its own. */
struct rival {
	const struct party *owner;
	unsigned int *answers;		/* of all */
	struct answer answer[TOO_MANY];
	unsigned int n;
	int err;
};

static void *guess_beside_others(void *arg)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct rival *g = arg;
	struct party p;

	g->err = party_open(&p);
	while (!g->err && __atomic_load_n(g->answers, __ATOMIC_RELAXED) < TOO_MANY &&
	       g->n < TOO_MANY && ht_now_ns() < end) {
		struct answer *a = &g->answer[g->n];

		a->asked = ht_now_ns();
		g->err = watch(&p, g->owner, ~g->owner->slot.key);
		a->told = ht_now_ns();
		if (g->err == -EAGAIN) {
			g->err = 0;
		} else if (!g->err) {
			g->n++;
			__atomic_fetch_add(g->answers, 1, __ATOMIC_RELAXED);
		}
	}
	party_close(&p);
	return NULL;
}

static int earlier(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;

	return x->told < y->told ? -1 : x->told > y->told;
}

/* How many came sooner than there was a token for them? The first was asked at @begun. */
static int too_soon(struct answer *all, unsigned int n, int64_t begun)
{
	int found = 0;

	qsort(all, n, sizeof(*all), earlier);
	for (unsigned int i = 1; i <= n; i++)
		if (all[i - 1].told - begun < LEAST_NS((int)i))
			found++;
	return found;
}

static int guess_at_once(void *arg)
{
	struct rival g[AT_ONCE] = {};
	struct answer all[AT_ONCE * TOO_MANY];
	unsigned int answers = 0, n = 0;
	int64_t begun = ht_now_ns();
	pthread_t threads[AT_ONCE];
	int i;

	for (i = 0; i < AT_ONCE; i++) {
		g[i].owner = arg;
		g[i].answers = &answers;
		if (pthread_create(&threads[i], NULL, guess_beside_others, &g[i]))
			return 100;
	}
	for (i = 0; i < AT_ONCE; i++) {
		pthread_join(threads[i], NULL);
		if (g[i].err)
			return 101;
		memcpy(&all[n], g[i].answer, g[i].n * sizeof(*all));
		n += g[i].n;
	}
	if (n < TOO_MANY)
		return 102;
	return too_soon(all, n, begun);
}

/* All of them ask at the moment at which there is a token: one is answered. */
TEST_F(hostile_guess, many_at_once_are_one_behind_the_other)
{
	EXPECT_EQ(0, as(somebody(22), guess_at_once, &self->owner));
}

static int watch_then_send(void *arg)
{
	int64_t begun = ht_now_ns();
	int ret = guess_by_watch(arg);

	if (ret || guess_rate(arg))
		return 10 + ret;
	return too_quick(ht_now_ns() - begun, LEAST_NS(ALL)) ? 1 : 0;
}

TEST_F(hostile_guess, termini_and_watches_have_one_bucket)
{
	EXPECT_EQ(0, as(somebody(11), watch_then_send, &self->owner));
}

static int watch_rightly(void *arg)
{
	const struct party *owner = arg;
	struct party p;
	int64_t begun;
	int i;

	if (party_open(&p))
		return 1;
	begun = ht_now_ns();
	for (i = 0; i < MANY; i++)
		if (watch(&p, owner, owner->slot.key))
			return 2;
	return ht_now_ns() - begun > unhindered_ns() ? 3 : 0;
}

TEST_F(hostile_guess, watches_with_the_key_cost_nothing)
{
	EXPECT_EQ(0, as(somebody(12), watch_rightly, &self->owner));
}

/* By a key: right, wrong, or of a slot that is not there. Nobody else comes in between. */
static bool all_refused(const struct party *p, const struct party *owner)
{
	struct party nobody = *owner;

	nobody.slot.slot = nobodys_slot(p);
	ht_raw_explain(true);
	return nobody.slot.slot != HAMLYN_NONE &&
	       watch(p, owner, owner->slot.key) == -EAGAIN &&
	       strstr(ht_raw_why(), "guesses keys") &&
	       watch(p, owner, ~owner->slot.key) == -EAGAIN &&
	       watch(p, &nobody, owner->slot.key) == -EAGAIN &&
	       watch(p, owner, owner->slot.key) == -EAGAIN;
}

/* The pause may be over too soon where others are busy: then again. */
static int watch_while_paused(void *arg)
{
	const struct party *owner = arg;
	struct hamlyn_nq_entry entry;
	struct party p;
	int i, ticket = ticket_of(owner);

	if (guess_by_watch(arg) || party_open(&p) || ticket < 0)
		return 1;
	for (i = 0; i < 10; i++) {
		if (watch_in_the_end(&p, owner, ~owner->slot.key))
			return 2;
		while (ht_raw_recv(&p.nq, &entry))
			;
		if (!all_refused(&p, owner))
			continue;
		if (watch_ticket(&p, ticket))
			return 3;
		if (!all_refused(&p, owner))
			continue;
		return ht_raw_recv(&p.nq, &entry) ? 4 : 0;
	}
	return 5;
}

/* And is told nothing else, whatever he asks. By a ticket he does not guess. */
TEST_F(hostile_guess, who_is_held_back_is_told_so_and_may_watch_by_tickets)
{
	EXPECT_EQ(0, as(somebody(20), watch_while_paused, &self->owner));
}

/* ---- keys that were right ------------------------------------------------ */

/* By @key, which is no other one: the same again and again. Or a negative errno. */
static int64_t repeat(struct party *p, const struct party *to, uint64_t key, int count)
{
	struct hamlyn_trb trb = to_party(to);
	int64_t begun = ht_now_ns();
	int i;

	trb.key = key;
	for (i = 0; i < count; i++)
		if (post(&p->terminus, &trb))
			return -EIO;
	return ht_now_ns() - begun;
}

struct known {
	struct party *owner;
	uint64_t old;
};

/* Watches by the right key, which the owner then changes. */
static int be_late(void *arg)
{
	struct known *k = arg;
	struct hamlyn_watch w = {
		.size = sizeof(w),
		.host = k->owner->query.host,
		.slot = k->owner->slot.slot,
		.key = k->old,
	};
	struct party p;
	int64_t took;

	if (party_open(&p))
		return 1;
	w.nq = p.nq.arg.nq;
	if (ht_raw(p.fd, HAMLYN_IOC_WATCH, &w) || rekey(k->owner, 0))
		return 2;
	took = repeat(&p, k->owner, k->old, MANY);
	if (took < 0 || took > unhindered_ns())
		return 3;
	/* By a watch as well. */
	for (int i = 0; i < MANY; i++)
		if (watch(&p, k->owner, k->old))
			return 4;
	/* Any other one is a guess, and so is this one of who has let go of it. */
	if (ht_raw_id(p.fd, HAMLYN_IOC_UNWATCH, w.watch))
		return 5;
	return too_quick(repeat(&p, k->owner, k->old, TOO_MANY), LEAST_NS(TOO_MANY)) ? 6 : 0;
}

TEST_F(hostile_guess, a_key_that_was_right_is_late)
{
	struct known k = { &self->owner, self->owner.slot.key };
	int64_t before = rejects(&self->owner, HAMLYN_REJECT_KEY);

	EXPECT_EQ(0, as(somebody(25), be_late, &k));
	EXPECT_LE(before + 2 * MANY + TOO_MANY, rejects(&self->owner, HAMLYN_REJECT_KEY));
}

/* Had by one user, and tried by another. */
static int try_anothers(void *arg)
{
	const struct known *k = arg;
	struct party p;

	if (party_open(&p))
		return 1;
	return too_quick(repeat(&p, k->owner, k->old, TOO_MANY), LEAST_NS(TOO_MANY)) ? 2 : 0;
}

TEST_F(hostile_guess, a_key_that_another_user_had_is_a_guess)
{
	struct known k = { &self->owner, self->owner.slot.key };
	struct hamlyn_watch w = {
		.size = sizeof(w),
		.host = self->owner.query.host,
		.slot = self->owner.slot.slot,
		.key = k.old,
		.nq = self->owner.nq.arg.nq,
	};

	ASSERT_EQ(0, ht_raw(self->owner.fd, HAMLYN_IOC_WATCH, &w));
	ASSERT_EQ(0, rekey(&self->owner, 0));
	EXPECT_EQ(0, as(somebody(26), try_anothers, &k));
}

/* A watch by a wrong key is told at once, and proves nothing. */
static int watch_wrongly(void *arg)
{
	const struct known *k = arg;
	struct hamlyn_watch w = {
		.size = sizeof(w),
		.host = k->owner->query.host,
		.slot = k->owner->slot.slot,
		.key = k->old,
	};
	struct party p;

	if (party_open(&p))
		return 1;
	w.nq = p.nq.arg.nq;
	if (ht_raw(p.fd, HAMLYN_IOC_WATCH, &w))
		return 2;
	return too_quick(repeat(&p, k->owner, k->old, TOO_MANY), LEAST_NS(TOO_MANY)) ? 3 : 0;
}

TEST_F(hostile_guess, to_watch_by_a_wrong_key_makes_it_no_better)
{
	struct known k = { &self->owner, self->owner.slot.key ^ 1 };

	EXPECT_EQ(0, as(somebody(27), watch_wrongly, &k));
}

struct guesser {
	struct h_dev *dev;
	struct h_nq *nq;
	struct h_ticket wrong;
	uint32_t stop;
};

static void *guess_until_stopped(void *arg)
{
	struct guesser *g = arg;
	struct h_watch *w;

	while (!h__load_acquire(&g->stop))
		if (h_watch(g->dev, &g->wrong, g->nq, 0, &w))
			ht_sleep_ns(HT_MS / 2);
		else
			h_unwatch(w);
	return NULL;
}

static int set_up(struct h_dev *dev)
{
	struct h_nq *nq;
	int i, ret = 0;

	for (i = 0; i < 60 && !ret; i++) {
		ret = h_nq_create(dev, 8, &nq);
		if (!ret)
			ret = h_nq_destroy(nq);
		/* It is the other thread's turn. */
		ht_sleep_ns(HT_MS);
	}
	return ret;
}

static int set_up_beside_guesses(void *arg)
{
	const struct party *owner = arg;
	struct guesser g = { .wrong = { .host = owner->query.host,
					.slot = owner->slot.slot,
					.key = ~owner->slot.key,
					.length = 1 } };
	int64_t begun;
	pthread_t thread;

	if (guess_by_watch(arg) || ht_open(&g.dev) ||
	    h_nq_create(g.dev, 64, &g.nq) ||
	    pthread_create(&thread, NULL, guess_until_stopped, &g))
		return 1;
	begun = ht_now_ns();
	if (set_up(g.dev))
		return 2;
	begun = ht_now_ns() - begun;
	h__store_release(&g.stop, 1);
	pthread_join(thread, NULL);
	h_close(g.dev);
	return begun > unhindered_ns() ? 3 : 0;
}

/* One thread's guesses cost the others of its process no time. */
TEST_F(hostile_guess, who_is_held_back_by_watch_does_not_hold_up_set_up)
{
	EXPECT_EQ(0, as(somebody(21), set_up_beside_guesses, &self->owner));
}

/* ---- who is counted ----------------------------------------------------- */

/* Opened by one user, used by another: it is the first who pays. */
struct passed {
	const struct party *owner;
	int fd;
};

static int guess_through(void *arg)
{
	const struct passed *passed = arg;
	const struct party *owner = passed->owner;
	struct party p = { .fd = passed->fd };

	if (ht_raw_terminus_create(p.fd, 8, 256, &p.terminus))
		return 1;
	return guess(&p, owner, TOO_MANY) < 0 ? 2 : 0;
}

TEST_F(hostile_guess, guesses_through_a_passed_descriptor_are_its_openers)
{
	struct passed passed = { .owner = &self->owner };
	unsigned int opener = somebody(13);
	int sockets[2];
	int64_t begun = ht_now_ns();
	pid_t pid;
	int fd;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		fd = become(opener) ? -1 : ht_raw_open();
		_exit(fd < 0 || pass_fd(sockets[1], fd));
	}
	ASSERT_EQ(0, ht_reap(pid));
	passed.fd = get_fd(sockets[0]);
	ASSERT_GE(passed.fd, 0);
	ASSERT_EQ(0, as(somebody(14), guess_through, &passed));
	ASSERT_EQ(0, ht_raw_id(passed.fd, HAMLYN_IOC_TERMINUS_DESTROY, 0));
	close(passed.fd);
	EXPECT_EQ(0, as(opener, guess_rate, &self->owner));
	EXPECT_FALSE(too_quick(ht_now_ns() - begun, LEAST_NS(ALL)));
}

TEST_HARNESS_MAIN
