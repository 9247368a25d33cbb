#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tempest beside processes of its device that mean harm: programs start, exchange messages,
# transfer, and end, as if there were none. Also runs under busybox.
set -u

ME=intruders-test.sh
here=$(dirname "$0")
[ -e "$here/lib.sh" ] || here=$here/../lib # in a guest it is beside the script
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$here/lib.sh"

usage() {
	cat <<USAGE
Usage: selftests/tempest/intruders-test.sh RUN FOLDER [--device D] [ATTACK]...

Runs stranger of FOLDER by RUN (hamlyn-run), beside each attack of intruder, or those named: by
the same user, and on D, as root, by another one, too; prints TAP. Without D: on the embedded device.
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
others=
HAMLYN_DEVICE=shm:intruders-test-$$
if [ "${1:-}" = --device ] && [ $# -gt 1 ]; then
	HAMLYN_DEVICE=$2
	shift 2
	[ "$(id -u)" != 0 ] || others=--another
fi
export HAMLYN_DEVICE
# shellcheck disable=SC2046 # names
[ $# != 0 ] || set -- $("$folder/intruder" --list)

LONGEST=$((120 * ${HAMLYN_TEST_SCALE:-1})) # seconds

work_folder intruders-test
mkfifo "$work/input"

# Until its input ends. Some are ready at once, one says when.
begin_attack() { # ATTACK [--another]
	: >"$work/out"
	timeout $((4 * LONGEST)) "$folder/intruder" "$@" <"$work/input" >"$work/out" 2>&1 &
	intruder=$!
	exec 9>"$work/input"
	[ "$1" = take-all ] || return 0
	tries=0
	until grep -q ready "$work/out"; do
		[ $((tries += 1)) -le $((10 * LONGEST)) ] || return
		sleep 0.1
	done
}

# It must have been able to do harm until then
end_attack() {
	exec 9>&-
	status=0
	wait "$intruder" || status=$?
	[ "$status" = 0 ] || sed 's/^/# /' "$work/out"
	[ "$status" = 0 ]
}

job() {
	"$run" -n 2 --timeout "$LONGEST" "$folder/stranger" undisturbed </dev/null >"$work/job" 2>&1 ||
		{ sed 's/^/# /' "$work/job"; return 1; }
}

beside() { # ATTACK [--another]
	begin_attack "$@" || { end_attack; return 1; }
	result=0
	job || result=1
	end_attack && [ "$result" = 0 ]
}

# What one user has shares its limits: there may be no room for a job, which says so.
refused_in_words() {
	begin_attack "$@" || { end_attack; return 1; }
	result=0
	job >"$work/why" || { grep -q 'tempest: node .*: ' "$work/why" || result=1; }
	end_attack && [ "$result" = 0 ]
}

for attack; do
	if [ "$attack" = take-all ]; then
		check "no room beside $attack" refused_in_words "$attack"
	else
		check "beside $attack" beside "$attack"
	fi
	[ -z "$others" ] || check "beside $attack of another user" beside "$attack" "$others"
done

total
