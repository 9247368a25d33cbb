#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: loading and unloading by hand, then all selftests on the kernel
# device. The names of the programs come on the kernel command line; with kmemleak=on there
# leak-lib.sh is beside the script, and nothing that they had may be left.
set -u

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
		sed 's/^/# /' /tmp/check.log
		failed=$((failed + 1))
	fi
}

# Without udev: its rules may restrict what the kernel allows.
everybody_may_open() {
	insmod "$module" || return 1
	said=$(stat -c '%a %u %g' /dev/hamlyn0)
	rmmod hamlyn
	[ "$said" = "666 0 0" ] || { echo "$said"; return 1; }
}

# From 6.14 on the kernel itself sets where a thread runs, when it begins.
engine_is_placed() {
	insmod "$module" engine=poll engine_cpus=1 || return 1
	where=nowhere
	tries=0
	until [ "$where" = 1 ] || [ $tries = $((50 * ${HAMLYN_TEST_SCALE:-1})) ]; do
		[ $tries = 0 ] || sleep 0.1
		tries=$((tries + 1))
		for comm in /proc/[0-9]*/comm; do
			[ "$(cat "$comm" 2>/dev/null)" != hamlyn0/0 ] ||
				where=$(awk '/^Cpus_allowed_list:/ { print $2 }' "${comm%comm}status")
		done
	done
	rmmod hamlyn
	[ "$where" = 1 ] || { echo "it may run on: $where"; return 1; }
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
	mem_limit_mb=* | user_*=*) ;;
	*) parameters="$parameters $word" ;;
	esac
done
module=./hamlyn.ko

# What a NIC has is set by netlink: a parameter would not say of which.
parameters_are_fixed() {
	for file in /sys/module/hamlyn/parameters/*; do
		# For tests of the driver's mutants
		[ "${file##*/}" = mutant ] || [ "$(stat -c %a "$file")" = 444 ] || { echo "$file"; return 1; }
	done
}
check "no parameter can be written" parameters_are_fixed

exec 9<>/dev/hamlyn0
check "unloading is refused while a process has the device open" refused rmmod hamlyn
check "and the device works afterwards" test -c /dev/hamlyn0
exec 9<&-
check "unloading works when nobody has it open" rmmod hamlyn
check "it leaves no device node" refused test -e /dev/hamlyn0
check "a wrong engine= is refused" refused insmod "$module" engine=sometimes
check "a packet_size out of range is refused" refused insmod "$module" packet_size=1000
check "a max_slots out of range is refused" refused insmod "$module" max_slots=0
check "an engines out of range is refused" refused insmod "$module" engines=17
check "a nics out of range is refused" refused insmod "$module" nics=257
check "engine_cpus that are no list are refused" refused insmod "$module" engine_cpus=fast
check "engine_cpus of no processor are refused" refused insmod "$module" engine_cpus=8191
[ ! -d /sys/devices/system/cpu/cpu1 ] ||
	check "engine_cpus= says where an engine runs" engine_is_placed
check "everybody may open the device node" everybody_may_open
# shellcheck disable=SC2086 # several words
check "loading again works" insmod "$module" $parameters

# Runs a command that ends with "N passed, N failed[, N skipped]", and counts.
add_up() { # COMMAND...
	# Each line as it comes: a sed of the guest's shell keeps 4 KiB of them to itself.
	"$@" | while IFS= read -r line; do
		case $line in
		[0-9]*' passed, '*' failed'*) line="# $line" ;;
		esac
		printf '%s\n' "$line"
	done | tee /tmp/tests.log
	line=$(tail -n 1 /tmp/tests.log)
	case $line in
	'# '*' passed, '*' failed'*)
		line=${line#'# '}
		more=${line%% passed*}
		passed=$((passed + more))
		more=${line#*passed, }
		failed=$((failed + ${more%% failed*}))
		more=$(echo "$line" | sed -n 's/.*, \([0-9]*\) skipped.*/\1/p')
		skipped=$((skipped + ${more:-0}))
		;;
	*)
		echo "not ok - the tests did not report"
		failed=$((failed + 1))
		;;
	esac
}

# While the module is there: then what is left tells by whose functions it was allocated.
look_for_leaks() {
	grep -qw 'kmemleak=on' /proc/cmdline || return 0
	# shellcheck source-path=SCRIPTDIR source=leak-lib.sh
	. "$(dirname "$0")/leak-lib.sh"
	check "the kernel keeps account of memory" can_scan
	check "no memory is left that nobody refers to" no_leak
}

# Tests that guess keys by the thousand run while nobody is held back for it,
# those about holding back after them: the user is not forgiven for a while.
plain=
guessing=
for test in $(sed -n 's/.*hamlyn\.tests=\([^ ]*\).*/\1/p' /proc/cmdline | tr , ' '); do
	case $test in
	conformance_adversary) plain="$plain $test" ;;
	conformance* | hostile_guess | hostile_watch) guessing="$guessing $test" ;;
	*) plain="$plain $test" ;;
	esac
done
if [ -n "$plain" ]; then
	check "unloading works before the tests that must not be held back" rmmod hamlyn
	# shellcheck disable=SC2086 # several words
	check "and loading without a limit for guesses" insmod "$module" $parameters guesses=0
	# shellcheck disable=SC2086 # several words
	add_up sh ./run-tests.sh --device /dev/hamlyn0 $plain
	look_for_leaks
	check "unloading works after them" rmmod hamlyn
	# shellcheck disable=SC2086 # several words
	check "and loading with the limit" insmod "$module" $parameters
fi
if [ -n "$guessing" ]; then
	# shellcheck disable=SC2086 # several words
	add_up sh ./run-tests.sh --device /dev/hamlyn0 $guessing
	look_for_leaks
fi

# The order of service can be seen with one engine only.
case $parameters$guessing in
*engine=poll*conformance_kernel*)
	check "unloading works after the tests with several engines" rmmod hamlyn
	# shellcheck disable=SC2086 # several words
	check "and loading with one" insmod "$module" $parameters engines=1
	add_up sh ./run-tests.sh --device /dev/hamlyn0 conformance_kernel
	;;
esac

# As built in a kernel tree, where fsync() is no doorbell: the library rings by ioctl.
if [ -e hamlyn-kick.ko ]; then
	check "unloading works before a module without fsync()" rmmod hamlyn
	# shellcheck disable=SC2086 # several words
	check "and loading that one" insmod ./hamlyn-kick.ko $parameters
	HAMLYN_TEST_NO_FSYNC=1 add_up sh ./run-tests.sh --device /dev/hamlyn0 doorbell
fi

# Exactly what was there before: nothing wired, nothing allocated, no thread.
check "unloading works after all tests" rmmod hamlyn
# shellcheck disable=SC2086 # several words
check "and loading again" insmod "$module" $parameters

[ "$skipped" = 0 ] && skipped=
echo "$passed passed, $failed failed${skipped:+, $skipped skipped}"
[ "$failed" = 0 ]
