#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: the libfabric provider on the kernel device, by its own tests and by fi_pingpong,
# whose traffic has to show in the counters of the NIC; and between two NICs that are two hosts.
#
# Beside it: run-tests.sh, fi_pingpong, fi_info, traffic, hamlynctl, the tests.
set -u

ME=ofi-guest.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/lib.sh"

limit=$((100 * ${HAMLYN_TEST_SCALE:-1}))
work_folder ofi-guest
export HAMLYN_DEVICE=/dev/hamlyn0 FI_PROVIDER_PATH=/host/libfabric

# libfabric reads all symbols of the kernel in each process, for a line that none of ours has.
mount -o bind /dev/null /proc/kallsyms

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

# ---- between hosts ----

two_hosts() { # USERS
	./hamlynctl nic add index 8 fabric tcp host 1 security clear address 127.0.0.11 port 700 &&
		./hamlynctl nic add index 9 fabric tcp host 2 security clear address 127.0.0.12 port 700 &&
		./hamlynctl peer add 8 host 2 address 127.0.0.12 port 700 users "$1" &&
		./hamlynctl peer add 9 host 1 address 127.0.0.11 port 700 users "$1" || return 1
	tries=0
	until ./hamlynctl peer show 8 | grep -q 'state up' && ./hamlynctl peer show 9 | grep -q 'state up'; do
		tries=$((tries + 1))
		[ "$tries" -lt $((300 * ${HAMLYN_TEST_SCALE:-1})) ] || return 1
		sleep 0.1
	done
}

no_hosts() {
	./hamlynctl nic del 8 && ./hamlynctl nic del 9
}

between() { # PROVIDER TYPE OPTION...
	provider=$1 type=$2
	shift 2
	HAMLYN_DEVICE=/dev/hamlyn8 timeout "$limit" fi_pingpong -p "$provider" -e "$type" "$@" \
		>"$work/out" 2>&1 &
	server=$!
	until listens 47592 || [ ! -e "/proc/$server" ]; do
		sleep 0.1
	done
	HAMLYN_DEVICE=/dev/hamlyn9 timeout "$limit" ./traffic fi_pingpong -p "$provider" -e "$type" "$@" 127.0.0.11 \
		>"$work/client" 2>"$work/err"
	status=$?
	cat "$work/client"
	[ "$status" = 0 ] || kill "$server"
	wait "$server" || return 1
	messages=$(sed -n 's/^\([0-9]*\) messages, .*/\1/p' "$work/client")
	[ "$status" = 0 ] && [ "${messages:-0}" -ge 20 ]
}

not_let_in() {
	! between hamlyn msg -I 20 -S 64 && grep -q "Connection refused" "$work/err"
}

# ---- here ----

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

unset FI_HAMLYN_CMA
export FI_HAMLYN_HOSTS=127.0.0.11=1,127.0.0.12=2
check "two hosts" two_hosts same
check "fi_pingpong between hosts, FI_EP_MSG" between hamlyn msg -I 20 -c
check "fi_pingpong between hosts, FI_EP_RDM, tagged" natively between hamlyn rdm -I 20 -c -m tagged
check "fi_pingpong between hosts, ofi_rxm, tagged" between "hamlyn;ofi_rxm" rdm -I 20 -c -m tagged
check "no hosts any more" no_hosts
check "two hosts whose users nobody is here" two_hosts none
check "none of them is let in" not_let_in
check "and these go" no_hosts

total
