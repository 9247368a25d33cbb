// SPDX-License-Identifier: MIT
#include "endpoint/atomic.h"

#include <string.h>

#include "rdm/link.h"
#include "transfer/post.h"
#include "transfer/stream.h"

static struct hf_ep *of(struct fid_ep *fid)
{
	return hf_container(fid, struct hf_ep, fid);
}

/* ---- what there is ------------------------------------------------------- */

static size_t size_of(unsigned int datatype)
{
	static const uint8_t sizes[FI_DATATYPE_LAST] = {
		[FI_INT8] = 1,
		[FI_UINT8] = 1,
		[FI_INT16] = 2,
		[FI_UINT16] = 2,
		[FI_INT32] = 4,
		[FI_UINT32] = 4,
		[FI_INT64] = 8,
		[FI_UINT64] = 8,
		[FI_FLOAT] = sizeof(float),
		[FI_DOUBLE] = sizeof(double),
		[FI_LONG_DOUBLE] = sizeof(long double),
		[FI_FLOAT_COMPLEX] = 2 * sizeof(float),
		[FI_DOUBLE_COMPLEX] = 2 * sizeof(double),
		[FI_LONG_DOUBLE_COMPLEX] = 2 * sizeof(long double),
	};

	return datatype < FI_DATATYPE_LAST ? sizes[datatype] : 0;
}

#define BIT(op)		(1U << (op))
#define ARITHMETIC	(BIT(FI_SUM) | BIT(FI_PROD) | BIT(FI_LOR) | BIT(FI_LAND) | BIT(FI_LXOR))
#define ORDERED		(BIT(FI_MIN) | BIT(FI_MAX) | BIT(FI_CSWAP_LE) | BIT(FI_CSWAP_LT) | \
			 BIT(FI_CSWAP_GE) | BIT(FI_CSWAP_GT))
#define BITS		(BIT(FI_BOR) | BIT(FI_BAND) | BIT(FI_BXOR) | BIT(FI_MSWAP))
#define ANY_TYPE	(ARITHMETIC | BIT(FI_ATOMIC_READ) | BIT(FI_ATOMIC_WRITE) | \
			 BIT(FI_CSWAP) | BIT(FI_CSWAP_NE))
#define COMPARING	(BIT(FI_CSWAP) | BIT(FI_CSWAP_NE) | BIT(FI_CSWAP_LE) | BIT(FI_CSWAP_LT) | \
			 BIT(FI_CSWAP_GE) | BIT(FI_CSWAP_GT) | BIT(FI_MSWAP))

static uint32_t ops_of_type(unsigned int datatype)
{
	if (datatype <= FI_UINT64)
		return ANY_TYPE | ORDERED | BITS;
	if (datatype == FI_FLOAT || datatype == FI_DOUBLE || datatype == FI_LONG_DOUBLE)
		return ANY_TYPE | ORDERED;
	return ANY_TYPE;
}

static uint32_t ops_of_kind(unsigned int kind)
{
	if (kind == HF_ATOMIC_COMPARE)
		return COMPARING;
	return ~COMPARING & ~(kind == HF_ATOMIC_BASE ? BIT(FI_ATOMIC_READ) : 0);
}

static bool is_valid(unsigned int kind, unsigned int datatype, unsigned int op)
{
	return size_of(datatype) && op < FI_ATOMIC_OP_LAST && kind < HF_ATOMIC_KINDS &&
	       BIT(op) & ops_of_type(datatype) & ops_of_kind(kind);
}

static int how_many(unsigned int kind, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	if (!is_valid(kind, datatype, op))
		return -FI_EOPNOTSUPP;
	*count = HF_ATOMIC_BYTES / size_of(datatype);
	return 0;
}

int hf_atomic_query(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		    struct fi_atomic_attr *attr, uint64_t flags)
{
	unsigned int kind = flags & FI_COMPARE_ATOMIC ? HF_ATOMIC_COMPARE :
			    flags & FI_FETCH_ATOMIC ? HF_ATOMIC_FETCH : HF_ATOMIC_BASE;
	int err;

	(void)domain;
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) ||
	    (flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC))
		return -FI_EOPNOTSUPP;
	err = how_many(kind, datatype, op, &attr->count);
	if (!err)
		attr->size = size_of(datatype);
	return err;
}

/* ---- the target ---------------------------------------------------------- */

static uint64_t packed(const struct hf_atomic *atomic)
{
	return atomic->datatype | atomic->op << 8 | atomic->kind << 16 |
	       (uint64_t)atomic->count << 32;
}

size_t hf_atomic_bytes(const struct hf_atomic *atomic)
{
	return atomic->count * size_of(atomic->datatype);
}

/* Of operands, and of what is compared. */
static size_t payload_of(const struct hf_atomic *atomic)
{
	if (atomic->op == FI_ATOMIC_READ)
		return 0;
	return hf_atomic_bytes(atomic) * (atomic->kind == HF_ATOMIC_COMPARE ? 2 : 1);
}

bool hf_atomic_parse(uint64_t data, uint64_t length, struct hf_atomic *atomic)
{
	*atomic = (struct hf_atomic){
		.datatype = (uint8_t)data,
		.op = (uint8_t)(data >> 8),
		.kind = (uint8_t)(data >> 16),
		.count = (uint32_t)(data >> 32),
	};
	return is_valid(atomic->kind, atomic->datatype, atomic->op) && atomic->count &&
	       atomic->count <= HF_ATOMIC_BYTES / size_of(atomic->datatype) &&
	       length == payload_of(atomic);
}

uint64_t hf_atomic_access(const struct hf_atomic *atomic)
{
	uint64_t access = atomic->op == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE;

	return atomic->kind == HF_ATOMIC_BASE ? access : access | FI_REMOTE_READ;
}

/* ---- calls --------------------------------------------------------------- */

/* Up to HF_IOV_LIMIT places, in elements. */
struct places {
	const struct fi_ioc *ioc;
	size_t count;
};

struct call {
	unsigned int kind;
	enum fi_datatype datatype;
	enum fi_op op;
	struct places from;
	struct places compare;
	struct places result;
	fi_addr_t peer;
	struct hf_target target;
	void *context;
	uint64_t flags;
};

static int span_of(const struct places *places, size_t size, struct hf_span *span)
{
	struct iovec iov[HF_IOV_LIMIT];

	if (!places->count || places->count > HF_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < places->count; i++) {
		if (places->ioc[i].count > HF_ATOMIC_BYTES / size)
			return -FI_EMSGSIZE;
		if (places->ioc[i].count && !places->ioc[i].addr)
			return -FI_EINVAL;
		iov[i].iov_base = places->ioc[i].addr;
		iov[i].iov_len = places->ioc[i].count * size;
	}
	return hf_span_set(span, iov, places->count);
}

static int send_it(struct hf_ep *ep, struct hf_post *post, const struct call *call,
		   const struct hf_atomic *atomic, const struct hf_span *payload,
		   const struct hf_span *result)
{
	struct hf_header header = {
		.op = HF_ATOMIC, .length = payload->length, .data = packed(atomic)
	};
	int err = hf_post_check(ep, post);
	struct hf_work *work;

	if (err)
		return err;
	work = hf_work_new(&ep->works, call->kind == HF_ATOMIC_BASE ? HF_WORK_ATOMIC :
								      HF_WORK_FETCH);
	if (!work)
		return -FI_EAGAIN;
	header.id = work->id;
	work->span = *result;
	work->length = result->length;
	err = hf_stream_send(ep, &header, &call->target, sizeof(call->target), payload);
	return hf_post_begun(ep, post, work, err);
}

/* All places have as many elements, which is what is meant at the target. */
static int spans_of(const struct call *call, struct hf_span *from, struct hf_span *compare,
		    struct hf_span *result)
{
	size_t size = size_of(call->datatype);
	int err = 0;

	from->length = 0;
	compare->length = 0;
	result->length = 0;
	from->count = 0;
	compare->count = 0;
	result->count = 0;
	if (call->kind != HF_ATOMIC_BASE)
		err = span_of(&call->result, size, result);
	if (!err && call->op != FI_ATOMIC_READ)
		err = span_of(&call->from, size, from);
	if (!err && call->kind == HF_ATOMIC_COMPARE)
		err = span_of(&call->compare, size, compare);
	if (err)
		return err;
	if (call->op == FI_ATOMIC_READ)
		return result->length ? 0 : -FI_EINVAL;
	if (!from->length || (call->kind != HF_ATOMIC_BASE && result->length != from->length) ||
	    (call->kind == HF_ATOMIC_COMPARE && compare->length != from->length))
		return -FI_EINVAL;
	return 0;
}

static ssize_t atomic_any(struct hf_ep *ep, const struct call *call)
{
	unsigned char operands[2 * HF_ATOMIC_BYTES];
	struct hf_span from, compare, result, payload;
	struct hf_atomic atomic;
	struct hf_post post;
	struct hf_ep *to;
	uint64_t length;
	int err;

	if (!is_valid(call->kind, call->datatype, call->op))
		return -FI_EOPNOTSUPP;
	err = spans_of(call, &from, &compare, &result);
	if (err)
		return err;
	length = from.length ? from.length : result.length;
	if (length > HF_ATOMIC_BYTES)
		return -FI_EMSGSIZE;
	atomic = (struct hf_atomic){
		.datatype = (uint8_t)call->datatype,
		.op = (uint8_t)call->op,
		.kind = (uint8_t)call->kind,
		.count = (uint32_t)(length / size_of(call->datatype)),
	};
	length = hf_span_get(&from, operands);
	length += hf_span_get(&compare, operands + length);
	hf_span_one(&payload, operands, length);
	hf_post_call(&post, call->context, call->flags & ~FI_REMOTE_CQ_DATA, 0);
	post.span = from;
	err = hf_post_fits(&post);
	if (err)
		return err;
	hf_domain_lock(ep->domain);
	err = hf_link_toward(ep, call->peer, &to);
	if (!err)
		err = send_it(to, &post, call, &atomic, &payload, &result);
	hf_domain_unlock(ep->domain);
	return err;
}

#define ONE(name, data, n)	const struct fi_ioc name = { (void *)(uintptr_t)(data), n }
#define CALL(kind_, flags_)							\
	struct call call = {							\
		.kind = (kind_), .datatype = datatype, .op = op, .peer = dest,	\
		.target = { key, addr }, .context = context, .flags = (flags_),	\
	}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	CALL(HF_ATOMIC_BASE, of(fid)->tx_flags);

	(void)desc;
	call.from = (struct places){ iov, count };
	return atomic_any(of(fid), &call);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	ONE(from, buf, count);

	(void)desc;
	return atomic_writev(fid, &from, NULL, 1, dest, addr, key, datatype, op, context);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype,
			     enum fi_op op)
{
	void *context = NULL;
	ONE(from, buf, count);
	CALL(HF_ATOMIC_BASE, FI_INJECT | HF_POST_QUIET);

	call.from = (struct places){ &from, 1 };
	return atomic_any(of(fid), &call);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	CALL(HF_ATOMIC_FETCH, of(fid)->tx_flags);

	(void)desc;
	(void)result_desc;
	call.from = (struct places){ iov, count };
	call.result = (struct places){ resultv, result_count };
	return atomic_any(of(fid), &call);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
				uint64_t key, enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	struct fi_ioc to = { result, count };
	ONE(from, buf, count);

	(void)desc;
	(void)result_desc;
	return atomic_readwritev(fid, &from, NULL, 1, &to, NULL, 1, dest, addr, key, datatype,
				 op, context);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv,
				 void **result_desc, size_t result_count, fi_addr_t dest,
				 uint64_t addr, uint64_t key, enum fi_datatype datatype,
				 enum fi_op op, void *context)
{
	CALL(HF_ATOMIC_COMPARE, of(fid)->tx_flags);

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	call.from = (struct places){ iov, count };
	call.compare = (struct places){ comparev, compare_count };
	call.result = (struct places){ resultv, result_count };
	return atomic_any(of(fid), &call);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc to = { result, count };
	ONE(from, buf, count);
	ONE(with, compare, count);

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return atomic_compwritev(fid, &from, NULL, 1, &with, NULL, 1, &to, NULL, 1, dest, addr,
				 key, datatype, op, context);
}

/* Of the calls with a message; @call has its places of compared bytes and results. */
static ssize_t atomic_msg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct call *call)
{
	uint64_t count = 0;

	if (msg->rma_iov_count != 1)
		return -FI_EINVAL;
	call->datatype = msg->datatype;
	call->op = msg->op;
	call->from = (struct places){ msg->msg_iov, msg->iov_count };
	call->peer = msg->addr;
	call->target = (struct hf_target){ msg->rma_iov->key, msg->rma_iov->addr };
	call->context = msg->context;
	call->flags = hf_post_flags(of(fid), call->flags);
	if (msg->op == FI_ATOMIC_READ)
		call->from = call->result;
	for (size_t i = 0; i < call->from.count && i < HF_IOV_LIMIT; i++)
		count += call->from.ioc[i].count;
	return msg->rma_iov->count == count ? atomic_any(of(fid), call) : -FI_EINVAL;
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			       uint64_t flags)
{
	struct call call = { .kind = HF_ATOMIC_BASE, .flags = flags };

	return atomic_msg(fid, msg, &call);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct call call = {
		.kind = HF_ATOMIC_FETCH, .flags = flags, .result = { resultv, result_count }
	};

	(void)result_desc;
	return atomic_msg(fid, msg, &call);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv,
				   void **result_desc, size_t result_count, uint64_t flags)
{
	struct call call = {
		.kind = HF_ATOMIC_COMPARE,
		.flags = flags,
		.compare = { comparev, compare_count },
		.result = { resultv, result_count },
	};

	(void)compare_desc;
	(void)result_desc;
	return atomic_msg(fid, msg, &call);
}

static int writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep;
	return how_many(HF_ATOMIC_BASE, datatype, op, count);
}

static int readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			  size_t *count)
{
	(void)ep;
	return how_many(HF_ATOMIC_FETCH, datatype, op, count);
}

static int compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			  size_t *count)
{
	(void)ep;
	return how_many(HF_ATOMIC_COMPARE, datatype, op, count);
}

struct fi_ops_atomic hf_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = writevalid,
	.readwritevalid = readwritevalid,
	.compwritevalid = compwritevalid,
};
