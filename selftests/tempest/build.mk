# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of Tempest, linked with a library that can leave out its mechanisms: each promise
# is tested without what keeps it, too. Each .c file is a program, but test.c.
TEMPEST_CHECK := selftests/lib/tempest/check.c
TEMPEST_TEST_OBJ := $(TEMPEST_SRC:libhamlyn/tempest/src/%.c=$(BUILD)/obj/tempest-test/%.o)
TEMPEST_TESTS := $(patsubst selftests/tempest/%.c,$(BUILD)/tempest/%,\
	$(filter-out selftests/tempest/test.c selftests/tempest/intruder.c,$(wildcard selftests/tempest/*.c)))
TEMPEST_TEST_FLAGS = $(CPPFLAGS_ALL) $(TEMPEST_INC) -Iselftests/lib -DTEMPEST_TEST_CONTROLS \
	$(CFLAGS_ALL) -fno-pie

$(BUILD)/obj/tempest-test/%.o: libhamlyn/tempest/src/%.c $(TEMPEST_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(TEMPEST_TEST_FLAGS) -c $< -o $@

$(BUILD)/include/tempest_sends.h: selftests/tempest/gen_sends.sh
	@mkdir -p $(@D)
	$< > $@

$(BUILD)/tempest/wraps: private LDFLAGS += -Wl,@libhamlyn/tempest/wrap/wrap.opt
$(BUILD)/tempest/wraps: $(TEMPEST_WRAP)

$(BUILD)/tempest/nodes: private LDFLAGS += -Wl,--build-id=sha1

$(BUILD)/tempest/contended: libhamlyn/tempest/examples/migrate.h

$(BUILD)/tempest/sends: $(BUILD)/include/tempest_sends.h

$(TEMPEST_TESTS): $(BUILD)/tempest/%: selftests/tempest/%.c selftests/tempest/test.c \
		selftests/tempest/checked.S $(TEMPEST_CHECK) $(TEMPEST_CHECK:.c=.h) \
		$(wildcard selftests/tempest/*.h) $(TEMPEST_TEST_OBJ) $(TEMPEST_AM) $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(TEMPEST_TEST_FLAGS) $(TEST_LINK) -no-pie $(filter selftests/%.c %.S %.o %.a,$^) $(LDFLAGS) -lpthread -o $@

# A stranger to Tempest
$(BUILD)/tempest/intruder: selftests/tempest/intruder.c $(TEMPEST_CHECK) $(TEMPEST_CHECK:.c=.h) \
		$(TEMPEST_HDR) $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(TEMPEST_TEST_FLAGS) $(TEST_LINK) -no-pie $(filter %.c %.a,$^) $(LDFLAGS) -lpthread -o $@

$(BUILD)/tempest/overload: selftests/tempest/overload.cpp $(TEMPEST_TEST_OBJ) $(TEMPEST_AM) \
		$(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS_ALL) $(TEMPEST_INC) -std=c++17 -Wall -Wextra $(CFLAGS) -fno-pie $(TEST_LINK) -no-pie \
		$(filter %.cpp %.o %.a,$^) $(LDFLAGS) -lpthread -o $@

tempest-tests: tempest $(TEMPEST_TESTS) $(BUILD)/tempest/overload $(BUILD)/tempest/intruder $(BUILD)/hamlyn-run

.PHONY: tempest-tests
