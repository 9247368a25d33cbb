/* SPDX-License-Identifier: GPL-2.0-only */
/* Send termini of a context. */
#ifndef HML_TERMINUS_H
#define HML_TERMINUS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/swait.h>
#include <linux/timerqueue.h>
#include <linux/types.h>

#include "core/nic.h"
#include "core/sched.h"
#include "user/user.h"

struct hamlyn_terminus_create;
struct hml_area;
struct hml_client;
struct hml_context;
struct hml_device;
struct hml_engine;
struct hml_ring;

/**
 * struct hml_term - send terminus of a context
 * @core: what the NIC core sees
 * @stats: its counters
 * @device: the NIC
 * @engine: who serves it; constant
 * @client: the user, for the engine; constant
 * @held: bit 0: somebody works on @core. Taken by trylock only (B7)
 * @wanted: somebody waits for @held: let go
 * @waiters: tasks that wait in @freed or @rung for @held to be let go, or are about to: the
 *	one that lets go looks at this alone. Not its holder, which may be in @freed, too
 * @freed: tasks that wait for @held to be let go, or, who holds it, for the end of a pause
 * @rung: doorbells that wait for a moment, and are handed nothing
 * @dead: destroyed; written under engine.lock
 * @turn: place in engine.order; under engine.lock
 * @paused: in engine.paused: held back, stalled, or its user is broke; under engine.lock
 * @all: in device.termini; under device.termini_lock
 * @walked: the last walk that counted it; under device.termini_lock
 * @ref: 1 for the context, 1 for each who works on it without its lock
 * @id: id in the context
 * @context: id of the context; constant
 * @idle_since: when the engine began to find no work, about, ns; engine only
 * @idle_turns: turns without work since then; engine only
 * @last_kick: time of the last doorbell, ns; a hint
 * @kicks_in_row: doorbells in quick succession; a hint
 * @kicks_to_wake: how many of them start polling; a hint, written by the engine
 * @refused: since when the fabric has taken nothing, ns; 0: it does; under @held, as
 *	what follows, and only noted while somebody waits for the message
 * @refused_after: packets that it had taken by then
 * @refused_sum: what earlier refusals of the message have lasted, ns
 * @refused_message: messages that were sent before it
 * @areas: areas bound to the tags, core.tag_count of them; changed under the context's lock,
 *	by who holds the terminus
 * @bound: how many that are; under the context's lock
 * @payer: who pays for it and its tickets; constant
 * @wq: work queue; mapped writable
 * @status: status; mapped read-only
 * @rcu: for lookups without the context's lock
 */
struct hml_term {
	struct hml_terminus core;
	struct hml_stats stats;
	struct hml_device *device;
	struct hml_engine *engine;
	struct hml_client *client;
	unsigned long held;
	atomic_t wanted;
	atomic_t waiters;
	struct swait_queue_head freed;
	struct swait_queue_head rung;
	bool dead;
	struct hml_turn turn;
	struct timerqueue_node paused;
	struct list_head all;
	u64 walked;
	refcount_t ref;
	u32 id;
	u32 context;
	u64 idle_since;
	u32 idle_turns;
	u64 last_kick;
	u32 kicks_in_row;
	u32 kicks_to_wake;
	u64 refused;
	u64 refused_after;
	u64 refused_sum;
	u64 refused_message;
	struct hml_area **areas;
	u32 bound;
	struct hml_payer payer;
	struct hml_ring *wq;
	struct hml_ring *status;
	struct rcu_head rcu;
};

int hml_term_create(struct hml_context *c, struct hamlyn_terminus_create *arg);
int hml_term_destroy(struct hml_context *c, u32 id);
void hml_term_destroy_all(struct hml_context *c);
struct hml_term *hml_term_get(struct hml_context *c, u32 id);
void hml_term_put(struct hml_term *t);
int hml_term_finish(struct hml_term *t);

#endif /* HML_TERMINUS_H */
