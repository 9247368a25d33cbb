# SPDX-License-Identifier: GPL-2.0-only
RUN_SRC := $(sort $(wildcard tools/hamlyn-run/*.c tools/hamlyn-run/hosts/*.c))
RUN_HDR := $(wildcard tools/hamlyn-run/*.h tools/hamlyn-run/hosts/*.h libhamlyn/am/*.h)
RUN_OBJ := $(RUN_SRC:tools/hamlyn-run/%.c=$(BUILD)/obj/run/%.o)

$(BUILD)/obj/run/%.o: tools/hamlyn-run/%.c $(RUN_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Itools/hamlyn-run -Ilibhamlyn/am -DHAMLYN_VERSION='"$(VERSION)"' $(CFLAGS_ALL) -c $< -o $@

$(BUILD)/hamlyn-run: $(RUN_OBJ)
	$(CC) $(RUN_OBJ) $(LDFLAGS) -o $@

am: $(BUILD)/hamlyn-run

install: install-run
install-run: $(BUILD)/hamlyn-run
	install -D -m 755 $(BUILD)/hamlyn-run "$(DESTDIR)$(BINDIR)/hamlyn-run"
	install -D -m 644 tools/hamlyn-run/hamlyn-run.1 "$(DESTDIR)$(MANDIR)/man1/hamlyn-run.1"
	install -D -m 644 tools/hamlyn-run/hamlyn-run.bash-completion "$(DESTDIR)$(COMPLETIONDIR)/hamlyn-run"

.PHONY: install-run
