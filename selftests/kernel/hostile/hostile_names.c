// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names, and calls to them, attacked: by another host, which says what it likes; by users with
 * subordinate uids, or crowds of descriptors; and by everybody who dies at any point. As root,
 * kernel device only.
 */
#include "kselftest_harness.h"
#include "calls.h"
#include "far_host.h"
#include "hostile.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NEED_ROOT	"as root, kernel device"
#define NO_CONTAINER	77
#define PATIENT_MS	120000
#define OF_HOST		256	/* calls that wait at a name, of a host */
#define OF_USER		64	/* and of a user */
#define CALLS		256	/* of a user */
#define CALLS_MOST	16384	/* of a host */
#define NAMES		(CALLS_MOST / OF_HOST)
#define FILLING		3500	/* calls of 300 bytes */
#define SUBUIDS		16
#define FIRST_SUBUID	3000000
#define NAMES_FEATURE	1

/* Frames, and errors in ANSWER. */
enum { DATA = 2, PING, PONG, WATCH, UNWATCH, GONE, BYE, CALL, ANSWER, CANCEL };
enum { ANSWERED, NO_NAME, FULL, HUNG_UP };

FIXTURE(hostile_names) {
	struct hosts h;
	struct far far;		/* host 1, if the test makes it one */
	uint32_t packet_size;
	bool there;
};

FIXTURE_SETUP(hostile_names)
{
	const struct rlimit many = { 40000, 40000 };
	struct hamlyn_query query;
	int fd;

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &many));
	self->far.fd = -1;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	ASSERT_EQ(0, hosts_begin(&self->h));
	fd = raw_open(&self->h.host[1]);
	ASSERT_EQ(0, ht_raw_query(fd, &query));
	ASSERT_EQ(0, close(fd));
	self->packet_size = query.packet_size;
	self->there = true;
}

FIXTURE_TEARDOWN(hostile_names)
{
	if (!self->there)
		return;
	if (self->far.fd >= 0)
		close(self->far.fd);
	EXPECT_EQ(0, hosts_end(&self->h));
}

#define NEED_HOSTS() do { if (!self->there) SKIP(return, NEED_ROOT); } while (0)

static struct host *near(FIXTURE_DATA(hostile_names) *self)
{
	return &self->h.host[0];
}

static struct host *far(FIXTURE_DATA(hostile_names) *self)
{
	return &self->h.host[1];
}

/* ---- a host that says what it likes: it is host 1 now ---- */

static int become_host(FIXTURE_DATA(hostile_names) *self)
{
	return far_begin(&self->far, &self->h, near(self), far(self), self->packet_size,
			 NAMES_FEATURE);
}

static int say_call(struct far *f, uint32_t id, uint32_t user, uint64_t share, const char *name)
{
	uint8_t body[128], *p = body;
	size_t n = strlen(name);

	p = far_put(p, id, 4);
	p = far_put(p, user, 4);
	p = far_put(p, n, 2);
	p = far_put(p, 0, 2);
	p = far_put(p, share, 8);
	memcpy(p, name, n);
	return far_say(f, CALL, body, (uint32_t)(p + n - body));
}

static int say_answer(struct far *f, uint32_t id, uint32_t status, uint32_t user, const char *said)
{
	uint8_t body[128], *p = body;
	size_t n = strlen(said);

	p = far_put(p, id, 4);
	p = far_put(p, status, 4);
	p = far_put(p, user, 4);
	memcpy(p, said, n);
	return far_say(f, ANSWER, body, (uint32_t)(p + n - body));
}

static int say_id(struct far *f, uint8_t type, uint32_t id)
{
	uint8_t body[8];

	far_put(far_put(body, id, 4), 0, 4);
	return far_say(f, type, body, sizeof(body));
}

/* All that was said before has been taken. Return: the answers that came, or an error. */
static int sync_with(struct far *f)
{
	const uint8_t stamp[8] = "a stamp";
	int answers = 0, ret = far_say(f, PING, stamp, sizeof(stamp));

	while (!ret) {
		ret = far_hear(f);
		if (!ret && f->type == PONG)
			return answers;
		answers += f->type == ANSWER;
	}
	return ret;
}

static bool has_calls(int name)
{
	struct pollfd p = { .fd = name, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static bool loses_its_calls(int name)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (has_calls(name))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* By as many users as it invents, at so many names that all of them wait. */
static int call_all(struct far *f, const int *name)
{
	char text[16];
	uint32_t id;
	int ret = 0;

	for (id = 0; id < CALLS_MOST && !ret; id++) {
		snprintf(text, sizeof(text), "name%u", id / OF_HOST);
		ret = say_call(f, id, id, id, text);
	}
	return ret ?: has_calls(name[0]) ? sync_with(f) : -ENOENT;
}

TEST_F(hostile_names, a_host_has_so_many_calls)
{
	int dev, name[NAMES], i;
	char text[16];

	NEED_HOSTS();
	dev = raw_open(far(self));
	for (i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "name%d", i);
		name[i] = raw_listen(dev, text);
		ASSERT_LE(0, name[i]);
	}
	ASSERT_EQ(0, become_host(self));
	/* Each has its place. */
	ASSERT_EQ(0, call_all(&self->far, name));
	for (i = 0; i < NAMES; i++)
		EXPECT_TRUE(has_calls(name[i]));
	/* One that is given up makes room for one. */
	EXPECT_EQ(0, say_id(&self->far, CANCEL, 0));
	EXPECT_EQ(0, say_call(&self->far, CALLS_MOST, 0, 0, "name0"));
	ASSERT_EQ(0, sync_with(&self->far));
	EXPECT_EQ(0, say_call(&self->far, CALLS_MOST + 1, 0, 0, "no.such.name"));
	EXPECT_TRUE(far_is_ended(&self->far));
	for (i = 0; i < NAMES; i++) {
		EXPECT_TRUE(loses_its_calls(name[i]));
		EXPECT_EQ(0, close(name[i]));
	}
	EXPECT_EQ(0, close(dev));
}

TEST_F(hostile_names, a_host_that_repeats_an_id_is_refused)
{
	int dev, name;

	NEED_HOSTS();
	dev = raw_open(far(self));
	name = raw_listen(dev, "name");
	ASSERT_LE(0, name);
	ASSERT_EQ(0, become_host(self));
	EXPECT_EQ(0, say_call(&self->far, 5, 0, 0, "name"));
	EXPECT_EQ(0, say_id(&self->far, CANCEL, 5));
	EXPECT_EQ(0, say_call(&self->far, 5, 0, 0, "name"));
	EXPECT_EQ(0, sync_with(&self->far));
	EXPECT_EQ(0, say_call(&self->far, 5, 0, 0, "name"));
	EXPECT_TRUE(far_is_ended(&self->far));
	EXPECT_TRUE(loses_its_calls(name));
	EXPECT_EQ(0, close(name) | close(dev));
}

/* What crosses a CANCEL is nothing wrong, so neither is what was never asked for. */
TEST_F(hostile_names, answers_to_nothing_do_nothing)
{
	struct far *f = &self->far;
	int dev, first, second;
	struct raw raw;
	uint32_t id, i;

	NEED_HOSTS();
	dev = raw_open(far(self));
	ASSERT_EQ(0, become_host(self));
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, say_answer(f, i, ANSWERED, 0, "unasked"));
		ASSERT_EQ(0, say_id(f, CANCEL, i * 77777));
	}
	ASSERT_EQ(0, sync_with(f));
	first = raw_call(dev, 1, "name");
	ASSERT_LE(0, first);
	ASSERT_EQ(0, far_hear_type(f, CALL));
	id = (uint32_t)far_get(f->body, 4);
	EXPECT_EQ(0, say_answer(f, id + 1, ANSWERED, 0, "another's"));
	EXPECT_EQ(0, sync_with(f));
	EXPECT_EQ(-1, read(first, &raw, sizeof(raw)));
	/* Who answers is not known here, whoever it says it is. */
	EXPECT_EQ(0, say_answer(f, id, ANSWERED, 0, "one"));
	EXPECT_EQ(0, say_answer(f, id, ANSWERED, 0, "another"));
	EXPECT_EQ(0, sync_with(f));
	ASSERT_EQ(sizeof(raw.from) + 3, raw_read(first, &raw));
	EXPECT_EQ(0, memcmp(raw.said, "one", 3));
	EXPECT_EQ(1, raw.from.host);
	EXPECT_EQ(65534, raw.from.uid);
	EXPECT_EQ(0, raw.from.number);
	EXPECT_EQ(0, close(first));
	/* The next one is not answered by what is said to the last. */
	first = raw_call(dev, 1, "name");
	ASSERT_EQ(0, far_hear_type(f, CALL));
	id = (uint32_t)far_get(f->body, 4);
	EXPECT_EQ(0, close(first));
	second = raw_call(dev, 1, "name");
	ASSERT_EQ(0, far_hear_type(f, CANCEL));
	EXPECT_EQ(id, far_get(f->body, 4));
	EXPECT_EQ(0, say_answer(f, id, ANSWERED, 0, "late"));
	EXPECT_EQ(0, sync_with(f));
	EXPECT_EQ(-1, read(second, &raw, sizeof(raw)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(0, close(second) | close(dev));
}

/* ---- who pays ---- */

/* At host 2, to host 1. Exit status: 0, or what was wrong. */
static int call_and_give_up(FIXTURE_DATA(hostile_names) *self, int socket)
{
	int dev = raw_open(far(self)), call[CALLS], i;
	struct ht_poll poll;
	char byte;

	for (i = 0; i < CALLS; i++) {
		call[i] = raw_call(dev, 1, "silent");
		if (call[i] < 0)
			return 1;
	}
	if (raw_call(dev, 1, "silent") != -EDQUOT)
		return 2;
	if (write(socket, "c", 1) != 1 || ht_read_all(socket, &byte, 1))
		return 3;
	for (i = 0; i < CALLS; i++)
		close(call[i]);
	/* The other host does not know it yet: they are here still. */
	if (raw_call(dev, 1, "silent") != -EDQUOT)
		return 4;
	if (write(socket, "g", 1) != 1)
		return 5;
	ht_poll_begin(&poll);
	while (raw_call(dev, 1, "silent") < 0)
		if (!ht_poll_more(&poll))
			return 6;
	return 0;
}

/* What a connection that is made from here on holds: less than a megabyte, with its ring. */
static int narrow_the_way(void)
{
	static const char most[] = "4096 16384 65536";
	int fd = open("/proc/sys/net/ipv4/tcp_wmem", O_WRONLY | O_CLOEXEC);
	ssize_t n = write(fd, most, sizeof(most) - 1);

	return close(fd) || n < 0 ? -errno : 0;
}

/* From host 2, more than what is between the two can hold. */
static int fill_the_way(int dev, int *call)
{
	static const char said[HAMLYN_MAX_CALL];
	struct hamlyn_call arg = {
		.size = sizeof(arg), .host = 1, .name_length = 4, .said = (uintptr_t)said,
		.length = sizeof(said), .name = "fill",
	};
	int i;

	for (i = 0; i < FILLING; i++) {
		if (ioctl(dev, HAMLYN_IOC_CALL, &arg))
			return -errno;
		call[i] = arg.fd;
	}
	return 0;
}

TEST_F(hostile_names, who_gives_up_pays_until_the_other_host_is_told)
{
	unsigned int user = somebody(1);
	int dev, sockets[2], i, status, filling[FILLING];
	struct pollfd p = { .events = POLLIN };
	char byte;
	pid_t pid;

	NEED_HOSTS();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	dev = raw_open(far(self));
	ASSERT_EQ(0, narrow_the_way());
	ASSERT_EQ(0, become_host(self));
	pid = ht_fork();
	if (!pid)
		_exit(become(user) ? 99 : call_and_give_up(self, sockets[1]));
	/* When it ends, nobody has it. */
	ASSERT_EQ(0, close(sockets[1]));
	ASSERT_EQ(0, ht_read_all(sockets[0], &byte, 1));
	for (i = 0; i < CALLS; i++)
		ASSERT_EQ(0, far_hear_type(&self->far, CALL));
	p.fd = self->far.fd;
	/* From here on it reads nothing. */
	ASSERT_EQ(0, fill_the_way(dev, filling));
	ASSERT_EQ(1, write(sockets[0], "g", 1));
	EXPECT_EQ(0, ht_read_all(sockets[0], &byte, 1));
	while (waitpid(pid, &status, WNOHANG) == 0)
		if (poll(&p, 1, 10) == 1) {
			ASSERT_EQ(0, far_hear(&self->far));
		}
	EXPECT_EQ(0, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
	for (i = 0; i < FILLING; i++)
		EXPECT_EQ(0, close(filling[i]));
	EXPECT_EQ(0, close(dev) | close(sockets[0]));
}

/* ---- subordinate uids ---- */

static int map_ids(pid_t pid, const char *file)
{
	char path[64], line[64];
	int fd, length, ret;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	length = snprintf(line, sizeof(line), "0 %d %d\n", FIRST_SUBUID, SUBUIDS);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, line, (size_t)length) == length ? 0 : -errno;
	close(fd);
	return ret;
}

/* Each of the uids of a namespace that @owner has made does @act, and is killed with it. */
struct container {
	unsigned int owner;
	int (*act)(FIXTURE_DATA(hostile_names) *self);
	int uids;
	pid_t pid;
	int socket;
};

static int live_in(FIXTURE_DATA(hostile_names) *self, const struct container *c, int socket)
{
	char byte;
	int i;

	if (setpgid(0, 0) || (c->owner && become(c->owner)) || unshare(CLONE_NEWUSER))
		return NO_CONTAINER;
	ht_stay_child();
	if (write(socket, "x", 1) != 1 || ht_read_all(socket, &byte, 1))
		return 60;
	for (i = 1; i < c->uids; i++)
		if (!fork())
			_exit(become((unsigned int)i) ? 61 : c->act(self));
	return become(0) ? 61 : c->act(self);
}

static int start_container(FIXTURE_DATA(hostile_names) *self, struct container *c)
{
	int sockets[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	c->pid = ht_fork();
	if (!c->pid) {
		close(sockets[0]);
		_exit(live_in(self, c, sockets[1]));
	}
	close(sockets[1]);
	c->socket = sockets[0];
	return ht_read_all(c->socket, &byte, 1) ?: map_ids(c->pid, "uid_map") ?:
	       map_ids(c->pid, "gid_map") ?: ht_write_all(c->socket, "x", 1);
}

static void end_container(struct container *c)
{
	kill(-c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->socket);
}

static int flood(FIXTURE_DATA(hostile_names) *self, const struct host *from)
{
	int dev = raw_open(from), i;

	(void)self;
	for (i = 0; i < OF_USER; i++)
		raw_call(dev, 2, "flooded");
	pause();
	return 0;
}

static int flood_near(FIXTURE_DATA(hostile_names) *self)
{
	return flood(self, near(self));
}

static int flood_far(FIXTURE_DATA(hostile_names) *self)
{
	return flood(self, far(self));
}

/* Until so many have come, and then for a while, for what may come besides. */
static int count_calls(int name, int least)
{
	struct ht_poll poll;
	struct raw raw;
	int64_t end;
	int n = 0;

	ht_poll_begin(&poll);
	while (n < least && ht_poll_more(&poll))
		while (read(name, &raw, sizeof(raw)) > 0)
			n++;
	end = ht_now_ns() + HT_SEC / 2;
	while (ht_now_ns() < end) {
		while (read(name, &raw, sizeof(raw)) > 0)
			n++;
		ht_sleep_ns(10 * HT_MS);
	}
	return n;
}

static const char *others_are_heard(FIXTURE_DATA(hostile_names) *self, const struct host *from,
				    int (*act)(FIXTURE_DATA(hostile_names) *self),
				    unsigned int owner)
{
	struct container c = { .owner = owner, .act = act, .uids = SUBUIDS };
	int host1 = raw_open(from), host2 = raw_open(far(self)), name, call, n;
	const char *wrong = NULL;
	struct ht_poll poll;

	/* Of those that were killed some may have it for a moment. */
	ht_poll_begin(&poll);
	do {
		name = raw_listen(host2, "flooded");
	} while (name == -EADDRINUSE && ht_poll_more(&poll));
	if (name < 0 || start_container(self, &c))
		return "it did not begin";
	n = count_calls(name, OF_USER);
	printf("# %d calls of %d uids wait\n", n, SUBUIDS);
	if (n != OF_USER)
		wrong = "they have more, or less, than one user";
	call = raw_call(host1, 2, "flooded");
	if (call < 0 || count_calls(name, 1) != 1)
		wrong = "another user is not heard";
	end_container(&c);
	close(call);
	close(name);
	close(host1);
	close(host2);
	return wrong;
}

TEST_F(hostile_names, subordinate_uids_have_the_places_of_one_user)
{
	NEED_HOSTS();
	EXPECT_NO(others_are_heard(self, far(self), flood_far, somebody(2)));
	EXPECT_NO(others_are_heard(self, near(self), flood_near, somebody(3)));
}

TEST_F(hostile_names, a_container_has_the_places_of_one_user)
{
	NEED_HOSTS();
	EXPECT_NO(others_are_heard(self, far(self), flood_far, 0));
	EXPECT_NO(others_are_heard(self, near(self), flood_near, 0));
}

/* A packet, a watch and a call to a host that has no such slot, nor such a name. */
static int send_one_of_each(FIXTURE_DATA(hostile_names) *self)
{
	struct hamlyn_trb trb = { .host = 1, .slot = 7, .key = 9, .length = 8 };
	struct hamlyn_watch watch = { .size = sizeof(watch), .host = 1, .slot = 7, .key = 9 };
	struct party p;

	nic_use(far(self)->nic);
	if (party_open(&p))
		return 1;
	watch.nq = p.nq.arg.nq;
	if (post(&p.terminus, &trb) || ht_raw(p.fd, HAMLYN_IOC_WATCH, &watch))
		return 2;
	if (raw_call(p.fd, 1, "name") < 0)
		return 3;
	pause();
	return 0;
}

/* As whose guesses they count there, it is one user; who calls is told as it is. */
static const char *are_one_user(FIXTURE_DATA(hostile_names) *self, unsigned int owner)
{
	struct container c = { .owner = owner, .act = send_one_of_each, .uids = 2 };
	uint64_t data[2] = { 0 }, watch[2] = { 0 }, share[2] = { 0 }, user[2] = { 0 };
	unsigned int packets = 0, watches = 0, calls = 0;
	struct far *f = &self->far;
	const char *wrong = NULL;

	if (start_container(self, &c))
		return "it did not begin";
	while (!wrong && (packets < 2 || watches < 2 || calls < 2)) {
		if (far_hear(f)) {
			wrong = "they are not heard";
		} else if (f->type == DATA) {
			data[packets++ & 1] = far_get(f->body + 36, 4);
		} else if (f->type == WATCH) {
			watch[watches++ & 1] = far_get(f->body + 24, 4);
		} else if (f->type == CALL) {
			user[calls & 1] = far_get(f->body + 4, 4);
			share[calls++ & 1] = far_get(f->body + 12, 8);
		}
	}
	end_container(&c);
	printf("# %llu, %llu told as %llu\n", (unsigned long long)user[0],
	       (unsigned long long)user[1], (unsigned long long)data[0]);
	if (owner && data[0] != owner)
		wrong = "it is not their owner";
	if (data[0] != data[1] || watch[0] != data[0] || watch[1] != data[0])
		wrong = "they are two";
	if (share[0] != share[1] || (uint32_t)share[0] != data[0])
		wrong = "their calls are of two";
	if (user[0] < FIRST_SUBUID || user[1] < FIRST_SUBUID || user[0] == user[1])
		wrong = "who calls is not told";
	return wrong;
}

TEST_F(hostile_names, subordinate_uids_are_one_user_to_other_hosts)
{
	NEED_HOSTS();
	ASSERT_EQ(0, become_host(self));
	EXPECT_NO(are_one_user(self, somebody(4)));
	EXPECT_NO(are_one_user(self, 0));
}

/* ---- who sleeps ---- */

struct sleeper {
	int name;
	uint32_t told;
};

static void *wait_for_end(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = { .fd = s->name, .events = POLLIN };

	/* At the end of a time-out it would look by itself. */
	if (poll(&p, 1, -1) == 1 && p.revents & POLLHUP)
		__atomic_store_n(&s->told, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F(hostile_names, who_waits_for_calls_is_told_that_the_name_ends)
{
	const struct hamlyn_answer end = { .flags = HAMLYN_ANSWER_END };
	struct sleeper s = { 0 };
	struct ht_poll poll;
	pthread_t thread;
	int dev;

	NEED_HOSTS();
	dev = raw_open(far(self));
	s.name = raw_listen(dev, "ends");
	ASSERT_LE(0, s.name);
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_end, &s));
	ht_sleep_ns(200 * HT_MS);
	ASSERT_EQ(sizeof(end), write(s.name, &end, sizeof(end)));
	ht_poll_begin(&poll);
	/* What fails ends the test behind the braces only. */
	while (!__atomic_load_n(&s.told, __ATOMIC_ACQUIRE)) {
		ASSERT_TRUE(ht_poll_more(&poll));
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, close(s.name) | close(dev));
}

/* ---- all at once ---- */

#define WORKERS		4
#define ROUNDS		25
#define DESCRIPTORS	48

static uint64_t some(uint64_t *random, uint32_t n)
{
	return (ht_random(random) >> 33) % n;
}

static int do_something(FIXTURE_DATA(hostile_names) *self, const int *dev, uint64_t *random,
			int fd)
{
	const struct hamlyn_answer end = { .flags = HAMLYN_ANSWER_END };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char name[8];
	struct raw raw;

	(void)self;
	snprintf(name, sizeof(name), "n%u", (unsigned int)some(random, 3));
	switch (some(random, 10)) {
	case 0:
		close(fd);
		return raw_listen(dev[some(random, 2)], name);
	case 1:
	case 2:
	case 3:
	case 4:
		close(fd);
		return raw_call(dev[some(random, 2)], 1 + (uint32_t)some(random, 2), name);
	case 5:
		if (some(random, 8) == 0 && write(fd, &end, sizeof(end)) < 0)
			return fd;
		break;
	case 6:
		poll(&p, 1, (int)some(random, 2));
		break;
	default:
		if (read(fd, &raw, sizeof(raw)) > 0)
			raw_answer(fd, some(random, 4) ? raw.from.number : ht_random(random));
	}
	return fd;
}

static void be_one_of_many(FIXTURE_DATA(hostile_names) *self, uint64_t seed)
{
	int dev[2] = { raw_open(near(self)), raw_open(far(self)) }, fd[DESCRIPTORS], i;
	uint64_t random = seed;

	for (i = 0; i < DESCRIPTORS; i++)
		fd[i] = -1;
	for (;;) {
		i = (int)some(&random, DESCRIPTORS);
		fd[i] = do_something(self, dev, &random, fd[i]);
	}
}

static const char *talk(FIXTURE_DATA(hostile_names) *self)
{
	int host1 = raw_open(near(self)), host2 = raw_open(far(self));
	int name = raw_listen(host2, "last"), call = raw_call(host1, 2, "last");
	const char *wrong = NULL;
	struct raw raw;

	if (name < 0 || call < 0)
		wrong = "no name, or no call";
	else if (raw_read(name, &raw) < 0 || raw_answer(name, raw.from.number) ||
		 raw_read(call, &raw) < 0 || raw.from.error)
		wrong = "no answer";
	close(call);
	close(name);
	close(host1);
	close(host2);
	return wrong;
}

/* Names end, calls are given up, hosts are lost, and whoever does it dies. Then all is as new. */
TEST_F(hostile_names, everybody_dies_at_any_point)
{
	uint64_t random = ht_seed();
	pid_t pid[WORKERS] = { 0 };
	int i, round;

	NEED_HOSTS();
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < WORKERS; i++) {
			uint64_t seed = ht_random(&random);

			if (pid[i] && some(&random, 3))
				continue;
			if (pid[i]) {
				kill(pid[i], SIGKILL);
				waitpid(pid[i], NULL, 0);
			}
			pid[i] = ht_fork();
			if (!pid[i])
				be_one_of_many(self, seed);
		}
		ht_sleep_ns((int64_t)some(&random, 40) * HT_MS);
		if (some(&random, 2))
			continue;
		ASSERT_EQ(0, host_del_peer(&self->h, far(self), near(self)));
		ht_sleep_ns((int64_t)some(&random, 4) * HT_MS);
		ASSERT_EQ(0, host_add_peer(&self->h, far(self), near(self)));
		if (some(&random, 2))
			host_await(&self->h, near(self), HAMLYN_NL_PEER_STATE_UP);
	}
	for (i = 0; i < WORKERS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	ASSERT_EQ(0, host_await(&self->h, near(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(0, host_await(&self->h, far(self), HAMLYN_NL_PEER_STATE_UP));
	EXPECT_NO(talk(self));
}

TEST_HARNESS_MAIN
