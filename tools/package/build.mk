# SPDX-License-Identifier: GPL-2.0-only
#: make dist       build/hamlyn-VERSION.tar.xz: what is committed, with NEWS
#: make deb [RELEASE=trixie]   Debian packages of it, into build/deb*/, seen by lintian

dist:
	@tools/package/dist.sh --build $(BUILD) --version $(VERSION)

deb:
	@selftests/setup.sh packages package
	@tools/package/deb.sh --build $(BUILD) --version $(VERSION) $(if $(RELEASE),--release $(RELEASE)) \
		$(if $(ARCH),--arch $(ARCH))

.PHONY: dist deb
