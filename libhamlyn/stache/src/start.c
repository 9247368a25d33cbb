// SPDX-License-Identifier: MIT
#include "chunk.h"
#include "copy.h"
#include "fault.h"
#include "home.h"
#include "named.h"
#include "settings.h"

void stache__init(const struct stache_attr *attr, size_t size)
{
	stache_settings_read(attr, size);
	stache_chunk_start();
	stache_named_start();
	stache_home_start();
	stache_copy_start();
	stache_fault_start();
	/* Nobody asks this node for anything before */
	TPPI_barrier();
}
