/* SPDX-License-Identifier: MIT */
/* xxhash, inline. */
#ifndef HAMLYN_XXH_H
#define HAMLYN_XXH_H

#define XXH_INLINE_ALL
/*
 * By memcpy(). Releases up to 0.8.1 read through a type that may not alias what is summed:
 * a compiler may then store a member behind the read of it (GCC 12 does, for arm64).
 */
#define XXH_FORCE_MEMORY_ACCESS 0
#include <xxhash.h>

#endif /* HAMLYN_XXH_H */
