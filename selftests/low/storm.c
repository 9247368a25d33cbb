// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kill storm: processes in full traffic are killed, stopped and continued at
 * random instants, hundreds or thousands of them; the others notice nothing but
 * that they are told.
 *
 *	storm [--processes N] [option of the harness]...
 *
 * --processes is how many die in all, over all tests of the program (default
 * 320, divided by HAMLYN_TEST_SCALE for slow machines; 10000 is a full storm).
 *
 * Peers send to each other in a ring, and each of them to the victims and back.
 * A victim has a seat; its generation says how many died on it before. A peer
 * has a slot for each seat and watches the slot of the victim on it. When it
 * was told that one is gone, it rekeys the seat's slot, takes what is left in
 * the NQ, fills the memory and looks at it again a while later: then the seat
 * is free for the next one. So there is always somebody alive, somebody dying
 * and somebody being born.
 *
 * fork_kill.c kills one process at a time, and waits until the others are done
 * with it; segment.c kills and stops a sender at every instruction.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "genl.h"

#include <linux/hamlyn_netlink.h>
#include <sched.h>
#include <signal.h>

#define PEERS		3
#define SEATS		4
#define WINDOW		4	/* messages of one sender to one receiver */
#define WATCH_TURNS	32	/* between cleaning a seat's memory and looking */
#define PROCESSES	320
#define MANY		8192	/* more pages than a segment has, at least */

/* What a message says of itself, in its metadata. */
struct label {
	uint32_t sender;
	uint32_t generation;
	uint32_t number;
	uint32_t length;
	uint32_t seed;
};

/* Written by the director, but for published and ticket. */
struct seat {
	uint32_t generation;	/* who sits here */
	uint32_t published;	/* generation that ticket is of; the victim's */
	uint32_t killed;	/* generation that is being killed */
	uint32_t reaped;	/* generation that is dead and reaped */
	struct h_ticket ticket;
};

/* Written by the peer, but for ring_wanted. */
struct peer_board {
	struct h_ticket ring;		/* for the peer before it */
	struct h_ticket in[SEATS];	/* for the victims */
	uint32_t ready;
	uint32_t in_taken[SEATS];	/* of this generation */
	uint32_t watched[SEATS];	/* generation that is */
	uint32_t done[SEATS];		/* generation that was cleaned up after */
	uint32_t ring_sent;
	uint32_t ring_taken;
	uint32_t ring_final;		/* ring_sent will not change any more */
	uint32_t finished;
	uint64_t victims_messages;
	uint32_t watches;
	uint32_t told;
	uint32_t latest;	/* most messages of the ring between death and word */
};

/* Shared by ordinary memory, so that only the traffic goes through Hamlyn. */
struct board {
	struct seat seats[SEATS];
	struct peer_board peers[PEERS];
	uint64_t sent_by_victims;
	uint32_t stop;
};

static unsigned int processes_wanted;

/* ---- sending: the same for peers and victims ---------------------------- */

struct line {
	int64_t handles[WINDOW];
	uint32_t sent;
};

struct party {
	struct h_dev *dev;
	struct h_area *area;		/* buffers: one of each place of a line */
	struct h_terminus *terminus;
	unsigned char *buffers;
	size_t part;			/* most bytes of a message */
	size_t packet;
	uint64_t random;
	uint32_t who;
	uint32_t generation;
};

static int party_open(struct party *p, uint32_t who, uint32_t generation,
		      size_t lines)
{
	struct hamlyn_query query;

	memset(p, 0, sizeof(*p));
	p->who = who;
	p->generation = generation;
	p->random = ht_seed() + ((uint64_t)generation << 16) + who;
	if (ht_open(&p->dev) || h_query(p->dev, &query))
		return -1;
	p->packet = query.packet_size;
	p->part = 2 * p->packet + 512;
	if (h_area_alloc(p->dev, lines * WINDOW * p->part, &p->area) ||
	    h_terminus_create(p->dev, NULL, &p->terminus) ||
	    h_terminus_bind(p->terminus, 0, p->area, 0, 0))
		return -1;
	p->buffers = h_area_addr(p->area);
	return 0;
}

static void line_begin(struct line *l)
{
	memset(l->handles, -1, sizeof(l->handles));
	l->sent = 0;
}

/* The next message of a line, whose number in the party is @index. */
static int line_send(struct party *p, struct line *l, size_t index,
		     const struct h_ticket *to)
{
	struct h_ticket ticket = *to;
	uint32_t place = l->sent % WINDOW;
	unsigned char *buffer = p->buffers + (index * WINDOW + place) * p->part;
	struct label label = {
		.sender = p->who,
		.generation = p->generation,
		.number = l->sent,
		.length = (uint32_t)(ht_random(&p->random) % (p->part + 1)),
		.seed = (uint32_t)ht_random(&p->random),
	};
	struct h_msg msg = {
		.ticket = &ticket,
		.offset = place * p->part,
		.data = buffer,
		.meta = &label,
		.meta_length = sizeof(label),
	};

	/* Short ones as well, and more often. */
	if (label.seed % 4)
		label.length %= 300;
	msg.length = label.length;
	ticket.meta_index = place;
	if (l->handles[place] >= 0 &&
	    ht_send_wait(p->terminus, l->handles[place]) != 1)
		return -1;
	ht_fill(buffer, msg.length, label.seed);
	l->handles[place] = ht_send(p->terminus, &msg);
	if (l->handles[place] < 0)
		return -1;
	l->sent++;
	return 0;
}

/* ---- victims ------------------------------------------------------------ */

struct victim {
	struct party party;
	struct h_area *area;
	struct h_area *meta;
	struct h_nq *nq;
	struct h_slot *slot;
	struct line lines[PEERS];
	struct board *board;
	void *own;			/* memory that it wires now and then */
	uint32_t seat;
};

static int victim_open(struct victim *v)
{
	struct h_slot_attr attr = { .meta_count = PEERS * WINDOW };
	uint32_t i;

	if (party_open(&v->party, v->seat, v->board->seats[v->seat].generation,
		       PEERS))
		return 1;
	if (h_area_alloc(v->party.dev, PEERS * WINDOW * v->party.part,
			 &v->area) ||
	    h_area_alloc(v->party.dev, 4096, &v->meta) ||
	    h_nq_create(v->party.dev, 64, &v->nq))
		return 2;
	attr.area = v->area;
	attr.meta_area = v->meta;
	attr.nq = v->nq;
	if (h_slot_create(v->party.dev, &attr, &v->slot) ||
	    h_slot_ticket(v->slot, 0, 0, 0, &v->board->seats[v->seat].ticket))
		return 3;
	for (i = 0; i < PEERS; i++)
		line_begin(&v->lines[i]);
	v->own = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (v->own == MAP_FAILED)
		return 4;
	h__store_release(&v->board->seats[v->seat].published,
			 v->party.generation);
	return 0;
}

static int victim_send(struct victim *v)
{
	uint32_t to = ht_random(&v->party.random) % PEERS;
	struct peer_board *peer = &v->board->peers[to];
	struct line *l = &v->lines[to];

	if (l->sent - h__load_acquire(&peer->in_taken[v->seat]) >= WINDOW)
		return 0;
	if (line_send(&v->party, l, to, &peer->in[v->seat]))
		return -1;
	__atomic_fetch_add(&v->board->sent_by_victims, 1, __ATOMIC_RELAXED);
	return 1;
}

/* Every kind of object comes and goes: death meets each of these calls. */
static int victim_build(struct victim *v)
{
	struct h_dev *dev = v->party.dev;
	const struct h_ticket *to = &v->board->peers[v->seat % PEERS].in[v->seat];
	struct h_slot_attr attr = { .length = 64 };
	struct h_terminus *terminus;
	struct h_ticket imported;
	struct h_watch *watch;
	struct h_slot *slot;
	struct h_area *own;
	int fd;

	if (h_area_alloc(dev, 3 * 4096, &attr.area) ||
	    h_area_add(dev, v->own, 1 << 16, 0, &own) ||
	    h_nq_create(dev, 16, &attr.nq) ||
	    h_slot_create(dev, &attr, &slot) ||
	    h_terminus_create(dev, NULL, &terminus) ||
	    h_terminus_bind(terminus, 1, own, 0, 0) ||
	    h_slot_ticket_fd(slot, 0, 0, &fd) ||
	    h_terminus_import(terminus, fd, &imported) || close(fd) ||
	    h_watch(dev, to, attr.nq, 1, &watch) ||
	    h_slot_rekey(slot) ||
	    h_unwatch(watch) ||
	    h_terminus_drop(terminus, &imported) ||
	    h_terminus_destroy(terminus) || h_slot_destroy(slot) ||
	    h_nq_destroy(attr.nq) || h_area_remove(own) ||
	    h_area_remove(attr.area))
		return -1;
	return 1;
}

/* Lives until it is killed. Its kind: sender, builder, sleeper or all in turn. */
static int victim_live(struct board *board, uint32_t seat)
{
	struct victim v = { .board = board, .seat = seat };
	struct hamlyn_nq_entry entry;
	unsigned int kind, turn;
	int ret = victim_open(&v);

	if (ret)
		return ret;
	kind = ht_random(&v.party.random) % 4;
	for (turn = 0;; turn++) {
		unsigned int act = kind == 3 ? turn / 16 % 3 : kind;

		ret = act == 1 ? victim_build(&v) : victim_send(&v);
		if (ret < 0)
			return 10 + (int)act;
		if (h_recv(v.nq, &entry) == 1 || ret)
			continue;
		if (act == 2)
			h_recv_block(v.nq, &entry, 2 * HT_MS);
		else
			sched_yield();
	}
}

/* ---- peers -------------------------------------------------------------- */

/* What a peer knows of a seat. */
struct place {
	struct h_slot *slot;
	struct h_watch *watch;		/* of generation watched; kept for a while */
	unsigned char *data;
	struct hamlyn_metadata *meta;
	struct line line;		/* to the victim */
	uint32_t watched;
	uint32_t told;
	uint32_t next;			/* number of the victim's next message */
	uint32_t ring_at_death;
	uint32_t cleaned;		/* generation whose memory is filled */
	unsigned int turns;		/* left until a look at it */
	bool seen_dead;
};

struct peer {
	struct party party;
	struct board *board;
	struct peer_board *own;
	struct h_nq *nq;
	struct h_slot *ring;
	struct h_slot *fence;
	struct h_ticket fence_ticket;
	unsigned char *ring_data;
	struct hamlyn_metadata *ring_meta;
	struct line line;		/* to the next of the ring */
	struct place places[SEATS];
	uint64_t fences;
	uint32_t number;
	uint32_t ring_next;
};

static int peer_slot(struct peer *p, struct h_area *area, struct h_area *meta,
		     size_t index, struct h_slot **slot)
{
	struct h_slot_attr attr = {
		.area = area,
		.base = index * WINDOW * p->party.part,
		.length = WINDOW * p->party.part,
		.meta_area = meta,
		.meta_base = index * WINDOW * sizeof(struct hamlyn_metadata),
		.meta_count = WINDOW,
		.nq = p->nq,
	};

	return h_slot_create(p->party.dev, &attr, slot);
}

static int peer_open(struct peer *p)
{
	size_t bytes = WINDOW * sizeof(struct hamlyn_metadata);
	struct h_slot_attr attr = { 0 };
	struct h_area *area, *meta;
	unsigned int s;

	if (party_open(&p->party, p->number, 0, SEATS + 1) ||
	    h_area_alloc(p->party.dev, (SEATS + 1) * WINDOW * p->party.part,
			 &area) ||
	    h_area_alloc(p->party.dev, (SEATS + 1) * bytes, &meta) ||
	    h_nq_create(p->party.dev, 256, &p->nq))
		return 1;
	for (s = 0; s < SEATS; s++) {
		struct place *a = &p->places[s];

		if (peer_slot(p, area, meta, s, &a->slot) ||
		    h_slot_ticket(a->slot, 0, 0, 0, &p->own->in[s]))
			return 2;
		a->data = (unsigned char *)h_area_addr(area) +
			  s * WINDOW * p->party.part;
		a->meta = h_slot_entry(a->slot, 0);
	}
	if (peer_slot(p, area, meta, SEATS, &p->ring) ||
	    h_slot_ticket(p->ring, 0, 0, 0, &p->own->ring))
		return 3;
	p->ring_data = (unsigned char *)h_area_addr(area) +
		       SEATS * WINDOW * p->party.part;
	p->ring_meta = h_slot_entry(p->ring, 0);
	attr.area = area;
	attr.nq = p->nq;
	if (h_slot_create(p->party.dev, &attr, &p->fence) ||
	    h_slot_ticket(p->fence, 0, 0, HAMLYN_META_FAST, &p->fence_ticket))
		return 4;
	line_begin(&p->line);
	return 0;
}

static const char *check_message(const struct peer *p,
				 const struct hamlyn_nq_entry *e,
				 struct hamlyn_metadata *meta,
				 const unsigned char *data,
				 const struct label *want)
{
	struct hamlyn_metadata *m = meta + e->index;
	const struct label *label = (const void *)m->user;

	if (e->index >= WINDOW)
		return "a strange notification index";
	if (m->meta_length != sizeof(*label) || label->sender != want->sender ||
	    label->generation != want->generation ||
	    label->number % WINDOW != e->index)
		return "wrong metadata";
	if (label->number != want->number)
		return "not the message that is next: lost or doubled";
	if (ht_match(data + e->index * p->party.part, label->length,
		     label->seed) != label->length)
		return "wrong data";
	return m->accumulator ? "the accumulator did not return to 0" : NULL;
}

static const char *take_ring(struct peer *p, const struct hamlyn_nq_entry *e)
{
	struct label want = {
		.sender = (p->number + PEERS - 1) % PEERS,
		.number = p->ring_next,
	};
	const char *complaint = check_message(p, e, p->ring_meta, p->ring_data,
					      &want);

	if (!complaint)
		h__store_release(&p->own->ring_taken, ++p->ring_next);
	return complaint;
}

static const char *take_victims(struct peer *p, const struct hamlyn_nq_entry *e)
{
	const char *complaint;
	struct label want;
	struct place *a;
	unsigned int s;

	for (s = 0; s < SEATS; s++)
		if (e->slot == h_slot_number(p->places[s].slot))
			break;
	if (s == SEATS)
		return "a notification of a strange slot";
	a = &p->places[s];
	want = (struct label) {
		.sender = s,
		.generation = h__load_acquire(&p->board->seats[s].generation),
		.number = a->next,
	};
	if (a->cleaned == want.generation)
		return "a message behind the rekey";
	complaint = check_message(p, e, a->meta, a->data, &want);
	if (complaint)
		return complaint;
	p->own->victims_messages++;
	h__store_release(&p->own->in_taken[s], ++a->next);
	return NULL;
}

/* The claim: exactly once for each watch, and never of one who lives. */
static const char *take_word(struct peer *p, const struct hamlyn_nq_entry *e)
{
	uint32_t s = (uint32_t)(e->data >> 32), generation = (uint32_t)e->data;
	struct place *a;

	if (s >= SEATS)
		return "PEER_GONE of a strange watch";
	a = &p->places[s];
	if (generation == a->told)
		return "PEER_GONE twice";
	if (generation != a->watched)
		return "PEER_GONE of one who was not watched";
	if (h__load_acquire(&p->board->seats[s].killed) != generation)
		return "PEER_GONE of one who lives";
	a->told = generation;
	p->own->told++;
	return NULL;
}

/* One notification; the fence's is told to @fence. */
static const char *take(struct peer *p, const struct hamlyn_nq_entry *e,
			uint64_t *fence)
{
	if (e->flags & HAMLYN_NQE_PEER_GONE)
		return take_word(p, e);
	if (e->slot == h_slot_number(p->ring))
		return take_ring(p, e);
	if (e->slot != h_slot_number(p->fence))
		return take_victims(p, e);
	if (!fence)
		return "a fence that nobody waits for";
	*fence = e->data;
	return NULL;
}

/* What is there. Its number, or negative with a complaint. */
static int take_all(struct peer *p, const char **complaint)
{
	struct hamlyn_nq_entry e;
	int ret, n = 0;

	while (n < 64 && (ret = h_recv(p->nq, &e))) {
		*complaint = ret < 0 ? "overrun" : take(p, &e, NULL);
		if (*complaint)
			return -1;
		n++;
	}
	return n;
}

/* Take all that was appended before. */
static const char *pass_fence(struct peer *p)
{
	struct h_msg msg = { .ticket = &p->fence_ticket, .word = ++p->fences };
	struct hamlyn_nq_entry e;
	const char *complaint;
	uint64_t seen = 0;
	int ret;

	if (ht_send_sync(p->party.terminus, &msg) != 1)
		return "no fence";
	while (seen != p->fences) {
		ret = ht_recv(p->nq, &e);
		if (ret != 1)
			return ret < 0 ? "the fence does not come" : "overrun";
		complaint = take(p, &e, &seen);
		if (complaint)
			return complaint;
	}
	return NULL;
}

/* Behind the rekey the memory is ours: whatever changes in it was let in. */
static const char *clean_seat(struct peer *p, struct place *a,
			      uint32_t generation)
{
	const char *complaint;

	if (h_slot_rekey(a->slot))
		return "no rekey";
	complaint = pass_fence(p);
	if (complaint)
		return complaint;
	a->cleaned = generation;
	a->turns = WATCH_TURNS;
	memset(a->data, HT_GUARD, WINDOW * p->party.part);
	memset(a->meta, HT_GUARD, WINDOW * sizeof(*a->meta));
	return NULL;
}

static const char *free_seat(struct peer *p, struct place *a, unsigned int s)
{
	size_t bytes = WINDOW * sizeof(*a->meta);

	if (ht_match_byte(a->data, WINDOW * p->party.part, HT_GUARD) !=
	    WINDOW * p->party.part)
		return "data landed behind the rekey";
	if (ht_match_byte((unsigned char *)a->meta, bytes, HT_GUARD) != bytes)
		return "metadata landed behind the rekey";
	memset(a->meta, 0, bytes);
	if (h_slot_ticket(a->slot, 0, 0, 0, &p->own->in[s]))
		return "no ticket";
	a->next = 0;
	a->seen_dead = false;
	h__store_release(&p->own->in_taken[s], 0);
	h__store_release(&p->own->done[s], a->cleaned);
	return NULL;
}

/* Also of one who is dead by now: then it is told at once. */
static const char *watch_seat(struct peer *p, struct place *a, unsigned int s,
			      uint32_t generation)
{
	uint64_t cookie = (uint64_t)s << 32 | generation;

	/* Kept up to here: if it told twice we would have seen it. */
	if (a->watch && h_unwatch(a->watch))
		return "no unwatch";
	a->watched = generation;
	if (h_watch(p->party.dev, &p->board->seats[s].ticket, p->nq, cookie,
		    &a->watch))
		return "no watch";
	p->own->watches++;
	h__store_release(&p->own->watched[s], generation);
	line_begin(&a->line);
	return NULL;
}

static const char *look_at_seat(struct peer *p, unsigned int s)
{
	struct seat *seat = &p->board->seats[s];
	struct place *a = &p->places[s];
	uint32_t reaped = h__load_acquire(&seat->reaped);
	uint32_t published = h__load_acquire(&seat->published);

	if (published != a->watched)
		return watch_seat(p, a, s, published);
	if (a->watched != a->told && reaped != a->watched) {
		/* He reads nothing of it; it is there to be cut off. */
		if (a->line.sent < 100000 && a->turns-- % 4 == 0 &&
		    line_send(&p->party, &a->line, s, &seat->ticket))
			return "sending to a victim failed";
		return NULL;
	}
	if (reaped == p->own->done[s])
		return NULL;
	if (!a->seen_dead) {
		a->seen_dead = true;
		a->ring_at_death = p->ring_next;
	}
	if (a->watched == reaped && a->told != reaped)
		return NULL;	/* the word will come */
	if (a->cleaned != reaped) {
		uint32_t late = p->ring_next - a->ring_at_death;

		if (late > p->own->latest)
			p->own->latest = late;
		return clean_seat(p, a, reaped);
	}
	return --a->turns ? NULL : free_seat(p, a, s);
}

static const char *peer_turn(struct peer *p, bool *idle)
{
	struct peer_board *next = &p->board->peers[(p->number + 1) % PEERS];
	const char *complaint = NULL;
	int taken = take_all(p, &complaint);
	bool sent = false;
	unsigned int s;

	if (taken < 0)
		return complaint;
	if (p->line.sent - h__load_acquire(&next->ring_taken) < WINDOW &&
	    !h__load_acquire(&p->board->stop)) {
		if (line_send(&p->party, &p->line, SEATS, &next->ring))
			return "sending to the next peer failed";
		h__store_release(&p->own->ring_sent, p->line.sent);
		sent = true;
	}
	for (s = 0; s < SEATS && !complaint; s++)
		complaint = look_at_seat(p, s);
	*idle = !taken && !sent;
	return complaint;
}

static void rest(struct peer *p, unsigned int idle_turns)
{
	if (idle_turns < 16)
		sched_yield();
	else
		ht_sleep_ns(p->number ? 20000 : 200000);
}

/* Stopped: nobody sends any more, and all that was sent came. */
static bool peer_finished(struct peer *p)
{
	struct peer_board *before =
		&p->board->peers[(p->number + PEERS - 1) % PEERS];

	if (!h__load_acquire(&p->board->stop))
		return false;
	h__store_release(&p->own->ring_final, 1);
	return h__load_acquire(&before->ring_final) &&
	       h__load_acquire(&before->ring_sent) == p->ring_next;
}

static const char *peer_live(struct peer *p)
{
	uint32_t progress = 0;
	struct ht_poll poll;
	unsigned int idle_turns = 0;
	const char *complaint;
	bool idle;

	ht_poll_begin(&poll);
	while (!peer_finished(p)) {
		complaint = peer_turn(p, &idle);
		if (complaint)
			return complaint;
		if (p->ring_next != progress) {
			progress = p->ring_next;
			ht_poll_begin(&poll);
		} else if (!ht_poll_more(&poll)) {
			return "nothing comes from the peer before";
		}
		idle_turns = idle ? idle_turns + 1 : 0;
		if (idle)
			rest(p, idle_turns);
	}
	complaint = pass_fence(p);
	if (!complaint && h_nq_lost(p->nq))
		complaint = "notifications were lost";
	return complaint;
}

static int peer_main(struct board *board, uint32_t number)
{
	struct peer p = {
		.board = board,
		.own = &board->peers[number],
		.number = number,
	};
	struct ht_poll poll;
	unsigned int i;

	if (peer_open(&p))
		return 1;
	h__store_release(&p.own->ready, 1);
	for (i = 0; i < PEERS; i++) {
		ht_poll_begin(&poll);
		while (!h__load_acquire(&board->peers[i].ready))
			if (!ht_poll_more(&poll))
				return 2;
	}
	if (ht_complain(peer_live(&p)))
		return 3;
	h__store_release(&p.own->finished, 1);
	h_close(p.party.dev);
	return 0;
}

/* ---- figures: what must be back at the end ------------------------------ */

enum { PAGES, SLOTS, NQS, TERMINI, WATCHES, CONTEXTS, AREAS, WIRED, FIGURES };

static const char *const figure_names[FIGURES] = {
	"pages", "slots", "NQs", "termini", "watches", "contexts", "areas",
	"wired bytes",
};

/* Of the embedded device: how many more could be made. */
static void count_free(struct h_dev *dev, uint64_t *figures)
{
	static struct h_terminus *termini[MANY];
	static struct h_watch *watches[MANY];
	static struct h_nq *nqs[MANY];
	struct h_ticket ticket = { .key = 1 };
	struct h_area *area;
	unsigned int n;

	figures[PAGES] = (uint64_t)ht_count_areas(dev, 1, MANY);
	if (h_area_alloc(dev, 1, &area))
		return;
	figures[SLOTS] = (uint64_t)ht_count_slots(dev, area, MANY);
	for (n = 0; n < MANY && !h_nq_create(dev, 2, &nqs[n]); n++)
		;
	figures[NQS] = n;
	while (n > 1)
		h_nq_destroy(nqs[--n]);
	for (n = 0; n < MANY && !h_watch(dev, &ticket, nqs[0], 0,
					 &watches[n]); n++)
		;
	figures[WATCHES] = n;
	while (n)
		h_unwatch(watches[--n]);
	h_nq_destroy(nqs[0]);
	for (n = 0; n < MANY && !h_terminus_create(dev, NULL, &termini[n]); n++)
		;
	figures[TERMINI] = n;
	while (n)
		h_terminus_destroy(termini[--n]);
	h_area_remove(area);
}

/* Of the kernel's: how many there are. */
static int ask_nic(const struct h_dev *dev, uint64_t *figures)
{
	const char *digits = h_dev_name(dev) + strcspn(h_dev_name(dev),
						       "0123456789");
	struct genl g;
	int ret = genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION);

	if (ret)
		return ret;
	genl_begin(&g, HAMLYN_NL_CMD_NIC_GET);
	genl_put_u32(&g, HAMLYN_A_NIC, (uint32_t)atoi(digits));
	ret = genl_call(&g);
	figures[PAGES] = genl_number(genl_attr(&g, HAMLYN_A_KERNEL_BYTES));
	figures[SLOTS] = genl_number(genl_attr(&g, HAMLYN_A_SLOTS));
	figures[NQS] = genl_number(genl_attr(&g, HAMLYN_A_NQS));
	figures[TERMINI] = genl_number(genl_attr(&g, HAMLYN_A_TERMINI));
	figures[AREAS] = genl_number(genl_attr(&g, HAMLYN_A_AREAS));
	figures[CONTEXTS] = genl_number(genl_attr(&g, HAMLYN_A_CONTEXTS));
	figures[WIRED] = genl_number(genl_attr(&g, HAMLYN_A_WIRED_BYTES));
	genl_close(&g);
	return ret;
}

static int take_figures(struct h_dev *dev, uint64_t *figures)
{
	memset(figures, 0, FIGURES * sizeof(*figures));
	if (!h_dev_is_embedded(dev))
		return ask_nic(dev, figures);
	count_free(dev, figures);
	return 0;
}

/* ---- the director ------------------------------------------------------- */

FIXTURE(storm) {
	struct board *board;
	struct h_dev *dev;
	uint64_t before[FIGURES];
	pid_t peers[PEERS];
	pid_t victims[SEATS];		/* 0: nobody */
	uint64_t random;
	uint32_t published;		/* generations that had a slot */
	uint32_t dead;
	uint32_t stops;
};

FIXTURE_VARIANT(storm) {
	unsigned int stops;	/* percent of blows that stop before they kill */
	unsigned int at_once;	/* percent that hit all */
	unsigned int young;	/* percent that hit within the first instants */
	bool peers;		/* these are stopped, too */
};

FIXTURE_VARIANT_ADD(storm, one_by_one) {
};

FIXTURE_VARIANT_ADD(storm, stopped_before) {
	.stops = 60,
	.peers = true,
};

FIXTURE_VARIANT_ADD(storm, all_at_once) {
	.at_once = 40,
	.stops = 10,
};

FIXTURE_VARIANT_ADD(storm, hardly_born) {
	.young = 80,
};

#define VARIANTS	4

FIXTURE_SETUP(storm)
{
	unsigned int i, j;
	struct ht_poll poll;

	self->random = ht_seed();
	self->board = mmap(NULL, sizeof(*self->board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->board);
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, take_figures(self->dev, self->before));
	for (i = 0; i < PEERS; i++) {
		self->peers[i] = ht_fork();
		ASSERT_GE(self->peers[i], 0);
		if (!self->peers[i])
			_exit(peer_main(self->board, i));
	}
	for (j = 0; j < PEERS; j++) {
		ht_poll_begin(&poll);
		while (!h__load_acquire(&self->board->peers[j].ready))
			ASSERT_TRUE(ht_poll_more(&poll));
	}
}

/* The peers die with us. */
FIXTURE_TEARDOWN(storm)
{
	h_close(self->dev);
	munmap(self->board, sizeof(*self->board));
}

static bool seat_is_free(const FIXTURE_DATA(storm) *self, unsigned int s)
{
	unsigned int i;

	if (self->victims[s])
		return false;
	for (i = 0; i < PEERS; i++)
		if (h__load_acquire(&self->board->peers[i].done[s]) !=
		    self->board->seats[s].reaped)
			return false;
	return true;
}

static int seat_somebody(FIXTURE_DATA(storm) *self, unsigned int s)
{
	struct seat *seat = &self->board->seats[s];

	h__store_release(&seat->generation, seat->generation + 1);
	self->victims[s] = ht_fork();
	if (!self->victims[s])
		_exit(victim_live(self->board, s));
	return self->victims[s] < 0 ? -1 : 0;
}

/* Peers that are not there any more have said why. */
static bool peers_live(const FIXTURE_DATA(storm) *self)
{
	unsigned int i;
	int status;

	for (i = 0; i < PEERS; i++)
		if (waitpid(self->peers[i], &status, WNOHANG))
			return false;
	return true;
}

/* Random instants: some long, many short, some none at all. */
static void wait_a_bit(FIXTURE_DATA(storm) *self, unsigned int longest_us)
{
	unsigned int kind = ht_random(&self->random) % 4;

	if (kind)
		ht_sleep_ns((int64_t)(ht_random(&self->random) %
				      ((kind == 1 ? longest_us :
					longest_us / 8) * 1000ULL)));
}

static void stop_peer(FIXTURE_DATA(storm) *self)
{
	pid_t pid = self->peers[ht_random(&self->random) % PEERS];

	kill(pid, SIGSTOP);
	wait_a_bit(self, 5000);
	kill(pid, SIGCONT);
	self->stops++;
}

static void strike(FIXTURE_DATA(storm) *self, unsigned int s, bool stop)
{
	struct seat *seat = &self->board->seats[s];

	if (stop) {
		kill(self->victims[s], SIGSTOP);
		wait_a_bit(self, 5000);
		self->stops++;
		if (ht_random(&self->random) % 2) {
			kill(self->victims[s], SIGCONT);
			wait_a_bit(self, 1000);
		}
	}
	h__store_release(&seat->killed, seat->generation);
	kill(self->victims[s], SIGKILL);
}

static const char *bury(FIXTURE_DATA(storm) *self, unsigned int s)
{
	struct seat *seat = &self->board->seats[s];
	int status = ht_reap(self->victims[s]);

	self->victims[s] = 0;
	if (status != 128 + SIGKILL) {
		fprintf(stderr, "# victim's status %d\n", status);
		return "a victim ended before it was killed";
	}
	self->dead++;
	self->published += seat->published == seat->generation;
	h__store_release(&seat->reaped, seat->generation);
	return NULL;
}

/* In full traffic: everybody watches him, and sends to him. */
static bool busy(const FIXTURE_DATA(storm) *self, unsigned int s)
{
	const struct seat *seat = &self->board->seats[s];
	unsigned int i;

	if (h__load_acquire(&seat->published) != seat->generation)
		return false;
	for (i = 0; i < PEERS; i++)
		if (h__load_acquire(&self->board->peers[i].watched[s]) !=
		    seat->generation)
			return false;
	return true;
}

/* Whoever is hit, in one go. */
static const char *blow(FIXTURE_DATA(storm) *self,
			const FIXTURE_VARIANT(storm) *variant, bool young)
{
	bool all = ht_random(&self->random) % 100 < variant->at_once;
	bool stop = ht_random(&self->random) % 100 < variant->stops;
	unsigned int first = ht_random(&self->random) % SEATS;
	bool hit[SEATS] = { false };
	const char *complaint = NULL;
	unsigned int i, s;

	for (i = 0; i < SEATS; i++) {
		s = (first + i) % SEATS;
		if (!self->victims[s] || (!young && !busy(self, s)))
			continue;
		hit[s] = true;
		strike(self, s, stop);
		if (!all)
			break;
	}
	for (s = 0; s < SEATS && !complaint; s++)
		if (hit[s])
			complaint = bury(self, s);
	return complaint;
}

static const char *rage(FIXTURE_DATA(storm) *self,
			const FIXTURE_VARIANT(storm) *variant, unsigned int most)
{
	const char *complaint = NULL;
	struct ht_poll poll;
	uint32_t dead = 0;
	unsigned int s;

	ht_poll_begin(&poll);
	while (self->dead < most && !complaint) {
		bool young = ht_random(&self->random) % 100 < variant->young;

		for (s = 0; s < SEATS; s++)
			if (seat_is_free(self, s) && seat_somebody(self, s))
				return "no process";
		wait_a_bit(self, young ? 2000 : 4000);
		if (variant->peers && ht_random(&self->random) % 4 == 0)
			stop_peer(self);
		complaint = blow(self, variant, young);
		if (!peers_live(self))
			return "a peer has ended";
		if (self->dead != dead)
			ht_poll_begin(&poll);
		else if (!ht_poll_more(&poll))
			return "a peer is not told";
		dead = self->dead;
	}
	return complaint;
}

/* The rest dies; then all seats have to be clean. */
static const char *calm(FIXTURE_DATA(storm) *self)
{
	const char *complaint = NULL;
	struct ht_poll poll;
	unsigned int s;

	for (s = 0; s < SEATS && !complaint; s++)
		if (self->victims[s]) {
			strike(self, s, false);
			complaint = bury(self, s);
		}
	ht_poll_begin(&poll);
	for (s = 0; s < SEATS && !complaint; s++)
		while (!seat_is_free(self, s) && !complaint) {
			if (!peers_live(self))
				complaint = "a peer has ended";
			else if (!ht_poll_more(&poll))
				complaint = "a peer is not told of the last ones";
		}
	h__store_release(&self->board->stop, 1);
	return complaint;
}

static void report(const FIXTURE_DATA(storm) *self)
{
	uint64_t ring = 0, victims = 0;
	uint32_t told = 0, latest = 0;
	unsigned int i;

	for (i = 0; i < PEERS; i++) {
		const struct peer_board *b = &self->board->peers[i];

		ring += b->ring_taken;
		victims += b->victims_messages;
		told += b->told;
		if (b->latest > latest)
			latest = b->latest;
	}
	fprintf(stderr, "# storm: kills=%u stops=%u told=%u messages=%ju ",
		self->dead, self->stops, told, (uintmax_t)ring);
	fprintf(stderr, "from_victims=%ju sent_by_victims=%ju latest=%u\n",
		(uintmax_t)victims, (uintmax_t)self->board->sent_by_victims,
		latest);
}

TEST_F(storm, disturbs_nobody_and_leaves_nothing)
{
	uint64_t after[FIGURES];
	unsigned int i;

	EXPECT_NO(rage(self, variant, processes_wanted / VARIANTS)) {
		TH_LOG("after %u deaths, seed %ju", self->dead,
		       (uintmax_t)ht_seed());
	}
	EXPECT_NO(calm(self));
	for (i = 0; i < PEERS; i++) {
		EXPECT_EQ(0, ht_reap(self->peers[i])) {
			TH_LOG("peer %u", i);
		}
		EXPECT_EQ(1, self->board->peers[i].finished);
		EXPECT_EQ(self->published, self->board->peers[i].watches);
		EXPECT_EQ(self->published, self->board->peers[i].told);
		EXPECT_LT(0, self->board->peers[i].ring_taken);
	}
	report(self);
	ASSERT_EQ(0, take_figures(self->dev, after));
	for (i = 0; i < FIGURES; i++) {
		EXPECT_EQ(self->before[i], after[i]) {
			TH_LOG("%s", figure_names[i]);
		}
	}
}

/* ---- options ------------------------------------------------------------ */

static unsigned int scale(void)
{
	const char *s = getenv("HAMLYN_TEST_SCALE");

	return s && atoi(s) > 0 ? (unsigned int)atoi(s) : 1;
}

static int wrong(const char *word)
{
	fprintf(stderr, "storm: --processes takes a number, 1 to 1000000: %s\n",
		word);
	return 2;
}

int main(int argc, char **argv)
{
	char *end;
	int i;

	processes_wanted = PROCESSES / scale();
	for (i = 1; i + 1 < argc && strcmp(argv[i], "--processes"); i++)
		;
	if (i + 1 < argc) {
		processes_wanted = (unsigned int)strtoul(argv[i + 1], &end, 10);
		if (*end || !processes_wanted || processes_wanted > 1000000)
			return wrong(argv[i + 1]);
		memmove(argv + i, argv + i + 2,
			(size_t)(argc - i - 1) * sizeof(*argv));
		argc -= 2;
	} else if (i < argc && !strcmp(argv[i], "--processes")) {
		return wrong("nothing");
	}
	if (processes_wanted < VARIANTS * SEATS)
		processes_wanted = VARIANTS * SEATS;
	return test_harness_run(argc, argv);
}
