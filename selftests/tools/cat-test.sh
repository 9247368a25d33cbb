#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlyn-cat on the embedded device: both ways, who may, how it ends. Nothing waits for a time
# to pass; bounds are generous.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=cat-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/tools/cat-test.sh [BUILD-FOLDER]  (default: build)"
}

only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
CAT=$BUILD/hamlyn-cat
[ -x "$CAT" ] || die "$CAT is missing; run: make"
export HAMLYN_DEVICE=shm:cat-test-$$
LIMIT=$((60 * ${HAMLYN_TEST_SCALE:-1}))

work_folder cat-test
at=$work/meet

clean_up() {
	rm -f "/dev/shm/hamlyn-$(id -u)-${HAMLYN_DEVICE#shm:}"
	rm -rf "$work"
}
trap clean_up EXIT

cat_() { # ARGUMENT...: bounded
	timeout -k 5 "$LIMIT" "$CAT" "$@"
}

# In the background only: its one child is hamlyn-cat
background() { # ARGUMENT...
	exec timeout -k 5 "$LIMIT" "$CAT" "$@"
}

# listens ARGUMENT...: in the background, its input in $work/listener.in, its output in
# $work/listener.out
listens() {
	background -l "$@" <"$work/listener.in" >"$work/listener.out" 2>"$work/listener.err" &
	listener=$!
}

# It may have come and gone already
listener_ends() { # STATUS
	local status=0
	wait "$listener" || status=$?
	[ "$status" = "$1" ] || {
		echo "the listener ended with $status" >>"$work/err"
		cat "$work/listener.err" >>"$work/err"
		return 1
	}
}

calls() { # STATUS ARGUMENT...: from $work/in to $work/out
	local want=$1 status=0
	shift
	cat_ "$@" <"$work/in" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" = "$want" ] || {
		echo "it ended with $status" >>"$work/err"
		return 1
	}
}

head -c 3000001 /dev/urandom >"$work/bytes"

sends() {
	: >"$work/listener.in"
	cp "$work/bytes" "$work/in"
	listens "$at"
	calls 0 -w "$at" && listener_ends 0 && cmp "$work/bytes" "$work/listener.out" && [ ! -e "$at" ]
}

nothing_is_something() { # an end without a byte before it
	: >"$work/listener.in" && : >"$work/in"
	listens "$at"
	calls 0 -w "$at" && listener_ends 0 && [ ! -s "$work/listener.out" ]
}

reverse() {
	cp "$work/bytes" "$work/listener.in"
	: >"$work/in"
	listens -r "$at"
	calls 0 -r -w "$at" && listener_ends 0 && cmp "$work/bytes" "$work/out" &&
		[ ! -s "$work/listener.out" ]
}

both() {
	cp "$work/bytes" "$work/listener.in"
	tac "$work/bytes" >"$work/in"
	listens -b "@$at"
	calls 0 -b -w "@$at" && listener_ends 0 && cmp "$work/bytes" "$work/out" &&
		cmp "$work/in" "$work/listener.out"
}

# The first line has come while the sender has not ended
at_once() {
	local line=
	: >"$work/listener.in"
	mkfifo "$work/to" "$work/from" || return 1
	background -l "$at" >"$work/from" 2>"$work/listener.err" &
	listener=$!
	background -w "$at" <"$work/to" 2>"$work/err" &
	exec 7>"$work/to" 8<"$work/from"
	echo one >&7
	read -r -t "$LIMIT" -u 8 line
	exec 7>&-
	listener_ends 0
	exec 8<&-
	rm -f "$work/to" "$work/from"
	[ "$line" = one ]
}

keeps() {
	local n
	: >"$work/listener.in"
	listens -k "$at"
	for n in 1 2 3 4 5; do
		echo "$n" >"$work/in"
		calls 0 -w "$at" || return 1
	done
	kill "$(pgrep -P "$listener")" && listener_ends 0 &&
		[ "$(cat "$work/listener.out")" = "$(seq 5)" ] && [ ! -e "$at" ]
}

says_who() {
	: >"$work/listener.in"
	cp "$work/bytes" "$work/in"
	listens -v "$at"
	calls 0 -v -w "$at" && listener_ends 0 &&
		grep -qE "^hamlyn-cat: process [1-9][0-9]* of user $(id -u)$" "$work/err" &&
		grep -qE "^hamlyn-cat: process [1-9][0-9]* of user $(id -u)$" "$work/listener.err" &&
		grep -q "^hamlyn-cat: sent 3000001 bytes" "$work/err" &&
		grep -q "^hamlyn-cat: received 3000001 bytes" "$work/listener.err"
}

# Whoever is not named is not let in, and the one that is gets in after him
not_allowed() {
	: >"$work/listener.in" && : >"$work/in"
	listens -a "nobody,$(id -u)" -m 600 "$at"
	calls 1 -w -a nobody "$at" && grep -q "permitted" "$work/err" || return 1
	calls 0 -w "$at" && listener_ends 0 || return 1
	[ "$(id -u)" != 0 ] && return 0
	listens -a nobody "$at"
	calls 1 -w -T 5 "$at" && grep -q "denied" "$work/err" || return 1
	kill "$(pgrep -P "$listener")" && listener_ends 1
}

permissions() {
	: >"$work/listener.in" && : >"$work/in"
	listens -m 620 "$at"
		calls 0 -w "$at" && listener_ends 0
}

# Also when it is in the middle of it
sender_is_killed() {
	: >"$work/listener.in"
	mkfifo "$work/to" || return 1
	listens "$at"
	background -w "$at" <"$work/to" 2>"$work/err" &
	local sender=$! line
	exec 7>"$work/to"
	rm -f "$work/to"
	echo one >&7
	until line=$(cat "$work/listener.out") && [ -n "$line" ] || [ ! -e "/proc/$listener" ]; do sleep 0.01; done
	kill -KILL "$(pgrep -P "$sender")"
	wait "$sender"
	exec 7>&-
	listener_ends 1 && grep -q "receiving: Connection reset" "$work/listener.err"
}

receiver_is_killed() {
	: >"$work/listener.in"
	mkfifo "$work/to" || return 1
	listens "$at"
	background -w "$at" <"$work/to" 2>"$work/err" &
	local sender=$! line status=0
	exec 7>"$work/to"
	rm -f "$work/to"
	echo one >&7
	until line=$(cat "$work/listener.out") && [ -n "$line" ] || [ ! -e "/proc/$listener" ]; do sleep 0.01; done
	kill -KILL "$(pgrep -P "$listener")"
	listener_ends 137 || return 1
	# It learns of it when it sends
	(trap '' PIPE; for _ in $(seq 1000); do echo two || break; done) 2>/dev/null >&7
	exec 7>&-
	wait "$sender" || status=$?
	rm -f "$at"
	[ "$status" = 1 ] && grep -qE "sent|sending" "$work/err"
}

output_is_full() {
	: >"$work/listener.in"
	cp "$work/bytes" "$work/in"
	background -l "$at" >/dev/full 2>"$work/listener.err" &
	listener=$!
	calls 1 -w "$at"
	listener_ends 1 && grep -q "standard output: No space left" "$work/listener.err"
}

refuses() { # PATTERN ARGUMENT...: a wrong command line
	local pattern=$1
	: >"$work/in"
	shift
	calls 2 "$@" && [ ! -s "$work/out" ] && grep -q "^hamlyn-cat: .*$pattern" "$work/err"
}

fails() { # PATTERN ARGUMENT...
	local pattern=$1
	: >"$work/in"
	shift
	calls 1 "$@" && grep -q "^hamlyn-cat: .*$pattern" "$work/err"
}

helps() {
	: >"$work/in"
	calls 0 --help && grep -q "^usage: hamlyn-cat" "$work/out" && calls 0 --version &&
		grep -qE "^hamlyn-cat [0-9]" "$work/out"
}

# Whether the manual and the completion know of an option
is_told() { # OPTION
	grep -qF -e "${1//-/\\-}" tools/hamlyn-cat/hamlyn-cat.1 || return 1
	grep -qF -e "$1" tools/hamlyn-cat/hamlyn-cat.bash-completion
}

manual() {
	local option
	: >"$work/in"
	calls 0 --help || return 1
	while read -r option; do
		is_told "$option" && continue
		echo "$option" >>"$work/err"
		return 1
	done < <(grep -oE -e '--[a-z]+' "$work/out" | sort -u)
}

check "three million bytes" sends
check "no byte at all" nothing_is_something
check "the other way" reverse
check "both ways at a time" both
check "a line comes before there is another one" at_once
check "one after another" keeps
check "who is there, and how fast it was" says_who
check "who may, and who may not" not_allowed
check "permissions of the path" permissions
check "the sender is killed" sender_is_killed
check "the receiver is killed" receiver_is_killed
check "standard output takes no more" output_is_full
check "nobody listens" fails "No such file" "$work/nobody"
check "nobody comes in time" fails "timed out" -l -T 0.01 "$at"
check "a listener where there is no folder" fails "is not there" -l "$work/none/x"
check "a device that is not there" fails "/dev/hamlyn99" -d /dev/hamlyn99 x
check "no name" refuses "where?"
check "two names" refuses "one NAME" x y
check "--keep without --listen" refuses "keep" -k x
check "--keep that would send" refuses "keep" -l -k -r x
check "--both and --reverse" refuses "exclude" -b -r x
check "--mode without --listen" refuses "mode" -m 600 x
check "a mode of other digits" refuses "octal" -l -m 999 x
check "a user that is none" refuses "no user" -a no-such-user x
check "a time that is none" refuses "no time" -T soon x
check "--wait with --listen" refuses "wait" -l -w x
check "help and version" helps
check "the manual and the completion have every option" manual

total
