#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A shell in a guest with the module loaded and the programs of $BUILD (build/) in PATH.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

BUILD=$(realpath -m -- "${BUILD:-$REPO_DIR/build}")
DAY=86400

usage() {
	cat <<EOF
Usage: selftests/vm/shell.sh [$(known_kernels)] [option of run.sh]...

The kernel is 6.12 unless named. The module is built first (selftests/vm/build-module.sh)
unless --module names one; the programs of \$BUILD (build/) are put in /host, which is in PATH.
The kernel log goes to the file console in the folder that --out names, and to dmesg.
EOF
}

# Programs that draw on the screen ask what terminal it is and how large; a serial line does not say.
terminal() { # sets options
	local name folder file rows columns
	read -r rows columns < <(stty size)
	[ "${rows:-0}" = 0 ] || options+=(--append "LINES=$rows COLUMNS=$columns")
	for name in "${TERM:-vt100}" vt100; do
		for folder in ~/.terminfo /etc/terminfo /lib/terminfo /usr/share/terminfo; do
			file=$folder/${name:0:1}/$name
			[ -e "$file" ] || continue
			options+=(--file "$file:/lib/terminfo/${name:0:1}/$name" --append "TERM=$name")
			return
		done
	done
}

main() {
	local kernel=6.12 option options=() has_module=no
	case ${1-} in
	-h | --help) usage && exit 0 ;;
	'' | --*) ;;
	*) kernel=$1 && shift ;;
	esac
	kernel_is_known "$kernel" || [[ $kernel == */* ]] ||
		die 2 "kernel \"$kernel\" is unknown; allowed: $(known_kernels), or the path of an image"
	if [ ! -t 0 ] || [ ! -t 1 ]; then
		die 2 "a terminal is needed; for scripts use selftests/vm/run.sh"
	fi
	for option in "$@"; do
		[ "$option" != --module ] || has_module=yes
	done
	if [ "$has_module" = no ]; then
		kernel_is_known "$kernel" || die 2 "the kernel is a file, so --module must name the module for it"
		"$VM_DIR/build-module.sh" "$kernel" "$REPO_DIR" "$BUILD/vm/$kernel"
		options+=(--module "$BUILD/vm/$kernel/hamlyn.ko")
	fi
	[ ! -d "$BUILD" ] || options+=(--bin-dir "$BUILD")
	terminal
	printf 'To leave: type exit (removes the module and checks the kernel log),\n'
	printf 'or press Ctrl-A and then X (stops the machine at once).\n'
	exec "$VM_DIR/run.sh" "$kernel" --interactive --timeout "$DAY" "${options[@]}" "$@"
}

main "$@"
