// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two processes on two hosts meet by a name, and in each state of that one of them is killed, or
 * their hosts lose each other: the one that is left is told what the headers say, and nothing is
 * left on either host. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "calls.h"
#include "deaths.h"

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000	/* for a guest that gets no processor */
#define DEAD_MS		2000	/* times the scale, where a cable is pulled */

enum strike {
	SERVER_IS_KILLED,
	CLIENT_IS_KILLED,
	PEER_IS_DELETED,
	CABLE_IS_PULLED,
	NOTHING,
};

/* ---- figures ---- */

enum kind {
	OF_PROCESS = 1,	/* what it has made itself */
	OF_MEMORY = 2,	/* what its manager keeps for what comes next */
	OF_PEER = 4,	/* what the other process may have to do with */
	ALL = 7,
};

static const struct {
	const char *what;
	uint16_t attr;
	enum kind kind;
} told[] = {
	{ "contexts", HAMLYN_A_CONTEXTS, OF_PROCESS },
	{ "areas", HAMLYN_A_AREAS, OF_MEMORY },
	{ "slots", HAMLYN_A_SLOTS, OF_PROCESS },
	{ "NQs", HAMLYN_A_NQS, OF_PROCESS },
	{ "termini", HAMLYN_A_TERMINI, OF_PROCESS },
	{ "watches", HAMLYN_A_WATCHES, OF_PROCESS },
	{ "kernel bytes", HAMLYN_A_KERNEL_BYTES, OF_MEMORY },
	{ "wired bytes", HAMLYN_A_WIRED_BYTES, OF_MEMORY },
	{ "watches there", HAMLYN_A_PEER_WATCHES, OF_PEER },
	{ "watches from there", HAMLYN_A_PEER_WATCHED, OF_PEER },
	{ "calls", HAMLYN_A_PEER_CALLS, OF_PEER },
	{ "calls from there", HAMLYN_A_PEER_CALLED, OF_PEER },
};

#define FIGURES		ARRAY_SIZE(told)

struct use {
	int64_t of[FIGURES];
	int names;
};

FIXTURE(deaths) {
	struct hosts h;
	struct scene *scene;
	struct use nothing[SIDES];	/* before anybody comes */
	struct use open[SIDES];		/* with a device, a manager, and the server's name */
	pid_t pid[SIDES];
	bool there;
};

FIXTURE_VARIANT(deaths) {
	enum strike strike;
};

FIXTURE_VARIANT_ADD(deaths, server_is_killed) { .strike = SERVER_IS_KILLED };
FIXTURE_VARIANT_ADD(deaths, client_is_killed) { .strike = CLIENT_IS_KILLED };
FIXTURE_VARIANT_ADD(deaths, peer_is_deleted) { .strike = PEER_IS_DELETED };
FIXTURE_VARIANT_ADD(deaths, cable_is_pulled) { .strike = CABLE_IS_PULLED };

static struct host *host_of(FIXTURE_DATA(deaths) *self, int side)
{
	return &self->h.host[side];
}

static struct use look(FIXTURE_DATA(deaths) *self, int side)
{
	const struct host *host = host_of(self, side);
	struct use u;
	size_t i;

	genl_begin(&self->h.g, HAMLYN_NL_CMD_NAME_GET);
	genl_put_u32(&self->h.g, HAMLYN_A_NIC, host->nic);
	u.names = genl_count(&self->h.g);
	for (i = 0; i < FIGURES; i++) {
		if (told[i].kind == OF_PEER)
			u.of[i] = host_peer(&self->h, host, told[i].attr);
		else if (nic_get(&self->h.g, host->nic))
			u.of[i] = -1;
		else
			u.of[i] = (int64_t)genl_number(genl_attr(&self->h.g, told[i].attr));
	}
	return u;
}

static void tell_difference(int side, const struct use *is, const struct use *want)
{
	size_t i;

	for (i = 0; i < FIGURES; i++)
		if (is->of[i] != want->of[i])
			printf("# host %d: %s: %jd instead of %jd\n", side + 1, told[i].what,
			       (intmax_t)is->of[i], (intmax_t)want->of[i]);
	if (is->names != want->names)
		printf("# host %d: names: %d instead of %d\n", side + 1, is->names, want->names);
}

static bool same(const struct use *a, const struct use *b, int kinds)
{
	size_t i;

	for (i = 0; i < FIGURES; i++)
		if (a->of[i] != b->of[i] && kinds & told[i].kind)
			return false;
	return a->names == b->names;
}

/* A process that is killed takes a while to go, and the other host is told by a packet. */
static bool comes_to(FIXTURE_DATA(deaths) *self, int side, const struct use *want, int kinds)
{
	struct ht_poll poll;
	struct use is;

	ht_poll_begin(&poll);
	do {
		is = look(self, side);
		if (same(&is, want, kinds))
			return true;
	} while (ht_poll_more(&poll));
	tell_difference(side, &is, want);
	return false;
}

FIXTURE_SETUP(deaths)
{
	uint32_t ms = variant->strike == CABLE_IS_PULLED ? DEAD_MS * (uint32_t)ht_scale() :
							   PATIENT_MS;
	int i;

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = ms;
	self->h.stall_ms = ms;
	ASSERT_EQ(0, hosts_begin(&self->h));
	self->scene = scene_make();
	ASSERT_NE(NULL, self->scene);
	for (i = 0; i < SIDES; i++)
		self->nothing[i] = look(self, i);
	self->there = true;
}

FIXTURE_TEARDOWN(deaths)
{
	if (!self->there)
		return;
	munmap(self->scene, sizeof(*self->scene));
	EXPECT_EQ(0, hosts_end(&self->h));
}

/* ---- a server that does without the library ---- */

static int take_name(struct party *p)
{
	int dev = open(p->device, O_RDWR | O_CLOEXEC);

	p->name = raw_listen(dev, DEATHS_NAME);
	return p->name < 0 ? p->name : 0;
}

static int hear(struct party *p)
{
	struct raw raw;

	if (raw_read(p->name, &raw) < 0)
		return -EBADMSG;
	p->number = raw.from.number;
	return 0;
}

static int answer(struct party *p)
{
	return raw_answer(p->name, p->number);
}

/* ---- to a state, and what happens there ---- */

static void start(FIXTURE_DATA(deaths) *self, int side)
{
	char path[32];
	struct party p = {
		.scene = self->scene, .side = side, .device = path,
		.take_name = take_name, .hear = hear, .answer = answer,
	};

	path_of(host_of(self, side), path);
	self->pid[side] = ht_fork();
	if (!self->pid[side])
		be_party(&p);
}

static bool begin(FIXTURE_DATA(deaths) *self, enum state state)
{
	int i;

	memset(self->scene, 0, sizeof(*self->scene));
	self->scene->state = state;
	for (i = SIDES - 1; i >= 0; i--) {
		start(self, i);
		if (!party_is_at(self->scene, i, OPEN))
			return false;
		self->open[i] = look(self, i);
	}
	return true;
}

static bool some_has_left(FIXTURE_DATA(deaths) *self, int64_t since)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (host_peer(&self->h, host_of(self, CLIENT), HAMLYN_A_PEER_SENT_BYTES) <
	       since + LONG_BEGUN)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static bool go_to(FIXTURE_DATA(deaths) *self, enum state state)
{
	int64_t sent = host_peer(&self->h, host_of(self, CLIENT), HAMLYN_A_PEER_SENT_BYTES);

	return scene_goes(self->scene, self->pid) &&
	       (state != SENDING || some_has_left(self, sent)) &&
	       scene_waits(self->scene, self->pid);
}

static bool lost_each_other(FIXTURE_DATA(deaths) *self)
{
	struct ht_poll poll;
	int i;

	ht_poll_begin(&poll);
	for (i = 0; i < SIDES; i++)
		while (host_peer(&self->h, host_of(self, i), HAMLYN_A_PEER_STATE) ==
		       HAMLYN_NL_PEER_STATE_UP)
			if (!ht_poll_more(&poll))
				return false;
	return true;
}

static int end(FIXTURE_DATA(deaths) *self, int side)
{
	kill(self->pid[side], SIGKILL);
	return ht_reap(self->pid[side]) == 128 + SIGKILL &&
	       comes_to(self, side, &self->nothing[side], OF_PROCESS | OF_MEMORY) ? 0 :
	       -ETIMEDOUT;
}

/* 0 once it has had its effect on hosts and NICs. */
static int strike(FIXTURE_DATA(deaths) *self, enum strike what)
{
	int ret = 0;

	switch (what) {
	case SERVER_IS_KILLED:
		ret = end(self, SERVER);
		break;
	case CLIENT_IS_KILLED:
		ret = end(self, CLIENT);
		break;
	case PEER_IS_DELETED:
		ret = host_del_peer(&self->h, host_of(self, SERVER), host_of(self, CLIENT));
		break;
	case CABLE_IS_PULLED:
		ret = hosts_loopback(false);
		break;
	case NOTHING:
		break;
	}
	if (!ret && (what == PEER_IS_DELETED || what == CABLE_IS_PULLED))
		ret = lost_each_other(self) ? 0 : -ETIMEDOUT;
	return ret;
}

/* They are up, by a new connection. */
static int mend(FIXTURE_DATA(deaths) *self, enum strike what)
{
	struct host *far = host_of(self, SERVER), *near = host_of(self, CLIENT);
	int ret = 0;

	if (what == PEER_IS_DELETED)
		ret = host_add_peer(&self->h, far, near);
	if (what == CABLE_IS_PULLED)
		ret = hosts_loopback(true);
	return ret ?: host_await(&self->h, far, HAMLYN_NL_PEER_STATE_UP) ?:
	       host_await(&self->h, near, HAMLYN_NL_PEER_STATE_UP);
}

/* ---- who is left ---- */

static bool is_left(enum strike what, int side)
{
	return what != (side == SERVER ? SERVER_IS_KILLED : CLIENT_IS_KILLED);
}

static enum end end_by(enum strike what)
{
	return what == SERVER_IS_KILLED || what == CLIENT_IS_KILLED ? PROCESS : HOST;
}

/* Whose call is still waiting is forgotten before the server looks. */
static bool no_call_is_left(FIXTURE_DATA(deaths) *self)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do {
		genl_begin(&self->h.g, HAMLYN_NL_CMD_NAME_GET);
		genl_put_u32(&self->h.g, HAMLYN_A_NIC, host_of(self, SERVER)->nic);
		if (genl_count(&self->h.g) != 1)
			return false;
		if (!genl_number(genl_attr(&self->h.g, HAMLYN_A_WAITING)))
			return true;
	} while (ht_poll_more(&poll));
	return false;
}

static void happen(struct __test_metadata *_metadata, FIXTURE_DATA(deaths) *self,
		   enum state state, enum strike what)
{
	int i;

	ASSERT_TRUE(begin(self, state));
	ASSERT_TRUE(go_to(self, state));
	ASSERT_EQ(0, strike(self, what));
	if (what != SERVER_IS_KILLED && state <= CONNECTING)
		EXPECT_TRUE(no_call_is_left(self));
	if (is_left(what, CLIENT))
		kill(self->pid[CLIENT], SIGCONT);
	for (i = 0; i < SIDES; i++)
		if (is_left(what, i))
			party_may(self->scene, i, STRUCK);
	for (i = 0; i < SIDES; i++)
		if (is_left(what, i))
			EXPECT_TRUE(party_is_told(self->scene, i, end_by(what)));
	ASSERT_EQ(0, mend(self, what));
	/* While it lives only what it has opened is left of it, and then nothing. */
	for (i = 0; i < SIDES; i++)
		if (is_left(what, i)) {
			EXPECT_TRUE(comes_to(self, i, &self->open[i], OF_PROCESS | OF_PEER));
			party_may(self->scene, i, ENDED);
			EXPECT_EQ(0, ht_reap(self->pid[i]));
		}
	for (i = 0; i < SIDES; i++)
		EXPECT_TRUE(comes_to(self, i, &self->nothing[i], ALL));
}

/* And others meet by the same name, on the same hosts. */
static void happens(struct __test_metadata *_metadata, FIXTURE_DATA(deaths) *self,
		    enum state state, enum strike what)
{
	if (!self->there)
		SKIP(return, NEED_ROOT);
	happen(_metadata, self, state, what);
	happen(_metadata, self, TALKING, NOTHING);
}

TEST_F(deaths, while_nobody_has_called)
{
	happens(_metadata, self, LISTENING, variant->strike);
}

TEST_F(deaths, while_the_call_waits)
{
	happens(_metadata, self, CONNECTING, variant->strike);
}

TEST_F(deaths, when_the_call_was_read)
{
	happens(_metadata, self, HEARD, variant->strike);
}

TEST_F(deaths, when_the_answer_was_not_read)
{
	happens(_metadata, self, ANSWERED, variant->strike);
}

TEST_F(deaths, before_the_first_message)
{
	happens(_metadata, self, QUIET, variant->strike);
}

TEST_F(deaths, in_the_middle_of_a_message)
{
	happens(_metadata, self, SENDING, variant->strike);
}

TEST_F(deaths, while_one_closes)
{
	happens(_metadata, self, CLOSING, variant->strike);
}

TEST_HARNESS_MAIN
