// SPDX-License-Identifier: MIT
/*
 * All nodes count in the same word; no count is lost. See migrate.h for how.
 *
 *	hamlyn-run -n 4 migrate [COUNTS]
 */
#include <stdio.h>
#include <stdlib.h>

#include "migrate.h"

int main(int argc, char **argv)
{
	volatile int *counter = (volatile int *)TPPI_SEG_BASE;
	int counts = argc > 1 ? atoi(argv[1]) : 1000;
	int at_home = TPPI_self_address == HOME;

	register_handlers();
	if (!TPPI_alloc_and_map(TPPI_SEG_BASE, 0, at_home ? TPPI_Blk_Writable : TPPI_Blk_Invalid,
				HOME, NULL))
		return 1;
	TPPI_barrier();
	for (int i = 0; i < counts; i++)
		__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
	TPPI_barrier();
	if (at_home)
		printf("%d counts by %u nodes\n", *counter, TPPI_num_nodes);
	TPPI_barrier();
	return 0;
}
