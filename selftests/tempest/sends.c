// SPDX-License-Identifier: GPL-2.0-only
/* Messages of all lists of items that have a name, and how long they may be. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define REGION_BYTES	12
#define FORWARD_BYTES	8
#define MOST_FORWARDED	(4 * FORWARD_BYTES)

static int regions[5][REGION_BYTES / 4];
static unsigned char forwarded[MOST_FORWARDED];

static char *block(int place)
{
	return page_at(0) + 2 * TPPI_TAG_BLK_SIZE * place;
}

/* The parameters of an item at its place. */
#define W(place)	(0x1000 + (place))
#define Ba(place)	block(place) + 5, TPPI_TAG_BLK_SIZE, TPPI_Blk_Downgrade_RO
#define R(place)	regions[place], REGION_BYTES
#define F(place)	FORWARD_BYTES

static void check_body(TPPI_NodeId src, int size);

#define SEND(types, ...)	\
	static void send_##types(void) { TPPI_send_##types(0, check_body, __VA_ARGS__); }
#include "tempest_sends.h"
#undef SEND

#define SEND(types, ...)	{ #types, send_##types },
static const struct list {
	const char *types;
	void (*send)(void);
} lists[] = {
#include "tempest_sends.h"
};

static const struct list *current;
static atomic_size_t done;

/* What the body of a list is; returns its bytes. */
static int expect(const char *types, unsigned char *body)
{
	int bytes = 0, place = 0, forward = 0;

	for (; *types; types++) {
		const int word = W(++place);

		if (*types == 'W') {
			memcpy(body + bytes, &word, 4);
			bytes += 4;
		} else if (*types == 'B') {
			memset(body + bytes, 0x40 + place, TPPI_TAG_BLK_SIZE);
			bytes += TPPI_TAG_BLK_SIZE;
			types++;
		} else if (*types == 'R') {
			memcpy(body + bytes, regions[place], REGION_BYTES);
			bytes += REGION_BYTES;
		} else {
			memcpy(body + bytes, forwarded + forward, FORWARD_BYTES);
			forward += FORWARD_BYTES;
			bytes += FORWARD_BYTES;
		}
	}
	return bytes;
}

/* Half of them as words, the others as one region: the stream has no types. */
static void check_body(TPPI_NodeId src, int size)
{
	unsigned char expected[512], found[512];
	int bytes = expect(current->types, expected);

	CHECK_EQUAL(src, TPPI_self_address);
	CHECK_EQUAL(size, bytes);
	if (done % 2) {
		TPPI_recv_R(found, size);
	} else {
		for (int i = 0; i < size; i += 4) {
			int word = TPPI_recv_W();

			memcpy(found + i, &word, 4);
		}
	}
	if (memcmp(found, expected, bytes))
		failed(__FILE__, __LINE__, "%s: another body", current->types);
	done++;
}

/* What is forwarded is that of this message; the rest of it is received. */
static void send_current(TPPI_NodeId src, int size)
{
	unsigned char rest[MOST_FORWARDED];
	int left = size, place = 0;

	(void)src;
	current->send();
	for (const char *type = current->types; *type; type++) {
		left -= *type == 'F' ? FORWARD_BYTES : 0;
		place += *type != 'a';
		if (*type == 'B') {
			CHECK_EQUAL(TPPI_get_blk_acc(block(place)), TPPI_Blk_ReadOnly);
			TPPI_change_blk_acc(block(place), TPPI_TAG_BLK_SIZE, TPPI_Blk_Upgrade_RW);
		}
	}
	TPPI_recv_R(rest, left);
}

static void all_lists(void)
{
	size_t number = sizeof(lists) / sizeof(lists[0]);

	map_page(page_at(0), 0, TPPI_Blk_Writable);
	for (int place = 1; place <= 4; place++) {
		memset(block(place), 0x40 + place, TPPI_TAG_BLK_SIZE);
		memset(regions[place], 0x60 + place, REGION_BYTES);
	}
	for (int i = 0; i < MOST_FORWARDED; i++)
		forwarded[i] = 0x80 + i;
	CHECK_EQUAL(number, 340);
	for (size_t i = 0; i < number; i++) {
		current = &lists[i];
		TPPI_send_R(0, send_current, forwarded, MOST_FORWARDED);
		while (done <= i)
			usleep(10);
	}
}

/* ---- how long, and what is wrong ---- */

_Static_assert(TPPI_TAG_BLK_SIZE + 16 <= TPPI_MAX_AM_BYTES, "a block and 16 bytes (T 3.3.4)");

static char longest_body[TPPI_MAX_AM_BYTES + 4];

static void take_longest(TPPI_NodeId src, int size)
{
	(void)src;
	CHECK_EQUAL(size, TPPI_MAX_AM_BYTES);
	TPPI_recv_Ba(page_at(1), TPPI_PAGE_SIZE, TPPI_Blk_Validate_RW);
	for (int i = 0; i < (TPPI_MAX_AM_BYTES - TPPI_PAGE_SIZE) / 8; i++)
		CHECK(TPPI_recv_P() == NULL);
	done = 1;
}

static void longest(void)
{
	map_page(page_at(1), 0, TPPI_Blk_Invalid);
	memset(longest_body, 3, TPPI_PAGE_SIZE);
	TPPI_send_R(0, take_longest, longest_body, TPPI_MAX_AM_BYTES);
	while (!done)
		usleep(10);
	CHECK_EQUAL(page_at(1)[TPPI_PAGE_SIZE - 1], 3);
}

static void too_long(void)
{
	TPPI_send_R(0, take_longest, longest_body, TPPI_MAX_AM_BYTES + 4);
}

static void half_a_word(void)
{
	TPPI_send_R(0, take_longest, longest_body, 6);
}

static void take_nothing(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
}

static void left_over(void)
{
	TPPI_send_W(0, take_nothing, 1);
	sleep(10);
}

static void take_too_much(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	TPPI_recv_W();
}

static void too_much(void)
{
	TPPI_send(0, take_too_much);
	sleep(10);
}

static void no_such_node(void)
{
	TPPI_send(TPPI_num_nodes, take_nothing);
}

static void forward_outside(void)
{
	TPPI_send_F(0, take_nothing, 4);
}

/* To the only node, as to any other. */
static void no_such_handler(void)
{
	static char data[64];

	TPPI_send(0, (TPPI_MessageHandlerPtr)(void *)data);
	sleep(10);
}

const struct test tests[] = {
	{ "all-lists", all_lists, 0, 0, 0 },
	{ "longest", longest, 0, 0, 0 },
	{ "too-long", too_long, 0, SIGABRT, 0 },
	{ "half-a-word", half_a_word, 0, SIGABRT, 0 },
	{ "left-over", left_over, 0, SIGABRT, 0 },
	{ "too-much", too_much, 0, SIGABRT, 0 },
	{ "no-such-node", no_such_node, 0, SIGABRT, 0 },
	{ "no-such-handler", no_such_handler, 0, SIGABRT, 0 },
	{ "forward-outside", forward_outside, 0, SIGABRT, 0 },
	{ 0 }
};
