// SPDX-License-Identifier: MIT
#include "block.h"
#include "chunk.h"
#include "copy.h"
#include "error.h"
#include "fault.h"
#include "home.h"
#include "settings.h"

static void map(void *va, stache_chunk chunk)
{
	void *page = stache_page_of(va);
	TPPI_NodeId home = stache_chunk_home(chunk, va);

	if (home == TPPI_self_address)
		stache_home_map(page, stache_chunk_block(chunk));
	else
		stache_copy_map(page, home, stache_chunk_block(chunk));
	TPPI_resume_va(page, TPPI_PAGE_SIZE);
}

static void fault(void *va, int pc, int is_write)
{
	stache_chunk chunk;

	if (!stache_inside(va)) {
		if (!stache_settings.page_fault)
			stache_die("%p is not mapped, accessed at %p, and not Stache's", va,
				   (void *)TPPI_get_fault_pc());
		stache_settings.page_fault(va, pc, is_write);
		return;
	}
	chunk = stache_chunk_at(va);
	if (chunk)
		map(va, chunk);
	else
		stache_chunk_ask(va);
}

void stache_fault_start(void)
{
	TPPI_register_page_fault_handler(fault);
}
