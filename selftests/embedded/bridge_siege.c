// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bridge whose peer knows everything that a peer has to know, and says it too often, too slowly,
 * again, or without having been asked; and a bridge that is stopped. Honest hosts are served
 * meanwhile, and wait for nothing without an end.
 */
#include "bridge_hosts.h"

#include <hamlyn/channel.h>

#define DRIP_MS		20
#define FLOOD		20000u
#define CONNECTIONS	60
#define LEAST_APART_MS	50	/* connections of a peer that a bridge lets in */
#define MOST_RSS_KIB	65536	/* that a peer may make a bridge grow by */

/* ---- what is heard ---- */

struct heard {
	u32 have;
	u8 bytes[8192];
};

/* The next frame: its type, 0 at the end of the connection; @f and @body tell what it says. */
static u32 hear(int fd, struct heard *h, struct hml_wire_frame *f, u8 *body)
{
	for (;;) {
		ssize_t n;

		if (!hml_wire_parse(h->bytes, h->have, SHM_PACKET_SIZE, f) &&
		    h->have >= f->total) {
			memcpy(body, h->bytes + HML_WIRE_FRAME_BYTES,
			       f->total - HML_WIRE_FRAME_BYTES);
			h->have -= f->total;
			memmove(h->bytes, h->bytes + f->total, h->have);
			return f->type;
		}
		n = recv(fd, h->bytes + h->have, sizeof(h->bytes) - h->have, 0);
		if (n <= 0)
			return 0;
		h->have += (u32)n;
	}
}

/* All that was said before has been looked at, and the connection is there. */
static bool in_step(int fd, struct hml_wire_tx *tx)
{
	u8 frame[HML_WIRE_MOST_CONTROL], body[8192];
	struct heard h = { 0 };
	struct hml_wire_frame f;
	u32 type;

	if (ht_write_all(fd, frame, hml_wire_pack_ping(tx, frame, 1)))
		return false;
	do
		type = hear(fd, &h, &f, body);
	while (type && type != HML_WIRE_PONG);
	return type;
}

/* Its memory, in KiB. */
static long rss_of(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

/* Host 1 is honest again, and served. */
static bool goes_on(FIXTURE_DATA(bridge) *self)
{
	start(self, 0, 1000);
	return wait_up(self) && round_trip(&self->host[0], &self->host[1]);
}

/* ---- the beginning of a connection ---- */

/* A HELLO that comes a byte at a time is one, and nobody else waits for the rest of it. */
TEST_F(bridge, a_hello_in_drips)
{
	struct hml_wire_hello h = hello_of(3);
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct hml_wire_tx tx = { 0 };
	int fd = call(self);
	u32 i, n;

	ASSERT_GE(fd, 0);
	hml_wire_tx_begin(&tx);
	n = hml_wire_pack_hello(&tx, frame, &h);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(ht_write_all(fd, frame + i, 1), 0);
		ht_sleep_ns(DRIP_MS * HT_MS);
		if (i % 16 == 0)
			ASSERT_TRUE(round_trip(&self->host[0], &self->host[1]));
	}
	/* There is no host 3. */
	EXPECT_EQ(verdict_of(fd), HML_WIRE_OTHER_HOST);
	close(fd);
	EXPECT_EQ(seg_of(&self->host[1])->bridge.peer[0].connections, 1u);
}

/* What was heard of a connection, said again by somebody else: it ends nothing. */
TEST_F(bridge, an_old_connection_is_not_said_again)
{
	struct hml_wire_hello h = hello_of(1);
	struct hml_wire_tx tx = { 0 }, old;
	int fd, again;

	EXPECT_EQ(end(self, 0, SIGKILL), 128 + SIGKILL);
	ASSERT_TRUE(wait_state(&self->host[1], false));
	fd = say_hello(self, &h, &tx);
	ASSERT_GE(fd, 0);
	ASSERT_TRUE(wait_state(&self->host[1], true));
	ASSERT_TRUE(in_step(fd, &tx));
	/* The same epoch, and an earlier one */
	old = (struct hml_wire_tx) { .epoch = tx.epoch - 1 };
	again = say_hello(self, &h, &old);
	EXPECT_EQ(verdict_of(again), HML_WIRE_OLD_EPOCH);
	close(again);
	old = (struct hml_wire_tx) { .epoch = tx.epoch - 2 };
	again = say_hello(self, &h, &old);
	EXPECT_EQ(verdict_of(again), HML_WIRE_OLD_EPOCH);
	close(again);
	EXPECT_TRUE(in_step(fd, &tx));
	close(fd);
	EXPECT_TRUE(goes_on(self));
}

/* ---- too often ---- */

/* By the right key, more than there may be. Those of this host's own processes find room. */
TEST_F_TIMEOUT(bridge, a_flood_of_right_watches_leaves_room, 300)
{
	struct host *b = &self->host[1];
	struct hml_wire_watch w = { .slot = b->ticket.slot, .key = b->ticket.key };
	long before = rss_of(b->bridge);
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct h_watch *watch;
	struct hml_wire_tx tx;
	int fd, i;

	signal(SIGPIPE, SIG_IGN);
	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	for (w.id = 0; w.id < 12000; w.id++)
		ASSERT_EQ(ht_write_all(fd, frame, hml_wire_pack_watch(&tx, frame, &w)), 0);
	ASSERT_TRUE(in_step(fd, &tx));
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(h_watch(b->dev, &b->ticket, b->nq, 1, &watch), 0);
	while (w.id < 400000 &&
	       !ht_write_all(fd, frame, hml_wire_pack_watch(&tx, frame, &w)))
		w.id++;
	/* Its BYE may be lost with what was not read here. */
	EXPECT_TRUE(wait_state(b, false));
	close(fd);
	EXPECT_LT(rss_of(b->bridge) - before, MOST_RSS_KIB);
	EXPECT_TRUE(goes_on(self));
}

/* Calls to a name that nobody has, whose answers nobody reads. */
TEST_F(bridge, answers_that_nobody_reads_end_the_connection)
{
	struct hml_wire_call c = { .user = 1, .name = "nobody", .name_length = 6 };
	struct host *b = &self->host[1];
	long before = rss_of(b->bridge);
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct hml_wire_tx tx;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	fd = impersonate_with(self, &tx, 0, 1);
	ASSERT_GE(fd, 0);
	for (c.id = 0; shm_peer_up(state_of(b)) && c.id < 4000000; c.id++)
		if (ht_write_all(fd, frame, hml_wire_pack_call(&tx, frame, &c)))
			break;
	EXPECT_TRUE(wait_state(b, false));
	close(fd);
	EXPECT_LT(rss_of(b->bridge) - before, MOST_RSS_KIB);
	EXPECT_TRUE(goes_on(self));
}

/* Each PING notes the same bit. */
TEST_F(bridge, pings_without_end_are_a_bit)
{
	struct host *b = &self->host[1];
	long before = rss_of(b->bridge);
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct hml_wire_tx tx;
	int fd, i;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	for (i = 0; i < (int)FLOOD * 5; i++)
		ASSERT_EQ(ht_write_all(fd, frame, hml_wire_pack_ping(&tx, frame, 1)), 0);
	EXPECT_TRUE(in_step(fd, &tx));
	EXPECT_LT(rss_of(b->bridge) - before, MOST_RSS_KIB);
	close(fd);
	EXPECT_TRUE(goes_on(self));
}

/* So many that they are not told apart: those of them that do not guess are heard. */
TEST_F(bridge, invented_senders_are_heard_while_they_do_not_guess)
{
	struct host *b = &self->host[1];
	struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION, .flags = HAMLYN_PACKET_SINGLE,
		.slot = b->ticket.slot, .key = b->ticket.key,
	};
	struct hml_wire_origin origin = { 0 };
	long before = rss_of(b->bridge);
	u8 frame[HML_WIRE_MOST_HEADER];
	struct hamlyn_nq_entry e;
	struct hml_wire_tx tx;
	int fd;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	for (origin.sender = 0; origin.sender < FLOOD; origin.sender++) {
		ASSERT_EQ(ht_write_all(fd, frame, hml_wire_pack_data(&tx, frame, &h, NULL,
								     &origin)), 0);
		if (origin.sender % 64 == 63)
			ASSERT_TRUE(in_step(fd, &tx));
		while (h_recv(b->nq, &e) == 1)
			EXPECT_EQ(e.source, 1u);
	}
	EXPECT_LT(rss_of(b->bridge) - before, MOST_RSS_KIB);
	EXPECT_EQ(READ_ONCE(seg_of(b)->bridge.peer[0].dropped), 0u);
	close(fd);
	EXPECT_TRUE(goes_on(self));
}

/* It begins anew as soon as it is let in: that is no oftener than somebody honest would be. */
TEST_F(bridge, who_connects_without_end_is_let_in_now_and_then)
{
	struct host *b = &self->host[1];
	struct hml_wire_hello h = hello_of(1);
	u64 before, connections;
	int64_t begin;
	int i;

	EXPECT_EQ(end(self, 0, SIGKILL), 128 + SIGKILL);
	ASSERT_TRUE(wait_state(b, false));
	before = READ_ONCE(seg_of(b)->bridge.peer[0].connections);
	begin = ht_now_ns();
	for (i = 0; i < CONNECTIONS; i++) {
		struct hml_wire_tx tx = { 0 };
		char byte;
		int fd;

		h.incarnation += 2;
		fd = say_hello(self, &h, &tx);
		ASSERT_GE(fd, 0);
		/* It is greeted once it is let in. */
		EXPECT_EQ(recv(fd, &byte, 1, 0), 1);
		close(fd);
	}
	connections = READ_ONCE(seg_of(b)->bridge.peer[0].connections) - before;
	EXPECT_LE(connections, 1 + (u64)(ht_now_ns() - begin) / (LEAST_APART_MS * HT_MS)) {
		TH_LOG("%ju connections in %jd ms", (uintmax_t)connections,
		       (intmax_t)((ht_now_ns() - begin) / HT_MS));
	}
	EXPECT_TRUE(goes_on(self));
}

/* ---- what was not asked for ---- */

TEST_F(bridge, what_was_never_asked_for_does_nothing)
{
	struct host *b = &self->host[1];
	struct hml_wire_answer a = { .status = HML_WIRE_NO_NAME };
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct hamlyn_nq_entry e;
	struct h_ticket there = b->ticket;
	struct hml_wire_tx tx;
	u64 random = ht_seed();
	struct h_watch *w;
	int fd, i;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	there.host = 1;
	ASSERT_EQ(h_watch(b->dev, &there, b->nq, 7, &w), 0);
	for (i = 0; i < (int)FLOOD; i++) {
		/* Of a watch that there is the number is told it by WATCH, which is not read. */
		u32 id = (u32)ht_random(&random) | 1u << 31, n;

		a.id = id;
		n = i % 4 == 0 ? hml_wire_pack_answer(&tx, frame, &a) :
		    i % 4 == 1 ? hml_wire_pack_cancel(&tx, frame, id) :
		    i % 4 == 2 ? hml_wire_pack_unwatch(&tx, frame, id) :
				 hml_wire_pack_gone(&tx, frame, id, HML_WIRE_WATCH_GONE);
		ASSERT_EQ(ht_write_all(fd, frame, n), 0);
	}
	EXPECT_TRUE(in_step(fd, &tx));
	EXPECT_EQ(h_recv(b->nq, &e), 0);
	/* Its end is told, once. */
	close(fd);
	EXPECT_TRUE(told_once(b, 7));
	EXPECT_TRUE(goes_on(self));
	EXPECT_EQ(h_recv(b->nq, &e), 0);
}

/* ---- a rendezvous ---- */

/* Waits for CALL as host 1. Return: its id, or -1 */
static int64_t hear_call(int fd, struct heard *h)
{
	struct hml_wire_frame f;
	struct hml_wire_call c;
	u8 body[8192];
	u32 type;

	do
		type = hear(fd, h, &f, body);
	while (type && type != HML_WIRE_CALL);
	return type && !hml_wire_unpack_call(body, &f, &c) ? (int64_t)c.id : -1;
}

/* Host 2 connects to a name of ours. Return: the process, whose exit status is why not */
static pid_t connect_to(FIXTURE_DATA(bridge) *self, const char *path, int64_t ns)
{
	struct h_channel *channel;
	struct h_manager *m;
	struct h_dev *dev;
	pid_t pid = ht_fork();
	int err;

	if (pid)
		return pid;
	err = h_open(self->name[1], &dev) ?: h_manager_create(dev, NULL, &m);
	_exit(-(err ?: h_channel_connect(m, path, NULL, &channel, ns)));
}

/* It is not answered; answered late, and by nonsense; lost while it waits; and not there. */
TEST_F(bridge, who_calls_is_never_left_waiting)
{
	u8 frame[HML_WIRE_MOST_CONTROL], said[256] = { 0 };
	struct hml_wire_answer a = { .status = HML_WIRE_ANSWERED };
	struct heard h = { 0 };
	struct hml_wire_tx tx;
	int64_t id;
	pid_t pid;
	u32 i;
	int fd;

	fd = impersonate_with(self, &tx, HML_WIRE_FEATURES, 0);
	ASSERT_GE(fd, 0);
	/* Long enough that it has called before that. */
	pid = connect_to(self, "1/name", 1000 * HT_MS * ht_scale());
	id = hear_call(fd, &h);
	ASSERT_GE(id, 0);
	EXPECT_EQ(ht_reap(pid), ETIMEDOUT);
	/* Late, and for the next one nonsense of all lengths */
	a.id = (u32)id;
	ASSERT_EQ(ht_write_all(fd, frame, hml_wire_pack_answer(&tx, frame, &a)), 0);
	for (i = 0; i <= 256; i += 32) {
		pid = connect_to(self, "1/name", ht_patience_ns());
		id = hear_call(fd, &h);
		ASSERT_GE(id, 0);
		ht_fill(said, sizeof(said), i);
		a.id = (u32)id;
		a.body = said;
		a.length = i;
		ASSERT_EQ(ht_write_all(fd, frame, hml_wire_pack_answer(&tx, frame, &a)), 0);
		/* A second one is nobody's. */
		ASSERT_EQ(ht_write_all(fd, frame, hml_wire_pack_answer(&tx, frame, &a)), 0);
		EXPECT_EQ(ht_reap(pid), EPROTO);
	}
	pid = connect_to(self, "1/name", ht_patience_ns());
	ASSERT_GE(hear_call(fd, &h), 0);
	close(fd);
	EXPECT_EQ(ht_reap(pid), ECONNRESET);
	/* Nobody is there to call. */
	pid = connect_to(self, "1/name", ht_patience_ns());
	EXPECT_EQ(ht_reap(pid), EHOSTDOWN);
	EXPECT_TRUE(goes_on(self));
}

/* ---- stopped ---- */

/* Shorter than dead-ms nobody is told; longer, everybody is, once; then it goes on. */
TEST_F(bridge, a_bridge_that_was_stopped_goes_on)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct hamlyn_nq_entry e;
	struct h_watch *w;
	pid_t pid;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(h_watch(a->dev, &b->ticket, a->nq, 3, &w), 0);
		ASSERT_TRUE(round_trip(a, b));
		kill(self->host[i].bridge, SIGSTOP);
		/* Who calls meanwhile has a time-out. */
		pid = connect_to(self, i ? "2/name" : "1/name", 500 * HT_MS);
		EXPECT_NE(ht_reap(pid), 0);
		/* The other one finds out. */
		EXPECT_TRUE(wait_state(&self->host[!i], false));
		kill(self->host[i].bridge, SIGCONT);
		EXPECT_TRUE(told_once(a, 3));
		ASSERT_TRUE(wait_state(a, true));
		ASSERT_TRUE(wait_state(b, true));
		EXPECT_TRUE(round_trip(a, b));
		EXPECT_EQ(h_recv(a->nq, &e), 0);
		ASSERT_EQ(h_unwatch(w), 0);
	}
}

TEST_HARNESS_MAIN
