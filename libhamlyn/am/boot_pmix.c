// SPDX-License-Identifier: MIT
/*
 * Start-up by PMIx: Open MPI's and PRRTE's launchers, Slurm. The library of PMIx is loaded
 * when a launcher of PMIx started this process, so that nobody else needs to have it.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "boot_text.h"

/* PMIx cannot be had: PMI-1 may still be, if the launcher speaks both */
static int cannot(struct am_boot *boot, const char *why)
{
	if (getenv("PMI_FD") || getenv("PMI_PORT"))
		return 0;
	return am_boot_fail(boot, -ENOTSUP,
			    "the launcher speaks PMIx (PMIX_NAMESPACE is set), but %.160s", why);
}

#ifndef HAVE_PMIX

static int pmix_open(struct am_boot *boot)
{
	if (!getenv("PMIX_NAMESPACE"))
		return 0;
	return cannot(boot, "libhamlyn-am was built without it; use hamlyn-run");
}

const struct am_boot_ops am_boot_pmix = {
	.name = "PMIx",
	.open = pmix_open,
};

#else /* HAVE_PMIX */

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#define LIBRARY		"libpmix.so.2"
#define GET_SECONDS	60
#define PROGRAM_HEADER	ElfW(Phdr)

/* Of no use to a static program, so not wanted in one */
#pragma weak dlsym
#pragma weak dlerror

/**
 * struct pmix - the library's functions and this process in it
 * @self: this process
 * @collect: "a fence brings everybody's texts along"; PMIx reads it until the fence is done
 * @fence: FENCE_*, set by PMIx's own thread: what is before that set is seen by who reads it
 * @fence_status: of the fence, once @fence is FENCE_DONE
 */
struct pmix {
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Put) *put;
	__typeof__(PMIx_Commit) *commit;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Fence_nb) *fence_nb;
	__typeof__(PMIx_Error_string) *error_string;
	pmix_proc_t self;
	pmix_info_t collect;
	atomic_int fence;
	pmix_status_t fence_status;
};

enum { FENCE_NONE, FENCE_BEGUN, FENCE_DONE };

/* ---- the library -------------------------------------------------------- */

#define SYMBOL(field, name)	{ offsetof(struct pmix, field), name }

static const struct symbol {
	size_t offset;
	const char *name;
} symbols[] = {
	SYMBOL(init, "PMIx_Init"),
	SYMBOL(finalize, "PMIx_Finalize"),
	SYMBOL(put, "PMIx_Put"),
	SYMBOL(commit, "PMIx_Commit"),
	SYMBOL(get, "PMIx_Get"),
	SYMBOL(fence_nb, "PMIx_Fence_nb"),
	SYMBOL(error_string, "PMIx_Error_string"),
	{ 0 },
};

/*
 * A static program names no interpreter. In one dlopen() may be there, but what it loads
 * crashes.
 */
static bool is_static(void)
{
	const PROGRAM_HEADER *headers = (const PROGRAM_HEADER *)getauxval(AT_PHDR);
	unsigned long i, n = getauxval(AT_PHNUM);

	for (i = 0; headers && i < n; i++)
		if (headers[i].p_type == PT_INTERP)
			return false;
	return true;
}

/* By its name only: the linker warns of a static program that mentions it */
static void *load_library(void)
{
	__typeof__(dlopen) *open_library;
	void *found = dlsym(RTLD_DEFAULT, "dlopen");

	if (!found)
		return NULL;
	memcpy(&open_library, &found, sizeof(found));
	return open_library(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

/* It stays loaded: its threads may outlive what we know of. Return: NULL, or what is wrong. */
static const char *load_functions(struct pmix *pmix)
{
	const struct symbol *symbol = symbols;
	const char *why;
	void *library, *found;

	if (is_static() || !dlsym || !dlerror)
		return "this program is static and cannot load " LIBRARY
		       "; link it dynamically, or use hamlyn-run";
	library = load_library();
	for (; library && symbol->name; symbol++) {
		found = dlsym(library, symbol->name);
		if (!found)
			break;
		memcpy((char *)pmix + symbol->offset, &found, sizeof(found));
	}
	if (library && !symbol->name)
		return NULL;
	why = dlerror();
	return why ? why : LIBRARY " cannot be loaded";
}

static int failed_call(struct am_boot *boot, const char *call, pmix_status_t status)
{
	const struct pmix *pmix = boot->priv;
	int err = -EIO;

	if (status == PMIX_ERR_UNREACH || status == PMIX_ERR_LOST_CONNECTION)
		err = -ECONNRESET;
	else if (status == PMIX_ERR_TIMEOUT)
		err = -ETIMEDOUT;
	return am_boot_fail(boot, err, "%s: %.120s (%d)", call, pmix->error_string(status),
			    status);
}

static void fill_info(pmix_info_t *info, const char *key, pmix_data_type_t type)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->key, sizeof(info->key), "%s", key);
	info->value.type = type;
}

/* ---- opening ------------------------------------------------------------ */

static pmix_proc_t process(const struct pmix *pmix, pmix_rank_t rank)
{
	pmix_proc_t proc = pmix->self;

	proc.rank = rank;
	return proc;
}

static int learn_size(struct am_boot *boot, struct pmix *pmix)
{
	pmix_proc_t job = process(pmix, PMIX_RANK_WILDCARD);
	pmix_value_t *value = NULL;
	pmix_status_t status = pmix->get(&job, PMIX_JOB_SIZE, NULL, 0, &value);
	uint32_t size;

	if (status != PMIX_SUCCESS)
		return failed_call(boot, "PMIx_Get of the job's size", status);
	/* A number has nothing to free but itself */
	size = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
	free(value);
	if (!size || size > INT_MAX || pmix->self.rank >= size)
		return am_boot_fail(boot, -EPROTO, "PMIx says rank %u of %u processes",
				    pmix->self.rank, size);
	boot->size = (int)size;
	boot->rank = (int)pmix->self.rank;
	return 0;
}

static int join(struct am_boot *boot, struct pmix *pmix)
{
	pmix_status_t status = pmix->init(&pmix->self, NULL, 0);
	int n, ret;

	if (status != PMIX_SUCCESS)
		return failed_call(boot, "PMIx_Init", status);
	n = snprintf(boot->job, sizeof(boot->job), "%.*s", PMIX_MAX_NSLEN, pmix->self.nspace);
	ret = n > 0 && (size_t)n < sizeof(boot->job) ? learn_size(boot, pmix) :
		am_boot_fail(boot, -EPROTO, "PMIx gives no usable name of the job");
	if (ret < 0)
		pmix->finalize(NULL, 0);
	return ret;
}

static int pmix_open(struct am_boot *boot)
{
	struct pmix *pmix;
	const char *why;
	int ret;

	if (!getenv("PMIX_NAMESPACE"))
		return 0;
	pmix = calloc(1, sizeof(*pmix));
	if (!pmix)
		return am_boot_fail(boot, -ENOMEM, "no memory to start");
	boot->priv = pmix;
	fill_info(&pmix->collect, PMIX_COLLECT_DATA, PMIX_BOOL);
	pmix->collect.value.data.flag = true;
	why = load_functions(pmix);
	ret = why ? cannot(boot, why) : join(boot, pmix);
	if (why || ret < 0) {
		free(pmix);
		boot->priv = NULL;
		return ret;
	}
	return 1;
}

/* ---- texts -------------------------------------------------------------- */

static int pmix_put(struct am_boot *boot, const char *key, const char *value)
{
	struct pmix *pmix = boot->priv;
	char copy[AM_BOOT_VALUE_BYTES];
	pmix_value_t text = { .type = PMIX_STRING, .data.string = copy };
	pmix_status_t status;
	int ret = am_boot_check(boot, key, value);

	if (ret < 0)
		return ret;
	snprintf(copy, sizeof(copy), "%s", value);
	status = pmix->put(PMIX_GLOBAL, key, &text);
	return status == PMIX_SUCCESS ? 0 : failed_call(boot, "PMIx_Put", status);
}

/* Takes the text out of @got and frees that */
static int take_text(struct am_boot *boot, int rank, const char *key, pmix_value_t *got,
		     char *value)
{
	const char *text = got->type == PMIX_STRING ? got->data.string : NULL;
	bool fits = text && strlen(text) < AM_BOOT_VALUE_BYTES;

	if (fits)
		memcpy(value, text, strlen(text) + 1);
	if (got->type == PMIX_STRING)
		free(got->data.string);
	free(got);
	if (fits)
		return 0;
	return am_boot_fail(boot, -EPROTO, "process %d has published no text of ours as \"%s\"",
			    rank, key);
}

static int pmix_get(struct am_boot *boot, int rank, const char *key, char *value)
{
	struct pmix *pmix = boot->priv;
	pmix_proc_t peer = process(pmix, (pmix_rank_t)rank);
	pmix_value_t *got = NULL;
	pmix_status_t status;
	pmix_info_t how[2];
	int ret = am_boot_check(boot, key, NULL);

	if (!ret)
		ret = am_boot_check_rank(boot, rank);
	if (ret < 0)
		return ret;
	/* The fence has brought all there is: what is not here will not come */
	fill_info(&how[0], PMIX_IMMEDIATE, PMIX_BOOL);
	how[0].value.data.flag = true;
	fill_info(&how[1], PMIX_TIMEOUT, PMIX_INT);
	how[1].value.data.integer = GET_SECONDS;
	status = pmix->get(&peer, key, how, 2, &got);
	if (status == PMIX_ERR_NOT_FOUND)
		return am_boot_fail(boot, -ENOENT, "process %d has not published \"%s\"", rank,
				    key);
	if (status != PMIX_SUCCESS || !got)
		return failed_call(boot, "PMIx_Get", status);
	return take_text(boot, rank, key, got, value);
}

/* ---- waiting for all ---------------------------------------------------- */

/* In a thread of PMIx */
static void fence_came(pmix_status_t status, void *data)
{
	struct pmix *pmix = data;

	pmix->fence_status = status;
	/* Release: the status is there for who sees that the fence is done */
	atomic_store_explicit(&pmix->fence, FENCE_DONE, memory_order_release);
}

static int pmix_fence_begin(struct am_boot *boot)
{
	struct pmix *pmix = boot->priv;
	pmix_status_t status;

	if (atomic_load_explicit(&pmix->fence, memory_order_relaxed) != FENCE_NONE)
		return am_boot_fail(boot, -EBUSY, "a fence is under way");
	status = pmix->commit();
	if (status != PMIX_SUCCESS)
		return failed_call(boot, "PMIx_Commit", status);
	atomic_store_explicit(&pmix->fence, FENCE_BEGUN, memory_order_relaxed);
	status = pmix->fence_nb(NULL, 0, &pmix->collect, 1, fence_came, pmix);
	if (status == PMIX_OPERATION_SUCCEEDED) {	/* then nobody calls back */
		fence_came(PMIX_SUCCESS, pmix);
		return 0;
	}
	if (status == PMIX_SUCCESS)
		return 0;
	atomic_store_explicit(&pmix->fence, FENCE_NONE, memory_order_relaxed);
	return failed_call(boot, "PMIx_Fence_nb", status);
}

static int pmix_fence_done(struct am_boot *boot)
{
	struct pmix *pmix = boot->priv;

	/* Acquire: the status that fence_came() set before */
	switch (atomic_load_explicit(&pmix->fence, memory_order_acquire)) {
	case FENCE_NONE:
		return am_boot_fail(boot, -EINVAL, "no fence was begun");
	case FENCE_BEGUN:
		return 0;
	}
	atomic_store_explicit(&pmix->fence, FENCE_NONE, memory_order_relaxed);
	if (pmix->fence_status != PMIX_SUCCESS)
		return failed_call(boot, "PMIx_Fence_nb", pmix->fence_status);
	return 1;
}

/* ---- leaving ------------------------------------------------------------ */

static void pmix_close(struct am_boot *boot, enum am_boot_end end)
{
	static struct pmix *kept;
	struct pmix *pmix = boot->priv;

	boot->priv = NULL;
	if (end == AM_BOOT_FAILED) {
		/* Its threads go on, and call back */
		kept = pmix;
		(void)kept;
		return;
	}
	/* Its threads end here: none of them calls back afterwards */
	pmix->finalize(NULL, 0);
	free(pmix);
}

const struct am_boot_ops am_boot_pmix = {
	.name = "PMIx",
	.open = pmix_open,
	.put = pmix_put,
	.get = pmix_get,
	.fence_begin = pmix_fence_begin,
	.fence_done = pmix_fence_done,
	.close = pmix_close,
};

#endif /* HAVE_PMIX */
