// SPDX-License-Identifier: MIT
/* A path that has its mode from the moment it is there. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "rendezvous/rendezvous.h"

/* bind() itself needs little, the dynamic linker more: it keeps the vector registers. */
#define STACK_BYTES	65536

struct binding {
	int sock;
	const struct sockaddr *address;
	unsigned int length;
};

static int bind_as_child(void *arg)
{
	const struct binding *b = arg;

	umask(0);
	return bind(b->sock, b->address, b->length) ? errno : 0;
}

/*
 * The memory is shared and the caller stands still, as in posix_spawn(): no page is copied.
 * A handler of a signal that came to the child would run in our memory, so it gets none. It
 * sends none when it ends either, and only waits for __WALL see it: the program's own
 * children are not mixed up with it.
 */
static void bind_in_child(struct binding *b)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	pid_t child;

	if (stack == MAP_FAILED)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	child = clone(bind_as_child, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, b);
	while (child > 0 && waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK_BYTES);
}

static bool is_bound(int sock)
{
	struct sockaddr_un address;
	socklen_t length = sizeof(address);

	return !getsockname(sock, (struct sockaddr *)&address, &length) &&
	       length > offsetof(struct sockaddr_un, sun_path);
}

/*
 * bind() makes the path with the socket's mode less the umask. A chmod() after it comes too
 * late for a client that connects in between: it gets EACCES, and that is final, where
 * a path that is not there yet is waited for. The umask belongs to all threads of the
 * process, so a child that has its own binds.
 *
 * Where there can be no child (a limit, a seccomp filter) the mode comes late, as a default
 * ACL of the directory may make it anyway: set_mode() looks after both. Whatever became of
 * the child, the socket tells; and what kept the child from binding keeps us, with an errno.
 */
int h__bind(int sock, const struct sockaddr *address, unsigned int length, uint32_t mode)
{
	struct binding b = { .sock = sock, .address = address, .length = length };

	if (mode)
		bind_in_child(&b);
	if (mode && is_bound(sock))
		return 0;
	return bind(sock, address, length) ? -errno : 0;
}
