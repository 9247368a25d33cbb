// SPDX-License-Identifier: GPL-2.0-only
/* Bandwidth of a stream of messages that the receiver reads. */
#include "system/chan.h"

int test_bw(struct chan *chan, uint32_t budget_ms, struct measure *measure)
{
	bool alone = chan->system->solo;
	double rate = stream_rate(chan, budget_ms, alone, measure);

	measure->value = rate * (double)chan->size;
	return rate > 0 ? 0 : -1;
}
