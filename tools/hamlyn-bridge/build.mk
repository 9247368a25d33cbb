# SPDX-License-Identifier: GPL-2.0-only
#
# Joins embedded devices of several hosts. It is inside the library, and has the wire format of the driver.
BRIDGE_OBJ := $(patsubst tools/hamlyn-bridge/%.c,$(BUILD)/obj/bridge/%.o,$(sort $(wildcard tools/hamlyn-bridge/*.c))) \
	$(BUILD)/obj/bridge/wire.o $(BUILD)/obj/bridge/lib/sock_owner.o

$(BUILD)/obj/bridge/%.o: tools/hamlyn-bridge/%.c tools/hamlyn-bridge/bridge.h tools/lib/sock_owner.h $(LIB_HDR) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(LIB_INC) -Itools -DHAMLYN_VERSION='"$(VERSION)"' $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/obj/bridge/lib/%.o: tools/lib/%.c tools/lib/sock_owner.h
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -Itools $(CPPFLAGS) $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/obj/bridge/wire.o: driver/core/wire.c $(CORE)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(LIB_INC) -Wno-unused-function $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlyn-bridge: $(BRIDGE_OBJ) $(BUILD)/libhamlyn.a
	$(CC) $(CFLAGS) $^ $(LDFLAGS) -lpthread -o $@

tools: $(BUILD)/hamlyn-bridge

# Its tests start it, and say frames of their own.
$(addprefix $(BUILD)/selftests/,bridge bridge_names bridge_peers bridge_places bridge_siege): driver/core/wire.c | $(BUILD)/hamlyn-bridge

install: install-bridge
install-bridge: $(BUILD)/hamlyn-bridge
	install -D -m 755 $(BUILD)/hamlyn-bridge "$(DESTDIR)$(BINDIR)/hamlyn-bridge"
	install -D -m 644 tools/hamlyn-bridge/hamlyn-bridge.1 "$(DESTDIR)$(MANDIR)/man1/hamlyn-bridge.1"
	install -D -m 644 tools/hamlyn-bridge/hamlyn-bridge.bash-completion "$(DESTDIR)$(COMPLETIONDIR)/hamlyn-bridge"

.PHONY: install-bridge
