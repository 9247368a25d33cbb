// SPDX-License-Identifier: MIT
/* Where a server listens: a path, of one server at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rendezvous/rendezvous.h"

#define BACKLOG		256
#define NAP_NS		1000000L
#define LOCK_TRIES	500
#define ASK_TIMES	5
#define NAME_TRIES	100

static void nap(void)
{
	const struct timespec ts = { .tv_nsec = NAP_NS };

	nanosleep(&ts, NULL);
}

/*
 * Servers that start in one directory do so one after the other. Else one would find
 * another's socket between its bind() and listen(), take it for that of a dead server
 * and remove it; and two that find the same dead one would remove it both, the second
 * time in place of the first one's own.
 *
 * Return: a descriptor for unlock(), or -1 if there is no lock to be had: the directory
 * may not be read, or somebody keeps it locked for other reasons.
 */
static int lock_directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)] = ".";
	int fd, tries;

	if (slash && (size_t)(slash - path) < sizeof(directory) - 1) {
		memcpy(directory, path, (size_t)(slash - path) + 1);
		directory[slash - path + 1] = 0;
	}
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB); tries++) {
		if (tries == LOCK_TRIES ||
		    (errno != EWOULDBLOCK && errno != EINTR)) {
			close(fd);
			return -1;
		}
		nap();
	}
	return fd;
}

static void unlock(int fd)
{
	if (fd < 0)
		return;
	/* Closing it is not enough while a child of a fork has it open, too. */
	flock(fd, LOCK_UN);
	close(fd);
}

/* 0: nobody. */
static int who_listens(const struct sockaddr_un *address, unsigned int length)
{
	int fd, err = 0;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)address, length) ||
	    (errno != ECONNREFUSED && errno != ENOENT))
		err = -EADDRINUSE;
	h__hang_up(fd);
	h__close_waiting();
	return err;
}

/* 0: it is dead. */
static int ask_server(const struct sockaddr_un *address, unsigned int length)
{
	struct stat st;

	if (lstat(address->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	return S_ISSOCK(st.st_mode) ? who_listens(address, length) : -EEXIST;
}

/*
 * Is the server that made this path dead? One that does not lock the directory, as
 * others' servers do not, may be about to listen.
 */
static int look_for_server(const struct sockaddr_un *address,
			   unsigned int length)
{
	int i, err;

	for (i = 0; i < ASK_TIMES; i++) {
		if (i)
			nap();
		err = ask_server(address, length);
		if (err)
			return err;
	}
	return 0;
}

/*
 * A name is taken as long as there is the socket: of one who listens no more, until a
 * child that was forked just before gets to close its copy.
 */
static int wait_for_name(int sock, const struct sockaddr_un *address,
			 unsigned int length)
{
	int i, err;

	for (i = 0; i < NAME_TRIES; i++) {
		err = who_listens(address, length);
		if (err)
			return err;
		nap();
		if (!bind(sock, (const struct sockaddr *)address, length))
			return 0;
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

static int take_address(int sock, const char *path, uint32_t mode)
{
	struct sockaddr_un address;
	unsigned int length;
	int err;

	if (*path == '@')
		mode = 0;
	err = h__address(path, &address, &length);
	if (!err)
		err = h__bind(sock, (struct sockaddr *)&address, length, mode);
	if (err != -EADDRINUSE)
		return err;
	if (*path == '@')
		return wait_for_name(sock, &address, length);
	err = look_for_server(&address, length);
	if (err)
		return err;
	unlink(path);
	return h__bind(sock, (struct sockaddr *)&address, length, mode);
}

/*
 * Of what is at the path now, which may be no more what was bound: who may write to the
 * directory can put something else there.
 */
static int set_mode(int fd, const struct stat *st, uint32_t mode)
{
	char self[32];

	if (!S_ISSOCK(st->st_mode))
		return -EEXIST;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return mode && chmod(self, mode) ? -errno : 0;
}

/* So that another server's path is not removed in place of ours. */
static int keep_path(struct h_path *p, const char *path, uint32_t mode)
{
	struct stat st;
	int fd, err;

	if (*path == '@')
		return 0;
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && S_ISSOCK(st.st_mode)) {
		/* From here on it is removed with the listener. */
		p->name = strdup(path);
		p->dev = st.st_dev;
		p->ino = st.st_ino;
		err = p->name ? 0 : -ENOMEM;
	}
	if (!err)
		err = set_mode(fd, &st, mode);
	close(fd);
	return err;
}

/* From bind() to listen(). */
static int take(struct h_path *p, int sock, const char *path, uint32_t mode)
{
	int err;

	err = take_address(sock, path, mode);
	if (err)
		return err;
	err = keep_path(p, path, mode);
	if (!err && listen(sock, BACKLOG))
		err = -errno;
	/* Else the next one would have to find out that nobody listens there. */
	if (err && *path != '@' && !p->name)
		unlink(path);
	return err;
}

int h__path_take(struct h_path *p, int sock, const char *path, uint32_t mode)
{
	int lock = *path == '@' ? -1 : lock_directory_of(path);
	int err = take(p, sock, path, mode);

	unlock(lock);
	return err;
}

void h__path_remove(const struct h_path *p)
{
	struct stat st;

	if (p->name && !lstat(p->name, &st) && st.st_dev == p->dev &&
	    st.st_ino == p->ino)
		unlink(p->name);
}
