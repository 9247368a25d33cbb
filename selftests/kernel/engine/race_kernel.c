// SPDX-License-Identifier: GPL-2.0-only
/*
 * Races of the kernel device: mappings, descriptors, waiters, areas of messages
 * under way, NICs, contexts that are listed, network namespaces, limits, weights,
 * parameters; each taken away or changed while it is used. As root. race.c has the
 * others, and the list of what is where; race.h the witness, whose messages come as
 * ever.
 */
#include "kselftest_harness.h"
#include "race.h"
#include "hostile.h"
#include "nics.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

#define NEED_ROOT	"kernel: as root"

/* ---- what a test may leave behind ----------------------------------------- */

struct nic_board {
	uint32_t nic;		/* + 1; 0: none */
	uint32_t host;
	uint32_t opened;
	uint32_t stop;
	uint32_t ready;
};

/* Nobody has it open for ever: he who asks often enough gets through. */
static int delete_nic(struct genl *g, uint32_t nic, unsigned int *busy)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	while ((ret = nic_call(g, HAMLYN_NL_CMD_NIC_DEL, nic)) == -EBUSY) {
		++*busy;
		if (!ht_poll_more(&poll))
			break;
	}
	return ret;
}

/* ---- limits, weights, parameters: as they are, and set ------------------- */

struct limits {
	uint64_t kernel, user_kernel, wired;
	uint32_t slots, termini;
};

static void put_limits(struct genl *g, const struct limits *l)
{
	struct nlattr *nest = genl_put(g, HAMLYN_A_LIMITS | NLA_F_NESTED, NULL,
				       0);

	genl_put_u64(g, HAMLYN_A_LIMITS_KERNEL_BYTES, l->kernel);
	genl_put_u64(g, HAMLYN_A_LIMITS_USER_KERNEL_BYTES, l->user_kernel);
	genl_put_u64(g, HAMLYN_A_LIMITS_USER_WIRED_BYTES, l->wired);
	genl_put_u32(g, HAMLYN_A_LIMITS_USER_SLOTS, l->slots);
	genl_put_u32(g, HAMLYN_A_LIMITS_USER_TERMINI, l->termini);
	genl_end(g, nest);
}

static int set_limits(struct genl *g, const struct limits *l)
{
	genl_begin(g, HAMLYN_NL_CMD_LIMIT_SET);
	genl_put_u32(g, HAMLYN_A_NIC, 0);
	put_limits(g, l);
	return genl_call(g);
}

struct state {
	struct limits limits;
	uint64_t figures[7];
	uint32_t idle_us, kick_window_us, guesses;
};

#define QUIET_NS	(2 * HT_SEC)

static const uint16_t counted[7] = {
	HAMLYN_A_CONTEXTS, HAMLYN_A_AREAS, HAMLYN_A_SLOTS,
	HAMLYN_A_NQS, HAMLYN_A_TERMINI, HAMLYN_A_KERNEL_BYTES,
	HAMLYN_A_WIRED_BYTES,
};

static int get_state(struct genl *g, struct state *s)
{
	int ret = nic_call(g, HAMLYN_NL_CMD_NIC_GET, 0);
	const struct nlattr *nest = genl_attr(g, HAMLYN_A_LIMITS);
	struct limits *l = &s->limits;
	unsigned int i;

	if (ret || !nest)
		return ret ? ret : -ENOMSG;
	memset(s, 0, sizeof(*s));	/* limits are compared as they lie there */
	l->kernel = genl_number(genl_nested(nest, HAMLYN_A_LIMITS_KERNEL_BYTES));
	l->user_kernel = genl_number(genl_nested(nest,
						 HAMLYN_A_LIMITS_USER_KERNEL_BYTES));
	l->wired = genl_number(genl_nested(nest,
					   HAMLYN_A_LIMITS_USER_WIRED_BYTES));
	l->slots = (uint32_t)genl_number(genl_nested(nest,
						     HAMLYN_A_LIMITS_USER_SLOTS));
	l->termini = (uint32_t)genl_number(genl_nested(nest,
						       HAMLYN_A_LIMITS_USER_TERMINI));
	for (i = 0; i < ARRAY_SIZE(counted); i++)
		s->figures[i] = genl_number(genl_attr(g, counted[i]));
	s->idle_us = (uint32_t)genl_number(genl_attr(g, HAMLYN_A_IDLE_US));
	s->kick_window_us =
		(uint32_t)genl_number(genl_attr(g, HAMLYN_A_KICK_WINDOW_US));
	s->guesses = (uint32_t)genl_number(genl_attr(g, HAMLYN_A_GUESSES));
	return 0;
}

/* What is not as it was: less would be given back twice. */
static const char *changed(const struct state *was, const struct state *is)
{
	static char text[120];
	unsigned int i;

	if (memcmp(&was->limits, &is->limits, sizeof(was->limits)))
		return "a limit";
	if (was->idle_us != is->idle_us || was->kick_window_us != is->kick_window_us ||
	    was->guesses != is->guesses)
		return "the engine's times, or the guesses";
	for (i = 0; i < ARRAY_SIZE(counted); i++) {
		if (is->figures[i] == was->figures[i])
			continue;
		snprintf(text, sizeof(text), "attribute %u: %llu, and %llu before", counted[i],
			 (unsigned long long)is->figures[i], (unsigned long long)was->figures[i]);
		return text;
	}
	return NULL;
}

static int set_engine(struct genl *g, uint32_t idle_us, uint32_t kick_window_us,
		      uint32_t guesses)
{
	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, 0);
	genl_put_u32(g, HAMLYN_A_IDLE_US, idle_us);
	genl_put_u32(g, HAMLYN_A_KICK_WINDOW_US, kick_window_us);
	genl_put_u32(g, HAMLYN_A_GUESSES, guesses);
	return genl_call(g);
}

struct changer {
	struct genl *g;
	struct nic_board *b;
	struct limits limits;
	uint64_t random;
	uint32_t changes;
	int strange;
};

/* When processes of a test before this one have died, and workers have put what they had. */
static int get_quiet_state(struct genl *g, struct state *s)
{
	struct state now;
	struct ht_poll poll;
	int64_t since = ht_now_ns();
	int ret = get_state(g, s);

	ht_poll_begin(&poll);
	while (!ret && ht_now_ns() - since < QUIET_NS && ht_poll_more(&poll)) {
		ret = get_state(g, &now);
		if (!ret && changed(s, &now)) {
			*s = now;
			since = ht_now_ns();
		}
	}
	return ret;
}

static int restore_settings(struct genl *g, const struct state *s)
{
	int engine = set_engine(g, s->idle_us, s->kick_window_us, s->guesses);
	int limits = set_limits(g, &s->limits);

	return engine ? engine : limits;
}

/*
 * What is not this process's own, and stays when a test stops early: not each harness
 * tears down a fixture then. So the next test, or the end of the program, does it.
 */
static struct {
	struct state settings;	/* what all of it was before a test changed it */
	bool kept;		/* they are to be restored */
	uint32_t nic;		/* + 1: it is to be deleted; 0: none */
} *behind;
static pid_t program;

static int give_back(void)
{
	unsigned int busy = 0;
	struct genl g;
	int ret;

	if (!behind->kept && !behind->nic)
		return 0;
	ret = genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION);
	if (ret)
		return ret;
	/* Unless it has gone with a namespace. */
	if (behind->nic)
		delete_nic(&g, behind->nic - 1, &busy);
	behind->nic = 0;
	if (behind->kept)
		ret = restore_settings(&g, &behind->settings);
	behind->kept = false;
	genl_close(&g);
	return ret;
}

static __attribute__((constructor)) void begin_program(void)
{
	program = getpid();
	behind = mmap(NULL, sizeof(*behind), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (behind == MAP_FAILED)
		abort();
}

static __attribute__((destructor)) void end_program(void)
{
	if (getpid() == program && give_back())
		fprintf(stderr, "# settings are not what they were\n");
}

/* ---- the fixture ---------------------------------------------------------- */

FIXTURE(race_kernel) {
	struct witness *witness;
	struct party rx;
	struct party tx;
	struct genl genl;
	uint64_t random;
	bool ready;
	/* What has to end if the test stops early; 0, NULL: there is none. */
	struct nic_board *board;
	pid_t children[2];
	struct changer changer;
	pthread_t changing;
	bool changes;
};

FIXTURE_SETUP(race_kernel)
{
	self->random = ht_seed();
	ASSERT_EQ(0, give_back());
	self->ready = !geteuid() && !genl_open(&self->genl, HAMLYN_FAMILY_NAME,
					       HAMLYN_FAMILY_VERSION);
	self->witness = witness_begin();
	ASSERT_NE(NULL, self->witness);
	ASSERT_EQ(0, party_open(&self->rx));
	ASSERT_EQ(0, party_open(&self->tx));
}

/* Once more is too much for none of them: tests do it, too. */
static void stop_changes(FIXTURE_DATA(race_kernel) *self)
{
	if (self->board)
		h__store_release(&self->board->stop, 1);
	if (self->changes)
		pthread_join(self->changing, NULL);
	self->changes = false;
}

static void end_others(FIXTURE_DATA(race_kernel) *self)
{
	unsigned int i;

	stop_changes(self);
	for (i = 0; i < ARRAY_SIZE(self->children); i++) {
		if (self->children[i] <= 0)
			continue;
		kill(self->children[i], SIGKILL);
		ht_reap(self->children[i]);
	}
}

FIXTURE_TEARDOWN(race_kernel)
{
	end_others(self);
	EXPECT_EQ(0, give_back());
	party_close(&self->rx);
	party_close(&self->tx);
	if (self->ready)
		genl_close(&self->genl);
	if (self->board)
		munmap(self->board, sizeof(*self->board));
	EXPECT_EQ(0, witness_end(self->witness));
}

/* Shared with children; it is unmapped behind the test. */
static struct nic_board *make_board(FIXTURE_DATA(race_kernel) *self)
{
	struct nic_board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	self->board = b == MAP_FAILED ? NULL : b;
	return self->board;
}

/* A child that is ended behind the test, if it has not ended before. */
static pid_t fork_child(FIXTURE_DATA(race_kernel) *self, unsigned int number)
{
	pid_t pid = ht_fork();

	self->children[number] = pid;
	return pid;
}

static int reap_child(FIXTURE_DATA(race_kernel) *self, unsigned int number)
{
	pid_t pid = self->children[number];

	self->children[number] = 0;
	return ht_reap(pid);
}

/* The number of a new NIC, which is deleted behind the test if it is still there. */
static int make_nic(FIXTURE_DATA(race_kernel) *self, uint32_t *host)
{
	struct genl *g = &self->genl;
	int nic = nic_new(g), ret;

	if (nic < 0)
		return nic;
	behind->nic = (uint32_t)nic + 1;
	ret = nic_call(g, HAMLYN_NL_CMD_NIC_GET, (uint32_t)nic);
	*host = (uint32_t)genl_number(genl_attr(g, HAMLYN_A_HOST));
	return ret ? ret : nic;
}

/* ---- mappings ----------------------------------------------------------- */

static void *map_again(int fd, void *old, uint64_t length, uint64_t offset,
		       int prot)
{
	void *p;

	munmap(old, length);
	p = mmap(NULL, length, prot, MAP_SHARED, fd, (off_t)offset);
	return p == MAP_FAILED ? NULL : p;
}

/* Each kind in turn: what the NIC reads and writes at this moment goes away. */
static bool remap(struct party *p, unsigned int kind)
{
	struct ht_raw_nq *nq = &p->nq;
	struct ht_raw_terminus *t = &p->terminus;
	char *map;

	switch (kind % 5) {
	case 0:
		p->data = map_again(p->fd, p->data, p->area.length,
				    p->area.mmap_offset, PROT_READ | PROT_WRITE);
		return p->data;
	case 1:
		map = map_again(p->fd, (void *)(uintptr_t)nq->ring,
				nq->arg.ring_length, nq->arg.ring_offset,
				PROT_READ);
		nq->ring = (void *)map;
		nq->entries = (void *)(map + nq->arg.entries_offset);
		return map;
	case 2:
		nq->control = map_again(p->fd, nq->control,
					nq->arg.control_length,
					nq->arg.control_offset,
					PROT_READ | PROT_WRITE);
		return nq->control;
	case 3:
		map = map_again(p->fd, t->wq, t->arg.wq_length,
				t->arg.wq_offset, PROT_READ | PROT_WRITE);
		t->wq = (void *)map;
		t->entries = (unsigned char *)map + t->arg.entries_offset;
		return map;
	default:
		map = map_again(p->fd, (void *)(uintptr_t)t->status,
				t->arg.status_length, t->arg.status_offset,
				PROT_READ);
		t->status = (void *)map;
		t->codes = (const int32_t *)(t->status + 1);
		return map;
	}
}

/* Eight bytes that tell the message, by direct I/O. */
static void put_message(struct party *from, const struct party *to,
			uint64_t value)
{
	struct hamlyn_trb *entry = ht_raw_entry(&from->terminus);
	struct hamlyn_trb trb = to_party(to);

	trb.offset = value % 64 * 8;
	memset(entry, 0, from->terminus.arg.entry_size);
	memcpy(entry, &trb, sizeof(trb));
	memcpy(entry + 1, &value, sizeof(value));
	from->terminus.producer++;
	ht_raw_publish(&from->terminus, from->terminus.producer);
}

TEST_F(race_kernel, every_mapping_goes_while_the_nic_uses_it)
{
	struct party *rx = &self->rx, *tx = &self->tx;
	struct hamlyn_nq_entry e;
	struct ht_poll poll;
	uint64_t sent = 0, value;
	unsigned int round, i, n;
	int status;

	for (round = 0; round < ht_rounds(1000); round++) {
		n = 1 + ht_random(&self->random) % 8;
		for (i = 0; i < n; i++)
			put_message(tx, rx, sent + i);
		/* The receiver's, or those that are being worked on. */
		ASSERT_TRUE(remap(round % 2 ? tx : rx, round / 2));
		ASSERT_EQ(0, ht_raw_done(&tx->terminus,
					 tx->terminus.producer - 1, &status));
		ASSERT_EQ(0, status);
		for (i = 0; i < n; i++, sent++) {
			ht_poll_begin(&poll);
			while (!ht_raw_recv(&rx->nq, &e))
				ASSERT_TRUE(ht_poll_more(&poll));
			memcpy(&value, rx->data + sent % 64 * 8, 8);
			ASSERT_EQ(sent, value) {
				TH_LOG("round %u", round);
			}
		}
		ASSERT_FALSE(ht_raw_recv(&rx->nq, &e));
	}
}

/* ---- doorbells ---------------------------------------------------------- */

struct ringer {
	int fd;
	uint32_t terminus;
	uint32_t stop;
	uint64_t rung;
	int strange;		/* an errno that no doorbell may have */
};

static void *ring_all_the_time(void *arg)
{
	struct ringer *r = arg;
	int ret;

	while (!h__load_acquire(&r->stop)) {
		ret = ioctl(r->fd, HAMLYN_IOC_KICK, (unsigned long)r->terminus);
		if (ret < 0)
			r->strange = errno;
		r->rung++;
	}
	return NULL;
}

/* Nobody asked for them. The engine looks how many there are, and serves meanwhile. */
TEST_F(race_kernel, doorbells_are_rung_while_the_engine_serves)
{
	struct party *rx = &self->rx, *tx = &self->tx;
	struct ringer r = { .fd = tx->fd, .terminus = tx->terminus.arg.terminus };
	struct hamlyn_nq_entry e;
	struct ht_poll poll;
	pthread_t thread;
	uint64_t sent, value;
	int status;

	ASSERT_EQ(0, pthread_create(&thread, NULL, ring_all_the_time, &r));
	for (sent = 0; sent < 3000; sent++) {
		put_message(tx, rx, sent);
		ht_poll_begin(&poll);
		while (!ht_raw_recv(&rx->nq, &e))
			if (!ht_poll_more(&poll))
				break;
		memcpy(&value, rx->data + sent % 64 * 8, 8);
		EXPECT_EQ(sent, value);
		if (sent != value)
			break;
		/* Now and then nothing is to be sent for a while. */
		if (!(sent % 100))
			ht_sleep_ns(HT_MS);
	}
	h__store_release(&r.stop, 1);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, r.strange);
	EXPECT_NE(0, r.rung);
	EXPECT_EQ(0, ht_raw_done(&tx->terminus, tx->terminus.producer - 1, &status));
	EXPECT_FALSE(ht_raw_recv(&rx->nq, &e));
}

/* ---- descriptors -------------------------------------------------------- */

struct caller {
	int fd;
	uint32_t nq;
	uint32_t stop;
	int strange;		/* an errno that none of these calls may have */
};

static void *call_all_the_time(void *arg)
{
	struct caller *c = arg;
	struct hamlyn_query query;
	int ret;

	while (!h__load_acquire(&c->stop)) {
		struct hamlyn_wait wait = {
			.size = sizeof(wait),
			.nq = c->nq,
			.deadline_ns = ht_now_ns() + HT_MS / 2,
		};

		ret = ht_raw(c->fd, HAMLYN_IOC_WAIT, &wait);
		if (ret && ret != -ETIMEDOUT && ret != -EBADF)
			c->strange = ret;
		ret = ht_raw_query(c->fd, &query);
		if (ret && ret != -EBADF)
			c->strange = ret;
	}
	return NULL;
}

TEST_F(race_kernel, descriptors_are_closed_under_calls)
{
	struct caller c = { .fd = 900 };
	struct hamlyn_nq_create nq;
	pthread_t threads[3];
	unsigned int i, j;
	int fd, other;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL,
					    call_all_the_time, &c));
	for (i = 0; i < ht_rounds(150); i++) {
		fd = ht_raw_open();
		ASSERT_GE(fd, 0);
		nq = (struct hamlyn_nq_create) { .size = sizeof(nq),
						 .entries = 4 };
		ASSERT_EQ(0, ht_raw(fd, HAMLYN_IOC_NQ_CREATE, &nq));
		h__write_once(&c.nq, nq.nq);
		/* Over the one of the round before, or into nothing. */
		ASSERT_EQ(c.fd, dup2(fd, c.fd));
		close(fd);
		for (j = 0; j < 4; j++) {
			ht_sleep_ns((int64_t)(ht_random(&self->random) % 200000));
			other = dup(c.fd);
			ASSERT_GE(other, 0);
			close(c.fd);
			ASSERT_EQ(c.fd, dup2(other, c.fd));
			close(other);
		}
		if (i % 2)
			close(c.fd);
	}
	h__store_release(&c.stop, 1);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, c.strange);
}

/* ---- waiters ------------------------------------------------------------ */

#define WAITERS	4

struct waiter {
	pthread_t thread;
	int fd;
	uint32_t nq;
	int result;
};

static void *wait_once(void *arg)
{
	struct waiter *w = arg;
	struct hamlyn_wait wait = {
		.size = sizeof(wait),
		.nq = w->nq,
		.deadline_ns = ht_now_ns() + ht_patience_ns(),
	};

	w->result = ht_raw(w->fd, HAMLYN_IOC_WAIT, &wait);
	return NULL;
}

TEST_F(race_kernel, all_that_wait_wake_when_their_nq_is_destroyed)
{
	struct party *rx = &self->rx;
	struct waiter waiters[WAITERS];
	struct hamlyn_nq_entry e;
	struct hamlyn_nq_create nq;
	int64_t begun = ht_now_ns();
	unsigned int i, j;

	for (i = 0; i < ht_rounds(150); i++) {
		nq = (struct hamlyn_nq_create) { .size = sizeof(nq),
						 .entries = 4 };
		ASSERT_EQ(0, ht_raw(rx->fd, HAMLYN_IOC_NQ_CREATE, &nq));
		for (j = 0; j < WAITERS; j++) {
			waiters[j] = (struct waiter) { .fd = rx->fd,
						       .nq = nq.nq };
			ASSERT_EQ(0, pthread_create(&waiters[j].thread, NULL,
						    wait_once, &waiters[j]));
		}
		/* The context's other NQ is written to, and armed, meanwhile. */
		put_message(&self->tx, rx, i);
		ht_sleep_ns((int64_t)(ht_random(&self->random) % HT_MS));
		ASSERT_EQ(0, ht_raw_id(rx->fd, HAMLYN_IOC_NQ_DESTROY, nq.nq));
		for (j = 0; j < WAITERS; j++) {
			pthread_join(waiters[j].thread, NULL);
			EXPECT_EQ(-ENOENT, waiters[j].result);
		}
		while (ht_raw_recv(&rx->nq, &e))
			;
	}
	/* Woken, not timed out one after the other. */
	EXPECT_LT(ht_now_ns() - begun, 2 * ht_patience_ns());
}

/* ---- areas of messages under way ---------------------------------------- */

#define LONG	(1 << 16)
#define POSTED	6

static void post_long(struct party *tx, const struct party *rx,
		      const struct hamlyn_slot_create *slot)
{
	struct hamlyn_trb *entry = ht_raw_entry(&tx->terminus);
	struct hamlyn_fragment f = { .tag = 1, .length = LONG };
	struct hamlyn_trb trb = to_party(rx);

	trb.slot = slot->slot;
	trb.key = slot->key;
	trb.length = LONG;
	trb.fragments = 1;
	trb.flags = HAMLYN_TRB_NO_NOTIFY;
	memset(entry, 0, tx->terminus.arg.entry_size);
	memcpy(entry, &trb, sizeof(trb));
	memcpy(entry + 1, &f, sizeof(f));
	tx->terminus.producer++;
}

/* In a thread, so that the binding goes before, between and behind them. */
struct publisher {
	struct ht_raw_terminus *t;
	uint32_t go;
	int ret;
};

static void *publish_all(void *arg)
{
	struct publisher *p = arg;

	while (!h__load_acquire(&p->go))
		;
	p->ret = ht_raw_publish(p->t, p->t->producer);
	return NULL;
}

/* Nothing but what was bound, and what was there before. */
static bool only(const unsigned char *p, size_t length, unsigned char a,
		 unsigned char b)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (p[i] != a && p[i] != b)
			return false;
	return true;
}

TEST_F(race_kernel, a_send_buffer_area_goes_while_it_is_read)
{
	struct party *rx = &self->rx, *tx = &self->tx;
	struct hamlyn_area_alloc from, to;
	struct hamlyn_slot_create slot;
	unsigned int round, i, refused = 0, passed = 0;
	unsigned char *into, *buffer;
	struct publisher p;
	pthread_t thread;
	int status;

	ASSERT_EQ(0, ht_raw_area_alloc(rx->fd, LONG, &to, (void **)&into));
	ASSERT_EQ(0, ht_raw_slot_create(rx->fd, to.area, LONG, HAMLYN_NONE,
					&slot));
	for (round = 0; round < ht_rounds(150); round++) {
		uint32_t first = tx->terminus.producer;

		memset(into, HT_GUARD, LONG);
		ASSERT_EQ(0, ht_raw_area_alloc(tx->fd, LONG, &from,
					       (void **)&buffer));
		memset(buffer, 'A', LONG);
		ASSERT_EQ(0, ht_raw_bind(tx->fd, tx->terminus.arg.terminus, 1,
					 from.area, 0, LONG));
		for (i = 0; i < POSTED; i++)
			post_long(tx, rx, &slot);
		EXPECT_EQ(-EBUSY, ht_raw_id(tx->fd, HAMLYN_IOC_AREA_REMOVE,
					    from.area));
		p = (struct publisher) { .t = &tx->terminus };
		ASSERT_EQ(0, pthread_create(&thread, NULL, publish_all, &p));
		h__store_release(&p.go, 1);
		if (round % 3 == 0)
			ht_sleep_ns((int64_t)(ht_random(&self->random) %
					      300000));
		ASSERT_EQ(0, ht_raw_bind(tx->fd, tx->terminus.arg.terminus, 1,
					 HAMLYN_NONE, 0, 0));
		/* Nobody reads it any more. */
		memset(buffer, 0xdd, LONG);
		ASSERT_EQ(0, ht_raw_id(tx->fd, HAMLYN_IOC_AREA_REMOVE,
				       from.area));
		munmap(buffer, LONG);
		pthread_join(thread, NULL);
		ASSERT_EQ(0, p.ret);
		for (i = 0; i < POSTED; i++) {
			ASSERT_EQ(0, ht_raw_done(&tx->terminus, first + i,
						 &status));
			passed += !status;
			refused += status == -ENXIO;
			ASSERT_TRUE(!status || status == -ENXIO) {
				TH_LOG("status %d", status);
			}
		}
		ASSERT_TRUE(only(into, LONG, 'A', HT_GUARD)) {
			TH_LOG("round %u: read after it was unbound", round);
		}
	}
	TH_LOG("%u passed, %u refused", passed, refused);
	/* On one processor the doorbell may be done before anybody else runs. */
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		EXPECT_LT(0, passed);
		EXPECT_LT(0, refused);
	}
	munmap(into, LONG);
}

/* ---- NICs --------------------------------------------------------------- */

/* A user of a NIC that may not be there: it opens, makes things, and closes. */
static int use_nics(struct nic_board *b)
{
	struct hamlyn_area_alloc area;
	struct hamlyn_slot_create slot;
	struct ht_raw_terminus t;
	uint32_t nic;
	int fd;

	while (!h__load_acquire(&b->stop)) {
		nic = h__load_acquire(&b->nic);
		if (!nic) {
			sched_yield();
			continue;
		}
		fd = nic_open(nic - 1);
		if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV) {
			sched_yield();
			continue;
		}
		if (fd < 0)
			return 10 - fd;
		if (ht_raw_area_alloc(fd, PAGE, &area, NULL) ||
		    ht_raw_slot_create(fd, area.area, PAGE, HAMLYN_NONE,
				       &slot) ||
		    ht_raw_terminus_create(fd, 4, 256, &t))
			return 1;
		ht_raw_terminus_unmap(&t);
		close(fd);
		__atomic_add_fetch(&b->opened, 1, __ATOMIC_RELEASE);
		ht_sleep_ns(100000);
	}
	return 0;
}

TEST_F(race_kernel, nics_are_deleted_while_they_are_opened_and_sent_to)
{
	struct nic_board *b = make_board(self);
	struct ht_raw_terminus *t = &self->tx.terminus;
	unsigned int round, i, busy = 0, unknown = 0;
	uint32_t opened;
	struct ht_poll poll;
	pid_t pid;
	int nic, status;

	if (!self->ready)
		SKIP(return, NEED_ROOT);
	ASSERT_NE(NULL, b);
	pid = fork_child(self, 0);
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(use_nics(b));
	for (round = 0; round < 40; round++) {
		struct hamlyn_trb trb = { .slot = 1, .key = 1, .length = 8 };

		nic = make_nic(self, &b->host);
		ASSERT_GE(nic, 0);
		trb.host = b->host;
		opened = h__load_acquire(&b->opened);
		h__store_release(&b->nic, (uint32_t)nic + 1);
		ht_poll_begin(&poll);
		while (round % 2 && h__load_acquire(&b->opened) == opened)
			ASSERT_TRUE(ht_poll_more(&poll));
		for (i = 0; i < 20; i++) {
			if (i == 10) {
				ASSERT_EQ(0, delete_nic(&self->genl,
							(uint32_t)nic, &busy));
			}
			status = post(t, &trb);
			ASSERT_TRUE(status == -EHOSTUNREACH ||
				    (i < 10 && !status)) {
				TH_LOG("status %d, message %u", status, i);
			}
			unknown += status == -EHOSTUNREACH;
		}
		EXPECT_EQ(-ENODEV, nic_call(&self->genl, HAMLYN_NL_CMD_NIC_GET,
					    (uint32_t)nic));
		behind->nic = 0;
		h__store_release(&b->nic, 0);
	}
	h__store_release(&b->stop, 1);
	EXPECT_EQ(0, reap_child(self, 0));
	EXPECT_EQ(40 * 10, unknown);
	TH_LOG("%u times busy, opened %u times", busy, b->opened);
}

/* ---- lists ---------------------------------------------------------------- */

/* Of NIC 0: on others somebody else may come and go. */
static int list_all(struct genl *g, uint8_t command)
{
	genl_begin(g, command);
	genl_put_u32(g, HAMLYN_A_NIC, 0);
	return genl_count(g);
}

/*
 * A user who comes, has one of each, and goes. Rekeying keeps the context locked
 * for a while: who waits for it then is there when it is closed.
 */
static int come_and_go(struct nic_board *b)
{
	struct party p, mapped;
	unsigned int i;

	while (!h__load_acquire(&b->stop)) {
		if (party_open(&p))
			return 10;
		mapped = p;
		mapped.fd = -1;
		party_close(&mapped);
		for (i = 0; i < 4; i++)
			if (rekey(&p, 0))
				return 11;
		close(p.fd);
		__atomic_add_fetch(&b->opened, 1, __ATOMIC_RELEASE);
	}
	return 0;
}

/* Who lists a context keeps it from being freed, and lists none of what is. */
TEST_F(race_kernel, contexts_are_listed_while_they_come_and_go)
{
	static const uint8_t lists[] = {
		HAMLYN_NL_CMD_CONTEXT_GET, HAMLYN_NL_CMD_AREA_GET,
		HAMLYN_NL_CMD_SLOT_GET, HAMLYN_NL_CMD_NQ_GET,
		HAMLYN_NL_CMD_TERMINUS_GET, HAMLYN_NL_CMD_AUDIT_GET,
	};
	struct nic_board *b = make_board(self);
	int there[ARRAY_SIZE(lists)], n;
	unsigned int i, round, seen = 0;
	struct ht_poll poll;
	pid_t pid;

	if (!self->ready)
		SKIP(return, NEED_ROOT);
	ASSERT_NE(NULL, b);
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		there[i] = list_all(&self->genl, lists[i]);
		ASSERT_GE(there[i], 0);
	}
	for (i = 0; i < ARRAY_SIZE(self->children); i++) {
		unsigned int uid = somebody(8 + i);

		pid = fork_child(self, i);
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(become(uid) ? 99 : come_and_go(b));
	}
	ht_poll_begin(&poll);
	for (round = 0; round < 300 || !seen ||
	     h__load_acquire(&b->opened) < 300; round++) {
		i = round % ARRAY_SIZE(lists);
		n = list_all(&self->genl, lists[i]);
		ASSERT_GE(n, 0);
		seen += n > there[i];
		ASSERT_TRUE(ht_poll_more(&poll));
	}
	h__store_release(&b->stop, 1);
	for (i = 0; i < ARRAY_SIZE(self->children); i++)
		EXPECT_EQ(0, reap_child(self, i));
	for (i = 0; i < ARRAY_SIZE(lists) - 1; i++)
		EXPECT_EQ(there[i], list_all(&self->genl, lists[i]));
	TH_LOG("%u lists, %u with guests, who came %u times", round, seen,
	       b->opened);
}

/* ---- network namespaces ------------------------------------------------- */

/* In a namespace of its own: traffic on the NIC that was moved there. */
static int live_inside(struct nic_board *b, int socket)
{
	struct party p, q;
	struct ht_poll poll;
	uint64_t n;

	if (unshare(CLONE_NEWNET))
		return 1;
	h__store_release(&b->ready, 1);
	ht_poll_begin(&poll);
	while (!h__load_acquire(&b->nic))
		if (!ht_poll_more(&poll))
			return 2;
	nic_use(b->nic - 1);
	if (party_open(&p) || party_open(&q))
		return 3;
	if (socket >= 0 && pass_fd(socket, p.fd))
		return 4;
	for (n = 0;; n++) {
		struct hamlyn_nq_entry e;
		struct hamlyn_trb trb = to_party(&p);

		if (post(&q.terminus, &trb))
			return 5;
		ht_raw_recv(&p.nq, &e);
		__atomic_add_fetch(&b->opened, 1, __ATOMIC_RELEASE);
	}
}

/* The namespace goes some time after its last process. */
static int nic_comes(struct genl *g, uint32_t nic)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	while ((ret = nic_call(g, HAMLYN_NL_CMD_NIC_GET, nic)))
		if (!ht_poll_more(&poll))
			break;
	return ret;
}

/*
 * It goes with its namespace. But a process that is killed gives up the namespace
 * before its files: then, if the one is quick and the other is not, the NIC is
 * open when its namespace goes, and is here afterwards, open by nobody.
 */
static const char *nic_goes(struct genl *g, uint32_t nic, unsigned int *left)
{
	unsigned int busy = 0;
	struct ht_poll poll;
	int fd;

	ht_poll_begin(&poll);
	while ((fd = nic_open(nic)) != -ENOENT) {
		if (fd >= 0)
			close(fd);
		else if (fd != -EPERM && fd != -ENODEV && fd != -ENXIO)
			return "a strange errno of open()";
		if (!nic_call(g, HAMLYN_NL_CMD_NIC_GET, nic)) {
			++*left;
			return delete_nic(g, nic, &busy) ?
			       "it is left, and cannot be deleted" : NULL;
		}
		if (!ht_poll_more(&poll))
			return "it is in no namespace, but there";
	}
	return NULL;
}

TEST_F(race_kernel, a_network_namespace_ends_in_full_traffic)
{
	struct nic_board *b = make_board(self);
	struct genl *g = &self->genl;
	struct hamlyn_query query;
	unsigned int round, busy = 0, left = 0;
	struct ht_poll poll;
	int nic, fd, pair[2];
	pid_t pid;

	if (!self->ready)
		SKIP(return, NEED_ROOT);
	ASSERT_NE(NULL, b);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (round = 0; round < 12; round++) {
		bool outside = round % 2;

		memset(b, 0, sizeof(*b));
		nic = make_nic(self, &b->host);
		ASSERT_GE(nic, 0);
		pid = fork_child(self, 0);
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(live_inside(b, outside ? pair[1] : -1));
		ht_poll_begin(&poll);
		while (!h__load_acquire(&b->ready))
			ASSERT_TRUE(ht_poll_more(&poll));
		ASSERT_EQ(0, nic_move(g, (uint32_t)nic, pid));
		EXPECT_EQ(-ENODEV, nic_call(g, HAMLYN_NL_CMD_NIC_GET,
					    (uint32_t)nic));
		h__store_release(&b->nic, (uint32_t)nic + 1);
		ht_poll_begin(&poll);
		while (h__load_acquire(&b->opened) < 10)
			ASSERT_TRUE(ht_poll_more(&poll));
		fd = outside ? get_fd(pair[0]) : -1;
		ht_sleep_ns((int64_t)(ht_random(&self->random) % (3 * HT_MS)));
		kill(pid, SIGKILL);
		ASSERT_EQ(128 + SIGKILL, reap_child(self, 0));
		if (!outside) {
			ASSERT_NO(nic_goes(g, (uint32_t)nic, &left));
			behind->nic = 0;
			continue;
		}
		ASSERT_GE(fd, 0);
		EXPECT_EQ(0, nic_comes(g, (uint32_t)nic));
		EXPECT_EQ(0, ht_raw_query(fd, &query));
		EXPECT_EQ(-EBUSY, nic_call(g, HAMLYN_NL_CMD_NIC_DEL,
					   (uint32_t)nic));
		close(fd);
		EXPECT_EQ(0, delete_nic(g, (uint32_t)nic, &busy));
		behind->nic = 0;
	}
	TH_LOG("%u of 6 NICs outlived their namespace", left);
	close(pair[0]);
	close(pair[1]);
}

/* ---- limits, weights, parameters ---------------------------------------- */

/* Whoever has a terminus 0: those of the witness and of the test, too. */
static int set_terminus(struct genl *g, uint32_t context, uint32_t priority,
			uint32_t weight)
{
	genl_begin(g, HAMLYN_NL_CMD_TERMINUS_SET);
	genl_put_u32(g, HAMLYN_A_NIC, 0);
	genl_put_u32(g, HAMLYN_A_CONTEXT, context);
	genl_put_u32(g, HAMLYN_A_ID, 0);
	genl_put_u32(g, HAMLYN_A_PRIORITY, priority);
	genl_put_u32(g, HAMLYN_A_WEIGHT, weight);
	return genl_call(g);
}

/* An ordinary user makes and ends things; he is refused now and then. */
static int build_all_the_time(void *arg)
{
	struct nic_board *b = arg;
	unsigned int refused = 0, made = 0;
	struct party p;
	int ret;

	while (!h__load_acquire(&b->stop)) {
		ret = party_open(&p);
		party_close(&p);
		if (ret && ret != -EDQUOT)
			return 10;
		refused += ret == -EDQUOT;
		made += !ret;
		__atomic_add_fetch(&b->opened, 1, __ATOMIC_RELEASE);
	}
	return refused && made ? 0 : 11;
}

static int change_something(struct changer *c)
{
	struct limits l = c->limits;
	uint32_t context;
	int ret = 0;

	switch (c->changes % 3) {
	case 0:
		l.user_kernel = ht_random(&c->random) % 2 ? PAGE : l.user_kernel;
		l.slots = ht_random(&c->random) % 2;
		l.termini = ht_random(&c->random) % 2;
		return set_limits(c->g, &l);
	case 1:
		return set_engine(c->g, ht_random(&c->random) % 200,
				  ht_random(&c->random) % 2000,
				  ht_random(&c->random) % 2 ? 0 : 1000000);
	default:
		for (context = 0; context < 16 && (!ret || ret == -ENOENT);
		     context++)
			ret = set_terminus(c->g, context,
					   ht_random(&c->random) %
					   HAMLYN_PRIORITIES,
					   1 + ht_random(&c->random) %
					   HAMLYN_MAX_WEIGHT);
		return ret == -ENOENT ? 0 : ret;
	}
}

static void *change_all_the_time(void *arg)
{
	struct changer *c = arg;
	int ret;

	while (!h__load_acquire(&c->b->stop)) {
		ret = change_something(c);
		if (ret)
			c->strange = ret;
		h__store_release(&c->changes, c->changes + 1);
		ht_sleep_ns(100000);
	}
	return NULL;
}

TEST_F(race_kernel, limits_weights_and_parameters_change_in_traffic)
{
	struct nic_board *b = make_board(self);
	struct party *rx = &self->rx, *tx = &self->tx;
	struct changer *c = &self->changer;
	unsigned int uid = somebody(7);
	struct hamlyn_nq_entry e;
	struct state after;
	struct ht_poll poll;
	uint64_t n, value;
	pid_t pid;

	if (!self->ready)
		SKIP(return, NEED_ROOT);
	ASSERT_NE(NULL, b);
	ASSERT_EQ(0, get_quiet_state(&self->genl, &behind->settings));
	behind->kept = true;
	*c = (struct changer) { .g = &self->genl, .b = b, .random = 1,
				.limits = behind->settings.limits };
	pid = fork_child(self, 0);
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(become(uid) ? 99 : build_all_the_time(b));
	ASSERT_EQ(0, pthread_create(&self->changing, NULL, change_all_the_time,
				    c));
	self->changes = true;
	ht_poll_begin(&poll);
	for (n = 0; n < 2000 || h__load_acquire(&c->changes) < 400 ||
	     h__load_acquire(&b->opened) < 200; n++) {
		put_message(tx, rx, n);
		while (!ht_raw_recv(&rx->nq, &e)) {
			/* A doorbell may be due again. */
			ht_raw_publish(&tx->terminus, tx->terminus.producer);
			ASSERT_TRUE(ht_poll_more(&poll));
		}
		ht_poll_begin(&poll);
		memcpy(&value, rx->data + n % 64 * 8, 8);
		ASSERT_EQ(n, value);
	}
	stop_changes(self);
	EXPECT_EQ(0, c->strange);
	EXPECT_EQ(0, reap_child(self, 0));
	EXPECT_EQ(0, give_back());
	/* A worker that was about to wake a sleeper may still have what he had. */
	ht_poll_begin(&poll);
	do {
		ASSERT_EQ(0, get_state(&self->genl, &after));
	} while (changed(&behind->settings, &after) && ht_poll_more(&poll));
	EXPECT_NO(changed(&behind->settings, &after));
}

TEST_HARNESS_MAIN
