// SPDX-License-Identifier: MIT
#include "base/info.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/hosts.h"
#include "connect/wire.h"
#include "domain/opened.h"

/* An end point of either type, and what it can do. */
struct kind {
	enum fi_ep_type type;
	uint64_t tx_caps;
	uint64_t rx_caps;
	uint64_t rx_flags;
	size_t tx_size;
	size_t rx_size;
	size_t err_data;		/* in error entries of its queues */
	enum fi_av_type av_type;	/* if any is as good */
	uint64_t asked_caps;		/* that nobody has who does not ask for them */
};

#define BOTH_TX_CAPS	(FI_MSG | FI_RMA | FI_SEND | FI_READ | FI_WRITE | FI_FENCE)
#define BOTH_RX_CAPS	(FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
			 FI_RMA_EVENT)

static const struct kind kinds[] = {
	{
		.type = FI_EP_MSG,
		.tx_caps = BOTH_TX_CAPS,
		.rx_caps = BOTH_RX_CAPS,
		.rx_flags = FI_COMPLETION,
		.tx_size = HF_TX_SIZE,
		.rx_size = HF_RX_SIZE,
		.err_data = HF_CM_DATA,
		.av_type = FI_AV_UNSPEC,
	},
	{
		.type = FI_EP_RDM,
		.tx_caps = BOTH_TX_CAPS | FI_TAGGED | FI_ATOMIC,
		.rx_caps = BOTH_RX_CAPS | FI_TAGGED | FI_ATOMIC | FI_MULTI_RECV |
			   FI_DIRECTED_RECV | FI_SOURCE,
		.rx_flags = FI_COMPLETION | FI_MULTI_RECV,
		.tx_size = HF_RDM_SIZE,
		.rx_size = HF_RDM_SIZE,
		.err_data = sizeof(struct sockaddr_in),
		.av_type = FI_AV_TABLE,
		.asked_caps = FI_SOURCE_ERR,
	},
};

#define KINDS		(sizeof(kinds) / sizeof(kinds[0]))

/*
 * Requests of one peer are carried out in the order in which they come. Not of messages and the
 * rest: one that waits for its buffer is passed by reads and writes, and pieces of a long write
 * may come after a message.
 */
#define MSG_ORDER	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | \
			 FI_ORDER_WAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | \
			 FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | \
			 FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/* Of a domain, contexts that end points share; there is no limit but memory. */
#define SHARED		65536
/* fi_endpoint(3): every bit is a field of its own. */
#define TAG_FORMAT	0xaaaaaaaaaaaaaaaaULL

/* hints, where 0 means "any", against what there is */
static bool within(uint64_t asked, uint64_t have)
{
	return asked <= have;
}

/* Contexts of an end point: one, or one that it shares. */
static bool one(size_t asked)
{
	return asked <= 1 || asked == FI_SHARED_CONTEXT;
}

static bool among(uint64_t asked, uint64_t have)
{
	return !(asked & ~have);
}

static uint64_t caps_of(const struct kind *kind)
{
	return kind->tx_caps | kind->rx_caps | FI_LOCAL_COMM;
}

/* Open MPI asks for both kinds of hosts; often all addresses are of this host anyway. */
static uint64_t tolerated_caps(const struct kind *kind)
{
	return caps_of(kind) | kind->asked_caps | FI_REMOTE_COMM;
}

static bool caps_fit(uint64_t caps, const struct kind *kind)
{
	return among(caps, tolerated_caps(kind)) &&
	       (!(caps & FI_SOURCE_ERR) || caps & FI_SOURCE);
}

/* Primary capabilities without a direction mean all directions. */
static uint64_t directions(uint64_t caps)
{
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if (caps & (FI_RMA | FI_ATOMIC) &&
	    !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
		caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	return caps;
}

static bool ep_fits(const struct fi_ep_attr *ep, const struct kind *kind)
{
	return (ep->type == FI_EP_UNSPEC || ep->type == kind->type) &&
	       (!ep->protocol || ep->protocol == HF_PROTOCOL) &&
	       within(ep->protocol_version, HF_PROTOCOL_VERSION) &&
	       within(ep->max_msg_size, HF_MAX_MESSAGE) &&
	       within(ep->max_order_raw_size, HF_ORDERED) &&
	       within(ep->max_order_war_size, HF_ORDERED) &&
	       within(ep->max_order_waw_size, HF_ORDERED) && one(ep->tx_ctx_cnt) &&
	       one(ep->rx_ctx_cnt) && !ep->auth_key_size;
}

static bool tx_fits(const struct fi_tx_attr *tx, const struct kind *kind)
{
	return among(tx->caps, tolerated_caps(kind)) && among(tx->op_flags, HF_TX_FLAGS) &&
	       among(tx->msg_order, MSG_ORDER) && !tx->comp_order &&
	       within(tx->inject_size, HF_INJECT_SIZE) && within(tx->size, HF_TX_SIZE_MAX) &&
	       within(tx->iov_limit, HF_IOV_LIMIT) && within(tx->rma_iov_limit, 1);
}

static bool rx_fits(const struct fi_rx_attr *rx, const struct kind *kind)
{
	return among(rx->caps, tolerated_caps(kind)) && among(rx->op_flags, kind->rx_flags) &&
	       among(rx->msg_order, MSG_ORDER) && !rx->comp_order &&
	       within(rx->size, HF_RX_SIZE_MAX) && within(rx->iov_limit, HF_IOV_LIMIT);
}

static bool domain_fits(const struct fi_domain_attr *domain, const struct kind *kind)
{
	return within(domain->mr_key_size, sizeof(uint64_t)) &&
	       within(domain->cq_data_size, sizeof(uint64_t)) &&
	       among(domain->caps, tolerated_caps(kind)) && within(domain->max_ep_tx_ctx, 1) &&
	       within(domain->max_ep_rx_ctx, 1) && within(domain->max_ep_stx_ctx, SHARED) &&
	       within(domain->max_ep_srx_ctx, SHARED) &&
	       within(domain->mr_iov_limit, HF_IOV_LIMIT) && !domain->auth_key_size &&
	       within(domain->max_err_data, kind->err_data);
}

/* What a context is to have is a part of what the end point is to have. */
static bool contexts_fit(const struct fi_info *hints)
{
	uint64_t whole = directions(hints->caps) | FI_LOCAL_COMM | FI_REMOTE_COMM;

	return !hints->caps || ((!hints->tx_attr || among(hints->tx_attr->caps, whole)) &&
				(!hints->rx_attr || among(hints->rx_attr->caps, whole)));
}

/* As h_open() takes it. Whether a segment is there is seen when it is opened: that makes one. */
static bool is_device(const char *name)
{
	return !strncmp(name, "shm:", 4) ||
	       (!strncmp(name, "/dev/hamlyn", 11) && !access(name, F_OK));
}

static struct fid_fabric *fabric_asked(const struct fi_info *hints)
{
	return hints && hints->fabric_attr ? hints->fabric_attr->fabric : NULL;
}

static struct fid_domain *domain_asked(const struct fi_info *hints)
{
	return hints && hints->domain_attr ? hints->domain_attr->domain : NULL;
}

/* Those that the application has open may be ours, or other providers'. */
static bool instances_fit(const struct fi_info *hints)
{
	struct fid_fabric *fabric = fabric_asked(hints);
	struct fid_domain *domain = domain_asked(hints);

	return (!fabric || hf_opened_fabric(fabric)) &&
	       (!domain || hf_opened_domain(domain, hints->domain_attr->name, fabric));
}

/* The first hint that does not fit, or NULL. */
static const char *misfit(const struct fi_info *hints, const struct kind *kind)
{
	if (!caps_fit(hints->caps, kind))
		return "caps";
	if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != FI_SOCKADDR &&
	    hints->addr_format != FI_SOCKADDR_IN)
		return "addr_format";
	if (hints->ep_attr && !ep_fits(hints->ep_attr, kind))
		return "ep_attr";
	if (hints->tx_attr && !tx_fits(hints->tx_attr, kind))
		return "tx_attr";
	if (hints->rx_attr && !rx_fits(hints->rx_attr, kind))
		return "rx_attr";
	if (!contexts_fit(hints))
		return "caps of contexts";
	if (hints->domain_attr && !domain_fits(hints->domain_attr, kind))
		return "domain_attr";
	if (hints->domain_attr && hints->domain_attr->name && !is_device(hints->domain_attr->name))
		return "domain name";
	if (hints->fabric_attr && hints->fabric_attr->name &&
	    strcmp(hints->fabric_attr->name, HF_NAME))
		return "fabric name";
	return instances_fit(hints) ? NULL : "fabric or domain that is open";
}

/* The device that h_open(NULL) would take. */
static const char *default_device(void)
{
	const char *name = getenv("HAMLYN_DEVICE");

	if (name && *name)
		return name;
	return access("/dev/hamlyn0", F_OK) ? "shm:default" : "/dev/hamlyn0";
}

static size_t or_default(size_t asked, size_t otherwise)
{
	return asked ? asked : otherwise;
}

/* Which of the old modes, or of the bits that replaced them, is to be used. */
static int mr_mode(uint32_t version, const struct fi_info *hints)
{
	int asked = hints && hints->domain_attr ? hints->domain_attr->mr_mode : FI_MR_UNSPEC;
	bool old = FI_VERSION_LT(version, FI_VERSION(1, 5));

	if (asked == HF_MR_BASIC || asked == HF_MR_SCALABLE)
		return asked;
	if (old)
		return HF_MR_SCALABLE;
	if (!hints || !hints->domain_attr)
		return FI_MR_PROV_KEY;
	return asked & FI_MR_PROV_KEY;
}

static void fill_domain(uint32_t version, const struct fi_info *hints, const struct kind *kind,
			struct fi_domain_attr *to)
{
	static const struct fi_domain_attr none;
	const struct fi_domain_attr *asked = hints && hints->domain_attr ? hints->domain_attr :
									   &none;

	to->threading = asked->threading == FI_THREAD_UNSPEC ? FI_THREAD_SAFE : asked->threading;
	to->control_progress = asked->control_progress == FI_PROGRESS_UNSPEC ?
			       FI_PROGRESS_MANUAL : asked->control_progress;
	to->data_progress = asked->data_progress == FI_PROGRESS_UNSPEC ?
			    FI_PROGRESS_MANUAL : asked->data_progress;
	to->resource_mgmt = FI_RM_ENABLED;
	to->av_type = asked->av_type ? asked->av_type : kind->av_type;
	to->mr_mode = mr_mode(version, hints);
	to->mr_key_size = sizeof(uint64_t);
	to->cq_data_size = sizeof(uint64_t);
	to->cq_cnt = or_default(asked->cq_cnt, 1024);
	to->ep_cnt = or_default(asked->ep_cnt, 1024);
	to->cntr_cnt = or_default(asked->cntr_cnt, 1024);
	to->tx_ctx_cnt = or_default(asked->tx_ctx_cnt, 1024);
	to->rx_ctx_cnt = or_default(asked->rx_ctx_cnt, 1024);
	to->max_ep_tx_ctx = 1;
	to->max_ep_rx_ctx = 1;
	to->max_ep_stx_ctx = SHARED;
	to->max_ep_srx_ctx = SHARED;
	to->max_err_data = kind->err_data;
	to->mr_iov_limit = HF_IOV_LIMIT;
	to->mr_cnt = or_default(asked->mr_cnt, 65536);
	to->caps = FI_LOCAL_COMM;
	if (hints)
		to->caps |= (hints->caps | asked->caps) & FI_REMOTE_COMM;
}

static void fill_contexts(const struct fi_info *hints, const struct kind *kind,
			  struct fi_info *info)
{
	static const struct fi_tx_attr no_tx;
	static const struct fi_rx_attr no_rx;
	const struct fi_tx_attr *tx = hints && hints->tx_attr ? hints->tx_attr : &no_tx;
	const struct fi_rx_attr *rx = hints && hints->rx_attr ? hints->rx_attr : &no_rx;

	info->tx_attr->caps = info->caps & kind->tx_caps;
	info->tx_attr->op_flags = tx->op_flags;
	info->tx_attr->msg_order = MSG_ORDER;
	info->tx_attr->inject_size = HF_INJECT_SIZE;
	info->tx_attr->size = or_default(tx->size, kind->tx_size);
	info->tx_attr->iov_limit = HF_IOV_LIMIT;
	info->tx_attr->rma_iov_limit = 1;
	info->tx_attr->tclass = tx->tclass;

	info->rx_attr->caps = info->caps & (kind->rx_caps | kind->asked_caps);
	info->rx_attr->op_flags = rx->op_flags;
	info->rx_attr->msg_order = MSG_ORDER;
	info->rx_attr->size = or_default(rx->size, kind->rx_size);
	info->rx_attr->iov_limit = HF_IOV_LIMIT;
}

static void fill_ep(const struct fi_info *hints, const struct kind *kind, struct fi_info *info)
{
	static const struct fi_ep_attr none;
	const struct fi_ep_attr *asked = hints && hints->ep_attr ? hints->ep_attr : &none;
	uint64_t format = asked->mem_tag_format;

	if (kind->tx_caps & FI_TAGGED)
		info->ep_attr->mem_tag_format = format ? format : TAG_FORMAT;
	info->ep_attr->type = kind->type;
	info->ep_attr->protocol = HF_PROTOCOL;
	info->ep_attr->protocol_version = HF_PROTOCOL_VERSION;
	info->ep_attr->max_msg_size = HF_MAX_MESSAGE;
	info->ep_attr->max_order_raw_size = HF_ORDERED;
	info->ep_attr->max_order_war_size = HF_ORDERED;
	info->ep_attr->max_order_waw_size = HF_ORDERED;
	info->ep_attr->tx_ctx_cnt = asked->tx_ctx_cnt == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : 1;
	info->ep_attr->rx_ctx_cnt = asked->rx_ctx_cnt == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : 1;
}

static int set_address(const struct sockaddr_in *from, void **to, size_t *length)
{
	free(*to);
	*to = hf_address_dup(from);
	*length = *to ? sizeof(*from) : 0;
	return *to ? 0 : -FI_ENOMEM;
}

static int take_hint(const void *address, size_t length, struct sockaddr_in *to, bool *have)
{
	if (!address)
		return 0;
	if (!hf_address_valid(address, length))
		return -FI_ENODATA;
	memcpy(to, address, sizeof(*to));
	*have = true;
	return 0;
}

/* Where from and where to: node and service come before the hints. */
static int fill_addresses(const char *node, const char *service, uint64_t flags,
			  const struct fi_info *hints, struct fi_info *info)
{
	struct sockaddr_in src = { 0 }, dest = { 0 };
	bool have_src = false, have_dest = false;
	int err = 0;

	if (hints)
		err = take_hint(hints->src_addr, hints->src_addrlen, &src, &have_src);
	if (!err && hints)
		err = take_hint(hints->dest_addr, hints->dest_addrlen, &dest, &have_dest);
	if (!err && (node || service)) {
		if (flags & FI_SOURCE) {
			err = hf_address_resolve(node, service, flags, &src);
			have_src = true;
		} else {
			err = hf_address_resolve(node, service, flags, &dest);
			have_dest = true;
		}
	}
	if (err)
		return err;
	if (!have_src) {
		src.sin_family = AF_INET;
		src.sin_addr = have_dest && hf_address_is_here(&dest) ? dest.sin_addr :
								       hf_host_own_address();
	}
	if (!hf_address_is_here(&src) || (have_dest && !hf_address_is_known(&dest)))
		return -FI_ENODATA;
	err = set_address(&src, &info->src_addr, &info->src_addrlen);
	if (!err && have_dest)
		err = set_address(&dest, &info->dest_addr, &info->dest_addrlen);
	return err;
}

/* Of the domain that was asked for, by name or as it is. */
static int fill_names(const struct fi_info *hints, struct fi_info *info)
{
	const char *device = hints && hints->domain_attr ? hints->domain_attr->name : NULL;

	if (!device && domain_asked(hints))
		device = hf_opened_domain(domain_asked(hints), NULL, NULL)->name;
	info->fabric_attr->name = strdup(HF_NAME);
	info->domain_attr->name = strdup(device ? device : default_device());
	return info->fabric_attr->name && info->domain_attr->name ? 0 : -FI_ENOMEM;
}

/* The first ones of these names that are open, if others were not asked for. */
static void fill_instances(const struct fi_info *hints, struct fi_info *info)
{
	struct fid_fabric *asked = fabric_asked(hints);
	struct hf_fabric *fabric = hf_opened_fabric(asked);
	struct hf_domain *domain = hf_opened_domain(domain_asked(hints),
						    info->domain_attr->name, asked);

	if (domain && domain_asked(hints))
		fabric = domain->fabric;
	info->fabric_attr->fabric = fabric ? &fabric->fid : NULL;
	info->domain_attr->domain = domain ? &domain->fid : NULL;
}

/* But for addresses. */
static int fill(uint32_t version, const struct fi_info *hints, const struct kind *kind,
		struct fi_info *info)
{
	int err;

	info->caps = hints && hints->caps ?
		     directions(hints->caps) | FI_LOCAL_COMM : caps_of(kind);
	info->addr_format = FI_SOCKADDR_IN;
	info->handle = hints ? hints->handle : NULL;
	fill_domain(version, hints, kind, info->domain_attr);
	fill_contexts(hints, kind, info);
	fill_ep(hints, kind, info);
	info->fabric_attr->prov_version = hf_provider.version;
	info->fabric_attr->api_version = version;
	err = fill_names(hints, info);
	if (!err)
		fill_instances(hints, info);
	return err;
}

int hf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info **last = info;
	int err = 0;

	*info = NULL;
	if (hf_hosts_are_wrong())
		return -FI_EINVAL;
	for (size_t i = 0; i < KINDS && !err; i++) {
		const char *what = hints ? misfit(hints, &kinds[i]) : NULL;

		if (what) {
			FI_INFO(&hf_provider, FI_LOG_CORE, "no match for hints: %s\n", what);
			continue;
		}
		*last = fi_allocinfo();
		if (!*last) {
			err = -FI_ENOMEM;
			break;
		}
		err = fill(version, hints, &kinds[i], *last);
		if (!err)
			err = fill_addresses(node, service, flags, hints, *last);
		last = &(*last)->next;
	}
	if (!err && !*info)
		err = -FI_ENODATA;
	if (err) {
		fi_freeinfo(*info);
		*info = NULL;
	}
	return err;
}
