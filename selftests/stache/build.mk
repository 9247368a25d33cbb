# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of Stache, linked with a library that can leave out its mechanisms. Each .c file is a
# program, but test.c.
STACHE_TEST_OBJ := $(STACHE_SRC:libhamlyn/stache/src/%.c=$(BUILD)/obj/stache-test/%.o)
STACHE_TESTS := $(patsubst selftests/stache/%.c,$(BUILD)/stache/%,\
	$(filter-out selftests/stache/test.c,$(wildcard selftests/stache/*.c)))
STACHE_TEST_FLAGS = $(CPPFLAGS_ALL) -Ilibhamlyn/stache/src $(STACHE_INC) -DSTACHE_TEST_CONTROLS \
	$(CFLAGS_ALL) -fno-pie

$(BUILD)/obj/stache-test/%.o: libhamlyn/stache/src/%.c $(STACHE_HDR)
	@mkdir -p $(@D)
	$(CC) $(STACHE_TEST_FLAGS) -c $< -o $@

$(STACHE_TESTS): $(BUILD)/stache/%: selftests/stache/%.c selftests/stache/test.c selftests/stache/test.h \
		$(STACHE_TEST_OBJ) $(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(STACHE_TEST_FLAGS) -static -no-pie $(filter %.c %.o %.a,$^) $(LDFLAGS) -lpthread -o $@

stache-tests: stache $(STACHE_TESTS) $(BUILD)/hamlyn-run

.PHONY: stache-tests
