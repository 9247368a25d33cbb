// SPDX-License-Identifier: GPL-2.0-only
/* The binary interface: sizes, offsets and numbers that must never change. */
#include "unit.h"
#include "layout.h"

#define SIZE(s, n) \
	_Static_assert(sizeof(struct s) == (n), "size of struct " #s);
#define OFFSET(s, m, n) \
	_Static_assert(offsetof(struct s, m) == (n), "place of " #s "." #m);
HML_LAYOUT(SIZE, OFFSET)
#undef SIZE
#undef OFFSET

struct row {
	const char *structure;
	const char *member;	/* NULL: the structure itself */
	size_t place;		/* of a structure: its size */
	size_t bytes;
};

#define SIZE(s, n)	{ #s, NULL, n, sizeof(struct s) },
#define OFFSET(s, m, n)	{ #s, #m, n, sizeof(((struct s *)0)->m) },
static const struct row rows[] = {
	HML_LAYOUT(SIZE, OFFSET)
};
#undef SIZE
#undef OFFSET

static void sizes_and_offsets_are_those_of_the_list(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (!rows[i].member)
			assert_int_equal(rows[i].place, rows[i].bytes);
}

/* Each member begins where the one before ends: none is forgotten, no holes. */
static void list_leaves_out_no_byte_and_there_is_no_padding(void **state)
{
	size_t size = 0;
	size_t end = 0;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].member) {
			assert_int_equal(end, size);
			size = rows[i].place;
			end = 0;
			continue;
		}
		assert_string_equal(rows[i].structure, rows[i - 1].structure);
		assert_int_equal(rows[i].place, end);
		end += rows[i].bytes;
	}
	assert_int_equal(end, size);
}

static void ioctl_arguments_begin_with_their_size(void **state)
{
	(void)state;
#define SIZE(s, n)	assert_int_equal(sizeof(((struct s *)0)->size), 4);
#define OFFSET(s, m, n)
	HML_LAYOUT_IOCTL(SIZE, OFFSET)
#undef SIZE
#undef OFFSET
}

static void structures_keep_64_bit_alignment_in_arrays(void **state)
{
	(void)state;
#define SIZE(s, n)	assert_int_equal((n) % _Alignof(struct s), 0);
#define OFFSET(s, m, n)
	HML_LAYOUT(SIZE, OFFSET)
#undef SIZE
#undef OFFSET
	assert_int_equal(sizeof(struct hamlyn_metadata), HAMLYN_METADATA_SIZE);
	/* A fragment list or inline payload behind a TRB is aligned. */
	assert_int_equal(sizeof(struct hamlyn_trb) % 64, 0);
	assert_int_equal(HAMLYN_TRB_METADATA_SPACE % 64, 0);
	assert_true(HAMLYN_TRB_METADATA_SPACE >= HAMLYN_MAX_METADATA);
}

static void words_of_different_writers_share_no_cache_line(void **state)
{
	(void)state;
	assert_int_equal(offsetof(struct hamlyn_terminus_status, completed) % 64, 0);
	assert_int_equal(sizeof(struct hamlyn_terminus_status) % 64, 0);
	assert_int_equal(sizeof(struct hamlyn_wq_control) % 64, 0);
	assert_int_equal(sizeof(struct hamlyn_nq_control) % 64, 0);
	assert_int_equal(sizeof(struct hamlyn_nq_ring) % 64, 0);
}

static void ioctl_numbers_are_fixed(void **state)
{
	static const unsigned int numbers[] = {
		HAMLYN_IOC_QUERY, HAMLYN_IOC_AREA_ADD, HAMLYN_IOC_AREA_ALLOC,
		HAMLYN_IOC_AREA_REMOVE, HAMLYN_IOC_NQ_CREATE,
		HAMLYN_IOC_NQ_DESTROY, HAMLYN_IOC_SLOT_CREATE,
		HAMLYN_IOC_SLOT_DESTROY, HAMLYN_IOC_SLOT_REKEY,
		HAMLYN_IOC_TERMINUS_CREATE, HAMLYN_IOC_TERMINUS_DESTROY,
		HAMLYN_IOC_TERMINUS_BIND, HAMLYN_IOC_KICK, HAMLYN_IOC_WAIT,
		HAMLYN_IOC_STATS, HAMLYN_IOC_WATCH, HAMLYN_IOC_UNWATCH,
		HAMLYN_IOC_TICKET_CREATE, HAMLYN_IOC_TICKET_IMPORT,
		HAMLYN_IOC_TICKET_DROP, HAMLYN_IOC_AUDIT, HAMLYN_IOC_NIC_SET,
		HAMLYN_IOC_LISTEN, HAMLYN_IOC_CALL,
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		assert_int_equal(numbers[i], 0xc500 + i);
	assert_int_equal(HAMLYN_IOC_EXPLAINED(HAMLYN_IOC_NIC_SET), 0xc595);
}

static void flags_and_limits_are_fixed(void **state)
{
	(void)state;
	assert_int_equal(HAMLYN_ABI_VERSION, 1);
	assert_int_equal(HAMLYN_MAX_TAGS, 4096);
	assert_int_equal(HAMLYN_MAX_FRAGMENTS, 16);
	assert_int_equal(HAMLYN_MAX_METADATA, 60);
	assert_int_equal(HAMLYN_MAX_MESSAGE, 1ULL << 40);
	assert_int_equal(HAMLYN_NONE, 0xffffffffU);
	assert_int_equal(HAMLYN_DOORBELL_URING, 1);
	assert_int_equal(HAMLYN_DOORBELL_FSYNC, 2);
	assert_int_equal(HAMLYN_META_FAST, 0xffffffffU);
	assert_int_equal(HAMLYN_AREA_READONLY, 1);
	assert_int_equal(HAMLYN_SLOT_NORMAL, 0);
	assert_int_equal(HAMLYN_SLOT_PARANOID, 1);
	assert_int_equal(HAMLYN_SLOT_PARANOID_ONE_SHOT, 2);
	assert_int_equal(HAMLYN_SLOT_KEY_GIVEN, 1);
	assert_int_equal(HAMLYN_SLOT_TICKET_ONLY, 2);
	assert_int_equal(HAMLYN_TRB_NO_NOTIFY, 2);
	assert_int_equal(HAMLYN_TRB_FAST, 1);
	assert_int_equal(HAMLYN_TRB_QUIET, 4);
	assert_int_equal(HAMLYN_TRB_TICKET, 8);
	assert_int_equal(HAMLYN_TRB_FLAGS, 15);
	assert_int_equal(HAMLYN_PACKET_VERSION, 1);
	assert_int_equal(HAMLYN_PACKET_SINGLE, 1);
	assert_int_equal(HAMLYN_PACKET_FAST, 2);
	assert_int_equal(HAMLYN_PACKET_NO_NOTIFY, 4);
	assert_int_equal(HAMLYN_PACKET_QUIET, 8);
	assert_int_equal(HAMLYN_PACKET_TICKET, 16);
	assert_int_equal(HAMLYN_PACKET_FLAGS, 31);
	assert_int_equal(HAMLYN_NQE_FAST, 1);
	assert_int_equal(HAMLYN_NQE_SINGLE, 2);
	assert_int_equal(HAMLYN_NQE_OVERRUN, 4);
	assert_int_equal(HAMLYN_NQE_VOID, 8);
	assert_int_equal(HAMLYN_NQE_PEER_GONE, 16);
	assert_int_equal(HAMLYN_REJECT_SLOT, 0);
	assert_int_equal(HAMLYN_REJECT_KEY, 1);
	assert_int_equal(HAMLYN_REJECT_BOUNDS, 2);
	assert_int_equal(HAMLYN_REJECT_METADATA, 3);
	assert_int_equal(HAMLYN_REJECT_FORMAT, 4);
	assert_int_equal(HAMLYN_REJECT_ONE_SHOT, 5);
	assert_int_equal(HAMLYN_REJECT_TICKET, 6);
	assert_int_equal(HAMLYN_REJECT_DOWN, 7);
	assert_true(HAMLYN_REJECT_REASONS <= HAMLYN_STATS_REASONS);
	assert_int_equal(HAMLYN_STATS_REASONS, 16);
	assert_int_equal(HAMLYN_PRIORITY_NORMAL, 0);
	assert_int_equal(HAMLYN_PRIORITY_BULK, 1);
	assert_int_equal(HAMLYN_PRIORITY_HIGH, 2);
	assert_int_equal(HAMLYN_MAX_WEIGHT, 64);
	assert_int_equal(HAMLYN_MAX_TICKETS, 4096);
	assert_int_equal(HAMLYN_NIC_UP, 0);
	assert_int_equal(HAMLYN_NIC_DOWN, 1);
	assert_int_equal(HAMLYN_NIC_UNFED, 2);
	assert_int_equal(HAMLYN_NIC_SET_STATE, 1);
	assert_int_equal(HAMLYN_NIC_SET_WATCHDOG, 2);
	assert_int_equal(HAMLYN_NIC_FEED, 4);
	assert_int_equal(HAMLYN_EXPLAIN_BYTES, 256);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_offsets_are_those_of_the_list),
		cmocka_unit_test(list_leaves_out_no_byte_and_there_is_no_padding),
		cmocka_unit_test(ioctl_arguments_begin_with_their_size),
		cmocka_unit_test(structures_keep_64_bit_alignment_in_arrays),
		cmocka_unit_test(words_of_different_writers_share_no_cache_line),
		cmocka_unit_test(ioctl_numbers_are_fixed),
		cmocka_unit_test(flags_and_limits_are_fixed),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
