// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiver: makes connections and ends them, and reads what comes. Of two hosts the one with
 * the smaller id connects. Whoever connects to us is nobody until a HELLO was there: addresses
 * alone do not tell peers apart that come through the loopback device.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "bridge.h"

#define LEAST_PAUSE_NS	(100 * NS_PER_MS)	/* between two attempts */
#define MOST_PAUSE_NS	(5000 * NS_PER_MS)
#define LEAST_APART_NS	(LEAST_PAUSE_NS / 2)	/* connections of a peer that we let in */
#define LONGEST_TICK_MS	100
#define ASK_WHERE	8			/* reads; it is a system call */
#define FEW_BYTES	4096			/* more: it has enough to do by itself */

/* In epoll_event.data, besides the numbers of peers. */
enum {
	EVENT_LISTENER = 1000,
	EVENT_SIGNAL,
	EVENT_GUEST = 2000,
};

void life_hello(const struct bridge *b, struct hml_wire_hello *hello)
{
	*hello = (struct hml_wire_hello) {
		.least = HML_WIRE_VERSION,
		.greatest = HML_WIRE_VERSION,
		.host = b->set.host,
		.packet_size = SHM_PACKET_SIZE,
		.features = HML_WIRE_FEATURES,
		.incarnation = b->incarnation,
	};
	memcpy(hello->fabric_id, b->set.fabric, sizeof(hello->fabric_id));
}

static int watch_fd(struct bridge *b, int fd, u32 events, u64 what, int op)
{
	struct epoll_event e = { .events = events, .data.u64 = what };

	return epoll_ctl(b->epoll, op, fd, &e) ? -errno : 0;
}

/* Back-off: twice as long each time, until a connection was made. */
static void try_later(struct peer *p)
{
	p->due_ns = h__now_ns() + p->pause_ns;
	p->pause_ns *= 2;
	if (p->pause_ns > MOST_PAUSE_NS)
		p->pause_ns = MOST_PAUSE_NS;
}

/* @reason: what status tells; a verdict is also told to the peer. */
static void drop(struct peer *p, u32 reason)
{
	int fd = p->fd;

	peer_down(p, reason);
	names_lost(p);
	outbox_end(p, reason < HML_WIRE_VERDICTS ? reason : HML_WIRE_OK);
	p->fd = -1;
	if (fd >= 0)
		close(fd);
	p->state = PEER_IDLE;
	try_later(p);
}

/* ---- we connect ---- */

static int open_socket(const struct bridge *b, const struct peer *p)
{
	struct address from = b->set.listen;
	int one = 1, fd;

	fd = socket(p->address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (from.length && from.at.ss_family == p->address.at.ss_family) {
		/* The address is what the peer knows us by. */
		if (from.at.ss_family == AF_INET)
			((struct sockaddr_in *)&from.at)->sin_port = 0;
		else
			((struct sockaddr_in6 *)&from.at)->sin6_port = 0;
		if (bind(fd, (const struct sockaddr *)&from.at, from.length)) {
			close(fd);
			return -errno;
		}
	}
	return fd;
}

static void connect_to(struct bridge *b, struct peer *p)
{
	int fd = open_socket(b, p);

	p->state = PEER_CONNECTING;
	p->fd = fd < 0 ? -1 : fd;
	p->due_ns = h__now_ns() + b->set.dead_ms * NS_PER_MS;
	if (fd < 0 ||
	    (connect(fd, (const struct sockaddr *)&p->address.at, p->address.length) &&
	     errno != EINPROGRESS) ||
	    watch_fd(b, fd, EPOLLOUT, p->number, EPOLL_CTL_ADD))
		drop(p, SHM_PEER_SILENT);
}

/* Both sides are there: HELLO goes out. */
static void greet(struct bridge *b, struct peer *p)
{
	struct hml_wire_hello ours;

	life_hello(b, &ours);
	p->state = PEER_GREETING;
	p->due_ns = h__now_ns() + b->set.dead_ms * NS_PER_MS;
	inbox_begin(p);
	outbox_begin(p, p->fd, &ours);
}

static void connected(struct bridge *b, struct peer *p)
{
	int err = 0;
	socklen_t n = sizeof(err);

	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &n) || err ||
	    watch_fd(b, p->fd, EPOLLIN, p->number, EPOLL_CTL_MOD))
		drop(p, SHM_PEER_SILENT);
	else
		greet(b, p);
}

/* ---- others connect ---- */

static void end_guest(struct guest *g, u32 verdict)
{
	struct hml_wire_tx tx = { .epoch = 1 };
	u8 frame[HML_WIRE_MOST_CONTROL];

	if (verdict) {
		u32 n = hml_wire_pack_bye(&tx, frame, verdict);

		/* It may listen or not. */
		if (send(g->fd, frame, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			verdict = 0;
	}
	close(g->fd);
	g->fd = -1;
}

static bool from_a_peer(const struct bridge *b, const struct address *from)
{
	u32 i;

	for (i = 0; i < b->peer_count; i++)
		if (!b->peers[i].connects && address_same_host(&b->peers[i].address, from))
			return true;
	return false;
}

/* A free place, or that of the one who has said nothing for longest. */
static u32 guest_place(struct bridge *b)
{
	u32 i, oldest = 0;

	for (i = 0; i < MOST_GUESTS; i++) {
		if (b->guests[i].fd < 0)
			return i;
		if (b->guests[i].give_up_ns < b->guests[oldest].give_up_ns)
			oldest = i;
	}
	end_guest(&b->guests[oldest], HML_WIRE_OK);
	return oldest;
}

/* Whoever waits there would keep us awake while there is no descriptor for it. */
static void listen_again(struct bridge *b, bool again)
{
	if (b->deaf == again &&
	    !watch_fd(b, b->listener, again ? EPOLLIN : 0, EVENT_LISTENER, EPOLL_CTL_MOD))
		b->deaf = !again;
}

/* Whoever is no peer is closed unread. */
static void accept_one(struct bridge *b)
{
	struct address from = { .length = sizeof(from.at) };
	int fd = accept4(b->listener, (struct sockaddr *)&from.at, &from.length,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct guest *g;
	int one = 1;
	u32 i;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			listen_again(b, false);
		return;
	}
	/* First: nobody else makes one of a peer leave. */
	if (!from_a_peer(b, &from) || !origin_is_ours(fd)) {
		close(fd);
		return;
	}
	i = guest_place(b);
	if (watch_fd(b, fd, EPOLLIN, EVENT_GUEST + i, EPOLL_CTL_ADD)) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	g = &b->guests[i];
	g->fd = fd;
	g->waits = false;
	g->have = 0;
	g->give_up_ns = h__now_ns() + b->set.dead_ms * NS_PER_MS;
}

/* A peer that says it is that host, and that may connect from there. */
static struct peer *claimed(struct bridge *b, const struct guest *g, u32 host)
{
	struct address from = { .length = sizeof(from.at) };
	u32 i;

	if (getpeername(g->fd, (struct sockaddr *)&from.at, &from.length))
		return NULL;
	for (i = 0; i < b->peer_count; i++)
		if (b->peers[i].host == host && !b->peers[i].connects &&
		    address_same_host(&b->peers[i].address, &from))
			return &b->peers[i];
	return NULL;
}

/* A connection that is newer ends the older one of that peer, and no other does. */
static void take_over(struct bridge *b, struct peer *p, struct guest *g,
		      const struct hml_wire_rx *rx)
{
	if (p->state != PEER_IDLE)
		drop(p, HML_WIRE_TWICE);
	p->let_in_ns = h__now_ns();
	p->fd = g->fd;
	g->fd = -1;
	if (watch_fd(b, p->fd, EPOLLIN, p->number, EPOLL_CTL_MOD)) {
		drop(p, SHM_PEER_LOST);
		return;
	}
	greet(b, p);
	p->in.rx = *rx;
	peer_up(p);
}

/*
 * To end a connection is work, for us and for all who watch that host: one that begins again and
 * again is let in as often as one that does that honestly.
 */
static bool too_soon(const struct peer *p)
{
	return p->let_in_ns && h__now_ns() - p->let_in_ns < LEAST_APART_NS;
}

static void guest_hello(struct bridge *b, struct guest *g, const struct hml_wire_frame *f)
{
	const u8 *headers = g->bytes + HML_WIRE_FRAME_BYTES;
	struct hml_wire_hello theirs;
	u32 verdict = hml_wire_unpack_hello(headers, f, &theirs);
	struct peer *p = verdict ? NULL : claimed(b, g, theirs.host);
	struct hml_wire_rx rx;

	if (!verdict && theirs.host == b->set.host)
		verdict = HML_WIRE_SAME_HOST;
	else if (!verdict && (!p || !origin_is_ours(g->fd)))
		verdict = HML_WIRE_OTHER_HOST;
	if (verdict) {
		end_guest(g, verdict);
		return;
	}
	g->waits = too_soon(p);
	if (g->waits)
		return;
	rx = p->in.rx;
	hml_wire_rx_begin(&rx);
	verdict = inbox_hello(p, &rx, f, headers);
	if (!verdict) {
		take_over(b, p, g, &rx);
		return;
	}
	add(&p->in.refused, 1);
	if (p->state == PEER_IDLE)
		WRITE_ONCE(p->shared->reason, verdict);
	end_guest(g, verdict);
}

/* What it has said: nothing comes of it before it is a whole HELLO. */
static void look_at_guest(struct bridge *b, struct guest *g)
{
	struct hml_wire_frame f;
	u32 verdict = hml_wire_parse(g->bytes, g->have, SHM_PACKET_SIZE, &f);

	if (verdict == HML_WIRE_SHORT || (!verdict && g->have < f.total && f.total <=
					  sizeof(g->bytes)))
		return;
	if (!verdict && f.type != HML_WIRE_HELLO)
		verdict = HML_WIRE_BAD_ORDER;
	if (verdict)
		end_guest(g, verdict);
	else
		guest_hello(b, g, &f);
}

static void read_guest(struct bridge *b, struct guest *g)
{
	ssize_t got;

	if (g->fd < 0)
		return;
	/* HELLO is the longest that may come, and nothing comes behind it until we answer. */
	got = recv(g->fd, g->bytes + g->have, sizeof(g->bytes) - g->have, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		end_guest(g, HML_WIRE_OK);
		return;
	}
	g->have += (u32)got;
	look_at_guest(b, g);
}

/* ---- time ---- */

static int64_t ask_after(const struct bridge *b)
{
	int64_t ns = b->set.dead_ms * NS_PER_MS / 4;

	return ns < 1000 * NS_PER_MS ? ns : 1000 * NS_PER_MS;
}

static void ask(struct peer *p, int64_t now)
{
	p->in.asked_ns = now;
	pthread_mutex_lock(&p->out.lock);
	p->out.ping = true;
	pthread_mutex_unlock(&p->out.lock);
	sender_work(p->bridge);
}

static void check_up(struct bridge *b, struct peer *p, int64_t now)
{
	int64_t quiet = now - p->in.heard_ns;

	p->pause_ns = LEAST_PAUSE_NS;
	if (atomic_exchange(&p->nonsense, false))
		drop(p, HML_WIRE_BAD_LENGTH);
	else if (quiet > b->set.dead_ms * NS_PER_MS)
		drop(p, HML_WIRE_SILENT);
	else if (outbox_stalled(p, now))
		drop(p, HML_WIRE_STALLED);
	else if (quiet > ask_after(b) && now - p->in.asked_ns > ask_after(b))
		ask(p, now);
}

static void check(struct bridge *b, struct peer *p, int64_t now)
{
	switch (p->state) {
	case PEER_IDLE:
		if (p->connects && now >= p->due_ns)
			connect_to(b, p);
		break;
	case PEER_CONNECTING:
	case PEER_GREETING:
		if (now >= p->due_ns)
			drop(p, SHM_PEER_SILENT);
		break;
	case PEER_UP:
		check_up(b, p, now);
		break;
	}
}

static void check_guest(struct bridge *b, struct guest *g, int64_t now)
{
	if (g->fd >= 0 && now >= g->give_up_ns)
		end_guest(g, HML_WIRE_SILENT);
	else if (g->fd >= 0 && g->waits)
		look_at_guest(b, g);
}

static void check_all(struct bridge *b)
{
	int64_t now = h__now_ns();
	u32 i;

	listen_again(b, true);
	names_look(b);
	for (i = 0; i < b->peer_count; i++)
		check(b, &b->peers[i], now);
	for (i = 0; i < MOST_GUESTS; i++)
		check_guest(b, &b->guests[i], now);
}

/* ---- the loop ---- */

static void take_signal(struct bridge *b)
{
	struct signalfd_siginfo info;
	u32 i;

	if (read(b->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGUSR1) {
		atomic_store(&b->stop, true);
		return;
	}
	for (i = 0; i < b->peer_count; i++)
		peer_count(&b->peers[i]);
	say_status(b);
}

static void room_again(struct bridge *b, struct peer *p)
{
	struct outbox *o = &p->out;

	pthread_mutex_lock(&o->lock);
	o->full = false;
	/* Under the lock: else it may be set again before this. */
	watch_fd(b, p->fd, EPOLLIN, p->number, EPOLL_CTL_MOD);
	pthread_mutex_unlock(&o->lock);
	sender_work(b);
}

/* To where packets are received, if it is woken for each. */
static void follow_packets(struct bridge *b, const struct peer *p, u64 bytes)
{
	socklen_t n = sizeof(int);
	int cpu;

	if (bytes <= FEW_BYTES && ++b->reads % ASK_WHERE == 0 &&
	    !getsockopt(p->fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &n))
		place_follow(&b->place, (u32)cpu);
}

static void peer_event(struct bridge *b, struct peer *p, u32 events)
{
	u32 verdict = SHM_PEER_LOST;
	u64 taken;

	if (!p || p->state == PEER_IDLE)
		return;
	if (p->state == PEER_CONNECTING) {
		connected(b, p);
		return;
	}
	if (events & EPOLLOUT)
		room_again(b, p);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	taken = p->in.taken;
	if (inbox_read(p, &verdict))
		follow_packets(b, p, p->in.taken - taken);
	else
		drop(p, verdict);
}

static void take_event(struct bridge *b, const struct epoll_event *e)
{
	u64 what = e->data.u64;

	if (what == EVENT_LISTENER)
		accept_one(b);
	else if (what == EVENT_SIGNAL)
		take_signal(b);
	else if (what >= NAMES_EVENTS)
		names_event(b, (u32)what - NAMES_EVENTS);
	else if (what >= EVENT_GUEST && what - EVENT_GUEST < MOST_GUESTS)
		read_guest(b, &b->guests[what - EVENT_GUEST]);
	else
		peer_event(b, peer_of(b, (u32)what), e->events);
}

static int tick_ms(const struct bridge *b)
{
	u32 least = b->set.dead_ms < b->set.stall_ms ? b->set.dead_ms : b->set.stall_ms;

	return least / 8 < LONGEST_TICK_MS ? (int)(least / 8) : LONGEST_TICK_MS;
}

void life_run(struct bridge *b)
{
	struct epoll_event events[64];
	int64_t checked = 0, now;
	int i, n;

	while (!atomic_load(&b->stop)) {
		now = h__now_ns();
		if (now - checked >= tick_ms(b) * NS_PER_MS) {
			checked = now;
			check_all(b);
		}
		n = epoll_wait(b->epoll, events, 64, tick_ms(b));
		for (i = 0; i < n; i++)
			take_event(b, &events[i]);
	}
}

static int open_listener(struct bridge *b)
{
	const struct address *a = &b->set.listen;
	char text[64];
	int one = 1, fd;

	if (!a->length)
		return 0;
	address_text(a, text, sizeof(text));
	fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (const struct sockaddr *)&a->at, a->length) || listen(fd, MOST_GUESTS)) {
		say("--listen %s: %s", text, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	b->listener = fd;
	return watch_fd(b, fd, EPOLLIN, EVENT_LISTENER, EPOLL_CTL_ADD);
}

int life_init(struct bridge *b)
{
	sigset_t set;
	u32 i;

	for (i = 0; i < MOST_GUESTS; i++)
		b->guests[i].fd = -1;
	for (i = 0; i < b->peer_count; i++)
		b->peers[i].pause_ns = LEAST_PAUSE_NS;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	b->listener = -1;
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	b->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (b->epoll < 0 || b->signals < 0 ||
	    watch_fd(b, b->signals, EPOLLIN, EVENT_SIGNAL, EPOLL_CTL_ADD)) {
		say("%s", strerror(errno));
		return -1;
	}
	return open_listener(b);
}

void life_end(struct bridge *b)
{
	u32 i;

	for (i = 0; i < b->peer_count; i++)
		if (b->peers[i].state != PEER_IDLE) {
			peer_down(&b->peers[i], SHM_PEER_LEFT);
			outbox_end(&b->peers[i], HML_WIRE_OK);
			close(b->peers[i].fd);
		}
}
