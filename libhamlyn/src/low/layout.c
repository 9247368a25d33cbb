// SPDX-License-Identifier: MIT
/* Every size and offset of the uapi, fixed at build time. No code. */
#include <stddef.h>

#include <linux/hamlyn.h>

#include "layout.h"

#define SIZE(s, n)	_Static_assert(sizeof(struct s) == (n), #s);
#define OFFSET(s, m, n)	_Static_assert(offsetof(struct s, m) == (n), #s "." #m);

HML_LAYOUT(SIZE, OFFSET)
