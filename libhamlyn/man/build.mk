# SPDX-License-Identifier: MIT
#
# The manual: section 3 from the headers, section 7 by hand.
#: make man        manual pages, into build/man
MAN_SRC := $(wildcard libhamlyn/man/* libhamlyn/man/examples/*) libhamlyn/libhamlyn.map libhamlyn/am/libhamlyn-am.map \
	$(wildcard libhamlyn/include/*.h libhamlyn/include/hamlyn/*.h uapi/linux/*.h \
	libhamlyn/am/include/*.h libhamlyn/tempest/libhamlyn-tempest.map \
	libhamlyn/tempest/include/*.h libhamlyn/tempest/include/*/*.h \
	libhamlyn/stache/include/*.h libhamlyn/stache/include/*/*.h libhamlyn/stache/libhamlyn-stache.map)

man: $(BUILD)/man/stamp

$(BUILD)/man/stamp: $(MAN_SRC)
	@mkdir -p $(@D)
	libhamlyn/man/gen.py --version $(VERSION) $(@D)
	@touch $@

install: install-man
install-man: man
	install -d "$(DESTDIR)$(MANDIR)/man3" "$(DESTDIR)$(MANDIR)/man7"
	install -m 644 $(BUILD)/man/man3/* "$(DESTDIR)$(MANDIR)/man3/"
	install -m 644 $(BUILD)/man/man7/* "$(DESTDIR)$(MANDIR)/man7/"

.PHONY: man install-man
