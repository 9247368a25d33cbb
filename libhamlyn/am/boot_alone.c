// SPDX-License-Identifier: MIT
/* Start-up without a launcher: the program is this one process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "boot_text.h"

struct text {
	struct text *next;
	char key[AM_BOOT_KEY_BYTES];
	char value[AM_BOOT_VALUE_BYTES];
};

struct alone {
	struct text *texts;
};

/*
 * The time tells the run from that of an earlier process of the same number, and from
 * one of another container, where numbers are the same.
 */
static int alone_open(struct am_boot *boot)
{
	struct timespec now;

	boot->priv = calloc(1, sizeof(struct alone));
	if (!boot->priv)
		return am_boot_fail(boot, -ENOMEM, "no memory to start");
	clock_gettime(CLOCK_REALTIME, &now);
	boot->size = 1;
	boot->rank = 0;
	snprintf(boot->job, sizeof(boot->job), "alone-%ld-%lld.%09ld", (long)getpid(),
		 (long long)now.tv_sec, now.tv_nsec);
	return 1;
}

static struct text *find(const struct alone *alone, const char *key)
{
	struct text *text;

	for (text = alone->texts; text; text = text->next)
		if (!strcmp(text->key, key))
			return text;
	return NULL;
}

static int alone_put(struct am_boot *boot, const char *key, const char *value)
{
	struct alone *alone = boot->priv;
	struct text *text;
	int ret = am_boot_check(boot, key, value);

	if (ret < 0)
		return ret;
	if (find(alone, key))
		return am_boot_fail(boot, -EEXIST, "\"%s\" is published already", key);
	text = calloc(1, sizeof(*text));
	if (!text)
		return am_boot_fail(boot, -ENOMEM, "no memory to publish \"%s\"", key);
	snprintf(text->key, sizeof(text->key), "%s", key);
	snprintf(text->value, sizeof(text->value), "%s", value);
	text->next = alone->texts;
	alone->texts = text;
	return 0;
}

static int alone_get(struct am_boot *boot, int rank, const char *key, char *value)
{
	struct text *text;
	int ret = am_boot_check(boot, key, NULL);

	if (!ret)
		ret = am_boot_check_rank(boot, rank);
	if (ret < 0)
		return ret;
	text = find(boot->priv, key);
	if (!text)
		return am_boot_fail(boot, -ENOENT, "process %d has not published \"%s\"", rank,
				    key);
	memcpy(value, text->value, sizeof(text->value));
	return 0;
}

static int alone_fence_begin(struct am_boot *boot)
{
	(void)boot;
	return 0;
}

static int alone_fence_done(struct am_boot *boot)
{
	(void)boot;
	return 1;
}

static void alone_close(struct am_boot *boot, enum am_boot_end end)
{
	struct alone *alone = boot->priv;
	struct text *text;

	(void)end;
	while ((text = alone->texts)) {
		alone->texts = text->next;
		free(text);
	}
	free(alone);
	boot->priv = NULL;
}

const struct am_boot_ops am_boot_alone = {
	.name = "alone",
	.open = alone_open,
	.put = alone_put,
	.get = alone_get,
	.fence_begin = alone_fence_begin,
	.fence_done = alone_fence_done,
	.close = alone_close,
};
