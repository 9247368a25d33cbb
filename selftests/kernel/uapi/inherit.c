// SPDX-License-Identifier: GPL-2.0-only
/*
 * What goes over to others with a descriptor: by fork, by exec, through a
 * socket, by a change of user; and what does not. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* The image that exec starts: this program, with its job in the environment. */
#define JOB	"HAMLYN_TEST_JOB"

/* ---- the other image ---------------------------------------------------- */

static bool any(int fd)
{
	return fd >= 0;
}

static bool stays_open(int fd)
{
	return !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* How many descriptors of this process are of the device or tickets? */
static int count_descriptors(bool (*counts)(int fd))
{
	DIR *dir = opendir("/proc/self/fd");
	char path[300], target[256];
	const struct dirent *e;
	ssize_t n;
	int count = 0;

	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		if (strstr(target, "hamlyn") && counts(atoi(e->d_name)))
			count++;
	}
	if (dir)
		closedir(dir);
	return count;
}

/* Is anything of the device mapped? */
static bool anything_mapped(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (file && fgets(line, sizeof(line), file))
		found |= strstr(line, "/dev/hamlyn") != NULL;
	if (file)
		fclose(file);
	return found;
}

/* With the descriptor that was left open: it is the context, no less. */
static int use_inherited(const char *job)
{
	struct party p = { 0 };
	struct hamlyn_query query;
	void *map;

	if (sscanf(job, "use %d %u %u %ju", &p.fd, &p.slot.slot, &p.area.area,
		   (uintmax_t *)&p.area.mmap_offset) != 4)
		return 1;
	if (anything_mapped())
		return 2;
	if (ht_raw_query(p.fd, &query))
		return 3;
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd,
		   (off_t)p.area.mmap_offset);
	if (map == MAP_FAILED || memcmp(map, "left here", 9))
		return 4;
	if (rekey(&p, 0))
		return 5;
	return ht_raw_id(p.fd, HAMLYN_IOC_SLOT_DESTROY, p.slot.slot) ? 6 : 0;
}

static __attribute__((constructor)) void other_image(void)
{
	const char *job = getenv(JOB);

	if (!job)
		return;
	if (!strcmp(job, "count"))
		_exit(count_descriptors(any));
	_exit(use_inherited(job));
}

/* Exec this program with @job; what it says. */
static int exec_self(const char *job)
{
	pid_t pid = ht_fork();

	if (!pid) {
		setenv(JOB, job, 1);
		execl("/proc/self/exe", "inherit", NULL);
		_exit(99);
	}
	return pid < 0 ? -errno : ht_reap(pid);
}

/* ---- exec --------------------------------------------------------------- */

FIXTURE(inherit) {
	struct party p;
};

FIXTURE_SETUP(inherit)
{
	ASSERT_EQ(0, party_open(&self->p));
}

FIXTURE_TEARDOWN(inherit)
{
	party_close(&self->p);
}

/* Whoever opens the device without O_CLOEXEC hands it to what he executes. */
TEST_F(inherit, a_descriptor_left_open_is_the_context_after_exec)
{
	char job[128];

	memcpy(self->p.data, "left here", 9);
	ASSERT_EQ(0, fcntl(self->p.fd, F_SETFD, 0));
	snprintf(job, sizeof(job), "use %d %u %u %ju", self->p.fd,
		 self->p.slot.slot, self->p.area.area,
		 (uintmax_t)self->p.area.mmap_offset);
	EXPECT_EQ(0, exec_self(job));
	/* It was the same slot. */
	EXPECT_EQ(-ENOENT, ht_raw_id(self->p.fd, HAMLYN_IOC_SLOT_DESTROY,
				     self->p.slot.slot));
}

TEST_F(inherit, the_library_leaves_nothing_open_over_exec)
{
	struct h_slot_attr attr = { .length = 1 };
	struct ht_pair pair;
	int fd;

	party_close(&self->p);
	ASSERT_EQ(0, ht_pair_open(&pair, &(struct ht_pair_attr){ 0 }));
	ASSERT_EQ(0, h_area_alloc(pair.rx, PAGE, &attr.area));
	ASSERT_EQ(0, h_slot_ticket_fd(pair.slot, 0, 0, &fd));
	EXPECT_LE(2, count_descriptors(any));
	/* Not by way of fork(), of which the library knows, either. */
	EXPECT_EQ(0, count_descriptors(stays_open));
	EXPECT_EQ(0, exec_self("count"));
	ht_pair_close(&pair);
	close(fd);
	ASSERT_EQ(0, party_open(&self->p));
}

TEST_F(inherit, a_ticket_does_not_outlive_exec_unless_it_is_meant_to)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg),
					    .slot = self->p.slot.slot };

	ASSERT_EQ(0, fcntl(self->p.fd, F_SETFD, FD_CLOEXEC));
	ASSERT_EQ(0, ht_raw(self->p.fd, HAMLYN_IOC_TICKET_CREATE, &arg));
	EXPECT_EQ(0, exec_self("count"));
	ASSERT_EQ(0, fcntl(arg.fd, F_SETFD, 0));
	EXPECT_EQ(1, exec_self("count"));
	close(arg.fd);
}

/* ---- change of user ----------------------------------------------------- */

#define MOST	65536

static int take_slots(const struct party *p)
{
	struct hamlyn_slot_create slot;
	int n, ret = 0;

	for (n = 0; n < MOST; n++) {
		ret = ht_raw_slot_create(p->fd, p->area.area, 1, HAMLYN_NONE,
					 &slot);
		if (ret)
			break;
	}
	return ret == -EDQUOT && n ? 0 : -1;
}

static int take_one(void *arg)
{
	struct party p;

	(void)arg;
	return party_open(&p) == 0 ? 0 : 1;
}

/* Opened as one user, then become another: the limits are the opener's. */
static int take_all_and_turn(unsigned int opener, unsigned int later)
{
	struct party p;

	if (setresgid(opener, opener, opener) ||
	    setresuid(opener, opener, 0))
		return 1;
	/* Objects count at the user who was effective when it was opened. */
	if (party_open(&p))
		return 2;
	if (setresuid(0, 0, 0) || become(later))
		return 3;
	if (take_slots(&p))
		return 4;
	/* The later user has all that is his, the opener nothing. */
	if (take_one(NULL))
		return 5;
	return 0;
}

static int hold_all(unsigned int opener, unsigned int later, int out)
{
	int ret = take_all_and_turn(opener, later);

	if (ret)
		return ret;
	if (write(out, "x", 1) == 1)
		pause();
	return 9;
}

TEST_F(inherit, limits_are_of_the_user_who_opened)
{
	unsigned int opener = somebody(0), later = somebody(1);
	int pipefd[2];
	pid_t pid;
	char byte;

	if (self->p.query.max_slots > MOST)
		SKIP(return, "too many slots to take them all");
	ASSERT_EQ(0, pipe(pipefd));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(hold_all(opener, later, pipefd[1]));
	close(pipefd[1]);
	ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1)) {
		TH_LOG("step %d", ht_reap(pid));
	}
	EXPECT_EQ(0, as(later, take_one, NULL));
	EXPECT_EQ(1, as(opener, take_one, NULL));
	kill(pid, SIGKILL);
	ht_reap(pid);
	EXPECT_EQ(0, as(opener, take_one, NULL));
}

/* ---- looking into others ------------------------------------------------ */

/* A process of another user that has the device mapped, and waits. */
static pid_t start_victim(unsigned int uid, void **data)
{
	int pipefd[2];
	pid_t pid;

	if (pipe(pipefd))
		return -1;
	pid = ht_fork();
	if (!pid) {
		struct party p;

		if (become(uid) || party_open(&p))
			_exit(1);
		memcpy(p.data, "secret", 6);
		if (write(pipefd[1], &p.data, sizeof(p.data)) ==
		    sizeof(p.data))
			pause();
		_exit(2);
	}
	close(pipefd[1]);
	if (ht_read_all(pipefd[0], data, sizeof(*data)))
		pid = -1;
	close(pipefd[0]);
	return pid;
}

struct victim {
	pid_t pid;
	void *data;
};

static int look_into(void *arg)
{
	const struct victim *victim = arg;
	char bytes[8] = "";
	struct iovec to = { bytes, 6 };
	struct iovec from = { victim->data, 6 };
	char path[64];
	DIR *dir;

	if (process_vm_readv(victim->pid, &to, 1, &from, 1, 0) >= 0)
		return 1;
	if (process_vm_writev(victim->pid, &to, 1, &from, 1, 0) >= 0)
		return 2;
	if (ptrace(PTRACE_ATTACH, victim->pid, NULL, NULL) >= 0)
		return 3;
	snprintf(path, sizeof(path), "/proc/%d/mem", victim->pid);
	if (open(path, O_RDONLY) >= 0)
		return 4;
	snprintf(path, sizeof(path), "/proc/%d/map_files", victim->pid);
	dir = opendir(path);
	if (dir && readdir(dir))
		return 5;
	snprintf(path, sizeof(path), "/proc/%d/fd/3", victim->pid);
	return open(path, O_RDWR) >= 0 ? 6 : 0;
}

TEST_F(inherit, others_mappings_are_others)
{
	struct victim victim;

	victim.pid = start_victim(somebody(2), &victim.data);
	ASSERT_LT(0, victim.pid);
	EXPECT_EQ(0, as(somebody(3), look_into, &victim));
	kill(victim.pid, SIGKILL);
	ht_reap(victim.pid);
}

TEST_HARNESS_MAIN
