// SPDX-License-Identifier: MIT
/* Devices and the objects made through them: what both kinds share. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "low/device.h"
#include "low/msan.h"

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static uint32_t open_lock;		/* lock.h */
static struct h_dev *open_devs;

int64_t h__now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Absolute time of a time-out; negative: never. */
int64_t h__deadline(int64_t timeout_ns)
{
	int64_t now;

	if (timeout_ns < 0)
		return -1;
	now = h__now_ns();
	return timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;
}

/* Under locks: the C library's getrandom() is a cancellation point. */
int h__random(void *buf, size_t n)
{
	ssize_t got = syscall(SYS_getrandom, buf, n, 0);

	if (got < 0)
		return -errno;
	h__filled(buf, (size_t)got);
	return (size_t)got == n ? 0 : -EIO;
}

bool h__is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

/*
 * A child inherits descriptors but no mappings. Through an inherited
 * descriptor it would keep its parent's context alive, and for the embedded
 * device look like a living parent after the parent is dead.
 */
static void before_fork(void)
{
	h__lock(&open_lock);
}

static void after_fork_parent(void)
{
	h__unlock(&open_lock);
}

static void after_fork_child(void)
{
	struct h_fork_fds *f;
	struct h_dev *dev;
	int i;

	h__lock_forked();
	for (dev = open_devs; dev; dev = dev->next_open) {
		close(dev->fd);
		dev->fd = -1;
		for (f = dev->fork_fds; f; f = f->next)
			for (i = 0; i < 3; i++)
				if (f->fd[i] >= 0)
					close(f->fd[i]);
	}
	open_devs = NULL;
	h__lock_renew(&open_lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void h__fork_fds_add(struct h_dev *dev, struct h_fork_fds *fds)
{
	h__lock(&open_lock);
	fds->next = dev->fork_fds;
	dev->fork_fds = fds;
	h__unlock(&open_lock);
}

void h__fork_fds_remove(struct h_dev *dev, struct h_fork_fds *fds)
{
	struct h_fork_fds **p;

	h__lock(&open_lock);
	for (p = &dev->fork_fds; *p != fds; p = &(*p)->next)
		;
	*p = fds->next;
	h__unlock(&open_lock);
}

static void forget(struct h_dev *dev)
{
	struct h_dev **p;

	for (p = &open_devs; *p; p = &(*p)->next_open) {
		if (*p == dev) {
			*p = dev->next_open;
			break;
		}
	}
}

static const char *default_name(void)
{
	const char *name = getenv("HAMLYN_DEVICE");

	return name && *name ? name : NULL;
}

/*
 * Then the embedded device will do. Not if there is one that refuses us: other processes
 * of the program may be let in, and would wait for us there.
 */
static bool no_kernel_device(int err)
{
	return err == -ENOENT || err == -ENXIO || err == -ENODEV;
}

static bool is_kernel_name(const char *name)
{
	static const char prefix[] = "/dev/hamlyn";
	const char *number = name + sizeof(prefix) - 1;

	return !strncmp(name, prefix, sizeof(prefix) - 1) && *number &&
	       strspn(number, "0123456789") == strlen(number);
}

static int open_kind(struct h_dev *dev, struct h_open_wait *wait)
{
	if (!strncmp(dev->name, "shm:", 4))
		return h__shm_open(dev, dev->name + 4, wait);
	if (is_kernel_name(dev->name))
		return h__kernel_open(dev, dev->name);
	return h__early(-EINVAL, "\"%.100s\": must be /dev/hamlynN or shm:NAME[,OPTION...]",
			dev->name);
}

/*
 * One piece to forks: a child that gets a descriptor which is not on the list
 * keeps it open, and with it the locks that say that its parent lives.
 */
static int open_once(struct h_dev *dev, struct h_open_wait *wait)
{
	int err;

	h__lock(&open_lock);
	err = open_kind(dev, wait);
	if (!err) {
		err = dev->ops->query(dev, &dev->limits);
		if (err)
			dev->ops->close(dev);
	}
	if (!err) {
		dev->next_open = open_devs;
		open_devs = dev;
	}
	h__unlock(&open_lock);
	return err;
}

/* It waits without the lock: forks, and those who open or close others, get on. */
static int open_named(struct h_dev *dev)
{
	struct h_open_wait wait = {};
	int err;

	while ((err = open_once(dev, &wait)) == H_OPEN_AGAIN)
		h__shm_open_wait(&wait);
	return err == -ETIMEDOUT ? h__change_late() : err;
}

static int open_as(const char *name, struct h_dev **out)
{
	static uint64_t serial;
	struct h_dev *dev;
	int err;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->fd = -1;
	dev->serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
	dev->pid = getpid();
	dev->name = strdup(name);
	if (!dev->name) {
		err = -ENOMEM;
		goto err_free;
	}
	err = open_named(dev);
	if (err)
		goto err_name;
	*out = dev;
	return 0;

err_name:
	free(dev->name);
err_free:
	free(dev);
	return err;
}

static int open_default(struct h_dev **out)
{
	int err = open_as("/dev/hamlyn0", out);

	if (!no_kernel_device(err))
		return err;
	h__early_begin();
	return open_as("shm:default", out);
}

/* A thread that is cancelled within would leave open_lock, and files, behind. */
int h_open(const char *name, struct h_dev **out)
{
	int err, cancel;

	*out = NULL;
	h__early_begin();
	/* A child that no handler of pthread_atfork() was called in begins here. */
	h__lock_forked();
	pthread_once(&fork_once, watch_forks);
	if (!name)
		name = default_name();
	cancel = h__cancel_off();
	err = name ? open_as(name, out) : open_default(out);
	h__cancel_restore(cancel);
	err = h__early_end(err, name ? name : (*out ? (*out)->name : "the default device"));
	/* Not of a wrong name: of something that this machine lacks. */
	if (err && err != -EINVAL)
		h__early_add("; see: hamlynctl doctor");
	return err;
}

/*
 * Give back what this process has of the objects. The device gives back the
 * rest, all at once, when it is closed: destroying them one by one could fail,
 * or wait for a peer.
 */
static void drop_objects(struct h_dev *dev, bool child)
{
	struct h_terminus *t;
	struct h_watch *w;
	struct h_slot *s;
	struct h_area *a;
	struct h_nq *nq;

	while ((w = dev->watches)) {
		dev->watches = w->next;
		free(w);
	}
	while ((t = dev->termini)) {
		dev->termini = t->next;
		dev->ops->terminus_forget(t, child);
		h__terminus_free(t);
	}
	while ((s = dev->slots)) {
		dev->slots = s->next;
		free(s);
	}
	while ((nq = dev->nqs)) {
		dev->nqs = nq->next;
		if (dev->ops->nq_forget)
			dev->ops->nq_forget(nq, child);
		free(nq);
	}
	while ((a = dev->areas)) {
		dev->areas = a->next;
		if (dev->ops->area_forget)
			dev->ops->area_forget(a, child);
		free(a);
	}
}

/*
 * Process numbers alone do not tell: in a PID namespace of its own a child may
 * have its parent's.
 */
bool h__in_child(const struct h_dev *dev)
{
	return dev->fd < 0 || dev->pid != getpid();
}

bool h__is_forked(const struct h_dev *dev)
{
	return dev->fd < 0;
}

int h__refuse_forked(struct h_dev *dev)
{
	return h__refuse(dev, -ENODEV, "a child of fork() has nothing of its parent's objects");
}

void h_close(struct h_dev *dev)
{
	bool child;
	int cancel;

	if (!dev)
		return;
	cancel = h__cancel_off();
	child = h__in_child(dev);
	drop_objects(dev, child);
	if (!child) {
		h__lock(&open_lock);
		forget(dev);
		dev->ops->close(dev);
		h__unlock(&open_lock);
	}
	free(dev->name);
	free(dev);
	h__cancel_restore(cancel);
}

const char *h_dev_name(const struct h_dev *dev)
{
	return dev->name;
}

int h_dev_is_embedded(const struct h_dev *dev)
{
	return !strncmp(dev->name, "shm:", 4);
}

int h_dev_fd(const struct h_dev *dev)
{
	return h_dev_is_embedded(dev) ? -EOPNOTSUPP : dev->fd;
}

int h_query(struct h_dev *dev, struct hamlyn_query *query)
{
	/* A child has nothing mapped that could tell. */
	if (h__in_child(dev))
		return -ENODEV;
	return dev->ops->query(dev, query);
}

/* As it was when the device was opened: it does not change, and a segment may be scribbled over. */
void h_dev_fabric(const struct h_dev *dev, struct h_fabric_id *id)
{
	memcpy(id->bytes, dev->limits.fabric_id, sizeof(id->bytes));
}

int h_dev_reaches(const struct h_dev *dev, const struct h_fabric_id *id)
{
	return !memcmp(dev->limits.fabric_id, id->bytes, sizeof(id->bytes));
}

int h_nic_set(struct h_dev *dev, const struct hamlyn_nic_set *set)
{
	int err = h__dev_lock(dev);

	if (err)
		return err;
	err = dev->ops->nic_set(dev, set);
	h__unlock(&dev->lock);
	return err;
}

int h_audit(struct h_dev *dev, struct hamlyn_audit_entry *entries,
	    uint32_t count, uint64_t *sequence)
{
	int n;

	if (!count)
		return 0;
	if (count > INT_MAX)
		count = INT_MAX;
	n = h__dev_lock(dev);
	if (n)
		return n;
	n = dev->ops->audit(dev, entries, count, sequence);
	h__unlock(&dev->lock);
	return n;
}

/* ---- why a call failed ---- */

int h__dev_lock(struct h_dev *dev)
{
	int err = h__change_lock(&dev->lock);

	if (err)
		return h__refuse(dev, err, "another thread changes something on this device");
	*h__why_text(dev) = 0;
	return 0;
}

uint64_t h__dev_whole(const struct h_dev *dev)
{
	return dev->priv ? H_EMBEDDED_WHOLE : UINT64_MAX;
}

uint64_t h__dev_at_once(const struct h_dev *dev)
{
	return dev->priv ? H_EMBEDDED_AT_ONCE : UINT64_MAX;
}

const struct hamlyn_query *h__dev_limits(const struct h_dev *dev)
{
	return &dev->limits;
}

int h__fd(int fd)
{
	int high, err;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	/* The least that is allowed must be below the limit. */
	err = errno == EINVAL ? -EMFILE : -errno;
	close(fd);
	return high < 0 ? err : high;
}

bool h__dev_signal_ends(const struct h_dev *dev)
{
	return h_dev_is_embedded(dev);
}

bool h__grace_needed(const struct h_dev *dev)
{
	return dev->ops->grace;
}

bool h__grace_over(struct h_dev *dev, struct h_grace **grace, uint32_t about)
{
	return !dev->ops->grace(dev, grace, about);
}

bool h__dev_changing(struct h_dev *dev)
{
	bool changing;

	if (!dev->ops->changing)
		return false;
	/* Another thread that changes them has it, and may wait itself. */
	if (!h__try_lock(&dev->lock))
		return true;
	changing = dev->ops->changing(dev);
	h__unlock(&dev->lock);
	return changing;
}

int h__dev_await_change(struct h_dev *dev)
{
	int err;

	if (!dev->ops->await_change)
		return 0;
	err = h__dev_lock(dev);
	if (err)
		return err;
	err = dev->ops->await_change(dev);
	h__unlock(&dev->lock);
	return err;
}

/* Of the calling thread's last call that may be asked about, and on which device it was. */
static __thread struct {
	uint64_t dev;
	char text[HAMLYN_EXPLAIN_BYTES];
} why;

static bool is_about(const struct h_dev *dev)
{
	return why.dev == dev->serial;
}

char *h__why_text(const struct h_dev *dev)
{
	/* What was said of another device is no reason of this one's. */
	if (!is_about(dev))
		why.text[0] = 0;
	why.dev = dev->serial;
	return why.text;
}

/* Only what is said in words: there are calls that are tried. */
void h__why_log(const struct h_dev *dev)
{
	if (is_about(dev) && why.text[0])
		h__log(H_LOG_INFO, "%.60s: %s", dev->name, why.text);
}

int h__refuse(struct h_dev *dev, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(h__why_text(dev), sizeof(why.text), format, args);
	va_end(args);
	h__why_log(dev);
	return err;
}

/* Each call forgets why the one before it failed, and those that undo are calls as well. */
void h__why_keep(struct h_dev *dev, struct h_why *kept)
{
	snprintf(kept->text, sizeof(kept->text), "%s", is_about(dev) ? why.text : "");
}

/* If it is another device that has something to say, that stays. */
void h__why_restore(struct h_dev *dev, const struct h_why *kept)
{
	if (kept->text[0] || is_about(dev))
		snprintf(h__why_text(dev), sizeof(why.text), "%s", kept->text);
}

int h_explain(struct h_dev *dev, char *text, size_t size)
{
	if (!size)
		return -EINVAL;
	if (!dev) {
		h__early_read(text, size);
		return 0;
	}
	snprintf(text, size, "%s", is_about(dev) ? why.text : "");
	if (is_about(dev))
		why.text[0] = 0;
	return 0;
}

/* ---- counters ---- */

static int stats(struct h_dev *dev, struct hamlyn_stats *s, uint32_t kind,
		 uint32_t id)
{
	memset(s, 0, sizeof(*s));
	s->size = sizeof(*s);
	s->kind = kind;
	s->id = id;
	return dev->ops->stats(dev, s);
}

int h_dev_stats(struct h_dev *dev, struct hamlyn_stats *s)
{
	return stats(dev, s, HAMLYN_STATS_NIC, 0);
}

int h_slot_stats(struct h_slot *slot, struct hamlyn_stats *s)
{
	return stats(slot->dev, s, HAMLYN_STATS_SLOT, slot->number);
}

int h_terminus_stats(struct h_terminus *t, struct hamlyn_stats *s)
{
	return stats(t->dev, s, HAMLYN_STATS_TERMINUS, t->id);
}
