// SPDX-License-Identifier: MIT
/* The provider, as libfabric loads it. */
#include "base/provider.h"

#include "base/hosts.h"
#include "base/info.h"
#include "connect/far.h"
#include "domain/fabric.h"

struct hf_settings hf_settings = { .direct = 1 };

int hf_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid;
	(void)other;
	(void)flags;
	return -FI_ENOSYS;
}

int hf_no_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)command;
	(void)arg;
	return -FI_ENOSYS;
}

int hf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		   void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

int hf_no_tostr(const struct fid *fid, char *text, size_t length)
{
	(void)fid;
	(void)text;
	(void)length;
	return -FI_ENOSYS;
}

int hf_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

static void cleanup(void)
{
	hf_far_end();
}

struct fi_provider hf_provider = {
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = HF_NAME,
	.getinfo = hf_getinfo,
	.fabric = hf_fabric_open,
	.cleanup = cleanup,
};

/* What libfabric looks for; its header has no declaration. */
struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	char *hosts = NULL;

	fi_param_define(&hf_provider, "cma", FI_PARAM_BOOL,
			"Let the kernel copy long messages, where it allows that (default: yes)");
	fi_param_define(&hf_provider, "any_user", FI_PARAM_BOOL,
			"Connect to processes of other users, too (default: no)");
	fi_param_define(&hf_provider, "hosts", FI_PARAM_STRING,
			"Hosts of the device's fabric and their IPv4 addresses: ADDRESS=HOST,...");
	fi_param_get_bool(&hf_provider, "cma", &hf_settings.direct);
	fi_param_get_bool(&hf_provider, "any_user", &hf_settings.any_user);
	fi_param_get_str(&hf_provider, "hosts", &hosts);
	if (hosts)
		hf_hosts_set(hosts);
	return &hf_provider;
}
