/* SPDX-License-Identifier: MIT */
/* Time that only goes forward. */
#ifndef HAMLYN_OFI_CLOCK_H
#define HAMLYN_OFI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t hf_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline int64_t hf_now_ms(void)
{
	return hf_now_ns() / 1000000;
}

#endif
