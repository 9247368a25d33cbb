// SPDX-License-Identifier: MIT
/*
 * guess_keys: tries to write into a slot without knowing its key, and shows
 * what the NIC makes of it, and to how many guesses a second it holds us. Keys
 * have 64 bits and are drawn at random; with a ticket at hand, also those that
 * differ from the right one in a single bit are tried.
 */
#include <getopt.h>
#include <sys/random.h>

#include "transfer.h"

#define KEY_BITS	64

const char *const program = "guess_keys";

struct guesser {
	struct h_dev *dev;
	struct h_terminus *terminus;
	struct h_ticket ticket;		/* as good as the guesser knows it */
	bool knows;			/* the right key (which it will not use) */
	bool sees;			/* the NIC's counters: the kernel shows them to root */
	uint64_t random;
	uint64_t near;
	uint64_t late;			/* guesses in the second half of the time */
	double begun;
	double deadline;
};

static const char usage[] =
"usage: guess_keys [-d DEVICE] [-n N] [-T SECONDS] {-t TICKETFILE | -s HOST:SLOT}\n"
"       guess_keys [-d DEVICE] -p\n"
"\n"
"Sends messages under wrong keys to a slot, and prints what the NIC counted. Ends\n"
"with status 1 if one of them was not refused. On a kernel device only root may\n"
"see the NIC's counters; for others, status 0 says that all messages left.\n"
"  -t TICKETFILE  the slot, and keys that are one bit away from its key\n"
"  -s HOST:SLOT   the slot, by its number\n"
"  -p             only print the counters of the NIC\n"
"  -n N           most random keys to try (default 1000)\n"
"  -T SECONDS     stop guessing after so long (default 10): the NIC lets a user\n"
"                 guess 10000 keys, and then as many a second\n"
"  -d DEVICE      /dev/hamlynN or shm:NAME (default: the library's choice)\n";

static uint64_t random_word(void)
{
	uint64_t word;

	if (getrandom(&word, sizeof(word), 0) != sizeof(word))
		die("no random numbers: %s", strerror(errno));
	return word;
}

/* Anywhere in the area: whatever lands, the receiver should come upon it. */
static uint64_t random_place(const struct guesser *g, size_t length)
{
	return random_word() % (g->ticket.length - length + 1);
}

static bool guess(struct guesser *g, uint64_t key)
{
	static const char text[16] = "you are robbed!";
	struct h_ticket ticket = g->ticket;
	struct h_msg msg = {
		.ticket = &ticket,
		.offset = random_place(g, sizeof(text)),
		.data = text,
		.length = sizeof(text),
	};

	if (transfer_stopped || transfer_now() > g->deadline)
		return false;
	ticket.key = key;
	/* One after the other: what is in the queue would wait with us. */
	must(h_send_wait(g->terminus, transfer_send(g->terminus, &msg, 10),
			 10000000000), "send");
	if (transfer_now() > (g->begun + g->deadline) / 2)
		g->late++;
	return true;
}

static void guess_all(struct guesser *g, uint64_t n)
{
	uint64_t key;
	int bit;

	for (bit = 0; g->knows && bit < KEY_BITS; bit++)
		if (guess(g, g->ticket.key ^ 1ULL << bit))
			g->near++;
	while (g->random < n) {
		key = random_word();
		if (g->knows && key == g->ticket.key)
			continue;
		if (!guess(g, key))
			return;
		g->random++;
	}
}

static uint64_t rejected(const struct hamlyn_stats *stats)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		sum += stats->rejects[i];
	return sum;
}

static void look(const struct guesser *g, struct hamlyn_stats *stats)
{
	if (g->sees)
		must(h_dev_stats(g->dev, stats), "statistics");
}

/* The last packets may still be on their way when their messages have left. */
static void wait_for_verdicts(struct guesser *g, const struct hamlyn_stats *before,
			      struct hamlyn_stats *after)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	double deadline = transfer_now() + 5;

	do {
		look(g, after);
		if (!g->sees || rejected(after) - rejected(before) >= g->random + g->near)
			return;
		nanosleep(&pause, NULL);
	} while (transfer_now() < deadline);
}

/* @before: NULL for one column */
static void print_row(const char *what, const __u64 *before, const __u64 *after)
{
	printf("%-34s", what);
	if (before)
		printf(" %12llu", (unsigned long long)*before);
	printf(" %12llu\n", (unsigned long long)*after);
}

static void print(const struct hamlyn_stats *before, const struct hamlyn_stats *after)
{
	static const char *const reasons[HAMLYN_REJECT_REASONS] = {
		[HAMLYN_REJECT_SLOT] = "refused: no such slot",
		[HAMLYN_REJECT_KEY] = "refused: wrong key",
		[HAMLYN_REJECT_BOUNDS] = "refused: outside the message area",
		[HAMLYN_REJECT_METADATA] = "refused: no such metadata entry",
		[HAMLYN_REJECT_FORMAT] = "refused: malformed",
		[HAMLYN_REJECT_ONE_SHOT] = "refused: entry not armed",
		[HAMLYN_REJECT_TICKET] = "refused: no ticket",
		[HAMLYN_REJECT_DOWN] = "refused: a NIC is down",
	};
	int i;

	print_row("messages sent", before ? &before->messages : NULL, &after->messages);
	print_row("notifications of arrival", before ? &before->notifications : NULL,
		  &after->notifications);
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		print_row(reasons[i], before ? &before->rejects[i] : NULL,
			  &after->rejects[i]);
}

static void judge(const struct guesser *g, const struct hamlyn_stats *before,
		  const struct hamlyn_stats *after)
{
	uint64_t refused = after->rejects[HAMLYN_REJECT_KEY] -
			   before->rejects[HAMLYN_REJECT_KEY];

	if (after->rejects[HAMLYN_REJECT_SLOT] > before->rejects[HAMLYN_REJECT_SLOT])
		die("there is no slot %u:%u", g->ticket.host, g->ticket.slot);
	if (refused < g->random + g->near)
		die("only %llu of %llu guesses were refused for their key",
		    (unsigned long long)refused, (unsigned long long)(g->random + g->near));
	printf("all guesses refused: yes\n");
}

/* The sender of a message is not told what became of it. */
static void tell_own(struct guesser *g)
{
	struct hamlyn_stats own = { 0 };

	must(h_terminus_stats(g->terminus, &own), "statistics");
	printf("messages that left: %llu; this user is not told what became of them\n",
	       (unsigned long long)own.messages);
}

static void run(struct guesser *g, uint64_t n)
{
	struct hamlyn_stats before = { 0 }, after = { 0 };

	look(g, &before);
	guess_all(g, n);
	/* How far it would have been held back cannot be told */
	if (transfer_stopped)
		die("stopped by a signal");
	wait_for_verdicts(g, &before, &after);
	printf("%llu random keys, %llu keys with one bit wrong\n",
	       (unsigned long long)g->random, (unsigned long long)g->near);
	if (g->random < n)
		printf("held back: %.1f guesses a second in the last %.0f s\n",
		       (double)g->late * 2 / (g->deadline - g->begun),
		       (g->deadline - g->begun) / 2);
	if (!g->sees) {
		tell_own(g);
		return;
	}
	printf("%-34s %12s %12s\n", "counters of the NIC", "before", "after");
	print(&before, &after);
	judge(g, &before, &after);
}

/* One look at the counters decides whether there are any to be had. */
static void open_device(struct guesser *g, const char *device, bool only_print)
{
	struct hamlyn_stats stats = { 0 };
	int ret;

	must(h_open(device, &g->dev), device ? device : "default device");
	ret = h_dev_stats(g->dev, &stats);
	if (ret != -EPERM || only_print)
		must(ret, "counters of the NIC");
	g->sees = !ret;
	if (only_print)
		print(NULL, &stats);
	else
		must(h_terminus_create(g->dev, NULL, &g->terminus), "terminus");
}

static void parse_slot(const char *text, struct h_ticket *ticket)
{
	char rest;

	if (sscanf(text, "%u:%u%c", &ticket->host, &ticket->slot, &rest) != 2)
		die("-s takes HOST:SLOT such as 0:3, not \"%s\"", text);
	/* How large the area is, a guesser does not know either. */
	ticket->length = 4096;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct transfer_ticket offer = { 0 };
	struct guesser g = { 0 };
	const char *device = NULL;
	bool have_slot = false;
	bool only_print = false;
	unsigned long seconds = 10;
	unsigned long n = 1000;
	int opt;

	while ((opt = getopt_long(argc, argv, "d:t:s:n:T:ph", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 't':
			transfer_ticket_read(optarg, &offer);
			g.ticket = offer.ticket;
			g.knows = true;
			break;
		case 's':
			parse_slot(optarg, &g.ticket);
			have_slot = true;
			break;
		case 'n':
			n = transfer_number("-n", optarg, 0, 100000000);
			break;
		case 'T':
			seconds = transfer_number("-T", optarg, 1, 86400);
			break;
		case 'p':
			only_print = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (g.knows + have_slot + only_print != 1 || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	transfer_signals();
	g.begun = transfer_now();
	g.deadline = g.begun + (double)seconds;
	open_device(&g, device, only_print);
	if (!only_print)
		run(&g, n);
	h_close(g.dev);
	if (fflush(stdout))
		die("cannot write the result");
	return 0;
}
