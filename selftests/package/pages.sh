#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the packages' pages say, by somebody who has nothing but the packages: every program of
# README.md, of the pages and of the manual as they are installed, and the examples.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
. "$REPO_DIR/selftests/package/system.sh"

usage() {
	cat <<EOT
Usage: selftests/package/pages.sh [--debs FOLDER] RELEASE

  RELEASE        bookworm, trixie or sid: a system of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh); compilers, and what the packages depend
                 on, come from the mirror
  --debs FOLDER  packages built for that release (build/deb-RELEASE, or build/deb)
EOT
}

system_options "--debs" "$@"
ls "$DEBS"/hamlyn-doc_*.deb >/dev/null 2>&1 || die 1 "there are no packages in $DEBS: make deb RELEASE=$RELEASE"

system_unpack minimal pages
mkdir -p "$system/srv/debs" "$system/srv/selftests/tools"
# The module is tried in machines
for deb in "$DEBS"/*.deb; do
	[[ $deb == *-dbgsym_* || $deb == */hamlyn-dkms_* ]] || cp "$deb" "$system/srv/debs/"
done
cp "$REPO_DIR/selftests/tools/doc-test.sh" "$system/srv/selftests/tools/"
# shellcheck source-path=SCRIPTDIR source=result.sh
. "$REPO_DIR/selftests/package/result.sh"
SAID=$work/log

tools=gcc,g++,libc6-dev,make,pkgconf,python3
check "apt installs them, and compilers" system_run root:root sh -c "apt-get -q update && apt-get -q -y --no-install-recommends \
	-o Acquire::Check-Valid-Until=false install /srv/debs/*.deb ${tools//,/ }"
# Not root's rights, as nobody has whom the pages are for
user=65534:65534
system_run $user sh -c "cd /tmp && /srv/selftests/tools/doc-test.sh --installed" | tee "$work/pages" || failed=$((failed + 1))
passed=$((passed + $(grep -c '^ok - ' "$work/pages")))
check "the examples are built, with nothing but what is installed" system_run $user sh -c \
	"cd /tmp && cp -r /usr/share/doc/hamlyn-doc/examples . && make -s -C examples && HAMLYN_DEVICE=shm:first timeout 60 examples/hello"
results
