# SPDX-License-Identifier: GPL-2.0-only
#
# The papers' test programs. Static, so that they run in the guest: then start-up is PMI's.
AM_TOOLS := $(patsubst tools/am/%.c,$(BUILD)/am/%,$(wildcard tools/am/*.c))
AM_SHARED_OBJ := $(patsubst tools/am/%.c,$(BUILD)/obj/am-tools/%.o,$(sort $(wildcard tools/am/lib/*.c)))

$(BUILD)/obj/am-tools/%.o: tools/am/%.c $(wildcard tools/am/lib/*.h) $(AM_HDR)
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -Itools/am/lib -Ilibhamlyn/am/include $(CPPFLAGS) $(am_cflags) -c $< -o $@

$(AM_TOOLS): $(BUILD)/am/%: $(BUILD)/obj/am-tools/%.o $(AM_SHARED_OBJ) $(AM_LIBS)
	@mkdir -p $(@D)
	$(CC) -static $^ $(LDFLAGS) -lm -lpthread -o $@

am: am-tools
am-tools: $(AM_TOOLS) $(BUILD)/am/hamlyn-run

# Where the tests look for all of them.
$(BUILD)/am/hamlyn-run: $(BUILD)/hamlyn-run
	@mkdir -p $(@D)
	ln -sf ../hamlyn-run $@

.PHONY: am-tools
