# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of Tempest whose accesses hamlyn-tempest-cc has checked, linked as the others are:
# with a library that can leave out its mechanisms.
TEMPEST_CC := $(BUILD)/tempest-cc/hamlyn-tempest-cc
TEMPEST_CC_AT := $(BUILD)/tempest-cc-tests
TEMPEST_CC_TESTS := $(TEMPEST_CC_AT)/late $(TEMPEST_CC_AT)/contended

$(TEMPEST_CC_TESTS): $(TEMPEST_CC_AT)/%: selftests/tempest/%.c selftests/tempest/test.c \
		selftests/tempest/test.h libhamlyn/tempest/examples/migrate.h $(TEMPEST_CC) \
		$(TEMPEST_TEST_OBJ) $(TEMPEST_AM) $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	rm -f $@.report
	$(TEMPEST_CC) --report $@.report $(TEMPEST_TEST_FLAGS) -DBY_TEMPEST_CC -g -c $< -o $@.o
	$(CC) $(TEMPEST_TEST_FLAGS) -static -no-pie $@.o selftests/tempest/test.c \
		$(filter %.o %.a,$^) $(LDFLAGS) -lpthread -o $@

tempest-tests: $(TEMPEST_CC_TESTS)
