// SPDX-License-Identifier: GPL-2.0-only
#include "user/refusal.h"

#include "hml.h"
#include "trace.h"

static unsigned long kib(unsigned long pages)
{
	return pages << (PAGE_SHIFT - 10);
}

static bool in_pages(const struct hml_refusal *r)
{
	return r->attr == HAMLYN_A_KERNEL_BYTES ||
	       r->attr == HAMLYN_A_WIRED_BYTES;
}

static u64 *quota_told(struct hml_user *u, u32 attr)
{
	switch (attr) {
	case HAMLYN_A_KERNEL_BYTES:
		return &u->quota_told[0];
	case HAMLYN_A_WIRED_BYTES:
		return &u->quota_told[1];
	case HAMLYN_A_SLOTS:
		return &u->quota_told[2];
	}
	return &u->quota_told[HML_QUOTA_KINDS - 1];
}

/*
 * After users_lock was let go, for which everybody waits: an event allocates, and copies to
 * whoever listens.
 */
int hml_refusal_tell(struct hml_context *c, const struct hml_refusal *r)
{
	unsigned long more = r->more, used = r->used, limit = r->limit;
	const char *unit = "";

	if (!r->attr)
		return 0;
	if (in_pages(r)) {
		more = kib(more);
		used = kib(used);
		limit = kib(limit);
		unit = " KiB";
	}
	if (r->all && hml_nic_admin(c->device))
		hml_explain(c, "%s: %lu KiB asked for, %lu of %lu KiB in use",
			    r->what, more, used, limit);
	else if (r->all)
		hml_explain(c, "%s: %lu KiB asked for, more than others leave of %lu KiB",
			    r->what, more, limit);
	else
		hml_explain(c, "%s: %lu%s asked for, %lu%s of the user's %lu%s in use",
			    r->what, more, unit, used, unit, limit, unit);
	trace_hamlyn_quota(c, r->what, more, used, limit);
	if (hml_event_again(quota_told(c->user, r->attr)))
		hml_event_quota(c, r->attr, &r->had);
	return -EDQUOT;
}

/* Would @more be too much beside @used? */
bool hml_refusal_exceeds(unsigned long used, unsigned long more, unsigned long limit)
{
	return used > limit || more > limit - used;
}

/* The same, and then @r says so. */
bool hml_refusal_over(struct hml_refusal *r, unsigned long more, unsigned long used,
		      unsigned long limit)
{
	r->more = more;
	r->used = used;
	r->limit = limit;
	return hml_refusal_exceeds(used, more, limit);
}
