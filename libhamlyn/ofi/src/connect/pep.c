// SPDX-License-Identifier: MIT
#include "connect/pep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rdma/fi_cm.h>

#include "base/address.h"
#include "base/hosts.h"
#include "connect/far.h"
#include "endpoint/common.h"

/* Of more connections than this over which nothing was said, the oldest is closed. */
#define MAX_ASKED	256

/*
 * With so many requests that the application has not answered, others wait in the backlog; but
 * those that had been taken from there, and were silent, are told, too.
 */
#define MAX_REQUESTED	1024

static struct hf_pep *of(fid_t fid)
{
	return hf_container(fid, struct hf_pep, fid.fid);
}

void hf_pep_remember(struct hf_pep *pep, struct hf_conn *conn)
{
	struct hf_conn *oldest = NULL;

	conn->pep = pep;
	conn->next = pep->conns;
	pep->conns = conn;
	if (++pep->asked <= MAX_ASKED)
		return;
	for (struct hf_conn *c = pep->conns; c; c = c->next)
		if (c->state == HF_CONN_ASKED)
			oldest = c;
	hf_conn_close(oldest);
}

void hf_pep_forget(struct hf_pep *pep, struct hf_conn *conn)
{
	struct hf_conn **at = &pep->conns;

	while (*at && *at != conn)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = conn->next;
	if (conn->state == HF_CONN_ASKED)
		pep->asked--;
	else if (pep->requested-- == MAX_REQUESTED && hf_source_add(&pep->source, pep->eq->wait))
		hf_warn("passive end point: it listens no more\n");
}

/* Tell the application that somebody wants to connect. */
int hf_pep_request(struct hf_pep *pep, struct hf_conn *conn)
{
	struct fi_info *info = fi_dupinfo(pep->info);

	if (!info)
		return -FI_ENOMEM;
	pep->asked--;
	conn->state = HF_CONN_REQUESTED;
	if (++pep->requested == MAX_REQUESTED)
		hf_source_remove(&pep->source);
	free(info->src_addr);
	free(info->dest_addr);
	info->src_addr = hf_address_dup(&pep->address);
	info->src_addrlen = sizeof(pep->address);
	info->dest_addr = hf_address_dup(&conn->peer.address);
	info->dest_addrlen = sizeof(conn->peer.address);
	info->handle = &conn->fid;
	hf_eq_add(pep->eq, FI_CONNREQ, &pep->fid.fid, info, conn->peer.data,
		  conn->peer.data_length);
	return 0;
}

static void pep_ready(struct hf_source *source)
{
	struct hf_pep *pep = hf_container(source, struct hf_pep, source);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		hf_conn_arrived(pep, fd);
}

/* ---- calls -------------------------------------------------------------- */

static int pep_bind_name(struct hf_pep *pep)
{
	int err;

	if (pep->source.fd >= 0)
		return 0;
	pep->source.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (pep->source.fd < 0)
		return -errno;
	err = hf_address_bind(pep->source.fd, &pep->address);
	if (err) {
		close(pep->source.fd);
		pep->source.fd = -1;
	}
	return err;
}

int hf_pep_give_name(struct hf_pep *pep, struct sockaddr_in *address, int *fd)
{
	int err;

	if (pep->source.listed)
		return -FI_EOPBADSTATE;
	err = pep_bind_name(pep);
	if (err)
		return err;
	*address = pep->address;
	if (address->sin_addr.s_addr == htonl(INADDR_ANY))
		address->sin_addr = hf_host_own_address();
	*fd = pep->source.fd;
	pep->source.fd = -1;
	pep->given = true;
	return 0;
}

static int pep_listen(struct fid_pep *fid)
{
	struct hf_pep *pep = of(&fid->fid);
	int err;

	if (pep->given)
		return -FI_EOPBADSTATE;
	if (!pep->eq)
		return -FI_ENOEQ;
	pthread_mutex_lock(&pep->eq->cm);
	err = pep_bind_name(pep);
	if (!err && listen(pep->source.fd, pep->backlog))
		err = -errno;
	if (!err && !pep->source.listed) {
		err = hf_far_listen(&pep->address);
		if (!err)
			err = hf_source_add(&pep->source, pep->eq->wait);
	}
	pthread_mutex_unlock(&pep->eq->cm);
	return err;
}

static int pep_setname(fid_t fid, void *addr, size_t length)
{
	struct hf_pep *pep = of(fid);

	if (pep->source.fd >= 0 || pep->given)
		return -FI_EOPBADSTATE;
	if (!hf_address_valid(addr, length))
		return -FI_EINVAL;
	memcpy(&pep->address, addr, sizeof(pep->address));
	return hf_address_is_here(&pep->address) ? pep_bind_name(pep) : -FI_EADDRNOTAVAIL;
}

static int pep_getname(fid_t fid, void *addr, size_t *length)
{
	struct sockaddr_in address = of(fid)->address;

	/* Of the addresses that "any" stands for, all of this host, the one that always works. */
	if (address.sin_addr.s_addr == htonl(INADDR_ANY))
		address.sin_addr = hf_host_own_address();
	return hf_address_copy(&address, addr, length);
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t length)
{
	struct hf_pep *pep = of(&fid->fid);

	if (!handle || handle->fclass != FI_CLASS_CONNREQ)
		return -FI_EINVAL;
	pthread_mutex_lock(&pep->eq->cm);
	hf_conn_reject(hf_container(handle, struct hf_conn, fid), param, length);
	pthread_mutex_unlock(&pep->eq->cm);
	return 0;
}

static struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.getpeer = hf_no_getpeer,
	.connect = hf_no_connect,
	.listen = pep_listen,
	.accept = hf_no_accept,
	.reject = pep_reject,
	.shutdown = hf_no_shutdown,
	.join = hf_no_join,
};

static ssize_t no_cancel(fid_t fid, void *context)
{
	(void)fid;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

static struct fi_ops_ep pep_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = no_cancel,
	.getopt = hf_getopt,
	.setopt = hf_no_setopt,
	.tx_ctx = hf_no_tx_ctx,
	.rx_ctx = hf_no_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

static int pep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct hf_pep *pep = of(fid);
	struct hf_eq *eq;

	if (other->fclass != FI_CLASS_EQ || flags)
		return -FI_EINVAL;
	if (pep->eq)
		return -FI_EOPBADSTATE;
	eq = hf_container(other, struct hf_eq, fid.fid);
	if (eq->fabric != pep->fabric)
		return -FI_EINVAL;
	pep->eq = eq;
	__atomic_add_fetch(&eq->users, 1, __ATOMIC_RELAXED);
	return 0;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (*(int *)arg < 0)
		return -FI_EINVAL;
	of(fid)->backlog = *(int *)arg;
	return 0;
}

static int pep_close(struct fid *fid)
{
	struct hf_pep *pep = of(fid);

	if (pep->eq) {
		pthread_mutex_lock(&pep->eq->cm);
		while (pep->conns)
			hf_conn_close(pep->conns);
		hf_source_remove(&pep->source);
		hf_eq_forget(pep->eq, fid);
		pthread_mutex_unlock(&pep->eq->cm);
		__atomic_sub_fetch(&pep->eq->users, 1, __ATOMIC_RELEASE);
	}
	if (pep->source.fd >= 0) {
		hf_far_deafen(&pep->address);
		close(pep->source.fd);
	}
	hf_fabric_put(pep->fabric);
	fi_freeinfo(pep->info);
	free(pep);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(pep_close),
	.bind = pep_bind,
	.control = pep_control,
};

int hf_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **out,
		void *context)
{
	struct hf_pep *pep;

	if (info->ep_attr && info->ep_attr->type != FI_EP_MSG)
		return -FI_EINVAL;
	if (info->src_addr && !hf_address_valid(info->src_addr, info->src_addrlen))
		return -FI_EINVAL;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pep->info = fi_dupinfo(info);
	if (!pep->info) {
		free(pep);
		return -FI_ENOMEM;
	}
	pep->address.sin_family = AF_INET;
	pep->address.sin_addr = hf_host_own_address();
	if (info->src_addr)
		memcpy(&pep->address, info->src_addr, sizeof(pep->address));
	pep->source.fd = -1;
	pep->source.ready = pep_ready;
	pep->backlog = SOMAXCONN;
	pep->fabric = hf_container(fabric, struct hf_fabric, fid);
	hf_fabric_get(pep->fabric);
	pep->fid.fid.fclass = FI_CLASS_PEP;
	pep->fid.fid.context = context;
	pep->fid.fid.ops = &fid_ops;
	pep->fid.ops = &pep_ep_ops;
	pep->fid.cm = &pep_cm_ops;
	*out = &pep->fid;
	return 0;
}
