// SPDX-License-Identifier: MIT
/*
 * echo: a server returns what clients send it, and a client measures how long that
 * takes. Without a path it forks a server of its own. Clients are served one after the
 * other, each for as long as it wants: requests.c is a server of many at a time.
 */
#include <signal.h>
#include <string.h>

#include "example.h"

const char *const program = "echo";

struct options {
	const char *device;
	const char *path;
	size_t size;
	unsigned long count;
	unsigned long clients;
	bool listen;
	bool tickets;
};

static const char usage[] =
"usage: echo [-d DEVICE] [-s BYTES] [-n COUNT] [-t] [PATH]\n"
"       echo -l [-d DEVICE] [-c CLIENTS] [-t] PATH\n"
"\n"
"Sends messages to an echo server at PATH, checks what comes back, and prints how\n"
"long it took. Without PATH it starts the server itself.\n"
"  -l          be the server; PATH may begin with '@', or be HOST/NAME: of this host\n"
"  -c CLIENTS  and end after so many clients (default: serve for ever)\n"
"  -d DEVICE   /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -s BYTES    length of a message (default 64)\n"
"  -n COUNT    messages to measure (default 20000)\n"
"  -t          connect by tickets that are descriptors, on both sides\n";

/* ---- server ------------------------------------------------------------- */

/* Whatever a client does ends at most itself. */
static void serve(struct h_dev *dev, struct h_channel *ch)
{
	struct h_message m;
	int ret;

	while ((ret = h_channel_receive(ch, &m, H_FOREVER)) == 0) {
		ret = h_channel_send(ch, m.data, m.length, H_FOREVER);
		h_channel_release(ch, &m);
		if (ret)
			break;
	}
	if (ret != -ENODATA)
		complain(dev, ret, "a client was given up");
	h_channel_close(ch, SECOND);
}

/* Everybody may connect. HOST/NAME is no place that has a mode. */
static uint32_t mode_of(const char *path)
{
	size_t digits = strspn(path, "0123456789");

	return digits && path[digits] == '/' ? 0 : 0666;
}

static void server(const struct options *o)
{
	struct h_listener_attr attr = {
		.flags = o->tickets ? H_CONNECT_TICKETS : 0,
		.mode = mode_of(o->path),
	};
	struct h_listener *listener;
	struct h_channel *ch;
	struct h_manager *m;
	struct h_peer peer;
	struct h_dev *dev;
	unsigned long i;
	int err;

	m = open_manager(o->device, &dev, 0);
	attr.dev = dev;
	must(NULL, h_listener_create(o->path, &attr, &listener), o->path);
	for (i = 0; !o->clients || i < o->clients; i++) {
		err = h_channel_accept(listener, m, NULL, &ch, H_FOREVER);
		if (err) {
			turned_down(dev, err);
			continue;
		}
		h_channel_peer(ch, &peer);
		if (o->listen)
			printf("process %d of user %u\n", peer.pid, peer.uid);
		fflush(stdout);
		serve(dev, ch);
	}
	h_listener_destroy(listener);
	close_manager(m, dev);
}

/* ---- client ------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print_times(int64_t *times, unsigned long n)
{
	static const double percentiles[] = { 50, 90, 99, 99.9, 100, 0 };
	const double *p;

	qsort(times, n, sizeof(*times), compare);
	printf("round trip, microseconds:");
	for (p = percentiles; *p; p++) {
		unsigned long at = (unsigned long)((double)(n - 1) * *p / 100);

		printf(" p%g %.2f", *p, (double)times[at] / 1000);
	}
	putchar('\n');
}

/* One message there and back. */
static int64_t once(struct h_dev *dev, struct h_channel *ch,
		    unsigned char *data, size_t size, unsigned long i)
{
	struct h_message reply;
	int64_t begin = now_ns();

	if (size >= sizeof(i))
		memcpy(data, &i, sizeof(i));
	must(dev, h_channel_request(ch, data, size, &reply, 10 * SECOND), "request");
	begin = now_ns() - begin;
	if (reply.length != size || memcmp(reply.data, data, size))
		die("message %lu came back changed", i);
	h_channel_release(ch, &reply);
	return begin;
}

static void client(const struct options *o)
{
	const struct h_channel_attr attr = {
		.flags = H_CONNECT_WAIT |
				 (o->tickets ? H_CONNECT_TICKETS : 0),
	};
	int64_t *times = calloc(o->count, sizeof(*times));
	struct h_channel *ch;
	struct h_manager *m;
	struct h_dev *dev;
	unsigned long i;
	void *data;

	if (!times)
		die("no memory for %lu times", o->count);
	m = open_manager(o->device, &dev, 0);
	must(dev, h_manager_alloc(m, o->size + 1, &data), "memory");
	memset(data, 'e', o->size);
	must(dev, h_channel_connect(m, o->path, &attr, &ch, 5 * SECOND),
	     o->path);
	for (i = 0; i < 100; i++)
		once(dev, ch, data, o->size, i);
	for (i = 0; i < o->count; i++)
		times[i] = once(dev, ch, data, o->size, i);
	must(dev, h_channel_close(ch, 5 * SECOND), "close");
	print_times(times, o->count);
	h_manager_free(m, data);
	close_manager(m, dev);
	free(times);
}

static int both(struct options *o)
{
	char path[64];
	pid_t pid;

	o->path = own_path(path, sizeof(path), 0);
	o->clients = 1;
	pid = fork();
	if (pid < 0)
		die("cannot fork: %s", strerror(errno));
	if (!pid) {
		server(o);
		return 0;
	}
	client(o);
	return reap(1) ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct options o = { .size = 64, .count = 20000 };
	int opt;

	while ((opt = getopt_long(argc, argv, "d:s:n:c:lth", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			o.device = optarg;
			break;
		case 's':
			o.size = number("-s", optarg, 0, 16 << 20);
			break;
		case 'n':
			o.count = number("-n", optarg, 1, 100000000);
			break;
		case 'c':
			o.clients = number("-c", optarg, 1, 1000000000);
			break;
		case 'l':
			o.listen = true;
			break;
		case 't':
			o.tickets = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc - optind > 1 || (o.listen && argc == optind)) {
		fputs(usage, stderr);
		return 2;
	}
	o.path = argv[optind];
	if (!o.path)
		return both(&o);
	if (o.listen)
		server(&o);
	else
		client(&o);
	return 0;
}
