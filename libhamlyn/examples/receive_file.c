// SPDX-License-Identifier: MIT
/*
 * receive_file: offers a message area, publishes a ticket for it in a file, and
 * receives what a process with that ticket streams into it. See transfer.h.
 */
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>

#include "transfer.h"

const char *const program = "receive_file";

struct receiver {
	const char *ticket_path;
	const char *out_path;	/* NULL: do not keep the bytes */
	char part_path[4096];	/* where they go until all are there */
	int out;
	bool published;
	bool quiet;
	double patience;
	struct transfer_ticket offer;

	struct h_dev *dev;
	struct h_area *area;
	struct h_area *meta_area;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct h_ticket reply;	/* length 0 until the sender has said hello */

	struct sha256_ctx sha;
	uint64_t next;		/* sequence of the next message */
	uint64_t granted;	/* messages that the sender knows are used up */
	uint64_t bytes;
	uint64_t expected;
	double start;
};

static struct receiver receiver = {
	.out = -1,
	.patience = 60,
	.offer = { .chunk = 128 << 10 },
};

static const char usage[] =
"usage: receive_file [-d DEVICE] [-o OUT] [-w BYTES] [-c BYTES] [-m MODE] [-T SECONDS]\n"
"                    [-q] -t TICKETFILE\n"
"\n"
"Receives a file from send_file and prints its SHA-256 and length.\n"
"  -t TICKETFILE  file to write the ticket to; whoever can read it can send\n"
"  -m MODE        its mode, octal (default 600: only this user)\n"
"  -d DEVICE      /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -o OUT         file to write what arrives to (default: only hash it)\n"
"  -w BYTES       message area (default 8388608)\n"
"  -c BYTES       chunk, 4096 to 4194304 (default 131072)\n"
"  -T SECONDS     longest silence to wait through (default 60)\n"
"  -q             no progress on stderr\n";

/* ---- the offer ---------------------------------------------------------- */

static uint32_t power_of_two(uint32_t least)
{
	uint32_t n = 2;

	while (n < least)
		n *= 2;
	return n;
}

static void make_slot(struct receiver *r, const char *device)
{
	struct h_slot_attr attr = { .meta_count = r->offer.chunks };

	must(h_open(device, &r->dev), device ? device : "default device");
	must(h_area_alloc(r->dev, (size_t)r->offer.chunk * r->offer.chunks, &r->area),
	     "message area");
	must(h_area_alloc(r->dev, r->offer.chunks * sizeof(struct hamlyn_metadata),
			  &r->meta_area), "metadata area");
	/* The sender has at most one message per chunk under way. */
	must(h_nq_create(r->dev, power_of_two(r->offer.chunks + 1), &r->nq),
	     "notification queue");
	attr.area = r->area;
	attr.meta_area = r->meta_area;
	attr.nq = r->nq;
	must(h_slot_create(r->dev, &attr, &r->slot), "slot");
	must(h_slot_ticket(r->slot, 0, 0, 0, &r->offer.ticket), "ticket");
	must(h_terminus_create(r->dev, NULL, &r->terminus), "terminus");
}

/* The file appears whole or not at all, and never with too liberal a mode. */
static void publish(struct receiver *r, mode_t mode)
{
	char path[4096];
	FILE *file;
	int fd;

	if (snprintf(path, sizeof(path), "%s.%ld", r->ticket_path, (long)getpid()) >=
	    (int)sizeof(path))
		die("the name of the ticket file is too long");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		die("cannot create %s: %s", path, strerror(errno));
	file = fdopen(fd, "w");
	if (!file)
		die("cannot write %s: %s", path, strerror(errno));
	transfer_ticket_write(file, &r->offer);
	if (fflush(file) || fchmod(fd, mode) < 0 || fclose(file) ||
	    rename(path, r->ticket_path) < 0) {
		fprintf(stderr, "%s: cannot write %s: %s\n", program, r->ticket_path,
			strerror(errno));
		unlink(path);
		exit(1);
	}
	r->published = true;
}

static void open_out(struct receiver *r)
{
	if (!r->out_path)
		return;
	if (snprintf(r->part_path, sizeof(r->part_path), "%s.part", r->out_path) >=
	    (int)sizeof(r->part_path))
		die("the name of the output file is too long");
	r->out = open(r->part_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (r->out < 0)
		die("cannot write %s: %s", r->part_path, strerror(errno));
}

/* ---- words to the sender ------------------------------------------------ */

static void send_word(struct receiver *r, uint64_t word)
{
	struct h_msg msg = { .ticket = &r->reply, .word = word };

	transfer_send(r->terminus, &msg, r->patience);
}

static void send_verdict(struct receiver *r, uint64_t what)
{
	struct h_msg msg = { .ticket = &r->reply, .word = what | r->next };
	int64_t handle = h_send(r->terminus, &msg);

	/* Closing the device would drop it. */
	if (handle >= 0)
		h_send_wait(r->terminus, handle, 1000000000);
}

static void grant(struct receiver *r)
{
	/* The first word tells the sender to go ahead. */
	if (r->granted && r->next - r->granted < r->offer.chunks / 4)
		return;
	r->granted = r->next;
	send_word(r, TRANSFER_CREDIT | r->granted);
}

/* However we end: no stale ticket, no half file, no sender left waiting. */
static void tidy(void)
{
	struct receiver *r = &receiver;

	if (r->published)
		unlink(r->ticket_path);
	if (r->out >= 0)
		unlink(r->part_path);
	if (r->reply.length)
		send_verdict(r, TRANSFER_FAILED);
	h_close(r->dev);
}

/* ---- messages ----------------------------------------------------------- */

/* Nobody has written to the area: everything behind the first message is 0. */
static bool untouched(const struct receiver *r, uint32_t length)
{
	const unsigned char *area = h_area_addr(r->area);
	size_t i;

	for (i = length; i < (size_t)r->offer.chunk * r->offer.chunks; i++)
		if (area[i])
			return false;
	return true;
}

static void handle_open(struct receiver *r, const struct transfer_meta *meta,
			const unsigned char *payload)
{
	if (meta->sequence)
		die("the sender said hello twice");
	must(h_ticket_import(payload, meta->length, &r->reply), "the sender's ticket");
	if (r->reply.meta_index != HAMLYN_META_FAST || !r->reply.length) {
		r->reply.length = 0;
		die("the sender's ticket is not one for words");
	}
	r->expected = meta->value;
	r->start = transfer_now();
	if (!untouched(r, meta->length))
		die("somebody wrote into the message area before the transfer began");
	printf("untouched before the transfer: yes\n");
}

static void handle_data(struct receiver *r, const struct transfer_meta *meta,
			const unsigned char *payload)
{
	size_t done = 0;
	ssize_t n;

	if (meta->value != r->bytes)
		die("byte %llu came where byte %llu was due",
		    (unsigned long long)meta->value, (unsigned long long)r->bytes);
	sha256_update(&r->sha, meta->length, payload);
	while (r->out >= 0 && done < meta->length) {
		n = write(r->out, payload + done, meta->length - done);
		if (n < 0 && errno != EINTR)
			die("cannot write %s: %s", r->part_path, strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	r->bytes += meta->length;
	if (!r->quiet)
		transfer_progress(r->bytes, r->expected, r->start, false);
}

static void handle_end(struct receiver *r, const struct transfer_meta *meta,
		       const unsigned char *payload)
{
	uint8_t digest[TRANSFER_DIGEST];

	if (meta->value != r->bytes)
		die("%llu bytes arrived, but the sender sent %llu",
		    (unsigned long long)r->bytes, (unsigned long long)meta->value);
	transfer_digest(&r->sha, digest);
	transfer_print_digest(digest);
	if (meta->length != sizeof(digest) || memcmp(payload, digest, sizeof(digest)))
		die("the SHA-256 of what arrived is not that of what was sent");
}

/*
 * The sender can write to this metadata entry and this chunk whenever it likes:
 * the metadata is copied once and only the copy is looked at. Of a chunk that
 * changes while we read it, the sender is the only victim.
 */
static enum transfer_kind handle(struct receiver *r, const struct hamlyn_nq_entry *entry)
{
	const struct hamlyn_metadata *entries = h_area_addr(r->meta_area);
	uint32_t place = (uint32_t)(r->next % r->offer.chunks);
	const unsigned char *payload = (unsigned char *)h_area_addr(r->area) +
				       (size_t)place * r->offer.chunk;
	struct transfer_meta meta;

	if (entry->flags & HAMLYN_NQE_FAST || entry->index != place)
		die("a message in place %u where place %u was due", entry->index, place);
	memcpy(&meta, entries[place].user, sizeof(meta));
	if (meta.magic != TRANSFER_MAGIC || meta.sequence != r->next ||
	    meta.length > r->offer.chunk)
		die("a message that send_file did not send");
	if (!r->reply.length && meta.kind != TRANSFER_OPEN)
		die("the sender did not say hello");
	switch (meta.kind) {
	case TRANSFER_OPEN:
		handle_open(r, &meta, payload);
		break;
	case TRANSFER_DATA:
		handle_data(r, &meta, payload);
		break;
	case TRANSFER_END:
		handle_end(r, &meta, payload);
		break;
	default:
		die("a message of unknown kind %u", meta.kind);
	}
	r->next++;
	return (enum transfer_kind)meta.kind;
}

static void receive(struct receiver *r)
{
	struct hamlyn_nq_entry entry;

	do {
		if (r->next)
			grant(r);
		transfer_wait(r->nq, &entry, r->patience, "sender");
	} while (handle(r, &entry) != TRANSFER_END);
}

static void finish(struct receiver *r)
{
	struct hamlyn_stats stats = { 0 };
	double seconds = transfer_now() - r->start;

	if (r->out >= 0) {
		if (close(r->out) < 0 || rename(r->part_path, r->out_path) < 0)
			die("cannot write %s: %s", r->out_path, strerror(errno));
		r->out = -1;
	}
	send_verdict(r, TRANSFER_DONE);
	r->reply.length = 0;
	if (!r->quiet)
		transfer_progress(r->bytes, r->expected, r->start, true);
	must(h_slot_stats(r->slot, &stats), "statistics");
	printf("bytes %llu\nseconds %.3f\n", (unsigned long long)r->bytes, seconds);
	printf("refused at this slot: %llu wrong key, %llu out of bounds, %llu other\n",
	       (unsigned long long)stats.rejects[HAMLYN_REJECT_KEY],
	       (unsigned long long)stats.rejects[HAMLYN_REJECT_BOUNDS],
	       (unsigned long long)(stats.rejects[HAMLYN_REJECT_SLOT] +
				    stats.rejects[HAMLYN_REJECT_METADATA] +
				    stats.rejects[HAMLYN_REJECT_FORMAT]));
	if (fflush(stdout))
		die("cannot write the result");
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct receiver *r = &receiver;
	unsigned long window = 8 << 20;
	const char *device = NULL;
	mode_t mode = 0600;
	char *end;
	int opt;

	while ((opt = getopt_long(argc, argv, "d:o:t:w:c:m:T:qh", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'o':
			r->out_path = optarg;
			break;
		case 't':
			r->ticket_path = optarg;
			break;
		case 'w':
			window = transfer_number("-w", optarg, 4 * TRANSFER_MIN_CHUNK, 1UL << 32);
			break;
		case 'c':
			r->offer.chunk = (uint32_t)transfer_number("-c", optarg, TRANSFER_MIN_CHUNK,
								   TRANSFER_MAX_CHUNK);
			break;
		case 'm':
			mode = (mode_t)strtoul(optarg, &end, 8);
			if (end == optarg || *end || mode > 0777)
				die("-m takes an octal mode such as 640, not \"%s\"", optarg);
			break;
		case 'T':
			r->patience = (double)transfer_number("-T", optarg, 1, 86400);
			break;
		case 'q':
			r->quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!r->ticket_path || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	/* Messages of single chunks begin at addresses that suit every machine. */
	r->offer.chunk &= ~63U;
	r->offer.chunks = (uint32_t)(window / r->offer.chunk);
	if (r->offer.chunks < TRANSFER_MIN_CHUNKS || r->offer.chunks > TRANSFER_MAX_CHUNKS)
		die("-w must hold %u to %u chunks (-c), but holds %u", TRANSFER_MIN_CHUNKS,
		    TRANSFER_MAX_CHUNKS, r->offer.chunks);

	transfer_signals();
	make_slot(r, device);
	open_out(r);
	atexit(tidy);
	sha256_init(&r->sha);
	publish(r, mode);
	printf("waiting in slot %u:%u\n", r->offer.ticket.host, r->offer.ticket.slot);
	fflush(stdout);
	receive(r);
	finish(r);
	return 0;
}
