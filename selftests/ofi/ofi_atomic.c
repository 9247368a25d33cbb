// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: atomic operations, fi_atomic(3). */
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_atomic.h>

#include "kselftest_harness.h"
#include "pair.h"

#define REGION	65536

FIXTURE(atomic) {
	struct pair p;
	struct fid_mr *mr;
	unsigned char *to;
	uint64_t key;
	fi_addr_t peer;
	struct fid_ep *ep;
};

FIXTURE_VARIANT(atomic) {
	enum fi_progress progress;
	enum fi_threading threading;
};

FIXTURE_VARIANT_ADD(atomic, manual) {
	.progress = FI_PROGRESS_MANUAL,
};

FIXTURE_VARIANT_ADD(atomic, auto_progress) {
	.progress = FI_PROGRESS_AUTO,
};

FIXTURE_VARIANT_ADD(atomic, thread_domain) {
	.threading = FI_THREAD_DOMAIN,
};

FIXTURE_SETUP(atomic)
{
	const struct options options = {
		.rdm = true, .progress = variant->progress, .threading = variant->threading,
	};

	self->to = calloc(1, REGION);
	ASSERT_EQ(0, pair_open(&self->p, &options));
	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->to, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE,
			       0, 0, 0, &self->mr, NULL));
	self->key = fi_mr_key(self->mr);
	self->peer = self->p.a.peer;
	self->ep = self->p.a.ep;
}

FIXTURE_TEARDOWN(atomic)
{
	EXPECT_EQ(0, fi_close(&self->mr->fid));
	pair_close(&self->p);
	free(self->to);
}

#define DONE(flags_)								\
	do {									\
		struct fi_cq_tagged_entry entry_;				\
										\
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry_));	\
		EXPECT_EQ((flags_), entry_.flags);				\
	} while (0)

/* ---- what each does --------------------------------------------------------- */

#define CASES(type)								\
	{ FI_MIN, 7, 3, 0, 3 }, { FI_MIN, 3, 7, 0, 3 }, { FI_MAX, 7, 3, 0, 7 },	\
	{ FI_MAX, 3, 7, 0, 7 }, { FI_SUM, 7, 3, 0, 10 }, { FI_PROD, 7, 3, 0, 21 }, \
	{ FI_LOR, 0, 3, 0, 1 }, { FI_LOR, 0, 0, 0, 0 }, { FI_LAND, 7, 3, 0, 1 },	\
	{ FI_LAND, 7, 0, 0, 0 }, { FI_LXOR, 7, 3, 0, 0 }, { FI_LXOR, 7, 0, 0, 1 }, \
	{ FI_ATOMIC_WRITE, 7, 3, 0, 3 }, { FI_ATOMIC_READ, 7, 3, 0, 7 },		\
	{ FI_CSWAP, 7, 3, 7, 3 }, { FI_CSWAP, 7, 3, 6, 7 },			\
	{ FI_CSWAP_NE, 7, 3, 7, 7 }, { FI_CSWAP_NE, 7, 3, 6, 3 },		\
	{ FI_CSWAP_LE, 7, 3, 7, 3 }, { FI_CSWAP_LE, 7, 3, 8, 7 },		\
	{ FI_CSWAP_LT, 7, 3, 6, 3 }, { FI_CSWAP_LT, 7, 3, 7, 7 },		\
	{ FI_CSWAP_GE, 7, 3, 7, 3 }, { FI_CSWAP_GE, 7, 3, 6, 7 },		\
	{ FI_CSWAP_GT, 7, 3, 8, 3 }, { FI_CSWAP_GT, 7, 3, 7, 7 }

#define BIT_CASES								\
	{ FI_BOR, 6, 3, 0, 7 }, { FI_BAND, 6, 3, 0, 2 }, { FI_BXOR, 6, 3, 0, 5 }, \
	{ FI_MSWAP, 0x55, 0x2a, 0x0f, 0x5a }

/* Each by all calls that take it: two elements in a row, and a third that stays as it is. */
#define OPS(name, datatype, type, ...)						\
TEST_F(atomic, name)								\
{										\
	static const struct { int op; type was, by, compare, is; } cases[] = {	\
		__VA_ARGS__							\
	};									\
										\
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {		\
		type by[2] = { cases[i].by, cases[i].by }, result[2] = { 0 };	\
		type compare[2] = { cases[i].compare, cases[i].compare };	\
		type *at = (type *)(void *)self->to;				\
		enum fi_op op = cases[i].op;					\
		size_t count;							\
										\
		for (int call = 0; call < 3; call++) {				\
			bool valid = call == 0 ?				\
				!fi_atomicvalid(self->ep, datatype, op, &count) : call == 1 ? \
				!fi_fetch_atomicvalid(self->ep, datatype, op, &count) : \
				!fi_compare_atomicvalid(self->ep, datatype, op, &count); \
			ssize_t err;						\
										\
			for (int j = 0; j < 3; j++)				\
				at[j] = cases[i].was;				\
			err = TAKEN(&self->p, call == 0 ?			\
				fi_atomic(self->ep, by, 2, NULL, self->peer, 0, self->key, \
					  datatype, op, NULL) : call == 1 ?	\
				fi_fetch_atomic(self->ep, by, 2, NULL, result, NULL, \
						self->peer, 0, self->key, datatype, op, NULL) : \
				fi_compare_atomic(self->ep, by, 2, NULL, compare, NULL, result, \
						  NULL, self->peer, 0, self->key, datatype, op, \
						  NULL));			\
			EXPECT_EQ(valid ? 0 : -FI_EOPNOTSUPP, err);		\
			EXPECT_EQ(valid, call == 2 ? op >= FI_CSWAP :		\
					 op < FI_CSWAP && (call || op != FI_ATOMIC_READ)); \
			if (!valid)						\
				continue;					\
			DONE(FI_ATOMIC | (call ? FI_READ : FI_WRITE));		\
			EXPECT_TRUE(at[0] == cases[i].is && at[1] == cases[i].is) { \
				TH_LOG("case %zu, call %d", i, call);		\
			}							\
			EXPECT_TRUE(at[2] == cases[i].was);			\
			EXPECT_TRUE(!call || (result[0] == cases[i].was &&	\
					      result[1] == cases[i].was));	\
		}								\
	}									\
}

OPS(int8, FI_INT8, int8_t, CASES(int8_t), BIT_CASES, { FI_MIN, 1, -1, 0, -1 },
	{ FI_SUM, 127, 1, 0, -128 })
OPS(uint8, FI_UINT8, uint8_t, CASES(uint8_t), BIT_CASES, { FI_MIN, 1, 255, 0, 1 })
OPS(int16, FI_INT16, int16_t, CASES(int16_t), BIT_CASES, { FI_MIN, 1, -1, 0, -1 })
OPS(uint16, FI_UINT16, uint16_t, CASES(uint16_t), BIT_CASES, { FI_PROD, 65535, 65535, 0, 1 })
OPS(int32, FI_INT32, int32_t, CASES(int32_t), BIT_CASES, { FI_MAX, 1, -1, 0, 1 },
	{ FI_SUM, INT32_MAX, 1, 0, INT32_MIN })
OPS(uint32, FI_UINT32, uint32_t, CASES(uint32_t), BIT_CASES,
	{ FI_MAX, 1, UINT32_MAX, 0, UINT32_MAX })
OPS(int64, FI_INT64, int64_t, CASES(int64_t), BIT_CASES, { FI_SUM, INT64_MAX, 1, 0, INT64_MIN })
OPS(uint64, FI_UINT64, uint64_t, CASES(uint64_t), BIT_CASES, { FI_SUM, UINT64_MAX, 2, 0, 1 })
OPS(real, FI_FLOAT, float, CASES(float), { FI_SUM, 0.5f, 0.25f, 0, 0.75f })
OPS(real_double, FI_DOUBLE, double, CASES(double), { FI_PROD, 0.5, 0.5, 0, 0.25 })
OPS(real_long, FI_LONG_DOUBLE, long double, CASES(long double))

#define COMPLEX_CASES								\
	{ FI_SUM, 1 + 2 * I, 3 + 4 * I, 0, 4 + 6 * I },				\
	{ FI_PROD, 1 + 2 * I, 3 + 4 * I, 0, -5 + 10 * I },			\
	{ FI_LAND, 2 * I, 3, 0, 1 }, { FI_LOR, 0, 0, 0, 0 }, { FI_LXOR, I, 0, 0, 1 }, \
	{ FI_ATOMIC_WRITE, 1, I, 0, I }, { FI_ATOMIC_READ, I, 1, 0, I },		\
	{ FI_CSWAP, I, 1, I, 1 }, { FI_CSWAP, I, 1, 0, I }, { FI_CSWAP_NE, I, 1, 0, 1 }

OPS(complex_float, FI_FLOAT_COMPLEX, float complex, COMPLEX_CASES)
OPS(complex_double, FI_DOUBLE_COMPLEX, double complex, COMPLEX_CASES)
OPS(complex_long, FI_LONG_DOUBLE_COMPLEX, long double complex, COMPLEX_CASES)

/* ---- calls ------------------------------------------------------------------- */

TEST_F(atomic, valid)
{
	struct fi_atomic_attr attr;
	size_t count = 0;

	EXPECT_EQ(0, fi_query_atomic(self->p.a.domain, FI_UINT64, FI_SUM, &attr, 0));
	EXPECT_EQ(8, attr.size);
	EXPECT_LE(1, attr.count);
	EXPECT_EQ(0, fi_query_atomic(self->p.a.domain, FI_INT8, FI_CSWAP, &attr,
				     FI_COMPARE_ATOMIC));
	EXPECT_EQ(1, attr.size);
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_query_atomic(self->p.a.domain, FI_INT8, FI_CSWAP, &attr,
						  FI_FETCH_ATOMIC));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_atomicvalid(self->ep, FI_DOUBLE, FI_BOR, &count));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_atomicvalid(self->ep, FI_DOUBLE_COMPLEX, FI_MIN, &count));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_compare_atomicvalid(self->ep, FI_FLOAT, FI_MSWAP, &count));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_atomicvalid(self->ep, 99, FI_SUM, &count));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_atomicvalid(self->ep, FI_INT8, 99, &count));
}

/* As many elements as there may be, from several places into several, and of a region of two. */
TEST_F(atomic, places)
{
	struct iovec parts[2] = { { self->to, 12 }, { self->to + 100, REGION - 100 } };
	const struct fi_mr_attr attr = {
		.mr_iov = parts, .iov_count = 2, .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
	};
	uint64_t by[3] = { 10, 20, 30 }, result[3] = { 0 }, was[3] = { 1, 2, 3 }, is[3];
	struct fi_ioc from[2] = { { by, 1 }, { by + 1, 2 } };
	struct fi_ioc to[2] = { { result, 2 }, { result + 2, 1 } };
	struct fi_rma_ioc remote = { .count = 3 };
	const struct fi_msg_atomic msg = {
		.msg_iov = from, .iov_count = 2, .addr = self->peer, .rma_iov = &remote,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
	};
	struct fid_mr *mr;

	ASSERT_EQ(0, fi_mr_regattr(self->p.b.domain, &attr, 0, &mr));
	memcpy(self->to, was, 12);
	memcpy(self->to + 100, (char *)was + 12, 12);
	remote.key = fi_mr_key(mr);
	ASSERT_EQ(0, TAKEN(&self->p, fi_fetch_atomicmsg(self->ep, &msg, to, NULL, 2,
							FI_COMPLETION)));
	DONE(FI_ATOMIC | FI_READ);
	memcpy(is, self->to, 12);
	memcpy((char *)is + 12, self->to + 100, 12);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(was[i], result[i]);
		EXPECT_EQ(was[i] + by[i], is[i]);
	}
	EXPECT_EQ(1, fi_cntr_read(self->p.a.cntr[2]));
	EXPECT_EQ(1, fi_cntr_read(self->p.b.cntr[4]));
	EXPECT_EQ(0, fi_close(&mr->fid));
}

TEST_F(atomic, most)
{
	static uint32_t by[8192], result[8192];
	size_t count;

	ASSERT_EQ(0, fi_fetch_atomicvalid(self->ep, FI_UINT32, FI_SUM, &count));
	ASSERT_GT(sizeof(by) / sizeof(by[0]), count);
	for (size_t i = 0; i < count; i++)
		by[i] = (uint32_t)i;
	/* As many as it takes for answers to wait for room. */
	for (int i = 0; i < 50; i++)
		ASSERT_EQ(0, TAKEN(&self->p, fi_fetch_atomic(self->ep, by, count, NULL, result,
							     NULL, self->peer, 0, self->key,
							     FI_UINT32, FI_SUM, NULL)));
	for (int i = 0; i < 50; i++)
		DONE(FI_ATOMIC | FI_READ);
	for (size_t i = 0; i < count; i++)
		ASSERT_EQ(50 * i, ((uint32_t *)(void *)self->to)[i]);
	EXPECT_EQ(49 * (count - 1), result[count - 1]);
	EXPECT_EQ(-FI_EMSGSIZE, fi_atomic(self->ep, by, count + 1, NULL, self->peer, 0, self->key,
					  FI_UINT32, FI_SUM, NULL));
	EXPECT_EQ(-FI_EINVAL, fi_atomic(self->ep, by, 0, NULL, self->peer, 0, self->key,
					FI_UINT32, FI_SUM, NULL));
}

TEST_F(atomic, inject)
{
	uint64_t by = 5, was = 0;

	ASSERT_EQ(0, TAKEN(&self->p, fi_inject_atomic(self->ep, &by, 1, self->peer, 8, self->key,
						      FI_UINT64, FI_SUM)));
	by = 99;
	ASSERT_EQ(0, TAKEN(&self->p, fi_fetch_atomic(self->ep, NULL, 1, NULL, &was, NULL,
						     self->peer, 8, self->key, FI_UINT64,
						     FI_ATOMIC_READ, NULL)));
	DONE(FI_ATOMIC | FI_READ);
	EXPECT_EQ(5, was);
	EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
	EXPECT_EQ(1, fi_cntr_read(self->p.a.cntr[3]));
	EXPECT_EQ(1, fi_cntr_read(self->p.b.cntr[5]));
}

/* ---- what may not be ------------------------------------------------------------ */

static int failure(struct pair *p, uint64_t key, uint64_t at, int call, enum fi_op op)
{
	static uint64_t by[2], compare[2], result[2];
	struct fi_cq_err_entry error = { 0 };
	struct fid_ep *ep = p->a.ep;
	ssize_t err = TAKEN(p, call == 0 ?
		fi_atomic(ep, by, 2, NULL, p->a.peer, at, key, FI_UINT64, op, NULL) : call == 1 ?
		fi_fetch_atomic(ep, by, 2, NULL, result, NULL, p->a.peer, at, key, FI_UINT64, op,
				NULL) :
		fi_compare_atomic(ep, by, 2, NULL, compare, NULL, result, NULL, p->a.peer, at, key,
				  FI_UINT64, op, NULL));

	if (err)
		return (int)err;
	return next_error(p->a.tx, &p->b, &error) == 1 ? error.err : -1;
}

TEST_F(atomic, refused)
{
	struct fid_mr *reads, *writes;
	struct fi_cq_tagged_entry entry;
	uint64_t value = 0;

	for (int call = 0; call < 3; call++) {
		enum fi_op op = call == 2 ? FI_CSWAP : FI_SUM;

		EXPECT_EQ(FI_EKEYREJECTED, failure(&self->p, ~self->key, 0, call, op));
		EXPECT_EQ(FI_EACCES, failure(&self->p, self->key, REGION - 15, call, op));
		EXPECT_EQ(FI_EACCES, failure(&self->p, self->key, UINT64_MAX - 7, call, op));
	}
	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->to, REGION, FI_REMOTE_READ, 0, 1, 0,
			       &reads, NULL));
	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->to, REGION, FI_REMOTE_WRITE, 0, 2, 0,
			       &writes, NULL));
	EXPECT_EQ(FI_EACCES, failure(&self->p, fi_mr_key(reads), 0, 0, FI_SUM));
	EXPECT_EQ(FI_EACCES, failure(&self->p, fi_mr_key(reads), 0, 1, FI_SUM));
	EXPECT_EQ(FI_EACCES, failure(&self->p, fi_mr_key(reads), 0, 2, FI_CSWAP));
	EXPECT_EQ(FI_EACCES, failure(&self->p, fi_mr_key(writes), 0, 1, FI_ATOMIC_READ));
	EXPECT_EQ(FI_EACCES, failure(&self->p, fi_mr_key(writes), 0, 1, FI_SUM));
	/* Which says that the peer is there still. */
	ASSERT_EQ(0, TAKEN(&self->p, fi_fetch_atomic(self->ep, NULL, 1, NULL, &value, NULL,
						     self->peer, 0, fi_mr_key(reads), FI_UINT64,
						     FI_ATOMIC_READ, NULL)));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	for (size_t i = 0; i < REGION; i++)
		ASSERT_EQ(0, self->to[i]);
	EXPECT_EQ(0, fi_close(&reads->fid));
	EXPECT_EQ(0, fi_close(&writes->fid));
}

TEST_HARNESS_MAIN
