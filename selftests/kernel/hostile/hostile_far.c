// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches by another host, which says what it likes. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "far_host.h"
#include "hostile.h"

#define PATIENT_MS	120000
#define WATCHES		262144U	/* of a host */
#define BATCH		512U
#define FRAME		(FAR_HEADER + 32)

enum { PING = 3, PONG, WATCH, UNWATCH, GONE };

FIXTURE(hostile_far) {
	struct hosts h;
	struct far far;		/* host 0, in place of its NIC */
	struct party p;		/* of host 1 */
	bool there;
};

FIXTURE_SETUP(hostile_far)
{
	struct hamlyn_query *query = &self->p.query;

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	ASSERT_EQ(0, hosts_begin(&self->h));
	nic_use(self->h.host[1].nic);
	ASSERT_EQ(0, party_open(&self->p));
	ASSERT_EQ(0, far_begin(&self->far, &self->h, &self->h.host[0], &self->h.host[1],
			       query->packet_size, 0));
	self->there = true;
}

FIXTURE_TEARDOWN(hostile_far)
{
	if (!self->there)
		return;
	close(self->far.fd);
	party_close(&self->p);
	EXPECT_EQ(0, hosts_end(&self->h));
}

#define NEED_HOSTS() do { if (!self->there) SKIP(return, "as root, kernel device"); } while (0)

/* By the right key: it is armed, and stays so. */
static uint8_t *put_watch(uint8_t *p, struct far *f, const struct party *of, uint32_t id)
{
	p = far_put(p, 1, 1);
	p = far_put(p, WATCH, 1);
	p = far_put(p, FRAME - FAR_HEADER, 2);
	p = far_put(p, 0, 4);
	p = far_put(p, 1, 4);
	p = far_put(p, f->sequence++, 4);
	p = far_put(p, id, 4);
	p = far_put(p, 0, 4);
	p = far_put(p, of->slot.slot, 4);
	p = far_put(p, 0, 4);
	p = far_put(p, of->slot.key, 8);
	p = far_put(p, 1, 4);
	return far_put(p, 0, 4);
}

static int watch(struct far *f, const struct party *of, uint32_t first, uint32_t n)
{
	uint8_t frames[BATCH * FRAME], *p = frames;
	uint32_t i;

	for (i = 0; i < n; i++)
		p = put_watch(p, f, of, first + i);
	return ht_write_all(f->fd, frames, (size_t)(p - frames));
}

/* All that was said before has been taken, and nothing is told of it. */
static int sync_with(struct far *f)
{
	const uint8_t stamp[8] = "a stamp";
	int ret = far_say(f, PING, stamp, sizeof(stamp));

	while (!ret) {
		ret = far_hear(f);
		if (!ret && f->type == PONG)
			return 0;
		if (f->type == GONE)
			return -EPROTO;
	}
	return ret;
}

TEST_F_TIMEOUT(hostile_far, a_host_has_so_many_watches, 600)
{
	uint32_t i;

	NEED_HOSTS();
	for (i = 0; i < WATCHES; i += BATCH)
		ASSERT_EQ(0, watch(&self->far, &self->p, i, BATCH));
	ASSERT_EQ(0, sync_with(&self->far));
	EXPECT_EQ(0, watch(&self->far, &self->p, WATCHES, 1));
	EXPECT_TRUE(far_is_ended(&self->far));
}

TEST_F(hostile_far, a_host_that_repeats_the_id_of_a_watch_is_refused)
{
	NEED_HOSTS();
	EXPECT_EQ(0, watch(&self->far, &self->p, 5, 2));
	ASSERT_EQ(0, sync_with(&self->far));
	EXPECT_EQ(0, watch(&self->far, &self->p, 5, 1));
	EXPECT_TRUE(far_is_ended(&self->far));
}

TEST_HARNESS_MAIN
