// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets on their way to a host that reads them late: TCP refers to the sender's ring, and what it
 * was given stays as it was, also if there is no memory to go on with. The other host is the test's
 * own socket. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "far_host.h"

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000	/* for a guest that gets no processor */
#define TYPE_DATA	2
#define LENGTH		200		/* goes with the work request */
#define MESSAGES	25000u		/* more than TCP and the ring hold */
#define FAULTS		"/sys/kernel/debug/fail_page_alloc/"
#define NOW_AND_THEN	500		/* messages read between two signs of life */
#define CHUNK_ORDER	"3"		/* of HML_CHUNK_BYTES */
#define MANY		1000000000	/* faults: more than there can be */

FIXTURE(departures) {
	struct hosts h;
	struct ht_pair pair;	/* from host 1, which is taken over, to host 2 */
	struct far far;		/* in its place */
	struct h_terminus *terminus;	/* of host 2 */
	bool there;
};

/* TCP holds a lot that is not read yet, in this namespace: 0, or a negative errno. */
static int hold_much(void)
{
	static const char limits[] = "4096 3145728 3145728";
	int fd = open("/proc/sys/net/ipv4/tcp_wmem", O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, limits, sizeof(limits) - 1) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

FIXTURE_SETUP(departures)
{
	struct ht_pair_attr attr = { .length = 0 };
	struct host *own = &self->h.host[0], *to = &self->h.host[1];

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	ASSERT_EQ(0, hosts_begin(&self->h));
	nic_use_tx(own->nic);
	nic_use(to->nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ASSERT_EQ(0, hold_much());
	ASSERT_EQ(0, far_begin(&self->far, &self->h, own, to, self->pair.query.packet_size, 0));
	ASSERT_EQ(0, h_terminus_create(self->pair.rx, NULL, &self->terminus));
	self->there = true;
}

FIXTURE_TEARDOWN(departures)
{
	if (!self->there)
		return;
	/* Where a test ended in the middle. */
	ht_put(FAULTS "probability", "0");
	close(self->far.fd);
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, hosts_end(&self->h));
}

/* The payload of the next packet, or a negative errno. */
static int hear_packet(struct far *f, uint8_t *to, uint32_t most)
{
	uint32_t n;
	int ret;

	do {
		ret = far_hear_frame(f, &n);
		if (!ret)
			ret = n > most ? -EMSGSIZE : ht_read_all(f->fd, to, n);
	} while (!ret && f->type != TYPE_DATA);
	return ret ?: (int)n;
}

/* Each message is filled by its number: sent in turn, until none is left or there is no room. */
static int send_some(FIXTURE_DATA(departures) *self, uint64_t *sent)
{
	struct h_ticket to = self->pair.ticket;
	uint8_t data[LENGTH];
	struct h_msg m = { .ticket = &to, .data = data, .length = sizeof(data) };
	int64_t ret = 0;

	to.host = self->h.host[0].id;
	while (*sent < MESSAGES && ret >= 0) {
		ht_fill(data, sizeof(data), *sent);
		ret = h_send(self->terminus, &m);
		*sent += ret >= 0;
	}
	return ret < 0 && ret != -EAGAIN ? (int)ret : 0;
}

static bool stalls(FIXTURE_DATA(departures) *self)
{
	return host_peer(&self->h, &self->h.host[1], HAMLYN_A_PEER_STALLS) > 0;
}

/* Short ones go to TCP many at a time, and it refers to them. */
static void read_late(struct __test_metadata *_metadata, FIXTURE_DATA(departures) *self)
{
	static const uint8_t stamp[8];
	uint64_t sent = 0, seen;
	uint8_t got[LENGTH];
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (sent < MESSAGES && !stalls(self) && ht_poll_more(&poll)) {
		ASSERT_EQ(0, send_some(self, &sent));
	}
	printf("# %ju messages before the first is read\n", (uintmax_t)sent);
	for (seen = 0; seen < MESSAGES; seen++) {
		ASSERT_EQ(0, send_some(self, &sent));
		if (seen % NOW_AND_THEN == 0)
			ASSERT_EQ(0, far_say(&self->far, FAR_PONG, stamp, sizeof(stamp)));
		ASSERT_EQ(LENGTH, hear_packet(&self->far, got, sizeof(got)));
		ASSERT_EQ(LENGTH, ht_match(got, sizeof(got), seen)) {
			printf("# message %ju\n", (uintmax_t)seen);
		}
	}
}

TEST_F(departures, what_is_read_late_is_as_it_was_sent)
{
	if (!self->there)
		SKIP(return, NEED_ROOT);
	read_late(_metadata, self);
}

/* ---- without memory ---- */

/* Nothing that is as long as a chunk is to be had without waiting. */
static int take_memory(void)
{
	char times[16];

	snprintf(times, sizeof(times), "%d", MANY);
	return ht_put(FAULTS "ignore-gfp-wait", "Y") ?:
	       ht_put(FAULTS "min-order", CHUNK_ORDER) ?: ht_put(FAULTS "task-filter", "N") ?:
	       ht_put(FAULTS "verbose", "0") ?: ht_put(FAULTS "interval", "1") ?:
	       ht_put(FAULTS "probability", "100") ?: ht_put(FAULTS "times", times);
}

/* Return: how often somebody got none, or a negative errno. */
static int64_t give_memory_back(void)
{
	char left[16] = { 0 };
	int fd = open(FAULTS "times", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, left, sizeof(left) - 1);

	if (n < 0)
		return -errno;
	close(fd);
	return ht_put(FAULTS "times", "0") ?: ht_put(FAULTS "probability", "0") ?:
	       MANY - atoll(left);
}

/* No chunk takes the place of one that TCP still has: packets wait until it lets go. */
TEST_F(departures, without_memory_packets_wait_for_what_tcp_has)
{
	int64_t faults;

	if (!self->there || ht_put(FAULTS "times", "0"))
		SKIP(return, NEED_ROOT ", with fail_page_alloc");
	ASSERT_EQ(0, take_memory());
	read_late(_metadata, self);
	faults = give_memory_back();
	EXPECT_LT(0, faults);
	printf("# %jd times there was no memory\n", (intmax_t)faults);
}

TEST_HARNESS_MAIN
