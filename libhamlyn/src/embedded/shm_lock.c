// SPDX-License-Identifier: MIT
/*
 * Locks on bytes of a segment's file: the first for its tables, then one for each process that is
 * attached. They go with the process that has them, however it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "low/msan.h"
#include "embedded/shm_segment.h"

#define LOCK_WAIT_NS	(10ll * 1000000000)
#define LONGEST_WAIT_NS	(120ll * 1000000000)
#define NAP_NS		5000000		/* the first; each is twice as long as the one before */
#define NAP_DOUBLINGS	5
#define LEAST_NAP_NS	1000000

int h__shm_lock_bytes(int fd, int cmd, short type, off_t first, off_t n)
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
int h__shm_try_tables(int fd)
{
	int err = h__shm_lock_bytes(fd, F_OFD_SETLK, F_WRLCK, 0, 1);

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
 * Return: as h__shm_try_tables(), or -ETIMEDOUT when the patience is used up; after
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
	err = h__shm_try_tables(fd);
	return err == -EAGAIN && is_late(w, wait_ns) ? -ETIMEDOUT : err;
}

int h__shm_lock_tables(int fd, const u32 *changes, int64_t wait_ns, bool patient)
{
	struct h_open_wait w = { .changes = changes };
	int err = h__shm_try_tables(fd);

	if (err != -EAGAIN)
		return err;
	while ((err = try_again(fd, &w, wait_ns, patient)) == -EAGAIN)
		wait_unlock(&w);
	return err;
}

/*
 * Of a segment that is not mapped yet. With -EAGAIN the word that tells when they
 * are unlocked is left mapped in @w, and nothing is locked: who waits for it does
 * so with the file closed and without open_lock, and forks go on meanwhile.
 */
int h__shm_lock_unmapped(int fd, struct h_open_wait *w)
{
	int err = h__shm_try_tables(fd);

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
int h__shm_check_descriptor(struct h_dev *dev)
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
	int64_t wait_ns = is_stopped_still(shm) ? SHM_LEAVE_WAIT_NS : LOCK_WAIT_NS;
	int err = h__shm_check_descriptor(dev);

	if (err)
		return err;
	err = h__shm_lock_tables(dev->fd, &shm->seg->changes, wait_ns, true);
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
	return h__shm_lock_bytes(dev->fd, F_OFD_SETLK, F_WRLCK, 0, 1);
}

/* A child of a fork may share the open file: let go by hand. */
void h__shm_unlock_and_close(int fd)
{
	h__shm_lock_bytes(fd, F_OFD_SETLK, F_UNLCK, 0, 0);
	close(fd);
}

/* One of those that wait, in the order in which they came. */
void h__shm_tell_unlocked(struct shm_segment *seg)
{
	hml_atomic_add_return(&seg->changes, 1);		/* B14 */
	syscall(SYS_futex, &seg->changes, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void h__shm_unlock(const struct h_dev *dev)
{
	h__shm_lock_bytes(dev->fd, F_OFD_SETLK, F_UNLCK, 0, 1);
	h__shm_tell_unlocked(shm_of(dev)->seg);
}

bool h__shm_alive(const struct h_dev *dev, u32 attach)
{
	/* One does not see one's own lock. */
	if (attach == shm_of(dev)->attach)
		return true;
	/* Not to know is no reason to take what it owns. */
	return h__shm_lock_bytes(dev->fd, F_OFD_GETLK, F_WRLCK, 1 + (off_t)attach, 1) != 0;
}

/* Does anybody but the caller use the segment? */
bool h__shm_others_attached(int fd)
{
	return h__shm_lock_bytes(fd, F_OFD_GETLK, F_WRLCK, 1, SHM_MAX_ATTACH) != 0;
}
