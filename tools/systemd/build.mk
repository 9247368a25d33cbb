# SPDX-License-Identifier: GPL-2.0-only
# Where systemd looks, also below /usr/local
SYSTEMDUNITDIR ?= $(PREFIX)/lib/systemd/system

install: install-systemd
install-systemd:
	@mkdir -p "$(DESTDIR)$(SYSTEMDUNITDIR)"
	sed 's|@SBINDIR@|$(SBINDIR)|' tools/systemd/hamlyn-fabric.service \
		>"$(DESTDIR)$(SYSTEMDUNITDIR)/hamlyn-fabric.service"
	chmod 644 "$(DESTDIR)$(SYSTEMDUNITDIR)/hamlyn-fabric.service"

.PHONY: install-systemd
