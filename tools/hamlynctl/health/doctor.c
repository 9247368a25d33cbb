// SPDX-License-Identifier: GPL-2.0-only
/* doctor: what works here, what does not, why, and the command that mends it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <json-c/json.h>

#include <linux/hamlyn.h>

#include "base/args.h"
#include "health/doctor.h"
#include "record/output.h"

#define MIB		(1024ull * 1024)
#define FEW_BYTES	(64 * MIB)	/* a segment, and some areas */
#define PATH_BYTES	512

static const char *const condition_names[] = { "ok", "note", "FAULT" };

/* ---- what is looked at -------------------------------------------------- */

static const char *path_of(const struct examination *e, char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static const char *path_of(const struct examination *e, char *path, const char *format, ...)
{
	int n = snprintf(path, PATH_BYTES, "%s", e->root);
	va_list args;

	va_start(args, format);
	vsnprintf(path + n, PATH_BYTES - (size_t)n, format, args);
	va_end(args);
	return path;
}

/* The first line, without its end; NULL if there is none. */
static char *read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	char *got = file ? fgets(line, (int)size, file) : NULL;

	if (file)
		fclose(file);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got;
}

static bool read_number(const char *path, uint64_t *number)
{
	char line[64];

	return read_line(path, line, sizeof(line)) && sscanf(line, "%" SCNu64, number) == 1;
}

static struct finding *add(struct examination *e, const char *what, enum condition condition,
			   const char *format, ...) __attribute__((format(printf, 4, 5)));

static struct finding *add(struct examination *e, const char *what, enum condition condition,
			   const char *format, ...)
{
	/* As many as there are looks, with some to spare */
	struct finding *f = &e->findings[e->count < MAX_FINDINGS ? e->count++ : MAX_FINDINGS - 1];
	va_list args;

	*f = (struct finding) { .what = what, .condition = condition };
	va_start(args, format);
	vsnprintf(f->found, sizeof(f->found), format, args);
	va_end(args);
	return f;
}

static void mend(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void mend(struct finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->mend, sizeof(f->mend), format, args);
	va_end(args);
}

/* Is a module of that name among those of the kernel? */
static bool kernel_has(const struct examination *e, const char *name)
{
	char path[PATH_BYTES], line[4096], file[80];
	bool found = false;
	FILE *list;

	snprintf(file, sizeof(file), "/%s.ko", name);
	list = fopen(path_of(e, path, "/lib/modules/%s/modules.dep", e->release), "re");
	while (list && !found && fgets(line, sizeof(line), list)) {
		const char *at = strstr(line, file), *colon = strchr(line, ':');

		found = at && colon && at < colon;
	}
	if (list)
		fclose(list);
	return found;
}

static bool is_there(const struct examination *e, const char *name)
{
	char path[PATH_BYTES];

	return !access(path_of(e, path, "%s", name), F_OK);
}

static const char *user_name(void)
{
	const struct passwd *user = getpwuid(geteuid());

	return user ? user->pw_name : "USER";
}

/* ---- the kernel device -------------------------------------------------- */

static void look_at_kernel(struct examination *e)
{
	unsigned int major, minor;
	bool known = sscanf(e->release, "%u.%u", &major, &minor) == 2;

	if (known && (major > 6 || (major == 6 && minor >= 1)))
		add(e, "kernel", CONDITION_OK, "Linux %s", e->release);
	else
		mend(add(e, "kernel", CONDITION_NOTE,
			 "Linux %s: the module needs 6.1 or later", e->release),
		     "a later kernel; embedded devices (shm:NAME) need none");
}

static void tell_how_to_build(const struct examination *e, struct finding *f)
{
	char path[PATH_BYTES];

	if (access(path_of(e, path, "/lib/modules/%s/build", e->release), F_OK))
		mend(f, "apt install linux-headers-%s hamlyn-dkms", e->release);
	else
		mend(f, "apt install hamlyn-dkms; or dkms autoinstall, if it is");
}

/* As with Secure Boot: the kernel loads what is signed by a key that it knows. */
static bool is_locked_down(const struct examination *e)
{
	char path[PATH_BYTES], line[128] = "";

	read_line(path_of(e, path, "/sys/kernel/security/lockdown"), line, sizeof(line));
	return strchr(line, '[') && !strstr(line, "[none]");
}

static void look_at_module(struct examination *e)
{
	char path[PATH_BYTES], line[64] = "";

	e->has_module = is_there(e, "/sys/module/hamlyn");
	if (e->has_module) {
		read_line(path_of(e, path, "/sys/module/hamlyn/parameters/engine"), line,
			  sizeof(line));
		add(e, "module", CONDITION_OK, "loaded%s%s", *line ? ", engine=" : "", line);
	} else if (kernel_has(e, "hamlyn")) {
		mend(add(e, "module", CONDITION_NOTE, "built for this kernel, but not loaded"),
		     is_locked_down(e) ?
		     "modprobe hamlyn; this kernel wants signed modules: install.rst, Secure Boot" :
		     "modprobe hamlyn");
	} else {
		tell_how_to_build(e, add(e, "module", CONDITION_NOTE,
					 "there is none for this kernel: only embedded devices"));
	}
}

static void tell_who_may(struct finding *f, const char *path)
{
	const struct group *group;
	struct stat st;

	if (stat(path, &st)) {
		mend(f, "see what stat %s says", path);
		return;
	}
	group = getgrgid(st.st_gid);
	if (group && st.st_gid && (st.st_mode & 0060) == 0060)
		mend(f, "adduser %s %s, and log in again", user_name(), group->gr_name);
	else
		mend(f, "chmod 666 %s; for good, a udev rule: install.rst", path);
}

static void look_into(struct examination *e, const char *path, int fd)
{
	struct hamlyn_query query = { .size = sizeof(query) };

	if (ioctl(fd, HAMLYN_IOC_QUERY, &query))
		mend(add(e, "version", CONDITION_FAULT, "%s does not say its version: %s", path,
			 strerror(errno)), "rmmod hamlyn && modprobe hamlyn");
	else if (query.abi_version != HAMLYN_ABI_VERSION)
		mend(add(e, "version", CONDITION_FAULT,
			 "the module has version %u of the interface, these tools %u",
			 query.abi_version, HAMLYN_ABI_VERSION),
		     "packages of one version; then rmmod hamlyn && modprobe hamlyn");
	else
		add(e, "version", CONDITION_OK, "%u, of the module as of these tools",
		    query.abi_version);
	if (query.state != HAMLYN_NIC_UP)
		mend(add(e, "state", CONDITION_FAULT, "%s is down", path),
		     "hamlynctl nic set hamlyn%s up", path + strcspn(path, "0123456789"));
}

static void look_at_node(struct examination *e, const char *name)
{
	char path[PATH_BYTES];
	struct finding *f;
	int fd;

	fd = open(path_of(e, path, "/dev/%s", name), O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		add(e, "device", CONDITION_OK, "%s may be opened by this user", path);
		look_into(e, path, fd);
		close(fd);
		return;
	}
	f = add(e, "device", CONDITION_FAULT, "%s: %s", path, strerror(errno));
	if (errno == EACCES || errno == EPERM)
		tell_who_may(f, path);
	else if (errno == ENXIO || errno == ENODEV)
		mend(f, "it is another network namespace's: hamlynctl nic add netns %d", getpid());
	else
		mend(f, "hamlynctl nic show");
}

static void look_at_nodes(struct examination *e)
{
	char path[PATH_BYTES];
	const struct dirent *entry;
	size_t before = e->count;
	DIR *dev;

	if (!e->has_module)
		return;
	dev = opendir(path_of(e, path, "/dev"));
	/* The others are like it, and a fault for each would hide the rest. */
	while (dev && (entry = readdir(dev)) && e->count - before < 8)
		if (!strncmp(entry->d_name, "hamlyn", 6) &&
		    isdigit((unsigned char)entry->d_name[6]))
			look_at_node(e, entry->d_name);
	if (dev)
		closedir(dev);
	if (e->count == before)
		mend(add(e, "device", CONDITION_FAULT,
			 "the module is loaded, but there is no /dev/hamlynN"),
		     "hamlynctl nic add; in a container, --device /dev/hamlyn0");
}

/* ---- what an embedded device is on -------------------------------------- */

static void look_at_shm(struct examination *e)
{
	char path[PATH_BYTES], free_text[24];
	struct statvfs fs;
	uint64_t left;

	path_of(e, path, "/dev/shm");
	if (statvfs(path, &fs) || access(path, W_OK)) {
		mend(add(e, "shm", CONDITION_FAULT, "%s: %s: no embedded devices", path,
			 strerror(errno)),
		     "mount -t tmpfs -o mode=1777 shm /dev/shm");
		return;
	}
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	format_size(left & ~(MIB - 1), free_text);
	if (left < FEW_BYTES)
		mend(add(e, "shm", CONDITION_FAULT,
			 "%s has %s left: too little for embedded devices", path, free_text),
		     "mount -o remount,size=50%% /dev/shm; in a container, --shm-size=1g");
	else
		add(e, "shm", CONDITION_OK, "%s has %s left", path, free_text);
}

static void look_at_huge_pages(struct examination *e)
{
	char path[PATH_BYTES], line[128] = "";
	uint64_t free_pages = 0;

	read_number(path_of(e, path, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"),
		    &free_pages);
	read_line(path_of(e, path, "/sys/kernel/mm/transparent_hugepage/shmem_enabled"), line,
		  sizeof(line));
	if (free_pages)
		add(e, "huge pages", CONDITION_OK, "%" PRIu64 " of 2 MiB are free", free_pages);
	else if (strstr(line, "[always]") || strstr(line, "[advise]") ||
		 strstr(line, "[within_size]"))
		add(e, "huge pages", CONDITION_OK, "shared memory may have transparent ones");
	else
		mend(add(e, "huge pages", CONDITION_NOTE,
			 "none: shm:NAME,huge and areas that ask for them fail"),
		     "sysctl vm.nr_hugepages=64");
}

/* ---- limits ------------------------------------------------------------- */

static void look_at_memlock(struct examination *e)
{
	struct rlimit limit;
	char text[24];

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY) {
		add(e, "wired memory", CONDITION_OK, "RLIMIT_MEMLOCK: unlimited");
		return;
	}
	format_size(limit.rlim_cur, text);
	if (limit.rlim_cur >= FEW_BYTES || !e->has_module)
		add(e, "wired memory", CONDITION_OK, "RLIMIT_MEMLOCK: %s", text);
	else
		mend(add(e, "wired memory", CONDITION_NOTE,
			 "RLIMIT_MEMLOCK: %s, so little of a program's own memory can be an area; "
			 "h_area_alloc() has other limits", text),
		     "ulimit -l 1048576; for good, memlock in /etc/security/limits.d");
}

static void look_at_descriptors(struct examination *e)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (limit.rlim_cur >= 256)
		add(e, "descriptors", CONDITION_OK, "RLIMIT_NOFILE: %llu",
		    (unsigned long long)limit.rlim_cur);
	else
		mend(add(e, "descriptors", CONDITION_NOTE, "RLIMIT_NOFILE: %llu: few clients",
			 (unsigned long long)limit.rlim_cur), "ulimit -n 1024");
}

/* Version 2 only: where systemd is, that is what there is. */
static void look_at_cgroup(struct examination *e)
{
	char path[PATH_BYTES], line[256], group[256];
	uint64_t most, used = 0;
	char text[24];

	if (!read_line(path_of(e, path, "/proc/self/cgroup"), line, sizeof(line)) ||
	    sscanf(line, "0::%255s", group) != 1)
		return;
	if (!read_number(path_of(e, path, "/sys/fs/cgroup%s/memory.max", group), &most))
		return;	/* "max", or the root's */
	read_number(path_of(e, path, "/sys/fs/cgroup%s/memory.current", group), &used);
	format_size((most - (used < most ? used : most)) & ~(MIB - 1), text);
	if (most - used < FEW_BYTES || used > most)
		mend(add(e, "cgroup", CONDITION_FAULT,
			 "%s of its memory is left: calls will say ENOMEM", text),
		     "systemctl set-property UNIT MemoryMax=...; in a container, --memory");
	else
		add(e, "cgroup", CONDITION_OK, "%s of its memory is left", text);
}

/* ---- the rest ----------------------------------------------------------- */

static void look_at_processors(struct examination *e)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (n > 1)
		add(e, "processors", CONDITION_OK, "%ld", n);
	else
		mend(add(e, "processors", CONDITION_NOTE,
			 "one: who polls keeps the others from it, and so does a polling engine"),
		     "modprobe hamlyn engine=inline, and calls that block");
}

static void look_at_user_namespace(struct examination *e)
{
	char path[PATH_BYTES], line[128] = "";
	unsigned long first, outside, n;

	read_line(path_of(e, path, "/proc/self/uid_map"), line, sizeof(line));
	if (sscanf(line, "%lu %lu %lu", &first, &outside, &n) != 3)
		return;
	if (!first && !outside && n == UINT32_MAX)
		add(e, "users", CONDITION_OK, "those of the machine");
	else
		add(e, "users", CONDITION_NOTE,
		    "those of a user namespace: unless root made it, they share one user's limits");
}

static void look_at_userfaultfd(struct examination *e)
{
	char path[PATH_BYTES];
	uint64_t allowed;

	if (!read_number(path_of(e, path, "/proc/sys/vm/unprivileged_userfaultfd"), &allowed))
		return;
	if (allowed || !geteuid() || !access(path_of(e, path, "/dev/userfaultfd"), R_OK | W_OK))
		add(e, "userfaultfd", CONDITION_OK, "this user may have it");
	else
		mend(add(e, "userfaultfd", CONDITION_NOTE,
			 "not for this user: Tempest uses mprotect(), and is slower"),
		     "sysctl vm.unprivileged_userfaultfd=1");
}

static void look_at_wireguard(struct examination *e)
{
	if (is_there(e, "/sys/module/wireguard") || kernel_has(e, "wireguard"))
		add(e, "wireguard", CONDITION_OK, "the kernel has it, for NICs between hosts");
	else
		mend(add(e, "wireguard", CONDITION_NOTE,
			 "not in this kernel: nothing encrypts what goes between hosts"),
		     "a kernel with CONFIG_WIREGUARD, or a network that you trust");
}

void doctor_examine(struct examination *e)
{
	look_at_kernel(e);
	look_at_module(e);
	look_at_nodes(e);
	look_at_shm(e);
	look_at_huge_pages(e);
	look_at_memlock(e);
	look_at_descriptors(e);
	look_at_cgroup(e);
	look_at_processors(e);
	look_at_user_namespace(e);
	look_at_userfaultfd(e);
	look_at_wireguard(e);
}

/* ---- what is told ------------------------------------------------------- */

static int tell_json(const struct options *options, const struct examination *e)
{
	static const char *const names[] = { "ok", "note", "fault" };
	struct json_object *array = must_alloc(json_object_new_array());
	size_t i;

	for (i = 0; i < e->count; i++) {
		const struct finding *f = &e->findings[i];
		struct json_object *one = must_alloc(json_object_new_object());

		json_object_object_add(one, "what", json_object_new_string(f->what));
		json_object_object_add(one, "condition",
				       json_object_new_string(names[f->condition]));
		json_object_object_add(one, "found", json_object_new_string(f->found));
		if (*f->mend)
			json_object_object_add(one, "mend", json_object_new_string(f->mend));
		json_object_array_add(array, one);
	}
	output_json(options, array);
	return output_check();
}

static void tell_text(const struct examination *e)
{
	size_t i;

	for (i = 0; i < e->count; i++) {
		const struct finding *f = &e->findings[i];

		printf("%-5s  %-12s  %s\n", condition_names[f->condition], f->what, f->found);
		if (*f->mend)
			printf("%-5s  %-12s  -> %s\n", "", "", f->mend);
	}
}

static int doctor_run(const struct options *options, const struct verb *verb, struct words *words)
{
	static struct examination e = { .root = "" };
	struct utsname kernel;
	int status = words_end(words);
	size_t i;

	(void)verb;
	if (status)
		return status;
	if (!uname(&kernel))
		snprintf(e.release, sizeof(e.release), "%s", kernel.release);
	doctor_examine(&e);
	if (options->json) {
		status = tell_json(options, &e);
		if (status)
			return status;
	} else {
		tell_text(&e);
	}
	for (i = 0; i < e.count; i++)
		if (e.findings[i].condition == CONDITION_FAULT)
			return STATUS_REFUSED;
	return STATUS_OK;
}

static const struct verb verbs[] = {
	{ "", "", "what works on this machine, what does not, why, and what mends it; 1, if there "
	  "is a fault", NULL, doctor_run },
	{ 0 }
};

const struct object doctor_object = { "doctor", "what works here, and what mends the rest", verbs };
