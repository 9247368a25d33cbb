# SPDX-License-Identifier: GPL-2.0-only
#: make dist       build/hamlyn-VERSION.tar.xz: what is committed, with NEWS
#: make deb        Debian packages of it, into build/deb/, seen by lintian

dist:
	@tools/package/dist.sh --build $(BUILD) --version $(VERSION)

deb:
	@selftests/setup.sh packages package
	@tools/package/deb.sh --build $(BUILD) --version $(VERSION)

.PHONY: dist deb
