// SPDX-License-Identifier: MIT
#include "figures.h"

struct stache_figures stache_counted;

#define READ(name)	(figures->name = __atomic_load_n(&stache_counted.name, __ATOMIC_RELAXED))

void stache_get_figures(struct stache_figures *figures)
{
	READ(fetches);
	READ(upgrades);
	READ(invalidations);
	READ(recalls);
	READ(pages);
	READ(replaced);
	READ(written_back);
}
