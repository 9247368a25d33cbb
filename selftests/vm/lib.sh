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

# parse_words "OPTION..." WORD...: take_option OPTION VALUE for those options, which need
# a value, and take_word WORD for all other words. What follows a word that take_word
# answers with false is in REST.
parse_words() {
	local with_value=" $1 "
	shift
	REST=()
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) usage && exit 0 ;;
		esac
		if [[ $with_value == *" $1 "* ]]; then
			need_value "$1" $#
			take_option "$1" "$2"
			shift 2
		elif take_word "$1"; then
			shift
		else
			shift
			REST=("$@")
			return 0
		fi
	done
}

# begin_run NAME: WORK, which end_run removes, and OUT, a temporary folder unless it is set.
# However the script ends, its clean_up is called.
begin_run() {
	TEMPORARY_OUT=no
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-$1.XXXXXX")
	if [ -z "$OUT" ]; then
		OUT=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-$1-out.XXXXXX")
		TEMPORARY_OUT=yes
	fi
	mkdir -p "$OUT"
	OUT=$(cd "$OUT" && pwd)
}

# end_run STATUS WHAT: exits. WHAT is in OUT, for people.
end_run() {
	[ -z "$WORK" ] || rm -rf "$WORK"
	# Only a folder that nobody asked for is removed, and only when there is nothing to learn from it
	if [ "$TEMPORARY_OUT" = yes ]; then
		if [ "$1" = 0 ] || [ ! -e "$OUT/console" ]; then
			rm -rf "$OUT"
		else
			say "$2 are kept in $OUT"
		fi
	fi
	exit "$1"
}

# Of a guest: its passwd and its group
guest_users() {
	printf '%s\n' root:x:0:0:root:/tmp:/bin/sh nobody:x:65534:65534:nobody:/:/bin/sh
	printf '%s:x:%s:\n' alice 1001 bob 1002 mallory 1003 |
		awk -F: '{ print $1 ":x:" $3 ":" $3 ":" $1 ":/home/" $1 ":/bin/sh" }'
}

guest_groups() { guest_users | awk -F: '{ print $1 ":x:" $4 ":" }'; }

# cable_of 1|2 FOLDER: for --qemu of two guests: eth0 of each is joined to the other's. --kmod
# virtio_pci and virtio_net, and net.ifnames=0, belong to it. FOLDER's path is a short one.
cable_of() {
	printf '%s%s%s' "-netdev dgram,id=cable,local.type=unix,local.path=$2/$1.socket," \
		"remote.type=unix,remote.path=$2/$((3 - $1)).socket " \
		"-device virtio-net-pci,netdev=cable,mac=52:54:00:00:00:0$1,romfile="
}
