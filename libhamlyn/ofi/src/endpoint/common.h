/* SPDX-License-Identifier: MIT */
/* Calls that active and passive end points have in common: most are refused. */
#ifndef HAMLYN_OFI_COMMON_H
#define HAMLYN_OFI_COMMON_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "base/provider.h"

int hf_getopt(fid_t fid, int level, int option, void *value, size_t *length);
int hf_no_setopt(fid_t fid, int level, int option, const void *value, size_t length);
int hf_no_tx_ctx(struct fid_ep *ep, int index, struct fi_tx_attr *attr, struct fid_ep **tx,
		 void *context);
int hf_no_rx_ctx(struct fid_ep *ep, int index, struct fi_rx_attr *attr, struct fid_ep **rx,
		 void *context);
int hf_no_getpeer(struct fid_ep *ep, void *addr, size_t *length);
int hf_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t length);
int hf_no_listen(struct fid_pep *pep);
int hf_no_accept(struct fid_ep *ep, const void *param, size_t length);
int hf_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t length);
int hf_no_shutdown(struct fid_ep *ep, uint64_t flags);
int hf_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
	       void *context);

#endif
