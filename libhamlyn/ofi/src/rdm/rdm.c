// SPDX-License-Identifier: MIT
#include "rdm/rdm.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "endpoint/atomic.h"
#include "endpoint/common.h"
#include "endpoint/msg.h"
#include "endpoint/rma.h"
#include "rdm/link.h"
#include "rdm/shared.h"
#include "rdm/tagged.h"

static struct hf_rdm *of(fid_t fid)
{
	return hf_container(fid, struct hf_rdm, ep.fid.fid);
}

/* ---- names --------------------------------------------------------------- */

static int rdm_setname(fid_t fid, void *addr, size_t length)
{
	struct hf_ep *ep = &of(fid)->ep;

	if (!hf_address_valid(addr, length))
		return -FI_EINVAL;
	if (ep->state != HF_EP_NEW)
		return -FI_EOPBADSTATE;
	if (!hf_address_is_here(addr))
		return -FI_EADDRNOTAVAIL;
	memcpy(&ep->address, addr, sizeof(ep->address));
	return 0;
}

static int rdm_getname(fid_t fid, void *addr, size_t *length)
{
	return hf_address_copy(&of(fid)->ep.address, addr, length);
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = rdm_setname,
	.getname = rdm_getname,
	.getpeer = hf_no_getpeer,
	.connect = hf_no_connect,
	.listen = hf_no_listen,
	.accept = hf_no_accept,
	.reject = hf_no_reject,
	.shutdown = hf_no_shutdown,
	.join = hf_no_join,
};

/* ---- making it ----------------------------------------------------------- */

static int bind_av(struct hf_rdm *rdm, struct hf_av *av, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (av->domain != rdm->ep.domain)
		return -FI_EDOMAIN;
	if (rdm->av)
		return -FI_EINVAL;
	rdm->av = av;
	__atomic_add_fetch(&av->users, 1, __ATOMIC_RELAXED);
	return 0;
}

int hf_rdm_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct hf_rdm *rdm = of(fid);
	int err;

	if (rdm->ep.state != HF_EP_NEW)
		return -FI_EOPBADSTATE;
	if (other->fclass == FI_CLASS_AV)
		return bind_av(rdm, hf_container(other, struct hf_av, fid.fid), flags);
	err = hf_ep_bind(&rdm->ep, other, flags);
	if (!err && rdm->ep.srx)
		rdm->match = rdm->ep.srx->match;
	return err;
}

static int rdm_enable(struct hf_rdm *rdm)
{
	struct hf_ep *ep = &rdm->ep;
	int err;

	if (ep->state != HF_EP_NEW)
		return 0;
	if (!rdm->av)
		return -FI_ENOAV;
	hf_ep_default_eq(ep);
	if ((ep->caps & (FI_SEND | FI_READ | FI_WRITE) && !ep->tx_cq) ||
	    (ep->caps & FI_RECV && !ep->rx_cq))
		return -FI_ENOCQ;
	err = hf_shared_check(ep);
	if (err)
		return err;
	hf_domain_lock(ep->domain);
	err = hf_link_open(rdm);
	if (!err) {
		ep->state = HF_EP_ENABLED;
		rdm->takes = ep->rx_cq && !ep->srx && !(ep->caps & FI_SOURCE_ERR);
	}
	hf_domain_unlock(ep->domain);
	return err;
}

static int rdm_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? rdm_enable(of(fid)) :
				      hf_ep_control(&of(fid)->ep, command, arg);
}

static int rdm_close(struct fid *fid)
{
	struct hf_rdm *rdm = of(fid);
	struct hf_domain *domain = rdm->ep.domain;

	if (__atomic_load_n(&rdm->ep.aliases, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	hf_domain_lock(domain);
	hf_link_close(rdm);
	hf_match_leave(rdm);
	hf_domain_unlock(domain);
	hf_match_free(&rdm->own);
	hf_ep_put_queues(&rdm->ep);
	if (rdm->av)
		__atomic_sub_fetch(&rdm->av->users, 1, __ATOMIC_RELEASE);
	hf_domain_put(domain);
	free(rdm);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(rdm_close),
	.bind = hf_rdm_bind,
	.control = rdm_control,
};

/* ---- calls --------------------------------------------------------------- */

/* What is shared needs not be; an end point that shares does. */
static bool is_not_enabled(const struct hf_rdm *rdm)
{
	return rdm->ep.state == HF_EP_NEW && (rdm->ep.srx || !rdm->match->shared);
}

/* Domain locked. Posted, looked for, or fetched: as the flags say. */
int hf_rdm_receive(struct hf_rdm *rdm, struct hf_wish *wish, fi_addr_t src)
{
	const struct hf_av *av;

	if (is_not_enabled(rdm))
		return -FI_EOPBADSTATE;
	if (rdm->ep.srx)
		return -FI_EOPNOTSUPP;
	if (!rdm->ep.rx_cq && !rdm->match->shared)
		return -FI_ENOCQ;
	if (wish->flags & FI_TRIGGER)
		return -FI_EBADFLAGS;
	if (wish->flags & FI_CLAIM && !wish->context)
		return -FI_EINVAL;
	if (wish->flags & FI_DISCARD && !(wish->flags & (FI_PEEK | FI_CLAIM)))
		return -FI_EBADFLAGS;
	if (rdm->ep.caps & FI_DIRECTED_RECV && src != FI_ADDR_UNSPEC) {
		av = hf_shared_av(rdm);
		wish->place = av ? hf_av_place(av, src) : 0;
		if (!wish->place)
			return -FI_EINVAL;
	}
	wish->report = !rdm->ep.rx_selective || wish->flags & FI_COMPLETION;
	if (wish->flags & FI_PEEK)
		return hf_match_peek(rdm, wish);
	return wish->flags & FI_CLAIM ? hf_match_claim(rdm, wish) : hf_match_post(rdm, wish);
}

static ssize_t rdm_cancel(fid_t fid, void *context)
{
	struct hf_rdm *rdm = of(fid);
	int err;

	if (rdm->ep.srx)
		return -FI_ENOENT;
	hf_domain_lock(rdm->ep.domain);
	err = hf_match_cancel(rdm, context);
	hf_domain_unlock(rdm->ep.domain);
	return err;
}

static int rdm_getopt(fid_t fid, int level, int option, void *value, size_t *length)
{
	if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*length < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = of(fid)->match->least;
	*length = sizeof(size_t);
	return 0;
}

static int rdm_setopt(fid_t fid, int level, int option, const void *value, size_t length)
{
	if (level != FI_OPT_ENDPOINT || option != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (length != sizeof(size_t))
		return -FI_EINVAL;
	of(fid)->match->least = *(const size_t *)value;
	return 0;
}

/* No more buffers are refused than there is memory for. */
static ssize_t rx_size_left(struct fid_ep *fid)
{
	struct hf_rdm *rdm = of(&fid->fid);

	if (is_not_enabled(rdm))
		return -FI_EOPBADSTATE;
	return rdm->match->recvs < rdm->ep.rx_size ?
	       (ssize_t)(rdm->ep.rx_size - rdm->match->recvs) : 0;
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
	struct hf_rdm *rdm = of(&fid->fid);

	return rdm->ep.state == HF_EP_NEW ? -FI_EOPBADSTATE : (ssize_t)rdm->ep.tx_size;
}

struct fi_ops_ep hf_rdm_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = rdm_cancel,
	.getopt = rdm_getopt,
	.setopt = rdm_setopt,
	.tx_ctx = hf_no_tx_ctx,
	.rx_ctx = hf_no_rx_ctx,
	.rx_size_left = rx_size_left,
	.tx_size_left = tx_size_left,
};

void hf_rdm_init(struct hf_rdm *rdm, struct hf_domain *domain)
{
	hf_match_init(&rdm->own);
	rdm->match = &rdm->own;
	rdm->last_hungry = &rdm->hungry;
	hf_ep_init(&rdm->ep);
	rdm->ep.rdm = rdm;
	rdm->listener.fd = -1;
	rdm->ep.domain = domain;
	hf_domain_get(domain);
}

static int check_info(const struct fi_info *info)
{
	if (!info->tx_attr || !info->rx_attr)
		return -FI_EINVAL;
	if (info->src_addr && !hf_address_valid(info->src_addr, info->src_addrlen))
		return -FI_EINVAL;
	return 0;
}

int hf_rdm_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
		void *context)
{
	struct hf_rdm *rdm;
	int err = check_info(info);

	if (err)
		return err;
	rdm = calloc(1, sizeof(*rdm));
	if (!rdm)
		return -FI_ENOMEM;
	hf_ep_set_attr(&rdm->ep, info);
	hf_rdm_init(rdm, hf_container(domain, struct hf_domain, fid));
	rdm->ep.fid.fid.fclass = FI_CLASS_EP;
	rdm->ep.fid.fid.context = context;
	rdm->ep.fid.fid.ops = &fid_ops;
	rdm->ep.fid.ops = &hf_rdm_ops;
	rdm->ep.fid.cm = &cm_ops;
	rdm->ep.fid.msg = &hf_msg_ops;
	rdm->ep.fid.rma = &hf_rma_ops;
	rdm->ep.fid.atomic = &hf_atomic_ops;
	rdm->ep.fid.tagged = &hf_tagged_ops;
	*out = &rdm->ep.fid;
	return 0;
}
