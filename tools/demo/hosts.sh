#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo's part between hosts: two virtual machines, each with a NIC on one fabric, joined by
# a virtual cable. demo.sh runs it with BUILD, KERNEL, MIB, HERE and REPO.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../../selftests/vm/lib.sh
. "$REPO/selftests/vm/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

files=()
for program in receive_file send_file hamlynctl as_user; do
	files+=(--file "$BUILD/$program")
done

# Of host 1 or 2, in $guest: as an array, so that what runs in the background is run.sh itself
guest_of() {
	local other=$((3 - $1))
	{
		echo "HOST=$1 OTHER=$other MIB=$MIB"
		cat "$HERE/host.sh" "$HERE/host-$1.sh"
	} >"$work/$1.sh"
	guest=("$REPO/selftests/vm/run.sh" "$KERNEL" --timeout "$VM_TIMEOUT" --smp 1 --mem 512
		--kmod virtio_pci --kmod virtio_net --module "$BUILD/hamlyn.ko"
		--module-args "engine=inline nics=1" "${files[@]}" --script "$work/$1.sh"
		--append net.ifnames=0 --qemu "$(cable_of "$1" "$work")")
}

guest_of 2
"${guest[@]}" >"$work/2.log" 2>&1 &
second=$!
status=0
guest_of 1
"${guest[@]}" 2>&1 | sed -u 's/^\(@ \)\?/\1host 1: /; s/^@ host 1: /@ /' || status=$?
# Both end at the same time; if the first has failed the other one is not waited for.
[ "$status" = 0 ] || kill "$second" 2>/dev/null || true
wait "$second" || status=$?
sed 's/^\(@ \)\?/\1host 2: /; s/^@ host 2: /@ /' "$work/2.log"
exit "$status"
