#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian packages of what is committed. Twice in a row it makes the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
	cat <<EOF
Usage: tools/package/deb.sh [--build FOLDER] --version VERSION [--release RELEASE]
                            [--arch ARCHITECTURE] [--no-lintian]

Makes Debian packages, source and binary, in FOLDER/deb (FOLDER is build, unless it is given).
Their version is VERSION-1 where the commit has the tag vVERSION, and says else of which
commit they are. \$DEBFULLNAME and \$DEBEMAIL name who has built them.

  --release RELEASE    in a system of that release (bookworm, trixie, sid), which is made once and
                       kept in \$HAMLYN_CACHE, as root; into FOLDER/deb-RELEASE. Else on this machine
  --arch ARCHITECTURE  for another than this machine's, by its cross compiler; with --release
                       into FOLDER/deb-RELEASE-ARCHITECTURE
  --source             the source package only
  --no-lintian         do not look at them with lintian
  --print-version      print the packages' version, and make none
EOF
}

BUILD=build
VERSION=
RELEASE=
ARCH=
LINTIAN=yes
PRINT=no
SOURCE=
while [ $# -gt 0 ]; do
	case $1 in
	--build) BUILD=${2:?--build wants a folder} && shift 2 ;;
	--version) VERSION=${2:?--version wants a version} && shift 2 ;;
	--release) RELEASE=${2:?--release wants a release} && shift 2 ;;
	--arch) ARCH=${2:?--arch wants an architecture} && shift 2 ;;
	--no-lintian) LINTIAN=no && shift ;;
	--source) SOURCE="-S -d" && LINTIAN=no && shift ;;
	--print-version) PRINT=yes && shift ;;
	-h | --help) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
[ -n "$VERSION" ] || { usage >&2; exit 2; }

upstream=$VERSION
if git describe --exact-match --tags --match "v$VERSION" HEAD >/dev/null 2>&1; then
	grep -qE "^## ${VERSION//./\\.} \([0-9-]+\)\$" <<<"$(git show HEAD:CHANGELOG.md)" || {
		echo "deb: v$VERSION is released, and CHANGELOG.md has no date for it" >&2
		exit 1
	}
else
	# Before the release of that version, and after the commit before.
	upstream=$VERSION~git$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd)
	upstream+=.$(git rev-parse --short=8 HEAD)
fi
[ "$PRINT" = no ] || {
	echo "$upstream-1"
	exit
}

[ -n "$RELEASE" ] || command -v dpkg-buildpackage >/dev/null || {
	echo "deb: dpkg-buildpackage is not here: selftests/setup.sh packages package" >&2
	exit 1
}

tarball=$(tools/package/dist.sh --build "$BUILD" --version "$VERSION" | tail -n 1)
who="${DEBFULLNAME:-hamlyn maintainers} <${DEBEMAIL:-maintainers@example.org}>"

out=$BUILD/deb${RELEASE:+-$RELEASE${ARCH:+-$ARCH}}
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
# The same modes whatever the umask of whoever builds it
chmod -R u=rwX,go=rX "$tree/debian"

# What is built, and looked at, in the folder where it is, here or in the release's system
cat >"$out/build.sh" <<EOF
set -e
cd hamlyn-$VERSION
sh ../overrides.sh
dpkg-buildpackage -j$(nproc) -us -uc $SOURCE ${ARCH:+-a$ARCH}
EOF
# One source is for three releases: what one lintian has to be told is an error to another that has
# no such tag any more, or, the newest, that takes no inputs of fuzz targets for text.
cat >"$out/overrides.sh" <<'EOF'
command -v lintian-explain-tags >/dev/null || exit 0
knows() { lintian-explain-tags "$1" >/dev/null 2>&1; }
for file in debian/*.lintian-overrides debian/source/lintian-overrides; do
	for tag in $(sed -n 's/^[a-z0-9 -]*: \([a-z-]*\).*/\1/p' "$file" | sort -u); do
		knows "$tag" || sed -i "/: $tag/d" "$file"
	done
	! knows redundant-priority-optional-field || sed -i '/fuzz\/corpus/d' "$file"
	grep -q '^[^#]' "$file" || rm "$file"
done
EOF
# Not of interest: that a first upload closes the bug that asked for it (Debian's archive's affair);
# which policy was the newest on the day of the release; and, what newer ones do not ask any more,
# that NICs are set up without systemd: whoever wants that calls "hamlynctl apply" from where the
# system starts things. Nor, as one source is for three releases, what the newest does without and
# the oldest asks for: two fields, and debhelper's level.
cat >"$out/lintian.sh" <<'EOF'
suppress=initial-upload-closes-no-bugs,out-of-date-standards-version
for tag in package-supports-alternative-init-but-no-init.d-script redundant-priority-optional-field \
	redundant-rules-requires-root-no-field package-uses-old-debhelper-compat-version; do
	! lintian-explain-tags "$tag" >/dev/null 2>&1 || suppress=$suppress,$tag
done
exec lintian -EIL +pedantic --allow-root --fail-on error,warning,info,pedantic,experimental \
	--suppress-tags "$suppress" *.changes
EOF

# in_folder SCRIPT
in_folder() {
	if [ -z "$RELEASE" ]; then
		(cd "$out" && sh "$1")
		return
	fi
	mkdir -p "$root/build"
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --pid --fork --kill-child sh -c '
		mount --make-rprivate /
		mount --bind "$2" "$1/build"
		mount -t proc proc "$1/proc"
		mount -t tmpfs tmpfs "$1/dev/shm"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			chroot "$1" sh -c "cd /build && exec sh $3"' - "$root" "$out" "$1"
}

if [ -n "$RELEASE" ]; then
	tar=$(tools/package/root.sh build "$RELEASE" "$ARCH")
	root=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-deb.XXXXXX")
	trap 'rm -rf "$root"' EXIT
	tar -x -C "$root" -f "$tar"
fi
in_folder build.sh >"$out/build.log" 2>&1 || {
	tail -n 30 "$out/build.log" >&2
	echo "deb: the build has failed: $out/build.log" >&2
	exit 1
}
[ "$LINTIAN" = no ] || in_folder lintian.sh
if [ -n "$SOURCE" ]; then ls "$out"/*.dsc; else ls "$out"/*.deb; fi
