// SPDX-License-Identifier: MIT
#include "event/pollset.h"

#include <stdlib.h>

#include "event/cntr.h"
#include "event/cq.h"

struct member {
	struct member *next;
	struct fid *fid;
	uint64_t value;		/* of a counter, when it was told of last */
	uint64_t errors;
};

struct hf_poll {
	struct fid_poll fid;
	struct hf_domain *domain;
	struct member *members;
};

static struct hf_poll *of(struct fid_poll *fid)
{
	return hf_container(fid, struct hf_poll, fid);
}

static bool has_changed(const struct member *member, const struct hf_cntr *cntr)
{
	return __atomic_load_n(&cntr->value, __ATOMIC_ACQUIRE) != member->value ||
	       __atomic_load_n(&cntr->errors, __ATOMIC_ACQUIRE) != member->errors;
}

static void remember(struct member *member, const struct hf_cntr *cntr)
{
	member->value = __atomic_load_n(&cntr->value, __ATOMIC_ACQUIRE);
	member->errors = __atomic_load_n(&cntr->errors, __ATOMIC_ACQUIRE);
}

/* Domain locked. A counter that was told of is told of again when it changes again. */
static bool has_events(struct member *member)
{
	struct hf_cntr *cntr;

	if (member->fid->fclass == FI_CLASS_CQ)
		return hf_cq_is_readable(hf_container(member->fid, struct hf_cq, fid.fid));
	cntr = hf_container(member->fid, struct hf_cntr, fid.fid);
	if (!has_changed(member, cntr))
		return false;
	remember(member, cntr);
	return true;
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct hf_poll *set = of(fid);
	int n = 0;

	hf_domain_lock(set->domain);
	hf_domain_progress(set->domain);
	for (struct member *m = set->members; m && n < count; m = m->next)
		if (has_events(m))
			context[n++] = m->fid->context;
	hf_domain_unlock(set->domain);
	return n;
}

static struct member **find(struct hf_poll *set, const struct fid *fid)
{
	struct member **at = &set->members;

	while (*at && (*at)->fid != fid)
		at = &(*at)->next;
	return at;
}

/* The count of its users, and its domain; NULL: it is nothing for a poll set. */
static int *users_of(struct fid *fid, struct hf_domain **domain)
{
	if (fid->fclass == FI_CLASS_CQ) {
		struct hf_cq *cq = hf_container(fid, struct hf_cq, fid.fid);

		*domain = cq->domain;
		return &cq->users;
	}
	if (fid->fclass == FI_CLASS_CNTR) {
		struct hf_cntr *cntr = hf_container(fid, struct hf_cntr, fid.fid);

		*domain = cntr->domain;
		return &cntr->users;
	}
	return NULL;
}

static int poll_add(struct fid_poll *fid, struct fid *other, uint64_t flags)
{
	struct hf_poll *set = of(fid);
	struct hf_domain *domain = NULL;
	int *users = users_of(other, &domain);
	struct member *member, **at;
	int err = 0;

	if (flags)
		return -FI_EBADFLAGS;
	if (!users || domain != set->domain)
		return -FI_EINVAL;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = other;
	if (other->fclass == FI_CLASS_CNTR)
		remember(member, hf_container(other, struct hf_cntr, fid.fid));
	hf_domain_lock(set->domain);
	at = find(set, other);
	if (*at)
		err = -FI_EINVAL;
	else
		*at = member;
	hf_domain_unlock(set->domain);
	if (err)
		free(member);
	else
		__atomic_add_fetch(users, 1, __ATOMIC_RELAXED);
	return err;
}

static int poll_del(struct fid_poll *fid, struct fid *other, uint64_t flags)
{
	struct hf_poll *set = of(fid);
	struct hf_domain *domain;
	struct member *member, **at;

	if (flags)
		return -FI_EBADFLAGS;
	hf_domain_lock(set->domain);
	at = find(set, other);
	member = *at;
	if (member)
		*at = member->next;
	hf_domain_unlock(set->domain);
	if (!member)
		return -FI_EINVAL;
	__atomic_sub_fetch(users_of(other, &domain), 1, __ATOMIC_RELEASE);
	free(member);
	return 0;
}

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

static int poll_close(struct fid *fid)
{
	struct hf_poll *set = hf_container(fid, struct hf_poll, fid.fid);

	if (set->members)
		return -FI_EBUSY;
	hf_domain_put(set->domain);
	free(set);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(poll_close),
	.bind = hf_no_bind,
	.control = hf_no_control,
};

int hf_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **out)
{
	struct hf_poll *set;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->domain = hf_container(domain, struct hf_domain, fid);
	hf_domain_get(set->domain);
	set->fid.fid.fclass = FI_CLASS_POLL;
	set->fid.fid.ops = &fid_ops;
	set->fid.ops = &poll_ops;
	*out = &set->fid;
	return 0;
}
