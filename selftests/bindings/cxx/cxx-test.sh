#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The C++ wrapper: compiles with both compilers in both languages without warnings,
# and its tests pass with each of them, and with sanitizers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

case ${1:-} in
-h | --help)
	echo "Usage: selftests/bindings/cxx/cxx-test.sh [--one-compiler] [BUILD-FOLDER]"
	echo "The folder (build) holds libhamlyn.a. --one-compiler: the programs with g++ only"
	exit 0
	;;
esac

one=no
[ "${1:-}" != --one-compiler ] || { one=yes; shift; }
BUILD=${1:-build}
OUT=$BUILD/cxx
export HAMLYN_DEVICE=shm:cxx-test-$$
WARN=(-Wall -Wextra -Wpedantic -Werror)
INCLUDE=(-Iuapi -Ilibhamlyn/include)
LIMIT=$((120 * ${HAMLYN_TEST_SCALE:-1}))
passed=0
failed=0

mkdir -p "$OUT"

result() { # NAME STATUS: what was said is in $OUT/log
	if [ "$2" = 0 ]; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "not ok - $1"
		sed 's/^/# /' "$OUT/log" | head -n 40
		failed=$((failed + 1))
	fi
}

compiles() { # NAME COMPILER OPTION...
	local name=$1 cxx=$2 rc=0
	shift 2
	echo '#include <hamlyn/hamlyn.hpp>' |
		"$cxx" -x c++ "${WARN[@]}" "${INCLUDE[@]}" -fsyntax-only "$@" - >"$OUT/log" 2>&1 || rc=1
	result "$name" "$rc"
}

# One result for each test of the programs.
tests() { # NAME COMPILER OPTION...
	local name=$1 cxx=$2 source program library line rc
	shift 2
	for source in selftests/bindings/cxx/*.cc; do
		program=$OUT/$(basename "$source" .cc)
		library=$BUILD/libhamlyn.a
		[ "$source" != selftests/bindings/cxx/taken_back.cc ] || library=$OUT/gaps/libhamlyn.a
		if ! "$cxx" -g "${WARN[@]}" "${INCLUDE[@]}" "$@" "$source" "$library" \
			-lpthread -ldl -o "$program" >"$OUT/log" 2>&1; then
			result "$name: $source compiles" 1
			continue
		fi
		rc=0
		timeout -k 5 "$LIMIT" "$program" >"$OUT/log" 2>&1 || rc=$?
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
		# Ended without saying so, or without a test, or a sanitizer found something.
		if [ "$rc" != 0 ] || ! tail -n 1 "$OUT/log" | grep -q '^[1-9][0-9]* passed, 0 failed$'; then
			result "$name: $source ends well (status $rc)" 1
		fi
	done
}

# It tells a test of each lock that it takes, or lets go
rc=0
make -s "-j$(nproc)" "BUILD=$OUT/gaps" CPPFLAGS=-DH_LOCK_STEPS "$OUT/gaps/libhamlyn.a" >"$OUT/log" 2>&1 || rc=1
result "a library for tests that come in between" "$rc"

for cxx in g++ clang++; do
	for std in 17 20; do
		compiles "hamlyn.hpp compiles alone, $cxx -std=c++$std" "$cxx" "-std=c++$std"
	done
done
compiles "hamlyn.hpp compiles without optimising and with -Wconversion" g++ -std=c++17 -O0 \
	-Wconversion -Wold-style-cast -isystem uapi -isystem libhamlyn/include
tests "g++ -std=c++17" g++ -std=c++17 -O2
[ "$one" = yes ] || tests "clang++ -std=c++20, ASan, UBSan" clang++ -std=c++20 -O1 -fsanitize=address,undefined \
	-fno-sanitize-recover=all

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
