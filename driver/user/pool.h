/* SPDX-License-Identifier: GPL-2.0-only */
/* What many share, and of which nobody can take all. */
#ifndef HML_POOL_H
#define HML_POOL_H

#include <linux/sizes.h>
#include <linux/types.h>

struct hml_refusal;

/* What everybody can have, if there is enough. */
#define HML_LEAST_SLOTS		128
#define HML_LEAST_PAGES		(SZ_32M >> PAGE_SHIFT)
#define HML_LEAST_SMALL		SZ_4M

/**
 * struct hml_pool - something that all share
 * @total: all there is; ULONG_MAX: there is no end of it
 * @taken: of which all have
 * @guaranteed: that everybody can have, if there is enough
 */
struct hml_pool {
	unsigned long total;
	unsigned long taken;
	unsigned long guaranteed;
};

unsigned long hml_pool_most_of(unsigned long total, unsigned long taken, unsigned long used,
			       unsigned long guaranteed);
bool hml_pool_refuses(struct hml_refusal *r, const struct hml_pool *p, unsigned long more,
		      unsigned long used, unsigned long limit, bool alone);

#endif /* HML_POOL_H */
