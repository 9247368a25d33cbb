// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: regions, fi_rma(3) and fi_mr(3), and who may not reach them. */
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "pair.h"

/* What libfabric 2 deprecates has to work as long as libfabric knows it. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define MAX	(1 << 20)
#define ALL	(FI_REMOTE_READ | FI_REMOTE_WRITE)

FIXTURE(rma) {
	struct pair p;
	unsigned char *here;
	unsigned char *there;
	struct fid_mr *mr;
};

FIXTURE_VARIANT(rma) {
	bool no_cma;
	int mr_mode;
};

FIXTURE_VARIANT_ADD(rma, cma) {
	.no_cma = false,
};

FIXTURE_VARIANT_ADD(rma, pieces) {
	.no_cma = true,
};

FIXTURE_VARIANT_ADD(rma, given_keys) {
	.mr_mode = -1,
};

FIXTURE_SETUP(rma)
{
	const struct options options = { .no_cma = variant->no_cma, .mr_mode = variant->mr_mode };

	self->here = calloc(1, MAX);
	self->there = calloc(1, MAX);
	ASSERT_EQ(0, pair_open(&self->p, &options));
	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->there, MAX, ALL, 0, 4711, 0, &self->mr,
			       NULL));
}

FIXTURE_TEARDOWN(rma)
{
	if (self->mr)
		EXPECT_EQ(0, fi_close(&self->mr->fid));
	pair_close(&self->p);
	free(self->here);
	free(self->there);
}

TEST_F(rma, write_and_read)
{
	static const size_t lengths[] = { 0, 1, 8, 16384, 16640, 16641, 57344, 57345, 300000 };
	struct fi_cq_tagged_entry entry;
	uint64_t key = fi_mr_key(self->mr);
	int context;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i];

		memset(self->there, 0xee, MAX);
		fill(self->here, n, (unsigned int)i);
		ASSERT_EQ(0, fi_write(self->p.a.ep, self->here, n, NULL, 0, 1000, key, &context));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry)) {
			TH_LOG("write of %zu", n);
		}
		EXPECT_EQ(&context, entry.op_context);
		EXPECT_EQ(FI_WRITE | FI_RMA, entry.flags);
		EXPECT_EQ(true, filled(self->there + 1000, n, (unsigned int)i));
		EXPECT_EQ(0xee, self->there[999]);
		EXPECT_EQ(0xee, self->there[1000 + n]);
		memset(self->here, 0, MAX);
		ASSERT_EQ(0, fi_read(self->p.a.ep, self->here, n, NULL, 0, 1000, key, &context));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry)) {
			TH_LOG("read of %zu", n);
		}
		EXPECT_EQ(FI_READ | FI_RMA, entry.flags);
		EXPECT_EQ(true, filled(self->here, n, (unsigned int)i));
		EXPECT_EQ(0, self->here[n]);
	}
	EXPECT_EQ(9, fi_cntr_read(self->p.a.cntr[3]));
	EXPECT_EQ(9, fi_cntr_read(self->p.a.cntr[2]));
	EXPECT_EQ(9, fi_cntr_read(self->p.b.cntr[4]));
	EXPECT_EQ(9, fi_cntr_read(self->p.b.cntr[5]));
	EXPECT_EQ(true, none(self->p.b.rx, &self->p.a));
}

TEST_F(rma, forms)
{
	struct iovec iov[2] = { { self->here, 100 }, { self->here + 200, 50000 } };
	struct fi_rma_iov remote = { .addr = 7, .len = 50100, .key = fi_mr_key(self->mr) };
	struct fi_msg_rma msg = { .msg_iov = iov, .iov_count = 2, .rma_iov = &remote,
				  .rma_iov_count = 1, .data = 5 };
	struct fi_cq_tagged_entry entry;

	fill(self->here, MAX, 1);
	ASSERT_EQ(0, fi_writev(self->p.a.ep, iov, NULL, 2, 0, 7, remote.key, NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(0, memcmp(self->there + 7, self->here, 100));
	EXPECT_EQ(0, memcmp(self->there + 107, self->here + 200, 50000));
	memset(self->there, 0, MAX);
	ASSERT_EQ(0, fi_writemsg(self->p.a.ep, &msg, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(0, memcmp(self->there + 107, self->here + 200, 50000));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_EQ(5, entry.data);
	EXPECT_EQ(50100, entry.len);
	EXPECT_EQ(FI_REMOTE_WRITE | FI_RMA | FI_REMOTE_CQ_DATA, entry.flags);
	ASSERT_EQ(0, fi_inject_write(self->p.a.ep, "hello", 5, 0, 300, remote.key));
	ASSERT_EQ(0, fi_inject_writedata(self->p.a.ep, "again", 5, 6, 0, 305, remote.key));
	ASSERT_EQ(1, next_entry(self->p.b.rx, &self->p.a, &entry));
	EXPECT_EQ(6, entry.data);
	EXPECT_EQ(0, memcmp(self->there + 300, "helloagain", 10));
	EXPECT_EQ(true, none(self->p.a.tx, &self->p.b));
	memset(self->here, 0, MAX);
	ASSERT_EQ(0, fi_readmsg(self->p.a.ep, &msg, 0));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(0, memcmp(self->here, self->there + 7, 100));
	EXPECT_EQ(0, memcmp(self->here + 200, self->there + 107, 50000));
	/* FI_INJECT as the end point's own flag is for what it sends. */
	ASSERT_EQ(0, fi_control(&self->p.a.ep->fid, FI_SETOPSFLAG,
				&(uint64_t){ FI_TRANSMIT | FI_INJECT }));
	ASSERT_EQ(0, fi_readv(self->p.a.ep, iov, NULL, 2, 0, 7, remote.key, NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	remote.len = 50099;
	EXPECT_EQ(-FI_EINVAL, fi_readmsg(self->p.a.ep, &msg, 0));
}

/* In and out, short and long: the error is this, and nothing was touched. */
static bool refused(struct pair *p, uint64_t address, uint64_t key, int error,
		    unsigned char *here, const unsigned char *there)
{
	for (size_t n = 8; n <= 80000; n *= 10000) {
		for (int read = 0; read < 2; read++) {
			struct fi_cq_err_entry entry;

			memset(here, 0x55, n);
			if (read ? fi_read(p->a.ep, here, n, NULL, 0, address, key, NULL) :
				   fi_write(p->a.ep, here, n, NULL, 0, address, key, NULL))
				return false;
			if (next_error(p->a.tx, &p->b, &entry) != 1 || entry.err != error)
				return false;
			if (here[0] != 0x55 || here[n - 1] != 0x55)
				return false;
			for (size_t i = 0; i < MAX; i++)
				if (there[i] == 0x55)
					return false;
		}
	}
	return true;
}

/* A key that is not that of a region opens nothing, however near. */
TEST_F(rma, wrong_key)
{
	uint64_t key = fi_mr_key(self->mr);

	EXPECT_EQ(true, refused(&self->p, 0, key + 1, FI_EKEYREJECTED, self->here, self->there));
	EXPECT_EQ(true, refused(&self->p, 0, key ^ 1ULL << 63, FI_EKEYREJECTED, self->here,
				self->there));
	EXPECT_EQ(true, refused(&self->p, 0, 0, FI_EKEYREJECTED, self->here, self->there));
	/* And a key that did, no longer. */
	ASSERT_EQ(0, fi_close(&self->mr->fid));
	self->mr = NULL;
	EXPECT_EQ(true, refused(&self->p, 0, key, FI_EKEYREJECTED, self->here, self->there));
	EXPECT_EQ(12, fi_cntr_readerr(self->p.a.cntr[2]) + fi_cntr_readerr(self->p.a.cntr[3]) - 4);
	EXPECT_EQ(0, fi_cntr_read(self->p.b.cntr[5]));
}

TEST_F(rma, bounds)
{
	uint64_t key = fi_mr_key(self->mr);

	EXPECT_EQ(true, refused(&self->p, MAX - 7, key, FI_EACCES, self->here, self->there));
	EXPECT_EQ(true, refused(&self->p, MAX + 1, key, FI_EACCES, self->here, self->there));
	EXPECT_EQ(true, refused(&self->p, ~7ULL, key, FI_EACCES, self->here, self->there));
}

/* What a region was registered for, and nothing else. */
TEST_F(rma, access)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	struct fid_mr *mr;

	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->there, MAX, FI_REMOTE_READ, 0, 1, 0, &mr,
			       NULL));
	memset(self->here, 0x55, 8);
	ASSERT_EQ(0, fi_write(self->p.a.ep, self->here, 8, NULL, 0, 0, fi_mr_key(mr), NULL));
	ASSERT_EQ(1, next_error(self->p.a.tx, &self->p.b, &error));
	EXPECT_EQ(FI_EACCES, error.err);
	EXPECT_EQ(0, self->there[0]);
	ASSERT_EQ(0, fi_read(self->p.a.ep, self->here, 8, NULL, 0, 0, fi_mr_key(mr), NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(0, fi_close(&mr->fid));
}

/* A key that leaked is of no use at another domain, not even of the same process. */
TEST_F(rma, leaked_key)
{
	struct fi_cq_err_entry error;

	memset(self->here, 0x55, 8);
	ASSERT_EQ(0, fi_write(self->p.b.ep, self->here, 8, NULL, 0, 0, fi_mr_key(self->mr), NULL));
	ASSERT_EQ(1, next_error(self->p.b.tx, &self->p.a, &error));
	EXPECT_EQ(FI_EKEYREJECTED, error.err);
	EXPECT_EQ(0, self->there[0]);
}

/* Keys of the application's, or of 64 random bits. */
TEST_F(rma, keys)
{
	struct iovec iov[2] = { { self->there, 10 }, { self->there + 100, 10 } };
	struct fi_cq_tagged_entry entry;
	struct fid_mr *mr;

	if (variant->mr_mode < 0) {
		EXPECT_EQ(4711, fi_mr_key(self->mr));
		EXPECT_EQ(-FI_ENOKEY, fi_mr_reg(self->p.b.domain, self->there, 1, ALL, 0, 4711, 0,
						&mr, NULL));
	} else {
		EXPECT_NE(4711, fi_mr_key(self->mr));
	}
	ASSERT_EQ(0, fi_mr_regv(self->p.b.domain, iov, 2, ALL, 0, 4712, 0, &mr, &iov));
	EXPECT_EQ(&iov, mr->fid.context);
	EXPECT_NE(fi_mr_key(mr), fi_mr_key(self->mr));
	fill(self->here, 20, 1);
	ASSERT_EQ(0, fi_write(self->p.a.ep, self->here, 20, NULL, 0, 0, fi_mr_key(mr), NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(0, memcmp(self->there, self->here, 10));
	EXPECT_EQ(0, memcmp(self->there + 100, self->here + 10, 10));
	EXPECT_EQ(-FI_EBUSY, fi_close(&self->p.b.domain->fid));
	EXPECT_EQ(0, fi_close(&mr->fid));
}

/* What a peer writes there is counted, and neither what it reads nor what it writes elsewhere. */
TEST_F(rma, counted_region)
{
	static const size_t lengths[] = { 8, 70000 };
	struct fi_cntr_attr attr = { 0 };
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *cntr, *foreign;
	struct fid_mr *mr;

	ASSERT_EQ(0, fi_cntr_open(self->p.b.domain, &attr, &cntr, NULL));
	ASSERT_EQ(0, fi_cntr_open(self->p.a.domain, &attr, &foreign, NULL));
	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, self->there, MAX, ALL, 0, 1, FI_RMA_EVENT, &mr,
			       NULL));
	EXPECT_EQ(-FI_EBADFLAGS, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE | FI_SEND));
	EXPECT_EQ(-FI_EINVAL, fi_mr_bind(mr, &foreign->fid, FI_REMOTE_WRITE));
	EXPECT_EQ(-FI_EINVAL, fi_mr_bind(mr, &self->p.b.rx->fid, FI_REMOTE_WRITE));
	ASSERT_EQ(0, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	EXPECT_EQ(-FI_EINVAL, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	EXPECT_EQ(0, fi_mr_bind(mr, &self->p.b.ep->fid, 0));
	EXPECT_EQ(0, fi_mr_enable(mr));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, fi_write(self->p.a.ep, self->here, lengths[i], NULL, 0, 0,
				      fi_mr_key(mr), NULL));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		ASSERT_EQ(0, fi_write(self->p.a.ep, self->here, lengths[i], NULL, 0, 0,
				      fi_mr_key(self->mr), NULL));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		ASSERT_EQ(0, fi_read(self->p.a.ep, self->here, lengths[i], NULL, 0, 0,
				     fi_mr_key(mr), NULL));
		ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
		EXPECT_EQ(i + 1, fi_cntr_read(cntr));
	}
	EXPECT_EQ(-FI_EBUSY, fi_close(&cntr->fid));
	EXPECT_EQ(0, fi_close(&mr->fid));
	EXPECT_EQ(0, fi_close(&cntr->fid));
	EXPECT_EQ(0, fi_close(&foreign->fid));
}

/* Nobody needs raw keys, and whoever uses them gets what fi_mr_key() says. */
TEST_F(rma, raw_key)
{
	struct iovec iov = { self->there, MAX };
	struct fi_cq_tagged_entry entry;
	uint64_t base = 1, key = 0;
	uint8_t raw[16];
	size_t size = 4;

	EXPECT_EQ(-FI_ETOOSMALL, fi_mr_raw_attr(self->mr, &base, raw, &size, 0));
	EXPECT_EQ(8, size);
	size = sizeof(raw);
	ASSERT_EQ(0, fi_mr_raw_attr(self->mr, &base, raw, &size, 0));
	EXPECT_EQ(8, size);
	EXPECT_EQ(0, base);
	EXPECT_EQ(-FI_EINVAL, fi_mr_map_raw(self->p.a.domain, base, raw, 7, &key, 0));
	ASSERT_EQ(0, fi_mr_map_raw(self->p.a.domain, base, raw, size, &key, 0));
	ASSERT_EQ(0, fi_write(self->p.a.ep, self->here, 8, NULL, 0, base, key, NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(0, fi_mr_unmap_key(self->p.a.domain, key));
	EXPECT_EQ(0, fi_mr_refresh(self->mr, &iov, 1, 0));
}

/* Flags of other memory than ours; what is said of devices counts with FI_HMEM only. */
TEST_F(rma, registering)
{
	struct iovec iov = { self->there, MAX };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = ALL, .requested_key = 9,
		.iface = FI_HMEM_CUDA,
	};
	struct fid_mr *mr;

	EXPECT_EQ(-FI_EBADFLAGS, fi_mr_regattr(self->p.b.domain, &attr, FI_RMA_PMEM, &mr));
	ASSERT_EQ(0, fi_mr_regattr(self->p.b.domain, &attr, 0, &mr));
	EXPECT_EQ(0, fi_close(&mr->fid));
}

/* Any range of addresses may be registered, whatever is behind it, fi_domain(3). */
TEST_F(rma, all_addresses)
{
	struct fi_cq_tagged_entry entry;
	struct fid_mr *all, *none;

	ASSERT_EQ(0, fi_mr_reg(self->p.b.domain, NULL, SIZE_MAX, ALL, 0, 4712, 0, &all, NULL));
	EXPECT_EQ(-FI_EINVAL, fi_mr_reg(self->p.b.domain, self->there, SIZE_MAX, ALL, 0, 4713, 0,
					&none, NULL));
	fill(self->here, 100000, 7);
	ASSERT_EQ(0, fi_write(self->p.a.ep, self->here, 100000, NULL, 0, (uintptr_t)self->there,
			      fi_mr_key(all), NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(true, filled(self->there, 100000, 7));
	memset(self->here, 0, 100000);
	ASSERT_EQ(0, fi_read(self->p.a.ep, self->here, 100, NULL, 0, (uintptr_t)self->there,
			     fi_mr_key(all), NULL));
	ASSERT_EQ(1, next_entry(self->p.a.tx, &self->p.b, &entry));
	EXPECT_EQ(true, filled(self->here, 100, 7));
	EXPECT_EQ(0, fi_close(&all->fid));
}

/* A region that is closed while pieces of it are under way: an error, and no crash. */
TEST_F(rma, closed_meanwhile)
{
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	ssize_t got;

	ASSERT_EQ(0, fi_read(self->p.a.ep, self->here, MAX, NULL, 0, 0, fi_mr_key(self->mr), NULL));
	(void)fi_cntr_read(self->p.b.cntr[0]);
	ASSERT_EQ(0, fi_close(&self->mr->fid));
	self->mr = NULL;
	free(self->there);
	self->there = NULL;
	got = next_entry(self->p.a.tx, &self->p.b, &entry);
	if (got == -FI_EAVAIL) {
		ASSERT_EQ(1, fi_cq_readerr(self->p.a.tx, &error, 0));
		EXPECT_EQ(FI_EKEYREJECTED, error.err);
	} else {
		EXPECT_EQ(1, got);
	}
}

/* FI_MR_BASIC: addresses are the target's own. */
TEST(virtual_addresses)
{
	const struct options options = { .mr_mode = FI_MR_BASIC };
	struct fi_cq_tagged_entry entry;
	char there[16] = "";
	struct fid_mr *mr;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_mr_reg(p.b.domain, there, 16, ALL, 0, 0, 0, &mr, NULL));
	ASSERT_EQ(0, fi_write(p.a.ep, "hello", 6, NULL, 0, (uintptr_t)there + 4, fi_mr_key(mr),
			      NULL));
	ASSERT_EQ(1, next_entry(p.a.tx, &p.b, &entry));
	EXPECT_STREQ("hello", there + 4);
	EXPECT_EQ(0, fi_close(&mr->fid));
	pair_close(&p);
}

/* FI_REG_MR: that a region is ready is an event. */
TEST(registered_event)
{
	const struct options options = { 0 };
	struct fi_info *info = pair_info(&options);
	struct fi_eq_entry entry;
	char there[16], *context = there;
	struct fid_mr *mr;
	uint32_t event;
	struct end end;

	ASSERT_NE(NULL, info);
	ASSERT_EQ(0, end_open(&end, info, &options));
	EXPECT_EQ(-FI_EBADFLAGS, fi_domain_bind(end.domain, &end.eq->fid, FI_SEND));
	ASSERT_EQ(0, fi_domain_bind(end.domain, &end.eq->fid, FI_REG_MR));
	ASSERT_EQ(0, fi_mr_reg(end.domain, there, 16, ALL, 0, 1, 0, &mr, context));
	ASSERT_EQ(sizeof(entry), fi_eq_read(end.eq, &event, &entry, sizeof(entry), 0));
	EXPECT_EQ(FI_MR_COMPLETE, event);
	EXPECT_EQ(&mr->fid, entry.fid);
	EXPECT_EQ(context, entry.context);
	EXPECT_EQ(-FI_EBUSY, fi_close(&end.eq->fid));
	EXPECT_EQ(0, fi_close(&mr->fid));
	end_close(&end);
	fi_freeinfo(info);
}

TEST_HARNESS_MAIN
