# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of Active Messages; one with a fabric of its own between it and the device.
# Those have rules of their own; all others are linked with the library.
AM_SPECIAL := fabric compat engine shared boot_peer
AM_PLAIN := $(filter-out $(AM_SPECIAL:%=$(BUILD)/am/%),\
	$(patsubst selftests/am/%.c,$(BUILD)/am/%,$(wildcard selftests/am/*.c)))
AM_TESTS := $(AM_PLAIN) $(addprefix $(BUILD)/,am/compat am/engine am/shared am/exactly_once_lossy boot_peer)

$(AM_PLAIN): $(BUILD)/am/%: selftests/am/%.c $(AM_LIBS) $(AM_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(am_cppflags) $(am_cflags) -static $< $(AM_LIBS) $(LDFLAGS) -lpthread -o $@

$(BUILD)/am/exactly_once_lossy: selftests/am/fabric.c $(AM_SRC) $(AM_HDR) $(LIB_HDR) \
		$(AM_SHARED_OBJ) $(BUILD)/obj/am-tools/exactly_once.o $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/am -Ilibhamlyn/am/include -DHAMLYN_AM_TEST_WIRE \
		$(am_cflags) -static $(filter %.c %.o %.a,$^) $(LDFLAGS) -lm -lpthread -o $@

# As users of it compile theirs: words of other types than the handlers say, as ever.
$(BUILD)/am/compat: selftests/am/compat.c $(AM_LIBS) $(AM_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) -Ilibhamlyn/am/include $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(CFLAGS) -static $< \
		$(AM_LIBS) $(LDFLAGS) -lpthread -o $@

# What it sends is noted.
$(BUILD)/am/engine: selftests/am/engine.c $(AM_SRC) $(AM_HDR) $(LIB_HDR) $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/am -Ilibhamlyn/am/include -DHAMLYN_AM_TEST_WIRE \
		$(am_cflags) -static $(filter %.c %.a,$^) $(LDFLAGS) -lpthread -o $@

# Loaded to a random place, with libraries.
$(BUILD)/am/shared: selftests/am/shared.c $(BUILD)/libhamlyn-am.so $(BUILD)/libhamlyn.so $(AM_HDR)
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -Ilibhamlyn/am/include $(CPPFLAGS) $(am_cflags) -fPIE -pie $< \
		-Wl,--no-as-needed $(filter %.so,$^) -Wl,-rpath,'$$ORIGIN/..' $(LDFLAGS) -o $@

$(BUILD)/boot_peer: selftests/am/boot_peer.c $(wildcard libhamlyn/am/boot*) libhamlyn/am/pmi_line.h
	@mkdir -p $(@D)
	$(CC) $(am_cppflags) $(am_cflags) $(filter %.c,$^) $(LDFLAGS) -ldl -lpthread -o $@

am-tests: am $(AM_TESTS)

.PHONY: am-tests
