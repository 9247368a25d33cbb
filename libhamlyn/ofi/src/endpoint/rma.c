// SPDX-License-Identifier: MIT
#include "endpoint/rma.h"

#include "rdm/link.h"
#include "transfer/post.h"

static struct hf_ep *of(struct fid_ep *fid)
{
	return hf_container(fid, struct hf_ep, fid);
}

/* Both are answered: only the target knows whether the key was right. */
static int post_rma(struct hf_ep *ep, struct hf_post *post, bool read)
{
	int err = hf_post_check(ep, post);

	if (err)
		return err;
	if (read)
		return hf_post_work(ep, post, HF_READ, HF_WORK_READ, false);
	if (post->span.length > HF_EAGER)
		return hf_post_work(ep, post, HF_WRITE_LONG, HF_WORK_WRITE, false);
	return hf_post_work(ep, post, HF_WRITE, HF_WORK_WRITE, true);
}

/* What a call says of itself beside its own bytes. */
struct call {
	fi_addr_t peer;
	void *context;
	uint64_t flags;
	uint64_t data;
	bool read;
};

static ssize_t rma_any(struct hf_ep *ep, const struct iovec *iov, size_t count,
		       const struct fi_rma_iov *remote, const struct call *call)
{
	struct hf_post post;
	struct hf_ep *to;
	int err = hf_post_set(&post, iov, count, call->context, call->flags, call->data);

	if (err)
		return err;
	/* A read puts nothing that could be taken along, whatever the end point's own flags say. */
	if (call->read)
		post.flags &= ~(FI_INJECT | FI_REMOTE_CQ_DATA);
	err = hf_post_fits(&post);
	if (err)
		return err;
	/* As much as is here is meant there. */
	if (remote->len < post.span.length)
		return -FI_EINVAL;
	post.target.key = remote->key;
	post.target.address = remote->addr;
	hf_domain_lock(ep->domain);
	err = hf_link_toward(ep, call->peer, &to);
	if (!err)
		err = post_rma(to, &post, call->read);
	hf_domain_unlock(ep->domain);
	return err;
}

static ssize_t rma_one(struct hf_ep *ep, const void *buf, size_t len, uint64_t addr,
		       uint64_t key, const struct call *call)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	const struct fi_rma_iov remote = { .addr = addr, .len = len, .key = key };

	return rma_any(ep, &iov, 1, &remote, call);
}

static ssize_t rma_v(struct hf_ep *ep, const struct iovec *iov, size_t count, uint64_t addr,
		     uint64_t key, const struct call *call)
{
	const struct fi_rma_iov remote = { .addr = addr, .len = SIZE_MAX, .key = key };

	return rma_any(ep, iov, count, &remote, call);
}

static ssize_t rma_msg(struct hf_ep *ep, const struct fi_msg_rma *msg, uint64_t flags, bool read)
{
	const struct call call = {
		.peer = msg->addr,
		.context = msg->context,
		.flags = hf_post_flags(ep, flags),
		.data = msg->data,
		.read = read,
	};

	if (msg->rma_iov_count != 1)
		return -FI_EINVAL;
	return rma_any(ep, msg->msg_iov, msg->iov_count, msg->rma_iov, &call);
}

static struct call plain(const struct hf_ep *ep, fi_addr_t peer, void *context, bool read)
{
	return (struct call){
		.peer = peer, .context = context, .flags = ep->tx_flags, .read = read
	};
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			uint64_t addr, uint64_t key, void *context)
{
	const struct call call = plain(of(fid), src, context, true);

	(void)desc;
	return rma_one(of(fid), buf, len, addr, key, &call);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	const struct call call = plain(of(fid), src, context, true);

	(void)desc;
	return rma_v(of(fid), iov, count, addr, key, &call);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(of(fid), msg, flags, true);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct call call = plain(of(fid), dest, context, false);

	(void)desc;
	return rma_one(of(fid), buf, len, addr, key, &call);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct call call = plain(of(fid), dest, context, false);

	(void)desc;
	return rma_v(of(fid), iov, count, addr, key, &call);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(of(fid), msg, flags, false);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	const struct call call = { .peer = dest, .flags = FI_INJECT | HF_POST_QUIET };

	return rma_one(of(fid), buf, len, addr, key, &call);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	struct call call = plain(of(fid), dest, context, false);

	(void)desc;
	call.flags |= FI_REMOTE_CQ_DATA;
	call.data = data;
	return rma_one(of(fid), buf, len, addr, key, &call);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	const struct call call = {
		.peer = dest,
		.flags = FI_INJECT | HF_POST_QUIET | FI_REMOTE_CQ_DATA,
		.data = data,
	};

	return rma_one(of(fid), buf, len, addr, key, &call);
}

struct fi_ops_rma hf_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
