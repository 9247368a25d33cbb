// SPDX-License-Identifier: MIT
/* The embedded device's segment: making, joining and leaving. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embedded/shm_segment.h"

#define OPEN_TRIES	100
#define NO_ROOM_ADVICE	"make it larger (mount -o remount,size=), or the segment smaller (size=)"
#define OTHER_VERSION_ADVICE "end the programs that use it, or take another name"
/* Larger ones are many processes', of which none touches all. */
#define POPULATE_MOST	(128ull << 20)

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
	shm->biased = shm->seg->abi == SHM_ABI;
	if (shm->seg->magic != SHM_MAGIC || (!shm->biased && shm->seg->abi != SHM_ABI_SHARED) ||
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
		int err = h__shm_lock_bytes(dev->fd, F_OFD_SETLK, F_WRLCK,
				     1 + (off_t)i, 1);

		if (!err) {
			/* What the last one of this number left is not ours. */
			WRITE_ONCE(shm->seg->attach_hint, i + 1);
			shm->attach = i;
			if (!h__shm_reclaim(dev, i, wait_ns))
				return 0;
			/* Who is in the way is so of all others that need waiting. */
			wait_ns = 0;
			h__shm_lock_bytes(dev->fd, F_OFD_SETLK, F_UNLCK, 1 + (off_t)i, 1);
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
		dev->fd = h__shm_open_file(file, join ? 0 : O_CREAT);
		if (join && dev->fd == -ENOENT)
			return h__early(-ENOENT, "nobody uses a segment of that name");
		if (dev->fd < 0)
			return h__shm_cannot_open(file, dev->fd);
		err = h__shm_lock_unmapped(dev->fd, wait);
		if (!err && fstat(dev->fd, &st))
			err = -errno;
		/*
		 * Unlinked by the last one to leave, while we opened it? Or
		 * left by the dead? Then make a new file: the old one stays
		 * what it is to whoever has it mapped.
		 */
		if (!err && st.st_nlink) {
			if ((!st.st_size && !join) || h__shm_others_attached(dev->fd))
				return 0;
			h__shm_remove_file(file);
		}
		if (err && err != -EAGAIN && err != -ETIMEDOUT && h__shm_is_left_behind(dev->fd))
			h__shm_remove_file(file);
		h__shm_unlock_and_close(dev->fd);
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
		err = h__shm_parse_spec(spec, uid, shm->file, sizeof(shm->file), &options);
	if (err)
		goto err_free;
	if (!wait->looked)
		h__shm_sweep(uid);
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
	if (h__shm_is_left_behind(dev->fd))
		h__shm_remove_file(shm->file);
	h__shm_unlock_and_close(dev->fd);
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
	if (!fstat(dev->fd, &st) && st.st_nlink && !h__shm_others_attached(dev->fd))
		h__shm_remove_file(shm->file);
	/* At once: who has the tables next must not find us attached. */
	h__shm_lock_bytes(dev->fd, F_OFD_SETLK, F_UNLCK, 0, 0);
	h__shm_tell_unlocked(shm->seg);
}

void h__shm_detach(struct h_dev *dev)
{
	struct shm_dev *shm = shm_of(dev);
	bool ours = !h__shm_check_descriptor(dev);

	/* If a stopped peer is in the way: whoever comes next reclaims. */
	if (ours && !h__shm_lock_tables(dev->fd, &shm->seg->changes, SHM_LEAVE_WAIT_NS, false))
		leave(dev, shm);
	munmap(shm->seg, shm->size);
	if (ours)
		h__shm_unlock_and_close(dev->fd);
	free(shm);
}
