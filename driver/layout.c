// SPDX-License-Identifier: GPL-2.0-only
/* Every size and offset of the uapi, fixed at build time. No code. */
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>

#include <linux/hamlyn.h>

#include "core/layout.h"

#define SIZE(s, n)	static_assert(sizeof(struct s) == (n));
#define OFFSET(s, m, n)	static_assert(offsetof(struct s, m) == (n));

HML_LAYOUT(SIZE, OFFSET)
