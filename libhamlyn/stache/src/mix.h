/* SPDX-License-Identifier: MIT */
#ifndef STACHE_MIX_H
#define STACHE_MIX_H

#include <stdint.h>

/* Any that depends on the number alone: the constant is 2^64 divided by the golden ratio. */
static inline uint64_t stache_mix(uint64_t number)
{
	uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return mixed ^ mixed >> 32;
}

#endif /* STACHE_MIX_H */
