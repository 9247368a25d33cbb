// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: what end points share, fi_srx_context(3), fi_stx_context(3). */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_tagged.h>

#include "kselftest_harness.h"
#include "pair.h"

#define MAX	(1 << 20)
#define ENDS	3

/* One that sends, and some of one domain that receive into the same buffers. */
struct set {
	struct fi_info *info;
	struct end from;
	struct end ends[ENDS];		/* all but the first have only queues and an end point */
	struct fid_ep *srx;
	struct fid_stx *stx;
	struct fid_pep *pep;		/* of FI_EP_MSG */
	struct end clients[ENDS];
	unsigned char *out;
	unsigned char *in;
};

static int open_queue(struct end *end, struct fid_cq **cq)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 256 };

	return fi_cq_open(end->domain, &attr, cq, NULL);
}

/* What is of a domain is the first one's; queues of completions are each one's own. */
static int another(const struct end *first, struct end *end)
{
	int err;

	memset(end, 0, sizeof(*end));
	end->domain = first->domain;
	end->fabric = first->fabric;
	end->eq = first->eq;
	end->av = first->av;
	end->cntr[0] = first->cntr[0];
	err = open_queue(end, &end->tx);
	return err ? err : open_queue(end, &end->rx);
}

static int endpoint(struct end *end, struct fi_info *info, struct fid_ep *srx, struct fid_stx *stx,
		    uint64_t rx_flags)
{
	int err = fi_endpoint(end->domain, info, &end->ep, NULL);

	if (!err && end->av)
		err = fi_ep_bind(end->ep, &end->av->fid, 0);
	if (!err)
		err = fi_ep_bind(end->ep, &end->eq->fid, 0);
	if (!err)
		err = fi_ep_bind(end->ep, &end->tx->fid, FI_TRANSMIT);
	if (!err)
		err = fi_ep_bind(end->ep, &end->rx->fid, FI_RECV | rx_flags);
	if (!err && srx)
		err = fi_ep_bind(end->ep, &srx->fid, 0);
	if (!err && stx)
		err = fi_ep_bind(end->ep, &stx->fid, 0);
	return err ? err : fi_enable(end->ep);
}

static struct fi_info *shared_info(const struct fi_info *info)
{
	struct fi_info *copy = fi_dupinfo(info);

	copy->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	copy->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	return copy;
}

static struct end *sender(struct set *set, int i)
{
	return set->pep ? &set->clients[i] : &set->from;
}

/* The connection number @i, whose ends are a client and one that shares. */
static int connect_one(struct set *set, int i, const struct options *options,
		       void *address, uint64_t rx_flags)
{
	struct end *client = &set->clients[i];
	struct fi_eq_cm_entry entry;
	int err = end_open(client, set->info, options);

	if (!err)
		err = end_endpoint(client, set->info, options);
	if (!err)
		err = fi_connect(client->ep, address, NULL, 0);
	if (err)
		return err;
	if (next_event(&set->ends[0], NULL, &entry, sizeof(entry), NULL) != FI_CONNREQ)
		return -FI_EOTHER;
	entry.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	err = endpoint(&set->ends[i], entry.info, set->srx, NULL, rx_flags);
	fi_freeinfo(entry.info);
	if (!err)
		err = fi_accept(set->ends[i].ep, NULL, 0);
	if (!err && next_event(&set->ends[0], client, &entry, sizeof(entry), NULL) != FI_CONNECTED)
		err = -FI_ENOTCONN;
	if (!err && next_event(client, &set->ends[0], &entry, sizeof(entry), NULL) != FI_CONNECTED)
		err = -FI_ENOTCONN;
	return err;
}

static int connect_all(struct set *set, const struct options *options,
		       uint64_t rx_flags)
{
	char address[64];
	size_t length = sizeof(address);
	int err = listen_at(&set->ends[0], &set->pep, address, &length);

	for (int i = 0; i < ENDS && !err; i++)
		err = connect_one(set, i, options, address, rx_flags);
	return err;
}

static int link_all(struct set *set, const struct options *options, uint64_t rx_flags)
{
	struct fi_info *info = shared_info(set->info);
	int err = end_open(&set->from, set->info, options);

	if (!err)
		err = end_endpoint(&set->from, set->info, options);
	for (int i = 0; i < ENDS && !err; i++) {
		err = endpoint(&set->ends[i], info, set->srx, set->stx, rx_flags);
		if (!err)
			set->ends[i].peer = learn(&set->from, &set->ends[i]);
	}
	fi_freeinfo(info);
	return err;
}

static int set_open(struct set *set, const struct options *options)
{
	uint64_t rx_flags = options->selective ? FI_SELECTIVE_COMPLETION : 0;
	int err;

	memset(set, 0, sizeof(*set));
	set->out = malloc(MAX);
	set->in = malloc(MAX);
	set->info = pair_info(options);
	if (!set->info)
		return -FI_ENODATA;
	err = end_open(&set->ends[0], set->info, options);
	for (int i = 1; i < ENDS && !err; i++)
		err = another(&set->ends[0], &set->ends[i]);
	if (!err)
		err = fi_srx_context(set->ends[0].domain, set->info->rx_attr, &set->srx, NULL);
	if (!err)
		err = fi_stx_context(set->ends[0].domain, set->info->tx_attr, &set->stx, NULL);
	if (err)
		return err;
	return options->rdm ? link_all(set, options, rx_flags) :
			      connect_all(set, options, rx_flags);
}

static int set_close(struct set *set)
{
	int err = 0;

	for (int i = 0; i < ENDS && !err; i++)
		if (set->ends[i].ep)
			err = fi_close(&set->ends[i].ep->fid);
	set->ends[0].ep = NULL;
	if (set->pep) {
		err = err ? err : fi_close(&set->pep->fid);
		for (int i = 0; i < ENDS; i++)
			end_close(&set->clients[i]);
	} else {
		end_close(&set->from);
	}
	err = err ? err : fi_close(&set->srx->fid);
	err = err ? err : fi_close(&set->stx->fid);
	for (int i = 1; i < ENDS && !err; i++) {
		err = fi_close(&set->ends[i].tx->fid);
		err = err ? err : fi_close(&set->ends[i].rx->fid);
	}
	end_close(&set->ends[0]);
	fi_freeinfo(set->info);
	free(set->out);
	free(set->in);
	return err;
}

/* To end point @i, by whoever sends there. */
#define SEND(i, data, length)						\
	({								\
		struct end *by_ = sender(set, i);			\
		int64_t until_ = now_ms() + patience_ms();		\
		ssize_t err_;						\
									\
		while ((err_ = fi_send(by_->ep, data, length, NULL,	\
				       set->ends[i].peer, NULL)) == -FI_EAGAIN && \
		       now_ms() < until_) {				\
			(void)fi_cntr_read(by_->cntr[0]);		\
			(void)fi_cntr_read(set->ends[0].cntr[0]);	\
		}							\
		err_;							\
	})

FIXTURE(shared) {
	struct set set;
};

FIXTURE_VARIANT(shared) {
	bool rdm;
	bool no_cma;
};

FIXTURE_VARIANT_ADD(shared, rdm) {
	.rdm = true,
};

FIXTURE_VARIANT_ADD(shared, rdm_pieces) {
	.rdm = true,
	.no_cma = true,
};

FIXTURE_VARIANT_ADD(shared, msg) {
	.rdm = false,
};

FIXTURE_VARIANT_ADD(shared, msg_pieces) {
	.rdm = false,
	.no_cma = true,
};

FIXTURE_SETUP(shared)
{
	const struct options options = { .rdm = variant->rdm, .no_cma = variant->no_cma };

	ASSERT_EQ(0, set_open(&self->set, &options));
}

FIXTURE_TEARDOWN(shared)
{
	EXPECT_EQ(0, set_close(&self->set));
}

/* A buffer serves whom a message comes to first, and that one is told. */
TEST_F(shared, whoever_comes)
{
	struct set *set = &self->set;
	static const size_t lengths[] = { 8, 300, 20000, 200000 };
	struct fi_cq_tagged_entry entry;
	int context[2];

	for (unsigned int n = 0; n < 4; n++) {
		for (int i = 0; i < ENDS; i++) {
			fill(set->out, lengths[n], n * ENDS + (unsigned int)i);
			ASSERT_EQ(0, fi_recv(set->srx, set->in, MAX, NULL, FI_ADDR_UNSPEC,
					     &context[0]));
			ASSERT_EQ(0, SEND(i, set->out, lengths[n]));
			ASSERT_EQ(1, next_entry(set->ends[i].rx, sender(set, i), &entry));
			EXPECT_EQ(&context[0], entry.op_context);
			EXPECT_EQ(lengths[n], entry.len);
			EXPECT_EQ(FI_RECV | FI_MSG, entry.flags);
			EXPECT_EQ(true, filled(set->in, lengths[n], n * ENDS + (unsigned int)i));
			ASSERT_EQ(1, next_entry(sender(set, i)->tx, &set->ends[0], &entry));
		}
	}
	for (int i = 0; i < ENDS; i++)
		EXPECT_EQ(true, none(set->ends[i].rx, sender(set, i)));
}

/* Messages that come before their buffers get them as these are posted, none is passed over. */
TEST_F(shared, unexpected)
{
	struct set *set = &self->set;
	const size_t lengths[] = { 40, 30000 };
	struct fi_cq_tagged_entry entry;
	int64_t until = now_ms() + patience_ms();
	int got[ENDS][2] = { 0 }, all = 0;

	memset(set->out, 5, MAX);
	for (int i = 0; i < 8 * ENDS; i++) {
		ASSERT_EQ(0, SEND(i % ENDS, set->out, lengths[i / ENDS % 2]));
		(void)fi_cntr_read(set->ends[0].cntr[0]);
	}
	for (int i = 0; i < ENDS; i++)
		EXPECT_EQ(true, none(set->ends[i].rx, sender(set, i)));
	for (int i = 0; i < 8 * ENDS; i++)
		ASSERT_EQ(0, fi_recv(set->srx, set->in + 32768 * i, 32768, NULL, FI_ADDR_UNSPEC,
				     NULL));
	while (all < 8 * ENDS) {
		ASSERT_LT(now_ms(), until);
		for (int i = 0; i < ENDS; i++) {
			(void)fi_cntr_read(sender(set, i)->cntr[0]);
			if (fi_cq_read(set->ends[i].rx, &entry, 1) != 1)
				continue;
			EXPECT_EQ(5, ((unsigned char *)entry.buf)[entry.len - 1]);
			/* What is got in pieces may end later than what came behind it. */
			got[i][entry.len == lengths[1]]++;
			all++;
		}
	}
	for (int i = 0; i < ENDS; i++) {
		EXPECT_EQ(4, got[i][0]);
		EXPECT_EQ(4, got[i][1]);
	}
}

/* A queue of completions without room holds up its own end point alone. */
TEST_F(shared, no_room_to_tell)
{
	struct set *set = &self->set;
	struct fi_cq_tagged_entry entry;
	int filling = 0, n = 0;

	while (filling < 4096) {
		ASSERT_EQ(0, fi_recv(set->srx, set->in, 64, NULL, FI_ADDR_UNSPEC, NULL));
		if (fi_inject(sender(set, 0)->ep, set->out, 8, set->ends[0].peer))
			break;
		filling++;
		for (int i = 0; i < 3; i++)
			(void)fi_cntr_read(set->ends[1].cntr[0]);
	}
	/* Of the buffer that is left over, or of this one, another end point has use. */
	ASSERT_EQ(0, fi_recv(set->srx, set->in, 64, NULL, FI_ADDR_UNSPEC, NULL));
	if (!variant->rdm) {
		ASSERT_EQ(0, SEND(1, set->out, 8));
		ASSERT_EQ(1, next_entry(set->ends[1].rx, sender(set, 1), &entry));
	}
	while (n < filling && next_entry(set->ends[0].rx, sender(set, 0), &entry) == 1)
		n++;
	EXPECT_EQ(filling, n);
}

/* It is posted where it is shared, and that outlives all that share it. */
TEST_F(shared, refused)
{
	struct set *set = &self->set;
	struct fid_ep *alone;
	struct fi_info *info = shared_info(set->info);

	EXPECT_EQ(-FI_EOPNOTSUPP, fi_recv(set->ends[0].ep, set->in, 8, NULL, FI_ADDR_UNSPEC, NULL));
	if (variant->rdm)
		EXPECT_EQ(-FI_EOPNOTSUPP, fi_trecv(set->ends[0].ep, set->in, 8, NULL,
						   FI_ADDR_UNSPEC, 1, 0, NULL));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_send(set->srx, set->in, 8, NULL, 0, NULL));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_tsend(set->srx, set->in, 8, NULL, 0, 0, NULL));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_tinject(set->srx, set->in, 8, 0, 0));
	EXPECT_EQ(-FI_EBUSY, fi_close(&set->srx->fid));
	if (variant->rdm)
		EXPECT_EQ(-FI_EBUSY, fi_close(&set->stx->fid));
	/* Whose hints said that it would share has nothing of its own. */
	ASSERT_EQ(0, fi_endpoint(set->ends[0].domain, info, &alone, NULL));
	if (variant->rdm)
		ASSERT_EQ(0, fi_ep_bind(alone, &set->ends[0].av->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(alone, &set->ends[0].eq->fid, 0));
	ASSERT_EQ(0, fi_ep_bind(alone, &set->ends[0].tx->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_ep_bind(alone, &set->ends[0].rx->fid, FI_RECV));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_enable(alone));
	ASSERT_EQ(0, fi_ep_bind(alone, &set->srx->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_ep_bind(alone, &set->srx->fid, 0));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_enable(alone));
	ASSERT_EQ(0, fi_ep_bind(alone, &set->stx->fid, 0));
	EXPECT_EQ(0, fi_enable(alone));
	EXPECT_EQ(0, fi_close(&alone->fid));
	fi_freeinfo(info);
}

/* One that ends takes no buffer with it, and what came to it nobody gets. */
TEST_F(shared, closed)
{
	struct set *set = &self->set;
	struct fi_cq_tagged_entry entry;

	memset(set->out, 1, 64);
	ASSERT_EQ(0, SEND(1, set->out, 40));
	memset(set->out, 2, 64);
	ASSERT_EQ(0, SEND(2, set->out, 50));
	EXPECT_EQ(true, none(set->ends[1].rx, sender(set, 1)));
	EXPECT_EQ(true, none(set->ends[2].rx, sender(set, 2)));
	EXPECT_EQ(0, fi_close(&set->ends[1].ep->fid));
	set->ends[1].ep = NULL;
	ASSERT_EQ(0, fi_recv(set->srx, set->in, 64, NULL, FI_ADDR_UNSPEC, NULL));
	ASSERT_EQ(1, next_entry(set->ends[2].rx, sender(set, 2), &entry));
	EXPECT_EQ(50, entry.len);
	EXPECT_EQ(2, set->in[0]);
	ASSERT_EQ(0, fi_recv(set->srx, set->in, 64, NULL, FI_ADDR_UNSPEC, NULL));
	ASSERT_EQ(0, SEND(0, set->out, 30));
	ASSERT_EQ(1, next_entry(set->ends[0].rx, sender(set, 0), &entry));
	EXPECT_EQ(30, entry.len);
	EXPECT_EQ(true, none(set->ends[1].rx, NULL));
}

/* A buffer that a message is under way into when its end point closes is told to be free again. */
TEST_F(shared, closed_under_way)
{
	struct set *set = &self->set;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int context;

	ASSERT_EQ(0, fi_recv(set->srx, set->in, MAX, NULL, FI_ADDR_UNSPEC, &context));
	ASSERT_EQ(0, SEND(1, set->out, MAX));
	if (!variant->no_cma) {
		/* All of it is got at once. */
		ASSERT_EQ(1, next_entry(set->ends[1].rx, sender(set, 1), &entry));
		return;
	}
	/* The receiver asks for pieces, and the sender is not heard of. */
	for (int i = 0; i < 100; i++)
		(void)fi_cntr_read(set->ends[0].cntr[0]);
	EXPECT_EQ(0, fi_close(&set->ends[1].ep->fid));
	set->ends[1].ep = NULL;
	ASSERT_EQ(1, next_error(set->ends[1].rx, NULL, &error));
	EXPECT_EQ(FI_ECANCELED, error.err);
	EXPECT_EQ(&context, error.op_context);
}

TEST_F(shared, cancel)
{
	struct set *set = &self->set;
	struct fi_cq_err_entry error;
	struct fid_cq *cq;
	int context, told = 0;

	ASSERT_EQ(0, fi_recv(set->srx, set->in, 8, NULL, FI_ADDR_UNSPEC, &context));
	EXPECT_EQ(-FI_ENOENT, fi_cancel(&set->ends[0].ep->fid, &context));
	if (variant->rdm) {
		/* Told by one of those that share. */
		EXPECT_EQ(-FI_ENOENT, fi_cancel(&set->srx->fid, &error));
		EXPECT_EQ(0, fi_cancel(&set->srx->fid, &context));
		memset(&error, 0, sizeof(error));
		for (int i = 0; i < ENDS; i++)
			told += fi_cq_readerr(set->ends[i].rx, &error, 0) == 1;
		EXPECT_EQ(1, told);
		EXPECT_EQ(FI_ECANCELED, error.err);
		EXPECT_EQ(&context, error.op_context);
		return;
	}
	/* No end point says what it would be told by. */
	EXPECT_EQ(-FI_ENOCQ, fi_cancel(&set->srx->fid, &context));
	ASSERT_EQ(0, open_queue(&set->ends[0], &cq));
	EXPECT_EQ(-FI_EBADFLAGS, fi_ep_bind(set->srx, &cq->fid, FI_TRANSMIT));
	ASSERT_EQ(0, fi_ep_bind(set->srx, &cq->fid, FI_RECV));
	EXPECT_EQ(0, fi_cancel(&set->srx->fid, &context));
	ASSERT_EQ(1, next_error(cq, NULL, &error));
	EXPECT_EQ(FI_ECANCELED, error.err);
	EXPECT_EQ(&context, error.op_context);
	EXPECT_EQ(-FI_EBUSY, fi_close(&cq->fid));
}

/* ---- tags ------------------------------------------------------------------ */

FIXTURE(tags) {
	struct set set;
};

FIXTURE_VARIANT(tags) {
	bool selective;
};

FIXTURE_VARIANT_ADD(tags, all) {
	.selective = false,
};

FIXTURE_VARIANT_ADD(tags, selective) {
	.selective = true,
};

FIXTURE_SETUP(tags)
{
	const struct options options = { .rdm = true, .selective = variant->selective };

	ASSERT_EQ(0, set_open(&self->set, &options));
}

FIXTURE_TEARDOWN(tags)
{
	EXPECT_EQ(0, set_close(&self->set));
}

static ssize_t tagged_recv(struct set *set, void *to, size_t length, fi_addr_t from, uint64_t tag,
			   void *context, uint64_t flags)
{
	const struct iovec iov = { to, length };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = from, .tag = tag, .context = context,
	};

	return fi_trecvmsg(set->srx, &msg, flags);
}

static ssize_t tagged_send(struct set *set, int i, const void *data, size_t length, uint64_t tag)
{
	int64_t until = now_ms() + patience_ms();
	ssize_t err;

	while ((err = fi_tinject(set->from.ep, data, length, set->ends[i].peer, tag)) ==
	       -FI_EAGAIN && now_ms() < until)
		(void)fi_cntr_read(set->ends[0].cntr[0]);
	return err;
}

/* Each message finds its tag, whichever end point it comes to; who does not ask is not told. */
TEST_F(tags, matched)
{
	struct set *set = &self->set;
	struct fi_cq_tagged_entry entry;
	int context[2 * ENDS];

	for (int i = 0; i < 2 * ENDS; i++)
		ASSERT_EQ(0, tagged_recv(set, set->in + 8 * i, 8, FI_ADDR_UNSPEC, (uint64_t)i,
					 &context[i], i < ENDS ? FI_COMPLETION : 0));
	for (int i = 2 * ENDS - 1; i >= 0; i--) {
		memset(set->out, i, 8);
		ASSERT_EQ(0, tagged_send(set, i % ENDS, set->out, 8, (uint64_t)i));
		if (i >= ENDS && variant->selective)
			continue;
		ASSERT_EQ(1, next_entry(set->ends[i % ENDS].rx, &set->from, &entry));
		EXPECT_EQ(&context[i], entry.op_context);
		EXPECT_EQ(i, entry.tag);
		EXPECT_EQ(FI_RECV | FI_TAGGED, entry.flags);
	}
	for (int i = 0; i < ENDS; i++)
		EXPECT_EQ(true, none(set->ends[i].rx, &set->from));
	for (int i = 0; i < 8 * 2 * ENDS; i++)
		EXPECT_EQ(i / 8, set->in[i]);
}

/* What is looked for is found where it came to. */
TEST_F(tags, peek)
{
	struct set *set = &self->set;
	struct fi_context context;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct fid_cq *cq;

	ASSERT_EQ(0, open_queue(&set->ends[0], &cq));
	ASSERT_EQ(0, fi_ep_bind(set->srx, &cq->fid, FI_RECV));
	ASSERT_EQ(0, tagged_recv(set, NULL, 0, FI_ADDR_UNSPEC, 7, &context, FI_PEEK));
	ASSERT_EQ(1, next_error(cq, &set->from, &error));
	EXPECT_EQ(FI_ENOMSG, error.err);
	ASSERT_EQ(0, tagged_send(set, 2, "claimed", 8, 7));
	ASSERT_EQ(0, tagged_send(set, 1, "thrown", 7, 8));
	EXPECT_EQ(true, none(set->ends[2].rx, &set->from));
	EXPECT_EQ(true, none(set->ends[1].rx, &set->from));
	ASSERT_EQ(0, tagged_recv(set, NULL, 0, FI_ADDR_UNSPEC, 7, &context, FI_PEEK | FI_CLAIM));
	ASSERT_EQ(1, next_entry(set->ends[2].rx, &set->from, &entry));
	EXPECT_EQ(8, entry.len);
	ASSERT_EQ(0, tagged_recv(set, set->in, 8, FI_ADDR_UNSPEC, 7, &context,
				 FI_CLAIM | FI_COMPLETION));
	ASSERT_EQ(1, next_entry(set->ends[2].rx, &set->from, &entry));
	EXPECT_EQ(0, memcmp(set->in, "claimed", 8));
	ASSERT_EQ(0, tagged_recv(set, NULL, 0, FI_ADDR_UNSPEC, 8, &context, FI_PEEK | FI_DISCARD));
	ASSERT_EQ(1, next_entry(set->ends[1].rx, &set->from, &entry));
	ASSERT_EQ(0, tagged_recv(set, NULL, 0, FI_ADDR_UNSPEC, 8, &context, FI_PEEK));
	ASSERT_EQ(1, next_error(cq, &set->from, &error));
	EXPECT_EQ(0, fi_close(&set->srx->fid) == 0);
	/* Claimed, and its end point closed. */
	ASSERT_EQ(0, tagged_send(set, 1, "lost", 5, 9));
	EXPECT_EQ(true, none(set->ends[1].rx, &set->from));
	ASSERT_EQ(0, tagged_recv(set, NULL, 0, FI_ADDR_UNSPEC, 9, &context, FI_PEEK | FI_CLAIM));
	ASSERT_EQ(1, next_entry(set->ends[1].rx, &set->from, &entry));
	EXPECT_EQ(0, fi_close(&set->ends[1].ep->fid));
	set->ends[1].ep = NULL;
	EXPECT_EQ(-FI_EINVAL, tagged_recv(set, set->in, 8, FI_ADDR_UNSPEC, 9, &context, FI_CLAIM));
	/* It is closed behind what it is told by: not before. */
	EXPECT_EQ(-FI_EBUSY, fi_close(&cq->fid));
	for (int i = 0; i < ENDS; i++) {
		if (set->ends[i].ep)
			ASSERT_EQ(0, fi_close(&set->ends[i].ep->fid));
		set->ends[i].ep = NULL;
	}
	ASSERT_EQ(0, fi_close(&set->srx->fid));
	EXPECT_EQ(0, fi_close(&cq->fid));
	ASSERT_EQ(0, fi_srx_context(set->ends[0].domain, set->info->rx_attr, &set->srx, NULL));
}

/* From one process alone: as the address vector of those that share has it. */
TEST_F(tags, directed)
{
	struct set *set = &self->set;
	struct fi_cq_tagged_entry entry;
	fi_addr_t from = learn(&set->ends[0], &set->from);
	fi_addr_t other = learn(&set->ends[0], &set->ends[2]);

	ASSERT_EQ(0, tagged_recv(set, set->in, 8, other, 1, NULL, FI_COMPLETION));
	ASSERT_EQ(0, tagged_recv(set, set->in + 8, 8, from, 1, set, FI_COMPLETION));
	ASSERT_EQ(0, tagged_send(set, 1, "a", 1, 1));
	ASSERT_EQ(1, next_entry(set->ends[1].rx, &set->from, &entry));
	EXPECT_EQ(set, entry.op_context);
	EXPECT_EQ('a', set->in[8]);
	EXPECT_EQ(-FI_EINVAL, tagged_recv(set, set->in, 8, 99, 1, NULL, 0));
}

/* Messages to all of them side by side in one buffer. */
TEST_F(tags, multi_recv)
{
	struct set *set = &self->set;
	struct fi_cq_tagged_entry entry;
	const struct iovec iov = { set->in, 300 };
	const struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };
	size_t least = 100, length = sizeof(least);
	const unsigned char *end = set->in;

	ASSERT_EQ(0, fi_setopt(&set->srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			       sizeof(least)));
	least = 0;
	ASSERT_EQ(0, fi_getopt(&set->srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			       &length));
	EXPECT_EQ(100, least);
	ASSERT_EQ(0, fi_recvmsg(set->srx, &msg, FI_MULTI_RECV | FI_COMPLETION));
	for (int i = 0; i < ENDS; i++) {
		ASSERT_EQ(0, SEND(i, set->out, 70));
		ASSERT_EQ(1, next_entry(set->ends[i].rx, &set->from, &entry));
		EXPECT_EQ(end, entry.buf);
		EXPECT_EQ(FI_RECV | FI_MSG | (i == ENDS - 1 ? FI_MULTI_RECV : 0), entry.flags);
		end += 70;
	}
}

TEST_HARNESS_MAIN
