# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What setup.sh and the scripts of this folder share: messages, the place of
# the cache and how to find things in it. Sourced, never run.

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPO_DIR=$(cd "$VM_DIR/../.." && pwd)
CACHE=${HAMLYN_CACHE:-$REPO_DIR/.cache}
CONF=$VM_DIR/kernels.conf
ME=${0##*/}

say() { printf '# %s: %s\n' "$ME" "$*" >&2; }

die() { # STATUS MESSAGE...
	local status=$1
	shift
	printf '%s: error: %s\n' "$ME" "$*" >&2
	exit "$status"
}

# conf KIND [KEY]: the records of kernels.conf of that kind, without the kind
conf() {
	awk -v kind="$1" -v key="${2-}" \
		'$1 == kind && (key == "" || $2 == key) { $1 = ""; sub(/^ /, ""); print }' "$CONF"
}

kernel_series() { conf kernel | cut -d' ' -f1; }

kernel_is_known() { [ -n "$(conf kernel "$1")" ]; }

known_kernels() { kernel_series | paste -sd'|'; }

# kernel_dir SERIES: where setup.sh unpacked that kernel; says what to run when it has not
kernel_dir() {
	local dir=$CACHE/kernel-$1
	[ -e "$dir/stamp" ] ||
		die 125 "kernel $1 is not in the cache; run: selftests/setup.sh kernel $1"
	printf '%s\n' "$dir"
}

is_number() { [[ $1 =~ ^[0-9]+$ ]] && [ "${#1}" -le 9 ]; }

# need_number NAME VALUE MIN MAX
need_number() {
	if ! is_number "$2" || ((10#$2 < $3 || 10#$2 > $4)); then
		die 2 "$1 is \"$2\"; a whole number from $3 to $4 is allowed"
	fi
}

# need_value OPTION COUNT: COUNT is how many words are left, the option included
need_value() { [ "$2" -ge 2 ] || die 2 "$1 needs a value; see --help"; }
