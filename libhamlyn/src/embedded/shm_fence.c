// SPDX-License-Identifier: MIT
/*
 * A full barrier that the rare side pays for: the system makes every running
 * thread of every process that joined execute one (membarrier(2)). So a sender
 * that is alone on its terminus enters and leaves the NIC by plain stores, and
 * whoever replaces a key makes them visible (B8).
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "embedded/shm.h"

/*
 * Where the call is forbidden to us, though not to the others: longer than any
 * processor keeps a store to itself.
 */
#define SETTLE_NS	10000000

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Returns whether the barriers of others reach us from now on. */
bool h__shm_fence_join(void)
{
	return !membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

void h__shm_fence(void)
{
	struct timespec settle = { .tv_nsec = SETTLE_NS };

	smp_mb();						/* B8 */
	if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	    membarrier(MEMBARRIER_CMD_GLOBAL))
		/*
		 * A signal does not shorten it; each has its handler run. No
		 * cancellation point: the segment is locked.
		 */
		while (syscall(SYS_nanosleep, &settle, &settle) && errno == EINTR)
			;
}
