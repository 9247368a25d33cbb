// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads of one manager that are asleep: what wakes them when the message that was to do
 * so is lost, what a signal does, and how often they look after what does not get through.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <hamlyn/datagram.h>

/* For how soon it looks again. */
#include "manager/manager.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "nics.h"

#define SLEEPERS	2

/* What the library promises, where processors are the tests' own. */
static int64_t scaled(int64_t ns)
{
	return ns * ht_scale();
}

static void ignore(struct h_datagram_receiver *receiver, void *arg)
{
	(void)receiver;
	(void)arg;
}

/* ---- a NIC that is down --------------------------------------------------- */

FIXTURE(down) {
	struct genl genl;
	int nic;		/* made by the test, or -1 */
	struct h_dev *dev;
	struct h_manager *m;
	struct h_datagram_receiver *receiver;
};

/* A device that nobody else is on. NULL, or what went wrong. */
static const char *own_device(FIXTURE_DATA(down) *self, char *name, size_t size)
{
	if (!strncmp(ht_device(), "shm:", 4)) {
		snprintf(name, size, "shm:asleep-%d", getpid());
		return NULL;
	}
	if (genl_open(&self->genl, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return "no netlink";
	self->nic = nic_new(&self->genl);
	if (self->nic < 0)
		return "no NIC";
	snprintf(name, size, "/dev/hamlyn%d", self->nic);
	return NULL;
}

FIXTURE_SETUP(down)
{
	char name[48];

	self->genl.fd = -1;
	self->nic = -1;
	if (strncmp(ht_device(), "shm:", 4) && geteuid())
		SKIP(return, "kernel: as root");
	ASSERT_NO(own_device(self, name, sizeof(name)));
	ASSERT_EQ(0, h_open(name, &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_datagram_receiver_create(self->m, NULL, &self->receiver));
}

FIXTURE_TEARDOWN(down)
{
	if (self->receiver)
		EXPECT_EQ(0, h_datagram_receiver_destroy(self->receiver));
	if (self->m)
		EXPECT_EQ(0, h_manager_destroy(self->m));
	if (self->dev)
		h_close(self->dev);
	if (self->nic >= 0)
		EXPECT_EQ(0, nic_call(&self->genl, HAMLYN_NL_CMD_NIC_DEL,
				      (uint32_t)self->nic));
	genl_close(&self->genl);
}

static int set_down(FIXTURE_DATA(down) *self)
{
	const struct hamlyn_nic_set set = { .flags = HAMLYN_NIC_SET_STATE,
					    .state = HAMLYN_NIC_DOWN };

	if (self->nic < 0)
		return h_nic_set(self->dev, &set);
	genl_begin(&self->genl, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(&self->genl, HAMLYN_A_NIC, (uint32_t)self->nic);
	genl_put_u32(&self->genl, HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN);
	return genl_call(&self->genl);
}

/* Something to be called back for, as soon as somebody wants to be. */
static const char *one_arrives(FIXTURE_DATA(down) *self)
{
	struct h_datagram_address address;
	struct h_datagram_stats stats;
	struct ht_poll poll;

	h_datagram_receiver_address(self->receiver, &address);
	if (h_datagram_send(self->m, &address, 0, "x", 1, NULL, HT_SEC) ||
	    h_manager_drain(self->m, ht_patience_ns()))
		return "not sent";
	for (ht_poll_begin(&poll); ht_poll_more(&poll);)
		if (h_manager_poll(self->m))
			return h_datagram_receiver_stats(self->receiver, &stats) ||
			       stats.malformed ? "malformed" : NULL;
	return "nothing arrives";
}

struct waiter {
	struct h_manager *m;
	int result;
	int64_t woken_ns;
};

static void *wait_for_ready(void *arg)
{
	struct waiter *w = arg;

	w->result = h_manager_wait(w->m, scaled(20 * HT_SEC));
	w->woken_ns = ht_now_ns();
	return NULL;
}

TEST_F(down, who_sleeps_hears_of_what_is_ready_though_no_nudge_gets_through)
{
	struct waiter w = { .m = self->m };
	pthread_t thread;
	int64_t asked;

	ASSERT_NO(one_arrives(self));
	ASSERT_EQ(0, set_down(self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_ready, &w));
	ht_sleep_ns(100 * HT_MS);
	asked = ht_now_ns();
	h_datagram_receiver_on_ready(self->receiver, ignore, NULL);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, w.result);
	EXPECT_LT(w.woken_ns - asked, scaled(10 * HT_SEC));
}

TEST_F(down, who_is_kicked_returns_though_no_word_gets_through)
{
	struct waiter w = { .m = self->m };
	pthread_t thread;
	int64_t asked;

	ASSERT_EQ(0, set_down(self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_ready, &w));
	ht_sleep_ns(100 * HT_MS);
	asked = ht_now_ns();
	h_manager_kick(self->m);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, w.result);
	EXPECT_LT(w.woken_ns - asked, scaled(10 * HT_SEC));
}

static void no_arrival(struct h_receiver *r, const struct hamlyn_nq_entry *entry)
{
	(void)r;
	(void)entry;
}

static bool never(const struct h_receiver *r)
{
	(void)r;
	return false;
}

/* Those of datagrams look for lost senders twice a second, and then another thread leads. */
static const struct h_receiver_class patient = {
	.name = "patient", .process_arrival = no_arrival, .pending = never,
};

struct listener {
	struct h_receiver receiver;
	bool done;
	int result;
};

static void *wait_for_arrival(void *arg)
{
	struct listener *l = arg;

	l->result = h_receiver_wait(&l->receiver, h_receiver_events(&l->receiver),
				    h_deadline(scaled(60 * HT_SEC)));
	__atomic_store_n(&l->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

static bool sleep_on_it(struct h_manager *m, uint32_t threads)
{
	struct h_manager_counters c;
	struct ht_poll poll;

	for (ht_poll_begin(&poll); ht_poll_more(&poll);)
		if (!h_manager_stats(m, &c) && c.sleepers == threads)
			return true;
	return false;
}

/* The one that looks around has to look for others, too. */
TEST_F(down, who_is_kicked_and_does_not_lead_returns_though_no_word_gets_through)
{
	const struct sigaction sa = { .sa_handler = nothing };
	const struct h_receiver_attr attr = { 0 };
	struct waiter w = { .m = self->m };
	pthread_t leader, thread;
	struct listener l = { .done = false };
	int64_t asked;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, h_receiver_init(&l.receiver, self->m, &patient, &attr));
	ASSERT_EQ(0, set_down(self));
	ASSERT_EQ(0, pthread_create(&leader, NULL, wait_for_arrival, &l));
	ASSERT_TRUE(sleep_on_it(self->m, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_ready, &w));
	ASSERT_TRUE(sleep_on_it(self->m, 2));
	asked = ht_now_ns();
	h_manager_kick(self->m);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, w.result);
	EXPECT_LT(w.woken_ns - asked, scaled(5 * HT_SEC));
	/* One that comes while it polls does not end its wait */
	while (!__atomic_load_n(&l.done, __ATOMIC_ACQUIRE)) {
		pthread_kill(leader, SIGUSR1);
		ht_sleep_ns(10 * HT_MS);
	}
	pthread_join(leader, NULL);
	EXPECT_EQ(-EINTR, l.result);
	EXPECT_EQ(0, h_receiver_exit(&l.receiver));
}

/* ---- signals --------------------------------------------------------------- */

FIXTURE(signals) {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_datagram_receiver *receiver;
};

FIXTURE_VARIANT(signals) {
	int flags;
};

FIXTURE_VARIANT_ADD(signals, told) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(signals, restarted) {
	.flags = SA_RESTART,
};

FIXTURE_SETUP(signals)
{
	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_datagram_receiver_create(self->m, NULL, &self->receiver));
}

FIXTURE_TEARDOWN(signals)
{
	EXPECT_EQ(0, h_datagram_receiver_destroy(self->receiver));
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

struct sleeper {
	struct h_manager *m;
	pthread_t thread;
	int result;
	uint32_t done;		/* atomic */
};

/* For ever: the kernel goes on with such a sleep. */
static void *sleep_for_ever(void *arg)
{
	struct sleeper *s = arg;

	s->result = h_manager_wait(s->m, H_FOREVER);
	__atomic_store_n(&s->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Until it has returned; one signal may come before it sleeps. */
static bool interrupt(struct sleeper *s, int64_t ns)
{
	int64_t end = ht_now_ns() + ns;

	while (!__atomic_load_n(&s->done, __ATOMIC_SEQ_CST) && ht_now_ns() < end) {
		pthread_kill(s->thread, SIGUSR1);
		ht_sleep_ns(10 * HT_MS);
	}
	return __atomic_load_n(&s->done, __ATOMIC_SEQ_CST);
}

/* The one that sleeps on the NQ and the other one, in this order or that. */
TEST_F(signals, who_leads_and_who_follows_return_alike)
{
	struct sigaction sa = { .sa_handler = nothing, .sa_flags = variant->flags };
	bool returns = h_dev_is_embedded(self->dev) || !variant->flags;
	int64_t patience = returns ? ht_patience_ns() : 300 * HT_MS;
	struct h_datagram_address address;
	struct sleeper s[SLEEPERS] = {};
	int i;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	for (i = 0; i < SLEEPERS; i++) {
		s[i].m = self->m;
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL, sleep_for_ever, &s[i]));
		ht_sleep_ns(50 * HT_MS);
	}
	/* First who does not lead: he would, if the other one had returned. */
	for (i = SLEEPERS - 1; i >= 0; i--) {
		EXPECT_EQ(returns, interrupt(&s[i], patience)) {
			TH_LOG("sleeper %d", i);
		}
	}
	/* The others are woken by something to do. */
	h_datagram_receiver_on_ready(self->receiver, ignore, NULL);
	h_datagram_receiver_address(self->receiver, &address);
	EXPECT_EQ(0, h_datagram_send(self->m, &address, 0, "x", 1, NULL, HT_SEC));
	for (i = 0; i < SLEEPERS; i++) {
		pthread_join(s[i].thread, NULL);
		EXPECT_EQ(returns ? -EINTR : 0, s[i].result);
	}
}

/* ---- a peer that takes nothing ------------------------------------------- */

#define STRETCH_NS	(2 * HT_SEC)
#define FEW		200	/* looks in that time, where it was one after the other */

struct debtor {
	struct h_receiver r;
	unsigned int tries;
	bool paid;
};

static void arrives(struct h_receiver *r, const struct hamlyn_nq_entry *entry)
{
	(void)r;
	(void)entry;
}

static bool nothing_pending(const struct h_receiver *r)
{
	(void)r;
	return false;
}

/* By one thread: nobody else polls. */
static void try_in_vain(struct h_receiver *r)
{
	struct debtor *d = (struct debtor *)r;

	d->tries++;
	h_receiver_owes(r, !d->paid);
}

static const struct h_receiver_class debtor_class = {
	.name = "debtor",
	.process_arrival = arrives,
	.pending = nothing_pending,
	.settle = try_in_vain,
};

FIXTURE(owing) {
	struct h_dev *dev;
	struct h_manager *m;
	struct debtor d;
};

FIXTURE_SETUP(owing)
{
	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_receiver_init(&self->d.r, self->m, &debtor_class, NULL));
}

FIXTURE_TEARDOWN(owing)
{
	EXPECT_EQ(0, h_receiver_exit(&self->d.r));
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

static void begin_to_owe(struct debtor *d)
{
	d->paid = false;
	h_receiver_lock(&d->r);
	h_receiver_owes(&d->r, true);
	h_receiver_unlock(&d->r);
}

/* An event loop; how often was it woken? */
static unsigned int loop(FIXTURE_DATA(owing) *self, int64_t ns)
{
	struct pollfd p = { .fd = h_manager_fd(self->m), .events = POLLIN };
	int64_t end = ht_now_ns() + ns, left;
	unsigned int n = 0;

	while ((left = end - ht_now_ns()) > 0) {
		n += poll(&p, 1, (int)(left / HT_MS) + 1) == 1;
		h_manager_dispatch(self->m);
	}
	return n;
}

/* However slow the machine is: that makes them fewer. */
TEST_F(owing, a_loop_is_woken_now_and_then_and_not_without_end)
{
	unsigned int woken;

	begin_to_owe(&self->d);
	woken = loop(self, STRETCH_NS);
	EXPECT_LE(2, woken);
	EXPECT_GE(FEW, woken);
	EXPECT_LE(2, self->d.tries);
	EXPECT_GE(FEW + 2, self->d.tries);
	self->d.paid = true;
	loop(self, STRETCH_NS / 10);
	EXPECT_EQ(0, self->d.r.owes);
	EXPECT_GE(1, loop(self, STRETCH_NS / 10));
}

TEST_F(owing, who_waits_looks_now_and_then)
{
	begin_to_owe(&self->d);
	EXPECT_EQ(-ETIMEDOUT, h_manager_wait(self->m, STRETCH_NS));
	EXPECT_LE(2, self->d.tries);
	EXPECT_GE(FEW, self->d.tries);
}

TEST_F(owing, once_something_was_sent_it_is_soon_again)
{
	struct h_slot_attr attr = { .length = 64 };
	struct h_ticket to;
	struct h_slot *slot;
	struct h_area *area;

	begin_to_owe(&self->d);
	EXPECT_EQ(-ETIMEDOUT, h_manager_wait(self->m, STRETCH_NS / 8));
	EXPECT_LT(H_AGAIN_NS, h__again_ns(self->m));
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &area));
	attr.area = area;
	ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slot));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 64, HAMLYN_META_FAST, &to));
	ASSERT_LE(0, h_send_msg(h_manager_terminus(self->m), &to, "x", 1, NULL, 0));
	EXPECT_EQ(H_AGAIN_NS, h__again_ns(self->m));
	EXPECT_EQ(0, h_slot_destroy(slot));
	EXPECT_EQ(0, h_area_remove(area));
}

TEST_HARNESS_MAIN
