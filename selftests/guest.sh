#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: loading and unloading by hand, then all selftests on the kernel
# device. The names of the programs come on the kernel command line.
set -u

passed=0
failed=0

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >/tmp/check.log 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# /' /tmp/check.log
		failed=$((failed + 1))
	fi
}

refused() {
	! "$@"
}

parameters=
for file in /sys/module/hamlyn/parameters/*; do
	parameters="$parameters ${file##*/}=$(cat "$file")"
done
# shellcheck disable=SC2086 # several words
set -- $parameters
parameters=
for word in "$@"; do
	case $word in
	mem_limit_mb=* | user_mem_limit_mb=* | user_max_slots=*) ;;
	*) parameters="$parameters $word" ;;
	esac
done
module=./hamlyn.ko

exec 9<>/dev/hamlyn0
check "unloading is refused while a process has the device open" refused rmmod hamlyn
check "and the device works afterwards" test -c /dev/hamlyn0
exec 9<&-
check "unloading works when nobody has it open" rmmod hamlyn
check "it leaves no device node" refused test -e /dev/hamlyn0
check "a wrong engine= is refused" refused insmod "$module" engine=sometimes
check "a packet_size out of range is refused" refused insmod "$module" packet_size=1000
check "a max_slots out of range is refused" refused insmod "$module" max_slots=0
# shellcheck disable=SC2086 # several words
check "loading again works" insmod "$module" $parameters

tests=$(sed -n 's/.*hamlyn\.tests=\([^ ]*\).*/\1/p' /proc/cmdline | tr , ' ')
# shellcheck disable=SC2086 # several words
sh ./run-tests.sh --device /dev/hamlyn0 $tests | sed '$!b; s/^[0-9]* passed, .*/# &/' | tee /tmp/tests.log
line=$(tail -n 1 /tmp/tests.log)
case $line in
'# '*' passed, '*' failed'*)
	line=${line#'# '}
	more=${line%% passed*}
	passed=$((passed + more))
	more=${line#*passed, }
	failed=$((failed + ${more%% failed*}))
	skipped=$(echo "$line" | sed -n 's/.*, \([0-9]*\) skipped.*/\1/p')
	;;
*)
	echo "not ok - the tests did not report"
	failed=$((failed + 1))
	;;
esac

# Exactly what was there before: nothing wired, nothing allocated, no thread.
check "unloading works after all tests" rmmod hamlyn
# shellcheck disable=SC2086 # several words
check "and loading again" insmod "$module" $parameters

echo "$passed passed, $failed failed${skipped:+, $skipped skipped}"
[ "$failed" = 0 ]
