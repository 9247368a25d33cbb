// SPDX-License-Identifier: MIT
/*
 * A full barrier that the rare side pays for: the system makes every running
 * thread of every process that joined execute one (membarrier(2)). So a sender
 * that is alone on its terminus enters and leaves the NIC by plain stores, and
 * whoever replaces a key makes them visible (B8). So it is with whoever sleeps
 * on an NQ (B5), and with the second sender to it (B24).
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "embedded/shm.h"

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Returns whether the barriers of others reach us from now on. */
bool h__shm_fence_join(void)
{
	return !membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

/* False: the system does not let us, or not at once. */
bool h__shm_try_fence(void)
{
	smp_mb();						/* B5, B8, B24 */
	return !membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void h__shm_fence(void)
{
	struct timespec settle = { .tv_nsec = SHM_SETTLE_NS };

	if (!h__shm_try_fence() && membarrier(MEMBARRIER_CMD_GLOBAL))
		/*
		 * A signal does not shorten it; each has its handler run. No
		 * cancellation point: the segment is locked.
		 */
		while (syscall(SYS_nanosleep, &settle, &settle) && errno == EINTR)
			;
}
