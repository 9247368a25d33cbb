#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the packages' pages say, by somebody who has nothing but the packages: every program of
# README.md, of the pages and of the manual as they are installed, and the examples.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

usage() {
	cat <<EOT
Usage: selftests/package/pages.sh [--debs FOLDER] RELEASE

  RELEASE        bookworm, trixie or sid: a system of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh); compilers, and what the packages depend
                 on, come from the mirror
  --debs FOLDER  packages built for that release (build/deb-RELEASE, or build/deb)
EOT
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
ls "$DEBS"/hamlyn-doc_*.deb >/dev/null 2>&1 || die 1 "there are no packages in $DEBS: make deb RELEASE=$RELEASE"

base=$("$REPO_DIR/tools/package/root.sh" minimal "$RELEASE")
work=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-pages.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/system
mkdir "$root"
tar -x -C "$root" -f "$base"
mkdir "$root/srv/debs" "$root/srv/selftests" "$root/srv/selftests/tools"
# The module is tried in machines
for deb in "$DEBS"/*.deb; do
	[[ $deb == *-dbgsym_* || $deb == */hamlyn-dkms_* ]] || cp "$deb" "$root/srv/debs/"
done
cp "$REPO_DIR/selftests/tools/doc-test.sh" "$root/srv/selftests/tools/"
cp /etc/resolv.conf "$root/etc/"
inside() { # USER COMMAND
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --pid --fork --kill-child sh -c '
		mount --make-rprivate /
		mount -t proc proc "$1/proc"
		mkdir -p "$1/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			HAMLYN_TEST_SCALE="$2" chroot --userspec="$3" "$1" sh -c "cd /tmp && $4"' \
		- "$root" "${HAMLYN_TEST_SCALE:-1}" "$@"
}

passed=0
failed=0
check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		tail -n 40 "$work/log" | sed 's/^/# | /'
		failed=$((failed + 1))
	fi
}

tools=gcc,g++,libc6-dev,make,pkgconf,python3
check "apt installs them, and compilers" inside root:root "apt-get -q update && apt-get -q -y --no-install-recommends \
	-o Acquire::Check-Valid-Until=false install ./../srv/debs/*.deb ${tools//,/ }"
# Not root's rights, as nobody has whom the pages are for
user=65534:65534
inside $user "/srv/selftests/tools/doc-test.sh --installed" | tee "$work/pages" || failed=$((failed + 1))
passed=$((passed + $(grep -c '^ok - ' "$work/pages")))
check "the examples are built, with nothing but what is installed" inside $user \
	"cp -r /usr/share/doc/hamlyn-doc/examples . && make -s -C examples && HAMLYN_DEVICE=shm:first timeout 60 examples/hello"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
