// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: descriptors of counters, and wait sets: fi_cntr(3), fi_poll(3). */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

/* What libfabric 2 deprecates has to work as long as libfabric knows it. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

FIXTURE(self)
{
	struct pair pair;
	struct fid_wait *set;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

FIXTURE_VARIANT(self)
{
	bool rdm;
};

FIXTURE_VARIANT_ADD(self, connected)
{
	.rdm = false,
};

FIXTURE_VARIANT_ADD(self, rdm)
{
	.rdm = true,
};

FIXTURE_SETUP(self)
{
	const struct options options = { .rdm = variant->rdm };

	ASSERT_EQ(0, pair_open(&self->pair, &options));
}

FIXTURE_TEARDOWN(self)
{
	if (self->ep)
		EXPECT_EQ(0, fi_close(&self->ep->fid));
	if (self->cntr)
		EXPECT_EQ(0, fi_close(&self->cntr->fid));
	if (self->cq)
		EXPECT_EQ(0, fi_close(&self->cq->fid));
	if (self->set)
		EXPECT_EQ(0, fi_close(&self->set->fid));
	pair_close(&self->pair);
}

/* The other end writes to this one's region, whose writes are counted. */
static int count_writes(struct pair *p, struct fid_cntr *cntr, char *to, size_t length,
			struct fid_mr **mr)
{
	int err = fi_mr_reg(p->b.domain, to, length, FI_REMOTE_WRITE, 0, 0, 0, mr, NULL);

	return err ? err : fi_mr_bind(*mr, &cntr->fid, FI_REMOTE_WRITE);
}

static int open_cntr(struct pair *p, enum fi_wait_obj obj, struct fid_wait *set,
		     struct fid_cntr **cntr)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP, .wait_obj = obj, .wait_set = set
	};

	return fi_cntr_open(p->b.domain, &attr, cntr, cntr);
}

static int open_set(struct pair *p, enum fi_wait_obj obj, struct fid_wait **set)
{
	struct fi_wait_attr attr = { .wait_obj = obj };

	return fi_wait_open(p->b.fabric, &attr, set);
}

/* Sleeps on the descriptor until the counter is there; a sleep that nobody ends is a failure. */
static bool sleep_until(struct pair *p, struct fid_cntr *cntr, int fd, uint64_t to)
{
	struct pollfd set = { .fd = fd, .events = POLLIN };
	struct fid *fids[] = { &cntr->fid };
	int64_t until = now_ms() + patience_ms();

	while (fi_cntr_read(cntr) < to && now_ms() < until)
		if (!fi_trywait(p->b.fabric, fids, 1) && poll(&set, 1, (int)patience_ms()) != 1)
			return false;
	return fi_cntr_read(cntr) == to;
}

struct writer {
	struct pair *pair;
	uint64_t key;
	int count;
	int err;
	int done;
};

static void *write_to_it(void *arg)
{
	struct writer *w = arg;

	for (int i = 0; i < w->count && !w->err; i++) {
		ssize_t err;

		while ((err = fi_inject_write(w->pair->a.ep, "x", 1, w->pair->a.peer, (uint64_t)i,
					      w->key)) == -FI_EAGAIN)
			(void)fi_cntr_read(w->pair->a.cntr[0]);
		w->err = (int)err;
		usleep(1000);
	}
	while (!w->err && fi_cntr_read(w->pair->a.cntr[3]) < (uint64_t)w->count)
		sched_yield();
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* The other end may have an answer to send yet. */
static void finish(struct writer *w, pthread_t thread)
{
	while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE))
		(void)fi_cntr_read(w->pair->b.cntr[0]);
	pthread_join(thread, NULL);
}

/* A thread sleeps on a counter's descriptor while another process, so to speak, writes. */
TEST_F(self, counter_fd)
{
	struct writer writer = { .pair = &self->pair, .count = 50 };
	enum fi_wait_obj obj = FI_WAIT_NONE;
	uint64_t flags = ~0ULL;
	pthread_t thread;
	struct fid_mr *mr;
	char to[50];
	int fd = -1;

	ASSERT_EQ(0, open_cntr(&self->pair, FI_WAIT_FD, NULL, &self->cntr));
	ASSERT_EQ(0, fi_control(&self->cntr->fid, FI_GETWAIT, &fd));
	EXPECT_LE(0, fd);
	EXPECT_EQ(0, fi_control(&self->cntr->fid, FI_GETWAITOBJ, &obj));
	EXPECT_EQ(FI_WAIT_FD, obj);
	EXPECT_EQ(0, fi_control(&self->cntr->fid, FI_GETOPSFLAG, &flags));
	EXPECT_EQ(0, flags);
	ASSERT_EQ(0, count_writes(&self->pair, self->cntr, to, sizeof(to), &mr));
	writer.key = fi_mr_key(mr);
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_to_it, &writer));
	EXPECT_EQ(true, sleep_until(&self->pair, self->cntr, fd, 50));
	EXPECT_EQ(0, fi_cntr_wait(self->cntr, 50, 0));
	finish(&writer, thread);
	EXPECT_EQ(0, writer.err);
	EXPECT_EQ(0, fi_close(&mr->fid));
}

/* What the application itself does to a counter is a change, and each is told of once. */
TEST_F(self, counter_told_once)
{
	int (*const change[])(struct fid_cntr *cntr, uint64_t value) = {
		fi_cntr_add, fi_cntr_adderr, fi_cntr_set, fi_cntr_seterr
	};
	struct fid *fids[1];
	struct pollfd fd = { .events = POLLIN };

	ASSERT_EQ(0, open_cntr(&self->pair, FI_WAIT_FD, NULL, &self->cntr));
	ASSERT_EQ(0, fi_control(&self->cntr->fid, FI_GETWAIT, &fd.fd));
	fids[0] = &self->cntr->fid;
	for (uint64_t i = 0; i < 4; i++) {
		/* Asleep when it comes. */
		ASSERT_EQ(0, fi_trywait(self->pair.b.fabric, fids, 1));
		EXPECT_EQ(0, poll(&fd, 1, 0));
		ASSERT_EQ(0, change[i](self->cntr, 7 + i));
		EXPECT_EQ(1, poll(&fd, 1, 0));
		EXPECT_EQ(-FI_EAGAIN, fi_trywait(self->pair.b.fabric, fids, 1));
		ASSERT_EQ(0, fi_trywait(self->pair.b.fabric, fids, 1));
		EXPECT_EQ(0, poll(&fd, 1, 0));
		/* Just before that. */
		ASSERT_EQ(0, change[i](self->cntr, 17 + i));
		EXPECT_EQ(-FI_EAGAIN, fi_trywait(self->pair.b.fabric, fids, 1));
	}
}

/* To wait by the call alone takes no descriptor, so there is none. */
TEST_F(self, counter_without_fd)
{
	enum fi_wait_obj obj = FI_WAIT_NONE;
	struct fid *fids[1];
	int fd;

	ASSERT_EQ(0, open_cntr(&self->pair, FI_WAIT_UNSPEC, NULL, &self->cntr));
	EXPECT_EQ(-FI_ENODATA, fi_control(&self->cntr->fid, FI_GETWAIT, &fd));
	EXPECT_EQ(0, fi_control(&self->cntr->fid, FI_GETWAITOBJ, &obj));
	EXPECT_EQ(FI_WAIT_UNSPEC, obj);
	fids[0] = &self->cntr->fid;
	EXPECT_EQ(-FI_EINVAL, fi_trywait(self->pair.b.fabric, fids, 1));
	EXPECT_EQ(-FI_ETIMEDOUT, fi_cntr_wait(self->cntr, 1, 5));
}

/* ---- wait sets ------------------------------------------------------------ */

static int open_cq(struct pair *p, struct fid_wait *set, struct fid_cq **cq)
{
	struct fi_cq_attr attr = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET, .wait_set = set
	};

	return fi_cq_open(p->b.domain, &attr, cq, NULL);
}

/* One of each kind that can be in a set wakes whoever waits for all of them. */
TEST_F(self, set_of_all)
{
	struct writer writer = { .pair = &self->pair, .count = 20 };
	const struct fi_eq_entry event = { .data = 5 };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_SET, .flags = FI_WRITE };
	int64_t until = now_ms() + patience_ms();
	struct fi_cq_tagged_entry entry;
	struct fi_eq_entry out;
	pthread_t thread;
	struct fid_mr *mr;
	struct fid_eq *eq;
	uint32_t type;
	char to[20];

	ASSERT_EQ(0, open_set(&self->pair, FI_WAIT_UNSPEC, &self->set));
	ASSERT_EQ(0, open_cntr(&self->pair, FI_WAIT_SET, self->set, &self->cntr));
	ASSERT_EQ(0, open_cq(&self->pair, self->set, &self->cq));
	eq_attr.wait_set = self->set;
	ASSERT_EQ(0, fi_eq_open(self->pair.b.fabric, &eq_attr, &eq, NULL));
	EXPECT_EQ(-FI_ETIMEDOUT, fi_wait(self->set, 0));
	EXPECT_EQ(-FI_ETIMEDOUT, fi_wait(self->set, 20));
	/* It is their set that one waits on. */
	EXPECT_EQ(-FI_ENOSYS, fi_cq_sread(self->cq, &entry, 1, NULL, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_eq_sread(eq, &type, &out, sizeof(out), 0, 0));
	ASSERT_EQ((ssize_t)sizeof(event), fi_eq_write(eq, FI_NOTIFY, &event, sizeof(event), 0));
	EXPECT_EQ(0, fi_wait(self->set, -1));
	ASSERT_EQ((ssize_t)sizeof(out), fi_eq_read(eq, &type, &out, sizeof(out), 0));
	EXPECT_EQ(5, out.data);
	EXPECT_EQ(-FI_ETIMEDOUT, fi_wait(self->set, 0));
	ASSERT_EQ(0, count_writes(&self->pair, self->cntr, to, sizeof(to), &mr));
	writer.key = fi_mr_key(mr);
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_to_it, &writer));
	while (fi_cntr_read(self->cntr) < 20 && now_ms() < until)
		EXPECT_EQ(0, fi_wait(self->set, (int)patience_ms()));
	EXPECT_EQ(20, fi_cntr_read(self->cntr));
	finish(&writer, thread);
	EXPECT_EQ(0, writer.err);
	EXPECT_EQ(-FI_EBUSY, fi_close(&self->set->fid));
	EXPECT_EQ(0, fi_close(&mr->fid));
	EXPECT_EQ(0, fi_close(&eq->fid));
}

/* A queue of an end point that shares a set, which is slept on by its descriptor. */
TEST(set_by_descriptor)
{
	const struct options options = { .rdm = true };
	struct pollfd fd = { .events = POLLIN };
	int64_t until = now_ms() + patience_ms();
	struct fi_cq_tagged_entry entry;
	enum fi_wait_obj obj = FI_WAIT_NONE;
	struct fid_wait *set;
	struct fid_cq *old;
	struct fid *fids[1];
	struct pair p;
	int got = 0;
	char to[8];

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, open_set(&p, FI_WAIT_FD, &set));
	ASSERT_EQ(0, fi_control(&set->fid, FI_GETWAIT, &fd.fd));
	ASSERT_EQ(0, fi_control(&set->fid, FI_GETWAITOBJ, &obj));
	EXPECT_EQ(FI_WAIT_FD, obj);
	/* The end point again, with a queue of the set. */
	ASSERT_EQ(0, fi_close(&p.b.ep->fid));
	old = p.b.rx;
	ASSERT_EQ(0, open_cq(&p, set, &p.b.rx));
	ASSERT_EQ(0, end_endpoint(&p.b, p.b.info, &options));
	p.a.peer = learn(&p.a, &p.b);
	ASSERT_EQ(0, fi_recv(p.b.ep, to, 8, NULL, FI_ADDR_UNSPEC, to));
	fids[0] = &set->fid;
	/* The first message comes over a link that somebody has to accept: who sleeps is woken. */
	while (got != 1 && now_ms() < until) {
		if (!fi_trywait(p.b.fabric, fids, 1)) {
			ssize_t err = fi_inject(p.a.ep, "wake up", 8, p.a.peer);

			(void)fi_cntr_read(p.a.cntr[0]);
			ASSERT_EQ(1, poll(&fd, 1, (int)patience_ms())) {
				TH_LOG("nobody was woken, sent: %zd", err);
			}
		}
		got = (int)fi_cq_read(p.b.rx, &entry, 1);
	}
	ASSERT_EQ(1, got);
	EXPECT_EQ(&to[0], entry.op_context);
	EXPECT_STREQ("wake up", to);
	EXPECT_EQ(0, fi_close(&old->fid));
	pair_close(&p);
	EXPECT_EQ(0, fi_close(&set->fid));
}

TEST_F(self, set_yields)
{
	ASSERT_EQ(0, open_set(&self->pair, FI_WAIT_YIELD, &self->set));
	ASSERT_EQ(0, open_cntr(&self->pair, FI_WAIT_SET, self->set, &self->cntr));
	EXPECT_EQ(-FI_ETIMEDOUT, fi_wait(self->set, 5));
	ASSERT_EQ(0, fi_cntr_add(self->cntr, 1));
	EXPECT_EQ(0, fi_wait(self->set, -1));
	EXPECT_EQ(-FI_ETIMEDOUT, fi_wait(self->set, 0));
}

TEST_F(self, set_refusals)
{
	struct fi_wait_attr flags = { .wait_obj = FI_WAIT_FD, .flags = 1 };
	struct fid_fabric *other;
	struct fid_wait *foreign;

	EXPECT_EQ(-FI_EBADFLAGS, fi_wait_open(self->pair.b.fabric, &flags, &self->set));
	EXPECT_EQ(-FI_ENOSYS, open_set(&self->pair, FI_WAIT_MUTEX_COND, &self->set));
	self->set = NULL;
	/* There has to be one, of the same fabric. */
	EXPECT_EQ(-FI_EINVAL, open_cntr(&self->pair, FI_WAIT_SET, NULL, &self->cntr));
	EXPECT_EQ(-FI_EINVAL, open_cq(&self->pair, NULL, &self->cq));
	ASSERT_EQ(0, fi_fabric(self->pair.b.info->fabric_attr, &other, NULL));
	flags.flags = 0;
	ASSERT_EQ(0, fi_wait_open(other, &flags, &foreign));
	EXPECT_EQ(-FI_EINVAL, open_cntr(&self->pair, FI_WAIT_SET, foreign, &self->cntr));
	EXPECT_EQ(-FI_EINVAL, open_cq(&self->pair, foreign, &self->cq));
	self->cntr = NULL;
	self->cq = NULL;
	EXPECT_EQ(-FI_EBUSY, fi_close(&other->fid));
	EXPECT_EQ(0, fi_close(&foreign->fid));
	EXPECT_EQ(0, fi_close(&other->fid));
}

/* ---- signals --------------------------------------------------------------- */

static void nothing(int number)
{
	(void)number;
}

struct sleeper {
	struct fid_cq *cq;
	ssize_t result;
	int done;
};

static void *sleep_for_ever(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry entry;

	s->result = fi_cq_sread(s->cq, &entry, 1, NULL, -1);
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* fi_cq(3): who is blocked returns when it is signaled, whatever the time-out. */
TEST(signal_ends_sread)
{
	const struct options options = { .rdm = true, .cq_wait = FI_WAIT_UNSPEC };
	const struct sigaction act = { .sa_handler = nothing };
	int64_t until = now_ms() + patience_ms();
	struct sleeper sleeper = { .result = 1 };
	pthread_t thread;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, sigaction(SIGUSR1, &act, NULL));
	sleeper.cq = p.a.rx;
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_for_ever, &sleeper));
	while (!__atomic_load_n(&sleeper.done, __ATOMIC_ACQUIRE) && now_ms() < until) {
		pthread_kill(thread, SIGUSR1);
		usleep(1000);
	}
	ASSERT_EQ(1, __atomic_load_n(&sleeper.done, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	EXPECT_EQ(-FI_EAGAIN, sleeper.result);
	pair_close(&p);
}

TEST_HARNESS_MAIN
