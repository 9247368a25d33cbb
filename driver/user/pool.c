// SPDX-License-Identifier: GPL-2.0-only
#include "user/pool.h"

#include <linux/minmax.h>

#include "user/refusal.h"

/*
 * What there is of something is @total. Nobody knows who comes yet, so a part is open
 * to those only that have little:
 *
 *	least = min(guaranteed, total / 14)
 *	reserve = min(16 * least, total / 2)
 *
 * Up to @least anybody may take from all of it: so there is something left for at least
 * the tenth, also on a small machine, where two have taken three quarters of what is open to
 * all. Above, from what is not reserved, and no more than is left free of that then
 * (Choudhury and Hahne's dynamic threshold): one user alone gets a half of it, two a third
 * each, and so on. A user for whom an administrator has set limits keeps out of the
 * reserve, and has no such threshold.
 */
static unsigned long most_of(unsigned long total, unsigned long taken,
			     unsigned long used, unsigned long guaranteed,
			     bool alone)
{
	unsigned long least = min(guaranteed, total / 14);
	unsigned long open = total - min(16 * least, total / 2);
	unsigned long free = open - min(open, taken);

	if (alone)
		return max(least, used + free);
	return max(least, used + (free - min(free, used)) / 2);
}

/**
 * hml_pool_most_of() - what one may have of something else that many share
 * @total: all there is
 * @taken: of which all have
 * @used: of which this one has
 * @guaranteed: that everybody can have, if there is enough
 *
 * Return: how much this one may have now.
 */
unsigned long hml_pool_most_of(unsigned long total, unsigned long taken, unsigned long used,
			       unsigned long guaranteed)
{
	return min(total - taken + used, most_of(total, taken, used, guaranteed, false));
}

/* May one who has @used of it have @more? Else @r says why not. */
bool hml_pool_refuses(struct hml_refusal *r, const struct hml_pool *p, unsigned long more,
		      unsigned long used, unsigned long limit, bool alone)
{
	unsigned long most = most_of(p->total, p->taken, used, p->guaranteed, alone);

	return hml_refusal_over(r, more, used, min(limit, most));
}
