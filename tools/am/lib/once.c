// SPDX-License-Identifier: GPL-2.0-only
/* What the messages of exactly_once are, and which have been handled. */
#include <stdbool.h>
#include <stdio.h>

#include "check.h"
#include "gam.h"
#include "landing.h"
#include "once.h"
#include "world.h"

#define GROUND_KEY	0x67726f756e64ULL

struct once_account account;

/* One in 16 each. */
static const enum kind mix[16] = {
	NUDGE, SHORT, SHORT, SHORT_REPLY, SHORT_REPLY, SHORT_REPLY, MEDIUM, MEDIUM,
	MEDIUM_REPLY, MEDIUM_REPLY, STORE, STORE, STORE, FETCH, GET, GET,
};

/* ---- what a message is -------------------------------------------------- */

void once_plan(int source, unsigned long number, struct message *m)
{
	uint64_t random = check_key(account.seed, (uint64_t)source, number), bits;
	int others = am_procs() - 1;

	m->source = source;
	m->number = (uint32_t)number;
	m->key = random;
	bits = check_random(&random);
	m->dest = (source + 1 + (int)(bits % (uint64_t)others)) % am_procs();
	m->kind = mix[(bits >> 32) % 16];
	m->words = 1 + (int)((bits >> 40) % ONCE_MAX_WORDS);
	m->at = (bits >> 48) % LANDING_ROOM;
	m->size = check_random_size(&random, account.max_size, (size_t)am_max_size());
	if (m->kind != STORE && m->kind != GET && m->size > (size_t)am_max_size())
		m->size %= (size_t)am_max_size() + 1;
}

const char *once_text(const struct message *m)
{
	static const char *const names[KINDS] = {
		"am_request_0()", "short", "short with reply", "medium", "medium with reply",
		"am_store()", "fetched with am_reply_xfer()", "am_get()",
	};
	static char text[120];

	snprintf(text, sizeof(text), "message %u of process %d to %d (%s, %zu bytes)", m->number,
		 m->source, m->dest, names[m->kind], m->size);
	return text;
}

uint64_t once_word(const struct message *m, int i)
{
	return i ? check_mix(m->key + (uint64_t)i) : m->number;
}

uint64_t once_answer_key(const struct message *m)
{
	return check_mix(~m->key);
}

uint64_t once_ground_key(int process)
{
	return check_key(GROUND_KEY, (uint64_t)process, 0);
}

size_t once_ground_offset(const struct message *m)
{
	return (m->key >> 16) % ONCE_GROUND_MORE;
}

void *once_arg(const struct message *m, int place)
{
	return (void *)(((unsigned long)place << ONCE_PLACE_SHIFT) | m->number);
}

/* ---- once --------------------------------------------------------------- */

/* Return: false if it was set. */
static bool set_bit(unsigned char *bits, unsigned long number)
{
	unsigned char bit = (unsigned char)(1 << (number % 8));

	if (bits[number / 8] & bit)
		return false;
	bits[number / 8] |= bit;
	return true;
}

void once_request(int source, unsigned long number, enum kind first, enum kind last,
		  struct message *m)
{
	if (source < 0 || source >= am_procs() || number >= account.messages)
		die("number %#lx of process %d: there is no such message", number, source);
	once_plan(source, number, m);
	if (m->dest != am_my_proc() || m->kind < first || m->kind > last)
		die("%s came to a handler that it is not for", once_text(m));
	if (!set_bit(account.handled[source], number))
		die("%s was handled twice", once_text(m));
	account.requests++;
	account.progress++;
}

void once_reply(int source, unsigned long number, enum kind kind, struct message *m)
{
	if (number >= account.messages)
		die("a reply of process %d has number %#lx: there is none", source, number);
	once_plan(am_my_proc(), number, m);
	if (m->dest != source || m->kind != kind)
		die("%s: a reply came from process %d, to another handler", once_text(m), source);
	if (!set_bit(account.answered, number))
		die("%s: its reply was handled twice", once_text(m));
	account.replies++;
	account.progress++;
}

void once_check_words(const struct message *m, int n, const long *words)
{
	int i;

	if (n != m->words)
		die("%s: came with %d words, not %d", once_text(m), n, m->words);
	for (i = 1; i < n; i++)
		if ((uint64_t)words[i] != once_word(m, i))
			die("%s: word %d is %#lx", once_text(m), i, words[i]);
}

void once_check_data(const struct message *m, const void *data, int nbytes, uint64_t key,
		     size_t from)
{
	if (nbytes < 0 || (size_t)nbytes != m->size)
		die("%s: the handler was told %d bytes", once_text(m), nbytes);
	check_same(data, m->size, key, from, "%s", once_text(m));
	account.bytes += m->size;
}
