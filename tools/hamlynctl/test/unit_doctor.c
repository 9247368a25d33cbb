// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of hamlynctl doctor: machines that are made up, as folders. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "health/doctor.h"

#define NOBODY	65534

#define ROOT	"/tmp/unit-doctor-XXXXXX"

static char root[sizeof(ROOT)];
static struct examination e;

/* ---- a machine ---------------------------------------------------------- */

static void make_parents(char *path)
{
	char *slash;

	for (slash = path + sizeof(root); (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		mkdir(path, 0755);
	}
}

static void has(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", root, name);
	make_parents(path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void has_folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s/", root, name);
	make_parents(path);
}

static int machine(void **state)
{
	(void)state;
	memcpy(root, ROOT, sizeof(ROOT));
	if (!mkdtemp(root) || chmod(root, 0755))
		return -1;
	has_folder("/dev/shm");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int no_machine(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- what is found ------------------------------------------------------ */

static void examine(const char *release)
{
	memset(&e, 0, sizeof(e));
	e.root = root;
	snprintf(e.release, sizeof(e.release), "%s", release);
	doctor_examine(&e);
	assert_in_range(e.count, 1, MAX_FINDINGS - 1);
}

static const struct finding *finding(const char *what)
{
	size_t i;

	for (i = 0; i < e.count; i++)
		if (!strcmp(e.findings[i].what, what))
			return &e.findings[i];
	return NULL;
}

static void finds(const char *what, enum condition condition, const char *found, const char *mend)
{
	const struct finding *f = finding(what);

	if (!f)
		fail_msg("nothing is said of \"%s\"", what);
	if (f->condition != condition || !strstr(f->found, found) || !strstr(f->mend, mend) ||
	    !*mend != !*f->mend)
		fail_msg("%s: %d, \"%s\", \"%s\"", what, f->condition, f->found, f->mend);
}

static void test_kernel(void **state)
{
	(void)state;
	examine("5.10.0-30-amd64");
	finds("kernel", CONDITION_NOTE, "5.10", "later kernel");
	examine("6.0.9");
	finds("kernel", CONDITION_NOTE, "6.0", "later kernel");
	examine("6.1.0-56-amd64");
	finds("kernel", CONDITION_OK, "6.1", "");
	examine("10.0");
	finds("kernel", CONDITION_OK, "10.0", "");
}

static void test_module(void **state)
{
	(void)state;
	examine("6.1");
	finds("module", CONDITION_NOTE, "none for this kernel", "linux-headers-6.1");
	assert_null(finding("device"));
	has_folder("/lib/modules/6.1/build");
	examine("6.1");
	finds("module", CONDITION_NOTE, "none for this kernel", "dkms autoinstall");
	/* One that needs it is not it, nor is one of such an end. */
	has("/lib/modules/6.1/modules.dep",
	    "extra/other.ko: updates/hamlyn.ko\nextra/nohamlyn.ko:\n");
	examine("6.1");
	finds("module", CONDITION_NOTE, "none for this kernel", "dkms autoinstall");
	has("/lib/modules/6.1/modules.dep", "a.ko: b.ko\nupdates/dkms/hamlyn.ko.xz:\n");
	examine("6.1");
	finds("module", CONDITION_NOTE, "not loaded", "modprobe hamlyn");
	assert_null(strstr(finding("module")->mend, "signed"));
	has("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	examine("6.1");
	assert_null(strstr(finding("module")->mend, "signed"));
	has("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	examine("6.1");
	finds("module", CONDITION_NOTE, "not loaded", "signed");
	has("/sys/module/hamlyn/parameters/engine", "inline\n");
	examine("6.1");
	finds("module", CONDITION_OK, "engine=inline", "");
	finds("device", CONDITION_FAULT, "no /dev/hamlynN", "nic add");
}

static void in_a_child(void (*run)(void))
{
	pid_t pid = fork();
	int status = -1;

	assert_true(pid >= 0);
	if (!pid) {
		if (!getuid() && (setgid(NOBODY) || setuid(NOBODY)))
			_exit(2);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void refused_device(void)
{
	const struct finding *f;

	examine("6.1");
	f = finding("device");
	if (!f || f->condition != CONDITION_FAULT || !strstr(f->found, "denied") || !*f->mend)
		_exit(1);
	if (finding("version"))
		_exit(1);
}

static void test_device(void **state)
{
	char path[64];

	(void)state;
	has_folder("/sys/module/hamlyn");
	has("/dev/hamlynx", "");
	examine("6.1");
	finds("device", CONDITION_FAULT, "no /dev/hamlynN", "nic add");
	/* A file is none that tells of versions. */
	has("/dev/hamlyn0", "");
	examine("6.1");
	finds("device", CONDITION_OK, "/dev/hamlyn0", "");
	finds("version", CONDITION_FAULT, "ioctl", "rmmod");
	snprintf(path, sizeof(path), "%s/dev/hamlyn0", root);
	assert_int_equal(chmod(path, 0), 0);
	in_a_child(refused_device);
}

static void test_many_devices(void **state)
{
	char path[32];
	int i;

	(void)state;
	has_folder("/sys/module/hamlyn");
	for (i = 0; i < 200; i++) {
		snprintf(path, sizeof(path), "/dev/hamlyn%d", i);
		has(path, "");
	}
	examine("6.1");
	assert_non_null(finding("wireguard"));
}

static void test_shm(void **state)
{
	char path[64];

	(void)state;
	examine("6.1");
	assert_non_null(finding("shm"));
	snprintf(path, sizeof(path), "%s/dev/shm", root);
	assert_int_equal(rmdir(path), 0);
	examine("6.1");
	finds("shm", CONDITION_FAULT, "No such file", "mount");
}

static void test_huge_pages(void **state)
{
	(void)state;
	examine("6.1");
	finds("huge pages", CONDITION_NOTE, "none", "nr_hugepages");
	has("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
	    "always within_size advise [never] deny force\n");
	examine("6.1");
	finds("huge pages", CONDITION_NOTE, "none", "nr_hugepages");
	has("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
	    "always within_size [advise] never deny force\n");
	examine("6.1");
	finds("huge pages", CONDITION_OK, "transparent", "");
	has("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "12\n");
	examine("6.1");
	finds("huge pages", CONDITION_OK, "12 of 2 MiB", "");
}

static void test_cgroup(void **state)
{
	(void)state;
	examine("6.1");
	assert_null(finding("cgroup"));
	has("/proc/self/cgroup", "0::/user.slice/x\n");
	examine("6.1");
	assert_null(finding("cgroup"));
	has("/sys/fs/cgroup/user.slice/x/memory.max", "max\n");
	examine("6.1");
	assert_null(finding("cgroup"));
	has("/sys/fs/cgroup/user.slice/x/memory.max", "1073741824\n");
	has("/sys/fs/cgroup/user.slice/x/memory.current", "10000000\n");
	examine("6.1");
	finds("cgroup", CONDITION_OK, "left", "");
	has("/sys/fs/cgroup/user.slice/x/memory.current", "1073000000\n");
	examine("6.1");
	finds("cgroup", CONDITION_FAULT, "ENOMEM", "MemoryMax");
	/* It may be more for a moment. */
	has("/sys/fs/cgroup/user.slice/x/memory.current", "1173000000\n");
	examine("6.1");
	finds("cgroup", CONDITION_FAULT, "ENOMEM", "MemoryMax");
}

static void test_users(void **state)
{
	(void)state;
	has("/proc/self/uid_map", "         0          0 4294967295\n");
	examine("6.1");
	finds("users", CONDITION_OK, "machine", "");
	has("/proc/self/uid_map", "         0     100000      65536\n");
	examine("6.1");
	finds("users", CONDITION_NOTE, "user namespace", "");
	has("/proc/self/uid_map", "nonsense\n");
	examine("6.1");
	assert_null(finding("users"));
}

static void refused_faults(void)
{
	const struct finding *f;

	examine("6.1");
	f = finding("userfaultfd");
	if (!f || f->condition != CONDITION_NOTE || !strstr(f->mend, "unprivileged_userfaultfd=1"))
		_exit(1);
}

static void test_userfaultfd(void **state)
{
	(void)state;
	examine("6.1");
	assert_null(finding("userfaultfd"));
	has("/proc/sys/vm/unprivileged_userfaultfd", "0\n");
	in_a_child(refused_faults);
	has("/proc/sys/vm/unprivileged_userfaultfd", "1\n");
	examine("6.1");
	finds("userfaultfd", CONDITION_OK, "may have it", "");
}

static void test_wireguard(void **state)
{
	(void)state;
	examine("6.1");
	finds("wireguard", CONDITION_NOTE, "not in this kernel", "CONFIG_WIREGUARD");
	has("/lib/modules/6.1/modules.dep", "kernel/drivers/net/wireguard/wireguard.ko: x.ko\n");
	examine("6.1");
	finds("wireguard", CONDITION_OK, "has it", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_module, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_device, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_many_devices, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_shm, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_huge_pages, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_cgroup, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_users, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_userfaultfd, machine, no_machine),
		cmocka_unit_test_setup_teardown(test_wireguard, machine, no_machine),
	};

	return cmocka_run_group_tests_name("hamlynctl doctor", tests, NULL, NULL);
}
