// SPDX-License-Identifier: GPL-2.0-only
/*
 * The embedded device's segment: who shares it, how large it is, what is left
 * of it, and what the dead leave in it. Embedded device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/gather.h>
#include <hamlyn/stream.h>

/* To let calls fail that do so only when a peer was stopped in between. */
#include "low/device.h"
#include "stream/stream.h"

#define SHM	"/dev/shm"

FIXTURE(segment) {
	char stem[128];		/* what names of our segments begin with */
	char name[160];		/* a device name made of it */
};

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = ht_write_all(fd, text, strlen(text));
	close(fd);
	return ret;
}

/*
 * A /dev/shm of @size of our own, gone with the process. Those who are not
 * root are in a user namespace of their own.
 */
static int own_shm(const char *size)
{
	unsigned int uid = geteuid(), gid = getegid();
	char text[64];

	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)))
		return -errno;
	if (uid) {
		write_text("/proc/self/setgroups", "deny");
		snprintf(text, sizeof(text), "%u %u 1", uid, uid);
		write_text("/proc/self/uid_map", text);
		snprintf(text, sizeof(text), "%u %u 1", gid, gid);
		write_text("/proc/self/gid_map", text);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	snprintf(text, sizeof(text), "size=%s", size);
	return mount("hamlyn-test", SHM, "tmpfs", 0, text) ? -errno : 0;
}

FIXTURE_SETUP(segment)
{
	const char *device = ht_device();

	snprintf(self->stem, sizeof(self->stem), "shm:%.60s-%d",
		 device && !strncmp(device, "shm:", 4) &&
		 !strchr(device, ',') ? device + 4 : "hamlyn-test", getpid());
	snprintf(self->name, sizeof(self->name), "%s", self->stem);
	/* Where it cannot be had, the names keep the tests apart. */
	own_shm("256M");
}

FIXTURE_TEARDOWN(segment)
{
}

/* Where processes come by the hundred: to make and map their memory is most of what they take. */
static void make_do_with_little(FIXTURE_DATA(segment) *self)
{
	snprintf(self->name, sizeof(self->name), "%s,size=8M", self->stem);
}

/* How many files there are that belong to our segments. */
static int files(FIXTURE_DATA(segment) *self)
{
	DIR *dir = opendir(SHM);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		n += strstr(entry->d_name, self->stem + 4) != NULL;
	closedir(dir);
	return n;
}

struct place {
	struct h_dev *dev;
	struct h_slot_attr attr;
	struct h_slot *slot;
	struct h_ticket ticket;
};

static int make_place(const char *name, struct place *place)
{
	int ret;

	memset(place, 0, sizeof(*place));
	ret = h_open(name, &place->dev);
	if (ret)
		return ret;
	ret = h_area_alloc(place->dev, 65536, &place->attr.area);
	if (!ret)
		ret = h_nq_create(place->dev, 64, &place->attr.nq);
	if (!ret)
		ret = h_slot_create(place->dev, &place->attr, &place->slot);
	if (!ret)
		ret = h_slot_ticket(place->slot, 0, 0, 0, &place->ticket);
	return ret;
}

/* Send from a device of its own to @place, and see it arrive. */
static const char *does_not_reach(const char *name, struct place *place)
{
	struct h_msg msg = { .ticket = &place->ticket, .length = 300 };
	struct hamlyn_nq_entry entry;
	struct h_terminus *terminus;
	unsigned char data[300];
	struct h_dev *dev;
	int ret;

	if (h_open(name, &dev))
		return "does not open";
	ht_fill(data, sizeof(data), 3);
	msg.data = data;
	if (h_terminus_create(dev, NULL, &terminus) ||
	    ht_send_sync(terminus, &msg) != 1)
		return "does not send";
	h_close(dev);
	ret = h_recv_block(place->attr.nq, &entry, ht_patience_ns());
	if (ret)
		return "no notification";
	if (ht_match(h_area_addr(place->attr.area), 300, 3) != 300)
		return "wrong data";
	memset(h_area_addr(place->attr.area), 0, 300);
	return NULL;
}

TEST_F(segment, processes_that_name_the_same_segment_talk)
{
	struct place place;
	pid_t pid;

	ASSERT_EQ(0, make_place(self->name, &place));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		struct h_msg msg = { .ticket = &place.ticket,
				     .data = "hello", .length = 5 };
		struct h_terminus *terminus;
		struct h_dev *dev;

		if (h_open(self->name, &dev) ||
		    h_terminus_create(dev, NULL, &terminus) ||
		    ht_send_sync(terminus, &msg) != 1)
			_exit(1);
		h_close(dev);
		_exit(0);
	}
	ASSERT_EQ(0, ht_reap(pid));
	EXPECT_EQ(0, memcmp(h_area_addr(place.attr.area), "hello", 5));
	EXPECT_NO(does_not_reach(self->name, &place));
	h_close(place.dev);
}

TEST_F(segment, another_name_is_another_nic)
{
	struct hamlyn_stats mine, theirs;
	struct h_terminus *terminus;
	struct place place;
	struct h_msg msg = { .ticket = &place.ticket, .data = "x",
			     .length = 1 };
	struct hamlyn_nq_entry entry;
	struct h_dev *dev;
	char other[200];

	ASSERT_EQ(0, make_place(self->name, &place));
	snprintf(other, sizeof(other), "%s-other", self->stem);
	ASSERT_EQ(0, h_open(other, &dev));
	ASSERT_EQ(0, h_terminus_create(dev, NULL, &terminus));
	ASSERT_EQ(1, ht_send_sync(terminus, &msg));
	EXPECT_EQ(0, h_recv(place.attr.nq, &entry));
	EXPECT_EQ(0, *(char *)h_area_addr(place.attr.area));
	ASSERT_EQ(0, h_dev_stats(place.dev, &mine));
	ASSERT_EQ(0, h_dev_stats(dev, &theirs));
	EXPECT_EQ(0, mine.rejects[HAMLYN_REJECT_SLOT]);
	EXPECT_EQ(1, theirs.rejects[HAMLYN_REJECT_SLOT]);
	h_close(dev);
	h_close(place.dev);
}

/* Nor do they say that they reach each other; one that is made anew is another one. */
TEST_F(segment, each_segment_is_a_fabric_of_its_own)
{
	static const struct h_fabric_id none;
	struct h_fabric_id id, same, others, later;
	struct h_dev *dev, *again, *other;
	struct hamlyn_query query;
	char name[200];

	snprintf(name, sizeof(name), "%s-other", self->stem);
	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, h_open(self->name, &again));
	ASSERT_EQ(0, h_open(name, &other));
	h_dev_fabric(dev, &id);
	h_dev_fabric(again, &same);
	h_dev_fabric(other, &others);
	EXPECT_NE(0, memcmp(&none, &id, sizeof(id)));
	EXPECT_EQ(0, memcmp(&same, &id, sizeof(id)));
	EXPECT_EQ(1, h_dev_reaches(dev, &same));
	EXPECT_EQ(1, h_dev_reaches(again, &id));
	EXPECT_EQ(0, h_dev_reaches(dev, &others));
	EXPECT_EQ(0, h_dev_reaches(other, &id));
	EXPECT_EQ(0, h_dev_reaches(dev, &none));
	/* The last byte counts. */
	same.bytes[sizeof(same.bytes) - 1] ^= 1;
	EXPECT_EQ(0, h_dev_reaches(dev, &same));
	ASSERT_EQ(0, h_query(dev, &query));
	EXPECT_EQ(0, memcmp(query.fabric_id, id.bytes, sizeof(id.bytes)));
	h_close(other);
	h_close(again);
	h_close(dev);
	ASSERT_EQ(0, h_open(self->name, &dev));
	h_dev_fabric(dev, &later);
	EXPECT_NE(0, memcmp(&later, &id, sizeof(id)));
	EXPECT_EQ(0, h_dev_reaches(dev, &id));
	h_close(dev);
}

TEST_F(segment, with_join_none_is_made)
{
	struct h_dev *dev, *other;
	char name[200], file[250];

	snprintf(name, sizeof(name), "%s,join", self->stem);
	snprintf(file, sizeof(file), "/dev/shm/hamlyn-%u-%s", ht_segment_uid(), self->stem + 4);
	EXPECT_EQ(-ENOENT, h_open(name, &dev));
	EXPECT_NE(0, access(file, F_OK));
	ASSERT_EQ(0, h_open(self->name, &dev));
	EXPECT_EQ(0, h_open(name, &other));
	h_close(other);
	h_close(dev);
}

TEST_F(segment, a_second_open_joins_whatever_size_it_says)
{
	static const char *const sizes[] = { "", ",size=4M", ",size=64M",
					     ",size=2G" };
	struct hamlyn_query first, second;
	struct place place;
	struct h_dev *dev;
	char name[200];
	unsigned int i;

	snprintf(name, sizeof(name), "%s,size=16M", self->stem);
	ASSERT_EQ(0, make_place(name, &place));
	EXPECT_STREQ(name, h_dev_name(place.dev));
	ASSERT_EQ(0, h_query(place.dev, &first));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		snprintf(name, sizeof(name), "%s%s", self->stem, sizes[i]);
		ASSERT_EQ(0, h_open(name, &dev)) {
			TH_LOG("%s", name);
		}
		ASSERT_EQ(0, h_query(dev, &second));
		EXPECT_EQ(first.max_area, second.max_area);
		h_close(dev);
		EXPECT_NO(does_not_reach(name, &place));
	}
	h_close(place.dev);
}

TEST_F(segment, sizes_are_what_was_asked_for)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {
		{ "16777216", 16 << 20 }, { "16384K", 16 << 20 },
		{ "16M", 16 << 20 }, { "48M", 48 << 20 },
	};
	struct hamlyn_query query;
	struct h_area *area;
	struct h_dev *dev;
	char name[200];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		snprintf(name, sizeof(name), "%s,size=%s", self->stem,
			 sizes[i].text);
		ASSERT_EQ(0, h_open(name, &dev)) {
			TH_LOG("%s", name);
		}
		ASSERT_EQ(0, h_query(dev, &query));
		/* Tables take some, but not much more than they must. */
		EXPECT_LE(query.max_area, sizes[i].bytes);
		EXPECT_GT(query.max_area, sizes[i].bytes / 2);
		ASSERT_EQ(0, h_area_alloc(dev, query.max_area, &area));
		EXPECT_EQ(-ENOSPC, h_area_alloc(dev, 1, &area));
		h_close(dev);
	}
}

TEST_F(segment, too_little_room_is_ENOSPC_and_leaves_nothing)
{
	static const char *const sizes[] = { "16M", "1G", "900G" };
	struct h_dev *dev;
	char name[200];
	unsigned int i;

	if (own_shm("2M"))
		SKIP(return, "no mount namespace to be had");
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		snprintf(name, sizeof(name), "%s,size=%s", self->stem,
			 sizes[i]);
		EXPECT_EQ(-ENOSPC, h_open(name, &dev)) {
			TH_LOG("%s", name);
		}
		EXPECT_EQ(0, files(self));
	}
	EXPECT_EQ(-ENOSPC, h_open(self->name, &dev));
	EXPECT_EQ(0, files(self));
}

/* Fill what room there is in /dev/shm. */
static int fill_shm(void)
{
	static char zeros[65536];
	int fd = open(SHM "/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = write(fd, zeros, sizeof(zeros))) > 0)
		;
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}

TEST_F(segment, memory_is_there_when_the_segment_is_made)
{
	struct hamlyn_query query;
	struct h_area *area;
	struct place place;
	struct h_dev *dev;
	char name[200];

	if (own_shm("17M"))
		SKIP(return, "no mount namespace to be had");
	snprintf(name, sizeof(name), "%s,size=16M", self->stem);
	ASSERT_EQ(0, make_place(name, &place));
	ASSERT_EQ(0, h_query(place.dev, &query));
	ASSERT_EQ(-ENOSPC, fill_shm());
	/* Every page of it can be written, though there is no more room. */
	ASSERT_EQ(0, h_open(name, &dev));
	ASSERT_EQ(0, h_area_alloc(dev, query.max_area - (1 << 20), &area));
	memset(h_area_addr(area), 0xff, h_area_length(area));
	while (!h_area_alloc(dev, 4096, &area))
		memset(h_area_addr(area), 0xff, 4096);
	h_close(dev);
	EXPECT_NO(does_not_reach(name, &place));
	h_close(place.dev);
}

TEST_F(segment, the_last_one_to_close_leaves_no_file)
{
	struct h_dev *devs[5];
	unsigned int i, round;

	for (round = 0; round < 20; round++) {
		EXPECT_EQ(0, files(self));
		for (i = 0; i < ARRAY_SIZE(devs); i++) {
			ASSERT_EQ(0, h_open(self->name, &devs[i]));
		}
		for (i = 0; i < ARRAY_SIZE(devs); i++) {
			EXPECT_LT(0, files(self));
			h_close(devs[(i + round) % ARRAY_SIZE(devs)]);
		}
		EXPECT_EQ(0, files(self));
	}
}

/* Open @name, fill it with objects, say so, and stay until killed. */
static pid_t start_hog(const char *name, int fd)
{
	struct h_slot_attr attr;
	struct h_terminus *terminus;
	struct h_slot *slot;
	struct h_dev *dev;
	pid_t pid = ht_fork();
	int i;

	if (pid)
		return pid;
	if (h_open(name, &dev))
		_exit(1);
	for (i = 0; i < 5; i++) {
		memset(&attr, 0, sizeof(attr));
		if (h_area_alloc(dev, 1 << 20, &attr.area) ||
		    h_nq_create(dev, 64, &attr.nq) ||
		    h_slot_create(dev, &attr, &slot) ||
		    h_terminus_create(dev, NULL, &terminus) ||
		    h_terminus_bind(terminus, 0, attr.area, 0, 0))
			_exit(2);
	}
	if (ht_write_all(fd, "x", 1))
		_exit(3);
	pause();
	_exit(0);
}

TEST_F(segment, segments_of_the_killed_are_reclaimed_by_the_next_open)
{
	pid_t pids[6];
	struct h_dev *dev;
	char name[200], other[200], byte;
	unsigned int i, round;
	int pipefd[2];

	ASSERT_EQ(0, pipe(pipefd));
	snprintf(other, sizeof(other), "%s-other", self->stem);
	for (round = 0; round < 10; round++) {
		/* Three segments, two processes on each. */
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			snprintf(name, sizeof(name), "%s-%u,size=16M",
				 self->stem, i % 3);
			pids[i] = start_hog(name, pipefd[1]);
			ASSERT_GT(pids[i], 0);
			ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1));
		}
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			kill(pids[i], SIGKILL);
			ASSERT_EQ(128 + SIGKILL, ht_reap(pids[i]));
		}
		/* One that is not of them; and all the room is there again. */
		ASSERT_EQ(0, h_open(other, &dev));
		EXPECT_EQ(1, files(self));
		h_close(dev);
		EXPECT_EQ(0, files(self));
	}
}

TEST_F(segment, a_segment_that_all_were_killed_on_begins_anew)
{
	struct hamlyn_stats stats;
	struct hamlyn_query query;
	struct place place;
	char name[200], byte;
	int pipefd[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	snprintf(name, sizeof(name), "%s,size=16M", self->stem);
	pid = start_hog(name, pipefd[1]);
	ASSERT_GT(pid, 0);
	ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	snprintf(name, sizeof(name), "%s,size=64M", self->stem);
	ASSERT_EQ(0, make_place(name, &place));
	ASSERT_EQ(0, h_query(place.dev, &query));
	EXPECT_GT(query.max_area, 32 << 20);
	ASSERT_EQ(0, h_dev_stats(place.dev, &stats));
	EXPECT_EQ(0, stats.messages);
	EXPECT_NO(does_not_reach(name, &place));
	h_close(place.dev);
	EXPECT_EQ(0, files(self));
}

TEST_F(segment, what_the_killed_held_comes_back_to_the_living)
{
	struct place place;
	int slots, areas, round;
	int pipefd[2];
	pid_t pids[3];
	unsigned int i;
	char byte;

	ASSERT_EQ(0, make_place(self->name, &place));
	slots = ht_count_slots(place.dev, place.attr.area, 10000);
	areas = ht_count_areas(place.dev, 65536, 5000);
	ASSERT_GT(slots, 0);
	ASSERT_GT(areas, 0);
	ASSERT_EQ(0, pipe(pipefd));
	for (round = 0; round < 20; round++) {
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			pids[i] = start_hog(self->name, pipefd[1]);
			ASSERT_GT(pids[i], 0);
			ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1));
		}
		EXPECT_GT(slots, ht_count_slots(place.dev, place.attr.area,
						10000));
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			kill(pids[i], SIGKILL);
			ASSERT_EQ(128 + SIGKILL, ht_reap(pids[i]));
		}
		EXPECT_NO(does_not_reach(self->name, &place));
	}
	EXPECT_EQ(slots, ht_count_slots(place.dev, place.attr.area, 10000));
	EXPECT_EQ(areas, ht_count_areas(place.dev, 65536, 5000));
	h_close(place.dev);
}

TEST_F(segment, no_room_for_another_process_is_EUSERS)
{
	enum { MOST = 5000 };
	static struct h_dev *devs[MOST];
	int n, ret = 0;

	make_do_with_little(self);
	for (n = 0; n < MOST; n++) {
		ret = h_open(self->name, &devs[n]);
		/* Or that of descriptors, which is not the segment's. */
		if (ret)
			break;
	}
	EXPECT_GE(n, 64);
	if (n < MOST) {
		EXPECT_TRUE(ret == -EUSERS || ret == -EMFILE) {
			TH_LOG("%d after %d", ret, n);
		}
	}
	h_close(devs[n / 2]);
	EXPECT_EQ(0, h_open(self->name, &devs[n / 2]));
	while (n--)
		h_close(devs[n]);
	EXPECT_EQ(0, files(self));
}

TEST_F(segment, names_of_another_form_are_EINVAL)
{
	static const char *const names[] = {
		"", "shm", "shm:", "shm:/", "shm:a/b", "shm:../a", "shm:/a",
		"shm:a b/", "shm:,size=16M", "shm:a,", "shm:a,size",
		"shm:a,size=", "shm:a,size=x", "shm:a,size=16X",
		"shm:a,size=16MM", "shm:a,size=16M,", "shm:a,size=-1",
		"shm:a,size=-16M", "shm:a,size= 16M", "shm:a,size=0",
		"shm:a,size=18446744073709551616", "shm:a,size=20000000000G",
		"shm:a,size=99999999999999999999999999G", "shm:a,sizes=16M",
		"shm:a,other=1", "shm:a,size=16M,other=1",
		"SHM:a", "tcp:a", "hamlyn0", "dev/hamlyn0",
		"/dev/null", "/dev/hamlyn", "/dev/hamlynx", "/dev/hamlyn0x",
		"/dev/hamlyn-1", "/tmp", "/",
	};
	char name[5000];
	struct h_dev *dev;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		dev = (void *)1;
		EXPECT_EQ(-EINVAL, h_open(names[i], &dev)) {
			TH_LOG("\"%s\"", names[i]);
		}
	}
	memset(name, 'a', sizeof(name));
	memcpy(name, "shm:", 4);
	name[sizeof(name) - 1] = 0;
	EXPECT_EQ(-EINVAL, h_open(name, &dev));
	EXPECT_EQ(-ENOENT, h_open("/dev/hamlyn4000000", &dev));
	EXPECT_EQ(0, files(self));
}

TEST_F(segment, the_default_name_comes_from_the_environment)
{
	struct h_dev *dev;

	ASSERT_EQ(0, setenv("HAMLYN_DEVICE", self->name, 1));
	ASSERT_EQ(0, h_open(NULL, &dev));
	EXPECT_STREQ(self->name, h_dev_name(dev));
	EXPECT_EQ(1, h_dev_is_embedded(dev));
	EXPECT_EQ(-EOPNOTSUPP, h_dev_fd(dev));
	h_close(dev);
	ASSERT_EQ(0, setenv("HAMLYN_DEVICE", "nonsense", 1));
	EXPECT_EQ(-EINVAL, h_open(NULL, &dev));
}

TEST_F(segment, closing_does_not_wait_for_peers)
{
	struct place place;
	char byte;
	int pipefd[2];
	int64_t began;
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, make_place(self->name, &place));
	pid = start_hog(self->name, pipefd[1]);
	ASSERT_GT(pid, 0);
	ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1));
	kill(pid, SIGSTOP);
	began = ht_now_ns();
	h_close(place.dev);
	EXPECT_LT(ht_now_ns() - began, 2 * HT_SEC);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
}

/* ---- killed, or stopped, at every instruction of a send ------------------ */

/* Sends one message when it is continued, between two stops. */
static pid_t start_stepped(const char *name, const struct h_ticket *ticket)
{
	unsigned char data[300], meta[8] = "victim";
	struct h_terminus *terminus;
	struct h_msg msg = {
		.ticket = ticket,
		.data = data,
		.length = sizeof(data),
		.meta = meta,
		.meta_length = sizeof(meta),
	};
	struct h_dev *dev;
	pid_t pid = ht_fork();
	int status;

	if (!pid) {
		memset(data, 'v', sizeof(data));
		if (h_open(name, &dev) ||
		    h_terminus_create(dev, NULL, &terminus) ||
		    ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		h_send(terminus, &msg);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid > 0 && (waitpid(pid, &status, 0) != pid ||
			!WIFSTOPPED(status))) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return -1;
	}
	return pid;
}

/* How many of @steps instructions it did before its second stop. */
static long step_through(pid_t pid, long steps)
{
	long done;
	int status;

	for (done = 0; done < steps; done++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) ||
		    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			return -1;
		if (WSTOPSIG(status) == SIGSTOP)
			break;
	}
	return done;
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* A place whose slot has metadata entries. */
static int make_counting_place(const char *name, struct place *place)
{
	int ret = make_place(name, place);

	if (ret)
		return ret;
	ret = h_slot_destroy(place->slot);
	if (!ret)
		ret = h_area_alloc(place->dev, 4096, &place->attr.meta_area);
	place->attr.meta_count = 2;
	if (!ret)
		ret = h_slot_create(place->dev, &place->attr, &place->slot);
	if (!ret)
		ret = h_slot_ticket(place->slot, 0, 0, 1, &place->ticket);
	return ret;
}

#define MOST_STEPS	200000

static long count_steps(const char *name, const struct h_ticket *ticket)
{
	pid_t pid = start_stepped(name, ticket);
	long steps;

	if (pid < 0)
		return -1;
	steps = step_through(pid, MOST_STEPS);
	end(pid);
	return steps;
}

/* What the victim sent arrived as a whole, if it was notified at all. */
static const char *drain_victim(struct place *place)
{
	unsigned char *data = h_area_addr(place->attr.area);
	struct hamlyn_nq_entry entry;
	int ret;

	while ((ret = h_recv_block(place->attr.nq, &entry, H_NOWAIT)) != -EAGAIN) {
		if (ret)
			return "an error on the NQ";
		if (ht_match_byte(data, 300, 'v') != 300)
			return "notified without its data";
	}
	memset(data, 0, 300);
	return NULL;
}

TEST_F(segment, a_sender_killed_at_any_instruction_leaves_the_others_working)
{
	struct place place;
	long steps, step, every;
	int slots;
	pid_t pid;

	make_do_with_little(self);
	ASSERT_EQ(0, make_counting_place(self->name, &place));
	slots = ht_count_slots(place.dev, place.attr.area, 10000);
	steps = count_steps(self->name, &place.ticket);
	ASSERT_GT(steps, 0);
	ASSERT_LT(steps, MOST_STEPS);
	ASSERT_NO(drain_victim(&place));
	/* Another seed begins elsewhere. */
	every = steps / 400 + 1;
	for (step = (long)(ht_seed() % every); step < steps; step += every) {
		pid = start_stepped(self->name, &place.ticket);
		ASSERT_GT(pid, 0);
		step_through(pid, step);
		end(pid);
		ASSERT_NO(drain_victim(&place)) {
			TH_LOG("instruction %ld of %ld", step, steps);
		}
		ASSERT_NO(does_not_reach(self->name, &place)) {
			TH_LOG("instruction %ld of %ld", step, steps);
		}
	}
	EXPECT_EQ(slots, ht_count_slots(place.dev, place.attr.area, 10000));
	h_close(place.dev);
	EXPECT_EQ(0, files(self));
}

/* Come, receive a message of one's own, and go: beside one that is stopped. */
static int come_and_go(const char *name)
{
	struct place place;

	if (make_place(name, &place))
		return 1;
	if (does_not_reach(name, &place))
		return 2;
	h_close(place.dev);
	return 0;
}

TEST_F(segment, a_sender_stopped_at_any_instruction_hangs_nobody)
{
	struct place place;
	pid_t stopped, pid;
	long steps, step;

	make_do_with_little(self);
	ASSERT_EQ(0, make_counting_place(self->name, &place));
	steps = count_steps(self->name, &place.ticket);
	ASSERT_GT(steps, 0);
	for (step = 0; step < steps; step += steps / 12 + 1) {
		stopped = start_stepped(self->name, &place.ticket);
		ASSERT_GT(stopped, 0);
		step_through(stopped, step);
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(come_and_go(self->name));
		EXPECT_EQ(0, ht_reap(pid)) {
			TH_LOG("instruction %ld of %ld", step, steps);
		}
		end(stopped);
		/* Whose slot it was finds its NQ in order afterwards. */
		EXPECT_NO(drain_victim(&place));
		ASSERT_NO(does_not_reach(self->name, &place));
	}
	h_close(place.dev);
}

/* ---- killed while a queue is full ----------------------------------------- */

#define FULL	8

/* Messages of one byte: how many were sent. */
static int send_some(struct h_terminus *terminus, const struct h_ticket *ticket,
		     int count)
{
	struct h_msg msg = { .ticket = ticket, .data = "f", .length = 1 };
	int n = 0;

	while (n < count && ht_send_sync(terminus, &msg) == 1)
		n++;
	return n;
}

/* Take what is there, and after it the report that some were lost. */
static const char *not_told(struct h_nq *nq)
{
	struct hamlyn_nq_entry entry;
	int ret, i;

	for (i = 0; i < FULL; i++) {
		ret = h_recv_block(nq, &entry, 5 * HT_SEC);
		if (ret == -EOVERFLOW)
			break;
		if (ret != 0)
			return "lost without a word";
	}
	if (i != FULL - 1)
		return "the report is not where the queue was full";
	/* One more, as the dead may have counted what they did not send. */
	ret = h_recv_block(nq, &entry, 0);
	if (ret == -EOVERFLOW)
		ret = h_recv_block(nq, &entry, 0);
	return ret == -EAGAIN ? NULL : "something else is there";
}

TEST_F(segment, an_overrun_is_told_whoever_is_killed_while_telling_it)
{
	struct h_terminus *terminus;
	struct place place;
	struct h_nq *nq;
	long steps, step, every;
	pid_t pid;

	make_do_with_little(self);
	ASSERT_EQ(0, make_counting_place(self->name, &place));
	ASSERT_EQ(0, h_terminus_create(place.dev, NULL, &terminus));
	ASSERT_EQ(0, h_nq_create(place.dev, FULL, &nq));
	place.attr.nq = nq;
	ASSERT_EQ(0, h_slot_create(place.dev, &place.attr, &place.slot));
	ASSERT_EQ(0, h_slot_ticket(place.slot, 0, 0, 1, &place.ticket));
	ASSERT_EQ(FULL - 1, send_some(terminus, &place.ticket, FULL - 1));
	steps = count_steps(self->name, &place.ticket);
	ASSERT_GT(steps, 0);
	ASSERT_LT(steps, MOST_STEPS);
	ASSERT_NO(not_told(nq));
	every = steps / 400 + 1;
	for (step = (long)(ht_seed() % every); step < steps; step += every) {
		ASSERT_EQ(FULL - 1,
			  send_some(terminus, &place.ticket, FULL - 1));
		pid = start_stepped(self->name, &place.ticket);
		ASSERT_GT(pid, 0);
		step_through(pid, step);
		end(pid);
		ASSERT_EQ(3, send_some(terminus, &place.ticket, 3));
		ASSERT_NO(not_told(nq)) {
			TH_LOG("instruction %ld of %ld", step, steps);
		}
	}
	h_close(place.dev);
}

/* ---- killed while objects come and go ------------------------------------ */

static void build_for_ever(const char *name)
{
	struct h_terminus *terminus;
	struct h_slot_attr attr;
	struct h_slot *slot;
	struct h_dev *dev;

	for (;;) {
		memset(&attr, 0, sizeof(attr));
		if (h_open(name, &dev) ||
		    h_area_alloc(dev, 100000, &attr.area) ||
		    h_nq_create(dev, 64, &attr.nq) ||
		    h_slot_create(dev, &attr, &slot) ||
		    h_slot_rekey(slot) ||
		    h_terminus_create(dev, NULL, &terminus) ||
		    h_terminus_bind(terminus, 0, attr.area, 0, 0))
			_exit(1);
		if (h_terminus_destroy(terminus) || h_slot_destroy(slot) ||
		    h_nq_destroy(attr.nq) || h_area_remove(attr.area))
			_exit(2);
		h_close(dev);
	}
}

TEST_F(segment, builders_killed_at_any_time_leave_nothing_behind)
{
	uint64_t random = ht_seed();
	struct place place;
	int slots, areas, round;
	pid_t pids[2];
	unsigned int i;

	make_do_with_little(self);
	ASSERT_EQ(0, make_place(self->name, &place));
	slots = ht_count_slots(place.dev, place.attr.area, 10000);
	areas = ht_count_areas(place.dev, 65536, 5000);
	for (round = 0; round < 300; round++) {
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			pids[i] = ht_fork();
			ASSERT_GE(pids[i], 0);
			if (!pids[i])
				build_for_ever(self->name);
		}
		ht_sleep_ns((int64_t)(ht_random(&random) % (3 * HT_MS)));
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			kill(pids[i], SIGKILL);
			ASSERT_EQ(128 + SIGKILL, ht_reap(pids[i])) {
				TH_LOG("round %d", round);
			}
		}
		ASSERT_NO(does_not_reach(self->name, &place)) {
			TH_LOG("round %d", round);
		}
	}
	EXPECT_EQ(slots, ht_count_slots(place.dev, place.attr.area, 10000));
	EXPECT_EQ(areas, ht_count_areas(place.dev, 65536, 5000));
	h_close(place.dev);
	EXPECT_EQ(0, files(self));
}

/* ---- a segment whose tables stay locked ----------------------------------- */

static void path_of(FIXTURE_DATA(segment) *self, char *path, size_t room)
{
	snprintf(path, room, SHM "/hamlyn-%u-%s", ht_segment_uid(), self->stem + 4);
}

/* As by a process that was stopped while it changed them. */
static int lock_tables(FIXTURE_DATA(segment) *self)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	char path[200];
	int fd;

	path_of(self, path, sizeof(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) ? -1 : fd;
}

struct opener {
	const char *name;
	struct h_dev *dev;
	int ret;
};

static void *open_it(void *arg)
{
	struct opener *o = arg;

	o->ret = h_open(o->name, &o->dev);
	return NULL;
}

TEST_F(segment, an_open_that_waits_holds_up_no_fork_and_no_other_device)
{
	struct opener o = { .name = self->name };
	struct h_dev *stuck, *other;
	char name[200];
	int64_t began, took[3];
	pthread_t thread;
	pid_t pid;
	int fd;

	snprintf(name, sizeof(name), "%s-other,size=4M", self->stem);
	ASSERT_EQ(0, h_open(self->name, &stuck));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, open_it, &o));
	ht_sleep_ns(300 * HT_MS);
	began = ht_now_ns();
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(0);
	took[0] = ht_now_ns() - began;
	EXPECT_EQ(0, ht_reap(pid));
	began = ht_now_ns();
	EXPECT_EQ(0, h_open(name, &other));
	took[1] = ht_now_ns() - began;
	began = ht_now_ns();
	h_close(other);
	took[2] = ht_now_ns() - began;
	/* It waits still, and gets on when the tables are unlocked. */
	close(fd);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, o.ret);
	EXPECT_LT(took[0], 3 * HT_SEC);
	EXPECT_LT(took[1], 3 * HT_SEC);
	EXPECT_LT(took[2], 3 * HT_SEC);
	h_close(o.dev);
	h_close(stuck);
	EXPECT_EQ(0, files(self));
}

struct allocation {
	struct h_manager *manager;
	int64_t took;
	int ret;
};

static void *allocate_it(void *arg)
{
	struct allocation *a = arg;
	void *memory;

	a->took = -ht_now_ns();
	a->ret = h_manager_alloc(a->manager, 64, &memory);
	a->took += ht_now_ns();
	return NULL;
}

TEST_F(segment, an_open_does_not_wait_for_ever)
{
	struct h_dev *stuck, *dev;
	struct allocation a = {};
	pthread_t thread;
	int64_t took;
	int fd;

	ASSERT_EQ(0, h_open(self->name, &stuck));
	ASSERT_EQ(0, h_manager_create(stuck, NULL, &a.manager));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, allocate_it, &a));
	took = -ht_now_ns();
	EXPECT_EQ(-ETIMEDOUT, h_open(self->name, &dev));
	took += ht_now_ns();
	EXPECT_GE(took, 5 * HT_SEC);
	pthread_join(thread, NULL);
	/* Nor does it try again with less. */
	EXPECT_EQ(-ETIMEDOUT, a.ret);
	EXPECT_LT(a.took, 3 * took);
	close(fd);
	EXPECT_EQ(0, h_manager_destroy(a.manager));
	h_close(stuck);
}

/*
 * As with a job that was stopped for a while, all of it, or one of so many processes that a
 * turn takes seconds.
 */
TEST_F(segment, time_that_who_waits_was_stopped_for_does_not_count)
{
	struct h_dev *dev;
	pid_t pid;
	int fd;

	ASSERT_EQ(0, h_open(self->name, &dev));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(fd);
		_exit(h_open(self->name, &dev) != 0);
	}
	ht_sleep_ns(300 * HT_MS);
	ASSERT_EQ(0, kill(pid, SIGSTOP));
	ht_sleep_ns(11 * HT_SEC);
	ASSERT_EQ(0, kill(pid, SIGCONT));
	ht_sleep_ns(300 * HT_MS);
	close(fd);
	EXPECT_EQ(0, ht_reap(pid));
	h_close(dev);
}

/* @n rounds of who sends more than a buffer holds, and who reads: how long the longest took. */
static int64_t longest_call(struct h_stream_sender *sender,
			    struct h_stream_receiver *r, int n)
{
	static const char data[20000];
	int64_t began, took, longest = 0;
	char room[3000];

	while (n--) {
		began = ht_now_ns();
		h_stream_send(sender, data, sizeof(data), H_NOWAIT);
		while (h_stream_receive_copy(r, room, sizeof(room), H_NOWAIT) > 0)
			;
		took = ht_now_ns() - began;
		if (took > longest)
			longest = took;
	}
	return longest;
}

/* As a daemon does that closes all it has, and opens its log. */
TEST_F(segment, without_its_descriptor_it_changes_nothing)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	struct h_dev *dev, *other;
	struct h_area *area;

	ASSERT_EQ(0, h_open(self->name, &other));
	ASSERT_EQ(0, h_open(self->name, &dev));
	fd = dev->fd;
	ASSERT_EQ(0, h_area_alloc(dev, 4096, &area));
	close(fd);
	EXPECT_EQ(-EBADF, h_area_remove(area));
	EXPECT_TRUE(ht_is_explained(dev, "was closed"));
	ASSERT_EQ(fd, dup2(null, fd));
	EXPECT_EQ(-EBADF, h_area_remove(area));
	EXPECT_TRUE(ht_is_explained(dev, "was closed"));
	h_close(dev);
	/* It is the program's, and stays open; and so does the segment, to the others. */
	EXPECT_EQ(0, close(fd));
	EXPECT_EQ(0, h_area_alloc(other, 4096, &area));
	EXPECT_EQ(0, h_area_remove(area));
	h_close(other);
	close(null);
}

#define ENDED	5	/* end points, of several objects each */

/* A server that drops clients meanwhile has others that wait for it. */
TEST_F(segment, who_was_stopped_with_the_tables_is_waited_for_once)
{
	struct h_stream_receiver *r[ENDED];
	struct h_manager *m;
	struct h_dev *dev;
	int64_t began;
	int fd, i;

	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &m));
	for (i = 0; i < ENDED; i++)
		ASSERT_EQ(0, h_stream_receiver_create(m, NULL, &r[i]));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	began = ht_now_ns();
	for (i = 0; i < ENDED; i++)
		EXPECT_EQ(-ETIMEDOUT, h_stream_receiver_destroy(r[i]));
	/* 10 s for the first: for each it were more than 40. */
	EXPECT_LT(ht_now_ns() - began, 30 * HT_SEC);
	close(fd);
	for (i = 0; i < ENDED; i++)
		EXPECT_EQ(0, h_stream_receiver_destroy(r[i]));
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
}

/* Its watches, and larger buffers, come when the tables can be had. */
TEST_F(segment, who_sends_and_receives_does_not_wait_for_the_tables)
{
	static const struct h_stream_attr attr = {
		.buffers = 4, .buffer_size = 128, .max_buffer_size = 4096,
	};
	struct h_manager *to, *from;
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_dev *devs[2];
	struct h_seed seed;
	struct ht_poll poll;
	int fd;

	ASSERT_EQ(0, h_open(self->name, &devs[0]));
	ASSERT_EQ(0, h_open(self->name, &devs[1]));
	ASSERT_EQ(0, h_manager_create(devs[0], NULL, &to));
	ASSERT_EQ(0, h_manager_create(devs[1], NULL, &from));
	ASSERT_EQ(0, h_stream_receiver_create(to, &attr, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(from, &seed, &s));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	EXPECT_LT(longest_call(s, r, 100), 3 * HT_SEC);
	EXPECT_EQ(NULL, devs[0]->watches);
	close(fd);
	ht_poll_begin(&poll);
	while (!devs[0]->watches && ht_poll_more(&poll))
		longest_call(s, r, 1);
	EXPECT_NE(NULL, devs[0]->watches);
	/* Now with what is offered already, and what is asked for again and again. */
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	EXPECT_LT(longest_call(s, r, 100), 3 * HT_SEC);
	close(fd);
	ht_poll_begin(&poll);
	while (s->buffer < attr.max_buffer_size && ht_poll_more(&poll))
		longest_call(s, r, 1);
	EXPECT_EQ(attr.max_buffer_size, s->buffer);
	h_stream_sender_close(s, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
	EXPECT_EQ(0, h_manager_destroy(to));
	EXPECT_EQ(0, h_manager_destroy(from));
	h_close(devs[0]);
	h_close(devs[1]);
}

/* A bell can be made later; until then the manager's own terminus nudges. */
TEST_F(segment, who_nudges_does_not_wait_for_the_tables)
{
	struct h_manager *m;
	struct ht_poll poll;
	struct h_dev *dev;
	int64_t took;
	int fd;

	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &m));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	took = -ht_now_ns();
	h__manager_nudge(m);
	took += ht_now_ns();
	EXPECT_LT(took, 3 * HT_SEC);
	EXPECT_EQ(NULL, m->bell);
	ht_poll_begin(&poll);
	while (!h_manager_poll(m) && ht_poll_more(&poll))
		;
	EXPECT_EQ(0, m->nudged);
	close(fd);
	h__manager_nudge(m);
	EXPECT_NE(NULL, m->bell);
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
}

static int no_watch(struct h_watch *w, const struct h_ticket *k, int fd,
		    uint64_t cookie)
{
	(void)w;
	(void)k;
	(void)fd;
	(void)cookie;
	return -ETIMEDOUT;
}

/* What has arrived is complete, whether members can be watched by now or not. */
TEST_F(segment, the_root_of_a_gather_does_not_wait_for_the_tables)
{
	const struct h_dev_ops *sound;
	struct h_manager *to, *from;
	struct h_gather_member *member;
	struct h_gather *root;
	struct h_dev *devs[2];
	struct h_dev_ops ops;
	struct h_seed seed;
	int64_t took;
	int fd;

	ASSERT_EQ(0, h_open(self->name, &devs[0]));
	ASSERT_EQ(0, h_open(self->name, &devs[1]));
	ASSERT_EQ(0, h_manager_create(devs[0], NULL, &to));
	ASSERT_EQ(0, h_manager_create(devs[1], NULL, &from));
	ASSERT_EQ(0, h_gather_create(to, 1, NULL, 8, &root));
	ASSERT_EQ(0, h_gather_seed(root, 0, &seed));
	ASSERT_EQ(0, h_gather_join(from, &seed, &member));
	ASSERT_EQ(0, h_gather_send(member, "01234567", 8, 20 * HT_SEC));
	sound = devs[0]->ops;
	ops = *sound;
	ops.watch = no_watch;
	devs[0]->ops = &ops;
	EXPECT_EQ(0, h_gather_receive(root, NULL, 20 * HT_SEC));
	devs[0]->ops = sound;
	ASSERT_EQ(0, h_gather_send(member, "01234567", 8, 20 * HT_SEC));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	took = -ht_now_ns();
	EXPECT_EQ(0, h_gather_receive(root, NULL, 20 * HT_SEC));
	took += ht_now_ns();
	EXPECT_LT(took, 3 * HT_SEC);
	EXPECT_EQ(NULL, devs[0]->watches);
	close(fd);
	EXPECT_EQ(-EBUSY, h_gather_receive(root, NULL, H_NOWAIT));
	EXPECT_NE(NULL, devs[0]->watches);
	EXPECT_EQ(0, h_gather_leave(member));
	EXPECT_EQ(0, h_gather_destroy(root));
	EXPECT_EQ(0, h_manager_destroy(to));
	EXPECT_EQ(0, h_manager_destroy(from));
	h_close(devs[0]);
	h_close(devs[1]);
}

static ino_t observed;
static unsigned int observed_locks;

/* In place of the C library's: whether the tables of a segment's file are ever taken. */
int fcntl(int fd, int cmd, ...)
{
	const struct flock *l;
	struct stat st;
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	l = arg;
	if (observed && cmd == F_OFD_SETLK && l->l_type == F_WRLCK && !l->l_start &&
	    !fstat(fd, &st) && st.st_ino == observed)
		observed_locks++;
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

static int run_to_join(pid_t pid)
{
	struct __ptrace_syscall_info info;
	int status;

	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD))
		return -1;
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid ||
		    !WIFSTOPPED(status) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
			return -1;
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_membarrier &&
		    info.entry.args[0] == MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
			return 0;
	}
}

/*
 * Of a process with threads that takes a grace period of the kernel: hundreds that start at
 * once take it at once, not one after the other.
 */
TEST_F(segment, who_joins_the_fence_keeps_nobody_from_the_tables)
{
	struct h_dev *dev;
	int status, fd;
	pid_t pid;

	ASSERT_EQ(0, h_open(self->name, &dev));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP))
			_exit(2);
		_exit(h_open(self->name, &dev) != 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(0, run_to_join(pid));
	fd = lock_tables(self);
	EXPECT_GE(fd, 0);
	close(fd);
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, pid, NULL, NULL));
	EXPECT_EQ(0, ht_reap(pid));
	h_close(dev);
}

/* Who is stopped while he sweeps must not keep others from a segment that is in use. */
TEST_F(segment, who_sweeps_does_not_lock_what_is_in_use)
{
	struct h_dev *dev, *other;
	char name[200];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "%s-other,size=4M", self->stem);
	ASSERT_EQ(0, h_open(self->name, &dev));
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, fstat(fd, &st));
	close(fd);
	observed = st.st_ino;
	ASSERT_EQ(0, h_open(name, &other));
	EXPECT_EQ(0, observed_locks);
	/* The observer is none that sees nothing. */
	fd = lock_tables(self);
	EXPECT_GE(fd, 0);
	EXPECT_EQ(1, observed_locks);
	close(fd);
	observed = 0;
	h_close(other);
	h_close(dev);
}

/*
 * As by one that was stopped between giving a file of huge pages its size and filling
 * it: where there is no more memory, to look into it must not end the process.
 */
TEST_F(segment, who_waits_for_who_makes_one_needs_no_memory)
{
	struct h_dev *dev;
	char path[200];
	pid_t pid;
	int fd;

	if (own_shm("1M"))
		SKIP(return, "no mount namespace to be had");
	path_of(self, path, sizeof(path));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ftruncate(fd, 16 << 20));
	close(fd);
	ASSERT_EQ(-ENOSPC, fill_shm());
	fd = lock_tables(self);
	ASSERT_GE(fd, 0);
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(fd);
		_exit(h_open(self->name, &dev) != -ENOSPC);
	}
	ht_sleep_ns(300 * HT_MS);
	close(fd);
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_EQ(0, files(self));
}

/* ---- signals -------------------------------------------------------------- */

static bool often_interrupted;
static int64_t fallocate_takes_ns;

/*
 * In place of the C library's: tmpfs of older kernels undoes all of it when a signal
 * comes that is not blocked.
 */
int posix_fallocate(int fd, off_t first, off_t length)
{
	sigset_t blocked;
	int err = 0;

	ht_sleep_ns(fallocate_takes_ns);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	if (often_interrupted && !sigismember(&blocked, SIGALRM))
		err = EINTR;
	else if (fallocate(fd, 0, first, length))
		err = errno;
	return err;
}

TEST_F(segment, signals_do_not_keep_a_segment_from_being_made)
{
	sigset_t blocked;
	struct h_dev *dev;

	often_interrupted = true;
	ASSERT_EQ(0, h_open(self->name, &dev));
	often_interrupted = false;
	/* They are let in again. */
	ASSERT_EQ(0, pthread_sigmask(SIG_SETMASK, NULL, &blocked));
	EXPECT_EQ(0, sigismember(&blocked, SIGALRM));
	h_close(dev);
}

/* Longer than the time that is given to who changes the tables of one that is there. */
TEST_F(segment, who_opens_waits_for_who_makes_a_large_one)
{
	struct ht_poll poll;
	struct h_dev *dev;
	int64_t began;
	pid_t pid;

	fallocate_takes_ns = 11 * HT_SEC;
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (h_open(self->name, &dev))
			_exit(1);
		h_close(dev);
		_exit(0);
	}
	ht_poll_begin(&poll);
	while (files(self) < 1 && ht_poll_more(&poll))
		;
	/* The file is there, and locked next. */
	ht_sleep_ns(100 * HT_MS);
	began = ht_now_ns();
	EXPECT_EQ(0, h_open(self->name, &dev));
	EXPECT_LT(10 * HT_SEC, ht_now_ns() - began);
	h_close(dev);
	EXPECT_EQ(0, ht_reap(pid));
}

/* ---- a child of its parent's number ---------------------------------------- */

/* The first process of a PID namespace, and its child, that of another one. */
static int close_as_same_number(const char *name)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	struct hamlyn_query query;
	struct place place;
	char *own;
	pid_t pid;

	if (getpid() != 1 || make_place(name, &place))
		return 1;
	if (unshare(CLONE_NEWPID))
		return 2;
	pid = fork();
	if (pid)
		return pid < 0 ? 3 : ht_reap(pid);
	/* Where the area was in the parent. */
	own = mmap(h_area_addr(place.attr.area), 4096, PROT_READ | PROT_WRITE,
		   flags, -1, 0);
	if (getpid() != 1 || own != h_area_addr(place.attr.area))
		_exit(4);
	if (h_query(place.dev, &query) != -ENODEV)
		_exit(5);
	h_close(place.dev);
	*own = 1;
	_exit(0);
}

TEST_F(segment, a_child_of_its_parents_number_keeps_its_own_memory)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		SKIP(return, "no PID namespace to be had");
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(close_as_same_number(self->name));
	EXPECT_EQ(0, ht_reap(pid));
}

/* ---- end points that are not made ------------------------------------------ */

static int no_end(struct h_slot *slot)
{
	(void)slot;
	return -ETIMEDOUT;
}

/* A peer was stopped after the slot was made: nothing more could be locked. */
TEST_F(segment, an_end_point_that_is_not_made_is_not_listed)
{
	struct h_manager *root, *manager;
	struct h_gather_member *member;
	struct h_dev *devs[2];
	struct h_dev_ops ops;
	const struct h_dev_ops *sound;
	struct h_gather *gather;
	struct h_seed seed;

	ASSERT_EQ(0, h_open(self->name, &devs[0]));
	ASSERT_EQ(0, h_open(self->name, &devs[1]));
	ASSERT_EQ(0, h_manager_create(devs[0], NULL, &root));
	ASSERT_EQ(0, h_manager_create(devs[1], NULL, &manager));
	ASSERT_EQ(0, h_gather_create(root, 1, NULL, 64, &gather));
	ASSERT_EQ(0, h_gather_seed(gather, 0, &seed));
	sound = devs[1]->ops;
	ops = *sound;
	ops.watch = no_watch;
	ops.slot_destroy = no_end;
	devs[1]->ops = &ops;
	ASSERT_EQ(-ETIMEDOUT, h_gather_join(manager, &seed, &member));
	devs[1]->ops = sound;
	ASSERT_EQ(0, h_gather_join(manager, &seed, &member));
	EXPECT_EQ(0, h_gather_leave(member));
	EXPECT_EQ(0, h_gather_destroy(gather));
	EXPECT_EQ(0, h_manager_destroy(manager));
	EXPECT_EQ(0, h_manager_destroy(root));
	h_close(devs[0]);
	h_close(devs[1]);
}

static int no_end_of_watch(struct h_watch *w)
{
	(void)w;
	return -ETIMEDOUT;
}

static int next_record(struct h_stream_receiver *r, struct h_manager *of_sender)
{
	struct h_record record;
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(of_sender);
		ret = h_stream_receive(r, &record, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	if (ret == 0)
		h_stream_release(r, &record);
	return ret;
}

/* While a peer is stopped a watch cannot end: it is still there, and ends later. */
TEST_F(segment, a_watch_that_does_not_end_yet_is_not_forgotten)
{
	struct h_stream_receiver *r;
	struct h_manager *to, *from;
	const struct h_dev_ops *sound;
	struct h_stream_sender *s;
	struct h_dev *devs[2];
	struct h_dev_ops ops;
	struct h_seed seed;

	ASSERT_EQ(0, h_open(self->name, &devs[0]));
	ASSERT_EQ(0, h_open(self->name, &devs[1]));
	ASSERT_EQ(0, h_manager_create(devs[0], NULL, &to));
	ASSERT_EQ(0, h_manager_create(devs[1], NULL, &from));
	ASSERT_EQ(0, h_stream_receiver_create(to, NULL, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(from, &seed, &s));
	ASSERT_EQ(2, h_stream_send(s, "hi", 2, H_NOWAIT));
	ASSERT_EQ(0, h_stream_flush(s, H_NOWAIT));
	ASSERT_EQ(0, next_record(r, from));
	ASSERT_NE(NULL, devs[0]->watches);
	sound = devs[0]->ops;
	ops = *sound;
	ops.unwatch = no_end_of_watch;
	devs[0]->ops = &ops;
	EXPECT_EQ(-ETIMEDOUT, h_stream_receiver_destroy(r));
	devs[0]->ops = sound;
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
	EXPECT_EQ(NULL, devs[0]->watches);
	h_stream_sender_close(s, H_NOWAIT);
	EXPECT_EQ(NULL, devs[1]->watches);
	EXPECT_EQ(0, h_manager_destroy(to));
	EXPECT_EQ(0, h_manager_destroy(from));
	h_close(devs[0]);
	h_close(devs[1]);
}

/* The slot that such a watch tells stays too: nobody else is told in its place. */
TEST_F(segment, a_slot_that_would_still_be_told_is_not_another_ones)
{
	struct h_stream_receiver *r;
	const struct h_dev_ops *sound;
	struct h_manager *to, *from;
	struct h_stream_sender *s;
	struct h_dev *devs[2];
	struct h_dev_ops ops;
	struct h_slot *slots;
	struct h_seed seed;

	ASSERT_EQ(0, h_open(self->name, &devs[0]));
	ASSERT_EQ(0, h_open(self->name, &devs[1]));
	ASSERT_EQ(0, h_manager_create(devs[0], NULL, &to));
	ASSERT_EQ(0, h_manager_create(devs[1], NULL, &from));
	ASSERT_EQ(0, h_stream_receiver_create(to, NULL, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(from, &seed, &s));
	slots = devs[1]->slots;
	ASSERT_NE(NULL, slots);
	sound = devs[1]->ops;
	ops = *sound;
	ops.unwatch = no_end_of_watch;
	devs[1]->ops = &ops;
	h_stream_sender_close(s, H_NOWAIT);
	devs[1]->ops = sound;
	EXPECT_NE(NULL, devs[1]->watches);
	EXPECT_EQ(slots, devs[1]->slots);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
	EXPECT_EQ(0, h_manager_destroy(to));
	h_manager_destroy(from);
	h_close(devs[0]);
	h_close(devs[1]);
}

/* ---- two threads of a manager ------------------------------------------------ */

struct set_up {
	struct h_manager *m;
	struct h_datagram_receiver *made;
	struct h_datagram_receiver *ended;
	void *memory;
	int ret;
};

static void *make_end_point(void *arg)
{
	struct set_up *s = arg;

	s->ret = h_datagram_receiver_create(s->m, NULL, &s->made);
	return NULL;
}

static void *end_end_point(void *arg)
{
	struct set_up *s = arg;

	s->ret = h_datagram_receiver_destroy(s->ended);
	return NULL;
}

static void *get_memory(void *arg)
{
	struct set_up *s = arg;

	s->ret = h_manager_alloc(s->m, 8 << 20, &s->memory);
	return NULL;
}

/* @result: of 10 ms, for what is there. Return: how long that and a dispatch took. */
static int64_t receive_beside(struct h_channel *c, struct h_manager *m, int *result)
{
	int64_t began = ht_now_ns();
	struct h_message message;

	*result = h_channel_receive(c, &message, 10 * HT_MS);
	if (*result == 0)
		h_channel_release(c, &message);
	h_manager_dispatch(m);
	return ht_now_ns() - began;
}

/* Its deadline holds although another thread of the manager waits for the tables. */
TEST_F(segment, who_receives_does_not_wait_for_who_sets_up)
{
	static void *(*const calls[])(void *) = {
		make_end_point, get_memory, end_end_point,
	};
	struct h_channel *ends[2];
	struct h_manager *managers[2];
	struct set_up s = {};
	pthread_t thread;
	struct h_dev *dev;
	int fd, result;
	unsigned int i;
	int64_t took;

	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &managers[0]));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &managers[1]));
	ASSERT_EQ(0, h_channel_pair(managers[0], managers[1], NULL, &ends[0], &ends[1]));
	s.m = managers[0];
	ASSERT_EQ(0, h_datagram_receiver_create(s.m, NULL, &s.ended));
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		fd = lock_tables(self);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, pthread_create(&thread, NULL, calls[i], &s));
		ht_sleep_ns(100 * HT_MS);
		ASSERT_EQ(0, h_channel_send(ends[1], "late", 4, H_NOWAIT));
		took = receive_beside(ends[0], managers[0], &result);
		EXPECT_EQ(0, result)
			TH_LOG("call %u", i);
		EXPECT_LT(took, 3 * HT_SEC)
			TH_LOG("call %u", i);
		close(fd);
		pthread_join(thread, NULL);
		EXPECT_EQ(0, s.ret);
	}
	h_manager_free(managers[0], s.memory);
	EXPECT_EQ(0, h_datagram_receiver_destroy(s.made));
	h_channel_close(ends[0], H_NOWAIT);
	h_channel_close(ends[1], H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(managers[0]));
	EXPECT_EQ(0, h_manager_destroy(managers[1]));
	h_close(dev);
}

struct counter {
	struct h_receiver r;
	uint64_t last;
	unsigned int count;
};

static void count(struct h_receiver *r, const struct hamlyn_nq_entry *entry)
{
	struct counter *c = (struct counter *)r;

	c->last = entry->data;
	c->count++;
}

static bool counted(const struct h_receiver *r)
{
	return ((const struct counter *)r)->count;
}

static const struct h_receiver_class counter_class = {
	.name = "counter",
	.process_arrival = count,
	.pending = counted,
};

static int tell(struct h_manager *from, const struct counter *c, uint64_t word)
{
	struct h_ticket ticket;
	int err = h_slot_ticket(c->r.slot, 0, 0, HAMLYN_META_FAST, &ticket);
	int64_t ret;

	if (err)
		return err;
	ret = h_send_word(h_manager_terminus(from), &ticket, word);
	if (ret >= 0)
		ret = h_send_wait(h_manager_terminus(from), ret, ht_patience_ns());
	return ret == 0 ? 0 : -1;
}

static const struct h_dev_ops *sound_ops;
static int slot_ends, let_go, is_held;

static int slow_end(struct h_slot *slot)
{
	int err = sound_ops->slot_destroy(slot);

	__atomic_store_n(&slot_ends, 1, __ATOMIC_SEQ_CST);
	return err;
}

static int late_no_end(struct h_slot *slot)
{
	(void)slot;
	__atomic_store_n(&slot_ends, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&let_go, __ATOMIC_SEQ_CST))
		ht_sleep_ns(HT_MS);
	return -ETIMEDOUT;
}

static bool comes(const int *flag)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static void hold_here(int sig)
{
	(void)sig;
	__atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&let_go, __ATOMIC_SEQ_CST))
		ht_sleep_ns(HT_MS);
}

static void *end_counter(void *arg)
{
	return (void *)(intptr_t)h_receiver_exit(arg);
}

/* The one that was used last comes last: the next slot is that of @number. */
static int use_up_numbers(struct h_dev *dev, uint32_t number)
{
	struct h_slot_attr attr = {};
	struct h_slot *slot;
	int err = h_area_alloc(dev, 4096, &attr.area);

	do {
		if (!err)
			err = h_slot_create(dev, &attr, &slot);
	} while (!err && h_slot_number(slot) != number);
	return err ? err : h_slot_destroy(slot);
}

/*
 * Whose slot has ended, and who was held up before he took what was in the NQ of it,
 * meets the next one of its number there: it has nothing of the former one, and keeps
 * what it gets.
 */
TEST_F(segment, the_next_slot_of_a_number_has_nothing_of_the_former_one)
{
	struct counter former, next;
	struct h_manager *to, *from;
	struct h_dev *devs[3];
	struct h_dev_ops ops;
	uint32_t number;
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, h_open(self->name, &devs[0]));
	ASSERT_EQ(0, h_open(self->name, &devs[1]));
	ASSERT_EQ(0, h_open(self->name, &devs[2]));
	ASSERT_EQ(0, h_manager_create(devs[0], NULL, &to));
	ASSERT_EQ(0, h_manager_create(devs[1], NULL, &from));
	memset(&former, 0, sizeof(former));
	memset(&next, 0, sizeof(next));
	ASSERT_EQ(0, h_receiver_init(&former.r, to, &counter_class, &(struct h_receiver_attr) {}));
	number = h_slot_number(former.r.slot);
	ASSERT_EQ(0, tell(from, &former, 1));
	sound_ops = devs[0]->ops;
	ops = *sound_ops;
	ops.slot_destroy = slow_end;
	devs[0]->ops = &ops;
	signal(SIGUSR1, hold_here);
	h__polling_lock(to);
	ASSERT_EQ(0, pthread_create(&thread, NULL, end_counter, &former.r));
	ASSERT_TRUE(comes(&slot_ends));
	devs[0]->ops = sound_ops;
	ASSERT_EQ(0, use_up_numbers(devs[2], number));
	ASSERT_EQ(0, pthread_kill(thread, SIGUSR1));
	ASSERT_TRUE(comes(&is_held));
	h__polling_unlock(to, false);
	ASSERT_EQ(0, h_receiver_init(&next.r, to, &counter_class, &(struct h_receiver_attr) {}));
	ASSERT_EQ(number, h_slot_number(next.r.slot));
	while (h_manager_poll(to))
		;
	EXPECT_EQ(0, next.count);
	ASSERT_EQ(0, tell(from, &next, 2));
	__atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, &ret);
	EXPECT_EQ(0, (intptr_t)ret);
	ASSERT_EQ(0, tell(from, &next, 3));
	while (h_manager_poll(to))
		;
	EXPECT_EQ(2, next.count);
	EXPECT_EQ(3, next.last);
	EXPECT_EQ(0, h_receiver_exit(&next.r));
	EXPECT_EQ(0, h_manager_destroy(to));
	EXPECT_EQ(0, h_manager_destroy(from));
	h_close(devs[0]);
	h_close(devs[1]);
	h_close(devs[2]);
}

/* It was not ended, and has what came meanwhile. */
TEST_F(segment, what_arrives_while_an_end_point_is_not_ended_is_not_lost)
{
	struct h_manager *to, *from;
	struct h_dev *devs[2];
	struct counter counter;
	struct h_dev_ops ops;
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, h_open(self->name, &devs[0]));
	ASSERT_EQ(0, h_open(self->name, &devs[1]));
	ASSERT_EQ(0, h_manager_create(devs[0], NULL, &to));
	ASSERT_EQ(0, h_manager_create(devs[1], NULL, &from));
	memset(&counter, 0, sizeof(counter));
	ASSERT_EQ(0, h_receiver_init(&counter.r, to, &counter_class, &(struct h_receiver_attr) {}));
	sound_ops = devs[0]->ops;
	ops = *sound_ops;
	ops.slot_destroy = late_no_end;
	devs[0]->ops = &ops;
	ASSERT_EQ(0, pthread_create(&thread, NULL, end_counter, &counter.r));
	ASSERT_TRUE(comes(&slot_ends));
	ASSERT_EQ(0, tell(from, &counter, 1));
	EXPECT_EQ(1, h_manager_poll(to));
	__atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, &ret);
	EXPECT_EQ(-ETIMEDOUT, (intptr_t)ret);
	devs[0]->ops = sound_ops;
	EXPECT_EQ(1, counter.count);
	EXPECT_EQ(0, h_receiver_exit(&counter.r));
	EXPECT_EQ(0, h_manager_destroy(to));
	EXPECT_EQ(0, h_manager_destroy(from));
	h_close(devs[0]);
	h_close(devs[1]);
}

/* ---- what cannot be made ---- */

/* What a child of limited means gets; its own process, as limits are not given back. */
struct attempt {
	int ret;
	int at_end;		/* status of waitpid() */
	char text[HAMLYN_EXPLAIN_BYTES];
};

static struct attempt attempt(const char *name, int (*limit)(const void *), const void *arg)
{
	struct attempt a = { .ret = 1 };
	struct h_dev *dev;
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return a;
	pid = fork();
	if (!pid) {
		a.ret = limit(arg) ? 2 : h_open(name, &dev);
		h_explain(NULL, a.text, sizeof(a.text));
		ht_write_all(ends[1], &a, sizeof(a));
		_exit(0);
	}
	waitpid(pid, &a.at_end, 0);
	close(ends[1]);
	if (pid > 0 && !a.at_end) {
		int status = a.at_end;

		if (read(ends[0], &a, sizeof(a)) != sizeof(a))
			a.ret = 1;
		a.at_end = status;
	}
	close(ends[0]);
	return a;
}

static int file_of(const char *name, struct stat *st)
{
	char path[300];

	snprintf(path, sizeof(path), SHM "/hamlyn-%u-%s", ht_segment_uid(), name + strlen("shm:"));
	return lstat(path, st);
}

static int limit_files(const void *arg)
{
	const struct rlimit limit = { 1 << 20, 1 << 20 };

	(void)arg;
	return setrlimit(RLIMIT_FSIZE, &limit);
}

TEST_F(segment, a_limit_of_files_is_an_error_and_no_signal)
{
	struct attempt a = attempt(self->name, limit_files, NULL);
	struct stat st;

	ASSERT_EQ(0, a.at_end);
	EXPECT_EQ(-EFBIG, a.ret);
	EXPECT_NE(NULL, strstr(a.text, "RLIMIT_FSIZE"));
	EXPECT_EQ(-1, file_of(self->name, &st));
}

static int strange_umask(const void *arg)
{
	(void)arg;
	umask(0777);
	return 0;
}

TEST_F(segment, a_name_is_of_use_whatever_umask_there_was)
{
	struct h_dev *dev, *other;
	struct stat st;

	if (!geteuid())
		ASSERT_EQ(0, seteuid(12345));
	strange_umask(NULL);
	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, file_of(self->name, &st));
	EXPECT_EQ(0600, st.st_mode & 0777);
	EXPECT_EQ(0, h_open(self->name, &other));
	h_close(other);
	h_close(dev);
}

/* As older versions have left them */
TEST_F(segment, a_file_without_rights_of_its_owner_is_taken)
{
	struct h_dev *dev;
	char path[300];
	int fd;

	if (!geteuid())
		ASSERT_EQ(0, seteuid(12345));
	snprintf(path, sizeof(path), SHM "/hamlyn-%u-%s", ht_segment_uid(),
		 self->name + strlen("shm:"));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0);
	ASSERT_LE(0, fd);
	close(fd);
	EXPECT_EQ(0, h_open(self->name, &dev));
	h_close(dev);
}

/* Of version 1, as the machines of these tests have them, or 2. Return: 0, or -1: none to be had */
static int enter_cgroup(const void *arg)
{
	static const char *const limits[] = { "memory.limit_in_bytes", "memory.max" };
	char path[400], number[32];
	int i;

	snprintf(number, sizeof(number), "%d", getpid());
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", (const char *)arg, limits[i]);
		if (!write_text(path, "16777216"))
			break;
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", (const char *)arg);
	return i < 2 && !write_text(path, number) ? 0 : -1;
}

static int make_cgroup(char *path, size_t size)
{
	char line[300], *own = NULL;
	FILE *file = fopen("/proc/self/cgroup", "re");

	while (file && !own && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		own = strstr(line, ":memory:");
		own = own ? own + strlen(":memory:") : NULL;
	}
	if (file)
		fclose(file);
	snprintf(path, size, "/sys/fs/cgroup%s%s/hamlyn-test-%d", own ? "/memory" : "",
		 own ? own : "", getpid());
	return mkdir(path, 0700);
}

TEST_F(segment, a_small_memory_cgroup_is_an_error_and_no_end)
{
	char path[400];
	struct attempt a;
	struct stat st;

	if (make_cgroup(path, sizeof(path)))
		SKIP(return, "no memory cgroup can be made here");
	a = attempt(self->name, enter_cgroup, path);
	rmdir(path);
	ASSERT_EQ(0, a.at_end);
	if (a.ret == 2)
		SKIP(return, "no memory cgroup can be limited here");
	EXPECT_EQ(-ENOMEM, a.ret);
	EXPECT_NE(NULL, strstr(a.text, "memory.max"));
	EXPECT_EQ(-1, file_of(self->name, &st));
}

TEST_F(segment, what_is_wrong_is_said_to_who_has_no_device)
{
	static const struct {
		const char *name;
		int err;
		const char *text;
	} wrong[] = {
		{ "shm:a b", -EINVAL, "letters, digits" },
		{ "shm:", -EINVAL, "1 to 64" },
		{ "shm:x,fly=1", -EINVAL, "\"fly=1\"" },
		{ "shm:x,size=1M", -EINVAL, "size=4M to 1024G" },
		{ "shm:x,size=2048G", -EINVAL, "size=4M to 1024G" },
		{ "shm:x,size=8M,size=8M,size=8M,size=8M,size=8M,size=8M,size=8M,size=8M,size=8M,"
		  "size=8M,size=8M,size=8M,size=8M,size=8M,size=8M,size=8M,size=8M", -EINVAL,
		  "more than 127" },
		{ "/dev/null", -EINVAL, "/dev/hamlynN" },
		{ "/dev/hamlyn250", -ENOENT, "is the module hamlyn loaded?" },
		{ "shm:x,size=512G", -ENOSPC, "make it larger" },
	};
	char text[HAMLYN_EXPLAIN_BYTES];
	struct h_dev *dev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		EXPECT_EQ(wrong[i].err, h_open(wrong[i].name, &dev));
		EXPECT_EQ(0, h_explain(NULL, text, sizeof(text)));
		EXPECT_NE(NULL, strstr(text, wrong[i].text)) {
			TH_LOG("%s: \"%s\"", wrong[i].name, text);
		}
		/* Once */
		h_explain(NULL, text, sizeof(text));
		EXPECT_STREQ("", text);
	}
	EXPECT_EQ(-ENOENT, h_open("/dev/hamlyn250", &dev));
	EXPECT_EQ(0, h_open(self->name, &dev));
	h_explain(NULL, text, sizeof(text));
	EXPECT_STREQ("", text);
	h_close(dev);
}

TEST_F(segment, a_segment_of_another_version_is_said_to_be_one)
{
	char path[300], text[HAMLYN_EXPLAIN_BYTES];
	struct h_dev *dev, *other;
	int fd;

	ASSERT_EQ(0, h_open(self->name, &dev));
	snprintf(path, sizeof(path), SHM "/hamlyn-%u-%s", ht_segment_uid(),
		 self->name + strlen("shm:"));
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	/* Its header is in the first page. */
	EXPECT_EQ(0, ftruncate(fd, 4096 * 1000));
	close(fd);
	EXPECT_EQ(-EPROTO, h_open(self->name, &other));
	h_explain(NULL, text, sizeof(text));
	EXPECT_NE(NULL, strstr(text, "take another name"));
	unlink(path);
	/* Not closed: what it has mapped is gone. */
}

TEST_HARNESS_MAIN
