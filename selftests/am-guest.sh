#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: Active Messages on the kernel device, and over its adversary.
set -u

passed=0
failed=0

# The last line of a script's output is its total.
totals() { # COMMAND...
	"$@" >/tmp/log 2>&1
	sed '$d' /tmp/log
	total=$(tail -n 1 /tmp/log)
	case $total in
	*" passed, "*" failed"*)
		passed=$((passed + ${total%% passed*}))
		rest=${total#* passed, }
		failed=$((failed + ${rest%% failed*}))
		;;
	*)
		echo "$total"
		echo "not ok - $1 ends with a total"
		failed=$((failed + 1))
		;;
	esac
}

# What is not named stays as it was, so it is set off first.
adversary() { # WORD...: of hamlynctl
	./hamlynctl nic set hamlyn0 adversary off &&
		{ [ "$1" = off ] || ./hamlynctl nic set hamlyn0 adversary "$@"; }
}

once() { # NAME PROCESSES MESSAGES
	if ./hamlyn-run --device /dev/hamlyn0 --timeout 200 -n "$2" ./exactly_once --messages "$3" \
		>/tmp/log 2>&1; then
		echo "ok - $1: every message once"
		passed=$((passed + 1))
	else
		sed 's/^/# | /' /tmp/log | tail -n 20
		echo "not ok - $1: every message once"
		failed=$((failed + 1))
	fi
}

HAMLYN_TEST_MESSAGES=300
export HAMLYN_TEST_MESSAGES
totals ./am-engine-test.sh . --device /dev/hamlyn0
for program in "ping_pong --quick" "test_xfer --quick" "test_med --quick" "radix --quick" \
	"thru_bulk --quick" "hpam_pingpong --quick" "logp --quick --rounds 3 --burst 16"; do
	# shellcheck disable=SC2086 # several words
	if ./hamlyn-run --device /dev/hamlyn0 --timeout 200 -n 3 ./$program >/tmp/log 2>&1; then
		echo "ok - $program, 3 processes"
		passed=$((passed + 1))
	else
		sed 's/^/# | /' /tmp/log | tail -n 20
		echo "not ok - $program, 3 processes"
		failed=$((failed + 1))
	fi
done
# No segment of the default size fits into its packets.
if ./hamlynctl nic add index 5 host 5 packet-size 4096 >/tmp/log 2>&1 &&
	./hamlyn-run --device /dev/hamlyn5 --timeout 200 -n 3 ./test_med --quick >>/tmp/log 2>&1; then
	echo "ok - a NIC of small packets"
	passed=$((passed + 1))
else
	sed 's/^/# | /' /tmp/log | tail -n 20
	echo "not ok - a NIC of small packets"
	failed=$((failed + 1))
fi
for what in drop duplicate reorder corrupt; do
	adversary $what 10% seed 1
	once "adversary: $what 10%" 2 1000
done
adversary drop 10% duplicate 10% reorder 10% corrupt 10% seed 2
once "adversary: all of them" 2 1000
once "adversary: all of them, 4 processes" 4 300
adversary off

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
