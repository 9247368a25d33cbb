/* SPDX-License-Identifier: MIT */
/* What every file of the provider needs: its name, its limits, its log. */
#ifndef HAMLYN_OFI_PROVIDER_H
#define HAMLYN_OFI_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define HF_NAME			"hamlyn"
#define HF_PROTOCOL		0x80004841U	/* provider specific: bit 31 */
#define HF_PROTOCOL_VERSION	1

/* What fi_getinfo() promises. */
#define HF_IOV_LIMIT		4
/* ofi_rxm offers so much less its header, and refuses its own offer if that is above 16 KiB. */
#define HF_INJECT_SIZE		16384
#define HF_MAX_MESSAGE		(1ULL << 40)
#define HF_TX_SIZE		256
#define HF_TX_SIZE_MAX		4096
#define HF_RX_SIZE		64
#define HF_RX_SIZE_MAX		65536
/* fi_tx_attr, FI_SETOPSFLAG: of calls that have none of their own */
#define HF_TX_FLAGS		(FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | \
				 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define HF_RDM_SIZE		1024
#define HF_CM_DATA		256

/* libfabric 2 deprecates them, and programs of libfabric 1 ask for them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
enum hf_old_mr_mode {
	HF_MR_BASIC = FI_MR_BASIC,
	HF_MR_SCALABLE = FI_MR_SCALABLE,
};

#pragma GCC diagnostic pop

extern struct fi_provider hf_provider;

struct hf_settings {
	int direct;		/* let the kernel copy long messages between processes */
	int any_user;		/* connect to other users' processes, too */
};

extern struct hf_settings hf_settings;

#define hf_warn(...)	FI_WARN(&hf_provider, FI_LOG_CORE, __VA_ARGS__)

#define hf_container(pointer, type, member) \
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/* fi_close() and its like return libfabric's numbers: those of the system, and a few more. */
int hf_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int hf_no_control(struct fid *fid, int command, void *arg);
int hf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		   void *context);
int hf_no_tostr(const struct fid *fid, char *text, size_t length);
int hf_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops,
		  void *context);

#define HF_FID_OPS(close_)			\
	.size = sizeof(struct fi_ops),		\
	.close = (close_),			\
	.ops_open = hf_no_ops_open,		\
	.tostr = hf_no_tostr,			\
	.ops_set = hf_no_ops_set

#endif
