// SPDX-License-Identifier: MIT
#include "endpoint/msg.h"

#include <stdlib.h>

#include "rdm/link.h"
#include "rdm/short.h"
#include "transfer/complete.h"
#include "transfer/post.h"
#include "transfer/progress.h"

static struct hf_ep *of(struct fid_ep *fid)
{
	return hf_container(fid, struct hf_ep, fid);
}

/* ---- sending ------------------------------------------------------------ */

static __attribute__((noinline)) ssize_t
send_any(struct hf_ep *ep, const struct iovec *iov, size_t count, fi_addr_t dest, void *context,
	 uint64_t flags, uint64_t data)
{
	struct hf_post post;
	struct hf_ep *to;
	int err = hf_post_set(&post, iov, count, context, flags, data);

	if (!err)
		err = hf_post_fits(&post);
	if (err)
		return err;
	hf_domain_lock(ep->domain);
	err = hf_link_toward(ep, dest, &to);
	if (!err)
		err = hf_post_send(to, &post);
	hf_domain_unlock(ep->domain);
	return err;
}

/* By value, as send_longer() of tagged.c. */
static __attribute__((noinline)) ssize_t
send_longer(struct hf_ep *ep, const void *buf, size_t len, fi_addr_t dest, void *context,
	    uint64_t flags, uint64_t data)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return send_any(ep, &iov, 1, dest, context, flags, data);
}

static inline __attribute__((always_inline)) ssize_t
send_one(struct hf_ep *ep, const void *buf, size_t len, const struct hf_outgoing *out)
{
	int err = 1;

	if (ep->rdm) {
		hf_domain_lock(ep->domain);
		err = hf_short_send(ep, buf, len, out);
		hf_domain_unlock(ep->domain);
	}
	return hf_likely(err <= 0) ? err : send_longer(ep, buf, len, out->dest, out->context,
						       out->flags, out->data);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, void *context)
{
	const struct hf_outgoing out = {
		.dest = dest, .flags = of(fid)->tx_flags, .context = context
	};

	(void)desc;
	return send_one(of(fid), buf, len, &out);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest, void *context)
{
	(void)desc;
	return send_any(of(fid), iov, count, dest, context, of(fid)->tx_flags, 0);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return send_any(of(fid), msg->msg_iov, msg->iov_count, msg->addr, msg->context,
			hf_post_flags(of(fid), flags), msg->data);
}

/* No completion, whatever the end point says: the buffer may be reused at once. */
static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	const struct hf_outgoing out = { .dest = dest, .flags = FI_INJECT | HF_POST_QUIET };

	return send_one(of(fid), buf, len, &out);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest)
{
	const struct hf_outgoing out = {
		.dest = dest,
		.flags = FI_INJECT | HF_POST_QUIET | FI_REMOTE_CQ_DATA,
		.data = data,
	};

	return send_one(of(fid), buf, len, &out);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, void *context)
{
	const struct hf_outgoing out = {
		.dest = dest,
		.flags = of(fid)->tx_flags | FI_REMOTE_CQ_DATA,
		.data = data,
		.context = context,
	};

	(void)desc;
	return send_one(of(fid), buf, len, &out);
}

/* ---- receiving ---------------------------------------------------------- */

static struct hf_recv *recv_new(struct hf_ep *ep)
{
	struct hf_recv *recv = ep->spare_recvs;

	if (recv)
		ep->spare_recvs = recv->next;
	else
		recv = calloc(1, sizeof(*recv));
	return recv;
}

/* What a lost peer had sent can still be received. */
static int may_receive(const struct hf_ep *ep)
{
	if (ep->state == HF_EP_NEW)
		return -FI_EOPBADSTATE;
	if (ep->srx)
		return -FI_EOPNOTSUPP;
	if (ep->state == HF_EP_SHUT || (ep->state == HF_EP_LOST && !ep->held_count))
		return -FI_ENOTCONN;
	if (!ep->rx_cq)
		return -FI_ENOCQ;
	return ep->recvs < ep->rx_size ? 0 : -FI_EAGAIN;
}

static int post_recv(struct hf_ep *ep, const struct hf_span *span, void *context, uint64_t flags)
{
	struct hf_recv *recv;
	int err = flags & FI_TRIGGER ? -FI_EBADFLAGS : may_receive(ep);

	if (err)
		return err;
	recv = recv_new(ep);
	if (!recv)
		return -FI_ENOMEM;
	recv->next = NULL;
	recv->span = *span;
	recv->context = context;
	recv->report = !ep->rx_selective || flags & FI_COMPLETION;
	*ep->last_recv = recv;
	ep->last_recv = &recv->next;
	ep->recvs++;
	if (ep->held_count || ep->paused) {
		hf_progress_held(ep);
		if (ep->held_count)
			hf_ep_stick(ep);
	}
	return 0;
}

static __attribute__((noinline)) ssize_t
recv_any(struct hf_ep *ep, const struct iovec *iov, size_t count, fi_addr_t src, void *context,
	 uint64_t flags)
{
	struct hf_wish wish = { .context = context, .flags = flags, .ignore = UINT64_MAX };
	struct hf_span span;
	int err = hf_span_set(&span, iov, count);

	if (err)
		return err;
	wish.span = &span;
	hf_domain_lock(ep->domain);
	err = ep->rdm ? hf_rdm_receive(ep->rdm, &wish, src) :
			post_recv(ep->self, &span, context, flags);
	if (!err && ep->rdm && ep->rdm->hungry)
		hf_progress_hungry(ep->rdm);
	hf_domain_unlock(ep->domain);
	return err;
}

/* As send_longer(). */
static __attribute__((noinline)) ssize_t
recv_one(struct hf_ep *ep, void *buf, size_t len, fi_addr_t src, void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return recv_any(ep, &iov, 1, src, context, ep->rx_flags);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			void *context)
{
	struct hf_ep *ep = of(fid);
	const struct hf_wish wish = {
		.context = context, .flags = ep->rx_flags, .ignore = UINT64_MAX
	};
	bool posted = false;

	(void)desc;
	if (ep->rdm) {
		hf_domain_lock(ep->domain);
		posted = hf_short_post(ep->rdm, buf, len, &wish, src);
		hf_domain_unlock(ep->domain);
	}
	return hf_likely(posted) ? 0 : recv_one(ep, buf, len, src, context);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src, void *context)
{
	(void)desc;
	return recv_any(of(fid), iov, count, src, context, of(fid)->rx_flags);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return recv_any(of(fid), msg->msg_iov, msg->iov_count, msg->addr, msg->context, flags);
}

struct fi_ops_msg hf_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

/* ---- ending ------------------------------------------------------------- */

void hf_msg_flush(struct hf_ep *ep, int err)
{
	struct hf_recv *recv = ep->first_recv;

	ep->first_recv = NULL;
	ep->last_recv = &ep->first_recv;
	ep->recvs = 0;
	while (recv) {
		struct hf_recv *next = recv->next;

		hf_complete_recv_error(ep, recv, err);
		recv = next;
	}
}

bool hf_msg_cancel(struct hf_ep *ep, const void *context)
{
	for (struct hf_recv **at = &ep->first_recv; *at; at = &(*at)->next) {
		struct hf_recv *recv = *at;

		if (recv->context != context)
			continue;
		*at = recv->next;
		if (!*at)
			ep->last_recv = at;
		ep->recvs--;
		hf_complete_recv_error(ep, recv, FI_ECANCELED);
		return true;
	}
	return false;
}

void hf_msg_free(struct hf_ep *ep)
{
	while (ep->spare_recvs) {
		struct hf_recv *recv = ep->spare_recvs;

		ep->spare_recvs = recv->next;
		free(recv);
	}
}
