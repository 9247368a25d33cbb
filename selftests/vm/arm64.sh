# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034
#
# What is different when the guest's processor is an arm64 and the host's is not: the compiler,
# the emulator and its channels, and where libraries come from. Sourced by run.sh, build-module.sh
# and arm64-make.sh after lib.sh.

ARM64_PREFIX=aarch64-linux-gnu-
ARM64_CC=${ARM64_PREFIX}gcc-12
# Where the cross compiler's packages have the C library
ARM64_LIBC=/usr/aarch64-linux-gnu/lib
ARM64_ROOT=$CACHE/arm64
ARM64_LIBS=(
	"$ARM64_LIBC" "$ARM64_ROOT/usr/lib/aarch64-linux-gnu" "$ARM64_ROOT/lib/aarch64-linux-gnu"
)

# is_arm64 NAME: of a kernel, or of a kernel's release
is_arm64() { [[ $1 == *-arm64 ]]; }

need_arm64() {
	command -v "$ARM64_CC" >/dev/null ||
		die 125 "$ARM64_CC is missing; run: selftests/setup.sh packages arm64"
	[ -e "$ARM64_ROOT/stamp" ] ||
		die 125 "what arm64 guests need is not in the cache; run: selftests/setup.sh arm64"
}

# For run.sh: sets what boot and base_archive use. The verdict goes out by semihosting, a trap
# to the emulator that needs no device and no driver; see init.c.
use_arm64() {
	need_arm64
	GUEST_CC=$ARM64_CC
	BUSYBOX=$ARM64_ROOT/bin/busybox
	EMULATOR=$ARM64_ROOT/usr/bin/qemu-system-aarch64
	MACHINE=(-machine "virt,gic-version=3" -cpu "max,pauth-impdef=on")
	VERDICT=(-semihosting-config "enable=on,target=native,userspace=on,chardev=verdict")
	CONSOLE=ttyAMA0
	BAD_LOG+='|Internal error: |Unable to handle kernel|Unhandled fault|Bad mode in|SError'
	LIBRARIES_OF=arm64_libraries
}

arm64_library() { # NAME PROGRAM: its path on the host
	local dir
	for dir in "${ARM64_LIBS[@]}" "$(dirname "$2")" "$(dirname "$2")/.."; do
		[ ! -e "$dir/$1" ] || { printf '%s\n' "$dir/$1" && return 0; }
	done
	die 2 "--file $2: library $1 was not found"
}

# The host's ldd cannot run it: what it and its libraries name themselves
arm64_libraries() { # ROOT PROGRAM
	local root=$1 name path
	while read -r name; do
		[ ! -e "$root/lib/$name" ] || continue
		path=$(arm64_library "$name" "$2")
		mkdir -p "$root/lib"
		cp -L "$path" "$root/lib/$name"
		arm64_libraries "$root" "$path"
	done < <(readelf -dl "$2" 2>/dev/null |
		sed -nE 's/.*\(NEEDED\).*\[(.*)\]$/\1/p; s#.*interpreter: /lib/(.*)\]$#\1#p')
}
