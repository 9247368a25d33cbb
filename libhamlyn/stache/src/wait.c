// SPDX-License-Identifier: MIT
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wait.h"

uint64_t stache_wait(struct stache_wait *wait)
{
	uint32_t awake = 1;

	if (atomic_compare_exchange_strong(&wait->state, &awake, 2)) {
		while (wait->state)
			syscall(SYS_futex, &wait->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	}
	return wait->answer;
}

/*
 * The stack of a thread that finds the answer without sleeping may be something else by the
 * time of FUTEX_WAKE: another that sleeps there looks again, as all do.
 */
void stache_wake(struct stache_wait *wait, uint64_t answer)
{
	stache_got_from_others(wait);
	wait->answer = answer;
	if (atomic_exchange(&wait->state, 0) == 2)
		syscall(SYS_futex, &wait->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
