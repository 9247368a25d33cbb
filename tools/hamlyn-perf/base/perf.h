/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hamlyn-perf: what all files share: options, failures, small helpers.
 */
#ifndef HAMLYN_PERF_H
#define HAMLYN_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_MAX_REPS		101
#define PERF_MAX_SIZES		24
#define PERF_MAX_SIZE		(4U << 20)
#define PERF_MAX_SENDERS	64
#define PERF_MAX_PAIRS		32

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) \
	((type *)(void *)((char *)(p) - offsetof(type, member)))

enum perf_format {
	FORMAT_TABLE,
	FORMAT_JSON,
	FORMAT_CSV,
};

/* How much of a message the receiver reads before it gives the buffer back. */
enum perf_touch {
	TOUCH_ALL,
	TOUCH_ENDS,
	TOUCH_NONE,
};

struct options {
	const char *device;	/* NULL: the library's own choice */
	const char *peer_device;	/* of the second process; NULL: the same */
	const char *peer_netns;	/* that it is in; NULL: ours */
	uint32_t peer_address;	/* where TCP connects to; 0: loopback */
	enum perf_format format;
	enum perf_touch touch;
	bool verify;
	bool corrupt;
	bool quiet;
	bool quick;
	bool self;
	bool huge;		/* areas of huge pages, if there are */
	int cpus[2];
	bool cpus_given;
	int ncpus;		/* different CPUs in @cpus: 1 or 2 */
	uint32_t reps;		/* 0: the command's default */
	uint32_t point_ms;	/* 0: the command's default */
	uint32_t timeout_s;
	uint64_t n;		/* 0: the command's default */
	uint32_t count;		/* 0: the command's default */
	uint32_t senders;	/* 0: the command's default */
	uint32_t pairs;		/* 0: one */
	const char *op;
	const char *save;	/* file for JSON lines besides what is printed */
	const char *systems;	/* NULL: the command's default */
	const char *plot;	/* SVG file for a diagram */
	const char *operand;	/* of a command that takes one */
	size_t sizes[PERF_MAX_SIZES];
	uint32_t nsizes;	/* 0: the command's default */
};

/* ---- failures: the first one told is the one reported ------------------- */

struct failure {
	uint32_t set;
	char text[512];
};

int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool fail_was_usage(void);
bool fail_happened(void);
const char *fail_text(void);
void fail_forget(void);
void fail_redirect(struct failure *sink);
void fail_prefix(const char *name);

/* ---- commands: one line in main.c's table each -------------------------- */

int cmd_lat(const struct options *options);
int cmd_bw(const struct options *options);
int cmd_rate(const struct options *options);
int cmd_load(const struct options *options);
int cmd_compare(const struct options *options);
int cmd_count(const struct options *options);
int cmd_msgloop(const struct options *options);
int cmd_syscalls(const struct options *options);
int cmd_revoke(const struct options *options);
int cmd_slots(const struct options *options);
int cmd_memory(const struct options *options);
int cmd_scale(const struct options *options);
int cmd_logp(const struct options *options);
int cmd_wake(const struct options *options);
int cmd_modes(const struct options *options);
int cmd_idle(const struct options *options);
int cmd_group(const struct options *options);
int cmd_protocols(const struct options *options);
int cmd_plot(const struct options *options);

void cmd_count_ops(void);	/* names of the operations, for --help */
void cmd_scale_ops(void);	/* names of the curves */

#endif /* HAMLYN_PERF_H */
