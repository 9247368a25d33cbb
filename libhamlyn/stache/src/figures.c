// SPDX-License-Identifier: MIT
#include "figures.h"

struct stache_figures stache_counted;

static uint64_t read_figure(const uint64_t *figure)
{
	return __atomic_load_n(figure, __ATOMIC_RELAXED);
}

void stache_get_figures(struct stache_figures *figures)
{
	*figures = (struct stache_figures){
		.fetches = read_figure(&stache_counted.fetches),
		.upgrades = read_figure(&stache_counted.upgrades),
		.invalidations = read_figure(&stache_counted.invalidations),
		.recalls = read_figure(&stache_counted.recalls),
		.pages = read_figure(&stache_counted.pages),
		.replaced = read_figure(&stache_counted.replaced),
		.written_back = read_figure(&stache_counted.written_back),
	};
}
