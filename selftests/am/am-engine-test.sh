#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The engine of Active Messages: rules for handlers, protection, processes that stop or
# die, fabrics that lose, repeat, delay and damage, start-up that must fail. Also runs
# under busybox.
set -u

ME=am-engine-test.sh
here=$(dirname "$0")
[ -e "$here/lib.sh" ] || here=$here/../lib # in a guest it is beside the script
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$here/lib.sh"

usage() {
	cat <<USAGE
Usage: selftests/am/am-engine-test.sh BUILD-FOLDER [--device D]

Runs the test programs of BUILD-FOLDER (build/am) under the hamlyn-run there, on the embedded device or
on D. HAMLYN_TEST_MESSAGES: that each process sends to each other one over a bad fabric
(default 3000).
USAGE
}

only_help "$@"
build=${1:-}
device=
if [ $# = 3 ] && [ "$2" = --device ]; then
	device=$3
elif [ $# != 1 ]; then
	usage >&2
	exit 2
fi
unset HAMLYN_DEVICE
[ -z "$device" ] || export HAMLYN_DEVICE="$device"
messages=${HAMLYN_TEST_MESSAGES:-3000}
scale=${HAMLYN_TEST_SCALE:-1} # of all that is waited for

work_folder am-engine

result() { # STATUS NAME
	verdict "$2" "$1" "$(excerpt "$work/out")"
}

run() { # ARGUMENT... of hamlyn-run
	"$build/hamlyn-run" --timeout $((120 * scale)) "$@" >"$work/out" 2>&1
}

# Milliseconds after which who is silent is given up: where processors are few, some of so
# many processes are silent for a while because they wait for one.
give_up() { # PROCESSES
	echo $(($1 * 250 * scale))
}

# Lines "ok - name" and "not ok - name" of a program are tests. One without any has tested
# nothing, whatever its status.
tests_of() { # WHO, and then of hamlyn-run
	who=$1
	shift
	run "$@"
	status=$?
	grep -qE '^(not )?ok - ' "$work/out" || {
		echo "status $status, and not one test" >>"$work/out"
		status=1
	}
	while IFS= read -r line; do
		case $line in
		"ok - "*) good "$who: ${line#ok - }" ;;
		"not ok - "*) bad "$who: ${line#not ok - }" ;;
		esac
	done <"$work/out"
	result "$status" "$who: ends well"
}

says() { # STATUS TEXT NAME, of the run before, which ended with $status
	if [ "$status" = "$1" ] && grep -q -- "$2" "$work/out"; then
		result 0 "$3"
	else
		echo "status $status, not $1; or not told: $2" >>"$work/out"
		result 1 "$3"
	fi
}

# ---- what is allowed ----

tests_of "rules, alone" -n 1 "$build/rules"
tests_of "rules, 2 processes" -n 2 "$build/rules"
# SP AM: One process of a node can access the adapter.
# not kept: any number of processes share a device, each with queues of its own
tests_of "rules, 5 processes" -n 5 "$build/rules"

# ---- programs of the 1990s ----

tests_of "compat, alone" -n 1 "$build/compat"
tests_of "compat, 3 processes" -n 3 "$build/compat"

# ---- the protocol ----

tests_of "engine" -n 1 "$build/engine"

# ---- smallest and largest settings ----

for settings in 1:256 2:1024 32:8192; do
	HAMLYN_AM_DEPTH=${settings%:*} HAMLYN_AM_PAGE=${settings#*:} \
		run -n 3 "$build/exactly_once" --messages 300
	result $? "depth ${settings%:*}, segments of ${settings#*:}: every message once"
done

# ---- bad fabrics ----

[ -n "$device" ] || export HAMLYN_DEVICE="shm:am-engine-$$,size=192M,guesses=0"
for n in 2 4; do
	for faults in 10,0,0,0 0,10,0,0 0,0,10,0 0,0,0,10 0,0,0,0,10 10,10,10,10,10 30,30,30,30; do
		HAMLYN_TEST_FAULTS=$faults HAMLYN_TEST_SEED=$n HAMLYN_AM_SUMS=1 \
			HAMLYN_AM_TIMEOUT_US=500 \
			run -n $n "$build/exactly_once_lossy" --messages "$messages"
		result $? "$n processes, percent lost, repeated, delayed, damaged, turned $faults: every message once"
	done
done
# Here only what follows after something was sent twice has checksums.
HAMLYN_AM_TIMEOUT_US=5 run -n 2 "$build/exactly_once" --messages "$messages"
result $? "a time-out that is far too short: every message once"
[ -n "$device" ] || unset HAMLYN_DEVICE

# ---- processes that stop, and die ----

HAMLYN_AM_TIMEOUT_US=1000 run --keep-going -n 2 "$build/loss" stopped
status=$?
# P 5.3: A daemon moves the network's state into the card and out of it when another process runs.
# not kept: each process has memory and a queue of its own, and what is sent to one that does not run lies there
says 0 "^ok - messages wait for a stopped process, and are handled once" \
	"messages wait for a stopped process, and are handled once"
HAMLYN_AM_TIMEOUT_US=10000000 HAMLYN_AM_DEPTH=16 run --keep-going -n 5 "$build/loss" flooded
status=$?
# P 5.2.1: No packet is lost because buffers are full, whoever sends as much as it may.
# P 5.2.2: There are buffers for all that can be under way: 2 P D to receive, 2 P D to send.
# L 3.5: Flow control prevents that messages are dropped because the queue is full.
# SP AM: The receive queue has so many entries for each process, determined at run time.
says 0 "^ok - a stopped process has room for all" "a stopped process has room for all that can be sent to it"
HAMLYN_AM_GIVE_UP_MS=$(give_up 2) run --keep-going -n 2 "$build/loss" silent
status=$?
says 137 "^ok - a silent process is given up: process 1 " "a silent process is given up by name"
# More than 256 times it is sent again meanwhile.
HAMLYN_AM_TIMEOUT_US=20 HAMLYN_AM_GIVE_UP_MS=$((3000 * scale)) run --keep-going -n 2 "$build/loss" silent
status=$?
says 137 "^ok - a silent process is given up: process 1 " "however often is tried"
# A machine that is busy with something else may make it late, but not each time.
for try in 1 2 3; do
	HAMLYN_AM_GIVE_UP_MS=$(give_up 4) run --keep-going -n 4 "$build/loss" sleeping
	status=$?
	! grep -q '^ok - ' "$work/out" || break
	echo "# sleeping, try $try: $(grep '^not ok' "$work/out")"
done
says 137 "^ok - a silent process is given up by one that sleeps" "the same by one that sleeps, in time"
for n in 2 3 6; do
	HAMLYN_AM_GIVE_UP_MS=$(give_up $n) tests_of "$n processes" --keep-going -n $n "$build/loss" barrier
done
for n in 3 5; do
	HAMLYN_AM_GIVE_UP_MS=$(give_up $n) run --keep-going -n $n "$build/loss" stuck
	status=$?
	says 137 "^ok - who waits for a silent process in a barrier gives it up" \
		"$n processes, one silent before a barrier: the others give it up"
done
run --keep-going -n 2 "$build/loss" killed
status=$?
says 137 "^ok - a killed process is noticed: process 1 " "a killed process is noticed at once"
run --keep-going -n 2 "$build/loss" null
status=$?
says 139 "^ok - who is asked for memory at NULL dies: process 1 " \
	"who is asked for memory at NULL dies, and is not given up"
run --keep-going -n 3 "$build/loss" leaving
status=$?
says 142 "^ok - who dies when all are about to leave is noticed: process [12] " \
	"who dies when all are about to leave is noticed"
run --keep-going -n 2 "$build/loss" deaf
status=$?
says 137 "^ok - a launcher that is deaf holds up nobody after a loss: process 1 " \
	"after a loss a launcher that does not answer is not waited for long"
# Where guesses of keys are counted: the guest's device is told not to.
if [ -z "$device" ]; then
	HAMLYN_DEVICE="shm:am-dead-$$,size=64M" HAMLYN_AM_PAGE=256 \
		run --keep-going -n 66 "$build/loss" unwatched
	status=$?
	says 137 "^ok - who is dead and unwatched is noticed" "dead processes hold no live ones back"
fi

# ---- start-up that must fail ----

# shellcheck disable=SC2016 # the variables are the guest's shell's
run -n 2 sh -c 'if [ $PMI_RANK = 0 ]; then exec "$0"; else exec "$1" stopped; fi' \
	"$build/rules" "$build/loss"
status=$?
says 1 "another program, or another build of it" "two programs in one are noticed"
if "$build/shared" runs 2>/dev/null; then
	tests_of "shared libraries" -n 2 "$build/shared"
	if [ -z "$(LD_PRELOAD=libm.so.6 "$build/shared" runs 2>&1)" ]; then
		# shellcheck disable=SC2016
		run -n 2 sh -c '[ $PMI_RANK = 0 ] || export LD_PRELOAD=libm.so.6; exec "$0"' \
			"$build/shared"
		status=$?
		says 1 "has loaded other libraries than process" "other libraries are noticed"
	else
		skip "other libraries are noticed" "there is no libm.so.6"
	fi
else
	skip "programs with shared libraries" "they do not run here"
fi
HAMLYN_AM_DEPTH=3 run -n 2 "$build/rules"
status=$?
says 1 "HAMLYN_AM_DEPTH must be a power of two" "a depth of 3 is refused"
HAMLYN_AM_DEPTH=64 run -n 2 "$build/rules"
status=$?
says 1 'HAMLYN_AM_DEPTH is "64": 1 to 32 are allowed' "a depth of 64 is refused"
HAMLYN_AM_PAGE=99999999 run -n 2 "$build/rules"
status=$?
says 1 "HAMLYN_AM_PAGE is" "segments of 99999999 bytes are refused"
HAMLYN_DEVICE=/dev/null run -n 2 "$build/rules"
status=$?
says 1 "device /dev/null: " "a device that is none is named"

total
