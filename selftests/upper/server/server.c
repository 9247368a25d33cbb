// SPDX-License-Identifier: GPL-2.0-only
/* A server and its clients: good ones, slow ones, rude ones and dead ones. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/server.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define CLIENTS	100
#define LONG	300000
#define MOST_LATE	100	/* looks that find something behind the end */

FIXTURE(server) {
	char path[64];
	struct h_server *server;
	pthread_t thread;
	bool runs;
	int result;
	/* What the callbacks have seen; atomic */
	int welcome;
	int ended;
	int reason;
	int again;
	int refuse;	/* clients to be turned away by on_client */
};

static int count(int *counter)
{
	return __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static int seen(int *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static bool becomes(int *counter, int value)
{
	int64_t end = ht_now_ns() + ht_patience_ns();

	while (seen(counter) != value && ht_now_ns() < end)
		ht_sleep_ns(HT_MS);
	return seen(counter) == value;
}

static bool is(const struct h_message *m, const char *text)
{
	return m->length == strlen(text) && !memcmp(m->data, text, m->length);
}

/* Echoes, but for some words. */
static int handle(struct h_channel *ch, const struct h_message *m, void *arg)
{
	FIXTURE_DATA(server) *self = arg;

	if (is(m, "nonsense"))
		return -EPROTO;
	if (is(m, "stop"))
		h_server_stop(self->server);
	if (is(m, "close"))
		return h_server_close(self->server, H_NOWAIT) == -EBUSY ? 0 : -EIO;
	if (is(m, "later") && count(&self->again) < 3)
		return -EAGAIN;
	if (is(m, "bye")) {
		h_channel_send(ch, "bye", 3, H_NOWAIT);
		return -ENODATA;
	}
	return h_channel_send(ch, m->data, m->length, H_NOWAIT);
}

static int on_client(struct h_channel *ch, void *arg)
{
	FIXTURE_DATA(server) *self = arg;

	if (self->refuse)
		return -EACCES;
	count(&self->welcome);
	h_channel_set_data(ch, self);
	return 0;
}

static void on_end(struct h_channel *ch, int reason, void *arg)
{
	FIXTURE_DATA(server) *self = arg;

	if (h_channel_data(ch) != self)
		abort();
	__atomic_store_n(&self->reason, reason, __ATOMIC_SEQ_CST);
	count(&self->ended);
}

static void *serve(void *arg)
{
	FIXTURE_DATA(server) *self = arg;

	do {
		self->result = h_server_run(self->server, H_FOREVER);
	} while (self->result == -EINTR);
	return NULL;
}

static int create(FIXTURE_DATA(server) *self, struct h_server_attr attr)
{
	attr.device = ht_device();
	attr.on_client = on_client;
	attr.on_end = on_end;
	return h_server_create(self->path, handle, self, &attr, &self->server);
}

static bool start(FIXTURE_DATA(server) *self, struct h_server_attr attr)
{
	if (create(self, attr) || pthread_create(&self->thread, NULL, serve, self))
		return false;
	self->runs = true;
	return true;
}

static int stop(FIXTURE_DATA(server) *self)
{
	h_server_stop(self->server);
	self->runs = false;
	return pthread_join(self->thread, NULL) ? -EDEADLK : self->result;
}

static int dial(FIXTURE_DATA(server) *self, struct h_channel **ch)
{
	const struct h_channel_attr attr = { .device = ht_device() };

	return h_channel_dial(self->path, &attr, ch, ht_patience_ns());
}

static bool asks(struct h_channel *ch, const char *text)
{
	struct h_message m;
	bool good;

	if (h_channel_request(ch, text, strlen(text), &m, ht_patience_ns()))
		return false;
	good = is(&m, text);
	return !h_channel_release(ch, &m) && good;
}

/* Well if nothing was on its way, else not. */
static bool has_ended(struct h_channel *ch)
{
	struct h_message m;
	int ret = h_channel_receive(ch, &m, ht_patience_ns());

	h_channel_close(ch, H_NOWAIT);
	return ret == -ENODATA || ret == -ECONNRESET;
}

FIXTURE_SETUP(server)
{
	snprintf(self->path, sizeof(self->path), "/tmp/hamlyn-server.%d", getpid());
}

FIXTURE_TEARDOWN(server)
{
	if (self->runs)
		EXPECT_EQ(0, stop(self));
	EXPECT_EQ(0, h_server_close(self->server, ht_patience_ns()));
	EXPECT_EQ(self->welcome, self->ended);
	EXPECT_NE(0, access(self->path, F_OK));
}

TEST_F(server, messages_of_any_length_come_back)
{
	static const size_t sizes[] = { 0, 1, 100, 5000, LONG };
	static char data[LONG];
	struct h_channel *ch;
	struct h_message m;
	unsigned int i;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ht_fill(data, sizes[i], i);
		ASSERT_EQ(0, h_channel_request(ch, data, sizes[i], &m, ht_patience_ns()));
		EXPECT_EQ(sizes[i], m.length);
		EXPECT_EQ(sizes[i], ht_match(m.data, m.length, i));
		EXPECT_EQ(0, h_channel_release(ch, &m));
		ASSERT_EQ(0, h_channel_send(ch, data, sizes[i], ht_patience_ns()));
		ASSERT_EQ(0, h_channel_receive(ch, &m, ht_patience_ns()));
		EXPECT_EQ(sizes[i], m.length);
		EXPECT_EQ(0, h_channel_release(ch, &m));
	}
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
	EXPECT_TRUE(becomes(&self->ended, 1));
	EXPECT_EQ(0, seen(&self->reason));
}

static int connect_all(FIXTURE_DATA(server) *self, struct h_manager *m, struct h_channel **ch,
		       int n)
{
	const struct h_channel_attr small = { .buffers = 4, .buffer_size = 256 };
	int i, err = 0;

	for (i = 0; i < n && !err; i++)
		err = h_channel_connect(m, self->path, &small, &ch[i], ht_patience_ns());
	return err;
}

TEST_F(server, a_hundred_clients)
{
	const struct h_manager_attr many = { .channels = CLIENTS };
	struct h_channel *ch[CLIENTS];
	struct h_manager *m;
	struct h_dev *dev;
	char text[32];
	int i, round;

	ASSERT_TRUE(start(self, (struct h_server_attr) {
		.clients = CLIENTS, .buffers = 4, .buffer_size = 256,
	}));
	ASSERT_EQ(0, h_open(ht_device(), &dev));
	ASSERT_EQ(0, h_manager_create(dev, &many, &m));
	ASSERT_EQ(0, connect_all(self, m, ch, CLIENTS));
	for (round = 0; round < 3; round++) {
		for (i = 0; i < CLIENTS; i++) {
			snprintf(text, sizeof(text), "%d of %d", round, i);
			ASSERT_TRUE(asks(ch[i], text));
		}
	}
	EXPECT_EQ(CLIENTS, h_server_clients(self->server));
	for (i = 0; i < CLIENTS; i++)
		EXPECT_EQ(0, h_channel_close(ch[i], ht_patience_ns()));
	EXPECT_TRUE(becomes(&self->ended, CLIENTS));
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
}

TEST_F(server, one_that_takes_no_replies_delays_itself_only)
{
	struct h_channel *slow, *other;
	uint32_t sent, got, number;
	struct h_message m;
	int tries;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &slow));
	ASSERT_EQ(0, dial(self, &other));
	/* Until neither it nor the server takes any more: not for ever. */
	for (sent = 0, tries = 0; tries < 50 && sent < 100000; ) {
		int ret = h_channel_send(slow, &sent, sizeof(sent), H_NOWAIT);

		ASSERT_TRUE(!ret || ret == -EAGAIN);
		sent += !ret;
		tries = ret ? tries + 1 : 0;
		if (ret)
			ht_sleep_ns(HT_MS);
	}
	EXPECT_GT(100000, sent);
	for (tries = 0; tries < 100; tries++)
		ASSERT_TRUE(asks(other, "are you there?"));
	for (got = 0; got < sent; got++) {
		ASSERT_EQ(0, h_channel_receive(slow, &m, ht_patience_ns()));
		ASSERT_EQ(sizeof(number), m.length);
		memcpy(&number, m.data, sizeof(number));
		ASSERT_EQ(got, number);
		ASSERT_EQ(0, h_channel_release(slow, &m));
	}
	EXPECT_EQ(0, h_channel_close(slow, ht_patience_ns()));
	EXPECT_EQ(0, h_channel_close(other, ht_patience_ns()));
}

/* Sends until nothing is taken, and is then killed by its parent, or kills itself before. */
static pid_t start_victim(FIXTURE_DATA(server) *self, int messages)
{
	struct h_channel *ch;
	pid_t pid = ht_fork();
	int i;

	if (pid)
		return pid;
	if (dial(self, &ch))
		_exit(1);
	for (i = 0; i < messages; i++)
		h_channel_send(ch, &i, sizeof(i), H_NOWAIT);
	raise(SIGKILL);
	_exit(1);
}

TEST_F(server, clients_are_killed)
{
	struct h_channel *ch;
	int i, status;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	for (i = 0; i < 10; i++) {
		pid_t pid = start_victim(self, i * i * 3);

		ASSERT_LT(0, pid);
		ASSERT_TRUE(asks(ch, "are you there?"));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
	EXPECT_TRUE(becomes(&self->ended, 10));
	EXPECT_GT(0, seen(&self->reason));
	EXPECT_TRUE(asks(ch, "are you there?"));
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
}

TEST_F(server, the_server_is_killed)
{
	struct h_channel *ch;
	struct h_message m;
	int status, ret;
	pid_t pid;

	pid = ht_fork();
	if (!pid) {
		create(self, (struct h_server_attr) {});
		h_server_run(self->server, H_FOREVER);
		_exit(1);
	}
	do {
		ret = dial(self, &ch);
	} while (ret == -ENOENT || ret == -ECONNREFUSED);
	ASSERT_EQ(0, ret);
	EXPECT_TRUE(asks(ch, "are you there?"));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ret = h_channel_request(ch, "hello", 5, &m, ht_patience_ns());
	EXPECT_TRUE(ret == -ECONNRESET || ret == -EPIPE);
	h_channel_close(ch, ht_patience_ns());
	EXPECT_EQ(0, unlink(self->path));
}

TEST_F(server, half_closed)
{
	struct h_channel *ch;
	struct h_message m;
	int i;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, h_channel_send(ch, &i, sizeof(i), ht_patience_ns()));
	h_channel_shutdown(ch, H_NOWAIT);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, h_channel_receive(ch, &m, ht_patience_ns()));
		ASSERT_EQ(0, memcmp(&i, m.data, sizeof(i)));
		ASSERT_EQ(0, h_channel_release(ch, &m));
	}
	EXPECT_EQ(-ENODATA, h_channel_receive(ch, &m, ht_patience_ns()));
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
}

TEST_F(server, the_handler_ends_a_client)
{
	struct h_channel *ch;
	struct h_message m;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	ASSERT_EQ(0, h_channel_send(ch, "nonsense", 8, ht_patience_ns()));
	EXPECT_TRUE(has_ended(ch));
	EXPECT_TRUE(becomes(&self->ended, 1));
	EXPECT_EQ(-EPROTO, seen(&self->reason));

	ASSERT_EQ(0, dial(self, &ch));
	EXPECT_TRUE(asks(ch, "bye"));
	EXPECT_EQ(-ENODATA, h_channel_receive(ch, &m, ht_patience_ns()));
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
	EXPECT_TRUE(becomes(&self->ended, 2));
	EXPECT_EQ(-ENODATA, seen(&self->reason));
}

TEST_F(server, the_handler_is_called_again)
{
	struct h_channel *ch;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	EXPECT_TRUE(asks(ch, "later"));
	EXPECT_EQ(3, seen(&self->again));
	EXPECT_TRUE(asks(ch, "and what comes next"));
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
}

TEST_F(server, more_clients_than_there_may_be)
{
	struct h_channel *ch[2], *one_more;

	ASSERT_TRUE(start(self, (struct h_server_attr) { .clients = 2 }));
	ASSERT_EQ(0, dial(self, &ch[0]));
	ASSERT_EQ(0, dial(self, &ch[1]));
	EXPECT_TRUE(asks(ch[0], "hello"));
	EXPECT_TRUE(asks(ch[1], "hello"));
	EXPECT_EQ(-EUSERS, dial(self, &one_more));
	EXPECT_EQ(NULL, one_more);
	EXPECT_EQ(0, h_channel_close(ch[0], ht_patience_ns()));
	EXPECT_TRUE(becomes(&self->ended, 1));
	ASSERT_EQ(0, dial(self, &ch[0]));
	EXPECT_TRUE(asks(ch[0], "hello"));
	EXPECT_EQ(0, h_channel_close(ch[0], ht_patience_ns()));
	EXPECT_EQ(0, h_channel_close(ch[1], ht_patience_ns()));
}

/* Perhaps already while it connects. */
static bool finds_the_end(FIXTURE_DATA(server) *self)
{
	struct h_channel *ch;
	int ret = dial(self, &ch);

	return ret ? ret == -ECONNRESET : has_ended(ch);
}

TEST_F(server, more_clients_of_a_user_than_there_may_be)
{
	struct h_channel *ch;

	ASSERT_TRUE(start(self, (struct h_server_attr) { .clients_of_user = 1 }));
	ASSERT_EQ(0, dial(self, &ch));
	EXPECT_TRUE(asks(ch, "hello"));
	EXPECT_TRUE(finds_the_end(self));
	EXPECT_TRUE(asks(ch, "hello"));
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
}

TEST_F(server, a_client_that_is_not_welcome)
{
	self->refuse = 1;
	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	EXPECT_TRUE(finds_the_end(self));
	EXPECT_EQ(0, seen(&self->welcome));
}

TEST_F(server, stopped_by_anybody)
{
	struct h_channel *ch;

	ASSERT_EQ(0, create(self, (struct h_server_attr) {}));
	EXPECT_EQ(-EAGAIN, h_server_run(self->server, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_server_run(self->server, HT_MS));
	h_server_stop(self->server);
	EXPECT_EQ(0, h_server_run(self->server, H_FOREVER));
	EXPECT_EQ(-EAGAIN, h_server_run(self->server, H_NOWAIT));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, serve, self));
	ASSERT_EQ(0, dial(self, &ch));
	EXPECT_TRUE(asks(ch, "stop"));
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
	EXPECT_EQ(0, self->result);
	EXPECT_EQ(1, h_server_clients(self->server));
	h_channel_close(ch, H_NOWAIT);
}

TEST_F(server, not_closed_in_a_callback)
{
	struct h_channel *ch;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	ASSERT_EQ(0, h_channel_send(ch, "close", 5, ht_patience_ns()));
	EXPECT_TRUE(asks(ch, "hello"));
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
}

static void *ask_twice(void *arg)
{
	FIXTURE_DATA(server) *self = arg;
	struct h_channel *ch;
	bool good;

	if (dial(self, &ch))
		return self;
	good = asks(ch, "hello") && asks(ch, "stop");
	return h_channel_close(ch, ht_patience_ns()) || !good ? self : NULL;
}

/* Sleeps for ever if the descriptor does not tell. */
TEST_F(server, in_an_event_loop)
{
	struct pollfd p = { .events = POLLIN };
	pthread_t client;
	void *failed;
	int late;

	ASSERT_EQ(0, create(self, (struct h_server_attr) {}));
	p.fd = h_server_fd(self->server);
	ASSERT_LE(0, p.fd);
	ASSERT_EQ(0, pthread_create(&client, NULL, ask_twice, self));
	while (!seen(&self->ended)) {
		ASSERT_EQ(1, poll(&p, 1, (int)(ht_patience_ns() / HT_MS)));
		ASSERT_EQ(0, h_server_dispatch(self->server));
	}
	ASSERT_EQ(0, pthread_join(client, &failed));
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(0, h_server_run(self->server, H_FOREVER));
	/* The engine may bring the client's last packets only now; then there is nothing more. */
	for (late = 0; late < MOST_LATE && poll(&p, 1, 0); late++)
		ASSERT_EQ(0, h_server_dispatch(self->server));
	EXPECT_GT(MOST_LATE, late);
}

/* Files of its own get the numbers that its parent's had; nobody else writes into them. */
static int cannot_be_used(FIXTURE_DATA(server) *self)
{
	struct stat st;
	int fd[8], i;

	for (i = 0; i < 8; i++)
		fd[i] = memfd_create("child's", MFD_CLOEXEC);
	if (h_server_run(self->server, H_NOWAIT) != -ENODEV ||
	    h_server_dispatch(self->server) != -ENODEV || h_server_fd(self->server) != -ENODEV)
		return 1;
	h_server_stop(self->server);
	for (i = 0; i < 8; i++)
		if (fstat(fd[i], &st) || st.st_size || close(fd[i]))
			return 1;
	return 0;
}

TEST_F(server, children_leave_it_alone)
{
	struct h_channel *ch;
	int status;
	pid_t pid;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	EXPECT_TRUE(asks(ch, "hello"));
	pid = ht_fork();
	if (!pid) {
		int failed = cannot_be_used(self) || h_channel_close(ch, H_FOREVER) ||
			     h_server_close(self->server, H_FOREVER) || dial(self, &ch) ||
			     !asks(ch, "hello") || h_channel_close(ch, ht_patience_ns());

		_exit(failed);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(asks(ch, "hello"));
	EXPECT_EQ(0, h_channel_close(ch, ht_patience_ns()));
}

/* ---- what cannot be had ---- */

static bool explained(void)
{
	char text[HAMLYN_EXPLAIN_BYTES];

	return !h_explain(NULL, text, sizeof(text)) && text[0];
}

TEST_F(server, names_that_are_wrong)
{
	const struct h_channel_attr nowhere = { .device = "shm:no/name" };
	struct h_channel *ch;

	EXPECT_EQ(-ENOENT, dial(self, &ch));
	EXPECT_EQ(NULL, ch);
	EXPECT_TRUE(explained());
	EXPECT_EQ(-EINVAL, h_channel_dial(self->path, &nowhere, &ch, H_NOWAIT));
	EXPECT_TRUE(explained());
	EXPECT_EQ(-EINVAL, h_channel_dial(NULL, &(struct h_channel_attr) { .device = ht_device() },
					  &ch, H_NOWAIT));
	EXPECT_EQ(-EINVAL, h_server_create(NULL, handle, NULL,
					   &(struct h_server_attr) { .device = ht_device() },
					   &(struct h_server *) { NULL }));
	EXPECT_TRUE(explained());
	ASSERT_EQ(0, create(self, (struct h_server_attr) {}));
	EXPECT_EQ(-EADDRINUSE, h_server_create(self->path, handle, NULL,
					       &(struct h_server_attr) { .device = ht_device() },
					       &(struct h_server *) { NULL }));
	EXPECT_TRUE(explained());
}

TEST_F(server, attributes_that_are_wrong)
{
	struct h_server_attr attr = { .device = ht_device() };
	struct h_server *s;

	EXPECT_EQ(-EINVAL, h_server_create(self->path, NULL, NULL, &attr, &s));
	EXPECT_EQ(NULL, s);
	EXPECT_TRUE(explained());
	attr.clients = 65537;
	EXPECT_EQ(-EINVAL, h_server_create(self->path, handle, NULL, &attr, &s));
	EXPECT_TRUE(explained());
	attr.clients = 0;
	attr.device = "/dev/hamlyn-none";
	EXPECT_GT(0, h_server_create(self->path, handle, NULL, &attr, &s));
	EXPECT_TRUE(explained());
	EXPECT_EQ(0, h_server_close(NULL, H_NOWAIT));
}

TEST_F(server, a_dialled_channel_stays_with_what_is_on_its_manager)
{
	struct h_channel *ch, *a, *b;
	struct h_manager *m;
	struct h_dev *dev;

	ASSERT_TRUE(start(self, (struct h_server_attr) {}));
	ASSERT_EQ(0, dial(self, &ch));
	m = h_channel_manager(ch);
	dev = h_manager_dev(m);
	ASSERT_EQ(0, h_channel_pair(m, m, &(struct h_channel_attr) { .buffers = 4 }, &a, &b));
	EXPECT_EQ(-EBUSY, h_channel_close(ch, ht_patience_ns()));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
}

TEST_HARNESS_MAIN
