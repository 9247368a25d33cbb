/* SPDX-License-Identifier: MIT */
/* How the processes of a program find each other: PMIx, PMI-1, or alone. */
#ifndef HAMLYN_AM_BOOT_H
#define HAMLYN_AM_BOOT_H

#include <stddef.h>

#define AM_BOOT_KEY_BYTES	32
#define AM_BOOT_VALUE_BYTES	512	/* printable text, the 0 at the end included */
#define AM_BOOT_JOB_BYTES	256

struct am_boot;

/**
 * enum am_boot_end - how a process leaves
 * @AM_BOOT_WELL: together with all others
 * @AM_BOOT_FAILED: without a word: a process that has yet to say what was wrong does not
 *	take leave, and so the launcher ends the others when it exits
 * @AM_BOOT_LOST: without one that is lost: the launcher, which may be, too, is waited for
 *	some seconds only
 */
enum am_boot_end { AM_BOOT_WELL, AM_BOOT_FAILED, AM_BOOT_LOST };

/**
 * struct am_boot_ops - a way to find the other processes
 * @name: for error messages: "PMIx", "PMI-1", "alone"
 * @open: is this process started this way? Return: 1 and fills in size, rank and job
 *	of @boot, 0 if not, or a negative errno with @boot->error
 * @put: publish a text under a key; others see it after the next fence
 * @get: what process @rank published before the last fence under @key;
 *	@value is of AM_BOOT_VALUE_BYTES
 * @fence_begin: begin to wait for all processes; nothing else until @fence_done
 * @fence_done: Return: 1 when all have come, 0 if not yet (it does not block)
 * @close: leave
 *
 * Return of the others: 0 or a negative errno, with text in @boot->error.
 */
struct am_boot_ops {
	const char *name;
	int (*open)(struct am_boot *boot);
	int (*put)(struct am_boot *boot, const char *key, const char *value);
	int (*get)(struct am_boot *boot, int rank, const char *key, char *value);
	int (*fence_begin)(struct am_boot *boot);
	int (*fence_done)(struct am_boot *boot);
	void (*close)(struct am_boot *boot, enum am_boot_end end);
};

/**
 * struct am_boot - the start-up of this process
 * @ops: the way that was found
 * @size: processes of the program
 * @rank: this one
 * @job: text that names the program's run, the same in all its processes, and not that
 *	of another run on this machine
 * @error: what was wrong, for people to read
 * @priv: of @ops
 */
struct am_boot {
	const struct am_boot_ops *ops;
	int size;
	int rank;
	char job[AM_BOOT_JOB_BYTES];
	char error[256];
	void *priv;
};

extern const struct am_boot_ops am_boot_pmix;
extern const struct am_boot_ops am_boot_pmi1;
extern const struct am_boot_ops am_boot_alone;

/**
 * am_boot_open() - find out how this process was started
 * @boot: out
 *
 * Tries PMIx (PMIX_NAMESPACE is set), PMI-1 (PMI_FD or PMI_PORT is set), alone.
 *
 * Return: 0 or a negative errno with @boot->error.
 */
int am_boot_open(struct am_boot *boot);

#endif /* HAMLYN_AM_BOOT_H */
