# SPDX-License-Identifier: GPL-2.0-only
TEMPEST_CC_OBJ := $(patsubst tools/tempest-cc/%.c,$(BUILD)/obj/tempest-cc/%.o,\
	$(sort $(wildcard tools/tempest-cc/*.c)))
TEMPEST_LIBEXEC = $(LIBDIR)/hamlyn/tempest
# Where tempest.h is in a folder that was built
TEMPEST_CC_INC := $(BUILD)/tempest-cc/include

# Folders may be others when it is installed than when it was built.
TEMPEST_CC_FOLDERS := $(BUILD)/obj/tempest-cc/folders.h
$(TEMPEST_CC_FOLDERS): FORCE
	@mkdir -p $(@D)
	@printf '#define %s "%s"\n' TEMPEST_LIBEXEC "$(TEMPEST_LIBEXEC)" TEMPEST_LIBDIR "$(LIBDIR)" \
		TEMPEST_INCLUDEDIR "$(INCLUDEDIR)" TEMPEST_BINDIR "$(BINDIR)" \
		TEMPEST_WRAPPED "$(TEMPEST_WRAPPED)" > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:

$(BUILD)/obj/tempest-cc/main.o $(BUILD)/obj/tempest-cc/place.o: $(TEMPEST_CC_FOLDERS)

$(BUILD)/obj/tempest-cc/%.o: tools/tempest-cc/%.c $(wildcard tools/tempest-cc/*.h) \
		libhamlyn/tempest/src/base/abi.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/tempest/src -I$(BUILD)/obj/tempest-cc \
		-DHAMLYN_VERSION='"$(VERSION)"' $(CFLAGS_ALL) -c $< -o $@

# The compiler looks for "as" in the folder that the program is in.
$(BUILD)/tempest-cc/hamlyn-tempest-cc: $(TEMPEST_CC_OBJ)
	@mkdir -p $(@D)
	$(CC) $(TEMPEST_CC_OBJ) $(LDFLAGS) -o $@
	ln -sf hamlyn-tempest-cc $(@D)/hamlyn-tempest-c++
	ln -sf hamlyn-tempest-cc $(@D)/as

$(TEMPEST_CC_INC)/tempest.h: $(TEMPEST_HDR)
	@mkdir -p $(@D)/tempest
	ln -sf $(abspath $(wildcard libhamlyn/tempest/include/*.h*)) $(@D)/
	ln -sf $(abspath $(wildcard libhamlyn/tempest/include/tempest/*.h) $(TEMPEST_SEND)) \
		$(@D)/tempest/
	touch -h $@

tools: $(if $(filter x86_64-%,$(MACHINE)),$(BUILD)/tempest-cc/hamlyn-tempest-cc $(TEMPEST_CC_INC)/tempest.h)

install: $(if $(filter x86_64-%,$(MACHINE)),install-tempest-cc)
install-tempest-cc: $(BUILD)/tempest-cc/hamlyn-tempest-cc
	install -D -m 755 $< "$(DESTDIR)$(BINDIR)/hamlyn-tempest-cc"
	ln -sf hamlyn-tempest-cc "$(DESTDIR)$(BINDIR)/hamlyn-tempest-c++"
	install -D -m 755 $< "$(DESTDIR)$(TEMPEST_LIBEXEC)/as"
	install -D -m 644 tools/tempest-cc/hamlyn-tempest-cc.1 \
		"$(DESTDIR)$(MANDIR)/man1/hamlyn-tempest-cc.1"
	ln -sf hamlyn-tempest-cc.1 "$(DESTDIR)$(MANDIR)/man1/hamlyn-tempest-c++.1"

.PHONY: install-tempest-cc FORCE
