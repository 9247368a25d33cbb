/* SPDX-License-Identifier: MIT */
/* Timers, by when they expire. */
#ifndef TEMPEST_TIMER_H
#define TEMPEST_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* Protocol thread: run the handler of one timer that has expired. False if none has. */
bool tempest_timer_run(void);

/* When the next one expires, by tempest_now(); INT64_MAX if there is none. */
int64_t tempest_timer_next(void);

#endif /* TEMPEST_TIMER_H */
