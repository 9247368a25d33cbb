// SPDX-License-Identifier: MIT
/* Watches: to be told when a slot is gone (H 6.3). */
#include <stdlib.h>

#include "low/device.h"

static int watch(struct h_dev *dev, const struct h_ticket *ticket, int fd,
		 struct h_nq *nq, uint64_t cookie, bool claim, struct h_watch **out)
{
	struct h_watch *w;
	int err;

	*out = NULL;
	if (!nq || nq->dev != dev)
		return h__refuse(dev, -EINVAL, "an NQ of this device is needed");
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->dev = dev;
	w->nq = nq;
	w->claim = claim;
	err = h__dev_lock(dev);
	if (err)
		goto err_free;
	err = dev->ops->watch(w, ticket, fd, cookie);
	if (!err) {
		H_LINK(dev->watches, w);
		nq->users++;
		h__write_once(&nq->watches, nq->watches + 1);
	}
	h__unlock(&dev->lock);
	if (err)
		goto err_free;
	*out = w;
	return 0;

err_free:
	free(w);
	return err;
}

static int watch_slot(struct h_dev *dev, const struct h_ticket *ticket, struct h_nq *nq,
		      uint64_t cookie, bool claim, struct h_watch **out)
{
	*out = NULL;
	if (ticket->flags)
		return h__refuse(dev, ticket->flags & H_TICKET_IMPORTED ?
				 -EOPNOTSUPP : -EINVAL,
				 "an imported ticket: watch by its descriptor");
	return watch(dev, ticket, -1, nq, cookie, claim, out);
}

int h_watch(struct h_dev *dev, const struct h_ticket *ticket, struct h_nq *nq,
	    uint64_t cookie, struct h_watch **out)
{
	return watch_slot(dev, ticket, nq, cookie, false, out);
}

int h__watch_claim(struct h_dev *dev, const struct h_ticket *ticket, int fd,
		   struct h_nq *nq, uint64_t cookie, struct h_watch **out)
{
	return fd < 0 ? watch_slot(dev, ticket, nq, cookie, true, out) :
			watch(dev, NULL, fd, nq, cookie, true, out);
}

int h_watch_fd(struct h_dev *dev, int fd, struct h_nq *nq, uint64_t cookie,
	       struct h_watch **out)
{
	return watch(dev, NULL, fd, nq, cookie, false, out);
}

int h_unwatch(struct h_watch *w)
{
	struct h_dev *dev;
	int err;

	if (!w)
		return 0;
	dev = w->dev;
	err = h__dev_lock(dev);
	if (err)
		return err;
	err = dev->ops->unwatch(w);
	if (!err) {
		H_UNLINK(dev->watches, w);
		w->nq->users--;
		h__write_once(&w->nq->watches, w->nq->watches - 1);
	}
	h__unlock(&dev->lock);
	if (!err)
		free(w);
	return err;
}
