// SPDX-License-Identifier: MIT
/* The kernel device: set-up calls of /dev/hamlynN and its mappings. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "low/device.h"
#include "low/msan.h"

#define OLD_TAGS	8	/* of a terminus, before QUERY told */

/* If it fails, the kernel tells the calling thread why. */
static int call(const struct h_dev *dev, unsigned long request, void *arg)
{
	struct hamlyn_explain explain = {
		.size = sizeof(explain),
		.argument = (uintptr_t)arg,
		.text = (uintptr_t)h__why_text(dev),
		.text_size = HAMLYN_EXPLAIN_BYTES,
	};

	if (ioctl(dev->fd, HAMLYN_IOC_EXPLAINED(request), &explain) < 0) {
		int err = -errno;

		h__why_log(dev);
		return err;
	}
	/* All arguments begin with their size. */
	h__filled(arg, *(const uint32_t *)arg);
	return 0;
}

static int call_id(const struct h_dev *dev, unsigned long request, uint32_t id)
{
	struct hamlyn_id arg = { .size = sizeof(arg), .id = id };

	return call(dev, request, &arg);
}

/* Beginning where huge pages can be mapped as such. */
static int map_huge(const struct h_dev *dev, uint64_t offset, uint64_t length,
		    void **p)
{
	*p = h__map_aligned(length, dev->fd, offset, MAP_POPULATE);
	return *p == MAP_FAILED ? -errno : 0;
}

static int map(const struct h_dev *dev, uint64_t offset, uint64_t length,
	       int prot, void **p)
{
	*p = mmap(NULL, length, prot, MAP_SHARED | MAP_POPULATE, dev->fd,
		  (off_t)offset);
	return *p == MAP_FAILED ? -errno : 0;
}

static void kernel_close(struct h_dev *dev)
{
	close(dev->fd);
}

/* A module of before 0.2 has not told that: all its NICs are one fabric while it is this boot. */
static void fill_older(struct hamlyn_query *q)
{
	char text[37] = "";
	unsigned int i, byte;
	const char *at = text;
	FILE *f;

	if (q->max_tags)
		return;
	q->max_tags = OLD_TAGS;
	q->max_tickets = HAMLYN_MAX_TICKETS;
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!f)
		return;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	for (i = 0; i < sizeof(q->fabric_id) && sscanf(at, "%2x", &byte) == 1; i++) {
		q->fabric_id[i] = byte;
		at += at[2] == '-' ? 3 : 2;
	}
}

static int kernel_query(struct h_dev *dev, struct hamlyn_query *q)
{
	*q = (struct hamlyn_query) { .size = sizeof(*q) };
	/* By itself: it tells the version, without which nothing else is known to be there. */
	if (ioctl(dev->fd, HAMLYN_IOC_QUERY, q) < 0)
		return -errno;
	h__filled(q, sizeof(*q));
	fill_older(q);
	return 0;
}

static int kernel_stats(struct h_dev *dev, struct hamlyn_stats *s)
{
	return call(dev, HAMLYN_IOC_STATS, s);
}

static int kernel_area_alloc(struct h_area *a)
{
	struct hamlyn_area_alloc arg = {
		.size = sizeof(arg),
		.flags = a->flags,
		.length = a->length,
	};
	int err = call(a->dev, HAMLYN_IOC_AREA_ALLOC, &arg);

	if (err)
		return err;
	err = a->flags & HAMLYN_AREA_HUGE ?
	      map_huge(a->dev, arg.mmap_offset, arg.length, &a->addr) :
	      map(a->dev, arg.mmap_offset, arg.length, PROT_READ | PROT_WRITE,
		  &a->addr);
	if (err) {
		call_id(a->dev, HAMLYN_IOC_AREA_REMOVE, arg.area);
		return err;
	}
	a->length = arg.length;
	a->page_size = arg.page_size;
	a->id = arg.area;
	return 0;
}

static int kernel_area_add(struct h_area *a)
{
	struct hamlyn_area_add arg = {
		.size = sizeof(arg),
		.flags = a->flags,
		.addr = (uintptr_t)a->addr,
		.length = a->length,
	};
	int err = call(a->dev, HAMLYN_IOC_AREA_ADD, &arg);

	a->id = arg.area;
	a->page_size = arg.page_size;
	return err;
}

static int kernel_area_remove(struct h_area *a)
{
	return call_id(a->dev, HAMLYN_IOC_AREA_REMOVE, a->id);
}

static void kernel_area_forget(struct h_area *a, bool child)
{
	if (a->allocated && !child)
		munmap(a->addr, a->length);
}

/* What the two mappings of an NQ need besides the pointers in struct h_nq. */
struct nq_maps {
	size_t ring_length;
	size_t control_length;
};

static int kernel_nq_create(struct h_nq *nq, uint32_t entries)
{
	struct hamlyn_nq_create arg = {
		.size = sizeof(arg),
		.entries = entries,
	};
	struct nq_maps *maps = malloc(sizeof(*maps));
	void *ring, *control;
	int err;

	if (!maps)
		return -ENOMEM;
	err = call(nq->dev, HAMLYN_IOC_NQ_CREATE, &arg);
	if (err)
		goto err_free;
	err = map(nq->dev, arg.ring_offset, arg.ring_length, PROT_READ, &ring);
	if (err)
		goto err_destroy;
	err = map(nq->dev, arg.control_offset, arg.control_length,
		  PROT_READ | PROT_WRITE, &control);
	if (err)
		goto err_unmap;
	maps->ring_length = arg.ring_length;
	maps->control_length = arg.control_length;
	nq->priv = maps;
	nq->id = arg.nq;
	nq->ring = ring;
	nq->control = control;
	nq->entries = (const void *)((char *)ring + arg.entries_offset);
	return 0;

err_unmap:
	munmap(ring, arg.ring_length);
err_destroy:
	call_id(nq->dev, HAMLYN_IOC_NQ_DESTROY, arg.nq);
err_free:
	free(maps);
	return err;
}

static int kernel_nq_destroy(struct h_nq *nq)
{
	return call_id(nq->dev, HAMLYN_IOC_NQ_DESTROY, nq->id);
}

static void kernel_nq_forget(struct h_nq *nq, bool child)
{
	struct nq_maps *maps = nq->priv;

	if (!child) {
		munmap((void *)nq->ring, maps->ring_length);
		munmap(nq->control, maps->control_length);
	}
	free(maps);
}

static int kernel_slot_create(struct h_slot *s, const struct h_slot_attr *at)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg),
		.flags = at->flags,
		.mode = at->mode,
		.area = s->area->id,
		.base = at->base,
		.length = s->length,
		.meta_area = s->meta_area ? s->meta_area->id : HAMLYN_NONE,
		.meta_count = at->meta_count,
		.meta_base = at->meta_base,
		.nq = s->nq ? s->nq->id : HAMLYN_NONE,
		.key = at->key,
	};
	int err = call(s->dev, HAMLYN_IOC_SLOT_CREATE, &arg);

	s->number = arg.slot;
	s->key = arg.key;
	return err;
}

static int kernel_slot_destroy(struct h_slot *s)
{
	return call_id(s->dev, HAMLYN_IOC_SLOT_DESTROY, s->number);
}

static int kernel_slot_rekey(struct h_slot *s)
{
	struct hamlyn_slot_rekey arg = {
		.size = sizeof(arg),
		.slot = s->number,
	};
	int err = call(s->dev, HAMLYN_IOC_SLOT_REKEY, &arg);

	if (!err)
		s->key = arg.key;
	return err;
}

static size_t whole_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) & ~(page - 1);
}

static size_t status_length(const struct h_terminus *t)
{
	return whole_pages(sizeof(*t->status) +
			   ((size_t)t->mask + 1) * sizeof(int32_t));
}

static size_t wq_length(const struct h_terminus *t)
{
	return whole_pages((size_t)(t->entries - (unsigned char *)t->wq) +
			   (((size_t)t->mask + 1) << t->entry_shift));
}

static int kernel_slot_ticket_fd(struct h_slot *s, uint64_t base,
				 uint64_t length, int *fd)
{
	struct hamlyn_ticket_create arg = {
		.size = sizeof(arg),
		.slot = s->number,
		.base = base,
		.length = length,
	};
	int err = call(s->dev, HAMLYN_IOC_TICKET_CREATE, &arg);

	if (!err)
		*fd = arg.fd;
	return err;
}

static int kernel_terminus_create(struct h_terminus *t,
				  const struct h_terminus_attr *at)
{
	struct hamlyn_terminus_create arg = {
		.size = sizeof(arg),
		.entries = at->entries,
		.entry_size = at->entry_size,
		.priority = at->priority,
		.weight = at->weight,
	};
	void *wq, *status;
	int err = call(t->dev, HAMLYN_IOC_TERMINUS_CREATE, &arg);

	if (err)
		return err;
	err = map(t->dev, arg.wq_offset, arg.wq_length, PROT_READ | PROT_WRITE,
		  &wq);
	if (err)
		goto err_destroy;
	err = map(t->dev, arg.status_offset, arg.status_length, PROT_READ,
		  &status);
	if (err)
		goto err_unmap;
	t->id = arg.terminus;
	t->wq = wq;
	t->entries = (unsigned char *)wq + arg.entries_offset;
	t->status = status;
	return 0;

err_unmap:
	munmap(wq, arg.wq_length);
err_destroy:
	call_id(t->dev, HAMLYN_IOC_TERMINUS_DESTROY, arg.terminus);
	return err;
}

static int kernel_terminus_destroy(struct h_terminus *t)
{
	return call_id(t->dev, HAMLYN_IOC_TERMINUS_DESTROY, t->id);
}

static void kernel_terminus_forget(struct h_terminus *t, bool child)
{
	if (child)
		return;
	munmap(t->status, status_length(t));
	munmap(t->wq, wq_length(t));
}

static int kernel_terminus_bind(struct h_terminus *t, uint32_t tag,
				struct h_area *a, uint64_t base,
				uint64_t length)
{
	struct hamlyn_terminus_bind arg = {
		.size = sizeof(arg),
		.terminus = t->id,
		.tag = tag,
		.area = a ? a->id : HAMLYN_NONE,
		.base = a ? base : 0,
		.length = a ? length : 0,
	};

	return call(t->dev, HAMLYN_IOC_TERMINUS_BIND, &arg);
}

static int kernel_terminus_import(struct h_terminus *t, int fd, uint32_t *index,
				  struct h_ticket *k)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg),
		.terminus = t->id,
		.fd = fd,
	};
	int err = call(t->dev, HAMLYN_IOC_TICKET_IMPORT, &arg);

	if (err)
		return err;
	*index = arg.index;
	k->host = arg.host;
	k->slot = arg.slot;
	k->base = arg.base;
	k->length = arg.length;
	return 0;
}

static int kernel_terminus_drop(struct h_terminus *t, uint32_t index)
{
	struct hamlyn_ticket_drop arg = {
		.size = sizeof(arg),
		.terminus = t->id,
		.index = index,
	};

	return call(t->dev, HAMLYN_IOC_TICKET_DROP, &arg);
}

static int kernel_watch(struct h_watch *w, const struct h_ticket *k, int fd,
			uint64_t cookie)
{
	struct hamlyn_watch arg = {
		.size = sizeof(arg),
		.nq = w->nq->id,
		.cookie = cookie,
	};
	int err;

	if (k) {
		arg.host = k->host;
		arg.slot = k->slot;
		arg.key = k->key;
		/* A ticket for fast messages is of no metadata entry. */
		if (k->meta_index != HAMLYN_META_FAST)
			arg.meta_index = k->meta_index;
	} else {
		arg.flags = HAMLYN_WATCH_TICKET;
		arg.key = (uint32_t)fd;
	}
	if (w->claim)
		arg.flags |= HAMLYN_WATCH_CLAIM;
	err = call(w->dev, HAMLYN_IOC_WATCH, &arg);

	w->id = arg.watch;
	return err;
}

static int kernel_unwatch(struct h_watch *w)
{
	return call_id(w->dev, HAMLYN_IOC_UNWATCH, w->id);
}

static int kernel_audit(struct h_dev *dev, struct hamlyn_audit_entry *entries,
			uint32_t count, uint64_t *sequence)
{
	struct hamlyn_audit arg = {
		.size = sizeof(arg),
		.count = count,
		.sequence = *sequence,
		.entries = (uintptr_t)entries,
	};
	int err = call(dev, HAMLYN_IOC_AUDIT, &arg);

	if (err)
		return err;
	*sequence = arg.sequence;
	return (int)arg.count;
}

static int kernel_nic_set(struct h_dev *dev, const struct hamlyn_nic_set *set)
{
	struct hamlyn_nic_set arg = *set;

	arg.size = sizeof(arg);
	return call(dev, HAMLYN_IOC_NIC_SET, &arg);
}

/* Of a module of before names. */
static int no_names(struct h_dev *dev, int err)
{
	if (err != -ENOTTY)
		return err;
	return h__refuse(dev, -EOPNOTSUPP, "the module is older than names of hosts");
}

static int kernel_listen(struct h_dev *dev, const char *name, uint32_t name_length)
{
	struct hamlyn_listen arg = {
		.size = sizeof(arg),
		.name_length = name_length,
	};
	int err;

	memcpy(arg.name, name, name_length);
	err = call(dev, HAMLYN_IOC_LISTEN, &arg);
	return err ? no_names(dev, err) : arg.fd;
}

static int kernel_call(struct h_dev *dev, const struct h_name *name, const void *said,
		       uint32_t length)
{
	struct hamlyn_call arg = {
		.size = sizeof(arg),
		.host = name->host,
		.name_length = name->length,
		.said = (uintptr_t)said,
		.length = length,
	};
	int err;

	memcpy(arg.name, name->name, name->length);
	err = call(dev, HAMLYN_IOC_CALL, &arg);
	return err ? no_names(dev, err) : arg.fd;
}

static int kernel_nq_sleep(struct h_nq *nq, int64_t deadline_ns)
{
	struct hamlyn_wait arg = {
		.size = sizeof(arg),
		.nq = nq->id,
		.position = h__read_once(&nq->control->consumer),
		.deadline_ns = deadline_ns,
	};

	return ioctl(nq->dev->fd, HAMLYN_IOC_WAIT, &arg) < 0 ? -errno : 0;
}

static const struct h_dev_ops kernel_ops = {
	.close = kernel_close,
	.query = kernel_query,
	.stats = kernel_stats,
	.area_alloc = kernel_area_alloc,
	.area_add = kernel_area_add,
	.area_remove = kernel_area_remove,
	.area_forget = kernel_area_forget,
	.nq_create = kernel_nq_create,
	.nq_destroy = kernel_nq_destroy,
	.nq_forget = kernel_nq_forget,
	.slot_create = kernel_slot_create,
	.slot_destroy = kernel_slot_destroy,
	.slot_rekey = kernel_slot_rekey,
	.slot_ticket_fd = kernel_slot_ticket_fd,
	.terminus_create = kernel_terminus_create,
	.terminus_destroy = kernel_terminus_destroy,
	.terminus_forget = kernel_terminus_forget,
	.terminus_bind = kernel_terminus_bind,
	.terminus_import = kernel_terminus_import,
	.terminus_drop = kernel_terminus_drop,
	.watch = kernel_watch,
	.unwatch = kernel_unwatch,
	.audit = kernel_audit,
	.nic_set = kernel_nic_set,
	.listen = kernel_listen,
	.call = kernel_call,
	.nq_sleep = kernel_nq_sleep,
};

/* The words of errnos that mean something here */
static int cannot_open(const char *path, int err)
{
	switch (err) {
	case -EACCES:
		return h__early(err, "%s: its access rights do not let user %u in", path,
				(unsigned int)geteuid());
	case -EPERM:
		return h__early(err, "%s belongs to another namespace, or is kept from this one",
				path);
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return h__early(err, "%s is not there: is the module hamlyn loaded?", path);
	case -EMFILE:
		return h__early(err, "%s: this process has all descriptors of its RLIMIT_NOFILE",
				path);
	}
	return err;
}

int h__kernel_open(struct h_dev *dev, const char *path)
{
	struct hamlyn_query q;
	int err;

	dev->ops = &kernel_ops;
	dev->fd = h__fd(open(path, O_RDWR | O_CLOEXEC));
	if (dev->fd < 0)
		return cannot_open(path, dev->fd);
	err = kernel_query(dev, &q);
	if (err == -ENOTTY)
		err = h__early(-ENODEV, "%s is not a device of hamlyn", path);
	else if (!err && q.abi_version != HAMLYN_ABI_VERSION)
		err = h__early(-EPROTO, "%s: the module has ABI version %u, this library %u", path,
			       q.abi_version, HAMLYN_ABI_VERSION);
	if (err) {
		close(dev->fd);
		dev->fd = -1;
	}
	return err;
}
