#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The source package of "make deb" is built once more, where all is different that should not
# matter, and gives the same packages, bit for bit; so does what makes the source package.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

usage() {
	cat <<EOF2
Usage: selftests/package/twice.sh [--debs FOLDER] RELEASE

  RELEASE        bookworm, trixie or sid: built in a system of it, which is made, as root, once,
                 and kept in \$HAMLYN_CACHE (tools/package/root.sh)
  --debs FOLDER  what "make deb RELEASE=RELEASE" has made (build/deb-RELEASE), with the source
EOF2
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
[ "$(id -u)" = 0 ] || die 1 "a system's files belong to its root: call it as root"
mapfile -t debs < <(find "$DEBS" -maxdepth 1 -name '*.deb' -printf '%f\n' | sort)
[ ${#debs[@]} -gt 0 ] || die 1 "there are no packages in $DEBS: make deb RELEASE=$RELEASE"

base=$("$REPO_DIR/tools/package/root.sh" build "$RELEASE")
work=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-twice.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work/root"
tar -x -C "$work/root" -f "$base"

# Another folder than deb.sh's, of another depth; a host, time zone, language (whose i is not I's
# small letter), umask, home, and number of jobs of its own
again=$work/root/srv/somewhere/else
mkdir -p "$again"
cp "$DEBS"/hamlyn_*.dsc "$DEBS"/hamlyn_*.tar.* "$again/"
# shellcheck disable=SC2016 # the inner shell's
unshare --mount --pid --uts --fork --kill-child sh -c '
	mount --make-rprivate /
	mount -t proc proc "$1/proc"
	mount -t tmpfs tmpfs "$1/dev/shm"
	hostname another
	exec env -i PATH=/bin:/usr/bin:/sbin:/usr/sbin HOME=/nonexistent TZ=XYZ-13:45 LANGUAGE=tr \
		DEB_BUILD_OPTIONS=parallel=3 chroot "$1" sh -c "
		set -e
		localedef -i tr_TR -f UTF-8 tr_TR.UTF-8
		export LC_ALL=tr_TR.UTF-8
		umask 027
		cd /srv/somewhere/else
		dpkg-source -x hamlyn_*.dsc source
		cd source
		dpkg-buildpackage -us -uc -b"' - "$work/root" >"$work/log" 2>&1 || {
	tail -n 30 "$work/log"
	echo "not ok - built elsewhere, $RELEASE"
	exit 1
}
cd "$again"
status=0
same() { # FILE ANOTHER
	cmp -s "$1" "$2" && return
	status=1
	echo "not ok - ${1##*/} differs"
	command -v diffoscope >/dev/null || return 0
	timeout 300 diffoscope --max-page-size 20000 --max-report-size 20000 "$1" "$2" 2>/dev/null |
		head -n 60 | sed 's/^/# /' || true
}

for file in "${debs[@]}"; do
	same "$DEBS/$file" "$file"
done
[ "$(find . -maxdepth 1 -name '*.deb' | wc -l)" = ${#debs[@]} ] || {
	echo "not ok - other packages"
	status=1
}

# The source, of what is committed here
version=$(sed -n 's/^Version: \(.*\)-1$/\1/p' "$DEBS"/hamlyn_*.dsc)
version=${version%%~*}
cd "$REPO_DIR"
tools/package/deb.sh --source --build "$work/one" --version "$version" >/dev/null
(
	umask 077
	export TZ=XYZ-13:45 LC_ALL=C LANGUAGE=tr
	tools/package/deb.sh --source --build "$work/another/place" --version "$version" >/dev/null
)
for file in "$work"/one/deb/*.{dsc,tar.xz} "$work/one/hamlyn-$version.tar.xz"; do
	same "$file" "$work/another/place/${file#"$work"/one/}"
done
[ $status != 0 ] || echo "ok - ${#debs[@]} packages of $RELEASE, and their source, made in two ways, are the same bytes"
exit $status
