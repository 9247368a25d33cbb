#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: Active Messages on the kernel device, and over its adversary; Tempest.
set -u

ME=am-guest.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/lib.sh"

scale=${HAMLYN_TEST_SCALE:-1} # of all that is waited for
work_folder am-guest

script() { # NAME ARGUMENT...: one that ends with a total
	script=$1
	shift
	totals "$script" "$work/script" "./$script" "$@"
}

# What is not named stays as it was, so it is set off first.
adversary() { # WORD...: of hamlynctl
	./hamlynctl nic set hamlyn0 adversary off &&
		{ [ "$1" = off ] || ./hamlynctl nic set hamlyn0 adversary "$@"; }
}

run() { # DEVICE PROCESSES PROGRAM...
	./hamlyn-run --device "/dev/$1" --timeout $((200 * scale)) -n "$2" "./$3" "$4" ${5:+"$5"}
}

once() { # NAME PROCESSES MESSAGES
	check "$1: every message once" run hamlyn0 "$2" exactly_once --messages "$3"
}

# No segment of the default size fits into its packets.
small_packets() {
	./hamlynctl nic add index 5 host 5 packet-size 4096 && run hamlyn5 3 test_med --quick
}

HAMLYN_TEST_MESSAGES=300
export HAMLYN_TEST_MESSAGES
script am-engine-test.sh . --device /dev/hamlyn0
# More of them take minutes here, where all is emulated and two processors are all there is.
HAMLYN_TEST_PROCESSES=3
export HAMLYN_TEST_PROCESSES
script am-test.sh . --device /dev/hamlyn0
check "a NIC of small packets" small_packets
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
	script nodes-test.sh ./hamlyn-run . --device /dev/hamlyn0 contended stranger
else
	skip "Tempest" "it is for x86-64"
fi

total
