// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host whose every frame may be anything: right ones of all types, with numbers that mean
 * something here, in any order and as many as HAMLYN_TEST_FRAMES says; now and then one has bytes
 * changed, or is cut short, and the connection begins anew. What it writes stays where it may, and
 * afterwards all is as it was. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "calls.h"
#include "far_host.h"
#include "hostile.h"

#include <signal.h>

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000
#define NAMES_FEATURE	1
#define FRAMES		20000
#define BATCH		64		/* frames that are written together */
#define ROOM		(BATCH * 2048)
#define WRONG		300		/* one of so many has bytes changed */
#define REFUSED		200		/* connections in a row */
#define SENDERS		5		/* of the host that lies; and users */
#define GUESSER		4		/* one of them */
#define NAME		"a.name"

enum { HELLO = 1, DATA, PING, PONG, WATCH, UNWATCH, GONE, BYE, CALL, ANSWER, CANCEL, UNKNOWN };

FIXTURE(hostile_frames) {
	struct hosts h;
	struct ht_pair pair;	/* from host 1 to host 2 */
	uint8_t *bytes;
	uint32_t packet, epoch, sequence, landed;
	uint64_t random;
	int name, dev;		/* of host 2 */
	int fd;			/* host 1's connection, or -1 */
	bool there;
};

static struct host *liar(FIXTURE_DATA(hostile_frames) *self)
{
	return &self->h.host[0];
}

static struct host *victim(FIXTURE_DATA(hostile_frames) *self)
{
	return &self->h.host[1];
}

FIXTURE_SETUP(hostile_frames)
{
	struct ht_pair_attr attr = { .length = 0 };

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	signal(SIGPIPE, SIG_IGN);
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	self->fd = -1;
	self->random = ht_seed();
	ASSERT_EQ(0, hosts_begin(&self->h));
	nic_use_tx(liar(self)->nic);
	nic_use(victim(self)->nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->dev = raw_open(victim(self));
	ASSERT_GE(self->dev, 0);
	self->name = raw_listen(self->dev, NAME);
	ASSERT_GE(self->name, 0);
	self->packet = self->pair.query.packet_size;
	self->bytes = malloc(ROOM + self->packet);
	ASSERT_NE(NULL, self->bytes);
	ASSERT_EQ(0, host_del_peer(&self->h, liar(self), victim(self)));
	self->there = true;
}

FIXTURE_TEARDOWN(hostile_frames)
{
	if (!self->there)
		return;
	if (self->fd >= 0)
		close(self->fd);
	close(self->name);
	close(self->dev);
	free(self->bytes);
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, hosts_end(&self->h));
}

static uint64_t any(FIXTURE_DATA(hostile_frames) *self)
{
	return ht_random(&self->random);
}

/* Small numbers, great ones, and those between */
static uint64_t number(FIXTURE_DATA(hostile_frames) *self)
{
	return any(self) >> any(self) % 64;
}

/* 0, which lets a packet in, or else any */
static uint32_t seldom(FIXTURE_DATA(hostile_frames) *self)
{
	return any(self) % 4 ? 0 : (uint32_t)number(self);
}

/* One sender guesses, for those that do are not heard any more. */
static uint32_t slot(FIXTURE_DATA(hostile_frames) *self, uint32_t sender)
{
	return sender == GUESSER ? (uint32_t)number(self) : self->pair.ticket.slot;
}

static uint64_t key(FIXTURE_DATA(hostile_frames) *self, uint32_t sender)
{
	return sender == GUESSER ? any(self) : self->pair.ticket.key;
}

/* Most are inside of the message area, and many at its end. */
static uint64_t offset(FIXTURE_DATA(hostile_frames) *self)
{
	switch (any(self) % 8) {
	case 0:
		return number(self);
	case 1:
		return self->pair.length - any(self) % 256;
	case 2:
		return UINT64_MAX - any(self) % 4096;
	default:
		return any(self) % self->pair.length;
	}
}

/* ---- frames ---- */

static uint8_t *put_header(FIXTURE_DATA(hostile_frames) *self, uint8_t *p, uint8_t type)
{
	p = far_put(p, 1, 1);
	p = far_put(p, type, 1);
	p = far_put(p, 0, 2);
	p = far_put(p, 0, 4);
	p = far_put(p, self->epoch, 4);
	return far_put(p, self->sequence++, 4);
}

/* Of the frame at @from the body ends at @body; so many bytes of payload are behind it. */
static uint8_t *end_frame(uint8_t *from, uint8_t *body, uint32_t payload)
{
	far_put(from + 2, (uint64_t)(body - from) - FAR_HEADER, 2);
	far_put(from + 4, payload, 4);
	return body + payload;
}

static uint8_t *put_data(FIXTURE_DATA(hostile_frames) *self, uint8_t *from)
{
	uint8_t *p = put_header(self, from, DATA);
	uint32_t meta = any(self) % 4 ? 0 : (uint32_t)(any(self) % 61);
	uint32_t payload = (uint32_t)(any(self) % (any(self) % 16 ? 200 : 1400));
	uint32_t flags = any(self) % 2 ? HAMLYN_PACKET_SINGLE :
					 (uint32_t)any(self) & HAMLYN_PACKET_FLAGS;

	uint32_t sender = (uint32_t)(any(self) % SENDERS);

	if (flags & HAMLYN_PACKET_FAST)
		payload = 0;
	p = far_put(p, flags, 2);
	p = far_put(p, meta, 2);
	p = far_put(p, slot(self, sender), 4);
	p = far_put(p, seldom(self), 4);	/* metadata entry */
	p = far_put(p, seldom(self), 4);	/* delta */
	p = far_put(p, key(self, sender), 8);
	p = far_put(p, offset(self), 8);
	p = far_put(p, sender, 4);
	p = far_put(p, sender, 4);
	if (flags & HAMLYN_PACKET_TICKET)
		p = far_put(p, any(self), 8);
	if (flags & HAMLYN_PACKET_FAST)
		p = far_put(p, any(self), 8);
	memset(p, 'm', meta);
	memset(p + meta, 'p', payload);
	return end_frame(from, p + meta, payload);
}

static uint8_t *put_watch(FIXTURE_DATA(hostile_frames) *self, uint8_t *from)
{
	uint32_t user = (uint32_t)(any(self) % SENDERS);
	uint8_t *p = put_header(self, from, WATCH);

	p = far_put(p, any(self) % 5000, 4);
	p = far_put(p, any(self) % 4 ? 0 : any(self) % 4, 4);
	p = far_put(p, slot(self, user), 4);
	p = far_put(p, number(self) & 0xff, 4);
	p = far_put(p, key(self, user), 8);
	p = far_put(p, user, 4);
	return end_frame(from, far_put(p, 0, 4), 0);
}

static uint8_t *put_call(FIXTURE_DATA(hostile_frames) *self, uint8_t *from)
{
	const char *name = any(self) % 4 ? NAME : "no.name";
	uint32_t said = (uint32_t)(any(self) % 257);
	uint8_t *p = put_header(self, from, CALL);

	p = far_put(p, any(self) % 2000, 4);
	p = far_put(p, any(self) % 5, 4);
	p = far_put(p, strlen(name), 2);
	p = far_put(p, 0, 2);
	p = far_put(p, any(self) % 5, 8);
	memcpy(p, name, strlen(name));
	p += strlen(name);
	memset(p, 's', said);
	return end_frame(from, p + said, 0);
}

static uint8_t *put_answer(FIXTURE_DATA(hostile_frames) *self, uint8_t *from)
{
	uint32_t status = (uint32_t)(any(self) % 4);
	uint32_t said = status ? 0 : (uint32_t)(any(self) % 257);
	uint8_t *p = put_header(self, from, ANSWER);

	p = far_put(p, any(self) % 2000, 4);
	p = far_put(p, status, 4);
	p = far_put(p, status ? 0 : any(self) % 5, 4);
	memset(p, 's', said);
	return end_frame(from, p + said, 0);
}

/* Of 8 bytes: an id, and why; or a stamp */
static uint8_t *put_short(FIXTURE_DATA(hostile_frames) *self, uint8_t *from, uint8_t type)
{
	uint8_t *p = put_header(self, from, type);

	p = far_put(p, any(self) % 5000, 4);
	return end_frame(from, far_put(p, type == GONE ? any(self) % 2 : 0, 4), 0);
}

static uint8_t *put_frame(FIXTURE_DATA(hostile_frames) *self, uint8_t *from)
{
	static const uint8_t some[] = { PING, PONG, UNWATCH, GONE, CANCEL, CANCEL };

	switch (any(self) % 8) {
	case 0:
		return put_watch(self, from);
	case 1:
		return put_call(self, from);
	case 2:
		return put_answer(self, from);
	case 3:
		return put_short(self, from, some[any(self) % sizeof(some)]);
	default:
		return put_data(self, from);
	}
}

/* Bytes of it changed, perhaps to another type, or its end cut off. Return: its end */
static uint8_t *spoil(FIXTURE_DATA(hostile_frames) *self, uint8_t *from, uint8_t *end)
{
	uint32_t n = 1 + (uint32_t)(any(self) % 4);
	uint64_t how = any(self) % 8;

	if (!how)
		return end - any(self) % (uint64_t)(end - from);
	if (how == 1)
		from[1] = (uint8_t)(any(self) % (UNKNOWN + 1));
	while (how > 1 && n--)
		from[any(self) % (uint64_t)(end - from)] ^= (uint8_t)any(self);
	return end;
}

/* ---- connections ---- */

static void hang_up(FIXTURE_DATA(hostile_frames) *self)
{
	if (self->fd >= 0)
		close(self->fd);
	self->fd = -1;
}

/* Host 2 lets in who begins anew and anew every 50 ms. */
static int connect_once(FIXTURE_DATA(hostile_frames) *self)
{
	struct timeval patience = { .tv_sec = ht_patience_ns() / HT_SEC };
	uint8_t hello[FAR_HEADER + 48];

	/* One that only root may use, and another one than the last, which TCP may keep */
	self->fd = far_connect(liar(self)->address, (uint16_t)(600 + ++self->epoch % 400),
			       victim(self));
	if (self->fd < 0)
		return self->fd;
	setsockopt(self->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	self->sequence = 1;
	return far_greet_in(self->fd, &self->h, liar(self), self->packet, NAMES_FEATURE,
			    self->epoch) ?:
	       ht_read_all(self->fd, hello, sizeof(hello));
}

static int connect_again(FIXTURE_DATA(hostile_frames) *self)
{
	int ret, i;

	for (i = 0; i < REFUSED; i++) {
		ret = connect_once(self);
		if (!ret)
			return 0;
		hang_up(self);
		usleep(20000);
	}
	return ret;
}

/* What host 2 says, or it would have to wait for us. Return: is it still there? */
static bool discard(FIXTURE_DATA(hostile_frames) *self)
{
	uint8_t said[65536];
	ssize_t n;

	do {
		n = recv(self->fd, said, sizeof(said), MSG_DONTWAIT);
	} while (n > 0);
	return n < 0 && errno == EAGAIN;
}

static void discard_entries(FIXTURE_DATA(hostile_frames) *self)
{
	struct hamlyn_nq_entry e;
	uint8_t call[512];

	while (h_recv(self->pair.nq, &e) == 1)
		self->landed++;
	while (read(self->name, call, sizeof(call)) > 0 && any(self) % 4)
		;
}

/* Return: how many it was, or a negative errno if the victim lets nobody in any more */
static int say_some(FIXTURE_DATA(hostile_frames) *self)
{
	uint8_t *p = self->bytes, *from;
	bool wrong = false;
	int n;

	if (self->fd < 0) {
		n = connect_again(self);
		if (n)
			return n;
	}
	for (n = 0; n < BATCH && !wrong && p < self->bytes + ROOM - 2048; n++) {
		from = p;
		p = put_frame(self, from);
		wrong = any(self) % WRONG == 0;
		if (wrong)
			p = spoil(self, from, p);
	}
	if (ht_write_all(self->fd, self->bytes, (size_t)(p - self->bytes)) || wrong)
		hang_up(self);
	else if (!discard(self))
		hang_up(self);
	return n;
}

static uint32_t frames_wanted(void)
{
	const char *text = getenv("HAMLYN_TEST_FRAMES");

	return text ? (uint32_t)strtoul(text, NULL, 10) : FRAMES;
}

/* A message of 100 bytes, once its sender is not held back any more. Return: what is wrong */
static const char *honest_passes(FIXTURE_DATA(hostile_frames) *self)
{
	static char why[64];
	const struct h_msg msg = {
		.ticket = &self->pair.ticket, .data = self->pair.send, .length = 100,
	};
	struct hamlyn_nq_entry e;
	struct ht_poll poll;
	int64_t sent;

	discard_entries(self);
	ht_poll_begin(&poll);
	do {
		sent = ht_send(self->pair.terminus, &msg);
		if (sent < 0) {
			snprintf(why, sizeof(why), "cannot be sent: %s", strerror((int)-sent));
			return why;
		}
		usleep(100000);
		if (h_recv(self->pair.nq, &e) == 1)
			return e.length == 100 ? NULL : "another message comes";
	} while (ht_poll_more(&poll));
	return "nothing comes";
}

TEST_F_TIMEOUT(hostile_frames, all_is_as_it_was_behind_them, 3600)
{
	uint32_t said = 0, wanted = frames_wanted();
	const char *passed;
	int n;

	if (!self->there)
		SKIP(return, NEED_ROOT);
	while (said < wanted) {
		n = say_some(self);
		ASSERT_GT(n, 0) TH_LOG("after %u frames, seed %ju", said, (uintmax_t)ht_seed());
		said += (uint32_t)n;
		discard_entries(self);
		ASSERT_TRUE(ht_pair_guarded(&self->pair)) {
			TH_LOG("after %u frames, seed %ju", said, (uintmax_t)ht_seed());
		}
	}
	hang_up(self);
	TH_LOG("%u frames, %u messages landed, %u connections", said, self->landed, self->epoch);
	/* Else all of it was refused for the same reason, and nothing was tried. */
	EXPECT_GT(self->landed, said / 50);
	ASSERT_EQ(0, host_add_peer(&self->h, liar(self), victim(self)));
	ASSERT_EQ(0, host_await(&self->h, victim(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(0, host_await(&self->h, liar(self), HAMLYN_NL_PEER_STATE_UP));
	passed = honest_passes(self);
	EXPECT_EQ(NULL, passed) TH_LOG("%s, seed %ju", passed, (uintmax_t)ht_seed());
	EXPECT_TRUE(ht_pair_guarded(&self->pair));
}

TEST_HARNESS_MAIN
