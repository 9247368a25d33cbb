// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: aliases of end points, fi_ep_alias() of fi_endpoint(3). */
#include <string.h>

#include <rdma/fi_tagged.h>

#include "kselftest_harness.h"
#include "pair.h"

FIXTURE(self)
{
	struct pair pair;
	struct fid_ep *alias;	/* of a's end point, most often */
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
	const struct options options = { .rdm = variant->rdm, .selective = true };

	ASSERT_EQ(0, pair_open(&self->pair, &options));
}

FIXTURE_TEARDOWN(self)
{
	if (self->alias)
		EXPECT_EQ(0, fi_close(&self->alias->fid));
	pair_close(&self->pair);
}

static uint64_t flags_of(struct fid_ep *ep, uint64_t which)
{
	uint64_t flags = which;

	return fi_control(&ep->fid, FI_GETOPSFLAG, &flags) ? ~0ULL : flags;
}

/* What is sent by it is told of, unlike what is sent by the end point itself. */
TEST_F(self, tells_of_what_is_sent)
{
	struct pair *p = &self->pair;
	struct fi_cq_tagged_entry entry;
	char to[8];

	ASSERT_EQ(0, fi_ep_alias(p->a.ep, &self->alias, FI_TRANSMIT | FI_COMPLETION));
	EXPECT_EQ(FI_COMPLETION, flags_of(self->alias, FI_TRANSMIT));
	EXPECT_EQ(0, flags_of(p->a.ep, FI_TRANSMIT));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, fi_recv(p->b.ep, to + i, 1, NULL, FI_ADDR_UNSPEC, NULL));
	ASSERT_EQ(0, TAKEN(p, fi_send(p->a.ep, "x", 1, NULL, p->a.peer, "itself")));
	ASSERT_EQ(0, TAKEN(p, fi_send(self->alias, "y", 1, NULL, p->a.peer, to)));
	ASSERT_EQ(1, next_entry(p->a.tx, &p->b, &entry));
	EXPECT_EQ(&to[0], entry.op_context);
	EXPECT_EQ(true, none(p->a.tx, &p->b));
	/* Both were sent, and counted, in their order. */
	EXPECT_EQ(true, counts(p->a.cntr[0], &p->b, 2));
	EXPECT_EQ(true, counts(p->b.cntr[1], &p->a, 2));
	EXPECT_EQ('x', to[0]);
	EXPECT_EQ('y', to[1]);
}

TEST_F(self, tells_of_what_is_received)
{
	struct pair *p = &self->pair;
	struct fi_cq_tagged_entry entry;
	char to[2];

	ASSERT_EQ(0, fi_ep_alias(p->b.ep, &self->alias, FI_RECV | FI_COMPLETION));
	EXPECT_EQ(0, flags_of(self->alias, FI_TRANSMIT));
	ASSERT_EQ(0, fi_recv(p->b.ep, to, 1, NULL, FI_ADDR_UNSPEC, "itself"));
	ASSERT_EQ(0, fi_recv(self->alias, to + 1, 1, NULL, FI_ADDR_UNSPEC, to));
	ASSERT_EQ(0, TAKEN(p, fi_inject(p->a.ep, "x", 1, p->a.peer)));
	ASSERT_EQ(0, TAKEN(p, fi_inject(p->a.ep, "y", 1, p->a.peer)));
	ASSERT_EQ(1, next_entry(p->b.rx, &p->a, &entry));
	EXPECT_EQ(&to[0], entry.op_context);
	EXPECT_EQ('y', to[1]);
	EXPECT_EQ(true, none(p->b.rx, &p->a));
	/* What was posted by either can be called back by either. */
	ASSERT_EQ(0, fi_recv(p->b.ep, to, 1, NULL, FI_ADDR_UNSPEC, to));
	EXPECT_EQ(0, fi_cancel(&self->alias->fid, to));
	ASSERT_EQ(0, fi_recv(self->alias, to, 1, NULL, FI_ADDR_UNSPEC, to));
	EXPECT_EQ(0, fi_cancel(&p->b.ep->fid, to));
}

/* A level of completion of its own, and remote writes. */
TEST_F(self, waits_for_delivery)
{
	struct pair *p = &self->pair;
	struct fi_cq_tagged_entry entry;
	char to[8] = "", there[8] = "";
	struct fid_mr *mr;

	ASSERT_EQ(0, fi_ep_alias(p->a.ep, &self->alias,
				 FI_TRANSMIT | FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ASSERT_EQ(0, fi_mr_reg(p->b.domain, there, 8, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	ASSERT_EQ(0, TAKEN(p, fi_write(self->alias, "written", 8, NULL, p->a.peer, 0,
				       fi_mr_key(mr), there)));
	ASSERT_EQ(1, next_entry(p->a.tx, &p->b, &entry));
	EXPECT_EQ(&there[0], entry.op_context);
	EXPECT_STREQ("written", there);
	/* Nobody has posted a buffer for it. */
	ASSERT_EQ(0, TAKEN(p, fi_send(self->alias, "sent", 5, NULL, p->a.peer, to)));
	EXPECT_EQ(true, none(p->a.tx, &p->b));
	ASSERT_EQ(0, fi_recv(p->b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	ASSERT_EQ(1, next_entry(p->a.tx, &p->b, &entry));
	EXPECT_STREQ("sent", to);
	EXPECT_EQ(0, fi_close(&mr->fid));
}

TEST_F(self, tagged)
{
	struct pair *p = &self->pair;
	struct fi_cq_tagged_entry entry;
	struct fid_ep *receiver;
	char to[8] = "";

	if (!variant->rdm)
		SKIP(return, "connections have no tags");
	ASSERT_EQ(0, fi_ep_alias(p->a.ep, &self->alias, FI_TRANSMIT | FI_COMPLETION));
	ASSERT_EQ(0, fi_ep_alias(p->b.ep, &receiver, FI_RECV | FI_COMPLETION));
	ASSERT_EQ(0, fi_trecv(receiver, to, 8, NULL, FI_ADDR_UNSPEC, 7, 0, to));
	ASSERT_EQ(0, TAKEN(p, fi_tsend(self->alias, "tagged", 7, NULL, p->a.peer, 7, to)));
	ASSERT_EQ(1, next_entry(p->b.rx, &p->a, &entry));
	EXPECT_EQ(7, entry.tag);
	EXPECT_STREQ("tagged", to);
	ASSERT_EQ(1, next_entry(p->a.tx, &p->b, &entry));
	EXPECT_EQ(FI_SEND | FI_TAGGED, entry.flags);
	EXPECT_EQ(0, fi_close(&receiver->fid));
}

/* It differs by its flags only; and the end point is not closed before it. */
TEST_F(self, is_the_end_point)
{
	struct pair *p = &self->pair;
	char name[64], other[64];
	size_t length = sizeof(name), other_length = sizeof(other);
	struct fid_ep *second;
	uint64_t flags;

	EXPECT_EQ(-FI_EINVAL, fi_ep_alias(p->a.ep, &self->alias, 0));
	EXPECT_EQ(-FI_EINVAL, fi_ep_alias(p->a.ep, &self->alias, FI_COMPLETION));
	EXPECT_EQ(-FI_EINVAL, fi_ep_alias(p->a.ep, &self->alias, FI_TRANSMIT | FI_RECV));
	ASSERT_EQ(0, fi_ep_alias(p->a.ep, &self->alias, FI_TRANSMIT | FI_COMPLETION));
	EXPECT_EQ(p->a.ep->fid.context, self->alias->fid.context);
	EXPECT_EQ(FI_CLASS_EP, self->alias->fid.fclass);
	ASSERT_EQ(0, fi_getname(&p->a.ep->fid, name, &length));
	ASSERT_EQ(0, fi_getname(&self->alias->fid, other, &other_length));
	EXPECT_EQ(length, other_length);
	EXPECT_EQ(0, memcmp(name, other, length));
	EXPECT_EQ(0, fi_enable(self->alias));
	/* Of an alias: with its flags. */
	ASSERT_EQ(0, fi_ep_alias(self->alias, &second, FI_RECV));
	EXPECT_EQ(FI_COMPLETION, flags_of(second, FI_TRANSMIT));
	flags = FI_TRANSMIT | FI_INJECT_COMPLETE;
	EXPECT_EQ(0, fi_control(&second->fid, FI_SETOPSFLAG, &flags));
	EXPECT_EQ(FI_INJECT_COMPLETE, flags_of(second, FI_TRANSMIT));
	EXPECT_EQ(FI_COMPLETION, flags_of(self->alias, FI_TRANSMIT));
	EXPECT_EQ(-FI_EBUSY, fi_close(&p->a.ep->fid));
	EXPECT_EQ(0, fi_close(&self->alias->fid));
	self->alias = second;
	EXPECT_EQ(-FI_EBUSY, fi_close(&p->a.ep->fid));
}

TEST_HARNESS_MAIN
