# SPDX-License-Identifier: GPL-2.0-only
# Where systemd looks, also below /usr/local
SYSTEMDUNITDIR ?= $(PREFIX)/lib/systemd/system
SYSTEMD_UNITS := $(wildcard tools/systemd/*.service tools/systemd/*.socket)

install: install-systemd
install-systemd:
	@mkdir -p "$(DESTDIR)$(SYSTEMDUNITDIR)"
	for unit in $(SYSTEMD_UNITS); do \
		sed 's|@SBINDIR@|$(SBINDIR)|' $$unit >"$(DESTDIR)$(SYSTEMDUNITDIR)/$${unit##*/}" && \
		chmod 644 "$(DESTDIR)$(SYSTEMDUNITDIR)/$${unit##*/}" || exit; done

.PHONY: install-systemd
