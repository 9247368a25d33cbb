/* SPDX-License-Identifier: GPL-2.0-only */
/* Another host, as a NIC of the fabric over TCP sees it. */
#ifndef HML_PEER_H
#define HML_PEER_H

#include <linux/hrtimer.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/nic.h"
#include "core/wire.h"
#include "fabric/arrivals.h"
#include "fabric/departures.h"
#include "fabric/fabric.h"
#include "fabric/tcp.h"
#include "watch/far.h"
#include "object/name.h"

struct hml_peer;
struct sock;
struct socket;

#define HML_TCP_RESERVED	1024	/* ports below are for administrators of the network */
#define HML_FAR_USERS	4096	/* of a peer, remembered each by itself */

/**
 * struct hml_tcp - a NIC's end of a fabric over TCP
 * @fabric: what packets come to
 * @device: the NIC
 * @attr: what was set; constant, but that its id is told by others
 * @incarnation: told to peers: another one for each NIC that there ever was
 * @epochs: connections of all peers ever; atomic
 * @net: of the NIC; it ends this first. No reference
 * @ifindex: of the netdev, or 0: any; constant
 * @listener: where peers connect, or NULL; under @lock
 * @data_ready: what the listener called before: those that it accepts call what it does
 * @accepting: takes connections
 * @lock: @listener, and who is a peer. Taken by workers only, which are never kept from running
 *	by what a user does: a network namespace that ends waits for it
 * @ended: it is no more; under @lock
 * @peer_count: how many; under @lock
 */
struct hml_tcp {
	struct hml_fabric fabric;
	struct hml_device *device;
	struct hml_tcp_attr attr;
	u64 incarnation;
	atomic_t epochs;
	struct net *net;
	int ifindex;
	struct socket *listener;
	void (*data_ready)(struct sock *sk);
	struct delayed_work accepting;
	struct mutex lock;	/* see above */
	bool ended;
	u32 peer_count;
};

/**
 * struct hml_outbox - frames on their way to a peer
 * @lock: protects what follows up to @wanted, which is looked at without it, too, and @ring.base;
 *	a leaf, held for one packet's copy
 * @tx: epoch and sequence
 * @head: bytes that the socket has taken
 * @tail: bytes that were put in
 * @open: packets are taken
 * @wanted: a packet found no room
 * @moved: when the peer was last seen to have taken enough, or the ring to be empty, ns
 * @taken: bytes of the connection that it had taken then
 * @ring: their bytes
 * @sending: bit 0: somebody gives bytes to the socket. By trylock, preemption off
 * @calls: to give it bytes; atomic
 * @rested: when short frames may be given to it again, ns
 * @rested_at: what @packets was when that was last decided
 * @rested_heard: what the inbox' packets were then
 * @gather: until then; it starts the worker
 * @gathering: bit 0: @gather has been started, and has not run yet
 * @sock: the socket, or NULL; changed under @sending
 * @giving: bytes are being given to it; under the socket's lock
 * @bytes: that the socket has ever taken; under @sending
 * @packets: put in
 * @stalls: that found no room
 * @lost: that came while it was not open
 */
struct hml_outbox {
	raw_spinlock_t lock;
	struct hml_wire_tx tx;
	u64 head;
	u64 tail;
	bool open;
	bool wanted;
	u64 moved;
	u64 taken;
	struct hml_departures ring;
	unsigned long sending;
	atomic_t calls;
	u64 rested;
	u64 rested_at;
	u64 rested_heard;
	struct hrtimer gather;
	unsigned long gathering;
	struct socket *sock;
	bool giving;
	u64 bytes;
	u64 packets;
	u64 stalls;
	u64 lost;
};

/**
 * struct hml_far_user - a user of another host, as that host says
 * @sender: what the NIC knows of its packets
 * @bucket: wrong keys that it may still present
 * @peer: the host; constant
 */
struct hml_far_user {
	struct hml_sender sender;
	struct hml_bucket bucket;
	struct hml_peer *peer;
};

/**
 * struct hml_inbox - frames that come from a peer
 * @reading: bit 0: somebody reads from the socket, and has what follows; a softirq by trylock
 * @rx: epoch and sequence
 * @frame: the one that is looked at
 * @come: what has come
 * @heard: when something came last, ns
 * @failed: why no more is read; 0: nothing is wrong
 * @verdict: what was wrong with a frame, to be told in BYE; or 0
 * @users: struct hml_far_user by user id; kept until the peer is deleted
 * @user_count: how many
 * @others: all those for which there was no room
 * @stats: what became of packets
 * @taken: bytes ever
 * @packets: that came
 * @dropped: that were not looked at
 * @refused: connections that ended because of what came
 * @pong: a PING is to be answered, with @stamp; cleared by who answers
 * @stamp: of the last PING
 *
 * A worker, one at a time, or softirqs: what they have is under @reading.
 */
struct hml_inbox {
	unsigned long reading;
	struct hml_wire_rx rx;
	struct hml_wire_frame frame;
	struct hml_arrivals come;
	u64 heard;
	u32 failed;
	u32 verdict;
	struct xarray users;
	u32 user_count;
	struct hml_far_user others;
	struct hml_stats stats;
	u64 taken;
	u64 packets;
	u64 dropped;
	u64 refused;
	bool pong;
	u64 stamp;
};

/* What a socket called before it was a peer's. */
struct hml_peer_calls {
	void (*state_change)(struct sock *sk);
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

/**
 * struct hml_peer - another host
 * @nic: a NIC without slots, which is the path to it
 * @link: of @nic: always remote
 * @tcp: whose peer it is
 * @ref: who has taken note to flush it, and the table of peers
 * @attr: what was set; constant
 * @out: frames to it
 * @in: frames from it
 * @far: watches
 * @names: calls of names
 * @sock: the connection, or NULL; under @life
 * @calls: what it called before; under @life
 * @arrived: one that was accepted for it, or NULL; exchanged atomically
 * @life: connects, greets, looks whether it lives, and ends connections; never two at a time
 * @io: sends and receives
 * @freeing: after the last reference
 * @state: enum hml_peer_state
 * @reason: enum hml_peer_reason
 * @epoch: connections that came up
 * @since: when the present attempt began, ns
 * @next: when to connect again, ns
 * @backoff: after the next failure, ns
 * @pinged: when we last asked for a sign of life, ns
 * @rtt_us: as TCP measures it
 * @told: administrators know that it is up; under @life
 * @ended: to be deleted: no new connection
 */
struct hml_peer {
	struct hml_nic nic;
	struct hml_link link;
	struct hml_tcp *tcp;
	refcount_t ref;
	struct hml_peer_attr attr;
	struct hml_outbox out;
	struct hml_inbox in;
	struct hml_far_side far;
	struct hml_call_side names;
	struct socket *sock;
	struct hml_peer_calls calls;
	struct socket *arrived;
	struct delayed_work life;
	struct work_struct io;
	struct work_struct freeing;
	u32 state;
	u32 reason;
	u32 epoch;
	u64 since;
	u64 next;
	u64 backoff;
	u64 pinged;
	u32 rtt_us;
	bool told;
	bool ended;
};

/* Behind a path that is not a NIC of this kernel. */
static inline struct hml_peer *hml_peer_of(const struct hml_nic *nic)
{
	return nic->port.peer;
}

/* A counter with one writer at a time, at which others look as it is. */
static inline void hml_count(u64 *counter, u64 n)
{
	WRITE_ONCE(*counter, *counter + n);
}

extern struct workqueue_struct *hml_wire_workers;

/* peer.c */
struct hml_peer *hml_peer_new(struct hml_tcp *t, const struct hml_peer_attr *attr);
void hml_peer_start(struct hml_peer *p);
void hml_peer_stop(struct hml_peer *p);
void hml_peer_put(struct hml_peer *p);
void hml_peer_arrived(struct hml_peer *p, struct socket *sock);
void hml_peer_fail(struct hml_peer *p, u32 reason);

/* outbox.c */
int hml_outbox_init(struct hml_peer *p);
void hml_outbox_free(struct hml_outbox *o);
void hml_outbox_begin(struct hml_peer *p, struct socket *sock);
void hml_outbox_open(struct hml_peer *p);
void hml_outbox_end(struct hml_peer *p);
bool hml_outbox_control(struct hml_outbox *o,
			u32 (*pack)(struct hml_wire_tx *tx, u8 *to, void *arg), void *arg);
bool hml_outbox_put(struct hml_peer *p, const struct hamlyn_packet *h,
		    const struct hml_payload *payload, struct hml_sender *sender);
void hml_outbox_flush(struct hml_peer *p);
void hml_outbox_gather(struct hml_peer *p);

/* inbox.c */
int hml_inbox_init(struct hml_peer *p);
void hml_inbox_free(struct hml_inbox *in);
void hml_inbox_begin(struct hml_peer *p);
void hml_inbox_retire(struct hml_peer *p);
bool hml_inbox_read(struct hml_peer *p, struct sock *sk);
bool hml_inbox_read_brief(struct hml_peer *p, struct sock *sk);

/* datapath.c */
void hml_notify_flush(struct hml_peer *p);

/* engine.c */
void hml_engine_room(struct hml_device *d);

/* tcp.c */
void hml_tcp_hello(const struct hml_tcp *t, struct hml_wire_hello *hello);

#endif /* HML_PEER_H */
