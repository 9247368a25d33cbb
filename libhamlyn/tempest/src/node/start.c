// SPDX-License-Identifier: MIT
/* All that is there before main(). */
#include <asm/prctl.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "memory/block.h"
#include "memory/page.h"
#include "memory/view.h"
#include "node/job.h"
#include "node/link.h"
#include "tempest.h"
#include "thread/last.h"
#include "thread/protocol.h"
#include "thread/thread.h"
#include "trap/signals.h"

/* Here, because everything needs them: of an archive nobody would ask for this file. */
unsigned int TPPI_num_nodes = 1;
TPPI_NodeId TPPI_self_address;

/* Threads inherit it from the one that makes them. */
static void set_gs(void)
{
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, TEMPEST_ALIAS_OFFSET))
		tempest_refuse("the base of %%gs cannot be set: %s", strerror(errno));
}

/* Before the constructors of the program, which may use the segment. */
__attribute__((constructor(101)))
static void start(void)
{
	tempest_last_begin();
	tempest_settings_read();
	tempest_segment_start(tempest_settings.size, tempest_settings.checks == CHECKS_RSEQ);
	tempest_page_start(tempest_settings.memory);
	tempest_block_start(tempest_settings.checks);
	tempest_view_start(tempest_settings.view);
	tempest_thread_start();
	tempest_signals_start();
	set_gs();
	tempest_job_start();
	tempest_settings_complete();
	tempest_link_start();
	tempest_protocol_start();
	tempest_last_start();
}
