#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The descriptor of a manager in event loops that others have written, on the embedded
# device: a server for several processes in each of them.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

case ${1:-} in
-h | --help)
	echo "Usage: selftests/tools/loops-test.sh [BUILD-FOLDER]  (default: build; holds libhamlyn.a)"
	exit 0
	;;
esac

BUILD=${1:-build}
OUT=$BUILD/loops
export HAMLYN_DEVICE=shm:loops-test-$$
FLAGS=(-D_GNU_SOURCE -Iuapi -Ilibhamlyn/include -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror)
LIMIT=$((300 * ${HAMLYN_TEST_SCALE:-1}))
passed=0
failed=0
skipped=0

mkdir -p "$OUT" || exit 2

bad() { # NAME: what was said is shown
	echo "not ok - $1"
	sed 's/^/# | /' "$OUT/log" | tail -n 40
	failed=$((failed + 1))
}

compiles() { # PROGRAM OPTION...
	local program=$1
	shift
	"${CC:-gcc}" "${FLAGS[@]}" "selftests/tools/loops/$program.c" selftests/tools/loops/serve.c \
		-Iselftests/lib selftests/lib/hamlyn_test.c "$BUILD/libhamlyn.a" "$@" -lpthread \
		-o "$OUT/$program" >"$OUT/log" 2>&1
}

# One result for each of the program's.
runs() { # NAME PROGRAM
	local name=$1 line rc=0
	timeout -k 5 "$LIMIT" "$OUT/$2" >"$OUT/log" 2>&1 </dev/null || rc=$?
	while read -r line; do
		case $line in
		'ok - '*)
			echo "ok - $name: ${line#ok - }"
			passed=$((passed + 1))
			;;
		'not ok - '*)
			echo "not ok - $name: ${line#not ok - }"
			failed=$((failed + 1))
			;;
		'#'*) echo "$line" ;;
		esac
	done <"$OUT/log"
	# Ended without saying so, behind its total, or without a test?
	if [ "$rc" != 0 ] || ! tail -n 1 "$OUT/log" | grep -q '^[1-9][0-9]* passed, 0 failed$'; then
		bad "$name: the program ends well (status $rc)"
	fi
}

# A loop of a library that is not installed is left out.
loop() { # NAME PROGRAM [PKG-CONFIG-NAME]
	local options=()
	if [ $# -gt 2 ]; then
		if ! pkg-config --exists "$3" 2>/dev/null; then
			echo "ok - $1 # SKIP $3 is not installed"
			skipped=$((skipped + 1))
			return
		fi
		read -ra options < <(pkg-config --cflags --libs "$3" | tr '\n' ' ')
	fi
	if compiles "$2" "${options[@]}"; then
		runs "$1" "$2"
	else
		bad "$1: the program compiles"
	fi
}

loop "epoll" loop_epoll
loop "libuv" loop_uv libuv
loop "GLib" loop_glib glib-2.0

if [ "$skipped" = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ "$failed" = 0 ]
