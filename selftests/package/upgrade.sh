#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Packages of an earlier version are upgraded and purged while processes use them, on the embedded
# device, in a system that has nothing else of us. trial.sh does it with the module, in a machine.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
. "$REPO_DIR/selftests/package/system.sh"

usage() {
	cat <<EOT
Usage: selftests/package/upgrade.sh --from FOLDER [--debs FOLDER] RELEASE

  --from FOLDER  packages of the earlier version, built for that release
  --debs FOLDER  those that are tried (build/deb-RELEASE, or build/deb)
  RELEASE        bookworm, trixie or sid: a system of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh); a compiler, and what the packages depend
                 on, come from the mirror
EOT
}

system_options "--from --debs" "$@"
[ -n "$FROM" ] || { usage >&2; exit 2; }

system_unpack minimal upgrade
# put FROM TO: all but the module, which no chroot can try
put() {
	local deb found=0
	mkdir "$system/srv/$2"
	for deb in "$1"/*.deb; do
		[[ -e $deb && $deb != *-dbgsym_* && $deb != */hamlyn-dkms_* ]] || continue
		cp "$deb" "$system/srv/$2/"
		found=$((found + 1))
	done
	[ $found -gt 0 ] || die 1 "there are no packages in $1"
}
put "$FROM" old
put "$DEBS" new
cp "$REPO_DIR"/selftests/package/{upgrade-inside,result}.sh "$system/srv/"
system_run root:root bash /srv/upgrade-inside.sh
