// SPDX-License-Identifier: MIT
#include "endpoint/ep.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/hosts.h"
#include "connect/cm.h"
#include "connect/pep.h"
#include "endpoint/alias.h"
#include "endpoint/absent.h"
#include "endpoint/common.h"
#include "endpoint/msg.h"
#include "endpoint/rma.h"
#include "rdm/link.h"
#include "rdm/shared.h"
#include "transfer/complete.h"
#include "transfer/progress.h"
#include "transfer/stream.h"

/* Longest message of a channel: a piece, or an eager message, with all that is before it. */
#define CHANNEL_MESSAGE	65536
_Static_assert(sizeof(struct hf_header) + HF_PIECE_BYTES <= CHANNEL_MESSAGE, "a piece fits");

/* How long fi_close() waits for a peer that has not taken what was sent. */
#define LINGER_NS	100000000LL

static struct hf_ep *of(fid_t fid)
{
	return hf_container(fid, struct hf_ep, fid.fid);
}

/* ---- the connection ----------------------------------------------------- */

/* Try again what waits; see hf_progress_stuck(). */
void hf_ep_stick(struct hf_ep *ep)
{
	if (ep->is_stuck)
		return;
	ep->is_stuck = true;
	ep->next_stuck = ep->domain->stuck;
	ep->domain->stuck = ep;
}

static void unstick(struct hf_ep *ep)
{
	struct hf_ep **at = &ep->domain->stuck;

	while (*at && *at != ep)
		at = &(*at)->next_stuck;
	if (*at)
		*at = ep->next_stuck;
	ep->is_stuck = false;
}

void hf_ep_connected(struct hf_ep *ep)
{
	ep->state = HF_EP_CONNECTED;
	h_channel_on_ready(ep->channel, hf_progress_ready, ep);
}

static void fail_works(struct hf_ep *ep, int err)
{
	struct hf_work *work;
	uint32_t at = 0;

	while ((work = hf_work_next(&ep->works, &at)))
		hf_complete_work(ep, work, err);
}

static void tell_shutdown(struct hf_ep *ep)
{
	if (!ep->told && ep->eq)
		hf_eq_add(ep->eq, FI_SHUTDOWN, &ep->fid.fid, NULL, NULL, 0);
	ep->told = true;
}

/* The peer is gone, or breaks the rules: everything ends in error, and nothing waits for ever. */
void hf_ep_lost(struct hf_ep *ep, int err)
{
	if (ep->state != HF_EP_CONNECTED)
		return;
	ep->state = HF_EP_LOST;
	hf_stream_drop(ep);
	fail_works(ep, err);
	hf_msg_flush(ep, err == FI_ECONNRESET ? FI_ECANCELED : err);
	tell_shutdown(ep);
	if (ep->rdm)
		hf_link_lost(ep);
}

/*
 * The channel has not noticed yet, or messages wait in it for buffers. Nobody answers operations
 * any more.
 */
void hf_ep_orphaned(struct hf_ep *ep)
{
	if (ep->state != HF_EP_CONNECTED)
		return;
	fail_works(ep, FI_ECONNRESET);
	tell_shutdown(ep);
}

/* Its socket has ended. What it had sent before comes first. */
void hf_ep_peer_gone(struct hf_ep *ep)
{
	hf_domain_lock(ep->domain);
	hf_domain_progress(ep->domain);
	hf_ep_orphaned(ep);
	hf_domain_unlock(ep->domain);
}

/* Domain locked. */
void hf_ep_disconnect(struct hf_ep *ep, int64_t linger_ns)
{
	bool was_connected = ep->state == HF_EP_CONNECTED;

	hf_stream_flush(ep);
	ep->state = HF_EP_SHUT;
	hf_stream_drop(ep);
	fail_works(ep, FI_ECANCELED);
	if (ep->rx_cq)
		hf_msg_flush(ep, FI_ECANCELED);
	unstick(ep);
	if (!ep->channel)
		return;
	if (ep->domain->hot == ep)
		hf_progress_cool(ep->domain);
	hf_progress_drop_held(ep);
	if (ep->srx)
		hf_progress_sated(ep);
	h_channel_close(ep->channel, was_connected ? linger_ns : H_NOWAIT);
	ep->channel = NULL;
}

/*
 * @discard: say nothing of what ends by that; its contexts may be gone when it would be read. Else
 * the application is told, too, that the connection is none any more: if both ends do this at the
 * same time each would wait for the other one's, of which there is nothing to be heard by then.
 */
int hf_ep_shut(struct hf_ep *ep, bool discard)
{
	bool was_connected;

	if (ep->eq)
		pthread_mutex_lock(&ep->eq->cm);
	hf_domain_lock(ep->domain);
	ep->discards = discard;
	was_connected = ep->state == HF_EP_CONNECTED;
	hf_ep_disconnect(ep, LINGER_NS);
	/* Before others can read that sends ended early: for the peer they did not, until then. */
	hf_conn_close(ep->conn);
	ep->conn = NULL;
	if (was_connected && !discard)
		tell_shutdown(ep);
	hf_domain_unlock(ep->domain);
	if (ep->eq)
		pthread_mutex_unlock(&ep->eq->cm);
	return 0;
}

/* ---- making it ---------------------------------------------------------- */

static int bind_cq(struct hf_ep *ep, struct hf_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EINVAL;
	if (cq->domain != ep->domain)
		return -FI_EDOMAIN;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		__atomic_add_fetch(&cq->users, 1, __ATOMIC_RELAXED);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
		__atomic_add_fetch(&cq->users, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static const uint64_t counted[HF_COUNTERS] = {
	[HF_COUNT_SEND] = FI_SEND,
	[HF_COUNT_RECV] = FI_RECV,
	[HF_COUNT_READ] = FI_READ,
	[HF_COUNT_WRITE] = FI_WRITE,
	[HF_COUNT_REMOTE_READ] = FI_REMOTE_READ,
	[HF_COUNT_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

static int bind_cntr(struct hf_ep *ep, struct hf_cntr *cntr, uint64_t flags)
{
	uint64_t known = 0;

	for (int i = 0; i < HF_COUNTERS; i++)
		known |= counted[i];
	if (flags & ~known)
		return -FI_EBADFLAGS;
	if (cntr->domain != ep->domain)
		return -FI_EDOMAIN;
	for (int i = 0; i < HF_COUNTERS; i++)
		if (flags & counted[i] && ep->cntrs[i])
			return -FI_EINVAL;
	for (int i = 0; i < HF_COUNTERS; i++) {
		if (!(flags & counted[i]))
			continue;
		ep->cntrs[i] = cntr;
		__atomic_add_fetch(&cntr->users, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static void use_eq(struct hf_ep *ep, struct hf_eq *eq)
{
	ep->eq = eq;
	__atomic_add_fetch(&eq->users, 1, __ATOMIC_RELAXED);
}

static int bind_eq(struct hf_ep *ep, struct hf_eq *eq)
{
	if (ep->eq || eq->fabric != ep->domain->fabric)
		return -FI_EINVAL;
	use_eq(ep, eq);
	return 0;
}

/* fi_domain_bind(): of those that were bound to none */
void hf_ep_default_eq(struct hf_ep *ep)
{
	if (!ep->eq && ep->domain->eq)
		use_eq(ep, ep->domain->eq);
}

int hf_ep_bind(struct hf_ep *ep, struct fid *other, uint64_t flags)
{
	if (ep->state != HF_EP_NEW)
		return -FI_EOPBADSTATE;
	switch (other->fclass) {
	case FI_CLASS_EQ:
		return bind_eq(ep, hf_container(other, struct hf_eq, fid.fid));
	case FI_CLASS_CQ:
		return bind_cq(ep, hf_container(other, struct hf_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, hf_container(other, struct hf_cntr, fid.fid), flags);
	case FI_CLASS_SRX_CTX:
	case FI_CLASS_STX_CTX:
		return hf_shared_bind(ep, other, flags);
	default:
		return -FI_EINVAL;
	}
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	return hf_ep_bind(of(fid), other, flags);
}

/* Domain locked. */
int hf_ep_make_channel(struct hf_ep *ep)
{
	const struct h_channel_attr attr = { .max_message = CHANNEL_MESSAGE };
	char why[HAMLYN_EXPLAIN_BYTES];
	int err = h_channel_create(ep->domain->manager, &attr, &ep->channel);

	if (err) {
		h_explain(ep->domain->dev, why, sizeof(why));
		hf_warn("end point: %s\n", why);
	}
	return err;
}

static int ep_enable(struct hf_ep *ep)
{
	int err;

	if (ep->state != HF_EP_NEW)
		return 0;
	hf_ep_default_eq(ep);
	if (!ep->eq)
		return -FI_ENOEQ;
	if ((ep->caps & (FI_SEND | FI_READ | FI_WRITE) && !ep->tx_cq) ||
	    (ep->caps & FI_RECV && !ep->rx_cq))
		return -FI_ENOCQ;
	err = hf_shared_check(ep);
	if (err)
		return err;
	hf_domain_lock(ep->domain);
	err = hf_ep_make_channel(ep);
	if (!err)
		ep->state = HF_EP_ENABLED;
	hf_domain_unlock(ep->domain);
	return err;
}

static int get_flags(const struct hf_ep *ep, uint64_t *flags)
{
	if (*flags & FI_TRANSMIT && *flags & FI_RECV)
		return -FI_EINVAL;
	if (*flags & FI_TRANSMIT)
		*flags = ep->tx_flags;
	else if (*flags & FI_RECV)
		*flags = ep->rx_flags;
	else
		return -FI_EINVAL;
	return 0;
}

static int set_flags(struct hf_ep *ep, uint64_t flags)
{
	bool transmit = flags & FI_TRANSMIT;
	uint64_t known = transmit ? HF_TX_FLAGS | FI_FENCE :
				    FI_COMPLETION | (ep->rdm ? FI_MULTI_RECV : 0);

	if (transmit == !!(flags & FI_RECV))
		return -FI_EINVAL;
	flags &= ~(FI_TRANSMIT | FI_RECV);
	if (flags & ~known)
		return -FI_EBADFLAGS;
	*(transmit ? &ep->tx_flags : &ep->rx_flags) = flags;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? ep_enable(of(fid)) : hf_ep_control(of(fid), command, arg);
}

int hf_ep_control(struct hf_ep *ep, int command, void *arg)
{
	switch (command) {
	case FI_GETOPSFLAG:
		return get_flags(ep, arg);
	case FI_SETOPSFLAG:
		return set_flags(ep, *(const uint64_t *)arg);
	case FI_ALIAS:
		return hf_alias_open(ep, arg);
	default:
		return -FI_ENOSYS;
	}
}

void hf_ep_put_queues(struct hf_ep *ep)
{
	if (ep->tx_cq)
		__atomic_sub_fetch(&ep->tx_cq->users, 1, __ATOMIC_RELEASE);
	if (ep->rx_cq)
		__atomic_sub_fetch(&ep->rx_cq->users, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < HF_COUNTERS; i++)
		if (ep->cntrs[i])
			__atomic_sub_fetch(&ep->cntrs[i]->users, 1, __ATOMIC_RELEASE);
	if (ep->eq)
		__atomic_sub_fetch(&ep->eq->users, 1, __ATOMIC_RELEASE);
	hf_shared_put(ep);
}

static int ep_close(struct fid *fid)
{
	struct hf_ep *ep = of(fid);

	if (__atomic_load_n(&ep->aliases, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	hf_ep_shut(ep, true);
	if (ep->eq)
		hf_eq_forget(ep->eq, fid);
	hf_ep_put_queues(ep);
	if (ep->name_fd >= 0)
		close(ep->name_fd);
	hf_msg_free(ep);
	hf_works_free(&ep->works);
	hf_domain_put(ep->domain);
	free(ep);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(ep_close),
	.bind = ep_bind,
	.control = ep_control,
};

/* ---- calls -------------------------------------------------------------- */

/* Of what was sent nothing can be called back. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct hf_ep *ep = of(fid);
	bool found;

	hf_domain_lock(ep->domain);
	found = hf_msg_cancel(ep, context);
	hf_domain_unlock(ep->domain);
	return found ? 0 : -FI_ENOENT;
}

static ssize_t rx_size_left(struct fid_ep *fid)
{
	struct hf_ep *ep = of(&fid->fid);

	return ep->state == HF_EP_NEW ? -FI_EOPBADSTATE : (ssize_t)(ep->rx_size - ep->recvs);
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
	struct hf_ep *ep = of(&fid->fid);

	return ep->state == HF_EP_NEW ? -FI_EOPBADSTATE :
					(ssize_t)(ep->tx_size - ep->works.ours);
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = hf_getopt,
	.setopt = hf_no_setopt,
	.tx_ctx = hf_no_tx_ctx,
	.rx_ctx = hf_no_rx_ctx,
	.rx_size_left = rx_size_left,
	.tx_size_left = tx_size_left,
};

static int check_info(const struct fi_info *info)
{
	if (!info->ep_attr || info->ep_attr->type != FI_EP_MSG || !info->tx_attr ||
	    !info->rx_attr)
		return -FI_EINVAL;
	if ((info->src_addr && !hf_address_valid(info->src_addr, info->src_addrlen)) ||
	    (info->dest_addr && !hf_address_valid(info->dest_addr, info->dest_addrlen)))
		return -FI_EINVAL;
	if (info->handle && info->handle->fclass != FI_CLASS_CONNREQ &&
	    info->handle->fclass != FI_CLASS_PEP)
		return -FI_EINVAL;
	return 0;
}

void hf_ep_set_attr(struct hf_ep *ep, const struct fi_info *info)
{
	ep->caps = info->caps;
	ep->tx_flags = info->tx_attr->op_flags;
	ep->rx_flags = info->rx_attr->op_flags;
	ep->shares_tx = info->ep_attr && info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->shares_rx = info->ep_attr && info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->tx_size = info->tx_attr->size ? info->tx_attr->size : HF_TX_SIZE;
	ep->rx_size = info->rx_attr->size ? info->rx_attr->size : HF_RX_SIZE;
	if (info->dest_addr)
		memcpy(&ep->dest, info->dest_addr, sizeof(ep->dest));
	if (info->src_addr)
		memcpy(&ep->address, info->src_addr, sizeof(ep->address));
	ep->address.sin_family = AF_INET;
	if (ep->address.sin_addr.s_addr == htonl(INADDR_ANY))
		ep->address.sin_addr = hf_host_own_address();
}

void hf_ep_init(struct hf_ep *ep)
{
	ep->self = ep;
	ep->last_recv = &ep->first_recv;
	ep->last_stream = &ep->streams;
	ep->last_reply = &ep->replies;
	ep->name_fd = -1;
}

/* A connection to accept, or a passive end point whose address this one has from now on. */
static int take_handle(struct hf_ep *ep, fid_t handle)
{
	if (!handle || handle->fclass == FI_CLASS_CONNREQ) {
		ep->handle = handle;
		return 0;
	}
	return hf_pep_give_name(hf_container(handle, struct hf_pep, fid.fid), &ep->address,
				&ep->name_fd);
}

int hf_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
	       void *context)
{
	struct hf_ep *ep;
	int err = check_info(info);

	if (err)
		return err;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	hf_ep_set_attr(ep, info);
	hf_ep_init(ep);
	err = take_handle(ep, info->handle);
	if (err) {
		free(ep);
		return err;
	}
	ep->domain = hf_container(domain, struct hf_domain, fid);
	hf_domain_get(ep->domain);
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &hf_cm_ops;
	ep->fid.msg = &hf_msg_ops;
	ep->fid.rma = &hf_rma_ops;
	ep->fid.tagged = &hf_no_tagged_ops;
	ep->fid.atomic = &hf_no_atomic_ops;
	*out = &ep->fid;
	return 0;
}
