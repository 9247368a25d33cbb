// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every system call with which a device, a manager, a listener or a connection is made
 * fails once, with the errnos that it may give. Whatever comes of it is said, true, and
 * leaves nothing, not in the NIC either; and without the fault the same works.
 *
 * A child does it under a seccomp filter that has its parent decide about each call.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hamlyn_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <hamlyn/channel.h>
#include <linux/hamlyn_netlink.h>

/* For what the tables of a segment say, and what a manager keeps. */
#include "embedded/shm.h"
#include "manager/manager.h"

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1
#endif

#define SECOND		1000000000LL
#define MOST_CALLS	4000
#define MOST_ERRNOS	3
#define COMPLAINTS	16
#define THREAD_NS	(5 * SECOND)	/* until one that was joined is gone */
#define MOST_KIB	1024		/* that the heap may grow by while all calls fail */
#define ROOM		400		/* bytes of one */

/* ---- which calls fail, and how ------------------------------------------ */

/*
 * Not in it: those that cannot fail if they are used rightly, and those that undo: what
 * could not be given back stays, whatever is done about it.
 */
static const struct fault {
	int nr;
	const char *name;
	int errnos[MOST_ERRNOS];
} faults[] = {
	{ __NR_openat, "openat", { EMFILE, EACCES, EINTR } },
	{ __NR_open, "open", { ENFILE, ENOMEM, EPERM } },
	{ __NR_mmap, "mmap", { ENOMEM, EPERM, ENODEV } },
	{ __NR_mprotect, "mprotect", { ENOMEM, EACCES } },
	{ __NR_madvise, "madvise", { ENOMEM, EINVAL } },
	{ __NR_mremap, "mremap", { ENOMEM } },
	{ __NR_brk, "brk", { ENOMEM } },
	{ __NR_ftruncate, "ftruncate", { ENOSPC, EIO, EINTR } },
	{ __NR_fallocate, "fallocate", { ENOSPC, EIO, EINTR } },
	{ __NR_fcntl, "fcntl", { ENOLCK, EIO, EMFILE } },
	{ __NR_flock, "flock", { ENOLCK, EINTR } },
	{ __NR_fchmod, "fchmod", { EPERM, EIO } },
	{ __NR_chmod, "chmod", { EPERM, EIO } },
	{ __NR_fstat, "fstat", { EIO, ENOMEM } },
	{ __NR_stat, "stat", { EIO, EACCES } },
	{ __NR_lstat, "lstat", { EIO, EACCES } },
	{ __NR_newfstatat, "fstatat", { EIO, ENOMEM, EACCES } },
	{ __NR_statfs, "statfs", { EIO, ENOMEM } },
	{ __NR_fstatfs, "fstatfs", { EIO, ENOMEM } },
	{ __NR_read, "read", { EIO, ENOMEM, EINTR } },
	{ __NR_pread64, "pread", { EIO, ENOMEM, EINTR } },
	{ __NR_write, "write", { EIO, ENOSPC, EINTR } },
	{ __NR_pwrite64, "pwrite", { EIO, ENOSPC, EINTR } },
	{ __NR_getrandom, "getrandom", { EINTR, ENOSYS, EPERM } },
	{ __NR_ioctl, "ioctl", { ENOMEM, EIO, EPERM } },
	{ __NR_eventfd2, "eventfd", { EMFILE, ENOMEM, ENFILE } },
	{ __NR_epoll_create1, "epoll_create", { EMFILE, ENOMEM, ENFILE } },
	{ __NR_epoll_ctl, "epoll_ctl", { ENOMEM, ENOSPC } },
	{ __NR_timerfd_create, "timerfd_create", { EMFILE, ENOMEM } },
	{ __NR_memfd_create, "memfd_create", { EMFILE, ENOMEM } },
	{ __NR_pipe2, "pipe", { EMFILE, ENFILE } },
	{ __NR_clone, "clone", { EAGAIN, ENOMEM } },
	{ __NR_clone3, "clone3", { EAGAIN, ENOMEM } },
	{ __NR_membarrier, "membarrier", { EPERM, ENOSYS, ENOMEM } },
	{ __NR_socket, "socket", { EMFILE, EACCES, ENOBUFS } },
	{ __NR_bind, "bind", { ENOMEM, EACCES, EADDRINUSE } },
	{ __NR_listen, "listen", { ENOMEM, EADDRINUSE } },
	{ __NR_setsockopt, "setsockopt", { ENOMEM, EPERM } },
	{ __NR_getsockopt, "getsockopt", { ENOMEM, EPERM } },
	{ __NR_connect, "connect", { EAGAIN, ENOMEM, EINTR } },
	{ __NR_accept4, "accept", { EMFILE, ENOMEM, EINTR } },
	{ __NR_sendmsg, "sendmsg", { ENOMEM, ENOBUFS, EINTR } },
	{ __NR_recvmsg, "recvmsg", { ENOMEM, EMFILE, EINTR } },
	{ __NR_sendto, "sendto", { ENOMEM, ENOBUFS, EINTR } },
	{ __NR_recvfrom, "recvfrom", { ENOMEM, EINTR } },
	{ __NR_poll, "poll", { EINTR, ENOMEM } },
	{ __NR_ppoll, "ppoll", { EINTR, ENOMEM } },
	{ __NR_link, "link", { ENOSPC, EIO } },
	{ __NR_linkat, "linkat", { ENOSPC, EIO } },
	{ __NR_rename, "rename", { ENOSPC, EIO } },
	{ __NR_symlink, "symlink", { ENOSPC, EIO } },
	{ __NR_mkdir, "mkdir", { ENOSPC, EACCES } },
	{ __NR_getdents64, "getdents", { EIO, ENOMEM } },
	{ __NR_readlink, "readlink", { EIO, ENOMEM } },
	{ __NR_prctl, "prctl", { ENOMEM, EPERM } },
	{ __NR_sched_getaffinity, "sched_getaffinity", { EPERM } },
	{ __NR_pidfd_open, "pidfd_open", { EMFILE, ENOMEM } },
	{ __NR_kcmp, "kcmp", { EPERM, ENOSYS } },
};

/* Shared by the child and its parent, who is waited for with each call. */
struct shared {
	volatile bool armed;
	volatile int target;		/* the call that fails, from 0 on */
	volatile int count;
	volatile int round;		/* which errno of the call */
	volatile int nr;		/* that has failed; -1: none yet */
	volatile int err;		/* and how */
	volatile bool of_no_file;	/* an mmap(), maybe of malloc(), that says ENOMEM */
	volatile int complaints;
	char said[COMPLAINTS][ROOM];
	volatile int tried;
	int64_t end;			/* of all rounds */
};

static const struct fault *fault_of(int nr)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (faults[i].nr == nr)
			return &faults[i];
	return NULL;
}

static int errno_of(const struct fault *f, int round)
{
	int n = 0;

	while (n < MOST_ERRNOS && f->errnos[n])
		n++;
	return f->errnos[round % n];
}

/* ---- the parent's part -------------------------------------------------- */

/* Of a lock: what cannot be unlocked stays so, for all others too. */
static bool unlocks(const struct seccomp_notif *req)
{
	struct flock l;
	struct iovec here = { &l, sizeof(l) };
	struct iovec there = { (void *)(uintptr_t)req->data.args[2], sizeof(l) };

	return req->data.nr == __NR_fcntl && req->data.args[1] == F_OFD_SETLK &&
	       process_vm_readv((pid_t)req->pid, &here, 1, &there, 1, 0) == sizeof(l) &&
	       l.l_type == F_UNLCK;
}

/* What is to become of a call: 0, or an errno. */
static int decide(struct shared *s, const struct seccomp_notif *req)
{
	const struct fault *f;

	if (!s->armed)
		return 0;
	f = fault_of(req->data.nr);
	if (!f || unlocks(req) || s->count++ != s->target)
		return 0;
	s->nr = req->data.nr;
	s->of_no_file = s->nr == __NR_mmap && (int)req->data.args[4] < 0;
	s->err = errno_of(f, s->round);
	return s->err;
}

/* Until the child has ended: up to Linux 6.10 its filter stays until somebody waits for it. */
static void supervise(int fd, pid_t child, struct shared *s)
{
	struct seccomp_notif_resp resp;
	struct seccomp_notif req;
	struct pollfd p[2] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = (int)syscall(__NR_pidfd_open, child, 0), .events = POLLIN },
	};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (!(p[0].revents & POLLIN)) {
			if (!(p[0].revents & POLLHUP || p[1].revents))
				continue;
			close(p[1].fd);
			return;
		}
		memset(&req, 0, sizeof(req));
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &req))
			continue;
		memset(&resp, 0, sizeof(resp));
		resp.id = req.id;
		resp.error = -decide(s, &req);
		if (!resp.error)
			resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

static int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -errno;
}

static int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(sock, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/*
 * All calls but sendmsg() of this one, with which the descriptor of the filter goes to
 * the parent: the filter lets it pass on that socket, which the library does not use.
 */
static int install(int sock)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sendmsg, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)sock, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	int fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	fd = (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	if (fd < 0)
		return -errno;
	/* From here on the parent decides also about close(). */
	if (send_fd(sock, fd))
		return -EIO;
	close(fd);
	return 0;
}

/* ---- what is there ------------------------------------------------------ */

/* What a NIC says is in use. */
static const struct {
	uint16_t attr;
	const char *name;
} uses[] = {
	{ HAMLYN_A_CONTEXTS, "contexts" }, { HAMLYN_A_AREAS, "areas" },
	{ HAMLYN_A_SLOTS, "slots" }, { HAMLYN_A_NQS, "NQs" },
	{ HAMLYN_A_TERMINI, "termini" }, { HAMLYN_A_KERNEL_BYTES, "bytes of the kernel" },
	{ HAMLYN_A_WIRED_BYTES, "wired bytes" },
};

#define USES	ARRAY_SIZE(uses)

struct state {
	int fds;
	int threads;
	int files;		/* of our name, in /dev/shm and the folder of listeners */
	int shared;		/* mappings of files, or shared */
	long private_kib;
	uint64_t used[USES];	/* of the kernel device, or 0 */
	int areas;		/* of the embedded one */
};

static int entries_of(const char *path, const char *stem)
{
	struct dirent *e;
	int n = 0;
	DIR *d = opendir(path);

	while (d && (e = readdir(d)))
		n += !stem || strstr(e->d_name, stem);
	if (d)
		closedir(d);
	return n;
}

static void count_mappings(struct state *st)
{
	unsigned long from, to;
	char line[512], perms[8], rest[400];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		rest[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %399s", &from, &to, perms,
			   rest) < 3)
			continue;
		if (perms[3] == 's' || rest[0] == '/')
			st->shared++;
		else
			st->private_kib += (long)(to - from) / 1024;
	}
	if (f)
		fclose(f);
}

/* Whose areas are counted; NULL: they are the NIC's, or come and go with another process. */
static const struct h_dev *segment;

static void count_areas(struct state *st)
{
	int i;

	for (i = 0; segment && i < SHM_MAX_AREAS; i++)
		st->areas += h__read_once(&shm_of(segment)->seg->areas[i].owner) != 0;
}

/* Of whom it is asked; family 0: of nobody. The socket is there before anything fails. */
static struct genl genl;
static uint32_t nic;

static void count_uses(struct state *st)
{
	size_t i;

	if (!genl.family)
		return;
	genl_begin(&genl, HAMLYN_NL_CMD_NIC_GET);
	genl_put_u32(&genl, HAMLYN_A_NIC, nic);
	if (genl_call(&genl))
		return;
	for (i = 0; i < USES; i++)
		st->used[i] = genl_number(genl_attr(&genl, uses[i].attr));
}

static char stem[64];		/* in the names of all that is made */
static char folder[96];		/* of listeners */

static struct state state_now(void)
{
	struct state st = {
		.fds = entries_of("/proc/self/fd", NULL),
		.threads = entries_of("/proc/self/task", NULL),
		.files = entries_of("/dev/shm", stem) + entries_of(folder, stem),
	};

	count_mappings(&st);
	count_uses(&st);
	count_areas(&st);
	return st;
}

/*
 * A thread that has been joined is in the list for a moment longer, so is what workers of
 * the kernel free, and a socket in which strangers' descriptors may be is closed by a thread.
 * Nothing else is waited for: a file that was left would be swept up by the next process that
 * opens a segment.
 */
static bool has_settled(const struct state *now, const struct state *before, int kept)
{
	return now->threads == before->threads && now->fds <= before->fds + kept &&
	       !memcmp(now->used, before->used, sizeof(now->used));
}

static struct state state_same_as(const struct state *before, int kept)
{
	int64_t end = ht_now_ns() + THREAD_NS * ht_scale();
	struct state st;

	while (st = state_now(), !has_settled(&st, before, kept) && ht_now_ns() < end)
		ht_sleep_ns(HT_MS);
	return st;
}

/* ---- what is made ------------------------------------------------------- */

struct made {
	char name[160];
	char path[160];
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *ch;
	struct h_channel *other;
	struct h_listener *listener;
	struct h_dev *dev2;
	pid_t other_end;	/* a server, or a client */
};

struct scenario {
	const char *name;
	/* What there is before; of it nothing is let fail. */
	int (*prepare)(struct made *p);
	int (*make)(struct made *p);
	/* What was made in spite of a fault does what it is for: 0 or an errno. */
	int (*use)(struct made *p);
	int (*undo)(struct made *p);
	void (*end)(struct made *p);
	bool early;		/* h_explain() is asked with no device */
	bool keeps;		/* who waits to be accepted: by a descriptor, until the next try */
};

static int with_device(struct made *p)
{
	return h_open(p->name, &p->dev);
}

static int with_manager(struct made *p)
{
	int err = with_device(p);

	return err ? err : h_manager_create(p->dev, NULL, &p->m);
}

/*
 * In a process of its own: a client that leaves goes on being counted until all that it had
 * is gone.
 */
static void serve(struct made *p)
{
	struct h_listener *l;
	struct h_channel *ch;
	struct h_message m;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (with_manager(p) || h_listener_create(p->path, NULL, &l))
		_exit(1);
	for (;;) {
		if (h_channel_accept(l, p->m, NULL, &ch, SECOND))
			continue;
		while (h_channel_receive(ch, &m, 10 * SECOND) == 0)
			h_channel_release(ch, &m);
		h_channel_close(ch, SECOND);
	}
}

static int with_server(struct made *p)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	int err;

	p->other_end = fork();
	if (!p->other_end)
		serve(p);
	err = with_manager(p);
	if (err)
		return err;
	do {
		err = h_channel_connect(p->m, p->path, NULL, &p->ch, 10 * SECOND);
		if (err)
			ht_sleep_ns(10 * HT_MS);
	} while (err && ht_now_ns() < end);
	if (!err)
		h_channel_close(p->ch, 10 * SECOND);
	return err;
}

/* Whoever is turned away, because of a fault, comes again. */
static void visit(struct made *p)
{
	struct h_channel *ch;
	struct h_message m;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (with_manager(p))
		_exit(1);
	for (;;) {
		if (h_channel_connect(p->m, p->path, NULL, &ch, SECOND)) {
			ht_sleep_ns(HT_MS);
			continue;
		}
		h_channel_send(ch, "word", 4, SECOND);
		while (h_channel_receive(ch, &m, 10 * SECOND) == 0)
			h_channel_release(ch, &m);
		h_channel_close(ch, SECOND);
	}
}

static int with_client(struct made *p)
{
	int err;

	p->other_end = fork();
	if (!p->other_end)
		visit(p);
	err = with_manager(p);
	return err ? err : h_listener_create(p->path, NULL, &p->listener);
}

static void end_all(struct made *p)
{
	if (p->other_end > 0) {
		kill(p->other_end, SIGKILL);
		ht_reap(p->other_end);
	}
	if (p->m)
		h_manager_destroy(p->m);
	if (p->dev)
		h_close(p->dev);
}

static int make_open(struct made *p)
{
	return h_open(p->name, &p->dev2);
}

static int use_open(struct made *p)
{
	struct hamlyn_query query;

	return h_query(p->dev2, &query);
}

static int undo_open(struct made *p)
{
	h_close(p->dev2);
	return 0;
}

static int make_manager(struct made *p)
{
	return h_manager_create(p->dev, NULL, &p->m);
}

static int use_manager(struct made *p)
{
	void *memory;
	int err = h_manager_alloc(p->m, 4096, &memory);

	if (err)
		return err;
	memset(memory, 1, 4096);
	h_manager_poll(p->m);
	return h_manager_free(p->m, memory);
}

static int undo_manager(struct made *p)
{
	int err = h_manager_destroy(p->m);

	p->m = NULL;
	return err;
}

static int make_loop(struct made *p)
{
	int err = make_manager(p);

	if (err)
		return err;
	err = h_manager_fd(p->m);
	if (err >= 0)
		return 0;
	undo_manager(p);
	return err;
}

static int make_pair(struct made *p)
{
	return h_channel_pair(p->m, p->m, NULL, &p->ch, &p->other);
}

static int use_pair(struct made *p)
{
	return ht_pass_word(p->ch, p->other) ?: ht_pass_word(p->other, p->ch);
}

static int undo_pair(struct made *p)
{
	h_channel_close(p->ch, H_NOWAIT);
	h_channel_close(p->other, H_NOWAIT);
	return 0;
}

static int make_listener(struct made *p)
{
	return h_listener_create(p->path, NULL, &p->listener);
}

/* Nobody has come. */
static int use_listener(struct made *p)
{
	struct h_channel *ch;
	struct h_manager *m;
	struct h_dev *dev;
	int err = h_open(p->name, &dev);

	if (err)
		return err;
	err = h_manager_create(dev, NULL, &m);
	if (!err) {
		err = h_channel_accept(p->listener, m, NULL, &ch, H_NOWAIT);
		err = err == -EAGAIN ? h_manager_destroy(m) : -EPROTO;
	}
	h_close(dev);
	return err;
}

static int undo_listener(struct made *p)
{
	h_listener_destroy(p->listener);
	return 0;
}

static int make_connection(struct made *p)
{
	return h_channel_connect(p->m, p->path, NULL, &p->ch, 20 * SECOND);
}

static int use_connection(struct made *p)
{
	return h_channel_send(p->ch, "word", 4, 20 * SECOND);
}

static int undo_connection(struct made *p)
{
	return h_channel_close(p->ch, 20 * SECOND);
}

static int make_accepted(struct made *p)
{
	return h_channel_accept(p->listener, p->m, NULL, &p->ch, 20 * SECOND);
}

static int use_accepted(struct made *p)
{
	struct h_message m;
	int err = h_channel_receive(p->ch, &m, 20 * SECOND);

	if (!err)
		h_channel_release(p->ch, &m);
	return err;
}

static void end_accepting(struct made *p)
{
	h_listener_destroy(p->listener);
	end_all(p);
}

static int nothing(struct made *p)
{
	(void)p;
	return 0;
}

static const struct scenario scenarios[] = {
	{ "a segment or an open file", nothing, make_open, use_open, undo_open, end_all,
	  true, false },
	{ "one more of it", with_device, make_open, use_open, undo_open, end_all,
	  true, false },
	{ "a manager", with_device, make_manager, use_manager, undo_manager, end_all,
	  false, false },
	{ "a manager for an event loop", with_device, make_loop, use_manager, undo_manager,
	  end_all, false, false },
	{ "a pair of channels", with_manager, make_pair, use_pair, undo_pair, end_all,
	  false, false },
	{ "a listener", nothing, make_listener, use_listener, undo_listener, end_all,
	  true, false },
	{ "a connection", with_server, make_connection, use_connection, undo_connection,
	  end_all, false, false },
	{ "a client that is accepted", with_client, make_accepted, use_accepted, undo_connection,
	  end_accepting, false, true },
};

/* ---- the child's part --------------------------------------------------- */

static void complain(struct shared *s, const struct scenario *sc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void complain(struct shared *s, const struct scenario *sc, const char *format, ...)
{
	const struct fault *f = s->nr < 0 ? NULL : fault_of(s->nr);
	char what[ROOM / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (s->complaints < COMPLAINTS)
		snprintf(s->said[s->complaints], ROOM, "%s, call %d (%s: %s): %s", sc->name,
			 s->target, f ? f->name : "none", strerrorname_np(s->err) ?: "0",
			 what);
	s->complaints++;
}

/* The errno is that of the call, or what the C library makes of it. */
static bool is_true(const struct shared *s, int err)
{
	if (s->nr == __NR_clone || s->nr == __NR_clone3)
		return err == -EAGAIN;
	return err == -s->err || (s->of_no_file && err == -ENOMEM);
}

static void look_at_failure(struct shared *s, const struct scenario *sc, struct made *p,
			    int err)
{
	char why[HAMLYN_EXPLAIN_BYTES] = "";
	int ret = h_explain(sc->early ? NULL : p->dev, why, sizeof(why));

	if (!is_true(s, err))
		complain(s, sc, "returned %s (%s)", strerrorname_np(-err) ?: "?", why);
	if (ret || (sc->early && !why[0]))
		complain(s, sc, "not explained: %d", ret);
}

/* It has been made. */
static void use_and_undo(struct shared *s, const struct scenario *sc, struct made *p)
{
	int err = sc->use(p);

	if (err)
		complain(s, sc, "cannot be used: %s", strerrorname_np(-err) ?: "?");
	err = sc->undo(p);
	if (err)
		complain(s, sc, "cannot be undone: %s", strerrorname_np(-err) ?: "?");
}

/* What is made once, and kept: buffers of the C library, the stack of a thread. */
static int warm_up(struct shared *s, const struct scenario *sc, struct made *p)
{
	int i, err;

	for (i = 0; i < 3; i++) {
		err = sc->make(p);
		if (err)
			return err;
		use_and_undo(s, sc, p);
	}
	return 0;
}

static bool is_same(const struct state *a, const struct state *b, int kept)
{
	return b->fds >= a->fds && b->fds <= a->fds + kept && a->threads == b->threads &&
	       a->files == b->files && a->shared == b->shared && a->areas == b->areas &&
	       !memcmp(a->used, b->used, sizeof(a->used));
}

/* What the manager keeps more of than before when it has given back all that it can, is lost. */
static void look_for_lost(struct shared *s, const struct scenario *sc, struct made *p,
			  const struct state *a)
{
	struct state b;
	size_t i;

	h__pool_trim_all(&p->m->receive);
	h__pool_trim_all(&p->m->send);
	b = state_now();
	if (b.areas > a->areas)
		complain(s, sc, "%d areas are lost in the manager", b.areas - a->areas);
	for (i = 0; i < USES; i++)
		if (uses[i].attr == HAMLYN_A_AREAS && b.used[i] > a->used[i])
			complain(s, sc, "%llu areas are lost in the manager",
				 (unsigned long long)(b.used[i] - a->used[i]));
}

/*
 * Who found no memory has the manager give back areas that nobody uses, so that it may keep
 * others from then on. A new one has what the first one had.
 */
static void renew(struct shared *s, const struct scenario *sc, struct made *p,
		  const struct state *a)
{
	int err;

	look_for_lost(s, sc, p, a);
	err = h_manager_destroy(p->m);
	if (!err)
		err = h_manager_create(p->dev, NULL, &p->m);
	if (!err)
		err = warm_up(s, sc, p);
	if (err)
		complain(s, sc, "a new manager: %s", strerrorname_np(-err) ?: "?");
}

static void compare(struct shared *s, const struct scenario *sc, struct made *p,
		    const char *when, const struct state *a, int kept)
{
	struct state b = state_same_as(a, kept);
	size_t i;

	if (!is_same(a, &b, kept) && sc->prepare == with_manager) {
		renew(s, sc, p, a);
		b = state_same_as(a, kept);
	}
	if (b.fds < a->fds || b.fds > a->fds + kept || a->threads != b.threads ||
	    a->files != b.files || a->shared != b.shared)
		complain(s, sc,
			 "%s: %d fds, %d threads, %d files, %d mappings; was %d, %d, %d, %d",
			 when, b.fds, b.threads, b.files, b.shared, a->fds, a->threads,
			 a->files, a->shared);
	if (a->areas != b.areas)
		complain(s, sc, "%s: %d areas in the segment; was %d", when, b.areas, a->areas);
	for (i = 0; i < USES; i++)
		if (a->used[i] != b.used[i])
			complain(s, sc, "%s: %llu %s in the NIC; was %llu", when,
				 (unsigned long long)b.used[i], uses[i].name,
				 (unsigned long long)a->used[i]);
}

/* One fault. False if there was no call of that number. */
static bool try_one(struct shared *s, const struct scenario *sc, struct made *p,
		    const struct state *before)
{
	int err;

	s->count = 0;
	s->nr = -1;
	s->err = 0;
	s->armed = true;
	err = sc->make(p);
	s->armed = false;
	if (s->nr < 0 && err)
		complain(s, sc, "without a fault: %s", strerrorname_np(-err) ?: "?");
	if (!err)
		use_and_undo(s, sc, p);
	else if (s->nr >= 0)
		look_at_failure(s, sc, p, err);
	compare(s, sc, p, "left", before, sc->keeps);
	if (s->nr < 0)
		return false;
	err = sc->make(p);
	if (err)
		complain(s, sc, "a second try: %s", strerrorname_np(-err) ?: "?");
	else
		use_and_undo(s, sc, p);
	compare(s, sc, p, "after a second try", before, 0);
	return true;
}

/* Not where there is another process, which comes and goes. */
static void ask_nic(const struct made *p)
{
	if (p->name[0] != '/' && p->dev && !p->other_end)
		segment = p->dev;
	if (p->other_end || sscanf(p->name, "/dev/hamlyn%u", &nic) != 1)
		return;
	if (genl_open(&genl, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		genl.family = 0;
}

static int child(struct shared *s, const struct scenario *sc, int sock)
{
	struct made p = {};
	struct state before;
	long grown;
	int err;

	snprintf(p.name, sizeof(p.name), "%s", ht_device() && ht_device()[0] == '/' ?
		 ht_device() : "shm:");
	if (p.name[0] != '/')
		snprintf(p.name, sizeof(p.name), "shm:%s,size=16m", stem);
	snprintf(p.path, sizeof(p.path), "%s/%s", folder, stem);
	alarm((unsigned int)(s->end > ht_now_ns() ? (s->end - ht_now_ns()) / SECOND + 1 : 1));
	err = sc->prepare(&p);
	if (err) {
		complain(s, sc, "cannot be prepared: %s", strerrorname_np(-err) ?: "?");
		return 1;
	}
	err = warm_up(s, sc, &p);
	if (err) {
		complain(s, sc, "cannot be made: %s", strerrorname_np(-err) ?: "?");
		return 1;
	}
	ask_nic(&p);
	err = install(sock);
	if (err)
		return 2;
	close(sock);
	before = state_now();
	while (s->target < MOST_CALLS && s->complaints < COMPLAINTS &&
	       try_one(s, sc, &p, &before)) {
		s->target++;
		s->tried++;
	}
	grown = state_now().private_kib - before.private_kib;
	if (grown > MOST_KIB)
		complain(s, sc, "%ld KiB more than before", grown);
	sc->end(&p);
	return 0;
}

/* ---- tests -------------------------------------------------------------- */

FIXTURE(syscall_faults) {
	struct shared *s;
};

FIXTURE_SETUP(syscall_faults)
{
	self->s = mmap(NULL, sizeof(*self->s), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->s);
	snprintf(stem, sizeof(stem), "hamlyn-faults-%d", getpid());
	snprintf(folder, sizeof(folder), "/tmp/hamlyn-faults-%d.d", getpid());
	ASSERT_EQ(0, mkdir(folder, 0700));
}

FIXTURE_TEARDOWN(syscall_faults)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", folder, stem);
	unlink(path);
	EXPECT_EQ(0, rmdir(folder));
}

/* Exit status of the child, or 128 + signal. */
static int walk(struct shared *s, const struct scenario *sc)
{
	int fds[2], fd, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	pid = fork();
	if (!pid) {
		close(fds[0]);
		_exit(child(s, sc, fds[1]));
	}
	close(fds[1]);
	fd = receive_fd(fds[0]);
	close(fds[0]);
	if (fd >= 0) {
		supervise(fd, pid, s);
		close(fd);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void walk_all(struct __test_metadata *_metadata, FIXTURE_DATA(syscall_faults) *self,
		     const struct scenario *sc)
{
	struct shared *s = self->s;
	int i, status;

#ifdef __SANITIZE_THREAD__
	SKIP(return, "the thread sanitizer's own calls would fail, too");
#endif
	s->end = ht_now_ns() + 10 * ht_patience_ns();
	for (s->round = 0; s->round < ht_rounds(MOST_ERRNOS); s->round++) {
		s->target = 0;
		do {
			status = walk(s, sc);
			if (status == 2)
				SKIP(return, "no seccomp filter can be had");
			EXPECT_EQ(0, status) {
				TH_LOG("%s, call %d, round %d: ended by %d", sc->name,
				       s->target, s->round, status);
			}
			s->target += !!status;
		} while (status > 2 && s->target < MOST_CALLS && ht_now_ns() < s->end);
	}
	for (i = 0; i < s->complaints && i < COMPLAINTS; i++)
		TH_LOG("%s", s->said[i]);
	EXPECT_EQ(0, s->complaints);
	/* Or nothing was tried. */
	EXPECT_LT(ht_rounds(MOST_ERRNOS), s->tried);
	TH_LOG("%s: %d faults", sc->name, s->tried);
}

TEST_F(syscall_faults, of_a_segment_or_an_open_file)
{
	walk_all(_metadata, self, &scenarios[0]);
}

TEST_F(syscall_faults, of_one_more)
{
	walk_all(_metadata, self, &scenarios[1]);
}

TEST_F(syscall_faults, of_a_manager)
{
	walk_all(_metadata, self, &scenarios[2]);
}

TEST_F(syscall_faults, of_a_manager_for_an_event_loop)
{
	walk_all(_metadata, self, &scenarios[3]);
}

TEST_F(syscall_faults, of_a_pair_of_channels)
{
	walk_all(_metadata, self, &scenarios[4]);
}

TEST_F(syscall_faults, of_a_listener)
{
	walk_all(_metadata, self, &scenarios[5]);
}

TEST_F(syscall_faults, of_a_connection)
{
	walk_all(_metadata, self, &scenarios[6]);
}

TEST_F(syscall_faults, of_a_client_that_is_accepted)
{
	walk_all(_metadata, self, &scenarios[7]);
}

TEST_HARNESS_MAIN
