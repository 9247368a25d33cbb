// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a peer: one connection after the other. The host with the smaller id connects, the
 * other one waits. Both greet each other, and packets pass once both know that they may. A
 * connection ends at once if it is closed or nonsense comes, and when the peer is not heard, or
 * takes nothing, for too long. What was on its way then is lost, and every watch is told.
 */
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "compat/compat.h"
#include "hml.h"
#include "fabric/peer.h"
#include "trace.h"

#define LEAST_BACKOFF_NS	(100ull * NSEC_PER_MSEC)
#define MOST_BACKOFF_NS		(5ull * NSEC_PER_SEC)
#define LEAST_TICK_MS		20
#define MOST_TICK_MS		1000
#define IO_ROUNDS		16	/* before others of this processor have their turn */
#define LEAST_TAKEN		SZ_4K	/* by a peer that does not stand still */

struct workqueue_struct *hml_wire_workers;

static u64 ms(u32 n)
{
	return (u64)n * NSEC_PER_MSEC;
}

/* Often enough to see in time that one has died, or stands still. */
static unsigned long tick(const struct hml_peer *p)
{
	const struct hml_tcp_attr *a = &p->tcp->attr;

	return msecs_to_jiffies(clamp_t(u32, min(a->dead_ms, a->stall_ms) / 5, LEAST_TICK_MS,
					MOST_TICK_MS));
}

static void look_soon(struct hml_peer *p)
{
	mod_delayed_work(hml_wire_workers, &p->life, 0);
}

/* ---- what the socket calls ---- */

static void data_ready(struct sock *sk)
{
	struct hml_peer *p;

	read_lock_bh(&sk->sk_callback_lock);
	p = sk->sk_user_data;
	if (p && hml_inbox_read_brief(p, sk))
		queue_work(hml_wire_workers, &p->io);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void write_space(struct sock *sk)
{
	struct hml_peer *p;

	read_lock_bh(&sk->sk_callback_lock);
	p = sk->sk_user_data;
	/*
	 * TCP itself calls, out of what gives it bytes, if it has no memory for them and nothing
	 * under way: to try again at once would never end. Both have the socket's lock.
	 */
	if (p && !READ_ONCE(p->out.giving) && sk_stream_is_writeable(sk)) {
		if (sk->sk_socket)
			clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		queue_work(hml_wire_workers, &p->io);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static void state_change(struct sock *sk)
{
	struct hml_peer *p;

	read_lock_bh(&sk->sk_callback_lock);
	p = sk->sk_user_data;
	if (p)
		look_soon(p);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void attend(struct hml_peer *p, struct sock *sk)
{
	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	p->calls = (struct hml_peer_calls) {
		.state_change = sk->sk_state_change,
		.data_ready = p->tcp->data_ready,
		.write_space = sk->sk_write_space,
		.error_report = sk->sk_error_report,
	};
	sk->sk_user_data = p;
	sk->sk_data_ready = data_ready;
	sk->sk_write_space = write_space;
	sk->sk_state_change = state_change;
	sk->sk_error_report = state_change;
	/* Whoever sends does not sleep, and has locks. */
	sk->sk_allocation = GFP_ATOMIC | __GFP_NOWARN;
	hml_compat_no_task_frag(sk);
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
	tcp_sock_set_nodelay(sk);
	tcp_sock_set_user_timeout(sk, p->tcp->attr.dead_ms);
}

/* They are called no more, nor by a socket that outlives us. */
static void ignore(struct hml_peer *p, struct sock *sk)
{
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_state_change = p->calls.state_change;
	sk->sk_data_ready = p->calls.data_ready;
	sk->sk_write_space = p->calls.write_space;
	sk->sk_error_report = p->calls.error_report;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* ---- sending and receiving ---- */

static void io(struct work_struct *work)
{
	struct hml_peer *p = container_of(work, struct hml_peer, io);
	struct socket *sock = READ_ONCE(p->sock);
	bool more = true;
	u32 n;

	/* Once, and before all else: whoever ends the connection waits for us after taking it. */
	if (!sock)
		return;
	for (n = 0; more && n < IO_ROUNDS; n++) {
		more = hml_inbox_read(p, sock->sk);
		hml_outbox_flush(p);
		cond_resched();
	}
	if (more)
		queue_work(hml_wire_workers, &p->io);
}

/* For the reader, whom @life waits for: @life ends the connection. */
void hml_peer_fail(struct hml_peer *p, u32 reason)
{
	WRITE_ONCE(p->reason, reason);
	look_soon(p);
}

/* ---- the beginning of a connection ---- */

static u32 pack_hello(struct hml_wire_tx *tx, u8 *to, void *arg)
{
	struct hml_wire_hello hello;

	hml_tcp_hello(arg, &hello);
	return hml_wire_pack_hello(tx, to, &hello);
}

static void begin(struct hml_peer *p, struct socket *sock)
{
	p->since = ktime_get_ns();
	p->pinged = p->since;
	WRITE_ONCE(p->state, HML_PEER_CONNECTING);
	hml_inbox_begin(p);
	hml_outbox_begin(p, sock);
	hml_outbox_control(&p->out, pack_hello, p->tcp);
	WRITE_ONCE(p->sock, sock);
	attend(p, sock->sk);
}

/*
 * From a port that only the host itself may use. Its address says which host it is, and not who
 * on it: whoever may connect from there is not to be taken for it.
 */
static int bind_to(struct socket *sock, const struct hml_tcp *t)
{
	/* Another one each time: the last connection may not have ended yet for the network. */
	u32 first = atomic_read(&t->epochs), n;
	struct sockaddr_storage own = t->attr.address;
	int err = 0;

	if (t->ifindex)
		err = sock_bindtoindex(sock->sk, t->ifindex, true);
	if (err)
		return err;
	sock_set_reuseaddr(sock->sk);
	for (n = 0; n < HML_TCP_RESERVED / 2; n++) {
		u32 port = HML_TCP_RESERVED - 1 - (first + n) % (HML_TCP_RESERVED / 2);

		((struct sockaddr_in *)&own)->sin_port = htons(port);
		err = kernel_bind(sock, HML_COMPAT_SOCKADDR(&own), sizeof(own));
		if (err != -EADDRINUSE)
			break;
	}
	return err;
}

static int connect_to(struct hml_peer *p)
{
	const struct sockaddr_storage *to = &p->attr.address;
	struct socket *sock;
	int err;

	err = sock_create_kern(p->tcp->net, to->ss_family, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return err;
	err = bind_to(sock, p->tcp);
	if (err) {
		sock_release(sock);
		return err;
	}
	begin(p, sock);
	err = kernel_connect(sock, HML_COMPAT_SOCKADDR(to), sizeof(*to), O_NONBLOCK);
	return err == -EINPROGRESS ? 0 : err;
}

/* Of two hosts the one with the smaller id connects. */
static bool connects(const struct hml_peer *p)
{
	return p->tcp->device->nic.host < p->attr.host;
}

/**
 * hml_peer_arrived() - a peer has connected
 * @p: the peer
 * @sock: the connection, which becomes the peer's
 *
 * It ends an older one: a peer that begins anew may not have told of its end.
 */
void hml_peer_arrived(struct hml_peer *p, struct socket *sock)
{
	struct socket *old = xchg(&p->arrived, sock);

	if (old)
		sock_release(old);
	look_soon(p);
}

/* ---- its end ---- */

static u32 pack_bye(struct hml_wire_tx *tx, u8 *to, void *arg)
{
	return hml_wire_pack_bye(tx, to, *(u32 *)arg);
}

static const u32 verdicts[HML_PEER_REASONS] = {
	[HML_PEER_DEAD] = HML_WIRE_SILENT,
	[HML_PEER_STALLED] = HML_WIRE_STALLED,
	[HML_PEER_OTHER_VERSION] = HML_WIRE_NO_VERSION,
	[HML_PEER_OTHER_FABRIC] = HML_WIRE_OTHER_FABRIC,
	[HML_PEER_OTHER_HOST] = HML_WIRE_OTHER_HOST,
	[HML_PEER_SAME_HOST] = HML_WIRE_SAME_HOST,
	[HML_PEER_OTHER_SIZE] = HML_WIRE_OTHER_PACKET,
};

/* Not waited for: if the peer does not read it, it will see that the connection is closed. */
static void say_bye(struct hml_peer *p, u32 reason)
{
	u32 verdict = READ_ONCE(p->in.verdict) ?: verdicts[reason];

	if (hml_outbox_control(&p->out, pack_bye, &verdict))
		hml_outbox_flush(p);
}

/* Before it connects again. */
static void wait_longer(struct hml_peer *p)
{
	p->next = ktime_get_ns() + p->backoff;
	p->backoff = min(2 * p->backoff, MOST_BACKOFF_NS);
}

static void end(struct hml_peer *p, u32 reason)
{
	struct socket *sock = p->sock;
	bool was_up;

	say_bye(p, reason);
	ignore(p, sock->sk);
	/* If it is queued behind this it finds no socket. */
	WRITE_ONCE(p->sock, NULL);
	cancel_work_sync(&p->io);
	/* Not before: it may have taken a HELLO. */
	was_up = p->state == HML_PEER_UP && p->told;
	trace_hamlyn_peer_down(&p->tcp->device->nic, p->attr.host, reason, was_up);
	WRITE_ONCE(p->state, HML_PEER_IDLE);
	WRITE_ONCE(p->reason, reason);
	hml_outbox_end(p);
	kernel_sock_shutdown(sock, SHUT_RDWR);
	sock_release(sock);
	hml_far_lost(&p->far);
	hml_calls_lost(&p->names);
	wait_longer(p);
	if (was_up) {
		p->told = false;
		hml_event_peer(p->tcp->device, p->attr.host, HAMLYN_NL_EVENT_PEER_DOWN, reason);
	}
}

/* ---- in between ---- */

static u32 pack_ping(struct hml_wire_tx *tx, u8 *to, void *arg)
{
	return hml_wire_pack_ping(tx, to, *(u64 *)arg);
}

static void ping(struct hml_peer *p, u64 now)
{
	s64 after = min(ms(p->tcp->attr.dead_ms) / 4, NSEC_PER_SEC);

	if ((s64)(now - READ_ONCE(p->in.heard)) < after || (s64)(now - p->pinged) < after)
		return;
	p->pinged = now;
	if (hml_outbox_control(&p->out, pack_ping, &now))
		hml_outbox_flush(p);
}

/*
 * Has it taken next to nothing, of what is ready for it, for too long? A byte now and then is
 * nothing: whoever sends to it waits, and may have other peers to send to.
 */
static bool stands_still(struct hml_peer *p, u64 now)
{
	/* By its host: TCP here goes on taking as long as it has room. */
	u64 taken = READ_ONCE(tcp_sk(p->sock->sk)->bytes_acked);
	struct hml_outbox *o = &p->out;
	bool still;

	hml_lock(&o->lock);
	if (o->head == o->tail || taken - o->taken >= LEAST_TAKEN) {
		o->taken = taken;
		o->moved = now;
	}
	/* Signed: there may be something since the clock was read. */
	still = (s64)(now - o->moved) > (s64)ms(p->tcp->attr.stall_ms);
	hml_unlock(&o->lock);
	return still;
}

static void measure(struct hml_peer *p)
{
	const struct tcp_sock *tp = tcp_sk(p->sock->sk);

	WRITE_ONCE(p->rtt_us, READ_ONCE(tp->srtt_us) >> 3);
}

/* It came up while a frame was read: now tell of it. */
static void greet(struct hml_peer *p)
{
	if (READ_ONCE(p->state) != HML_PEER_UP || p->told)
		return;
	p->told = true;
	p->backoff = LEAST_BACKOFF_NS;
	WRITE_ONCE(p->reason, HML_PEER_NO_REASON);
	WRITE_ONCE(p->epoch, p->epoch + 1);
	trace_hamlyn_peer_up(&p->tcp->device->nic, p->attr.host, p->epoch);
	hml_event_peer(p->tcp->device, p->attr.host, HAMLYN_NL_EVENT_PEER_UP, 0);
}

/* What came before its end is read first: the reason, too. */
static u32 why_closed(struct hml_peer *p)
{
	queue_work(hml_wire_workers, &p->io);
	flush_work(&p->io);
	greet(p);
	if (p->in.failed)
		return p->in.failed;
	return READ_ONCE(p->state) == HML_PEER_UP ? HML_PEER_CLOSED : HML_PEER_UNREACHABLE;
}

/* Why the connection is to end, or 0. */
static u32 verdict_on(struct hml_peer *p, u64 now)
{
	int state = READ_ONCE(p->sock->sk->sk_state);
	const struct hml_tcp_attr *a = &p->tcp->attr;
	u32 failed = READ_ONCE(p->in.failed);

	if (failed)
		return failed;
	if (state == TCP_SYN_SENT) {
		/* The time for its HELLO begins when there is a connection. */
		WRITE_ONCE(p->in.heard, now);
		return (s64)(now - p->since) > (s64)ms(a->dead_ms) ? HML_PEER_UNREACHABLE : 0;
	}
	if (state != TCP_ESTABLISHED)
		return why_closed(p);
	if ((s64)(now - READ_ONCE(p->in.heard)) > (s64)ms(a->dead_ms))
		return HML_PEER_DEAD;
	if (stands_still(p, now))
		return HML_PEER_STALLED;
	return 0;
}

static void look_at_connection(struct hml_peer *p)
{
	u64 now = ktime_get_ns();
	u32 reason;

	greet(p);
	reason = verdict_on(p, now);
	if (reason) {
		end(p, reason);
		return;
	}
	measure(p);
	hml_far_retry(&p->far);
	if (READ_ONCE(p->state) == HML_PEER_UP)
		ping(p, now);
	/* What a lost call of the socket's would have done; and the HELLO of one that is new. */
	queue_work(hml_wire_workers, &p->io);
}

/* One that connects again and again is let in as often as one that does that honestly. */
static bool too_soon(const struct hml_peer *p)
{
	return p->since && ktime_get_ns() - p->since < LEAST_BACKOFF_NS / 2;
}

static void take_arrived(struct hml_peer *p)
{
	struct socket *sock = too_soon(p) ? NULL : xchg(&p->arrived, NULL);

	if (!sock)
		return;
	if (p->sock)
		end(p, HML_PEER_CLOSED);
	begin(p, sock);
}

static void try_to_connect(struct hml_peer *p)
{
	int err;

	if (!connects(p) || ktime_get_ns() < p->next)
		return;
	err = connect_to(p);
	if (!err)
		return;
	if (p->sock) {
		end(p, HML_PEER_UNREACHABLE);
		return;
	}
	WRITE_ONCE(p->reason, HML_PEER_UNREACHABLE);
	wait_longer(p);
}

static void live(struct work_struct *work)
{
	struct hml_peer *p = container_of(to_delayed_work(work), struct hml_peer, life);

	if (READ_ONCE(p->ended))
		return;
	take_arrived(p);
	if (p->sock)
		look_at_connection(p);
	if (!p->sock)
		try_to_connect(p);
	/* Something may have asked for a look meanwhile: that one stays. */
	queue_delayed_work(hml_wire_workers, &p->life,
			   READ_ONCE(p->arrived) ? msecs_to_jiffies(LEAST_TICK_MS) : tick(p));
}

/* ---- who there is ---- */

static void free_peer(struct work_struct *work)
{
	struct hml_peer *p = container_of(work, struct hml_peer, freeing);

	/* Nobody has a reference, so nobody queues it any more. */
	cancel_work_sync(&p->io);
	hml_outbox_free(&p->out);
	hml_inbox_free(&p->in);
	kfree_sensitive(p);
}

/* Also in a section, or with locks. */
void hml_peer_put(struct hml_peer *p)
{
	if (refcount_dec_and_test(&p->ref))
		queue_work(hml_workers, &p->freeing);
}

/* In the task of the administrator, whose memory it is. */
struct hml_peer *hml_peer_new(struct hml_tcp *t, const struct hml_peer_attr *attr)
{
	struct hml_peer *p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);

	if (!p)
		return NULL;
	p->tcp = t;
	p->attr = *attr;
	p->nic.host = attr->host;
	p->nic.packet_size = t->device->nic.packet_size;
	p->nic.link = &p->link;
	p->nic.port.peer = p;
	p->link.remote = 1;
	p->backoff = LEAST_BACKOFF_NS;
	refcount_set(&p->ref, 1);
	xa_init(&p->in.users);
	INIT_DELAYED_WORK(&p->life, live);
	INIT_WORK(&p->io, io);
	INIT_WORK(&p->freeing, free_peer);
	hml_far_init(&p->far, &t->device->nic, attr->host, &p->io);
	hml_calls_init(&p->names, t->device, attr->host, &p->io);
	if (!hml_outbox_init(p) && !hml_inbox_init(p))
		return p;
	free_peer(&p->freeing);
	return NULL;
}

void hml_peer_start(struct hml_peer *p)
{
	look_soon(p);
}

/* No packet finds it any more. */
void hml_peer_stop(struct hml_peer *p)
{
	struct socket *sock;

	WRITE_ONCE(p->ended, true);
	cancel_delayed_work_sync(&p->life);
	if (p->sock)
		end(p, HML_PEER_DOWN);
	cancel_delayed_work_sync(&p->life);
	sock = xchg(&p->arrived, NULL);
	if (sock)
		sock_release(sock);
	hml_far_lost(&p->far);
	hml_calls_lost(&p->names);
	hml_inbox_retire(p);
	hml_peer_put(p);
}
