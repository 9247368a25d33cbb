/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hamlynctl: what all files share: options, objects and their verbs, failures.
 */
#ifndef HAMLYNCTL_CTL_H
#define HAMLYNCTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))

/* Exit status, and what functions return that have told the user already. */
enum status {
	STATUS_OK,
	STATUS_REFUSED = 1,
	STATUS_USAGE = 2,
};

struct options {
	bool json;
	bool pretty;
	bool batch;		/* top */
	uint32_t delay_ms;	/* top */
	uint64_t count;		/* top; 0: no end */
};

/* The words of the command line that nobody has taken yet. */
struct words {
	char *const *at;
	int left;
};

struct param;

struct verb {
	const char *name;
	const char *usage;		/* what follows the name */
	const char *what;
	const struct param *params;	/* keywords, or NULL */
	int (*run)(const struct options *options, const struct verb *verb, struct words *words);
};

/* What can be administered. Its first verb is the one meant when none is given. */
struct object {
	const char *name;
	const char *what;
	const struct verb *verbs;	/* ends with NULL for a name; "": there is only this one */
};

extern const struct object nic_object;
extern const struct object context_object;
extern const struct object area_object;
extern const struct object slot_object;
extern const struct object nq_object;
extern const struct object terminus_object;
extern const struct object name_object;
extern const struct object stats_object;
extern const struct object user_object;
extern const struct object limit_object;
extern const struct object audit_object;
extern const struct object peer_object;
extern const struct object apply_object;
extern const struct object monitor_object;
extern const struct object top_object;
extern const struct object doctor_object;
extern const struct object metrics_object;
extern const char top_help[];

/* Each prints one line to stderr; the first two return what main() shall return. */
int refused(const char *format, ...) __attribute__((format(printf, 1, 2)));
int misused(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Of messages from now on: what line of what file they are about; NULL: of none. */
void say_where(const char *file, unsigned int line);

void *must_alloc(void *memory);	/* ends the program when @memory is NULL */

/* Ctrl-C and SIGTERM end what runs until interrupted, with success. */
void stop_on_signal(void);
bool stop_wait(int fd, int milliseconds);	/* true: there is something to read from @fd */
bool stop_asked(void);

#endif /* HAMLYNCTL_CTL_H */
