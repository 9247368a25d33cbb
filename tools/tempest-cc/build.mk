# SPDX-License-Identifier: GPL-2.0-only
TEMPEST_CC_OBJ := $(patsubst tools/tempest-cc/%.c,$(BUILD)/obj/tempest-cc/%.o,\
	$(wildcard tools/tempest-cc/*.c))
TEMPEST_LIBEXEC = $(LIBDIR)/hamlyn/tempest

$(BUILD)/obj/tempest-cc/%.o: tools/tempest-cc/%.c $(wildcard tools/tempest-cc/*.h) \
		libhamlyn/tempest/src/abi.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/tempest/src -DHAMLYN_VERSION='"$(VERSION)"' \
		-DTEMPEST_LIBEXEC='"$(TEMPEST_LIBEXEC)"' $(CFLAGS_ALL) -c $< -o $@

# The compiler looks for "as" in the folder that the program is in.
$(BUILD)/tempest-cc/hamlyn-tempest-cc: $(TEMPEST_CC_OBJ)
	@mkdir -p $(@D)
	$(CC) $(TEMPEST_CC_OBJ) $(LDFLAGS) -o $@
	ln -sf hamlyn-tempest-cc $(@D)/hamlyn-tempest-c++
	ln -sf hamlyn-tempest-cc $(@D)/as

tools: $(BUILD)/tempest-cc/hamlyn-tempest-cc

install: install-tempest-cc
install-tempest-cc: $(BUILD)/tempest-cc/hamlyn-tempest-cc
	install -D -m 755 $< "$(DESTDIR)$(BINDIR)/hamlyn-tempest-cc"
	ln -sf hamlyn-tempest-cc "$(DESTDIR)$(BINDIR)/hamlyn-tempest-c++"
	install -D -m 755 $< "$(DESTDIR)$(TEMPEST_LIBEXEC)/as"
	install -D -m 644 tools/tempest-cc/hamlyn-tempest-cc.1 \
		"$(DESTDIR)$(MANDIR)/man1/hamlyn-tempest-cc.1"

.PHONY: install-tempest-cc
