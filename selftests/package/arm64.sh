#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages for arm64 in a guest of an arm64 kernel: they are of that processor, the module of
# hamlyn-dkms builds and loads, messages pass on both devices, and none with a forged key.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../vm/arm64.sh
. "$VM_DIR/arm64.sh"

KERNEL=6.1-arm64

usage() {
	cat <<EOF2
Usage: selftests/package/arm64.sh [--debs FOLDER]

  --debs FOLDER  what "make deb RELEASE=bookworm ARCH=arm64" has made (build/deb-bookworm-arm64)

The processor is emulated on one with a stronger memory order: that it works does not show that
no barrier is missing.
EOF2
}

DEBS=$REPO_DIR/build/deb-bookworm-arm64
while [ $# -gt 0 ]; do
	case $1 in
	--debs) DEBS=$(realpath "${2:?--debs wants a folder}") && shift 2 ;;
	-h | --help) usage && exit ;;
	*) usage >&2 && exit 2 ;;
	esac
done
ls "$DEBS"/libhamlyn0_*_arm64.deb >/dev/null 2>&1 ||
	die 1 "there are no packages for arm64 in $DEBS: make deb RELEASE=bookworm ARCH=arm64"
need_arm64

work=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-arm64.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree"
for deb in "$DEBS"/*_{arm64,all}.deb; do
	[[ $deb == *-dbgsym_* ]] || dpkg-deb -x "$deb" "$tree"
done

# shellcheck source-path=SCRIPTDIR source=result.sh
. "$REPO_DIR/selftests/package/result.sh"
SAID=$work/log

# What an emulator of the build's machine would run, too, does not show that it is for arm64
all_of_arm64() {
	local file machine found=0
	while read -r file; do
		machine=$(readelf -h "$file" 2>/dev/null | sed -n 's/ *Machine: *//p' | sort -u)
		[ -n "$machine" ] || continue
		found=$((found + 1))
		[ "$machine" = AArch64 ] || { echo "$file: $machine"; return 1; }
	done < <(find "$tree" -type f)
	echo "$found files"
	[ $found -ge 8 ]
}

no_tempest() {
	! find "$DEBS" -maxdepth 1 -name '*_arm64.deb' | grep -E 'tempest|stache'
}

# A program against libhamlyn-dev as it is packaged
program() {
	"$ARM64_CC" -Wall -O2 -I"$tree/usr/include" -o "$work/bin/key" \
		"$REPO_DIR/tools/package/debian/tests/key.c" -L"$work/bin" -lhamlyn
}

module() {
	local source
	source=$(echo "$tree"/usr/src/hamlyn-*)
	"$VM_DIR/build-module.sh" "$KERNEL" "$source" "$work/module" HAMLYN_ADVERSARY=n
}

in_guest() { # WORDS OF RUN.SH
	HAMLYN_TIMEOUT_SCALE=${HAMLYN_TIMEOUT_SCALE:-3} "$VM_DIR/run.sh" "$KERNEL" --timeout 200 "${files[@]}" "$@"
}

speaks() { # DEVICE
	# shellcheck disable=SC2016 # the guest's shell
	echo 'export HAMLYN_DEVICE='"$1"'
		./key || exit 1
		./hamlyn-cat -l /tmp/hello >/tmp/heard & l=$!
		echo "from arm64" | ./hamlyn-cat -w -T 60 /tmp/hello || exit 1
		wait $l && [ "$(cat /tmp/heard)" = "from arm64" ] || exit 1
		head -c 3000000 /dev/urandom >/tmp/sent
		./hamlyn-cat -l /tmp/file >/tmp/came & l=$!
		./hamlyn-cat -w -T 60 /tmp/file </tmp/sent || exit 1
		wait $l && cmp /tmp/sent /tmp/came || exit 1
		./hamlyn-run -n 2 ./hamlyn-cat --version'
}

mkdir "$work/bin"
cp "$tree"/usr/bin/hamlyn-* "$tree"/usr/sbin/hamlynctl "$work/bin/"
for library in "$tree"/usr/lib/aarch64-linux-gnu/libhamlyn*.so.*; do
	[ -L "$library" ] || cp "$library" "$work/bin/$(readelf -d "$library" | sed -nE 's/.*SONAME.*\[(.*)\]/\1/p')"
done
ln -s libhamlyn.so.0 "$work/bin/libhamlyn.so"

check "every program and library is of arm64" all_of_arm64
check "Tempest and Stache are not among them" no_tempest
check "a program against libhamlyn-dev" program
check "the module of hamlyn-dkms builds" module
files=()
for file in key hamlyn-cat hamlyn-run hamlynctl; do
	files+=(--file "$work/bin/$file")
done
check "the embedded device" in_guest --cmd "$(speaks shm:arm64)"
check "the kernel device" in_guest --module "$work/module/hamlyn.ko" \
	--cmd "./hamlynctl nic show && $(speaks /dev/hamlyn0)"
echo "# unverified: order of memory accesses, which the emulating processor keeps"
results
