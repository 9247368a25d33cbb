// SPDX-License-Identifier: GPL-2.0-only
/*
 * NICs on a fabric between hosts, and their peers: they are as they were asked for, what cannot
 * be is refused with its errno and with words, and only administrators of the NIC's network
 * namespace may ask. What passes between hosts is for other tests. Kernel device only, run as root.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hostile.h"
#include "nics.h"

#include <net/if.h>
#include <sys/ioctl.h>

#define HOST		1
#define OTHER		2
#define MANY		200	/* peers: more than one message tells */
#define DEVICE		"hml-lo"

/* What a request says of a fabric: what is NULL, or 0, it does not. */
struct fabric {
	const void *id, *address;
	uint16_t address_length;
	uint16_t port;
	const char *device;
	uint32_t kind;
	uint32_t dead_ms;
	bool clear, no_kind, no_host;
};

static const unsigned char some_id[16] = "a fabric's id 1", no_id[16];
static const unsigned char v4[4] = { 127, 0, 0, 1 }, other_v4[4] = { 127, 0, 0, 2 };
static const unsigned char v6[16] = { 0xfd, [15] = 1 };

#define TCP	.kind = HAMLYN_NL_FABRIC_TCP
#define OWN	.address = v4, .address_length = 4
#define USUAL	TCP, OWN, .id = some_id, .clear = true

static void put_fabric(struct genl *g, const struct fabric *f)
{
	struct nlattr *nest = genl_put(g, HAMLYN_A_FABRIC | NLA_F_NESTED, NULL, 0);

	if (!f->no_kind)
		genl_put_u32(g, HAMLYN_A_FAB_KIND, f->kind);
	if (f->id)
		genl_put(g, HAMLYN_A_FAB_ID, f->id, 16);
	if (f->address)
		genl_put(g, HAMLYN_A_FAB_ADDRESS, f->address, f->address_length);
	if (f->port)
		genl_put(g, HAMLYN_A_FAB_PORT, &f->port, sizeof(f->port));
	if (f->device)
		genl_put(g, HAMLYN_A_FAB_DEVICE, f->device, (uint16_t)strlen(f->device) + 1);
	if (f->clear)
		genl_put(g, HAMLYN_A_FAB_CLEAR, NULL, 0);
	if (f->dead_ms)
		genl_put_u32(g, HAMLYN_A_FAB_DEAD_MS, f->dead_ms);
	genl_end(g, nest);
}

/* A NIC in the network namespace behind @netns; -1: in ours. Its number or a negative errno. */
static int make(struct genl *g, const struct fabric *f, int netns)
{
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	genl_put_u32(g, HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE);
	if (!f->no_host)
		genl_put_u32(g, HAMLYN_A_HOST, HOST);
	if (netns >= 0)
		genl_put_u32(g, HAMLYN_A_NETNS_FD, (uint32_t)netns);
	put_fabric(g, f);
	ret = genl_call(g);
	return ret ? ret : (int)genl_number(genl_attr(g, HAMLYN_A_NIC));
}

static bool is_address(const struct nlattr *a, const unsigned char *address)
{
	return a && a->nla_len == NLA_HDRLEN + 4 &&
	       !memcmp((const char *)a + NLA_HDRLEN, address, 4);
}

/* What a request says of a peer: as above. */
struct peer {
	const void *address;
	uint32_t host;
	uint16_t address_length;
	uint16_t port, told;
	const uint32_t *map;
	uint16_t map_length;	/* bytes */
	uint32_t users;		/* 0: not said */
};

static int peer_call(struct genl *g, uint8_t command, uint32_t nic, const struct peer *p)
{
	struct nlattr *nest;

	genl_begin(g, command);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	nest = genl_put(g, HAMLYN_A_PEER | NLA_F_NESTED, NULL, 0);
	if (p->host)
		genl_put_u32(g, HAMLYN_A_PEER_HOST, p->host);
	if (p->address)
		genl_put(g, HAMLYN_A_PEER_ADDRESS, p->address, p->address_length);
	if (p->port)
		genl_put(g, HAMLYN_A_PEER_PORT, &p->port, sizeof(p->port));
	if (p->told)
		genl_put_u32(g, p->told, 1);
	if (p->users)
		genl_put_u32(g, HAMLYN_A_PEER_USERS, p->users);
	if (p->map)
		genl_put(g, HAMLYN_A_PEER_USER_MAP, p->map, p->map_length);
	genl_end(g, nest);
	return command == HAMLYN_NL_CMD_PEER_GET ? genl_count(g) : genl_call(g);
}

static int add(struct genl *g, uint32_t nic, uint32_t host)
{
	return peer_call(g, HAMLYN_NL_CMD_PEER_NEW, nic,
			 &(struct peer){ .host = host, .address = other_v4, .address_length = 4 });
}

static int count(struct genl *g, uint32_t nic)
{
	genl_begin(g, HAMLYN_NL_CMD_PEER_GET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	return genl_count(g);
}

FIXTURE(peers) {
	struct genl g;
	int nic;	/* on a fabric between hosts; -1: none any more */
};

FIXTURE_SETUP(peers)
{
	self->nic = -1;
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION));
	self->nic = make(&self->g, &(struct fabric){ USUAL, .port = 7100 }, -1);
	ASSERT_LE(0, self->nic) {
		TH_LOG("it says \"%s\"", self->g.text);
	}
}

FIXTURE_TEARDOWN(peers)
{
	if (self->nic >= 0)
		EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

/* What the kernel said has to name what is meant. */
#define EXPECT_SAYS(word)						\
	EXPECT_NE(NULL, strstr(self->g.text, word)) {			\
		TH_LOG("it says \"%s\", not \"%s\"", self->g.text, word); \
	}

TEST_F(peers, a_nic_is_on_the_fabric_that_was_asked_for)
{
	const struct nlattr *nest;
	struct genl *g = &self->g;

	ASSERT_EQ(0, nic_get(g, (uint32_t)self->nic));
	EXPECT_EQ(HOST, genl_number(genl_attr(g, HAMLYN_A_HOST)));
	EXPECT_EQ(0, memcmp(genl_attr(g, HAMLYN_A_FABRIC_ID) + 1, some_id, 16));
	nest = genl_attr(g, HAMLYN_A_FABRIC);
	EXPECT_EQ(HAMLYN_NL_FABRIC_TCP, genl_number(genl_nested(nest, HAMLYN_A_FAB_KIND)));
	EXPECT_TRUE(is_address(genl_nested(nest, HAMLYN_A_FAB_ADDRESS), v4));
	EXPECT_EQ(7100, genl_number(genl_nested(nest, HAMLYN_A_FAB_PORT)));
	EXPECT_EQ(NULL, genl_nested(nest, HAMLYN_A_FAB_DEVICE));
	EXPECT_NE(NULL, genl_nested(nest, HAMLYN_A_FAB_CLEAR));
	EXPECT_EQ(5000, genl_number(genl_nested(nest, HAMLYN_A_FAB_DEAD_MS)));
	EXPECT_EQ(1000, genl_number(genl_nested(nest, HAMLYN_A_FAB_STALL_MS)));
}

TEST_F(peers, a_fabric_that_cannot_be_is_refused_with_words)
{
	static const unsigned char any4[4], all4[4] = { 255, 255, 255, 255 };
	static const unsigned char group4[4] = { 224, 0, 0, 1 }, any6[16], group6[16] = { 0xff };
	static const unsigned char mapped[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	static const struct {
		struct fabric f;
		int error;
		const char *word;
	} cases[] = {
		{ { .no_kind = true }, EINVAL, "kind of the fabric is needed: loop or tcp" },
		{ { .kind = HAMLYN_NL_FABRIC_LOOP, OWN }, EINVAL, "only kind tcp" },
		{ { .kind = HAMLYN_NL_FABRIC_LOOP, .dead_ms = 100 }, EINVAL, "only kind tcp" },
		{ { .kind = 2 }, ERANGE, "out of range" },
		{ { TCP, OWN, .clear = true }, EINVAL, "id of the fabric is needed" },
		{ { TCP, OWN, .clear = true, .id = no_id }, EINVAL, "all 0" },
		{ { TCP, .clear = true, .id = some_id }, EINVAL, "address is needed" },
		{ { USUAL, .no_host = true }, EINVAL, "host is needed" },
		{ { USUAL, .dead_ms = 99 }, ERANGE, "out of range" },
		{ { USUAL, .dead_ms = 600001 }, ERANGE, "out of range" },
		{ { TCP, OWN, .id = some_id }, EINVAL, "device is needed, one of WireGuard" },
		{ { TCP, OWN, .id = some_id, .device = "lo" }, EINVAL, "does not encrypt" },
		{ { TCP, OWN, .id = some_id, .device = "no" }, ENODEV, "network namespace" },
		{ { USUAL, .device = "no" }, ENODEV, "network namespace" },
		{ { USUAL, .device = "" }, ENODEV, "network namespace" },
#define ADDRESS(bytes, size) { { TCP, .id = some_id, .clear = true, .address = bytes,	\
				 .address_length = size }, EINVAL, "that of one host" }
		ADDRESS(v4, 3), ADDRESS(v6, 5), ADDRESS(v6, 15), ADDRESS(any4, 4),
		ADDRESS(all4, 4), ADDRESS(group4, 4), ADDRESS(any6, 16), ADDRESS(group6, 16),
		ADDRESS(mapped, 16),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(-cases[i].error, make(&self->g, &cases[i].f, -1)) {
			TH_LOG("case %u: \"%s\"", i, self->g.text);
		}
		EXPECT_SAYS(cases[i].word);
	}
}

TEST_F(peers, a_peer_is_told_as_it_was_added_and_gone_when_it_was_deleted)
{
	const struct peer some = { .host = OTHER, .address = other_v4, .address_length = 4,
				   .port = 7102 };
	const struct peer named = { .host = OTHER };
	uint32_t nic = (uint32_t)self->nic;
	const struct nlattr *nest;
	struct genl *g = &self->g;

	EXPECT_EQ(0, count(g, nic));
	ASSERT_EQ(0, peer_call(g, HAMLYN_NL_CMD_PEER_NEW, nic, &some));
	ASSERT_EQ(1, peer_call(g, HAMLYN_NL_CMD_PEER_GET, nic, &named));
	EXPECT_EQ(nic, genl_number(genl_attr(g, HAMLYN_A_NIC)));
	nest = genl_attr(g, HAMLYN_A_PEER);
	EXPECT_EQ(OTHER, genl_number(genl_nested(nest, HAMLYN_A_PEER_HOST)));
	EXPECT_TRUE(is_address(genl_nested(nest, HAMLYN_A_PEER_ADDRESS), other_v4));
	EXPECT_EQ(7102, genl_number(genl_nested(nest, HAMLYN_A_PEER_PORT)));
	EXPECT_NE(HAMLYN_NL_PEER_STATE_UP, genl_number(genl_nested(nest, HAMLYN_A_PEER_STATE)));
	EXPECT_NE(NULL, genl_nested(nest, HAMLYN_A_PEER_SENT_BYTES));
	EXPECT_NE(NULL, genl_nested(nest, HAMLYN_A_PEER_DROPPED));
	EXPECT_EQ(-EEXIST, peer_call(g, HAMLYN_NL_CMD_PEER_NEW, nic, &some));
	EXPECT_SAYS("peer");
	ASSERT_EQ(0, peer_call(g, HAMLYN_NL_CMD_PEER_DEL, nic, &named));
	EXPECT_EQ(-ENOENT, peer_call(g, HAMLYN_NL_CMD_PEER_DEL, nic, &named));
	EXPECT_SAYS("no such peer");
	EXPECT_EQ(-ENOENT, peer_call(g, HAMLYN_NL_CMD_PEER_GET, nic, &named));
	EXPECT_EQ(0, count(g, nic));
	/* The same one may come again. */
	EXPECT_EQ(0, peer_call(g, HAMLYN_NL_CMD_PEER_NEW, nic, &some));
}

TEST_F(peers, a_peer_that_cannot_be_is_refused_with_words)
{
	static const unsigned char any[4];
	static const struct {
		struct peer p;
		int error;
		const char *word;
	} cases[] = {
		{ { .address = other_v4, .address_length = 4 }, EINVAL, "its host is needed" },
		{ { .host = OTHER }, EINVAL, "address of the peer is needed" },
		{ { .host = OTHER, .address = other_v4, .address_length = 3 }, EINVAL,
		  "that of one host" },
		{ { .host = OTHER, .address = any, .address_length = 4 }, EINVAL,
		  "that of one host" },
		{ { .host = OTHER, .address = v6, .address_length = 16 }, EAFNOSUPPORT,
		  "both IPv4 or both IPv6" },
		{ { .host = HOST, .address = other_v4, .address_length = 4 }, EINVAL,
		  "another host's" },
		{ { .host = UINT32_MAX, .address = other_v4, .address_length = 4 }, EINVAL,
		  "host" },
		{ { .host = OTHER, .address = other_v4, .address_length = 4,
		    .told = HAMLYN_A_PEER_STATE }, EINVAL, "does not have" },
		{ { .host = OTHER, .address = other_v4, .address_length = 4,
		    .told = HAMLYN_A_PEER_EPOCH }, EINVAL, "does not have" },
	};
	struct genl *g = &self->g;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(-cases[i].error, peer_call(g, HAMLYN_NL_CMD_PEER_NEW, (uint32_t)self->nic,
						     &cases[i].p)) {
			TH_LOG("case %u: \"%s\"", i, g->text);
		}
		EXPECT_SAYS(cases[i].word);
	}
	EXPECT_EQ(-EINVAL, nic_call(g, HAMLYN_NL_CMD_PEER_NEW, (uint32_t)self->nic));
	EXPECT_SAYS("which peer?");
	EXPECT_EQ(-EINVAL, peer_call(g, HAMLYN_NL_CMD_PEER_DEL, (uint32_t)self->nic,
				     &(struct peer){ .host = OTHER, .port = 1 }));
	EXPECT_SAYS("does not have");
	EXPECT_EQ(0, count(g, (uint32_t)self->nic));
}

#define USERS_MAP	.users = HAMLYN_NL_PEER_USERS_MAP, .host = OTHER, .address = other_v4, \
			.address_length = 4
#define MAP(bytes, ...)	.map = (const uint32_t []){ __VA_ARGS__ }, .map_length = (bytes)

TEST_F(peers, a_map_of_users_is_told_as_it_was_set)
{
	uint32_t nic = (uint32_t)self->nic, map[32][3];
	struct peer some = { USERS_MAP, .map = map[0] };
	const struct nlattr *nest, *told;
	struct genl *g = &self->g;
	uint16_t n;

	for (n = 0; n < 32; n++) {
		map[n][0] = 100U * n;
		map[n][1] = 7;
		map[n][2] = 100;
	}
	map[31][2] = UINT32_MAX - 3100;	/* up to the last user */
	for (n = 1; n <= 32; n += 31) {
		some.map_length = (uint16_t)(n * sizeof(map[0]));
		ASSERT_EQ(0, peer_call(g, HAMLYN_NL_CMD_PEER_NEW, nic, &some)) {
			TH_LOG("it says \"%s\"", g->text);
		}
		ASSERT_EQ(1, count(g, nic));
		nest = genl_attr(g, HAMLYN_A_PEER);
		EXPECT_EQ(HAMLYN_NL_PEER_USERS_MAP,
			  genl_number(genl_nested(nest, HAMLYN_A_PEER_USERS)));
		told = genl_nested(nest, HAMLYN_A_PEER_USER_MAP);
		ASSERT_NE(NULL, told);
		ASSERT_EQ(NLA_HDRLEN + some.map_length, told->nla_len);
		EXPECT_EQ(0, memcmp((const char *)told + NLA_HDRLEN, map, some.map_length));
		ASSERT_EQ(0, peer_call(g, HAMLYN_NL_CMD_PEER_DEL, nic,
				       &(struct peer){ .host = OTHER }));
	}
}

TEST_F(peers, a_map_of_users_that_cannot_be_is_refused_with_words)
{
	static const uint32_t many[33 * 3];
	const struct {
		struct peer p;
		const char *word;
	} cases[] = {
		{ { USERS_MAP }, "is needed with users map" },
		{ { USERS_MAP, MAP(0, 0) }, "1 to 32 ranges" },
		{ { USERS_MAP, MAP(8, 1, 2) }, "1 to 32 ranges" },
		{ { USERS_MAP, MAP(13, 1, 2, 1, 1) }, "1 to 32 ranges" },
		{ { USERS_MAP, .map = many, .map_length = sizeof(many) }, "1 to 32 ranges" },
		{ { USERS_MAP, MAP(12, 1, 2, 0) }, "empty" },
		{ { USERS_MAP, MAP(12, UINT32_MAX, 2, 1) }, "too long" },
		{ { USERS_MAP, MAP(12, 1, UINT32_MAX, 1) }, "too long" },
		{ { USERS_MAP, MAP(12, 1, 0, UINT32_MAX) }, "too long" },
		{ { USERS_MAP, MAP(12, 0, 1, UINT32_MAX) }, "too long" },
		{ { USERS_MAP, MAP(24, 5, 0, 5, 9, 0, 1) }, "in common" },
		{ { USERS_MAP, MAP(24, 9, 0, 1, 5, 0, 5) }, "in common" },
		{ { USERS_MAP, MAP(24, 5, 0, 1, 5, 1, 1) }, "in common" },
		{ { .host = OTHER, .address = other_v4, .address_length = 4, MAP(12, 1, 2, 3) },
		  "only with that" },
		{ { .host = OTHER, .address = other_v4, .address_length = 4, MAP(12, 1, 2, 3),
		    .users = HAMLYN_NL_PEER_USERS_SAME }, "only with that" },
	};
	struct genl *g = &self->g;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(-EINVAL, peer_call(g, HAMLYN_NL_CMD_PEER_NEW, (uint32_t)self->nic,
					     &cases[i].p)) {
			TH_LOG("case %u: \"%s\"", i, g->text);
		}
		EXPECT_SAYS(cases[i].word);
	}
	EXPECT_EQ(0, count(g, (uint32_t)self->nic));
}

/* Behind those that are told only: each operation knows its own. */
TEST_F(peers, other_operations_have_neither_fabric_nor_peer)
{
	struct genl *g = &self->g;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, (uint32_t)self->nic);
	put_fabric(g, &(struct fabric){ USUAL });
	EXPECT_EQ(-EINVAL, genl_call(g));
	EXPECT_SAYS("does not have");
	EXPECT_EQ(-EINVAL, peer_call(g, HAMLYN_NL_CMD_NIC_GET, (uint32_t)self->nic,
				     &(struct peer){ .host = OTHER }));
	EXPECT_SAYS("does not have");
	genl_begin(g, HAMLYN_NL_CMD_NIC_GET);
	genl_put_u32(g, HAMLYN_A_NIC, (uint32_t)self->nic);
	genl_put_u32(g, HAMLYN_A_CONTEXTS, 1);
	EXPECT_EQ(-EINVAL, genl_call(g));
}

TEST_F(peers, a_nic_on_the_loop_has_none)
{
	struct genl *g = &self->g;
	int nic = nic_new(g);

	ASSERT_LE(0, nic);
	EXPECT_EQ(-EOPNOTSUPP, add(g, (uint32_t)nic, OTHER));
	EXPECT_SAYS("loop");
	EXPECT_EQ(0, count(g, (uint32_t)nic));
	EXPECT_EQ(0, nic_delete_soon(g, (uint32_t)nic));
}

/* NICs of other fabrics have host ids of their own. */
TEST_F(peers, a_host_id_is_taken_on_its_own_fabric_only)
{
	struct genl *g = &self->g;
	int loop = NIC_MAKE(g, { HAMLYN_A_HOST, 200 });
	int second, third;

	ASSERT_LE(0, loop);
	EXPECT_EQ(-EEXIST, NIC_MAKE(g, { HAMLYN_A_HOST, 200 }));
	second = make(g, &(struct fabric){ USUAL, .port = 7101 }, -1);
	EXPECT_LE(0, second);
	third = NIC_MAKE(g, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	EXPECT_LE(0, third);
	EXPECT_EQ(0, nic_delete_soon(g, (uint32_t)loop));
	EXPECT_EQ(0, nic_delete_soon(g, (uint32_t)second));
	EXPECT_EQ(0, nic_delete_soon(g, (uint32_t)third));
}

static void mark(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *nest = genl_find((const char *)NLMSG_DATA(h) + GENL_HDRLEN,
					      h->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN),
					      HAMLYN_A_PEER);
	uint64_t host = genl_number(genl_nested(nest, HAMLYN_A_PEER_HOST));
	unsigned char *seen = arg;

	if (host < MANY + OTHER)
		seen[host]++;
}

TEST_F(peers, a_list_of_many_goes_on_where_it_was)
{
	unsigned char seen[MANY + OTHER] = { 0 };
	uint32_t nic = (uint32_t)self->nic, host;
	struct genl *g = &self->g;
	uint16_t family = 0;
	struct request r;
	int fd;

	for (host = OTHER; host < OTHER + MANY; host++)
		ASSERT_EQ(0, add(g, nic, host));
	EXPECT_EQ(MANY, count(g, nic));
	fd = netlink_open(&family);
	ASSERT_LE(0, fd);
	request_init(&r, family, HAMLYN_NL_CMD_PEER_GET, NLM_F_DUMP);
	request_u32(&r, HAMLYN_A_NIC, nic);
	EXPECT_EQ(0, ask(fd, &r, mark, seen));
	close(fd);
	for (host = OTHER; host < OTHER + MANY; host++)
		EXPECT_EQ(1, seen[host]);
	EXPECT_EQ(0, nic_delete_soon(g, nic));
	self->nic = -1;
}

/* ---- other namespaces ----------------------------------------------------- */

/* So that only this namespace has a device of that name. */
static int rename_loopback(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_newname = DEVICE };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret = ioctl(fd, SIOCSIFNAME, &lo);

	lo = (struct ifreq){ .ifr_name = DEVICE, .ifr_flags = IFF_UP };
	if (!ret)
		ret = ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return ret;
}

/* Root of a container: the NIC's peers are its own, what was dropped is not told. */
static void administrate_inside(int ready, int go, uint32_t not_ours)
{
	const struct fabric ours = { USUAL, .port = 7103 };
	const struct peer other = { .host = OTHER };
	const struct nlattr *nest;
	struct genl g;
	int nic;

	if (enter_container() || rename_loopback() || write(ready, "r", 1) != 1 ||
	    ht_read_all(go, &nic, sizeof(nic)) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		_exit(1);
	if (add(&g, (uint32_t)nic, OTHER) || count(&g, (uint32_t)nic) != 1)
		_exit(2);
	nest = genl_attr(&g, HAMLYN_A_PEER);
	if (!genl_nested(nest, HAMLYN_A_PEER_SENT_BYTES) ||
	    genl_nested(nest, HAMLYN_A_PEER_DROPPED))
		_exit(3);
	if (add(&g, not_ours, OTHER) != -ENODEV || count(&g, not_ours) != -ENODEV)
		_exit(4);
	if (make(&g, &ours, -1) != -EPERM)
		_exit(5);
	if (peer_call(&g, HAMLYN_NL_CMD_PEER_DEL, (uint32_t)nic, &other))
		_exit(6);
	_exit(0);
}

TEST_F(peers, a_container_has_its_own_peers_and_devices)
{
	const struct fabric elsewhere = { USUAL, .port = 7104, .device = DEVICE };
	int ready[2], go[2], netns, nic;
	char path[64], byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	pid = ht_fork();
	if (!pid)
		administrate_inside(ready[1], go[0], (uint32_t)self->nic);
	ASSERT_EQ(0, ht_read_all(ready[0], &byte, 1));
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	netns = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, netns);
	EXPECT_EQ(-ENODEV, make(&self->g, &elsewhere, -1));
	EXPECT_SAYS("network namespace");
	nic = make(&self->g, &(struct fabric){ USUAL, .port = 7100, .device = DEVICE }, netns);
	ASSERT_LE(0, nic) {
		TH_LOG("it says \"%s\"", self->g.text);
	}
	ASSERT_EQ(sizeof(nic), write(go[1], &nic, sizeof(nic)));
	EXPECT_EQ(0, ht_reap(pid));
	close(netns);
	/* It ends with the namespace. */
	EXPECT_EQ(0, nic_is_gone_soon(&self->g, (uint32_t)nic));
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	close(go[1]);
}

/* Its connections and its address are of where it was made. */
TEST_F(peers, a_nic_between_hosts_is_not_moved)
{
	pid_t pid = ht_fork();

	if (!pid)
		for (;;)
			pause();
	EXPECT_EQ(-EOPNOTSUPP, nic_move(&self->g, (uint32_t)self->nic, pid));
	EXPECT_SAYS("stays where it was made");
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
}

TEST_HARNESS_MAIN
