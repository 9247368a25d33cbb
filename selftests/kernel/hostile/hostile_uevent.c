// SPDX-License-Identifier: GPL-2.0-only
/*
 * A NIC shows in sysfs, and is told of by uevents, in its own network namespace only. Kernel
 * device only, run as root.
 */
#include "kselftest_harness.h"
#include "hostile.h"
#include "nics.h"

#include <linux/netlink.h>
#include <sys/mount.h>

#define KERNEL_GROUP	1	/* of uevents: udev's own are others */

static int listen_uevents(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK,
				       .nl_groups = KERNEL_GROUP };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
			NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (void *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Was that done to that NIC, of what has arrived? Earlier events are taken. */
static bool heard(int fd, const char *action, uint32_t nic)
{
	static char event[8192];
	char end[32];
	ssize_t n;

	snprintf(end, sizeof(end), "/hamlyn%u", nic);
	while ((n = recv(fd, event, sizeof(event) - 1, MSG_DONTWAIT)) > 0) {
		size_t from, length;

		event[n] = 0;
		length = strlen(event);
		from = length - strlen(end);
		if (length > strlen(end) && !strcmp(event + from, end) &&
		    !strncmp(event, action, strlen(action)))
			return true;
	}
	return false;
}

static bool heard_soon(int fd, const char *action, uint32_t nic)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!heard(fd, action, nic))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static bool shows(uint32_t nic)
{
	char in_class[64], device[64];

	snprintf(in_class, sizeof(in_class), "/sys/class/hamlyn/hamlyn%u", nic);
	snprintf(device, sizeof(device), "/sys/devices/virtual/hamlyn/hamlyn%u",
		 nic);
	return !access(in_class, F_OK) || !access(device, F_OK);
}

static bool shows_soon(uint32_t nic, bool want)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (shows(nic) != want)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* A network namespace of its own, and the sysfs that belongs to it. */
static int leave_network(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	return mount("sysfs", "/sys", "sysfs", 0, NULL) ? -errno : 0;
}

/* Is told of the NIC that is moved there, and sees nothing of the other one. */
static int look_elsewhere(int ready, uint32_t ours, uint32_t others)
{
	char byte = 'r';
	uint32_t made;
	int fd;

	if (leave_network())
		return 1;
	fd = listen_uevents();
	if (fd < 0 || shows(ours) || shows(others))
		return 2;
	if (write(ready, &byte, 1) != 1 || !heard_soon(fd, "add@", ours))
		return 3;
	if (!shows(ours) || shows(others))
		return 4;
	/* A NIC was made and deleted there: of that one. */
	if (ht_read_all(ready, &made, sizeof(made)) || heard(fd, "add@", made))
		return 5;
	return 0;
}

FIXTURE(hostile_uevent) {
	struct genl g;
	int events;
	int sockets[2];
	int moved;
	int stays;
};

FIXTURE_SETUP(hostile_uevent)
{
	if (getuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
	self->events = listen_uevents();
	ASSERT_LE(0, self->events);
	self->moved = nic_new(&self->g);
	ASSERT_LE(0, self->moved);
	self->stays = nic_new(&self->g);
	ASSERT_LE(0, self->stays);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, self->sockets));
}

FIXTURE_TEARDOWN(hostile_uevent)
{
	if (getuid())
		return;
	nic_delete_soon(&self->g, (uint32_t)self->stays);
	close(self->sockets[0]);
	close(self->sockets[1]);
	close(self->events);
	genl_close(&self->g);
}

TEST_F(hostile_uevent, a_nic_shows_where_it_is)
{
	uint32_t moved = (uint32_t)self->moved, stays = (uint32_t)self->stays;
	uint32_t made;
	char byte;
	pid_t pid;
	int nic;

	EXPECT_TRUE(heard_soon(self->events, "add@", moved));
	EXPECT_TRUE(shows(moved));
	pid = ht_fork();
	if (!pid)
		_exit(look_elsewhere(self->sockets[1], moved, stays));
	ASSERT_EQ(0, ht_read_all(self->sockets[0], &byte, 1));
	ASSERT_EQ(0, nic_move(&self->g, moved, pid));
	EXPECT_TRUE(heard_soon(self->events, "remove@", moved));
	EXPECT_FALSE(shows(moved));
	/* Of what becomes of it there nobody is told here, nor of ours there. */
	nic = nic_new(&self->g);
	ASSERT_LE(0, nic);
	made = (uint32_t)nic;
	EXPECT_TRUE(heard_soon(self->events, "add@", made));
	EXPECT_EQ(0, nic_delete(&self->g, made));
	ASSERT_EQ(0, ht_write_all(self->sockets[0], &made, sizeof(made)));
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_EQ(0, nic_is_gone_soon(&self->g, moved));
}

/* Opens it there, and passes it on. The namespace ends with the process: not before told to. */
static int take_out(int ready, uint32_t nic)
{
	struct ht_poll poll;
	char byte;
	int fd;

	if (leave_network() || write(ready, "r", 1) != 1)
		return 1;
	ht_poll_begin(&poll);
	do
		fd = nic_open(nic);
	while (fd == -EPERM && ht_poll_more(&poll));
	if (fd < 0 || pass_fd(ready, fd))
		return 2;
	return ht_read_all(ready, &byte, 1) ? 3 : 0;
}

TEST_F(hostile_uevent, one_that_outlives_its_namespace_shows_at_home)
{
	uint32_t nic = (uint32_t)self->moved;
	struct ht_poll poll;
	char byte;
	pid_t pid;
	int fd, ret;

	pid = ht_fork();
	if (!pid)
		_exit(take_out(self->sockets[1], nic));
	ASSERT_EQ(0, ht_read_all(self->sockets[0], &byte, 1));
	ASSERT_EQ(0, nic_move(&self->g, nic, pid));
	EXPECT_FALSE(shows(nic));
	ASSERT_EQ(0, ht_write_all(self->sockets[0], "e", 1));
	EXPECT_EQ(0, ht_reap(pid));
	fd = get_fd(self->sockets[0]);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(shows_soon(nic, true));
	EXPECT_TRUE(heard_soon(self->events, "add@", nic));
	close(fd);
	/* It shows a moment before it is there to be deleted. */
	ht_poll_begin(&poll);
	do
		ret = nic_delete_soon(&self->g, nic);
	while (ret == -ENODEV && ht_poll_more(&poll));
	EXPECT_EQ(0, ret);
	EXPECT_TRUE(heard_soon(self->events, "remove@", nic));
	EXPECT_FALSE(shows(nic));
}

TEST_HARNESS_MAIN
