// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_med of the GAM basic benchmarks (L 4.1): as test_xfer, with medium messages. The
 * handler of am_request() checks what it finds in its buffer, spoils the buffer, which
 * is its own until it returns, and answers with am_reply() and other data, which the
 * sender checks.
 */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "gam.h"
#include "landing.h"
#include "torture.h"
#include "world.h"

#define ANSWER		0x616e73776572ULL	/* its key is the question's and this */
#define MARGIN		LANDING_ROOM		/* around what is sent */
#define MARGIN_BYTE	0x3c

static unsigned char *question, *reply;		/* with margins */
static unsigned long *arrived;
static unsigned long asked, answered;
static uint64_t numbers;			/* of answers, added up: each once */
static unsigned long number_sum;

static uint64_t answer_key(const struct torture_message *message)
{
	return check_key(message->key, ANSWER, 0);
}

/* The answer is of another size and alignment. */
static size_t answer_size(const struct torture_message *message)
{
	uint64_t random = answer_key(message);

	return check_random_size(&random, torture_most(), (size_t)am_max_size());
}

static void check_told(const struct torture_message *message, const char *what, int nbytes,
		       size_t size, long key, uint64_t expected)
{
	if (nbytes < 0 || (size_t)nbytes != size || (uint64_t)key != expected)
		die("%s: the handler of the %s was told %d bytes, not %zu, or another argument",
		    torture_text(message), what, nbytes, size);
}

/* The library reads what is sent, and writes nowhere near. */
static void check_margins(const unsigned char *buffer, const struct torture_message *message)
{
	if (check_find_other(buffer, MARGIN, MARGIN_BYTE) >= 0 ||
	    check_find_other(buffer + 2 * MARGIN + torture_most(), MARGIN, MARGIN_BYTE) >= 0)
		die("%s: memory around its source has changed", torture_text(message));
}

static void replied(vnn_t source, void *data, int nbytes, long number, long key)
{
	struct torture_message message;

	torture_plan(am_my_proc(), (uint32_t)number, &message);
	if (source != message.dest)
		die("%s: process %d replied", torture_text(&message), source);
	check_told(&message, "reply", nbytes, answer_size(&message), key, answer_key(&message));
	check_same(data, (size_t)nbytes, answer_key(&message), 0, "%s: its reply",
		   torture_text(&message));
	check_scribble(data, (size_t)nbytes);
	numbers += (uint64_t)number;
	answered++;
}

static void requested(vnn_t source, void *data, int nbytes, long number, long key)
{
	struct torture_message message;
	size_t size;

	torture_plan(source, (uint32_t)number, &message);
	if (message.dest != am_my_proc())
		die("%s arrived here", torture_text(&message));
	check_told(&message, "request", nbytes, message.size, key, message.key);
	check_same(data, (size_t)nbytes, message.key, 0, "%s", torture_text(&message));
	check_scribble(data, (size_t)nbytes);
	arrived[source]++;
	size = answer_size(&message);
	check_fill(reply + MARGIN + message.at, size, answer_key(&message), 0);
	must(am_reply(source, replied, reply + MARGIN + message.at, (int)size, number,
		      (long)answer_key(&message)), "am_reply");
	check_margins(reply, &message);
	check_scribble(reply + MARGIN + message.at, size);
}

/* What is too long must be refused, and not leave a trace. */
static void check_refusal(const struct torture_message *message)
{
	int ret = am_request(message->dest, requested, question, am_max_size() + 1, 0, 0);

	if (ret != -EMSGSIZE)
		die("%s: am_request() of am_max_size() + 1 bytes returned %d, not -EMSGSIZE",
		    torture_text(message), ret);
}

static void send_message(const struct torture_message *message)
{
	unsigned char *block = question + MARGIN + message->from;

	if (message->kind % 64 == 0)
		check_refusal(message);
	torture_fill(block, message);
	must(am_request(message->dest, requested, block, (int)message->size,
			(long)message->number, (long)message->key), "am_request");
	torture_check_source(block, message);
	check_margins(question, message);
	check_scribble(block, message->size);
	number_sum += message->number;
	asked++;
}

/* ---- the test ----------------------------------------------------------- */

static size_t most(size_t given)
{
	size_t limit = (size_t)am_max_size();

	if (given > limit)
		die("--max-size: a medium message has at most %zu bytes, not %zu", limit, given);
	return given ? given : limit;
}

/* A margin, room for the alignment, what is sent, and a margin. */
static unsigned char *alloc_margins(void)
{
	size_t bytes = torture_most() + LANDING_ROOM + 2 * MARGIN, i;
	unsigned char *memory = world_alloc(bytes);

	for (i = 0; i < bytes; i++)
		memory[i] = MARGIN_BYTE;
	return memory;
}

static void begin(void)
{
	question = alloc_margins();
	reply = alloc_margins();
	arrived = calloc((size_t)am_procs(), sizeof(*arrived));
	if (!arrived)
		die("no memory");
}

static bool idle(void)
{
	return answered >= asked;
}

static unsigned long *arrived_of(int source)
{
	return &arrived[source];
}

static bool arrives(const struct torture_message *message)
{
	(void)message;
	return true;
}

static void phase_end(const char *who)
{
	if (answered != asked)
		die("%s: %lu replies to %lu requests", who, answered, asked);
	if (numbers != number_sum)
		die("%s: a reply is missing, and another one came twice", who);
}

int main(int argc, char **argv)
{
	static const struct torture torture = {
		.name = "test_med",
		.what = "Torture of medium messages, am_request() and am_reply(): 1-to-1,\n"
			"all-to-1, all-to-all; up to am_max_size() bytes, all of them checked.",
		.most = most,
		.begin = begin,
		.send = send_message,
		.idle = idle,
		.arrived = arrived_of,
		.arrives = arrives,
		.phase_end = phase_end,
	};

	return torture_main(argc, argv, &torture);
}
