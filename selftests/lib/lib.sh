# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# How tests that are shell scripts count, report and read their command line. Sourced,
# never run: by bash, and by the guest's busybox, for which vm_run (vm-run.sh) puts it
# beside the script. Who sources it sets ME, what messages begin with, and has usage().

passed=0
failed=0
skipped=0

# ---- the command line ----

die() { # TEXT: wrong call, or something is missing
	echo "$ME: $1" >&2
	exit 2
}

# For those that know no option but this one.
only_help() { # WORD...
	case ${1:-} in
	-h | --help) usage; exit 0 ;;
	-*) usage >&2; exit 2 ;;
	esac
}

number() { # OPTION VALUE
	case $2 in
	'' | 0* | *[!0-9]* | ??????????*)
		die "$1 takes a number from 1 to 999999999, not \"$2\"; see --help"
		;;
	esac
}

# A folder for what is left behind: $work, removed at the end.
work_folder() { # NAME
	work=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-$1.XXXXXX") || exit 2
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
}

# ---- one test ----

good() { # NAME
	echo "ok - $1"
	passed=$((passed + 1))
}

# What is known of a failure goes before it: check.sh tells it again in this order.
bad() { # NAME [TEXT]
	[ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/# | /'
	echo "not ok - $1"
	failed=$((failed + 1))
}

skip() { # NAME WHY
	echo "ok - $1 # SKIP $2"
	skipped=$((skipped + 1))
}

verdict() { # NAME STATUS [TEXT]
	if [ "$2" = 0 ]; then good "$1"; else bad "$1" "${3:-}"; fi
}

# Whether a program ended as it was to.
died_of() { # STATUS SIGNAL: 0 if it was to end well
	if [ "$2" = 0 ]; then [ "$1" = 0 ]; else [ "$1" = $((128 + $2)) ]; fi
}

# Does anybody take connections there? What is left of an ended one has the port, too.
listens() { # PORT
	grep -qiE ":$(printf %04x "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# What files say, without the middle of it.
excerpt() { # FILE...
	cat "$@" 2>/dev/null | awk '
		NR <= 20 { print; next }
		{ last[NR % 20] = $0 }
		END {
			if (NR > 40)
				print "... " NR - 40 " lines ..."
			for (i = NR > 40 ? NR - 19 : 21; i <= NR; i++)
				print last[i % 20]
		}'
}

# By its exit status. What it says, or leaves in the files out and err of $work, is shown
# when it fails.
check() { # NAME COMMAND...
	check_name=$1
	shift
	: >"$work/out"
	: >"$work/err"
	if "$@" >"$work/log" 2>&1; then
		good "$check_name"
	else
		bad "$check_name" "$(excerpt "$work/log" "$work/out" "$work/err")"
	fi
}

# ---- totals ----

# The last line of a test. It fails if anything failed, or nothing ran.
total() {
	if [ "$skipped" = 0 ]; then
		echo "$passed passed, $failed failed"
	else
		echo "$passed passed, $failed failed, $skipped skipped"
	fi
	[ "$failed" = 0 ] && [ $((passed + skipped)) != 0 ]
}

# Adds what the last line of another test says; fails if that is no total.
add_total() { # LINE
	# shellcheck disable=SC2046 # three words
	set -- $(printf '%s\n' "$1" |
		sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p')
	[ $# != 0 ] || return 1
	passed=$((passed + $1))
	failed=$((failed + $2))
	skipped=$((skipped + ${3:-0}))
}

# A total in the midst of the output is a remark. A loop, because sed would say it late.
remarks() {
	while IFS= read -r remark || [ -n "$remark" ]; do
		case $remark in
		[0-9]*" passed, "[0-9]*" failed"*) remark="# $remark" ;;
		esac
		printf '%s\n' "$remark"
	done
}

# Runs a test that ends with a total, and adds that up. One that has none, or fails without
# saying what, is a failure; $why is that then.
totals() { # NAME LOG COMMAND...
	totals_name=$1 totals_log=$2 totals_failed=$failed totals_skipped=$skipped
	shift 2
	{
		totals_status=0
		"$@" 2>&1 || totals_status=$?
		echo "$totals_status" >"$totals_log.status"
	} | tee "$totals_log" | remarks
	why=
	if ! add_total "$(tail -n 1 "$totals_log")"; then
		why="no result line"
	elif [ "$failed" = "$totals_failed" ]; then
		case $(cat "$totals_log.status"),$((skipped - totals_skipped)) in
		0,* | 4,[1-9]*) ;; # 4: kselftest's status of what was skipped
		*) why="ended with an error" ;;
		esac
	fi
	rm -f "$totals_log.status"
	[ -z "$why" ] || bad "$totals_name: $why"
}

# ---- in the guest ----

# Free memory once the kernel has given back what it keeps for later only, and what
# waits for a grace period or for a kernel thread: the most of ten looks. What processors
# have on lists of their own is free, too: it goes up and down by 30 MiB.
free_kb() {
	looks=0
	most=0
	while [ $looks -lt 10 ]; do
		looks=$((looks + 1))
		sync
		echo 3 >/proc/sys/vm/drop_caches
		sleep 0.5
		now=$(awk '/^MemFree:/ { n += $2 } /^ +count:/ { n += 4 * $2 }
			END { print n }' /proc/meminfo /proc/zoneinfo)
		[ "$now" -le "$most" ] || most=$now
	done
	echo "$most"
}

# Sum of what any process has pinned.
pinned_kb() {
	cat /proc/[0-9]*/status 2>/dev/null | awk '/^VmPin:/ { n += $2 } END { print n + 0 }'
}
