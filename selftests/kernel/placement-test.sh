#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest with two nodes of two processors each: where engines run, and whom they serve.
# The module is loaded again and again.
set -u

case ${1:-} in
-h | --help)
	echo "Usage: placement-test.sh, in a guest of two nodes, with hamlyn.ko and hamlyn-perf"
	exit 0
	;;
esac

passed=0
failed=0
tries=$((100 * ${HAMLYN_TEST_SCALE:-1}))

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >/tmp/check.log 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# /' /tmp/check.log
		failed=$((failed + 1))
	fi
}

refused() {
	! "$@"
}

# A parameter of this suite's own modules: selftests/mutants.
mutant=
file=/sys/module/hamlyn/parameters/mutant
[ ! -e $file ] || mutant=mutant=$(cat $file)

load() { # PARAMETER...
	[ ! -d /sys/module/hamlyn ] || rmmod hamlyn || return 1
	# shellcheck disable=SC2086 # nothing, or one word
	insmod ./hamlyn.ko engine=poll $mutant "$@"
}

# Without a process for each of them: here it is slow to start one.
status_of() { # NAME-OF-ENGINE FIELD
	value=
	for folder in /proc/[0-9]*; do
		comm=
		read -r comm 2>/dev/null <"$folder/comm"
		[ "$comm" = "$1" ] || continue
		while read -r field value; do
			[ "$field" != "$2:" ] || return 0
		done <"$folder/status"
	done
}

# From 6.14 on the kernel itself sets where a thread runs, when it begins.
are_at() { # NIC PLACE...: of its engines, in their order
	nic=$1
	[ -e "/dev/hamlyn$nic" ] || return 1
	shift
	n=0
	for want; do
		try=0
		until status_of "hamlyn$nic/$n" Cpus_allowed_list; [ "$value" = "$want" ]; do
			try=$((try + 1))
			[ $try -lt "$tries" ] || {
				echo "hamlyn$nic/$n may run on $value, not on $want"
				return 1
			}
			sleep 0.1
		done
		n=$((n + 1))
	done
}

# How often it has gone to sleep: only then has it been woken.
sleeps_of() { # NAME-OF-ENGINE
	status_of "$1" voluntary_ctxt_switches
	echo "$value"
}

# Several termini one behind the other, all by processes of the second node: each engine of
# the first one is left alone. So many that one is woken also where processors are scarce.
serves_its_own() {
	load engines=2 kick_window_us=1000000 idle_us=20000 && are_at 0 0-1 2-3 || return 1
	first=$(sleeps_of hamlyn0/0)
	second=$(sleeps_of hamlyn0/1)
	for _ in 1 2 3 4; do
		taskset -c 2,3 hamlyn-perf --device /dev/hamlyn0 --quiet --cpus 2,3 --n 3000 msgloop || return 1
	done
	sleep 0.2
	echo "sleeps: first $first, then $(sleeps_of hamlyn0/0); second $second, then $(sleeps_of hamlyn0/1)"
	[ "$(sleeps_of hamlyn0/0)" = "$first" ] && [ "$(sleeps_of hamlyn0/1)" != "$second" ]
}

check "there are two nodes of two processors" \
	[ "$(cat /sys/devices/system/node/node0/cpulist /sys/devices/system/node/node1/cpulist | tr '\n' ' ')" = "0-1 2-3 " ]
check "a NIC with one engine loads" load engines=1
check "and it may run anywhere" are_at 0 0-3
check "a NIC with more engines than nodes loads" load engines=5
check "and they are on all nodes in turn" are_at 0 0-1 2-3 0-1 2-3 0-1
check "an engine serves processes of its own node" serves_its_own
check "engine_cpus= of two processors" load engines=3 engine_cpus=1-2
check "and they are there, in turn" are_at 0 1 2 1
check "engine_cpus= with two NICs" load nics=2 engines=1 engine_cpus=0,3
check "and the first is on one" are_at 0 0
check "the second on the other" are_at 1 3
check "engine_cpus= without a list" load engines=1 engine_cpus=
check "and it may run anywhere" are_at 0 0-3
for list in fast 2-1 ',' 2-4 8191; do
	check "engine_cpus=$list is refused" refused load engine_cpus=$list
done
check "and then loading works" load

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
