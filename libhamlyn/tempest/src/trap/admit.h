/* SPDX-License-Identifier: MIT */
/* Whether a trapped access may be made, and the wait until it may. */
#ifndef TEMPEST_ADMIT_H
#define TEMPEST_ADMIT_H

#include "thread/fault.h"

enum tempest_admitted {
	ADMIT_IN_FLIGHT,	/* announced: make it through the alias, and leave */
	ADMIT_OPENED,		/* its page is open now: let the processor try again */
};

/**
 * tempest_admit() - wait until an access conflicts with nothing
 * @thread: current thread
 * @access: at least one byte of it is in the segment
 * @may_open: rather open the page, if all of it allows that
 */
enum tempest_admitted tempest_admit(struct tempest_thread *thread,
				    const struct tempest_access *access, bool may_open);

#endif /* TEMPEST_ADMIT_H */
