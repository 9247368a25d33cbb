#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Instructions of the calling process per operation, exact and independent of
# load: callgrind counts them for N1 and for N2 operations, and the difference
# divided by N2 - N1 is free of everything that happens once. What a call of
# an empty function costs is subtracted as well.
#
# On the embedded device the sender does the NIC's work: send16 has all of it.
set -eu

device=shm:hamlyn-count-$$
perf=${HAMLYN_PERF:-build/hamlyn-perf}
n1=1000
n2=3000
format=table

usage()
{
	cat <<-END
	usage: count.sh [--device D] [--perf PROGRAM] [--n1 N] [--n2 N] [--json]

	Counts instructions per operation with valgrind --tool=callgrind.
	  --device D      device (default: an embedded device of its own)
	  --perf PROGRAM  hamlyn-perf to run (default: \$HAMLYN_PERF or build/hamlyn-perf)
	  --n1 N, --n2 N  how many operations in the two runs (default: $n1 and $n2)
	  --json          one JSON object per line
	END
}

die()
{
	echo "count.sh: $*" >&2
	exit 1
}

number()
{
	case $2 in
	'' | 0* | *[!0-9]*) die "$1 takes a positive number, not \"$2\"" ;;
	esac
}

while [ $# -gt 0 ]; do
	case $1 in
	--json) format=json ;;
	--help | -h) usage; exit 0 ;;
	--device | --perf | --n1 | --n2)
		[ $# -gt 1 ] || die "$1 needs a value (see --help)"
		case $1 in
		--device) device=$2 ;;
		--perf) perf=$2 ;;
		--n1) number --n1 "$2"; n1=$2 ;;
		--n2) number --n2 "$2"; n2=$2 ;;
		esac
		shift
		;;
	*) die "no option is called \"$1\" (see --help)" ;;
	esac
	shift
done
[ "$n2" -gt "$n1" ] || die "--n2 must be more than --n1, but $n2 is not more than $n1"
command -v valgrind >/dev/null || die "valgrind is not installed (package valgrind)"
[ -x "$perf" ] || die "there is no program $perf (run make, or give --perf)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# instructions OP N: those inside the operation's own function
instructions()
{
	timeout 300 valgrind --tool=callgrind --collect-atstart=no \
		--toggle-collect="perf_op_$1" --callgrind-out-file="$work/out" \
		"$perf" --device "$device" --quiet count --op "$1" --n "$2" \
		>"$work/log" 2>&1 || {
		cat "$work/log" >&2
		die "$perf count --op $1 failed under callgrind"
	}
	sed -n 's/^\(summary\|totals\): *\([0-9]*\).*/\2/p' "$work/out" | tail -n 1
}

# each OP: instructions per operation, with one decimal
each()
{
	ir1=$(instructions "$1" "$n1")
	ir2=$(instructions "$1" "$n2")
	if [ -z "$ir1" ] || [ -z "$ir2" ]; then
		die "callgrind counted nothing for $1"
	fi
	awk -v a="$ir1" -v b="$ir2" -v n="$((n2 - n1))" 'BEGIN { printf "%.1f", (b - a) / n }'
}

show()
{
	net=$(awk -v a="$2" -v b="$nothing" 'BEGIN { printf "%.1f", a - b }')
	if [ "$format" = json ]; then
		printf '{"system":"hamlyn","test":"instructions","op":"%s","size":%d,"instructions":%s}\n' \
			"$1" "$4" "$net"
	else
		printf '%10s  %s\n' "$net" "$3"
	fi
}

nothing=$(each nothing)
send16=$(each send16)
emptypoll=$(each emptypoll)
hit=$(each hit)
streamsend=$(each streamsend)
streamrecv=$(each streamrecv)
channelsend=$(each channelsend)
channelrecv=$(each channelrecv)

[ "$format" = json ] || echo "instructions per operation on $device"
show send16 "$send16" "send 16 bytes" 16
show emptypoll "$emptypoll" "empty poll" 0
show hit "$hit" "hit: poll that finds a message" 16
show streamsend "$streamsend" "send 16 bytes through a stream, and flush" 16
show streamrecv "$streamrecv" "receive and release them" 16
show channelsend "$channelsend" "send 16 bytes through a channel" 16
show channelrecv "$channelrecv" "receive and release them" 16
