// SPDX-License-Identifier: MIT
/*
 * All processes are here: in round k each tells the one 2^k further, and waits for the
 * one 2^k before. A round has one sender, so counting is enough to tell epochs apart.
 */
#include "am.h"

int am_sync(struct am *am)
{
	uint32_t round;
	uint32_t step;

	/* What was sent before is handled before anybody goes on. */
	while (am->counting || am->stores)
		am_serve(am);
	am->sync_epoch++;
	for (round = 0, step = 1; step < am->procs; round++, step *= 2) {
		struct am_packet p = { .kind = AM_SYNC, .args = { round } };
		int dest = (int)((am->self + step) % am->procs);
		int rc = am_can_request(am, dest);

		if (!rc)
			rc = am_request_send(am, dest, &p, NULL, AM_NO_TRANSFER);
		while (!rc && (int32_t)(am->synced[round] - am->sync_epoch) < 0) {
			am_serve(am);
			/* Whoever it is: others give up, and we may wait for those. */
			if (am->lost)
				rc = am_lost_error(am, am->lost - 1);
		}
		if (rc)
			return rc;
	}
	return 0;
}
