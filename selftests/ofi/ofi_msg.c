// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: messages, fi_msg(3). */
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "pair.h"

#define MAX	(1 << 20)

FIXTURE(msg) {
	struct pair p;
	struct options options;
	unsigned char *from;
	unsigned char *to;
};

FIXTURE_VARIANT(msg) {
	bool no_cma;
	enum fi_progress progress;
	enum fi_threading threading;
};

FIXTURE_VARIANT_ADD(msg, cma) {
	.no_cma = false,
};

FIXTURE_VARIANT_ADD(msg, pieces) {
	.no_cma = true,
};

FIXTURE_VARIANT_ADD(msg, auto_progress) {
	.progress = FI_PROGRESS_AUTO,
};

FIXTURE_VARIANT_ADD(msg, thread_domain) {
	.threading = FI_THREAD_DOMAIN,
};

FIXTURE_SETUP(msg)
{
	self->options = (struct options){
		.no_cma = variant->no_cma,
		.progress = variant->progress,
		.threading = variant->threading,
	};
	self->from = malloc(MAX);
	self->to = malloc(MAX);
	ASSERT_EQ(0, pair_open(&self->p, &self->options));
}

FIXTURE_TEARDOWN(msg)
{
	pair_close(&self->p);
	free(self->from);
	free(self->to);
}

/* Every length arrives whole, in its buffer, and is completed as the man page says. */
TEST_F(msg, lengths)
{
	static const size_t lengths[] = {
		0, 1, 8, 4095, 4096, 16384, 16640, 16641, 57344, 57345, 65536, MAX
	};
	struct fi_cq_tagged_entry entry;
	int context[2];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i];

		fill(self->from, n, (unsigned int)i);
		memset(self->to, 0xee, MAX);
		ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to, n, NULL, 0, &context[0]));
		ASSERT_EQ(0, fi_send(self->p.a.ep, self->from, n, NULL, 0, &context[1]));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry)) {
			TH_LOG("length %zu", n);
		}
		EXPECT_EQ(&context[0], entry.op_context);
		EXPECT_EQ(n, entry.len);
		EXPECT_EQ(FI_RECV | FI_MSG, entry.flags);
		EXPECT_EQ(true, filled(self->to, n, (unsigned int)i));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		EXPECT_EQ(&context[1], entry.op_context);
		EXPECT_EQ(FI_SEND | FI_MSG, entry.flags);
	}
	EXPECT_EQ(sizeof(lengths) / sizeof(lengths[0]), fi_cntr_read(self->p.a.cntr[0]));
	EXPECT_EQ(sizeof(lengths) / sizeof(lengths[0]), fi_cntr_read(self->p.b.cntr[1]));
}

/* Gathered and scattered, with data beside the message. */
TEST_F(msg, pieces_and_data)
{
	struct fi_cq_tagged_entry entry;

	for (size_t n = 30; n < MAX; n *= 33) {
		struct iovec out[3] = { { self->from, n / 3 }, { self->from + n / 3, 0 },
					{ self->from + n / 3, n - n / 3 } };
		struct iovec in[2] = { { self->to + 100, n / 2 },
				       { self->to + 100 + n / 2, n - n / 2 } };
		struct fi_msg msg = { .msg_iov = out, .iov_count = 3, .data = 0x123456789abcdef };

		fill(self->from, n, 3);
		memset(self->to, 0, MAX);
		ASSERT_EQ(0, fi_recvv(self->p.b.ep, in, NULL, 2, 0, NULL));
		ASSERT_EQ(0, fi_sendmsg(self->p.a.ep, &msg, FI_REMOTE_CQ_DATA));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		EXPECT_EQ(FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA, entry.flags);
		EXPECT_EQ(msg.data, entry.data);
		EXPECT_EQ(n, entry.len);
		EXPECT_EQ(true, filled(self->to + 100, n, 3));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	}
	EXPECT_EQ(-FI_EINVAL, fi_sendv(self->p.a.ep, (struct iovec[5]){ 0 }, NULL, 5, 0, NULL));
}

/* No completion of ours; the buffer is free at once. */
TEST_F(msg, inject)
{
	struct fi_cq_tagged_entry entry;

	fill(self->from, 8, 1);
	ASSERT_EQ(0, fi_inject(self->p.a.ep, self->from, 8, 0));
	fill(self->from, 8, 2);
	ASSERT_EQ(0, fi_injectdata(self->p.a.ep, self->from, 8, 77, 0));
	memset(self->from, 0, 8);
	for (unsigned int i = 1; i <= 2; i++) {
		ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to, 8, NULL, 0, NULL));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		EXPECT_EQ(true, filled(self->to, 8, i));
	}
	EXPECT_EQ(77, entry.data);
	EXPECT_EQ(true, counts(self->p.a.cntr[0], &self->p.b, 2));
	EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
	EXPECT_EQ(-FI_EMSGSIZE, fi_inject(self->p.a.ep, self->from,
					  self->p.a.info->tx_attr->inject_size + 1, 0));
	EXPECT_EQ(0, fi_inject(self->p.a.ep, self->from, self->p.a.info->tx_attr->inject_size, 0));
}

/* What comes before its buffer waits, in order, and holds up neither regions nor answers. */
TEST_F(msg, unexpected)
{
	struct fi_cq_tagged_entry entry;

	for (unsigned int i = 0; i < 200; i++) {
		ssize_t err;

		do {
			fill(self->from, 40, i);
			err = fi_send(self->p.a.ep, self->from, 40, NULL, 0, NULL);
			if (err == -FI_EAGAIN) {
				ASSERT_LT(0, i);
				break;
			}
			ASSERT_EQ(0, err);
		} while (err);
		if (err)
			break;
		if (fi_cq_read(self->p.a.tx, &entry, 1) < 0)
			(void)fi_cntr_read(self->p.b.cntr[0]);
	}
	for (unsigned int i = 0; i < fi_cntr_read(self->p.a.cntr[0]); i++) {
		ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to, 40, NULL, 0, NULL));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry)) {
			TH_LOG("message %u", i);
		}
		EXPECT_EQ(true, filled(self->to, 40, i));
	}
	EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
}

/* A message that is too long for its buffer: FI_ETRUNC, with how much is missing. */
TEST_F(msg, truncated)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	int context;

	for (size_t n = 100; n <= 100000; n *= 1000) {
		fill(self->from, n, 9);
		memset(self->to, 0, MAX);
		ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to, n - 30, NULL, 0, &context));
		ASSERT_EQ(0, fi_send(self->p.a.ep, self->from, n, NULL, 0, NULL));
		ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
		EXPECT_EQ(FI_ETRUNC, error.err);
		EXPECT_EQ(30, error.olen);
		EXPECT_EQ(n - 30, error.len);
		EXPECT_EQ(&context, error.op_context);
		EXPECT_EQ(true, filled(self->to, n - 30, 9));
		EXPECT_EQ(0, self->to[n - 30]);
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	}
	EXPECT_EQ(0, fi_cntr_read(self->p.b.cntr[1]));
	EXPECT_EQ(2, fi_cntr_readerr(self->p.b.cntr[1]));
}

TEST_F(msg, cancel)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	int context[3];

	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to + i, 1, NULL, 0, &context[i]));
	ASSERT_EQ(0, fi_cancel(&self->p.b.ep->fid, &context[1]));
	EXPECT_EQ(-FI_ENOENT, fi_cancel(&self->p.b.ep->fid, &context[1]));
	ASSERT_EQ(1, next_error(self->p.b.rx, &self->p.a, &error));
	EXPECT_EQ(FI_ECANCELED, error.err);
	EXPECT_EQ(&context[1], error.op_context);
	ASSERT_EQ(0, fi_inject(self->p.a.ep, "x", 1, 0));
	ASSERT_EQ(0, fi_inject(self->p.a.ep, "y", 1, 0));
	for (int i = 0; i < 3; i += 2) {
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
		EXPECT_EQ(&context[i], entry.op_context);
	}
	EXPECT_EQ('x', self->to[0]);
	EXPECT_EQ('y', self->to[2]);
}

/* Not complete before it is in the buffer. */
TEST_F(msg, delivery_complete)
{
	struct fi_cq_tagged_entry entry;

	for (size_t n = 8; n < MAX; n *= 5000) {
		struct iovec iov = { self->from, n };
		struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };

		fill(self->from, n, 5);
		ASSERT_EQ(0, fi_sendmsg(self->p.a.ep, &msg, FI_DELIVERY_COMPLETE));
		EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
		ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to, n, NULL, 0, NULL));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		EXPECT_EQ(true, filled(self->to, n, 5));
		ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	}
}

/* Many both ways at once, longer than all buffers of a channel. */
TEST_F(msg, both_ways)
{
	struct end *ends[2] = { &self->p.a, &self->p.b };
	struct fi_cq_tagged_entry entry;
	unsigned int sent[2] = { 0 }, done[2] = { 0 }, received[2] = { 0 }, posted[2] = { 0 };
	size_t bytes[2] = { 0 };
	int64_t until = now_ms() + patience_ms();

	while (received[0] + received[1] < 400 || done[0] + done[1] < 400) {
		ASSERT_LT(now_ms(), until);
		for (int i = 0; i < 2; i++) {
			size_t n = sent[i] % 3 ? 15000 : 70000;

			if (posted[i] < 200 && posted[i] - received[i] < 32 &&
			    !fi_recv(ends[i]->ep, self->to + i * 70000, 70000, NULL, 0, NULL))
				posted[i]++;
			if (sent[i] < 200 && !fi_send(ends[i]->ep, self->from, n, NULL, 0, NULL))
				sent[i]++;
			if (fi_cq_read(ends[i]->rx, &entry, 1) == 1) {
				received[i]++;
				bytes[i] += entry.len;
			}
			if (fi_cq_read(ends[i]->tx, &entry, 1) == 1)
				done[i]++;
		}
	}
	/* Long ones may be completed later than short ones that came after them. */
	EXPECT_EQ(67 * 70000 + 133 * 15000, bytes[0]);
	EXPECT_EQ(bytes[0], bytes[1]);
}

/* FI_FENCE: not before all that is under way has ended. */
TEST_F(msg, fence)
{
	struct iovec iov = { self->from, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_cq_tagged_entry entry;

	ASSERT_EQ(0, fi_sendmsg(self->p.a.ep, &msg, FI_DELIVERY_COMPLETE));
	EXPECT_EQ(-FI_EAGAIN, fi_sendmsg(self->p.a.ep, &msg, FI_FENCE));
	ASSERT_EQ(0, fi_recv(self->p.b.ep, self->to, 8, NULL, 0, NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(0, fi_sendmsg(self->p.a.ep, &msg, FI_FENCE));
}

TEST(selective)
{
	const struct options options = { .selective = true };
	struct fi_cq_tagged_entry entry;
	char from[4] = "abc", to[4];
	struct iovec out = { from, 4 }, in = { to, 4 };
	struct fi_msg send = { .msg_iov = &out, .iov_count = 1, .context = &send };
	struct fi_msg recv = { .msg_iov = &in, .iov_count = 1, .context = &recv };
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_recv(p.b.ep, to, 4, NULL, 0, NULL));
	ASSERT_EQ(0, fi_send(p.a.ep, from, 4, NULL, 0, NULL));
	EXPECT_EQ(true, counts(p.b.cntr[1], &p.a, 1));
	EXPECT_EQ(true, counts(p.a.cntr[0], &p.b, 1));
	EXPECT_EQ(true, none(p.b.rx, &p.a));
	EXPECT_EQ(true, none(p.a.tx, &p.b));
	EXPECT_EQ(0, memcmp(from, to, 4));
	ASSERT_EQ(0, fi_recvmsg(p.b.ep, &recv, FI_COMPLETION));
	ASSERT_EQ(0, fi_sendmsg(p.a.ep, &send, FI_COMPLETION));
	ASSERT_EQ(1, next_entry(p.b.rx, &p.a, &entry));
	EXPECT_EQ(&recv, entry.op_context);
	ASSERT_EQ(1, next_entry(p.a.tx, &p.b, &entry));
	EXPECT_EQ(&send, entry.op_context);
	EXPECT_EQ(2, fi_cntr_read(p.b.cntr[1]));
	/* Errors are told in any case. */
	ASSERT_EQ(0, fi_recv(p.b.ep, to, 4, NULL, 0, to));
	ASSERT_EQ(0, fi_cancel(&p.b.ep->fid, to));
	EXPECT_EQ(-FI_EAVAIL, fi_cq_read(p.b.rx, &entry, 1));
	pair_close(&p);
}

TEST_HARNESS_MAIN
