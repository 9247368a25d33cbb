// SPDX-License-Identifier: GPL-2.0-only
/*
 * HOST/NAME: processes of two hosts meet by a name, or are told why not; and what users and
 * hosts that call may not keep from others. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "calls.h"
#include "far_host.h"

#include <hamlyn/channel.h>

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000	/* for a guest that gets no processor */
#define QUIET_MS	200	/* in which nothing must come */
#define SOMEBODY	4242
#define OTHER		4343
#define NOBODY		65534
#define NAMES		256	/* of a user */
#define CALLS		256	/* of a user, whatever has become of them */
#define OF_USER		64	/* that wait at a name */
#define OF_HOST		256

/* Host 1 calls, host 2 is called. */
FIXTURE(names) {
	struct hosts h;
	struct h_dev *near, *far;
	struct h_manager *caller, *server;
	bool there;
};

static int open_manager(const struct host *host, struct h_dev **dev, struct h_manager **m)
{
	char path[32];

	path_of(host, path);
	return h_open(path, dev) ?: h_manager_create(*dev, NULL, m);
}

FIXTURE_SETUP(names)
{
	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	ASSERT_EQ(0, hosts_begin(&self->h));
	ASSERT_EQ(0, open_manager(&self->h.host[0], &self->near, &self->caller));
	ASSERT_EQ(0, open_manager(&self->h.host[1], &self->far, &self->server));
	self->there = true;
}

FIXTURE_TEARDOWN(names)
{
	if (!self->there)
		return;
	h_manager_destroy(self->caller);
	h_manager_destroy(self->server);
	h_close(self->near);
	h_close(self->far);
	EXPECT_EQ(0, hosts_end(&self->h));
}

#define NEED_HOSTS() do { if (!self->there) SKIP(return, NEED_ROOT); } while (0)

static struct host *near(FIXTURE_DATA(names) *self)
{
	return &self->h.host[0];
}

static struct host *far(FIXTURE_DATA(names) *self)
{
	return &self->h.host[1];
}

static int listen_at(FIXTURE_DATA(names) *self, const char *path, struct h_listener **l)
{
	const struct h_listener_attr attr = { .dev = self->far };

	return h_listener_create(path, &attr, l);
}

/* ---- a client in a thread of its own: whoever connects waits for who accepts ---- */

struct client {
	pthread_t thread;
	struct h_manager *manager;
	const char *path;
	struct h_channel_attr attr;
	struct h_channel *channel;
	struct h_stream_pair pair;
	bool streams;
	int err;
};

static void *connect_client(void *arg)
{
	struct client *c = arg;
	struct h_connect_attr attr = { .flags = c->attr.flags };

	c->err = c->streams ? h_connect(c->manager, c->path, &attr, &c->pair, ht_patience_ns()) :
		 h_channel_connect(c->manager, c->path, &c->attr, &c->channel, ht_patience_ns());
	return NULL;
}

static int start(struct client *c)
{
	return pthread_create(&c->thread, NULL, connect_client, c);
}

static int finish(struct client *c)
{
	pthread_join(c->thread, NULL);
	return c->err;
}

static int accept_channel(FIXTURE_DATA(names) *self, struct h_listener *l, struct h_channel **ch)
{
	return h_channel_accept(l, self->server, NULL, ch, ht_patience_ns());
}

static bool carries(struct h_channel *from, struct h_channel *to)
{
	struct h_message m;
	bool same;

	if (h_channel_send(from, "said", 5, ht_patience_ns()) ||
	    h_channel_receive(to, &m, ht_patience_ns()))
		return false;
	same = m.length == 5 && !memcmp(m.data, "said", 5);
	h_channel_release(to, &m);
	return same;
}

/* Two meet at @path of host 2, and talk. */
static bool they_meet(FIXTURE_DATA(names) *self, struct h_listener *l, struct h_manager *caller,
		      const char *path)
{
	struct client c = { .manager = caller, .path = path };
	struct h_channel *server = NULL;
	bool good;

	if (start(&c))
		return false;
	good = !accept_channel(self, l, &server);
	good = !finish(&c) && good && carries(c.channel, server) && carries(server, c.channel);
	if (c.err)
		printf("# connect: %s\n", strerror(-c.err));
	h_channel_close(c.channel, 0);
	h_channel_close(server, 0);
	return good;
}

/* ---- meeting ---- */

TEST_F(names, a_channel_meets_by_host_and_name)
{
	struct client c = { .manager = self->caller, .path = "2/the.name" };
	struct h_channel *server;
	struct h_peer peer;
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/the.name", &l));
	ASSERT_EQ(0, start(&c));
	ASSERT_EQ(0, accept_channel(self, l, &server));
	ASSERT_EQ(0, finish(&c));
	EXPECT_TRUE(carries(c.channel, server));
	EXPECT_TRUE(carries(server, c.channel));
	/* Who it is, says the other host: nobody that this one knows. */
	ASSERT_EQ(0, h_channel_peer(server, &peer));
	EXPECT_EQ(1, peer.host);
	EXPECT_EQ(0, peer.user);
	EXPECT_EQ(NOBODY, peer.uid);
	EXPECT_EQ(NOBODY, peer.gid);
	EXPECT_EQ(0, peer.pid);
	ASSERT_EQ(0, h_channel_peer(c.channel, &peer));
	EXPECT_EQ(2, peer.host);
	EXPECT_EQ(0, peer.user);
	EXPECT_EQ(NOBODY, peer.uid);
	h_channel_close(c.channel, 0);
	h_channel_close(server, 0);
	h_listener_destroy(l);
}

TEST_F(names, streams_meet_by_host_and_name)
{
	struct client c = { .manager = self->caller, .path = "2/streams", .streams = true };
	struct h_stream_pair server;
	struct h_record record;
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/streams", &l));
	ASSERT_EQ(0, start(&c));
	ASSERT_EQ(0, h_listener_accept(l, self->server, NULL, &server, ht_patience_ns()));
	ASSERT_EQ(0, finish(&c));
	EXPECT_EQ(1, server.peer.host);
	EXPECT_EQ(2, c.pair.peer.host);
	EXPECT_EQ(4, h_stream_send(c.pair.sender, "said", 4, ht_patience_ns()));
	EXPECT_EQ(0, h_stream_flush(c.pair.sender, ht_patience_ns()));
	ASSERT_EQ(0, h_stream_receive(server.receiver, &record, ht_patience_ns()));
	EXPECT_EQ(4, record.length);
	EXPECT_EQ(0, memcmp(record.data, "said", 4));
	h_listener_destroy(l);
}

/* A program that was written for two hosts also runs on one. */
TEST_F(names, a_client_of_the_same_host_meets_too)
{
	struct client c = { .manager = self->server, .path = "2/here" };
	struct h_channel *server;
	struct h_peer peer;
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/here", &l));
	ASSERT_EQ(0, start(&c));
	ASSERT_EQ(0, accept_channel(self, l, &server));
	ASSERT_EQ(0, finish(&c));
	ASSERT_EQ(0, h_channel_peer(server, &peer));
	EXPECT_EQ(HAMLYN_NONE, peer.host);
	EXPECT_EQ(0, peer.uid);
	h_channel_close(c.channel, 0);
	h_channel_close(server, 0);
	h_listener_destroy(l);
}

TEST_F(names, a_client_waits_for_a_server)
{
	struct client c = { .manager = self->caller, .path = "2/later",
			    .attr.flags = H_CONNECT_WAIT };
	struct h_channel *server;
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, start(&c));
	usleep(QUIET_MS * 1000);
	ASSERT_EQ(0, listen_at(self, "2/later", &l));
	ASSERT_EQ(0, accept_channel(self, l, &server));
	EXPECT_EQ(0, finish(&c));
	h_listener_destroy(l);
}

TEST_F(names, a_hundred_meet_one_after_the_other)
{
	struct h_listener *l;
	int i;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/many", &l));
	for (i = 0; i < 100; i++)
		ASSERT_TRUE(they_meet(self, l, self->caller, "2/many"));
	h_listener_destroy(l);
}

/* ---- errors, each explained ---- */

static int connect_to(FIXTURE_DATA(names) *self, const char *path, uint32_t flags)
{
	const struct h_channel_attr attr = { .flags = flags };
	struct h_channel *ch;
	char text[256] = "";
	int err;

	err = h_channel_connect(self->caller, path, &attr, &ch, ht_patience_ns());
	h_explain(self->near, text, sizeof(text));
	printf("# %s: %s: %s\n", path, strerror(-err), text);
	return text[0] ? err : -ENODATA;
}

static int listen_error(FIXTURE_DATA(names) *self, const char *path,
			const struct h_listener_attr *attr)
{
	struct h_listener_attr at = attr ? *attr : (struct h_listener_attr) {};
	struct h_listener *l;
	char text[256] = "";
	int err;

	at.dev = self->far;
	err = h_listener_create(path, &at, &l);
	h_explain(NULL, text, sizeof(text));
	printf("# %s: %s: %s\n", path, strerror(-err), text);
	return text[0] ? err : -ENODATA;
}

TEST_F(names, each_error_of_a_client_is_its_own)
{
	static const char long_name[] =
		"2/1234567890123456789012345678901234567890123456789012345678901234";

	NEED_HOSTS();
	EXPECT_EQ(-EHOSTUNREACH, connect_to(self, "3/name", 0));
	EXPECT_EQ(-EHOSTUNREACH, connect_to(self, "99999999999999999999999/name", 0));
	EXPECT_EQ(-ENOENT, connect_to(self, "2/name", 0));
	EXPECT_EQ(-ENOENT, connect_to(self, "1/name", 0));
	EXPECT_EQ(-EOPNOTSUPP, connect_to(self, "2/name", H_CONNECT_TICKETS));
	EXPECT_EQ(-EINVAL, connect_to(self, "2/na me", 0));
	EXPECT_EQ(-ENAMETOOLONG, connect_to(self, long_name, 0));
	ASSERT_EQ(0, host_del_peer(&self->h, far(self), near(self)));
	ASSERT_EQ(0, host_await(&self->h, near(self), HAMLYN_NL_PEER_STATE_IDLE));
	EXPECT_EQ(-EHOSTDOWN, connect_to(self, "2/name", 0));
}

/* It has greeted without them: nothing is sent that it would not understand. */
TEST_F(names, a_host_that_knows_no_names_is_none_to_call)
{
	struct hamlyn_query q;
	struct h_channel *ch;
	int64_t epoch;
	int fd;

	NEED_HOSTS();
	ASSERT_EQ(0, h_query(self->far, &q));
	epoch = host_peer(&self->h, far(self), HAMLYN_A_PEER_EPOCH);
	ASSERT_EQ(0, host_del_peer(&self->h, near(self), far(self)));
	fd = far_connect(near(self)->address, 700, far(self));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, far_greet(fd, &self->h, near(self), q.packet_size));
	ASSERT_EQ(0, host_await_after(&self->h, far(self), epoch));
	EXPECT_EQ(-EPROTONOSUPPORT,
		  h_channel_connect(self->server, "1/name", NULL, &ch, ht_patience_ns()));
	EXPECT_TRUE(ht_is_explained(self->far, "knows no names"));
	close(fd);
}

TEST_F(names, each_error_of_a_server_is_its_own)
{
	const struct h_listener_attr tickets = { .flags = H_CONNECT_TICKETS };
	const struct h_listener_attr mode = { .mode = 0600 };
	struct h_listener *l;

	NEED_HOSTS();
	EXPECT_EQ(-EADDRNOTAVAIL, listen_error(self, "1/name", NULL));
	EXPECT_EQ(-EOPNOTSUPP, listen_error(self, "2/name", &tickets));
	EXPECT_EQ(-EINVAL, listen_error(self, "2/name", &mode));
	EXPECT_EQ(-EINVAL, listen_error(self, "2/na\tme", NULL));
	ASSERT_EQ(0, listen_at(self, "2/name", &l));
	EXPECT_EQ(-EADDRINUSE, listen_error(self, "2/name", NULL));
	h_listener_destroy(l);
	ASSERT_EQ(0, listen_at(self, "2/name", &l));
	h_listener_destroy(l);
}

/* What looks like it is a path when that is said. */
TEST_F(names, a_relative_path_of_that_form_can_be_written)
{
	char folder[] = "/tmp/names.XXXXXX";
	struct h_listener *l;

	ASSERT_NE(NULL, mkdtemp(folder));
	ASSERT_EQ(0, chdir(folder));
	ASSERT_EQ(0, mkdir("2", 0700));
	ASSERT_EQ(0, h_listener_create("./2/name", NULL, &l));
	EXPECT_EQ(0, access("2/name", F_OK));
	h_listener_destroy(l);
	ASSERT_EQ(0, chdir("/"));
}

TEST_F(names, the_other_kind_is_sent_away)
{
	struct client c = { .manager = self->caller, .path = "2/kind", .streams = true };
	struct h_channel *server;
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/kind", &l));
	ASSERT_EQ(0, start(&c));
	EXPECT_EQ(-ETIMEDOUT, h_channel_accept(l, self->server, NULL, &server,
					       10 * QUIET_MS * HT_MS));
	EXPECT_EQ(-EPROTOTYPE, finish(&c));
	h_listener_destroy(l);
}

/* A list of this host's users admits none of another host, not even a root. */
TEST_F(names, a_list_of_users_admits_nobody_of_another_host)
{
	const uid_t root[] = { 0 }, nobody[] = { NOBODY };
	struct h_listener_attr attr = { .dev = self->far, .uids = root, .uid_count = 1 };
	struct client c = { .manager = self->caller, .path = "2/root" };
	struct h_channel *server;
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, h_listener_create("2/root", &attr, &l));
	ASSERT_EQ(0, start(&c));
	EXPECT_EQ(-ETIMEDOUT, h_channel_accept(l, self->server, NULL, &server,
					       10 * QUIET_MS * HT_MS));
	EXPECT_EQ(-EACCES, finish(&c));
	h_listener_destroy(l);
	/* Unless whoever is unknown may. */
	attr.uids = nobody;
	ASSERT_EQ(0, h_listener_create("2/nobody", &attr, &l));
	EXPECT_TRUE(they_meet(self, l, self->caller, "2/nobody"));
	h_listener_destroy(l);
}

/* Once an administrator says that users are the same here and there. */
TEST_F(names, a_list_of_users_admits_those_whom_an_administrator_has_vouched_for)
{
	const uid_t root[] = { 0 };
	struct h_listener_attr attr = { .dev = self->far, .uids = root, .uid_count = 1 };
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, host_del_peer(&self->h, far(self), near(self)));
	self->h.same_users = true;
	ASSERT_EQ(0, host_add_peer(&self->h, far(self), near(self)));
	ASSERT_EQ(0, host_await(&self->h, far(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(0, host_await(&self->h, near(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(HAMLYN_NL_PEER_USERS_SAME,
		  host_peer(&self->h, far(self), HAMLYN_A_PEER_USERS));
	ASSERT_EQ(0, h_listener_create("2/same", &attr, &l));
	EXPECT_TRUE(they_meet(self, l, self->caller, "2/same"));
	h_listener_destroy(l);
}

/* @other is a peer of @own anew, with what @self->h says of its users. */
static int add_again(FIXTURE_DATA(names) *self, const struct host *own, const struct host *other)
{
	return host_del_peer(&self->h, own, other) ?: host_add_peer(&self->h, own, other) ?:
	       host_await(&self->h, own, HAMLYN_NL_PEER_STATE_UP) ?:
	       host_await(&self->h, other, HAMLYN_NL_PEER_STATE_UP);
}

TEST_F(names, a_map_says_whom_a_list_of_users_admits)
{
	static const uint32_t map[][3] = { { 0, SOMEBODY, 1 } };
	const uid_t root[] = { 0 }, mapped[] = { SOMEBODY };
	struct h_listener_attr attr = { .dev = self->far, .uids = mapped, .uid_count = 1 };
	struct client c = { .manager = self->caller, .path = "2/map" };
	struct h_channel *server;
	struct h_listener *l;

	NEED_HOSTS();
	self->h.user_map = map;
	self->h.user_ranges = 1;
	ASSERT_EQ(0, add_again(self, far(self), near(self)));
	ASSERT_EQ(0, h_listener_create("2/map", &attr, &l));
	EXPECT_TRUE(they_meet(self, l, self->caller, "2/map"));
	h_listener_destroy(l);
	/* It is not who it is there. */
	attr.uids = root;
	ASSERT_EQ(0, h_listener_create("2/map", &attr, &l));
	ASSERT_EQ(0, start(&c));
	EXPECT_EQ(-ETIMEDOUT, h_channel_accept(l, self->server, NULL, &server,
					       10 * QUIET_MS * HT_MS));
	EXPECT_EQ(-EACCES, finish(&c));
	h_listener_destroy(l);
}

TEST_F(names, a_map_says_whose_server_a_client_wants)
{
	static const uint32_t map[][3] = { { 0, SOMEBODY, 1 } };
	const uid_t root[] = { 0 }, mapped[] = { SOMEBODY };
	struct client c = { .manager = self->caller, .path = "2/map",
			    .attr = { .uids = mapped, .uid_count = 1 } };
	struct h_channel *server;
	struct h_listener *l;

	NEED_HOSTS();
	self->h.user_map = map;
	self->h.user_ranges = 1;
	ASSERT_EQ(0, add_again(self, near(self), far(self)));
	ASSERT_EQ(0, listen_at(self, "2/map", &l));
	ASSERT_EQ(0, start(&c));
	ASSERT_EQ(0, accept_channel(self, l, &server));
	EXPECT_EQ(0, finish(&c));
	h_channel_close(c.channel, 0);
	h_channel_close(server, 0);
	c.attr.uids = root;
	ASSERT_EQ(0, start(&c));
	ASSERT_EQ(0, accept_channel(self, l, &server));
	EXPECT_EQ(-EPERM, finish(&c));
	h_listener_destroy(l);
}

TEST_F(names, a_client_says_whose_server_it_wants)
{
	const uid_t root[] = { 0 };
	struct client c = { .manager = self->caller, .path = "2/whose",
			    .attr = { .uids = root, .uid_count = 1 } };
	struct h_channel *server;
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/whose", &l));
	ASSERT_EQ(0, start(&c));
	ASSERT_EQ(0, accept_channel(self, l, &server));
	EXPECT_EQ(-EPERM, finish(&c));
	h_listener_destroy(l);
}

/* ---- who goes away ---- */

/* Until each host has been told. */
static bool calls_come_to(FIXTURE_DATA(names) *self, int n)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (host_peer(&self->h, near(self), HAMLYN_A_PEER_CALLS) != n ||
	       host_peer(&self->h, far(self), HAMLYN_A_PEER_CALLED) != n)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

TEST_F(names, a_server_that_ends_tells_those_who_wait)
{
	struct client c[3];
	struct h_listener *l;
	int i;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/ends", &l));
	for (i = 0; i < 3; i++) {
		c[i] = (struct client) { .manager = self->caller, .path = "2/ends" };
		ASSERT_EQ(0, start(&c[i]));
	}
	ASSERT_TRUE(calls_come_to(self, 3));
	h_listener_destroy(l);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-ECONNRESET, finish(&c[i]));
	EXPECT_EQ(-ENOENT, connect_to(self, "2/ends", 0));
}

TEST_F(names, a_host_that_is_lost_is_told_of)
{
	struct client c = { .manager = self->caller, .path = "2/lost" };
	struct h_listener *l;
	struct pollfd p;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/lost", &l));
	ASSERT_EQ(0, start(&c));
	p = (struct pollfd) { .fd = h_listener_fd(l), .events = POLLIN };
	ASSERT_EQ(1, poll(&p, 1, (int)(ht_patience_ns() / HT_MS)));
	ASSERT_EQ(0, host_del_peer(&self->h, far(self), near(self)));
	EXPECT_EQ(-ECONNRESET, finish(&c));
	/* And who called is forgotten. */
	EXPECT_EQ(0, poll(&p, 1, 0));
	h_listener_destroy(l);
}

TEST_F(names, a_caller_that_gives_up_is_forgotten)
{
	struct h_channel *ch;
	struct h_listener *l;
	struct ht_poll poll_;
	struct pollfd p;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/gone", &l));
	EXPECT_EQ(-ETIMEDOUT, h_channel_connect(self->caller, "2/gone", NULL, &ch,
						QUIET_MS * HT_MS));
	p = (struct pollfd) { .fd = h_listener_fd(l), .events = POLLIN };
	ht_poll_begin(&poll_);
	while (poll(&p, 1, 0) == 1 && ht_poll_more(&poll_))
		;
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_TRUE(they_meet(self, l, self->caller, "2/gone"));
	h_listener_destroy(l);
}

static pid_t start_server(FIXTURE_DATA(names) *self, const char *name)
{
	struct h_listener_attr attr = { .flags = 0 };
	struct h_manager *m;
	struct h_listener *l;
	struct h_channel *ch;
	struct h_dev *dev;
	pid_t pid = ht_fork();

	if (pid)
		return pid;
	if (open_manager(far(self), &dev, &m))
		_exit(1);
	attr.dev = dev;
	if (h_listener_create(name, &attr, &l))
		_exit(2);
	for (;;) {
		int err = h_channel_accept(l, m, NULL, &ch, H_FOREVER);

		if (!err)
			h_channel_close(ch, 0);
	}
}

static pid_t start_client(FIXTURE_DATA(names) *self, const char *name)
{
	const struct h_channel_attr attr = { .flags = H_CONNECT_WAIT };
	struct h_manager *m;
	struct h_channel *ch;
	struct h_dev *dev;
	pid_t pid = ht_fork();

	if (pid)
		return pid;
	if (open_manager(near(self), &dev, &m))
		_exit(1);
	for (;;)
		if (!h_channel_connect(m, name, &attr, &ch, H_FOREVER))
			h_channel_close(ch, 0);
}

/* Either side dies at any point, again and again; then others meet by the same name. */
TEST_F(names, either_side_is_killed_at_any_point)
{
	uint64_t random = ht_seed();
	struct h_listener *l;
	pid_t server, client;
	int i;

	NEED_HOSTS();
	for (i = 0; i < 12; i++) {
		server = start_server(self, "2/killed");
		client = start_client(self, "2/killed");
		usleep(20000 + (useconds_t)(ht_random(&random) % 60000));
		kill(i & 1 ? server : client, SIGKILL);
		usleep((useconds_t)(ht_random(&random) % 20000));
		kill(i & 1 ? client : server, SIGKILL);
		waitpid(server, NULL, 0);
		waitpid(client, NULL, 0);
	}
	ASSERT_EQ(0, listen_at(self, "2/killed", &l));
	EXPECT_TRUE(they_meet(self, l, self->caller, "2/killed"));
	h_listener_destroy(l);
}

/* ---- what a user may have, and keep from others ---- */

/* As another user, in a process of its own: the result of @fn. */
static int as_user(uid_t uid, int (*fn)(FIXTURE_DATA(names) *self), FIXTURE_DATA(names) *self)
{
	pid_t pid = ht_fork();

	if (!pid) {
		struct rlimit many = { 4096, 4096 };

		setrlimit(RLIMIT_NOFILE, &many);
		_exit(setgid(uid) || setuid(uid) ? 99 : fn(self));
	}
	return ht_reap(pid);
}

TEST_F(names, a_call_is_answered_once)
{
	int host1, host2, name, call;
	struct raw raw;

	NEED_HOSTS();
	host1 = raw_open(near(self));
	host2 = raw_open(far(self));
	name = raw_listen(host2, "raw");
	ASSERT_LE(0, name);
	EXPECT_EQ(-1, read(name, &raw, sizeof(raw)));
	EXPECT_EQ(EAGAIN, errno);
	call = raw_call(host1, 2, "raw");
	ASSERT_LE(0, call);
	EXPECT_EQ(-1, read(call, &raw, sizeof(raw)));
	EXPECT_EQ(EAGAIN, errno);
	/* By a number that was not told yet, of a call that is there. */
	ASSERT_EQ(1, poll(&(struct pollfd) { .fd = name, .events = POLLIN }, 1,
			  (int)(ht_patience_ns() / HT_MS)));
	EXPECT_EQ(-ECONNRESET, raw_answer(name, 0));
	ASSERT_EQ(sizeof(raw.from) + 4, raw_read(name, &raw));
	EXPECT_EQ(1, raw.from.host);
	EXPECT_EQ(4, raw.from.length);
	EXPECT_EQ(0, memcmp(raw.said, "said", 4));
	EXPECT_EQ(-ECONNRESET, raw_answer(name, raw.from.number + 1));
	EXPECT_EQ(0, raw_answer(name, raw.from.number));
	EXPECT_EQ(-ECONNRESET, raw_answer(name, raw.from.number));
	ASSERT_EQ(sizeof(raw.from) + 8, raw_read(call, &raw));
	EXPECT_EQ(0, raw.from.error);
	EXPECT_EQ(2, raw.from.host);
	EXPECT_EQ(0, memcmp(raw.said, "heard", 6));
	EXPECT_EQ(0, close(call) | close(name) | close(host1) | close(host2));
}

TEST_F(names, administrators_see_how_many_calls_are_under_way)
{
	int host1, host2, name, call[2];
	struct raw raw;

	NEED_HOSTS();
	EXPECT_TRUE(calls_come_to(self, 0));
	host1 = raw_open(near(self));
	host2 = raw_open(far(self));
	name = raw_listen(host2, "raw");
	call[0] = raw_call(host1, 2, "raw");
	call[1] = raw_call(host1, 2, "raw");
	ASSERT_LE(0, name | call[0] | call[1]);
	EXPECT_TRUE(calls_come_to(self, 2));
	EXPECT_EQ(0, host_peer(&self->h, near(self), HAMLYN_A_PEER_CALLED));
	EXPECT_EQ(0, host_peer(&self->h, far(self), HAMLYN_A_PEER_CALLS));
	ASSERT_LT(0, raw_read(name, &raw));
	EXPECT_EQ(0, raw_answer(name, raw.from.number));
	EXPECT_TRUE(calls_come_to(self, 1));
	EXPECT_EQ(0, close(call[0]) | close(call[1]));
	EXPECT_TRUE(calls_come_to(self, 0));
	EXPECT_EQ(0, close(name) | close(host1) | close(host2));
}

/* How many have called is nobody's business but the server's. */
TEST_F(names, an_answer_has_no_number)
{
	int host2, name, call[3], i;
	struct raw raw;

	NEED_HOSTS();
	host2 = raw_open(far(self));
	name = raw_listen(host2, "raw");
	ASSERT_LE(0, name);
	for (i = 0; i < 3; i++) {
		call[i] = raw_call(host2, 2, "raw");
		ASSERT_LE(0, call[i]);
		ASSERT_LT(0, raw_read(name, &raw));
		EXPECT_EQ(i, raw.from.number);
		EXPECT_EQ(0, raw_answer(name, raw.from.number));
		ASSERT_LT(0, raw_read(call[i], &raw));
		EXPECT_EQ(0, raw.from.number);
		EXPECT_EQ(0, close(call[i]));
	}
	EXPECT_EQ(0, close(name) | close(host2));
}

static int listen_with(int dev, uint32_t flags, uint32_t length, const char *name)
{
	struct hamlyn_listen arg = { .size = sizeof(arg), .flags = flags, .name_length = length };

	memcpy(arg.name, name, strlen(name));
	return ioctl(dev, HAMLYN_IOC_LISTEN, &arg) ? -errno : arg.fd;
}

static int call_with(int dev, uint32_t flags, const void *said, uint32_t length)
{
	struct hamlyn_call arg = {
		.size = sizeof(arg), .flags = flags, .host = 2, .name_length = 4,
		.said = (uintptr_t)said, .length = length, .name = "form",
	};

	return ioctl(dev, HAMLYN_IOC_CALL, &arg) ? -errno : arg.fd;
}

TEST_F(names, what_is_malformed_is_refused)
{
	struct hamlyn_answer a = { .flags = 2 };
	static const char said[HAMLYN_MAX_CALL + 1];
	int host1, host2, name;
	struct raw raw;

	NEED_HOSTS();
	host1 = raw_open(near(self));
	host2 = raw_open(far(self));
	EXPECT_EQ(-EINVAL, listen_with(host2, 1, 4, "form"));
	EXPECT_EQ(-EINVAL, listen_with(host2, 0, 0, "form"));
	EXPECT_EQ(-EINVAL, listen_with(host2, 0, HAMLYN_MAX_NAME + 1, "form"));
	EXPECT_EQ(-EINVAL, listen_with(host2, 0, 5, "form"));
	EXPECT_EQ(-EINVAL, listen_with(host2, 0, 4, "fo/m"));
	name = listen_with(host2, 0, 4, "form");
	ASSERT_LE(0, name);
	EXPECT_EQ(-EINVAL, call_with(host1, 1, said, 4));
	EXPECT_EQ(-EINVAL, call_with(host1, 0, said, HAMLYN_MAX_CALL + 1));
	EXPECT_EQ(-EFAULT, call_with(host1, 0, NULL, 4));
	EXPECT_EQ(-1, read(name, &raw, sizeof(raw) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(name, &a, sizeof(a) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(name, &a, sizeof(a)));
	EXPECT_EQ(EINVAL, errno);
	a = (struct hamlyn_answer) { .length = 1 };
	EXPECT_EQ(-1, write(name, &a, sizeof(a)));
	EXPECT_EQ(EINVAL, errno);
	/* The name ends, whoever has its descriptor, and so another can have it. */
	a = (struct hamlyn_answer) { .flags = HAMLYN_ANSWER_END };
	EXPECT_EQ(sizeof(a), write(name, &a, sizeof(a)));
	EXPECT_EQ(0, close(listen_with(host2, 0, 4, "form")));
	EXPECT_EQ(0, close(name) | close(host1) | close(host2));
}

/* What could not be told is undone: the name is free, and no descriptor was left. */
TEST_F(names, a_name_that_could_not_be_told_is_not_taken)
{
	struct hamlyn_listen *arg = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int host2, fd[2];

	NEED_HOSTS();
	ASSERT_NE(MAP_FAILED, arg);
	host2 = raw_open(far(self));
	*arg = (struct hamlyn_listen) { .size = sizeof(*arg), .name_length = 4, .name = "told" };
	fd[0] = dup(0);
	close(fd[0]);
	ASSERT_EQ(0, mprotect(arg, 4096, PROT_READ));
	EXPECT_EQ(-1, ioctl(host2, HAMLYN_IOC_LISTEN, arg));
	EXPECT_EQ(EFAULT, errno);
	fd[1] = dup(0);
	EXPECT_EQ(fd[0], fd[1]);
	EXPECT_EQ(0, close(fd[1]));
	EXPECT_EQ(0, close(listen_with(host2, 0, 4, "told")));
	EXPECT_EQ(0, close(host2) | munmap(arg, 4096));
}

static int take_names(FIXTURE_DATA(names) *self)
{
	int dev = raw_open(far(self)), i, fd;
	char name[16];

	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "name%d", i);
		if (raw_listen(dev, name) < 0)
			return 1;
	}
	fd = raw_listen(dev, "one.more");
	return fd == -EDQUOT ? 0 : 2;
}

TEST_F(names, a_user_has_so_many_names)
{
	NEED_HOSTS();
	EXPECT_EQ(0, as_user(SOMEBODY, take_names, self));
	/* They went with it. */
	EXPECT_EQ(0, as_user(SOMEBODY, take_names, self));
}

/* Also of those that are answered, as long as they are open. */
static int make_calls(FIXTURE_DATA(names) *self)
{
	int dev = raw_open(near(self)), i;

	for (i = 0; i < CALLS; i++)
		if (raw_call(dev, 2, "no.such.name") < 0)
			return 1;
	return raw_call(dev, 2, "no.such.name") == -EDQUOT ? 0 : 2;
}

TEST_F(names, a_user_has_so_many_calls)
{
	NEED_HOSTS();
	EXPECT_EQ(0, as_user(SOMEBODY, make_calls, self));
	EXPECT_EQ(0, as_user(SOMEBODY, make_calls, self));
}

/* Its calls wait, up to its share; what is more is told so. Then others get through. */
static int fill_name(FIXTURE_DATA(names) *self)
{
	int dev = raw_open(near(self)), i, call[OF_USER + 1];
	struct raw raw;

	for (i = 0; i <= OF_USER; i++) {
		call[i] = raw_call(dev, 2, "flooded");
		if (call[i] < 0)
			return 1;
	}
	if (raw_read(call[OF_USER], &raw) < 0 || raw.from.error != EUSERS)
		return 2;
	for (i = 0; i < OF_USER; i++)
		if (read(call[i], &raw, sizeof(raw)) >= 0)
			return 3;
	pause();
	return 0;
}

/* As many as it may, whatever becomes of them. */
static int only_call(FIXTURE_DATA(names) *self)
{
	int dev = raw_open(near(self)), i;

	for (i = 0; i <= OF_USER; i++)
		if (raw_call(dev, 2, "flooded") < 0)
			return 1;
	pause();
	return 0;
}

static pid_t flood_as(FIXTURE_DATA(names) *self, uid_t uid, int (*fn)(FIXTURE_DATA(names) *self))
{
	pid_t pid = ht_fork();

	if (!pid) {
		struct rlimit many = { 4096, 4096 };

		setrlimit(RLIMIT_NOFILE, &many);
		_exit(setgid(uid) || setuid(uid) ? 99 : fn(self));
	}
	return pid;
}

static int call_mapped(FIXTURE_DATA(names) *self)
{
	if (raw_call(raw_open(near(self)), 2, "mapped") < 0)
		return 1;
	pause();
	return 0;
}

/* For whom that host takes a user of this one; -1: nobody hears of it. */
static int64_t taken_for(FIXTURE_DATA(names) *self, int name, uid_t uid)
{
	pid_t pid = flood_as(self, uid, call_mapped);
	bool heard;
	struct raw raw;

	heard = raw_read(name, &raw) == sizeof(raw.from) + 4 && raw.from.user == uid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return heard ? (int64_t)raw.from.uid : -1;
}

/* Each range from its first user to its last one, and nobody before, between or behind. */
TEST_F(names, a_map_takes_those_in_its_ranges_and_nobody_else)
{
	static const uint32_t map[][3] = {
		{ 5000, 100, 10 }, { 0, SOMEBODY, 1 }, { 5010, 7000, 1 }, { 4990, 5000, 5 },
	};
	static const struct {
		uid_t there, here;
	} users[] = {
		{ 0, SOMEBODY }, { 1, NOBODY }, { SOMEBODY, NOBODY },
		{ 4989, NOBODY }, { 4990, 5000 }, { 4994, 5004 }, { 4995, NOBODY },
		{ 4999, NOBODY }, { 5000, 100 }, { 5009, 109 }, { 5010, 7000 }, { 5011, NOBODY },
		{ NOBODY, NOBODY },
	};
	int host2, name;
	size_t i;

	NEED_HOSTS();
	self->h.user_map = map;
	self->h.user_ranges = ARRAY_SIZE(map);
	ASSERT_EQ(0, add_again(self, far(self), near(self)));
	host2 = raw_open(far(self));
	name = raw_listen(host2, "mapped");
	ASSERT_LE(0, name);
	for (i = 0; i < ARRAY_SIZE(users); i++) {
		EXPECT_EQ(users[i].here, taken_for(self, name, users[i].there)) {
			TH_LOG("user %u", users[i].there);
		}
	}
	EXPECT_EQ(0, close(name) | close(host2));
}

static int waiting_at(int name)
{
	struct raw raw;
	int n = 0;

	while (read(name, &raw, sizeof(raw)) > 0)
		n++;
	return n;
}

TEST_F(names, a_flood_of_one_user_shuts_out_nobody_else)
{
	int host1, host2, name, call, seen = 0;
	struct ht_poll poll;
	struct raw raw;
	pid_t pid;

	NEED_HOSTS();
	host1 = raw_open(near(self));
	host2 = raw_open(far(self));
	name = raw_listen(host2, "flooded");
	ASSERT_LE(0, name);
	pid = flood_as(self, SOMEBODY, fill_name);
	ht_poll_begin(&poll);
	while (seen < OF_USER && ht_poll_more(&poll))
		seen += waiting_at(name);
	EXPECT_EQ(OF_USER, seen);
	call = raw_call(host1, 2, "flooded");
	ASSERT_LE(0, call);
	ASSERT_EQ(sizeof(raw.from) + 4, raw_read(name, &raw));
	EXPECT_EQ(0, raw.from.user);
	EXPECT_EQ(0, raw_answer(name, raw.from.number));
	ASSERT_LT(0, raw_read(call, &raw));
	EXPECT_EQ(0, raw.from.error);
	/* When it dies its calls go, and what it had is free. */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pid = flood_as(self, OTHER, fill_name);
	seen = 0;
	ht_poll_begin(&poll);
	while (seen < OF_USER && ht_poll_more(&poll))
		seen += waiting_at(name);
	EXPECT_EQ(OF_USER, seen);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(0, close(call) | close(name) | close(host1) | close(host2));
}

/* All users of a host have a quarter of the places; those of this host find one. */
TEST_F(names, a_flood_of_one_host_shuts_out_no_other_host)
{
	int host2, name, call, seen = 0, i;
	struct ht_poll poll;
	struct raw raw;
	pid_t pid[8];

	NEED_HOSTS();
	host2 = raw_open(far(self));
	name = raw_listen(host2, "flooded");
	ASSERT_LE(0, name);
	for (i = 0; i < 8; i++)
		pid[i] = flood_as(self, (uid_t)(SOMEBODY + i), only_call);
	ht_poll_begin(&poll);
	while (seen < OF_HOST - OF_USER / 4 && ht_poll_more(&poll))
		seen += waiting_at(name);
	usleep(QUIET_MS * 1000);
	seen += waiting_at(name);
	printf("# %d wait\n", seen);
	EXPECT_GE(OF_HOST, seen);
	call = raw_call(host2, 2, "flooded");
	ASSERT_LE(0, call);
	ASSERT_EQ(sizeof(raw.from) + 4, raw_read(name, &raw));
	EXPECT_EQ(HAMLYN_NONE, raw.from.host);
	for (i = 0; i < 8; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	EXPECT_EQ(0, close(call) | close(name) | close(host2));
}

/* ---- the end of a NIC, and of a namespace ---- */

/* Its peers go with it: whoever waits is told, and its names can be called from itself only. */
TEST_F(names, a_namespace_ends_while_a_call_waits)
{
	struct hosts other = { .host[0] = { .id = 1, .address = 0x7f000001 } };
	struct raw raw;
	int ready[2], fd[2], i;
	uint32_t nics[2];
	pid_t pid;

	NEED_HOSTS();
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid) {
		if (hosts_begin(&other))
			_exit(1);
		for (i = 0; i < 2; i++)
			nics[i] = other.host[i].nic;
		fd[1] = raw_open(&other.host[1]);
		fd[1] = raw_listen(fd[1], "ends");
		fd[0] = raw_open(&other.host[0]);
		fd[0] = raw_call(fd[0], 2, "ends");
		if (fd[0] < 0 || raw_read(fd[1], &raw) < 0)
			_exit(2);
		/* The last that is in it leaves, with the descriptors. */
		if (write(ready[1], nics, sizeof(nics)) != sizeof(nics) ||
		    setns(other.home, CLONE_NEWNET))
			_exit(3);
		genl_close(&other.g);
		_exit(raw_read(fd[0], &raw) < 0 || raw.from.error != ECONNRESET ? 4 : 0);
	}
	ASSERT_EQ(sizeof(nics), read(ready[0], nics, sizeof(nics)));
	EXPECT_EQ(0, ht_reap(pid));
}

TEST_F(names, a_name_keeps_its_nic)
{
	struct h_listener *l;

	NEED_HOSTS();
	ASSERT_EQ(0, listen_at(self, "2/keeps", &l));
	h_manager_destroy(self->server);
	h_close(self->far);
	self->server = NULL;
	self->far = NULL;
	EXPECT_EQ(-EBUSY, nic_delete(&self->h.g, far(self)->nic));
	h_listener_destroy(l);
}

TEST_HARNESS_MAIN
