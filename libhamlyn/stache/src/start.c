// SPDX-License-Identifier: MIT
#include "chunk.h"
#include "copy.h"
#include "fault.h"
#include "home.h"
#include "named.h"
#include "settings.h"

void stache_init(const struct stache_attr *attr)
{
	stache_settings_read(attr);
	stache_chunk_start();
	stache_named_start();
	stache_home_start();
	stache_copy_start();
	stache_fault_start();
	/* Nobody asks this node for anything before */
	TPPI_barrier();
}
