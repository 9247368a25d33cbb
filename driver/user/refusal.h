/* SPDX-License-Identifier: GPL-2.0-only */
/* A limit that is in the way, and how its user is told. */
#ifndef HML_REFUSAL_H
#define HML_REFUSAL_H

#include "user/user.h"

/**
 * struct hml_refusal - a limit that was in the way, to be told without locks
 * @what: of what
 * @attr: HAMLYN_A_*; 0: nothing is in the way
 * @all: it is a limit of all users together
 * @more: asked for
 * @used: in use
 * @limit: the limit
 * @had: what the user had
 */
struct hml_refusal {
	const char *what;
	u32 attr;
	bool all;
	unsigned long more;
	unsigned long used;
	unsigned long limit;
	struct hml_limits had;
};

bool hml_refusal_exceeds(unsigned long used, unsigned long more, unsigned long limit);
bool hml_refusal_over(struct hml_refusal *r, unsigned long more, unsigned long used,
		      unsigned long limit);
int hml_refusal_tell(struct hml_context *c, const struct hml_refusal *r);

#endif /* HML_REFUSAL_H */
