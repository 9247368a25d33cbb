/* SPDX-License-Identifier: MIT */
/*
 * Connections: a local socket between the two processes, or to a thread that speaks for one of
 * another host. Over it they learn from the kernel who the other is, and give each other the seeds
 * of a channel, which nobody else gets. It stays open, and its end is how a process that only
 * waits for events notices a peer's death.
 */
#ifndef HAMLYN_OFI_CONN_H
#define HAMLYN_OFI_CONN_H

#include <netinet/in.h>
#include <sys/types.h>

#include <hamlyn/channel.h>

#include "event/eq.h"

struct hf_ep;
struct hf_pep;
struct hf_rdm;

enum hf_hello_kind {
	HF_HELLO_CONNECT = 1,
	HF_HELLO_ACCEPT,
	HF_HELLO_REJECT,
	HF_HELLO_LINK,		/* CONNECT, of an FI_EP_RDM end point; data_length is 0 */
};

/* What is said on the socket, each in one message. */
struct hf_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	struct h_fabric_id fabric;
	struct h_channel_seed seed;
	struct sockaddr_in address;
	uint64_t probe_address;		/* where this process has ... */
	uint64_t probe;			/* ... this number; 0: not to be looked for */
	uint32_t data_length;
	uint32_t reserved;
	unsigned char data[HF_CM_DATA];
};

enum hf_conn_state {
	HF_CONN_ASKED,		/* by somebody who has not said yet what it wants */
	HF_CONN_REQUESTED,	/* the application knows, and has not answered */
	HF_CONN_ASKING,		/* we have asked */
	HF_CONN_OPEN,
};

struct hf_conn {
	struct fid fid;			/* FI_CLASS_CONNREQ */
	struct hf_source source;
	enum hf_conn_state state;
	struct hf_eq *eq;
	struct hf_pep *pep;		/* ASKED, REQUESTED */
	struct hf_conn *next;		/* of @pep's */
	struct hf_ep *ep;		/* ASKING, OPEN */
	struct hf_hello peer;
	uint32_t host;			/* the peer's (far.h); HAMLYN_NONE: this one */
	pid_t pid;
	uint64_t probe;
	struct hf_rdm *rdm;		/* a link's, without @eq and @pep */
};

/* All with the event queue's @cm held. */
int hf_conn_connect(struct hf_ep *ep, const struct sockaddr_in *to, const void *data,
		    size_t length);
int hf_conn_accept(struct hf_conn *conn, struct hf_ep *ep, const void *data, size_t length);
void hf_conn_reject(struct hf_conn *conn, const void *data, size_t length);
void hf_conn_arrived(struct hf_pep *pep, int fd);
void hf_conn_close(struct hf_conn *conn);

/* The parts of which links are made, too: with the domain locked then, and without @eq. */
struct hf_conn *hf_conn_new(int fd, uint32_t host, enum hf_conn_state state, struct hf_eq *eq);
int hf_conn_check_peer(struct hf_conn *conn);
int hf_conn_say(struct hf_conn *conn, enum hf_hello_kind kind, const void *data, size_t length);
int hf_conn_hear(struct hf_conn *conn);
int hf_conn_join(struct hf_conn *conn);

#endif
