// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who guesses keys is held back, whatever he makes anew to begin again. With
 * few free guesses, so that it does not take long. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <fcntl.h>

#define FREE_GUESSES	8
#define TOO_MANY	(FREE_GUESSES + 11)
/* The pauses before the last of so many: 1 + 2 + 4 ... + 512 ms. */
#define LEAST_NS	(1000 * HT_MS)
/* Two guesses of somebody who is known; he was forgiven some meanwhile. */
#define KNOWN_NS	(60 * HT_MS)

FIXTURE(hostile_guess) {
	struct party owner;
	uint32_t guesses;	/* as it was */
};

/* The module's parameter: what it is when no test has changed it. */
static uint32_t usual_guesses(void)
{
	FILE *file = fopen("/sys/module/hamlyn/parameters/guesses", "re");
	unsigned int n = 256;

	if (file) {
		if (fscanf(file, "%u", &n) != 1)
			n = 256;
		fclose(file);
	}
	return n;
}

FIXTURE_SETUP(hostile_guess)
{
	self->guesses = usual_guesses();
	ASSERT_EQ(0, set_nic(HAMLYN_A_GUESSES, FREE_GUESSES));
	ASSERT_EQ(0, party_open(&self->owner));
}

FIXTURE_TEARDOWN(hostile_guess)
{
	party_close(&self->owner);
	EXPECT_EQ(0, set_nic(HAMLYN_A_GUESSES, self->guesses));
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
	struct party p;
	int64_t took;

	if (party_open(&p))
		return 1;
	/* The free ones cost nothing that could be told from sending. */
	took = guess(&p, owner, FREE_GUESSES);
	if (took < 0 || took > 500 * HT_MS)
		return 2;
	took = guess(&p, owner, TOO_MANY - FREE_GUESSES);
	if (too_quick(took, LEAST_NS))
		return 3;
	/* What stands behind a guess waits, right or not. */
	return too_quick(say(&p, owner), 300 * HT_MS) ? 4 : 0;
}

TEST_F(hostile_guess, who_guesses_is_held_back)
{
	EXPECT_EQ(0, as(somebody(0), guess_with_one, &self->owner));
}

static int guess_slots(void *arg)
{
	const struct party *owner = arg;
	struct hamlyn_trb trb = to_party(owner);
	int64_t begun = ht_now_ns();
	struct party p;
	int i;

	if (party_open(&p))
		return 1;
	for (i = 0; i < TOO_MANY; i++) {
		trb.slot = owner->query.max_slots - 1 - i % 4;
		if (post(&p.terminus, &trb))
			return 2;
	}
	return too_quick(ht_now_ns() - begun, LEAST_NS) ? 3 : 0;
}

TEST_F(hostile_guess, a_slot_that_is_not_there_is_a_guess)
{
	EXPECT_EQ(0, as(somebody(1), guess_slots, &self->owner));
}

static int miss(void *arg)
{
	const struct party *owner = arg;
	struct hamlyn_trb trb = to_party(owner);
	int64_t begun = ht_now_ns();
	struct party p;
	int i;

	if (party_open(&p))
		return 1;
	trb.offset = PAGE;
	for (i = 0; i < 4 * TOO_MANY; i++)
		if (post(&p.terminus, &trb))
			return 2;
	return ht_now_ns() - begun > 500 * HT_MS ? 3 : 0;
}

TEST_F(hostile_guess, who_has_the_key_and_errs_is_not_held_back)
{
	EXPECT_EQ(0, as(somebody(2), miss, &self->owner));
}

TEST_F(hostile_guess, a_key_where_a_ticket_is_needed_is_a_guess)
{
	ASSERT_EQ(0, party_slot(&self->owner, HAMLYN_SLOT_TICKET_ONLY));
	EXPECT_EQ(0, as(somebody(3), guess_with_one, &self->owner));
}

/* ---- beginning anew ----------------------------------------------------- */

static int another_terminus(void *arg)
{
	const struct party *owner = arg;
	struct party p;

	if (party_open(&p) || guess(&p, owner, TOO_MANY) < 0)
		return 1;
	if (ht_raw_id(p.fd, HAMLYN_IOC_TERMINUS_DESTROY,
		      p.terminus.arg.terminus))
		return 2;
	if (ht_raw_terminus_create(p.fd, 8, 256, &p.terminus))
		return 3;
	return too_quick(guess(&p, owner, 2), KNOWN_NS) ? 4 : 0;
}

TEST_F(hostile_guess, a_new_terminus_is_no_new_beginning)
{
	EXPECT_EQ(0, as(somebody(4), another_terminus, &self->owner));
}

static int another_file(void *arg)
{
	const struct party *owner = arg;
	struct party p;

	if (party_open(&p) || guess(&p, owner, TOO_MANY) < 0)
		return 1;
	party_close(&p);
	/* The last reference may go a moment later. */
	ht_sleep_ns(10 * HT_MS);
	if (party_open(&p))
		return 2;
	return too_quick(guess(&p, owner, 2), KNOWN_NS) ? 3 : 0;
}

TEST_F(hostile_guess, opening_the_device_again_is_no_new_beginning)
{
	EXPECT_EQ(0, as(somebody(5), another_file, &self->owner));
}

static int begin_again(void *arg)
{
	struct party p;

	if (party_open(&p))
		return 1;
	return too_quick(guess(&p, arg, 2), KNOWN_NS) ? 2 : 0;
}

static int guess_and_die(void *arg)
{
	struct party p;

	if (party_open(&p) || guess(&p, arg, TOO_MANY) < 0)
		return 1;
	kill(getpid(), SIGKILL);
	return 2;
}

TEST_F(hostile_guess, another_process_is_no_new_beginning)
{
	ASSERT_EQ(128 + SIGKILL, as(somebody(6), guess_and_die, &self->owner));
	/* Others open it meanwhile, which is when records are looked through. */
	EXPECT_EQ(0, as(somebody(7), guess_with_one, &self->owner));
	EXPECT_EQ(0, as(somebody(6), begin_again, &self->owner));
}

TEST_F(hostile_guess, one_users_guesses_do_not_hold_back_another)
{
	struct party p;

	ASSERT_EQ(128 + SIGKILL, as(somebody(8), guess_and_die, &self->owner));
	ASSERT_EQ(0, party_open(&p));
	EXPECT_LT(say(&p, &self->owner), 500 * HT_MS);
	EXPECT_TRUE(came(&self->owner));
	party_close(&p);
}

/* ---- WATCH -------------------------------------------------------------- */

static int watch(const struct party *p, const struct party *at, uint64_t key)
{
	struct hamlyn_watch w = {
		.size = sizeof(w),
		.host = at->query.host,
		.slot = at->slot.slot,
		.key = key,
		.nq = p->nq.arg.nq,
	};
	int ret = ht_raw(p->fd, HAMLYN_IOC_WATCH, &w);

	return ret ? ret : ht_raw_id(p->fd, HAMLYN_IOC_UNWATCH, w.watch);
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
		if (watch(&p, owner, owner->slot.key ^ (i + 1)))
			return 2;
	return too_quick(ht_now_ns() - begun, LEAST_NS) ? 3 : 0;
}

TEST_F(hostile_guess, watches_with_wrong_keys_are_guesses)
{
	EXPECT_EQ(0, as(somebody(9), guess_by_watch, &self->owner));
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
		if (watch(&p, owner, owner->slot.key ^ (i + 1)))
			return 2;
		/* Some are left open: no context knows of the others. */
		if (i % 2)
			party_close(&p);
	}
	return too_quick(ht_now_ns() - begun, LEAST_NS) ? 3 : 0;
}

TEST_F(hostile_guess, many_contexts_count_together)
{
	EXPECT_EQ(0, as(somebody(10), guess_by_contexts, &self->owner));
}

static int watch_then_send(void *arg)
{
	int ret = guess_by_watch(arg);

	return ret ? 10 + ret : begin_again(arg);
}

TEST_F(hostile_guess, termini_begin_with_what_watches_guessed)
{
	EXPECT_EQ(0, as(somebody(11), watch_then_send, &self->owner));
}

static int watch_rightly(void *arg)
{
	const struct party *owner = arg;
	int64_t begun = ht_now_ns();
	struct party p;
	int i;

	if (party_open(&p))
		return 1;
	for (i = 0; i < 4 * TOO_MANY; i++)
		if (watch(&p, owner, owner->slot.key))
			return 2;
	return ht_now_ns() - begun > 500 * HT_MS ? 3 : 0;
}

TEST_F(hostile_guess, watches_with_the_key_cost_nothing)
{
	EXPECT_EQ(0, as(somebody(12), watch_rightly, &self->owner));
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
	EXPECT_EQ(0, as(opener, begin_again, &self->owner));
}

TEST_HARNESS_MAIN
