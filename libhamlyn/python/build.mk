# SPDX-License-Identifier: MIT
#
# Python searches a folder of its version's name in /usr/local. That of another Python, of a
# virtual environment, is none of ours.
PYTHONDIR ?= $(or $(if $(filter /usr/local,$(PREFIX)),$(filter $(PREFIX)/%,$(shell python3 -c \
	'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null))),$(PREFIX)/lib/python3/dist-packages)

install: install-python
install-python:
	install -d "$(DESTDIR)$(PYTHONDIR)/hamlyn"
	install -m 644 libhamlyn/python/hamlyn/*.py libhamlyn/python/hamlyn/py.typed \
		"$(DESTDIR)$(PYTHONDIR)/hamlyn/"

.PHONY: install-python
