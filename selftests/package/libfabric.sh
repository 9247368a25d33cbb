#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages' provider with the release's own libfabric, whose interface differs from that of
# other releases: fi_info finds it, fi_pingpong goes over it.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
. "$REPO_DIR/selftests/package/system.sh"

usage() {
	cat <<EOF
Usage: selftests/package/libfabric.sh [--debs FOLDER] RELEASE

  RELEASE        bookworm, trixie or sid: a system of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh); libfabric comes from the mirror
  --debs FOLDER  packages built for that release (build/deb-RELEASE, or build/deb)
EOF
}

system_options "--debs" "$@"
mapfile -t debs < <(find "$DEBS" -maxdepth 1 \
	\( -name 'libhamlyn0_*.deb' -o -name 'libfabric-hamlyn_*.deb' \) | sort)
[ ${#debs[@]} = 2 ] || die 1 "there are no packages in $DEBS: make deb RELEASE=$RELEASE"

system_unpack minimal libfabric
mkdir "$system/srv/debs"
cp "${debs[@]}" "$system/srv/debs/"
cp "$REPO_DIR"/selftests/package/{libfabric-inside,result}.sh "$system/srv/"
system_run root:root bash /srv/libfabric-inside.sh
