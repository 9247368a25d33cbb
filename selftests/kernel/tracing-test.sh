#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, as root: the tracepoints are what Documentation/tracing.rst says,
# a workload makes them tell what it did, and none tells a key.
#
# Beside it: tracing.rst; hello, receive_file, guess_keys, hamlynctl, hamlyn-cat; the
# selftests of $TESTS; for the recipes, if they are there, perf and trace-cmd.
set -u
# shellcheck disable=SC2015 # "A && B || C" is not an if here

TRACE=/sys/kernel/tracing
EVENTS=$TRACE/events/hamlyn
DOC=./tracing.rst
TESTS="lifecycle nq poll_wait limits hostile_ticket hostile_watch hosts"
# Crowds and full queues make most events, of which the others have one of each kind.
[ -z "${HAMLYN_TEST_BRIEF:-}" ] || TESTS="lifecycle poll_wait limits hostile_ticket hosts"
# Those that make so many events that nothing else is left in the buffer, and crowds, whose events are
# those of one user many times
LEFT_OUT="watches_on_a_host_are_shared a_slot_with_many_watchers_is_told_of_to_all
	in_order_through_full_rings a_guesser_does_not_shut_out_its_host
	who_connects_without_end_is_let_in_now_and_then a_namespace_ends_in_traffic reconnections
	one_user_cannot_take_all_memory one_user_cannot_take_all_slots one_user_cannot_take_all_termini
	one_user_cannot_wire_all_memory every_object_of_the_kernel_counts"
# What a small workload does not reach
SELDOM="hamlyn_pause"

passed=0
failed=0
skipped=0

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >/tmp/check.log 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# /' /tmp/check.log | head -n 40
		failed=$((failed + 1))
	fi
}

skip() { # NAME WHY
	echo "ok - $1 # SKIP $2"
	skipped=$((skipped + 1))
}

# ---- names and fields ----

documented() {
	# shellcheck disable=SC2016 # no command, but the markup of literal text
	sed -n 's/^``\(hamlyn_[a-z_]*\)``: ``\([a-z_ ]*\)``$/\1 \2/p' "$DOC"
}

existing() {
	for format in "$EVENTS"/*/format; do
		event=${format%/format}
		# "field:char comm[16];", "field:__data_loc char[] what;", "field:u32 nic;"
		fields=$(sed -n 's/^\tfield:[^;]* \([a-z_]*\)\(\[[0-9A-Z_]*\]\)\{0,1\};.*/\1/p' "$format" |
			grep -v '^common_' | sort | tr '\n' ' ')
		echo "${event##*/} $fields"
	done | sort
}

sorted_fields() {
	while read -r event fields; do
		# shellcheck disable=SC2086 # several words
		echo "$event $(printf '%s\n' $fields | sort | tr '\n' ' ')"
	done | sort
}

events_are_documented() {
	documented | sorted_fields >/tmp/documented
	existing >/tmp/existing
	[ "$(wc -l </tmp/documented)" -gt 30 ] || return 1
	diff /tmp/documented /tmp/existing
}

no_key_in_formats() {
	! grep -n 'field:.*[ _]key' "$EVENTS"/*/format
}

# ---- the workload ----

trace_on() {
	echo 0 >"$TRACE/tracing_on"
	echo 1024 >"$TRACE/buffer_size_kb"
	: >"$TRACE/trace"
	echo 1 >"$TRACE/tracing_on"
	echo "${1:-1}" >"$EVENTS/enable"
}

trace_off() { # FILE
	echo 0 >"$EVENTS/enable"
	grep -v '^#' "$TRACE/trace" >"$1"
}

silent_when_off() {
	trace_on 0
	./hello
	trace_off /tmp/trace.off
	! grep hamlyn_ /tmp/trace.off
}

# The key is bytes 16 to 23 of the ticket; as text it may appear in any way.
make_key() {
	rm -f /tmp/ticket
	./receive_file -q -T 20 -t /tmp/ticket -o /tmp/received &
	receiver=$!
	tries=0
	until grep -q '^ticket' /tmp/ticket 2>/dev/null; do
		tries=$((tries + 1))
		[ "$tries" -lt 100 ] || return 1
		usleep 50000
	done
	bytes=$(sed -n 's/^ticket //p' /tmp/ticket | cut -c33-48)
	[ ${#bytes} = 16 ] || return 1
	swapped=
	for i in 15 13 11 9 7 5 3 1; do
		swapped=$swapped$(echo "$bytes" | cut -c$i-$((i + 1)))
	done
}

# Two NICs that are hosts of a fabric.
work_between_hosts() {
	./hamlynctl nic add index 8 fabric tcp host 1 security clear address 127.0.0.1 port 700 &&
		./hamlynctl nic add index 9 fabric tcp host 2 security clear address 127.0.0.2 port 700 &&
		./hamlynctl peer add 8 host 2 address 127.0.0.2 port 700 || return 1
	trace_on
	./hamlynctl peer add 9 host 1 address 127.0.0.1 port 700
	peer_is 8 up && call_each_other && say_nonsense || return 1
	./hamlynctl peer del 9 host 1
	peer_is 8 idle || return 1
	trace_off /tmp/trace.text
	./hamlynctl nic del 9
	./hamlynctl nic del 8
}

# A name of the other host, and one that nobody has.
call_each_other() {
	timeout $((60 * ${HAMLYN_TEST_SCALE:-1})) ./hamlyn-cat -l -d /dev/hamlyn9 2/traced >/tmp/cat.out &
	listener=$!
	echo traced | timeout $((60 * ${HAMLYN_TEST_SCALE:-1})) ./hamlyn-cat -w -d /dev/hamlyn8 2/traced
	wait "$listener"
	./hamlyn-cat -d /dev/hamlyn8 1/nobody </dev/null
	grep -qx traced /tmp/cat.out
}

# By a test of hosts: by itself, for all of them are more than the buffer holds.
say_nonsense() {
	timeout 200 ./hosts -t nonsense_ends_a_connection_and_nothing_else
}

peer_is() { # NIC STATE
	tries=0
	until ./hamlynctl peer show "$1" | grep -q "state $2"; do
		tries=$((tries + 1))
		[ "$tries" -lt 600 ] || return 1
		usleep 50000
	done
}

# As numbers, signed and not, in both byte orders, and as bytes.
key_patterns() {
	for hex in "$bytes" "$swapped"; do
		echo "$hex"
		printf '%u\n' "0x$hex"
		echo $((0x$hex))
	done
}

work() {
	trace_on
	make_key || return 1
	./hello
	./guess_keys -t /tmp/ticket -n 20 -T 30
	kill "$receiver"
	wait "$receiver"
	./hamlynctl nic add index 7 engine inline
	HAMLYN_DEVICE=/dev/hamlyn7 ./hello
	./hamlynctl nic set 7 down
	HAMLYN_DEVICE=/dev/hamlyn7 timeout 2 ./hello
	./hamlynctl nic set 7 up
	./hamlynctl nic set 7 adversary drop 100% seed 1
	HAMLYN_DEVICE=/dev/hamlyn7 timeout 2 ./hello
	./hamlynctl nic set 7 adversary off
	./hamlynctl nic del 7
	trace_off /tmp/trace.text
	return 0
}

# ---- what it made appear ----

has() { # EXPRESSION, behind "hamlyn_"
	grep -qE "hamlyn_$1" /tmp/trace.text || {
		sed 's/.*\(hamlyn_[a-z_]*\).*/\1/' /tmp/trace.text | sort | uniq -c
		return 1
	}
}

no_key() {
	key_patterns | sort -u >/tmp/patterns
	[ "$(wc -l </tmp/patterns)" -ge 4 ] || return 1
	! grep -iFf /tmp/patterns "$1"
}

# The records themselves, which hold more than what is printed.
no_key_in_records() {
	trace_on
	make_key || return 1
	./guess_keys -t /tmp/ticket -n 20 -T 30
	kill "$receiver"
	wait "$receiver"
	echo 0 >"$EVENTS/enable"
	for cpu in "$TRACE"/per_cpu/cpu*; do
		timeout 2 cat "$cpu/trace_pipe_raw"
	done >/tmp/raw 2>/dev/null
	[ "$(wc -c </tmp/raw)" -gt 4096 ] || return 1
	od -An -v -tx1 </tmp/raw | tr -d ' \n' >/tmp/raw.hex
	! grep -qF -e "$bytes" -e "$swapped" /tmp/raw.hex
}

# Control: that search finds what is there, the name of the process.
records_are_found() {
	grep -qF "$(printf guess_keys | od -An -tx1 | tr -d ' \n')" /tmp/raw.hex
}

names_in() { # FILE
	sed -n 's/.*: \(hamlyn_[a-z_]*\): .*/\1/p' "$1" | sort -u
}

# Is one of the numbers of $1 a word of $2? There are many of each, but few have as many digits as a key.
tells_one_of() { # NUMBERS FILE
	grep -E '[0-9a-f]{12}' "$2" | tr -cs 0-9a-f '\n' |
		awk 'NR == FNR { told[$1]; next } $1 in told { print; found = 1 } END { exit !found }' "$1" -
}

# Those tests tell of themselves what is wrong; here they make events, and tell the keys
# of their slots. That such a key is found where it is, is tried with each of them, too.
run_tests() {
	# shellcheck disable=SC2086,SC2046 # several words
	set -- $(printf ' -T %s' $LEFT_OUT)
	names_in /tmp/trace.text >/tmp/seen
	for test in $TESTS; do
		: >/tmp/keys
		chmod 666 /tmp/keys
		trace_on
		HAMLYN_TEST_KEYS=/tmp/keys timeout 200 ./"$test" "$@" >/tmp/test.log 2>&1 </dev/null
		trace_off /tmp/trace.test
		names_in /tmp/trace.test >>/tmp/seen
		sort -u /tmp/keys >/tmp/told
		{ sed 1q /tmp/trace.test && echo "field=0x$(sed 1q /tmp/keys) other=1"; } >/tmp/control
		if ! tells_one_of /tmp/told /tmp/control >/dev/null || tells_one_of /tmp/told /tmp/trace.test; then
			echo "$test: $(wc -l </tmp/told) numbers, $(wc -l </tmp/trace.test) lines"
			return 1
		fi
	done
}

every_event_appeared() {
	documented | while read -r event _; do
		case " $SELDOM " in *" $event "*) continue ;; esac
		grep -qx "$event" /tmp/seen || echo "$event"
	done >/tmp/missing
	cat /tmp/missing
	[ ! -s /tmp/missing ]
}

# Whether a machine that is emulated guesses faster than the default rate is its speed's affair.
guessing_pauses() {
	./hamlynctl nic set 0 guesses 5
	trace_on
	make_key || return 1
	./guess_keys -t /tmp/ticket -n 40 -T 5
	./hamlynctl nic set 0 guesses 10000
	kill "$receiver"
	wait "$receiver"
	trace_off /tmp/trace.text
	grep -E 'hamlyn_pause: nic=0 context=[0-9]+ terminus=[0-9]+ pid=[0-9]+ uid=0 until=[1-9][0-9]+' \
		/tmp/trace.text
}

# ---- recipes ----

recipe_rejects() {
	hist=$EVENTS/hamlyn_reject
	echo 'hist:keys=uid,pid,reason' >"$hist/trigger" || return 1
	make_key || return 1
	./guess_keys -t /tmp/ticket -n 20 -T 30
	kill "$receiver"
	wait "$receiver"
	cat "$hist/hist"
	grep -Eq 'uid: +0, pid: +[0-9]+, reason: +1 .*hitcount: +[1-9]' "$hist/hist"
	found=$?
	echo '!hist:keys=uid,pid,reason' >"$hist/trigger"
	return $found
}

# shellcheck disable=SC2016 # the $ are the trigger's
recipe_latency() {
	echo 'hamlyn_latency u64 ns' >"$TRACE/synthetic_events" || return 1
	echo 'hist:keys=common_pid:t0=common_timestamp' >"$EVENTS/hamlyn_kick/trigger" || return 1
	echo 'hist:keys=common_pid:ns=common_timestamp-$t0:onmatch(hamlyn.hamlyn_kick).trace(hamlyn_latency,$ns)' \
		>"$EVENTS/hamlyn_notify/trigger" || return 1
	echo 'hist:keys=ns.log2' >"$TRACE/events/synthetic/hamlyn_latency/trigger" || return 1
	# There the doorbell does the work itself, and nobody has guessed yet
	./hamlynctl nic add index 9 engine inline
	HAMLYN_DEVICE=/dev/hamlyn9 ./hello
	./hamlynctl nic del 9
	cat "$TRACE/events/synthetic/hamlyn_latency/hist"
	grep -q 'hitcount: *1$' "$TRACE/events/synthetic/hamlyn_latency/hist"
	found=$?
	echo '!hist:keys=ns.log2' >"$TRACE/events/synthetic/hamlyn_latency/trigger"
	echo '!hist:keys=common_pid:ns=common_timestamp-$t0:onmatch(hamlyn.hamlyn_kick).trace(hamlyn_latency,$ns)' \
		>"$EVENTS/hamlyn_notify/trigger"
	echo '!hist:keys=common_pid:t0=common_timestamp' >"$EVENTS/hamlyn_kick/trigger"
	echo '!hamlyn_latency' >"$TRACE/synthetic_events"
	return $found
}

recipe_rekey() {
	echo 'hist:keys=ns.log2' >"$EVENTS/hamlyn_slot_rekey/trigger" || return 1
	./lifecycle
	cat "$EVENTS/hamlyn_slot_rekey/hist"
	grep -q 'ns: ~ 2^1[0-9]\|ns: ~ 2^2[0-9]' "$EVENTS/hamlyn_slot_rekey/hist"
	found=$?
	echo '!hist:keys=ns.log2' >"$EVENTS/hamlyn_slot_rekey/trigger"
	return $found
}

recipe_perf() {
	./perf record -q -o /tmp/perf.data -e 'hamlyn:*' -a ./hello &&
		./perf script -i /tmp/perf.data >/tmp/perf.text 2>&1
	cat /tmp/perf.text
	grep -q 'hamlyn:hamlyn_packet: nic=0 .*length=6 delta=0 flags=single' /tmp/perf.text
}

recipe_trace_cmd() {
	./trace-cmd record -q -o /tmp/trace.dat -e hamlyn ./hello &&
		./trace-cmd report -i /tmp/trace.dat >/tmp/cmd.text 2>&1
	cat /tmp/cmd.text
	grep -q 'hamlyn_packet: .*nic=0 .*length=6 delta=0 flags=single' /tmp/cmd.text
}

# ---- all of it ----

[ -d "$TRACE/events" ] || mount -t tracefs tracefs "$TRACE"
export HAMLYN_DEVICE=/dev/hamlyn0

check "events and fields are those of the documentation" events_are_documented
check "no event has a field for a key" no_key_in_formats
check "events that are off tell nothing" silent_when_off
check "a workload runs with all events on" work
check "a message: sent" \
	has 'packet: nic=0 context=[0-9]+ terminus=0 pid=[0-9]+ source=0 host=0 slot=[0-9]+ offset=0 length=6 delta=0 flags=single$'
check "a message: notified" \
	has 'notify: nic=0 context=[0-9]+ nq=0 position=0 source=0 slot=[0-9]+ index=0 length=6 flags=single lost=0$'
check "a message: doorbell" has 'kick: nic=7 context=[0-9]+ terminus=0$'
check "a message: end of the doorbell" has 'kick_done: nic=7 context=[0-9]+ terminus=0 packets=1 more=0$'
check "a message: section of work" has 'work: nic=7 context=[0-9]+ terminus=0 packets=1 bytes=6$'
check "the process that opened the device" has 'context_open: nic=0 context=[0-9]+ pid=[0-9]+ uid=0 comm=receive_file$'
check "a wrong key is told as such, with its sender" \
	has 'reject: nic=0 slot=[0-9]+ reason=key source=0 offset=[0-9]+ length=16 pid=[1-9][0-9]* uid=0$'
check "a NIC appears" has 'nic_create: nic=7 host=7 engine=inline engines=1 packet_size=[0-9]+ max_slots=[0-9]+$'
check "and is set down" has 'nic_set: nic=7 flags=state state=down watchdog_ms=0$'
check "what it does not send then" has 'reject: nic=7 slot=[0-9]+ reason=down source=7 offset=0 length=6 '
check "what an adversary does" has 'adversary: nic=7 what=drop host=7 slot=[0-9]+ offset=0 length=6$'
check "the end of a slot, with its grace period" has 'slot_destroy: nic=0 context=[0-9]+ slot=[0-9]+ ns=[1-9][0-9]+$'
check "the NIC goes" has 'nic_delete: nic=7 host=7 '
mv /tmp/trace.text /tmp/trace.one
check "two NICs become hosts of a fabric, with all events on" work_between_hosts
check "a peer: packets pass" has 'peer_up: nic=8 host=2 epoch=1$'
check "and on the other side" has 'peer_up: nic=9 host=1 epoch=1$'
check "a peer: why no more" has 'peer_down: nic=8 host=2 reason=(closed|down) up=1$'
check "and on the side that ended it" has 'peer_down: nic=9 host=1 reason=down up=1$'
check "nonsense is refused" has 'peer_refuse: nic=[0-9]+ host=[0-9]+ verdict=[a-z_]+ type=[0-9]+$'
check "a name" has 'name_listen: nic=9 name=traced uid=0 waiting=0$'
check "its end" has 'name_end: nic=9 name=traced uid=0 waiting=0$'
check "a call to a name of another host" has 'call: nic=8 host=2 name=traced uid=0 err=0$'
check "that host takes it" has 'call_take: nic=9 host=1 name=traced uid=65534 status=answered$'
check "and its answer" has 'call_answer: nic=9 name=traced number=[0-9]+ waits=1$'
check "a call to a name that nobody has" has 'call: nic=8 host=1 name=nobody uid=0 err=-2$'
cat /tmp/trace.one >>/tmp/trace.text
check "selftests run with all events on" run_tests
check "the key of a slot is in no line" no_key /tmp/trace.text
check "nor in a record" no_key_in_records
check "where other things are found" records_are_found
check "every event has appeared" every_event_appeared
check "recipe: who is being rejected" recipe_rejects
check "recipe: from the doorbell to the notification" recipe_latency
check "recipe: how long a rekey takes" recipe_rekey
if [ -x ./perf ]; then
	check "recipe: perf" recipe_perf
else
	skip "recipe: perf" "no perf beside this script"
fi
if [ -x ./trace-cmd ]; then
	check "recipe: trace-cmd" recipe_trace_cmd
else
	skip "recipe: trace-cmd" "no trace-cmd beside this script"
fi
# Last: from here on this user is slow
check "who guesses is paused, and that is told" guessing_pauses
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
