// SPDX-License-Identifier: MIT
#include "connect/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/address.h"
#include "base/hosts.h"
#include "connect/far.h"
#include "connect/pep.h"
#include "endpoint/ep.h"
#include "transfer/direct.h"

#define MAGIC	0x31696668U	/* "hfi1" */

/* How often, a millisecond apart, a full backlog is tried. */
#define CONNECT_TRIES	1000

static void conn_ready(struct hf_source *source);

struct hf_conn *hf_conn_new(int fd, uint32_t host, enum hf_conn_state state, struct hf_eq *eq)
{
	struct hf_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->fid.fclass = FI_CLASS_CONNREQ;
	conn->source.fd = fd;
	conn->source.ready = conn_ready;
	conn->state = state;
	conn->eq = eq;
	conn->host = host;
	return conn;
}

void hf_conn_close(struct hf_conn *conn)
{
	if (!conn)
		return;
	hf_source_remove(&conn->source);
	if (conn->pep)
		hf_pep_forget(conn->pep, conn);
	close(conn->source.fd);
	free(conn);
}

/* May the peer's user connect? Its process is known afterwards, if that is of our own user. */
int hf_conn_check_peer(struct hf_conn *conn)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(conn->source.fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	conn->pid = peer.uid == geteuid() && conn->host == HAMLYN_NONE ? peer.pid : 0;
	return peer.uid == geteuid() || hf_settings.any_user ? 0 : -FI_EPERM;
}

static void put_data(struct hf_hello *hello, const void *data, size_t length)
{
	/* fi_cm(3): what does not fit is cut off silently. */
	hello->data_length = (uint32_t)(length < HF_CM_DATA ? length : HF_CM_DATA);
	if (hello->data_length)
		memcpy(hello->data, data, hello->data_length);
}

int hf_conn_say(struct hf_conn *conn, enum hf_hello_kind kind, const void *data, size_t length)
{
	struct hf_hello hello = { .magic = MAGIC, .version = HF_PROTOCOL_VERSION, .kind = kind };

	put_data(&hello, data, length);
	if (kind != HF_HELLO_REJECT) {
		struct hf_ep *ep = conn->ep;

		h_channel_seed(ep->channel, &hello.seed);
		h_dev_fabric(ep->domain->dev, &hello.fabric);
		hello.address = ep->address;
		/* Only processes of our own user are told where something is. */
		if (conn->pid && hf_settings.direct &&
		    getrandom(&conn->probe, sizeof(conn->probe), 0) == sizeof(conn->probe)) {
			hello.probe = conn->probe;
			hello.probe_address = (uintptr_t)&conn->probe;
		}
	}
	if (send(conn->source.fd, &hello, sizeof(hello), MSG_NOSIGNAL | MSG_DONTWAIT) !=
	    sizeof(hello))
		return -FI_ECONNRESET;
	return 0;
}

/* 0: understood; -EAGAIN: nothing there; else the peer is gone or talks nonsense. */
int hf_conn_hear(struct hf_conn *conn)
{
	struct hf_hello *hello = &conn->peer;
	ssize_t got = recv(conn->source.fd, hello, sizeof(*hello), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -FI_ECONNRESET;
	if (!got)
		return -FI_ECONNRESET;
	if (got != sizeof(*hello) || hello->magic != MAGIC ||
	    hello->version != HF_PROTOCOL_VERSION || hello->data_length > HF_CM_DATA)
		return -FI_ECONNABORTED;
	return 0;
}

/* With the other's seed the channel is ready to send. Domain locked. */
int hf_conn_join(struct hf_conn *conn)
{
	struct hf_ep *ep = conn->ep;
	const struct hf_hello *hello = &conn->peer;
	int err;

	if (!h_dev_reaches(ep->domain->dev, &hello->fabric))
		return -FI_EHOSTUNREACH;
	err = h_channel_join(ep->channel, &hello->seed);
	if (err)
		return err;
	ep->peer = hello->address;
	ep->offers = conn->pid && hf_settings.direct;
	if (conn->pid && hello->probe && hf_settings.direct &&
	    hf_direct_probe(conn->pid, hello->probe_address, hello->probe))
		ep->pid = conn->pid;
	hf_ep_connected(ep);
	return 0;
}

static int join(struct hf_conn *conn)
{
	struct hf_domain *domain = conn->ep->domain;
	int err;

	hf_domain_lock(domain);
	err = hf_conn_join(conn);
	hf_domain_unlock(domain);
	return err;
}

/* ---- the side that asks ------------------------------------------------- */

/* A full backlog is emptied by a process that runs: soon. */
static int reach(const struct sockaddr_in *to)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (int i = 0; i < CONNECT_TRIES; i++) {
		int fd = hf_address_reach(to);

		if (fd != -FI_EAGAIN)
			return fd;
		nanosleep(&nap, NULL);
	}
	return -FI_ECONNREFUSED;
}

int hf_conn_connect(struct hf_ep *ep, const struct sockaddr_in *to, const void *data,
		    size_t length)
{
	uint32_t host = hf_host_far(to);
	int fd = host == HAMLYN_NONE ? reach(to) : hf_far_connect(to);
	struct hf_conn *conn;
	int err;

	if (fd < 0)
		return fd;
	conn = hf_conn_new(fd, host, HF_CONN_ASKING, ep->eq);
	if (!conn) {
		close(fd);
		return -FI_ENOMEM;
	}
	conn->ep = ep;
	err = hf_conn_check_peer(conn);
	if (!err)
		err = hf_conn_say(conn, HF_HELLO_CONNECT, data, length);
	if (!err)
		err = hf_source_add(&conn->source, ep->eq->wait);
	if (err) {
		hf_conn_close(conn);
		return err;
	}
	ep->conn = conn;
	return 0;
}

static void conn_answered(struct hf_conn *conn)
{
	const struct hf_hello *hello = &conn->peer;
	struct hf_ep *ep = conn->ep;
	size_t said = 0;
	int err = hf_conn_hear(conn);

	if (err == -EAGAIN)
		return;
	if (!err && hello->kind == HF_HELLO_ACCEPT) {
		err = join(conn);
	} else if (!err) {
		err = -FI_ECONNREFUSED;
		/* Of what was not understood, not even the length can be used. */
		said = hello->kind == HF_HELLO_REJECT ? hello->data_length : 0;
	}
	if (!err) {
		conn->state = HF_CONN_OPEN;
		hf_eq_add(conn->eq, FI_CONNECTED, &ep->fid.fid, NULL, hello->data,
			  hello->data_length);
		return;
	}
	/* Gone before it answered is as good as refused. */
	if (err == -FI_ECONNRESET)
		err = -FI_ECONNREFUSED;
	hf_eq_add_error(conn->eq, &ep->fid.fid, -err, hello->data, said);
	ep->conn = NULL;
	hf_conn_close(conn);
}

/* ---- the side that is asked --------------------------------------------- */

void hf_conn_arrived(struct hf_pep *pep, int fd)
{
	struct hf_conn *conn = hf_conn_new(fd, hf_far_host(fd), HF_CONN_ASKED, pep->eq);

	if (!conn) {
		close(fd);
		return;
	}
	if (hf_conn_check_peer(conn) || hf_source_add(&conn->source, pep->eq->wait)) {
		hf_conn_close(conn);
		return;
	}
	hf_pep_remember(pep, conn);
}

static void conn_asked(struct hf_conn *conn)
{
	int err = hf_conn_hear(conn);

	if (err == -EAGAIN)
		return;
	if (err || conn->peer.kind != HF_HELLO_CONNECT ||
	    !hf_address_valid(&conn->peer.address, sizeof(conn->peer.address))) {
		hf_conn_close(conn);
		return;
	}
	hf_source_remove(&conn->source);
	if (hf_pep_request(conn->pep, conn))
		hf_conn_close(conn);
}

/* The client has not heard that it was accepted, and never will: an error event says so. */
static void undo_join(struct hf_ep *ep)
{
	hf_domain_lock(ep->domain);
	ep->told = true;
	hf_ep_lost(ep, FI_ECONNRESET);
	hf_domain_unlock(ep->domain);
}

int hf_conn_accept(struct hf_conn *conn, struct hf_ep *ep, const void *data, size_t length)
{
	int err;

	hf_pep_forget(conn->pep, conn);
	conn->pep = NULL;
	conn->eq = ep->eq;
	conn->ep = ep;
	/* Once it is told, messages may come, and other threads ask whether the peer lives. */
	ep->conn = conn;
	err = join(conn);
	if (!err) {
		err = hf_conn_say(conn, HF_HELLO_ACCEPT, data, length);
		if (!err)
			err = hf_source_add(&conn->source, ep->eq->wait);
		if (err)
			undo_join(ep);
	}
	if (err) {
		ep->conn = NULL;
		return err;
	}
	conn->state = HF_CONN_OPEN;
	hf_eq_add(ep->eq, FI_CONNECTED, &ep->fid.fid, NULL, NULL, 0);
	return 0;
}

void hf_conn_reject(struct hf_conn *conn, const void *data, size_t length)
{
	hf_conn_say(conn, HF_HELLO_REJECT, data, length);
	hf_conn_close(conn);
}

/* ---- both --------------------------------------------------------------- */

static void conn_ready(struct hf_source *source)
{
	struct hf_conn *conn = hf_container(source, struct hf_conn, source);

	switch (conn->state) {
	case HF_CONN_ASKED:
		conn_asked(conn);
		break;
	case HF_CONN_ASKING:
		conn_answered(conn);
		break;
	default:
		/* Nothing more is said: it has ended, or the peer breaks the rules. */
		hf_source_remove(source);
		hf_ep_peer_gone(conn->ep);
	}
}
