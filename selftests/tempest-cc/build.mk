# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of Tempest whose accesses hamlyn-tempest-cc has checked, linked as the others are:
# with a library that can leave out its mechanisms.
TEMPEST_CC := $(BUILD)/tempest-cc/hamlyn-tempest-cc
TEMPEST_CC_AT := $(BUILD)/tempest-cc-tests
TEMPEST_CC_TESTS := $(TEMPEST_CC_AT)/late $(TEMPEST_CC_AT)/contended

$(TEMPEST_CC_TESTS): $(TEMPEST_CC_AT)/%: selftests/tempest/%.c selftests/tempest/test.c \
		selftests/tempest/test.h $(TEMPEST_CHECK) $(TEMPEST_CHECK:.c=.h) libhamlyn/tempest/examples/migrate.h $(TEMPEST_CC) \
		$(TEMPEST_TEST_OBJ) $(TEMPEST_AM) $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	rm -f $@.report
	$(TEMPEST_CC) --report $@.report $(TEMPEST_TEST_FLAGS) -DBY_TEMPEST_CC -g -c $< -o $@.o
	$(CC) $(TEMPEST_TEST_FLAGS) -static -no-pie $@.o selftests/tempest/test.c \
		$(TEMPEST_CHECK) $(filter %.o %.a,$^) $(LDFLAGS) -lpthread -o $@

# And one that is about what it does with loops
TEMPEST_CC_LOOPS := $(TEMPEST_CC_AT)/loops
$(TEMPEST_CC_LOOPS): selftests/tempest-cc/loops.c selftests/tempest/test.c selftests/tempest/test.h \
		$(TEMPEST_CHECK) $(TEMPEST_CHECK:.c=.h) $(TEMPEST_CC) $(TEMPEST_TEST_OBJ) $(TEMPEST_AM) $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(TEMPEST_CC) $(TEMPEST_TEST_FLAGS) -Iselftests/tempest -DBY_TEMPEST_CC -g -c $< -o $@.o
	$(CC) $(TEMPEST_TEST_FLAGS) -static -no-pie $@.o selftests/tempest/test.c \
		$(TEMPEST_CHECK) $(filter %.o %.a,$^) $(LDFLAGS) -lpthread -o $@

tempest-tests: $(TEMPEST_CC_TESTS) $(TEMPEST_CC_LOOPS)

# The same compiler and the same options, with checks and without
$(TEMPEST_CC_AT)/speed: $(wildcard selftests/tempest-cc/kernels.*) selftests/tempest-cc/speed.c \
		$(TEMPEST_CC) $(TEMPEST_CC_INC)/tempest.h $(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a $(TEMPEST_WRAP)
	@mkdir -p $(@D)
	rm -f $@.report
	$(TEMPEST_CC) --report $@.report $(CFLAGS_ALL) -DWAY=checked -c selftests/tempest-cc/kernels.c \
		-o $@.checked.o
	$(TEMPEST_CC) --plain $(CFLAGS_ALL) -DWAY=plain -c selftests/tempest-cc/kernels.c -o $@.plain.o
	$(TEMPEST_CC) --plain $(CFLAGS_ALL) -static selftests/tempest-cc/speed.c $@.checked.o \
		$@.plain.o $(LDFLAGS) -lm -o $@

tempest-tests: $(TEMPEST_CC_AT)/speed
