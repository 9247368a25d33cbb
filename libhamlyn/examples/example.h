/* SPDX-License-Identifier: MIT */
/* What the examples share: errors that say what to do, options, time. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hamlyn/channel.h>

#define SECOND	1000000000LL

extern const char *const program;	/* in each program */

static inline _Noreturn __attribute__((format(printf, 1, 2)))
void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* A negative errno, with the device's reason. */
static inline void complain(struct h_dev *dev, int64_t err, const char *what)
{
	char why[HAMLYN_EXPLAIN_BYTES] = "";

	if (dev)
		h_explain(dev, why, sizeof(why));
	fprintf(stderr, "%s: %s: %s%s%s\n", program, what,
		err == -ENODATA ? "the other end has closed" : strerror((int)-err),
		*why ? ": " : "", why);
}

/* For library calls, what they return. Not for what a server's clients can bring about. */
static inline int64_t must(struct h_dev *dev, int64_t ret, const char *what)
{
	if (ret >= 0)
		return ret;
	complain(dev, ret, what);
	exit(1);
}

/* What accepting fails with is one client's matter, and the next one's turn. */
static inline void turned_down(struct h_dev *dev, int64_t err)
{
	const struct timespec nap = { .tv_nsec = 10000000 };

	complain(dev, err, "a client was turned down");
	/* There it is still in line, and would be tried again at once. */
	if (err == -EMFILE || err == -ENFILE)
		nanosleep(&nap, NULL);
}

static inline unsigned long number(const char *option, const char *text,
				   unsigned long min, unsigned long max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || n < min || n > max)
		die("%s takes a number from %lu to %lu, not \"%s\"", option, min,
		    max, text);
	return n;
}

static inline int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* FNV-1a: tells whether data is what was sent. It protects nothing. */
#define FNV_BEGIN	14695981039346656037ULL

static inline uint64_t fnv(uint64_t h, const void *data, size_t length)
{
	const unsigned char *p = data;

	while (length--)
		h = (h ^ *p++) * 1099511628211ULL;
	return h;
}

/* A device and a manager on it, for one thread. */
static inline struct h_manager *open_manager(const char *device, struct h_dev **dev,
					     uint32_t nq_entries)
{
	const struct h_manager_attr attr = {
		.nq_entries = nq_entries,
		.flags = H_MANAGER_SINGLE,
	};
	struct h_manager *m;

	must(NULL, h_open(device, dev), device ? device : "default device");
	must(*dev, h_manager_create(*dev, &attr, &m), "manager");
	return m;
}

static inline void close_manager(struct h_manager *m, struct h_dev *dev)
{
	h_manager_destroy(m);
	h_close(dev);
}

/* A name that nobody else uses, for programs that fork their own peers. */
static inline const char *own_path(char *path, size_t size, int i)
{
	snprintf(path, size, "@hamlyn-%s-%d.%d", program, getpid(), i);
	return path;
}

/* Wait for all children; true if none failed. */
static inline bool reap(int children)
{
	bool good = true;
	int status;

	while (children--)
		if (wait(&status) < 0 || status)
			good = false;
	return good;
}

#endif /* EXAMPLE_H */
