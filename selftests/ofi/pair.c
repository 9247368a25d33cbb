// SPDX-License-Identifier: GPL-2.0-only
#include "pair.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERSION	FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int64_t patience_ms(void)
{
	const char *scale = getenv("HAMLYN_TEST_SCALE");

	return PATIENCE_MS * (scale && atoi(scale) > 1 ? atoi(scale) : 1);
}

struct fi_info *pair_info(const struct options *options)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	if (!hints)
		return NULL;
	if (options->no_cma)
		setenv("FI_HAMLYN_CMA", "0", 1);
	hints->fabric_attr->prov_name = strdup("hamlyn");
	hints->ep_attr->type = options->rdm ? FI_EP_RDM : FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA | FI_RMA_EVENT | FI_FENCE;
	if (options->rdm)
		hints->caps |= FI_TAGGED | FI_ATOMIC | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE;
	hints->caps |= options->caps;
	hints->domain_attr->mr_mode = options->mr_mode < 0 ? 0 :
				      options->mr_mode ? options->mr_mode : FI_MR_PROV_KEY;
	hints->domain_attr->threading = options->threading;
	hints->domain_attr->data_progress = options->progress;
	if (fi_getinfo(VERSION, "127.0.0.1", NULL, FI_SOURCE, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static int open_queues(struct end *end, const struct options *options)
{
	struct fi_cq_attr cq = {
		.size = options->cq_size,
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = options->cq_wait ? options->cq_wait : FI_WAIT_NONE,
		.wait_cond = options->cq_cond,
	};
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP };
	int err = fi_cq_open(end->domain, &cq, &end->tx, NULL);

	if (!err)
		err = fi_cq_open(end->domain, &cq, &end->rx, NULL);
	for (int i = 0; i < 6 && !err; i++)
		err = fi_cntr_open(end->domain, &cntr, &end->cntr[i], NULL);
	return err;
}

int end_open(struct end *end, struct fi_info *info, const struct options *options)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av = { .type = options->av };
	int err;

	memset(end, 0, sizeof(*end));
	end->info = fi_dupinfo(info);
	err = fi_fabric(info->fabric_attr, &end->fabric, NULL);
	if (!err)
		err = fi_eq_open(end->fabric, &eq, &end->eq, NULL);
	if (!err)
		err = fi_domain(end->fabric, info, &end->domain, NULL);
	if (!err && options->rdm)
		err = fi_av_open(end->domain, &av, &end->av, NULL);
	return err ? err : open_queues(end, options);
}

int end_endpoint(struct end *end, struct fi_info *info, const struct options *options)
{
	static const uint64_t counted[6] = {
		FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE
	};
	uint64_t flags = options->selective ? FI_SELECTIVE_COMPLETION : 0;
	int err = fi_endpoint(end->domain, info, &end->ep, NULL);

	if (!err && end->av)
		err = fi_ep_bind(end->ep, &end->av->fid, 0);
	if (!err)
		err = fi_ep_bind(end->ep, &end->eq->fid, 0);
	if (!err)
		err = fi_ep_bind(end->ep, &end->tx->fid, FI_TRANSMIT | flags);
	if (!err)
		err = fi_ep_bind(end->ep, &end->rx->fid, FI_RECV | flags);
	for (int i = 0; i < 6 && !err; i++)
		err = fi_ep_bind(end->ep, &end->cntr[i]->fid, counted[i]);
	return err ? err : fi_enable(end->ep);
}

static void close_fid(struct fid *fid)
{
	if (fi_close(fid))
		fprintf(stderr, "# fi_close() of class %zu failed\n", fid->fclass);
}

void end_close(struct end *end)
{
	if (end->ep)
		close_fid(&end->ep->fid);
	if (end->av)
		close_fid(&end->av->fid);
	if (end->tx)
		close_fid(&end->tx->fid);
	if (end->rx)
		close_fid(&end->rx->fid);
	for (int i = 0; i < 6; i++)
		if (end->cntr[i])
			close_fid(&end->cntr[i]->fid);
	if (end->domain)
		close_fid(&end->domain->fid);
	if (end->eq)
		close_fid(&end->eq->fid);
	if (end->fabric)
		close_fid(&end->fabric->fid);
	fi_freeinfo(end->info);
	memset(end, 0, sizeof(*end));
}

static void progress(struct end *end)
{
	if (end && end->cntr[0])
		(void)fi_cntr_read(end->cntr[0]);
}

int next_event(struct end *end, struct end *other, void *entry, size_t size, ssize_t *length)
{
	int64_t until = now_ms() + patience_ms();
	uint32_t event = 0;
	ssize_t got;

	do {
		/* Somebody may have to answer, and nothing here says who. */
		got = fi_eq_sread(end->eq, &event, entry, size, 10, 0);
		progress(end);
		progress(other);
	} while (got == -FI_EAGAIN && now_ms() < until);
	if (length)
		*length = got;
	return got < 0 ? (int)got : (int)event;
}

int listen_at(struct end *end, struct fid_pep **pep, void *address, size_t *length)
{
	int err = fi_passive_ep(end->fabric, end->info, pep, NULL);

	if (!err)
		err = fi_pep_bind(*pep, &end->eq->fid, 0);
	if (!err)
		err = fi_listen(*pep);
	return err ? err : fi_getname(&(*pep)->fid, address, length);
}

static int accept_one(struct end *end, const struct options *options)
{
	struct fi_eq_cm_entry request;
	int event = next_event(end, NULL, &request, sizeof(request), NULL);
	int err;

	if (event != FI_CONNREQ)
		return event < 0 ? event : -FI_EOTHER;
	err = end_endpoint(end, request.info, options);
	fi_freeinfo(request.info);
	return err ? err : fi_accept(end->ep, NULL, 0);
}

fi_addr_t learn(struct end *end, const struct end *of)
{
	struct sockaddr_in address;
	size_t length = sizeof(address);
	fi_addr_t addr;

	if (fi_getname(&of->ep->fid, &address, &length) ||
	    fi_av_insert(end->av, &address, 1, &addr, 0, NULL) != 1)
		return FI_ADDR_NOTAVAIL;
	return addr;
}

void pair_progress(struct pair *pair)
{
	progress(&pair->a);
	progress(&pair->b);
}

static int open_rdm(struct pair *pair, struct fi_info *info, const struct options *options)
{
	int err = end_open(&pair->a, info, options);

	if (!err)
		err = end_open(&pair->b, info, options);
	if (!err)
		err = end_endpoint(&pair->a, info, options);
	if (!err)
		err = end_endpoint(&pair->b, info, options);
	if (err)
		return err;
	pair->a.peer = learn(&pair->a, &pair->b);
	pair->b.peer = learn(&pair->b, &pair->a);
	return pair->a.peer == FI_ADDR_NOTAVAIL || pair->b.peer == FI_ADDR_NOTAVAIL ? -FI_EINVAL :
										      0;
}

int pair_open(struct pair *pair, const struct options *options)
{
	struct fi_info *info = pair_info(options);
	struct fi_eq_cm_entry entry;
	struct sockaddr_in address;
	size_t length = sizeof(address);
	int err;

	memset(pair, 0, sizeof(*pair));
	if (!info)
		return -FI_ENODATA;
	if (options->rdm) {
		err = open_rdm(pair, info, options);
		fi_freeinfo(info);
		return err;
	}
	err = end_open(&pair->a, info, options);
	if (!err)
		err = end_open(&pair->b, info, options);
	if (!err)
		err = listen_at(&pair->b, &pair->pep, &address, &length);
	if (!err)
		err = end_endpoint(&pair->a, info, options);
	if (!err)
		err = fi_connect(pair->a.ep, &address, NULL, 0);
	if (!err)
		err = accept_one(&pair->b, options);
	if (!err && next_event(&pair->b, &pair->a, &entry, sizeof(entry), NULL) != FI_CONNECTED)
		err = -FI_ENOTCONN;
	if (!err && next_event(&pair->a, &pair->b, &entry, sizeof(entry), NULL) != FI_CONNECTED)
		err = -FI_ENOTCONN;
	fi_freeinfo(info);
	return err;
}

void pair_close(struct pair *pair)
{
	if (pair->pep)
		close_fid(&pair->pep->fid);
	end_close(&pair->a);
	end_close(&pair->b);
}

ssize_t next_entry(struct fid_cq *cq, struct end *other, struct fi_cq_tagged_entry *entry)
{
	int64_t until = now_ms() + patience_ms();
	ssize_t got;

	do {
		got = fi_cq_read(cq, entry, 1);
		if (got != -FI_EAGAIN)
			return got;
		progress(other);
		sched_yield();
	} while (now_ms() < until);
	return -FI_ETIMEDOUT;
}

ssize_t next_error(struct fid_cq *cq, struct end *other, struct fi_cq_err_entry *error)
{
	struct fi_cq_tagged_entry entry;
	ssize_t got = next_entry(cq, other, &entry);

	if (got != -FI_EAVAIL)
		return got == 1 ? -FI_EOTHER : got;
	memset(error, 0, sizeof(*error));
	return fi_cq_readerr(cq, error, 0);
}

bool none(struct fid_cq *cq, struct end *other)
{
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < 100; i++) {
		if (fi_cq_read(cq, &entry, 1) != -FI_EAGAIN)
			return false;
		progress(other);
	}
	return true;
}

bool counts(struct fid_cntr *cntr, struct end *other, uint64_t to)
{
	int64_t until = now_ms() + patience_ms();
	uint64_t count;

	while ((count = fi_cntr_read(cntr)) < to && now_ms() < until) {
		progress(other);
		sched_yield();
	}
	return count == to;
}

void fill(void *data, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		((unsigned char *)data)[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

bool filled(const void *data, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		if (((const unsigned char *)data)[i] != (unsigned char)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}
