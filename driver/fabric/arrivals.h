/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes that have come from a peer, and are not taken yet. */
#ifndef HML_ARRIVALS_H
#define HML_ARRIVALS_H

#include <linux/types.h>

#include "core/nic.h"
#include "core/wire.h"

struct sk_buff;
struct sock;

#define HML_ARRIVALS_KEPT	32	/* of TCP's buffers */

/**
 * struct hml_arrivals - what has come, from the beginning of a frame on
 * @bytes: what was copied, which is the beginning; constant pointer
 * @size: room for so much, and most that has come; constant
 * @copied: how much that is
 * @mem: all of it: that, and what is in the buffers that are kept
 * @kept: clones of TCP's buffers; none between two reads
 * @kept_count: how many
 * @more: there may be more in the socket
 * @header: of a frame, copied from a buffer
 *
 * One reader at a time.
 */
struct hml_arrivals {
	u8 *bytes;
	u32 size;
	u32 copied;
	struct hml_mem *mem;
	struct sk_buff *kept[HML_ARRIVALS_KEPT];
	u32 kept_count;
	bool more;
	u8 header[HML_WIRE_MOST_CONTROL];
};

int hml_arrivals_init(struct hml_arrivals *a, u32 packet_size);
void hml_arrivals_free(struct hml_arrivals *a);
void hml_arrivals_begin(struct hml_arrivals *a);
u32 hml_arrivals_read(struct hml_arrivals *a, struct sock *sk);
u32 hml_arrivals_read_locked(struct hml_arrivals *a, struct sock *sk);
const u8 *hml_arrivals_header(struct hml_arrivals *a, u32 at, u32 n);
void hml_arrivals_payload(const struct hml_arrivals *a, u32 at, u32 n, struct hml_piece *piece,
			  struct hml_payload *payload);
void hml_arrivals_done(struct hml_arrivals *a, u32 done);

#endif /* HML_ARRIVALS_H */
