/* SPDX-License-Identifier: MIT */
/* What the environment says; hamlyn_tempest(7) tells of each variable. */
#ifndef TEMPEST_SETTINGS_H
#define TEMPEST_SETTINGS_H

#include <stdint.h>
#include <time.h>

/* What checked accesses are to do: HAMLYN_TEMPEST_CHECKS. */
enum tempest_checks {
	CHECKS_RSEQ,	/* checked accesses run in rseq sections */
	CHECKS_TRAP,	/* every access traps */
};

/**
 * struct tempest_settings - HAMLYN_TEMPEST_*
 * @size: _SIZE: bytes of the segment
 * @memory: _MEMORY: bytes that its pages may take
 * @view: _VIEW: name of a way to close pages, or NULL
 * @checks: _CHECKS: rseq or trap
 * @spin_ns: _SPIN: how long the protocol thread waits awake
 * @suspended_spin_ns: and suspended threads
 */
struct tempest_settings {
	uintptr_t size;
	uintptr_t memory;
	const char *view;
	enum tempest_checks checks;
	int64_t spin_ns;
	int64_t suspended_spin_ns;
};

extern struct tempest_settings tempest_settings;

/* Read them; ends the program at one that is wrong. */
void tempest_settings_read(void);

/* Decide what depends on how many nodes there are. */
void tempest_settings_complete(void);

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline int64_t tempest_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif /* TEMPEST_SETTINGS_H */
