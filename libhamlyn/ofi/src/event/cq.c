// SPDX-License-Identifier: MIT
#include "event/cq.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rdm/link.h"

#define DEFAULT_SIZE	1024
#define MAX_SIZE	(1U << 24)

/* How long a call that may sleep polls before it does. */
#define SPIN_NS		20000

#define WORDS(entry)	(sizeof(entry) / sizeof(uint64_t))

void hf_cq_add(struct hf_cq *cq, const struct fi_cq_tagged_entry *entry, fi_addr_t source)
{
	*hf_cq_next(cq, source) = *entry;
	hf_cq_added(cq);
}

static void append_error(struct hf_cq *cq, struct hf_cq_error *error)
{
	error->at = cq->tail;
	error->next = NULL;
	*cq->last_error = error;
	cq->last_error = &error->next;
	hf_wait_ring(&cq->wait);
}

static struct hf_cq_error *error_new(void)
{
	struct hf_cq_error *error = calloc(1, sizeof(*error));

	if (!error)
		hf_warn("completion queue: an error is lost for want of memory\n");
	return error;
}

void hf_cq_add_error(struct hf_cq *cq, const struct fi_cq_err_entry *entry)
{
	struct hf_cq_error *error = error_new();

	if (!error)
		return;
	error->entry = *entry;
	append_error(cq, error);
}

/* FI_SOURCE_ERR: it was received, from somebody whom the address vector does not know. */
void hf_cq_add_unknown(struct hf_cq *cq, const struct fi_cq_tagged_entry *entry,
		       const struct sockaddr_in *source)
{
	struct hf_cq_error *error = error_new();

	if (!error)
		return;
	error->entry = (struct fi_cq_err_entry){
		.op_context = entry->op_context,
		.flags = entry->flags,
		.len = entry->len,
		.buf = entry->buf,
		.data = entry->data,
		.tag = entry->tag,
		.err = FI_EADDRNOTAVAIL,
		.prov_errno = FI_EADDRNOTAVAIL,
		.err_data = &error->source,
		.err_data_size = sizeof(error->source),
	};
	error->source = *source;
	append_error(cq, error);
}

static void put_word(void *to, const void *from, size_t word)
{
	memcpy((uint64_t *)to + word, (const uint64_t *)from + word, sizeof(uint64_t));
}

/* Each format begins as the next longer one does. By words, as entries were written just now. */
static inline void put(uint64_t *to, const struct fi_cq_tagged_entry *entry, uint32_t words)
{
	put_word(to, entry, 0);
	if (words < WORDS(struct fi_cq_msg_entry))
		return;
	put_word(to, entry, 1);
	put_word(to, entry, 2);
	if (words < WORDS(struct fi_cq_data_entry))
		return;
	put_word(to, entry, 3);
	put_word(to, entry, 4);
	if (words == WORDS(struct fi_cq_tagged_entry))
		put_word(to, entry, 5);
}

static uint32_t words_of(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return WORDS(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return WORDS(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return WORDS(struct fi_cq_tagged_entry);
	default:
		return WORDS(struct fi_cq_entry);
	}
}

static inline void take_one(struct hf_cq *cq, uint64_t *to, fi_addr_t *src_addr, uint32_t words)
{
	uint32_t at = cq->head++ & (cq->size - 1);

	put(to, &cq->entries[at], words);
	if (src_addr)
		*src_addr = cq->sources[at];
}

static ssize_t take(struct hf_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	/* Errors come in their order: what was completed before them is read first. */
	uint32_t left = (cq->errors ? cq->errors->at : cq->tail) - cq->head;
	uint64_t *to = buf;

	if (!left)
		return cq->errors ? -FI_EAVAIL : -FI_EAGAIN;
	if (count > left)
		count = left;
	/* Most ask for one, and have its tag. */
	if (count == 1 && cq->words == WORDS(struct fi_cq_tagged_entry)) {
		take_one(cq, to, src_addr, WORDS(struct fi_cq_tagged_entry));
		return 1;
	}
	for (size_t i = 0; i < count; i++, to += cq->words)
		take_one(cq, to, src_addr ? &src_addr[i] : NULL, cq->words);
	return (ssize_t)count;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr)
{
	struct hf_cq *cq = hf_container(fid, struct hf_cq, fid);
	ssize_t taken;

	hf_domain_lock(cq->domain);
	/* Even if there is something: others than the reader may wait for progress. */
	if (cq->head == cq->tail || !count)
		hf_domain_progress(cq->domain);
	taken = count ? take(cq, buf, count, src_addr) : 0;
	if (taken > 0 && cq->domain->stuck)
		hf_domain_progress(cq->domain);
	hf_domain_unlock(cq->domain);
	return taken;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/*
 * Of what programs of older releases have room for there is no more than they know, and what came
 * later says of itself that it is not there (fi_cq_readerr()). Without a buffer for data, the
 * entry says where it is.
 */
static void put_error(const struct hf_cq *cq, struct fi_cq_err_entry *to,
		      const struct fi_cq_err_entry *from)
{
	uint32_t version = cq->domain->fabric->fid.api_version;
	bool has_size = FI_VERSION_GE(version, FI_VERSION(1, 5));
	size_t room = has_size ? to->err_data_size : 0;
	void *buffer = to->err_data;

	memcpy(to, from, offsetof(struct fi_cq_err_entry, err_data));
	if (!room) {
		to->err_data = from->err_data;
		if (has_size)
			to->err_data_size = from->err_data_size;
		return;
	}
	to->err_data_size = room < from->err_data_size ? room : from->err_data_size;
	if (to->err_data_size && buffer)
		memcpy(buffer, from->err_data, to->err_data_size);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct hf_cq *cq = hf_container(fid, struct hf_cq, fid);
	struct hf_cq_error *error;

	(void)flags;
	hf_domain_lock(cq->domain);
	error = cq->errors;
	if (error) {
		cq->errors = error->next;
		if (!cq->errors)
			cq->last_error = &cq->errors;
		free(cq->told);
		cq->told = error;
		put_error(cq, buf, &error->entry);
	}
	hf_domain_unlock(cq->domain);
	return error ? 1 : -FI_EAGAIN;
}

/* Domain locked. */
static enum hf_calm calm_of(struct hf_cq *cq)
{
	hf_link_progress(cq->domain);
	hf_domain_progress(cq->domain);
	if (hf_cq_is_readable(cq))
		return HF_READY;
	return !cq->domain->stuck && hf_wait_arm(&cq->wait) ? HF_QUIET : HF_STUCK;
}

/* Or an error, if nobody can sleep on it. */
int hf_cq_calm(struct hf_cq *cq)
{
	enum hf_calm calm;

	if (cq->wait.fd < 0)
		return -FI_EINVAL;
	hf_domain_lock(cq->domain);
	calm = calm_of(cq);
	hf_domain_unlock(cq->domain);
	return calm;
}

/* Sleep until something arrives, at most @left_ns; false: a signal's handler has run. */
static bool doze(struct hf_cq *cq, int64_t left_ns)
{
	struct pollfd fd = { .fd = cq->wait.fd, .events = POLLIN };
	enum hf_calm calm;
	int limit = -1;

	hf_domain_lock(cq->domain);
	calm = calm_of(cq);
	if (cq->signalled)
		calm = HF_READY;
	hf_domain_unlock(cq->domain);
	if (calm == HF_READY)
		return true;
	if (calm == HF_STUCK)
		limit = HF_STUCK_MS;
	if (left_ns >= 0 && (limit < 0 || left_ns < HF_STUCK_MS * 1000000LL))
		limit = (int)((left_ns + 999999) / 1000000);
	return poll(&fd, 1, limit) >= 0 || errno != EINTR;
}

static size_t threshold(const struct hf_cq *cq, const void *cond, size_t count)
{
	size_t n = cq->wait_cond == FI_CQ_COND_THRESHOLD ? (size_t)(uintptr_t)cond : 1;

	return n < 1 ? 1 : n < count ? n : count;
}

/* With a wait set, that is what one waits on. */
static bool may_block(const struct hf_cq *cq)
{
	return cq->wait_obj != FI_WAIT_NONE && cq->wait_obj != FI_WAIT_SET;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr,
			    const void *cond, int timeout)
{
	struct hf_cq *cq = hf_container(fid, struct hf_cq, fid);
	int64_t begun = hf_now_ns(), now = begun;
	size_t wanted = threshold(cq, cond, count);
	ssize_t taken;

	if (!may_block(cq))
		return -FI_ENOSYS;
	for (;;) {
		bool enough;

		hf_domain_lock(cq->domain);
		hf_domain_progress(cq->domain);
		/* An error ends a wait for more than one. */
		enough = cq->tail - cq->head >= wanted || cq->errors;
		taken = enough ? take(cq, buf, count, src_addr) : -FI_EAGAIN;
		if (cq->signalled && taken == -FI_EAGAIN) {
			cq->signalled = 0;
			taken = -FI_ECANCELED;
		}
		hf_domain_unlock(cq->domain);
		if (taken != -FI_EAGAIN)
			return taken == -FI_ECANCELED ? -FI_EAGAIN : taken;
		now = hf_now_ns();
		if (timeout >= 0 && now - begun >= timeout * 1000000LL)
			return cq_readfrom(fid, buf, count, src_addr);
		if (cq->wait.fd < 0)
			sched_yield();
		else if (now - begun > SPIN_NS &&
			 !doze(cq, timeout < 0 ? -1 : begun + timeout * 1000000LL - now))
			return cq_readfrom(fid, buf, count, src_addr);
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond,
			int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct hf_cq *cq = hf_container(fid, struct hf_cq, fid);

	if (cq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	hf_domain_lock(cq->domain);
	cq->signalled = 1;
	hf_wait_ring(&cq->wait);
	hf_domain_unlock(cq->domain);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
			       char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno < 0 ? -prov_errno : prov_errno);

	(void)fid;
	(void)err_data;
	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static int cq_control(struct fid *fid, int command, void *arg)
{
	const struct hf_cq *cq = hf_container(fid, struct hf_cq, fid.fid);

	return hf_wait_control(&cq->wait, cq->wait_obj, command, arg);
}

static void cq_free(struct hf_cq *cq)
{
	while (cq->errors) {
		struct hf_cq_error *error = cq->errors;

		cq->errors = error->next;
		free(error);
	}
	free(cq->told);
	hf_wait_close(&cq->wait, &cq->fid.fid);
	free(cq->entries);
	free(cq->sources);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct hf_cq *cq = hf_container(fid, struct hf_cq, fid.fid);

	if (__atomic_load_n(&cq->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	hf_domain_put(cq->domain);
	cq_free(cq);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(cq_close),
	.bind = hf_no_bind,
	.control = cq_control,
};

static int check_attr(const struct fi_cq_attr *attr)
{
	if (attr->size > MAX_SIZE)
		return -FI_EINVAL;
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_ENOSYS;
	if (attr->flags & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	return hf_wait_check(attr->wait_obj);
}

int hf_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out,
	       void *context)
{
	struct hf_cq *cq;
	int err = check_attr(attr);

	if (err)
		return err;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->domain = hf_container(fid, struct hf_domain, fid);
	cq->words = words_of(attr->format);
	cq->wait_obj = attr->wait_obj;
	cq->wait_cond = attr->wait_cond;
	cq->last_error = &cq->errors;
	for (cq->size = 1; cq->size < (attr->size ? attr->size : DEFAULT_SIZE); cq->size *= 2)
		;
	cq->entries = calloc(cq->size, sizeof(*cq->entries));
	cq->sources = calloc(cq->size, sizeof(*cq->sources));
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &fid_ops;
	cq->fid.ops = &cq_ops;
	err = hf_wait_open(&cq->wait, cq->domain, attr->wait_obj, attr->wait_set, &cq->fid.fid);
	if (!err && (!cq->entries || !cq->sources))
		err = -FI_ENOMEM;
	if (err) {
		cq_free(cq);
		return err;
	}
	attr->size = cq->size;
	hf_domain_get(cq->domain);
	*out = &cq->fid;
	return 0;
}
