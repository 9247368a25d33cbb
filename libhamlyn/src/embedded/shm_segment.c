// SPDX-License-Identifier: MIT
/* The embedded device's segment: making, joining, leaving, locks, liveness. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "low/msan.h"
#include "embedded/shm.h"

#define SHM_DIR		"/dev/shm"
#define NAME_MAX_CHARS	64
#define LOCK_WAIT_NS	(10ll * 1000000000)
#define LONGEST_WAIT_NS	(120ll * 1000000000)
#define NAP_NS		5000000		/* the first; each is twice as long as the one before */
#define NAP_DOUBLINGS	5
#define LEAST_NAP_NS	1000000
#define LEAVE_WAIT_NS	(100ll * 1000000)
#define OPEN_TRIES	100
#define NO_ROOM_ADVICE	"make it larger (mount -o remount,size=), or the segment smaller (size=)"
#define OTHER_VERSION_ADVICE "end the programs that use it, or take another name"
#define OPTIONS \
	"size=4M to 1024G, guesses=N, host=N, fabric=ID (32 hexadecimal digits), join and huge"
#define OVERFLOW_UID	65534		/* whom a user namespace has no number for */
/* Larger ones are many processes', of which none touches all. */
#define POPULATE_MOST	(128ull << 20)

/* ---- locks on bytes of the file ---- */

static int lock_bytes(int fd, int cmd, short type, off_t first, off_t n)
{
	struct flock l = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = first,
		.l_len = n,
	};

	if (fcntl(fd, cmd, &l) < 0)
		return -errno;
	return cmd == F_OFD_GETLK && l.l_type != F_UNLCK;
}

/*
 * Is there a segment? To fill a large one with memory takes its time. Read, not mapped:
 * until then the file may be a hole, and there be no memory for its first page.
 */
static bool is_made(int fd)
{
	u64 magic;

	h__filled(&magic, sizeof(magic));
	return syscall(SYS_pread64, fd, &magic, sizeof(magic),
		       (long)offsetof(struct shm_segment, magic)) == sizeof(magic) &&
	       magic == SHM_MAGIC;
}

/*
 * The word that says how often the tables were unlocked, of a segment that need not
 * be mapped yet. Return: NULL if there is no segment.
 */
static const u32 *map_changes(int fd)
{
	void *p;

	if (!is_made(fd))
		return NULL;
	p = mmap(NULL, SHM_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, SHM_PAGE, MADV_DONTFORK);
	return (const u32 *)(const void *)
		((const char *)p + offsetof(struct shm_segment, changes));
}

/* What map_changes() has mapped: of the segment, no more than that page. */
static struct shm_segment *first_page_of(const u32 *changes)
{
	return (struct shm_segment *)((uintptr_t)changes & ~(uintptr_t)(SHM_PAGE - 1));
}

static void unmap_changes(const u32 *changes)
{
	if (changes)
		munmap(first_page_of(changes), SHM_PAGE);
}

static int64_t nap_ns(const struct h_open_wait *w)
{
	const struct h_change_limit *l = h__change_limited();
	int64_t ns = (int64_t)NAP_NS << w->doublings, left;

	if (!l)
		return ns;
	left = l->until_ns - w->looked;
	if (left < LEAST_NAP_NS)
		left = LEAST_NAP_NS;
	return left < ns ? left : ns;
}

/*
 * Until they are unlocked; not for long, for who dies with the lock, or only looked
 * whether the file is still in use, tells nobody. Longer each time, or hundreds that
 * wait keep those that they wait for from the processors.
 */
static void wait_unlock(struct h_open_wait *w)
{
	const struct timespec nap = { .tv_nsec = nap_ns(w) };

	if (w->changes)
		syscall(SYS_futex, w->changes, FUTEX_WAIT, w->seen, &nap, NULL,
			0);
	else
		nanosleep(&nap, NULL);
}

/* 0, -EAGAIN if another one has them, or why not. */
static int try_tables(int fd)
{
	int err = lock_bytes(fd, F_OFD_SETLK, F_WRLCK, 0, 1);

	return err == -EACCES ? -EAGAIN : err;
}

/*
 * A nap that took longer than it should counts for what it should have taken: whoever
 * was kept from the processors, or stopped with the whole job, does not know that the
 * holder was not.
 */
static void count_nap(struct h_open_wait *w)
{
	int64_t now = h__now_ns(), took = now - w->looked;

	if (w->looked) {
		if (took > nap_ns(w))
			took = nap_ns(w);
		w->waited += took;
		w->still += took;
		if (w->doublings < NAP_DOUBLINGS)
			w->doublings++;
	}
	w->looked = now;
}

static bool is_late(const struct h_open_wait *w, int64_t wait_ns)
{
	const struct h_change_limit *l = h__change_limited();

	if (l)
		return w->looked >= l->until_ns && w->still >= l->still_ns;
	return w->still > wait_ns || w->waited > LONGEST_WAIT_NS;
}

/*
 * Bounded: a process that is stopped while it changes the tables must not
 * hang everybody else for ever. While others get on it is only that they are
 * many, and who is patient waits on.
 *
 * Return: as try_tables(), or -ETIMEDOUT when the patience is used up; after
 * -EAGAIN wait_unlock().
 */
static int try_again(int fd, struct h_open_wait *w, int64_t wait_ns,
		     bool patient)
{
	u32 next = w->changes ? smp_load_acquire(w->changes) : 0; /* B14 */
	int err;

	count_nap(w);
	if (patient && next != w->seen)
		w->still = 0;
	w->seen = next;
	err = try_tables(fd);
	return err == -EAGAIN && is_late(w, wait_ns) ? -ETIMEDOUT : err;
}

static int lock_tables(int fd, const u32 *changes, int64_t wait_ns,
		       bool patient)
{
	struct h_open_wait w = { .changes = changes };
	int err = try_tables(fd);

	if (err != -EAGAIN)
		return err;
	while ((err = try_again(fd, &w, wait_ns, patient)) == -EAGAIN)
		wait_unlock(&w);
	return err;
}

/*
 * Of a segment that is not mapped yet. With -EAGAIN the word that tells when they
 * are unlocked is left mapped in @w, and nothing is locked: who waits for it does
 * so with the file closed and without open_lock, and forks need not wait for him.
 */
static int lock_unmapped(int fd, struct h_open_wait *w)
{
	int err = try_tables(fd);

	if (err != -EAGAIN)
		return err;
	w->changes = map_changes(fd);
	if (!w->changes)
		w->still = 0;
	err = try_again(fd, w, LOCK_WAIT_NS, true);
	if (err != -EAGAIN) {
		unmap_changes(w->changes);
		w->changes = NULL;
	}
	return err;
}

void h__shm_open_wait(struct h_open_wait *w)
{
	wait_unlock(w);
	unmap_changes(w->changes);
	w->changes = NULL;
}

/*
 * A program that closes all descriptors, as daemons do, and opens others would change the
 * tables with another file locked, beside all others that change them.
 */
static int check_descriptor(struct h_dev *dev)
{
	const struct shm_dev *shm = shm_of(dev);
	struct stat st;
	bool known = !fstat(dev->fd, &st);

	if (known ? st.st_ino == shm->inode && st.st_dev == shm->on : errno != EBADF)
		return 0;
	return h__refuse(dev, -EBADF, "descriptor %d, which is the segment's, was closed", dev->fd);
}

/*
 * Whom one call has waited for in vain is not waited for again: a server that drops a client
 * makes several calls, and all its other clients wait meanwhile.
 */
static bool is_stopped_still(const struct shm_dev *shm)
{
	return READ_ONCE(shm->stopped) &&
	       READ_ONCE(shm->stopped_at) == READ_ONCE(shm->seg->changes);
}

int h__shm_lock(struct h_dev *dev)
{
	struct shm_dev *shm = shm_of(dev);
	int64_t wait_ns = is_stopped_still(shm) ? LEAVE_WAIT_NS : LOCK_WAIT_NS;
	int err = check_descriptor(dev);

	if (err)
		return err;
	err = lock_tables(dev->fd, &shm->seg->changes, wait_ns, true);
	/* In less time than that it was not found out. */
	if (err != -ETIMEDOUT || !h__change_limited()) {
		WRITE_ONCE(shm->stopped_at, READ_ONCE(shm->seg->changes));
		WRITE_ONCE(shm->stopped, err == -ETIMEDOUT);
	}
	if (err == -ETIMEDOUT)
		err = h__refuse(dev, h__change_late(),
				"a process was stopped while it changed the segment");
	return err;
}

int h__shm_trylock(const struct h_dev *dev)
{
	return lock_bytes(dev->fd, F_OFD_SETLK, F_WRLCK, 0, 1);
}

/* A child of a fork may share the open file: let go by hand. */
static void unlock_and_close(int fd)
{
	lock_bytes(fd, F_OFD_SETLK, F_UNLCK, 0, 0);
	close(fd);
}

/* One of those that wait, in the order in which they came. */
static void tell_unlocked(struct shm_segment *seg)
{
	hml_atomic_add_return(&seg->changes, 1);		/* B14 */
	syscall(SYS_futex, &seg->changes, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void h__shm_unlock(const struct h_dev *dev)
{
	lock_bytes(dev->fd, F_OFD_SETLK, F_UNLCK, 0, 1);
	tell_unlocked(shm_of(dev)->seg);
}

bool h__shm_alive(const struct h_dev *dev, u32 attach)
{
	/* One does not see one's own lock. */
	if (attach == shm_of(dev)->attach)
		return true;
	/* Not to know is no reason to take what it owns. */
	return lock_bytes(dev->fd, F_OFD_GETLK, F_WRLCK, 1 + (off_t)attach,
			  1) != 0;
}

/* Does anybody but the caller use the segment? */
static bool others_attached(int fd)
{
	return lock_bytes(fd, F_OFD_GETLK, F_WRLCK, 1, SHM_MAX_ATTACH) != 0;
}

/* ---- names ---- */

/* What whoever makes a segment may choose. */
struct shm_options {
	u64 size;
	u32 guesses;
	u32 host;
	bool huge;
	bool join;		/* one that is there, or none */
	bool has_host;
	bool has_fabric;
	u8 fabric[HAMLYN_FABRIC_ID_BYTES];
};

static int parse_size(const char *s, u64 *size)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	errno = 0;
	*size = strtoull(s, &end, 10);
	if (errno || end == s || !isdigit((unsigned char)*s))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
		if (*size > SHM_MAX_SIZE >> (10 * (unit - units + 1)))
			return -EINVAL;
		*size <<= 10 * (unit - units + 1);
	}
	if (*size < SHM_MIN_SIZE || *size > SHM_MAX_SIZE)
		return -EINVAL;
	*size = (*size + SHM_PAGE - 1) & ~(u64)(SHM_PAGE - 1);
	return 0;
}

static int parse_u32(const char *s, u32 *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*s) || n > UINT32_MAX)
		return -EINVAL;
	*value = (u32)n;
	return 0;
}

/* HAMLYN_NONE is no host, nor is what a ticket of none has. */
static int parse_host(const char *s, struct shm_options *o)
{
	int err = parse_u32(s, &o->host);

	o->has_host = true;
	return !err && o->host == HAMLYN_NONE ? -EINVAL : err;
}

/* 32 hexadecimal digits, not all of them 0 */
static int parse_fabric(const char *s, struct shm_options *o)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;
	u8 any = 0;

	if (strlen(s) != 2 * sizeof(o->fabric))
		return -EINVAL;
	for (i = 0; s[i]; i++) {
		const char *d = strchr(digits, tolower((unsigned char)s[i]));

		if (!d)
			return -EINVAL;
		o->fabric[i / 2] = (u8)(o->fabric[i / 2] << 4 | (d - digits));
		any |= (u8)(d - digits);
	}
	o->has_fabric = true;
	return any ? 0 : -EINVAL;
}

/* "size=BYTES", "guesses=N", "host=N", "fabric=ID", "join" and "huge", in any order. */
static int parse_options(const char *options, struct shm_options *o)
{
	char copy[128], *rest = copy, *word;
	size_t n = strlen(options) + 1;
	int err = 0;

	if (n > sizeof(copy))
		return h__early(-EINVAL, "more than %zu letters of options: they are " OPTIONS,
				sizeof(copy) - 1);
	memcpy(copy, options, n);
	while (!err && (word = strsep(&rest, ","))) {
		if (!strncmp(word, "size=", 5))
			err = parse_size(word + 5, &o->size);
		else if (!strncmp(word, "guesses=", 8))
			err = parse_u32(word + 8, &o->guesses);
		else if (!strncmp(word, "host=", 5))
			err = parse_host(word + 5, o);
		else if (!strncmp(word, "fabric=", 7))
			err = parse_fabric(word + 7, o);
		else if (!strcmp(word, "huge"))
			o->huge = true;
		else if (!strcmp(word, "join"))
			o->join = true;
		else
			err = -EINVAL;
		if (err)
			h__early(err, "\"%.60s\": options are " OPTIONS, word);
	}
	return err;
}

/* "NAME[,OPTION...]"; the user id keeps users' names apart. */
static int parse_spec(const char *spec, unsigned int uid, char *file, size_t room,
		      struct shm_options *o)
{
	const char *comma = strchr(spec, ',');
	size_t n = comma ? (size_t)(comma - spec) : strlen(spec);
	size_t i;

	*o = (struct shm_options) {
		.size = SHM_DEFAULT_SIZE,
		.guesses = HML_GUARD_RATE,
	};
	if (!n || n > NAME_MAX_CHARS)
		return h__early(-EINVAL, "a name of %zu letters: must have 1 to %d", n,
				NAME_MAX_CHARS);
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)spec[i]) &&
		    !strchr("._-", spec[i]))
			return h__early(-EINVAL,
					"\"%.64s\": must be letters, digits, '.', '_' and '-'",
					spec);
	snprintf(file, room, "hamlyn-%u-%.*s", uid, (int)n, spec);
	return comma ? parse_options(comma + 1, o) : 0;
}

/* Whoever owns the file, or may open it, can do to this process what it likes. */
static int check_file(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return h__early(-EACCES, "%s is no file", path);
	if (st.st_uid != geteuid())
		return h__early(-EACCES, "%s belongs to user %u%s, and this is user %u", path,
				(unsigned int)st.st_uid, st.st_uid == OVERFLOW_UID ?
				" (none of this user namespace)" : "",
				(unsigned int)geteuid());
	if (st.st_mode & 077)
		return h__early(-EACCES, "%s may be opened by others (mode %03o): must be 600",
				path, (unsigned int)st.st_mode & 0777);
	/* Made under a umask that takes these away */
	if ((st.st_mode & 0600) != 0600 && fchmod(fd, 0600))
		return -errno;
	return 0;
}

/* Nobody else could have opened it. */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 077);
}

/*
 * A umask that takes the owner's rights away made it so. In a directory where only the
 * owner may replace it, as /dev/shm is: it is what was looked at.
 */
static bool mended_mode(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && is_ours(&st) && (st.st_mode & 0777) != 0600 &&
	       !chmod(path, 0600);
}

static void remove_file(const char *file)
{
	char path[sizeof(SHM_DIR) + NAME_MAX + 1];

	snprintf(path, sizeof(path), SHM_DIR "/%s", file);
	unlink(path);
}

/*
 * May the name of a file that is ours be taken away? Asked first without a lock: a process
 * that is stopped here must not keep all others from the tables of a segment that is in
 * use. With it again, as another may have joined meanwhile: to join takes the lock. One that
 * has opened the file and not locked it yet finds it without a link, and makes a new one.
 * The tables stay locked until the file is closed.
 */
static bool is_left_behind(int fd)
{
	struct stat st;

	/* No link: its name may be another's by now. */
	return !others_attached(fd) && !try_tables(fd) && !fstat(fd, &st) &&
	       st.st_nlink && !others_attached(fd);
}

static int open_path(const char *path, int flags)
{
	/* Non-blocking: another user's file, with a lease on it, would block. */
	return h__fd(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
}

static int open_file(const char *file, int flags)
{
	char path[sizeof(SHM_DIR) + NAME_MAX + 1];
	struct stat st;
	int fd, err;

	snprintf(path, sizeof(path), SHM_DIR "/%s", file);
	fd = open_path(path, flags);
	if (fd == -EACCES && mended_mode(path))
		fd = open_path(path, flags);
	if (fd < 0)
		return fd;
	err = check_file(fd, path);
	if (!err)
		return fd;
	/* It may be of our making. Another user's is not even locked. */
	if ((flags & O_CREAT) && !fstat(fd, &st) && is_ours(&st) && is_left_behind(fd))
		remove_file(file);
	unlock_and_close(fd);
	return err;
}

/* Of an error that open_file() has not explained */
static int cannot_open(const char *file, int err)
{
	struct stat st;

	switch (err) {
	case -ENOENT:
		return h__early(err, SHM_DIR " is not there, or not mounted");
	case -EROFS:
		return h__early(err, SHM_DIR " is mounted read-only");
	case -EMFILE:
		return h__early(err, "this process has all descriptors of its RLIMIT_NOFILE");
	case -ENOSPC:
		return h__early(err, SHM_DIR " is full");
	case -ELOOP:
		return h__early(err, SHM_DIR "/%s is a symbolic link", file);
	case -EACCES:
		if (!stat(SHM_DIR, &st))
			return h__early(err, "this user may not open or make " SHM_DIR
					"/%s (mode of " SHM_DIR ": %04o)", file,
					(unsigned int)st.st_mode & 07777);
		break;
	}
	return err;
}

/*
 * Segments whose users were all killed stay behind as files. Whoever opens a
 * device removes those of the same user. One that is being made or left is
 * locked and left alone.
 */
static void sweep(unsigned int uid)
{
	char prefix[32];
	struct dirent *e;
	DIR *d = opendir(SHM_DIR);

	if (!d)
		return;
	snprintf(prefix, sizeof(prefix), "hamlyn-%u-", uid);
	while ((e = readdir(d))) {
		int fd;

		if (strncmp(e->d_name, prefix, strlen(prefix)))
			continue;
		fd = open_file(e->d_name, 0);
		if (fd < 0)
			continue;
		if (is_left_behind(fd))
			remove_file(e->d_name);
		unlock_and_close(fd);
	}
	closedir(d);
}

/* ---- making and joining ---- */

/* NULL, with errno, if it fails. */
static void *map_segment(int fd, size_t size, int extra)
{
	void *p = h__map_aligned(size, fd, 0, extra);

	if (p == MAP_FAILED)
		return NULL;
	/* As with the kernel device: a child opens its own. */
	madvise(p, size, MADV_DONTFORK);
	return p;
}

#ifndef MADV_POPULATE_WRITE		/* Linux 5.14 */
#define MADV_POPULATE_WRITE	23
#endif

/*
 * Where /dev/shm is mounted with huge=advise, only memory that is touched
 * through a mapping with the advice becomes huge pages, not what fallocate()
 * makes. A wish: what cannot be had so, fallocate() makes, or says that it
 * cannot.
 */
static int try_huge(int fd, u64 size)
{
	void *p;

	if (ftruncate(fd, (off_t)size))
		return -errno;
	p = map_segment(fd, size, 0);
	if (!p)
		return -errno;
	if (!madvise(p, size, MADV_HUGEPAGE))
		madvise(p, size, MADV_POPULATE_WRITE);
	munmap(p, size);
	return 0;
}

/* Where data begins, in a segment of so many pages. */
static u64 first_page(u64 pages)
{
	return (shm_owners_at() + pages * sizeof(u16) + SHM_PAGE - 1) / SHM_PAGE;
}

/*
 * All of it there: no SIGBUS later. In tmpfs of older kernels any signal that comes
 * undoes what is done so far: with a timer it would never end.
 */
static int allocate(int fd, u64 size)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = posix_fallocate(fd, 0, (off_t)size);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == ENOSPC)
		return h__early(-err, SHM_DIR " has no room for the %llu KiB of the segment: "
				NO_ROOM_ADVICE, (unsigned long long)size >> 10);
	return -err;
}

/* What would end this process by a signal, or have it killed, is an error in time. */
static int may_have(u64 size)
{
	struct rlimit file;
	int64_t left;

	if (!getrlimit(RLIMIT_FSIZE, &file) && file.rlim_cur != RLIM_INFINITY &&
	    file.rlim_cur < size)
		return h__early(-EFBIG, "a segment of %llu KiB: RLIMIT_FSIZE allows %llu KiB",
				(unsigned long long)size >> 10,
				(unsigned long long)file.rlim_cur >> 10);
	left = h__memory_left();
	if (left < 0 || (u64)left < size)
		return h__early(-ENOMEM, "a segment of %llu KiB: memory.max leaves %lld KiB",
				(unsigned long long)size >> 10, (long long)left / 1024);
	return 0;
}

static int make_segment(int fd, const struct shm_options *o)
{
	u64 huge = o->huge ? h__huge_page_size() : 0;
	u64 size = huge ? (o->size + huge - 1) & ~(huge - 1) : o->size;
	u64 pages = size / SHM_PAGE;
	struct shm_segment *seg;
	int err = may_have(size);

	if (err)
		return err;
	if (huge) {
		err = try_huge(fd, size);
		if (err)
			return err;
	}
	err = allocate(fd, size);
	if (err)
		return err;
	seg = map_segment(fd, size, 0);
	if (!seg)
		return -errno;
	err = h__random(seg->identity, sizeof(seg->identity));
	if (err) {
		munmap(seg, size);
		return err;
	}
	seg->abi = SHM_ABI;
	seg->packet_size = SHM_PACKET_SIZE;
	seg->guesses = o->guesses;
	seg->host = o->host;
	memcpy(seg->fabric, o->has_fabric ? (const void *)o->fabric : seg->identity,
	       sizeof(seg->fabric));
	seg->size = size;
	seg->pages = pages;
	seg->page_owners = shm_owners_at();
	seg->data_first = first_page(pages);
	__atomic_store_n(&seg->magic, SHM_MAGIC, __ATOMIC_RELEASE);
	munmap(seg, size);
	return 0;
}

static int other_version(const struct shm_dev *shm)
{
	return h__early(-EPROTO, SHM_DIR "/%s is a segment of another version: "
			OTHER_VERSION_ADVICE, shm->file);
}

/* Whoever made it has chosen. */
static int check_place(const struct shm_dev *shm, const struct shm_options *o)
{
	const struct shm_segment *seg = shm->seg;

	if (o->has_host && o->host != seg->host)
		return h__early(-EEXIST, SHM_DIR "/%s is host %u already, and not %u: "
				OTHER_VERSION_ADVICE, shm->file, seg->host, o->host);
	if (o->has_fabric && memcmp(o->fabric, seg->fabric, sizeof(seg->fabric)))
		return h__early(-EEXIST, SHM_DIR "/%s belongs to another fabric: "
				OTHER_VERSION_ADVICE, shm->file);
	return 0;
}

static int join_segment(struct h_dev *dev, struct shm_dev *shm)
{
	struct stat st;

	if (fstat(dev->fd, &st))
		return -errno;
	shm->on = st.st_dev;
	shm->inode = st.st_ino;
	shm->size = (size_t)st.st_size;
	shm->pages = shm->size / SHM_PAGE;
	shm->data_first = first_page(shm->pages);
	if (shm->size % SHM_PAGE || shm->data_first >= shm->pages)
		return other_version(shm);
	shm->seg = map_segment(dev->fd, shm->size, shm->size <= POPULATE_MOST ?
			       MAP_POPULATE : 0);
	if (!shm->seg)
		return -errno;
	if (shm->seg->magic != SHM_MAGIC || shm->seg->abi != SHM_ABI ||
	    shm->seg->packet_size != SHM_PACKET_SIZE ||
	    shm->seg->size != shm->size || shm->seg->pages != shm->pages ||
	    shm->seg->page_owners != shm_owners_at() ||
	    shm->seg->data_first != shm->data_first) {
		munmap(shm->seg, shm->size);
		return other_version(shm);
	}
	return 0;
}

static int take_attachment(struct h_dev *dev, struct shm_dev *shm)
{
	u32 hint = READ_ONCE(shm->seg->attach_hint);
	int64_t wait_ns = SHM_RECLAIM_NS;
	u32 n;

	for (n = 0; n < SHM_MAX_ATTACH; n++) {
		u32 i = (u32)(((u64)hint + n) % SHM_MAX_ATTACH);
		int err = lock_bytes(dev->fd, F_OFD_SETLK, F_WRLCK,
				     1 + (off_t)i, 1);

		if (!err) {
			/* What the last one of this number left is not ours. */
			WRITE_ONCE(shm->seg->attach_hint, i + 1);
			shm->attach = i;
			if (!h__shm_reclaim(dev, i, wait_ns))
				return 0;
			/* Who is in the way is so of all others that need waiting. */
			wait_ns = 0;
			lock_bytes(dev->fd, F_OFD_SETLK, F_UNLCK, 1 + (off_t)i,
				   1);
			continue;
		}
		if (err != -EAGAIN && err != -EACCES)
			return err;
	}
	return h__early(-EUSERS, "%d processes use the segment, which is as many as can",
			SHM_MAX_ATTACH);
}

static void fill_nic(struct shm_dev *shm)
{
	static struct hml_link far_link = { .remote = 1 };
	struct shm_segment *seg = shm->seg;

	shm->nic = (struct hml_nic) {
		.port = {
			.base = (u8 *)seg,
			.slots = offsetof(struct shm_segment, slots),
			.slot_stride = sizeof(struct shm_slot),
			.max_slots = SHM_MAX_SLOTS,
		},
		.host = seg->host,
		/* Not the segment's copy: others can write that. */
		.packet_size = SHM_PACKET_SIZE,
		.guesses = seg->guesses,
		.link = &seg->link,
	};
	/* With the segment locked only: as those of termini that are gone. */
	shm->self.stats = &seg->retired;
	shm->self.guard.bucket = &shm->guesser.bucket;
	shm->guesser.known = shm->known;
	shm->far = shm->nic;
	shm->far.link = &far_link;
	shm->self.pid = (u32)getpid();
	shm->self.uid = (u32)getuid();
}

/* Tables locked. Leaves them locked, and the device attached on success. */
static int enter(struct h_dev *dev, struct shm_dev *shm,
		 const struct shm_options *o)
{
	struct stat st;
	int err;

	if (fstat(dev->fd, &st))
		return -errno;
	if (!st.st_size) {
		err = make_segment(dev->fd, o);
		if (err)
			return err;
	}
	err = join_segment(dev, shm);
	if (err)
		return err;
	fill_nic(shm);
	err = check_place(shm, o);
	if (!err)
		err = take_attachment(dev, shm);
	if (err)
		munmap(shm->seg, shm->size);
	return err;
}

static int open_and_lock(struct h_dev *dev, const char *file, bool join,
			 struct h_open_wait *wait)
{
	struct stat st;
	int tries, err;

	for (tries = 0; tries < OPEN_TRIES; tries++) {
		dev->fd = open_file(file, join ? 0 : O_CREAT);
		if (join && dev->fd == -ENOENT)
			return h__early(-ENOENT, "nobody uses a segment of that name");
		if (dev->fd < 0)
			return cannot_open(file, dev->fd);
		err = lock_unmapped(dev->fd, wait);
		if (!err && fstat(dev->fd, &st))
			err = -errno;
		/*
		 * Unlinked by the last one to leave, while we opened it? Or
		 * left by the dead? Then make a new file: the old one stays
		 * what it is to whoever has it mapped.
		 */
		if (!err && st.st_nlink) {
			if ((!st.st_size && !join) || others_attached(dev->fd))
				return 0;
			remove_file(file);
		}
		if (err && err != -EAGAIN && err != -ETIMEDOUT && is_left_behind(dev->fd))
			remove_file(file);
		unlock_and_close(dev->fd);
		dev->fd = -1;
		if (err)
			return err == -EAGAIN ? H_OPEN_AGAIN : err;
	}
	return -EAGAIN;
}

int h__shm_attach(struct h_dev *dev, const char *spec, struct h_open_wait *wait)
{
	struct shm_dev *shm = calloc(1, sizeof(*shm));
	struct shm_options options;
	unsigned int uid;
	int err;

	if (!shm)
		return -ENOMEM;
	err = h__shm_user(&uid);
	if (!err)
		err = parse_spec(spec, uid, shm->file, sizeof(shm->file), &options);
	if (err)
		goto err_free;
	if (!wait->looked)
		sweep(uid);
	/*
	 * With threads the system takes a grace period for that, which takes its time: not with
	 * the tables locked, one process after the other.
	 */
	shm->fenced = h__shm_fence_join();
	/* What others' files are like is no news. */
	h__early_begin();
	err = open_and_lock(dev, shm->file, options.join, wait);
	if (err)
		goto err_free;
	dev->priv = shm;
	err = enter(dev, shm, &options);
	if (err)
		goto err_close;
	h__shm_reclaim_dead(dev);
	h__shm_unlock(dev);
	return 0;

err_close:
	/* A segment that was not made, or that nobody has joined. */
	if (is_left_behind(dev->fd))
		remove_file(shm->file);
	unlock_and_close(dev->fd);
	dev->fd = -1;
err_free:
	free(shm);
	return err;
}

/* Tables locked. */
static void leave(struct h_dev *dev, struct shm_dev *shm)
{
	struct stat st;

	h__shm_reclaim(dev, shm->attach, SHM_RECLAIM_NS);
	/* No link: the name may be another segment's by now. */
	if (!fstat(dev->fd, &st) && st.st_nlink && !others_attached(dev->fd))
		remove_file(shm->file);
	/* At once: who has the tables next must not find us attached. */
	lock_bytes(dev->fd, F_OFD_SETLK, F_UNLCK, 0, 0);
	tell_unlocked(shm->seg);
}

void h__shm_detach(struct h_dev *dev)
{
	struct shm_dev *shm = shm_of(dev);
	bool ours = !check_descriptor(dev);

	/* If a stopped peer is in the way: whoever comes next reclaims. */
	if (ours && !lock_tables(dev->fd, &shm->seg->changes, LEAVE_WAIT_NS, false))
		leave(dev, shm);
	munmap(shm->seg, shm->size);
	if (ours)
		unlock_and_close(dev->fd);
	free(shm);
}
