// SPDX-License-Identifier: GPL-2.0-only
/*
 * The least that a process may find around it: an embedded device, and who listens on a
 * path, work with it, or say by a true errno and in words what is missing, and leave
 * nothing behind. Each surroundings are a child's, in a mount namespace of its own.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <hamlyn/channel.h>
#include <hamlyn/rendezvous.h>

#define SHM		"/dev/shm"
#define NAME		"surroundings"
#define SPEC		"shm:" NAME ",size=4M"
#define NOBODY		65534
#define MOST_FDS	64
#define CANNOT_TELL	1	/* instead of a result: these could not be made */

/* What a child has to say. */
struct outcome {
	int ret;
	int left;		/* files of the segment */
	char at[24];		/* the call that failed */
	char text[HAMLYN_EXPLAIN_BYTES];
};

static bool said(const struct outcome *o, const char *words)
{
	if (strstr(o->text, words))
		return true;
	fprintf(stderr, "# \"%s\" is not in: %s\n", words, o->text);
	return false;
}

/* ---- what is done in them ---- */

static int files_left(void)
{
	DIR *dir = opendir(SHM);
	struct dirent *e;
	int n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += strstr(e->d_name, NAME) != NULL;
	closedir(dir);
	return n;
}

static int failed(struct outcome *o, const char *at, struct h_dev *dev, int ret)
{
	snprintf(o->at, sizeof(o->at), "%s", at);
	h_explain(dev, o->text, sizeof(o->text));
	return ret;
}

static int talk_over(struct outcome *o, struct h_dev *dev, struct h_manager *m)
{
	struct h_channel *a, *b;
	int ret = h_channel_pair(m, m, NULL, &a, &b);

	if (ret)
		return failed(o, "h_channel_pair", dev, ret);
	ret = ht_pass_word(a, b);
	if (ret)
		failed(o, "talk", dev, ret);
	h_channel_close(a, ht_patience_ns());
	h_channel_close(b, ht_patience_ns());
	return ret;
}

static int talk_on(struct outcome *o, struct h_dev *dev)
{
	struct h_manager *m;
	int ret = h_manager_create(dev, NULL, &m);

	if (ret)
		return failed(o, "h_manager_create", dev, ret);
	ret = talk_over(o, dev, m);
	h_manager_destroy(m);
	return ret;
}

static int use(struct outcome *o)
{
	struct h_dev *dev;
	int ret = h_open(SPEC, &dev);

	if (ret)
		return failed(o, "h_open", NULL, ret);
	ret = talk_on(o, dev);
	h_close(dev);
	return ret;
}

/* ---- surroundings ---- */

static int own_mounts(void)
{
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ?
	       CANNOT_TELL : 0;
}

static int tmpfs(const char *where, const char *options)
{
	return own_mounts() || mount("tmpfs", where, "tmpfs", 0, options) ? CANNOT_TELL : 0;
}

static int nothing_in_dev(void)
{
	return tmpfs("/dev", "size=64k");
}

static int shm_read_only(void)
{
	return tmpfs(SHM, "size=64m") ||
	       mount(NULL, SHM, NULL, MS_REMOUNT | MS_RDONLY, NULL) ? CANNOT_TELL : 0;
}

static int shm_tiny(void)
{
	return tmpfs(SHM, "size=1m");
}

static int shm_just_enough(void)
{
	return tmpfs(SHM, "size=4m");
}

static int shm_full(void)
{
	char page[4096] = { 1 };
	int fd;

	if (tmpfs(SHM, "size=8m"))
		return CANNOT_TELL;
	fd = open(SHM "/filler", O_CREAT | O_WRONLY, 0600);
	while (write(fd, page, sizeof(page)) > 0)
		;
	return close(fd) ? CANNOT_TELL : 0;
}

/* The directory itself is one. */
static int shm_without_inodes(void)
{
	return tmpfs(SHM, "size=64m,nr_inodes=1");
}

static int shm_for_root_only(void)
{
	return tmpfs(SHM, "size=64m,mode=755") || setresgid(NOBODY, NOBODY, NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY) ? CANNOT_TELL : 0;
}

static int shm_of_no_use_for_programs(void)
{
	return tmpfs(SHM, "size=64m") ||
	       mount(NULL, SHM, NULL, MS_REMOUNT | MS_NOEXEC | MS_NOSUID | MS_NODEV, NULL) ?
	       CANNOT_TELL : 0;
}

static int no_proc_no_sys(void)
{
	return tmpfs("/proc", "size=64k") || mount("tmpfs", "/sys", "tmpfs", 0, "size=64k") ?
	       CANNOT_TELL : 0;
}

static int an_empty_root(void)
{
	return tmpfs("/mnt", "size=64k") || chroot("/mnt") || chdir("/") ? CANNOT_TELL : 0;
}

static int limit(int what, rlim_t to)
{
	const struct rlimit limit = { to, to };

	return setrlimit(what, &limit) ? CANNOT_TELL : 0;
}

static int nothing_allowed(void)
{
	return limit(RLIMIT_MEMLOCK, 0) || limit(RLIMIT_CORE, 0) || limit(RLIMIT_NICE, 0) ||
	       limit(RLIMIT_RTPRIO, 0) || limit(RLIMIT_MSGQUEUE, 0) ||
	       limit(RLIMIT_SIGPENDING, 0) || limit(RLIMIT_LOCKS, 0);
}

static int no_rights_at_all(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ||
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ?
	       CANNOT_TELL : 0;
}

static int little_address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (!f)
		return CANNOT_TELL;
	if (fscanf(f, "%lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return !pages || limit(RLIMIT_AS, pages * 4096 + (1 << 20)) ? CANNOT_TELL : 0;
}

/* ---- children in them ---- */

static void in_child(int (*make)(void), int (*act)(struct outcome *), struct outcome *o)
{
	o->ret = make();
	if (!o->ret)
		o->ret = act(o);
	o->left = files_left();
}

/* Return: what @act did with what @make left it, or CANNOT_TELL. */
static struct outcome in(int (*make)(void), int (*act)(struct outcome *))
{
	struct outcome o = { .ret = CANNOT_TELL };
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return o;
	pid = ht_fork();
	if (!pid) {
		close(ends[0]);
		in_child(make, act, &o);
		_exit(ht_write_all(ends[1], &o, sizeof(o)) ? 1 : 0);
	}
	close(ends[1]);
	if (ht_read_all(ends[0], &o, sizeof(o)))
		o.ret = -ECHILD;
	close(ends[0]);
	if (pid < 0 || ht_reap(pid))
		o.ret = -ECHILD;
	return o;
}

static int none(void)
{
	return 0;
}

/* Is this one who may have a mount namespace of his own? */
static bool may_mount(void)
{
	return in(own_mounts, use).ret != CANNOT_TELL;
}

FIXTURE(surroundings) {};

FIXTURE_SETUP(surroundings)
{
	struct outcome o = in(none, use);

	/* Else nothing below says anything. */
	ASSERT_EQ(0, o.ret) {
		TH_LOG("%s: %s", o.at, o.text);
	}
}

FIXTURE_TEARDOWN(surroundings) {}

/* ---- those that it works in ---- */

static const struct {
	const char *name;
	int (*make)(void);
} enough[] = {
	{ "a /dev/shm of the segment's size", shm_just_enough },
	{ "a /dev/shm noexec, nosuid, nodev", shm_of_no_use_for_programs },
	{ "no /proc, no /sys", no_proc_no_sys },
	{ "limits of nothing", nothing_allowed },
	{ "no rights", no_rights_at_all },
};

TEST_F(surroundings, that_are_enough)
{
	unsigned int i;

	if (!may_mount())
		SKIP(return, "mount namespaces are refused");
	for (i = 0; i < sizeof(enough) / sizeof(*enough); i++) {
		struct outcome o = in(enough[i].make, use);

		EXPECT_EQ(0, o.ret) {
			TH_LOG("%s: %s: %s", enough[i].name, o.at, o.text);
		}
		EXPECT_EQ(0, o.left);
	}
}

/* ---- those that it does not work in ---- */

static const struct {
	const char *name;
	int (*make)(void);
	int ret;
	const char *words;
} lacking[] = {
	{ "an empty /dev", nothing_in_dev, -ENOENT, "not there, or not mounted" },
	{ "a /dev/shm that is read-only", shm_read_only, -EROFS, "read-only" },
	{ "a /dev/shm of 1 MiB", shm_tiny, -ENOSPC, "has no room" },
	{ "a /dev/shm that is full", shm_full, -ENOSPC, "has no room" },
	{ "a /dev/shm without an inode", shm_without_inodes, -ENOSPC, "full" },
	{ "a /dev/shm of root's", shm_for_root_only, -EACCES, "may not open or make" },
	{ "an empty root", an_empty_root, -ENOENT, "not there, or not mounted" },
	{ "little address space", little_address_space, -ENOMEM, "" },
};

TEST_F(surroundings, that_are_not_enough)
{
	unsigned int i;

	if (!may_mount())
		SKIP(return, "mount namespaces are refused");
	for (i = 0; i < sizeof(lacking) / sizeof(*lacking); i++) {
		struct outcome o = in(lacking[i].make, use);

		EXPECT_EQ(lacking[i].ret, o.ret) {
			TH_LOG("%s: %s: %s", lacking[i].name, o.at, o.text);
		}
		EXPECT_TRUE(*o.text && said(&o, lacking[i].words)) {
			TH_LOG("%s: what is said", lacking[i].name);
		}
		EXPECT_EQ(0, o.left) {
			TH_LOG("%s: files", lacking[i].name);
		}
	}
}

/* ---- descriptors ---- */

static rlim_t descriptors;

static int few_descriptors(void)
{
	return limit(RLIMIT_NOFILE, descriptors);
}

static int listen_and_call(struct outcome *o, struct h_dev *dev, struct h_manager *m)
{
	struct h_listener *listener;
	struct h_channel *a;
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "@hamlyn-" NAME "-%d", getpid());
	ret = h_listener_create(path, NULL, &listener);
	if (ret)
		return failed(o, "h_listener_create", NULL, ret);
	ret = h_manager_fd(m);
	if (ret < 0) {
		failed(o, "h_manager_fd", dev, ret);
	} else {
		ret = h_channel_connect(m, "@hamlyn-nobody", NULL, &a, H_NOWAIT);
		ret = ret == -ECONNREFUSED ? 0 : failed(o, "h_channel_connect", dev, ret);
	}
	if (!ret)
		ret = talk_over(o, dev, m);
	h_listener_destroy(listener);
	return ret;
}

static int serve(struct outcome *o)
{
	struct h_manager *m;
	struct h_dev *dev;
	int ret = h_open(SPEC, &dev);

	if (ret)
		return failed(o, "h_open", NULL, ret);
	ret = h_manager_create(dev, NULL, &m);
	if (ret) {
		failed(o, "h_manager_create", dev, ret);
	} else {
		ret = listen_and_call(o, dev, m);
		h_manager_destroy(m);
	}
	h_close(dev);
	return ret;
}

/* However many are left: one more, and it gets further, until it works. */
TEST_F(surroundings, of_few_descriptors)
{
	struct outcome o = { .ret = -EMFILE };
	unsigned int refused = 0;

	for (descriptors = 3; o.ret && descriptors < MOST_FDS; descriptors++) {
		o = in(few_descriptors, serve);
		if (!o.ret)
			break;
		refused++;
		EXPECT_EQ(-EMFILE, o.ret) {
			TH_LOG("%d descriptors: %s: %s", (int)descriptors, o.at, o.text);
		}
		EXPECT_TRUE(said(&o, "descriptor")) {
			TH_LOG("%d descriptors: %s", (int)descriptors, o.at);
		}
	}
	EXPECT_EQ(0, o.ret);
	EXPECT_LT(2, refused);
	TH_LOG("from %d descriptors on", (int)descriptors);
}

/*
 * A program that was started with its standard descriptors closed still prints: not into
 * a segment, or on a socket of ours.
 */
static int no_standard_descriptors(void)
{
	close(0);
	close(1);
	close(2);
	return 0;
}

static int print_while_open(struct outcome *o)
{
	static const char text[] = "this is printed by a program that knows nothing of it\n";
	char path[64];
	struct h_listener *listener = NULL;
	struct h_manager *m;
	struct h_dev *dev;
	int ret, fd;

	snprintf(path, sizeof(path), "@hamlyn-" NAME "-%d", getpid());
	ret = h_open(SPEC, &dev);
	if (ret)
		return failed(o, "h_open", NULL, ret);
	ret = h_manager_create(dev, NULL, &m);
	if (!ret)
		ret = h_listener_create(path, NULL, &listener);
	if (!ret && h_manager_fd(m) < 0)
		ret = -EMFILE;
	for (fd = 0; !ret && fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) >= 0 || write(fd, text, sizeof(text)) >= 0)
			ret = failed(o, "write", NULL, -EEXIST);
	if (!ret)
		ret = talk_over(o, dev, m);
	if (listener)
		h_listener_destroy(listener);
	h_manager_destroy(m);
	h_close(dev);
	return ret;
}

TEST_F(surroundings, without_standard_descriptors)
{
	struct outcome o = in(no_standard_descriptors, print_while_open);

	EXPECT_EQ(0, o.ret) {
		TH_LOG("%s: %s", o.at, o.text);
	}
}

TEST_HARNESS_MAIN
