// SPDX-License-Identifier: GPL-2.0-only
/* How processes meet: with good ones, silent ones, liars and the dead. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <hamlyn/channel.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define SECOND	1000000000LL
#define NOBODY	65534

FIXTURE(rendezvous) {
	char path[64];
	struct h_dev *dev;
	struct h_manager *m;
	struct h_listener *listener;
};

FIXTURE_VARIANT(rendezvous) {
	bool abstract;
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(rendezvous, path) {
};

FIXTURE_VARIANT_ADD(rendezvous, abstract) {
	.abstract = true,
};

FIXTURE_VARIANT_ADD(rendezvous, tickets) {
	.flags = H_CONNECT_TICKETS,
};

FIXTURE_SETUP(rendezvous)
{
	const struct h_listener_attr attr = {
		.flags = variant->flags,
		.mode = 0666,
		.waiting = 64,
		.patience_ns = 60 * SECOND,
	};

	snprintf(self->path, sizeof(self->path), "%s.%d",
		 variant->abstract ? "@hamlyn-test" : "/tmp/hamlyn-test",
		 getpid());
	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_listener_create(self->path, &attr, &self->listener));
}

FIXTURE_TEARDOWN(rendezvous)
{
	struct stat st;

	h_listener_destroy(self->listener);
	EXPECT_NE(0, stat(self->path, &st));
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/* ---- the path ----------------------------------------------------------- */

/* What somebody who may write to the directory puts in place of what was just bound. */
static const char *put_instead;
/* The mode that the path had then. */
static mode_t mode_when_bound;

/* In place of the C library's. */
int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	const char *path = ((const struct sockaddr_un *)address)->sun_path;
	int ret = (int)syscall(SYS_bind, fd, address, length);
	struct stat st;

	if (!ret && *path && !stat(path, &st))
		mode_when_bound = st.st_mode & 0777;
	if (!ret && put_instead) {
		if (unlink(path) || symlink(put_instead, path))
			return -1;
	}
	return ret;
}

int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

/* As a seccomp filter has it. */
static bool no_child;

int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	if (no_child) {
		errno = EPERM;
		return -1;
	}
	return __clone(fn, stack, flags, arg);
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

/* Before 6.16, where nobody can say that he takes no descriptors. */
static bool old_kernel;

int setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	if (old_kernel && level == SOL_SOCKET && name == SO_PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, n);
}

TEST_F(rendezvous, the_mode_is_for_the_socket_and_nothing_else)
{
	const struct h_listener_attr attr = { .mode = 0666 };
	struct h_listener *l;
	char path[80], secret[80];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/tmp/hamlyn-test.%d.mode", getpid());
	ASSERT_EQ(0, h_listener_create(path, &attr, &l));
	EXPECT_EQ(0, stat(path, &st));
	EXPECT_EQ(0666, st.st_mode & 0777);
	h_listener_destroy(l);
	snprintf(secret, sizeof(secret), "/tmp/hamlyn-test.%d.secret", getpid());
	fd = open(secret, O_CREAT | O_EXCL | O_WRONLY, 0600);
	ASSERT_LE(0, fd);
	put_instead = secret;
	EXPECT_EQ(-EEXIST, h_listener_create(path, &attr, &l));
	put_instead = NULL;
	EXPECT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0600, st.st_mode & 0777);
	close(fd);
	unlink(secret);
	unlink(path);
}

/* Ends when there is no @parent. Return: how often the path's mode kept it out. */
static int knocks(const char *path, int parent)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct pollfd end = { .fd = parent };
	int fd, refused = 0;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	while (!poll(&end, 1, 0) && refused < 100) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno == EACCES)
			refused++;
		close(fd);
	}
	return refused;
}

TEST_F(rendezvous, a_path_has_its_mode_when_it_comes)
{
	const struct h_listener_attr attr = { .mode = 0666 };
	struct h_listener *l;
	mode_t before;
	char path[80];
	int i, ends[2];
	pid_t pid;

	snprintf(path, sizeof(path), "/tmp/hamlyn-test.%d.mode", getpid());
	ASSERT_EQ(0, pipe(ends));
	pid = ht_fork();
	if (!pid) {
		close(ends[1]);
		/* Its owner is kept out by umask, and root by nothing. */
		if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
			_exit(200);
		_exit(knocks(path, ends[0]));
	}
	close(ends[0]);
	before = umask(0777);
	for (i = 0; i < 200; i++) {
		mode_when_bound = 0;
		ASSERT_EQ(0, h_listener_create(path, &attr, &l));
		/* Who knocks may be elsewhere at that moment. */
		EXPECT_EQ(0666, mode_when_bound);
		h_listener_destroy(l);
	}
	/* The process's umask is left as it is. */
	EXPECT_EQ(0777, umask(before));
	close(ends[1]);
	EXPECT_EQ(0, ht_reap(pid));
}

TEST_F(rendezvous, a_path_gets_its_mode_where_no_child_can_be)
{
	const struct h_listener_attr attr = { .mode = 0666 };
	struct h_listener *l;
	char path[80];
	struct stat st;

	snprintf(path, sizeof(path), "/tmp/hamlyn-test.%d.mode", getpid());
	no_child = true;
	ASSERT_EQ(0, h_listener_create(path, &attr, &l));
	no_child = false;
	EXPECT_NE(0666, mode_when_bound);
	EXPECT_EQ(0, stat(path, &st));
	EXPECT_EQ(0666, st.st_mode & 0777);
	h_listener_destroy(l);
}

/* ---- clients ------------------------------------------------------------ */

struct client {
	const char *path;
	const char *device;
	struct h_connect_attr attr;
	bool streams;
	bool own_device;	/* else of @m */
	struct h_manager *m;
	uint32_t messages;
	int result;
	char why[HAMLYN_EXPLAIN_BYTES];	/* in words: the thread's own */
};

static int use_channel(struct client *c, struct h_manager *m)
{
	const struct h_channel_attr attr = {
		.flags = c->attr.flags,
		.uids = c->attr.uids,
		.uid_count = c->attr.uid_count,
		.buffers = c->attr.buffers,
	};
	struct h_message reply;
	struct h_channel *ch;
	unsigned char data[5000];
	uint32_t i;
	int ret;

	ret = h_channel_connect(m, c->path, &attr, &ch, ht_patience_ns());
	if (ret)
		return ret;
	for (i = 0; i < c->messages && !ret; i++) {
		size_t n = i * 97 % sizeof(data);

		ht_fill(data, n, i);
		ret = h_channel_request(ch, data, n, &reply, 60 * SECOND);
		ret = ret != 0 ? ret :
		      reply.length != n || ht_match(reply.data, n, i) != n ?
		      -EBADMSG : 0;
		h_channel_release(ch, &reply);
	}
	if (ret)
		h_channel_close(ch, H_NOWAIT);
	else
		ret = h_channel_close(ch, 60 * SECOND);
	return ret;
}

static int use_streams(struct client *c, struct h_manager *m)
{
	struct h_stream_pair pair;
	char back[6];
	ssize_t n;
	int ret;

	ret = h_connect(m, c->path, &c->attr, &pair, 60 * SECOND);
	if (ret)
		return ret;
	if (h_stream_send(pair.sender, "hello", 6, 60 * SECOND) != 6 ||
	    h_stream_flush(pair.sender, 60 * SECOND))
		ret = -EIO;
	n = ret ? 0 : h_stream_receive_copy(pair.receiver, back, 6, 60 * SECOND);
	if (!ret && (n != 6 || memcmp(back, "hello", 6)))
		ret = n < 0 ? (int)n : -EBADMSG;
	n = h_stream_sender_close(pair.sender, 60 * SECOND);
	ret = ret ? ret : (int)n;
	n = h_stream_receiver_destroy(pair.receiver);
	return ret ? ret : (int)n;
}

static void *client(void *arg)
{
	struct client *c = arg;
	struct h_manager *m = c->m;
	struct h_dev *dev;

	if (c->own_device) {
		c->result = h_open(c->device ? c->device : ht_device(), &dev);
		if (c->result)
			return NULL;
		c->result = h_manager_create(dev, NULL, &m);
		if (c->result)
			return NULL;
	}
	c->result = c->streams ? use_streams(c, m) : use_channel(c, m);
	h_explain(h_manager_dev(m), c->why, sizeof(c->why));
	if (c->own_device) {
		if (h_manager_destroy(m))
			c->result = -EBUSY;
		h_close(dev);
	}
	return NULL;
}

/* Echo everything until the end; 0, or an errno. */
static int serve(struct h_channel *ch)
{
	struct h_message m;
	int ret;

	while ((ret = h_channel_receive(ch, &m, 60 * SECOND)) == 0) {
		ret = h_channel_send(ch, m.data, m.length, 60 * SECOND);
		h_channel_release(ch, &m);
		if (ret)
			break;
	}
	return h_channel_close(ch, 60 * SECOND) ?: ret == -ENODATA ? 0 : ret;
}

/* ---- good ones ---------------------------------------------------------- */

/* H 6.3: A server and a client that do not know of each other meet by the operating system. */
TEST_F(rendezvous, channels_meet_and_know_each_other)
{
	struct client c = {
		.path = self->path,
		.attr.flags = variant->flags,
		.own_device = true,
		.messages = 300,
	};
	struct h_channel *ch;
	struct h_peer peer;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, client, &c));
	ASSERT_EQ(0, h_channel_accept(self->listener, self->m, NULL, &ch,
				      60 * SECOND));
	EXPECT_EQ(0, h_channel_peer(ch, &peer));
	EXPECT_EQ(getpid(), peer.pid);
	EXPECT_EQ(geteuid(), peer.uid);
	EXPECT_EQ(getegid(), peer.gid);
	EXPECT_EQ(0, serve(ch));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, c.result);
}

TEST_F(rendezvous, streams_meet_as_well)
{
	struct client c = {
		.path = self->path,
		.attr.flags = variant->flags,
		.own_device = true,
		.streams = true,
	};
	struct h_stream_pair pair;
	char data[6];
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, client, &c));
	ASSERT_EQ(0, h_listener_accept(self->listener, self->m, NULL, &pair,
				       60 * SECOND));
	EXPECT_EQ(getpid(), pair.peer.pid);
	EXPECT_EQ(6, h_stream_receive_copy(pair.receiver, data, 6, 60 * SECOND));
	EXPECT_EQ(6, h_stream_send(pair.sender, data, 6, 60 * SECOND));
	EXPECT_EQ(0, h_stream_flush(pair.sender, 60 * SECOND));
	EXPECT_EQ(-ENODATA, h_stream_receive_copy(pair.receiver, data, 6, 60 * SECOND));
	h_stream_sender_close(pair.sender, 60 * SECOND);
	EXPECT_EQ(0, h_stream_receiver_destroy(pair.receiver));
	pthread_join(thread, NULL);
	EXPECT_TRUE(c.result == 0 || c.result == -EPIPE);
}

#define CROWD	24

struct service {
	struct h_listener *listener;
	struct h_manager *m;
	int clients;
	int served;
	int result;
};

static void echo(struct h_channel *ch, void *arg)
{
	struct service *s = arg;
	struct h_message m;
	int ret;

	while ((ret = h_channel_receive(ch, &m, H_NOWAIT)) == 0) {
		h_channel_send(ch, m.data, m.length, 60 * SECOND);
		h_channel_release(ch, &m);
	}
	if (ret == -EAGAIN)
		return;
	h_channel_close(ch, 60 * SECOND);
	s->served++;
	if (ret != -ENODATA)
		s->result = ret;
}

/* One thread, one descriptor to wait on. */
static const char *event_loop(struct service *s)
{
	int epoll = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN };
	int64_t end = ht_now_ns() + ht_patience_ns();

	epoll_ctl(epoll, EPOLL_CTL_ADD, h_listener_fd(s->listener), &e);
	epoll_ctl(epoll, EPOLL_CTL_ADD, h_manager_fd(s->m), &e);
	while (s->served < s->clients && !s->result) {
		struct h_channel *ch;
		int ret;

		if (ht_now_ns() > end)
			return "it takes too long";
		if (epoll_wait(epoll, &e, 1, 1000) < 0 && errno != EINTR)
			return "cannot wait";
		while (!(ret = h_channel_accept(s->listener, s->m, NULL, &ch,
						H_NOWAIT)))
			h_channel_on_ready(ch, echo, s);
		if (ret != -EAGAIN)
			return "cannot accept";
		h_manager_dispatch(s->m);
	}
	close(epoll);
	return s->result ? "a client broke off" : NULL;
}

TEST_F(rendezvous, an_event_loop_serves_a_crowd)
{
	struct service s = {
		.listener = self->listener,
		.m = self->m,
		.clients = variant->flags ? CROWD / 4 : CROWD,
	};
	struct client c[CROWD];
	pthread_t threads[CROWD];
	int i;

	for (i = 0; i < s.clients; i++) {
		c[i] = (struct client) {
			.path = self->path,
			.attr.flags = variant->flags,
			.own_device = true,
			.messages = 20,
		};
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, client, &c[i]));
	}
	EXPECT_NO(event_loop(&s));
	for (i = 0; i < s.clients; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, c[i].result);
	}
}

/* ---- whom nobody wants -------------------------------------------------- */

/* And is told why, by the device, or where there is none. */
static bool finds_nobody(struct h_manager *m, const char *path, int err, const char *words)
{
	char text[HAMLYN_EXPLAIN_BYTES];
	struct h_channel *ch;
	bool right;

	right = h_channel_connect(m, path, NULL, &ch, SECOND) == err;
	h_explain(h_manager_dev(m), text, sizeof(text));
	right = right && strstr(text, words);
	right = right && h_channel_dial(path, NULL, &ch, SECOND) == err;
	h_explain(NULL, text, sizeof(text));
	return right && strstr(text, words);
}

TEST_F(rendezvous, who_finds_nobody_is_told_why)
{
	char other[200];

	snprintf(other, sizeof(other), "%s.other", self->path);
	EXPECT_TRUE(variant->abstract ?
		    finds_nobody(self->m, other, -ECONNREFUSED, "nobody listens") :
		    finds_nobody(self->m, other, -ENOENT, "no server has this path"));
	EXPECT_TRUE(finds_nobody(self->m, "/", -ECONNREFUSED, "nobody listens"));
	EXPECT_TRUE(finds_nobody(self->m, "@", -EINVAL, "a path, or '@'"));
	EXPECT_TRUE(finds_nobody(self->m, "", -EINVAL, "a path, or '@'"));
	memset(other, 'x', sizeof(other) - 1);
	other[0] = '@';
	other[sizeof(other) - 1] = 0;
	EXPECT_TRUE(finds_nobody(self->m, other, -ENAMETOOLONG, "at most 107"));
}

TEST_F(rendezvous, nobody_is_there)
{
	struct h_channel_attr attr = { .flags = H_CONNECT_WAIT };
	struct h_listener *second;
	struct h_channel *ch;
	char other[80];
	int fd;

	snprintf(other, sizeof(other), "%s.other", self->path);
	EXPECT_EQ(variant->abstract ? -ECONNREFUSED : -ENOENT,
		  h_channel_connect(self->m, other, NULL, &ch, SECOND));
	EXPECT_EQ(-ETIMEDOUT, h_channel_connect(self->m, other, &attr, &ch,
						SECOND / 20));
	EXPECT_EQ(-EADDRINUSE, h_listener_create(self->path, NULL, &second));
	EXPECT_EQ(-EINVAL, h_listener_create("", NULL, &second));
	EXPECT_EQ(-EINVAL, h_listener_create("@", NULL, &second));
	memset(other, 'x', sizeof(other) - 1);
	if (variant->abstract)
		return;
	snprintf(other, sizeof(other), "%s.other", self->path);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EEXIST, h_listener_create(other, NULL, &second));
	close(fd);
	unlink(other);
}

TEST_F(rendezvous, the_path_of_a_dead_server_is_taken_over)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct h_listener *second;
	struct stat st;
	char other[80];
	int fd;

	if (variant->abstract)
		SKIP(return, "abstract names die with their sockets");
	snprintf(other, sizeof(other), "%s.other", self->path);
	memcpy(address.sun_path, other, strlen(other) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
	close(fd);
	ASSERT_EQ(0, h_listener_create(other, NULL, &second));
	/* And not taken away from the next one. */
	unlink(other);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	h_listener_destroy(second);
	EXPECT_EQ(0, stat(other, &st));
	unlink(other);
	close(fd);
}

/* ---- two servers at a time ---------------------------------------------- */

/* A socket that is bound and does not listen: of one who is dead, or will do so soon. */
static int bind_raw(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, path, strlen(path) + 1);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return -errno;
	return fd;
}

struct start {
	const char *path;
	pthread_barrier_t *together;
	struct h_listener *listener;
	int result;
};

static void *start(void *arg)
{
	struct start *s = arg;

	if (s->together)
		pthread_barrier_wait(s->together);
	s->result = h_listener_create(s->path, NULL, &s->listener);
	return NULL;
}

TEST_F(rendezvous, a_server_that_is_about_to_listen_is_left_alone)
{
	char directory[] = "/tmp/hamlyn-test.XXXXXX", path[64];
	struct start s = { .path = path };
	pthread_t thread;
	int lock, fd;

	if (variant->abstract)
		SKIP(return, "nobody can take over an abstract name");
	ASSERT_NE(NULL, mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/server", directory);
	lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_EQ(0, flock(lock, LOCK_EX | LOCK_NB));
	fd = bind_raw(path);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, start, &s));
	ht_sleep_ns(SECOND / 10);
	EXPECT_EQ(0, listen(fd, 1));
	close(lock);
	pthread_join(thread, NULL);
	EXPECT_EQ(-EADDRINUSE, s.result);
	h_listener_destroy(s.listener);
	close(fd);
	/* Who keeps the directory locked for ever keeps nobody from starting. */
	lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_EQ(0, flock(lock, LOCK_EX | LOCK_NB));
	s.together = NULL;
	start(&s);
	EXPECT_EQ(0, s.result);
	close(lock);
	h_listener_destroy(s.listener);
	EXPECT_EQ(0, rmdir(directory));
}

#define RACES	200

static const char *race(const char *path)
{
	pthread_barrier_t together;
	struct start s[2];
	pthread_t threads[2];
	int i;

	pthread_barrier_init(&together, NULL, 2);
	for (i = 0; i < 2; i++) {
		s[i] = (struct start) { .path = path, .together = &together };
		if (pthread_create(&threads[i], NULL, start, &s[i]))
			return "no thread";
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 2; i++)
		h_listener_destroy(s[i].listener);
	pthread_barrier_destroy(&together);
	if (!s[0].result && !s[1].result)
		return "both are the server";
	if (s[0].result && s[1].result)
		return "neither is the server";
	return s[0].result + s[1].result == -EADDRINUSE ? NULL : "another error";
}

TEST_F(rendezvous, of_two_that_start_at_a_time_one_is_the_server)
{
	char other[80];
	int i;

	snprintf(other, sizeof(other), "%s.other", self->path);
	for (i = 0; i < RACES; i++) {
		/* Every other time where a dead one was. */
		if (!variant->abstract && i % 2)
			close(bind_raw(other));
		ASSERT_NO(race(other)) {
			TH_LOG("race %d", i);
		}
	}
}

/* As long as the client needs to begin: nobody whom it wants comes meanwhile. */
static const char *is_told(struct client *c, struct h_listener *l,
			   struct h_manager *m)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct h_channel *ch;
	pthread_t thread;

	if (pthread_create(&thread, NULL, client, c))
		return "no thread";
	while (pthread_tryjoin_np(thread, NULL)) {
		if (h_channel_accept(l, m, NULL, &ch, SECOND / 50) != -ETIMEDOUT)
			return "it is let in";
		if (ht_now_ns() > end)
			return "it is not told";
	}
	return NULL;
}

TEST_F(rendezvous, who_is_not_on_the_list_is_not_let_in)
{
	static const uid_t nobody = NOBODY;
	const struct h_listener_attr attr = {
		.flags = variant->flags,
		.uids = &nobody,
		.uid_count = 1,
	};
	struct client c = {
		.path = self->path,
		.attr = { .flags = variant->flags, .uids = &nobody,
			  .uid_count = 1 },
		.m = self->m,
	};
	struct h_listener *second;
	struct h_channel *ch;
	char other[80];

	if (geteuid() == NOBODY)
		SKIP(return, "needs another user");
	/* The client does not want our kind of server: it never asks. */
	client(&c);
	EXPECT_EQ(-EPERM, c.result);
	EXPECT_EQ(-EAGAIN, h_channel_accept(self->listener, self->m, NULL, &ch,
					    H_NOWAIT));
	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, h_listener_create(other, &attr, &second));
	c.path = other;
	c.attr.uids = NULL;
	ASSERT_NO(is_told(&c, second, self->m));
	EXPECT_EQ(-EACCES, c.result);
	h_listener_destroy(second);
}

/* It is still to be reaped. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid;
}

TEST_F(rendezvous, another_user_is_known_as_such)
{
	bool embedded = h_dev_is_embedded(self->dev);
	struct h_channel *ch;
	struct h_peer peer;
	pid_t pid;
	int ret;

	if (geteuid())
		SKIP(return, "needs root");
	pid = ht_fork();
	if (!pid) {
		struct client c = {
			.path = self->path,
			.attr.flags = variant->flags,
			.own_device = true,
			.messages = 1,
		};

		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(20);
		client(&c);
		/* The embedded device is for one user. */
		_exit(c.result == -EXDEV || c.result == -EACCES ||
		      c.result == -EPERM ? 21 : c.result ? 22 : 0);
	}
	do
		ret = h_channel_accept(self->listener, self->m, NULL, &ch,
				       embedded ? SECOND / 10 : 60 * SECOND);
	while (embedded && ret == -ETIMEDOUT && !has_ended(pid));
	if (embedded) {
		EXPECT_EQ(-ETIMEDOUT, ret);
		EXPECT_EQ(21, ht_reap(pid));
		return;
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, h_channel_peer(ch, &peer));
	EXPECT_EQ(pid, peer.pid);
	EXPECT_EQ(NOBODY, peer.uid);
	EXPECT_EQ(NOBODY, peer.gid);
	EXPECT_EQ(0, serve(ch));
	EXPECT_EQ(0, ht_reap(pid));
}

TEST_F(rendezvous, what_does_not_fit_is_told_so)
{
	struct client c = {
		.path = self->path,
		.attr.flags = variant->flags ^ H_CONNECT_TICKETS,
		.m = self->m,
	};
	struct h_channel *ch;
	pthread_t thread;

	ASSERT_NO(is_told(&c, self->listener, self->m));
	EXPECT_EQ(-EPROTONOSUPPORT, c.result);
	EXPECT_NE(0, strlen(c.why));

	c.attr.flags = variant->flags;
	c.streams = true;
	ASSERT_NO(is_told(&c, self->listener, self->m));
	EXPECT_EQ(-EPROTOTYPE, c.result);

	c.streams = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, client, &c));
	EXPECT_EQ(-ECANCELED, h_channel_accept(self->listener, NULL, NULL, &ch,
					       60 * SECOND));
	pthread_join(thread, NULL);
	EXPECT_EQ(-EUSERS, c.result);
}

/* What was made of the connection is gone by then, and the reason is told all the same. */
TEST_F(rendezvous, both_ends_say_what_they_have_no_room_for)
{
	const struct h_manager_attr small = { .nq_entries = 64 };
	const struct h_stream_attr most = { .buffers = 32 };
	const struct h_stream_attr rest = { .buffers = 16, .buffer_size = 4096,
					    .max_buffer_size = 4096 };
	struct client c = {
		.path = self->path,
		.attr = { .flags = variant->flags, .buffers = most.buffers },
		.own_device = true,
	};
	struct h_stream_receiver *r;
	struct h_stream_pair pair;
	struct h_manager *m;
	pthread_t thread;

	ASSERT_EQ(0, h_manager_create(self->dev, &small, &m));
	ASSERT_EQ(0, h_stream_receiver_create(m, &rest, &r));
	EXPECT_EQ(-ENOSPC, h_connect(m, self->path, &c.attr, &pair, SECOND));
	EXPECT_TRUE(ht_is_explained(self->dev, ""));
	c.streams = true;
	ASSERT_EQ(0, pthread_create(&thread, NULL, client, &c));
	EXPECT_EQ(-ENOSPC, h_listener_accept(self->listener, m, &most, &pair,
					     60 * SECOND));
	EXPECT_TRUE(ht_is_explained(self->dev, ""));
	pthread_join(thread, NULL);
	EXPECT_EQ(-EUSERS, c.result);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
	EXPECT_EQ(0, h_manager_destroy(m));
}

TEST_F(rendezvous, another_device_is_told_so)
{
	char name[64], segment[80];
	struct client c = {
		.path = self->path,
		.device = name,
		.attr.flags = variant->flags,
		.own_device = true,
	};
	struct stat st;

	snprintf(name, sizeof(name), "shm:rendezvous%d,size=16M", (int)getpid());
	snprintf(segment, sizeof(segment), "/dev/shm/hamlyn-%u-rendezvous%d",
		 ht_segment_uid(), (int)getpid());
	ASSERT_NO(is_told(&c, self->listener, self->m));
	EXPECT_EQ(-EXDEV, c.result);
	/* Nobody has it open any more. */
	EXPECT_NE(0, stat(segment, &st));
}

/* ---- silence and nonsense ----------------------------------------------- */

static int call_raw(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t n;

	n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			strlen(path) + (*path != '@'));
	memcpy(a.sun_path, path, strlen(path));
	if (*path == '@')
		a.sun_path[0] = 0;
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, n))
		return -errno;
	return fd;
}

static int listen_raw(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t n;

	n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			strlen(path) + (*path != '@'));
	memcpy(a.sun_path, path, strlen(path));
	if (*path == '@')
		a.sun_path[0] = 0;
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || listen(fd, 8))
		return -errno;
	return fd;
}

#define IN_QUEUE	9	/* of listen_raw() */

/* A thousand of those who wait would leave the server no processor to accept anybody. */
TEST_F(rendezvous, who_finds_a_full_queue_sleeps_in_it)
{
	struct rusage before, after;
	int fds[IN_QUEUE], listener, i;
	struct h_channel *ch;
	char other[80];

	snprintf(other, sizeof(other), "%s.other", self->path);
	listener = listen_raw(other);
	ASSERT_GE(listener, 0);
	for (i = 0; i < IN_QUEUE; i++) {
		fds[i] = call_raw(other);
		ASSERT_GE(fds[i], 0);
	}
	EXPECT_EQ(-EAGAIN, h_channel_connect(self->m, other, NULL, &ch, H_NOWAIT));
	ASSERT_EQ(0, getrusage(RUSAGE_THREAD, &before));
	EXPECT_EQ(-ETIMEDOUT, h_channel_connect(self->m, other, NULL, &ch, SECOND));
	ASSERT_EQ(0, getrusage(RUSAGE_THREAD, &after));
	/* Ten times, and a few for locks; every 2 ms it would be 400 times. */
	EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 60);
	for (i = 0; i < IN_QUEUE; i++)
		close(fds[i]);
	close(listener);
	unlink(other);
}

static const char *good_one_is_let_in(struct h_listener *l, const char *path,
				      struct h_manager *m, uint32_t flags)
{
	struct client c = {
		.path = path,
		.attr.flags = flags,
		.own_device = true,
		.messages = 3,
	};
	int64_t begin = ht_now_ns();
	struct h_channel *ch;
	pthread_t thread;

	if (pthread_create(&thread, NULL, client, &c))
		return "no thread";
	if (h_channel_accept(l, m, NULL, &ch, 60 * SECOND))
		return "it is not accepted";
	if (ht_now_ns() - begin > ht_patience_ns() / 10)
		return "it had to wait";
	if (serve(ch))
		return "it is not served";
	pthread_join(thread, NULL);
	return c.result ? "it failed" : NULL;
}

#define SILENT	200	/* more than there is room for */

TEST_F(rendezvous, silent_ones_do_not_keep_others_waiting)
{
	struct h_channel *ch;
	int fds[SILENT], i;
	char c;

	for (i = 0; i < SILENT; i++) {
		fds[i] = call_raw(self->path);
		ASSERT_GE(fds[i], 0);
	}
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
	EXPECT_EQ(-EAGAIN, h_channel_accept(self->listener, self->m, NULL, &ch,
					    H_NOWAIT));
	/* The oldest were sent away, the youngest wait. */
	EXPECT_EQ(1, recv(fds[0], &c, 1, MSG_DONTWAIT));
	EXPECT_EQ(0, recv(fds[0], &c, 1, MSG_DONTWAIT));
	EXPECT_EQ(-1, recv(fds[SILENT - 1], &c, 1, MSG_DONTWAIT));
	for (i = 0; i < SILENT; i++)
		close(fds[i]);
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
}

TEST_F(rendezvous, patience_has_an_end)
{
	const struct h_listener_attr attr = { .patience_ns = SECOND / 10 };
	struct h_listener *second;
	struct h_channel *ch;
	char other[80], c;
	int fd;

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, h_listener_create(other, &attr, &second));
	fd = call_raw(other);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EAGAIN, h_channel_accept(second, self->m, NULL, &ch,
					    H_NOWAIT));
	EXPECT_EQ(-1, recv(fd, &c, 1, MSG_DONTWAIT));
	ht_sleep_ns(SECOND / 5);
	EXPECT_EQ(-EAGAIN, h_channel_accept(second, self->m, NULL, &ch,
					    H_NOWAIT));
	EXPECT_EQ(0, recv(fd, &c, 1, MSG_DONTWAIT));
	close(fd);
	h_listener_destroy(second);
}

/* A server that is long about one client, when the next has spoken already. */
TEST_F(rendezvous, who_has_spoken_is_heard_however_late)
{
	const struct h_listener_attr attr = {
		.flags = variant->flags,
		.patience_ns = SECOND / 10,
	};
	struct h_listener *second;
	struct client clients[3];
	struct h_channel *ch;
	pthread_t threads[3];
	char other[80];
	int i;

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, h_listener_create(other, &attr, &second));
	for (i = 0; i < 3; i++) {
		clients[i] = (struct client) {
			.path = other,
			.attr.flags = variant->flags,
			.own_device = true,
			.messages = 3,
		};
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, client,
					    &clients[i]));
	}
	ht_sleep_ns(SECOND / 2);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, h_channel_accept(second, self->m, NULL, &ch,
					      ht_patience_ns())) {
			TH_LOG("client %d", i);
		}
		ht_sleep_ns(SECOND / 5);
		EXPECT_EQ(0, serve(ch));
	}
	for (i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, clients[i].result);
	}
	h_listener_destroy(second);
}

TEST_F(rendezvous, patience_may_last_for_ever)
{
	const struct h_listener_attr attr = { .patience_ns = INT64_MAX };
	struct h_listener *second;
	struct h_channel *ch;
	char other[80], c;
	int fd, i;

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, h_listener_create(other, &attr, &second));
	fd = call_raw(other);
	ASSERT_GE(fd, 0);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-EAGAIN, h_channel_accept(second, self->m, NULL, &ch,
						    H_NOWAIT));
		EXPECT_EQ(-1, recv(fd, &c, 1, MSG_DONTWAIT));
	}
	close(fd);
	h_listener_destroy(second);
}

enum { FLOODERS = 4, FLOODED_CALLS = 10 };

/* In a child, until it is ended: clients that say what makes no sense. */
static void flood(const char *path)
{
	int fds[64], i;

	for (;;) {
		for (i = 0; i < 64; i++) {
			fds[i] = call_raw(path);
			if (fds[i] >= 0)
				send(fds[i], "x", 1, MSG_NOSIGNAL);
		}
		for (i = 0; i < 64; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	}
}

TEST_F(rendezvous, nonsense_without_end_does_not_hold_up_a_deadline)
{
	const struct h_listener_attr attr = { .flags = variant->flags };
	struct h_listener *second;
	pid_t pids[FLOODERS];
	struct h_channel *ch;
	int64_t begin;
	char other[80];
	int i;

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, h_listener_create(other, &attr, &second));
	for (i = 0; i < FLOODERS; i++) {
		pids[i] = ht_fork();
		ASSERT_GE(pids[i], 0);
		if (!pids[i])
			flood(other);
	}
	ht_sleep_ns(SECOND / 5);
	begin = ht_now_ns();
	for (i = 0; i < FLOODED_CALLS; i++) {
		EXPECT_EQ(-ETIMEDOUT, h_channel_accept(second, self->m, NULL,
						       &ch, SECOND / 1000));
	}
	begin = ht_now_ns() - begin;
	for (i = 0; i < FLOODERS; i++) {
		kill(pids[i], SIGKILL);
		ht_reap(pids[i]);
	}
	EXPECT_LT(begin, ht_patience_ns() / 6);
	h_listener_destroy(second);
}

TEST_F(rendezvous, who_was_sent_away_is_gone_although_a_child_has_it_open)
{
	const struct h_listener_attr attr = { .patience_ns = SECOND / 10 };
	struct h_listener *second;
	struct pollfd ready;
	struct h_channel *ch;
	char other[80], c;
	int fd, gate[2];
	pid_t pid;

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, h_listener_create(other, &attr, &second));
	ready = (struct pollfd) { .fd = h_listener_fd(second), .events = POLLIN };
	fd = call_raw(other);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pipe(gate));
	EXPECT_EQ(-EAGAIN, h_channel_accept(second, self->m, NULL, &ch,
					    H_NOWAIT));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(fd);
		close(gate[1]);
		_exit(ht_read_all(gate[0], &c, 1) ? 0 : 1);
	}
	ht_sleep_ns(SECOND / 5);
	EXPECT_EQ(-EAGAIN, h_channel_accept(second, self->m, NULL, &ch,
					    H_NOWAIT));
	close(fd);
	EXPECT_EQ(0, poll(&ready, 1, 50));
	close(gate[0]);
	close(gate[1]);
	ht_reap(pid);
	h_listener_destroy(second);
}

/* ---- children and those who fork them ---- */

/* Whoever holds it open still does so for ever. */
static bool sees_the_end(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	if (poll(&p, 1, (int)(ht_patience_ns() / HT_MS)) != 1)
		return false;
	return !recv(fd, &c, 1, 0) || errno == ECONNRESET;
}

static const char *nobody_listens(const char *path, const int *fds)
{
	struct h_listener *l;
	int fd;

	if (!sees_the_end(fds[0]))
		return "who was waiting does not see the end";
	if (!sees_the_end(fds[1]))
		return "who has called does not see the end";
	fd = call_raw(path);
	if (fd != -ECONNREFUSED && (*path == '@' || fd != -ENOENT))
		return "one can call still";
	close(fds[0]);
	close(fds[1]);
	if (h_listener_create(path, NULL, &l))
		return "the name is taken still";
	h_listener_destroy(l);
	return NULL;
}

TEST_F(rendezvous, a_child_does_not_go_on_listening)
{
	struct h_listener *second;
	struct h_channel *ch;
	int fds[2];
	char other[80];
	pid_t pid;

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, h_listener_create(other, NULL, &second));
	fds[0] = call_raw(other);
	ASSERT_GE(fds[0], 0);
	EXPECT_EQ(-EAGAIN, h_channel_accept(second, NULL, NULL, &ch, H_NOWAIT));
	fds[1] = call_raw(other);
	ASSERT_GE(fds[1], 0);
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		for (;;)
			pause();
	/* The child may not have got to do anything yet. */
	h_listener_destroy(second);
	EXPECT_NO(nobody_listens(other, fds));
	kill(pid, SIGKILL);
	ht_reap(pid);
}

TEST_F(rendezvous, what_a_child_destroys_is_its_own_copy)
{
	struct h_channel *ch;
	pid_t pid;
	int fd;

	fd = call_raw(self->path);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EAGAIN, h_channel_accept(self->listener, NULL, NULL, &ch,
					    H_NOWAIT));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (h_channel_accept(self->listener, NULL, NULL, &ch,
				     H_FOREVER) != -EBADF)
			_exit(1);
		h_listener_destroy(self->listener);
		_exit(0);
	}
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_EQ(-1, recv(fd, &pid, 1, MSG_DONTWAIT));
	close(fd);
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
}

/* It listens, has one client wait, and leaves a child behind, until @gate ends. */
static void listen_and_fork(const char *path, int tell, const int *gate)
{
	struct h_listener *l;
	struct pollfd p;
	struct h_channel *ch;
	char c;

	close(gate[1]);
	if (h_listener_create(path, NULL, &l) || ht_write_all(tell, "l", 1))
		_exit(1);
	p = (struct pollfd) { .fd = h_listener_fd(l), .events = POLLIN };
	if (poll(&p, 1, (int)(ht_patience_ns() / HT_MS)) != 1 ||
	    h_channel_accept(l, NULL, NULL, &ch, H_NOWAIT) != -EAGAIN)
		_exit(2);
	if (!fork()) {
		/* It is to live longer. */
		prctl(PR_SET_PDEATHSIG, 0);
		if (ht_write_all(tell, "f", 1))
			_exit(3);
		_exit(ht_read_all(gate[0], &c, 1) ? 0 : 4);
	}
	for (;;)
		pause();
}

TEST_F(rendezvous, a_child_of_who_was_killed_does_not_go_on_listening)
{
	int fds[2], gate[2], tell[2];
	char other[80], c;
	pid_t pid;

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_EQ(0, pipe(gate));
	ASSERT_EQ(0, pipe(tell));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		listen_and_fork(other, tell[1], gate);
	ASSERT_EQ(0, ht_read_all(tell[0], &c, 1));
	fds[0] = call_raw(other);
	ASSERT_GE(fds[0], 0);
	ASSERT_EQ(0, ht_read_all(tell[0], &c, 1));
	fds[1] = call_raw(other);
	ASSERT_GE(fds[1], 0);
	kill(pid, SIGKILL);
	ht_reap(pid);
	EXPECT_NO(nobody_listens(other, fds));
	close(gate[0]);
	close(gate[1]);
	close(tell[0]);
	close(tell[1]);
}

/* ---- without descriptors ---- */

/* Just @n of them can be had. */
static void leave_free(unsigned int n, struct rlimit *old)
{
	struct rlimit limit;
	int fd;

	getrlimit(RLIMIT_NOFILE, old);
	limit = *old;
	for (fd = 0; fcntl(fd, F_GETFD) >= 0 || n--; fd++)
		;
	limit.rlim_cur = (rlim_t)fd;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* In a child; with @n free descriptors, if there are as many as that. */
static pid_t begin_client(const char *path, uint32_t flags, unsigned int n)
{
	const struct h_channel_attr attr = { .flags = flags };
	pid_t pid = ht_fork();
	struct h_channel *ch;
	struct h_manager *m;
	struct h_dev *dev;
	struct rlimit old;
	int ret;

	if (pid)
		return pid;
	if (h_open(ht_device(), &dev) || h_manager_create(dev, NULL, &m))
		_exit(1);
	if (n != UINT_MAX)
		leave_free(n, &old);
	ret = h_channel_connect(m, path, &attr, &ch, ht_patience_ns() / 4);
	if (ret == -EMFILE && flags && !ht_is_explained(dev, ""))
		_exit(2);
	if (!ret)
		h_channel_close(ch, H_NOWAIT);
	_exit(-ret);
}

/* Also where no descriptor but that of the connection is needed: nobody is kept waiting. */
TEST_F(rendezvous, a_server_without_descriptors_says_so_at_both_ends)
{
	unsigned int enough = variant->flags ? 5 : 1, n;
	struct pollfd p = { .fd = h_listener_fd(self->listener),
			    .events = POLLIN };
	struct h_channel *ch;
	struct rlimit old;
	pid_t pid;
	int ret;

	for (n = 0; n <= 6; n++) {
		pid = begin_client(self->path, variant->flags, UINT_MAX);
		ASSERT_EQ(1, poll(&p, 1, 60000));
		leave_free(n, &old);
		ret = h_channel_accept(self->listener, self->m, NULL, &ch,
				       SECOND);
		setrlimit(RLIMIT_NOFILE, &old);
		/* Of those between, the close of an earlier round may give one back. */
		if (!n || n >= enough)
			EXPECT_EQ(n ? 0 : -EMFILE, ret) {
				TH_LOG("%u free", n);
			}
		EXPECT_TRUE(!ret || (ret == -EMFILE &&
				     ht_is_explained(self->dev, "")));
		/* Nobody took it: it waits, and is let in with the next try. */
		if (!n)
			ret = h_channel_accept(self->listener, self->m, NULL,
					       &ch, ht_patience_ns());
		EXPECT_EQ(ret ? EUSERS : 0, ht_reap(pid)) {
			TH_LOG("%u free", n);
		}
		if (!ret)
			h_channel_close(ch, H_NOWAIT);
	}
}

TEST_F(rendezvous, a_client_without_descriptors_says_so)
{
	unsigned int enough = variant->flags ? 3 : 1, n;
	struct h_channel *ch;
	pid_t pid;
	int ret;

	for (n = 0; n <= 6; n++) {
		pid = begin_client(self->path, variant->flags, n);
		do
			ret = h_channel_accept(self->listener, self->m, NULL,
					       &ch, SECOND / 20);
		while (ret == -ETIMEDOUT && !has_ended(pid));
		EXPECT_EQ(n < enough ? -ETIMEDOUT : 0, ret) {
			TH_LOG("%u free", n);
		}
		EXPECT_EQ(n < enough ? EMFILE : 0, ht_reap(pid)) {
			TH_LOG("%u free", n);
		}
		if (!ret)
			h_channel_close(ch, H_NOWAIT);
	}
}

/* What a client says that connects: its bytes, and the descriptors. */
struct saying {
	unsigned char bytes[512];
	size_t length;
	int fds[2];		/* -1: none */
};

static ssize_t hear(int fd, struct saying *s)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = { s->bytes, sizeof(s->bytes) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	s->fds[0] = -1;
	s->fds[1] = -1;
	n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	s->length = n > 0 ? (size_t)n : 0;
	if (n > 0 && CMSG_FIRSTHDR(&msg))
		memcpy(s->fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(s->fds));
	return n;
}

static void close_heard(struct saying *s)
{
	int i;

	for (i = 0; i < 2; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
}

static void say_with(int fd, const void *bytes, size_t length, const int *fds,
		     size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control = {};
	struct iovec iov = { (void *)bytes, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	/* To who takes none (EPERM) it is said without them. */
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 && errno == EPERM && count)
		say_with(fd, bytes, length, NULL, 0);
}

static void say(int fd, const struct saying *s)
{
	say_with(fd, s->bytes, s->length, s->fds, s->fds[0] < 0 ? 0 : 2);
}

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* What a stranger sent is closed by a thread of its own. */
static bool become_as_many(unsigned int files)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (open_files() != files)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/*
 * A client that has asked, and waits for an answer: what it said opens its slots for as
 * long as it is kept waiting. Its device is its own, so it takes no part in the rest.
 */
struct overheard {
	struct saying said;
	struct client client;
	pthread_t thread;
	char path[80];
	int fd;
};

static const char *overhear(const char *path, uint32_t flags,
			    struct overheard *o)
{
	int sock;

	*o = (struct overheard) {
		.client = { .path = o->path, .attr.flags = flags,
			    .own_device = true },
	};
	snprintf(o->path, sizeof(o->path), "%s.other", path);
	sock = listen_raw(o->path);
	if (sock < 0 || pthread_create(&o->thread, NULL, client, &o->client))
		return "cannot listen";
	o->fd = accept(sock, NULL, NULL);
	hear(o->fd, &o->said);
	close(sock);
	unlink(o->path);
	return o->said.length ? NULL : "nothing is said";
}

static const char *hang_up(struct overheard *o)
{
	close(o->fd);
	pthread_join(o->thread, NULL);
	close_heard(&o->said);
	return o->client.result == -ECONNRESET ? NULL :
	       "the client does not see that we hang up";
}

/* ---- what is on a card, and its check words ---- */

#define WHAT	12	/* in what is said: a request or a reply */
#define REPLY	2
#define CARD	40
#define CARD_BYTES 176
#define SAID	220	/* all of it */

/* The card: two seeds, each with a check word, then one over all of it. */
#define SEED	80
#define TICKET	8	/* in a seed, with a check word of its own */
#define LENGTH	40
#define ENTRIES	56
#define BUFFER	60
#define MORE	64

/* Behind both on the card. */
#define LIMIT	160
#define KIND	168

enum { CREDITS = 1 };	/* the second seed; the first one is of the stream */

static void put(unsigned char *p, uint64_t value, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (unsigned char)(value >> (8 * i));
}

/* The check word, so that what lies below it is looked at. */
static void sign(unsigned char *p, size_t n)
{
	uint32_t h = 2166136261u;
	size_t i;

	for (i = 0; i < n - 4; i++)
		h = (h ^ p[i]) * 16777619u;
	put(p + n - 4, h, 4);
}

static unsigned char *seed_in(struct saying *s, unsigned int seed)
{
	return s->bytes + CARD + (size_t)seed * SEED;
}

static void sign_card(struct saying *s)
{
	sign(s->bytes + CARD, CARD_BYTES);
	sign(s->bytes, s->length);
}

/* From the inside out. */
static void sign_all(struct saying *s)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sign(seed_in(s, i) + TICKET, H_TICKET_BYTES);
		sign(seed_in(s, i), SEED);
	}
	sign_card(s);
}

/* ---- clients and servers that say it ---- */

/* As h_channel_accept() says. */
static int offer(FIXTURE_DATA(rendezvous) *self, const struct saying *s,
		 int *fd, struct h_channel **ch)
{
	*fd = call_raw(self->path);
	if (*fd < 0)
		return -EIO;
	say(*fd, s);
	return h_channel_accept(self->listener, self->m, NULL, ch, H_NOWAIT);
}

/* Nobody is let in, and all of it is read. */
static const char *was_sent_away(int fd, int ret, struct h_channel *ch)
{
	char reply[512];

	if (!ret) {
		h_channel_close(ch, H_NOWAIT);
		return "it is let in";
	}
	if (ret != -EAGAIN)
		return "the server fails";
	return recv(fd, reply, sizeof(reply), MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN ? "it is not sent away" : NULL;
}

static const char *was_let_in(int fd, int ret, struct h_channel *ch)
{
	char reply[512];

	if (ret)
		return "it is not let in";
	h_channel_close(ch, H_NOWAIT);
	return recv(fd, reply, sizeof(reply), MSG_DONTWAIT) != SAID ?
	       "it is not answered" : NULL;
}

/* The server goes on with it as with any other. */
static const char *was_borne(int fd, int ret, struct h_channel *ch)
{
	static const unsigned char data[3000];
	struct h_message m;
	int i;

	if (ret)
		return was_sent_away(fd, ret, ch);
	for (i = 0; i < 4; i++) {
		ret = h_channel_send(ch, data, sizeof(data), H_NOWAIT);
		if (ret && ret != -EAGAIN && ret != -EPIPE && ret != -EMSGSIZE)
			return "sending fails in another way";
		ret = h_channel_receive(ch, &m, H_NOWAIT);
		if (ret != -EAGAIN && ret != -ECONNRESET)
			return "receiving fails in another way";
	}
	h_channel_close(ch, H_NOWAIT);
	return NULL;
}

/* No descriptor stays, whatever is made of it. */
static const char *is(const char *(*as_it_should)(int fd, int ret,
						  struct h_channel *ch),
		      FIXTURE_DATA(rendezvous) *self, const struct saying *s)
{
	unsigned int files = open_files();
	struct h_channel *ch = NULL;
	const char *complaint;
	int fd, ret;

	ret = offer(self, s, &fd, &ch);
	complaint = as_it_should(fd, ret, ch);
	close(fd);
	if (complaint)
		return complaint;
	return become_as_many(files) ? NULL : "a descriptor stays";
}

struct answer {
	int sock;
	const struct saying *says;
};

/* A server that says one thing, whatever it is asked. */
static void *answer(void *arg)
{
	struct answer *a = arg;
	int fd = accept(a->sock, NULL, NULL);
	struct saying asked;
	char c;

	hear(fd, &asked);
	say(fd, a->says);
	while (recv(fd, &c, 1, 0) > 0)
		;
	close_heard(&asked);
	close(fd);
	return NULL;
}

/* As h_channel_connect() to a server that says @s. */
static int ask(FIXTURE_DATA(rendezvous) *self, uint32_t flags,
	       const struct saying *s, struct h_channel **ch)
{
	const struct h_channel_attr attr = { .flags = flags };
	struct answer a = { .says = s };
	pthread_t thread;
	char other[80];
	int ret;

	snprintf(other, sizeof(other), "%s.other", self->path);
	a.sock = listen_raw(other);
	if (a.sock < 0 || pthread_create(&thread, NULL, answer, &a))
		return -EIO;
	ret = h_channel_connect(self->m, other, &attr, ch, ht_patience_ns());
	pthread_join(thread, NULL);
	close(a.sock);
	unlink(other);
	return ret;
}

/* ---- somebody else of the same manager, who must not notice anything ---- */

struct bystander {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *near;
	struct h_channel *far;
};

static int bystander_begin(struct bystander *b, struct h_manager *m)
{
	int err;

	err = h_open(ht_device(), &b->dev);
	if (!err)
		err = h_manager_create(b->dev, NULL, &b->m);
	return err ? err : h_channel_pair(m, b->m, NULL, &b->near, &b->far);
}

static const char *bystander_works(struct bystander *b, uint32_t i)
{
	struct h_message m;
	bool good;

	if (h_channel_send(b->near, &i, sizeof(i), ht_patience_ns()) ||
	    h_channel_receive(b->far, &m, ht_patience_ns()) != 0)
		return "somebody else is cut off";
	good = m.length == sizeof(i) && !memcmp(m.data, &i, sizeof(i));
	h_channel_release(b->far, &m);
	return good ? NULL : "somebody else gets something else";
}

static const char *bystander_end(struct bystander *b)
{
	h_channel_close(b->near, H_NOWAIT);
	h_channel_close(b->far, H_NOWAIT);
	if (h_manager_destroy(b->m))
		return "somebody else cannot end";
	h_close(b->dev);
	return NULL;
}

/* ---- requests ---- */

/* Of a request, nobody looks at these: a reply's status, and a gap. */
static bool is_looked_at(unsigned int at)
{
	return (at < 8 || at >= 12) && (at < 28 || at >= 32);
}

TEST_F(rendezvous, nonsense_is_sent_away)
{
	struct overheard o;
	uint64_t random = ht_seed();
	unsigned int i;

	ASSERT_NO(overhear(self->path, variant->flags, &o));
	ASSERT_EQ(SAID, o.said.length);
	ASSERT_NO(is(was_let_in, self, &o.said));
	/* Of any length, cut or grown. */
	for (i = 1; i < sizeof(o.said.bytes); i++) {
		struct saying s = o.said;

		s.length = i;
		if (i == SAID)
			continue;
		memset(s.bytes + SAID, 0, sizeof(s.bytes) - SAID);
		ASSERT_NO(is(was_sent_away, self, &s));
	}
	/* With any byte changed, with and without a good check word. */
	for (i = 0; i < SAID; i++) {
		struct saying s = o.said;

		s.bytes[i] ^= (unsigned char)(1 + ht_random(&random) % 255);
		ASSERT_NO(is(was_sent_away, self, &s));
		/* Of the head: the rest has check words of its own. */
		if (i >= CARD || !is_looked_at(i))
			continue;
		sign(s.bytes, SAID);
		ASSERT_NO(is(was_sent_away, self, &s)) {
			TH_LOG("byte %u", i);
		}
	}
	for (i = 0; i < 300; i++) {
		struct saying s = { .fds = { -1, -1 } };

		s.length = 1 + ht_random(&random) % sizeof(s.bytes);
		ht_fill(s.bytes, s.length, ht_random(&random));
		ASSERT_NO(is(was_sent_away, self, &s));
	}
	ASSERT_NO(is(was_let_in, self, &o.said));
	ASSERT_NO(hang_up(&o));
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
}

/*
 * What there is in a seed, but for the check words. What names another place, or a key
 * that does not fit, is the business of who says so: nobody sends him anything.
 */
static const struct field {
	const char *what;
	unsigned int at;
	unsigned int bytes;
	bool its_own;		/* business of who says so */
} fields[] = {
	{ "the magic", 0, 4, false },
	{ "the version", 4, 1, false },
	{ "the kind", 5, 1, false },
	{ "a gap", 6, 2, false },
	{ "the ticket's magic", TICKET, 4, false },
	{ "the ticket's version", TICKET + 4, 4, false },
	{ "the host", TICKET + 8, 4, true },
	{ "the slot", TICKET + 12, 4, true },
	{ "the key", TICKET + 16, 8, true },
	{ "where it begins", TICKET + 24, 8, true },
	{ "how long it is", LENGTH, 8, false },
	{ "the metadata entry", TICKET + 40, 4, true },
	{ "the buffers", ENTRIES, 4, false },
	{ "their size", BUFFER, 4, false },
	{ "what other protocols need", MORE, 8, true },
	{ "another gap", MORE + 8, 4, false },
};

/* All that agrees with itself, and still makes no sense. */
static const struct shape {
	unsigned int seed;
	uint64_t entries;
	uint64_t buffer;
} shapes[] = {
	{ 0, 0, 0 },
	{ 0, 16, 0 },
	{ 0, 0, 4096 },
	{ 0, 1, 4096 },
	{ 0, 2048, 4096 },
	{ 0, 3, 4096 },
	{ 0, 16, 64 },
	{ 0, 16, 2 << 20 },
	{ 0, 16, 3000 },
	{ CREDITS, 3, 128 },
	{ CREDITS, 8, 128 },
	{ CREDITS, 4, 64 },
	{ CREDITS, 4, 256 },
};

static void reshape(struct saying *s, const struct shape *shape)
{
	unsigned char *seed = seed_in(s, shape->seed);

	put(seed + ENTRIES, shape->entries, 4);
	put(seed + BUFFER, shape->buffer, 4);
	put(seed + LENGTH, (shape->entries + shape->seed) * shape->buffer, 8);
	sign_all(s);
}

/* Byte @at of those fields that are of whom they are, in both seeds, one after the other. */
static const struct field *next_spoilt(const struct saying *good, bool its_own,
				       unsigned int *at, struct saying *s,
				       uint64_t *random)
{
	for (; *at < 2 * SEED; ++*at) {
		unsigned int in_seed = *at % SEED, i;

		for (i = 0; i < ARRAY_SIZE(fields); i++) {
			const struct field *f = &fields[i];

			if (f->its_own != its_own || in_seed - f->at >= f->bytes)
				continue;
			*s = *good;
			s->bytes[CARD + (*at)++] ^=
				(unsigned char)(1 + ht_random(random) % 255);
			sign_all(s);
			return f;
		}
	}
	return NULL;
}

TEST_F(rendezvous, seeds_that_make_no_sense_are_sent_away)
{
	struct overheard o;
	struct saying s;
	const struct field *f;
	uint64_t random = ht_seed();
	unsigned int at = 0, i;

	ASSERT_NO(overhear(self->path, variant->flags, &o));
	s = o.said;
	sign_all(&s);
	ASSERT_NO(is(was_let_in, self, &s));
	while ((f = next_spoilt(&o.said, false, &at, &s, &random))) {
		ASSERT_NO(is(was_sent_away, self, &s)) {
			TH_LOG("seed %u: %s", (at - 1) / SEED, f->what);
		}
	}
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		s = o.said;
		reshape(&s, &shapes[i]);
		ASSERT_NO(is(was_sent_away, self, &s)) {
			TH_LOG("shape %u", i);
		}
	}
	for (i = 0; i < 4; i++) {
		s = o.said;
		s.bytes[CARD + KIND + i] ^= 1;
		sign_card(&s);
		ASSERT_NO(is(was_sent_away, self, &s));
	}
	ASSERT_NO(is(was_let_in, self, &o.said));
	ASSERT_NO(hang_up(&o));
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
}

/* Where nothing but the check word tells that something was damaged on its way. */
TEST_F(rendezvous, each_check_word_is_looked_at)
{
	struct overheard o;
	struct saying s;
	unsigned int i;

	ASSERT_NO(overhear(self->path, variant->flags, &o));
	for (i = 0; i < 2; i++) {
		s = o.said;
		seed_in(&s, i)[MORE] ^= 1;
		sign_card(&s);
		ASSERT_NO(is(was_sent_away, self, &s));
		sign(seed_in(&s, i), SEED);
		sign(s.bytes, SAID);
		ASSERT_NO(is(was_sent_away, self, &s));
		sign_card(&s);
		ASSERT_NO(is(was_let_in, self, &s));
		s = o.said;
		seed_in(&s, i)[TICKET + H_TICKET_BYTES - 1] ^= 1;
		sign(seed_in(&s, i), SEED);
		sign_card(&s);
		ASSERT_NO(is(was_sent_away, self, &s));
	}
	ASSERT_NO(hang_up(&o));
}

TEST_F(rendezvous, seeds_of_other_places_harm_nobody_else)
{
	struct overheard o;
	struct saying s;
	struct bystander b;
	const struct field *f;
	uint64_t random = ht_seed();
	unsigned int at = 0, i;

	ASSERT_EQ(0, bystander_begin(&b, self->m));
	ASSERT_NO(overhear(self->path, variant->flags, &o));
	for (i = 0; i < 8; i++) {
		s = o.said;
		put(s.bytes + CARD + LIMIT, i ? UINT64_MAX << (8 * i) : i, 8);
		sign_card(&s);
		ASSERT_NO(is(was_borne, self, &s));
		ASSERT_NO(bystander_works(&b, i));
	}
	while ((f = next_spoilt(&o.said, true, &at, &s, &random))) {
		ASSERT_NO(is(was_borne, self, &s)) {
			TH_LOG("seed %u: %s", (at - 1) / SEED, f->what);
		}
		ASSERT_NO(bystander_works(&b, at)) {
			TH_LOG("seed %u: %s", (at - 1) / SEED, f->what);
		}
	}
	ASSERT_NO(hang_up(&o));
	ASSERT_NO(bystander_end(&b));
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
}

#define CALLERS	100

/* Good requests, but for what the card says. */
static int call_with_bad_card(const char *path, const struct saying *said)
{
	struct saying s = *said;
	int fd = call_raw(path);

	s.bytes[CARD] ^= 1;
	sign_all(&s);
	if (fd >= 0)
		say(fd, &s);
	return fd;
}

static int count_answered(const int *fds)
{
	struct pollfd p[CALLERS];
	int i;

	for (i = 0; i < CALLERS; i++)
		p[i] = (struct pollfd) { .fd = fds[i], .events = POLLIN };
	return poll(p, CALLERS, 0);
}

TEST_F(rendezvous, who_does_not_wait_sends_only_so_many_away)
{
	const struct h_listener_attr attr = {
		.flags = variant->flags,
		.patience_ns = INT64_MAX,
	};
	struct h_listener *second;
	struct h_channel *ch;
	struct overheard o;
	int fds[CALLERS], i, n;
	char other[80];

	snprintf(other, sizeof(other), "%s.other", self->path);
	ASSERT_NO(overhear(self->path, variant->flags, &o));
	ASSERT_EQ(0, h_listener_create(other, &attr, &second));
	for (i = 0; i < CALLERS; i++) {
		fds[i] = call_with_bad_card(other, &o.said);
		ASSERT_GE(fds[i], 0);
	}
	EXPECT_EQ(-EAGAIN, h_channel_accept(second, self->m, NULL, &ch,
					    H_NOWAIT));
	n = count_answered(fds);
	EXPECT_GT(n, 0);
	EXPECT_LT(n, CALLERS);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(-EAGAIN, h_channel_accept(second, self->m, NULL, &ch,
						    H_NOWAIT));
	}
	EXPECT_EQ(CALLERS, count_answered(fds));
	for (i = 0; i < CALLERS; i++)
		close(fds[i]);
	EXPECT_NO(hang_up(&o));
	h_listener_destroy(second);
}

/* With other descriptors than its own, however many. */
static const char *offer_with(FIXTURE_DATA(rendezvous) *self,
			      const struct saying *s, const int *fds,
			      size_t count, bool good)
{
	unsigned int files = open_files();
	int fd = call_raw(self->path), ret;
	struct h_channel *ch = NULL;
	const char *complaint;

	say_with(fd, s->bytes, s->length, fds, count);
	ret = h_channel_accept(self->listener, self->m, NULL, &ch, H_NOWAIT);
	complaint = good ? was_let_in(fd, ret, ch) : was_sent_away(fd, ret, ch);
	close(fd);
	return complaint || become_as_many(files) ? complaint :
						    "a descriptor stays";
}

TEST_F(rendezvous, descriptors_of_something_else_are_sent_away)
{
	bool tickets = variant->flags & H_CONNECT_TICKETS;
	struct overheard o;
	struct saying bad;
	int fds[8], i;

	ASSERT_NO(overhear(self->path, variant->flags, &o));
	bad = o.said;
	bad.bytes[CARD] ^= 1;
	sign_all(&bad);
	for (i = 0; i < 8; i++)
		fds[i] = open("/dev/null", O_RDWR);
	for (i = 0; i < 8; i++) {
		/* Without tickets, nobody takes them. */
		ASSERT_NO(offer_with(self, &o.said, fds, (size_t)i, !tickets)) {
			TH_LOG("%d of them", i);
		}
		ASSERT_NO(offer_with(self, &bad, fds, (size_t)i, false));
	}
	for (i = 0; tickets && i < 3; i++) {
		/* One of its own, or both, the other way round. */
		const int mixed[][2] = {
			{ o.said.fds[0], fds[0] },
			{ fds[0], o.said.fds[1] },
			{ o.said.fds[1], o.said.fds[0] },
		};

		ASSERT_NO(offer_with(self, &o.said, mixed[i], 2, false)) {
			TH_LOG("mixed %d", i);
		}
	}
	for (i = 0; i < 8; i++)
		close(fds[i]);
	ASSERT_NO(is(was_let_in, self, &o.said));
	ASSERT_NO(hang_up(&o));
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
}

/* ---- what is slow to close ---- */

/* A socket that lingers until it could send all that it has to, or @hold is closed. */
static int lingering(int *hold)
{
	const struct linger linger = {
		.l_onoff = 1,
		.l_linger = (int)(ht_patience_ns() / 4 / SECOND),
	};
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	static const char data[65536];
	socklen_t n = sizeof(a);
	int fd, small = 4096, left = 0;

	*hold = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(*hold, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(*hold, (struct sockaddr *)&a, n) || listen(*hold, 1) ||
	    getsockname(*hold, (struct sockaddr *)&a, &n) ||
	    connect(fd, (struct sockaddr *)&a, n))
		return -1;
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) ||
	    ioctl(fd, SIOCOUTQ, &left) || !left)
		return -1;
	return fd;
}

static bool something_lingers(void)
{
	int hold, fd = lingering(&hold);

	close(hold);
	close(fd);
	return fd >= 0;
}

/* Nonsense, with so many descriptors: the last is @slow, which is nobody else's then. */
static void say_slow(int fd, size_t count, int slow)
{
	int fds[8] = {};

	fds[count - 1] = slow;
	say_with(fd, "x", 1, fds, count);
	close(slow);
}

static bool took_long(int64_t begin)
{
	return ht_now_ns() - begin > ht_patience_ns() / 20;
}

static void *fork_meanwhile(void *arg)
{
	const char **complaint = arg;
	int64_t begin;
	pid_t pid;

	ht_sleep_ns(SECOND / 10);
	begin = ht_now_ns();
	pid = fork();
	if (!pid)
		_exit(0);
	if (took_long(begin))
		*complaint = "fork() had to wait";
	return pid < 0 || ht_reap(pid) ? "no child" : NULL;
}

static const char *accept_slow(struct h_listener *l, struct h_manager *m)
{
	const char *complaint = NULL;
	struct h_channel *ch;
	pthread_t thread;
	int64_t begin;
	void *failed;
	int i;

	if (pthread_create(&thread, NULL, fork_meanwhile, &complaint))
		return "no thread";
	begin = ht_now_ns();
	for (i = 0; i < 20; i++) {
		if (h_channel_accept(l, m, NULL, &ch, H_NOWAIT) != -EAGAIN)
			return "somebody is there";
		ht_sleep_ns(SECOND / 100);
	}
	if (took_long(begin))
		return "who accepts had to wait";
	pthread_join(thread, &failed);
	return failed ? failed : complaint;
}

/* Not even the kernel helps. @heard: somebody accepts; else the listener goes before that. */
static const char *is_slow(FIXTURE_DATA(rendezvous) *self, struct h_listener_attr *attr,
			   size_t count, bool heard)
{
	const char *complaint = NULL;
	struct h_listener *l;
	int64_t begin;
	char other[80];
	int fd, hold;

	snprintf(other, sizeof(other), "%s.other", self->path);
	old_kernel = true;
	if (h_listener_create(other, attr, &l))
		return "it cannot listen";
	old_kernel = false;
	fd = call_raw(other);
	say_slow(fd, count, lingering(&hold));
	if (heard)
		complaint = accept_slow(l, self->m);
	begin = ht_now_ns();
	h_listener_destroy(l);
	if (!complaint && took_long(begin))
		complaint = "who listens no more had to wait";
	close(hold);
	close(fd);
	return complaint;
}

TEST_F(rendezvous, what_is_slow_to_close_holds_up_nobody)
{
	struct h_listener_attr attr = { .flags = variant->flags };
	unsigned int files = open_files();
	size_t count;

	if (!something_lingers())
		SKIP(return, "needs TCP on the loopback interface");
	for (count = 1; count <= 4; count++) {
		ASSERT_NO(is_slow(self, &attr, count, true)) {
			TH_LOG("%zu descriptors", count);
		}
	}
	EXPECT_TRUE(become_as_many(files));
}

TEST_F(rendezvous, who_is_not_on_the_list_holds_up_nobody)
{
	static const uid_t nobody = NOBODY;
	struct h_listener_attr attr = {
		.flags = variant->flags,
		.uids = &nobody,
		.uid_count = 1,
	};
	unsigned int files = open_files();

	if (geteuid() == NOBODY || !something_lingers())
		SKIP(return, "needs another user, and TCP on the loopback interface");
	ASSERT_NO(is_slow(self, &attr, 1, true));
	EXPECT_TRUE(become_as_many(files));
}

TEST_F(rendezvous, who_was_never_heard_does_not_hold_up_the_end)
{
	struct h_listener_attr attr = { .flags = variant->flags };
	unsigned int files = open_files();

	if (!something_lingers())
		SKIP(return, "needs TCP on the loopback interface");
	ASSERT_NO(is_slow(self, &attr, 1, false));
	EXPECT_TRUE(become_as_many(files));
}

TEST_F(rendezvous, who_takes_no_descriptors_is_sent_none)
{
	struct iovec iov = { "x", 1 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {
		.align = { .cmsg_len = CMSG_LEN(sizeof(int)),
			   .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
	};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd = call_raw(self->path), on;
	socklen_t n = sizeof(on);

	if (getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, &n))
		SKIP(return, "needs Linux 6.16");
	EXPECT_EQ(variant->flags ? 1 : -1, sendmsg(fd, &msg, MSG_NOSIGNAL));
	close(fd);
}

struct slow_server {
	int sock;
	size_t count;
	int slow;
};

static void *answer_slow(void *arg)
{
	struct slow_server *s = arg;
	int fd = accept(s->sock, NULL, NULL);
	struct saying said;

	hear(fd, &said);
	close_heard(&said);
	say_slow(fd, s->count, s->slow);
	/* Another one, which nobody reads. */
	say_with(fd, "y", 1, NULL, 0);
	close(fd);
	return NULL;
}

TEST_F(rendezvous, who_answers_what_is_slow_to_close_holds_up_nobody)
{
	const struct h_channel_attr attr = { .flags = variant->flags };
	unsigned int files = open_files();
	struct slow_server s;
	struct h_channel *ch;
	pthread_t thread;
	int64_t begin;
	char other[80];
	int hold;

	if (!something_lingers())
		SKIP(return, "needs TCP on the loopback interface");
	snprintf(other, sizeof(other), "%s.other", self->path);
	for (s.count = 1; s.count <= 3; s.count++) {
		s.sock = listen_raw(other);
		ASSERT_GE(s.sock, 0);
		s.slow = lingering(&hold);
		ASSERT_EQ(0, pthread_create(&thread, NULL, answer_slow, &s));
		old_kernel = true;
		begin = ht_now_ns();
		EXPECT_EQ(-EPROTO, h_channel_connect(self->m, other, &attr, &ch,
						     ht_patience_ns()));
		EXPECT_FALSE(took_long(begin)) {
			TH_LOG("%zu descriptors", s.count);
		}
		old_kernel = false;
		close(hold);
		pthread_join(thread, NULL);
		close(s.sock);
		unlink(other);
	}
	EXPECT_TRUE(become_as_many(files));
}

/* ---- replies that nobody reads ---- */

enum { IN_FLIGHT = 100, UNREAD_OF_USER = 32, REPLAYED = 40 };

/* Descriptors on their way to nobody: more than the limit will be. */
static int fill_flight(void)
{
	struct saying s = { .length = 1, .fds = { 0, 0 } };
	int pair[2], i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return -errno;
	for (i = 0; i < IN_FLIGHT / 2; i++)
		say(pair[0], &s);
	return 0;
}

/* The exit status tells the step. Who has no rights has limits. */
static int serve_in_full_flight(const char *path)
{
	const struct h_listener_attr attr = { .flags = H_CONNECT_TICKETS };
	struct rlimit limit = { IN_FLIGHT / 2, IN_FLIGHT / 2 };
	struct h_listener *l;
	struct h_channel *ch;
	struct h_manager *m;
	struct h_dev *dev;
	pid_t pid;
	int ret;

	if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
		return 1;
	ht_stay_child();
	if (h_open(ht_device(), &dev) || h_manager_create(dev, NULL, &m) ||
	    h_listener_create(path, &attr, &l))
		return 2;
	pid = begin_client(path, H_CONNECT_TICKETS, UINT_MAX);
	if (fill_flight() || setrlimit(RLIMIT_NOFILE, &limit))
		return 3;
	ret = h_channel_accept(l, m, NULL, &ch, ht_patience_ns() / 8);
	if (ret != -ETOOMANYREFS)
		return ret ? 4 : 5;
	if (!ht_is_explained(dev, ""))
		return 6;
	h_listener_destroy(l);
	return ht_reap(pid) == EUSERS ? 0 : 7;
}

TEST_F(rendezvous, a_server_that_can_send_no_descriptors_says_so)
{
	char other[80];
	pid_t pid;

	if (!variant->flags)
		SKIP(return, "none are sent");
	snprintf(other, sizeof(other), "@hamlyn-test.%d.flight", getpid());
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(serve_in_full_flight(other));
	EXPECT_EQ(0, ht_reap(pid));
}

/* A user who says what another one said, and does not listen. */
static void replay(const char *path, const struct saying *said, int tell, int go)
{
	int fds[2 * REPLAYED], i;
	char c[512];

	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	ht_stay_child();
	for (i = 0; i < REPLAYED; i++) {
		fds[i] = call_raw(path);
		say(fds[i], said);
	}
	if (ht_write_all(tell, "", 1) || ht_read_all(go, c, 1))
		_exit(2);
	for (i = 0; i < REPLAYED; i++)
		recv(fds[i], c, sizeof(c), 0);
	for (; i < 2 * REPLAYED; i++) {
		fds[i] = call_raw(path);
		say(fds[i], said);
	}
	if (ht_write_all(tell, "", 1))
		_exit(3);
	for (;;)
		pause();
}

static int count_let_in(struct h_listener *l, struct h_manager *m)
{
	struct h_channel *ch;
	int64_t timeout;
	int n = 0, ret;

	/* Those who may must come, however slow it is; that nobody more does takes a moment. */
	for (;;) {
		timeout = n < UNREAD_OF_USER ? ht_patience_ns() : SECOND / 5;
		ret = h_channel_accept(l, m, NULL, &ch, timeout);
		if (ret)
			break;
		h_channel_close(ch, H_NOWAIT);
		n++;
	}
	return ret == -ETIMEDOUT ? n : ret;
}

TEST_F(rendezvous, who_does_not_read_replies_gets_only_so_many)
{
	int tell[2], go[2];
	struct overheard o;
	unsigned int files;
	struct h_channel *ch;
	pid_t pid;
	char c;

	if (!variant->flags)
		SKIP(return, "they have no descriptors");
	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_NO(overhear(self->path, variant->flags, &o));
	ASSERT_EQ(0, pipe(tell));
	ASSERT_EQ(0, pipe(go));
	files = open_files();
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		replay(self->path, &o.said, tell[1], go[0]);
	ASSERT_EQ(0, ht_read_all(tell[0], &c, 1));
	EXPECT_EQ(UNREAD_OF_USER, count_let_in(self->listener, self->m));
	EXPECT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
	/* It reads: then they are forgotten. */
	ASSERT_EQ(0, ht_write_all(go[1], "", 1));
	ASSERT_EQ(0, ht_read_all(tell[0], &c, 1));
	EXPECT_EQ(UNREAD_OF_USER, count_let_in(self->listener, self->m));
	kill(pid, SIGKILL);
	ht_reap(pid);
	EXPECT_EQ(-EAGAIN, h_channel_accept(self->listener, self->m, NULL, &ch,
					    H_NOWAIT));
	EXPECT_TRUE(become_as_many(files));
	ASSERT_NO(hang_up(&o));
}

/* ---- replies ---- */

TEST_F(rendezvous, bad_servers_do_no_harm)
{
	static const struct {
		size_t length;		/* of the reply; 0: none */
		int flip;		/* a byte to be changed, or -1 */
		unsigned char by;
		bool sign;
		bool hang_up;
		int result;
	} bad[] = {
		{ 0, -1, 0, false, true, -ECONNRESET },
		{ 0, -1, 0, false, false, -ETIMEDOUT },
		{ 1, -1, 0, false, false, -EPROTO },
		{ SAID, -1, 0, false, false, -EPROTO },	/* its own request */
		{ SAID, 4, 3, false, false, -EPROTO },
		{ SAID, 4, 3, true, false, -EPROTO },
		{ SAID, WHAT, 3, false, false, -EPROTO },
		{ SAID, WHAT, 1, true, false, -EPROTO },
		{ SAID, WHAT, 3, true, false, 0 },	/* it talks to itself */
		{ 512, -1, 0, false, false, -EPROTO },
	};
	const struct h_channel_attr attr = { .flags = variant->flags };
	unsigned int i;
	char other[80];

	snprintf(other, sizeof(other), "%s.other", self->path);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct h_channel *ch = NULL;
		struct saying s = {};
		pid_t pid;
		int sock = listen_raw(other);

		ASSERT_GE(sock, 0);
		pid = ht_fork();
		if (!pid) {
			int fd = accept(sock, NULL, NULL);

			hear(fd, &s);
			if (bad[i].flip >= 0)
				s.bytes[bad[i].flip] ^= bad[i].by;
			if (bad[i].sign)
				sign(s.bytes, SAID);
			s.length = bad[i].length;
			if (bad[i].length)
				say(fd, &s);
			if (!bad[i].hang_up)
				pause();
			_exit(0);
		}
		EXPECT_EQ(bad[i].result,
			  h_channel_connect(self->m, other, &attr, &ch,
					    bad[i].result == -ETIMEDOUT ?
					    SECOND / 2 : ht_patience_ns())) {
			TH_LOG("case %u", i);
		}
		if (ch)
			h_channel_close(ch, H_NOWAIT);
		kill(pid, SIGKILL);
		ht_reap(pid);
		close(sock);
		unlink(other);
	}
}

/* What another client asked, as if it were the server's reply. */
static void make_reply(struct saying *s)
{
	s->bytes[WHAT] = REPLY;
	sign_all(s);
}

TEST_F(rendezvous, seeds_of_a_server_that_make_no_sense_are_refused)
{
	struct overheard o;
	struct saying s;
	struct h_channel *ch;
	const struct field *f;
	uint64_t random = ht_seed();
	unsigned int at = 0, i;

	ASSERT_NO(overhear(self->path, variant->flags, &o));
	make_reply(&o.said);
	ASSERT_EQ(0, ask(self, variant->flags, &o.said, &ch));
	h_channel_close(ch, H_NOWAIT);
	while ((f = next_spoilt(&o.said, false, &at, &s, &random))) {
		ASSERT_EQ(-EPROTO, ask(self, variant->flags, &s, &ch)) {
			TH_LOG("seed %u: %s", (at - 1) / SEED, f->what);
		}
	}
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		s = o.said;
		reshape(&s, &shapes[i]);
		ASSERT_EQ(-EPROTO, ask(self, variant->flags, &s, &ch)) {
			TH_LOG("shape %u", i);
		}
	}
	/* Also what it says beside the seeds; but for a gap, and the kind: the card's counts. */
	for (i = 0; i < CARD; i++) {
		s = o.said;
		s.bytes[i] ^= (unsigned char)(1 + ht_random(&random) % 255);
		sign(s.bytes, SAID);
		if ((i >= 16 && i < 20) || (i >= 28 && i < 32))
			continue;
		ASSERT_NE(0, ask(self, variant->flags, &s, &ch)) {
			TH_LOG("byte %u", i);
		}
	}
	ASSERT_EQ(0, ask(self, variant->flags, &o.said, &ch));
	h_channel_close(ch, H_NOWAIT);
	ASSERT_NO(hang_up(&o));
}

TEST_F(rendezvous, seeds_of_a_server_elsewhere_harm_nobody_else)
{
	struct overheard o;
	struct saying s;
	struct bystander b;
	struct h_channel *ch;
	const struct field *f;
	uint64_t random = ht_seed();
	unsigned int at = 0;

	ASSERT_EQ(0, bystander_begin(&b, self->m));
	ASSERT_NO(overhear(self->path, variant->flags, &o));
	make_reply(&o.said);
	while ((f = next_spoilt(&o.said, true, &at, &s, &random))) {
		int ret = ask(self, variant->flags, &s, &ch);

		if (ret) {
			ASSERT_TRUE(ret == -EPROTO || ret == -ECONNRESET) {
				TH_LOG("%d: %s", ret, f->what);
			}
		} else {
			ASSERT_NO(was_borne(-1, 0, ch)) {
				TH_LOG("%s", f->what);
			}
		}
		ASSERT_NO(bystander_works(&b, at));
	}
	ASSERT_NO(hang_up(&o));
	ASSERT_NO(bystander_end(&b));
}

/* ---- the dead ----------------------------------------------------------- */

struct victim {
	struct h_channel *channel;
	int64_t told;
	int result;
};

static void *wait_for_message(void *arg)
{
	struct victim *v = arg;
	struct h_message m;

	v->result = h_channel_receive(v->channel, &m, 30 * SECOND);
	v->told = ht_now_ns();
	return NULL;
}

static void *send_for_ever(void *arg)
{
	struct victim *v = arg;

	do
		v->result = h_channel_send(v->channel, "x", 1, 30 * SECOND);
	while (!v->result);
	v->told = ht_now_ns();
	return NULL;
}

/* Whoever was accepted and never says a word is known to be dead as well. */
TEST_F(rendezvous, who_is_killed_is_told_at_once)
{
	const struct h_channel_attr attr = { .flags = variant->flags };
	struct victim v[2] = {};
	pthread_t thread[2];
	int64_t killed;
	pid_t pid;

	pid = ht_fork();
	if (!pid) {
		struct h_channel *ch;
		struct h_manager *m;
		struct h_dev *dev;

		if (!h_open(ht_device(), &dev) &&
		    !h_manager_create(dev, NULL, &m))
			h_channel_connect(m, self->path, &attr, &ch,
					  60 * SECOND);
		for (;;)
			pause();
	}
	ASSERT_EQ(0, h_channel_accept(self->listener, self->m, NULL,
				      &v[0].channel, 60 * SECOND));
	v[1].channel = v[0].channel;
	ASSERT_EQ(0, pthread_create(&thread[0], NULL, wait_for_message, &v[0]));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, send_for_ever, &v[1]));
	ht_sleep_ns(50 * HT_MS);
	killed = ht_now_ns();
	kill(pid, SIGKILL);
	ht_reap(pid);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	EXPECT_EQ(-ECONNRESET, v[0].result);
	EXPECT_EQ(-EPIPE, v[1].result);
	EXPECT_GT(killed + ht_patience_ns() / 20, v[0].told);
	EXPECT_GT(killed + ht_patience_ns() / 20, v[1].told);
	EXPECT_EQ(-EPIPE, h_channel_close(v[0].channel, SECOND));
}

TEST_F(rendezvous, who_dies_in_the_middle_of_connecting_leaves_nothing)
{
	unsigned int files, i;

	for (i = 0; i < 20; i++) {
		struct h_channel *ch;
		int ret;
		pid_t pid;

		files = open_files();
		pid = ht_fork();
		if (!pid) {
			struct client c = {
				.path = self->path,
				.attr.flags = variant->flags,
				.own_device = true,
			};

			client(&c);
			_exit(0);
		}
		ht_sleep_ns((int64_t)i * 2 * HT_MS);
		kill(pid, SIGKILL);
		ht_reap(pid);
		ret = h_channel_accept(self->listener, self->m, NULL, &ch,
				       H_NOWAIT);
		EXPECT_TRUE(!ret || ret == -EAGAIN);
		if (!ret)
			h_channel_close(ch, H_NOWAIT);
		EXPECT_TRUE(become_as_many(files));
	}
	ASSERT_NO(good_one_is_let_in(self->listener, self->path, self->m,
				     variant->flags));
}

TEST_HARNESS_MAIN
