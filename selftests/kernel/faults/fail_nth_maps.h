/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that are made to fail: mappings, what happens to them, and waiting. */
#ifndef FAIL_NTH_MAPS_H
#define FAIL_NTH_MAPS_H

#include "fail_nth_objects.h"

#include <poll.h>
#include <sys/epoll.h>

static int map(uint64_t offset, uint64_t length, int prot, int flags)
{
	void *p = mmap(NULL, length, prot, MAP_SHARED | flags, env.p.fd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		return -errno;
	env.mapped = p;
	env.mapped_length = length;
	return 0;
}

static int act_map(void)
{
	const struct call *c = env.call;

	return map(*c->offset, *c->mapped, c->prot, 0);
}

/* Page by page, or as one, when it is touched: now. */
static int act_map_huge(void)
{
	return map(env.area_offset, env.area_length, PROT_READ | PROT_WRITE,
		   MAP_POPULATE);
}

/* Of several pages. */
static int before_map(void)
{
	return map(env.spare.mmap_offset, env.spare.length,
		   PROT_READ | PROT_WRITE, 0);
}

/* One mapping becomes two. */
static int act_split(void)
{
	return munmap(env.mapped + PAGE, PAGE) ? -errno : 0;
}

/* Behind what is wired. */
static char *elsewhere(void)
{
	return env.own + BIG + PAGE;
}

static char *moved_from;

static int act_move(void)
{
	void *to = mremap(env.mapped, env.mapped_length, env.mapped_length,
			  MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere());

	if (to == MAP_FAILED)
		return -errno;
	moved_from = env.mapped;
	env.mapped = to;
	return 0;
}

/*
 * A kernel without memory may move a mapping and leave the old one where it was.
 * No hole is left at the new place: the next mapping would be made in it.
 */
static void after_move(void)
{
	if (moved_from)
		munmap(moved_from, env.spare.length);
	moved_from = NULL;
	if (mmap(elsewhere(), env.spare.length, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		printf("# the place behind is lost: %s\n", strerror(errno));
}

static int act_fork(void)
{
	env.child = fork();
	if (!env.child)
		_exit(0);
	return env.child < 0 ? -errno : 0;
}

/* ---- waiting ---- */

static int act_poll(void)
{
	struct pollfd p = { .fd = env.p.fd, .events = POLLIN };

	return poll(&p, 1, 1) < 0 ? -errno : 0;
}

static int before_epoll(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return made_fd(fd < 0 ? -errno : fd);
}

static int act_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(env.fd, EPOLL_CTL_ADD, env.p.fd, &event) ? -errno : 0;
}

/* ---- all of them ---- */

#define RW	(PROT_READ | PROT_WRITE)

static const struct call map_calls[] = {
	{ .name = "mmap of an area", .act = act_map, .prot = RW,
	  .offset = &env.spare.mmap_offset, .mapped = &env.spare.length },
	{ .name = "mmap of an NQ", .act = act_map, .prot = PROT_READ,
	  .offset = &env.p.nq.arg.ring_offset,
	  .mapped = &env.p.nq.arg.ring_length },
	{ .name = "mmap of an NQ's control page", .act = act_map, .prot = RW,
	  .offset = &env.p.nq.arg.control_offset,
	  .mapped = &env.p.nq.arg.control_length },
	{ .name = "mmap of a work queue", .act = act_map, .prot = RW,
	  .offset = &env.p.terminus.arg.wq_offset,
	  .mapped = &env.p.terminus.arg.wq_length },
	{ .name = "mmap of a status", .act = act_map, .prot = PROT_READ,
	  .offset = &env.p.terminus.arg.status_offset,
	  .mapped = &env.p.terminus.arg.status_length },
	{ .name = "mmap of an area of huge pages", .before = act_area_alloc,
	  .act = act_map_huge, .length = 2 << 20, .flags = HAMLYN_AREA_HUGE },
	{ .name = "munmap of the middle", .before = before_map,
	  .act = act_split },
	{ .name = "mremap", .before = before_map, .act = act_move,
	  .after = after_move },
	{ .name = "fork", .before = before_map, .act = act_fork,
	  .error = EAGAIN, .faults_once = true },
	{ .name = "poll", .act = act_poll },
	{ .name = "epoll_ctl", .before = before_epoll, .act = act_epoll },
};

#undef RW

#endif /* FAIL_NTH_MAPS_H */
