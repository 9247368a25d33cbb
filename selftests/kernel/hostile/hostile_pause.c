// SPDX-License-Identifier: GPL-2.0-only
/*
 * On a NIC of one's own, where nobody else disturbs: who watches it when it goes down, what
 * is a guess and what is none, who is held back by it, and what that holds up. Kernel device
 * only, run as root.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hostile.h"
#include "nics.h"
#include "uring.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/syscall.h>

#define SMALLEST	1024	/* bytes of a packet */
#define LONG		(512 * SMALLEST)

/* A NIC for one test, which the fixture deletes. */
FIXTURE(hostile_pause) {
	struct genl g;
	int nic;
	struct party tx;	/* root's, on that NIC */
	struct party rx;
};

/* Some have few guesses: the driver of this suite is loaded with none. */
static int have_parties(FIXTURE_DATA(hostile_pause) *self, const struct nic_wish *wish, size_t n)
{
	int ret;

	self->nic = nic_make(&self->g, wish, n);
	if (self->nic < 0)
		return self->nic;
	nic_use((uint32_t)self->nic);
	ret = party_open(&self->rx);
	return ret ? ret : party_open(&self->tx);
}

#define HAVE_PARTIES(...) ASSERT_EQ(0, have_parties(self, \
	(const struct nic_wish []) { __VA_ARGS__ }, \
	sizeof((const struct nic_wish []) { __VA_ARGS__ }) / sizeof(struct nic_wish)))

FIXTURE_SETUP(hostile_pause)
{
	self->tx.fd = -1;
	self->rx.fd = -1;
	self->nic = -1;
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
}

FIXTURE_TEARDOWN(hostile_pause)
{
	party_close(&self->tx);
	party_close(&self->rx);
	if (self->nic >= 0)
		EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

/* ---- who watches a NIC that goes down -------------------------------------------- */

#define WATCHES	40	/* more than are told in one go */

static int watch(int fd, struct hamlyn_watch w)
{
	w.size = sizeof(w);
	return ht_raw(fd, HAMLYN_IOC_WATCH, &w);
}

/* How often each cookie was told; false if something else came. */
static bool take_told(struct party *p, unsigned int *told)
{
	struct hamlyn_nq_entry e;

	while (ht_raw_recv(&p->nq, &e)) {
		if (e.flags != HAMLYN_NQE_PEER_GONE || e.data >= WATCHES)
			return false;
		told[e.data]++;
	}
	return true;
}

TEST_F(hostile_pause, all_who_watch_a_nic_that_goes_down_are_told_once)
{
	struct hamlyn_slot_create slots[2];
	unsigned int told[WATCHES] = {}, i;
	struct genl *g = &self->g;
	struct hamlyn_watch w;
	struct party watcher;

	ASSERT_EQ(0, party_open(&watcher));	/* on another NIC */
	HAVE_PARTIES({ HAMLYN_A_MAX_SLOTS, 5000 });
	slots[0] = self->rx.slot;
	ASSERT_EQ(0, ht_raw_slot_create(self->rx.fd, self->rx.area.area, PAGE,
					HAMLYN_NONE, &slots[1]));
	w = (struct hamlyn_watch) { .host = self->rx.query.host,
				    .nq = watcher.nq.arg.nq };
	for (i = 0; i < WATCHES; i++) {
		/* Nearly all on one slot. */
		w.slot = slots[i < 3].slot;
		w.key = slots[i < 3].key;
		w.cookie = i;
		ASSERT_EQ(0, watch(watcher.fd, w));
	}
	ASSERT_TRUE(take_told(&watcher, told));
	ASSERT_EQ(0, nic_set(g, (uint32_t)self->nic, HAMLYN_A_WATCHDOG_MS, 60000));
	ASSERT_EQ(0, nic_set(g, (uint32_t)self->nic, HAMLYN_A_STATE,
			     HAMLYN_NL_STATE_UP));
	EXPECT_TRUE(take_told(&watcher, told));
	for (i = 0; i < WATCHES; i++)
		EXPECT_EQ(0, told[i]);
	ASSERT_EQ(0, nic_set(g, (uint32_t)self->nic, HAMLYN_A_STATE,
			     HAMLYN_NL_STATE_DOWN));
	/* When the call returns they have been. */
	EXPECT_TRUE(take_told(&watcher, told));
	for (i = 0; i < WATCHES; i++)
		EXPECT_EQ(1, told[i]);
	/* Who comes now is told at once, and it is no guess. */
	w.cookie = 0;
	EXPECT_EQ(0, watch(watcher.fd, w));
	EXPECT_TRUE(take_told(&watcher, told));
	EXPECT_EQ(2, told[0]);
	EXPECT_EQ(0, rejects(&self->rx, HAMLYN_REJECT_DOWN));
	ASSERT_EQ(0, nic_set(g, (uint32_t)self->nic, HAMLYN_A_STATE,
			     HAMLYN_NL_STATE_UP));
	EXPECT_EQ(0, watch(watcher.fd, w));
	EXPECT_TRUE(take_told(&watcher, told));
	EXPECT_EQ(2, told[0]);
	/* And a slot that goes in the ordinary way. */
	ASSERT_EQ(0, ht_raw_id(self->rx.fd, HAMLYN_IOC_SLOT_DESTROY, w.slot));
	EXPECT_TRUE(take_told(&watcher, told));
	EXPECT_EQ(3, told[0]);
	party_close(&watcher);
}

/* ---- what is a guess, and what is none --------------------------------------------- */

/* For one who does not have what root has. */
struct stranger {
	const struct party *to;
	struct hamlyn_watch watch;
	bool more;		/* termini than one */
};

#define TRIES	10	/* more than are free */

/* Which of the attempts was held back; 0 if none was. */
static int held_back(int fd, const struct hamlyn_watch *w)
{
	int i, ret;

	for (i = 1; i <= TRIES; i++) {
		ret = watch(fd, *w);
		if (ret == -EAGAIN)
			return i;
		if (ret)
			return 100;
	}
	return 0;
}

/* Which of TRIES is held back; 0: none is, nor is one with the right key behind them. */
static int try_watch(void *arg)
{
	const struct stranger *s = arg;
	struct hamlyn_watch right = watch_of(s->to, s->to), w = s->watch;
	struct party own;
	int ret;

	if (party_open(&own))
		return 90;
	w.nq = own.nq.arg.nq;
	right.nq = w.nq;
	ret = held_back(own.fd, &w);
	return ret ? ret : watch(own.fd, right) == -EAGAIN ? 91 : 0;
}

static int ticket_of(const struct party *p)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg),
					    .slot = p->slot.slot };
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_CREATE, &arg);

	return ret ? ret : arg.fd;
}

/* What was discarded is counted where it was: of the NIC of who watches, once each. */
static int64_t nic_rejects(struct genl *g, uint32_t nic, uint16_t reason)
{
	if (nic_call(g, HAMLYN_NL_CMD_STATS_GET, nic))
		return -1;
	return (int64_t)genl_number(genl_nested(genl_attr(g, HAMLYN_A_REJECTS),
						reason));
}

TEST_F(hostile_pause, only_wrong_keys_are_guesses_of_who_watches)
{
	struct stranger s = { .to = &self->rx };
	struct hamlyn_slot_create paranoid;
	int wrong;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 3 });
	paranoid = (struct hamlyn_slot_create) {
		.size = sizeof(paranoid), .mode = HAMLYN_SLOT_PARANOID,
		.area = self->rx.area.area, .length = 64,
		.meta_area = self->rx.area.area, .meta_base = 2048,
		.meta_count = 1, .nq = HAMLYN_NONE,
	};
	ASSERT_EQ(0, ht_raw(self->rx.fd, HAMLYN_IOC_SLOT_CREATE, &paranoid));
	s.watch = watch_of(s.to, s.to);
	EXPECT_EQ(0, as(somebody(6), try_watch, &s));
	/* An entry that there is not, where each has a key of its own. */
	s.watch.slot = paranoid.slot;
	s.watch.meta_index = 1;
	EXPECT_EQ(0, as(somebody(7), try_watch, &s));
	EXPECT_EQ(TRIES, nic_rejects(&self->g, (uint32_t)self->nic,
				     HAMLYN_A_REJECTS_METADATA));
	/* The one after the free ones brings a pause, of a third of a second. */
	s.watch = watch_of(s.to, s.to);
	s.watch.key ^= 1;
	wrong = as(somebody(8), try_watch, &s);
	EXPECT_LE(5, wrong);
	EXPECT_GE(TRIES, wrong);
	EXPECT_EQ(wrong - 1, rejects(&self->rx, HAMLYN_REJECT_KEY));
	/* A NIC that is down tells everybody the same. */
	ASSERT_EQ(0, nic_set(&self->g, (uint32_t)self->nic, HAMLYN_A_STATE,
			     HAMLYN_NL_STATE_DOWN));
	EXPECT_EQ(0, as(somebody(9), try_watch, &s));
	ASSERT_EQ(0, nic_set(&self->g, (uint32_t)self->nic, HAMLYN_A_STATE,
			     HAMLYN_NL_STATE_UP));
	EXPECT_EQ(wrong - 1, rejects(&self->rx, HAMLYN_REJECT_KEY));
}

/* Whether there are slots where there are none; which of these is held back. */
static int guess_slots(void *arg)
{
	const struct party *to = arg;
	struct hamlyn_watch w;
	struct ht_raw_nq nq;
	struct party own;
	int i;

	if (party_open(&own) || ht_raw_nq_create(own.fd, 8, &nq))
		return 90;
	w = watch_of(to, to);
	w.slot = to->query.max_slots - 1;
	w.nq = nq.arg.nq;
	for (i = 1; i <= TRIES && !ht_raw(own.fd, HAMLYN_IOC_WATCH, &w); i++)
		if (ht_raw_id(own.fd, HAMLYN_IOC_UNWATCH, w.watch))
			return 91;
	return ht_raw_id(own.fd, HAMLYN_IOC_NQ_DESTROY, w.nq) ? 93 : i;
}

/* Nothing opens it: who presents what clients have left is not held back for that. */
TEST_F(hostile_pause, a_slot_that_is_not_there_is_no_guess)
{
	HAVE_PARTIES({ HAMLYN_A_GUESSES, 3 });
	EXPECT_EQ(TRIES + 1, as(somebody(17), guess_slots, &self->rx));
	EXPECT_EQ(TRIES, nic_rejects(&self->g, (uint32_t)self->nic,
				     HAMLYN_A_REJECTS_SLOT));
}

/* What a watch that is refused had got: its number is nobody's, and its NQ can go. */
static int leave_nothing(void *arg)
{
	const struct party *to = arg;
	struct hamlyn_watch w;
	struct ht_raw_nq nq;
	struct party own;
	int i, ret = 0;

	if (party_open(&own) || ht_raw_nq_create(own.fd, 8, &nq))
		return 90;
	w = watch_of(to, to);
	w.key ^= 1;
	w.nq = nq.arg.nq;
	for (i = 0; i < TRIES && !ret; i++) {
		ret = ht_raw(own.fd, HAMLYN_IOC_WATCH, &w);
		if (!ret && ht_raw_id(own.fd, HAMLYN_IOC_UNWATCH, w.watch))
			return 91;
	}
	/* Its number would be the same as those of all before it. */
	if (ret != -EAGAIN ||
	    ht_raw_id(own.fd, HAMLYN_IOC_UNWATCH, w.watch) != -ENOENT)
		return 92;
	return ht_raw_id(own.fd, HAMLYN_IOC_NQ_DESTROY, w.nq) ? 93 : 0;
}

TEST_F(hostile_pause, a_watch_that_is_held_back_leaves_nothing)
{
	HAVE_PARTIES({ HAMLYN_A_GUESSES, 3 });
	EXPECT_EQ(0, as(somebody(18), leave_nothing, &self->rx));
}

/* Nobody has chosen its key. */
TEST_F(hostile_pause, a_void_ticket_is_no_guess)
{
	struct stranger s = { .to = &self->rx };
	int ticket;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 3 });
	ticket = ticket_of(&self->rx);
	ASSERT_LE(0, ticket);
	s.watch = (struct hamlyn_watch) { .flags = HAMLYN_WATCH_TICKET,
					  .key = (uint64_t)ticket };
	EXPECT_EQ(0, as(somebody(10), try_watch, &s));
	ASSERT_EQ(0, rekey(&self->rx, 0));
	EXPECT_EQ(0, as(somebody(11), try_watch, &s));
	EXPECT_EQ(TRIES, rejects(&self->rx, HAMLYN_REJECT_KEY));
	close(ticket);
}

TEST_F(hostile_pause, each_wrong_watch_is_counted_once)
{
	struct hamlyn_watch w;
	uint32_t nic;
	int i;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 0 });
	nic = (uint32_t)self->nic;
	w = watch_of(&self->rx, &self->rx);
	w.nq = self->tx.nq.arg.nq;
	w.key++;
	for (i = 1; i <= 5; i++) {
		ASSERT_EQ(0, watch(self->tx.fd, w));
		EXPECT_EQ(i, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_KEY));
		EXPECT_EQ(i, rejects(&self->rx, HAMLYN_REJECT_KEY));
	}
	w.slot = self->rx.query.max_slots;
	ASSERT_EQ(0, watch(self->tx.fd, w));
	EXPECT_EQ(1, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_SLOT));
	EXPECT_EQ(5, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_KEY));
	/* And the audit has each of them. */
	genl_begin(&self->g, HAMLYN_NL_CMD_AUDIT_GET);
	genl_put_u32(&self->g, HAMLYN_A_NIC, nic);
	EXPECT_EQ(6, genl_count(&self->g));
	/* A host that there is not rejects nothing. */
	w.host = 254;
	ASSERT_EQ(0, watch(self->tx.fd, w));
	EXPECT_EQ(1, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_SLOT));
}

/* ---- who is held back ------------------------------------------------------------------ */

/* A long message: with a wrong key all its packets but one wait for a pause to end. */
static struct hamlyn_trb *put_long(struct party *p, const struct party *to, uint64_t key,
				   uint64_t length)
{
	struct hamlyn_trb *trb = ht_raw_entry(&p->terminus);

	memset(trb, 0, p->terminus.arg.entry_size);
	*trb = to_party(to);
	trb->key = key;
	trb->length = length;
	trb->flags = HAMLYN_TRB_NO_NOTIFY;
	trb->fragments = 1;
	*(struct hamlyn_fragment *)(trb + 1) = (struct hamlyn_fragment) {
		.length = length,
	};
	return trb;
}

/* As another user, on the NIC of the test: room for a long message, and a terminus. */
static int open_for_long(struct party *p, unsigned char **data)
{
	struct hamlyn_area_alloc area;
	int ret = party_open(p);

	if (!ret)
		ret = ht_raw_area_alloc(p->fd, LONG, &area, (void **)data);
	return ret ? ret : ht_raw_bind(p->fd, p->terminus.arg.terminus, 0,
				       area.area, 0, LONG);
}

#define GUESSES	3	/* after the first one each brings a pause of a second */

/* Not rung for yet. */
static void put_guess(struct party *p, const struct party *to)
{
	struct hamlyn_trb *trb = ht_raw_entry(&p->terminus);

	memset(trb, 0, p->terminus.arg.entry_size);
	*trb = to_party(to);
	trb->key ^= 1;
	p->terminus.producer++;
}

/*
 * The first one is free. The next two have one doorbell between them, and so have the last
 * one and what the caller puts behind it.
 */
static int guess(struct party *p, const struct party *to)
{
	int i, status;

	for (i = 1; i < GUESSES; i++) {
		put_guess(p, to);
		if (i == 2)
			continue;
		ht_raw_publish(&p->terminus, p->terminus.producer);
		if (ht_raw_done(&p->terminus, p->terminus.producer - 1, &status) ||
		    status)
			return 91;
	}
	put_guess(p, to);
	return 0;
}

/*
 * One message is one guess. The last one is long, and waits when its first packet has
 * left. Return: 0, or where it went wrong.
 */
static int guess_until_held(struct party *p, const struct party *to)
{
	struct hamlyn_stats stats = { .size = sizeof(stats),
				      .kind = HAMLYN_STATS_TERMINUS };
	struct ht_poll poll;
	int ret;

	stats.id = p->terminus.arg.terminus;
	ret = guess(p, to);
	if (ret)
		return ret;
	put_long(p, to, to->slot.key ^ 1, LONG);
	ht_raw_post(&p->terminus);
	ht_poll_begin(&poll);
	do {
		ht_raw_publish(&p->terminus, p->terminus.producer);
		if (ht_raw(p->fd, HAMLYN_IOC_STATS, &stats))
			return 92;
	} while (stats.packets <= GUESSES && ht_poll_more(&poll));
	return stats.packets == GUESSES + 1 ? 0 : 93;
}

static int guess_and_wait(struct party *p, const struct party *to)
{
	unsigned char *data;

	return open_for_long(p, &data) ? 90 : guess_until_held(p, to);
}

static int sync_while_held_back(void *arg)
{
	const struct stranger *s = arg;
	struct ht_raw_terminus other;
	unsigned char *data;
	struct party p;
	int i;

	/* Another one behind it, which has nothing to do. */
	if (open_for_long(&p, &data) ||
	    (s->more && ht_raw_terminus_create(p.fd, 8, 256, &other)))
		return 90;
	/* Nothing to do, and then: done. */
	if (fsync(p.fd))
		return 1;
	put_long(&p, s->to, s->to->slot.key ^ 1, LONG);
	ht_raw_post(&p.terminus);
	for (i = 0; i < 1000; i++)
		if (fsync(p.fd))
			return errno == EAGAIN ? 0 : 2;
	return 3;
}

/* A program that knows nothing of KICK is told what fsync() may tell, and not 1. */
TEST_F(hostile_pause, fsync_says_that_there_is_more_to_do)
{
	struct stranger s = { .to = &self->rx };

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	if (!ht_raw_rings_by_fsync(self->rx.fd))
		SKIP(return, NO_FSYNC);
	EXPECT_EQ(0, as(somebody(12), sync_while_held_back, &s));
	s.more = true;
	EXPECT_EQ(0, as(somebody(16), sync_while_held_back, &s));
}

static void ignore_signal(int signal)
{
	(void)signal;
}

/* A signal is at hand all the time, with two termini, the first of which is held back. */
static int sync_while_interrupted(void *arg)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
	const struct sigaction action = { .sa_handler = ignore_signal };
	const struct party *to = arg;
	struct ht_raw_terminus other;
	struct ht_poll poll;
	unsigned char *data;
	struct party p;
	int ret;

	if (open_for_long(&p, &data) || ht_raw_terminus_create(p.fd, 8, 256, &other))
		return 90;
	ret = guess_until_held(&p, to);
	if (ret)
		return ret;
	sigaction(SIGALRM, &action, NULL);
	ht_poll_begin(&poll);
	setitimer(ITIMER_REAL, &often, NULL);
	do
		ret = fsync(p.fd) ? errno : 0;
	while (ret == EAGAIN && ht_poll_more(&poll));
	setitimer(ITIMER_REAL, &none, NULL);
	return ret == EINTR ? 0 : ret ? ret : 99;
}

TEST_F(hostile_pause, fsync_that_is_interrupted_does_not_say_that_all_was_sent)
{
	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	if (!ht_raw_rings_by_fsync(self->rx.fd))
		SKIP(return, NO_FSYNC);
	EXPECT_EQ(0, as(somebody(17), sync_while_interrupted, &self->rx));
}

/* A doorbell through a ring, while the terminus is held back: it waits in a worker. */
static int ring_while_held_back(const struct party *to, int ready)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct hamlyn_uring_kick kick = { .terminus = 0 };
	unsigned char *data;
	struct ring ring;
	struct party p;
	int ret = ring_open(&ring);

	if (ret)
		return ret == -EOPNOTSUPP ? 4 : 94;
	if (open_for_long(&p, &data))
		return 90;
	ret = guess_until_held(&p, to);
	if (ret)
		return ret;
	kick.terminus = p.terminus.arg.terminus;
	sqe = ring_sqe(&ring);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = p.fd;
	sqe->cmd_op = HAMLYN_IOC_KICK;
	memcpy(sqe->cmd, &kick, sizeof(kick));
	if (ring_submit(&ring))
		return 95;
	/* Or it would not have to be killed. */
	ht_sleep_ns(100 * HT_MS);
	if (next(&ring, &cqe))
		return 96;
	if (write(ready, "r", 1) != 1)
		return 97;
	for (;;)
		pause();
}

TEST_F(hostile_pause, whose_doorbell_a_ring_waits_with_can_be_killed)
{
	unsigned int uid = somebody(18);
	int status, ready[2];
	char byte;
	pid_t pid;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid) {
		close(ready[0]);
		_exit(become(uid) ? 99 : ring_while_held_back(&self->rx, ready[1]));
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		ASSERT_EQ(4, ht_reap(pid));
		SKIP(return, NO_RING);
	}
	close(ready[0]);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

struct binder {
	struct party *p;
	int ret;
	bool ended;
};

static void *bind_none(void *arg)
{
	struct binder *b = arg;

	b->ret = ht_raw_bind(b->p->fd, b->p->terminus.arg.terminus, 0,
			     HAMLYN_NONE, 0, 0);
	__atomic_store_n(&b->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

#define BINDERS		8
#define TOO_LATE	1	/* there is nothing to wait for any more */

/*
 * One thread waits in BIND for the end of a message, which is far, and the others until it
 * is their turn.
 */
static int destroy_what_is_waited_for(void *arg)
{
	const struct stranger *s = arg;
	struct binder b[BINDERS] = {};
	pthread_t thread[BINDERS];
	struct party p;
	int i, ret;

	ret = guess_and_wait(&p, s->to);
	if (ret)
		return ret;
	for (i = 0; i < BINDERS; i++) {
		b[i].p = &p;
		if (pthread_create(&thread[i], NULL, bind_none, &b[i]))
			return 94;
	}
	ht_sleep_ns(50 * HT_MS);
	for (i = 0; i < BINDERS; i++)
		if (__atomic_load_n(&b[i].ended, __ATOMIC_ACQUIRE))
			return TOO_LATE;
	if (ht_raw_id(p.fd, HAMLYN_IOC_TERMINUS_DESTROY, p.terminus.arg.terminus))
		return 2;
	for (i = 0; i < BINDERS; i++) {
		pthread_join(thread[i], NULL);
		if (b[i].ret != -ENOENT)
			return 3;
	}
	return 0;
}

TEST_F(hostile_pause, who_waits_for_a_terminus_that_is_destroyed_waits_no_more)
{
	struct stranger s = { .to = &self->rx };
	unsigned int times = 0, tries = 0;
	int ret;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	/*
	 * On a slow machine the pause may be over before all wait: then again, as another.
	 * And by chance all may have had their turn before the terminus is shut for good.
	 */
	do {
		ret = as(somebody(20 + tries), destroy_what_is_waited_for, &s);
		times += !ret;
	} while ((ret == TOO_LATE || !ret) && times < 3 && ++tries < 20);
	EXPECT_LE(ret, TOO_LATE);
	EXPECT_LT(0, times);
}

static unsigned int handled;

#define IN_TURN	4

/* One waits for the message, the others for that one, and each lets in the next. */
static int wait_in_turn(void *arg)
{
	const struct stranger *s = arg;
	struct binder b[IN_TURN] = {};
	pthread_t thread[IN_TURN];
	struct ht_poll poll;
	struct party p;
	int i, ret;

	ret = guess_and_wait(&p, s->to);
	if (ret)
		return ret;
	for (i = 0; i < IN_TURN; i++) {
		b[i].p = &p;
		if (pthread_create(&thread[i], NULL, bind_none, &b[i]))
			return 94;
	}
	ht_poll_begin(&poll);
	for (i = 0; i < IN_TURN; i++) {
		while (!__atomic_load_n(&b[i].ended, __ATOMIC_ACQUIRE))
			if (!ht_poll_more(&poll))
				return 95;
		if (b[i].ret)
			return 96;
	}
	return 0;
}

/* No signal comes, and no time-out: each of them is woken by who lets go. */
TEST_F(hostile_pause, who_waits_for_a_terminus_is_let_in_when_it_is_free)
{
	struct stranger s = { .to = &self->rx };

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	EXPECT_EQ(0, as(somebody(19), wait_in_turn, &s));
}

static void count_signal(int signal)
{
	(void)signal;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

#define INTERRUPTED	2	/* one waits for the message, the other until it is his turn */

/*
 * Also on his way out of the call he would handle it: neither is out yet. Who is interrupted
 * lets the other one in, so one at a time.
 */
static bool interrupt(const struct binder b[], pthread_t thread)
{
	unsigned int before = __atomic_load_n(&handled, __ATOMIC_RELAXED);
	bool in_time;
	int i;

	pthread_kill(thread, SIGUSR1);
	ht_sleep_ns(100 * HT_MS);
	in_time = __atomic_load_n(&handled, __ATOMIC_RELAXED) == before + 1;
	ht_sleep_ns(50 * HT_MS);
	for (i = 0; i < INTERRUPTED; i++)
		in_time &= !__atomic_load_n(&b[i].ended, __ATOMIC_ACQUIRE);
	return in_time;
}

/* Nobody is told that there was a signal. */
static int interrupt_who_waits(void *arg)
{
	const struct sigaction action = { .sa_handler = count_signal };
	const struct stranger *s = arg;
	struct binder b[INTERRUPTED] = {};
	pthread_t thread[INTERRUPTED];
	struct party p;
	bool in_time;
	int i, ret;

	ret = guess_and_wait(&p, s->to);
	if (ret || sigaction(SIGUSR1, &action, NULL))
		return ret ?: 93;
	for (i = 0; i < INTERRUPTED; i++) {
		b[i].p = &p;
		if (pthread_create(&thread[i], NULL, bind_none, &b[i]))
			return 94;
		ht_sleep_ns(30 * HT_MS);
	}
	in_time = interrupt(b, thread[1]) && interrupt(b, thread[0]);
	for (i = 0; i < INTERRUPTED; i++) {
		pthread_join(thread[i], NULL);
		if (b[i].ret)
			return 2;
	}
	return in_time ? 0 : TOO_LATE;
}

TEST_F(hostile_pause, who_waits_for_a_message_handles_signals_meanwhile)
{
	struct stranger s = { .to = &self->rx };
	unsigned int tries = 0;
	int ret;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	do {
		ret = as(somebody(40 + tries), interrupt_who_waits, &s);
	} while (ret == TOO_LATE && ++tries < 12);
	EXPECT_EQ(0, ret);
}

/* Killed in there he ends, too, and what he had with him. */
static int wait_in_bind(const struct party *to, int ready)
{
	struct party p;
	int ret;

	ret = guess_and_wait(&p, to);
	if (ret || write(ready, "r", 1) != 1)
		return 94;
	ht_raw_bind(p.fd, p.terminus.arg.terminus, 0, HAMLYN_NONE, 0, 0);
	return 0;
}

TEST_F(hostile_pause, who_waits_for_a_message_can_be_killed)
{
	const unsigned int uid = somebody(14);
	int ready[2];
	char byte;
	pid_t pid;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid)
		_exit(become(uid) ? 99 : wait_in_bind(&self->rx, ready[1]));
	ASSERT_EQ(0, ht_read_all(ready[0], &byte, 1));
	ht_sleep_ns(50 * HT_MS);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	close(ready[0]);
	close(ready[1]);
}

static int only_guess(void *arg)
{
	const struct stranger *s = arg;
	struct party p;

	return guess_and_wait(&p, s->to);
}

TEST_F(hostile_pause, a_pause_is_told_with_its_terminus_and_user)
{
	struct stranger s = { .to = &self->rx };
	int fd = genl_listen(&self->g);
	const uint32_t uid = somebody(15);
	unsigned int pauses = 0, longest = 0;
	struct nic_told told;
	uint32_t nic;

	ASSERT_LE(0, fd);
	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	nic = (uint32_t)self->nic;
	EXPECT_EQ(0, as(uid, only_guess, &s));
	while (nic_event(fd, nic, &told)) {
		if (told.event != HAMLYN_NL_EVENT_TERMINUS_PAUSED)
			continue;
		pauses++;
		EXPECT_EQ(uid, told.uid);
		EXPECT_EQ(0, told.id);
		EXPECT_GE(2000, told.paused_ms);
		if (told.paused_ms > longest)
			longest = told.paused_ms;
	}
	/* Told at once: most of it is left. */
	EXPECT_LE(1, longest);
	/* Of each but the first, which is free, and of the long one; once a second. */
	EXPECT_LE(1, pauses);
	EXPECT_GE(GUESSES, pauses);
	close(fd);
}

#define MANY	400	/* wrong keys, of which a hundred a second are free */

static int guess_many(void *arg)
{
	const struct party *to = arg;
	struct hamlyn_trb trb = to_party(to);
	struct party p;
	int i;

	if (party_open(&p))
		return 90;
	trb.key ^= 1;
	for (i = 0; i < MANY; i++)
		if (post(&p.terminus, &trb))
			return 91;
	return 0;
}

/*
 * Pauses are short, and come by the hundred: who listens is not to drown in them. A machine that
 * takes longer than 10 ms for each of the messages would make none.
 */
TEST_F(hostile_pause, pauses_of_a_user_are_told_once_a_second)
{
	int fd = genl_listen(&self->g);
	unsigned int told_of = 0;
	struct nic_told told;
	int64_t begun, took;

	ASSERT_LE(0, fd);
	HAVE_PARTIES({ HAMLYN_A_GUESSES, 100 });
	begun = ht_now_ns();
	EXPECT_EQ(0, as(somebody(19), guess_many, &self->rx));
	took = ht_now_ns() - begun;
	while (nic_event(fd, (uint32_t)self->nic, &told))
		told_of += told.event == HAMLYN_NL_EVENT_TERMINUS_PAUSED;
	EXPECT_LE(1, told_of);
	EXPECT_GE(1 + took / HT_SEC, told_of);
	TH_LOG("%u of %lld ms", told_of, (long long)(took / HT_MS));
	close(fd);
}

/* ---- a ticket and the message that uses it ---------------------------------------------- */

static int import_ticket(struct party *p, int ticket, uint32_t *index)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg), .terminus = p->terminus.arg.terminus,
		.fd = ticket,
	};
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_IMPORT, &arg);

	*index = arg.index;
	return ret;
}

/* To where only the ticket says. */
static void put_by_ticket(FIXTURE_DATA(hostile_pause) *self, uint32_t index)
{
	struct hamlyn_trb *trb = put_long(&self->tx, &self->rx, 0, LONG);

	trb->flags |= HAMLYN_TRB_TICKET;
	trb->ticket = index;
	trb->slot = 0;
	trb->host = 0;
}

/* Behind DROP nothing comes by it any more: what was under way has come. */
TEST_F(hostile_pause, a_ticket_is_dropped_when_the_message_that_uses_it_has_left)
{
	struct hamlyn_ticket_drop drop = { .size = sizeof(drop) };
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	unsigned char *to, *from;
	uint32_t terminus;
	int ticket, status;

	HAVE_PARTIES({ HAMLYN_A_PACKET_SIZE, SMALLEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	terminus = self->tx.terminus.arg.terminus;
	ASSERT_EQ(0, ht_raw_area_alloc(self->rx.fd, LONG, &area, (void **)&to));
	ASSERT_EQ(0, ht_raw_slot_create(self->rx.fd, area.area, LONG,
					HAMLYN_NONE, &slot));
	self->rx.slot = slot;
	ticket = ticket_of(&self->rx);
	ASSERT_LE(0, ticket);
	ASSERT_EQ(0, ht_raw_area_alloc(self->tx.fd, LONG, &area, (void **)&from));
	ASSERT_EQ(0, ht_raw_bind(self->tx.fd, terminus, 0, area.area, 0, LONG));
	ht_fill(from, LONG, 3);
	ASSERT_EQ(0, import_ticket(&self->tx, ticket, &drop.index));
	put_by_ticket(self, drop.index);
	/* Two doorbells: some of its packets have left, and not the last one. */
	ASSERT_EQ(0, ht_raw_post(&self->tx.terminus));
	EXPECT_EQ(1, ioctl(self->tx.fd, HAMLYN_IOC_KICK, (unsigned long)terminus));
	ASSERT_EQ(SMALLEST, ht_match(to, SMALLEST, 3));
	ASSERT_NE(LONG, ht_match(to, LONG, 3));
	drop.terminus = terminus;
	ASSERT_EQ(0, ht_raw(self->tx.fd, HAMLYN_IOC_TICKET_DROP, &drop));
	EXPECT_EQ(LONG, ht_match(to, LONG, 3));
	EXPECT_EQ(0, ht_raw_done(&self->tx.terminus,
				 self->tx.terminus.producer - 1, &status));
	EXPECT_EQ(0, status);
	/* What comes behind it has no ticket any more. */
	put_by_ticket(self, drop.index);
	ASSERT_LE(0, ht_raw_post(&self->tx.terminus));
	ASSERT_EQ(0, ht_raw_done(&self->tx.terminus,
				 self->tx.terminus.producer - 1, &status));
	EXPECT_EQ(-ENOKEY, status);
	munmap(to, LONG);
	munmap(from, LONG);
	close(ticket);
}

/* ---- an import that nobody can be told of ------------------------------------------------ */

#define NO_STOP		77	/* the kernel has no userfaultfd that stops who writes */

struct untold {
	struct party *p;
	struct hamlyn_ticket_import *arg;	/* a page of its own */
	int ret;
	bool ended;
};

/* From here on who writes to the page waits, also the kernel. */
static int stop_writers(int uffd, void *page)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .range = { (uintptr_t)page, PAGE },
				       .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect wp = { .range = all.range,
					  .mode = UFFDIO_WRITEPROTECT_MODE_WP };

	return ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &all) ||
	       ioctl(uffd, UFFDIO_WRITEPROTECT, &wp) ? -errno : 0;
}

/* One who writes has been stopped; false if nobody comes. */
static bool stopped_one(int uffd)
{
	struct pollfd ready = { .fd = uffd, .events = POLLIN };
	struct uffd_msg stopped;

	return poll(&ready, 1, 10000) == 1 &&
	       read(uffd, &stopped, sizeof(stopped)) == sizeof(stopped);
}

static void *import_untold(void *arg)
{
	struct untold *u = arg;

	u->ret = ht_raw(u->p->fd, HAMLYN_IOC_TICKET_IMPORT, u->arg);
	__atomic_store_n(&u->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * The answer is under way when the terminus gets a message for whose end another thread
 * waits. Then it turns out that it cannot be written, and a signal comes.
 */
static int interrupt_undoing(struct untold *u, int uffd, const struct party *to)
{
	struct binder b = { .p = u->p };
	pthread_t importer, waiter;
	bool early, in_time;
	int ret;

	if (pthread_create(&importer, NULL, import_untold, u) ||
	    !stopped_one(uffd))
		return 94;
	ret = guess_until_held(u->p, to);
	if (ret || pthread_create(&waiter, NULL, bind_none, &b))
		return ret ?: 95;
	ht_sleep_ns(30 * HT_MS);
	if (mprotect(u->arg, PAGE, PROT_READ) || close(uffd))
		return 96;
	ht_sleep_ns(30 * HT_MS);
	pthread_kill(importer, SIGUSR1);
	ht_sleep_ns(50 * HT_MS);
	early = __atomic_load_n(&u->ended, __ATOMIC_ACQUIRE);
	in_time = !__atomic_load_n(&b.ended, __ATOMIC_ACQUIRE);
	pthread_join(waiter, NULL);
	pthread_join(importer, NULL);
	if (u->ret != -EFAULT || b.ret)
		return 2;
	return !in_time ? TOO_LATE : early ? 3 : 0;
}

/* What was undone leaves its place in the table to the next one. */
static int undo_while_held(const struct party *to, int ticket, unsigned int uid)
{
	const struct sigaction action = { .sa_handler = count_signal };
	/* As root: not everybody may stop the kernel. */
	int ret, uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	unsigned char *data;
	struct party p;
	struct untold u = { .p = &p };
	uint32_t index;

	u.arg = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u.arg == MAP_FAILED || become(uid) || open_for_long(&p, &data) ||
	    sigaction(SIGUSR1, &action, NULL))
		return 90;
	*u.arg = (struct hamlyn_ticket_import) {
		.size = sizeof(*u.arg), .terminus = p.terminus.arg.terminus,
		.fd = ticket,
	};
	if (uffd < 0 || stop_writers(uffd, u.arg))
		return NO_STOP;
	ret = interrupt_undoing(&u, uffd, to);
	return ret ?: import_ticket(&p, ticket, &index) ? 97 : index ? 4 : 0;
}

TEST_F(hostile_pause, an_import_that_cannot_be_told_of_is_undone_whatever_signal_comes)
{
	unsigned int tries = 0, uid;
	int ret, ticket;
	pid_t pid;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	ticket = ticket_of(&self->rx);
	ASSERT_LE(0, ticket);
	do {
		uid = somebody(52 + tries);
		pid = ht_fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(undo_while_held(&self->rx, ticket, uid));
		ret = ht_reap(pid);
	} while (ret == TOO_LATE && ++tries < 12);
	close(ticket);
	if (ret == NO_STOP)
		SKIP(return, "no userfaultfd that stops who writes");
	EXPECT_EQ(0, ret);
}

/*
 * The terminus is gone when the answer cannot be written, and its number is another one's,
 * whose table has a ticket in that place.
 */
TEST_F(hostile_pause, an_import_is_undone_at_its_own_terminus_only)
{
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), ticket;
	struct untold u = { .p = &self->tx };
	uint32_t terminus, index;
	pthread_t importer;

	HAVE_PARTIES({ HAMLYN_A_PACKET_SIZE, SMALLEST });
	ticket = ticket_of(&self->rx);
	ASSERT_LE(0, ticket);
	terminus = self->tx.terminus.arg.terminus;
	u.arg = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)u.arg);
	*u.arg = (struct hamlyn_ticket_import) {
		.size = sizeof(*u.arg), .terminus = terminus, .fd = ticket,
	};
	if (uffd < 0 || stop_writers(uffd, u.arg))
		SKIP(return, "no userfaultfd that stops who writes");
	ASSERT_EQ(0, pthread_create(&importer, NULL, import_untold, &u));
	ASSERT_TRUE(stopped_one(uffd));
	ASSERT_EQ(0, ht_raw_id(self->tx.fd, HAMLYN_IOC_TERMINUS_DESTROY, terminus));
	ht_raw_terminus_unmap(&self->tx.terminus);
	ASSERT_EQ(0, ht_raw_terminus_create(self->tx.fd, 8, 256, &self->tx.terminus));
	ASSERT_EQ(terminus, self->tx.terminus.arg.terminus);
	ASSERT_EQ(0, import_ticket(&self->tx, ticket, &index));
	EXPECT_EQ(0, index);
	ASSERT_EQ(0, mprotect(u.arg, PAGE, PROT_READ));
	close(uffd);
	pthread_join(importer, NULL);
	EXPECT_EQ(-EFAULT, u.ret);
	ASSERT_EQ(0, import_ticket(&self->tx, ticket, &index));
	EXPECT_EQ(1, index);
	munmap(u.arg, PAGE);
	close(ticket);
}

#define LARGEST	65536		/* bytes of a packet, and of a section of the NIC's work */
#define HUGE	(64 * LARGEST)	/* one doorbell's worth */

static void *ring(void *arg)
{
	struct party *p = arg;

	ht_raw_post(&p->terminus);
	return NULL;
}

/* Behind DESTROY nothing is read any more, although a doorbell was at it. */
TEST_F(hostile_pause, who_destroys_a_terminus_in_its_message_has_his_memory_back)
{
	struct hamlyn_area_alloc into, area;
	volatile unsigned char *to;
	struct hamlyn_slot_create slot;
	struct ht_poll poll;
	unsigned char *from;
	pthread_t thread;
	size_t i, later = 0;

	HAVE_PARTIES({ HAMLYN_A_PACKET_SIZE, LARGEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	ASSERT_EQ(0, ht_raw_area_alloc(self->rx.fd, HUGE, &into, (void **)&to));
	ASSERT_EQ(0, ht_raw_slot_create(self->rx.fd, into.area, HUGE,
					HAMLYN_NONE, &slot));
	ASSERT_EQ(0, ht_raw_area_alloc(self->tx.fd, HUGE, &area, (void **)&from));
	ASSERT_EQ(0, ht_raw_bind(self->tx.fd, self->tx.terminus.arg.terminus, 0,
				 area.area, 0, HUGE));
	memset(from, 1, HUGE);
	self->rx.slot = slot;
	put_long(&self->tx, &self->rx, slot.key, HUGE);
	ASSERT_EQ(0, pthread_create(&thread, NULL, ring, &self->tx));
	ht_poll_begin(&poll);
	while (!to[0] && ht_poll_more(&poll))
		continue;
	ASSERT_EQ(0, ht_raw_id(self->tx.fd, HAMLYN_IOC_TERMINUS_DESTROY,
			       self->tx.terminus.arg.terminus));
	memset(from, 2, HUGE);
	pthread_join(thread, NULL);
	for (i = 0; i < HUGE; i += 64)
		later += to[i] == 2;
	EXPECT_EQ(0, later);
	EXPECT_EQ(1, to[0]);
	munmap((void *)(uintptr_t)to, HUGE);
	munmap(from, HUGE);
}

TEST_HARNESS_MAIN
