// SPDX-License-Identifier: MIT
#include "endpoint/alias.h"

#include <stdlib.h>

#include <rdma/fi_cm.h>

#include "endpoint/common.h"

static struct hf_ep *of(struct fid *fid)
{
	return hf_container(fid, struct hf_ep, fid.fid);
}

static struct fid_ep *self(struct fid *fid)
{
	return &of(fid)->self->fid;
}

/* ---- what is the end point's ---------------------------------------------- */

static int alias_setname(fid_t fid, void *addr, size_t length)
{
	return fi_setname(&self(fid)->fid, addr, length);
}

static int alias_getname(fid_t fid, void *addr, size_t *length)
{
	return fi_getname(&self(fid)->fid, addr, length);
}

static int alias_getpeer(struct fid_ep *ep, void *addr, size_t *length)
{
	return fi_getpeer(self(&ep->fid), addr, length);
}

static int alias_connect(struct fid_ep *ep, const void *addr, const void *param, size_t length)
{
	return fi_connect(self(&ep->fid), addr, param, length);
}

static int alias_accept(struct fid_ep *ep, const void *param, size_t length)
{
	return fi_accept(self(&ep->fid), param, length);
}

static int alias_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return fi_shutdown(self(&ep->fid), flags);
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = alias_setname,
	.getname = alias_getname,
	.getpeer = alias_getpeer,
	.connect = alias_connect,
	.listen = hf_no_listen,
	.accept = alias_accept,
	.reject = hf_no_reject,
	.shutdown = alias_shutdown,
	.join = hf_no_join,
};

static ssize_t alias_cancel(fid_t fid, void *context)
{
	return fi_cancel(&self(fid)->fid, context);
}

static int alias_getopt(fid_t fid, int level, int option, void *value, size_t *length)
{
	return fi_getopt(&self(fid)->fid, level, option, value, length);
}

static int alias_setopt(fid_t fid, int level, int option, const void *value, size_t length)
{
	return fi_setopt(&self(fid)->fid, level, option, value, length);
}

static ssize_t rx_size_left(struct fid_ep *ep)
{
	return self(&ep->fid)->ops->rx_size_left(self(&ep->fid));
}

static ssize_t tx_size_left(struct fid_ep *ep)
{
	return self(&ep->fid)->ops->tx_size_left(self(&ep->fid));
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = alias_cancel,
	.getopt = alias_getopt,
	.setopt = alias_setopt,
	.tx_ctx = hf_no_tx_ctx,
	.rx_ctx = hf_no_rx_ctx,
	.rx_size_left = rx_size_left,
	.tx_size_left = tx_size_left,
};

static int alias_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	return fi_ep_bind(self(fid), other, flags);
}

/* ---- what is its own ------------------------------------------------------ */

static int alias_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? fi_enable(self(fid)) : hf_ep_control(of(fid), command, arg);
}

static int alias_close(struct fid *fid)
{
	struct hf_ep *alias = of(fid);

	__atomic_sub_fetch(&alias->self->aliases, 1, __ATOMIC_RELEASE);
	free(alias);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(alias_close),
	.bind = alias_bind,
	.control = alias_control,
};

/* Of an end point, or of another alias of one. */
int hf_alias_open(struct hf_ep *ep, struct fi_alias *out)
{
	struct hf_ep *alias = calloc(1, sizeof(*alias));
	uint64_t flags = out->flags;
	int err;

	if (!alias)
		return -FI_ENOMEM;
	alias->self = ep->self;
	alias->domain = ep->domain;
	alias->rdm = ep->rdm;
	alias->caps = ep->caps;
	alias->tx_flags = ep->tx_flags;
	alias->rx_flags = ep->rx_flags;
	err = hf_ep_control(alias, FI_SETOPSFLAG, &flags);
	if (err) {
		free(alias);
		return err;
	}
	alias->fid = ep->fid;
	alias->fid.fid.ops = &fid_ops;
	alias->fid.ops = &ep_ops;
	alias->fid.cm = &cm_ops;
	__atomic_add_fetch(&alias->self->aliases, 1, __ATOMIC_RELAXED);
	*out->fid = &alias->fid.fid;
	return 0;
}
