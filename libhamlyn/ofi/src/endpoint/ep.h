/* SPDX-License-Identifier: MIT */
/* Active end points, FI_EP_MSG: one end of a connection. So is a link of FI_EP_RDM, see link.h. */
#ifndef HAMLYN_OFI_EP_H
#define HAMLYN_OFI_EP_H

#include <netinet/in.h>

#include <rdma/fi_endpoint.h>

#include "connect/conn.h"
#include "connect/wire.h"
#include "domain/domain.h"
#include "endpoint/work.h"
#include "event/cntr.h"
#include "event/cq.h"

/*
 * Messages that have arrived and wait for a buffer: so many are taken out of the channel, so that
 * what is behind them, which may need none, is not held up by them.
 */
#define HF_MAX_HELD	4

enum hf_ep_state {
	HF_EP_NEW,
	HF_EP_ENABLED,
	HF_EP_CONNECTING,
	HF_EP_CONNECTED,
	HF_EP_SHUT,		/* by us */
	HF_EP_LOST,		/* by the peer, or because it broke the rules */
};

/* A buffer that was posted. */
struct hf_recv {
	struct hf_recv *next;
	struct hf_span span;
	void *context;
	bool report;		/* a success, too */
	/* of FI_EP_RDM */
	bool tagged;
	bool multi;		/* FI_MULTI_RECV: messages get parts of it */
	bool apart;		/* not for short.h */
	bool retired;		/* no more of them */
	uint32_t place;		/* whose messages; 0: anybody's */
	int err;		/* with which it ends when no part is under way */
	uint32_t parts;
	uint64_t used;
	uint64_t tag;
	uint64_t ignore;
	struct hf_recv *parent;	/* it is a part of this one */
};

/* An answer that found no room. */
struct hf_reply {
	struct hf_reply *next;
	struct hf_header header;
};

enum hf_counter {
	HF_COUNT_SEND,
	HF_COUNT_RECV,
	HF_COUNT_READ,
	HF_COUNT_WRITE,
	HF_COUNT_REMOTE_READ,
	HF_COUNT_REMOTE_WRITE,
	HF_COUNTERS,
};

struct hf_rdm;
struct hf_stx;

struct hf_ep {
	struct fid_ep fid;
	struct hf_domain *domain;
	struct hf_ep *self;		/* of an alias, what it is one of (alias.h); else this */
	int aliases;			/* that there are of it */
	struct hf_rdm *rdm;		/* whose link it is; of that itself: it is one */
	struct hf_rdm *srx;		/* whose buffers it takes (shared.h), or NULL: its own */
	struct hf_stx *stx;
	struct hf_eq *eq;
	struct hf_cq *tx_cq;
	struct hf_cq *rx_cq;
	struct hf_cntr *cntrs[HF_COUNTERS];
	bool tx_selective;
	bool rx_selective;
	uint64_t caps;
	uint64_t tx_flags;		/* of calls that have none */
	uint64_t rx_flags;
	size_t tx_size;
	size_t rx_size;
	bool shares_tx;			/* fi_ep_attr: FI_SHARED_CONTEXT */
	bool shares_rx;

	enum hf_ep_state state;
	bool told;			/* FI_SHUTDOWN was */
	bool discards;			/* what ends is not reported: fi_close() */
	bool paused;			/* the channel calls back no more for arrivals */
	struct h_channel *channel;
	struct hf_conn *conn;		/* event queue's @cm */
	fid_t handle;			/* connection request that fi_accept() will answer */
	struct sockaddr_in address;
	struct sockaddr_in dest;
	struct sockaddr_in peer;
	uint32_t place;			/* of a link: who that is, as a number (hosts.h) */
	int name_fd;			/* of FI_EP_MSG: keeps its address for it; or -1 */
	pid_t pid;			/* whose memory we may read and write; 0: nobody's */
	bool offers;			/* we say where our bytes are */

	struct hf_recv *first_recv;
	struct hf_recv **last_recv;
	struct hf_recv *spare_recvs;
	uint32_t recvs;

	struct h_message held[HF_MAX_HELD];
	uint32_t held_count;
	bool is_hungry;			/* in @srx's list: what is held waits for a buffer */
	struct hf_ep *next_hungry;

	struct hf_works works;
	struct hf_work *streams;	/* those that have pieces to send */
	struct hf_work **last_stream;
	struct hf_reply *replies;
	struct hf_reply **last_reply;
	uint32_t replies_count;
	uint64_t kept_bytes;		/* of regions, that the peer has not got yet */

	struct hf_ep *next_link;	/* of @rdm's */
	uint64_t early_bytes;		/* of messages that wait for buffers there */
	int failure;			/* why it was not connected */

	bool is_stuck;			/* in the domain's list */
	struct hf_ep *next_stuck;
};

int hf_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
	       void *context);
/* The rest with the domain locked, but for hf_ep_peer_gone(): with the event queue's @cm. */
void hf_ep_init(struct hf_ep *ep);
void hf_ep_default_eq(struct hf_ep *ep);
int hf_ep_make_channel(struct hf_ep *ep);
void hf_ep_disconnect(struct hf_ep *ep, int64_t linger_ns);
void hf_ep_connected(struct hf_ep *ep);
void hf_ep_orphaned(struct hf_ep *ep);
void hf_ep_lost(struct hf_ep *ep, int err);
void hf_ep_peer_gone(struct hf_ep *ep);
void hf_ep_stick(struct hf_ep *ep);
int hf_ep_shut(struct hf_ep *ep, bool discard);	/* nothing locked */
int hf_ep_bind(struct hf_ep *ep, struct fid *other, uint64_t flags);
int hf_ep_control(struct hf_ep *ep, int command, void *arg);
void hf_ep_set_attr(struct hf_ep *ep, const struct fi_info *info);
void hf_ep_put_queues(struct hf_ep *ep);

#endif
