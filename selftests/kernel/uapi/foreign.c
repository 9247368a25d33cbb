// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ids are private to a context, whoever has it; it lives as long as its last
 * descriptor. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <fcntl.h>
#include <pthread.h>

#define MORE	8	/* objects that the other context has more than ours */

/* One context with objects of every kind. */
struct context {
	int fd;
	struct hamlyn_area_alloc area;
	struct hamlyn_slot_create slot;
	struct ht_raw_nq nq;
	struct ht_raw_terminus terminus;
	unsigned char *data;
};

FIXTURE(foreign) {
	struct context mine;
	struct context theirs;	/* what it was given last is not an id of ours */
	struct hamlyn_query query;
};

/* Unmap what would keep the context alive beside its descriptors. */
static void forget_mappings(struct context *c)
{
	munmap(c->data, PAGE);
	ht_raw_nq_unmap(&c->nq);
	ht_raw_terminus_unmap(&c->terminus);
}

static int fill(struct context *c, unsigned int many)
{
	int ret = 0;

	c->fd = ht_raw_open();
	if (c->fd < 0)
		return c->fd;
	while (many-- && !ret) {
		if (c->data)
			forget_mappings(c);
		ret = ht_raw_area_alloc(c->fd, PAGE, &c->area,
					(void **)&c->data);
		if (!ret)
			ret = ht_raw_nq_create(c->fd, 64, &c->nq);
		if (!ret)
			ret = ht_raw_slot_create(c->fd, c->area.area, PAGE,
						 c->nq.arg.nq, &c->slot);
		if (!ret)
			ret = ht_raw_terminus_create(c->fd, 8, 256,
						     &c->terminus);
		if (!ret)
			ret = ht_raw_bind(c->fd, c->terminus.arg.terminus, 0,
					  c->area.area, 0, PAGE);
	}
	return ret;
}

FIXTURE_SETUP(foreign)
{
	ASSERT_EQ(0, fill(&self->mine, 1));
	ASSERT_EQ(0, fill(&self->theirs, MORE));
	ASSERT_EQ(0, ht_raw_query(self->mine.fd, &self->query));
}

FIXTURE_TEARDOWN(foreign)
{
	close(self->mine.fd);
	close(self->theirs.fd);
}

/* One message from @from to the slot of @to. */
static const char *does_not_reach(FIXTURE_DATA(foreign) *self,
				  struct context *from, struct context *to)
{
	struct hamlyn_trb *trb = ht_raw_entry(&from->terminus);
	uint32_t index = from->terminus.producer;
	struct hamlyn_nq_entry entry;
	int status;

	memset(trb, 0, 256);
	trb->host = self->query.host;
	trb->slot = to->slot.slot;
	trb->key = to->slot.key;
	trb->length = 8;
	memcpy(trb + 1, "greeting", 8);
	memset(to->data, 0, 8);
	if (ht_raw_post(&from->terminus) < 0 ||
	    ht_raw_done(&from->terminus, index, &status))
		return "not sent";
	if (status)
		return "refused";
	if (!ht_raw_recv(&to->nq, &entry))
		return "not notified";
	return memcmp(to->data, "greeting", 8) ? "not there" : NULL;
}

static int wait_on(int fd, uint32_t nq)
{
	struct hamlyn_wait wait = { .size = sizeof(wait), .nq = nq };

	return ht_raw(fd, HAMLYN_IOC_WAIT, &wait);
}

static int stats_of(int fd, uint32_t kind, uint32_t id)
{
	struct hamlyn_stats stats = { .size = sizeof(stats), .kind = kind,
				      .id = id };

	return ht_raw(fd, HAMLYN_IOC_STATS, &stats);
}

static int new_key(int fd, uint32_t slot)
{
	struct hamlyn_slot_rekey arg = { .size = sizeof(arg), .slot = slot };

	return ht_raw(fd, HAMLYN_IOC_SLOT_REKEY, &arg);
}

static int slot_on(int fd, uint32_t area, uint32_t meta_area, uint32_t nq)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg),
		.area = area,
		.length = 2048,
		.meta_area = meta_area,
		.meta_count = meta_area == HAMLYN_NONE ? 0 : 1,
		.meta_base = meta_area == HAMLYN_NONE ? 0 : 2048,
		.nq = nq,
	};
	int ret = ht_raw(fd, HAMLYN_IOC_SLOT_CREATE, &arg);

	if (!ret)
		ht_raw_id(fd, HAMLYN_IOC_SLOT_DESTROY, arg.slot);
	return ret;
}

/* Calls that came with WATCH and tickets. */
static const char *known_more(int fd, uint32_t nq, uint32_t slot,
			      uint32_t terminus)
{
	struct hamlyn_watch watch = { .size = sizeof(watch), .nq = nq };
	struct hamlyn_ticket_create create = { .size = sizeof(create),
					       .slot = slot };
	struct hamlyn_ticket_drop drop = { .size = sizeof(drop),
					   .terminus = terminus };

	if (ht_raw(fd, HAMLYN_IOC_WATCH, &watch) != -ENOENT)
		return "WATCH, NQ";
	/* Nobody here watches anything. */
	if (ht_raw_id(fd, HAMLYN_IOC_UNWATCH, nq) != -ENOENT)
		return "UNWATCH";
	if (ht_raw(fd, HAMLYN_IOC_TICKET_CREATE, &create) != -ENOENT)
		return "TICKET_CREATE";
	if (ht_raw(fd, HAMLYN_IOC_TICKET_DROP, &drop) != -ENOENT)
		return "TICKET_DROP";
	return NULL;
}

/* Every call with every id: which one is not ENOENT? */
static const char *known(int fd, const struct context *own, uint32_t area,
			 uint32_t nq, uint32_t slot, uint32_t terminus)
{
	uint32_t mine = own->area.area;

	if (ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, area) != -ENOENT)
		return "AREA_REMOVE";
	if (ht_raw_id(fd, HAMLYN_IOC_NQ_DESTROY, nq) != -ENOENT)
		return "NQ_DESTROY";
	if (ht_raw_id(fd, HAMLYN_IOC_SLOT_DESTROY, slot) != -ENOENT)
		return "SLOT_DESTROY";
	if (ht_raw_id(fd, HAMLYN_IOC_TERMINUS_DESTROY, terminus) != -ENOENT)
		return "TERMINUS_DESTROY";
	if (new_key(fd, slot) != -ENOENT)
		return "SLOT_REKEY";
	if (slot_on(fd, area, HAMLYN_NONE, HAMLYN_NONE) != -ENOENT)
		return "SLOT_CREATE, area";
	if (slot_on(fd, mine, area, HAMLYN_NONE) != -ENOENT)
		return "SLOT_CREATE, metadata area";
	if (slot_on(fd, mine, HAMLYN_NONE, nq) != -ENOENT)
		return "SLOT_CREATE, NQ";
	if (ht_raw_bind(fd, own->terminus.arg.terminus, 1, area, 0, 1) !=
	    -ENOENT)
		return "TERMINUS_BIND, area";
	if (ht_raw_bind(fd, terminus, 1, mine, 0, 1) != -ENOENT)
		return "TERMINUS_BIND, terminus";
	if (ht_raw_bind(fd, terminus, 1, HAMLYN_NONE, 0, 0) != -ENOENT)
		return "TERMINUS_BIND, unbinding";
	if (ht_raw(fd, HAMLYN_IOC_KICK, (void *)(uintptr_t)terminus) !=
	    -ENOENT)
		return "KICK";
	if (wait_on(fd, nq) != -ENOENT)
		return "WAIT";
	if (stats_of(fd, HAMLYN_STATS_SLOT, slot) != -ENOENT)
		return "STATS of a slot";
	if (stats_of(fd, HAMLYN_STATS_TERMINUS, terminus) != -ENOENT)
		return "STATS of a terminus";
	return known_more(fd, nq, slot, terminus);
}

TEST_F(foreign, ids_of_another_context_are_ENOENT)
{
	struct context *o = &self->theirs;

	EXPECT_NO(known(self->mine.fd, &self->mine, o->area.area,
			o->nq.arg.nq, o->slot.slot, o->terminus.arg.terminus));
	/* And nothing happened to what they name. */
	EXPECT_NO(does_not_reach(self, o, o));
	EXPECT_NO(does_not_reach(self, &self->mine, o));
	EXPECT_NO(does_not_reach(self, o, &self->mine));
}

TEST_F(foreign, ids_that_were_never_given_are_ENOENT)
{
	static const uint32_t ids[] = { 1000, 0x7fffffff, 0x80000000,
					0xfffffffe };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		EXPECT_NO(known(self->mine.fd, &self->mine, ids[i], ids[i],
				ids[i], ids[i])) {
			TH_LOG("id %x", ids[i]);
		}
	}
	/* "None" names nothing to be destroyed. */
	EXPECT_EQ(-ENOENT, ht_raw_id(self->mine.fd, HAMLYN_IOC_AREA_REMOVE,
				     HAMLYN_NONE));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->mine.fd, HAMLYN_IOC_NQ_DESTROY,
				     HAMLYN_NONE));
	EXPECT_EQ(-ENOENT, slot_on(self->mine.fd, HAMLYN_NONE, HAMLYN_NONE,
				   HAMLYN_NONE));
	EXPECT_EQ(-ENOENT, wait_on(self->mine.fd, HAMLYN_NONE));
}

TEST_F(foreign, ids_of_another_user_are_ENOENT)
{
	struct context *o = &self->theirs;
	const char *complaint;
	pid_t pid = ht_fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		if (setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534))
			_exit(2);
		complaint = known(self->mine.fd, &self->mine, o->area.area,
				  o->nq.arg.nq, o->slot.slot,
				  o->terminus.arg.terminus);
		_exit(ht_complain(complaint) != NULL);
	}
	EXPECT_EQ(0, ht_reap(pid));
}

TEST_F(foreign, ids_are_ENOENT_after_their_object_is_destroyed)
{
	struct context *c = &self->mine;
	struct context spare = { 0 };

	/* Something that is left, to call with. */
	ASSERT_EQ(0, ht_raw_area_alloc(c->fd, PAGE, &spare.area, NULL));
	ASSERT_EQ(0, ht_raw_terminus_create(c->fd, 8, 256, &spare.terminus));
	EXPECT_EQ(-EBUSY, ht_raw_id(c->fd, HAMLYN_IOC_AREA_REMOVE,
				    c->area.area));
	EXPECT_EQ(-EBUSY, ht_raw_id(c->fd, HAMLYN_IOC_NQ_DESTROY,
				    c->nq.arg.nq));
	EXPECT_EQ(0, ht_raw_id(c->fd, HAMLYN_IOC_SLOT_DESTROY, c->slot.slot));
	EXPECT_EQ(-EBUSY, ht_raw_id(c->fd, HAMLYN_IOC_AREA_REMOVE,
				    c->area.area));
	EXPECT_EQ(0, ht_raw_id(c->fd, HAMLYN_IOC_NQ_DESTROY, c->nq.arg.nq));
	EXPECT_EQ(0, ht_raw_id(c->fd, HAMLYN_IOC_TERMINUS_DESTROY,
			       c->terminus.arg.terminus));
	EXPECT_EQ(0, ht_raw_id(c->fd, HAMLYN_IOC_AREA_REMOVE, c->area.area));
	EXPECT_NO(known(c->fd, &spare, c->area.area, c->nq.arg.nq,
			c->slot.slot, c->terminus.arg.terminus));
}

TEST_F(foreign, an_id_of_one_kind_is_none_of_another)
{
	struct hamlyn_area_alloc area;
	int i;

	/* Areas enough that their ids go beyond those of the other kinds. */
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, ht_raw_area_alloc(self->mine.fd, 1, &area, NULL));
	}
	EXPECT_EQ(-ENOENT, ht_raw_id(self->mine.fd, HAMLYN_IOC_NQ_DESTROY,
				     area.area));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->mine.fd,
				     HAMLYN_IOC_TERMINUS_DESTROY, area.area));
	EXPECT_EQ(-ENOENT, wait_on(self->mine.fd, area.area));
}

TEST_F(foreign, offsets_of_another_context_cannot_be_mapped)
{
	struct context *o = &self->theirs;
	const struct {
		uint64_t offset;
		uint64_t length;
	} regions[] = {
		{ o->area.mmap_offset, o->area.length },
		{ o->nq.arg.ring_offset, o->nq.arg.ring_length },
		{ o->nq.arg.control_offset, o->nq.arg.control_length },
		{ o->terminus.arg.wq_offset, o->terminus.arg.wq_length },
		{ o->terminus.arg.status_offset,
		  o->terminus.arg.status_length },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(regions); i++) {
		EXPECT_EQ(MAP_FAILED, mmap(NULL, regions[i].length, PROT_READ,
					   MAP_SHARED, self->mine.fd,
					   (off_t)regions[i].offset)) {
			TH_LOG("region %u", i);
		}
	}
}

/* ---- lifetime ----------------------------------------------------------- */

/* Does a message to the slot of @to reach a slot at all? */
static bool alive(FIXTURE_DATA(foreign) *self, const struct context *to)
{
	struct ht_raw_terminus *t = &self->mine.terminus;
	struct hamlyn_stats before = { .size = sizeof(before) };
	struct hamlyn_stats after = { .size = sizeof(after) };
	struct hamlyn_trb *trb = ht_raw_entry(t);
	uint32_t index = t->producer;
	int status;

	ht_raw(self->mine.fd, HAMLYN_IOC_STATS, &before);
	memset(trb, 0, 256);
	trb->host = self->query.host;
	trb->slot = to->slot.slot;
	trb->key = to->slot.key;
	ht_raw_post(t);
	ht_raw_done(t, index, &status);
	ht_raw(self->mine.fd, HAMLYN_IOC_STATS, &after);
	return before.rejects[HAMLYN_REJECT_SLOT] ==
	       after.rejects[HAMLYN_REJECT_SLOT];
}

/* The last reference may go a moment after the call that drops it. */
static bool dies(FIXTURE_DATA(foreign) *self, const struct context *c)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (alive(self, c))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* The heir: lives on one descriptor, received through a socket. */
static int inherit(int socket, struct context *c)
{
	struct hamlyn_nq_entry entry;
	struct ht_poll poll;
	void *ring, *control;
	char byte;
	int fd = get_fd(socket);

	if (fd < 0)
		return 1;
	/* The same context: ids mean the same, and the memory is the same. */
	ring = mmap(NULL, c->nq.arg.ring_length, PROT_READ, MAP_SHARED, fd,
		    (off_t)c->nq.arg.ring_offset);
	control = mmap(NULL, c->nq.arg.control_length, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, (off_t)c->nq.arg.control_offset);
	if (ring == MAP_FAILED || control == MAP_FAILED)
		return 2;
	c->nq.ring = ring;
	c->nq.control = control;
	c->nq.entries = (void *)((char *)ring + c->nq.arg.entries_offset);
	if (write(socket, "r", 1) != 1)
		return 3;
	ht_poll_begin(&poll);
	while (!ht_raw_recv(&c->nq, &entry))
		if (!ht_poll_more(&poll))
			return 4;
	if (new_key(fd, c->slot.slot))
		return 5;
	if (write(socket, "d", 1) != 1 || read(socket, &byte, 1) != 1)
		return 6;
	return 0;
}

TEST_F(foreign, a_passed_descriptor_is_the_same_context)
{
	struct context *o = &self->theirs;
	int sockets[2], status;
	struct hamlyn_trb *trb;
	uint32_t index;
	char byte;
	pid_t pid;

	forget_mappings(o);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(sockets[0]);
		/* What fork() has copied is not what this test is about. */
		close(o->fd);
		_exit(inherit(sockets[1], o));
	}
	ASSERT_EQ(0, pass_fd(sockets[0], o->fd));
	ASSERT_EQ(0, ht_read_all(sockets[0], &byte, 1));
	/* The child's is the last reference now. */
	close(o->fd);
	EXPECT_TRUE(alive(self, o));
	trb = ht_raw_entry(&self->mine.terminus);
	index = self->mine.terminus.producer;
	memset(trb, 0, 256);
	trb->host = self->query.host;
	trb->slot = o->slot.slot;
	trb->key = o->slot.key;
	ASSERT_GE(ht_raw_post(&self->mine.terminus), 0);
	ASSERT_EQ(0, ht_raw_done(&self->mine.terminus, index, &status));
	ASSERT_EQ(0, ht_read_all(sockets[0], &byte, 1));
	EXPECT_TRUE(alive(self, o));
	ASSERT_EQ(1, write(sockets[0], "x", 1));
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_TRUE(dies(self, o));
	o->fd = -1;
}

TEST_F(foreign, a_context_lives_until_its_last_descriptor)
{
	struct context *o = &self->theirs;
	int second = dup(o->fd);
	int third = dup(o->fd);

	forget_mappings(o);
	close(o->fd);
	EXPECT_TRUE(alive(self, o));
	EXPECT_EQ(0, new_key(second, o->slot.slot));
	close(second);
	EXPECT_TRUE(alive(self, o));
	o->fd = third;
	close(third);
	EXPECT_TRUE(dies(self, o));
	o->fd = -1;
}

TEST_F(foreign, a_killed_child_ends_what_only_it_had)
{
	struct context *o = &self->theirs;
	char byte;
	int pipefd[2];
	pid_t pid;

	forget_mappings(o);
	ASSERT_EQ(0, pipe(pipefd));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (write(pipefd[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1));
	close(o->fd);
	EXPECT_TRUE(alive(self, o));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_TRUE(dies(self, o));
	o->fd = -1;
}

TEST_F(foreign, a_reopened_file_is_a_context_of_its_own)
{
	struct context *o = &self->theirs;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", o->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-ENOENT, ht_raw_id(fd, HAMLYN_IOC_SLOT_DESTROY,
				     o->slot.slot));
	EXPECT_EQ(-ENOENT, ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE,
				     o->area.area));
	close(fd);
	EXPECT_NO(does_not_reach(self, &self->mine, o));
}

static int look_at_counters(FIXTURE_DATA(foreign) *self)
{
	struct context *c = &self->mine;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	if (stats_of(c->fd, HAMLYN_STATS_NIC, 0) != -EPERM)
		return 2;
	/* One's own may be seen by everybody. */
	if (stats_of(c->fd, HAMLYN_STATS_SLOT, c->slot.slot))
		return 3;
	if (stats_of(c->fd, HAMLYN_STATS_TERMINUS, c->terminus.arg.terminus))
		return 4;
	return 0;
}

TEST_F(foreign, counters_of_the_nic_need_CAP_NET_ADMIN)
{
	pid_t pid = ht_fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(look_at_counters(self));
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_EQ(0, stats_of(self->mine.fd, HAMLYN_STATS_NIC, 0));
}

TEST_F(foreign, a_context_does_not_see_what_others_receive)
{
	struct hamlyn_stats stats = { .size = sizeof(stats),
				      .kind = HAMLYN_STATS_SLOT,
				      .id = self->theirs.slot.slot };

	ASSERT_NO(does_not_reach(self, &self->mine, &self->theirs));
	EXPECT_EQ(-ENOENT, ht_raw(self->mine.fd, HAMLYN_IOC_STATS, &stats));
	EXPECT_EQ(0, ht_raw(self->theirs.fd, HAMLYN_IOC_STATS, &stats));
}

TEST_F(foreign, the_default_device_is_the_kernels)
{
	struct h_dev *dev;

	ASSERT_EQ(0, unsetenv("HAMLYN_DEVICE"));
	ASSERT_EQ(0, h_open(NULL, &dev));
	EXPECT_STREQ("/dev/hamlyn0", h_dev_name(dev));
	EXPECT_EQ(0, h_dev_is_embedded(dev));
	h_close(dev);
}

/* ---- many threads on one context ---------------------------------------- */

struct guesser {
	FIXTURE_DATA(foreign) *self;
	pthread_t thread;
	uint64_t random;
	int64_t end;
};

/* Map what may be there, look at it, let it go. */
static void map_something(int fd, const struct context *like, uint64_t pick)
{
	uint64_t offset = pick & 1 ? like->area.mmap_offset :
				     like->nq.arg.ring_offset;
	uint64_t length = pick & 1 ? like->area.length :
				     like->nq.arg.ring_length;
	volatile char *p;

	p = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)offset);
	if (p == MAP_FAILED)
		return;
	(void)p[0];
	munmap((void *)(uintptr_t)p, length);
}

static void do_something(struct guesser *g)
{
	static const uint32_t destroy[] = {
		HAMLYN_IOC_AREA_REMOVE, HAMLYN_IOC_NQ_DESTROY,
		HAMLYN_IOC_TERMINUS_DESTROY,
	};
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 64 };
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 8,
					    .entry_size = 256 };
	int fd = g->self->theirs.fd;
	uint64_t pick = ht_random(&g->random);
	uint32_t id = pick >> 16 & 15;
	uint32_t other = pick >> 20 & 15;
	struct hamlyn_area_alloc area;

	switch (pick % 11) {
	case 0:
		ht_raw_area_alloc(fd, 1 + (pick >> 32 & 0xffff), &area, NULL);
		break;
	case 1:
		ht_raw(fd, HAMLYN_IOC_NQ_CREATE, &nq);
		break;
	case 2:
		ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
		break;
	case 3:
		ht_raw_bind(fd, id, other & 7, other, 0, 100);
		break;
	case 4:
		slot_on(fd, id, HAMLYN_NONE, other);
		break;
	case 5:
		slot_on(fd, id, other, other);
		break;
	case 6:
		ht_raw(fd, HAMLYN_IOC_KICK, (void *)(uintptr_t)id);
		break;
	case 7:
		wait_on(fd, id);
		break;
	case 8:
		stats_of(fd, HAMLYN_STATS_TERMINUS, id);
		break;
	case 9:
		map_something(fd, &g->self->theirs, pick >> 40);
		break;
	default:
		ht_raw_id(fd, destroy[(pick >> 32) % ARRAY_SIZE(destroy)], id);
		break;
	}
}

static void *guess(void *arg)
{
	struct guesser *g = arg;
	int i;

	for (i = 0; i < 2000 && ht_now_ns() < g->end; i++)
		do_something(g);
	return NULL;
}

TEST_F(foreign, threads_that_guess_ids_harm_nobody_else)
{
	struct guesser guessers[4];
	struct context fresh = { 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(guessers); i++) {
		guessers[i] = (struct guesser) {
			.self = self,
			.random = ht_seed() + i,
			.end = ht_now_ns() + 4 * HT_SEC,
		};
		ASSERT_EQ(0, pthread_create(&guessers[i].thread, NULL, guess,
					    &guessers[i]));
	}
	/* Somebody else's traffic, meanwhile. */
	for (i = 0; i < 2000; i++) {
		ASSERT_NO(does_not_reach(self, &self->mine, &self->mine));
	}
	for (i = 0; i < ARRAY_SIZE(guessers); i++)
		pthread_join(guessers[i].thread, NULL);
	close(self->theirs.fd);
	self->theirs.fd = -1;
	ASSERT_EQ(0, fill(&fresh, 2));
	EXPECT_NO(does_not_reach(self, &fresh, &fresh));
	close(fresh.fd);
}

TEST_HARNESS_MAIN
