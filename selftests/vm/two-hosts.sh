#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two guests that are hosts of one fabric, joined by a cable: what happens when a process, a
# cable or a machine goes.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$REPO_DIR"

BUILD=${BUILD:-build}
PORT=7000

usage() {
	cat <<EOF
Usage: selftests/vm/two-hosts.sh [KERNEL [KERNEL]]

Boots a guest with each kernel (6.1 and 7.2), each with a NIC on one fabric, and runs
$BUILD/selftests/across between them. Modules, tests and tools have been built. Ends with
"N passed, N failed"; logs of both are in $BUILD/logs.
EOF
}

case ${1:-} in
-h | --help) usage && exit 0 ;;
esac
[ $# -le 2 ] || die 2 "too many arguments: $*"
kernels=("${1:-6.1}" "${2:-7.2}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Of guest 1 or 2: what is done first
start_of() {
	cat <<EOF
ip link set lo up
ip link set eth0 up
ip addr add 10.77.0.$1/24 dev eth0
export HAMLYN_DEVICE=/dev/hamlyn9 LD_LIBRARY_PATH=/host
hamlynctl nic add index 9 fabric tcp host $1 address 10.77.0.$1 security clear \
	dead-ms 3000 stall-ms 3000 || exit 1
hamlynctl peer add hamlyn9 host $((3 - $1)) address 10.77.0.$((3 - $1)) || exit 1
EOF
}

{
	start_of 1
	cat <<'EOF'
hamlynctl monitor &
for i in $(seq 600); do
	hamlynctl peer show hamlyn9 | grep -q "state up" && break
	sleep 0.1
done
EOF
	echo "across 10.77.0.2 $PORT; status=\$?; hamlynctl peer show hamlyn9; exit \$status"
} >"$work/1.sh"
# Until the machine dies
{
	start_of 2
	echo "hamlynctl monitor &"
	echo "for i in 1 2 3 4 5 6 7 8 9; do across serve $PORT; done"
} >"$work/2.sh"

# Of guest 1 or 2, in $guest: as an array, so that what runs in the background is run.sh itself
guest_of() {
	local kernel=${kernels[$1 - 1]}
	guest=(selftests/vm/run.sh "$kernel" --timeout 240 --smp 1 --kmod virtio_pci --kmod virtio_net
		--module "$BUILD/k$kernel/hamlyn.ko" --module-args "engine=inline nics=1"
		--file "$BUILD/selftests/across" --file "$BUILD/hamlynctl" --script "$work/$1.sh"
		--append "HAMLYN_TEST_SCALE=${HAMLYN_TEST_SCALE:-1} sysrq_always_enabled=1 net.ifnames=0"
		--out "$BUILD/logs/two-hosts-$1" --qemu "-no-reboot $(cable_of "$1" "$work")")
}

CAPTURE=$BUILD/logs/two-hosts.pcap

# What went through the cable, as Wireshark sees it
look_at_capture() {
	selftests/wireshark/wireshark-test.sh "$BUILD" "$CAPTURE"
}

# What the hosts and the capture say at their ends, added up
total() {
	tr -d '\r' <"$work/counts" | awk '
		/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; n++ }
		END { print passed + 0, failed + (n != 2) }'
}

mkdir -p "$BUILD/logs"
guest_of 2
"${guest[@]}" >"$work/2.log" 2>&1 &
second=$!
status=0
guest_of 1
guest[-1]+=" -object filter-dump,id=dump,netdev=cable,file=$CAPTURE"
"${guest[@]}" >"$work/1.log" 2>&1 || status=$?
# It has died, as it was told to; if not, it is not waited for
kill "$second" 2>/dev/null || true
wait "$second" || true
look_at_capture >>"$work/1.log" || status=1
grep -E '^[0-9]+ passed, [0-9]+ failed' "$work/1.log" >"$work/counts" || true
grep -vE '^[0-9]+ passed, [0-9]+ failed' "$work/1.log"
if [ "$status" != 0 ]; then
	sed 's/^/# 2: /' "$work/2.log"
fi
read -r passed failed < <(total)
echo "$passed passed, $failed failed"
[ "$status" = 0 ] && [ "$failed" = 0 ]
