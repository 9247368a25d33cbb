#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on a kernel made for debugging: faults at every allocation of every
# call, of loading the module, then random calls.
set -u

usage() {
	cat <<END
Usage: debug-guest.sh [--seconds N] [--seeds "A B ..."] [--module FILE] [--no-faults]

Runs fail_nth and fuzz_calls, which are beside it or in PATH, as root. The module is
loaded at the beginning and at the end.

  --seconds N      of random calls, with each seed (\$HAMLYN_FUZZ_SECONDS, else 60)
  --seeds "A B"    seeds of the random calls (\$HAMLYN_FUZZ_SEEDS, else "1")
  --module FILE    what is loaded (./hamlyn.ko)
  --no-faults      random calls only

What the kernel cannot do (fault injection, KCOV) is skipped, and counted as skipped.
Ends with "N passed, N failed"; exit status 0 if none failed.
END
}

seconds=${HAMLYN_FUZZ_SECONDS:-60}
seeds=${HAMLYN_FUZZ_SEEDS:-1}
module=./hamlyn.ko
faults=yes

while [ $# -gt 0 ]; do
	case $1 in
	--help) usage && exit 0 ;;
	--no-faults) faults=no && shift && continue ;;
	--seconds | --seeds | --module) ;;
	*) echo "debug-guest.sh: $1 is unknown; see --help" >&2 && exit 2 ;;
	esac
	[ $# -ge 2 ] || { echo "debug-guest.sh: $1 needs a value" >&2 && exit 2; }
	case $1 in
	--seconds) seconds=$2 ;;
	--seeds) seeds=$2 ;;
	--module) module=$2 ;;
	esac
	shift 2
done
case $seconds in
'' | *[!0-9]*) echo "debug-guest.sh: --seconds $seconds: must be a number" >&2 && exit 2 ;;
esac
[ -e "$module" ] || { echo "debug-guest.sh: there is no $module" >&2 && exit 2; }

PATH=$PATH:$(dirname "$0")
passed=0
failed=0
skipped=0

# The last line of a program's output is its total.
totals() { # COMMAND...
	"$@" 2>&1 | tee /tmp/log | sed '$d'
	total=$(tail -n 1 /tmp/log)
	case $total in
	*" passed, "*" failed"*)
		passed=$((passed + ${total%% passed*}))
		rest=${total#* passed, }
		failed=$((failed + ${rest%% failed*}))
		case $rest in
		*", "*" skipped") rest=${rest#*, } && skipped=$((skipped + ${rest%% skipped*})) ;;
		esac
		;;
	*)
		echo "# $total"
		echo "not ok - $1 ends with a total"
		failed=$((failed + 1))
		;;
	esac
}

# As it is loaded now, with the parameters that decide what loading does.
loaded=
for name in engine engines nics packet_size max_slots; do
	loaded="$loaded $name=$(cat /sys/module/hamlyn/parameters/$name)"
done

if [ "$faults" = yes ]; then
	totals fail_nth
	rmmod hamlyn || failed=$((failed + 1))
	totals fail_nth --module "$module" "nics=2 engines=2 max_slots=64"
	totals fail_nth --no-kmemleak --module "$module" "engine=inline nics=1 engine_cpus=0"
	# shellcheck disable=SC2086 # several words
	insmod "$module" $loaded || failed=$((failed + 1))
fi

kcov=
if grep -q '__sanitizer_cov_trace_pc' /proc/kallsyms && [ -e /sys/kernel/debug/kcov ]; then
	kcov=--kcov
fi
for seed in $seeds; do
	totals fuzz_calls $kcov --seconds "$seconds" --seed "$seed"
	rmmod hamlyn || failed=$((failed + 1))
	# shellcheck disable=SC2086 # several words
	insmod "$module" $loaded || failed=$((failed + 1))
done

[ "$skipped" = 0 ] && skipped=
echo "$passed passed, $failed failed${skipped:+, $skipped skipped}"
[ "$failed" = 0 ]
