// SPDX-License-Identifier: GPL-2.0-only
/*
 * The audit tells an owner who sends wrongly to his slots: nothing of others'
 * slots, no key, and nothing that who sends could overwrite unseen. Kernel
 * device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#define ROOM	64	/* what a context remembers */
#define KEYED	(ROOM / 2)	/* of who has a key */

FIXTURE(hostile_audit) {
	struct party owner;
	struct party enemy;
	struct party other;
	struct hamlyn_audit_entry entries[4 * ROOM];
};

FIXTURE_SETUP(hostile_audit)
{
	ASSERT_EQ(0, party_open(&self->owner));
	ASSERT_EQ(0, party_open(&self->enemy));
	ASSERT_EQ(0, party_open(&self->other));
}

FIXTURE_TEARDOWN(hostile_audit)
{
	party_close(&self->enemy);
	party_close(&self->owner);
	party_close(&self->other);
}

static int read_audit(int fd, uint64_t *sequence, uint32_t room, void *entries)
{
	struct hamlyn_audit arg = {
		.size = sizeof(arg),
		.count = room,
		.sequence = *sequence,
		.entries = (uintptr_t)entries,
	};
	int ret = ht_raw(fd, HAMLYN_IOC_AUDIT, &arg);

	*sequence = arg.sequence;
	return ret ? ret : (int)arg.count;
}

static int all(FIXTURE_DATA(hostile_audit) *self, const struct party *p)
{
	uint64_t sequence = 0;

	return read_audit(p->fd, &sequence, ARRAY_SIZE(self->entries),
			  self->entries);
}

static int shoot(struct party *from, const struct party *to)
{
	struct hamlyn_trb trb = to_party(to);

	trb.key ^= 0x1122334455667788ULL;
	return post(&from->terminus, &trb);
}

TEST_F(hostile_audit, it_tells_of_own_slots_only)
{
	struct hamlyn_trb trb = to_party(&self->owner);

	ASSERT_EQ(0, shoot(&self->enemy, &self->owner));
	/* What is nobody's slot is in nobody's audit. */
	trb.slot = nobodys_slot(&self->owner);
	ASSERT_NE(HAMLYN_NONE, trb.slot);
	ASSERT_EQ(0, post(&self->enemy.terminus, &trb));
	EXPECT_EQ(1, all(self, &self->owner));
	EXPECT_EQ(self->owner.slot.slot, self->entries[0].slot);
	EXPECT_EQ(0, all(self, &self->other));
	/* Not even of what oneself did wrong at others'. */
	EXPECT_EQ(0, all(self, &self->enemy));
}

static int shoot_as(void *arg)
{
	FIXTURE_DATA(hostile_audit) *self = arg;
	struct hamlyn_trb trb;
	struct party p;

	if (party_open(&p))
		return 1;
	trb = to_party(&self->owner);
	trb.offset = PAGE - 3;
	return post(&p.terminus, &trb) ? 2 : 0;
}

TEST_F(hostile_audit, it_tells_who_and_what_but_no_key)
{
	const struct hamlyn_audit_entry *e = self->entries;
	struct hamlyn_trb trb = to_party(&self->owner);
	int64_t before = ht_now_ns();

	/* A key that is wrong here, and may be right elsewhere. */
	trb.key = 0x4b4559414c4f4e45ULL;
	trb.offset = 77;
	trb.length = 5;
	ASSERT_EQ(0, post(&self->enemy.terminus, &trb));
	ASSERT_EQ(0, as(somebody(0), shoot_as, self));
	ASSERT_EQ(2, all(self, &self->owner));
	EXPECT_EQ(NULL, memmem(self->entries, sizeof(self->entries), &trb.key,
			       sizeof(trb.key)));
	EXPECT_EQ(NULL, memmem(self->entries, sizeof(self->entries),
			       &self->owner.slot.key, sizeof(uint64_t)));
	EXPECT_EQ(HAMLYN_REJECT_KEY, e[0].reason);
	EXPECT_EQ(77, e[0].offset);
	EXPECT_EQ(5, e[0].length);
	EXPECT_EQ(self->owner.query.host, e[0].source);
	EXPECT_EQ((uint32_t)getpid(), e[0].pid);
	EXPECT_EQ(getuid(), e[0].uid);
	EXPECT_GE((int64_t)e[0].time_ns, before);
	EXPECT_LE((int64_t)e[0].time_ns, ht_now_ns());
	EXPECT_EQ(HAMLYN_REJECT_BOUNDS, e[1].reason);
	EXPECT_EQ(somebody(0), e[1].uid);
}

TEST_F(hostile_audit, a_flood_leaves_the_last_and_shows_the_gap)
{
	struct hamlyn_trb trb = to_party(&self->owner);
	uint64_t sequence = 0;
	int i;

	/* No guesses: who has the key is not held back. */
	trb.offset = PAGE;
	ASSERT_EQ(0, shoot(&self->enemy, &self->owner));
	ASSERT_EQ(1, read_audit(self->owner.fd, &sequence, ROOM,
				self->entries));
	EXPECT_EQ(1, sequence);
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, post(&self->enemy.terminus, &trb));
	}
	ASSERT_EQ(KEYED, read_audit(self->owner.fd, &sequence, 4 * ROOM,
				    self->entries));
	EXPECT_EQ(1001, sequence);
	for (i = 0; i < KEYED; i++) {
		EXPECT_EQ((uint64_t)(1001 - KEYED + i),
			  self->entries[i].sequence);
		EXPECT_EQ(HAMLYN_REJECT_BOUNDS, self->entries[i].reason);
	}
	EXPECT_EQ(0, read_audit(self->owner.fd, &sequence, ROOM,
				self->entries));
	sequence = ~0ULL;
	EXPECT_EQ(0, read_audit(self->owner.fd, &sequence, ROOM,
				self->entries));
	/* And the counter has not forgotten the first one. */
	EXPECT_EQ(1, rejects(&self->owner, HAMLYN_REJECT_KEY));
}

/* Entries about @uid with that reason. */
static int about(FIXTURE_DATA(hostile_audit) *self, unsigned int uid,
		 enum hamlyn_reject reason)
{
	int n = all(self, &self->owner), found = 0, i;

	for (i = 0; i < n; i++)
		if (self->entries[i].uid == uid &&
		    self->entries[i].reason == reason)
			found++;
	return found;
}

/* Two users may share a room for who has no key; this one is not root's neighbour. */
static unsigned int another_group(void)
{
	unsigned int n = 0;

	while (!(somebody(n) * 0x61C88647U >> 30))
		n++;
	return somebody(n);
}

static int guess_as(void *arg)
{
	FIXTURE_DATA(hostile_audit) *self = arg;
	struct party p;

	return party_open(&p) || shoot(&p, &self->owner);
}

/* Outside of the message area, which who has the key only can be. */
static int stray(struct party *from, const struct party *to)
{
	struct hamlyn_trb trb = to_party(to);

	trb.offset = PAGE;
	return post(&from->terminus, &trb);
}

/*
 * No key, a wrong one, and none that a paranoid slot asks for before it looks at the rest:
 * as often as one likes.
 */
static int flood_keyless(FIXTURE_DATA(hostile_audit) *self)
{
	struct hamlyn_slot_create slot = {
		.size = sizeof(slot),
		.mode = HAMLYN_SLOT_PARANOID,
		.area = self->owner.area.area,
		.length = PAGE / 2,
		.meta_area = self->owner.area.area,
		.meta_base = PAGE / 2,
		.meta_count = 4,
		.nq = self->owner.nq.arg.nq,
	};
	struct hamlyn_trb trb = to_party(&self->owner);
	int i, ret = ht_raw(self->owner.fd, HAMLYN_IOC_SLOT_CREATE, &slot);

	trb.slot = slot.slot;
	trb.offset = PAGE;
	for (i = 0; !ret && i < 4 * ROOM; i++)
		ret = shoot(&self->enemy, &self->owner) ?:
		      post(&self->enemy.terminus, &trb);
	return ret;
}

TEST_F(hostile_audit, who_has_no_key_pushes_nobody_out)
{
	unsigned int guesser = another_group();

	ASSERT_EQ(0, stray(&self->other, &self->owner));
	ASSERT_EQ(0, as(guesser, guess_as, self));
	ASSERT_EQ(0, flood_keyless(self));
	/* What a holder of the key did wrong, and another one's guess. */
	EXPECT_EQ(1, about(self, guesser, HAMLYN_REJECT_KEY));
	EXPECT_EQ(0, self->entries[0].sequence);
	EXPECT_EQ(HAMLYN_REJECT_BOUNDS, self->entries[0].reason);
	EXPECT_EQ(8U, self->entries[0].length);
	/* The flood is told of as well. */
	EXPECT_NE(0, about(self, 0, HAMLYN_REJECT_KEY));
}

struct flood {
	FIXTURE_DATA(hostile_audit) *self;
	int stop;
};

static void *flood_all_the_time(void *arg)
{
	struct flood *flood = arg;
	struct hamlyn_trb trb = to_party(&flood->self->owner);
	struct ht_raw_terminus *t = &flood->self->enemy.terminus;

	trb.offset = PAGE;
	while (!h__load_acquire(&flood->stop)) {
		uint32_t i;

		for (i = 0; i < t->arg.entries; i++) {
			memcpy(ht_raw_entry(t), &trb, sizeof(trb));
			t->producer++;
		}
		ht_raw_publish(t, t->producer);
		while (h__load_acquire(&t->status->completed) != t->producer)
			ht_raw_publish(t, t->producer);
	}
	return NULL;
}

/* However many there are, and are to come, while it is read. */
TEST_F(hostile_audit, it_writes_no_more_than_it_may)
{
	size_t bytes = ROOM * sizeof(struct hamlyn_audit_entry);
	struct hamlyn_trb trb = to_party(&self->owner);
	struct flood flood = { .self = self };
	uint64_t sequence;
	pthread_t thread;
	char *map, *p;
	int i, ret;

	map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, mprotect(map + 2 * PAGE, PAGE, PROT_NONE));
	p = map + 2 * PAGE - bytes;
	trb.offset = PAGE;
	for (i = 0; i < ROOM; i++) {
		ASSERT_EQ(0, post(&self->enemy.terminus, &trb));
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, flood_all_the_time, &flood));
	for (i = 0; i < 2000; i++) {
		sequence = 0;
		ret = read_audit(self->owner.fd, &sequence, 0xffffffff, p);
		ASSERT_GE(ret, 0);
		ASSERT_LE(ret, ROOM);
	}
	h__store_release(&flood.stop, 1);
	pthread_join(thread, NULL);
	/* And not a byte behind the room that it was told. */
	sequence = 0;
	memset(p, HT_GUARD, bytes);
	ASSERT_EQ(3, read_audit(self->owner.fd, &sequence, 3, p));
	EXPECT_EQ(bytes - 3 * sizeof(struct hamlyn_audit_entry),
		  ht_match_byte(p + 3 * sizeof(struct hamlyn_audit_entry),
				bytes - 3 * sizeof(struct hamlyn_audit_entry),
				HT_GUARD));
	sequence = 0;
	EXPECT_EQ(0, read_audit(self->owner.fd, &sequence, 0, NULL));
	EXPECT_EQ(-EFAULT, read_audit(self->owner.fd, &sequence, 1, NULL));
	EXPECT_EQ(-EFAULT, read_audit(self->owner.fd, &sequence, 1,
				      map + 2 * PAGE));
	EXPECT_EQ(-EFAULT, read_audit(self->owner.fd, &sequence, 1,
				      (void *)0xffff888000000000UL));
	p = map + 2 * PAGE - KEYED * sizeof(struct hamlyn_audit_entry);
	EXPECT_EQ(-EFAULT, read_audit(self->owner.fd, &sequence, ROOM,
				      p + 8));
}

/* In a container: what is a pid and a user there. */
static int read_inside(FIXTURE_DATA(hostile_audit) *self)
{
	pid_t pid;

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return 77;
	pid = fork();
	if (!pid) {
		if (all(self, &self->owner) != 1)
			_exit(1);
		if (self->entries[0].pid)
			_exit(2);
		_exit(self->entries[0].uid == 65534 ? 0 : 3);
	}
	return pid < 0 ? 4 : ht_reap(pid);
}

TEST_F(hostile_audit, a_container_sees_no_pids_and_users_of_outside)
{
	pid_t pid;
	int ret;

	ASSERT_EQ(0, shoot(&self->enemy, &self->owner));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(read_inside(self));
	ret = ht_reap(pid);
	if (ret == 77)
		SKIP(return, "no user namespaces here");
	EXPECT_EQ(0, ret);
}

/* ---- numbers of processes that the kernel gives anew ---- */

/* A child of that number, or of any; as fork(). */
static pid_t fork_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = number ? (uintptr_t)&number : 0,
		.set_tid_size = number ? 1 : 0,
	};
	long ret = syscall(SYS_clone3, &args, sizeof(args));

	return ret < 0 ? -errno : (pid_t)ret;
}

TEST_F(hostile_audit, who_has_the_number_of_one_that_ended_is_not_told)
{
	pid_t first, second;

	first = fork_as(0);
	ASSERT_LE(0, first);
	if (!first)
		_exit(shoot_as(self));
	ASSERT_EQ(0, ht_reap(first));
	second = fork_as(first);
	if (second == -EPERM)
		SKIP(return, "needs CAP_CHECKPOINT_RESTORE");
	ASSERT_LE(0, second);
	if (!second) {
		pause();
		_exit(0);
	}
	EXPECT_EQ(first, second);
	EXPECT_EQ(1, all(self, &self->owner));
	EXPECT_EQ(0, self->entries[0].pid);
	kill(second, SIGKILL);
	ht_reap(second);
}

TEST_HARNESS_MAIN
