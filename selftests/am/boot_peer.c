// SPDX-License-Identifier: GPL-2.0-only
/*
 * boot_peer [HOW [RANK]] - joins a program by libhamlyn/am/boot.h alone, exchanges texts
 * twice and prints "rank R size N way W job J". Process RANK (default 0) does it HOW
 * otherwise; see hows[].
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "boot.h"

static struct am_boot boot;

__attribute__((format(printf, 1, 2), noreturn))
static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "boot_peer: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static void must(int ret, const char *what)
{
	if (ret < 0)
		fail("rank %d: %s: %s (%s)", boot.rank, what, boot.error, strerror(-ret));
}

static void fence(void)
{
	int ret;

	must(boot.ops->fence_begin(&boot), "fence_begin");
	do
		ret = boot.ops->fence_done(&boot);
	while (!ret);
	must(ret, "fence_done");
}

/* A text of the largest size that tells who wrote it */
static void fill(char *value, int rank, int round)
{
	int n = snprintf(value, AM_BOOT_VALUE_BYTES, "%d:%d:", rank, round);

	memset(value + n, 'a' + rank % 26, (size_t)(AM_BOOT_VALUE_BYTES - 1 - n));
	value[AM_BOOT_VALUE_BYTES - 1] = 0;
}

static void exchange(int round)
{
	char key[AM_BOOT_KEY_BYTES], mine[AM_BOOT_VALUE_BYTES], got[AM_BOOT_VALUE_BYTES];
	int rank;

	snprintf(key, sizeof(key), "key-of-the-largest-size-there-%d", round);
	fill(mine, boot.rank, round);
	must(boot.ops->put(&boot, key, mine), "put");
	fence();
	for (rank = 0; rank < boot.size; rank++) {
		fill(mine, rank, round);
		must(boot.ops->get(&boot, rank, key, got), "get");
		if (strcmp(mine, got))
			fail("rank %d got \"%s\" from %d", boot.rank, got, rank);
	}
}

/* ---- otherwise ---------------------------------------------------------- */

/* What a launcher that ends it too early would cut off comes late. */
static void how_fail(void)
{
	const struct timespec pause = { .tv_nsec = 300000000 };

	boot.ops->close(&boot, AM_BOOT_FAILED);
	nanosleep(&pause, NULL);
	fail("I have failed, and said so");
}

static void how_exit(void)
{
	_exit(7);
}

static void how_kill(void)
{
	raise(SIGKILL);
}

static void how_leave(void)
{
	_exit(0);
}

static void how_part(void)
{
	boot.ops->close(&boot, AM_BOOT_WELL);
	_exit(0);
}

static void how_hang(void)
{
	printf("hanging %ld\n", (long)getpid());
	fflush(stdout);
	for (;;)
		pause();
}

static void how_stubborn(void)
{
	signal(SIGTERM, SIG_IGN);
	how_hang();
}

static void how_stop(void)
{
	printf("stopped %ld\n", (long)getpid());
	fflush(stdout);
	raise(SIGSTOP);
}

static void say(const char *text, size_t length)
{
	const char *fd = getenv("PMI_FD");

	if (!fd || send(atoi(fd), text, length, MSG_NOSIGNAL) != (ssize_t)length)
		fail("PMI_FD takes nothing");
}

/* As MPI's library does */
static void how_abort(void)
{
	static const char text[] = "cmd=abort exitcode=1\n";

	say(text, sizeof(text) - 1);
	for (;;)
		pause();
}

static void how_garbage(void)
{
	static const char text[] = "hello, is it me?\n";

	say(text, sizeof(text) - 1);
}

static void how_binary(void)
{
	say("cmd=\0\n", 6);
}

static void how_endless(void)
{
	char text[4096];

	memset(text, 'a', sizeof(text));
	say(text, sizeof(text));
	how_hang();
}

/* Never reads an answer; the launcher must neither wait nor grow */
static void how_flood(void)
{
	signal(SIGTERM, SIG_DFL);
	for (;;)
		say("cmd=get_maxes\n", 14);
}

static void how_many(void)
{
	char key[AM_BOOT_KEY_BYTES];
	int i, ret = 0;

	for (i = 0; !ret && i < 100000; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		ret = boot.ops->put(&boot, key, "v");
	}
	fail("after %d texts: %s", i, boot.error);
}

static void how_missing(void)
{
	char value[AM_BOOT_VALUE_BYTES];
	int ret = boot.ops->get(&boot, boot.size - 1, "nobody", value);

	if (ret != -ENOENT)
		fail("what is missing: %d, %s", ret, boot.error);
	if (boot.ops->get(&boot, boot.size, "nobody", value) != -EINVAL ||
	    boot.ops->get(&boot, -1, "nobody", value) != -EINVAL)
		fail("there is a process too many");
}

static void how_twice(void)
{
	struct am_boot again;

	if (am_boot_open(&again) < 0)
		fail("again: %s", again.error);
}

static void how_bad(void)
{
	static const char *const texts[] = {
		"", "a b", "a=b", "a\nb", "a\tb", "\x7f", "\xc3\xa4",
	};
	char large[AM_BOOT_VALUE_BYTES + 1];
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (boot.ops->put(&boot, "key", texts[i]) != -EINVAL ||
		    boot.ops->put(&boot, texts[i], "value") != -EINVAL)
			fail("text %zu was published", i);
	memset(large, 'a', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	if (boot.ops->put(&boot, "key", large) != -EMSGSIZE ||
	    boot.ops->put(&boot, large, "value") != -EMSGSIZE)
		fail("a large text was published");
	if (boot.ops->fence_done(&boot) != -EINVAL && strcmp(boot.ops->name, "alone"))
		fail("a fence that nobody began is done");
}

static const struct how {
	const char *name;
	void (*act)(void);
} hows[] = {
	{ "fail", how_fail },		/* the others wait */
	{ "abort", how_abort },		/* gives up; nothing else ends it */
	{ "exit", how_exit },
	{ "kill", how_kill },
	{ "leave", how_leave },		/* without a word */
	{ "part", how_part },		/* properly, but the others wait */
	{ "hang", how_hang },
	{ "stubborn", how_stubborn },	/* and SIGTERM does nothing */
	{ "stop", how_stop },
	{ "garbage", how_garbage },
	{ "binary", how_binary },
	{ "endless", how_endless },
	{ "flood", how_flood },
	{ "many", how_many },
	{ "missing", how_missing },
	{ "twice", how_twice },
	{ "bad", how_bad },
};

static void otherwise(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		if (!strcmp(hows[i].name, name)) {
			hows[i].act();
			return;
		}
	fail("no way is called \"%s\"", name);
}

/* Programs that this one runs are none of the launcher's. */
static void must_be_ours(void)
{
	const char *fd = getenv("PMI_FD");

	if (fd && !(fcntl(atoi(fd), F_GETFD) & FD_CLOEXEC))
		fail("rank %d: PMI_FD=%s survives exec", boot.rank, fd);
}

int main(int argc, char **argv)
{
	must(am_boot_open(&boot), "open");
	must_be_ours();
	if (boot.rank < 0 || boot.rank >= boot.size || !*boot.job)
		fail("rank %d, size %d, job \"%s\"", boot.rank, boot.size, boot.job);
	exchange(1);
	if (argc > 1 && boot.rank == (argc > 2 ? atoi(argv[2]) : 0))
		otherwise(argv[1]);
	exchange(2);
	printf("rank %d size %d way %s job %s\n", boot.rank, boot.size, boot.ops->name, boot.job);
	fflush(stdout);
	boot.ops->close(&boot, AM_BOOT_WELL);
	return 0;
}
