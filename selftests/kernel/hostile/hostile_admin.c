// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is for administrators is not for others: unprivileged users, and root of
 * a container, with a descriptor of their own or one that was left to them, by
 * ioctl and by netlink. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <fcntl.h>
#include <sys/resource.h>

FIXTURE(hostile_admin) {
	struct party admin;
};

FIXTURE_SETUP(hostile_admin)
{
	ASSERT_EQ(0, party_open(&self->admin));
}

FIXTURE_TEARDOWN(hostile_admin)
{
	party_close(&self->admin);
}

static int nic_set(int fd, uint32_t flags, uint32_t state, uint32_t watchdog)
{
	struct hamlyn_nic_set arg = {
		.size = sizeof(arg),
		.flags = flags,
		.state = state,
		.watchdog_ms = watchdog,
	};

	return ht_raw(fd, HAMLYN_IOC_NIC_SET, &arg);
}

static int terminus(int fd, uint32_t priority, uint32_t weight)
{
	struct hamlyn_terminus_create arg = {
		.size = sizeof(arg),
		.entries = 2,
		.entry_size = 128,
		.priority = priority,
		.weight = weight,
	};
	int ret = ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &arg);

	return ret ? ret : ht_raw_id(fd, HAMLYN_IOC_TERMINUS_DESTROY,
				     arg.terminus);
}

/* Through @fd all that needs a capability: 0, or what passed. */
static int administrate(int fd)
{
	struct hamlyn_stats stats = { .size = sizeof(stats) };
	uint32_t flags, weight;

	for (flags = 0; flags < 8; flags++)
		if (nic_set(fd, flags, HAMLYN_NIC_DOWN, 1) != -EPERM)
			return 10 + flags;
	if (nic_set(fd, HAMLYN_NIC_FEED, 0, 0) != -EPERM)
		return 18;
	if (terminus(fd, HAMLYN_PRIORITY_HIGH, 0) != -EPERM ||
	    terminus(fd, HAMLYN_PRIORITY_HIGH, 1) != -EPERM)
		return 20;
	for (weight = 2; weight <= HAMLYN_MAX_WEIGHT; weight++)
		if (terminus(fd, HAMLYN_PRIORITY_NORMAL, weight) != -EPERM ||
		    terminus(fd, HAMLYN_PRIORITY_BULK, weight) != -EPERM)
			return 21;
	if (ht_raw(fd, HAMLYN_IOC_STATS, &stats) != -EPERM)
		return 22;
	/* And what does not need it is not refused. */
	if (terminus(fd, HAMLYN_PRIORITY_NORMAL, 1) ||
	    terminus(fd, HAMLYN_PRIORITY_BULK, 0))
		return 23;
	return 0;
}

static int try_own(void *arg)
{
	int fd = ht_raw_open();

	(void)arg;
	return fd < 0 ? 1 : administrate(fd);
}

static int try_passed(void *arg)
{
	const struct party *admin = arg;

	return administrate(admin->fd);
}

TEST_F(hostile_admin, an_ordinary_user_cannot_administrate)
{
	struct hamlyn_query query;

	EXPECT_EQ(0, as(somebody(0), try_own, NULL));
	/* What counts is who calls, not who has opened it. */
	EXPECT_EQ(0, as(somebody(0), try_passed, &self->admin));
	ASSERT_EQ(0, ht_raw_query(self->admin.fd, &query));
	EXPECT_EQ(HAMLYN_NIC_UP, query.state);
}

TEST_F(hostile_admin, nonsense_is_refused_from_administrators_too)
{
	uint32_t bit;

	for (bit = 8; bit; bit <<= 1) {
		EXPECT_EQ(-EINVAL, nic_set(self->admin.fd, bit, 0, 0));
	}
	EXPECT_EQ(-EINVAL, nic_set(self->admin.fd, HAMLYN_NIC_SET_STATE,
				   HAMLYN_NIC_UNFED, 0));
	EXPECT_EQ(-EINVAL, nic_set(self->admin.fd, HAMLYN_NIC_SET_WATCHDOG, 0,
				   HAMLYN_MAX_WATCHDOG_MS + 1));
	EXPECT_EQ(-EINVAL, terminus(self->admin.fd, HAMLYN_PRIORITIES, 0));
	EXPECT_EQ(-EINVAL, terminus(self->admin.fd, 0xffffffff, 0));
	EXPECT_EQ(-EINVAL, terminus(self->admin.fd, 0, HAMLYN_MAX_WEIGHT + 1));
	EXPECT_EQ(0, terminus(self->admin.fd, HAMLYN_PRIORITY_HIGH,
			      HAMLYN_MAX_WEIGHT));
}

/* ---- containers --------------------------------------------------------- */

#define NO_CONTAINER	77

/* As root there, with the descriptor of outside. */
static int try_inside(void *arg)
{
	const struct party *admin = arg;

	return enter_container() ? NO_CONTAINER : administrate(admin->fd);
}

TEST_F(hostile_admin, root_of_a_container_cannot_administrate)
{
	int ret = as(somebody(1), try_inside, &self->admin);

	if (ret == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	EXPECT_EQ(0, ret);
}

static int open_inside(void *arg)
{
	const struct party *admin = arg;
	char path[64];

	if (enter_container())
		return NO_CONTAINER;
	if (ht_raw_open() != -EPERM)
		return 1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", admin->fd);
	if (open(path, O_RDWR) >= 0 || errno != EPERM)
		return 2;
	return open(path, O_RDONLY) >= 0 || errno != EPERM ? 3 : 0;
}

TEST_F(hostile_admin, a_nic_of_another_namespace_cannot_be_opened)
{
	int ret = as(somebody(2), open_inside, &self->admin);

	if (ret == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	EXPECT_EQ(0, ret);
}

/* Capabilities of a container pass no limit of the host. */
static int exceed_inside(void *arg)
{
	struct rlimit limit = { 8 * PAGE, 8 * PAGE };
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2,
					    .entry_size = 128 };
	struct hamlyn_area_add add = {
		.size = sizeof(add),
		.length = 9 * PAGE,
	};
	int fd = ht_raw_open();
	int i, ret = 0;

	(void)arg;
	if (fd < 0 || setrlimit(RLIMIT_MEMLOCK, &limit))
		return 1;
	if (enter_container())
		return NO_CONTAINER;
	add.addr = (uintptr_t)mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ht_raw(fd, HAMLYN_IOC_AREA_ADD, &add) != -ENOMEM)
		return 2;
	for (i = 0; !ret && i <= 4096; i++)
		ret = ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
	if (ret != -EDQUOT)
		return 3;
	close(fd);
	return 0;
}

TEST_F(hostile_admin, root_of_a_container_passes_no_limits)
{
	int ret = as(somebody(3), exceed_inside, NULL);

	if (ret == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	EXPECT_EQ(0, ret);
}

/* ---- netlink ------------------------------------------------------------ */

/* The requests that change something, or tell of everybody. */
static const struct {
	uint8_t command;
	uint16_t flags;
} for_admins[] = {
	{ HAMLYN_NL_CMD_NIC_NEW, NLM_F_ACK },
	{ HAMLYN_NL_CMD_NIC_DEL, NLM_F_ACK },
	{ HAMLYN_NL_CMD_NIC_SET, NLM_F_ACK },
	{ HAMLYN_NL_CMD_NIC_FEED, NLM_F_ACK },
	{ HAMLYN_NL_CMD_TERMINUS_SET, NLM_F_ACK },
	{ HAMLYN_NL_CMD_STATS_GET, NLM_F_ACK },
	{ HAMLYN_NL_CMD_STATS_GET, NLM_F_DUMP },
	{ HAMLYN_NL_CMD_LIMIT_SET, NLM_F_ACK },
	{ HAMLYN_NL_CMD_PEER_NEW, NLM_F_ACK },
	{ HAMLYN_NL_CMD_PEER_DEL, NLM_F_ACK },
	{ HAMLYN_NL_CMD_PEER_GET, NLM_F_DUMP },
};

static void fill_request(struct request *r, uint16_t family, unsigned int i)
{
	uint8_t command = for_admins[i].command;

	request_init(r, family, command, for_admins[i].flags);
	if (command != HAMLYN_NL_CMD_NIC_NEW)
		request_u32(r, HAMLYN_A_NIC, 0);
	if (command == HAMLYN_NL_CMD_NIC_SET)
		request_u32(r, HAMLYN_A_GUESSES, 0);
	if (command == HAMLYN_NL_CMD_LIMIT_SET)
		request_u32(r, HAMLYN_A_UID, 12345);
	if (command == HAMLYN_NL_CMD_TERMINUS_SET) {
		request_u32(r, HAMLYN_A_CONTEXT, 0);
		request_u32(r, HAMLYN_A_ID, 0);
		request_u32(r, HAMLYN_A_PRIORITY, HAMLYN_PRIORITY_HIGH);
	}
}

/* Each must end with @want, or @also. 0, or 10 + which one did not. */
static int ask_all(int want, int also)
{
	struct request r;
	uint16_t family = 0;
	unsigned int i;
	int fd = netlink_open(&family);
	int ret;

	if (fd < 0)
		return 1;
	for (i = 0; i < ARRAY_SIZE(for_admins); i++) {
		fill_request(&r, family, i);
		ret = ask(fd, &r, NULL, NULL);
		if (ret == want || ret == also)
			continue;
		fprintf(stderr, "# request %u: %d\n", i, ret);
		return 10 + (int)i;
	}
	return 0;
}

static int ask_as_user(void *arg)
{
	(void)arg;
	return ask_all(-EPERM, -EPERM);
}

TEST_F(hostile_admin, netlink_requests_of_ordinary_users_are_EPERM)
{
	EXPECT_EQ(0, as(somebody(4), ask_as_user, NULL));
}

static void count_answers(const struct nlmsghdr *h, void *arg)
{
	(void)h;
	(*(int *)arg)++;
}

/*
 * In a container there is no NIC, and none can be made: what may be asked there
 * finds nothing (ENODEV, or no answers), the rest is EPERM.
 */
static int ask_inside(void *arg)
{
	static const uint8_t dumps[] = {
		HAMLYN_NL_CMD_NIC_GET, HAMLYN_NL_CMD_CONTEXT_GET,
		HAMLYN_NL_CMD_AREA_GET, HAMLYN_NL_CMD_SLOT_GET,
		HAMLYN_NL_CMD_NQ_GET, HAMLYN_NL_CMD_TERMINUS_GET,
		HAMLYN_NL_CMD_STATS_GET, HAMLYN_NL_CMD_USER_GET,
		HAMLYN_NL_CMD_AUDIT_GET, HAMLYN_NL_CMD_PEER_GET,
		HAMLYN_NL_CMD_NAME_GET,
	};
	struct request r;
	uint16_t family = 0;
	unsigned int i;
	int fd, n = 0;

	(void)arg;
	if (enter_container())
		return NO_CONTAINER;
	i = ask_all(-EPERM, -ENODEV);
	if (i)
		return i;
	fd = netlink_open(&family);
	for (i = 0; i < ARRAY_SIZE(dumps); i++) {
		request_init(&r, family, dumps[i], NLM_F_DUMP);
		ask(fd, &r, count_answers, &n);
		if (n)
			return 30 + (int)i;
	}
	return 0;
}

TEST_F(hostile_admin, netlink_of_a_container_finds_nothing)
{
	int ret = as(somebody(5), ask_inside, NULL);

	if (ret == NO_CONTAINER)
		SKIP(return, "no user namespaces here");
	EXPECT_EQ(0, ret);
}

/* What a dump tells of users, or of whose contexts. */
struct seen {
	unsigned int own;
	unsigned int others;
	uint32_t uid;
	const void *secret;
	bool told;
};

static void look(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *uid = attr_of(h, HAMLYN_A_UID);
	struct seen *seen = arg;

	if (memmem(h, h->nlmsg_len, seen->secret, 8))
		seen->told = true;
	if (uid && attr_u32(uid) == seen->uid)
		seen->own++;
	else
		seen->others++;
}

static int look_as(void *arg)
{
	static const uint8_t dumps[] = {
		HAMLYN_NL_CMD_CONTEXT_GET, HAMLYN_NL_CMD_AREA_GET,
		HAMLYN_NL_CMD_SLOT_GET, HAMLYN_NL_CMD_NQ_GET,
		HAMLYN_NL_CMD_TERMINUS_GET, HAMLYN_NL_CMD_USER_GET,
	};
	struct seen seen = { .uid = getuid() };
	struct request r;
	struct party p;
	uint16_t family = 0;
	unsigned int i;
	int fd;

	(void)arg;
	if (party_open(&p))
		return 1;
	seen.secret = &p.slot.key;
	fd = netlink_open(&family);
	for (i = 0; i < ARRAY_SIZE(dumps); i++) {
		seen.own = 0;
		seen.others = 0;
		request_init(&r, family, dumps[i], NLM_F_DUMP);
		if (ask(fd, &r, look, &seen))
			return 2;
		/* Objects are listed without their user: one context, one each. */
		if (seen.own + seen.others != 1)
			return 10 + (int)i;
		if (seen.told)
			return 20 + (int)i;
	}
	return 0;
}

TEST_F(hostile_admin, an_ordinary_user_lists_only_what_is_his)
{
	EXPECT_EQ(0, as(somebody(6), look_as, NULL));
}

/* What nic-get says is in use. */
struct use {
	uint32_t contexts, slots, termini;
	uint64_t bytes;
	bool more;
	unsigned int nics;
};

static void take_use(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *bytes = attr_of(h, HAMLYN_A_KERNEL_BYTES);
	struct use *use = arg;

	if (attr_u32(attr_of(h, HAMLYN_A_NIC)))
		return;
	use->nics++;
	use->contexts = attr_u32(attr_of(h, HAMLYN_A_CONTEXTS));
	use->slots = attr_u32(attr_of(h, HAMLYN_A_SLOTS));
	use->termini = attr_u32(attr_of(h, HAMLYN_A_TERMINI));
	if (bytes)
		memcpy(&use->bytes, bytes + 1, sizeof(use->bytes));
	/* Nobody counts these by user. */
	use->more = attr_of(h, HAMLYN_A_AREAS) || attr_of(h, HAMLYN_A_NQS);
}

static int ask_use(struct use *use)
{
	struct request r;
	uint16_t family = 0;
	int fd = netlink_open(&family), ret;

	memset(use, 0, sizeof(*use));
	request_init(&r, family, HAMLYN_NL_CMD_NIC_GET, NLM_F_DUMP);
	ret = ask(fd, &r, take_use, use);
	close(fd);
	return ret;
}

static int use_as(void *arg)
{
	struct use before, use;
	struct party p;

	(void)arg;
	if (ask_use(&before) || before.nics != 1 || before.contexts ||
	    before.slots || before.termini || before.bytes || before.more)
		return 1;
	if (party_open(&p) || ask_use(&use))
		return 2;
	if (use.contexts != 1 || use.slots != 1 || use.termini != 1 || use.more)
		return 3;
	return use.bytes >= 4 * PAGE && use.bytes <= 64 * PAGE ? 0 : 4;
}

/* Others have something all the time: the fixture. */
TEST_F(hostile_admin, an_ordinary_user_is_told_his_own_use_only)
{
	struct use use;

	EXPECT_EQ(0, as(somebody(8), use_as, NULL));
	ASSERT_EQ(0, ask_use(&use));
	EXPECT_NE(0, use.contexts);
	EXPECT_TRUE(use.more);
}

static int audit_as(void *arg)
{
	struct hamlyn_trb trb = to_party(arg);
	uint64_t key = trb.key ^ 0x5a5a;
	struct seen seen = { .uid = getuid(), .secret = &key };
	struct request r;
	struct party p;
	uint16_t family = 0;
	int fd, ret;

	/* A reject at another user's slot, by this one, who must not see it. */
	trb.key = key;
	if (party_open(&p) || post(&p.terminus, &trb))
		return 1;
	fd = netlink_open(&family);
	request_init(&r, family, HAMLYN_NL_CMD_AUDIT_GET, NLM_F_DUMP);
	ret = ask(fd, &r, look, &seen);
	if (ret && ret != -EPERM)
		return 2;
	return seen.own + seen.others ? 3 : 0;
}

TEST_F(hostile_admin, an_ordinary_user_reads_no_audit_of_the_nic)
{
	EXPECT_EQ(0, as(somebody(7), audit_as, &self->admin));
}

TEST_HARNESS_MAIN
