/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes that are on their way to a peer. */
#ifndef HML_DEPARTURES_H
#define HML_DEPARTURES_H

#include <linux/sizes.h>
#include <linux/types.h>

#include <asm/page.h>

struct page;
struct sock;

#define HML_DEPARTURES_BYTES	SZ_512K	/* of the ring */
#define HML_DEPARTURES_KEPT	SZ_256K	/* of that, most that TCP may go on referring to */
#if PAGE_SHIFT > 15
#define HML_CHUNK_BYTES		PAGE_SIZE
#else
#define HML_CHUNK_BYTES		SZ_32K
#endif
#define HML_CHUNKS		(HML_DEPARTURES_BYTES / HML_CHUNK_BYTES)

/**
 * struct hml_departures - a ring of bytes that TCP may refer to
 * @chunks: its memory
 * @base: where the oldest chunk begins that TCP may refer to, or has not taken
 *
 * Whoever gives bytes to TCP may change the chunks between @base and what TCP has not taken. @base,
 * and what follows, is protected by whoever has the ring.
 */
struct hml_departures {
	struct page *chunks[HML_CHUNKS];
	u64 base;
};

int hml_departures_init(struct hml_departures *d);
void hml_departures_free(struct hml_departures *d);
u64 hml_departures_room(const struct hml_departures *d, u64 head, u64 tail);
u8 *hml_departures_at(const struct hml_departures *d, u64 at, u32 *n);
int hml_departures_give(struct hml_departures *d, struct sock *sk, u64 at, u32 n);
u64 hml_departures_reclaim(struct hml_departures *d, u64 head);
u64 hml_departures_fresh(u64 head);

#endif /* HML_DEPARTURES_H */
