/* SPDX-License-Identifier: MIT */
/* The engine of Active Messages: one for the process, below gam.h and hpam.h. */
#ifndef HAMLYN_AM_AM_H
#define HAMLYN_AM_AM_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <hamlyn.h>

#include "boot.h"
#include "gam.h"
#include "hpam.h"
#include "packet.h"
#include "state.h"

#define AM_MAX_PROCS	1024
#define AM_MAX_DEPTH	32
#define AM_TRANSFERS	8	/* bulk transfers of several segments to one process */
#define AM_GETS		64	/* am_get() under way */
#define AM_STORES	32	/* am_store_async() not yet copied */
#define AM_LATE_WATCHES	4	/* of a process, beyond those that am_enable() makes */
#define AM_STRIDE	((uint32_t)sizeof(struct hamlyn_metadata))
#define AM_NO_TRANSFER	0xff
#define AM_SYNC_ROUNDS	10
#define AM_SYNC_ASK	AM_SYNC_ROUNDS	/* no round: a question */

_Static_assert(1 << AM_SYNC_ROUNDS >= AM_MAX_PROCS, "a bit of a rank each");

#define am_likely(x)	__builtin_expect(!!(x), 1)
#define am_unlikely(x)	__builtin_expect(!!(x), 0)
#define am_hidden	__attribute__((visibility("hidden")))

/**
 * struct am_send - a buffer that messages are sent from: a request, or a reply
 * @stamp: when it was first looked at since it was sent last, in ticks of am_clock();
 *	0: not yet
 * @first: the same since it was sent first
 * @seq: sequence number of the message in it (reply: of the last one handled)
 * @size: bytes of the message, header included; 0: an acknowledgment alone
 * @handle: of the last h_send_msg() from it by DMA, or -1
 * @state: enum am_state
 * @tries: how often it was sent again, 255 for more
 * @suspect: it was once sent twice: notifications may be of an earlier message
 * @transfer: which bulk transfer it is a segment of, or AM_NO_TRANSFER
 */
struct am_send {
	uint64_t stamp;
	uint64_t first;
	uint32_t seq;
	uint32_t size;
	int64_t handle;
	uint8_t state;
	uint8_t tries;
	uint8_t suspect;
	uint8_t transfer;
};

/**
 * struct am_peer - another process
 * @ticket: its slot; base and meta_index are set for each message
 * @watch: tells when it is gone
 * @lost: 0, or the error that it was lost with
 * @told: am_poll() has returned that
 * @pid: its process id, for error messages
 * @moved: how far from where it is here its program is loaded
 * @hint: a request that is probably free (P 5.2.2)
 * @owed: requests, by instance, that were handled and not yet answered
 * @owed_count: how many these are
 * @free_transfers: bits of @segments that are free
 * @segments: segments of each transfer to it that are under way or to come
 * @missing: bytes that each transfer from it still lacks; 0: none has come
 * @request: by instance
 * @reply: by instance
 */
struct am_peer {
	struct h_ticket ticket;
	struct h_watch *watch;
	int lost;
	int told;
	int pid;
	uint64_t moved;
	uint32_t hint;
	uint32_t owed;
	uint32_t owed_count;
	uint32_t free_transfers;
	uint32_t segments[AM_TRANSFERS];
	uint32_t missing[AM_TRANSFERS];
	struct am_send request[AM_MAX_DEPTH];
	struct am_send reply[AM_MAX_DEPTH];
};

/* An am_get() under way. @active: of which process, + 1; 0: it is free. */
struct am_get {
	unsigned char *to;
	uint32_t total;
	uint32_t missing;
	handler_mem_t handler;
	void *arg;
	int active;
};

/* An am_store_async() whose memory is not yet copied. */
struct am_store {
	const unsigned char *from;
	void *to;
	uint64_t handler;
	void *arg;
	handler_mem_t end;
	void *end_arg;
	uint32_t total;
	uint32_t offset;
	int dest;
	uint8_t transfer;
	uint8_t active;
};

enum am_context {
	AM_MAIN		= 0,
	AM_IN_REQUEST	= 1,	/* a request handler runs */
	AM_IN_REPLY	= 2,	/* a reply handler runs, or a function that must not send */
};

struct am {
	/* Read with every message. */
	struct h_terminus *terminus;
	struct h_nq *nq;
	unsigned char *in;		/* 2PD headers, AM_STRIDE apart; then 2PD buffers */
	unsigned char *out;		/* 2PD buffers */
	struct am_peer *peers;
	uint8_t *in_state;		/* of 2PD, enum am_state */
	uint32_t procs;
	uint32_t self;
	uint32_t depth;			/* a power of two */
	uint32_t depth_shift;
	uint32_t stride;		/* bytes of a buffer */
	uint32_t page;			/* data bytes of it */
	uint32_t long_base;		/* of the buffers in @in */
	uint8_t reliable;
	uint8_t summed;			/* the fabric damages, loses or repeats what we send */
	uint8_t crowded;		/* more processes than processors */

	/* The handler that runs; HPAM_reply_dest is who sent its request. */
	enum am_context context;
	uint32_t reply_instance;
	uint8_t replied;
	uint8_t defer;			/* the reply leaves when the handler ends */

	/* Serving. */
	uint32_t counting;		/* requests in state counting */
	uint32_t owing;			/* processes that acknowledgments are owed to */
	uint32_t empty;			/* polls in a row that found nothing */
	uint32_t busy;			/* polls that found something and left something owed */
	uint64_t owed_since;		/* when the first of what is owed became so */
	uint64_t now;			/* am_clock() some polls ago */
	uint32_t check_peer;
	uint32_t check_instance;
	int late[AM_LATE_WATCHES];	/* processes that are watched since they are late, + 1 */
	uint32_t next_late;		/* whose watch ends when another one is late */
	uint32_t new_late;		/* watches that may have told and were not heard yet */
	int lost;			/* the first process that was lost, + 1 */
	int news;			/* processes lost and not yet told */
	uint32_t stores;		/* active ones */
	struct am_stats stats;

	/* Ticks of am_clock(). */
	uint64_t ticks_per_us;
	uint64_t timeout;
	uint64_t give_up;

	unsigned char *scratch;		/* a page: data of a medium message, checked */
	struct am_get gets[AM_GETS];
	struct am_store store[AM_STORES];
	uint32_t sync_epoch;
	uint32_t synced[AM_SYNC_ROUNDS];
	int sync_error;			/* all barriers fail from now on */
	int sync_lost;			/* because of this process */
	int sync_teller;		/* which that one has lost */

	/* Start and end. */
	struct am_boot boot;
	struct h_dev *dev;
	struct h_area *in_area;
	struct h_area *out_area;
	struct h_slot *slot;
	int enabled;
};

extern am_hidden struct am h__am;

/* gam.c: what hpam.c has in common with it */
am_hidden int am_short_request(struct am *am, int dest, enum am_kind kind,
			       void (*function)(void), const uint64_t *args);
am_hidden int am_short_reply(struct am *am, int dest, enum am_kind kind,
			     void (*function)(void), const uint64_t *args);
am_hidden int am_memory_store(struct am *am, int dest, enum am_kind kind,
			      void (*function)(void), const void *from, void *to,
			      int nbytes, void *arg);
am_hidden int am_memory_reply(struct am *am, int dest, enum am_kind kind,
			      void (*function)(void), const void *from, void *to,
			      int nbytes, void *arg);

/* start.c */
am_hidden int am_start(struct am *am);
am_hidden int am_end(struct am *am);
am_hidden uint32_t am_default_depth(uint32_t procs);
am_hidden uint32_t am_default_page(uint32_t procs, uint32_t depth,
				   uint32_t packet_size);

/* error.c */
am_hidden int am_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
am_hidden const char *am_error_text(void);

/* address.c */
struct am_modules_id {
	uint64_t program;	/* hash of its code and notes */
	uint64_t libraries;	/* of their names, sizes and notes */
	uint64_t base;		/* where the program is loaded */
};

am_hidden int am_address_setup(struct am_modules_id *id);
am_hidden int am_address_is_program(const void *address);
am_hidden uint64_t am_address_name(void (*function)(void));
am_hidden void (*am_address_find(uint64_t name))(void);

/* request.c */
am_hidden int am_can_request(struct am *am, int dest);
am_hidden int am_request_send(struct am *am, int dest,
			      const struct am_packet *packet, const void *data,
			      uint8_t transfer);
am_hidden int am_request_acquire(struct am *am, int dest, uint32_t *instance);
am_hidden int am_request_try(struct am *am, int dest, uint32_t *instance);
am_hidden void am_request_issue(struct am *am, int dest, uint32_t instance,
				const struct am_packet *packet,
				const void *data, uint8_t transfer);
am_hidden void am_request_again(struct am *am, int dest, uint32_t instance);
am_hidden void am_request_done(struct am *am, struct am_peer *peer,
			       uint32_t instance);

/* reply.c */
am_hidden int am_can_reply(struct am *am, int dest);
am_hidden int am_reply_send(struct am *am, const struct am_packet *packet,
			    const void *data);
am_hidden void am_reply_leave(struct am *am, int dest, uint32_t instance);
am_hidden void am_reply_owe(struct am *am, int dest, uint32_t instance);
am_hidden void am_reply_reflect(struct am *am, int dest, uint32_t instance);
am_hidden void am_acks_send(struct am *am, int dest);
am_hidden void am_acks_flush(struct am *am);

/* arrive.c */
am_hidden int am_arrive(struct am *am, const struct hamlyn_nq_entry *entry);
am_hidden void am_call(int source, const struct am_packet *packet, void *data);
am_hidden void am_call_own(struct am *am, const struct am_packet *packet,
			   void *data);

/* serve.c */
am_hidden int am_serve(struct am *am);
am_hidden void am_check_all(struct am *am);
am_hidden void am_lose(struct am *am, int peer, int error);
am_hidden int am_lost_error(struct am *am, int peer);

/* bulk.c */
am_hidden int am_bulk_store(struct am *am, int dest, enum am_kind kind,
			    uint64_t handler, const void *from, void *to,
			    int length, void *arg);
am_hidden int am_bulk_async(struct am *am, int dest, uint64_t handler,
			    const void *from, void *to, int length, void *arg,
			    handler_mem_t end, void *end_arg);
am_hidden void am_bulk_continue(struct am *am);
am_hidden int am_bulk_get(struct am *am, int source, const void *from, void *to,
			  int length, handler_mem_t handler, void *arg);
am_hidden void am_bulk_give(struct am *am, const struct am_packet *packet);
am_hidden void am_bulk_got(struct am *am, const struct am_packet *packet);

/* sync.c */
am_hidden int am_sync(struct am *am);
am_hidden void am_sync_arrives(struct am *am, const struct am_packet *packet);
am_hidden void am_sync_failed(struct am *am, int teller,
			      const struct am_packet *packet);

/* Cycle counter where there is one that programs can read (P 5.2.1). */
static inline uint64_t am_clock(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
#error "am_clock() is to be written for this machine"
#endif
}

static inline int64_t am_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Buffers by number: requests and replies, each by process and instance. */
static inline uint32_t am_index(const struct am *am, int reply, uint32_t peer,
				uint32_t instance)
{
	return ((reply ? am->procs : 0) + peer) << am->depth_shift | instance;
}

static inline void *am_out_buffer(const struct am *am, uint32_t index)
{
	return am->out + (size_t)index * am->stride;
}

#endif /* HAMLYN_AM_AM_H */
