// SPDX-License-Identifier: GPL-2.0-only
/* Messages per second from one process to one other. */
#include "system/chan.h"

int test_rate(struct chan *chan, uint32_t budget_ms, struct measure *measure)
{
	measure->value = stream_rate(chan, budget_ms, false, measure);
	return measure->value > 0 ? 0 : -1;
}
