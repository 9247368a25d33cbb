# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of Stache, linked with a library that can leave out its mechanisms. Each .c file is a
# program, but test.c.
STACHE_TEST_OBJ := $(STACHE_SRC:libhamlyn/stache/src/%.c=$(BUILD)/obj/stache-test/%.o)
STACHE_TESTS := $(patsubst selftests/stache/%.c,$(BUILD)/stache/%,\
	$(filter-out selftests/stache/test.c,$(wildcard selftests/stache/*.c)))
STACHE_TEST_FLAGS = $(CPPFLAGS_ALL) -Ilibhamlyn/stache/src $(STACHE_INC) -Iselftests/lib \
	-DSTACHE_TEST_CONTROLS $(CFLAGS_ALL) -fno-pie

$(BUILD)/obj/stache-test/%.o: libhamlyn/stache/src/%.c $(STACHE_HDR)
	@mkdir -p $(@D)
	$(CC) $(STACHE_TEST_FLAGS) -c $< -o $@

$(STACHE_TESTS): $(BUILD)/stache/%: selftests/stache/%.c selftests/stache/test.c selftests/stache/test.h \
		$(TEMPEST_CHECK) $(TEMPEST_CHECK:.c=.h) $(STACHE_TEST_OBJ) $(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(STACHE_TEST_FLAGS) $(TEST_LINK) -no-pie $(filter %.c %.o %.a,$^) $(LDFLAGS) -lpthread -o $@

stache-tests: stache $(STACHE_TESTS) $(BUILD)/hamlyn-run

# What runs under the thread sanitizer, for CPPFLAGS=-DTEMPEST_LOW_SEGMENT TEST_LINK=
sanitized-tests: $(TEMPEST_TESTS) $(BUILD)/tempest/overload $(STACHE_TESTS)

.PHONY: stache-tests sanitized-tests

# The hybrid example without what its protocol is for
$(BUILD)/stache-controls/hybrid: libhamlyn/stache/examples/hybrid.c $(STACHE_HDR) \
		$(wildcard libhamlyn/stache/examples/*.h) $(BUILD)/libhamlyn-stache.a \
		$(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(STACHE_INC) -DUPDATE_PUSHES_NOTHING $(CFLAGS_ALL) -fno-pie -static $< \
		$(filter %.a,$^) $(LDFLAGS) -lpthread -lm -o $@

stache-tests: $(BUILD)/stache-controls/hybrid

# Programs with the macros of c.m4.stache, as they are built elsewhere: by m4, and with the shared
# libraries. Beside them there is a library that can leave out its mechanisms.
PARMACS := $(BUILD)/stache-parmacs
PARMACS_M4 = m4 libhamlyn/stache/macros/c.m4.stache
PARMACS_PROGRAMS := $(PARMACS)/relax $(PARMACS)/sort $(PARMACS)/create
PARMACS_CC = $(CC) $(CPPFLAGS_ALL) $(STACHE_INC) -I$(PARMACS) -O2 -g -Wall -Wextra -fno-pie
PARMACS_LIBS = $(BUILD)/libhamlyn-stache.so $(BUILD)/libhamlyn-tempest.so $(LIB_SO)
PARMACS_LINK = -no-pie $(LDFLAGS) $(PARMACS_LIBS) -lm

$(PARMACS)/%.c: selftests/stache/parmacs/%.C libhamlyn/stache/macros/c.m4.stache
	@mkdir -p $(@D)
	$(PARMACS_M4) $< > $@

$(PARMACS)/%.h: selftests/stache/parmacs/%.H libhamlyn/stache/macros/c.m4.stache
	@mkdir -p $(@D)
	$(PARMACS_M4) $< > $@

$(PARMACS)/relax $(PARMACS)/create: $(PARMACS)/%: $(PARMACS)/%.c $(PARMACS_LIBS)
	$(PARMACS_CC) $(filter %.c,$^) $(PARMACS_LINK) -o $@

$(PARMACS)/sort: $(PARMACS)/sort.c $(PARMACS)/buckets.c $(PARMACS)/sort.h $(PARMACS_LIBS)
	$(PARMACS_CC) $(filter %.c,$^) $(PARMACS_LINK) -o $@

$(PARMACS)/control/libhamlyn-stache.so.$(SOVERSION): $(STACHE_SRC) selftests/stache/parmacs/control.c \
		$(STACHE_HDR) $(BUILD)/libhamlyn-tempest.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/stache/src $(STACHE_INC) -DSTACHE_TEST_CONTROLS $(CFLAGS_ALL) \
		-fPIC -shared -Wl,-soname,$(@F) \
		-Wl,--version-script=libhamlyn/stache/libhamlyn-stache.map $(filter %.c,$^) $(TEMPEST_SO) $(LIB_SO) -o $@

stache-tests: $(PARMACS_PROGRAMS) $(PARMACS)/control/libhamlyn-stache.so.$(SOVERSION)
