#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: is anything left of objects that came and went? Seen from outside, by
# what the debug kernel keeps account of: kmemleak, page_owner, the counters of
# pinned pages, and the driver's tracepoints.
set -u

usage() {
	cat <<'EOT'
Usage: leak-guest.sh [--rounds N]

  --rounds N  how often each object is made (default 10)

Needs ./leak, ./hamlynctl and ./hamlyn.ko, and the kernel "debug" with
kmemleak=on page_owner=on on its command line: see README.md in vm/.
Ends with "N passed, N failed".
EOT
}

rounds=10
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--rounds)
		case ${2:-} in
		'' | *[!0-9]*)
			echo "leak-guest.sh: --rounds needs a number" >&2
			exit 2
			;;
		esac
		rounds=$2
		shift
		;;
	*)
		echo "leak-guest.sh: unknown word $1" >&2
		exit 2
		;;
	esac
	shift
done

debug=/sys/kernel/debug
tracing=/sys/kernel/tracing
passed=0
failed=0

ok() {
	echo "ok - $1"
	passed=$((passed + 1))
}

not_ok() { # NAME; what is to be said of it is in /tmp/log
	sed 's/^/# | /' /tmp/log | head -n 40
	echo "not ok - $1"
	failed=$((failed + 1))
}

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >/tmp/log 2>&1; then ok "$name"; else not_ok "$name"; fi
}

# ---- what is kept account of ----

can_look() {
	[ -w $debug/kmemleak ] || { echo "no kmemleak: is kmemleak=on?"; return 1; }
	echo scan >$debug/kmemleak || { echo "kmemleak is off"; return 1; }
	[ -r $debug/page_owner ] || { echo "no page_owner: is page_owner=on?"; return 1; }
	[ -d $tracing/events/hamlyn ] || { echo "no tracepoints of hamlyn"; return 1; }
	case $(owned_pages) in
	'' | *[!0-9]*) echo "page_owner cannot be read"; return 1 ;;
	esac
}

# An object is reported when it is older than 5 s at the end of a scan, and the checksum
# of what is in it has not changed since the last.
unreferenced() {
	echo scan >$debug/kmemleak
	sleep 6
	echo scan >$debug/kmemleak
	echo scan >$debug/kmemleak
	cat $debug/kmemleak
}

no_leak() {
	unreferenced >/tmp/leaks
	cat /tmp/leaks
	[ ! -s /tmp/leaks ]
}

# Pages that the module allocated and nobody freed: areas, rings. Blocks of text, one
# for each page or row of pages, with an empty line behind it; one that does not fit into
# what the reader has room for is an error.
owned_pages() {
	dd if=$debug/page_owner bs=16k 2>/dev/null |
		awk '/^Page allocated via order/ { for (pages = 1; $5 + 0 > 0; $5 -= 1) pages *= 2 }
			/\[hamlyn\]/ { mine = 1 }
			/^$/ { if (mine) sum += pages; mine = 0 }
			END { print sum + 0 }'
}

pinned_pages() {
	awk '$1 == "nr_foll_pin_acquired" { n += $2 } $1 == "nr_foll_pin_released" { n -= $2 }
		END { print n + 0 }' /proc/vmstat
}

threads() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^hamlyn[0-9]*/' || true; }

figures() { echo "pages $(owned_pages) pins $(pinned_pages) threads $(threads)"; }

# Ends of what was killed can still be under way: the same figures at some time are enough.
figures_are() { # FIGURES
	tries=0
	while [ $tries -lt 10 ]; do
		now=$(figures)
		[ "$now" != "$1" ] || return 0
		sleep 1
		tries=$((tries + 1))
	done
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
	cat $tracing/trace >/tmp/trace
	: >$tracing/trace
}

complete_trace() { # entries-in-buffer/entries-written: A/B
	awk -F'[:/ ]+' '/entries-in-buffer/ { print; ok = $4 == $5 && $4 > 0 } END { exit !ok }' /tmp/trace
}

count() { # EVENT,...
	sum=0
	for event in $(echo "$1" | tr , ' '); do
		sum=$((sum + $(grep -c " hamlyn_$event: " /tmp/trace)))
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
		sed -n 's/^/# /; 1p' /tmp/log
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
[ "$failed" = 0 ] || { echo "$passed passed, $failed failed"; exit 1; }

# What is made once and kept is there afterwards.
HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=1 ./leak >/dev/null 2>&1
sleep 1
before=$(figures)
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

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
