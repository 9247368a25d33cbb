// SPDX-License-Identifier: MIT
#include "domain/fabric.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "connect/pep.h"
#include "domain/domain.h"
#include "domain/opened.h"
#include "event/eq.h"
#include "event/waitset.h"

void hf_fabric_get(struct hf_fabric *fabric)
{
	__atomic_add_fetch(&fabric->users, 1, __ATOMIC_RELAXED);
}

void hf_fabric_put(struct hf_fabric *fabric)
{
	__atomic_sub_fetch(&fabric->users, 1, __ATOMIC_RELEASE);
}

static int fabric_close(struct fid *fid)
{
	struct hf_fabric *fabric = hf_container(fid, struct hf_fabric, fid.fid);

	if (__atomic_load_n(&fabric->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	hf_opened_remove_fabric(fabric);
	free(fabric);
	return 0;
}

/* May the caller sleep on the descriptors of all of these? */
static int trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int err = 0;

	(void)fabric;
	for (int i = 0; i < count && !err; i++)
		err = hf_trywait(fids[i]);
	return err;
}

#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 15
static int domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		   uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : hf_domain_open(fabric, info, domain, context);
}
#endif

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = hf_domain_open,
	.passive_ep = hf_pep_open,
	.eq_open = hf_eq_open,
	.wait_open = hf_waitset_open,
	.trywait = trywait,
	.domain2 = domain2,
};

static struct fi_ops fid_ops = {
	HF_FID_OPS(fabric_close),
	.bind = hf_no_bind,
	.control = hf_no_control,
};

int hf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct hf_fabric *fabric;

	if (attr->name && strcmp(attr->name, HF_NAME))
		return -FI_EINVAL;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fid_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	hf_opened_add_fabric(fabric);
	*out = &fabric->fid;
	return 0;
}
