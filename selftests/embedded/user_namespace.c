// SPDX-License-Identifier: GPL-2.0-only
/*
 * A segment in a user namespace of one's own: the same as outside, whatever number the user
 * has there; where it has none that is said. Embedded device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <hamlyn/channel.h>

#define NO_NAMESPACE	77	/* exit status: it is refused */
#define NO_NUMBER	UINT_MAX

FIXTURE(user_namespace) {
	char name[64];
	char at[64];
	unsigned int user;
	struct h_dev *dev;
	struct h_manager *m;
	struct h_listener *listener;
};

FIXTURE_SETUP(user_namespace)
{
	if (ht_device() && strncmp(ht_device(), "shm:", 4))
		SKIP(return, "only for the embedded device");
	self->user = geteuid();
	snprintf(self->name, sizeof(self->name), "shm:inside%d,size=8M", (int)getpid());
	snprintf(self->at, sizeof(self->at), "@inside%d", (int)getpid());
	ASSERT_EQ(0, h_open(self->name, &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_listener_create(self->at, NULL, &self->listener));
}

FIXTURE_TEARDOWN(user_namespace)
{
	if (!self->dev)
		return;
	h_listener_destroy(self->listener);
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/* Where @user of outside is @inside, or nobody. */
static int enter(unsigned int user, unsigned int inside)
{
	char line[64];

	if (unshare(CLONE_NEWUSER))
		return -errno;
	ht_stay_child();
	if (inside == NO_NUMBER)
		return 0;
	snprintf(line, sizeof(line), "%u %u 1\n", inside, user);
	return ht_put("/proc/self/uid_map", line);
}

static int say_word(const char *at, struct h_dev *dev)
{
	struct h_channel *ch;
	struct h_manager *m;
	int ret = h_manager_create(dev, NULL, &m);

	if (ret)
		return ret;
	ret = h_channel_connect(m, at, NULL, &ch, ht_patience_ns());
	if (!ret) {
		ret = h_channel_send(ch, "word", 4, ht_patience_ns());
		h_channel_close(ch, ht_patience_ns());
	}
	h_manager_destroy(m);
	return ret;
}

/* Exit status: 0, NO_NAMESPACE, or an errno. */
static int join(FIXTURE_DATA(user_namespace) *self, unsigned int inside, const char *words)
{
	char text[HAMLYN_EXPLAIN_BYTES] = "";
	struct h_dev *dev;
	int ret;

	if (enter(self->user, inside))
		return NO_NAMESPACE;
	ret = h_open(self->name, &dev);
	if (ret) {
		h_explain(NULL, text, sizeof(text));
		if (!strstr(text, words))
			fprintf(stderr, "# not \"%s\": %s\n", words, text);
		return strstr(text, words) ? -ret : EBADMSG;
	}
	ret = say_word(self->at, dev);
	h_close(dev);
	return -ret;
}

static pid_t start(FIXTURE_DATA(user_namespace) *self, unsigned int inside, const char *words)
{
	pid_t pid = ht_fork();

	if (!pid)
		_exit(join(self, inside, words));
	return pid;
}

/* Who comes with a word: 0, or an errno; also if nobody does. */
static int hear_word(FIXTURE_DATA(user_namespace) *self, pid_t pid)
{
	int ret = -ETIMEDOUT, status = 0;
	struct h_channel *ch;
	struct h_message m;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (ret == -ETIMEDOUT && ht_poll_more(&poll) && !waitpid(pid, &status, WNOHANG))
		ret = h_channel_accept(self->listener, self->m, NULL, &ch, HT_MS);
	if (ret)
		return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : -ret;
	ret = h_channel_receive(ch, &m, ht_patience_ns());
	if (!ret)
		ret = m.length == 4 ? h_channel_release(ch, &m) : -EBADMSG;
	h_channel_close(ch, ht_patience_ns());
	return -ret ?: ht_reap(pid);
}

static void meet(struct __test_metadata *_metadata, FIXTURE_DATA(user_namespace) *self,
		 unsigned int inside)
{
	int ret = hear_word(self, start(self, inside, ""));

	if (ret == NO_NAMESPACE)
		SKIP(return, "user namespaces are refused");
	EXPECT_EQ(0, ret);
}

TEST_F(user_namespace, who_is_root_inside_meets_those_outside)
{
	meet(_metadata, self, 0);
}

TEST_F(user_namespace, who_has_another_number_inside_meets_those_outside)
{
	meet(_metadata, self, 4711);
}

TEST_F(user_namespace, who_has_the_same_number_inside_meets_those_outside)
{
	meet(_metadata, self, self->user);
}

TEST_F(user_namespace, who_is_nobody_inside_is_told_so)
{
	int ret = ht_reap(start(self, NO_NUMBER, "user namespace"));

	if (ret == NO_NAMESPACE)
		SKIP(return, "user namespaces are refused");
	EXPECT_EQ(EACCES, ret);
}

TEST_HARNESS_MAIN
