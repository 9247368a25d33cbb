// SPDX-License-Identifier: GPL-2.0-only
/* Loans of a channel: messages that are built where they leave from. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <hamlyn/channel.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define LONG	(1u << 20)

FIXTURE(loan) {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *a;
	struct h_channel *b;
};

FIXTURE_VARIANT(loan) {
	uint32_t flags;
	struct h_channel_attr attr;
};

FIXTURE_VARIANT_ADD(loan, defaults) {
};

FIXTURE_VARIANT_ADD(loan, single) {
	.flags = H_MANAGER_SINGLE,
};

FIXTURE_VARIANT_ADD(loan, few_buffers) {
	.attr = { .buffers = 2, .buffer_size = 128, .max_buffer_size = 1 },
};

FIXTURE_SETUP(loan)
{
	const struct h_manager_attr attr = { .flags = variant->flags };

	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, &attr, &self->m));
	ASSERT_EQ(0, h_channel_pair(self->m, self->m, &variant->attr, &self->a, &self->b));
}

FIXTURE_TEARDOWN(loan)
{
	h_channel_close(self->a, H_NOWAIT);
	h_channel_close(self->b, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/* A loan with a pattern in it. */
static int built(struct h_channel *ch, size_t length, uint64_t seed, struct h_loan *loan)
{
	int err = h_channel_reserve(ch, length, loan);

	if (!err)
		ht_fill(loan->data, length, seed);
	return err;
}

/* The next message is that pattern, and what waits to be sent goes meanwhile. */
static bool arrives(struct h_channel *ch, size_t length, uint64_t seed)
{
	struct h_message m;
	bool good;

	if (h_channel_receive(ch, &m, ht_patience_ns()))
		return false;
	good = m.length == length && ht_match(m.data, length, seed) == length;
	h_channel_release(ch, &m);
	return good;
}

TEST_F(loan, any_size_arrives)
{
	static const size_t sizes[] = { 0, 1, 127, 129, 1000, 4096, 4097, 70000, LONG };
	struct h_loan loan;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(0, built(self->a, sizes[i], i, &loan));
		ASSERT_EQ(sizes[i], loan.length);
		ASSERT_EQ(0, (uintptr_t)loan.data % 64);
		/* Of the longer ones the rest goes while the other end receives. */
		ASSERT_EQ(0, h_channel_commit(self->a, &loan, sizes[i], H_NOWAIT));
		EXPECT_EQ(NULL, loan.data);
		ASSERT_TRUE(arrives(self->b, sizes[i], i)) TH_LOG("%zu bytes", sizes[i]);
	}
}

TEST_F(loan, fewer_bytes_than_were_reserved)
{
	struct h_loan loan;

	ASSERT_EQ(0, built(self->a, 3000, 1, &loan));
	ASSERT_EQ(0, h_channel_commit(self->a, &loan, 10, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 10, 1));
	ASSERT_EQ(0, built(self->a, 3000, 1, &loan));
	ASSERT_EQ(0, h_channel_commit(self->a, &loan, 0, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 0, 1));
}

TEST_F(loan, more_than_there_is_room_for)
{
	struct h_channel_attr attr = variant->attr;
	struct h_channel *a, *b;
	struct h_loan loan;

	attr.max_message = 1000;
	ASSERT_EQ(0, h_channel_pair(self->m, self->m, &attr, &a, &b));
	EXPECT_EQ(-EMSGSIZE, h_channel_reserve(a, 1001, &loan));
	EXPECT_EQ(NULL, loan.data);
	ASSERT_EQ(0, built(a, 1000, 2, &loan));
	EXPECT_EQ(-EINVAL, h_channel_commit(a, &loan, 1001, H_NOWAIT));
	EXPECT_TRUE(ht_is_explained(self->dev, "of a loan of 1000"));
	/* It is there still. */
	EXPECT_EQ(0, h_channel_commit(a, &loan, 1000, H_NOWAIT));
	EXPECT_TRUE(arrives(b, 1000, 2));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	attr.max_message = UINT64_MAX;
	ASSERT_EQ(0, h_channel_pair(self->m, self->m, &attr, &a, &b));
	EXPECT_GT(0, h_channel_reserve(a, (size_t)1 << 50, &loan));
	EXPECT_EQ(0, h_channel_abandon(a, &loan));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

TEST_F(loan, two_at_a_time_in_any_order)
{
	struct h_loan first, second;

	ASSERT_EQ(0, built(self->a, 2000, 1, &first));
	ASSERT_EQ(0, built(self->a, 2000, 2, &second));
	EXPECT_NE(first.data, second.data);
	ASSERT_EQ(0, h_channel_commit(self->a, &second, 2000, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 2000, 2));
	ASSERT_EQ(0, h_channel_commit(self->a, &first, 2000, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 2000, 1));
}

static uint64_t send_bytes(struct h_manager *m)
{
	struct h_manager_counters c = {};

	h_manager_stats(m, &c);
	return c.send_bytes;
}

TEST_F(loan, abandoned_ones_cost_nothing)
{
	struct h_loan loan;
	uint64_t before;
	unsigned int i;

	ASSERT_EQ(0, built(self->a, 50000, 1, &loan));
	EXPECT_EQ(0, h_channel_abandon(self->a, &loan));
	before = send_bytes(self->m);
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, built(self->a, 40000 + i, i, &loan));
		ASSERT_EQ(0, h_channel_abandon(self->a, &loan));
	}
	EXPECT_EQ(before, send_bytes(self->m));
	EXPECT_EQ(0, h_channel_abandon(self->a, &loan));
	ASSERT_EQ(0, built(self->a, 100, 3, &loan));
	ASSERT_EQ(0, h_channel_commit(self->a, &loan, 100, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 100, 3));
}

TEST_F(loan, each_ends_once_and_on_its_own_channel)
{
	struct h_loan loan, copy;

	ASSERT_EQ(0, built(self->a, 100, 1, &loan));
	copy = loan;
	EXPECT_EQ(-EINVAL, h_channel_commit(self->b, &copy, 100, H_NOWAIT));
	EXPECT_TRUE(ht_is_explained(self->dev, "another channel"));
	EXPECT_EQ(-EINVAL, h_channel_abandon(self->b, &copy));
	ASSERT_EQ(0, h_channel_commit(self->a, &loan, 100, H_NOWAIT));
	EXPECT_EQ(-EALREADY, h_channel_commit(self->a, &copy, 100, H_NOWAIT));
	EXPECT_EQ(-EALREADY, h_channel_abandon(self->a, &copy));
	EXPECT_TRUE(ht_is_explained(self->dev, "before"));
	EXPECT_EQ(-EINVAL, h_channel_commit(self->a, &loan, 0, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 100, 1));
}

/* Until the other end has no room: what does not go is not lost, nor sent twice. */
TEST_F(loan, one_that_does_not_go_can_be_committed_again)
{
	struct h_loan loan;
	unsigned int sent, got;
	int ret = 0;

	for (sent = 0; sent < 1000; sent += !ret) {
		ASSERT_EQ(0, built(self->a, 100, sent, &loan));
		ret = h_channel_commit(self->a, &loan, 100, H_NOWAIT);
		if (ret)
			break;
	}
	ASSERT_EQ(-EAGAIN, ret);
	EXPECT_EQ(-ETIMEDOUT, h_channel_commit(self->a, &loan, 100, HT_MS));
	EXPECT_EQ(100, ht_match(loan.data, 100, sent));
	for (got = 0; got < sent; got++)
		ASSERT_TRUE(arrives(self->b, 100, got));
	ASSERT_EQ(0, h_channel_commit(self->a, &loan, 100, ht_patience_ns()));
	EXPECT_TRUE(arrives(self->b, 100, sent));
}

/* What is changed after it was committed arrives so: nothing has made a copy of it. */
TEST_F(loan, the_rest_stays_where_it_is)
{
	struct h_loan loan;
	struct h_message m;
	unsigned char *end;

	if (variant->attr.buffers != 2)
		SKIP(return, "all of it goes at once");
	ASSERT_EQ(0, built(self->a, LONG, 1, &loan));
	end = (unsigned char *)loan.data + LONG - 1;
	*end = 1;
	ASSERT_EQ(0, h_channel_commit(self->a, &loan, LONG, H_NOWAIT));
	*end = 2;
	/* The next one is elsewhere. */
	ASSERT_EQ(0, built(self->a, LONG, 3, &loan));
	EXPECT_NE(end, (unsigned char *)loan.data + LONG - 1);
	EXPECT_EQ(0, h_channel_abandon(self->a, &loan));
	ASSERT_EQ(0, h_channel_receive(self->b, &m, ht_patience_ns()));
	EXPECT_EQ(LONG, m.length);
	EXPECT_EQ(2, ((const unsigned char *)m.data)[LONG - 1]);
	EXPECT_EQ(0, h_channel_release(self->b, &m));
}

TEST_F(loan, the_other_end_goes_before_it_is_committed)
{
	struct h_loan loan;
	struct ht_poll poll;
	int ret;

	ASSERT_EQ(0, built(self->a, 5000, 1, &loan));
	h_channel_close(self->b, H_NOWAIT);
	self->b = NULL;
	ht_poll_begin(&poll);
	do {
		ret = h_channel_commit(self->a, &loan, 5000, H_NOWAIT);
		if (!ret)
			ASSERT_EQ(0, built(self->a, 5000, 1, &loan));
	} while (ret != -EPIPE && ht_poll_more(&poll));
	EXPECT_EQ(-EPIPE, ret);
	EXPECT_EQ(5000, loan.length);
	EXPECT_EQ(0, h_channel_abandon(self->a, &loan));
}

TEST_F(loan, those_that_are_out_end_with_the_channel)
{
	struct h_loan loan;
	unsigned int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, built(self->a, 10000, i, &loan));
	h_channel_close(self->a, H_NOWAIT);
	h_channel_close(self->b, H_NOWAIT);
	/* With any piece of its memory in use the manager would have to keep it. */
	ASSERT_EQ(0, h_channel_pair(self->m, self->m, &variant->attr, &self->a, &self->b));
	EXPECT_EQ(0, built(self->a, 10000, 0, &loan));
}

TEST_F(loan, a_reply_is_built_in_one)
{
	struct h_message m, reply;
	struct h_loan loan;
	uint32_t id;

	ASSERT_EQ(0, h_channel_request_send(self->a, "?", 1, &id, H_NOWAIT));
	ASSERT_EQ(0, h_channel_receive(self->b, &m, ht_patience_ns()));
	ASSERT_EQ(0, built(self->b, 200, 9, &loan));
	ASSERT_EQ(0, h_channel_reply(self->b, &m, loan.data, 200, ht_patience_ns()));
	EXPECT_EQ(0, h_channel_abandon(self->b, &loan));
	EXPECT_EQ(0, h_channel_release(self->b, &m));
	ASSERT_EQ(0, h_channel_request_wait(self->a, id, &reply, ht_patience_ns()));
	EXPECT_EQ(200, ht_match(reply.data, reply.length, 9));
	EXPECT_EQ(0, h_channel_release(self->a, &reply));
}

/* ---- threads and processes ---- */

#define THREADS	4
#define EACH	300

struct sender {
	struct h_channel *ch;
	unsigned int number;
	pthread_t thread;
	int failed;
};

static size_t length_of(unsigned int number)
{
	return 8 + number * 7919 % (number % 16 ? 600 : 20000);
}

static void *send_loans(void *arg)
{
	struct sender *s = arg;
	struct h_loan loan, other;
	unsigned int i;

	for (i = 0; i < EACH && !s->failed; i++) {
		unsigned int number = s->number * EACH + i;
		size_t n = length_of(number);

		s->failed = built(s->ch, n, number, &loan) ||
			    h_channel_reserve(s->ch, 100, &other);
		if (s->failed)
			break;
		memcpy(loan.data, &number, sizeof(number));
		s->failed = h_channel_commit(s->ch, &loan, n, ht_patience_ns()) ||
			    h_channel_abandon(s->ch, &other);
	}
	return NULL;
}

static bool is_one(const struct h_message *m, unsigned int *next)
{
	unsigned char data[20100];
	unsigned int number;

	memcpy(&number, m->data, sizeof(number));
	if (number >= THREADS * EACH || number % EACH != next[number / EACH] ||
	    m->length != length_of(number))
		return false;
	next[number / EACH]++;
	ht_fill(data, m->length, number);
	memcpy(data, &number, sizeof(number));
	return !memcmp(data, m->data, m->length);
}

TEST_F(loan, threads_do_not_mix_them)
{
	struct sender s[THREADS] = {};
	unsigned int next[THREADS] = {};
	struct h_message m;
	unsigned int i;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "one thread");
	for (i = 0; i < THREADS; i++) {
		s[i].ch = self->a;
		s[i].number = i;
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL, send_loans, &s[i]));
	}
	for (i = 0; i < THREADS * EACH; i++) {
		ASSERT_EQ(0, h_channel_receive(self->b, &m, ht_patience_ns()));
		ASSERT_TRUE(is_one(&m, next)) TH_LOG("message %u", i);
		ASSERT_EQ(0, h_channel_release(self->b, &m));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(s[i].thread, NULL);
		EXPECT_EQ(0, s[i].failed);
	}
}

/* Sends for ever, with a loan out and others on their way, until it is killed. */
static void commit_for_ever(const char *path)
{
	const struct h_channel_attr attr = {
		.device = ht_device(), .flags = H_CONNECT_WAIT,
	};
	struct h_loan loan, other;
	struct h_channel *ch;
	unsigned int i;

	if (h_channel_dial(path, &attr, &ch, ht_patience_ns()))
		_exit(1);
	for (i = 0;; i++) {
		if (built(ch, 6000, i, &loan) || built(ch, 6000, ~i, &other) ||
		    h_channel_commit(ch, &loan, 6000, ht_patience_ns()) ||
		    h_channel_abandon(ch, &other))
			_exit(2);
	}
}

TEST_F(loan, who_is_killed_has_sent_whole_messages)
{
	struct h_listener *l;
	struct h_channel *ch;
	struct h_message m;
	unsigned int i = 0;
	char path[64];
	int ret, status;
	pid_t pid;

	snprintf(path, sizeof(path), "@hamlyn-loan.%d", getpid());
	ASSERT_EQ(0, h_listener_create(path, NULL, &l));
	pid = ht_fork();
	if (!pid)
		commit_for_ever(path);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, h_channel_accept(l, self->m, &variant->attr, &ch, ht_patience_ns()));
	while (!(ret = h_channel_receive(ch, &m, ht_patience_ns()))) {
		ASSERT_EQ(6000, m.length);
		ASSERT_EQ(6000, ht_match(m.data, 6000, i));
		ASSERT_EQ(0, h_channel_release(ch, &m));
		if (++i == 50)
			ASSERT_EQ(0, kill(pid, SIGKILL));
	}
	EXPECT_TRUE(ret == -ECONNRESET || ret == -EPROTO) TH_LOG("%d", ret);
	EXPECT_LE(50, i);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	h_channel_close(ch, H_NOWAIT);
	h_listener_destroy(l);
}

/* ---- memory that goes ---- */

#define GOES	(4 * 4096)

/* Of GOES bytes of a file, of which there are so many now. */
static char *map_file(int *fd, size_t there)
{
	char *p;

	*fd = memfd_create("goes", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, GOES))
		return MAP_FAILED;
	p = mmap(NULL, GOES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p != MAP_FAILED)
		ht_fill(p, GOES, 7);
	return p != MAP_FAILED && !ftruncate(*fd, (off_t)there) ? p : MAP_FAILED;
}

TEST_F(loan, what_is_not_there_any_more_is_EFAULT_and_the_channel_goes_on)
{
	char why[HAMLYN_EXPLAIN_BYTES] = "";
	int fd;
	char *p = map_file(&fd, GOES / 2);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-EFAULT, h_channel_send_checked(self->a, p, GOES, H_NOWAIT));
	EXPECT_EQ(0, h_explain(self->dev, why, sizeof(why)));
	EXPECT_NE(NULL, strstr(why, "16384 bytes")) {
		TH_LOG("%s", why);
	}
	EXPECT_EQ(-EFAULT, h_channel_send_checked(self->a, p + GOES / 2, 1, H_NOWAIT));
	EXPECT_EQ(-EFAULT, h_channel_send_checked(self->a, p + GOES / 2 - 10, 20, H_NOWAIT));
	/* Of none of them anything came. */
	EXPECT_EQ(0, h_channel_send_checked(self->a, p, GOES / 2, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, GOES / 2, 7));
	EXPECT_EQ(0, h_channel_send_checked(self->a, NULL, 0, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 0, 7));
	munmap(p, GOES);
	EXPECT_EQ(-EFAULT, h_channel_send_checked(self->a, p, 8, H_NOWAIT));
	close(fd);
}

struct shrinking {
	int fd;
	int stop;
};

static void *shrink(void *arg)
{
	struct shrinking *s = arg;
	int i;

	for (i = 0; !__atomic_load_n(&s->stop, __ATOMIC_RELAXED); i++) {
		if (ftruncate(s->fd, i % 2 ? GOES : GOES / 2))
			break;
		sched_yield();
	}
	return NULL;
}

TEST_F(loan, memory_that_goes_while_it_is_sent_is_no_SIGBUS)
{
	struct shrinking s = { 0 };
	struct h_message m;
	char *p = map_file(&s.fd, GOES);
	int i, sent = 0, err;
	pthread_t t;

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, pthread_create(&t, NULL, shrink, &s));
	for (i = 0; i < 300; i++) {
		err = h_channel_send_checked(self->a, p, GOES, H_NOWAIT);
		if (err == -EFAULT)
			continue;
		ASSERT_EQ(0, err);
		sent++;
		ASSERT_EQ(0, h_channel_receive(self->b, &m, ht_patience_ns()));
		ASSERT_EQ(GOES, m.length);
		h_channel_release(self->b, &m);
	}
	__atomic_store_n(&s.stop, 1, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	TH_LOG("%d of %d were there", sent, i);
	ASSERT_EQ(0, h_channel_send(self->a, "good", 4, H_NOWAIT));
	ASSERT_EQ(0, h_channel_receive(self->b, &m, ht_patience_ns()));
	EXPECT_EQ(4, m.length);
	h_channel_release(self->b, &m);
	munmap(p, GOES);
	close(s.fd);
}

/* Each test is a process of its own. */
TEST_F(loan, memory_is_looked_at_where_process_vm_readv_is_forbidden)
{
	struct rlimit none = { 0, 0 };
	char *p, *whole;
	int fd;

	whole = malloc(LONG);
	ASSERT_NE(NULL, whole);
	ht_fill(whole, LONG, 9);
	p = map_file(&fd, GOES / 2);
	ASSERT_NE(MAP_FAILED, p);
	if (ht_forbid_call(__NR_process_vm_readv))
		SKIP(return, "no seccomp filter can be had");
	EXPECT_EQ(-EFAULT, h_channel_send_checked(self->a, p, GOES, H_NOWAIT));
	EXPECT_EQ(0, h_channel_send_checked(self->a, p, GOES / 2, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, GOES / 2, 7));
	/* More than a pipe holds. */
	EXPECT_EQ(0, h_channel_send_checked(self->a, whole, LONG, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, LONG, 9));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, h_channel_send_checked(self->a, whole, 10, H_NOWAIT));
	free(whole);
	munmap(p, GOES);
	close(fd);
}

static sigjmp_buf out;

static void leave(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

/* What is copied by the program itself may be left. */
TEST_F(loan, a_handler_may_leave_the_filling_of_a_loan)
{
	struct sigaction on = { .sa_handler = leave }, before;
	struct h_loan loan;
	int fd;
	char *p = map_file(&fd, 0);

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, sigaction(SIGBUS, &on, &before));
	ASSERT_EQ(0, h_channel_reserve(self->a, GOES, &loan));
	if (!sigsetjmp(out, 1)) {
		memcpy(loan.data, p, GOES);
		ASSERT_TRUE(false) {
			TH_LOG("there was something");
		}
	}
	ASSERT_EQ(0, sigaction(SIGBUS, &before, NULL));
	EXPECT_EQ(0, h_channel_abandon(self->a, &loan));
	ASSERT_EQ(0, built(self->a, 5000, 3, &loan));
	EXPECT_EQ(0, h_channel_commit(self->a, &loan, 5000, H_NOWAIT));
	EXPECT_TRUE(arrives(self->b, 5000, 3));
	munmap(p, GOES);
	close(fd);
}

TEST_HARNESS_MAIN
