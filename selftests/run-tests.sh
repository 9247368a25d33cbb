#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs selftest programs one after the other and adds up their results. For any
# POSIX shell, that of the guest included.
set -u

usage() {
	cat <<'EOT'
Usage: run-tests.sh [--device DEVICE] [--tap] [--timeout SECONDS] PROGRAM[:VARIANT+...]...

Tests of the variants that are named behind a program are left out.

  --device DEVICE    what the tests open, passed to them as HAMLYN_DEVICE:
                     /dev/hamlynN or shm:NAME; nobody else may use it meanwhile
  --tap              print all that the programs say, as one TAP stream;
                     without it: one line a test, and what failed ones say
  --timeout SECONDS  for one program (default 900), times HAMLYN_TEST_SCALE

The last line is "N passed, N failed", with ", N skipped" if some were. The
exit status is 0 if none failed, and every program ran all tests of its plan.

HAMLYN_TEST_SCALE=N makes the tests, and this script, N times as patient;
HAMLYN_TEST_SEED=N gives their random choices another course. With HAMLYN_TEST_BRIEF=1
what looks for what happens by chance does so a third as often.
EOT
}

tap=no
limit=900

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--tap)
		tap=yes
		;;
	--device | --timeout)
		[ $# -gt 1 ] || {
			echo "run-tests.sh: $1 needs a value" >&2
			exit 2
		}
		case $1 in
		--device) export HAMLYN_DEVICE="$2" ;;
		--timeout) limit=$2 ;;
		esac
		shift
		;;
	--)
		shift
		break
		;;
	-*)
		echo "run-tests.sh: unknown option $1" >&2
		usage >&2
		exit 2
		;;
	*)
		break
		;;
	esac
	shift
done
[ $# -gt 0 ] || {
	usage >&2
	exit 2
}
case ${HAMLYN_TEST_SCALE:-1}$limit in
*[!0-9]*)
	echo "run-tests.sh: not a whole number: $limit, ${HAMLYN_TEST_SCALE:-}" >&2
	exit 2
	;;
esac
limit=$((limit * ${HAMLYN_TEST_SCALE:-1}))

# The loops that read run in subshells: totals go through a file.
work=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-tests.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

END='-- end of program, status'
number=0
passed=0
failed=0
skipped=0

run() { # PROGRAM[:VARIANT+...]
	options=$(printf '%s' "$1" | sed -n 's/^[^:]*:/+/; s/+/ -V /gp')
	set -- "${1%%:*}"
	case $1 in
	*/*) ;;
	*) set -- "./$1" ;;
	esac
	# shellcheck disable=SC2086 # several words
	if command -v timeout >/dev/null 2>&1; then
		timeout -k 10 "$limit" "$1" $options 2>&1 </dev/null
	else
		"$1" $options 2>&1 </dev/null
	fi
	echo "$END $?"
}

# One result for the reader.
say() { # RESULT NAME
	number=$((number + 1))
	if [ "$tap" = yes ]; then
		echo "$1 $number $2"
	else
		echo "$1 - $2"
	fi
}

# A failure of the program as a whole.
broken() { # TEXT
	say "not ok" "$name: $1"
	failed=$((failed + 1))
}

# "ok 7 some.test # SKIP why" of one program to a line of this run.
result() { # LINE
	case $1 in
	"not ok "*) verdict="not ok" rest=${1#not ok } ;;
	*) verdict="ok" rest=${1#ok } ;;
	esac
	case $rest in
	*" "*) rest=${rest#* } ;;
	*) rest="" ;;
	esac
	rest=${rest#- }
	rest=${rest#"$name."}
	seen=$((seen + 1))
	case $1 in
	*"# SKIP"*) skipped=$((skipped + 1)) ;;
	"ok "*) passed=$((passed + 1)) ;;
	*)
		failed=$((failed + 1))
		bad=$((bad + 1))
		[ "$tap" = yes ] || printf '%s' "$remarks"
		;;
	esac
	say "$verdict" "$name: $rest"
	remarks=""
}

# All that one program says, up to the end mark.
follow() {
	plan="" seen=0 bad=0 status="" remarks=""
	while IFS= read -r line; do
		case $line in
		"$END "*)
			status=${line#"$END "}
			break
			;;
		"TAP version"*) ;;
		1..*) plan=${line#1..} ;;
		"ok "[0-9]* | "not ok "[0-9]*)
			result "$line"
			;;
		*)
			case $line in
			"#"*) ;;
			*) line="# $line" ;;
			esac
			[ "$tap" = no ] || echo "$line"
			remarks="$remarks$line
"
			;;
		esac
	done
	judge
	echo "$number $passed $failed $skipped" >"$work/totals"
}

# Did the program do all that it should?
judge() {
	# 124 and 143: coreutils' and busybox' timeout; 137: it took a SIGKILL.
	if [ "$status" = 124 ] || [ "$status" = 143 ] || [ "$status" = 137 ]; then
		[ "$tap" = yes ] || printf '%s' "$remarks"
		broken "ended after $limit seconds, or killed"
	elif [ -z "$plan" ]; then
		[ "$tap" = yes ] || printf '%s' "$remarks"
		broken "no plan, status $status"
	elif [ "$plan" != "$seen" ]; then
		broken "$seen of $plan tests ran, status $status"
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		broken "status $status"
	elif [ "$seen" = 0 ]; then
		broken "no tests"
	fi
}

[ "$tap" = no ] || echo "TAP version 13"
for program in "$@"; do
	name=${program%%:*}
	name=${name##*/}
	: >"$work/totals"
	begun=$(date +%s)
	run "$program" | follow
	read -r number passed failed skipped <"$work/totals" || {
		echo "run-tests.sh: the results of $name are lost" >&2
		exit 2
	}
	echo "# $name took $(($(date +%s) - begun)) s"
done
[ "$tap" = no ] || echo "1..$number"

if [ "$skipped" = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ "$failed" = 0 ]
