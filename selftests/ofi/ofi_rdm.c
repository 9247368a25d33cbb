// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: end points without connections, fi_tagged(3), fi_av(3). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_tagged.h>

#include "kselftest_harness.h"
#include "pair.h"

#define MAX	(1 << 20)

FIXTURE(rdm) {
	struct pair p;
	struct options options;
	unsigned char *from;
	unsigned char *to;
};

FIXTURE_VARIANT(rdm) {
	bool no_cma;
	enum fi_av_type av;
	enum fi_progress progress;
	enum fi_threading threading;
};

FIXTURE_VARIANT_ADD(rdm, table) {
	.av = FI_AV_TABLE,
};

FIXTURE_VARIANT_ADD(rdm, pieces) {
	.av = FI_AV_MAP,
	.no_cma = true,
};

FIXTURE_VARIANT_ADD(rdm, auto_progress) {
	.progress = FI_PROGRESS_AUTO,
};

FIXTURE_VARIANT_ADD(rdm, thread_domain) {
	.threading = FI_THREAD_DOMAIN,
	.no_cma = true,
};

FIXTURE_SETUP(rdm)
{
	self->options = (struct options){
		.rdm = true,
		.av = variant->av,
		.no_cma = variant->no_cma,
		.progress = variant->progress,
		.threading = variant->threading,
	};
	self->from = malloc(MAX);
	self->to = malloc(MAX);
	ASSERT_EQ(0, pair_open(&self->p, &self->options));
}

FIXTURE_TEARDOWN(rdm)
{
	pair_close(&self->p);
	free(self->from);
	free(self->to);
}

/* As next_entry(), and who has sent it. */
static ssize_t next_from(struct fid_cq *cq, struct end *other, struct fi_cq_tagged_entry *entry,
			 fi_addr_t *from)
{
	int64_t until = now_ms() + patience_ms();
	struct fi_cq_tagged_entry none_read;
	ssize_t got;

	do {
		got = fi_cq_readfrom(cq, entry, 1, from);
		if (got != -FI_EAGAIN)
			return got;
		(void)fi_cntr_read(other->cntr[0]);
		(void)fi_cq_read(other->rx, &none_read, 0);
	} while (now_ms() < until);
	return -FI_ETIMEDOUT;
}

/* ---- messages -------------------------------------------------------------- */

TEST_F(rdm, lengths)
{
	static const size_t lengths[] = {
		0, 1, 8, 120, 160, 4096, 16384, 16640, 16641, 57345, 65536, MAX
	};
	struct fi_cq_tagged_entry entry;
	fi_addr_t from;
	int context[2];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i];

		fill(self->from, n, (unsigned int)i);
		memset(self->to, 0xee, MAX);
		ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to, n, NULL, FI_ADDR_UNSPEC, &context[0]));
		ASSERT_EQ(0, TAKEN(&self->p, fi_send(self->p.a.ep, self->from, n, NULL,
						     self->p.a.peer, &context[1])));
		ASSERT_EQ(1, next_from(self->p.b.rx, &self->p.a, &entry, &from)) {
			TH_LOG("length %zu", n);
		}
		EXPECT_EQ(&context[0], entry.op_context);
		EXPECT_EQ(n, entry.len);
		EXPECT_EQ(FI_RECV | FI_MSG, entry.flags);
		EXPECT_EQ(self->p.b.peer, from);
		EXPECT_EQ(true, filled(self->to, n, (unsigned int)i));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		EXPECT_EQ(&context[1], entry.op_context);
		EXPECT_EQ(FI_SEND | FI_MSG, entry.flags);
	}
	EXPECT_EQ(sizeof(lengths) / sizeof(lengths[0]), fi_cntr_read(self->p.a.cntr[0]));
	EXPECT_EQ(sizeof(lengths) / sizeof(lengths[0]), fi_cntr_read(self->p.b.cntr[1]));
}

/* Both send before either has heard of the other: one link is made, and nothing is lost. */
TEST_F(rdm, both_ask)
{
	struct end *ends[2] = { &self->p.a, &self->p.b };
	struct fi_cq_tagged_entry entry;
	int64_t until = now_ms() + patience_ms();
	int sent[2] = { 0 }, received[2] = { 0 };

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 20; j++)
			ASSERT_EQ(0, fi_recv(ends[i]->ep, self->to + 8 * (20 * i + j), 8, NULL,
					     FI_ADDR_UNSPEC, NULL));
	while (received[0] + received[1] < 40) {
		ASSERT_LT(now_ms(), until);
		for (int i = 0; i < 2; i++) {
			if (sent[i] < 20 &&
			    !fi_send(ends[i]->ep, &sent[i], 4, NULL, ends[i]->peer, NULL))
				sent[i]++;
			if (fi_cq_read(ends[i]->rx, &entry, 1) == 1)
				received[i]++;
		}
	}
	for (int i = 0; i < 40; i++)
		EXPECT_EQ(i % 20, *(int *)(void *)(self->to + 8 * i));
}

/* ---- tags ------------------------------------------------------------------- */

#define TAG	0x8000000100000002ULL

TEST_F(rdm, tags)
{
	struct fi_cq_tagged_entry entry;
	int context[4];

	/* One that does not fit, one that does but for what is ignored, one that takes anything. */
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, 8, NULL, FI_ADDR_UNSPEC, TAG ^ 1, 0,
			      &context[0]));
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to + 8, 8, NULL, FI_ADDR_UNSPEC, TAG ^ 0xff00,
			      0xff00, &context[1]));
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to + 16, 8, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX,
			      &context[2]));
	/* One without a tag takes none that has one. */
	ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to + 24, 8, NULL, FI_ADDR_UNSPEC, &context[3]));
	for (int i = 1; i < 3; i++) {
		memset(self->from, i, 8);
		ASSERT_EQ(0, TAKEN(&self->p, fi_tsenddata(self->p.a.ep, self->from, 8, NULL, 7,
							  self->p.a.peer, TAG, &context[i])));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		EXPECT_EQ(&context[i], entry.op_context);
		EXPECT_EQ(TAG, entry.tag);
		EXPECT_EQ(7, entry.data);
		EXPECT_EQ(FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA, entry.flags);
		EXPECT_EQ(i, self->to[8 * i]);
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		EXPECT_EQ(FI_SEND | FI_TAGGED, entry.flags);
	}
	ASSERT_EQ(0, fi_tinject(self->p.a.ep, self->from, 8, self->p.a.peer, TAG ^ 1));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_EQ(&context[0], entry.op_context);
	ASSERT_EQ(0, fi_inject(self->p.a.ep, self->from, 8, self->p.a.peer));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_EQ(&context[3], entry.op_context);
	EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
}

/* What comes first waits, in order, short and long. */
TEST_F(rdm, unexpected)
{
	static const size_t lengths[] = { 40, 0, 16640, 100000 };
	struct fi_cq_tagged_entry entry;
	unsigned char *out = malloc(60 * 100000UL);

	for (unsigned int i = 0; i < 60; i++) {
		size_t n = lengths[i % 4];

		fill(out + i * 100000UL, n, i);
		ASSERT_EQ(0, TAKEN(&self->p, fi_tsend(self->p.a.ep, out + i * 100000UL, n, NULL,
						      self->p.a.peer, i / 2, NULL)));
		pair_progress(&self->p);
	}
	EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
	for (unsigned int tag = 30; tag-- > 0;) {
		for (unsigned int i = 2 * tag; i < 2 * tag + 2; i++) {
			ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, MAX, NULL, FI_ADDR_UNSPEC,
					      tag, 0, NULL));
			ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
			EXPECT_EQ(lengths[i % 4], entry.len);
			EXPECT_EQ(true, filled(self->to, entry.len, i));
		}
	}
	for (int i = 0; i < 60; i++)
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	free(out);
}

/* From one process alone, whatever else comes. */
TEST_F(rdm, directed)
{
	struct fi_cq_tagged_entry entry;
	struct end third;
	fi_addr_t to, from, source;
	int context[2];

	ASSERT_EQ(0, end_open(&third, self->p.a.info, &self->options));
	ASSERT_EQ(0, end_endpoint(&third, self->p.a.info, &self->options));
	to = learn(&third, &self->p.b);
	from = learn(&self->p.b, &third);
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, 8, NULL, from, 1, 0, &context[0]));
	ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.a.ep, "a", 1, self->p.a.peer, 1)));
	ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(third.ep, "b", 1, to, 1)));
	ASSERT_EQ(1, next_from(self->p.b.rx, &third, &entry, &source));
	EXPECT_EQ(&context[0], entry.op_context);
	EXPECT_EQ('b', self->to[0]);
	EXPECT_EQ(from, source);
	/* Of those that have come, too. */
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, 8, NULL, from, 1, 0, &context[0]));
	EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, 8, NULL, self->p.b.peer, 1, 0, &context[1]));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_EQ(&context[1], entry.op_context);
	EXPECT_EQ('a', self->to[0]);
	/* Again, by what was used before. */
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, 8, NULL, from, 1, 0, &context[0]));
	ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.a.ep, "c", 1, self->p.a.peer, 1)));
	EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
	ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(third.ep, "d", 1, to, 1)));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &third, &entry));
	EXPECT_EQ('d', self->to[0]);
	EXPECT_EQ(-FI_EINVAL, fi_trecv(self->p.b.ep, self->to, 8, NULL, 99, 1, 0, NULL));
	end_close(&third);
}

/* One sends without a pause: what another sends is received soon, and who sleeps is woken. */
TEST_F(rdm, one_flows)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct pollfd poll_fd = { .events = POLLIN };
	struct fi_cq_tagged_entry entry;
	struct fid_cq *wait;
	struct end third;
	bool sent = false, came = false;
	fi_addr_t to;

	ASSERT_EQ(0, end_open(&third, self->p.a.info, &self->options));
	ASSERT_EQ(0, end_endpoint(&third, self->p.a.info, &self->options));
	to = learn(&third, &self->p.b);
	for (int i = 0; i < 300 && !came; i++) {
		ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, 8, NULL, FI_ADDR_UNSPEC, 0, 1, NULL));
		ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.a.ep, "a", 1, self->p.a.peer, 0)));
		if (i >= 100 && !sent)
			sent = !fi_tinject(third.ep, "b", 1, to, 1);
		ASSERT_EQ(1, next_entry(self->p.b.rx, &third, &entry));
		came = entry.tag == 1;
	}
	EXPECT_EQ(true, came);
	end_close(&third);
	if (variant->progress == FI_PROGRESS_AUTO)
		return;
	/* Who asks for a descriptor only now, and takes what comes off the NQ by sending. */
	ASSERT_EQ(0, fi_cq_open(self->p.b.domain, &attr, &wait, NULL));
	ASSERT_EQ(0, fi_control(&wait->fid, FI_GETWAIT, &poll_fd.fd));
	while (fi_cq_read(self->p.b.rx, &entry, 1) == 1)
		;
	while (fi_trywait(self->p.b.fabric, (struct fid *[]){ &wait->fid }, 1))
		;
	ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.a.ep, "a", 1, self->p.a.peer, 0)));
	for (int i = 0; i < 16; i++)
		ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.b.ep, "b", 1, self->p.b.peer, 0)));
	EXPECT_EQ(1, poll(&poll_fd, 1, (int)patience_ms()));
	EXPECT_EQ(0, fi_close(&wait->fid));
}

/* ---- looking for messages --------------------------------------------------- */

static ssize_t look(struct end *end, uint64_t flags, uint64_t tag, struct fi_context *context,
		    void *to, size_t length)
{
	const struct iovec iov = { to, length };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = tag,
		.context = context,
	};

	return fi_trecvmsg(end->ep, &msg, flags);
}

TEST_F(rdm, peek)
{
	struct fi_context context;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;

	ASSERT_EQ(0, look(&self->p.b, FI_PEEK, 5, &context, NULL, 0));
	ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
	EXPECT_EQ(FI_ENOMSG, error.err);
	EXPECT_EQ(&context, error.op_context);
	EXPECT_EQ(5, error.tag);
	for (size_t n = 100; n <= 100000; n *= 1000) {
		fill(self->from, n, 1);
		ASSERT_EQ(0, TAKEN(&self->p, fi_tsenddata(self->p.a.ep, self->from, n, NULL, 77,
							  self->p.a.peer, 5, NULL)));
		EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(0, look(&self->p.b, FI_PEEK, 5, &context, NULL, 0));
			ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
			EXPECT_EQ(&context, entry.op_context);
			EXPECT_EQ(n, entry.len);
			EXPECT_EQ(5, entry.tag);
			EXPECT_EQ(77, entry.data);
			EXPECT_EQ(NULL, entry.buf);
			EXPECT_EQ(FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA, entry.flags);
		}
		ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, n, NULL, FI_ADDR_UNSPEC, 5, 0, NULL));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		EXPECT_EQ(true, filled(self->to, n, 1));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	}
}

/* Claimed: nobody else gets it. Discarded: its sender is told that it was taken. */
TEST_F(rdm, claim)
{
	struct fi_context context[2];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;

	for (size_t n = 100; n <= 100000; n *= 1000) {
		fill(self->from, n, 1);
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(0, TAKEN(&self->p, fi_tsend(self->p.a.ep, self->from, n, NULL,
							      self->p.a.peer, 5, NULL)));
		EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(0, look(&self->p.b, FI_PEEK | FI_CLAIM, 5, &context[i], NULL, 0));
			ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		}
		ASSERT_EQ(0, look(&self->p.b, FI_PEEK | FI_DISCARD, 5, &context[0], NULL, 0));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		ASSERT_EQ(0, look(&self->p.b, FI_PEEK, 5, &context[0], NULL, 0));
		ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
		EXPECT_EQ(FI_ENOMSG, error.err);
		ASSERT_EQ(0, look(&self->p.b, FI_CLAIM, 5, &context[0], self->to, n));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		EXPECT_EQ(&context[0], entry.op_context);
		EXPECT_EQ(n, entry.len);
		EXPECT_EQ(true, filled(self->to, n, 1));
		EXPECT_EQ(-FI_EINVAL, look(&self->p.b, FI_CLAIM, 5, &context[0], self->to, n));
		ASSERT_EQ(0, look(&self->p.b, FI_CLAIM | FI_DISCARD, 5, &context[1], NULL, 0));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	}
}

/* ---- receives that do not end well ------------------------------------------- */

TEST_F(rdm, cancel)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	int context[3];

	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to + i, 1, NULL, FI_ADDR_UNSPEC, 9, 0,
				      &context[i]));
	ASSERT_EQ(0, fi_cancel(&self->p.b.ep->fid, &context[2]));
	EXPECT_EQ(-FI_ENOENT, fi_cancel(&self->p.b.ep->fid, &context[2]));
	ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
	EXPECT_EQ(FI_ECANCELED, error.err);
	EXPECT_EQ(&context[2], error.op_context);
	EXPECT_EQ(FI_RECV | FI_TAGGED, error.flags);
	ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to + 2, 1, NULL, FI_ADDR_UNSPEC, 9, 0,
			      &context[2]));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.a.ep, "xyz" + i, 1,
							self->p.a.peer, 9)));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		EXPECT_EQ(&context[i], entry.op_context);
		EXPECT_EQ("xyz"[i], self->to[i]);
	}
}

TEST_F(rdm, truncated)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	int context;

	for (size_t n = 100; n <= 100000; n *= 1000) {
		for (int early = 0; early < 2; early++) {
			fill(self->from, n, 9);
			memset(self->to, 0, MAX);
			if (!early)
				ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, n - 30, NULL,
						      FI_ADDR_UNSPEC, 3, 0, &context));
			ASSERT_EQ(0, TAKEN(&self->p, fi_tsend(self->p.a.ep, self->from, n, NULL,
							      self->p.a.peer, 3, NULL)));
			if (early) {
				EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
				ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, n - 30, NULL,
						      FI_ADDR_UNSPEC, 3, 0, &context));
			}
			ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
			EXPECT_EQ(FI_ETRUNC, error.err);
			EXPECT_EQ(30, error.olen);
			EXPECT_EQ(n - 30, error.len);
			EXPECT_EQ(3, error.tag);
			EXPECT_EQ(&context, error.op_context);
			EXPECT_EQ(true, filled(self->to, n - 30, 9));
			EXPECT_EQ(0, self->to[n - 30]);
			ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		}
	}
}

/* ---- many messages in one buffer ----------------------------------------------- */

static ssize_t post_multi(struct end *end, void *to, size_t length, void *context)
{
	const struct iovec iov = { to, length };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context,
	};

	return fi_recvmsg(end->ep, &msg, FI_MULTI_RECV);
}

/* Whether they come before the buffer or after it, they are packed; the last one is told. */
TEST_F(rdm, multi_recv)
{
	static const size_t lengths[] = { 1000, 30000, 500, 400 };
	size_t least = 200, length = sizeof(least);
	struct fi_cq_tagged_entry entry;
	int context;

	ASSERT_EQ(0, fi_setopt(&self->p.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			       sizeof(least)));
	least = 0;
	ASSERT_EQ(0, fi_getopt(&self->p.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			       &length));
	EXPECT_EQ(200, least);
	fill(self->from, MAX, 4);
	for (int early = 0; early < 5; early += 2) {
		unsigned char *at = self->to;
		int ended = 0;

		memset(self->to, 0, MAX);
		for (int i = 0; i < 4; i++) {
			if (i == early)
				ASSERT_EQ(0, post_multi(&self->p.b, self->to, 32000, &context));
			ASSERT_EQ(0, TAKEN(&self->p, fi_send(self->p.a.ep, self->from + i,
							     lengths[i], NULL, self->p.a.peer,
							     NULL)));
			for (int j = 0; j < 10; j++)
				pair_progress(&self->p);
		}
		if (early == 4)
			ASSERT_EQ(0, post_multi(&self->p.b, self->to, 32000, &context));
		for (int i = 0; i < 4; i++) {
			ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
			EXPECT_EQ(&context, entry.op_context);
			EXPECT_EQ(0, ended);
			ended += !!(entry.flags & FI_MULTI_RECV);
			EXPECT_EQ(FI_RECV | FI_MSG, entry.flags & ~FI_MULTI_RECV);
		}
		EXPECT_EQ(1, ended);
		for (int i = 0; i < 4; i++) {
			EXPECT_EQ(0, memcmp(at, self->from + i, lengths[i]));
			at += lengths[i];
		}
		for (int i = 0; i < 4; i++)
			ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	}
}

TEST_F(rdm, multi_recv_ends)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int context;

	ASSERT_EQ(0, post_multi(&self->p.b, self->to, 1000, &context));
	ASSERT_EQ(0, TAKEN(&self->p, fi_inject(self->p.a.ep, self->from, 600, self->p.a.peer)));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_EQ(self->to, entry.buf);
	/* More than is left is cut off, and that was the buffer's end. */
	ASSERT_EQ(0, fi_inject(self->p.a.ep, self->from, 600, self->p.a.peer));
	ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
	EXPECT_EQ(FI_ETRUNC, error.err);
	EXPECT_EQ(400, error.len);
	EXPECT_EQ(200, error.olen);
	EXPECT_EQ(FI_RECV | FI_MSG | FI_MULTI_RECV, error.flags);
	ASSERT_EQ(0, post_multi(&self->p.b, self->to, 1000, &context));
	ASSERT_EQ(0, fi_inject(self->p.a.ep, self->from, 600, self->p.a.peer));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	ASSERT_EQ(0, fi_cancel(&self->p.b.ep->fid, &context));
	ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
	EXPECT_EQ(FI_ECANCELED, error.err);
	EXPECT_EQ(&context, error.op_context);
}

/* ---- regions ------------------------------------------------------------------- */

static ssize_t rma(struct pair *p, bool read, void *buf, size_t length, uint64_t at, uint64_t key)
{
	return read ? TAKEN(p, fi_read(p->a.ep, buf, length, NULL, p->a.peer, at, key, NULL)) :
		      TAKEN(p, fi_write(p->a.ep, buf, length, NULL, p->a.peer, at, key, NULL));
}

TEST_F(rdm, regions)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct fid_mr *mr;

	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->to, MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			       1, 0, &mr, NULL));
	for (size_t n = 8; n < MAX; n *= 100) {
		unsigned char *back = malloc(n);

		fill(self->from, n, 2);
		ASSERT_EQ(0, rma(&self->p, false, self->from, n, 100, fi_mr_key(mr)));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		EXPECT_EQ(FI_WRITE | FI_RMA, entry.flags);
		EXPECT_EQ(true, filled(self->to + 100, n, 2));
		ASSERT_EQ(0, rma(&self->p, true, back, n, 100, fi_mr_key(mr)));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		EXPECT_EQ(FI_READ | FI_RMA, entry.flags);
		EXPECT_EQ(true, filled(back, n, 2));
		free(back);
	}
	ASSERT_EQ(0, TAKEN(&self->p, fi_writedata(self->p.a.ep, self->from, 8, NULL, 55,
						  self->p.a.peer, 0, fi_mr_key(mr), NULL)));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_EQ(55, entry.data);
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	for (int read = 0; read < 2; read++) {
		memset(self->from, 0x77, 8);
		ASSERT_EQ(0, rma(&self->p, read, self->from, 8, 0, ~fi_mr_key(mr)));
		ASSERT_EQ(1, next_error(self->p.a.tx, &self->p.b, &error));
		EXPECT_EQ(FI_EKEYREJECTED, error.err);
		ASSERT_EQ(0, rma(&self->p, read, self->from, 8, MAX - 7, fi_mr_key(mr)));
		ASSERT_EQ(1, next_error(self->p.a.tx, &self->p.b, &error));
		EXPECT_EQ(FI_EACCES, error.err);
	}
	EXPECT_EQ(0, fi_close(&mr->fid));
}

/* ---- peers that go ---------------------------------------------------------------- */

/* Of its messages those that had come whole are there; nothing that needs it waits for ever. */
TEST_F(rdm, peer_closes)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int context[3];

	ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.b.ep, "x", 1, self->p.b.peer, 1)));
	ASSERT_EQ(0, TAKEN(&self->p, fi_tsend(self->p.b.ep, self->from, MAX, NULL, self->p.b.peer,
					      2, NULL)));
	EXPECT_EQ(true, none(self->p.a.rx, &self->p.b));
	ASSERT_EQ(0, fi_trecv(self->p.a.ep, self->to, 1, NULL, self->p.a.peer, 3, 0, &context[0]));
	ASSERT_EQ(0, fi_trecv(self->p.a.ep, self->to, 1, NULL, FI_ADDR_UNSPEC, 4, 0, &context[1]));
	ASSERT_EQ(0, TAKEN(&self->p, fi_tsend(self->p.a.ep, self->from, MAX, NULL, self->p.a.peer,
					      1, &context[2])));
	ASSERT_EQ(0, fi_close(&self->p.b.ep->fid));
	self->p.b.ep = NULL;
	ASSERT_EQ(1, next_error(self->p.a.rx, &self->p.b, &error));
	EXPECT_EQ(FI_ECONNRESET, error.err);
	EXPECT_EQ(&context[0], error.op_context);
	ASSERT_EQ(1, next_error(self->p.a.tx, &self->p.b, &error));
	EXPECT_EQ(FI_ECONNRESET, error.err);
	EXPECT_EQ(&context[2], error.op_context);
	EXPECT_EQ(-FI_ECONNREFUSED,
		  TAKEN(&self->p, fi_tinject(self->p.a.ep, "x", 1, self->p.a.peer, 1)));
	ASSERT_EQ(0, fi_trecv(self->p.a.ep, self->to, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	ASSERT_EQ(1, next_entry(self->p.a.rx, &self->p.b, &entry));
	ASSERT_EQ(0, fi_trecv(self->p.a.ep, self->to, MAX, NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
	ASSERT_EQ(1, next_error(self->p.a.rx, &self->p.b, &error));
	EXPECT_EQ(FI_ECONNRESET, error.err);
	EXPECT_EQ(true, none(self->p.a.rx, &self->p.b));
}

/* Another end point takes the name of one that was closed, and is sent to. */
TEST_F(rdm, begins_anew)
{
	struct fi_cq_tagged_entry entry;
	struct sockaddr_in name;
	size_t length = sizeof(name);

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.a.ep, "x", 1, self->p.a.peer, 1)));
		ASSERT_EQ(0, fi_trecv(self->p.b.ep, self->to, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		ASSERT_EQ(0, fi_getname(&self->p.b.ep->fid, &name, &length));
		ASSERT_EQ(0, fi_close(&self->p.b.ep->fid));
		memcpy(self->p.b.info->src_addr, &name, sizeof(name));
		ASSERT_EQ(0, end_endpoint(&self->p.b, self->p.b.info, &self->options));
		/* It may be the one that is heard of first. */
		if (i)
			ASSERT_EQ(0, TAKEN(&self->p, fi_tinject(self->p.b.ep, "y", 1,
								self->p.b.peer, 2)));
		pair_progress(&self->p);
	}
}

static void be_killed(int fd)
{
	const struct options options = { .rdm = true };
	struct fi_info *info = pair_info(&options);
	struct sockaddr_in name;
	size_t length = sizeof(name);
	struct end end;

	if (end_open(&end, info, &options) || end_endpoint(&end, info, &options) ||
	    fi_getname(&end.ep->fid, &name, &length) || write(fd, &name, length) < 0)
		_exit(1);
	for (;;)
		(void)fi_cntr_read(end.cntr[0]);
}

TEST(peer_dies)
{
	const struct options options = { .rdm = true, .cq_wait = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { 0 };
	struct sockaddr_in name;
	struct fi_info *info;
	struct end end;
	int fds[2], context[2];
	fi_addr_t peer;
	ssize_t err;
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		be_killed(fds[1]);
	ASSERT_EQ(sizeof(name), read(fds[0], &name, sizeof(name)));
	info = pair_info(&options);
	ASSERT_EQ(0, end_open(&end, info, &options));
	ASSERT_EQ(0, end_endpoint(&end, info, &options));
	ASSERT_EQ(1, fi_av_insert(end.av, &name, 1, &peer, 0, NULL));
	while ((err = fi_tinject(end.ep, "x", 1, peer, 1)) == -FI_EAGAIN)
		;
	ASSERT_EQ(0, err);
	ASSERT_EQ(0, fi_trecv(end.ep, &name, sizeof(name), NULL, peer, 1, 0, &context[0]));
	ASSERT_EQ(0, fi_tsend(end.ep, &name, sizeof(name), NULL, peer, 1, NULL));
	ASSERT_EQ(1, fi_cq_sread(end.tx, &entry, 1, NULL, (int)patience_ms()));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	/* It sleeps, and is woken. */
	ASSERT_EQ(-FI_EAVAIL, fi_cq_sread(end.rx, &entry, 1, NULL, (int)patience_ms()));
	ASSERT_EQ(1, fi_cq_readerr(end.rx, &error, 0));
	EXPECT_EQ(FI_ECONNRESET, error.err);
	EXPECT_EQ(&context[0], error.op_context);
	while ((err = fi_tinject(end.ep, "x", 1, peer, 1)) == -FI_EAGAIN)
		;
	EXPECT_EQ(-FI_ECONNREFUSED, err);
	end_close(&end);
	fi_freeinfo(info);
}

/* ---- room -------------------------------------------------------------------------- */

/* A queue of four completions gets all, in order, of buffers of one message and of many. */
TEST(little_room)
{
	const struct options options = { .rdm = true, .cq_size = 4 };
	struct fi_cq_tagged_entry entry;
	const size_t least = 1;
	static int to[3][30];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_setopt(&p.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			       sizeof(least)));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 30; i++) {
			if (round == 0)
				ASSERT_EQ(0, fi_recv(p.b.ep, &to[0][i], 4, NULL, FI_ADDR_UNSPEC,
						     NULL));
			if (round == 1 && !i)
				ASSERT_EQ(0, post_multi(&p.b, to[1], sizeof(to[1]), NULL));
			ASSERT_EQ(0, TAKEN(&p, fi_inject(p.a.ep, &i, 4, p.a.peer)));
			if (round == 2 && i == 20)
				ASSERT_EQ(0, post_multi(&p.b, to[2], sizeof(to[2]), NULL));
			pair_progress(&p);
		}
		for (int i = 0; i < 30; i++) {
			ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry)) {
				TH_LOG("round %d, message %d", round, i);
			}
			EXPECT_EQ(&to[round][i], entry.buf);
		}
		for (int i = 0; i < 30; i++)
			EXPECT_EQ(i, to[round][i]);
	}
	EXPECT_EQ(true, none(p.b.rx, &p.a));
	pair_close(&p);
}

/* Whose least is 0 is the application's again when it is full, and not before. */
TEST(multi_without_least)
{
	const struct options options = { .rdm = true };
	struct fi_cq_tagged_entry entry;
	const size_t least = 0;
	char to[16], after[8];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_setopt(&p.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			       sizeof(least)));
	ASSERT_EQ(0, post_multi(&p.b, to, sizeof(to), NULL));
	ASSERT_EQ(0, fi_recv(p.b.ep, after, sizeof(after), NULL, FI_ADDR_UNSPEC, NULL));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, TAKEN(&p, fi_inject(p.a.ep, "message", 8, p.a.peer)));
		ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
		EXPECT_EQ(i == 1, !!(entry.flags & FI_MULTI_RECV));
		EXPECT_EQ(i == 2 ? after : to + 8 * i, entry.buf);
	}
	pair_close(&p);
}

/* Of a sender's queue that is full nothing is lost either: it is refused, and has sent nothing. */
TEST(no_room_to_tell_of_it)
{
	const struct options options = { .rdm = true, .cq_size = 4 };
	struct fi_cq_tagged_entry entry;
	int from[5], to[5], refused = 0;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	for (int i = 0; i < 5; i++) {
		from[i] = i;
		ASSERT_EQ(0, fi_trecv(p.b.ep, &to[i], 4, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
	}
	ASSERT_EQ(0, TAKEN(&p, fi_tsend(p.a.ep, &from[0], 4, NULL, p.a.peer, 0, &from[0])));
	for (int i = 1; i < 4; i++)
		ASSERT_EQ(0, fi_tsend(p.a.ep, &from[i], 4, NULL, p.a.peer, 0, &from[i]));
	for (; refused < 100; refused++)
		if (fi_tsend(p.a.ep, &from[4], 4, NULL, p.a.peer, 0, &from[4]) != -FI_EAGAIN)
			break;
	EXPECT_EQ(100, refused);
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(1, fi_cq_read(p.a.tx, &entry, 1));
		EXPECT_EQ(&from[i], entry.op_context);
		if (!i)
			ASSERT_EQ(0, fi_tsend(p.a.ep, &from[4], 4, NULL, p.a.peer, 0, &from[4]));
		ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
		EXPECT_EQ(i, to[i]);
	}
	pair_close(&p);
}

/* What comes when there is room again does not get the buffer of what has waited for that. */
TEST(none_overtakes)
{
	const struct options options = { .rdm = true, .cq_size = 4 };
	struct fi_cq_tagged_entry entries[4], entry;
	int to[6];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	for (int i = 0; i < 6; i++)
		ASSERT_EQ(0, fi_trecv(p.b.ep, &to[i], 4, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
	for (int i = 0; i < 5; i++)
		ASSERT_EQ(0, TAKEN(&p, fi_tinject(p.a.ep, &i, 4, p.a.peer, 0)));
	EXPECT_EQ(true, counts(p.b.cntr[1], &p.a, 4));
	pair_progress(&p);
	ASSERT_EQ(0, TAKEN(&p, fi_tinject(p.a.ep, &(int){ 5 }, 4, p.a.peer, 0)));
	ASSERT_EQ(4, fi_cq_read(p.b.rx, entries, 4));
	for (int i = 4; i < 6; i++)
		ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(i, to[i]);
	pair_close(&p);
}

/* FI_FENCE, of an end point: not before all that is under way has ended. */
TEST(fence)
{
	const struct options options = { .rdm = true };
	uint64_t flags = FI_TRANSMIT | FI_FENCE;
	char from[8] = "fenced", to[8];
	struct iovec iov = { from, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_cq_tagged_entry entry;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	msg.addr = p.a.peer;
	ASSERT_EQ(0, TAKEN(&p, fi_tsendmsg(p.a.ep, &msg, FI_DELIVERY_COMPLETE)));
	ASSERT_EQ(0, fi_control(&p.a.ep->fid, FI_SETOPSFLAG, &flags));
	EXPECT_EQ(-FI_EAGAIN, fi_tsend(p.a.ep, from, 8, NULL, p.a.peer, 0, NULL));
	ASSERT_EQ(0, fi_trecv(p.b.ep, to, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
	ASSERT_EQ(1, next_entry(p.a.tx, &p.b, &entry));
	EXPECT_EQ(0, fi_tsend(p.a.ep, from, 8, NULL, p.a.peer, 0, NULL));
	pair_close(&p);
}

TEST(selective)
{
	const struct options options = { .rdm = true, .selective = true };
	struct fi_cq_tagged_entry entry;
	char from[4] = "abc", to[4] = "";
	struct iovec out = { from, 4 }, in = { to, 4 };
	struct fi_msg_tagged send = { .msg_iov = &out, .iov_count = 1, .context = &send };
	struct fi_msg_tagged recv = {
		.msg_iov = &in, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &recv
	};
	struct fi_context context;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	send.addr = p.a.peer;
	ASSERT_EQ(0, fi_trecv(p.b.ep, to, 4, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
	ASSERT_EQ(0, TAKEN(&p, fi_tsend(p.a.ep, from, 4, NULL, p.a.peer, 0, NULL)));
	EXPECT_EQ(true, counts(p.b.cntr[1], &p.a, 1));
	EXPECT_EQ(true, counts(p.a.cntr[0], &p.b, 1));
	EXPECT_EQ(true, none(p.b.rx, &p.a));
	EXPECT_EQ(true, none(p.a.tx, &p.b));
	EXPECT_EQ(0, memcmp(from, to, 4));
	ASSERT_EQ(0, fi_trecvmsg(p.b.ep, &recv, FI_COMPLETION));
	ASSERT_EQ(0, TAKEN(&p, fi_tsendmsg(p.a.ep, &send, FI_COMPLETION)));
	ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
	EXPECT_EQ(&recv, entry.op_context);
	ASSERT_EQ(1, next_entry(p.a.tx, &p.b, &entry));
	EXPECT_EQ(&send, entry.op_context);
	/* That a buffer of many is the application's again, and what was looked for, is told. */
	ASSERT_EQ(0, post_multi(&p.b, to, 4, NULL));
	ASSERT_EQ(0, fi_inject(p.a.ep, from, 4, p.a.peer));
	ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
	EXPECT_EQ(FI_RECV | FI_MSG | FI_MULTI_RECV, entry.flags);
	ASSERT_EQ(0, fi_tinject(p.a.ep, from, 4, p.a.peer, 0));
	EXPECT_EQ(true, none(p.b.rx, &p.a));
	ASSERT_EQ(0, look(&p.b, FI_PEEK, 0, &context, NULL, 0));
	ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
	pair_close(&p);
}

/* FI_MATCH_COMPLETE: not before there is a buffer, or nobody wants it. */
TEST(match_complete)
{
	const struct options options = { .rdm = true };
	struct fi_cq_tagged_entry entry;
	char from[4] = "abc", to[4] = "";
	struct iovec iov = { from, 4 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 3 };
	uint64_t flags = FI_TRANSMIT | FI_MATCH_COMPLETE;
	struct fi_context context;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	msg.addr = p.a.peer;
	ASSERT_EQ(0, fi_control(&p.a.ep->fid, FI_SETOPSFLAG, &flags));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, i ? TAKEN(&p, fi_tsend(p.a.ep, from, 4, NULL, msg.addr, 3, NULL)) :
				 TAKEN(&p, fi_tsendmsg(p.a.ep, &msg, FI_MATCH_COMPLETE)));
		EXPECT_EQ(true, none(p.a.tx, &p.b));
		ASSERT_EQ(0, i ? look(&p.b, FI_PEEK | FI_DISCARD, 3, &context, NULL, 0) :
				 fi_trecv(p.b.ep, to, 4, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
		ASSERT_EQ(1, next_entry(p.a.tx, &p.b, &entry));
		ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
	}
	pair_close(&p);
}

/* To itself, short and long. */
TEST(self)
{
	const struct options options = { .rdm = true };
	unsigned char *from = malloc(MAX), *to = malloc(MAX);
	struct fi_cq_tagged_entry entry;
	fi_addr_t me, source;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	me = learn(&p.a, &p.a);
	for (size_t n = 8; n <= MAX; n *= 16384) {
		fill(from, n, 6);
		ASSERT_EQ(0, fi_trecv(p.a.ep, to, n, NULL, me, 4, 0, NULL));
		ASSERT_EQ(0, TAKEN(&p, fi_tsend(p.a.ep, from, n, NULL, me, 4, NULL)));
		ASSERT_EQ(1, next_from(p.a.rx, &p.b, &entry, &source));
		EXPECT_EQ(me, source);
		EXPECT_EQ(true, filled(to, n, 6));
		ASSERT_EQ(1, next_entry(p.a.tx, &p.b, &entry));
	}
	pair_close(&p);
	free(from);
	free(to);
}

/* ---- names ---------------------------------------------------------------------------- */

TEST(names)
{
	const struct options options = { .rdm = true };
	struct sockaddr_in name = { 0 }, other;
	struct fid_ep *ep;
	struct pair p;
	size_t length = 4;

	ASSERT_EQ(0, pair_open(&p, &options));
	EXPECT_EQ(-FI_ETOOSMALL, fi_getname(&p.a.ep->fid, &name, &length));
	EXPECT_EQ(sizeof(name), length);
	ASSERT_EQ(0, fi_getname(&p.a.ep->fid, &name, &length));
	EXPECT_NE(0, name.sin_port);
	EXPECT_EQ(-FI_EOPBADSTATE, fi_setname(&p.a.ep->fid, &name, length));
	ASSERT_EQ(0, fi_endpoint(p.a.domain, p.a.info, &ep, NULL));
	EXPECT_EQ(-FI_ENOAV, fi_enable(ep));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_tinject(ep, "x", 1, 0, 0));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_trecv(ep, &other, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
	ASSERT_EQ(0, fi_ep_bind(ep, &p.a.av->fid, 0));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(ep));
	ASSERT_EQ(0, fi_ep_bind(ep, &p.a.tx->fid, FI_TRANSMIT | FI_RECV));
	ASSERT_EQ(0, fi_setname(&ep->fid, &name, length));
	EXPECT_EQ(-FI_EADDRINUSE, fi_enable(ep));
	name.sin_port = 0;
	ASSERT_EQ(0, fi_setname(&ep->fid, &name, length));
	ASSERT_EQ(0, fi_enable(ep));
	EXPECT_EQ(-FI_EBUSY, fi_close(&p.a.av->fid));
	ASSERT_EQ(0, fi_close(&ep->fid));
	pair_close(&p);
}

TEST(vector)
{
	const struct options options = { .rdm = true, .av = FI_AV_TABLE };
	struct sockaddr_in at[4] = { { 0 } }, back;
	size_t length = sizeof(back);
	fi_addr_t addrs[4];
	char text[64];
	int errors[4];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	for (int i = 0; i < 4; i++)
		at[i] = (struct sockaddr_in){
			.sin_family = AF_INET, .sin_port = htons((uint16_t)(5000 + i)),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		};
	/* Number 0 is the peer's. What nobody can have has none; who cannot be reached has. */
	at[1].sin_port = 0;
	at[2].sin_addr.s_addr = htonl(INADDR_ANY);
	EXPECT_EQ(-FI_EINVAL, fi_av_insert(p.a.av, NULL, 1, addrs, 0, NULL));
	EXPECT_EQ(2, fi_av_insert(p.a.av, at, 4, addrs, FI_SYNC_ERR, errors));
	EXPECT_EQ(1, addrs[0]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, addrs[1]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, addrs[2]);
	EXPECT_EQ(2, addrs[3]);
	EXPECT_EQ(0, errors[0]);
	EXPECT_EQ(FI_EINVAL, errors[1]);
	EXPECT_EQ(FI_EADDRNOTAVAIL, errors[2]);
	EXPECT_EQ(0, errors[3]);
	at[2].sin_addr.s_addr = htonl(0xc6336401);	/* 198.51.100.1 */
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(1, fi_av_insert(p.a.av, &at[2], 1, addrs + 1, 0, NULL));
		EXPECT_EQ(3, addrs[1]);
		EXPECT_EQ(-FI_EHOSTUNREACH, fi_tinject(p.a.ep, "x", 1, addrs[1], 0));
		EXPECT_EQ(0, fi_trecv(p.a.ep, text, 1, NULL, addrs[1], 0, 0, &length));
		EXPECT_EQ(0, fi_cancel(&p.a.ep->fid, &length));
		ASSERT_EQ(0, fi_av_remove(p.a.av, addrs + 1, 1, 0));
	}
	ASSERT_EQ(0, fi_av_lookup(p.a.av, 2, &back, &length));
	EXPECT_EQ(0, memcmp(&at[3], &back, sizeof(back)));
	length = 4;
	ASSERT_EQ(0, fi_av_lookup(p.a.av, 2, &back, &length));
	EXPECT_EQ(sizeof(back), length);
	EXPECT_EQ(-FI_EINVAL, fi_av_lookup(p.a.av, 3, &back, &length));
	ASSERT_EQ(0, fi_av_remove(p.a.av, addrs, 1, 0));
	EXPECT_EQ(-FI_EINVAL, fi_av_lookup(p.a.av, 1, &back, &length));
	EXPECT_EQ(-FI_EINVAL, fi_tinject(p.a.ep, "x", 1, 1, 0));
	/* The lowest number that is free. */
	EXPECT_EQ(1, fi_av_insertsvc(p.a.av, "127.0.0.1", "5009", addrs, 0, NULL));
	EXPECT_EQ(1, addrs[0]);
	EXPECT_EQ(4, fi_av_insertsym(p.a.av, "127.0.0.1", 2, "6000", 2, addrs, 0, NULL));
	EXPECT_EQ(3, addrs[0]);
	length = sizeof(back);
	ASSERT_EQ(0, fi_av_lookup(p.a.av, addrs[3], &back, &length));
	EXPECT_EQ(htonl(INADDR_LOOPBACK + 1), back.sin_addr.s_addr);
	EXPECT_EQ(6001, ntohs(back.sin_port));
	length = sizeof(text);
	EXPECT_STREQ("fi_sockaddr_in://127.0.0.2:6001",
		     fi_av_straddr(p.a.av, &back, text, &length));
	EXPECT_EQ(strlen(text) + 1, length);
	pair_close(&p);
}

/* FI_EVENT: what has become of an insertion is read from an event queue. */
TEST(vector_events)
{
	const struct options options = { .rdm = true };
	struct fi_av_attr attr = { .type = FI_AV_MAP, .flags = FI_EVENT };
	struct sockaddr_in at[2] = { { 0 } };
	struct fi_eq_err_entry error = { 0 };
	struct fi_eq_entry entry;
	struct fid_av *av;
	fi_addr_t addrs[2];
	uint32_t event;
	struct pair p;

	at[0] = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = 1, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_av_open(p.a.domain, &attr, &av, NULL));
	EXPECT_EQ(-FI_ENOEQ, fi_av_insert(av, at, 2, addrs, 0, NULL));
	ASSERT_EQ(0, fi_av_bind(av, &p.a.eq->fid, 0));
	EXPECT_EQ(0, fi_av_insert(av, at, 2, addrs, 0, &attr));
	EXPECT_EQ(-FI_EAVAIL, fi_eq_read(p.a.eq, &event, &entry, sizeof(entry), 0));
	ASSERT_EQ(sizeof(error), fi_eq_readerr(p.a.eq, &error, 0));
	EXPECT_EQ(FI_EINVAL, error.err);
	EXPECT_EQ(1, error.data);
	EXPECT_EQ(&attr, error.context);
	ASSERT_EQ(sizeof(entry), fi_eq_read(p.a.eq, &event, &entry, sizeof(entry), 0));
	EXPECT_EQ(FI_AV_COMPLETE, event);
	EXPECT_EQ(1, entry.data);
	EXPECT_EQ(&attr, entry.context);
	EXPECT_EQ(&av->fid, entry.fid);
	ASSERT_EQ(0, fi_close(&av->fid));
	pair_close(&p);
}

static ssize_t send_plain(struct pair *p, int how, const void *from, size_t length, void *context)
{
	switch (how) {
	case 0:
		return fi_send(p->a.ep, from, length, NULL, p->a.peer, context);
	case 1:
		return fi_senddata(p->a.ep, from, length, NULL, 77, p->a.peer, context);
	case 2:
		return fi_inject(p->a.ep, from, length, p->a.peer);
	default:
		return fi_injectdata(p->a.ep, from, length, 77, p->a.peer);
	}
}

/*
 * Messages without tags, of lengths around those of which each part of the way has one, between
 * those with tags: each call says what it says of long ones, at both ends.
 */
TEST(short_plain)
{
	static const size_t lengths[] = {
		0, 1, 7, 8, 9, 16, 17, 64, 100, 104, 105, 128, 1000, 20000
	};
	const struct options options = { .rdm = true };
	static char from[20000], to[20001], other[8];
	struct fi_cq_tagged_entry entry;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	fill(from, sizeof(from), 5);
	for (size_t i = 0; i < 4 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t length = lengths[i / 4];
		bool data = i % 4 == 1 || i % 4 == 3;

		if (i % 4 >= 2 && length > p.a.info->tx_attr->inject_size)
			continue;
		memset(to, 0, sizeof(to));
		/* A buffer with a tag takes none without, and the other way round. */
		ASSERT_EQ(0, fi_trecv(p.b.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, ~0ULL, other));
		ASSERT_EQ(0, fi_recv(p.b.ep, to, sizeof(to), NULL, p.b.peer, to));
		ASSERT_EQ(0, TAKEN(&p, send_plain(&p, (int)(i % 4), from, length, from)));
		ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
		EXPECT_EQ(&to[0], entry.op_context);
		EXPECT_EQ(FI_RECV | FI_MSG | (data ? FI_REMOTE_CQ_DATA : 0), entry.flags);
		EXPECT_EQ(length, entry.len);
		EXPECT_EQ(data ? 77 : 0, entry.data);
		EXPECT_EQ(true, filled(to, length, 5));
		EXPECT_EQ(0, to[length]);
		if (i % 4 < 2) {
			ASSERT_EQ(1, next_entry(p.a.tx, &p.b, &entry));
			EXPECT_EQ(&from[0], entry.op_context);
			EXPECT_EQ(FI_SEND | FI_MSG, entry.flags);
		}
		EXPECT_EQ(true, none(p.a.tx, &p.b));
		ASSERT_EQ(0, TAKEN(&p, fi_tinject(p.a.ep, "tagged", 7, p.a.peer, 9)));
		ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
		EXPECT_EQ(&other[0], entry.op_context);
		EXPECT_EQ(FI_RECV | FI_TAGGED, entry.flags);
	}
	pair_close(&p);
}

/* What is too long to be taken along is so before anybody has been asked for a link. */
TEST(too_long_to_inject)
{
	const struct options options = { .rdm = true };
	const size_t length = 16385;
	static char from[16385];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(length - 1, p.a.info->tx_attr->inject_size);
	EXPECT_EQ(-FI_EMSGSIZE, fi_inject(p.a.ep, from, length, p.a.peer));
	EXPECT_EQ(-FI_EMSGSIZE, fi_injectdata(p.a.ep, from, length, 1, p.a.peer));
	EXPECT_EQ(-FI_EMSGSIZE, fi_tinject(p.a.ep, from, length, p.a.peer, 1));
	EXPECT_EQ(-FI_EMSGSIZE, fi_inject_write(p.a.ep, from, length, p.a.peer, 0, 1));
	EXPECT_EQ(-FI_EAGAIN, fi_inject(p.a.ep, from, length - 1, p.a.peer));
	pair_close(&p);
}

/* What comes from a stranger: which of these ways it takes. */
struct strange {
	size_t length;
	bool early;		/* before there is a buffer */
	bool tagged;
	bool own_buffer;	/* for the address */
};

static ssize_t post_for_stranger(struct pair *p, const struct strange *how, void *to, size_t length)
{
	return how->tagged ? fi_trecv(p->b.ep, to, length, NULL, FI_ADDR_UNSPEC, 9, 0, to) :
			     fi_recv(p->b.ep, to, length, NULL, FI_ADDR_UNSPEC, to);
}

/* One message from a, whom b does not know any more. */
static void from_stranger(struct __test_metadata *_metadata, struct pair *p,
			  const struct strange *how)
{
	static char from[100000], to[100000];
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	struct sockaddr_in address, name;
	size_t length = sizeof(name);
	fi_addr_t source = 0;

	fill(from, how->length, 3);
	ASSERT_EQ(0, fi_getname(&p->a.ep->fid, &name, &length));
	ASSERT_EQ(0, fi_av_remove(p->b.av, &p->b.peer, 1, 0));
	if (!how->early)
		ASSERT_EQ(0, post_for_stranger(p, how, to, sizeof(to)));
	ASSERT_EQ(0, TAKEN(p, how->tagged ?
			   fi_tsend(p->a.ep, from, how->length, NULL, p->a.peer, 9, NULL) :
			   fi_send(p->a.ep, from, how->length, NULL, p->a.peer, NULL)));
	/* Until it is there, which nothing tells. */
	for (int n = 0; how->early && n < 100; n++)
		pair_progress(p);
	if (how->early)
		ASSERT_EQ(0, post_for_stranger(p, how, to, sizeof(to)));
	ASSERT_EQ(-FI_EAVAIL, next_entry(p->b.rx, &p->a, &entry));
	if (how->own_buffer) {
		error.err_data = &address;
		error.err_data_size = sizeof(address);
	}
	ASSERT_EQ(1, fi_cq_readerr(p->b.rx, &error, 0));
	EXPECT_EQ(FI_EADDRNOTAVAIL, error.err);
	EXPECT_EQ(&to[0], error.op_context);
	EXPECT_EQ(FI_RECV | (how->tagged ? FI_TAGGED : FI_MSG), error.flags);
	EXPECT_EQ(how->length, error.len);
	EXPECT_EQ(how->tagged ? 9 : 0, error.tag);
	EXPECT_EQ(0, error.olen);
	EXPECT_EQ(true, filled(to, how->length, 3));
	ASSERT_EQ(sizeof(address), error.err_data_size);
	EXPECT_EQ(name.sin_port, ((struct sockaddr_in *)error.err_data)->sin_port);
	/* As it is, it goes into the vector, and the next one is from there. */
	ASSERT_EQ(1, fi_av_insert(p->b.av, error.err_data, 1, &p->b.peer, 0, NULL));
	ASSERT_EQ(0, fi_recv(p->b.ep, to, 8, NULL, p->b.peer, to));
	ASSERT_EQ(0, TAKEN(p, fi_inject(p->a.ep, "again", 6, p->a.peer)));
	while (fi_cq_readfrom(p->b.rx, &entry, 1, &source) == -FI_EAGAIN)
		pair_progress(p);
	EXPECT_EQ(p->b.peer, source);
	EXPECT_STREQ("again", to);
}

/* FI_SOURCE_ERR: a stranger's message is told as an error, with the address. */
TEST(strangers)
{
	const struct options options = { .rdm = true, .caps = FI_SOURCE_ERR };
	uint64_t before;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	EXPECT_NE(0, p.b.info->rx_attr->caps & FI_SOURCE_ERR);
	EXPECT_EQ(sizeof(struct sockaddr_in), p.b.info->domain_attr->max_err_data);
	for (int i = 0; i < 16; i++) {
		const struct strange how = {
			.length = i & 1 ? 100000 : 8,
			.early = i & 2,
			.tagged = i & 4,
			.own_buffer = i & 8,
		};

		before = fi_cntr_read(p.b.cntr[1]);
		from_stranger(_metadata, &p, &how);
		/* It was received: no counter of errors says otherwise. */
		EXPECT_EQ(true, counts(p.b.cntr[1], &p.a, before + 2));
		EXPECT_EQ(0, fi_cntr_readerr(p.b.cntr[1]));
	}
	pair_close(&p);
}

/* Without it, they are nobody's. */
TEST(strangers_are_nobody)
{
	const struct options options = { .rdm = true };
	static char from[100000], to[100000];
	struct fi_cq_tagged_entry entry;
	fi_addr_t source;
	struct pair p;
	ssize_t got;

	ASSERT_EQ(0, pair_open(&p, &options));
	EXPECT_EQ(0, p.b.info->caps & FI_SOURCE_ERR);
	ASSERT_EQ(0, fi_av_remove(p.b.av, &p.b.peer, 1, 0));
	/* In the short way, and the long one. */
	for (size_t length = 8; length <= sizeof(from); length += sizeof(from) - 8) {
		ASSERT_EQ(0, fi_recv(p.b.ep, to, length, NULL, FI_ADDR_UNSPEC, to));
		ASSERT_EQ(0, TAKEN(&p, fi_send(p.a.ep, from, length, NULL, p.a.peer, NULL)));
		source = 0;
		while ((got = fi_cq_readfrom(p.b.rx, &entry, 1, &source)) == -FI_EAGAIN)
			pair_progress(&p);
		EXPECT_EQ(1, got);
		EXPECT_EQ(FI_ADDR_NOTAVAIL, source);
	}
	pair_close(&p);
}

TEST_HARNESS_MAIN
