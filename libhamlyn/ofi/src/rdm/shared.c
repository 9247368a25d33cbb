// SPDX-License-Identifier: MIT
#include "rdm/shared.h"

#include <stdlib.h>

#include "endpoint/common.h"
#include "endpoint/msg.h"
#include "rdm/tagged.h"

static struct hf_rdm *of(fid_t fid)
{
	return hf_container(fid, struct hf_rdm, ep.fid.fid);
}

/* ---- end points that share ------------------------------------------------ */

static int use_srx(struct hf_ep *ep, struct hf_rdm *srx)
{
	if (srx->ep.domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->srx)
		return -FI_EINVAL;
	ep->srx = srx;
	__atomic_add_fetch(&srx->users, 1, __ATOMIC_RELAXED);
	return 0;
}

static int use_stx(struct hf_ep *ep, struct hf_stx *stx)
{
	if (stx->domain != ep->domain)
		return -FI_EDOMAIN;
	if (ep->stx)
		return -FI_EINVAL;
	ep->stx = stx;
	__atomic_add_fetch(&stx->users, 1, __ATOMIC_RELAXED);
	return 0;
}

int hf_shared_bind(struct hf_ep *ep, struct fid *shared, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	return shared->fclass == FI_CLASS_SRX_CTX ?
	       use_srx(ep, of(shared)) : use_stx(ep, hf_container(shared, struct hf_stx, fid.fid));
}

/* It was said that it would, so it was not to have any of its own. */
int hf_shared_check(const struct hf_ep *ep)
{
	return (ep->shares_rx && !ep->srx) || (ep->shares_tx && !ep->stx) ? -FI_EOPBADSTATE : 0;
}

void hf_shared_put(struct hf_ep *ep)
{
	if (ep->srx)
		__atomic_sub_fetch(&ep->srx->users, 1, __ATOMIC_RELEASE);
	if (ep->stx)
		__atomic_sub_fetch(&ep->stx->users, 1, __ATOMIC_RELEASE);
}

/* One of those that share; domain locked. NULL: there is none with a queue of completions. */
static struct hf_rdm *one_of(const struct hf_rdm *srx)
{
	struct hf_rdm *rdm = srx->ep.domain->rdms;

	while (rdm && (rdm->ep.srx != srx || !rdm->ep.rx_cq))
		rdm = rdm->next;
	return rdm;
}

/* The end point whose queues tell of a buffer that no message was for it; NULL: there is none. */
struct hf_ep *hf_shared_teller(struct hf_rdm *rdm)
{
	struct hf_rdm *other;

	if (rdm->ep.rx_cq)
		return &rdm->ep;
	other = one_of(rdm);
	return other ? &other->ep : NULL;
}

/* By whose numbers senders are meant. */
const struct hf_av *hf_shared_av(const struct hf_rdm *rdm)
{
	const struct hf_rdm *other;

	if (rdm->av)
		return rdm->av;
	other = one_of(rdm);
	return other ? other->av : NULL;
}

/* ---- buffers --------------------------------------------------------------- */

static int srx_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct hf_rdm *srx = of(fid);
	int err;

	if (other->fclass != FI_CLASS_CQ && other->fclass != FI_CLASS_AV)
		return -FI_EINVAL;
	if (other->fclass == FI_CLASS_CQ && flags & FI_TRANSMIT)
		return -FI_EBADFLAGS;
	hf_domain_lock(srx->ep.domain);
	err = hf_rdm_bind(fid, other, flags);
	/* Whether a success is told is said by the end point that it came to. */
	srx->ep.rx_selective = true;
	hf_domain_unlock(srx->ep.domain);
	return err;
}

static int srx_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE:
		return 0;
	case FI_ALIAS:
		return -FI_ENOSYS;
	default:
		return hf_ep_control(&of(fid)->ep, command, arg);
	}
}

static int srx_close(struct fid *fid)
{
	struct hf_rdm *srx = of(fid);

	if (__atomic_load_n(&srx->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	hf_match_free(&srx->own);
	hf_ep_put_queues(&srx->ep);
	if (srx->av)
		__atomic_sub_fetch(&srx->av->users, 1, __ATOMIC_RELEASE);
	hf_domain_put(srx->ep.domain);
	free(srx);
	return 0;
}

static struct fi_ops srx_fid_ops = {
	HF_FID_OPS(srx_close),
	.bind = srx_bind,
	.control = srx_control,
};

int hf_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **out,
		void *context)
{
	struct hf_rdm *srx = calloc(1, sizeof(*srx));

	if (!srx)
		return -FI_ENOMEM;
	hf_rdm_init(srx, hf_container(domain, struct hf_domain, fid));
	srx->own.shared = true;
	srx->ep.rx_selective = true;
	srx->ep.caps = attr && attr->caps ? attr->caps : FI_DIRECTED_RECV;
	srx->ep.rx_flags = attr ? attr->op_flags : 0;
	srx->ep.rx_size = attr && attr->size ? attr->size : HF_RX_SIZE_MAX;
	srx->ep.fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->ep.fid.fid.context = context;
	srx->ep.fid.fid.ops = &srx_fid_ops;
	srx->ep.fid.ops = &hf_rdm_ops;
	/* What would send finds no links. */
	srx->ep.fid.msg = &hf_msg_ops;
	srx->ep.fid.tagged = &hf_tagged_ops;
	*out = &srx->ep.fid;
	return 0;
}

/* ---- sending --------------------------------------------------------------- */

static int stx_close(struct fid *fid)
{
	struct hf_stx *stx = hf_container(fid, struct hf_stx, fid.fid);

	if (__atomic_load_n(&stx->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	hf_domain_put(stx->domain);
	free(stx);
	return 0;
}

static struct fi_ops stx_fid_ops = {
	HF_FID_OPS(stx_close),
	.bind = hf_no_bind,
	.control = hf_no_control,
};

int hf_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **out,
		void *context)
{
	struct hf_stx *stx = calloc(1, sizeof(*stx));

	(void)attr;
	if (!stx)
		return -FI_ENOMEM;
	stx->domain = hf_container(domain, struct hf_domain, fid);
	hf_domain_get(stx->domain);
	stx->fid.fid.fclass = FI_CLASS_STX_CTX;
	stx->fid.fid.context = context;
	stx->fid.fid.ops = &stx_fid_ops;
	*out = &stx->fid;
	return 0;
}
