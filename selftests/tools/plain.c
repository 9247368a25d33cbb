// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command as in a plain container: what it may do as root is what Docker leaves, and
 * namespaces, mounts and clone3() are refused as its filter refuses them. For "make check-plain".
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |	\
		    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

#define LOAD(member)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(value)	BPF_STMT(BPF_RET | BPF_K, (value))
#define REFUSED(error)	RETURN(SECCOMP_RET_ERRNO | (error))
/* The next statement is for this call only. */
#define IF_CALL(number)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1)

static int refuse_namespaces(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		IF_CALL(SYS_setns), REFUSED(EPERM),
		IF_CALL(SYS_mount), REFUSED(EPERM),
		IF_CALL(SYS_umount2), REFUSED(EPERM),
		IF_CALL(SYS_pivot_root), REFUSED(EPERM),
		/* Its flags are in memory, where no filter can look: libraries try clone() then. */
		IF_CALL(SYS_clone3), REFUSED(ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1),
		REFUSED(EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* What root is left with once it calls execve(). */
static int give_up_capabilities(void)
{
	const unsigned long long left = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE |
		1ULL << CAP_FSETID | 1ULL << CAP_FOWNER | 1ULL << CAP_MKNOD | 1ULL << CAP_NET_RAW |
		1ULL << CAP_SETGID | 1ULL << CAP_SETUID | 1ULL << CAP_SETFCAP |
		1ULL << CAP_SETPCAP | 1ULL << CAP_NET_BIND_SERVICE | 1ULL << CAP_SYS_CHROOT |
		1ULL << CAP_KILL | 1ULL << CAP_AUDIT_WRITE;
	unsigned long cap;

	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(left >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: plain COMMAND [ARGUMENT...]\n");
		return 2;
	}
	/* Of a user that is not root there is nothing to be taken. */
	if ((!geteuid() && (refuse_namespaces() || give_up_capabilities())) ||
	    (geteuid() && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || refuse_namespaces()))) {
		fprintf(stderr, "plain: %s\n", strerror(errno));
		return 1;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "plain: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
