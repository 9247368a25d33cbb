#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages' provider with the release's own libfabric, whose interface differs from that of
# other releases: fi_info finds it, fi_pingpong goes over it.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

usage() {
	cat <<EOF
Usage: selftests/package/libfabric.sh [--debs FOLDER] RELEASE

  RELEASE        bookworm, trixie or sid: a system of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh); libfabric comes from the mirror
  --debs FOLDER  packages built for that release (build/deb-RELEASE, or build/deb)
EOF
}

DEBS=
RELEASE=
while [ $# -gt 0 ]; do
	case $1 in
	--debs) DEBS=$(realpath "${2:?--debs wants a folder}") && shift 2 ;;
	-h | --help) usage && exit ;;
	bookworm | trixie | sid) RELEASE=$1 && shift ;;
	*) usage >&2 && exit 2 ;;
	esac
done
[ -n "$RELEASE" ] || { usage >&2; exit 2; }
DEBS=${DEBS:-$REPO_DIR/build/deb-$RELEASE}
[ -d "$DEBS" ] || DEBS=$REPO_DIR/build/deb
[ "$(id -u)" = 0 ] || die 1 "a system's files belong to its root: call it as root"
mapfile -t debs < <(find "$DEBS" -maxdepth 1 \
	\( -name 'libhamlyn0_*.deb' -o -name 'libfabric-hamlyn_*.deb' \) | sort)
[ ${#debs[@]} = 2 ] || die 1 "there are no packages in $DEBS: make deb RELEASE=$RELEASE"

base=$("$REPO_DIR/tools/package/root.sh" minimal "$RELEASE")
work=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-libfabric.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/system"
tar -x -C "$work/system" -f "$base"
mkdir "$work/system/srv/debs"
cp "${debs[@]}" "$work/system/srv/debs/"
cp "$REPO_DIR/selftests/package/libfabric-inside.sh" "$work/system/srv/"
cp -L /etc/resolv.conf "$work/system/etc/"

# Its processes and its segments are its own.
# shellcheck disable=SC2016 # the inner shell's
inside='
	mount --make-rprivate /
	mount -t proc proc "$1/proc"
	mkdir -p "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm"
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		HAMLYN_TEST_SCALE="$2" DEBIAN_FRONTEND=noninteractive chroot "$1" bash /srv/libfabric-inside.sh'
timeout $((1200 * ${HAMLYN_TEST_SCALE:-1})) unshare --mount --pid --fork --kill-child \
	sh -c "$inside" - "$work/system" "${HAMLYN_TEST_SCALE:-1}"
