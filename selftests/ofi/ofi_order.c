// SPDX-License-Identifier: GPL-2.0-only
/*
 * The libfabric provider: in what order reads, writes and atomic operations of one peer are carried
 * out, FI_ORDER_RAR, RAW, WAR and WAW of fi_endpoint(3).
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_atomic.h>

#include "kselftest_harness.h"
#include "pair.h"

#define VERSION		FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#define ORDERED		16640		/* what fi_hamlyn(7) says */
#define READS		100		/* more than a channel takes of ORDERED bytes */
#define REGION		(READS * ORDERED)
#define QUIET_MS	(patience_ms() / 30)	/* without one more: there is no room */
#define ALL		(FI_REMOTE_READ | FI_REMOTE_WRITE)

/* ---- what is offered -------------------------------------------------------- */

#define OFFERED	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW |	\
		 FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |	\
		 FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |		\
		 FI_ORDER_ATOMIC_WAW)

static bool is_as_asked(const struct fi_info *info, uint64_t order)
{
	return info->ep_attr->max_order_raw_size == ORDERED &&
	       info->ep_attr->max_order_war_size == ORDERED &&
	       info->ep_attr->max_order_waw_size == ORDERED &&
	       (info->tx_attr->msg_order & order) == order &&
	       (info->rx_attr->msg_order & order) == order;
}

/* By the provider itself; what ofi_rxm makes of it is another matter. */
static int offers(const struct fi_info *hints)
{
	struct fi_info *info;
	int err = fi_getinfo(VERSION, NULL, NULL, 0, hints, &info);

	if (err)
		return err;
	err = -FI_ENODATA;
	for (const struct fi_info *i = info; i; i = i->next)
		if (!strcmp(i->fabric_attr->prov_name, "hamlyn"))
			err = is_as_asked(i, hints->tx_attr->msg_order) ? 0 : -FI_EOTHER;
	fi_freeinfo(info);
	return err;
}

static int offers_order(struct fi_info *hints, uint64_t order)
{
	hints->tx_attr->msg_order = order;
	hints->rx_attr->msg_order = order;
	return offers(hints);
}

TEST(offered)
{
	static const enum fi_ep_type types[] = { FI_EP_MSG, FI_EP_RDM };

	for (int i = 0; i < 2; i++) {
		struct fi_info *hints = fi_allocinfo();
		size_t *sizes[] = { &hints->ep_attr->max_order_raw_size,
				    &hints->ep_attr->max_order_war_size,
				    &hints->ep_attr->max_order_waw_size };

		hints->fabric_attr->prov_name = strdup("hamlyn");
		hints->ep_attr->type = types[i];
		for (int bit = 0; bit < 40; bit++) {
			EXPECT_EQ(OFFERED & 1ULL << bit ? 0 : -FI_ENODATA,
				  offers_order(hints, 1ULL << bit)) {
				TH_LOG("type %d, bit %d", types[i], bit);
			}
		}
		EXPECT_EQ(0, offers_order(hints, OFFERED));
		for (int j = 0; j < 3; j++) {
			*sizes[j] = ORDERED;
			EXPECT_EQ(0, offers(hints));
			*sizes[j] = ORDERED + 1;
			EXPECT_EQ(-FI_ENODATA, offers(hints));
			*sizes[j] = 0;
		}
		fi_freeinfo(hints);
	}
}

/* ---- what is done ------------------------------------------------------------ */

FIXTURE(order) {
	struct pair p;
	unsigned char *here;
	unsigned char *there;
	struct fid_mr *mr;
	uint64_t key;
};

FIXTURE_VARIANT(order) {
	bool rdm;
	bool no_cma;
};

FIXTURE_VARIANT_ADD(order, msg) {
	.rdm = false,
};

FIXTURE_VARIANT_ADD(order, rdm) {
	.rdm = true,
};

FIXTURE_VARIANT_ADD(order, rdm_pieces) {
	.rdm = true,
	.no_cma = true,
};

FIXTURE_SETUP(order)
{
	const struct options options = {
		.rdm = variant->rdm, .no_cma = variant->no_cma, .cq_size = 4,
		.selective = true,
	};

	self->here = calloc(1, REGION);
	self->there = calloc(1, REGION);
	ASSERT_EQ(0, pair_open(&self->p, &options));
	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->there, REGION, ALL, 0, 0, 0, &self->mr,
			       NULL));
	self->key = fi_mr_key(self->mr);
	/* Without connections the first call asks for one. */
	ASSERT_EQ(0, TAKEN(&self->p, fi_write(self->p.a.ep, self->here, 1, NULL, self->p.a.peer, 0,
					      self->key, NULL)));
	ASSERT_EQ(true, counts(self->p.b.cntr[5], &self->p.a, 1));
}

FIXTURE_TEARDOWN(order)
{
	EXPECT_EQ(0, fi_close(&self->mr->fid));
	pair_close(&self->p);
	free(self->here);
	free(self->there);
}

#define A	(self->p.a.ep)
#define PEER	(self->p.a.peer)

/* The target's queue is full, so that a write with data has to wait there. */
#define FILL_TARGET()								\
	do {									\
		for (int i_ = 0; i_ < 4; i_++)					\
			ASSERT_EQ(0, fi_inject_writedata(A, "-", 1, 0, PEER, REGION - 1, \
							 self->key));		\
		ASSERT_EQ(true, counts(self->p.b.cntr[5], &self->p.a, 5));	\
	} while (0)

#define EMPTY_TARGET(n)								\
	do {									\
		struct fi_cq_tagged_entry entry_;				\
										\
		for (int i_ = 0; i_ < (n); i_++)				\
			ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry_)); \
	} while (0)

/* A write that waits is not overtaken by one that would not have to. */
TEST_F(order, write_after_write)
{
	FILL_TARGET();
	ASSERT_EQ(0, fi_inject_writedata(A, "first", 5, 0, PEER, 0, self->key));
	ASSERT_EQ(0, fi_inject_write(A, "later", 5, PEER, 0, self->key));
	EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
	EXPECT_EQ(5, fi_cntr_read(self->p.b.cntr[5]));
	EMPTY_TARGET(5);
	ASSERT_EQ(true, counts(self->p.b.cntr[5], &self->p.a, 7));
	EXPECT_EQ(0, memcmp(self->there, "later", 5));
}

TEST_F(order, read_after_write)
{
	FILL_TARGET();
	ASSERT_EQ(0, fi_inject_writedata(A, "first", 5, 0, PEER, 0, self->key));
	ASSERT_EQ(0, fi_read(A, self->here, 5, NULL, PEER, 0, self->key, NULL));
	EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
	EXPECT_EQ(0, fi_cntr_read(self->p.a.cntr[2]));
	EMPTY_TARGET(5);
	ASSERT_EQ(true, counts(self->p.a.cntr[2], &self->p.b, 1));
	EXPECT_EQ(0, memcmp(self->here, "first", 5));
}

/* Nor is one held up by a message that waits for a buffer. */
TEST_F(order, past_messages)
{
	struct fi_cq_tagged_entry entry;
	char buf[8] = "";
	const struct fi_msg msg = { .msg_iov = &(struct iovec){ buf, sizeof(buf) }, .iov_count = 1,
				    .addr = FI_ADDR_UNSPEC };

	FILL_TARGET();
	ASSERT_EQ(0, fi_inject(A, "message", 8, PEER));
	ASSERT_EQ(0, fi_inject_writedata(A, "first", 5, 0, PEER, 0, self->key));
	ASSERT_EQ(0, fi_read(A, self->here, 5, NULL, PEER, 0, self->key, NULL));
	EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
	EXPECT_EQ(0, fi_cntr_read(self->p.a.cntr[2]));
	EMPTY_TARGET(5);
	ASSERT_EQ(true, counts(self->p.a.cntr[2], &self->p.b, 1));
	EXPECT_EQ(0, memcmp(self->here, "first", 5));
	ASSERT_EQ(0, fi_recvmsg(self->p.b.ep, &msg, FI_COMPLETION));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_STREQ("message", buf);
}

/* As long as the target takes more of them, and the end that calls takes nothing; how many */
#define POST(most, call)							\
	({									\
		int64_t until_ = now_ms() + QUIET_MS;				\
		unsigned int n = 0;						\
										\
		while (n < (most) && now_ms() < until_) {			\
			if (!(call)) {						\
				n++;						\
				until_ = now_ms() + QUIET_MS;			\
			}							\
			(void)fi_cntr_read(self->p.b.cntr[0]);			\
		}								\
		n;								\
	})

/* Reads that find no room on their way back have what was there before the writes behind them. */
TEST_F(order, write_after_read)
{
	unsigned int reads, writes;

	fill(self->there, REGION, 1);
	reads = POST(READS, fi_read(A, self->here + n * ORDERED, ORDERED, NULL, PEER, n * ORDERED,
				    self->key, NULL));
	ASSERT_LE(20, reads);
	writes = POST(reads, fi_inject_write(A, "overwritten", 11, PEER, n * ORDERED, self->key));
	ASSERT_EQ(reads, writes);
	ASSERT_EQ(true, counts(self->p.b.cntr[5], NULL, 1 + writes));
	EXPECT_EQ(0, memcmp(self->there, "overwritten", 11));
	/* Most of them have not left, or there would have been nothing to put in order. */
	EXPECT_GT(reads, fi_cntr_read(self->p.b.cntr[4]) + 10);
	ASSERT_EQ(true, counts(self->p.a.cntr[2], &self->p.b, reads));
	EXPECT_EQ(true, filled(self->here, (size_t)reads * ORDERED, 1));
}

/* What is kept for a peer until it takes it is limited, and that of a long life is not. */
TEST_F_TIMEOUT(order, kept_for_a_while, 240)
{
	uint64_t *by = (uint64_t *)(void *)self->here;

	if (!variant->rdm || variant->no_cma)
		SKIP(return, "connections have no atomics, and others no pieces");
	for (int i = 0; i < 9000; i++)
		ASSERT_EQ(0, TAKEN(&self->p, fi_fetch_atomic(A, by, 1024, NULL, by + 1024, NULL,
							     PEER, 0, self->key, FI_UINT64,
							     FI_SUM, NULL)));
	ASSERT_EQ(true, counts(self->p.a.cntr[2], &self->p.b, 9000));
}

/* ---- anything, in any order ---------------------------------------------------- */

#define ROUNDS		200
#define IN_A_ROUND	24
#define WORDS		4096		/* of the region that all of it is about */
#define MOST		(ORDERED / 8)

struct shadow {
	uint64_t words[WORDS];		/* as they are when all has been done */
	uint64_t seen[IN_A_ROUND][MOST];	/* what each read has to get */
	uint64_t got[IN_A_ROUND][MOST];
	uint64_t from[IN_A_ROUND][MOST];
	uint32_t length[IN_A_ROUND];	/* in words; 0: it was no read */
};

static unsigned int below(unsigned int *seed, unsigned int limit)
{
	return (unsigned int)rand_r(seed) % limit;
}

static ssize_t post_write(struct shadow *s, struct end *end, uint64_t key, int i, uint32_t at,
			  uint32_t n, bool data)
{
	ssize_t err = data ? fi_writedata(end->ep, s->from[i], n * 8, NULL, 1, end->peer, at * 8,
					  key, NULL) :
			     fi_write(end->ep, s->from[i], n * 8, NULL, end->peer, at * 8, key,
				      NULL);

	if (!err)
		memcpy(&s->words[at], s->from[i], n * 8);
	return err;
}

static ssize_t post_read(struct shadow *s, struct end *end, uint64_t key, int i, uint32_t at,
			 uint32_t n)
{
	ssize_t err = fi_read(end->ep, s->got[i], n * 8, NULL, end->peer, at * 8, key, NULL);

	if (!err) {
		memcpy(s->seen[i], &s->words[at], n * 8);
		s->length[i] = n;
	}
	return err;
}

static ssize_t post_atomic(struct shadow *s, struct end *end, uint64_t key, int i, uint32_t at,
			   uint32_t n, bool fetch)
{
	ssize_t err = fetch ? fi_fetch_atomic(end->ep, s->from[i], n, NULL, s->got[i], NULL,
					      end->peer, at * 8, key, FI_UINT64, FI_SUM, NULL) :
			      fi_atomic(end->ep, s->from[i], n, NULL, end->peer, at * 8, key,
					FI_UINT64, FI_SUM, NULL);

	if (err)
		return err;
	if (fetch) {
		memcpy(s->seen[i], &s->words[at], n * 8);
		s->length[i] = n;
	}
	for (uint32_t j = 0; j < n; j++)
		s->words[at + j] += s->from[i][j];
	return 0;
}

static ssize_t post_any(struct shadow *s, struct end *end, uint64_t key, int i, unsigned int *seed)
{
	uint32_t n = 1 + (below(seed, 4) ? below(seed, 16) : below(seed, MOST));
	unsigned int kind = below(seed, end->av ? 7 : 5);
	uint32_t at = below(seed, below(seed, 4) ? 16 : WORDS - n);

	if (kind < 2)
		return post_read(s, end, key, i, at, n);
	for (uint32_t j = 0; j < n; j++)
		s->from[i][j] = (uint64_t)rand_r(seed);
	if (kind < 5)
		return post_write(s, end, key, i, at, n, kind == 2);
	return post_atomic(s, end, key, i, at, n < 1024 ? n : 1024, kind == 6);
}

static void others_turn(struct pair *p, unsigned int *seed)
{
	struct fi_cq_tagged_entry entry;

	if (!below(seed, 2))
		(void)fi_cntr_read(p->b.cntr[0]);
	if (!below(seed, 8))
		(void)fi_cntr_read(p->a.cntr[0]);
	if (!below(seed, 8))
		(void)fi_cq_read(p->b.rx, &entry, 1);
}

static bool all_done(struct pair *p, uint64_t ops)
{
	int64_t until = now_ms() + patience_ms();
	struct fi_cq_tagged_entry entry;

	do {
		if (fi_cntr_read(p->a.cntr[2]) + fi_cntr_read(p->a.cntr[3]) == ops)
			return true;
		while (fi_cq_read(p->b.rx, &entry, 1) == 1)
			;
	} while (now_ms() < until);
	return false;
}

TEST_F(order, as_if_one_after_the_other)
{
	struct shadow *s = calloc(1, sizeof(*s));
	unsigned int seed = 1;
	uint64_t ops = 1;

	ASSERT_NE(NULL, s);
	for (int round = 0; round < ROUNDS; round++) {
		int n = 0;

		memset(s->length, 0, sizeof(s->length));
		for (int try = 0; try < 1000 && n < IN_A_ROUND; try++) {
			ssize_t err = post_any(s, &self->p.a, self->key, n, &seed);

			ASSERT_EQ(true, !err || err == -FI_EAGAIN);
			n += !err;
			others_turn(&self->p, &seed);
		}
		ops += (uint64_t)n;
		ASSERT_EQ(true, all_done(&self->p, ops));
		ASSERT_EQ(0, memcmp(self->there, s->words, sizeof(s->words)));
		for (int i = 0; i < n; i++) {
			ASSERT_EQ(0, memcmp(s->got[i], s->seen[i], s->length[i] * 8)) {
				TH_LOG("round %d, operation %d", round, i);
			}
		}
	}
	free(s);
}

TEST_HARNESS_MAIN
