// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between hosts: packets and watches over TCP. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "hosts.h"

#define NEED_ROOT	"as root, kernel device"

FIXTURE(hosts) {
	struct hosts h;
	struct h_dev *dev[2];
	struct ht_pair pair;	/* from host 1 to host 2 */
	bool there;
};

FIXTURE_SETUP(hosts)
{
	struct ht_pair_attr attr = { .meta = 4, .nq_entries = 256 };

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	ASSERT_EQ(0, hosts_begin(&self->h));
	self->there = true;
	nic_use_tx(self->h.host[0].nic);
	nic_use(self->h.host[1].nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ht_fill(self->pair.send, self->pair.send_length, 1);
}

FIXTURE_TEARDOWN(hosts)
{
	if (!self->there)
		return;
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, hosts_end(&self->h));
}

#define NEED_HOSTS() do { if (!self->there) SKIP(return, NEED_ROOT); } while (0)

TEST_F(hosts, a_message_arrives)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send, .length = p->length,
			   .meta = "meta", .meta_length = 4 };
	struct hamlyn_nq_entry e;

	NEED_HOSTS();
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_EQ(1, e.source);
	EXPECT_EQ(p->length, ht_match(p->data, p->length, 1));
	EXPECT_EQ(0, memcmp(p->meta->user, "meta", 4));
	EXPECT_TRUE(ht_pair_guarded(p));
}

TEST_HARNESS_MAIN
