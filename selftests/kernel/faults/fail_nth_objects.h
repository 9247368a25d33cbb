/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that are made to fail: open, and the ioctls. */
#ifndef FAIL_NTH_OBJECTS_H
#define FAIL_NTH_OBJECTS_H

#include "fail_nth_call.h"

#include <sys/ioctl.h>

static int act_open(void)
{
	return made_fd(ht_raw_open());
}

/* Of whom there is no record yet. Becoming root again may fail too, but once only. */
static int act_open_as_other(void)
{
	int ret;

	if (seteuid(OTHER_USER))
		return -errno;
	ret = act_open();
	return seteuid(0) && seteuid(0) ? -errno : ret;
}

/* One object of each kind; without mappings it ends with the descriptor. */
static int before_close(void)
{
	struct party p;
	int ret = party_open(&p);

	if (p.data)
		munmap(p.data, PAGE);
	if (p.nq.ring)
		ht_raw_nq_unmap(&p.nq);
	if (p.terminus.wq)
		ht_raw_terminus_unmap(&p.terminus);
	env.fd = p.fd;
	return ret;
}

static int act_close(void)
{
	int ret = close(env.fd) ? -errno : 0;

	env.fd = -1;
	return ret;
}

/* ---- no object is made ---- */

static int act_query(void)
{
	return ht_raw_query(env.p.fd, &env.p.query);
}

static int act_explain(void)
{
	static char text[HAMLYN_EXPLAIN_BYTES];
	struct hamlyn_query query = { .size = sizeof(query) };
	struct hamlyn_explain arg = {
		.size = sizeof(arg), .argument = (uintptr_t)&query,
		.text = (uintptr_t)text, .text_size = sizeof(text),
	};

	return do_ioctl(HAMLYN_IOC_EXPLAINED(HAMLYN_IOC_QUERY), &arg);
}

static int act_stats(void)
{
	struct hamlyn_stats arg = {
		.size = sizeof(arg),
		.kind = env.call->kind,
		.id = env.call->id ? *env.call->id : 0,
	};

	return do_ioctl(HAMLYN_IOC_STATS, &arg);
}

static int act_audit(void)
{
	static struct hamlyn_audit_entry entries[64];
	struct hamlyn_audit arg = {
		.size = sizeof(arg),
		.count = ARRAY_SIZE(entries),
		.entries = (uintptr_t)entries,
	};

	return do_ioctl(HAMLYN_IOC_AUDIT, &arg);
}

static int act_nic_set(void)
{
	struct hamlyn_nic_set arg = {
		.size = sizeof(arg),
		.flags = HAMLYN_NIC_SET_STATE,
		.state = HAMLYN_NIC_DOWN,
	};
	int ret = do_ioctl(HAMLYN_IOC_NIC_SET, &arg);

	if (ret)
		return ret;
	arg.state = HAMLYN_NIC_UP;
	return do_ioctl(HAMLYN_IOC_NIC_SET, &arg);
}

static void after_nic_set(void)
{
	set_nic(0, HAMLYN_A_STATE, 0);
}

static int act_wait(void)
{
	struct hamlyn_wait arg = {
		.size = sizeof(arg),
		.nq = env.p.nq.arg.nq,
		.position = env.p.nq.control->consumer,
		.deadline_ns = ht_now_ns() + HT_MS,
	};

	return do_ioctl(HAMLYN_IOC_WAIT, &arg);
}

static int act_rekey(void)
{
	return rekey(&env.p, 0);
}

/* Whether it knows the new key or not. */
static void after_rekey(void)
{
	rekey(&env.p, 0);
}

/* ---- objects ---- */

/* A table has its first object without any room, and takes some for the second. */
static int before_second(void)
{
	int ret = made_fd(ht_raw_open());

	return ret < 0 ? ret : env.call->act();
}

static int act_area_add(void)
{
	struct hamlyn_area_add arg = {
		.size = sizeof(arg),
		.flags = env.call->flags,
		.addr = (uintptr_t)env.own,
		.length = env.call->length,
	};
	int ret = do_ioctl(HAMLYN_IOC_AREA_ADD, &arg);

	return made(ret, arg.area, HAMLYN_IOC_AREA_REMOVE);
}

static int act_area_alloc(void)
{
	struct hamlyn_area_alloc arg = {
		.size = sizeof(arg),
		.flags = env.call->flags,
		.length = env.call->length,
	};
	int ret = do_ioctl(HAMLYN_IOC_AREA_ALLOC, &arg);

	env.area_offset = arg.mmap_offset;
	env.area_length = env.call->length;
	return made(ret, arg.area, HAMLYN_IOC_AREA_REMOVE);
}

static int act_nq_create(void)
{
	struct hamlyn_nq_create arg = { .size = sizeof(arg), .entries = 256 };
	int ret = do_ioctl(HAMLYN_IOC_NQ_CREATE, &arg);

	return made(ret, arg.nq, HAMLYN_IOC_NQ_DESTROY);
}

static int act_slot_create(void)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg),
		.mode = HAMLYN_SLOT_PARANOID,
		.area = env.p.area.area,
		.length = PAGE,
		.meta_area = env.spare.area,
		.meta_count = 4,
		.nq = env.p.nq.arg.nq,
	};
	int ret = do_ioctl(HAMLYN_IOC_SLOT_CREATE, &arg);

	return made(ret, arg.slot, HAMLYN_IOC_SLOT_DESTROY);
}

static int act_terminus_create(void)
{
	struct hamlyn_terminus_create arg = {
		.size = sizeof(arg),
		.entries = 64,
		.entry_size = 512,
	};
	int ret = do_ioctl(HAMLYN_IOC_TERMINUS_CREATE, &arg);

	return made(ret, arg.terminus, HAMLYN_IOC_TERMINUS_DESTROY);
}

static int act_bind(void)
{
	return ht_raw_bind(env.p.fd, env.p.terminus.arg.terminus, 0,
			   env.spare.area, 0, PAGE);
}

static void after_bind(void)
{
	ht_raw_bind(env.p.fd, env.p.terminus.arg.terminus, 0, HAMLYN_NONE, 0,
		    0);
}

/* A terminus with tag 0, whose table then has to be longer. */
static int before_bind_more(void)
{
	int ret = act_terminus_create();

	return ret < 0 ? ret : ht_raw_bind(env.p.fd, env.id, 0, env.spare.area, 0, PAGE);
}

static int act_bind_more(void)
{
	return ht_raw_bind(env.p.fd, env.id, HAMLYN_MAX_TAGS - 1, env.spare.area, 0, PAGE);
}

/* ---- messages, and what is told about them ---- */

static void read_all(void)
{
	while (came(&env.p))
		;
}

/* With a message to send; a fault does not concern the message. */
static int before_message(void)
{
	struct hamlyn_trb *entry = ht_raw_entry(&env.p.terminus);
	struct hamlyn_trb trb = to_party(&env.p);

	memcpy(entry, &trb, sizeof(trb));
	h__store_release(&entry->sequence, ++env.p.terminus.producer);
	env.p.terminus.published = env.p.terminus.producer;
	return 0;
}

static int act_kick(void)
{
	int ret = ioctl(env.p.fd, HAMLYN_IOC_KICK,
			(unsigned long)env.p.terminus.arg.terminus);

	return ret < 0 ? -errno : 0;
}

static int act_fsync(void)
{
	return fsync(env.p.fd) ? -errno : 0;
}

static void after_message(void)
{
	int status;

	ht_raw_done(&env.p.terminus, env.p.terminus.producer - 1, &status);
	read_all();
}

static int watch(uint64_t key)
{
	struct hamlyn_watch arg = {
		.size = sizeof(arg),
		.host = env.p.query.host,
		.slot = env.p.slot.slot,
		.key = key,
		.nq = env.p.nq.arg.nq,
	};
	int ret = do_ioctl(HAMLYN_IOC_WATCH, &arg);

	return made(ret, arg.watch, HAMLYN_IOC_UNWATCH);
}

static int act_watch(void)
{
	return watch(env.p.slot.key);
}

static int act_watch_gone(void)
{
	return watch(~env.p.slot.key);
}

/* ---- tickets ---- */

static int act_ticket_create(void)
{
	struct hamlyn_ticket_create arg = {
		.size = sizeof(arg),
		.slot = env.p.slot.slot,
	};
	int ret = do_ioctl(HAMLYN_IOC_TICKET_CREATE, &arg);

	return made_fd(ret ? ret : arg.fd);
}

static int act_ticket_import(void)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg),
		.terminus = env.id,
		.fd = env.fd,
	};

	return do_ioctl(HAMLYN_IOC_TICKET_IMPORT, &arg);
}

/* A terminus without a key table yet. */
static int before_ticket_import(void)
{
	int ret = act_ticket_create();

	return ret < 0 ? ret : act_terminus_create();
}

/* And one whose table is full. */
static int before_ticket_import_more(void)
{
	int ret = before_ticket_import(), i;

	for (i = 0; i < 16 && !ret; i++)
		ret = act_ticket_import();
	return ret;
}

static int act_ticket_drop(void)
{
	struct hamlyn_ticket_drop arg = {
		.size = sizeof(arg),
		.terminus = env.id,
	};

	return do_ioctl(HAMLYN_IOC_TICKET_DROP, &arg);
}

/* ---- all of them ---- */

static const struct call object_calls[] = {
	{ .name = "open", .act = act_open },
	{ .name = "open by another user", .act = act_open_as_other,
	  .error = EAGAIN, .faults_once = true },
	{ .name = "close", .before = before_close, .act = act_close },
	{ .name = "QUERY", .act = act_query },
	{ .name = "AREA_ADD", .act = act_area_add, .length = PAGE },
	{ .name = "AREA_ADD of 700 pages", .act = act_area_add, .length = BIG },
	{ .name = "AREA_ADD READONLY", .act = act_area_add,
	  .length = 20 * PAGE, .flags = HAMLYN_AREA_READONLY },
	{ .name = "AREA_ALLOC", .act = act_area_alloc, .length = 3 * PAGE },
	{ .name = "AREA_ALLOC HUGE", .act = act_area_alloc, .length = 2 << 20,
	  .flags = HAMLYN_AREA_HUGE },
	{ .name = "AREA_ADD, the second", .before = before_second,
	  .act = act_area_add, .length = PAGE, .afresh = true },
	{ .name = "AREA_REMOVE of an added one", .before = act_area_add,
	  .act = act_destroy, .length = PAGE },
	{ .name = "AREA_REMOVE of an allocated one", .before = act_area_alloc,
	  .act = act_destroy, .length = 3 * PAGE },
	{ .name = "NQ_CREATE", .act = act_nq_create },
	{ .name = "NQ_CREATE, the second", .before = before_second,
	  .act = act_nq_create, .afresh = true },
	{ .name = "NQ_DESTROY", .before = act_nq_create, .act = act_destroy },
	{ .name = "SLOT_CREATE", .act = act_slot_create },
	{ .name = "SLOT_DESTROY", .before = act_slot_create,
	  .act = act_destroy },
	{ .name = "SLOT_REKEY", .act = act_rekey, .after = after_rekey },
	{ .name = "TERMINUS_CREATE", .act = act_terminus_create },
	{ .name = "TERMINUS_CREATE, the second", .before = before_second,
	  .act = act_terminus_create, .afresh = true },
	{ .name = "TERMINUS_DESTROY", .before = act_terminus_create,
	  .act = act_destroy },
	{ .name = "TERMINUS_BIND", .act = act_bind, .after = after_bind },
	{ .name = "TERMINUS_BIND, the first", .before = act_terminus_create,
	  .act = act_bind_more },
	{ .name = "TERMINUS_BIND, the last", .before = before_bind_more,
	  .act = act_bind_more },
	{ .name = "KICK", .before = before_message, .act = act_kick,
	  .after = after_message },
	{ .name = "fsync", .before = before_message, .act = act_fsync,
	  .after = after_message },
	{ .name = "WAIT", .act = act_wait, .good = -ETIMEDOUT },
	{ .name = "STATS of the NIC", .act = act_stats,
	  .kind = HAMLYN_STATS_NIC },
	{ .name = "STATS of a slot", .act = act_stats,
	  .kind = HAMLYN_STATS_SLOT, .id = &env.p.slot.slot },
	{ .name = "STATS of a terminus", .act = act_stats,
	  .kind = HAMLYN_STATS_TERMINUS, .id = &env.p.terminus.arg.terminus },
	{ .name = "WATCH", .act = act_watch, .after = read_all },
	{ .name = "WATCH of what is gone", .act = act_watch_gone,
	  .after = read_all },
	{ .name = "UNWATCH", .before = act_watch, .act = act_destroy,
	  .after = read_all },
	{ .name = "TICKET_CREATE", .act = act_ticket_create },
	{ .name = "TICKET_IMPORT", .before = before_ticket_import,
	  .act = act_ticket_import },
	{ .name = "TICKET_IMPORT, the 17th",
	  .before = before_ticket_import_more, .act = act_ticket_import },
	{ .name = "TICKET_DROP", .before = before_ticket_import_more,
	  .act = act_ticket_drop },
	{ .name = "AUDIT", .act = act_audit },
	{ .name = "NIC_SET", .act = act_nic_set, .after = after_nic_set },
	{ .name = "EXPLAIN", .act = act_explain },
};

#endif /* FAIL_NTH_OBJECTS_H */
