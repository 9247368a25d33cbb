// SPDX-License-Identifier: MIT
/* Generic Active Messages (L 3.1): the calls of gam.h. */
#include "am.h"

struct am h__am;

int am_enable(void)
{
	return am_start(&h__am);
}

int am_disable(void)
{
	return am_end(&h__am);
}

int am_procs(void)
{
	return (int)h__am.procs;
}

int am_my_proc(void)
{
	return (int)h__am.self;
}

int am_max_size(void)
{
	return (int)h__am.page;
}

const char *am_error(void)
{
	return am_error_text();
}

void *am_static(vnn_t dest, const void *here)
{
	struct am *am = &h__am;

	if (!am->enabled || (uint32_t)dest >= am->procs ||
	    !am_address_is_program(here))
		return NULL;
	return (void *)((uintptr_t)here + am->peers[dest].moved);
}

int am_get_stats(struct am_stats *stats)
{
	*stats = h__am.stats;
	return h__am.enabled ? 0 :
			       am_fail(-ENOTCONN, "am_enable() was not called");
}

static int can_serve(struct am *am)
{
	if (am_unlikely(!am->enabled))
		return am_fail(-ENOTCONN, "am_enable() was not called");
	if (am_unlikely(am->context != AM_MAIN))
		return am_fail(-EPERM, "a handler must not poll");
	return 0;
}

static int tell_news(struct am *am)
{
	int peer = 0;

	while (!am->peers[peer].lost || am->peers[peer].told)
		peer++;
	am->peers[peer].told = 1;
	am->news--;
	return am_lost_error(am, peer);
}

int am_poll(void)
{
	struct am *am = &h__am;
	int rc = can_serve(am);

	if (am_unlikely(rc))
		return rc;
	rc = am_serve(am);
	return am_likely(!am->news) ? rc : tell_news(am);
}

void am_sleep(unsigned int seconds)
{
	struct am *am = &h__am;
	int64_t end = am_now_ns() + (int64_t)seconds * 1000000000;
	int64_t left;

	if (can_serve(am))
		return;
	/* Loops of am_sleep(0) wait for what they serve. */
	if (!seconds)
		am_serve(am);
	while ((left = end - am_now_ns()) > 0) {
		struct hamlyn_nq_entry entry;
		int rc;
		/* Requests that wait for an answer have time-outs. */
		int64_t most = am->counting || am->stores ? 1000000 : left;

		if (am_serve(am))
			continue;
		am_acks_flush(am);
		if (am->counting)
			am_check_all(am);
		rc = h_recv_block(am->nq, &entry, most < left ? most : left);
		if (rc == 0)
			am_arrive(am, &entry);
		am->stats.overruns += rc == -EOVERFLOW;
	}
}

int lam_sync_all(void)
{
	struct am *am = &h__am;
	int rc = can_serve(am);

	return rc ? rc : am_sync(am);
}

/* ---- requests ---- */

static uint64_t name_of(void (*function)(void))
{
	uint64_t name = am_address_name(function);

	if (am_unlikely(!name))
		am_fail(-EINVAL,
			"the handler %p is no code of the program or of its libraries at the start",
			(void *)(uintptr_t)function);
	return name;
}

/* Its data, if it has any, are in the scratch page. */
static int request_to_self(struct am *am, const struct am_packet *packet)
{
	am_call_own(am, packet, am->scratch);
	am_serve(am);
	return 0;
}

int am_short_request(struct am *am, int dest, enum am_kind kind,
		     void (*function)(void), const uint64_t *args)
{
	int rc = am_can_request(am, dest);
	struct am_packet p = {
		.kind = (uint8_t)kind,
		.args = { args[0], args[1], args[2], args[3], args[4] },
	};

	if (am_unlikely(rc))
		return rc;
	p.handler = name_of(function);
	if (am_unlikely(!p.handler))
		return -EINVAL;
	if (am_unlikely((uint32_t)dest == am->self))
		return request_to_self(am, &p);
	rc = am_request_send(am, dest, &p, NULL, AM_NO_TRANSFER);
	if (am_likely(!rc))
		am_serve(am);
	return rc;
}

#define REQUEST(n, handler, a0, a1, a2, a3, a4)				\
	am_short_request(&h__am, dest, (enum am_kind)(n),		\
			 (void (*)(void))(handler),			\
			 (const uint64_t[]){ (uint64_t)(a0), (uint64_t)(a1), \
					     (uint64_t)(a2), (uint64_t)(a3), \
					     (uint64_t)(a4) })

int am_request_0(vnn_t dest, handler_0_t handler)
{
	return REQUEST(0, handler, 0, 0, 0, 0, 0);
}

int am_request_1(vnn_t dest, handler_1_t handler, long arg0)
{
	return REQUEST(1, handler, arg0, 0, 0, 0, 0);
}

int am_request_2(vnn_t dest, handler_2_t handler, long arg0, long arg1)
{
	return REQUEST(2, handler, arg0, arg1, 0, 0, 0);
}

int am_request_3(vnn_t dest, handler_3_t handler, long arg0, long arg1, long arg2)
{
	return REQUEST(3, handler, arg0, arg1, arg2, 0, 0);
}

int am_request_4(vnn_t dest, handler_4_t handler, long arg0, long arg1, long arg2,
		 long arg3)
{
	return REQUEST(4, handler, arg0, arg1, arg2, arg3, 0);
}

int am_request_5(vnn_t dest, handler_5_t handler, long arg0, long arg1, long arg2,
		 long arg3, long arg4)
{
	return REQUEST(5, handler, arg0, arg1, arg2, arg3, arg4);
}

static uint64_t as_word(double d)
{
	uint64_t word;

	memcpy(&word, &d, sizeof(word));
	return word;
}

int am_request_df(vnn_t dest, handler_df_t handler, long arg0, long arg1, double arg2)
{
	return REQUEST(AM_ARGS_DF, handler, arg0, arg1, as_word(arg2), 0, 0);
}

static int medium_size(struct am *am, int nbytes)
{
	if (am_likely(nbytes >= 0 && (uint32_t)nbytes <= am->page))
		return 0;
	return am_fail(-EMSGSIZE, "%d bytes: 0 to %u are allowed", nbytes,
		       am->page);
}

static struct am_packet medium(uint64_t handler, int nbytes, long arg0, long arg1)
{
	return (struct am_packet){
		.kind = AM_MEDIUM,
		.handler = handler,
		.length = (uint32_t)nbytes,
		.args = { (uint64_t)arg0, (uint64_t)arg1 },
	};
}

int am_request(vnn_t dest, handler_med_t handler, const void *lva, int nbytes,
	       long arg0, long arg1)
{
	struct am *am = &h__am;
	uint64_t name;
	struct am_packet p;
	int rc = am_can_request(am, dest);

	if (!rc)
		rc = medium_size(am, nbytes);
	if (rc)
		return rc;
	name = name_of((void (*)(void))handler);
	if (!name)
		return -EINVAL;
	p = medium(name, nbytes, arg0, arg1);
	if ((uint32_t)dest == am->self) {
		if (p.length)
			memcpy(am->scratch, lva, p.length);
		return request_to_self(am, &p);
	}
	rc = am_request_send(am, dest, &p, lva, AM_NO_TRANSFER);
	if (!rc)
		am_serve(am);
	return rc;
}

/* ---- replies ---- */

int am_short_reply(struct am *am, int dest, enum am_kind kind,
		   void (*function)(void), const uint64_t *args)
{
	int rc = am_can_reply(am, dest);
	struct am_packet p = {
		.kind = (uint8_t)kind,
		.args = { args[0], args[1], args[2], args[3], args[4] },
	};

	if (am_unlikely(rc))
		return rc;
	p.handler = name_of(function);
	if (am_unlikely(!p.handler))
		return -EINVAL;
	return am_reply_send(am, &p, NULL);
}

#define REPLY(n, handler, a0, a1, a2, a3, a4)				\
	am_short_reply(&h__am, dest, (enum am_kind)(n),			\
		       (void (*)(void))(handler),			\
		       (const uint64_t[]){ (uint64_t)(a0), (uint64_t)(a1), \
					   (uint64_t)(a2), (uint64_t)(a3), \
					   (uint64_t)(a4) })

int am_reply_0(vnn_t dest, handler_0_t handler)
{
	return REPLY(0, handler, 0, 0, 0, 0, 0);
}

int am_reply_1(vnn_t dest, handler_1_t handler, long arg0)
{
	return REPLY(1, handler, arg0, 0, 0, 0, 0);
}

int am_reply_2(vnn_t dest, handler_2_t handler, long arg0, long arg1)
{
	return REPLY(2, handler, arg0, arg1, 0, 0, 0);
}

int am_reply_3(vnn_t dest, handler_3_t handler, long arg0, long arg1, long arg2)
{
	return REPLY(3, handler, arg0, arg1, arg2, 0, 0);
}

int am_reply_4(vnn_t dest, handler_4_t handler, long arg0, long arg1, long arg2,
	       long arg3)
{
	return REPLY(4, handler, arg0, arg1, arg2, arg3, 0);
}

int am_reply_5(vnn_t dest, handler_5_t handler, long arg0, long arg1, long arg2,
	       long arg3, long arg4)
{
	return REPLY(5, handler, arg0, arg1, arg2, arg3, arg4);
}

int am_reply_df(vnn_t dest, handler_df_t handler, long arg0, long arg1, double arg2)
{
	return REPLY(AM_ARGS_DF, handler, arg0, arg1, as_word(arg2), 0, 0);
}

int am_reply(vnn_t dest, handler_med_t handler, const void *lva, int nbytes,
	     long arg0, long arg1)
{
	struct am *am = &h__am;
	uint64_t name;
	struct am_packet p;
	int rc = am_can_reply(am, dest);

	if (!rc)
		rc = medium_size(am, nbytes);
	if (rc)
		return rc;
	name = name_of((void (*)(void))handler);
	if (!name)
		return -EINVAL;
	p = medium(name, nbytes, arg0, arg1);
	return am_reply_send(am, &p, lva);
}

/* ---- memory ---- */

static int bulk_size(int nbytes)
{
	return am_likely(nbytes >= 0) ? 0 :
		am_fail(-EINVAL, "%d bytes: 0 to INT_MAX are allowed", nbytes);
}

int am_memory_store(struct am *am, int dest, enum am_kind kind,
		    void (*function)(void), const void *from, void *to,
		    int nbytes, void *arg)
{
	uint64_t name;
	int rc = am_can_request(am, dest);

	if (!rc)
		rc = bulk_size(nbytes);
	if (rc)
		return rc;
	name = name_of(function);
	if (!name)
		return -EINVAL;
	rc = am_bulk_store(am, dest, kind, name, from, to, nbytes, arg);
	if (!rc)
		am_serve(am);
	return rc;
}

int am_store(vnn_t dest, const void *lva, void *rva, int nbytes,
	     handler_mem_t handler, void *arg)
{
	return am_memory_store(&h__am, dest, AM_MEMORY, (void (*)(void))handler,
			       lva, rva, nbytes, arg);
}

int am_store_async(vnn_t dest, const void *lva, void *rva, int nbytes,
		   handler_mem_t handler, void *arg, handler_mem_t endfunc,
		   void *endarg)
{
	struct am *am = &h__am;
	uint64_t name;
	int rc = am_can_request(am, dest);

	if (!rc)
		rc = bulk_size(nbytes);
	if (rc)
		return rc;
	name = name_of((void (*)(void))handler);
	if (!name)
		return -EINVAL;
	rc = am_bulk_async(am, dest, name, lva, rva, nbytes, arg, endfunc,
			   endarg);
	if (!rc)
		am_serve(am);
	return rc;
}

int am_get(vnn_t source, const void *rva, void *lva, int nbytes,
	   handler_mem_t handler, void *arg)
{
	struct am *am = &h__am;
	int rc = am_can_request(am, source);

	if (!rc)
		rc = bulk_size(nbytes);
	if (!rc && !name_of((void (*)(void))handler))
		rc = -EINVAL;
	if (rc)
		return rc;
	rc = am_bulk_get(am, source, rva, lva, nbytes, handler, arg);
	if (!rc)
		am_serve(am);
	return rc;
}

int am_memory_reply(struct am *am, int dest, enum am_kind kind,
		    void (*function)(void), const void *from, void *to,
		    int nbytes, void *arg)
{
	struct am_packet p = {
		.kind = (uint8_t)kind,
		.length = (uint32_t)nbytes,
		.args = { (uintptr_t)arg, (uintptr_t)to, (uint32_t)nbytes, 0 },
	};
	int rc = am_can_reply(am, dest);

	if (!rc)
		rc = medium_size(am, nbytes);
	if (rc)
		return rc;
	p.handler = name_of(function);
	if (!p.handler)
		return -EINVAL;
	if ((uint32_t)dest == am->self)
		memmove(to, from, (size_t)nbytes);
	return am_reply_send(am, &p, from);
}

int am_reply_xfer(vnn_t dest, const void *lva, void *rva, int nbytes,
		  handler_mem_t handler, void *arg)
{
	return am_memory_reply(&h__am, dest, AM_MEMORY, (void (*)(void))handler,
			       lva, rva, nbytes, arg);
}
