// SPDX-License-Identifier: GPL-2.0-only
/*
 * The launcher's side of PMI-1. A process sends one line and waits for one answer, so an
 * answer that does not fit into its socket means that it does not read any.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "pmi.h"

__attribute__((format(printf, 3, 4)))
static int fail(struct pmi_server *server, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(server->error, sizeof(server->error), format, args);
	va_end(args);
	server->status = status;
	return -1;
}

void pmi_deaf(struct pmi_server *server, int rank)
{
	fail(server, 1, "process %d sends requests on its PMI descriptor and does not read the "
	     "answers", rank);
}

/* A process that is gone does not hear it: its end will be noticed */
__attribute__((format(printf, 3, 4)))
static int answer(struct pmi_server *server, struct pmi_client *client, const char *format, ...)
{
	char text[PMI_LINE_BYTES];
	va_list args;
	ssize_t sent;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(text))
		return fail(server, 1, "an answer to process %d is too long", client->rank);
	if (client->far) {
		server->send(server->context, client->rank, text, (size_t)n);
		return 0;
	}
	sent = send(client->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent == n || (sent < 0 && errno != EAGAIN))
		return 0;
	pmi_deaf(server, client->rank);
	return -1;
}

/* ---- requests ----------------------------------------------------------- */

static int wrong(struct pmi_server *server, const struct pmi_client *client, const char *line)
{
	return fail(server, 1, "process %d sent what is no request of PMI-1 on its PMI "
		    "descriptor: \"%.80s\"", client->rank, line);
}

static int serve_init(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	long version = 0, subversion = 0;
	int rc;

	if (client->state != PMI_STRANGER)
		return fail(server, 1, "process %d joined twice: one program in each process can, "
			    "and once only", client->rank);
	pmi_line_number(line, "pmi_version", 0, LONG_MAX, &version);
	pmi_line_number(line, "pmi_subversion", 0, LONG_MAX, &subversion);
	rc = version == 1 && subversion <= 1 ? 0 : -1;
	if (!rc)
		client->state = PMI_JOINED;
	return answer(server, client, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n",
		      rc);
}

static int serve_maxes(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	(void)line;
	return answer(server, client, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n",
		      KVS_KEY_BYTES, KVS_KEY_BYTES, KVS_VALUE_BYTES);
}

static int serve_name(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	(void)line;
	return answer(server, client, "cmd=my_kvsname kvsname=%s\n", server->name);
}

static int serve_universe(struct pmi_server *server, struct pmi_client *client,
			  const char *line)
{
	(void)line;
	return answer(server, client, "cmd=universe_size size=%d\n", server->size);
}

static int serve_appnum(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	(void)line;
	return answer(server, client, "cmd=appnum appnum=0\n");
}

/* Is it of our store, with a key? */
static bool take_key(struct pmi_server *server, const char *line, char *key)
{
	char name[KVS_KEY_BYTES];

	return !pmi_line_field(line, "kvsname", name, sizeof(name)) &&
		!strcmp(name, server->name) &&
		!pmi_line_field(line, "key", key, KVS_KEY_BYTES) && *key;
}

static int serve_put(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	char key[KVS_KEY_BYTES], value[KVS_VALUE_BYTES];
	const char *why = "bad_key_or_value";

	if (take_key(server, line, key) && !pmi_line_field(line, "value", value, sizeof(value)))
		why = kvs_put(&server->kvs, client->rank, key, value);
	return answer(server, client, "cmd=put_result rc=%d msg=%s\n", why ? -1 : 0,
		      why ? why : "success");
}

static int serve_get(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	const char *value = NULL;
	char key[KVS_KEY_BYTES];

	if (take_key(server, line, key))
		value = kvs_get(&server->kvs, key);
	if (!value)
		return answer(server, client,
			      "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
	return answer(server, client, "cmd=get_result rc=0 msg=success value=%s\n", value);
}

int pmi_waiting(const struct pmi_server *server, int *first)
{
	int i, n = 0;

	for (i = server->size - 1; i >= 0; i--)
		if (server->clients[i].waiting) {
			*first = i;
			n++;
		}
	return n;
}

/* All who wait go on, also if one does not read its answers */
static int release(struct pmi_server *server, const char *text)
{
	int i, ret = 0;

	for (i = 0; i < server->size; i++) {
		if (!server->clients[i].waiting)
			continue;
		server->clients[i].waiting = false;
		if (answer(server, &server->clients[i], "%s", text) < 0)
			ret = -1;
	}
	return ret;
}

int pmi_refuse(struct pmi_server *server)
{
	return release(server, "cmd=barrier_out rc=-1\n");
}

static int serve_barrier(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	int first;

	if (client->waiting)
		return wrong(server, client, line);
	client->waiting = true;
	if (pmi_waiting(server, &first) < server->size)
		return 0;
	return release(server, "cmd=barrier_out\n");
}

static int serve_finalize(struct pmi_server *server, struct pmi_client *client,
			  const char *line)
{
	(void)line;
	client->state = PMI_LEFT;
	client->waiting = false;
	return answer(server, client, "cmd=finalize_ack\n");
}

static int serve_abort(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	long code = 1;

	pmi_line_number(line, "exitcode", LONG_MIN, LONG_MAX, &code);
	client->state = PMI_LEFT;
	return fail(server, code & 0xff ? (int)(code & 0xff) : 1,
		    "process %d gave up (abort, code %ld)", client->rank, code);
}

static const struct command {
	const char *name;
	int (*serve)(struct pmi_server *server, struct pmi_client *client, const char *line);
	bool joined;	/* only between init and finalize */
} commands[] = {
	{ "init", serve_init, false },
	{ "get_maxes", serve_maxes, true },
	{ "get_my_kvsname", serve_name, true },
	{ "get_universe_size", serve_universe, true },
	{ "get_appnum", serve_appnum, true },
	{ "put", serve_put, true },
	{ "get", serve_get, true },
	{ "barrier_in", serve_barrier, true },
	{ "finalize", serve_finalize, true },
	{ "abort", serve_abort, false },
};

static int serve_line(struct pmi_server *server, struct pmi_client *client, const char *line)
{
	const struct command *command;
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		command = &commands[i];
		if (!pmi_line_is(line, command->name))
			continue;
		if (command->joined && client->state != PMI_JOINED)
			return fail(server, 1, "process %d says %s on its PMI descriptor %s",
				    client->rank, command->name,
				    client->state == PMI_LEFT ? "after finalize" : "before init");
		return command->serve(server, client, line);
	}
	return wrong(server, client, line);
}

/* ---- lines -------------------------------------------------------------- */

static int serve_lines(struct pmi_server *server, struct pmi_client *client)
{
	size_t used = 0, length;
	char *line, *end;

	while ((end = memchr(client->in + used, '\n', client->len - used))) {
		line = client->in + used;
		length = (size_t)(end - line);
		if (!pmi_line_is_text(line, length))
			return wrong(server, client, "(no text)");
		*end = 0;
		used += length + 1;
		if (serve_line(server, client, line) < 0)
			return -1;
	}
	client->len -= used;
	memmove(client->in, client->in + used, client->len);
	if (client->len == sizeof(client->in))
		return wrong(server, client, "(a line without an end)");
	return 1;
}

static void close_client(struct pmi_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

int pmi_serve(struct pmi_server *server, int rank)
{
	struct pmi_client *client = &server->clients[rank];
	ssize_t n;

	if (client->fd < 0)
		return 0;
	n = recv(client->fd, client->in + client->len, sizeof(client->in) - client->len,
		 MSG_DONTWAIT);
	if (n > 0) {
		client->len += (size_t)n;
		return serve_lines(server, client);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* The end: that of the process tells more, and comes soon */
	close_client(client);
	return 0;
}

int pmi_feed(struct pmi_server *server, int rank, const char *text, size_t n)
{
	struct pmi_client *client = &server->clients[rank];
	size_t part;

	while (n) {
		part = sizeof(client->in) - client->len;
		part = n < part ? n : part;
		memcpy(client->in + client->len, text, part);
		client->len += part;
		text += part;
		n -= part;
		if (serve_lines(server, client) < 0)
			return -1;
	}
	return 0;
}

int pmi_detach(struct pmi_server *server, int rank)
{
	int ret;

	do
		ret = pmi_serve(server, rank);
	while (ret > 0);
	close_client(&server->clients[rank]);
	server->clients[rank].waiting = false;
	return ret;
}

/* ---- all of them -------------------------------------------------------- */

void pmi_init(struct pmi_server *server, int size)
{
	struct timespec now;
	int i;

	clock_gettime(CLOCK_REALTIME, &now);
	/* The time tells the run from an earlier one by a process of the same number */
	snprintf(server->name, sizeof(server->name), "hamlyn-run-%ld-%lld.%09ld",
		 (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
	server->size = size;
	server->clients = allocate((size_t)size, sizeof(*server->clients));
	for (i = 0; i < size; i++) {
		server->clients[i].rank = i;
		server->clients[i].fd = -1;
	}
	kvs_init(&server->kvs, size);
}

void pmi_uninit(struct pmi_server *server)
{
	int i;

	for (i = 0; i < server->size; i++)
		close_client(&server->clients[i]);
	free(server->clients);
	kvs_uninit(&server->kvs);
}

void pmi_attach(struct pmi_server *server, int rank, int fd)
{
	server->clients[rank].fd = fd;
}
