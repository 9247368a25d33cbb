/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The messages of exactly_once, which all processes can work out from the seed, and the
 * account of which have been handled.
 */
#ifndef HAMLYN_AM_ONCE_H
#define HAMLYN_AM_ONCE_H

#include <stddef.h>
#include <stdint.h>

#define ONCE_MAX_WORDS	5
#define ONCE_GROUND_MORE	4096	/* bytes of the ground beyond the largest block */
#define ONCE_PLACE_SHIFT	32	/* in handlers' arguments, above the number */

enum kind {
	NUDGE,		/* no words, a reply of none: they are counted */
	SHORT,		/* one to five words, no reply */
	SHORT_REPLY,	/* and one of as many */
	MEDIUM,
	MEDIUM_REPLY,
	STORE,		/* am_store(); the reply frees the place */
	FETCH,		/* a request that is answered by am_reply_xfer() */
	GET,
	KINDS,
};

struct message {
	int source, dest;
	uint32_t number;
	enum kind kind;
	int words;
	size_t size, at;
	uint64_t key;
};

/**
 * struct once_account - of this process
 * @messages: requests of each process
 * @seed: of all of them
 * @max_size: bytes of the largest
 * @handled: of each process, a bit per number
 * @answered: a bit per number
 * @progress: grows with everything that arrives
 * @requests: that were handled, but for those without a number
 * @replies: the same
 * @bytes: that were checked
 */
struct once_account {
	unsigned long messages, seed, max_size;
	unsigned char **handled, *answered;
	unsigned long progress, requests, replies, bytes;
};

extern struct once_account account;

void once_plan(int source, unsigned long number, struct message *message);
/* "message 5 of process 2 to 3 (medium, 17 bytes)"; valid until the next call. */
const char *once_text(const struct message *message);
/* Word @i of a short message; word 0 is its number. */
uint64_t once_word(const struct message *message, int i);
/* Of the contents of its reply. */
uint64_t once_answer_key(const struct message *message);
/* Of the memory that am_get() fetches, and where in it. */
uint64_t once_ground_key(int process);
size_t once_ground_offset(const struct message *message);
/* Number and place, for a handler. */
void *once_arg(const struct message *message, int place);

/*
 * What a request handler begins with: which message is it? die() if it is none of kinds
 * @first to @last for this process, or not for the first time.
 */
void once_request(int source, unsigned long number, enum kind first, enum kind last,
		  struct message *message);
/* The same for the handler of a reply. */
void once_reply(int source, unsigned long number, enum kind kind, struct message *message);

void once_check_words(const struct message *message, int n, const long *words);
void once_check_data(const struct message *message, const void *data, int nbytes,
		     uint64_t key, size_t from);

#endif /* HAMLYN_AM_ONCE_H */
