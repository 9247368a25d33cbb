#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The source of a release: what is committed and no more, the same bytes for the same commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
	cat <<EOF
Usage: tools/package/dist.sh [--build FOLDER] --version VERSION

Makes FOLDER/hamlyn-VERSION.tar.xz (FOLDER is build, unless it is given) of the commit that
is checked out, with NEWS: the CHANGELOG as plain text. What is not committed is left out,
and told.
EOF
}

BUILD=build
VERSION=
while [ $# -gt 0 ]; do
	case $1 in
	--build) BUILD=${2:?--build wants a folder} && shift 2 ;;
	--version) VERSION=${2:?--version wants a version} && shift 2 ;;
	-h | --help) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
[ -n "$VERSION" ] || { usage >&2; exit 2; }
git rev-parse --verify -q HEAD >/dev/null || {
	echo "dist: this is no checkout of hamlyn's git repository, which a release is made of" >&2
	exit 1
}
git diff --quiet HEAD -- || echo "dist: changes that are not committed are left out" >&2

mkdir -p "$BUILD"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
when=$(git log -1 --format=%ct)
name=hamlyn-$VERSION
git archive --prefix="$name/" HEAD | tar -x -C "$work"
# Headings and marks of code become plain; a line's end is where CHANGELOG has it.
sed -E '/^# Changelog$/,+1d; s/^## (.*)$/\1/; s/`//g; s/^- /* /' "$work/$name/CHANGELOG.md" \
	>"$work/$name/NEWS"
tar -c --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s \
	-C "$work" "$name" | xz -6 -T1 >"$BUILD/$name.tar.xz.part"
mv "$BUILD/$name.tar.xz.part" "$BUILD/$name.tar.xz"
echo "$BUILD/$name.tar.xz"
