#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make, for arm64: library, tools and tests for the guests of an arm64 kernel.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=arm64.sh
. "$VM_DIR/arm64.sh"

usage() {
	cat <<EOF
Usage: selftests/vm/arm64-make.sh [make argument or target]...

Calls make with the cross compiler and the libraries of the cache, for example
  selftests/vm/arm64-make.sh BUILD=build/arm64 lib selftests am-tests hamlynctl-test
Give it a BUILD of its own. The module is built as any other:
  make modules KERNEL=6.1-arm64
Needs: selftests/setup.sh packages arm64, selftests/setup.sh arm64
EOF
}

main() {
	local libs base
	case ${1-} in -h | --help)
		usage
		exit 0
		;;
	esac
	need_arm64
	libs=$ARM64_ROOT/usr/lib/aarch64-linux-gnu
	base=$ARM64_ROOT/lib/aarch64-linux-gnu
	export PKG_CONFIG_LIBDIR=$libs/pkgconfig PKG_CONFIG_SYSROOT_DIR=$ARM64_ROOT
	exec make -C "$REPO_DIR" --no-print-directory "HAMLYN_CACHE=$CACHE" \
		"CC=$ARM64_CC" "AR=${ARM64_PREFIX}ar" "CPPFLAGS=-idirafter $ARM64_ROOT/usr/include" \
		"LDFLAGS=-L$libs -L$base -Wl,-rpath-link,$libs:$base" "$@"
}

main "$@"
