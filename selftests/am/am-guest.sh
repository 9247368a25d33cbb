#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: Active Messages on the kernel device, and over its adversary; Tempest.
set -u

passed=0
failed=0
skipped=0
scale=${HAMLYN_TEST_SCALE:-1} # of all that is waited for

# The last line of a script's output is its total.
totals() { # COMMAND...
	"$@" >/tmp/log 2>&1
	status=$?
	sed '$d' /tmp/log
	total=$(tail -n 1 /tmp/log)
	# shellcheck disable=SC2046 # three words
	set -- "$1" $(echo "$total" |
		sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p')
	if [ $# = 1 ]; then
		echo "$total"
		echo "not ok - $1 ends with a total"
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + $2))
	failed=$((failed + $3))
	skipped=$((skipped + ${4:-0}))
	if [ "$2" = 0 ] || { [ "$3" = 0 ] && [ $status != 0 ]; }; then
		echo "not ok - $1 ends well (status $status)"
		failed=$((failed + 1))
	fi
}

# What is not named stays as it was, so it is set off first.
adversary() { # WORD...: of hamlynctl
	./hamlynctl nic set hamlyn0 adversary off &&
		{ [ "$1" = off ] || ./hamlynctl nic set hamlyn0 adversary "$@"; }
}

once() { # NAME PROCESSES MESSAGES
	if ./hamlyn-run --device /dev/hamlyn0 --timeout $((200 * scale)) -n "$2" ./exactly_once --messages "$3" \
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
# More of them take minutes here, where all is emulated and two processors are all there is.
HAMLYN_TEST_PROCESSES=3
export HAMLYN_TEST_PROCESSES
totals ./am-test.sh . --device /dev/hamlyn0
# No segment of the default size fits into its packets.
if ./hamlynctl nic add index 5 host 5 packet-size 4096 >/tmp/log 2>&1 &&
	./hamlyn-run --device /dev/hamlyn5 --timeout $((200 * scale)) -n 3 ./test_med --quick >>/tmp/log 2>&1; then
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

HAMLYN_TEST_PROCESSES=2
if [ "$(uname -m)" = x86_64 ]; then
	totals ./nodes-test.sh ./hamlyn-run . --device /dev/hamlyn0 contended stranger
else
	echo "ok - Tempest # SKIP it is for x86-64"
	skipped=$((skipped + 1))
fi

[ "$skipped" = 0 ] && skipped=
echo "$passed passed, $failed failed${skipped:+, $skipped skipped}"
[ "$failed" = 0 ]
