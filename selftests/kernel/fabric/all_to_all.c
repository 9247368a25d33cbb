// SPDX-License-Identifier: GPL-2.0-only
/*
 * Four hosts, each of which sends to each other one, long messages into full NQs, through
 * sockets and rings that are full: all twelve ways make progress, for as long as one likes
 * (HAMLYN_TEST_SECONDS), and what was sent last arrives. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "hosts.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define HOSTS		4
#define LENGTH		(1u << 20)
#define NQ_ENTRIES	2
#define FIRST_ADDRESS	0x7f000001u

struct way {
	struct h_ticket ticket;
	uint64_t sent;		/* messages that have left */
	bool there;		/* the ticket */
	bool arrived;		/* the last one */
};

/* By all processes. */
struct board {
	struct way way[HOSTS][HOSTS];	/* from, to */
	bool over;
	int failed;
};

FIXTURE(all_to_all) {
	struct hosts h;
	struct host host[HOSTS];
	struct board *board;
	pid_t pid[HOSTS];
	int made;
};

FIXTURE_VARIANT(all_to_all) {
	bool small;
};

FIXTURE_VARIANT_ADD(all_to_all, usual) { .small = false };
FIXTURE_VARIANT_ADD(all_to_all, small_sockets) { .small = true };

static int add_peers(FIXTURE_DATA(all_to_all) *self)
{
	int i, k, ret = 0;

	for (i = 0; i < HOSTS && !ret; i++)
		for (k = 0; k < HOSTS && !ret; k++)
			if (i != k)
				ret = host_add_peer(&self->h, &self->host[i], &self->host[k]);
	return ret;
}

static bool is_up(struct hosts *h, const struct host *own, const struct host *other)
{
	return host_peer_of(h, own, other, HAMLYN_A_PEER_STATE) == HAMLYN_NL_PEER_STATE_UP;
}

/* What is sent to a peer that is not up is lost. */
static int await_peers(FIXTURE_DATA(all_to_all) *self)
{
	struct ht_poll poll;
	int i, k;

	ht_poll_begin(&poll);
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			while (i != k && !is_up(&self->h, &self->host[i], &self->host[k]))
				if (!ht_poll_more(&poll))
					return -ETIMEDOUT;
	return 0;
}

FIXTURE_SETUP(all_to_all)
{
	const int shared = MAP_SHARED | MAP_ANONYMOUS;
	uint32_t i;

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	/* Of processors, too, there are fewer than processes. */
	self->h.dead_ms = 300000;
	self->h.stall_ms = 300000;
	self->board = mmap(NULL, sizeof(*self->board), PROT_READ | PROT_WRITE, shared, -1, 0);
	ASSERT_NE(MAP_FAILED, self->board);
	self->h.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, hosts_namespace());
	if (variant->small)
		ASSERT_EQ(0, hosts_small());
	ASSERT_EQ(sizeof(self->h.fabric), getrandom(self->h.fabric, sizeof(self->h.fabric), 0));
	ASSERT_EQ(0, genl_open(&self->h.g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION));
	for (i = 0; i < HOSTS; i++) {
		self->host[i] = (struct host) { .id = i + 1, .address = FIRST_ADDRESS + i };
		ASSERT_EQ(0, host_make(&self->h, &self->host[i]));
		self->made++;
	}
	ASSERT_EQ(0, add_peers(self));
	ASSERT_EQ(0, await_peers(self));
}

FIXTURE_TEARDOWN(all_to_all)
{
	int i;

	for (i = 0; i < self->made; i++)
		EXPECT_EQ(0, nic_delete_soon(&self->h.g, self->host[i].nic));
	if (self->made)
		genl_close(&self->h.g);
	if (self->board)
		munmap(self->board, sizeof(*self->board));
}

/* ---- one host ---- */

struct member {
	struct board *board;
	int own;
	struct h_dev *dev;
	struct h_nq *nq;
	struct h_area *from, *to, *meta;
	struct h_terminus *terminus[HOSTS];
	int64_t handle[HOSTS];		/* of what is on its way; -1: nothing */
	unsigned char *out, *in;	/* a message for each host, or of it */
};

/* Of the number of a message: no two in a row have a byte in common. */
static void fill(unsigned char *message, uint64_t number)
{
	memset(message, (int)(number % 251 + 1), LENGTH);
}

static bool is_whole(const unsigned char *message, uint64_t number)
{
	return message[0] == number % 251 + 1 && !memcmp(message, message + 1, LENGTH - 1);
}

static int allocate(struct member *m, struct h_area **area, unsigned char **data)
{
	int ret = h_area_alloc(m->dev, HOSTS * LENGTH, area);

	*data = ret ? NULL : h_area_addr(*area);
	return ret;
}

/* What each other host needs to send here. */
static int invite(struct member *m)
{
	struct h_slot_attr attr = { .area = m->to, .nq = m->nq, .meta_area = m->meta,
				    .meta_count = HOSTS };
	struct h_slot *slot;
	struct way *way;
	int i, ret = h_slot_create(m->dev, &attr, &slot);

	for (i = 0; i < HOSTS && !ret; i++) {
		way = &m->board->way[i][m->own];
		ret = h_slot_ticket(slot, (uint64_t)i * LENGTH, LENGTH, (uint32_t)i, &way->ticket);
		__atomic_store_n(&way->there, true, __ATOMIC_RELEASE);
	}
	return ret;
}

static int open_termini(struct member *m)
{
	int i, ret = 0;

	for (i = 0; i < HOSTS && !ret; i++) {
		m->handle[i] = -1;
		ret = h_terminus_create(m->dev, NULL, &m->terminus[i]) ?:
		      h_terminus_bind(m->terminus[i], 0, m->from, 0, 0);
	}
	return ret;
}

static int member_open(struct member *m, const struct host *host)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/hamlyn%u", host->nic);
	return h_open(path, &m->dev) ?: h_nq_create(m->dev, NQ_ENTRIES, &m->nq) ?:
	       allocate(m, &m->from, &m->out) ?: allocate(m, &m->to, &m->in) ?:
	       h_area_alloc(m->dev, HOSTS * sizeof(struct hamlyn_metadata), &m->meta) ?:
	       open_termini(m) ?: invite(m);
}

/* The next message to a host, or what became of the last one: 0, or a negative errno. */
static int send_on(struct member *m, int to)
{
	struct way *way = &m->board->way[m->own][to];
	unsigned char *message = m->out + (size_t)to * LENGTH;
	struct h_msg msg = { .ticket = &way->ticket, .data = message, .length = LENGTH };
	int ret;

	if (m->handle[to] >= 0) {
		ret = h_send_done(m->terminus[to], m->handle[to]);
		if (ret <= 0)
			return ret;
		m->handle[to] = -1;
		__atomic_fetch_add(&way->sent, 1, __ATOMIC_RELEASE);
	}
	if (__atomic_load_n(&m->board->over, __ATOMIC_ACQUIRE) ||
	    !__atomic_load_n(&way->there, __ATOMIC_ACQUIRE))
		return 0;
	fill(message, way->sent + 1);
	m->handle[to] = h_send(m->terminus[to], &msg);
	return m->handle[to] == -EAGAIN || m->handle[to] >= 0 ? 0 : (int)m->handle[to];
}

static bool busy(const struct member *m)
{
	int i;

	for (i = 0; i < HOSTS; i++)
		if (m->handle[i] >= 0)
			return true;
	return !__atomic_load_n(&m->board->over, __ATOMIC_ACQUIRE);
}

/* Two of the hosts read their NQs, now and then; those of the others stay full. */
static int read_some(struct member *m, unsigned int round)
{
	struct hamlyn_nq_entry entry;
	int ret = 0;

	if (m->own % 2 && round % 16 == 0)
		ret = h_recv(m->nq, &entry);
	return ret < 0 && ret != -EOVERFLOW ? ret : 0;
}

/* Until what host @from has sent last is here. */
static int await_last_of(struct member *m, int from)
{
	const unsigned char *message = m->in + (size_t)from * LENGTH;
	struct way *way = &m->board->way[from][m->own];
	struct ht_poll poll;
	uint64_t sent;

	ht_poll_begin(&poll);
	for (;;) {
		sent = __atomic_load_n(&way->sent, __ATOMIC_ACQUIRE);
		if (is_whole(message, sent))
			break;
		if (ht_poll_more(&poll))
			continue;
		fprintf(stderr, "# host %d: of message %llu of host %d there are %d and %d\n",
			m->own + 1, (unsigned long long)sent, from + 1, message[0],
			message[LENGTH - 1]);
		return -ETIMEDOUT;
	}
	way->arrived = true;
	return 0;
}

static int await_last(struct member *m)
{
	int i, ret = 0;

	for (i = 0; i < HOSTS && !ret; i++)
		if (i != m->own)
			ret = await_last_of(m, i);
	return ret;
}

static int be_host(FIXTURE_DATA(all_to_all) *self, int own)
{
	struct member m = { .board = self->board, .own = own };
	unsigned int round = 0;
	int to, ret = member_open(&m, &self->host[own]);

	while (!ret && busy(&m)) {
		for (to = 0; to < HOSTS && !ret; to++)
			if (to != own)
				ret = send_on(&m, to);
		ret = ret ?: read_some(&m, round++);
		/* The NIC's engine is to have the processor. */
		sched_yield();
	}
	if (!ret)
		ret = await_last(&m);
	if (!ret && own % 2 == 0 && !h_nq_lost(m.nq))
		ret = -ENODATA;
	if (ret)
		fprintf(stderr, "# host %d: %s\n", own + 1, strerror(-ret));
	return ret ? 1 : 0;
}

/* ---- all of them ---- */

static int64_t seconds(void)
{
	const char *text = getenv("HAMLYN_TEST_SECONDS");
	long n = text ? strtol(text, NULL, 10) : 0;

	return n > 0 && n < 100000 ? n : 3;
}

/* Has each way got on since, within the patience one has? */
static bool all_get_on(FIXTURE_DATA(all_to_all) *self, uint64_t before[HOSTS][HOSTS])
{
	struct ht_poll poll;
	int from, to;

	ht_poll_begin(&poll);
	for (from = 0; from < HOSTS; from++)
		for (to = 0; to < HOSTS; to++) {
			uint64_t *sent = &self->board->way[from][to].sent;

			while (from != to &&
			       __atomic_load_n(sent, __ATOMIC_ACQUIRE) == before[from][to])
				if (!ht_poll_more(&poll)) {
					printf("# host %d sends nothing to host %d: %llu so far\n",
					       from + 1, to + 1,
					       (unsigned long long)before[from][to]);
					return false;
				}
			before[from][to] = __atomic_load_n(sent, __ATOMIC_ACQUIRE);
		}
	return true;
}

static int64_t all_stalls(FIXTURE_DATA(all_to_all) *self)
{
	int64_t stalls = 0;
	int i, k;

	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++)
			if (i != k)
				stalls += host_peer_of(&self->h, &self->host[i], &self->host[k],
						       HAMLYN_A_PEER_STALLS);
	return stalls;
}

TEST_F_TIMEOUT(all_to_all, every_way_gets_on, 7200)
{
	const int64_t end = ht_now_ns() + seconds() * 1000 * HT_MS;
	/* Small sockets have been seen to take all of it for seconds. */
	const int64_t patience = end + ht_patience_ns();
	uint64_t before[HOSTS][HOSTS] = { 0 }, sum = 0;
	int64_t stalls = 0;
	bool good;
	int i, k;

	if (!self->made)
		SKIP(return, "as root, kernel device");
	for (i = 0; i < HOSTS; i++) {
		self->pid[i] = ht_fork();
		if (!self->pid[i])
			_exit(be_host(self, i));
	}
	do
		good = all_get_on(self, before);
	while (good && (ht_now_ns() < end || (variant->small && ht_now_ns() < patience &&
					      !all_stalls(self))));
	EXPECT_TRUE(good);
	__atomic_store_n(&self->board->over, true, __ATOMIC_RELEASE);
	for (i = 0; i < HOSTS; i++)
		EXPECT_EQ(0, ht_reap(self->pid[i]));
	for (i = 0; i < HOSTS; i++)
		for (k = 0; k < HOSTS; k++) {
			EXPECT_TRUE(i == k || self->board->way[i][k].arrived);
			sum += self->board->way[i][k].sent;
		}
	stalls = all_stalls(self);
	/* Otherwise there may be room for all of it. */
	if (variant->small)
		EXPECT_LT(0, stalls);
	printf("# %llu messages of %u bytes, %lld stalls\n", (unsigned long long)sum, LENGTH,
	       (long long)stalls);
}

TEST_HARNESS_MAIN
