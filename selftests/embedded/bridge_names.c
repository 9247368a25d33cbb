// SPDX-License-Identifier: GPL-2.0-only
/*
 * HOST/NAME over a bridge: processes of two hosts meet by a name, or are told why not; and what
 * processes and hosts that call may not keep from others.
 */
#include "bridge_hosts.h"

#include <poll.h>
#include <stddef.h>
#include <sys/un.h>

#include <hamlyn/channel.h>

#define NOBODY		65534
#define OF_A_USER	64	/* calls that wait at a name */
#define OF_A_PROCESS	256	/* names and calls */

static int manager_of(const char *device, struct h_manager **m)
{
	struct h_dev *dev;

	return h_open(device, &dev) ?: h_manager_create(dev, NULL, m);
}

/* Connects, asks once, and is told what it asked. Return: 0, or why not, as an exit status. */
static int ask(const char *device, const char *path)
{
	struct h_channel *channel;
	struct h_manager *m;
	struct h_message reply;
	int err = manager_of(device, &m);

	if (!err)
		err = h_channel_connect(m, path, NULL, &channel, ht_patience_ns());
	if (!err)
		err = h_channel_request(channel, "hello", 6, &reply, ht_patience_ns());
	if (!err && (reply.length != 6 || memcmp(reply.data, "hello", 6)))
		err = -EBADMSG;
	return -err;
}

/* Connects and is told why not. */
static int refusal(const char *device, const char *path)
{
	struct h_channel *channel;
	struct h_manager *m;
	int err = manager_of(device, &m);

	return err ? err : h_channel_connect(m, path, NULL, &channel, ht_patience_ns());
}

static int listen_at(const struct host *h, const char *path, struct h_listener **l)
{
	const struct h_listener_attr attr = { .dev = h->dev };

	return h_listener_create(path, &attr, l);
}

/* One client, from its connection to the end of it. */
static int serve(struct host *h, struct h_listener *l, struct h_peer *peer)
{
	struct h_channel *channel;
	struct h_message message;
	struct h_manager *m;
	int err = h_manager_create(h->dev, NULL, &m);

	if (!err)
		err = h_channel_accept(l, m, NULL, &channel, ht_patience_ns());
	if (err)
		return err;
	h_channel_peer(channel, peer);
	err = h_channel_receive(channel, &message, ht_patience_ns());
	if (!err)
		err = h_channel_reply(channel, &message, message.data, message.length,
				      ht_patience_ns());
	while (!err)
		err = h_channel_receive(channel, &message, ht_patience_ns());
	h_channel_close(channel, H_NOWAIT);
	h_manager_destroy(m);
	return err == -ETIMEDOUT ? err : 0;
}

static void meet(struct __test_metadata *_metadata, FIXTURE_DATA(bridge) *self, int client,
		 struct h_peer *peer)
{
	struct h_listener *l;
	pid_t pid;

	ASSERT_EQ(listen_at(&self->host[1], "2/the.name", &l), 0);
	pid = ht_fork();
	if (!pid)
		_exit(ask(self->name[client], "2/the.name"));
	EXPECT_EQ(serve(&self->host[1], l, peer), 0);
	EXPECT_EQ(ht_reap(pid), 0);
	h_listener_destroy(l);
}

/* Who it is, says the other host: nobody that this one knows. */
TEST_F(bridge, a_channel_meets_by_host_and_name)
{
	struct h_peer peer;

	meet(_metadata, self, 0, &peer);
	EXPECT_EQ(peer.host, 1u);
	EXPECT_EQ(peer.user, geteuid());
	EXPECT_EQ(peer.uid, (uid_t)NOBODY);
	EXPECT_EQ(peer.pid, 0);
	/* The name can be had again. */
	meet(_metadata, self, 0, &peer);
}

TEST_F(bridge, a_client_of_the_same_host_meets_too)
{
	struct h_peer peer;

	meet(_metadata, self, 1, &peer);
	EXPECT_EQ(peer.uid, geteuid());
	EXPECT_EQ(peer.host, HAMLYN_NONE);
}

TEST_F(bridge, users_are_the_same_if_that_was_said)
{
	struct h_peer peer;

	EXPECT_EQ(end(self, 1, SIGTERM), 0);
	self->same_users = true;
	start(self, 1, 1000);
	ASSERT_TRUE(wait_up(self));
	meet(_metadata, self, 0, &peer);
	EXPECT_EQ(peer.uid, geteuid());
	EXPECT_EQ(peer.host, 1u);
}

TEST_F(bridge, a_list_of_users_admits_nobody_of_another_host)
{
	const uid_t uids[] = { geteuid() };
	struct h_listener_attr attr = { .dev = self->host[1].dev, .uids = uids, .uid_count = 1 };
	struct h_channel *channel;
	struct h_listener *l;
	struct h_manager *m;
	pid_t pid;

	ASSERT_EQ(h_manager_create(self->host[1].dev, NULL, &m), 0);
	ASSERT_EQ(h_listener_create("2/name", &attr, &l), 0);
	pid = ht_fork();
	if (!pid)
		_exit(-refusal(self->name[0], "2/name"));
	EXPECT_EQ(h_channel_accept(l, m, NULL, &channel, 3000 * HT_MS), -ETIMEDOUT);
	EXPECT_EQ(ht_reap(pid), EACCES);
	h_listener_destroy(l);
	h_manager_destroy(m);
}

TEST_F(bridge, each_error_of_a_client_is_its_own)
{
	const char *device = self->name[0];

	EXPECT_EQ(refusal(device, "3/name"), -EHOSTUNREACH);
	EXPECT_EQ(refusal(device, "99999999999999999999999/name"), -EHOSTUNREACH);
	EXPECT_EQ(refusal(device, "2/name"), -ENOENT);
	EXPECT_EQ(refusal(device, "1/name"), -ENOENT);
	EXPECT_EQ(refusal(device, "2/na me"), -EINVAL);
	EXPECT_EQ(end(self, 1, SIGTERM), 0);
	ASSERT_TRUE(wait_state(&self->host[0], false));
	EXPECT_EQ(refusal(device, "2/name"), -EHOSTDOWN);
	EXPECT_EQ(refusal(self->name[1], "2/name"), -EHOSTDOWN);
	EXPECT_EQ(end(self, 0, SIGKILL), 128 + SIGKILL);
	EXPECT_EQ(refusal(device, "1/name"), -EHOSTDOWN);
}

TEST_F(bridge, each_error_of_a_server_is_its_own)
{
	struct h_listener *l, *other;

	EXPECT_EQ(listen_at(&self->host[0], "2/name", &l), -EADDRNOTAVAIL);
	ASSERT_EQ(listen_at(&self->host[0], "1/name", &l), 0);
	EXPECT_EQ(listen_at(&self->host[0], "1/name", &other), -EADDRINUSE);
	h_listener_destroy(l);
	EXPECT_EQ(end(self, 0, SIGTERM), 0);
	EXPECT_EQ(listen_at(&self->host[0], "1/name", &l), -EHOSTDOWN);
}

/* ---- ends ---- */

/* In a process of its own: waits for an answer that never comes. */
static pid_t wait_for_nobody(FIXTURE_DATA(bridge) *self, struct h_listener *l)
{
	struct pollfd p = { .fd = h_listener_fd(l), .events = POLLIN };
	pid_t pid = ht_fork();

	if (!pid)
		_exit(-refusal(self->name[0], "2/name"));
	return poll(&p, 1, (int)(ht_patience_ns() / HT_MS)) == 1 ? pid : -1;
}

TEST_F(bridge, a_server_that_ends_tells_those_who_wait)
{
	struct h_listener *l;
	pid_t pid;

	ASSERT_EQ(listen_at(&self->host[1], "2/name", &l), 0);
	pid = wait_for_nobody(self, l);
	ASSERT_GT(pid, 0);
	h_listener_destroy(l);
	EXPECT_EQ(ht_reap(pid), ECONNRESET);
}

TEST_F(bridge, a_bridge_that_is_killed_tells_those_who_wait)
{
	struct h_channel *channel;
	struct h_listener *l;
	struct h_manager *m;
	int i, err;
	pid_t pid;

	ASSERT_EQ(h_manager_create(self->host[1].dev, NULL, &m), 0);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(listen_at(&self->host[1], "2/name", &l), 0);
		pid = wait_for_nobody(self, l);
		ASSERT_GT(pid, 0);
		EXPECT_EQ(end(self, i, SIGKILL), 128 + SIGKILL);
		EXPECT_EQ(ht_reap(pid), ECONNRESET);
		/* What a bridge has to do for a peer that went is done when it answers again. */
		if (!i) {
			ASSERT_TRUE(wait_state(&self->host[1], false));
			pid = ht_fork();
			if (!pid)
				_exit(-refusal(self->name[1], "1/name"));
			EXPECT_EQ(ht_reap(pid), EHOSTDOWN);
		}
		/* So is the server of its own one, and not of the other host's. */
		err = h_channel_accept(l, m, NULL, &channel, 500 * HT_MS);
		EXPECT_EQ(err, i ? -ECONNRESET : -ETIMEDOUT);
		h_listener_destroy(l);
		start(self, i, 1000);
		ASSERT_TRUE(wait_up(self));
	}
	h_manager_destroy(m);
}

/* ---- who takes more than its share ---- */

/* What a child of a fork, which has no segment, needs to know of it. */
struct door {
	u32 host, pid, door;
};

static struct door door_of(const struct host *h)
{
	const struct shm_segment *seg = seg_of(h);

	return (struct door) { seg->host, seg->bridge.pid, seg->bridge.door };
}

static int knock(struct door d, u32 what, const char *name)
{
	struct shm_ask ask = { .what = what, .host = d.host, .name_length = (u32)strlen(name) };
	const struct timeval patience = { .tv_sec = 20 * ht_scale() };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, H_DOOR_NAME, d.pid, d.door);
	if (connect(fd, (void *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
		return -1;
	memcpy(ask.name, name, strlen(name));
	return send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) == sizeof(ask) ? fd : -2;
}

/* What the bridge says: 0 or an errno; -1: it closes, or says nothing. */
static int heard(int fd)
{
	struct hamlyn_caller c;
	ssize_t n = recv(fd, &c, sizeof(c), 0);

	return n == sizeof(c) ? c.error : -1;
}

/* More than may wait of a user, one after the other. */
TEST_F(bridge, a_caller_that_gives_up_is_forgotten)
{
	struct door near = door_of(&self->host[0]), far = door_of(&self->host[1]);
	int name = knock(far, H_DOOR_LISTEN, "name"), fd, i;

	ASSERT_EQ(heard(name), 0);
	near.host = 2;
	for (i = 0; i < 2 * OF_A_USER; i++) {
		fd = knock(near, H_DOOR_CALL, "name");
		ASSERT_GE(fd, 0);
		ASSERT_EQ(heard(name), 0);
		close(fd);
	}
	close(name);
}

TEST_F(bridge, a_process_has_so_many)
{
	struct door d = door_of(&self->host[0]);
	char name[16];
	int i, fd;
	pid_t pid;

	for (i = 0; i < OF_A_PROCESS; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		fd = knock(d, H_DOOR_LISTEN, name);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(heard(fd), 0);
	}
	fd = knock(d, H_DOOR_LISTEN, "more");
	ASSERT_GE(fd, 0);
	EXPECT_EQ(heard(fd), EDQUOT);
	/* Another one has its own. */
	pid = ht_fork();
	if (!pid) {
		fd = knock(d, H_DOOR_LISTEN, "more");
		_exit(fd < 0 || heard(fd));
	}
	EXPECT_EQ(ht_reap(pid), 0);
}

TEST_F(bridge, another_user_of_the_machine_has_no_names)
{
	struct door d = door_of(&self->host[0]);
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs to be root, to be somebody else");
	pid = ht_fork();
	if (!pid) {
		int fd;

		if (setgid(40000) || setuid(40000))
			_exit(2);
		fd = knock(d, H_DOOR_LISTEN, "name");
		_exit(fd >= 0 && heard(fd) != -1);
	}
	EXPECT_EQ(ht_reap(pid), 0);
}

/* What has come from the bridge, and was not looked at. */
struct said {
	u32 have;
	u8 bytes[4096];
};

/* As host 1, by a frame for each; the answers that are there. Return: how many of them are FULL. */
static int call_often(int fd, struct said *s, struct hml_wire_tx *tx, u32 first, u32 count,
		      u32 user)
{
	struct hml_wire_call c = { .user = user, .name = "name", .name_length = 4 };
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct hml_wire_answer a;
	struct hml_wire_frame f;
	u32 n, pong = 0;
	int full = 0;

	for (n = 0; n < count; n++) {
		c.id = first + n;
		if (ht_write_all(fd, frame, hml_wire_pack_call(tx, frame, &c)))
			return -1;
	}
	/* PONG comes after all that was to be answered before, or ahead of some: twice. */
	while (pong < 2) {
		ssize_t got;

		if (ht_write_all(fd, frame, hml_wire_pack_ping(tx, frame, 1)))
			return -1;
		n = 0;
		do {
			got = recv(fd, s->bytes + s->have, sizeof(s->bytes) - s->have, 0);
			if (got <= 0)
				return -2;
			s->have += (u32)got;
			while (!hml_wire_parse(s->bytes, s->have, SHM_PACKET_SIZE, &f) &&
			       s->have >= f.total) {
				const u8 *body = s->bytes + HML_WIRE_FRAME_BYTES;

				if (f.type == HML_WIRE_ANSWER &&
				    !hml_wire_unpack_answer(body, &f, &a))
					full += a.status == HML_WIRE_FULL;
				n += f.type == HML_WIRE_PONG;
				s->have -= f.total;
				memmove(s->bytes, s->bytes + f.total, s->have);
			}
		} while (!n);
		pong += n;
	}
	return full;
}

TEST_F(bridge, a_flood_of_one_user_shuts_out_nobody_else)
{
	struct h_listener *l;
	struct said said = { 0 };
	struct hml_wire_tx tx;
	int fd, local, i;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(listen_at(&self->host[1], "2/name", &l), 0);
	EXPECT_EQ(call_often(fd, &said, &tx, 0, OF_A_USER + 20, 1), 20);
	EXPECT_EQ(call_often(fd, &said, &tx, 1000, 1, 2), 0);
	/* However many it invents, half of the places are left. */
	for (i = 0; i < 300; i++)
		ASSERT_GE(call_often(fd, &said, &tx, 2000 + i, 1, 100 + i), 0);
	local = knock(door_of(&self->host[1]), H_DOOR_CALL, "name");
	ASSERT_GE(local, 0);
	EXPECT_EQ(recv(local, &i, sizeof(i), MSG_DONTWAIT), -1);
	ht_sleep_ns(100 * HT_MS);
	EXPECT_EQ(recv(local, &i, sizeof(i), MSG_DONTWAIT), -1);
	h_listener_destroy(l);
	EXPECT_EQ(heard(local), ECONNRESET);
	close(fd);
}

TEST_F(bridge, two_calls_by_one_number_end_the_connection)
{
	struct said said = { 0 };
	struct h_listener *l;
	struct hml_wire_tx tx;
	int fd;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(listen_at(&self->host[1], "2/name", &l), 0);
	EXPECT_EQ(call_often(fd, &said, &tx, 7, 1, 1), 0);
	EXPECT_LT(call_often(fd, &said, &tx, 7, 1, 1), 0);
	EXPECT_TRUE(wait_state(&self->host[1], false));
	close(fd);
	h_listener_destroy(l);
}

/* It has greeted without them: nothing is sent that it would not understand. */
TEST_F(bridge, a_host_that_knows_no_names_is_none_to_call)
{
	struct hml_wire_tx tx;
	int fd = impersonate(self, &tx);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(refusal(self->name[1], "1/name"), -EPROTONOSUPPORT);
	close(fd);
}

TEST_HARNESS_MAIN
