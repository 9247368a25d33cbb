#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tempest on several nodes, and in sight of a process that is none of them. Also runs
# under busybox.
set -u

usage() {
	cat <<USAGE
Usage: selftests/tempest/nodes-test.sh RUN FOLDER [--device D] [PROGRAM]...

Runs the programs of FOLDER that are about several nodes (nodes, contended, stranger), or
those named, by RUN (hamlyn-run), on the embedded device or on D; prints TAP. HAMLYN_TEST_PROCESSES: by how many nodes each is
run (default "2 4").
USAGE
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
'' | -*)
	usage >&2
	exit 2
	;;
esac

if [ $# -lt 2 ]; then
	usage >&2
	exit 2
fi
run=$1
folder=$2
shift 2
HAMLYN_DEVICE=shm:tempest-test-$$
if [ "${1:-}" = --device ] && [ $# -gt 1 ]; then
	HAMLYN_DEVICE=$2
	shift 2
fi
export HAMLYN_DEVICE
[ $# != 0 ] || set -- nodes contended stranger

LONGEST=$((120 * ${HAMLYN_TEST_SCALE:-1})) # seconds
passed=0
failed=0

out=$(mktemp "${TMPDIR:-/tmp}/hamlyn-tempest-test.XXXXXX") || exit 2
trap 'rm -f "$out" "$out.list"' EXIT
trap 'exit 130' INT TERM

verdict() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok - $2"
		passed=$((passed + 1))
	else
		head -n 20 "$out" | sed 's/^/# | /'
		echo "not ok - $2"
		failed=$((failed + 1))
	fi
}

on_nodes() { # NUMBER PROGRAM TEST [--control]
	"$run" -n "$1" --timeout "$LONGEST" "$folder/$2" "$3" ${4:+"$4"} >"$out" 2>&1 </dev/null
}

nodes() { # NUMBER PROGRAM TEST SIGNAL: 0, or what one of them is to die of
	status=0
	on_nodes "$1" "$2" "$3" || status=$?
	if [ "$4" != 0 ]; then
		[ "$status" = $((128 + $4)) ] && status=0 || status=1
	fi
	verdict "$status" "$2: $3 ($1 nodes)"
}

nodes_must_fail() { # NUMBER PROGRAM TEST
	status=0
	on_nodes "$1" "$2" "$3" --control || status=$?
	[ "$status" = 1 ] && status=0 || status=1
	verdict "$status" "$2: $3 fails without what it tests ($1 nodes)"
}

for program; do
	"$folder/$program" --list >"$out.list" || exit 2
	while read -r test control signal; do
		for number in ${HAMLYN_TEST_PROCESSES:-2 4}; do
			nodes "$number" "$program" "$test" "$signal"
		done
		[ "$control" != control ] || nodes_must_fail 2 "$program" "$test"
	done <"$out.list"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
