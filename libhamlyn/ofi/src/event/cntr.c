// SPDX-License-Identifier: MIT
#include "event/cntr.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "rdm/link.h"

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

/* A call of the application has changed it. */
static int changed(struct hf_cntr *cntr)
{
	if (cntr->wait.fd < 0)
		return 0;
	hf_domain_lock(cntr->domain);
	hf_wait_ring(&cntr->wait);
	hf_domain_unlock(cntr->domain);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	__atomic_add_fetch(&of(fid)->value, value, __ATOMIC_RELEASE);
	return changed(of(fid));
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	__atomic_add_fetch(&of(fid)->errors, value, __ATOMIC_RELEASE);
	return changed(of(fid));
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	__atomic_store_n(&of(fid)->value, value, __ATOMIC_RELEASE);
	return changed(of(fid));
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	__atomic_store_n(&of(fid)->errors, value, __ATOMIC_RELEASE);
	return changed(of(fid));
}

/* Domain locked. What was counted since it was asked last is a reason not to sleep, once. */
static enum hf_calm calm_of(struct hf_cntr *cntr)
{
	uint64_t value, errors;
	bool same;

	hf_link_progress(cntr->domain);
	hf_domain_progress(cntr->domain);
	if (cntr->domain->stuck || !hf_wait_arm(&cntr->wait))
		return HF_STUCK;
	/* Armed first: others' fi_cntr_add() changes it, and rings then. */
	value = __atomic_load_n(&cntr->value, __ATOMIC_ACQUIRE);
	errors = __atomic_load_n(&cntr->errors, __ATOMIC_ACQUIRE);
	same = value == cntr->told_value && errors == cntr->told_errors;
	cntr->told_value = value;
	cntr->told_errors = errors;
	return same ? HF_QUIET : HF_READY;
}

/* Or an error, if nobody can sleep on it. */
int hf_cntr_calm(struct hf_cntr *cntr)
{
	enum hf_calm calm;

	if (cntr->wait.fd < 0)
		return -FI_EINVAL;
	hf_domain_lock(cntr->domain);
	calm = calm_of(cntr);
	hf_domain_unlock(cntr->domain);
	return calm;
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
	hf_wait_close(&cntr->wait, fid);
	hf_domain_put(cntr->domain);
	free(cntr);
	return 0;
}

/* There are no flags of operations on counters. */
static int cntr_control(struct fid *fid, int command, void *arg)
{
	const struct hf_cntr *cntr = hf_container(fid, struct hf_cntr, fid.fid);

	switch (command) {
	case FI_GETOPSFLAG:
		*(uint64_t *)arg = 0;
		return 0;
	case FI_SETOPSFLAG:
		return *(const uint64_t *)arg ? -FI_EBADFLAGS : 0;
	default:
		return hf_wait_control(&cntr->wait, cntr->wait_obj, command, arg);
	}
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(cntr_close),
	.bind = hf_no_bind,
	.control = cntr_control,
};

/*
 * To wait by fi_cntr_wait() alone takes no descriptor; and with one, arrivals have to make it
 * readable, which takes time.
 */
static enum fi_wait_obj sleeps_on(enum fi_wait_obj asked)
{
	return asked == FI_WAIT_UNSPEC ? FI_WAIT_YIELD : asked;
}

int hf_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		 void *context)
{
	struct hf_cntr *cntr;
	int err = hf_wait_check(attr->wait_obj);

	if (attr->events != FI_CNTR_EVENTS_COMP || attr->flags)
		return -FI_EINVAL;
	if (err)
		return err;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->domain = hf_container(fid, struct hf_domain, fid);
	cntr->wait_obj = attr->wait_obj;
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &fid_ops;
	cntr->fid.ops = &cntr_ops;
	err = hf_wait_open(&cntr->wait, cntr->domain, sleeps_on(attr->wait_obj), attr->wait_set,
			   &cntr->fid.fid);
	if (err) {
		hf_wait_close(&cntr->wait, &cntr->fid.fid);
		free(cntr);
		return err;
	}
	hf_domain_get(cntr->domain);
	*out = &cntr->fid;
	return 0;
}
