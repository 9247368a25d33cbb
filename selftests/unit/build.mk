# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of the core and of what else needs no device, under sanitizers.
UNITS := $(patsubst selftests/unit/%.c,$(BUILD)/unit/%,$(wildcard selftests/unit/unit_*.c))

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
$(BUILD)/unit/%: selftests/unit/%.c $(wildcard selftests/unit/*.h) $(CORE) $(LIB_HDR) $(AM_SRC) $(AM_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(LIB_INC) -std=gnu11 -Wall -Wextra -Wshadow \
		-O1 -g $(SANITIZE) $< -lcmocka -lpthread -o $@

$(BUILD)/unit/unit_place: tools/hamlyn-bridge/place.c tools/hamlyn-bridge/bridge.h

units: $(UNITS)

.PHONY: units
