// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who has a user namespace has no more than without: not the shares of as many users
 * as he has subordinate uids, nor counters that tell which guess was a key. Kernel
 * device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include "nics.h"

#include <fcntl.h>
#include <sys/resource.h>

#define NEED_ROOT	"kernel: as root"
#define NO_CONTAINER	77

FIXTURE(hostile_container) {
	struct genl genl;
	struct party admin;
	uint32_t nic;		/* + 1: made by the test; 0: none */
};

FIXTURE_SETUP(hostile_container)
{
	self->genl.fd = -1;
	ASSERT_EQ(0, party_open(&self->admin));
	if (geteuid())
		SKIP(return, NEED_ROOT);
	ASSERT_EQ(0, genl_open(&self->genl, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
}

/* In the parent, also when the test stops early. The rest goes with its process. */
FIXTURE_TEARDOWN_PARENT(hostile_container)
{
	struct genl g;

	if (!self->nic || genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return;
	/* Unless it went with a container. */
	nic_call(&g, HAMLYN_NL_CMD_NIC_DEL, self->nic - 1);
	genl_close(&g);
}

/* ---- who does what another one says --------------------------------------- */

static int say(int socket)
{
	return write(socket, "x", 1) == 1 ? 0 : -EPIPE;
}

static int hear(int socket)
{
	char byte;

	return ht_read_all(socket, &byte, 1);
}

/* ---- subordinate uids ------------------------------------------------------ */

static int map_id(pid_t pid, const char *file, unsigned int id)
{
	char path[64], line[32];
	int fd, length, ret;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	length = snprintf(line, sizeof(line), "0 %u 1\n", id);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, line, (size_t)length) == length ? 0 : -errno;
	close(fd);
	return ret;
}

/* As @owner makes a namespace, in which he is @uid, and does @act there. */
struct inside {
	unsigned int owner;
	unsigned int uid;
	int (*act)(int socket);
	pid_t pid;
	int socket;
};

static int live_inside(const struct inside *in, int socket)
{
	if ((in->owner && become(in->owner)) || unshare(CLONE_NEWUSER))
		return NO_CONTAINER;
	ht_stay_child();
	if (say(socket) || hear(socket))
		return 60;
	return become(0) ? 61 : in->act(socket);
}

/* 0 when it lives there. */
static int enter(struct inside *in)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	in->pid = ht_fork();
	if (!in->pid) {
		close(sockets[0]);
		_exit(live_inside(in, sockets[1]));
	}
	close(sockets[1]);
	in->socket = sockets[0];
	if (in->pid < 0 || hear(in->socket))
		return -ECHILD;
	if (map_id(in->pid, "uid_map", in->uid) ||
	    map_id(in->pid, "gid_map", in->uid))
		return -EPERM;
	return say(in->socket);
}

static int leave(struct inside *in)
{
	close(in->socket);
	return ht_reap(in->pid);
}

static int be_inside(unsigned int owner, unsigned int uid,
		     int (*act)(int socket))
{
	struct inside in = { .owner = owner, .uid = uid, .act = act };
	int ret = enter(&in);

	if (in.pid <= 0)
		return ret;
	if (!ret)
		hear(in.socket);
	return leave(&in);
}

static int one_slot(int fd)
{
	struct hamlyn_area_alloc area = { .size = sizeof(area), .length = 1 };
	struct hamlyn_slot_create slot;
	int ret = ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, &area);

	return ret ? ret : ht_raw_slot_create(fd, area.area, 1, HAMLYN_NONE,
					      &slot);
}

static int has_one(int socket)
{
	int fd = ht_raw_open();

	(void)socket;
	return fd < 0 ? 1 : one_slot(fd) ? 2 : 0;
}

static int has_none(int socket)
{
	int fd = ht_raw_open();

	(void)socket;
	return fd < 0 ? 1 : one_slot(fd) == -EDQUOT ? 0 : 2;
}

/* All that one may have; then it waits for the end. */
static int hoard(int socket)
{
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	struct hamlyn_query query;
	int fd = ht_raw_open();
	uint32_t n;
	int ret = 0;

	if (fd < 0 || ht_raw_query(fd, &query) ||
	    ht_raw_area_alloc(fd, 1, &area, NULL))
		return 1;
	for (n = 0; n <= query.max_slots && !ret; n++)
		ret = ht_raw_slot_create(fd, area.area, 1, HAMLYN_NONE, &slot);
	if (ret != -EDQUOT || n < 2 || n > query.max_slots)
		return 2;
	if (say(socket))
		return 3;
	hear(socket);
	return 0;
}

/* 0 when it has all that one may have, or NO_CONTAINER; else it has ended. */
static int begin_hoard(struct inside *in, unsigned int owner, unsigned int uid)
{
	int ret;

	*in = (struct inside) { .owner = owner, .uid = uid, .act = hoard };
	ret = enter(in);
	if (!ret)
		ret = hear(in->socket);
	return ret ? leave(in) : 0;
}

TEST_F(hostile_container, subordinate_uids_have_their_users_share)
{
	unsigned int user = somebody(0);
	struct inside first;
	int ret = begin_hoard(&first, user, somebody(2));

	if (ret == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	ASSERT_EQ(0, ret);
	/* As himself, as another of his uids; not another user, nor his. */
	EXPECT_EQ(0, be_inside(user, somebody(3), has_none));
	EXPECT_EQ(0, be_inside(user, user, has_none));
	EXPECT_EQ(0, be_inside(somebody(1), somebody(4), has_one));
	EXPECT_EQ(0, leave(&first));
	EXPECT_EQ(0, be_inside(user, somebody(3), has_one));
}

/* Who is put into a container by root is somebody of his own. */
TEST_F(hostile_container, containers_that_root_made_have_shares_of_their_own)
{
	struct inside first;
	int ret = begin_hoard(&first, 0, somebody(5));

	if (ret == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, be_inside(0, somebody(5), has_none));
	EXPECT_EQ(0, be_inside(0, somebody(7), has_one));
	EXPECT_EQ(0, leave(&first));
}

/* ---- RLIMIT_MEMLOCK of all of them together --------------------------------- */

#define LOCKED	8	/* pages */

static int wire(unsigned int pages)
{
	struct rlimit limit = { LOCKED * PAGE, LOCKED * PAGE };
	struct hamlyn_area_add arg = { .size = sizeof(arg), .length = pages * PAGE };
	void *p = mmap(NULL, LOCKED * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = ht_raw_open();

	if (p == MAP_FAILED || fd < 0 || setrlimit(RLIMIT_MEMLOCK, &limit))
		return -EIO;
	madvise(p, LOCKED * PAGE, MADV_NOHUGEPAGE);
	arg.addr = (uintptr_t)p;
	return ht_raw(fd, HAMLYN_IOC_AREA_ADD, &arg);
}

static int wire_all(int socket)
{
	if (wire(LOCKED) || say(socket))
		return 1;
	hear(socket);
	return 0;
}

static int wires_one(int socket)
{
	(void)socket;
	return wire(1) ? 1 : 0;
}

static int wires_none(int socket)
{
	(void)socket;
	return wire(1) == -ENOMEM ? 0 : 1;
}

TEST_F(hostile_container, subordinate_uids_have_one_RLIMIT_MEMLOCK)
{
	unsigned int user = somebody(0);
	struct inside first = { .owner = user, .uid = somebody(2),
				.act = wire_all };
	int ret = enter(&first);

	if (!ret)
		ret = hear(first.socket);
	if (ret && leave(&first) == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, be_inside(user, somebody(3), wires_none));
	EXPECT_EQ(0, be_inside(user, user, wires_none));
	EXPECT_EQ(0, be_inside(somebody(1), somebody(4), wires_one));
	EXPECT_EQ(0, leave(&first));
	EXPECT_EQ(0, be_inside(user, somebody(3), wires_one));
}

/* How many contexts on the NIC of the suite one is told of. */
static int contexts_listed(void *arg)
{
	const char *device = ht_device();
	static struct genl g;
	uint32_t nic = 0;

	(void)arg;
	if ((device && sscanf(device, "/dev/hamlyn%u", &nic) != 1) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return 90;
	genl_begin(&g, HAMLYN_NL_CMD_CONTEXT_GET);
	genl_put_u32(&g, HAMLYN_A_NIC, nic);
	return genl_count(&g);
}

TEST_F(hostile_container, what_a_subordinate_uid_has_is_listed_for_him_and_for_his_user)
{
	unsigned int user = somebody(8), subordinate = somebody(9);
	struct inside first;
	int ret = begin_hoard(&first, user, subordinate);

	if (ret == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(1, as(user, contexts_listed, NULL));
	EXPECT_EQ(1, as(subordinate, contexts_listed, NULL));
	EXPECT_EQ(0, as(somebody(10), contexts_listed, NULL));
	EXPECT_EQ(0, leave(&first));
}

/* ---- a container with a NIC ------------------------------------------------- */

/*
 * @act: what @uid does in there, when the NIC has come; returns 0, or less than 77
 * @host: the host's network namespace, as a descriptor; @other: another one
 */
struct contained {
	unsigned int uid;
	uint32_t nic;
	int host;
	int other;
	const struct party *admin;
	int (*act)(const struct contained *c, int socket);
	pid_t pid;
	int socket;
};

static int live_contained(const struct contained *c, int socket)
{
	if (become(c->uid) || enter_container())
		return NO_CONTAINER;
	if (say(socket) || hear(socket))
		return 10;
	return c->act(c, socket);
}

/* Returns 0 when it has the NIC, 1 if there are no containers here, or -errno. */
static int contain(struct genl *g, struct contained *c)
{
	int sockets[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	c->pid = ht_fork();
	if (!c->pid) {
		close(sockets[0]);
		_exit(live_contained(c, sockets[1]));
	}
	close(sockets[1]);
	c->socket = sockets[0];
	if (c->pid < 0)
		return -ECHILD;
	if (hear(c->socket))
		return ht_reap(c->pid) == NO_CONTAINER ? 1 : -ECHILD;
	ret = nic_move(g, c->nic, c->pid);
	return ret ? ret : say(c->socket);
}

/* ---- counters -------------------------------------------------------------- */

static int nic_stats(int fd, struct hamlyn_stats *stats)
{
	*stats = (struct hamlyn_stats) {
		.size = sizeof(*stats),
		.kind = HAMLYN_STATS_NIC,
	};
	return ht_raw(fd, HAMLYN_IOC_STATS, stats);
}

/* A message that lands, one with a wrong key, one to a slot that is not there. */
static int guess(struct party *p, const struct party *admin)
{
	struct hamlyn_trb trb = to_party(admin);

	if (post(&p->terminus, &trb))
		return 1;
	trb.key ^= 1;
	if (post(&p->terminus, &trb))
		return 2;
	trb.slot ^= 1;
	return post(&p->terminus, &trb) ? 3 : 0;
}

static const char *told_by_ioctl(int fd)
{
	struct hamlyn_stats stats;
	unsigned int i;

	if (nic_stats(fd, &stats))
		return "no counters at all";
	if (stats.messages != 3)
		return "another number of messages";
	if (stats.notifications || stats.overruns)
		return "that one has landed";
	for (i = 0; i < ARRAY_SIZE(stats.rejects); i++)
		if (stats.rejects[i])
			return "which were rejected";
	return NULL;
}

static const char *told_by_netlink(uint32_t nic)
{
	struct genl g;

	if (genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION) ||
	    nic_call(&g, HAMLYN_NL_CMD_STATS_GET, nic))
		return "no counters at all";
	if (genl_number(genl_attr(&g, HAMLYN_A_MESSAGES)) != 3)
		return "another number of messages";
	if (genl_attr(&g, HAMLYN_A_NOTIFICATIONS) ||
	    genl_attr(&g, HAMLYN_A_OVERRUNS))
		return "that one has landed";
	if (genl_attr(&g, HAMLYN_A_REJECTS))
		return "which were rejected";
	genl_close(&g);
	return NULL;
}

/* As root of a container, with a NIC of its own. */
static int look(const struct contained *c, int socket)
{
	const char *told;
	struct party p;

	nic_use(c->nic);
	if (party_open(&p) || guess(&p, c->admin))
		return 11;
	told = told_by_ioctl(p.fd);
	if (!told)
		told = told_by_netlink(c->nic);
	if (told) {
		fprintf(stderr, "# it is told: %s\n", told);
		return 12;
	}
	if (pass_fd(socket, p.fd))
		return 13;
	hear(socket);
	return 0;
}

/* Whoever administrates the host sees them, by the same descriptor. */
static const char *host_sees(int fd)
{
	struct hamlyn_stats stats;

	if (fd < 0)
		return "no descriptor";
	if (nic_stats(fd, &stats))
		return "no counters at all";
	if (stats.notifications != 1)
		return "not the one that has landed";
	return stats.rejects[HAMLYN_REJECT_KEY] ? NULL :
						  "not what was rejected";
}

TEST_F(hostile_container, its_root_does_not_see_which_guess_was_a_key)
{
	struct contained c = { .uid = somebody(6), .admin = &self->admin,
			       .act = look };
	int nic, ret, fd;

	nic = nic_new(&self->genl);
	ASSERT_GE(nic, 0);
	c.nic = (uint32_t)nic;
	self->nic = c.nic + 1;
	ret = contain(&self->genl, &c);
	if (ret == 1)
		SKIP(return, "no user namespaces here");
	ASSERT_EQ(0, ret);
	fd = get_fd(c.socket);
	EXPECT_EQ(NULL, host_sees(fd)) {
		TH_LOG("%s", host_sees(fd));
	}
	close(fd);
	close(c.socket);
	EXPECT_EQ(0, ht_reap(c.pid));
}

/* ---- what is the host's ----------------------------------------------------- */

static int set_adversary(struct genl *g, uint32_t nic)
{
	struct nlattr *nest;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	nest = genl_put(g, HAMLYN_A_ADVERSARY | NLA_F_NESTED, NULL, 0);
	genl_put_u32(g, HAMLYN_A_ADV_DELAY_US, 1);
	genl_end(g, nest);
	return genl_call(g);
}

/* What costs processors and memory, and what decides about senders elsewhere. */
static const char *host_settings(struct genl *g, uint32_t nic)
{
	if (nic_set(g, nic, HAMLYN_A_IDLE_US, 1000000) != -EPERM)
		return "how long is polled";
	if (nic_set(g, nic, HAMLYN_A_KICK_WINDOW_US, 1) != -EPERM)
		return "when a doorbell wakes the engine";
	if (nic_set(g, nic, HAMLYN_A_GUESSES, UINT32_MAX) != -EPERM)
		return "how many guesses are free";
	return set_adversary(g, nic) == -EPERM ? NULL : "an adversary";
}

/* As root of a container: its NIC is up and down as he says, and stays his. */
static int administrate(const struct contained *c, int socket)
{
	const char *set;
	struct genl g;

	(void)socket;
	if (genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return 11;
	set = host_settings(&g, c->nic);
	if (set) {
		fprintf(stderr, "# it sets: %s\n", set);
		return 12;
	}
	if (nic_set(&g, c->nic, HAMLYN_A_NETNS_FD, (uint32_t)c->host) != -EPERM ||
	    nic_set(&g, c->nic, HAMLYN_A_NETNS_FD, (uint32_t)c->other) != -EPERM)
		return 13;
	if (nic_set(&g, c->nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN) ||
	    nic_set(&g, c->nic, HAMLYN_A_STATE, HAMLYN_NL_STATE_UP))
		return 14;
	genl_close(&g);
	return 0;
}

/* A namespace of the host's, with a NIC. Until it is killed. */
static pid_t make_other(uint32_t *nic)
{
	static struct genl g;
	int ready[2], made;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = ht_fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET) ||
		    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
			_exit(1);
		made = nic_new(&g);
		if (made < 0 || write(ready[1], &made, sizeof(made)) != sizeof(made))
			_exit(2);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (ht_read_all(ready[0], &made, sizeof(made)))
		pid = -1;
	*nic = (uint32_t)made;
	close(ready[0]);
	return pid;
}

static int network_of(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

TEST_F(hostile_container, its_root_sets_nothing_that_is_the_hosts)
{
	struct contained c = {
		.uid = somebody(8), .act = administrate,
		.host = network_of(getpid()),
	};
	uint32_t kept;
	int nic, ret;
	pid_t pid;

	pid = make_other(&kept);
	ASSERT_LT(0, pid);
	c.other = network_of(pid);
	ASSERT_LE(0, c.host);
	ASSERT_LE(0, c.other);
	nic = nic_new(&self->genl);
	ASSERT_GE(nic, 0);
	c.nic = (uint32_t)nic;
	self->nic = c.nic + 1;
	ret = contain(&self->genl, &c);
	if (ret == 1)
		SKIP(return, "no user namespaces here");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, ht_reap(c.pid));
	close(c.socket);
	close(c.host);
	close(c.other);
	/* That it was asked for keeps nothing of it. */
	kill(pid, SIGKILL);
	ht_reap(pid);
	EXPECT_EQ(0, nic_is_gone_soon(&self->genl, kept));
}

TEST_HARNESS_MAIN
