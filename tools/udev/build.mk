# SPDX-License-Identifier: GPL-2.0-only
# Where udev looks, also below /usr/local
UDEVRULESDIR ?= $(PREFIX)/lib/udev/rules.d

install: install-udev
install-udev:
	install -D -m 644 tools/udev/60-hamlyn.rules "$(DESTDIR)$(UDEVRULESDIR)/60-hamlyn.rules"

.PHONY: install-udev
