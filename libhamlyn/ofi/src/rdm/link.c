// SPDX-License-Identifier: MIT
#include "rdm/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/hosts.h"
#include "connect/far.h"
#include "transfer/progress.h"

#define SOURCES_AT_ONCE	64

/* Of more connections than this over which nothing was said, the oldest is closed. */
#define MAX_ASKED	256

/* How long fi_close() waits for all peers that have not taken what was sent. */
#define LINGER_NS	100000000LL

static void conn_ready(struct hf_source *source);

/* ---- sockets ------------------------------------------------------------- */

static int who(int fd, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) ? -errno : 0;
}

/* Is it the process that has asked that listens where it says that it does? */
static int check_owner(const struct hf_conn *conn)
{
	const struct sockaddr_in *address = &conn->peer.address;
	struct ucred asker, owner;
	int fd, err;

	if (conn->host != HAMLYN_NONE)
		return hf_host_of(address) == conn->host ? 0 : -FI_EACCES;
	fd = hf_address_is_here(address) ? hf_address_reach(address) : -FI_EACCES;
	if (fd < 0)
		return fd;
	err = who(conn->source.fd, &asker);
	if (!err)
		err = who(fd, &owner);
	close(fd);
	if (err)
		return err;
	return asker.pid == owner.pid && asker.uid == owner.uid ? 0 : -FI_EACCES;
}

static bool has_ended(const struct hf_conn *conn)
{
	char byte;

	return recv(conn->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* ---- links --------------------------------------------------------------- */

static struct hf_ep *link_new(struct hf_rdm *rdm, const struct sockaddr_in *peer)
{
	struct hf_ep *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	/* Nothing of its own is in use there: it has no channel. */
	*link = rdm->ep;
	hf_ep_init(link);
	link->tx_size = HF_TX_SIZE_MAX;
	link->state = HF_EP_CONNECTING;
	link->peer = *peer;
	link->place = hf_host_place(peer);
	if (hf_ep_make_channel(link)) {
		free(link);
		return NULL;
	}
	link->next_link = rdm->all;
	rdm->all = link;
	return link;
}

static void detach(struct hf_ep *link)
{
	struct hf_ep **at = &link->rdm->links[link->place];

	if (*at == link)
		*at = NULL;
}

static void link_free(struct hf_ep *link, int64_t linger_ns)
{
	struct hf_rdm *rdm = link->rdm;
	struct hf_ep **at = &rdm->all;

	detach(link);
	while (*at != link)
		at = &(*at)->next_link;
	*at = link->next_link;
	rdm->asking -= link->state == HF_EP_CONNECTING;
	hf_ep_disconnect(link, linger_ns);
	hf_match_orphan(link);
	hf_conn_close(link->conn);
	hf_works_free(&link->works);
	free(link);
}

/* By hf_ep_lost(), perhaps in a callback of its channel: it is freed later. */
void hf_link_lost(struct hf_ep *link)
{
	detach(link);
	hf_match_lost(link);
	link->rdm->lost = true;
	link->domain->attend = true;
}

static void reap(struct hf_rdm *rdm)
{
	struct hf_ep *link = rdm->all;

	rdm->lost = false;
	while (link) {
		struct hf_ep *next = link->next_link;

		/* What of it waits for room is still received. */
		if (link->told && !link->held_count)
			hf_ep_lost(link, FI_ECONNRESET);
		if (link->held_count)
			rdm->lost = rdm->lost || link->told;
		else if (link->state == HF_EP_LOST && !link->failure)
			link_free(link, H_NOWAIT);
		link = next;
	}
}

/* ---- the side that asks -------------------------------------------------- */

/* Why, is what the next call that sends there returns. */
static void fail(struct hf_ep *link, int err)
{
	struct hf_rdm *rdm = link->rdm;

	hf_conn_close(link->conn);
	link->conn = NULL;
	rdm->asking--;
	link->state = HF_EP_LOST;
	link->failure = err;
	hf_match_lost(link);
}

static int ask(struct hf_rdm *rdm, const struct sockaddr_in *to)
{
	uint32_t host = hf_host_far(to);
	int fd = host == HAMLYN_NONE ? hf_address_reach(to) : hf_far_connect(to);
	struct hf_conn *conn;
	struct hf_ep *link;
	int err;

	if (fd < 0)
		return fd;
	conn = hf_conn_new(fd, host, HF_CONN_ASKING, NULL);
	link = conn ? link_new(rdm, to) : NULL;
	if (!link) {
		if (conn)
			hf_conn_close(conn);
		else
			close(fd);
		return -FI_EAGAIN;
	}
	conn->rdm = rdm;
	conn->ep = link;
	conn->source.ready = conn_ready;
	link->conn = conn;
	rdm->asking++;
	err = hf_conn_check_peer(conn);
	if (!err)
		err = hf_conn_say(conn, HF_HELLO_LINK, NULL, 0);
	if (!err)
		err = hf_source_add(&conn->source, rdm->ep.domain->links);
	if (err) {
		link_free(link, H_NOWAIT);
		return err == -FI_ECONNRESET ? -FI_ECONNREFUSED : err;
	}
	rdm->links[link->place] = link;
	rdm->ep.domain->attend = true;
	return 0;
}

/* There is no link, or none yet. */
int hf_link_seek(struct hf_rdm *rdm, uint32_t place, fi_addr_t addr, struct hf_ep **link)
{
	struct sockaddr_in to;
	int err;

	if (!place)
		return -FI_EINVAL;
	if (place == hf_host_nowhere())
		return -FI_EHOSTUNREACH;
	hf_link_progress(rdm->ep.domain);
	*link = rdm->links[place];
	if (!*link) {
		to = rdm->av->entries[addr].address;
		err = ask(rdm, &to);
		return err ? err : -FI_EAGAIN;
	}
	if ((*link)->state == HF_EP_CONNECTED)
		return 0;
	if (!(*link)->failure)
		return -FI_EAGAIN;
	err = (*link)->failure;
	link_free(*link, H_NOWAIT);
	return err;
}

static int refused_by(const struct hf_hello *hello)
{
	int why = 0;

	if (hello->data_length == sizeof(why))
		memcpy(&why, hello->data, sizeof(why));
	return why == FI_EAGAIN ? -FI_EAGAIN : -FI_ECONNREFUSED;
}

static void conn_answered(struct hf_conn *conn)
{
	struct hf_ep *link = conn->ep;
	struct sockaddr_in peer = link->peer;
	int err = hf_conn_hear(conn);

	if (err == -EAGAIN)
		return;
	if (!err)
		err = conn->peer.kind == HF_HELLO_ACCEPT ? hf_conn_join(conn) :
							   refused_by(&conn->peer);
	/* It is known under the name by which it was asked, whatever it says. */
	link->peer = peer;
	if (!err) {
		conn->state = HF_CONN_OPEN;
		conn->rdm->asking--;
	} else if (err == -FI_EAGAIN) {
		/* It asks us. */
		link_free(link, H_NOWAIT);
	} else {
		fail(link, err == -FI_ECONNRESET ? -FI_ECONNREFUSED : err);
	}
}

/* ---- the side that is asked ---------------------------------------------- */

static void forget_asked(struct hf_rdm *rdm, struct hf_conn *conn)
{
	struct hf_conn **at = &rdm->asked;

	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	rdm->asked_count--;
}

static void remember_asked(struct hf_rdm *rdm, struct hf_conn *conn)
{
	struct hf_conn *oldest = conn;

	conn->next = rdm->asked;
	rdm->asked = conn;
	if (++rdm->asked_count <= MAX_ASKED)
		return;
	while (oldest->next)
		oldest = oldest->next;
	forget_asked(rdm, oldest);
	hf_conn_close(oldest);
}

static void listener_ready(struct hf_source *source)
{
	struct hf_rdm *rdm = hf_container(source, struct hf_rdm, listener);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct hf_conn *conn;

	if (fd < 0)
		return;
	conn = hf_conn_new(fd, hf_far_host(fd), HF_CONN_ASKED, NULL);
	if (!conn) {
		close(fd);
		return;
	}
	conn->rdm = rdm;
	conn->source.ready = conn_ready;
	if (hf_conn_check_peer(conn) || hf_source_add(&conn->source, rdm->ep.domain->links)) {
		hf_conn_close(conn);
		return;
	}
	remember_asked(rdm, conn);
}

/* Of two that ask each other: is it we who go on? Both say the same. */
static bool goes_first(const struct hf_rdm *rdm, const struct sockaddr_in *peer)
{
	uint32_t host = hf_host_far(peer);

	if (host != HAMLYN_NONE)
		return hf_host_own() > host;
	return ntohs(rdm->ep.address.sin_port) > ntohs(peer->sin_port);
}

/* May it become the link to that process? What was there before gives way. */
static int make_room(struct hf_rdm *rdm, const struct sockaddr_in *peer)
{
	uint32_t place = hf_host_place(peer);
	struct hf_ep *link = rdm->links[place];

	/* To ourselves: one end of the link is in the table, the other is not. */
	if (place == hf_host_place(&rdm->ep.address) || !link)
		return 0;
	if (link->state == HF_EP_CONNECTING && goes_first(rdm, peer))
		return -FI_EAGAIN;
	/* It has begun anew, so that nobody is at the other end of the old one. */
	if (link->state == HF_EP_CONNECTED)
		hf_ep_lost(link, FI_ECONNRESET);
	else
		link_free(link, H_NOWAIT);
	return 0;
}

static int take(struct hf_rdm *rdm, struct hf_conn *conn)
{
	const struct sockaddr_in *peer = &conn->peer.address;
	struct hf_ep *link;
	int err = check_owner(conn);

	if (!err)
		err = make_room(rdm, peer);
	if (err)
		return err;
	link = link_new(rdm, peer);
	if (!link)
		return -FI_ENOMEM;
	rdm->asking++;
	conn->ep = link;
	err = hf_conn_join(conn);
	if (!err) {
		rdm->asking--;
		err = hf_conn_say(conn, HF_HELLO_ACCEPT, NULL, 0);
	}
	if (err) {
		link_free(link, H_NOWAIT);
		conn->ep = NULL;
		return err;
	}
	link->conn = conn;
	conn->state = HF_CONN_OPEN;
	if (!rdm->links[link->place])
		rdm->links[link->place] = link;
	return 0;
}

static void conn_asked(struct hf_conn *conn)
{
	const struct hf_hello *hello = &conn->peer;
	struct hf_rdm *rdm = conn->rdm;
	int err = hf_conn_hear(conn), why;

	if (err == -EAGAIN)
		return;
	forget_asked(rdm, conn);
	if (err || hello->kind != HF_HELLO_LINK || !hello->address.sin_port ||
	    !hf_address_valid(&hello->address, sizeof(hello->address)) || has_ended(conn)) {
		hf_conn_close(conn);
		return;
	}
	err = take(rdm, conn);
	if (!err)
		return;
	why = -err;
	hf_conn_say(conn, HF_HELLO_REJECT, &why, sizeof(why));
	hf_conn_close(conn);
}

/* ---- both ---------------------------------------------------------------- */

/* Nothing more is said: it has ended. What it had sent before comes first. */
static void conn_ended(struct hf_conn *conn)
{
	struct hf_ep *link = conn->ep;

	hf_source_remove(&conn->source);
	if (link->domain->hot == link)
		hf_progress_cool(link->domain);
	h_manager_dispatch(link->domain->manager);
	hf_ep_orphaned(link);
	detach(link);
	conn->rdm->lost = true;
}

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
		conn_ended(conn);
	}
}

void hf_link_retry(struct hf_domain *domain)
{
	domain->backlog = false;
	for (struct hf_rdm *rdm = domain->rdms; rdm; rdm = rdm->next)
		if (rdm->match->backlog)
			hf_match_retry(rdm);
}

/* Of all end points of the domain; not in a callback. */
void hf_link_progress(struct hf_domain *domain)
{
	bool attend = false;

	domain->attend = false;
	if (domain->rdms)
		hf_source_serve(domain->links, SOURCES_AT_ONCE);
	for (struct hf_rdm *rdm = domain->rdms; rdm; rdm = rdm->next) {
		if (rdm->lost)
			reap(rdm);
		attend = attend || rdm->asking || rdm->lost;
	}
	domain->attend = domain->attend || attend;
}

/* ---- all of an end point's ----------------------------------------------- */

static int listen_at(struct hf_rdm *rdm)
{
	int err;

	rdm->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (rdm->listener.fd < 0)
		return -errno;
	rdm->listener.ready = listener_ready;
	err = hf_address_bind(rdm->listener.fd, &rdm->ep.address);
	if (!err && listen(rdm->listener.fd, SOMAXCONN))
		err = -errno;
	if (!err)
		err = hf_far_listen(&rdm->ep.address);
	return err ? err : hf_source_add(&rdm->listener, rdm->ep.domain->links);
}

int hf_link_open(struct hf_rdm *rdm)
{
	int err;

	err = listen_at(rdm);
	if (!err) {
		rdm->links = calloc(hf_host_places(), sizeof(*rdm->links));
		err = rdm->links ? 0 : -FI_ENOMEM;
	}
	if (err) {
		hf_link_close(rdm);
		return err;
	}
	rdm->next = rdm->ep.domain->rdms;
	rdm->ep.domain->rdms = rdm;
	return 0;
}

static void leave(struct hf_rdm *rdm)
{
	struct hf_rdm **at = &rdm->ep.domain->rdms;

	while (*at && *at != rdm)
		at = &(*at)->next;
	if (*at)
		*at = rdm->next;
}

/* Contexts may be gone when what ends by that would be read: nothing is said of it. */
void hf_link_close(struct hf_rdm *rdm)
{
	int64_t until = hf_now_ns() + LINGER_NS;

	leave(rdm);
	while (rdm->all) {
		int64_t left = until - hf_now_ns();

		rdm->all->discards = true;
		link_free(rdm->all, left > 0 ? left : H_NOWAIT);
	}
	while (rdm->asked) {
		struct hf_conn *conn = rdm->asked;

		forget_asked(rdm, conn);
		hf_conn_close(conn);
	}
	if (rdm->listener.fd >= 0) {
		hf_source_remove(&rdm->listener);
		hf_far_deafen(&rdm->ep.address);
		close(rdm->listener.fd);
	}
	free(rdm->links);
	rdm->links = NULL;
	rdm->listener.fd = -1;
}
