// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of administrators that do not say enough, or say what cannot be: each
 * is refused with its errno and with words. And those who listen are told of each
 * kind of limit that was in somebody's way. That no other test did this was seen by
 * selftests/coverage.sh. Kernel device only, run as root.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hostile.h"

#include <fcntl.h>

#define NOWHERE		255	/* no NIC has that number */

FIXTURE(netlink) {
	struct genl g;
	uint32_t nic;
	int own;	/* this network namespace */
};

FIXTURE_SETUP(netlink)
{
	const char *device = getenv("HAMLYN_DEVICE");

	ASSERT_NE(NULL, device);
	if (sscanf(device, "/dev/hamlyn%u", &self->nic) != 1)
		SKIP(return, "not a kernel device");
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
	self->own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->own);
}

FIXTURE_TEARDOWN(netlink)
{
	close(self->own);
	genl_close(&self->g);
}

static struct genl *request(struct genl *g, uint8_t command, uint32_t nic)
{
	genl_begin(g, command);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	return g;
}

/* What the kernel said has to name what is meant. */
#define EXPECT_REFUSED(error, word) do {				\
	EXPECT_EQ(-(error), genl_call(&self->g));			\
	EXPECT_NE(NULL, strstr(self->g.text, word)) {			\
		TH_LOG("it says \"%s\"", self->g.text);			\
	}								\
} while (0)

TEST_F(netlink, a_terminus_has_to_be_named_and_something_asked_of_it)
{
	struct genl *g = &self->g;

	request(g, HAMLYN_NL_CMD_TERMINUS_SET, self->nic);
	EXPECT_REFUSED(EINVAL, "context and id");
	request(g, HAMLYN_NL_CMD_TERMINUS_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_CONTEXT, 1);
	genl_put_u32(g, HAMLYN_A_WEIGHT, 1);
	EXPECT_REFUSED(EINVAL, "context and id");
	request(g, HAMLYN_NL_CMD_TERMINUS_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_CONTEXT, 1);
	genl_put_u32(g, HAMLYN_A_ID, 1);
	EXPECT_REFUSED(EINVAL, "priority or weight");
}

static struct genl *turn_of(struct genl *g, uint32_t nic, uint32_t context,
			    uint32_t id, uint16_t attr, uint32_t value)
{
	request(g, HAMLYN_NL_CMD_TERMINUS_SET, nic);
	genl_put_u32(g, HAMLYN_A_CONTEXT, context);
	genl_put_u32(g, HAMLYN_A_ID, id);
	genl_put_u32(g, attr, value);
	return g;
}

/* The last terminus that is listed of a context is in g->reply then. */
static int list_terminus(struct genl *g, uint32_t nic, uint32_t context)
{
	request(g, HAMLYN_NL_CMD_TERMINUS_GET, nic);
	genl_put_u32(g, HAMLYN_A_CONTEXT, context);
	return genl_count(g);
}

/* The context of the process that has opened the NIC last: it has the highest number. */
static uint32_t last_context(struct genl *g, uint32_t nic)
{
	request(g, HAMLYN_NL_CMD_CONTEXT_GET, nic);
	return genl_count(g) > 0 ?
	       (uint32_t)genl_number(genl_attr(g, HAMLYN_A_CONTEXT)) : UINT32_MAX;
}

TEST_F(netlink, the_priority_and_the_weight_of_a_terminus_are_set_each_by_itself)
{
	struct genl *g = &self->g;
	uint32_t context, id;
	struct party p;

	ASSERT_EQ(0, party_open(&p));
	id = p.terminus.arg.terminus;
	context = last_context(g, self->nic);
	ASSERT_EQ(1, list_terminus(g, self->nic, context));
	EXPECT_EQ(1, genl_number(genl_attr(g, HAMLYN_A_WEIGHT)));
	ASSERT_EQ(0, genl_call(turn_of(g, self->nic, context, id, HAMLYN_A_WEIGHT, 7)));
	ASSERT_EQ(1, list_terminus(g, self->nic, context));
	EXPECT_EQ(7, genl_number(genl_attr(g, HAMLYN_A_WEIGHT)));
	EXPECT_EQ(HAMLYN_PRIORITY_NORMAL, genl_number(genl_attr(g, HAMLYN_A_PRIORITY)));
	ASSERT_EQ(0, genl_call(turn_of(g, self->nic, context, id, HAMLYN_A_PRIORITY,
				       HAMLYN_PRIORITY_HIGH)));
	ASSERT_EQ(1, list_terminus(g, self->nic, context));
	EXPECT_EQ(7, genl_number(genl_attr(g, HAMLYN_A_WEIGHT)));
	EXPECT_EQ(HAMLYN_PRIORITY_HIGH, genl_number(genl_attr(g, HAMLYN_A_PRIORITY)));
	/* Another number, and another context. */
	EXPECT_EQ(-ENOENT, genl_call(turn_of(g, self->nic, context, id + 1,
					     HAMLYN_A_WEIGHT, 1)));
	EXPECT_EQ(-ENOENT, genl_call(turn_of(g, self->nic, context + 1, id,
					     HAMLYN_A_WEIGHT, 1)));
	request(g, HAMLYN_NL_CMD_TERMINUS_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_ID, id);
	genl_put_u32(g, HAMLYN_A_WEIGHT, 1);
	EXPECT_REFUSED(EINVAL, "context and id");
	party_close(&p);
}

static struct genl *by_name(struct genl *g, const char *name)
{
	genl_begin(g, HAMLYN_NL_CMD_NIC_GET);
	genl_put(g, HAMLYN_A_NAME, name, (uint16_t)(strlen(name) + 1));
	return g;
}

/* With both it has to be the same one. */
TEST_F(netlink, a_nic_has_a_name_as_well_as_a_number)
{
	struct genl *g = &self->g;
	char name[32];
	int other;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	ASSERT_EQ(0, genl_call(g));
	other = (int)genl_number(genl_attr(g, HAMLYN_A_NIC));
	snprintf(name, sizeof(name), "hamlyn%d", other);
	ASSERT_EQ(0, genl_call(by_name(g, name)));
	EXPECT_EQ((uint64_t)other, genl_number(genl_attr(g, HAMLYN_A_NIC)));
	genl_put_u32(by_name(g, name), HAMLYN_A_NIC, (uint32_t)other);
	EXPECT_EQ(0, genl_call(g));
	genl_put_u32(by_name(g, name), HAMLYN_A_NIC, self->nic);
	EXPECT_EQ(-ENODEV, genl_call(g));
	by_name(g, name);
	EXPECT_EQ(1, genl_count(g));
	EXPECT_EQ((uint64_t)other, genl_number(genl_attr(g, HAMLYN_A_NIC)));
	EXPECT_EQ(-ENODEV, genl_call(by_name(g, "hamlyn255")));
	by_name(g, "hamlyn255");
	EXPECT_EQ(-ENODEV, genl_count(g));
	request(g, HAMLYN_NL_CMD_NIC_DEL, (uint32_t)other);
	EXPECT_EQ(0, genl_call(g));
}

TEST_F(netlink, limits_have_to_be_some_or_somebodys)
{
	struct genl *g = &self->g;

	request(g, HAMLYN_NL_CMD_LIMIT_SET, self->nic);
	EXPECT_REFUSED(EINVAL, "limits or uid");
	request(g, HAMLYN_NL_CMD_LIMIT_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_UID, UINT32_MAX);
	EXPECT_REFUSED(EINVAL, "no such user id");
}

TEST_F(netlink, a_nic_has_to_be_named_and_to_be_there)
{
	struct genl *g = &self->g;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_IDLE_US, 50);
	EXPECT_REFUSED(EINVAL, "which NIC");
	request(g, HAMLYN_NL_CMD_NIC_SET, NOWHERE);
	genl_put_u32(g, HAMLYN_A_IDLE_US, 50);
	EXPECT_REFUSED(ENODEV, "");
}

TEST_F(netlink, a_nic_moves_only_to_a_network_namespace_and_nothing_else_with_it)
{
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct genl *g = &self->g;

	ASSERT_LE(0, file);
	request(g, HAMLYN_NL_CMD_NIC_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_NETNS_FD, (uint32_t)file);
	EXPECT_REFUSED(EINVAL, "no descriptor of a network namespace");
	close(file);
	request(g, HAMLYN_NL_CMD_NIC_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_NETNS_FD, (uint32_t)file);
	EXPECT_REFUSED(EBADF, "no descriptor of a network namespace");
	request(g, HAMLYN_NL_CMD_NIC_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_NETNS_FD, (uint32_t)self->own);
	genl_put_u32(g, HAMLYN_A_IDLE_US, 50);
	EXPECT_REFUSED(EINVAL, "comes alone");
	/* To where it is already: nothing happens. */
	request(g, HAMLYN_NL_CMD_NIC_SET, self->nic);
	genl_put_u32(g, HAMLYN_A_NETNS_FD, (uint32_t)self->own);
	EXPECT_EQ(0, genl_call(g));
}

TEST_F(netlink, a_new_nic_needs_a_namespace_too)
{
	struct genl *g = &self->g;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	genl_put_u32(g, HAMLYN_A_NETNS_FD, 0x7fffffff);
	EXPECT_REFUSED(EBADF, "no descriptor of a network namespace");
}

/* ---- events -------------------------------------------------------------- */

/* How many of the events that have arrived are of a quota, with @attr in them. */
static int quota_events(int fd, uint16_t attr)
{
	static struct genl g;
	int found = 0, i;

	for (i = 0; i < 100; i++) {
		if (recv(fd, &g.reply, sizeof(g.reply), MSG_DONTWAIT) < 0)
			break;
		if (genl_number(genl_attr(&g, HAMLYN_A_EVENT)) ==
		    HAMLYN_NL_EVENT_QUOTA && genl_attr(&g, attr))
			found++;
	}
	return found;
}

/* As a user: something of each kind; how many of them end with EDQUOT. */
static int take_some(void *arg)
{
	static unsigned char own[PAGE] __attribute__((aligned(PAGE)));
	struct hamlyn_area_add add = {
		.size = sizeof(add),
		.addr = (uintptr_t)own,
		.length = PAGE,
	};
	struct hamlyn_area_alloc alloc;
	struct hamlyn_terminus_create terminus = {
		.size = sizeof(terminus),
		.entries = 2,
		.entry_size = 128,
	};
	int fd = ht_raw_open(), refused = 0;
	void *data;

	(void)arg;
	refused += ht_raw(fd, HAMLYN_IOC_AREA_ADD, &add) == -EDQUOT;
	refused += ht_raw_area_alloc(fd, PAGE, &alloc, &data) == -EDQUOT;
	refused += ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &terminus) == -EDQUOT;
	close(fd);
	return refused;
}

/* What a user has and must not have more of, and what an event tells of it. */
static const struct {
	uint16_t limit;
	uint16_t told;
	bool wide;
} kinds[] = {
	{ HAMLYN_A_LIMITS_USER_KERNEL_BYTES, HAMLYN_A_KERNEL_BYTES, true },
	{ HAMLYN_A_LIMITS_USER_WIRED_BYTES, HAMLYN_A_WIRED_BYTES, true },
	{ HAMLYN_A_LIMITS_USER_TERMINI, HAMLYN_A_TERMINI, false },
};

TEST_F(netlink, who_listens_is_told_of_each_kind_of_limit)
{
	const uid_t uid = somebody(0);
	struct genl *g = &self->g;
	struct nlattr *nest;
	struct ht_poll poll;
	unsigned int i;
	int fd, told;

	/* The answer to opening it is still there. */
	fd = genl_listen(g);
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		request(g, HAMLYN_NL_CMD_LIMIT_SET, self->nic);
		genl_put_u32(g, HAMLYN_A_UID, uid);
		nest = genl_put(g, HAMLYN_A_LIMITS | NLA_F_NESTED, NULL, 0);
		if (kinds[i].wide)
			genl_put_u64(g, kinds[i].limit, 0);
		else
			genl_put_u32(g, kinds[i].limit, 0);
		genl_end(g, nest);
		EXPECT_EQ(0, genl_call(g));
		EXPECT_LE(1, as(uid, take_some, NULL));
		EXPECT_LE(1, quota_events(fd, kinds[i].told));
		/* The user was away, and the limit is still there: it is told of again. */
		ht_poll_begin(&poll);
		do {
			EXPECT_LE(1, as(uid, take_some, NULL));
			told = quota_events(fd, kinds[i].told);
		} while (!told && ht_poll_more(&poll));
		EXPECT_LE(1, told);
		/* Back to what all have. */
		request(g, HAMLYN_NL_CMD_LIMIT_SET, self->nic);
		genl_put_u32(g, HAMLYN_A_UID, uid);
		EXPECT_EQ(0, genl_call(g));
	}
	EXPECT_EQ(0, as(uid, take_some, NULL));
	EXPECT_EQ(0, quota_events(fd, HAMLYN_A_UID));
	close(fd);
}

TEST_HARNESS_MAIN
