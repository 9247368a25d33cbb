// SPDX-License-Identifier: GPL-2.0-only
/*
 * NICs are made as they were asked for, changed, moved and deleted, and nothing else of them
 * is; who listens is told once of each; limits are of whom they are said to be. And on NICs
 * of one's own, where nobody else disturbs: what is a guess, who is held back by it, and what
 * that holds up. Kernel device only, run as root.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hostile.h"
#include "nics.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#define NOBODY		65534
#define SMALLEST	1024	/* bytes of a packet */
#define MOST_NICS	256
#define LONG		(512 * SMALLEST)

/* ---- NICs ---------------------------------------------------------------- */

/* A NIC for one test, which the fixture deletes. */
FIXTURE(nics) {
	struct genl g;
	int own;	/* this network namespace */
	int nic;
	struct party tx;	/* root's, on that NIC */
	struct party rx;
};

/* What is asked for, as number, of a new NIC. */
struct wish {
	uint16_t attr;
	uint32_t value;
};

static int make(struct genl *g, const struct wish *wish, size_t n)
{
	size_t i;
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	for (i = 0; i < n; i++)
		genl_put_u32(g, wish[i].attr, wish[i].value);
	ret = genl_call(g);
	return ret ? ret : (int)genl_number(genl_attr(g, HAMLYN_A_NIC));
}

#define MAKE(g, ...) make(g, (const struct wish []) { __VA_ARGS__ }, \
			  sizeof((const struct wish []) { __VA_ARGS__ }) / \
			  sizeof(struct wish))

static int set(struct genl *g, uint32_t nic, uint16_t attr, uint32_t value)
{
	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	genl_put_u32(g, attr, value);
	return genl_call(g);
}

static int delete(struct genl *g, uint32_t nic)
{
	return nic_call(g, HAMLYN_NL_CMD_NIC_DEL, nic);
}

static int get(struct genl *g, uint32_t nic)
{
	return nic_call(g, HAMLYN_NL_CMD_NIC_GET, nic);
}

/* Whoever had it open may still be on his way out. */
static int delete_soon(struct genl *g, uint32_t nic)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do
		ret = delete(g, nic);
	while (ret == -EBUSY && ht_poll_more(&poll));
	return ret;
}

static int open_nic(uint32_t nic)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/hamlyn%u", nic);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* From here on ht_raw_open() and party_open() open this one. */
static void use_nic(uint32_t nic)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/hamlyn%u", nic);
	setenv("HAMLYN_DEVICE", path, 1);
}

/* Some have few guesses: the driver of this suite is loaded with none. */
static int have_parties(FIXTURE_DATA(nics) *self, const struct wish *wish, size_t n)
{
	int ret;

	self->nic = make(&self->g, wish, n);
	if (self->nic < 0)
		return self->nic;
	use_nic((uint32_t)self->nic);
	ret = party_open(&self->rx);
	return ret ? ret : party_open(&self->tx);
}

#define HAVE_PARTIES(...) ASSERT_EQ(0, have_parties(self, \
	(const struct wish []) { __VA_ARGS__ }, \
	sizeof((const struct wish []) { __VA_ARGS__ }) / sizeof(struct wish)))

FIXTURE_SETUP(nics)
{
	self->tx.fd = -1;
	self->rx.fd = -1;
	self->nic = -1;
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
	self->own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->own);
}

FIXTURE_TEARDOWN(nics)
{
	party_close(&self->tx);
	party_close(&self->rx);
	if (self->nic >= 0)
		EXPECT_EQ(0, delete_soon(&self->g, (uint32_t)self->nic));
	close(self->own);
	genl_close(&self->g);
}

TEST_F(nics, a_new_nic_is_as_it_was_asked_for)
{
	static const struct wish asked[] = {
		{ HAMLYN_A_NIC, 201 }, { HAMLYN_A_HOST, 77 },
		{ HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN },
		{ HAMLYN_A_WATCHDOG_MS, 60000 },
		{ HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE },
		{ HAMLYN_A_IDLE_US, 123 }, { HAMLYN_A_KICK_WINDOW_US, 45 },
		{ HAMLYN_A_PACKET_SIZE, 2048 }, { HAMLYN_A_MAX_SLOTS, 33 },
		{ HAMLYN_A_GUESSES, 9 },
	};
	struct hamlyn_query query = { .state = 99 };
	unsigned int i;
	int fd;

	self->nic = make(&self->g, asked, ARRAY_SIZE(asked));
	ASSERT_EQ(201, self->nic);
	EXPECT_STREQ("hamlyn201", (const char *)
		     (genl_attr(&self->g, HAMLYN_A_NAME) + 1));
	ASSERT_EQ(0, get(&self->g, 201));
	for (i = 0; i < ARRAY_SIZE(asked); i++)
		EXPECT_EQ(asked[i].value,
			  genl_number(genl_attr(&self->g, asked[i].attr))) {
			TH_LOG("attribute %u", asked[i].attr);
		}
	fd = open_nic(201);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ht_raw_query(fd, &query));
	EXPECT_EQ(77, query.host);
	EXPECT_EQ(2048, query.packet_size);
	EXPECT_EQ(33, query.max_slots);
	EXPECT_EQ(HAMLYN_NIC_DOWN, query.state);
	close(fd);
	EXPECT_EQ(0, delete_soon(&self->g, 201));
	self->nic = -1;
	EXPECT_EQ(-ENOENT, open_nic(201));
	EXPECT_EQ(-ENODEV, get(&self->g, 201));
}

TEST_F(nics, a_new_nic_has_the_limits_it_was_given)
{
	static const struct { uint16_t attr; uint32_t value; bool wide; } asked[] = {
		{ HAMLYN_A_LIMITS_KERNEL_BYTES, 80 * PAGE, true },
		{ HAMLYN_A_LIMITS_USER_KERNEL_BYTES, 40 * PAGE, true },
		{ HAMLYN_A_LIMITS_USER_WIRED_BYTES, 20 * PAGE, true },
		{ HAMLYN_A_LIMITS_USER_SLOTS, 7, false },
		{ HAMLYN_A_LIMITS_USER_TERMINI, 5, false },
	};
	struct genl *g = &self->g;
	const struct nlattr *limits;
	struct nlattr *nest;
	unsigned int i;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	genl_put_u32(g, HAMLYN_A_NIC, 202);
	nest = genl_put(g, HAMLYN_A_LIMITS | NLA_F_NESTED, NULL, 0);
	for (i = 0; i < ARRAY_SIZE(asked); i++)
		if (asked[i].wide)
			genl_put_u64(g, asked[i].attr, asked[i].value);
		else
			genl_put_u32(g, asked[i].attr, asked[i].value);
	genl_end(g, nest);
	ASSERT_EQ(0, genl_call(g));
	self->nic = 202;
	ASSERT_EQ(0, get(g, 202));
	limits = genl_attr(g, HAMLYN_A_LIMITS);
	for (i = 0; i < ARRAY_SIZE(asked); i++)
		EXPECT_EQ(asked[i].value,
			  genl_number(genl_nested(limits, asked[i].attr)));
}

TEST_F(nics, what_a_nic_has_is_not_given_to_another)
{
	struct genl *g = &self->g;
	uint32_t host;

	self->nic = MAKE(g, { HAMLYN_A_NIC, 203 });
	ASSERT_EQ(203, self->nic);
	ASSERT_EQ(0, get(g, 203));
	host = (uint32_t)genl_number(genl_attr(g, HAMLYN_A_HOST));
	EXPECT_EQ(203, host);
	EXPECT_EQ(-EEXIST, MAKE(g, { HAMLYN_A_NIC, 203 }));
	EXPECT_NE(NULL, strstr(g->text, "already"));
	EXPECT_EQ(-EEXIST, MAKE(g, { HAMLYN_A_NIC, 204 }, { HAMLYN_A_HOST, 203 }));
	EXPECT_NE(NULL, strstr(g->text, "taken by"));
	EXPECT_EQ(-EINVAL, MAKE(g, { HAMLYN_A_HOST, MOST_NICS }));
	EXPECT_NE(NULL, strstr(g->text, "host"));
	EXPECT_EQ(-EINVAL, MAKE(g, { HAMLYN_A_HOST, ~0U }));
	EXPECT_GT(0, MAKE(g, { HAMLYN_A_NIC, MOST_NICS }));
	/* What failed has kept nothing. */
	EXPECT_EQ(204, MAKE(g, { HAMLYN_A_NIC, 204 }, { HAMLYN_A_HOST, 255 }));
	/* Without a wish for a host: its own number, and if that is taken the first. */
	EXPECT_EQ(255, MAKE(g, { HAMLYN_A_NIC, 255 }));
	ASSERT_EQ(0, get(g, 255));
	host = (uint32_t)genl_number(genl_attr(g, HAMLYN_A_HOST));
	EXPECT_GT(200, host);
	EXPECT_EQ(0, delete(g, 255));
	EXPECT_EQ(0, delete(g, 204));
	EXPECT_EQ(-ENODEV, delete(g, 204));
}

TEST_F(nics, values_that_cannot_be_are_refused)
{
	struct genl *g = &self->g;
	static const struct wish bad[] = {
		{ HAMLYN_A_ENGINE_MODE, 2 }, { HAMLYN_A_ENGINES, 0 },
		{ HAMLYN_A_ENGINES, 17 }, { HAMLYN_A_PACKET_SIZE, SMALLEST - 1 },
		{ HAMLYN_A_PACKET_SIZE, 65537 }, { HAMLYN_A_MAX_SLOTS, 0 },
		{ HAMLYN_A_MAX_SLOTS, (1 << 20) + 1 }, { HAMLYN_A_STATE, 2 },
		{ HAMLYN_A_CONTEXT, 1 }, { HAMLYN_A_ID, 1 }, { HAMLYN_A_UID, 1 },
		{ HAMLYN_A_PRIORITY, 1 }, { HAMLYN_A_WEIGHT, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_GT(0, make(g, &bad[i], 1)) {
			TH_LOG("attribute %u", bad[i].attr);
		}
}

/* With the fewest slots: it is about how many there can be. */
TEST_F(nics, there_are_so_many_and_no_more)
{
	struct genl *g = &self->g;
	bool made[MOST_NICS] = {};
	unsigned int n = 0, i;
	int nic;

	for (;;) {
		nic = MAKE(g, { HAMLYN_A_MAX_SLOTS, 1 },
			   { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
		if (nic < 0 || nic >= MOST_NICS || made[nic])
			break;
		made[nic] = true;
		n++;
	}
	EXPECT_EQ(-ENOSPC, nic);
	EXPECT_NE(NULL, strstr(g->text, "there are"));
	EXPECT_LT(MOST_NICS / 2, n);
	for (i = 0; i < MOST_NICS; i++)
		if (made[i])
			EXPECT_EQ(0, delete(g, i));
}

/* The threads of a NIC, by their names; and nobody else's. */
static int threads_of(uint32_t nic)
{
	char path[64], name[32], want[32];
	DIR *proc = opendir("/proc");
	struct dirent *d;
	FILE *file;
	int n = 0;

	snprintf(want, sizeof(want), "hamlyn%u/", nic);
	while (proc && (d = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%.20s/comm", d->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strncmp(name, want, strlen(want)))
			n++;
		fclose(file);
	}
	if (proc)
		closedir(proc);
	return n;
}

TEST_F(nics, the_engines_of_a_nic_come_and_go_with_it)
{
	struct genl *g = &self->g;

	self->nic = MAKE(g, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL },
			 { HAMLYN_A_ENGINES, 3 });
	ASSERT_LE(0, self->nic);
	ASSERT_EQ(0, get(g, (uint32_t)self->nic));
	if (genl_number(genl_attr(g, HAMLYN_A_ENGINE_MODE)) ==
	    HAMLYN_NL_ENGINE_POLL) {
		EXPECT_EQ(3, genl_number(genl_attr(g, HAMLYN_A_ENGINES)));
		EXPECT_EQ(3, threads_of((uint32_t)self->nic));
	} else {
		/* On a single processor none would leave time to the others. */
		EXPECT_EQ(1, sysconf(_SC_NPROCESSORS_ONLN));
		EXPECT_EQ(0, threads_of((uint32_t)self->nic));
	}
	EXPECT_EQ(0, delete(g, (uint32_t)self->nic));
	EXPECT_EQ(0, threads_of((uint32_t)self->nic));
	self->nic = -1;
}

/* ---- and who has them open ------------------------------------------------- */

TEST_F(nics, a_nic_that_is_open_stays_where_it_is)
{
	struct genl *g = &self->g;
	int fd, ready[2];
	uint32_t nic;
	char byte;
	pid_t pid;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET) || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(0, ht_read_all(ready[0], &byte, 1));
	fd = open_nic(nic);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, delete(g, nic));
	EXPECT_NE(NULL, strstr(g->text, "open"));
	EXPECT_EQ(-EBUSY, nic_move(g, nic, pid));
	EXPECT_EQ(0, get(g, nic));
	EXPECT_EQ(0, ht_raw_query(fd, &(struct hamlyn_query) {}));
	close(fd);
	EXPECT_EQ(0, nic_move(g, nic, pid));
	EXPECT_EQ(-ENODEV, get(g, nic));
	EXPECT_EQ(-ENODEV, delete(g, nic));
	EXPECT_EQ(-EPERM, open_nic(nic));
	/* With its namespace it goes, and its number is free again. */
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	self->nic = -1;
	for (struct ht_poll poll = { .end = ht_now_ns() + ht_patience_ns() };
	     self->nic < 0 && ht_poll_more(&poll); )
		self->nic = MAKE(g, { HAMLYN_A_NIC, nic });
	EXPECT_EQ((int)nic, self->nic);
	close(ready[0]);
	close(ready[1]);
}

/* In a namespace of its own: opens the NIC as soon as it is there, and passes it on. */
static void open_elsewhere(int ready, uint32_t nic)
{
	struct ht_poll poll;
	struct genl g;
	int fd;

	if (unshare(CLONE_NEWNET) || write(ready, "r", 1) != 1)
		_exit(1);
	ht_poll_begin(&poll);
	do
		fd = open_nic(nic);
	while (fd == -EPERM && ht_poll_more(&poll));
	if (fd < 0 || genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		_exit(2);
	if (get(&g, nic) || get(&g, 0) != -ENODEV)
		_exit(3);
	_exit(pass_fd(ready, fd) ? 4 : 0);
}

TEST_F(nics, an_open_nic_outlives_its_namespace)
{
	struct genl *g = &self->g;
	struct hamlyn_query query;
	struct ht_poll poll;
	int sockets[2], fd;
	uint32_t nic;
	char byte;
	pid_t pid;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = ht_fork();
	if (!pid)
		open_elsewhere(sockets[1], nic);
	ASSERT_EQ(0, ht_read_all(sockets[0], &byte, 1));
	ASSERT_EQ(0, nic_move(g, nic, pid));
	EXPECT_EQ(0, ht_reap(pid));
	fd = get_fd(sockets[0]);
	ASSERT_LE(0, fd);
	ht_poll_begin(&poll);
	while (get(g, nic) && ht_poll_more(&poll))
		continue;
	EXPECT_EQ(0, get(g, nic));
	EXPECT_EQ(0, ht_raw_query(fd, &query));
	EXPECT_EQ(-EBUSY, delete(g, nic));
	close(fd);
	close(sockets[0]);
	close(sockets[1]);
}

/* ---- events ------------------------------------------------------------------ */

struct told {
	uint32_t event;
	uint32_t nic;
	uint32_t context;
	uint32_t pid;
	uint32_t uid;
	uint32_t id;
	uint32_t paused_ms;
	char name[32];
};

/* The next event of that NIC that has arrived; false if there is none. */
static bool next_event(int fd, uint32_t nic, struct told *told)
{
	static struct genl g;
	const struct nlattr *name;

	while (recv(fd, &g.reply, sizeof(g.reply), MSG_DONTWAIT) > 0) {
		*told = (struct told) {
			.event = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_EVENT)),
			.nic = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_NIC)),
			.context = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_CONTEXT)),
			.pid = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_PID)),
			.uid = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_UID)),
			.id = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_ID)),
			.paused_ms = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_PAUSED_MS)),
		};
		name = genl_attr(&g, HAMLYN_A_NAME);
		if (name)
			snprintf(told->name, sizeof(told->name), "%s",
				 (const char *)(name + 1));
		if (told->nic == nic)
			return true;
	}
	return false;
}

#define EXPECT_TOLD(what) do {						\
	EXPECT_TRUE(next_event(fd, nic, &told));			\
	EXPECT_EQ(what, told.event);					\
} while (0)

#define EXPECT_NOTHING_TOLD() EXPECT_FALSE(next_event(fd, nic, &told)) {	\
	TH_LOG("event %u", told.event);					\
}

TEST_F(nics, each_event_is_told_once_and_says_of_whom)
{
	struct genl *g = &self->g;
	int fd = genl_listen(g);
	struct told told;
	uint32_t nic;
	int open;

	ASSERT_LE(0, fd);
	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_NEW);
	EXPECT_EQ(0, strncmp("hamlyn", told.name, 6));
	EXPECT_EQ(nic, strtoul(told.name + 6, NULL, 10));
	EXPECT_NOTHING_TOLD();
	ASSERT_EQ(0, set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_UP));
	EXPECT_NOTHING_TOLD();
	ASSERT_EQ(0, set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN));
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DOWN);
	ASSERT_EQ(0, set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN));
	EXPECT_NOTHING_TOLD();
	ASSERT_EQ(0, set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_UP));
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_UP);
	EXPECT_NOTHING_TOLD();
	ASSERT_EQ(0, seteuid(NOBODY));
	open = open_nic(nic);
	ASSERT_EQ(0, seteuid(0));
	ASSERT_LE(0, open);
	EXPECT_TOLD(HAMLYN_NL_EVENT_CONTEXT_OPEN);
	EXPECT_EQ((uint32_t)getpid(), told.pid);
	EXPECT_EQ(NOBODY, told.uid);
	EXPECT_NOTHING_TOLD();
	close(open);
	EXPECT_TOLD(HAMLYN_NL_EVENT_CONTEXT_CLOSE);
	EXPECT_EQ((uint32_t)getpid(), told.pid);
	EXPECT_EQ(NOBODY, told.uid);
	EXPECT_EQ(0, delete_soon(g, nic));
	self->nic = -1;
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DEL);
	EXPECT_NOTHING_TOLD();
	/* One that is down from the beginning. */
	self->nic = MAKE(g, { HAMLYN_A_NIC, nic },
			 { HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN });
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_NEW);
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DOWN);
	EXPECT_NOTHING_TOLD();
	close(fd);
}

/* In a namespace of its own: is told of the NIC that comes, and of no other. */
static void listen_elsewhere(int ready, uint32_t nic)
{
	struct ht_poll poll;
	struct told told;
	struct genl g;
	bool heard;
	int fd;

	if (unshare(CLONE_NEWNET) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		_exit(1);
	fd = genl_listen(&g);
	if (fd < 0 || write(ready, "r", 1) != 1)
		_exit(2);
	ht_poll_begin(&poll);
	do
		heard = next_event(fd, nic, &told);
	while (!heard && ht_poll_more(&poll));
	if (!heard || told.event != HAMLYN_NL_EVENT_NIC_NEW)
		_exit(3);
	if (delete(&g, nic) || !next_event(fd, nic, &told) ||
	    told.event != HAMLYN_NL_EVENT_NIC_DEL)
		_exit(4);
	_exit(next_event(fd, nic, &told) ? 5 : 0);
}

TEST_F(nics, a_move_is_told_on_both_sides)
{
	struct genl *g = &self->g;
	int fd = genl_listen(g), ready[2];
	struct told told;
	uint32_t nic;
	char byte;
	pid_t pid;

	ASSERT_LE(0, fd);
	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_NEW);
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid)
		listen_elsewhere(ready[1], nic);
	ASSERT_EQ(0, ht_read_all(ready[0], &byte, 1));
	ASSERT_EQ(0, nic_move(g, nic, pid));
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DEL);
	EXPECT_EQ(0, ht_reap(pid));
	self->nic = -1;
	/* What is deleted there is no affair of ours. */
	EXPECT_NOTHING_TOLD();
	close(ready[0]);
	close(ready[1]);
	close(fd);
}

/* ---- limits ------------------------------------------------------------------- */

static int limit(struct genl *g, uint32_t nic, const uint32_t *uid, uint16_t attr,
		 uint64_t value, bool wide)
{
	struct nlattr *nest;

	genl_begin(g, HAMLYN_NL_CMD_LIMIT_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	if (uid)
		genl_put_u32(g, HAMLYN_A_UID, *uid);
	nest = genl_put(g, HAMLYN_A_LIMITS | NLA_F_NESTED, NULL, 0);
	if (wide)
		genl_put_u64(g, attr, value);
	else
		genl_put_u32(g, attr, (uint32_t)value);
	genl_end(g, nest);
	return genl_call(g);
}

static int no_limit(struct genl *g, uint32_t nic, uint32_t uid)
{
	genl_begin(g, HAMLYN_NL_CMD_LIMIT_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	genl_put_u32(g, HAMLYN_A_UID, uid);
	return genl_call(g);
}

#define MOST	20

/* How many slots there are for the caller, up to MOST; more than that: an error. */
static int take_slots(void *arg)
{
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	int fd = ht_raw_open(), n, ret = 0;

	(void)arg;
	if (fd < 0 || ht_raw_area_alloc(fd, PAGE, &area, NULL))
		return 100;
	for (n = 0; n < MOST; n++) {
		ret = ht_raw_slot_create(fd, area.area, 1, HAMLYN_NONE, &slot);
		if (ret)
			break;
	}
	return ret && ret != -EDQUOT ? 101 : n;
}

static int take_termini(void *arg)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2,
					    .entry_size = 128 };
	int fd = ht_raw_open(), n, ret = 0;

	(void)arg;
	for (n = 0; n < MOST; n++) {
		ret = ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
		if (ret)
			break;
	}
	return ret && ret != -EDQUOT ? 101 : n;
}

static int take_pages(void *arg)
{
	struct hamlyn_area_alloc area;
	int fd = ht_raw_open(), n, ret = 0;

	(void)arg;
	for (n = 0; n < MOST; n++) {
		ret = ht_raw_area_alloc(fd, PAGE, &area, NULL);
		if (ret)
			break;
	}
	return ret && ret != -EDQUOT ? 101 : n;
}

static int wire_pages(void *arg)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct hamlyn_area_add add = { .size = sizeof(add), .length = PAGE,
				       .addr = (uintptr_t)page };
	int fd = ht_raw_open(), n, ret = 0;

	(void)arg;
	page[0] = 1;
	for (n = 0; n < MOST; n++) {
		ret = ht_raw(fd, HAMLYN_IOC_AREA_ADD, &add);
		if (ret)
			break;
	}
	return ret && ret != -EDQUOT ? 101 : n;
}

static const struct {
	uint16_t attr;
	bool wide;
	uint64_t unit;
	int (*take)(void *arg);
} limited[] = {
	{ HAMLYN_A_LIMITS_USER_SLOTS, false, 1, take_slots },
	{ HAMLYN_A_LIMITS_USER_TERMINI, false, 1, take_termini },
	{ HAMLYN_A_LIMITS_USER_KERNEL_BYTES, true, PAGE, take_pages },
	{ HAMLYN_A_LIMITS_USER_WIRED_BYTES, true, PAGE, wire_pages },
};

/* Takes the program's limit of locked memory as it is: eight pages are in any. */
TEST_F(nics, a_limit_of_one_user_is_his_alone)
{
	const uint32_t uid = somebody(1), other = somebody(2);
	struct genl *g = &self->g;
	uint32_t nic;
	unsigned int i;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	use_nic(nic);
	for (i = 0; i < ARRAY_SIZE(limited); i++) {
		ASSERT_EQ(0, limit(g, nic, &uid, limited[i].attr,
				   3 * limited[i].unit, limited[i].wide));
		EXPECT_EQ(3, as(uid, limited[i].take, NULL)) {
			TH_LOG("limit %u", i);
		}
		EXPECT_LT(3, as(other, limited[i].take, NULL));
		/* Half of a page more is no page. */
		if (limited[i].wide) {
			ASSERT_EQ(0, limit(g, nic, &uid, limited[i].attr,
					   4 * PAGE + PAGE / 2, true));
			EXPECT_EQ(4, as(uid, limited[i].take, NULL));
		}
		/* None at all, and then as all have. */
		ASSERT_EQ(0, limit(g, nic, &uid, limited[i].attr,
				   limited[i].wide ? UINT64_MAX : UINT32_MAX,
				   limited[i].wide));
		EXPECT_EQ(MOST, as(uid, limited[i].take, NULL));
		ASSERT_EQ(0, limit(g, nic, &uid, limited[i].attr, 0,
				   limited[i].wide));
		EXPECT_EQ(0, as(uid, limited[i].take, NULL));
		ASSERT_EQ(0, no_limit(g, nic, uid));
		EXPECT_EQ(MOST, as(uid, limited[i].take, NULL));
	}
}

TEST_F(nics, one_limit_of_a_user_leaves_his_others_as_they_are)
{
	const uint32_t uid = somebody(3);
	struct genl *g = &self->g;
	uint32_t nic;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	use_nic(nic);
	ASSERT_EQ(0, limit(g, nic, &uid, HAMLYN_A_LIMITS_USER_SLOTS, 2, false));
	ASSERT_EQ(0, limit(g, nic, &uid, HAMLYN_A_LIMITS_USER_TERMINI, 5, false));
	EXPECT_EQ(2, as(uid, take_slots, NULL));
	EXPECT_EQ(5, as(uid, take_termini, NULL));
	EXPECT_EQ(-EINVAL, limit(g, nic, &uid, HAMLYN_A_LIMITS_KERNEL_BYTES,
				 PAGE, true));
	EXPECT_NE(NULL, strstr(g->text, "is for all users"));
	/* What all have now is not what he has. */
	ASSERT_EQ(0, limit(g, nic, NULL, HAMLYN_A_LIMITS_USER_SLOTS, 4, false));
	EXPECT_EQ(2, as(uid, take_slots, NULL));
	EXPECT_EQ(4, as(somebody(4), take_slots, NULL));
	ASSERT_EQ(0, no_limit(g, nic, uid));
	EXPECT_EQ(4, as(uid, take_slots, NULL));
	EXPECT_EQ(MOST, as(uid, take_termini, NULL));
}

TEST_F(nics, root_passes_a_users_limit_and_not_the_nics)
{
	const uint32_t root = 0;
	struct genl *g = &self->g;
	uint32_t nic;
	unsigned int i;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	use_nic(nic);
	for (i = 0; i < ARRAY_SIZE(limited); i++) {
		ASSERT_EQ(0, limit(g, nic, &root, limited[i].attr, 0,
				   limited[i].wide));
		EXPECT_EQ(MOST, as(0, limited[i].take, NULL)) {
			TH_LOG("limit %u", i);
		}
	}
	ASSERT_EQ(0, limit(g, nic, NULL, HAMLYN_A_LIMITS_KERNEL_BYTES,
			   6 * PAGE, true));
	EXPECT_EQ(6, as(0, take_pages, NULL));
	EXPECT_EQ(6, as(somebody(5), take_pages, NULL));
	ASSERT_EQ(0, limit(g, nic, NULL, HAMLYN_A_LIMITS_KERNEL_BYTES,
			   UINT64_MAX, true));
	EXPECT_EQ(MOST, as(0, take_pages, NULL));
}

/* ---- who watches a NIC that goes down -------------------------------------------- */

#define WATCHES	40	/* more than are told in one go */

static int watch(int fd, struct hamlyn_watch w)
{
	w.size = sizeof(w);
	return ht_raw(fd, HAMLYN_IOC_WATCH, &w);
}

/* How often each cookie was told; false if something else came. */
static bool take_told(struct party *p, unsigned int *told)
{
	struct hamlyn_nq_entry e;

	while (ht_raw_recv(&p->nq, &e)) {
		if (e.flags != HAMLYN_NQE_PEER_GONE || e.data >= WATCHES)
			return false;
		told[e.data]++;
	}
	return true;
}

TEST_F(nics, all_who_watch_a_nic_that_goes_down_are_told_once)
{
	struct hamlyn_slot_create slots[2];
	unsigned int told[WATCHES] = {}, i;
	struct genl *g = &self->g;
	struct hamlyn_watch w;
	struct party watcher;

	ASSERT_EQ(0, party_open(&watcher));	/* on another NIC */
	HAVE_PARTIES({ HAMLYN_A_MAX_SLOTS, 5000 });
	slots[0] = self->rx.slot;
	ASSERT_EQ(0, ht_raw_slot_create(self->rx.fd, self->rx.area.area, PAGE,
					HAMLYN_NONE, &slots[1]));
	w = (struct hamlyn_watch) { .host = self->rx.query.host,
				    .nq = watcher.nq.arg.nq };
	for (i = 0; i < WATCHES; i++) {
		/* Nearly all on one slot. */
		w.slot = slots[i < 3].slot;
		w.key = slots[i < 3].key;
		w.cookie = i;
		ASSERT_EQ(0, watch(watcher.fd, w));
	}
	ASSERT_TRUE(take_told(&watcher, told));
	ASSERT_EQ(0, set(g, (uint32_t)self->nic, HAMLYN_A_WATCHDOG_MS, 60000));
	ASSERT_EQ(0, set(g, (uint32_t)self->nic, HAMLYN_A_STATE,
			 HAMLYN_NL_STATE_UP));
	EXPECT_TRUE(take_told(&watcher, told));
	for (i = 0; i < WATCHES; i++)
		EXPECT_EQ(0, told[i]);
	ASSERT_EQ(0, set(g, (uint32_t)self->nic, HAMLYN_A_STATE,
			 HAMLYN_NL_STATE_DOWN));
	/* When the call returns they have been. */
	EXPECT_TRUE(take_told(&watcher, told));
	for (i = 0; i < WATCHES; i++)
		EXPECT_EQ(1, told[i]);
	/* Who comes now is told at once, and it is no guess. */
	w.cookie = 0;
	EXPECT_EQ(0, watch(watcher.fd, w));
	EXPECT_TRUE(take_told(&watcher, told));
	EXPECT_EQ(2, told[0]);
	EXPECT_EQ(0, rejects(&self->rx, HAMLYN_REJECT_DOWN));
	ASSERT_EQ(0, set(g, (uint32_t)self->nic, HAMLYN_A_STATE,
			 HAMLYN_NL_STATE_UP));
	EXPECT_EQ(0, watch(watcher.fd, w));
	EXPECT_TRUE(take_told(&watcher, told));
	EXPECT_EQ(2, told[0]);
	/* And a slot that goes in the ordinary way. */
	ASSERT_EQ(0, ht_raw_id(self->rx.fd, HAMLYN_IOC_SLOT_DESTROY, w.slot));
	EXPECT_TRUE(take_told(&watcher, told));
	EXPECT_EQ(3, told[0]);
	party_close(&watcher);
}

/* ---- what is a guess, and what is none --------------------------------------------- */

/* For one who does not have what root has. */
struct stranger {
	const struct party *to;
	uint32_t paranoid;	/* a slot of one entry */
	int ticket;
};

#define TRIES	10	/* more than are free */

/* Which of the attempts was held back; 0 if none was. */
static int held_back(int fd, const struct hamlyn_watch *w)
{
	int i, ret;

	for (i = 1; i <= TRIES; i++) {
		ret = watch(fd, *w);
		if (ret == -EAGAIN)
			return i;
		if (ret)
			return 100;
	}
	return 0;
}

static struct hamlyn_watch watch_of(const struct party *own, const struct party *to)
{
	return (struct hamlyn_watch) {
		.host = to->query.host, .slot = to->slot.slot,
		.key = to->slot.key, .nq = own->nq.arg.nq,
	};
}

static int watch_right(void *arg)
{
	const struct stranger *s = arg;
	struct hamlyn_watch w;
	struct party own;

	if (party_open(&own))
		return 90;
	w = watch_of(&own, s->to);
	return held_back(own.fd, &w);
}

static int watch_wrong(void *arg)
{
	const struct stranger *s = arg;
	struct hamlyn_watch w;
	struct party own;

	if (party_open(&own))
		return 90;
	w = watch_of(&own, s->to);
	w.key ^= 1;
	return held_back(own.fd, &w);
}

/* An entry that there is not, of a slot where each has a key of its own. */
static int watch_entry(void *arg)
{
	const struct stranger *s = arg;
	struct hamlyn_watch w;
	struct party own;

	if (party_open(&own))
		return 90;
	w = watch_of(&own, s->to);
	w.slot = s->paranoid;
	w.meta_index = 1;
	return held_back(own.fd, &w);
}

static int watch_ticket(void *arg)
{
	const struct stranger *s = arg;
	struct hamlyn_watch w;
	struct party own;

	if (party_open(&own))
		return 90;
	w = (struct hamlyn_watch) { .flags = HAMLYN_WATCH_TICKET,
				    .key = (uint64_t)s->ticket,
				    .nq = own.nq.arg.nq };
	return held_back(own.fd, &w);
}

static int ticket_of(const struct party *p)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg),
					    .slot = p->slot.slot };
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_CREATE, &arg);

	return ret ? ret : arg.fd;
}

/* What was discarded is counted where it was: of the NIC of who watches, once each. */
static int64_t nic_rejects(struct genl *g, uint32_t nic, uint16_t reason)
{
	if (nic_call(g, HAMLYN_NL_CMD_STATS_GET, nic))
		return -1;
	return (int64_t)genl_number(genl_nested(genl_attr(g, HAMLYN_A_REJECTS),
						reason));
}

TEST_F(nics, only_wrong_keys_are_guesses_of_who_watches)
{
	struct stranger s = { .to = &self->rx };
	struct hamlyn_slot_create paranoid;
	int wrong;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 3 });
	paranoid = (struct hamlyn_slot_create) {
		.size = sizeof(paranoid), .mode = HAMLYN_SLOT_PARANOID,
		.area = self->rx.area.area, .length = 64,
		.meta_area = self->rx.area.area, .meta_base = 2048,
		.meta_count = 1, .nq = HAMLYN_NONE,
	};
	ASSERT_EQ(0, ht_raw(self->rx.fd, HAMLYN_IOC_SLOT_CREATE, &paranoid));
	s.paranoid = paranoid.slot;
	EXPECT_EQ(0, as(somebody(6), watch_right, &s));
	EXPECT_EQ(0, as(somebody(7), watch_entry, &s));
	EXPECT_EQ(TRIES, nic_rejects(&self->g, (uint32_t)self->nic,
				     HAMLYN_A_REJECTS_METADATA));
	/* The one behind the free ones brings a pause: the first is but a millisecond. */
	wrong = as(somebody(8), watch_wrong, &s);
	EXPECT_LE(5, wrong);
	EXPECT_GE(TRIES, wrong);
	EXPECT_EQ(wrong - 1, rejects(&self->rx, HAMLYN_REJECT_KEY));
	/* A NIC that is down tells everybody the same. */
	ASSERT_EQ(0, set(&self->g, (uint32_t)self->nic, HAMLYN_A_STATE,
			 HAMLYN_NL_STATE_DOWN));
	EXPECT_EQ(0, as(somebody(9), watch_wrong, &s));
	ASSERT_EQ(0, set(&self->g, (uint32_t)self->nic, HAMLYN_A_STATE,
			 HAMLYN_NL_STATE_UP));
	EXPECT_EQ(wrong - 1, rejects(&self->rx, HAMLYN_REJECT_KEY));
}

/* Nobody has chosen its key; of somebody else's guess it says nothing. */
TEST_F(nics, a_void_ticket_is_no_guess)
{
	struct stranger s = { .to = &self->rx };

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 3 });
	s.ticket = ticket_of(&self->rx);
	ASSERT_LE(0, s.ticket);
	EXPECT_EQ(0, as(somebody(10), watch_ticket, &s));
	ASSERT_EQ(0, rekey(&self->rx, 0));
	EXPECT_EQ(0, as(somebody(11), watch_ticket, &s));
	EXPECT_EQ(TRIES, rejects(&self->rx, HAMLYN_REJECT_KEY));
	close(s.ticket);
}

TEST_F(nics, each_wrong_watch_is_counted_once)
{
	struct stranger s = { .to = &self->rx };
	struct hamlyn_watch w;
	uint32_t nic;
	int i;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 0 });
	nic = (uint32_t)self->nic;
	w = watch_of(&self->tx, s.to);
	w.key++;
	for (i = 1; i <= 5; i++) {
		ASSERT_EQ(0, watch(self->tx.fd, w));
		EXPECT_EQ(i, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_KEY));
		EXPECT_EQ(i, rejects(&self->rx, HAMLYN_REJECT_KEY));
	}
	w = watch_of(&self->tx, s.to);
	w.slot = self->rx.query.max_slots;
	ASSERT_EQ(0, watch(self->tx.fd, w));
	EXPECT_EQ(1, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_SLOT));
	EXPECT_EQ(5, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_KEY));
	/* A host that there is not rejects nothing. */
	w.host = 254;
	ASSERT_EQ(0, watch(self->tx.fd, w));
	EXPECT_EQ(1, nic_rejects(&self->g, nic, HAMLYN_A_REJECTS_SLOT));
}

/* ---- who is held back ------------------------------------------------------------------ */

/* A long message: with a wrong key all its packets but one wait for a pause to end. */
static void put_long(struct party *p, const struct party *to, uint64_t key)
{
	struct hamlyn_trb *trb = ht_raw_entry(&p->terminus);

	memset(trb, 0, p->terminus.arg.entry_size);
	*trb = to_party(to);
	trb->key = key;
	trb->length = LONG;
	trb->flags = HAMLYN_TRB_NO_NOTIFY;
	trb->fragments = 1;
	((struct hamlyn_fragment *)(trb + 1))[0] = (struct hamlyn_fragment) {
		.length = LONG,
	};
}

/* As another user, on the NIC of the test: room for a long message, and a terminus. */
static int open_for_long(struct party *p, unsigned char **data)
{
	struct hamlyn_area_alloc area;
	int ret = party_open(p);

	if (!ret)
		ret = ht_raw_area_alloc(p->fd, LONG, &area, (void **)data);
	return ret ? ret : ht_raw_bind(p->fd, p->terminus.arg.terminus, 0,
				       area.area, 0, LONG);
}

#define GUESSES	11	/* behind them a pause is as long as it gets: a second */

/*
 * One message is one guess, and with each the pause is twice as long. The last one is
 * long, and waits when its first packet has left. 0, or where it went wrong.
 */
static int guess_and_wait(struct party *p, const struct party *to)
{
	struct hamlyn_stats stats = { .size = sizeof(stats),
				      .kind = HAMLYN_STATS_TERMINUS };
	struct hamlyn_trb trb = to_party(to);
	struct ht_poll poll;
	unsigned char *data;
	int i;

	if (open_for_long(p, &data))
		return 90;
	stats.id = p->terminus.arg.terminus;
	trb.key ^= 1;
	for (i = 0; i < GUESSES; i++)
		if (post(&p->terminus, &trb))
			return 91;
	put_long(p, to, trb.key);
	ht_raw_post(&p->terminus);
	ht_poll_begin(&poll);
	do {
		ht_raw_publish(&p->terminus, p->terminus.producer);
		if (ht_raw(p->fd, HAMLYN_IOC_STATS, &stats))
			return 92;
	} while (stats.packets <= GUESSES && ht_poll_more(&poll));
	return stats.packets == GUESSES + 1 ? 0 : 93;
}

static int sync_while_held_back(void *arg)
{
	const struct stranger *s = arg;
	unsigned char *data;
	struct party p;
	int i;

	if (open_for_long(&p, &data))
		return 90;
	/* Nothing to do, and then: done. */
	if (fsync(p.fd))
		return 1;
	put_long(&p, s->to, s->to->slot.key ^ 1);
	ht_raw_post(&p.terminus);
	for (i = 0; i < 1000; i++)
		if (fsync(p.fd))
			return errno == EAGAIN ? 0 : 2;
	return 3;
}

/* A program that knows nothing of KICK is told what fsync() may tell, and not 1. */
TEST_F(nics, fsync_says_that_there_is_more_to_do)
{
	struct stranger s = { .to = &self->rx };

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	EXPECT_EQ(0, as(somebody(12), sync_while_held_back, &s));
}

struct binder {
	struct party *p;
	int ret;
	bool ended;
};

static void *bind_none(void *arg)
{
	struct binder *b = arg;

	b->ret = ht_raw_bind(b->p->fd, b->p->terminus.arg.terminus, 1,
			     HAMLYN_NONE, 0, 0);
	__atomic_store_n(&b->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Another thread waits in BIND for the end of a message, which is far. */
static int destroy_what_is_waited_for(void *arg)
{
	const struct stranger *s = arg;
	struct binder b = {};
	pthread_t thread;
	struct party p;
	int ret;

	ret = guess_and_wait(&p, s->to);
	if (ret)
		return ret;
	b.p = &p;
	if (pthread_create(&thread, NULL, bind_none, &b))
		return 91;
	ht_sleep_ns(50 * HT_MS);
	if (__atomic_load_n(&b.ended, __ATOMIC_ACQUIRE))
		return 1;
	if (ht_raw_id(p.fd, HAMLYN_IOC_TERMINUS_DESTROY, p.terminus.arg.terminus))
		return 2;
	pthread_join(thread, NULL);
	return b.ret == -ENOENT ? 0 : 3;
}

TEST_F(nics, who_waits_for_a_terminus_that_is_destroyed_waits_no_more)
{
	struct stranger s = { .to = &self->rx };

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	EXPECT_EQ(0, as(somebody(13), destroy_what_is_waited_for, &s));
}

/* Killed in there he ends, too, and what he had with him. */
static int wait_in_bind(const struct party *to, int ready)
{
	struct party p;
	int ret;

	ret = guess_and_wait(&p, to);
	if (ret || write(ready, "r", 1) != 1)
		return 94;
	ht_raw_bind(p.fd, p.terminus.arg.terminus, 1, HAMLYN_NONE, 0, 0);
	return 0;
}

TEST_F(nics, who_waits_for_a_message_can_be_killed)
{
	const unsigned int uid = somebody(14);
	int ready[2];
	char byte;
	pid_t pid;

	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid)
		_exit(become(uid) ? 99 : wait_in_bind(&self->rx, ready[1]));
	ASSERT_EQ(0, ht_read_all(ready[0], &byte, 1));
	ht_sleep_ns(50 * HT_MS);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	close(ready[0]);
	close(ready[1]);
}

TEST_F(nics, a_pause_is_told_with_its_terminus_and_user)
{
	struct stranger s = { .to = &self->rx };
	int fd = genl_listen(&self->g);
	const uint32_t uid = somebody(15);
	unsigned int pauses = 0;
	struct told told;
	uint32_t nic;

	ASSERT_LE(0, fd);
	HAVE_PARTIES({ HAMLYN_A_GUESSES, 1 },
		     { HAMLYN_A_PACKET_SIZE, SMALLEST });
	nic = (uint32_t)self->nic;
	EXPECT_EQ(0, as(uid, destroy_what_is_waited_for, &s));
	while (next_event(fd, nic, &told)) {
		if (told.event != HAMLYN_NL_EVENT_TERMINUS_PAUSED)
			continue;
		pauses++;
		EXPECT_EQ(uid, told.uid);
		EXPECT_EQ(0, told.id);
		EXPECT_GE(2000, told.paused_ms);
	}
	EXPECT_LE(1, pauses);
	close(fd);
}

/* ---- a ticket and the message that uses it ---------------------------------------------- */

static int import_ticket(struct party *p, int ticket, uint32_t *index)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg), .terminus = p->terminus.arg.terminus,
		.fd = ticket,
	};
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_IMPORT, &arg);

	*index = arg.index;
	return ret;
}

/* Behind DROP nothing comes by it any more: what was under way has come. */
TEST_F(nics, a_ticket_is_dropped_when_the_message_that_uses_it_has_left)
{
	struct hamlyn_ticket_drop drop = { .size = sizeof(drop) };
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	unsigned char *to, *from;
	struct hamlyn_trb *trb;
	uint32_t terminus;
	int ticket, status;

	HAVE_PARTIES({ HAMLYN_A_PACKET_SIZE, SMALLEST },
		     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	terminus = self->tx.terminus.arg.terminus;
	ASSERT_EQ(0, ht_raw_area_alloc(self->rx.fd, LONG, &area, (void **)&to));
	ASSERT_EQ(0, ht_raw_slot_create(self->rx.fd, area.area, LONG,
					HAMLYN_NONE, &slot));
	self->rx.slot = slot;
	ticket = ticket_of(&self->rx);
	ASSERT_LE(0, ticket);
	ASSERT_EQ(0, ht_raw_area_alloc(self->tx.fd, LONG, &area, (void **)&from));
	ASSERT_EQ(0, ht_raw_bind(self->tx.fd, terminus, 0, area.area, 0, LONG));
	ht_fill(from, LONG, 3);
	ASSERT_EQ(0, import_ticket(&self->tx, ticket, &drop.index));
	put_long(&self->tx, &self->rx, 0);
	trb = ht_raw_entry(&self->tx.terminus);
	trb->flags |= HAMLYN_TRB_TICKET;
	trb->ticket = drop.index;
	trb->slot = 0;
	trb->host = 0;
	/* One KICK: some of its packets have left, and not the last one. */
	ASSERT_EQ(0, ht_raw_post(&self->tx.terminus));
	ASSERT_EQ(SMALLEST, ht_match(to, SMALLEST, 3));
	ASSERT_NE(LONG, ht_match(to, LONG, 3));
	drop.terminus = terminus;
	ASSERT_EQ(0, ht_raw(self->tx.fd, HAMLYN_IOC_TICKET_DROP, &drop));
	EXPECT_EQ(LONG, ht_match(to, LONG, 3));
	EXPECT_EQ(0, ht_raw_done(&self->tx.terminus,
				 self->tx.terminus.producer - 1, &status));
	EXPECT_EQ(0, status);
	/* What comes behind it has no ticket any more. */
	put_long(&self->tx, &self->rx, 0);
	trb = ht_raw_entry(&self->tx.terminus);
	trb->flags |= HAMLYN_TRB_TICKET;
	trb->ticket = drop.index;
	trb->slot = 0;
	trb->host = 0;
	ASSERT_LE(0, ht_raw_post(&self->tx.terminus));
	ASSERT_EQ(0, ht_raw_done(&self->tx.terminus,
				 self->tx.terminus.producer - 1, &status));
	EXPECT_EQ(-ENOKEY, status);
	munmap(to, LONG);
	munmap(from, LONG);
	close(ticket);
}

TEST_HARNESS_MAIN
