// SPDX-License-Identifier: MIT
/*
 * copy_file: copies a file from one process to another over a channel. The receiver
 * works on what arrives where it arrived, counts it and computes a check sum, and
 * says whether that is the sender's before the sender believes it.
 */
#include <fcntl.h>

#include "example.h"

const char *const program = "copy_file";

#define CHUNK	(64u << 10)	/* as large as a buffer: then nothing is copied */

static const char usage[] =
"usage: copy_file [-d DEVICE] PATH FILE\n"
"       copy_file -l [-d DEVICE] [-m MODE] PATH FILE\n"
"\n"
"Sends FILE to a copy_file that listens at PATH; prints its length, check sum (FNV-1a)\n"
"and the speed. FILE may be - for standard input.\n"
"  -l         listen at PATH, take one file, and write it to FILE (or - for standard\n"
"             output)\n"
"  -d DEVICE  /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -m MODE    permission bits of PATH, octal: who may write to it may send (600)\n";

/* The last message, and the answer to it. */
struct end {
	char magic[8];		/* "the end" */
	uint64_t length;
	uint64_t sum;
};

static const struct end the_end = { .magic = "the end" };

static void print(const struct end *e, int64_t begin)
{
	double seconds = (double)(now_ns() - begin) / 1e9;

	fprintf(stderr, "%s: %llu bytes, fnv %016llx, %.3f s, %.0f MB/s\n", program,
		(unsigned long long)e->length, (unsigned long long)e->sum, seconds,
		(double)e->length / 1e6 / seconds);
}

/* ---- sending ------------------------------------------------------------ */

static size_t read_chunk(int fd, char *chunk)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < CHUNK && n) {
		n = read(fd, chunk + done, CHUNK - done);
		if (n < 0)
			die("read: %s", strerror(errno));
		done += (size_t)n;
	}
	return done;
}

/* Data goes in messages whose first byte is data: the end is told by an empty one. */
static void send_chunks(struct h_dev *dev, struct h_channel *ch, int fd,
			char *chunk, struct end *e)
{
	size_t n;

	while ((n = read_chunk(fd, chunk))) {
		must(dev, h_channel_send(ch, chunk, n, 30 * SECOND), "send");
		e->sum = fnv(e->sum, chunk, n);
		e->length += n;
	}
	must(dev, h_channel_send(ch, NULL, 0, 30 * SECOND), "send");
}

static void check_answer(struct h_dev *dev, struct h_channel *ch,
			 const struct end *e)
{
	struct h_message answer;

	must(dev, h_channel_request(ch, e, sizeof(*e), &answer, 30 * SECOND),
	     "the receiver's answer");
	if (answer.length != sizeof(*e) || memcmp(answer.data, e, sizeof(*e)))
		die("what the receiver has got is not what was sent");
	h_channel_release(ch, &answer);
}

static void sender(const char *device, const char *path, int fd)
{
	const struct h_channel_attr attr = { .flags = H_CONNECT_WAIT };
	int64_t begin = now_ns();
	struct end e = the_end;
	struct h_channel *ch;
	struct h_manager *m;
	struct h_dev *dev;
	void *chunk;

	e.sum = FNV_BEGIN;
	m = open_manager(device, &dev, 0);
	/* From here the NIC takes it: this process does not copy it. */
	must(dev, h_manager_alloc(m, CHUNK, &chunk), "memory");
	must(dev, h_channel_connect(m, path, &attr, &ch, 10 * SECOND), path);
	send_chunks(dev, ch, fd, chunk, &e);
	check_answer(dev, ch, &e);
	must(dev, h_channel_close(ch, 10 * SECOND), "close");
	print(&e, begin);
	h_manager_free(m, chunk);
	close_manager(m, dev);
}

/* ---- receiving ---------------------------------------------------------- */

static void write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0)
			die("write: %s", strerror(errno));
		p += done;
		n -= (size_t)done;
	}
}

static void next(struct h_dev *dev, struct h_channel *ch, struct h_message *m)
{
	must(dev, h_channel_receive(ch, m, 30 * SECOND), "receive");
}

static void receive_chunks(struct h_dev *dev, struct h_channel *ch, int fd,
			   struct end *e)
{
	struct h_message m;
	size_t n;

	do {
		next(dev, ch, &m);
		n = m.length;
		write_all(fd, m.data, n);
		e->sum = fnv(e->sum, m.data, n);
		e->length += n;
		h_channel_release(ch, &m);
	} while (n);
}

static void receiver(const char *device, const char *path, int fd, uint32_t mode)
{
	const struct h_listener_attr listen = { .mode = mode };
	const struct h_channel_attr attr = {
		.buffer_size = CHUNK,
	};
	struct h_listener *listener;
	struct end e = the_end;
	struct h_channel *ch;
	struct h_manager *m;
	struct h_message end;
	struct h_dev *dev;
	int64_t begin;
	bool same;

	e.sum = FNV_BEGIN;
	m = open_manager(device, &dev, 0);
	must(NULL, h_listener_create(path, &listen, &listener), path);
	must(dev, h_channel_accept(listener, m, &attr, &ch, H_FOREVER), "accept");
	h_listener_destroy(listener);
	begin = now_ns();
	receive_chunks(dev, ch, fd, &e);
	next(dev, ch, &end);
	same = end.length == sizeof(e) && !memcmp(end.data, &e, sizeof(e));
	h_channel_release(ch, &end);
	must(dev, h_channel_send(ch, &e, sizeof(e), 10 * SECOND), "answer");
	/* The sender closes, if it agrees. */
	h_channel_receive(ch, &end, 10 * SECOND);
	h_channel_close(ch, SECOND);
	if (!same)
		die("what arrived is not what was sent");
	print(&e, begin);
	close_manager(m, dev);
}

static int open_file(const char *name, bool out)
{
	int fd = out ? STDOUT_FILENO : STDIN_FILENO;

	if (strcmp(name, "-"))
		fd = open(name, out ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY,
			  0666);
	if (fd < 0)
		die("%s: %s", name, strerror(errno));
	return fd;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	const char *device = NULL;
	unsigned int mode = 0600;
	bool out = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "d:m:lh", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'm':
			if (sscanf(optarg, "%o", &mode) != 1 || mode & ~0777u)
				die("-m takes permission bits, as 666, not \"%s\"",
				    optarg);
			break;
		case 'l':
			out = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc - optind != 2) {
		fputs(usage, stderr);
		return 2;
	}
	if (out)
		receiver(device, argv[optind], open_file(argv[optind + 1], true),
			 mode);
	else
		sender(device, argv[optind], open_file(argv[optind + 1], false));
	return 0;
}
