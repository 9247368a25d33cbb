// SPDX-License-Identifier: MIT
/* The file of a segment: who may have made it, and when its name is taken away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embedded/shm_segment.h"

#define OVERFLOW_UID	65534		/* whom a user namespace has no number for */

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

void h__shm_remove_file(const char *file)
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
bool h__shm_is_left_behind(int fd)
{
	struct stat st;

	/* No link: its name may be another's by now. */
	return !h__shm_others_attached(fd) && !h__shm_try_tables(fd) && !fstat(fd, &st) &&
	       st.st_nlink && !h__shm_others_attached(fd);
}

static int open_path(const char *path, int flags)
{
	/* Non-blocking: another user's file, with a lease on it, would block. */
	return h__fd(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
}

int h__shm_open_file(const char *file, int flags)
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
	if ((flags & O_CREAT) && !fstat(fd, &st) && is_ours(&st) && h__shm_is_left_behind(fd))
		h__shm_remove_file(file);
	h__shm_unlock_and_close(fd);
	return err;
}

/* Of an error that h__shm_open_file() has not explained */
int h__shm_cannot_open(const char *file, int err)
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
void h__shm_sweep(unsigned int uid)
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
		fd = h__shm_open_file(e->d_name, 0);
		if (fd < 0)
			continue;
		if (h__shm_is_left_behind(fd))
			h__shm_remove_file(e->d_name);
		h__shm_unlock_and_close(fd);
	}
	closedir(d);
}
