// SPDX-License-Identifier: GPL-2.0-only
/*
 * The coalesce phase of radix sort. Keys with their place in the receiver's block are
 * collected until a message is full; or a process sorts its keys by their digit first,
 * and stores each run where it belongs, which takes no places to be sent, but a message
 * for as few keys as there are of one digit in one process: the fewer, the worse.
 */
#include <stdlib.h>
#include <string.h>

#include "gam.h"
#include "radix.h"
#include "world.h"

#define WORD_KEYS	5		/* of am_request_5() */
#define NO_KEY		(~0UL)		/* place 2^32 - 1: no block is that large */
#define PLACE_SHIFT	32

/* Keys for one process: place in its block, and key, in each word. */
struct bag {
	unsigned int n;
	unsigned long *words;
};

static struct radix *own;		/* of the handlers */
static struct bag *bags;
static unsigned int bag_words;		/* of a full one */
static unsigned long *blocks[2];	/* addresses of from and to in all processes */
static unsigned int pass_number;	/* which of them is which */

/* ---- who has which place ------------------------------------------------ */

/* The first so many processes have one key more. */
static unsigned long first_of(unsigned long process)
{
	unsigned long procs = (unsigned long)am_procs();
	unsigned long each = own->total / procs, more = own->total % procs;

	return process * each + (process < more ? process : more);
}

static int owner_of(unsigned long place)
{
	unsigned long procs = (unsigned long)am_procs();
	unsigned long each = own->total / procs, more = own->total % procs;

	if (place < more * (each + 1))
		return (int)(place / (each + 1));
	return (int)(more + (place - more * (each + 1)) / each);
}

/* ---- arrival ------------------------------------------------------------ */

static void put_key(unsigned long word)
{
	unsigned long place = word >> PLACE_SHIFT;

	if (word == NO_KEY)
		return;
	if (place >= own->mine)
		die("a key for place %lu of %lu", place, own->mine);
	own->to[place] = (uint32_t)word;
	own->received++;
}

static void keys_arrived(vnn_t source, void *data, int nbytes, long arg0, long arg1)
{
	const unsigned long *words = data;
	int i;

	(void)source;
	(void)arg0;
	(void)arg1;
	for (i = 0; i < nbytes / (int)sizeof(*words); i++)
		put_key(words[i]);
}

static void five_arrived(vnn_t source, long a, long b, long c, long d, long e)
{
	(void)source;
	put_key((unsigned long)a);
	put_key((unsigned long)b);
	put_key((unsigned long)c);
	put_key((unsigned long)d);
	put_key((unsigned long)e);
}

static void run_arrived(vnn_t source, void *addr, int nbytes, void *arg)
{
	(void)source;
	(void)addr;
	(void)arg;
	own->received += (unsigned long)nbytes / sizeof(*own->to);
}

/* ---- departure: bags ---------------------------------------------------- */

static void send_medium(int dest, struct bag *bag)
{
	must(am_request(dest, keys_arrived, bag->words, (int)(bag->n * sizeof(*bag->words)), 0, 0),
	     "am_request");
}

static void send_words(int dest, struct bag *bag)
{
	long *w = (long *)bag->words;

	while (bag->n < WORD_KEYS)
		bag->words[bag->n++] = NO_KEY;
	must(am_request_5(dest, five_arrived, w[0], w[1], w[2], w[3], w[4]), "am_request_5");
}

static void (*send_bag)(int dest, struct bag *bag);

static void coalesce_bags(uint32_t *places)
{
	unsigned long i, place, word;
	struct bag *bag;
	int dest;

	for (i = 0; i < own->mine; i++) {
		place = places[radix_digit(own, own->from[i])]++;
		dest = owner_of(place);
		word = (place - first_of((unsigned long)dest)) << PLACE_SHIFT | own->from[i];
		if (dest == am_my_proc()) {
			put_key(word);
			continue;
		}
		bag = &bags[dest];
		bag->words[bag->n++] = word;
		if (bag->n < bag_words)
			continue;
		send_bag(dest, bag);
		bag->n = 0;
	}
	for (dest = 0; dest < am_procs(); dest++) {
		if (bags[dest].n)
			send_bag(dest, &bags[dest]);
		bags[dest].n = 0;
	}
}

/* ---- departure: runs ---------------------------------------------------- */

/* A run may begin in one process's block and end in another one's. */
static void send_run(const uint32_t *keys, unsigned long place, unsigned long n)
{
	unsigned long here, end, at;
	int dest;

	for (; n; n -= here, place += here, keys += here) {
		dest = owner_of(place);
		end = first_of((unsigned long)dest + 1);
		here = end - place < n ? end - place : n;
		at = place - first_of((unsigned long)dest);
		if (dest == am_my_proc()) {
			memcpy(own->to + at, keys, here * sizeof(*keys));
			own->received += here;
			continue;
		}
		must(am_store(dest, keys,
			      (uint32_t *)blocks[(pass_number + 1) % 2][dest] + at,
			      (int)(here * sizeof(*keys)), run_arrived, NULL), "am_store");
	}
}

/* The own keys by their digit: ends[] is where each run ends. */
static uint32_t *sort_own(uint32_t *ends)
{
	uint32_t *sorted = world_alloc(own->mine * sizeof(*sorted)), sum = 0, n;
	unsigned long i, d;

	memset(ends, 0, (own->mask + 1UL) * sizeof(*ends));
	for (i = 0; i < own->mine; i++)
		ends[radix_digit(own, own->from[i])]++;
	for (d = 0; d <= own->mask; d++) {
		n = ends[d];
		ends[d] = sum;
		sum += n;
	}
	for (i = 0; i < own->mine; i++)
		sorted[ends[radix_digit(own, own->from[i])]++] = own->from[i];
	return sorted;
}

static void coalesce_runs(uint32_t *places)
{
	uint32_t *ends = world_alloc((own->mask + 1UL) * sizeof(*ends));
	uint32_t *sorted = sort_own(ends);
	unsigned long d, at = 0;

	for (d = 0; d <= own->mask; d++) {
		send_run(sorted + at, places[d], ends[d] - at);
		at = ends[d];
	}
	free(sorted);
	free(ends);
}

/* ---- ways --------------------------------------------------------------- */

static const struct way {
	const char *name;
	void (*coalesce)(uint32_t *places);
	void (*send)(int dest, struct bag *bag);
} ways[] = {
	{ "medium", coalesce_bags, send_medium },
	{ "words", coalesce_bags, send_words },
	{ "runs", coalesce_runs, NULL },
};

static const struct way *way;

static const struct way *find_way(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	return NULL;
}

bool radix_way_exists(const char *name)
{
	return find_way(name);
}

static void open_bags(void)
{
	int p;

	send_bag = way->send;
	bag_words = send_bag == send_words ? WORD_KEYS :
		    (unsigned int)am_max_size() / sizeof(long);
	bags = world_alloc((unsigned long)am_procs() * sizeof(*bags));
	for (p = 0; p < am_procs(); p++) {
		bags[p].n = 0;
		bags[p].words = world_alloc(bag_words * sizeof(long));
	}
}

static uint32_t *share_block(unsigned int number)
{
	uint32_t *block = world_alloc(own->mine * sizeof(*block));

	blocks[number] = world_alloc((unsigned long)am_procs() * sizeof(long));
	world_share_pointer(block, blocks[number]);
	return block;
}

void radix_open(struct radix *radix, unsigned long total, const char *way_name)
{
	unsigned long me = (unsigned long)am_my_proc();

	own = radix;
	way = find_way(way_name);
	*radix = (struct radix){ .total = total };
	radix->first = first_of(me);
	radix->mine = first_of(me + 1) - radix->first;
	radix->from = share_block(0);
	radix->to = share_block(1);
	open_bags();
}

void radix_coalesce(struct radix *radix, uint32_t *places)
{
	way->coalesce(places);
	WAIT_FOR(radix->received == radix->mine);
}

void radix_swap(struct radix *radix)
{
	uint32_t *from = radix->from;

	radix->from = radix->to;
	radix->to = from;
	pass_number++;
}
