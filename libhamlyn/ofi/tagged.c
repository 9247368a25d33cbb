// SPDX-License-Identifier: MIT
#include "tagged.h"

#include "link.h"
#include "post.h"

static struct hf_ep *of(struct fid_ep *fid)
{
	return hf_container(fid, struct hf_ep, fid);
}

/* ---- sending ------------------------------------------------------------ */

/* Where a message goes, and what goes beside it. */
struct outgoing {
	fi_addr_t dest;
	uint64_t tag;
	uint64_t flags;
	uint64_t data;
	void *context;
};

/* @post has a span already. */
static int send_span(struct hf_ep *ep, struct hf_post *post, const struct outgoing *out)
{
	struct hf_ep *to;
	int err;

	hf_post_call(post, out->context, out->flags, out->data);
	post->tagged = true;
	post->tag = out->tag;
	hf_domain_lock(ep->domain);
	err = hf_link_toward(ep, out->dest, &to);
	if (!err)
		err = hf_post_send(to, post);
	hf_domain_unlock(ep->domain);
	return err;
}

static ssize_t send_any(struct hf_ep *ep, const struct iovec *iov, size_t count,
			const struct outgoing *out)
{
	struct hf_post post;
	int err = hf_span_set(&post.span, iov, count);

	return err ? err : send_span(ep, &post, out);
}

static ssize_t send_one(struct fid_ep *fid, const void *buf, size_t len,
			const struct outgoing *out)
{
	struct hf_post post;
	int err = hf_span_one(&post.span, buf, len);

	return err ? err : send_span(of(fid), &post, out);
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			   fi_addr_t dest, uint64_t tag, void *context)
{
	const struct outgoing out = {
		.dest = dest, .tag = tag, .flags = of(fid)->tx_flags, .context = context
	};

	(void)desc;
	return send_one(fid, buf, len, &out);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			    size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	const struct outgoing out = {
		.dest = dest, .tag = tag, .flags = of(fid)->tx_flags, .context = context
	};

	(void)desc;
	return send_any(of(fid), iov, count, &out);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			      uint64_t flags)
{
	const struct outgoing out = {
		.dest = msg->addr,
		.tag = msg->tag,
		.flags = hf_post_flags(of(fid), flags),
		.data = msg->data,
		.context = msg->context,
	};

	return send_any(of(fid), msg->msg_iov, msg->iov_count, &out);
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			     uint64_t tag)
{
	const struct outgoing out = {
		.dest = dest, .tag = tag, .flags = FI_INJECT | HF_POST_QUIET
	};

	return send_one(fid, buf, len, &out);
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	const struct outgoing out = {
		.dest = dest,
		.tag = tag,
		.flags = of(fid)->tx_flags | FI_REMOTE_CQ_DATA,
		.data = data,
		.context = context,
	};

	(void)desc;
	return send_one(fid, buf, len, &out);
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest, uint64_t tag)
{
	const struct outgoing out = {
		.dest = dest,
		.tag = tag,
		.flags = FI_INJECT | HF_POST_QUIET | FI_REMOTE_CQ_DATA,
		.data = data,
	};

	return send_one(fid, buf, len, &out);
}

/* ---- receiving ---------------------------------------------------------- */

static int recv_span(struct hf_ep *ep, const struct hf_span *span, fi_addr_t src,
		     struct hf_wish *wish)
{
	int err;

	wish->span = span;
	wish->tagged = true;
	hf_domain_lock(ep->domain);
	err = hf_rdm_receive(ep->rdm, wish, src);
	hf_domain_unlock(ep->domain);
	return err;
}

static ssize_t recv_any(struct hf_ep *ep, const struct iovec *iov, size_t count, fi_addr_t src,
			struct hf_wish *wish)
{
	struct hf_span span;
	int err = hf_span_set(&span, iov, count);

	return err ? err : recv_span(ep, &span, src, wish);
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			    size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
			    void *context)
{
	struct hf_wish wish = {
		.tag = tag, .ignore = ignore, .flags = of(fid)->rx_flags, .context = context
	};

	(void)desc;
	return recv_any(of(fid), iov, count, src, &wish);
}

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			   uint64_t tag, uint64_t ignore, void *context)
{
	struct hf_wish wish = {
		.tag = tag, .ignore = ignore, .flags = of(fid)->rx_flags, .context = context
	};
	struct hf_span span;
	int err = hf_span_one(&span, buf, len);

	(void)desc;
	return err ? err : recv_span(of(fid), &span, src, &wish);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			      uint64_t flags)
{
	struct hf_wish wish = {
		.tag = msg->tag, .ignore = msg->ignore, .flags = flags, .context = msg->context
	};

	/* Without data nobody looks where it would be. */
	if (flags & (FI_PEEK | FI_DISCARD))
		return recv_any(of(fid), NULL, 0, msg->addr, &wish);
	return recv_any(of(fid), msg->msg_iov, msg->iov_count, msg->addr, &wish);
}

struct fi_ops_tagged hf_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
