// SPDX-License-Identifier: MIT
/* The calls that a connection does not have: each is refused. */
#include "endpoint/absent.h"

#include <rdma/fi_errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- tags ---------------------------------------------------------------- */

static ssize_t no_tag_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			   uint64_t tag, uint64_t ignore, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			    size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
			    void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			      uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t dest, uint64_t tag, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			    size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
			      uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			     uint64_t tag)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_tag_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest, uint64_t tag)
{
	return -FI_ENOSYS;
}

struct fi_ops_tagged hf_no_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = no_tag_recv,
	.recvv = no_tag_recvv,
	.recvmsg = no_tag_recvmsg,
	.send = no_tag_send,
	.sendv = no_tag_sendv,
	.sendmsg = no_tag_sendmsg,
	.inject = no_tag_inject,
	.senddata = no_tag_senddata,
	.injectdata = no_tag_injectdata,
};

/* ---- atomic operations --------------------------------------------------- */

static ssize_t absent_write(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t absent_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			     size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t absent_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			       uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t absent_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype,
			     enum fi_op op)
{
	return -FI_ENOSYS;
}

static ssize_t absent_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
				uint64_t key, enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	return -FI_ENOSYS;
}

static ssize_t absent_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	return -FI_ENOSYS;
}

static ssize_t absent_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t absent_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t absent_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev,
				 void **compare_desc, size_t compare_count,
				 struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	return -FI_ENOSYS;
}

static ssize_t absent_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv,
				   void **result_desc, size_t result_count, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int absent_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	return -FI_ENOSYS;
}

static int absent_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	return -FI_ENOSYS;
}

static int absent_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	return -FI_ENOSYS;
}

struct fi_ops_atomic hf_no_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = absent_write,
	.writev = absent_writev,
	.writemsg = absent_writemsg,
	.inject = absent_inject,
	.readwrite = absent_readwrite,
	.readwritev = absent_readwritev,
	.readwritemsg = absent_readwritemsg,
	.compwrite = absent_compwrite,
	.compwritev = absent_compwritev,
	.compwritemsg = absent_compwritemsg,
	.writevalid = absent_writevalid,
	.readwritevalid = absent_readwritevalid,
	.compwritevalid = absent_compwritevalid,
};
