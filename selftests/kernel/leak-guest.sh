#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: is anything left of objects that came and went? Seen from outside, by
# what the debug kernel keeps account of: kmemleak, page_owner, the counters of
# pinned pages, and the driver's tracepoints.
set -u

ME=leak-guest.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=leak-lib.sh
. "$(dirname "$0")/leak-lib.sh"

usage() {
	cat <<'EOT'
Usage: leak-guest.sh [--rounds N]

  --rounds N  how often each object is made (default 10); also from the kernel command
              line: hamlyn.leak=N

Needs ./leak, ./hamlynctl, ./hamlyn.ko, lib.sh and leak-lib.sh beside the script, and the kernel "debug" with
kmemleak=on page_owner=on on its command line: see README.md in vm/.
Ends with "N passed, N failed".
EOT
}

rounds=$(sed -n 's/.*hamlyn\.leak=\([0-9]*\).*/\1/p' /proc/cmdline)
rounds=${rounds:-10}
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--rounds)
		number --rounds "${2:-}"
		rounds=$2
		shift
		;;
	*) die "unknown word $1; see --help" ;;
	esac
	shift
done

tracing=/sys/kernel/tracing
work_folder leak

# ---- what is kept account of ----

threads() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^hamlyn[0-9]*/' || true; }

figures() {
	owned_pages >"$work/pages"
	pages=$(awk '{ n += $1 } END { print n + 0 }' "$work/pages")
	echo "pins $(pinned_pages) threads $(threads) maps $(mapped_rows) pages $pages"
}

# Ends of what was killed can still be under way: the same figures at some time are enough.
# Pages are looked for half a minute each time.
figures_are() { # FIGURES
	tries=0
	while [ $tries -lt 20 ] &&
		[ "pins $(pinned_pages) threads $(threads) maps $(mapped_rows)" != "${1%% pages*}" ]; do
		sleep 1
		tries=$((tries + 1))
	done
	for _ in 1 2; do
		now=$(figures)
		[ "$now" != "$1" ] || return 0
	done
	diff "$work/pages.before" "$work/pages"
	echo "before: $1"
	echo "now:    $now"
	return 1
}

# ---- created and destroyed ----

pairs="context:context_open:context_close area:area_add,area_alloc:area_remove
nq:nq_create:nq_destroy slot:slot_create:slot_destroy
terminus:terminus_create:terminus_destroy watch:watch:unwatch nic:nic_create:nic_delete"

start_counting() {
	echo 0 >$tracing/tracing_on
	echo 16384 >$tracing/buffer_size_kb
	: >$tracing/trace
	for event in $(echo "$pairs" | tr ':,' '  '); do
		[ ! -d $tracing/events/hamlyn/hamlyn_"$event" ] ||
			echo 1 >$tracing/events/hamlyn/hamlyn_"$event"/enable
	done
	echo 1 >$tracing/tracing_on
}

stop_counting() {
	echo 0 >$tracing/tracing_on
	echo 0 >$tracing/events/hamlyn/enable
	cat $tracing/trace >"$work/trace"
	: >$tracing/trace
}

complete_trace() { # entries-in-buffer/entries-written: A/B
	awk -F'[:/ ]+' '/entries-in-buffer/ { print; ok = $4 == $5 && $4 > 0 } END { exit !ok }' "$work/trace"
}

count() { # EVENT,...
	sum=0
	for event in $(echo "$1" | tr , ' '); do
		sum=$((sum + $(grep -c " hamlyn_$event: " "$work/trace")))
	done
	echo $sum
}

# is_paired NAME CREATE DESTROY LEAST: so many, and each was destroyed
is_paired() {
	created=$(count "$2")
	destroyed=$(count "$3")
	echo "$created created, $destroyed destroyed, at least $4 expected"
	[ "$created" = "$destroyed" ] && [ "$created" -ge "$4" ]
}

check_pairs() {
	for pair in $pairs; do
		name=${pair%%:*}
		rest=${pair#*:}
		# Of each kind one a round, in five of the tests
		least=$((rounds * 5))
		[ "$name" != nic ] || least=$rounds
		check "as many of $name destroyed as created" \
			is_paired "$name" "${rest%%:*}" "${rest#*:}" "$least"
		sed -n 's/^/# /; 1p' "$work/log"
	done
}

# ---- what is done ----

nics() {
	i=0
	while [ $i -lt "$rounds" ]; do
		nic=$(./hamlynctl nic add engines 2) || return 1
		nic=${nic%%[!a-z0-9]*}
		HAMLYN_DEVICE=/dev/$nic HAMLYN_LEAK_ROUNDS=1 ./leak || return 1
		./hamlynctl nic del "$nic" || return 1
		i=$((i + 1))
	done
}

objects() { HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=$rounds ./leak; }

reload() {
	i=0
	while [ $i -lt 3 ]; do
		rmmod hamlyn && insmod ./hamlyn.ko "$@" || return 1
		HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=1 ./leak || return 1
		i=$((i + 1))
	done
}

check "the kernel keeps account" can_look
check "the module tells of its objects" test -d "$tracing/events/hamlyn"
[ "$failed" = 0 ] || { total; exit; }

# What is made once and kept is there afterwards.
HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=1 ./leak >/dev/null 2>&1
sleep 1
before=$(figures)
cp "$work/pages" "$work/pages.before"
echo "# $before"
start_counting
check "$rounds rounds of every object" objects
check "$rounds NICs with every object" nics
check "pages, pins and threads are what they were" figures_are "$before"
stop_counting
check "no event was lost" complete_trace
check_pairs
check "no leak after two scans" no_leak
check "loading and unloading, polling engine" reload engine=poll engines=2
check "loading and unloading, no engine" reload engine=inline
check "no leak of the modules that are gone" no_leak

total
