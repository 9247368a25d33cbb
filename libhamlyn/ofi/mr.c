// SPDX-License-Identifier: MIT
#include "mr.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static struct hf_mr **bucket(struct hf_domain *domain, uint64_t key)
{
	return &domain->mrs[(key ^ key >> 32) % HF_MR_BUCKETS];
}

static struct hf_mr *look_up(struct hf_domain *domain, uint64_t key)
{
	struct hf_mr *mr = *bucket(domain, key);

	while (mr && mr->key != key)
		mr = mr->next;
	return mr;
}

/*
 * What a peer means by a key and an address. The only place that lets it in: everything that is
 * read from or written to a region comes through here, each piece anew.
 */
int hf_mr_find(struct hf_domain *domain, uint64_t key, uint64_t access, uint64_t address,
	       uint64_t length, struct hf_span *part)
{
	const struct hf_mr *mr = look_up(domain, key);
	uint64_t offset;

	if (!mr)
		return -FI_EKEYREJECTED;
	if ((mr->access & access) != access)
		return -FI_EACCES;
	offset = address - mr->base;
	if (address < mr->base || offset > mr->span.length || length > mr->span.length - offset)
		return -FI_EACCES;
	hf_span_part(&mr->span, offset, length, part);
	return 0;
}

/* An unused one, of which nothing follows from the others. Domain locked. */
static int draw_key(struct hf_domain *domain, uint64_t *key)
{
	do {
		if (getrandom(key, sizeof(*key), 0) != sizeof(*key))
			return -FI_EIO;
		/* FI_KEY_NOTAVAIL is none. */
	} while (*key == FI_KEY_NOTAVAIL || look_up(domain, *key));
	return 0;
}

static int mr_insert(struct hf_mr *mr, uint64_t requested)
{
	struct hf_domain *domain = mr->domain;
	struct hf_mr **head;
	int err = 0;

	hf_domain_lock(domain);
	if (!domain->given_keys)
		err = draw_key(domain, &mr->key);
	else if (look_up(domain, requested))
		err = -FI_ENOKEY;
	else
		mr->key = requested;
	if (!err) {
		head = bucket(domain, mr->key);
		mr->next = *head;
		*head = mr;
	}
	hf_domain_unlock(domain);
	return err;
}

static int mr_close(struct fid *fid)
{
	struct hf_mr *mr = hf_container(fid, struct hf_mr, fid.fid);
	struct hf_domain *domain = mr->domain;
	struct hf_mr **at;

	hf_domain_lock(domain);
	for (at = bucket(domain, mr->key); *at != mr; at = &(*at)->next)
		;
	*at = mr->next;
	hf_domain_unlock(domain);
	hf_domain_put(domain);
	free(mr);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(mr_close),
	.bind = hf_no_bind,
	.control = hf_no_control,
};

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **out)
{
	struct hf_domain *domain = hf_container(fid, struct hf_domain, fid.fid);
	struct hf_mr *mr;
	int err;

	if (fid->fclass != FI_CLASS_DOMAIN || flags || attr->offset)
		return -FI_EINVAL;
	if (attr->iface != FI_HMEM_SYSTEM)
		return -FI_ENOSYS;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->access = attr->access;
	err = hf_span_set(&mr->span, attr->mr_iov, attr->iov_count);
	if (domain->virtual_address && attr->iov_count)
		mr->base = (uintptr_t)attr->mr_iov[0].iov_base;
	if (!err)
		err = mr_insert(mr, attr->requested_key);
	if (err) {
		free(mr);
		return err;
	}
	hf_domain_get(domain);
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &fid_ops;
	mr->fid.key = mr->key;
	*out = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		   void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr hf_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
