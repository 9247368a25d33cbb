/* SPDX-License-Identifier: MIT */
/*
 * Work queues and workers, and what they say to each other.
 *
 * The first message of a worker says how many items it takes, the first of a master whether it
 * is welcome. Then the master sends items, and the worker what became of them: a head, and bytes.
 */
#ifndef H_WORK_INTERNAL_H
#define H_WORK_INTERNAL_H

#include <hamlyn/work.h>

#include "server/server.h"

#define H_JOIN_BYTES	16	/* magic; at_once; 0 */
#define H_JOINED_BYTES	16	/* magic; enum h_joined */
#define H_ITEM_BYTES	16	/* id; delivery, or enum h_verdict; 0 */

#define H_JOIN_MAGIC	0x314b525748ULL		/* "HWRK1" */
#define H_JOINED_MAGIC	0x31454d4848ULL		/* "HHME1" */

enum h_joined { H_JOINED, H_JOINED_NOT };
enum h_verdict { H_VERDICT_DONE = 1, H_VERDICT_FAILED };

/* Of a list with an end. */
struct h_task {
	struct h_task *next;
	struct h_task *prev;
	uint64_t id;
	uint32_t deliveries;
	int64_t since_ns;	/* it was handed out */
	size_t length;		/* without its head */
	unsigned char bytes[];	/* head, data */
};

struct h_tasks {
	struct h_task *first;
	struct h_task *last;
	uint32_t count;
};

/* One worker, as the master has it. */
struct h_hand {
	struct h_work_queue *queue;
	struct h_channel *channel;
	struct h_hand *next_hand;
	struct h_hand *prev_hand;
	struct h_peer peer;
	uint32_t at_once;
	bool welcome;
	bool blocked;		/* there was no room to send it one */
	int doomed;		/* an errno: it is to be dropped */
	struct h_tasks out;	/* the oldest first */
};

struct h_work_queue {
	struct h_server *server;
	struct h_work_attr attr;	/* uids are not kept */
	uint32_t lock;			/* what follows */
	uint32_t owner;			/* thread that has it; atomic */
	struct h_hand *hands;		/* the one that has waited longest is the last */
	struct h_tasks waiting;
	uint64_t bytes;			/* of all */
	uint64_t last_id;
	bool closing;
	int64_t looked_ns;		/* at the listener */
	struct h_work_counters counters;
};

struct h_worker {
	struct h_channel *channel;
	bool watched;			/* by its descriptor */
};

/* ---- work_task.c; locked ---- */

void h__tasks_append(struct h_tasks *list, struct h_task *t);
void h__tasks_prepend(struct h_tasks *list, struct h_task *t);
void h__tasks_remove(struct h_tasks *list, struct h_task *t);
int h__task_add(struct h_work_queue *q, const void *data, size_t length, uint64_t *id);
/* It was done, or nobody will do it. */
void h__task_end(struct h_work_queue *q, struct h_task *t);
/* Nobody has it any more: it is the next one, or was handed out often enough. */
void h__task_again(struct h_work_queue *q, struct h_task *t);
bool h__work_is_full(const struct h_work_queue *q, size_t length);

/* ---- work_hand.c; locked ---- */

/* The server's callbacks. */
int h__hand_add(struct h_channel *channel, void *arg);
int h__hand_hears(struct h_channel *channel, const struct h_message *m, void *arg);
void h__hand_end(struct h_channel *channel, int reason, void *arg);
void h__hand_room(struct h_channel *channel);

/* Hand out what waits, and drop those that are gone, or have had an item for too long. */
void h__hands_settle(struct h_work_queue *q);

#endif /* H_WORK_INTERNAL_H */
