// SPDX-License-Identifier: GPL-2.0-only
/* The states of a message buffer of Active Messages (HPAM 6.1): every one, every event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../libhamlyn/am/state.c"

/* What may happen, as the paper's figure and steps have it; nothing else may. */
static const struct {
	enum am_state from;
	enum am_event event;
	enum am_state to;
} transitions[] = {
	/* A request: issued (1.a, 1.b), sent, and then the reply (3.d) or none. */
	{ AM_FREE, AM_EV_SEND, AM_TRANSMIT },
	{ AM_TRANSMIT, AM_EV_SENT_REQUEST, AM_COUNTING },
	{ AM_COUNTING, AM_EV_TIMEOUT, AM_TRANSMIT },
	{ AM_COUNTING, AM_EV_REPLY, AM_FREE },
	/* A reply: kept until the next request, reflected when the same comes. */
	{ AM_TRANSMIT, AM_EV_SENT_REPLY, AM_WAITING },
	{ AM_WAITING, AM_EV_DUPLICATE, AM_TRANSMIT },
	{ AM_WAITING, AM_EV_NEW, AM_FREE },
	/* A buffer to receive into. */
	{ AM_FREE, AM_EV_ARRIVE, AM_RECEIVED },
	{ AM_RECEIVED, AM_EV_HANDLED, AM_FREE },
};

static int expected(enum am_state from, enum am_event event)
{
	size_t i;

	if (event == AM_EV_LOST)
		return AM_FREE;
	for (i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i].from == from && transitions[i].event == event)
			return (int)transitions[i].to;
	return -1;
}

static void every_event_in_every_state(void **state)
{
	int from, event;

	(void)state;
	for (from = 0; from < AM_STATES; from++) {
		for (event = 0; event < AM_EVENTS; event++) {
			int to = expected(from, event);
			uint8_t buffer = (uint8_t)from;
			int moved = am_state_move(&buffer, event);

			assert_int_equal(moved, to >= 0);
			assert_int_equal(buffer, to >= 0 ? to : from);
		}
	}
}

/* From each state a buffer gets back to free: none is lost for ever. */
static void every_buffer_gets_free_again(void **state)
{
	int from, steps;

	(void)state;
	for (from = 0; from < AM_STATES; from++) {
		uint8_t reached = (uint8_t)(1U << from);

		for (steps = 0; steps < AM_STATES; steps++) {
			int s, event;

			for (s = 0; s < AM_STATES; s++)
				for (event = 0; event < AM_EV_LOST; event++) {
					uint8_t next = am_state_next[s][event];

					if (reached & 1U << s &&
					    next != AM_INVALID)
						reached |= (uint8_t)(1U << next);
				}
		}
		assert_true(reached & 1U << AM_FREE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_in_every_state),
		cmocka_unit_test(every_buffer_gets_free_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
