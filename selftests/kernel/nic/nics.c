// SPDX-License-Identifier: GPL-2.0-only
/*
 * NICs are made as they were asked for, changed, moved and deleted; who listens is told
 * once of each; limits are of whom they are said to be. Kernel device only, run as root.
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

/* ---- NICs ---------------------------------------------------------------- */

FIXTURE(nics) {
	struct genl g;
	int nic;	/* which the fixture deletes; -1: none */
};

FIXTURE_SETUP(nics)
{
	self->nic = -1;
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
}

FIXTURE_TEARDOWN(nics)
{
	if (self->nic >= 0)
		EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

TEST_F(nics, a_new_nic_is_as_it_was_asked_for)
{
	static const struct nic_wish asked[] = {
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

	self->nic = nic_make(&self->g, asked, ARRAY_SIZE(asked));
	ASSERT_EQ(201, self->nic);
	EXPECT_STREQ("hamlyn201", (const char *)
		     (genl_attr(&self->g, HAMLYN_A_NAME) + 1));
	ASSERT_EQ(0, nic_get(&self->g, 201));
	for (i = 0; i < ARRAY_SIZE(asked); i++)
		EXPECT_EQ(asked[i].value,
			  genl_number(genl_attr(&self->g, asked[i].attr))) {
			TH_LOG("attribute %u", asked[i].attr);
		}
	fd = nic_open(201);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ht_raw_query(fd, &query));
	EXPECT_EQ(77, query.host);
	EXPECT_EQ(2048, query.packet_size);
	EXPECT_EQ(33, query.max_slots);
	EXPECT_EQ(HAMLYN_NIC_DOWN, query.state);
	EXPECT_EQ(HAMLYN_ENGINE_INLINE, query.engine_mode);
	EXPECT_EQ(0, query.engines);
	close(fd);
	EXPECT_EQ(0, nic_delete_soon(&self->g, 201));
	self->nic = -1;
	EXPECT_EQ(-ENOENT, nic_open(201));
	EXPECT_EQ(-ENODEV, nic_get(&self->g, 201));
}

/* All NICs of the module; not a segment. */
TEST_F(nics, are_all_on_one_fabric)
{
	static const struct nic_wish asked[] = { { HAMLYN_A_NIC, 202 } };
	static const struct h_fabric_id none;
	struct h_dev *first, *second, *segment;
	struct h_fabric_id id, its, segments;

	self->nic = nic_make(&self->g, asked, ARRAY_SIZE(asked));
	ASSERT_EQ(202, self->nic);
	ASSERT_EQ(0, h_open("/dev/hamlyn0", &first));
	ASSERT_EQ(0, h_open("/dev/hamlyn202", &second));
	ASSERT_EQ(0, h_open("shm:fabric,size=8M", &segment));
	h_dev_fabric(first, &id);
	h_dev_fabric(second, &its);
	h_dev_fabric(segment, &segments);
	EXPECT_NE(0, memcmp(&none, &id, sizeof(id)));
	EXPECT_EQ(0, memcmp(&its, &id, sizeof(id)));
	EXPECT_EQ(1, h_dev_reaches(first, &its));
	EXPECT_EQ(1, h_dev_reaches(second, &id));
	EXPECT_EQ(0, h_dev_reaches(first, &segments));
	EXPECT_EQ(0, h_dev_reaches(segment, &id));
	h_close(segment);
	h_close(second);
	h_close(first);
	ASSERT_EQ(0, nic_get(&self->g, 202));
	ASSERT_NE(NULL, genl_attr(&self->g, HAMLYN_A_FABRIC_ID));
	EXPECT_EQ(0, memcmp(genl_attr(&self->g, HAMLYN_A_FABRIC_ID) + 1, &id, sizeof(id)));
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
	ASSERT_EQ(0, nic_get(g, 202));
	limits = genl_attr(g, HAMLYN_A_LIMITS);
	for (i = 0; i < ARRAY_SIZE(asked); i++)
		EXPECT_EQ(asked[i].value,
			  genl_number(genl_nested(limits, asked[i].attr)));
}

TEST_F(nics, what_a_nic_has_is_not_given_to_another)
{
	struct genl *g = &self->g;
	uint32_t host;

	self->nic = NIC_MAKE(g, { HAMLYN_A_NIC, 203 });
	ASSERT_EQ(203, self->nic);
	ASSERT_EQ(0, nic_get(g, 203));
	host = (uint32_t)genl_number(genl_attr(g, HAMLYN_A_HOST));
	EXPECT_EQ(203, host);
	EXPECT_EQ(-EEXIST, NIC_MAKE(g, { HAMLYN_A_NIC, 203 }));
	EXPECT_NE(NULL, strstr(g->text, "already"));
	EXPECT_EQ(-EEXIST, NIC_MAKE(g, { HAMLYN_A_NIC, 204 }, { HAMLYN_A_HOST, 203 }));
	EXPECT_NE(NULL, strstr(g->text, "taken by"));
	EXPECT_EQ(-EINVAL, NIC_MAKE(g, { HAMLYN_A_HOST, ~0U }));
	EXPECT_NE(NULL, strstr(g->text, "host"));
	EXPECT_GT(0, NIC_MAKE(g, { HAMLYN_A_NIC, MOST_NICS }));
	/* What failed has kept nothing. */
	EXPECT_EQ(204, NIC_MAKE(g, { HAMLYN_A_NIC, 204 }, { HAMLYN_A_HOST, 255 }));
	/* Without a wish for a host: its own number, and if that is taken the first. */
	EXPECT_EQ(255, NIC_MAKE(g, { HAMLYN_A_NIC, 255 }));
	ASSERT_EQ(0, nic_get(g, 255));
	host = (uint32_t)genl_number(genl_attr(g, HAMLYN_A_HOST));
	EXPECT_GT(200, host);
	EXPECT_EQ(0, nic_delete(g, 255));
	EXPECT_EQ(0, nic_delete(g, 204));
	EXPECT_EQ(-ENODEV, nic_delete(g, 204));
}

/* Past the ids that are found without a search, and the last that there is. */
TEST_F(nics, a_nic_may_have_any_host_id)
{
	static const uint32_t hosts[] = { MOST_NICS, ~0U - 1 };
	struct genl *g = &self->g;
	struct hamlyn_trb trb;
	struct party to, from;
	unsigned int i, round;

	nic_use(0);
	ASSERT_EQ(0, party_open(&from));
	for (i = 0; i < 2 * ARRAY_SIZE(hosts); i++) {
		round = i / 2;
		self->nic = NIC_MAKE(g, { HAMLYN_A_HOST, hosts[round] });
		ASSERT_LE(0, self->nic);
		EXPECT_EQ(-EEXIST, NIC_MAKE(g, { HAMLYN_A_HOST, hosts[round] }));
		nic_use((uint32_t)self->nic);
		ASSERT_EQ(0, party_open(&to));
		EXPECT_EQ(hosts[round], to.query.host);
		trb = to_party(&to);
		EXPECT_EQ(0, post(&from.terminus, &trb));
		EXPECT_TRUE(came(&to));
		party_close(&to);
		EXPECT_EQ(0, nic_delete_soon(g, (uint32_t)self->nic));
		self->nic = -1;
		EXPECT_EQ(-EHOSTUNREACH, post(&from.terminus, &trb));
	}
	party_close(&from);
	nic_use(0);
}

TEST_F(nics, values_that_cannot_be_are_refused)
{
	struct genl *g = &self->g;
	static const struct nic_wish bad[] = {
		{ HAMLYN_A_ENGINE_MODE, 2 }, { HAMLYN_A_ENGINES, 0 },
		{ HAMLYN_A_ENGINES, 17 }, { HAMLYN_A_PACKET_SIZE, SMALLEST - 1 },
		{ HAMLYN_A_PACKET_SIZE, 65537 }, { HAMLYN_A_MAX_SLOTS, 0 },
		{ HAMLYN_A_MAX_SLOTS, (1 << 20) + 1 }, { HAMLYN_A_STATE, 2 },
		{ HAMLYN_A_CONTEXT, 1 }, { HAMLYN_A_ID, 1 }, { HAMLYN_A_UID, 1 },
		{ HAMLYN_A_PRIORITY, 1 }, { HAMLYN_A_WEIGHT, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_GT(0, nic_make(g, &bad[i], 1)) {
			TH_LOG("attribute %u", bad[i].attr);
		}
}

TEST_F(nics, the_largest_values_are_some)
{
	static const struct nic_wish largest[] = {
		{ HAMLYN_A_PACKET_SIZE, 65536 }, { HAMLYN_A_MAX_SLOTS, 1 << 20 },
		{ HAMLYN_A_ENGINES, 16 }, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL },
		{ HAMLYN_A_WATCHDOG_MS, HAMLYN_MAX_WATCHDOG_MS },
	};
	struct genl *g = &self->g;

	self->nic = nic_make(g, largest, ARRAY_SIZE(largest));
	ASSERT_LE(0, self->nic);
	EXPECT_EQ(0, nic_set(g, (uint32_t)self->nic, HAMLYN_A_WATCHDOG_MS, 0));
	EXPECT_EQ(0, nic_set(g, (uint32_t)self->nic, HAMLYN_A_WATCHDOG_MS,
			     HAMLYN_MAX_WATCHDOG_MS));
	EXPECT_GT(0, nic_set(g, (uint32_t)self->nic, HAMLYN_A_WATCHDOG_MS,
			     HAMLYN_MAX_WATCHDOG_MS + 1));
}

/* With the fewest slots: it is about how many there can be. */
TEST_F(nics, there_are_so_many_and_no_more)
{
	struct genl *g = &self->g;
	bool made[MOST_NICS] = {};
	unsigned int n = 0, i;
	int nic;

	for (;;) {
		nic = NIC_MAKE(g, { HAMLYN_A_MAX_SLOTS, 1 },
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
			EXPECT_EQ(0, nic_delete(g, i));
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
	struct hamlyn_query query;
	int fd;

	self->nic = NIC_MAKE(g, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL },
			     { HAMLYN_A_ENGINES, 3 });
	ASSERT_LE(0, self->nic);
	fd = nic_open((uint32_t)self->nic);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ht_raw_query(fd, &query));
	close(fd);
	ASSERT_EQ(0, nic_get(g, (uint32_t)self->nic));
	if (genl_number(genl_attr(g, HAMLYN_A_ENGINE_MODE)) ==
	    HAMLYN_NL_ENGINE_POLL) {
		EXPECT_EQ(3, genl_number(genl_attr(g, HAMLYN_A_ENGINES)));
		EXPECT_EQ(3, query.engines);
		EXPECT_EQ(3, threads_of((uint32_t)self->nic));
	} else {
		/* On a single processor none would leave time to the others. */
		EXPECT_EQ(1, sysconf(_SC_NPROCESSORS_ONLN));
		EXPECT_EQ(0, query.engines);
		EXPECT_EQ(0, threads_of((uint32_t)self->nic));
	}
	EXPECT_EQ(0, nic_delete(g, (uint32_t)self->nic));
	EXPECT_EQ(0, threads_of((uint32_t)self->nic));
	self->nic = -1;
}

/*
 * Whoever rings often is polled, and need not ring: the thread is there by then. It may be
 * gone again the next moment, if somebody waits for its processor.
 */
TEST_F(nics, who_rings_often_is_polled_for_a_while)
{
	struct hamlyn_trb trb;
	struct ht_poll poll;
	struct party p;
	bool polled;
	int i;

	self->nic = NIC_MAKE(&self->g, { HAMLYN_A_IDLE_US, 1000000 },
			     { HAMLYN_A_KICK_WINDOW_US, 1000000 },
			     { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL });
	ASSERT_LE(0, self->nic);
	nic_use((uint32_t)self->nic);
	/* Plain messages go another way than others. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, party_open(&p));
		trb = to_party(&p);
		trb.flags = i ? HAMLYN_TRB_NO_NOTIFY : 0;
		polled = p.query.engine_mode == HAMLYN_ENGINE_INLINE;
		ht_poll_begin(&poll);
		while (!polled && ht_poll_more(&poll)) {
			ASSERT_EQ(0, post(&p.terminus, &trb));
			polled = !p.terminus.status->need_kick;
		}
		EXPECT_TRUE(polled);
		party_close(&p);
	}
	/* Not in quick succession, and so never. */
	ASSERT_EQ(0, nic_set(&self->g, (uint32_t)self->nic,
			     HAMLYN_A_KICK_WINDOW_US, 0));
	ASSERT_EQ(0, party_open(&p));
	trb = to_party(&p);
	poll.end = ht_now_ns() + 100 * HT_MS;
	while (ht_poll_more(&poll)) {
		ASSERT_EQ(0, post(&p.terminus, &trb));
		EXPECT_EQ(1, p.terminus.status->need_kick);
	}
	party_close(&p);
}

static const struct nic_wish bad_fabric[] = {
	{ HAMLYN_A_ADV_DROP, 1 }, { HAMLYN_A_ADV_DUPLICATE, 2 },
	{ HAMLYN_A_ADV_CORRUPT, 3 }, { HAMLYN_A_ADV_REORDER, 4 },
	{ HAMLYN_A_ADV_DELAY_US, 5 },
};

/* @n of those, or all of them at 0. */
static int set_adversary(struct genl *g, uint32_t nic, const struct nic_wish *wish, size_t n)
{
	struct nlattr *nest;
	size_t i;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	nest = genl_put(g, HAMLYN_A_ADVERSARY | NLA_F_NESTED, NULL, 0);
	for (i = 0; i < n; i++)
		genl_put_u32(g, wish[i].attr, wish[i].value);
	for (i = 0; !n && i < ARRAY_SIZE(bad_fabric); i++)
		genl_put_u32(g, bad_fabric[i].attr, 0);
	genl_end(g, nest);
	return genl_call(g);
}

static uint32_t fabric_of(uint32_t nic)
{
	struct hamlyn_query query = { .fabric = 99 };
	int fd = nic_open(nic);

	ht_raw_query(fd, &query);
	close(fd);
	return query.fabric;
}

TEST_F(nics, a_bad_fabric_is_as_bad_as_was_asked_for)
{
	struct genl *g = &self->g;
	const struct nlattr *nest;
	unsigned int i, k;
	uint32_t nic;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	EXPECT_EQ(0, fabric_of(nic));
	if (set_adversary(g, nic, &bad_fabric[0], 1) == -EOPNOTSUPP)
		SKIP(return, "kernel: with CONFIG_HAMLYN_ADVERSARY");
	for (i = 0; i < ARRAY_SIZE(bad_fabric); i++) {
		/* One more of them, and the others stay. */
		ASSERT_EQ(0, set_adversary(g, nic, &bad_fabric[i], 1));
		EXPECT_EQ(HAMLYN_FABRIC_LOSSY, fabric_of(nic));
		ASSERT_EQ(0, nic_get(g, nic));
		nest = genl_attr(g, HAMLYN_A_ADVERSARY);
		for (k = 0; k < ARRAY_SIZE(bad_fabric); k++)
			EXPECT_EQ(k <= i ? bad_fabric[k].value : 0,
				  genl_number(genl_nested(nest, bad_fabric[k].attr)));
	}
	ASSERT_EQ(0, set_adversary(g, nic, NULL, 0));
	EXPECT_EQ(0, fabric_of(nic));
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
	fd = nic_open(nic);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, nic_delete(g, nic));
	EXPECT_NE(NULL, strstr(g->text, "open"));
	EXPECT_EQ(-EBUSY, nic_move(g, nic, pid));
	EXPECT_EQ(0, nic_get(g, nic));
	EXPECT_EQ(0, ht_raw_query(fd, &(struct hamlyn_query) {}));
	close(fd);
	EXPECT_EQ(0, nic_move(g, nic, pid));
	EXPECT_EQ(-ENODEV, nic_get(g, nic));
	EXPECT_EQ(-ENODEV, nic_delete(g, nic));
	EXPECT_EQ(-EPERM, nic_open(nic));
	/* With its namespace it goes, and its number is free again. */
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	self->nic = -1;
	for (struct ht_poll poll = { .end = ht_now_ns() + ht_patience_ns() };
	     self->nic < 0 && ht_poll_more(&poll); )
		self->nic = NIC_MAKE(g, { HAMLYN_A_NIC, nic });
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
		fd = nic_open(nic);
	while (fd == -EPERM && ht_poll_more(&poll));
	if (fd < 0 || genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		_exit(2);
	if (nic_get(&g, nic) || nic_get(&g, 0) != -ENODEV)
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
	while (nic_get(g, nic) && ht_poll_more(&poll))
		continue;
	EXPECT_EQ(0, nic_get(g, nic));
	EXPECT_EQ(0, ht_raw_query(fd, &query));
	EXPECT_EQ(-EBUSY, nic_delete(g, nic));
	close(fd);
	close(sockets[0]);
	close(sockets[1]);
}

/* From before it is there: a descriptor, or what else there was than that it is not there. */
static void *open_early(void *arg)
{
	uint32_t nic = *(const uint32_t *)arg;
	const int64_t end = ht_now_ns() + ht_patience_ns();
	int fd;

	/* Without rest: it is to come while it is being made. */
	do
		fd = nic_open(nic);
	while (fd == -ENOENT && ht_now_ns() < end);
	return (void *)(intptr_t)fd;
}

TEST_F(nics, who_opens_it_while_it_is_being_made_waits_for_it)
{
	const uint32_t nic = 202;
	pthread_t thread;
	void *opened;
	int i;

	for (i = 0; i < 30; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, open_early, (void *)&nic));
		EXPECT_EQ(202, NIC_MAKE(&self->g, { HAMLYN_A_NIC, nic }));
		ASSERT_EQ(0, pthread_join(thread, &opened));
		EXPECT_LE(0, (intptr_t)opened);
		if ((intptr_t)opened >= 0)
			close((int)(intptr_t)opened);
		ASSERT_EQ(0, nic_delete_soon(&self->g, nic));
	}
}

/* ---- events ------------------------------------------------------------------ */

#define EXPECT_TOLD(what) do {						\
	EXPECT_TRUE(nic_event(fd, nic, &told));			\
	EXPECT_EQ(what, told.event);					\
} while (0)

/* NULL, or which event there was one too many of. */
static const char *told_more(int fd, uint32_t nic)
{
	static char said[32];
	struct nic_told told;

	if (!nic_event(fd, nic, &told))
		return NULL;
	snprintf(said, sizeof(said), "event %u", told.event);
	return said;
}

TEST_F(nics, each_event_is_told_once_and_says_of_whom)
{
	struct genl *g = &self->g;
	int fd = genl_listen(g);
	struct nic_told told;
	uint32_t nic;
	int open;

	ASSERT_LE(0, fd);
	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_NEW);
	EXPECT_EQ(0, strncmp("hamlyn", told.name, 6));
	EXPECT_EQ(nic, strtoul(told.name + 6, NULL, 10));
	EXPECT_NO(told_more(fd, nic));
	ASSERT_EQ(0, nic_set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_UP));
	EXPECT_NO(told_more(fd, nic));
	ASSERT_EQ(0, nic_set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN));
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DOWN);
	ASSERT_EQ(0, nic_set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN));
	EXPECT_NO(told_more(fd, nic));
	ASSERT_EQ(0, nic_set(g, nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_UP));
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_UP);
	EXPECT_NO(told_more(fd, nic));
	ASSERT_EQ(0, seteuid(NOBODY));
	open = nic_open(nic);
	ASSERT_EQ(0, seteuid(0));
	ASSERT_LE(0, open);
	EXPECT_TOLD(HAMLYN_NL_EVENT_CONTEXT_OPEN);
	EXPECT_EQ((uint32_t)getpid(), told.pid);
	EXPECT_EQ(NOBODY, told.uid);
	EXPECT_NO(told_more(fd, nic));
	close(open);
	EXPECT_TOLD(HAMLYN_NL_EVENT_CONTEXT_CLOSE);
	EXPECT_EQ((uint32_t)getpid(), told.pid);
	EXPECT_EQ(NOBODY, told.uid);
	EXPECT_EQ(0, nic_delete_soon(g, nic));
	self->nic = -1;
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DEL);
	EXPECT_NO(told_more(fd, nic));
	/* One that is down from the beginning. */
	self->nic = NIC_MAKE(g, { HAMLYN_A_NIC, nic },
			     { HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN });
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_NEW);
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DOWN);
	EXPECT_NO(told_more(fd, nic));
	close(fd);
}

static int set_by_call(int fd, uint32_t flags, uint32_t state)
{
	struct hamlyn_nic_set arg = { .size = sizeof(arg), .flags = flags,
				      .state = state };

	return ht_raw(fd, HAMLYN_IOC_NIC_SET, &arg);
}

/* Feeding is the only one of these that nobody is told of. */
TEST_F(nics, what_is_set_by_a_call_is_told_as_well)
{
	int fd = genl_listen(&self->g), open;
	struct nic_told told;
	uint32_t nic;

	ASSERT_LE(0, fd);
	self->nic = nic_new(&self->g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	open = nic_open(nic);
	ASSERT_LE(0, open);
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_NEW);
	EXPECT_TOLD(HAMLYN_NL_EVENT_CONTEXT_OPEN);
	ASSERT_EQ(0, set_by_call(open, HAMLYN_NIC_SET_STATE, HAMLYN_NIC_DOWN));
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_DOWN);
	ASSERT_EQ(0, set_by_call(open, HAMLYN_NIC_FEED, 0));
	EXPECT_NO(told_more(fd, nic));
	EXPECT_EQ(-EINVAL, set_by_call(open, HAMLYN_NIC_FEED, HAMLYN_NIC_UNFED));
	ASSERT_EQ(0, set_by_call(open, HAMLYN_NIC_SET_STATE | HAMLYN_NIC_FEED,
				 HAMLYN_NIC_UP));
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_UP);
	EXPECT_NO(told_more(fd, nic));
	close(open);
	close(fd);
}

/* In a namespace where it is not: how many times it could be opened. */
static int open_from_elsewhere(void *arg)
{
	const uint32_t *nic = arg;
	int i, n = 0;

	for (i = 0; i < 20; i++)
		n += nic_open(*nic) != -EPERM;
	return n;
}

TEST_F(nics, who_may_not_open_it_leaves_no_trace)
{
	struct genl *g = &self->g;
	const uint32_t uid = somebody(6);
	int fd = genl_listen(g), own, netlink, opened[2];
	struct nic_told told;
	uint16_t family = 0;
	uint32_t nic;

	ASSERT_LE(0, fd);
	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	EXPECT_TOLD(HAMLYN_NL_EVENT_NIC_NEW);
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, own);
	ASSERT_EQ(0, unshare(CLONE_NEWNET));
	EXPECT_EQ(0, as(uid, open_from_elsewhere, &nic));
	ASSERT_EQ(0, setns(own, CLONE_NEWNET));
	close(own);
	EXPECT_NO(told_more(fd, nic));
	netlink = netlink_open(&family);
	EXPECT_EQ(0, listed(netlink, family, uid));
	close(netlink);
	ASSERT_EQ(0, nic_get(g, nic));
	EXPECT_EQ(0, genl_number(genl_attr(g, HAMLYN_A_CONTEXTS)));
	/* Contexts are numbered from the lowest number that is free. */
	opened[0] = nic_open(nic);
	EXPECT_TOLD(HAMLYN_NL_EVENT_CONTEXT_OPEN);
	EXPECT_EQ(0, told.context);
	opened[1] = nic_open(nic);
	EXPECT_TOLD(HAMLYN_NL_EVENT_CONTEXT_OPEN);
	EXPECT_EQ(1, told.context);
	close(opened[0]);
	close(opened[1]);
	close(fd);
}

/* In a namespace of its own: is told of the NIC that comes, and of no other. */
static void listen_elsewhere(int ready, uint32_t nic)
{
	struct ht_poll poll;
	struct nic_told told;
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
		heard = nic_event(fd, nic, &told);
	while (!heard && ht_poll_more(&poll));
	if (!heard || told.event != HAMLYN_NL_EVENT_NIC_NEW)
		_exit(3);
	if (nic_delete(&g, nic) || !nic_event(fd, nic, &told) ||
	    told.event != HAMLYN_NL_EVENT_NIC_DEL)
		_exit(4);
	_exit(nic_event(fd, nic, &told) ? 5 : 0);
}

TEST_F(nics, a_move_is_told_on_both_sides)
{
	struct genl *g = &self->g;
	int fd = genl_listen(g), ready[2];
	struct nic_told told;
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
	EXPECT_NO(told_more(fd, nic));
	close(ready[0]);
	close(ready[1]);
	close(fd);
}

/* In a namespace of its own, in which it is told of a NIC that it makes and opens. */
static void be_told_elsewhere(int ready)
{
	struct nic_told told;
	struct genl g;
	int nic, fd;

	if (unshare(CLONE_NEWNET) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		_exit(1);
	fd = genl_listen(&g);
	nic = nic_new(&g);
	if (fd < 0 || nic < 0 || !nic_event(fd, (uint32_t)nic, &told))
		_exit(2);
	close(nic_open((uint32_t)nic));
	if (!nic_event(fd, (uint32_t)nic, &told) || write(ready, &nic, sizeof(nic)) != sizeof(nic))
		_exit(3);
	for (;;)
		pause();
}

/* For another namespace. The number of the NIC, or a negative errno. */
static int nic_new_for(struct genl *g, pid_t pid)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	genl_put_u32(g, HAMLYN_A_NETNS_FD, (uint32_t)fd);
	ret = genl_call(g);
	close(fd);
	return ret ? ret : (int)genl_number(genl_attr(g, HAMLYN_A_NIC));
}

/* Whether it was made there, for it, or moved there, and whatever was told of it. */
TEST_F(nics, a_namespace_ends_with_its_nics)
{
	struct genl *g = &self->g;
	int ready[2], made_there, made_for;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid)
		be_told_elsewhere(ready[1]);
	ASSERT_EQ(0, ht_read_all(ready[0], &made_there, sizeof(made_there)));
	made_for = nic_new_for(g, pid);
	ASSERT_LE(0, made_for);
	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	ASSERT_EQ(0, nic_move(g, (uint32_t)self->nic, pid));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_EQ(0, nic_is_gone_soon(g, (uint32_t)made_there));
	EXPECT_EQ(0, nic_is_gone_soon(g, (uint32_t)made_for));
	EXPECT_EQ(0, nic_is_gone_soon(g, (uint32_t)self->nic));
	self->nic = -1;
	close(ready[0]);
	close(ready[1]);
}

/* A process of outside that comes into its network only: no number of it is told there. */
static void listen_inside(int ready, int go, uint32_t nic)
{
	struct nic_told told;
	struct genl g;
	pid_t pid;
	char byte;
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID))
		_exit(write(ready, "n", 1) == 1 ? 0 : 1);
	if (genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		_exit(2);
	fd = genl_listen(&g);
	if (fd < 0 || write(ready, "r", 1) != 1 || ht_read_all(go, &byte, 1))
		_exit(3);
	if (!nic_event(fd, nic, &told) || told.event != HAMLYN_NL_EVENT_NIC_NEW)
		_exit(4);
	if (!nic_event(fd, nic, &told) ||
	    told.event != HAMLYN_NL_EVENT_CONTEXT_OPEN || told.pid)
		_exit(5);
	if (!nic_event(fd, nic, &told) ||
	    told.event != HAMLYN_NL_EVENT_CONTEXT_CLOSE || told.pid)
		_exit(6);
	/* One of its own is known by the number that it has there. */
	pid = fork();
	if (!pid) {
		fd = nic_open(nic);
		_exit(fd < 0 ? 1 : 0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		_exit(7);
	if (!nic_event(fd, nic, &told) ||
	    told.event != HAMLYN_NL_EVENT_CONTEXT_OPEN || told.pid != 1)
		_exit(8);
	_exit(0);
}

static int open_in_network(uint32_t nic, pid_t of)
{
	char path[64];
	int fd, own, open_nic;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", of);
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || own < 0 || setns(fd, CLONE_NEWNET))
		return -errno;
	open_nic = nic_open(nic);
	if (setns(own, CLONE_NEWNET))
		return -errno;
	close(fd);
	close(own);
	return open_nic;
}

TEST_F(nics, in_a_container_no_pids_of_outside_are_told)
{
	struct genl *g = &self->g;
	int ready[2], go[2], open;
	uint32_t nic;
	char byte;
	pid_t pid;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	pid = ht_fork();
	if (!pid)
		listen_inside(ready[1], go[0], nic);
	ASSERT_EQ(0, ht_read_all(ready[0], &byte, 1));
	if (byte == 'n') {
		ASSERT_EQ(0, ht_reap(pid));
		SKIP(return, "no user namespaces here");
	}
	ASSERT_EQ(0, nic_move(g, nic, pid));
	self->nic = -1;
	open = open_in_network(nic, pid);
	EXPECT_LE(0, open);
	close(open);
	ASSERT_EQ(1, write(go[1], "g", 1));
	EXPECT_EQ(0, ht_reap(pid));
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	close(go[1]);
}

/* ---- lists -------------------------------------------------------------------- */

#define AREAS	600	/* more than go into one answer */

/* One answer to a list that goes on: 1, 0 if it was the last, or an errno. */
static int next_answer(const struct genl *g, bool *interrupted)
{
	static unsigned char answer[65536] __attribute__((aligned(8)));
	ssize_t n = recv(g->fd, answer, sizeof(answer), 0);
	const struct nlmsghdr *h;

	if (n < 0)
		return -errno;
	for (h = (void *)answer; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
		*interrupted |= h->nlmsg_flags & NLM_F_DUMP_INTR;
		if (h->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
		if (h->nlmsg_type == NLMSG_DONE)
			return *(const int *)NLMSG_DATA(h);
	}
	return 1;
}

/* The first context is number 0, and so is where a list begins. */
TEST_F(nics, a_list_of_a_context_that_goes_meanwhile_ends)
{
	struct genl *g = &self->g;
	struct hamlyn_area_alloc area;
	bool interrupted = false;
	int open, i, ret;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	open = nic_open((uint32_t)self->nic);
	ASSERT_LE(0, open);
	for (i = 0; i < AREAS; i++)
		ASSERT_EQ(0, ht_raw_area_alloc(open, 4096, &area, NULL));
	genl_begin(g, HAMLYN_NL_CMD_AREA_GET);
	genl_put_u32(g, HAMLYN_A_NIC, (uint32_t)self->nic);
	genl_put_u32(g, HAMLYN_A_CONTEXT, 0);
	g->request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	ASSERT_LT(0, send(g->fd, &g->request, g->request.header.nlmsg_len, 0));
	ASSERT_EQ(1, next_answer(g, &interrupted));
	close(open);
	do
		ret = next_answer(g, &interrupted);
	while (ret == 1);
	EXPECT_EQ(0, ret);
	EXPECT_TRUE(interrupted);
	/* What is not there from the beginning is an error. */
	genl_begin(g, HAMLYN_NL_CMD_AREA_GET);
	genl_put_u32(g, HAMLYN_A_NIC, (uint32_t)self->nic);
	genl_put_u32(g, HAMLYN_A_CONTEXT, 0);
	EXPECT_EQ(-ENOENT, genl_count(g));
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

#define MOST	20

static int take_slot(int fd, uint32_t area)
{
	struct hamlyn_slot_create slot;

	return ht_raw_slot_create(fd, area, 1, HAMLYN_NONE, &slot);
}

static int take_terminus(int fd, uint32_t area)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2,
					    .entry_size = 128 };

	(void)area;
	return ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
}

static int take_page(int fd, uint32_t area)
{
	struct hamlyn_area_alloc alloc;

	(void)area;
	return ht_raw_area_alloc(fd, PAGE, &alloc, NULL);
}

static int wire_page(int fd, uint32_t area)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct hamlyn_area_add add = { .size = sizeof(add), .length = PAGE,
				       .addr = (uintptr_t)page };

	(void)area;
	page[0] = 1;
	return ht_raw(fd, HAMLYN_IOC_AREA_ADD, &add);
}

/* What a user can have of, the unit of its limit, and whether that is of 64 bits. */
struct kind {
	uint16_t attr;
	bool wide;
	uint64_t unit;
	int (*take)(int fd, uint32_t area);
};

static const struct kind kinds[] = {
	{ HAMLYN_A_LIMITS_USER_SLOTS, false, 1, take_slot },
	{ HAMLYN_A_LIMITS_USER_TERMINI, false, 1, take_terminus },
	{ HAMLYN_A_LIMITS_USER_KERNEL_BYTES, true, PAGE, take_page },
	{ HAMLYN_A_LIMITS_USER_WIRED_BYTES, true, PAGE, wire_page },
};
static const struct kind *const slots = &kinds[0], *const termini = &kinds[1],
			 *const memory = &kinds[2];

/* How many of a kind the caller can have, up to MOST. */
static int take(void *arg)
{
	const struct kind *kind = arg;
	struct hamlyn_area_alloc area = { .area = HAMLYN_NONE };
	int fd = ht_raw_open(), n, ret = 0;

	if (fd < 0 || (kind == slots && ht_raw_area_alloc(fd, PAGE, &area, NULL)))
		return 100;
	for (n = 0; n < MOST && !ret; n += !ret)
		ret = kind->take(fd, area.area);
	return ret && ret != -EDQUOT ? 101 : n;
}

static int can_take(unsigned int uid, const struct kind *kind)
{
	return as(uid, take, (void *)(uintptr_t)kind);
}

/* RLIMIT_MEMLOCK is as it was: MOST pages are within it. */
TEST_F(nics, a_limit_of_one_user_is_his_alone)
{
	const uint32_t uid = somebody(1), other = somebody(2);
	struct genl *g = &self->g;
	uint32_t nic;
	unsigned int i;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	nic = (uint32_t)self->nic;
	nic_use(nic);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		ASSERT_EQ(0, limit(g, nic, &uid, kinds[i].attr,
				   3 * kinds[i].unit, kinds[i].wide));
		EXPECT_EQ(3, can_take(uid, &kinds[i])) {
			TH_LOG("limit %u", i);
		}
		EXPECT_LT(3, can_take(other, &kinds[i]));
		/* Half of a page more is no page. */
		if (kinds[i].wide) {
			ASSERT_EQ(0, limit(g, nic, &uid, kinds[i].attr,
					   4 * PAGE + PAGE / 2, true));
			EXPECT_EQ(4, can_take(uid, &kinds[i]));
		}
		/* No limit, a limit of nothing, and as all have. */
		ASSERT_EQ(0, limit(g, nic, &uid, kinds[i].attr,
				   kinds[i].wide ? UINT64_MAX : UINT32_MAX,
				   kinds[i].wide));
		EXPECT_EQ(MOST, can_take(uid, &kinds[i]));
		ASSERT_EQ(0, limit(g, nic, &uid, kinds[i].attr, 0,
				   kinds[i].wide));
		EXPECT_EQ(0, can_take(uid, &kinds[i]));
		ASSERT_EQ(0, nic_no_limit(g, nic, uid));
		EXPECT_EQ(MOST, can_take(uid, &kinds[i]));
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
	nic_use(nic);
	ASSERT_EQ(0, limit(g, nic, &uid, HAMLYN_A_LIMITS_USER_SLOTS, 2, false));
	ASSERT_EQ(0, limit(g, nic, &uid, HAMLYN_A_LIMITS_USER_TERMINI, 5, false));
	EXPECT_EQ(2, can_take(uid, slots));
	EXPECT_EQ(5, can_take(uid, termini));
	EXPECT_EQ(-EINVAL, limit(g, nic, &uid, HAMLYN_A_LIMITS_KERNEL_BYTES,
				 PAGE, true));
	EXPECT_NE(NULL, strstr(g->text, "is for all users"));
	/* What all have now is not what he has. */
	ASSERT_EQ(0, limit(g, nic, NULL, HAMLYN_A_LIMITS_USER_SLOTS, 4, false));
	EXPECT_EQ(2, can_take(uid, slots));
	EXPECT_EQ(4, can_take(somebody(4), slots));
	ASSERT_EQ(0, nic_no_limit(g, nic, uid));
	EXPECT_EQ(4, can_take(uid, slots));
	EXPECT_EQ(MOST, can_take(uid, termini));
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
	nic_use(nic);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		ASSERT_EQ(0, limit(g, nic, &root, kinds[i].attr, 0,
				   kinds[i].wide));
		EXPECT_EQ(MOST, can_take(0, &kinds[i])) {
			TH_LOG("limit %u", i);
		}
	}
	ASSERT_EQ(0, limit(g, nic, NULL, HAMLYN_A_LIMITS_KERNEL_BYTES,
			   6 * PAGE, true));
	EXPECT_EQ(6, can_take(0, memory));
	/* Half of it: the rest may be somebody's who comes yet. */
	EXPECT_EQ(3, can_take(somebody(5), memory));
	ASSERT_EQ(0, limit(g, nic, NULL, HAMLYN_A_LIMITS_KERNEL_BYTES,
			   UINT64_MAX, true));
	EXPECT_EQ(MOST, can_take(0, memory));
}

/* Also for a number that is none. */
TEST_F(nics, no_limit_is_told_as_it_was_asked_for)
{
	struct genl *g = &self->g;
	const struct nlattr *limits, *bytes, *slots;

	self->nic = nic_new(g);
	ASSERT_LE(0, self->nic);
	ASSERT_EQ(0, limit(g, (uint32_t)self->nic, NULL,
			   HAMLYN_A_LIMITS_USER_KERNEL_BYTES, UINT64_MAX, true));
	ASSERT_EQ(0, limit(g, (uint32_t)self->nic, NULL,
			   HAMLYN_A_LIMITS_USER_SLOTS, UINT32_MAX, false));
	ASSERT_EQ(0, nic_get(g, (uint32_t)self->nic));
	limits = genl_attr(g, HAMLYN_A_LIMITS);
	bytes = genl_nested(limits, HAMLYN_A_LIMITS_USER_KERNEL_BYTES);
	EXPECT_EQ(UINT64_MAX, genl_number(bytes));
	slots = genl_nested(limits, HAMLYN_A_LIMITS_USER_SLOTS);
	EXPECT_EQ(UINT32_MAX, genl_number(slots));
}

/* An eighth of what all NICs together may have, so often as there is room. */
static int take_eighths(void *arg)
{
	const uint64_t *all = arg;
	struct hamlyn_area_alloc area;
	int fd = ht_raw_open(), n, ret = 0;

	for (n = 0; n < 9 && !ret; n++)
		ret = ht_raw_area_alloc(fd, (size_t)(*all / 8) & ~(PAGE - 1UL), &area,
					NULL);
	return ret == -EDQUOT || ret == -ENOMEM ? n - 1 : 100;
}

/* What was given back can be had again, also by who had as much as he may. */
TEST_F(nics, half_of_all_at_most_is_a_users_and_more_is_roots)
{
	const unsigned int uid = somebody(7);
	uint64_t all;
	int root, first;

	self->nic = nic_new(&self->g);
	ASSERT_LE(0, self->nic);
	nic_use((uint32_t)self->nic);
	ASSERT_EQ(0, nic_get(&self->g, (uint32_t)self->nic));
	all = genl_number(genl_nested(genl_attr(&self->g, HAMLYN_A_LIMITS),
				      HAMLYN_A_LIMITS_KERNEL_BYTES));
	/* Where little is reserved a half, and on a small machine a quarter. */
	first = as(uid, take_eighths, &all);
	EXPECT_LE(1, first);
	EXPECT_GE(4, first);
	EXPECT_EQ(first, as(uid, take_eighths, &all));
	root = as(0, take_eighths, &all);
	EXPECT_LT(4, root);
	EXPECT_GE(8, root);
}

TEST_HARNESS_MAIN
