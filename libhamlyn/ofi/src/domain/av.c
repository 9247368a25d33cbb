// SPDX-License-Identifier: MIT
#include "domain/av.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/address.h"
#include "base/hosts.h"
#include "event/eq.h"

#define FIRST_SIZE	64
#define MAX_SIZE	(1U << 24)
#define PORT_NUMBERS	65536

static struct hf_av *of(struct fid_av *fid)
{
	return hf_container(fid, struct hf_av, fid);
}

/* ---- entries; domain locked ---------------------------------------------- */

static int grow(struct hf_av *av)
{
	uint32_t size = av->size ? 2 * av->size : FIRST_SIZE;
	struct hf_av_entry *entries;

	if (size > MAX_SIZE)
		return -FI_ENOSPC;
	entries = realloc(av->entries, size * sizeof(*entries));
	if (!entries)
		return -FI_ENOMEM;
	memset(entries + av->size, 0, (size - av->size) * sizeof(*entries));
	av->entries = entries;
	av->size = size;
	return 0;
}

/*
 * The lowest number that is free. An address vector only says what processes are called: that a
 * host cannot be reached is told when something is sent there.
 */
static int insert_one(struct hf_av *av, const struct sockaddr_in *address, fi_addr_t *addr)
{
	uint32_t at = 0, place;
	int err = 0;

	if (!hf_address_valid(address, sizeof(*address)) || !address->sin_port)
		return -FI_EINVAL;
	if (address->sin_addr.s_addr == htonl(INADDR_ANY))
		return -FI_EADDRNOTAVAIL;
	place = hf_address_is_known(address) ? hf_host_place(address) : hf_host_nowhere();
	while (at < av->end && av->entries[at].place)
		at++;
	if (at == av->size)
		err = grow(av);
	if (err)
		return err;
	av->entries[at] = (struct hf_av_entry){ .address = *address, .place = place };
	if (at == av->end)
		av->end++;
	if (!av->of_place[place] && place != hf_host_nowhere())
		av->of_place[place] = at + 1;
	*addr = at;
	return 0;
}

/* Another entry may name the same process. */
static void remove_one(struct hf_av *av, fi_addr_t addr)
{
	uint32_t place = hf_av_place(av, addr);

	memset(&av->entries[addr], 0, sizeof(av->entries[addr]));
	while (av->end && !av->entries[av->end - 1].place)
		av->end--;
	if (av->of_place[place] != addr + 1)
		return;
	av->of_place[place] = 0;
	for (uint32_t i = 0; i < av->end && !av->of_place[place]; i++)
		if (av->entries[i].place == place)
			av->of_place[place] = i + 1;
}

/* ---- calls ---------------------------------------------------------------- */

/* Of one insertion: what failed is told as the application wants to be told. */
struct insertion {
	struct hf_av *av;
	fi_addr_t *addrs;
	uint64_t flags;
	void *context;
	uint32_t index;
	uint32_t good;
};

static int begin(struct insertion *ins, struct fid_av *fid, fi_addr_t *addrs, uint64_t flags,
		 void *context)
{
	*ins = (struct insertion){
		.av = of(fid), .addrs = addrs, .flags = flags, .context = context
	};
	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	if (ins->av->events && !ins->av->eq)
		return -FI_ENOEQ;
	if (flags & FI_SYNC_ERR && (ins->av->events || !context))
		return -FI_EINVAL;
	return 0;
}

static void insert(struct insertion *ins, const struct sockaddr_in *address, int err)
{
	struct hf_av *av = ins->av;
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	if (!err) {
		hf_domain_lock(av->domain);
		err = insert_one(av, address, &addr);
		hf_domain_unlock(av->domain);
	}
	ins->good += !err;
	if (ins->addrs)
		ins->addrs[ins->index] = addr;
	if (ins->flags & FI_SYNC_ERR)
		((int *)ins->context)[ins->index] = -err;
	if (err && av->events)
		hf_eq_add_failure(av->eq, &av->fid.fid, ins->context, ins->index, -err);
	ins->index++;
}

static int end(struct insertion *ins)
{
	const struct fi_eq_entry entry = {
		.fid = &ins->av->fid.fid, .context = ins->context, .data = ins->good
	};

	if (!ins->av->events)
		return (int)ins->good;
	fi_eq_write(&ins->av->eq->fid, FI_AV_COMPLETE, &entry, sizeof(entry), 0);
	return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *addrs,
		     uint64_t flags, void *context)
{
	const char *from = addr;
	struct insertion ins;
	int err = begin(&ins, fid, addrs, flags, context);

	if (err)
		return err;
	if (count && !addr)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		struct sockaddr_in address;

		memcpy(&address, from + i * sizeof(address), sizeof(address));
		insert(&ins, &address, 0);
	}
	return end(&ins);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *addrs, uint64_t flags, void *context)
{
	struct sockaddr_in address = { 0 };
	struct insertion ins;
	int err = begin(&ins, fid, addrs, flags, context);

	if (err)
		return err;
	if (!node || !service)
		return -FI_EINVAL;
	err = hf_address_resolve(node, service, 0, &address);
	insert(&ins, &address, err);
	return end(&ins);
}

/* "host9" and 2 more: "host10", "host11"; an address in numbers counts itself on. */
static int nth_node(const char *node, size_t n, struct sockaddr_in *address)
{
	size_t stem = strlen(node);
	char name[256];

	if (!n || inet_pton(AF_INET, node, &address->sin_addr) == 1) {
		int err = hf_address_resolve(node, NULL, 0, address);

		address->sin_addr.s_addr = htonl(ntohl(address->sin_addr.s_addr) + (uint32_t)n);
		return err;
	}
	while (stem && node[stem - 1] >= '0' && node[stem - 1] <= '9')
		stem--;
	if (!node[stem] || stem > sizeof(name) - 32)
		return -FI_EINVAL;
	snprintf(name, sizeof(name), "%.*s%lu", (int)stem, node,
		 strtoul(node + stem, NULL, 10) + n);
	return hf_address_resolve(name, NULL, 0, address);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service,
			size_t services, fi_addr_t *addrs, uint64_t flags, void *context)
{
	struct insertion ins;
	unsigned long first;
	char *rest;
	int err = begin(&ins, fid, addrs, flags, context);

	if (err)
		return err;
	if (!node || !service)
		return -FI_EINVAL;
	first = strtoul(service, &rest, 10);
	if (*rest || services >= PORT_NUMBERS || first + services > PORT_NUMBERS)
		return -FI_EINVAL;
	for (size_t i = 0; i < nodes; i++) {
		struct sockaddr_in address = { 0 };

		err = nth_node(node, i, &address);
		for (size_t j = 0; j < services; j++) {
			address.sin_port = htons((uint16_t)(first + j));
			insert(&ins, &address, err);
		}
	}
	return end(&ins);
}

static int av_remove(struct fid_av *fid, fi_addr_t *addrs, size_t count, uint64_t flags)
{
	struct hf_av *av = of(fid);
	int err = 0;

	if (flags)
		return -FI_EBADFLAGS;
	hf_domain_lock(av->domain);
	for (size_t i = 0; i < count; i++) {
		if (hf_av_place(av, addrs[i]))
			remove_one(av, addrs[i]);
		else
			err = -FI_EINVAL;
	}
	hf_domain_unlock(av->domain);
	return err;
}

static int av_lookup(struct fid_av *fid, fi_addr_t addr, void *to, size_t *length)
{
	struct hf_av *av = of(fid);
	size_t room = *length;
	int err = -FI_EINVAL;

	hf_domain_lock(av->domain);
	if (hf_av_place(av, addr)) {
		/* What does not fit is cut off, and is no error: unlike in fi_getname(). */
		hf_address_copy(&av->entries[addr].address, to, &room);
		*length = room;
		err = 0;
	}
	hf_domain_unlock(av->domain);
	return err;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	const struct sockaddr_in *address = addr;
	char text[INET_ADDRSTRLEN], whole[64];
	size_t room = *len;

	(void)fid;
	if (!inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text)))
		return NULL;
	*len = 1 + (size_t)snprintf(whole, sizeof(whole), "fi_sockaddr_in://%s:%u", text,
				    (unsigned int)ntohs(address->sin_port));
	snprintf(buf, room, "%s", whole);
	return buf;
}

static int av_set(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set,
		  void *context)
{
	(void)fid;
	(void)attr;
	(void)set;
	(void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_set,
};

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct hf_av *av = hf_container(fid, struct hf_av, fid.fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (other->fclass != FI_CLASS_EQ || av->eq)
		return -FI_EINVAL;
	av->eq = hf_container(other, struct hf_eq, fid.fid);
	__atomic_add_fetch(&av->eq->users, 1, __ATOMIC_RELAXED);
	return 0;
}

static void av_free(struct hf_av *av)
{
	free(av->entries);
	free(av->of_place);
	free(av);
}

static int av_close(struct fid *fid)
{
	struct hf_av *av = hf_container(fid, struct hf_av, fid.fid);

	if (__atomic_load_n(&av->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	if (av->eq)
		__atomic_sub_fetch(&av->eq->users, 1, __ATOMIC_RELEASE);
	hf_domain_put(av->domain);
	av_free(av);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(av_close),
	.bind = av_bind,
	.control = hf_no_control,
};

static int check_attr(const struct fi_av_attr *attr)
{
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
		return -FI_EINVAL;
	/* No vectors are shared, and end points have one receive context. */
	if (attr->name || attr->rx_ctx_bits)
		return -FI_ENOSYS;
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return -FI_EBADFLAGS;
	return 0;
}

int hf_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
	       void *context)
{
	struct hf_av *av;
	int err = check_attr(attr);

	if (err)
		return err;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->of_place = calloc(hf_host_places(), sizeof(*av->of_place));
	if (!av->of_place) {
		av_free(av);
		return -FI_ENOMEM;
	}
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->events = attr->flags & FI_EVENT;
	av->domain = hf_container(domain, struct hf_domain, fid);
	hf_domain_get(av->domain);
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &fid_ops;
	av->fid.ops = &av_ops;
	*out = &av->fid;
	return 0;
}
