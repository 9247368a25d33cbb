// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metrics over HTTP: one request a connection. Nothing that a client does takes more than a
 * connection, a page of memory and some seconds: there are few connections, the one that has been
 * silent longest makes room for a new one, and what is told is gathered once a second.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* ppoll(), accept4() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "health/metrics.h"

#define FIRST_FD	3	/* that systemd hands over */
#define MAX_SOCKETS	8
#define MAX_CLIENTS	64
#define REQUEST_BYTES	4096
#define DRAIN_TIMES	64
#define PATIENCE_MS	5000	/* for a request, and for its answer to be taken */
#define FRESH_MS	1000
#define NAP_MS		100	/* without a descriptor to accept with */

/* A text that several clients may be in the middle of. */
struct page {
	char *text;
	size_t length;
	unsigned int users;
	int64_t made_ms;
};

struct client {
	int fd;			/* less than 0: nobody */
	int64_t until_ms;
	const struct pollfd *polled;	/* by fill_fds() */
	size_t taken;		/* of the request */
	char request[REQUEST_BYTES];
	struct page *page;	/* once the request is there */
	size_t sent, total;	/* of the answer: head and page */
	size_t head_length;
	char head[256];
	bool head_only;
};

struct exporter {
	const struct readers *readers;
	/* Only those in use: ppoll() takes no more than RLIMIT_NOFILE. */
	struct pollfd fds[MAX_SOCKETS + MAX_CLIENTS];
	nfds_t count;
	int sockets;
	int64_t nap_until_ms;
	struct client clients[MAX_CLIENTS];
	struct page *fresh[METRICS_FORMATS];
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- pages --------------------------------------------------------------- */

static void page_put(struct page *page)
{
	if (page && !--page->users) {
		free(page->text);
		free(page);
	}
}

static struct page *page_new(char *text, size_t length)
{
	struct page *page = must_alloc(malloc(sizeof(*page)));

	*page = (struct page){ .text = text, .length = length, .users = 1, .made_ms = now_ms() };
	return page;
}

static struct page *page_of(const char *text)
{
	return page_new(must_alloc(strdup(text)), strlen(text));
}

static struct page *metrics_page(struct exporter *exporter, enum metrics_format format)
{
	struct page **fresh = &exporter->fresh[format];
	size_t length;
	char *text;

	if (!*fresh || now_ms() - (*fresh)->made_ms >= FRESH_MS) {
		page_put(*fresh);
		text = metrics_text(format, &length);
		*fresh = page_new(text, length);
	}
	(*fresh)->users++;
	return *fresh;
}

/* ---- one client ---------------------------------------------------------- */

static void client_end(struct client *client)
{
	close(client->fd);
	page_put(client->page);
	*client = (struct client){ .fd = -1 };
}

static void answer(struct client *client, const char *status, const char *type, struct page *page)
{
	client->page = page;
	client->head_length = (size_t)snprintf(client->head, sizeof(client->head),
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
		"Connection: close\r\n\r\n", status, type, page->length);
	client->total = client->head_length + (client->head_only ? 0 : page->length);
}

static void refuse(struct client *client, const char *status)
{
	char text[64];

	snprintf(text, sizeof(text), "%s\n", status);
	answer(client, status, "text/plain; charset=utf-8", page_of(text));
}

/* Prometheus asks for what it likes best; others get what everything reads. */
static enum metrics_format asked_format(const char *headers)
{
	static const char name[] = "Accept:", open[] = "application/openmetrics-text";
	const char *line;

	for (line = strchr(headers, '\n'); line; line = strchr(line + 1, '\n'))
		if (!strncasecmp(line + 1, name, strlen(name)))
			return memmem(line, strcspn(line + 1, "\n") + 1, open, strlen(open)) ?
			       METRICS_OPEN : METRICS_TEXT;
	return METRICS_TEXT;
}

static void answer_metrics(struct exporter *exporter, struct client *client)
{
	static const char *const types[METRICS_FORMATS] = {
		[METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
		[METRICS_OPEN] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	};
	enum metrics_format format = asked_format(client->request);

	if (!reader_is_admitted(exporter->readers, client->fd))
		refuse(client, "403 Forbidden");
	else
		answer(client, "200 OK", types[format], metrics_page(exporter, format));
}

/* The request line, and no more of the headers than what is wanted. */
static void answer_request(struct exporter *exporter, struct client *client)
{
	char method[8], target[256], version[16];

	if (strlen(client->request) != client->taken ||
	    sscanf(client->request, "%7[A-Z] %255[^ \r\n] HTTP/1.%15[^\r\n]", method, target,
		   version) != 3 || (strcmp(version, "0") && strcmp(version, "1"))) {
		refuse(client, "400 Bad Request");
		return;
	}
	client->head_only = !strcmp(method, "HEAD");
	target[strcspn(target, "?")] = '\0';
	if (strcmp(method, "GET") && !client->head_only)
		refuse(client, "405 Method Not Allowed");
	else if (!strcmp(target, "/metrics"))
		answer_metrics(exporter, client);
	else if (!strcmp(target, "/"))
		answer(client, "200 OK", "text/html; charset=utf-8",
		       page_of("<a href=\"/metrics\">hamlyn</a>\n"));
	else
		refuse(client, "404 Not Found");
}

/* False: it is gone, or has what it wanted. */
static bool client_write(struct client *client)
{
	bool of_head = client->sent < client->head_length;
	const char *from = of_head ? client->head + client->sent :
				     client->page->text + client->sent - client->head_length;
	size_t left = (of_head ? client->head_length : client->total) - client->sent;
	ssize_t n = send(client->fd, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	client->sent += (size_t)n;
	return client->sent < client->total;
}

static bool client_read(struct exporter *exporter, struct client *client)
{
	ssize_t n = recv(client->fd, client->request + client->taken,
			 REQUEST_BYTES - 1 - client->taken, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	client->taken += (size_t)n;
	client->request[client->taken] = '\0';
	if (memmem(client->request, client->taken, "\r\n\r\n", 4) ||
	    memmem(client->request, client->taken, "\n\n", 2))
		answer_request(exporter, client);
	else if (client->taken == REQUEST_BYTES - 1)
		refuse(client, "431 Request Header Fields Too Large");
	else
		return true;
	client->until_ms = now_ms() + PATIENCE_MS;
	return true;
}

/* What was not read would reset what was sent; a client that goes on and on has itself to blame. */
static void client_drain(struct client *client)
{
	int i;

	for (i = 0; i < DRAIN_TIMES; i++)
		if (recv(client->fd, client->request, REQUEST_BYTES, MSG_DONTWAIT) <= 0)
			break;
}

/* As much as can be done at once. */
static void client_serve(struct exporter *exporter, struct client *client)
{
	size_t before;

	if (!client->page && !client_read(exporter, client)) {
		client_end(client);
		return;
	}
	while (client->page) {
		before = client->sent;
		if (!client_write(client)) {
			shutdown(client->fd, SHUT_WR);
			client_drain(client);
			client_end(client);
		} else if (client->sent == before) {
			break;
		}
	}
}

/* ---- all of them --------------------------------------------------------- */

/* A free place, or that of whoever has least time left. */
static struct client *client_place(struct exporter *exporter)
{
	struct client *first = &exporter->clients[0], *client;
	size_t i;

	for (i = 0; i < MAX_CLIENTS; i++) {
		client = &exporter->clients[i];
		if (client->fd < 0)
			return client;
		if (client->until_ms < first->until_ms)
			first = client;
	}
	client_end(first);
	return first;
}

static void client_new(struct exporter *exporter, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			exporter->nap_until_ms = now_ms() + NAP_MS;
		return;
	}
	client = client_place(exporter);
	client->fd = fd;
	client->until_ms = now_ms() + PATIENCE_MS;
	client_serve(exporter, client);
}

/* Milliseconds until something is to be done, at most a minute */
static int fill_fds(struct exporter *exporter)
{
	int64_t now = now_ms(), next = now + 60000;
	bool naps = now < exporter->nap_until_ms;
	struct client *client;
	size_t i;

	if (naps)
		next = exporter->nap_until_ms;
	for (i = 0; i < (size_t)exporter->sockets; i++)
		exporter->fds[i] = (struct pollfd){ .fd = naps ? -1 : FIRST_FD + (int)i,
						    .events = POLLIN };
	exporter->count = i;
	for (i = 0; i < MAX_CLIENTS; i++) {
		client = &exporter->clients[i];
		if (client->fd < 0)
			continue;
		exporter->fds[exporter->count] = (struct pollfd){
			.fd = client->fd,
			.events = client->page ? POLLOUT : POLLIN,
		};
		client->polled = &exporter->fds[exporter->count++];
		if (client->until_ms < next)
			next = client->until_ms;
	}
	return next > now ? (int)(next - now) : 0;
}

static void serve_all(struct exporter *exporter)
{
	int64_t now = now_ms();
	struct client *client;
	size_t i;

	for (i = 0; i < MAX_CLIENTS; i++) {
		client = &exporter->clients[i];
		if (client->fd >= 0 && client->polled->revents)
			client_serve(exporter, client);
		if (client->fd >= 0 && now >= client->until_ms)
			client_end(client);
	}
	for (i = 0; i < (size_t)exporter->sockets; i++)
		if (exporter->fds[i].revents)
			client_new(exporter, exporter->fds[i].fd);
}

/* 0: there are none, or they are not for us. */
static int handed_over(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int listens, i, n = fds ? atoi(fds) : 0;
	socklen_t length = sizeof(listens);

	if (!pid || atol(pid) != getpid() || n < 1 || n > MAX_SOCKETS)
		return 0;
	for (i = FIRST_FD; i < FIRST_FD + n; i++) {
		if (getsockopt(i, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) || !listens)
			return 0;
		fcntl(i, F_SETFD, FD_CLOEXEC);
		fcntl(i, F_SETFL, fcntl(i, F_GETFL) | O_NONBLOCK);
	}
	return n;
}

int exporter_run(const struct readers *readers)
{
	struct exporter *exporter = must_alloc(calloc(1, sizeof(*exporter)));
	struct timespec time;
	sigset_t none;
	int status = STATUS_OK, ms;
	size_t i;

	exporter->readers = readers;
	exporter->sockets = handed_over();
	if (!exporter->sockets) {
		free(exporter);
		return refused("no socket was handed over; systemctl start hamlyn-metrics.socket");
	}
	for (i = 0; i < MAX_CLIENTS; i++)
		exporter->clients[i].fd = -1;
	sigemptyset(&none);
	stop_on_signal();
	while (!stop_asked()) {
		ms = fill_fds(exporter);
		time = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
		if (ppoll(exporter->fds, exporter->count, &time, &none) >= 0) {
			serve_all(exporter);
		} else if (errno != EINTR) {
			status = refused("cannot wait: %s", strerror(errno));
			break;
		}
	}
	for (i = 0; i < MAX_CLIENTS; i++)
		if (exporter->clients[i].fd >= 0)
			client_end(&exporter->clients[i]);
	for (i = 0; i < METRICS_FORMATS; i++)
		page_put(exporter->fresh[i]);
	free(exporter);
	return status;
}
