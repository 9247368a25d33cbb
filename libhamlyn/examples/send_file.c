// SPDX-License-Identifier: MIT
/*
 * send_file: streams a file into the message area of receive_file. It decides
 * where each chunk goes; credits tell it which places are free again. See
 * transfer.h.
 */
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>

#include "transfer.h"

#define BUFFERS		8U	/* chunks of the file that the NIC may be reading */

const char *const program = "send_file";

struct sender {
	const char *path;
	int file;
	uint64_t size;
	bool quiet;
	double patience;
	struct transfer_ticket to;

	struct h_dev *dev;
	struct h_area *out;
	struct h_area *in;	/* for the receiver's words to be sent at all */
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	int64_t handles[BUFFERS];	/* of the message last sent from each */

	struct sha256_ctx sha;
	uint64_t sent;		/* messages */
	uint64_t used;		/* of which the receiver is through with */
	uint64_t bytes;
};

static const char usage[] =
"usage: send_file [-d DEVICE] [-T SECONDS] [-q] -t TICKETFILE FILE\n"
"\n"
"Sends a file to the receive_file that wrote TICKETFILE; prints its SHA-256,\n"
"its length, the time until the receiver had checked it, and the speed.\n"
"  -d DEVICE   /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -T SECONDS  longest silence of the receiver to wait through (default 60)\n"
"  -q          no progress on stderr\n";

static void open_file(struct sender *s)
{
	struct stat stat;

	s->file = open(s->path, O_RDONLY | O_CLOEXEC);
	if (s->file < 0 || fstat(s->file, &stat) < 0)
		die("cannot open %s: %s", s->path, strerror(errno));
	if (!S_ISREG(stat.st_mode))
		die("%s is not a regular file", s->path);
	s->size = (uint64_t)stat.st_size;
}

static void make_ends(struct sender *s, const char *device)
{
	struct h_slot_attr attr = { 0 };
	uint32_t i;

	must(h_open(device, &s->dev), device ? device : "default device");
	must(h_area_alloc(s->dev, (size_t)s->to.chunk * BUFFERS, &s->out), "send area");
	must(h_terminus_create(s->dev, NULL, &s->terminus), "terminus");
	must(h_terminus_bind(s->terminus, 0, s->out, 0, 0), "send area");
	must(h_area_alloc(s->dev, 4096, &s->in), "area for words");
	/* A word for every quarter of the ring: never more than a few at a time. */
	must(h_nq_create(s->dev, 64, &s->nq), "notification queue");
	attr.area = s->in;
	attr.nq = s->nq;
	must(h_slot_create(s->dev, &attr, &s->slot), "slot");
	for (i = 0; i < BUFFERS; i++)
		s->handles[i] = -1;
}

/* ---- words from the receiver -------------------------------------------- */

static uint64_t take_word(struct sender *s)
{
	struct hamlyn_nq_entry entry;

	transfer_wait(s->nq, &entry, s->patience, "receiver");
	if (!(entry.flags & HAMLYN_NQE_FAST))
		die("a message where a word was due");
	if ((entry.data & TRANSFER_WHAT) == TRANSFER_FAILED)
		die("the receiver gave up after %llu messages",
		    (unsigned long long)(entry.data & ~TRANSFER_WHAT));
	s->used = entry.data & ~TRANSFER_WHAT;
	if (s->used > s->sent)
		die("the receiver is through with more than was sent");
	return entry.data & TRANSFER_WHAT;
}

static void wait_for_place(struct sender *s)
{
	while (s->sent - s->used >= s->to.chunks)
		take_word(s);
}

/* ---- messages ----------------------------------------------------------- */

static int64_t send_one(struct sender *s, enum transfer_kind kind, uint64_t value,
			const void *payload, uint32_t length)
{
	struct transfer_meta meta = {
		.magic = TRANSFER_MAGIC,
		.kind = kind,
		.sequence = s->sent,
		.value = value,
		.length = length,
	};
	struct h_ticket ticket = s->to.ticket;
	struct h_msg msg = {
		.ticket = &ticket,
		.data = payload,
		.length = length,
		.meta = &meta,
		.meta_length = sizeof(meta),
	};
	uint32_t place;

	wait_for_place(s);
	/* A ticket is a plain value: ours covers the ring, this one a place in it. */
	place = (uint32_t)(s->sent % s->to.chunks);
	ticket.base += (uint64_t)place * s->to.chunk;
	ticket.length = s->to.chunk;
	ticket.meta_index = place;
	s->sent++;
	return transfer_send(s->terminus, &msg, s->patience);
}

static void say_hello(struct sender *s)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct h_ticket ticket;

	must(h_slot_ticket(s->slot, 0, 0, HAMLYN_META_FAST, &ticket), "own ticket");
	h_ticket_export(&ticket, bytes);
	send_one(s, TRANSFER_OPEN, s->size, bytes, sizeof(bytes));
	/* The receiver wants to see its area as it was before we fill it. */
	take_word(s);
}

/* A buffer may be filled again when the NIC is through with its last message. */
static unsigned char *free_buffer(struct sender *s, uint32_t i)
{
	if (s->handles[i] >= 0)
		must(h_send_wait(s->terminus, s->handles[i],
				 (int64_t)(s->patience * 1e9)), "send");
	s->handles[i] = -1;
	return (unsigned char *)h_area_addr(s->out) + (size_t)i * s->to.chunk;
}

/* Read up to a whole chunk; 0 at the end of the file. */
static uint32_t read_chunk(struct sender *s, unsigned char *buffer)
{
	uint32_t done = 0;
	ssize_t n;

	while (done < s->to.chunk) {
		n = read(s->file, buffer + done, s->to.chunk - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("cannot read %s: %s", s->path, strerror(errno));
		if (!n)
			break;
		done += (uint32_t)n;
	}
	return done;
}

static void send_chunks(struct sender *s, double start)
{
	unsigned char *buffer;
	uint32_t i, length;

	for (i = 0;; i = (i + 1) % BUFFERS) {
		buffer = free_buffer(s, i);
		length = read_chunk(s, buffer);
		if (!length)
			return;
		/* Sent first: the receiver can work on it while we hash it. */
		s->handles[i] = send_one(s, TRANSFER_DATA, s->bytes, buffer, length);
		sha256_update(&s->sha, length, buffer);
		s->bytes += length;
		if (!s->quiet)
			transfer_progress(s->bytes, s->size, start, false);
		if (transfer_stopped)
			die("stopped by a signal");
	}
}

static void send_end(struct sender *s, uint8_t *digest)
{
	transfer_digest(&s->sha, digest);
	send_one(s, TRANSFER_END, s->bytes, digest, TRANSFER_DIGEST);
	while (take_word(s) != TRANSFER_DONE)
		;
}

static void run(struct sender *s)
{
	uint8_t digest[TRANSFER_DIGEST];
	double start = transfer_now();
	double seconds;

	sha256_init(&s->sha);
	say_hello(s);
	send_chunks(s, start);
	send_end(s, digest);
	seconds = transfer_now() - start;
	if (!s->quiet)
		transfer_progress(s->bytes, s->size, start, true);
	transfer_print_digest(digest);
	printf("bytes %llu\nseconds %.3f\nMB/s %.1f\n", (unsigned long long)s->bytes,
	       seconds, seconds > 0 ? (double)s->bytes / seconds / 1e6 : 0.0);
	if (fflush(stdout))
		die("cannot write the result");
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct sender sender = { .file = -1, .patience = 60 };
	const char *ticket_path = NULL;
	const char *device = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "d:t:T:qh", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 't':
			ticket_path = optarg;
			break;
		case 'T':
			sender.patience = (double)transfer_number("-T", optarg, 1, 86400);
			break;
		case 'q':
			sender.quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!ticket_path || optind + 1 != argc) {
		fputs(usage, stderr);
		return 2;
	}
	sender.path = argv[optind];
	transfer_signals();
	transfer_ticket_read(ticket_path, &sender.to);
	open_file(&sender);
	make_ends(&sender, device);
	run(&sender);
	h_close(sender.dev);
	close(sender.file);
	return 0;
}
