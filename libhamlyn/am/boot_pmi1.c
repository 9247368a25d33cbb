// SPDX-License-Identifier: MIT
/*
 * Start-up by PMI-1: hamlyn-run, MPICH's Hydra, Slurm. Each request is one line, and so is
 * each answer. The store of texts has one key for all processes, hence "<key>-<rank>".
 * Values stand in such lines; am_boot_check() refuses what would break them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot_text.h"
#include "boot_wire.h"

#define STORE_KEY_BYTES	(AM_BOOT_KEY_BYTES + 12)	/* "-" and a rank */

/**
 * struct pmi1 - the connection
 * @wire: the lines
 * @store: name of the store ("kvsname")
 * @key_max: bytes of a key, as the launcher says, with the 0 at the end
 * @value_max: of a value
 * @fencing: barrier_out has not come yet
 */
struct pmi1 {
	struct am_wire wire;
	char store[AM_BOOT_JOB_BYTES];
	long key_max;
	long value_max;
	bool fencing;
};

/* ---- requests ----------------------------------------------------------- */

static int unexpected(struct am_boot *boot, const struct pmi1 *pmi1, const char *wanted,
		      const char *line)
{
	return am_boot_fail(boot, -EPROTO, "the launcher should say %s, and says \"%.60s\" (%s)",
			    wanted, line, pmi1->wire.name);
}

/* The next line, which has to be of command @wanted */
static int expect(struct am_boot *boot, struct pmi1 *pmi1, const char *wanted,
		  const char **line)
{
	int ret = am_wire_line(boot, &pmi1->wire, am_wire_deadline(AM_WIRE_WAIT_MS), line);

	if (ret < 0)
		return ret;
	return pmi_line_is(*line, wanted) ? 0 : unexpected(boot, pmi1, wanted, *line);
}

/* One request and its answer; the caller looks at a result code */
__attribute__((format(printf, 5, 6)))
static int ask(struct am_boot *boot, struct pmi1 *pmi1, const char *wanted, const char **line,
	       const char *format, ...)
{
	char text[PMI_LINE_BYTES];
	va_list args;
	int n, ret;

	if (pmi1->fencing)
		return am_boot_fail(boot, -EBUSY, "a fence is under way");
	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(text))
		return am_boot_fail(boot, -EMSGSIZE, "a request to the launcher is too long");
	ret = am_wire_send(boot, &pmi1->wire, text);
	return ret < 0 ? ret : expect(boot, pmi1, wanted, line);
}

/* Answers without a result code are good ones */
static bool is_refused(const char *line)
{
	long rc = 0;
	int ret = pmi_line_number(line, "rc", LONG_MIN, LONG_MAX, &rc);

	return ret == -EINVAL || rc;
}

/* ---- opening ------------------------------------------------------------ */

static int from_environment(struct am_boot *boot, const char *name, long min, long max,
			    long *number)
{
	const char *text = getenv(name);

	if (!text || pmi_number(text, min, max, number) < 0)
		return am_boot_fail(boot, -EINVAL,
				    "the launcher sets %s to \"%.40s\", not to %ld ... %ld",
				    name, text ? text : "", min, max);
	return 0;
}

static int attach_descriptor(struct am_boot *boot, struct pmi1 *pmi1)
{
	long fd, size, rank;
	int ret = from_environment(boot, "PMI_FD", 0, INT_MAX, &fd);

	if (!ret)
		ret = from_environment(boot, "PMI_SIZE", 1, INT_MAX, &size);
	if (!ret)
		ret = from_environment(boot, "PMI_RANK", 0, size - 1, &rank);
	if (ret < 0)
		return ret;
	pmi1->wire.fd = (int)fd;
	snprintf(pmi1->wire.name, sizeof(pmi1->wire.name), "PMI_FD=%ld", fd);
	boot->size = (int)size;
	boot->rank = (int)rank;
	return 0;
}

/* A line "cmd=set size=4" */
static int take_setting(struct am_boot *boot, struct pmi1 *pmi1, const char *name, long min,
			long max, long *number)
{
	const char *line;
	int ret = expect(boot, pmi1, "set", &line);

	if (ret < 0)
		return ret;
	return pmi_line_number(line, name, min, max, number) < 0 ?
		unexpected(boot, pmi1, name, line) : 0;
}

static int attach_port(struct am_boot *boot, struct pmi1 *pmi1, const char *where)
{
	long id, size, rank, debug;
	const char *line;
	int ret = from_environment(boot, "PMI_ID", 0, INT_MAX, &id);

	if (!ret)
		ret = am_wire_connect(boot, &pmi1->wire, where);
	if (!ret)
		ret = ask(boot, pmi1, "initack", &line, "cmd=initack pmiid=%ld\n", id);
	if (!ret)
		ret = take_setting(boot, pmi1, "size", 1, INT_MAX, &size);
	if (!ret)
		ret = take_setting(boot, pmi1, "rank", 0, size - 1, &rank);
	if (!ret)
		ret = take_setting(boot, pmi1, "debug", LONG_MIN, LONG_MAX, &debug);
	if (ret < 0)
		return ret;
	boot->size = (int)size;
	boot->rank = (int)rank;
	return 0;
}

static int agree(struct am_boot *boot, struct pmi1 *pmi1)
{
	const char *line;
	int ret = ask(boot, pmi1, "response_to_init", &line,
		      "cmd=init pmi_version=1 pmi_subversion=1\n");

	if (ret < 0)
		return ret;
	if (is_refused(line))
		return am_boot_fail(boot, -EPROTO, "the launcher refuses PMI 1.1: \"%.80s\"", line);
	ret = ask(boot, pmi1, "maxes", &line, "cmd=get_maxes\n");
	if (ret < 0)
		return ret;
	if (pmi_line_number(line, "keylen_max", 1, INT_MAX, &pmi1->key_max) < 0 ||
	    pmi_line_number(line, "vallen_max", 1, INT_MAX, &pmi1->value_max) < 0)
		return unexpected(boot, pmi1, "keylen_max and vallen_max", line);
	return 0;
}

/* The name of the store is the launcher's for this run, and so names the job */
static int learn_job(struct am_boot *boot, struct pmi1 *pmi1)
{
	const char *line;
	int ret = ask(boot, pmi1, "my_kvsname", &line, "cmd=get_my_kvsname\n");

	if (ret < 0)
		return ret;
	ret = pmi_line_field(line, "kvsname", pmi1->store, sizeof(pmi1->store));
	if (ret == -EMSGSIZE)
		return am_boot_fail(boot, -EPROTO,
				    "the launcher's kvsname has more than %zu bytes",
				    sizeof(pmi1->store) - 1);
	if (ret < 0 || !*pmi1->store)
		return unexpected(boot, pmi1, "kvsname", line);
	memcpy(boot->job, pmi1->store, sizeof(pmi1->store));
	return 0;
}

static int open_all(struct am_boot *boot, struct pmi1 *pmi1)
{
	const char *port = getenv("PMI_PORT");
	int ret;

	if (getenv("PMI_FD"))
		ret = attach_descriptor(boot, pmi1);
	else
		ret = attach_port(boot, pmi1, port);
	if (!ret)
		ret = agree(boot, pmi1);
	/* The launcher's, as is known now: not for programs that this one runs. */
	if (!ret && fcntl(pmi1->wire.fd, F_SETFD, FD_CLOEXEC) < 0)
		ret = am_boot_fail(boot, -errno, "%s: %s", pmi1->wire.name, strerror(errno));
	if (!ret)
		ret = learn_job(boot, pmi1);
	return ret;
}

static void release(struct am_boot *boot)
{
	struct pmi1 *pmi1 = boot->priv;

	if (pmi1->wire.fd >= 0)
		close(pmi1->wire.fd);
	free(pmi1);
	boot->priv = NULL;
}

/*
 * Who failed keeps the descriptor: some launchers end all as soon as it is closed; and
 * what PMI_FD names may be no descriptor of the launcher's after all.
 */
static void keep_and_release(struct am_boot *boot)
{
	struct pmi1 *pmi1 = boot->priv;

	pmi1->wire.fd = -1;
	release(boot);
}

static int pmi1_open(struct am_boot *boot)
{
	struct pmi1 *pmi1;
	int ret;

	if (!getenv("PMI_FD") && !getenv("PMI_PORT"))
		return 0;
	pmi1 = calloc(1, sizeof(*pmi1));
	if (!pmi1)
		return am_boot_fail(boot, -ENOMEM, "no memory to start");
	pmi1->wire.fd = -1;
	boot->priv = pmi1;
	ret = open_all(boot, pmi1);
	if (ret < 0) {
		keep_and_release(boot);
		return ret;
	}
	return 1;
}

/* ---- texts -------------------------------------------------------------- */

static int store_key(struct am_boot *boot, const char *key, int rank, char *text)
{
	const struct pmi1 *pmi1 = boot->priv;
	int n = snprintf(text, STORE_KEY_BYTES, "%s-%d", key, rank);

	if (n >= pmi1->key_max)
		return am_boot_fail(boot, -EMSGSIZE,
				    "the launcher takes keys of at most %ld bytes, not \"%s\"",
				    pmi1->key_max - 1, text);
	return 0;
}

static int pmi1_put(struct am_boot *boot, const char *key, const char *value)
{
	struct pmi1 *pmi1 = boot->priv;
	char text[STORE_KEY_BYTES];
	const char *line;
	int ret = am_boot_check(boot, key, value);

	if (!ret)
		ret = store_key(boot, key, boot->rank, text);
	if (ret < 0)
		return ret;
	if ((long)strlen(value) >= pmi1->value_max)
		return am_boot_fail(boot, -EMSGSIZE,
				    "the launcher takes values of at most %ld bytes",
				    pmi1->value_max - 1);
	ret = ask(boot, pmi1, "put_result", &line, "cmd=put kvsname=%s key=%s value=%s\n",
		  pmi1->store, text, value);
	if (ret < 0)
		return ret;
	if (is_refused(line))
		return am_boot_fail(boot, -EIO, "the launcher refuses to publish \"%s\": \"%.80s\"",
				    text, line);
	return 0;
}

static int pmi1_get(struct am_boot *boot, int rank, const char *key, char *value)
{
	struct pmi1 *pmi1 = boot->priv;
	char text[STORE_KEY_BYTES];
	const char *line;
	int ret = am_boot_check(boot, key, NULL);

	if (!ret)
		ret = am_boot_check_rank(boot, rank);
	if (!ret)
		ret = store_key(boot, key, rank, text);
	if (!ret)
		ret = ask(boot, pmi1, "get_result", &line, "cmd=get kvsname=%s key=%s\n",
			  pmi1->store, text);
	if (ret < 0)
		return ret;
	if (is_refused(line))
		return am_boot_fail(boot, -ENOENT, "process %d has not published \"%s\"", rank,
				    key);
	ret = pmi_line_field(line, "value", value, AM_BOOT_VALUE_BYTES);
	return ret < 0 ? unexpected(boot, pmi1, "a value", line) : 0;
}

/* ---- waiting for all ---------------------------------------------------- */

static int pmi1_fence_begin(struct am_boot *boot)
{
	struct pmi1 *pmi1 = boot->priv;
	int ret;

	if (pmi1->fencing)
		return am_boot_fail(boot, -EBUSY, "a fence is under way");
	ret = am_wire_send(boot, &pmi1->wire, "cmd=barrier_in\n");
	pmi1->fencing = !ret;
	return ret;
}

static int pmi1_fence_done(struct am_boot *boot)
{
	struct pmi1 *pmi1 = boot->priv;
	const char *line;
	int ret;

	if (!pmi1->fencing)
		return am_boot_fail(boot, -EINVAL, "no fence was begun");
	ret = am_wire_line(boot, &pmi1->wire, 0, &line);
	if (ret <= 0)
		return ret;
	pmi1->fencing = false;
	if (!pmi_line_is(line, "barrier_out") || is_refused(line))
		return unexpected(boot, pmi1, "barrier_out", line);
	return 1;
}

/* ---- leaving ------------------------------------------------------------ */

/* Without the answer the launcher would take this process for one that broke off */
static void take_leave(struct am_boot *boot, struct pmi1 *pmi1, int wait_ms)
{
	int64_t deadline = am_wire_deadline(wait_ms);
	const char *line;

	if (am_wire_send(boot, &pmi1->wire, "cmd=finalize\n") < 0)
		return;
	/* What a fence that nobody waited for still brings comes first */
	while (am_wire_line(boot, &pmi1->wire, deadline, &line) > 0)
		if (pmi_line_is(line, "finalize_ack"))
			return;
}

static void pmi1_close(struct am_boot *boot, enum am_boot_end end)
{
	if (end == AM_BOOT_FAILED) {
		keep_and_release(boot);
		return;
	}
	take_leave(boot, boot->priv, end == AM_BOOT_LOST ? AM_WIRE_LEAVE_MS : AM_WIRE_WAIT_MS);
	release(boot);
}

const struct am_boot_ops am_boot_pmi1 = {
	.name = "PMI-1",
	.open = pmi1_open,
	.put = pmi1_put,
	.get = pmi1_get,
	.fence_begin = pmi1_fence_begin,
	.fence_done = pmi1_fence_done,
	.close = pmi1_close,
};
