// SPDX-License-Identifier: GPL-2.0-only
/*
 * The libfabric provider: what it does not have, or a program may not ask, and the error that says
 * so.
 */
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>

#include "kselftest_harness.h"
#include "pair.h"

/* Of two fabrics, each with a domain; the second one's things are for none of the first. */
FIXTURE(absent) {
	struct options options;
	struct fi_info *info;
	struct end end;
	struct end other;
	struct fid_ep *ep;		/* of @end, not enabled */
	char buf[64];
	struct iovec iov;
};

FIXTURE_VARIANT(absent) {
	bool rdm;
};

FIXTURE_VARIANT_ADD(absent, msg) {
	.rdm = false,
};

FIXTURE_VARIANT_ADD(absent, rdm) {
	.rdm = true,
};

FIXTURE_SETUP(absent)
{
	self->options = (struct options){ .rdm = variant->rdm };
	self->info = pair_info(&self->options);
	self->iov = (struct iovec){ self->buf, sizeof(self->buf) };
	ASSERT_NE(NULL, self->info);
	ASSERT_EQ(0, end_open(&self->end, self->info, &self->options));
	ASSERT_EQ(0, end_open(&self->other, self->info, &self->options));
	ASSERT_EQ(0, fi_endpoint(self->end.domain, self->info, &self->ep, NULL));
}

FIXTURE_TEARDOWN(absent)
{
	if (self->ep)
		EXPECT_EQ(0, fi_close(&self->ep->fid));
	end_close(&self->end);
	end_close(&self->other);
	fi_freeinfo(self->info);
}

/* fi_endpoint(3): "an attempt was made to bind multiple domains" */
TEST_F(absent, other_domains)
{
	struct end *other = &self->other;
	struct fid_stx *stx;
	struct fid_ep *srx;

	ASSERT_EQ(0, fi_stx_context(other->domain, NULL, &stx, NULL));
	ASSERT_EQ(0, fi_srx_context(other->domain, NULL, &srx, NULL));
	EXPECT_EQ(-FI_EDOMAIN, fi_ep_bind(self->ep, &other->tx->fid, FI_TRANSMIT));
	EXPECT_EQ(-FI_EDOMAIN, fi_ep_bind(self->ep, &other->cntr[0]->fid, FI_SEND));
	EXPECT_EQ(-FI_EDOMAIN, fi_ep_bind(self->ep, &stx->fid, 0));
	EXPECT_EQ(-FI_EDOMAIN, fi_ep_bind(self->ep, &srx->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_ep_bind(self->ep, &other->eq->fid, 0));
	if (variant->rdm)
		EXPECT_EQ(-FI_EDOMAIN, fi_ep_bind(self->ep, &other->av->fid, 0));
	EXPECT_EQ(0, fi_close(&srx->fid));
	EXPECT_EQ(0, fi_close(&stx->fid));
}

/* A passive end point tells of calls on a queue of its own fabric. */
TEST_F(absent, other_fabrics)
{
	struct fid_pep *pep;

	if (variant->rdm)
		SKIP(return, "those do not listen");
	ASSERT_EQ(0, fi_passive_ep(self->end.fabric, self->info, &pep, NULL));
	EXPECT_EQ(-FI_EINVAL, fi_pep_bind(pep, &self->other.eq->fid, 0));
	EXPECT_EQ(0, fi_pep_bind(pep, &self->end.eq->fid, 0));
	EXPECT_EQ(0, fi_close(&pep->fid));
}

/* Nothing is enabled before it has what it needs, and nothing is sent before that. */
TEST_F(absent, order_of_calls)
{
	struct end *end = &self->end;

	EXPECT_EQ(variant->rdm ? -FI_ENOAV : -FI_ENOEQ, fi_enable(self->ep));
	ASSERT_EQ(0, fi_ep_bind(self->ep, variant->rdm ? &end->av->fid : &end->eq->fid, 0));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(self->ep));
	ASSERT_EQ(0, fi_ep_bind(self->ep, &end->tx->fid, FI_TRANSMIT));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(self->ep));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_recv(self->ep, self->buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	EXPECT_GT(0, fi_send(self->ep, self->buf, 8, NULL, 0, NULL));
	ASSERT_EQ(0, fi_ep_bind(self->ep, &end->rx->fid, FI_RECV));
	EXPECT_EQ(0, fi_enable(self->ep));
	EXPECT_EQ(0, fi_enable(self->ep));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(self->ep, &end->cntr[0]->fid, FI_SEND));
	EXPECT_EQ(-FI_EBUSY, fi_close(&end->tx->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&end->rx->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(variant->rdm ? &end->av->fid : &end->eq->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&end->domain->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&end->fabric->fid));
}

/* Flags of calls that have none of their own: those that fi_getinfo() takes. */
TEST_F(absent, default_flags)
{
	uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;

	EXPECT_EQ(0, fi_control(&self->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT | FI_REMOTE_CQ_DATA;
	EXPECT_EQ(-FI_EBADFLAGS, fi_control(&self->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT | FI_TRIGGER;
	EXPECT_EQ(-FI_EBADFLAGS, fi_control(&self->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_RECV | FI_INJECT;
	EXPECT_EQ(-FI_EBADFLAGS, fi_control(&self->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_RECV | FI_MULTI_RECV;
	EXPECT_EQ(variant->rdm ? 0 : -FI_EBADFLAGS,
		  fi_control(&self->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT;
	EXPECT_EQ(0, fi_control(&self->ep->fid, FI_GETOPSFLAG, &flags));
	EXPECT_EQ(FI_DELIVERY_COMPLETE, flags);
	flags = FI_RECV | FI_TRANSMIT;
	EXPECT_EQ(-FI_EINVAL, fi_control(&self->ep->fid, FI_SETOPSFLAG, &flags));
}

/* Of what is to happen later nothing happens now. */
TEST_F(absent, triggered)
{
	const struct fi_rma_iov remote = { .len = 8 };
	const struct fi_rma_ioc target = { .count = 1 };
	struct fi_ioc ioc = { self->buf, 1 };
	const struct fi_msg msg = { .msg_iov = &self->iov, .iov_count = 1 };
	const struct fi_msg_tagged tagged = { .msg_iov = &self->iov, .iov_count = 1 };
	const struct fi_msg_rma rma = { .msg_iov = &self->iov, .iov_count = 1, .rma_iov = &remote,
					.rma_iov_count = 1 };
	const struct fi_msg_atomic atomic = {
		.msg_iov = &ioc, .iov_count = 1, .rma_iov = &target, .rma_iov_count = 1,
		.datatype = FI_UINT64, .op = FI_SUM
	};

	EXPECT_EQ(-FI_EBADFLAGS, fi_sendmsg(self->ep, &msg, FI_TRIGGER));
	EXPECT_EQ(-FI_EBADFLAGS, fi_writemsg(self->ep, &rma, FI_TRIGGER));
	EXPECT_EQ(-FI_EBADFLAGS, fi_readmsg(self->ep, &rma, FI_TRIGGER));
	if (variant->rdm) {
		EXPECT_EQ(-FI_EBADFLAGS, fi_tsendmsg(self->ep, &tagged, FI_TRIGGER));
		EXPECT_EQ(-FI_EBADFLAGS, fi_atomicmsg(self->ep, &atomic, FI_TRIGGER));
	}
	EXPECT_EQ(0, fi_close(&self->ep->fid));
	self->ep = NULL;
	ASSERT_EQ(0, end_endpoint(&self->end, self->info, &self->options));
	EXPECT_EQ(-FI_EBADFLAGS, fi_recvmsg(self->end.ep, &msg, FI_TRIGGER));
	if (variant->rdm)
		EXPECT_EQ(-FI_EBADFLAGS, fi_trecvmsg(self->end.ep, &tagged, FI_TRIGGER));
}

TEST_F(absent, of_connections)
{
	char *buf = self->buf;
	uint64_t zero = 0;
	size_t count;

	if (variant->rdm)
		SKIP(return, "all of it is there");
	EXPECT_EQ(-FI_ENOSYS, fi_tsend(self->ep, buf, 8, NULL, 0, 0, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_tsendv(self->ep, &self->iov, NULL, 1, 0, 0, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_tsenddata(self->ep, buf, 8, NULL, 0, 0, 0, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_tinject(self->ep, buf, 8, 0, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_tinjectdata(self->ep, buf, 8, 0, 0, 0));
	EXPECT_EQ(-FI_ENOSYS, fi_trecv(self->ep, buf, 8, NULL, 0, 0, 0, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_trecvv(self->ep, &self->iov, NULL, 1, 0, 0, 0, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_atomic(self->ep, buf, 1, NULL, 0, 0, 0, FI_UINT64, FI_SUM, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_inject_atomic(self->ep, buf, 1, 0, 0, 0, FI_UINT64, FI_SUM));
	EXPECT_EQ(-FI_ENOSYS, fi_fetch_atomic(self->ep, buf, 1, NULL, &zero, NULL, 0, 0, 0,
					      FI_UINT64, FI_SUM, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_compare_atomic(self->ep, buf, 1, NULL, &zero, NULL, &zero, NULL, 0,
						0, 0, FI_UINT64, FI_CSWAP, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_atomicvalid(self->ep, FI_UINT64, FI_SUM, &count));
	EXPECT_EQ(-FI_ENOSYS, fi_fetch_atomicvalid(self->ep, FI_UINT64, FI_SUM, &count));
	EXPECT_EQ(-FI_ENOSYS, fi_compare_atomicvalid(self->ep, FI_UINT64, FI_CSWAP, &count));
}

TEST_F(absent, kinds)
{
	struct fi_av_attr av = { .name = "shared" };
	struct fi_cq_attr cq = { .flags = FI_AFFINITY };
	struct fid_cq *queue;
	struct fid_av *vector;
	struct fid_mr *mr;
	struct fid_ep *ep;

	EXPECT_EQ(-FI_ENOSYS, fi_av_open(self->end.domain, &av, &vector, NULL));
	av = (struct fi_av_attr){ .rx_ctx_bits = 1 };
	EXPECT_EQ(-FI_ENOSYS, fi_av_open(self->end.domain, &av, &vector, NULL));
	av = (struct fi_av_attr){ .flags = FI_READ };
	EXPECT_EQ(-FI_EBADFLAGS, fi_av_open(self->end.domain, &av, &vector, NULL));
	EXPECT_EQ(0, fi_cq_open(self->end.domain, &cq, &queue, NULL));
	EXPECT_EQ(0, fi_close(&queue->fid));
	cq.flags = FI_AFFINITY | 1ULL << 43;
	EXPECT_EQ(-FI_EBADFLAGS, fi_cq_open(self->end.domain, &cq, &queue, NULL));
	EXPECT_EQ(-FI_EINVAL, fi_mr_reg(self->end.domain, self->buf, 8, 1ULL << 60, 0, 1, 0, &mr,
					NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_scalable_ep(self->end.domain, self->info, &ep, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_tx_context(self->ep, 0, NULL, &ep, NULL));
	EXPECT_EQ(-FI_ENOSYS, fi_rx_context(self->ep, 0, NULL, &ep, NULL));
}

TEST_HARNESS_MAIN
