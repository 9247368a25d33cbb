// SPDX-License-Identifier: GPL-2.0-only
/* What the bridge shares with the processes of its segment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge.h"

static int open_segment(struct bridge *b)
{
	const u8 *id = b->set.fabric;
	char name[256], why[HAMLYN_EXPLAIN_BYTES];
	int err, n, i;

	/* It is made so, or must be so. */
	n = snprintf(name, sizeof(name), "%.128s,host=%u,fabric=", b->set.device, b->set.host);
	for (i = 0; i < HAMLYN_FABRIC_ID_BYTES; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", id[i]);
	err = h_open(name, &b->dev);
	if (!err)
		return 0;
	h_explain(NULL, why, sizeof(why));
	say("%s: %s", b->set.device, *why ? why : strerror(-err));
	return -1;
}

/* Tables locked. One of that host, or a free one; of hosts that are no peers any more none stay. */
static struct shm_peer *place_of(struct shm_segment *seg, u32 host, u32 own)
{
	u32 i = h__shm_peer(seg, host);

	if (i == SHM_MAX_PEERS)
		i = h__shm_peer(seg, own);
	if (i == SHM_MAX_PEERS)
		i = shm_peers(seg);
	return i < SHM_MAX_PEERS ? &seg->bridge.peer[i] : NULL;
}

static bool is_configured(const struct bridge *b, u32 host)
{
	u32 i;

	for (i = 0; i < b->set.peers; i++)
		if (b->set.peer[i].host == host)
			return true;
	return false;
}

static void take_place(struct bridge *b, struct peer *p, struct shm_peer *place)
{
	u32 state = READ_ONCE(place->state);

	p->shared = place;
	p->number = (u32)(place - b->seg->bridge.peer);
	b->by_number[p->number] = (u32)(p - b->peers) + 1;
	*place = (struct shm_peer) {
		.host = p->host,
		.state = state,
		.reason = SHM_PEER_SILENT,
	};
	if (p->number >= shm_peers(b->seg))
		WRITE_ONCE(b->seg->bridge.peers, p->number + 1);
}

/* Tables locked, and there is no other bridge. */
static int fill_bridge(struct bridge *b)
{
	struct shm_bridge *shared = &b->seg->bridge;
	u32 i;

	h__shm_peers_down(b->seg);
	for (i = 0; i < shm_peers(b->seg); i++)
		if (!is_configured(b, shared->peer[i].host))
			WRITE_ONCE(shared->peer[i].host, b->set.host);
	for (i = 0; i < b->peer_count; i++) {
		struct peer *p = &b->peers[i];
		struct shm_peer *place = place_of(b->seg, p->host, b->set.host);

		if (!place) {
			say("there are %u peers already", SHM_MAX_PEERS);
			return -1;
		}
		take_place(b, p, place);
	}
	shared->pid = (u32)getpid();
	WRITE_ONCE(shared->door, 0);
	WRITE_ONCE(shared->asleep, 0);
	WRITE_ONCE(shared->owner, b->shm->attach + 1);
	return 0;
}

static int claim(struct bridge *b)
{
	u32 owner;
	int err;

	h__dev_lock(b->dev);
	err = h__shm_lock(b->dev);
	if (err) {
		h__unlock(&b->dev->lock);
		say("%s: %s", b->set.device, strerror(-err));
		return -1;
	}
	h__shm_reclaim_dead(b->dev);
	owner = READ_ONCE(b->seg->bridge.owner);
	if (owner) {
		say("%s has a bridge already, process %u", b->set.device, b->seg->bridge.pid);
		err = -1;
	} else {
		err = fill_bridge(b);
	}
	h__shm_unlock(b->dev);
	h__unlock(&b->dev->lock);
	return err;
}

static int make_peers(struct bridge *b)
{
	const struct settings *set = &b->set;
	u32 i;

	b->peers = calloc(set->peers, sizeof(*b->peers));
	if (!b->peers)
		return -1;
	b->peer_count = set->peers;
	for (i = 0; i < set->peers; i++) {
		struct peer *p = &b->peers[i];

		p->bridge = b;
		p->host = set->peer[i].host;
		p->address = set->peer[i].address;
		p->connects = set->host < p->host;
		p->fd = -1;
		p->stats = ((struct shm_sender *)b->terminus->priv)->core.sender.stats;
		if (outbox_init(&p->out) || inbox_init(p))
			return -1;
	}
	return 0;
}

int segment_join(struct bridge *b)
{
	const struct h_terminus_attr attr = { .flags = H_TERMINUS_SINGLE };
	int err = open_segment(b);

	if (err)
		return err;
	b->shm = shm_of(b->dev);
	b->seg = b->shm->seg;
	b->uid = (u32)getuid();
	do
		err = h__random(&b->incarnation, sizeof(b->incarnation));
	while (!err && !b->incarnation);
	if (!err)
		err = h__random(&b->salt, sizeof(b->salt));
	b->salt |= 1;
	if (!err)
		err = h_terminus_create(b->dev, &attr, &b->terminus);
	if (!err)
		err = make_peers(b);
	if (err) {
		say("%s: there is no room, or no memory", b->set.device);
		return err;
	}
	return claim(b);
}

/* What it owns in the segment goes with it, and its peers are down. */
void segment_leave(struct bridge *b)
{
	u32 i;

	h_close(b->dev);
	for (i = 0; i < b->peer_count; i++) {
		outbox_free(&b->peers[i].out);
		inbox_free(&b->peers[i]);
	}
	free(b->peers);
}

/* ---- a peer, as all see it; by the receiver only ---- */

void peer_up(struct peer *p)
{
	struct shm_peer *s = p->shared;

	p->state = PEER_UP;
	outbox_open(p);
	WRITE_ONCE(s->reason, 0);
	WRITE_ONCE(s->connections, s->connections + 1);
	smp_store_release(&s->state, READ_ONCE(s->state) + 1);	/* behind what is open */
	tell(p->bridge, "host %u is up", p->host);
	sender_work(p->bridge);
}

/* From here on packets to it are lost, and its watches tell. */
void peer_down(struct peer *p, u32 reason)
{
	struct shm_peer *s = p->shared;
	u32 state = READ_ONCE(s->state), before = READ_ONCE(s->reason);

	WRITE_ONCE(s->reason, reason);
	if (!shm_peer_up(state)) {
		/* Once, and not with each attempt. */
		if (before != reason)
			tell(p->bridge, "host %u is not there: %s", p->host, reason_text(reason));
		return;
	}
	smp_store_release(&s->state, state + 1);	/* behind the reason */
	tell(p->bridge, "host %u is down: %s", p->host, reason_text(reason));
	watcher_lost(p);
	sender_work(p->bridge);
}

/* Numbers for whoever asks. */
void peer_count(struct peer *p)
{
	struct shm_peer *s = p->shared;
	struct outbox *o = &p->out;

	pthread_mutex_lock(&o->lock);
	WRITE_ONCE(s->sent, o->packets);
	WRITE_ONCE(s->bytes_sent, o->bytes);
	WRITE_ONCE(s->lost, o->lost);
	WRITE_ONCE(s->stalls, o->stalls);
	pthread_mutex_unlock(&o->lock);
	WRITE_ONCE(s->received, READ_ONCE(p->in.packets));
	WRITE_ONCE(s->bytes_received, READ_ONCE(p->in.taken));
	WRITE_ONCE(s->dropped, READ_ONCE(p->in.dropped));
	WRITE_ONCE(s->refused, READ_ONCE(p->in.refused));
}
