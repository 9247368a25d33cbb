/* SPDX-License-Identifier: GPL-2.0-only */
/* The fabric between hosts, over TCP: what an administrator sets up and sees. */
#ifndef HML_TCP_H
#define HML_TCP_H

#include <linux/if.h>
#include <linux/socket.h>
#include <linux/types.h>

#include <linux/hamlyn.h>

#include "fabric/users.h"

struct hml_device;
struct hml_stats;
struct netlink_ext_ack;

#define HML_TCP_PORT		927	/* reserved: no user of a host can be there */
#define HML_TCP_DEAD_MS		5000
#define HML_TCP_STALL_MS	1000
#define HML_PEER_MOST		1024	/* peers of a NIC */

/**
 * struct hml_tcp_attr - a NIC's end of a fabric over TCP
 * @id: the fabric's id; not all 0, the same on all of its hosts
 * @address: own address and port
 * @netdev: netdev that packets come and go by, in the NIC's network namespace; "": any
 * @clear: whoever is on the way may read and change what is sent: without it @netdev must be
 *	one that encrypts
 * @dead_ms: a peer that is not heard for so long is dead
 * @stall_ms: so is one that takes nothing for so long
 */
struct hml_tcp_attr {
	u8 id[HAMLYN_FABRIC_ID_BYTES];
	struct sockaddr_storage address;
	char netdev[IFNAMSIZ];
	bool clear;
	u32 dead_ms;
	u32 stall_ms;
};

/**
 * struct hml_peer_attr - another host
 * @host: its host id
 * @address: its address and port
 * @users: for whom its users are taken here
 */
struct hml_peer_attr {
	u32 host;
	struct sockaddr_storage address;
	struct hml_peer_users users;
};

/* What a peer is doing. */
enum hml_peer_state {
	HML_PEER_IDLE,		/* the other one is to connect, or we are to later */
	HML_PEER_CONNECTING,	/* connecting, or waiting for its HELLO */
	HML_PEER_UP,
};

/* Why the last connection ended, or none came about; 0: it has not. */
enum hml_peer_reason {
	HML_PEER_NO_REASON,
	HML_PEER_UNREACHABLE,	/* no connection */
	HML_PEER_CLOSED,	/* the peer closed it, or it was reset */
	HML_PEER_DEAD,		/* not heard for dead_ms */
	HML_PEER_STALLED,	/* took nothing for stall_ms */
	HML_PEER_NONSENSE,	/* sent what is no frame */
	HML_PEER_OTHER_VERSION,
	HML_PEER_OTHER_FABRIC,
	HML_PEER_OTHER_HOST,	/* says that it is another host */
	HML_PEER_SAME_HOST,	/* has our host id */
	HML_PEER_OTHER_SIZE,	/* of packets */
	HML_PEER_DOWN,		/* we, or it, were set down or deleted */
	HML_PEER_REASONS
};

/**
 * struct hml_peer_info - how things stand with a peer
 * @attr: what was set
 * @state: enum hml_peer_state
 * @reason: enum hml_peer_reason
 * @epoch: connections so far
 * @incarnation: random number that the other kernel drew; 0: not known
 * @rtt_us: round trip, as TCP measures it; 0: not known
 * @watches: of this host, on slots of the peer
 * @watched: of the peer, on slots of this host
 * @calls: of this host, to names of the peer
 * @called: of the peer, to names of this host
 * @sent_bytes: of frames
 * @received_bytes: of frames
 * @sent_packets: DATA
 * @received_packets: DATA
 * @stalls: packets that had to wait for room
 * @dropped: packets of the peer that were not looked at, because their sender guesses keys
 * @lost: packets to the peer while it was not up
 * @refused: connections and frames that were refused
 */
struct hml_peer_info {
	struct hml_peer_attr attr;
	u32 state;
	u32 reason;
	u32 epoch;
	u64 incarnation;
	u32 rtt_us;
	u32 watches;
	u32 watched;
	u32 calls;
	u32 called;
	u64 sent_bytes;
	u64 received_bytes;
	u64 sent_packets;
	u64 received_packets;
	u64 stalls;
	u64 dropped;
	u64 lost;
	u64 refused;
};

int hml_tcp_init(void);
void hml_tcp_exit(void);

int hml_tcp_create(struct hml_device *d, const struct hml_tcp_attr *attr,
		   struct netlink_ext_ack *extack);
void hml_tcp_stop(struct hml_device *d);
void hml_tcp_free(struct hml_device *d);
bool hml_tcp_get(struct hml_device *d, struct hml_tcp_attr *attr);

int hml_tcp_add_peer(struct hml_device *d, const struct hml_peer_attr *attr,
		     struct netlink_ext_ack *extack);
int hml_tcp_delete_peer(struct hml_device *d, u32 host);
void hml_tcp_add_stats(struct hml_device *d, struct hml_stats *sum);
int hml_tcp_next_peer(struct hml_device *d, u32 *host, struct hml_peer_info *info);

#endif /* HML_TCP_H */
