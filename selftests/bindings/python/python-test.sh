#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The Python package on the embedded device: its own tests, and how it finds the
# library. PYTHON names the interpreter (python3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

case ${1:-} in
-h | --help)
	echo "Usage: selftests/bindings/python/python-test.sh [BUILD-FOLDER]  (default: build; holds libhamlyn.so)"
	exit 0
	;;
esac

LIBRARY=$(realpath "${1:-build}/libhamlyn.so")
PYTHON=${PYTHON:-python3}
PACKAGE=$PWD/libhamlyn/python
LIMIT=$((300 * ${HAMLYN_TEST_SCALE:-1}))
export HAMLYN_DEVICE=${HAMLYN_DEVICE:-shm:python-test-$$}
export PYTHONDONTWRITEBYTECODE=1
passed=0
failed=0
skipped=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# /' "$work/log"
		failed=$((failed + 1))
	fi
}

imports() { # FOLDER [LIBRARY]: the package in there finds the library
	env -u HAMLYN_LIBRARY ${2:+"HAMLYN_LIBRARY=$2"} "PYTHONPATH=$1" \
		timeout -k 5 60 "$PYTHON" -c 'import hamlyn'
}

does_not_import() { # FOLDER LIBRARY: and says what to do
	! imports "$@" 2>"$work/said" && grep -q 'ImportError: .*HAMLYN_LIBRARY' "$work/said"
}

mkdir "$work/beside"
cp -r "$PACKAGE/hamlyn" "$work/beside/"
cp "$LIBRARY" "$work/beside/hamlyn/libhamlyn.so"
check "the library is found by HAMLYN_LIBRARY" imports "$PACKAGE" "$LIBRARY"
check "the library is found beside the package" imports "$work/beside"
check "a wrong HAMLYN_LIBRARY is told" does_not_import "$PACKAGE" /nonexistent.so

# Adds what the tests have counted. They end with 0, or with 1 when some failed: another
# status, which may come behind the total, and no test at all are failures as well.
count() { # STATUS LAST-LINE
	[[ $2 =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]] || return 1
	passed=$((passed + BASH_REMATCH[1]))
	failed=$((failed + BASH_REMATCH[2]))
	skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
	if [ "${BASH_REMATCH[2]}" != 0 ]; then [ "$1" = 1 ]; else [ "$1" = 0 ] && [ "${BASH_REMATCH[1]}" != 0 ]; fi
}

# Warnings are errors: what Python will refuse one day, and what was not closed.
status=0
HAMLYN_LIBRARY=$LIBRARY timeout -k 5 "$LIMIT" "$PYTHON" -X dev -W error \
	"$PACKAGE/tests/tap.py" 2>&1 | tee "$work/tests" | sed '$d' || status=${PIPESTATUS[0]}
last=$(tail -n 1 "$work/tests")
if ! count "$status" "$last"; then
	echo "# $last"
	echo "not ok - the tests come to their end (status $status)"
	failed=$((failed + 1))
fi
if [ "$skipped" = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ "$failed" = 0 ]
