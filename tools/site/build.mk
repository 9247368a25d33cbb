# SPDX-License-Identifier: GPL-2.0-only
#: make html       the documentation as a site, into build/html/
html: man
	@selftests/setup.sh packages site
	@tools/site/site.py --build $(BUILD) --version $(VERSION)

.PHONY: html
