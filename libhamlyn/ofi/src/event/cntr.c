// SPDX-License-Identifier: MIT
#include "event/cntr.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

static struct hf_cntr *of(struct fid_cntr *fid)
{
	return hf_container(fid, struct hf_cntr, fid);
}

static void progress(struct hf_cntr *cntr)
{
	hf_domain_lock(cntr->domain);
	hf_domain_progress(cntr->domain);
	hf_domain_unlock(cntr->domain);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	progress(of(fid));
	return __atomic_load_n(&of(fid)->value, __ATOMIC_ACQUIRE);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	progress(of(fid));
	return __atomic_load_n(&of(fid)->errors, __ATOMIC_ACQUIRE);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	__atomic_add_fetch(&of(fid)->value, value, __ATOMIC_RELEASE);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	__atomic_add_fetch(&of(fid)->errors, value, __ATOMIC_RELEASE);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	__atomic_store_n(&of(fid)->value, value, __ATOMIC_RELEASE);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	__atomic_store_n(&of(fid)->errors, value, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Others may count while this thread waits, and have nothing to wake it by: so it only gives
 * its processor away, and sleeps a little after a while.
 */
static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	uint64_t errors = __atomic_load_n(&of(fid)->errors, __ATOMIC_ACQUIRE);
	int64_t begun = hf_now_ms();

	for (unsigned int tries = 0;; tries++) {
		if (cntr_read(fid) >= threshold)
			return 0;
		if (__atomic_load_n(&of(fid)->errors, __ATOMIC_ACQUIRE) != errors)
			return -FI_EAVAIL;
		if (timeout >= 0 && hf_now_ms() - begun >= timeout)
			return -FI_ETIMEDOUT;
		if (tries < 1000)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static int cntr_close(struct fid *fid)
{
	struct hf_cntr *cntr = hf_container(fid, struct hf_cntr, fid.fid);

	if (__atomic_load_n(&cntr->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	hf_domain_put(cntr->domain);
	free(cntr);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(cntr_close),
	.bind = hf_no_bind,
	.control = hf_no_control,
};

int hf_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		 void *context)
{
	struct hf_cntr *cntr;

	if (attr->events != FI_CNTR_EVENTS_COMP || attr->flags)
		return -FI_EINVAL;
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->domain = hf_container(fid, struct hf_domain, fid);
	hf_domain_get(cntr->domain);
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &fid_ops;
	cntr->fid.ops = &cntr_ops;
	*out = &cntr->fid;
	return 0;
}
