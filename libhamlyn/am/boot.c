// SPDX-License-Identifier: MIT
/* Start-up: the first way that says this process was started by it is taken. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "boot_text.h"

int am_boot_fail(struct am_boot *boot, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(boot->error, sizeof(boot->error), format, args);
	va_end(args);
	return err;
}

static bool is_text(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~' || *text == '=')
			return false;
	return true;
}

static int check(struct am_boot *boot, const char *what, const char *text, size_t bytes)
{
	if (!text || !*text)
		return am_boot_fail(boot, -EINVAL, "an empty %s cannot be published", what);
	if (strlen(text) >= bytes)
		return am_boot_fail(boot, -EMSGSIZE, "a %s to publish has at most %zu bytes",
				    what, bytes - 1);
	if (!is_text(text))
		return am_boot_fail(boot, -EINVAL,
				    "a %s to publish is printable text without spaces and \"=\"",
				    what);
	return 0;
}

int am_boot_check(struct am_boot *boot, const char *key, const char *value)
{
	int ret = check(boot, "key", key, AM_BOOT_KEY_BYTES);

	if (ret < 0 || !value)
		return ret;
	return check(boot, "value", value, AM_BOOT_VALUE_BYTES);
}

int am_boot_check_rank(struct am_boot *boot, int rank)
{
	if (rank < 0 || rank >= boot->size)
		return am_boot_fail(boot, -EINVAL, "there is no process %d, only 0 to %d", rank,
				    boot->size - 1);
	return 0;
}

int am_boot_open(struct am_boot *boot)
{
	static const struct am_boot_ops *const ways[] = {
		&am_boot_pmix, &am_boot_pmi1, &am_boot_alone, NULL,
	};
	int i, ret;

	memset(boot, 0, sizeof(*boot));
	for (i = 0; ways[i]; i++) {
		ret = ways[i]->open(boot);
		if (ret < 0)
			return ret;
		if (ret) {
			boot->ops = ways[i];
			return 0;
		}
	}
	return am_boot_fail(boot, -ENOTSUP, "no way to start fits");
}
