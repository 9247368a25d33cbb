// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two processes meet by a name over bridges, and in each state of that one of them is killed, or a
 * bridge, or nothing is heard of one any more: who is left is told what the headers say, and
 * nothing is left of it in either segment.
 */
#include "bridge_hosts.h"
#include "deaths.h"

#define PATIENT_MS	120000	/* a bridge that gets no processor is there */

enum strike { SERVER_IS_KILLED, CLIENT_IS_KILLED, BRIDGE_IS_KILLED, BRIDGE_STOPS, NOTHING };

/* A call can be left unanswered without the library only, which has no way to do so here. */
static const enum state states[] = { LISTENING, CONNECTING, ANSWERED, QUIET, SENDING, CLOSING };

struct stage {
	struct scene *scene;
	pid_t pid[SIDES];
	struct use {
		u32 termini, nqs, slots, areas, watches;
	} nothing[SIDES], open[SIDES];	/* before anybody comes; when both have opened it */
};

/* ---- figures ---- */

#define OWNED(seg, table, n) ({						\
	u32 i_, n_ = 0;							\
									\
	for (i_ = 0; i_ < (n); i_++)					\
		n_ += READ_ONCE((seg)->table[i_].owner) != 0;		\
	n_;								\
})

/* Whoever comes clears up what the dead have left. */
static struct use look(FIXTURE_DATA(bridge) *self, int side)
{
	const struct host *h = &self->host[side];
	struct shm_segment *seg = seg_of(h);
	struct h_dev *dev;

	if (!h_open(self->name[side], &dev))
		h_close(dev);
	return (struct use) {
		.termini = OWNED(seg, termini, SHM_MAX_TERMINI),
		.nqs = OWNED(seg, nqs, SHM_MAX_NQS),
		.slots = OWNED(seg, slots, SHM_MAX_SLOTS),
		.areas = OWNED(seg, areas, SHM_MAX_AREAS),
		.watches = OWNED(seg, watches, SHM_MAX_WATCHES),
	};
}

/* @open: what somebody has who lives. */
static bool comes_to(FIXTURE_DATA(bridge) *self, int side, const struct use *want,
		     const struct use *open)
{
	struct ht_poll poll;
	struct use is;

	ht_poll_begin(&poll);
	do {
		is = look(self, side);
		/* Memory its manager keeps for what comes next. */
		if (want == open)
			is.areas = want->areas;
		if (!memcmp(&is, want, sizeof(is)))
			return true;
	} while (ht_poll_more(&poll));
	printf("# host %d: termini %u of %u, NQs %u of %u, slots %u of %u, ", side + 1, is.termini,
	       want->termini, is.nqs, want->nqs, is.slots, want->slots);
	printf("areas %u of %u, watches %u of %u\n", is.areas, want->areas, is.watches,
	       want->watches);
	return false;
}

/* ---- to a state ---- */

static void enter(FIXTURE_DATA(bridge) *self, struct stage *s, int side)
{
	struct party p = { .scene = s->scene, .side = side, .device = self->name[side] };

	s->pid[side] = ht_fork();
	if (!s->pid[side])
		be_party(&p);
}

static bool begin(FIXTURE_DATA(bridge) *self, struct stage *s, enum state state)
{
	int i;

	memset(s->scene, 0, sizeof(*s->scene));
	s->scene->state = state;
	for (i = SIDES - 1; i >= 0; i--) {
		enter(self, s, i);
		if (!party_is_at(s->scene, i, OPEN))
			return false;
		s->open[i] = look(self, i);
	}
	return true;
}

static u64 received(FIXTURE_DATA(bridge) *self)
{
	return READ_ONCE(seg_of(&self->host[SERVER])->bridge.peer[0].bytes_received);
}

/* The server's bridge has heard more than a call is long: figures are told now and then. */
static bool some_has_come(FIXTURE_DATA(bridge) *self, u64 since)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (received(self) < since + LONG_BEGUN)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static bool go_to(FIXTURE_DATA(bridge) *self, struct stage *s, enum state state)
{
	u64 since = received(self);

	return scene_goes(s->scene, s->pid) &&
	       (state != SENDING || some_has_come(self, since)) &&
	       scene_waits(s->scene, s->pid);
}

/* ---- and there ---- */

static bool is_left(enum strike what, int side)
{
	return what != (side == SERVER ? SERVER_IS_KILLED : CLIENT_IS_KILLED);
}

static enum end end_by(enum strike what)
{
	if (what == BRIDGE_IS_KILLED)
		return BRIDGE;
	return what == BRIDGE_STOPS ? HOST : PROCESS;
}

/* It has had its effect on both hosts. */
static bool strike(FIXTURE_DATA(bridge) *self, struct stage *s, enum strike what)
{
	int side = what == CLIENT_IS_KILLED ? CLIENT : SERVER;

	switch (what) {
	case SERVER_IS_KILLED:
	case CLIENT_IS_KILLED:
		kill(s->pid[side], SIGKILL);
		return ht_reap(s->pid[side]) == 128 + SIGKILL;
	case BRIDGE_IS_KILLED:
		return end(self, SERVER, SIGKILL) == 128 + SIGKILL &&
		       wait_state(&self->host[CLIENT], false);
	case BRIDGE_STOPS:
		kill(self->host[SERVER].bridge, SIGSTOP);
		if (!wait_state(&self->host[CLIENT], false))
			return false;
		return !kill(self->host[SERVER].bridge, SIGCONT);
	default:
		return true;
	}
}

static void happen(struct __test_metadata *_metadata, FIXTURE_DATA(bridge) *self,
		   struct stage *s, enum state so_far, enum strike what)
{
	int i;

	ASSERT_TRUE(begin(self, s, so_far));
	ASSERT_TRUE(go_to(self, s, so_far));
	ASSERT_TRUE(strike(self, s, what));
	if (is_left(what, CLIENT))
		kill(s->pid[CLIENT], SIGCONT);
	for (i = 0; i < SIDES; i++)
		if (is_left(what, i))
			party_may(s->scene, i, STRUCK);
	for (i = 0; i < SIDES; i++)
		if (is_left(what, i))
			EXPECT_TRUE(party_is_told(s->scene, i, end_by(what)));
	if (what == BRIDGE_IS_KILLED)
		start(self, SERVER, PATIENT_MS);
	ASSERT_TRUE(wait_up(self));
	for (i = 0; i < SIDES; i++) {
		if (is_left(what, i)) {
			/* While it lives what it had opened is left of it, and then nothing. */
			EXPECT_TRUE(comes_to(self, i, &s->open[i], &s->open[i]));
			party_may(s->scene, i, ENDED);
			EXPECT_EQ(ht_reap(s->pid[i]), 0);
		}
		EXPECT_TRUE(comes_to(self, i, &s->nothing[i], &s->open[i]));
	}
}

/* In each state, and then others meet by the same name. */
static void happens(struct __test_metadata *_metadata, FIXTURE_DATA(bridge) *self,
		    enum strike what)
{
	struct stage s = { .scene = scene_make() };
	size_t i;

	ASSERT_NE(s.scene, NULL);
	for (i = 0; i < SIDES; i++)
		s.nothing[i] = look(self, (int)i);
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		TH_LOG("state %d", states[i]);
		happen(_metadata, self, &s, states[i], what);
		happen(_metadata, self, &s, TALKING, NOTHING);
	}
}

TEST_F(bridge, a_server_is_killed)
{
	happens(_metadata, self, SERVER_IS_KILLED);
}

TEST_F(bridge, a_client_is_killed)
{
	happens(_metadata, self, CLIENT_IS_KILLED);
}

TEST_F(bridge, a_bridge_is_killed)
{
	happens(_metadata, self, BRIDGE_IS_KILLED);
}

TEST_F(bridge, a_bridge_stops_and_goes_on)
{
	happens(_metadata, self, BRIDGE_STOPS);
}

TEST_HARNESS_MAIN
