#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: Active Messages on the kernel device, and over its adversary; Tempest. Then all
# of them by processes of two hosts, whose NICs TCP joins.
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

# ---- two hosts: host 1 is hamlyn6, host 2 is hamlyn7 ----

nic() { # HOST: without its peer
	./hamlynctl nic add index $((5 + $1)) fabric tcp host "$1" address "127.0.0.$1" port 7500 \
		security clear dead-ms 120000 stall-ms 120000
}

peer() { # HOST OTHER
	./hamlynctl peer add "hamlyn$((5 + $1))" host "$2" address "127.0.0.$2" port 7500
}

both_are_up() {
	tries=0
	until [ "$(for n in 6 7; do ./hamlynctl peer show hamlyn$n; done | grep -c 'state up')" = 2 ]; do
		[ $((tries += 1)) -le $((100 * scale)) ] || return
		sleep 0.1
	done
}

two_hosts() {
	ip link set lo up && nic 1 && nic 2 && peer 1 2 && peer 2 1 && both_are_up
}

# Processes by turns on one host and the other.
cat >by-turns <<'END'
#!/bin/sh
HAMLYN_DEVICE=/dev/hamlyn$((6 + PMI_RANK % 2)) exec "$@"
END
cat >run-by-turns <<'END'
#!/bin/sh
# -n N --timeout S PROGRAM..., as nodes-test.sh calls hamlyn-run
n=$2 seconds=$4
shift 4
exec ./hamlyn-run -n "$n" --timeout "$seconds" ./by-turns "$@"
END
chmod +x by-turns run-by-turns

by_turns() { # PROCESSES PROGRAM...
	./run-by-turns -n "$1" --timeout $((200 * scale)) "./$2" ${3:+"$3"} ${4:+"$4"}
}

bad_way() { # what hamlyn6 sends to the other host: WORD...
	./hamlynctl nic set hamlyn6 adversary off && ./hamlynctl nic set hamlyn6 adversary "$@"
}

check "two hosts" two_hosts
check "two hosts: test_med" by_turns 3 test_med --quick
check "two hosts: test_xfer" by_turns 3 test_xfer --quick
check "two hosts: hpam_pingpong" by_turns 2 hpam_pingpong --quick
check "two hosts: radix" by_turns 4 radix --quick
check "two hosts: every message once" by_turns 4 exactly_once --messages 300
if [ "$(uname -m)" = x86_64 ]; then
	script nodes-test.sh ./run-by-turns . --device /dev/hamlyn6 contended
	[ ! -x stache-queue ] || check "two hosts: Stache, a queue" by_turns 3 stache-queue
fi
bad_way drop 5% duplicate 5% reorder 5% corrupt 5% seed 3
check "two hosts, a bad way between them: every message once" by_turns 3 exactly_once --messages 300
check "two hosts, a bad way between them: test_med" by_turns 2 test_med --quick
bad_way stall 5% seed 4
check "two hosts, a way that stalls: every message once" by_turns 3 exactly_once --messages 300
./hamlynctl nic set hamlyn6 adversary off
both_gone() {
	./hamlynctl nic del hamlyn6 && ./hamlynctl nic del hamlyn7
}
check "two hosts: nobody has them open at the end" both_gone

total
