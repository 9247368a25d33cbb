#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# C++ and Python from one host to another: each serves each, over TCP between two bridges. All
# that either writes is the path, HOST/NAME.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 2
ME=languages-test.sh
# shellcheck source-path=SCRIPTDIR source=../../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/bindings/languages/languages-test.sh [BUILD-FOLDER]  (default: build)"
}

only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
HERE=selftests/bindings/languages
LIMIT=$((90 * ${HAMLYN_TEST_SCALE:-1}))
export HAMLYN_LIBRARY=$BUILD/libhamlyn.so PYTHONPATH=$PWD/libhamlyn/python PYTHONDONTWRITEBYTECODE=1
for program in hamlyn-bridge languages; do
	[ -x "$BUILD/$program" ] || die "$BUILD/$program is missing; run: make all languages-test"
done

work_folder languages-test
segment=languages-$$
bridges=()

clean_up() {
	[ ${#bridges[@]} = 0 ] || kill "${bridges[@]}"
	wait
	rm -f "/dev/shm/hamlyn-$(id -u)-$segment"-[12]
	rm -rf "$work"
}
trap clean_up EXIT

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

bridge() { # HOST OPTION...
	local host=$1
	shift
	timeout "$((10 * LIMIT))" "$BUILD/hamlyn-bridge" "shm:$segment-$host" --host "$host" "$@" \
		>"$work/bridge-$host" 2>&1 &
	bridges+=($!)
}

joined() {
	local i
	for ((i = 0; i < 10 * LIMIT; i++)); do
		"$BUILD/hamlyn-bridge" "shm:$segment-1" --status 2>&1 | tee "$work/status" |
			grep -q '2 .*up' && return 0
		sleep 0.1
	done
	cat "$work/status" "$work"/bridge-*
	return 1
}

# The program of a language, bounded, on a host.
on_host() { # HOST LANGUAGE WORD...
	local host=$1 program=("$BUILD/languages")
	case $2 in
	Python) program=(python3 "$HERE/languages.py") ;;
	C) program=("$BUILD/echo") ;;
	esac
	shift 2
	HAMLYN_DEVICE=shm:$segment-$host exec timeout -k 5 "$LIMIT" "${program[@]}" "$@"
}

speak() { # SERVER CLIENT: their languages
	local name server status=0 i
	name=2/served-by-$1
	(on_host 2 "$1" serve "$name") >"$work/server" 2>&1 &
	server=$!
	for ((i = 0; i < 10 * LIMIT; i++)); do
		! grep -q ready "$work/server" || break
		sleep 0.1
	done
	(on_host 1 "$2" talk "$name") >"$work/client" 2>&1 || status=1
	wait "$server" || status=1
	grep -q '^200 messages and one of 300000 bytes$' "$work/client" || status=1
	[ "$status" = 0 ] || cat "$work/server" "$work/client"
	return "$status"
}

# An example, as it is: it has a mode for paths, and HOST/NAME has none.
echoes() {
	local server status=0
	(on_host 2 C -l -c 1 2/echoes) >"$work/server" 2>&1 &
	server=$!
	on_host_soon 1 C -n 100 2/echoes >"$work/client" 2>&1 || status=1
	wait "$server" || status=1
	[ "$status" = 0 ] || cat "$work/server" "$work/client"
	return "$status"
}

# Nobody tells when the other one listens.
on_host_soon() { # HOST LANGUAGE WORD...
	local i
	for ((i = 0; i < LIMIT; i++)); do
		! (on_host "$@") || return 0
		sleep 1
	done
	return 1
}

port=$(free_port)
bridge 2 --listen "127.0.0.1:$port" --peer 1=127.0.0.1
bridge 1 --peer "2=127.0.0.1:$port"
check "two bridges join" joined
check "the example in C serves at HOST/NAME" echoes
for server in C++ Python; do
	for client in C++ Python; do
		check "a server in $server, a client in $client, on another host" speak "$server" "$client"
	done
done
total
