/* SPDX-License-Identifier: GPL-2.0-only */
/* Each point of loading the module: of what its own code does then. */
#ifndef FAIL_NTH_MODULE_H
#define FAIL_NTH_MODULE_H

#include "fail_nth_arm.h"

#include <sys/syscall.h>

static int load(int fd, const char *args)
{
	return syscall(SYS_finit_module, fd, args, 0) ? -errno : 0;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "hamlyn", 0) ? -errno : 0;
}

static bool module_complains(unsigned int n, const char *what, int ret)
{
	printf("# point %u: %s: %s\n", n, what, strerror(-ret));
	return false;
}

/* Sets @done when loading has no point number @n. */
static bool load_point(int fd, const char *args, unsigned int n, bool *done)
{
	bool good = true;
	int ret, undone;

	arm(n);
	ret = load(fd, args);
	*done = !disarm();
	if (ret && (*done || (ret != -ENOMEM && ret != -EFAULT &&
			      ret != -ENOEXEC)))
		good = module_complains(n, "loading fails otherwise", ret);
	undone = ret ? 0 : unload();
	if (undone)
		good = module_complains(n, "it cannot be removed", undone);
	/* A remainder would be in its way. */
	undone = load(fd, args);
	if (!undone)
		undone = unload();
	if (undone)
		good = module_complains(n, "the next time fails", undone);
	return good;
}

/* How many points loading has; @ret is what it returns. It is removed again. */
static unsigned int count_loading(int fd, const char *args, int *ret)
{
	unsigned int n;

	arm(MANY_POINTS);
	*ret = load(fd, args);
	n = count_points();
	disarm();
	if (!*ret)
		*ret = unload();
	return n;
}

/*
 * What comes before the module's own code is the kernel's, and some of that
 * warns when there is no memory (event_define_fields() in Linux 6.1). With a
 * parameter that it refuses, the module's code does nothing: so many points are
 * the kernel's. A few of them are tried as well.
 */
#define KERNEL_POINTS	20

/* How many points were tried; sets @good if all of them went well. */
static unsigned int sweep_loading(int fd, const char *args, bool *good)
{
	unsigned int all, kernel, first, n;
	bool done = false;
	int ret, refused;

	kernel = count_loading(fd, "engine=none", &refused);
	all = count_loading(fd, args, &ret);
	printf("# %u points, %u of them before the module's own code\n", all,
	       kernel);
	*good = !ret && refused == -EINVAL && kernel > KERNEL_POINTS && kernel < all;
	first = kernel - KERNEL_POINTS;
	for (n = first; *good && !done && n < first + MOST_POINTS; n++)
		*good = load_point(fd, args, n, &done);
	*good = *good && done;
	return *good ? n - 1 - first : 0;
}

#endif /* FAIL_NTH_MODULE_H */
