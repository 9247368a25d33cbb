// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: completion queues and counters, fi_cq(3), fi_cntr(3), fi_poll(3). */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

/* A queue that is too small for all that comes: nothing is lost, a sender of too much is told. */
TEST(no_overrun)
{
	const struct options options = { .cq_size = 4 };
	int64_t until = now_ms() + patience_ms();
	struct fi_cq_tagged_entry entry;
	int sent = 0, received = 0;
	char to[64];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	for (int i = 0; i < 64; i++)
		ASSERT_EQ(0, fi_recv(p.b.ep, &to[i], 1, NULL, 0, &to[i]));
	/* Its own queue is full first. */
	while (sent < 64) {
		char c = (char)sent;
		ssize_t err = fi_send(p.a.ep, &c, 1, NULL, 0, NULL);

		if (err)
			ASSERT_EQ(-FI_EAGAIN, err);
		if (err)
			break;
		sent++;
	}
	EXPECT_EQ(4, sent);
	/* Then nobody reads the other one. */
	for (int i = 0; i < 1000 && sent < 64; i++) {
		char c = (char)sent;

		(void)fi_cq_read(p.a.tx, &entry, 1);
		sent += !fi_send(p.a.ep, &c, 1, NULL, 0, NULL);
		EXPECT_GE(4, fi_cntr_read(p.b.cntr[1]));
	}
	while (received < 64) {
		char c = (char)sent;

		ASSERT_LT(now_ms(), until);
		(void)fi_cq_read(p.a.tx, &entry, 1);
		sent += sent < 64 && !fi_send(p.a.ep, &c, 1, NULL, 0, NULL);
		if (fi_cq_read(p.b.rx, &entry, 1) != 1)
			continue;
		EXPECT_EQ(&to[received], entry.op_context);
		EXPECT_EQ(received, to[received]);
		received++;
	}
	pair_close(&p);
}

/* The same for what a peer's writes tell: they wait until it is read. */
TEST(remote_data_waits)
{
	const struct options options = { .cq_size = 4 };
	struct fi_cq_tagged_entry entry;
	char there[16];
	struct fid_mr *mr;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_mr_reg(p.b.domain, there, 16, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	for (uint64_t i = 0; i < 16; i++)
		ASSERT_EQ(0, fi_inject_writedata(p.a.ep, "x", 1, i, 0, i, fi_mr_key(mr)));
	for (uint64_t i = 0; i < 16; i++) {
		ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
		EXPECT_EQ(i, entry.data);
	}
	EXPECT_EQ(0, fi_close(&mr->fid));
	pair_close(&p);
}

/* Errors come in the order of what they are about. */
TEST(errors_in_order)
{
	const struct options options = { 0 };
	int64_t until = now_ms() + patience_ms();
	struct fi_cq_tagged_entry entries[4];
	struct fi_cq_err_entry error = { 0 };
	char to[4];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, fi_recv(p.b.ep, to, 1, NULL, 0, NULL));
	ASSERT_EQ(0, fi_inject(p.a.ep, "a", 1, 0));
	ASSERT_EQ(0, fi_inject(p.a.ep, "ab", 2, 0));
	ASSERT_EQ(0, fi_inject(p.a.ep, "c", 1, 0));
	while (fi_cntr_read(p.b.cntr[1]) < 2 || fi_cntr_readerr(p.b.cntr[1]) < 1)
		ASSERT_LT(now_ms(), until);
	EXPECT_EQ(1, fi_cq_read(p.b.rx, entries, 4));
	EXPECT_EQ(-FI_EAVAIL, fi_cq_read(p.b.rx, entries, 4));
	EXPECT_EQ(-FI_EAVAIL, fi_cq_read(p.b.rx, entries, 4));
	EXPECT_EQ(1, fi_cq_readerr(p.b.rx, &error, 0));
	EXPECT_EQ(FI_ETRUNC, error.err);
	EXPECT_EQ(-FI_EAGAIN, fi_cq_readerr(p.b.rx, &error, 0));
	EXPECT_EQ(1, fi_cq_read(p.b.rx, entries, 4));
	EXPECT_NE(NULL, fi_cq_strerror(p.b.rx, error.prov_errno, NULL, NULL, 0));
	pair_close(&p);
}

struct sleeper {
	struct fid_cq *cq;
	ssize_t result;
	struct fi_cq_tagged_entry entry;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;

	s->result = fi_cq_sread(s->cq, &s->entry, 1, NULL, (int)patience_ms());
	return NULL;
}

/* Asleep in fi_cq_sread() until something comes, or somebody says so. */
TEST(sread)
{
	const struct options options = { .cq_wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct sleeper s;
	pthread_t thread;
	char to;
	struct pair p;
	int64_t begun;

	ASSERT_EQ(0, pair_open(&p, &options));
	begun = now_ms();
	EXPECT_EQ(-FI_EAGAIN, fi_cq_sread(p.b.rx, &entry, 1, NULL, 100));
	EXPECT_LE(100, now_ms() - begun);
	ASSERT_EQ(0, fi_recv(p.b.ep, &to, 1, NULL, 0, &to));
	s = (struct sleeper){ .cq = p.b.rx };
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_on, &s));
	usleep(100000);
	ASSERT_EQ(0, fi_inject(p.a.ep, "x", 1, 0));
	pthread_join(thread, NULL);
	EXPECT_EQ(1, s.result);
	EXPECT_EQ(&to, s.entry.op_context);
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_on, &s));
	usleep(100000);
	EXPECT_EQ(0, fi_cq_signal(p.b.rx));
	pthread_join(thread, NULL);
	EXPECT_EQ(-FI_EAGAIN, s.result);
	EXPECT_GT(patience_ms(), now_ms() - begun);
	/* Cancelling in this thread wakes that one. */
	ASSERT_EQ(0, fi_recv(p.b.ep, &to, 1, NULL, 0, &to));
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_on, &s));
	usleep(100000);
	EXPECT_EQ(0, fi_cancel(&p.b.ep->fid, &to));
	pthread_join(thread, NULL);
	EXPECT_EQ(-FI_EAVAIL, s.result);
	pair_close(&p);
}

/* A threshold: not before there are so many. */
TEST(threshold)
{
	const struct options options = { .cq_wait = FI_WAIT_UNSPEC,
					 .cq_cond = FI_CQ_COND_THRESHOLD };
	struct fi_cq_tagged_entry entries[8];
	char to[3];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, fi_recv(p.b.ep, &to[i], 1, NULL, 0, NULL));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, fi_inject(p.a.ep, "x", 1, 0));
	EXPECT_EQ(3, fi_cq_sread(p.b.rx, entries, 8, (void *)3, (int)patience_ms()));
	pair_close(&p);
}

/*
 * Until fi_trywait() says @want, or patience ends. An engine takes its time to bring what was sent,
 * and the other end's credits come when they come.
 */
static int trywait_until(struct end *end, struct fid **fids, int count, int want)
{
	int64_t until = now_ms() + patience_ms();
	struct fi_cq_tagged_entry entry;
	int said;

	while ((said = fi_trywait(end->fabric, fids, count)) != want && now_ms() < until) {
		if (said && fi_cq_read(end->rx, &entry, 1) != -FI_EAGAIN)
			break;
		sched_yield();
	}
	return said;
}

/* FI_WAIT_FD: after fi_trywait() whatever comes makes it readable. */
TEST(wait_fd)
{
	const struct options options = { .cq_wait = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct pollfd set = { .events = POLLIN };
	struct fid *fids[2];
	struct pair p;
	char to;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_control(&p.b.rx->fid, FI_GETWAIT, &set.fd));
	fids[0] = &p.b.rx->fid;
	fids[1] = &p.b.eq->fid;
	for (int i = 0; i < 20; i++) {
		int64_t until = now_ms() + patience_ms();

		ASSERT_EQ(0, fi_recv(p.b.ep, &to, 1, NULL, 0, NULL));
		ASSERT_EQ(0, trywait_until(&p.b, fids, 2, 0));
		ASSERT_EQ(0, fi_inject(p.a.ep, "x", 1, 0));
		/* It may be woken for what is none of its business: it looks, and asks again. */
		for (bool sleeps = true;; sleeps = !fi_trywait(p.b.fabric, fids, 2)) {
			ASSERT_LT(now_ms(), until);
			if (sleeps)
				ASSERT_EQ(1, poll(&set, 1, (int)patience_ms()));
			if (fi_cq_read(p.b.rx, &entry, 1) == 1)
				break;
		}
	}
	ASSERT_EQ(0, fi_recv(p.b.ep, &to, 1, NULL, 0, NULL));
	ASSERT_EQ(0, fi_inject(p.a.ep, "x", 1, 0));
	EXPECT_EQ(-FI_EAGAIN, trywait_until(&p.b, fids, 2, -FI_EAGAIN));
	ASSERT_EQ(1, fi_cq_read(p.b.rx, &entry, 1));
	EXPECT_EQ(0, trywait_until(&p.b, fids, 2, 0));
	pair_close(&p);
}

/* FI_WAIT_YIELD: nothing to sleep on, and all calls that wait. */
TEST(wait_yield)
{
	const struct options options = { .cq_wait = FI_WAIT_YIELD };
	struct fi_cq_tagged_entry entry;
	struct sleeper s;
	pthread_t thread;
	struct pair p;
	int64_t begun;
	char to;
	int fd;

	ASSERT_EQ(0, pair_open(&p, &options));
	EXPECT_GT(0, fi_control(&p.b.rx->fid, FI_GETWAIT, &fd));
	begun = now_ms();
	EXPECT_EQ(-FI_EAGAIN, fi_cq_sread(p.b.rx, &entry, 1, NULL, 50));
	EXPECT_LE(50, now_ms() - begun);
	ASSERT_EQ(0, fi_recv(p.b.ep, &to, 1, NULL, 0, &to));
	ASSERT_EQ(0, fi_inject(p.a.ep, "x", 1, 0));
	EXPECT_EQ(1, fi_cq_sread(p.b.rx, &entry, 1, NULL, -1));
	s = (struct sleeper){ .cq = p.b.rx };
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_on, &s));
	usleep(10000);
	EXPECT_EQ(0, fi_cq_signal(p.b.rx));
	pthread_join(thread, NULL);
	EXPECT_EQ(-FI_EAGAIN, s.result);
	pair_close(&p);
}

/* Which of many have something to say; of counters each change once. */
TEST(poll_set)
{
	const struct options options = { .rdm = true };
	struct fi_poll_attr attr = { .flags = FI_SEND };
	struct fi_cntr_attr cntr_attr = { 0 };
	struct fi_cq_attr cq_attr = { 0 };
	struct fi_cq_tagged_entry entry;
	struct fid_poll *set;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	void *contexts[3];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	EXPECT_EQ(-FI_EBADFLAGS, fi_poll_open(p.a.domain, &attr, &set));
	attr.flags = 0;
	ASSERT_EQ(0, fi_poll_open(p.a.domain, &attr, &set));
	ASSERT_EQ(0, fi_cntr_open(p.a.domain, &cntr_attr, &cntr, &cntr_attr));
	ASSERT_EQ(0, fi_cq_open(p.b.domain, &cq_attr, &cq, NULL));
	EXPECT_EQ(-FI_EINVAL, fi_poll_add(set, &cq->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_poll_add(set, &p.a.eq->fid, 0));
	EXPECT_EQ(-FI_EBADFLAGS, fi_poll_add(set, &cntr->fid, FI_SEND));
	p.a.tx->fid.context = &cq_attr;
	ASSERT_EQ(0, fi_poll_add(set, &p.a.tx->fid, 0));
	ASSERT_EQ(0, fi_poll_add(set, &cntr->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_poll_add(set, &cntr->fid, 0));
	EXPECT_EQ(0, fi_poll(set, contexts, 3));
	fi_cntr_adderr(cntr, 1);
	ASSERT_EQ(0, TAKEN(&p, fi_send(p.a.ep, "x", 1, NULL, p.a.peer, NULL)));
	/* What found no room is told of the next time. */
	EXPECT_EQ(1, fi_poll(set, contexts, 1));
	EXPECT_EQ(&cq_attr, contexts[0]);
	EXPECT_EQ(2, fi_poll(set, contexts, 3));
	EXPECT_EQ(&cq_attr, contexts[0]);
	EXPECT_EQ(&cntr_attr, contexts[1]);
	EXPECT_EQ(1, fi_poll(set, contexts, 3));
	EXPECT_EQ(1, fi_cq_read(p.a.tx, &entry, 1));
	EXPECT_EQ(0, fi_poll(set, contexts, 3));
	EXPECT_EQ(-FI_EBUSY, fi_close(&set->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&cntr->fid));
	EXPECT_EQ(0, fi_poll_del(set, &cntr->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_poll_del(set, &cntr->fid, 0));
	EXPECT_EQ(0, fi_poll_del(set, &p.a.tx->fid, 0));
	EXPECT_EQ(0, fi_close(&set->fid));
	EXPECT_EQ(0, fi_close(&cntr->fid));
	EXPECT_EQ(0, fi_close(&cq->fid));
	pair_close(&p);
}

/* A program of an older release has a shorter entry for errors: nothing is written behind it. */
TEST(older_error_entry)
{
	const struct options options = { .rdm = true };
	struct fi_info *info = pair_info(&options);
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	struct end end;
	char to;

	for (int old = 0; old < 2; old++) {
		info->fabric_attr->api_version = old ? FI_VERSION(1, 4) : FI_VERSION(1, 5);
		ASSERT_EQ(0, end_open(&end, info, &options));
		ASSERT_EQ(0, end_endpoint(&end, info, &options));
		ASSERT_EQ(0, fi_recv(end.ep, &to, 1, NULL, FI_ADDR_UNSPEC, &to));
		ASSERT_EQ(0, fi_cancel(&end.ep->fid, &to));
		ASSERT_EQ(-FI_EAVAIL, fi_cq_read(end.rx, &entry, 1));
		memset(&error, 0x55, sizeof(error));
		error.err_data = &to;
		error.err_data_size = 1;
		ASSERT_EQ(1, fi_cq_readerr(end.rx, &error, 0));
		EXPECT_EQ(FI_ECANCELED, error.err);
		EXPECT_EQ(old, error.err_data_size);
		EXPECT_EQ(old ? NULL : &to, error.err_data);
		end_close(&end);
	}
	fi_freeinfo(info);
}

TEST(formats)
{
	const struct options options = { 0 };
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fid_cq *cq;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	EXPECT_EQ(-FI_ENOSYS, fi_cq_open(p.a.domain, &attr, &cq, NULL));
	attr.wait_obj = FI_WAIT_NONE;
	for (int i = FI_CQ_FORMAT_UNSPEC; i <= FI_CQ_FORMAT_TAGGED; i++) {
		attr.format = i;
		ASSERT_EQ(0, fi_cq_open(p.a.domain, &attr, &cq, &p));
		EXPECT_EQ(&p, cq->fid.context);
		EXPECT_EQ(0, fi_close(&cq->fid));
	}
	EXPECT_EQ(-FI_EBUSY, fi_close(&p.a.tx->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&p.a.cntr[0]->fid));
	pair_close(&p);
}

TEST(counters)
{
	const struct options options = { 0 };
	struct pair p;
	char to;
	int64_t begun;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_recv(p.b.ep, &to, 1, NULL, 0, NULL));
	ASSERT_EQ(0, fi_inject(p.a.ep, "x", 1, 0));
	EXPECT_EQ(0, fi_cntr_wait(p.b.cntr[1], 1, (int)patience_ms()));
	begun = now_ms();
	EXPECT_EQ(-FI_ETIMEDOUT, fi_cntr_wait(p.b.cntr[1], 2, 50));
	EXPECT_LE(50, now_ms() - begun);
	EXPECT_EQ(0, fi_cntr_set(p.b.cntr[1], 10));
	EXPECT_EQ(0, fi_cntr_add(p.b.cntr[1], 5));
	EXPECT_EQ(15, fi_cntr_read(p.b.cntr[1]));
	EXPECT_EQ(0, fi_cntr_adderr(p.b.cntr[1], 2));
	EXPECT_EQ(2, fi_cntr_readerr(p.b.cntr[1]));
	EXPECT_EQ(0, fi_cntr_seterr(p.b.cntr[1], 0));
	EXPECT_EQ(0, fi_cntr_readerr(p.b.cntr[1]));
	pair_close(&p);
}

/* Several threads at one end, FI_THREAD_SAFE. */
static void *send_many(void *arg)
{
	struct end *end = arg;
	int64_t until = now_ms() + patience_ms();
	char text[40] = "thread";

	for (int i = 0; i < 500;) {
		if (!fi_inject(end->ep, text, sizeof(text), 0)) {
			i++;
			continue;
		}
		(void)fi_cntr_read(end->cntr[0]);
		if (now_ms() > until)
			return arg;
	}
	return NULL;
}

/* A counter that is bound with no flags counts nothing of the end point. */
TEST(counts_nothing)
{
	const struct options options = { 0 };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_cntr_open(p.a.domain, &attr, &cntr, NULL));
	ASSERT_EQ(0, fi_endpoint(p.a.domain, p.a.info, &ep, NULL));
	EXPECT_EQ(0, fi_ep_bind(ep, &cntr->fid, 0));
	EXPECT_EQ(-FI_EBADFLAGS, fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_COMPLETION));
	/* So it is nobody's. */
	EXPECT_EQ(0, fi_close(&cntr->fid));
	EXPECT_EQ(0, fi_close(&ep->fid));
	pair_close(&p);
}

TEST(threads)
{
	const struct options options = { .threading = FI_THREAD_SAFE };
	struct fi_cq_tagged_entry entry;
	pthread_t threads[3];
	char to[40];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, send_many, &p.a));
	for (int i = 0; i < 1500; i++) {
		ASSERT_EQ(0, fi_recv(p.b.ep, to, sizeof(to), NULL, 0, NULL));
		ASSERT_EQ(1, next_entry(p.b.rx, NULL, &entry));
		EXPECT_STREQ("thread", to);
	}
	for (int i = 0; i < 3; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		EXPECT_EQ(NULL, failed);
	}
	pair_close(&p);
}

TEST_HARNESS_MAIN
