#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The Python package on the embedded device: its own tests, how it finds the
# library, its types, and what it is distributed as. PYTHON names the interpreter (python3).
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

# ---- types ----

types_are_good() {
	/usr/bin/mypy --cache-dir "$work/mypy" --no-error-summary --disallow-untyped-defs \
		--disallow-any-generics --warn-unused-ignores "$PACKAGE/hamlyn"
}

# As whoever uses it sees them, where it is installed
users_types() { # FOLDER [EXPECTED-COMPLAINT]: fails with that
	local said
	cat >"$work/user.py" <<-'EOT'
		import hamlyn
		from hamlyn import aio

		def answer(client: hamlyn.Channel, message: hamlyn.Message) -> memoryview:
		    return message.data

		def main() -> int:
		    with hamlyn.serve("@typed", answer) as server:
		        server.run(0)
		    with hamlyn.Device() as device, hamlyn.Manager(device) as manager:
		        a, b = hamlyn.Channel.pair(manager)
		        a.send(b"hello")
		        got = b.receive_bytes(1)
		        return len(got) if got is not None else 0

		async def talk(manager: hamlyn.Manager) -> bytes:
		    async with await aio.connect(manager, "@typed") as channel:
		        await channel.send(b"x")
		        return await channel.recv_bytes() or b""
	EOT
	[ $# = 1 ] || sed -i 's/return len(got) if got is not None else 0/return got/' "$work/user.py"
	said=$(MYPYPATH=$1 /usr/bin/mypy --cache-dir "$work/mypy" --no-error-summary --strict --follow-imports=silent "$work/user.py") ||
		{ echo "$said"; [ $# = 2 ] && [[ $said == *"$2"* ]]; return; }
	[ $# = 1 ]
}

# ---- a wheel and a source distribution, without a network ----

offline=(unshare -rn)
"${offline[@]}" true 2>/dev/null || offline=()

distribute() { # KIND FROM TO
	rm -rf "$work/source"
	cp -r "$2" "$work/source"
	mkdir -p "$3"
	(cd "$work/source" && "${offline[@]}" /usr/bin/python3 -c \
		"import sys; from setuptools import build_meta; print(build_meta.build_$1(sys.argv[1]))" "$3")
}

wheel_has_all() { # FOLDER
	local file
	/usr/bin/python3 -m zipfile -e "$1"/hamlyn-*-py3-none-any.whl "$1/unpacked" || return
	for file in "$PACKAGE"/hamlyn/*.py "$PACKAGE/hamlyn/py.typed"; do
		cmp "$file" "$1/unpacked/hamlyn/${file##*/}" || return
	done
	[ "$(find "$1/unpacked/hamlyn" -type f | wc -l)" = "$(find "$PACKAGE/hamlyn" -type f \
		! -name '*.pyc' | wc -l)" ]
}

sdist_makes_the_wheel() {
	tar -C "$work" -xzf "$work"/sdist/hamlyn-*.tar.gz && distribute wheel "$work"/hamlyn-*.*.* "$work/again" &&
		wheel_has_all "$work/again" && diff -r "$work/wheel/unpacked/hamlyn" "$work/again/unpacked/hamlyn"
}

check "mypy has nothing to say" types_are_good
check "a wheel is built${offline:+ without a network}" distribute wheel "$PACKAGE" "$work/wheel"
if [ ${#offline[@]} = 0 ]; then
	echo "ok - without a network # SKIP network namespaces are refused here"
	skipped=$((skipped + 1))
fi
check "and has all files" wheel_has_all "$work/wheel"
check "and works" imports "$work/wheel/unpacked" "$LIBRARY"
check "a typed program may use it" users_types "$work/wheel/unpacked"
check "and is told of its mistakes" users_types "$work/wheel/unpacked" 'got "Optional[bytes]"'
check "a source distribution is built" distribute sdist "$PACKAGE" "$work/sdist"
check "and makes the same wheel" sdist_makes_the_wheel

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
