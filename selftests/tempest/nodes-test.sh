#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tempest on several nodes, and in sight of a process that is none of them. Also runs
# under busybox.
set -u

ME=nodes-test.sh
here=$(dirname "$0")
[ -e "$here/lib.sh" ] || here=$here/../lib # in a guest it is beside the script
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$here/lib.sh"

usage() {
	cat <<USAGE
Usage: selftests/tempest/nodes-test.sh RUN FOLDER [--device D] [PROGRAM]...

Runs the programs of FOLDER that are about several nodes (nodes, channels, rejected, contended,
stranger), or those named, by RUN (hamlyn-run), on the embedded device or on D; prints TAP.
HAMLYN_TEST_PROCESSES: by how many nodes each is run (default "2 4").
USAGE
}

only_help "$@"
[ $# -ge 2 ] || {
	usage >&2
	exit 2
}
run=$1
folder=$2
shift 2
HAMLYN_DEVICE=shm:tempest-test-$$
if [ "${1:-}" = --device ] && [ $# -gt 1 ]; then
	HAMLYN_DEVICE=$2
	shift 2
fi
export HAMLYN_DEVICE
[ $# != 0 ] || set -- nodes channels rejected contended stranger

LONGEST=$((120 * ${HAMLYN_TEST_SCALE:-1})) # seconds

work_folder nodes-test

on_nodes() { # NUMBER PROGRAM TEST [--control]
	"$run" -n "$1" --timeout "$LONGEST" "$folder/$2" "$3" ${4:+"$4"} </dev/null
}

ends() { # NUMBER PROGRAM TEST SIGNAL: 0, or what one of them is to die of
	status=0
	on_nodes "$1" "$2" "$3" || status=$?
	died_of "$status" "$4"
}

must_fail() { # NUMBER PROGRAM TEST SIGNAL: 0, or what it may die of in place of a check that fails
	status=0
	on_nodes "$1" "$2" "$3" --control || status=$?
	[ "$status" = 1 ] || { [ "$4" != 0 ] && died_of "$status" "$4"; }
}

for program; do
	"$folder/$program" --list >"$work/list" || exit 2
	while read -r test control signal noticed; do
		for number in ${HAMLYN_TEST_PROCESSES:-2 4}; do
			check "$program: $test ($number nodes)" ends "$number" "$program" "$test" "$signal"
		done
		[ "$control" != control ] ||
			check "$program: $test fails without what it tests (2 nodes)" \
				must_fail 2 "$program" "$test" "$noticed"
	done <"$work/list"
done

total
