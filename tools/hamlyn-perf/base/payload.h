/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is in a message: a pattern that depends on the buffer's position, and
 * in the first 8 bytes the number of the message.
 */
#ifndef HAMLYN_PERF_PAYLOAD_H
#define HAMLYN_PERF_PAYLOAD_H

#include <stdint.h>
#include <string.h>

#include "base/perf.h"

#define PAYLOAD_LINE		64
#define PAYLOAD_SAMPLE		64	/* the first and each so many later are checked whole */

extern volatile uint64_t payload_sink;

void payload_fill(void *buffer, size_t size, uint32_t position);
int payload_verify(const void *buffer, size_t size, uint32_t position);
int payload_stale(uint64_t got, uint64_t number);

static inline void payload_stamp(void *buffer, size_t size, uint64_t number)
{
	if (size >= sizeof(number))
		memcpy(buffer, &number, sizeof(number));
}

static inline uint64_t payload_touch(const unsigned char *bytes, size_t size,
				     enum perf_touch touch)
{
	uint64_t sum = 0;
	size_t i;

	if (!size || touch == TOUCH_NONE)
		return 0;
	if (touch == TOUCH_ALL)
		for (i = 0; i < size; i += PAYLOAD_LINE)
			sum += *(volatile const unsigned char *)(bytes + i);
	return sum + *(volatile const unsigned char *)bytes +
	       *(volatile const unsigned char *)(bytes + size - 1);
}

/* Use a received message as --touch and --verify ask. */
static inline int payload_use(const struct options *options, const void *buffer,
			      size_t size, uint32_t position, uint64_t number)
{
	uint64_t got;

	if (size >= sizeof(got)) {
		memcpy(&got, buffer, sizeof(got));
		if (__builtin_expect(got != number, 0))
			return payload_stale(got, number);
	}
	payload_sink = payload_touch(buffer, size, options->touch);
	if (options->verify || number % PAYLOAD_SAMPLE == 1)
		return payload_verify(buffer, size, position);
	return 0;
}

#endif /* HAMLYN_PERF_PAYLOAD_H */
