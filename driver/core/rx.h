/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Receiving: a packet is placed and told of, or refused (rx.c). */
#ifndef HML_CORE_RX_H
#define HML_CORE_RX_H

#include "nic.h"

/**
 * hml_rx() - receive a packet (H 2.2)
 * @nic: the NIC it arrived at
 * @h: its header, not in memory that anybody else can change
 * @payload: where its bytes are
 * @sender: its sender, whose counters say what became of it, and which is held
 *	back for a wrong key
 *
 * Places the packet and notifies, or discards it. Never waits: receiving
 * never depends on sending (H 2.8).
 */
void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_sender *sender);

/**
 * hml_rx_plain() - receive what nearly all packets are, if there is nothing to say against it
 * @nic: the NIC it arrived at, which is up
 * @s: the packet, without metadata
 * @flat: its bytes
 * @sender: its sender
 *
 * All that hml_rx() looks at is looked at. But to refuse a packet, and whatever else few packets
 * need, is left to that one: nothing has to be kept for it on this way.
 *
 * Return: true; false with nothing done: hml_rx() is to decide.
 */
bool hml_rx_plain(struct hml_nic *nic, struct hml_single s, const void *flat,
		  struct hml_sender *sender);

/**
 * hml_slot_opens() - does a key open a slot?
 * @nic: the NIC
 * @slot: the slot, or NULL
 * @key: the key
 * @meta_index: metadata entry, for the paranoid modes
 * @ticket: the key is a ticket key
 *
 * Return: -1 if it does, or the enum hamlyn_reject that says why not.
 */
int hml_slot_opens(struct hml_nic *nic, const struct hml_slot *slot, u64 key,
		   u32 meta_index, bool ticket);

#endif /* HML_CORE_RX_H */
