// SPDX-License-Identifier: GPL-2.0-only
/*
 * WATCH is for those who could send: it tells no more than sending does, costs
 * a wrong guess as much, and belongs to its context. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <dirent.h>
#include <pthread.h>

FIXTURE(hostile_watch) {
	struct party owner;
	struct party watcher;
	struct hamlyn_metadata *meta;	/* two entries, in the owner's area */
};

FIXTURE_SETUP(hostile_watch)
{
	ASSERT_EQ(0, party_open(&self->owner));
	ASSERT_EQ(0, party_open(&self->watcher));
	self->meta = (void *)(self->owner.data + 2048);
}

FIXTURE_TEARDOWN(hostile_watch)
{
	party_close(&self->watcher);
	party_close(&self->owner);
}

/* What other tests of this user guessed may hold him back for a moment. */
static int watch(int fd, struct hamlyn_watch *w)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	int ret;

	while ((ret = ht_raw(fd, HAMLYN_IOC_WATCH, w)) == -EAGAIN &&
	       ht_now_ns() < end)
		ht_sleep_ns(HT_MS);
	return ret;
}

/* Made, told at once, and how; NULL if that is so. */
static const char *not_told_at_once(struct party *p, struct hamlyn_watch *w)
{
	struct hamlyn_nq_entry entry;
	int ret = watch(p->fd, w);

	if (ret)
		return "refused";
	if (!ht_raw_recv(&p->nq, &entry))
		return "not told";
	/* Nothing in it tells a wrong key from a slot that is not there. */
	if (entry.flags != HAMLYN_NQE_PEER_GONE || entry.data != w->cookie ||
	    entry.slot != w->slot || entry.source != w->host ||
	    entry.index != HAMLYN_NONE || entry.length)
		return "told something else";
	if (ht_raw_recv(&p->nq, &entry))
		return "told twice";
	return ht_raw_id(p->fd, HAMLYN_IOC_UNWATCH, w->watch) ?
	       "cannot be unmade" : NULL;
}

TEST_F(hostile_watch, without_the_key_it_tells_the_same_whatever_is_there)
{
	uint64_t key = self->owner.slot.key;
	const uint64_t keys[] = { 0, ~0ULL, ~key, key + 1, key - 1,
				  key << 32 | key >> 32, (uint32_t)key };
	const uint32_t slots[] = {
		nobodys_slot(&self->owner), self->owner.query.max_slots,
		0x7fffffff, 0xffffffff,
	};
	struct hamlyn_watch w = watch_of(&self->watcher, &self->owner);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		w.key = keys[i];
		EXPECT_NO(not_told_at_once(&self->watcher, &w)) {
			TH_LOG("key %u", i);
		}
	}
	for (i = 0; i < 64; i += 7) {
		w.key = key ^ 1ULL << i;
		EXPECT_NO(not_told_at_once(&self->watcher, &w)) {
			TH_LOG("bit %u", i);
		}
	}
	w.key = key;
	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		w.slot = slots[i];
		EXPECT_NO(not_told_at_once(&self->watcher, &w)) {
			TH_LOG("slot %x", slots[i]);
		}
	}
	/* With it, nothing is told until there is something to tell. */
	w = watch_of(&self->watcher, &self->owner);
	ASSERT_EQ(0, watch(self->watcher.fd, &w));
	EXPECT_FALSE(came(&self->watcher));
	ASSERT_EQ(0, ht_raw_id(self->owner.fd, HAMLYN_IOC_SLOT_DESTROY,
			       self->owner.slot.slot));
	EXPECT_TRUE(came(&self->watcher));
}

TEST_F(hostile_watch, a_paranoid_slot_is_watched_by_its_entrys_key)
{
	struct hamlyn_watch w;
	unsigned int i;

	self->owner.slot.mode = HAMLYN_SLOT_PARANOID;
	self->owner.slot.length = 2048;
	self->owner.slot.meta_area = self->owner.area.area;
	self->owner.slot.meta_base = 2048;
	self->owner.slot.meta_count = 2;
	memset(self->meta, 0, 4 * sizeof(*self->meta));
	self->meta[0].key = 5555;
	self->meta[2].key = 7777;	/* behind the last one */
	ASSERT_EQ(0, ht_raw(self->owner.fd, HAMLYN_IOC_SLOT_CREATE,
			    &self->owner.slot));
	const struct {
		uint64_t key;
		uint32_t index;
	} cases[] = {
		{ self->owner.slot.key, 0 }, { self->owner.slot.key, 1 },
		{ 5554, 0 }, { 0, 0 }, { 5555, 1 }, { 0, 1 }, { 7777, 2 },
		{ 5555, 2 }, { 5555, 0xffffffff }, { 5555, 0x02000000 },
	};

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		w = watch_of(&self->watcher, &self->owner);
		w.key = cases[i].key;
		w.meta_index = cases[i].index;
		EXPECT_NO(not_told_at_once(&self->watcher, &w)) {
			TH_LOG("case %u", i);
		}
	}
	w = watch_of(&self->watcher, &self->owner);
	w.key = 5555;
	ASSERT_EQ(0, watch(self->watcher.fd, &w));
	EXPECT_FALSE(came(&self->watcher));
}

static int ticket_of(const struct party *p)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg),
					    .slot = p->slot.slot };
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_CREATE, &arg);

	return ret ? ret : arg.fd;
}

/* Where a ticket is demanded to send, one is to watch. */
TEST_F(hostile_watch, a_key_does_not_do_where_a_ticket_is_demanded)
{
	struct hamlyn_watch w;
	int ticket;

	ASSERT_EQ(0, party_slot(&self->owner, HAMLYN_SLOT_TICKET_ONLY));
	w = watch_of(&self->watcher, &self->owner);
	EXPECT_NO(not_told_at_once(&self->watcher, &w));
	w.key = 0;
	EXPECT_NO(not_told_at_once(&self->watcher, &w));
	ticket = ticket_of(&self->owner);
	ASSERT_GE(ticket, 0);
	w = (struct hamlyn_watch) {
		.size = sizeof(w),
		.flags = HAMLYN_WATCH_TICKET,
		.key = (uint64_t)ticket,
		.nq = self->watcher.nq.arg.nq,
	};
	ASSERT_EQ(0, watch(self->watcher.fd, &w));
	EXPECT_FALSE(came(&self->watcher));
	ASSERT_EQ(0, rekey(&self->owner, 0));
	EXPECT_TRUE(came(&self->watcher));
	/* It is void now. */
	ASSERT_EQ(0, watch(self->watcher.fd, &w));
	EXPECT_TRUE(came(&self->watcher));
	close(ticket);
}

/* Only those who have the key learn that there was another one. */
TEST_F(hostile_watch, a_slot_is_claimed_once)
{
	struct hamlyn_watch w = watch_of(&self->watcher, &self->owner);
	struct hamlyn_watch wrong = w, by_ticket = {
		.size = sizeof(by_ticket),
		.flags = HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM,
		.nq = self->watcher.nq.arg.nq,
	};
	int ticket = ticket_of(&self->owner);
	uint32_t first;

	ASSERT_GE(ticket, 0);
	by_ticket.key = (uint64_t)ticket;
	wrong.key++;
	wrong.flags = HAMLYN_WATCH_CLAIM;
	EXPECT_NO(not_told_at_once(&self->watcher, &wrong));
	w.flags = HAMLYN_WATCH_CLAIM;
	ASSERT_EQ(0, watch(self->watcher.fd, &w));
	first = w.watch;
	EXPECT_EQ(-EALREADY, watch(self->watcher.fd, &w));
	EXPECT_EQ(-EALREADY, watch(self->watcher.fd, &by_ticket));
	EXPECT_NO(not_told_at_once(&self->watcher, &wrong));
	/* Others are who they were. */
	w.flags = 0;
	EXPECT_EQ(0, watch(self->watcher.fd, &w));
	EXPECT_FALSE(came(&self->watcher));
	ASSERT_EQ(0, ht_raw_id(self->watcher.fd, HAMLYN_IOC_UNWATCH, first));
	w.flags = HAMLYN_WATCH_CLAIM;
	EXPECT_EQ(-EALREADY, watch(self->watcher.fd, &w));
	EXPECT_FALSE(came(&self->watcher));
	close(ticket);
}

TEST_F(hostile_watch, only_a_ticket_is_watched_as_a_ticket)
{
	const uint64_t keys[] = {
		~0ULL, 1ULL << 31, 1ULL << 32, 1000, self->owner.slot.key,
		(uint64_t)self->owner.fd, (uint64_t)self->watcher.fd,
	};
	struct hamlyn_watch good = {
		.size = sizeof(good),
		.flags = HAMLYN_WATCH_TICKET,
		.nq = self->watcher.nq.arg.nq,
	};
	struct hamlyn_watch w;
	unsigned int i;
	int ticket = ticket_of(&self->owner);

	ASSERT_GE(ticket, 0);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		w = good;
		w.key = keys[i];
		EXPECT_EQ(-EBADF, watch(self->watcher.fd, &w)) {
			TH_LOG("key %u", i);
		}
		/* Not either what would be the right one if it were cut. */
		w.key = 1ULL << 32 | (uint64_t)ticket;
		EXPECT_EQ(-EBADF, watch(self->watcher.fd, &w));
	}
	good.key = (uint64_t)ticket;
	w = good;
	w.slot = self->owner.slot.slot + 1;
	EXPECT_EQ(-EINVAL, watch(self->watcher.fd, &w));
	w = good;
	w.host = 1;
	EXPECT_EQ(-EINVAL, watch(self->watcher.fd, &w));
	w = good;
	w.meta_index = 1;
	EXPECT_EQ(-EINVAL, watch(self->watcher.fd, &w));
	/* The number of a ticket is no key. */
	w = watch_of(&self->watcher, &self->owner);
	w.key = (uint64_t)ticket;
	EXPECT_NO(not_told_at_once(&self->watcher, &w));
	close(ticket);
}

TEST_F(hostile_watch, the_owner_sees_who_tried)
{
	struct hamlyn_audit_entry entries[64];
	struct hamlyn_audit audit = {
		.size = sizeof(audit),
		.count = ARRAY_SIZE(entries),
		.entries = (uintptr_t)entries,
	};
	int64_t before = rejects(&self->owner, HAMLYN_REJECT_KEY);
	struct hamlyn_watch w = watch_of(&self->watcher, &self->owner);

	w.key ^= 1;
	ASSERT_NO(not_told_at_once(&self->watcher, &w));
	EXPECT_EQ(before + 1, rejects(&self->owner, HAMLYN_REJECT_KEY));
	ASSERT_EQ(0, ht_raw(self->owner.fd, HAMLYN_IOC_AUDIT, &audit));
	ASSERT_EQ(1, audit.count);
	EXPECT_EQ(HAMLYN_REJECT_KEY, entries[0].reason);
	EXPECT_EQ((uint32_t)getpid(), entries[0].pid);
	EXPECT_EQ(getuid(), entries[0].uid);
	EXPECT_EQ(self->owner.slot.slot, entries[0].slot);
}

TEST_F(hostile_watch, an_old_key_is_no_better_than_a_wrong_one)
{
	struct hamlyn_watch w = watch_of(&self->watcher, &self->owner);
	uint64_t old = self->owner.slot.key;

	ASSERT_EQ(0, watch(self->watcher.fd, &w));
	EXPECT_FALSE(came(&self->watcher));
	ASSERT_EQ(0, rekey(&self->owner, 0));
	EXPECT_TRUE(came(&self->watcher));
	w = watch_of(&self->watcher, &self->owner);
	w.key = old;
	EXPECT_NO(not_told_at_once(&self->watcher, &w));
}

TEST_F(hostile_watch, a_watch_and_its_nq_are_the_contexts_own)
{
	struct hamlyn_watch w = watch_of(&self->watcher, &self->owner);
	struct hamlyn_watch more = w;
	struct ht_raw_nq nq;
	int i;

	ASSERT_EQ(0, watch(self->watcher.fd, &w));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->owner.fd, HAMLYN_IOC_UNWATCH,
				     w.watch));
	/* An id that the other context has, and this one has not. */
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, ht_raw_nq_create(self->owner.fd, 8, &nq));
	}
	more.nq = nq.arg.nq;
	EXPECT_EQ(-ENOENT, watch(self->watcher.fd, &more));
	more.nq = HAMLYN_NONE;
	EXPECT_EQ(-ENOENT, watch(self->watcher.fd, &more));
	/* What it needs cannot go, and can when it is unmade. */
	ASSERT_EQ(0, ht_raw_nq_create(self->watcher.fd, 8, &nq));
	more.nq = nq.arg.nq;
	ASSERT_EQ(0, watch(self->watcher.fd, &more));
	EXPECT_EQ(-EBUSY, ht_raw_id(self->watcher.fd, HAMLYN_IOC_NQ_DESTROY,
				    more.nq));
	ASSERT_EQ(0, ht_raw_id(self->watcher.fd, HAMLYN_IOC_UNWATCH,
			       more.watch));
	EXPECT_EQ(0, ht_raw_id(self->watcher.fd, HAMLYN_IOC_NQ_DESTROY,
			       more.nq));
	ASSERT_EQ(0, ht_raw_id(self->watcher.fd, HAMLYN_IOC_UNWATCH, w.watch));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->watcher.fd, HAMLYN_IOC_UNWATCH,
				     w.watch));
	ASSERT_EQ(0, rekey(&self->owner, 0));
	EXPECT_FALSE(came(&self->watcher));
}

/* Whoever has a key may watch as often as he likes: the owner must not care. */
TEST_F(hostile_watch, a_crowd_of_watchers_does_not_hold_up_the_owner)
{
	enum { CROWD = 20000 };
	struct hamlyn_watch w;
	int64_t begun;
	int i;

	for (i = 0; i < CROWD; i++) {
		w = watch_of(&self->watcher, &self->owner);
		ASSERT_EQ(0, watch(self->watcher.fd, &w));
	}
	begun = ht_now_ns();
	ASSERT_EQ(0, ht_raw_id(self->owner.fd, HAMLYN_IOC_SLOT_DESTROY,
			       self->owner.slot.slot));
	EXPECT_LT(ht_now_ns() - begun, ht_patience_ns() / 10);
	begun = ht_now_ns();
	party_close(&self->watcher);
	EXPECT_LT(ht_now_ns() - begun, ht_patience_ns() / 10);
}

#define MOST_WATCHES	65536

/* Watches a slot of its own by as many contexts as it takes. Returns 0 or the step. */
static int watch_all(void *arg)
{
	static struct party parties[4];
	struct hamlyn_watch w;
	unsigned int n = 0, i;
	int ret = 0;

	(void)arg;
	ht_raw_explain(true);
	for (i = 0; i < ARRAY_SIZE(parties) && ret != -EDQUOT; i++) {
		if (party_open(&parties[i]))
			return 1;
		for (;;) {
			w = watch_of(&parties[i], &parties[0]);
			ret = watch(parties[i].fd, &w);
			if (ret)
				break;
			n++;
		}
		if (ret != -ENOSPC && ret != -EDQUOT)
			return 2;
	}
	fprintf(stderr, "# %u watches, then %d\n", n, ret);
	if (ret != -EDQUOT || n > MOST_WATCHES)
		return 3;
	if (!strstr(ht_raw_why(), "of the user's"))
		return 4;
	/* What is let go may be had again. */
	w = watch_of(&parties[0], &parties[0]);
	if (ht_raw_id(parties[0].fd, HAMLYN_IOC_UNWATCH, 0) ||
	    watch(parties[0].fd, &w))
		return 5;
	return 0;
}

TEST_F(hostile_watch, there_is_an_end_of_one_users_watches)
{
	EXPECT_EQ(0, as(somebody(7), watch_all, NULL));
}

#define TOLD	20000
#define NEXT	0x1f00df00d5f00d5aULL

struct beside {
	const struct party *owner;
	struct party *watcher;
	struct ht_raw_nq nq;	/* of the crowd; nobody reads it */
	bool begun;
	bool end;
	uint32_t watch;		/* of who watches meanwhile */
	int err;
	unsigned int between;	/* calls from behind the first that is told to before the last */
};

static bool told(const struct beside *b, uint32_t position)
{
	return h__load_acquire(&b->nq.entries[position].sequence) ==
	       position + 1;
}

static bool ended(const struct beside *b)
{
	return __atomic_load_n(&b->end, __ATOMIC_ACQUIRE);
}

static void *call_beside(void *arg)
{
	struct beside *b = arg;
	int64_t end = ht_now_ns() + ht_patience_ns();
	bool begun;

	/* A worker goes on with it when the owner has told the first ones. */
	do {
		begun = told(b, 0);
		rejects(b->owner, HAMLYN_REJECT_KEY);
		b->between += begun && !told(b, TOLD - 1);
		__atomic_store_n(&b->begun, true, __ATOMIC_RELEASE);
	} while (!ended(b) || (!told(b, TOLD - 1) && ht_now_ns() < end));
	return NULL;
}

/* By the new key, while those with the old one are told. */
static void *watch_beside(void *arg)
{
	struct beside *b = arg;
	struct hamlyn_watch w = watch_of(b->watcher, b->owner);

	w.key = NEXT;
	__atomic_store_n(&b->begun, true, __ATOMIC_RELEASE);
	while (!told(b, 0) && !ended(b))
		;
	b->err = watch(b->watcher->fd, &w);
	b->between = !told(b, TOLD - 1);
	b->watch = w.watch;
	return NULL;
}

static int rekey_beside(struct party *owner, void *(*run)(void *),
			struct beside *b)
{
	pthread_t thread;
	int err = -pthread_create(&thread, NULL, run, b);

	if (err)
		return err;
	while (!__atomic_load_n(&b->begun, __ATOMIC_ACQUIRE))
		ht_sleep_ns(HT_MS);
	err = rekey(owner, NEXT);
	__atomic_store_n(&b->end, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return err;
}

/* Runs beside it while a crowd is told of a rekey. Returns 0 or -errno. */
static int beside_a_crowd(struct party *watcher, struct party *owner,
			  void *(*run)(void *), struct beside *b)
{
	static uint32_t crowd[TOLD];
	struct hamlyn_watch w;
	int err, i;

	*b = (struct beside) { .owner = owner, .watcher = watcher };
	err = ht_raw_nq_create(watcher->fd, 32768, &b->nq);
	if (err)
		return err;
	for (i = 0; i < TOLD; i++) {
		w = watch_of(watcher, owner);
		w.nq = b->nq.arg.nq;
		err = err ?: watch(watcher->fd, &w);
		crowd[i] = w.watch;
	}
	err = err ?: rekey_beside(owner, run, b);
	for (i = 0; i < TOLD; i++)
		err = err ?: ht_raw_id(watcher->fd, HAMLYN_IOC_UNWATCH, crowd[i]);
	ht_raw_nq_unmap(&b->nq);
	return err ?: ht_raw_id(watcher->fd, HAMLYN_IOC_NQ_DESTROY, b->nq.arg.nq);
}

/* On a busy machine the other thread may be off its processor all the time. */
TEST_F(hostile_watch, a_crowd_of_watchers_does_not_keep_other_calls_from_going_on)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct beside b;
	int rounds = 20;

	do {
		ASSERT_EQ(0, beside_a_crowd(&self->watcher, &self->owner,
					    call_beside, &b));
	} while (!b.between && --rounds && ht_now_ns() < end);
	EXPECT_LT(0, b.between);
}

#define FEW_WATCHES	64
#define MANY_WATCHES	65536
#define ROUNDS		3

/* Watches of one slot, told into a queue of their own. */
struct crowd {
	struct ht_raw_nq nq;
	uint32_t *ids;
	uint32_t count;
};

static int crowd_begin(struct crowd *c, struct party *watcher, struct party *owner,
		       uint32_t count)
{
	uint32_t entries = 128, i;
	struct hamlyn_watch w;
	int err;

	while (entries < 2 * count)
		entries *= 2;
	c->count = count;
	c->ids = calloc(count, sizeof(*c->ids));
	err = c->ids ? ht_raw_nq_create(watcher->fd, entries, &c->nq) : -ENOMEM;
	for (i = 0; !err && i < count; i++) {
		w = watch_of(watcher, owner);
		w.nq = c->nq.arg.nq;
		w.cookie = i;
		err = watch(watcher->fd, &w);
		c->ids[i] = w.watch;
	}
	return err;
}

/* Each of them once, in whatever order; and no other one. NULL if that is so. */
static const char *crowd_told(struct crowd *c)
{
	unsigned char *seen = calloc(c->count, 1);
	struct hamlyn_nq_entry entry;
	const char *wrong = NULL;
	struct ht_poll poll;
	uint32_t n = 0;

	ht_poll_begin(&poll);
	while (!wrong && n < c->count) {
		if (!ht_raw_recv(&c->nq, &entry)) {
			wrong = ht_poll_more(&poll) ? NULL : "not all are told";
			continue;
		}
		if (entry.flags != HAMLYN_NQE_PEER_GONE || entry.data >= c->count)
			wrong = "told something else";
		else if (seen[entry.data]++)
			wrong = "told twice";
		n++;
	}
	free(seen);
	if (!wrong && ht_raw_recv(&c->nq, &entry))
		wrong = "told one too many";
	return wrong;
}

static int crowd_end(struct crowd *c, struct party *watcher)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < c->count; i++)
		err = err ?: ht_raw_id(watcher->fd, HAMLYN_IOC_UNWATCH, c->ids[i]);
	free(c->ids);
	ht_raw_nq_unmap(&c->nq);
	return err ?: ht_raw_id(watcher->fd, HAMLYN_IOC_NQ_DESTROY, c->nq.arg.nq);
}

static int end_of_slot(struct party *owner)
{
	return ht_raw_id(owner->fd, HAMLYN_IOC_SLOT_DESTROY, owner->slot.slot) ?:
	       ht_raw_slot_create(owner->fd, owner->area.area, PAGE, HAMLYN_NONE,
				  &owner->slot);
}

static int end_of_key(struct party *owner)
{
	return rekey(owner, 0);
}

/*
 * What it took the owner to end what so many watch; the least of several times: an interrupt
 * adds to it, nothing takes away.
 */
static const char *cost_of(struct party *watcher, struct party *owner,
			   int (*end)(struct party *owner), uint32_t count,
			   int64_t *cost)
{
	const char *wrong = NULL;
	struct crowd c;
	int64_t took;
	int i;

	*cost = INT64_MAX;
	for (i = 0; !wrong && i < ROUNDS; i++) {
		if (crowd_begin(&c, watcher, owner, count))
			return "watches are refused";
		took = ht_thread_ns();
		if (end(owner))
			return "cannot be ended";
		took = ht_thread_ns() - took;
		if (took < *cost)
			*cost = took;
		wrong = crowd_told(&c);
		if (crowd_end(&c, watcher))
			return "cannot be unmade";
	}
	return wrong;
}

static const char *costs_the_owner(struct party *watcher, struct party *owner,
				   int (*end)(struct party *owner))
{
	const char *wrong;
	int64_t few, many;

	wrong = cost_of(watcher, owner, end, FEW_WATCHES, &few) ?:
		cost_of(watcher, owner, end, MANY_WATCHES, &many);
	if (wrong)
		return wrong;
	fprintf(stderr, "# %u watches: %lld us, %u: %lld us\n", FEW_WATCHES,
		(long long)few / 1000, MANY_WATCHES, (long long)many / 1000);
	/*
	 * To tell all of them takes 30 ms and more. A worker that lost its virtual processor with
	 * the lock is the machine's affair.
	 */
	return many > 5 * (few + HT_MS * ht_scale()) ? "it takes longer, the more there are" :
						       NULL;
}

TEST_F(hostile_watch, the_end_of_a_slot_costs_its_owner_no_more_for_a_crowd)
{
	EXPECT_NO(costs_the_owner(&self->watcher, &self->owner, end_of_slot));
}

TEST_F(hostile_watch, the_end_of_a_key_costs_its_owner_no_more_for_a_crowd)
{
	EXPECT_NO(costs_the_owner(&self->watcher, &self->owner, end_of_key));
}

/* What is left to be told outlives the owner, not who watches. */
TEST_F(hostile_watch, a_crowd_is_told_when_the_owner_is_gone)
{
	struct crowd c;

	ASSERT_EQ(0, crowd_begin(&c, &self->watcher, &self->owner, TOLD));
	party_close(&self->owner);
	EXPECT_NO(crowd_told(&c));
	EXPECT_EQ(0, crowd_end(&c, &self->watcher));
	ASSERT_EQ(0, party_open(&self->owner));
	/* And nothing is left of who goes first, or at the same time. */
	ASSERT_EQ(0, crowd_begin(&c, &self->watcher, &self->owner, TOLD));
	ASSERT_EQ(0, end_of_slot(&self->owner));
	party_close(&self->owner);
	party_close(&self->watcher);
	free(c.ids);
	ht_raw_nq_unmap(&c.nq);
	ASSERT_EQ(0, party_open(&self->owner));
	ASSERT_EQ(0, party_open(&self->watcher));
}

TEST_F(hostile_watch, a_rekey_tells_nobody_who_has_its_key)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct beside b;
	int rounds = 20;

	do {
		ASSERT_EQ(0, rekey(&self->owner, 0));
		ASSERT_EQ(0, beside_a_crowd(&self->watcher, &self->owner,
					    watch_beside, &b));
		ASSERT_EQ(0, b.err);
		ASSERT_FALSE(came(&self->watcher));
		if (b.between)
			break;
		ASSERT_EQ(0, ht_raw_id(self->watcher.fd, HAMLYN_IOC_UNWATCH,
				       b.watch));
	} while (--rounds && ht_now_ns() < end);
	/* While it told the others. */
	ASSERT_LT(0, b.between);
	ASSERT_EQ(0, rekey(&self->owner, 0));
	EXPECT_TRUE(came(&self->watcher));
}

/* ---- queues that stay full ------------------------------------------------ */

/* The kernel's workers, and the ticks that each has run for. */
struct workers {
	struct {
		int pid;
		uint64_t ticks;
	} of[1024];
	unsigned int count;
};

static bool ticks_of(const char *pid, uint64_t *ticks)
{
	unsigned long user, system;
	char path[300], line[512];
	bool found;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fgets(line, sizeof(line), file) && strstr(line, "(kworker/") &&
		sscanf(strrchr(line, ')'),
		       ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		       &user, &system) == 2;
	fclose(file);
	if (found)
		*ticks = user + system;
	return found;
}

static void look_at_workers(struct workers *w)
{
	const struct dirent *e;
	DIR *dir = opendir("/proc");

	w->count = 0;
	while (dir && w->count < ARRAY_SIZE(w->of) && (e = readdir(dir))) {
		if (!ticks_of(e->d_name, &w->of[w->count].ticks))
			continue;
		w->of[w->count++].pid = atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
}

/* What those did that are in both looks: workers come and go. */
static uint64_t worked(const struct workers *before, const struct workers *after)
{
	uint64_t sum = 0;
	unsigned int i, j;

	for (i = 0; i < before->count; i++)
		for (j = 0; j < after->count; j++)
			if (before->of[i].pid == after->of[j].pid &&
			    before->of[i].ticks < after->of[j].ticks)
				sum += after->of[j].ticks - before->of[i].ticks;
	return sum;
}

/* Two watches that tell at once, and a queue with room for one of them. */
static int fill_a_queue(int fd)
{
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 2 };
	struct hamlyn_watch w = { .size = sizeof(w), .host = 999 };
	int ret = ht_raw(fd, HAMLYN_IOC_NQ_CREATE, &nq);

	w.nq = nq.nq;
	if (!ret)
		ret = watch(fd, &w);
	return ret ? ret : watch(fd, &w);
}

/*
 * Who never empties his queues keeps the kernel trying: but a processor's time is
 * everybody's. What is measured is the share of it. That does not depend on how
 * fast the machine is, unless it is so slow that the longest rest is too short for so
 * many queues: hence fewer of them where things take long.
 */
TEST_F(hostile_watch, full_queues_do_not_keep_a_processor_busy)
{
	enum { SECONDS = 4 };
	static struct workers before, after;
	int64_t i, queues = 6000 / ht_scale();
	uint64_t ticks;

	for (i = 0; i < queues; i++)
		ASSERT_EQ(0, fill_a_queue(self->watcher.fd)) {
			TH_LOG("queue %lld", (long long)i);
		}
	ht_sleep_ns(1000 * HT_MS);
	look_at_workers(&before);
	ht_sleep_ns(SECONDS * 1000 * HT_MS);
	look_at_workers(&after);
	EXPECT_NE(0, after.count);
	ticks = worked(&before, &after);
	TH_LOG("%llu ticks in %d s", (unsigned long long)ticks, SECONDS);
	EXPECT_LT(ticks, SECONDS * (uint64_t)sysconf(_SC_CLK_TCK) * 2 / 5);
}

/* And nobody waits for those who came first, for ever. */
TEST_F(hostile_watch, full_queues_of_others_delay_no_watch_for_good)
{
	struct hamlyn_watch w = { .size = sizeof(w), .host = 999 };
	struct hamlyn_nq_entry entry;
	struct ht_raw_nq small;
	struct ht_poll poll;
	int i;

	for (i = 0; i < 500; i++)
		ASSERT_EQ(0, fill_a_queue(self->watcher.fd));
	ASSERT_EQ(0, ht_raw_nq_create(self->owner.fd, 2, &small));
	w.nq = small.arg.nq;
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, watch(self->owner.fd, &w));
	ht_poll_begin(&poll);
	for (i = 0; i < 20;)
		if (ht_raw_recv(&small, &entry))
			i++;
		else
			ASSERT_TRUE(ht_poll_more(&poll)) {
				TH_LOG("%d of 20 were told", i);
			}
	EXPECT_FALSE(ht_raw_recv(&small, &entry));
	ht_raw_nq_unmap(&small);
}

TEST_HARNESS_MAIN
