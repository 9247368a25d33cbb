#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the libfabric provider on the kernel device, by its own tests and by fi_pingpong,
# whose traffic has to show in the counters of the NIC.
set -u

ME=ofi-guest.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/lib.sh"

limit=$((100 * ${HAMLYN_TEST_SCALE:-1}))
work_folder ofi-guest
export HAMLYN_DEVICE=/dev/hamlyn0 FI_PROVIDER_PATH=/host/libfabric

# Which, and without which variants, says the kernel command line.
tests=$(sed -n 's/.*hamlyn\.tests=\([^ ]*\).*/\1/p' /proc/cmdline | tr , ' ')
# shellcheck disable=SC2086 # several words
totals "the provider's tests" "$work/tests" sh ./run-tests.sh --device "$HAMLYN_DEVICE" $tests

# Messages at least as many as its round trips are
pingpong() { # PROVIDER TYPE OPTION...
	provider=$1 type=$2
	shift 2
	timeout "$limit" fi_pingpong -p "$provider" -e "$type" "$@" >"$work/out" 2>&1 &
	server=$!
	# At the port that fi_pingpong has of itself
	until listens 47592 || [ ! -e "/proc/$server" ]; do
		sleep 0.1
	done
	timeout "$limit" ./traffic fi_pingpong -p "$provider" -e "$type" "$@" 127.0.0.1 \
		>"$work/client" 2>"$work/err"
	status=$?
	cat "$work/client"
	wait "$server" || return 1
	messages=$(sed -n 's/^\([0-9]*\) messages, .*/\1/p' "$work/client")
	[ "$status" = 0 ] && [ "${messages:-0}" -ge 40 ]
}

# libfabric offers ofi_rxm first.
natively() { # COMMAND...
	(
		export FI_PROVIDER=^ofi_rxm
		"$@"
	)
}

check "the loop device" ip link set lo up
check "fi_info lists it" fi_info -p hamlyn
check "fi_pingpong, FI_EP_MSG" pingpong hamlyn msg -I 20 -c
check "fi_pingpong, FI_EP_RDM" natively pingpong hamlyn rdm -I 20 -c
check "fi_pingpong, FI_EP_RDM, tagged" natively pingpong hamlyn rdm -I 20 -c -m tagged
check "fi_pingpong, ofi_rxm, tagged" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c -m tagged
export FI_HAMLYN_CMA=0
check "fi_pingpong, FI_EP_RDM, in pieces" natively pingpong hamlyn rdm -I 20 -c
check "fi_pingpong, ofi_rxm, in pieces" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c

total
