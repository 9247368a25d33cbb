// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: what there is, and what hints it fits, fi_getinfo(3). */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>

#include "kselftest_harness.h"
#include "pair.h"

/* What libfabric 2 deprecates has to work as long as libfabric knows it. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define VERSION	FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

static struct fi_info *new_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("hamlyn");
	hints->ep_attr->type = FI_EP_MSG;
	return hints;
}

/* What libfabric answers; frees the hints. */
static struct fi_info *ask(struct fi_info *hints)
{
	struct fi_info *info = NULL;

	if (fi_getinfo(VERSION, NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static struct fi_info *ours(struct fi_info *list)
{
	while (list && (strcmp(list->fabric_attr->prov_name, "hamlyn") ||
			list->ep_attr->type != FI_EP_MSG))
		list = list->next;
	return list;
}

TEST(without_hints)
{
	struct fi_info *list = NULL, *info;

	ASSERT_EQ(0, fi_getinfo(VERSION, NULL, NULL, 0, NULL, &list));
	info = ours(list);
	ASSERT_NE(NULL, info);
	EXPECT_EQ(FI_MSG | FI_RMA, info->caps & (FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC));
	EXPECT_EQ(0, info->mode);
	EXPECT_EQ(FI_SOCKADDR_IN, info->addr_format);
	EXPECT_EQ(0, info->domain_attr->mr_mode & ~FI_MR_PROV_KEY);
	EXPECT_EQ(8, info->domain_attr->mr_key_size);
	fi_freeinfo(list);
}

/* Without connections there is more, and not what there is not. */
TEST(without_connections)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("hamlyn");
	hints->ep_attr->type = FI_EP_RDM;
	info = ask(hints);
	while (info && strcmp(info->fabric_attr->prov_name, "hamlyn"))
		info = info->next;
	ASSERT_NE(NULL, info);
	EXPECT_EQ(FI_TAGGED | FI_ATOMIC | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE,
		  info->caps & (FI_TAGGED | FI_ATOMIC | FI_DIRECTED_RECV | FI_MULTI_RECV |
				FI_SOURCE | FI_TRIGGER));
	EXPECT_EQ(0, info->mode);
	EXPECT_EQ(FI_AV_TABLE, info->domain_attr->av_type);
	EXPECT_NE(0, info->ep_attr->mem_tag_format);
}

/* ofi_rxm makes reliable datagrams of the other one. */
TEST(layered)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("hamlyn;ofi_rxm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_MSG;
	info = ask(hints);
	ASSERT_NE(NULL, info);
	EXPECT_STREQ("hamlyn;ofi_rxm", info->fabric_attr->prov_name);
	fi_freeinfo(info);
}

/* Of strangers' addresses only who asks for it is told, and who asks for addresses. */
TEST(strangers)
{
	struct fi_info *hints, *info;

	for (int i = 0; i < 4; i++) {
		hints = fi_allocinfo();
		hints->fabric_attr->prov_name = strdup("hamlyn");
		hints->ep_attr->type = FI_EP_RDM;
		hints->caps = FI_MSG | (i & 1 ? FI_SOURCE : 0) | (i & 2 ? FI_SOURCE_ERR : 0);
		hints->domain_attr->max_err_data = sizeof(struct sockaddr_in);
		info = ask(hints);
		EXPECT_EQ(i != 2, !!info);
		if (info)
			EXPECT_EQ(i == 3, !!(info->rx_attr->caps & FI_SOURCE_ERR));
		fi_freeinfo(info);
	}
}

/* Hints that cannot be met have no answer, each by itself. */
#define CANNOT(what)							\
	do {								\
		struct fi_info *h = new_hints(), *answer;		\
									\
		what;							\
		answer = ask(h);					\
		EXPECT_EQ(NULL, ours(answer)) {				\
			TH_LOG("%s", #what);				\
		}							\
		fi_freeinfo(answer);					\
	} while (0)

#define CAN(what)							\
	do {								\
		struct fi_info *h = new_hints(), *answer;		\
									\
		what;							\
		answer = ask(h);					\
		EXPECT_NE(NULL, ours(answer)) {				\
			TH_LOG("%s", #what);				\
		}							\
		fi_freeinfo(answer);					\
	} while (0)

TEST(cannot)
{
	CANNOT(h->caps = FI_TAGGED);
	CANNOT(h->caps = FI_MSG | FI_ATOMIC);
	CANNOT(h->caps = FI_MSG | FI_MULTI_RECV);
	CANNOT(h->caps = FI_MSG | FI_HMEM);
	CANNOT(h->addr_format = FI_SOCKADDR_IN6);
	CANNOT(h->ep_attr->protocol = FI_PROTO_SOCK_TCP);
	CANNOT(h->ep_attr->max_msg_size = ~(size_t)0);
	CANNOT(h->ep_attr->tx_ctx_cnt = 2);
	CANNOT(h->ep_attr->max_order_waw_size = 16641);
	CANNOT((h->caps = FI_MSG, h->tx_attr->caps = FI_RMA));
	CANNOT((h->caps = FI_MSG | FI_SEND, h->rx_attr->caps = FI_MSG | FI_RECV));
	CANNOT(h->tx_attr->inject_size = 65536);
	CANNOT(h->tx_attr->iov_limit = 5);
	CANNOT(h->tx_attr->rma_iov_limit = 2);
	CANNOT(h->tx_attr->size = 1000000);
	CANNOT(h->tx_attr->msg_order = FI_ORDER_SAW);
	CANNOT(h->tx_attr->comp_order = FI_ORDER_STRICT);
	CANNOT(h->tx_attr->op_flags = FI_COMMIT_COMPLETE);
	CANNOT(h->rx_attr->iov_limit = 5);
	CANNOT(h->rx_attr->op_flags = FI_MULTI_RECV);
	CANNOT(h->domain_attr->mr_key_size = 9);
	CANNOT(h->domain_attr->cq_data_size = 9);
	CANNOT(h->domain_attr->max_err_data = 257);
	CANNOT(h->caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR);
	CANNOT(h->domain_attr->caps = FI_TAGGED);
	CANNOT(h->fabric_attr->name = strdup("10.0.0.0/8"));
	CANNOT(h->domain_attr->name = strdup("eth0"));
	CANNOT(h->domain_attr->name = strdup("/dev/hamlyn999"));
}

TEST(can)
{
	CAN((void)0);
	CAN(h->caps = FI_MSG);
	CAN(h->caps = FI_RMA);
	CAN(h->caps = FI_MSG | FI_SEND);
	CAN((h->caps = FI_MSG | FI_RMA, h->tx_attr->caps = FI_MSG | FI_SEND));
	CAN(h->addr_format = FI_SOCKADDR);
	CAN(h->ep_attr->max_msg_size = 1ULL << 32);
	CAN(h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT);
	CAN(h->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT);
	CAN((h->domain_attr->max_ep_srx_ctx = 1, h->domain_attr->max_ep_stx_ctx = 1));
	CAN(h->tx_attr->inject_size = 16384);
	CAN(h->tx_attr->iov_limit = 4);
	CAN(h->tx_attr->msg_order = FI_ORDER_SAS);
	CAN(h->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_INJECT | FI_TRANSMIT_COMPLETE);
	/* What a refusal can say, fi_reject(). */
	CAN(h->domain_attr->max_err_data = 256);
	CAN(h->domain_attr->mr_mode = FI_MR_BASIC);
	CAN(h->domain_attr->mr_mode = FI_MR_SCALABLE);
	CAN(h->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_LOCAL);
	CAN(h->domain_attr->resource_mgmt = FI_RM_ENABLED);
	CAN(h->domain_attr->name = strdup("shm:other"));
	CAN(h->mode = FI_CONTEXT | FI_CONTEXT2);
	CAN(h->tx_attr->op_flags = FI_MATCH_COMPLETE);
	/* "The provider may adjust or ignore this value." */
	CAN(h->rx_attr->total_buffered_recv = 1 << 20);
}

/* What is asked of threads and progress is what is answered; sizes are at least as large. */
TEST(echoes)
{
	for (int i = FI_THREAD_SAFE; i <= FI_THREAD_ENDPOINT; i++) {
		struct fi_info *hints = new_hints(), *info;

		hints->domain_attr->threading = i;
		hints->domain_attr->data_progress = i % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
		hints->tx_attr->size = 1000;
		hints->rx_attr->size = 2000;
		info = ask(hints);
		ASSERT_NE(NULL, info);
		EXPECT_EQ(i, info->domain_attr->threading);
		EXPECT_EQ(i % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL,
			  info->domain_attr->data_progress);
		EXPECT_LE(1000, info->tx_attr->size);
		EXPECT_LE(2000, info->rx_attr->size);
		fi_freeinfo(info);
	}
}

/* Capabilities that were not asked for are not granted. */
TEST(caps)
{
	struct fi_info *hints = new_hints(), *info;

	hints->caps = FI_MSG | FI_RECV;
	info = ask(hints);
	ASSERT_NE(NULL, info);
	EXPECT_EQ(FI_MSG | FI_RECV, info->caps & (FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ));
	EXPECT_EQ(0, info->tx_attr->caps & FI_SEND);
	EXPECT_EQ(FI_LOCAL_COMM, info->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM));
	EXPECT_EQ(FI_LOCAL_COMM, info->domain_attr->caps);
	fi_freeinfo(info);
	/* Other hosts cannot be reached, but programs that might reach them run all the same. */
	hints = new_hints();
	hints->caps = FI_MSG | FI_REMOTE_COMM;
	info = ask(hints);
	ASSERT_NE(NULL, info);
	EXPECT_EQ(FI_LOCAL_COMM | FI_REMOTE_COMM, info->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM));
	fi_freeinfo(info);
}

TEST(addresses)
{
	struct fi_info *hints = new_hints(), *info = NULL;
	const struct sockaddr_in *in;

	ASSERT_EQ(0, fi_getinfo(VERSION, "127.0.0.1", "4711", FI_SOURCE, hints, &info));
	in = info->src_addr;
	ASSERT_NE(NULL, in);
	EXPECT_EQ(4711, ntohs(in->sin_port));
	EXPECT_EQ(NULL, info->dest_addr);
	fi_freeinfo(info);
	ASSERT_EQ(0, fi_getinfo(VERSION, "127.0.0.1", "4711", 0, hints, &info));
	in = info->dest_addr;
	ASSERT_NE(NULL, in);
	EXPECT_EQ(4711, ntohs(in->sin_port));
	EXPECT_NE(NULL, info->src_addr);
	fi_freeinfo(info);
	/* Hosts that are not this one cannot be reached. */
	EXPECT_EQ(-FI_ENODATA, fi_getinfo(VERSION, "192.0.2.1", "4711", 0, hints, &info));
	EXPECT_EQ(-FI_ENODATA, fi_getinfo(VERSION, "192.0.2.1", "4711", FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
}

/* With a domain of its own, or of its fabric, if they are not NULL; what is told must be those. */
static bool finds(struct fid_fabric *fabric, struct fid_domain *domain, const char *name,
		  struct fid_fabric *told_fabric, struct fid_domain *told_domain)
{
	struct fi_info *hints = new_hints(), *info, *found;
	bool same;

	hints->fabric_attr->fabric = fabric;
	hints->domain_attr->domain = domain;
	hints->domain_attr->name = name ? strdup(name) : NULL;
	info = ask(hints);
	found = ours(info);
	same = found && found->fabric_attr->fabric == told_fabric &&
	       found->domain_attr->domain == told_domain &&
	       (!name || !strcmp(found->domain_attr->name, name));
	fi_freeinfo(info);
	return same;
}

/* fi_fabric(3), fi_domain(3): what is open is told of, the first of each name, and restricts. */
TEST(opened)
{
	struct fid_fabric *fabrics[2], stranger = { 0 };
	struct fid_domain *domains[3], nobody = { 0 };
	struct fi_info *info = ask(new_hints()), *mine;
	char *name;

	mine = ours(info);
	ASSERT_NE(NULL, mine);
	EXPECT_EQ(NULL, mine->fabric_attr->fabric);
	EXPECT_EQ(NULL, mine->domain_attr->domain);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, fi_fabric(mine->fabric_attr, &fabrics[i], NULL));
	EXPECT_EQ(true, finds(NULL, NULL, NULL, fabrics[0], NULL));
	EXPECT_EQ(true, finds(fabrics[1], NULL, NULL, fabrics[1], NULL));
	/* Two of one name, and one of another. */
	ASSERT_EQ(0, fi_domain(fabrics[1], mine, &domains[0], NULL));
	ASSERT_EQ(0, fi_domain(fabrics[0], mine, &domains[1], NULL));
	name = mine->domain_attr->name;
	mine->domain_attr->name = strdup("shm:other,size=64M");
	ASSERT_EQ(0, fi_domain(fabrics[0], mine, &domains[2], NULL));
	EXPECT_EQ(true, finds(NULL, NULL, name, fabrics[0], domains[0]));
	EXPECT_EQ(true, finds(fabrics[0], NULL, name, fabrics[0], domains[1]));
	EXPECT_EQ(true, finds(NULL, NULL, "shm:other,size=64M", fabrics[0], domains[2]));
	EXPECT_EQ(true, finds(NULL, NULL, "shm:third", fabrics[0], NULL));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(true, finds(NULL, domains[i], NULL, i ? fabrics[0] : fabrics[1],
				      domains[i]));
	/* Not of that name, not of that fabric, and none of ours. */
	EXPECT_EQ(false, finds(NULL, domains[2], name, fabrics[0], domains[2]));
	EXPECT_EQ(false, finds(fabrics[1], domains[2], NULL, fabrics[1], domains[2]));
	EXPECT_EQ(false, finds(&stranger, NULL, NULL, &stranger, NULL));
	EXPECT_EQ(false, finds(NULL, &nobody, NULL, fabrics[0], &nobody));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, fi_close(&domains[i]->fid));
	EXPECT_EQ(true, finds(NULL, NULL, name, fabrics[0], NULL));
	EXPECT_EQ(0, fi_close(&fabrics[0]->fid));
	EXPECT_EQ(true, finds(NULL, NULL, name, fabrics[1], NULL));
	EXPECT_EQ(0, fi_close(&fabrics[1]->fid));
	EXPECT_EQ(true, finds(NULL, NULL, name, NULL, NULL));
	free(name);
	fi_freeinfo(info);
}

TEST_HARNESS_MAIN
