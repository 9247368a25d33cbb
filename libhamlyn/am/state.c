// SPDX-License-Identifier: MIT
/* Which state follows which (P Figure 5). */
#include "state.h"

#define X AM_INVALID

/*
 * Columns: send, sent request, sent reply, time-out, reply, duplicate, new, arrive,
 * handled, lost.
 */
const uint8_t am_state_next[AM_STATES][AM_EVENTS] = {
	[AM_FREE] = { AM_TRANSMIT, X, X, X, X, X, X, AM_RECEIVED, X, AM_FREE },
	[AM_TRANSMIT] = { X, AM_COUNTING, AM_WAITING, X, X, X, X, X, X,
			  AM_FREE },
	[AM_COUNTING] = { X, X, X, AM_TRANSMIT, AM_FREE, X, X, X, X, AM_FREE },
	[AM_WAITING] = { X, X, X, X, X, AM_TRANSMIT, AM_FREE, X, X, AM_FREE },
	[AM_RECEIVED] = { X, X, X, X, X, X, X, X, AM_FREE, AM_FREE },
};
