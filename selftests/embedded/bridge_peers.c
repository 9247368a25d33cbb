// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bridge whose peers are slow, greedy or liars, whose listeners do not listen, and that has
 * run out of what it needs.
 */
#include "bridge_hosts.h"

#include <sys/mman.h>
#include <sys/resource.h>

/* ---- a peer that takes little ---- */

/* Sends to the peer that we are until there is no room, or it is down. Return: up still. */
static bool fill_up(struct host *b)
{
	struct h_ticket to = { .host = 1, .slot = 1, .key = 1, .length = LENGTH };
	struct h_msg m = { .ticket = &to, .data = b->data, .length = 60000,
			   .flags = HAMLYN_TRB_NO_NOTIFY };

	while (shm_peer_up(state_of(b)))
		if (h_send(b->terminus, &m) < 0)
			return true;
	return false;
}

/* Takes @bytes every 100 ms for so long, and says something: it is there. Return: up still. */
static bool take_slowly(struct host *b, int fd, struct hml_wire_tx *tx, size_t bytes, int64_t ns)
{
	static u8 taken[65536];
	int64_t end = ht_now_ns() + ns;
	u8 frame[HML_WIRE_MOST_CONTROL];

	while (ht_now_ns() < end && fill_up(b)) {
		if (recv(fd, taken, bytes, MSG_DONTWAIT) < 0 && errno != EAGAIN)
			break;
		if (send(fd, frame, hml_wire_pack_pong(tx, frame, 1), MSG_NOSIGNAL) < 0)
			break;
		ht_sleep_ns(100 * HT_MS);
	}
	return shm_peer_up(state_of(b));
}

/* The socket here has no room for seconds: it is of megabytes, of which much must have left. */
TEST_F(bridge, a_slow_peer_is_not_dead)
{
	struct hml_wire_tx tx;
	int fd = impersonate_with(self, &tx, 0, 65536);

	ASSERT_GE(fd, 0);
	EXPECT_TRUE(take_slowly(&self->host[1], fd, &tx, 20000, 4000 * HT_MS));
	close(fd);
}

/*
 * Its socket is the smallest that there is: the window opens when that is empty, several times in
 * what the bridge waits, and it takes less than a peer has to take meanwhile.
 */
TEST_F(bridge, who_takes_a_byte_now_and_then_is_dead)
{
	struct hml_wire_tx tx;
	int fd = impersonate_with(self, &tx, 0, 1);

	ASSERT_GE(fd, 0);
	EXPECT_FALSE(take_slowly(&self->host[1], fd, &tx, 300, ht_patience_ns() / 4));
	EXPECT_EQ(seg_of(&self->host[1])->bridge.peer[0].reason, HML_WIRE_STALLED);
	close(fd);
}

/* ---- nobody listens to it ---- */

TEST_F(bridge, what_nobody_reads_stops_nobody)
{
	char path[64], full[4096] = { 0 };
	int out[2], fill, i;

	ASSERT_EQ(pipe(out), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", out[1]);
	fill = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_GE(fill, 0);
	while (write(fill, full, sizeof(full)) > 0)
		;
	self->said = out[1];
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(end(self, i, SIGTERM), 0);
		start(self, i, 1000);
	}
	ASSERT_TRUE(wait_up(self));
	EXPECT_EQ(kill(self->host[1].bridge, SIGUSR1), 0);
	EXPECT_EQ(end(self, 0, SIGKILL), 128 + SIGKILL);
	EXPECT_TRUE(wait_state(&self->host[1], false));
	start(self, 0, 1000);
	ASSERT_TRUE(wait_up(self));
	EXPECT_TRUE(round_trip(&self->host[0], &self->host[1]));
	/* Nor does the end of whoever listened end it. */
	close(out[0]);
	EXPECT_EQ(end(self, 0, SIGKILL), 128 + SIGKILL);
	EXPECT_TRUE(wait_state(&self->host[1], false));
	start(self, 0, 1000);
	EXPECT_TRUE(wait_up(self));
	close(out[1]);
	close(fill);
}

/* ---- without descriptors ---- */

/* So many, and there is none any more. */
static rlim_t least_free(pid_t pid)
{
	char path[64], target[8];
	rlim_t n = 0;

	do
		snprintf(path, sizeof(path), "/proc/%d/fd/%u", pid, (unsigned int)n++);
	while (readlink(path, target, sizeof(target)) >= 0);
	return n - 1;
}

/* How often its main thread, which accepts, has slept. */
static unsigned long slept(pid_t pid)
{
	char path[64], line[256];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %lu", &n);
	if (f)
		fclose(f);
	return n;
}

TEST_F(bridge, without_descriptors_it_sleeps_and_goes_on)
{
	pid_t pid = self->host[1].bridge;
	struct rlimit old, few;
	struct ht_poll poll;
	unsigned long before;
	int fd;

	ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, NULL, &old), 0);
	few = old;
	few.rlim_cur = least_free(pid);
	ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &few, NULL), 0);
	fd = call(self);
	ASSERT_GE(fd, 0);
	/* A word after it: what came first was looked at. */
	ASSERT_TRUE(round_trip(&self->host[0], &self->host[1]));
	before = slept(pid);
	ht_poll_begin(&poll);
	while (slept(pid) < before + 5 && ht_poll_more(&poll))
		;
	EXPECT_GE(slept(pid), before + 5);
	ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &old, NULL), 0);
	ASSERT_EQ(ht_write_all(fd, "GET / HTTP/1.0\r\n\r\n", 18), 0);
	EXPECT_EQ(verdict_of(fd), HML_WIRE_BAD_VERSION);
	close(fd);
}

/* ---- asking ---- */

TEST_F(bridge, asking_makes_no_segment)
{
	char name[120], file[160], *const argv[] = { self->program, name, "--status", NULL };

	snprintf(name, sizeof(name), "%.90s-none", self->name[0]);
	snprintf(file, sizeof(file), "/dev/shm/hamlyn-%u-%s", ht_segment_uid(), name + 4);
	EXPECT_EQ(ht_reap(run(self->program, argv, -1)), 1);
	EXPECT_NE(access(file, F_OK), 0);
}

/* ---- a process of the same user that writes everywhere ---- */

struct range {
	size_t first;
	size_t bytes;
};

/* Words as they may be there, and others; in a process of its own, for so long. */
static void scribble(const char *name, const struct range *r, u64 seed, int64_t ns)
{
	int64_t end = ht_now_ns() + ns;
	u32 *words;
	struct stat st;
	char file[160];
	int fd;

	snprintf(file, sizeof(file), "/dev/shm/hamlyn-%u-%s", ht_segment_uid(), name + 4);
	fd = open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		_exit(1);
	words = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (words == MAP_FAILED)
		_exit(2);
	while (ht_now_ns() < end) {
		u64 what = ht_random(&seed), at = ht_random(&seed) % (r->bytes / 4);
		u32 *word = &words[r->first / 4 + at];

		switch (what % 4) {
		case 0:
			*word = (u32)(what >> 32);
			break;
		case 1:
			*word ^= 1u << (what >> 8) % 32;
			break;
		case 2:
			*word = (u32)(what >> 8) % 5 - 2;
			break;
		case 3:
			*word = (u32)(what >> 8) % 20000;
			break;
		}
	}
	_exit(0);
}

#define MEMBER(m) { offsetof(struct shm_segment, m), sizeof(((struct shm_segment *)0)->m) }

static void scribbled_over(struct __test_metadata *_metadata, FIXTURE_DATA(bridge) *self,
			   const struct range *range, bool may_crash)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_ticket there = b->ticket;
	struct hamlyn_nq_entry e;
	struct h_watch *w;
	pid_t writer, user;
	int64_t end_ns;
	int status;

	/* What is sent to it, and watched there, and what it sends. */
	ASSERT_EQ(h_watch(b->dev, &a->ticket, b->nq, 1, &w), 0);
	ASSERT_TRUE(round_trip(a, b));
	h_close(a->dev);
	a->dev = NULL;
	user = ht_fork();
	if (!user) {
		struct host own = { 0 };
		struct h_msg m = { .ticket = &there, .data = "x", .length = 1 };

		if (open_host(&own, self->name[0], 0))
			_exit(1);
		for (;;)
			h_send(own.terminus, &m);
	}
	writer = ht_fork();
	if (!writer)
		scribble(self->name[0], range, ht_seed(), 1500 * HT_MS);
	end_ns = ht_now_ns() + 1500 * HT_MS;
	while (ht_now_ns() < end_ns) {
		struct h_msg m = { .ticket = &a->ticket, .data = "x", .length = 1 };

		h_send(b->terminus, &m);
		while (h_recv(b->nq, &e) == 1)
			;
	}
	EXPECT_EQ(ht_reap(writer), 0);
	kill(user, SIGKILL);
	ht_reap(user);
	/* It may be at a loss, and say so. */
	if (waitpid(a->bridge, &status, WNOHANG)) {
		EXPECT_TRUE(may_crash || WIFEXITED(status));
		a->bridge = 0;
	} else {
		EXPECT_EQ(end(self, 0, SIGKILL), 128 + SIGKILL);
	}
	/* Nobody else has to do with that. */
	EXPECT_EQ(waitpid(b->bridge, &status, WNOHANG), 0);
	EXPECT_TRUE(wait_state(b, false));
}

TEST_F(bridge, who_writes_over_the_bridges_words_ends_no_bridge)
{
	const struct range r = MEMBER(bridge);

	scribbled_over(_metadata, self, &r, false);
}

TEST_F(bridge, who_writes_over_termini_ends_no_bridge)
{
	const struct range r = MEMBER(termini);

	scribbled_over(_metadata, self, &r, false);
}

TEST_F(bridge, who_writes_over_areas_ends_no_bridge)
{
	const struct range r = MEMBER(areas);

	scribbled_over(_metadata, self, &r, false);
}

TEST_F(bridge, who_writes_over_watches_ends_no_bridge)
{
	const struct range r = MEMBER(watches);

	scribbled_over(_metadata, self, &r, false);
}

/* Rings of packets among it, and what the watcher is told. */
TEST_F(bridge, who_writes_over_memory_ends_no_bridge)
{
	const struct range r = { sizeof(struct shm_segment) + 65536, 8 << 20 };

	scribbled_over(_metadata, self, &r, false);
}

/* Where a slot's memory is, all processes of its segment believe what is there. */
TEST_F(bridge, who_writes_over_slots_harms_no_other_host)
{
	const struct range r = MEMBER(slots);

	scribbled_over(_metadata, self, &r, true);
}

TEST_F(bridge, who_writes_over_nqs_harms_no_other_host)
{
	const struct range r = MEMBER(nqs);

	scribbled_over(_metadata, self, &r, true);
}

TEST_HARNESS_MAIN
