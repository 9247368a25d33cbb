#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The examples that serve or wait for others: no client ends or stalls a server, and
# who waits does not spin.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

case ${1:-} in
-h | --help)
	cat <<'EOT'
Usage: selftests/tools/examples-test.sh [BUILD-FOLDER]

  BUILD-FOLDER  holds libhamlyn.a and the examples (default: build)

On the embedded device. HAMLYN_TEST_SCALE=N makes it N times as patient. The last line
is "N passed, N failed".
EOT
	exit 0
	;;
esac

BUILD=${1:-build}
export HAMLYN_DEVICE=shm:examples-test-$$
SCALE=${HAMLYN_TEST_SCALE:-1}
LIMIT=$((60 * SCALE))
passed=0
failed=0
pids=()

for program in echo requests event_loop; do
	[ -x "$BUILD/$program" ] || {
		echo "examples-test.sh: $BUILD/$program: build it with: make BUILD=$BUILD examples" >&2
		exit 2
	}
done

work=$(mktemp -d)

clean_up() {
	local pid

	for pid in "${pids[@]}"; do
		kill -CONT "$pid" 2>/dev/null || true
		kill "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap clean_up EXIT

result() { # NAME STATUS
	if [ "$2" = 0 ]; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "not ok - $1"
		tail -n 5 "$work"/*.log | sed 's/^/# /'
		failed=$((failed + 1))
	fi
}

check() { # NAME COMMAND...
	local name=$1 rc=0

	shift
	"$@" || rc=1
	result "$name" "$rc"
}

# What it says goes to NAME.log; $! is its process. Without <&0 it would read nothing.
start() { # NAME PROGRAM...
	local name=$1

	shift
	"$@" <&0 >"$work/$name.log" 2>&1 &
	pids+=($!)
}

limited() {
	timeout -k 5 "$LIMIT" "$@"
}

# The server may be about to listen, or to end.
soon() { # COMMAND...
	local i

	for ((i = 0; i < LIMIT * 10; i++)); do
		"$@" && return
		sleep 0.1
	done
	return 1
}

ended() {
	! kill -0 "$1" 2>/dev/null
}

ends_well() { # PROCESS
	soon ended "$1" && wait "$1"
}

# ---- echo ----

echo_server_goes_on() {
	local server

	start server "$BUILD/echo" -l -c 2 "$work/echo"
	server=$!
	limited "$work/rude" short "$work/echo" &&
		limited "$BUILD/echo" -n 100 "$work/echo" >"$work/client.log" 2>&1 &&
		ends_well "$server" && grep -q 'given up: Message too long' "$work/server.log"
}

# ---- requests ----

# Without descriptors it accepts nobody, which is not its end.
requests_server_has_no_descriptors() {
	local server=$1

	prlimit --pid "$server" --nofile=3: || return
	limited "$work/rude" absent "@hamlyn-requests-$server.0" >"$work/waits.log" 2>&1 &
	pids+=($!)
	soon grep -q 'turned down: Too many open files' "$work/requests.log" || return
	prlimit --pid "$server" --nofile=1024: || return
	wait $!
}

nobody_waits_for_the_absent() {
	limited "$work/rude" absent "@hamlyn-requests-$1.0" >"$work/absent.log" 2>&1 || return
	# Of 8 that have ended and do not look: a second each, if the server waited.
	[ "$(<"$work/absent.log")" -lt $((4000 * SCALE)) ]
}

# Others may come, end, and still be there at the end: only its own clients count.
serves_its_own_clients() {
	local server

	start own "$BUILD/requests" -c 3 -n 10000
	server=$!
	limited "$work/rude" absent "@hamlyn-requests-$server.0" >"$work/strangers.log" 2>&1 || true
	ends_well "$server" && grep -q 'each client got its own' "$work/own.log"
}

# ---- event_loop ----

ticks() { # PROCESS: of the processor's time, as the kernel counts them
	local stat

	read -r -a stat <"/proc/$1/stat"
	echo $((stat[13] + stat[14]))
}

# It has more to send than the other end takes, and a standard input that was closed.
blocked_sender_sleeps() {
	local hears sends before

	start hears "$BUILD/event_loop" -i 0 -l "$work/talk" </dev/null
	hears=$!
	mkfifo "$work/input"
	exec 3<>"$work/input"
	start sends "$BUILD/event_loop" -i 0 "$work/talk" <"$work/input" 3>&-
	sends=$!
	echo first >&3
	soon grep -q first "$work/hears.log" || return
	kill -STOP "$hears"
	# A pipe takes 64 KiB, its buffers some: then it would wait for the reader.
	timeout 5 dd if=/dev/zero bs=4k count=4096 >&3 2>/dev/null || true
	exec 3>&-
	sleep 0.5
	before=$(ticks "$sends")
	sleep 3
	before=$(($(ticks "$sends") - before))
	echo "$before ticks in three seconds" >"$work/ticks.log"
	[ "$before" -lt 10 ] || return
	kill -CONT "$hears"
	ends_well "$sends" && ends_well "$hears"
}

cc -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -Iuapi -Ilibhamlyn/include selftests/tools/examples/rude.c \
	"$BUILD/libhamlyn.a" -lpthread -o "$work/rude"

check "echo goes on behind a client that takes less than it sends" echo_server_goes_on
start requests "$BUILD/requests" -c 2 -n 1000000000
requests=$!
check "requests does not wait for clients that do not look" nobody_waits_for_the_absent "$requests"
check "requests makes clients wait that it cannot accept" \
	requests_server_has_no_descriptors "$requests"
kill "$requests" 2>/dev/null || true
check "requests ends when its own clients have, whoever else came" serves_its_own_clients
check "event_loop sleeps when it cannot send on, and ends well" blocked_sender_sleeps

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
