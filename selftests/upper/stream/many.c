// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many streams: a thousand of them in one process, and a server with hundreds of
 * processes as its clients. What they take of memory and time is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/stream.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define STREAMS		1000
#define AT_LEAST	64	/* on a device that refuses more */
/* Each maps all of the segment's shadow as well. */
#ifdef __SANITIZE_THREAD__
#define CLIENTS		32
#else
#define CLIENTS		256
#endif
#define SLOWER		4	/* times fewer, where a message is a system call */
#define MESSAGE		100
#define MESSAGES	20	/* of each client */

/* The embedded device's segment is made for what is asked for. */
static const char *device_for(const char *what)
{
	static char name[64];
	const char *device = ht_device();

	if (device && strncmp(device, "shm:", 4))
		return device;
	if (!device && !access("/dev/hamlyn0", R_OK | W_OK))
		return "/dev/hamlyn0";
	snprintf(name, sizeof(name), "shm:many%s%d,size=64M", what,
		 (int)getpid());
	return name;
}

/* Resident, in kB; of the segment what was used. */
static long resident_kb(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static uint32_t power_of_two_above(uint32_t n)
{
	uint32_t p = 16;

	while (p < n)
		p *= 2;
	return p;
}

static bool refused(int err)
{
	return err == -ENOSPC || err == -ENOMEM || err == -EDQUOT;
}

struct conn {
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
};

static const struct h_stream_attr small = {
	.buffers = 4, .buffer_size = 1024, .max_buffer_size = 1,
};

static int connect_both(struct h_manager *m, struct conn *c)
{
	struct h_seed seed;
	int err;

	err = h_stream_receiver_create(m, &small, &c->r);
	if (err)
		return err;
	h_stream_receiver_seed(c->r, &seed);
	err = h_stream_sender_create(m, &seed, &c->s);
	if (err) {
		h_stream_receiver_destroy(c->r);
		c->r = NULL;
	}
	return err;
}

static int exchange(struct conn *c, uint32_t n)
{
	uint32_t got = 0;
	ssize_t ret;

	if (h_stream_send(c->s, &n, sizeof(n), ht_patience_ns()) != sizeof(n) ||
	    h_stream_flush(c->s, ht_patience_ns()))
		return -EIO;
	ret = h_stream_receive_copy(c->r, &got, sizeof(got), ht_patience_ns());
	return ret == sizeof(got) && got == n ? 0 : -EPROTO;
}

TEST(a_thousand_streams_in_one_process)
{
	/* Buffers and a watch here, credits and two watches there. */
	const uint32_t each = small.buffers + 1 + 5 + 2;
	struct h_manager_attr attr = { 0 };
	struct conn *conns = calloc(STREAMS, sizeof(*conns));
	struct hamlyn_query q;
	int64_t begin, made, sent;
	uint32_t all, want, n, i, round;
	struct h_manager *m;
	struct h_dev *dev;
	long kb;
	int err = 0;

	ASSERT_NE(NULL, conns);
	ASSERT_EQ(0, h_open(device_for("s"), &dev));
	ASSERT_EQ(0, h_query(dev, &q));
	all = h_dev_is_embedded(dev) ? STREAMS : STREAMS / SLOWER;
	want = power_of_two_above(all * each + 16);
	attr.nq_entries = want < q.max_nq_entries ? want : q.max_nq_entries;
	err = h_manager_create(dev, &attr, &m);
	while (refused(err) && (attr.nq_entries /= 2) >= AT_LEAST * each)
		err = h_manager_create(dev, &attr, &m);
	ASSERT_EQ(0, err);
	kb = resident_kb();
	begin = ht_now_ns();
	for (n = 0; n < all && !err; n++)
		err = connect_both(m, &conns[n]);
	n -= err != 0;
	if (err)
		EXPECT_TRUE(refused(err));
	EXPECT_GE(n, h_dev_is_embedded(dev) ? all : AT_LEAST);
	made = ht_now_ns();
	for (round = 0; round < 3; round++)
		for (i = 0; i < n; i++) {
			ASSERT_EQ(0, exchange(&conns[i], round * STREAMS + i));
		}
	sent = ht_now_ns();
	kb = resident_kb() - kb;
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, h_stream_sender_close(conns[i].s, ht_patience_ns()));
		ASSERT_EQ(0, h_stream_receiver_destroy(conns[i].r));
	}
	TH_LOG("%u streams: %ld kB, made in %lld us, %lld us a message, ended in %lld us each",
	       n, kb / (long)n, (long long)(made - begin) / n / 1000,
	       (long long)(sent - made) / n / 3 / 1000,
	       (long long)(ht_now_ns() - sent) / n / 1000);
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
	free(conns);
}

/* ---- a server, and processes that each have a stream to it ---- */

struct shared {
	struct h_seed seed[CLIENTS];
	uint32_t taken;		/* so many seeds are */
	uint32_t failed;
};

/* On two processors, with nothing else on them, it takes 4 s. */
static int64_t patience_of_many(void)
{
	return 4 * ht_patience_ns();
}

/* Asleep until there is a seed: hundreds that poll leave no processor to the server. */
static int client(const char *device, struct shared *sh, int turns)
{
	struct h_manager_attr attr = { .nq_entries = 16, .wq_entries = 4 };
	struct h_stream_sender *s;
	unsigned char data[MESSAGE];
	struct h_manager *m;
	struct h_dev *dev;
	uint32_t id, i;

	if (read(turns, data, 1) != 1)
		return 1;
	id = __atomic_fetch_add(&sh->taken, 1, __ATOMIC_ACQ_REL);
	if (h_open(device, &dev))
		return 2;
	if (h_manager_create(dev, &attr, &m))
		return 3;
	if (h_stream_sender_create(m, &sh->seed[id], &s))
		return 4;
	for (i = 0; i < MESSAGES; i++) {
		memset(data, (int)(id + i), sizeof(data));
		if (h_stream_send(s, data, sizeof(data), patience_of_many()) !=
		    sizeof(data) || h_stream_flush(s, patience_of_many()))
			return 5;
	}
	if (h_stream_sender_close(s, patience_of_many()))
		return 6;
	if (h_manager_destroy(m))
		return 7;
	h_close(dev);
	return 0;
}

struct session {
	struct h_stream_receiver *r;
	uint32_t id;
	uint64_t got;
	bool wrong;
	bool ended;
};

static void serve(struct h_stream_receiver *r, void *arg)
{
	struct session *se = arg;
	unsigned char data[64];
	ssize_t n, i;

	while ((n = h_stream_receive_copy(r, data, sizeof(data), H_NOWAIT)) > 0)
		for (i = 0; i < n; i++)
			se->wrong |= data[i] != (unsigned char)
					(se->id + se->got++ / MESSAGE);
	if (n == -EAGAIN)
		return;
	se->wrong |= n != -ENODATA;
	se->ended = true;
	h_stream_receiver_on_ready(r, NULL, NULL);
}

static uint32_t ended(const struct session *sessions)
{
	uint32_t i, n = 0;

	for (i = 0; i < CLIENTS; i++)
		n += sessions[i].ended;
	return n;
}

TEST(a_server_of_many_processes)
{
	char why[HAMLYN_EXPLAIN_BYTES];
	int err;
	const char *device = device_for("c");
	struct session *sessions = calloc(CLIENTS, sizeof(*sessions));
	struct h_manager_attr attr = {
		.nq_entries = power_of_two_above(CLIENTS * 5 + 16),
	};
	int64_t begin = ht_now_ns(), end = begin + patience_of_many();
	uint32_t clients = strncmp(device, "shm:", 4) ? CLIENTS / SLOWER : CLIENTS, i;
	struct shared *sh;
	struct h_manager *m;
	pid_t pid[CLIENTS];
	struct h_dev *dev;
	int turns[2];
	long kb;

	ASSERT_NE(NULL, sessions);
	ASSERT_EQ(0, pipe(turns));
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, sh);
	for (i = 0; i < clients; i++) {
		pid[i] = ht_fork();
		ASSERT_GE(pid[i], 0);
		if (!pid[i])
			_exit(client(device, sh, turns[0]));
	}
	ASSERT_EQ(0, h_open(device, &dev));
	ASSERT_EQ(0, h_manager_create(dev, &attr, &m));
	kb = resident_kb();
	for (i = 0; i < clients; i++) {
		sessions[i].id = i;
		err = h_stream_receiver_create(m, &small, &sessions[i].r);
		if (err && !h_explain(dev, why, sizeof(why)))
			TH_LOG("receiver %u: %s", i, why);
		ASSERT_EQ(0, err);
		h_stream_receiver_seed(sessions[i].r, &sh->seed[i]);
		h_stream_receiver_on_ready(sessions[i].r, serve, &sessions[i]);
		ASSERT_EQ(1, write(turns[1], "", 1));
	}
	while (ended(sessions) < clients && ht_now_ns() < end) {
		h_manager_wait(m, 100 * HT_MS);
		h_manager_dispatch(m);
	}
	EXPECT_EQ(clients, ended(sessions));
	kb = resident_kb() - kb;
	TH_LOG("%u clients: %lld ms in all, %ld kB each in the server", clients,
	       (long long)(ht_now_ns() - begin) / 1000000, kb / (long)clients);
	for (i = 0; i < clients; i++) {
		EXPECT_EQ(MESSAGES * MESSAGE, sessions[i].got);
		EXPECT_FALSE(sessions[i].wrong);
		EXPECT_EQ(0, ht_reap(pid[i]));
		EXPECT_EQ(0, h_stream_receiver_destroy(sessions[i].r));
	}
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
	munmap(sh, sizeof(*sh));
	free(sessions);
}

TEST_HARNESS_MAIN
