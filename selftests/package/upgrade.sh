#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Packages of an earlier version are upgraded and purged while processes use them, on the embedded
# device, in a system that has nothing else of us. trial.sh does it with the module, in a machine.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

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

FROM=
DEBS=
RELEASE=
while [ $# -gt 0 ]; do
	case $1 in
	--from) FROM=$(realpath "${2:?--from wants a folder}") && shift 2 ;;
	--debs) DEBS=$(realpath "${2:?--debs wants a folder}") && shift 2 ;;
	-h | --help) usage && exit ;;
	bookworm | trixie | sid) RELEASE=$1 && shift ;;
	*) usage >&2 && exit 2 ;;
	esac
done
if [ -z "$RELEASE" ] || [ -z "$FROM" ]; then usage >&2 && exit 2; fi
DEBS=${DEBS:-$REPO_DIR/build/deb-$RELEASE}
[ -d "$DEBS" ] || DEBS=$REPO_DIR/build/deb
[ "$(id -u)" = 0 ] || die 1 "a system's files belong to its root: call it as root"

base=$("$REPO_DIR/tools/package/root.sh" minimal "$RELEASE")
work=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-upgrade.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/system"
tar -x -C "$work/system" -f "$base"
# put FROM TO: all but the module, which no chroot can try
put() {
	local deb found=0
	mkdir "$work/system/srv/$2"
	for deb in "$1"/*.deb; do
		[[ -e $deb && $deb != *-dbgsym_* && $deb != */hamlyn-dkms_* ]] || continue
		cp "$deb" "$work/system/srv/$2/"
		found=$((found + 1))
	done
	[ $found -gt 0 ] || die 1 "there are no packages in $1"
}
put "$FROM" old
put "$DEBS" new
cp "$REPO_DIR/selftests/package/upgrade-inside.sh" "$work/system/srv/"
cp -L /etc/resolv.conf "$work/system/etc/"

# Its processes and its segments are its own.
# shellcheck disable=SC2016 # the inner shell's
inside='
	mount --make-rprivate /
	mount -t proc proc "$1/proc"
	mkdir -p "$1/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		HAMLYN_TEST_SCALE="$2" DEBIAN_FRONTEND=noninteractive chroot "$1" bash /srv/upgrade-inside.sh'
timeout $((1200 * ${HAMLYN_TEST_SCALE:-1})) unshare --mount --pid --fork --kill-child \
	sh -c "$inside" - "$work/system" "${HAMLYN_TEST_SCALE:-1}"
