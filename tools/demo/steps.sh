#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The steps of the demo on one device: somebody offers a message area, somebody
# else guesses keys for it and fails, a third one has the ticket and sends a
# file; then figures. demo.sh runs it natively, guest.sh runs it in the guest as
# three users.
#
# Lines that begin with "@ " are figures for demo.sh: "@ NAME VALUE".
set -eu

usage()
{
	cat <<-END
	usage: DEVICE=D WORK=DIR [NAME=VALUE]... steps.sh

	Programs are looked for in PATH. DIR is an empty folder; alice must be able to
	write to DIR/offer and DIR/out, bob to DIR/in.
	  DEVICE      /dev/hamlynN or shm:NAME
	  MIB         size of the file in MiB (default 64)
	  AS_ALICE, AS_BOB, AS_MALLORY
	              what to put before commands of the receiver, the sender and
	              the guesser; without them all are the same user
	END
}

say()
{
	printf '\n--- %s\n' "$*"
}

die()
{
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

figure()
{
	printf '@ %s %s\n' "$1" "$2"
}

# value KEY FILE: the rest of the line that begins with KEY
value()
{
	sed -n "s|^$1 ||p" "$2" | head -n 1
}

# shellcheck disable=SC2086 # a prefix has several words, or none
alice() { $AS_ALICE "$@"; }
# shellcheck disable=SC2086
bob() { $AS_BOB "$@"; }
# shellcheck disable=SC2086
mallory() { $AS_MALLORY "$@"; }

tidy()
{
	[ -z "$receiver" ] || kill "$receiver" 2>/dev/null || :
}

make_file()
{
	say "bob has a file of $MIB MiB of random bytes"
	bob dd if=/dev/urandom of="$WORK/in/file" bs=1048576 count="$MIB" 2>"$WORK/dd.log" || {
		cat "$WORK/dd.log" >&2
		die "cannot make $WORK/in/file"
	}
	original=$(bob sha256sum "$WORK/in/file" | cut -d' ' -f1)
	echo "sha256sum of the original: $original"
}

start_receiver()
{
	say "alice offers a message area of 8 MiB and writes a ticket for it"
	# shellcheck disable=SC2086 # no function: $! is to be the receiver itself
	$AS_ALICE receive_file -q -d "$DEVICE" -o "$WORK/out/file" -t "$WORK/offer/ticket" -m 644 \
		>"$WORK/receiver.log" 2>&1 &
	receiver=$!
	tries=0
	until grep -q '^waiting in slot' "$WORK/receiver.log"; do
		tries=$((tries + 1))
		if [ $tries -gt 200 ] || ! kill -0 "$receiver" 2>/dev/null; then
			cat "$WORK/receiver.log" >&2
			die "receive_file did not get ready on $DEVICE"
		fi
		sleep 0.1
	done
	slot=$(value 'waiting in slot' "$WORK/receiver.log")
	echo "she waits in slot $slot (host:slot)"
}

# wrong_keys: how many messages the NIC has refused for their key so far
wrong_keys()
{
	guess_keys -d "$DEVICE" -p >"$WORK/counters.log" || die "cannot read the NIC's counters"
	sed -n 's/^refused: wrong key *//p' "$WORK/counters.log"
}

# guess ARGUMENT...: all guesses must be refused
guess()
{
	before=$(wrong_keys)
	mallory guess_keys -d "$DEVICE" "$@" >"$WORK/guess.log" 2>&1 || {
		cat "$WORK/guess.log" >&2
		die "guess_keys failed"
	}
	cat "$WORK/guess.log"
	after=$(wrong_keys)
	if [ -n "$AS_MALLORY" ]; then
		echo "root sees the NIC's counters:"
		cat "$WORK/counters.log"
	fi
	now=$(($(sed -n 's/^\([0-9]*\) random keys, \([0-9]*\) keys.*/\1 + \2/p' \
		"$WORK/guess.log")))
	tried=$((tried + now))
	near=$(sed -n 's/.* random keys, \([0-9]*\) keys.*/\1/p' "$WORK/guess.log")
	[ $((after - before)) = $now ] ||
		die "$now messages had wrong keys, but the NIC refused $((after - before))"
}

guess_keys_in_vain()
{
	if [ -n "$AS_MALLORY" ]; then
		say "mallory wants to send as well, but cannot read the ticket"
		if mallory send_file -q -d "$DEVICE" -t "$WORK/offer/ticket" /bin/busybox \
			>"$WORK/mallory.log" 2>&1; then
			die "mallory has read alice's ticket and sent her a file"
		fi
		cat "$WORK/mallory.log"
		grep -q 'Permission denied' "$WORK/mallory.log" ||
			die "mallory failed, but not for want of permission"
	fi
	cp "$WORK/offer/ticket" "$WORK/leaked"
	say "mallory gets hold of the key but for one bit, whichever"
	guess -t "$WORK/leaked" -n 100
	rm -f "$WORK/leaked"
	figure near "$near"
	say "mallory guesses keys for slot $slot as fast as the NIC lets him, for 8 s"
	guess -s "$slot" -n 1000000 -T 8
	figure guesses "$tried"
	held=$(sed -n 's/^held back: \([0-9.]*\) guesses.*/\1/p' "$WORK/guess.log")
	[ -n "$held" ] || die "nobody held mallory back"
	figure held "$held"
}

send()
{
	say "bob has read the ticket and sends the file"
	bob send_file -d "$DEVICE" -t "$WORK/offer/ticket" "$WORK/in/file" >"$WORK/sender.log" ||
		die "send_file failed"
	cat "$WORK/sender.log"
	status=0
	wait "$receiver" || status=$?
	receiver=
	say "what alice's receiver says"
	cat "$WORK/receiver.log"
	[ $status = 0 ] || die "receive_file failed with status $status"
}

check()
{
	say "the SHA-256 sums"
	arrived=$(alice sha256sum "$WORK/out/file" | cut -d' ' -f1)
	sent=$(value sha256 "$WORK/sender.log")
	received=$(value sha256 "$WORK/receiver.log")
	printf '%s  %s\n' "$original" "original, by sha256sum" "$sent" "by send_file" \
		"$received" "by receive_file" "$arrived" "what alice has, by sha256sum"
	for sum in "$sent" "$received" "$arrived"; do
		[ "$sum" = "$original" ] || die "the file did not arrive as it was sent"
	done
	refused=$(sed -n 's/^refused at this slot: \([0-9]*\) wrong key.*/\1/p' "$WORK/receiver.log")
	[ "$refused" = "$tried" ] ||
		die "alice's slot refused $refused messages for their key, but $tried were sent"
	grep -q '^untouched before the transfer: yes' "$WORK/receiver.log" ||
		die "alice's receiver did not find its area untouched"
	figure sha256 "$original"
	figure bytes "$(value bytes "$WORK/sender.log")"
	figure seconds "$(value seconds "$WORK/sender.log")"
	figure speed "$(value MB/s "$WORK/sender.log")"
	figure refused "$refused"
	rm -f "$WORK/in/file"
	alice rm -f "$WORK/out/file"
}

# json SYSTEM TEST SIZE KEY: from the saved results
json()
{
	sed -n "/\"system\":\"$1\",\"test\":\"$2\",\"size\":$3,/s/.*\"$4\":\([0-9.]*\).*/\1/p" \
		"$WORK/perf.json"
}

compare_speed()
{
	say "how fast, beside what else there is (a few seconds)"
	hamlyn-perf --device "$DEVICE" --save "$WORK/perf.json" compare --quick ||
		die "hamlyn-perf compare failed"
	for system in hamlyn unix-stream pipe limit; do
		figure "lat-$system" "$(json $system lat 16 median_ns)"
	done
}

count_syscalls()
{
	say "how many system calls"
	if [ -n "$IDLE_US" ]; then
		echo "(the engine is to stay awake for $IDLE_US us without work, not for $(cat "$idle"):"
		echo "an emulated processor may take longer than that from message to message)"
		hamlynctl nic set "${DEVICE#/dev/}" idle-us "$IDLE_US" || die "hamlynctl nic set failed"
	fi
	# shellcheck disable=SC2086 # several options, or none
	alice hamlyn-perf --device "$DEVICE" syscalls $SYSCALLS_OPTIONS >"$WORK/syscalls.log" ||
		die "hamlyn-perf syscalls failed"
	cat "$WORK/syscalls.log"
	figure idle-us "${IDLE_US:-none}"
	figure syscalls "$(sed -n 's/^system calls per message: \([^ ]*\).*/\1/p' \
		"$WORK/syscalls.log")"
}

case ${1:-} in
'') ;;
--help | -h) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac
if [ -z "${DEVICE:-}" ] || [ ! -d "${WORK:-}" ]; then
	usage >&2
	exit 2
fi
MIB=${MIB:-64}
AS_ALICE=${AS_ALICE:-}
AS_BOB=${AS_BOB:-}
AS_MALLORY=${AS_MALLORY:-}
COMPARE=${COMPARE:-yes}
SYSCALLS_OPTIONS=${SYSCALLS_OPTIONS:-}
IDLE_US=${IDLE_US:-}
idle=/sys/module/hamlyn/parameters/idle_us
receiver=
tried=0
near=0
trap tidy EXIT
trap 'exit 1' HUP INT TERM

make_file
start_receiver
guess_keys_in_vain
send
check
[ "$COMPARE" = no ] || compare_speed
count_syscalls
