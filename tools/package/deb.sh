#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian packages of what is committed. Twice in a row it makes the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
	cat <<EOF
Usage: tools/package/deb.sh [--build FOLDER] --version VERSION [--arch ARCHITECTURE] [--no-lintian]

Makes Debian packages, source and binary, in FOLDER/deb (FOLDER is build, unless it is given).
Their version is VERSION-1 where the commit has the tag vVERSION, and says else of which
commit they are. \$DEBFULLNAME and \$DEBEMAIL name who has built them.

  --arch ARCHITECTURE  for another than this machine's, by its cross compiler
  --no-lintian         do not look at them with lintian
EOF
}

BUILD=build
VERSION=
ARCH=
LINTIAN=yes
while [ $# -gt 0 ]; do
	case $1 in
	--build) BUILD=${2:?--build wants a folder} && shift 2 ;;
	--version) VERSION=${2:?--version wants a version} && shift 2 ;;
	--arch) ARCH=${2:?--arch wants an architecture} && shift 2 ;;
	--no-lintian) LINTIAN=no && shift ;;
	-h | --help) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
[ -n "$VERSION" ] || { usage >&2; exit 2; }
command -v dpkg-buildpackage >/dev/null || {
	echo "deb: dpkg-buildpackage is not here: selftests/setup.sh packages package" >&2
	exit 1
}

tarball=$(tools/package/dist.sh --build "$BUILD" --version "$VERSION" | tail -n 1)
upstream=$VERSION
if ! git describe --exact-match --tags --match "v$VERSION" HEAD >/dev/null 2>&1; then
	# Before the release of that version, and after the commit before.
	upstream=$VERSION~git$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd)
	upstream+=.$(git rev-parse --short=8 HEAD)
fi
who="${DEBFULLNAME:-hamlyn maintainers} <${DEBEMAIL:-maintainers@example.org}>"

out=$BUILD/deb
tree=$out/hamlyn-$VERSION
rm -rf "$out"
mkdir -p "$out"
cp "$tarball" "$out/hamlyn_$upstream.orig.tar.xz"
tar -x -C "$out" -f "$tarball"
cp -r tools/package/debian "$tree/debian"
sed -i "s/^Maintainer: .*/Maintainer: $who/" "$tree/debian/control"
cat >"$tree/debian/changelog" <<EOF
hamlyn ($upstream-1) unstable; urgency=medium

  * New upstream version: see NEWS.

 -- $who  $(git log -1 --format=%cD)
EOF

(cd "$tree" && dpkg-buildpackage -us -uc ${ARCH:+-a"$ARCH"}) >"$out/build.log" 2>&1 || {
	tail -n 30 "$out/build.log" >&2
	echo "deb: the build has failed: $out/build.log" >&2
	exit 1
}
# That a first upload closes the bug that asked for it is Debian's archive's affair.
[ "$LINTIAN" = no ] || lintian -EIL +pedantic --allow-root \
	--fail-on error,warning,info,pedantic,experimental \
	--suppress-tags initial-upload-closes-no-bugs "$out"/*.changes
ls "$out"/*.deb
