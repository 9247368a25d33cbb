// SPDX-License-Identifier: MIT
#include "rdm/tagged.h"

#include "rdm/link.h"
#include "rdm/short.h"

static struct hf_ep *of(struct fid_ep *fid)
{
	return hf_container(fid, struct hf_ep, fid);
}

/* ---- sending ------------------------------------------------------------ */

static __attribute__((noinline)) ssize_t
send_any(struct hf_ep *ep, const struct iovec *iov, size_t count, const struct hf_outgoing *out)
{
	struct hf_post post;
	struct hf_ep *to;
	int err = hf_span_set(&post.span, iov, count);

	if (err)
		return err;
	hf_post_call(&post, out->context, out->flags, out->data);
	post.tagged = true;
	post.tag = out->tag;
	err = hf_post_fits(&post);
	if (err)
		return err;
	hf_domain_lock(ep->domain);
	err = hf_link_toward(ep, out->dest, &to);
	if (!err)
		err = hf_post_send(to, &post);
	hf_domain_unlock(ep->domain);
	return err;
}

/* By value: in most calls, which do without this, all of it stays in registers. */
static __attribute__((noinline)) ssize_t
send_longer(struct hf_ep *ep, const void *data, size_t length, fi_addr_t dest, uint64_t tag,
	    uint64_t flags, uint64_t cq_data, void *context)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = length };
	const struct hf_outgoing out = {
		.dest = dest,
		.tag = tag,
		.tagged = true,
		.flags = flags,
		.data = cq_data,
		.context = context,
	};

	return send_any(ep, &iov, 1, &out);
}

static inline __attribute__((always_inline)) ssize_t
send_one(struct fid_ep *fid, const void *data, size_t length, const struct hf_outgoing *out)
{
	struct hf_ep *ep = of(fid);
	int err;

	hf_domain_lock(ep->domain);
	err = hf_short_send(ep, data, length, out);
	hf_domain_unlock(ep->domain);
	return hf_likely(err <= 0) ? err : send_longer(ep, data, length, out->dest, out->tag,
						       out->flags, out->data, out->context);
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			   fi_addr_t dest, uint64_t tag, void *context)
{
	const struct hf_outgoing out = {
		.dest = dest,
		.tag = tag,
		.tagged = true,
		.flags = of(fid)->tx_flags,
		.context = context,
	};

	(void)desc;
	return send_one(fid, buf, len, &out);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			    size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	const struct hf_outgoing out = {
		.dest = dest,
		.tag = tag,
		.tagged = true,
		.flags = of(fid)->tx_flags,
		.context = context,
	};

	(void)desc;
	return send_any(of(fid), iov, count, &out);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			      uint64_t flags)
{
	const struct hf_outgoing out = {
		.dest = msg->addr,
		.tag = msg->tag,
		.tagged = true,
		.flags = hf_post_flags(of(fid), flags),
		.data = msg->data,
		.context = msg->context,
	};

	return send_any(of(fid), msg->msg_iov, msg->iov_count, &out);
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			     uint64_t tag)
{
	const struct hf_outgoing out = {
		.dest = dest, .tag = tag, .tagged = true, .flags = FI_INJECT | HF_POST_QUIET
	};

	return send_one(fid, buf, len, &out);
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	const struct hf_outgoing out = {
		.dest = dest,
		.tag = tag,
		.tagged = true,
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
	const struct hf_outgoing out = {
		.dest = dest,
		.tag = tag,
		.tagged = true,
		.flags = FI_INJECT | HF_POST_QUIET | FI_REMOTE_CQ_DATA,
		.data = data,
	};

	return send_one(fid, buf, len, &out);
}

/* ---- receiving ---------------------------------------------------------- */

static __attribute__((noinline)) ssize_t
recv_any(struct hf_ep *ep, const struct iovec *iov, size_t count, fi_addr_t src,
	 struct hf_wish *wish)
{
	struct hf_span span;
	int err = hf_span_set(&span, iov, count);

	if (err)
		return err;
	wish->span = &span;
	hf_domain_lock(ep->domain);
	err = hf_rdm_receive(ep->rdm, wish, src);
	hf_domain_unlock(ep->domain);
	return err;
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			    size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
			    void *context)
{
	struct hf_wish wish = {
		.tag = tag,
		.tagged = true,
		.ignore = ignore,
		.flags = of(fid)->rx_flags,
		.context = context,
	};

	(void)desc;
	return recv_any(of(fid), iov, count, src, &wish);
}

/*
 * The short way, with a lock, and the way of all take the arguments of the call where they are: so
 * it saves no register before it knows that it goes on there.
 */
static __attribute__((noinline)) ssize_t
recv_one(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
	 uint64_t ignore, void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct hf_wish wish = {
		.tag = tag, .tagged = true, .ignore = ignore, .flags = of(fid)->rx_flags,
		.context = context
	};

	(void)desc;
	return recv_any(of(fid), &iov, 1, src, &wish);
}

static inline bool recv_short(struct hf_ep *ep, void *buf, size_t len, fi_addr_t src,
			      uint64_t tag, uint64_t ignore, void *context)
{
	const struct hf_wish wish = {
		.tag = tag, .tagged = true, .ignore = ignore, .flags = ep->rx_flags,
		.context = context
	};

	return hf_likely(hf_short_post(ep->rdm, buf, len, &wish, src));
}

static __attribute__((noinline)) ssize_t
recv_locked(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
	    uint64_t ignore, void *context)
{
	struct hf_ep *ep = of(fid);
	bool posted;

	hf_domain_lock(ep->domain);
	posted = recv_short(ep, buf, len, src, tag, ignore, context);
	hf_domain_unlock(ep->domain);
	return posted ? 0 : recv_one(fid, buf, len, desc, src, tag, ignore, context);
}

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			   uint64_t tag, uint64_t ignore, void *context)
{
	struct hf_ep *ep = of(fid);

	if (ep->domain->locked)
		return recv_locked(fid, buf, len, desc, src, tag, ignore, context);
	return recv_short(ep, buf, len, src, tag, ignore, context) ?
	       0 : recv_one(fid, buf, len, desc, src, tag, ignore, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			      uint64_t flags)
{
	struct hf_wish wish = {
		.tag = msg->tag,
		.tagged = true,
		.ignore = msg->ignore,
		.flags = flags,
		.context = msg->context,
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
