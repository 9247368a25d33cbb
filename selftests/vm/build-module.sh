#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds hamlyn.ko for one kernel, out of tree, in a work folder of its own.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=arm64.sh
. "$VM_DIR/arm64.sh"

usage() {
	cat <<EOF
Usage: selftests/vm/build-module.sh $(known_kernels)|KDIR SRC OUT [make argument]...
       selftests/vm/build-module.sh --may KERNEL: by its status, whether it can be built here

  KDIR  instead of a kernel of the cache: the folder of any configured kernel
        build tree or headers, with a / in its name
  SRC   the source tree; SRC/driver and SRC/uapi are copied, SRC is left as it is
  OUT   the work folder: OUT/src is the copy, OUT/hamlyn.ko the result. Using it
        again for the same kernel rebuilds only what changed.

Make arguments are handed to kbuild, for example W=1, C=2, KCFLAGS=-Werror.
Give each different set of make arguments an OUT of its own. For debug the
module has KASAN, UBSAN and KCOV, and GCOV_PROFILE=y adds line counts; for
kcsan it has KCSAN. KCFLAGS=-g helps to find the lines that reports mean.
EOF
}

# What kbuild makes beside the sources: neither copied nor deleted by sync_sources
KBUILD_FILES=('*.o' '*.ko' '*.mod' '*.mod.c' '*.a' '.*.cmd' '.*.d' 'modules.order' 'Module.symvers'
	'*.order' '*.symvers' '.tmp_*' '.module-common*')

# Copies by content: an unchanged file keeps its time and is not built again
sync_sources() { # SRC OUT
	local part options=()
	for part in "${KBUILD_FILES[@]}"; do
		options+=("--exclude=$part")
	done
	for part in driver uapi; do
		[ -d "$1/$part" ] || continue
		mkdir -p "$2/src/$part"
		rsync -rlp --checksum --delete "${options[@]}" "$1/$part/" "$2/src/$part/"
	done
}

# A work folder made for another kernel cannot be built upon
reset_if_other_kernel() { # OUT KERNEL-NAME
	if [ -e "$1/kernel" ] && [ "$(cat "$1/kernel")" != "$2" ]; then
		rm -rf "$1/src"
	fi
	printf '%s\n' "$2" >"$1/kernel"
}

namespaces_of_builds() {
	echo --mount
	[ "$(id -u)" = 0 ] || printf '%s\n' --user --map-root-user
}

# In a plain container they are refused. 4, as kselftest's, says that nothing was tried.
may_enter() { # KERNEL-DIR
	# shellcheck disable=SC2046 # several words
	[ "$(cat "$1/build")" != chroot ] || unshare $(namespaces_of_builds) true 2>/dev/null
}

# The kernel's own compiler lives in a folder that is entered by chroot, in a mount
# namespace that ends with the build. Who is not root gets a user namespace as well.
build_in_chroot() { # KERNEL-DIR RELEASE OUT [make argument]...
	local dir=$1 release=$2 out=$3
	shift 3
	# shellcheck disable=SC2016,SC2046 # expanded by the inner shell; several words
	unshare $(namespaces_of_builds) sh -ec '
		root=$1 src=$2 release=$3
		shift 3
		mount --rbind /proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount --bind "$src" "$root/src"
		mount -t tmpfs tmpfs "$root/tmp"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C \
			make --no-print-directory -C "/usr/src/linux-headers-$release" M=/src/driver "$@"
	' sh "$dir/root" "$out/src" "$release" "$@"
}

build() { # KERNEL-DIR or nothing, RELEASE or KDIR, OUT, [make argument]...
	local dir=$1 name=$2 out=$3
	shift 3
	if [ -n "$dir" ] && [ "$(cat "$dir/build")" = chroot ]; then
		build_in_chroot "$dir" "$name" "$out" "$@"
	else
		make --no-print-directory -C "${dir:+$dir/root/usr/src/linux-headers-}$name" \
			M="$out/src/driver" "$@"
	fi
}

# Messages name the files as the source tree does. Newer kernels print paths relative to driver/.
name_sources() { # OUT
	sed -u -E -e 's#^(|In file included from )([a-z0-9_]+(/[a-z0-9_]+)*\.[ch]:[0-9]+)#\1driver/\2#' \
		-e "s#$1/src/##g; s#/src/(driver|uapi)/#\1/#g"
}

main() {
	case ${1-} in -h | --help)
		usage
		exit 0
		;;
	esac
	if [ "${1-}" = --may ] && [ $# = 2 ]; then
		may_enter "$(kernel_dir "$2")"
		return
	fi
	[ $# -ge 3 ] || die 2 "three arguments are needed: KERNEL SRC OUT; see --help"
	local kernel=$1 src=$2 out=$3 name dir='' args=()
	shift 3
	args=("-j$(nproc)" "$@" modules)
	[ -e "$src/driver/Kbuild" ] || die 2 "$src has no driver/Kbuild"
	command -v rsync >/dev/null || die 1 "rsync is missing; run: selftests/setup.sh packages vm"
	if kernel_is_known "$kernel"; then
		dir=$(kernel_dir "$kernel")
		may_enter "$dir" ||
			die 4 "mount namespaces are refused here, and the compiler of kernel $kernel needs one"
		name=$(cat "$dir/release")
		# Instrumented code calls what its compiler's run-time library would have: the kernel's compiler
		[ "$(cat "$dir/build")" != source ] || args=(CC=gcc-12 "${args[@]}")
		! is_arm64 "$name" || args=("CROSS_COMPILE=$ARM64_PREFIX" "${args[@]}")
	elif [[ $kernel == */* ]]; then
		[ -e "$kernel/Makefile" ] || die 2 "$kernel is no kernel build folder: it has no Makefile"
		name=$(cd "$kernel" && pwd)
	else
		die 2 "kernel \"$kernel\" is unknown; allowed: $(known_kernels), or a path with a /"
	fi
	mkdir -p "$out"
	out=$(cd "$out" && pwd)
	# Two builds in one folder would spoil each other
	exec 8>"$out/lock"
	flock -w 300 8 || die 1 "another build has held $out for five minutes"
	reset_if_other_kernel "$out" "$name"
	sync_sources "$src" "$out"
	build "$dir" "$name" "$out" "${args[@]}" 2>&1 | name_sources "$out"
	cp "$out/src/driver/hamlyn.ko" "$out/hamlyn.ko.tmp"
	mv "$out/hamlyn.ko.tmp" "$out/hamlyn.ko"
}

main "$@"
