#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The commands of administration.rst, typed on two fresh machines that are joined by a cable:
# they end with a message through WireGuard.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$REPO_DIR"

BUILD=${BUILD:-build}
DOC=Documentation/administration.rst

usage() {
	cat <<EOF
Usage: selftests/vm/first-message.sh [KERNEL]

Boots two guests (6.1) and types what $DOC says. Module, tools and examples have been
built. Ends with "N passed, N failed"; logs of both are in $BUILD/logs.
EOF
}

case ${1:-} in
-h | --help) usage && exit 0 ;;
esac
[ $# -le 1 ] || die 2 "too many arguments: $*"
command -v wg >/dev/null || die 1 "wg is missing; run: selftests/setup.sh packages vm"
kernel=${1:-6.1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# commands_of 1|2: the lines of that host
commands_of() {
	awk -v head="On host $1::" '
		$0 == head { on = 1; next }
		on && /^  / { print substr($0, 3); next }
		on && /^[^ ]/ { exit }' "$DOC"
}

script_of() { # 1|2
	# shellcheck disable=SC2016 # the guest's
	local command n=0 key='$(cat /tmp/key.other)'
	echo "HOST=$1 OTHER=$((3 - $1))"
	cat selftests/vm/first-message-guest.sh
	while IFS= read -r command; do
		n=$((n + 1))
		printf 'type_in %q\n' "${command//KEY$((3 - $1))/$key}"
	done < <(commands_of "$1")
	[ "$n" = 10 ] || die 1 "$DOC has $n commands for host $1, not ten"
	echo end_well
}

# In $guest: as an array, so that what runs in the background is run.sh itself
guest_of() { # 1|2
	script_of "$1" >"$work/$1.sh"
	guest=(selftests/vm/run.sh "$kernel" --timeout 240 --smp 1 --kmod virtio_pci --kmod virtio_net
		--kmod wireguard --file "$BUILD/k$kernel/hamlyn.ko" --file "$(command -v ip)"
		--file "$(command -v wg)" --file "$BUILD/hamlynctl" --file "$BUILD/receive_file"
		--file "$BUILD/send_file" --script "$work/$1.sh"
		--append "HAMLYN_TEST_SCALE=${HAMLYN_TEST_SCALE:-1} net.ifnames=0"
		--out "$BUILD/logs/first-message-$1" --qemu "$(cable_of "$1" "$work")")
}

# What both say at their end, added up; a failure more if one did not get there
total() {
	cat "$work/1.log" "$work/2.log" | tr -d '\r' | awk '
		/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; n++ }
		END { print passed + 0, failed + (n != 2) }'
}

mkdir -p "$BUILD/logs"
guest_of 2
"${guest[@]}" >"$work/2.log" 2>&1 &
second=$!
status=0
guest_of 1
"${guest[@]}" >"$work/1.log" 2>&1 || status=$?
wait "$second" || status=$?
cat "$work/1.log" "$work/2.log" | tr -d '\r' | grep -vE '^[0-9]+ passed, [0-9]+ failed'
read -r passed failed < <(total)
echo "$passed passed, $failed failed"
[ "$status" = 0 ] && [ "$failed" = 0 ]
