// SPDX-License-Identifier: MIT
#include "event/eq.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "event/wait.h"
#include "event/waitset.h"

#define SOURCES_AT_ONCE	16

static void progress(struct hf_eq *eq)
{
	pthread_mutex_lock(&eq->cm);
	hf_source_serve(eq->wait, SOURCES_AT_ONCE);
	pthread_mutex_unlock(&eq->cm);
}

/* ---- events ------------------------------------------------------------- */

static void insert(struct hf_eq *eq, struct hf_event *event)
{
	const uint64_t one = 1;

	event->next = NULL;
	pthread_mutex_lock(&eq->lock);
	*eq->last = event;
	eq->last = &event->next;
	if (write(eq->bell, &one, sizeof(one)) < 0)
		hf_warn("event queue: bell: %s\n", strerror(errno));
	pthread_mutex_unlock(&eq->lock);
}

static struct hf_event *event_new(uint32_t type, size_t length)
{
	struct hf_event *event = calloc(1, sizeof(*event) + length);

	if (!event) {
		hf_warn("event queue: an event is lost for want of memory\n");
		return NULL;
	}
	event->type = type;
	event->length = length;
	return event;
}

static bool has_info(const struct hf_event *event)
{
	return !event->is_error && event->type == FI_CONNREQ &&
	       event->length >= sizeof(struct fi_eq_cm_entry);
}

/* An event that nobody has read. */
static void event_drop(struct hf_event *event)
{
	struct fi_eq_cm_entry entry;

	if (has_info(event)) {
		memcpy(&entry, event->body, sizeof(entry));
		fi_freeinfo(entry.info);
	}
	free(event);
}

/* Of connections; @info is the reader's then. */
void hf_eq_add(struct hf_eq *eq, uint32_t type, fid_t fid, struct fi_info *info,
	       const void *data, size_t length)
{
	struct hf_event *event = event_new(type, sizeof(struct fi_eq_cm_entry) + length);
	struct fi_eq_cm_entry entry = { .fid = fid, .info = info };

	if (!event) {
		fi_freeinfo(info);
		return;
	}
	memcpy(event->body, &entry, sizeof(entry));
	if (length)
		memcpy(event->body + sizeof(entry), data, length);
	insert(eq, event);
}

void hf_eq_add_error(struct hf_eq *eq, fid_t fid, int err, const void *data, size_t length)
{
	struct hf_event *event = event_new(0, length);

	if (!event)
		return;
	event->is_error = true;
	event->error = (struct fi_eq_err_entry){
		.fid = fid,
		.context = fid->context,
		.err = err,
		.prov_errno = err,
	};
	if (length)
		memcpy(event->body, data, length);
	insert(eq, event);
}

/* Of one of many that a call was to do. */
void hf_eq_add_failure(struct hf_eq *eq, fid_t fid, void *context, uint64_t index, int err)
{
	struct hf_event *event = event_new(0, 0);

	if (!event)
		return;
	event->is_error = true;
	event->error = (struct fi_eq_err_entry){
		.fid = fid, .context = context, .data = index, .err = err, .prov_errno = err,
	};
	insert(eq, event);
}

/* The events of what is about to be closed: nobody may be told its fid any more. */
void hf_eq_forget(struct hf_eq *eq, const struct fid *fid)
{
	struct hf_event **at = &eq->first;

	pthread_mutex_lock(&eq->lock);
	while (*at) {
		struct hf_event *event = *at;
		fid_t about = event->error.fid;

		/* All entries begin with it. */
		if (!event->is_error && event->length >= sizeof(about))
			memcpy(&about, event->body, sizeof(about));
		if (about != fid) {
			at = &event->next;
			continue;
		}
		*at = event->next;
		event_drop(event);
	}
	eq->last = at;
	pthread_mutex_unlock(&eq->lock);
}

/* Lock held. The bell is quiet when nothing is left. */
static void remove_first(struct hf_eq *eq)
{
	struct hf_event *event = eq->first;
	uint64_t drop;

	eq->first = event->next;
	if (eq->first)
		return;
	eq->last = &eq->first;
	if (read(eq->bell, &drop, sizeof(drop)) < 0 && errno != EAGAIN)
		hf_warn("event queue: bell: %s\n", strerror(errno));
}

/* ---- reading ------------------------------------------------------------ */

static ssize_t take(struct hf_eq *eq, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct hf_event *event = eq->first;
	size_t least;
	size_t length;

	if (!event)
		return -FI_EAGAIN;
	if (event->is_error)
		return -FI_EAVAIL;
	/* Data is cut to what fits, the entry in front of it is not. */
	least = event->type == FI_CONNREQ || event->type == FI_CONNECTED ||
		event->type == FI_SHUTDOWN ? sizeof(struct fi_eq_cm_entry) : event->length;
	if (least > event->length)
		least = event->length;
	if (len < least)
		return -FI_ETOOSMALL;
	length = len < event->length ? len : event->length;
	*type = event->type;
	memcpy(buf, event->body, length);
	if (!(flags & FI_PEEK)) {
		remove_first(eq);
		free(event);
	}
	return (ssize_t)length;
}

static void drop_told(struct hf_eq *eq)
{
	free(eq->told);
	eq->told = NULL;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct hf_eq *eq = hf_container(fid, struct hf_eq, fid);
	ssize_t result;

	progress(eq);
	pthread_mutex_lock(&eq->lock);
	drop_told(eq);
	result = take(eq, type, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return result;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct hf_eq *eq = hf_container(fid, struct hf_eq, fid);
	struct hf_event *event;
	void *data = buf->err_data;
	size_t room = buf->err_data_size;

	(void)flags;
	pthread_mutex_lock(&eq->lock);
	drop_told(eq);
	event = eq->first;
	if (!event || !event->is_error) {
		pthread_mutex_unlock(&eq->lock);
		return -FI_EAGAIN;
	}
	remove_first(eq);
	*buf = event->error;
	if (room && data && FI_VERSION_GE(eq->fabric->fid.api_version, FI_VERSION(1, 5))) {
		buf->err_data = data;
		buf->err_data_size = room < event->length ? room : event->length;
		memcpy(data, event->body, buf->err_data_size);
	} else {
		buf->err_data = event->length ? event->body : NULL;
		buf->err_data_size = event->length;
	}
	eq->told = event;
	pthread_mutex_unlock(&eq->lock);
	return sizeof(*buf);
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t type, const void *buf, size_t len,
			uint64_t flags)
{
	struct hf_eq *eq = hf_container(fid, struct hf_eq, fid);
	struct hf_event *event;

	(void)flags;
	event = event_new(type, len);
	if (!event)
		return -FI_ENOMEM;
	memcpy(event->body, buf, len);
	insert(eq, event);
	return (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct hf_eq *eq = hf_container(fid, struct hf_eq, fid);
	struct pollfd set = { .fd = eq->wait, .events = POLLIN };
	int64_t begun = hf_now_ms();

	if (eq->wait_obj == FI_WAIT_NONE || eq->wait_obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	for (;;) {
		ssize_t result = eq_read(fid, type, buf, len, flags);
		int left = timeout < 0 ? -1 : (int)(begun + timeout - hf_now_ms());

		if (result != -FI_EAGAIN || (timeout >= 0 && left <= 0))
			return result;
		if (poll(&set, 1, left) < 0)
			return errno == EINTR ? -FI_EAGAIN : -errno;
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data,
			       char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid;
	(void)err_data;
	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int hf_eq_calm(struct hf_eq *eq)
{
	bool empty;

	progress(eq);
	pthread_mutex_lock(&eq->lock);
	empty = !eq->first;
	pthread_mutex_unlock(&eq->lock);
	return empty ? HF_QUIET : HF_READY;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	const struct hf_eq *eq = hf_container(fid, struct hf_eq, fid.fid);
	const struct hf_wait wait = { .fd = eq->wait };

	return hf_wait_control(&wait, eq->wait_obj, command, arg);
}

static void eq_free(struct hf_eq *eq)
{
	while (eq->first) {
		struct hf_event *event = eq->first;

		eq->first = event->next;
		event_drop(event);
	}
	drop_told(eq);
	if (eq->set)
		hf_waitset_leave(eq->set, &eq->fid.fid, eq->wait);
	if (eq->wait >= 0)
		close(eq->wait);
	if (eq->bell >= 0)
		close(eq->bell);
	pthread_mutex_destroy(&eq->cm);
	pthread_mutex_destroy(&eq->lock);
	free(eq);
}

static int eq_close(struct fid *fid)
{
	struct hf_eq *eq = hf_container(fid, struct hf_eq, fid.fid);
	struct hf_fabric *fabric = eq->fabric;

	if (__atomic_load_n(&eq->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	eq_free(eq);
	hf_fabric_put(fabric);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(eq_close),
	.bind = hf_no_bind,
	.control = eq_control,
};

static int make_wait(struct hf_eq *eq)
{
	struct epoll_event event = { .events = EPOLLIN };

	eq->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	eq->wait = epoll_create1(EPOLL_CLOEXEC);
	if (eq->bell < 0 || eq->wait < 0 ||
	    epoll_ctl(eq->wait, EPOLL_CTL_ADD, eq->bell, &event))
		return -errno;
	return 0;
}

int hf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
	       void *context)
{
	struct hf_eq *eq;
	int err = hf_wait_check(attr->wait_obj);

	if (err)
		return err;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->wait_obj = attr->wait_obj;
	eq->last = &eq->first;
	pthread_mutex_init(&eq->cm, NULL);
	pthread_mutex_init(&eq->lock, NULL);
	eq->fabric = hf_container(fabric, struct hf_fabric, fid);
	err = make_wait(eq);
	if (!err && attr->wait_obj == FI_WAIT_SET)
		err = hf_waitset_join(attr->wait_set, eq->fabric, &eq->fid.fid, eq->wait,
				      &eq->set);
	if (err) {
		eq_free(eq);
		return err;
	}
	hf_fabric_get(eq->fabric);
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &fid_ops;
	eq->fid.ops = &eq_ops;
	*out = &eq->fid;
	return 0;
}
