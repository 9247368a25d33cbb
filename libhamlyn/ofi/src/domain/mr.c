// SPDX-License-Identifier: MIT
#include "domain/mr.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "event/cntr.h"
#include "event/eq.h"

#define ACCESS	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

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

void hf_mr_count_write(struct hf_domain *domain, uint64_t key)
{
	const struct hf_mr *mr = look_up(domain, key);

	if (mr)
		hf_cntr_count(mr->writes, false);
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
	if (mr->writes) {
		__atomic_sub_fetch(&mr->writes->users, 1, __ATOMIC_RELEASE);
		domain->counted_mrs--;
	}
	hf_domain_unlock(domain);
	hf_domain_put(domain);
	free(mr);
	return 0;
}

static int bind_cntr(struct hf_mr *mr, struct hf_cntr *cntr, uint64_t flags)
{
	struct hf_domain *domain = mr->domain;
	int err = 0;

	if (flags != FI_REMOTE_WRITE)
		return -FI_EBADFLAGS;
	if (cntr->domain != domain)
		return -FI_EINVAL;
	hf_domain_lock(domain);
	if (mr->writes) {
		err = -FI_EINVAL;
	} else {
		mr->writes = cntr;
		domain->counted_mrs++;
		__atomic_add_fetch(&cntr->users, 1, __ATOMIC_RELAXED);
	}
	hf_domain_unlock(domain);
	return err;
}

/* Regions are of the domain, whatever end points are told of them. */
static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct hf_mr *mr = hf_container(fid, struct hf_mr, fid.fid);

	switch (other->fclass) {
	case FI_CLASS_CNTR:
		return bind_cntr(mr, hf_container(other, struct hf_cntr, fid.fid), flags);
	case FI_CLASS_EP:
		return flags ? -FI_EBADFLAGS : 0;
	default:
		return -FI_EINVAL;
	}
}

static int raw_key(const struct hf_mr *mr, const struct fi_mr_raw_attr *raw)
{
	size_t room = *raw->key_size;

	if (raw->flags)
		return -FI_EBADFLAGS;
	*raw->key_size = sizeof(mr->key);
	*raw->base_addr = mr->base;
	if (room < sizeof(mr->key))
		return -FI_ETOOSMALL;
	memcpy(raw->raw_key, &mr->key, sizeof(mr->key));
	return 0;
}

/* The peer's. There is nothing to be freed of it then. */
int hf_mr_map_raw(const struct fi_mr_map_raw *map)
{
	if (map->flags)
		return -FI_EBADFLAGS;
	if (map->key_size != sizeof(*map->key))
		return -FI_EINVAL;
	memcpy(map->key, map->raw_key, sizeof(*map->key));
	return 0;
}

/* None is ever disabled, and which pages are below is not ours to know. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	const struct hf_mr *mr = hf_container(fid, struct hf_mr, fid.fid);

	switch (command) {
	case FI_ENABLE:
	case FI_REFRESH:
		return 0;
	case FI_GET_RAW_MR:
		return raw_key(mr, arg);
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(mr_close),
	.bind = mr_bind,
	.control = mr_control,
};

/* Of a domain whose regions are told of by an event queue: *@mr is the application's already. */
static void tell_complete(struct hf_domain *domain, struct fid_mr *mr)
{
	const struct fi_eq_entry entry = { .fid = &mr->fid, .context = mr->fid.context };

	fi_eq_write(&domain->eq->fid, FI_MR_COMPLETE, &entry, sizeof(entry), 0);
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **out)
{
	struct hf_domain *domain = hf_container(fid, struct hf_domain, fid.fid);
	struct hf_mr *mr;
	int err;

	if (fid->fclass != FI_CLASS_DOMAIN || attr->offset || attr->access & ~ACCESS)
		return -FI_EINVAL;
	if (flags & ~FI_RMA_EVENT)
		return -FI_EBADFLAGS;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->access = attr->access;
	err = hf_span_cover(&mr->span, attr->mr_iov, attr->iov_count);
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
	if (domain->mr_events)
		tell_complete(domain, &mr->fid);
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
