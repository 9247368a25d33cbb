# SPDX-License-Identifier: GPL-2.0-only
#
# Bytes from one process to another, as cat and a pipe
CAT_OBJ := $(patsubst tools/hamlyn-cat/%.c,$(BUILD)/obj/cat/%.o,$(sort $(wildcard tools/hamlyn-cat/*.c)))

$(BUILD)/obj/cat/%.o: tools/hamlyn-cat/%.c tools/hamlyn-cat/cat.h $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -DHAMLYN_VERSION='"$(VERSION)"' $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlyn-cat: $(CAT_OBJ) $(BUILD)/libhamlyn.a
	$(CC) $(CFLAGS) $^ $(LDFLAGS) -lpthread -o $@

tools: $(BUILD)/hamlyn-cat

install: install-cat
install-cat: $(BUILD)/hamlyn-cat
	install -D -m 755 $(BUILD)/hamlyn-cat "$(DESTDIR)$(BINDIR)/hamlyn-cat"
	install -D -m 644 tools/hamlyn-cat/hamlyn-cat.1 "$(DESTDIR)$(MANDIR)/man1/hamlyn-cat.1"
	install -D -m 644 tools/hamlyn-cat/hamlyn-cat.bash-completion "$(DESTDIR)$(COMPLETIONDIR)/hamlyn-cat"

.PHONY: install-cat
