/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Sending: a terminus, its work queue and the message that is under way (tx.c). */
#ifndef HML_CORE_TX_H
#define HML_CORE_TX_H

#include "nic.h"

/**
 * hml_tx_begin() - check a request and make it the terminus' message
 * @nic: the NIC
 * @t: the terminus, held, not busy
 * @trb: the request; a private copy that nobody else can change; host and slot
 *	are overwritten from a ticket
 * @meta: the metadata, if there is any
 * @tail: the direct I/O payload, or the fragments
 * @tail_size: bytes of @tail
 *
 * The contents of @meta and @tail may change at any time, but must stay
 * readable until the message is done.
 *
 * Return: 0, or the status of the request: -EINVAL, -ENXIO, -ERANGE, -ENOKEY,
 * -EHOSTUNREACH as in the uapi. Of a message in pieces hml_tx_run() may also say -EIO.
 */
int hml_tx_begin(struct hml_nic *nic, struct hml_terminus *t,
		 struct hamlyn_trb *trb, const void *meta,
		 const void *tail, u64 tail_size);

/**
 * hml_tx_flat() - check a request for a single packet of direct I/O and send it
 * @nic: the NIC
 * @t: the terminus, held, not busy
 * @trb: the request, without fragments, its length at most a packet's; a private
 *	copy, whose host and slot are overwritten from a ticket
 * @meta: the metadata, if there is any
 * @data: the payload, all of it readable; may change at any time, like @meta
 *
 * The fast path for short messages: t->message is not used.
 *
 * Return: 0, or the status of the request, as hml_tx_begin(); HML_TX_NOT_NOW, where there
 * can be stalls (HML_PORT_STALLS): the fabric has not taken it, so nothing was done.
 */
int hml_tx_flat(struct hml_nic *nic, struct hml_terminus *t,
		struct hamlyn_trb *trb, const void *meta, const void *data);

/* A result besides 0 and the status of a request. */
#define HML_TX_NOT_NOW	1

/**
 * hml_tx_packet() - send the next packet of the terminus' message
 * @nic: the NIC
 * @t: the terminus, held, busy
 *
 * The last packet clears busy. One that the fabric does not take sets stalled, and is sent
 * by the next call.
 */
void hml_tx_packet(struct hml_nic *nic, struct hml_terminus *t);

/**
 * hml_tx_abort() - give up the rest of the terminus' message
 * @t: the terminus, held, busy
 * @err: the status of the request
 *
 * What was sent of it may have arrived. Whoever posted it learns @err.
 */
void hml_tx_abort(struct hml_terminus *t, int err);

/**
 * hml_tx_local() - a packet ends in a NIC of this home
 * @from: the NIC that sends it
 * @to: the NIC that receives it, or discards it if it is down
 * @h: its header
 * @payload: where its bytes are
 * @sender: its sender
 *
 * For fabrics: what hml_port_carry() does without a doubt.
 */
void hml_tx_local(struct hml_nic *from, struct hml_nic *to, const struct hamlyn_packet *h,
		  const struct hml_payload *payload, struct hml_sender *sender);

/**
 * hml_tx_pending() - is there a message in progress, or a posted entry to take?
 * @t: the terminus; need not be held
 *
 * Return: true if there is work.
 */
bool hml_tx_pending(const struct hml_terminus *t);

/**
 * hml_tx_posted() - has an entry been posted?
 * @t: the terminus; need not be held
 * @head: its position: entries before it
 *
 * Return: true if it has, whoever takes it.
 */
bool hml_tx_posted(const struct hml_terminus *t, u32 head);

/**
 * hml_tx_plain() - has the next request been posted, and is it plain?
 * @t: the terminus, held
 *
 * A plain request has no fragments, metadata, flags, fast mode word, ticket or initial
 * packet counter.
 *
 * Return: the request, for hml_tx_run_plain(), or NULL: call hml_tx_run(). NULL also if
 * the terminus is busy, or stalled, or its sender paused.
 */
const struct hamlyn_trb *hml_tx_plain(const struct hml_terminus *t);

/**
 * hml_tx_run_plain() - send a plain request
 * @nic: the NIC
 * @t: the terminus, held
 * @entry: what hml_tx_plain() has just returned
 *
 * The fast path for a single short message: like hml_tx_run() with a budget of one.
 *
 * Return: true; false, with nothing done, if it is not a single packet of direct I/O for a NIC
 * of this home that has nothing to say against it: hml_tx_run() does, and says, the rest.
 */
bool hml_tx_run_plain(struct hml_nic *nic, struct hml_terminus *t,
		      const struct hamlyn_trb *entry);

/* Even the shortest packet costs 1/16 of the longest from a budget of bytes. */
#define HML_PACKET_SHARE	16

/**
 * hml_tx_run() - work through the work queue
 * @nic: the NIC
 * @t: the terminus, held
 * @budget: most packets to send; a refused entry counts as a packet
 * @bytes: stop when it is used up; what was sent is subtracted, so it may be
 *	overdrawn by one packet
 *
 * A paused sender sends nothing (hml_guard_paused()). If the fabric does not take a packet,
 * the terminus is stalled until the next call, which begins with that packet.
 *
 * Return: packets sent. If budget and bytes are left, the queue is empty, the sender is
 * paused or the terminus is stalled.
 */
u32 hml_tx_run(struct hml_nic *nic, struct hml_terminus *t, u32 budget,
	       s64 *bytes);

#endif /* HML_CORE_TX_H */
