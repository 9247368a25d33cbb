// SPDX-License-Identifier: MIT
#include "connect/cm.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "endpoint/common.h"
#include "endpoint/ep.h"
#include "endpoint/msg.h"

static struct hf_ep *of(struct fid_ep *fid)
{
	return hf_container(fid, struct hf_ep, fid);
}

/* It gets a port, if it asks for none, and nobody else gets that one. */
static int take_name(struct hf_ep *ep, const struct sockaddr_in *address)
{
	struct sockaddr_in name = *address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = hf_address_bind(fd, &name);
	if (err) {
		close(fd);
		return err;
	}
	ep->address = name;
	ep->name_fd = fd;
	return 0;
}

static int cm_setname(fid_t fid, void *addr, size_t length)
{
	struct hf_ep *ep = hf_container(fid, struct hf_ep, fid.fid);

	if (!hf_address_valid(addr, length))
		return -FI_EINVAL;
	if (ep->state >= HF_EP_CONNECTING || ep->name_fd >= 0)
		return -FI_EOPBADSTATE;
	if (!hf_address_is_here(addr))
		return -FI_EADDRNOTAVAIL;
	return take_name(ep, addr);
}

static int cm_getname(fid_t fid, void *addr, size_t *length)
{
	return hf_address_copy(&hf_container(fid, struct hf_ep, fid.fid)->address, addr, length);
}

static int cm_getpeer(struct fid_ep *fid, void *addr, size_t *length)
{
	if (of(fid)->state < HF_EP_CONNECTED)
		return -FI_ENOTCONN;
	return hf_address_copy(&of(fid)->peer, addr, length);
}

/* fi_connect() and fi_accept() enable what was not enabled. */
static int begin(struct hf_ep *ep)
{
	int err = 0;

	hf_ep_default_eq(ep);
	if (!ep->eq)
		return -FI_ENOEQ;
	if (ep->state == HF_EP_NEW)
		err = fi_enable(&ep->fid);
	if (!err && ep->state != HF_EP_ENABLED)
		err = -FI_EOPBADSTATE;
	return err;
}

/* What goes wrong on the way to the other end is an event, as if it had said so. */
static int ask(struct hf_ep *ep, const struct sockaddr_in *to, const void *param, size_t length)
{
	int err = hf_address_is_known(to) ? hf_conn_connect(ep, to, param, length) :
					    -FI_EHOSTUNREACH;

	if (err == -FI_ENOMEM)
		return err;
	ep->state = HF_EP_CONNECTING;
	ep->peer = *to;
	if (err)
		hf_eq_add_error(ep->eq, &ep->fid.fid, -err, NULL, 0);
	return 0;
}

static int cm_connect(struct fid_ep *fid, const void *addr, const void *param, size_t length)
{
	struct hf_ep *ep = of(fid);
	struct sockaddr_in to = ep->dest;
	int err = begin(ep);

	if (err)
		return err;
	if (addr)
		memcpy(&to, addr, sizeof(to));
	if (!hf_address_valid(&to, sizeof(to)) || !to.sin_port)
		return -FI_EINVAL;
	pthread_mutex_lock(&ep->eq->cm);
	err = ask(ep, &to, param, length);
	pthread_mutex_unlock(&ep->eq->cm);
	return err;
}

static int cm_accept(struct fid_ep *fid, const void *param, size_t length)
{
	struct hf_ep *ep = of(fid);
	struct hf_conn *conn;
	int err = begin(ep);

	if (err)
		return err;
	if (!ep->handle)
		return -FI_EOPBADSTATE;
	conn = hf_container(ep->handle, struct hf_conn, fid);
	ep->handle = NULL;
	pthread_mutex_lock(&ep->eq->cm);
	err = hf_conn_accept(conn, ep, param, length);
	if (err) {
		/* The client has gone, or is on another fabric: an event says so. */
		hf_eq_add_error(ep->eq, &ep->fid.fid, -err, NULL, 0);
		hf_conn_reject(conn, NULL, 0);
	}
	pthread_mutex_unlock(&ep->eq->cm);
	return 0;
}

static int cm_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct hf_ep *ep = of(fid);

	if (flags)
		return -FI_EINVAL;
	if (!ep->eq)
		return -FI_ENOTCONN;
	return hf_ep_shut(ep, false);
}

struct fi_ops_cm hf_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.listen = hf_no_listen,
	.accept = cm_accept,
	.reject = hf_no_reject,
	.shutdown = cm_shutdown,
	.join = hf_no_join,
};
