// SPDX-License-Identifier: MIT
#include "endpoint/common.h"

int hf_getopt(fid_t fid, int level, int option, void *value, size_t *length)
{
	(void)fid;
	if (level != FI_OPT_ENDPOINT || option != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*length < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = HF_CM_DATA;
	*length = sizeof(size_t);
	return 0;
}

int hf_no_setopt(fid_t fid, int level, int option, const void *value, size_t length)
{
	(void)fid;
	(void)level;
	(void)option;
	(void)value;
	(void)length;
	return -FI_ENOPROTOOPT;
}

int hf_no_tx_ctx(struct fid_ep *ep, int index, struct fi_tx_attr *attr, struct fid_ep **tx,
		 void *context)
{
	(void)ep;
	(void)index;
	(void)attr;
	(void)tx;
	(void)context;
	return -FI_ENOSYS;
}

int hf_no_rx_ctx(struct fid_ep *ep, int index, struct fi_rx_attr *attr, struct fid_ep **rx,
		 void *context)
{
	(void)ep;
	(void)index;
	(void)attr;
	(void)rx;
	(void)context;
	return -FI_ENOSYS;
}

int hf_no_getpeer(struct fid_ep *ep, void *addr, size_t *length)
{
	(void)ep;
	(void)addr;
	(void)length;
	return -FI_ENOSYS;
}

int hf_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t length)
{
	(void)ep;
	(void)addr;
	(void)param;
	(void)length;
	return -FI_ENOSYS;
}

int hf_no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

int hf_no_accept(struct fid_ep *ep, const void *param, size_t length)
{
	(void)ep;
	(void)param;
	(void)length;
	return -FI_ENOSYS;
}

int hf_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t length)
{
	(void)pep;
	(void)handle;
	(void)param;
	(void)length;
	return -FI_ENOSYS;
}

int hf_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep;
	(void)flags;
	return -FI_ENOSYS;
}

int hf_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
	       void *context)
{
	(void)ep;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}
